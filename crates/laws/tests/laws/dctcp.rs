//! DCTCP against the numbers of RFC 8257 and of Linux's tcp_dctcp.c.

use lasthop_laws::{Acked, Law, LawName, Lost, Marking, Start, Window};

fn window(cwnd_segments: u32) -> Window {
    Window { cwnd_segments, cwnd_count: 0, ssthresh_segments: cwnd_segments }
}

/// In 1/1024, by the ssthresh that a mark makes of a window of 2048: 2048 (1 - alpha / 2).
fn alpha(law: &Law) -> u32 {
    let mut window = window(2048);
    law.clone().on_notified(&Lost::default(), &mut window);
    2048 - window.ssthresh_segments
}

/// A window of `segments`, of which so many are marked, is acknowledged at once, and another one sent.
fn round(law: &mut Law, round: u32, segments: u32, marked: u32) {
    let acked = Acked {
        acked_segments: segments,
        marked_segments: marked,
        snd_una: 1000 * round,
        snd_nxt: 1000 * (round + 1),
        ..Acked::default()
    };
    law.on_acked(&acked, &mut window(segments));
}

#[test]
fn it_takes_all_marks_and_answers_by_their_share() {
    // RFC 8257 §3.3: alpha begins with 1, so the first mark halves.
    let mut law = Law::new(LawName::Dctcp, Start::default());
    assert_eq!((alpha(&law), LawName::Dctcp.marking()), (1024, Marking::Each));
    // Without marks a 16th goes each window: 1024 - 64 = 960, - 60 = 900, - 56 = 844.
    let mut seen = Vec::new();
    for number in 1..=3 {
        round(&mut law, number, 10, 0);
        seen.push(alpha(&law));
    }
    assert_eq!(seen, [960, 900, 844]);
    for number in 4..=200 {
        round(&mut law, number, 10, 0);
        seen.push(alpha(&law));
    }
    // 16, of which one goes, then 15, of which all do (tcp_dctcp.c: min_not_zero(alpha, alpha >> 4)).
    let end = seen.iter().position(|alpha| *alpha == 0).expect("it goes to zero");
    assert_eq!(seen[end - 3..end], [17, 16, 15]);
    // A quarter marked: + 5 × 64 / 20 = 16 a window at first; 16, 16 - 1 + 16 = 31, 31 - 1 + 16 = 46.
    let mut seen = Vec::new();
    for number in 201..=203 {
        round(&mut law, number, 20, 5);
        seen.push(alpha(&law));
    }
    assert_eq!(seen, [16, 31, 46]);
    // A share that stays becomes alpha: between 1/4 and what rounding adds.
    for number in 204..=400 {
        round(&mut law, number, 20, 5);
    }
    assert!((256..=272).contains(&alpha(&law)), "{}", alpha(&law));
}

#[test]
fn acks_within_a_window_are_one_observation() {
    let mut law = Law::new(LawName::Dctcp, Start::default());
    // The window that ends at 2000: 4 of 10, in three ACKs.
    round(&mut law, 1, 1, 0);
    let before = alpha(&law);
    for (snd_una, acked_segments, marked_segments) in [(1500, 3, 0), (1800, 4, 4), (2000, 3, 0)] {
        let acked = Acked { acked_segments, marked_segments, snd_una, snd_nxt: 12_000, ..Acked::default() };
        law.on_acked(&acked, &mut window(10));
    }
    // 960 - 60 + 4 × 64 / 10 = 925.
    assert_eq!((before, alpha(&law)), (960, 925));
}

#[test]
fn a_loss_halves_whatever_was_marked() {
    // RFC 8257 §3.5.
    let mut law = Law::new(LawName::Dctcp, Start::default());
    for number in 1..=200 {
        round(&mut law, number, 10, 0);
    }
    let (mut lost, mut timed_out) = (window(40), window(3));
    law.on_lost(&Lost::default(), &mut lost);
    law.on_timed_out(&Lost::default(), &mut timed_out);
    assert_eq!((lost.ssthresh_segments, timed_out.ssthresh_segments), (20, 2));
}
