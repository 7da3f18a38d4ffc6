//! The choice of the PHY rate: fixed, or from the outcome of earlier frames.
//!
//! A controller belongs to one direction between a station and the access point. It learns only whether each
//! transmission was acknowledged, and cannot tell a collision from a channel error. So with many collisions,
//! controllers that step down after failures (`arf`, `aarf`) fall to needlessly low rates; `minstrel` compares rates
//! with each other.
//!
//! With aggregation, `minstrel_ht` learns how many frames were acknowledged. Frames missing from a Block Ack were lost
//! to noise; without any Block Ack it was a collision, or noise. It counts both alike, but only the latter sends it
//! down its chain, to other rates behind RTS.

mod aarf;
mod arf;
mod fixed;
mod ideal;
#[macro_use]
mod list;
mod minstrel;
mod minstrel_ht;
#[cfg(test)]
#[path = "../../../tests/examples/random.rs"]
mod random;

use super::airtime::{AirTimes, ModeId};
use super::constants::{PhyRate, Standard};
use crate::config::WifiConfig;
use aarf::Aarf;
use arf::Arf;
use enum_dispatch::enum_dispatch;
use fixed::Fixed;
use ideal::Ideal;
use lasthop_units::Time;
use minstrel::Minstrel;
use minstrel_ht::MinstrelHt;
use rand_chacha::ChaCha8Rng;
#[cfg(test)]
use random::Random;

rate_controls! {
    /// Nobody: always the configured rate.
    Fixed = "fixed", of_all, 7 transmissions;
    /// A station that falls back after failures (ARF: Kamerman and Monteban 1997).
    Arf = "arf", of_earlier, 7 transmissions;
    /// The same, which tries failing steps up ever more rarely (AARF: Lacage, Manshaei and Turletti 2004).
    Aarf = "aarf", of_earlier, 7 transmissions;
    /// A station that counts which rates get through, as Linux's mac80211 for stations without 802.11n.
    Minstrel = "minstrel", of_earlier, 7 transmissions;
    /// One that counts the frames of each A-MPDU, as Linux's mac80211. It needs repeats to find a mode.
    MinstrelHt = "minstrel_ht", of_later, 30 transmissions;
    /// One that knows the `snr_db` of the hosts at once, without a trial: the limit of all others.
    Ideal = "ideal", of_later, 7 transmissions;
    /// The example of docs/guide/new-parts.md.
    #[cfg(test)]
    Random = "random", of_all, 7 transmissions;
}

impl RateControl {
    /// The rate controls of a standard.
    pub fn of(standard: Standard) -> impl Iterator<Item = Self> {
        let is_of = move |of: [bool; 2]| of[usize::from(standard.aggregates())];
        Self::ALL.iter().copied().filter(move |one| is_of(one.standards()))
    }
}

impl std::fmt::Display for RateControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The rates for rate control.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RateSet {
    /// The OFDM rates, 6 to 54 Mb/s.
    Ofdm,
    /// All rates of 802.11b and 802.11g, 1 to 54 Mb/s.
    All,
}

/// How to send a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Decision {
    pub(crate) mode: ModeId,
    /// Whether RTS and CTS precede it, whatever its size.
    pub(crate) rts: bool,
    /// Whether it has only one frame.
    pub(crate) alone: bool,
}

impl From<ModeId> for Decision {
    /// In this mode, and nothing else about it.
    fn from(mode: ModeId) -> Self {
        Self { mode, rts: false, alone: false }
    }
}

/// What a new controller gets.
pub(crate) struct Setup<'a> {
    pub(super) times: &'a AirTimes,
    /// What the station and the access point can do between each other.
    pub(super) own: &'a WifiConfig,
    /// The mode of those that do not choose: the highest; with [`RateControl::Ideal`] the best.
    pub(super) mode: ModeId,
    /// A random stream of its own, by its purpose.
    pub(super) stream: &'a dyn Fn(&str) -> ChaCha8Rng,
}

impl Setup<'_> {
    /// The rates that it may choose from, in 802.11b and 802.11g. The one in use is the highest.
    pub(super) fn ladder(&self) -> Ladder {
        Ladder::of(self.own)
    }
}

/// The modes between this station and the access point: the rates up to the highest, or with A-MPDUs those of
/// [`AirTimes::choices`].
pub(super) fn modes(own: &WifiConfig, times: &AirTimes) -> Vec<ModeId> {
    if own.standard.aggregates() {
        return times.choices(own).map(|(mode, _)| mode).collect();
    }
    let Ladder { rates, length, .. } = Ladder::of(own);
    rates[..usize::from(length)].iter().copied().map(ModeId::from).collect()
}

/// The rate control of one direction between a station and the access point.
#[enum_dispatch]
pub(crate) trait Controller {
    /// The mode of the next transmission, if that is no sample.
    fn mode(&self) -> ModeId;

    /// A transmission of frames begins: how. One of [`on_success`](Self::on_success), [`on_failure`](Self::on_failure) and
    /// [`on_rts_lost`](Self::on_rts_lost) follows, if it [learns](Self::learns).
    fn next(&mut self, _now: Time) -> Decision {
        self.mode().into()
    }

    /// Whether it learns from the outcomes of transmissions.
    fn learns(&self) -> bool {
        true
    }

    /// The transmission of so many frames was acknowledged, wholly or for so many of them.
    fn on_success(&mut self, _now: Time, _frames: u32, _acknowledged: u32) {}

    /// The transmission of so many frames was not acknowledged. `given_up`: they will not be repeated. Those that are given up because of
    /// a lost RTS count, too: an RTS goes at 24 Mb/s for the faster modes, and who learned nothing would stay where nobody hears it.
    fn on_failure(&mut self, _now: Time, _frames: u32, _given_up: bool) {}

    /// The RTS before so many frames was lost, and will be repeated. Nothing comes of it, as in ns-3: it says little of the rate of its
    /// data.
    fn on_rts_lost(&mut self, _now: Time, _frames: u32) {}
}

/// The available rates, ascending, and the one in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ladder {
    rates: [PhyRate; PhyRate::ALL.len()],
    length: u8,
    position: u8,
}

impl Ladder {
    fn of(own: &WifiConfig) -> Self {
        Self::new(own.standard, own.rate_set, own.rate)
    }

    fn new(standard: Standard, set: RateSet, highest: PhyRate) -> Self {
        // Below an OFDM access, a station whose highest rate is a DSSS one is an 802.11b station, unless all rates may
        // mix.
        let belongs = |rate: PhyRate| match set {
            RateSet::All if standard != Standard::B && highest.is_ofdm() => true,
            RateSet::All | RateSet::Ofdm => rate.is_ofdm() == highest.is_ofdm(),
        };
        let mut ladder = Self { rates: [highest; PhyRate::ALL.len()], length: 0, position: 0 };
        for rate in PhyRate::ALL.into_iter().filter(|&rate| rate <= highest && belongs(rate)) {
            ladder.rates[usize::from(ladder.length)] = rate;
            ladder.length += 1;
        }
        ladder.position = ladder.length - 1;
        ladder
    }

    fn rate(&self) -> PhyRate {
        self.rates[usize::from(self.position)]
    }

    /// One rate up. Returns whether there was one.
    fn up(&mut self) -> bool {
        let higher = self.position + 1 < self.length;
        self.position += u8::from(higher);
        higher
    }

    /// One rate down, if there is one.
    fn down(&mut self) {
        self.position = self.position.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(standard: Standard, set: RateSet, highest: PhyRate) -> Vec<f64> {
        let ladder = Ladder::new(standard, set, highest);
        ladder.rates[..usize::from(ladder.length)].iter().map(|rate| rate.rate().as_mbps()).collect()
    }

    #[test]
    fn a_ladder_has_the_rates_of_its_set_up_to_the_highest() {
        let all = RateSet::All;
        assert_eq!(rates(Standard::G, RateSet::Ofdm, PhyRate::Mbps24), [6.0, 9.0, 12.0, 18.0, 24.0]);
        assert_eq!(rates(Standard::G, all, PhyRate::Mbps18), [1.0, 2.0, 5.5, 6.0, 9.0, 11.0, 12.0, 18.0]);
        assert_eq!(rates(Standard::B, RateSet::Ofdm, PhyRate::Mbps11), [1.0, 2.0, 5.5, 11.0]);
        assert_eq!(rates(Standard::Bg, all, PhyRate::Mbps11), [1.0, 2.0, 5.5, 11.0]);
    }
}
