//! The hosts and servers: each has a namespace, a TUN device and stack settings.
//!
//! As with simulated hosts, both ends of a connection have the host's stack. At each node where connections end, there
//! is thus one server for each stack and each law that uses clients' reports. Most scenarios need only one server.

use crate::Grain;
use crate::addresses::{AddressPlan, GUEST_ADDRESSES};
use crate::agents::controls;
use crate::error::{Doing, Error, Result};
use crate::laws;
use crate::namespace::Namespace;
use crate::netlink::Netlink;
use crate::radios::{self, Queued};
use crate::tcp_switches::{Stack, sysctl};
use crate::tun::{INTERFACE, Settings, Tun};
use lasthop_laws::Choice;
use lasthop_network::{NodeId, Topology};
use lasthop_scenario::{Era, HostKind, HostSpec, Scenario};
use lasthop_units::Bytes;
use netlink_packet_route::route::RouteMetric;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

/// The queue of a device that the medium's loop empties at every turn. The network's own drops happen in the model's
/// queue, so this one only covers a late turn. A drop here invalidates the run.
const UNREAD_PACKETS: u32 = 10_000;

/// Packets dropped by full devices since their creation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceDrops {
    /// Drops of the devices that are hosts' transmit queues.
    pub(crate) queued: u64,
    /// Drops of all other devices.
    pub(crate) unread: u64,
    /// Over radios: what the queues of the access point have dropped and marked.
    pub(crate) down: Queued,
}

impl DeviceDrops {
    /// Those since an earlier reading. A radio's counters begin anew with each association.
    ///
    /// # Errors
    /// If one is below the earlier.
    pub(crate) fn since(self, before: Self) -> Result<Self> {
        let since = |now: u64, before: u64| {
            let lost = || Error::Machine("a station has lost its association during the run".to_owned());
            now.checked_sub(before).ok_or_else(lost)
        };
        Ok(Self {
            queued: since(self.queued, before.queued)?,
            unread: since(self.unread, before.unread)?,
            down: Queued {
                drops: since(self.down.drops, before.down.drops)?,
                marks: since(self.down.marks, before.down.marks)?,
            },
        })
    }
}

/// The servers of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    pub(crate) specs: Vec<ServerSpec>,
    /// The server of each connection, in the order of the hosts.
    pub(crate) of_flow: Vec<u16>,
}

/// One server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerSpec {
    /// Its node.
    node: NodeId,
    stack: Stack,
    /// The law that its listener needs before the first SYN, to use clients' reports of their last links.
    hears: Option<Choice>,
    /// Those of its hosts; behind an access point, servers are modern but for their send buffers.
    habits: Habits,
    /// Whether TCP small queues apply here.
    pub(crate) has_small_queues: bool,
    /// Whether it is a guest's, with the guest's addresses and without flows of the scenario.
    of_guest: bool,
}

/// The hosts where a guest runs, and what its connections have there and at its server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GuestAt<'a> {
    /// Each host, with the kernel's name of its congestion control. Those of the server are as of the first.
    pub(crate) programs: &'a [(u16, &'a str)],
    /// Whether its server is the way to the internet.
    pub(crate) internet: bool,
}

/// The settings of a host besides the switches of `[hosts.tcp]`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Habits {
    era: Era,
    /// The most memory of a send buffer, as the kernel counts it.
    send_buffer: Bytes,
    /// As [`Settings::gso_segments`].
    gso_segments: Option<u32>,
}

/// What the kernel counts in a send buffer for a packet of TCP beyond its data: `SKB_TRUESIZE(MAX_TCP_HEADER)`; seen as the
/// `sk_wmem_queued` of `ss -m` less the unacknowledged bytes, for each packet, on Linux 6.18, x86-64.
const PACKET_BEYOND_DATA: u64 = 832;

/// All ends.
pub(crate) struct Hosts {
    /// The namespaces of the hosts by index, then of the servers.
    pub(crate) namespaces: Vec<Namespace>,
    /// The devices in the same order.
    pub(crate) devices: Vec<Tun>,
    pub(crate) plan: AddressPlan,
    /// How many devices, from the first on, are their hosts' transmit queues: those of all hosts, or none on links.
    pub(crate) queues_in_devices: usize,
    hosts: usize,
    /// Where the hosts have radios instead of devices: the access point's namespace, whose device is the first one, and all hosts'.
    pub(crate) access_point: Option<Namespace>,
}

impl Servers {
    /// The servers of these hosts.
    ///
    /// # Errors
    /// If there are more than the available addresses.
    pub(crate) fn of(scenario: &Scenario, hosts: &[HostSpec]) -> Result<Self> {
        let on_links = has_links(scenario);
        let (mut specs, mut of_flow) = (Vec::new(), Vec::new());
        for host in hosts {
            for flow in &host.flows {
                let spec = ServerSpec::of(host, flow.server, on_links);
                let number = specs.iter().position(|known| *known == spec).unwrap_or(specs.len());
                if number == specs.len() {
                    specs.push(spec);
                }
                of_flow.push(u16::try_from(number).map_err(|_| Error::Machine("more than 65,535 servers".to_owned()))?);
            }
        }
        Ok(Self { specs, of_flow })
    }

    /// Adds the server of a guest on this host, after the others: behind the access point, or on links on the node of
    /// the host's first flow, or else of any flow.
    ///
    /// # Errors
    /// If no connection of a scenario with links says where.
    pub(crate) fn add_of_guest(&mut self, scenario: &Scenario, hosts: &[HostSpec], host: u16) -> Result<()> {
        let host = &hosts[usize::from(host)];
        let on_links = has_links(scenario);
        let flow = host.flows.first().or_else(|| hosts.iter().find_map(|host| host.flows.first()));
        let node = match flow {
            Some(flow) => flow.server,
            None if on_links => {
                let reason = "no host has a flow, so nothing says which node the server is on; give one host a flow";
                return Err(Error::Scenario { key: "hosts.flows".to_owned(), reason: reason.to_owned() });
            }
            None => scenario.network().beside_hosts(0),
        };
        self.specs.push(ServerSpec { of_guest: true, ..ServerSpec::of(host, node, on_links) });
        Ok(())
    }
}

impl ServerSpec {
    fn of(host: &HostSpec, node: NodeId, on_links: bool) -> Self {
        let has_small_queues = on_links && host.kind.era == Era::Modern;
        let habits = Habits::of(&host.kind, has_small_queues);
        let habits = if on_links { habits } else { Habits { era: Era::Modern, ..habits } };
        let (stack, hears) = (stack_of(&host.kind), laws::hears(&host.kind));
        Self { node, stack, hears, habits, has_small_queues, of_guest: false }
    }
}

impl Hosts {
    /// Creates all hosts and servers. `radios`: hosts have no devices but radios, which this takes, as does an access point.
    ///
    /// # Errors
    /// If the caller has no permission or the kernel lacks a feature. The message says which.
    pub(crate) fn new(
        scenario: &Scenario,
        hosts: &[HostSpec],
        servers: &Servers,
        guest: Option<GuestAt<'_>>,
        radios: bool,
    ) -> Result<Self> {
        let ends = hosts.len() + servers.specs.len();
        let (mut namespaces, mut devices) = (Vec::with_capacity(ends), Vec::with_capacity(ends));
        let mut access_point = None;
        if radios {
            let namespace = Namespace::new()?;
            devices.push(namespace.run(router_device)?);
            radios::take_radio(0, &namespace, radios::OF_ACCESS_POINT)?;
            access_point = Some(namespace);
            for host in hosts {
                let namespace = Namespace::new()?;
                namespace.run(|| radio_host(host))?;
                radios::take_radio(1 + usize::from(host.index), &namespace, INTERFACE)?;
                namespaces.push(namespace);
            }
        }
        let mut add = |what: String, device: &(dyn Fn() -> Result<Tun> + Sync)| {
            let namespace = Namespace::new()?;
            let of_end = |error| Error::End { what, source: Box::new(error) };
            devices.push(namespace.run(device).map_err(of_end)?);
            namespaces.push(namespace);
            Ok::<_, Error>(())
        };
        let on_links = has_links(scenario);
        for host in hosts.iter().filter(|_| !radios) {
            let device = || {
                let programs = guest.map_or(&[][..], |guest| guest.programs);
                let control = programs.iter().find(|(here, _)| *here == host.index).map(|(_, control)| *control);
                control.map_or(Ok(()), |_| welcome())?;
                host_device(host, on_links, guest.is_some() && has_ipv6(), control)
            };
            add(format!("host {}", host.index), &device)?;
        }
        for (number, server) in (0..).zip(&servers.specs) {
            let device = || {
                let control = guest.filter(|_| server.of_guest).map(|guest| guest.programs[0].1);
                control.map_or(Ok(()), |_| welcome())?;
                server_device(number, server, control)
            };
            add(format!("server {number}"), &device)?;
        }
        let nodes = servers.specs.iter().map(|server| server.node).collect();
        let plan = AddressPlan::new(
            u16::try_from(hosts.len()).map_err(|_| Error::Machine("more than 65,535 hosts".to_owned()))?,
            nodes,
        );
        let plan = match (guest, servers.specs.iter().position(|server| server.of_guest)) {
            (Some(guest), Some(server)) => plan.with_guest(server as u16, guest.internet),
            _ => plan,
        };
        let queues_in_devices = if on_links || radios { 0 } else { hosts.len() };
        Ok(Self { namespaces, devices, plan, queues_in_devices, hosts: hosts.len(), access_point })
    }

    /// The device that takes the packets of an end to it.
    pub(crate) fn device(&self, end: usize) -> &Tun {
        let device = if self.access_point.is_some() { (end + 1).saturating_sub(self.hosts) } else { end };
        &self.devices[device]
    }

    /// The end that has sent a packet of this device; `None`: nobody that is known.
    pub(crate) fn sender(&self, device: usize, packet: &[u8]) -> Option<usize> {
        match (&self.access_point, device) {
            (None, end) => Some(end),
            (Some(_), 0) => self.plan.host_from(packet).map(usize::from),
            (Some(_), server) => Some(self.hosts + server - 1),
        }
    }

    /// The namespaces of the hosts, by index.
    pub(crate) fn hosts(&self) -> &[Namespace] {
        &self.namespaces[..self.hosts]
    }

    /// The namespaces of the servers.
    pub(crate) fn servers(&self) -> &[Namespace] {
        &self.namespaces[self.hosts..]
    }

    /// Packets dropped by the kernel because their device's queue was full.
    pub(crate) fn device_drops(&self) -> Result<DeviceDrops> {
        let dropped = |namespaces: &[Namespace]| -> Result<u64> {
            namespaces.iter().map(|namespace| namespace.run(dropped_by_device)).sum()
        };
        if let Some(access_point) = &self.access_point {
            let [down, up] = radios::queued(access_point, self.hosts())?;
            let unread = access_point.run(dropped_by_device)? + dropped(self.servers())?;
            return Ok(DeviceDrops { queued: up.drops, unread, down });
        }
        let (queues, others) = self.namespaces.split_at(self.queues_in_devices);
        Ok(DeviceDrops { queued: dropped(queues)?, unread: dropped(others)?, down: Queued::default() })
    }
}

/// Whether hosts are on nodes with links instead of behind an access point.
pub(crate) fn has_links(scenario: &Scenario) -> bool {
    matches!(scenario.network().topology, Topology::Links(_))
}

/// The stack that [`crate::check`] has accepted.
pub(crate) fn stack_of(kind: &HostKind) -> Stack {
    Stack::of(kind).expect("a scenario with another is refused")
}

/// The metrics of the routes, with the congestion control of a guest's connections. A namespace's default is no way: some
/// kernels refuse to have it written. An agent that controls gives connections its own, which a route's would replace
/// after it (tcp_connect()).
fn metrics(stack: &Stack, of_guest: Option<&str>) -> Vec<RouteMetric> {
    let of_guest = of_guest.map(|control| RouteMetric::CcAlgo(control.to_owned()));
    stack.route_metrics().into_iter().chain(of_guest).collect()
}

fn host_device(spec: &HostSpec, on_links: bool, ipv6: bool, of_guest: Option<&str>) -> Result<Tun> {
    quiet(ipv6)?;
    let habits = Habits::of(&spec.kind, spec.kind.era == Era::Modern);
    habits.set_sysctls()?;
    let stack = stack_of(&spec.kind);
    stack.set_sysctls()?;
    let queue_packets = match spec.kind.era {
        // The host's queue is its link's, in the model.
        _ if on_links => UNREAD_PACKETS,
        Era::Y2012 => u32::try_from(spec.kind.network.queue_packets).unwrap_or(u32::MAX),
        // The queue is in the model; see [`valve`](crate::valve).
        Era::Modern => 1000,
    };
    Tun::new(Settings {
        addresses: [(AddressPlan::host(spec.index).into(), AddressPlan::HOST_PREFIX)]
            .into_iter()
            .chain(ipv6.then(|| (AddressPlan::host6(spec.index).into(), AddressPlan::HOST_PREFIX6)))
            .collect(),
        queue_packets,
        metrics: metrics(&stack, of_guest.filter(|_| !controls(spec))),
        gro: stack.gro(),
        gso_segments: habits.gso_segments,
    })
}

/// The stack of a host whose last hop is a radio, which has its queue.
fn radio_host(spec: &HostSpec) -> Result<()> {
    quiet(false)?;
    Habits::of(&spec.kind, false).set_sysctls()?;
    stack_of(&spec.kind).set_sysctls()
}

/// The way on from an access point that routes; of a router with a queue the way there as well.
pub(crate) fn router_device() -> Result<Tun> {
    quiet(false)?;
    sysctl("ipv4/ip_forward", "1")?;
    // What goes back by the device by which it came.
    sysctl("ipv4/conf/all/send_redirects", "0")?;
    sysctl("ipv4/conf/default/send_redirects", "0")?;
    Tun::new(Settings {
        addresses: vec![(AddressPlan::ACCESS_POINT.into(), 32)],
        queue_packets: UNREAD_PACKETS,
        metrics: Vec::new(),
        gro: None,
        gso_segments: None,
    })
}

fn server_device(number: u16, spec: &ServerSpec, of_guest: Option<&str>) -> Result<Tun> {
    let ipv6 = spec.of_guest && has_ipv6();
    quiet(ipv6)?;
    sysctl("ipv4/tcp_rmem", "4096 131072 8388608")?;
    spec.habits.set_sysctls()?;
    spec.stack.set_sysctls()?;
    let mut addresses: Vec<(IpAddr, u8)> = Vec::new();
    if spec.of_guest {
        for (address, address6) in (0..GUEST_ADDRESSES).map(AddressPlan::guest_server) {
            addresses.push((address.into(), 32));
            addresses.extend(ipv6.then_some((address6.into(), 128)));
        }
    } else {
        addresses.push((AddressPlan::server(number).into(), 32));
    }
    Tun::new(Settings {
        addresses,
        queue_packets: UNREAD_PACKETS,
        metrics: metrics(&spec.stack, of_guest),
        gro: spec.stack.gro(),
        gso_segments: spec.habits.gso_segments,
    })
}

impl Habits {
    /// A send buffer holds as many segments as that of a simulated host, whatever this kernel counts for one.
    ///
    /// A packet of TCP has several segments in kernels of today, which part it as late as they can. A write then fills what is left
    /// of the last packet also where the send buffer is full (tcp_sendmsg()), up to the window, whatever that is. Stacks
    /// of 2012 had a segment a packet at devices without TSO, such as those of Wi-Fi.
    fn of(kind: &HostKind, has_small_queues: bool) -> Self {
        let segments = match kind.era {
            Era::Y2012 => Some(1),
            Era::Modern => has_small_queues.then_some(Grain::CHOSEN.tcp_segments),
        };
        let memory = |segments: u32| {
            let payload = kind.tcp.full_payload();
            let held = kind.tcp.send_capacity(payload) / u64::from(payload);
            let counted = held * (u64::from(payload) + PACKET_BEYOND_DATA / u64::from(segments));
            // What the sysctl takes.
            Bytes::new(counted.min(i32::MAX as u64))
        };
        let send_buffer = segments.map_or(kind.tcp.send_buffer, memory);
        // A valve sets its own.
        Self { era: kind.era, send_buffer, gso_segments: segments.filter(|_| kind.era == Era::Y2012) }
    }

    fn set_sysctls(self) -> Result<()> {
        let most = self.send_buffer.get();
        let at_first = most.min(16384);
        sysctl("ipv4/tcp_wmem", &format!("{} {at_first} {most}", at_first.min(4096)))?;
        if self.era == Era::Y2012 {
            // Tail loss probes came with Linux 3.10. RACK cannot be turned off: it is the only loss detection since
            // 6.17. The device has a plain queue, so pacing is off unless the law asks for it.
            sysctl("ipv4/tcp_early_retrans", "0")?;
            sysctl("ipv4/tcp_limit_output_bytes", "1073741824")?;
        }
        Ok(())
    }
}

/// Prepares the namespace of a host or server where a guest runs.
fn welcome() -> Result<()> {
    Netlink::open()?.bring_loopback_up()?;
    // There is nobody to protect from anybody here: a user may serve on port 80, and ping.
    sysctl("ipv4/ip_unprivileged_port_start", "0")?;
    sysctl("ipv4/ping_group_range", "0 2147483647")
}

/// Whether this kernel has IPv6.
pub(crate) fn has_ipv6() -> bool {
    Path::new("/proc/sys/net/ipv6").exists()
}

/// Keeps all other traffic off the air, and stops connections from learning from earlier ones.
fn quiet(ipv6: bool) -> Result<()> {
    if ipv6 {
        // No router is asked, none is believed, and devices get no address by themselves.
        sysctl("ipv6/conf/default/accept_ra", "0")?;
        sysctl("ipv6/conf/default/router_solicitations", "0")?;
        sysctl("ipv6/conf/default/addr_gen_mode", "1")?;
    } else if has_ipv6() {
        sysctl("ipv6/conf/all/disable_ipv6", "1")?;
        sysctl("ipv6/conf/default/disable_ipv6", "1")?;
    }
    sysctl("ipv4/tcp_no_metrics_save", "1")
}

/// The "drop" column of the transmit side in /proc/net/dev.
fn dropped_by_device() -> Result<u64> {
    const TRANSMIT_DROP: usize = 11;
    let table = fs::read_to_string("/proc/thread-self/net/dev").doing("cannot read /proc/net/dev")?;
    let row = table.lines().find_map(|line| line.trim().strip_prefix(INTERFACE)?.strip_prefix(':'));
    let column = row.and_then(|row| row.split_whitespace().nth(TRANSMIT_DROP)?.parse().ok());
    column.ok_or_else(|| Error::Machine("/proc/net/dev has no row for a host's TUN device".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_buffer_has_the_memory_that_the_kernel_counts_for_its_segments() {
        let habits = |era: &str, has_small_queues| {
            let text = format!("[[hosts]]\nera = \"{era}\"\n");
            let scenario = Scenario::from_toml("some.toml", &text, &[]).expect("a scenario");
            Habits::of(&scenario.hosts[0].kind, has_small_queues)
        };
        // 1 MiB of 2012: 555 segments of 1448 bytes, each a packet.
        let of_2012 = habits("2012", false);
        assert_eq!((of_2012.send_buffer.get(), of_2012.gso_segments), (555 * (1448 + 832), Some(1)));
        // 4 MiB of today: 2826 segments, two a packet at a valve, which parts them itself.
        let today = habits("modern", true);
        assert_eq!((today.send_buffer.get(), today.gso_segments), (2826 * (1448 + 416), None));
        assert_eq!(habits("modern", false).send_buffer, Bytes::from_kib(4096));
    }
}
