//! Which block is when.
//!
//! The law `lasthop` begins once most hosts have seen a queue for 5 s and have heard so of each other. In a full queue beacons are late and
//! lost: with five uploads of 2012 over 802.11g it began 20 s after the block, now and then later than 30 s (scripts/try-trial). Its first
//! step takes 5 s and two round trips. CUBIC takes some 5 s to fill a queue of 100 packets again, and 10 s one of 1000 (RFC 9438 §4.2:
//! K = ∛(W_max · 0.3 / 0.4)). So the first [`Plan::LEFT_OUT`] of each block do not count, or its first two thirds where that is shorter.

use lasthop_units::Span;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What hosts do in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// The policy decides, and is applied.
    Control,
    /// Connections are as without an agent.
    Free,
}

/// Pairs of blocks, one of each [`Arm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// By which hosts know it.
    pub id: u32,
    /// Of the order in each pair.
    pub seed: u32,
    /// Pairs of blocks: 1 to [`Self::PAIRS_MOST`].
    pub pairs: u16,
    /// The length of a block in seconds: 1 to [`Self::LONGEST_BLOCK_S`].
    pub block_s: u16,
}

/// A moment of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The block, from 0.
    pub block: u16,
    /// What hosts do.
    pub arm: Arm,
    /// Whether it counts: the start of a block does not.
    pub counts: bool,
    /// Until the next block, or the end.
    pub left: Span,
}

impl Plan {
    /// The most pairs: a day of blocks of 60 s has 720.
    pub const PAIRS_MOST: u16 = 720;
    /// The longest block, in seconds.
    pub const LONGEST_BLOCK_S: u16 = 3600;
    /// In a shorter block, in seconds, control may begin only in the part that counts.
    pub const SHORT_BLOCK_S: u16 = 60;
    /// What is left out at the start of a block, up to two thirds of it.
    pub const LEFT_OUT: Span = Span::from_secs(40);

    /// Whether its numbers are in their ranges.
    pub fn is_valid(&self) -> bool {
        (1..=Self::PAIRS_MOST).contains(&self.pairs) && (1..=Self::LONGEST_BLOCK_S).contains(&self.block_s)
    }

    /// The length of a block.
    pub const fn block(&self) -> Span {
        Span::from_secs(self.block_s as u64)
    }

    /// What counts of each block.
    pub fn counts(&self) -> Span {
        self.block().saturating_sub(self.left_out())
    }

    /// The number of blocks.
    pub const fn blocks(&self) -> u16 {
        2 * self.pairs
    }

    /// How long it lasts.
    pub fn lasts(&self) -> Span {
        self.block() * u64::from(self.blocks())
    }

    /// What is left out at the start of each block.
    pub fn left_out(&self) -> Span {
        Self::LEFT_OUT.min(Span::from_nanos(self.block().as_nanos() / 3 * 2))
    }

    /// What hosts do in a block. In each pair the order is drawn by itself.
    pub fn arm(&self, block: u16) -> Arm {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed.into());
        rng.set_stream(u64::from(block / 2));
        let control_first: bool = rng.random();
        if control_first == block.is_multiple_of(2) { Arm::Control } else { Arm::Free }
    }

    /// The moment so long after the beginning; `None`: it is over.
    pub fn at(&self, elapsed: Span) -> Option<Moment> {
        let block = u16::try_from(elapsed.as_nanos() / self.block().as_nanos()).ok()?;
        if block >= self.blocks() {
            return None;
        }
        let within = elapsed.saturating_sub(self.block() * u64::from(block));
        let left = self.block().saturating_sub(within);
        Some(Moment { block, arm: self.arm(block), counts: within >= self.left_out(), left })
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Control => "control",
            Self::Free => "free",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(seed: u32, block_s: u16) -> Plan {
        Plan { id: 1, seed, pairs: 10, block_s }
    }

    #[test]
    fn each_pair_has_one_block_of_each_kind_and_either_order_is_as_likely() {
        let mut control_first = 0;
        for seed in 0..1000 {
            let plan = plan(seed, 60);
            for pair in 0..plan.pairs {
                let arms = [plan.arm(2 * pair), plan.arm(2 * pair + 1)];
                assert_ne!(arms[0], arms[1]);
                control_first += u32::from(arms[0] == Arm::Control);
            }
        }
        // 10,000 coins: within four deviations of 50 each.
        assert!((4800..=5200).contains(&control_first), "{control_first}");
    }

    #[test]
    fn a_block_counts_after_forty_seconds_or_two_thirds_of_it() {
        let at = |plan: Plan, seconds: f64| {
            plan.at(Span::from_secs_f64(seconds)).map(|moment| (moment.block, moment.counts))
        };
        let long = plan(7, 60);
        assert_eq!(
            [at(long, 0.0), at(long, 39.9), at(long, 40.0)],
            [Some((0, false)), Some((0, false)), Some((0, true))]
        );
        assert_eq!([at(long, 59.9), at(long, 60.0)], [Some((0, true)), Some((1, false))]);
        assert_eq!([at(long, 1199.9), at(long, 1200.0)], [Some((19, true)), None]);
        let short = plan(7, 30);
        assert_eq!([at(short, 19.9), at(short, 20.0)], [Some((0, false)), Some((0, true))]);
        assert_eq!(long.at(Span::from_secs(50)).map(|moment| moment.left), Some(Span::from_secs(10)));
    }
}
