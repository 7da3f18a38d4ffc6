//! Two endpoints and a path between them, in virtual time.

mod diagrams;
mod last_link;
mod properties;
mod solo;
mod theory;
mod timelines;

use crate::{Config, Endpoint, Segment};
use lasthop_laws::{Choice, LawName};
use lasthop_units::{Span, Time};
use std::collections::BTreeMap;
use std::ops::Range;

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// The spans after which copies of a packet arrive. Empty: it is lost.
pub(crate) type Fate = Vec<Span>;

/// Decides the fate of each packet from the time, its sender and its content. `None`: normal delivery.
type Path = Box<dyn FnMut(Time, usize, &Segment) -> Option<Fate>>;
/// Marks packets on their way, from their sender and their content.
type Mark = Box<dyn FnMut(usize, &mut Segment)>;
/// Decides which packets the host's own queue refuses.
type Refuse = Box<dyn FnMut(Time, usize, &Segment) -> bool>;

/// A client, a server and a path of `one_way` each way.
pub(crate) struct Pair {
    pub(crate) now: Time,
    pub(crate) ends: [Endpoint; 2],
    pub(crate) one_way: Span,
    /// By arrival, then by order of sending.
    arrivals: BTreeMap<(Time, u64), (usize, Segment)>,
    sent: u64,
    /// Every segment sent: its time and its sender.
    pub(crate) log: Vec<(Time, usize, Segment)>,
    pub(crate) path: Path,
    pub(crate) refuse: Refuse,
    /// Marks packets.
    pub(crate) mark: Mark,
    /// For long runs: no log and no checks.
    pub(crate) fast: bool,
}

impl Pair {
    pub(crate) fn new(client: &Config, server: &Config, law: impl Into<Choice>, one_way: Span) -> Self {
        let law = law.into();
        Self {
            now: Time::ZERO,
            ends: [Endpoint::connect(Time::ZERO, client, law), Endpoint::listen(server, law)],
            one_way,
            arrivals: BTreeMap::new(),
            sent: 0,
            log: Vec::new(),
            path: Box::new(|_, _, _| None),
            refuse: Box::new(|_, _, _| false),
            mark: Box::new(|_, _| {}),
            fast: false,
        }
    }

    /// Both ends send all that they may send now.
    pub(crate) fn flush(&mut self) {
        for end in [CLIENT, SERVER] {
            let mut left = 100_000;
            while let Some(mut segment) = self.ends[end].poll_transmit(self.now) {
                left -= 1;
                assert!(left > 0, "an endpoint that never stops: {segment:?} {:?}", self.ends[end].info());
                if (self.refuse)(self.now, end, &segment) {
                    self.ends[end].on_refused(self.now, &segment);
                    self.check(end);
                    continue;
                }
                if !self.fast {
                    self.log.push((self.now, end, segment.clone()));
                }
                let bytes = segment.ip_bytes();
                (self.mark)(end, &mut segment);
                let fate = (self.path)(self.now, end, &segment).unwrap_or_else(|| vec![self.one_way]);
                for delay in fate {
                    self.sent += 1;
                    self.arrivals.insert((self.now + delay, self.sent), (1 - end, segment.clone()));
                }
                self.ends[end].on_departed(self.now, bytes);
            }
            // One call of `poll_transmit` until `None` must be enough.
            assert_eq!(self.ends[end].poll_transmit(self.now), None);
            self.check(end);
        }
    }

    fn check(&self, end: usize) {
        if !self.fast {
            self.ends[end].check();
        }
    }

    /// The time of the next event.
    pub(crate) fn next_event(&self) -> Time {
        let arrival = self.arrivals.keys().next().map_or(Time::MAX, |(at, _)| *at);
        self.ends.iter().map(Endpoint::next_timeout).fold(arrival, Time::min)
    }

    /// Runs the next event before `until`. Returns whether there was one.
    pub(crate) fn step(&mut self, until: Time) -> bool {
        self.flush();
        let at = self.next_event();
        if at > until || at == Time::MAX {
            return false;
        }
        assert!(at >= self.now, "{at} is before {}", self.now);
        self.now = at;
        while let Some(entry) = self.arrivals.first_entry().filter(|entry| entry.key().0 <= at) {
            let (to, segment) = entry.remove();
            self.ends[to].on_segment(at, &segment);
            self.check(to);
            self.flush();
        }
        for end in &mut self.ends {
            if end.next_timeout() <= at {
                end.on_timeout(at);
            }
        }
        self.flush();
        true
    }

    pub(crate) fn run_until(&mut self, until: Time) {
        while self.step(until) {}
        self.now = until;
    }

    /// Runs until both ends are closed. Panics if that takes longer than `limit`.
    pub(crate) fn run_to_close(&mut self, limit: Span) {
        let until = self.now + limit;
        while !self.ends.iter().all(Endpoint::is_closed) {
            let more = self.step(until);
            assert!(
                more,
                "not closed by {}: {:?} {:?}\n{}",
                self.now,
                self.ends[0].info(),
                self.ends[1].info(),
                self.tail()
            );
        }
    }

    /// The last segments, for a failure message.
    fn tail(&self) -> String {
        let line = |(at, by, segment): &(Time, usize, Segment)| {
            let sack: Vec<_> = segment.sack.iter(segment.ack).collect();
            let Segment { seq, payload_bytes, fin, ack, window_bytes, .. } = segment;
            format!("{at} {by}: {seq}+{payload_bytes} fin {fin} ack {ack} window {window_bytes} {sack:?}\n")
        };
        self.log[self.log.len().saturating_sub(60)..].iter().map(line).collect()
    }

    /// Data segments that `end` sent since `since`: time, sequence number, length.
    pub(crate) fn data(&self, end: usize, since: Time) -> Vec<(Time, u64, u32)> {
        let of_interest = |(at, by, segment): &&(Time, usize, Segment)| {
            *by == end && *at >= since && (segment.payload_bytes > 0 || segment.fin)
        };
        self.log.iter().filter(of_interest).map(|(at, _, segment)| (*at, segment.seq, segment.payload_bytes)).collect()
    }

    /// Pure ACKs that `end` sent since `since`: time, number.
    pub(crate) fn acks(&self, end: usize, since: Time) -> Vec<(Time, u64)> {
        let of_interest = |(at, by, segment): &&(Time, usize, Segment)| {
            *by == end && *at >= since && !segment.takes_sequence_numbers()
        };
        self.log.iter().filter(of_interest).map(|(at, _, segment)| (*at, segment.ack)).collect()
    }
}

pub(crate) fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}
