//! What one connection's samples come to.

use crate::quantiles::distribution;
use lasthop_scenario::{Distribution, StateShares};
use lasthop_units::Bytes;

/// The figures of one connection that follow from its samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowMeter {
    acked: Bytes,
    rtts_ms: Vec<f64>,
    windows: (f64, u32),
    /// Samples in each state.
    states: [u32; 5],
}

impl FlowMeter {
    /// Takes a sample, in order of time. `counts`: whether the warm-up is over; `state`: the congestion-avoidance state
    /// in Linux's numbers, from 0 (Open) to 4 (Loss).
    ///
    /// The RTT counts only if data was acknowledged since the sample before. A stalled connection measures no RTT, and
    /// its last one would stand for the whole stall.
    pub fn on_sample(&mut self, counts: bool, acked: Bytes, srtt_ms: Option<f64>, cwnd_segments: u32, state: u8) {
        // Unequal, not greater: a connection that replaces another one starts at 0 again.
        let fresh = acked != self.acked;
        self.acked = acked;
        if counts {
            self.rtts_ms.extend(srtt_ms.filter(|_| fresh));
            self.windows.0 += f64::from(cwnd_segments);
            self.windows.1 += 1;
            if let Some(samples) = self.states.get_mut(usize::from(state)) {
                *samples += 1;
            }
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

    /// The share of the samples in each congestion-avoidance state; all 0 without samples.
    pub fn state_shares(&self) -> StateShares {
        let all: u32 = self.states.iter().sum();
        let [open, disorder, cwr, recovery, loss] =
            self.states.map(|samples| f64::from(samples) / f64::from(all.max(1)));
        StateShares { open, disorder, cwr, recovery, loss }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn the_rtt_of_a_stalled_connection_is_not_counted_again() {
        let mut meter = FlowMeter::default();
        meter.on_sample(false, Bytes::new(100), Some(5.0), 10, 4);
        meter.on_sample(true, Bytes::new(100), Some(5.0), 20, 3);
        meter.on_sample(true, Bytes::new(200), Some(7.0), 40, 3);
        meter.on_sample(true, Bytes::new(200), Some(7.0), 60, 0);
        assert_eq!(meter.rtts_ms(), [7.0]);
        assert_eq!(meter.cwnd_mean(), Some(40.0)); // (20 + 40 + 60) / 3
        assert_eq!(FlowMeter::default().cwnd_mean(), None);
        let shares = meter.state_shares();
        assert!(close(shares.recovery, 2.0 / 3.0) && close(shares.open, 1.0 / 3.0), "{shares:?}");
        assert_eq!((shares.disorder, shares.cwr, shares.loss), (0.0, 0.0, 0.0));
        assert_eq!(FlowMeter::default().state_shares(), StateShares::default());
    }
}
