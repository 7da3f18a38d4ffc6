//! Types that carry their units, so that a millisecond cannot be taken for a microsecond.
//!
//! [`Time`] is a point on the time line of one run, [`Span`] a distance between two points. Both count nanoseconds in a
//! `u64` (584 years). [`Bytes`], [`Rate`] and [`Probability`] are what they say; [`Ecn`] is the field of IP.
//! There is no clock here: the caller makes the [`Time`]s, from a simulator's event queue or in a real-time loop.
//!
//! Arithmetic that leaves the range is a broken invariant. It panics with the operands in the message, in every build
//! profile. The `saturating_*` methods stop at the end of the range instead.
#![deny(clippy::disallowed_methods)]

mod ecn;
mod probability;
mod rate;
mod time;

pub use ecn::Ecn;
pub use probability::{Probability, ProbabilityError};
pub use rate::{About, Bytes, Rate};
pub use time::{Span, Time};
