//! The policies: what holds whatever peers say, TCP shows, and a file sets.
#![allow(missing_docs)]

use lasthop_connection::TcpState;
use lasthop_keys::{Document, Keys as _, Kind};
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

/// A number at an end of its range, near it, or anywhere inside.
fn whole(from: i64, to: i64) -> impl Strategy<Value = i64> + Clone {
    prop_oneof![Just(from), Just(to), Just((from + 1).min(to)), from..=to, from..=to.min(from.saturating_add(100))]
}

fn real(from: f64, to: f64) -> impl Strategy<Value = f64> {
    prop_oneof![Just(from), Just(to), (0.0..=1.0).prop_map(move |part: f64| from + part.powi(4) * (to - from))]
}

/// What stands behind the `=` of a key of this kind. Most of it is accepted.
fn written(kind: &Kind) -> BoxedStrategy<String> {
    let text = |number: f64| format!("{number:?}");
    match *kind {
        Kind::Number { from, to, above: false } => real(from, to).prop_map(text).boxed(),
        Kind::Number { from, to, above: true } => real(from.max(f64::MIN_POSITIVE), to).prop_map(text).boxed(),
        Kind::Integer { from, to } => whole(from, to).prop_map(|number| number.to_string()).boxed(),
        Kind::Choice(ref words) => proptest::sample::select(words.clone()).prop_map(|word| format!("{word:?}")).boxed(),
        Kind::Flag => any::<bool>().prop_map(|flag| flag.to_string()).boxed(),
        Kind::Integers { from, to, columns: 1 } => {
            vec(whole(from, to), 0..=65).prop_map(|list| format!("{list:?}")).boxed()
        }
        // Rows [from, max, min] whose edges rise, so that they are accepted.
        Kind::Integers { from, to, columns } => {
            assert_eq!(columns, 3, "rows of a table of windows");
            let row = (1..1_000_i64, whole(from.max(1), to), whole(from.max(1), to));
            vec(row, 0..=65)
                .prop_map(|rows| {
                    let mut edge = 0;
                    let mut row = |(step, one, other): (i64, i64, i64)| {
                        let row = [edge, one.max(other), one.min(other)];
                        edge += step;
                        row
                    };
                    format!("{:?}", rows.into_iter().map(&mut row).collect::<Vec<_>>())
                })
                .boxed()
        }
        Kind::Texts => Just("[\"a\"]".to_owned()).boxed(),
        _ => Just("\"a\"".to_owned()).boxed(),
    }
}

/// A file of settings of this policy: some of its keys.
fn any_settings(policy: PolicyName) -> BoxedStrategy<String> {
    let mut lines = Just(format!("policy = \"{policy}\"\n")).boxed();
    for key in PolicySettings::section().keys.iter().filter(|key| key.name != "policy" && policy.looks_at(key.name)) {
        // The policy "fixed" cannot be without it.
        let often = if key.name == "bound_segments" { 0.9 } else { 0.4 };
        let line = proptest::option::weighted(often, written(&key.kind)).prop_map({
            let name = key.name;
            move |value| value.map_or(String::new(), |value| format!("{name} = {value}\n"))
        });
        lines = (lines, line).prop_map(|(lines, line)| lines + &line).boxed();
    }
    lines
}

/// The settings, if a file with them is accepted.
fn accepted(text: &str) -> Option<PolicySettings> {
    let document = Document::read("any.toml", text, &[], PolicySettings::section()).ok()?;
    PolicySettings::read(&document.top()).ok()
}

/// A connection as it is seen at a tick. `acked` and `received`: since it began.
fn observed(id: u64, seen: Seen, acked: u64, received: u64) -> FlowObservation {
    let [srtt, newest_rtt, min_rtt] = seen.rtts_us.map(span);
    let [receive_rtt, min_receive_rtt] = seen.receive_rtts_us.map(span);
    let [busy, backlogged, receiving] = seen.flags;
    FlowObservation {
        id: FlowId(id),
        tcp: TcpState {
            srtt,
            min_rtt,
            cwnd_segments: 100,
            newest_rtt,
            acked: Bytes::new(acked),
            in_flight_segments: seen.in_flight_segments,
            unsent: Bytes::new(backlogged.into()),
            mss_bytes: seen.mss_bytes,
            received: Bytes::new(received),
            receive_rtt,
            ..TcpState::default()
        },
        busy,
        min_receive_rtt,
        receiving,
        ..FlowObservation::default()
    }
}

fn neighbourhood(reports: &[Report], now: Time) -> Neighbourhood {
    let peer = |(id, report): (usize, &Report)| Peer { id: PeerId(id as u64), report: *report, heard_at: now };
    Neighbourhood::new(reports.iter().enumerate().map(peer).collect())
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
                let flow = observed(1, seen, acked, received);
                let peers = neighbourhood(&reports, now);
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

    /// What is checked is usable: settings that a file may have make a policy that decides on any observation.
    #[test]
    fn accepted_settings_of_every_policy_decide_on_any_observation(
        texts in PolicyName::ALL.iter().map(|&policy| any_settings(policy)).collect::<Vec<_>>(),
        whiles in vec(any_while(), 1..4),
    ) {
        for settings in texts.iter().filter_map(|text| accepted(text)) {
            let (mut policy, mut now) = (settings.build(), Time::ZERO);
            let (mut acked, mut received) = (0_u64, 0_u64);
            for (reports, seen, ticks, milliseconds) in &whiles {
                for _ in 0..(*ticks).min(8) {
                    now += Span::from_millis(*milliseconds);
                    acked += u64::from(seen.acked_bytes);
                    received += u64::from(seen.received_bytes);
                    let idle = Seen { flags: [false; 3], ..*seen };
                    let alone = FlowObservation { left_alone: true, ..observed(3, *seen, acked, received) };
                    let flows = [observed(1, *seen, acked, received), observed(2, idle, 0, 0), alone];
                    let decision = policy.on_tick(&Observation { now, flows: &flows, peers: &neighbourhood(reports, now) });
                    prop_assert_eq!(decision.flows.len(), 3);
                    for bound in decision.flows.iter().filter_map(|flow| flow.bound).chain(decision.new_flows) {
                        let least = settings.minimum_segments;
                        prop_assert!(bound.max_segments == 0 || (least.max(bound.min_segments)..).contains(&bound.max_segments), "{bound}");
                    }
                    let _shown = (policy.word(), policy.state(), decision.flows[0].reason.to_string());
                }
            }
        }
    }
}

/// Else the property above would hold of nothing.
#[test]
fn most_of_the_settings_that_are_tried_are_accepted() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for &policy in PolicyName::ALL {
        let settings = any_settings(policy);
        let tried = (0..100).map(|_| settings.new_tree(&mut runner).expect("a text").current());
        let count = tried.filter(|text| accepted(text).is_some()).count();
        assert!(count > 20, "{policy}: {count} of 100");
    }
}
