//! The application of a flow: when it opens, what it writes, what it makes of what comes, when it stops. The same for
//! simulated and for kernel hosts, which carry out its [`Action`]s.
//!
//! | kind | writes | until |
//! | --- | --- | --- |
//! | bulk | always has more, or a given number of bytes | `stop_s`, or all is written |
//! | on-off | as bulk for a while, then nothing for a while; both exponential | `stop_s` |
//! | interactive | one message after each exponential gap | `stop_s` |
//! | transfers | a given number of bytes, or a lognormal one, on a new connection; the next one an exponential pause after the last byte was read | `stop_s` |
//! | video | chunks of the rate that the [player](video) asks for, one at a time | `stop_s` |
//! | ping | no TCP: a UDP datagram at a constant distance | `stop_s` |
//! | constant | the same, each but the first a uniform part of `jitter_us` early | `stop_s` |
//! | saturated | no TCP: UDP datagrams that keep the host's queue full | `stop_s` |
//! | quic | no TCP: as bulk, or with a given number of bytes as transfers, over QUIC connections | `stop_s` |
//!
//! Where the receiver asks for what is written (`request_bytes`), the answer follows as soon as the request is read.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod video;

use lasthop_scenario::{FlowSpec, TrafficKind, VideoResult};
use lasthop_units::{Bytes, Span, Time};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use video::Player;

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
    /// Sends the datagram of this number.
    Send(u64),
    /// Begins to keep the host's queue full.
    Saturate,
    /// Stops keeping it full.
    Cease,
}

/// The application of one connection.
#[derive(Clone, Debug)]
pub struct Application {
    kind: TrafficKind,
    stop: Time,
    stopped: bool,
    /// As `stop`, even when that is over.
    stops: Time,
    /// The next step, and its time.
    next: (Time, Step),
    stream: ChaCha8Rng,
    /// Unread messages: the end of each in the stream of bytes, and when it was written.
    unread: VecDeque<(u64, Time)>,
    /// When those messages were written that will never be read, because their connection gave up.
    lost: Vec<Time>,
    written: u64,
    /// Bytes of requests on this connection.
    asked: u64,
    /// What the last request asked for, if it has not been answered.
    due: Option<Bytes>,
    /// The number of the next datagram, and its time without jitter.
    number: u64,
    due_at: Time,
    player: Option<Player>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    On,
    Off,
    Message,
    /// A further chunk.
    Ask,
    /// The request has been read.
    Answer,
    Close,
    Nothing,
}

impl Application {
    /// The application of this flow, which draws from its own stream.
    pub fn new(spec: &FlowSpec, stream: ChaCha8Rng) -> Self {
        Self {
            kind: match spec.kind {
                // The same over another transport.
                TrafficKind::Quic { transfer: None, .. } => TrafficKind::Bulk { transfer: None },
                TrafficKind::Quic { transfer: Some(transfer), off, .. } => {
                    TrafficKind::Transfers { transfer, sigma: 0.0, off, request: None }
                }
                kind => kind,
            },
            stop: spec.stop.unwrap_or(Time::MAX),
            stopped: false,
            stops: spec.stop.unwrap_or(Time::MAX),
            next: (spec.start, Step::Begin),
            stream,
            unread: VecDeque::new(),
            lost: Vec::new(),
            written: 0,
            asked: 0,
            due: None,
            number: 0,
            due_at: spec.start,
            player: match spec.kind {
                TrafficKind::Video { ladder, chunk, buffer, .. } => {
                    Some(Player::new(ladder, chunk, buffer, spec.start))
                }
                _ => None,
            },
        }
    }

    /// When [`Self::act`] must be called next.
    pub fn next_at(&self) -> Time {
        self.next.0.min(self.stop)
    }

    /// Appends the actions that are due; none if called too early.
    pub fn act(&mut self, now: Time, actions: &mut Vec<Action>) {
        if now >= self.stop {
            self.stop = Time::MAX;
            self.stopped = true;
            let begun = self.next.1 != Step::Begin;
            // What was asked for is answered.
            if self.next.1 != Step::Answer {
                self.next = (Time::MAX, Step::Nothing);
            }
            match self.kind {
                TrafficKind::Saturated { .. } => actions.push(Action::Cease),
                TrafficKind::Ping { .. } | TrafficKind::Constant { .. } => {}
                // A transfer in progress is finished, and so is a chunk.
                TrafficKind::Transfers { .. } => {}
                TrafficKind::Video { .. } if self.awaits() => {}
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
            (Step::Begin, TrafficKind::Transfers { transfer, sigma, request: Some(request), .. }) => {
                actions.push(Action::Open);
                self.begin();
                let size = self.size(transfer, sigma);
                self.ask(now, request, size, actions);
            }
            (Step::Begin, TrafficKind::Video { request, .. }) => {
                actions.push(Action::Open);
                self.begin();
                self.ask_for_chunk(now, request, actions);
            }
            (Step::Ask, TrafficKind::Video { request, .. }) => self.ask_for_chunk(now, request, actions),
            (Step::Answer, kind) => {
                actions.extend(self.due.take().map(Action::Write));
                if matches!(kind, TrafficKind::Transfers { .. }) {
                    actions.push(Action::Close);
                }
            }
            (Step::Close, _) => actions.push(Action::Close),
            (Step::Begin | Step::Message, TrafficKind::Ping { gap, .. }) => {
                // From the time for which this one was due: who is late must not become slow.
                self.next = (at + gap, Step::Message);
                self.send(actions);
            }
            (Step::Begin | Step::Message, TrafficKind::Constant { gap, jitter, .. }) => {
                self.due_at += gap;
                self.next = (self.jittered(at, jitter), Step::Message);
                self.send(actions);
            }
            (Step::Begin, TrafficKind::Bulk { transfer: Some(size) }) => self.transfer(now, size, actions),
            (Step::Begin, TrafficKind::Transfers { transfer, sigma, .. }) => {
                let size = self.size(transfer, sigma);
                self.transfer(now, size, actions);
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
    pub fn on_read(&mut self, now: Time, read: u64, delays: &mut Vec<Span>) {
        while let Some(&(end, written_at)) = self.unread.front()
            && end <= read
        {
            self.unread.pop_front();
            delays.push(now - written_at);
            if let Some(player) = &mut self.player {
                let next = (player.on_chunk(now), Step::Ask);
                self.next = if self.stopped { (now, Step::Close) } else { next };
            }
            self.begin_again(now);
        }
    }

    /// The connection gave up: its unread messages are lost. Transfers and videos go on with the next connection.
    pub fn on_failed(&mut self, now: Time) {
        self.lost.extend(self.unread.drain(..).map(|(_, written_at)| written_at));
        self.due = None;
        if self.player.is_some() && !self.stopped {
            self.next = (now, Step::Begin);
        }
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

    /// The sender has read `read` bytes of requests. Returns whether it answers now, by [`Self::act`].
    pub fn on_asked(&mut self, now: Time, read: u64) -> bool {
        let answers = self.due.is_some() && self.next.1 == Step::Nothing && read >= self.asked;
        if answers {
            self.next = (now, Step::Answer);
        }
        answers
    }

    /// The video that a viewer has seen between these two moments.
    pub fn video(&self, from: Time, until: Time) -> Option<VideoResult> {
        Some(self.player.as_ref()?.result(from, until.min(self.stops)))
    }

    /// A connection has nothing yet.
    fn begin(&mut self) {
        (self.written, self.asked) = (0, 0);
    }

    fn ask_for_chunk(&mut self, now: Time, request: Bytes, actions: &mut Vec<Action>) {
        let chunk = self.player.as_mut().expect("a video has a player").choose(now);
        self.ask(now, request, chunk, actions);
    }

    fn ask(&mut self, now: Time, request: Bytes, what: Bytes, actions: &mut Vec<Action>) {
        self.asked += request.get();
        self.due = Some(what);
        self.note(now, what);
        actions.push(Action::Ask(request));
    }

    /// Sends the next datagram.
    fn send(&mut self, actions: &mut Vec<Action>) {
        actions.push(Action::Send(self.number));
        self.number += 1;
    }

    /// When the next datagram leaves: at most `jitter` before its time, and not before the last one's.
    fn jittered(&mut self, last: Time, jitter: Span) -> Time {
        let early =
            Span::from_nanos(if jitter.is_zero() { 0 } else { self.stream.random_range(0..=jitter.as_nanos()) });
        last + self.due_at.saturating_since(last).saturating_sub(early)
    }

    /// Whether there are unread messages.
    pub fn awaits(&self) -> bool {
        !self.unread.is_empty()
    }

    /// When each message or transfer was written that was not read to its end.
    pub fn undelivered(&self) -> impl Iterator<Item = Time> {
        self.lost.iter().copied().chain(self.unread.iter().map(|(_, written_at)| *written_at))
    }

    /// One transfer that the sender begins by itself.
    fn transfer(&mut self, now: Time, size: Bytes, actions: &mut Vec<Action>) {
        self.begin();
        self.note(now, size);
        actions.extend([Action::Open, Action::Write(size), Action::Close]);
    }

    fn note(&mut self, now: Time, size: Bytes) {
        self.written += size.get();
        self.unread.push_back((self.written, now));
    }

    /// A lognormal random size with this median, whose logarithm has this standard deviation; 1 byte to 1 TiB. The normal
    /// number is drawn by the polar method (G. Marsaglia and T. A. Bray, 1964).
    fn size(&mut self, median: Bytes, sigma: f64) -> Bytes {
        if sigma == 0.0 {
            return median;
        }
        let normal = loop {
            let [x, y] = [0; 2].map(|_| 2.0 * self.stream.random::<f64>() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                break x * (-2.0 * square.ln() / square).sqrt();
            }
        };
        Bytes::new((median.get() as f64 * (sigma * normal).exp()).clamp(1.0, (1_u64 << 40) as f64) as u64)
    }

    /// An exponential random span with this mean, by inversion.
    fn draw(&mut self, mean: Span) -> Span {
        let uniform: f64 = self.stream.random();
        Span::from_secs_f64(-mean.as_secs_f64() * (-uniform).ln_1p())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_network::NodeId;
    use lasthop_scenario::Direction;
    use rand::SeedableRng as _;

    /// The sizes of a thousand transfers, ascending.
    fn sizes(sigma: f64, request: Option<Bytes>) -> Vec<u64> {
        let kind = TrafficKind::Transfers { transfer: Bytes::new(10_000), sigma, off: Span::from_secs(1), request };
        let spec = FlowSpec {
            id: 0,
            host: 0,
            server: NodeId(1),
            direction: Direction::Down,
            kind,
            dscp: 0,
            start: Time::ZERO,
            stop: None,
        };
        let mut application = Application::new(&spec, ChaCha8Rng::seed_from_u64(1));
        let (mut sizes, mut actions, mut delays) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..1000 {
            let now = application.next_at();
            application.act(now, &mut actions);
            if let Some(request) = request {
                assert!(application.on_asked(now, request.get()));
                application.act(now, &mut actions);
            }
            let written = actions.drain(..).find_map(|action| match action {
                Action::Write(size) => Some(size.get()),
                _ => None,
            });
            let size = written.expect("a transfer");
            application.on_read(now, size, &mut delays);
            sizes.push(size);
        }
        assert_eq!(delays.len(), 1000, "each is read to its end");
        sizes.sort_unstable();
        sizes
    }

    /// When a flow of constant rate sends its first 1000 datagrams.
    fn moments(gap_us: u64, jitter_us: u64) -> Vec<f64> {
        let (gap, jitter) = (Span::from_micros(gap_us), Span::from_micros(jitter_us));
        let start = Time::ZERO + Span::from_secs(1);
        let spec = FlowSpec {
            id: 0,
            host: 0,
            server: NodeId(1),
            direction: Direction::Up,
            kind: TrafficKind::Constant { packet: Bytes::new(200), gap, jitter },
            dscp: 0,
            start,
            stop: None,
        };
        let mut application = Application::new(&spec, ChaCha8Rng::seed_from_u64(1));
        let mut actions = Vec::new();
        (0..1000)
            .map(|number| {
                let now = application.next_at();
                application.act(now, &mut actions);
                assert_eq!(std::mem::take(&mut actions), [Action::Send(number)]);
                (now - start).as_nanos() as f64 / 1e3
            })
            .collect()
    }

    #[test]
    fn datagrams_of_a_constant_rate_leave_within_the_jitter_before_their_time_and_the_rate_stays() {
        let plain = moments(200, 0);
        assert!(plain.iter().enumerate().all(|(number, at)| *at == 200.0 * number as f64));
        let early: Vec<f64> = moments(200, 50).iter().zip(&plain).map(|(at, due)| due - at).collect();
        assert_eq!(early[0], 0.0);
        assert!(early.iter().all(|early| (0.0..=50.0).contains(early)));
        // Uniform: mean 25 us, a standard deviation of the mean of 50 / sqrt(12 * 1000) = 0.46; five of these.
        let mean = early.iter().sum::<f64>() / 1000.0;
        assert!((mean - 25.0).abs() < 2.3, "{mean}");
        // A jitter above the gap keeps the order.
        let close = moments(20, 50);
        assert!(close.is_sorted() && (close[999] - 20.0 * 999.0).abs() <= 50.0);
    }

    #[test]
    fn sizes_are_lognormal_with_the_median_that_is_given() {
        assert!(sizes(0.0, None).iter().all(|size| *size == 10_000));
        for request in [None, Some(Bytes::new(400))] {
            let sizes = sizes(1.0, request);
            // Of a standard normal 16 % are below -1 and 2.3 % above 2: e^-1 = 0.368, e^2 = 7.39. Means of 1000 draws lie within
            // a tenth of these.
            let ratio = |place: usize, expected: f64| sizes[place] as f64 / (10_000.0 * expected);
            for (place, expected) in [(500, 1.0), (159, 0.368), (841, std::f64::consts::E)] {
                assert!((0.85..1.15).contains(&ratio(place, expected)), "{place}: {}", sizes[place]);
            }
            assert!((0.7..1.4).contains(&ratio(977, 7.39)), "{}", sizes[977]);
        }
    }
}
