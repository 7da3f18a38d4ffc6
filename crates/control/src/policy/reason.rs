//! Why a policy decided what it decided.

use super::RttReading;
use std::fmt;
use units::Span;

/// Why a connection has its limits, in numbers; [`Display`](fmt::Display) says it in words.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// The policy is `none`.
    NoPolicy,
    /// A constant budget of the host, split over its busy connections.
    Budget {
        /// The host's upper limit.
        bound_segments: u32,
        /// Over how many connections it is split.
        busy_flows: u32,
    },
    /// The RTT of the connection is not known yet.
    NoRtt,
    /// Control has not been enabled: the ratio is not above the threshold.
    NotCongested {
        /// RTT / lowest RTT.
        ratio: f64,
        /// Control is enabled above this.
        enable_ratio: f64,
    },
    /// Under control, and the ratio is so high that the window is cut until the next tick.
    Cut {
        /// RTT / lowest RTT.
        ratio: f64,
        /// The window is cut above this.
        cut_ratio: f64,
    },
    /// Under control, with this host's share of the bandwidth-delay product.
    Share {
        /// RTT / lowest RTT.
        ratio: f64,
        /// BWmax × f(n), in Mb/s (hayakawa eq. 3).
        bandwidth_mbps: f64,
        /// The RTT that the window was computed from.
        rtt: Span,
        /// Which RTT that is.
        reading: RttReading,
        /// The number of terminals, this one included.
        terminals: u32,
        /// Over how many connections the share is split.
        busy_flows: u32,
        /// The share of this connection before rounding, in segments.
        ideal_segments: f64,
    },
    /// Control has been disabled again: the ratio fell below the threshold.
    Released {
        /// RTT / lowest RTT.
        ratio: f64,
        /// Control is disabled below this.
        release_ratio: f64,
    },
}

impl Reason {
    /// One word for the case, without its numbers: to tell whether the reason has changed in kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NoPolicy => "no-policy",
            Self::Budget { .. } => "budget",
            Self::NoRtt => "no-rtt",
            Self::NotCongested { .. } => "not-congested",
            Self::Cut { .. } => "cut",
            Self::Share { .. } => "share",
            Self::Released { .. } => "released",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoPolicy => f.write_str("the policy is none"),
            Self::Budget { bound_segments, busy_flows } => {
                write!(f, "the host's {bound_segments} segments over {}", connections(busy_flows))
            }
            Self::NoRtt => f.write_str("no RTT has been measured yet"),
            Self::NotCongested { ratio, enable_ratio } => {
                write!(f, "RTT is {ratio:.1} times the lowest, not above {enable_ratio:.1}")
            }
            Self::Cut { ratio, cut_ratio } => {
                write!(f, "RTT is {ratio:.1} times the lowest, above {cut_ratio:.1}: cut until the next tick")
            }
            Self::Share { ratio, bandwidth_mbps, rtt, reading, terminals, busy_flows, ideal_segments } => {
                let reading = match reading {
                    RttReading::Current => "current",
                    RttReading::Minimum => "lowest",
                };
                write!(
                    f,
                    "share of {bandwidth_mbps:.1} Mb/s x {:.0} ms ({reading} RTT) over {terminals} terminals and {} \
                     = {ideal_segments:.1} segments; RTT is {ratio:.1} times the lowest",
                    rtt.as_millis_f64(),
                    connections(busy_flows),
                )
            }
            Self::Released { ratio, release_ratio } => {
                write!(f, "RTT is {ratio:.1} times the lowest, below {release_ratio:.1}: control released")
            }
        }
    }
}

fn connections(count: u32) -> String {
    if count == 1 { "1 connection".to_owned() } else { format!("{count} connections") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_reads_as_a_sentence_with_its_numbers() {
        let share = Reason::Share {
            ratio: 1.0,
            bandwidth_mbps: 13.45,
            rtt: Span::from_millis(256),
            reading: RttReading::Current,
            terminals: 10,
            busy_flows: 1,
            ideal_segments: 28.69,
        };
        assert_eq!(
            share.to_string(),
            "share of 13.4 Mb/s x 256 ms (current RTT) over 10 terminals and 1 connection = 28.7 segments; \
             RTT is 1.0 times the lowest"
        );
        assert_eq!(
            Reason::Cut { ratio: 5.25, cut_ratio: 5.0 }.to_string(),
            "RTT is 5.2 times the lowest, above 5.0: cut until the next tick"
        );
        assert_eq!(
            Reason::Budget { bound_segments: 64, busy_flows: 3 }.to_string(),
            "the host's 64 segments over 3 connections"
        );
    }
}
