//! What the tick shows: the host's own connections and what its peers say, as the few numbers that the control law looks at.

use super::told::Told;
use crate::{FlowId, FlowObservation, Observation};
use lasthop_peers::Peer;
use lasthop_peers::cadence::{LONGEST, PER_DATAGRAM};
use lasthop_units::{Rate, Span, Time};
use std::collections::BTreeMap;

/// After so long without an acknowledgement, in s, a connection's RTT is of another time: of the queue that it lost its segments in, perhaps.
const STALE_S: f64 = 2.0;
/// ... but where what peers say weighs no more than this it is what there is.
const LEAST_WEIGHT: f64 = 0.05;
/// A peer's word about the queue weighs e^(−age / this), in s: beacons come every 0.3 s where hosts are few. Where they are many there
/// are so many old ones that with 1 s the mean was two seconds old, and r swung.
const AGE_S: f64 = 0.3;
/// What a peer says of its goodput counts for so long, in s, ...
const DELIVERED_AGE_S: f64 = 1.0;
/// ... and of the newest so many for so many times as long as all hosts take to speak in turn: where they are many, or one beacon gets lost, the mean
/// would be of whoever has just spoken.
const DELIVERED_LEAST: (usize, f64) = (3, 1.5);
/// An idle peer's goodput counts from this on, in bytes per second: it waits for a timeout, and has not just asked for something.
const WAITING: f64 = 3000.0;
/// A peer's goodput and excess are believed up to so many times what this host sees itself, or the mean of the tick before if that
/// is more: one liar among ten moves a mean by a few tenths. Common rates are believed so far from one's own either way.
pub(super) const BELIEVED: f64 = 2.0;
/// And this more of excess, in s: the queue that somebody else sees first.
const BELIEVED_EXCESS_S: f64 = 0.020;
/// No peer's lowest RTT and no peer's excess are believed above this, in s.
const MOST_BASE_S: f64 = 1.0;
const MOST_EXCESS_S: f64 = 10.0;
/// A tick that comes later than this after the last, in s, counts as if it had come after this: the host hung, and what was
/// acknowledged meanwhile says nothing of its goodput now.
const LONGEST_TICK_S: f64 = 2.0;
/// Payload of a segment where no connection tells, in bytes.
const SEGMENT: f64 = 1448.0;

/// What is remembered of the host from one tick to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Own {
    flows: BTreeMap<FlowId, Flow>,
    last: Option<Time>,
    /// Smoothed goodput of the host, in bytes per second.
    delivered: f64,
    /// Payload acknowledged since the host began to look, in bytes.
    acked: f64,
    /// Any connection has something to send.
    wants: bool,
    /// The mean excess of the busy connections, in s; `None`: none is busy, or all wait for something to be acknowledged.
    excess: Option<f64>,
    /// The means of the tick before, over all: of goodput, and of excess.
    means: (f64, f64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    acked: u64,
    acked_at: Time,
    /// Smoothed excess of the newest segment acknowledged, in s.
    newest_excess: Option<f64>,
}

/// The numbers of one tick. Times in s, rates in bytes of payload per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signals {
    pub(super) now: Time,
    /// Since the tick before.
    pub(super) elapsed: f64,
    /// Any connection is busy.
    pub(super) busy: bool,
    /// Any connection has something to send, busy or waiting for a timeout.
    pub(super) wants: bool,
    /// Any busy connection has more to send than has gone.
    pub(super) backlogged: bool,
    /// How many connections are busy, at least 1.
    pub(super) flows: f64,
    /// Payload of a segment.
    pub(super) segment: f64,
    /// The host's own goodput, smoothed, and that of this tick alone.
    pub(super) delivered: f64,
    pub(super) delivered_now: f64,
    /// Payload of the host that has been acknowledged since it began to look, and that is on its way, in bytes.
    pub(super) acked: f64,
    pub(super) in_flight: f64,
    /// RTT − lowest RTT: the mean over the busy hosts, the fresher the heavier.
    pub(super) excess: f64,
    /// The same of this host alone; `None`: none of its connections is busy, or all wait for something to be acknowledged.
    pub(super) own_excess: Option<f64>,
    /// What peers say is signed with a group key.
    pub(super) authenticated: bool,
    /// Lowest RTT: the mean in the same way.
    pub(super) base: f64,
    /// Goodput: the mean over this host and the peers heard lately.
    pub(super) mean_delivered: f64,
    /// Busy hosts, this one included.
    pub(super) terminals: u32,
    /// Hosts that share the air, this one included, heard or not ([`lasthop_peers::PeerTable::crowd`]).
    pub(super) hosts: u32,
    /// The common rates that were heard since the last tick: their sum and number.
    pub(super) heard: (f64, f64),
    /// The same of all peers that control, however old.
    pub(super) known: (f64, f64),
    /// Peers that control, that have released control, and that find control harmful.
    pub(super) controlling: f64,
    pub(super) released: f64,
    pub(super) harmed: f64,
    /// Of those that control, who take the medium for one that collapses.
    pub(super) careful: f64,
    /// What peers got while free: sum and number of those who know. Of several the greatest counts as the second greatest: one that
    /// lies could make all find control harmful.
    pub(super) told_free: (f64, f64),
}

impl Signals {
    pub(super) fn excess_span(&self) -> Span {
        Span::from_secs_f64(self.excess)
    }
}

#[cfg(test)]
impl Signals {
    /// Half a second of one busy, backlogged connection of a host that hears nobody.
    pub(super) fn alone(base: f64, excess: f64, delivered: f64) -> Self {
        Self {
            now: Time::ZERO,
            elapsed: 0.5,
            busy: true,
            wants: true,
            backlogged: true,
            flows: 1.0,
            segment: SEGMENT,
            delivered,
            delivered_now: delivered,
            acked: 0.0,
            in_flight: 0.0,
            excess,
            own_excess: Some(excess),
            authenticated: false,
            base,
            mean_delivered: delivered,
            terminals: 1,
            hosts: 1,
            heard: (0.0, 0.0),
            known: (0.0, 0.0),
            controlling: 0.0,
            released: 0.0,
            harmed: 0.0,
            careful: 0.0,
            told_free: (0.0, 0.0),
        }
    }
}

impl Own {
    /// Takes the tick. With `sparse` windows are so small that the receiver's delayed acknowledgements are in the smoothed RTT,
    /// and the newest segment's is taken. What peers said of their state before `since` does not count: it is from before this
    /// host's latest change. What they take for the common rate counts for twice `rate` at most, and for half of it at least;
    /// without a rate of one's own, of the median of theirs.
    pub(super) fn on_tick(
        &mut self,
        observation: &Observation<'_>,
        sparse: bool,
        since: Time,
        rate: Option<f64>,
    ) -> Signals {
        let Observation { now, flows, peers } = *observation;
        let since_last = self.last.map_or(0.5, |last| now.saturating_since(last).as_secs_f64());
        let elapsed = since_last.clamp(1e-3, LONGEST_TICK_S);
        self.last = Some(now);
        let mut known = std::mem::take(&mut self.flows);
        let (mut acked, mut in_flight, mut excess, mut base, mut busy) = (0_u64, 0.0, 0.0, 0.0, 0.0);
        let (mut segment, mut wants, mut backlogged, mut fresh) = (SEGMENT, false, false, (0.0, 0.0, 0.0));
        for flow in flows {
            let met = Flow { acked: flow.acked.get(), acked_at: now, newest_excess: None };
            let before = known.remove(&flow.id).unwrap_or(met);
            let acked_at = if before.acked == met.acked { before.acked_at } else { now };
            let mut entry = Flow { acked_at, newest_excess: before.newest_excess, ..met };
            acked = acked.saturating_add(entry.acked.saturating_sub(before.acked));
            in_flight += f64::from(flow.in_flight_segments) * segment_of(flow);
            wants |= flow.in_flight_segments > 0 || flow.backlogged;
            if let (true, Some(srtt), Some(lowest)) = (flow.busy, flow.srtt, flow.min_rtt) {
                entry.newest_excess = Some(newest_excess(flow, srtt, lowest, before.newest_excess));
                let smoothed = srtt.saturating_sub(lowest).as_secs_f64();
                let seen = if sparse { entry.newest_excess.unwrap_or(smoothed) } else { smoothed };
                excess += seen;
                base += lowest.as_secs_f64();
                busy += 1.0;
                if now.saturating_since(acked_at).as_secs_f64() <= STALE_S {
                    fresh = (fresh.0 + seen, fresh.1 + lowest.as_secs_f64(), fresh.2 + 1.0);
                }
                segment = segment_of(flow);
                backlogged |= flow.backlogged;
            }
            self.flows.insert(flow.id, entry);
        }
        let any = busy > 0.0;
        let flows = f64::max(busy, 1.0);
        (excess, base) = (excess / flows, base / flows);
        let own = (excess, base);
        let fresh = (fresh.2 > 0.0).then(|| (fresh.0 / fresh.2, fresh.1 / fresh.2));
        (self.excess, self.wants) = (fresh.map(|(excess, _)| excess), wants);
        self.acked += acked as f64;
        let horizon = 1.0 + 2.0 * (excess + base);
        let delivered_now = if since_last <= LONGEST_TICK_S { acked as f64 / elapsed } else { self.delivered };
        self.delivered += (delivered_now - self.delivered) * (elapsed / horizon).min(1.0);
        let most_delivered = BELIEVED * self.delivered.max(self.means.0).max(WAITING);
        let sees = self.excess.unwrap_or_default().max(self.means.1);
        let most_excess = (BELIEVED * sees + BELIEVED_EXCESS_S).min(MOST_EXCESS_S);
        let centre = rate.or_else(|| median_rate(peers.peers(), since));
        let mut signals = Signals {
            now,
            elapsed,
            busy: any,
            wants,
            backlogged,
            flows,
            segment,
            delivered: self.delivered,
            delivered_now,
            acked: self.acked,
            in_flight,
            excess: 0.0,
            own_excess: self.excess,
            authenticated: peers.is_authenticated(),
            base: 0.0,
            mean_delivered: self.delivered,
            terminals: peers.terminals(),
            hosts: u32::try_from(peers.hosts()).unwrap_or(u32::MAX).saturating_add(1),
            heard: (0.0, 0.0),
            known: (0.0, 0.0),
            controlling: 0.0,
            released: 0.0,
            harmed: 0.0,
            careful: 0.0,
            told_free: (0.0, 0.0),
        };
        let mut told = Vec::new();
        let mut weights = if fresh.is_some() { 1.0 } else { 0.0 };
        (excess, base) = fresh.unwrap_or_default();
        let mut greatest_free = (0.0_f64, 0.0_f64);
        for peer in peers.peers() {
            let (report, says) = (&peer.report, Told::by(&peer.report));
            let age = now.saturating_since(peer.heard_at).as_secs_f64();
            // Also of those that wait for a timeout: without them the mean of an unfair medium is too good.
            let delivered = bytes_per_second(says.delivered).min(most_delivered);
            if report.busy_flows > 0 || delivered > WAITING {
                told.push((age, delivered));
            }
            if report.busy_flows == 0 {
                continue;
            }
            if let (Some(theirs), Some(lowest)) = (says.excess, report.min_rtt) {
                let weight = (-age / AGE_S).exp();
                excess += theirs.as_secs_f64().min(most_excess) * weight;
                base += lowest.as_secs_f64().min(MOST_BASE_S) * weight;
                weights += weight;
            }
            let free = bytes_per_second(says.free);
            if free > 0.0 {
                signals.told_free = (signals.told_free.0 + free, signals.told_free.1 + 1.0);
                let (first, second) = greatest_free;
                greatest_free = (first.max(free), second.max(first.min(free)));
            }
            if peer.heard_at < since {
                continue;
            }
            let theirs = bytes_per_second(says.common_rate);
            let controls = controls(&says);
            signals.controlling += f64::from(u8::from(controls));
            signals.released += f64::from(u8::from(says.released));
            signals.harmed += f64::from(u8::from(controls && says.harmed));
            signals.careful += f64::from(u8::from(controls && says.careful));
            if controls {
                let believed = centre.map_or(theirs, |centre| theirs.clamp(centre / BELIEVED, BELIEVED * centre));
                signals.known = (signals.known.0 + believed, signals.known.1 + 1.0);
                if age <= elapsed {
                    signals.heard = (signals.heard.0 + believed, signals.heard.1 + 1.0);
                }
            }
        }
        if signals.told_free.1 > 1.0 {
            signals.told_free.0 -= greatest_free.0 - greatest_free.1;
        }
        signals.mean_delivered = mean_delivered(self.delivered, &mut told, signals.hosts);
        let least = if any { LEAST_WEIGHT } else { 0.0 };
        (signals.excess, signals.base) = if weights > least { (excess / weights, base / weights) } else { own };
        self.means = (signals.mean_delivered, signals.excess);
        signals
    }

    /// What peers are told of this host. One that has nothing to send delivers nothing: the smoothed goodput would count it among
    /// those that want a share for seconds more, and look as if the medium had collapsed.
    pub(super) fn told(&self, free: f64) -> Told {
        Told {
            delivered: if self.wants { rate(self.delivered) } else { Rate::ZERO },
            excess: self.excess.map(Span::from_secs_f64),
            free: if self.wants { rate(free) } else { Rate::ZERO },
            ..Told::default()
        }
    }
}

/// The mean of this host's goodput and of what those have told that have been heard not too long ago: their ages in s, and goodputs.
fn mean_delivered(own: f64, told: &mut [(f64, f64)], hosts: u32) -> f64 {
    told.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let interval_s = (PER_DATAGRAM.as_secs_f64() * f64::from(hosts)).min(LONGEST.as_secs_f64());
    let longest_s = |rank| {
        if rank < DELIVERED_LEAST.0 { DELIVERED_AGE_S.max(DELIVERED_LEAST.1 * interval_s) } else { DELIVERED_AGE_S }
    };
    let counts = told.iter().enumerate().take_while(|(rank, (age_s, _))| *age_s < longest_s(*rank));
    let (sum, count) = counts.fold((own, 1.0), |(sum, count), (_, (_, delivered))| (sum + delivered, count + 1.0));
    sum / count
}

fn controls(says: &Told) -> bool {
    says.common_rate > Rate::ZERO && !says.released
}

/// The middle one of the common rates of those who control, the lower of two; in bytes per second.
fn median_rate(peers: &[Peer], since: Time) -> Option<f64> {
    let busy = peers.iter().filter(|peer| peer.heard_at >= since && peer.report.busy_flows > 0);
    let says = busy.map(|peer| Told::by(&peer.report)).filter(controls);
    let mut rates: Vec<Rate> = says.map(|says| says.common_rate).collect();
    rates.sort_unstable();
    let middle = rates.get(rates.len().saturating_sub(1) / 2)?;
    Some(bytes_per_second(*middle))
}

fn newest_excess(flow: &FlowObservation, srtt: Span, lowest: Span, before: Option<f64>) -> f64 {
    let excess = flow.newest_rtt.unwrap_or(srtt).saturating_sub(lowest).as_secs_f64();
    before.map_or(excess, |before| (before + excess) / 2.0)
}

/// Payload of a full segment of this connection, in bytes.
pub(super) fn segment_of(flow: &FlowObservation) -> f64 {
    if flow.mss_bytes == 0 { SEGMENT } else { flow.mss_bytes.into() }
}

pub(super) fn bytes_per_second(rate: Rate) -> f64 {
    rate.as_bps() as f64 / 8.0
}

pub(super) fn rate(bytes_per_second: f64) -> Rate {
    Rate::from_bps((bytes_per_second * 8.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lasthop_1::liars::any_report;
    use crate::lasthop_1::tests::flow;
    use lasthop_peers::{Neighbourhood, PeerId, Report};
    use proptest::prelude::*;

    fn at(seconds: f64) -> Time {
        Time::ZERO + Span::from_secs_f64(seconds)
    }

    fn peer(id: u64, heard_at: Time, report: Report) -> Peer {
        Peer { id: PeerId(id), report, heard_at }
    }

    /// 250,000 B/s each, 10 ms of queue.
    fn honest() -> Report {
        let rate = Rate::from_mbps(2.0);
        let (min_rtt, excess) = (Some(Span::from_millis(20)), Some(Span::from_millis(10)));
        let told = Told { excess, common_rate: rate, delivered: rate, ..Told::default() };
        Report { busy_flows: 1, min_rtt, word: told.word(), ..Report::default() }
    }

    /// An honest host that says something else in one place.
    fn but(change: impl FnOnce(&mut Told)) -> Report {
        let mut told = Told::by(&honest());
        change(&mut told);
        Report { word: told.word(), ..honest() }
    }

    fn greatest() -> Report {
        let rate = Rate::from_bps(8 * u64::from(u32::MAX));
        let rtt = Some(Span::from_micros(u32::MAX.into()));
        let told = Told { excess: rtt, common_rate: rate, delivered: rate, ..Told::default() };
        Report { busy_flows: u16::MAX, min_rtt: rtt, word: told.word(), ..Report::default() }
    }

    /// What a host sees in 30 s beside eight honest ones and this one, at each tick.
    fn beside(last: Report, rate: Option<f64>) -> impl Iterator<Item = Signals> {
        let mut own = Own::default();
        (0..60_u32).map(move |tick| {
            let now = at(f64::from(tick) / 2.0);
            let peers = (1..9).map(|id| peer(id, now, honest())).chain([peer(9, now, last)]);
            let flows = [flow(1, 30, 125_000 * u64::from(tick))];
            let peers = Neighbourhood::new(peers.collect());
            own.on_tick(&Observation { now, flows: &flows, peers: &peers }, false, Time::ZERO, rate)
        })
    }

    #[test]
    fn one_liar_among_ten_moves_the_means_by_a_few_tenths() {
        for liar in [greatest(), but(|told| (told.excess, told.delivered) = (Some(Span::ZERO), Rate::ZERO))] {
            let last = beside(liar, Some(2.5e5)).last().expect("60 ticks");
            // (9 · 10 ms + 2 m + 20 ms) / 10 = m = 13.75 ms, or 9 · 10 / 10; (9 + 2 m) / 10 = m = 1.125, or 0.9.
            assert!((0.0089..0.0139).contains(&last.excess), "{last:?}");
            assert!((0.89..1.13).contains(&(last.mean_delivered / 2.5e5)), "{last:?}");
            assert!((0.99..1.12).contains(&(last.heard.0 / last.heard.1 / 2.5e5)), "{last:?}");
        }
    }

    #[test]
    fn the_mean_goodput_is_of_the_last_second_and_where_hosts_speak_seldom_of_the_last_three_at_least() {
        let mean = |hosts, told: &mut [(f64, f64)]| mean_delivered(1e6, told, hosts);
        // Of five hosts, who speak every 0.4 s: what is older than a second does not count.
        assert_eq!(mean(5, &mut [(1.1, 9e6), (0.9, 4e6), (0.2, 1e6)]), 2e6);
        // Of sixteen, every 1.3 s: what is less than 1.9 s old does, but for the fourth.
        assert_eq!(mean(16, &mut [(1.8, 4e6), (2.0, 9e6)]), 2.5e6);
        assert_eq!(mean(16, &mut [(1.8, 9e6), (0.1, 1e6), (1.2, 1e6), (0.3, 1e6)]), 1e6);
        assert_eq!(mean(1, &mut []), 1e6);
    }

    #[test]
    fn what_one_liar_says_he_got_while_free_counts_as_what_the_luckiest_other_says() {
        let told = |frees: &[u32]| {
            let says =
                |(id, free): (usize, &u32)| peer(id as u64, at(0.0), but(|told| told.free = rate(f64::from(*free))));
            let peers = Neighbourhood::new(frees.iter().enumerate().map(says).collect());
            let observation = Observation { now: at(0.0), flows: &[flow(1, 30, 0)], peers: &peers };
            Own::default().on_tick(&observation, false, Time::ZERO, None).told_free
        };
        assert_eq!(told(&[100_000, 300_000, u32::MAX, 200_000, 0]), (900_000.0, 4.0));
        assert_eq!(told(&[u32::MAX, 300_000]), (600_000.0, 2.0));
        assert_eq!(told(&[300_000]), (300_000.0, 1.0));
        assert_eq!(told(&[]), (0.0, 0.0));
    }

    #[test]
    fn who_comes_takes_no_liar_for_the_mean() {
        for liar in [greatest(), but(|told| told.common_rate = Rate::from_bps(8))] {
            let Signals { known: (sum, count), .. } = beside(liar, None).next().expect("60 ticks");
            // Eight times 250,000, and half or twice as much: (8 + 0.5) / 9 or (8 + 2) / 9.
            assert_eq!(count, 9.0);
            assert!((0.94..1.12).contains(&(sum / count / 2.5e5)), "{sum} / {count}");
        }
        let mut own = Own::default();
        let alone = Observation { now: at(0.0), flows: &[flow(1, 30, 0)], peers: &Neighbourhood::alone() };
        assert_eq!(own.on_tick(&alone, false, Time::ZERO, None).known, (0.0, 0.0));
    }

    #[test]
    fn an_rtt_after_which_nothing_has_been_acknowledged_for_two_seconds_counts_only_where_there_is_no_other() {
        let after = |seconds: f64, peers: &[u64]| {
            let mut own = Own::default();
            let mut tick = |seconds: f64| {
                let peers = peers.iter().map(|id| peer(*id, at(seconds), honest())).collect();
                // Lost in a queue of 10 s, and waiting for the timeout.
                let flows = [flow(1, 10_020, 0)];
                let peers = Neighbourhood::new(peers);
                own.on_tick(&Observation { now: at(seconds), flows: &flows, peers: &peers }, false, Time::ZERO, None)
            };
            tick(0.0);
            let excess = tick(seconds).excess;
            ((excess * 1e3).round(), own.told(0.0).excess.is_some())
        };
        // The mean of 10 s and nine times 10 ms.
        assert_eq!(after(2.0, &[1, 2, 3, 4, 5, 6, 7, 8, 9]), (1009.0, true));
        assert_eq!(after(2.5, &[1, 2, 3, 4, 5, 6, 7, 8, 9]), (10.0, false));
        assert_eq!(after(2.5, &[]), (10_000.0, false));
    }

    #[test]
    fn what_was_acknowledged_while_the_host_hung_is_not_taken_for_its_goodput() {
        let mut own = Own::default();
        let mut delivered = |seconds: f64, peers: &Neighbourhood| {
            let flows = [flow(1, 30, (250_000.0 * seconds) as u64)];
            own.on_tick(&Observation { now: at(seconds), flows: &flows, peers }, false, Time::ZERO, None).delivered
        };
        let alone = Neighbourhood::alone();
        let before = (0..20_u32).map(|tick| delivered(f64::from(tick) / 2.0, &alone)).last().expect("20 ticks");
        assert!((before / 2.5e5 - 1.0).abs() < 0.01, "{before}");
        // Ten seconds' bytes at once, and the next tick follows at once.
        for seconds in [19.5, 19.5001, 20.0] {
            let after = delivered(seconds, &alone);
            assert!((after / 2.5e5 - 1.0).abs() < 0.01, "{after} at {seconds} s");
        }
    }

    proptest! {
        #[test]
        fn whatever_peers_say_the_numbers_stay_in_their_ranges(
            ticks in proptest::collection::vec((proptest::collection::vec(any_report(), 0..40), 0..20_000_u64), 1..10),
            srtt_us in 1..u32::MAX,
            rate in proptest::option::of(5792.0..4e9),
        ) {
            let (mut own, mut now, mut acked) = (Own::default(), Time::ZERO, 0);
            for (reports, milliseconds) in ticks {
                now += Span::from_millis(milliseconds);
                acked += 1000 * milliseconds;
                let peers = reports.into_iter().enumerate().map(|(id, report)| peer(id as u64, now, report));
                let peers = Neighbourhood::new(peers.collect());
                let flows = [FlowObservation { srtt: Some(Span::from_micros(srtt_us.into())), ..flow(1, 0, acked) }];
                let signals = own.on_tick(&Observation { now, flows: &flows, peers: &peers }, true, Time::ZERO, rate);
                let Signals { elapsed, delivered, excess, base, mean_delivered, heard, known, .. } = signals;
                prop_assert!((1e-3..=LONGEST_TICK_S).contains(&elapsed));
                // 1 MB/s, whatever the times between the ticks.
                prop_assert!((0.0..=1.001e6).contains(&delivered), "{delivered}");
                prop_assert!((0.0..=u32::MAX.into()).contains(&mean_delivered), "{mean_delivered}");
                let own_excess = f64::from(srtt_us) / 1e6 - 0.020;
                prop_assert!((0.0..=own_excess.max(MOST_EXCESS_S)).contains(&excess), "{excess}");
                prop_assert!((0.0..=MOST_BASE_S).contains(&base), "{base}");
                for (sum, count) in [heard, known] {
                    prop_assert!(count <= peers.peers().len() as f64);
                    let (least, most) = rate.map_or((0.5, 2.0 * f64::from(u32::MAX)), |own| (own / 2.0, 2.0 * own));
                    prop_assert!((0.999 * least * count..=1.001 * most * count).contains(&sum), "{sum} of {count}");
                }
            }
        }
    }
}
