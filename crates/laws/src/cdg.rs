//! CDG's decisions step by step, to check each against its formula: gradients, state of the queue, back-off
//! probability. For a congestion control use [`Law`](super::Law).

pub use crate::c::lh_gradients as Gradients;
use crate::{c, call};

/// The state of the path's queue, inferred from the gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)] // the names say it
pub enum Queue {
    Unknown = c::LH_QUEUE_UNKNOWN,
    Full = c::LH_QUEUE_FULL,
    Empty = c::LH_QUEUE_EMPTY,
    Rising = c::LH_QUEUE_RISING,
    Falling = c::LH_QUEUE_FALLING,
}

impl Gradients {
    /// No gradients yet. The sums cover `rounds` of them, 1 to 16.
    pub fn over(rounds: u32) -> Self {
        let mut gradients = Self::default();
        call::lh_gradients_init(&mut gradients, rounds);
        gradients
    }

    /// Adds a round with these RTTs, not 0. Returns false if it has no gradient.
    pub fn look(&mut self, min_us: u32, max_us: u32) -> bool {
        let mut latest = c::lh_gradient::default();
        call::lh_gradients_look(self, &c::lh_round { min_us, max_us }, &mut latest) != 0
    }

    /// The next round has no gradient.
    pub fn skip(&mut self) {
        call::lh_gradients_skip(self);
    }

    /// The sums of g_min and g_max, in us.
    pub const fn sums_us(&self) -> [i32; 2] {
        [self.sum.min_us, self.sum.max_us]
    }
}

impl Queue {
    const ALL: [Self; 5] = [Self::Unknown, Self::Full, Self::Empty, Self::Rising, Self::Falling];

    /// FreeBSD's rule: the new state after a round, from the old state and these sums.
    pub fn after([min_us, max_us]: [i32; 2], before: Self) -> Self {
        Self::of(call::lh_cdg_queue(&c::lh_gradient { min_us, max_us }, before as u32))
    }

    /// Linux's rule.
    pub fn after_in_linux([min_us, max_us]: [i32; 2], before: Self) -> Self {
        Self::of(call::lh_cdg_linux_queue(&c::lh_gradient { min_us, max_us }, before as u32))
    }

    fn of(number: u32) -> Self {
        *Self::ALL.iter().find(|queue| **queue as u32 == number).expect("a rule gives one of enum lh_queue")
    }
}

/// 1 - e^-(`gradient` / `scale`), 0 to 1.
pub fn backoff_probability(gradient: u64, scale: u64) -> f64 {
    call::lh_gradient_probability(call::lh_gradient_exponent(gradient, scale)) as f64 / 4_294_967_296.0
}

/// e^-(`x` / 2^24), 0 to 1.
pub fn exp_minus(x: u32) -> f64 {
    call::lh_exp_minus(x) as f64 / 4_294_967_296.0
}
