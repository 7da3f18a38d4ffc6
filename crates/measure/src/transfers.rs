//! Each transfer of a run, and its slowdown: how many times as long it took as data of its size need in the empty network.
//!
//! ```text
//! slowdown = (when its last byte was read - when it was written or asked for) / (T(data) + T(request))
//! ```
//!
//! T is [`EmptyWay::time`] of the network as it was at the transfer's start: the best possible time, as in pFabric (M. Alizadeh and
//! others, SIGCOMM 2013), HPCC (Y. Li and others, SIGCOMM 2019) and Homa (B. Montazeri and others, SIGCOMM 2018). So what the transport
//! itself costs is in the slowdown, of a lone transfer too: the handshake, slow start, acknowledgements.
//!
//! A transfer that was never read to its end has no slowdown. In quantiles it counts with its age at the end of the run, as in
//! `deliveries`, unless that is below the least slowdown of its class of sizes, or below 1 if none of it was finished.

use crate::quantiles::distribution;
use lasthop_network::{EmptyWay, Framing, NodeId};
use lasthop_scenario::{
    Direction, Distribution, FlowSpec, HostSpec, Message, Scenario, SlowdownResult, TransferSample,
};
use lasthop_units::{Bytes, Span, Time};
use std::collections::BTreeMap;

/// Up to so many bytes has each class of sizes, the last one no end: those of M. Alizadeh and others, *Data Center TCP (DCTCP)*,
/// SIGCOMM 2010, figure 22.
const SIZES: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// A transfer as the habitat reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// The place of its flow.
    pub(crate) flow: usize,
    pub(crate) message: Message,
    /// When its last byte was read.
    pub(crate) read: Option<Time>,
}

/// All transfers of a run.
#[derive(Debug)]
pub(crate) struct Transfers {
    /// In order of their starts.
    pub(crate) rows: Vec<TransferSample>,
    /// Of those that were not read before the end of the warm-up: size and slowdown, with its age of one without an end.
    slowdowns: Vec<(Bytes, f64, bool)>,
}

impl Transfers {
    /// These transfers of these flows, in a run that counts from `warm` to `end`.
    pub(crate) fn new(
        scenario: &Scenario,
        (hosts, flows): (&[HostSpec], &[&FlowSpec]),
        mut transfers: Vec<Transfer>,
        (warm, end): (Time, Time),
    ) -> Self {
        transfers.sort_by_key(|transfer| (transfer.message.since, transfer.flow));
        let mut all = Self { rows: Vec::with_capacity(transfers.len()), slowdowns: Vec::new() };
        if transfers.is_empty() {
            return all;
        }
        // A host that roams has a state more, between its two access points.
        let mut begins = Vec::new();
        scenario.network().each_state(|at, _| begins.push(at));
        let mut ends = begins.into_iter().skip(1);
        let mut next = 0;
        scenario.network().each_state(|_, network| {
            let until = ends.next().unwrap_or(Time::MAX);
            let mut ways: BTreeMap<[NodeId; 2], EmptyWay> = BTreeMap::new();
            while let Some(transfer) = transfers.get(next).filter(|transfer| transfer.message.since < until) {
                let spec = flows[transfer.flow];
                let mut time = |data: Bytes, from: NodeId, to: NodeId| {
                    let way = ways.entry([from, to]).or_insert_with(|| network.empty_way(from, to));
                    way.time(data, framing(&hosts[usize::from(spec.host)]))
                };
                let (host, server) = (NodeId(spec.host), spec.server);
                let (from, to) = if spec.direction == Direction::Up { (host, server) } else { (server, host) };
                let Message { size, request, .. } = transfer.message;
                let least = time(size, from, to).as_secs_f64() + time(request, to, from).as_secs_f64();
                all.add(spec, transfer, least, (warm, end));
                next += 1;
            }
        });
        all
    }

    fn add(&mut self, spec: &FlowSpec, transfer: &Transfer, least_s: f64, (warm, end): (Time, Time)) {
        let Message { since, size, .. } = transfer.message;
        let took = |until: Time| until.saturating_since(since).as_secs_f64();
        // Where nothing gets through, and between ends on one node, there is nothing to compare with.
        let has_least = (1e-9..Span::MAX.as_secs_f64()).contains(&least_s);
        let slowdown = |until: Time| has_least.then(|| took(until) / least_s);
        self.rows.push(TransferSample {
            flow: spec.id,
            host: spec.host,
            start_s: since.as_secs_f64(),
            bytes: size.get(),
            completion_s: transfer.read.map(took),
            slowdown: transfer.read.and_then(slowdown),
        });
        if transfer.read.is_none_or(|read| read >= warm) {
            let until = transfer.read.unwrap_or(end);
            self.slowdowns.extend(slowdown(until).map(|slowdown| (size, slowdown, transfer.read.is_some())));
        }
    }

    /// Over all; `None` without any.
    pub(crate) fn slowdown(&self) -> Option<Distribution> {
        let all: Vec<f64> = classes().filter_map(|(above, up_to)| self.over(above, up_to)).flatten().collect();
        distribution(&all)
    }

    /// The same of each class of sizes that has any.
    pub(crate) fn by_size(&self) -> Vec<SlowdownResult> {
        let of_class = |(above, up_to)| {
            let slowdowns = self.over(above, up_to)?;
            let slowdown = distribution(&slowdowns)?;
            Some(SlowdownResult { above_bytes: above, up_to_bytes: up_to, transfers: slowdowns.len() as u64, slowdown })
        };
        classes().filter_map(of_class).collect()
    }

    fn over(&self, above: u64, up_to: Option<u64>) -> Option<Vec<f64>> {
        let is_in = |size: &Bytes| above < size.get() && up_to.is_none_or(|up_to| size.get() <= up_to);
        let of_size = self.slowdowns.iter().filter(|(size, ..)| is_in(size));
        let least = of_size.clone().filter(|(.., done)| *done).map(|(_, slowdown, _)| *slowdown).min_by(f64::total_cmp);
        let late = |slowdown: f64| slowdown >= least.unwrap_or(1.0);
        let counted: Vec<f64> =
            of_size.filter(|(_, slowdown, done)| *done || late(*slowdown)).map(|(_, slowdown, _)| *slowdown).collect();
        (!counted.is_empty()).then_some(counted)
    }
}

/// The classes of sizes: above, and up to.
fn classes() -> impl Iterator<Item = (u64, Option<u64>)> {
    let ends = SIZES.into_iter().map(Some).chain([None]);
    [0].into_iter().chain(SIZES).zip(ends)
}

/// The segments of a host's TCP; QUIC's packets are as long, and have a hundredth less data.
fn framing(host: &HostSpec) -> Framing {
    let (payload, headers) = host.kind.tcp.framing();
    Framing { payload, headers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_counts_from_the_least_slowdown_of_its_class_on_and_the_total_has_the_same() {
        let size = |kb: u64| Bytes::new(kb * 1000);
        let slowdowns = vec![
            (size(5), 2.0, true),
            (size(5), 1.5, false), // below the least of its class
            (size(5), 3.0, false),
            (size(50_000), 0.5, false), // a class without any end: no slowdown is below 1
            (size(50_000), 1.25, false),
        ];
        let all = Transfers { rows: Vec::new(), slowdowns };
        let counts: Vec<_> = all.by_size().iter().map(|class| (class.transfers, class.slowdown.min)).collect();
        assert_eq!(counts, [(2, 2.0), (1, 1.25)]);
        let over_all = all.slowdown().expect("three count");
        assert_eq!((over_all.min, over_all.p50, over_all.max), (1.25, 2.0, 3.0));
    }
}
