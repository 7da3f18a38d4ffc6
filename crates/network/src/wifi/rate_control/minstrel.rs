//! Minstrel: measures each rate's throughput, sends at the best, and samples others.
//!
//! Models the rate control for stations without 802.11n of Linux's mac80211, as of Linux 4.4:
//! 1. Every 100 ms each rate's share of acknowledged transmissions enters its probability P by an EWMA: a quarter new
//!    value, three quarters old. The first measurement counts whole.
//! 2. A rate's throughput is P / T, where T is the time of 1200 bytes at that rate; 0 for P under 10 %; P counts at
//!    most 90 %.
//! 3. A frame is sent by a retry chain: the best throughput, the second best, the best P (among those with P >= 95 %,
//!    if any, the fastest), the lowest rate. Each is tried as often as fits into 6 ms with growing contention windows,
//!    but at most twice for P > 95 % or P < 10 %. The medium's retry limit cuts the chain.
//! 4. 10 % of the frames are samples, each with the next rate of a table of ten random permutations. A rate faster than
//!    the best takes the first place in the chain. A slower one takes the second, tried only if the best fails; after
//!    20 intervals without a try it takes the first. Rates with P > 95 % or P < 10 % take the first place at most 4
//!    times per interval.
//! 5. Behind a CTS-to-self (802.11bg) 5 % are samples, always in the first place, never two in a row, and no rates with
//!    P > 95 %.
//!
//! It starts at the lowest rate, with no measurements. A collision counts as a failure of the rate. Collisions hit all
//! rates alike, so they do not change the best one.
//!
//! A lost RTS is no attempt, but a try of the chain; one that ends the frame counts as its failure.
//!
//! Leaves out: the counters of samples in flight, as one frame is in flight here; the clock's granularity. Linux
//! does not count a success of the chain's last place, because of an array bound; here it counts.
//!
//! References: Linux 4.4, net/mac80211/rc80211_minstrel.c, and util.c for durations; D. Smithies, F. Fietkau: The
//! Minstrel rate control algorithm for mac80211, Linux wireless documentation.

use super::{Controller, Decision, Ladder, Setup};
use crate::wifi::airtime::ModeId;
use crate::wifi::cell::Protection;
use crate::wifi::constants::PhyRate;
use lasthop_units::{Span, Time};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// `update_interval`: how often probabilities are updated.
const UPDATE_INTERVAL: Span = Span::from_millis(100);
/// `EWMA_LEVEL` of `EWMA_DIV`: 96 of 128 for the old value.
const EWMA_OLD: i64 = 96;
const EWMA_DIVISOR: i64 = 128;
/// `lookaround_rate_mrr`, `lookaround_rate`: the percentage of samples, with the whole chain and behind protection.
const LOOKAROUND_PERCENT: i64 = 10;
const LOOKAROUND_PROTECTED_PERCENT: i64 = 5;
/// `SAMPLE_COLUMNS`: the number of permutations in the sample table.
const SAMPLE_COLUMNS: usize = 10;
/// `segment_size`: the most time for one place in the chain, us.
const SEGMENT_US: u32 = 6000;
/// `max_retry`: the most transmissions for one place in the chain.
const MAX_RETRY: u8 = 7;
/// `packet_count` at which the count of samples begins anew.
const PACKETS_OF_A_COUNT: i64 = 10_000;
/// `sample_skipped`: updates without a transmission after which a slow rate is sampled in the first place.
const SKIPPED: u32 = 20;
/// `sample_limit`: the most samples between updates of a rate that almost always works, or almost never.
const SAMPLE_LIMIT: u8 = 4;

/// A probability with 16 fractional bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Share(u32);

impl Share {
    const ZERO: Self = Self(0);
    const PERCENT_10: Self = Self::of(10, 100);
    const PERCENT_90: Self = Self::of(90, 100);
    const PERCENT_95: Self = Self::of(95, 100);

    const fn of(part: u32, whole: u32) -> Self {
        Self((((part as u64) << 16) / whole as u64) as u32)
    }

    /// P := P + (128 - 96) (sample - P) / 128, rounded towards P.
    fn ewma(self, sample: Self) -> Self {
        let difference = i64::from(sample.0) - i64::from(self.0);
        let new = i64::from(self.0) + (EWMA_DIVISOR - EWMA_OLD) * difference / EWMA_DIVISOR;
        Self(u32::try_from(new).expect("a mean of two shares is a share"))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Minstrel {
    /// Ascending.
    rates: Vec<RateState>,
    /// Every frame is behind a CTS-to-self.
    protected: bool,
    best: [u8; 2],
    most_probable: u8,
    updated: Time,
    packets: i64,
    samples: i64,
    last_was_sample: bool,
    /// By column: a permutation of the rates.
    sample_table: [Vec<u8>; SAMPLE_COLUMNS],
    sample_column: usize,
    sample_row: usize,
    frame: Option<Frame>,
}

#[derive(Clone, Debug)]
struct RateState {
    rate: PhyRate,
    /// `perfect_tx_time`: of 1200 bytes.
    time_us: u32,
    /// `retry_count` and `retry_count_cts`.
    retries: u8,
    retries_protected: u8,
    /// `adjusted_retry_count`.
    retries_now: u8,
    /// `None` before the first measurement.
    probability: Option<Share>,
    /// Since the last update.
    attempts: u32,
    successes: u32,
    /// Updates since its last try.
    skipped: u32,
    /// Remaining samples in the first place before the next update; `None` = no limit.
    samples_left: Option<u8>,
}

/// The present frame, new or repeated.
#[derive(Clone, Copy, Debug)]
struct Frame {
    chain: [Attempts; 4],
    place: usize,
    /// Transmissions at this place.
    tries: u8,
}

/// One step of the retry chain: a rate, and its number of tries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Attempts {
    rate: u8,
    tries: u8,
}

impl Controller for Minstrel {
    /// That of the best rate so far.
    fn mode(&self) -> ModeId {
        self.rates[usize::from(self.best[0])].rate.into()
    }

    fn next(&mut self, _now: Time) -> Decision {
        let frame = match self.frame {
            Some(frame) => frame,
            None => Frame { chain: self.choose_chain(), place: 0, tries: 0 },
        };
        self.frame = Some(frame);
        ModeId::from(self.rates[usize::from(frame.chain[frame.place].rate)].rate).into()
    }

    fn on_success(&mut self, now: Time, _frames: u32, _acknowledged: u32) {
        let frame = self.frame.take().expect("only what was sent is acknowledged");
        let state = &mut self.rates[usize::from(frame.chain[frame.place].rate)];
        state.attempts += 1;
        state.successes += 1;
        self.on_frame_over(now);
    }

    fn on_failure(&mut self, now: Time, _frames: u32, given_up: bool) {
        let frame = self.frame.as_ref().expect("only what was sent fails");
        self.rates[usize::from(frame.chain[frame.place].rate)].attempts += 1;
        self.go_down();
        if given_up {
            self.frame = None;
            self.on_frame_over(now);
        }
    }

    fn on_rts_lost(&mut self, _now: Time, _frames: u32) {
        self.go_down();
    }
}

impl Minstrel {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        let is_protected = setup.times.cell.protection == Protection::Erp;
        Self::of(&setup.ladder(), is_protected, (setup.stream)("minstrel"))
    }

    /// Goes on in the chain.
    fn go_down(&mut self) {
        let frame = self.frame.as_mut().expect("only what was sent fails");
        // Without a retry limit the last place never ends.
        frame.tries = frame.tries.saturating_add(1);
        if frame.tries >= frame.chain[frame.place].tries && frame.place + 1 < frame.chain.len() {
            frame.place += 1;
            frame.tries = 0;
        }
    }

    /// `protected`: whether a CTS-to-self precedes its OFDM frames.
    fn of(ladder: &Ladder, protected: bool, mut stream: ChaCha8Rng) -> Self {
        let rates = &ladder.rates[..usize::from(ladder.length)];
        let lowest_ack_us = duration_us(rates[0], ACK_BYTES);
        let sample_table = std::array::from_fn(|_| permutation(rates.len(), &mut stream));
        Self {
            rates: rates.iter().map(|&rate| RateState::new(rate, lowest_ack_us)).collect(),
            protected,
            best: [0; 2],
            most_probable: 0,
            updated: Time::ZERO,
            packets: 0,
            samples: 0,
            last_was_sample: false,
            sample_table,
            sample_column: 0,
            sample_row: 0,
            frame: None,
        }
    }

    fn on_frame_over(&mut self, now: Time) {
        if now.saturating_since(self.updated) > UPDATE_INTERVAL {
            self.update(now);
        }
    }

    fn update(&mut self, now: Time) {
        self.updated = now;
        self.rates.iter_mut().for_each(RateState::update);
        // The lowest rate fills both places; a later rate must exceed the throughput of the one it displaces.
        let throughputs: Vec<_> = self.rates.iter().map(RateState::throughput).collect();
        let mut best = [0, 0];
        let mut most_probable = 0;
        for (rate, &throughput) in throughputs.iter().enumerate() {
            if throughput > throughputs[best[0]] {
                best = [rate, best[0]];
            } else if throughput > throughputs[best[1]] {
                best[1] = rate;
            }
            let [this, other] = [rate, most_probable].map(|rate| self.rates[rate].share());
            let better =
                if this >= Share::PERCENT_95 { throughput >= throughputs[most_probable] } else { this >= other };
            if better {
                most_probable = rate;
            }
        }
        self.best = best.map(|rate| rate as u8);
        self.most_probable = most_probable as u8;
    }

    fn choose_chain(&mut self) -> [Attempts; 4] {
        let place = |rate: u8| {
            let state = &self.rates[usize::from(rate)];
            Attempts { rate, tries: if self.protected { state.retries_protected } else { state.retries_now } }
        };
        let [best, second] = self.best;
        let lowest = Attempts { rate: 0, tries: MAX_RETRY };
        let mut chain = [place(best), place(second), place(self.most_probable), lowest];
        if let Some((at, sample)) = self.choose_sample() {
            chain[at] = sample;
        }
        chain
    }

    /// The rate to sample with this frame, and at which place in the chain.
    fn choose_sample(&mut self) -> Option<(usize, Attempts)> {
        self.packets += 1;
        let percent = if self.protected { LOOKAROUND_PROTECTED_PERCENT } else { LOOKAROUND_PERCENT };
        let due = self.packets * percent / 100 - self.samples;
        let last_was_sample = std::mem::take(&mut self.last_was_sample);
        if due < 0 || (self.protected && last_was_sample) {
            return None;
        }
        // A backlog of samples is cut to two rounds.
        let two_rounds = 2 * self.rates.len() as i64;
        if self.packets >= PACKETS_OF_A_COUNT {
            self.packets = 0;
            self.samples = 0;
        } else if due > two_rounds {
            self.samples += due - two_rounds;
        }
        let rate = self.next_of_the_table();
        let best_us = self.rates[usize::from(self.best[0])].time_us;
        let state = &mut self.rates[usize::from(rate)];
        let at = if !self.protected && state.time_us > best_us && state.skipped < SKIPPED {
            1
        } else {
            state.samples_left = match state.samples_left {
                Some(0) => return None,
                left => left.map(|left| left - 1),
            };
            0
        };
        self.samples += 1;
        if self.protected && state.share() > Share::PERCENT_95 {
            return None;
        }
        self.last_was_sample = true;
        let tries =
            if self.protected { state.retries_protected.min(state.retries_now).max(2) } else { state.retries_now };
        Some((at, Attempts { rate, tries }))
    }

    fn next_of_the_table(&mut self) -> u8 {
        let rate = self.sample_table[self.sample_column][self.sample_row];
        self.sample_row += 1;
        if self.sample_row == self.rates.len() {
            self.sample_row = 0;
            self.sample_column = (self.sample_column + 1) % SAMPLE_COLUMNS;
        }
        rate
    }
}

impl RateState {
    fn new(rate: PhyRate, lowest_ack_us: u32) -> Self {
        let (retries, retries_protected) = retries(rate, lowest_ack_us);
        Self {
            rate,
            time_us: duration_us(rate, FRAME_BYTES),
            retries,
            retries_protected,
            retries_now: retries,
            probability: None,
            attempts: 0,
            successes: 0,
            skipped: 0,
            samples_left: None,
        }
    }

    fn share(&self) -> Share {
        self.probability.unwrap_or(Share::ZERO)
    }

    fn update(&mut self) {
        if self.attempts > 0 {
            let sample = Share::of(self.successes, self.attempts);
            self.probability = Some(self.probability.map_or(sample, |old| old.ewma(sample)));
            self.skipped = 0;
        } else {
            self.skipped += 1;
        }
        self.attempts = 0;
        self.successes = 0;
        let share = self.share();
        if share > Share::PERCENT_95 || share < Share::PERCENT_10 {
            self.samples_left = Some(SAMPLE_LIMIT);
            self.retries_now = match self.retries / 2 {
                0 => 2,
                half => half.min(2),
            };
        } else {
            self.samples_left = None;
            self.retries_now = self.retries;
        }
    }

    /// Frames per 100 ms, as Linux rounds them.
    fn throughput(&self) -> u32 {
        let share = self.share();
        if share < Share::PERCENT_10 {
            return 0;
        }
        (100_000 * (share.min(Share::PERCENT_90).0 / self.time_us)) >> 16
    }
}

/// Inputs of the duration tables.
const FRAME_BYTES: u32 = 1200;
pub(super) const ACK_BYTES: u32 = 10;

/// Transmissions of a frame within `SEGMENT_US`, without and with a CTS-to-self before each.
fn retries(rate: PhyRate, lowest_ack_us: u32) -> (u8, u8) {
    const SLOT_US: u32 = 9;
    let each = duration_us(rate, FRAME_BYTES) + duration_us(rate, ACK_BYTES);
    let (mut plain, mut protected) = (1, 1);
    let (mut plain_us, mut protected_us) = (duration_us(rate, FRAME_BYTES) + lowest_ack_us, 0);
    let mut window = 15;
    while plain < MAX_RETRY {
        let single = each + SLOT_US * window / 2;
        window = (2 * window + 1).min(1023);
        plain_us += single;
        protected_us += single + lowest_ack_us;
        if protected_us < SEGMENT_US {
            protected += 1;
        }
        if plain_us >= SEGMENT_US {
            break;
        }
        plain += 1;
    }
    (plain, if rate.is_ofdm() { protected } else { plain })
}

/// `ieee80211_frame_duration`: SIFS, preamble and the bytes with FCS. OFDM: 10 + 6 us of SIFS and extension, 20 us of
/// preamble, symbols of 4 us. DSSS: 10 us, a short preamble of 96 us in any case, bits.
pub(super) fn duration_us(rate: PhyRate, bytes: u32) -> u32 {
    let bits = 8 * (bytes + 4);
    let kbps = rate.kbps() as u32;
    if rate.is_ofdm() {
        16 + 20 + 4 * ((16 + bits + 6) * 1000).div_ceil(4 * kbps)
    } else {
        10 + 96 + (bits * 1000).div_ceil(kbps)
    }
}

/// Each number below `length` gets a random place, or the next free one after it.
pub(super) fn permutation(length: usize, stream: &mut ChaCha8Rng) -> Vec<u8> {
    const FREE: u8 = u8::MAX;
    let mut places = vec![FREE; length];
    for number in 0..length {
        let mut place = (number + stream.next_u32() as usize % 256) % length;
        while places[place] != FREE {
            place = (place + 1) % length;
        }
        places[place] = number as u8;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::super::{RateSet, Standard};
    use super::*;
    use crate::random::{Streams, happens};
    use lasthop_units::Probability;

    impl Minstrel {
        fn rate(&self) -> PhyRate {
            PhyRate::ALL[self.mode().index()]
        }

        fn next_rate(&mut self) -> PhyRate {
            PhyRate::ALL[self.next(Time::ZERO).mode.index()]
        }
    }

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn minstrel(standard: Standard, set: RateSet, seed: u64) -> Minstrel {
        let highest = if standard == Standard::B { PhyRate::Mbps11 } else { PhyRate::Mbps54 };
        let stream = Streams::new(seed).stream("wifi/minstrel/0/up");
        Minstrel::of(&Ladder::new(standard, set, highest), standard == Standard::Bg, stream)
    }

    fn g() -> Minstrel {
        minstrel(Standard::G, RateSet::Ofdm, 1)
    }

    /// As if each rate of 802.11g had succeeded with this percentage; measured twice, so that both ways of averaging
    /// count.
    fn measured(percents: [u32; 8]) -> Minstrel {
        let mut minstrel = g();
        for round in 1..=2 {
            for (state, percent) in minstrel.rates.iter_mut().zip(percents) {
                state.attempts = 100;
                state.successes = percent;
            }
            minstrel.update(ms(100 * round));
        }
        minstrel
    }

    fn state(minstrel: &Minstrel, rate: PhyRate) -> &RateState {
        minstrel.rates.iter().find(|state| state.rate == rate).unwrap()
    }

    /// The retry chain in Mb/s and transmissions.
    fn chain(minstrel: &Minstrel, chain: [Attempts; 4]) -> [(u64, u8); 4] {
        chain.map(|place| (minstrel.rates[usize::from(place.rate)].rate.kbps() / 1000, place.tries))
    }

    #[test]
    fn a_quarter_of_what_is_new_goes_into_the_average() {
        // In 65536ths: 8 of 10 = 52428.8, rounded down, and taken whole. 5 of 10 = 32768:
        // 52428 - 19660 × 32 / 128 = 52428 - 4915. 10 of 10: 47513 + 18023 × 32 / 128 = 47513 + 4505.75. Nothing sent:
        // as it was.
        let mut minstrel = g();
        for (successes, attempts, expected) in [(8, 10, 52_428), (5, 10, 47_513), (10, 10, 52_018), (0, 0, 52_018)] {
            let state = &mut minstrel.rates[3];
            (state.attempts, state.successes) = (attempts, successes);
            state.update();
            assert_eq!(state.share(), Share(expected), "after {successes} of {attempts}");
        }
        assert_eq!(minstrel.rates[3].skipped, 1);
    }

    #[test]
    fn durations_are_those_of_mac80211() {
        // 1204 B = 9632 bits. OFDM: 36 + 4 ceil((9632 + 22) / (4 R)): 54: 44.7 symbols, 48: 50.3, 36: 67.04, 24: 100.6,
        // 18: 134.1, 12: 201.1, 9: 268.2, 6: 402.3. DSSS: 106 + ceil(9632 / R): 875.6, 1751.3, 4816, 9632.
        let expected = [9738, 4922, 1858, 1648, 1112, 982, 844, 576, 440, 308, 240, 216];
        assert_eq!(PhyRate::ALL.map(|rate| duration_us(rate, FRAME_BYTES)), expected);
        // 14 B: 112 + 22 bits: 0.6 symbols at 54 Mb/s, 5.6 at 6.
        assert_eq!([PhyRate::Mbps54, PhyRate::Mbps6].map(|rate| duration_us(rate, ACK_BYTES)), [40, 60]);
    }

    #[test]
    fn a_place_in_the_chain_lasts_six_milliseconds() {
        // With 216 + 60 us, then per retry 216 + 40 + 4.5 CW: 67, 139, 283, 571, 1147,
        // 2299 (rounded down) of backoff at 54 Mb/s: 276, 599, 994, 1533, 2360, 3763, 6318: six transmissions.
        // At 6 Mb/s 1648 + 60 each: 1708, 3483, 5330, 7321: three. At 1 Mb/s (ACK 106 + 112) one is too long already.
        assert_eq!(retries(PhyRate::Mbps54, 60).0, 6);
        assert_eq!(retries(PhyRate::Mbps6, 60).0, 3);
        assert_eq!(retries(PhyRate::Mbps1, 218), (1, 1));
        // Protected, 60 us more each and without the first 276: 383, 838, 1437, 2324, 3787, 6402: six again;
        // at 6 Mb/s 1835, 3742, 5793: counted after each that fits, four.
        assert_eq!((retries(PhyRate::Mbps54, 60).1, retries(PhyRate::Mbps6, 60).1), (6, 4));
    }

    #[test]
    fn throughput_is_probability_over_time() {
        // 90 % (58982) at 54 Mb/s: 100000 × (58982 / 216 = 273) >> 16 = 416; at 48: 245 -> 373. Above 90 % no better.
        // 50 %: 32768 / 216 = 151 -> 230. Under 10 % nothing.
        let throughput = |percent, rate| state(&measured([percent; 8]), rate).throughput();
        assert_eq!(throughput(90, PhyRate::Mbps54), 416);
        assert_eq!(throughput(100, PhyRate::Mbps54), 416);
        assert_eq!(throughput(90, PhyRate::Mbps48), 373);
        assert_eq!(throughput(50, PhyRate::Mbps54), 230);
        assert_eq!(throughput(9, PhyRate::Mbps54), 0);
    }

    #[test]
    fn the_chain_is_best_second_most_probable_lowest() {
        // P / T per ms: 54: 0.3 / 216 = 1.39, 48: 0.5 / 240 = 2.08, 36: 0.8 / 308 = 2.60, 24: 0.85 / 440 = 1.93, 18:
        // 0.9 / 576 = 1.56. None has 95 %: the most probable is the last of those with 94 %, 12 Mb/s.
        // All are between 10 and 95 %: whole retries.
        let mut minstrel = measured([94, 94, 94, 90, 85, 80, 50, 30]);
        minstrel.samples = 100;
        let plain = minstrel.choose_chain();
        let retries = |rate| retries(rate, 60).0;
        assert_eq!(
            chain(&minstrel, plain),
            [
                (36, retries(PhyRate::Mbps36)),
                (48, retries(PhyRate::Mbps48)),
                (12, retries(PhyRate::Mbps12)),
                (6, MAX_RETRY)
            ]
        );
        // With several above 95 % the fastest of them; what is almost certain is tried twice.
        let mut minstrel = measured([100, 100, 100, 100, 96, 80, 50, 5]);
        minstrel.samples = 100;
        let plain = minstrel.choose_chain();
        assert_eq!(chain(&minstrel, plain)[2..], [(24, 2), (6, MAX_RETRY)]);
        assert_eq!(state(&minstrel, PhyRate::Mbps54).retries_now, 2, "so is what hardly works");
        // The fastest of all is the best and the most probable, the one below it the second.
        let mut minstrel = measured([100; 8]);
        minstrel.samples = 100;
        let plain = minstrel.choose_chain();
        assert_eq!(chain(&minstrel, plain), [(54, 2), (48, 2), (54, 2), (6, MAX_RETRY)]);
        // If nothing works, everything goes to the lowest rate: half of its three tries, rounded down.
        let mut minstrel = measured([0; 8]);
        minstrel.samples = 100;
        let plain = minstrel.choose_chain();
        assert_eq!(chain(&minstrel, plain)[..2], [(6, 1), (6, 1)]);
    }

    #[test]
    fn a_frame_goes_down_its_chain_until_it_is_given_up() {
        let mut minstrel = measured([100, 100, 100, 100, 96, 80, 50, 30]);
        minstrel.samples = 100;
        let mut sent = Vec::new();
        for transmission in 1..=16 {
            sent.push(minstrel.next_rate().kbps() / 1000);
            minstrel.on_failure(ms(201), 1, transmission == 16);
        }
        // 36 × 5 (308 + 60 us, 348 + 67, 139, 283, 571, 1147, 2299: 368, 783, 1270, 1901, 2820, 4315, 6962: six),
        // 48 × 6 (240 + 60, 280 + ...: 300, 647, 1066, 1629, 2480, 3907, 6486), 24 × 2, 6 to the end.
        let expected: Vec<u64> =
            [(36, 6), (48, 6), (24, 2), (6, 2)].into_iter().flat_map(|(rate, times)| vec![rate; times]).collect();
        assert_eq!(sent, expected);
        assert_eq!(state(&minstrel, PhyRate::Mbps36).attempts, 6);
        assert_eq!(minstrel.next_rate(), PhyRate::Mbps36, "the next frame begins at the top");
    }

    #[test]
    fn a_lost_rts_goes_down_the_chain_and_is_no_attempt() {
        let mut minstrel = measured([100, 100, 100, 100, 96, 80, 50, 30]);
        minstrel.samples = 100;
        let rates: Vec<_> = (0..7)
            .map(|_| {
                let rate = minstrel.next_rate();
                minstrel.on_rts_lost(ms(1), 1);
                rate
            })
            .collect();
        assert_eq!((rates[5], rates[6]), (PhyRate::Mbps36, PhyRate::Mbps48));
        assert_eq!(state(&minstrel, PhyRate::Mbps36).attempts, 0);
    }

    #[test]
    fn a_frame_that_is_never_given_up_stays_at_the_lowest_rate() {
        let mut minstrel = g();
        for _ in 0..1_000 {
            minstrel.next_rate();
            minstrel.on_failure(ms(1), 1, false);
        }
        assert_eq!(minstrel.next_rate(), PhyRate::Mbps6);
        minstrel.on_success(ms(2), 1, 1);
    }

    #[test]
    fn probabilities_move_every_100_ms_when_a_frame_is_over() {
        let mut minstrel = g();
        minstrel.next_rate();
        minstrel.on_success(ms(100), 1, 1);
        assert_eq!(minstrel.updated, Time::ZERO);
        minstrel.next_rate();
        minstrel.on_failure(ms(150), 1, false);
        assert_eq!(minstrel.updated, Time::ZERO, "it will be sent again");
        minstrel.next_rate();
        minstrel.on_failure(ms(160), 1, true);
        assert_eq!(minstrel.updated, ms(160));
    }

    /// The frames of a run.
    #[derive(Default, Debug)]
    struct Sent {
        /// By rate: frames first sent at it.
        first: [u32; PhyRate::ALL.len()],
        samples: u32,
        /// Samples right after another.
        in_a_row: u32,
    }

    impl Sent {
        fn frames(&self) -> f64 {
            self.first.iter().sum::<u32>().into()
        }

        fn share(&self, rate: PhyRate) -> f64 {
            f64::from(self.first[rate as usize]) / self.frames()
        }
    }

    /// Sends frames for this long over an unshared channel, where a transmission succeeds with its rate's probability.
    fn send(minstrel: &mut Minstrel, now: &mut Time, milliseconds: u64, success: impl Fn(PhyRate) -> f64) -> Sent {
        let mut stream = Streams::new(5).stream("channel");
        let end = *now + Span::from_millis(milliseconds);
        let mut sent = Sent::default();
        while *now < end {
            let after_sample = minstrel.last_was_sample;
            for transmission in 1..=7 {
                let rate = minstrel.next_rate();
                if transmission == 1 {
                    sent.first[rate as usize] += 1;
                    sent.samples += u32::from(minstrel.last_was_sample);
                    sent.in_a_row += u32::from(after_sample && minstrel.last_was_sample);
                }
                // 1200 bytes and some 100 us of spaces and backoff.
                *now += Span::from_micros(u64::from(duration_us(rate, FRAME_BYTES)) + 100);
                if happens(Probability::new(success(rate)).unwrap(), &mut stream) {
                    minstrel.on_success(*now, 1, 1);
                    break;
                }
                minstrel.on_failure(*now, 1, transmission == 7);
            }
        }
        sent
    }

    #[test]
    fn it_finds_the_rate_with_the_best_throughput() {
        // By rate, ascending, how often a transmission succeeds. P / T as in `the_chain_is_...`, per ms; the second:
        // 36 2.60, 48 2.08; the third: 12 1.07, 9 and 6 less; the last: 54 2.78, 36 2.34, 48 2.25.
        // Now and then a few lucky samples make another rate look better until it is used.
        let cases = [
            ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], PhyRate::Mbps54),
            ([1.0, 1.0, 1.0, 1.0, 0.95, 0.8, 0.5, 0.1], PhyRate::Mbps36),
            ([1.0, 1.0, 0.9, 0.5, 0.1, 0.0, 0.0, 0.0], PhyRate::Mbps12),
            ([0.9, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], PhyRate::Mbps6),
            ([0.75, 0.75, 0.75, 0.75, 0.75, 0.72, 0.54, 0.6], PhyRate::Mbps54),
        ];
        for (successes, best) in cases {
            for seed in 1..=5 {
                let mut minstrel = minstrel(Standard::G, RateSet::Ofdm, seed);
                let success = |rate| successes[minstrel_index(rate)];
                let mut now = Time::ZERO;
                send(&mut minstrel, &mut now, 2_000, success);
                let sent = send(&mut minstrel, &mut now, 20_000, success);
                let share = sent.share(best);
                println!("{best}, seed {seed}: {:.1} % of the frames begin there", 100.0 * share);
                assert!(share > 0.65, "{best}, seed {seed}: {sent:?}");
            }
        }
    }

    fn minstrel_index(rate: PhyRate) -> usize {
        PhyRate::ALL.into_iter().filter(|rate| rate.is_ofdm()).position(|ofdm| ofdm == rate).unwrap()
    }

    #[test]
    fn it_follows_a_channel_that_changes() {
        let mut minstrel = g();
        let mut now = Time::ZERO;
        assert_eq!(minstrel.next_rate(), minstrel.rates[usize::from(minstrel.sample_table[0][0])].rate);
        assert_eq!(minstrel.rate(), PhyRate::Mbps6, "it begins at the lowest rate");
        send(&mut minstrel, &mut now, 1_000, |_| 1.0);
        assert_eq!(minstrel.rate(), PhyRate::Mbps54);
        // 0.75^9 = 7.5 %: nine intervals until 54 Mb/s counts for nothing,
        // but 24 Mb/s is better after four (32 % / 216 < 90 % / 440).
        let up_to_24 = |rate| if rate <= PhyRate::Mbps24 { 1.0 } else { 0.0 };
        send(&mut minstrel, &mut now, 2_000, up_to_24);
        assert_eq!(minstrel.rate(), PhyRate::Mbps24);
        send(&mut minstrel, &mut now, 10_000, |_| 1.0);
        assert_eq!(minstrel.rate(), PhyRate::Mbps54);
    }

    fn samples(standard: Standard, successes: [f64; 8]) -> Sent {
        let mut minstrel = minstrel(standard, RateSet::Ofdm, 1);
        let mut now = Time::ZERO;
        send(&mut minstrel, &mut now, 1_000, |rate| successes[minstrel_index(rate)]);
        send(&mut minstrel, &mut now, 20_000, |rate| successes[minstrel_index(rate)])
    }

    #[test]
    fn a_tenth_of_the_frames_sample() {
        for successes in [[1.0; 8], [1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.5, 0.2]] {
            let sent = samples(Standard::G, successes);
            let share = f64::from(sent.samples) / sent.frames();
            println!("{share:.4} of the frames sample");
            assert!((0.095..0.105).contains(&share), "{successes:?}: {share}");
        }
    }

    #[test]
    fn behind_protection_a_twentieth_is_meant_to_sample() {
        // Rates with P > 95 % are counted as samples and not sent, so there are fewer in the end.
        let sent = samples(Standard::Bg, [0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.5, 0.2]);
        let share = f64::from(sent.samples) / sent.frames();
        println!("{share:.4} of the frames sample");
        assert!((0.01..0.0525).contains(&share), "{share}");
        assert_eq!(sent.in_a_row, 0);
    }

    #[test]
    fn behind_protection_what_surely_works_is_not_sampled() {
        let sent = samples(Standard::Bg, [1.0; 8]);
        assert!(sent.share(PhyRate::Mbps54) > 0.999, "{sent:?}");
    }

    /// Whether each of the next frames samples.
    fn next_frames(minstrel: &mut Minstrel, count: usize) -> Vec<bool> {
        let frames = (0..count).map(|_| {
            minstrel.choose_chain();
            minstrel.last_was_sample
        });
        frames.collect()
    }

    #[test]
    fn samples_in_arrears_are_made_up_for_by_two_rounds_at_most() {
        // 5000 frames without samples: 500 are due, 16 of them are kept, and one when none is due;
        // then every tenth frame.
        let mut minstrel = measured([50; 8]);
        minstrel.packets = 5000;
        let sampled = next_frames(&mut minstrel, 1000);
        assert_eq!(sampled.iter().take_while(|&&sample| sample).count(), 18);
        assert_eq!(sampled[100..].iter().filter(|&&sample| sample).count(), 90);
        // Behind protection every second frame at most.
        minstrel.protected = true;
        minstrel.packets = 5000;
        minstrel.samples = 0;
        let sampled = next_frames(&mut minstrel, 20);
        assert_eq!(sampled.iter().filter(|&&sample| sample).count(), 10);
    }

    #[test]
    fn what_hardly_works_is_sampled_four_times_an_interval() {
        // 36, 48 and 54 Mb/s never work. The others are slower than the best, 24, and so are sampled in the second
        // place.
        let mut minstrel = measured([100, 100, 100, 100, 100, 0, 0, 0]);
        let mut sampled = [0; 8];
        for _ in 0..2000 {
            if let Some((0, place)) = minstrel.choose_sample() {
                sampled[usize::from(place.rate)] += 1;
            }
        }
        // The best itself is not slower than itself.
        assert_eq!(sampled, [0, 0, 0, 0, 4, 4, 4, 4]);
    }

    #[test]
    fn behind_protection_a_sample_is_sent_twice_at_least() {
        // 6 Mb/s: 3 / 2 = 1 where it hardly works. 54 Mb/s: 6, as often as with the times of a CTS.
        let mut minstrel = measured([0, 50, 50, 50, 50, 50, 50, 50]);
        minstrel.protected = true;
        minstrel.sample_table[0] = vec![0, 7, 1, 2, 3, 4, 5, 6];
        assert_eq!(minstrel.choose_sample(), Some((0, Attempts { rate: 0, tries: 2 })));
        minstrel.last_was_sample = false;
        minstrel.samples = 0;
        assert_eq!(minstrel.choose_sample(), Some((0, Attempts { rate: 7, tries: 6 })));
    }

    #[test]
    fn slower_rates_are_sampled_where_they_cost_nothing() {
        // All rates work and 54 Mb/s is the best. Frames are first sent at that, except samples of rates not tried for
        // 20 intervals.
        let mut minstrel = g();
        let mut now = Time::ZERO;
        send(&mut minstrel, &mut now, 1_000, |_| 1.0);
        let sent = send(&mut minstrel, &mut now, 20_000, |_| 1.0);
        let others = sent.frames() - f64::from(sent.first[PhyRate::Mbps54 as usize]);
        println!("{others} frames of {} began at other rates", sent.frames());
        // 200 intervals; in every 21st each of the 7 other rates at most 4 times, as they have P > 95 %.
        assert!((7.0..=7.0 * 4.0 * 200.0 / 21.0).contains(&others), "{sent:?}");
    }

    #[test]
    fn each_column_of_the_sample_table_is_a_permutation_of_its_own() {
        let minstrel = minstrel(Standard::G, RateSet::All, 1);
        for column in &minstrel.sample_table {
            let mut sorted = column.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..12).collect::<Vec<u8>>());
        }
        let mut distinct = minstrel.sample_table.to_vec();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), SAMPLE_COLUMNS);
        assert_eq!(minstrel.sample_table, super::tests::minstrel(Standard::G, RateSet::All, 1).sample_table);
        assert_ne!(minstrel.sample_table, super::tests::minstrel(Standard::G, RateSet::All, 2).sample_table);
    }
}
