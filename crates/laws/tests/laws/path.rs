//! A path that delivers a segment of 1448 bytes each millisecond, 40 ms there and back, to a law that steers.

use lasthop_laws::{INFINITE_SSTHRESH, Law, LawName, Sample, Start, Steering};

pub(crate) const RTT_US: u32 = 40_000;
pub(crate) const RTT_SEGMENTS: u32 = 40;
pub(crate) const SEGMENT_BYTES: u32 = 1448;
/// Of the path, in bytes a second.
pub(crate) const RATE: f64 = 1_448_000.0;
pub(crate) const OPEN: u32 = 0;
pub(crate) const RECOVERY: u32 = 3;

/// One acknowledged segment each millisecond.
pub(crate) struct Path {
    pub(crate) law: Law,
    pub(crate) steering: Steering,
    pub(crate) delivered: u32,
    pub(crate) lost: u32,
    pub(crate) state: u32,
}

impl Path {
    pub(crate) fn of(law: LawName) -> Self {
        let steering = Steering { cwnd_segments: 10, ssthresh_segments: INFINITE_SSTHRESH, ..Steering::default() };
        Self { law: Law::new(law, Start::default()), steering, delivered: 0, lost: 0, state: OPEN }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        u64::from(self.delivered)
    }

    /// The next millisecond's ACK; `change` alters what it says.
    pub(crate) fn ack_with(&mut self, change: impl FnOnce(&mut Sample)) -> Steering {
        self.delivered += 1;
        let now_us = self.now_ms() * 1000;
        let flight = self.steering.cwnd_segments.min(RTT_SEGMENTS);
        let mut sample = Sample {
            now_us,
            delivered_us: now_us,
            departs_us: now_us,
            interval_us: RTT_US,
            sampled_segments: RTT_SEGMENTS,
            prior_delivered_segments: self.delivered.saturating_sub(RTT_SEGMENTS),
            prior_in_flight_segments: flight,
            acked_segments: 1,
            in_flight_segments: flight,
            all_delivered_segments: self.delivered,
            rtt_us: RTT_US,
            srtt_us: RTT_US,
            min_rtt_us: RTT_US,
            segment_bytes: SEGMENT_BYTES,
            state: self.state,
            ..Sample::default()
        };
        change(&mut sample);
        self.lost += sample.lost_segments;
        sample.all_lost_segments = self.lost;
        self.law.on_sampled(&sample, &mut self.steering);
        self.steering
    }

    pub(crate) fn ack(&mut self) -> Steering {
        self.ack_with(|_| {})
    }

    pub(crate) fn for_ms(&mut self, ms: u32) -> Steering {
        (0..ms).map(|_| self.ack()).last().expect("at least one")
    }

    /// The pace in parts of what the path delivers; BBR sends 1 % less.
    pub(crate) fn gain(&self) -> f64 {
        self.steering.pace as f64 / (0.99 * RATE)
    }
}

pub(crate) fn near(left: f64, right: f64) -> bool {
    (left / right - 1.0).abs() < 0.01
}
