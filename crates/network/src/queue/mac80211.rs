//! The access point's queues as Linux's mac80211 has them: per station, fair in airtime, above a short device queue.
//!
//! ```text
//!   station 1: flows under CoDel --\
//!   station 2: flows under CoDel ----- deficit round robin in airtime -- limit --> [ device queue ] --> transmitter
//!   broadcasts: flows under CoDel -/
//! ```
//!
//! 1. A packet joins its station's queues, one per flow, as in `flow_queues`. Above the limit, half of the largest
//!    queue of all is dropped from its head.
//! 2. The device pulls packets whenever one arrives or departs: from one station after another, as far as its limit
//!    permits.
//! 3. **Airtime fairness.** A station has a deficit. All transmissions to it and from it are deducted. It has its turn
//!    if the deficit, less its expected air time in the device queue, is not negative. Otherwise it gets 256 us and
//!    goes to the end of the list. A station with new packets goes to the head. Without fairness, stations take turns.
//! 4. **The device's limit** is one of two:
//!    - *Airtime* (AQL; ath10k, mt76): a station may have 5 ms of expected air time in the device queue; 12 ms while all
//!      have less than 24 ms together. A packet's expected air time is that of its frame at the station's last rate,
//!      plus a part of the preamble: aggregates of 2 to 32 frames are assumed, the faster the longer. A station refills
//!      its part at once, so stations get equal airtime downwards even without fairness, and what they send does not
//!      count.
//!    - *Aggregates* (ath9k): two, each to one station, of at most 32 packets and 4 ms. Fairness decides whose.
//! 5. The transmitter takes the device queue's oldest packet and all to the same station.
//!
//! A station's rate is taken as 6 Mb/s until the first transmission to it.
//!
//! Models Linux 6.18. Leaves out: the limit of 16 MiB, the pool of 4096 flows that all
//! stations share (each has 1024 here), the assumed aggregate of 64 frames of 802.11ax, weights other than 256 us.
//! Each access category has queues and limits of its own; in Linux all share the limit in packets and the 24 ms.
//!
//! References: Linux 6.18, net/mac80211/tx.c (`ieee80211_next_txq`, `ieee80211_txq_airtime_check`), airtime.c
//! (`ieee80211_rate_expected_tx_airtime`), include/net/fq_impl.h and cfg80211.h, ath9k/xmit.c, read for the facts, not
//! copied; T. Høiland-Jørgensen et al.: Ending the anomaly: achieving low latency and airtime fairness in WiFi, USENIX
//! ATC 2017.

use super::flow_queues::FlowQueues;
use super::{Desk, Fifo, FqCodelConfig, Load, Queue, Setup};
use crate::config::ConfigError;
use crate::packet::{Destination, NodeId, Packet};
use crate::statistics::Cause;
use lasthop_units::{Bytes, Rate, Span, Time};
use rand::Rng;
use std::collections::VecDeque;

/// Airtime added to a station's deficit in each round; the default weight.
const WEIGHT: i64 = 256_000;
/// A station's expected air time in the device queue: at most this much,
const LIMIT_LOW: Span = Span::from_millis(5);
/// or this much while the device queue as a whole has less than [`THRESHOLD`].
const LIMIT_HIGH: Span = Span::from_millis(12);
const THRESHOLD: Span = Span::from_millis(24);
/// The same for broadcasts.
const LIMIT_BROADCAST: Span = Span::from_millis(50);
/// The most aggregates in the device queue,
const AGGREGATES: usize = 2;
/// and of each the most packets and expected air time.
const AGGREGATE_PACKETS: usize = 32;
const AGGREGATE_AIRTIME: Span = Span::from_millis(4);
/// Added to a packet's length for its expected air time: MAC header, LLC and FCS.
const OVERHEAD: Bytes = Bytes::new(38);
/// The least expected air time of a packet.
const LEAST: Span = Span::from_micros(4);

/// mac80211's queues. The defaults are those of Linux 6.18.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Mac80211Config {
    /// The queues of one station. Default: CoDel's target 20 ms and interval 100 ms, quantum 300 bytes, 1024 flows, at
    /// most 32 packets dropped at once.
    pub flows: FqCodelConfig,
    /// Whether stations get equal airtime; else they take turns. Default true.
    pub airtime_fairness: bool,
    /// What limits the device queue. Default: airtime.
    pub device: DeviceLimit,
}

/// What limits the queue between mac80211 and the transmitter.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DeviceLimit {
    /// The airtime queue limit (AQL) of Linux.
    Airtime,
    /// Two aggregates, as in ath9k.
    Aggregates,
}

impl Mac80211Config {
    /// Those of Linux 6.18.
    pub const DEFAULT: Self = Self {
        flows: FqCodelConfig {
            target: Span::from_millis(20),
            interval: Span::from_millis(100),
            quantum: Bytes::new(300),
            flows: 1024,
            drop_batch: 32,
            ce_threshold: None,
        },
        airtime_fairness: true,
        device: DeviceLimit::Airtime,
    };

    /// Whether they are possible.
    pub(super) fn validate(self) -> Result<(), ConfigError<&'static str>> {
        self.flows.validate()
    }
}

impl Default for Mac80211Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Mac80211<P> {
    config: Mac80211Config,
    /// The salts of the hashes: the broadcasts' is its first draw, that of the station with number N draw N + 2.
    salts: rand_chacha::ChaCha8Rng,
    /// By station: its number, if that is not its place.
    numbers: Vec<u16>,
    broadcasts: Station<P>,
    /// By station, as far as known.
    stations: Vec<Station<P>>,
    /// Stations with packets, in order of their turns; [`BROADCASTS`] among them.
    turns: VecDeque<usize>,
    /// Packets above the device queue.
    above: usize,
    device: Fifo<P>,
    /// Expected air time in the device queue.
    pending: Span,
    /// The aggregates in the device queue: the station and the number of packets that remain of it.
    aggregates: Vec<(usize, usize)>,
    /// Stations that get no turn.
    held: Vec<usize>,
    desk: Desk<P>,
}

#[derive(Clone, Debug)]
struct Station<P> {
    queues: FlowQueues<P>,
    is_listed: bool,
    /// Airtime, ns.
    deficit: i64,
    /// Expected air time in the device queue: of each packet, oldest first, and in all.
    expected: VecDeque<Span>,
    pending: Span,
    rate: Rate,
    preamble: Span,
}

/// The broadcasts' index in the turns.
const BROADCASTS: usize = usize::MAX;

impl<P> Queue<P> for Mac80211<P> {
    fn desk(&self) -> &Desk<P> {
        &self.desk
    }

    fn desk_mut(&mut self) -> &mut Desk<P> {
        &mut self.desk
    }

    fn len(&self) -> usize {
        self.above + self.device.len()
    }

    fn waiting(&self) -> usize {
        self.above + self.device.waiting()
    }

    fn room(&self) -> usize {
        self.desk.limit.saturating_sub(self.above)
    }

    fn is_ready(&self) -> bool {
        self.device.waiting() > 0
    }

    /// Above the limit the largest queue is cut. The packet goes back if it is among the dropped.
    fn push(&mut self, now: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        let index = index_of(&packet);
        let filter = self.desk.filter;
        let station = self.station(index);
        let needless = filter.and_then(|filter| station.queues.thin(&packet, &filter));
        let flow = station.queues.push(now, packet);
        if !std::mem::replace(&mut station.is_listed, true) {
            self.list(index);
        }
        self.above += 1;
        if let Some(ack) = needless {
            self.above -= 1;
            self.desk.drop(now, Cause::NewerAck, &ack);
        }
        let taken = if self.above > self.desk.limit { self.drop_from_the_fattest(now, index, flow) } else { Ok(()) };
        self.pull(now);
        self.desk.counted.change(now, self.len());
        taken
    }

    /// The place is that in the device queue.
    fn head(&mut self, now: Time) -> (u64, &Packet<P>) {
        self.device.head(now)
    }

    fn pop(&mut self, now: Time) -> Packet<P> {
        let packet = self.device.pop(now);
        let index = index_of(&packet);
        self.forget(now, index, 1);
        packet
    }

    fn claim(&mut self, now: Time, to: Option<Destination>, load: &mut impl Load<P>) {
        self.device.claim(now, to, load);
    }

    fn claimed(&self, place: u64) -> Option<&Packet<P>> {
        self.device.claimed(place)
    }

    fn take(&mut self, place: u64) -> Packet<P> {
        self.device.take(place)
    }

    fn release(&mut self, now: Time, station: NodeId, packets: usize) {
        self.device.release(now, station, packets);
        self.forget(now, station.index(), packets);
    }

    fn remove_to(&mut self, now: Time, to: Destination) -> Vec<Packet<P>> {
        let Destination::Node(station) = to else { return Vec::new() };
        let station = station.index();
        let mut removed = self.station(station).queues.remove_to(to);
        self.above -= removed.len();
        let in_device = self.device.remove_to(now, to);
        self.forget(now, station, in_device.len());
        removed.extend(in_device);
        removed
    }

    fn number_stations(&mut self, numbers: &[u16]) {
        self.numbers = numbers.to_vec();
    }

    fn on_airtime(&mut self, station: usize, air: Span) {
        self.station(station).deficit -= nanos(air);
    }

    fn on_rate(&mut self, station: usize, rate: Rate, preamble: Span) {
        let station = self.station(station);
        (station.rate, station.preamble) = (rate, preamble);
    }

    /// A station that is held gets no turn.
    fn hold(&mut self, now: Time, station: usize, held: bool) {
        self.held.retain(|other| *other != station);
        if held {
            self.held.push(station);
        }
        self.pull(now);
        self.desk.counted.change(now, self.len());
    }
}

impl<P> Mac80211<P> {
    /// Empty queues.
    pub(super) fn new(config: Mac80211Config, setup: Setup<'_>) -> Self {
        let mut salts = setup.streams.stream(setup.name);
        Self {
            config,
            broadcasts: Station::new(config, salts.next_u64()),
            salts,
            numbers: Vec::new(),
            stations: Vec::new(),
            turns: VecDeque::new(),
            above: 0,
            device: Fifo::with_limit(usize::MAX),
            pending: Span::ZERO,
            aggregates: Vec::new(),
            held: Vec::new(),
            desk: Desk::new(setup.limit),
        }
    }

    fn at(&self, index: usize) -> &Station<P> {
        if index == BROADCASTS { &self.broadcasts } else { &self.stations[index] }
    }

    fn station(&mut self, index: usize) -> &mut Station<P> {
        if index == BROADCASTS {
            return &mut self.broadcasts;
        }
        while self.stations.len() <= index {
            let place = self.stations.len();
            let number = self.numbers.get(place).map_or(place as u128, |&number| number.into());
            // A draw takes two of the stream's 32-bit words.
            self.salts.set_word_pos(2 * (number + 1));
            self.stations.push(Station::new(self.config, self.salts.next_u64()));
        }
        &mut self.stations[index]
    }

    /// This many of the station's oldest packets have left the device queue.
    fn forget(&mut self, now: Time, index: usize, packets: usize) {
        let station = self.station(index);
        let gone: Span = station.expected.drain(..packets).sum();
        station.pending -= gone;
        self.pending -= gone;
        for _ in 0..packets {
            if let Some(place) = self.aggregates.iter().position(|&(of, _)| of == index) {
                self.aggregates[place].1 -= 1;
                self.aggregates.retain(|&(_, remaining)| remaining > 0);
            }
        }
        self.pull(now);
        self.desk.counted.change(now, self.len());
    }

    /// Fills the device queue.
    fn pull(&mut self, now: Time) {
        while let Some(index) = self.next_turn() {
            let (mut packets, before) = (0, self.pending);
            while self.may_add(index, packets, self.pending - before) {
                let station = if index == BROADCASTS { &mut self.broadcasts } else { &mut self.stations[index] };
                let waiting = station.queues.waiting();
                let next = station.queues.dequeue(now, &mut self.desk);
                self.above -= waiting - station.queues.waiting();
                let Some(packet) = next else { break };
                let expected = station.expected_airtime(packet.size);
                station.expected.push_back(expected);
                station.pending += expected;
                self.pending += expected;
                packets += 1;
                assert!(self.device.push(now, packet).is_ok(), "the device queue has no limit in packets");
            }
            if self.config.device == DeviceLimit::Aggregates && packets > 0 {
                self.aggregates.push((index, packets));
            }
            let station = self.station(index);
            station.is_listed = station.queues.waiting() > 0;
            if station.is_listed {
                self.list(index);
            }
        }
    }

    /// Gives the station a place in the turns: with fairness the first, for its deficit decides.
    fn list(&mut self, index: usize) {
        if self.config.airtime_fairness {
            self.turns.push_front(index);
        } else {
            self.turns.push_back(index);
        }
    }

    /// The next station in turn leaves the list; `None` if none may begin.
    fn next_turn(&mut self) -> Option<usize> {
        self.skip_rounds()?;
        loop {
            let index = self.turns.pop_front()?;
            let may_begin = self.may_begin(index);
            let fair = self.config.airtime_fairness && index != BROADCASTS;
            let station = self.station(index);
            let is_in_debt = fair && station.credit() < 0;
            if is_in_debt {
                station.deficit += WEIGHT;
            }
            if may_begin && !is_in_debt {
                return Some(index);
            }
            self.turns.push_back(index);
        }
    }

    /// Does all but the last of the rounds until a station has its turn. `None` if none may begin.
    fn skip_rounds(&mut self) -> Option<()> {
        let rounds = |station: &Station<P>| (-station.credit()).max(0).unsigned_abs().div_ceil(WEIGHT.unsigned_abs());
        let fair = self.config.airtime_fairness;
        let missing = |&index: &usize| if fair && index != BROADCASTS { rounds(self.at(index)) } else { 0 };
        let needed = self.turns.iter().filter(|&&index| self.may_begin(index)).map(missing).min()?;
        if needed > 1 {
            for place in 0..self.turns.len() {
                let index = self.turns[place];
                let station = self.station(index);
                let added = (needed - 1).min(rounds(station));
                station.deficit += WEIGHT * i64::try_from(added).expect("a deficit is far below 2^63 ns");
            }
        }
        Some(())
    }

    /// Whether the station may add a packet in this turn, after this many with this expected air time.
    fn may_add(&self, index: usize, packets: usize, airtime: Span) -> bool {
        match self.config.device {
            DeviceLimit::Airtime => self.may_begin(index),
            DeviceLimit::Aggregates => packets == 0 || (packets < AGGREGATE_PACKETS && airtime < AGGREGATE_AIRTIME),
        }
    }

    /// Whether the device's limit gives the station a turn.
    fn may_begin(&self, index: usize) -> bool {
        if self.held.contains(&index) {
            return false;
        }
        if self.config.device == DeviceLimit::Aggregates {
            let others = self.aggregates.iter().filter(|(of, _)| !self.held.contains(of));
            return others.count() < AGGREGATES;
        }
        let pending = self.at(index).pending;
        match index {
            BROADCASTS => pending < LIMIT_BROADCAST,
            _ => pending < LIMIT_LOW || (self.pending < THRESHOLD && pending < LIMIT_HIGH),
        }
    }

    /// Drops from the largest queue. Refuses the packet that has just joined this flow of the station, if it is among them.
    fn drop_from_the_fattest(&mut self, now: Time, joined: usize, flow: usize) -> Result<(), Packet<P>> {
        let fattest = |&index: &usize| self.at(index).queues.fattest().map(|(bytes, flow)| (bytes, index, flow));
        let (_, index, fattest) = self.turns.iter().filter_map(fattest).max().expect("a packet has just joined");
        let joined = if index == joined { flow } else { usize::MAX };
        let queues = if index == BROADCASTS { &mut self.broadcasts.queues } else { &mut self.stations[index].queues };
        let before = queues.waiting();
        let refused = queues.drop_half(fattest, joined, |packet| self.desk.drop(now, Cause::QueueFull, packet));
        self.above -= before - queues.waiting();
        refused.map_or(Ok(()), |packet| self.desk.refuse(now, packet))
    }
}

impl<P> Station<P> {
    fn new(config: Mac80211Config, salt: u64) -> Self {
        Self {
            queues: config.flows.queues(salt),
            is_listed: false,
            deficit: WEIGHT,
            expected: VecDeque::new(),
            pending: Span::ZERO,
            rate: Rate::from_mbps(6.0),
            preamble: Span::from_micros(20),
        }
    }

    fn credit(&self) -> i64 {
        self.deficit - nanos(self.pending)
    }

    fn expected_airtime(&self, size: Bytes) -> Span {
        let frames = match self.rate.transmission_time(Bytes::new(1024)).as_nanos() {
            400_001.. => 2,
            250_001.. => 4,
            150_001.. => 8,
            70_001.. => 16,
            _ => 32,
        };
        (self.rate.transmission_time(size + OVERHEAD) + self.preamble / frames).max(LEAST)
    }
}

fn index_of<P>(packet: &Packet<P>) -> usize {
    match packet.to {
        Destination::Node(node) => node.index(),
        Destination::Broadcast => BROADCASTS,
    }
}

fn nanos(span: Span) -> i64 {
    i64::try_from(span.as_nanos()).expect("air time is far below 2^63 ns")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Streams;
    use lasthop_units::Ecn;
    use proptest::prelude::*;

    /// Claims one packet.
    struct One(Option<u64>);

    impl<P> Load<P> for One {
        fn fits(&self, _: Bytes) -> bool {
            self.0.is_none()
        }

        fn add(&mut self, place: u64, _: &Packet<P>) -> bool {
            self.0 = Some(place);
            false
        }
    }

    fn packet(station: u16, flow: u32, id: u64) -> Packet<()> {
        Packet {
            from: NodeId(99),
            to: Destination::Node(NodeId(station)),
            size: Bytes::new(1500),
            flow,
            dscp: 0,
            ecn: Ecn::NotEct,
            id,
            payload: (),
        }
    }

    fn queues(limit: usize) -> Mac80211<()> {
        Mac80211::new(Mac80211Config::default(), Setup { limit, streams: Streams::new(1), name: "queue" })
    }

    /// Sends the next packet, which takes this air time, and returns its station and its number.
    fn send(queues: &mut Mac80211<()>, now: Time, air: impl Fn(usize) -> Span) -> (usize, u64) {
        let Destination::Node(to) = queues.head(now).1.to else { panic!("no broadcasts here") };
        let mut load = One(None);
        queues.claim(now, Some(Destination::Node(to)), &mut load);
        let packet = queues.take(load.0.unwrap());
        queues.on_airtime(to.index(), air(to.index()));
        queues.release(now, to, 1);
        (to.index(), packet.id)
    }

    #[test]
    fn the_device_queue_is_limited_in_airtime() {
        // 1538 B at 65 Mb/s: 189.3 us, and a part of the preamble (40 us) for aggregates of 8, as 1024 B take 126 us:
        // 16. So 191.8 us each, and 12 ms are passed by the 63rd; three stations stop at 24 ms, or 5 ms each.
        let expected = Span::from_nanos(189_293 + 40_000 / 16);
        for (stations, packets) in [(1, 63), (2, 126), (3, 63 + 63 + 27)] {
            let mut queues = queues(10_000);
            for station in 0..stations {
                queues.on_rate(station, Rate::from_mbps(65.0), Span::from_micros(40));
                for id in 0..200 {
                    queues.push(Time::ZERO, packet(station as u16, 0, id)).unwrap();
                }
            }
            assert_eq!(queues.stations[0].expected[0], expected);
            assert_eq!(queues.device.len(), packets, "{stations} stations");
        }
    }

    /// Packets sent to two stations with a backlog that CoDel never sees as standing. A packet to each takes so long,
    /// and each packet from the first station, one per packet to it, so long.
    fn sent(device: DeviceLimit, airtime_fairness: bool, down: [u64; 2], up: u64) -> [f64; 2] {
        let config = Mac80211Config { device, airtime_fairness, ..Mac80211Config::default() };
        let mut queues = Mac80211::new(config, Setup { limit: 10_000, streams: Streams::new(1), name: "queue" });
        let (mut now, mut sent) = (Time::ZERO, [0.0; 2]);
        for id in 0..20_000 {
            for (station, micros) in down.into_iter().enumerate() {
                queues.on_rate(station, Rate::from_mbps(13_000.0 / micros as f64), Span::ZERO);
                while queues.station(station).queues.waiting() < 5 {
                    queues.push(now, packet(station as u16, 0, id)).unwrap();
                }
            }
            let (station, _) = send(&mut queues, now, |station| Span::from_micros(down[station]));
            sent[station] += 1.0;
            now += Span::from_micros(down[station]);
            if station == 0 {
                queues.on_airtime(0, Span::from_micros(up));
                now += Span::from_micros(up);
            }
        }
        sent
    }

    #[test]
    fn stations_get_the_same_airtime_both_ways_together() {
        use DeviceLimit::{Aggregates, Airtime};
        let ratio = |device, fair, down, up| {
            let [one, other] = sent(device, fair, down, up);
            one / other
        };
        // At ten times the rate ten times the packets. Taking turns gives each its backlog of 5 or, of 2 ms, 3 packets.
        // The airtime limit alone nearly equalises air time: 63 packets against 6.
        for (device, fair, from, to) in [
            (Aggregates, true, 9.9, 10.1),
            (Aggregates, false, 1.6, 1.7),
            (Airtime, true, 8.0, 11.0),
            (Airtime, false, 8.0, 11.0),
        ] {
            let ratio = ratio(device, fair, [200, 2000], 0);
            assert!((from..to).contains(&ratio), "{device:?}, fair: {fair}: {ratio}");
        }
        // With twice as much air time up as down, a third of the packets of a station that only receives.
        for (device, fair, expected) in [(Aggregates, true, 1.0 / 3.0), (Aggregates, false, 1.0), (Airtime, true, 1.0)]
        {
            let ratio = ratio(device, fair, [200, 200], 400);
            assert!((ratio - expected).abs() < 0.02, "{device:?}, fair: {fair}: {ratio}");
        }
    }

    #[test]
    fn above_the_limit_the_largest_queue_of_all_is_cut() {
        let mut queues = queues(100);
        let held = 13;
        for id in 0..120 {
            queues.push(Time::ZERO, packet(0, 7, id)).unwrap();
        }
        for id in 0..held {
            queues.push(Time::ZERO, packet(1, 8, id)).unwrap();
        }
        assert!(queues.above <= 100 && queues.desk().counted.drops(Cause::QueueFull) > 0);
        // The station with few packets has lost none.
        let mut arrived = Vec::new();
        while queues.len() > 0 {
            let (station, id) = send(&mut queues, Time::ZERO, |_| Span::ZERO);
            arrived.extend((station == 1).then_some(id));
        }
        assert_eq!(arrived, (0..held).collect::<Vec<_>>());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn packets_are_conserved_and_there_is_always_one_to_send(
            steps in prop::collection::vec((0..4_u16, 0..3_u32, any::<bool>(), 0..5_000_u64), 1..400),
            limit in 1..60_usize,
        ) {
            let mut queues = queues(limit);
            let (mut now, mut offered, mut sent) = (Time::ZERO, 0, 0);
            for (station, flow, is_push, micros) in steps {
                now += Span::from_micros(micros);
                if is_push {
                    let _refused = queues.push(now, packet(station, flow, offered));
                    offered += 1;
                } else if queues.len() > 0 {
                    prop_assert!(queues.is_ready());
                    send(&mut queues, now, |_| Span::from_micros(micros));
                    sent += 1;
                }
                let dropped = queues.desk().counted.drops(Cause::QueueFull) + queues.desk().counted.drops(Cause::CoDel);
                prop_assert_eq!(offered, sent + dropped + queues.len() as u64);
                prop_assert!(queues.above <= limit);
                let pending: Span = queues.stations.iter().map(|station| station.pending).sum();
                prop_assert_eq!(pending, queues.pending);
            }
        }
    }
}
