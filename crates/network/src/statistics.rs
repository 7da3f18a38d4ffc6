//! The network's counts and measurements.
//!
//! Everything is cumulative since the run's start or the last [`reset`](crate::Network::reset_statistics) (the end of
//! the warm-up) and takes bounded memory: queue lengths are kept as one total of time per length.

use crate::packet::NodeId;
use lasthop_units::{Bytes, Rate, Span, Time};
use std::ops::{Index, IndexMut};

/// A queue: packets wait in it, and get lost in it or on the way to the next.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum QueueId {
    /// A host's own transmit queue and the way from there to the access point.
    Host(NodeId),
    /// The access point's downlink queue and the way from there to the hosts.
    AccessPoint,
    /// The same of another access point than the first, by its number from 1.
    OtherAccessPoint(u16),
    /// The path's queue towards the server.
    PathUp,
    /// The path's queue towards the access point: the server's transmit queue.
    PathDown,
    /// The queue of one direction of a link.
    Link {
        /// Which link, by its place in the configuration.
        link: u16,
        /// Which direction of it.
        way: Way,
    },
}

impl QueueId {
    /// The downlink queue of the access point of this number, from 0.
    pub const fn of_access_point(number: usize) -> Self {
        if number == 0 { Self::AccessPoint } else { Self::OtherAccessPoint(number as u16) }
    }

    /// The number of the access point whose downlink queue it is, from 0.
    pub fn access_point(self) -> Option<usize> {
        match self {
            Self::AccessPoint => Some(0),
            Self::OtherAccessPoint(number) => Some(number.into()),
            _ => None,
        }
    }
}

/// A direction of a link, of the path, or between a station and its access point.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Way {
    /// From the first end of a link to the second; up, towards the access point and the server.
    Forth,
    /// From the second to the first; down, to the hosts.
    Back,
}

impl Way {
    /// Both, in order.
    pub(crate) const BOTH: [Self; 2] = [Self::Forth, Self::Back];
}

/// What there is once for each direction.
impl<T> Index<Way> for [T; 2] {
    type Output = T;

    #[inline]
    fn index(&self, way: Way) -> &T {
        &self[way as usize]
    }
}

impl<T> IndexMut<Way> for [T; 2] {
    #[inline]
    fn index_mut(&mut self, way: Way) -> &mut T {
        &mut self[way as usize]
    }
}

/// A cause of packet loss.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cause {
    /// The queue had no room.
    QueueFull,
    /// Every transmission that the retry limit allows failed.
    RetryLimit,
    /// The random loss of the path or of a link.
    RandomLoss,
    /// A broadcast frame received with an error; counted once per such receiver.
    FrameError,
    /// A broadcast frame that collided; counted once per receiver.
    Collision,
    /// CoDel dropped it to limit the delay.
    CoDel,
    /// It came after its receiver had stopped waiting for it (802.11n and later).
    TooLate,
    /// PIE or RED dropped it before the queue, to limit the delay.
    Early,
    /// The ACK filter dropped it: a newer ACK of its connection made it needless.
    NewerAck,
    /// Its station had roamed to another access point: it waited in the queue of the old one, came there during the outage, or was
    /// held behind a gap at the end of the old association.
    LeftBehind,
}

impl Cause {
    /// All causes, in order.
    pub const ALL: [Self; 10] = [
        Self::QueueFull,
        Self::RetryLimit,
        Self::RandomLoss,
        Self::FrameError,
        Self::Collision,
        Self::CoDel,
        Self::TooLate,
        Self::Early,
        Self::NewerAck,
        Self::LeftBehind,
    ];
}

/// Packets lost at one place for one reason.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Drops {
    /// The place.
    pub place: QueueId,
    /// The cause.
    pub cause: Cause,
    /// The number; never zero.
    pub count: u64,
}

/// Use of the air time; the parts add up to the elapsed time. All zero with a wired access.
///
/// A transmission still on the air is classified as if it ended undisturbed.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct AirTime {
    /// Silence, and no frame waits.
    pub idle: Span,
    /// Silence while a frame waits: inter-frame spaces and backoff.
    pub contention: Span,
    /// Transmissions that were acknowledged, wholly or in part, from the preamble (or the CTS-to-self, or the RTS) to
    /// the end of the acknowledgement.
    pub success: Span,
    /// Broadcast frames of the access point.
    pub broadcast: Span,
    /// Frames that overlap, from the first one's start to the last one's end.
    pub collision: Span,
    /// Transmissions without a collision or an acknowledgement.
    pub error: Span,
}

impl AirTime {
    /// All parts together: the elapsed time.
    pub fn total(&self) -> Span {
        self.idle + self.contention + self.busy()
    }

    /// The parts since an earlier reading of the same channel.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            idle: self.idle - before.idle,
            contention: self.contention - before.contention,
            success: self.success - before.success,
            broadcast: self.broadcast - before.broadcast,
            collision: self.collision - before.collision,
            error: self.error - before.error,
        }
    }

    /// The time with a transmission.
    pub fn busy(&self) -> Span {
        self.success + self.broadcast + self.collision + self.error
    }
}

/// A queue's length over time, including the packet in service.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct QueueStatistics {
    /// Which queue.
    pub place: QueueId,
    /// Mean length in packets, weighted by time.
    pub mean_packets: f64,
    /// The length in packets not exceeded for 95 % of the time.
    pub p95_packets: usize,
    /// The greatest length in packets.
    pub max_packets: usize,
    /// Packets that it marked with CE (ECN).
    pub marks: u64,
}

/// Counts of one direction between a station and the access point: data, not acknowledgements.
///
/// A transmission carries one frame in 802.11b and 802.11g, one or more in 802.11n and later.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct WifiLinkStatistics {
    /// The PHY rate of the next transmission.
    pub phy_rate: Rate,
    /// Mean PHY rate over all unicast transmissions; zero without any.
    pub mean_phy_rate: Rate,
    /// Unicast transmissions, first ones and repeats; an RTS without CTS counts as one.
    pub transmissions: u64,
    /// Frames in these transmissions.
    pub frames: u64,
    /// Retransmitted frames, counted each time.
    pub retries: u64,
    /// Transmissions that collided.
    pub collided: u64,
    /// Frames with an error but no collision, counted each time.
    pub errors: u64,
    /// Frames that were acknowledged.
    pub acknowledged: u64,
    /// Frames given up at the retry limit.
    pub given_up: u64,
    /// Air time of its data, without RTS, responses and the spaces between.
    pub air: Span,
}

/// One station of the 802.11 medium.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StationStatistics {
    /// The station.
    pub node: NodeId,
    /// From the station to the access point.
    pub up: WifiLinkStatistics,
    /// From the access point to the station.
    pub down: WifiLinkStatistics,
}

/// An access point among neighbours, with its stations.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CellStatistics {
    /// Use of the air time by this cell; contention is the time in which one of its frames waits and none is on the air.
    pub air: AirTime,
    /// The time in which the access point senses transmissions of other cells.
    pub neighbours: Span,
    /// Collisions at receivers of this cell; overlapping ones count once.
    pub collisions: u64,
}

/// Traffic of one direction of a wired link.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct LinkStatistics {
    /// Which direction of which link.
    pub place: QueueId,
    /// Packets sent, including those lost after the queue.
    pub packets: u64,
    /// Their total size.
    pub data: Bytes,
    /// Busy time of its transmitter.
    pub busy: Span,
    /// The share of time in 0..=1 in which its transmitter was busy.
    pub utilization: f64,
}

/// All counts of the network.
#[derive(Clone, PartialEq, Debug)]
pub struct Statistics {
    /// Time since the start or the last reset.
    pub elapsed: Span,
    /// Events processed: transmissions begun and ended on the medium, arrivals at the end of a link, and departures
    /// from queues, if those are events.
    pub events: u64,
    /// Use of the air time. With [`Cells`](crate::Cells): by any node, and a collision if one transmission is lost to another.
    pub air: AirTime,
    /// The share of time in 0..=1 in which the access was busy: with a transmission (Wi-Fi), or with data in the busier
    /// direction (wired). With links: the busiest direction's.
    pub utilization: f64,
    /// Collisions, regardless of the number of frames in each.
    pub collisions: u64,
    /// Retransmitted frames, counted each time, of all stations and the access point.
    pub retries: u64,
    /// Unicast transmissions of all stations and the access point.
    pub transmissions: u64,
    /// Broadcast frames of the access point.
    pub broadcasts: u64,
    /// Air time of broadcast packets, to the access point and from there, with acknowledgements. In a collision each
    /// frame counts its own time, so colliding frames may count twice. In an A-MPDU they count their share of the
    /// bytes.
    pub to_all: Span,
    /// Lost packets by place and cause, in this order; only nonzero counts.
    pub drops: Vec<Drops>,
    /// All queues, by place.
    pub queues: Vec<QueueStatistics>,
    /// All stations of a Wi-Fi access, by node; empty with a wired one.
    pub stations: Vec<StationStatistics>,
    /// Each access point, by number; empty but with [`Cells`](crate::Cells).
    pub cells: Vec<CellStatistics>,
    /// The directions of all links, by place: the path's two, or those of the topology's links.
    pub links: Vec<LinkStatistics>,
}

impl Statistics {
    /// Packets lost at this place for this reason.
    pub fn dropped(&self, place: QueueId, cause: Cause) -> u64 {
        self.drops.iter().find(|drops| drops.place == place && drops.cause == cause).map_or(0, |drops| drops.count)
    }

    /// The queue at this place.
    ///
    /// # Panics
    /// If the network has no such place.
    pub fn queue(&self, place: QueueId) -> QueueStatistics {
        *self.queues.iter().find(|queue| queue.place == place).expect("the place belongs to this network")
    }
}

/// The observations at one place.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Observed {
    pub(crate) queue: QueueStatistics,
    pub(crate) drops: [u64; Cause::ALL.len()],
}

/// The counts of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub(crate) lengths: LengthOverTime,
    /// Packets marked.
    pub(crate) marks: u64,
    drops: [u64; Cause::ALL.len()],
}

impl Counted {
    pub(crate) fn new() -> Self {
        Self { lengths: LengthOverTime::new(), marks: 0, drops: [0; Cause::ALL.len()] }
    }

    /// It has this many packets from now on.
    #[inline]
    pub(crate) fn change(&mut self, now: Time, packets: usize) {
        self.lengths.change(now, packets);
    }

    /// Packets are lost there, wherever they went.
    pub(crate) fn drop(&mut self, cause: Cause, packets: u64) {
        self.drops[cause as usize] += packets;
    }

    #[cfg(test)]
    pub(crate) fn drops(&self, cause: Cause) -> u64 {
        self.drops[cause as usize]
    }

    /// The statistics under the name `place`.
    pub(crate) fn observe(&self, place: QueueId, now: Time) -> Observed {
        let queue = QueueStatistics { marks: self.marks, ..self.lengths.statistics(place, now) };
        Observed { queue, drops: self.drops }
    }

    pub(crate) fn reset(&mut self, now: Time) {
        self.drops = [0; Cause::ALL.len()];
        self.marks = 0;
        self.lengths.reset(now);
    }
}

/// A queue's time at each length.
#[derive(Clone, Debug)]
pub struct LengthOverTime {
    nanos_at: Vec<u64>,
    length: usize,
    since: Time,
    max: usize,
}

impl Default for LengthOverTime {
    fn default() -> Self {
        Self::new()
    }
}

impl LengthOverTime {
    /// An empty queue at [`Time::ZERO`].
    pub fn new() -> Self {
        Self { nanos_at: vec![0], length: 0, since: Time::ZERO, max: 0 }
    }

    /// It has this many packets from `now` on, which is not before the last change.
    #[inline]
    pub fn change(&mut self, now: Time, length: usize) {
        self.nanos_at[self.length] += (now - self.since).as_nanos();
        self.since = now;
        self.length = length;
        if length > self.max {
            self.rise();
        }
    }

    /// It is longer than ever before.
    #[inline(never)]
    fn rise(&mut self) {
        self.max = self.length;
        if self.length >= self.nanos_at.len() {
            self.nanos_at.resize(self.length + 1, 0);
        }
    }

    /// Forgets what was before `now`.
    pub fn reset(&mut self, now: Time) {
        self.nanos_at.fill(0);
        self.since = now;
        self.max = self.length;
    }

    /// The statistics under the name `place`, without marks.
    pub fn statistics(&self, place: QueueId, now: Time) -> QueueStatistics {
        let current = u128::from(now.saturating_since(self.since).as_nanos());
        let at = |length: usize| u128::from(self.nanos_at[length]) + if length == self.length { current } else { 0 };
        let lengths = 0..self.nanos_at.len();
        let total: u128 = lengths.clone().map(at).sum();
        if total == 0 {
            let momentary = self.length;
            return QueueStatistics {
                place,
                mean_packets: momentary as f64,
                p95_packets: momentary,
                max_packets: self.max,
                marks: 0,
            };
        }
        let weighted: u128 = lengths.clone().map(|length| length as u128 * at(length)).sum();
        let mut reached = 0;
        let p95_packets = lengths.into_iter().find(|&length| {
            reached += at(length);
            reached * 100 >= total * 95
        });
        QueueStatistics {
            place,
            mean_packets: weighted as f64 / total as f64,
            p95_packets: p95_packets.expect("all lengths together make up the whole time"),
            max_packets: self.max,
            marks: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_lengths_are_weighted_by_time() {
        let at = |nanos| Time::from_nanos(nanos);
        let mut lengths = LengthOverTime::new();
        lengths.change(at(90), 1);
        lengths.change(at(94), 7);
        // 90 ns at 0, 4 ns at 1, 6 ns at 7: mean (4 + 42) / 100 = 0.46; 94 % of the time it was at most 1, so p95 is 7.
        let queue = lengths.statistics(QueueId::AccessPoint, at(100));
        assert_eq!((queue.mean_packets, queue.p95_packets, queue.max_packets), (0.46, 7, 7));
        // Half a nanosecond less at 7 makes it 1: 90, 5, 5.
        let mut lengths = LengthOverTime::new();
        lengths.change(at(90), 1);
        lengths.change(at(95), 7);
        assert_eq!(lengths.statistics(QueueId::AccessPoint, at(100)).p95_packets, 1);
    }

    #[test]
    fn a_reset_forgets_the_past_but_not_the_length() {
        let mut lengths = LengthOverTime::new();
        lengths.change(Time::from_nanos(10), 3);
        lengths.reset(Time::from_nanos(50));
        let queue = lengths.statistics(QueueId::PathUp, Time::from_nanos(60));
        assert_eq!((queue.mean_packets, queue.p95_packets, queue.max_packets), (3.0, 3, 3));
    }
}
