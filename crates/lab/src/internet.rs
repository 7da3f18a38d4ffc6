//! The way from a guest's server to the networks of this machine (`--internet`), for IPv4.
//!
//! ```text
//! host - [model] - server's namespace: masquerade - wan ==veth== lhPID - this machine: masquerade - its networks
//! ```
//!
//! - The veth pair dies with the server's namespace.
//! - The table of nftables on this machine belongs to the process that made it (`flags owner`), a child that dies with
//!   the laboratory. So does the table.
//! - Interfaces of this machine forward meanwhile, if they did not before ([`leftovers`](crate::leftovers)). Then the
//!   table also drops what would be forwarded for anybody else.
//!
//! *What it leaves out*: IPv6, and firewalls of this machine that refuse to forward.

use crate::error::{Doing, Error, Result};
use crate::leftovers::Forwarding;
use crate::namespace::Namespace;
use crate::process::Process;
use nix::ifaddrs::getifaddrs;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

/// The nets of the veth pairs, each of four addresses: that for tests of devices (RFC 2544), which no network has.
const NETS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
const NETS_OF_FOUR: u32 = 1 << 15;

/// The way out, until it is dropped.
pub(crate) struct Internet {
    /// Holds the table.
    _nft: Process,
    _forwarding: Vec<Forwarding>,
}

impl Internet {
    /// Opens the way from this server.
    ///
    /// # Errors
    /// If `ip` or `nft` is missing, or the kernel has no NAT.
    pub(crate) fn open(server: &Namespace) -> Result<Self> {
        let pid = std::process::id();
        let (ours, theirs) = free_net(pid)?;
        let outer = format!("lh{pid}");
        // The names of interfaces have at most 15 letters, and numbers of processes 7 digits. It is made in the
        // server's namespace, so that it dies with it.
        let lines = format!(
            "set -e\nip link add wan type veth peer name {outer} netns {pid}\nip address add {theirs}/30 dev wan\n\
             ip link set wan up\nip route add 10.77.0.0/16 dev lh0\nip route replace default via {ours}\n\
             echo 1 >/proc/sys/net/ipv4/ip_forward\n\
             nft 'table ip lasthop {{ chain out {{ type nat hook postrouting priority 100; oifname wan masquerade; }}; }}'\n"
        );
        sh(&lines, Some(server))?;
        sh(&format!("set -e\nip address add {ours}/30 dev {outer}\nip link set {outer} up\n"), None)?;
        // Of our own end only while it lives.
        fs::write(format!("/proc/sys/net/ipv4/conf/{outer}/forwarding"), "1").doing("cannot forward packets")?;
        let forwarding = interfaces_with_routes()
            .iter()
            .filter(|interface| !interface.starts_with("lh"))
            .filter_map(|interface| Forwarding::on(interface).transpose())
            .collect::<Result<Vec<_>>>()?;
        let nft = hold_table(pid, &outer, theirs, !forwarding.is_empty())?;
        Ok(Self { _nft: nft, _forwarding: forwarding })
    }
}

/// The first net of four addresses that this machine does not have, from the process's own on: ours and the server's.
fn free_net(pid: u32) -> Result<(Ipv4Addr, Ipv4Addr)> {
    let taken: BTreeSet<Ipv4Addr> = getifaddrs()
        .doing("cannot list the addresses of this machine")?
        .filter_map(|interface| Some(interface.address?.as_sockaddr_in()?.ip()))
        .collect();
    let nets = (0..NETS_OF_FOUR).map(|offset| (pid + offset) % NETS_OF_FOUR);
    let ends = |net: u32| [1, 2].map(|end| Ipv4Addr::from_bits(NETS.to_bits() + 4 * net + end));
    let free = nets.map(ends).find(|[ours, _]| !taken.contains(ours));
    free.map(|[ours, theirs]| (ours, theirs)).ok_or_else(|| Error::Machine("no net is free for --internet".to_owned()))
}

/// The interfaces of the rows of /proc/net/route.
fn interfaces_with_routes() -> BTreeSet<String> {
    let table = fs::read_to_string("/proc/net/route").unwrap_or_default();
    table.lines().skip(1).filter_map(|row| Some(row.split_whitespace().next()?.to_owned())).collect()
}

/// Starts the process that owns the table, and waits until the table is there.
fn hold_table(pid: u32, outer: &str, theirs: Ipv4Addr, guarded: bool) -> Result<Process> {
    let table = format!("ip lasthop_{pid}");
    let mut lines = format!(
        "add table {table} {{ flags owner; }}\n\
         add chain {table} out {{ type nat hook postrouting priority 100; }}\n\
         add rule {table} out ip saddr {theirs} oifname != {outer} masquerade\n"
    );
    if guarded {
        lines += &format!(
            "add chain {table} forward {{ type filter hook forward priority 0; }}\n\
             add rule {table} forward iifname != \"lh*\" oifname != \"lh*\" drop\n"
        );
    }
    lines += &format!("list table {table}\n");
    let mut nft = Command::new("nft");
    nft.arg("-i").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut nft = Process::spawn_here(nft).doing(CANNOT)?;
    nft.0.stdin.as_mut().expect("a pipe").write_all(lines.as_bytes()).doing(CANNOT)?;
    let said = BufReader::new(nft.0.stdout.as_mut().expect("a pipe")).lines().map_while(std::result::Result::ok);
    let mut masquerades = false;
    for line in said {
        masquerades |= line.contains("masquerade");
        // The end of the list.
        if line == "}" {
            break;
        }
    }
    if masquerades { Ok(nft) } else { Err(Error::Machine(format!("{CANNOT}; nft's own message is above"))) }
}

const CANNOT: &str = "cannot make a table of nftables for --internet ('apt-get install nftables')";

fn sh(lines: &str, namespace: Option<&Namespace>) -> Result<()> {
    const CANNOT: &str = "cannot open the way for --internet (it needs ip of iproute2, and nft of nftables)";
    let mut command = Command::new("sh");
    command.args(["-c", lines]).stdin(Stdio::null());
    let mut process = match namespace {
        Some(namespace) => Process::spawn(command, namespace, &[]),
        None => Process::spawn_here(command),
    }
    .doing(CANNOT)?;
    let status = process.0.wait().doing(CANNOT)?;
    if status.success() { Ok(()) } else { Err(Error::Machine(format!("{CANNOT}; its own message is above"))) }
}
