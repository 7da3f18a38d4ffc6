//! Queues of packets in front of a transmitter, by their disciplines.
//!
//! A discipline is a file, its `mod`, and a line in the list below (docs/guide/new-parts.md). It is a [`Queue`]; or, if it
//! does nothing but choose the next packet, a [`Scheduler`], with [`Served`] around it.

mod ack_filter;
mod cake;
mod codel;
mod desk;
mod dualpi2;
mod fifo;
mod flow_queues;
mod fq_codel;
mod fq_pie;
#[cfg(test)]
#[path = "../../tests/examples/lifo.rs"]
mod lifo;
#[macro_use]
mod list;
mod mac80211;
mod packet_queue;
mod pie;
mod red;

use crate::config::ConfigError;
use crate::packet::{Destination, NodeId, Packet};
use crate::random::Streams;
use crate::statistics::{Observed, QueueId};
use ack_filter::Filter;
pub use ack_filter::{AckFilter, ReadAck, TcpAck};
use cake::Cake;
pub use cake::CakeConfig;
use codel::Codel;
pub use codel::CodelConfig;
pub(crate) use desk::{Desk, Scheduler, Served};
use dualpi2::DualPi2;
use enum_dispatch::enum_dispatch;
pub(crate) use fifo::Fifo;
pub(crate) use fq_codel::FqCodel;
pub use fq_codel::FqCodelConfig;
use fq_pie::FqPie;
use lasthop_units::{Bytes, Rate, Span, Time};
#[cfg(test)]
use lifo::Lifo;
use mac80211::Mac80211;
pub use mac80211::{DeviceLimit, Mac80211Config};
use pie::Pie;
use red::Red;

disciplines! {
    /// First in, first out; tail drop.
    Fifo = "fifo", anywhere, 100 packets;
    /// [FQ-CoDel](../models/queues.md#fq-codel) with the parameters of RFC 8290.
    FqCodel(parameters: FqCodelConfig) = "fq_codel", anywhere, 100 packets;
    /// [CoDel](../models/queues.md#codel-pie-and-red) over one queue, RFC 8289.
    Codel(parameters: CodelConfig) = "codel", anywhere, 1000 packets;
    /// [PIE](../models/queues.md#codel-pie-and-red) with Linux's defaults, RFC 8033.
    Pie = "pie", anywhere, 1000 packets;
    /// [FQ-PIE](../models/queues.md#codel-pie-and-red): Linux's queues of flows in turn, each under PIE.
    FqPie = "fq_pie", anywhere, 10240 packets;
    /// [RED](../models/queues.md#codel-pie-and-red) with what Linux's `tc` makes of the limit.
    Red = "red", anywhere, 100 packets;
    /// [CAKE](../models/queues.md#cake) with one tin: flows under COBALT, fair between hosts.
    Cake(parameters: CakeConfig) = "cake", anywhere, 10240 packets;
    /// [DualPI2](../models/queues.md#dualpi2), RFC 9332: a queue for L4S beside one for the rest.
    DualPi2 = "dualpi2", anywhere, 10000 packets;
    /// The [queues per station of Linux's mac80211](../models/queues.md#mac80211s-queues), with airtime fairness and airtime limits.
    Mac80211(parameters: Mac80211Config) = "mac80211", of_wifi, 8192 packets;
    /// The example of docs/guide/new-parts.md.
    #[cfg(test)]
    Lifo = "lifo", anywhere, 100 packets;
}

/// A queue in front of a transmitter.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QueueConfig {
    /// The queueing discipline.
    pub discipline: Discipline,
    /// The limit in packets, including the one in service; at least 1. Of `Mac80211`: without those in the device
    /// queue.
    pub packets: usize,
    /// Whether ACKs that newer ones make needless leave it.
    pub ack_filter: Option<AckFilter>,
}

impl QueueConfig {
    /// A queue of this discipline with this limit in packets.
    pub const fn of(discipline: Discipline, packets: usize) -> Self {
        Self { discipline, packets, ack_filter: None }
    }

    /// A drop-tail queue with this limit in packets.
    pub const fn fifo(packets: usize) -> Self {
        Self::of(Discipline::Fifo, packets)
    }

    /// FQ-CoDel with the RFC's parameters and this limit in packets. The RFC's own limit is 10240.
    pub const fn fq_codel(packets: usize) -> Self {
        Self::of(Discipline::FqCodel(FqCodelConfig::DEFAULT), packets)
    }

    /// mac80211's queues with Linux's parameters and this limit in packets. Linux's own limit is 8192.
    pub const fn mac80211(packets: usize) -> Self {
        Self::of(Discipline::Mac80211(Mac80211Config::DEFAULT), packets)
    }
}

/// What a new queue gets: its limit in packets, and the name of its random stream, if it wants one.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Setup<'a> {
    limit: usize,
    streams: Streams,
    name: &'a str,
}

/// The container for which a transmitter claims packets, to send them together.
pub(crate) trait Load<P> {
    /// Whether a packet of this size fits next.
    fn fits(&self, size: Bytes) -> bool;

    /// Adds a packet, at this place of the queue's order. Returns whether one more could be added.
    fn add(&mut self, place: u64, packet: &Packet<P>) -> bool;
}

/// A queue of one discipline. A packet waits until a transmitter claims it, and counts until it is released.
#[enum_dispatch]
pub(crate) trait Queue<P> {
    /// Its limit and its counts.
    fn desk(&self) -> &Desk<P>;

    /// The same.
    fn desk_mut(&mut self) -> &mut Desk<P>;

    /// The number of packets, waiting or claimed.
    fn len(&self) -> usize;

    /// The number of unclaimed packets.
    fn waiting(&self) -> usize;

    /// The number of packets that fit in without a loss.
    fn room(&self) -> usize {
        self.desk().limit.saturating_sub(self.len())
    }

    /// Whether there is no packet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is a packet to send next. A queue may hold back packets behind those claimed.
    fn is_ready(&self) -> bool {
        self.waiting() > 0
    }

    /// Queues the packet, or counts it as dropped and returns it.
    fn push(&mut self, now: Time, packet: Packet<P>) -> Result<(), Packet<P>>;

    /// The next packet, with its place in the queue's order. It stays next until it is claimed.
    fn head(&mut self, now: Time) -> (u64, &Packet<P>);

    /// Takes the head, with its transmission complete at once.
    fn pop(&mut self, now: Time) -> Packet<P>;

    /// Claims packets to this destination (`None`: any), in order, until one does not fit. They count until they are
    /// [released](Self::release).
    fn claim(&mut self, now: Time, to: Option<Destination>, load: &mut impl Load<P>);

    /// A claimed packet that is not taken out yet.
    fn claimed(&self, place: u64) -> Option<&Packet<P>>;

    /// Takes out a claimed packet, which still counts.
    fn take(&mut self, place: u64) -> Packet<P>;

    /// Transmission of this many claimed packets to or from the station is complete.
    fn release(&mut self, now: Time, station: NodeId, packets: usize);

    /// Takes out all packets to this destination that are not claimed.
    fn remove_to(&mut self, now: Time, to: Destination) -> Vec<Packet<P>>;

    /// By station: its number in the stream of hashes, instead of its place.
    fn number_stations(&mut self, _numbers: &[u16]) {}

    /// A transmission to or from a station has taken this air time.
    fn on_airtime(&mut self, _station: usize, _air: Span) {}

    /// Frames to a station go at this rate, behind this preamble, from now on.
    fn on_rate(&mut self, _station: usize, _rate: Rate, _preamble: Span) {}

    /// A station is held from now on, or goes on.
    fn hold(&mut self, _now: Time, _station: usize, _held: bool) {}
}

impl<P> AnyQueue<P> {
    /// The statistics of this queue, under the name `place`.
    pub(crate) fn observe(&self, place: QueueId, now: Time) -> Observed {
        self.desk().counted.observe(place, now)
    }

    /// Its filter, if it has one, knows ACKs by this function from now on.
    pub(crate) fn read_acks(&mut self, read: ReadAck<P>) {
        self.desk_mut().filter.iter_mut().for_each(|filter| filter.read = read);
    }

    pub(crate) fn reset_statistics(&mut self, now: Time) {
        self.desk_mut().counted.reset(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Cause;
    use proptest::prelude::*;

    /// Takes packets up to a number.
    struct UpTo(usize, Vec<u64>);

    impl Load<usize> for UpTo {
        fn fits(&self, _: Bytes) -> bool {
            self.0 > 0
        }

        fn add(&mut self, place: u64, _: &Packet<usize>) -> bool {
            self.0 -= 1;
            self.1.push(place);
            self.0 > 0
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// What a discipline drops after it has accepted it, it reports, whichever it is.
        #[test]
        fn every_packet_leaves_a_queue_of_any_discipline_once_or_is_reported_as_dropped(
            steps in prop::collection::vec((0..6_u8, 0..3_u16, 1..4_usize, 0..40_000_u64), 1..300),
            limit in 1..20_usize,
        ) {
            for &(word, discipline) in Discipline::WORDS {
                let mut queue = AnyQueue::new(QueueConfig::of(discipline, limit), Streams::new(1), "queue");
                queue.desk_mut().note_dropped();
                let (mut now, mut offered, mut gone) = (Time::ZERO, 0, Vec::new());
                for &(step, node, number, micros) in &steps {
                    now += Span::from_micros(micros);
                    let to = Destination::Node(NodeId(node));
                    if step < 3 {
                        let packet =
                            Packet { to, flow: u32::from(node), id: offered, ..Packet::full(offered as usize) };
                        offered += 1;
                        gone.extend(queue.push(now, packet).err().map(|refused| refused.id));
                    } else if step == 3 && queue.is_ready() {
                        gone.push(queue.pop(now).id);
                    } else if step == 4 && queue.is_ready() {
                        let to = queue.head(now).1.to;
                        let Destination::Node(station) = to else { unreachable!("no broadcasts here") };
                        let mut load = UpTo(number, Vec::new());
                        queue.claim(now, Some(to), &mut load);
                        gone.extend(load.1.iter().map(|&place| queue.take(place).id));
                        queue.release(now, station, load.1.len());
                    } else if step == 5 {
                        let to = Destination::Node(NodeId(node));
                        gone.extend(queue.remove_to(now, to).iter().map(|removed| removed.id));
                        let left = queue.remove_to(now, to);
                        prop_assert!(left.is_empty(), "{}: some stay behind", word);
                    }
                    gone.extend(queue.desk_mut().take_dropped().map(|dropped| dropped.id));
                    prop_assert_eq!(gone.len() + queue.len(), offered as usize, "{}", word);
                }
                gone.sort_unstable();
                gone.dedup();
                prop_assert_eq!(gone.len() + queue.len(), offered as usize, "{}: twice", word);
                let counted = &queue.desk().counted;
                prop_assert!(Cause::ALL.into_iter().map(|cause| counted.drops(cause)).sum::<u64>() <= offered);
            }
        }
    }

    #[test]
    fn an_aggregate_takes_what_waits_behind_packets_to_others() {
        for &(word, discipline) in Discipline::WORDS {
            let mut queue = AnyQueue::new(QueueConfig::of(discipline, 100), Streams::new(1), "queue");
            for number in 0..6 {
                let (flow, to) = (number as u32 % 2, Destination::Node(NodeId(number as u16 % 2)));
                queue.push(Time::ZERO, Packet { to, flow, ..Packet::full(number) }).unwrap();
            }
            let to = queue.head(Time::ZERO).1.to;
            let mut load = UpTo(9, Vec::new());
            queue.claim(Time::ZERO, Some(to), &mut load);
            assert_eq!(load.1.len(), 3, "{word}");
        }
    }

    #[test]
    fn the_last_packet_of_the_example_is_the_first_to_go() {
        let mut queue = AnyQueue::new(QueueConfig::of(Discipline::Lifo, 3), Streams::new(1), "");
        for number in 0..4 {
            assert_eq!(queue.push(Time::ZERO, Packet::full(number)).is_ok(), number < 3);
        }
        assert_eq!([(); 3].map(|()| queue.pop(Time::ZERO).payload), [2, 1, 0]);
    }

    #[test]
    fn the_page_about_new_parts_has_the_example_as_it_is_compiled() {
        let page = include_str!("../../../../docs/guide/new-parts.md");
        assert!(page.contains(include_str!("../../tests/examples/lifo.rs")), "crates/network/tests/examples/lifo.rs");
        assert!(
            page.contains(include_str!("../../tests/examples/random.rs")),
            "crates/network/tests/examples/random.rs"
        );
    }
}
