//! Whatever the path does, every byte is delivered once, in order, and the connection ends.

use super::*;
use crate::{DelayedAck, Recovery, RtoEstimator, Tsq};
use lasthop_laws::SlowStart;
use lasthop_laws::bound::Bound;
use lasthop_units::Bytes;
use proptest::prelude::*;
use std::cell::Cell;
use std::rc::Rc;

/// Any combination of switches.
fn any_config() -> impl Strategy<Value = Config> {
    let booleans = prop::collection::vec(any::<bool>(), 16);
    let recovery = prop::sample::select(Recovery::ALL.to_vec());
    let slow_start = prop::sample::select(SlowStart::ALL.to_vec());
    (booleans, recovery, slow_start, 1..20_u32, 1..4_u32, 0..3_u8).prop_map(
        |(switch, recovery, slow_start, initial_window_segments, segments, tsq)| Config {
            mss: Bytes::new(1000),
            initial_window_segments,
            sack: switch[0] || switch[1],
            timestamps: switch[2],
            timestamp_granularity: Span::from_millis(if switch[3] { 1 } else { 10 }),
            window_scaling: switch[4],
            recovery,
            rescue: switch[5],
            fack: switch[6],
            limited_transmit: switch[7],
            f_rto: switch[8],
            undo: switch[9],
            rack_tlp: switch[10],
            pacing: switch[11],
            tsq: match tsq {
                0 => None,
                1 => Some(Tsq::LINUX),
                _ => Some(Tsq { limit: Bytes::new(4000), pacing_shift: None }),
            },
            delayed_ack: DelayedAck { segments, quick_segments: if switch[12] { 16 } else { 0 }, ..DelayedAck::LINUX },
            rto_estimator: if switch[13] { RtoEstimator::Linux } else { RtoEstimator::Rfc6298 },
            // Many attempts before the sender gives up.
            rto_max: Span::from_secs(5),
            sack_compression: switch[14],
            write_hysteresis: switch[15],
            nagle: switch[12],
            receive_buffer: Bytes::new(if switch[3] { 20_000 } else { 500_000 }),
            send_buffer: Bytes::new(if switch[5] { 30_000 } else { 500_000 }),
            slow_start,
            slow_start_after_idle: switch[6],
            ..Config::linux_2012()
        },
    )
}

/// What happens to the n-th packet.
#[derive(Clone, Debug)]
enum Trouble {
    Lost,
    Late(u64),
    Twice(u64),
    Refused,
}

/// Packet numbers and their troubles; all others arrive normally.
fn any_troubles() -> impl Strategy<Value = Vec<(usize, Trouble)>> {
    let trouble = prop_oneof![
        4 => Just(Trouble::Lost),
        2 => (1..400_u64).prop_map(Trouble::Late),
        1 => (0..400_u64).prop_map(Trouble::Twice),
        1 => Just(Trouble::Refused),
    ];
    // Troubles are isolated or in bursts.
    let bursts = (0..400_usize, 1..30_usize, trouble.clone()).prop_map(|(first, count, trouble)| {
        (first..first + count).map(|nth| (nth, trouble.clone())).collect::<Vec<_>>()
    });
    let single = (0..400_usize, trouble).prop_map(|one| vec![one]);
    prop::collection::vec(prop_oneof![3 => single, 1 => bursts], 0..25).prop_map(|lists| lists.concat())
}

fn troubled(pair: &mut Pair, troubles: Vec<(usize, Trouble)>) {
    let table: std::collections::HashMap<usize, Trouble> = troubles.into_iter().collect();
    let one_way = pair.one_way;
    let refused: Vec<usize> =
        table.iter().filter(|(_, trouble)| matches!(trouble, Trouble::Refused)).map(|(nth, _)| *nth).collect();
    // The number lost in a row in each direction stays below giving up; then several arrive, so that an answer gets
    // through.
    let lost_lately = Rc::new([Cell::new(0), Cell::new(0)]);
    let may_lose = move |lost_lately: &Cell<i32>, loses: bool| {
        let lately = lost_lately.get();
        let loses = loses && lately >= 0;
        lost_lately.set(match lately {
            5 if loses => -8,
            _ if loses => lately + 1,
            _ => (lately + 1).min(0),
        });
        loses
    };
    let (mut carried, mut offered) = (0, 0);
    let lately = Rc::clone(&lost_lately);
    pair.refuse = Box::new(move |_, by, segment| {
        offered += 1;
        let refuses = refused.contains(&offered) && !segment.syn;
        refuses && may_lose(&lately[by], true)
    });
    pair.path = Box::new(move |_, by, segment| {
        carried += 1;
        // Seven SYNs without an answer are enough to give up.
        let trouble = table.get(&carried).filter(|_| carried <= 4 || !segment.syn);
        if may_lose(&lost_lately[by], matches!(trouble, Some(Trouble::Lost))) {
            return Some(vec![]);
        }
        Some(match trouble {
            Some(Trouble::Late(ms)) => vec![one_way + Span::from_millis(*ms)],
            Some(Trouble::Twice(ms)) => vec![one_way, one_way + Span::from_millis(*ms)],
            _ => vec![one_way],
        })
    });
}

proptest! {
    #[test]
    fn every_byte_is_delivered_once_and_the_connection_ends(
        client in any_config(), server in any_config(),
        law in prop::sample::select(LawName::ALL.to_vec()),
        one_way_ms in 1..150_u64,
        forth in 0..400_000_u64, back in prop_oneof![Just(0), 0..200_000_u64],
        troubles in any_troubles(),
    ) {
        let mut pair = Pair::new(&client, &server, law, Span::from_millis(one_way_ms));
        troubled(&mut pair, troubles);
        pair.ends[CLIENT].write(forth);
        pair.ends[CLIENT].close();
        pair.ends[SERVER].write(back);
        pair.ends[SERVER].close();
        pair.run_to_close(Span::from_secs(3000));
        prop_assert!(!pair.ends[CLIENT].has_failed() && !pair.ends[SERVER].has_failed());
        prop_assert_eq!(pair.ends[SERVER].received_bytes(), forth);
        prop_assert_eq!(pair.ends[CLIENT].received_bytes(), back);
        // If the last ACK is lost, the other side cannot know, but does not close either.
        prop_assert_eq!(pair.ends[CLIENT].acked_bytes(), forth);
        prop_assert_eq!(pair.ends[SERVER].acked_bytes(), back);
    }

    /// RFC 9438 §5.8, RFC 7661 §1: a window that the receiver never lets be used does not grow. There are three
    /// allowances. Linux lets slow start grow to twice the flight, the last round adds what it acknowledges, and
    /// NewReno's recovery counts duplicate ACKs. A law that steers aims at more than is in flight by design.
    #[test]
    fn no_law_grows_its_window_far_above_the_receivers(
        client in any_config(), server in any_config(),
        law in prop::sample::select(LawName::ALL.into_iter().filter(|law| !law.steers()).collect::<Vec<_>>()),
        one_way_ms in 1..150_u64, receiver in 4..40_u64, troubles in any_troubles(),
    ) {
        let server = Config { receive_buffer: Bytes::new(1000 * receiver), ..server };
        // As in Linux, the round after an undone reduction takes the reduced window for the limit.
        let client = Config { undo: false, f_rto: false, ..client };
        let mut pair = Pair::new(&client, &server, law, Span::from_millis(one_way_ms));
        troubled(&mut pair, troubles);
        pair.ends[CLIENT].write(2_000_000);
        let mut most = (3 * receiver + 1).max(client.initial_window_segments.into());
        let (mut inflated, until) = (false, pair.now + Span::from_secs(120));
        while pair.step(until) {
            let info = pair.ends[CLIENT].info();
            // A tolerated loss restores the window; the round after it takes PRR's reduced window for the limit.
            let recovers = info.tcp.state == lasthop_connection::CongestionState::Recovery;
            most += u64::from(recovers && !inflated);
            inflated = recovers;
            prop_assert!(inflated || u64::from(info.tcp.cwnd_segments) <= most, "{} of {most}", info.tcp.cwnd_segments);
        }
    }

    #[test]
    fn the_same_happens_twice(
        client in any_config(), server in any_config(), troubles in any_troubles(), forth in 0..200_000_u64,
    ) {
        let run = || {
            let mut pair = Pair::new(&client, &server, LawName::Cubic, Span::from_millis(20));
            troubled(&mut pair, troubles.clone());
            pair.ends[CLIENT].write(forth);
            pair.ends[CLIENT].close();
            pair.run_to_close(Span::from_secs(3000));
            (pair.log, pair.ends.map(|end| end.info()))
        };
        prop_assert_eq!(run(), run());
    }

    /// A sender with a peer that sends arbitrary segments, valid or not, at any time.
    #[test]
    fn no_peer_can_confuse_a_sender(
        config in any_config(),
        law in prop::sample::select(LawName::ALL.to_vec()),
        operations in prop::collection::vec(any_operation(), 1..200),
    ) {
        let mut now = Time::ZERO;
        let mut end = Endpoint::connect(now, &config, law);
        let syn = end.poll_transmit(now).expect("the SYN");
        now += Span::from_millis(30);
        let answer = Segment {
            ack: 1, has_ack: true, syn: true, window_bytes: 60_000, offer: syn.offer, timestamps: syn.timestamps,
            ..Segment::default()
        };
        end.on_segment(now, &answer);
        let (mut highest, mut acknowledged, mut refuse) = (1_u64, 1_u64, false);
        for operation in operations {
            match operation {
                Operation::Write(bytes) => end.write(bytes),
                Operation::Endless => end.write_endless(),
                Operation::Stop => end.stop_writing(),
                Operation::Wait(ms) => now += Span::from_millis(ms),
                Operation::ToTimeout => {
                    let at = end.next_timeout();
                    if at < Time::MAX {
                        now = now.max(at);
                        end.on_timeout(now);
                    }
                }
                Operation::Refuse => refuse = true,
                Operation::Bound(segments, kbps, ms) => {
                    let max_pacing_rate = lasthop_units::Rate::from_bps(kbps * 1000);
                    let (min_segments, max_segments) = (segments / 3, segments);
                    let paced = segments % 2 == 1;
                    let bound = Bound { min_segments, max_segments, max_pacing_rate, paced, ..Bound::default() };
                    end.set_bound(bound.leased(now, Span::from_millis(ms)));
                }
                Operation::Ack { share, blocks, window, old } => {
                    let out = highest - acknowledged;
                    let ack = if old { acknowledged.saturating_sub(5000).max(1) } else { acknowledged + out * share / 8 };
                    acknowledged = acknowledged.max(ack);
                    let mut sack = crate::SackBlocks::default();
                    for (start, length) in blocks {
                        let start = (ack + start * 250).saturating_sub(3000);
                        sack.push(ack, start..start + length * 250);
                    }
                    let timestamps = syn.timestamps.map(|sent| crate::Timestamps { value: 1, echo: sent.value + window % 3 });
                    end.on_segment(now, &Segment {
                        seq: 1, ack, has_ack: true, window_bytes: window, sack, timestamps, ..Segment::default()
                    });
                    prop_assert_eq!(end.sender().snd_una, acknowledged.max(ack));
                }
            }
            end.check();
            let mut left = 3000;
            while let Some(segment) = end.poll_transmit(now) {
                end.check();
                left -= 1;
                prop_assert!(left > 0, "a sender that never stops: {:?}", end.info());
                if refuse {
                    refuse = false;
                    end.on_refused(now, &segment);
                    end.check();
                } else {
                    highest = highest.max(segment.end());
                    end.on_departed(now, segment.ip_bytes());
                }
            }
            let info = end.info();
            prop_assert!(info.tcp.cwnd_segments >= 1 && info.tcp.cwnd_segments < 100_000);
            prop_assert!(info.tcp.ssthresh_segments.is_none_or(|ssthresh| (2..100_000).contains(&ssthresh)));
            prop_assert!(info.tcp.in_flight_segments <= info.unacked_segments + info.retransmitted_segments);
        }
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Write(u64),
    Endless,
    Stop,
    Wait(u64),
    ToTimeout,
    Refuse,
    Bound(u32, u64, u64),
    Ack { share: u64, blocks: Vec<(u64, u64)>, window: u32, old: bool },
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let blocks = prop::collection::vec((0..120_u64, 0..40_u64), 0..4);
    prop_oneof![
        2 => (0..100_000_u64).prop_map(Operation::Write),
        1 => Just(Operation::Endless),
        1 => Just(Operation::Stop),
        4 => (0..300_u64).prop_map(Operation::Wait),
        4 => Just(Operation::ToTimeout),
        2 => Just(Operation::Refuse),
        1 => (0..60_u32, prop_oneof![Just(0), 1..5000_u64], 0..2000_u64)
            .prop_map(|(segments, kbps, ms)| Operation::Bound(segments, kbps, ms)),
        16 => (0..9_u64, blocks, 0..80_000_u32, prop::bool::weighted(0.1))
            .prop_map(|(share, blocks, window, old)| Operation::Ack { share, blocks, window, old }),
    ]
}
