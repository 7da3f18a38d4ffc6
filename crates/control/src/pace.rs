//! How often a host speaks: so often that its peers know it, so seldom that all together keep under 3 % of the air.
//!
//! A beacon costs the air some 2 ms at worst: it goes up to the access point, and down again at 1 Mb/s, each time with what
//! goes before and after a frame (docs/models/beacon.md has what was measured). So where more hosts are heard, each speaks less often (RFC 3550 §6.2 has the idea):
//!
//! ```text
//! T = max(base, hosts · datagrams · 80 ms), at most 15 s        hosts: crate::peers::PeerTable::hosts, and this one
//! ```
//!
//! While nobody is heard, the first four beacons come at the base interval, and each one after it twice as long after the last:
//! up to 5 s. Either nobody is there, or the air is so full that nothing comes through. When somebody is heard, the next is due
//! by the rule above, which is at once.
//!
//! T is worked out again whenever it is looked at, so that a crowd that comes at once is heard before most of it has spoken,
//! and one that leaves is not waited for (RFC 3550 §6.3.3 and §6.3.4).
//!
//! When what peers act on has changed (controlling, congested, busy or idle), the host speaks at once. Such a beacon is taken
//! out of the next interval: one is allowed between two regular ones, and the next regular one comes an interval later, as
//! with the early feedback of RFC 4585 §3.5.2. So changes cost no air.
//!
//! ```text
//!  regular      regular   at once   (left out)   regular
//! ────┼────────────┼─────────┼──────────┼───────────┼────>
//!     |<--- T ---->|<------------ 2 T ------------->|
//! ```
//!
//! *What it leaves out*: the size of a beacon and the rate of the air it goes over: [`PER_DATAGRAM`] is for the worst.

use crate::peers::Report;
use units::{Span, Time};

/// For each host and each datagram of a beacon.
pub const PER_DATAGRAM: Span = Span::from_millis(80);
/// However many hosts there are.
pub const LONGEST: Span = Span::from_secs(15);
/// While nobody is heard.
pub const LONGEST_ALONE: Span = Span::from_secs(5);
/// So many beacons at the base interval, while nobody is heard.
const FIRST_ALONE: u32 = 4;

/// When a host speaks.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    base: Span,
    /// When the last regular beacon was sent; before the first, when the host was switched on.
    since: Time,
    /// Of an interval, from `since` to the next regular beacon.
    factor: f64,
    /// What the last beacon said; `None` before the first.
    said: Option<Said>,
    /// Whether there was one at once since the last regular one.
    hurried: bool,
    /// Regular beacons sent since somebody was heard.
    unheard: u32,
}

/// What peers act on without delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    busy: bool,
    controlling: bool,
    congested: bool,
}

/// A beacon that is to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// After which the next one is due: what it announces.
    pub interval: Span,
}

impl Pace {
    /// A host that is switched on `now`, and speaks first within an interval. `base`: the shortest interval; `draw`:
    /// random, from 0 to 1, so that hosts that are switched on together do not all speak together.
    pub fn new(base: Span, now: Time, draw: f64) -> Self {
        Self { base, since: now, factor: draw, said: None, hurried: false, unheard: 0 }
    }

    /// T, where `peers` are heard and each beacon is `datagrams` datagrams.
    pub fn interval(&self, peers: usize, datagrams: usize) -> Span {
        let hosts = peers.saturating_add(1);
        let all = u64::try_from(hosts.saturating_mul(datagrams)).unwrap_or(u64::MAX);
        let stretched = Span::from_nanos(PER_DATAGRAM.as_nanos().saturating_mul(all));
        let alone = match self.unheard.checked_sub(FIRST_ALONE) {
            Some(more) if peers == 0 => Span::from_nanos(self.base.as_nanos() << more.min(10)).min(LONGEST_ALONE),
            _ => Span::ZERO,
        };
        self.base.max(stretched.min(LONGEST)).max(alone)
    }

    /// When the next regular beacon is due, as it looks now.
    pub fn due_at(&self, peers: usize, datagrams: usize) -> Time {
        let intervals = self.factor + if self.hurried { 1.0 } else { 0.0 };
        let interval = self.interval(peers, datagrams);
        self.since.saturating_add(Span::from_secs_f64(interval.as_secs_f64() * intervals))
    }

    /// Whether a beacon with this report is to be sent now. Ask at each tick and when one is due; what it answers counts as
    /// sent. `draw`: random, from 0 to 1, of which a tenth of an interval more or less is made.
    pub fn poll(&mut self, now: Time, peers: usize, datagrams: usize, report: &Report, draw: f64) -> Option<Due> {
        let Report { busy_flows, controlling, congested, .. } = *report;
        let says = Said { busy: busy_flows > 0, controlling, congested };
        if peers > 0 {
            self.unheard = 0;
        }
        if now >= self.due_at(peers, datagrams) {
            self.unheard = self.unheard.saturating_add(1);
            (self.since, self.factor, self.hurried) = (now, 0.9 + 0.2 * draw, false);
        } else if !self.hurried && self.said.is_some_and(|said| said != says) {
            self.hurried = true;
        } else {
            return None;
        }
        self.said = Some(says);
        Some(Due { interval: self.due_at(peers, datagrams).saturating_since(now) })
    }
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

    /// Announced, in ms.
    fn poll(pace: &mut Pace, milliseconds: u64, peers: usize, report: Report) -> Option<u64> {
        pace.poll(at(milliseconds), peers, 1, &report, 0.5).map(|due| due.interval.as_millis())
    }

    #[test]
    fn an_interval_grows_with_the_hosts_and_the_datagrams_of_each() {
        let pace = Pace::new(BASE, at(0), 0.5);
        let interval_ms = |peers, datagrams| pace.interval(peers, datagrams).as_millis();
        assert_eq!(interval_ms(0, 1), 300);
        assert_eq!(interval_ms(2, 1), 300); // 3 · 80 = 240
        assert_eq!(interval_ms(3, 1), 320);
        assert_eq!((interval_ms(9, 1), interval_ms(9, 2)), (800, 1600));
        assert_eq!((interval_ms(186, 1), interval_ms(187, 1), interval_ms(255, 2)), (14_960, 15_000, 15_000));
        // A base that somebody has set longer is not shortened.
        assert_eq!(Pace::new(Span::from_secs(10), at(0), 0.0).interval(5, 1), Span::from_secs(10));
        assert_eq!(pace.interval(usize::MAX, 2), LONGEST);
    }

    #[test]
    fn regular_beacons_come_an_interval_apart() {
        let mut pace = Pace::new(BASE, at(1000), 0.5);
        assert_eq!(poll(&mut pace, 1149, 0, IDLE), None);
        assert_eq!(poll(&mut pace, 1150, 0, IDLE), Some(300));
        assert_eq!(poll(&mut pace, 1449, 0, IDLE), None);
        assert_eq!(poll(&mut pace, 1450, 0, IDLE), Some(300));
        // A tenth more or less.
        let announced = |draw| Pace::new(BASE, at(0), 0.0).poll(at(0), 0, 1, &IDLE, draw).map(|due| due.interval);
        assert_eq!(announced(0.0), Some(Span::from_millis(270)));
        assert_eq!(announced(1.0), Some(Span::from_millis(330)));
    }

    #[test]
    fn a_crowd_that_comes_at_once_is_heard_before_most_of_it_has_spoken() {
        // 100 hosts are switched on together, and each hears at once who has spoken.
        let mut paces: Vec<_> = (0..100).map(|host| Pace::new(BASE, at(0), f64::from(host) / 100.0)).collect();
        let mut heard = 0;
        for milliseconds in 0..1000 {
            for pace in &mut paces {
                heard += usize::from(pace.said.is_none() && poll(pace, milliseconds, heard, IDLE).is_some());
            }
        }
        // Host k speaks at k/100 · 80 ms · (heard + 1): where k hosts have spoken, at 0.8 k² ms. In 1 s: √1250 = 35.
        assert!((30..=40).contains(&heard), "{heard}");
    }

    #[test]
    fn a_host_that_hears_nobody_speaks_less_and_less_until_it_does() {
        let mut pace = Pace::new(BASE, at(0), 0.0);
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
        let mut pace = Pace::new(BASE, at(0), 0.0);
        assert_eq!(poll(&mut pace, 0, 9, IDLE), Some(800));
        assert_eq!(poll(&mut pace, 100, 9, IDLE), None);
        assert_eq!(poll(&mut pace, 200, 9, BUSY), Some(1400)); // the next one at 1600
        // Once; what changes again waits.
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
        // The number of connections and the RTT are not told at once.
        let mut pace = Pace::new(BASE, at(0), 0.0);
        assert_eq!(poll(&mut pace, 0, 9, BUSY), Some(800));
        let other = Report { busy_flows: 7, srtt: Some(Span::from_millis(9)), ..BUSY };
        assert_eq!(poll(&mut pace, 100, 9, other), None);
    }

    #[test]
    fn a_host_whose_report_changes_at_every_tick_speaks_no_more_often() {
        let mut pace = Pace::new(BASE, at(0), 0.0);
        let sent = (0..16_000_u64).filter(|milliseconds| {
            let report = if milliseconds / 500 % 2 == 0 { IDLE } else { BUSY };
            poll(&mut pace, *milliseconds, 9, report).is_some()
        });
        // 16 s / 0.8 s = 20, with one at 0 and one at the end.
        let sent = sent.count();
        assert!((19..=21).contains(&sent), "{sent}");
    }

    #[test]
    fn a_crowd_that_leaves_is_not_waited_for() {
        let mut pace = Pace::new(BASE, at(0), 0.0);
        assert_eq!(poll(&mut pace, 0, 199, IDLE), Some(15_000));
        assert_eq!(poll(&mut pace, 300, 199, IDLE), None);
        assert_eq!(poll(&mut pace, 300, 1, IDLE), Some(300));
    }
}
