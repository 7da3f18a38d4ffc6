//! The state of the law `lastlink` (`struct lh_lastlink` of `laws/lastlink.h`), with units.

use crate::c::lh_lastlink;
use lasthop_units::{Probability, Rate, Time};

/// A law's knowledge of a client's last link, and its use of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Applied {
    /// As last reported, whether or not it has expired. `None`: unknown.
    pub bandwidth: Option<Rate>,
    /// Likewise.
    pub error_rate: Option<Probability>,
    /// Expiry of the report, on the clock of the law's events: the simulation's, or the kernel's CLOCK_MONOTONIC.
    pub expires: Time,
    /// The heuristics permitted by the server: [`Reported::PERMIT_MAX`](crate::Reported::PERMIT_MAX) and the others,
    /// or-ed.
    pub permitted: u32,
    /// Cwnd_max at the latest ACK. `None`: no limit.
    pub cwnd_max_segments: Option<u32>,
    /// The initial window that was set. `None`: the stack's.
    pub initial_segments: Option<u32>,
    /// The highest rate of a round trip so far, counting payload. `None`: none was measured.
    pub achieved: Option<Rate>,
    /// Segments sent that PLR excludes as forgotten.
    pub past_segments: u32,
    /// Retransmissions that PLR excludes.
    pub past_retransmits: u32,
    /// Loss events that did not reduce the window.
    pub ignored_losses: u32,
    /// Loss events that did, by cause. Timeouts are judged and counted only with the parameter `timeouts_too`.
    pub heeded: Heeded,
}

/// Why loss events reduced the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heeded {
    /// There was no report, or none valid for this.
    pub without_report: u32,
    /// PLR exceeded PER by more than chance makes likely.
    pub excess: u32,
    /// The round trip showed a queue (the parameter `queue_ratio`).
    pub queue: u32,
    /// The preceding `ignored_max` losses in a row were ignored.
    pub in_turn: u32,
}

/// PLR of [wu] §3.3 as the law counts it, N_retr / N_tx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossCount {
    /// N_retr.
    pub retransmits: u32,
    /// N_tx, retransmissions included.
    pub segments_sent: u32,
}

impl Applied {
    /// From the numbers of `struct lh_lastlink`, which `number` looks up by name. `None`: no report received.
    pub fn from_state(number: impl Fn(&str) -> Option<u64>) -> Option<Self> {
        let word = |name: &str| number(name).and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
        Self::of(&lh_lastlink {
            expires_us: number("expires_us").unwrap_or(0),
            reports: word("reports"),
            bandwidth_kbps: word("bandwidth_kbps"),
            error_ppm: word("error_ppm"),
            permitted: word("permitted"),
            cwnd_max_segments: word("cwnd_max_segments"),
            initial_segments: word("initial_segments"),
            achieved_kbps: word("achieved_kbps"),
            past_segments: word("past_segments"),
            past_retransmits: word("past_retransmits"),
            ignored: word("ignored"),
            heeded_unknown: word("heeded_unknown"),
            heeded_excess: word("heeded_excess"),
            heeded_queue: word("heeded_queue"),
            heeded_in_turn: word("heeded_in_turn"),
            ..lh_lastlink::default()
        })
    }

    /// From the law's state. `None`: no report received.
    pub(crate) fn of(state: &lh_lastlink) -> Option<Self> {
        let some = |number: u32| Some(number).filter(|number| *number > 0);
        let rate = |kbps: u32| some(kbps).map(|kbps| Rate::from_bps(u64::from(kbps) * 1000));
        (state.reports > 0).then(|| Self {
            bandwidth: rate(state.bandwidth_kbps),
            error_rate: Probability::new(f64::from(state.error_ppm) / 1e6).ok(),
            expires: Time::from_nanos(state.expires_us.saturating_mul(1000)),
            permitted: state.permitted,
            cwnd_max_segments: some(state.cwnd_max_segments),
            initial_segments: some(state.initial_segments),
            achieved: rate(state.achieved_kbps),
            past_segments: state.past_segments,
            past_retransmits: state.past_retransmits,
            ignored_losses: state.ignored,
            heeded: Heeded {
                without_report: state.heeded_unknown,
                excess: state.heeded_excess,
                queue: state.heeded_queue,
                in_turn: state.heeded_in_turn,
            },
        })
    }

    /// Loss events that reduced the window, for any cause.
    pub const fn heeded_losses(&self) -> u32 {
        let Heeded { without_report, excess, queue, in_turn } = self.heeded;
        without_report.saturating_add(excess).saturating_add(queue).saturating_add(in_turn)
    }

    /// PLR of a connection that has sent `segments_sent` segments with data, `retransmits` of them retransmissions.
    pub const fn loss_count(&self, segments_sent: u32, retransmits: u32) -> LossCount {
        LossCount {
            retransmits: retransmits.saturating_sub(self.past_retransmits),
            segments_sent: segments_sent.saturating_sub(self.past_segments),
        }
    }
}

impl LossCount {
    /// The share; `None`: nothing was sent.
    pub fn ratio(self) -> Option<f64> {
        (self.segments_sent > 0).then(|| f64::from(self.retransmits) / f64::from(self.segments_sent))
    }
}

/// Whether a number of `struct lh_lastlink` belongs to the base law (NewReno or CUBIC) that this connection does not
/// use.
pub fn is_of_the_other_base(name: &str, on_cubic: bool) -> bool {
    name.starts_with(if on_cubic { "newreno." } else { "cubic." })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state<'a>(numbers: &'a [(&'a str, u64)]) -> impl Fn(&str) -> Option<u64> + 'a {
        |name| numbers.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
    }

    #[test]
    fn the_state_of_the_law_says_what_it_has_heard_and_done() {
        let heard = [
            ("expires_us", 64_000_000),
            ("reports", 2),
            ("bandwidth_kbps", 7000),
            ("error_ppm", 5000),
            ("permitted", 5),
            ("cwnd_max_segments", 0),
            ("initial_segments", 87),
            ("achieved_kbps", 6500),
            ("past_segments", 3000),
            ("past_retransmits", 16),
            ("ignored", 9),
            ("heeded_unknown", 1),
            ("heeded_excess", 2),
            ("heeded_queue", 4),
            ("heeded_in_turn", 8),
        ];
        let applied = Applied::from_state(state(&heard)).expect("it has heard");
        assert_eq!((applied.bandwidth, applied.achieved), (Some(Rate::from_mbps(7.0)), Some(Rate::from_mbps(6.5))));
        assert_eq!((applied.error_rate.map(Probability::get), applied.permitted), (Some(0.005), 5));
        assert_eq!(applied.expires, Time::from_nanos(64_000_000_000));
        assert_eq!((applied.cwnd_max_segments, applied.initial_segments), (None, Some(87)));
        assert_eq!((applied.ignored_losses, applied.heeded_losses()), (9, 15));
        assert_eq!(applied.heeded, Heeded { without_report: 1, excess: 2, queue: 4, in_turn: 8 });
        // 4200 segments, 22 of them retransmissions. Of the 1200 not forgotten, 6 are retransmissions, 0.5 %
        let count = applied.loss_count(4200, 22);
        assert_eq!((count, count.ratio()), (LossCount { retransmits: 6, segments_sent: 1200 }, Some(0.005)));
        // the stack may have undone retransmissions
        assert_eq!(applied.loss_count(4200, 10).retransmits, 0);
        assert_eq!(applied.loss_count(3000, 16).ratio(), None);
    }

    #[test]
    fn a_law_that_has_heard_nothing_says_nothing_and_what_is_unknown_is_none() {
        assert_eq!(Applied::from_state(state(&[("reports", 0), ("ignored", 3)])), None);
        let unknown = [("reports", 1), ("bandwidth_kbps", 0), ("error_ppm", u32::MAX.into())];
        let applied = Applied::from_state(state(&unknown)).expect("it has heard");
        assert_eq!((applied.bandwidth, applied.error_rate, applied.achieved), (None, None, None));
    }

    #[test]
    fn the_other_base_is_the_one_that_does_not_decide() {
        let names = ["reports", "newreno.slow_start.kind", "cubic.cnt"];
        assert_eq!(names.map(|name| is_of_the_other_base(name, false)), [false, false, true]);
        assert_eq!(names.map(|name| is_of_the_other_base(name, true)), [false, true, false]);
    }
}
