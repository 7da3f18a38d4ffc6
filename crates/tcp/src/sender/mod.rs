//! The sending half of a connection: data written, segments in flight, and the next segment to send.
//!
//! ```text
//!  write ──> [ unsent | sent: Scoreboard ]        on_ack:  window, SACK, cumulative ACK      ack.rs
//!               │            ▲                             RTT, rate, RACK                   rtt.rs, rate.rs, rack.rs
//!               ▼            │                             losses, recovery, undo            recovery/
//!            next() ─────────┘                             the law grows the window          lasthop_laws
//!            transmit.rs                                   the bound limits it               lasthop_laws::bound
//! ```
//!
//! All counts are in segments, as in Linux, not in bytes.

mod ack;
mod rack;
mod recovery;
mod timer;
mod transmit;

pub(crate) use ack::Ack;
pub(crate) use timer::{Timer, TimerKind};

use crate::config::{Config, Recovery};
use crate::ecn::{Feedback, Marked};
use crate::info::Info;
use crate::pacing;
use crate::rtt::{MinRtt, RttEstimator};
use crate::scoreboard::Scoreboard;
use lasthop_connection::rate::DeliveryRate;
use lasthop_connection::{CongestionState, TcpState};
use lasthop_laws::bound::{LawWindow, LeasedBound};
use lasthop_laws::{Acked, Choice, INFINITE_SSTHRESH, Law, Lost, Reported, Start, Window, finite_ssthresh};
use lasthop_laws::{LinkReport, Marking};
use lasthop_units::{Bytes, Rate, Span, Time};
use rack::{LossProbe, Rack};
use recovery::{Prr, Undo};
use transmit::Forced;
pub(crate) use transmit::Outgoing;

/// The end of the data of an endless writer.
const ENDLESS: u64 = u64::MAX / 2;

/// What both ends negotiated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    /// Payload of a full segment with timestamps.
    pub(crate) payload_bytes: u32,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) ecn: Feedback,
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) config: Config,
    pub(crate) recovery: Recovery,
    /// Both ends have SACK, and the recovery uses it.
    pub(crate) uses_sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) payload_bytes: u32,

    pub(crate) snd_una: u64,
    pub(crate) snd_nxt: u64,
    pub(crate) snd_wnd: u64,
    pub(crate) snd_wl1: u64,
    pub(crate) snd_wl2: u64,
    /// The sequence number after the last byte written.
    pub(crate) written: u64,
    /// The application will write no more.
    pub(crate) closing: bool,
    pub(crate) fin_sent: bool,
    pub(crate) send_capacity: u64,
    /// The sequence number after the last byte in the send buffer.
    pub(crate) buffered: u64,
    /// The writer has filled the send buffer and waits for room.
    pub(crate) writer_waits: bool,
    /// The end of the last segment that was not full (Nagle's algorithm, Minshall's form).
    pub(crate) small_end: u64,

    pub(crate) board: Scoreboard,
    pub(crate) rtt: RttEstimator,
    pub(crate) min_rtt: MinRtt,
    pub(crate) newest_rtt: Option<Span>,
    /// The sample that the last ACK gave SRTT, until it is taken.
    pub(crate) sampled_rtt: Option<Span>,
    pub(crate) rate: DeliveryRate,
    pub(crate) marked: Marked,
    pub(crate) rack: Rack,
    pub(crate) probe: Option<LossProbe>,

    pub(crate) law: Law,
    pub(crate) window: Window,
    /// At most one segment of the handshake was lost (RFC 5681 §3.1, counted as in Linux).
    initial_window_is_free: bool,
    pub(crate) bound: Option<LeasedBound>,
    pub(crate) state: CongestionState,
    /// Linux's high_seq; RFC 6675 RecoveryPoint, RFC 6582 recover.
    pub(crate) recovery_point: u64,
    /// The law tolerated the loss that began this recovery: it left the window unchanged.
    pub(crate) tolerated: bool,
    /// RFC 6582 §3.2: no fast retransmit for duplicates of segments sent before the last recovery.
    pub(crate) careful_below: u64,
    pub(crate) prr: Prr,
    pub(crate) undo: Undo,
    /// F-RTO is in progress (RFC 5682).
    pub(crate) f_rto: bool,
    /// Its step 2b: only new data until the next ACK.
    pub(crate) f_rto_new_data: bool,
    /// The last ACK says that what was sent again was only late: no retransmissions until the next ACK.
    pub(crate) only_late: bool,
    pub(crate) duplicate_acks: u32,
    /// Without SACK: segments reported by duplicate ACKs and not passed by the cumulative ACK.
    pub(crate) duplicates_delivered: u32,
    pub(crate) partial_acks: u32,
    /// What was seen of reordering, which forward acknowledgement would take for loss.
    pub(crate) reordering: rack::Reordering,
    /// RFC 6675 RescueRxt: a rescue retransmission is allowed once the ACK is above it.
    pub(crate) rescue_after: u64,
    /// RFC 6675 HighRxt, for rule 3.
    pub(crate) highest_retransmitted: u64,
    pub(crate) forced: Forced,

    pub(crate) timer: Timer,
    /// Consecutive timeouts without progress.
    pub(crate) timeouts_in_a_row: u32,
    pub(crate) backoff: u32,
    /// When the first unanswered retransmission after a timeout was sent.
    pub(crate) unanswered_since: Option<Time>,
    pub(crate) probes_unanswered: u32,
    pub(crate) failed: bool,

    pub(crate) cwnd_limited: bool,
    pub(crate) most_out: u32,
    pub(crate) limited_round_end: u64,
    pub(crate) last_sent_at: Time,
    pub(crate) paced_until: Time,
    /// The pace of a law that steers; zero: TCP's own.
    pub(crate) law_pace: Rate,
    /// The last burst of a sender that is paced in bursts, by its law or by a bound; `None` without.
    pub(crate) burst_state: Option<pacing::Burst>,
    /// When pacing allows the next segment, if one waits for that.
    pub(crate) pace_wait: Time,
    /// Segments sent since the sender last stopped.
    pub(crate) burst: u32,
    pub(crate) host_queue_bytes: u64,
    pub(crate) refused: bool,

    pub(crate) segments_sent: u64,
    pub(crate) retransmits: u64,
    /// Segments that D-SACKs have reported, Linux's `dsack_dups`.
    pub(crate) duplicates_reported: u64,
    pub(crate) timeouts: u64,
    pub(crate) undone: u64,
}

impl Sender {
    /// A sender without a connection; call [`Sender::establish`] next.
    pub(crate) fn new(config: &Config, law: Choice, now: Time) -> Self {
        let payload_bytes = config.mss.get() as u32;
        Self {
            config: config.clone(),
            recovery: config.recovery,
            uses_sack: false,
            timestamps: false,
            payload_bytes,
            snd_una: 1,
            snd_nxt: 1,
            snd_wnd: 0,
            snd_wl1: 0,
            snd_wl2: 0,
            written: 1,
            closing: false,
            fin_sent: false,
            send_capacity: config.send_capacity(payload_bytes),
            buffered: 1,
            writer_waits: false,
            small_end: 0,
            board: Scoreboard::new(payload_bytes),
            rtt: RttEstimator::new(config),
            min_rtt: MinRtt::new(config.min_rtt_window),
            newest_rtt: None,
            sampled_rtt: None,
            rate: DeliveryRate::default(),
            marked: Marked::default(),
            rack: Rack::default(),
            probe: None,
            law: Law::new(law, start(config, now)),
            window: Window {
                cwnd_segments: config.initial_window_segments,
                cwnd_count: 0,
                ssthresh_segments: INFINITE_SSTHRESH,
            },
            initial_window_is_free: true,
            bound: None,
            state: CongestionState::Open,
            recovery_point: 0,
            tolerated: false,
            careful_below: 0,
            prr: Prr::default(),
            undo: Undo::default(),
            f_rto: false,
            f_rto_new_data: false,
            only_late: false,
            duplicate_acks: 0,
            duplicates_delivered: 0,
            partial_acks: 0,
            reordering: rack::Reordering::default(),
            rescue_after: 0,
            highest_retransmitted: 0,
            forced: Forced::None,
            timer: Timer::default(),
            timeouts_in_a_row: 0,
            backoff: 0,
            unanswered_since: None,
            probes_unanswered: 0,
            failed: false,
            cwnd_limited: false,
            most_out: 0,
            limited_round_end: 0,
            last_sent_at: now,
            paced_until: Time::ZERO,
            law_pace: Rate::ZERO,
            burst_state: None,
            pace_wait: Time::MAX,
            burst: 0,
            host_queue_bytes: 0,
            refused: false,
            segments_sent: 0,
            retransmits: 0,
            duplicates_reported: 0,
            timeouts: 0,
            undone: 0,
        }
    }

    /// The handshake is complete. Takes what was negotiated, the other side's window, and the handshake's duration if
    /// that is a sample. `lost_syns`: counted as in Linux; with more than one the window begins with one segment.
    pub(crate) fn establish(
        &mut self,
        now: Time,
        law: Choice,
        agreed: Agreed,
        window: u64,
        rtt: Option<Span>,
        lost_syns: u32,
    ) {
        self.law = Law::new(law, start(&self.config, now));
        self.payload_bytes = agreed.payload_bytes;
        self.timestamps = agreed.timestamps;
        self.marked.feedback = agreed.ecn;
        self.marked.is_l4s = law.name.marking() == Marking::L4s;
        if self.law.steers() && matches!(self.recovery, Recovery::NewReno | Recovery::Rfc6675) {
            // Only the window tells those from Linux's, and that is the law's.
            self.recovery = Recovery::Prr;
        }
        self.uses_sack = agreed.sack && self.recovery != Recovery::NewReno;
        if !agreed.sack && self.recovery == Recovery::Rfc6675 {
            self.recovery = Recovery::NewReno;
        }
        self.board = Scoreboard::new(agreed.payload_bytes);
        // Data written before are still in the application.
        self.send_capacity = self.config.send_capacity(agreed.payload_bytes);
        self.buffered = self.written.min(self.snd_una + self.send_capacity);
        self.writer_waits = self.buffered < self.written;
        self.snd_wnd = window;
        self.last_sent_at = now;
        if let Some(rtt) = rtt {
            self.rtt.on_sample(rtt, self.snd_una, self.snd_nxt);
            self.min_rtt.on_sample(now, rtt);
        }
        self.initial_window_is_free = lost_syns <= 1;
        if !self.initial_window_is_free {
            self.window.cwnd_segments = 1;
        }
        self.apply_bound(now);
    }

    /// A report of the other side's last link arrived.
    pub(crate) fn on_reported(&mut self, now: Time, report: LinkReport) {
        let mut permitted = Reported::PERMIT_ALL;
        if !self.initial_window_is_free {
            permitted &= !Reported::PERMIT_INITIAL;
        }
        let event = Reported {
            now_us: now.as_nanos() / 1000,
            segment_bytes: self.payload_bytes,
            rtt_us: micros(self.rtt.srtt_ns()),
            segments_sent: saturating(self.segments_sent),
            permitted,
            ..report.into()
        };
        self.law.on_reported(&event, &mut self.window);
        self.apply_bound(now);
    }

    // The application.

    pub(crate) fn write(&mut self, bytes: u64) {
        if !self.closing && self.written < ENDLESS {
            self.written += bytes;
            self.refused = false;
            self.fill_buffer();
        }
    }

    pub(crate) fn write_endless(&mut self) {
        if !self.closing {
            self.written = ENDLESS;
            self.refused = false;
            self.fill_buffer();
        }
    }

    /// The application stops. Data in the send buffer are still sent.
    pub(crate) fn stop_writing(&mut self) {
        self.written = self.buffered;
        self.writer_waits = false;
    }

    pub(crate) fn close(&mut self) {
        if self.written == ENDLESS {
            self.stop_writing();
        }
        self.closing = true;
        self.refused = false;
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// The application fills the send buffer, unless it waits for more room.
    pub(crate) fn fill_buffer(&mut self) {
        if self.written == self.buffered {
            return;
        }
        let free = self.send_capacity - (self.buffered - self.snd_una);
        if !self.writer_waits || !self.config.write_hysteresis || free >= self.send_capacity / 3 {
            self.buffered = self.written.min(self.snd_una + self.send_capacity);
            self.writer_waits = self.buffered < self.written;
        }
    }

    /// Bytes in the send buffer and not sent.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        self.buffered - (self.snd_nxt - u64::from(self.fin_sent))
    }

    /// All written data and the FIN are acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.fin_sent && self.snd_una == self.snd_nxt
    }

    /// Given up: nothing was acknowledged for a quarter of an hour.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Ends the connection, whatever is left to send.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
        self.timer = Timer::default();
        self.forced = Forced::None;
    }

    /// Bytes of data acknowledged.
    pub(crate) fn acked_bytes(&self) -> u64 {
        self.snd_una - 1 - u64::from(self.is_done())
    }

    pub(crate) fn snd_nxt(&self) -> u64 {
        self.snd_nxt
    }

    pub(crate) fn next_timeout(&self) -> Time {
        self.timer.at.min(self.pace_wait)
    }

    /// The timeout without backoff; before the first sample, the configured one.
    pub(crate) fn rto(&self) -> Span {
        self.rtt.rto()
    }

    /// The smoothed RTT; zero before the first sample.
    pub(crate) fn srtt(&self) -> Span {
        Span::from_nanos(self.rtt.srtt_ns())
    }

    /// New limits for the window and the pacing rate.
    pub(crate) fn set_bound(&mut self, bound: LeasedBound) {
        self.bound = Some(bound);
    }

    /// The first segment is sent next, whatever the window.
    pub(crate) fn force_head(&mut self) {
        self.forced = Forced::Head;
    }

    // The window.

    pub(crate) fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    fn in_slow_start(&self) -> bool {
        self.window.cwnd_segments < self.window.ssthresh_segments
    }

    /// Applies the bound to the law's window.
    pub(crate) fn apply_bound(&mut self, now: Time) {
        let Some(bound) = self.bound else { return };
        if now >= bound.expires() {
            self.bound = None;
            return;
        }
        self.window.cwnd_segments = bound.window(
            now,
            LawWindow {
                cwnd_segments: self.window.cwnd_segments,
                in_flight_segments: self.in_flight(),
                // Nor has a law that steers a lower limit: it may have to drain the path.
                in_loss: self.state == CongestionState::Loss || self.law.steers(),
                force_retransmit: self.state.is_reduction() && self.prr.out == 0,
            },
        );
    }

    /// Whether the upper bound limits the window, so that the law must not grow it.
    fn is_held_by_bound(&self, now: Time) -> bool {
        self.bound.is_some_and(|bound| bound.holds_back(now, self.window.cwnd_segments))
    }

    /// Linux's tcp_is_cwnd_limited(): in slow start a half-used window may grow.
    fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited || (self.in_slow_start() && self.window.cwnd_segments < 2 * self.most_out)
    }

    /// Linux's tcp_current_ssthresh(): the target of a slow start after idleness.
    pub(crate) fn current_ssthresh(&self) -> u32 {
        if self.state.is_reduction() {
            self.window.ssthresh_segments
        } else {
            let cwnd = self.window.cwnd_segments;
            self.window.ssthresh_segments.max(cwnd / 2 + cwnd / 4)
        }
    }

    /// An event of the law. One that steers sets its window at ACKs, not here.
    pub(crate) fn tell(&mut self, event: impl FnOnce(&mut Law, &mut Window)) {
        let mut window = self.window;
        event(&mut self.law, &mut window);
        if !self.law.steers() {
            self.window = window;
        }
    }

    pub(crate) fn lost_event(&self, now: Time) -> Lost {
        Lost {
            now_us: now.as_nanos() / 1000,
            in_flight_segments: self.board.len(),
            srtt_us: micros(self.rtt.srtt_ns()),
            min_rtt_us: self.min_rtt_us(),
            snd_una: self.snd_una as u32,
            snd_nxt: self.snd_nxt as u32,
            flags: if self.is_cwnd_limited() { Acked::CWND_LIMITED } else { 0 },
            segments_sent: saturating(self.segments_sent),
            retransmits: saturating(self.retransmits),
            lost_segments: self.board.pending(),
            reserved: 0,
        }
    }

    fn min_rtt_us(&self) -> u32 {
        self.min_rtt.get().map_or(0, |rtt| micros(rtt.as_nanos()))
    }

    /// Whether the bound paces the sender now, whatever its configuration.
    pub(crate) fn is_paced_by_bound(&self, now: Time) -> bool {
        self.bound.is_some_and(|bound| bound.paces(now))
    }

    /// Whether segments leave as Linux's TSO packets, at the pace of a law that steers or of a bound.
    pub(crate) fn is_paced_in_bursts(&self, now: Time) -> bool {
        self.law.steers() || self.is_paced_by_bound(now)
    }

    /// The law's own pace, else Linux's tcp_update_pacing_rate(), limited by the bound; zero before the first RTT sample without a limit.
    pub(crate) fn pacing_rate(&self, now: Time) -> Rate {
        let own = if self.law_pace > Rate::ZERO {
            self.law_pace
        } else {
            let window = self.window.cwnd_segments.max(self.board.len());
            pacing::rate(self.payload_bytes, window, self.in_first_half_of_slow_start(), self.rtt.srtt_ns())
        };
        let own = Some(own).filter(|rate| *rate > Rate::ZERO);
        let paced = || self.config.pacing || self.law.steers();
        self.bound.map_or(own, |bound| bound.pacing_rate(now, own, paced())).unwrap_or(Rate::ZERO)
    }

    fn in_first_half_of_slow_start(&self) -> bool {
        self.window.cwnd_segments < self.window.ssthresh_segments / 2
    }

    /// Without what the receiver knows.
    pub(crate) fn info(&self) -> Info {
        let (delivery_rate, app_limited) = self.rate.rate(self.payload_bytes);
        // As at the latest ACK, where an expired bound is dropped: no lease is over at the beginning.
        let in_force = Time::ZERO;
        Info {
            tcp: TcpState {
                state: self.state,
                cwnd_segments: self.window.cwnd_segments,
                ssthresh_segments: finite_ssthresh(self.window.ssthresh_segments),
                srtt: self.rtt.srtt(),
                min_rtt: self.min_rtt.get(),
                newest_rtt: self.newest_rtt,
                receive_rtt: None,
                in_flight_segments: self.in_flight(),
                mss_bytes: self.payload_bytes,
                unsent: Bytes::new(self.unsent_bytes()),
                acked: Bytes::new(self.acked_bytes()),
                received: Bytes::ZERO,
                sent_segments: self.segments_sent,
                retransmits: self.retransmits,
                timeouts: Some(self.timeouts),
                delivered_ce: self.marked.delivered.into(),
                pacing_rate: Some(self.pacing_rate(in_force)).filter(|rate| *rate > Rate::ZERO),
            },
            latest_rtt: self.rtt.latest(),
            rttvar: self.rtt.rttvar(),
            rto: self.rtt.backed_off(self.backoff),
            unacked_segments: self.board.len(),
            sacked_segments: self.board.sacked_out(),
            lost_segments: self.board.lost_out(),
            retransmitted_segments: self.board.retransmitted_out(),
            spurious_undone: self.undone,
            delivered_segments: u64::from(self.rate.delivered()),
            delivery_rate,
            app_limited,
            window_bytes: self.snd_wnd,
            paced_by_bound: self.is_paced_by_bound(in_force),
            last_link: self.law.applied(),
        }
    }

    #[cfg(test)]
    pub(crate) fn check(&self) {
        self.board.check();
        assert!(self.window.cwnd_segments >= 1);
        assert!(self.window.ssthresh_segments >= 2);
        assert!(self.snd_una <= self.snd_nxt);
        // An ACK in the middle of a segment keeps the whole segment.
        let held = self.board.front().map_or(self.snd_nxt..=self.snd_nxt, |head| head.seq..=head.end - 1);
        assert!(held.contains(&self.snd_una), "{} is not in {held:?}", self.snd_una);
        assert_eq!(self.board.back().map_or(self.snd_nxt, |record| record.end), self.snd_nxt);
        let idle = self.board.is_empty() || self.failed;
        assert!(idle || self.timer.at < Time::MAX, "data are in flight and no timer runs: {:?}", self.state);
    }
}

/// The law's view of a new connection.
fn start(config: &Config, now: Time) -> Start {
    Start { now, slow_start: config.slow_start, timestamp_tick: config.timestamp_granularity }
}

/// Nanoseconds as microseconds for a law's event, at most an hour.
fn micros(nanos: u64) -> u32 {
    u32::try_from(nanos / 1000).unwrap_or(u32::MAX)
}

/// A total as a law's event carries it.
fn saturating(total: u64) -> u32 {
    u32::try_from(total).unwrap_or(u32::MAX)
}
