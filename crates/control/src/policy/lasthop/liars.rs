//! What holds whatever peers say and TCP shows.

use super::*;
use crate::beacon::Beacon;
use crate::group::GroupId;
use crate::peers::{Neighbourhood, Peer, PeerId};
use proptest::collection::vec;
use proptest::prelude::*;
use units::{Bytes, Span};

const FLOOR_SEGMENTS: u32 = 5;

/// A number that a beacon has room for, the least and the greatest among them.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(1), Just(u32::MAX), any::<u32>(), 0..1_000_000_u32]
}

fn span(us: u32) -> Option<Span> {
    us.checked_sub(1).map(|us| Span::from_micros(us.into()))
}

pub(super) fn any_report() -> impl Strategy<Value = Report> {
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.2), any::<bool>());
    (prop_oneof![Just(0), Just(1), Just(u16::MAX)], [number(), number(), number(), number(), number()], flags).prop_map(
        |(busy_flows, [srtt, min_rtt, rate, delivered, excess], (controlling, congested, released, harmed))| Report {
            busy_flows,
            srtt: span(srtt),
            min_rtt: span(min_rtt),
            controlling,
            congested,
            common_rate: Rate::from_bps(8 * u64::from(rate)),
            delivered: Rate::from_bps(8 * u64::from(delivered)),
            excess: span(excess),
            released,
            harmed,
        },
    )
}

/// The host's connection at a tick.
#[derive(Clone, Copy, Debug)]
struct Seen {
    rtts_us: [u32; 3],
    acked_bytes: u32,
    busy: bool,
    backlogged: bool,
    mss_bytes: u32,
}

fn any_seen() -> impl Strategy<Value = Seen> {
    let mss_bytes = prop_oneof![Just(0), Just(1), Just(1448), Just(65_535)];
    ([number(), number(), number()], number(), prop::bool::weighted(0.9), any::<bool>(), mss_bytes).prop_map(
        |(rtts_us, acked_bytes, busy, backlogged, mss_bytes)| Seen {
            rtts_us,
            acked_bytes,
            busy,
            backlogged,
            mss_bytes,
        },
    )
}

/// For so many ticks, so many ms apart, the same is said and seen: long enough for each phase to come to its end.
fn any_while() -> impl Strategy<Value = (Vec<Report>, Seen, u32, u64)> {
    (vec(any_report(), 0..6), any_seen(), 1..80_u32, prop_oneof![Just(500), 1..3_000_u64])
}

proptest! {
    #[test]
    fn no_limit_is_below_the_floor_no_window_is_held_up_for_nothing_and_what_is_told_can_be_told(
        whiles in vec(any_while(), 1..6),
    ) {
        let settings = PolicySettings { minimum_segments: FLOOR_SEGMENTS, ..PolicySettings::default() };
        let (mut policy, mut now, mut acked) = (Lasthop::new(&settings), Time::ZERO, 0_u64);
        for (reports, seen, ticks, milliseconds) in whiles {
            for _ in 0..ticks {
                now += Span::from_millis(milliseconds);
                acked += u64::from(seen.acked_bytes);
                let [srtt, newest_rtt, min_rtt] = seen.rtts_us.map(span);
                let flow = FlowObservation {
                    id: FlowId(1),
                    srtt,
                    newest_rtt,
                    min_rtt,
                    cwnd_segments: 100,
                    busy: seen.busy,
                    acked: Bytes::new(acked),
                    in_flight_segments: u32::from(seen.busy),
                    backlogged: seen.backlogged,
                    mss_bytes: seen.mss_bytes,
                };
                let peer = |(id, report): (usize, &Report)| Peer { id: PeerId(id as u64), report: *report, heard_at: now };
                let peers = Neighbourhood::new(reports.iter().enumerate().map(peer).collect());
                let decision = policy.on_tick(&Observation { now, flows: &[flow], peers: &peers });
                prop_assert_eq!(decision.flows.len(), 1);
                for bound in decision.flows[0].bound.into_iter().chain(decision.new_flows) {
                    prop_assert!(bound.max_segments >= FLOOR_SEGMENTS, "{bound}");
                    prop_assert!(bound.max_pacing_rate >= LEAST_PACING_RATE, "{bound}");
                }
                if let (Some(bound), 0, ..=2000) = (decision.flows[0].bound, seen.acked_bytes, milliseconds) {
                    prop_assert!(bound.min_segments <= FLOOR_SEGMENTS, "{bound}, and nothing gets through");
                }
                let mut report = Report { busy_flows: 1, ..Report::default() };
                policy.tell(&mut report);
                let beacon = Beacon {
                    sender: PeerId(1),
                    timestamp_ns: 0,
                    group: GroupId(0),
                    interval: Span::ZERO,
                    report,
                };
                let heard = Beacon::decode(&beacon.encode(None), None).expect("a beacon").report;
                prop_assert_eq!(heard.released, report.released);
                prop_assert_eq!(heard.common_rate > Rate::ZERO, report.common_rate > Rate::ZERO);
            }
        }
    }
}
