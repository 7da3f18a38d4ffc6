//! A law of the second form at quinn's events: it is told of the delivery, and sets its window and its pace.
//!
//! quinn has no pace of a controller's. It asks for a window before each datagram and spreads 1.25 of it over a round trip, but not one of
//! more than 2^32 bytes. So this one answers with such a window while the law's has room and the pace lets a datagram go, and else with
//! one that is full. Then quinn sends what congestion does not limit: acknowledgements and probes. [`Gate`] wakes the end in time.
//!
//! Before the law has set a pace quinn's own holds. Losses that an acknowledgement reveals are in the sample of the next one, for quinn
//! tells of them after it.

use crate::controller::Counts;
use crate::law::{INITIAL_WINDOW, small};
use crate::rate::Departures;
use lasthop_laws::{Acked, Choice, INFINITE_SSTHRESH, Law, Lost, Sample, Sent, Start, Steering, Window};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Datagrams at the start of a connection that are not paced, as `lasthop_tcp` has it.
const UNPACED: u32 = 10;
/// A window that quinn does not pace.
const UNPACED_WINDOW: u64 = u64::MAX / 2;
/// A window that is full.
const FULL_WINDOW: u64 = 1;

/// What a connection's end and its law know of each other, in nanoseconds since the end began. quinn's controllers are asked for their
/// window without the time.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    pub(crate) now: AtomicU64,
    /// When the pace lets the next datagram go.
    departs: AtomicU64,
    /// Since the end last asked, the pace alone has held a datagram back.
    waits: AtomicBool,
}

impl Gate {
    /// When the end must ask again; `None`: the pace holds nothing back.
    pub(crate) fn wait(&self) -> Option<u64> {
        self.waits.swap(false, Relaxed).then(|| self.departs.load(Relaxed))
    }
}

/// A congestion control that a law steers.
#[derive(Clone)]
pub(crate) struct Steered {
    law: Law,
    steering: Steering,
    counts: Arc<Counts>,
    base: Instant,
    datagram_bytes: u64,
    departures: Departures,
    /// When a reduction began, and its state ([`Sample::state`]): a datagram that left after it ends it.
    reduced: Option<(Instant, u32)>,
    sent_bytes: u64,
    sent_datagrams: u32,
    sent_at: Instant,
    in_flight_bytes: u64,
    /// Before the acknowledgement under way.
    prior_in_flight: Option<u32>,
    acked_bytes: u64,
    newest: Option<Instant>,
    lost_segments: u32,
    /// Of them, those that no sample had yet.
    untold: u32,
    srtt: Duration,
    min_rtt: Duration,
}

impl Steered {
    pub(crate) fn new(law: Choice, now: Instant, mtu: u16, counts: Arc<Counts>) -> Self {
        Self {
            law: Law::new(law, Start::default()),
            steering: Steering {
                cwnd_segments: INITIAL_WINDOW,
                ssthresh_segments: INFINITE_SSTHRESH,
                ..Steering::default()
            },
            counts,
            base: now,
            datagram_bytes: mtu.into(),
            departures: Departures::new(now),
            reduced: None,
            sent_bytes: 0,
            sent_datagrams: 0,
            sent_at: now,
            in_flight_bytes: 0,
            prior_in_flight: None,
            acked_bytes: 0,
            newest: None,
            lost_segments: 0,
            untold: 0,
            srtt: Duration::ZERO,
            min_rtt: Duration::ZERO,
        }
    }

    fn gate(&self) -> &Gate {
        &self.counts.gate
    }

    fn segments(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(self.datagram_bytes)).unwrap_or(u32::MAX)
    }

    fn us(&self, at: Instant) -> u64 {
        u64::try_from((at - self.base).as_micros()).unwrap_or(u64::MAX)
    }

    fn unacked(&self) -> u32 {
        self.sent_bytes.saturating_sub(self.in_flight_bytes) as u32
    }

    fn window_bytes(&self) -> u64 {
        u64::from(self.steering.cwnd_segments) * self.datagram_bytes
    }

    /// When the pace lets a datagram go that is sent at `now` at the earliest. The gate has the end's time, which runs as this one's.
    fn departs_us(&self, now: Instant) -> u64 {
        let wait = self.gate().departs.load(Relaxed).saturating_sub(self.gate().now.load(Relaxed));
        self.us(now) + wait / 1000
    }

    /// All but what an acknowledgement says.
    fn sample(&self, now: Instant) -> Sample {
        let in_flight_segments = self.segments(self.in_flight_bytes);
        Sample {
            now_us: self.us(now),
            delivered_us: self.departures.rate.delivered_at().as_nanos() / 1000,
            departs_us: self.departs_us(now),
            prior_in_flight_segments: in_flight_segments,
            in_flight_segments,
            all_delivered_segments: self.departures.rate.delivered(),
            all_lost_segments: self.lost_segments,
            srtt_us: small(self.srtt),
            min_rtt_us: small(self.min_rtt),
            snd_una: self.unacked(),
            snd_nxt: self.sent_bytes as u32,
            segment_bytes: u32::try_from(self.datagram_bytes).unwrap_or(u32::MAX),
            all_marked_segments: self.counts.marked.load(Relaxed) as u32,
            state: self.reduced.map_or(Sample::OPEN, |(_, state)| state),
            ..Sample::default()
        }
    }

    fn lost(&self, now: Instant, lost_segments: u32) -> Lost {
        Lost {
            now_us: self.us(now),
            in_flight_segments: self.segments(self.in_flight_bytes),
            srtt_us: small(self.srtt),
            min_rtt_us: small(self.min_rtt),
            snd_una: self.unacked(),
            snd_nxt: self.sent_bytes as u32,
            flags: Acked::PACED,
            segments_sent: self.sent_datagrams,
            retransmits: self.lost_segments,
            lost_segments,
            ..Lost::default()
        }
    }

    fn steer(&mut self, event: impl FnOnce(&mut Law, &mut Steering)) {
        self.steering.app_limited = 0;
        event(&mut self.law, &mut self.steering);
        self.steering.cwnd_segments = self.steering.cwnd_segments.max(1);
        if self.steering.app_limited != 0 {
            self.departures.rate.on_app_limited(self.segments(self.in_flight_bytes));
        }
    }

    /// The round trip of the newest datagram that was acknowledged: RFC 6298 §2.
    fn take_rtt(&mut self, rtt: Duration) {
        let is_first = self.srtt.is_zero();
        self.srtt = if is_first { rtt } else { (self.srtt * 7 + rtt) / 8 };
        self.min_rtt = if is_first { rtt } else { self.min_rtt.min(rtt) };
    }
}

impl Controller for Steered {
    fn on_sent(&mut self, now: Instant, bytes: u64, _: u64) {
        let in_flight_before = self.segments(self.in_flight_bytes);
        if self.in_flight_bytes == 0 && self.departures.rate.is_app_limited() {
            let sample = self.sample(now);
            self.steer(|law, steering| law.on_resumed(&sample, steering));
        }
        self.departures.on_sent(now, self.in_flight_bytes > 0);
        self.sent_bytes += bytes;
        self.in_flight_bytes += bytes;
        self.sent_datagrams = self.sent_datagrams.saturating_add(1);
        self.law.on_sent(&Sent {
            now_us: self.us(now),
            idle_us: small(now - self.sent_at).into(),
            in_flight_before_segments: in_flight_before,
            snd_nxt: self.sent_bytes as u32,
        });
        self.sent_at = now;
        if self.steering.pace > 0 && self.sent_datagrams > UNPACED {
            let length = u64::try_from(u128::from(bytes) * 1_000_000_000 / u128::from(self.steering.pace));
            let gate = self.gate();
            let (length, now) = (length.unwrap_or(u64::MAX), gate.now.load(Relaxed));
            // Linux's tcp_update_skb_after_send(): who is late makes up for half a datagram.
            let late = now.saturating_sub(gate.departs.load(Relaxed));
            gate.departs.store(now.saturating_add(length - late.min(length / 2)), Relaxed);
        }
    }

    fn on_ack(&mut self, _: Instant, sent: Instant, bytes: u64, _: bool, _: &RttEstimator) {
        if self.prior_in_flight.is_none() {
            self.prior_in_flight = Some(self.segments(self.in_flight_bytes));
        }
        self.acked_bytes += bytes;
        self.newest = self.newest.max(Some(sent));
        self.departures.on_delivered(sent);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _: Option<u64>) {
        self.in_flight_bytes = in_flight;
        let (Some(newest), Some(prior_in_flight)) = (self.newest.take(), self.prior_in_flight.take()) else { return };
        let rtt = now - newest;
        self.take_rtt(rtt);
        self.reduced = self.reduced.filter(|(at, _)| newest <= *at);
        let acked_segments = u32::try_from(self.acked_bytes / self.datagram_bytes).unwrap_or(u32::MAX);
        // A part of a datagram waits for the rest.
        self.acked_bytes %= self.datagram_bytes;
        let rate = self.departures.on_ack(now, newest, acked_segments, self.min_rtt);
        if in_flight == 0 {
            self.departures.forget_all();
        }
        if app_limited {
            self.departures.rate.on_app_limited(self.segments(in_flight));
        }
        let sample = Sample {
            interval_us: rate.map_or(0, |rate| u32::try_from(rate.interval.as_micros()).unwrap_or(u32::MAX)),
            sampled_segments: rate.map_or(0, |rate| rate.delivered),
            prior_delivered_segments: rate.map_or(0, |rate| rate.prior_delivered),
            prior_in_flight_segments: prior_in_flight,
            acked_segments,
            lost_segments: std::mem::take(&mut self.untold),
            rtt_us: small(rtt).max(1),
            app_limited: rate.is_some_and(|rate| rate.app_limited).into(),
            ..self.sample(now)
        };
        self.steer(|law, steering| law.on_sampled(&sample, steering));
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        let lost = self.segments(lost_bytes);
        self.lost_segments = self.lost_segments.wrapping_add(lost);
        self.untold = self.untold.saturating_add(lost);
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(lost_bytes);
        if lost > 0 {
            self.departures.forget_before(sent);
        }
        // Those of one window are one event.
        if let Some((_, state)) = self.reduced.filter(|(at, _)| sent <= *at && !is_persistent) {
            // As in TCP a loss after a mark reduces no more, and is recovered.
            if lost > 0 && state == Sample::CWR {
                self.reduced = Some((now, Sample::RECOVERY));
            }
            return;
        }
        let event = self.lost(now, lost);
        let mut window = Window {
            cwnd_segments: self.steering.cwnd_segments,
            cwnd_count: 0,
            ssthresh_segments: self.steering.ssthresh_segments,
        };
        let state = if is_persistent {
            // RFC 9002 §7.6.2
            self.law.on_timed_out(&event, &mut window);
            self.steering.cwnd_segments = self.segments(self.in_flight_bytes) + 1;
            Sample::LOSS
        } else if lost > 0 {
            self.law.on_lost(&event, &mut window);
            Sample::RECOVERY
        } else {
            self.law.on_notified(&event, &mut window);
            Sample::CWR
        };
        self.reduced = Some((now, state));
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.datagram_bytes = mtu.into();
    }

    fn window(&self) -> u64 {
        if self.steering.pace == 0 || self.sent_datagrams < UNPACED {
            return self.window_bytes();
        }
        if self.in_flight_bytes + self.datagram_bytes > self.window_bytes() {
            return FULL_WINDOW;
        }
        let gate = self.gate();
        if gate.now.load(Relaxed) < gate.departs.load(Relaxed) {
            gate.waits.store(true, Relaxed);
            return FULL_WINDOW;
        }
        UNPACED_WINDOW
    }

    fn metrics(&self) -> ControllerMetrics {
        let ssthresh = self.steering.ssthresh_segments;
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window_bytes();
        metrics.ssthresh = (ssthresh != INFINITE_SSTHRESH).then(|| u64::from(ssthresh) * self.datagram_bytes);
        metrics.pacing_rate = (self.steering.pace > 0).then(|| self.steering.pace.saturating_mul(8));
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        u64::from(INITIAL_WINDOW) * self.datagram_bytes
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
