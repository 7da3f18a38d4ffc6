//! HyStart++ (RFC 9406), around NewReno: rounds of ten ACKs of one segment each.

use super::GROWS;
use lasthop_laws::{Acked, INFINITE_SSTHRESH, Law, LawName, Lost, SlowStart, Start, Window};

const MSS: u32 = 1000;

struct Connection {
    law: Law,
    window: Window,
    snd_una: u32,
    snd_nxt: u32,
    flags: u32,
}

impl Connection {
    fn new() -> Self {
        Self {
            law: Law::new(LawName::NewReno, Start { slow_start: SlowStart::HyStartPlusPlus, ..Start::default() }),
            window: Window { cwnd_segments: 100, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH },
            snd_una: 0,
            snd_nxt: 10 * MSS,
            flags: GROWS,
        }
    }

    /// How much the window grew by an ACK of `segments`.
    fn ack(&mut self, segments: u32, rtt_us: u32) -> u32 {
        let before = self.window.cwnd_segments;
        self.snd_una += segments * MSS;
        let (snd_una, snd_nxt) = (self.snd_una, self.snd_nxt);
        let acked = Acked { acked_segments: segments, rtt_us, snd_una, snd_nxt, flags: self.flags, ..Acked::default() };
        self.law.on_acked(&acked, &mut self.window);
        self.window.cwnd_segments - before
    }

    /// A round of ten ACKs; how much the window grew.
    fn round(&mut self, rtt_us: u32) -> u32 {
        self.snd_nxt = self.snd_una + 10 * MSS;
        let grown = (0..9).map(|_| self.ack(1, rtt_us)).sum::<u32>();
        self.snd_nxt += 10 * MSS; // what those ACKs released
        grown + self.ack(1, rtt_us)
    }
}

#[test]
fn a_round_that_is_slower_than_the_last_slows_the_growth_to_a_quarter() {
    // RttThresh = clamp(80 / 8, 4, 16) = 10 ms. The eighth sample decides, and its own segment counts a quarter already:
    // 7 at full speed, then 3 acknowledged, not yet one segment.
    let mut connection = Connection::new();
    assert_eq!(connection.round(80_000), 10);
    assert_eq!(connection.round(89_999), 10);
    let mut connection = Connection::new();
    connection.round(80_000);
    assert_eq!(connection.round(90_000), 7);
    assert_eq!(connection.round(90_000), 3); // 3 + 10 = 13 acknowledged: 3, and 1 left
    assert_eq!(connection.round(90_000), 2); // 11: 2, and 3 left
}

#[test]
fn while_the_rtt_does_not_rise_slow_start_goes_on() {
    let mut connection = Connection::new();
    assert!((0..50).all(|round| connection.round(80_000 + 1000 * (round % 5)) == 10));
    assert_eq!(connection.window.ssthresh_segments, INFINITE_SSTHRESH);
}

#[test]
fn the_threshold_is_4_ms_at_least_and_16_ms_at_most() {
    for (last, threshold) in [(8_000, 4_000), (80_000, 10_000), (800_000, 16_000)] {
        let mut connection = Connection::new();
        connection.round(last);
        assert_eq!(connection.round(last + threshold - 1), 10, "{last}");
        let mut connection = Connection::new();
        connection.round(last);
        assert_eq!(connection.round(last + threshold), 7, "{last}");
    }
}

#[test]
fn seven_samples_decide_nothing() {
    let mut connection = Connection::new();
    connection.round(80_000);
    connection.snd_nxt = connection.snd_una + 10 * MSS;
    for _ in 0..7 {
        assert_eq!(connection.ack(1, 200_000), 1);
    }
    assert_eq!(connection.ack(1, 0), 1, "an ACK without a sample");
    assert_eq!(connection.ack(1, 0), 1);
    connection.snd_nxt += 10 * MSS;
    assert_eq!(connection.ack(1, 0), 1);
    assert_eq!(connection.round(80_000), 10, "a new round begins with no samples");
}

#[test]
fn an_rtt_below_the_baseline_resumes_slow_start() {
    let mut connection = Connection::new();
    connection.round(80_000);
    connection.round(100_000); // baseline: 100 ms
    assert_eq!(connection.round(100_000), 3);
    // 99 ms: after 8 samples back; 7 quarters on top of what was left (1), then 3 at full speed
    assert_eq!(connection.round(99_000), 2 + 3);
    assert_eq!(connection.round(99_000), 10);
    assert_eq!(connection.window.ssthresh_segments, INFINITE_SSTHRESH);
}

#[test]
fn after_five_rounds_congestion_avoidance_begins() {
    let mut connection = Connection::new();
    connection.round(80_000);
    connection.round(100_000); // entering in the middle: the partial round counts
    for _ in 0..3 {
        connection.round(100_000);
        assert_eq!(connection.window.ssthresh_segments, INFINITE_SSTHRESH);
    }
    connection.round(100_000);
    assert_eq!(connection.window.ssthresh_segments, connection.window.cwnd_segments);
    let cwnd = connection.window.cwnd_segments;
    connection.round(100_000);
    assert_eq!(connection.window.cwnd_segments, cwnd, "one per window from here on");
}

#[test]
fn an_ack_of_many_segments_counts_as_eight_unless_the_sender_paces() {
    let mut connection = Connection::new();
    connection.snd_nxt = 100 * MSS;
    assert_eq!(connection.ack(20, 80_000), 8);
    connection.flags |= Acked::PACED;
    assert_eq!(connection.ack(20, 80_000), 20);
}

#[test]
fn it_is_for_the_first_slow_start_only() {
    let mut connection = Connection::new();
    connection.round(80_000);
    let lost = Lost { in_flight_segments: 110, ..Lost::default() };
    connection.law.on_timed_out(&lost, &mut connection.window);
    connection.window.cwnd_segments = 1;
    assert_eq!(connection.round(80_000), 10);
    assert_eq!(connection.round(200_000), 10);
    connection.snd_nxt = connection.snd_una + 100 * MSS;
    assert_eq!(connection.ack(20, 200_000), 20, "nor is the growth per ACK limited");
}

#[test]
fn any_law_can_have_it() {
    for name in super::LOSS_BASED {
        let mut connection = Connection::new();
        connection.law = Law::new(name, Start { slow_start: SlowStart::HyStartPlusPlus, ..Start::default() });
        connection.round(80_000);
        assert_eq!(connection.round(90_000), 7, "{name}");
    }
}
