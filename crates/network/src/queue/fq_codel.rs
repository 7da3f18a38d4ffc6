//! FQ-CoDel: a queue for each flow, served in turn, each under CoDel.
//!
//! 1. A packet joins one of `flows` queues, by the hash of its flow. A queue that was in neither list joins the new
//!    ones, with a quantum of credits.
//! 2. Above the limit, half of the bytes of the largest queue are dropped from its head, at most `drop_batch` packets.
//! 3. The next packet comes from the first of the new queues, or without any from the first of the old ones. A queue
//!    without credits gets a quantum and goes to the end of the old ones instead; then the next is tried.
//! 4. The queue gives its head after CoDel's drops (`codel`), and pays the frame's bytes in credits.
//! 5. An empty queue goes to the end of the old ones if it was new, and out of the lists if it was old.
//!
//! ```text
//!    [in no list] -- packet --> [new] -- no credits, or empty --> [old] -- empty --> [in no list]
//!                                                                  |  ^
//!                                                                  +--+ no credits: a quantum, to the end
//! ```
//!
//! The model is the discipline right above the transmitter, which asks for a packet when it begins to send it. There is
//! no device queue below (real devices hold some frames, which wait there in order). CoDel no longer sees the packets
//! in transmission, but they count in length and limit, as in a `fifo`.
//!
//! A transmitter that sends several packets to one receiver gets the next packet and then more to the same receiver.
//! They come from new queues whose head goes there, then from old ones, in order. Their queues pay credits, and wait
//! the longer.
//!
//! Leaves out: the memory limit in bytes, filters. CoDel uses the bytes of its own queue, as in
//! RFC 8289 and mac80211, and not the total (`sch_fq_codel`).
//!
//! References: RFC 8290 §4.1 (enqueueing), §4.2 (dequeueing), §5.2 (parameters); RFC 8289 §5; T. Høiland-Jørgensen et
//! al.: Ending the anomaly: achieving low latency and airtime fairness in WiFi, USENIX ATC 2017 (above Wi-Fi devices).

use super::ack_filter::Filter;
use super::codel::Setpoint;
use super::flow_queues::{FlowQueues, Turns};
use super::{Desk, Scheduler, Served, Setup};
use crate::config::{ConfigError, check};
use crate::packet::{Destination, Packet};
use crate::statistics::Cause;
use lasthop_units::{Bytes, Span, Time};
use rand::Rng;

/// FQ-CoDel's parameters; the defaults are those of RFC 8290 §5.2.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FqCodelConfig {
    /// CoDel's target for the standing delay. Default 5 ms.
    pub target: Span,
    /// CoDel's interval: how long it tolerates more than the target, a round trip of the slower connections. More than
    /// zero. Default 100 ms.
    pub interval: Span,
    /// Bytes that a queue may send per turn, at least 1. Default 1514, a full frame.
    pub quantum: Bytes,
    /// The number of queues for hashed flows, 1 to 65536. Default 1024.
    pub flows: u32,
    /// The most packets dropped at once at the limit, at least 1. Default 64.
    pub drop_batch: u32,
    /// Packets with a longer sojourn are marked, if they can be. Default: none is for that.
    pub ce_threshold: Option<Span>,
}

impl FqCodelConfig {
    /// Those of RFC 8290.
    pub const DEFAULT: Self = Self {
        target: Span::from_millis(5),
        interval: Span::from_millis(100),
        quantum: Bytes::new(1514),
        flows: 1024,
        drop_batch: 64,
        ce_threshold: None,
    };

    /// Queues with these parameters.
    pub(super) fn queues<P>(self, salt: u64) -> FlowQueues<P> {
        let Self { target, interval, quantum, flows, drop_batch, ce_threshold } = self;
        FlowQueues::new(Turns { quantum, flows, drop_batch }, Setpoint { target, interval, ce_threshold }, salt)
    }

    /// Whether they are possible.
    pub(super) fn validate(self) -> Result<(), ConfigError<&'static str>> {
        let at_least_1 = |name, value: u64| check(value >= 1, name, || (value.to_string(), "1 or more".into()));
        at_least_1("quantum", self.quantum.get())?;
        at_least_1("drop_batch", self.drop_batch.into())?;
        check(self.interval > Span::ZERO, "interval", || ("0 s".into(), "more than 0 s".into()))?;
        check((1..=65_536).contains(&self.flows), "flows", || (self.flows.to_string(), "1 to 65536 flows".into()))
    }
}

impl Default for FqCodelConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

pub(crate) type FqCodel<P> = Served<P, FlowQueues<P>>;

impl<P> FqCodel<P> {
    /// An empty queue; its random stream is drawn from once.
    pub(super) fn new(config: FqCodelConfig, setup: Setup<'_>) -> Self {
        Self::of(config.queues(setup.streams.stream(setup.name).next_u64()), setup)
    }
}

impl<P> Scheduler<P> for FlowQueues<P> {
    fn inside(&self) -> usize {
        self.waiting()
    }

    /// Above the limit the largest queue is cut. The packet goes back if it is among the dropped.
    fn accept(&mut self, now: Time, packet: Packet<P>, has_room: bool, desk: &mut Desk<P>) -> Result<(), Packet<P>> {
        let joined = self.push(now, packet);
        if has_room {
            return Ok(());
        }
        let (_, fattest) = self.fattest().expect("a packet has just joined");
        match self.drop_half(fattest, joined, |packet| desk.drop(now, Cause::QueueFull, packet)) {
            Some(packet) => desk.refuse(now, packet),
            None => Ok(()),
        }
    }

    fn next(
        &mut self,
        now: Time,
        to: Option<Destination>,
        fits: &dyn Fn(Bytes) -> bool,
        desk: &mut Desk<P>,
    ) -> Option<Packet<P>> {
        Self::next(self, now, to, fits, desk)
    }

    fn thin(&mut self, new: &Packet<P>, filter: &Filter<P>) -> Option<Packet<P>> {
        Self::thin(self, new, filter)
    }

    fn remove_to(&mut self, _now: Time, to: Destination, _desk: &mut Desk<P>) -> Vec<Packet<P>> {
        Self::remove_to(self, to)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Queue;
    use super::*;
    use crate::packet::{Destination, NodeId};
    use crate::random::Streams;
    use lasthop_units::Ecn;
    use proptest::prelude::*;

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn packet(flow: u32, bytes: u64, payload: usize) -> Packet<usize> {
        Packet {
            from: NodeId(0),
            to: Destination::Node(NodeId(1)),
            size: Bytes::new(bytes),
            flow,
            dscp: 0,
            ecn: Ecn::NotEct,
            id: 0,
            payload,
        }
    }

    /// With enough queues that flows 0 to 9 do not collide.
    fn queue(limit: usize, config: FqCodelConfig) -> FqCodel<usize> {
        let queue = FqCodel::new(config, Setup { limit, streams: Streams::new(1), name: "queue" });
        let mut used: Vec<_> = (0..10).map(|flow| queue.scheduler.hash(flow)).collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), 10);
        queue
    }

    fn pop(queue: &mut FqCodel<usize>, now: Time) -> Packet<usize> {
        queue.pop(now)
    }

    /// The flows of the next packets.
    fn flows(queue: &mut FqCodel<usize>, now: Time, count: usize) -> Vec<u32> {
        (0..count).map(|_| pop(queue, now).flow).collect()
    }

    #[test]
    fn full_frames_of_flows_with_a_queue_take_turns() {
        let mut queue = queue(1000, FqCodelConfig::default());
        for payload in 0..30 {
            queue.push(Time::ZERO, packet(payload as u32 % 3, 1500, payload)).unwrap();
        }
        // 1500 + 14 bytes are exactly the quantum.
        assert_eq!(flows(&mut queue, Time::ZERO, 9), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn turns_are_fair_in_bytes() {
        let mut queue = queue(1000, FqCodelConfig::default());
        for payload in 0..200 {
            queue.push(Time::ZERO, packet(0, 1500, payload)).unwrap();
            queue.push(Time::ZERO, packet(1, 486, payload)).unwrap();
        }
        // 500 bytes against 1514: 300 of flow 1 would go in the time of 99 of flow 0. 120 frames: 30 × 1514 = 45420,
        // 90 × 500 = 45000.
        let sent = flows(&mut queue, Time::ZERO, 120);
        let large = sent.iter().filter(|&&flow| flow == 0).count();
        assert!((29..=31).contains(&large), "{large} of 120 frames");
    }

    #[test]
    fn a_flow_that_has_just_begun_goes_before_those_with_a_queue() {
        let mut queue = queue(1000, FqCodelConfig::default());
        for payload in 0..100 {
            queue.push(Time::ZERO, packet(payload as u32 % 2, 1500, payload)).unwrap();
        }
        flows(&mut queue, Time::ZERO, 7);
        // 7 were sent: 0 1 0 1 0 1 0. The packet in transmission stays.
        queue.head(Time::ZERO);
        queue.push(Time::ZERO, packet(5, 100, 100)).unwrap();
        queue.push(Time::ZERO, packet(6, 100, 101)).unwrap();
        assert_eq!(flows(&mut queue, Time::ZERO, 5), [1, 5, 6, 0, 1]);
    }

    #[test]
    fn a_flow_cannot_stay_new_by_coming_back_whenever_it_is_empty() {
        // RFC 8290 §4.2: an empty new queue joins the old ones first.
        // Flow 5 offers its next packet as soon as one is gone.
        let mut queue = queue(1000, FqCodelConfig::default());
        for payload in 0..100 {
            queue.push(Time::ZERO, packet(0, 1500, payload)).unwrap();
        }
        assert_eq!(flows(&mut queue, Time::ZERO, 2), [0, 0]);
        let mut sent = Vec::new();
        for payload in 0..40 {
            queue.push(Time::ZERO, packet(5, 1000, 100 + payload)).unwrap();
            sent.extend(flows(&mut queue, Time::ZERO, 1));
        }
        // Credits of 5: 1514 - 1014 - 1014 < 0, so a quantum and to the end of the old ones; there flow 0, at 0,
        // gets one too and goes behind it. 1000 - 1014 < 0: flow 0's turn, 1514 - 1514. 5: 1500 - 1014 - 1014 < 0,
        // and so on: half of the bytes.
        assert_eq!(sent[..7], [5, 5, 5, 0, 5, 5, 0]);
        let bytes = |flow, each| sent.iter().filter(|&&sent| sent == flow).count() as i64 * each;
        assert!((bytes(0, 1514) - bytes(5, 1014)).abs() <= 2 * 1514, "{sent:?}");
    }

    #[test]
    fn a_new_flow_that_has_become_empty_queues_with_the_old_ones() {
        let mut queue = queue(1000, FqCodelConfig::default());
        for payload in 0..99 {
            queue.push(Time::ZERO, packet(payload as u32 % 3, 1500, payload)).unwrap();
        }
        assert_eq!(flows(&mut queue, Time::ZERO, 4), [0, 1, 2, 0]);
        queue.push(Time::ZERO, packet(5, 100, 100)).unwrap();
        // Flow 5 is found empty on the way to 1; when it is back, it is 2's turn first.
        assert_eq!(flows(&mut queue, Time::ZERO, 2), [5, 1]);
        queue.push(Time::ZERO, packet(5, 100, 101)).unwrap();
        assert_eq!(flows(&mut queue, Time::ZERO, 3), [2, 5, 0]);
    }

    #[test]
    fn at_the_limit_the_fattest_flow_loses_half_of_its_bytes_from_its_head() {
        let mut queue = queue(12, FqCodelConfig::default());
        for payload in 0..8 {
            queue.push(Time::ZERO, packet(0, 1500, payload)).unwrap();
        }
        for payload in 8..12 {
            queue.push(Time::ZERO, packet(1, 1500, payload)).unwrap();
        }
        assert_eq!((queue.len(), queue.room()), (12, 0));
        // The 13th is taken in; 4 of the 8 packets of flow 0 go.
        queue.push(Time::ZERO, packet(2, 1500, 12)).unwrap();
        assert_eq!((queue.len(), queue.room(), queue.desk().counted.drops(Cause::QueueFull)), (9, 3, 4));
        let mut left: Vec<_> = (0..9).map(|_| pop(&mut queue, Time::ZERO).payload).collect();
        left.sort_unstable();
        assert_eq!(left, [4, 5, 6, 7, 8, 9, 10, 11, 12]);
    }

    #[test]
    fn fat_is_who_has_most_bytes_not_most_packets() {
        let mut queue = queue(12, FqCodelConfig { drop_batch: 1, ..FqCodelConfig::default() });
        for payload in 0..10 {
            queue.push(Time::ZERO, packet(0, 40, payload)).unwrap();
        }
        // 10 × 54 bytes against 2 × 1514.
        queue.push(Time::ZERO, packet(1, 1500, 10)).unwrap();
        queue.push(Time::ZERO, packet(1, 1500, 11)).unwrap();
        queue.push(Time::ZERO, packet(0, 40, 12)).unwrap();
        assert_eq!((queue.len(), queue.desk().counted.drops(Cause::QueueFull)), (12, 1));
        assert!((0..12).all(|_| pop(&mut queue, Time::ZERO).payload != 10));
    }

    #[test]
    fn a_packet_is_refused_only_if_it_is_itself_the_fattest_flow() {
        let mut queue = queue(2, FqCodelConfig::default());
        queue.push(Time::ZERO, packet(0, 40, 0)).unwrap();
        queue.head(Time::ZERO);
        queue.push(Time::ZERO, packet(1, 40, 1)).unwrap();
        assert_eq!(queue.push(Time::ZERO, packet(2, 1500, 2)), Err(packet(2, 1500, 2)));
        assert_eq!(queue.push(Time::ZERO, packet(1, 40, 3)), Ok(()), "the older one of its flow is dropped instead");
        assert_eq!((queue.len(), queue.desk().counted.drops(Cause::QueueFull)), (2, 2));
        assert_eq!([pop(&mut queue, Time::ZERO).payload, pop(&mut queue, Time::ZERO).payload], [0, 3]);
    }

    #[test]
    fn codel_drops_when_the_packet_is_chosen_and_never_the_chosen_one() {
        // One packet per millisecond, as in `codel`: the first drop at 105 ms.
        let mut queue = queue(1000, FqCodelConfig::default());
        for payload in 0..300 {
            queue.push(Time::ZERO, packet(0, 1500, payload)).unwrap();
        }
        for millis in 0..105 {
            pop(&mut queue, ms(millis));
        }
        assert_eq!((queue.len(), queue.desk().counted.drops(Cause::CoDel)), (195, 0));
        assert_eq!(queue.head(ms(105)).1.payload, 106);
        assert_eq!((queue.len(), queue.desk().counted.drops(Cause::CoDel)), (194, 1));
        // Independent of the number of transmissions.
        assert_eq!(queue.head(ms(400)).1.payload, 106);
        assert_eq!((queue.len(), queue.desk().counted.drops(Cause::CoDel)), (194, 1));
        assert_eq!(pop(&mut queue, ms(400)).payload, 106);
    }

    #[test]
    fn which_flows_share_a_queue_is_the_luck_of_the_seed() {
        let config = FqCodelConfig { flows: 64, ..FqCodelConfig::default() };
        let indices = |seed| {
            let queue = FqCodel::<()>::new(config, Setup { limit: 10, streams: Streams::new(seed), name: "queue" });
            (0..1000).map(|flow| queue.scheduler.hash(flow)).collect::<Vec<_>>()
        };
        assert_eq!(indices(1), indices(1));
        assert_ne!(indices(1), indices(2));
        let mut counts = [0; 64];
        indices(1).into_iter().for_each(|index| counts[index] += 1);
        // Binomial(1000, 1/64): 15.6, deviation 3.9; five of them.
        assert!(counts.iter().all(|count| (1..=35).contains(count)), "{counts:?}");
    }

    #[derive(Clone, Debug)]
    enum Operation {
        Wait(u64),
        Push { flow: u32, bytes: u64 },
        Choose,
        Send,
    }

    fn operations() -> impl Strategy<Value = Vec<Operation>> {
        let operation = prop_oneof![
            2 => (0..30_u64).prop_map(Operation::Wait),
            4 => (0..4_u32, prop_oneof![Just(1500), 1..3000_u64]).prop_map(|(flow, bytes)| Operation::Push { flow, bytes }),
            1 => Just(Operation::Choose),
            3 => Just(Operation::Send),
        ];
        prop::collection::vec(operation, 0..300)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        /// After each operation: arrivals equal queued plus sent plus dropped packets; the limit holds; each flow's
        /// packets leave in order of arrival, none twice.
        #[test]
        fn packets_are_sent_in_the_order_of_their_flow_or_counted_as_dropped(
            operations in operations(),
            limit in 1..20_usize,
            queues in 1..8_u32,
            drop_batch in 1..10_u32,
            quantum in 1..3000_u64,
        ) {
            let config = FqCodelConfig {
                target: Span::from_millis(5),
                interval: Span::from_millis(20),
                quantum: Bytes::new(quantum),
                flows: queues,
                drop_batch,
                ce_threshold: None,
            };
            let mut queue = FqCodel::new(config, Setup { limit, streams: Streams::new(1), name: "queue" });
            let (mut now, mut came, mut sent) = (Time::ZERO, 0, 0);
            let mut last_of_flow = [None; 4];
            for operation in operations {
                match operation {
                    Operation::Wait(millis) => now += Span::from_millis(millis),
                    Operation::Push { flow, bytes } => {
                        let room = queue.room();
                        let before = queue.desk().counted.drops(Cause::QueueFull);
                        let refused = queue.push(now, packet(flow, bytes, came)).is_err();
                        came += 1;
                        prop_assert_eq!(room == 0, queue.desk().counted.drops(Cause::QueueFull) > before);
                        prop_assert!(!refused || queue.desk().counted.drops(Cause::QueueFull) == before + 1);
                    }
                    Operation::Choose if queue.len() > 0 => {
                        let chosen = queue.head(now).1.payload;
                        prop_assert_eq!(queue.head(now).1.payload, chosen);
                    }
                    Operation::Send if queue.len() > 0 => {
                        let packet = pop(&mut queue, now);
                        sent += 1;
                        let last = &mut last_of_flow[packet.flow as usize];
                        prop_assert!(last.is_none_or(|last| packet.payload > last));
                        *last = Some(packet.payload);
                    }
                    Operation::Choose | Operation::Send => {}
                }
                let dropped = queue.desk().counted.drops(Cause::QueueFull) + queue.desk().counted.drops(Cause::CoDel);
                prop_assert_eq!(came as u64, queue.len() as u64 + sent + dropped);
                prop_assert!(queue.len() <= limit);
                queue.scheduler.check();
            }
        }
    }
}
