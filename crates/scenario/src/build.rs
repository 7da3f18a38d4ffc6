//! From the checked keys to the network: the only place where that happens.

use crate::changes::changes;
use crate::document::Document;
use crate::error::ScenarioError;
use crate::key_path::Path;
use crate::scenario::{HostBlock, ends, float, integer, size, text};
use crate::wiring::Wiring;
use lasthop_network::{
    AccessConfig, Config, ConfigError, DirectionConfig, HostConfig, HostPath, LinkConfig, LinksConfig, LossAt,
    PathConfig, PhyRate, QueueConfig, RateControl, RateSet, Standard, Topology, WifiConfig, WifiRules,
    WiredAccessConfig,
};
use lasthop_units::{Probability, Rate, Span};
use toml::{Table, Value};

/// The network of a checked scenario.
pub(crate) fn network(document: &Document, hosts: &[HostBlock], wiring: &Wiring) -> Result<Config, ScenarioError> {
    let topology = if wiring.is_empty() { access_point(document)? } else { links(document, hosts, wiring) };
    let on_wifi = matches!(topology, Topology::AccessPoint { access: AccessConfig::Wifi(_), .. });
    let host = |block: &HostBlock| HostConfig {
        rate: block.kind.rate.filter(|_| on_wifi),
        frame_error_rate: block.kind.frame_error_rate.filter(|_| on_wifi),
        path: block.kind.path,
        turnaround: if on_wifi { block.kind.turnaround } else { (Span::ZERO, Span::ZERO) },
        ..HostConfig::new(block.kind.queue_packets)
    };
    let hosts_config: Vec<_> = hosts.iter().flat_map(|block| std::iter::repeat_n(host(block), block.count)).collect();
    let (of_block, changes): (Vec<_>, Vec<_>) =
        changes(document, wiring, &topology, hosts_config.len())?.into_iter().unzip();
    let config = Config { changes, ..Config::new(hosts_config, topology) };
    match config.validate() {
        Ok(()) => Ok(config),
        Err(error) => Err(in_words_of_the_file(document, hosts, &of_block, &error)),
    }
}

fn access_point(document: &Document) -> Result<Topology, ScenarioError> {
    let table = |name: &str| document.table[name].as_table().expect("a checked scenario has its tables");
    let (access, path) = (table("access"), table("path"));
    let access = match text(access, "kind") {
        "wifi" => AccessConfig::Wifi(wifi(document, access)?),
        _ => AccessConfig::Wired(WiredAccessConfig {
            rate: rate(access, "rate_mbps"),
            delay: milliseconds(access, "delay_ms"),
            queue: queue(access, "queue"),
        }),
    };
    let path = PathConfig {
        rtt: milliseconds(path, "rtt_ms"),
        rate: rate(path, "rate_mbps"),
        loss: probability(path, "loss"),
        queue_packets: size(path, "queue_packets"),
    };
    Ok(Topology::AccessPoint { access, path })
}

fn links(document: &Document, hosts: &[HostBlock], wiring: &Wiring) -> Topology {
    let blocks = document.table["links"].as_array().expect("a checked scenario has its links");
    let links = wiring.links.iter().map(|link| {
        let table = blocks[link.block].as_table().expect("a checked block is a table");
        let direction = |prefix: &str| {
            let key = |name: &str| format!("{prefix}{name}");
            DirectionConfig {
                rate: rate(table, &key("rate_mbps")),
                delay: milliseconds(table, &key("delay_ms")),
                queue: queue(table, &key("queue")),
                loss: probability(table, &key("loss")),
                loss_at: if text(table, &key("loss_at")) == "before" {
                    LossAt::BeforeQueue
                } else {
                    LossAt::AfterQueue
                },
            }
        };
        LinkConfig { ends: link.ends, forth: direction(""), back: direction("back_") }
    });
    let node = |block: &HostBlock, number: usize| {
        let node = block.kind.node.as_deref().and_then(|name| wiring.node(name, number));
        node.expect("a checked host sits on a node that is there")
    };
    let attached = hosts.iter().flat_map(|block| (1..=block.count).map(move |number| node(block, number)));
    Topology::Links(LinksConfig { nodes: wiring.nodes.len(), attached: attached.collect(), links: links.collect() })
}

fn wifi(document: &Document, access: &Table) -> Result<WifiConfig, ScenarioError> {
    let standard = match text(access, "standard") {
        "802.11b" => Standard::B,
        "802.11g" => Standard::G,
        _ => Standard::Bg,
    };
    let phy_rate = |key: &str| {
        let rate = rate(access, key);
        PhyRate::from_rate(rate).ok_or_else(|| {
            let known: Vec<String> = PhyRate::ALL.iter().map(PhyRate::to_string).collect();
            let problem = format!("{rate} is no rate of 802.11b or 802.11g");
            document.error(&Path::default().key("access").key(key), problem, known.join(", "))
        })
    };
    let broadcast_rate =
        if access.contains_key("broadcast_rate_mbps") { Some(phy_rate("broadcast_rate_mbps")?) } else { None };
    Ok(WifiConfig {
        rate: phy_rate("rate_mbps")?,
        rate_control: match text(access, "rate_control") {
            "arf" => RateControl::Arf,
            "aarf" => RateControl::Aarf,
            "minstrel" => RateControl::Minstrel,
            _ => RateControl::Fixed,
        },
        rate_set: if text(access, "rate_set") == "all" { RateSet::All } else { RateSet::Ofdm },
        access_point_queue: queue(access, "queue"),
        frame_error_rate: probability(access, "frame_error_rate"),
        retry_limit: u8::try_from(integer(access, "retry_limit")).expect("a checked retry limit is at most 255"),
        short_preamble: text(access, "preamble") == "short",
        protection_rate: phy_rate("protection_rate_mbps")?,
        broadcast_rate,
        rules: WifiRules {
            idle_before_acknowledgement: text(access, "before_acknowledgement") == "idle",
            difs_after_collision: text(access, "after_collision") == "difs",
        },
        ..WifiConfig::new(standard)
    })
}

/// The network names its own fields and single hosts; the writer of the file knows keys and blocks.
///
/// `change_blocks` are the blocks that the network's changes come from.
fn in_words_of_the_file(
    document: &Document,
    hosts: &[HostBlock],
    change_blocks: &[usize],
    error: &ConfigError,
) -> ScenarioError {
    let numbered = |list: &str| {
        let (index, field) = error.field.strip_prefix(list)?.strip_prefix('[')?.split_once("].")?;
        Some((index.parse::<usize>().ok()?, field))
    };
    let host = numbered("hosts").map(|(index, field)| ("hosts", block_of(hosts, index), field));
    let change = || numbered("changes").map(|(index, field)| ("changes", change_blocks[index], field));
    let (path, field) = match host.or_else(change) {
        Some((list, block, field)) => (Path::default().key(list).index(block), field),
        None => match error.field.split_once('.') {
            Some((section, field)) => (Path::default().key(section), field),
            None => (Path::default(), error.field.as_str()),
        },
    };
    let key = match field {
        "rate" => "rate_mbps",
        "path" => "path_rtt_ms",
        "turnaround" => "turnaround_us",
        "broadcast_rate" => "broadcast_rate_mbps",
        "protection_rate" => "protection_rate_mbps",
        "access_point_queue.packets" | "queue.packets" => "queue_packets",
        same => same,
    };
    let path = path.key(key);
    // A rate of the file that was right until the command line chose another standard.
    let standard = Path::default().key("access").key("standard");
    if key.ends_with("rate_mbps") && document.override_of(&path).is_none() && document.override_of(&standard).is_some()
    {
        let line = document.line_of(&path).1.map_or(String::new(), |line| format!(" (line {line} of the file)"));
        let problem = format!("{path} is {}{line}, which does not go with it", error.value);
        return document.error(&standard, problem, format!("with {path} set as well, to {}", error.accepted));
    }
    document.error(&path, format!("{} cannot be here", error.value), error.accepted.clone())
}

/// The block that the host of this number comes from.
fn block_of(hosts: &[HostBlock], index: usize) -> usize {
    let mut before = 0;
    hosts
        .iter()
        .position(|block| {
            before += block.count;
            index < before
        })
        .unwrap_or(0)
}

/// The queue whose discipline stands in `key`, and its length in `key` with the unit.
fn queue(table: &Table, key: &str) -> QueueConfig {
    let packets = size(table, &format!("{key}_packets"));
    match text(table, key) {
        "fq_codel" => QueueConfig::fq_codel(packets),
        _ => QueueConfig::fifo(packets),
    }
}

pub(crate) fn rate(table: &Table, key: &str) -> Rate {
    Rate::from_mbps(float(table, key))
}

/// The rate that a host may have of its own.
pub(crate) fn own_rate(host: &Table) -> Option<Rate> {
    host.get("rate_mbps").and_then(Value::as_float).map(Rate::from_mbps)
}

/// The frame error rate that a host may have of its own.
pub(crate) fn own_frame_error_rate(host: &Table) -> Option<Probability> {
    host.contains_key("frame_error_rate").then(|| probability(host, "frame_error_rate"))
}

/// The path that a host may have of its own.
pub(crate) fn own_path(host: &Table) -> Option<HostPath> {
    let (from, to) = ends(host.get("path_rtt_ms")?);
    let rtt = (Span::from_secs_f64(from / 1e3), Span::from_secs_f64(to / 1e3));
    let change_every =
        host.get("path_rtt_change_s").map_or(Span::ZERO, |_| Span::from_secs_f64(float(host, "path_rtt_change_s")));
    Some(HostPath { rtt, change_every })
}

/// How long a host takes from its MAC to TCP and back.
pub(crate) fn turnaround(host: &Table) -> (Span, Span) {
    let (from, to) = ends(&host["turnaround_us"]);
    (Span::from_secs_f64(from / 1e6), Span::from_secs_f64(to / 1e6))
}

pub(crate) fn milliseconds(table: &Table, key: &str) -> Span {
    Span::from_secs_f64(float(table, key) / 1e3)
}

pub(crate) fn probability(table: &Table, key: &str) -> Probability {
    Probability::new(float(table, key)).expect("a checked probability is in 0..=1")
}
