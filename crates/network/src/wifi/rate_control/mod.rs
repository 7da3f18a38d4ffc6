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
mod minstrel;
mod minstrel_ht;

use super::airtime::{AirTimes, ModeId};
use super::cell::Protection;
use super::constants::{PhyRate, Standard};
use crate::config::WifiConfig;
use aarf::Aarf;
use arf::Arf;
use fixed::Fixed;
use lasthop_units::Time;
use minstrel::Minstrel;
use minstrel_ht::MinstrelHt;
use rand_chacha::ChaCha8Rng;

/// The rate control.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RateControl {
    /// Always the configured rate.
    Fixed,
    /// Automatic rate fallback (Kamerman and Monteban 1997).
    Arf,
    /// Adaptive automatic rate fallback (Lacage, Manshaei and Turletti 2004).
    Aarf,
    /// Minstrel, of Linux's mac80211, for stations without 802.11n.
    Minstrel,
    /// Minstrel for A-MPDUs, of Linux's mac80211. 802.11n and later.
    MinstrelHt,
    /// The modulation with the greatest throughput at the station's present SNR, known without a trial. 802.11n and
    /// later.
    Ideal,
}

impl RateControl {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Fixed, Self::Arf, Self::Aarf, Self::Minstrel, Self::MinstrelHt, Self::Ideal];

    /// The rate controls of a standard.
    pub const fn of(standard: Standard) -> &'static [Self] {
        match standard {
            Standard::B | Standard::G | Standard::Bg => &[Self::Fixed, Self::Arf, Self::Aarf, Self::Minstrel],
            Standard::N | Standard::Ac | Standard::Ax => &[Self::Fixed, Self::MinstrelHt, Self::Ideal],
        }
    }

    /// Its name in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Arf => "arf",
            Self::Aarf => "aarf",
            Self::Minstrel => "minstrel",
            Self::MinstrelHt => "minstrel_ht",
            Self::Ideal => "ideal",
        }
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

/// The rate control of one direction between a station and the access point.
#[derive(Clone, Debug)]
pub(crate) enum Controller {
    Fixed(Fixed),
    Arf(Arf),
    Aarf(Aarf),
    Minstrel(Box<Minstrel>),
    MinstrelHt(Box<MinstrelHt>),
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

impl Controller {
    /// A controller of rates of 802.11b or 802.11g that never exceeds `highest`. All but `minstrel` start there. It has
    /// `stream` for itself.
    pub(crate) fn new(
        times: &AirTimes,
        own: &WifiConfig,
        highest: PhyRate,
        stream: impl FnOnce() -> ChaCha8Rng,
    ) -> Self {
        let ladder = || Ladder::new(own.standard, own.rate_set, highest);
        match own.rate_control {
            RateControl::Fixed | RateControl::MinstrelHt | RateControl::Ideal => Self::fixed(highest.into()),
            RateControl::Arf => Self::Arf(Arf::new(ladder())),
            RateControl::Aarf => Self::Aarf(Aarf::new(ladder())),
            RateControl::Minstrel => {
                let protected = times.cell.protection == Protection::Erp;
                Self::Minstrel(Box::new(Minstrel::new(&ladder(), protected, stream())))
            }
        }
    }

    /// A controller with one fixed mode.
    pub(crate) const fn fixed(mode: ModeId) -> Self {
        Self::Fixed(Fixed::new(mode))
    }

    /// A controller of a station's modes that learns from A-MPDUs. It starts at the slowest.
    pub(crate) fn minstrel_ht(times: &AirTimes, own: &WifiConfig, stream: ChaCha8Rng) -> Self {
        Self::MinstrelHt(Box::new(MinstrelHt::new(times, own, stream)))
    }

    /// The mode of the next frame, if it is not a sample.
    #[inline]
    pub(crate) fn mode(&self) -> ModeId {
        match self {
            Self::Fixed(fixed) => fixed.mode(),
            Self::Arf(arf) => arf.rate().into(),
            Self::Aarf(aarf) => aarf.rate().into(),
            Self::Minstrel(minstrel) => minstrel.rate().into(),
            Self::MinstrelHt(minstrel) => minstrel.mode(),
        }
    }

    /// A transmission of frames begins. Either [`on_success`](Self::on_success) or [`on_failure`](Self::on_failure)
    /// follows.
    #[inline]
    pub(crate) fn next(&mut self, now: Time) -> Decision {
        let mode = match self {
            Self::Minstrel(minstrel) => minstrel.next_rate().into(),
            Self::MinstrelHt(minstrel) => return minstrel.next(now),
            _ => self.mode(),
        };
        Decision { mode, rts: false, alone: false }
    }

    /// Whether it learns from the outcomes of transmissions.
    #[inline]
    pub(crate) const fn learns(&self) -> bool {
        !matches!(self, Self::Fixed(_))
    }

    /// The transmission of so many frames was acknowledged, wholly or for so many of them.
    pub(crate) fn on_success(&mut self, now: Time, frames: usize, acknowledged: usize) {
        match self {
            Self::Fixed(_) => {}
            Self::Arf(arf) => arf.on_success(),
            Self::Aarf(aarf) => aarf.on_success(),
            Self::Minstrel(minstrel) => minstrel.on_success(now),
            Self::MinstrelHt(minstrel) => minstrel.on_success(now, frames as u32, acknowledged as u32),
        }
    }

    /// The transmission of so many frames was not acknowledged. `given_up`: they will not be repeated.
    pub(crate) fn on_failure(&mut self, now: Time, frames: usize, given_up: bool) {
        match self {
            Self::Fixed(_) => {}
            Self::Arf(arf) => arf.on_failure(),
            Self::Aarf(aarf) => aarf.on_failure(),
            Self::Minstrel(minstrel) => minstrel.on_failure(now, given_up),
            Self::MinstrelHt(minstrel) => minstrel.on_failure(now, frames as u32, given_up),
        }
    }
}

/// The available rates, ascending, and the one in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ladder {
    rates: [PhyRate; PhyRate::ALL.len()],
    length: u8,
    position: u8,
}

impl Ladder {
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
