//! From the keys to the network: the only place of this conversion.

use crate::ScenarioError;
use crate::changes::changes;
use crate::keys::{AccessKeys, AccessKind, AgentMode, HostKeys, ScenarioKeys};
use crate::network_error::in_words_of_the_file;
use crate::scenario::HostBlock;
use crate::trace::Expanded;
use crate::wiring::Wiring;
use lasthop_keys::{Document, Path, key};
use lasthop_network::{
    AccessConfig, AckFilter, Band, Cells, Config, DirectionConfig, Discipline, HostConfig, HostPath, Impairments,
    LinkConfig, LinksConfig, Modulation, PathConfig, PhyRate, QueueConfig, Standard, Topology, WifiConfig, WifiRules,
    WiredAccessConfig,
};
use lasthop_units::{Probability, Rate, Span};

/// The network of a scenario.
pub(crate) fn network(
    document: &Document,
    keys: &ScenarioKeys,
    hosts: &[HostBlock],
    (wiring, cells): (&Wiring, Option<Cells>),
    traces: &Expanded,
) -> Result<Config, ScenarioError> {
    let topology = match (&keys.access, &keys.path) {
        (Some(access), Some(path)) => {
            let path = PathConfig {
                rtt: path.rtt_ms,
                rate: path.rate_mbps,
                loss: path.loss,
                back_loss: path.back_loss.unwrap_or(Probability::ZERO),
                impairments: [
                    impairments(
                        path.loss_burst_packets,
                        path.jitter_ms,
                        path.jitter_reorders,
                        path.reorder,
                        path.duplicate,
                        path.bleach_ecn,
                    ),
                    impairments(
                        path.back_loss_burst_packets,
                        path.back_jitter_ms,
                        path.jitter_reorders,
                        path.back_reorder,
                        path.back_duplicate,
                        path.bleach_ecn,
                    ),
                ],
                queue_packets: path.queue_packets,
            };
            Topology::AccessPoint { access: self::access(document, access)?, path }
        }
        _ => links(keys, hosts, wiring),
    };
    let hosts_config: Vec<_> =
        hosts.iter().flat_map(|block| std::iter::repeat_n(block.kind.network.clone(), block.count)).collect();
    let made = changes(document, (&keys.changes, &traces.origins), wiring, &topology, &hosts_config)?;
    let changes = made.iter().map(|(_, _, change)| *change).collect();
    let opportunities = traces.opportunities.clone();
    let config = Config { cells, changes, opportunities, ..Config::new(hosts_config, topology) };
    match config.validate() {
        Ok(()) => Ok(config),
        Err(error) => Err(in_words_of_the_file(document, hosts, wiring, &made, &error)),
    }
}

/// A host in the network, without the keys that its access or its standard does not look at. `sends`: it has flows.
pub(crate) fn host(keys: &ScenarioKeys, host: &HostKeys, sends: bool) -> HostConfig {
    let wifi = keys.access.as_ref().filter(|access| access.kind == AccessKind::Wifi);
    let on_wifi = wifi.is_some();
    let aggregates = wifi.is_some_and(|wifi| host.standard.unwrap_or(wifi.standard).aggregates());
    HostConfig {
        standard: host.standard.filter(|_| on_wifi),
        rate: host.rate_mbps.filter(|_| on_wifi && !aggregates),
        width: host.channel_width_mhz.filter(|_| aggregates),
        spatial_streams: host.spatial_streams.filter(|_| aggregates),
        mcs: host.mcs.filter(|_| aggregates),
        snr_db: host.snr_db.filter(|_| wifi.is_some_and(|wifi| wifi.standard.aggregates())),
        frame_error_rate: host.frame_error_rate.filter(|_| on_wifi),
        path: host.path_rtt_ms.map(|rtt| HostPath { rtt, change_every: host.path_rtt_change_s.unwrap_or(Span::ZERO) }),
        path_jitter: host.path_jitter_ms,
        turnaround: if on_wifi { host.turnaround_us } else { (Span::ZERO, Span::ZERO) },
        is_idle: !sends && host.agent != AgentMode::Control,
        ..HostConfig::new(host.queue_packets)
    }
}

/// What a direction does to packets, of keys that may not be given.
fn impairments(
    loss_burst: Option<f64>,
    jitter: Option<Span>,
    jitter_reorders: Option<bool>,
    reorder: Option<Probability>,
    duplicate: Option<Probability>,
    bleach_ecn: Option<bool>,
) -> Impairments {
    Impairments {
        loss_burst,
        jitter: jitter.unwrap_or(Span::ZERO),
        jitter_reorders: jitter_reorders.unwrap_or(false),
        reorder: reorder.unwrap_or(Probability::ZERO),
        duplicate: duplicate.unwrap_or(Probability::ZERO),
        bleaches_ecn: bleach_ecn.unwrap_or(false),
    }
}

/// A queue with what only some disciplines have.
fn queue(
    discipline: Discipline,
    packets: usize,
    ack_filter: Option<AckFilter>,
    ce_threshold: Option<Span>,
) -> QueueConfig {
    let mut queue = QueueConfig { ack_filter, ..QueueConfig::of(discipline, packets) };
    match &mut queue.discipline {
        Discipline::Codel(codel) => codel.ce_threshold = ce_threshold,
        Discipline::FqCodel(fq_codel) => fq_codel.ce_threshold = ce_threshold,
        _ => {}
    }
    queue
}

/// The same in front of a wire of this rate.
fn before_wire(mut queue: QueueConfig, rate: Rate) -> QueueConfig {
    if let Discipline::Cake(cake) = &mut queue.discipline {
        cake.bandwidth = Some(rate);
    }
    queue
}

fn links(keys: &ScenarioKeys, hosts: &[HostBlock], wiring: &Wiring) -> Topology {
    let links = wiring.links.iter().map(|link| {
        let keys = &keys.links[link.block];
        let forth = DirectionConfig {
            rate: keys.rate_mbps,
            delay: keys.delay_ms,
            queue: before_wire(
                queue(keys.queue, keys.queue_packets, keys.ack_filter, keys.ce_threshold_ms),
                keys.rate_mbps,
            ),
            loss: keys.loss,
            loss_at: keys.loss_at,
            impairments: impairments(
                keys.loss_burst_packets,
                keys.jitter_ms,
                keys.jitter_reorders,
                keys.reorder,
                keys.duplicate,
                keys.bleach_ecn,
            ),
        };
        let back = DirectionConfig {
            rate: keys.back_rate_mbps,
            delay: keys.back_delay_ms,
            queue: before_wire(
                queue(keys.back_queue, keys.back_queue_packets, keys.back_ack_filter, keys.ce_threshold_ms),
                keys.back_rate_mbps,
            ),
            loss: keys.back_loss,
            loss_at: keys.back_loss_at,
            impairments: impairments(
                keys.back_loss_burst_packets,
                keys.back_jitter_ms,
                keys.jitter_reorders,
                keys.back_reorder,
                keys.back_duplicate,
                keys.bleach_ecn,
            ),
        };
        LinkConfig { ends: link.ends, forth, back }
    });
    let node = |block: &HostBlock, number: usize| {
        let node = block.kind.node.as_deref().and_then(|name| wiring.node(name, number));
        node.expect("a checked host sits on a node that is there")
    };
    let attached = hosts.iter().flat_map(|block| (1..=block.count).map(move |number| node(block, number)));
    Topology::Links(LinksConfig { nodes: wiring.nodes.len(), attached: attached.collect(), links: links.collect() })
}

fn access(document: &Document, access: &AccessKeys) -> Result<AccessConfig, ScenarioError> {
    let mut queue = queue(access.queue, access.queue_packets, access.ack_filter, access.ce_threshold_ms);
    if let Discipline::Mac80211(mac80211) = &mut queue.discipline {
        mac80211.airtime_fairness = access.airtime_fairness.unwrap_or(mac80211.airtime_fairness);
        mac80211.device = access.device_queue.unwrap_or(mac80211.device);
    }
    if access.kind == AccessKind::Wired {
        let queue = before_wire(queue, access.rate_mbps);
        return Ok(AccessConfig::Wired(WiredAccessConfig { rate: access.rate_mbps, delay: access.delay_ms, queue }));
    }
    let phy_rate = |key: &str, rate: Rate| {
        PhyRate::from_rate(rate).ok_or_else(|| {
            let known: Vec<String> = PhyRate::ALL.iter().map(PhyRate::to_string).collect();
            let problem = format!("{rate} is no rate of 802.11b or 802.11g");
            document.error(&Path::top(key!(ScenarioKeys, access)).key(key), problem, known.join(", "))
        })
    };
    let broadcast_rate = access.broadcast_rate_mbps.map(|rate| phy_rate(key!(AccessKeys, broadcast_rate_mbps), rate));
    let usual = WifiConfig::new(access.standard);
    let aggregates = access.standard.aggregates();
    let band = access.band_ghz.filter(|_| aggregates).unwrap_or(usual.band);
    let rate = match aggregates {
        true => usual.rate,
        false => phy_rate(key!(AccessKeys, rate_mbps), access.rate_mbps)?,
    };
    let modulation = Modulation {
        mcs: access.mcs.unwrap_or(usual.modulation.mcs),
        spatial_streams: access.spatial_streams.unwrap_or(usual.modulation.spatial_streams),
        width: access.channel_width_mhz.unwrap_or(usual.modulation.width),
        guard_interval: access.guard_interval_us.unwrap_or(usual.modulation.guard_interval),
    };
    let has_dsss = band == Band::Ghz2_4;
    let protects = has_dsss && !matches!(access.standard, Standard::B | Standard::G);
    let protection_rate = phy_rate(key!(AccessKeys, protection_rate_mbps), access.protection_rate_mbps)?;
    Ok(AccessConfig::Wifi(WifiConfig {
        band,
        rate,
        modulation: if aggregates { modulation } else { usual.modulation },
        aggregate_frames: access.aggregate_frames.filter(|_| aggregates).unwrap_or(usual.aggregate_frames),
        max_ppdu: access.max_ppdu_us.filter(|_| aggregates).unwrap_or(usual.max_ppdu),
        amsdu_bytes: access.amsdu_bytes.filter(|_| aggregates).unwrap_or(usual.amsdu_bytes),
        start_spacing: access.start_spacing_us.filter(|_| aggregates).unwrap_or(usual.start_spacing),
        rts_threshold: access.rts_threshold_bytes,
        rts_on_retry: access.rts_on_retry.unwrap_or(usual.rts_on_retry),
        access_point_window: access.access_point_cw_max.unwrap_or(usual.access_point_window),
        access_point_txop: access.access_point_txop_us.filter(|_| aggregates).unwrap_or(usual.access_point_txop),
        response_error_rate: access.response_error_rate.unwrap_or(usual.response_error_rate),
        rate_control: access.rate_control,
        rate_set: if aggregates { usual.rate_set } else { access.rate_set },
        access_point_queue: queue,
        frame_error_rate: access.frame_error_rate,
        retry_limit: access.retry_limit,
        short_preamble: access.preamble && has_dsss,
        protection_rate: if protects { protection_rate } else { usual.protection_rate },
        broadcast_rate: broadcast_rate.transpose()?,
        rules: WifiRules {
            idle_before_acknowledgement: access.before_acknowledgement,
            difs_after_collision: access.after_collision,
        },
        ..usual
    }))
}
