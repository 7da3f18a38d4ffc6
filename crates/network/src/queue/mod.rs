//! Queues of packets: the drop-tail queue, `fifo`; per-flow queues under CoDel, `fq_codel`; per-station queues of an
//! access point, `mac80211`.

mod codel;
mod fifo;
mod flow_queues;
mod fq_codel;
mod mac80211;
mod packet_queue;

use crate::packet::{Departure, Destination, Packet};
use crate::random::Streams;
use crate::statistics::{Cause, LengthOverTime, Observed, QueueId};
use crate::watch::Tap;
pub(crate) use fifo::Fifo;
pub(crate) use fq_codel::FqCodel;
pub use fq_codel::FqCodelConfig;
use lasthop_units::{Bytes, Rate, Span, Time};
use mac80211::Mac80211;
pub use mac80211::{DeviceLimit, Mac80211Config};

/// The queueing discipline.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Discipline {
    /// First in, first out; tail drop.
    #[default]
    Fifo,
    /// FQ-CoDel (RFC 8290).
    FqCodel(FqCodelConfig),
    /// Linux's mac80211: of an access point of Wi-Fi alone.
    Mac80211(Mac80211Config),
}

/// A queue in front of a transmitter.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QueueConfig {
    /// The queueing discipline.
    pub discipline: Discipline,
    /// The limit in packets, including the one in service; at least 1. Of `Mac80211`: without those in the device
    /// queue.
    pub packets: usize,
}

impl QueueConfig {
    /// A drop-tail queue with this limit in packets.
    pub const fn fifo(packets: usize) -> Self {
        Self { discipline: Discipline::Fifo, packets }
    }

    /// FQ-CoDel with the RFC's parameters and this limit in packets. The RFC's own limit is 10240.
    pub fn fq_codel(packets: usize) -> Self {
        Self { discipline: Discipline::FqCodel(FqCodelConfig::default()), packets }
    }

    /// mac80211's queues with Linux's parameters and this limit in packets. Linux's own limit is 8192.
    pub fn mac80211(packets: usize) -> Self {
        Self { discipline: Discipline::Mac80211(Mac80211Config::default()), packets }
    }
}

/// The container for which a transmitter claims packets, to send them together.
pub(crate) trait Load<P> {
    /// Whether a packet of this size fits next.
    fn fits(&self, size: Bytes) -> bool;

    /// Adds a packet, at this place of the queue's order. Returns whether one more could be added.
    fn add(&mut self, place: u64, packet: &Packet<P>) -> bool;
}

/// A queue of any discipline.
#[derive(Clone, Debug)]
pub(crate) enum Queue<P> {
    Fifo(Fifo<P>),
    FqCodel(Box<FqCodel<P>>),
    Mac80211(Box<Mac80211<P>>),
}

impl<P> Queue<P> {
    /// An empty queue; `name` is that of its random stream, if it has one.
    pub(crate) fn new(config: QueueConfig, streams: Streams, name: &str) -> Self {
        match config.discipline {
            Discipline::Fifo => Self::Fifo(Fifo::new(config.packets)),
            Discipline::FqCodel(parameters) => {
                Self::FqCodel(Box::new(FqCodel::new(parameters, config.packets, streams, name)))
            }
            Discipline::Mac80211(parameters) => {
                Self::Mac80211(Box::new(Mac80211::new(parameters, config.packets, streams, name)))
            }
        }
    }

    /// By station: its number in the stream of hashes, instead of its place.
    pub(crate) fn number_stations(&mut self, numbers: &[u16]) {
        if let Self::Mac80211(queue) = self {
            queue.number_stations(numbers);
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Fifo(queue) => queue.len(),
            Self::FqCodel(queue) => queue.len(),
            Self::Mac80211(queue) => queue.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn room(&self) -> usize {
        match self {
            Self::Fifo(queue) => queue.room(),
            Self::FqCodel(queue) => queue.room(),
            Self::Mac80211(queue) => queue.room(),
        }
    }

    /// Queues the packet, or counts it as dropped and returns it.
    pub(crate) fn push(&mut self, now: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        match self {
            Self::Fifo(queue) => queue.push(now, packet),
            Self::FqCodel(queue) => queue.push(now, packet),
            Self::Mac80211(queue) => queue.push(now, packet),
        }
    }

    /// The number of unclaimed packets.
    pub(crate) fn waiting(&self) -> usize {
        match self {
            Self::Fifo(queue) => queue.waiting(),
            Self::FqCodel(queue) => queue.waiting(),
            Self::Mac80211(queue) => queue.waiting(),
        }
    }

    /// Whether there is a packet to send next. mac80211 may hold back packets behind those claimed.
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Self::Mac80211(queue) => queue.is_ready(),
            _ => self.waiting() > 0,
        }
    }

    /// The next packet, with its place in the queue's order. It stays next until it is claimed.
    pub(crate) fn head(&mut self, now: Time) -> (u64, &Packet<P>) {
        match self {
            Self::Fifo(queue) => queue.head(),
            Self::FqCodel(queue) => queue.head(now),
            Self::Mac80211(queue) => queue.head(),
        }
    }

    /// Takes the head, with its transmission complete at once.
    pub(crate) fn pop(&mut self, now: Time) -> Packet<P> {
        match self {
            Self::Fifo(queue) => queue.pop(now),
            Self::FqCodel(queue) => queue.pop(now),
            Self::Mac80211(queue) => queue.pop(now),
        }
    }

    /// Claims packets to this destination (`None`: any), in order, until one does not fit. They count until they are
    /// [released](Self::release).
    #[inline]
    pub(crate) fn claim(&mut self, now: Time, to: Option<Destination>, load: &mut impl Load<P>) {
        match self {
            Self::Fifo(queue) => queue.claim(to, load),
            Self::FqCodel(queue) => queue.claim(now, to, load),
            Self::Mac80211(queue) => queue.claim(to, load),
        }
    }

    /// A claimed packet that is not taken out yet.
    pub(crate) fn claimed(&self, place: u64) -> Option<&Packet<P>> {
        match self {
            Self::Fifo(queue) => queue.claimed(place),
            Self::FqCodel(queue) => queue.claimed(place),
            Self::Mac80211(queue) => queue.claimed(place),
        }
    }

    /// Where it tells its losses.
    pub(crate) fn tap(&mut self) -> &mut Tap<P> {
        match self {
            Self::Fifo(queue) => &mut queue.tap,
            Self::FqCodel(queue) => &mut queue.tap,
            Self::Mac80211(queue) => &mut queue.tap,
        }
    }

    /// Takes out a claimed packet, which still counts.
    #[inline]
    pub(crate) fn take(&mut self, place: u64) -> Packet<P> {
        match self {
            Self::Fifo(queue) => queue.take(place),
            Self::FqCodel(queue) => queue.take(place),
            Self::Mac80211(queue) => queue.take(place),
        }
    }

    /// Transmission of this many claimed packets to or from the station is complete.
    #[inline]
    pub(crate) fn release(&mut self, now: Time, station: usize, packets: usize) {
        match self {
            Self::Fifo(queue) => queue.release(now, packets),
            Self::FqCodel(queue) => queue.release(now, packets),
            Self::Mac80211(queue) => queue.release(now, station, packets),
        }
    }

    /// A transmission to or from a station has taken this air time.
    #[inline]
    pub(crate) fn on_airtime(&mut self, station: usize, air: Span) {
        if let Self::Mac80211(queue) = self {
            queue.on_airtime(station, air);
        }
    }

    /// Frames to a station go at this rate, behind this preamble, from now on.
    #[inline]
    pub(crate) fn on_rate(&mut self, station: usize, rate: Rate, preamble: Span) {
        if let Self::Mac80211(queue) = self {
            queue.on_rate(station, rate, preamble);
        }
    }

    /// A station is held from now on, or goes on: mac80211 does not send more of its packets to the device meanwhile.
    pub(crate) fn hold(&mut self, now: Time, station: usize, held: bool) {
        if let Self::Mac80211(queue) = self {
            queue.hold(now, station, held);
        }
    }

    /// Starts recording packets that are dropped after acceptance. Returns whether there can be any: a drop-tail queue
    /// has none.
    pub(crate) fn note_lost(&mut self) -> bool {
        if let Self::FqCodel(queue) = self {
            queue.note_lost();
        }
        matches!(self, Self::FqCodel(_))
    }

    /// The packets dropped after acceptance since the last call, in order.
    pub(crate) fn take_lost(&mut self) -> impl Iterator<Item = Departure> {
        let queue = if let Self::FqCodel(queue) = self { Some(queue) } else { None };
        queue.into_iter().flat_map(|queue| queue.take_lost())
    }

    /// Reports drops under this place, regardless of where the packets went.
    pub(crate) fn count_drops(&mut self, cause: Cause, count: u64) {
        match self {
            Self::Fifo(queue) => queue.count_drops(cause, count),
            Self::FqCodel(queue) => queue.count_drops(cause, count),
            Self::Mac80211(queue) => queue.count_drops(cause, count),
        }
    }

    /// Its lengths over time.
    pub(crate) fn lengths(&self) -> &LengthOverTime {
        match self {
            Self::Fifo(queue) => queue.lengths(),
            Self::FqCodel(queue) => queue.lengths(),
            Self::Mac80211(queue) => queue.lengths(),
        }
    }

    /// The statistics of this queue, under the name `place`.
    pub(crate) fn observe(&self, place: QueueId, now: Time) -> Observed {
        let drops = |cause| match self {
            Self::Fifo(queue) => queue.drops(cause),
            Self::FqCodel(queue) => queue.drops(cause),
            Self::Mac80211(queue) => queue.drops(cause),
        };
        Observed { queue: self.lengths().statistics(place, now), drops: Cause::ALL.map(drops) }
    }

    pub(crate) fn reset_statistics(&mut self, now: Time) {
        match self {
            Self::Fifo(queue) => queue.reset_statistics(now),
            Self::FqCodel(queue) => queue.reset_statistics(now),
            Self::Mac80211(queue) => queue.reset_statistics(now),
        }
    }
}
