//! What control changes, as status, record, those who watch and metrics tell it. Computed in [`lasthop_policy::Gain`] alone.

use lasthop_policy::Got;
use lasthop_units::{About, Rate, Span};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What this host, and all hosts behind the access point together, get now and got while free. Goodput is payload, sent and
/// received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// This host's goodput now; `None`: unknown as yet.
    #[serde(default)]
    pub delivered_mbps: Option<f64>,
    /// This host's goodput while free; `None`: not seen before the limits that hold now.
    #[serde(default)]
    pub free_mbps: Option<f64>,
    /// The first over the second; `None`: they do not compare.
    #[serde(default)]
    pub gain_ratio: Option<f64>,
    /// Goodput of all hosts together now; `None`: unknown as yet.
    #[serde(default)]
    pub group_delivered_mbps: Option<f64>,
    /// The same while free.
    #[serde(default)]
    pub group_free_mbps: Option<f64>,
    /// The one over the other; `None`: they do not compare.
    #[serde(default)]
    pub group_gain_ratio: Option<f64>,
    /// Round trip of this host's bulk connections now; `None`: unknown.
    #[serde(default)]
    pub round_trip_ms: Option<f64>,
    /// The same while free.
    #[serde(default)]
    pub free_round_trip_ms: Option<f64>,
    /// Why there is no gain to tell; `None`: there is.
    #[serde(default)]
    pub gain_unknown: Option<String>,
}

impl From<lasthop_policy::Gain> for Gain {
    fn from(gain: lasthop_policy::Gain) -> Self {
        let lasthop_policy::Gain { now, free, incomparable } = gain;
        let host = |got: Option<Got>| got.map(|got| got.host.as_mbps());
        let group = |got: Option<Got>| got.map(|got| got.group.as_mbps());
        let round_trip = |got: Option<Got>| got.and_then(|got| got.round_trip).map(Span::as_millis_f64);
        let ratios = gain.ratios();
        Self {
            delivered_mbps: host(now),
            free_mbps: host(free),
            gain_ratio: ratios.map(|[host, _]| host),
            group_delivered_mbps: group(now),
            group_free_mbps: group(free),
            group_gain_ratio: ratios.map(|[_, group]| group),
            round_trip_ms: round_trip(now),
            free_round_trip_ms: round_trip(free),
            gain_unknown: incomparable.map(|why| why.to_string()),
        }
    }
}

impl Gain {
    /// There is none, and why.
    pub fn unknown(why: String) -> Self {
        Self { gain_unknown: Some(why), ..Self::default() }
    }

    /// The round trip in words.
    pub fn delay(&self) -> String {
        match (self.round_trip_ms, self.free_round_trip_ms) {
            (Some(now), Some(free)) => format!("round trip {now:.0} ms now, {free:.0} ms while free"),
            (Some(now), None) => format!("round trip {now:.0} ms now"),
            (None, Some(free)) => format!("round trip {free:.0} ms while free"),
            (None, None) => "round trip not known yet".to_owned(),
        }
    }
}

/// Goodput in words: of this host, and of all together.
impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = [
            ("this host", self.delivered_mbps, self.free_mbps, self.gain_ratio),
            ("all hosts", self.group_delivered_mbps, self.group_free_mbps, self.group_gain_ratio),
        ]
        .map(|(whose, now, free, ratio)| {
            let now = now.map(|now| format!("{} now", About(Rate::from_mbps(now))));
            let free = free.map(|free| format!("{} while free", About(Rate::from_mbps(free))));
            let known: Vec<_> = now.into_iter().chain(free).collect();
            let ratio = ratio.map_or(String::new(), |ratio| format!(": {:+.0} %", 100.0 * (ratio - 1.0)));
            (!known.is_empty()).then(|| format!("{whose} {}{ratio}", known.join(", ")))
        });
        let known = said.into_iter().flatten().chain(self.gain_unknown.clone());
        let known = known.collect::<Vec<_>>().join("; ");
        f.write_str(if known.is_empty() { "not known yet" } else { &known })
    }
}
