//! The applications of flows: when they open, what they write, what they make of what comes, when they stop. The same for
//! simulated and for kernel hosts, which carry out their [`Action`]s.
//!
//! A kind of traffic is a file in `kinds` with its keys, and a line in the list of `kinds/mod.rs` (docs/guide/new-parts.md).
//! An [`Application`] is a flow's: what its [`Kind`] does at which time, and its [`Desk`] with messages and random numbers.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod copies;
mod desk;
mod keys;
mod kinds;
mod sizes;

pub use copies::Copies;
pub use desk::{Action, Desk, Message};
pub use kinds::{
    Bulk, Constant, Interactive, Kind, KindName, LEAST_PACKET, Ladder, OnOff, Pace, Pieces, Ping, Quic, QuicLaw,
    Saturated, TrafficKind, Transfers, Transport, Video, VideoResult,
};
pub use sizes::{Points, Sizes};

use desk::Step;
use lasthop_units::Time;
use rand_chacha::ChaCha8Rng;

/// The application of one connection.
#[derive(Clone, Debug)]
pub struct Application {
    kind: TrafficKind,
    /// [`Time::MAX`] once it is over.
    stop: Time,
    /// As `stop`, even when that is over.
    stops: Time,
    desk: Desk,
}

impl Application {
    /// An application of this kind from `start` to `stop`, `None`: without end. It draws from its own stream.
    pub fn new(kind: TrafficKind, start: Time, stop: Option<Time>, stream: ChaCha8Rng) -> Self {
        let stop = stop.unwrap_or(Time::MAX);
        Self { kind, stop, stops: stop, desk: Desk::new(start, stream) }
    }

    /// When [`Self::act`] must be called next.
    pub fn next_at(&self) -> Time {
        self.desk.next.0.min(self.stop)
    }

    /// Appends the actions that are due; none if called too early.
    pub fn act(&mut self, now: Time, actions: &mut Vec<Action>) {
        std::mem::swap(&mut self.desk.actions, actions);
        self.take_step(now);
        std::mem::swap(&mut self.desk.actions, actions);
    }

    fn take_step(&mut self, now: Time) {
        let Self { kind, desk, .. } = self;
        if now >= self.stop {
            self.stop = Time::MAX;
            if desk.stop() {
                kind.stop(desk);
            }
            return;
        }
        let (due, step) = desk.next;
        if now < due {
            return;
        }
        desk.next = (Time::MAX, Step::Nothing);
        match step {
            Step::Nothing => {}
            Step::Begin => kind.begin(due, now, desk),
            Step::Wake => kind.wake(due, now, desk),
            Step::Answer => desk.answer(),
            Step::Close => desk.close(),
        }
    }

    /// The other end has read `read` bytes of the stream. Appends the messages that are now complete.
    pub fn on_read(&mut self, now: Time, read: u64, complete: &mut Vec<Message>) {
        while let Some(message) = self.desk.take_read(read) {
            complete.push(message);
            self.kind.on_read(now, &mut self.desk);
        }
    }

    /// The connection gave up: its unread messages are lost. Kinds that [go on](Kind::goes_on) do so with the next connection.
    pub fn on_failed(&mut self, now: Time) {
        self.desk.lose();
        self.kind.on_failed(now, &mut self.desk);
    }

    /// The sender has read `read` bytes of requests. Returns whether it answers now, by [`Self::act`].
    pub fn on_asked(&mut self, now: Time, read: u64) -> bool {
        self.desk.on_asked(now, read)
    }

    /// The video that a viewer has seen between these two moments.
    pub fn video(&self, from: Time, until: Time) -> Option<VideoResult> {
        self.kind.video(from, until.min(self.stops))
    }

    /// Whether there are unread messages.
    pub fn awaits(&self) -> bool {
        self.desk.awaits()
    }

    /// The messages and transfers that were not read to their end.
    pub fn undelivered(&self) -> impl Iterator<Item = Message> {
        self.desk.undelivered()
    }
}
