//! Rights of a thread that its work does not need, given up for good: capabilities(7) and `no_new_privs`.
//!
//! Linux keeps capabilities for each thread. Whoever starts threads calls [`keep_only`] on each of them, or before.

use nix::libc;
use std::io;

/// A set of capabilities: bits of include/uapi/linux/capability.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities(u64);

impl Capabilities {
    /// None.
    pub const NONE: Self = Self(0);
    /// CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN: what loading and attaching the programs of this crate takes.
    pub const BPF: Self = Self(1 << 39 | 1 << 38 | 1 << 12);
    /// CAP_NET_RAW: raw sockets.
    pub const RAW_SOCKETS: Self = Self(1 << 13);
    /// CAP_SETUID, CAP_SETGID and CAP_KILL: running a program as another user, and ending it.
    pub const OTHER_USERS: Self = Self(1 << 7 | 1 << 6 | 1 << 5);
    /// CAP_CHOWN and CAP_DAC_OVERRIDE: files in folders of other users.
    pub const FILES: Self = Self(1 << 1 | 1);

    /// Both sets.
    pub const fn and(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    const fn has(self, capability: u32) -> bool {
        self.0 >> capability & 1 == 1
    }
}

/// `struct __user_cap_header_struct` of include/uapi/linux/capability.h; a pid of 0 is the calling thread.
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// `struct __user_cap_data_struct`: one for the lower 32 capabilities, one for the others.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// `_LINUX_CAPABILITY_VERSION_3`
const VERSION: u32 = 0x2008_0522;

/// Has the calling thread keep of its capabilities only these, and neither it nor what it executes get any more. What
/// it executes gets none, unless it is root's user, whose programs get these. Async-signal-safe.
///
/// # Errors
/// If the kernel refuses, which it never does of a thread that only gives up.
pub fn keep_only(kept: Capabilities) -> io::Result<()> {
    let header = Header { version: VERSION, pid: 0 };
    let mut has = [Half::default(); 2];
    // SAFETY: numbers, and for capget and capset a header and two halves, which is what version 3 reads and writes.
    #[allow(unsafe_code)]
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        // Refused without CAP_SETPCAP, and needless then: with no_new_privs an execve(2) adds nothing.
        let mut capability = 0;
        while libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) >= 0 {
            if !kept.has(capability) {
                libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
            }
            capability += 1;
        }
        // Linux before 4.3 has none.
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        check(libc::syscall(libc::SYS_capget, &raw const header, has.as_mut_ptr()))?;
        for (half, mask) in has.iter_mut().zip([kept.0 as u32, (kept.0 >> 32) as u32]) {
            let permitted = half.permitted & mask;
            *half = Half { effective: permitted, permitted, inheritable: 0 };
        }
        check(libc::syscall(libc::SYS_capset, &raw const header, has.as_ptr()))
    }
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(key: &str) -> String {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("Linux has it");
        let line = status.lines().find_map(|line| line.strip_prefix(key)).expect("Linux says so");
        line.trim_start_matches(':').trim().to_owned()
    }

    #[test]
    fn a_thread_keeps_what_it_had_of_what_it_asks_for_and_other_threads_keep_all() {
        let before = status("CapPrm");
        let had = u64::from_str_radix(&before, 16).expect("a number");
        let kept = std::thread::spawn(|| {
            keep_only(Capabilities::BPF).expect("nothing is asked for");
            ["CapPrm", "CapEff", "CapInh", "CapAmb", "NoNewPrivs"].map(status)
        });
        let expected = format!("{:016x}", had & Capabilities::BPF.0);
        let none = "0".repeat(16);
        assert_eq!(kept.join().expect("it ran"), [&expected, &expected, &none, &none, "1"]);
        assert_eq!(status("CapPrm"), before);
    }

    #[test]
    fn the_capabilities_are_those_of_the_names() {
        // include/uapi/linux/capability.h: CAP_CHOWN 0, CAP_DAC_OVERRIDE 1, CAP_KILL 5, CAP_SETGID 6, CAP_SETUID 7,
        // CAP_NET_ADMIN 12, CAP_NET_RAW 13, CAP_PERFMON 38, CAP_BPF 39
        assert_eq!(Capabilities::BPF.and(Capabilities::RAW_SOCKETS), Capabilities(0xc0_0000_3000));
        assert_eq!(Capabilities::OTHER_USERS, Capabilities(0xe0));
        assert_eq!(Capabilities::FILES, Capabilities(3));
        assert!(!Capabilities::NONE.has(21));
    }
}
