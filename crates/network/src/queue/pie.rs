//! PIE: drops at random before the queue, with a probability that a controller sets by the delay.
//!
//! 1. Every T_UPDATE the probability moves by how far the delay is from TARGET and by how much it has risen since the last time.
//!    The smaller the probability, the smaller the steps.
//! 2. A packet that comes is dropped with this probability. Not before 0.85 packets' worth of probability have added up since the
//!    last drop, and surely after 8.5; so drops are spread.
//! 3. None is dropped at random in a burst of 150 ms after a time without congestion, while the delay is below half of TARGET and
//!    the probability below 0.2, or while fewer than two full frames wait.
//!
//! ```text
//! p     := p + scale (ALPHA (delay - TARGET) + BETA (delay - delay before))               RFC 8033 §4.2
//! scale := 1/2048, 1/512, 1/128, 1/32, 1/8, 1/2, 1   for p < 10^-6, 10^-5, ... 0.1, above
//! p     := p - p / 64                                where the delay is zero twice
//! ```
//!
//! The delay is the sojourn of the packet that left last, as in Linux since 5.6; the RFC prefers an estimate by the rate of
//! departures. What the controller does while nothing comes or goes depends on nothing else, and is made up for afterwards.
//!
//! Below a probability of 0.1 what can be marked is marked instead, RFC 8033 §5.1.
//!
//! *Leaves out*: bytemode, the estimate of the rate.
//!
//! References: RFC 8033 §4, §5.1 (the spreading of drops), §5.2; Linux 6.12, net/sched/sch_pie.c, include/net/pie.h.

use super::ack_filter::Filter;
use super::flow_queues::Management;
use super::packet_queue::{MAX_FRAME_BYTES, PacketQueue};
use super::{Desk, Scheduler, Served, Setup};
use crate::packet::{Destination, Packet};
use crate::statistics::Cause;
use lasthop_units::{Bytes, Span, Time};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

/// QDELAY_REF: RFC 8033 §4.2 and Linux.
const TARGET: Span = Span::from_millis(15);
/// T_UPDATE: the same.
const T_UPDATE: Span = Span::from_millis(15);
/// MAX_BURST: the same.
const MAX_BURST: Span = Span::from_millis(150);
/// alpha, in Hz: RFC 8033 §4.2; Linux's 2 of 16.
const ALPHA: f64 = 0.125;
/// beta, in Hz: RFC 8033 §4.2; Linux's 20 of 16.
const BETA: f64 = 1.25;
/// RFC 8033 §5.1: mark_ecnth; Linux's MAX_PROB / 10.
const MARKS_BELOW: f64 = 0.1;
/// RFC 8033 §5.2: above this delay the probability rises by 2 % more.
const LONG: Span = Span::from_millis(250);

pub(crate) type Pie<P> = Served<P, OneQueue<P>>;

/// One queue under PIE.
#[derive(Clone, Debug)]
pub(crate) struct OneQueue<P> {
    queue: PacketQueue<P>,
    control: Control,
    stream: ChaCha8Rng,
}

impl<P> Pie<P> {
    pub(super) fn new(setup: Setup<'_>) -> Self {
        let stream = setup.streams.stream(setup.name);
        Self::of(OneQueue { queue: PacketQueue::new(), control: Control::default(), stream }, setup)
    }
}

impl<P> Scheduler<P> for OneQueue<P> {
    fn inside(&self) -> usize {
        self.queue.len()
    }

    fn accept(
        &mut self,
        now: Time,
        mut packet: Packet<P>,
        has_room: bool,
        desk: &mut Desk<P>,
    ) -> Result<(), Packet<P>> {
        self.control.update(now, self.queue.bytes());
        if !has_room {
            self.control.on_dropped();
            return desk.refuse(now, packet);
        }
        if self.control.drops_early(self.queue.bytes(), &mut self.stream) && !self.control.marks(&mut packet, desk) {
            self.control.on_dropped();
            return desk.turn_away(now, Cause::Early, packet);
        }
        self.queue.push(now, packet);
        Ok(())
    }

    fn next(
        &mut self,
        now: Time,
        to: Option<Destination>,
        fits: &dyn Fn(Bytes) -> bool,
        _desk: &mut Desk<P>,
    ) -> Option<Packet<P>> {
        self.control.update(now, self.queue.bytes());
        let (arrival, packet) = self.queue.pop_to(to, fits)?;
        self.control.on_departure(now, now - arrival, self.queue.bytes());
        Some(packet)
    }

    fn thin(&mut self, new: &Packet<P>, filter: &Filter<P>) -> Option<Packet<P>> {
        self.queue.thin(new, filter)
    }
}

/// As in `fq_pie`: it drops nothing at departures.
impl Management for Control {
    type Parameters = ();

    fn dequeue<P>(&mut self, now: Time, (): (), queue: &mut PacketQueue<P>, _desk: &mut Desk<P>) -> Option<Packet<P>> {
        self.update(now, queue.bytes());
        let (arrival, packet) = queue.pop()?;
        self.on_departure(now, now - arrival, queue.bytes());
        Some(packet)
    }
}

/// The controller of one queue: `pie_vars`.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    probability: f64,
    /// The sojourn of the packet that left last.
    delay: Span,
    delay_before: Span,
    burst_left: Span,
    /// The probability that has added up since the last drop or mark.
    added_up: f64,
    last_departure: Option<Time>,
    next_update: Time,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            probability: 0.0,
            delay: Span::ZERO,
            delay_before: Span::ZERO,
            burst_left: MAX_BURST,
            added_up: 0.0,
            last_departure: None,
            next_update: Time::ZERO + T_UPDATE,
        }
    }
}

impl Control {
    /// `pie_drop_early`: whether a packet that comes is dropped, with this many bytes in the queue.
    pub(super) fn drops_early(&mut self, backlog: u64, stream: &mut ChaCha8Rng) -> bool {
        if self.burst_left > Span::ZERO
            || (self.delay < TARGET / 2 && self.probability < 0.2)
            || backlog < 2 * MAX_FRAME_BYTES
        {
            return false;
        }
        self.added_up = if self.probability == 0.0 { 0.0 } else { self.added_up + self.probability };
        match self.added_up {
            few if few < 0.85 => false,
            many if many >= 8.5 => true,
            _ if stream.random::<f64>() < self.probability => {
                // Marked or dropped.
                self.added_up = 0.0;
                true
            }
            _ => false,
        }
    }

    /// `pie_qdisc_enqueue`: whether a packet is marked and not dropped.
    pub(super) fn marks<P>(&self, packet: &mut Packet<P>, desk: &mut Desk<P>) -> bool {
        self.probability <= MARKS_BELOW && desk.mark(packet)
    }

    pub(super) fn on_dropped(&mut self) {
        self.added_up = 0.0;
    }

    /// `pie_process_dequeue`: a packet leaves after this sojourn, and this many bytes stay.
    pub(super) fn on_departure(&mut self, now: Time, sojourn: Span, backlog: u64) {
        self.delay = if backlog == 0 { Span::ZERO } else { sojourn };
        let since = self.last_departure.map_or(Span::ZERO, |last| now - last);
        self.last_departure = Some(now);
        self.burst_left = self.burst_left.saturating_sub(since);
    }

    /// `pie_calculate_probability`, as often as it was due by now.
    pub(super) fn update(&mut self, now: Time, backlog: u64) {
        while self.next_update <= now {
            if self.rests() {
                let periods = now.saturating_since(self.next_update).as_nanos() / T_UPDATE.as_nanos() + 1;
                self.next_update += T_UPDATE * periods;
                return;
            }
            self.next_update += T_UPDATE;
            self.update_once(backlog);
        }
    }

    /// Whether updates without packets between them change nothing.
    fn rests(&self) -> bool {
        self.probability == 0.0
            && self.delay.is_zero()
            && self.delay_before.is_zero()
            && self.burst_left == MAX_BURST
            && self.last_departure.is_none()
    }

    fn update_once(&mut self, backlog: u64) {
        let Self { delay, delay_before, .. } = *self;
        let mut scale = 1.0;
        if self.probability < 0.1 {
            scale = 0.5;
            let mut below = 0.01;
            while self.probability < below && below > 0.5e-6 {
                scale /= 4.0;
                below /= 10.0;
            }
        }
        let (above, rise) = (difference(delay, TARGET), difference(delay, delay_before));
        let mut step = scale * (ALPHA * above + BETA * rise);
        if step > 0.02 && self.probability >= 0.1 {
            step = 0.02;
        }
        if delay > LONG {
            step += 0.02;
        }
        let is_full = self.probability + step > 1.0;
        self.probability = (self.probability + step).clamp(0.0, 1.0);
        // Linux: a delay of zero with a backlog means that there is no new sojourn yet.
        if delay.is_zero() && delay_before.is_zero() && backlog == 0 && !is_full {
            self.probability -= self.probability / 64.0;
        }
        if delay < TARGET / 2 && delay_before < TARGET / 2 && self.probability == 0.0 {
            (self.burst_left, self.added_up, self.last_departure) = (MAX_BURST, 0.0, None);
        }
        self.delay_before = delay;
    }
}

/// In seconds.
fn difference(one: Span, other: Span) -> f64 {
    one.as_secs_f64() - other.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Streams;

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// The probability after each of the first updates, with this delay all the time.
    fn probabilities(delay: Span, updates: u64) -> Vec<f64> {
        let mut control = Control { delay, ..Control::default() };
        let after = |update| {
            control.update(ms(15 * update), 15_140);
            control.probability
        };
        (1..=updates).map(after).collect()
    }

    #[test]
    fn the_probability_follows_the_rfcs_rule_with_its_steps() {
        // RFC 8033 §4.2, by hand, with a delay of 30 ms. At first it has risen by 30 ms: (0.125 × 0.015 + 1.25 × 0.03) / 2048. Then
        // 0.125 × 0.015 / 128 each, from 10^-5 on, and / 32 from 10^-4 on.
        let first = 0.039_375 / 2048.0;
        let by_hand = |update: u32| match update {
            0..=6 => first + f64::from(update) * 0.001_875 / 128.0,
            more => first + 6.0 * 0.001_875 / 128.0 + f64::from(more - 6) * 0.001_875 / 32.0,
        };
        for (update, probability) in (0..).zip(probabilities(Span::from_millis(30), 9)) {
            assert!((probability / by_hand(update) - 1.0).abs() < 1e-9, "{update}: {probability}");
        }
        // Above 250 ms it rises by 2 % more each time, RFC 8033 §5.2.
        let long = probabilities(Span::from_millis(300), 2);
        assert!(long[1] - long[0] > 0.02, "{long:?}");
    }

    #[test]
    fn an_idle_queue_forgets_its_probability_however_late_it_is_asked() {
        let congested = Control { probability: 0.5, ..Control::default() };
        let (mut late, mut often) = (congested.clone(), congested);
        late.update(ms(3000), 0);
        (0..=3000).for_each(|millis| often.update(ms(millis), 0));
        assert_eq!((late.probability, late.next_update), (often.probability, often.next_update));
        // 200 updates: each takes at least ALPHA × TARGET / 2048 and a 64th: 0.5 × (63/64)^200 = 0.02 at most.
        assert!(late.probability < 0.0215, "{}", late.probability);
    }

    #[test]
    fn drops_are_neither_close_together_nor_far_apart() {
        // RFC 8033 §5.1, with a probability of 1/64: not before packet 55 behind a drop (0.85 × 64 = 54.4), surely at 544.
        let mut control =
            Control { probability: 1.0 / 64.0, delay: TARGET, burst_left: Span::ZERO, ..Control::default() };
        let mut stream = Streams::new(1).stream("queue");
        let mut dropped = Vec::new();
        for number in 0..100_000_u32 {
            if control.drops_early(15_140, &mut stream) {
                // A mark leaves it at that; a drop tells.
                if number % 2 == 0 {
                    control.on_dropped();
                }
                dropped.push(number);
            }
        }
        let gaps = || dropped.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps().all(|gap| (55..=544).contains(&gap)));
        // 54 packets, then geometric with a mean of 64: 118 on average, five deviations of the mean of 850 gaps are 11.
        let mean = f64::from(gaps().sum::<u32>()) / gaps().count() as f64;
        assert!((mean - 118.0).abs() < 11.0, "{mean}");
    }

    #[test]
    fn bursts_short_delays_and_short_queues_lose_nothing_at_random() {
        let sure =
            Control { probability: 1.0, delay: TARGET, burst_left: Span::ZERO, added_up: 9.0, ..Control::default() };
        let mut stream = Streams::new(1).stream("queue");
        let mut drops = |control: Control, backlog| control.clone().drops_early(backlog, &mut stream);
        assert!(drops(sure.clone(), 3028));
        assert!(!drops(sure.clone(), 3027), "fewer than two full frames");
        assert!(!drops(Control { burst_left: Span::from_nanos(1), ..sure.clone() }, 15_140));
        assert!(!drops(Control { probability: 0.19, delay: TARGET / 2 - Span::from_nanos(1), ..sure }, 15_140));
        // 150 ms of departures use up the allowance for a burst.
        let mut control = Control::default();
        (0..=150).for_each(|millis| control.on_departure(ms(millis), TARGET, 3028));
        assert_eq!(control.burst_left, Span::ZERO);
    }
}
