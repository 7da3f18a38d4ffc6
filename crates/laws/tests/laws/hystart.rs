//! Linux's HyStart, around NewReno.

use lasthop_laws::{Acked, INFINITE_SSTHRESH, Law, LawName, Lost, SlowStart, Start, Window};

struct Round {
    law: Law,
    window: Window,
    now_us: u64,
    snd_una: u32,
    snd_nxt: u32,
    flags: u32,
}

impl Round {
    /// A connection whose lowest RTT is known, at the beginning of a round in slow start.
    fn begin(cwnd_segments: u32, delay_min_us: u32) -> Self {
        let window = Window { cwnd_segments, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
        let law = Law::new(LawName::NewReno, Start { slow_start: SlowStart::HyStart, ..Start::default() });
        let mut round = Self { law, window, now_us: 1_000_000, snd_una: 1, snd_nxt: 1_000_000, flags: 0 };
        round.ack(0, delay_min_us); // beyond the first round's end: a new one begins
        round
    }

    /// An ACK `us` after the last one. The window stays, so that only the end of slow start is seen.
    fn ack(&mut self, us: u64, rtt_us: u32) -> bool {
        self.now_us += us;
        let (snd_una, snd_nxt) = (self.snd_una, self.snd_nxt);
        let acked = Acked { now_us: self.now_us, rtt_us, snd_una, snd_nxt, flags: self.flags, ..Acked::default() };
        self.law.on_acked(&acked, &mut self.window);
        let ended = self.window.ssthresh_segments != INFINITE_SSTHRESH;
        assert!(!ended || self.window.ssthresh_segments == self.window.cwnd_segments);
        ended
    }

    /// The number of the first ACK, of many with the same RTT and `us` apart, that ends slow start.
    fn ends_at(&mut self, us: u64, rtt_us: u32) -> Option<usize> {
        (1..=500).find(|_| self.ack(us, rtt_us))
    }
}

#[test]
fn a_round_whose_lowest_rtt_has_risen_by_an_eighth_ends_slow_start() {
    // 80 ms: more than 90 ms. The round's first ACK had 80 ms, so the round after it shows; 8 samples, judged by the 9th.
    // ACKs 3 ms apart make no train.
    let next_round = |delay_min_us| {
        let mut round = Round::begin(100, delay_min_us);
        (round.snd_una, round.snd_nxt) = (1_000_001, 2_000_000);
        round
    };
    assert_eq!(next_round(80_000).ends_at(3000, 90_001), Some(9));
    assert_eq!(next_round(80_000).ends_at(3000, 90_000), None);
    // at least 4 ms: of 8 ms an eighth would be 1 ms
    assert_eq!(next_round(8_000).ends_at(3000, 12_001), Some(9));
    assert_eq!(next_round(8_000).ends_at(3000, 12_000), None);
    // at most 16 ms: of 800 ms an eighth would be 100 ms
    assert_eq!(next_round(800_000).ends_at(3000, 816_001), Some(9));
    assert_eq!(next_round(800_000).ends_at(3000, 816_000), None);
}

#[test]
fn one_low_sample_in_a_round_is_enough_to_go_on() {
    let mut round = Round::begin(100, 80_000);
    (round.snd_una, round.snd_nxt) = (1_000_001, 2_000_000);
    round.ack(3000, 85_000);
    assert_eq!(round.ends_at(3000, 120_000), None);
}

#[test]
fn a_train_of_acks_longer_than_half_the_lowest_rtt_ends_slow_start() {
    // (100 ms + 1 ms cushion) / 2 = 50.5 ms: the 51st ACK, 1 ms apart
    assert_eq!(Round::begin(100, 100_000).ends_at(1000, 100_000), Some(51));
    // pacing spreads the ACKs over half a round trip: then the whole of 101 ms
    let mut paced = Round::begin(100, 100_000);
    paced.flags = Acked::PACED;
    assert_eq!(paced.ends_at(1000, 100_000), Some(102));
}

#[test]
fn a_train_is_broken_by_a_gap_of_more_than_2_ms() {
    assert_eq!(Round::begin(100, 100_000).ends_at(2000, 100_000), Some(26));
    assert_eq!(Round::begin(100, 100_000).ends_at(2001, 100_000), None);
    let mut round = Round::begin(100, 100_000);
    round.ack(2001, 100_000);
    assert_eq!(round.ends_at(1000, 100_000), None, "until the next round");
    (round.snd_una, round.snd_nxt) = (1_000_001, 2_000_000);
    assert_eq!(round.ends_at(1000, 100_000), Some(52), "the first one begins the round");
}

#[test]
fn below_16_segments_it_is_not_looked_for() {
    assert_eq!(Round::begin(15, 100_000).ends_at(1000, 100_000), None);
    assert_eq!(Round::begin(16, 100_000).ends_at(1000, 100_000), Some(51));
}

#[test]
fn once_found_it_is_not_looked_for_until_a_timeout() {
    let mut round = Round::begin(100, 100_000);
    assert_eq!(round.ends_at(1000, 100_000), Some(51));
    round.window.ssthresh_segments = INFINITE_SSTHRESH; // as after a needless reduction
    assert_eq!(round.ends_at(1000, 100_000), None);
    let lost = Lost { now_us: round.now_us, snd_una: 1, snd_nxt: 1_000_000, ..Lost::default() };
    round.law.on_timed_out(&lost, &mut round.window);
    round.window.ssthresh_segments = INFINITE_SSTHRESH;
    assert_eq!(round.ends_at(1000, 100_000), Some(51));
}
