//! Whether connections get equal shares.
//!
//! Reference: jain84 = R. Jain, D. Chiu, W. Hawe, *A quantitative measure of fairness and discrimination for resource
//! allocation in shared computer systems*, DEC-TR-301, 1984.

use crate::quantiles::mean;

/// A flow below this ratio of its fair share counts as starved.
const STARVED_SHARE: f64 = 0.05;

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
}
