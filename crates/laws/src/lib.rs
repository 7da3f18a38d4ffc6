//! Congestion controls, and the bound around them: C headers in `include/`, which the kernel and the simulator both run, and
//! their Rust face. [`bound`] is the limit around any law; the rest is the laws.
//!
//! A law is told what happens (an ACK, a loss, a timeout, a transmission, a needless reduction), grows the window and
//! says the new ssthresh. The stack does the rest: it detects losses, reduces the window towards ssthresh, sets it to
//! 1 after a timeout and restores it after a needless reduction. The headers are compiled for this machine and called,
//! not translated: the simulator runs the very source that the kernel runs.
//!
//! ```
//! use lasthop_laws::{Acked, INFINITE_SSTHRESH, Law, LawName, Lost, Start, Window};
//!
//! let mut law = Law::new(LawName::NewReno, Start::default());
//! let mut window = Window { cwnd_segments: 10, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
//! let ack = Acked { acked_segments: 2, flags: Acked::MAY_GROW | Acked::CWND_LIMITED, ..Acked::default() };
//! law.on_acked(&ack, &mut window);
//! assert_eq!(window.cwnd_segments, 12);
//! law.on_lost(&Lost { in_flight_segments: 12, ..Lost::default() }, &mut window);
//! assert_eq!(window.ssthresh_segments, 6); // the stack now brings the window down to it
//! ```
#![deny(clippy::disallowed_methods)]
#![allow(unsafe_code)] // the C face; each block says why it is sound

pub mod bound;
pub mod cdg;
pub mod cubic;
mod lastlink;
mod link_report;
mod name;
pub mod option;
mod parameters;

pub use bound::Bound;
pub use lastlink::{Applied, Heeded, LossCount, is_of_the_other_base};
pub use link_report::{LinkReport, Reported};
pub use name::{Colour, LawName, Marker, UnknownLaw};
pub use parameters::{Parameter, ParameterError, Parameters, Unit};

use lasthop_units::{Span, Time};
use lastlink::RawApplied;
use std::fmt;

/// The ssthresh of a connection that has seen no loss.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// A law with its parameters: what a connection is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    /// The law.
    pub name: LawName,
    /// What it is told.
    pub parameters: Parameters,
    /// What its random draws follow from, for the laws that draw: each connection should have its own.
    pub seed: u32,
}

impl From<LawName> for Choice {
    /// With the default parameters and the seed 0.
    fn from(name: LawName) -> Self {
        Self { name, parameters: Parameters::of(name), seed: 0 }
    }
}

/// How the slow start of a connection is ended, other than by a loss. For NewReno and CUBIC: the others have what they
/// were published with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SlowStart {
    /// By a loss only: RFC 5681.
    #[default]
    Standard,
    /// Linux's HyStart: by a long train of ACKs, or a risen RTT.
    HyStart,
    /// RFC 9406: by a risen RTT, after some rounds of slower growth.
    HyStartPlusPlus,
}

impl SlowStart {
    /// Every slow start.
    pub const ALL: [Self; 3] = [Self::Standard, Self::HyStart, Self::HyStartPlusPlus];
}

/// What a law acts on. It belongs to the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Window {
    /// The congestion window.
    pub cwnd_segments: u32,
    /// What is left over below one segment, in the law's own unit. The stack zeroes it with each reduction.
    pub cwnd_count: u32,
    /// Slow start below it, congestion avoidance from it on. [`INFINITE_SSTHRESH`]: no loss yet.
    pub ssthresh_segments: u32,
}

/// An ACK arrived. The default is an ACK of nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Acked {
    /// Now.
    pub now_us: u64,
    /// Newly delivered by this ACK, cumulatively or selectively.
    pub acked_segments: u32,
    /// In flight after this ACK.
    pub in_flight_segments: u32,
    /// The RTT that this ACK measured. 0: none.
    pub rtt_us: u32,
    /// Smoothed RTT. 0: no sample yet.
    pub srtt_us: u32,
    /// Lowest RTT. 0: no sample yet.
    pub min_rtt_us: u32,
    /// First unacknowledged byte after this ACK, low 32 bits.
    pub snd_una: u32,
    /// Next byte to send, low 32 bits.
    pub snd_nxt: u32,
    /// The peer's timestamp. Valid with [`Self::HAS_TIMESTAMP`].
    pub tsval: u32,
    /// Our own timestamp, echoed. Valid with [`Self::HAS_TIMESTAMP`].
    pub tsecr: u32,
    /// [`Self::MAY_GROW`] and the others, or-ed.
    pub flags: u32,
}

impl Acked {
    /// Data were acknowledged and no reduction is under way.
    pub const MAY_GROW: u32 = 1;
    /// The window, not the application or the receiver, limits what is in flight.
    pub const CWND_LIMITED: u32 = 2;
    /// `tsval` and `tsecr` are valid.
    pub const HAS_TIMESTAMP: u32 = 4;
    /// The sender spreads its segments over the round trip.
    pub const PACED: u32 = 8;
    /// An upper bound holds the window: the law does not grow it, and a law with a clock (CUBIC) stops it, so that the
    /// window does not jump when the bound goes.
    pub const HELD: u32 = 16;
    /// The first unacknowledged byte moved.
    pub const ADVANCED: u32 = 32;
    /// The stack reduces the window or recovers a loss.
    pub const IN_REDUCTION: u32 = 64;
}

/// A reduction begins, or a retransmission timer has fired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Lost {
    /// Now.
    pub now_us: u64,
    /// FlightSize: sent and not cumulatively acknowledged, at the event.
    pub in_flight_segments: u32,
    /// Smoothed RTT. 0: no sample yet.
    pub srtt_us: u32,
    /// Lowest RTT. 0: no sample yet.
    pub min_rtt_us: u32,
    /// First unacknowledged byte, low 32 bits.
    pub snd_una: u32,
    /// Next byte to send, low 32 bits.
    pub snd_nxt: u32,
    /// As in [`Acked::flags`].
    pub flags: u32,
    /// Segments with data sent so far, retransmissions too.
    pub segments_sent: u32,
    /// Of those, how many were retransmissions.
    pub retransmits: u32,
    /// Segments known lost and not sent again yet.
    pub lost_segments: u32,
    /// 0.
    pub reserved: u32,
}

/// A segment of new data leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sent {
    /// Now.
    pub now_us: u64,
    /// Since the previous transmission.
    pub idle_us: u64,
    /// In flight before it. 0: sending begins again after idleness.
    pub in_flight_before_segments: u32,
    /// Next byte to send, low 32 bits.
    pub snd_nxt: u32,
}

/// A reduction turns out to have been needless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Undone {
    /// Now.
    pub now_us: u64,
}

/// How a connection begins. Its sequence numbers begin at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Now.
    pub now: Time,
    /// How its slow start ends.
    pub slow_start: SlowStart,
    /// Tick of the clock behind [`Acked::tsval`] and [`Acked::tsecr`]; at least 1 us.
    pub timestamp_tick: Span,
}

impl Default for Start {
    /// At [`Time::ZERO`], standard slow start, timestamps in milliseconds.
    fn default() -> Self {
        Self { now: Time::ZERO, slow_start: SlowStart::Standard, timestamp_tick: Span::from_millis(1) }
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
struct RawStart {
    now_us: u64,
    snd_nxt: u32,
    slow_start: u32,
    seed: u32,
    timestamp_tick_us: u32,
}

const STATE_BYTES: usize = 320;

/// One connection's congestion control: its parameters and its state, inline.
#[derive(Clone, PartialEq, Eq)]
pub struct Law {
    parameters: Parameters,
    raw: RawLaw,
}

#[derive(Clone, PartialEq, Eq)]
#[repr(C)]
struct RawLaw {
    name: u32,
    reserved: u32,
    state: [u64; STATE_BYTES / 8],
}

unsafe extern "C" {
    fn lasthop_law_init(law: *mut RawLaw, name: u32, parameters: *const Parameters, start: *const RawStart);
    fn lasthop_law_acked(law: *mut RawLaw, parameters: *const Parameters, acked: *const Acked, window: *mut Window);
    fn lasthop_law_lost(law: *mut RawLaw, parameters: *const Parameters, lost: *const Lost, window: *mut Window);
    fn lasthop_law_notified(law: *mut RawLaw, parameters: *const Parameters, notice: *const Lost, window: *mut Window);
    fn lasthop_law_timed_out(law: *mut RawLaw, parameters: *const Parameters, lost: *const Lost, window: *mut Window);
    fn lasthop_law_reported(
        law: *mut RawLaw,
        parameters: *const Parameters,
        report: *const Reported,
        window: *mut Window,
    );
    fn lasthop_law_applied(law: *const RawLaw, applied: *mut RawApplied);
    fn lasthop_law_sent(law: *mut RawLaw, sent: *const Sent);
    fn lasthop_law_undone(law: *mut RawLaw, undone: *const Undone, window: *mut Window);
}

// SAFETY, of every call below: the structs are repr(C) with the members of their C namesakes (the shim asserts the
// sizes); the pointers come from references, are not kept, and do not alias; the C code reads and writes nothing else,
// and every value of every member is allowed.
impl Law {
    /// The law of a connection that begins like this.
    pub fn new(choice: impl Into<Choice>, start: Start) -> Self {
        let choice: Choice = choice.into();
        let mut raw = RawLaw { name: 0, reserved: 0, state: [0; STATE_BYTES / 8] };
        let start = RawStart {
            now_us: start.now.as_nanos() / 1000,
            snd_nxt: 0,
            slow_start: start.slow_start as u32,
            seed: choice.seed,
            timestamp_tick_us: u32::try_from(start.timestamp_tick.as_nanos() / 1000).unwrap_or(u32::MAX).max(1),
        };
        // SAFETY: see above.
        unsafe { lasthop_law_init(&mut raw, choice.name as u32, &choice.parameters, &start) };
        Self { parameters: choice.parameters, raw }
    }

    /// Which law it is.
    pub fn name(&self) -> LawName {
        *LawName::ALL.iter().find(|name| **name as u32 == self.raw.name).expect("a law keeps its name")
    }

    /// Tells it something else from now on, as `lasthop laws set` does in the kernel. `parameters` must be of this law.
    pub fn set_parameters(&mut self, parameters: Parameters) {
        self.parameters = parameters;
    }

    /// An ACK arrived: grows the window if the flags allow it; may set ssthresh to end slow start.
    pub fn on_acked(&mut self, event: &Acked, window: &mut Window) {
        // SAFETY: see above.
        unsafe { lasthop_law_acked(&mut self.raw, &self.parameters, event, window) }
    }

    /// A reduction begins: sets ssthresh, nothing else.
    pub fn on_lost(&mut self, event: &Lost, window: &mut Window) {
        // SAFETY: see above.
        unsafe { lasthop_law_lost(&mut self.raw, &self.parameters, event, window) }
    }

    /// A reduction without a loss begins, for ECN or a full queue of this host: sets ssthresh. No law tolerates it.
    pub fn on_notified(&mut self, event: &Lost, window: &mut Window) {
        // SAFETY: see above.
        unsafe { lasthop_law_notified(&mut self.raw, &self.parameters, event, window) }
    }

    /// A retransmission timer fired, for the first time for this segment: sets ssthresh; the stack sets the window.
    pub fn on_timed_out(&mut self, event: &Lost, window: &mut Window) {
        // SAFETY: see above.
        unsafe { lasthop_law_timed_out(&mut self.raw, &self.parameters, event, window) }
    }

    /// A client has said something of its last link: before anything was sent it may set the window and ssthresh. Nothing for
    /// laws other than [`LawName::Lastlink`].
    pub fn on_reported(&mut self, event: &Reported, window: &mut Window) {
        // SAFETY: see above.
        unsafe { lasthop_law_reported(&mut self.raw, &self.parameters, event, window) }
    }

    /// What it has heard of the last link and made of it. `None`: it is another law than [`LawName::Lastlink`], or has heard
    /// nothing.
    pub fn applied(&self) -> Option<Applied> {
        if self.name() != LawName::Lastlink {
            return None;
        }
        let mut applied = RawApplied::default();
        // SAFETY: see above.
        unsafe { lasthop_law_applied(&self.raw, &mut applied) };
        applied.into()
    }

    /// A segment of new data leaves.
    pub fn on_sent(&mut self, event: &Sent) {
        // SAFETY: see above.
        unsafe { lasthop_law_sent(&mut self.raw, event) }
    }

    /// The last reduction was needless; `window` is what the stack has restored.
    pub fn on_undone(&mut self, event: &Undone, window: &mut Window) {
        // SAFETY: see above.
        unsafe { lasthop_law_undone(&mut self.raw, event, window) }
    }
}

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Law").field("name", &self.name()).finish_non_exhaustive()
    }
}
