//! What applications have written and TCP has not sent.

use super::{Metric, Number, Tick};

#[derive(Debug, Default)]
pub(super) struct Unsent {
    bytes: u64,
}

impl Metric for Unsent {
    fn on_tick(&mut self, tick: &Tick<'_>) {
        self.bytes = tick.sockets.iter().map(|socket| socket.tcp.unsent.get()).sum();
    }

    fn numbers(&self) -> Vec<Number> {
        let help = "Bytes that applications have written and TCP has not sent, of all connections";
        vec![Number::gauge("unsent", help, "bytes", self.bytes)]
    }
}
