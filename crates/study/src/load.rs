//! Whether this machine has enough memory for the planned runs.

use lasthop_scenario::{HostsKind, MemoryEstimate, Scenario};
use std::fs;
use std::path::Path;

/// The share of the available memory that lasthop uses at most. A machine that swaps helps no one.
const SHARE: f64 = 0.5;

/// The runs that are planned together.
pub struct Load<'a> {
    /// The scenario of each.
    pub scenarios: Vec<&'a Scenario>,
    /// The number of simultaneous runs.
    pub jobs: usize,
    /// Their habitat.
    pub hosts: HostsKind,
    /// Whether all series are kept until the end.
    pub series: bool,
    /// What each simultaneous run takes besides, in bytes: an emulated machine's memory.
    pub beside: f64,
}

/// These runs would need more than half of the available memory.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "this would need about {} of memory, and lasthop takes at most half of the {} that are available: \
     make sample_ms greater or duration_s smaller, take fewer hosts (count in [[hosts]])",
    shown(*needed),
    shown(*available)
)]
pub struct TooMuchMemory {
    /// The estimate, in bytes.
    pub needed: f64,
    /// What is available, in bytes.
    pub available: f64,
}

impl Load<'_> {
    /// Refuses runs that need more than half of the available memory. Accepts all if that is unknown.
    ///
    /// # Errors
    /// With the estimate, the available memory, and the keys that change the estimate.
    pub fn check(&self) -> Result<(), TooMuchMemory> {
        let Some(available) = available() else { return Ok(()) };
        let needed = self.bytes();
        if needed <= SHARE * available { Ok(()) } else { Err(TooMuchMemory { needed, available }) }
    }

    fn bytes(&self) -> f64 {
        // Kernel hosts keep the series of a run until its end.
        let of = |scenario: &&Scenario| scenario.memory(self.series || self.hosts == HostsKind::Kernel);
        let estimates: Vec<MemoryEstimate> = self.scenarios.iter().map(of).collect();
        let mut running: Vec<f64> = estimates
            .iter()
            .map(|estimate| if self.series { estimate.running } else { estimate.running + estimate.kept } + self.beside)
            .collect();
        running.sort_by(|one, other| other.total_cmp(one));
        let kept = |estimate: &MemoryEstimate| if self.series { estimate.kept } else { 0.0 };
        running.iter().take(self.jobs).sum::<f64>() + estimates.iter().map(kept).sum::<f64>()
    }
}

/// How many of what takes this many bytes fit into the memory that lasthop takes at most; `None` if that is unknown.
pub fn fitting(bytes_each: f64) -> Option<usize> {
    Some((SHARE * available()? / bytes_each) as usize)
}

fn shown(bytes: f64) -> String {
    match bytes {
        bytes if bytes >= 1e12 => format!("{:.1} TB", bytes / 1e12),
        bytes if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        bytes => format!("{:.0} MB", bytes / 1e6),
    }
}

/// Bytes still available to this process: the least of the machine's, its control group's and those of the groups
/// around it.
fn available() -> Option<f64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let kib = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let machine = kib.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? * 1024.0;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let group = Path::new("/sys/fs/cgroup").join(group);
    let around = group.ancestors().take_while(|folder| folder.starts_with("/sys/fs/cgroup"));
    Some(around.filter_map(room_in).fold(machine, f64::min))
}

/// What a control group has left; `None` without a limit.
fn room_in(group: &Path) -> Option<f64> {
    let read = |file: &str| fs::read_to_string(group.join(file)).ok();
    let number = |text: String| text.trim().parse::<f64>().ok();
    let (most, now) = (number(read("memory.max")?)?, number(read("memory.current")?)?);
    // The kernel reclaims inactive cached files.
    let stat = read("memory.stat").unwrap_or_default();
    let files = stat.lines().find_map(|line| line.strip_prefix("inactive_file ")).and_then(|text| text.parse().ok());
    Some((most - now + files.unwrap_or(0.0)).max(0.0))
}
