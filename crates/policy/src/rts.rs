//! When a host sends RTS before its aggregates: while they may collide. The agent and the simulator call the same rule.
//!
//! Where several hosts send at once, their frames collide, and with aggregates a collision costs some milliseconds of air.
//! An RTS (802.11-2020 §10.3.1) makes it cost some tens of microseconds: where the RTS is lost, the aggregate is not sent.
//! Without other senders it is air time for nothing.
//!
//! The rule: *the threshold is [`THRESHOLD`] while the policy controls a connection of this host and another host is heard that
//! sends, and for 10 s after that; a threshold that was lower stays.*
//!
//! *What it leaves out*: how many collisions there are, which a station does not see; the access point, which has its own.

use crate::governor::Turn;
use lasthop_keys::words;
use lasthop_peers::Neighbourhood;
use lasthop_units::{Bytes, Span, Time};

/// Longer frames have RTS: two full packets with their headers have more, one has not, so RTS is for aggregates alone.
pub const THRESHOLD: Bytes = Bytes::new(3000);

/// How long it goes on after the last tick for which the rule holds: two steps of the policy `lasthop`, which may end control for
/// a tick.
const HOLD: Span = Span::from_secs(10);

words! {
    /// Who sets a station's RTS threshold.
    #[derive(Default)]
    pub enum Rts {
        /// Nobody: it is as it was.
        #[default]
        Off = "off",
        /// The agent, by the rule.
        Auto = "auto",
    }
}

/// The rule, from tick to tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct RtsRule {
    until: Option<Time>,
}

impl RtsRule {
    /// Sees the outcome of a tick. Where the policy's decisions are advice, nothing is controlled.
    pub fn on_tick(&mut self, now: Time, turn: &Turn, peers: &Neighbourhood) {
        if turn.report.controlling && peers.terminals() > 1 {
            self.until = Some(now.saturating_add(HOLD));
        }
    }

    /// Whether aggregates are to have RTS now.
    pub fn holds(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

/// The threshold while the rule holds, where it was `before`; `None`: no frame has RTS.
pub fn threshold(before: Option<Bytes>) -> Bytes {
    before.map_or(THRESHOLD, |before| before.min(THRESHOLD))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_peers::{Peer, PeerId, Report};

    fn turn(controlling: bool) -> Turn {
        Turn { report: Report { controlling, ..Report::default() }, ..Turn::default() }
    }

    fn beside(busy_flows: u16) -> Neighbourhood {
        let report = Report { busy_flows, ..Report::default() };
        Neighbourhood::new(vec![Peer { id: PeerId(7), report, heard_at: Time::ZERO }])
    }

    #[test]
    fn aggregates_have_rts_while_several_hosts_are_controlled_and_ten_seconds_longer() {
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let mut rule = RtsRule::default();
        assert!(!rule.holds(at(0)));
        // Alone, beside an idle peer, and without control: no.
        rule.on_tick(at(1), &turn(true), &Neighbourhood::alone());
        rule.on_tick(at(1), &turn(true), &beside(0));
        rule.on_tick(at(1), &turn(false), &beside(1));
        assert!(!rule.holds(at(1)));
        rule.on_tick(at(2), &turn(true), &beside(1));
        assert!(rule.holds(at(2)));
        rule.on_tick(at(5), &turn(false), &beside(1));
        assert!(rule.holds(at(11)) && !rule.holds(at(12))); // 2 + 10
    }

    #[test]
    fn a_lower_threshold_stays() {
        let bytes = |bytes| Some(Bytes::new(bytes));
        let thresholds = [None, bytes(3001), bytes(3000), bytes(2347), bytes(0)].map(threshold);
        assert_eq!(thresholds.map(Bytes::get), [3000, 3000, 3000, 2347, 0]);
    }
}
