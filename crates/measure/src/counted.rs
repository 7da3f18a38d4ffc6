//! From the counters of the network and the agents to the parts of a result.

use lasthop_network::{
    AirTime, Cause, CellStatistics, Drops, HearingLevel, LinkStatistics, QueueId, StationStatistics, Statistics, Way,
    WifiLinkStatistics,
};
use lasthop_scenario::{
    AccessResult, CellResult, HostPolicyResult, LinkResult, NodeResult, Place, PoliciesResult, Scenario, StationResult,
    place_name,
};
use lasthop_units::{Rate, Span};
use std::collections::BTreeMap;

/// From what the network counted after the warm-up. Where there is no access point its queue is `None`. `aggregates`: whether a
/// transmission may carry several packets.
pub fn access(statistics: &Statistics, aggregates: bool) -> AccessResult {
    let dropped = |chosen: &dyn Fn(&Drops) -> bool| {
        statistics.drops.iter().filter(|drops| chosen(drops)).map(|drops| drops.count).sum()
    };
    let mut queues = statistics.queues.iter().filter(|queue| queue.place.access_point().is_some());
    let marks = queues.clone().map(|queue| queue.marks).sum();
    let queue = queues.next().filter(|_| queues.next().is_none());
    let frames = |link: &WifiLinkStatistics| {
        (aggregates && link.transmissions > 0).then(|| link.frames as f64 / link.transmissions as f64)
    };
    let phy_rate = |link: &WifiLinkStatistics| Some(link.mean_phy_rate.as_mbps()).filter(|rate| *rate > 0.0);
    let total = statistics.air.total().max(Span::from_nanos(1)).as_secs_f64();
    let air_share = |link: &WifiLinkStatistics| aggregates.then(|| link.air.as_secs_f64() / total);
    let station = |station: &StationStatistics| StationResult {
        host: station.node.0,
        up_phy_rate_mbps: phy_rate(&station.up),
        down_phy_rate_mbps: phy_rate(&station.down),
        up_retries: station.up.retries,
        down_retries: station.down.retries,
        up_aggregate_frames: frames(&station.up),
        down_aggregate_frames: frames(&station.down),
        up_air_share: air_share(&station.up),
        down_air_share: air_share(&station.down),
    };
    AccessResult {
        downlink_drops: dropped(&|drops| drops.place.access_point().is_some() && is_of_queue(drops.cause)),
        downlink_marks: marks,
        downlink_queue_mean: queue.map(|queue| queue.mean_packets),
        downlink_queue_p95: queue.map(|queue| queue.p95_packets as f64),
        downlink_queue_max: queue.map(|queue| queue.max_packets as u64),
        uplink_drops: dropped(&|drops| matches!((drops.place, drops.cause), (QueueId::Host(_), Cause::QueueFull))),
        retry_drops: dropped(&|drops| matches!(drops.cause, Cause::RetryLimit | Cause::TooLate)),
        path_drops: dropped(&|drops| {
            let on_path = matches!(drops.place, QueueId::PathUp | QueueId::PathDown | QueueId::Link { .. });
            on_path && drops.cause != Cause::NewerAck
        }),
        collisions: statistics.collisions,
        retries: statistics.retries,
        left_behind: dropped(&|drops| drops.cause == Cause::LeftBehind),
        broadcast_losses: Some(dropped(&|drops| matches!(drops.cause, Cause::FrameError | Cause::Collision))),
        air_shares: air_shares(&statistics.air),
        to_all_share: Some(match statistics.air.total() {
            Span::ZERO => 0.0,
            total => statistics.to_all.as_secs_f64() / total.as_secs_f64(),
        }),
        stations: statistics.stations.iter().map(station).collect(),
    }
}

/// Whether a queue dropped it because it was full, or to keep short. What an ACK filter drops is no loss.
const fn is_of_queue(cause: Cause) -> bool {
    matches!(cause, Cause::QueueFull | Cause::CoDel | Cause::Early)
}

/// Each access point of the scenario's cells, from what the network counted after the warm-up, and the goodput in Mb/s of
/// the hosts in each of them. Empty without cells.
pub fn cells(scenario: &Scenario, statistics: &Statistics, goodputs: &[f64]) -> Vec<CellResult> {
    let Some(layout) = scenario.layout() else { return Vec::new() };
    let elapsed = statistics.elapsed.max(Span::from_nanos(1)).as_secs_f64();
    let cell = |(number, (place, counted)): (usize, (&Place, &CellStatistics))| {
        let queue = statistics.queue(QueueId::of_access_point(number));
        let drops = statistics.drops.iter().filter(|drops| drops.place == queue.place && is_of_queue(drops.cause));
        CellResult {
            name: place.name.clone(),
            goodput_mbps: goodputs[number],
            downlink_drops: drops.map(|drops| drops.count).sum(),
            left_behind: statistics.dropped(queue.place, Cause::LeftBehind),
            downlink_queue_mean: queue.mean_packets,
            downlink_queue_p95: queue.p95_packets as f64,
            collisions: counted.collisions,
            air_shares: air_shares(&counted.air),
            neighbours_share: counted.neighbours.as_secs_f64() / elapsed,
        }
    };
    layout.access_points.iter().zip(&statistics.cells).enumerate().map(cell).collect()
}

/// Who hears whom in the scenario's cells. Empty without.
pub fn nodes(scenario: &Scenario) -> Vec<NodeResult> {
    let Some(layout) = scenario.layout() else { return Vec::new() };
    let cells = layout.cells();
    let node = |(to, place): (usize, &Place)| {
        let of = |level| {
            let others = (0..cells.nodes()).filter(move |&from| from != to);
            others.filter(|&from| cells.hearing(from, to).level == level).map(|from| from as u16).collect()
        };
        NodeResult {
            name: place.name.clone(),
            cell: place.cell,
            at_m: place.at_m,
            hears: of(HearingLevel::Hears),
            senses: of(HearingLevel::Senses),
            disturbed_by: of(HearingLevel::Disturbed),
        }
    };
    layout.nodes().enumerate().map(node).collect()
}

/// Each direction of the scenario's links, from what the network counted after the warm-up. Empty with a shared last
/// hop.
///
/// # Panics
/// If the statistics belong to another network.
pub fn links(scenario: &Scenario, statistics: &Statistics) -> Vec<LinkResult> {
    let lasthop_network::Topology::Links(config) = &scenario.network().topology else { return Vec::new() };
    let dropped = |place: QueueId, chosen: fn(Cause) -> bool| {
        let drops = statistics.drops.iter().filter(|drops| drops.place == place && chosen(drops.cause));
        drops.map(|drops| drops.count).sum()
    };
    let directions = statistics.links.iter().filter_map(|counted| match counted.place {
        QueueId::Link { link, way } => Some((counted, config.links[usize::from(link)].ends, way)),
        _ => None,
    });
    let result = |(counted, (one, other), way): (&LinkStatistics, (usize, usize), Way)| {
        let (from, to) = if way == Way::Forth { (one, other) } else { (other, one) };
        let queue = statistics.queue(counted.place);
        LinkResult {
            place: place_name(counted.place),
            from: scenario.node_names()[from].clone(),
            to: scenario.node_names()[to].clone(),
            sent_mbps: Rate::over(counted.data, statistics.elapsed).as_mbps(),
            packets: counted.packets,
            utilization: counted.utilization,
            queue_mean: queue.mean_packets,
            queue_p95: queue.p95_packets as f64,
            queue_max: queue.max_packets as u64,
            queue_drops: dropped(counted.place, is_of_queue),
            queue_marks: queue.marks,
            losses: dropped(counted.place, |cause| cause == Cause::RandomLoss),
        }
    };
    directions.map(result).collect()
}

/// The sum over all hosts with a policy.
pub fn policies(hosts: Vec<HostPolicyResult>) -> PoliciesResult {
    PoliciesResult {
        beacons_sent: hosts.iter().map(|host| host.beacons_sent).sum(),
        beacons_heard: hosts.iter().map(|host| host.beacons_heard).sum(),
        beacons_rejected: hosts.iter().map(|host| host.beacons_rejected).sum(),
        control_enabled_at_s: hosts.iter().filter_map(|host| host.control_enabled_at_s).min_by(f64::total_cmp),
        bounds_changed: hosts.iter().map(|host| host.bounds_changed).sum(),
        hosts,
    }
}

fn air_shares(air: &AirTime) -> BTreeMap<String, f64> {
    let total = air.total().as_secs_f64();
    if total == 0.0 {
        return BTreeMap::new();
    }
    let parts = [
        ("idle", air.idle),
        ("contention", air.contention),
        ("success", air.success),
        ("broadcast", air.broadcast),
        ("collision", air.collision),
        ("error", air.error),
    ];
    parts.iter().map(|(name, span)| ((*name).to_owned(), span.as_secs_f64() / total)).collect()
}
