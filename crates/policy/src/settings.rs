//! The numbers that a policy may be given, and what is accepted.

use super::latch::Rise;
use super::{Policy, PolicyName, Row, Start, WindowTable};
use lasthop_laws::bound::LEAST_PACING_RATE;
use lasthop_units::Span;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What the table of windows is looked up with. shimada calls it "RTT" (Table 1), "ratio_rtt" (Table 3) and "RTT diff value".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableIndex {
    /// RTT − lowest RTT, in ms.
    #[default]
    Excess,
    /// The smoothed RTT, in ms.
    Rtt,
    /// RTT / lowest RTT.
    Ratio,
}

/// What the upper limit of the policies with a table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cap {
    /// The smaller of the share and the table: shimada §2.3, step 3.
    #[default]
    Min,
    /// The table alone: a reading of shimada's Fig. 12, whose windows the former does not allow.
    Table,
}

/// How long control lasts that a peer's report has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeerLatch {
    /// As long as a peer reports it: a stranger's word holds as long as he gives it.
    #[default]
    WhileReported,
    /// Until the connection ends: shimada gives no end of the control.
    Connection,
}

/// Which RTT the formula takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttReading {
    /// The connection's smoothed RTT at the tick: what hayakawa eq. 2 prints.
    #[default]
    Current,
    /// The lowest RTT seen on the connection: asks for no standing queue.
    Minimum,
}

/// What a policy is built from. Each key has a default; those of `formula` are the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySettings {
    /// Which policy decides.
    pub policy: PolicyName,
    /// `fixed`: the upper limit of the whole host, split over its busy connections. Required there, 1 to 1,000,000.
    pub bound_segments: Option<u32>,
    /// `fixed`: beside that, the upper limit of the whole host's pacing rate in Mb/s of payload, split over its busy connections;
    /// none of them gets less than 0.032. 0.032 to 100,000, or absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_pacing_mbps: Option<f64>,
    /// The lower limit of each connection's window, and the floor under every upper limit. 1 to 65,535.
    pub minimum_segments: u32,
    /// `formula`, `table` and its like: control of a connection is enabled when its ratio exceeds this. 1 or more.
    pub enable_ratio: f64,
    /// The same: instead of the ratio, when RTT − lowest RTT exceeds this, in ms. 0 to 60,000, or absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_excess_ms: Option<f64>,
    /// `formula`: while control is enabled, a ratio above this cuts the window to the minimum. 1 or more.
    pub cut_ratio: f64,
    /// `formula`, `table` and its like: control is disabled again when the ratio falls below this, and the excess is not above
    /// `enable_excess_ms`. 1 up to `enable_ratio`, or absent: control lasts until the connection ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_ratio: Option<f64>,
    /// How the bandwidth falls with the number of terminals (hayakawa eq. 4). −2 to 0. Absent: −0.15 for `formula` and
    /// `count`, 0 for the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponent: Option<f64>,
    /// The goodput that one terminal reaches alone, in Mb/s. Above 0, at most 100,000. Absent: 20 for `table` and its like
    /// (shimada §3), 19 for the others (hayakawa).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_max_mbps: Option<f64>,
    /// `formula`, `table` and its like: which RTT the share is computed from.
    pub rtt: RttReading,
    /// What counts as one segment, in bytes of IP packet. 64 to 65,535.
    pub segment_bytes: u32,
    /// A share is never computed for more terminals than this, whatever the beacons say (`keceli`: for more flows, unless so
    /// many are this host's own). 1 to 1,024.
    pub maximum_terminals: u32,
    /// `count`: the window of a terminal for n = 1, 2, …; the last for all above. Up to 64, each 1 to 1,000,000. Empty: as
    /// hayakawa eq. 2 has it for `count_rtt_ms`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub count_segments: Vec<u32>,
    /// `count`: the RTT that the windows are computed for, in ms. Above 0, at most 60,000.
    pub count_rtt_ms: f64,
    /// `count`: time between two looks at the number of terminals, in s. 0.5 to 3,600.
    pub adjust_s: f64,
    /// `table` and its like: a ready table. Absent: `old`, or `loose` for `cooperative-loose`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_table: Option<WindowTable>,
    /// `table` and its like: a table of one's own instead, rows of from, max and min. Up to 64, the first from 0, rising.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub window_rows: Vec<Row>,
    /// `table` and its like: what the table is looked up with.
    pub table_index: TableIndex,
    /// `table` and its like: what the upper limit is.
    pub cap: Cap,
    /// `table` and its like: whether the table's lower limits hold; else `minimum_segments`.
    pub lower_limit: bool,
    /// `cooperative` and `cooperative-loose`: how long control lasts that a peer's report has begun.
    pub peer_latch: PeerLatch,
    /// `keceli`: the length of the access point's downlink queue, in packets. 1 to 100,000.
    pub access_queue_packets: u32,
    /// `keceli`: segments that one acknowledgement of the receiver is for. 1 to 64.
    pub segments_per_ack: u32,
}

/// A setting that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` = {value} is not accepted: it must be {accepted}")]
pub struct SettingsError {
    /// The key, one of [`PolicySettings::KEYS`].
    pub key: &'static str,
    /// The value that was given.
    pub value: String,
    /// What would be accepted.
    pub accepted: String,
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for PolicyName {
    type Err = SettingsError;
    fn from_str(name: &str) -> Result<Self, SettingsError> {
        Self::ALL.iter().copied().find(|policy| policy.as_str() == name).ok_or_else(|| SettingsError {
            key: "policy",
            value: format!("\"{name}\""),
            accepted: Self::ALL.iter().map(|policy| policy.as_str()).collect::<Vec<_>>().join(", "),
        })
    }
}

impl Default for PolicySettings {
    fn default() -> Self {
        Self {
            policy: PolicyName::None,
            bound_segments: None,
            bound_pacing_mbps: None,
            minimum_segments: 1,
            enable_ratio: 6.0, // hayakawa §Proposed: "If ratio rtt is greater than 6.0"
            enable_excess_ms: None,
            cut_ratio: 5.0,      // hayakawa §Proposed: "greater than 5.0 with the control enabled"
            release_ratio: None, // neither paper gives an end of the control
            exponent: None,
            bandwidth_max_mbps: None,
            rtt: RttReading::Current, // hayakawa eq. 2
            segment_bytes: 1500,      // hayakawa eq. 2: "Segment size(1.5Kbyte)"
            maximum_terminals: 64,    // ours: bounds what forged beacons can do
            count_segments: Vec::new(),
            count_rtt_ms: 256.0, // the longer of hayakawa's two paths
            adjust_s: 10.0,      // hayakawa on its predecessor
            window_table: None,
            window_rows: Vec::new(),
            table_index: TableIndex::Excess,
            cap: Cap::Min,
            lower_limit: true,
            peer_latch: PeerLatch::WhileReported,
            access_queue_packets: 100, // as the scenario's default
            segments_per_ack: 2,       // RFC 5681 §4.2
        }
    }
}

impl PolicySettings {
    /// Every key, in the order of the fields.
    pub const KEYS: &'static [&'static str] = &[
        "policy",
        "bound_segments",
        "bound_pacing_mbps",
        "minimum_segments",
        "enable_ratio",
        "enable_excess_ms",
        "cut_ratio",
        "release_ratio",
        "exponent",
        "bandwidth_max_mbps",
        "rtt",
        "segment_bytes",
        "maximum_terminals",
        "count_segments",
        "count_rtt_ms",
        "adjust_s",
        "window_table",
        "window_rows",
        "table_index",
        "cap",
        "lower_limit",
        "peer_latch",
        "access_queue_packets",
        "segments_per_ack",
    ];

    /// BWmax, in Mb/s: as set, or as the policy's paper has it.
    pub fn bandwidth_mbps(&self) -> f64 {
        self.bandwidth_max_mbps.unwrap_or(match self.policy {
            // shimada §3: "the bandwidth was only about 20Mbps in the wireless environment"
            PolicyName::Table | PolicyName::Cooperative | PolicyName::CooperativeLoose => 20.0,
            _ => 19.0, // hayakawa §Evaluation: "BWmax is 19 Mbps in this environment"
        })
    }

    /// How the bandwidth falls with the number of terminals: as set, or as the policy's paper has it.
    pub fn exponent(&self) -> f64 {
        self.exponent.unwrap_or(match self.policy {
            PolicyName::Formula | PolicyName::Count => -0.15, // hayakawa eq. 4
            _ => 0.0,                                         // shimada eq. 2 has no such factor
        })
    }

    /// From when on an RTT has risen.
    pub fn start(&self) -> Start {
        match self.enable_excess_ms {
            Some(excess_ms) => Start::Excess(Span::from_secs_f64(excess_ms / 1e3)),
            None => Start::Ratio(self.enable_ratio),
        }
    }

    /// The rows of the table of windows.
    pub(super) fn rows(&self) -> Vec<Row> {
        if !self.window_rows.is_empty() {
            return self.window_rows.clone();
        }
        let of_the_policy = match self.policy {
            PolicyName::CooperativeLoose => WindowTable::Loose,
            _ => WindowTable::Old,
        };
        self.window_table.unwrap_or(of_the_policy).rows().to_vec()
    }

    /// The RTT that a share is computed from.
    pub(super) const fn rtt_of(&self, rise: Rise) -> Span {
        match self.rtt {
            RttReading::Current => rise.srtt,
            RttReading::Minimum => rise.lowest_rtt,
        }
    }

    /// Whether every number lies in its range.
    ///
    /// # Errors
    /// The first setting that does not, with its key, its value and what is accepted.
    pub fn validate(&self) -> Result<(), SettingsError> {
        integer("minimum_segments", self.minimum_segments, 1, 65_535)?;
        match self.bound_segments {
            Some(segments) => integer("bound_segments", segments, self.minimum_segments, 1_000_000)?,
            None if self.policy.looks_at("bound_segments") => {
                return Err(SettingsError {
                    key: "bound_segments",
                    value: "(absent)".to_owned(),
                    accepted: format!("given with policy \"{}\", from `minimum_segments` to 1000000", self.policy),
                });
            }
            None => {}
        }
        if let Some(mbps) = self.bound_pacing_mbps {
            number("bound_pacing_mbps", mbps, LEAST_PACING_RATE.as_mbps(), 1e5)?;
        }
        number("enable_ratio", self.enable_ratio, 1.0, 1e6)?;
        number("cut_ratio", self.cut_ratio, 1.0, 1e6)?;
        if let Some(ratio) = self.release_ratio {
            number("release_ratio", ratio, 1.0, self.enable_ratio)?;
        }
        if let Some(excess_ms) = self.enable_excess_ms {
            number("enable_excess_ms", excess_ms, 0.0, 60_000.0)?;
        }
        number("exponent", self.exponent(), -2.0, 0.0)?;
        number("bandwidth_max_mbps", self.bandwidth_mbps(), 1e-3, 1e5)?;
        integer("segment_bytes", self.segment_bytes, 64, 65_535)?;
        integer("maximum_terminals", self.maximum_terminals, 1, 1024)?;
        list("count_segments", &self.count_segments)?;
        for segments in &self.count_segments {
            integer("count_segments", *segments, 1, 1_000_000)?;
        }
        number("count_rtt_ms", self.count_rtt_ms, 1e-3, 60_000.0)?;
        number("adjust_s", self.adjust_s, 0.5, 3600.0)?;
        self.validate_rows()?;
        integer("access_queue_packets", self.access_queue_packets, 1, 100_000)?;
        integer("segments_per_ack", self.segments_per_ack, 1, 64)
    }

    fn validate_rows(&self) -> Result<(), SettingsError> {
        const KEY: &str = "window_rows";
        list(KEY, &self.window_rows)?;
        for row in &self.window_rows {
            integer(KEY, row.max_segments, 1, 1_000_000)?;
            if !(1..=row.max_segments).contains(&row.min_segments) {
                let accepted = "rows [from, max, min] with a min from 1 to the max".to_owned();
                return Err(SettingsError { key: KEY, value: format!("{:?}", <[u32; 3]>::from(*row)), accepted });
            }
        }
        let edges = || self.window_rows.iter().map(|row| row.from);
        if edges().next().is_some_and(|first| first != 0) || !edges().is_sorted_by(|one, next| one < next) {
            let value = format!("{:?}", edges().collect::<Vec<_>>());
            let accepted =
                "rows [from, max, min] that begin at 0, each at a greater number than the one before".to_owned();
            return Err(SettingsError { key: KEY, value, accepted });
        }
        Ok(())
    }

    /// The policy with these settings.
    ///
    /// # Panics
    /// If the settings are not [valid](Self::validate).
    pub fn build(&self) -> Box<dyn Policy + Send> {
        if let Err(error) = self.validate() {
            panic!("a policy is built from valid settings only: {error}");
        }
        self.policy.build(self)
    }
}

fn integer(key: &'static str, value: u32, lowest: u32, highest: u32) -> Result<(), SettingsError> {
    if (lowest..=highest).contains(&value) {
        return Ok(());
    }
    Err(SettingsError { key, value: value.to_string(), accepted: format!("a whole number from {lowest} to {highest}") })
}

fn number(key: &'static str, value: f64, lowest: f64, highest: f64) -> Result<(), SettingsError> {
    if (lowest..=highest).contains(&value) {
        return Ok(());
    }
    Err(SettingsError { key, value: value.to_string(), accepted: format!("a number from {lowest} to {highest}") })
}

fn list<T>(key: &'static str, list: &[T]) -> Result<(), SettingsError> {
    if list.len() <= 64 {
        return Ok(());
    }
    Err(SettingsError { key, value: format!("a list of {}", list.len()), accepted: "a list of up to 64".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(settings: &PolicySettings) -> SettingsError {
        settings.validate().expect_err("these settings must not be accepted")
    }

    #[test]
    fn the_defaults_are_valid_and_bound_nothing() {
        let settings = PolicySettings::default();
        assert_eq!(settings.validate(), Ok(()));
        assert_eq!(settings.policy.as_str(), "none");
    }

    #[test]
    fn every_field_has_its_key_and_no_other_is_accepted() {
        let settings = PolicySettings {
            bound_segments: Some(64),
            bound_pacing_mbps: Some(2.0),
            release_ratio: Some(2.0),
            enable_excess_ms: Some(51.0),
            exponent: Some(-0.15),
            bandwidth_max_mbps: Some(19.0),
            count_segments: vec![100],
            window_table: Some(WindowTable::Old),
            window_rows: vec![Row { from: 0, max_segments: 555, min_segments: 200 }],
            ..PolicySettings::default()
        };
        let json = serde_json::to_value(&settings).expect("settings are plain data");
        let mut keys: Vec<_> = json.as_object().expect("a table").keys().map(String::as_str).collect();
        let mut listed = PolicySettings::KEYS.to_vec();
        keys.sort_unstable();
        listed.sort_unstable();
        assert_eq!(keys, listed);
        let error = serde_json::from_str::<PolicySettings>(r#"{"enable_rato": 6}"#).expect_err("a misspelt key");
        assert!(error.to_string().contains("enable_rato"), "{error}");
        assert!(error.to_string().contains("enable_ratio"), "{error}");
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in PolicyName::ALL {
            assert_eq!(name.to_string().parse(), Ok(*name));
            assert_eq!(serde_json::to_value(name).expect("a name"), name.as_str());
        }
        let error = "fromula".parse::<PolicyName>().expect_err("a misspelt name");
        let begin = "`policy` = \"fromula\" is not accepted: it must be none, fixed, count, table, formula, cooperative, \
                     cooperative-loose, keceli, lasthop";
        assert!(error.to_string().starts_with(begin), "{error}");
    }

    #[test]
    fn a_setting_out_of_range_is_named_with_its_value_and_what_is_accepted() {
        let error = rejected(&PolicySettings { exponent: Some(0.15), ..PolicySettings::default() });
        assert_eq!(error.to_string(), "`exponent` = 0.15 is not accepted: it must be a number from -2 to 0");
        let error = rejected(&PolicySettings { window_rows: vec![Row::from([0, 5, 6])], ..PolicySettings::default() });
        assert_eq!(
            error.to_string(),
            "`window_rows` = [0, 5, 6] is not accepted: it must be rows [from, max, min] with a min from 1 to the max"
        );
        let nonsense = [
            PolicySettings { minimum_segments: 0, ..PolicySettings::default() },
            PolicySettings { bound_segments: Some(0), ..PolicySettings::default() },
            PolicySettings { bound_segments: Some(4), minimum_segments: 5, ..PolicySettings::default() },
            PolicySettings { policy: PolicyName::Fixed, ..PolicySettings::default() },
            PolicySettings { bound_pacing_mbps: Some(0.0), ..PolicySettings::default() },
            PolicySettings { bound_pacing_mbps: Some(0.031), ..PolicySettings::default() },
            PolicySettings { bound_pacing_mbps: Some(f64::NAN), ..PolicySettings::default() },
            PolicySettings { enable_ratio: f64::NAN, ..PolicySettings::default() },
            PolicySettings { cut_ratio: 0.5, ..PolicySettings::default() },
            PolicySettings { release_ratio: Some(6.5), ..PolicySettings::default() },
            PolicySettings { bandwidth_max_mbps: Some(0.0), ..PolicySettings::default() },
            PolicySettings { bandwidth_max_mbps: Some(f64::INFINITY), ..PolicySettings::default() },
            PolicySettings { segment_bytes: 0, ..PolicySettings::default() },
            PolicySettings { maximum_terminals: 0, ..PolicySettings::default() },
            PolicySettings { enable_excess_ms: Some(-1.0), ..PolicySettings::default() },
            PolicySettings { count_segments: vec![0], ..PolicySettings::default() },
            PolicySettings { count_segments: vec![9; 65], ..PolicySettings::default() },
            PolicySettings { count_rtt_ms: 0.0, ..PolicySettings::default() },
            PolicySettings { adjust_s: 0.1, ..PolicySettings::default() },
            PolicySettings { window_rows: vec![Row::from([1, 9, 1])], ..PolicySettings::default() },
            PolicySettings { window_rows: [[0, 9, 1], [0, 8, 1]].map(Row::from).to_vec(), ..PolicySettings::default() },
            PolicySettings { window_rows: vec![Row::from([0, 9, 10])], ..PolicySettings::default() },
            PolicySettings { window_rows: vec![Row::from([0, 0, 0])], ..PolicySettings::default() },
            PolicySettings { access_queue_packets: 0, ..PolicySettings::default() },
            PolicySettings { segments_per_ack: 0, ..PolicySettings::default() },
        ];
        for settings in nonsense {
            assert!(PolicySettings::KEYS.contains(&rejected(&settings).key));
        }
    }

    #[test]
    #[should_panic(expected = "valid settings only")]
    fn a_policy_is_not_built_from_nonsense() {
        let _ = PolicySettings { segment_bytes: 0, ..PolicySettings::default() }.build();
    }
}
