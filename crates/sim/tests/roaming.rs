//! Hosts that roam: their connections go on over the new path, and their agents share with those who are there.
#![allow(missing_docs)]

mod common;

use lasthop_scenario::{RunResult, Series};

/// A laptop goes from the hall to the attic at 20 s.
const TEXT: &str = "
duration_s = 40
warmup_s = 10
[access]
standard = \"802.11g\"
[path]
rtt_ms = 20
[[cells]]
name = \"hall\"
channel = 1
[[cells]]
name = \"attic\"
channel = 6
path_rtt_ms = 60
[[hosts]]
name = \"laptop\"
cell = \"hall\"
era = \"modern\"
[[hosts.flows]]
[[hosts.roam]]
at_s = 20
to = \"attic\"
[[hosts]]
name = \"in-hall\"
cell = \"hall\"
era = \"modern\"
[[hosts.flows]]
[[hosts]]
name = \"in-attic\"
cell = \"attic\"
era = \"modern\"
[[hosts.flows]]
";

fn run(overrides: &[&str]) -> (RunResult, Series) {
    common::try_run(TEXT, overrides, true).unwrap_or_else(|error| panic!("{error}"))
}

/// Of a flow between these seconds: the mean of a column where it has a value, and the share of samples that have one.
fn mean(column: &[Option<f64>], series: &Series, flow: u32, from_s: f64, to_s: f64) -> (f64, f64) {
    let rows = series.flows.t_s.iter().zip(&series.flows.flow).zip(column);
    let of: Vec<_> = rows.filter(|((t_s, of), _)| **of == flow && (from_s..to_s).contains(*t_s)).collect();
    let values: Vec<f64> = of.iter().filter_map(|(_, value)| **value).collect();
    (values.iter().sum::<f64>() / values.len() as f64, values.len() as f64 / of.len() as f64)
}

#[test]
fn a_connection_goes_on_over_the_new_path_and_shares_the_new_air() {
    for (direction, kind) in [("up", "bulk"), ("down", "bulk"), ("down", "quic")] {
        let own = [format!("hosts.0.flows.0.direction={direction}"), format!("hosts.0.flows.0.kind={kind}")];
        let (result, series) = run(&own.each_ref().map(String::as_str));
        let goodputs: Vec<Option<f64>> = series.flows.goodput_mbps.iter().copied().map(Some).collect();
        let goodput = |flow, from_s, to_s| mean(&goodputs, &series, flow, from_s, to_s).0;
        // Who is alone at an access point has some 24 Mb/s.
        let (alone, beside) = (goodput(2, 12.0, 20.0), goodput(1, 12.0, 20.0));
        assert!(alone > 20.0 && beside < 0.8 * alone, "{direction} {kind}: {alone}, {beside}");
        assert!(goodput(1, 30.0, 40.0) > 0.9 * alone, "{direction} {kind}: who stays in the hall is alone");
        let after = [goodput(0, 30.0, 40.0), goodput(2, 30.0, 40.0)];
        assert!(after.iter().all(|one| *one > 0.15 * alone), "{direction} {kind}: {after:?}");
        assert!((after[0] + after[1]) / alone > 0.9, "{direction} {kind}: {after:?}");
        // No round trip is shorter than its path, before and after.
        let least = |from_s: f64, to_s: f64| {
            let rows = series.flows.t_s.iter().zip(&series.flows.flow).zip(&series.flows.srtt_ms);
            let of = rows.filter(|((t_s, flow), _)| **flow == 0 && (from_s..to_s).contains(*t_s));
            of.filter_map(|(_, srtt_ms)| *srtt_ms).fold(f64::INFINITY, f64::min)
        };
        let (before, behind) = (least(12.0, 20.0), least(25.0, 40.0));
        assert!((20.0..60.0).contains(&before) && behind >= 60.0, "{direction} {kind}: {before}, {behind} ms");
        let roam = &result.roams[0];
        assert_eq!((roam.host, roam.from, roam.to, roam.at_s), (0, 0, 1, 20.0));
        let silent_ms = roam.silent_ms.expect("it goes on");
        assert!((200.0..3_000.0).contains(&silent_ms), "{direction} {kind}: {silent_ms} ms");
        // Each packet left behind is one of a cell; what the laptop got in each cell is in their goodputs.
        let left_behind: u64 = result.cells.iter().map(|cell| cell.left_behind).sum();
        assert_eq!(left_behind, result.access.left_behind);
        assert!(left_behind > 0 && result.cells[1].left_behind == 0, "{direction} {kind}");
        let of_cells: f64 = result.cells.iter().map(|cell| cell.goodput_mbps).sum();
        assert!((of_cells / result.aggregate_goodput_mbps - 1.0).abs() < 1e-9);
        let attic = result.cells[1].goodput_mbps - result.flows[2].goodput_mbps;
        assert!((0.1..0.9).contains(&(attic / result.flows[0].goodput_mbps)), "{direction} {kind}: {attic}");
    }
}

#[test]
fn an_agents_group_is_of_those_behind_its_access_point_now() {
    let agents = ["hosts.0.policy=\"count\"", "hosts.1.policy=\"count\"", "hosts.2.policy=\"count\""];
    let adjusts = [0, 1, 2].map(|host| format!("hosts.{host}.adjust_s=1"));
    let overrides: Vec<&str> = agents.into_iter().chain(adjusts.iter().map(String::as_str)).collect();
    let (result, series) = run(&overrides);
    let bounds: Vec<Option<f64>> = series.flows.bound_max.iter().map(|bound| bound.map(f64::from)).collect();
    let bound = |flow, from_s, to_s| mean(&bounds, &series, flow, from_s, to_s);
    // The window of one terminal, and of each of two: the laptop's peer has the one when the laptop has gone.
    let (two, one) = (bound(0, 15.0, 20.0), bound(2, 15.0, 20.0));
    assert!(one.0 > 1.5 * two.0 && one.1 == 1.0 && two.1 == 1.0, "{one:?}, {two:?}");
    let after = [0, 1, 2].map(|flow| bound(flow, 35.0, 40.0).0);
    assert_eq!(after, [two.0, one.0, two.0]);
    let heard: Vec<u64> = result.policies.hosts.iter().map(|host| host.beacons_heard).collect();
    assert!(heard.iter().all(|heard| *heard > 20), "{heard:?}");
    // Where nobody roams the attic hears nobody.
    let still: Vec<&str> = overrides.iter().copied().chain(["hosts.0.roam.0.at_s=90"]).collect();
    let result = common::run(TEXT, &still);
    assert_eq!(result.policies.hosts[2].beacons_heard, 0);
    assert!(result.roams.is_empty());
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let results = [(); 2].map(|()| {
        let (result, series) = run(&["hosts.0.policy=\"lasthop\"", "duration_s=30"]);
        (RunResult { wall_s: 0.0, simulated_s_per_wall_s: 0.0, ..result }, series.flows.goodput_mbps)
    });
    assert_eq!(results[0], results[1]);
}

/// Half of the round trip is 10 ms in the hall and 30 ms in the attic; all else is the same.
#[test]
fn a_slowdown_is_over_the_network_at_the_start_of_its_transfer() {
    let own =
        ["hosts.0.flows.0.kind=transfers", "hosts.0.flows.0.transfer_kib=50", "hosts.1.count=0", "hosts.2.count=0"];
    let (_, series) = run(&own);
    let least = |from_s: f64, to_s: f64| -> Vec<f64> {
        let rows = series.transfers.rows().filter(|row| (from_s..to_s).contains(&row.start_s));
        rows.filter_map(|row| Some(row.completion_s? / row.slowdown?)).collect()
    };
    let (before, after) = (least(0.0, 20.0), least(20.2, 40.0));
    assert!(before.len() > 5 && after.len() > 5, "{before:?}, {after:?}");
    for (in_hall, in_attic) in before.iter().zip(&after) {
        assert!((in_attic - in_hall - 0.020).abs() < 1e-6, "{in_hall} s in the hall, {in_attic} s in the attic");
    }
}
