//! Chunks of a video over one connection, each of the bit rate that the [player](super::player) chooses.

use super::player::Player;
use super::{Desk, DocumentError, Kind, Part, TrafficKeys, VideoResult};
use crate::keys::KIND;
use lasthop_keys::{Problem, Takes, by_word, derived, integers, key, keys, seconds};
use lasthop_units::{Bytes, Span, Time};
use toml::{Table, Value};

keys! {
    /// Its own keys.
    pub(crate) struct VideoKeys {
        /// The bit rates that the video is there in, in kb/s, ascending: up to 16.
        ladder_kbps: Option<Ladder> = ladder(), derived("with \"video\" ten, [below](#the-player-of-a-video)", usual_ladder);
        /// Length of a chunk in seconds.
        chunk_s: Option<Span> = seconds(0.1, 60.0), by_word(KIND, [("video", 4.0)]);
        /// How many seconds the player has in its buffer at most; at least three chunks.
        buffer_s: Option<Span> = seconds(0.2, 3_600.0), by_word(KIND, [("video", 30.0)]);
    }
}

/// The bit rates of a video.
fn usual_ladder(flows: &Table) -> Option<Value> {
    let rates = || Ladder::USUAL_KBPS.map(|kbps| Value::Integer(kbps.into())).to_vec();
    (flows.get(KIND)?.as_str() == Some("video")).then(|| Value::Array(rates()))
}

fn ladder() -> Takes<Ladder> {
    integers::<u32>(1, 1_000_000).and_then(|rates| {
        Ladder::new(&rates)
            .ok_or_else(|| Problem::new(format!("{rates:?} is no ladder"), "1 to 16 bit rates in kb/s, ascending"))
    })
}

/// The bit rates of a video in kb/s, ascending: 1 to [`Ladder::MOST`] of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    kbps: [u32; Self::MOST],
    count: usize,
}

impl Ladder {
    /// The most rates.
    pub const MOST: usize = 16;
    /// The fixed ladder for H.264 of A. Aaron and others, *Per-Title Encode Optimization*, Netflix 2015.
    pub const USUAL_KBPS: [u32; 10] = [235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800];

    /// These rates; `None` if they are too many, none, or not ascending from 1.
    pub fn new(rates_kbps: &[u32]) -> Option<Self> {
        let ascending = rates_kbps.is_sorted_by(|a, b| a < b) && rates_kbps.first().is_some_and(|least| *least > 0);
        let mut kbps = [0; Self::MOST];
        kbps.get_mut(..rates_kbps.len()).filter(|_| ascending)?.copy_from_slice(rates_kbps);
        Some(Self { kbps, count: rates_kbps.len() })
    }

    /// The rates.
    pub fn kbps(&self) -> &[u32] {
        &self.kbps[..self.count]
    }
}

/// A video and its viewer.
#[derive(Clone, Debug, PartialEq)]
pub struct Video {
    ladder: Ladder,
    chunk: Span,
    buffer: Span,
    request: Bytes,
    /// From the start on.
    player: Option<Box<Player>>,
}

impl Video {
    pub(super) const KEYS: &[&str] = &["request_bytes"];

    pub(super) fn read(keys: &TrafficKeys, part: &Part<'_>) -> Result<Self, DocumentError> {
        const GIVEN: &str = "its kind has a default";
        let own = &keys.own.video;
        let (chunk, buffer) = (own.chunk_s.expect(GIVEN), own.buffer_s.expect(GIVEN));
        let least = chunk + chunk + chunk;
        if buffer < least {
            let problem = format!("{} has no room for three chunks", buffer.as_secs_f64());
            let accepted = format!("a number from {}", least.as_secs_f64());
            return Err(part.error(key!(VideoKeys, buffer_s), problem, accepted));
        }
        Ok(Self::new(own.ladder_kbps.expect(GIVEN), chunk, buffer, keys.request_bytes.expect(GIVEN)))
    }

    /// A video in these bit rates and chunks of this length, above 0. Its player has at most `buffer` in its buffer, at least
    /// three chunks, and asks for each with `request` bytes, at least 1.
    pub fn new(ladder: Ladder, chunk: Span, buffer: Span, request: Bytes) -> Self {
        Self { ladder, chunk, buffer, request, player: None }
    }
}

impl Kind for Video {
    fn begin(&mut self, due: Time, now: Time, desk: &mut Desk) {
        self.player.get_or_insert_with(|| Box::new(Player::new(self.ladder, self.chunk, self.buffer, due)));
        desk.open();
        self.wake(due, now, desk);
    }

    /// Asks for the next chunk.
    fn wake(&mut self, _due: Time, now: Time, desk: &mut Desk) {
        let chunk = self.player.as_mut().expect("it has begun").choose(now);
        desk.ask(now, self.request, chunk, false);
    }

    /// A chunk in progress is finished.
    fn stop(&mut self, desk: &mut Desk) {
        if !desk.awaits() {
            desk.pause();
            desk.close();
        }
    }

    fn on_read(&mut self, now: Time, desk: &mut Desk) {
        let next = self.player.as_mut().expect("it has begun").on_chunk(now);
        if desk.has_stopped() { desk.close_next(now) } else { desk.wake_at(next) }
    }

    fn on_failed(&mut self, now: Time, desk: &mut Desk) {
        if !desk.has_stopped() {
            desk.begin_again(now);
        }
    }

    fn goes_on(&self) -> bool {
        true
    }

    fn asks(&self) -> bool {
        true
    }

    fn video(&self, from: Time, until: Time) -> Option<VideoResult> {
        Some(self.player.as_ref()?.result(from, until))
    }
}
