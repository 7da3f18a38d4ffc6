//! Throughput against formulas: random loss on a path of constant RTT and unlimited rate.

use super::*;
use crate::{DelayedAck, Recovery};
use lasthop_units::Bytes;

/// A stream of numbers in 0..1 (Steele et al., SplitMix64).
fn random(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The mean window: segments acknowledged in a round trip of 100 ms, at loss rate `p` of data segments.
fn window(config: &Config, p: f64) -> f64 {
    const SECONDS: u64 = 1500;
    let mut pair = Pair::new(config, config, LawName::NewReno, Span::from_millis(50));
    let mut random = random(7);
    pair.path =
        Box::new(move |_, by, segment| (by == CLIENT && segment.payload_bytes > 0 && random() < p).then(Vec::new));
    pair.fast = true;
    pair.ends[CLIENT].write_endless();
    pair.run_until(Time::ZERO + Span::from_secs(SECONDS));
    pair.ends[CLIENT].acked_bytes() as f64 / 1000.0 / (SECONDS * 10) as f64
}

fn stack() -> Config {
    Config {
        mss: Bytes::new(1000),
        timestamps: false,
        delayed_ack: DelayedAck::OFF,
        slow_start: lasthop_laws::SlowStart::Standard,
        write_hysteresis: false,
        ..Config::linux_2012()
    }
}

/// [padhye98] eq. 30, as in RFC 5348 §3.1: segments in an RTT of 100 ms, RTO 300 ms, one ACK for `b` segments.
fn pftk(p: f64, b: f64) -> f64 {
    let (rtt, rto) = (0.1, 0.3);
    let timeouts = rto * (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    rtt / (rtt * (2.0 * b * p / 3.0).sqrt() + timeouts)
}

/// The formula assumes that a loss takes all later segments of its round trip with it. Here losses are independent, and
/// a sender that repairs several in a round trip does better, the more so with more losses: +5 to +12 %.
#[test]
fn newreno_has_the_window_that_padhye_et_al_give_it() {
    let stacks = [
        ("PRR", stack()),
        ("RFC 6675", Config { recovery: Recovery::Rfc6675, fack: false, ..stack() }),
        ("NewReno", Config { recovery: Recovery::NewReno, sack: false, ..stack() }),
        ("modern", Config { rack_tlp: true, recovery: Recovery::PrrRfc9937, ..stack() }),
    ];
    for (name, config) in stacks {
        for p in [0.001, 0.003, 0.01, 0.03] {
            let ratio = window(&config, p) / pftk(p, 1.0);
            println!("{name}, loss {p}: {ratio:.2} of the formula"); // docs/models/tcp.md
            assert!((0.95..1.15).contains(&ratio), "{name} at {p}: {ratio:.3} of the formula");
        }
    }
}

/// With one ACK for two segments the window grows as fast, because the law counts segments, not ACKs (RFC 3465, Linux).
/// The formula counts ACKs, so b = 1 fits.
#[test]
fn delayed_acks_do_not_slow_the_window_down() {
    let delayed_ack = DelayedAck { quick_segments: 0, ..DelayedAck::LINUX };
    for p in [0.001, 0.01] {
        let ratio = window(&Config { delayed_ack, ..stack() }, p) / pftk(p, 1.0);
        assert!((0.90..1.15).contains(&ratio), "at {p}: {ratio:.3} of the formula");
    }
}
