//! The hosts: a namespace, a TUN device and the stack's settings for each, and the server's.

use crate::namespace::Namespace;
use crate::real_time::AddressPlan;
use crate::tun::{INTERFACE, Settings, Tun};
use anyhow::{Context, Result};
use scenario::{Era, HostSpec};
use std::fs;

/// Packets that the server's device holds for the medium's loop. The loop empties it at every turn, and what the path
/// cannot carry is dropped in the model's own queue, so this is only there to ride out a late turn. What is dropped here
/// all the same makes the run not valid.
const SERVER_DEVICE_PACKETS: u32 = 10_000;

/// Packets dropped by full devices since they were made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceDrops {
    /// Of all hosts together.
    pub(crate) hosts: u64,
    pub(crate) server: u64,
}

/// Everybody who sends or receives.
pub(crate) struct Hosts {
    /// By index of the host.
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) server: Namespace,
    /// One for each host, then the server's.
    pub(crate) devices: Vec<Tun>,
}

impl Hosts {
    /// Makes all hosts and the server.
    ///
    /// # Errors
    /// If the caller may not, or the kernel lacks something; the message says which.
    pub(crate) fn new(specs: &[HostSpec]) -> Result<Self> {
        let mut namespaces = Vec::with_capacity(specs.len());
        let mut devices = Vec::with_capacity(specs.len() + 1);
        for spec in specs {
            let namespace = Namespace::new()?;
            devices.push(
                namespace.run(|| host_device(spec)).with_context(|| format!("cannot set up host {}", spec.index))?,
            );
            namespaces.push(namespace);
        }
        let server = Namespace::new()?;
        devices.push(server.run(server_device).context("cannot set up the server")?);
        Ok(Self { namespaces, server, devices })
    }

    /// Packets that the kernels have dropped because their device's queue was full.
    pub(crate) fn device_drops(&self) -> Result<DeviceDrops> {
        let hosts = self.namespaces.iter().map(|namespace| namespace.run(dropped_by_device)).sum::<Result<_>>()?;
        Ok(DeviceDrops { hosts, server: self.server.run(dropped_by_device)? })
    }
}

fn host_device(spec: &HostSpec) -> Result<Tun> {
    quiet()?;
    let send_buffer = spec.kind.tcp.send_buffer.get();
    let at_first = send_buffer.min(16384);
    sysctl("ipv4/tcp_wmem", &format!("{} {at_first} {send_buffer}", at_first.min(4096)))?;
    let queue_packets = match spec.kind.era {
        Era::Y2012 => {
            // Tail loss probes came with Linux 3.10. RACK cannot be turned off any more (it is the only loss detection
            // since 6.17). Pacing is off with every law that does not ask for it: the device has a plain queue.
            sysctl("ipv4/tcp_early_retrans", "0")?;
            sysctl("ipv4/tcp_limit_output_bytes", "1073741824")?;
            spec.kind.queue_packets
        }
        // The queue is in the model; see the shaper.
        Era::Modern => 1000,
    };
    let queue_packets = u32::try_from(queue_packets).context("a queue of more than 2^32 packets")?;
    Tun::new(Settings {
        address: AddressPlan::host(spec.index),
        prefix_length: AddressPlan::HOST_PREFIX,
        queue_packets,
    })
}

fn server_device() -> Result<Tun> {
    quiet()?;
    sysctl("ipv4/tcp_rmem", "4096 131072 8388608")?;
    sysctl("ipv4/tcp_wmem", "4096 65536 8388608")?;
    Tun::new(Settings { address: AddressPlan::SERVER, prefix_length: 32, queue_packets: SERVER_DEVICE_PACKETS })
}

/// Nothing but what the scenario asks for goes on the air, and no connection learns from an earlier one.
fn quiet() -> Result<()> {
    for key in ["ipv6/conf/all/disable_ipv6", "ipv6/conf/default/disable_ipv6"] {
        match sysctl(key, "1") {
            Err(error) if !fs::exists("/proc/sys/net/ipv6")? => drop(error),
            outcome => outcome?,
        }
    }
    sysctl("ipv4/tcp_no_metrics_save", "1")
}

fn sysctl(key: &str, value: &str) -> Result<()> {
    fs::write(format!("/proc/sys/net/{key}"), value).with_context(|| format!("cannot set net/{key} to {value}"))
}

/// The "drop" column of the transmit side in /proc/net/dev.
fn dropped_by_device() -> Result<u64> {
    const TRANSMIT_DROP: usize = 11;
    let table = fs::read_to_string("/proc/thread-self/net/dev").context("cannot read /proc/net/dev")?;
    let row = table.lines().find_map(|line| line.trim().strip_prefix(INTERFACE)?.strip_prefix(':'));
    let column = row.and_then(|row| row.split_whitespace().nth(TRANSMIT_DROP)?.parse().ok());
    column.context("/proc/net/dev has no row for a host's TUN device")
}
