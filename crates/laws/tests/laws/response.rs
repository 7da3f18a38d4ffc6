//! The response function: the average window under a loss every 1/p segments, against tables 1 and 2 of RFC 9438.
//!
//! The tables are computed from formulas for a fluid: 1.2 / sqrt(p) for Reno (RFC 3649), and for CUBIC the larger of that
//! and Figure 8 there, 1.054 RTT^(3/4) / p^(3/4) with C = 0.4. Ours counts in segments: windows are whole, reductions
//! round down, and around W_max the curve is so flat that the window of one loss and of the next are the same segment for
//! a whole range of windows. So the average depends on where the flow comes from. Each case starts from losses at a
//! quarter of the table's window up to three times of it.

use super::{GROWS, Sender};
use lasthop_laws::{Acked, LawName, SlowStart};

/// (p, table 1: RTT = 0.1 s, table 2: RTT = 0.01 s; C = 0.4)
const CUBIC: [(f64, f64, f64); 5] =
    [(1e-2, 12.0, 12.0), (1e-3, 38.0, 38.0), (1e-4, 187.0, 120.0), (1e-5, 1054.0, 379.0), (1e-6, 5926.0, 1200.0)];
const RENO: [(f64, f64); 5] = [(1e-2, 12.0), (1e-3, 38.0), (1e-4, 120.0), (1e-5, 379.0), (1e-6, 1200.0)];

/// The average window over the second half of 80 losses, from a first loss at a window of `start`. Recovery takes no time.
/// ACKs come evenly spaced, each for a 64th of the window at least, so that large windows are affordable.
fn average_window(name: LawName, p: f64, rtt_s: f64, start: f64) -> f64 {
    const LOSSES: u32 = 80;
    let rtt_us = rtt_s * 1e6;
    let mut sender = Sender::new(name, SlowStart::Standard, start.max(2.0) as u32);
    sender.srtt_us = rtt_us as u32;
    sender.lose();
    let segments_per_loss = (1.0 / p).round() as u32;
    let (mut now_us, mut half_us) = (0.0, 0.0);
    for loss in 0..LOSSES {
        if loss == LOSSES / 2 {
            half_us = now_us;
        }
        let mut left = segments_per_loss;
        while left > 0 {
            let acked = (sender.cwnd() / 64).clamp(1, left);
            left -= acked;
            now_us += rtt_us * f64::from(acked) / f64::from(sender.cwnd());
            sender.now_us = now_us as u64;
            let event = Acked { rtt_us: sender.srtt_us, flags: GROWS, ..sender.event(acked) };
            sender.law.on_acked(&event, &mut sender.window);
        }
        sender.lose();
    }
    f64::from(segments_per_loss) * f64::from(LOSSES / 2) * rtt_us / (now_us - half_us)
}

/// The ratios to the table's window, lowest and highest over where the flow comes from.
fn ratios(name: LawName, p: f64, rtt_s: f64, table: f64) -> (f64, f64) {
    let ratio = |start: f64| average_window(name, p, rtt_s, table * start) / table;
    let ratios = [0.25, 0.5, 1.0, 1.5, 3.0].map(ratio);
    let (lowest, highest) =
        (ratios.iter().copied().fold(f64::MAX, f64::min), ratios.iter().copied().fold(0.0, f64::max));
    println!("{name:14} RTT {rtt_s} s, p = {p:e}: {table} times {lowest:.3} to {highest:.3}");
    (lowest, highest)
}

#[test]
fn newreno_is_within_three_percent_of_the_tables() {
    // The exact constant for a loss every 1/p segments is sqrt(3/2) = 1.2247, 2 % above the table's 1.2; halving rounds down.
    for (p, table) in RENO {
        for rtt_s in [0.1, 0.01] {
            let (lowest, highest) = ratios(LawName::NewReno, p, rtt_s, table);
            assert!(lowest > 0.97 && highest < 1.03, "{lowest}..{highest} of {table}");
        }
    }
}

#[test]
fn cubic_of_the_rfc_is_within_an_eighth_of_the_tables() {
    // Below, because coming from above fast convergence gives up another 15 % and the way back up is flat: a float fluid
    // model with the same rules is 8 % below at p = 1e-4, RTT 0.1 s after 60 losses and 2 % after 2000. At p = 1e-2 a
    // reduction to a whole segment takes 4 % of the window more than it should.
    for (p, at_100_ms, at_10_ms) in CUBIC {
        for (rtt_s, table) in [(0.1, at_100_ms), (0.01, at_10_ms)] {
            let (lowest, highest) = ratios(LawName::CubicRfc9438, p, rtt_s, table);
            assert!(lowest > 0.875 && highest < 1.06, "{lowest}..{highest} of {table}");
        }
    }
    // the first entry of table 2 outside Reno's region
    let (lowest, highest) = ratios(LawName::CubicRfc9438, 1e-7, 0.01, 5926.0);
    assert!(lowest > 0.875 && highest < 1.0, "{lowest}..{highest} of 5926");
}

#[test]
fn cubic_of_linux_is_within_a_quarter_of_the_tables_and_on_both_sides() {
    // Its target is in whole segments, rounded up below W_max: from (1 / 0.4)^(1/3) = 1.4 s before K on it is W_max
    // already. So a flow that comes from above stays there, without fast convergence, and is up to a fifth above.
    for (p, at_100_ms, at_10_ms) in CUBIC {
        for (rtt_s, table) in [(0.1, at_100_ms), (0.01, at_10_ms)] {
            let (lowest, highest) = ratios(LawName::Cubic, p, rtt_s, table);
            assert!(lowest > 0.75 && highest < 1.25, "{lowest}..{highest} of {table}");
            if table > 150.0 && rtt_s == 0.1 {
                assert!(lowest < 1.0 && highest > 1.0, "{lowest}..{highest} of {table}");
            }
        }
    }
}
