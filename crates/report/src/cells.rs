//! Table cells, the same in the terminal and on the page.

use crate::difference::Difference;
use lasthop_measure::{Range, mean};
use lasthop_scenario::{
    CaseResult, CaseSummary, Clock, Comparison, DatagramSummary, DeliverySummary, Distribution, Pieces, Queue,
    RunResult, Spread, Transport, UsedKernel, Wifi,
};
use serde::Serialize;
use serde_json::Value as Json;

/// One cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// For a mean over several seeds, its 95 % confidence interval; or the problem.
    pub(crate) small: Option<String>,
    /// Numbers are aligned to the right.
    pub(crate) is_number: bool,
    /// The style class of a verdict on the page.
    pub(crate) verdict: Option<&'static str>,
    /// The colour of the named case on the page.
    pub(crate) colour: Option<String>,
}

const FLOW_HEADS: [&str; 14] = [
    "flow",
    "host",
    "dir",
    "control",
    "policy",
    "goodput\nMb/s",
    "smoothed\nRTT min\nms",
    "smoothed\nmean\nms",
    "smoothed\np95\nms",
    "per ACK\nRTT p95\nms",
    "cwnd mean\nsegments",
    "retrans-\nmits",
    "time-\nouts",
    "bounded\n%",
];

const CASE_HEADS: [&str; 13] = [
    "#",
    "case",
    "goodput\nMb/s",
    "Jain",
    "starved\nflows",
    "smoothed\nRTT min\nms",
    "smoothed\nmean\nms",
    "smoothed\np95\nms",
    "per ACK\nRTT p95\nms",
    "AP queue\ndrops",
    "medium\nbusy %",
    "bounded\n%",
    "valid",
];

/// Without a shared last hop: each direction of each link that carried data.
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

/// Each access point of several, or where not all hear all.
const CELL_HEADS: [&str; 8] = [
    "cell",
    "goodput\nMb/s",
    "on the air\n%",
    "of it in\ncollisions",
    "neighbours\nsensed %",
    "collisions\nper s",
    "AP queue\nmean",
    "AP queue\ndrops",
];

/// Hosts that go from one access point to another.
const ROAM_HEADS: [&str; 6] = ["roams", "leaves\nat s", "from", "to", "outage\nms", "silent\nms"];

/// 802.11n and later: each station, both ways.
const STATION_HEADS: [&str; 9] = [
    "station",
    "PHY up\nMb/s",
    "down\nMb/s",
    "air up\n%",
    "down\n%",
    "packets\nup",
    "down",
    "resent up\nper s",
    "down\nper s",
];

/// For messages and transfers: the delay from the write to the reading of the last byte.
const MESSAGE_HEADS: [&str; 9] =
    ["flow", "host", "what", "deliv-\nered", "never\ndelivered", "delay min\nms", "mean\nms", "p95\nms", "max\nms"];

/// For transfers: how many times as long they took as their data need in the empty network.
const SLOWDOWN_HEADS: [&str; 7] = ["transfers of", "number", "slowdown\nmedian", "mean", "p95", "p99", "max"];

/// For datagrams: loss, and the delay one way or there and back.
const DATAGRAM_HEADS: [&str; 10] =
    ["flow", "host", "dir", "what", "sent", "lost\n%", "delay min\nms", "mean\nms", "p95\nms", "jitter\nms"];

/// For videos: what the viewer saw.
const VIDEO_HEADS: [&str; 8] = ["video", "host", "dir", "bit rate\nMb/s", "chunks", "switches", "stalls", "stalled\ns"];

/// The same over all such flows of a case.
const CASE_MESSAGE_HEADS: [&str; 6] =
    ["#", "case", "messages\ndelivered", "never\ndelivered", "delay mean\nms", "delay p95\nms"];
const CASE_TRANSFER_HEADS: [&str; 6] =
    ["#", "case", "transfers\ncompleted", "never\ncompleted", "time mean\nms", "time p95\nms"];

const CASE_PING_HEADS: [&str; 6] =
    ["#", "case", "pings\nlost %", "round trip\nmean ms", "round trip\np95 ms", "jitter\nms"];
const CASE_DATAGRAM_HEADS: [&str; 6] =
    ["#", "case", "datagrams\nlost %", "one way\nmean ms", "one way\np95 ms", "jitter\nms"];
const CASE_VIDEO_HEADS: [&str; 5] = ["#", "case", "video\nMb/s", "stalls", "stalled\ns"];

const NOTHING: &str = "–";

/// The headline figures of a run, each with its name.
pub(crate) fn headline(result: &RunResult) -> Vec<(&'static str, String)> {
    let rtt = |of: Option<Distribution>, figure: fn(&Distribution) -> f64| {
        of.map_or(NOTHING.to_owned(), |rtt| format!("{} ms", milliseconds(figure(&rtt))))
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
    let (counted, all) = (busy_flows(result), result.flows.len());
    let over = if counted < all { format!(" over {counted} of {all} flows") } else { String::new() };
    let marks = match result.links.len() {
        0 => result.access.downlink_marks,
        _ => result.links.iter().map(|link| link.queue_marks).sum(),
    };
    let marks = (marks > 0).then(|| ("packets marked", marks.to_string()));
    let figures = [
        ("aggregate goodput", format!("{:.2} Mb/s", result.aggregate_goodput_mbps)),
        ("Jain's index", format!("{}{over}", jain(result.jain_index))),
        ("starved flows", format!("{} of {}", result.starved_flows, busy_flows(result))),
        ("smoothed RTT mean", rtt(result.rtt_ms, |rtt| rtt.mean)),
        ("smoothed RTT p95", rtt(result.rtt_ms, |rtt| rtt.p95)),
        ("RTT per ACK p95", rtt(result.rtt_per_ack_ms, |rtt| rtt.p95)),
        drops,
    ];
    let last = [busy, ("valid", yes_no(result.valid))];
    figures.into_iter().chain(marks).chain(last).collect()
}

/// The number of flows that Jain's index and the starved flows count.
fn busy_flows(result: &RunResult) -> usize {
    result.flows.iter().filter(|flow| flow.always_busy).count()
}

/// Names the flows that a comparison's Jain's index and starved flows count, if they leave some out.
pub(crate) fn left_out(comparison: &Comparison) -> Option<String> {
    let runs = || comparison.cases.iter().flat_map(|case| &case.runs);
    let first = runs().next().map(|run| (busy_flows(run), run.flows.len()))?;
    let alike = runs().all(|run| (busy_flows(run), run.flows.len()) == first);
    let of = if alike { format!("{} of {} flows", first.0, first.1) } else { "only those flows".to_owned() };
    let some = runs().any(|run| busy_flows(run) < run.flows.len());
    some.then(|| {
        format!("Jain's index and starved flows: over {of} that had something to send for at least 95 % of the time measured")
    })
}

/// The tables of a run: its connections, then its stations, links and messages, if any.
pub(crate) fn tables(result: &RunResult) -> Vec<(&'static [&'static str], Vec<Vec<Cell>>)> {
    let tables = [
        (&FLOW_HEADS[..], flow_rows(result)),
        (&CELL_HEADS[..], cell_rows(result)),
        (&ROAM_HEADS[..], roam_rows(result)),
        (&STATION_HEADS[..], station_rows(result)),
        (&LINK_HEADS[..], link_rows(result)),
        (&MESSAGE_HEADS[..], message_rows(result)),
        (&SLOWDOWN_HEADS[..], slowdown_rows(result)),
        (&DATAGRAM_HEADS[..], datagram_rows(result)),
        (&VIDEO_HEADS[..], video_rows(result)),
    ];
    tables.into_iter().filter(|(_, rows)| !rows.is_empty()).collect()
}

fn cell_rows(result: &RunResult) -> Vec<Vec<Cell>> {
    let measured_s = result.duration_s - result.warmup_s;
    let row = |cell: &lasthop_scenario::CellResult| {
        let share = |names: &[&str]| names.iter().filter_map(|name| cell.air_shares.get(*name)).sum::<f64>();
        vec![
            word(&cell.name),
            number(format!("{:.2}", cell.goodput_mbps)),
            number(percent(share(&["success", "broadcast", "collision", "error"]))),
            number(percent(share(&["collision"]))),
            number(percent(cell.neighbours_share)),
            number(three_digits(cell.collisions as f64 / measured_s)),
            number(format!("{:.1}", cell.downlink_queue_mean)),
            number(cell.downlink_drops.to_string()),
        ]
    };
    result.cells.iter().map(row).collect()
}

fn roam_rows(result: &RunResult) -> Vec<Vec<Cell>> {
    let cell = |place: u16| word(&result.cells[usize::from(place)].name);
    let row = |roam: &lasthop_scenario::RoamResult| {
        vec![
            host(result, roam.host),
            number(format!("{:.2}", roam.at_s)),
            cell(roam.from),
            cell(roam.to),
            number(format!("{:.0}", roam.outage_ms)),
            some(roam.silent_ms, |silent_ms| format!("{silent_ms:.0}")),
        ]
    };
    result.roams.iter().map(row).collect()
}

/// Shares of the air say which stations have a row: those before 802.11n have none.
fn station_rows(result: &RunResult) -> Vec<Vec<Cell>> {
    let measured_s = result.duration_s - result.warmup_s;
    let later = result.access.stations.iter().filter(|station| station.up_air_share.is_some());
    let row = |station: &lasthop_scenario::StationResult| {
        let share = |share: Option<f64>| number(format!("{:.1}", 100.0 * share.unwrap_or(0.0)));
        let frames = |frames: Option<f64>| some(frames, |frames| format!("{frames:.1}"));
        vec![
            host(result, station.host),
            some(station.up_phy_rate_mbps, three_digits),
            some(station.down_phy_rate_mbps, three_digits),
            share(station.up_air_share),
            share(station.down_air_share),
            frames(station.up_aggregate_frames),
            frames(station.down_aggregate_frames),
            number(three_digits(station.up_retries as f64 / measured_s)),
            number(three_digits(station.down_retries as f64 / measured_s)),
        ]
    };
    later.map(row).collect()
}

fn link_rows(result: &RunResult) -> Vec<Vec<Cell>> {
    let used = result.links.iter().filter(|link| link.packets + link.queue_drops + link.losses > 0);
    let row = |link: &lasthop_scenario::LinkResult| {
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
    let row = |(flow, delay): (&lasthop_scenario::FlowResult, Distribution)| {
        let what = word(match flow.pieces() {
            Pieces::Messages => "messages",
            Pieces::Chunks => "chunks",
            _ => "transfers",
        });
        let counts = [flow.messages, flow.undelivered].map(|count| number(count.to_string()));
        let delays = [delay.min, delay.mean, delay.p95, delay.max].map(|ms| number(milliseconds(ms)));
        let names = [number(flow.id.to_string()), host(result, flow.host), what];
        names.into_iter().chain(counts).chain(delays).collect()
    };
    waited.map(row).collect()
}

fn slowdown_rows(result: &RunResult) -> Vec<Vec<Cell>> {
    let row = |class: &lasthop_scenario::SlowdownResult| {
        let sizes = match (class.above_bytes, class.up_to_bytes) {
            (0, Some(most)) => format!("up to {}", bytes(most)),
            (above, Some(most)) => format!("{} to {}", bytes(above), bytes(most)),
            (above, None) => format!("more than {}", bytes(above)),
        };
        let of = class.slowdown;
        let slowdowns = [of.p50, of.mean, of.p95, of.p99, of.max].map(|slowdown| number(three_digits(slowdown)));
        [word(&sizes), number(class.transfers.to_string())].into_iter().chain(slowdowns).collect()
    };
    result.slowdowns.iter().map(row).collect()
}

/// A size with the greatest unit of which it has one.
fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

fn datagram_rows(result: &RunResult) -> Vec<Vec<Cell>> {
    let measured = result.flows.iter().filter_map(|flow| flow.datagrams.map(|datagrams| (flow, datagrams)));
    let row = |(flow, datagrams): (&lasthop_scenario::FlowResult, lasthop_scenario::DatagramResult)| {
        let took = datagrams.one_way_ms.or(datagrams.round_trip_ms);
        let ms = |ms: Option<f64>| some(ms, milliseconds);
        let what = if flow.pieces() == Pieces::Pings { "there and back" } else { "one way" };
        vec![
            number(flow.id.to_string()),
            host(result, flow.host),
            word(flow.direction.as_str()),
            word(what),
            number(datagrams.sent.to_string()),
            some(datagrams.lost_share, |share| three_digits(100.0 * share)),
            ms(took.map(|took| took.min)),
            ms(took.map(|took| took.mean)),
            ms(took.map(|took| took.p95)),
            ms(datagrams.jitter_ms),
        ]
    };
    measured.map(row).collect()
}

fn video_rows(result: &RunResult) -> Vec<Vec<Cell>> {
    let watched = result.flows.iter().filter_map(|flow| flow.video.map(|video| (flow, video)));
    let row = |(flow, video): (&lasthop_scenario::FlowResult, lasthop_scenario::VideoResult)| {
        vec![
            number(flow.id.to_string()),
            host(result, flow.host),
            word(flow.direction.as_str()),
            some(video.mean_bit_rate_mbps, three_digits),
            number(video.chunks.to_string()),
            number(video.switches.to_string()),
            number(video.stalls.to_string()),
            number(three_digits(video.stalled_s)),
        ]
    };
    watched.map(row).collect()
}

fn flow_rows(result: &RunResult) -> Vec<Vec<Cell>> {
    let rows = result.flows.iter().map(|flow| {
        let rtt = |figure: fn(&Distribution) -> f64| {
            number(flow.rtt_ms.as_ref().map_or(NOTHING.to_owned(), |rtt| milliseconds(figure(rtt))))
        };
        vec![
            number(flow.id.to_string()),
            host(result, flow.host),
            word(flow.direction.as_str()),
            word(&match (&flow.congestion_control, flow.transport()) {
                (Some(control), Transport::Quic) => format!("{control} (QUIC)"),
                (Some(control), _) => control.clone(),
                (None, _) => format!("{NOTHING} ({})", flow.kind),
            }),
            word(&flow.policy),
            number(format!("{:.2}", flow.goodput_mbps)),
            rtt(|rtt| rtt.min),
            rtt(|rtt| rtt.mean),
            rtt(|rtt| rtt.p95),
            number(flow.rtt_per_ack_ms.map_or(NOTHING.to_owned(), |rtt| milliseconds(rtt.p95))),
            number(flow.cwnd_mean.map_or(NOTHING.to_owned(), |cwnd| format!("{cwnd:.1}"))),
            number(flow.retransmits.to_string()),
            number(flow.timeouts.map_or(NOTHING.to_owned(), |timeouts| timeouts.to_string())),
            number(percent(flow.controlled_share)),
        ]
    });
    rows.collect()
}

/// The tables of a comparison, with a row for each case: the headline figures, then messages and transfers, if any.
pub(crate) fn case_tables(comparison: &Comparison) -> Vec<(&'static [&'static str], Vec<Vec<Cell>>)> {
    let mut tables = vec![(&CASE_HEADS[..], case_rows(comparison))];
    let messages = delivery_rows(comparison, |summary| summary.messages.as_ref());
    let transfers = delivery_rows(comparison, |summary| summary.transfers.as_ref());
    tables.extend(messages.map(|rows| (&CASE_MESSAGE_HEADS[..], rows)));
    tables.extend(transfers.map(|rows| (&CASE_TRANSFER_HEADS[..], rows)));
    let pings = datagram_case_rows(comparison, |summary| summary.pings.as_ref());
    let datagrams = datagram_case_rows(comparison, |summary| summary.datagrams.as_ref());
    tables.extend(pings.map(|rows| (&CASE_PING_HEADS[..], rows)));
    tables.extend(datagrams.map(|rows| (&CASE_DATAGRAM_HEADS[..], rows)));
    tables.extend(video_case_rows(comparison).map(|rows| (&CASE_VIDEO_HEADS[..], rows)));
    tables
}

const STATISTIC_HEADS: [&str; 8] =
    ["figure", "seeds", "mean", "deviation", "95 % interval\nlow", "high", "least", "greatest"];

/// Every figure of a case over its seeds; empty with one seed.
pub(crate) fn statistics(case: &CaseResult) -> Option<(&'static [&'static str], Vec<Vec<Cell>>)> {
    let Json::Object(summary) = serde_json::to_value(&case.summary).expect("a summary is plain data") else {
        unreachable!("it is an object")
    };
    let mut rows = Vec::new();
    for (key, value) in summary {
        let mut add = |name: String, value: Json| {
            if let Ok(spread) = serde_json::from_value::<Spread>(value) {
                rows.push(statistic_row(&name, &spread));
            }
        };
        match value {
            Json::Object(parts) if !parts.contains_key("mean") => {
                parts.into_iter().for_each(|(part, value)| add(format!("{key}.{part}"), value));
            }
            value => add(key, value),
        }
    }
    (case.runs.len() > 1).then_some((&STATISTIC_HEADS[..], rows))
}

fn statistic_row(name: &str, spread: &Spread) -> Vec<Cell> {
    // As many decimals as the deviation has with two digits; without any, as the number has with three, and none of a whole one.
    let decimals_of = |of: f64, digits: f64| (digits - 1.0 - of.abs().log10().floor()).clamp(0.0, 6.0) as usize;
    let decimals = match spread.deviation.filter(|of| *of > 0.0) {
        Some(deviation) => decimals_of(deviation, 2.0),
        None if [spread.mean, spread.min, spread.max].iter().all(|of| of.fract() == 0.0) => 0,
        None => decimals_of(spread.mean, 3.0),
    };
    let show = |of: f64| number(format!("{of:.decimals$}"));
    let some = |of: Option<f64>| of.map_or_else(|| number(NOTHING.to_owned()), show);
    let ends = spread.ci95;
    vec![
        word(name),
        number(spread.seeds.to_string()),
        show(spread.mean),
        some(spread.deviation),
        some(ends.map(|ends| ends.low)),
        some(ends.map(|ends| ends.high)),
        show(spread.min),
        show(spread.max),
    ]
}

/// A row for each case, of what it has of a kind; `None` if no case has any.
fn rows_of_cases<T>(
    comparison: &Comparison,
    of: impl Fn(&CaseSummary) -> Option<&T>,
    cells: &[&dyn Fn(&T) -> Cell],
) -> Option<Vec<Vec<Cell>>> {
    let row = |(index, case): (usize, &CaseResult)| {
        let summary = of(&case.summary);
        let cells = cells.iter().map(|cell| summary.map_or_else(|| number(NOTHING.to_owned()), cell));
        [number((index + 1).to_string()), word(&case.label)].into_iter().chain(cells).collect()
    };
    let some = comparison.cases.iter().any(|case| of(&case.summary).is_some());
    some.then(|| comparison.cases.iter().enumerate().map(row).collect())
}

/// A figure, or that it is not known.
fn some(figure: Option<f64>, show: impl Fn(f64) -> String) -> Cell {
    number(figure.map_or_else(|| NOTHING.to_owned(), show))
}

/// A figure with its confidence interval; nothing without any.
fn over_seeds(spread: Option<Spread>, show: fn(f64) -> String) -> Cell {
    spread.map_or_else(|| number(NOTHING.to_owned()), |spread| with_interval(&spread, show))
}

fn datagram_case_rows(
    comparison: &Comparison,
    of: fn(&CaseSummary) -> Option<&DatagramSummary>,
) -> Option<Vec<Vec<Cell>>> {
    rows_of_cases(
        comparison,
        of,
        &[
            &|datagrams: &DatagramSummary| over_seeds(datagrams.lost_share, |share| three_digits(100.0 * share)),
            &|datagrams| over_seeds(datagrams.mean_ms, milliseconds),
            &|datagrams| over_seeds(datagrams.p95_ms, milliseconds),
            &|datagrams| over_seeds(datagrams.jitter_ms, milliseconds),
        ],
    )
}

fn video_case_rows(comparison: &Comparison) -> Option<Vec<Vec<Cell>>> {
    rows_of_cases(
        comparison,
        |summary| summary.videos.as_ref(),
        &[
            &|video: &lasthop_scenario::VideoSummary| over_seeds(video.mean_bit_rate_mbps, three_digits),
            &|video| over_seeds(Some(video.stalls), count),
            &|video| over_seeds(Some(video.stalled_s), three_digits),
        ],
    )
}

const DIFFERENCE_HEADS: [&str; 6] =
    ["#", "case", "goodput\nMb/s", "Jain", "smoothed\nRTT mean\nms", "smoothed\nRTT p95\nms"];

/// What each case but the first differs by from that one; `None` if there is no other.
pub(crate) fn difference_table(comparison: &Comparison) -> Option<(&'static [&'static str], Vec<Vec<Cell>>)> {
    let (first, others) = comparison.cases.split_first()?;
    let cell = |difference: Option<Difference>| {
        let text = difference.map_or_else(|| NOTHING.to_owned(), |difference| difference.text());
        Cell { small: difference.and_then(|difference| difference.percentage()), ..number(text) }
    };
    let row = |(index, case): (usize, &CaseResult)| {
        let of = |figure: fn(&RunResult) -> Option<f64>, range| cell(Difference::of(first, case, (figure, range)));
        vec![
            number((index + 2).to_string()),
            word(&case.label),
            of(|run| Some(run.aggregate_goodput_mbps), Range::POSITIVE),
            of(|run| run.jain_index, Range::SHARE),
            of(|run| run.rtt_ms.map(|rtt| rtt.mean), Range::POSITIVE),
            of(|run| run.rtt_ms.map(|rtt| rtt.p95), Range::POSITIVE),
        ]
    };
    (!others.is_empty()).then(|| (&DIFFERENCE_HEADS[..], others.iter().enumerate().map(row).collect()))
}

/// The messages and transfers delivered in each case, with their delays; `None` if no case has any.
fn delivery_rows(comparison: &Comparison, of: fn(&CaseSummary) -> Option<&DeliverySummary>) -> Option<Vec<Vec<Cell>>> {
    let spread = |spread: Option<Spread>, show: fn(f64) -> String| {
        spread.map_or_else(|| number(NOTHING.to_owned()), |spread| with_interval(&spread, show))
    };
    let row = |(index, case): (usize, &CaseResult)| {
        let summary = of(&case.summary);
        vec![
            number((index + 1).to_string()),
            word(&case.label),
            spread(summary.map(|summary| summary.delivered), count),
            spread(summary.map(|summary| summary.undelivered), count),
            spread(summary.and_then(|summary| summary.mean_ms), milliseconds),
            spread(summary.and_then(|summary| summary.p95_ms), milliseconds),
        ]
    };
    let some = comparison.cases.iter().any(|case| of(&case.summary).is_some());
    some.then(|| comparison.cases.iter().enumerate().map(row).collect())
}

fn case_rows(comparison: &Comparison) -> Vec<Vec<Cell>> {
    let row = |(index, case): (usize, &CaseResult)| {
        let summary = &case.summary;
        // Only the three compared figures have their interval. A line has no room for more.
        let spread = |spread: Option<Spread>, show: fn(f64) -> String| {
            spread.map_or_else(|| number(NOTHING.to_owned()), |spread| with_interval(&spread, show))
        };
        let mean = |spread: Option<Spread>, show: fn(f64) -> String| {
            number(spread.map_or(NOTHING.to_owned(), |spread| show(spread.mean)))
        };
        vec![
            number((index + 1).to_string()),
            word(&case.label),
            spread(Some(summary.aggregate_goodput_mbps), |mbps| format!("{mbps:.2}")),
            spread(summary.jain_index, |index| format!("{index:.3}")),
            starved(case),
            mean(summary.rtt_min_ms, milliseconds),
            mean(summary.rtt_mean_ms, milliseconds),
            spread(summary.rtt_p95_ms, milliseconds),
            mean(summary.rtt_per_ack_p95_ms, milliseconds),
            mean(Some(summary.downlink_drops), count),
            mean(Some(summary.utilization), percent),
            mean(Some(summary.controlled_share), percent),
            word(&yes_no(case.runs.iter().all(|run| run.valid))),
        ]
    };
    comparison.cases.iter().enumerate().map(row).collect()
}

/// The cases with an invalid run, with its seed and the reason.
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

/// The host and build of a result.
pub(crate) fn made_by(build: &lasthop_scenario::Build, used: &UsedKernel) -> String {
    let commit = match (&build.commit, build.dirty) {
        (Some(commit), true) => format!(", commit {commit} with changes"),
        (Some(commit), false) => format!(", commit {commit}"),
        (None, _) => String::new(),
    };
    let habitat = match used.clock {
        None => "simulated hosts, virtual time".to_owned(),
        Some(clock) => {
            let time = if clock == Clock::Virtual { "virtual" } else { "real" };
            let release = used.kernel_release.as_ref().map_or(String::new(), |release| format!(", Linux {release}"));
            let wifi = used.wifi.map_or("", |Wifi::Mac80211| ", its mac80211 over simulated radios");
            let queue = used.queue.map_or("", |Queue::Linux| ", its queue");
            format!("kernel hosts, {time} time{release}{wifi}{queue}")
        }
    };
    format!("lasthop {}{commit}; {habitat}{}", build.version, emulated(used))
}

/// The kernel of an emulated machine, and what emulated it.
fn emulated(used: &UsedKernel) -> String {
    let kernel = used.kernel.iter().map(|name| format!(", kernel {name}"));
    let digest = used.kernel_digest.iter().map(|digest| format!(" (digest {digest})"));
    let emulator = used.emulator.iter().map(|emulator| format!(", {emulator}"));
    kernel.chain(digest).chain(emulator).collect()
}

/// A host's name, or else its number.
fn host(result: &RunResult, host: u16) -> Cell {
    result.host_name(host).map_or_else(|| number(host.to_string()), |name| word(&name))
}

pub(crate) fn number(text: String) -> Cell {
    Cell { text, is_number: true, ..Cell::default() }
}

pub(crate) fn word(text: &str) -> Cell {
    Cell { text: text.to_owned(), ..Cell::default() }
}

fn yes_no(yes: bool) -> String {
    if yes { "yes" } else { "NO" }.to_owned()
}

fn jain(index: Option<f64>) -> String {
    index.map_or(NOTHING.to_owned(), |index| format!("{index:.3}"))
}

/// Milliseconds, rounded to whole ones from 100 ms on.
fn milliseconds(ms: f64) -> String {
    if ms >= 100.0 { format!("{ms:.0}") } else { format!("{ms:.1}") }
}

/// At least three digits, so that 58.5 and 6.5 Mb/s are not 58 and 6.
fn three_digits(value: f64) -> String {
    let decimals = [100.0, 10.0].iter().filter(|from| value < **from).count();
    format!("{value:.decimals$}")
}

fn percent(share: f64) -> String {
    format!("{:.0}", share * 100.0)
}

/// A count, or a mean of counts.
fn count(count: f64) -> String {
    if count.fract() == 0.0 || count >= 100.0 { format!("{count:.0}") } else { format!("{count:.1}") }
}

/// The number of starved flows out of those counted.
fn starved(case: &CaseResult) -> Cell {
    let busy: Vec<f64> = case.runs.iter().map(|run| busy_flows(run) as f64).collect();
    let of = mean(&busy).unwrap_or(0.0);
    number(format!("{} of {}", count(case.summary.starved_flows.mean), count(of)))
}

/// The mean, and below it the ends of its confidence interval.
fn with_interval(spread: &Spread, show: fn(f64) -> String) -> Cell {
    let ends = spread.ci95.map(|ends| (show(ends.low), show(ends.high)));
    let small = ends.filter(|(low, high)| low != high).map(|(low, high)| format!("{low}–{high}"));
    Cell { small, ..number(show(spread.mean)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_scenario::Interval;

    #[test]
    fn a_number_that_does_not_vary_has_three_digits() {
        let row = |mean: f64, deviation: Option<f64>| {
            let ci95 = deviation.map(|of| Interval { low: mean - of, high: mean + of });
            let spread = Spread { mean, min: mean, max: mean, deviation, ci95, seeds: 2 };
            let cells: Vec<String> = statistic_row("figure", &spread).into_iter().map(|cell| cell.text).collect();
            [cells[2].clone(), cells[3].clone(), cells[7].clone()]
        };
        assert_eq!(row(0.5, Some(0.0)), ["0.500", "0.000", "0.500"]);
        assert_eq!(row(9.083_4, Some(0.0)), ["9.08", "0.00", "9.08"]);
        assert_eq!(row(9.083_4, None), ["9.08", "–", "9.08"]);
        assert_eq!(row(1_234.56, Some(0.0)), ["1235", "0", "1235"]);
        // Counts stay whole.
        assert_eq!(row(0.0, Some(0.0)), ["0", "0", "0"]);
        assert_eq!(row(189.0, Some(0.0)), ["189", "0", "189"]);
        // Two digits of the deviation.
        assert_eq!(row(9.083_4, Some(0.012)), ["9.083", "0.012", "9.083"]);
    }
}
