//! What is no error in a scenario, but possibly a mistake. [`crate::ineffective_keys`] is of this kind too.

use crate::keys::AgentMode;
use crate::scenario::Scenario;
use lasthop_policy::PolicyName;
use lasthop_units::{Span, Time};
use std::fmt;

/// A policy that needs longer to settle than the warm-up of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortWarmup {
    /// The policy.
    pub policy: PolicyName,
    /// The shortest warm-up of a run with it.
    pub warmup: Span,
}

/// A change of the network, or a roam, that never happens, because it lies beyond the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateChange {
    /// Whether it is a roam.
    pub is_roam: bool,
    /// Its time.
    pub at: Time,
    /// Length of the run.
    pub duration: Span,
}

/// A trace of two columns without a header line, which are taken for seconds and Mb/s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssumedHeader {
    /// Its file.
    pub file: String,
}

impl fmt::Display for AssumedHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no header line: read as at_s,rate_mbps (seconds and Mb/s)", self.file)
    }
}

impl fmt::Display for ShortWarmup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (policy, needs) = (self.policy, self.policy.settles_after().as_secs_f64());
        write!(
            f,
            "policy {policy} needs about {needs} s until it has settled, and the warm-up is {} s: the result shows how \
             it begins; such as --set duration_s={} --set warmup_s={needs} shows what it reaches",
            self.warmup.as_secs_f64(),
            needs + 60.0,
        )
    }
}

impl fmt::Display for LateChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at_s, end_s) = (self.at.saturating_since(Time::ZERO).as_secs_f64(), self.duration.as_secs_f64());
        let blocks = if self.is_roam { "[[hosts.roam]]" } else { "[[changes]]" };
        write!(f, "{blocks} at_s = {at_s} is not before the end of the run at {end_s} s: it changes nothing")
    }
}

impl Scenario {
    /// The changes that never happen, ascending; each moment once.
    pub fn late_changes(&self) -> Vec<LateChange> {
        let changes = self.network().changes.iter().map(|change| (false, change.at));
        let roams = self.network().cells.iter().flat_map(|cells| &cells.roams).map(|roam| (true, roam.at));
        let late = changes.chain(roams).filter(|(_, at)| *at >= Time::ZERO + self.duration);
        let mut late: Vec<LateChange> =
            late.map(|(is_roam, at)| LateChange { is_roam, at, duration: self.duration }).collect();
        late.dedup();
        late
    }

    /// The traces of `[[changes]]` without a header line, in order.
    pub fn assumed_headers(&self) -> &[AssumedHeader] {
        &self.assumed_headers
    }
}

/// Each policy of these runs that has a shorter warm-up than it needs.
pub fn short_warmups<'a>(planned: impl IntoIterator<Item = &'a Scenario>) -> Vec<ShortWarmup> {
    let mut short: Vec<ShortWarmup> = Vec::new();
    for scenario in planned {
        for host in scenario.expanded_hosts().iter().filter(|host| host.kind.agent == AgentMode::Control) {
            let policy = host.kind.policy.policy;
            if scenario.warmup >= policy.settles_after() {
                continue;
            }
            match short.iter_mut().find(|known| known.policy == policy) {
                Some(known) => known.warmup = scenario.warmup.min(known.warmup),
                None => short.push(ShortWarmup { policy, warmup: scenario.warmup }),
            }
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(text: &str) -> Scenario {
        Scenario::from_toml("some.toml", text, &[]).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_policy_with_a_shorter_warm_up_than_it_needs_is_named_once() {
        let of = |warmup_s: u32, host: &str| {
            scenario(&format!("duration_s = 100\nwarmup_s = {warmup_s}\n[[hosts]]\n{host}\n"))
        };
        let lasthop = "count = 3\npolicy = \"lasthop\"";
        let both = [of(12, lasthop), of(10, lasthop), of(40, lasthop)];
        let short = ShortWarmup { policy: PolicyName::Lasthop, warmup: Span::from_secs(10) };
        assert_eq!(short_warmups(&both), [short]);
        assert_eq!(short_warmups(&[of(40, lasthop)]), []);
        assert_eq!(short_warmups(&[of(0, "policy = \"none\"")]), []);
        // A policy that only observes has nothing to settle.
        assert_eq!(short_warmups(&[of(10, "policy = \"lasthop\"\nagent = \"observe\"")]), []);
    }
}
