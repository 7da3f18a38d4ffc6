//! A measure: one number of a result, by its path in `result.json`.
//!
//! ```text
//! aggregate_goodput_mbps                        a number
//! rtt_ms.mean                                   a number in a table
//! access.air_shares.collision
//! mean(flows.goodput_mbps)                      of a list, one number: mean, min, max, sum, median, count or jain
//! mean(flows[block=1].goodput_mbps)             of those flows only that belong to hosts of the second [[hosts]] block
//! max(flows[direction=down, policy=none].rtt_ms.p95)
//! max(flows[kind=interactive].message_ms.p95)
//! policies.hosts[0].terminals_max               of one element, counted from 0
//! search.value                                  of a point that was found by search: the value, and
//! search.met, search.tried                      whether it meets the conditions (1 or 0), and how many were tried
//! ```
//!
//! A filter compares a field with a word or a number; `block` is the `[[hosts]]` block of the element's host.
//!
//! *What it leaves out*: anything that is in no result, such as a value at a moment; arithmetic, which claims have.

use crate::search::Found;
use lasthop_keys::nearest;
use lasthop_measure::{jain_index, mean, quantile};
use lasthop_scenario::Direction;
use lasthop_scenario::{
    AccessResult, Build, FlowResult, HostPolicyResult, HostsKind, LastLinkResult, Lateness, LinkResult, PoliciesResult,
    RunResult, SCHEMA_VERSION, StationResult,
};
use lasthop_scenario::{ChangeKind, ConvergenceResult, DeliveryResult, StateShares};
use serde_json::Value;
use std::fmt;
use std::sync::LazyLock;

/// One number of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    text: String,
    source: Source,
}

/// What the number is of.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    /// The result of a run.
    Run { reduce: Option<Reduce>, steps: Vec<Step> },
    /// What a search found, by its place among [`OF_SEARCHES`].
    Search(usize),
}

type OfSearch = fn(&Found) -> f64;

/// The numbers of a search.
const OF_SEARCHES: [(&str, OfSearch); 3] = [
    ("search.value", |found| found.value),
    ("search.met", |found| if found.met { 1.0 } else { 0.0 }),
    ("search.tried", |found| found.tried.len() as f64),
];

/// Many numbers to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduce {
    Mean,
    Min,
    Max,
    Sum,
    Median,
    Count,
    Jain,
}

const REDUCES: [(&str, Reduce); 7] = [
    ("mean", Reduce::Mean),
    ("min", Reduce::Min),
    ("max", Reduce::Max),
    ("sum", Reduce::Sum),
    ("median", Reduce::Median),
    ("count", Reduce::Count),
    ("jain", Reduce::Jain),
];

#[derive(Clone, Debug, PartialEq)]
struct Step {
    name: String,
    pick: Pick,
}

/// Which elements of a list.
#[derive(Clone, Debug, PartialEq)]
enum Pick {
    All,
    One(usize),
    Those(Vec<(String, String)>),
}

/// What is wrong with a measure or an expression, and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) kind: Kind,
    pub(crate) problem: String,
    pub(crate) accepted: String,
    pub(crate) did_you_mean: Option<String>,
}

/// What kind of problem it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It can never be right.
    Wrong,
    /// It is no finite number, and with other figures may well be one.
    NotFinite,
}

impl Problem {
    pub(crate) fn new(problem: impl Into<String>, accepted: impl Into<String>) -> Self {
        Self { kind: Kind::Wrong, problem: problem.into(), accepted: accepted.into(), did_you_mean: None }
    }

    /// There is no such name among those that there are.
    pub(crate) fn unknown(problem: impl Into<String>, name: &str, known: &[&str]) -> Self {
        let did_you_mean = nearest(name, known).map(str::to_owned);
        Self { did_you_mean, ..Self::new(problem, known.join(", ")) }
    }
}

impl std::error::Error for Problem {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        if let Some(meant) = &self.did_you_mean {
            write!(f, "; did you mean {meant}?")?;
        }
        write!(f, "; accepted: {}", self.accepted)
    }
}

/// How measures that everybody knows are called beside an axis and above a column.
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
    ("rtt_ms.min", "RTT, least (ms)"),
    ("rtt_ms.mean", "RTT, mean (ms)"),
    ("rtt_ms.p50", "RTT, median (ms)"),
    ("rtt_ms.p95", "RTT, 95th percentile (ms)"),
    ("rtt_ms.p99", "RTT, 99th percentile (ms)"),
    ("rtt_ms.max", "RTT, greatest (ms)"),
    ("utilization", "share of the time in which the medium is busy"),
    ("access.downlink_drops", "packets dropped at the access point's queue"),
    ("access.downlink_queue_mean", "access point's queue, mean (packets)"),
    ("access.collisions", "collisions"),
    ("mean(flows.cwnd_mean)", "congestion window, mean (segments)"),
    ("search.value", "value found by search"),
    ("sum(flows.timeouts)", "retransmission timeouts"),
    ("sum(flows.retransmits)", "segments sent again"),
];

impl Measure {
    /// Reads a measure, and finds out whether results have it.
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let text = text.trim();
        if text.starts_with("search.") {
            return Self::of_search(text);
        }
        let (reduce, path) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((word, path)) => (Some(reduce(word.trim())?), path.trim()),
            None => (None, text),
        };
        let steps = steps(path)?;
        check(text, reduce, &steps)?;
        Ok(Self { text: text.to_owned(), source: Source::Run { reduce, steps } })
    }

    fn of_search(text: &str) -> Result<Self, Problem> {
        let names = OF_SEARCHES.map(|(name, _)| name);
        let place = names.iter().position(|name| *name == text);
        place
            .map(|place| Self { text: text.to_owned(), source: Source::Search(place) })
            .ok_or_else(|| Problem::unknown(format!("there is no {text} of a search"), text, &names))
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// As it stands beside an axis, with its unit.
    pub fn label(&self) -> String {
        label_of(&self.text).to_owned()
    }

    /// Whether it is of what a search found, and not of a run.
    pub(crate) fn is_of_searches(&self) -> bool {
        matches!(self.source, Source::Search(_))
    }

    /// Of one result; an error if it has no such number.
    pub(crate) fn of(&self, run: &RunResult) -> Result<f64, String> {
        self.of_run(&WholeRun::new(run), None)
    }

    /// Of one run of a point, and of the search that found the point, if one did.
    pub(crate) fn of_run(&self, run: &WholeRun, found: Option<&Found>) -> Result<f64, String> {
        let (reduce, steps) = match &self.source {
            Source::Run { reduce, steps } => (*reduce, steps),
            Source::Search(place) => {
                let number = found.map(OF_SEARCHES[*place].1);
                return number.ok_or_else(|| format!("{self} is of points that are found by search"));
            }
        };
        let found = walk(&run.whole, steps, &run.blocks, "").map_err(|no| no.problem)?;
        let numbers = found.iter().map(|(path, value)| number(path, value)).collect::<Result<Vec<f64>, String>>();
        let number = match reduce {
            None => numbers?.first().copied(),
            // How many there are can be told of anything.
            Some(Reduce::Count) => Some(found.len() as f64),
            Some(reduce) => reduced(reduce, &numbers?),
        };
        match number {
            Some(number) if number.is_finite() => Ok(number),
            Some(number) => Err(format!("{self} is {number}")),
            None => Err(format!("{self} is of nothing: the result has none of these")),
        }
    }
}

/// A result as measures look at it: several of them are taken of each.
pub(crate) struct WholeRun {
    whole: Value,
    blocks: Vec<usize>,
}

impl WholeRun {
    pub(crate) fn new(run: &RunResult) -> Self {
        Self { whole: serde_json::to_value(run).expect("a result is plain data"), blocks: blocks(run) }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Follows the path in a result that has everything.
fn check(text: &str, reduce: Option<Reduce>, steps: &[Step]) -> Result<(), Problem> {
    static WHOLE: LazyLock<Value> =
        LazyLock::new(|| serde_json::to_value(whole_result()).expect("a result is plain data"));
    let mut at = &*WHOLE;
    let mut path = String::new();
    let mut many = false;
    for step in steps {
        let table = at.as_object().ok_or_else(|| {
            Problem::new(format!("{path} in a result has no parts"), format!("{path} without .{}", step.name))
        })?;
        at = table.get(&step.name).ok_or_else(|| unknown(&path, step, table))?;
        path = joined(&path, &step.name);
        at = match (at, &step.pick) {
            (Value::Array(elements), pick) => {
                many |= !matches!(pick, Pick::One(_));
                let element = elements.first().expect("the result that has everything has one of each");
                check_filter(&path, pick, element)?;
                element
            }
            (_, Pick::All) => at,
            _ => {
                return Err(Problem::new(format!("{path} in a result is no list"), format!("{path} without [...]")));
            }
        };
    }
    let counts = reduce == Some(Reduce::Count);
    match at {
        Value::Object(table) if !counts => {
            let parts: Vec<String> = table.keys().map(|key| joined(&path, key)).collect();
            Err(Problem::new(format!("{path} in a result is a table, not a number"), parts.join(", ")))
        }
        Value::Number(_) | Value::Object(_) => match (many, reduce) {
            (true, None) => {
                let ways: Vec<String> = REDUCES.iter().map(|(word, _)| format!("{word}({text})")).collect();
                Err(Problem::new(format!("{text} is a number of each of several"), ways.join(", ")))
            }
            (false, Some(_)) => Err(Problem::new(format!("{path} is one number already"), path.clone())),
            _ => Ok(()),
        },
        _ => Err(Problem::new(format!("{path} in a result is no number"), "the path of a number in result.json")),
    }
}

/// How a measure stands beside an axis, by its text.
pub fn label_of(measure: &str) -> &str {
    LABELS.iter().find(|(known, _)| *known == measure).map_or(measure, |(_, label)| label)
}

fn reduce(word: &str) -> Result<Reduce, Problem> {
    let words: Vec<&str> = REDUCES.iter().map(|(word, _)| *word).collect();
    let known = REDUCES.iter().find(|(known, _)| *known == word).map(|(_, reduce)| *reduce);
    known.ok_or_else(|| Problem::unknown(format!("{word} is no way to make one number of several"), word, &words))
}

/// The steps of `flows[block=1].goodput_mbps`; dots inside brackets do not part steps.
fn steps(path: &str) -> Result<Vec<Step>, Problem> {
    const ACCEPTED: &str = "dotted paths in result.json such as rtt_ms.mean, or mean(flows[block=0].goodput_mbps)";
    let mut parts: Vec<String> = vec![String::new()];
    let mut inside = false;
    for letter in path.chars() {
        match letter {
            '[' => inside = true,
            ']' => inside = false,
            _ => {}
        }
        if letter == '.' && !inside {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
    }
    let step = |part: &String| {
        let wrong = || Problem::new(format!("\"{path}\" is no path"), ACCEPTED);
        let (name, pick) = match part.split_once('[') {
            None => (part.trim(), Pick::All),
            Some((name, rest)) => (name.trim(), pick(rest.strip_suffix(']').ok_or_else(wrong)?).ok_or_else(wrong)?),
        };
        let legal = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if name.is_empty() || !name.chars().all(legal) {
            return Err(wrong());
        }
        Ok(Step { name: name.to_owned(), pick })
    };
    parts.iter().map(step).collect()
}

fn pick(inside: &str) -> Option<Pick> {
    let inside = inside.trim();
    if inside == "*" {
        return Some(Pick::All);
    }
    if let Ok(index) = inside.parse() {
        return Some(Pick::One(index));
    }
    let conditions = inside.split(',').map(|condition| {
        let (field, word) = condition.split_once('=')?;
        let (field, word) = (field.trim(), word.trim().trim_matches('"'));
        (!field.is_empty() && !word.is_empty()).then(|| (field.to_owned(), word.to_owned()))
    });
    conditions.collect::<Option<Vec<_>>>().map(Pick::Those)
}

fn check_filter(path: &str, pick: &Pick, element: &Value) -> Result<(), Problem> {
    let Pick::Those(conditions) = pick else { return Ok(()) };
    let plain = |value: &Value| value.is_string() || value.is_number();
    let mut fields: Vec<&str> = element
        .as_object()
        .map(|table| table.iter().filter(|(_, value)| plain(value)).map(|(field, _)| field.as_str()).collect())
        .unwrap_or_default();
    if fields.contains(&"host") {
        fields.push("block");
    }
    match conditions.iter().find(|(field, _)| !fields.contains(&field.as_str())) {
        None => Ok(()),
        Some((field, _)) => Err(Problem::unknown(format!("{path} cannot be picked by {field}"), field, &fields)),
    }
}

fn unknown(path: &str, step: &Step, table: &serde_json::Map<String, Value>) -> Problem {
    let usable = |(key, value): &(&String, &Value)| {
        !value.is_string() && !value.is_boolean() && !["scenario", "schema_version"].contains(&key.as_str())
    };
    let names: Vec<&str> = table.iter().filter(usable).map(|(key, _)| key.as_str()).collect();
    let within = if path.is_empty() { "a result".to_owned() } else { format!("{path} of a result") };
    let accepted: Vec<String> = names.iter().map(|name| joined(path, name)).collect();
    let did_you_mean = nearest(&step.name, &names).map(|name| joined(path, name));
    Problem { did_you_mean, ..Problem::new(format!("there is no {} in {within}", step.name), accepted.join(", ")) }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The `[[hosts]]` block of each host, by its number.
fn blocks(run: &RunResult) -> Vec<usize> {
    let counts = run.scenario["hosts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let count = |block: &Value| block["count"].as_u64().unwrap_or(1) as usize;
    counts.iter().enumerate().flat_map(|(index, block)| std::iter::repeat_n(index, count(block))).collect()
}

/// Every value at the end of the path, each with the path to it.
fn walk<'a>(
    value: &'a Value,
    steps: &[Step],
    blocks: &[usize],
    path: &str,
) -> Result<Vec<(String, &'a Value)>, Problem> {
    let Some((step, rest)) = steps.split_first() else { return Ok(vec![(path.to_owned(), value)]) };
    let here = joined(path, &step.name);
    let none = || Problem::new(format!("{here} has no value in this result"), "");
    let inner = value.get(&step.name).filter(|inner| !inner.is_null()).ok_or_else(none)?;
    let Value::Array(elements) = inner else { return walk(inner, rest, blocks, &here) };
    let mut found = Vec::new();
    for (index, element) in elements.iter().enumerate() {
        let picked = match &step.pick {
            Pick::All => true,
            Pick::One(wanted) => *wanted == index,
            Pick::Those(conditions) => conditions.iter().all(|(field, word)| meets(element, field, word, blocks)),
        };
        if picked {
            found.extend(walk(element, rest, blocks, &format!("{here}[{index}]"))?);
        }
    }
    Ok(found)
}

fn meets(element: &Value, field: &str, word: &str, blocks: &[usize]) -> bool {
    if field == "block" {
        let host = element["host"].as_u64().and_then(|host| blocks.get(host as usize));
        return host.is_some_and(|block| word.parse() == Ok(*block));
    }
    match &element[field] {
        Value::String(text) => text == word,
        Value::Number(number) => number.as_f64() == word.parse().ok(),
        _ => false,
    }
}

fn number(path: &str, value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| format!("{path} has no value in this result"))
}

fn reduced(reduce: Reduce, numbers: &[f64]) -> Option<f64> {
    if numbers.is_empty() {
        return None;
    }
    match reduce {
        Reduce::Mean => mean(numbers),
        Reduce::Min => Some(numbers.iter().copied().fold(f64::INFINITY, f64::min)),
        Reduce::Max => Some(numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        Reduce::Sum => Some(numbers.iter().sum()),
        Reduce::Median => quantile(numbers, 0.5),
        Reduce::Count => Some(numbers.len() as f64),
        Reduce::Jain => jain_index(numbers),
    }
}

/// A result in which nothing is missing, to check paths against.
fn whole_result() -> RunResult {
    let spread = lasthop_measure::distribution(&[1.0]);
    let flow = FlowResult {
        id: 0,
        host: 0,
        direction: Direction::Up,
        kind: "bulk".into(),
        congestion_control: "cubic".into(),
        policy: "none".into(),
        always_busy: true,
        goodput_mbps: 1.0,
        rtt_ms: spread,
        cwnd_mean: Some(1.0),
        state_shares: StateShares::default(),
        retransmits: 0,
        timeouts: Some(0),
        controlled_share: 0.0,
        started_s: 0.0,
        last_link: Some(LastLinkResult { initial_segments: Some(1), ..LastLinkResult::default() }),
        messages: 1,
        undelivered: 1,
        message_ms: spread,
    };
    let deliveries = Some(DeliveryResult { delivered: 1, undelivered: 0, took_ms: spread });
    let station = StationResult {
        host: 0,
        up_phy_rate_mbps: 1.0,
        down_phy_rate_mbps: 1.0,
        up_retries: 0,
        down_retries: 0,
        up_aggregate_frames: Some(1.0),
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
        losses: 0,
    };
    let shares = ["idle", "contention", "success", "broadcast", "collision", "error"];
    let air_shares = shares.iter().map(|name| ((*name).to_owned(), 0.0)).collect();
    let host = HostPolicyResult { control_enabled_at_s: Some(1.0), ..HostPolicyResult::default() };
    RunResult {
        schema_version: SCHEMA_VERSION,
        scenario: Value::Null,
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
        messages: deliveries,
        transfers: deliveries,
        utilization: 1.0,
        access: AccessResult { air_shares, stations: vec![station], ..AccessResult::default() },
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
        kernel_release: None,
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
        run.scenario = serde_json::json!({ "hosts": [{ "count": 2 }, { "count": 1 }] });
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
        assert!((of("jain(flows[*].goodput_mbps)", &run()).expect("an index") - 6.0 / 7.0).abs() < 1e-12);
    }

    #[test]
    fn flows_are_picked_by_block_and_by_what_they_are() {
        assert_eq!(of("mean(flows[block=0].goodput_mbps)", &run()), Ok(5.0));
        assert_eq!(of("sum(flows[block=1].goodput_mbps)", &run()), Ok(2.0));
        assert_eq!(of("mean(flows[direction=up, host=1].goodput_mbps)", &run()), Ok(6.0));
        let nothing = of("mean(flows[block=7].goodput_mbps)", &run()).expect_err("no such block");
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
        // JSON has no such number; what cannot be written cannot be read either.
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
        assert!(refused("events.p50").contains("events in a result has no parts"));
        assert!(refused("hosts_kind").contains("no number") && refused("valid").contains("no number"));
    }

    #[test]
    fn a_list_needs_a_way_to_one_number_and_a_number_needs_none() {
        let message = refused("flows.goodput_mbps");
        assert!(message.contains("accepted: mean(flows.goodput_mbps)"), "{message}");
        assert!(refused("mean(jain_index)").contains("one number already"));
        assert!(refused("average(flows.goodput_mbps)").contains("accepted: mean, min, max"));
        assert!(refused("mean(flows[flow=2].goodput_mbps)").contains("cannot be picked by flow"));
        assert!(refused("rtt_ms[0].mean").contains("no list"));
        for nonsense in ["", "rtt_ms..mean", "flows[", "mean(flows[block].goodput_mbps)", "a b"] {
            assert!(refused(nonsense).contains("is no path"), "{nonsense}");
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
