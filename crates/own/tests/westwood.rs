//! Westwood+ held against Linux's own tcp_westwood, the worked example and the law of the tree: told what that was told, both
//! conclude the same.
//!
//! Compared is the arithmetic: bandwidth, RTTmin and ssthresh. When each sets ssthresh differs: Linux at the end of a
//! reduction, as the law of the tree, the example at its beginning.
#![allow(missing_docs)]

use lasthop_laws::{Acked, INFINITE_SSTHRESH, Law, LawName, Lost, Start, Window};
use lasthop_own::Workshop;
use lasthop_units::{Span, Time};
use std::path::Path;

const WESTWOOD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/own-law/westwood.h");
/// Recorded by westwood/record: one upload over a lossy path of 100 ms and 2 Mb/s, with a second of silence.
const TRACE: &str = include_str!("westwood/linux-6.1.txt");
/// Linux's RTTmin before its first sample: 20 s in jiffies.
const NO_RTT: u64 = 5_000;
/// Of the scratch window: so wide that ssthresh is b RTTmin, and half of it when there is no estimate.
const WIDE: u32 = 1 << 20;

/// A call of the module.
struct Call<'a> {
    what: &'a str,
    now_us: u64,
    rtt_us: u32,
    delivered_segments: u32,
    ssthresh_segments: u32,
    /// tcp_westwood_bw_rttmin() after it; `None`: it has no estimate yet.
    carried_segments: Option<u32>,
}

impl<'a> Call<'a> {
    fn of(line: &'a str) -> Self {
        let columns: Vec<&str> = line.split(' ').collect();
        let [now, what, rtt, delivered, _, ssthresh, bandwidth, rtt_min, mss] = columns[..] else { panic!("{line}") };
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let narrow = |text: &str| u32::try_from(number(text)).expect("32 bits");
        let (bandwidth, rtt_min) = (number(bandwidth), number(rtt_min));
        let carried = u32::try_from(bandwidth * rtt_min / number(mss)).expect("32 bits").max(2);
        Self {
            what,
            now_us: number(now),
            rtt_us: rtt.parse().unwrap_or(0), // -1: no sample
            delivered_segments: narrow(delivered),
            ssthresh_segments: narrow(ssthresh),
            carried_segments: (bandwidth > 0 && rtt_min < NO_RTT).then_some(carried),
        }
    }
}

#[test]
fn the_worked_example_has_linuxs_ssthresh_within_a_segment_after_each_reduction() {
    let folder = tempfile::tempdir().expect("a folder");
    held_against_linux(Workshop::new(folder.path().into(), Vec::new()).build(Path::new(WESTWOOD)).expect("a law").law);
}

#[test]
fn so_has_the_law_of_the_tree() {
    held_against_linux(LawName::Westwood);
}

/// What a timeout would leave as ssthresh now: what the path has carried.
fn carried(law: &Law, now_us: u64) -> u32 {
    let mut window = Window { cwnd_segments: WIDE, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
    law.clone().on_timed_out(&Lost { now_us, in_flight_segments: WIDE, ..Lost::default() }, &mut window);
    window.ssthresh_segments
}

fn held_against_linux(name: LawName) {
    let mut calls = TRACE.lines().filter(|line| !line.starts_with('#')).map(Call::of);
    // the ACK of the SYN, before tcp_westwood_init()
    let Call { now_us, delivered_segments: mut delivered, .. } = calls.next().expect("a call");
    let mut law = Law::new(name, Start { now: Time::ZERO + Span::from_micros(now_us), ..Start::default() });
    let (mut acks, mut apart) = (0, [0; 4]);
    let (mut reductions, mut same, mut timeouts) = (0, 0, 0);
    for Call { what, now_us, rtt_us, delivered_segments, ssthresh_segments, carried_segments } in calls {
        let mut window = Window { cwnd_segments: WIDE, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
        let lost = Lost { now_us, in_flight_segments: WIDE, ..Lost::default() };
        match what {
            "acked" => {
                let acked_segments = delivered_segments - delivered;
                delivered = delivered_segments;
                law.on_acked(&Acked { now_us, acked_segments, rtt_us, ..Acked::default() }, &mut window);
                let (Some(linux), ours) = (carried_segments, carried(&law, now_us)) else { continue };
                // Without an estimate the example halves, and the law of the tree is at the least window.
                if ours == WIDE / 2 || ours == 2 {
                    continue;
                }
                acks += 1;
                apart[ours.abs_diff(linux).min(3) as usize] += 1;
            }
            "reduced" | "timed_out" => {
                let (ours, linux) = (carried(&law, now_us), ssthresh_segments);
                if what == "timed_out" {
                    law.on_timed_out(&lost, &mut window);
                    timeouts += 1;
                }
                assert!(ours.abs_diff(linux) <= 1, "{what} at {now_us} us: {ours}, and Linux has {linux}");
                reductions += 1;
                same += u32::from(ours == linux);
            }
            other => panic!("{other}"),
        }
    }
    println!("{acks} ACKs, apart by 0, 1, 2 and more segments: {apart:?}; {reductions} reductions, {same} the same");
    // Linux counts in jiffies of 4 ms and whole bytes for each: an RTTmin of 107 ms is 27 of them, and an interval may
    // end an ACK earlier or later. Where the rate changes, that makes two segments at a few ACKs.
    let [equal, _, two, more] = apart;
    assert!(acks > 2_500 && equal * 4 > acks * 3 && two * 100 < acks && more == 0, "{apart:?}");
    assert!(timeouts == 1 && reductions > 20 && same * 5 > reductions * 4, "{same} of {reductions}");
}
