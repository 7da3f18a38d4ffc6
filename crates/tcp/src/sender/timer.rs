//! The sender's only timer. As in Linux, retransmission, loss probe, reordering and persist share it: setting one
//! replaces the other.

use super::Sender;
use super::rack::LossProbe;
use super::recovery::Delivery;
use super::transmit::Forced;
use lasthop_connection::CongestionState;
use lasthop_units::{Span, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// RFC 6298.
    Retransmission,
    /// RFC 8985 §7.
    Probe,
    /// RFC 8985 §6.3: when it ends, overtaken segments are lost.
    Reordering,
    /// RFC 9293 §3.8.6.1: the receiver's window is closed.
    Persist,
    /// The host refused a packet, and no ACK will follow.
    HostRetry,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    pub(crate) at: Time,
    pub(crate) kind: TimerKind,
}

impl Default for Timer {
    fn default() -> Self {
        Self { at: Time::MAX, kind: TimerKind::Retransmission }
    }
}

/// A connection is given up after this long without an answer: Linux's `tcp_retries2` = 15, the sum of 0.2 s doubled 15
/// times, each at most 120 s.
const GIVE_UP_AFTER: Span = Span::from_millis(924_600);
/// Unanswered window probes after which a connection is given up: `tcp_retries2`.
const GIVE_UP_PROBES: u32 = 15;
/// Interval of retries after the host refused a retransmission: TCP_RESOURCE_PROBE_INTERVAL.
const HOST_RETRY: Span = Span::from_millis(500);
/// Linux adds two jiffies to a probe timeout: TCP_TIMEOUT_MIN.
pub(super) const TIMEOUT_SLACK: Span = Span::from_millis(2);

impl Sender {
    pub(crate) fn on_timeout(&mut self, now: Time) {
        if now >= self.pace_wait {
            self.pace_wait = Time::MAX;
        }
        if now < self.timer.at {
            return;
        }
        self.refused = false;
        match self.timer.kind {
            TimerKind::Retransmission => self.on_retransmission_timeout(now),
            TimerKind::Probe => self.on_probe_timeout(now),
            TimerKind::Reordering => self.on_reordering_timeout(now),
            TimerKind::Persist => self.on_persist_timeout(now),
            TimerKind::HostRetry => self.timer = Timer::default(),
        }
    }

    /// RFC 6298 §5: (5.4) retransmit the first segment, (5.5) back off, (5.6) start the timer.
    fn on_retransmission_timeout(&mut self, now: Time) {
        if self.board.is_empty() {
            self.timer = Timer::default();
            return;
        }
        self.timeouts += 1;
        let unanswered_since = *self.unanswered_since.get_or_insert(now);
        if now.saturating_since(unanswered_since) >= GIVE_UP_AFTER {
            self.fail();
            return;
        }
        self.enter_loss(now);
        self.timeouts_in_a_row += 1;
        self.backoff += 1;
        self.forced = Forced::Head;
        self.timer = Timer { at: now + self.rtt.backed_off(self.backoff), kind: TimerKind::Retransmission };
    }

    /// RFC 8985 §7.3: sends new data if there are any, else the last segment again.
    fn on_probe_timeout(&mut self, now: Time) {
        self.timer = Timer { at: now + self.rtt.backed_off(self.backoff), kind: TimerKind::Retransmission };
        if self.board.is_empty() {
            self.timer = Timer::default();
        } else if self.probe.is_none() {
            self.forced = if self.new_data().is_ok() { Forced::ProbeNew } else { Forced::ProbeLast };
        }
    }

    fn on_reordering_timeout(&mut self, now: Time) {
        let lost_before = self.board.pending();
        self.timer = Timer::default();
        // As in Linux's tcp_rack_reo_timeout(), what is not lost yet waits for an ACK, or for the timeout.
        self.detect_losses_by_time(now);
        if self.board.pending() > lost_before && self.state != CongestionState::Recovery {
            self.enter_recovery(now, 0, 0);
            if !self.law.steers() {
                // One segment counts as delivered, so that one may go.
                self.reduce(Delivery { delivered: 1, pipe: self.in_flight(), safe_ack: false });
            }
            self.apply_bound(now);
        }
        self.arm_retransmission(now, TimerKind::Reordering);
    }

    fn on_persist_timeout(&mut self, now: Time) {
        self.timer = Timer::default();
        if self.board.is_empty() && self.unsent_bytes() > 0 {
            self.probes_unanswered += 1;
            if self.probes_unanswered > GIVE_UP_PROBES {
                self.fail();
                return;
            }
            self.backoff += 1;
            if self.new_data().is_err() {
                self.forced = Forced::Window;
            }
            self.arm_persist(now);
        }
    }

    /// Restarts the timer if data are in flight, else stops it.
    pub(super) fn restart_timer(&mut self, now: Time) {
        let replaced = self.timer.kind;
        if self.board.is_empty() {
            self.timer = Timer::default();
        } else if !self.schedule_probe(now, true) {
            self.arm_retransmission(now, replaced);
        }
    }

    /// RFC 6298 (5.1), (5.3). Where it replaces a probe or a reordering timer, it counts from the first segment's
    /// transmission, so that those do not delay a timeout. The delay by a law or a bound that paces is added, as in
    /// Linux's tcp_reset_xmit_timer().
    pub(super) fn arm_retransmission(&mut self, now: Time, replaces: TimerKind) {
        let timeout = self.rtt.backed_off(self.backoff) + self.pacing_delay(now);
        let at = match (replaces, self.board.front()) {
            (TimerKind::Probe | TimerKind::Reordering, Some(head)) => head.sent_at.saturating_add(timeout).max(now),
            _ => now + timeout,
        };
        self.timer = Timer { at, kind: TimerKind::Retransmission };
    }

    /// RFC 8985 §7.2: PTO = 2 SRTT, with one segment in flight plus the longest delay of an ACK; never past the RTO.
    pub(super) fn schedule_probe(&mut self, now: Time, advanced: bool) -> bool {
        let quiet = matches!(self.state, CongestionState::Open | CongestionState::Cwr);
        if !self.uses_rack() || self.probe.is_some() || !quiet || self.board.has_sacked() {
            return false;
        }
        let Some(head) = self.board.front() else { return false };
        let timeout = match self.rtt.srtt() {
            Some(srtt) => srtt * 2 + if self.board.len() == 1 { self.rtt.floor() } else { TIMEOUT_SLACK },
            None => self.rtt.initial(),
        };
        let from = if advanced { now } else { head.sent_at };
        let retransmission = from.saturating_add(self.rtt.backed_off(self.backoff)).max(now);
        let at = (now + timeout).min(retransmission).saturating_add(self.pacing_delay(now));
        self.timer = Timer { at, kind: TimerKind::Probe };
        true
    }

    pub(super) fn arm_persist(&mut self, now: Time) {
        if self.timer.at == Time::MAX {
            self.timer = Timer { at: now + self.rtt.backed_off(self.backoff), kind: TimerKind::Persist };
        }
    }

    /// The host refused a packet: tries again a little later, unless an ACK will trigger it.
    pub(super) fn arm_host_retry(&mut self, now: Time) {
        let retry = now + self.rtt.backed_off(self.backoff).min(HOST_RETRY);
        if self.board.is_empty() {
            self.timer = Timer { at: retry, kind: TimerKind::HostRetry };
        } else if self.timeouts_in_a_row > 0 {
            self.timer.at = self.timer.at.min(retry);
        }
    }

    /// Until `at`, but no longer than a timeout.
    pub(crate) fn arm_reordering(&mut self, now: Time, at: Time) {
        let at = at.min(now + self.rtt.backed_off(self.backoff));
        self.timer = Timer { at, kind: TimerKind::Reordering };
    }

    pub(super) fn probe_sent(&mut self, retransmission: bool) {
        self.probe = Some(LossProbe { end: self.snd_nxt, retransmission });
    }
}
