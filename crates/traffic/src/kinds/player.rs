//! The player of an adaptive video: which bit rate it asks for, and when it has nothing to play.
//!
//! It plays what is in its buffer, and asks for the next chunk as soon as the buffer has room for it, one at a time. It
//! chooses by the buffer alone, as BBA-0 of \[huang14\] (§4.2, Algorithm 1):
//!
//! ```text
//!  bit rate        ______ highest         f(B): the line between the two knees
//!             f(B)/                       as high as f(B) or higher than the next rate up: the highest below f(B)
//!     lowest ____/                        as low as the next rate down or lower: the lowest above f(B)
//!                r    u     B: buffer     else the rate of the chunk before
//! ```
//!
//! Below r = 0.375 of the buffer it takes the lowest rate, from u = 0.9 of it on the highest: 90 s and 216 s of 240 s in
//! \[huang14\]. With few chunks in the buffer u is half a chunk below where the player asks for the next one: at that
//! point itself, the rate would turn on an instant.
//!
//! Waiting for the first chunk counts as a stall. Otherwise a player that never gets a chunk would never stall.
//!
//! *What it leaves out*: chunks of one bit rate that differ in size, the estimate of the rate at the start (BBA-2), a
//! player that is paused or moved to another place.
//!
//! Reference: huang14 = T.-Y. Huang and others, *A Buffer-Based Approach to Rate Adaptation: Evidence from a Large Video
//! Streaming Service*, SIGCOMM 2014.

use super::Ladder;
use lasthop_units::{Bytes, Span, Time};
use serde::{Deserialize, Serialize};

/// \[huang14\]: a reservoir of 90 s in a buffer of 240 s.
const RESERVOIR: f64 = 0.375;
/// \[huang14\]: the highest rate from 216 s on.
const UPPER: f64 = 0.9;

/// A player.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Player {
    ladder: Ladder,
    chunk: Span,
    most: Span,
    started: Time,
    /// In the buffer at `updated`.
    buffered: Span,
    updated: Time,
    /// Since when it has had nothing to play; `None` while it plays.
    stalled: Option<Time>,
    /// The place in the ladder of the chunk asked for last.
    rate: usize,
    /// The chunks that came, each with the place of its rate.
    chunks: Vec<(Time, usize)>,
    /// The stalls that are over.
    stalls: Vec<(Time, Time)>,
}

impl Player {
    /// A viewer turns it on at `started`.
    pub(crate) fn new(ladder: Ladder, chunk: Span, most: Span, started: Time) -> Self {
        Self {
            ladder,
            chunk,
            most,
            started,
            buffered: Span::ZERO,
            updated: started,
            stalled: Some(started),
            rate: 0,
            chunks: Vec::new(),
            stalls: Vec::new(),
        }
    }

    /// Plays until `now`.
    fn play(&mut self, now: Time) {
        let played = now.saturating_since(self.updated);
        if self.stalled.is_none() && played >= self.buffered {
            self.stalled = Some(self.updated + self.buffered);
        }
        if self.stalled.is_none() {
            self.buffered -= played;
        } else {
            self.buffered = Span::ZERO;
        }
        self.updated = now;
    }

    /// Chooses the bit rate of the next chunk; returns the chunk's size.
    pub(crate) fn choose(&mut self, now: Time) -> Bytes {
        self.play(now);
        self.rate = self.rate_at(self.buffered.as_secs_f64());
        let bits = f64::from(self.ladder.kbps()[self.rate]) * 1e3 * self.chunk.as_secs_f64();
        Bytes::new(((bits / 8.0) as u64).max(1))
    }

    /// The place in the ladder for this many seconds in the buffer.
    fn rate_at(&self, buffered_s: f64) -> usize {
        let rates = self.ladder.kbps();
        let highest = rates.len() - 1;
        let most_s = self.most.as_secs_f64();
        let reservoir_s = RESERVOIR * most_s;
        let upper_s = (UPPER * most_s).min(most_s - 1.5 * self.chunk.as_secs_f64());
        if buffered_s <= reservoir_s {
            return 0;
        }
        if buffered_s >= upper_s {
            return highest;
        }
        let (least, most) = (f64::from(rates[0]), f64::from(rates[highest]));
        let line = least + (most - least) * (buffered_s - reservoir_s) / (upper_s - reservoir_s);
        let is_below = |place: &usize| f64::from(rates[*place]) < line;
        let (up, down) = (rates[(self.rate + 1).min(highest)], rates[self.rate.saturating_sub(1)]);
        if line >= f64::from(up) {
            (0..=highest).rfind(is_below).unwrap_or(0)
        } else if line <= f64::from(down) {
            (0..=highest).find(|place| f64::from(rates[*place]) > line).unwrap_or(highest)
        } else {
            self.rate
        }
    }

    /// The chunk asked for has come. Returns when to ask for the next.
    pub(crate) fn on_chunk(&mut self, now: Time) -> Time {
        self.play(now);
        self.chunks.push((now, self.rate));
        self.buffered += self.chunk;
        self.stalls.extend(self.stalled.take().map(|since| (since, now)));
        now + (self.buffered + self.chunk).saturating_sub(self.most)
    }

    /// What the viewer saw between these two moments.
    pub(crate) fn result(&self, from: Time, until: Time) -> VideoResult {
        let mut whole = self.clone();
        whole.play(until);
        whole.stalls.extend(whole.stalled.map(|since| (since, until)));
        let overlaps = whole.stalls.iter().map(|(since, to)| (*to).min(until).saturating_since((*since).max(from)));
        let overlaps: Vec<Span> = overlaps.filter(|overlap| !overlap.is_zero()).collect();
        let first = self.chunks.iter().position(|(at, _)| *at >= from).unwrap_or(self.chunks.len());
        let rates: Vec<usize> = self.chunks[first..].iter().map(|(_, rate)| *rate).collect();
        let kbps = rates.iter().map(|rate| u64::from(self.ladder.kbps()[*rate])).sum::<u64>();
        // The last one of the warm-up has a rate, too.
        let with_before = &self.chunks[first.saturating_sub(1)..];
        VideoResult {
            chunks: rates.len() as u64,
            mean_bit_rate_mbps: (!rates.is_empty()).then(|| kbps as f64 / rates.len() as f64 / 1e3),
            switches: with_before.windows(2).filter(|pair| pair[0].1 != pair[1].1).count() as u64,
            stalls: overlaps.len() as u64,
            stalled_s: overlaps.into_iter().fold(Span::ZERO, |all, overlap| all + overlap).as_secs_f64(),
            startup_s: self.chunks.first().map(|(at, _)| at.saturating_since(self.started).as_secs_f64()),
        }
    }
}

/// What the viewer of a video saw after the warm-up; of several videos, all viewers together. The field names are keys
/// of `result.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VideoResult {
    /// Chunks completely received.
    pub chunks: u64,
    /// Their mean bit rate; `None` without any.
    pub mean_bit_rate_mbps: Option<f64>,
    /// How often a chunk had another bit rate than the one before.
    pub switches: u64,
    /// How often the player had nothing to play, from the start of the flow on.
    pub stalls: u64,
    /// For how long in all.
    pub stalled_s: f64,
    /// From the start of the flow to the first chunk, even in the warm-up; of several the mean; `None` without any.
    pub startup_s: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: f64) -> Time {
        Time::ZERO + Span::from_secs_f64(secs)
    }

    /// Rates of 1 to 5 Mb/s, chunks of 4 s, a buffer of 40 s: the knees are at 15 and 34 s.
    fn player() -> Player {
        let ladder = Ladder::new(&[1_000, 2_000, 3_000, 4_000, 5_000]).expect("a ladder");
        Player::new(ladder, Span::from_secs(4), Span::from_secs(40), Time::ZERO)
    }

    #[test]
    fn the_bit_rate_follows_the_buffer_between_the_knees_and_keeps_to_the_rate_before() {
        let mut player = player();
        // 1 + 4 · (B − 15) / 19 Mb/s: 1.95 at 19.5 s, 2.05 at 20 s, 4.79 at 33 s.
        assert_eq!([15.0, 19.5, 20.0, 33.0, 34.0].map(|buffered| player.rate_at(buffered)), [0, 0, 1, 3, 4]);
        player.rate = 3;
        // The next rate down from 4 is 3 Mb/s, on the line at 24.5 s. Above it the rate before stays.
        assert_eq!([24.6, 24.4].map(|buffered| player.rate_at(buffered)), [3, 2]);
        // A chunk of 4 s at 1 Mb/s.
        assert_eq!(player.choose(secs(0.0)), Bytes::new(500_000));
    }

    #[test]
    fn a_player_stalls_when_its_buffer_is_empty_until_the_next_chunk() {
        let mut player = player();
        // The first chunk comes at 2 s and lasts until 6 s; the second comes at 9 s and lasts until 13 s.
        assert_eq!(player.on_chunk(secs(2.0)), secs(2.0));
        player.on_chunk(secs(9.0));
        let all = player.result(Time::ZERO, secs(20.0));
        assert_eq!((all.stalls, all.stalled_s, all.startup_s), (3, 2.0 + 3.0 + 7.0, Some(2.0)));
        assert_eq!((all.chunks, all.mean_bit_rate_mbps), (2, Some(1.0)));
        // Only what is after the warm-up counts.
        let later = player.result(secs(7.0), secs(12.0));
        assert_eq!((later.stalls, later.stalled_s, later.chunks), (1, 2.0, 1));
    }

    #[test]
    fn a_player_without_any_chunk_stalls_all_the_time() {
        let nothing = player().result(secs(5.0), secs(20.0));
        assert_eq!(
            (nothing.stalls, nothing.stalled_s, nothing.mean_bit_rate_mbps, nothing.startup_s),
            (1, 15.0, None, None)
        );
    }

    #[test]
    fn the_next_chunk_is_asked_for_when_the_buffer_has_room() {
        let mut player = player();
        let at = secs(1.0);
        (0..9).for_each(|_| assert_eq!(player.on_chunk(at), at));
        // 40 s in the buffer: room for 4 s more in 4 s.
        assert_eq!(player.on_chunk(at), secs(5.0));
    }
}
