//! Which keys are looked at only where another key has a certain value.
//!
//! A key that is not here is always looked at, or refused where it cannot be. [`crate::Scenario::ineffective_keys`] names
//! those that a user has set in vain.

use super::Section;
use lasthop_laws::LawName;
use lasthop_policy::PolicySettings;

/// What must be so for a key to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// A key, of this table, is one of these words.
    Is(Of, &'static str, &'static [&'static str]),
    /// A key, of this table, is none of these.
    IsNot(Of, &'static str, &'static [&'static str]),
    /// Another key of the same table is there.
    Given(&'static str),
    /// Another key of the same table is not there.
    NotGiven(&'static str),
    /// The scenario has no `[[links]]`.
    NoLinks,
    /// The host has this law.
    Law(LawName),
    /// The host's policy looks at it.
    Policy,
    /// What a block of `[[changes]]` is about is there: stations with Wi-Fi, a link with a wired access.
    Changes,
}

/// Whose key it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The same table's.
    Same,
    /// That of `[access]`.
    Access,
    /// That of the host which the table belongs to.
    Host,
}

const WIFI: When = When::Is(Of::Access, "kind", &["wifi"]);
type Rule = (Section, &'static [&'static str], &'static [When]);

/// All conditions of a key must be met.
const RULES: &[Rule] = &[
    (
        Section::Access,
        &[
            "standard",
            "rate_control",
            "rate_set",
            "frame_error_rate",
            "retry_limit",
            "preamble",
            "protection_rate_mbps",
            "broadcast_rate_mbps",
            "before_acknowledgement",
            "after_collision",
        ],
        &[WIFI],
    ),
    (Section::Access, &["protection_rate_mbps"], &[When::Is(Of::Same, "standard", &["802.11bg"])]),
    (Section::Access, &["delay_ms"], &[When::Is(Of::Same, "kind", &["wired"])]),
    (Section::Change, &["at_s"], &[When::Changes]),
    (Section::Host, &["queue_packets"], &[When::NoLinks]),
    (Section::Host, &["rate_mbps", "frame_error_rate", "turnaround_us"], &[When::NoLinks, WIFI]),
    (Section::Host, &["path_rtt_change_s"], &[When::Given("path_rtt_ms")]),
    (Section::Host, &["policy"], &[When::IsNot(Of::Same, "agent", &["off", "observe"])]),
    (Section::Host, &["enable_ratio"], &[When::NotGiven("enable_excess_ms")]),
    (Section::Host, &["count_rtt_ms"], &[When::NotGiven("count_segments")]),
    (Section::Host, &["window_table"], &[When::NotGiven("window_rows")]),
    (Section::Tcp, &["timestamp_granularity_ms"], &[When::Is(Of::Same, "timestamps", &["true"])]),
    (Section::Tcp, &["tsq_limit_kib"], &[When::Is(Of::Same, "tsq", &["limit", "rate"])]),
    (Section::Tcp, &["tsq_pacing_shift"], &[When::Is(Of::Same, "tsq", &["rate"])]),
    (Section::Tcp, &["last_link"], &[When::Law(LawName::Lastlink)]),
    (
        Section::LastLink,
        &[
            "knowledge",
            "bandwidth_mbps",
            "packet_error_rate",
            "bandwidth_factor",
            "error_factor",
            "delay_s",
            "validity_s",
        ],
        &[When::Is(Of::Same, "report", &["true"])],
    ),
    (
        Section::LastLink,
        &["bandwidth_mbps", "bandwidth_factor"],
        &[When::Is(Of::Same, "knowledge", &["both", "bandwidth"])],
    ),
    (
        Section::LastLink,
        &["packet_error_rate", "error_factor"],
        &[When::Is(Of::Same, "knowledge", &["both", "error-rate"])],
    ),
    (Section::LastLink, &["delay_s"], &[When::IsNot(Of::Same, "knowledge", &["measured"])]),
    (Section::Flow, &["transfer_kib"], &[When::Is(Of::Same, "kind", &["bulk", "transfers"])]),
    (Section::Flow, &["on_s"], &[When::Is(Of::Same, "kind", &["on-off"])]),
    (Section::Flow, &["off_s"], &[When::Is(Of::Same, "kind", &["on-off", "transfers"])]),
    (Section::Flow, &["message_bytes", "gap_ms"], &[When::Is(Of::Same, "kind", &["interactive"])]),
    (Section::Flow, &["packet_bytes"], &[When::Is(Of::Same, "kind", &["saturated"])]),
];

impl Section {
    /// What must be so for the key to be looked at: all of it. Nothing where it always is.
    pub fn when(self, key: &str) -> Vec<When> {
        let of_law = if let Self::Law(law) = self { Some(When::Law(law)) } else { None };
        let is_of_policy = self == Self::Host && key != "policy" && PolicySettings::KEYS.contains(&key);
        let of_policy = is_of_policy.then_some(When::Policy);
        let of_key = RULES.iter().filter(|(section, keys, _)| *section == self && keys.contains(&key));
        of_key.flat_map(|(.., conditions)| conditions.iter().copied()).chain(of_law).chain(of_policy).collect()
    }

    /// Whether a file may have the key for runs that choose what looks at it: the bound of the policy `fixed`, which it cannot be
    /// without, and the parameters of a law.
    pub fn may_wait(self, key: &str) -> bool {
        matches!(self, Self::Law(_)) || (self == Self::Host && ["bound_segments", "bound_pacing_mbps"].contains(&key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Kind;

    #[test]
    fn conditions_are_about_keys_and_words_of_the_format() {
        for (section, keys, conditions) in RULES {
            for key in *keys {
                assert!(section.key(key).is_some(), "{} has no key {key}", section.heading());
            }
            for condition in *conditions {
                let (other, words) = match condition {
                    When::Is(of, other, words) | When::IsNot(of, other, words) => {
                        let table = match of {
                            Of::Same => *section,
                            Of::Access => Section::Access,
                            Of::Host => Section::Host,
                        };
                        (table.key(other), *words)
                    }
                    When::Given(other) | When::NotGiven(other) => (section.key(other), &[][..]),
                    When::NoLinks | When::Law(_) | When::Policy | When::Changes => continue,
                };
                let known = match other.unwrap_or_else(|| panic!("{condition:?} is about no key")).kind {
                    Kind::Choice(known) => known,
                    _ => &["true", "false"],
                };
                assert!(words.iter().all(|word| known.contains(word)), "{condition:?}");
            }
        }
    }

    /// The guide marks such keys with the words that they are for: `*wifi*`, `*fixed*`.
    #[test]
    fn every_key_that_the_guide_marks_has_a_condition() {
        for section in [Section::Access, Section::Host, Section::Tcp, Section::Flow] {
            for key in section.keys().iter().filter(|key| key.meaning.starts_with('*')) {
                // "*wifi:* this; *wired:* that" is for both; of links, what is missing is an error.
                let (mark, _) = key.meaning[1..].split_once('*').expect("a mark has an end");
                if !mark.ends_with(':') && mark != "links" && (mark != "bulk" || key.name == "transfer_kib") {
                    assert!(!section.when(key.name).is_empty(), "{}: {}", section.heading(), key.name);
                }
            }
        }
    }
}
