//! Timelines: a picture, then the same in code. The path takes 50 ms each way, and packets take no time. Segments carry
//! 1000 bytes and are numbered from 0 after the handshake, which takes the first 100 ms.

mod connection;
mod ecn;
mod limits;
mod rack_tlp;
mod receiver;
mod recovery;
mod timeouts;
mod undo;

use super::*;
use crate::{DelayedAck, Recovery, RtoEstimator, Tsq};
use lasthop_connection::CongestionState;
use lasthop_laws::bound::{Bound, LEAST_PACING_RATE};
use lasthop_units::{Bytes, Rate};

/// No delayed ACKs, and no options that take payload: 1000 bytes.
fn plain() -> Config {
    Config {
        mss: Bytes::new(1000),
        timestamps: false,
        rack_tlp: false,
        delayed_ack: DelayedAck::OFF,
        slow_start: lasthop_laws::SlowStart::Standard,
        ..Config::linux_2012()
    }
}

/// Established at 100 ms; the client has written `segments` and sent nothing.
fn established(config: &Config, segments: u64) -> Pair {
    let mut pair = Pair::new(config, config, LawName::NewReno, Span::from_millis(50));
    pair.run_until(ms(150));
    assert!(pair.ends.iter().all(Endpoint::is_established));
    pair.log.clear();
    pair.ends[CLIENT].write(segments * 1000);
    pair
}

/// Loses the data segments with these numbers at their first transmission.
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
    pair.ends[CLIENT].info().tcp.state
}

/// The numbers of the segments sent at `at` ms.
fn at(pair: &Pair, at: u64) -> Vec<u64> {
    sent(pair).into_iter().filter(|(when, _)| *when == at).map(|(_, number)| number).collect()
}

fn info(pair: &Pair) -> crate::Info {
    pair.ends[CLIENT].info()
}

/// Runs to `to` ms after the client's write.
fn run(pair: &mut Pair, to: u64) {
    pair.run_until(ms(150 + to));
}
