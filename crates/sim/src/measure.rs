//! From the state of our TCP to the parts of a result.

use crate::connection::{Connection, Counts, Ends};
use crate::quic;
use lasthop_measure::{Counted, Seen};
use lasthop_scenario::{LastLinkResult, TrafficKind};
use lasthop_tcp::Endpoint;
use lasthop_units::{Bytes, Rate};

/// The sender's state, if the connection is open.
pub(crate) fn seen(connection: &Connection, counts: &Counts) -> Option<Seen> {
    if let Ends::Quic(ends) = &connection.ends {
        return quic::seen(&ends[connection.writer], counts.retransmits);
    }
    let info = connection.sender().filter(|sender| sender.is_established()).map(Endpoint::info)?;
    Some(Seen {
        acked: Bytes::new(info.acked_bytes),
        cwnd_segments: info.cwnd_segments,
        ssthresh_segments: info.ssthresh_segments,
        srtt: info.srtt,
        min_rtt: info.min_rtt,
        state: info.state as u8,
        in_flight_segments: info.in_flight_segments,
        unsent_bytes: info.unsent_bytes,
        retransmits: counts.retransmits,
        pacing_rate: Some(info.pacing_rate).filter(|rate| *rate > Rate::ZERO),
        last_link: info.last_link,
    })
}

/// The counts since the end of the warm-up. quinn does not tell its probe timeouts.
pub(crate) fn counted(kind: TrafficKind, counts: &Counts, warm: &Counts) -> Counted {
    Counted {
        received: counts.received - warm.received,
        retransmits: counts.retransmits - warm.retransmits,
        timeouts: (!matches!(kind, TrafficKind::Quic { .. })).then(|| counts.timeouts - warm.timeouts),
        last_link: counts.heard_reports.then(|| LastLinkResult {
            ignored_losses: counts.ignored_losses - warm.ignored_losses,
            heeded_losses: counts.heeded_losses - warm.heeded_losses,
            initial_segments: counts.initial_segments,
        }),
    }
}
