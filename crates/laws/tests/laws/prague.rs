//! Prague against its draft's rules, by worked traces. The window in fractions is seen by the pace.

use lasthop_laws::{INFINITE_SSTHRESH, Law, LawName, Lost, Marking, Sample, Start, Steering, Undone, Window};

/// Segments of 1000 bytes.
struct Connection {
    law: Law,
    steering: Steering,
    sample: Sample,
}

impl Connection {
    fn new(srtt_us: u32) -> Self {
        let steering = Steering { cwnd_segments: 10, ssthresh_segments: INFINITE_SSTHRESH, ..Steering::default() };
        let sample = Sample { srtt_us, segment_bytes: 1000, ..Sample::default() };
        Self { law: Law::new(LawName::Prague, Start::default()), steering, sample }
    }

    /// A round trip later an ACK of a whole flight, with so many marks. Returns the window.
    fn ack(&mut self, segments: u32, marked: u32) -> f64 {
        self.next_ack(segments, marked);
        self.sampled()
    }

    /// As the stack for a first mark: the notice goes before the sample. `left`: bytes that stay outstanding.
    fn noticed_ack(&mut self, segments: u32, marked: u32, left: u32) -> f64 {
        self.next_ack(segments, marked);
        let sample = &mut self.sample;
        sample.snd_nxt = sample.snd_una + left;
        let notice =
            Lost { now_us: sample.now_us, snd_una: sample.snd_una, snd_nxt: sample.snd_nxt, ..Lost::default() };
        let mut unused = Window { cwnd_segments: 10, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
        self.law.on_notified(&notice, &mut unused);
        self.sampled()
    }

    fn next_ack(&mut self, segments: u32, marked: u32) {
        let sample = &mut self.sample;
        sample.now_us += u64::from(sample.srtt_us);
        sample.acked_segments = segments;
        sample.prior_in_flight_segments = self.steering.cwnd_segments;
        sample.all_delivered_segments += segments;
        sample.all_marked_segments += marked;
        // What was sent since is one flight further.
        sample.snd_una = sample.snd_nxt;
        sample.snd_nxt = sample.snd_nxt.wrapping_add(1_000_000);
    }

    fn sampled(&mut self) -> f64 {
        let sample = &self.sample;
        self.law.on_sampled(sample, &mut self.steering);
        let doubled = self.steering.cwnd_segments < self.steering.ssthresh_segments / 2;
        let rate = 1e9 / f64::from(sample.srtt_us) * if doubled { 2.0 } else { 1.0 };
        self.steering.pace as f64 / rate
    }
}

#[track_caller]
fn is_about(window: f64, expected: f64) {
    assert!((window / expected - 1.0).abs() < 1e-4, "{window} is not {expected}");
}

#[test]
fn marks_reduce_by_their_share_and_the_rest_grows() {
    assert_eq!(LawName::Prague.marking(), Marking::L4s);
    let mut flow = Connection::new(10_000);
    // Slow start: one for each. The pace is twice the window's.
    is_about(flow.ack(10, 0), 20.0);
    // The first mark: alpha is 1, so half of 20; nine unmarked ones go on with slow start, and end it.
    is_about(flow.ack(10, 1), 19.0);
    assert_eq!((flow.steering.cwnd_segments, flow.steering.ssthresh_segments), (28, 28), "a segment for each ACK");
    // A tenth was marked: alpha = 1 - 1/16 + 0.1/16 = 0.94375. 19 (1 - alpha / 2) = 10.034375, and 9 / 11.
    let window = 10.034_375 + 9.0 / 11.0;
    is_about(flow.ack(10, 1), window);
    // alpha = 0.94375 × 15/16 + 0.1/16 = 0.891015625; again.
    let reduced = window * (1.0 - 0.891_015_625 / 2.0);
    is_about(flow.ack(10, 1), reduced + 9.0 / reduced.ceil());
    // Without a mark it is NewReno's: one in a window.
    let before = reduced + 9.0 / reduced.ceil();
    is_about(flow.ack(7, 0), before + 7.0 / before.ceil());
}

#[test]
fn a_mark_that_the_stack_tells_as_well_reduces_once() {
    for left in [0, 1_000_000] {
        let mut flow = Connection::new(10_000);
        is_about(flow.ack(10, 0), 20.0);
        // Half of 20, and the unmarked nine, as with the sample alone.
        is_about(flow.noticed_ack(10, 1, left), 19.0);
        // On the first ACK of all: half of the initial 10, then nine.
        let mut flow = Connection::new(10_000);
        is_about(flow.noticed_ack(10, 1, left), 14.0);
    }
}

#[test]
fn a_queue_that_marks_everything_leaves_two_segments_and_100_kbps() {
    for srtt_us in [1_000, 20_000, 100_000] {
        let mut flow = Connection::new(srtt_us);
        for round in 0..600 {
            flow.ack(flow.steering.cwnd_segments, flow.steering.cwnd_segments);
            let steering = &flow.steering;
            assert!(steering.cwnd_segments >= 2 && steering.pace >= 12_500, "{srtt_us}, {round}: {steering:?}");
        }
        assert_eq!((flow.steering.cwnd_segments, flow.steering.pace), (2, 12_500), "{srtt_us}");
        // Once it marks no more, the window grows again.
        for _ in 0..20_000 {
            flow.ack(flow.steering.cwnd_segments, 0);
        }
        assert!(flow.steering.cwnd_segments > 10 && flow.steering.pace > 12_500, "{srtt_us}: {:?}", flow.steering);
    }
}

#[test]
fn an_undone_loss_grows_again() {
    let mut flow = Connection::new(10_000);
    is_about(flow.ack(10, 0), 20.0);
    let mut window = Window { cwnd_segments: 20, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
    flow.law.on_lost(&Lost { now_us: 15_000, ..Lost::default() }, &mut window);
    flow.law.on_undone(&Undone { now_us: 16_000 }, &mut window);
    flow.sample.state = 1; // Disorder
    is_about(flow.ack(5, 0), 25.0);
}

#[test]
fn a_loss_halves_and_its_repair_does_not_grow() {
    let mut flow = Connection::new(10_000);
    is_about(flow.ack(10, 0), 20.0);
    let mut window = Window { cwnd_segments: 20, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
    flow.law.on_lost(&Lost { now_us: 15_000, ..Lost::default() }, &mut window);
    flow.sample.state = 3; // Recovery
    is_about(flow.ack(5, 0), 10.0);
    assert_eq!(flow.steering.cwnd_segments, 19);
}

#[test]
fn a_short_round_trip_grows_as_25_ms_after_500_rounds() {
    let mut flow = Connection::new(12_500);
    flow.ack(10, 0);
    flow.ack(10, 1);
    let mut window = 0.0;
    for _ in 0..500 {
        window = flow.ack(1, 0);
    }
    // (12.5 / 25)^2 = a quarter of a segment in a window.
    let next = flow.ack(8, 0);
    is_about(next, window + 8.0 * 0.25 / window.ceil());
    // All those windows without a mark have brought alpha to nothing; then marks 25 ms apart reduce, and 12.5 ms apart each second.
    let mut window = flow.ack(2, 1);
    let mut step = |marked| {
        let after = flow.ack(2, marked);
        after < std::mem::replace(&mut window, after)
    };
    assert_eq!([0, 1, 0, 1].map(&mut step), [false, true, false, true]);
    assert_eq!([0, 1, 1, 1, 1].map(&mut step), [false, true, false, true, false]);
}
