//! One end of a connection: handshake, both halves together, close.
//!
//! ```text
//! connect: SynSent ──SYN-ACK──> Established ──FIN sent and acknowledged, FIN received──> closed
//! listen:  Listen ──SYN──> SynReceived ──ACK──> Established
//! ```
//!
//! The half-closed states of RFC 9293 §3.3.2 are the two facts "our FIN is acknowledged" and "their FIN is here". An
//! application that reads the other side's end of file closes its own side, as most do.
//!
//! *What it leaves out*: simultaneous open, RST, TIME-WAIT's end (a closed endpoint answers a repeated FIN for ever).

use crate::clock::TickClock;
use crate::config::Config;
use crate::info::Info;
use crate::last_link::{self, Reporter, report_in};
use crate::receiver::Receiver;
use crate::segment::{Offer, Segment, TIMESTAMPS_BYTES, Timestamps};
use crate::sender::{Agreed, Outgoing, Sender};
use lasthop_laws::LinkReport;
use lasthop_laws::bound::LeasedBound;
use lasthop_laws::{Choice, LawName};
use lasthop_units::{Bytes, Span, Time};

/// SYNs that are sent before giving up: Linux's `tcp_syn_retries` = 6 and the first.
const SYN_ATTEMPTS: u32 = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Listen,
    SynSent,
    SynReceived,
    Established,
}

/// The SYN or SYN-ACK that is under way.
#[derive(Clone, Debug)]
struct Handshake {
    due: bool,
    attempts: u32,
    first_sent_at: Time,
    retry_at: Time,
    /// What the other side offered.
    theirs: Offer,
    their_timestamps: bool,
    their_window: u64,
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
/// - questions: [`info`](Self::info) and the rest.
#[derive(Clone, Debug)]
pub struct Endpoint {
    phase: Phase,
    config: Config,
    law: Choice,
    handshake: Handshake,
    sender: Sender,
    receiver: Receiver,
    /// Largest payload and options together.
    mss_bytes: u32,
    timestamps: bool,
    clock: TickClock,
    failed: bool,
    /// A client that has been told to say something of its last link.
    reporter: Option<Box<Reporter>>,
    /// What a server has heard in the handshake.
    heard: Option<Box<LinkReport>>,
}

impl Endpoint {
    /// An end that opens a connection: the first [`poll_transmit`](Self::poll_transmit) gives the SYN.
    ///
    /// # Panics
    /// If `config` is not valid.
    pub fn connect(now: Time, config: &Config, law: impl Into<Choice>) -> Self {
        Self::new(Phase::SynSent, now, config, law.into())
    }

    /// An end that waits for a connection.
    ///
    /// # Panics
    /// If `config` is not valid.
    pub fn listen(config: &Config, law: impl Into<Choice>) -> Self {
        Self::new(Phase::Listen, Time::ZERO, config, law.into())
    }

    fn new(phase: Phase, now: Time, config: &Config, law: Choice) -> Self {
        if let Err(error) = config.validate() {
            panic!("a connection cannot be configured like this: {error}");
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
            },
            sender: Sender::new(config, law, now),
            receiver: Receiver::new(config),
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
            // Our ACK of it was lost.
            Phase::Established if segment.syn => self.receiver.ack_now(),
            Phase::Established if segment.has_ack => self.on_established(now, segment),
            _ => {}
        }
    }

    fn on_established(&mut self, now: Time, segment: &Segment) {
        if self.heard.is_some()
            && let Some(report) = report_in(segment)
        {
            self.sender.on_reported(now, report);
        }
        self.sender.on_ack(now, segment);
        self.receiver.on_segment(now, segment, self.sender.rto(), self.sender.srtt());
        if self.receiver.is_finished() && !self.sender.is_closing() {
            self.sender.close();
        }
    }

    fn take_offer(&mut self, segment: &Segment) {
        self.handshake.theirs = segment.offer;
        self.handshake.their_timestamps = segment.timestamps.is_some();
        self.handshake.their_window = u64::from(segment.window_bytes);
        self.receiver.on_syn(segment);
    }

    fn establish(&mut self, now: Time) {
        let theirs = self.handshake.theirs;
        self.timestamps = self.config.timestamps && self.handshake.their_timestamps;
        self.mss_bytes = self.mss_bytes.min(u32::from(theirs.mss_bytes));
        let options = if self.timestamps { TIMESTAMPS_BYTES as u32 } else { 0 };
        let sack = self.config.sack && theirs.sack_permitted;
        let agreed = Agreed { payload_bytes: self.mss_bytes - options, sack, timestamps: self.timestamps };
        let scaled = self.config.window_scaling && theirs.window_shift.is_some();
        self.receiver.establish(agreed.payload_bytes, sack, if scaled { self.config.window_shift() } else { 0 });
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

    /// Whether this end takes in what a client says of its last link.
    fn hears(&self) -> bool {
        self.config.last_link && self.law.name == LawName::Lastlink
    }

    /// A time asked for by [`next_timeout`](Self::next_timeout) has come. Harmless when nothing is due.
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

    /// The host's queue was full and has dropped `segment`, the last that [`poll_transmit`](Self::poll_transmit) gave. As
    /// Linux on NET_XMIT_DROP: new data and retransmissions count as not sent and are tried again later, and the window is
    /// reduced (state CWR). An ACK is lost. To be called before the next `poll_transmit`, which then gives no more data.
    pub fn on_refused(&mut self, now: Time, segment: &Segment) {
        if self.phase == Phase::Established {
            self.sender.on_refused(now, segment.seq, segment.takes_sequence_numbers(), segment.ip_bytes());
        }
    }

    /// A packet of this connection has left the host's queue: for [`Config::tsq`].
    pub fn on_departed(&mut self, _now: Time, ip_bytes: Bytes) {
        self.sender.on_departed(ip_bytes);
    }

    // The application.

    /// The application writes so many bytes. What the send buffer cannot hold waits with the application.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// The application always has something to write.
    pub fn write_endless(&mut self) {
        self.sender.write_endless();
    }

    /// An endless writer stops. What is in the send buffer still goes.
    pub fn stop_writing(&mut self) {
        self.sender.stop_writing();
    }

    /// A FIN follows what was written.
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

    /// Limits for the window and the pacing rate, with their lease: those of the window are applied whenever the law or a
    /// recovery changes it. A limit of the pacing rate paces a connection whatever [`Config::pacing`] says, in bursts of two
    /// segments or a millisecond of the rate; as in Linux not its first ten segments.
    pub fn set_bound(&mut self, bound: LeasedBound) {
        self.sender.set_bound(bound);
    }

    /// What this end, a client, says of its last link from now on: with its SYN if this comes before it, and whenever it
    /// has changed or is half over with segments that have room, if the other end has answered. `None`: nothing is known; what
    /// was said before is retracted. A server never says anything.
    pub fn report_link(&mut self, report: Option<LinkReport>) {
        if report.is_some() || self.reporter.is_some() {
            self.reporter.get_or_insert_default().set(report);
        }
    }

    // Actions out.

    /// The next segment to send now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if self.phase != Phase::Established {
            return self.handshake.due.then(|| self.handshake_segment(now));
        }
        let segment = match self.sender.next(now) {
            Some(outgoing) => self.segment(now, outgoing),
            None if self.receiver.wants_ack() => {
                let seq = self.sender.snd_nxt();
                self.segment(now, Outgoing { seq, payload_bytes: 0, fin: false, push: false })
            }
            None => return None,
        };
        Some(segment)
    }

    fn segment(&mut self, now: Time, outgoing: Outgoing) -> Segment {
        let Outgoing { seq, payload_bytes, fin, push } = outgoing;
        let timestamps =
            self.timestamps.then(|| Timestamps { value: self.clock.ticks(now), echo: self.receiver.ts_recent() });
        let mut segment = Segment {
            seq,
            ack: self.receiver.rcv_nxt(),
            payload_bytes,
            window_bytes: self.receiver.window(),
            timestamps,
            fin,
            push,
            has_ack: true,
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

    /// SYN or SYN-ACK, with what is offered: a SYN-ACK offers nothing that the SYN did not.
    fn handshake_segment(&mut self, now: Time) -> Segment {
        let answer = self.phase == Phase::SynReceived;
        let theirs = self.handshake.theirs;
        let mut link = None;
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
            window_bytes: self.receiver.syn_window(),
            timestamps: timestamps
                .then(|| Timestamps { value: self.clock.ticks(now), echo: self.receiver.ts_recent() }),
            syn: true,
            has_ack: answer,
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

    /// When [`on_timeout`](Self::on_timeout) is to be called; [`Time::MAX`]: never, as things stand.
    pub fn next_timeout(&self) -> Time {
        if self.phase == Phase::Established {
            self.sender.next_timeout().min(self.receiver.next_timeout())
        } else {
            self.handshake.retry_at
        }
    }

    // Questions.

    /// Bytes that have arrived in order and that the application has read.
    pub fn received_bytes(&self) -> u64 {
        self.receiver.received_bytes()
    }

    /// Bytes written that the other side has acknowledged.
    pub fn acked_bytes(&self) -> u64 {
        self.sender.acked_bytes()
    }

    /// Bytes in the send buffer that have not been sent.
    pub fn unsent_bytes(&self) -> u64 {
        self.sender.unsent_bytes()
    }

    /// The handshake is over, and the connection not.
    pub fn is_established(&self) -> bool {
        self.phase == Phase::Established && !self.is_closed()
    }

    /// Both sides have finished, or this one has given up.
    pub fn is_closed(&self) -> bool {
        self.has_failed() || (self.sender.is_done() && self.receiver.is_finished())
    }

    /// Given up: no answer to the SYN, or to anything for a quarter of an hour.
    pub fn has_failed(&self) -> bool {
        self.failed || self.sender.has_failed()
    }

    /// The other side's FIN, and all before it, has arrived.
    pub fn is_finished_reading(&self) -> bool {
        self.receiver.is_finished()
    }

    /// What the sender of this end knows.
    pub fn info(&self) -> Info {
        self.sender.info()
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
