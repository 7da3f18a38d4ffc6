//! A policy over a made-up congestion: whoever checks a configuration sees that the policy with these settings can decide.
//!
//! A host uploads twice and downloads once. Then its round trip grows from 20 ms to 2 s and falls again, while ten peers
//! come and go. Two minutes, as the policy's clock has it; well under a millisecond.

use crate::governor::{FlowSample, Governor};
use crate::{FlowId, PolicySettings, TICK};
use lasthop_connection::TcpState;
use lasthop_peers::{Neighbourhood, Peer, PeerId, Report};
use lasthop_units::{Bytes, Span, Time};

const TICKS: u64 = 240;
const LOWEST: Span = Span::from_millis(20);

impl PolicySettings {
    /// Whether the policy with these settings can decide. Of a program outside, only what is around it.
    ///
    /// # Errors
    /// What the policy says where it fails, in words.
    pub fn rehearse(&self) -> Result<(), String> {
        std::panic::catch_unwind(|| congestion(&mut Governor::new(self.build(), true))).map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            text.or_else(|| panic.downcast_ref().copied()).unwrap_or("it panics").to_owned()
        })
    }
}

fn congestion(governor: &mut Governor) {
    for tick in 0..TICKS {
        let now = Time::ZERO + TICK * tick;
        // Up for a minute, then down.
        let depth = tick.min(TICKS - tick) * 2;
        let srtt = LOWEST + Span::from_millis(2_000 * depth / TICKS);
        let flow = |id| FlowSample {
            id: FlowId(id),
            tcp: TcpState {
                srtt: (tick > 0).then_some(srtt),
                min_rtt: (tick > 0).then_some(LOWEST),
                newest_rtt: (tick > 0).then_some(srtt),
                cwnd_segments: 10 + tick as u32,
                acked: Bytes::new(100_000 * tick),
                in_flight_segments: 10,
                unsent: Bytes::new(100_000),
                mss_bytes: 1448,
                ..TcpState::default()
            },
            controllable: true,
            ..FlowSample::default()
        };
        let mut download = flow(3);
        download.tcp.in_flight_segments = 0;
        (download.tcp.received, download.tcp.receive_rtt) = (Bytes::new(200_000 * tick), Some(srtt));
        let report = Report {
            busy_flows: 1,
            srtt: Some(srtt),
            min_rtt: Some(LOWEST),
            congested: depth > TICKS / 2,
            ..Report::default()
        };
        let peers = (0..depth * 10 / TICKS).map(|id| Peer { id: PeerId(id), report, heard_at: now });
        let turn = governor.on_tick(now, &[flow(1), flow(2), download], &Neighbourhood::new(peers.collect()));
        governor.on_applied(&turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PolicyName;

    #[test]
    fn every_policy_that_bounds_bounds_the_made_up_congestion() {
        for &policy in PolicyName::ALL {
            let command = Some(vec!["true".to_owned()]);
            let settings = PolicySettings { policy, bound_segments: Some(9), command, ..PolicySettings::default() };
            assert_eq!(settings.rehearse(), Ok(()));
            let mut governor = Governor::new(settings.build(), true);
            congestion(&mut governor);
            let bounds = !matches!(policy, PolicyName::None | PolicyName::External);
            assert_eq!(governor.counts().bounds_changed > 0, bounds, "{policy}");
        }
    }

    #[test]
    fn what_cannot_decide_is_told_and_not_run() {
        let settings = PolicySettings { segment_bytes: 0, ..PolicySettings::default() };
        assert!(settings.rehearse().unwrap_err().contains("valid settings only"));
    }
}
