//! Warns of runs that measure a policy before it has settled.

use crate::tell;
use lasthop_policy::PolicyName;
use lasthop_scenario::{AgentMode, Scenario};
use lasthop_units::Span;

/// Prints a note for each policy that needs longer to settle than the warm-up of its run, for all planned runs.
pub(crate) fn tell_of_short_warmups<'a>(planned: impl IntoIterator<Item = &'a Scenario>) {
    for (policy, warmup) in short_warmups(planned) {
        let needs = policy.settles_after().as_secs_f64();
        tell(format_args!(
            "note: policy {policy} needs about {needs} s until it has settled, and the warm-up is {} s: the result shows how \
             it begins; such as --set duration_s={} --set warmup_s={needs} shows what it reaches",
            warmup.as_secs_f64(),
            needs + 60.0,
        ));
    }
}

/// Each such policy once, with the shortest warm-up.
fn short_warmups<'a>(planned: impl IntoIterator<Item = &'a Scenario>) -> Vec<(PolicyName, Span)> {
    let mut short: Vec<(PolicyName, Span)> = Vec::new();
    for scenario in planned {
        for host in scenario.expanded_hosts().iter().filter(|host| host.kind.agent == AgentMode::Control) {
            let policy = host.kind.policy.policy;
            if scenario.warmup >= policy.settles_after() {
                continue;
            }
            match short.iter_mut().find(|(known, _)| *known == policy) {
                Some((_, warmup)) => *warmup = scenario.warmup.min(*warmup),
                None => short.push((policy, scenario.warmup)),
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
        assert_eq!(short_warmups(&both), [(PolicyName::Lasthop, Span::from_secs(10))]);
        assert_eq!(short_warmups(&[of(40, lasthop)]), []);
        assert_eq!(short_warmups(&[of(0, "policy = \"none\"")]), []);
        // A policy that only observes has nothing to settle.
        assert_eq!(short_warmups(&[of(10, "policy = \"lasthop\"\nagent = \"observe\"")]), []);
    }
}
