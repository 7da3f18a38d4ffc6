//! RFC 6937 §3.1 at an endpoint: 20 segments are in flight, the first or the first 15 are lost; what does each ACK
//! send?
//!
//! The figures' recovery starts from FlightSize 22, with the two segments of limited transmit ("cwnd: 20 20 11"). The
//! RFC's text and RFC 5681 §3.2 exclude them, and so do our laws: ssthresh is 10. Each figure is reproduced with
//! ssthresh = 11 as drawn; the results for ssthresh = 10 stand below.
//!
//! The row "pipe" of the PRR figures disagrees with their row "sent". At ACK 17 it says 12, which follows from the
//! sends with ssthresh = 10, while the sends at ACK 18 and 19 need 11. We trust "sent".

use super::*;
use crate::{Recovery, SackBlocks};
use lasthop_connection::CongestionState;
use lasthop_units::Bytes;

const PAYLOAD: u64 = 1000;

/// A sender with 20 segments in flight, fed by hand.
struct Figure {
    end: Endpoint,
    ssthresh: u32,
}

impl Figure {
    fn new(recovery: Recovery, ssthresh: u32) -> Self {
        let config = Config {
            mss: Bytes::new(PAYLOAD),
            initial_window_segments: 20,
            timestamps: false,
            recovery,
            fack: false,
            rescue: false,
            ..Config::linux_2012()
        };
        let mut end = Endpoint::connect(Time::ZERO, &config, LawName::NewReno);
        let syn = end.poll_transmit(Time::ZERO).expect("the SYN");
        let answer =
            Segment { syn: true, has_ack: true, ack: 1, window_bytes: 65_535, offer: syn.offer, ..Segment::default() };
        end.on_segment(ms(100), &answer);
        end.write_endless();
        let mut sent = 0;
        while end.poll_transmit(ms(100)).is_some() {
            sent += 1;
        }
        assert_eq!(sent, 20);
        Self { end, ssthresh }
    }

    /// Segment `number` arrives at the receiver, which has everything from `first` on and nothing before. Returns pipe
    /// before any transmission in answer, and the numbers of the segments sent.
    fn ack(&mut self, first: u64, number: u64) -> (u32, Vec<u64>) {
        let mut sack = SackBlocks::default();
        sack.push(1, first * PAYLOAD + 1..(number + 1) * PAYLOAD + 1);
        let ack = Segment { seq: 1, has_ack: true, ack: 1, window_bytes: 400_000, sack, ..Segment::default() };
        let now = ms(200 + number);
        let before = self.end.info().tcp.state;
        self.end.on_segment(now, &ack);
        let sender = self.end.sender();
        if before != sender.state && sender.state == CongestionState::Recovery {
            assert_eq!(sender.window.ssthresh_segments, 10);
            sender.window.ssthresh_segments = self.ssthresh;
            if sender.recovery == Recovery::Rfc6675 {
                sender.window.cwnd_segments = self.ssthresh;
            }
            if sender.in_flight() < self.ssthresh && sender.recovery != Recovery::Rfc6675 {
                // The window of this ACK was computed for 10. It is the same for 11, since the bound is below both.
                assert!(sender.window.cwnd_segments < 10);
            }
        }
        let pipe = self.end.info().tcp.in_flight_segments;
        let mut sent = Vec::new();
        while let Some(segment) = self.end.poll_transmit(now) {
            sent.push((segment.seq - 1) / PAYLOAD);
        }
        self.end.check();
        (pipe, sent)
    }
}

/// The row "sent" of the first figures: N new, R retransmission, for the ACKs 1 to 19.
fn one_loss(recovery: Recovery, ssthresh: u32) -> String {
    let mut figure = Figure::new(recovery, ssthresh);
    (1..20).map(|number| letter(&figure.ack(1, number).1)).collect()
}

/// N, R or -; several with a count.
fn letter(sent: &[u64]) -> String {
    let kind = |number: &u64| if *number >= 20 { 'N' } else { 'R' };
    match sent {
        [] => "-".to_owned(),
        [one] => kind(one).to_string(),
        [first, ..] => format!("{}{}", sent.len(), kind(first)),
    }
}

/// "pipe/sent" of the last figures, for the ACKs 15 to 19.
fn fifteen_losses(recovery: Recovery, ssthresh: u32) -> String {
    let mut figure = Figure::new(recovery, ssthresh);
    let column = |number| {
        let (pipe, sent) = figure.ack(15, number);
        format!("{pipe}/{}", letter(&sent))
    };
    (15..20).map(column).collect::<Vec<_>>().join(" ")
}

/// ```text
/// ack#   X  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19
/// cwnd:    20 20 11 11 11 11 11 11 11 11 11 11 11 11 11 11 11 11 11
/// pipe:    19 19 18 18 17 16 15 14 13 12 11 10 10 10 10 10 10 10 10
/// sent:     N  N  R                          N  N  N  N  N  N  N  N
/// ```
#[test]
fn rfc_6675_is_silent_for_half_a_window() {
    assert_eq!(one_loss(Recovery::Rfc6675, 11), "NNR--------NNNNNNNN");
    // ssthresh 10: one ACK later.
    assert_eq!(one_loss(Recovery::Rfc6675, 10), "NNR---------NNNNNNN");
    let mut figure = Figure::new(Recovery::Rfc6675, 11);
    let pipes: Vec<u32> = (1..20).map(|number| figure.ack(1, number).0).collect();
    assert_eq!(pipes, [19, 19, 18, 18, 17, 16, 15, 14, 13, 12, 11, 10, 10, 10, 10, 10, 10, 10, 10]);
}

/// ```text
/// ack#   X  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19
/// cwnd:    20 20 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 11
/// pipe:    19 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 11 10
/// sent:     N  N  R     N     N     N     N     N     N     N     N
/// ```
#[test]
fn rate_halving_sends_for_every_other_ack() {
    assert_eq!(one_loss(Recovery::RateHalving, 10), "NNR-N-N-N-N-N-N-N-N");
    let mut figure = Figure::new(Recovery::RateHalving, 10);
    let pipes: Vec<u32> = (1..20).map(|number| figure.ack(1, number).0).collect();
    assert_eq!(pipes, [19, 19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10]);
}

/// ```text
/// ack#   X  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19
/// sent:     N  N  R     N     N     N     N     N     N        N  N
/// RB:                                                          s  s
/// ```
#[test]
fn prr_spreads_the_reduction_over_the_round_trip() {
    for recovery in [Recovery::Prr, Recovery::PrrCrb] {
        assert_eq!(one_loss(recovery, 11), "NNR-N-N-N-N-N-N--NN", "{recovery:?}");
    }
    // RFC 9937 excludes from RecoverFS the two that were SACKed before. ceil(11 d / 20) for d = ACK - 2 is 1 2 2 3 3 4
    // 4 5 5 6 7 7 8 8 9 9, and at ACK 19 the pipe is ssthresh.
    assert_eq!(one_loss(Recovery::PrrRfc9937, 11), "NNRN-N-N-N-NN-N-N--");
}

/// All three send the same number of segments in total, and reach ssthresh.
#[test]
fn whichever_the_recovery_the_same_amount_is_sent() {
    for recovery in [Recovery::Rfc6675, Recovery::Prr, Recovery::PrrCrb, Recovery::PrrRfc9937] {
        let sent = one_loss(recovery, 11);
        assert_eq!(sent.chars().filter(|sent| *sent != '-').count(), 11, "{recovery:?}: {sent}");
    }
}

/// ```text
/// ack#      15 16 17 18 19
/// RFC 6675  N  N 7R  R  R    pipe 19 19  4 10 10
/// Halving   N  N  R  R  R    pipe 19 19  4  4  4
/// PRR-CRB   N  N  R  R  R    pipe 19 19  4  4  4
/// PRR-SSRB  N  N 2R 2R 2R    pipe 19 19  4  5  6
/// ```
#[test]
fn fifteen_losses_are_repaired_in_a_burst_or_one_or_two_at_a_time() {
    assert_eq!(fifteen_losses(Recovery::Rfc6675, 11), "19/N 19/N 4/7R 10/R 10/R");
    assert_eq!(fifteen_losses(Recovery::RateHalving, 10), "19/N 19/N 4/R 4/R 4/R");
    assert_eq!(fifteen_losses(Recovery::PrrCrb, 10), "19/N 19/N 4/R 4/R 4/R");
    assert_eq!(fifteen_losses(Recovery::Prr, 10), "19/N 19/N 4/2R 5/2R 6/2R");
    // No ACK is safe (snd_una does not move), so RFC 9937 is as conservative as CRB here.
    assert_eq!(fifteen_losses(Recovery::PrrRfc9937, 10), "19/N 19/N 4/R 4/R 4/R");
}

/// Lost segments are retransmitted in order, from the first.
#[test]
fn retransmissions_go_from_the_lowest_upwards() {
    let mut figure = Figure::new(Recovery::Rfc6675, 11);
    let sent: Vec<u64> = (15..20).flat_map(|number| figure.ack(15, number).1).collect();
    assert_eq!(sent, [20, 21, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
}
