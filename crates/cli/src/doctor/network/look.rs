//! What can be seen from this host: of a running agent, and of the kernel's tables.

use super::Asked;
use crate::trial::Upload;
use anyhow::{Context as _, Result, bail};
use lasthop_agent::Interface;
use lasthop_status::{ContainerCounts, Mode, RelayStatus, Status, Watched, WatchedFlow, ask_agents};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

/// In no network (RFC 5737): nothing is sent there, only the route is asked for.
const ELSEWHERE: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);
/// The most bytes of a line of an agent.
const LINE_BYTES_MOST: u64 = 2 << 20;
/// The beacons' port.
const PORT: u64 = 29_470;

/// What was found.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) interface: String,
    /// `None`: none answers.
    pub(super) agent: Option<AgentFacts>,
    /// The interface by which packets leave; `None`: there is no default route.
    pub(super) leaves_by: Option<String>,
    /// Which kind of tunnel that is; `None`: it is none.
    pub(super) leaves_by_tunnel: Option<String>,
    /// Which kind of tunnel the interface is; `None`: it is none.
    pub(super) tunnel: Option<String>,
    /// Hosts that answer on the link, without gateways.
    pub(super) neighbours: usize,
    /// Whether the named peer answers on the link; `None`: none was named.
    pub(super) reaches_peer: Option<bool>,
    pub(super) firewall: Firewall,
    /// Ends of cables to other network namespaces.
    pub(super) containers: usize,
    /// TAP devices.
    pub(super) machines: usize,
    /// What an agent showed for some seconds.
    pub(super) seen: Option<Seen>,
}

/// What the agent says.
#[derive(Clone, Debug)]
pub(super) struct AgentFacts {
    pub(super) loaded: bool,
    pub(super) mode: Mode,
    pub(super) peers: u32,
    pub(super) rejected: BTreeMap<String, u64>,
    pub(super) relay: Option<RelayStatus>,
    /// `None`: it does not govern connections of containers.
    pub(super) containers: Option<ContainerCounts>,
}

/// Whether beacons come in.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Firewall {
    Unknown(String),
    Open,
    /// A rule of this chain drops beacons.
    Drops(String),
    /// This chain drops by default, and no rule accepts beacons by their port; one may by their address, say.
    Closed(String),
}

/// What was seen for some seconds.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) seconds: f64,
    /// Sent and received by the interface.
    pub(super) bytes: u64,
    /// Of that, payload of this host's connections.
    pub(super) tcp_bytes: u64,
    /// How far the round trip of a sending connection stood above its lowest: of each tick the greatest, and of these the median.
    pub(super) queue_ms: Option<f64>,
    /// Connections are under control.
    pub(super) controls: bool,
}

/// Looks; for some seconds, if there is an agent.
pub(super) fn look(asked: &Asked<'_>) -> Result<Facts> {
    let agents = ask_agents(Path::new(lasthop_status::FOLDER)).unwrap_or_default();
    let agent = agents.into_iter().flatten().find(|agent| asked.interface.is_none_or(|name| agent.interface == name));
    let name = agent.as_ref().map(|agent| agent.interface.as_str()).or(asked.interface);
    let Some(interface) = Interface::find(name, asked.tunnels) else {
        bail!("there is no interface {}: name one with --interface", name.unwrap_or("of a default route"));
    };
    let reaches_peer = asked.peer.map(|peer| reaches(peer, &interface.name)).transpose()?;
    let upload = asked.load.map(Upload::start).transpose()?;
    let watched = agent.as_ref().and_then(|agent| {
        let (_, stream) = lasthop_status::watch(Path::new(lasthop_status::FOLDER), Some(&agent.interface)).ok()?;
        crate::tell(format_args!("looks for {} s at what passes {}", asked.seconds, interface.name));
        watch(stream, &interface.name, Duration::from_secs(asked.seconds)).ok()
    });
    drop(upload);
    let leaves_by = leaves_by();
    let (seen, last) = watched.unzip();
    let agent = last.or(agent).map(|status| AgentFacts {
        loaded: status.loaded,
        mode: status.mode,
        peers: status.peers,
        rejected: status.rejected,
        relay: status.relay,
        containers: status.containers,
    });
    Ok(Facts {
        agent,
        leaves_by_tunnel: leaves_by.as_deref().and_then(tunnel),
        leaves_by,
        tunnel: tunnel(&interface.name),
        neighbours: neighbours(&proc_net("arp"), &interface.name, interface.gateways.as_slice()),
        reaches_peer,
        firewall: firewall(),
        containers: links("veth"),
        machines: links("tap"),
        seen,
        interface: interface.name,
    })
}

/// The calling thread's: /proc/net would show the network namespace of the process's first thread.
fn proc_net(file: &str) -> String {
    fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default()
}

/// Whether a host answers on the link. A datagram to it has the kernel ask for its hardware address.
fn reaches(peer: Ipv4Addr, interface: &str) -> Result<bool> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).context("cannot make a UDP socket")?;
    for _ in 0..4 {
        socket.send_to(&[], (peer, ELSEWHERE.1)).with_context(|| format!("--peer: cannot send to {peer}"))?;
        thread::sleep(Duration::from_millis(400));
        if neighbours(&proc_net("arp"), interface, &[]) > 0 && is_neighbour(&proc_net("arp"), interface, peer) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lines of the ARP table: address, hardware type, flags, hardware address, mask, device. Flag 2: the address is known.
fn known<'a>(table: &'a str, interface: &'a str) -> impl Iterator<Item = IpAddr> + 'a {
    table.lines().filter_map(move |line| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let [address, _, flags, _, _, device] = columns[..] else { return None };
        let flags = u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()?;
        if device == interface && flags & 2 != 0 { address.parse().ok() } else { None }
    })
}

fn neighbours(table: &str, interface: &str, gateways: &[Option<IpAddr>]) -> usize {
    known(table, interface).filter(|address| !gateways.contains(&Some(*address))).count()
}

fn is_neighbour(table: &str, interface: &str, peer: Ipv4Addr) -> bool {
    known(table, interface).any(|address| address == peer)
}

/// The interface of the address that packets to elsewhere would have.
fn leaves_by() -> Option<String> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(ELSEWHERE).ok()?;
    let address = socket.local_addr().ok()?.ip();
    let all = nix::ifaddrs::getifaddrs().ok()?;
    let is_it = |entry: &nix::ifaddrs::InterfaceAddress| {
        entry.address.as_ref().and_then(|at| at.as_sockaddr_in()).is_some_and(|at| IpAddr::from(at.ip()) == address)
    };
    all.into_iter().find(is_it).map(|entry| entry.interface_name)
}

/// Which kind of tunnel an interface is: uevent names WireGuard, and only TUN and TAP have flags.
fn tunnel(interface: &str) -> Option<String> {
    let folder = Path::new("/sys/class/net").join(interface);
    let uevent = fs::read_to_string(folder.join("uevent")).unwrap_or_default();
    if uevent.lines().any(|line| line == "DEVTYPE=wireguard") {
        return Some("WireGuard".to_owned());
    }
    // IFF_TUN is 1 (include/uapi/linux/if_tun.h); a TAP device may be a cable.
    let flags = fs::read_to_string(folder.join("tun_flags")).ok()?;
    let flags = u32::from_str_radix(flags.trim().strip_prefix("0x")?, 16).ok()?;
    (flags & 1 == 1).then(|| "TUN".to_owned())
}

/// How many interfaces have names that begin so, as Docker, podman, libvirt and systemd-nspawn give them.
fn links(prefix: &str) -> usize {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix))).count()
}

fn firewall() -> Firewall {
    match Command::new("nft").args(["-j", "list", "ruleset"]).output() {
        Ok(output) if output.status.success() => in_ruleset(&String::from_utf8_lossy(&output.stdout)),
        Ok(_) => Firewall::Unknown("nft lists its rules to root only".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Firewall::Unknown(
            "there is no nft to ask; if another firewall runs, see that it lets UDP port 29470 in".to_owned(),
        ),
        Err(error) => Firewall::Unknown(format!("nft cannot be asked: {error}")),
    }
}

/// Looks for a rule that drops what names the port, and for a chain at the input that drops by default, in a table of which no
/// rule accepts the port (libnftables-json(5)).
fn in_ruleset(json: &str) -> Firewall {
    let Ok(ruleset) = serde_json::from_str::<Value>(json) else {
        return Firewall::Unknown("what nft says is not understood".to_owned());
    };
    let all = ruleset["nftables"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_port = |verdicts: &'static [&'static str]| {
        all.iter().map(|entry| &entry["rule"]).filter(move |rule| {
            let parts = rule["expr"].as_array().map(Vec::as_slice).unwrap_or_default();
            has_number(&rule["expr"], PORT)
                && parts.iter().any(|part| verdicts.iter().any(|verdict| part.get(verdict).is_some()))
        })
    };
    let named = |of: &Value, chain: &str| {
        let words = ["family", "table", chain].map(|key| of[key].as_str().unwrap_or("?"));
        words.join(" ")
    };
    if let Some(rule) = of_port(&["drop", "reject"]).next() {
        return Firewall::Drops(named(rule, "chain"));
    }
    let mut closed = all.iter().map(|entry| &entry["chain"]).filter(|chain| {
        let is_same = |rule: &Value| rule["table"] == chain["table"] && rule["family"] == chain["family"];
        let drops = chain["hook"] == "input" && chain["policy"] == "drop";
        drops && !of_port(&["accept", "jump", "goto"]).any(is_same)
    });
    closed.next().map_or(Firewall::Open, |chain| Firewall::Closed(named(chain, "name")))
}

fn has_number(value: &Value, number: u64) -> bool {
    match value {
        Value::Number(found) => found.as_u64() == Some(number),
        Value::Array(all) => all.iter().any(|value| has_number(value, number)),
        Value::Object(all) => all.values().any(|value| has_number(value, number)),
        _ => false,
    }
}

/// Bytes received and sent by an interface.
fn bytes_of(interface: &str) -> u64 {
    let table = proc_net("dev");
    let line = table.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':').map(str::to_owned));
    let numbers: Vec<u64> =
        line.unwrap_or_default().split_whitespace().filter_map(|number| number.parse().ok()).collect();
    // bytes packets errs drop fifo frame compressed multicast, and the same of what is sent
    numbers.first().copied().unwrap_or(0) + numbers.get(8).copied().unwrap_or(0)
}

/// Watches an agent.
fn watch(stream: UnixStream, interface: &str, lasts: Duration) -> Result<(Seen, Status)> {
    stream.set_read_timeout(Some(Duration::from_secs(3)))?;
    let mut reader = BufReader::new(stream);
    let (mut tcp_mbit, mut queues, mut controls) = (0.0, Vec::new(), false);
    let (mut begun, mut at_ns): (Option<(Instant, u64)>, u64) = (None, 0);
    loop {
        let mut line = String::new();
        if reader.by_ref().take(LINE_BYTES_MOST).read_line(&mut line)? == 0 {
            bail!("the agent has ended");
        }
        let watched: Watched = serde_json::from_str(&line)?;
        let seconds = watched.t_ns.saturating_sub(at_ns) as f64 / 1e9;
        at_ns = watched.t_ns;
        // The first lines have no rates.
        let Some((since, before)) = begun else {
            if watched.flows.iter().any(|flow| flow.goodput_mbps.is_some()) || watched.status.connections == 0 {
                begun = Some((Instant::now(), bytes_of(interface)));
            }
            continue;
        };
        let mbps = |flow: &WatchedFlow| flow.goodput_mbps.unwrap_or(0.0) + flow.received_mbps.unwrap_or(0.0);
        tcp_mbit += seconds * watched.flows.iter().map(mbps).sum::<f64>();
        let busy = watched.flows.iter().filter(|flow| flow.busy);
        queues.extend(busy.filter_map(|flow| flow.excess_us).max().map(|excess| excess as f64 / 1000.0));
        controls |= watched.status.mode == Mode::Control && watched.status.control_since_s.is_some();
        if since.elapsed() >= lasts {
            queues.sort_unstable_by(f64::total_cmp);
            let seen = Seen {
                seconds: since.elapsed().as_secs_f64(),
                bytes: bytes_of(interface).saturating_sub(before),
                tcp_bytes: (tcp_mbit * 125_000.0) as u64,
                queue_ms: queues.get(queues.len() / 2).copied(),
                controls,
            };
            return Ok((seen, watched.status));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_answers_on_the_link_is_in_the_kernels_table() {
        let table = "\
IP address       HW type     Flags       HW address            Mask     Device
192.168.1.1      0x1         0x2         00:11:22:33:44:55     *        wlan0
192.168.1.7      0x1         0x2         00:11:22:33:44:66     *        wlan0
192.168.1.8      0x1         0x0         00:00:00:00:00:00     *        wlan0
10.0.0.1         0x1         0x2         00:11:22:33:44:77     *        eth0
";
        let gateway = [Some(IpAddr::from([192, 168, 1, 1])), None];
        assert_eq!(neighbours(table, "wlan0", &gateway), 1);
        assert!(is_neighbour(table, "wlan0", Ipv4Addr::new(192, 168, 1, 7)));
        assert!(!is_neighbour(table, "wlan0", Ipv4Addr::new(192, 168, 1, 8)));
    }

    #[test]
    fn a_chain_that_drops_may_keep_beacons_away_unless_a_rule_accepts_their_port() {
        // As `nft -j list ruleset` (1.0.6) prints `chain input { type filter hook input priority 0; policy drop; }`.
        let chain = r#"{"chain": {"family": "inet", "table": "filter", "name": "input", "handle": 1, "type": "filter",
            "hook": "input", "prio": 0, "policy": "drop"}}"#;
        let rule = r#"{"rule": {"family": "inet", "table": "filter", "chain": "input", "handle": 2, "expr": [
            {"match": {"op": "==", "left": {"payload": {"protocol": "udp", "field": "dport"}}, "right": 29470}}, {"accept": null}]}}"#;
        let ruleset =
            |entries: &str| format!(r#"{{"nftables": [{{"metainfo": {{"json_schema_version": 1}}}}, {entries}]}}"#);
        assert_eq!(in_ruleset(&ruleset(chain)), Firewall::Closed("inet filter input".to_owned()));
        assert_eq!(in_ruleset(&ruleset(&format!("{chain}, {rule}"))), Firewall::Open);
        let elsewhere = rule.replace("inet", "ip6");
        assert_eq!(
            in_ruleset(&ruleset(&format!("{chain}, {elsewhere}"))),
            Firewall::Closed("inet filter input".to_owned())
        );
        let accepts = chain.replace("drop", "accept");
        let drops = rule.replace("accept", "drop");
        assert_eq!(
            in_ruleset(&ruleset(&format!("{accepts}, {drops}"))),
            Firewall::Drops("inet filter input".to_owned())
        );
        assert_eq!(in_ruleset(&ruleset(&accepts)), Firewall::Open);
        assert!(matches!(in_ruleset("nonsense"), Firewall::Unknown(_)));
    }
}
