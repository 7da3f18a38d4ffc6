//! All hosts with this policy behind the access point at a tick, as their beacons tell.

use super::constants::Constants;
use super::own::{Host, kept};
use super::told::{Proposal, Told};
use crate::gain::Heard;
use lasthop_peers::Neighbourhood;
use lasthop_units::{Rate, Span};

/// All hosts at a tick, this one among them.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Hosts with bulk connections.
    pub(super) hosts: u32,
    /// Goodput of all hosts, of those with bulk connections, and the greatest of one.
    pub(super) total: Rate,
    pub(super) bulk: Rate,
    pub(super) most: Rate,
    /// RTT − lowest RTT over the hosts: the mean, and the upper quartile. Hosts that started in a full queue take it for
    /// their path, and see less.
    pub(super) queue: Span,
    pub(super) crest: Span,
    /// Lowest RTT over the hosts: the mean, and the least.
    pub(super) base: Span,
    pub(super) least_base: Span,
    /// Common rates: of all peers that have one, and of those heard since the last tick.
    pub(super) rates: Vec<Rate>,
    pub(super) news: Vec<Rate>,
    /// What peers say that all got without bounds.
    pub(super) frees: Vec<Rate>,
    /// What each peer with bulk connections proposes; `None`: nothing.
    pub(super) proposals: Vec<Option<Proposal>>,
    /// What each peer gets, with its identity.
    pub(super) heard: Vec<(u64, Heard)>,
}

impl Group {
    pub(super) fn of(host: &Host, peers: &Neighbourhood, constants: &Constants) -> Self {
        let told = peers.peers().iter().map(|peer| (Told::by(&peer.report), host.now.saturating_since(peer.heard_at)));
        let told: Vec<_> = told.collect();
        let bulk: Vec<_> = told.iter().filter(|(told, _)| told.bulk).collect();
        let own = (host.bulk > 0).then_some(host.delivered);
        let delivered = || bulk.iter().map(|(told, _)| told.delivered).chain(own);

        let mut queues: Vec<_> = bulk.iter().filter_map(|(told, age)| Some((told.queue?, told.base, *age))).collect();
        queues.extend(host.queue.map(|queue| (queue, host.base, Span::ZERO)));
        queues.sort_unstable();
        let part = |quarters: usize| queues.get(queues.len() * quarters / 4).map_or(Span::ZERO, |(queue, ..)| *queue);
        let believed = part(2) * constants.believed + Span::from_millis(10);
        let weight: f64 = queues.iter().map(|(.., age)| kept(*age, constants.recent)).sum();
        let mean = |of: fn(&(Span, Span, Span)) -> Span, most: Span| {
            let sum: f64 =
                queues.iter().map(|all| of(all).min(most).as_secs_f64() * kept(all.2, constants.recent)).sum();
            if weight > 0.0 { Span::from_secs_f64(sum / weight) } else { Span::ZERO }
        };
        let known =
            |of: fn(&Told) -> Rate| bulk.iter().map(move |(told, _)| of(told)).filter(|rate| *rate > Rate::ZERO);
        let is_news = |(told, age): &&&(Told, Span)| told.rate > Rate::ZERO && *age <= host.elapsed;
        Self {
            hosts: u32::try_from(delivered().count()).unwrap_or(u32::MAX),
            total: told.iter().map(|(told, _)| told.delivered).sum::<Rate>() + host.delivered,
            bulk: delivered().sum(),
            most: delivered().max().unwrap_or_default(),
            queue: mean(|(queue, ..)| *queue, believed),
            crest: part(3),
            base: mean(|(_, base, _)| *base, Span::MAX),
            least_base: queues.iter().map(|(_, base, _)| *base).min().unwrap_or_default(),
            rates: known(|told| told.rate).collect(),
            news: bulk.iter().filter(is_news).map(|(told, _)| told.rate).collect(),
            frees: known(|told| told.free).collect(),
            proposals: bulk.iter().map(|(told, _)| told.proposal).collect(),
            heard: peers
                .peers()
                .iter()
                .zip(&told)
                .map(|(peer, (told, _))| (peer.id.0, Heard { bulk: told.bulk, delivered: told.delivered }))
                .collect(),
        }
    }
}

/// The middle one, of an even number the upper.
pub(super) fn median<T: Copy + Ord>(mut all: Vec<T>) -> Option<T> {
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}
