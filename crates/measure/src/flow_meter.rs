//! What one connection's samples come to.

use crate::quantiles::distribution;
use lasthop_connection::TcpState;
use lasthop_scenario::{Distribution, StateShares};
use lasthop_units::{Bytes, Span};

/// The figures of one connection that follow from its samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowMeter {
    rtts_ms: Vec<f64>,
    windows: (f64, u32),
    /// Samples in each state.
    states: [u32; 5],
}

impl FlowMeter {
    /// Takes a sample, in order of time. `counts`: whether the warm-up is over; `acked_before`: what the same connection's sample
    /// before had acknowledged.
    ///
    /// The RTT counts only if data was acknowledged since then. A stalled connection measures no RTT, and its last one would stand for the
    /// whole stall.
    pub fn on_sample(&mut self, counts: bool, tcp: &TcpState, acked_before: Bytes) {
        // Unequal, not greater: a connection that replaces another one starts at 0 again.
        let fresh = tcp.acked != acked_before;
        if counts {
            self.rtts_ms.extend(tcp.srtt.filter(|_| fresh).map(Span::as_millis_f64));
            self.windows.0 += f64::from(tcp.cwnd_segments);
            self.windows.1 += 1;
            self.states[tcp.state as usize] += 1;
        }
    }

    /// The RTTs that count, in ms.
    pub fn rtts_ms(&self) -> &[f64] {
        &self.rtts_ms
    }

    /// The distribution of the RTTs; `None` without any.
    pub fn rtt_ms(&self) -> Option<Distribution> {
        distribution(&self.rtts_ms)
    }

    /// The mean window in segments; `None` without samples.
    pub fn cwnd_mean(&self) -> Option<f64> {
        (self.windows.1 > 0).then(|| self.windows.0 / f64::from(self.windows.1))
    }

    /// The share of the samples in each congestion-avoidance state; `None` without samples.
    pub fn state_shares(&self) -> Option<StateShares> {
        let all: u32 = self.states.iter().sum();
        let [open, disorder, cwr, recovery, loss] = self.states.map(|samples| f64::from(samples) / f64::from(all));
        (all > 0).then_some(StateShares { open, disorder, cwr, recovery, loss })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_connection::CongestionState;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn the_rtt_of_a_stalled_connection_is_not_counted_again() {
        let mut meter = FlowMeter::default();
        let tcp = |acked, srtt_ms, cwnd_segments, state| {
            let (acked, srtt) = (Bytes::new(acked), Some(Span::from_millis(srtt_ms)));
            TcpState { acked, srtt, cwnd_segments, state, ..TcpState::default() }
        };
        let [none, some, more] = [0, 100, 200].map(Bytes::new);
        meter.on_sample(false, &tcp(100, 5, 10, CongestionState::Loss), none);
        meter.on_sample(true, &tcp(100, 5, 20, CongestionState::Recovery), some);
        meter.on_sample(true, &tcp(200, 7, 40, CongestionState::Recovery), some);
        meter.on_sample(true, &tcp(200, 7, 60, CongestionState::Open), more);
        assert_eq!(meter.rtts_ms(), [7.0]);
        assert_eq!(meter.cwnd_mean(), Some(40.0)); // (20 + 40 + 60) / 3
        assert_eq!(FlowMeter::default().cwnd_mean(), None);
        let shares = meter.state_shares().expect("samples");
        assert!(close(shares.recovery, 2.0 / 3.0) && close(shares.open, 1.0 / 3.0), "{shares:?}");
        assert_eq!((shares.disorder, shares.cwr, shares.loss), (0.0, 0.0, 0.0));
        assert_eq!(FlowMeter::default().state_shares(), None);
    }
}
