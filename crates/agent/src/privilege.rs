//! Rights that a started agent does not need are given up for good ([`keep_only`]).
//!
//! | kept | for what |
//! | --- | --- |
//! | CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN | the programs: at each tick, and loaded anew for a replaced interface; NET_ADMIN: RTS threshold |
//! | CAP_SYS_ADMIN, CAP_SYS_PTRACE | with `containers`: to enter the network namespaces of other processes, and to see them |
//! | CAP_NET_RAW | beacons heard by a raw socket when another process takes the UDP port |
//! | CAP_SETUID, CAP_SETGID, CAP_KILL | the policy `external` as root: its program runs as another user |
//! | CAP_CHOWN, CAP_DAC_OVERRIDE | root in `/run/lasthop` of the packaged service: locks and sockets, made anew and removed |
//!
//! At the start root has more: it removes what a killed agent has left in the kernel (CAP_SYS_ADMIN), and may read files
//! of other users.

use crate::config::Config;
use crate::error::{Doing as _, Result};
use lasthop_kernel::privilege::{self, CapabilitySet, keep_only};
use lasthop_policy::PolicyName;
use lasthop_status::FOLDER;
use nix::unistd::geteuid;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

/// Has the thread of the agent's loop keep what it needs.
pub(crate) fn drop_the_rest(config: &Config) -> Result<()> {
    let mut needs = privilege::BPF | CapabilitySet::NET_RAW;
    if config.containers {
        needs |= privilege::CONTAINERS;
    }
    let is_root = geteuid().is_root();
    if is_root && config.policy.policy == PolicyName::External {
        needs |= CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::KILL;
    }
    if is_root && fs::metadata(FOLDER).is_ok_and(|folder| folder.uid() != 0) {
        needs |= CapabilitySet::CHOWN | CapabilitySet::DAC_OVERRIDE;
    }
    keep_only(needs).doing("cannot give up the rights that the agent does not need")
}

/// Has a thread that needs only what is open already, or everybody may open, keep none. Failing that it goes on.
pub(crate) fn keep_none() {
    let _ = keep_only(CapabilitySet::empty());
}
