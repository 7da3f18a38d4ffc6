//! CAKE: a queue for each flow under COBALT, with turns that are fair between hosts first and their flows then.
//!
//! ```text
//!                     empty, COBALT at rest
//!   [none] <------------------------------------+----------------+
//!     |  packet: new, with a quantum            |                |
//!     v                                         |                |
//!   [sparse] -- no credits --> [bulk] ------ empty --> [decaying] -- packet --> [sparse]
//!      |                          ^
//!      +-- no credits and empty --> [waiting] -- packet --> [bulk]
//! ```
//!
//! 1. Turns go by deficit round robin: one look at the decaying flows, then the sparse ones, then the others. A turn is a quantum,
//!    divided by the number of bulk flows of the flow's source or destination, whichever has more (triple isolation), rounded at random.
//! 2. COBALT looks at each packet that leaves; the last one of a flow is never dropped. It is CoDel, which marks what can be
//!    marked, and counts back at the same pace once the delay is below TARGET; and BLUE: a probability that rises by 1/256 where the queues
//!    overflow, and falls by 1/4096 where a flow is empty, each at most once in TARGET.
//! 3. Above the limit the flow with most bytes loses its head, until there is room.
//!
//! A link's rate at the start is CAKE's `bandwidth`; no change of the rate moves it, as in Linux. TARGET is at least 1.5 full frames at
//! that rate, INTERVAL longer by as much, and a sojourn of four full frames is never too long. The ACK filter is the key of its own.
//!
//! *Leaves out*: tins (`besteffort`), the hash (no two flows share a queue), overhead,
//! `ingress`, `wash`, NAT, a shaper below the link's rate. COBALT's square root is exact, as Linux's is up to 15 drops.
//!
//! References: T. Høiland-Jørgensen, D. Täht, J. Morton: Piece of CAKE: a comprehensive queue management solution for home
//! gateways, LANMAN 2018; Linux 6.12, net/sched/sch_cake.c.

use super::ack_filter::Filter;
use super::packet_queue::{MAX_FRAME_BYTES, PacketQueue, frame_bytes};
use super::{Desk, Scheduler, Served, Setup};
use crate::config::{ConfigError, check};
use crate::packet::{Destination, NodeId, Packet};
use crate::statistics::Cause;
use lasthop_units::{Bytes, Rate, Span, Time};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, VecDeque};

/// `target` and `interval` at `rtt 100ms`.
const TARGET: Span = Span::from_millis(5);
const INTERVAL: Span = Span::from_millis(100);
/// `p_inc` and `p_dec`, of 2^32.
const BLUE_UP: f64 = 1.0 / 256.0;
const BLUE_DOWN: f64 = 1.0 / 4096.0;
/// `flow_quantum`: an Ethernet frame, or what the rate sends in 1/4096 s, at least 300 bytes.
const LEAST_QUANTUM: u64 = 300;

/// CAKE's parameters.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct CakeConfig {
    /// The rate of the link; `None` = not known (`unlimited`).
    pub bandwidth: Option<Rate>,
}

impl CakeConfig {
    /// `unlimited`.
    pub const DEFAULT: Self = Self { bandwidth: None };

    /// Whether they are possible.
    pub(super) fn validate(self) -> Result<(), ConfigError<&'static str>> {
        let is_possible = self.bandwidth.is_none_or(|rate| rate.as_bps() > 0);
        check(is_possible, "bandwidth", || ("0 Mb/s".into(), "more than 0 Mb/s".into()))
    }
}

pub(crate) type Cake<P> = Served<P, Flows<P>>;

impl<P> Cake<P> {
    pub(super) fn new(config: CakeConfig, setup: Setup<'_>) -> Self {
        Self::of(Flows::new(config, setup.streams.stream(setup.name)), setup)
    }
}

/// A flow in one direction.
type Key = (u32, NodeId, Destination);

/// Where a flow is: `set`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Set {
    Sparse,
    /// Empty, and in the turns of the bulk flows until its debt is paid.
    Waiting,
    Bulk,
    Decaying,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    queue: PacketQueue<P>,
    credits: i64,
    set: Set,
    cobalt: Cobalt,
}

#[derive(Clone, Debug)]
pub(crate) struct Flows<P> {
    setpoint: Setpoint,
    quantum: u64,
    flows: BTreeMap<Key, Flow<P>>,
    new: VecDeque<Key>,
    old: VecDeque<Key>,
    decaying: VecDeque<Key>,
    /// Bulk flows by source and by destination.
    of_source: BTreeMap<NodeId, u64>,
    of_destination: BTreeMap<Destination, u64>,
    waiting: usize,
    stream: ChaCha8Rng,
}

impl<P> Flows<P> {
    fn new(config: CakeConfig, stream: ChaCha8Rng) -> Self {
        let quantum = config.bandwidth.map_or(MAX_FRAME_BYTES, |rate| (rate.as_bps() / 8) >> 12);
        Self {
            setpoint: Setpoint::new(config),
            quantum: quantum.clamp(LEAST_QUANTUM, MAX_FRAME_BYTES),
            flows: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            decaying: VecDeque::new(),
            of_source: BTreeMap::new(),
            of_destination: BTreeMap::new(),
            waiting: 0,
            stream,
        }
    }

    /// `cake_get_flow_quantum`.
    fn quantum_of(&mut self, key: Key) -> i64 {
        let of_source = self.of_source.get(&key.1).copied().unwrap_or(0);
        let of_destination = self.of_destination.get(&key.2).copied().unwrap_or(0);
        let load = of_source.max(of_destination).max(1);
        let quantum = (self.quantum * (65_535 / load) + u64::from(self.stream.random::<u16>())) >> 16;
        quantum.max(1) as i64
    }

    /// Puts a flow into a set, and counts the bulk flows of its ends.
    fn put(&mut self, key: Key, set: Option<Set>) {
        let before = self.flows.get(&key).map(|flow| flow.set);
        let is_bulk = |set: Option<Set>| set == Some(Set::Bulk);
        match (is_bulk(before), is_bulk(set)) {
            (false, true) => {
                *self.of_source.entry(key.1).or_default() += 1;
                *self.of_destination.entry(key.2).or_default() += 1;
            }
            (true, false) => {
                self.of_source.entry(key.1).and_modify(|count| *count -= 1);
                self.of_destination.entry(key.2).and_modify(|count| *count -= 1);
            }
            _ => {}
        }
        match set {
            Some(set) => self.flows.get_mut(&key).expect(IN_A_LIST).set = set,
            None => drop(self.flows.remove(&key)),
        }
    }

    /// The flow whose turn it is, with credits: at the head of a list.
    fn turn(&mut self, mut looks_at_decaying: bool) -> Option<Key> {
        loop {
            let first = self.decaying.front().filter(|_| looks_at_decaying);
            looks_at_decaying = false;
            let last = || self.decaying.front();
            let key = *first.or_else(|| self.new.front()).or_else(|| self.old.front()).or_else(last)?;
            let flow = &self.flows[&key];
            if flow.credits > 0 {
                return Some(key);
            }
            if flow.set == Set::Sparse {
                let set = if flow.queue.is_empty() { Set::Waiting } else { Set::Bulk };
                self.put(key, Some(set));
            }
            let quantum = self.quantum_of(key);
            self.flows.get_mut(&key).expect(IN_A_LIST).credits += quantum;
            self.unlist(key);
            self.old.push_back(key);
        }
    }

    /// It is at the head of a list.
    fn unlist(&mut self, key: Key) {
        let lists = [&mut self.new, &mut self.old, &mut self.decaying];
        let list = lists.into_iter().find(|list| list.front() == Some(&key)).expect(IN_A_LIST);
        list.pop_front();
    }

    /// `cake_dequeue`.
    fn dequeue(&mut self, now: Time, desk: &mut Desk<P>) -> Option<Packet<P>> {
        let mut is_first = true;
        while self.waiting > 0 || is_first {
            let key = self.turn(std::mem::take(&mut is_first))?;
            if let Some(packet) = self.dequeue_from(key, now, desk) {
                return Some(packet);
            }
            self.unlist(key);
            let flow = self.flows.get_mut(&key).expect(IN_A_LIST);
            flow.cobalt.on_empty(now, self.setpoint);
            if flow.cobalt.is_at_rest(now) {
                self.put(key, None);
            } else {
                self.decaying.push_back(key);
                self.put(key, Some(Set::Decaying));
            }
        }
        None
    }

    /// This flow's next packet after COBALT's drops; `None` only if it has none.
    fn dequeue_from(&mut self, key: Key, now: Time, desk: &mut Desk<P>) -> Option<Packet<P>> {
        let flow = self.flows.get_mut(&key).expect(IN_A_LIST);
        loop {
            let (arrival, mut packet) = flow.queue.pop()?;
            self.waiting -= 1;
            let mark = || desk.mark(&mut packet);
            let drops = flow.cobalt.should_drop(now, now - arrival, self.setpoint, &mut self.stream, mark);
            if !drops || flow.queue.is_empty() {
                flow.credits -= frame_bytes(&packet) as i64;
                return Some(packet);
            }
            desk.drop(now, Cause::CoDel, &packet);
        }
    }
}

const IN_A_LIST: &str = "a flow in a list has its queue";

impl<P> Scheduler<P> for Flows<P> {
    fn inside(&self) -> usize {
        self.waiting
    }

    fn accept(&mut self, now: Time, packet: Packet<P>, has_room: bool, desk: &mut Desk<P>) -> Result<(), Packet<P>> {
        let key = (packet.flow, packet.from, packet.to);
        match self.flows.get(&key).map(|flow| flow.set) {
            None | Some(Set::Decaying) => {
                self.decaying.retain(|other| *other != key);
                let credits = self.quantum_of(key);
                let fresh = || Flow { queue: PacketQueue::new(), credits, set: Set::Sparse, cobalt: Cobalt::default() };
                self.flows.entry(key).or_insert_with(fresh).credits = credits;
                self.put(key, Some(Set::Sparse));
                self.new.push_back(key);
            }
            Some(Set::Waiting) => self.put(key, Some(Set::Bulk)),
            Some(Set::Sparse | Set::Bulk) => {}
        }
        self.flows.get_mut(&key).expect(IN_A_LIST).queue.push(now, packet);
        self.waiting += 1;
        if has_room {
            return Ok(());
        }
        let fattest = self.flows.iter().max_by_key(|(_, flow)| flow.queue.bytes()).map(|(key, _)| *key);
        let fattest = fattest.expect("a packet has just joined");
        let flow = self.flows.get_mut(&fattest).expect(IN_A_LIST);
        flow.cobalt.on_full(now, self.setpoint);
        let (_, dropped) = flow.queue.pop().expect("the fattest flow has a packet");
        let is_new = fattest == key && flow.queue.is_empty();
        self.waiting -= 1;
        if is_new {
            return desk.refuse(now, dropped);
        }
        desk.drop(now, Cause::QueueFull, &dropped);
        Ok(())
    }

    fn next(
        &mut self,
        now: Time,
        to: Option<Destination>,
        fits: &dyn Fn(Bytes) -> bool,
        desk: &mut Desk<P>,
    ) -> Option<Packet<P>> {
        let Some(to) = to else { return self.dequeue(now, desk) };
        let has_one = |key: &&Key| key.2 == to && !self.flows[*key].queue.is_empty();
        let key = *self.new.iter().chain(&self.old).find(has_one)?;
        let is_small_enough = self.flows[&key].queue.first().is_some_and(|packet| fits(packet.size));
        if is_small_enough { self.dequeue_from(key, now, desk) } else { None }
    }

    fn thin(&mut self, new: &Packet<P>, filter: &Filter<P>) -> Option<Packet<P>> {
        let thinned = self.flows.get_mut(&(new.flow, new.from, new.to))?.queue.thin(new, filter)?;
        self.waiting -= 1;
        Some(thinned)
    }
}

/// `cobalt_params`.
#[derive(Clone, Copy, Debug)]
struct Setpoint {
    target: Span,
    interval: Span,
    /// A full frame at the link's rate.
    frame: Span,
}

impl Setpoint {
    /// `cake_set_rate`.
    fn new(config: CakeConfig) -> Self {
        let frame = config.bandwidth.map_or(Span::ZERO, |rate| rate.transmission_time(Bytes::new(MAX_FRAME_BYTES)));
        let target = TARGET.max(frame * 3 / 2);
        Self { target, interval: (INTERVAL + target - TARGET).max(target * 2), frame }
    }
}

/// `cobalt_vars`.
#[derive(Clone, Copy, Default, Debug)]
struct Cobalt {
    count: u32,
    dropping: bool,
    drop_next: Time,
    blue: f64,
    blue_changed: Time,
}

impl Cobalt {
    /// `cobalt_should_drop`: of a packet that has waited so long; `mark` marks it, if that is possible.
    fn should_drop(
        &mut self,
        now: Time,
        sojourn: Span,
        setpoint: Setpoint,
        stream: &mut ChaCha8Rng,
        mark: impl FnOnce() -> bool,
    ) -> bool {
        let is_over = sojourn > setpoint.target && sojourn > setpoint.frame * 4;
        let mut is_due = self.count > 0 && now >= self.drop_next;
        let mut is_past = now > self.drop_next;
        if is_over && !self.dropping {
            self.dropping = true;
            self.drop_next = control_law(now, setpoint.interval, self.count.max(1));
        }
        self.dropping = is_over;
        if is_over && self.count == 0 {
            self.count = 1;
        }
        let mut drops = false;
        if is_due && self.dropping {
            drops = !mark();
            self.count = self.count.saturating_add(1);
            self.drop_next = control_law(self.drop_next, setpoint.interval, self.count);
            is_past = now > self.drop_next;
        } else {
            while is_due {
                self.count -= 1;
                self.drop_next = control_law(self.drop_next, setpoint.interval, self.count.max(1));
                is_due = self.count > 0 && now >= self.drop_next;
                is_past = now > self.drop_next;
            }
        }
        drops |= self.blue > 0.0 && stream.random::<f64>() < self.blue;
        if self.count == 0 {
            self.drop_next = now + setpoint.interval;
        } else if is_past && !drops {
            self.drop_next = now;
        }
        drops
    }

    /// `cobalt_queue_full`.
    fn on_full(&mut self, now: Time, setpoint: Setpoint) {
        if now.saturating_since(self.blue_changed) > setpoint.target {
            self.blue = (self.blue + BLUE_UP).min(1.0);
            self.blue_changed = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// `cobalt_queue_empty`.
    fn on_empty(&mut self, now: Time, setpoint: Setpoint) {
        if self.blue > 0.0 && now.saturating_since(self.blue_changed) > setpoint.target {
            self.blue = (self.blue - BLUE_DOWN).max(0.0);
            self.blue_changed = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.drop_next = control_law(self.drop_next, setpoint.interval, self.count.max(1));
        }
    }

    fn is_at_rest(&self, now: Time) -> bool {
        self.blue == 0.0 && self.count == 0 && now >= self.drop_next
    }
}

/// t + INTERVAL / sqrt(count) (RFC 8289 §5.6), rounded down to the nanosecond:
/// floor(I / sqrt(c)) = isqrt(floor(I^2 / c)).
fn control_law(t: Time, interval: Span, count: u32) -> Time {
    let interval = u128::from(interval.as_nanos());
    let root = (interval * interval / u128::from(count)).isqrt();
    t + Span::from_nanos(u64::try_from(root).expect("the quotient is at most the interval"))
}

#[cfg(test)]
mod tests {
    use super::super::Queue as _;
    use super::*;
    use crate::random::Streams;

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn drops(cobalt: &mut Cobalt, from: u64, until: u64, sojourn: Span) -> Vec<u64> {
        let mut stream = Streams::new(1).stream("queue");
        let setpoint = Setpoint::new(CakeConfig::DEFAULT);
        (from..until)
            .filter(|&millis| cobalt.should_drop(ms(millis), sojourn, setpoint, &mut stream, || false))
            .collect()
    }

    #[test]
    fn the_control_law_divides_by_the_square_root() {
        // 10^8 ns / sqrt(2) = 70710678.1..., / sqrt(3) = 57735026.9..., / 2, / sqrt(5) = 44721359.5..., / 3,
        // / sqrt(10) = 31622776.6...
        let expected = [
            (1, 100_000_000),
            (2, 70_710_678),
            (3, 57_735_026),
            (4, 50_000_000),
            (5, 44_721_359),
            (9, 33_333_333),
            (10, 31_622_776),
            (1_000_000, 100_000),
            (u32::MAX, 1525),
        ];
        for (count, nanos) in expected {
            let next = control_law(Time::from_nanos(7), INTERVAL, count);
            assert_eq!(next, Time::from_nanos(7 + nanos), "count {count}");
        }
    }

    #[test]
    fn cobalt_drops_by_the_control_law_and_counts_back_at_the_same_pace() {
        // `cobalt_should_drop` by hand, a packet each millisecond: above TARGET from 0 on, the first drop an INTERVAL later, the next
        // 100 / sqrt(2) = 70.7 and 57.7 ms after that, each at the first whole millisecond.
        let mut cobalt = Cobalt::default();
        assert_eq!(drops(&mut cobalt, 0, 230, Span::from_millis(20)), [100, 171, 229]);
        assert_eq!(cobalt.count, 4);
        // Below TARGET it counts back: 228.5 + 50 = 278.5, then 57.7, 70.7, 100 ms on.
        assert_eq!(drops(&mut cobalt, 230, 279, Span::ZERO), []);
        assert_eq!(cobalt.count, 4);
        drops(&mut cobalt, 279, 280, Span::ZERO);
        assert_eq!(cobalt.count, 3);
        drops(&mut cobalt, 280, 600, Span::ZERO);
        assert_eq!((cobalt.count, cobalt.is_at_rest(ms(600)), cobalt.is_at_rest(ms(700))), (0, false, true));
    }

    #[test]
    fn blue_goes_up_where_queues_overflow_and_down_where_they_are_empty() {
        let setpoint = Setpoint::new(CakeConfig::DEFAULT);
        let mut cobalt = Cobalt::default();
        // At most once in TARGET.
        (0..60).for_each(|millis| cobalt.on_full(ms(100 + millis), setpoint));
        assert_eq!(cobalt.blue, 10.0 / 256.0);
        (0..60).for_each(|millis| cobalt.on_empty(ms(200 + millis), setpoint));
        assert_eq!(cobalt.blue, 10.0 / 256.0 - 10.0 / 4096.0);
    }

    #[test]
    fn a_slow_link_has_a_longer_target() {
        // `cake_set_rate` at 0.1 Mb/s: a frame takes 121.12 ms; 1.5 of them are 181.68; 100 + 176.68 is less than twice that.
        let setpoint = Setpoint::new(CakeConfig { bandwidth: Some(Rate::from_mbps(0.1)) });
        assert_eq!((setpoint.target.as_millis_f64(), setpoint.interval.as_millis_f64()), (181.68, 363.36));
    }

    #[test]
    fn hosts_get_the_same_however_many_flows_they_have() {
        let setup = Setup { limit: 10_240, streams: Streams::new(1), name: "queue" };
        let mut queue: Cake<u32> = Cake::new(CakeConfig::DEFAULT, setup);
        // Host 1 receives by one flow, host 2 by nine; all have packets all the time.
        let packet = |flow| {
            let to = Destination::Node(NodeId(if flow == 0 { 1 } else { 2 }));
            Packet { to, flow, from: NodeId(9 + flow as u16), ..Packet::full(flow) }
        };
        for _ in 0..50 {
            (0..10).for_each(|flow| queue.push(Time::ZERO, packet(flow)).unwrap());
        }
        let mut sent = [0_u32; 10];
        for _ in 0..2000 {
            let flow = queue.pop(Time::ZERO).flow;
            sent[flow as usize] += 1;
            queue.push(Time::ZERO, packet(flow)).unwrap();
        }
        let of_second: u32 = sent[1..].iter().sum();
        assert!(sent[0].abs_diff(of_second) < 200, "{sent:?}");
        assert!(sent[1..].iter().all(|&sent| sent.abs_diff(of_second / 9) < 30), "{sent:?}");
    }
}
