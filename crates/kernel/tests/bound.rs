//! The bound holds while its lease runs, and not longer.
#![allow(missing_docs)]

mod support;

use lasthop_connection::CongestionState;
use lasthop_kernel::{Kernel, SocketSample};
use lasthop_units::{Span, Time};
use std::time::{Duration, Instant};
use support::{A4, B4, B6, Flow, Net, bound, control, eventually, load, throughout};

/// Longer than any test.
const LONG: Span = Span::from_secs(600);

fn sample(kernel: &mut Kernel, flow: &Flow) -> SocketSample {
    let cookie = flow.cookie();
    let mut samples = kernel.sample().expect("a walk").into_iter();
    samples.find(|sample| sample.cookie == cookie).expect("the flow is there")
}

fn window(kernel: &mut Kernel, flow: &Flow) -> u32 {
    sample(kernel, flow).tcp.cwnd_segments
}

/// What an upper bound allows: on entering a reduction one segment beyond those in flight may always go.
fn most(bound: u32, sample: &SocketSample) -> u32 {
    match sample.tcp.state {
        CongestionState::Recovery | CongestionState::Cwr => (bound + 1).max(sample.tcp.in_flight_segments + 1),
        _ => bound,
    }
}

#[test]
fn the_upper_bound_of_a_flow_holds_and_is_lifted() {
    needs_root!();
    let net = Net::bottleneck(50, 100_000);
    let mut kernel = load(&net);
    let flow = Flow::start(&net.a, &net.b, B4);
    eventually("a window past 24", || window(&mut kernel, &flow) > 24);
    kernel.set_bounds(None, &[(flow.cookie(), bound(0, 12))], LONG).expect("bounds");
    eventually("a window of at most 12", || window(&mut kernel, &flow) <= 12);
    let before = flow.received();
    throughout(Duration::from_millis(300), || {
        let sample = sample(&mut kernel, &flow);
        assert!(sample.tcp.cwnd_segments <= most(12, &sample), "{sample:?}");
    });
    eventually("a bounded flow goes on", || flow.received() > before);
    assert_eq!(sample(&mut kernel, &flow).bound, bound(0, 12));
    kernel.set_bounds(None, &[(flow.cookie(), None)], LONG).expect("bounds");
    eventually("a window past 24 again", || window(&mut kernel, &flow) > 24);
}

#[test]
fn the_default_bound_holds_for_new_flows_from_their_first_segment() {
    needs_root!();
    let net = Net::bottleneck(50, 100_000);
    let mut kernel = load(&net);
    kernel.set_bounds(bound(0, 4), &[], LONG).expect("bounds");
    let mut flows: Vec<_> = [B4, B6].map(|address| Flow::idle(&net.a, &net.b, address)).into();
    for flow in &flows {
        assert_eq!(flow.info().tcpi_snd_cwnd, 4, "before anything is sent");
    }
    let accepted = Flow::idle(&net.b, &net.a, A4);
    assert_eq!(support::tcp_info(&accepted.receiver).tcpi_snd_cwnd, 4, "of an accepted connection");
    assert_eq!(control(&*accepted.receiver), kernel.name());
    flows.iter_mut().for_each(Flow::send);
    throughout(Duration::from_millis(300), || {
        for sample in kernel.sample().expect("a walk") {
            assert!(sample.tcp.cwnd_segments <= most(4, &sample), "{sample:?}");
        }
    });
    eventually("both go on", || flows.iter().all(|flow| flow.received() > 0));
}

#[test]
fn a_flow_without_a_bound_of_its_own_is_shielded_from_the_default() {
    needs_root!();
    let net = Net::bottleneck(50, 100_000);
    let mut kernel = load(&net);
    let free = Flow::start(&net.a, &net.b, B4);
    let held = Flow::start(&net.a, &net.b, B4);
    kernel.set_bounds(bound(0, 4), &[(free.cookie(), None)], LONG).expect("bounds");
    eventually("the free one has more than 12", || window(&mut kernel, &free) > 12);
    eventually("the other has at most 4", || window(&mut kernel, &held) <= 4);
}

#[test]
fn the_lower_bound_holds_in_recovery() {
    needs_root!();
    // 20 Mb/s and a queue of 13 segments: CUBIC alone stays far below 40 and loses again and again
    let net = Net::bottleneck(20, 20_000);
    let mut kernel = load(&net);
    let flow = Flow::start(&net.a, &net.b, B4);
    eventually("a first loss", || flow.info().tcpi_total_retrans > 0);
    kernel.set_bounds(None, &[(flow.cookie(), bound(40, 60))], LONG).expect("bounds");
    eventually("the bound takes hold", || (40..=60).contains(&window(&mut kernel, &flow)));
    let (mut recovering, mut timed_out) = (0, 0);
    eventually("200 samples in Recovery", || {
        let sample = sample(&mut kernel, &flow);
        match sample.tcp.state {
            CongestionState::Loss => timed_out += 1,
            state => {
                assert!((40..=60).contains(&sample.tcp.cwnd_segments), "{} in {state:?}", sample.tcp.cwnd_segments);
                recovering += u32::from(state == CongestionState::Recovery);
            }
        }
        recovering >= 200
    });
    println!("{recovering} samples in Recovery, {timed_out} after a timeout");
}

#[test]
fn the_upper_bound_holds_in_recovery_and_loses_nothing_for_good() {
    needs_root!();
    let net = Net::bottleneck(20, 20_000);
    let mut kernel = load(&net);
    let flows: Vec<_> = (0..4).map(|_| Flow::start(&net.a, &net.b, B4)).collect();
    kernel.set_bounds(bound(0, 10), &[], LONG).expect("bounds");
    eventually("the bound takes hold", || flows.iter().all(|flow| window(&mut kernel, flow) <= 10));
    let mut recovering = 0;
    eventually("100 samples in Recovery", || {
        for sample in kernel.sample().expect("a walk") {
            assert!(sample.tcp.cwnd_segments <= most(10, &sample), "{sample:?}");
            recovering += u32::from(sample.tcp.state == CongestionState::Recovery);
        }
        recovering >= 100
    });
    for flow in &flows {
        let before = flow.received();
        eventually("every flow goes on", || flow.received() > before);
    }
}

#[test]
fn a_lease_lapses_by_itself_and_cubics_clock_starts_anew() {
    needs_root!();
    for _ in 0..3 {
        match lapses_and_grows_slowly() {
            Ok(()) => return,
            Err(why) => eprintln!("tried again: {why}"),
        }
    }
    panic!("three times this machine was too busy to see CUBIC's clock start anew");
}

/// What the machine did not let this test see, if it did not.
fn lapses_and_grows_slowly() -> Result<(), &'static str> {
    // 5 Mb/s and a queue of 40 segments: losses come at a window of 40 to 50, a round trip of 120 ms
    let net = Net::bottleneck(5, 60_000);
    let mut kernel = load(&net);
    let flow = Flow::start(&net.a, &net.b, B4);
    // tcp_cubic.c: ssthresh = 717/1024 of the window at the loss
    let begun = Instant::now();
    let before_the_loss = loop {
        let info = flow.info();
        let before_the_loss = u64::from(info.tcpi_snd_ssthresh) * 1024 / 717;
        if info.tcpi_total_retrans > 0 && info.tcpi_ca_state == 0 && (35..1000).contains(&before_the_loss) {
            break before_the_loss;
        }
        if begun.elapsed() > Duration::from_secs(60) {
            return Err("there were only timeouts, and no loss at a full queue");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let lease = Duration::from_secs(4);
    let start = Instant::now();
    kernel.set_bounds(bound(0, 10), &[], Span::from_millis(4000)).expect("bounds");
    eventually("a window of at most 10", || window(&mut kernel, &flow) <= 10);
    // Renewed by nobody.
    eventually("a window past 10 again", || {
        let window = flow.info().tcpi_snd_cwnd;
        // the bound must not be over before the lease is, by a clock that is read after the window
        assert!(window <= 10 || start.elapsed() >= lease, "{window} after {:?}", start.elapsed());
        window > 10
    });
    // RFC 9438 §4.2: from a fresh epoch the former window is K = cbrt(0.3 W_max / 0.4) = 3 s away for 40 segments. An
    // epoch that began before the lease is past K: it was there 0.23 s after the lapse, in three of three runs.
    let mut looks = 0;
    loop {
        let window = u64::from(flow.info().tcpi_snd_cwnd);
        let since = start.elapsed() - lease;
        if since > Duration::from_secs(1) {
            break;
        }
        assert!(window < before_the_loss, "{window} of {before_the_loss}, {since:?} after the lapse");
        looks += u32::from(since > Duration::from_millis(300));
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(sample(&mut kernel, &flow).bound, None);
    if looks > 0 { Ok(()) } else { Err("it did not get the CPU for a second") }
}

#[test]
fn a_flow_that_is_no_longer_listed_falls_back_to_the_default() {
    needs_root!();
    let net = Net::bottleneck(50, 100_000);
    let mut kernel = load(&net);
    let flow = Flow::start(&net.a, &net.b, B4);
    kernel.set_bounds(bound(0, 8), &[(flow.cookie(), bound(0, 20))], LONG).expect("bounds");
    assert_eq!(sample(&mut kernel, &flow).bound, bound(0, 20));
    eventually("its own", || window(&mut kernel, &flow) > 8);
    kernel.set_bounds(bound(0, 8), &[], LONG).expect("bounds");
    assert_eq!(sample(&mut kernel, &flow).bound, bound(0, 8));
    eventually("the default", || window(&mut kernel, &flow) <= 8);
}

#[test]
fn the_lease_of_a_bound_that_does_not_change_is_renewed_and_lapses_with_the_others() {
    needs_root!();
    let net = Net::bottleneck(50, 100_000);
    let mut kernel = load(&net);
    let flow = Flow::start(&net.a, &net.b, B4);
    let own = [(flow.cookie(), bound(0, 20))];
    kernel.set_bounds(None, &own, Span::from_millis(100)).expect("bounds");
    std::thread::sleep(Duration::from_millis(101));
    assert_eq!(sample(&mut kernel, &flow).bound, None);
    kernel.set_bounds(None, &own, LONG).expect("bounds");
    assert_eq!(sample(&mut kernel, &flow).bound, bound(0, 20));
    assert!(sample(&mut kernel, &flow).bound_until > Some(Time::from_nanos(LONG.as_nanos())));
    kernel.set_bounds(None, &own, Span::ZERO).expect("bounds");
    assert_eq!(sample(&mut kernel, &flow).bound, None);
}

#[test]
fn sixty_five_thousand_flows_can_have_bounds_and_one_more_is_refused_by_name() {
    needs_root!();
    let net = Net::direct();
    let mut kernel = load(&net);
    let flows: Vec<_> = (1..=65_537).map(|cookie| (cookie, bound(1, 2))).collect();
    kernel.set_bounds(None, &flows[..65_536], LONG).expect("as many as fit");
    // those no longer listed make room
    kernel.set_bounds(None, &flows[1..], LONG).expect("as many others");
    let error = kernel.set_bounds(None, &flows, LONG).expect_err("one too many");
    assert!(error.to_string().contains("1 flows beyond the 65536"), "{error}");
}

#[test]
fn a_lease_of_zero_bounds_nothing() {
    needs_root!();
    let net = Net::bottleneck(50, 100_000);
    let mut kernel = load(&net);
    kernel.set_bounds(bound(0, 2), &[], Span::ZERO).expect("bounds");
    let flow = Flow::start(&net.a, &net.b, B4);
    eventually("a window past 12", || window(&mut kernel, &flow) > 12);
}
