//! What control changes: goodput and round trip now, and while nothing was limited, and whether the two compare.
//!
//! 1. *While free* is the last time without limits, as far as a queue stood: this host's goodput, that of all hosts
//!    behind the access point together, and this host's round trip.
//! 2. *Now* is the same under limits. Both are means that forget within [`AGE`].
//! 3. A gain is now over free: this host's over this host's, the group's over the group's.
//! 4. No gain is told where something else has changed as well: [`Incomparable`].
//! 5. While free, beacons wait in the queue and are lost. A peer that is not heard then counts as it was heard last, for
//!    [`AGE`]; under limits, one that is not heard has gone.
//!
//! *What it leaves out*: changes of the radio. What is known of free times may be hours old.

use crate::FlowId;
use lasthop_units::{Rate, Span};
use std::collections::BTreeMap;
use std::fmt;

/// What a mean keeps of the past falls to 1/e within this.
const AGE: Span = Span::from_secs(8);
/// A mean over less time is not told.
const LEAST: Span = Span::from_secs(3);

/// What is got at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Got {
    /// Payload that this host sends and receives.
    pub host: Rate,
    /// The same of all hosts behind the access point that say so, with this one.
    pub group: Rate,
    /// Round trip of this host's bulk connections; `None`: not known.
    pub round_trip: Option<Span>,
}

/// What control changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gain {
    /// Now; `None`: too new to tell.
    pub now: Option<Got>,
    /// While nothing was limited, before the limits that hold now; `None`: never seen.
    pub free: Option<Got>,
    /// Why the two cannot be compared; `None`: they can.
    pub incomparable: Option<Incomparable>,
}

/// Why what is got now cannot be compared with what was got while free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incomparable {
    /// No limits hold.
    Free,
    /// Limits began before enough had been seen without them.
    NeverFree,
    /// Other hosts send now than while free.
    HostsChanged,
    /// This host sends, or receives, by other connections.
    ConnectionsChanged,
    /// What is compared has not lasted for long enough.
    TooNew,
}

impl Gain {
    /// Goodput now over goodput while free, of this host and of all hosts together; `None`: they do not compare.
    pub fn ratios(&self) -> Option<[f64; 2]> {
        let (now, free) = (self.now?, self.free?);
        let over = |now: Rate, free: Rate| now.as_bps() as f64 / free.as_bps() as f64;
        let known = self.incomparable.is_none() && free.host > Rate::ZERO && free.group > Rate::ZERO;
        known.then(|| [over(now.host, free.host), over(now.group, free.group)])
    }
}

/// Who sends: compared, these are to be the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Senders {
    /// The peers with bulk connections, in the order of their identities.
    peers: Vec<u64>,
    /// This host's bulk connections, in the order of their identities.
    connections: Vec<FlowId>,
}

/// What a peer says of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Heard {
    /// It has bulk connections.
    pub(crate) bulk: bool,
    pub(crate) delivered: Rate,
}

/// A host at a tick.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) elapsed: Span,
    /// Payload that this host sends and receives, and the round trip of its bulk connections.
    pub(crate) delivered: Rate,
    pub(crate) round_trip: Option<Span>,
    /// This host's bulk connections, in the order of their identities.
    pub(crate) connections: Vec<FlowId>,
    /// The peers that are heard, with their identities.
    pub(crate) peers: Vec<(u64, Heard)>,
    /// Limits hold.
    pub(crate) is_bound: bool,
    /// A queue stands that no limits keep short. It makes free times comparable: without one, a host gets what it wants.
    pub(crate) is_congested: bool,
}

/// Compares, from tick to tick.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison {
    is_bound: bool,
    /// The peers, and for how long each has not been heard.
    peers: BTreeMap<u64, (Heard, Span)>,
    senders: Senders,
    now: Mean,
    /// The part of `now` from which on a queue has stood without limits.
    queued: Mean,
    free: Option<(Got, Senders)>,
}

/// A mean that forgets, over the time that it has seen.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    lasts: Span,
    weight: f64,
    host: f64,
    group: f64,
    round_trips: f64,
    round_trip: f64,
}

impl Mean {
    fn add(&mut self, elapsed: Span, got: Got) {
        let keep = libm::exp(-elapsed.as_secs_f64() / AGE.as_secs_f64());
        let mix = |past: f64, new: f64| past * keep + new * (1.0 - keep);
        self.lasts += elapsed;
        self.weight = mix(self.weight, 1.0);
        self.host = mix(self.host, got.host.as_bps() as f64);
        self.group = mix(self.group, got.group.as_bps() as f64);
        if let Some(round_trip) = got.round_trip {
            self.round_trips = mix(self.round_trips, 1.0);
            self.round_trip = mix(self.round_trip, round_trip.as_secs_f64());
        }
    }

    /// `None`: it has seen too little.
    fn told(&self) -> Option<Got> {
        let rate = |sum: f64| Rate::from_bps((sum / self.weight).round() as u64);
        (self.lasts >= LEAST).then(|| Got {
            host: rate(self.host),
            group: rate(self.group),
            round_trip: (self.round_trips > 0.0).then(|| Span::from_secs_f64(self.round_trip / self.round_trips)),
        })
    }
}

impl Comparison {
    pub(crate) fn on_tick(&mut self, seen: Seen) {
        let Seen { elapsed, delivered, round_trip, connections, peers, is_bound, is_congested } = seen;
        self.peers.retain(|_, (_, silent)| {
            *silent += elapsed;
            !is_bound && *silent <= AGE
        });
        self.peers.extend(peers.into_iter().map(|(id, heard)| (id, (heard, Span::ZERO))));
        let group = self.peers.values().map(|(heard, _)| heard.delivered).sum::<Rate>() + delivered;
        let got = Got { host: delivered, group, round_trip };
        let bulk = self.peers.iter().filter(|(_, (heard, _))| heard.bulk);
        let senders = Senders { peers: bulk.map(|(id, _)| *id).collect(), connections };
        match (self.is_bound, is_bound) {
            (false, true) => self.free = self.queued.told().map(|got| (got, std::mem::take(&mut self.senders))),
            (true, false) => self.free = None,
            _ => {}
        }
        let is_new = self.is_bound != is_bound || self.senders != senders;
        if is_new {
            self.now = Mean::default();
        }
        if is_new || is_bound || !is_congested {
            self.queued = Mean::default();
        }
        (self.is_bound, self.senders) = (is_bound, senders);
        self.now.add(elapsed, got);
        if !is_bound && is_congested {
            self.queued.add(elapsed, got);
        }
    }

    pub(crate) fn gain(&self) -> Gain {
        let (now, free) = (self.now.told(), self.free.as_ref());
        let incomparable = match free {
            _ if !self.is_bound => Some(Incomparable::Free),
            None => Some(Incomparable::NeverFree),
            Some((_, then)) if then.peers != self.senders.peers => Some(Incomparable::HostsChanged),
            Some((_, then)) if then.connections != self.senders.connections => Some(Incomparable::ConnectionsChanged),
            _ if now.is_none() => Some(Incomparable::TooNew),
            _ => None,
        };
        Gain { now, free: free.map(|(got, _)| *got), incomparable }
    }
}

impl fmt::Display for Incomparable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Free => "nothing is limited",
            Self::NeverFree => "not known: limits began before enough was seen without them",
            Self::HostsChanged => "not known: other hosts send now than while free",
            Self::ConnectionsChanged => "not known: this host has other bulk connections than while free",
            Self::TooNew => "not known yet",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn got(host: f64, group: f64, round_trip_ms: u64) -> Got {
        let [host, group] = [host, group].map(Rate::from_mbps);
        Got { host, group, round_trip: Some(Span::from_millis(round_trip_ms)) }
    }

    /// A tick of half a second: so long the same. `silent`: the peers that are not heard of those that send.
    fn seen(got: Got, peers: &[u64], silent: &[u64], is_bound: bool) -> Seen {
        let each = Rate::from_mbps((got.group.as_mbps() - got.host.as_mbps()) / peers.len().max(1) as f64);
        let heard = peers.iter().filter(|id| !silent.contains(id));
        Seen {
            elapsed: Span::from_millis(500),
            delivered: got.host,
            round_trip: got.round_trip,
            connections: vec![FlowId(1)],
            peers: heard.map(|id| (*id, Heard { bulk: true, delivered: each })).collect(),
            is_bound,
            is_congested: !is_bound,
        }
    }

    fn lasts(comparison: &mut Comparison, seconds: u64, got: Got, peers: &[u64], is_bound: bool) {
        for _ in 0..2 * seconds {
            comparison.on_tick(seen(got, peers, &[], is_bound));
        }
    }

    /// The numbers of five hosts behind an access point: 28.3 Mb/s of all while free, then 24.7 of all, 4.95 of each.
    #[test]
    fn a_host_is_compared_with_itself_and_the_group_with_the_group() {
        let mut comparison = Comparison::default();
        lasts(&mut comparison, 10, got(5.5, 28.3, 370), &[2, 3, 4, 5], false);
        lasts(&mut comparison, 10, got(4.95, 24.7, 34), &[2, 3, 4, 5], true);
        let gain = comparison.gain();
        let [host, group] = gain.ratios().expect("they compare");
        // 4.95 / 5.5 = 0.9; 24.7 / 28.3 = 0.8728
        assert!((host - 0.9).abs() < 1e-4 && (group - 0.8728).abs() < 1e-4, "{host} {group}");
        let trips = [gain.free, gain.now].map(|got| got.and_then(|got| got.round_trip).map(|trip| trip.as_millis()));
        assert_eq!(trips, [Some(370), Some(34)]);
    }

    #[test]
    fn no_gain_is_told_where_something_else_has_changed() {
        let (free, bound) = (got(5.0, 10.0, 300), got(4.0, 8.0, 30));
        let mut comparison = Comparison::default();
        let mut why = |seconds, got, peers: &[u64], is_bound| {
            lasts(&mut comparison, seconds, got, peers, is_bound);
            let gain = comparison.gain();
            assert_eq!(gain.ratios().is_some(), gain.incomparable.is_none());
            gain.incomparable
        };
        assert_eq!(why(1, bound, &[2], true), Some(Incomparable::NeverFree));
        assert_eq!(why(10, free, &[2], false), Some(Incomparable::Free));
        assert_eq!(why(2, bound, &[2], true), Some(Incomparable::TooNew));
        assert_eq!(why(2, bound, &[2], true), None);
        assert_eq!(why(9, bound, &[2, 3], true), Some(Incomparable::HostsChanged));
        assert_eq!(why(9, bound, &[4], true), Some(Incomparable::HostsChanged));
        assert_eq!(why(1, bound, &[2], true), Some(Incomparable::TooNew)); // that host is back
        assert_eq!(why(3, bound, &[2], true), None);
        assert_eq!(why(2, free, &[2], false), Some(Incomparable::Free));
        assert_eq!(why(9, bound, &[2], true), Some(Incomparable::NeverFree)); // two seconds are too few
    }

    /// As five kernel hosts saw each other before limits began: 4 s without some beacon are nothing special.
    #[test]
    fn a_peer_whose_beacons_are_lost_in_the_queue_counts_as_it_was_heard_last() {
        let (free, bound) = (got(4.0, 24.0, 180), got(4.0, 24.0, 30));
        let peers = [2, 3, 4, 5];
        let mut comparison = Comparison::default();
        lasts(&mut comparison, 2, free, &peers, false);
        for silent in [2, 3] {
            for _ in 0..8 {
                comparison.on_tick(seen(free, &peers, &[silent], false));
            }
        }
        lasts(&mut comparison, 4, bound, &peers, true);
        assert_eq!(comparison.gain().ratios(), Some([1.0, 1.0]));
        // Under limits one that is not heard has gone.
        comparison.on_tick(seen(bound, &peers, &[5], true));
        assert_eq!(comparison.gain().incomparable, Some(Incomparable::HostsChanged));
        // One that has not been heard for longer than the means remember has gone too.
        let mut comparison = Comparison::default();
        lasts(&mut comparison, 4, free, &peers, false);
        for _ in 0..17 {
            comparison.on_tick(seen(free, &peers, &[5], false));
        }
        lasts(&mut comparison, 4, bound, &[2, 3, 4], true);
        assert_eq!(comparison.gain().incomparable, Some(Incomparable::NeverFree));
    }

    #[test]
    fn a_time_without_a_queue_is_no_free_time() {
        let mut comparison = Comparison::default();
        let mut tick = |is_bound, is_congested| {
            for _ in 0..2 {
                comparison.on_tick(Seen { is_congested, ..seen(got(1.0, 1.0, 9), &[], &[], is_bound) });
            }
            comparison.gain()
        };
        for _ in 0..9 {
            tick(false, false);
        }
        assert_eq!(tick(true, false).free, None);
        tick(false, false);
        for _ in 0..3 {
            tick(false, true);
        }
        assert_eq!(tick(true, false).free, Some(got(1.0, 1.0, 9)));
    }

    #[test]
    fn other_own_connections_are_another_thing_even_if_they_are_as_many() {
        for others in [&[1, 2][..], &[2]] {
            let mut comparison = Comparison::default();
            lasts(&mut comparison, 9, got(1.0, 1.0, 9), &[], false);
            lasts(&mut comparison, 9, got(1.0, 1.0, 9), &[], true);
            assert_eq!(comparison.gain().incomparable, None);
            for _ in 0..9 {
                let connections = others.iter().copied().map(FlowId).collect();
                comparison.on_tick(Seen { connections, ..seen(got(1.0, 1.0, 9), &[], &[], true) });
            }
            assert_eq!(comparison.gain().incomparable, Some(Incomparable::ConnectionsChanged), "{others:?}");
        }
    }
}
