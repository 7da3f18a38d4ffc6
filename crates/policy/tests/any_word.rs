//! The policies whose hosts agree on a rate by beacons: what holds whatever peers say and TCP shows.
#![allow(missing_docs)]

use lasthop_laws::bound::LEAST_PACING_RATE;
use lasthop_peers::{Neighbourhood, Peer, PeerId, Report, Word};
use lasthop_policy::{FlowId, FlowObservation, Observation, PolicyName, PolicySettings};
use lasthop_units::{Bytes, Rate, Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

const FLOOR_SEGMENTS: u32 = 5;

/// Bytes in any layout: numbers of no and of great size among them.
fn any_word() -> impl Strategy<Value = Word> {
    let byte = prop_oneof![Just(0), Just(1), Just(u8::MAX), any::<u8>()];
    let bytes = prop_oneof![
        any::<[u8; Word::BYTES]>(),
        vec(byte, Word::BYTES).prop_map(|bytes| bytes.try_into().expect("so many bytes")),
    ];
    (prop_oneof![Just(1), Just(2)], bytes).prop_map(|(kind, bytes)| Word::new(kind, bytes))
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(1), Just(u32::MAX), any::<u32>(), 0..1_000_000_u32]
}

fn span(us: u32) -> Option<Span> {
    us.checked_sub(1).map(|us| Span::from_micros(us.into()))
}

fn any_report() -> impl Strategy<Value = Report> {
    (prop_oneof![Just(0), Just(1), Just(u16::MAX)], number(), number(), any::<[bool; 3]>(), any_word()).prop_map(
        |(busy_flows, srtt, min_rtt, [waiting, controlling, congested], word)| Report {
            busy_flows,
            waiting,
            srtt: span(srtt),
            min_rtt: span(min_rtt),
            controlling,
            congested,
            word: Some(word),
        },
    )
}

/// A connection of the host for some time. What it gets in each tick is the same.
#[derive(Clone, Copy, Debug)]
struct Seen {
    rtts_us: [u32; 3],
    receive_rtts_us: [u32; 2],
    acked_bytes: u32,
    received_bytes: u32,
    in_flight_segments: u32,
    flags: [bool; 3],
    mss_bytes: u32,
}

fn any_seen() -> impl Strategy<Value = Seen> {
    let rtts = ([number(), number(), number()], [number(), number()]);
    let in_flight = prop_oneof![Just(0), Just(3), Just(100), any::<u32>()];
    let mss_bytes = prop_oneof![Just(0), Just(1), Just(1448), Just(65_535)];
    (rtts, number(), number(), in_flight, any::<[bool; 3]>(), mss_bytes).prop_map(
        |((rtts_us, receive_rtts_us), acked_bytes, received_bytes, in_flight_segments, flags, mss_bytes)| Seen {
            rtts_us,
            receive_rtts_us,
            acked_bytes,
            received_bytes,
            in_flight_segments,
            flags,
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
    fn no_limit_is_below_the_floor(
        whiles in vec(any_while(), 1..6),
    ) {
        let policy = PolicyName::Lasthop;
        let settings = PolicySettings { policy, minimum_segments: FLOOR_SEGMENTS, ..PolicySettings::default() };
        let (mut policy, mut now) = (settings.build(), Time::ZERO);
        let (mut acked, mut received) = (0_u64, 0_u64);
        for (reports, seen, ticks, milliseconds) in whiles {
            for _ in 0..ticks {
                now += Span::from_millis(milliseconds);
                acked += u64::from(seen.acked_bytes);
                received += u64::from(seen.received_bytes);
                let [srtt, newest_rtt, min_rtt] = seen.rtts_us.map(span);
                let [receive_rtt, min_receive_rtt] = seen.receive_rtts_us.map(span);
                let [busy, backlogged, receiving] = seen.flags;
                let flow = FlowObservation {
                    id: FlowId(1),
                    srtt,
                    min_rtt,
                    cwnd_segments: 100,
                    busy,
                    newest_rtt,
                    acked: Bytes::new(acked),
                    in_flight_segments: seen.in_flight_segments,
                    backlogged,
                    mss_bytes: seen.mss_bytes,
                    received: Bytes::new(received),
                    receive_rtt,
                    min_receive_rtt,
                    receiving,
                };
                let peer = |(id, report): (usize, &Report)| Peer { id: PeerId(id as u64), report: *report, heard_at: now };
                let peers = Neighbourhood::new(reports.iter().enumerate().map(peer).collect());
                let decision = policy.on_tick(&Observation { now, flows: &[flow], peers: &peers });
                prop_assert_eq!(decision.flows.len(), 1);
                for bound in decision.flows[0].bound.into_iter().chain(decision.new_flows) {
                    prop_assert!(bound.max_segments == 0 || bound.max_segments >= FLOOR_SEGMENTS, "{bound}");
                    prop_assert!(bound.max_pacing_rate == Rate::ZERO || bound.max_pacing_rate >= LEAST_PACING_RATE, "{bound}");
                    let segment = if seen.mss_bytes == 0 { 1448 } else { u64::from(seen.mss_bytes) };
                    prop_assert!(bound.max_receive_bytes == 0 || bound.max_receive_bytes >= 2 * segment, "{bound}");
                }
                // Neither panics.
                let _shown = (policy.word(), policy.state());
            }
        }
    }
}
