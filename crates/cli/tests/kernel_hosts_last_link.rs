//! The last link on kernel hosts, with everything that a user has: the client's agent reports it in a TCP option, the server's law in the
//! kernel uses it. In virtual time.

use crate::common::{can_emulate, in_virtual_time};
use std::fs;
use std::path::Path;

/// [wu] figure 2 without its cross-traffic: three clients, each with a last link of its own of 7 Mb/s that loses 0.5 % of the packets
/// towards it; 70 ms. The third one's server takes the client's word as the paper does; the second's looks out for liars.
fn three_clients() -> String {
    let mut text = "duration_s = 20\nwarmup_s = 0\nsample_ms = 10\n\
                    [[links]]\nbetween = [\"S\", \"ISP\"]\nrate_mbps = 45\ndelay_ms = 33\nqueue_packets = 500\n"
        .to_owned();
    for client in ["C1", "C2", "C3"] {
        text += &format!(
            "[[links]]\nbetween = [\"ISP\", \"{client}\"]\nrate_mbps = 7\ndelay_ms = 2\nqueue_packets = 100\nloss = 0.005\n"
        );
    }
    let report = "[hosts.last_link]\nreport = true\n";
    for (client, control, start_s, more) in [
        ("C1", "newreno", 0.0, String::new()),
        ("C2", "lastlink", 0.5, report.to_owned()),
        ("C3", "lastlink", 1.0, format!("{report}[hosts.lastlink]\nignored_max = 0\n")),
    ] {
        text += &format!(
            "[[hosts]]\nnode = \"{client}\"\nera = \"modern\"\ncongestion_control = \"{control}\"\n{more}\
             [[hosts.flows]]\nto = \"S\"\ndirection = \"down\"\nstart_s = {start_s}\n"
        );
    }
    text
}

#[test]
#[ignore = "long: make test-virtual-time"]
fn a_server_that_is_told_of_a_lossy_link_begins_with_its_window_and_carries_twice_what_newreno_does() {
    if !can_emulate() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wu.toml");
    fs::write(&file, three_clients()).expect("a file");
    let out = folder.path().join("out").display().to_string();
    let result = in_virtual_time(&["run", &file.display().to_string(), "--json", "--out", &out]);
    let series = lasthop_report::read_run(Path::new(&out)).expect("a result and its series").1.flows;
    let [newreno, guarded, trusting] = &result.flows[..] else { panic!("three flows") };
    let mbps = [newreno, guarded, trusting].map(|flow| flow.goodput_mbps);
    println!("{mbps:?} Mb/s; {:?}, {:?}", guarded.last_link, trusting.last_link);

    assert_eq!(newreno.last_link, None);
    for flow in [guarded, trusting] {
        let heard = flow.last_link.expect("the server has heard a report");
        // Cwnd_init = 7e6 · RTT / (8 · 1448), [wu] §3.2. The RTT is 70 ms and what hosts take to answer: 42 segments or some more.
        let initial = heard.initial_segments.expect("the handshake's RTT was known");
        assert!((42..=52).contains(&initial), "{initial}");
        // All of them go before anything can have come back, unless nobody looked for most of that time; a receiver's first window
        // has room for 45. (They take 11 ms over the first link.)
        let first = series.of_flow(flow.id).find(|sample| sample.in_flight_segments > 0).expect("it sends");
        let looked = series.t_s.iter().copied().filter(|at| *at < first.t_s).fold(0.0, f64::max);
        let flight =
            series.of_flow(flow.id).filter(|sample| sample.t_s < looked + 0.065 && sample.t_s >= looked + 0.02);
        let expected = initial.min(65_535 / 1448);
        let flight = flight.map(|sample| (sample.cwnd_segments, sample.in_flight_segments)).max();
        let (window, flight) = flight.expect("the first flight is seen");
        // Without the report ten would go.
        assert!(window == initial && (20..=expected).contains(&flight), "{flight} of {window}");
        println!("the first flight: {flight} of {expected} segments");
        let told = series.of_flow(flow.id).find(|sample| sample.cwnd_max_segments.is_some());
        let told = told.expect("the series shows the limit");
        assert_eq!((told.reported_bandwidth_mbps, told.reported_error_rate), (Some(7.0), Some(0.005)));
        assert!(told.cwnd_max_segments.is_some_and(|most| most >= 42), "{told:?}");
        assert!(heard.ignored_losses > heard.heeded_losses, "{heard:?}");
    }
    // NewReno gets some 2 Mb/s of 0.5 %; who ignores all of these losses fills the link, and the guards heed one in eight.
    assert!(mbps[1] >= 2.0 * mbps[0] && mbps[2] >= 2.0 * mbps[0], "{mbps:?}");
}
