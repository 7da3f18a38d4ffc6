//! Keys of cells beside each other, and what has no use without them.

use super::ScenarioKeys;
use lasthop_keys::Preset::{Absent, Required};
use lasthop_keys::{When, choice, ends, integer, key, keys, milliseconds, node, number, seconds};
use lasthop_network::{HearingLevel, Roam};
use lasthop_units::Span;
use toml::{Table, Value};

keys! {
    /// `[[cells]]`.
    pub(crate) struct CellKeys {
        /// What its access point is called, for `hosts.cell` and `hearing.between`.
        name: String = node(), Required;
        /// The number of its channel: at 2.4 GHz 1 to 13, at 5 GHz that of 20 MHz, such as 36. Without it, all are on the same.
        /// Channels that do not overlap are independent; those that overlap in part are refused.
        channel: Option<u16> = integer::<u16>(1, 177), Absent;
        /// Where the access point is, in metres. With places, all access points and hosts have one, and the
        /// [distance](../models/cells.md) says who hears whom.
        x_m: Option<f64> = number(-10_000.0, 10_000.0), Absent;
        /// The same, across; without it, 0.
        y_m: Option<f64> = number(-10_000.0, 10_000.0), Absent, when vec![When::Given("x_m")];
        /// The round trip behind this access point in milliseconds, instead of `path.rtt_ms`. Not of hosts with a `path_rtt_ms` of
        /// their own.
        path_rtt_ms: Option<Span> = milliseconds(0.0, 60_000.0), Absent;
    }

    /// `[[hosts.roam]]`.
    pub(crate) struct RoamKeys {
        /// When they leave their access point, in seconds from the start of the run; not before the end of the roam in front of it.
        at_s: Span = seconds(0.0, 86_400.0), Required;
        /// The access point that they go to: the name of another one of `[[cells]]`.
        to: String = node(), Required;
        /// How long they then have none, in milliseconds: they scan, authenticate and associate. Tenths of a second
        /// [are usual](../models/cells.md#roaming), most of it scanning.
        outage_ms: Span = milliseconds(in_ms(Roam::LEAST_OUTAGE), 60_000.0), 200.0;
        /// Where they are from the association on, in metres, if the access points have places. Without it, where they were.
        x_m: Option<f64> = number(-10_000.0, 10_000.0), Absent;
        /// The same, across; without it, 0.
        y_m: Option<f64> = number(-10_000.0, 10_000.0), Absent, when vec![When::Given("x_m")];
    }

    /// `[[hearing]]`.
    pub(crate) struct HearingKeys {
        /// Two access points, hosts, or blocks of hosts, by their names; an access point without a `[[cells]]` block is
        /// "access-point". The block speaks of each pair of them, both ways; a later one has the last word.
        between: [String; 2] = ends(), Required;
        /// What they have of each other's transmissions: nothing ("misses"), that they disturb what they receive ("disturbed"),
        /// also that the medium is busy ("senses"), or the frames themselves ("hears").
        level: HearingLevel = choice(&LEVELS), "misses";
    }
}

const LEVELS: [(&str, HearingLevel); 4] = [
    ("misses", HearingLevel::Misses),
    ("disturbed", HearingLevel::Disturbed),
    ("senses", HearingLevel::Senses),
    ("hears", HearingLevel::Hears),
];

fn in_ms(span: Span) -> f64 {
    span.as_millis_f64()
}

fn has(file: &Table, list: &str) -> bool {
    file.get(list).and_then(Value::as_array).is_some_and(|blocks| !blocks.is_empty())
}

/// Nothing overlaps another transmission but in collisions of one cell in which all hear all.
pub(super) fn alone_in_vain(_access: &Table, file: &Table) -> Option<String> {
    let any = has(file, key!(ScenarioKeys, cells)) || has(file, key!(ScenarioKeys, hearing));
    (!any).then(|| "there are no [[cells]] and no [[hearing]]".to_owned())
}

/// Powers count where there are places.
pub(super) fn place_in_vain(_access: &Table, file: &Table) -> Option<String> {
    let cells = file.get(key!(ScenarioKeys, cells)).and_then(Value::as_array).into_iter().flatten();
    let any = cells.filter_map(Value::as_table).any(|cell| cell.contains_key(key!(CellKeys, x_m)));
    (!any).then(|| "no [[cells]] have a place (x_m)".to_owned())
}
