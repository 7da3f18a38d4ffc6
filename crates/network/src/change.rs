//! Changes of the network at given times: a link gets slower, a station moves away.
//!
//! A change comes before all other events of its moment. A wired link takes it up at once, also in the middle of a
//! packet; on Wi-Fi a frame on the air ends as it began:
//!
//! | change | effect |
//! | --- | --- |
//! | a rate | what is left of the packet in transmission goes at the new one, and so do waiting packets |
//! | a delay | packets already sent keep their arrival times; after a shorter delay, later ones arrive right behind
//! them |
//! | a probability of loss | the loss of the packet in transmission is drawn at its end, with the new probability |
//! | a station's PHY rate or MCS | the frame on the air goes on; the next one, even a retry, has the new rate; rate
//! control restarts below it |
//! | a station's frame error rate or SNR | the frame on the air already has the new one |
//! | opportunities of a trace | as a rate; what is left of the packet in transmission leaves by them |
//! | a hold | a wired link stands still in the middle of a packet, a station after the frame on the air; nothing is lost
//! but what finds a queue full |
//! | a roam ([`Roam`](crate::Roam)) | an exchange on the air ends; then as a hold, but what waits at the old access point is lost |
//!
//! A link direction with changes chooses its next packet when it is free, as FQ-CoDel does. It takes two events per
//! packet. If a packet arrives in the nanosecond in which another has been sent, the order of the links decides.
//!
//! Leaves out: links that come and go (with a loss of 1 a link carries nothing, and routes stay); queues that change;
//! stations that turn into 802.11b stations.

use crate::config::{
    AccessConfig, ChangeField, Config, ConfigError, DirectionConfig, Field, LinksConfig, PathConfig, Topology,
    WifiConfig, check, check_rate, check_snr,
};
use crate::opportunities::Opportunities;
use crate::server::NewPace;
use crate::statistics::Way;
use crate::wifi::{PhyRate, Standard};
use lasthop_units::{Probability, Rate, Span, Time};
use std::sync::Arc;

/// A change at a given time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change {
    /// Its time.
    pub at: Time,
    /// The change.
    pub what: Changed,
}

/// The changed values. `None`: unchanged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Changed {
    /// One direction of a link.
    Link {
        /// Its number in [`LinksConfig::links`].
        link: usize,
        /// Its direction.
        way: Way,
        /// Its new values.
        to: DirectionChange,
    },
    /// The path behind the access point.
    Path {
        /// Its round-trip time, half each way; hosts with a path of their own keep theirs.
        rtt: Option<Span>,
        /// The rate of each direction.
        rate: Option<Rate>,
        /// The loss towards the server.
        loss: Option<Probability>,
        /// Whether it is held, both ways.
        held: Option<bool>,
        /// Opportunities that both ways follow, instead of a rate: their number in [`Config::opportunities`].
        opportunities: Option<usize>,
    },
    /// A wired last hop.
    Wired {
        /// The rate of each direction.
        rate: Option<Rate>,
        /// The delay of each direction.
        delay: Option<Span>,
        /// Whether it is held, both ways.
        held: Option<bool>,
        /// Opportunities that both ways follow, instead of a rate: their number in [`Config::opportunities`].
        opportunities: Option<usize>,
    },
    /// A station of a Wi-Fi access point.
    Station {
        /// The host.
        host: usize,
        /// 802.11b and 802.11g: its own PHY rate in both directions; with rate control, the highest one. In 802.11bg an
        /// 802.11b station stays one, and no other becomes one.
        rate: Option<Rate>,
        /// 802.11n and later: its own MCS in both directions; with rate control, the highest one.
        mcs: Option<u8>,
        /// Its own frame error rate in both directions. Only of a host without SNR.
        frame_error_rate: Option<Probability>,
        /// Its SNR in both directions in dB; see [`HostConfig::snr_db`](crate::HostConfig::snr_db). Only of a host with
        /// an SNR from the start.
        snr_db: Option<f64>,
        /// Whether it is held: nothing is sent to it or by it, and frames wait.
        held: Option<bool>,
    },
    /// A station leaves its access point: its number in [`Cells::roams`](crate::Cells::roams). Not in [`Config::changes`]; the network
    /// makes it of the roam.
    Left(usize),
    /// It is associated with the new one. Likewise.
    Associated(usize),
}

/// New values of a link direction. `None`: unchanged.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct DirectionChange {
    /// Its rate, more than zero.
    pub rate: Option<Rate>,
    /// Its delay.
    pub delay: Option<Span>,
    /// Its random loss.
    pub loss: Option<Probability>,
    /// Whether it is held: nothing is sent, and packets wait in its queue.
    pub held: Option<bool>,
    /// Opportunities that it follows from then on, instead of a rate, until a rate is given: their number in
    /// [`Config::opportunities`].
    pub opportunities: Option<usize>,
}

impl Config {
    /// This network after all changes up to and including `at`, without the later ones. A hold leaves it as it is.
    ///
    /// # Panics
    /// If a change refers to a missing part of this network: see [`Config::validate`].
    pub fn at(&self, at: Time) -> Self {
        let mut config = Self { changes: Vec::new(), ..self.clone() };
        for change in self.changes_in_order().into_iter().filter(|change| change.at <= at) {
            change.what.apply(&mut config);
        }
        config
    }

    /// Shows this network at time zero, and after all changes of each later moment, in one pass. As [`Config::at`] of
    /// each of these times.
    ///
    /// # Panics
    /// As [`Config::at`].
    pub fn each_state(&self, mut show: impl FnMut(Time, &Self)) {
        let changes = self.changes_in_order();
        let mut config = Self { changes: Vec::new(), ..self.clone() };
        let first = changes.partition_point(|change| change.at <= Time::ZERO);
        changes[..first].iter().for_each(|change| change.what.apply(&mut config));
        show(Time::ZERO, &config);
        for together in changes[first..].chunk_by(|one, next| one.at == next.at) {
            together.iter().for_each(|change| change.what.apply(&mut config));
            show(together[0].at, &config);
        }
    }

    /// The changes by time, then in the order of the configuration; roams behind the others of their moment.
    pub(crate) fn changes_in_order(&self) -> Vec<Change> {
        let mut changes = self.changes.clone();
        for (number, roam) in self.cells.iter().flat_map(|cells| cells.roams.iter().enumerate()) {
            changes.push(Change { at: roam.at, what: Changed::Left(number) });
            changes.push(Change { at: roam.associated(), what: Changed::Associated(number) });
        }
        changes.sort_by_key(|change| change.at);
        changes
    }

    /// Whether the path changes.
    pub(crate) fn path_changes(&self) -> bool {
        self.changes.iter().any(|change| matches!(change.what, Changed::Path { .. }))
    }

    /// Whether the wired last hop changes.
    pub(crate) fn wired_changes(&self) -> bool {
        self.changes.iter().any(|change| matches!(change.what, Changed::Wired { .. }))
    }

    /// Whether this direction of this link changes.
    pub(crate) fn link_changes(&self, link: usize, way: Way) -> bool {
        let about_it =
            |what: &Changed| matches!(what, Changed::Link { link: l, way: w, .. } if (*l, *w) == (link, way));
        self.changes.iter().any(|change| about_it(&change.what))
    }

    pub(crate) fn validate_changes(&self) -> Result<(), ConfigError> {
        for (index, change) in self.changes.iter().enumerate() {
            change.what.validate(self).map_err(ConfigError::of(|field| Field::Change(index, field)))?;
        }
        Ok(())
    }
}

impl Changed {
    fn opportunities(self) -> Option<usize> {
        match self {
            Self::Link { to, .. } => to.opportunities,
            Self::Path { opportunities, .. } | Self::Wired { opportunities, .. } => opportunities,
            Self::Station { .. } | Self::Left(_) | Self::Associated(_) => None,
        }
    }

    /// The pace of the transmitter from then on.
    pub(crate) fn pace(self, opportunities: &[Arc<Opportunities>]) -> NewPace {
        let (rate, held) = match self {
            Self::Link { to, .. } => (to.rate, to.held),
            Self::Path { rate, held, .. } | Self::Wired { rate, held, .. } => (rate, held),
            Self::Station { .. } | Self::Left(_) | Self::Associated(_) => (None, None),
        };
        let opportunities = self.opportunities().map(|number| Arc::clone(&opportunities[number]));
        NewPace { rate, opportunities, held }
    }

    fn apply(self, config: &mut Config) {
        let mean = self.opportunities().map(|number| config.opportunities[number].mean_rate());
        match (self, &mut config.topology) {
            (Self::Link { link, way, to }, Topology::Links(links)) => {
                DirectionChange { rate: mean.or(to.rate), ..to }.apply(links.direction_mut(link, way));
            }
            (Self::Path { rtt, rate, loss, .. }, Topology::AccessPoint { path, .. }) => {
                let PathConfig { rtt: old_rtt, rate: old_rate, loss: old_loss, .. } = path;
                *old_rtt = rtt.unwrap_or(*old_rtt);
                *old_rate = mean.or(rate).unwrap_or(*old_rate);
                *old_loss = loss.unwrap_or(*old_loss);
            }
            (Self::Wired { rate, delay, .. }, Topology::AccessPoint { access: AccessConfig::Wired(wired), .. }) => {
                wired.rate = mean.or(rate).unwrap_or(wired.rate);
                wired.delay = delay.unwrap_or(wired.delay);
            }
            (
                Self::Station { host, rate, mcs, frame_error_rate, snr_db, .. },
                Topology::AccessPoint { access: AccessConfig::Wifi(_), .. },
            ) => {
                let host = &mut config.hosts[host];
                host.rate = rate.or(host.rate);
                host.mcs = mcs.or(host.mcs);
                host.frame_error_rate = frame_error_rate.or(host.frame_error_rate);
                host.snr_db = snr_db.or(host.snr_db);
            }
            (Self::Left(_), _) => {}
            (Self::Associated(roam), _) => config.cells.iter_mut().for_each(|cells| cells.follow(roam)),
            (what, _) => panic!("this network has nothing that {what:?} is about"),
        }
    }

    fn validate(&self, config: &Config) -> Result<(), ConfigError<ChangeField>> {
        let missing = |what: &str, accepted: &str| {
            check(false, ChangeField::What, || {
                (format!("about {what}, which this network does not have"), accepted.to_owned())
            })
        };
        if let Some(number) = self.opportunities() {
            check(number < config.opportunities.len(), ChangeField::Opportunities, || {
                (format!("trace {number}"), format!("traces below {}", config.opportunities.len()))
            })?;
        }
        match (*self, &config.topology) {
            (Self::Link { link, to, .. }, Topology::Links(links)) => {
                check(link < links.links.len(), ChangeField::Link, || {
                    (format!("link {link}"), format!("links 0 to {}", links.links.len() - 1))
                })?;
                to.rate.map_or(Ok(()), |rate| check_rate(ChangeField::Rate, rate))
            }
            (Self::Link { .. }, Topology::AccessPoint { .. }) => missing("a link", "the path, the access or a station"),
            (_, Topology::Links(_)) => missing("an access point or its path", "links"),
            (Self::Path { rate, .. }, _) => rate.map_or(Ok(()), |rate| check_rate(ChangeField::Rate, rate)),
            (Self::Wired { rate, .. }, Topology::AccessPoint { access: AccessConfig::Wired(_), .. }) => {
                rate.map_or(Ok(()), |rate| check_rate(ChangeField::Rate, rate))
            }
            (Self::Wired { .. }, _) => missing("a wired access", "a station, or the path"),
            (
                Self::Station { host, rate, mcs, frame_error_rate, snr_db, .. },
                Topology::AccessPoint { access: AccessConfig::Wifi(wifi), .. },
            ) => {
                check(host < config.hosts.len(), ChangeField::Host, || {
                    (format!("host {host}"), format!("hosts 0 to {}", config.hosts.len() - 1))
                })?;
                let has_snr = config.hosts[host].snr_db.is_some();
                if let Some(snr_db) = snr_db {
                    check(has_snr, ChangeField::SnrDb, || {
                        (snr_db.to_string(), format!("none, for host {host} has no SNR that could change"))
                    })?;
                    check_snr(ChangeField::SnrDb, snr_db)?;
                }
                if let Some(errors) = frame_error_rate {
                    check(!has_snr, ChangeField::FrameErrorRate, || {
                        (errors.get().to_string(), format!("none, for the errors of host {host} follow from its SNR"))
                    })?;
                }
                let own = wifi.of_station(&config.hosts[host]);
                mcs.map_or(Ok(()), |mcs| own.check_mcs(ChangeField::Mcs, mcs))?;
                rate.map_or(Ok(()), |rate| own.check_new_rate(rate))
            }
            (Self::Left(_) | Self::Associated(_), _) => missing("a roam", "cells.roams"),
            (Self::Station { .. }, _) => missing("a station of Wi-Fi", "a wired access, or the path"),
        }
    }
}

impl DirectionChange {
    fn apply(self, direction: &mut DirectionConfig) {
        direction.rate = self.rate.unwrap_or(direction.rate);
        direction.delay = self.delay.unwrap_or(direction.delay);
        direction.loss = self.loss.unwrap_or(direction.loss);
    }
}

impl LinksConfig {
    fn direction_mut(&mut self, link: usize, way: Way) -> &mut DirectionConfig {
        let link = &mut self.links[link];
        match way {
            Way::Forth => &mut link.forth,
            Way::Back => &mut link.back,
        }
    }
}

impl WifiConfig {
    /// Whether the station of which this is the medium may get another rate.
    fn check_new_rate(&self, rate: Rate) -> Result<(), ConfigError<ChangeField>> {
        // Beside 802.11g, an 802.11b station has another contention window and another set of rates.
        let of_its_kind = |other: &PhyRate| self.standard != Standard::Bg || other.is_ofdm() == self.rate.is_ofdm();
        let accepted: Vec<PhyRate> = self.rates().into_iter().filter(of_its_kind).collect();
        self.check_rate(ChangeField::Rate, rate, &accepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HostConfig, LinkConfig, LossAt, WiredAccessConfig};
    use crate::impairments::Impairments;
    use crate::queue::QueueConfig;
    use crate::wifi::Band;

    fn access_point(access: AccessConfig) -> Config {
        let path = PathConfig {
            rtt: Span::from_millis(4),
            rate: Rate::from_mbps(1000.0),
            loss: Probability::ZERO,
            queue_packets: 10,
            back_loss: Probability::ZERO,
            impairments: [Impairments::NONE; 2],
        };
        Config::new(vec![HostConfig::new(10); 2], Topology::AccessPoint { access, path })
    }

    fn wired() -> AccessConfig {
        let queue = QueueConfig::fifo(50);
        AccessConfig::Wired(WiredAccessConfig { rate: Rate::from_mbps(100.0), delay: Span::ZERO, queue })
    }

    fn refused(mut config: Config, what: Changed) -> String {
        config.changes = vec![Change { at: Time::ZERO, what }];
        config.validate().expect_err("a change that cannot be").to_string()
    }

    fn station(host: usize, mbps: f64) -> Changed {
        Changed::Station {
            host,
            rate: Some(Rate::from_mbps(mbps)),
            mcs: None,
            frame_error_rate: None,
            snr_db: None,
            held: None,
        }
    }

    #[test]
    fn a_change_of_what_is_not_there_is_refused() {
        let wifi = access_point(AccessConfig::Wifi(WifiConfig::new(Standard::G)));
        assert_eq!(refused(wifi.clone(), station(2, 6.0)), "changes[0].host is host 2; accepted: hosts 0 to 1");
        assert_eq!(
            refused(wifi.clone(), station(0, 11.0)),
            "changes[0].rate is 11 Mb/s; accepted: 6 Mb/s, 9 Mb/s, 12 Mb/s, 18 Mb/s, 24 Mb/s, 36 Mb/s, 48 Mb/s, 54 Mb/s"
        );
        let nothing = |what: &str, accepted: &str| {
            format!("changes[0].what is about {what}, which this network does not have; accepted: {accepted}")
        };
        let wired_change =
            Changed::Wired { rate: Some(Rate::from_mbps(1.0)), delay: None, held: None, opportunities: None };
        assert_eq!(refused(wifi.clone(), wired_change), nothing("a wired access", "a station, or the path"));
        let station_of_none = nothing("a station of Wi-Fi", "a wired access, or the path");
        assert_eq!(refused(access_point(wired()), station(0, 6.0)), station_of_none);
        let link = Changed::Link { link: 0, way: Way::Forth, to: DirectionChange::default() };
        assert_eq!(refused(wifi, link), nothing("a link", "the path, the access or a station"));
        let stopped = Changed::Path { rtt: None, rate: Some(Rate::ZERO), loss: None, held: None, opportunities: None };
        assert_eq!(refused(access_point(wired()), stopped), "changes[0].rate is 0 Mb/s; accepted: more than 0 Mb/s");
    }

    #[test]
    fn beside_802_11g_a_station_stays_of_its_kind() {
        let mut config = access_point(AccessConfig::Wifi(WifiConfig::new(Standard::Bg)));
        config.hosts[1].rate = Some(Rate::from_mbps(11.0));
        let dsss = "changes[0].rate is 54 Mb/s; accepted: 1 Mb/s, 2 Mb/s, 5.5 Mb/s, 11 Mb/s";
        assert_eq!(refused(config.clone(), station(1, 54.0)), dsss);
        assert!(refused(config.clone(), station(0, 1.0)).starts_with("changes[0].rate is 1 Mb/s; accepted: 6 Mb/s"));
        config.changes = vec![Change { at: Time::ZERO, what: station(1, 2.0) }];
        assert_eq!(config.validate(), Ok(()));
    }

    #[test]
    fn a_station_changes_within_its_own_standard() {
        let n = WifiConfig { band: Band::Ghz2_4, ..WifiConfig::new(Standard::N) };
        let mut config = access_point(AccessConfig::Wifi(n));
        config.hosts[0].standard = Some(Standard::G);
        let mcs = |host| Changed::Station {
            host,
            rate: None,
            mcs: Some(3),
            frame_error_rate: None,
            snr_db: None,
            held: None,
        };
        let none = "accepted: none, for only hosts of 802.11n and later have an MCS";
        assert_eq!(refused(config.clone(), mcs(0)), format!("changes[0].mcs is 3; {none}"));
        let none = "accepted: none, for hosts of 802.11n and later have an MCS";
        assert_eq!(refused(config.clone(), station(1, 6.0)), format!("changes[0].rate is 6 Mb/s; {none}"));
        config.changes = [station(0, 6.0), mcs(1)].map(|what| Change { at: Time::ZERO, what }).into();
        assert_eq!(config.validate(), Ok(()));
    }

    #[test]
    fn errors_of_a_station_with_an_snr_follow_from_it_alone() {
        let mut config = access_point(AccessConfig::Wifi(WifiConfig::new(Standard::Ac)));
        config.hosts[0].snr_db = Some(20.0);
        let change = |host, frame_error_rate: Option<f64>, snr_db| Changed::Station {
            host,
            rate: None,
            mcs: None,
            frame_error_rate: frame_error_rate.map(|errors| Probability::new(errors).unwrap()),
            snr_db,
            held: None,
        };
        let error = |what| refused(config.clone(), what);
        let follow = "changes[0].frame_error_rate is 0.1; accepted: none, for the errors of host 0 follow from its SNR";
        assert_eq!(error(change(0, Some(0.1), None)), follow);
        let none = "changes[0].snr_db is 9; accepted: none, for host 1 has no SNR that could change";
        assert_eq!(error(change(1, None, Some(9.0))), none);
        assert_eq!(error(change(0, None, Some(61.0))), "changes[0].snr_db is 61; accepted: -10 to 60 dB");
        config.changes = vec![Change { at: Time::ZERO, what: change(0, None, Some(9.0)) }];
        assert_eq!(config.validate(), Ok(()));
        assert_eq!(config.at(Time::ZERO).hosts[0].snr_db, Some(9.0));
    }

    #[test]
    fn a_configuration_at_a_time_has_the_changes_until_then_in_order() {
        let direction = DirectionConfig {
            rate: Rate::from_mbps(8.0),
            delay: Span::from_millis(1),
            queue: QueueConfig::fifo(50),
            loss: Probability::ZERO,
            loss_at: LossAt::AfterQueue,
            impairments: Impairments::NONE,
        };
        let links = vec![LinkConfig { ends: (0, 1), forth: direction, back: direction }];
        let topology = Topology::Links(LinksConfig { nodes: 2, attached: vec![0], links });
        let change = |at, mbps| Change {
            at: Time::ZERO + Span::from_secs(at),
            what: Changed::Link {
                link: 0,
                way: Way::Back,
                to: DirectionChange { rate: Some(Rate::from_mbps(mbps)), ..DirectionChange::default() },
            },
        };
        let config = Config {
            changes: vec![change(9, 3.0), change(5, 2.0), change(9, 4.0)],
            ..Config::new(vec![HostConfig::new(1)], topology)
        };
        let mbps_at = |at| {
            let Topology::Links(links) = config.at(Time::ZERO + Span::from_secs(at)).topology else { unreachable!() };
            (links.links[0].forth.rate.as_mbps(), links.links[0].back.rate.as_mbps())
        };
        assert_eq!([4, 5, 9].map(mbps_at), [(8.0, 8.0), (8.0, 2.0), (8.0, 4.0)]);
    }
}
