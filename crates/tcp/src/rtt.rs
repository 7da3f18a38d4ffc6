//! Round-trip times: the smoothed RTT, the retransmission timeout, the lowest RTT.
//!
//! ```text
//! RFC 6298 §2   first R:  SRTT = R, RTTVAR = R/2
//!               then:     RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|,  SRTT = 7/8 SRTT + 1/8 R
//!               RTO = max(SRTT + max(G, 4 RTTVAR), floor)
//! Linux         the same with mdev for RTTVAR, but 1/32 of the deviation, not 1/4, if R < SRTT - mdev;
//!               RTTVAR = largest mdev of this round trip and, falling by a quarter a round trip, of earlier ones;
//!               4 RTTVAR >= floor;  RTO = SRTT + 4 RTTVAR
//! ```
//!
//! With Linux's floor RTO >= SRTT + 200 ms. This prevents timeouts while a queue fills for seconds, if the RTT grows by
//! less than 200 ms a round trip.
//!
//! *What it leaves out*: the jiffies of Linux before 4.13 (samples here are to the nanosecond), and the 3 s of RFC 6298
//! §5.7 after a lost SYN.

use crate::config::{Config, RtoEstimator};
use lasthop_units::{Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    estimator: RtoEstimator,
    floor_ns: u64,
    ceiling_ns: u64,
    initial_ns: u64,
    /// 8 SRTT, so that the shift is exact (Jacobson 1988, appendix A). 0: no sample yet.
    srtt8_ns: u64,
    /// 4 RTTVAR; with Linux's estimator 4 mdev.
    deviation4_ns: u64,
    /// Linux: 4 RTTVAR, at least the floor.
    rttvar4_ns: u64,
    /// Linux: the largest deviation in this round trip.
    round_max4_ns: u64,
    /// Linux: a round trip ends when this is acknowledged.
    round_end: u64,
    latest_ns: u64,
    rto: Span,
}

impl RttEstimator {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            estimator: config.rto_estimator,
            floor_ns: config.rto_min.as_nanos(),
            ceiling_ns: config.rto_max.as_nanos(),
            initial_ns: config.rto_initial.as_nanos(),
            srtt8_ns: 0,
            deviation4_ns: 0,
            rttvar4_ns: 0,
            round_max4_ns: 0,
            round_end: 0,
            latest_ns: 0,
            rto: config.rto_initial,
        }
    }

    /// Takes a sample from an ACK after which snd_una and snd_nxt are as given.
    pub(crate) fn on_sample(&mut self, sample: Span, snd_una: u64, snd_nxt: u64) {
        let r = sample.as_nanos().max(1);
        self.latest_ns = r;
        match self.estimator {
            RtoEstimator::Rfc6298 => self.sample_rfc6298(r),
            RtoEstimator::Linux => self.sample_linux(r, snd_una, snd_nxt),
        }
        let variance = match self.estimator {
            RtoEstimator::Rfc6298 => self.deviation4_ns.max(1), // G, the clock's granularity, is one nanosecond
            RtoEstimator::Linux => self.rttvar4_ns,
        };
        let mut rto = self.srtt8_ns / 8 + variance;
        if self.estimator == RtoEstimator::Rfc6298 {
            rto = rto.max(self.floor_ns);
        }
        self.rto = Span::from_nanos(rto.min(self.ceiling_ns));
    }

    fn sample_rfc6298(&mut self, r: u64) {
        if self.srtt8_ns == 0 {
            self.srtt8_ns = 8 * r;
            self.deviation4_ns = 2 * r;
        } else {
            let deviation = (self.srtt8_ns / 8).abs_diff(r);
            self.deviation4_ns = self.deviation4_ns - self.deviation4_ns / 4 + deviation;
            self.srtt8_ns = self.srtt8_ns - self.srtt8_ns / 8 + r;
        }
    }

    fn sample_linux(&mut self, r: u64, snd_una: u64, snd_nxt: u64) {
        if self.srtt8_ns == 0 {
            self.srtt8_ns = 8 * r;
            self.deviation4_ns = 2 * r;
            self.rttvar4_ns = self.deviation4_ns.max(self.floor_ns);
            self.round_max4_ns = self.rttvar4_ns;
            self.round_end = snd_nxt;
            return;
        }
        let srtt = self.srtt8_ns / 8;
        let mdev = self.deviation4_ns / 4;
        let deviation = srtt.abs_diff(r);
        self.srtt8_ns = self.srtt8_ns - srtt + r;
        self.deviation4_ns = if deviation < mdev {
            self.deviation4_ns - (mdev - deviation)
        } else if r < srtt {
            self.deviation4_ns + (deviation - mdev) / 8
        } else {
            self.deviation4_ns + (deviation - mdev)
        };
        if self.deviation4_ns > self.round_max4_ns {
            self.round_max4_ns = self.deviation4_ns;
            self.rttvar4_ns = self.rttvar4_ns.max(self.round_max4_ns);
        }
        if snd_una > self.round_end {
            if self.round_max4_ns < self.rttvar4_ns {
                self.rttvar4_ns -= (self.rttvar4_ns - self.round_max4_ns) / 4;
            }
            self.round_end = snd_nxt;
            self.round_max4_ns = self.floor_ns;
        }
    }

    pub(crate) fn srtt(&self) -> Option<Span> {
        (self.srtt8_ns > 0).then(|| Span::from_nanos(self.srtt8_ns / 8))
    }

    /// The smoothed RTT, or 0 before the first sample.
    pub(crate) fn srtt_ns(&self) -> u64 {
        self.srtt8_ns / 8
    }

    pub(crate) fn rttvar(&self) -> Option<Span> {
        let variance4_ns = match self.estimator {
            RtoEstimator::Rfc6298 => self.deviation4_ns,
            RtoEstimator::Linux => self.rttvar4_ns,
        };
        (self.srtt8_ns > 0).then(|| Span::from_nanos(variance4_ns / 4))
    }

    /// The latest sample.
    pub(crate) fn latest(&self) -> Option<Span> {
        (self.srtt8_ns > 0).then(|| Span::from_nanos(self.latest_ns))
    }

    /// The timeout without backoff.
    pub(crate) fn rto(&self) -> Span {
        self.rto
    }

    /// The timeout after `backoff` doublings, at most the ceiling: RFC 6298 (5.5).
    pub(crate) fn backed_off(&self, backoff: u32) -> Span {
        let nanos = self.rto.as_nanos().saturating_mul(1 << backoff.min(32));
        Span::from_nanos(nanos.min(self.ceiling_ns))
    }

    /// The timeout before the first sample.
    pub(crate) fn initial(&self) -> Span {
        Span::from_nanos(self.initial_ns)
    }

    pub(crate) fn floor(&self) -> Span {
        Span::from_nanos(self.floor_ns)
    }
}

/// The lowest RTT of the last `window`: K. Nichols' filter of three samples, as in Linux's `lib/win_minmax.c`. It keeps
/// the lowest, the lowest after it, and the lowest after that, each from its part of the window.
#[derive(Clone, Debug)]
pub(crate) struct MinRtt {
    window: Span,
    best: [(Time, Span); 3],
}

impl MinRtt {
    pub(crate) fn new(window: Span) -> Self {
        Self { window, best: [(Time::ZERO, Span::MAX); 3] }
    }

    pub(crate) fn get(&self) -> Option<Span> {
        (self.best[0].1 < Span::MAX).then_some(self.best[0].1)
    }

    /// The lowest in nanoseconds; `u64::MAX` before the first sample.
    pub(crate) fn nanos(&self) -> u64 {
        self.best[0].1.as_nanos()
    }

    pub(crate) fn on_sample(&mut self, now: Time, rtt: Span) {
        let sample = (now, rtt);
        let age = |of: &(Time, Span)| now.saturating_since(of.0);
        if rtt <= self.best[0].1 || age(&self.best[2]) > self.window {
            self.best = [sample; 3];
            return;
        }
        if rtt <= self.best[1].1 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if rtt <= self.best[2].1 {
            self.best[2] = sample;
        }
        if age(&self.best[0]) > self.window {
            self.best = [self.best[1], self.best[2], sample];
            if age(&self.best[0]) > self.window {
                self.best = [self.best[1], sample, sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age(&self.best[1]) > self.window / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && age(&self.best[2]) > self.window / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn estimator(kind: RtoEstimator, floor: Span) -> RttEstimator {
        RttEstimator::new(&Config { rto_estimator: kind, rto_min: floor, ..Config::linux_2012() })
    }

    const MS: fn(u64) -> Span = Span::from_millis;

    #[test]
    fn the_first_two_samples_give_what_rfc_6298_says() {
        let mut rtt = estimator(RtoEstimator::Rfc6298, MS(1));
        assert_eq!(rtt.rto(), Span::from_secs(1)); // §2.1
        rtt.on_sample(MS(100), 0, 0);
        // §2.2: SRTT = 100, RTTVAR = 50, RTO = 100 + 4 * 50
        assert_eq!((rtt.srtt(), rtt.rttvar(), rtt.rto()), (Some(MS(100)), Some(MS(50)), MS(300)));
        rtt.on_sample(MS(180), 0, 0);
        // §2.3: RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5, SRTT = 7/8 * 100 + 1/8 * 180 = 110, RTO = 110 + 230
        assert_eq!((rtt.srtt(), rtt.rttvar(), rtt.rto()), (Some(MS(110)), Some(Span::from_micros(57_500)), MS(340)));
    }

    #[test]
    fn rfc_6298_floors_the_sum() {
        let mut rtt = estimator(RtoEstimator::Rfc6298, Span::from_secs(1));
        rtt.on_sample(MS(100), 0, 0);
        assert_eq!(rtt.rto(), Span::from_secs(1)); // §2.4: 300 ms is below 1 s
    }

    #[test]
    fn linux_floors_the_variance() {
        let mut rtt = estimator(RtoEstimator::Linux, MS(200));
        rtt.on_sample(MS(40), 0, 1);
        // RTO = 40 + max(2 * 40, 200)
        assert_eq!(rtt.rto(), MS(240));
        for round in 1..200 {
            rtt.on_sample(MS(40), round + 1, round + 1);
        }
        assert_eq!(rtt.rto(), MS(240)); // no deviation at all, and still 200 ms above
        let mut slow = estimator(RtoEstimator::Linux, MS(200));
        slow.on_sample(Span::from_secs(12), 0, 1);
        assert_eq!(slow.rto(), Span::from_secs(36)); // 12 + 2 * 12
    }

    #[test]
    fn linux_lets_a_falling_rtt_add_an_eighth() {
        let mut rtt = estimator(RtoEstimator::Linux, MS(1));
        rtt.on_sample(MS(800), 0, 100);
        rtt.on_sample(MS(800), 0, 100); // deviation 0: 4 mdev = 1600 - 400 = 1200, mdev = 300
        // 400 ms: deviation 400 from SRTT 800, 100 more than mdev, of which an eighth counts: 4 mdev = 1212.5
        rtt.on_sample(MS(400), 0, 100);
        assert_eq!(rtt.deviation4_ns, 1_212_500_000);
        assert_eq!(rtt.srtt(), Some(MS(750))); // 800 - 100 + 50
    }

    #[test]
    fn backoff_doubles_up_to_the_ceiling() {
        let mut rtt = estimator(RtoEstimator::Linux, MS(200));
        rtt.on_sample(MS(100), 0, 0);
        let timeouts: Vec<f64> = (0..11).map(|backoff| rtt.backed_off(backoff).as_secs_f64()).collect();
        assert_eq!(timeouts, [0.3, 0.6, 1.2, 2.4, 4.8, 9.6, 19.2, 38.4, 76.8, 120.0, 120.0]);
    }

    #[test]
    fn a_lowest_rtt_is_forgotten_when_its_window_is_over() {
        let mut lowest = MinRtt::new(Span::from_secs(300));
        assert_eq!(lowest.get(), None);
        lowest.on_sample(Time::ZERO, MS(4));
        for second in 1..=300 {
            lowest.on_sample(Time::ZERO + Span::from_secs(second), MS(100 + second));
            assert_eq!(lowest.get(), Some(MS(4)));
        }
        // The second best was sampled a quarter into the window, 76 s after the start.
        lowest.on_sample(Time::ZERO + Span::from_secs(301), MS(500));
        assert_eq!(lowest.get(), Some(MS(176)));
    }

    proptest! {
        #[test]
        fn the_lowest_rtt_lies_between_the_lowest_of_all_and_of_the_last_half_window(
            samples in prop::collection::vec((1..400_u64, 1..1000_u64), 1..80)
        ) {
            let window = Span::from_millis(1000);
            let (mut lowest, mut now, mut all) = (MinRtt::new(window), Time::ZERO, Vec::new());
            for (gap_ms, rtt_ms) in samples {
                now += MS(gap_ms);
                lowest.on_sample(now, MS(rtt_ms));
                all.push((now, MS(rtt_ms)));
                let since = |age: Span| all.iter().filter(move |(at, _)| now.saturating_since(*at) <= age);
                let got = lowest.get().expect("there is a sample");
                prop_assert!(got >= all.iter().map(|(_, rtt)| *rtt).min().expect("there is a sample"));
                // The three samples may miss one that is neither the lowest nor in the last quarter.
                prop_assert!(got <= since(window / 4).map(|(_, rtt)| *rtt).max().expect("there is a sample"));
            }
        }

        #[test]
        fn a_timeout_is_above_the_smoothed_rtt_and_within_its_limits(
            kind in prop_oneof![Just(RtoEstimator::Rfc6298), Just(RtoEstimator::Linux)],
            samples in prop::collection::vec(1..20_000_000_u64, 1..100),
        ) {
            let mut rtt = estimator(kind, MS(200));
            for (round, micros) in samples.into_iter().enumerate() {
                rtt.on_sample(Span::from_micros(micros), round as u64, round as u64 + 3);
                let srtt = rtt.srtt().expect("there is a sample");
                prop_assert!(rtt.rto() >= srtt && rtt.rto() >= MS(200) && rtt.rto() <= Span::from_secs(120));
                if kind == RtoEstimator::Linux {
                    prop_assert!(rtt.rto() >= srtt + MS(200));
                }
            }
        }
    }
}
