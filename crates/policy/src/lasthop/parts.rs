//! The parts of the law, of which a study may leave one out: docs/models/policy-lasthop-parts.md says what each is worth.

use super::constants::{Constants, LawConstant};
use lasthop_keys::words;

words! {
    /// A part of the law of `lasthop`.
    pub enum LawPart {
        /// The windows of uploads may go, and wait below TCP, at once.
        AtOnce = "at-once",
        /// An upload with its send buffer in the network is bulk.
        SendBuffer = "send-buffer",
        /// Control waits until the total no longer grows.
        Growth = "growth",
        /// Control begins where most hosts propose it: a host that proposes nothing counts against it.
        Majority = "majority",
        /// A tick without congestion counts back, and does not start the count anew.
        Lull = "lull",
        /// The queue aimed at has a part in proportion to the path.
        Path = "path",
        /// Where all get too little for aggregates the queue aimed at is half as long.
        ShortTurns = "short-turns",
        /// No rate is below half of an equal share.
        LeastShare = "least-share",
        /// A step that loses much ends at once.
        EarlyEnd = "early-end",
        /// A bad step goes back one step, and not to no bounds at once.
        StepBack = "step-back",
        /// A step that loses much behind a bad one, without a good one or the end of its wait between, goes back to no bounds at once.
        SecondLoss = "second-loss",
        /// The wait after a bad step doubles.
        Patience = "patience",
        /// A wait ends once all get again what they did in a good step at the least aim.
        Return = "return",
        /// Where one segment more in each window would fill the queue aimed at, rates do not grow.
        WholeWindows = "whole-windows",
        /// Where the medium collapses, rates stay below where it did.
        Edge = "edge",
        /// Connections get back their windows when bounds end.
        GiveBack = "give-back",
    }
}

/// The law as it is, or with one thing changed to see what it is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    left_out: Option<LawPart>,
    pub(super) constants: Constants,
}

impl Default for Parts {
    fn default() -> Self {
        Self::ALL
    }
}

impl Parts {
    /// The law as agents have it.
    pub const ALL: Self = Self { left_out: None, constants: Constants::LAW };

    /// All but this one.
    pub const fn without(part: LawPart) -> Self {
        Self { left_out: Some(part), ..Self::ALL }
    }

    /// The same with one number times a factor.
    pub fn scaled(self, which: LawConstant, by: f64) -> Self {
        let constants = self.constants.scaled(which, by);
        // Below 1 it would be a range without numbers.
        Self { constants: Constants { believed: constants.believed.max(1.0), ..constants }, ..self }
    }

    pub(super) fn has(self, part: LawPart) -> bool {
        self.left_out != Some(part)
    }
}
