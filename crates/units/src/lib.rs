//! Types that carry their units, so that a millisecond cannot be taken for a microsecond.
//!
//! [`Time`] is a point on the time line of one run, [`Span`] a distance between two points; both count nanoseconds in a
//! `u64` (584 years). [`Bytes`], [`Rate`] and [`Probability`] are what they say. There is no clock here: whoever owns
//! one (a simulator's event queue, a real-time loop) makes the [`Time`]s.
//!
//! Arithmetic that leaves the range is a broken invariant and panics with the operands in the message, in every build
//! profile; the `saturating_*` forms are for places where the range may be left on purpose.
#![deny(clippy::disallowed_methods)]

mod probability;
mod rate;
mod time;

pub use probability::{Probability, ProbabilityError};
pub use rate::{Bytes, Rate};
pub use time::{Span, Time};
