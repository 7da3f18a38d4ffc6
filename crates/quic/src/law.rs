//! One of our laws at quinn's events: windows in segments, which are full datagrams.

use crate::controller::Counts;
use lasthop_laws::{Acked, Choice, INFINITE_SSTHRESH, Law, Lost, Sent, Start, Window};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// RFC 9002 §7.2: the initial window, in datagrams, and the least.
pub(crate) const INITIAL_WINDOW: u32 = 10;
const LEAST_WINDOW: u32 = 2;

/// A congestion control that a law steers. A reduction lasts until a datagram is acknowledged that left after it began (RFC 9002 §7.3.2);
/// the window is ssthresh at once, as quinn's own controls have it, and paced at 1.25 windows a round trip by quinn.
#[derive(Clone)]
pub(crate) struct Lawful {
    law: Law,
    counts: Arc<Counts>,
    /// Of the marks, what the law was told of.
    marked_before: u64,
    window: Window,
    datagram_bytes: u64,
    base: Instant,
    reduced_at: Option<Instant>,
    sent_bytes: u64,
    sent_at: Instant,
    in_flight_bytes: u64,
    lost_segments: u32,
    /// Of this ACK, and what earlier ones left below a segment.
    acked_bytes: u64,
    /// When the newest datagram left that this ACK acknowledges.
    newest: Option<Instant>,
    srtt: Duration,
    min_rtt: Duration,
}

impl Lawful {
    pub(crate) fn new(law: Choice, now: Instant, mtu: u16, counts: Arc<Counts>) -> Self {
        Self {
            law: Law::new(law, Start::default()),
            counts,
            marked_before: 0,
            window: Window { cwnd_segments: INITIAL_WINDOW, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH },
            datagram_bytes: mtu.into(),
            base: now,
            reduced_at: None,
            sent_bytes: 0,
            sent_at: now,
            in_flight_bytes: 0,
            lost_segments: 0,
            acked_bytes: 0,
            newest: None,
            srtt: Duration::ZERO,
            min_rtt: Duration::ZERO,
        }
    }

    fn segments(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(self.datagram_bytes)).unwrap_or(u32::MAX)
    }

    /// The first byte in flight, as if all were of one stream: what laws compare round trips by.
    fn unacked(&self) -> u32 {
        self.sent_bytes.saturating_sub(self.in_flight_bytes) as u32
    }

    fn keep(&mut self, most: u32) {
        let window = &mut self.window;
        window.cwnd_segments = window.cwnd_segments.clamp(LEAST_WINDOW, most.max(LEAST_WINDOW));
        window.ssthresh_segments = window.ssthresh_segments.max(LEAST_WINDOW);
    }
}

impl Controller for Lawful {
    fn on_sent(&mut self, now: Instant, bytes: u64, _: u64) {
        let in_flight_before_segments = self.segments(self.in_flight_bytes);
        self.sent_bytes += bytes;
        let sent = Sent {
            now_us: micros(now - self.base),
            idle_us: micros(now - self.sent_at),
            in_flight_before_segments,
            snd_nxt: self.sent_bytes as u32,
        };
        self.law.on_sent(&sent);
        self.sent_at = now;
        self.in_flight_bytes += bytes;
    }

    fn on_ack(&mut self, _: Instant, sent: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        self.acked_bytes += bytes;
        self.newest = self.newest.max(Some(sent));
        (self.srtt, self.min_rtt) = (rtt.get(), rtt.min());
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _: Option<u64>) {
        self.in_flight_bytes = in_flight;
        let Some(newest) = self.newest.take() else { return };
        let acked_segments = u32::try_from(self.acked_bytes / self.datagram_bytes).unwrap_or(u32::MAX);
        self.acked_bytes %= self.datagram_bytes;
        let reduces = self.reduced_at.is_some_and(|at| newest <= at);
        if acked_segments == 0 {
            return;
        }
        let marked = self.counts.marked.load(Relaxed);
        let marked_segments = (marked - std::mem::replace(&mut self.marked_before, marked)) as u32;
        let limited = if app_limited { 0 } else { Acked::CWND_LIMITED };
        let state = if reduces { Acked::IN_REDUCTION } else { Acked::MAY_GROW };
        let acked = Acked {
            now_us: micros(now - self.base),
            acked_segments,
            marked_segments,
            in_flight_segments: self.segments(in_flight),
            rtt_us: small(now - newest),
            srtt_us: small(self.srtt),
            min_rtt_us: small(self.min_rtt),
            snd_una: self.unacked(),
            snd_nxt: self.sent_bytes as u32,
            flags: state | limited | Acked::PACED | Acked::ADVANCED,
            ..Acked::default()
        };
        self.law.on_acked(&acked, &mut self.window);
        self.keep(u32::MAX);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        let lost = self.segments(lost_bytes);
        self.lost_segments = self.lost_segments.saturating_add(lost);
        // Those of one window are one reduction.
        if self.reduced_at.is_some_and(|at| sent <= at) && !is_persistent {
            return;
        }
        let lost = Lost {
            now_us: micros(now - self.base),
            in_flight_segments: self.segments(self.in_flight_bytes),
            srtt_us: small(self.srtt),
            min_rtt_us: small(self.min_rtt),
            snd_una: self.unacked(),
            snd_nxt: self.sent_bytes as u32,
            flags: Acked::PACED,
            segments_sent: self.segments(self.sent_bytes),
            retransmits: self.lost_segments,
            lost_segments: lost,
            ..Lost::default()
        };
        self.reduced_at = Some(now);
        self.window.cwnd_count = 0;
        if is_persistent {
            // RFC 9002 §7.6.2
            self.law.on_timed_out(&lost, &mut self.window);
            self.keep(LEAST_WINDOW);
            return;
        }
        if lost_bytes > 0 {
            self.law.on_lost(&lost, &mut self.window);
        } else {
            self.law.on_notified(&lost, &mut self.window);
        }
        self.keep(self.window.ssthresh_segments);
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.datagram_bytes = mtu.into();
    }

    fn window(&self) -> u64 {
        u64::from(self.window.cwnd_segments) * self.datagram_bytes
    }

    fn metrics(&self) -> ControllerMetrics {
        let ssthresh = self.window.ssthresh_segments;
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.ssthresh = (ssthresh != INFINITE_SSTHRESH).then(|| u64::from(ssthresh) * self.datagram_bytes);
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

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// In microseconds; of a round trip 0 is none.
pub(crate) fn small(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}
