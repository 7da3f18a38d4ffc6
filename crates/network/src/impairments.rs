//! What a wire does to packets besides carrying them: losses in bursts, jitter, reordering, duplicates. Meanings are those of
//! Linux's netem, in one direction, behind the transmitter.
//!
//! ```text
//! bursts of loss   two states; bad loses all, good nothing (the model of Gilbert)      netem: loss gemodel p r
//!                  p = share / (burst (1 - share)) into bad, r = 1 / burst out of it   for each packet
//! jitter           delay + a normal draw; not below zero                               netem: delay D J distribution normal
//!                  packets arrive in order, or where their delays say                  with a pfifo inside; without
//! reorder          this share does not wait for the delay                              netem: reorder P%
//! duplicate        this share comes twice, each time with a delay of its own           netem: duplicate P%
//! bleached ECN     the ECN field arrives as 00 (RFC 9331 §5.4.1.1)                     none
//! ```
//!
//! A jitter in order delays more than it says: a packet that is late holds up all behind it.
//!
//! *Differs from netem*: a packet is lost or doubled, never both; draws are exact, not from a table of 16 bits.
//! *Leaves out*: correlations, `gap`, other distributions, corrupted packets.
//!
//! References: Linux, net/sched/sch_netem.c; E. N. Gilbert: Capacity of a burst-noise channel, Bell System Technical Journal 39,
//! 1960.

use crate::config::{ConfigError, check};
use crate::random::{Streams, happens, normal};
use lasthop_units::{Probability, Span, Time};
use rand_chacha::ChaCha8Rng;
use std::fmt::Display;

/// What one direction does to packets behind its transmitter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Impairments {
    /// The mean number of packets that are lost in a row, at least 1; `None` = losses are independent. A share of losses above
    /// burst / (burst + 1) is not possible.
    pub loss_burst: Option<f64>,
    /// The standard deviation of the delay, which is normal.
    pub jitter: Span,
    /// Whether a packet with a shorter delay overtakes. Otherwise it arrives right behind the one before.
    pub jitter_reorders: bool,
    /// The share of packets that have no delay.
    pub reorder: Probability,
    /// The share of packets that come twice. The copy takes no room in the queue, and no time.
    pub duplicate: Probability,
    /// Whether it clears the ECN field of all packets: they arrive as Not-ECT.
    pub bleaches_ecn: bool,
}

impl Impairments {
    /// None.
    pub const NONE: Self = Self {
        loss_burst: None,
        jitter: Span::ZERO,
        jitter_reorders: false,
        reorder: Probability::ZERO,
        duplicate: Probability::ZERO,
        bleaches_ecn: false,
    };

    /// Whether packets do not simply arrive after the delay.
    pub(crate) fn scatter(&self) -> bool {
        self.jitter > Span::ZERO || self.reorder > Probability::ZERO || self.duplicate > Probability::ZERO
    }

    /// Whether losses of this share may come in such bursts.
    pub(crate) fn validate<F: Display>(&self, field: F, loss: Probability) -> Result<(), ConfigError<F>> {
        let Some(burst) = self.loss_burst else { return Ok(()) };
        let least = if loss == Probability::ONE { 1.0 } else { (loss.get() / (1.0 - loss.get())).max(1.0) };
        // 0.9 / (1 - 0.9) is 9.000000000000002.
        let least = if (least - least.round()).abs() < 1e-9 { least.round() } else { least };
        check(burst >= least, field, || {
            (burst.to_string(), format!("{least} or more packets, for {} of all are lost", loss.get()))
        })
    }
}

/// Which packets are lost.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    pub(crate) share: Probability,
    burst: Option<f64>,
    is_bad: bool,
    stream: ChaCha8Rng,
}

impl Losses {
    pub(crate) const fn new(share: Probability, burst: Option<f64>, stream: ChaCha8Rng) -> Self {
        Self { share, burst, is_bad: false, stream }
    }

    /// Whether the next packet is lost.
    #[inline]
    pub(crate) fn take_next(&mut self) -> bool {
        match self.burst {
            None => happens(self.share, &mut self.stream),
            Some(burst) => self.take_next_of_bursts(burst),
        }
    }

    fn take_next_of_bursts(&mut self, burst: f64) -> bool {
        if self.share == Probability::ZERO || self.share == Probability::ONE {
            return self.share == Probability::ONE;
        }
        let is_lost = self.is_bad;
        let share = self.share.get();
        let moves = if self.is_bad { 1.0 / burst } else { (share / (burst * (1.0 - share))).min(1.0) };
        let moves = Probability::new(moves.min(1.0)).expect("a quotient of positive numbers, at most 1");
        self.is_bad ^= happens(moves, &mut self.stream);
        is_lost
    }
}

/// When packets arrive that do not simply arrive after the delay.
#[derive(Clone, Debug)]
pub(crate) struct Scatter {
    jitter_reorders: bool,
    reorder: Probability,
    duplicate: Probability,
    jitter_stream: ChaCha8Rng,
    reorder_stream: ChaCha8Rng,
    duplicate_stream: ChaCha8Rng,
}

impl Scatter {
    /// Its random streams are `name`/jitter, `name`/reorder and `name`/duplicate.
    pub(crate) fn new(impairments: &Impairments, streams: Streams, name: &str) -> Self {
        let stream = |what| streams.stream(&format!("{name}/{what}"));
        Self {
            jitter_reorders: impairments.jitter_reorders,
            reorder: impairments.reorder,
            duplicate: impairments.duplicate,
            jitter_stream: stream("jitter"),
            reorder_stream: stream("reorder"),
            duplicate_stream: stream("duplicate"),
        }
    }

    /// Whether the next packet comes twice.
    pub(crate) fn doubles(&mut self) -> bool {
        happens(self.duplicate, &mut self.duplicate_stream)
    }

    /// The arrival of a packet sent at this time, behind the one that arrives at `last`.
    pub(crate) fn arrival(&mut self, sent: Time, delay: Span, jitter: Span, last: &mut Time) -> Time {
        if happens(self.reorder, &mut self.reorder_stream) {
            return sent;
        }
        let mut at = sent + delay;
        if jitter > Span::ZERO {
            let shift = normal(&mut self.jitter_stream) * jitter.as_secs_f64();
            let by = Span::from_secs_f64(shift.abs());
            at = if shift < 0.0 { sent + delay.saturating_sub(by) } else { at + by };
        }
        if !self.jitter_reorders {
            at = at.max(*last);
            *last = at;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 100_000;

    fn probability(share: f64) -> Probability {
        Probability::new(share).unwrap()
    }

    /// The share of losses, and the mean length of their runs.
    fn bursts(share: f64, burst: Option<f64>) -> (f64, f64) {
        let mut losses = Losses::new(probability(share), burst, Streams::new(1).stream("link/loss"));
        let lost: Vec<bool> = (0..DRAWS).map(|_| losses.take_next()).collect();
        let runs = lost.chunk_by(|one, next| one == next).filter(|run| run[0]).count();
        let all = lost.iter().filter(|lost| **lost).count();
        (all as f64 / DRAWS as f64, all as f64 / runs as f64)
    }

    #[test]
    fn losses_in_bursts_have_the_share_and_the_mean_length() {
        // 200 bursts of 5 in 20,000 packets: p = 0.05 / (5 × 0.95), r = 1/5. In 100,000 some 1000 bursts, whose number and lengths
        // deviate by some 3 % each; five of both together are 0.2.
        let (share, length) = bursts(0.05, Some(5.0));
        assert!((share / 0.05 - 1.0).abs() < 0.2 && (length / 5.0 - 1.0).abs() < 0.15, "{share}, {length}");
        // Independent losses of this share have runs of 1 / (1 - 0.05).
        let (share, length) = bursts(0.05, None);
        assert!((share - 0.05).abs() < 0.004 && (length - 1.0526).abs() < 0.02, "{share}, {length}");
        assert_eq!(bursts(0.0, Some(5.0)).0, 0.0);
        assert_eq!(bursts(1.0, Some(5.0)).0, 1.0);
    }

    fn scatter(impairments: Impairments) -> Scatter {
        Scatter::new(&impairments, Streams::new(1), "link")
    }

    /// How long packets take, sent each 10 ms, with a delay of 100 ms.
    fn took(impairments: Impairments) -> Vec<f64> {
        let mut scatter = scatter(impairments);
        let mut last = Time::ZERO;
        let sent = |number: usize| Time::ZERO + Span::from_millis(10 * number as u64);
        let arrival = |number| scatter.arrival(sent(number), Span::from_millis(100), impairments.jitter, &mut last);
        (0..DRAWS).map(arrival).zip(0..).map(|(at, number)| (at - sent(number)).as_millis_f64()).collect()
    }

    #[test]
    fn jitter_is_normal_around_the_delay() {
        let jitter = Span::from_millis(20);
        let took = took(Impairments { jitter, jitter_reorders: true, ..Impairments::NONE });
        let mean = took.iter().sum::<f64>() / DRAWS as f64;
        let deviation = (took.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / DRAWS as f64).sqrt();
        // Of a normal distribution 15.87 % lie above one deviation, and 2.28 % below two; five deviations of these shares are 0.6 %
        // and 0.24 %.
        let share =
            |beyond: &dyn Fn(f64) -> bool| took.iter().filter(|one| beyond(**one)).count() as f64 / DRAWS as f64;
        assert!((mean - 100.0).abs() < 0.4 && (deviation - 20.0).abs() < 0.3, "{mean}, {deviation}");
        assert!((share(&|one| one > 120.0) - 0.1587).abs() < 0.006);
        assert!((share(&|one| one < 60.0) - 0.0228).abs() < 0.0025);
    }

    #[test]
    fn who_keeps_the_order_waits_for_those_before() {
        let jitter = Span::from_millis(20);
        let kept = took(Impairments { jitter, ..Impairments::NONE });
        let free = took(Impairments { jitter, jitter_reorders: true, ..Impairments::NONE });
        // The same draws: each arrives with the latest until then.
        let arrivals =
            |took: &[f64]| took.iter().enumerate().map(|(number, took)| 10.0 * number as f64 + took).collect();
        let (kept, free): (Vec<f64>, Vec<f64>) = (arrivals(&kept), arrivals(&free));
        let mut latest = 0.0_f64;
        for (kept, free) in kept.into_iter().zip(free) {
            latest = latest.max(free);
            assert!((kept - latest).abs() < 1e-5, "{kept}, {latest}");
        }
    }

    #[test]
    fn a_share_does_not_wait_and_a_share_comes_twice() {
        let quarter = probability(0.25);
        let took = took(Impairments { reorder: quarter, ..Impairments::NONE });
        // Binomial(100000, 1/4): 25000, five deviations are 685.
        let at_once = took.iter().filter(|one| **one == 0.0).count();
        assert!(at_once.abs_diff(25_000) < 685 && took.iter().all(|one| [0.0, 100.0].contains(one)), "{at_once}");
        let mut scatter = scatter(Impairments { duplicate: quarter, ..Impairments::NONE });
        let twice = (0..DRAWS).filter(|_| scatter.doubles()).count();
        assert!(twice.abs_diff(25_000) < 685, "{twice}");
    }

    #[test]
    fn more_losses_than_packets_between_bursts_are_refused() {
        // Bursts of 2 have at least one packet between them: two of three at most.
        let burst = Impairments { loss_burst: Some(2.0), ..Impairments::NONE };
        assert_eq!(burst.validate("loss_burst", probability(0.66)), Ok(()));
        let error = burst.validate("loss_burst", probability(0.75)).unwrap_err().to_string();
        assert_eq!(error, "loss_burst is 2; accepted: 3 or more packets, for 0.75 of all are lost");
        for (loss, burst) in [(0.9, 9.0), (0.8, 4.0)] {
            let exact = Impairments { loss_burst: Some(burst), ..Impairments::NONE };
            assert_eq!(
                exact.validate("loss_burst", Probability::new(loss).expect("a share")).map_err(|e| e.to_string()),
                Ok(())
            );
        }
    }
}
