//! CoDel: drops the head of a queue so that its standing delay stays near a target.
//!
//! A packet's sojourn is the time from its arrival to its departure from the queue. Everything happens at departures:
//! 1. Sojourns of at least TARGET for a whole INTERVAL, with more than one packet's worth waiting: drop the head, take
//!    the next.
//! 2. From then on the next drop is INTERVAL / sqrt(count) after the last, where count counts the drops (the control
//!    law), with [Linux's root](Control::step).
//! 3. A sojourn under TARGET, or a nearly empty queue, ends it. If it begins again within 16 INTERVALs, count resumes
//!    with the number of drops beyond the last start; else it begins at 1.
//!
//! ```text
//!            sojourn < TARGET, or at most MAXPACKET bytes wait
//!          +----------------------------------------------------+
//!          v                                                    |
//!   [under control] -- TARGET exceeded for an INTERVAL: drop --> [dropping] --+
//!                                                                   ^         | drop_next reached: drop, count + 1,
//!                                                                   +---------+ drop_next += INTERVAL / sqrt(count)
//! ```
//!
//! What can be marked is marked and sent where it would be dropped. With `ce_threshold`, so is each packet whose sojourn exceeds
//! that, as Linux's `sch_codel` has it: for DCTCP.
//!
//! References: Linux 6.12, include/net/codel_impl.h (the root, marks).
//! RFC 8289 §5 (the pseudocode, here by its names), §4.4 (TARGET), §4.3 (INTERVAL).

use super::ack_filter::Filter;
use super::flow_queues::Management;
use super::packet_queue::{MAX_FRAME_BYTES, PacketQueue};
use super::{Desk, Scheduler, Served, Setup};
use crate::config::ConfigError;
use crate::packet::{Destination, Packet};
use crate::statistics::Cause;
use lasthop_units::{Bytes, Ecn, Span, Time};

/// MAXPACKET: 512 bytes in RFC 8289 §5.3, which prefers the interface's MTU; ours is Ethernet's, as in Linux.
const MAX_PACKET_BYTES: u64 = MAX_FRAME_BYTES;
/// The age in INTERVALs up to which the last drop rate is a good start (RFC 8289 §5.5).
const MEMORY_INTERVALS: u64 = 16;

/// RFC 8289 §4.4 and §4.3; Linux's `sch_codel`.
const TARGET: Span = Span::from_millis(5);
const INTERVAL: Span = Span::from_millis(100);

/// CoDel's parameters.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct CodelConfig {
    /// Packets with a longer sojourn are marked; `None` = none is for that.
    pub ce_threshold: Option<Span>,
}

impl CodelConfig {
    /// Those of Linux.
    pub const DEFAULT: Self = Self { ce_threshold: None };

    /// Whether they are possible.
    pub(super) fn validate(self) -> Result<(), ConfigError<&'static str>> {
        Ok(())
    }
}

/// The discipline: one queue under CoDel. A transmitter that sends several packets to one receiver gets those behind the first one
/// without CoDel's look at them, but marked where they have waited longer than `ce_threshold`.
pub(crate) type Codel<P> = Served<P, OneQueue<P>>;

#[derive(Clone, Debug)]
pub(crate) struct OneQueue<P> {
    queue: PacketQueue<P>,
    control: Control,
    setpoint: Setpoint,
}

impl<P> Codel<P> {
    pub(super) fn new(config: CodelConfig, setup: Setup<'_>) -> Self {
        let setpoint = Setpoint { target: TARGET, interval: INTERVAL, ce_threshold: config.ce_threshold };
        Self::of(OneQueue { queue: PacketQueue::new(), control: Control::default(), setpoint }, setup)
    }
}

impl<P> Scheduler<P> for OneQueue<P> {
    fn inside(&self) -> usize {
        self.queue.len()
    }

    fn accept(&mut self, now: Time, packet: Packet<P>, has_room: bool, desk: &mut Desk<P>) -> Result<(), Packet<P>> {
        if !has_room {
            return desk.refuse(now, packet);
        }
        self.queue.push(now, packet);
        Ok(())
    }

    fn next(
        &mut self,
        now: Time,
        to: Option<Destination>,
        fits: &dyn Fn(Bytes) -> bool,
        desk: &mut Desk<P>,
    ) -> Option<Packet<P>> {
        match to {
            None => self.control.dequeue(now, self.setpoint, &mut self.queue, desk),
            Some(_) => {
                let (arrival, mut packet) = self.queue.pop_to(to, fits)?;
                self.setpoint.mark_late(now, arrival, &mut packet, desk);
                Some(packet)
            }
        }
    }

    fn thin(&mut self, new: &Packet<P>, filter: &Filter<P>) -> Option<Packet<P>> {
        self.queue.thin(new, filter)
    }
}

/// TARGET and INTERVAL, and Linux's `ce_threshold`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Setpoint {
    pub(crate) target: Span,
    pub(crate) interval: Span,
    pub(crate) ce_threshold: Option<Span>,
}

impl Setpoint {
    /// Marks what has waited longer than `ce_threshold`.
    fn mark_late<P>(&self, now: Time, arrival: Time, packet: &mut Packet<P>, desk: &mut Desk<P>) {
        if packet.ecn != Ecn::Ce && self.ce_threshold.is_some_and(|most| now.saturating_since(arrival) > most) {
            desk.mark(packet);
        }
    }
}

/// CoDel's state of one queue.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Control {
    dropping: bool,
    /// Drops since dropping began.
    count: u32,
    /// `count` when dropping began.
    last_count: u32,
    /// 1 / sqrt(count), nearly: in parts of 2^16.
    inverse_root: u16,
    /// The time at which sojourns will have exceeded TARGET for an INTERVAL; `None` while they do not.
    first_above: Option<Time>,
    drop_next: Time,
}

impl Management for Control {
    type Parameters = Setpoint;

    fn dequeue<P>(
        &mut self,
        now: Time,
        setpoint: Setpoint,
        queue: &mut PacketQueue<P>,
        desk: &mut Desk<P>,
    ) -> Option<Packet<P>> {
        // Unlike the RFC, an empty queue need not clear `dropping`: no drop happens before `first_above` is set again.
        let (mut arrival, mut packet, mut ok_to_drop) = self.dodequeue(now, setpoint, queue)?;
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                self.step();
                if desk.mark(&mut packet) {
                    self.drop_next = self.control_law(self.drop_next, setpoint.interval);
                    break;
                }
                desk.drop(now, Cause::CoDel, &packet);
                (arrival, packet, ok_to_drop) = self.dodequeue(now, setpoint, queue).expect(NEVER_THE_LAST);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next, setpoint.interval);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            if !desk.mark(&mut packet) {
                desk.drop(now, Cause::CoDel, &packet);
                (arrival, packet, _) = self.dodequeue(now, setpoint, queue).expect(NEVER_THE_LAST);
            }
            self.dropping = true;
            let delta = self.count - self.last_count;
            let has_dropped = self.last_count > 0;
            let recent = has_dropped && now.saturating_since(self.drop_next) < setpoint.interval * MEMORY_INTERVALS;
            if delta > 1 && recent {
                self.count = delta;
                self.step();
            } else {
                (self.count, self.inverse_root) = (1, u16::MAX);
            }
            self.drop_next = self.control_law(now, setpoint.interval);
            self.last_count = self.count;
        }
        setpoint.mark_late(now, arrival, &mut packet, desk);
        Some(packet)
    }

    /// Drops more often from now on, as in Linux.
    fn on_overflow(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }
}

impl Control {
    /// The head, when it came, and whether it may be dropped.
    fn dodequeue<P>(
        &mut self,
        now: Time,
        setpoint: Setpoint,
        queue: &mut PacketQueue<P>,
    ) -> Option<(Time, Packet<P>, bool)> {
        let Some((arrival, packet)) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        if now.saturating_since(arrival) < setpoint.target || queue.bytes() <= MAX_PACKET_BYTES {
            self.first_above = None;
            return Some((arrival, packet, false));
        }
        let first_above = *self.first_above.get_or_insert(now + setpoint.interval);
        Some((arrival, packet, now >= first_above))
    }

    /// One step of Newton's method for the root after each move of `count` (`codel_Newton_step`): so Linux and ns-3 have it. Some
    /// drops come sooner than by the exact root of RFC 8289 §5.6: the second one's 50 ms before the third, and not 71.
    fn step(&mut self) {
        let root = u64::from(self.inverse_root) << 16;
        let square = (root * root) >> 32;
        // Modulo 2^64, as there: where `count` has leapt, the root may be 0 for good.
        let rest = (3_u64 << 32).wrapping_sub(u64::from(self.count) * square) / 4;
        self.inverse_root = (rest.wrapping_mul(root) >> 47) as u16;
    }

    /// t + INTERVAL / sqrt(count), with the root of [`Self::step`] (`codel_control_law`).
    fn control_law(&self, t: Time, interval: Span) -> Time {
        t + Span::from_nanos((interval.as_nanos() * u64::from(self.inverse_root)) >> 16)
    }
}

const NEVER_THE_LAST: &str = "CoDel drops a packet only while more than MAXPACKET bytes wait behind it";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Destination, NodeId};

    /// Of what came at 0, until 507 ms.
    const FIRST_DROPS: [u64; 8] = [105, 205, 255, 312, 361, 405, 445, 483];
    const SETPOINT: Setpoint = Setpoint { target: TARGET, interval: INTERVAL, ce_threshold: None };

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn queue(at: Time, packets: u64, bytes: u64) -> PacketQueue<u64> {
        let mut queue = PacketQueue::new();
        for payload in 0..packets {
            let to = Destination::Node(NodeId(1));
            let size = Bytes::new(bytes);
            queue.push(at, Packet { to, size, id: payload, ..Packet::full(payload) });
        }
        queue
    }

    fn desk() -> Desk<u64> {
        let mut desk = Desk::new(usize::MAX);
        desk.note_dropped();
        desk
    }

    /// Takes a packet each millisecond from `from` until `to`. Returns the times of drops.
    fn drops(codel: &mut Control, queue: &mut PacketQueue<u64>, from: u64, to: u64) -> Vec<u64> {
        let (mut dropped_at, mut desk) = (Vec::new(), desk());
        for millis in from..to {
            codel.dequeue(ms(millis), SETPOINT, queue, &mut desk).unwrap();
            dropped_at.extend(desk.take_dropped().map(|_| millis));
        }
        dropped_at
    }

    #[test]
    fn the_root_is_linuxs() {
        // `codel_Newton_step` and `codel_control_law` of Linux 6.12, in C: what follows a drop at each count, in ns.
        let mut codel = Control { count: 1, inverse_root: u16::MAX, ..Control::default() };
        let mut after = |count| {
            codel.count = count;
            if count > 1 {
                codel.step();
            }
            codel.control_law(Time::ZERO, SETPOINT.interval).as_nanos()
        };
        assert_eq!([1, 2, 3, 4, 5].map(&mut after), [99_998_474, 50_001_525, 56_250_000, 48_779_296, 44_151_306]);
        assert_eq!([6, 7, 8].map(&mut after), [40_406_799, 37_518_310, 35_151_672]);
    }

    #[test]
    fn drops_begin_after_an_interval_above_target_and_follow_the_control_law() {
        // All came at 0. At 5 ms the sojourn reaches TARGET; 100 ms later the first drop, the next an INTERVAL after it. Then after the
        // time that was due, by the root: 205, + 50 = 255, + 56.25 = 311.25, + 48.78 = 360.03, + 44.15 = 404.18, + 40.41 = 444.59,
        // + 37.52 = 482.11, + 35.15 = 517.26; each at the first whole millisecond that is not before.
        let mut codel = Control::default();
        let dropped_at = drops(&mut codel, &mut queue(Time::ZERO, 2000, 1500), 0, 507);
        assert_eq!(dropped_at, FIRST_DROPS);
    }

    #[test]
    fn an_overload_that_is_soon_back_begins_with_the_rate_of_drops_it_had() {
        for (back_at, dropped_at) in [
            // 8 drops, 7 of them after the first: count = 7. 2100 + 37.52 = 2137.52, + 35.15 = 2172.67.
            (2000, [2100, 2138, 2173]),
            // The next drop was due at 517.26; 2117 is within 16 INTERVALs of that. + 37.52 = 2154.52, + 35.15 = 2189.67.
            (2017, [2117, 2155, 2190]),
            // 2118 is not: it begins anew. + 100, + 50 = 2268.
            (2018, [2118, 2218, 2268]),
        ] {
            let mut codel = Control::default();
            drops(&mut codel, &mut queue(Time::ZERO, 2000, 1500), 0, 507);
            let mut short = queue(ms(507), 4, 1500);
            assert_eq!(drops(&mut codel, &mut short, 507, 511), [], "below target, it stops");
            // What came 5 ms ago is at TARGET at once, and dropped an INTERVAL later.
            let mut queue = queue(ms(back_at - 5), 2000, 1500);
            assert_eq!(drops(&mut codel, &mut queue, back_at, back_at + 280)[..3], dropped_at);
        }
    }

    #[test]
    fn one_packets_worth_is_never_dropped_however_old() {
        // A packet leaves and another comes each millisecond, all of them 1 s old. MAXPACKET is 1514:
        // one full frame behind the one that leaves is not yet a queue, two are.
        for (behind, first_drop) in [(1, None), (2, Some(100))] {
            let mut codel = Control::default();
            let mut queue = queue(Time::ZERO, behind, 1500);
            let (mut dropped_at, mut desk) = (None, desk());
            for millis in 0..150 {
                queue.push(Time::ZERO, Packet::full(0));
                codel.dequeue(ms(1000 + millis), SETPOINT, &mut queue, &mut desk).unwrap();
                dropped_at = desk.take_dropped().map(|_| millis).last().or(dropped_at);
            }
            assert_eq!(dropped_at, first_drop, "{behind} behind");
        }
    }

    #[test]
    fn losses_at_the_limit_count_as_drops() {
        // The third drop, at 255 ms, is followed by one after 56.25 ms. With a loss between it is count = 5 at 312 ms, and a step from the
        // root at 3 gives 39.88 ms: due at 311.25 + 39.88 = 351.13, and not at 360.03.
        let mut codel = Control::default();
        let mut queue = queue(Time::ZERO, 2000, 1500);
        assert_eq!(drops(&mut codel, &mut queue, 0, 260), [105, 205, 255]);
        codel.on_overflow(1);
        assert_eq!(drops(&mut codel, &mut queue, 260, 360), [312, 352]);
        // Before the first drop it counts for nothing.
        let mut codel = Control::default();
        codel.on_overflow(6);
        assert_eq!(drops(&mut codel, &mut self::queue(Time::ZERO, 2000, 1500), 0, 210), [105, 205]);
    }

    #[test]
    fn when_many_drops_are_overdue_they_happen_at_once() {
        // Dropping since 105 ms, due at 205, 255, 311.25, 360.03, 404.18, 444.59: nobody asks until 430 ms.
        let mut codel = Control::default();
        let mut queue = queue(Time::ZERO, 2000, 1500);
        assert_eq!(drops(&mut codel, &mut queue, 0, 106), [105]);
        let mut desk = desk();
        let packet = codel.dequeue(ms(430), SETPOINT, &mut queue, &mut desk).unwrap();
        let dropped: Vec<_> = desk.take_dropped().map(|departure| departure.id).collect();
        // 0..=104 were sent, 105 was dropped and 106 sent.
        assert_eq!((dropped, packet.payload), (vec![107, 108, 109, 110, 111], 112));
    }

    /// The same with ECT(0): returns the times of marks.
    fn marks(setpoint: Setpoint, came: Time, to: u64) -> Vec<u64> {
        let (mut queue, mut desk, mut codel) = (PacketQueue::new(), desk(), Control::default());
        for payload in 0..2000 {
            queue.push(came, Packet { ecn: Ecn::Ect0, ..Packet::full(payload) });
        }
        let mut took = |millis| codel.dequeue(ms(millis), setpoint, &mut queue, &mut desk).unwrap();
        (0..to).filter(|millis| took(*millis).ecn == Ecn::Ce).collect()
    }

    #[test]
    fn what_can_be_marked_is_marked_where_it_would_be_dropped() {
        // As above; and nothing is dropped, so the packet is the one that is sent.
        assert_eq!(marks(SETPOINT, Time::ZERO, 507), FIRST_DROPS);
    }

    #[test]
    fn a_threshold_marks_what_goes_behind_the_first_packet_of_an_aggregate_too() {
        let setpoint = Setpoint { ce_threshold: Some(Span::from_millis(3)), ..SETPOINT };
        let mut one = OneQueue { queue: PacketQueue::new(), control: Control::default(), setpoint };
        let to = Packet::full(0).to;
        for (payload, came) in [(0, 0), (1, 0), (2, 1)] {
            one.queue.push(ms(came), Packet { ecn: Ecn::Ect0, ..Packet::full(payload) });
        }
        let mut desk = desk();
        // At 4 ms the first two have waited for more than 3 ms, the third has not.
        let sent =
            [None, Some(to), Some(to)].map(|to| one.next(ms(4), to, &|_| true, &mut desk).unwrap().ecn == Ecn::Ce);
        assert_eq!(sent, [true, true, false]);
    }

    #[test]
    fn a_threshold_marks_each_packet_that_has_waited_longer() {
        // All came at 0 and the interval is not over: those that leave after more than 3 ms.
        let threshold = Setpoint { ce_threshold: Some(Span::from_millis(3)), ..SETPOINT };
        assert_eq!(marks(threshold, Time::ZERO, 7), [4, 5, 6]);
    }
}
