//! What is wrong with the network, in words of the file: the network knows fields and single hosts, the file has keys and
//! blocks.

use crate::ScenarioError;
use crate::changes::Made;
use crate::keys::{AccessKeys, ChangeKeys, HostKeys, LinkKeys, PathKeys, ScenarioKeys};
use crate::scenario::HostBlock;
use crate::wiring::Wiring;
use lasthop_keys::{Document, Path, key};
use lasthop_network::{
    ChangeField, ConfigError, DirectionField, Field, HostField, LinkField, NetworkField, PathField, QueueField,
    WifiField,
};

/// The error about the key. `changes` are the network's.
pub(crate) fn in_words_of_the_file(
    document: &Document,
    hosts: &[HostBlock],
    wiring: &Wiring,
    changes: &[Made<'_>],
    error: &ConfigError,
) -> ScenarioError {
    let (table, key) = place(error.field);
    let table = Path::top(table);
    let part = match error.field {
        Field::Network(_) => Path::default(),
        Field::Host(host, _) => table.index(block_of(hosts, host)),
        Field::Wifi(_) | Field::Wired(_) | Field::Path(_) => table,
        Field::Link(link, _) => table.index(wiring.links[link].block),
        Field::Change(change, _) => changes[change].0.path(),
    };
    let path = part.key(key);
    // A rate or a modulation of the file became wrong through another standard on the command line.
    let standard = Path::top(key!(ScenarioKeys, access)).key(key!(AccessKeys, standard));
    let is_overridden = |key: &Path| document.override_of(key).is_some();
    if goes_with_the_standard(error.field) && !is_overridden(&path) && is_overridden(&standard) {
        let line = document.line_of(&path).1.map_or(String::new(), |line| format!(" (line {line} of the file)"));
        let problem = format!("{path} is {}{line}, which does not go with it", error.value);
        return document.error(&standard, problem, format!("with {path} set as well, to {}", error.accepted));
    }
    let problem = format!("{} cannot be here", error.value);
    match error.field {
        Field::Change(change, _) => {
            let (origin, line, _) = &changes[change];
            origin.error(document, *line, key, (problem, error.accepted.clone()))
        }
        _ => document.error(&path, problem, error.accepted.clone()),
    }
}

/// The table and the key of a field. Of the network as a whole both are the list.
fn place(field: Field) -> (&'static str, &'static str) {
    let (access, hosts, links) = (key!(ScenarioKeys, access), key!(ScenarioKeys, hosts), key!(ScenarioKeys, links));
    match field {
        Field::Network(NetworkField::Hosts) => (hosts, hosts),
        Field::Network(NetworkField::Cells) => (key!(ScenarioKeys, cells), key!(ScenarioKeys, cells)),
        Field::Network(NetworkField::Nodes | NetworkField::Attached | NetworkField::Links) => (links, links),
        Field::Host(_, field) => (hosts, key_of_host(field)),
        Field::Wifi(field) => (access, key_of_wifi(field)),
        Field::Wired(DirectionField::Rate) => (access, key!(AccessKeys, rate_mbps)),
        // A wired access has no losses at random.
        Field::Wired(DirectionField::LossBurst) => (access, key!(AccessKeys, kind)),
        Field::Wired(DirectionField::Queue(field)) => (access, key_of_queue(field)),
        Field::Path(PathField::QueuePackets) => (key!(ScenarioKeys, path), key!(PathKeys, queue_packets)),
        Field::Path(PathField::LossBurst) => (key!(ScenarioKeys, path), key!(PathKeys, loss_burst_packets)),
        Field::Path(PathField::BackLossBurst) => (key!(ScenarioKeys, path), key!(PathKeys, back_loss_burst_packets)),
        Field::Path(PathField::Rate) => (key!(ScenarioKeys, path), key!(PathKeys, rate_mbps)),
        Field::Link(_, field) => (links, key_of_link(field)),
        Field::Change(_, field) => (key!(ScenarioKeys, changes), key_of_change(field)),
    }
}

fn key_of_host(field: HostField) -> &'static str {
    match field {
        HostField::QueuePackets => key!(HostKeys, queue_packets),
        HostField::Standard => key!(HostKeys, standard),
        HostField::Rate => key!(HostKeys, rate_mbps),
        HostField::Mcs => key!(HostKeys, mcs),
        HostField::Width => key!(HostKeys, channel_width_mhz),
        HostField::SpatialStreams => key!(HostKeys, spatial_streams),
        HostField::SnrDb => key!(HostKeys, snr_db),
        HostField::FrameErrorRate => key!(HostKeys, frame_error_rate),
        HostField::Path | HostField::PathRtt => key!(HostKeys, path_rtt_ms),
        HostField::PathJitter => key!(HostKeys, path_jitter_ms),
        HostField::Turnaround => key!(HostKeys, turnaround_us),
    }
}

fn key_of_wifi(field: WifiField) -> &'static str {
    match field {
        WifiField::Band => key!(AccessKeys, band_ghz),
        WifiField::Rate => key!(AccessKeys, rate_mbps),
        WifiField::Mcs => key!(AccessKeys, mcs),
        WifiField::SpatialStreams => key!(AccessKeys, spatial_streams),
        WifiField::Width => key!(AccessKeys, channel_width_mhz),
        WifiField::GuardInterval => key!(AccessKeys, guard_interval_us),
        WifiField::RateControl => key!(AccessKeys, rate_control),
        WifiField::AccessPointQueue(field) => key_of_queue(field),
        WifiField::AggregateFrames => key!(AccessKeys, aggregate_frames),
        WifiField::MaxPpdu => key!(AccessKeys, max_ppdu_us),
        WifiField::AmsduBytes => key!(AccessKeys, amsdu_bytes),
        WifiField::StartSpacing => key!(AccessKeys, start_spacing_us),
        WifiField::RtsThreshold => key!(AccessKeys, rts_threshold_bytes),
        WifiField::RtsOnRetry => key!(AccessKeys, rts_on_retry),
        WifiField::AccessPointWindow => key!(AccessKeys, access_point_cw_max),
        WifiField::AccessPointTxop => key!(AccessKeys, access_point_txop_us),
        WifiField::ProtectionRate => key!(AccessKeys, protection_rate_mbps),
        WifiField::BroadcastRate => key!(AccessKeys, broadcast_rate_mbps),
    }
}

fn key_of_queue(field: QueueField) -> &'static str {
    match field {
        QueueField::Packets => key!(AccessKeys, queue_packets),
        QueueField::Discipline | QueueField::Parameter(_) => key!(AccessKeys, queue),
    }
}

fn key_of_link(field: LinkField) -> &'static str {
    match field {
        LinkField::Ends => key!(LinkKeys, between),
        LinkField::Forth(DirectionField::Rate) => key!(LinkKeys, rate_mbps),
        LinkField::Back(DirectionField::Rate) => key!(LinkKeys, back_rate_mbps),
        LinkField::Forth(DirectionField::LossBurst) => key!(LinkKeys, loss_burst_packets),
        LinkField::Back(DirectionField::LossBurst) => key!(LinkKeys, back_loss_burst_packets),
        LinkField::Forth(DirectionField::Queue(QueueField::Packets)) => key!(LinkKeys, queue_packets),
        LinkField::Back(DirectionField::Queue(QueueField::Packets)) => key!(LinkKeys, back_queue_packets),
        LinkField::Forth(DirectionField::Queue(QueueField::Discipline | QueueField::Parameter(_))) => {
            key!(LinkKeys, queue)
        }
        LinkField::Back(DirectionField::Queue(QueueField::Discipline | QueueField::Parameter(_))) => {
            key!(LinkKeys, back_queue)
        }
    }
}

fn key_of_change(field: ChangeField) -> &'static str {
    match field {
        ChangeField::What => key!(ChangeKeys, of),
        ChangeField::Link => key!(ChangeKeys, between),
        ChangeField::Host => key!(ChangeKeys, hosts),
        ChangeField::Rate => key!(ChangeKeys, rate_mbps),
        ChangeField::Mcs => key!(ChangeKeys, mcs),
        ChangeField::FrameErrorRate => key!(ChangeKeys, frame_error_rate),
        ChangeField::SnrDb => key!(ChangeKeys, snr_db),
        ChangeField::Opportunities => key!(ChangeKeys, trace),
    }
}

/// Whether another standard may make the field's value wrong.
fn goes_with_the_standard(field: Field) -> bool {
    use WifiField::{BroadcastRate, GuardInterval, Mcs, ProtectionRate, Rate, SpatialStreams, Width};
    match field {
        Field::Wifi(field) => {
            matches!(field, Rate | BroadcastRate | ProtectionRate | Mcs | SpatialStreams | Width | GuardInterval)
        }
        Field::Host(_, field) => matches!(field, HostField::Rate | HostField::Mcs),
        Field::Change(_, field) => matches!(field, ChangeField::Rate | ChangeField::Mcs),
        Field::Network(_) | Field::Wired(_) | Field::Path(_) | Field::Link(..) => false,
    }
}

/// The block of the host with this number.
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

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_keys::Keys as _;
    use strum::IntoEnumIterator as _;

    #[test]
    fn each_field_of_the_network_has_a_key_of_its_table() {
        let queues = || [QueueField::Discipline, QueueField::Packets, QueueField::Parameter("quantum")];
        let directions = || {
            let queues = queues().map(DirectionField::Queue);
            DirectionField::iter().chain(queues)
        };
        let mut fields: Vec<Field> = NetworkField::iter().map(Field::Network).collect();
        fields.extend(HostField::iter().map(|field| Field::Host(0, field)));
        fields.extend(WifiField::iter().chain(queues().map(WifiField::AccessPointQueue)).map(Field::Wifi));
        fields.extend(directions().map(Field::Wired));
        fields.extend(PathField::iter().map(Field::Path));
        let ways = directions().flat_map(|field| [LinkField::Forth(field), LinkField::Back(field)]);
        fields.extend(LinkField::iter().chain(ways).map(|field| Field::Link(0, field)));
        fields.extend(ChangeField::iter().map(|field| Field::Change(0, field)));
        let file = ScenarioKeys::section();
        for field in fields {
            let (table, key) = place(field);
            let table = file.child(table).unwrap_or_else(|| panic!("{field}: {table}"));
            let there =
                if matches!(field, Field::Network(_)) { table.name == key } else { table.section.key(key).is_some() };
            assert!(there, "{field}: {}.{key}", table.name);
        }
    }
}
