//! The application of a connection: when it opens, what it writes, when it stops.
//!
//! | kind | writes | until |
//! | --- | --- | --- |
//! | bulk | always has more, or a given number of bytes | `stop_s`, or all is written |
//! | on-off | as bulk for a while, then nothing for a while; both exponential | `stop_s` |
//! | interactive | one message after each exponential gap | `stop_s` |
//! | transfers | a given number of bytes on a new connection; the next one an exponential pause after the last byte was read | `stop_s` |
//! | saturated | no TCP: UDP datagrams that keep the host's queue full | `stop_s` |

use lasthop_scenario::{FlowSpec, TrafficKind};
use lasthop_units::{Bytes, Span, Time};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// An action of the application on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Opens the connection.
    Open,
    /// Writes this much.
    Write(Bytes),
    /// Always has more to write from now on.
    WriteOn,
    /// Has no more to write for now.
    Pause,
    /// Will write no more.
    Close,
    /// Begins to keep the host's queue full.
    Saturate,
    /// Stops keeping it full.
    Cease,
}

/// The application of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Application {
    kind: TrafficKind,
    stop: Time,
    stopped: bool,
    /// The next step, and its time.
    next: (Time, Step),
    stream: ChaCha8Rng,
    /// Unread messages: the end of each in the stream of bytes, and when it was written.
    unread: VecDeque<(u64, Time)>,
    /// When those messages were written that will never be read, because their connection gave up.
    lost: Vec<Time>,
    written: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    On,
    Off,
    Message,
    Nothing,
}

impl Application {
    /// The application of this flow, which draws from its own stream.
    pub(crate) fn new(spec: &FlowSpec, stream: ChaCha8Rng) -> Self {
        Self {
            kind: spec.kind,
            stop: spec.stop.unwrap_or(Time::MAX),
            stopped: false,
            next: (spec.start, Step::Begin),
            stream,
            unread: VecDeque::new(),
            lost: Vec::new(),
            written: 0,
        }
    }

    /// When [`Self::act`] must be called next.
    pub(crate) fn next_at(&self) -> Time {
        self.next.0.min(self.stop)
    }

    /// Appends the actions that are due; none if called too early.
    pub(crate) fn act(&mut self, now: Time, actions: &mut Vec<Action>) {
        if now >= self.stop {
            self.stop = Time::MAX;
            self.stopped = true;
            let begun = self.next.1 != Step::Begin;
            self.next = (Time::MAX, Step::Nothing);
            match self.kind {
                TrafficKind::Saturated { .. } => actions.push(Action::Cease),
                // A transfer in progress is finished.
                TrafficKind::Transfers { .. } => {}
                // Data written by then are still sent.
                TrafficKind::Interactive { .. } | TrafficKind::Bulk { transfer: Some(_) } if begun => {
                    actions.push(Action::Close);
                }
                _ if begun => actions.extend([Action::Pause, Action::Close]),
                _ => {}
            }
            return;
        }
        let (at, step) = self.next;
        if now < at {
            return;
        }
        self.next = (Time::MAX, Step::Nothing);
        match (step, self.kind) {
            (Step::Nothing, _) => {}
            (Step::Begin, TrafficKind::Bulk { transfer: None }) => actions.extend([Action::Open, Action::WriteOn]),
            (
                Step::Begin,
                TrafficKind::Bulk { transfer: Some(size) } | TrafficKind::Transfers { transfer: size, .. },
            ) => {
                self.written = 0;
                self.note(now, size);
                actions.extend([Action::Open, Action::Write(size), Action::Close]);
            }
            (Step::Begin, TrafficKind::OnOff { on, .. }) => {
                self.next = (now + self.draw(on), Step::Off);
                actions.extend([Action::Open, Action::WriteOn]);
            }
            (Step::Begin, TrafficKind::Interactive { gap, .. }) => {
                self.next = (now + self.draw(gap), Step::Message);
                actions.push(Action::Open);
            }
            (Step::Begin, TrafficKind::Saturated { .. }) => actions.push(Action::Saturate),
            (Step::On, TrafficKind::OnOff { on, .. }) => {
                self.next = (now + self.draw(on), Step::Off);
                actions.push(Action::WriteOn);
            }
            (Step::Off, TrafficKind::OnOff { off, .. }) => {
                self.next = (now + self.draw(off), Step::On);
                actions.push(Action::Pause);
            }
            (Step::Message, TrafficKind::Interactive { message, gap }) => {
                self.note(now, message);
                self.next = (now + self.draw(gap), Step::Message);
                actions.push(Action::Write(message));
            }
            (step, kind) => unreachable!("{kind:?} has no step {step:?}"),
        }
    }

    /// The other end has read `read` bytes of the stream. Appends the delays of the messages that are now complete.
    pub(crate) fn on_read(&mut self, now: Time, read: u64, delays: &mut Vec<Span>) {
        while let Some(&(end, written_at)) = self.unread.front()
            && end <= read
        {
            self.unread.pop_front();
            delays.push(now - written_at);
            self.begin_again(now);
        }
    }

    /// The connection gave up: its unread messages are lost. Transfers go on with the next connection.
    pub(crate) fn on_failed(&mut self, now: Time) {
        self.lost.extend(self.unread.drain(..).map(|(_, written_at)| written_at));
        self.begin_again(now);
    }

    fn begin_again(&mut self, now: Time) {
        if let TrafficKind::Transfers { off: pause, .. } = self.kind
            && !self.stopped
            && self.next.1 == Step::Nothing
        {
            self.next = (now + self.draw(pause), Step::Begin);
        }
    }

    /// Whether there are unread messages.
    pub(crate) fn awaits(&self) -> bool {
        !self.unread.is_empty()
    }

    /// When each message or transfer was written that was not read to its end.
    pub(crate) fn undelivered(&self) -> impl Iterator<Item = Time> {
        self.lost.iter().copied().chain(self.unread.iter().map(|(_, written_at)| *written_at))
    }

    fn note(&mut self, now: Time, size: Bytes) {
        self.written += size.get();
        self.unread.push_back((self.written, now));
    }

    /// An exponential random span with this mean, by inversion.
    fn draw(&mut self, mean: Span) -> Span {
        let uniform: f64 = self.stream.random();
        Span::from_secs_f64(-mean.as_secs_f64() * (-uniform).ln_1p())
    }
}
