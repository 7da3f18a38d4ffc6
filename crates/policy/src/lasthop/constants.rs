//! The numbers of the law. A study may scale one of them: `lasthop study lasthop/sensitivity` says what each is worth.

use lasthop_keys::words;
use lasthop_units::{Rate, Span};

/// Declares each number once: its field, its unit, its value, and its name in studies.
macro_rules! constants {
    ($($(#[$about:meta])* $field:ident: $unit:ty = $value:expr, $variant:ident $word:literal;)+) => {
        words! {
            /// A number of the law of `lasthop`.
            pub enum LawConstant { $($(#[$about])* $variant = $word),+ }
        }

        /// The numbers of a law.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(super) struct Constants { $($(#[$about])* pub(super) $field: $unit),+ }

        impl Constants {
            /// Those that agents have.
            pub(super) const LAW: Self = Self { $($field: $value),+ };

            /// One of them times a factor.
            pub(super) fn scaled(mut self, which: LawConstant, by: f64) -> Self {
                match which { $(LawConstant::$variant => self.$field = self.$field.scaled(by)),+ }
                self
            }
        }
    };
}

constants! {
    /// The part of the least aim for the access point.
    least_aim: Span = Span::from_millis(10), LeastAim "least-aim";
    /// The part of the least aim for each host's turn on the air.
    aim_of_host: Span = Span::from_millis(1), AimOfHost "aim-of-host";
    /// The part of the least aim in proportion to the path, whose round trips vary more the longer it is.
    aim_of_path: f64 = 0.1, AimOfPath "aim-of-path";
    /// The parts for access point and hosts are half as long where all get less than this, free and in the latest step.
    /// 802.11a and g carry 27 Mb/s of payload at most, in frames of one packet: a host's turn is short, and no aggregates have
    /// to be kept long.
    aggregates: Rate = Rate::from_bps(27_000_000), Aggregates "aggregates";
    /// A queue is congested from twice the least aim's parts for access point and path on, and this for each host, whose turn
    /// on the air takes up to 5.5 ms, but mostly less.
    congested_by_host: Span = Span::from_millis(4), CongestedByHost "congested-by-host";
    /// No queue is congested while the total is so many times its mean: slow start is no congestion.
    grows: f64 = 1.3, Grows "grows";
    /// What was got without bounds is a mean that forgets within this.
    free_age: Span = Span::from_secs(8), FreeAge "free-age";
    /// The next step aims at this part of the aim; a bad one is followed by one that aims at the aim over this.
    step: f64 = 0.4, Step "step";
    /// A step lasts so long and two round trips. So long is the queue congested before bounds begin, and a host without
    /// bulk connections before it is idle.
    step_for: Span = Span::from_secs(5), StepFor "step-for";
    /// A step is judged by what comes after this and one round trip.
    judged_from: Span = Span::from_secs(3), JudgedFrom "judged-from";
    /// A step is bad where all hosts together get less than this part of what they got without bounds. A wait ends above this
    /// part of what they got in a good step. A queue above this part of its aim is full, for whole windows.
    keeps: f64 = 0.9, Keeps "keeps";
    /// A step is bad where hosts get no more than `grows` times that, behind a queue above so many times its aim: others
    /// fill it.
    filled: f64 = 2.0, Filled "filled";
    /// Where round trips are preferred, a step is bad where hosts get less than this part, and for nothing else.
    keeps_for_latency: f64 = 0.5, KeepsForLatency "keeps-for-latency";
    /// A step where hosts get less than this part for more than a second ends at once: that is no noise.
    loses: f64 = 0.7, Loses "loses";
    /// After a bad step no queue is made shorter for this long, each time twice as long.
    patience: Span = Span::from_secs(40), Patience "patience";
    /// The longest such wait.
    longest_patience: Span = Span::from_secs(320), LongestPatience "longest-patience";
    /// How much of the difference to the aim is made up for in a tick; a difference of more than a half counts as a half.
    gain: f64 = 0.4, Gain "gain";
    /// Below the edge of a medium that collapses, all may get so many times as much after each tick.
    creep: f64 = 1.001, Creep "creep";
    /// A queue is believed up to so many times the median; a rate up to so many times one's own, and down to that part: one
    /// liar of many does not move a mean far. No rate is above so many times the goodput of the host that gets most.
    believed: f64 = 2.0, Believed "believed";
    /// What is of now: means over the ticks forget within this, what peers say counts less by it, and an RTT without an ACK
    /// for longer is of another time. Four ticks: a burst or a pause of a second is neither bulk nor the end of it.
    recent: Span = Span::from_secs(2), Recent "recent";
    /// The mean of a host's goodput forgets within this: steps last seconds, and are judged by it.
    delivered_age: Span = Span::from_secs(1), DeliveredAge "delivered-age";
    /// A connection is bulk that had enough to send, or received, in this part of the ticks.
    bulk: f64 = 0.6, Bulk "bulk";
    /// Enough is more unsent, and so many segments in flight, or the window if that is less: fewer are a keystroke or a frame.
    full_segments: u32 = 4, FullSegments "full-segments";
    /// Or so many in flight: where the send buffer is all in the network nothing is unsent.
    buffer_segments: u32 = 32, BufferSegments "buffer-segments";
    /// A download is bulk from this rate on: calls have less.
    least_download: Rate = Rate::from_bps(200_000), LeastDownload "least-download";
    /// A window of fewer segments would wait for delayed ACKs.
    least_segments: u32 = 2, LeastSegments "least-segments";
}

/// What a number of the law can be.
trait Scaled {
    fn scaled(self, by: f64) -> Self;
}

impl Scaled for Span {
    fn scaled(self, by: f64) -> Self {
        self * by
    }
}

impl Scaled for Rate {
    fn scaled(self, by: f64) -> Self {
        self * by
    }
}

impl Scaled for f64 {
    fn scaled(self, by: f64) -> Self {
        self * by
    }
}

impl Scaled for u32 {
    fn scaled(self, by: f64) -> Self {
        (f64::from(self) * by).round().max(1.0) as Self
    }
}
