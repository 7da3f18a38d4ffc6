//! Vegas, Westwood+, LEDBAT++ and Copa: worked numbers of their sources.

use lasthop_laws::{Acked, Law, LawName, Lost, Start, Window};

const GROWS: u32 = Acked::MAY_GROW | Acked::CWND_LIMITED | Acked::ADVANCED;

fn window(cwnd_segments: u32, ssthresh_segments: u32) -> Window {
    Window { cwnd_segments, cwnd_count: 0, ssthresh_segments }
}

/// A round trip of so many ACKs of one segment, each with this RTT; the last one is the first beyond the round.
fn round(law: &mut Law, number: u32, samples: u32, rtt_us: u32, window: &mut Window) {
    for sample in 1..=samples {
        let is_last = sample == samples;
        let acked = Acked {
            now_us: u64::from(number) * 1_000_000 + u64::from(sample),
            acked_segments: 1,
            rtt_us,
            srtt_us: rtt_us,
            snd_una: if is_last { 100_000 * number + 1 } else { 100_000 * number - 1000 },
            snd_nxt: 100_000 * (number + 1),
            flags: GROWS,
            ..Acked::default()
        };
        law.on_acked(&acked, window);
    }
}

fn vegas() -> (Law, Window) {
    let mut law = Law::new(LawName::Vegas, Start::default());
    let mut window = window(10, 10);
    law.on_acked(&Acked { snd_una: 1, snd_nxt: 100_000, flags: GROWS, ..Acked::default() }, &mut window);
    // The lowest RTT is 100 ms, and 1 us more by Linux's rule. Nothing waits: + 1.
    round(&mut law, 1, 3, 99_999, &mut window);
    assert_eq!(window.cwnd_segments, 11);
    (law, window)
}

#[test]
fn vegas_keeps_two_to_four_segments_waiting() {
    let (mut law, mut window) = vegas();
    // 11 × 50 / 100 = 5 wait, more than beta = 4: - 1.
    round(&mut law, 2, 3, 149_999, &mut window);
    assert_eq!((window.cwnd_segments, window.ssthresh_segments), (10, 10));
    // 10 × 30 / 100 = 3: between alpha and beta.
    round(&mut law, 3, 3, 129_999, &mut window);
    assert_eq!(window.cwnd_segments, 10);
    // 10 × 10 / 100 = 1, less than alpha = 2: + 1.
    round(&mut law, 4, 3, 109_999, &mut window);
    assert_eq!(window.cwnd_segments, 11);
    // Two samples are too few: NewReno's growth, a part of a segment.
    round(&mut law, 5, 2, 149_999, &mut window);
    assert_eq!((window.cwnd_segments, window.cwnd_count), (11, 1));
}

#[test]
fn vegas_ends_slow_start_once_more_than_one_segment_waits() {
    let (mut law, _) = vegas();
    let mut fast = window(20, u32::MAX / 2);
    // 20 × 20 / 100 = 4 > gamma = 1: min(20, 20 × 100 / 120 + 1) = 17. The two ACKs before are slow start's: + 2.
    round(&mut law, 2, 3, 119_999, &mut fast);
    assert_eq!((fast.cwnd_segments, fast.ssthresh_segments), (22 * 100 / 120 + 1, 22 * 100 / 120 + 1));
}

#[test]
fn vegas_is_newreno_until_what_was_in_flight_at_a_loss_is_acknowledged() {
    let (mut law, mut window) = vegas();
    law.on_lost(&Lost { snd_nxt: 300_500, ..Lost::default() }, &mut window);
    assert_eq!(window.ssthresh_segments, 5);
    window = Window { cwnd_segments: 10, cwnd_count: 0, ssthresh_segments: 5 };
    // 5 segments wait, and it grows all the same.
    round(&mut law, 2, 3, 149_999, &mut window);
    assert_eq!((window.cwnd_segments, window.cwnd_count), (10, 3));
    // Behind byte 300,500 its own rule again: this ACK begins a round, the next round moves.
    round(&mut law, 4, 3, 149_999, &mut window);
    round(&mut law, 5, 4, 159_999, &mut window);
    assert_eq!(window.cwnd_segments, 9);
}

#[test]
fn westwoods_window_after_a_loss_is_what_was_delivered_in_the_lowest_round_trip() {
    let mut law = Law::new(LawName::Westwood, Start::default());
    let acked = |law: &mut Law, now_us: u64, snd_una: u32, window: &mut Window| {
        let acked = Acked { now_us, acked_segments: 10, rtt_us: 100_000, snd_una, flags: GROWS, ..Acked::default() };
        law.on_acked(&acked, window);
    };
    let mut before = window(40, 40);
    acked(&mut law, 50_000, 1000, &mut before);
    // 10 segments in 200 ms: 50 a second, at once (the filter begins with its first sample): 5 in 100 ms.
    acked(&mut law, 200_000, 2000, &mut before);
    let mut timed_out = before;
    law.clone().on_timed_out(&Lost::default(), &mut timed_out);
    assert_eq!(timed_out.ssthresh_segments, 5);
    // While it reduces, the half; behind it, the same 5.
    let mut lost = before;
    law.on_lost(&Lost { snd_nxt: 3000, ..Lost::default() }, &mut lost);
    assert_eq!(lost.ssthresh_segments, 20);
    lost.cwnd_count = 0; // as the stack does
    acked(&mut law, 210_000, 2500, &mut lost);
    assert_eq!(lost.ssthresh_segments, 20);
    acked(&mut law, 220_000, 3000, &mut lost);
    assert_eq!((lost.cwnd_segments, lost.ssthresh_segments), (8, 5), "5, and NewReno's growth by the 20 of two ACKs");
    // A second sample, 20 segments in 200 ms: f = (7 × 50 + 150) / 8 with the 30 since, bw = (7 × 50 + f) / 8.
    acked(&mut law, 400_001, 4000, &mut lost);
    let mut timed_out = lost;
    law.on_timed_out(&Lost::default(), &mut timed_out);
    assert_eq!(timed_out.ssthresh_segments, 5, "51 a second");
}

#[test]
fn ledbat_plus_plus_grows_slowly_and_falls_with_the_delay() {
    // G = 1 / min(16, ceil(120 / 60)) = 1/2.
    let rtt_us = 60_000;
    let mut law = Law::new(LawName::LedbatPlusPlus, Start::default());
    let mut now = window(20, u32::MAX / 2);
    let acked = |law: &mut Law, now_us: u64, segments: u32, rtt_us: u32, window: &mut Window| {
        let acked =
            Acked { now_us, acked_segments: segments, rtt_us, srtt_us: rtt_us, flags: GROWS, ..Acked::default() };
        law.on_acked(&acked, window);
    };
    acked(&mut law, 1000, 10, rtt_us, &mut now);
    assert_eq!(now.cwnd_segments, 25, "slow start: half a segment for each");
    // The lowest of four counts, so three longer ones change nothing; above 3/4 of 60 ms slow start ends.
    for sample in 0..4 {
        acked(&mut law, 2000 + sample, 1, rtt_us + 90_000, &mut now);
    }
    assert!(now.ssthresh_segments <= now.cwnd_segments, "{now:?}");
    // A delay of 90 ms, W = 20: 1/2 - 20 × (90 / 60 - 1) = - 9.5 a round trip.
    let mut steady = window(20, 20);
    let mut at_90 = law.clone();
    acked(&mut at_90, 3000, 20, rtt_us + 90_000, &mut steady);
    assert_eq!(steady.cwnd_segments, 10);
    // Never less than half: a delay of 240 ms.
    let mut steady = window(20, 20);
    for sample in 0..4 {
        acked(&mut law, 4000 + sample, 0, rtt_us + 240_000, &mut steady);
    }
    acked(&mut law, 5000, 20, rtt_us + 240_000, &mut steady);
    assert_eq!(steady.cwnd_segments, 10);
    law.on_lost(&Lost { in_flight_segments: 10, ..Lost::default() }, &mut steady);
    assert_eq!(steady.ssthresh_segments, 5);
}

#[test]
fn ledbat_plus_plus_slows_down_to_two_segments_two_round_trips_after_slow_start() {
    let mut law = Law::new(LawName::LedbatPlusPlus, Start::default());
    let mut now = window(20, u32::MAX / 2);
    let mut windows = Vec::new();
    for tick in 0..400_u32 {
        let acked = Acked {
            now_us: u64::from(tick) * 100_000,
            acked_segments: now.cwnd_segments,
            rtt_us: if tick < 4 { 100_000 } else { 160_000 },
            srtt_us: 100_000,
            snd_una: tick * 1000 + 1,
            snd_nxt: (tick + 1) * 1000,
            flags: GROWS,
            ..Acked::default()
        };
        law.on_acked(&acked, &mut now);
        windows.push(now.cwnd_segments);
    }
    let begin = windows.iter().position(|segments| *segments == 2).expect("a slowdown");
    let before = windows[begin - 1];
    let back = begin + windows[begin..].iter().position(|segments| *segments == before).expect("it comes back");
    assert!(windows[begin..begin + 2].iter().all(|segments| *segments == 2), "{windows:?}");
    // Nine times as long as it took until the next one.
    let next = back + windows[back..].iter().position(|segments| *segments == 2).expect("the next one");
    assert!((8..=11).contains(&((next - back) / (back - begin))), "{begin} {back} {next}: {windows:?}");
}

/// A loss while it rests halves the window to return to, not the two segments; a timeout begins slow start back to it.
#[test]
fn ledbat_plus_plus_comes_back_to_half_of_its_window_after_a_loss_in_a_slowdown_and_a_timeout() {
    let grow = |law: &mut Law, tick: u32, now: &mut Window| {
        let acked = Acked {
            now_us: u64::from(tick) * 100_000,
            acked_segments: now.cwnd_segments,
            rtt_us: if tick < 4 { 100_000 } else { 160_000 },
            srtt_us: 100_000,
            snd_una: tick * 1000 + 1,
            snd_nxt: (tick + 1) * 1000,
            flags: GROWS,
            ..Acked::default()
        };
        law.on_acked(&acked, now);
    };
    let mut law = Law::new(LawName::LedbatPlusPlus, Start::default());
    let (mut now, mut tick, mut before) = (window(20, u32::MAX / 2), 0, 20);
    while now.cwnd_segments != 2 {
        before = now.cwnd_segments;
        grow(&mut law, tick, &mut now);
        tick += 1;
    }
    let event = |tick: u32| Lost { now_us: u64::from(tick) * 100_000, in_flight_segments: before, ..Lost::default() };
    law.on_lost(&event(tick), &mut now);
    assert_eq!((now.cwnd_segments, now.ssthresh_segments), (2, 2));
    for _ in 0..10 {
        grow(&mut law, tick, &mut now);
        tick += 1;
    }
    assert!((before / 2..=before / 2 + 3).contains(&now.cwnd_segments), "{now:?} of {before}");
    let half = now.cwnd_segments / 2;
    law.on_timed_out(&Lost { in_flight_segments: now.cwnd_segments, ..event(tick) }, &mut now);
    assert_eq!(now.ssthresh_segments, half);
    now.cwnd_segments = 1;
    for _ in 0..8 {
        grow(&mut law, tick, &mut now);
        tick += 1;
    }
    assert!((half..=half + 3).contains(&now.cwnd_segments), "{now:?} of {half}");
}

#[test]
fn copa_aims_at_the_inverse_of_the_delay() {
    use lasthop_laws::{Sample, Steering};
    let sample = |now_us: u64, rtt_us: u32, at: u32| Sample {
        now_us,
        rtt_us,
        srtt_us: 100_000,
        acked_segments: 4,
        prior_in_flight_segments: 30,
        segment_bytes: 1448,
        snd_una: at,
        snd_nxt: at + 1000,
        ..Sample::default()
    };
    let mut law = Law::new(LawName::Copa, Start::default());
    let mut steering = Steering { cwnd_segments: 10, ..Steering::default() };
    // Nothing waits: slow start, a segment for each acknowledged; the pace is 2 cwnd / standing.
    law.on_sampled(&sample(1000, 100_000, 1), &mut steering);
    assert_eq!((steering.cwnd_segments, steering.pace), (14, 2 * 14 * 1448 * 10));
    // 110 ms, and a while later, so that the standing RTT is that: 10 ms wait. The target is 2 × 110 / 10 = 22 segments.
    steering.cwnd_segments = 18;
    law.on_sampled(&sample(201_000, 110_000, 2), &mut steering);
    assert_eq!(steering.cwnd_segments, 22, "slow start goes on below the target");
    // Above it: down by v / (delta cwnd) for each segment, 4 × 2 / 30 of one.
    steering.cwnd_segments = 30;
    law.on_sampled(&sample(202_000, 110_000, 3), &mut steering);
    assert_eq!(steering.cwnd_segments, 29);
}
