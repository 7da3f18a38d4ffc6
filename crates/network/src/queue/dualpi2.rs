//! DualPI2: a queue for L4S and one for the rest, coupled so that both get their share: RFC 9332.
//!
//! ```text
//!   ECT(1), CE --> [L: FIFO] -- step: marked after 1 ms in it; or with k p --\
//!                                                                             weighted turns: 10 % for C, or all if alone --> out
//!   the rest   --> [C: FIFO] -- dropped, or marked, with p^2 ----------------/
//!
//! p := p + ALPHA (delay - TARGET) + BETA (delay - delay before)       each T_UPDATE; delay: the longer of both heads'   appendix A, fig. 6
//! ```
//!
//! 1. A classic flow answers a probability by its root, a scalable one in proportion. So p for L4S and its square for the rest, coupled
//!    by k = 2, give both the same rate at the same round trip (§2.1).
//! 2. A head is looked at when it leaves: nothing is marked or dropped by probability while less than two full frames stay in both queues.
//! 3. Overload, k p above 1: both queues drop with p^2 and mark what is left, whatever it is (§4.2.3 c).
//! 4. The limit is of both together, at the tail.
//!
//! The probability is updated at each multiple of T_UPDATE, with the delays of the heads then, when a packet next comes or goes.
//!
//! *Leaves out*: classes by filters (Linux's C-protection weight and classifier stay at their defaults), `drop_early`, the memory limit,
//! `split_gso`.
//!
//! References: RFC 9332 §2.4 (DualQ), §2.5, appendix A; Linux 6.18, net/sched/sch_dualpi2.c.

use super::ack_filter::Filter;
use super::packet_queue::{MAX_FRAME_BYTES, PacketQueue, frame_bytes};
use super::{Desk, Scheduler, Served, Setup};
use crate::packet::{Destination, Packet};
use crate::statistics::Cause;
use lasthop_units::{Bytes, Ecn, Span, Time};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

/// RFC 9332 appendix A.1: 15 ms; Linux's `target`.
const TARGET: Span = Span::from_millis(15);
/// Tupdate: 16 ms, the same.
const T_UPDATE: Span = Span::from_millis(16);
/// alpha in Hz: 0.16; Linux's 41 of 256.
const ALPHA: f64 = 41.0 / 256.0;
/// beta in Hz: 3.2; Linux's 819 of 256.
const BETA: f64 = 819.0 / 256.0;
/// k: RFC 9332 §2.1.
const COUPLING: f64 = 2.0;
/// The sojourn in the L queue above which all are marked: Linux's `step_thresh`; RFC 9332 appendix A.1: minTh 0.8 ms to maxTh 2 ms.
const STEP: Span = Span::from_millis(1);
/// Th_len: packets that must wait behind one for the step to mark it. Below 12 Mb/s a full frame takes longer than STEP by itself. RFC 9332
/// appendix A.1: 1; Linux's `min_qlen_step`: 0.
const TH_LEN: usize = 1;
/// Shares of turns of C and L: Linux's `c_protection`, RFC 9332 §4.2.1.
const WEIGHT_C: i64 = 10;
const WEIGHT_L: i64 = 90;

pub(crate) type DualPi2<P> = Served<P, Queues<P>>;

/// The two queues.
#[derive(Clone, Debug)]
pub(crate) struct Queues<P> {
    /// Of L4S.
    low: PacketQueue<P>,
    classic: PacketQueue<P>,
    control: Control,
    /// Positive: it is the classic queue's turn, if both have packets.
    credit: i64,
    stream: ChaCha8Rng,
}

const FIRST_CREDIT: i64 = MAX_FRAME_BYTES as i64 * (WEIGHT_C - WEIGHT_L);

impl<P> DualPi2<P> {
    pub(super) fn new(setup: Setup<'_>) -> Self {
        let stream = setup.streams.stream(setup.name);
        let (low, classic) = (PacketQueue::new(), PacketQueue::new());
        Self::of(Queues { low, classic, control: Control::default(), credit: FIRST_CREDIT, stream }, setup)
    }
}

impl<P> Queues<P> {
    fn update(&mut self, now: Time) {
        let heads = [&self.low, &self.classic].map(PacketQueue::since);
        self.control.update(now, heads);
    }

    /// The queue whose turn it is among those that have a packet to this destination, and by how much the credit moves a byte.
    fn turn(&self, to: Option<Destination>) -> Option<(bool, i64)> {
        match (self.low.has_one_to(to), self.classic.has_one_to(to)) {
            (false, false) => None,
            (true, classic) if !classic || self.credit <= 0 => Some((true, if classic { WEIGHT_C } else { 0 })),
            (low, _) => Some((false, if low { -WEIGHT_L } else { 0 })),
        }
    }

    /// Whether a packet that leaves is dropped; it may be marked instead.
    fn drops(&mut self, now: Time, arrival: Time, is_low: bool, packet: &mut Packet<P>, desk: &mut Desk<P>) -> bool {
        let (probability, backlog) = (self.control.probability, self.low.bytes() + self.classic.bytes());
        let mut roll = |probability: f64| self.stream.random::<f64>() < probability;
        if backlog >= 2 * MAX_FRAME_BYTES {
            let coupled = COUPLING * probability;
            let is_overload = coupled > 1.0;
            if is_overload || !is_low {
                let hit = roll(probability) && roll(probability);
                if hit && (is_overload || !desk.mark(packet)) {
                    return true;
                }
                if is_overload && is_low {
                    desk.mark(packet);
                }
            } else if roll(coupled) {
                desk.mark(packet);
            }
        }
        if is_low && packet.ecn != Ecn::Ce && self.low.len() >= TH_LEN && now.saturating_since(arrival) > STEP {
            desk.mark(packet);
        }
        false
    }
}

impl<P> Scheduler<P> for Queues<P> {
    fn inside(&self) -> usize {
        self.low.len() + self.classic.len()
    }

    fn accept(&mut self, now: Time, packet: Packet<P>, has_room: bool, desk: &mut Desk<P>) -> Result<(), Packet<P>> {
        self.update(now);
        if !has_room {
            return desk.refuse(now, packet);
        }
        let is_low = matches!(packet.ecn, Ecn::Ect1 | Ecn::Ce);
        if is_low { &mut self.low } else { &mut self.classic }.push(now, packet);
        Ok(())
    }

    fn remove_to(&mut self, now: Time, to: Destination, _desk: &mut Desk<P>) -> Vec<Packet<P>> {
        self.update(now);
        let mut removed = self.low.remove_to(to);
        removed.extend(self.classic.remove_to(to));
        if self.inside() == 0 {
            self.credit = FIRST_CREDIT;
        }
        removed
    }

    /// The last one of both queues is never dropped, for none stays behind: the transmitter has been told that there is one.
    fn next(
        &mut self,
        now: Time,
        to: Option<Destination>,
        fits: &dyn Fn(Bytes) -> bool,
        desk: &mut Desk<P>,
    ) -> Option<Packet<P>> {
        self.update(now);
        loop {
            let (is_low, weight) = self.turn(to)?;
            let queue = if is_low { &mut self.low } else { &mut self.classic };
            let (arrival, mut packet) = queue.pop_to(to, fits)?;
            if self.inside() == 0 {
                self.credit = FIRST_CREDIT;
            }
            if self.drops(now, arrival, is_low, &mut packet, desk) {
                desk.drop(now, Cause::Early, &packet);
                continue;
            }
            self.credit += weight * frame_bytes(&packet) as i64;
            return Some(packet);
        }
    }

    fn thin(&mut self, new: &Packet<P>, filter: &Filter<P>) -> Option<Packet<P>> {
        let is_low = matches!(new.ecn, Ecn::Ect1 | Ecn::Ce);
        if is_low { &mut self.low } else { &mut self.classic }.thin(new, filter)
    }
}

/// The PI controller.
#[derive(Clone, Debug)]
struct Control {
    /// p: the base probability.
    probability: f64,
    delay_before: Span,
    next_update: Time,
}

impl Default for Control {
    fn default() -> Self {
        Self { probability: 0.0, delay_before: Span::ZERO, next_update: Time::ZERO + T_UPDATE }
    }
}

impl Control {
    /// `calculate_probability`, as often as it was due by now; `heads`: since when the oldest packets wait.
    fn update(&mut self, now: Time, heads: [Option<Time>; 2]) {
        while self.next_update <= now {
            let at = self.next_update;
            let since = |head: Option<Time>| head.map_or(Span::ZERO, |head| at.saturating_since(head));
            let delay = heads.map(since).into_iter().fold(Span::ZERO, Span::max);
            if delay.is_zero() && self.probability == 0.0 && self.delay_before.is_zero() && heads == [None; 2] {
                self.next_update += T_UPDATE * (now.saturating_since(at).as_nanos() / T_UPDATE.as_nanos() + 1);
                return;
            }
            let difference = |one: Span, other: Span| one.as_secs_f64() - other.as_secs_f64();
            let step = ALPHA * difference(delay, TARGET) + BETA * difference(delay, self.delay_before);
            self.probability = (self.probability + step).clamp(0.0, 1.0);
            self.delay_before = delay;
            self.next_update = at + T_UPDATE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Queue as _;
    use super::*;
    use crate::random::Streams;

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn queue() -> DualPi2<usize> {
        DualPi2::new(Setup { limit: 100_000, streams: Streams::new(1), name: "queue" })
    }

    fn packet(ecn: Ecn, number: usize) -> Packet<usize> {
        Packet { ecn, ..Packet::full(number) }
    }

    #[test]
    fn the_probability_follows_the_rfcs_rule() {
        // A head that came at 0: at 16 ms it has waited 1 ms more than TARGET, and 16 ms more than before. Then 16 ms more each time.
        let mut control = Control::default();
        let mut by_hand = 0.0;
        for update in 1..=5_u64 {
            control.update(ms(16 * update), [None, Some(Time::ZERO)]);
            by_hand += 41.0 / 256.0 * (0.016 * update as f64 - 0.015) + 819.0 / 256.0 * 0.016;
            assert!((control.probability - by_hand).abs() < 1e-9, "{update}: {}", control.probability);
        }
        // The queue empties: a fall by 80 ms takes 80 × 3.2 / 1000 = 0.256 and more at once.
        control.update(ms(96), [None; 2]);
        let fall = 819.0 / 256.0 * 0.08 + 41.0 / 256.0 * 0.015;
        assert!((control.probability - (by_hand - fall)).abs() < 1e-9);
        // Late or often is the same.
        let (mut late, mut often) = (control.clone(), control);
        late.update(ms(5000), [None; 2]);
        (96..=5000).for_each(|millis| often.update(ms(millis), [None; 2]));
        assert_eq!((late.probability, late.next_update), (often.probability, often.next_update));
    }

    #[test]
    fn l4s_goes_first_but_a_tenth_is_the_rests() {
        let mut queue = queue();
        for number in 0..400 {
            queue.push(Time::ZERO, packet(if number % 2 == 0 { Ecn::Ect1 } else { Ecn::Ect0 }, number)).unwrap();
        }
        let sent: Vec<_> = (0..200).map(|_| queue.pop(Time::ZERO).payload % 2).collect();
        // 80 frames' worth of credit, 10 a frame: nine for L4S to one for the rest.
        let classic = sent.iter().sum::<usize>();
        assert!((19..=20).contains(&classic) && sent[..8] == [0; 8], "{classic}");
    }

    #[test]
    fn l4s_is_marked_after_a_millisecond_and_never_dropped_short_of_overload() {
        let mut queue = queue();
        for number in 0..50 {
            queue.push(Time::ZERO, packet(Ecn::Ect1, number)).unwrap();
        }
        let at = |queue: &mut DualPi2<usize>, micros| queue.pop(Time::ZERO + Span::from_micros(micros)).ecn;
        assert_eq!([999, 1000, 1001].map(|micros| at(&mut queue, micros)), [Ecn::Ect1, Ecn::Ect1, Ecn::Ce]);
        assert_eq!((queue.desk().counted.marks, queue.desk().counted.drops(Cause::Early)), (1, 0));
        // Th_len: not where nothing waits behind it, however long it took the one before.
        while queue.len() > 1 {
            assert_eq!(at(&mut queue, 2000), Ecn::Ce);
        }
        assert_eq!(at(&mut queue, 2000), Ecn::Ect1);
    }

    /// How many of these are hit with p = 0.1, of 10,000: marks and drops.
    fn hit(ecn: Ecn) -> (u64, u64) {
        let mut queue = queue();
        queue.scheduler.control = Control { probability: 0.1, next_update: ms(1000), ..Control::default() };
        for number in 0..10_010 {
            queue.push(Time::ZERO, packet(ecn, number)).unwrap();
        }
        (0..10_000).for_each(|_| {
            if queue.len() > 5 {
                queue.pop(Time::ZERO);
            }
        });
        (queue.desk().counted.marks, queue.desk().counted.drops(Cause::Early))
    }

    #[test]
    fn nothing_is_hit_while_less_than_two_full_frames_stay_behind() {
        // Overload: whatever is looked at is hit. What leaves is no backlog, so of three packets the first is looked at.
        for (packets, hits) in [(2, 0), (3, 1)] {
            let mut queue = queue();
            queue.scheduler.control = Control { probability: 1.0, next_update: ms(1000), ..Control::default() };
            (0..packets).for_each(|number| queue.push(Time::ZERO, packet(Ecn::NotEct, number)).unwrap());
            let left = packets - hits;
            assert_eq!(
                (0..left).map(|_| queue.pop(Time::ZERO).payload).collect::<Vec<_>>(),
                (hits..packets).collect::<Vec<_>>()
            );
            assert_eq!(queue.desk().counted.drops(Cause::Early), hits as u64);
        }
    }

    #[test]
    fn the_rest_is_hit_with_the_square_and_l4s_with_twice_the_probability() {
        // p = 0.1: p^2 = 0.01, k p = 0.2. Binomial: 100 ± 5 × 10, 2000 ± 5 × 40.
        let (marks, drops) = hit(Ecn::NotEct);
        assert!(marks == 0 && drops.abs_diff(100) < 50, "{marks}, {drops}");
        let (marks, drops) = hit(Ecn::Ect0);
        assert!(drops == 0 && marks.abs_diff(100) < 50, "{marks}, {drops}");
        let (marks, drops) = hit(Ecn::Ect1);
        assert!(drops == 0 && marks.abs_diff(2000) < 200, "{marks}, {drops}");
    }
}
