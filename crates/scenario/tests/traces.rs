//! `trace = "FILE"`: what a file's rows become, and what is said of a wrong one.

use lasthop_network::{Change, Changed, Destination, DirectionChange, Network, NodeId, Packet, Way};
use lasthop_scenario::{Override, Scenario};
use lasthop_units::{Bytes, Probability, Rate, Span, Time};
use std::fs;
use tempfile::TempDir;

const LINKS: &str = "duration_s = 20\n[[links]]\nbetween = [\"A\", \"B\"]\nrate_mbps = 10\nloss = 0.25\n\
                     [[hosts]]\nnode = \"A\"\n[[hosts.flows]]\nto = \"B\"\n";
const OF_LINK: &str = "[[changes]]\nbetween = [\"A\", \"B\"]\ntrace = \"link.txt\"\n";

/// A scenario in a folder with its trace, read with these overrides.
fn read(scenario: &str, (name, trace): (&str, &str), overrides: &[&str]) -> Result<Scenario, String> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(name), trace).expect("written");
    load(&folder, scenario, overrides).map_err(|error| error.replace(&format!("{}/", folder.path().display()), ""))
}

fn load(folder: &TempDir, scenario: &str, overrides: &[&str]) -> Result<Scenario, String> {
    let path = folder.path().join("some.toml");
    fs::write(&path, scenario).expect("written");
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("a setting")).collect();
    Scenario::load(&path, &overrides).map_err(|error| error.to_string())
}

fn forth(at_ms: u64, rate_mbps: Option<f64>, loss: Option<f64>) -> Change {
    let loss = loss.map(|loss| Probability::new(loss).expect("a probability"));
    let to = DirectionChange { rate: rate_mbps.map(Rate::from_mbps), delay: None, loss };
    Change { at: Time::ZERO + Span::from_millis(at_ms), what: Changed::Link { link: 0, way: Way::Forth, to } }
}

#[test]
fn rows_of_a_csv_are_changes_and_the_rest_of_the_scenario_stays() {
    let trace = "# measured in the garden\nat_s, rate_mbps, delay_ms\n0, 8, 5\r\n\n1.5,4,\n# a pause\n30, 2, 9\n";
    let scenario = read(&format!("{LINKS}{OF_LINK}at_s = 2\n"), ("link.txt", trace), &[]).expect("a scenario");
    let mut first = forth(2_000, Some(8.0), None);
    let Changed::Link { to, .. } = &mut first.what else { unreachable!("it is of a link") };
    to.delay = Some(Span::from_millis(5));
    // The last row comes after the end of the run.
    assert_eq!(scenario.network().changes, [first, forth(3_500, Some(4.0), None)]);
    assert_eq!(scenario.late_changes(), []);
    // What is kept of a run needs no file: neither its path nor its rows of another time.
    let written = scenario.to_toml();
    assert!(!written.contains("link.txt") && written.contains("rate_mbps = 8"), "{written}");
    for again in [
        Scenario::from_toml("again.toml", &written, &[]).expect("TOML"),
        Scenario::from_json(&scenario.to_json()).expect("JSON"),
    ] {
        assert_eq!(again.network(), scenario.network());
        assert_eq!(again.to_json(), scenario.to_json());
    }
}

#[test]
fn a_link_with_a_rate_of_0_loses_all_until_there_is_another_rate_and_then_what_it_lost_before() {
    let trace = "at_s,rate_mbps\n1,0\n2,0\n3,5\n4,6\n";
    let scenario = read(&format!("{LINKS}{OF_LINK}"), ("link.txt", trace), &[]).expect("a scenario");
    assert_eq!(
        scenario.network().changes,
        [
            forth(1_000, None, Some(1.0)),
            forth(2_000, None, Some(1.0)),
            forth(3_000, Some(5.0), Some(0.25)),
            forth(4_000, Some(6.0), None)
        ]
    );
    // A loss that is given meanwhile counts afterwards; a block of the file does as a trace does.
    let block = |at: u32, what: &str| format!("[[changes]]\nat_s = {at}\nbetween = [\"A\", \"B\"]\n{what}\n");
    let blocks = [block(3, "rate_mbps = 5"), block(1, "rate_mbps = 0"), block(2, "loss = 0.5")].concat();
    let scenario = read(&format!("{LINKS}{blocks}"), ("link.txt", ""), &[]).expect("a scenario");
    let changes = [forth(3_000, Some(5.0), Some(0.5)), forth(1_000, None, Some(1.0)), forth(2_000, None, Some(1.0))];
    assert_eq!(scenario.network().changes, changes);
}

#[test]
fn a_trace_of_stations_changes_their_snr_or_their_rate() {
    let hosts = "duration_s = 20\n[access]\nstandard = \"802.11ac\"\n[[hosts]]\n[[hosts]]\nsnr_db = 30\n\
                 [[changes]]\nhosts = [1]\ntrace = \"walk.csv\"\n";
    let trace = "at_s,snr_db\n0,30\n5,12.5\n";
    let scenario = read(hosts, ("walk.csv", trace), &[]).expect("a scenario");
    let snr = |change: &Change| match change.what {
        Changed::Station { host: 1, snr_db, .. } => snr_db,
        other => panic!("{other:?}"),
    };
    assert_eq!(scenario.network().changes.iter().map(snr).collect::<Vec<_>>(), [Some(30.0), Some(12.5)]);
    // A station whose rate is 0 loses all frames, and an SNR cannot be joined later.
    let broken = "[[hosts]]\nframe_error_rate = 0.1\n[[changes]]\nof = \"hosts\"\ntrace = \"walk.csv\"\n";
    let scenario = read(broken, ("walk.csv", "at_s,rate_mbps\n1,0\n2,6\n"), &[]).expect("a scenario");
    let errors = |change: &Change| match change.what {
        Changed::Station { rate, frame_error_rate, .. } => (rate, frame_error_rate.map(Probability::get)),
        other => panic!("{other:?}"),
    };
    let changes: Vec<_> = scenario.network().changes.iter().map(errors).collect();
    assert_eq!(changes, [(None, Some(1.0)), (Some(Rate::from_mbps(6.0)), Some(0.1))]);
    let error = read(&hosts.replace("[1]", "[0]"), ("walk.csv", trace), &[]).expect_err("host 0 has none");
    assert_eq!(error, "walk.csv:2: snr_db: 30 cannot be here; accepted: none, for host 0 has no SNR that could change");
}

#[test]
fn a_trace_of_the_command_line_is_looked_for_where_that_is_typed() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("link.txt"), "at_s,rate_mbps\n1,3\n").expect("written");
    let other = folder.path().join("other.csv");
    fs::write(&other, "at_s,rate_mbps\n1,4\n").expect("written");
    let set = format!("changes.0.trace={}", other.display());
    let scenario = load(&folder, &format!("{LINKS}{OF_LINK}"), &[&set]).expect("a scenario");
    assert_eq!(scenario.network().changes, [forth(1_000, Some(4.0), None)]);
    let error = load(&folder, &format!("{LINKS}{OF_LINK}"), &["changes.0.trace=link.txt"]).expect_err("it is not here");
    assert!(error.contains("link.txt cannot be read: No such file"), "{error}");
}

#[test]
fn wrong_traces_are_named_with_their_line_and_what_is_accepted() {
    let of = |trace: &str| read(&format!("{LINKS}{OF_LINK}"), ("link.txt", trace), &[]).expect_err("it is wrong");
    let rate = "accepted: a number from 0 to 100000";
    for (trace, message) in [
        (
            "",
            "some.toml:12: changes[0].trace: link.txt is empty; accepted: the path of a CSV file or a mahimahi trace \
              (docs/guide/trace.md)",
        ),
        ("at_s,rate_mbps\n1,8\n2,fast\n", &format!("link.txt:3: rate_mbps: \"fast\" is no number; {rate}")),
        ("at_s,rate_mbps\n1,-8\n", &format!("link.txt:2: rate_mbps: -8 is out of range; {rate}")),
        (
            "at_s,rate_mbps\n1,0.0001\n",
            "link.txt:2: rate_mbps: 0.0001 is out of range; accepted: 0, or a number from \
                                       0.001 to 100000",
        ),
        ("at_s,rate_mbps\n2,8\n# back\n1,8\n", "link.txt:4: at_s: 1 goes back; accepted: 2 or later"),
        ("at_s,rate_mbps\n,8\n", "link.txt:2: at_s: is not there; accepted: a number from 0 to 86400"),
        ("at_s,rate_mbps\n1,8,9\n", "link.txt:2: the row: has 3 cells; accepted: 2 cells"),
        ("at_s,rate_mbps\n", "link.txt:1: the header: has no row below it; accepted: at least one row"),
        (
            "at_s,rate_mpbs\n1,8\n",
            "link.txt:1: rate_mpbs: is no column of a trace with of = \"link\"; did you mean \
                                   rate_mbps?; accepted: at_s, rate_mbps, delay_ms, loss, back_rate_mbps, \
                                   back_delay_ms, back_loss",
        ),
        (
            "at_s,loss,loss\n1,1,1\n",
            "link.txt:1: loss: is a column twice; accepted: at_s, rate_mbps, delay_ms, loss, \
                                     back_rate_mbps, back_delay_ms, back_loss",
        ),
        (
            "rate_mbps,loss\n1,1\n",
            "link.txt:1: at_s: is not there; accepted: at_s, rate_mbps, delay_ms, loss, \
                                   back_rate_mbps, back_delay_ms, back_loss",
        ),
        (
            "1\n2\n\n4\n",
            "link.txt:3: the time: \"\" is no whole number; accepted: lines of whole milliseconds in order, \
                         each an opportunity for 1500 bytes",
        ),
        (
            "1\n3\n2\n",
            "link.txt:3: the time: 2 goes back; accepted: lines of whole milliseconds in order, each an \
                       opportunity for 1500 bytes",
        ),
        ("0\n0\n", "link.txt:2: the time: 0 is the last time: the trace takes no time; accepted: a last time above 0"),
    ] {
        assert_eq!(of(trace), message, "{trace:?}");
    }
    let of = |changes: &str| read(&format!("{LINKS}{changes}"), ("link.txt", "5\n"), &[]).expect_err("it is wrong");
    assert_eq!(
        of(&format!("{OF_LINK}rate_mbps = 3\n")),
        "some.toml:13: changes[0].rate_mbps: cannot be beside trace; accepted: a trace, or the change itself"
    );
    assert_eq!(
        of(&OF_LINK.replace("link.txt", "lnk.txt")),
        "some.toml:12: changes[0].trace: lnk.txt cannot be read: No such file or directory (os error 2); accepted: the \
         path of a CSV file or a mahimahi trace (docs/guide/trace.md)"
    );
    let error = of(&OF_LINK.replace("B\"]", "C\"]"));
    assert!(error.starts_with("some.toml:11: changes[0].between: no link names a node \"C\""), "{error}");
    let hosts = read("[[hosts]]\n[[changes]]\nof = \"hosts\"\ntrace = \"a\"\n", ("a", "1\n"), &[]).expect_err("wrong");
    assert!(hosts.starts_with("a:1: the trace: is mahimahi's format, which is the rate of a link"), "{hosts}");
    let path = read("[[hosts]]\n[[changes]]\ntrace = \"a\"\n", ("a", "at_s,rate_mbps\n1,0\n"), &[]).expect_err("wrong");
    assert_eq!(
        path,
        "a:2: rate_mbps: 0 cannot be here; accepted: only links and stations have no rate; a number from 0.001"
    );
}

#[test]
fn a_huge_trace_is_refused_with_the_limit() {
    let of = |trace: &str, set: &[&str]| read(&format!("{LINKS}{OF_LINK}"), ("link.txt", trace), set);
    let error = of(&"#".repeat((16 << 20) + 1), &[]).expect_err("too large");
    assert!(error.contains("link.txt cannot be read: it has more than 16 MiB, the most that is read"), "{error}");
    let rows: String = (0..20_001).map(|row| format!("{},1\n", f64::from(row) / 2_000.0)).collect();
    let error = of(&format!("at_s,rate_mbps\n{rows}"), &[]).expect_err("too many rows");
    assert!(error.contains("changes[0].trace: makes 20001 changes with the traces before it"), "{error}");
    let error = of("5\n", &["duration_s=3000"]).expect_err("too many windows");
    assert!(error.contains("makes 30000 windows of 100 ms; accepted: up to 20000"), "{error}");
}

/// A rate at each of these times in ms.
fn rates(scenario: &Scenario) -> Vec<(u64, f64)> {
    let rate = |change: &Change| match change.what {
        Changed::Link { to: DirectionChange { rate: Some(rate), loss: None, .. }, .. } => {
            (change.at.as_nanos() / 1_000_000, rate.as_mbps())
        }
        other => panic!("{other:?}"),
    };
    scenario.network().changes.iter().map(rate).collect()
}

#[test]
fn a_trace_of_mahimahi_is_rates_of_windows_and_repeats_to_the_end() {
    let of = |trace: &str, set: &[&str]| {
        rates(&read(&format!("{LINKS}{OF_LINK}"), ("link.txt", trace), set).expect("a scenario"))
    };
    // As mm-link(1) has it: a line is 1500 bytes at that millisecond, and the last line's time is the length. So one in
    // each millisecond is 12 Mb/s, and two are 24 Mb/s.
    assert_eq!(of("1\n", &[]), [(0, 12.0)]);
    assert_eq!(of("1\n2\n3\n4\n5\n", &[]), [(0, 12.0)]);
    assert_eq!(of("1\n1\n2\n2\n3\n3\n4\n4\n5\n5\n", &["changes.0.at_s=3"]), [(3_000, 24.0)]);
    // 4 in the first 100 ms of each 200, and 1 in the second: 0.48 and 0.12 Mb/s.
    let trace = "10\n20\n30\n40\n200\n";
    let expected: Vec<(u64, f64)> = (0..10).map(|at| (100 * at, if at % 2 == 0 { 0.48 } else { 0.12 })).collect();
    assert_eq!(of(trace, &["duration_s=1", "warmup_s=0"]), expected);
    assert_eq!(of(trace, &["duration_s=1", "warmup_s=0", "changes.0.window_ms=200"]), [(0, 0.3)]);
    // Nothing for 300 ms: whichever packet begins in that time leaves at its end, by the opportunity of 410 ms.
    let trace = "50\n410\n420\n500\n";
    let rates = of(trace, &["duration_s=0.5", "warmup_s=0"]);
    assert_eq!(rates, [(0, 0.12), (100, 0.04), (200, 0.06), (300, 0.12), (400, 0.24)]);
}

/// When each packet of 1500 bytes leaves by mm-link's rules: each opportunity takes the first one that waits, and is lost
/// if none does. In ms, of arrivals in order.
fn exact(times: &[u64], arrivals: &[f64]) -> Vec<f64> {
    let period = *times.last().expect("a time");
    let mut opportunities = (0..).flat_map(|round| times.iter().map(move |at| (round * period + at) as f64));
    let leaves = |arrival: &f64| opportunities.find(|at| at >= arrival).expect("the trace repeats");
    arrivals.iter().map(leaves).collect()
}

/// The same through a link that follows the trace.
fn through_the_model(trace: &str, window_ms: u32, arrivals: &[f64]) -> Vec<f64> {
    let text = format!(
        "duration_s = 60\n[[links]]\nbetween = [\"A\", \"B\"]\nqueue_packets = 100000\n[[hosts]]\nnode = \"A\"\n\
         [[hosts.flows]]\nto = \"B\"\n[[hosts]]\nnode = \"B\"\n[[hosts.flows]]\nto = \"A\"\n{OF_LINK}window_ms = {window_ms}\n"
    );
    let scenario = read(&text, ("link.txt", trace), &[]).expect("a scenario");
    let mut network = Network::new(scenario.network(), 1).expect("a network");
    let mut deliveries = Vec::new();
    for (id, arrival) in arrivals.iter().enumerate() {
        let at = Time::ZERO + Span::from_secs_f64(arrival / 1e3);
        network.advance(at, &mut deliveries);
        let (from, to) = (NodeId(0), Destination::Node(NodeId(1)));
        let packet = Packet { from, to, size: Bytes::new(1_500), flow: 0, dscp: 0, id: id as u64, payload: () };
        network.offer(at, packet).expect("there is room");
    }
    network.advance(Time::ZERO + Span::from_secs(120), &mut deliveries);
    assert_eq!(deliveries.len(), arrivals.len(), "nothing is lost");
    deliveries.iter().map(|delivery| delivery.at.as_secs_f64() * 1e3).collect()
}

/// A link of a phone that walks: 20 s of rates that change each 250 ms, between some and 30 Mb/s, with 600 ms of nothing.
fn walk() -> Vec<u64> {
    let mut state = 7_u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut times = Vec::new();
    for quarter in 0..80_u64 {
        let opportunities = if (40..43).contains(&quarter) { 0 } else { 5 + draw(620) };
        let mut here: Vec<u64> = (0..opportunities).map(|_| 250 * quarter + 1 + draw(250)).collect();
        here.sort_unstable();
        times.extend(here);
    }
    times
}

/// The figures of docs/guide/trace.md.
#[test]
fn windows_of_a_trace_delay_nearly_all_packets_as_an_exact_replay_does_within_a_third_of_a_window() {
    let times = walk();
    let trace: String = times.iter().map(|at| format!("{at}\n")).collect();
    let whole = times.len() as f64 * 12_000.0 / *times.last().expect("a time") as f64 / 1e3;
    for (load, count) in [(0.5, 20_000), (0.9, 40_000)] {
        let gap_ms = 12.0 / (load * whole);
        let arrivals: Vec<f64> =
            (0..count).map(|number| number as f64 * gap_ms + 0.5).take_while(|at| *at < 39_000.0).collect();
        let exact = exact(&times, &arrivals);
        for window_ms in [20, 100, 500] {
            let ours = through_the_model(&trace, window_ms, &arrivals);
            let mut apart: Vec<f64> = ours.iter().zip(&exact).map(|(ours, exact)| (ours - exact).abs()).collect();
            apart.sort_by(f64::total_cmp);
            let mean_delay = |leaves: &[f64]| {
                leaves.iter().zip(&arrivals).map(|(at, from)| at - from).sum::<f64>() / leaves.len() as f64
            };
            let quantile = |share: f64| apart[(share * (apart.len() - 1) as f64) as usize];
            println!(
                "| {load} | {window_ms} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
                mean_delay(&exact),
                mean_delay(&ours),
                quantile(0.5),
                quantile(0.95),
                quantile(1.0)
            );
            let window_ms = f64::from(window_ms);
            assert!(quantile(0.95) <= 0.35 * window_ms, "{} ms apart", quantile(0.95));
            // A slow packet that ends in a fast window takes time of it.
            assert!(quantile(1.0) <= 5.0 * window_ms, "{} ms apart", quantile(1.0));
            let (exact, ours) = (mean_delay(&exact), mean_delay(&ours));
            assert!((ours / exact - 1.0).abs() <= if window_ms > 100.0 { 0.25 } else { 0.06 }, "{ours} and {exact} ms");
        }
    }
}
