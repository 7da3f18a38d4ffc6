//! What an ACK costs each law: `cargo bench -p lasthop-laws --bench laws`. The lowest of many short runs, because the
//! machine may be busy with other work.
#![allow(missing_docs)]

use lasthop_laws::{Acked, Law, LawName, Lost, SlowStart, Start, Window};
use std::hint::black_box;
use std::time::{Duration, Instant};

const ACKS: u32 = 10_000;

/// One run of congestion avoidance: ACKs of two segments, 1.5 ms apart, and a loss in each thousand.
fn run(law: &mut Law, window: &mut Window, now_us: &mut u64) -> Duration {
    let started = Instant::now();
    for ack in 0..ACKS {
        *now_us += 1500;
        let event = Acked {
            now_us: *now_us,
            acked_segments: 2,
            in_flight_segments: window.cwnd_segments - 2,
            rtt_us: 100_000,
            srtt_us: 100_000,
            min_rtt_us: 50_000,
            snd_una: ack * 2896,
            snd_nxt: ack * 2896 + 150_000,
            flags: Acked::MAY_GROW | Acked::CWND_LIMITED,
            ..Acked::default()
        };
        law.on_acked(black_box(&event), window);
        if ack % 1000 == 999 {
            let lost = Lost { now_us: *now_us, in_flight_segments: window.cwnd_segments, ..Lost::default() };
            law.on_lost(&lost, window);
            window.cwnd_segments = window.ssthresh_segments;
            window.cwnd_count = 0;
        }
    }
    started.elapsed()
}

fn main() {
    // `cargo test` runs benchmarks too, without this argument
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    for name in LawName::ALL {
        let mut law = Law::new(name, Start { slow_start: SlowStart::HyStart, ..Start::default() });
        let mut window = Window { cwnd_segments: 100, cwnd_count: 0, ssthresh_segments: 100 };
        let mut now_us = 0;
        let lowest = (0..200).map(|_| run(&mut law, &mut window, &mut now_us)).min().expect("runs");
        println!("{name:14} {:5.1} ns per ACK", lowest.as_secs_f64() * 1e9 / f64::from(ACKS));
    }
}
