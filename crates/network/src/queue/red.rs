//! RED: drops at random before the queue, the more likely the longer the queue is on average.
//!
//! ```text
//! avg := avg + w (q - avg)            at each arrival; q: bytes in the queue            [floyd93] eq. 2, 3
//! avg := (1 - w)^m avg                after idle time: m small packets could have gone  [floyd93] §4
//! avg < min                           none is dropped
//! min <= avg < max                    with p_b = max_p (avg - min) / (max - min), spread evenly: after each drop number
//!                                     R / p_b is next, with R uniform in 0..1           [floyd93] §7, method 2
//! max <= avg                          all are dropped
//! ```
//!
//! Parameters are what `tc qdisc add ... red limit L avpkt 1000` makes of a limit: max = L / 4, min = max / 3, max_p = 0.02, burst =
//! (2 min + max) / (3 avpkt), w the power of 2 for which a burst of that many packets brings the average just to min. Idle time counts
//! by packets of `avpkt` at 10 Mb/s, as with tc.
//!
//! What can be marked is marked instead of dropped, also above max, as Linux's `red ... ecn` has it; the limit still drops.
//!
//! *Leaves out*: `adaptive`. Linux has no gentle RED.
//!
//! References: S. Floyd, V. Jacobson: Random early detection gateways for congestion avoidance, IEEE/ACM Transactions on Networking
//! 1(4), 1993; Linux 6.12, net/sched/sch_red.c, include/net/red.h; iproute2, tc/tc_red.c, tc/q_red.c.

use super::ack_filter::Filter;
use super::packet_queue::{MAX_FRAME_BYTES, PacketQueue};
use super::{Desk, Scheduler, Served, Setup};
use crate::packet::{Destination, Packet};
use crate::statistics::Cause;
use lasthop_units::{Bytes, Span, Time};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

/// avpkt: the example of tc-red(8).
const AVERAGE_PACKET_BYTES: f64 = 1000.0;
/// The time of such a packet at tc's default bandwidth, 10 Mb/s.
const SMALL: Span = Span::from_micros(800);
/// max_p: tc's default.
const MAX_P: f64 = 0.02;

pub(crate) type Red<P> = Served<P, OneQueue<P>>;

/// One queue under RED.
#[derive(Clone, Debug)]
pub(crate) struct OneQueue<P> {
    queue: PacketQueue<P>,
    control: Control,
    stream: ChaCha8Rng,
}

impl<P> Red<P> {
    pub(super) fn new(setup: Setup<'_>) -> Self {
        let control = Control::new(setup.limit as u64 * MAX_FRAME_BYTES);
        let stream = setup.streams.stream(setup.name);
        Self::of(OneQueue { queue: PacketQueue::new(), control, stream }, setup)
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
        if self.control.drops(now, self.queue.bytes(), &mut self.stream) && !desk.mark(&mut packet) {
            return desk.turn_away(now, Cause::Early, packet);
        }
        if !has_room {
            return desk.refuse(now, packet);
        }
        self.queue.push(now, packet);
        Ok(())
    }

    /// The idle time begins when the queue is asked for its last packet, as in Linux when it is found empty.
    fn next(
        &mut self,
        now: Time,
        to: Option<Destination>,
        fits: &dyn Fn(Bytes) -> bool,
        _desk: &mut Desk<P>,
    ) -> Option<Packet<P>> {
        let (_, packet) = self.queue.pop_to(to, fits)?;
        if self.queue.is_empty() {
            self.control.idle_since = Some(now);
        }
        Some(packet)
    }

    fn thin(&mut self, new: &Packet<P>, filter: &Filter<P>) -> Option<Packet<P>> {
        self.queue.thin(new, filter)
    }
}

/// `red_parms` and `red_vars`, in bytes.
#[derive(Clone, Debug)]
struct Control {
    min: f64,
    max: f64,
    weight: f64,
    average: f64,
    /// Packets since the last one that was dropped at random; `None`: none came since the average was outside.
    count: Option<u64>,
    /// R, in packets of the probability 1.
    next: f64,
    idle_since: Option<Time>,
}

impl Control {
    fn new(limit: u64) -> Self {
        let max = (limit / 4).max(1) as f64;
        let min = max / 3.0;
        let burst = ((2.0 * min + max) / (3.0 * AVERAGE_PACKET_BYTES)).floor();
        Self { min, max, weight: weight(min, burst), average: 0.0, count: None, next: 0.0, idle_since: None }
    }

    /// Whether a packet that comes is dropped: `red_enqueue`, with this many bytes in the queue.
    fn drops(&mut self, now: Time, backlog: u64, stream: &mut ChaCha8Rng) -> bool {
        match self.idle_since.take() {
            None => self.average += self.weight * (backlog as f64 - self.average),
            Some(since) => {
                let packets = (now - since).as_nanos() / SMALL.as_nanos();
                self.average *= (1.0 - self.weight).powi(i32::try_from(packets).unwrap_or(i32::MAX));
            }
        }
        if self.average < self.min || self.average >= self.max {
            self.count = None;
            return self.average >= self.max;
        }
        let share = (self.average - self.min) / (self.max - self.min);
        match &mut self.count {
            Some(count) => {
                *count += 1;
                if (*count as f64) * share * MAX_P < self.next {
                    return false;
                }
                (self.count, self.next) = (Some(0), stream.random::<f64>());
                true
            }
            None => {
                (self.count, self.next) = (Some(0), stream.random::<f64>());
                false
            }
        }
    }
}

/// `tc_red_eval_ewma`: the first power of 2 with burst + 1 - min / avpkt <= (1 - (1 - w)^burst) / w; else the smallest.
fn weight(min: f64, burst: f64) -> f64 {
    let behind = burst + 1.0 - min / AVERAGE_PACKET_BYTES;
    let weights = (1..32).map(|log| 0.5_f64.powi(log));
    let reaches = |weight: &f64| behind <= (1.0 - (1.0 - weight).powi(burst as i32)) / weight;
    weights.clone().find(reaches).unwrap_or(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Streams;

    #[test]
    fn the_weight_lets_a_burst_through() {
        // [floyd93] §6: with min = 5 packets, a burst of 50 gets through if w <= 0.0042; the powers of 2 below are 1/256 and 1/512,
        // and tc's rule, which starts from the packet before, takes 1/512.
        assert_eq!(weight(5.0 * AVERAGE_PACKET_BYTES, 50.0), 1.0 / 512.0);
        // 100 full frames: max 37850, min 12616.7, a burst of 21; 9.4 <= (1 - (15/16)^21) × 16 = 11.9, and 7.5 for 1/8.
        let control = Control::new(100 * MAX_FRAME_BYTES);
        assert_eq!((control.max, control.weight), (37_850.0, 1.0 / 16.0));
    }

    /// Which of so many arrivals are dropped, with this many bytes in the queue all the time and on average.
    fn dropped(backlog: u64, arrivals: u32) -> Vec<u32> {
        let mut control = Control { average: backlog as f64, ..Control::new(100 * MAX_FRAME_BYTES) };
        let mut stream = Streams::new(1).stream("queue");
        (0..arrivals).filter(|_| control.drops(Time::ZERO, backlog, &mut stream)).collect()
    }

    #[test]
    fn drops_are_spread_evenly_between_the_thresholds() {
        assert_eq!(dropped(12_616, 1000), []);
        assert_eq!(dropped(37_850, 1000).len(), 1000);
        // Half-way: p_b = 0.01. [floyd93] §7: the gap is uniform in 1..=100, 50.5 on average with a deviation of 28.9; of the mean of
        // 1980 gaps five deviations are 3.3.
        let dropped = dropped(25_233, 100_000);
        let gaps = || dropped.windows(2).map(|pair| pair[1] - pair[0]);
        let mean = f64::from(gaps().sum::<u32>()) / gaps().count() as f64;
        assert!((mean - 50.5).abs() < 3.3 && gaps().all(|gap| gap <= 101), "{mean}");
    }

    #[test]
    fn the_average_follows_the_queue_and_idle_time() {
        let mut control = Control::new(100 * MAX_FRAME_BYTES);
        let mut stream = Streams::new(1).stream("queue");
        (0..3).for_each(|_| assert!(!control.drops(Time::ZERO, 16_000, &mut stream)));
        // 16000 (1 - (15/16)^3) = 2816.40625.
        assert_eq!(control.average, 2_816.406_25);
        // 8 ms at 10 Mb/s are ten packets of 1000 bytes: × (15/16)^10.
        control.idle_since = Some(Time::ZERO);
        control.drops(Time::ZERO + Span::from_millis(8), 0, &mut stream);
        assert!((control.average - 2_816.406_25 * (15.0_f64 / 16.0).powi(10)).abs() < 1e-6);
    }
}
