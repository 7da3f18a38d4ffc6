//! What stands in the cells of tables, the same in the terminal and on the page.

use scenario::{CaseResult, Comparison, Direction, Distribution, HostsKind, RunResult, Spread};

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// The least and the greatest, where it is a mean over several seeds.
    pub(crate) range: Option<String>,
    /// Numbers stand at the right.
    pub(crate) is_number: bool,
}

const FLOW_HEADS: [&str; 13] = [
    "flow",
    "host",
    "dir",
    "control",
    "policy",
    "goodput\nMb/s",
    "RTT min\nms",
    "RTT mean\nms",
    "RTT p95\nms",
    "cwnd mean\nsegments",
    "retrans-\nmits",
    "time-\nouts",
    "bounded\n%",
];

pub(crate) const CASE_HEADS: [&str; 12] = [
    "#",
    "case",
    "goodput\nMb/s",
    "Jain",
    "starved\nflows",
    "RTT min\nms",
    "RTT mean\nms",
    "RTT p95\nms",
    "AP queue\ndrops",
    "medium\nbusy %",
    "bounded\n%",
    "valid",
];

/// Where there is no shared last hop: each direction of each link that carried something.
const LINK_HEADS: [&str; 8] = [
    "link",
    "sent\nMb/s",
    "busy\n%",
    "queue mean\npackets",
    "queue p95\npackets",
    "queue max\npackets",
    "queue\ndrops",
    "random\nlosses",
];

/// Where applications wait for what they send: from writing a message or a transfer to reading its last byte.
const MESSAGE_HEADS: [&str; 7] = ["flow", "host", "messages", "delay min\nms", "mean\nms", "p95\nms", "max\nms"];

const NOTHING: &str = "–";

/// The headline figures of a run, each with its name.
pub(crate) fn headline(result: &RunResult) -> Vec<(&'static str, String)> {
    let rtt = |figure: fn(&Distribution) -> f64| {
        result.rtt_ms.as_ref().map_or(NOTHING.to_owned(), |rtt| format!("{} ms", milliseconds(figure(rtt))))
    };
    let shared = if result.links.is_empty() {
        [
            ("access point drops", result.access.downlink_drops.to_string()),
            ("medium busy", format!("{} %", percent(result.utilization))),
        ]
    } else {
        [
            ("dropped or lost on links", result.access.path_drops.to_string()),
            ("busiest link", format!("{} %", percent(result.utilization))),
        ]
    };
    let [drops, busy] = shared;
    vec![
        ("aggregate goodput", format!("{:.2} Mb/s", result.aggregate_goodput_mbps)),
        ("Jain's index", jain(result.jain_index)),
        ("starved flows", format!("{} of {}", result.starved_flows, result.flows.len())),
        ("RTT mean", rtt(|rtt| rtt.mean)),
        ("RTT p95", rtt(|rtt| rtt.p95)),
        drops,
        busy,
        ("valid", yes_no(result.valid)),
    ]
}

/// The tables of a run: its connections, then links and messages where there are any.
pub(crate) fn tables(result: &RunResult) -> Vec<(&'static [&'static str], Vec<Vec<Cell>>)> {
    let tables = [
        (&FLOW_HEADS[..], flow_rows(result)),
        (&LINK_HEADS[..], link_rows(result)),
        (&MESSAGE_HEADS[..], message_rows(result)),
    ];
    tables.into_iter().filter(|(_, rows)| !rows.is_empty()).collect()
}

fn link_rows(result: &RunResult) -> Vec<Vec<Cell>> {
    let used = result.links.iter().filter(|link| link.packets + link.queue_drops + link.losses > 0);
    let row = |link: &scenario::LinkResult| {
        vec![
            word(&format!("{} → {}", link.from, link.to)),
            number(format!("{:.2}", link.sent_mbps)),
            number(percent(link.utilization)),
            number(format!("{:.1}", link.queue_mean)),
            number(count(link.queue_p95)),
            number(link.queue_max.to_string()),
            number(link.queue_drops.to_string()),
            number(link.losses.to_string()),
        ]
    };
    used.map(row).collect()
}

fn message_rows(result: &RunResult) -> Vec<Vec<Cell>> {
    let waited = result.flows.iter().filter_map(|flow| flow.message_ms.map(|delay| (flow, delay)));
    let row = |(flow, delay): (&scenario::FlowResult, Distribution)| {
        let counts = [flow.id.to_string(), flow.host.to_string(), flow.messages.to_string()];
        let delays = [delay.min, delay.mean, delay.p95, delay.max].map(milliseconds);
        counts.into_iter().chain(delays).map(number).collect()
    };
    waited.map(row).collect()
}

fn flow_rows(result: &RunResult) -> Vec<Vec<Cell>> {
    let rows = result.flows.iter().map(|flow| {
        let rtt = |figure: fn(&Distribution) -> f64| {
            number(flow.rtt_ms.as_ref().map_or(NOTHING.to_owned(), |rtt| milliseconds(figure(rtt))))
        };
        vec![
            number(flow.id.to_string()),
            number(flow.host.to_string()),
            word(match flow.direction {
                Direction::Up => "up",
                Direction::Down => "down",
            }),
            word(&flow.congestion_control),
            word(&flow.policy),
            number(format!("{:.2}", flow.goodput_mbps)),
            rtt(|rtt| rtt.min),
            rtt(|rtt| rtt.mean),
            rtt(|rtt| rtt.p95),
            number(flow.cwnd_mean.map_or(NOTHING.to_owned(), |cwnd| format!("{cwnd:.1}"))),
            number(flow.retransmits.to_string()),
            number(flow.timeouts.map_or(NOTHING.to_owned(), |timeouts| timeouts.to_string())),
            number(percent(flow.controlled_share)),
        ]
    });
    rows.collect()
}

pub(crate) fn case_rows(comparison: &Comparison) -> Vec<Vec<Cell>> {
    let row = |(index, case): (usize, &CaseResult)| {
        let summary = &case.summary;
        // The least and the greatest stand with the three figures that are compared; more would not fit a line.
        let spread = |spread: Option<Spread>, show: fn(f64) -> String| {
            spread.map_or_else(|| number(NOTHING.to_owned()), |spread| with_range(&spread, show))
        };
        let mean = |spread: Option<Spread>, show: fn(f64) -> String| {
            number(spread.map_or(NOTHING.to_owned(), |spread| show(spread.mean)))
        };
        vec![
            number((index + 1).to_string()),
            word(&case.label),
            spread(Some(summary.aggregate_goodput_mbps), |mbps| format!("{mbps:.2}")),
            spread(summary.jain_index, |index| format!("{index:.3}")),
            mean(Some(summary.starved_flows), count),
            mean(summary.rtt_min_ms, milliseconds),
            mean(summary.rtt_mean_ms, milliseconds),
            spread(summary.rtt_p95_ms, milliseconds),
            mean(Some(summary.downlink_drops), count),
            mean(Some(summary.utilization), percent),
            mean(Some(summary.controlled_share), percent),
            word(&yes_no(case.runs.iter().all(|run| run.valid))),
        ]
    };
    comparison.cases.iter().enumerate().map(row).collect()
}

/// Each case that has a run that is not valid, with its seed and why.
pub(crate) fn invalid_cases(comparison: &Comparison) -> Vec<(String, String)> {
    let mut reasons = Vec::new();
    for case in &comparison.cases {
        for run in &case.runs {
            let name = format!("{}, seed {}", case.label, run.seed);
            reasons.extend(run.invalid_reasons.iter().map(|reason| (name.clone(), reason.clone())));
        }
    }
    reasons
}

/// Where and by what a result was made.
pub(crate) fn made_by(build: &scenario::Build, hosts: HostsKind, kernel: Option<&str>) -> String {
    let commit = match (&build.commit, build.dirty) {
        (Some(commit), true) => format!(", commit {commit} with changes"),
        (Some(commit), false) => format!(", commit {commit}"),
        (None, _) => String::new(),
    };
    let habitat = match hosts {
        HostsKind::Simulated => "simulated hosts, virtual time".to_owned(),
        HostsKind::Kernel => {
            format!("kernel hosts, real time{}", kernel.map_or(String::new(), |release| format!(", Linux {release}")))
        }
    };
    format!("lasthop {}{commit}; {habitat}", build.version)
}

pub(crate) fn number(text: String) -> Cell {
    Cell { text, range: None, is_number: true }
}

pub(crate) fn word(text: &str) -> Cell {
    Cell { text: text.to_owned(), range: None, is_number: false }
}

fn yes_no(yes: bool) -> String {
    if yes { "yes" } else { "NO" }.to_owned()
}

fn jain(index: Option<f64>) -> String {
    index.map_or(NOTHING.to_owned(), |index| format!("{index:.3}"))
}

/// Whole milliseconds where a fraction says nothing.
fn milliseconds(ms: f64) -> String {
    if ms >= 100.0 { format!("{ms:.0}") } else { format!("{ms:.1}") }
}

fn percent(share: f64) -> String {
    format!("{:.0}", share * 100.0)
}

/// A count, or the mean of several.
fn count(count: f64) -> String {
    if count.fract() == 0.0 || count >= 100.0 { format!("{count:.0}") } else { format!("{count:.1}") }
}

fn with_range(spread: &Spread, show: fn(f64) -> String) -> Cell {
    let (least, greatest) = (show(spread.min), show(spread.max));
    let range = (least != greatest).then(|| format!("{least}–{greatest}"));
    Cell { range, ..number(show(spread.mean)) }
}
