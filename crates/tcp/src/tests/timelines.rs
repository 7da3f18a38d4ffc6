//! Who sends what when: a picture, then the same in code. The path takes 50 ms each way and packets take no time; segments
//! carry 1000 bytes and are numbered from 0 after the handshake, which takes the first 100 ms.

use super::*;
use crate::{CongestionState, DelayedAck};
use units::Bytes;

/// No delayed ACKs, no options that get in the way: payload 1000 bytes.
fn plain() -> Config {
    Config {
        mss: Bytes::new(1000),
        timestamps: false,
        rack_tlp: false,
        delayed_ack: DelayedAck::OFF,
        slow_start: control::law::SlowStart::Standard,
        ..Config::linux_2012()
    }
}

/// The handshake is over, at 100 ms; the client has written `segments` and nothing has been sent.
fn established(config: &Config, segments: u64) -> Pair {
    let mut pair = Pair::new(config, config, LawName::NewReno, Span::from_millis(50));
    pair.run_until(ms(150));
    assert!(pair.ends.iter().all(Endpoint::is_established));
    pair.log.clear();
    pair.ends[CLIENT].write(segments * 1000);
    pair
}

/// Loses the data segments of these numbers when they are sent for the first time.
fn lose(pair: &mut Pair, mut numbers: Vec<u64>) {
    pair.path = Box::new(move |_, by, segment| {
        let lost = by == CLIENT && segment.payload_bytes > 0 && numbers.contains(&(segment.seq / 1000));
        numbers.retain(|number| !lost || *number != segment.seq / 1000);
        lost.then(Vec::new)
    });
}

/// (milliseconds after the handshake, number) of each data segment.
fn sent(pair: &Pair) -> Vec<(u64, u64)> {
    pair.data(CLIENT, Time::ZERO).iter().map(|(at, seq, _)| ((*at - ms(150)).as_micros() / 1000, seq / 1000)).collect()
}

fn state(pair: &Pair) -> CongestionState {
    pair.ends[CLIENT].info().state
}

/// ```text
/// ms      0           100              200              300
/// client  0..4        5..14 (window 10: five ACKs, slow start)
/// ```
#[test]
fn slow_start_sends_two_segments_for_each_ack() {
    let mut pair = established(&Config { initial_window_segments: 5, ..plain() }, 1000);
    pair.run_until(ms(450));
    let per_round: Vec<usize> =
        [0, 100, 200, 300].map(|at| sent(&pair).iter().filter(|(when, _)| *when == at).count()).to_vec();
    assert_eq!(per_round, [5, 10, 20, 40]);
}

/// ```text
/// ms      0       100                          200
/// client  0..9    dup dup dup: 0 again ...     full ACK: Open
///         x
/// ```
#[test]
fn a_lost_segment_is_retransmitted_at_the_third_duplicate() {
    let mut pair = established(&Config { fack: false, ..plain() }, 10);
    lose(&mut pair, vec![0]);
    pair.run_until(ms(260));
    assert_eq!(sent(&pair).iter().filter(|(_, number)| *number == 0).collect::<Vec<_>>(), [&(0, 0), &(100, 0)]);
    assert_eq!(state(&pair), CongestionState::Recovery);
    pair.run_until(ms(360));
    assert_eq!(state(&pair), CongestionState::Open);
    assert_eq!(pair.ends[CLIENT].info().ssthresh_segments, Some(5)); // FlightSize 10
    assert_eq!(pair.acks(SERVER, ms(150)).len(), 10);
    assert_eq!(pair.ends[CLIENT].sender().snd_nxt(), 10_001);
}
