//! Evidence of one's own. Without a group key anyone may say that the access point is full, so what peers say holds only as
//! long as this host's own connections do not contradict it.
//!
//! They do when the host gets clearly less than it got without control, is held back by the common rate, has more to send, and
//! sees no queue in its own RTTs. Honest hosts come to no such state that lasts: where no queue stands the common rate grows by
//! up to a quarter at each tick. Then the host steps aside ([`super::guard`]): it does without control for a time that doubles.
//!
//! *What it leaves out*: a host that has never been without control knows no goodput to compare with.

use super::signals::Signals;

/// Below this part of what the host got without control it gets clearly less.
const LESS: f64 = 0.8;
/// Below this part of the queue aimed at it sees none.
const NO_QUEUE: f64 = 0.5;
/// If that lasts for so long, in s: a common rate that may grow doubles in 3 s.
const LASTS_S: f64 = 6.0;

/// For how long a host's own connections have contradicted what its peers say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    against_s: f64,
}

impl Evidence {
    /// One tick under control, with the common rate, the queue aimed at in s, and what this host gets and what it got without
    /// control; whether it is to step aside.
    pub(super) fn on_tick(&mut self, signals: &Signals, rate: f64, target: f64, own: (f64, f64)) -> bool {
        let (gets, free) = own;
        let no_queue = signals.own_excess.is_some_and(|excess| excess < NO_QUEUE * target);
        let held_back = signals.backlogged && gets.max(rate) < LESS * free;
        self.against_s = if no_queue && held_back { self.against_s + signals.elapsed } else { 0.0 };
        !signals.authenticated && self.against_s > LASTS_S
    }
}
