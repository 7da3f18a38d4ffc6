//! Finds the process that has a UDP port wanted by this agent.

use std::fmt;
use std::fs;
use std::path::Path;

/// A UDP port of this network namespace is taken. Display looks for the owner in the displaying thread. That walks the
/// descriptors of all processes, so it happens only on display.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    port: u16,
}

impl Taken {
    /// The port that is taken.
    pub(crate) const fn new(port: u16) -> Self {
        Self { port }
    }

    /// The processes that have it now, in words.
    fn by(self) -> String {
        let port = self.port;
        let sockets = ["udp", "udp6"].into_iter().flat_map(|table| {
            // The calling thread's: /proc/net would show the network namespace of the process's first thread.
            sockets_of(&fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default(), port)
        });
        let own = std::process::id();
        let mut by: Vec<_> = sockets
            .filter_map(|(uid, inode)| match process_with(inode) {
                Some((pid, _)) if pid == own => None,
                Some((pid, name)) => Some(format!("process {pid} ({name}, user {uid})")),
                None => Some(format!("a process of user {uid} (`ss -ulpn sport = :{port}` as root names it)")),
            })
            .collect();
        by.dedup();
        if by.is_empty() { "another process".to_owned() } else { by.join(" and ") }
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UDP port {} is taken by {}", self.port, self.by())
    }
}

impl std::error::Error for Taken {}

/// The user and the inode of each socket with this port: proc(5), /proc/net/udp.
fn sockets_of(table: &str, port: u16) -> Vec<(u32, u64)> {
    let socket = |line: &str| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let [_, local, _, _, _, _, _, uid, _, inode, ..] = columns[..] else { return None };
        let (_, of_socket) = local.rsplit_once(':')?;
        (u16::from_str_radix(of_socket, 16) == Ok(port)).then_some((uid.parse().ok()?, inode.parse().ok()?))
    };
    table.lines().skip(1).filter_map(socket).collect()
}

/// The process that has the socket, and its name; `None` without permission to inspect it.
fn process_with(inode: u64) -> Option<(u32, String)> {
    let wanted = format!("socket:[{inode}]");
    let has = |process: &Path| {
        let mut descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        descriptors.any(|descriptor| {
            fs::read_link(descriptor.path()).is_ok_and(|target| target.as_os_str() == wanted.as_str())
        })
    };
    fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let name = || fs::read_to_string(process.path().join("comm")).unwrap_or_default().trim().to_owned();
        has(&process.path()).then(|| (pid, name()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sockets_of_a_port_are_read_from_the_kernel_s_table() {
        // 29470 is 0x731E.
        let table = "\
   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  372: 00000000:731E 00000000:0000 07 00000000:00000000 00:00000000 00000000 65534        0 4711 2 0000000000000000 0
  373: 00000000:0044 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4712 2 0000000000000000 0
";
        assert_eq!(sockets_of(table, 29470), [(65534, 4711)]);
    }
}
