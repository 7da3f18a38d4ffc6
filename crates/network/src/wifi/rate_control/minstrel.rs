//! Minstrel: measure what each rate delivers, send at the best, look around now and then.
//!
//! Models the rate control for stations without 802.11n of Linux's mac80211, as of Linux 4.4:
//! 1. Every 100 ms each rate's share of acknowledged transmissions goes into its probability P by an EWMA: a quarter of the
//!    new value, three quarters of the old one. The first measurement counts whole.
//! 2. A rate's throughput is P / T, T being the time of 1200 bytes at that rate; 0 for P under 10 %; P counts as 90 % above.
//! 3. A frame is sent by a retry chain: the best throughput, the second best, the best P (of those with P >= 95 %, if any, the
//!    fastest), the lowest rate; each as often as fits into 6 ms with growing contention windows, but at most twice where
//!    P > 95 % or P < 10 %. The medium's retry limit ends the chain wherever it is.
//! 4. 10 % of the frames are for sampling, each with the next rate of a table of ten random permutations. A rate faster than
//!    the best takes the first place in the chain; a slower one the second, where it is tried only if the best fails, unless
//!    it has not been tried for 20 intervals. Rates with P > 95 % or P < 10 % take the first place at most 4 times per interval.
//! 5. Behind a CTS-to-self (802.11bg) 5 % sample, always in the first place, never two in a row, and not what has P > 95 %.
//!
//! It starts at the lowest rate, with no measurements. What was lost in a collision counts against a rate as in any other; but
//! as collisions hit all rates alike, they do not change which is best.
//!
//! Leaves out: RTS; the counters of samples in flight, as one frame is in flight here; the clock's granularity. Linux does not
//! count a success of the chain's last place, for an array's end; here it counts.
//!
//! References: Linux 4.4, net/mac80211/rc80211_minstrel.c, and util.c for durations; D. Smithies, F. Fietkau: The Minstrel rate
//! control algorithm for mac80211, Linux wireless documentation.

use super::Ladder;
use crate::wifi::constants::{PhyRate, Standard};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use units::{Span, Time};

/// `update_interval`: how often probabilities are updated.
const UPDATE_INTERVAL: Span = Span::from_millis(100);
/// `EWMA_LEVEL` of `EWMA_DIV`: 96 of 128 for the old value.
const EWMA_OLD: i64 = 96;
const EWMA_DIVISOR: i64 = 128;
/// `lookaround_rate_mrr`, `lookaround_rate`: the frames in a hundred that sample, with the whole chain and behind protection.
const LOOKAROUND_PERCENT: i64 = 10;
const LOOKAROUND_PROTECTED_PERCENT: i64 = 5;
/// `SAMPLE_COLUMNS`: how many permutations are in the sample table.
const SAMPLE_COLUMNS: usize = 10;
/// `segment_size`: how long one place in the chain may last, us.
const SEGMENT_US: u32 = 6000;
/// `max_retry`: how many transmissions one place in the chain may have.
const MAX_RETRY: u8 = 7;
/// `packet_count` at which the count of samples begins anew.
const PACKETS_OF_A_COUNT: i64 = 10_000;
/// `sample_skipped`: updates without a transmission after which a slow rate is sampled in the first place.
const SKIPPED: u32 = 20;
/// `sample_limit`: how often a rate that is almost certain to work, or not to, is sampled between updates.
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
    /// Everything is behind a CTS-to-self.
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
    /// Updates since it was tried.
    skipped: u32,
    /// How often it may still be sampled in the first place before the next update; `None` = no limit.
    samples_left: Option<u8>,
}

/// The frame being sent, or sent again.
#[derive(Clone, Copy, Debug)]
struct Frame {
    chain: [Place; 4],
    place: usize,
    /// Transmissions at this place.
    tries: u8,
}

/// One place in the retry chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    rate: u8,
    tries: u8,
}

impl Minstrel {
    pub(super) fn new(ladder: &Ladder, standard: Standard, mut stream: ChaCha8Rng) -> Self {
        let rates = &ladder.rates[..usize::from(ladder.length)];
        let lowest_ack_us = duration_us(rates[0], ACK_BYTES);
        let sample_table = std::array::from_fn(|_| permutation(rates.len(), &mut stream));
        Self {
            rates: rates.iter().map(|&rate| RateState::new(rate, lowest_ack_us)).collect(),
            protected: standard == Standard::Bg,
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

    /// The best rate so far.
    pub(super) fn rate(&self) -> PhyRate {
        self.rates[usize::from(self.best[0])].rate
    }

    /// The rate of the transmission that begins now.
    pub(super) fn next_rate(&mut self) -> PhyRate {
        let frame = match self.frame {
            Some(frame) => frame,
            None => Frame { chain: self.choose_chain(), place: 0, tries: 0 },
        };
        self.frame = Some(frame);
        self.rates[usize::from(frame.chain[frame.place].rate)].rate
    }

    pub(super) fn on_success(&mut self, now: Time) {
        let frame = self.frame.take().expect("only what was sent is acknowledged");
        let state = &mut self.rates[usize::from(frame.chain[frame.place].rate)];
        state.attempts += 1;
        state.successes += 1;
        self.on_frame_over(now);
    }

    pub(super) fn on_failure(&mut self, now: Time, given_up: bool) {
        let frame = self.frame.as_mut().expect("only what was sent fails");
        let place = frame.chain[frame.place];
        self.rates[usize::from(place.rate)].attempts += 1;
        frame.tries += 1;
        if frame.tries >= place.tries && frame.place + 1 < frame.chain.len() {
            frame.place += 1;
            frame.tries = 0;
        }
        if given_up {
            self.frame = None;
            self.on_frame_over(now);
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
        // The lowest rate fills both places; a later rate needs more throughput than what it displaces.
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

    fn choose_chain(&mut self) -> [Place; 4] {
        let place = |rate: u8| {
            let state = &self.rates[usize::from(rate)];
            Place { rate, tries: if self.protected { state.retries_protected } else { state.retries_now } }
        };
        let [best, second] = self.best;
        let lowest = Place { rate: 0, tries: MAX_RETRY };
        let mut chain = [place(best), place(second), place(self.most_probable), lowest];
        if let Some((at, sample)) = self.choose_sample() {
            chain[at] = sample;
        }
        chain
    }

    /// The rate to sample with this frame, and at which place in the chain.
    fn choose_sample(&mut self) -> Option<(usize, Place)> {
        self.packets += 1;
        let percent = if self.protected { LOOKAROUND_PROTECTED_PERCENT } else { LOOKAROUND_PERCENT };
        let due = self.packets * percent / 100 - self.samples;
        let last_was_sample = std::mem::take(&mut self.last_was_sample);
        if due < 0 || (self.protected && last_was_sample) {
            return None;
        }
        // A backlog of samples is forgotten but for two rounds.
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
        Some((at, Place { rate, tries }))
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

/// What times are worked out for.
const FRAME_BYTES: u32 = 1200;
const ACK_BYTES: u32 = 10;

/// How often a frame can be sent within `SEGMENT_US`, without and with a CTS-to-self before each transmission.
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

/// `ieee80211_frame_duration`: SIFS, preamble and so many bytes with FCS. OFDM: 10 + 6 us of SIFS and extension, 20 us of preamble,
/// symbols of 4 us; DSSS: 10 us, a short preamble of 96 us whatever is in use, bits.
fn duration_us(rate: PhyRate, bytes: u32) -> u32 {
    let bits = 8 * (bytes + 4);
    let kbps = rate.kbps() as u32;
    if rate.is_ofdm() {
        16 + 20 + 4 * ((16 + bits + 6) * 1000).div_ceil(4 * kbps)
    } else {
        10 + 96 + (bits * 1000).div_ceil(kbps)
    }
}

/// Each number below `length` goes to a random place, or the next free one after it.
fn permutation(length: usize, stream: &mut ChaCha8Rng) -> Vec<u8> {
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
