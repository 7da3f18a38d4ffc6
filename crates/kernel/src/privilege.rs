//! Rights of a thread that its work does not need, given up for good: capabilities(7) and `no_new_privs`.
//!
//! Linux keeps capabilities for each thread. Whoever starts threads calls [`keep_only`] on each of them, or before.

pub use rustix::thread::CapabilitySet;
use rustix::thread::{
    CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use std::io;

/// What loading and attaching the programs of this crate takes.
pub const BPF: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::PERFMON).union(CapabilitySet::NET_ADMIN);

/// What [`Kernel::follow_containers`](crate::Kernel::follow_containers) takes besides: to see the namespaces of other users'
/// processes, and to enter them.
pub const CONTAINERS: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::SYS_PTRACE);

/// Has the calling thread keep of its capabilities only these, and neither it nor what it executes get any more. What
/// it executes gets none, unless it is root's user, whose programs get these. Async-signal-safe.
///
/// # Errors
/// If the kernel refuses, which it never does of a thread that only gives up.
pub fn keep_only(kept: CapabilitySet) -> io::Result<()> {
    set_no_new_privs(true)?;
    // Refused without CAP_SETPCAP, and needless then: with no_new_privs an execve(2) adds nothing.
    let all = (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number));
    for capability in all.take_while(|capability| capability_is_in_bounding_set(*capability).is_ok()) {
        if !kept.contains(capability) {
            let _ = remove_capability_from_bounding_set(capability);
        }
    }
    // Linux before 4.3 has none.
    let _ = clear_ambient_capability_set();
    let permitted = capabilities(None)?.permitted & kept;
    let inheritable = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: permitted, permitted, inheritable })?)
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
            keep_only(BPF).expect("nothing is asked for");
            ["CapPrm", "CapEff", "CapInh", "CapAmb", "NoNewPrivs"].map(status)
        });
        // include/uapi/linux/capability.h: CAP_NET_ADMIN 12, CAP_PERFMON 38, CAP_BPF 39
        let expected = format!("{:016x}", had & 0xc0_0000_1000);
        let none = "0".repeat(16);
        assert_eq!(kept.join().expect("it ran"), [&expected, &expected, &none, &none, "1"]);
        assert_eq!(status("CapPrm"), before);
    }
}
