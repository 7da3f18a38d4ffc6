//! The arithmetic of a result.
//!
//! References: jain84 = R. Jain, D. Chiu, W. Hawe, *A quantitative measure of fairness and discrimination for resource
//! allocation in shared computer systems*, DEC-TR-301, 1984. hyndman96 = R. J. Hyndman, Y. Fan, *Sample quantiles in
//! statistical packages*, The American Statistician 50(4), 1996.

use lasthop_scenario::{Distribution, StateShares};
use lasthop_units::Bytes;

/// A flow below this ratio of its fair share counts as starved.
const STARVED_SHARE: f64 = 0.05;

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

/// The distribution of samples in any order; `None` without samples. NaN is not counted.
pub fn distribution(samples: &[f64]) -> Option<Distribution> {
    let mut sorted: Vec<f64> = samples.iter().copied().filter(|sample| !sample.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let at = |quantile| quantile_of_sorted(&sorted, quantile);
    Some(Distribution { min, mean: mean(&sorted)?, p50: at(0.50), p95: at(0.95), p99: at(0.99), max })
}

/// The `quantile` (0..=1) of the samples, by linear interpolation between the two nearest; `None` without samples. This
/// is type 7 of hyndman96, the default of NumPy and R.
///
/// # Panics
/// If `quantile` is not in 0..=1.
pub fn quantile(samples: &[f64], quantile: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| quantile_of_sorted(&sorted, quantile))
}

/// The mean; `None` without samples.
pub fn mean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// Jain's index of k goodputs: J = (Σx)² / (k·Σx²) (jain84). 1 where all are equal, 1/k where one flow has everything;
/// `None` where all are 0 or there are none.
pub fn jain_index(goodputs: &[f64]) -> Option<f64> {
    let sum: f64 = goodputs.iter().sum();
    let squares: f64 = goodputs.iter().map(|goodput| goodput * goodput).sum();
    (squares > 0.0).then(|| sum * sum / (goodputs.len() as f64 * squares))
}

/// The number of flows below 5 % of the mean goodput; all of them where the mean is 0.
pub fn starved_flows(goodputs: &[f64]) -> u32 {
    let Some(fair_share) = mean(goodputs) else { return 0 };
    let starved = |goodput: &&f64| fair_share <= 0.0 || **goodput < STARVED_SHARE * fair_share;
    u32::try_from(goodputs.iter().filter(starved).count()).unwrap_or(u32::MAX)
}

fn quantile_of_sorted(sorted: &[f64], quantile: f64) -> f64 {
    assert!((0.0..=1.0).contains(&quantile), "{quantile} is not a quantile: it must be between 0 and 1");
    let place = quantile * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn jain_is_one_when_all_have_the_same_and_one_over_k_when_one_has_all() {
        assert_eq!(jain_index(&[2.0; 10]), Some(1.0));
        assert_eq!(jain_index(&[0.0, 0.0, 7.0, 0.0]), Some(0.25));
    }

    #[test]
    fn jain_of_one_two_three() {
        // (1+2+3)² / (3·(1+4+9)) = 36/42 = 6/7.
        assert!(close(jain_index(&[1.0, 2.0, 3.0]).expect("an index"), 6.0 / 7.0));
        // Two of four share evenly, the others have nothing: (2x)²/(4·2x²) = 1/2.
        assert!(close(jain_index(&[5.0, 5.0, 0.0, 0.0]).expect("an index"), 0.5));
    }

    #[test]
    fn jain_of_nothing_is_not_told() {
        assert_eq!(jain_index(&[]), None);
        assert_eq!(jain_index(&[0.0, 0.0]), None);
    }

    #[test]
    fn a_flow_under_five_percent_of_the_mean_is_starved() {
        // Sum 20, four flows: fair share 5, of which 5 % are 0.25.
        assert_eq!(starved_flows(&[9.75, 9.76, 0.25, 0.24]), 1);
        assert_eq!(starved_flows(&[1.0, 1.0]), 0);
        assert_eq!(starved_flows(&[]), 0);
    }

    #[test]
    fn where_nobody_got_anything_all_are_starved() {
        assert_eq!(starved_flows(&[0.0, 0.0, 0.0]), 3);
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

    #[test]
    fn quantiles_lie_between_the_two_nearest_samples() {
        // Positions 0, 1, 2, 3: the median at 1.5, p95 at 2.85: 30 + 0.85·(40−30).
        let spread = distribution(&[40.0, 10.0, 30.0, 20.0]).expect("a distribution");
        assert!(close(spread.min, 10.0) && close(spread.max, 40.0) && close(spread.mean, 25.0));
        assert!(close(spread.p50, 25.0) && close(spread.p95, 38.5) && close(spread.p99, 39.7));
        assert_eq!(quantile(&[7.0], 0.95), Some(7.0));
        assert_eq!(distribution(&[]), None);
        assert_eq!(distribution(&[f64::NAN]), None);
    }
}
