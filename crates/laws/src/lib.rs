//! Congestion controls, and the bound around them: C headers in `include/`, run by kernel and simulator alike, and
//! their Rust face. [`bound`] is the limit around any law; the rest is the laws.
//!
//! A law receives events: an ACK, a loss, a timeout, a transmission, a needless reduction. It grows the window and sets
//! the new ssthresh. The stack does the rest: it detects losses and reduces the window towards ssthresh. It sets the
//! window to 1 after a timeout and restores it after a needless reduction. The headers are compiled for this machine
//! and called, not translated.
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

pub mod bound;
mod c;
mod call;
pub mod cdg;
pub mod cubic;
mod lastlink;
mod link_report;
mod name;
pub mod option;
pub mod own;
mod parameters;

pub use bound::Bound;
pub use c::{
    lh_acked as Acked, lh_lost as Lost, lh_rate_sample as Sample, lh_sent as Sent, lh_steering as Steering,
    lh_undone as Undone, lh_window as Window,
};
pub use lastlink::{Applied, Heeded, LossCount, is_of_the_other_base};
pub use link_report::{LinkReport, ReportCounters, Reported};
pub use name::{Colour, LawName, Marker, Marking, UnknownLaw};
pub use parameters::{Parameter, ParameterError, Parameters, Unit};

use lasthop_units::{Span, Time};
use std::fmt;

/// The ssthresh of a connection that has seen no loss.
pub const INFINITE_SSTHRESH: u32 = c::LH_INFINITE_SSTHRESH;
/// The greatest window of a law.
const MAX_WINDOW: u32 = c::LH_MAX_WINDOW;

/// This ssthresh, or `None` if it is infinite.
pub const fn finite_ssthresh(segments: u32) -> Option<u32> {
    if segments < INFINITE_SSTHRESH { Some(segments) } else { None }
}

/// A law with its parameters: the choice for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    /// The law.
    pub name: LawName,
    /// Its parameters.
    pub parameters: Parameters,
    /// The seed of its random draws, for the laws that draw. Each connection should have its own.
    pub seed: u32,
}

impl From<LawName> for Choice {
    /// With the default parameters and seed 0.
    fn from(name: LawName) -> Self {
        Self { name, parameters: Parameters::of(name), seed: 0 }
    }
}

/// What else than a loss ends the slow start of a connection. Only NewReno and CUBIC use it; the other laws keep their
/// published exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum SlowStart {
    /// Only a loss: RFC 5681.
    #[default]
    Standard = c::LH_SLOW_START_STANDARD,
    /// Linux's HyStart: a long train of ACKs, or a risen RTT.
    HyStart = c::LH_SLOW_START_HYSTART,
    /// RFC 9406: a risen RTT, after some rounds of slower growth.
    HyStartPlusPlus = c::LH_SLOW_START_HYSTART_PLUS_PLUS,
}

impl SlowStart {
    /// Every slow start.
    pub const ALL: [Self; 3] = [Self::Standard, Self::HyStart, Self::HyStartPlusPlus];
}

impl Sample {
    /// [`Sample::state`]: no sign of loss.
    pub const OPEN: u32 = c::LH_STATE_OPEN;
    /// A mark, or a full queue of the host, reduces the window.
    pub const CWR: u32 = c::LH_STATE_CWR;
    /// A loss is being recovered.
    pub const RECOVERY: u32 = c::LH_STATE_RECOVERY;
    /// Likewise, after a timeout.
    pub const LOSS: u32 = c::LH_STATE_LOSS;
}

impl Acked {
    /// Data were acknowledged and no reduction is under way.
    pub const MAY_GROW: u32 = c::LH_MAY_GROW;
    /// The window limits the data in flight, not the application or the receiver.
    pub const CWND_LIMITED: u32 = c::LH_CWND_LIMITED;
    /// `tsval` and `tsecr` are valid.
    pub const HAS_TIMESTAMP: u32 = c::LH_HAS_TIMESTAMP;
    /// The sender spreads its segments over the round trip.
    pub const PACED: u32 = c::LH_PACED;
    /// An upper bound holds the window, so the law does not grow it. A law with a clock (CUBIC) stops it, so that the
    /// window does not jump when the bound ends.
    pub const HELD: u32 = c::LH_HELD;
    /// The first unacknowledged byte moved.
    pub const ADVANCED: u32 = c::LH_ADVANCED;
    /// The stack reduces the window or recovers from a loss.
    pub const IN_REDUCTION: u32 = c::LH_IN_REDUCTION;
}

/// The start of a connection. Its sequence numbers begin at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The time now.
    pub now: Time,
    /// The exit from its slow start.
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

/// One connection's congestion control: its parameters and its state, inline.
#[derive(Clone, PartialEq, Eq)]
pub struct Law {
    name: LawName,
    parameters: Parameters,
    raw: c::lh_law,
}

impl Law {
    /// The law of a connection with this start.
    pub fn new(choice: impl Into<Choice>, start: Start) -> Self {
        let choice: Choice = choice.into();
        let mut raw = c::lh_law { _bindgen_opaque_blob: [0; _] };
        let start = c::lh_start {
            now_us: start.now.as_nanos() / 1000,
            snd_nxt: 0,
            slow_start: start.slow_start as u32,
            seed: choice.seed,
            timestamp_tick_us: u32::try_from(start.timestamp_tick.as_nanos() / 1000).unwrap_or(u32::MAX).max(1),
        };
        match choice.name {
            LawName::Own(own) => own.init(&mut raw, choice.parameters.raw(), &start),
            name => call::lh_law_init(&mut raw, name.number(), choice.parameters.raw(), &start),
        }
        Self { name: choice.name, parameters: choice.parameters, raw }
    }

    /// The law's name.
    pub const fn name(&self) -> LawName {
        self.name
    }

    /// Changes its parameters, as `lasthop laws set` does in the kernel. `parameters` must be of this law.
    pub fn set_parameters(&mut self, parameters: Parameters) {
        self.parameters = parameters;
    }

    /// An ACK arrived: grows the window if the flags allow it; may set ssthresh to end slow start.
    ///
    /// # Panics
    /// If the window has no segment: laws divide by it.
    pub fn on_acked(&mut self, event: &Acked, window: &mut Window) {
        assert!(window.cwnd_segments > 0, "a window has at least one segment");
        match self.name {
            LawName::Own(own) => own.acked(&mut self.raw, self.parameters.raw(), event, window),
            _ => call::lh_law_acked(&mut self.raw, self.parameters.raw(), event, window),
        }
        window.cwnd_segments = window.cwnd_segments.min(MAX_WINDOW);
    }

    /// A reduction begins: sets only ssthresh.
    pub fn on_lost(&mut self, event: &Lost, window: &mut Window) {
        match self.name {
            LawName::Own(own) => own.lost(&mut self.raw, self.parameters.raw(), event, window),
            _ => call::lh_law_lost(&mut self.raw, self.parameters.raw(), event, window),
        }
    }

    /// A reduction without a loss begins, for ECN or a full queue of this host: sets ssthresh. Every law reduces here.
    pub fn on_notified(&mut self, event: &Lost, window: &mut Window) {
        match self.name {
            LawName::Own(own) => own.notified(&mut self.raw, self.parameters.raw(), event, window),
            _ => call::lh_law_notified(&mut self.raw, self.parameters.raw(), event, window),
        }
    }

    /// The first retransmission timeout of this segment: sets ssthresh. The stack sets the window.
    pub fn on_timed_out(&mut self, event: &Lost, window: &mut Window) {
        match self.name {
            LawName::Own(own) => own.timed_out(&mut self.raw, self.parameters.raw(), event, window),
            _ => call::lh_law_timed_out(&mut self.raw, self.parameters.raw(), event, window),
        }
    }

    /// A client has reported its last link. Before the first data it may set the window and ssthresh. Does nothing for
    /// laws other than [`LawName::Lastlink`].
    pub fn on_reported(&mut self, event: &Reported, window: &mut Window) {
        if self.name.hears_reports() {
            call::lh_law_reported(&mut self.raw, self.parameters.raw(), event, window);
        }
    }

    /// The law's state of the last link. `None`: not [`LawName::Lastlink`], or no report yet.
    pub fn applied(&self) -> Option<Applied> {
        if self.name != LawName::Lastlink {
            return None;
        }
        // SAFETY: the C function returns a pointer into the borrowed law, to the state of its own kind.
        #[allow(unsafe_code)]
        Applied::of(unsafe { &*c::lh_law_lastlink(&self.raw) })
    }

    /// A segment of new data leaves.
    pub fn on_sent(&mut self, event: &Sent) {
        match self.name {
            LawName::Own(own) => own.sent(&mut self.raw, event),
            _ => call::lh_law_sent(&mut self.raw, event),
        }
    }

    /// Whether the law sets the window and the pace itself ([`LawName::steers`]): the stack reduces nothing.
    #[inline]
    pub fn steers(&self) -> bool {
        self.name.steers()
    }

    /// An ACK arrived, for a law that steers: sets window and pace.
    ///
    /// # Panics
    /// If the window has no segment.
    pub fn on_sampled(&mut self, sample: &Sample, steering: &mut Steering) {
        assert!(steering.cwnd_segments > 0, "a window has at least one segment");
        match self.name {
            LawName::Own(own) => own.sampled(&mut self.raw, self.parameters.raw(), sample, steering),
            _ => call::lh_law_sampled(&mut self.raw, self.parameters.raw(), sample, steering),
        }
        steering.cwnd_segments = steering.cwnd_segments.min(MAX_WINDOW);
    }

    /// Data leave with nothing in flight, after the application had none, for a law that steers.
    pub fn on_resumed(&mut self, sample: &Sample, steering: &mut Steering) {
        match self.name {
            LawName::Own(own) => own.resumed(&mut self.raw, self.parameters.raw(), sample, steering),
            _ => call::lh_law_resumed(&mut self.raw, self.parameters.raw(), sample, steering),
        }
        steering.cwnd_segments = steering.cwnd_segments.min(MAX_WINDOW);
    }

    /// The last reduction was needless; the stack has restored `window`.
    pub fn on_undone(&mut self, event: &Undone, window: &mut Window) {
        match self.name {
            LawName::Own(own) => own.undone(&mut self.raw, event, window),
            _ => call::lh_law_undone(&mut self.raw, event, window),
        }
    }
}

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Law").field("name", &self.name()).finish_non_exhaustive()
    }
}
