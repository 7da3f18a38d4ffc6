//! What all connections together have carried. Those that the agent has not met begin to count when it does.

use super::{Metric, Number, Tick};
use crate::tcp::kernel_tcp::ASLEEP;
use std::collections::HashMap;

/// How many sleepers that have closed are remembered at most, besides twice those that are there.
const MORE_SLEEPERS: u64 = 1000;

/// A connection when it was told last.
#[derive(Debug)]
struct Counted {
    /// Bytes acknowledged, bytes received and segments retransmitted.
    carried: [u64; 3],
    tick: u64,
    /// It was idle for half the time after which it sleeps: ticks may be some seconds apart.
    dozes: bool,
}

#[derive(Debug, Default)]
pub(super) struct Carried {
    /// By cookie.
    counted: HashMap<u64, Counted>,
    tick: u64,
    /// As of each, over all connections.
    all: [u64; 3],
}

impl Metric for Carried {
    fn on_tick(&mut self, Tick { sockets, asleep, .. }: &Tick<'_>) {
        self.tick += 1;
        for socket in *sockets {
            let now = [socket.tcp.acked.get(), socket.tcp.received.get(), socket.tcp.retransmits];
            let new = Counted { carried: now, tick: self.tick, dozes: socket.idle >= ASLEEP / 2 };
            let before = self.counted.insert(socket.cookie, new).map_or(now, |counted| counted.carried);
            for ((count, now), before) in self.all.iter_mut().zip(now).zip(before) {
                *count += now.saturating_sub(before);
            }
        }
        // What is not told has closed, or sleeps if it was idle before. Of sleepers that close nothing is told either.
        let too_many = self.counted.len() as u64 > sockets.len() as u64 + 2 * asleep + MORE_SLEEPERS;
        let tick = self.tick;
        self.counted.retain(|_, counted| counted.tick == tick || counted.dozes && !too_many);
    }

    fn numbers(&self) -> Vec<Number> {
        let [acked, received, retransmitted] = self.all;
        let help = "Payload that others acknowledged, counted from the first to the last tick of a connection";
        vec![
            Number::counter("acked", help, "bytes", acked),
            Number::counter("received", "Payload received, counted likewise", "bytes", received),
            Number::counter("retransmitted_segments", "Segments retransmitted, counted likewise", "", retransmitted),
        ]
    }
}
