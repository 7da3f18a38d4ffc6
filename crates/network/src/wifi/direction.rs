//! One direction between a station and the access point: its two ends in each access category, its rate, its counts.

use super::airtime::{AirTimes, Mode, ModeId};
use super::alone::best_mode;
use super::edca::Category;
use super::noise::Noise;
use super::originator::Originator;
use super::rate_control::{AnyController, Controller as _, Decision, RateControl, Setup};
use super::recipient::Recipient;
use crate::config::{HostConfig, WifiConfig};
use crate::packet::NodeId;
use crate::random::{Streams, numbers};
use crate::statistics::{Way, WifiLinkStatistics};
use lasthop_units::{Rate, Time};
use rand_chacha::ChaCha8Rng;

/// From the station, and to it.
pub(super) const UP: Way = Way::Forth;
pub(super) const DOWN: Way = Way::Back;

/// A station's direction in an access category: the index of its state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) station: usize,
    pub(super) way: Way,
    pub(super) category: Category,
}

impl Link {
    /// The station.
    pub(super) const fn node(self) -> NodeId {
        NodeId(self.station as u16)
    }
}

/// Both ends of a link.
#[derive(Clone, Debug)]
pub(super) struct Ends<P> {
    pub(super) originator: Originator,
    pub(super) recipient: Recipient<P>,
}

#[derive(Clone, Debug)]
pub(super) struct Direction<P> {
    pub(super) ends: EndsByCategory<P>,
    pub(super) controller: AnyController,
    /// The mode of a fresh controller, which the next transmission begins with. The one on the air is for the present
    /// controller.
    pub(super) new_mode: Option<ModeId>,
    /// The number of such changes.
    changes: u32,
    pub(super) counts: WifiLinkStatistics,
    /// Sum over the transmissions' rates.
    kbps_sum: u64,
    pub(super) most_frames: usize,
    pub(super) amsdu_bytes: u64,
}

/// The ends in each access category. Those other than best effort exist once used.
#[derive(Clone, Debug)]
pub(super) struct EndsByCategory<P> {
    best_effort: Ends<P>,
    others: Option<Box<[Ends<P>; 3]>>,
}

impl<P> Ends<P> {
    fn new(window: u16) -> Self {
        Self { originator: Originator::new(window), recipient: Recipient::new(window) }
    }
}

impl<P> EndsByCategory<P> {
    /// The ends in this category; `None` if it was never used.
    #[inline]
    pub(super) fn at(&self, category: Category) -> Option<&Ends<P>> {
        match category {
            Category::BestEffort => Some(&self.best_effort),
            other => self.others.as_ref().map(|others| &others[other.place() - 1]),
        }
    }

    /// The same, and it is used from now on.
    #[inline]
    pub(super) fn at_mut(&mut self, category: Category) -> &mut Ends<P> {
        if category == Category::BestEffort { &mut self.best_effort } else { self.other_at_mut(category) }
    }

    #[cold]
    fn other_at_mut(&mut self, category: Category) -> &mut Ends<P> {
        let window = self.best_effort.originator.window();
        let others = self.others.get_or_insert_with(|| Box::new([(); 3].map(|()| Ends::new(window))));
        &mut others[category.place() - 1]
    }

    fn all(&self) -> impl Iterator<Item = &Ends<P>> {
        [&self.best_effort].into_iter().chain(self.others.iter().flat_map(|others| others.iter()))
    }
}

/// What the stations and the access point can do, and the streams of new controllers.
#[derive(Clone, Debug)]
pub(super) struct Controllers {
    /// By station: the medium as it uses it.
    pub(super) stations: Vec<WifiConfig>,
    /// By station: its number in the names of streams.
    pub(super) numbers: Vec<u16>,
    streams: Streams,
}

impl Controllers {
    pub(super) fn new(config: &WifiConfig, hosts: &[HostConfig], streams: Streams) -> Self {
        Self {
            stations: hosts.iter().map(|host| config.of_station(host)).collect(),
            numbers: numbers(hosts.iter().map(|host| host.is_idle)),
            streams,
        }
    }

    /// The mode of this station if its controller does not choose.
    pub(super) fn mode(&self, station: usize, times: &AirTimes, noise: &Noise) -> ModeId {
        let own = &self.stations[station];
        match own.rate_control {
            RateControl::Ideal => best_mode(own, times, noise),
            _ if own.standard.aggregates() => times.highest(own),
            _ => own.rate.into(),
        }
    }

    fn stream(&self, purpose: &str, link: Link, number: u32) -> ChaCha8Rng {
        let way = ["up", "down"][link.way];
        let number = if number == 0 { String::new() } else { format!("/{number}") };
        let station = self.numbers[link.station];
        self.streams.stream(&format!("wifi/{purpose}/{station}/{way}{number}"))
    }

    /// The `number`th controller of this direction.
    fn controller(&self, times: &AirTimes, mode: ModeId, link: Link, number: u32) -> AnyController {
        let stream = |purpose: &str| self.stream(purpose, link, number);
        AnyController::new(&Setup { times, own: &self.stations[link.station], mode, stream: &stream })
    }
}

impl<P> Direction<P> {
    /// An idle direction.
    pub(super) fn new(controllers: &Controllers, times: &AirTimes, mode: ModeId, link: Link) -> Self {
        let own = &controllers.stations[link.station];
        Self {
            ends: EndsByCategory { best_effort: Ends::new(own.block_ack_window()), others: None },
            controller: controllers.controller(times, mode, link, 0),
            new_mode: None,
            changes: 0,
            counts: WifiLinkStatistics::default(),
            kbps_sum: 0,
            most_frames: own.aggregate_frames.into(),
            amsdu_bytes: own.amsdu_bytes.get(),
        }
    }

    /// A transmission begins: how to send it. A Block Ack Request has the mode that is usual at present.
    #[inline]
    pub(super) fn decide(&mut self, now: Time, controllers: &Controllers, times: &AirTimes, link: Link) -> Decision {
        if self.new_mode.is_some() {
            self.begin_anew(controllers, times, link);
        }
        if self.ends.at_mut(link.category).originator.is_request_due() {
            return self.controller.mode().into();
        }
        self.controller.next(now)
    }

    /// It has a fresh controller from now on.
    #[cold]
    fn begin_anew(&mut self, controllers: &Controllers, times: &AirTimes, link: Link) {
        if let Some(mode) = self.new_mode.take() {
            self.changes += 1;
            self.controller = controllers.controller(times, mode, link, self.changes);
        }
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
        self.ends.all().map(|ends| ends.originator.packets_inside() + ends.recipient.packets_inside()).sum()
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
