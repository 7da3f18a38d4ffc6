//! A path of its own for each host: different and varying round-trip times, and jitter. A link that jitters is one of them.
//!
//! 1. A host's round-trip time is constant for `change_every`, then drawn anew, uniformly from its range.
//! 2. A packet gets half of the round-trip time at the end of its transmission: half up, half down.
//! 3. After a decrease packets would overtake earlier ones of the same host and direction. Instead they arrive right
//!    behind them. Packets of different hosts do overtake each other.
//! 4. What else happens to a packet is said by `impairments`.
//!
//! Draw k is the k-th of the host's stream, independent of traffic. So two runs have the same round-trip times.
//!
//! Leaves out: delays that drift.

use crate::config::HostPath;
use crate::impairments::Scatter;
use crate::packet::{Destination, Packet};
use crate::statistics::Way;
use lasthop_units::{Span, Time};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One direction of the path, with a lane per host and one for broadcasts; or of a link, with one lane.
#[derive(Clone, Debug)]
pub(crate) struct Lanes<P> {
    course: Course,
    lanes: Vec<Lane>,
    scatter: Option<Box<Scatter>>,
    /// Packets by time of arrival: time, number in the order of departure, place in `packets`.
    arrivals: BinaryHeap<Reverse<(Time, u64, u32)>>,
    packets: Vec<Option<Packet<P>>>,
    free: Vec<u32>,
    departed: u64,
}

/// Which lane is a packet's, and which part of its time is this direction's.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Course {
    /// The host's, and half of it: forth the first one, rounded down.
    Path(Way),
    /// The only one, and all.
    Link,
}

#[derive(Clone, Debug)]
struct Lane {
    round_trip: RoundTrip,
    jitter: Span,
    last_arrival: Time,
}

/// A round-trip time over time.
#[derive(Clone, Debug)]
pub(crate) enum RoundTrip {
    /// The same for ever.
    Constant(Span),
    /// Drawn for each interval.
    Drawn {
        /// Its range and interval.
        path: HostPath,
        /// The random stream.
        stream: Box<ChaCha8Rng>,
        /// The last interval queried, and its draw.
        last: Option<(u64, Span)>,
    },
}

impl RoundTrip {
    /// Draws from a host's range, by a stream of its own.
    pub(crate) fn drawn(path: HostPath, stream: ChaCha8Rng) -> Self {
        Self::Drawn { path, stream: Box::new(stream), last: None }
    }

    fn at(&mut self, now: Time) -> Span {
        let (path, stream, last) = match self {
            Self::Constant(rtt) => return *rtt,
            Self::Drawn { path, stream, last } => (path, stream, last),
        };
        let interval = now.as_nanos().checked_div(path.change_every.as_nanos()).unwrap_or(0);
        match last {
            Some((last, rtt)) if *last == interval => *rtt,
            _ => {
                // A draw takes two of the stream's 32-bit words.
                stream.set_word_pos(2 * u128::from(interval));
                let (shortest, longest) = path.rtt;
                let choices = u128::from((longest - shortest).as_nanos()) + 1;
                let choice = (u128::from(stream.next_u64()) * choices) >> 64;
                let rtt = shortest + Span::from_nanos(choice as u64);
                *last = Some((interval, rtt));
                rtt
            }
        }
    }
}

impl<P> Lanes<P> {
    /// Lanes with these round-trip times and jitters: one per host, and a last one for the broadcasts; or one with the delay of a
    /// link.
    pub(crate) fn new(
        course: Course,
        lanes: impl IntoIterator<Item = (RoundTrip, Span)>,
        scatter: Option<Scatter>,
    ) -> Self {
        let lane = |(round_trip, jitter)| Lane { round_trip, jitter, last_arrival: Time::ZERO };
        Self {
            course,
            lanes: lanes.into_iter().map(lane).collect(),
            scatter: scatter.map(Box::new),
            arrivals: BinaryHeap::new(),
            packets: Vec::new(),
            free: Vec::new(),
            departed: 0,
        }
    }

    /// Changes the round-trip time of hosts without their own, or the delay of a link.
    pub(crate) fn change_shared(&mut self, new: Span) {
        for lane in &mut self.lanes {
            if let RoundTrip::Constant(rtt) = &mut lane.round_trip {
                *rtt = new;
            }
        }
    }

    /// Changes the round-trip time of this host, unless it draws its own.
    pub(crate) fn change_of(&mut self, host: usize, new: Span) {
        if let RoundTrip::Constant(rtt) = &mut self.lanes[host].round_trip {
            *rtt = new;
        }
    }

    /// Takes a packet with the end of its transmission at `sent`, past or future.
    pub(crate) fn push(&mut self, sent: Time, packet: Packet<P>)
    where
        P: Clone,
    {
        let index = match (self.course, packet.to) {
            (Course::Path(Way::Forth), _) => packet.from.index(),
            (Course::Path(Way::Back), Destination::Node(to)) => to.index(),
            (Course::Path(Way::Back), Destination::Broadcast) => self.lanes.len() - 1,
            (Course::Link, _) => 0,
        };
        let lane = &mut self.lanes[index];
        let time = lane.round_trip.at(sent);
        let delay = match self.course {
            Course::Path(Way::Forth) => time / 2,
            Course::Path(Way::Back) => time - time / 2,
            Course::Link => time,
        };
        let Some(scatter) = &mut self.scatter else {
            let arrival = (sent + delay).max(lane.last_arrival);
            lane.last_arrival = arrival;
            return self.put(arrival, packet);
        };
        let copy = scatter.doubles().then(|| packet.clone());
        let arrivals = [Some(packet), copy]
            .map(|packet| packet.map(|one| (scatter.arrival(sent, delay, lane.jitter, &mut lane.last_arrival), one)));
        for (arrival, packet) in arrivals.into_iter().flatten() {
            self.put(arrival, packet);
        }
    }

    fn put(&mut self, arrival: Time, packet: Packet<P>) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.packets.push(None);
            self.packets.len() as u32 - 1
        });
        self.packets[place as usize] = Some(packet);
        self.arrivals.push(Reverse((arrival, self.departed, place)));
        self.departed += 1;
    }

    /// The next arrival; [`Time::MAX`] if there is none.
    pub(crate) fn next_arrival(&self) -> Time {
        self.arrivals.peek().map_or(Time::MAX, |Reverse((at, ..))| *at)
    }

    /// Takes the packet with the next arrival.
    pub(crate) fn pop(&mut self) -> Packet<P> {
        let Reverse((_, _, place)) = self.arrivals.pop().expect("somebody has looked at it");
        self.free.push(place);
        self.packets[place as usize].take().expect("a packet underway is in its place")
    }

    pub(crate) fn len(&self) -> usize {
        self.arrivals.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::NodeId;
    use crate::random::Streams;
    use lasthop_units::{Bytes, Ecn};

    fn round_trip(shortest_ms: u64, longest_ms: u64, change_every_ms: u64) -> RoundTrip {
        let rtt = (Span::from_millis(shortest_ms), Span::from_millis(longest_ms));
        let path = HostPath { rtt, change_every: Span::from_millis(change_every_ms) };
        RoundTrip::drawn(path, Streams::new(1).stream("path/rtt/0"))
    }

    fn at(rtt: &mut RoundTrip, millis: u64) -> Span {
        rtt.at(Time::ZERO + Span::from_millis(millis))
    }

    #[test]
    fn a_round_trip_time_holds_for_its_interval_and_is_the_streams_draw_of_that_number() {
        let mut rtt = round_trip(10, 30, 100);
        let first = at(&mut rtt, 0);
        assert_eq!(at(&mut rtt, 99), first);
        // 20 ms + 1 ns of values: draw × 20000001 / 2^64 nanoseconds above 10 ms.
        let mut stream = Streams::new(1).stream("path/rtt/0");
        for interval in 0..20 {
            let choice = (u128::from(stream.next_u64()) * 20_000_001) >> 64;
            let expected = Span::from_millis(10) + Span::from_nanos(choice as u64);
            assert_eq!(at(&mut rtt, interval * 100), expected, "interval {interval}");
        }
        // The order of queries does not matter.
        assert_eq!(at(&mut rtt, 50), first);
        assert_eq!(at(&mut round_trip(10, 30, 100), 1900), at(&mut rtt, 1900));
    }

    #[test]
    fn a_round_trip_time_that_never_changes_is_drawn_once() {
        let mut rtt = round_trip(10, 30, 0);
        let first = at(&mut rtt, 0);
        assert_eq!(at(&mut rtt, 1_000_000), first);
        assert!((Span::from_millis(10)..=Span::from_millis(30)).contains(&first));
    }

    #[test]
    fn places_of_packets_are_used_again() {
        let constant = vec![(RoundTrip::Constant(Span::from_millis(4)), Span::ZERO); 2];
        let mut lanes = Lanes::new(Course::Path(Way::Forth), constant, None);
        for number in 0..1000 {
            let to = Destination::Node(NodeId(1));
            let packet = Packet {
                from: NodeId(0),
                to,
                size: Bytes::new(1500),
                flow: 0,
                dscp: 0,
                ecn: Ecn::NotEct,
                id: 0,
                payload: number,
            };
            lanes.push(Time::ZERO + Span::from_millis(number), packet);
            if number >= 3 {
                assert_eq!(lanes.pop().payload, number - 3);
            }
        }
        assert_eq!((lanes.len(), lanes.packets.len()), (3, 4));
    }

    #[test]
    fn round_trip_times_are_spread_evenly_over_the_range() {
        let mut rtt = round_trip(10, 30, 1);
        let draws: Vec<f64> = (0..10_000).map(|millis| at(&mut rtt, millis).as_millis_f64()).collect();
        let mean = draws.iter().sum::<f64>() / 1e4;
        // Uniform in 10..30: mean 20, standard deviation 20 / sqrt(12) = 5.77; of the mean 0.058. The tolerance is five
        // of these.
        assert!((mean - 20.0).abs() < 0.29, "{mean}");
        assert!(draws.iter().all(|draw| (10.0..=30.0).contains(draw)));
        assert!(draws.iter().filter(|draw| **draw < 12.0).count() > 850, "a tenth is below 12");
    }
}
