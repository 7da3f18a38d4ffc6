//! What an application works with: its connection, its unread messages, its next step, its random numbers.

use crate::sizes::Sizes;
use lasthop_units::{Bytes, Span, Time};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// An action of the application on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Opens the connection: anew, if there was one before.
    Open,
    /// The sender of the data writes this much.
    Write(Bytes),
    /// The receiver of the data writes a request of this much.
    Ask(Bytes),
    /// Always has more to write from now on.
    WriteOn,
    /// Has no more to write for now.
    Pause,
    /// Will write no more.
    Close,
    /// Sends a datagram.
    Send {
        /// Its number, from 0.
        number: u64,
        /// Its size as an IP packet, headers included.
        packet: Bytes,
    },
    /// Begins to keep the host's queue full of packets of this size.
    Saturate(Bytes),
    /// Stops keeping it full.
    Cease,
}

/// An application's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The start, or the next connection.
    Begin,
    /// Whatever its kind does next.
    Wake,
    /// The request has been read.
    Answer,
    Close,
    Nothing,
}

/// A message or transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When it was written, or asked for.
    pub since: Time,
    /// How much it is.
    pub size: Bytes,
    /// What it was asked for with; zero: its sender began by itself.
    pub request: Bytes,
}

/// What a request asked for, until it is answered.
#[derive(Clone, Copy, Debug)]
struct Due {
    size: Bytes,
    /// Whether the connection closes behind it.
    is_last: bool,
}

/// What a [kind](crate::Kind) works with.
#[derive(Clone, Debug)]
pub struct Desk {
    /// The next step, and its time.
    pub(crate) next: (Time, Step),
    /// What is to be done now.
    pub(crate) actions: Vec<Action>,
    stream: ChaCha8Rng,
    stopped: bool,
    /// Whether it has ever opened a connection.
    opened: bool,
    /// Unread messages, each with its end in the stream of bytes.
    unread: VecDeque<(u64, Message)>,
    /// Those that will never be read, because their connection gave up.
    lost: Vec<Message>,
    written: u64,
    /// Bytes of requests on this connection.
    asked: u64,
    due: Option<Due>,
    /// The number of the next datagram.
    number: u64,
}

/// What kinds do.
impl Desk {
    /// Opens the connection: anew, if there was one before.
    pub(crate) fn open(&mut self) {
        self.opened = true;
        (self.written, self.asked) = (0, 0);
        self.actions.push(Action::Open);
    }

    /// Writes a message of this size, whose delivery is measured.
    pub(crate) fn write(&mut self, now: Time, size: Bytes) {
        self.note(Message { since: now, size, request: Bytes::ZERO });
        self.actions.push(Action::Write(size));
    }

    /// Always has more to write from now on.
    pub(crate) fn write_on(&mut self) {
        self.actions.push(Action::WriteOn);
    }

    /// Has no more to write for now.
    pub(crate) fn pause(&mut self) {
        self.actions.push(Action::Pause);
    }

    /// Writes no more on this connection, if there was any.
    pub(crate) fn close(&mut self) {
        if self.opened {
            self.actions.push(Action::Close);
        }
    }

    /// One transfer over a connection of its own, which the sender begins by itself.
    pub(crate) fn transfer(&mut self, now: Time, size: Bytes) {
        self.open();
        self.write(now, size);
        self.close();
    }

    /// The receiver asks with `request` bytes for `size` bytes, whose delivery is measured from now on; behind the last ones
    /// the connection closes.
    pub(crate) fn ask(&mut self, now: Time, request: Bytes, size: Bytes, is_last: bool) {
        self.asked += request.get();
        self.due = Some(Due { size, is_last });
        self.note(Message { since: now, size, request });
        self.actions.push(Action::Ask(request));
    }

    /// Sends a datagram in an IP packet of this size, of at least [`LEAST_PACKET`](crate::LEAST_PACKET).
    pub(crate) fn send(&mut self, packet: Bytes) {
        self.actions.push(Action::Send { number: self.number, packet });
        self.number += 1;
    }

    /// Keeps the host's queue full of packets of this size.
    pub(crate) fn saturate(&mut self, packet: Bytes) {
        self.actions.push(Action::Saturate(packet));
    }

    /// Stops keeping it full.
    pub(crate) fn cease(&mut self) {
        self.actions.push(Action::Cease);
    }

    /// [`Kind::wake`](crate::Kind::wake) comes next, at this time.
    pub(crate) fn wake_at(&mut self, at: Time) {
        self.next = (at, Step::Wake);
    }

    /// [`Kind::begin`](crate::Kind::begin) comes next, at once.
    pub(crate) fn begin_again(&mut self, now: Time) {
        self.next = (now, Step::Begin);
    }

    /// The same after an exponential pause with this mean, unless it has stopped or has another step before it.
    pub(crate) fn begin_after(&mut self, now: Time, pause: Span) {
        if !self.stopped && self.next.1 == Step::Nothing {
            self.next = (now + self.exponential(pause), Step::Begin);
        }
    }

    /// Closes the connection as the next step.
    pub(crate) fn close_next(&mut self, now: Time) {
        self.next = (now, Step::Close);
    }

    /// Whether `stop_s` has come.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether there are unread messages.
    pub(crate) fn awaits(&self) -> bool {
        !self.unread.is_empty()
    }

    /// An exponential random span with this mean, by inversion.
    pub(crate) fn exponential(&mut self, mean: Span) -> Span {
        let uniform: f64 = self.stream.random();
        Span::from_secs_f64(-mean.as_secs_f64() * libm::log1p(-uniform))
    }

    /// A uniform random span up to this one.
    pub(crate) fn uniform(&mut self, most: Span) -> Span {
        Span::from_nanos(if most.is_zero() { 0 } else { self.stream.random_range(0..=most.as_nanos()) })
    }

    /// A random size.
    pub(crate) fn size(&mut self, sizes: &Sizes) -> Bytes {
        sizes.draw(&mut self.stream)
    }
}

/// What the application does for them.
impl Desk {
    pub(crate) fn new(start: Time, stream: ChaCha8Rng) -> Self {
        Self {
            next: (start, Step::Begin),
            actions: Vec::new(),
            stream,
            stopped: false,
            opened: false,
            unread: VecDeque::new(),
            lost: Vec::new(),
            written: 0,
            asked: 0,
            due: None,
            number: 0,
        }
    }

    /// Takes no further step, but for the answer to a request. Returns whether it had begun.
    pub(crate) fn stop(&mut self) -> bool {
        let (_, step) = self.next;
        self.stopped = true;
        if step != Step::Answer {
            self.next = (Time::MAX, Step::Nothing);
        }
        step != Step::Begin
    }

    /// The sender has read `read` bytes of requests. Returns whether it answers now.
    pub(crate) fn on_asked(&mut self, now: Time, read: u64) -> bool {
        let answers = self.due.is_some() && self.next.1 == Step::Nothing && read >= self.asked;
        if answers {
            self.next = (now, Step::Answer);
        }
        answers
    }

    pub(crate) fn answer(&mut self) {
        let Some(Due { size, is_last }) = self.due.take() else { return };
        self.actions.push(Action::Write(size));
        if is_last {
            self.close();
        }
    }

    /// The first unread message, if `read` bytes of the stream have all of it.
    pub(crate) fn take_read(&mut self, read: u64) -> Option<Message> {
        self.unread.front().filter(|(end, _)| *end <= read)?;
        self.unread.pop_front().map(|(_, message)| message)
    }

    /// The connection gave up.
    pub(crate) fn lose(&mut self) {
        self.lost.extend(self.unread.drain(..).map(|(_, message)| message));
        self.due = None;
    }

    /// The messages that were not read to their end.
    pub(crate) fn undelivered(&self) -> impl Iterator<Item = Message> {
        self.lost.iter().copied().chain(self.unread.iter().map(|(_, message)| *message))
    }

    fn note(&mut self, message: Message) {
        self.written += message.size.get();
        self.unread.push_back((self.written, message));
    }
}
