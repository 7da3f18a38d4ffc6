//! Minstrel for A-MPDUs: measures each mode's throughput, sends at the best, and samples others.
//!
//! Models the rate control of Linux's mac80211 for stations of 802.11n and 802.11ac:
//! 1. Modes with equal width and streams are a group. Each frame of an A-MPDU counts as one attempt, each acknowledged
//!    one as a success. So a collision counts as the loss of all frames, holes as that of some.
//! 2. Every 50 ms the share of successes in this and the previous interval enters a mode's probability P by a low-pass
//!    filter of second order. The first share counts whole. A mode without attempts has the greatest P of the faster
//!    modes of its group.
//! 3. A mode's throughput is P / (overhead / A-MPDU length + T), where T is the time of 1200 bytes within 16 such
//!    packets; 0 for P under 10 %; P counts at most 90 %.
//! 4. A transmission goes by a chain: the best throughput, the second best, the most probable. The most probable has
//!    fewer streams than the best, if any has. Among modes with P above 75 % it is the one with the best throughput.
//!    Each is tried at least twice, and as often as fits into 6 ms with growing contention windows, at most 7 times;
//!    twice for P under 20 %. All but the first are behind RTS and CTS. A response ends the chain, even one with
//!    holes; so does its last failure. A lost RTS counts as the failure of all frames, which ath9k does not count.
//! 5. Sudden death: if more than 30 attempts of the best or second best since the last update succeeded to less than a
//!    quarter, the best of the next group without more streams takes its place at once.
//! 6. At most every 20 ms a sample takes the first place in the chain, for one try. It has only one frame, also when
//!    it is repeated. Samples are in turn INC, JUMP, INC, JUMP, INC, SLOW, each from a list of at most five. INC: of
//!    each group the slowest mode faster than the best. JUMP: a random faster one. SLOW: one between the fastest and
//!    the slowest of the chain, unless its P is above 95 %.
//!
//! It starts at the slowest mode, with no measurements.
//!
//! Leaves out: other guard intervals than the configured one; DSSS and OFDM rates; the clock's granularity; the limit
//! of A-MSDUs; the fourth place of a chain. The chain is that of hardware with three rates: Linux fills up to four
//! places, with a third best. Linux has no groups of 802.11ax, whose hardware chooses by itself: here it has groups
//! as well.
//!
//! References: Linux, net/mac80211/rc80211_minstrel_ht.c (read for the facts, not copied): 6.18 for the shares, the
//! throughput and the intervals; a copy of unknown version since 5.12 for the chain, the lists of samples and the
//! sudden death.

use super::minstrel::{ACK_BYTES, duration_us, permutation};
use super::{Controller, Decision, Setup};
use crate::config::WifiConfig;
use crate::wifi::airtime::{AirTimes, ModeId, packet_within_16};
use crate::wifi::constants::PhyRate;
use lasthop_units::{Span, Time};
use rand_chacha::ChaCha8Rng;

const UPDATE_INTERVAL: Span = Span::from_millis(50);
const SAMPLE_INTERVAL: Span = Span::from_millis(20);
/// The filter's coefficients for the last two outputs.
const FILTER: [f64; 2] = [0x1499 as f64 / 4096.0, -(0x92e as f64) / 4096.0];
/// The least P of a mode that was tried, and the resolution of Linux.
const LEAST_SHARE: f64 = 1.0 / 4096.0;
/// The share of a new value in the mean length of A-MPDUs.
const NEW_LENGTH: f64 = 0.25;
/// The most time for one place in the chain.
const SEGMENT_US: f64 = 6000.0;
const MAX_TRIES: u8 = 7;
const SLOT_US: f64 = 9.0;
const SAMPLES: usize = 5;
/// The kinds of samples in turn.
const TURNS: [Kind; 6] = [Kind::Inc, Kind::Jump, Kind::Inc, Kind::Jump, Kind::Inc, Kind::Slow];
const SAMPLE_COLUMNS: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Inc,
    Jump,
    Slow,
}

#[derive(Clone, Debug)]
pub(crate) struct MinstrelHt {
    /// Those of a group follow each other, ascending.
    rates: Vec<Rate>,
    /// By width, then by streams, ascending.
    groups: Vec<Group>,
    overhead_us: f64,
    /// With RTS and CTS.
    protected_overhead_us: f64,
    best: [usize; 2],
    most_probable: usize,
    /// The mean number of frames in an A-MPDU.
    length: f64,
    /// Frames and transmissions since the last update.
    frames: u32,
    transmissions: u32,
    updated: Time,
    next_sample: Time,
    turn: usize,
    /// By kind: samples to come.
    samples: [Vec<usize>; 3],
    /// By kind: the group that gave the last one.
    last_groups: [usize; 3],
    /// By column: a permutation of MCSs.
    sample_table: Vec<Vec<u8>>,
    exchange: Option<Exchange>,
}

#[derive(Clone, Debug)]
struct Group {
    streams: u8,
    /// The first rate, and the one after the last.
    from: usize,
    to: usize,
    best: [usize; 2],
    most_probable: usize,
    /// The place in the sample table.
    column: usize,
    row: usize,
}

#[derive(Clone, Debug)]
struct Rate {
    mode: ModeId,
    mcs: u8,
    group: usize,
    /// T.
    time_us: f64,
    /// P and its predecessor; 0 before the first measurement or estimate.
    probability: [f64; 2],
    was_tried: bool,
    now: Count,
    last: Count,
}

#[derive(Clone, Copy, Default, Debug)]
struct Count {
    attempts: u32,
    successes: u32,
}

/// A transmission and its repeats, until a response or the end of the chain.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    chain: [Attempts; 3],
    is_sample: bool,
    place: usize,
    /// Transmissions at this place.
    tries: u8,
}

/// One step of the chain.
#[derive(Clone, Copy, Debug)]
struct Attempts {
    rate: usize,
    tries: u8,
}

impl Controller for MinstrelHt {
    /// The best mode so far.
    fn mode(&self) -> ModeId {
        self.rates[self.best[0]].mode
    }

    /// The mode of the transmission that begins now.
    fn next(&mut self, now: Time) -> Decision {
        let exchange = self.exchange.unwrap_or_else(|| self.begin(now));
        self.exchange = Some(exchange);
        let mode = self.rates[exchange.chain[exchange.place].rate].mode;
        Decision { mode, rts: exchange.place > 0, alone: exchange.is_sample }
    }

    /// A transmission of this many frames had a response, which acknowledges so many.
    fn on_success(&mut self, now: Time, frames: u32, acknowledged: u32) {
        let exchange = self.exchange.take().expect("only what was sent is acknowledged");
        let count = &mut self.rates[exchange.chain[exchange.place].rate].now;
        count.attempts += frames;
        count.successes += acknowledged;
        self.on_exchange_over(now, frames);
    }

    /// A transmission of this many frames had no response. `given_up`: its chain ends.
    fn on_failure(&mut self, now: Time, frames: u32, given_up: bool) {
        let exchange = self.exchange.as_mut().expect("only what was sent fails");
        let step = exchange.chain[exchange.place];
        self.rates[step.rate].now.attempts += frames;
        exchange.tries += 1;
        if exchange.tries >= step.tries {
            exchange.place += 1;
            exchange.tries = 0;
        }
        if given_up || exchange.place == exchange.chain.len() {
            self.exchange = None;
            self.on_exchange_over(now, frames);
        }
    }

    /// It counts: it goes as wide as its data and slower, so a mode whose RTS nobody hears is in vain. Linux's
    /// rate_fixup_ratelist() leaves it at the lowest rate. Collisions hit the RTS of all modes alike.
    fn on_rts_lost(&mut self, now: Time, frames: u32) {
        self.on_failure(now, frames, false);
    }
}

impl MinstrelHt {
    /// It starts at the slowest mode.
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        Self::of(setup.times, setup.own, (setup.stream)("minstrel-ht"))
    }

    fn of(times: &AirTimes, own: &WifiConfig, mut stream: ChaCha8Rng) -> Self {
        let mut rates: Vec<Rate> = Vec::new();
        let mut groups: Vec<Group> = Vec::new();
        let mut last = None;
        let mut choices: Vec<_> = times.choices(own).collect();
        choices.sort_by_key(|(_, modulation)| (modulation.width, modulation.spatial_streams, modulation.mcs));
        for (mode, modulation) in choices {
            let here = rates.len();
            if last.replace((modulation.width, modulation.spatial_streams))
                != Some((modulation.width, modulation.spatial_streams))
            {
                groups.push(Group {
                    streams: modulation.spatial_streams,
                    from: here,
                    to: here,
                    best: [here; 2],
                    most_probable: here,
                    column: 0,
                    row: 0,
                });
            }
            let group = groups.len() - 1;
            groups[group].to += 1;
            rates.push(Rate {
                mode,
                mcs: modulation.mcs,
                group,
                time_us: packet_within_16(own.standard, modulation).as_secs_f64() * 1e6,
                probability: [0.0; 2],
                was_tried: false,
                now: Count::default(),
                last: Count::default(),
            });
        }
        let mcss = rates.iter().map(|rate| usize::from(rate.mcs) + 1).max().unwrap_or(0);
        let acknowledgement = f64::from(duration_us(PhyRate::Mbps6, ACK_BYTES));
        let overhead_us = f64::from(duration_us(PhyRate::Mbps6, 0)) + acknowledgement;
        let mut this = Self {
            rates,
            groups,
            overhead_us,
            protected_overhead_us: overhead_us + 2.0 * acknowledgement,
            best: [0; 2],
            most_probable: 0,
            length: 1.0,
            frames: 0,
            transmissions: 0,
            updated: Time::ZERO,
            next_sample: Time::ZERO,
            turn: 0,
            samples: [Vec::new(), Vec::new(), Vec::new()],
            last_groups: [0; 3],
            sample_table: (0..SAMPLE_COLUMNS).map(|_| permutation(mcss, &mut stream)).collect(),
            exchange: None,
        };
        this.refill_samples();
        this
    }

    fn on_exchange_over(&mut self, now: Time, frames: u32) {
        self.frames += frames;
        self.transmissions += 1;
        for place in 0..2 {
            let rate = &self.rates[self.best[place]];
            if rate.now.attempts > 30 && rate.now.successes < rate.now.attempts / 4 {
                let streams = self.groups[rate.group].streams;
                let below = self.groups[..rate.group].iter().rev().find(|group| group.streams <= streams);
                self.best[place] = below.map_or(self.best[place], |group| group.best[place]);
            }
        }
        if now.saturating_since(self.updated) > UPDATE_INTERVAL {
            self.update(now);
        }
    }

    fn update(&mut self, now: Time) {
        if self.transmissions > 0 {
            let length = f64::from(self.frames) / f64::from(self.transmissions);
            self.length += NEW_LENGTH * (length - self.length);
            (self.frames, self.transmissions) = (0, 0);
        }
        self.best = [0; 2];
        for group in 0..self.groups.len() {
            let Group { from, to, .. } = self.groups[group];
            let mut of_group = [from; 2];
            let mut of_faster = 0.0_f64;
            for index in (from..to).rev() {
                of_faster = self.rates[index].update(of_faster);
                if self.throughput(index) > 0.0 {
                    of_group = self.with(of_group, index);
                    self.best = self.with(self.best, index);
                }
            }
            self.groups[group].best = of_group;
        }
        self.choose_most_probable();
        self.refill_samples();
        self.updated = now;
        self.next_sample = now;
    }

    /// The two best of these two and this one.
    fn with(&self, best: [usize; 2], index: usize) -> [usize; 2] {
        let value = |index: usize| (self.throughput(index), self.rates[index].share());
        if value(index) > value(best[0]) {
            [index, best[0]]
        } else if value(index) > value(best[1]) {
            [best[0], index]
        } else {
            best
        }
    }

    fn choose_most_probable(&mut self) {
        let best = &self.rates[self.best[0]];
        let (best_time, best_share, best_streams) = (best.time_us, best.share(), self.groups[best.group].streams);
        let mut of_all = 0;
        for group in 0..self.groups.len() {
            let Group { from, to, .. } = self.groups[group];
            let mut of_group = from;
            for index in from..to {
                let rate = &self.rates[index];
                if rate.time_us < best_time && rate.share() < best_share {
                    continue;
                }
                for most in [&mut of_group, &mut of_all] {
                    let is_better = if rate.share() > 0.75 {
                        self.throughput(index) > self.throughput(*most)
                    } else {
                        rate.share() > self.rates[*most].share()
                    };
                    if is_better {
                        *most = index;
                    }
                }
            }
            self.groups[group].most_probable = of_group;
        }
        let mut throughput = 0.0;
        for group in self.groups.iter().filter(|group| group.streams < best_streams) {
            if self.throughput(group.most_probable) > throughput {
                throughput = self.throughput(group.most_probable);
                of_all = group.most_probable;
            }
        }
        self.most_probable = of_all;
    }

    /// Packets per microsecond.
    fn throughput(&self, index: usize) -> f64 {
        let rate = &self.rates[index];
        if rate.share() < 0.1 {
            return 0.0;
        }
        rate.share().min(0.9) / (self.overhead_us / self.length.trunc() + rate.time_us)
    }

    fn begin(&mut self, now: Time) -> Exchange {
        let [best, second] = self.best;
        let sample = self.choose_sample(now);
        let first = match sample {
            Some(rate) => Attempts { rate, tries: 1 },
            None => Attempts { rate: best, tries: self.tries(best, self.overhead_us) },
        };
        let later = [second, self.most_probable]
            .map(|rate| Attempts { rate, tries: self.tries(rate, self.protected_overhead_us) });
        Exchange { chain: [first, later[0], later[1]], is_sample: sample.is_some(), place: 0, tries: 0 }
    }

    /// Transmissions at one place of the chain.
    fn tries(&self, index: usize, overhead_us: f64) -> u8 {
        let rate = &self.rates[index];
        if rate.share() < 0.2 {
            return 2;
        }
        let once = overhead_us + rate.time_us * self.length.trunc();
        let (mut tries, mut total, mut window) = (0, 0.0, 15_u32);
        while tries < MAX_TRIES {
            total += once + SLOT_US * f64::from(window) / 2.0;
            if tries >= 2 && total >= SEGMENT_US {
                break;
            }
            tries += 1;
            window = (2 * window + 1).min(1023);
        }
        tries
    }

    fn choose_sample(&mut self, now: Time) -> Option<usize> {
        if now < self.next_sample {
            return None;
        }
        self.next_sample = now + SAMPLE_INTERVAL;
        let kind = TURNS[self.turn];
        self.turn = (self.turn + 1) % TURNS.len();
        let samples = &mut self.samples[kind as usize];
        (!samples.is_empty()).then(|| samples.remove(0))
    }

    /// Drops samples that are no longer of their kind, and adds new ones.
    fn refill_samples(&mut self) {
        let times = [self.best[0], self.best[1], self.most_probable].map(|index| self.rates[index].time_us);
        let fastest = times.into_iter().fold(f64::INFINITY, f64::min);
        let slowest = times.into_iter().fold(0.0, f64::max);
        for kind in [Kind::Inc, Kind::Jump, Kind::Slow] {
            let rates = &self.rates;
            self.samples[kind as usize].retain(|&index| match kind {
                Kind::Slow => rates[index].time_us > fastest && rates[index].time_us < slowest,
                Kind::Inc | Kind::Jump => rates[index].time_us < fastest,
            });
        }
        while self.samples[Kind::Inc as usize].len() < SAMPLES
            && let Some(index) = self.next_inc(times[0])
        {
            self.samples[Kind::Inc as usize].push(index);
        }
        while self.samples[Kind::Jump as usize].len() < SAMPLES
            && let Some(index) = self.next_jump(fastest, slowest)
        {
            self.samples[Kind::Jump as usize].push(index);
        }
    }

    /// The slowest of the next group's that is faster than this.
    fn next_inc(&mut self, time_us: f64) -> Option<usize> {
        let last = self.last_groups[Kind::Inc as usize];
        for step in 1..=self.groups.len() {
            let group = (last + step) % self.groups.len();
            if let Some(index) = self.first_faster(group, time_us)
                && !self.samples[Kind::Inc as usize].contains(&index)
            {
                self.last_groups[Kind::Inc as usize] = group;
                return Some(index);
            }
        }
        None
    }

    /// A random one of the next group's that is faster than the fastest of the chain. Those between fastest and slowest
    /// that it meets become slow samples, if there is room.
    fn next_jump(&mut self, fastest: f64, slowest: f64) -> Option<usize> {
        let last = self.last_groups[Kind::Jump as usize];
        for step in 1..=self.groups.len() {
            let group = (last + step) % self.groups.len();
            let has_room = self.samples[Kind::Slow as usize].len() < SAMPLES;
            let limit = if has_room { slowest } else { fastest };
            let Some(first) = self.first_faster(group, limit) else { continue };
            let index = self.next_of_the_table(group, first);
            let rate = &self.rates[index];
            let kind = if rate.time_us < fastest { Kind::Jump } else { Kind::Slow };
            if self.samples[kind as usize].contains(&index) {
                continue;
            }
            if kind == Kind::Jump {
                self.last_groups[Kind::Jump as usize] = group;
                return Some(index);
            }
            if has_room && rate.time_us < slowest && rate.share() <= 0.95 {
                self.samples[Kind::Slow as usize].push(index);
            }
        }
        None
    }

    fn first_faster(&self, group: usize, time_us: f64) -> Option<usize> {
        let Group { from, to, .. } = self.groups[group];
        (from..to).find(|&index| self.rates[index].time_us < time_us)
    }

    /// The next of this group in the table, from its rate `first` on.
    fn next_of_the_table(&mut self, group: usize, first: usize) -> usize {
        loop {
            let Group { column, row, to, .. } = self.groups[group];
            let mcs = self.sample_table[column][row];
            let is_last = row + 1 == self.sample_table[column].len();
            self.groups[group].row = if is_last { 0 } else { row + 1 };
            self.groups[group].column = (column + usize::from(is_last)) % SAMPLE_COLUMNS;
            if let Some(index) = (first..to).find(|&index| self.rates[index].mcs == mcs) {
                return index;
            }
        }
    }
}

impl Rate {
    /// P.
    fn share(&self) -> f64 {
        self.probability[0]
    }

    /// Ends an interval. `of_faster`: the greatest P of the group's faster modes. Returns it with this one.
    fn update(&mut self, of_faster: f64) -> f64 {
        let (now, last) = (std::mem::take(&mut self.now), self.last);
        self.last = now;
        if now.attempts > 0 {
            let share = f64::from(now.successes + last.successes) / f64::from(now.attempts + last.attempts);
            let share = share.max(LEAST_SHARE);
            let [one, two] = self.probability;
            self.probability = if one == 0.0 {
                [share; 2]
            } else {
                let new = (1.0 - FILTER[0] - FILTER[1]) * share + FILTER[0] * one + FILTER[1] * two;
                [new.clamp(LEAST_SHARE, 1.0), one]
            };
            self.was_tried = true;
        }
        if self.was_tried {
            of_faster.max(self.share())
        } else {
            self.probability[0] = of_faster.max(self.share());
            of_faster
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Standard;
    use crate::random::Streams;
    use crate::wifi::modulation::{ChannelWidth, Modulation};
    use crate::wifi::rate_control::RateControl;

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn minstrel(standard: Standard, spatial_streams: u8, width: ChannelWidth) -> MinstrelHt {
        let modulation = Modulation { spatial_streams, width, ..Modulation::new(standard) };
        let rate_control = RateControl::MinstrelHt;
        let config = WifiConfig { modulation, rate_control, ..WifiConfig::new(standard) };
        MinstrelHt::of(&AirTimes::new(&config, &[]), &config, Streams::new(1).stream("wifi/minstrel-ht/0/up"))
    }

    /// HT20 with one stream: rate N is MCS N.
    fn ht() -> MinstrelHt {
        minstrel(Standard::N, 1, ChannelWidth::Mhz20)
    }

    /// As if each rate had this percentage of successes, with A-MPDUs of 16 frames.
    fn measured(mut minstrel: MinstrelHt, percents: &[u32]) -> MinstrelHt {
        for (rate, &percent) in minstrel.rates.iter_mut().zip(percents) {
            rate.now = Count { attempts: 100, successes: percent };
        }
        minstrel.length = 16.0;
        minstrel.update(ms(50));
        minstrel
    }

    fn places(minstrel: &mut MinstrelHt) -> Vec<(usize, u8)> {
        minstrel.next_sample = Time::MAX;
        let exchange = minstrel.begin(ms(60));
        exchange.chain.map(|step| (step.rate, step.tries)).to_vec()
    }

    #[test]
    fn times_are_those_of_1200_bytes_within_an_aggregate() {
        // HT20 MCS 7: 16 · 9600 bits in ceil(153600 / 260) = 591 symbols of 4 us; MCS 0 in 5908.
        let ht = ht();
        assert_eq!([7, 0].map(|rate| ht.rates[rate].time_us), [591.0 * 4.0 / 16.0, 5908.0 * 4.0 / 16.0]);
        // 16 + 20 + 4 ceil(54 / 24) and an acknowledgement of 10 B: 16 + 20 + 4 ceil(134 / 24).
        assert_eq!((ht.overhead_us, ht.protected_overhead_us), (48.0 + 60.0, 48.0 + 3.0 * 60.0));
        let vht = minstrel(Standard::Ac, 2, ChannelWidth::Mhz80);
        // 20, 40, 80 MHz with one stream or two; MCS 9 not over 20 MHz.
        assert_eq!(vht.groups.iter().map(|group| group.to - group.from).collect::<Vec<_>>(), [9, 9, 10, 10, 10, 10]);
        assert_eq!(vht.groups.iter().map(|group| group.streams).collect::<Vec<_>>(), [1, 2, 1, 2, 1, 2]);
    }

    #[test]
    fn shares_pass_a_filter_of_second_order() {
        let mut rate = ht().rates[0].clone();
        let mut share = |attempts, successes| {
            rate.now = Count { attempts, successes };
            rate.update(0.0);
            rate.share()
        };
        // The first whole. Then 0.2863 x + 1.2874 y1 - 0.5737 y2, x over two intervals: (100 + 0) / 200.
        assert_eq!(share(100, 100), 1.0);
        let expected = 0.2863 * 0.5 + 1.2874 - 0.5737;
        assert!((share(100, 0) - expected).abs() < 1e-4);
        let next = 1.2874 * expected - 0.5737;
        assert!((share(100, 0) - next).abs() < 2e-4);
        // Without attempts nothing changes.
        assert!((share(0, 0) - next).abs() < 2e-4);
    }

    #[test]
    fn the_chain_is_the_two_best_and_the_most_probable() {
        // Packets per us over 108 / 16 + T: MCS 7 0.5 / 154.5, MCS 6 0.85 / 170.9, MCS 5 0.9 / 191.5, MCS 4 0.9 / 253.
        let mut best = measured(ht(), &[100, 100, 100, 100, 100, 96, 85, 50]);
        assert_eq!(places(&mut best).iter().map(|step| step.0).collect::<Vec<_>>(), [6, 5, 6]);
        assert_eq!(best.mode(), ModeId::of_mcs(6));
        // Nothing above 75 %: the highest share. MCS 5 0.35 / 191.5, MCS 4 0.4 / 253.
        let mut poor = measured(ht(), &[70, 60, 50, 45, 40, 35, 5, 5]);
        assert_eq!(places(&mut poor).iter().map(|step| step.0).collect::<Vec<_>>(), [5, 4, 0]);
        // MCS 0 at 1477 us a packet: two tries of 16, for the third ends after 6 ms.
        assert_eq!(places(&mut poor)[2].1, 2);
    }

    #[test]
    fn what_was_never_tried_is_as_good_as_what_is_faster() {
        let mut ht = ht();
        ht.rates[5].now = Count { attempts: 10, successes: 8 };
        ht.rates[7].now = Count { attempts: 10, successes: 3 };
        ht.update(ms(50));
        let shares: Vec<_> = ht.rates.iter().map(Rate::share).collect();
        assert_eq!(shares, [0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.3, 0.3]);
    }

    #[test]
    fn no_response_goes_down_the_chain_behind_rts_and_holes_end_it() {
        let mut ht = measured(ht(), &[100, 100, 100, 100, 100, 96, 85, 50]);
        ht.next_sample = Time::MAX;
        let decide = |ht: &mut MinstrelHt| {
            let decision = ht.next(ms(60));
            assert!(!decision.alone);
            (decision.mode, decision.rts)
        };
        let mut tried = Vec::new();
        while ht.exchange.is_some() || tried.is_empty() {
            tried.push(decide(&mut ht));
            ht.on_failure(ms(60), 16, false);
        }
        let [best, second] = [6, 5].map(ModeId::of_mcs);
        let tries = ht.tries(6, ht.overhead_us);
        let (of_best, behind_rts) = tried.split_at(tries.into());
        assert!(of_best.iter().all(|&step| step == (best, false)));
        assert!(behind_rts.contains(&(second, true)) && behind_rts.last() == Some(&(best, true)));
        assert!(behind_rts.iter().all(|&(_, rts)| rts));
        assert_eq!(ht.rates[5].now.attempts, 16 * u32::from(ht.tries(5, ht.protected_overhead_us)));
        // One failure; then a Block Ack of half the frames: the next transmission begins at the first place.
        decide(&mut ht);
        ht.on_failure(ms(60), 16, false);
        ht.next(ms(60));
        let before = ht.rates[6].now;
        ht.on_success(ms(60), 16, 8);
        let after = ht.rates[6].now;
        assert_eq!((after.attempts - before.attempts, after.successes - before.successes), (16, 8));
        assert!(ht.exchange.is_none());
        assert!(!decide(&mut ht).1);
    }

    #[test]
    fn a_sample_is_one_frame_each_20_ms_for_one_try() {
        let mut ht = measured(ht(), &[100, 100, 100, 100, 5, 5, 5, 5]);
        let mut samples = Vec::new();
        for tenths in 500..1000 {
            let now = Time::ZERO + Span::from_micros(100 * tenths);
            let decision = ht.next(now);
            if decision.alone {
                samples.push(now);
                assert!(decision.mode != ModeId::of_mcs(3) && !decision.rts);
                // The repeat is the same frame at the second best.
                ht.on_failure(now, 1, false);
                let repeat = ht.next(now);
                assert!(repeat.alone && repeat.rts);
                ht.on_success(now, 1, 1);
            } else {
                ht.on_success(now, 16, 16);
            }
        }
        // INC, JUMP; at 90 ms again INC, and there was only MCS 4.
        assert_eq!(samples, [50, 70].map(ms));
    }

    #[test]
    fn samples_are_the_next_faster_and_random_faster_ones() {
        let vht = measured(minstrel(Standard::Ac, 1, ChannelWidth::Mhz80), &[]);
        let time = |index: usize| vht.rates[index].time_us;
        let [inc, jump, slow] = &vht.samples;
        // Of each group the slowest that is faster than MCS 0 over 20 MHz.
        assert_eq!(inc.iter().map(|&index| vht.rates[index].mcs).collect::<Vec<_>>(), [0, 0, 1]);
        assert!(jump.len() == SAMPLES && jump.iter().all(|&index| time(index) < time(0)));
        assert_eq!(slow.len(), 0);
    }

    #[test]
    fn sudden_death_takes_a_group_with_no_more_streams() {
        // Two streams over 20 MHz: rates 0 to 7 with one stream, 8 to 15 with two.
        let mut ht = measured(minstrel(Standard::N, 2, ChannelWidth::Mhz20), &[100; 16]);
        ht.next_sample = Time::MAX;
        assert_eq!((ht.best[0], ht.rates[ht.most_probable].group), (15, 0));
        ht.next(ms(60));
        ht.on_success(ms(60), 32, 7);
        assert_eq!(ht.best[0], 7);
    }
}
