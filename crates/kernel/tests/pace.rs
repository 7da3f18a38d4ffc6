//! The limit of the pacing rate holds while its lease runs, and leaves no trace.
#![allow(missing_docs)]

mod support;

use lasthop_kernel::laws::{Loaded, Name, Options};
use lasthop_kernel::{Kernel, Mode};
use lasthop_laws::{Bound, LawName, Parameters};
use lasthop_units::{Rate, Span};
use libbpf_rs::{Iter, Link, Object};
use std::io::Read as _;
use std::process::Command;
use std::time::{Duration, Instant};
use support::{B4, B6, Flow, NO_PACE, Net, eventually, load, load_with, pace, set_control, test_object};

/// Longer than any test.
const LONG: Span = Span::from_secs(600);
/// In bytes per second, as sockets have it: 2 Mb/s.
const LIMIT: u64 = 250_000;

/// The limit with a window of ten segments, which in the round trip of a veth, well below a millisecond, are more than a hundred times
/// as much. Without that window TCP would send, on so short a path, a quarter of a second's worth at once.
fn limit() -> Option<Bound> {
    Some(Bound { max_segments: 10, ..pace(2.0).expect("a bound") })
}

fn cubic(socket: &std::os::fd::OwnedFd) {
    set_control(socket, "cubic");
}

/// Whether the kernel itself paces a socket.
struct Paced {
    link: Link,
    _object: Object,
}

impl Paced {
    fn new() -> Self {
        let object = test_object("paced").load().unwrap_or_else(|error| panic!("the kernel refuses the walk: {error}"));
        let mut programs = object.progs_mut();
        let link = programs.next().expect("one program").attach().expect("a walk");
        drop(programs);
        Self { link, _object: object }
    }

    /// `SK_PACING_NONE` is 0.
    fn is(&self, net: &Net, flow: &Flow) -> bool {
        let mut bytes = Vec::new();
        net.a.run(|| Iter::new(&self.link).expect("a walk").read_to_end(&mut bytes).expect("what it wrote"));
        let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
        let mut records = bytes.chunks_exact(16).map(|record| (number(&record[..8]), number(&record[8..])));
        records.find(|(cookie, _)| *cookie == flow.cookie()).expect("the flow is there").1 != 0
    }
}

/// The pacing rate that `ss -tin` shows of the only connection, in bytes per second.
fn shown_by_ss(net: &Net) -> u64 {
    let shown = net.a.run(|| Command::new("ss").args(["-tinH"]).output()).expect("iproute2 is there");
    let shown = String::from_utf8(shown.stdout).expect("text");
    let rate = shown.split("pacing_rate ").nth(1).and_then(|rest| rest.split_once("bps")).expect("a pacing rate");
    rate.0.parse::<u64>().expect("a number") / 8
}

/// Megabits acknowledged per second, over two seconds or more.
fn goodput_mbps(flow: &Flow) -> f64 {
    // The clock around the counter: what is measured is never more than what was.
    let (before, start) = (flow.info().tcpi_bytes_acked, Instant::now());
    std::thread::sleep(Duration::from_secs(2));
    let elapsed = start.elapsed();
    (flow.info().tcpi_bytes_acked - before) as f64 * 8e-6 / elapsed.as_secs_f64()
}

/// A machine that is too busy to send in time sends less, now and then; more never.
fn keeps_to(flow: &Flow, mbps: f64) {
    eventually(&format!("{mbps} Mb/s within a tenth"), || {
        let goodput = goodput_mbps(flow);
        println!("{goodput:.3} Mb/s of {mbps}");
        assert!(goodput < 1.1 * mbps, "{goodput} Mb/s");
        goodput > 0.9 * mbps
    });
}

fn is_limited(kernel: &mut Kernel, flow: &Flow) -> bool {
    let cookie = flow.cookie();
    let samples = kernel.sample().expect("a walk");
    let sample = samples.iter().find(|sample| sample.cookie == cookie).expect("the flow is there");
    sample.bound == limit()
}

#[test]
fn a_pacing_rate_holds_though_the_window_is_far_larger() {
    needs_root!();
    let net = Net::direct();
    for mode in support::modes() {
        let mut kernel = load_with(&net, mode, |_| {});
        let mut flow = Flow::idle_with(&net.a, &net.b, B4, cubic);
        kernel.set_bounds(None, &[(flow.cookie(), limit())], LONG).expect("bounds");
        flow.send();
        eventually("the limit", || flow.info().tcpi_pacing_rate == LIMIT);
        keeps_to(&flow, 2.0);
        let info = flow.info();
        let window_bytes = f64::from(info.tcpi_snd_cwnd) * f64::from(info.tcpi_snd_mss);
        assert!(window_bytes / (f64::from(info.tcpi_min_rtt) * 1e-6) > 10.0 * LIMIT as f64);
        assert!(is_limited(&mut kernel, &flow));
        assert_eq!(shown_by_ss(&net), LIMIT);
        assert_eq!(kernel.counters().unpaced, 0);
        kernel.set_bounds(None, &[(flow.cookie(), None)], LONG).expect("bounds");
        eventually("the limit is lifted", || flow.info().tcpi_pacing_rate > 10 * LIMIT);
        eventually("and the rate", || goodput_mbps(&flow) > 20.0);
    }
}

#[test]
fn a_limit_holds_for_new_flows_beside_a_window() {
    needs_root!();
    let net = Net::direct();
    for mode in support::modes() {
        let mut kernel = load_with(&net, mode, |_| {});
        let both = Bound { max_segments: 4, ..pace(2.0).expect("a bound") };
        kernel.set_bounds(Some(both), &[], LONG).expect("bounds");
        let mut flows: Vec<_> = [B4, B6].map(|address| Flow::idle_with(&net.a, &net.b, address, cubic)).into();
        for flow in &mut flows {
            assert_eq!(flow.info().tcpi_pacing_rate, LIMIT, "before anything is sent");
            flow.send();
        }
        eventually("all windows", || flows.iter().all(|flow| flow.info().tcpi_snd_cwnd <= 4));
        keeps_to(&flows[0], 2.0);
        keeps_to(&flows[1], 2.0);
        assert!(kernel.sample().expect("a walk").iter().all(|sample| sample.bound == Some(both)));
    }
}

#[test]
fn a_limit_ends_with_its_lease_and_leaves_nothing() {
    needs_root!();
    let net = Net::direct();
    let paced = Paced::new();
    for leaves in ["lapses", "is released", "is given another control"] {
        let mut kernel = load(&net);
        let mut flow = Flow::idle_with(&net.a, &net.b, B4, cubic);
        assert!(!paced.is(&net, &flow), "cubic does not pace");
        // Slow enough that it is never seen to be over before it is.
        let lease = Duration::from_secs(if leaves == "lapses" { 3 } else { 600 });
        let start = Instant::now();
        kernel
            .set_bounds(None, &[(flow.cookie(), pace(2.0))], Span::from_millis(lease.as_millis() as u64))
            .expect("bounds");
        flow.send();
        eventually("the limit, or the end of its lease", || {
            flow.info().tcpi_pacing_rate == LIMIT || start.elapsed() >= lease
        });
        match leaves {
            "lapses" => {
                // Renewed by nobody.
                eventually("the rate is back", || flow.info().tcpi_pacing_rate > 10 * LIMIT);
                assert!(start.elapsed() >= lease, "a limit that was over before its lease");
            }
            "is released" => assert_eq!(kernel.release().expect("a walk").restored, 1),
            _ => set_control(&*flow.sender, "reno"),
        }
        eventually("the rate is back", || flow.info().tcpi_pacing_rate > 10 * LIMIT);
        assert!(!paced.is(&net, &flow), "it {leaves}");
        eventually("and so is the goodput", || goodput_mbps(&flow) > 20.0);
    }
}

#[test]
fn an_idle_flow_starts_at_the_limit_that_has_been_set_meanwhile() {
    needs_root!();
    let net = Net::direct();
    let mut kernel = load(&net);
    let mut flow = Flow::idle(&net.a, &net.b, B4);
    assert!(flow.info().tcpi_pacing_rate > 10 * LIMIT);
    kernel.set_bounds(limit(), &[], LONG).expect("bounds");
    flow.send();
    eventually("the limit", || flow.info().tcpi_pacing_rate == LIMIT);
    keeps_to(&flow, 2.0);
}

#[test]
fn an_applications_own_limit_survives_ours() {
    needs_root!();
    let net = Net::direct();
    for mode in support::modes() {
        let mut kernel = load_with(&net, mode, |_| {});
        // 1 Mb/s is below our 2 Mb/s, 8 Mb/s is above, and then there is none.
        for (own, both) in [(125_000, 125_000), (1_000_000, LIMIT), (NO_PACE, LIMIT)] {
            let mut flow = Flow::idle_with(&net.a, &net.b, B4, cubic);
            flow.set_max_pacing_rate(own);
            kernel.set_bounds(None, &[(flow.cookie(), pace(2.0))], LONG).expect("bounds");
            flow.send();
            eventually("the lower one of both", || flow.info().tcpi_pacing_rate == both);
            let told = if mode == Mode::Clamp { both as u32 } else { own };
            assert_eq!(flow.max_pacing_rate(), told, "{mode:?}");
            // The application sets another one while ours is in force: 4 Mb/s.
            let own = if own == NO_PACE { NO_PACE } else { 500_000 };
            flow.set_max_pacing_rate(own);
            eventually("ours, which is lower now", || flow.info().tcpi_pacing_rate == LIMIT);
            kernel.set_bounds(None, &[(flow.cookie(), None)], LONG).expect("bounds");
            eventually("the application's own", || flow.max_pacing_rate() == own);
            let expected = if own == NO_PACE { 10 * LIMIT } else { 500_000 };
            eventually("its rate", || flow.info().tcpi_pacing_rate >= expected);
            assert!(own == NO_PACE || flow.info().tcpi_pacing_rate == 500_000);
        }
        // Released in the midst of it.
        let mut flow = Flow::idle_with(&net.a, &net.b, B4, cubic);
        flow.set_max_pacing_rate(1_000_000);
        kernel.set_bounds(None, &[(flow.cookie(), pace(2.0))], LONG).expect("bounds");
        flow.send();
        eventually("ours", || flow.info().tcpi_pacing_rate == LIMIT);
        kernel.release().expect("a walk");
        assert_eq!(flow.max_pacing_rate(), 1_000_000, "{mode:?}");
        eventually("its rate", || flow.info().tcpi_pacing_rate == 1_000_000);
    }
}

/// TCP's own pace, without a limit.
const BY_TCP: Bound = Bound {
    min_segments: 0,
    max_segments: 0,
    max_pacing_rate: Rate::ZERO,
    max_receive_bytes: 0,
    paced: true,
    at_once: false,
};

/// How many windows a flow is paced at in a smoothed round trip: the median of many looks in slow start's first half, and
/// of as many beyond it.
fn windows_in_a_round_trip(flow: &Flow, in_slow_start: bool) -> f64 {
    let mut factors = Vec::new();
    eventually("fifty looks", || {
        let info = flow.info();
        let window = f64::from(info.tcpi_snd_cwnd.max(info.tcpi_unacked)) * f64::from(info.tcpi_snd_mss);
        if (info.tcpi_snd_cwnd < info.tcpi_snd_ssthresh / 2) == in_slow_start && info.tcpi_ca_state == 0 {
            factors.push(info.tcpi_pacing_rate as f64 * f64::from(info.tcpi_rtt) * 1e-6 / window);
        }
        factors.len() == 50
    });
    factors.sort_by(f64::total_cmp);
    factors[25]
}

/// What the kernel itself does for its own cubic on a socket whose application asks for pacing, we do for a bound, and for our
/// laws.
#[test]
fn a_bound_flow_is_paced_at_the_rate_that_the_kernel_computes_for_its_own_cubic() {
    needs_root!();
    let net = Net::bottleneck(20, 60_000);
    let paced = Paced::new();
    let hd = Options { name: Name::Private, ..Options::new(LawName::Hd, Parameters::of(LawName::Hd)) };
    let law = Loaded::load(&hd).unwrap_or_else(|error| panic!("{error}"));
    let leave = ["cubic", law.name()].map(Into::into).to_vec();
    let mut kernel = load_with(&net, Mode::Control, |options| {
        options.leave = leave.clone();
        options.take_chosen = true;
    });
    let window = Bound { max_segments: 12, ..BY_TCP };
    // Far above what it would pace at.
    let below_a_limit = Bound { max_segments: 2, ..pace(800.0).expect("a bound") };
    for (own, bound, in_slow_start) in [
        ("cubic", None, false),
        (law.name(), None, false),
        ("reno", Some(BY_TCP), false),
        ("reno", Some(window), true),
        ("reno", Some(below_a_limit), true),
    ] {
        let mut flow = Flow::idle_with(&net.a, &net.b, B4, |socket| set_control(socket, own));
        kernel.set_bounds(None, &[(flow.cookie(), bound)], LONG).expect("bounds");
        if bound.is_none() {
            flow.set_max_pacing_rate(NO_PACE - 1);
        }
        flow.send();
        let windows = windows_in_a_round_trip(&flow, in_slow_start);
        println!("{}: {bound:?}: {windows:.3} windows in a round trip", flow.control());
        // The kernel's tcp_pacing_ss_ratio and tcp_pacing_ca_ratio.
        let expected = if in_slow_start { 2.0 } else { 1.2 };
        assert!((windows / expected - 1.0).abs() < 0.02, "{bound:?}: {windows} windows in a round trip");
        assert!(paced.is(&net, &flow), "{bound:?}: the rate is in force");
        eventually("ss shows the rate", || {
            (shown_by_ss(&net) as f64 / flow.info().tcpi_pacing_rate as f64 - 1.0).abs() < 0.05
        });
        kernel.set_bounds(None, &[(flow.cookie(), None)], LONG).expect("bounds");
        if bound.is_some() {
            eventually("it is no longer in force", || !paced.is(&net, &flow));
        }
    }
}

#[test]
fn an_applications_own_limit_holds_under_tcps_own_pace_and_no_limit_stops_a_flow() {
    needs_root!();
    let net = Net::direct();
    let paced = Paced::new();
    for mode in support::modes() {
        let mut kernel = load_with(&net, mode, |_| {});
        let mut flow = Flow::idle_with(&net.a, &net.b, B4, cubic);
        flow.set_max_pacing_rate(125_000);
        kernel.set_bounds(None, &[(flow.cookie(), Some(BY_TCP))], LONG).expect("bounds");
        flow.send();
        eventually("the application's limit", || flow.info().tcpi_pacing_rate == 125_000);
        flow.set_max_pacing_rate(NO_PACE);
        eventually("TCP's own rate", || flow.info().tcpi_pacing_rate > 10 * LIMIT);
        assert!(paced.is(&net, &flow));
        // LEAST_PACING_RATE
        kernel.set_bounds(None, &[(flow.cookie(), pace(0.001))], LONG).expect("bounds");
        eventually("the least pace", || flow.info().tcpi_pacing_rate == 4000);
        kernel.set_bounds(None, &[(flow.cookie(), None)], LONG).expect("bounds");
        eventually("no limit", || flow.max_pacing_rate() == NO_PACE && flow.info().tcpi_pacing_rate > 10 * LIMIT);
        // The application has asked for pacing, and never taken that back: no call does.
        assert!(paced.is(&net, &flow));
    }
}

#[test]
fn a_limit_in_mode_clamp_holds_for_any_control() {
    needs_root!();
    let net = Net::direct();
    let mut kernel = load_with(&net, Mode::Clamp, |_| {});
    for control in ["reno", "bbr"] {
        let mut flow = Flow::idle_with(&net.a, &net.b, B4, |socket| set_control(socket, control));
        kernel.set_bounds(None, &[(flow.cookie(), limit())], LONG).expect("bounds");
        flow.send();
        eventually("the limit", || flow.info().tcpi_pacing_rate == LIMIT);
        keeps_to(&flow, 2.0);
        kernel.set_bounds(None, &[(flow.cookie(), None)], LONG).expect("bounds");
        eventually("the rate is back", || flow.info().tcpi_pacing_rate > 2 * LIMIT);
        assert_eq!((flow.control().as_str(), flow.max_pacing_rate()), (control, NO_PACE));
    }
}
