//! The availability of the kernel features that we need.

use crate::error::Error;
use crate::mode::Mode;
use crate::object::{self, Variant};
use libbpf_rs::HasSize;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, Struct, Typedef};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, FsType, statfs};
use std::fmt;
use std::path::PathBuf;

/// A reason for a hidden file system: ip-netns(8) mounts /sys anew for its command.
pub(crate) const HIDDEN: &str =
    " ('ip netns exec' hides what is mounted below /sys; 'nsenter --net=/run/netns/NAME COMMAND' does not)";

/// A kernel feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feature {
    /// The right to load BPF programs.
    Privilege,
    /// The kernel describes its own types.
    KernelBtf,
    /// A cgroup2 file system is mounted.
    Cgroup2,
    /// Programs see connections being made.
    SocketOperations,
    /// Programs walk the TCP sockets.
    SocketIterator,
    /// A walking program may change a socket's congestion control.
    SocketIteratorChanges,
    /// Congestion controls can be BPF programs.
    ControlPrograms,
    /// They go away with their loader's process.
    ControlLinks,
    /// They may call the kernel's CUBIC.
    CubicCalls,
    /// Changes of the congestion state are reported.
    StateChanges,
    /// Programs see packets that leave by an interface.
    LeavingPackets,
    /// Programs walk the sockets of a map, so that those at rest need no look.
    MapIterator,
    /// The programs that observe sockets load.
    ObserveLoads,
    /// The programs of the clamp load.
    ClampLoads,
    /// The programs for our congestion control load, and attach to the cgroup.
    ControlLoads,
}

/// The availability of a [`Feature`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is available.
    Present,
    /// It is missing; the message names it and its kernel version or option.
    Missing(String),
}

/// The result of [`probe`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    features: Vec<(Feature, Outcome)>,
}

impl Feature {
    /// All, most fundamental first.
    pub const ALL: [Self; 15] = [
        Self::Privilege,
        Self::KernelBtf,
        Self::SocketIterator,
        Self::StateChanges,
        Self::Cgroup2,
        Self::SocketOperations,
        Self::SocketIteratorChanges,
        Self::ControlPrograms,
        Self::CubicCalls,
        Self::ControlLinks,
        Self::LeavingPackets,
        Self::MapIterator,
        Self::ObserveLoads,
        Self::ClampLoads,
        Self::ControlLoads,
    ];

    /// The feature's name for programs: this word stays as it is.
    pub fn name(self) -> &'static str {
        match self {
            Self::Privilege => "privilege",
            Self::KernelBtf => "kernel-btf",
            Self::Cgroup2 => "cgroup2",
            Self::SocketOperations => "socket-operations",
            Self::SocketIterator => "socket-iterator",
            Self::SocketIteratorChanges => "socket-iterator-changes",
            Self::ControlPrograms => "control-programs",
            Self::ControlLinks => "control-links",
            Self::CubicCalls => "cubic-calls",
            Self::StateChanges => "state-changes",
            Self::LeavingPackets => "leaving-packets",
            Self::MapIterator => "map-iterator",
            Self::ObserveLoads => "observe-loads",
            Self::ClampLoads => "clamp-loads",
            Self::ControlLoads => "control-loads",
        }
    }

    /// The feature, and the kernel that has it.
    pub fn description(self) -> &'static str {
        match self {
            Self::Privilege => "the right to load BPF programs (root, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN)",
            Self::KernelBtf => "kernel BTF at /sys/kernel/btf/vmlinux (Linux 5.4, CONFIG_DEBUG_INFO_BTF)",
            Self::Cgroup2 => "a mounted cgroup2 file system (Linux 4.5, CONFIG_CGROUPS)",
            Self::SocketOperations => "socket operation programs on cgroups, by link (Linux 5.7, CONFIG_CGROUP_BPF)",
            Self::SocketIterator => "BPF iteration over TCP sockets (Linux 5.9)",
            Self::SocketIteratorChanges => "bpf_setsockopt in BPF iterators over TCP sockets (Linux 5.15)",
            Self::ControlPrograms => {
                "congestion control by BPF struct_ops (Linux 5.6; with CONFIG_CFI_CLANG Linux 6.8, on arm64 6.17)"
            }
            Self::CubicCalls => "the kernel's CUBIC callable from BPF (Linux 5.13, CONFIG_TCP_CONG_CUBIC)",
            Self::ControlLinks => "struct_ops links (Linux 6.4)",
            Self::StateChanges => "the tracepoint tcp_cong_state_set (Linux 5.19)",
            Self::LeavingPackets => "BPF programs for leaving packets, by link (Linux 6.6, CONFIG_NET_XGRESS)",
            Self::MapIterator => {
                "BPF iteration over the sockets of a map (Linux 5.9; some kernels refuse it): without, each look is at all sockets"
            }
            Self::ObserveLoads => "loading the programs that watch sockets (Linux 5.11)",
            Self::ClampLoads => "loading the programs of the clamp (Linux 5.15)",
            Self::ControlLoads => "loading our congestion control (Linux 6.4)",
        }
    }

    /// The message if it is missing.
    pub(crate) fn lack(self) -> String {
        let hint = if self == Self::Cgroup2 { HIDDEN } else { "" };
        format!("{}{hint}", self.description())
    }

    fn needed_for(self, mode: Mode) -> bool {
        match self {
            Self::Privilege | Self::KernelBtf | Self::SocketIterator => mode != Mode::Nothing,
            Self::Cgroup2 | Self::SocketOperations => matches!(mode, Mode::Control | Mode::Clamp),
            Self::SocketIteratorChanges => matches!(mode, Mode::Control | Mode::Clamp),
            Self::ControlPrograms | Self::CubicCalls | Self::ControlLinks => mode == Mode::Control,
            Self::StateChanges | Self::LeavingPackets | Self::MapIterator => false,
            Self::ObserveLoads => mode == Mode::Observe,
            Self::ClampLoads => mode == Mode::Clamp,
            Self::ControlLoads => mode == Mode::Control,
        }
    }
}

impl Support {
    /// Each feature with its availability, most fundamental first.
    pub fn features(&self) -> impl Iterator<Item = (Feature, &Outcome)> {
        self.features.iter().map(|(feature, outcome)| (*feature, outcome))
    }

    /// The mode that uses most of the kernel.
    pub fn best_mode(&self) -> Mode {
        let possible = |&mode: &Mode| self.missing_for(mode).next().is_none();
        [Mode::Control, Mode::Clamp, Mode::Observe].into_iter().find(possible).unwrap_or(Mode::Nothing)
    }

    /// Why `mode` is impossible: a message for each missing feature.
    pub fn missing_for(&self, mode: Mode) -> impl Iterator<Item = &str> {
        self.features.iter().filter_map(move |(feature, outcome)| match outcome {
            Outcome::Missing(message) if feature.needed_for(mode) => Some(message.as_str()),
            _ => None,
        })
    }
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (feature, outcome) in &self.features {
            match outcome {
                Outcome::Present => writeln!(f, "present  {}", feature.description())?,
                Outcome::Missing(message) => writeln!(f, "missing  {message}")?,
            }
        }
        Ok(())
    }
}

/// Checks every feature, and tries to load the programs of each mode that seems possible. Takes some 0.1 s.
pub fn probe() -> Support {
    let mut support = look();
    for (feature, mode) in [
        (Feature::ObserveLoads, Mode::Observe),
        (Feature::ClampLoads, Mode::Clamp),
        (Feature::ControlLoads, Mode::Control),
    ] {
        let missing: Vec<_> = support.missing_for(mode).map(str::to_owned).collect();
        let outcome = match (missing.is_empty(), Btf::from_vmlinux()) {
            (true, Ok(kernel)) => {
                let tried = object::attempt(mode, Variant::of(&kernel), &cgroup2_root().unwrap_or_default());
                tried.map_or_else(
                    |error| Outcome::Missing(format!("{}: {}", feature.description(), error.in_a_line())),
                    |()| Outcome::Present,
                )
            }
            _ => Outcome::Missing(format!("{}: not tried, for what it needs is missing", feature.description())),
        };
        support.features.push((feature, outcome));
    }
    support
}

/// Checks the features that need no trial load.
fn look() -> Support {
    crate::log::start();
    let kernel = Btf::from_vmlinux().ok();
    let tried = [Feature::ObserveLoads, Feature::ClampLoads, Feature::ControlLoads];
    let looked_for = Feature::ALL.into_iter().filter(|feature| !tried.contains(feature));
    let outcome = |feature: Feature| match present(feature, kernel.as_ref()) {
        true => Outcome::Present,
        false => Outcome::Missing(feature.lack()),
    };
    Support { features: looked_for.map(|feature| (feature, outcome(feature))).collect() }
}

/// The missing ones among these features, which need no trial load.
pub(crate) fn missing(features: &[Feature]) -> Vec<Feature> {
    crate::log::start();
    let kernel = Btf::from_vmlinux().ok();
    features.iter().copied().filter(|&feature| !present(feature, kernel.as_ref())).collect()
}

/// The kernel's types, if the mode is possible here.
pub(crate) fn require(mode: Mode) -> Result<Btf<'static>, Error> {
    let support = look();
    let reasons: Vec<_> = support.missing_for(mode).collect();
    let reason = match (mode, reasons.first()) {
        (Mode::Nothing, _) => "there is nothing to load".to_owned(),
        (_, None) => match Btf::from_vmlinux() {
            Ok(kernel) => return Ok(kernel),
            Err(error) => error.to_string(),
        },
        // without the right to load programs the rest is guesswork
        (_, Some(first)) if first.starts_with("the right") => (*first).to_owned(),
        (_, Some(_)) => format!("missing {}", reasons.join("; ")),
    };
    Err(Error::Unsupported { mode, reason })
}

fn present(feature: Feature, kernel: Option<&Btf<'_>>) -> bool {
    let has_struct = |name| kernel.is_some_and(|kernel| kernel.type_by_name::<Struct<'_>>(name).is_some());
    let has_function = |name| kernel.is_some_and(|kernel| kernel.type_by_name::<Func<'_>>(name).is_some());
    let has_type = |name| kernel.is_some_and(|kernel| kernel.type_by_name::<Typedef<'_>>(name).is_some());
    match feature {
        Feature::Privilege => privileged(),
        Feature::KernelBtf => kernel.is_some(),
        Feature::Cgroup2 => cgroup2_root().is_some(),
        Feature::SocketOperations => has_struct("bpf_cgroup_link"),
        Feature::SocketIterator => has_struct("bpf_iter__tcp"),
        Feature::SocketIteratorChanges => has_struct("bpf_tcp_iter_state"),
        Feature::ControlPrograms => {
            has_struct("bpf_struct_ops_tcp_congestion_ops")
                && (!has_function("report_cfi_failure") || cfi_knows_programs())
        }
        Feature::CubicCalls => has_function("cubictcp_cong_avoid") && kernel.is_some_and(cubic_leaves_room),
        Feature::ControlLinks => has_struct("bpf_struct_ops_link"),
        Feature::LeavingPackets => has_struct("tcx_link"),
        Feature::MapIterator => kernel.is_some_and(object::walks_maps),
        Feature::StateChanges => has_type("btf_trace_tcp_cong_state_set"),
        // only loading shows
        Feature::ObserveLoads | Feature::ClampLoads | Feature::ControlLoads => true,
    }
}

/// Whether a kernel that checks the types of indirect calls (CONFIG_CFI_CLANG, as Android's) lets itself call BPF
/// programs: it panics where they have no type. They have since "x86/cfi,bpf: Fix bpf_struct_ops CFI" (Linux 6.8) and
/// "arm64/cfi,bpf: Support kCFI + BPF on arm64" (Linux 6.17).
fn cfi_knows_programs() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    has_typed_programs(&release, std::env::consts::ARCH)
}

fn has_typed_programs(release: &str, machine: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= if machine == "x86_64" { (6, 8) } else { (6, 17) }
}

/// Whether our own state, behind the first 64 bytes, is clear of CUBIC's. CUBIC as a module cannot be checked here.
/// Every kernel with these calls uses 60 bytes or less.
fn cubic_leaves_room(kernel: &Btf<'_>) -> bool {
    kernel.type_by_name::<Struct<'_>>("bictcp").is_none_or(|cubic| cubic.size() <= 64)
}

/// Bits of capabilities, include/uapi/linux/capability.h.
const CAP_NET_ADMIN: u64 = 1 << 12;
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

fn privileged() -> bool {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    effective & CAP_NET_ADMIN != 0
        && (effective & CAP_SYS_ADMIN != 0 || effective & (CAP_BPF | CAP_PERFMON) == CAP_BPF | CAP_PERFMON)
}

/// Where cgroup2 is mounted.
pub(crate) fn cgroup2_root() -> Option<PathBuf> {
    mounts_of("cgroup2", CGROUP2_SUPER_MAGIC).into_iter().next()
}

/// How many more agents can control on this machine, or report the last link. Each attaches a program to the root
/// cgroup, which takes 64, counting everybody's. `None` if unknown.
pub fn room_for_agents() -> Option<usize> {
    crate::clamp::room(&std::fs::File::open(cgroup2_root()?).ok()?)
}

/// Whether a cgroup2 file system is mounted where this process can see it.
pub fn sees_cgroups() -> bool {
    cgroup2_root().is_some()
}

/// Whether this kernel tells the cgroup of a socket (since Linux 5.16): what limits and rules by cgroup need.
pub fn tells_cgroups() -> bool {
    Btf::from_vmlinux().is_ok_and(|kernel| Variant::of(&kernel).cgroups_told)
}

/// Where file systems of this type are mounted, without those that another mount hides.
pub(crate) fn mounts_of(file_system: &str, magic: FsType) -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/thread-self/mounts").unwrap_or_default();
    let mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let paths = mounts.filter(|words| words.get(2) == Some(&file_system));
    // the kernel writes blanks in paths as octal
    let paths = paths.map(|words| PathBuf::from(words[1].replace("\\040", " ")));
    paths.filter(|path| statfs(path).is_ok_and(|found| found.filesystem_type() == magic)).collect()
}

/// Every congestion control in the kernel, regardless of namespace.
pub(crate) fn registered_controls() -> Vec<String> {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::has_typed_programs;

    #[test]
    fn programs_have_types_since_6_8_and_on_arm64_since_6_17() {
        for (release, x86, arm64) in [
            ("6.1.145-android14-11-g8d1b2d3a4c5e", false, false),
            ("6.6.89-android15-8", false, false),
            ("6.7.12", false, false),
            ("6.8.0", true, false),
            ("6.16.3", true, false),
            ("6.17-rc1", true, true),
            ("7.2.13+deb14-amd64", true, true),
            ("", false, false),
        ] {
            assert_eq!(has_typed_programs(release, "x86_64"), x86, "{release}");
            assert_eq!(has_typed_programs(release, "aarch64"), arm64, "{release}");
        }
    }
}
