//! A measure: one number of a result, by an expression over `result.json`.
//!
//! ```text
//! aggregate_goodput_mbps                        a number
//! rtt_ms.mean                                   a number in a table
//! access.air_shares.collision
//! mean(flows.goodput_mbps)                      of a list, one number: mean, min, max, sum, median, count or jain
//! mean(flows(block=1).goodput_mbps)             of those flows only that belong to hosts of the second [[hosts]] block
//! max(flows(direction="down", policy="none").rtt_ms.p95)
//! policies.hosts[0].terminals_max               of one element, counted from 0
//! search.value                                  of a point that was found by search: the value, and
//! search.met, search.tried                      whether it meets the conditions (1 or 0), and how many were tried
//! flows[0].goodput_mbps / flows[1].goodput_mbps
//! ```
//!
//! The expressions are those of [`crate::formula`]; they see a [`Part`].
//!
//! *What it leaves out*: numbers absent from results, such as a value at a moment.

use crate::formula::{Formula, PLAIN};
use crate::part::Part;
use crate::problem::{Kind, Problem};
use crate::search::Found;
use lasthop_scenario::{
    AccessResult, Build, CellResult, ChangeKind, ConvergenceResult, DatagramResult, DeliveryResult, Direction,
    FlowResult, HostPolicyResult, HostsKind, LastLinkResult, Lateness, LinkResult, NodeResult, PoliciesResult,
    RoamResult, RunResult, SCHEMA_VERSION, SlowdownResult, StateShares, StationResult, UsedKernel, VideoResult,
};
use minijinja::value::Value;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

/// One number of a result.
#[derive(Clone, Debug)]
pub struct Measure(Formula);

/// Labels of common measures, for axes and column headings.
const LABELS: &[(&str, &str)] = &[
    ("aggregate_goodput_mbps", "aggregate goodput (Mb/s)"),
    ("mean(flows.goodput_mbps)", "mean goodput of a connection (Mb/s)"),
    ("jain_index", "Jain's index"),
    ("starved_flows", "starved flows"),
    ("fairness_flows", "flows that were always busy"),
    ("messages.took_ms.mean", "delay of messages, mean (ms)"),
    ("messages.took_ms.p95", "delay of messages, 95th percentile (ms)"),
    ("messages.undelivered", "messages never delivered"),
    ("transfers.took_ms.mean", "completion time of transfers, mean (ms)"),
    ("transfers.took_ms.p95", "completion time of transfers, 95th percentile (ms)"),
    ("transfers.undelivered", "transfers never completed"),
    ("transfers.slowdown.p50", "slowdown of transfers, median"),
    ("transfers.slowdown.p99", "slowdown of transfers, 99th percentile"),
    ("rtt_ms.min", "smoothed RTT, least (ms)"),
    ("rtt_ms.mean", "smoothed RTT, mean (ms)"),
    ("rtt_ms.p50", "smoothed RTT, median (ms)"),
    ("rtt_ms.p95", "smoothed RTT, 95th percentile (ms)"),
    ("rtt_ms.p99", "smoothed RTT, 99th percentile (ms)"),
    ("rtt_ms.max", "smoothed RTT, greatest (ms)"),
    ("rtt_per_ack_ms.mean", "RTT of each ACK, mean (ms)"),
    ("rtt_per_ack_ms.p50", "RTT of each ACK, median (ms)"),
    ("rtt_per_ack_ms.p95", "RTT of each ACK, 95th percentile (ms)"),
    ("rtt_per_ack_ms.p99", "RTT of each ACK, 99th percentile (ms)"),
    ("utilization", "share of the time in which the medium is busy"),
    ("access.downlink_drops", "packets dropped at the access point's queue"),
    ("access.downlink_marks", "packets marked at the access point's queue"),
    ("access.downlink_queue_mean", "access point's queue, mean (packets)"),
    ("access.collisions", "collisions"),
    ("mean(flows.cwnd_mean)", "congestion window, mean (segments)"),
    ("search.value", "value found by search"),
    ("sum(flows.timeouts)", "retransmission timeouts"),
    ("sum(flows.retransmits)", "segments sent again"),
];

/// A result with every measure, and the fields of a search. It defines which measures exist.
static EXAMPLE: LazyLock<Part> = LazyLock::new(|| {
    let found = Found { key: String::new(), value: 1.0, met: true, tried: Vec::new() };
    Part::whole(json_of(&whole_result(), Some(&found)), true)
});

const ACCEPTED: &str = "the path of a number in result.json such as rtt_ms.mean, or mean(flows(block=0).goodput_mbps)";

impl Measure {
    /// Reads a measure and checks that results have it.
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        if let Some(today) = respelled(text) {
            return Err(Problem::new(format!("{text} picks elements of a list in brackets"), today));
        }
        let syntax = |problem: Problem| Problem { accepted: ACCEPTED.to_owned(), ..problem };
        let formula = Formula::new(text.trim().to_owned()).map_err(syntax)?;
        if let Some(name) = formula.unknown_name(|name| EXAMPLE.has(name)) {
            let known: Vec<&str> =
                EXAMPLE.names().into_iter().chain(PLAIN.iter().map(|plain| plain.function.name)).collect();
            return Err(Problem::unknown(format!("there is no {name} in a result"), name, &known));
        }
        match formula.of(Value::from_object(EXAMPLE.clone())) {
            Err(problem) if problem.kind != Kind::NotFinite => Err(problem),
            _ => Ok(Self(formula)),
        }
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Its axis label, with the unit.
    pub fn label(&self) -> String {
        label_of(self.as_str()).to_owned()
    }

    /// Whether it is a number of a search and not of a run.
    pub(crate) fn is_of_searches(&self) -> bool {
        self.0.names(SEARCH)
    }

    /// Its value in one result; an error if the result has no such number.
    pub(crate) fn of(&self, run: &RunResult) -> Result<f64, String> {
        self.of_run(&WholeRun::new(run, None))
    }

    /// Its value in one run of a point.
    pub(crate) fn of_run(&self, run: &WholeRun) -> Result<f64, String> {
        match self.0.unknown_name(|name| run.0.has(name)) {
            Some(SEARCH) => return Err(format!("{self} is of points that are found by search")),
            Some(name) => return Err(format!("{name} has no value in this result")),
            None => {}
        }
        self.0.of(Value::from_object(run.0.clone())).map_err(|problem| match problem.kind {
            Kind::Nothing => format!("{self} is of nothing: the result has none of these"),
            Kind::Wrong | Kind::NotFinite => problem.problem,
        })
    }
}

impl PartialEq for Measure {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

/// The name of a search's outcome in expressions.
const SEARCH: &str = "search";

/// A result converted once for several measures.
pub(crate) struct WholeRun(Part);

impl WholeRun {
    /// The result of a run, and of the search that found its point, if any.
    pub(crate) fn new(run: &RunResult, found: Option<&Found>) -> Self {
        Self(Part::whole(json_of(run, found), false))
    }
}

fn json_of(run: &RunResult, found: Option<&Found>) -> Json {
    let mut whole = serde_json::to_value(run).expect("a result is plain data");
    if let Some(Found { value, met, tried, .. }) = found {
        whole[SEARCH] = json!({ "value": value, "met": u8::from(*met), "tried": tried.len() });
    }
    whole
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The axis label of a measure, by its text.
pub fn label_of(measure: &str) -> &str {
    LABELS.iter().find(|(known, _)| *known == measure).map_or(measure, |(_, label)| label)
}

/// Converts the old spelling `flows[direction=up]` to today's; `None` if the text is not in the old spelling.
fn respelled(text: &str) -> Option<String> {
    let condition = |condition: &str| {
        let (field, word) = condition.split_once('=')?;
        let word = word.trim().trim_matches(['"', '\'']);
        let word = if word.parse::<f64>().is_ok() { word.to_owned() } else { format!("\"{word}\"") };
        Some(format!("{}={word}", field.trim()))
    };
    let (mut today, mut rest, mut is_of_before) = (String::new(), text, false);
    while let Some((before, (inside, after))) =
        rest.split_once('[').and_then(|(before, after)| Some((before, after.split_once(']')?)))
    {
        let conditions = inside.split(',').map(condition).collect::<Option<Vec<String>>>();
        is_of_before |= conditions.is_some() || inside.trim() == "*";
        today += before;
        today += &match conditions {
            Some(conditions) => format!("({})", conditions.join(", ")),
            None if inside.trim() == "*" => String::new(),
            None => format!("[{inside}]"),
        };
        rest = after;
    }
    is_of_before.then(|| today + rest)
}

/// An example of a result that has every number a result can have: which there are, and of which kind.
pub fn whole_result() -> RunResult {
    let spread = lasthop_measure::distribution(&[1.0]);
    let datagrams = DatagramResult {
        sent: 1,
        received: 1,
        lost_share: Some(0.0),
        one_way_ms: spread,
        round_trip_ms: spread,
        jitter_ms: Some(0.0),
        ..DatagramResult::default()
    };
    let video =
        VideoResult { chunks: 1, mean_bit_rate_mbps: Some(1.0), startup_s: Some(1.0), ..VideoResult::default() };
    let flow = FlowResult {
        id: 0,
        host: 0,
        direction: Direction::Up,
        kind: "bulk".into(),
        congestion_control: Some("cubic".into()),
        policy: "none".into(),
        always_busy: true,
        goodput_mbps: 1.0,
        rtt_ms: spread,
        rtt_per_ack_ms: spread,
        cwnd_mean: Some(1.0),
        state_shares: Some(StateShares::default()),
        retransmits: 0,
        timeouts: Some(0),
        delivered_ce: 0,
        controlled_share: 0.0,
        started_s: 0.0,
        last_link: Some(LastLinkResult { initial_segments: Some(1), ..LastLinkResult::default() }),
        messages: 1,
        undelivered: 1,
        message_ms: spread,
        datagrams: Some(datagrams),
        video: Some(video),
    };
    let deliveries = Some(DeliveryResult { delivered: 1, undelivered: 0, took_ms: spread, slowdown: spread });
    let class = |slowdown| SlowdownResult { above_bytes: 0, up_to_bytes: Some(1), transfers: 1, slowdown };
    let station = StationResult {
        host: 0,
        up_phy_rate_mbps: Some(1.0),
        down_phy_rate_mbps: Some(1.0),
        up_retries: 0,
        down_retries: 0,
        up_aggregate_frames: Some(1.0),
        up_air_share: Some(0.1),
        down_air_share: Some(0.1),
        down_aggregate_frames: Some(1.0),
    };
    let link = LinkResult {
        place: String::new(),
        from: String::new(),
        to: String::new(),
        sent_mbps: 1.0,
        packets: 1,
        utilization: 1.0,
        queue_mean: 1.0,
        queue_p95: 1.0,
        queue_max: 1,
        queue_drops: 0,
        queue_marks: 0,
        losses: 0,
    };
    let shares = ["idle", "contention", "success", "broadcast", "collision", "error"];
    let air_shares: BTreeMap<String, f64> = shares.iter().map(|name| ((*name).to_owned(), 0.0)).collect();
    let cell = CellResult {
        name: String::new(),
        goodput_mbps: 1.0,
        downlink_drops: 0,
        left_behind: 0,
        downlink_queue_mean: 1.0,
        downlink_queue_p95: 1.0,
        collisions: 0,
        air_shares: air_shares.clone(),
        neighbours_share: 0.0,
    };
    let node =
        NodeResult { name: String::new(), cell: 0, at_m: None, hears: vec![1], senses: vec![1], disturbed_by: vec![1] };
    let roam =
        RoamResult { host: 0, at_s: 1.0, outage_ms: 1.0, from: 0, to: 0, at_m: Some((1.0, 1.0)), silent_ms: Some(1.0) };
    let host = HostPolicyResult { control_enabled_at_s: Some(1.0), ..HostPolicyResult::default() };
    RunResult {
        schema_version: SCHEMA_VERSION,
        scenario: json!({ "hosts": [{}] }),
        hosts_kind: HostsKind::Simulated,
        seed: 1,
        build: Build::default(),
        duration_s: 1.0,
        warmup_s: 0.0,
        aggregate_goodput_mbps: 1.0,
        fairness_flows: 1,
        jain_index: Some(1.0),
        starved_flows: lasthop_measure::starved_flows(&[1.0]),
        rtt_ms: spread,
        rtt_per_ack_ms: spread,
        messages: deliveries.map(|messages| DeliveryResult { slowdown: None, ..messages }),
        transfers: deliveries,
        slowdowns: spread.map(class).into_iter().collect(),
        pings: Some(datagrams),
        datagrams: Some(datagrams),
        videos: Some(video),
        utilization: 1.0,
        access: AccessResult {
            downlink_queue_mean: Some(1.0),
            downlink_queue_p95: Some(1.0),
            downlink_queue_max: Some(1),
            air_shares,
            stations: vec![station],
            broadcast_losses: Some(0),
            to_all_share: Some(0.0),
            ..AccessResult::default()
        },
        cells: vec![cell],
        nodes: vec![node],
        roams: vec![roam],
        links: vec![link],
        flows: vec![flow],
        convergence: vec![ConvergenceResult {
            at_s: 1.0,
            kind: ChangeKind::Arrival,
            busy_hosts: 2,
            lasts_s: 1.0,
            equal_after_s: 1.0,
            equal_share: 1.0,
        }],
        policies: PoliciesResult { control_enabled_at_s: Some(1.0), hosts: vec![host], ..PoliciesResult::default() },
        used: UsedKernel::default(),
        wall_s: 1.0,
        events: 1,
        simulated_s_per_wall_s: 1.0,
        lateness_us: Some(Lateness { p50: 1.0, p99: 1.0, max: 1.0 }),
        machine_turnaround_us: Some(Lateness { p50: 1.0, p99: 1.0, max: 1.0 }),
        valid: true,
        invalid_reasons: Vec::new(),
        invalid_kinds: Default::default(),
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, run: &RunResult) -> Result<f64, String> {
        Measure::parse(text).unwrap_or_else(|no| panic!("{text}: {no}")).of(run)
    }

    fn refused(text: &str) -> String {
        Measure::parse(text).expect_err(text).to_string()
    }

    /// Two hosts of a first block that upload 4 and 6 Mb/s, one of a second that downloads 2.
    fn run() -> RunResult {
        let mut run = whole_result();
        run.scenario = json!({ "hosts": [{ "count": 2 }, { "count": 1 }] });
        let flow =
            |host: u16, direction, goodput_mbps| FlowResult { host, direction, goodput_mbps, ..run.flows[0].clone() };
        run.flows = vec![flow(0, Direction::Up, 4.0), flow(1, Direction::Up, 6.0), flow(2, Direction::Down, 2.0)];
        run.aggregate_goodput_mbps = 12.0;
        run
    }

    #[test]
    fn a_number_is_found_by_its_path() {
        assert_eq!(of("aggregate_goodput_mbps", &run()), Ok(12.0));
        assert_eq!(of("rtt_ms.p95", &run()), Ok(1.0));
        assert_eq!(of("access.air_shares.collision", &run()), Ok(0.0));
        assert_eq!(of("flows[1].goodput_mbps", &run()), Ok(6.0));
    }

    #[test]
    fn several_numbers_become_one() {
        for (reduce, value) in
            [("mean", 4.0), ("min", 2.0), ("max", 6.0), ("sum", 12.0), ("median", 4.0), ("count", 3.0)]
        {
            assert_eq!(of(&format!("{reduce}(flows.goodput_mbps)"), &run()), Ok(value), "{reduce}");
        }
        // (4 + 6 + 2)² / (3 · (16 + 36 + 4)) = 144/168.
        assert!((of("jain(flows.goodput_mbps)", &run()).expect("an index") - 6.0 / 7.0).abs() < 1e-12);
    }

    #[test]
    fn flows_are_picked_by_block_and_by_what_they_are() {
        assert_eq!(of("mean(flows(block=0).goodput_mbps)", &run()), Ok(5.0));
        assert_eq!(of("sum(flows(block=1).goodput_mbps)", &run()), Ok(2.0));
        assert_eq!(of("mean(flows(direction='up', host=1).goodput_mbps)", &run()), Ok(6.0));
        let nothing = of("mean(flows(block=7).goodput_mbps)", &run()).expect_err("no such block");
        assert!(nothing.contains("of nothing"), "{nothing}");
    }

    #[test]
    fn what_was_not_measured_is_no_number() {
        let mut run = run();
        run.jain_index = None;
        run.flows[1].timeouts = None;
        assert_eq!(of("jain_index", &run), Err("jain_index has no value in this result".into()));
        assert_eq!(of("sum(flows.timeouts)", &run), Err("flows[1].timeouts has no value in this result".into()));
        run.rtt_ms = None;
        assert_eq!(of("rtt_ms.mean", &run), Err("rtt_ms has no value in this result".into()));
        run.utilization = f64::NAN;
        // JSON has no such number. It cannot be read either.
        assert!(of("utilization", &run).is_err());
    }

    #[test]
    fn a_path_that_no_result_has_names_what_there_is() {
        let message = refused("agregate_goodput_mbps");
        assert!(message.contains("there is no agregate_goodput_mbps in a result"), "{message}");
        assert!(message.contains("did you mean aggregate_goodput_mbps?") && message.contains("rtt_ms"), "{message}");
        let message = refused("access.downlink_drop");
        assert!(message.contains("did you mean access.downlink_drops?"), "{message}");
        assert!(refused("rtt_ms").contains("accepted: rtt_ms.max, rtt_ms.mean"), "{}", refused("rtt_ms"));
        assert!(refused("events.p50").contains("`events.p50` asks a number or a word for a part of it"));
        assert!(refused("mean(flows.events.p50)").contains("there is no events in flows of a result"));
        assert!(refused("mean(flows.id.p50)").contains("flows.id in a result has no parts"));
        assert!(refused("hosts_kind").contains("no number") && refused("valid").contains("no number"));
    }

    #[test]
    fn a_list_needs_a_way_to_one_number_and_a_number_needs_none() {
        let message = refused("flows.goodput_mbps");
        assert!(message.contains("accepted: mean(flows.goodput_mbps), min(flows.goodput_mbps)"), "{message}");
        assert!(
            refused("mean(flows)")
                .contains("flows in a result is a table, not a number; accepted: flows.block, flows.controlled_share")
        );
        assert!(refused("average(flows.goodput_mbps)").contains("mean, min, max"));
        assert!(refused("at('jain_index')").contains("there is no at in a result"));
        assert!(refused("mean(flows(flow=2).goodput_mbps)").contains("cannot be picked by flow"));
        assert!(refused("rtt_ms[0].mean").contains("no list"));
        assert!(refused("flows(3).events").contains("flows() takes fields and their values"));
        assert!(refused("mean(flows(direction=up).goodput_mbps)").contains("there is no up in a result"));
        for nonsense in ["", "rtt_ms..mean", "flows[", "a b"] {
            let message = refused(nonsense);
            assert!(message.contains("cannot be computed") && message.contains("accepted: the path of"), "{message}");
        }
    }

    #[test]
    fn measures_are_expressions() {
        assert_eq!(of("flows[1].goodput_mbps / flows[0].goodput_mbps", &run()), Ok(1.5));
        assert_eq!(of("count(flows(direction='up'))", &run()), Ok(2.0));
        assert_eq!(of("1 if jain_index > 0.9 else 0", &run()), Ok(1.0));
        assert_eq!(of("1 / starved_flows", &run()), Err("`1 / starved_flows` gives no finite number".into()));
    }

    #[test]
    fn the_spelling_of_before_is_refused_with_todays() {
        for (before, today) in [
            ("mean(flows[direction=up, block=1].rtt_ms.p95)", "mean(flows(direction=\"up\", block=1).rtt_ms.p95)"),
            ("jain(flows[*].goodput_mbps)", "jain(flows.goodput_mbps)"),
            ("sum(links[place=\"link_0_back\"].queue_drops)", "sum(links(place=\"link_0_back\").queue_drops)"),
        ] {
            let problem = Measure::parse(before).expect_err(before);
            assert_eq!(problem.accepted, today);
            Measure::parse(today).unwrap_or_else(|no| panic!("{today}: {no}"));
        }
    }

    #[test]
    fn every_label_is_of_a_measure() {
        for (text, label) in LABELS {
            assert_eq!(Measure::parse(text).unwrap_or_else(|no| panic!("{text}: {no}")).label(), *label);
        }
        assert_eq!(label_of("events"), "events");
    }
}
