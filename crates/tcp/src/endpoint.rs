//! One end of a connection: the handshake, the sending and receiving halves, the close.
//!
//! ```text
//! connect: SynSent ──SYN-ACK──> Established ──FIN sent and acknowledged, FIN received──> closed
//! listen:  Listen ──SYN──> SynReceived ──ACK──> Established
//! ```
//!
//! The half-closed states of RFC 9293 §3.3.2 are two flags: our FIN is acknowledged, and the other side's FIN has
//! arrived. An application that reads the end of file closes its own side, as most do.
//!
//! *What it leaves out*: simultaneous open, RST, the end of TIME-WAIT (a closed endpoint answers a repeated FIN for
//! ever).

use crate::clock::TickClock;
use crate::config::Config;
use crate::ecn::Wish;
use crate::info::Info;
use crate::last_link::{self, Reporter, report_in};
use crate::receive_rtt::ReceiveRtt;
use crate::receiver::Receiver;
use crate::segment::{Offer, Segment, TIMESTAMPS_BYTES, Timestamps};
use crate::sender::{Agreed, Outgoing, Sender};
use lasthop_laws::LinkReport;
use lasthop_laws::bound::LeasedBound;
use lasthop_laws::{Choice, LawName};
use lasthop_units::{Bytes, Span, Time};

/// SYNs sent before giving up: the first, and Linux's `tcp_syn_retries` = 6.
const SYN_ATTEMPTS: u32 = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Listen,
    SynSent,
    SynReceived,
    Established,
}

/// The SYN or SYN-ACK in flight.
#[derive(Clone, Debug)]
struct Handshake {
    due: bool,
    attempts: u32,
    first_sent_at: Time,
    retry_at: Time,
    /// The options that the other side offered.
    theirs: Offer,
    their_timestamps: bool,
    their_window: u64,
    /// The ECN flags of their SYN or SYN-ACK.
    their_ace: u8,
}

/// One end of a connection, without any I/O. Methods are of four kinds, in this order of use:
///
/// - events in: [`on_segment`](Self::on_segment), [`on_timeout`](Self::on_timeout), [`on_refused`](Self::on_refused),
///   [`on_departed`](Self::on_departed);
/// - the application: [`write`](Self::write), [`write_endless`](Self::write_endless),
///   [`stop_writing`](Self::stop_writing), [`close`](Self::close), [`pause_reading`](Self::pause_reading),
///   [`resume_reading`](Self::resume_reading), the policy's [`set_bound`](Self::set_bound), and the agent's
///   [`report_link`](Self::report_link);
/// - actions out: after any of these [`poll_transmit`](Self::poll_transmit) until it gives nothing, then
///   [`next_timeout`](Self::next_timeout);
/// - questions: [`info`](Self::info) and others.
#[derive(Clone, Debug)]
pub struct Endpoint {
    phase: Phase,
    config: Config,
    law: Choice,
    handshake: Handshake,
    sender: Sender,
    receiver: Receiver,
    receive_rtt: ReceiveRtt,
    /// Largest payload with options.
    mss_bytes: u32,
    timestamps: bool,
    clock: TickClock,
    failed: bool,
    /// At a client: sends the reports of its last link.
    reporter: Option<Box<Reporter>>,
    /// At a server: the report that came with the handshake.
    heard: Option<Box<LinkReport>>,
}

impl Endpoint {
    /// The client's end: the first [`poll_transmit`](Self::poll_transmit) returns the SYN.
    ///
    /// # Panics
    /// If `config` is invalid ([`Config::validate`]).
    pub fn connect(now: Time, config: &Config, law: impl Into<Choice>) -> Self {
        Self::new(Phase::SynSent, now, config, law.into())
    }

    /// The server's end, which waits for a SYN.
    ///
    /// # Panics
    /// If `config` is invalid ([`Config::validate`]).
    pub fn listen(config: &Config, law: impl Into<Choice>) -> Self {
        Self::new(Phase::Listen, Time::ZERO, config, law.into())
    }

    fn new(phase: Phase, now: Time, config: &Config, law: Choice) -> Self {
        if let Err(error) = config.validate() {
            panic!("invalid configuration of a connection: {error}");
        }
        Self {
            phase,
            config: config.clone(),
            law,
            handshake: Handshake {
                due: phase == Phase::SynSent,
                attempts: 0,
                first_sent_at: now,
                retry_at: Time::MAX,
                theirs: Offer::default(),
                their_timestamps: false,
                their_window: 0,
                their_ace: 0,
            },
            sender: Sender::new(config, law, now),
            receiver: Receiver::new(config),
            receive_rtt: ReceiveRtt::default(),
            mss_bytes: config.mss.get() as u32,
            timestamps: config.timestamps,
            clock: TickClock::new(config.timestamp_granularity),
            failed: false,
            reporter: None,
            heard: None,
        }
    }

    // Events in.

    /// A segment has arrived.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) {
        match self.phase {
            Phase::Listen if segment.syn && !segment.has_ack => {
                self.take_offer(segment);
                self.heard = report_in(segment).filter(|_| self.hears()).map(Box::new);
                self.phase = Phase::SynReceived;
                self.handshake.due = true;
            }
            Phase::SynSent if segment.syn && segment.has_ack && segment.ack == 1 => {
                self.take_offer(segment);
                if let Some(reporter) = &mut self.reporter {
                    reporter.on_syn_ack(last_link::answers(segment));
                }
                self.establish(now);
                self.receiver.ack_now();
            }
            Phase::SynReceived if segment.syn => self.handshake.due = true,
            Phase::SynReceived if segment.has_ack && segment.ack >= 1 => {
                self.handshake.their_window = u64::from(segment.window_bytes);
                self.establish(now);
                self.on_established(now, segment);
            }
            // Our ACK of the SYN-ACK was lost.
            Phase::Established if segment.syn => self.receiver.ack_now(),
            Phase::Established if segment.has_ack => self.on_established(now, segment),
            _ => {}
        }
    }

    fn on_established(&mut self, now: Time, segment: &Segment) {
        let stale = self.receiver.is_stale(segment)
            && !(segment.seq == self.receiver.rcv_nxt() && self.sender.is_overtaken_duplicate(segment));
        if stale || self.receiver.is_old(segment) {
            self.receiver.on_rejected(now, segment);
            return;
        }
        if self.heard.is_some()
            && let Some(report) = report_in(segment)
        {
            self.sender.on_reported(now, report);
        }
        self.sender.on_ack(now, segment);
        if let Some(timestamps) = segment.timestamps.filter(|_| self.timestamps && self.receiver.is_full(segment)) {
            self.receive_rtt.on_full_segment(self.clock.ticks(now), timestamps.echo, self.config.timestamp_granularity);
        }
        self.receiver.on_segment(now, segment, self.sender.rto(), self.sender.srtt());
        if self.receiver.is_finished() && !self.sender.is_closing() {
            self.sender.close();
        }
    }

    fn take_offer(&mut self, segment: &Segment) {
        self.handshake.theirs = segment.offer;
        self.handshake.their_timestamps = segment.timestamps.is_some();
        self.handshake.their_window = u64::from(segment.window_bytes);
        self.handshake.their_ace = segment.ace;
        self.receiver.on_syn(segment);
    }

    fn establish(&mut self, now: Time) {
        let theirs = self.handshake.theirs;
        self.timestamps = self.config.timestamps && self.handshake.their_timestamps;
        self.mss_bytes = self.mss_bytes.min(u32::from(theirs.mss_bytes));
        let options = if self.timestamps { TIMESTAMPS_BYTES as u32 } else { 0 };
        let sack = self.config.sack && theirs.sack_permitted;
        let ecn = match self.phase {
            Phase::SynReceived => self.wish().accepted(self.handshake.their_ace),
            _ => self.wish().agreed(self.handshake.their_ace),
        };
        let agreed = Agreed { payload_bytes: self.mss_bytes - options, sack, timestamps: self.timestamps, ecn };
        let scaled = self.config.window_scaling && theirs.window_shift.is_some();
        self.receiver.establish(agreed.payload_bytes, sack, ecn, if scaled { self.config.window_shift() } else { 0 });
        // Karn: a repeated SYN gives no sample.
        let rtt = (self.handshake.attempts == 1).then(|| now.saturating_since(self.handshake.first_sent_at));
        let lost_syns = self.handshake.attempts.saturating_sub(1);
        self.sender.establish(now, self.law, agreed, self.handshake.their_window, rtt, lost_syns);
        if let Some(report) = self.heard.as_deref() {
            self.sender.on_reported(now, *report);
        }
        self.handshake.retry_at = Time::MAX;
        self.phase = Phase::Established;
    }

    /// Whether this end accepts a client's reports of its last link.
    fn hears(&self) -> bool {
        self.config.last_link && self.law.name == LawName::Lastlink
    }

    /// The time returned by [`next_timeout`](Self::next_timeout) has come. Harmless when nothing is due.
    pub fn on_timeout(&mut self, now: Time) {
        if now >= self.handshake.retry_at {
            self.handshake.retry_at = Time::MAX;
            self.handshake.due = true;
            if self.handshake.attempts >= SYN_ATTEMPTS {
                self.handshake.due = false;
                self.failed = true;
            }
        }
        if self.phase == Phase::Established {
            self.sender.on_timeout(now);
            self.receiver.on_timeout(now);
        }
    }

    /// The host's queue was full, and it dropped `segment`, the last one that [`poll_transmit`](Self::poll_transmit)
    /// returned. Must be called before the next `poll_transmit`, which then returns no more data. As Linux on
    /// NET_XMIT_DROP: data count as not sent and are tried again later, and the window is reduced (state CWR). An ACK
    /// is lost.
    pub fn on_refused(&mut self, now: Time, segment: &Segment) {
        if self.phase == Phase::Established {
            self.sender.on_refused(now, segment.seq, segment.takes_sequence_numbers(), segment.ip_bytes());
        }
    }

    /// A packet of this connection left the host's queue: for [`Config::tsq`].
    pub fn on_departed(&mut self, _now: Time, ip_bytes: Bytes) {
        self.sender.on_departed(ip_bytes);
    }

    // The application.

    /// The application writes `bytes` bytes. Data beyond the send buffer wait in the application.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// The application always has data to write.
    pub fn write_endless(&mut self) {
        self.sender.write_endless();
    }

    /// An endless writer stops. Data in the send buffer are still sent.
    pub fn stop_writing(&mut self) {
        self.sender.stop_writing();
    }

    /// A FIN follows the written data.
    pub fn close(&mut self) {
        self.sender.close();
    }

    /// The application stops reading: the window closes as the buffer fills.
    pub fn pause_reading(&mut self) {
        self.receiver.pause_reading();
    }

    /// The application reads again.
    pub fn resume_reading(&mut self) {
        self.receiver.resume_reading();
    }

    /// Sets the limits of the window, the pacing rate and the advertised window, with their lease. Those of the window
    /// apply whenever the law or a recovery changes it, that of the advertised window with each segment sent. One
    /// that paces does so whatever [`Config::pacing`] is, in bursts of two segments or a millisecond at that rate. As in
    /// Linux, the first ten segments are not paced.
    pub fn set_bound(&mut self, bound: LeasedBound) {
        self.sender.set_bound(bound);
        self.receiver.set_bound(bound);
    }

    /// Sets the report of this client's last link. It goes with the SYN if set before. If the server has answered, it
    /// also goes with segments that have room, after each change and after half its validity. `None`: unknown, which
    /// retracts the report before. No effect at a server.
    pub fn report_link(&mut self, report: Option<LinkReport>) {
        if report.is_some() || self.reporter.is_some() {
            self.reporter.get_or_insert_default().set(report);
        }
    }

    // Actions out.

    /// The next segment to send now.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        // As at an end that only receives, most of the time.
        let is_quiet = self.phase == Phase::Established && !self.receiver.wants_ack() && self.sender.is_quiet();
        if is_quiet { None } else { self.next_segment(now) }
    }

    fn next_segment(&mut self, now: Time) -> Option<Segment> {
        if self.phase != Phase::Established {
            return self.handshake.due.then(|| self.handshake_segment(now));
        }
        if let Some((ack, ace)) = self.receiver.take_prior_ack() {
            return Some(self.prior_ack(now, ack, ace));
        }
        let outgoing = match self.sender.next(now) {
            Some(outgoing) => outgoing,
            None if self.receiver.wants_ack() => {
                let seq = self.sender.snd_nxt();
                Outgoing { seq, ecn: self.sender.marked.of_other(), ..Outgoing::default() }
            }
            None => return None,
        };
        // Once in the source, so that the compiler builds the segment where it goes.
        Some(self.segment(now, outgoing))
    }

    /// What this end wants of ECN.
    fn wish(&self) -> Wish {
        Wish::new(self.config.ecn, self.law.name.marking())
    }

    /// A pure ACK below the one that is due.
    #[cold]
    fn prior_ack(&mut self, now: Time, ack: u64, ace: u8) -> Segment {
        let timestamps =
            self.timestamps.then(|| Timestamps { value: self.clock.ticks(now), echo: self.receiver.ts_recent() });
        let behind = (self.receiver.rcv_nxt() - ack) as u32;
        let segment = Segment {
            seq: self.sender.snd_nxt(),
            ack,
            window_bytes: self.receiver.window(now) + behind,
            timestamps,
            has_ack: true,
            ace,
            ecn: self.sender.marked.of_other(),
            ..Segment::default()
        };
        if self.config.tsq.is_some() {
            self.sender.on_handed_out(segment.ip_bytes());
        }
        segment
    }

    fn segment(&mut self, now: Time, outgoing: Outgoing) -> Segment {
        let Outgoing { seq, payload_bytes, fin, push, ecn, ace } = outgoing;
        let timestamps =
            self.timestamps.then(|| Timestamps { value: self.clock.ticks(now), echo: self.receiver.ts_recent() });
        let mut segment = Segment {
            seq,
            ack: self.receiver.rcv_nxt(),
            payload_bytes,
            window_bytes: self.receiver.window(now),
            timestamps,
            fin,
            push,
            has_ack: true,
            ace: ace | self.receiver.ece(),
            ecn,
            ..Segment::default()
        };
        let (sack, complete) = self.receiver.sack_blocks(segment.room_for_sack(self.mss_bytes));
        segment.sack = sack;
        if let Some(reporter) = &mut self.reporter
            && segment.has_room_for_link(self.mss_bytes)
        {
            segment.link = reporter.for_segment(now).as_ref().map(last_link::report);
        }
        self.receiver.on_ack_sent(complete);
        if self.config.tsq.is_some() {
            self.sender.on_handed_out(segment.ip_bytes());
        }
        segment
    }

    /// The SYN or SYN-ACK with its options. A SYN-ACK offers only options that the SYN offered.
    fn handshake_segment(&mut self, now: Time) -> Segment {
        let answer = self.phase == Phase::SynReceived;
        let theirs = self.handshake.theirs;
        let mut link = None;
        let ace = match answer {
            true => self.wish().answers(self.handshake.their_ace),
            false => self.wish().asks(self.handshake.attempts),
        };
        if self.handshake.attempts == 0 {
            self.handshake.first_sent_at = now;
            link = match &mut self.reporter {
                Some(reporter) if !answer => reporter.for_syn(now).as_ref().map(last_link::report),
                _ => self.heard.as_ref().map(|_| last_link::answer()),
            };
        }
        let timeout = self.config.rto_initial.as_nanos().saturating_mul(1 << self.handshake.attempts.min(32));
        self.handshake.retry_at = now + Span::from_nanos(timeout).min(self.config.rto_max);
        self.handshake.attempts += 1;
        self.handshake.due = false;
        let timestamps = self.config.timestamps && (!answer || self.handshake.their_timestamps);
        Segment {
            ack: self.receiver.rcv_nxt(),
            window_bytes: self.receiver.syn_window(now),
            timestamps: timestamps
                .then(|| Timestamps { value: self.clock.ticks(now), echo: self.receiver.ts_recent() }),
            syn: true,
            has_ack: answer,
            ace,
            offer: Offer {
                mss_bytes: self.config.mss.get() as u16,
                window_shift: (self.config.window_scaling && (!answer || theirs.window_shift.is_some()))
                    .then(|| self.config.window_shift()),
                sack_permitted: self.config.sack && (!answer || theirs.sack_permitted),
            },
            link,
            ..Segment::default()
        }
    }

    /// When [`on_timeout`](Self::on_timeout) must be called; [`Time::MAX`]: not before another event.
    #[inline]
    pub fn next_timeout(&self) -> Time {
        if self.phase == Phase::Established {
            self.sender.next_timeout().min(self.receiver.next_timeout())
        } else {
            self.handshake.retry_at
        }
    }

    /// The RTT sample that the last segment gave this sender, if it gave one that was not taken yet: what the smoothed
    /// RTT is made of. That of the handshake is none.
    pub fn take_rtt_sample(&mut self) -> Option<Span> {
        self.sender.sampled_rtt.take()
    }

    // Questions.

    /// Bytes received in order and read by the application.
    pub fn received_bytes(&self) -> u64 {
        self.receiver.received_bytes()
    }

    /// Bytes acknowledged by the other side.
    pub fn acked_bytes(&self) -> u64 {
        self.sender.acked_bytes()
    }

    /// It sends no more segments than that without another event than departures: what the window has room for; beyond it limited
    /// transmit may send two, and a timer one.
    pub fn most_at_once(&self) -> usize {
        self.sender.window.cwnd_segments.saturating_sub(self.sender.in_flight()) as usize + 3
    }

    /// Bytes in the send buffer that were not sent.
    pub fn unsent_bytes(&self) -> u64 {
        self.sender.unsent_bytes()
    }

    /// The handshake is complete and the connection is not closed.
    pub fn is_established(&self) -> bool {
        self.phase == Phase::Established && !self.is_closed()
    }

    /// Both sides have finished, or this one has given up.
    pub fn is_closed(&self) -> bool {
        self.has_failed() || (self.sender.is_done() && self.receiver.is_finished())
    }

    /// This end has given up: no answer to the SYN, or to anything for a quarter of an hour.
    pub fn has_failed(&self) -> bool {
        self.failed || self.sender.has_failed()
    }

    /// The state and counters of both halves.
    pub fn info(&self) -> Info {
        let mut info = self.sender.info();
        info.tcp.received = Bytes::new(self.receiver.in_order_bytes());
        info.tcp.receive_rtt = self.receive_rtt.get();
        info
    }

    #[cfg(test)]
    pub(crate) fn check(&self) {
        if self.phase == Phase::Established {
            self.sender.check();
            self.receiver.check();
        }
    }

    #[cfg(test)]
    pub(crate) fn sender(&mut self) -> &mut Sender {
        &mut self.sender
    }
}
