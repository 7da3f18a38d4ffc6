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
/// If that lasts for so long, in s, and so much longer for each host that is heard: where many begin at once each has to find its share.
/// It lasted for 4.5 s at most among up to fifty honest hosts, and for 8.5 s among two hundred that came at once.
const LASTS_S: (f64, f64) = (6.0, 0.02);

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
        !signals.authenticated && self.against_s > LASTS_S.0 + LASTS_S.1 * f64::from(signals.hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For how many ticks a host that got 1 MB/s without control is held at `rate` before it steps aside; `None`: for a minute or more.
    fn held_for(rate: f64, signals: Signals) -> Option<usize> {
        let mut evidence = Evidence::default();
        (1..120).find(|_| evidence.on_tick(&signals, rate, 0.010, (rate, 1e6)))
    }

    #[test]
    fn a_host_that_sees_no_queue_puts_up_with_less_for_six_seconds() {
        let alone = Signals::alone(0.1, 0.0, 0.0);
        // Ticks of half a second, more than 6.02 s.
        assert_eq!((held_for(0.0, alone), held_for(7.9e5, alone)), (Some(13), Some(13)));
        assert_eq!(held_for(8e5, alone), None);
        // 6 s and 256 times 0.02 s.
        assert_eq!(held_for(0.0, Signals { hosts: 256, ..alone }), Some(23));
    }

    #[test]
    fn a_queue_of_one_s_own_nothing_to_send_or_a_group_key_bear_out_what_peers_say() {
        let alone = Signals::alone(0.1, 0.0, 0.0);
        assert_eq!(held_for(0.0, Signals { own_excess: Some(0.005), ..alone }), None);
        assert_eq!(held_for(0.0, Signals { own_excess: None, ..alone }), None);
        assert_eq!(held_for(0.0, Signals { backlogged: false, ..alone }), None);
        assert_eq!(held_for(0.0, Signals { authenticated: true, ..alone }), None);
    }
}
