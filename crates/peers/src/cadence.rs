//! How often a host sends beacons: often enough to be known, and rarely enough that all beacons take under 3 % of the
//! air, in the mean.
//!
//! A beacon takes at most some 2 ms of air. It goes up to the access point and down again at 1 Mb/s, each time with the
//! overhead of a frame (measured: docs/models/beacon.md). So each host sends less often where there are more hosts
//! (as in RFC 3550 §6.2):
//!
//! ```text
//! T = max(base, hosts · u), at most 15 s        u = datagrams · 80 ms; hosts: crate::PeerTable::crowd, and this one
//! ```
//!
//! Policies act on the beacons of *senders*, the hosts with something to send. Often there are few of them among many
//! idle devices. Where less than three quarters are senders, the idle hosts share a quarter of the turns, and the
//! senders the other three (RFC 3550 §6.2 divides turns so between senders and receivers). A host that waits for a
//! retransmission timeout is a sender: it starves, and must be heard.
//!
//! ```text
//! T of an idle host = max(base, idle · 4 u), at most 15 s
//! T of a sender     = max(base, senders · u / (1 − idle · u / T of an idle one)), at most 15 s
//!                   = senders · 4/3 u, unless the limit of 15 s is reached
//! ```
//!
//! A host that hears no peers sends its first four beacons at the base interval. Then each interval is twice the one
//! before, up to 5 s: there are no peers, or the air is so full that nothing gets through. When it hears a peer, the
//! rule above holds at once.
//!
//! T is computed at each look. So a crowd that arrives all at once is heard before most of it has sent, and one that
//! leaves is not waited for (RFC 3550 §6.3.3 and §6.3.4).
//!
//! When something changes on which peers act (controlling, congested, busy, waiting or idle), the host sends at once.
//! Such a beacon costs no air, because the next regular one is left out (the early feedback of RFC 4585 §3.5.2). One is
//! allowed between two regular ones:
//!
//! ```text
//!  regular      regular   at once   (left out)   regular
//! ────┼────────────┼─────────┼──────────┼───────────┼────>
//!     |<--- T ---->|<------------ 2 T ------------->|
//! ```
//!
//! *What it leaves out*: the size of a beacon and the rate of the frame that carries it. [`PER_DATAGRAM`] is for the
//! worst case.

use crate::{Crowd, Report};
use lasthop_units::{Span, Time};

/// u for one datagram: the interval grows by this for each host and each datagram of a beacon.
pub const PER_DATAGRAM: Span = Span::from_millis(80);
/// The longest interval for any number of hosts.
pub const LONGEST: Span = Span::from_secs(15);
/// The longest interval while no peer is heard.
pub const LONGEST_ALONE: Span = Span::from_secs(5);
/// Where idle hosts are more than one in this many, they get one turn in this many.
const IDLE_PART: u64 = 4;
/// The number of beacons at the base interval while no peer is heard.
const FIRST_ALONE: u32 = 4;

/// Decides when a host sends a beacon.
#[derive(Clone, Copy, Debug)]
pub struct Cadence {
    base: Span,
    /// When the last regular beacon was sent; before the first, when the host was switched on.
    since: Time,
    /// The time from `since` to the next regular beacon, in intervals.
    factor: f64,
    /// What the last beacon reported; `None` before the first.
    said: Option<Said>,
    /// Whether a beacon was sent at once since the last regular one.
    hurried: bool,
    /// Regular beacons sent since a peer was last heard.
    unheard: u32,
    /// Whether the host had something to send at the last [`Self::poll`], or has not yet reported that it no longer
    /// has.
    sends: bool,
}

/// The parts of a report whose changes are sent at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    busy: bool,
    sends: bool,
    controlling: bool,
    congested: bool,
}

/// A beacon that must be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The announced interval, after which the next beacon is due.
    pub interval: Span,
}

impl Cadence {
    /// For a host switched on at `now`, which sends its first beacon within an interval. `base`: the shortest interval;
    /// `draw`: random, 0..=1, so that hosts switched on together do not all send together.
    pub fn new(base: Span, now: Time, draw: f64) -> Self {
        Self { base, since: now, factor: draw, said: None, hurried: false, unheard: 0, sends: false }
    }

    /// T of a host that `sends` or is idle, with these peers. `datagrams`: the number of datagrams of each beacon.
    pub fn interval(&self, others: Crowd, datagrams: usize, sends: bool) -> Span {
        let stretched = stretched(others, datagrams, sends);
        let alone = match self.unheard.checked_sub(FIRST_ALONE) {
            Some(more) if others.hosts == 0 => {
                Span::from_nanos(self.base.as_nanos() << more.min(10)).min(LONGEST_ALONE)
            }
            _ => Span::ZERO,
        };
        self.base.max(stretched).max(alone)
    }

    /// When the next regular beacon is due, with these peers and what the host had to send at the last [`Self::poll`].
    pub fn due_at(&self, others: Crowd, datagrams: usize) -> Time {
        let intervals = self.factor + if self.hurried { 1.0 } else { 0.0 };
        let interval = self.interval(others, datagrams, self.sends);
        self.since.saturating_add(Span::from_secs_f64(interval.as_secs_f64() * intervals))
    }

    /// Whether a beacon with this report must be sent now. Call it at each tick and at [`Self::due_at`]; a beacon that
    /// it returns counts as sent. `draw`: random, 0..=1, varies the interval by up to a tenth.
    pub fn poll(&mut self, now: Time, others: Crowd, datagrams: usize, report: &Report, draw: f64) -> Option<Due> {
        let Report { busy_flows, controlling, congested, .. } = *report;
        let says = Said { busy: busy_flows > 0, sends: report.has_something_to_send(), controlling, congested };
        self.sends = says.sends || self.said.is_some_and(|said| said.sends);
        if others.hosts > 0 {
            self.unheard = 0;
        }
        if now >= self.due_at(others, datagrams) {
            self.unheard = self.unheard.saturating_add(1);
            (self.since, self.factor, self.hurried) = (now, 0.9 + 0.2 * draw, false);
        } else if !self.hurried && self.said.is_some_and(|said| said != says) {
            self.hurried = true;
        } else {
            return None;
        }
        (self.said, self.sends) = (Some(says), says.sends);
        Some(Due { interval: self.due_at(others, datagrams).saturating_since(now) })
    }
}

/// T without the base interval and without the rule for hosts that hear no peers; at most [`LONGEST`].
fn stretched(others: Crowd, datagrams: usize, sends: bool) -> Span {
    let count = |hosts: usize| u64::try_from(hosts).unwrap_or(u64::MAX);
    let turn_ns = PER_DATAGRAM.as_nanos().saturating_mul(count(datagrams));
    let turns = |turns: u64| Span::from_nanos(turn_ns.saturating_mul(turns)).min(LONGEST);
    let hosts = count(others.hosts.saturating_add(1));
    let senders = count(others.senders.min(others.hosts)).saturating_add(sends.into());
    let idle = hosts.saturating_sub(senders);
    if senders == 0 || idle <= hosts / IDLE_PART {
        return turns(hosts);
    }
    let of_idle = turns(idle.saturating_mul(IDLE_PART));
    if !sends {
        return of_idle;
    }
    let left_ns = u128::from(of_idle.as_nanos().saturating_sub(turn_ns.saturating_mul(idle)));
    let of_senders_ns = u128::from(turn_ns) * u128::from(senders) * u128::from(of_idle.as_nanos());
    of_senders_ns
        .checked_div(left_ns)
        .and_then(|ns| u64::try_from(ns).ok())
        .map_or(LONGEST, |ns| Span::from_nanos(ns).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Span = crate::beacon::INTERVAL;
    const IDLE: Report = Report::IDLE;
    const BUSY: Report = Report { busy_flows: 1, ..IDLE };

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Span::from_millis(milliseconds)
    }

    /// This many other hosts, all senders or all idle.
    fn others(hosts: usize, send: bool) -> Crowd {
        Crowd { hosts, senders: if send { hosts } else { 0 } }
    }

    /// The announced interval in ms beside this many senders, or beside one or two idle hosts.
    fn poll(pace: &mut Cadence, milliseconds: u64, peers: usize, report: Report) -> Option<u64> {
        pace.poll(at(milliseconds), others(peers, peers > 2), 1, &report, 0.5).map(|due| due.interval.as_millis())
    }

    #[test]
    fn an_interval_grows_with_the_hosts_and_the_datagrams_of_each() {
        let pace = Cadence::new(BASE, at(0), 0.5);
        let interval_ms = |peers, datagrams| pace.interval(others(peers, false), datagrams, false).as_millis();
        assert_eq!(interval_ms(0, 1), 300);
        assert_eq!(interval_ms(2, 1), 300); // 3 · 80 = 240
        assert_eq!(interval_ms(3, 1), 320);
        assert_eq!((interval_ms(9, 1), interval_ms(9, 2)), (800, 1600));
        assert_eq!((interval_ms(186, 1), interval_ms(187, 1), interval_ms(255, 2)), (14_960, 15_000, 15_000));
        // A longer configured base is not shortened.
        assert_eq!(
            Cadence::new(Span::from_secs(10), at(0), 0.0).interval(others(5, true), 1, true),
            Span::from_secs(10)
        );
        assert_eq!(pace.interval(others(usize::MAX, false), 2, false), LONGEST);
    }

    #[test]
    fn where_few_send_these_have_three_quarters_of_the_turns() {
        let pace = Cadence::new(BASE, at(0), 0.0);
        // By the number of hosts, and of senders among them.
        let intervals_ms = |hosts: usize, senders: usize| {
            let interval_ms = |sends: bool| {
                let others = Crowd { hosts: hosts - 1, senders: senders - usize::from(sends) };
                pace.interval(others, 1, sends).as_millis()
            };
            (interval_ms(true), interval_ms(false))
        };
        // 6 · 4/3 turns of 80 ms, and 10 · 4: 9.4 and 3.1 beacons a second, together the 12.5 of sixteen hosts in turn.
        assert_eq!(intervals_ms(16, 6), (640, 3200));
        // From three quarters of senders on, all take turns.
        assert_eq!(
            (intervals_ms(16, 11), intervals_ms(16, 12), intervals_ms(16, 13)),
            ((1173, 1600), (1280, 1280), (1280, 1280))
        );
        // 99 idle hosts at 15 s leave 5.9 a second; 140 leave 3.2 for ten senders, and 199 none.
        assert_eq!(
            (intervals_ms(100, 1), intervals_ms(150, 10), intervals_ms(200, 1)),
            ((300, 15_000), (3157, 15_000), (15_000, 15_000))
        );
        // The same without a sender.
        assert_eq!(pace.interval(others(15, false), 1, false).as_millis(), 1280);
        assert_eq!(pace.interval(others(usize::MAX, true), 1, true), LONGEST);
        for hosts in 1..200 {
            for senders in 1..hosts {
                let (sender_ms, idle_ms) = intervals_ms(hosts, senders);
                let per_s = (senders as f64 / sender_ms as f64 + (hosts - senders) as f64 / idle_ms as f64) * 1e3;
                // The rate of all hosts in turn.
                let most = f64::max(12.5, hosts as f64 / 15.0);
                assert!(per_s < 1.02 * most, "{senders} of {hosts}: {per_s} beacons a second");
            }
        }
    }

    #[test]
    fn regular_beacons_come_an_interval_apart() {
        let mut pace = Cadence::new(BASE, at(1000), 0.5);
        assert_eq!(poll(&mut pace, 1149, 0, IDLE), None);
        assert_eq!(poll(&mut pace, 1150, 0, IDLE), Some(300));
        assert_eq!(poll(&mut pace, 1449, 0, IDLE), None);
        assert_eq!(poll(&mut pace, 1450, 0, IDLE), Some(300));
        // A tenth more or less.
        let announced =
            |draw| Cadence::new(BASE, at(0), 0.0).poll(at(0), others(0, false), 1, &IDLE, draw).map(|due| due.interval);
        assert_eq!(announced(0.0), Some(Span::from_millis(270)));
        assert_eq!(announced(1.0), Some(Span::from_millis(330)));
    }

    #[test]
    fn a_crowd_that_comes_at_once_is_heard_before_most_of_it_has_spoken() {
        // 100 hosts are switched on together. Each hears at once which hosts have sent.
        let mut paces: Vec<_> = (0..100).map(|host| Cadence::new(BASE, at(0), f64::from(host) / 100.0)).collect();
        let mut heard = 0;
        for milliseconds in 0..1000 {
            for pace in &mut paces {
                heard += usize::from(pace.said.is_none() && poll(pace, milliseconds, heard, IDLE).is_some());
            }
        }
        // Host k sends at k/100 · 80 ms · (heard + 1): where k hosts have sent, at 0.8 k² ms. In 1 s: √1250 = 35.
        assert!((30..=40).contains(&heard), "{heard}");
    }

    #[test]
    fn a_host_that_hears_nobody_speaks_less_and_less_until_it_does() {
        let mut pace = Cadence::new(BASE, at(0), 0.0);
        let mut sent = Vec::new();
        for milliseconds in 0..25_000 {
            sent.extend(poll(&mut pace, milliseconds, 0, IDLE).map(|_| milliseconds));
        }
        // 0.3 s three times; then 0.3, 0.6, 1.2, 2.4 and 4.8 s; then 5 s.
        assert_eq!(sent, [0, 300, 600, 900, 1200, 1800, 3000, 5400, 10_200, 15_200, 20_200]);
        assert_eq!(poll(&mut pace, 25_000, 1, IDLE), Some(300));
        assert_eq!(poll(&mut pace, 25_300, 1, IDLE), Some(300));
    }

    #[test]
    fn what_has_changed_is_told_at_once_and_the_next_beacon_left_out() {
        let mut pace = Cadence::new(BASE, at(0), 0.0);
        assert_eq!(poll(&mut pace, 0, 9, IDLE), Some(800));
        assert_eq!(poll(&mut pace, 100, 9, IDLE), None);
        assert_eq!(poll(&mut pace, 200, 9, BUSY), Some(1400)); // the next one at 1600
        // Only once; a second change waits.
        assert_eq!(poll(&mut pace, 700, 9, IDLE), None);
        assert_eq!(poll(&mut pace, 1200, 9, BUSY), None);
        assert_eq!(poll(&mut pace, 1599, 9, IDLE), None);
        assert_eq!(poll(&mut pace, 1600, 9, IDLE), Some(800));
        for changed in [
            Report { controlling: true, ..IDLE },
            Report { controlling: true, congested: true, ..IDLE },
            Report { busy_flows: 1, ..IDLE },
        ] {
            let mut pace = pace;
            assert!(poll(&mut pace, 1700, 9, changed).is_some());
        }
        // Changes of the number of connections and of the RTT are not sent at once.
        let mut pace = Cadence::new(BASE, at(0), 0.0);
        assert_eq!(poll(&mut pace, 0, 9, BUSY), Some(800));
        let other = Report { busy_flows: 7, srtt: Some(Span::from_millis(9)), ..BUSY };
        assert_eq!(poll(&mut pace, 100, 9, other), None);
    }

    #[test]
    fn a_host_whose_report_changes_at_every_tick_speaks_no_more_often() {
        let mut pace = Cadence::new(BASE, at(0), 0.0);
        let sent = (0..16_000_u64).filter(|milliseconds| {
            let report = if milliseconds / 500 % 2 == 0 { IDLE } else { BUSY };
            poll(&mut pace, *milliseconds, 9, report).is_some()
        });
        // 16 s / 0.8 s = 20, with one at 0 and one at the end.
        let sent = sent.count();
        assert!((19..=21).contains(&sent), "{sent}");
    }

    #[test]
    fn a_host_that_has_said_at_once_that_it_sends_says_as_soon_that_it_waits_and_that_it_is_idle_again() {
        // Six of sixteen are senders: 0.64 s, and 3.2 s for idle ones.
        let mut pace = Cadence::new(BASE, at(0), 0.0);
        let mut poll = |milliseconds, report: Report| {
            let others = Crowd { hosts: 15, senders: 6 - usize::from(report.has_something_to_send()) };
            pace.poll(at(milliseconds), others, 1, &report, 0.5).map(|due| due.interval.as_millis())
        };
        assert_eq!(poll(0, IDLE), Some(3200));
        assert_eq!(poll(100, BUSY), Some(1180)); // at 2 · 640
        assert_eq!(poll(600, IDLE), None);
        assert!(poll(1600, IDLE).is_some());
        // A host that waits for a timeout sends as often as one that gets data through, and announces the change at
        // once.
        let waits = Report { waiting: true, ..IDLE };
        assert_eq!(poll(1700, BUSY), Some(1180)); // at 1600 + 2 · 640
        assert_eq!((poll(2800, waits), poll(2900, waits)), (None, Some(640)));
        assert_eq!(poll(3000, IDLE), Some(6300)); // at 2900 + 2 · 3200
    }

    #[test]
    fn a_crowd_that_leaves_is_not_waited_for() {
        let mut pace = Cadence::new(BASE, at(0), 0.0);
        assert_eq!(poll(&mut pace, 0, 199, IDLE), Some(15_000));
        assert_eq!(poll(&mut pace, 300, 199, IDLE), None);
        assert_eq!(poll(&mut pace, 300, 1, IDLE), Some(300));
    }
}
