//! From the state of our TCP to the parts of a result.

use crate::connection::{Connection, Counts, Ends};
use crate::quic;
use lasthop_connection::TcpState;
use lasthop_measure::{Counted, Seen};
use lasthop_scenario::{LastLinkResult, TrafficKind, Transport};
use lasthop_tcp::Endpoint;

/// The sender's state, if the connection is open.
pub(crate) fn seen(connection: &Connection, counts: &Counts) -> Option<Seen> {
    if let Ends::Quic(ends) = &connection.ends {
        return quic::seen(&ends[connection.writer], counts.retransmits, counts.delivered_ce);
    }
    let info = connection.sender().filter(|sender| sender.is_established()).map(Endpoint::info)?;
    // Those of all its connections.
    let tcp = TcpState { retransmits: counts.retransmits, ..info.tcp };
    Some(Seen { tcp, last_link: info.last_link })
}

/// The counts since the end of the warm-up. quinn does not tell its probe timeouts.
pub(crate) fn counted(kind: &TrafficKind, counts: &Counts, warm: &Counts) -> Counted {
    Counted {
        received: counts.received - warm.received,
        retransmits: counts.retransmits - warm.retransmits,
        timeouts: (kind.name().transport() != Transport::Quic).then(|| counts.timeouts - warm.timeouts),
        delivered_ce: counts.delivered_ce - warm.delivered_ce,
        last_link: counts.heard_reports.then(|| LastLinkResult {
            ignored_losses: counts.ignored_losses - warm.ignored_losses,
            heeded_losses: counts.heeded_losses - warm.heeded_losses,
            initial_segments: counts.initial_segments,
        }),
    }
}
