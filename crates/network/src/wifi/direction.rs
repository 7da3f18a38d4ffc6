//! One direction between a station and the access point: its two ends, its rate, its counts.

use super::airtime::{AirTimes, Mode, ModeId};
use super::constants::{PhyRate, Standard};
use super::originator::Originator;
use super::rate_control::{Controller, RateControl, RateSet};
use super::recipient::Recipient;
use crate::config::{HostConfig, WifiConfig};
use crate::random::Streams;
use crate::statistics::WifiLinkStatistics;
use lasthop_units::Rate;

/// From the station, and to it.
pub(super) const UP: usize = 0;
pub(super) const DOWN: usize = 1;

/// A station's direction: the index of its state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) station: usize,
    pub(super) way: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Direction<P> {
    pub(super) originator: Originator,
    pub(super) recipient: Recipient<P>,
    pub(super) controller: Controller,
    /// The highest rate from the next transmission on, with a fresh controller.
    pub(super) new_highest: Option<PhyRate>,
    /// The number of such changes.
    changes: u32,
    pub(super) counts: WifiLinkStatistics,
    /// Sum over the transmissions' rates.
    kbps_sum: u64,
}

/// The parameters of new controllers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Controllers {
    control: RateControl,
    standard: Standard,
    set: RateSet,
    mcs: u8,
    /// The Block Ack window.
    window: u16,
    streams: Streams,
}

impl Controllers {
    pub(super) fn new(config: &WifiConfig, streams: Streams) -> Self {
        let WifiConfig { standard, rate_control: control, rate_set: set, .. } = *config;
        Self { control, standard, set, mcs: config.modulation.mcs, window: config.block_ack_window(), streams }
    }

    /// A controller that never exceeds `highest`; the `number`th of its direction.
    fn controller(&self, highest: PhyRate, link: Link, number: u32) -> Controller {
        Controller::new(self.control, self.standard, self.set, highest, || {
            let way = ["up", "down"][link.way];
            let number = if number == 0 { String::new() } else { format!("/{number}") };
            self.streams.stream(&format!("wifi/minstrel/{}/{way}{number}", link.station))
        })
    }
}

impl<P> Direction<P> {
    /// An idle direction of a station with this highest rate; in 802.11n and later with its own MCS, or the common one.
    pub(super) fn new(controllers: &Controllers, link: Link, highest: PhyRate, host: &HostConfig) -> Self {
        let window = controllers.window;
        Self {
            originator: Originator::new(window),
            recipient: Recipient::new(window),
            controller: match controllers.standard.aggregates() {
                true => Controller::fixed(ModeId::of_mcs(host.mcs.unwrap_or(controllers.mcs))),
                false => controllers.controller(highest, link, 0),
            },
            new_highest: None,
            changes: 0,
            counts: WifiLinkStatistics::default(),
            kbps_sum: 0,
        }
    }

    /// A transmission begins: the mode of its data.
    #[inline]
    pub(super) fn next_mode(&mut self, controllers: &Controllers, link: Link) -> ModeId {
        if let Some(highest) = self.new_highest.take() {
            self.changes += 1;
            self.controller = controllers.controller(highest, link, self.changes);
        }
        self.controller.next_mode()
    }

    /// A transmission of this many frames has begun.
    #[inline]
    pub(super) fn count(&mut self, mode: &Mode, frames: usize, retries: usize) {
        self.counts.transmissions += 1;
        self.counts.frames += frames as u64;
        self.counts.retries += retries as u64;
        self.kbps_sum += mode.rate.as_bps() / 1000;
    }

    pub(super) fn packets_inside(&self) -> usize {
        self.originator.packets_inside() + self.recipient.packets_inside()
    }

    pub(super) fn report(&self, times: &AirTimes) -> WifiLinkStatistics {
        let mean = self.kbps_sum * 1000 / self.counts.transmissions.max(1);
        WifiLinkStatistics {
            phy_rate: times.mode(self.controller.mode()).rate,
            mean_phy_rate: Rate::from_bps(mean),
            ..self.counts
        }
    }

    pub(super) fn reset_statistics(&mut self) {
        self.counts = WifiLinkStatistics::default();
        self.kbps_sum = 0;
    }
}
