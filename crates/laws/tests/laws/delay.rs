//! `delay.h`, as HD and CHD tell of it: what is a sample, what its clock makes of it, and when a round trip ends.

use super::{GROWS, Sender};
use lasthop_laws::{Acked, Choice, INFINITE_SSTHRESH, Law, LawName, Lost, Parameters, Start, Window};

pub(super) const BASE_US: u32 = 100_000;

/// A sender in congestion avoidance whose segments are one byte each, and whose ACKs carry RTTs.
#[derive(Clone)]
pub(super) struct Timed {
    pub(super) sender: Sender,
    pub(super) snd_una: u32,
    snd_nxt: u32,
    /// When the round that lasts began, this was sent.
    round_end: u32,
}

/// A law with these parameters set, and draws of its own.
pub(super) fn choice(name: LawName, seed: u32, set: &[(&str, f64)]) -> Choice {
    let mut parameters = Parameters::of(name);
    for (parameter, value) in set {
        parameters.set(name, parameter, *value).expect("a parameter of the law");
    }
    Choice { name, parameters, seed }
}

impl Timed {
    pub(super) fn new(choice: Choice, cwnd_segments: u32) -> Self {
        let law = Law::new(choice, Start::default());
        let window = Window { cwnd_segments, cwnd_count: 0, ssthresh_segments: cwnd_segments };
        let sender = Sender { law, window, now_us: 0, srtt_us: BASE_US, min_rtt_us: BASE_US, flags: GROWS };
        Self { sender, snd_una: 0, snd_nxt: cwnd_segments, round_end: 0 }
    }

    /// With the lowest RTT known, which ends a round: the first ACK always does.
    pub(super) fn measured(choice: Choice, cwnd_segments: u32) -> Self {
        let mut sender = Self::new(choice, cwnd_segments);
        sender.round(BASE_US);
        sender
    }

    pub(super) fn cwnd(&self) -> u32 {
        self.sender.cwnd()
    }

    /// An ACK of `segments`, which measured `rtt_us` (0: nothing).
    pub(super) fn ack(&mut self, segments: u32, rtt_us: u32) -> u32 {
        self.snd_una = self.snd_una.wrapping_add(segments);
        self.event(segments, rtt_us, self.sender.flags)
    }

    /// An ACK that reports a segment beyond a hole.
    pub(super) fn sack(&mut self, rtt_us: u32) -> u32 {
        self.event(1, rtt_us, self.sender.flags & !Acked::ADVANCED)
    }

    fn event(&mut self, segments: u32, rtt_us: u32, flags: u32) -> u32 {
        let sent = self.snd_una.wrapping_add(self.cwnd());
        if (sent.wrapping_sub(self.snd_nxt) as i32) > 0 {
            self.snd_nxt = sent;
        }
        let (snd_una, snd_nxt) = (self.snd_una, self.snd_nxt);
        let event = Acked { rtt_us, snd_una, snd_nxt, flags, ..self.sender.event(segments) };
        self.sender.law.on_acked(&event, &mut self.sender.window);
        if (self.snd_una.wrapping_sub(self.round_end) as i32) > 0 {
            self.round_end = self.snd_nxt;
        }
        self.cwnd()
    }

    /// ACKs of one segment each, up to the one that ends the round, without it.
    pub(super) fn round_but_one(&mut self, rtt_us: u32) -> u32 {
        while self.snd_una != self.round_end {
            self.ack(1, rtt_us);
        }
        self.cwnd()
    }

    /// The rest of a round.
    pub(super) fn round(&mut self, rtt_us: u32) -> u32 {
        self.round_but_one(rtt_us);
        self.ack(1, rtt_us)
    }

    /// A loss with the whole window in flight; what ssthresh becomes, and so the window.
    pub(super) fn lose(&mut self) -> u32 {
        let lost = Lost { snd_una: self.snd_una, snd_nxt: self.snd_nxt, ..self.sender.lost() };
        self.sender.law.on_lost(&lost, &mut self.sender.window);
        self.sender.window.cwnd_segments = self.sender.window.ssthresh_segments;
        self.sender.window.cwnd_count = 0;
        self.cwnd()
    }
}

/// Backs off for sure if the queueing delay is `queue_ms`, to the microsecond; otherwise not, unless it has been longer
/// before: just below it g is 0, and so it is at the longest delay.
fn at_exactly(name: LawName, queue_ms: f64, tick_ms: f64) -> Choice {
    let set = [
        ("queue_min_ms", queue_ms - 0.001),
        ("queue_threshold_ms", queue_ms),
        ("max_probability", 1.0),
        ("rtt_tick_ms", tick_ms),
    ];
    choice(name, 0, &set)
}

fn hd_at_20_ms() -> Timed {
    Timed::measured(at_exactly(LawName::Hd, 20.0, 0.0), 40)
}

#[test]
fn the_queueing_delay_is_the_last_rtt_less_the_lowest() {
    for (rtt_us, backs_off) in [(119_999, false), (120_000, true), (120_001, false), (100_000, false), (0, false)] {
        assert_eq!(hd_at_20_ms().ack(1, rtt_us) == 20, backs_off, "{rtt_us} us");
    }
    // a lower one than all before moves the measure
    let mut sender = hd_at_20_ms();
    sender.ack(1, 90_000);
    assert_eq!(sender.ack(1, 110_000), 20);
}

#[test]
fn while_acks_are_delayed_an_ack_of_one_segment_is_no_sample() {
    // of `pairs` the counter is min(pairs, 5); each single ACK takes 1 off, and the one that leaves 0 is a sample again
    for (pairs, singles) in [(0, 1), (1, 1), (2, 2), (5, 5), (9, 5)] {
        let mut sender = hd_at_20_ms();
        (0..pairs).for_each(|_| _ = sender.ack(2, BASE_US));
        let at = (1..10).find(|_| sender.ack(1, 120_000) <= 21);
        assert_eq!(at, Some(singles), "after {pairs} ACKs of two");
    }
    // nor for the lowest RTT: 120 ms still are 20 ms above 100
    let mut sender = hd_at_20_ms();
    for (segments, rtt_us) in [(2, BASE_US), (2, BASE_US), (1, 80_000)] {
        sender.ack(segments, rtt_us);
    }
    assert_eq!(sender.ack(2, 120_000), 20);
}

#[test]
fn a_segment_beyond_a_hole_is_acknowledged_at_once_and_so_is_a_sample() {
    let mut sender = hd_at_20_ms();
    (0..2).for_each(|_| _ = sender.ack(2, BASE_US));
    assert_eq!(sender.sack(120_000), 40, "a back-off waits for an ACK of new data");
    assert_eq!(sender.ack(2, 0), 20, "which goes by the last sample");
    // and the counter stays 3: the third ACK of one segment is a sample
    let mut sender = hd_at_20_ms();
    (0..3).for_each(|_| _ = sender.ack(2, BASE_US));
    (0..9).for_each(|_| _ = sender.sack(BASE_US));
    assert_eq!((1..10).find(|_| sender.ack(1, 120_000) == 20), Some(3));
}

#[test]
fn an_rtt_is_the_ticks_between_sending_and_now_and_one_more() {
    // ticks of 1 ms. At 10.4 ms: sent at 9.1 is 10 - 9 + 1 = 2 ticks, at 9.0 as well, at 8.9 is 10 - 8 + 1 = 3
    for (rtt_us, backs_off) in [(1_300, false), (1_400, false), (1_401, true), (1_500, true), (2_400, true)] {
        let mut sender = Timed::new(at_exactly(LawName::Hd, 1.0, 1.0), 40);
        sender.sender.now_us = 10_400;
        sender.ack(1, 1_300);
        assert_eq!(sender.ack(1, rtt_us) == 20, backs_off, "{rtt_us} us");
    }
    // what was sent in this very tick: 10 - 10 + 1
    let mut sender = Timed::new(at_exactly(LawName::Hd, 1.0, 1.0), 40);
    sender.sender.now_us = 10_400;
    sender.ack(1, 1);
    assert_eq!((sender.ack(1, 400), sender.ack(1, 401)), (40, 20));
    // no RTT is too long for it: 2^32 - 1 us are 4 294 968 ticks of 1 ms, cut off at 2^32 - 1 us
    let mut sender = Timed::new(choice(LawName::Hd, 0, &[("rtt_tick_ms", 1.0)]), 40);
    [1, u32::MAX, u32::MAX].iter().for_each(|rtt_us| _ = sender.ack(1, *rtt_us));
    assert_eq!(sender.cwnd(), 40);
}

#[test]
fn a_round_lasts_until_the_first_segment_sent_after_it_began_is_acknowledged() {
    // the first ACK ends the first round, with 40 segments out: 41 more, and none of the 40 before makes CHD decide
    let mut sender = Timed::measured(at_exactly(LawName::Chd, 20.0, 0.0), 40);
    sender.sender.flags = Acked::ADVANCED; // no growth
    assert_eq!((1..100).find(|_| sender.ack(1, 120_000) == 20), Some(41));
}

#[test]
fn a_round_without_a_sample_waits_for_one() {
    let mut sender = Timed::measured(at_exactly(LawName::Chd, 20.0, 0.0), 40);
    sender.sender.flags = Acked::ADVANCED;
    (0..100).for_each(|_| _ = sender.ack(1, 0));
    assert_eq!(sender.ack(1, 120_000), 20);
    // be it half the sequence space later, from where numbers look older than the round's
    let mut sender = Timed::measured(at_exactly(LawName::Chd, 20.0, 0.0), 40);
    sender.sender.flags = Acked::ADVANCED;
    for _ in 0..3 {
        sender.snd_una = sender.snd_una.wrapping_add(1 << 30);
        sender.ack(1, 0);
    }
    assert_eq!(sender.ack(1, 120_000), 20);
}

#[test]
fn a_round_goes_by_its_own_extremes_and_the_connection_by_all() {
    let mut sender = Timed::measured(at_exactly(LawName::Chd, 20.0, 0.0), 40);
    sender.sender.flags = Acked::ADVANCED;
    sender.ack(1, 120_000);
    assert_eq!(sender.round(BASE_US), 20, "one sample of 20 ms decides");
    assert_eq!(sender.round(BASE_US), 20, "but not the next round");
}

/// 2^33 segments of 1448 bytes, 2^20 in each ACK: sequence numbers wrap 2896 times, no sum is kept that could.
#[test]
fn a_connection_of_2_to_the_33_segments_backs_off_at_its_end_as_at_its_beginning() {
    for name in [LawName::Hd, LawName::Chd] {
        let mut law = Law::new(choice(name, 1, &[("max_probability", 0.5)]), Start::default());
        let mut window = Window { cwnd_segments: 1 << 20, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
        let (mut snd_una, mut back_offs) = (0_u32, [0; 4]);
        for ack in 0..1_u32 << 13 {
            snd_una = snd_una.wrapping_add(1448 << 20);
            let event = Acked {
                now_us: u64::from(ack) * 1_000_000,
                acked_segments: 1 << 20,
                rtt_us: BASE_US + ack % 40 * 1000,
                snd_una,
                snd_nxt: snd_una.wrapping_add(1000),
                flags: GROWS,
                ..Acked::default()
            };
            let before = window.cwnd_segments;
            law.on_acked(&event, &mut window);
            if window.cwnd_segments < before {
                back_offs[(ack >> 11) as usize] += 1;
                assert_eq!(window.ssthresh_segments, window.cwnd_segments);
            }
            assert!(window.cwnd_segments >= 2 && window.cwnd_segments - before.min(window.cwnd_segments) <= 1 << 20);
        }
        // of 2048 ACKs each: within a fifth of their mean
        let mean = back_offs.iter().sum::<u32>() / 4;
        assert!(mean > 200 && back_offs.iter().all(|some| some.abs_diff(mean) < mean / 5), "{name}: {back_offs:?}");
    }
}
