//! What holds whatever peers say and TCP shows.

use super::*;
use lasthop_peers::{Neighbourhood, Peer, PeerId, Report};
use lasthop_units::{Bytes, Span};
use proptest::collection::vec;
use proptest::prelude::*;

const FLOOR_SEGMENTS: u32 = 5;

/// A number that a beacon has room for, the least and the greatest among them.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(1), Just(u32::MAX), any::<u32>(), 0..1_000_000_u32]
}

fn span(us: u32) -> Option<Span> {
    us.checked_sub(1).map(|us| Span::from_micros(us.into()))
}

pub(super) fn any_report() -> impl Strategy<Value = Report> {
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.2), any::<[bool; 3]>());
    (prop_oneof![Just(0), Just(1), Just(u16::MAX)], [number(), number(), number(), number(), number(), number()], flags)
        .prop_map(
            |(
                busy_flows,
                [srtt, min_rtt, rate, delivered, excess, free],
                (controlling, congested, released, [harmed, careful, waiting]),
            )| Report {
                busy_flows,
                waiting,
                srtt: span(srtt),
                min_rtt: span(min_rtt),
                controlling,
                congested,
                word: Told {
                    common_rate: Rate::from_bps(8 * u64::from(rate)),
                    delivered: Rate::from_bps(8 * u64::from(delivered)),
                    excess: span(excess),
                    free: Rate::from_bps(8 * u64::from(free)),
                    released,
                    harmed,
                    careful,
                }
                .word(),
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
        let (mut policy, mut now, mut acked) = (Lasthop1::new(&settings), Time::ZERO, 0_u64);
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
                    ..FlowObservation::default()
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
                let heard = Told::by(&Report { word: policy.word(), ..Report::default() });
                let told = policy.told();
                prop_assert_eq!(heard.released, told.released);
                prop_assert_eq!(heard.common_rate > Rate::ZERO, told.common_rate > Rate::ZERO);
            }
        }
    }
}

/// Hosts behind one bottleneck, in fluid, and a stranger who says something, if anything, to all of them at every tick from
/// 120 s on: what all get in the minute from 180 s on, over what there is.
fn beside_a_stranger(hosts: usize, base_ms: u64, says: Option<Report>) -> f64 {
    const CAPACITY: f64 = 2.85e6;
    let mut policies = vec![Lasthop1::new(&PolicySettings::default()); hosts];
    let mut acked = vec![0.0; hosts];
    let mut reports: Vec<Option<Report>> = vec![None; hosts];
    let (mut queue_s, mut got) = (0.0_f64, 0.0);
    for tick in 0..480_u64 {
        let now = Time::ZERO + Span::from_millis(500 * tick);
        let base_s = base_ms as f64 / 1e3;
        let mut offered = Vec::new();
        let before = reports.clone();
        for host in 0..hosts {
            let rtt = Some(Span::from_secs_f64(base_s + queue_s));
            let flow = FlowObservation {
                id: FlowId(1),
                srtt: rtt,
                newest_rtt: rtt,
                min_rtt: Some(Span::from_millis(base_ms)),
                cwnd_segments: 100,
                busy: true,
                acked: Bytes::new(acked[host] as u64),
                in_flight_segments: 100,
                backlogged: true,
                mss_bytes: 1448,
                ..FlowObservation::default()
            };
            let others = (0..hosts).filter(|other| *other != host).filter_map(|other| Some((other, before[other]?)));
            let stranger = says.filter(|_| tick >= 240).map(|says| (hosts, says));
            let peer = |(id, report)| Peer { id: PeerId(id as u64), report, heard_at: now };
            let peers = Neighbourhood::new(others.chain(stranger).map(peer).collect());
            let decision = policies[host].on_tick(&Observation { now, flows: &[flow], peers: &peers });
            // Without control they fill half a second.
            let window = |bound: Bound| f64::from(bound.max_segments) * 1448.0 / (base_s + queue_s);
            let free = 2.0 * CAPACITY / hosts as f64;
            let paced = |bound: Bound| signals::bytes_per_second(bound.max_pacing_rate).min(window(bound)).min(free);
            offered.push(decision.flows[0].bound.map_or(free, paced));
            reports[host] =
                Some(Report { busy_flows: 1, min_rtt: flow.min_rtt, word: policies[host].word(), ..Report::default() });
        }
        let sum = offered.iter().sum::<f64>();
        queue_s = (queue_s + 0.5 * (sum / CAPACITY - 1.0)).clamp(0.0, 0.5);
        let passed = if queue_s > 0.0 { CAPACITY / sum } else { 1.0 };
        offered.iter().zip(&mut acked).for_each(|(offered, acked)| *acked += 0.5 * offered * passed.min(1.0));
        if tick >= 360 {
            got += sum * passed.min(1.0) / CAPACITY / 120.0;
        }
    }
    got
}

/// He costs them much (docs/models/policy-lasthop-1.md, failure modes), but 2.8 segments a second would be less than a hundredth.
#[test]
fn one_liar_takes_hosts_some_of_the_capacity_and_not_all_of_it() {
    let honest = Report { busy_flows: 1, min_rtt: span(100_001), ..Report::default() };
    let rate = |bytes_per_second: u32| Rate::from_bps(8 * u64::from(bytes_per_second));
    let says = |told: Told| Report { word: told.word(), ..honest };
    let least = says(Told { common_rate: rate(1), excess: span(u32::MAX), ..Told::default() });
    let most = rate(u32::MAX);
    let most = says(Told { common_rate: most, delivered: most, excess: span(1), ..Told::default() });
    for (says, least_part) in [(None, 0.7), (Some(least), 0.2), (Some(most), 0.5)] {
        for hosts in [2, 3, 9] {
            for base_ms in [4, 20, 100, 256] {
                let part = beside_a_stranger(hosts, base_ms, says);
                assert!(part > least_part, "{hosts} hosts, {base_ms} ms, {says:?}: {part}");
            }
        }
    }
}
