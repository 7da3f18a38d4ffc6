//! A sender alone, fed with ACKs by hand, for cases that a path can hardly produce. Segments of 1000 bytes are numbered
//! from 0; the handshake's RTT is 100 ms; times are in ms after it.

#![allow(clippy::single_range_in_vec_init)] // a list of one SACK block

use super::*;
use crate::{DelayedAck, Recovery, SackBlocks, Tsq};
use lasthop_connection::CongestionState;
use lasthop_laws::bound::Bound;
use lasthop_units::Bytes;

struct Solo {
    end: Endpoint,
    /// The receiver's window.
    receiver_bytes: u32,
}

fn stack() -> Config {
    Config {
        mss: Bytes::new(1000),
        initial_window_segments: 10,
        timestamps: false,
        delayed_ack: DelayedAck::OFF,
        slow_start: lasthop_laws::SlowStart::Standard,
        ..Config::linux_2012()
    }
}

fn without_sack(recovery: Recovery) -> Config {
    Config { sack: false, recovery, ..stack() }
}

fn modern() -> Config {
    Config { rack_tlp: true, rescue: false, fack: false, recovery: Recovery::PrrRfc9937, ..stack() }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(100 + ms)
}

impl Solo {
    /// Established at 0 with `segments` to send; the first window was sent.
    fn new(config: &Config, segments: u64) -> Self {
        Self::with(LawName::NewReno, config, segments)
    }

    fn with(law: impl Into<lasthop_laws::Choice>, config: &Config, segments: u64) -> Self {
        let mut end = Endpoint::connect(Time::ZERO, config, law);
        let syn = end.poll_transmit(Time::ZERO).expect("the SYN");
        let answer = Segment {
            syn: true,
            has_ack: true,
            ack: 1,
            window_bytes: 65_535,
            offer: syn.offer,
            timestamps: syn.timestamps,
            ..Segment::default()
        };
        end.on_segment(at(0), &answer);
        end.write(segments * 1000);
        let mut solo = Self { end, receiver_bytes: 65_535 };
        solo.poll(0);
        solo
    }

    fn poll(&mut self, ms: u64) -> Vec<u64> {
        let mut sent = Vec::new();
        while let Some(segment) = self.end.poll_transmit(at(ms)) {
            self.end.check();
            if segment.payload_bytes > 0 {
                sent.push((segment.seq - 1) / 1000);
            }
        }
        sent
    }

    /// An ACK of everything below `number`, with SACK blocks of segments; sends nothing yet.
    fn hear(&mut self, ms: u64, number: u64, sacked: &[Range<u64>]) {
        let ack = number * 1000 + 1;
        let mut sack = SackBlocks::default();
        for block in sacked {
            sack.push(ack, block.start * 1000 + 1..block.end * 1000 + 1);
        }
        let window_bytes = self.receiver_bytes;
        let ack = Segment { seq: 1, ack, has_ack: true, window_bytes, sack, ..Segment::default() };
        self.end.on_segment(at(ms), &ack);
        self.end.check();
    }

    /// The same; returns the numbers of the segments sent.
    fn ack(&mut self, ms: u64, number: u64, sacked: &[Range<u64>]) -> Vec<u64> {
        self.hear(ms, number, sacked);
        self.poll(ms)
    }

    /// The next timeout must be at `ms`; returns the numbers of the segments sent.
    fn timeout(&mut self, ms: u64) -> Vec<u64> {
        assert_eq!(self.end.next_timeout(), at(ms));
        self.end.on_timeout(at(ms));
        self.poll(ms)
    }

    fn info(&self) -> crate::Info {
        self.end.info()
    }

    fn state(&self) -> CongestionState {
        self.info().tcp.state
    }
}

// Packets that overtake each other.

fn with_timestamps() -> Config {
    Config { timestamps: true, timestamp_granularity: Span::from_millis(1), ..modern() }
}

impl Solo {
    /// An ACK sent at tick `value` that echoes `echo`; returns the numbers of the segments sent.
    fn stamped(&mut self, ms: u64, (value, echo): (u32, u32), number: u64, sacked: &[Range<u64>]) -> Vec<u64> {
        // Beside timestamps a segment has 12 bytes fewer.
        let seq = |number: u64| number * 988 + 1;
        let ack = seq(number);
        let mut sack = SackBlocks::default();
        for block in sacked {
            sack.push(ack, seq(block.start)..seq(block.end));
        }
        let timestamps = Some(crate::Timestamps { value, echo });
        let window_bytes = self.receiver_bytes;
        let ack = Segment { seq: 1, ack, has_ack: true, window_bytes, sack, timestamps, ..Segment::default() };
        self.end.on_segment(at(ms), &ack);
        let mut sent = Vec::new();
        while let Some(segment) = self.end.poll_transmit(at(ms)) {
            self.end.check();
            if segment.payload_bytes > 0 {
                sent.push((segment.seq - 1) / 988);
            }
        }
        sent
    }

    fn sacked(&self) -> u32 {
        self.info().sacked_segments
    }
}

/// Linux's tcp_disordered_ack(): of ACKs that were overtaken only those count that repeat the newest.
#[test]
fn an_ack_that_was_overtaken_counts_only_as_a_duplicate() {
    let mut solo = Solo::new(&with_timestamps(), 100);
    solo.stamped(100, (200, 101), 2, &[]);
    assert_eq!(solo.info().unacked_segments, 12);
    // Sent before that one: below it, and its SACK is not taken. A tick is no age.
    solo.stamped(101, (190, 101), 1, &[4..5]);
    assert_eq!(solo.sacked(), 0);
    solo.stamped(102, (199, 101), 1, &[5..6]);
    assert_eq!(solo.sacked(), 1);
    solo.stamped(103, (190, 101), 2, &[4..6]);
    assert_eq!(solo.sacked(), 2);
}

/// tcp_may_raise_cwnd(): once segments are overtaken by more than three, SACKed ones let the window grow, too. Slow
/// start: one for each.
#[test]
fn with_much_reordering_sacked_segments_let_the_window_grow() {
    let mut solo = Solo::new(&modern(), 100);
    let window = |solo: &Solo| solo.info().tcp.cwnd_segments;
    solo.ack(100, 0, &[4..5]);
    assert_eq!(window(&solo), 10);
    // 0 comes after 4, which is five segments further at its end.
    solo.ack(101, 1, &[4..5]);
    assert_eq!(window(&solo), 11);
    solo.ack(102, 1, &[4..6]);
    assert_eq!((window(&solo), solo.state()), (12, CongestionState::Disorder));
}

// Timeouts.

/// RFC 6298 §5.7, Karn: the ACK of a retransmission is no sample, and the timeout stays doubled until the first sample.
#[test]
fn backoff_stays_until_there_is_a_sample() {
    let mut solo = Solo::new(&Config { f_rto: false, ..stack() }, 1);
    assert_eq!(solo.timeout(300), [0]);
    solo.ack(400, 1, &[]);
    assert_eq!(solo.info().rto, Span::from_millis(600));
    solo.end.write(1000);
    assert_eq!(solo.poll(400), [1]);
    solo.ack(500, 2, &[]);
    // RTTVAR: 3/4 of 50 ms, but Linux's floor is 200 ms.
    assert_eq!(solo.info().rto, Span::from_millis(300));
}

/// RFC 5681 §3.1: "when a TCP sender detects segment loss using the retransmission timer and the given segment has not
/// yet been resent", ssthresh is reduced. For the same segment again it is not.
#[test]
fn another_timeout_reduces_ssthresh_only_after_progress() {
    let config = Config { f_rto: false, ..stack() };
    let mut solo = Solo::new(&config, 100);
    solo.timeout(300);
    solo.timeout(900);
    assert_eq!(solo.info().tcp.ssthresh_segments, Some(5));
    // With progress; by then the window is 2, the least ssthresh.
    assert_eq!(solo.ack(1000, 1, &[]), [1, 2]);
    assert_eq!(solo.timeout(1000 + 1200), [1]);
    assert_eq!(solo.info().tcp.ssthresh_segments, Some(2));
}

/// RFC 5681 §3.1: a timeout in a recovery also reduces ssthresh, unless the loss before did. CHD tolerates a loss with
/// an empty queue. NewReno has halved its window, which is not halved twice (Linux).
#[test]
fn a_timeout_in_a_recovery_reduces_what_the_law_had_tolerated() {
    for (law, in_recovery, after) in [(LawName::Chd, 12, 6), (LawName::NewReno, 6, 6)] {
        let mut solo = Solo::with(law, &Config { fack: false, timestamps: false, ..stack() }, 100);
        // Two samples of 100 ms: a window of 12, and no queue.
        solo.ack(100, 1, &[]);
        solo.ack(100, 2, &[]);
        for number in [4, 5, 6] {
            solo.ack(100, 2, &[3..number]);
        }
        assert_eq!(
            (solo.state(), solo.info().tcp.ssthresh_segments),
            (CongestionState::Recovery, Some(in_recovery)),
            "{law}"
        );
        let next = solo.end.next_timeout();
        solo.end.on_timeout(next);
        assert_eq!((solo.state(), solo.info().tcp.ssthresh_segments), (CongestionState::Loss, Some(after)), "{law}");
    }
}

/// RFC 5682 §2.1: no F-RTO for a timeout in the middle of a recovery.
#[test]
fn a_timeout_in_a_recovery_is_taken_for_what_it_is() {
    let mut solo = Solo::new(&Config { fack: false, ..stack() }, 100);
    for number in [2, 3, 4] {
        solo.ack(100, 0, &[1..number]);
    }
    assert_eq!(solo.state(), CongestionState::Recovery);
    assert_eq!(solo.timeout(400), [0]);
    assert_eq!(solo.state(), CongestionState::Loss);
    // F-RTO would send new data.
    assert_eq!(solo.ack(500, 4, &[])[0], 4);
}

/// RFC 5682 §2.1 (3a): once the new segments are reported beside a hole, no later arrival makes the timeout spurious.
#[test]
fn after_a_duplicate_f_rto_is_over() {
    let mut solo = Solo::new(&Config { undo: false, ..stack() }, 100);
    assert_eq!(solo.timeout(300), [0]);
    assert_eq!(solo.ack(400, 1, &[]), [10, 11]);
    assert_eq!(solo.ack(500, 1, &[10..11])[0], 1);
    // 5 arrives late.
    solo.hear(510, 1, &[5..6, 10..11]);
    assert_eq!((solo.state(), solo.info().spurious_undone), (CongestionState::Loss, 0));
}

/// The same ACK a moment earlier proves a spurious timeout.
#[test]
fn before_a_duplicate_f_rto_believes_an_original() {
    let mut solo = Solo::new(&Config { undo: false, fack: false, ..stack() }, 100);
    solo.timeout(300);
    solo.ack(400, 1, &[]);
    solo.hear(510, 1, &[5..6]);
    assert_eq!((solo.info().spurious_undone, solo.info().tcp.cwnd_segments), (1, 10));
}

/// RFC 5682 §2.1 (2b) needs new data. Without any, the usual recovery goes on at once.
#[test]
fn f_rto_without_new_data_goes_on_at_once() {
    let mut solo = Solo::new(&Config { undo: false, ..stack() }, 10);
    assert_eq!(solo.timeout(300), [0]);
    solo.hear(400, 1, &[]);
    let first = solo.end.poll_transmit(at(400)).map(|segment| segment.seq);
    assert_eq!(first, Some(1001));
}

/// RFC 8985 §6.3: a timeout does not concern segments sent less than a round trip ago.
///
/// ```text
/// ms      0        100      302          490 (written then)    602
/// client  0..3              probe: 3     4 5                   timeout: all are older than RACK.rtt of 100
///                                        6                     but not 6, which is written at 590
/// ACKs             1
/// ```
#[test]
fn a_timeout_does_not_take_recent_segments_for_lost() {
    let mut solo = Solo::new(&Config { f_rto: false, ..modern() }, 4);
    solo.ack(100, 1, &[]);
    assert_eq!(solo.timeout(302), [3]);
    solo.end.write(2000);
    assert_eq!(solo.poll(490), [4, 5]); // 112 ms before: less than RACK.rtt and its window
    solo.end.set_bound(Bound { min_segments: 7, ..Bound::default() }.leased(at(590), Span::from_secs(1)));
    solo.end.write(1000);
    assert_eq!(solo.poll(590), [6]);
    assert_eq!(solo.timeout(602), [1]);
    assert_eq!((solo.state(), solo.info().lost_segments), (CongestionState::Loss, 5));
}

/// As in Linux with RACK, what was sent before the first segment was sent again, and is SACKed, lets the timer begin anew:
/// tcp_clean_rtx_queue().
#[test]
fn what_was_sent_before_the_retransmission_puts_its_timeout_off() {
    for (config, at_ms) in [(modern(), None), (Config { fack: false, ..stack() }, Some(400))] {
        let mut solo = Solo::new(&Config { f_rto: false, ..config }, 100);
        for after in 2..6 {
            solo.ack(100, 0, &[1..after]);
        }
        solo.ack(180, 0, &[1..7]);
        assert!(at_ms.is_none_or(|ms| solo.end.next_timeout() == at(ms)));
        assert!(at_ms.is_some() || solo.end.next_timeout() > at(400));
    }
}

/// Linux's TCP_RESOURCE_PROBE_INTERVAL: a refused retransmission is tried again half a second later.
#[test]
fn a_refused_retransmission_is_tried_again_after_half_a_second() {
    let mut solo = Solo::new(&stack(), 100);
    assert_eq!(solo.end.next_timeout(), at(300));
    solo.end.on_timeout(at(300));
    let refused = solo.end.poll_transmit(at(300)).expect("the retransmission");
    solo.end.on_refused(at(300), &refused);
    assert_eq!(solo.poll(300), []);
    assert_eq!(solo.info().tcp.retransmits, 0);
    assert_eq!(solo.timeout(800), [0]);
}

// What an ACK measures.

/// RTT: SRTT by the oldest segment, the lowest RTT by the newest; a SACK is a sample, too.
#[test]
fn an_ack_measures_the_oldest_and_the_newest() {
    let mut solo = Solo::new(&stack(), 1);
    solo.end.write(1000);
    assert_eq!(solo.poll(60), [1]);
    solo.ack(130, 2, &[]);
    assert_eq!(
        (solo.info().latest_rtt, solo.info().tcp.min_rtt),
        (Some(Span::from_millis(130)), Some(Span::from_millis(70)))
    );
    let mut solo = Solo::new(&stack(), 10);
    solo.ack(180, 0, &[1..2]);
    assert_eq!(solo.info().latest_rtt, Some(Span::from_millis(180)));
}

/// RFC 6937 §2: without SACK duplicates count as deliveries, and only once.
#[test]
fn each_segment_is_delivered_once_without_sack_as_well() {
    for recovery in [Recovery::NewReno, Recovery::Prr] {
        let mut solo = Solo::new(&without_sack(recovery), 10);
        for duplicate in 1..=9 {
            solo.ack(100, 0, &[]);
            assert_eq!(solo.info().delivered_segments, duplicate, "{recovery:?}");
        }
        solo.ack(200, 10, &[]);
        assert_eq!(solo.info().delivered_segments, 10, "{recovery:?}");
    }
}

#[test]
fn a_rate_says_whether_the_application_held_it_down() {
    let mut solo = Solo::new(&stack(), 3);
    solo.ack(100, 3, &[]);
    solo.end.write(1000);
    solo.poll(100);
    solo.ack(200, 4, &[]);
    // The first three were sent before the application ran out of data. The last one is a slower sample and does not
    // count.
    assert_eq!((solo.info().app_limited, solo.info().delivery_rate.as_bps()), (false, 240_000));
    solo.end.write(4000);
    solo.poll(200);
    solo.ack(300, 8, &[]);
    assert_eq!((solo.info().app_limited, solo.info().delivery_rate.as_bps()), (true, 320_000));
}

#[test]
fn who_has_packets_in_the_host_is_not_held_down_by_the_application() {
    let mut solo = Solo::new(&Config { tsq: Some(Tsq::LINUX), ..stack() }, 3);
    assert!(!solo.end.sender().rate.is_app_limited());
    solo.end.on_departed(at(1), Bytes::new(2 * 1040));
    solo.poll(1);
    assert!(!solo.end.sender().rate.is_app_limited());
    // With what the handshake was.
    solo.end.on_departed(at(2), Bytes::new(2 * 1040));
    solo.poll(2);
    assert!(solo.end.sender().rate.is_app_limited());
}

/// Linux's tcp_cwnd_validate(): a round trip with an unused window counts with the largest flight in it.
#[test]
fn the_most_that_was_out_counts() {
    let mut solo = Solo::new(&stack(), 3);
    assert_eq!(solo.end.sender().most_out, 3);
    solo.end.write(4000);
    solo.poll(10);
    assert_eq!(solo.end.sender().most_out, 7);
    // More than half of the window: slow start may go on.
    solo.ack(100, 7, &[]);
    assert_eq!(solo.info().tcp.cwnd_segments, 17);
}

/// RFC 2861: ssthresh remembers at least three quarters of the window reached.
#[test]
fn idleness_remembers_the_window() {
    let mut solo = Solo::new(&stack(), 10);
    solo.ack(100, 10, &[]);
    let window = &mut solo.end.sender().window;
    (window.cwnd_segments, window.ssthresh_segments) = (40, 5);
    solo.end.write(1000);
    solo.poll(2000);
    assert_eq!((solo.info().tcp.cwnd_segments, solo.info().tcp.ssthresh_segments), (10, Some(30)));
}

/// The rest of a segment is still in the application, which waits for room: no small segment is sent.
#[test]
fn a_full_send_buffer_cuts_no_segment() {
    let config = Config { nagle: false, send_buffer: Bytes::new(3500), send_buffer_overhead: Bytes::ZERO, ..stack() };
    let mut solo = Solo::new(&config, 0);
    solo.end.write(300);
    assert_eq!(solo.poll(0), [0]);
    solo.end.write_endless();
    let sizes: Vec<u32> = std::iter::from_fn(|| solo.end.poll_transmit(at(0))).map(|s| s.payload_bytes).collect();
    assert_eq!(sizes, [1000, 1000]); // 3000 bytes fit: 300, 1000, 1000, and a waiting 700
}

// Recovery.

/// RFC 6937 §3.1: rate halving ends with the small window to which many losses have reduced it.
#[test]
fn rate_halving_does_not_raise_the_window_at_its_end() {
    for (recovery, window) in [(Recovery::RateHalving, 2), (Recovery::Prr, 10)] {
        let config = Config { recovery, fack: false, rescue: false, initial_window_segments: 20, ..stack() };
        let mut solo = Solo::new(&config, 22);
        // 0 to 14 are lost.
        for after in 16..21 {
            solo.ack(100, 0, &[15..after]);
        }
        assert_eq!((solo.state(), solo.info().tcp.ssthresh_segments), (CongestionState::Recovery, Some(10)));
        // The retransmissions arrive; the last ACK delivers one segment.
        solo.ack(200, 0, &[15..22]);
        solo.ack(200, 14, &[15..22]);
        solo.ack(210, 22, &[]);
        assert_eq!((solo.state(), solo.info().tcp.cwnd_segments), (CongestionState::Open, window), "{recovery:?}");
    }
}

/// RFC 6582 §3.2 (3): min(ssthresh, max(FlightSize, SMSS) + SMSS).
#[test]
fn newreno_ends_without_a_burst() {
    let mut solo = Solo::new(&without_sack(Recovery::NewReno), 10);
    for _ in 0..3 {
        solo.ack(100, 0, &[]);
    }
    assert_eq!(solo.info().tcp.cwnd_segments, 8); // 5 + 3
    solo.ack(200, 10, &[]);
    assert_eq!((solo.state(), solo.info().tcp.cwnd_segments), (CongestionState::Open, 2)); // with an empty flight
}

/// RFC 6582 §3.2 (2): duplicates of the recovery point may come from retransmissions; one beyond it shows a loss.
#[test]
fn without_sack_a_new_recovery_needs_an_ack_beyond_the_last_one() {
    for recovery in [Recovery::NewReno, Recovery::Prr] {
        let mut solo = Solo::new(&without_sack(recovery), 100);
        for _ in 0..3 {
            solo.ack(100, 0, &[]);
        }
        let point = solo.end.sender().recovery_point / 1000;
        solo.ack(200, point, &[]);
        for _ in 0..4 {
            solo.ack(210, point, &[]);
        }
        assert_eq!((solo.info().tcp.retransmits, solo.state()), (1, CongestionState::Disorder), "{recovery:?}");
        solo.ack(300, point + 1, &[]);
        for _ in 0..3 {
            solo.ack(310, point + 1, &[]);
        }
        assert_eq!((solo.info().tcp.retransmits, solo.state()), (2, CongestionState::Recovery), "{recovery:?}");
    }
}

/// Linux's tcp_mark_lost_retrans(): one SACK beyond the data sent by then is proof, but none is where an original was
/// overtaken by more than three segments: forward acknowledgement is off.
#[test]
fn after_much_reordering_sacks_prove_no_retransmission_lost() {
    for (early, proof) in [(2, Some(1)), (6, None)] {
        let mut solo = Solo::new(&stack(), 100);
        solo.ack(90, 0, &[early..early + 1]);
        solo.ack(91, 0, &[1..2, early..early + 1]);
        assert!(solo.end.sender().reordering.seen);
        solo.ack(100, 0, &[1..9]);
        assert_eq!(solo.info().tcp.retransmits, 1);
        let sent = |solo: &mut Solo| solo.end.sender().snd_nxt / 1000;
        let (retransmission, _) = solo.end.sender().board.oldest_retransmission().expect("0 is in flight again");
        let mut sacked = 9;
        while solo.info().tcp.retransmits == 1 && sacked < sent(&mut solo) {
            sacked += 1;
            solo.ack(200, 0, &[1..sacked]);
        }
        let beyond = (solo.info().tcp.retransmits > 1).then_some(sacked - retransmission.snd_nxt / 1000);
        assert_eq!(beyond, proof, "{early}");
    }
}

/// An ACK of all, before anything was sent again, proves that nothing was lost: Linux's tcp_packet_delayed().
#[test]
fn a_recovery_without_a_retransmission_is_needless() {
    let mut solo = Solo::new(&Config { fack: false, ..stack() }, 10);
    for number in [2, 3, 4] {
        solo.hear(100, 0, &[1..number]);
    }
    solo.hear(110, 10, &[]);
    assert_eq!(
        (solo.state(), solo.info().spurious_undone, solo.info().tcp.ssthresh_segments),
        (CongestionState::Open, 1, None)
    );
}

/// RFC 6675 §5 (2): three duplicates suffice, however little they cover.
#[test]
fn three_small_duplicates_are_enough() {
    let mut solo = Solo::new(&Config { nagle: false, fack: false, ..stack() }, 0);
    for _ in 0..4 {
        solo.end.write(100);
        solo.poll(0);
    }
    let mut sent = Vec::new();
    for after in 2..5 {
        let mut sack = SackBlocks::default();
        sack.push(1, 101..after * 100 + 1);
        let ack = Segment { seq: 1, ack: 1, has_ack: true, window_bytes: 65_535, sack, ..Segment::default() };
        solo.end.on_segment(at(100), &ack);
        sent.push(solo.end.poll_transmit(at(100)).map(|segment| segment.seq));
    }
    assert_eq!(sent, [None, None, Some(1)]);
}

/// RFC 6675 §4 NextSeg (4): "HighRxt MUST NOT be updated": segments below the rescue may still be retransmitted.
#[test]
fn a_rescue_does_not_hide_what_lies_below_it() {
    let mut solo = Solo::new(&Config { fack: false, ..stack() }, 10);
    for after in 2..8 {
        solo.ack(100, 0, &[1..after]);
    }
    assert_eq!(solo.info().tcp.retransmits, 1);
    // 7, 8, 9 are in flight without any report: the highest is retransmitted.
    assert_eq!(solo.ack(200, 7, &[]), [9]);
    // 8 arrives. 7 is not proven lost, but there is nothing else to send (rule 3).
    assert_eq!(solo.ack(210, 7, &[8..9]), [7]);
}

/// A recovery in CWR did not reduce the window, so there is nothing to undo.
#[test]
fn a_needless_recovery_in_cwr_gives_nothing_back() {
    let mut solo = Solo::new(&Config { fack: false, ..stack() }, 100);
    solo.hear(100, 1, &[]);
    let refused = solo.end.poll_transmit(at(100)).expect("the window is open");
    solo.end.on_refused(at(100), &refused);
    assert_eq!(solo.info().tcp.ssthresh_segments, Some(4)); // FlightSize 9
    for after in 3..6 {
        solo.ack(110, 1, &[2..after]);
    }
    assert_eq!((solo.state(), solo.info().tcp.retransmits), (CongestionState::Recovery, 1));
    // The retransmission was a duplicate.
    solo.ack(200, 10, &[1..2]);
    assert_eq!((solo.info().spurious_undone, solo.info().tcp.ssthresh_segments), (0, Some(4)));
}

/// Linux's tcp_enter_cwr(): earlier reductions can no longer be undone.
#[test]
fn a_full_host_queue_forgets_the_recovery_before_it() {
    let mut solo = Solo::new(&Config { fack: false, ..stack() }, 12);
    for number in [2, 3, 4] {
        solo.ack(100, 0, &[1..number]);
    }
    solo.ack(200, 12, &[]);
    assert_eq!((solo.state(), solo.info().tcp.ssthresh_segments), (CongestionState::Open, Some(5)));
    solo.end.write(10_000);
    let refused = solo.end.poll_transmit(at(210)).expect("the window is open");
    solo.end.on_refused(at(210), &refused);
    assert_eq!(solo.state(), CongestionState::Cwr);
    let retry = solo.end.next_timeout();
    solo.end.on_timeout(retry);
    assert!(solo.end.poll_transmit(retry).is_some());
    solo.hear(900, 13, &[]);
    assert_eq!(solo.state(), CongestionState::Open);
    // The D-SACK of the retransmission arrives now.
    solo.hear(910, 13, &[0..1]);
    assert_eq!(solo.info().spurious_undone, 0);
}

/// A full host queue is no radio error: a law that would tolerate a loss is not asked, as in the kernel.
#[test]
fn no_law_tolerates_a_full_host_queue() {
    let mut lossy = Solo::with(LawName::Chd, &Config { fack: false, ..stack() }, 100);
    for after in 2..5 {
        lossy.ack(100, 0, &[1..after]);
    }
    assert_eq!((lossy.state(), lossy.info().tcp.ssthresh_segments), (CongestionState::Recovery, Some(10)));
    let mut full = Solo::with(LawName::Chd, &stack(), 100);
    full.hear(100, 1, &[]);
    let refused = full.end.poll_transmit(at(100)).expect("the window is open");
    full.end.on_refused(at(100), &refused);
    assert_eq!((full.state(), full.info().tcp.ssthresh_segments), (CongestionState::Cwr, Some(4))); // FlightSize 9
}

/// At a loss CHD's window becomes half its shadow window if that is larger, but at most the receiver's window.
#[test]
fn a_loss_raises_no_window_above_the_receivers() {
    use lasthop_laws::{Choice, Parameters};
    let mut parameters = Parameters::of(LawName::Chd);
    parameters.set(LawName::Chd, "max_probability", 1.0).expect("a parameter of it");
    let chd = Choice { parameters, ..Choice::from(LawName::Chd) };
    // The receiver's window at the loss, and ssthresh then; half the shadow window is more than 65.
    for (receiver, expected) in [(65, 65), (50, 50), (20, 38)] {
        let mut solo = Solo::with(chd, &Config { fack: false, ..stack() }, 1000);
        let (mut now, mut acked) = (0, 0);
        // Slow start; an outlier, at which no law backs off; after it twice a queue just above the threshold, at which
        // the law backs off almost certainly; and the outlier again.
        for rtt in [100, 100, 100, 10_000, 130, 130, 10_000] {
            now += rtt;
            acked += u64::from(solo.info().unacked_segments);
            solo.receiver_bytes = if now > 20_000 { receiver * 1000 } else { 65_535 };
            solo.ack(now, acked, &[]);
        }
        let window = solo.info().tcp.cwnd_segments;
        for after in 2..5 {
            solo.ack(now + 10_000, acked, &[acked + 1..acked + after]);
        }
        assert_eq!(solo.state(), CongestionState::Recovery);
        assert_eq!((window, solo.info().tcp.ssthresh_segments), (38, Some(expected)), "the receiver takes {receiver}");
    }
}

/// Linux: CWR ends with an ACK beyond the data in flight at its beginning, not with their own.
#[test]
fn cwr_ends_beyond_its_point() {
    let mut solo = Solo::new(&stack(), 100);
    solo.hear(100, 1, &[]);
    let refused = solo.end.poll_transmit(at(100)).expect("the window is open");
    solo.end.on_refused(at(100), &refused);
    solo.ack(190, 9, &[]);
    solo.ack(200, 10, &[]);
    assert_eq!(solo.state(), CongestionState::Cwr);
    solo.ack(300, 11, &[]);
    assert_eq!((solo.state(), solo.info().tcp.cwnd_segments), (CongestionState::Open, 4)); // FlightSize 9
}

// RACK.

/// RFC 8985 §6.2, step 2: an ACK that arrives too soon after a retransmission is that of the original.
#[test]
fn rack_does_not_believe_a_retransmission_that_returns_too_soon() {
    let mut solo = Solo::new(&modern(), 100);
    solo.ack(100, 0, &[1..4]);
    assert_eq!(solo.info().tcp.retransmits, 1);
    let before = solo.end.sender().rack_deadline();
    solo.ack(130, 4, &[]); // 30 ms after the retransmission
    assert_eq!(solo.end.sender().rack_deadline(), before);
}

/// RFC 8985 §6.2: the window is a quarter of the lowest RTT, one more for each round trip with a D-SACK, at most SRTT.
#[test]
fn racks_patience_grows_by_quarters_up_to_a_round_trip() {
    let mut solo = Solo::new(&modern(), 100);
    solo.ack(100, 1, &[2..3]);
    solo.ack(100, 2, &[2..3]);
    let sender = solo.end.sender();
    assert!(sender.reordering.seen); // 1 came after 2
    let patience = |sender: &crate::sender::Sender| sender.rack_deadline() - Span::from_millis(100);
    assert_eq!(patience(sender), Span::from_millis(25));
    let mut reported = |prior: u32, delivered: u32| {
        sender.rack.on_d_sack();
        sender.rack.update_window(prior, delivered);
    };
    reported(0, 5);
    reported(4, 6); // still the same round trip
    assert_eq!(patience(sender), Span::from_millis(50));
    for round in 1..10 {
        sender.rack.on_d_sack();
        sender.rack.update_window(round * 10, round * 10 + 5);
    }
    assert_eq!(patience(sender), Span::from_millis(100));
    for _ in 0..15 {
        sender.rack.on_recovery_ended();
    }
    assert_eq!(patience(sender), Span::from_millis(100));
    sender.rack.on_undone_by_d_sack(); // as in Linux: a recovery that was needless makes it last for one more
    sender.rack.on_recovery_ended();
    assert_eq!(patience(sender), Span::from_millis(100));
    sender.rack.on_recovery_ended();
    assert_eq!(patience(sender), Span::from_millis(25));
}

/// RFC 8985 §6.2, step 2: RACK.rtt is the round trip of whatever was delivered last, though others were sent after it.
#[test]
fn what_comes_late_makes_rack_wait_longer_for_all() {
    let mut solo = Solo::new(&modern(), 100);
    solo.ack(100, 0, &[1..2]);
    assert_eq!(solo.end.sender().rack_deadline(), Span::from_millis(125));
    solo.ack(120, 2, &[]); // 0 took 120 ms
    assert_eq!(solo.end.sender().rack_deadline(), Span::from_millis(145));
}

/// Linux's tcp_check_sack_reordering(): with an original six segments below the highest SACKed byte, 6 prove a loss, not 3; and 3
/// again after a timeout though as many had been SACKed.
#[test]
fn segments_that_overtake_others_raise_the_number_of_duplicates_that_prove_a_loss() {
    let mut solo = Solo::new(&Config { fack: false, ..stack() }, 100);
    solo.ack(90, 0, &[5..6]);
    solo.ack(91, 6, &[]);
    assert_eq!(solo.end.sender().reordering.segments, 6);
    for sacked in 8..13 {
        solo.ack(100, 6, &[7..sacked]);
        assert_eq!(solo.info().tcp.retransmits, 0, "{sacked}");
    }
    solo.ack(100, 6, &[7..13]);
    assert_eq!(solo.info().tcp.retransmits, 1);
    solo.end.sender().reordering.on_timeout(2);
    assert_eq!(solo.end.sender().reordering.segments, 6);
    solo.end.sender().reordering.on_timeout(3);
    assert_eq!(solo.end.sender().reordering.segments, 3);
}

/// Linux compares with the highest SACK before the ACK, so one that advances and SACKs at once shows no reordering. And before
/// there is any, a D-SACK does not widen RACK's window: tcp_dsack_seen().
#[test]
fn only_what_an_earlier_ack_has_passed_was_overtaken() {
    let mut solo = Solo::new(&modern(), 100);
    solo.ack(100, 2, &[4..6]);
    assert_eq!(solo.timeout(127), [2]);
    solo.ack(227, 3, &[2..3, 4..6]);
    let sender = solo.end.sender();
    assert!(!sender.reordering.seen);
    sender.reordering.seen = true;
    assert_eq!(sender.reordering_window(), Span::from_millis(25));
}

/// RFC 8985 §6.2: one SACK is no proof yet. A quarter of the round trip later it is (and 2 ms, as in Linux), and only that
/// segment is retransmitted.
#[test]
fn what_was_overtaken_is_lost_a_quarter_of_a_round_trip_later() {
    let mut solo = Solo::new(&modern(), 100);
    assert_eq!(solo.ack(100, 0, &[1..2]), [10]);
    assert_eq!(solo.timeout(127), [0]);
    assert_eq!((solo.state(), solo.info().tcp.ssthresh_segments), (CongestionState::Recovery, Some(5)));
}

/// RFC 8985 §7.2: a probe does not delay the timeout. It counts from the first segment, whatever is sent later.
#[test]
fn new_data_put_no_timeout_off() {
    let mut solo = Solo::new(&modern(), 3);
    assert_eq!(solo.end.next_timeout(), at(202));
    solo.end.write(3000);
    assert_eq!(solo.poll(150), [3, 4, 5]);
    assert_eq!(solo.end.next_timeout(), at(300)); // not 150 + 202
}

/// Linux's tcp_send_loss_probe(): the last segment, sent again, is in flight once. Its duplicate alone ends the episode.
#[test]
fn a_probe_that_sends_the_last_segment_again_adds_nothing_to_the_flight() {
    let mut solo = Solo::new(&modern(), 3);
    assert_eq!(solo.timeout(202), [2]);
    assert_eq!((solo.info().tcp.in_flight_segments, solo.info().tcp.retransmits), (3, 1));
    solo.ack(302, 3, &[2..3]);
    assert_eq!((solo.info().tcp.ssthresh_segments, solo.end.sender().probe.is_none()), (None, true));
}

/// tcp_init_undo(): the duplicate of a probe takes no reduction back that was needed.
#[test]
fn a_probes_duplicate_proves_no_other_retransmission_needless() {
    let mut solo = Solo::new(&modern(), 10);
    assert_eq!(solo.timeout(202), [9]);
    solo.ack(210, 7, &[8..9]);
    let due = solo.end.next_timeout();
    solo.end.on_timeout(due);
    assert_eq!(solo.poll(240), [7]);
    solo.ack(250, 7, &[9..10, 8..10]); // the original of 9 and the probe have arrived
    assert_eq!((solo.state(), solo.info().spurious_undone), (CongestionState::Recovery, 0));
    solo.ack(340, 10, &[]);
    assert_eq!((solo.info().spurious_undone, solo.info().tcp.ssthresh_segments.is_some()), (0, true));
}

/// A probe that the host refused was not sent.
#[test]
fn a_refused_probe_is_no_retransmission() {
    let mut solo = Solo::new(&modern(), 3);
    assert_eq!(solo.timeout(202), [2]);
    let probe = Segment { seq: 2001, payload_bytes: 1000, has_ack: true, ..Segment::default() };
    solo.end.on_refused(at(202), &probe);
    assert_eq!((solo.info().tcp.retransmits, solo.end.sender().probe.is_none()), (0, true));
    assert_eq!(solo.info().tcp.in_flight_segments, 3);
}

/// RFC 9293 §3.10.7.4, as Linux reads it: of a segment wholly before the last ACK neither ACK nor window nor blocks count.
#[test]
fn an_old_segment_is_answered_and_nothing_of_it_counts() {
    let mut solo = Solo::new(&stack(), 20);
    let data =
        Segment { seq: 1, payload_bytes: 1000, has_ack: true, ack: 1, window_bytes: 65_535, ..Segment::default() };
    for seq in [1, 1001] {
        solo.end.on_segment(at(10), &Segment { seq, ..data.clone() });
        solo.poll(10);
    }
    solo.end.on_segment(at(20), &Segment { ack: 5001, window_bytes: 1000, ..data.clone() });
    assert_eq!((solo.end.sender().snd_una, solo.end.sender().snd_wnd), (1, 65_535));
    let answer = solo.end.poll_transmit(at(20)).expect("an ACK");
    assert_eq!((answer.ack, answer.sack.iter(answer.ack).collect::<Vec<_>>()), (2001, Vec::from([1..1001])));
}

/// Linux's tcp_rack_reo_timeout(): the timer waits for the last of several to be lost.
#[test]
fn the_reordering_timer_waits_for_the_last() {
    let mut solo = Solo::new(&modern(), 100);
    assert_eq!(solo.ack(90, 2, &[]), [10, 11, 12, 13]);
    assert_eq!(solo.ack(100, 2, &[9..10]).len(), 1);
    solo.ack(180, 2, &[9..10, 12..13]); // 3 to 8 were sent 180 ms ago, 10 and 11 90 ms
    let at = solo.end.next_timeout();
    solo.end.on_timeout(at);
    assert!(solo.end.sender().timer.kind != crate::sender::TimerKind::Reordering);
    assert_eq!(solo.info().lost_segments, 9);
}

/// RFC 8985 §7.3: after a probe comes the timeout, not another probe.
#[test]
fn one_probe_at_a_time() {
    let mut solo = Solo::new(&Config { initial_window_segments: 4, ..modern() }, 100);
    assert_eq!(solo.timeout(202), [4]);
    assert_eq!(solo.timeout(502), [0]);
    assert_eq!(solo.info().tcp.timeouts.unwrap(), 1);
}

// Bounds.

/// An upper bound below the flight does not delay the fast retransmission; nothing else is sent.
#[test]
fn under_a_bound_the_fast_retransmission_may_go() {
    for recovery in [Recovery::Prr, Recovery::PrrRfc9937] {
        let mut solo = Solo::new(&Config { recovery, fack: false, ..stack() }, 100);
        solo.end.set_bound(Bound::at_most(4).leased(at(0), Span::from_secs(10)));
        assert_eq!(solo.ack(100, 0, &[1..2]), []);
        assert_eq!(solo.ack(100, 0, &[1..3]), []);
        assert_eq!(solo.ack(100, 0, &[1..4]), [0], "{recovery:?}");
        assert_eq!(solo.ack(100, 0, &[1..5]), []);
    }
}

/// A lower bound does not hold after a timeout, until the recovery ends.
#[test]
fn a_lower_bound_does_not_hold_in_timeout_recovery() {
    let mut solo = Solo::new(&Config { f_rto: false, ..stack() }, 100);
    solo.end
        .set_bound(Bound { min_segments: 8, max_segments: 0, ..Bound::default() }.leased(at(0), Span::from_secs(10)));
    assert_eq!(solo.timeout(300), [0]);
    assert_eq!(solo.info().tcp.cwnd_segments, 1);
    solo.ack(400, 10, &[]);
    assert_eq!((solo.state(), solo.info().tcp.cwnd_segments), (CongestionState::Open, 8));
}

// Small queues.

/// 2^-10 s at the pacing rate of 2 x 10 segments in 100 ms is 0.2 segments. So the minimum of two packets holds, of two
/// segments each (tcp_min_tso_segs), and a segment more exceeds it. With an empty flight nothing waits.
#[test]
fn small_queues_allow_two_packets_of_two_segments_whatever_the_rate() {
    let config = Config { tsq: Some(Tsq::LINUX), ..stack() };
    let mut solo = Solo::new(&config, 100);
    assert_eq!(solo.info().unacked_segments, 4); // 4 x 1040 bytes are more than 4 x 1000
    solo.end.on_departed(at(1), Bytes::new(1040));
    assert_eq!(solo.poll(1), [4]);
}

/// tcp_write_xmit() ends in tcp_cwnd_validate() also where small queues end it: six segments of 1040 bytes are more than
/// 6000, so no more are ever out, and slow start stops growing at twice as many: 4, which was full; 4 + 4; 8 + 6.
#[test]
fn a_window_that_small_queues_leave_half_empty_does_not_grow() {
    let tsq = Some(Tsq { limit: Bytes::new(6000), pacing_shift: None });
    let mut solo = Solo::new(&Config { tsq, initial_window_segments: 4, ..stack() }, 1000);
    let mut next = 4;
    for round in 1..50 {
        let out = solo.info().unacked_segments;
        (0..out).for_each(|_| solo.end.on_departed(at(100 * round), Bytes::new(1040)));
        next += solo.ack(100 * round, next, &[]).len() as u64;
        assert!(solo.info().unacked_segments <= 6, "round {round}");
    }
    assert_eq!(solo.info().tcp.cwnd_segments, 14);
}

// Both halves.

/// A full segment has no room for SACK blocks: a pure ACK with them follows.
#[test]
fn an_ack_with_sack_blocks_follows_a_full_segment() {
    let mut solo = Solo::new(&stack(), 0);
    let data =
        Segment { seq: 1001, payload_bytes: 1000, ack: 1, has_ack: true, window_bytes: 65_535, ..Segment::default() };
    solo.end.on_segment(at(10), &data);
    solo.end.write(1000);
    let sent: Vec<(u32, usize)> =
        std::iter::from_fn(|| solo.end.poll_transmit(at(10))).map(|s| (s.payload_bytes, s.sack.len())).collect();
    assert_eq!(sent, [(1000, 0), (0, 1)]);
    // A small segment has room.
    solo.end.on_segment(at(20), &Segment { seq: 2001, ..data });
    solo.end.write(100);
    let sent: Vec<(u32, usize)> =
        std::iter::from_fn(|| solo.end.poll_transmit(at(20))).map(|s| (s.payload_bytes, s.sack.len())).collect();
    assert_eq!(sent, [(100, 1)]);
}
