//! The numbers that a policy may be given, and what is accepted.

use super::latch::Rise;
use super::{Lasthop, Parts, Policy, PolicyName, Row, Start, WindowTable};
use lasthop_keys::Preset::Absent;
use lasthop_keys::{
    DocumentError, Keys as _, Of, Part, Section, When, choice, derived, flag, integer, integers, key, keys, line,
    number, rows, texts, words,
};
use lasthop_laws::bound::LEAST_PACING_RATE;
use lasthop_units::Span;

words! {
    /// What the table of windows is looked up with. shimada calls it "RTT" (Table 1), "ratio_rtt" (Table 3) and "RTT diff value".
    pub enum TableIndex {
        /// RTT − lowest RTT, in ms.
        Excess = "excess",
        /// The smoothed RTT, in ms.
        Rtt = "rtt",
        /// RTT / lowest RTT.
        Ratio = "ratio",
    }

    /// What the upper limit of the policies with a table is.
    pub enum Cap {
        /// The smaller of the share and the table: shimada §2.3, step 3.
        Min = "min",
        /// The table alone: a reading of shimada's Fig. 12, whose windows the former does not allow.
        Table = "table",
    }

    /// How long control lasts that a peer's report has begun.
    pub enum PeerLatch {
        /// As long as a peer reports it: a stranger's word holds as long as he gives it.
        WhileReported = "while-reported",
        /// Until the connection ends: shimada gives no end of the control.
        Connection = "connection",
    }

    /// What a host gives up where control cannot have both, short queues and what it got without.
    #[derive(Default)]
    pub enum Prefer {
        /// Goodput: bounds end where all hosts with them get less than 0.9 of what they got free, or others fill the queue.
        #[default]
        Harmless = "harmless",
        /// Short round trips: bounds last while all hosts with them get half of what they got free.
        Latency = "latency",
    }

    /// Which RTT the formula takes.
    pub enum RttReading {
        /// The connection's smoothed RTT at the tick: what hayakawa eq. 2 prints.
        Current = "current",
        /// The lowest RTT seen on the connection: asks for no standing queue.
        Minimum = "minimum",
    }
}

keys! {
    /// What a policy is built from. The defaults of `formula` are the paper's.
    #[derive(Clone, Debug, PartialEq, serde::Serialize)]
    pub struct PolicySettings {
        /// The [policy](scenario-hosts.md#policies): what bounds the windows.
        policy: PolicyName = choice(PolicyName::WORDS), "none";
        /// *fixed* The upper limit of the whole host in segments, split over its busy connections; must be given there.
        bound_segments: Option<u32> = integer::<u32>(1, 1_000_000), Absent;
        /// *fixed* Beside that, the upper limit of the whole host's pacing rate in Mb/s of payload, split over its busy
        /// connections, of which each gets 0.032 at least. With it a connection is paced, whatever its stack and its law.
        bound_pacing_mbps: Option<f64> = number(LEAST_PACING_RATE.as_mbps(), 1e5), Absent;
        /// *fixed* Likewise of the windows that the whole host advertises, in full segments, split over the connections that
        /// receive, of which each gets two at least.
        bound_receive_segments: Option<u32> = integer::<u32>(2, 1_000_000), Absent;
        /// The lower limit of each connection's window in segments, and the floor under every upper limit.
        minimum_segments: u32 = integer(1, 65_535), 1;
        /// *formula, table, cooperative* Control of a connection is enabled when its RTT exceeds this multiple of its lowest.
        // hayakawa §Proposed: "If ratio rtt is greater than 6.0"
        enable_ratio: f64 = number(1.0, 1e6), 6.0, when vec![When::NotGiven("enable_excess_ms")];
        /// *formula, table, cooperative* Instead of that: when its RTT exceeds its lowest by more than this, in milliseconds.
        enable_excess_ms: Option<f64> = number(0.0, 60_000.0), Absent;
        /// *formula* While control is enabled, a ratio above this cuts the window to the minimum.
        // hayakawa §Proposed: "greater than 5.0 with the control enabled"
        cut_ratio: f64 = number(1.0, 1e6), 5.0;
        /// *formula, table, cooperative* Control is disabled again when the ratio falls below this, up to `enable_ratio`, and the
        /// excess is not above `enable_excess_ms`; without it control lasts until the connection ends.
        // Neither paper gives an end of the control.
        release_ratio: Option<f64> = number(1.0, 1e6), Absent;
        /// How the bandwidth falls with the number of terminals.
        exponent: Option<f64> = number(-2.0, 0.0), derived("`-0.15` with *formula* and *count*, else `0`", |_| None);
        /// The goodput that one terminal reaches alone, in Mb/s.
        bandwidth_max_mbps: Option<f64> =
            number(1e-3, 1e5), derived("`20` with *table* and *cooperative*, else `19`", |_| None);
        /// *formula, table, cooperative* Which RTT the share is computed from.
        rtt: RttReading = choice(RttReading::WORDS), "current";
        /// What counts as one segment, in bytes of IP packet.
        // hayakawa eq. 2: "Segment size(1.5Kbyte)"
        segment_bytes: u32 = integer(64, 65_535), 1_500;
        /// A share is never computed for more terminals than this, whatever the beacons say (*keceli:* for more flows, unless the
        /// host itself has more).
        // Ours: bounds what forged beacons can do.
        maximum_terminals: u32 = integer(1, 1_024), 64;
        /// *count* The window of a terminal for 1, 2, 3, ... terminals; the last for all above. Without it, what [hayakawa] eq. 2
        /// has for `count_rtt_ms`.
        count_segments: Option<Vec<u32>> = integers::<u32>(1, 1_000_000), Absent;
        /// *count* The RTT for which the windows are computed, in milliseconds.
        // The longer of hayakawa's two paths.
        count_rtt_ms: f64 = number(0.001, 60_000.0), 256.0, when vec![When::NotGiven("count_segments")];
        /// *count* How often the number of terminals is looked at, in seconds.
        // hayakawa on its predecessor.
        adjust_s: f64 = number(0.5, 3_600.0), 10.0;
        /// *table, cooperative* The table of windows: [shimada] Table 3 before its change, Table 1, or Table 3 after it.
        window_table: Option<WindowTable> =
            choice(WindowTable::WORDS), derived("`\"old\"`; `\"loose\"` with *cooperative-loose*", |_| None), when vec![When::NotGiven("window_rows")];
        /// *table, cooperative* A table of one's own instead: rows of `[from, max, min]`, from 0 upwards; in milliseconds of RTT
        /// above the lowest, or what `table_index` says, and segments.
        window_rows: Option<Vec<Row>> = rows(0, 1_000_000).map(own_rows), Absent;
        /// *table, cooperative* What the table is looked up with: RTT − lowest RTT in milliseconds, RTT in milliseconds, or RTT /
        /// lowest RTT.
        table_index: TableIndex = choice(TableIndex::WORDS), "excess";
        /// *table, cooperative* The upper limit: the smaller of share and table, or the table alone.
        cap: Cap = choice(Cap::WORDS), "min";
        /// *table, cooperative* Whether the lower limits of the table hold; else `minimum_segments`.
        lower_limit: bool = flag(), true;
        /// *cooperative* How long control lasts that a peer's report has begun: as long as a peer reports it, or until the
        /// connection ends.
        peer_latch: PeerLatch = choice(PeerLatch::WORDS), "while-reported";
        /// *lasthop* What a host gives up where a short queue costs goodput: `"harmless"` ends control where it costs a tenth of it, or
        /// others fill the queue; `"latency"`, for hosts that all have the agent, where it costs half. The same on all hosts.
        prefer: Prefer = choice(Prefer::WORDS), "harmless";
        /// *keceli* The length of the access point's downlink queue in packets, as the policy believes it to be.
        access_queue_packets: u32 = integer(1, 100_000), 100;
        /// *keceli* Segments that one acknowledgement is for.
        // RFC 5681 §4.2.
        segments_per_ack: u32 = integer(1, 64), 2;
        /// *external* The [program](external-policy.md) that decides, with its arguments, such as `["python3", "mine.py"]`; must be
        /// given there. It is started in the working directory, once for each host.
        command: Option<Vec<String>> = texts(), Absent;
        /// *external* Agents: a decision that takes longer, in milliseconds, is not waited for, and nothing is bounded until the
        /// program is in time again. The simulator waits.
        command_deadline_ms: Option<u64> = integer::<u64>(1, 10_000), derived("`100`", |_| None);
        /// *external* Agents of root: the user as whom the program runs.
        command_user: Option<String> = line(256), derived("`\"nobody\"`", |_| None);
        adjust conditions;
        check together;
    }
}

/// Each key is looked at by some policies; those of `fixed` and `external` may stand in a file for runs that choose it.
fn conditions(section: &mut Section) {
    for key in &mut section.keys {
        let looking = PolicyName::ALL.iter().filter(|policy| policy.looks_at(key.name));
        if key.name != key!(PolicySettings, policy) {
            key.when.push(When::Is(
                Of::Same,
                key!(PolicySettings, policy),
                looking.map(|policy| policy.as_str()).collect(),
            ));
        }
        key.may_wait = [
            key!(PolicySettings, bound_segments),
            key!(PolicySettings, bound_pacing_mbps),
            key!(PolicySettings, bound_receive_segments),
            key!(PolicySettings, command),
            key!(PolicySettings, command_deadline_ms),
            key!(PolicySettings, command_user),
        ]
        .contains(&key.name);
    }
}

fn own_rows(rows: Vec<[u32; 3]>) -> Vec<Row> {
    rows.into_iter().map(Row::from).collect()
}

/// Numbers that are each in their range, but do not go with each other.
fn together(settings: &PolicySettings, part: &Part<'_>) -> Result<(), DocumentError> {
    let &PolicySettings { policy, minimum_segments: least, bound_segments, enable_ratio, release_ratio, .. } = settings;
    let fail = |key: &str, problem: String, accepted: String| Err(part.error(key, problem, accepted));
    let bounds = format!("a whole number from {least} (minimum_segments) to 1000000");
    match bound_segments {
        None if policy.looks_at(key!(PolicySettings, bound_segments)) => {
            let problem = format!("is not there, and the policy \"{policy}\" cannot be without it");
            return fail(key!(PolicySettings, bound_segments), problem, bounds);
        }
        Some(segments) if segments < least => {
            return fail(key!(PolicySettings, bound_segments), format!("{segments} is out of range"), bounds);
        }
        _ => {}
    }
    if policy == PolicyName::External && settings.program().first().is_none_or(String::is_empty) {
        let problem = format!("is not there, and the policy \"{policy}\" cannot be without it");
        let accepted = "a program and its arguments, such as [\"python3\", \"mine.py\"]".to_owned();
        return fail(key!(PolicySettings, command), problem, accepted);
    }
    if let Some(ratio) = release_ratio.filter(|ratio| *ratio > enable_ratio) {
        let accepted = format!("a number from 1 to {enable_ratio} (enable_ratio)");
        return fail(key!(PolicySettings, release_ratio), format!("{ratio} is out of range"), accepted);
    }
    let rows = settings.window_rows.as_deref().unwrap_or_default();
    if let Some(row) = rows.iter().find(|row| !(1..=row.max_segments).contains(&row.min_segments)) {
        let accepted = "rows [from, max, min] with a min from 1 to the max".to_owned();
        return fail(key!(PolicySettings, window_rows), format!("{:?} is no row", <[u32; 3]>::from(*row)), accepted);
    }
    let edges: Vec<u32> = rows.iter().map(|row| row.from).collect();
    if edges.first().is_some_and(|first| *first != 0) || !edges.is_sorted_by(|one, next| one < next) {
        let accepted = "rows [from, max, min] that begin at 0, each at a greater number than the one before";
        return fail(key!(PolicySettings, window_rows), format!("its rows begin at {edges:?}"), accepted.to_owned());
    }
    Ok(())
}

impl Default for PolicySettings {
    fn default() -> Self {
        Self::preset()
    }
}

impl PolicySettings {
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

    /// Whether the policy may limit what connections receive.
    pub fn may_limit_received(&self) -> bool {
        use PolicyName::{
            Cooperative, CooperativeLoose, Count, External, Fixed, Formula, Keceli, Lasthop, None, Table,
        };
        match self.policy {
            Fixed => self.bound_receive_segments.is_some(),
            Lasthop | External => true,
            None | Count | Table | Formula | Cooperative | CooperativeLoose | Keceli => false,
        }
    }

    /// The program of the policy `external`, with its arguments; empty: none.
    pub fn program(&self) -> &[String] {
        self.command.as_deref().unwrap_or_default()
    }

    /// How long an agent waits for a decision of that program.
    pub fn deadline(&self) -> Span {
        Span::from_millis(self.command_deadline_ms.unwrap_or(100))
    }

    /// As whom an agent of root runs that program.
    pub fn user(&self) -> &str {
        self.command_user.as_deref().unwrap_or("nobody")
    }

    /// From when on an RTT has risen.
    pub fn start(&self) -> Start {
        match self.enable_excess_ms {
            Some(excess_ms) => Start::Excess(Span::from_secs_f64(excess_ms / 1e3)),
            None => Start::Ratio(self.enable_ratio),
        }
    }

    /// The first row of the table of windows, and those after it.
    pub(super) fn rows(&self) -> (Row, Vec<Row>) {
        if let Some((first, rest)) = self.window_rows.as_deref().and_then(<[Row]>::split_first) {
            return (*first, rest.to_vec());
        }
        let of_the_policy = match self.policy {
            PolicyName::CooperativeLoose => WindowTable::Loose,
            _ => WindowTable::Old,
        };
        let [first, rest @ ..] = self.window_table.unwrap_or(of_the_policy).rows();
        (first, rest.to_vec())
    }

    /// The RTT that a share is computed from.
    pub(super) const fn rtt_of(&self, rise: Rise) -> Span {
        match self.rtt {
            RttReading::Current => rise.srtt,
            RttReading::Minimum => rise.lowest_rtt,
        }
    }

    /// The policy with these settings. `external` never decides: the caller makes that policy itself, as an
    /// [`External`](crate::External) that asks the program.
    ///
    /// # Panics
    /// If the settings are not [valid](lasthop_keys::Keys::validate).
    pub fn build(&self) -> Box<dyn Policy + Send> {
        if let Err(error) = self.validate("the settings") {
            panic!("a policy is built from valid settings only: {error}");
        }
        self.policy.build(self)
    }

    /// The same; `lasthop` with these parts of its law only.
    ///
    /// # Panics
    /// As [`Self::build`].
    pub fn build_with(&self, parts: Parts) -> Box<dyn Policy + Send> {
        let whole = self.build();
        if self.policy == PolicyName::Lasthop { Box::new(Lasthop::new(self).with(parts)) } else { whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(settings: &PolicySettings) -> String {
        settings.validate("test").expect_err("these settings must not be accepted").to_string()
    }

    #[test]
    fn the_defaults_are_valid_and_bound_nothing() {
        let settings = PolicySettings::default();
        assert!(settings.validate("test").is_ok());
        assert_eq!(settings.policy.as_str(), "none");
    }

    #[test]
    fn a_key_is_looked_at_by_the_policies_that_list_it() {
        for key in &PolicySettings::section().keys {
            assert!(PolicyName::ALL.iter().any(|policy| policy.looks_at(key.name)), "{}", key.name);
        }
        let ratio = PolicySettings::section().key("enable_ratio").expect("a key");
        let When::Is(Of::Same, "policy", policies) = &ratio.when[1] else { panic!("{:?}", ratio.when) };
        assert_eq!(policies[..], ["table", "formula", "cooperative", "cooperative-loose"]);
    }

    #[test]
    fn a_setting_out_of_range_is_named_with_its_value_and_what_is_accepted() {
        let error = rejected(&PolicySettings { exponent: Some(0.15), ..PolicySettings::default() });
        assert_eq!(error, "test: exponent: 0.15 is out of range; accepted: a number from -2 to 0");
        let rows = Some(vec![Row::from([0, 5, 6])]);
        let error = rejected(&PolicySettings { window_rows: rows, ..PolicySettings::default() });
        assert_eq!(
            error,
            "test: window_rows: [0, 5, 6] is no row; accepted: rows [from, max, min] with a min from 1 to the max"
        );
        let nonsense = [
            PolicySettings { minimum_segments: 0, ..PolicySettings::default() },
            PolicySettings { bound_segments: Some(0), ..PolicySettings::default() },
            PolicySettings { bound_segments: Some(4), minimum_segments: 5, ..PolicySettings::default() },
            PolicySettings { policy: PolicyName::Fixed, ..PolicySettings::default() },
            PolicySettings { bound_pacing_mbps: Some(0.0), ..PolicySettings::default() },
            PolicySettings { bound_pacing_mbps: Some(0.031), ..PolicySettings::default() },
            PolicySettings { bound_receive_segments: Some(1), ..PolicySettings::default() },
            PolicySettings { bound_pacing_mbps: Some(f64::NAN), ..PolicySettings::default() },
            PolicySettings { enable_ratio: f64::NAN, ..PolicySettings::default() },
            PolicySettings { cut_ratio: 0.5, ..PolicySettings::default() },
            PolicySettings { release_ratio: Some(6.5), ..PolicySettings::default() },
            PolicySettings { bandwidth_max_mbps: Some(0.0), ..PolicySettings::default() },
            PolicySettings { bandwidth_max_mbps: Some(f64::INFINITY), ..PolicySettings::default() },
            PolicySettings { segment_bytes: 0, ..PolicySettings::default() },
            PolicySettings { maximum_terminals: 0, ..PolicySettings::default() },
            PolicySettings { enable_excess_ms: Some(-1.0), ..PolicySettings::default() },
            PolicySettings { count_segments: Some(vec![0]), ..PolicySettings::default() },
            PolicySettings { count_segments: Some(vec![9; 65]), ..PolicySettings::default() },
            PolicySettings { count_rtt_ms: 0.0, ..PolicySettings::default() },
            PolicySettings { adjust_s: 0.1, ..PolicySettings::default() },
            PolicySettings { window_rows: Some(vec![Row::from([1, 9, 1])]), ..PolicySettings::default() },
            PolicySettings {
                window_rows: Some([[0, 9, 1], [0, 8, 1]].map(Row::from).to_vec()),
                ..PolicySettings::default()
            },
            PolicySettings { window_rows: Some(vec![Row::from([0, 9, 10])]), ..PolicySettings::default() },
            PolicySettings { window_rows: Some(vec![Row::from([0, 0, 0])]), ..PolicySettings::default() },
            PolicySettings { window_rows: Some(Vec::new()), ..PolicySettings::default() },
            PolicySettings { count_segments: Some(Vec::new()), ..PolicySettings::default() },
            PolicySettings { access_queue_packets: 0, ..PolicySettings::default() },
            PolicySettings { segments_per_ack: 0, ..PolicySettings::default() },
            PolicySettings { policy: PolicyName::External, ..PolicySettings::default() },
            PolicySettings { command_deadline_ms: Some(0), ..PolicySettings::default() },
            PolicySettings { command_user: Some(String::new()), ..PolicySettings::default() },
        ];
        for settings in nonsense {
            let error = rejected(&settings);
            let key = error.split(": ").nth(1).expect("a key");
            assert!(PolicySettings::section().key(key).is_some(), "{error}");
        }
    }

    #[test]
    #[should_panic(expected = "valid settings only")]
    fn a_policy_is_not_built_from_nonsense() {
        let _ = PolicySettings { segment_bytes: 0, ..PolicySettings::default() }.build();
    }
}
