//! The share of one terminal in the bandwidth-delay product: hayakawa eqs. 2 to 4, shimada eq. 2.

use super::{PolicySettings, RttReading};
use lasthop_units::Span;

/// The share of this host, and the numbers from which it was computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// BWmax × f(n), in Mb/s (hayakawa eq. 3).
    pub bandwidth_mbps: f64,
    /// The RTT from which it was computed.
    pub rtt: Span,
    /// The kind of that RTT.
    pub reading: RttReading,
    /// The number of terminals, with this one.
    pub terminals: u32,
    /// The share of the host before rounding, in segments.
    pub ideal_segments: f64,
}

impl Share {
    /// The share of each of `terminals` with this RTT.
    pub(super) fn of(settings: &PolicySettings, rtt: Span, terminals: u32) -> Self {
        let terminals = terminals.clamp(1, settings.maximum_terminals);
        // hayakawa eq. 3
        let bandwidth_mbps = settings.bandwidth_mbps() * f(terminals, settings.exponent());
        let ideal_segments = ideal_cwnd(bandwidth_mbps, rtt, settings.segment_bytes, terminals);
        Self { bandwidth_mbps, rtt, reading: settings.rtt, terminals, ideal_segments }
    }
}

/// hayakawa eq. 4: how the bandwidth falls with the number of terminals; 1 for one terminal.
fn f(terminals: u32, exponent: f64) -> f64 {
    libm::pow(f64::from(terminals), exponent)
}

/// hayakawa eq. 2, the share of one terminal in segments. The paper prints Bandwidth\[Mbps\] × RTT\[s\] / (Segment
/// size(1.5 Kbyte) × n), which needs 10^6 for the Mega and 8 bits to the byte.
fn ideal_cwnd(bandwidth_mbps: f64, rtt: Span, segment_bytes: u32, terminals: u32) -> f64 {
    bandwidth_mbps * 1e6 * rtt.as_secs_f64() / (8.0 * f64::from(segment_bytes) * f64::from(terminals))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_falls_to_0_708_at_ten_terminals() {
        // hayakawa eq. 4: 10^-0.15 = e^(-0.15 · 2.302585) = e^-0.345388 = 0.70795
        assert!((f(10, -0.15) - 0.70795).abs() < 1e-5);
        assert_eq!(f(1, -0.15), 1.0);
        assert_eq!(f(10, 0.0), 1.0); // shimada eq. 2
    }

    #[test]
    fn ideal_cwnd_of_ten_terminals() {
        // 19e6 · 0.70795 · RTT / 120000
        let at = |rtt_ms| ideal_cwnd(19.0 * 0.70795, Span::from_millis(rtt_ms), 1500, 10);
        assert!((at(256) - 28.70).abs() < 0.01, "{}", at(256));
        assert!((at(4) - 0.448).abs() < 0.001, "{}", at(4));
    }
}
