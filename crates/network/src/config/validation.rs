//! Whether a configuration describes a network that can be built.

use super::{
    AccessConfig, Cells, Config, ConfigError, DirectionConfig, DirectionField, Field, HearingLevel, HostConfig,
    HostField, HostPath, LinkField, LinksConfig, NetworkField, PathConfig, PathField, QueueField, Roam, Topology,
    WifiConfig, WifiField,
};
use crate::change::Changed;
use crate::queue::{Discipline, QueueConfig};
use crate::wifi::{Band, ChannelWidth, Modulation, PhyRate, RateControl, Standard};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::fmt::Display;

impl Config {
    /// Checks whether the network can be built.
    ///
    /// # Errors
    /// The first invalid field, and the accepted values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let hosts = self.hosts.len();
        let others = match &self.topology {
            Topology::AccessPoint { .. } => 1,
            Topology::Links(links) => {
                check((2..=1024).contains(&links.nodes), Field::Network(NetworkField::Nodes), || {
                    (format!("{} nodes", links.nodes), "2 to 1024 nodes".into())
                })?;
                links.nodes
            }
        };
        let most = usize::from(u16::MAX) - others;
        check((1..=most).contains(&hosts), Field::Network(NetworkField::Hosts), || {
            (format!("{hosts} hosts"), format!("1 to {most} hosts"))
        })?;
        match &self.topology {
            Topology::AccessPoint { access, path } => {
                access.validate()?;
                path.validate().map_err(ConfigError::of(Field::Path))?;
            }
            Topology::Links(links) => links.validate(hosts)?,
        }
        for (index, host) in self.hosts.iter().enumerate() {
            host.validate(&self.topology).map_err(ConfigError::of(|field| Field::Host(index, field)))?;
        }
        if let Some(cells) = &self.cells {
            cells.validate(self)?;
        }
        self.validate_changes()
    }
}

impl Cells {
    fn validate(&self, network: &Config) -> Result<(), ConfigError> {
        let check =
            |holds, problem: &dyn Fn() -> (String, String)| check(holds, Field::Network(NetworkField::Cells), problem);
        let is_wifi = matches!(network.topology, Topology::AccessPoint { access: AccessConfig::Wifi(_), .. });
        check(is_wifi, &|| ("there".into(), "none, for only Wi-Fi has cells".into()))?;
        let (hosts, nodes) = (network.hosts.len(), self.nodes());
        check(self.access_points >= 1 && nodes < usize::from(u16::MAX), &|| {
            (format!("{} access points", self.access_points), "1 or more, and with the hosts below 65535".into())
        })?;
        check(self.of_host.len() == hosts, &|| {
            (format!("for {} hosts", self.of_host.len()), format!("an access point for each of the {hosts} hosts"))
        })?;
        check(self.hearing.len() == nodes * nodes, &|| {
            (format!("hearing of {} pairs", self.hearing.len()), format!("of {} pairs", nodes * nodes))
        })?;
        check(self.capture_db > 0.0 && self.capture_db.is_finite(), &|| {
            (format!("capture_db {}", self.capture_db), "more than 0 dB".into())
        })?;
        for (host, &number) in self.of_host.iter().enumerate() {
            let number = usize::from(number);
            check(number < self.access_points, &|| {
                (format!("access point {number} of host {host}"), format!("0 to {}", self.access_points - 1))
            })?;
            let hears = |from, to| self.hearing(from, to).level == HearingLevel::Hears;
            let access_point = hosts + number;
            check(hears(host, access_point) && hears(access_point, host), &|| {
                (format!("host {host} and access point {number} apart"), "they hear each other".into())
            })?;
        }
        check(self.path_rtts.is_empty() || self.path_rtts.len() == self.access_points, &|| {
            (format!("round trips of {} access points", self.path_rtts.len()), format!("of all {}", self.access_points))
        })?;
        self.validate_roams()?;
        let held = network.changes.iter().any(|change| matches!(change.what, Changed::Station { held: Some(_), .. }));
        check(!held, &|| {
            ("with stations held".into(), "no station held, where there are several cells or levels of hearing".into())
        })
    }
}

impl Cells {
    fn validate_roams(&self) -> Result<(), ConfigError> {
        let check =
            |holds, problem: &dyn Fn() -> (String, String)| check(holds, Field::Network(NetworkField::Cells), problem);
        let mut now: Vec<_> = self.of_host.iter().map(|&number| (number, Time::ZERO)).collect();
        for roam in &self.roams {
            let Roam { host, at, outage, to, ref hearing } = *roam;
            check(host < now.len(), &|| (format!("roaming host {host}"), format!("0 to {}", now.len() - 1)))?;
            let (from, since) = now[host];
            check(at >= since, &|| {
                (format!("host {host} roams at {at}"), format!("from {since} on, when it has its access point"))
            })?;
            check(outage >= Roam::LEAST_OUTAGE, &|| {
                (format!("an outage of {outage}"), format!("{} or more", Roam::LEAST_OUTAGE))
            })?;
            check(usize::from(to) < self.access_points && to != from, &|| {
                (
                    format!("host {host} roams to access point {to}"),
                    format!("another than {from}, of {}", self.access_points),
                )
            })?;
            let own = hearing.get(self.of_host.len() + usize::from(to));
            check(hearing.len() == self.nodes() && own.is_some_and(|own| own.level == HearingLevel::Hears), &|| {
                (format!("host {host} and access point {to} apart"), "they hear each other".into())
            })?;
            now[host] = (to, roam.associated());
        }
        Ok(())
    }
}

impl AccessConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Wifi(wifi) => wifi.validate().map_err(ConfigError::of(Field::Wifi)),
            Self::Wired(wired) => validate_link(wired.rate, wired.queue).map_err(ConfigError::of(Field::Wired)),
        }
    }
}

impl PathConfig {
    fn validate(&self) -> Result<(), ConfigError<PathField>> {
        check_queue(PathField::QueuePackets, self.queue_packets)?;
        check_rate(PathField::Rate, self.rate)?;
        let [up, down] = &self.impairments;
        up.validate(PathField::LossBurst, self.loss)?;
        down.validate(PathField::BackLossBurst, self.back_loss)
    }
}

impl HostConfig {
    fn validate(&self, topology: &Topology) -> Result<(), ConfigError<HostField>> {
        check_queue(HostField::QueuePackets, self.queue_packets)?;
        let wifi = match topology {
            Topology::AccessPoint { access: AccessConfig::Wifi(wifi), .. } => Some(wifi),
            _ => None,
        };
        self.validate_standard(wifi)?;
        let own = wifi.map(|wifi| wifi.of_station(self));
        if let Some(rate) = self.rate {
            let none = |why: &str| check(false, HostField::Rate, || (rate.to_string(), format!("none, for {why}")));
            match (&own, topology) {
                (Some(own), _) => own.check_rate(HostField::Rate, rate, &own.rates()),
                (None, Topology::AccessPoint { .. }) => none("the hosts behind a wired access share its rate"),
                (None, Topology::Links(_)) => none("hosts on a node send at the rates of its links"),
            }?;
        }
        if let Some(mcs) = self.mcs {
            match &own {
                Some(own) => own.check_mcs(HostField::Mcs, mcs),
                None => check(false, HostField::Mcs, || {
                    (mcs.to_string(), "none, for only hosts on Wi-Fi have an MCS".into())
                }),
            }?;
        }
        if let Some(snr_db) = self.snr_db {
            check(wifi.is_some_and(|wifi| wifi.standard.aggregates()), HostField::SnrDb, || {
                (snr_db.to_string(), "none, for only hosts of 802.11n and later have an SNR".into())
            })?;
            check(self.standard != Some(Standard::B), HostField::SnrDb, || {
                (snr_db.to_string(), "none, for a host of 802.11b has a frame error rate instead".into())
            })?;
            check_snr(HostField::SnrDb, snr_db)?;
            check(self.frame_error_rate.is_none(), HostField::SnrDb, || {
                (snr_db.to_string(), "an SNR or a frame error rate, not both".into())
            })?;
        }
        if let Some(errors) = self.frame_error_rate {
            let on_wifi = matches!(topology, Topology::AccessPoint { access: AccessConfig::Wifi(_), .. });
            check(on_wifi, HostField::FrameErrorRate, || {
                (errors.get().to_string(), "none, for only Wi-Fi has frames".into())
            })?;
        }
        let (shortest, longest) = self.turnaround;
        check(shortest <= longest, HostField::Turnaround, || {
            (format!("{} to {}", in_us(shortest), in_us(longest)), "the shorter one, then the longer one".into())
        })?;
        if let Some(HostPath { rtt: (shortest, longest), .. }) = self.path {
            let given = || format!("{} to {}", in_ms(shortest), in_ms(longest));
            check(shortest <= longest, HostField::PathRtt, || {
                (given(), "the shorter one, then the longer one".into())
            })?;
            check(matches!(topology, Topology::AccessPoint { .. }), HostField::Path, || {
                (given(), "none, for the delays of links are theirs".into())
            })?;
        }
        if let Some(jitter) = self.path_jitter {
            check(matches!(topology, Topology::AccessPoint { .. }), HostField::PathJitter, || {
                (in_ms(jitter), "none, for the delays of links are theirs".into())
            })?;
        }
        Ok(())
    }
}

impl HostConfig {
    fn validate_standard(&self, wifi: Option<&WifiConfig>) -> Result<(), ConfigError<HostField>> {
        let only_later = |field: HostField, value: &dyn Display| {
            let later = wifi.is_some_and(|wifi| self.standard.unwrap_or(wifi.standard).aggregates());
            check(later, field, || (value.to_string(), "none, for only hosts of 802.11n and later have one".into()))
        };
        if let Some(standard) = self.standard {
            let accepted = wifi.map_or(Vec::new(), |wifi| wifi.standard.of_stations(wifi.band));
            check(accepted.contains(&standard), HostField::Standard, || {
                let accepted: Vec<_> = accepted.iter().map(|one| format!("\"{one}\"")).collect();
                let accepted = match wifi {
                    Some(wifi) if wifi.standard == Standard::Bg => {
                        "none, for the rate of a host of 802.11bg says it".into()
                    }
                    Some(wifi) => {
                        format!("{}, on an access point of {} at {}", accepted.join(", "), wifi.standard, wifi.band)
                    }
                    None => "none, for only hosts on Wi-Fi have a standard".into(),
                };
                (format!("\"{standard}\""), accepted)
            })?;
        }
        if let Some(width) = self.width {
            only_later(HostField::Width, &format_args!("{} MHz", width.mhz()))?;
            wifi.map_or(Ok(()), |wifi| {
                wifi.check_width(HostField::Width, width, self.standard.unwrap_or(wifi.standard))?;
                check(width <= wifi.modulation.width, HostField::Width, || {
                    let most = wifi.modulation.width.mhz();
                    (format!("{} MHz", width.mhz()), format!("at most the access point's {most} MHz"))
                })
            })?;
        }
        if let Some(streams) = self.spatial_streams {
            only_later(HostField::SpatialStreams, &streams)?;
            let most = wifi.map_or(0, |wifi| wifi.modulation.spatial_streams);
            check((1..=most).contains(&streams), HostField::SpatialStreams, || {
                (streams.to_string(), format!("1 to the access point's {most}"))
            })?;
        }
        Ok(())
    }
}

impl LinksConfig {
    fn validate(&self, hosts: usize) -> Result<(), ConfigError> {
        let nodes = || format!("nodes 0 to {}", self.nodes - 1);
        check(self.attached.len() == hosts, Field::Network(NetworkField::Attached), || {
            (format!("for {} hosts", self.attached.len()), format!("a node for each of the {hosts} hosts"))
        })?;
        for (host, &node) in self.attached.iter().enumerate() {
            check(node < self.nodes, Field::Network(NetworkField::Attached), || {
                (format!("node {node} for host {host}"), nodes())
            })?;
        }
        check(self.links.len() <= 32_768, Field::Network(NetworkField::Links), || {
            (format!("{} links", self.links.len()), "at most 32768".into())
        })?;
        for (index, link) in self.links.iter().enumerate() {
            let (one, other) = link.ends;
            let of_link = |field| Field::Link(index, field);
            check(one < self.nodes && other < self.nodes && one != other, of_link(LinkField::Ends), || {
                (format!("nodes {one} and {other}"), format!("two different ones of {}", nodes()))
            })?;
            link.forth.validate().map_err(ConfigError::of(|field| of_link(LinkField::Forth(field))))?;
            link.back.validate().map_err(ConfigError::of(|field| of_link(LinkField::Back(field))))?;
        }
        let unreachable = self.routes().unreachable();
        check(unreachable.is_none(), Field::Network(NetworkField::Links), || {
            let node = unreachable.unwrap_or_default();
            (
                format!("without a way from node 0 to node {node}"),
                "links that connect every node with every other".into(),
            )
        })
    }
}

impl DirectionConfig {
    fn validate(&self) -> Result<(), ConfigError<DirectionField>> {
        validate_link(self.rate, self.queue)?;
        self.impairments.validate(DirectionField::LossBurst, self.loss)
    }
}

/// One direction of a wired link.
fn validate_link(rate: Rate, queue: QueueConfig) -> Result<(), ConfigError<DirectionField>> {
    queue.validate_of_link().map_err(ConfigError::of(DirectionField::Queue))?;
    check_rate(DirectionField::Rate, rate)
}

impl WifiConfig {
    fn check_width<F: Display>(&self, field: F, width: ChannelWidth, standard: Standard) -> Result<(), ConfigError<F>> {
        check(self.widths(standard).any(|offered| offered == width), field, || {
            let accepted: Vec<_> = self.widths(standard).map(|width| format!("{} MHz", width.mhz())).collect();
            (format!("{} MHz", width.mhz()), accepted.join(", "))
        })
    }

    /// Whether a station's rate is available.
    pub(crate) fn check_rate<F: Display>(
        &self,
        field: F,
        rate: Rate,
        accepted: &[PhyRate],
    ) -> Result<(), ConfigError<F>> {
        let known = PhyRate::from_rate(rate).is_some_and(|rate| accepted.contains(&rate));
        check(known && !self.standard.aggregates(), field, || {
            let none = "none, for hosts of 802.11n and later have an MCS";
            (rate.to_string(), if self.standard.aggregates() { none.into() } else { list(accepted) })
        })
    }

    /// Whether a station's MCS is one of the standard's.
    pub(crate) fn check_mcs<F: Display>(&self, field: F, mcs: u8) -> Result<(), ConfigError<F>> {
        let Modulation { width, spatial_streams, .. } = self.modulation;
        let mut accepted = Modulation::mcss(self.standard, width, spatial_streams);
        check(accepted.any(|accepted| accepted == mcs), field, || {
            let accepted = Modulation::mcss(self.standard, width, spatial_streams).map(|mcs| mcs.to_string());
            let accepted = accepted.collect::<Vec<_>>().join(", ");
            let none = "none, for only hosts of 802.11n and later have an MCS";
            (mcs.to_string(), if accepted.is_empty() { none.into() } else { accepted })
        })
    }

    fn validate(&self) -> Result<(), ConfigError<WifiField>> {
        self.access_point_queue.validate().map_err(ConfigError::of(WifiField::AccessPointQueue))?;
        let bands = self.standard.bands();
        check(bands.contains(&self.band), WifiField::Band, || {
            let accepted: Vec<_> = bands.iter().map(Band::to_string).collect();
            (self.band.to_string(), format!("{} with {}", accepted.join(", "), self.standard))
        })?;
        if let Some(limits) = self.standard.aggregate_limits() {
            self.validate_modulation()?;
            check((1..=limits.window).contains(&self.aggregate_frames), WifiField::AggregateFrames, || {
                (self.aggregate_frames.to_string(), format!("1 to {} frames", limits.window))
            })?;
            check((Self::LEAST_MAX_PPDU..=Self::MAX_PPDU).contains(&self.max_ppdu), WifiField::MaxPpdu, || {
                (in_us(self.max_ppdu), format!("{} to {}", in_us(Self::LEAST_MAX_PPDU), in_us(Self::MAX_PPDU)))
            })?;
            check(self.amsdu_bytes <= limits.amsdu_bytes, WifiField::AmsduBytes, || {
                (self.amsdu_bytes.to_string(), format!("0 to {}", limits.amsdu_bytes))
            })?;
            check(self.start_spacing <= Self::MAX_START_SPACING, WifiField::StartSpacing, || {
                (in_us(self.start_spacing), format!("0 to {}", in_us(Self::MAX_START_SPACING)))
            })?;
            check(self.access_point_txop <= Self::MAX_TXOP, WifiField::AccessPointTxop, || {
                (in_us(self.access_point_txop), format!("at most {}", in_us(Self::MAX_TXOP)))
            })?;
        } else {
            check(self.aggregate_frames == 1, WifiField::AggregateFrames, || {
                (self.aggregate_frames.to_string(), "1, for only 802.11n and later have A-MPDUs".into())
            })?;
            check(self.amsdu_bytes == Bytes::ZERO, WifiField::AmsduBytes, || {
                (self.amsdu_bytes.to_string(), "0 B, for only 802.11n and later have A-MSDUs".into())
            })?;
            check(self.start_spacing.is_zero(), WifiField::StartSpacing, || {
                (in_us(self.start_spacing), "0 us, for only 802.11n and later have A-MPDUs".into())
            })?;
            check(self.access_point_txop.is_zero(), WifiField::AccessPointTxop, || {
                (in_us(self.access_point_txop), "0 us, for only 802.11n and later have access categories".into())
            })?;
        }
        let mut controls = RateControl::of(self.standard);
        check(controls.any(|control| control == self.rate_control), WifiField::RateControl, || {
            let accepted: Vec<_> = RateControl::of(self.standard).map(|control| format!("\"{control}\"")).collect();
            (format!("\"{}\"", self.rate_control), accepted.join(", "))
        })?;
        let least = self.standard.window(self.rate).min;
        let window = self.access_point_window;
        check(
            (window + 1).is_power_of_two() && (least..=1023).contains(&window),
            WifiField::AccessPointWindow,
            || (window.to_string(), format!("one less than a power of 2, from {least} to 1023")),
        )?;
        check(self.standard != Standard::Bg || self.rts_threshold.is_none(), WifiField::RtsThreshold, || {
            let bytes = self.rts_threshold.map_or(String::new(), |bytes| bytes.to_string());
            (bytes, "none, for 802.11bg protects its frames by CTS-to-self".into())
        })?;
        check(self.standard != Standard::Bg || !self.rts_on_retry, WifiField::RtsOnRetry, || {
            ("true".into(), "false, for 802.11bg protects its frames by CTS-to-self".into())
        })?;
        let rates = self.rates();
        let one_of = |field: WifiField, rate: PhyRate, accepted: &[PhyRate]| {
            check(accepted.contains(&rate), field, || (rate.to_string(), list(accepted)))
        };
        one_of(WifiField::Rate, self.rate, &rates)?;
        if let Some(rate) = self.broadcast_rate {
            one_of(WifiField::BroadcastRate, rate, &rates)?;
        }
        let dsss: Vec<_> = PhyRate::ALL.into_iter().filter(|rate| !rate.is_ofdm()).collect();
        one_of(WifiField::ProtectionRate, self.protection_rate, &dsss)
    }

    fn validate_modulation(&self) -> Result<(), ConfigError<WifiField>> {
        let Modulation { mcs, spatial_streams, width, guard_interval } = self.modulation;
        self.check_width(WifiField::Width, width, self.standard)?;
        check((1..=Modulation::MOST_STREAMS).contains(&spatial_streams), WifiField::SpatialStreams, || {
            (spatial_streams.to_string(), format!("1 to {}", Modulation::MOST_STREAMS))
        })?;
        let intervals = Modulation::guard_intervals(self.standard);
        check(intervals.contains(&guard_interval), WifiField::GuardInterval, || {
            let accepted: Vec<_> = intervals.iter().map(|interval| in_us(interval.span())).collect();
            (in_us(guard_interval.span()), accepted.join(", "))
        })?;
        self.check_mcs(WifiField::Mcs, mcs)
    }
}

impl QueueConfig {
    fn validate_of_link(&self) -> Result<(), ConfigError<QueueField>> {
        check(!self.discipline.is_of_wifi(), QueueField::Discipline, || {
            let words = |of_wifi| {
                let words = Discipline::WORDS.iter().filter(move |(_, one)| one.is_of_wifi() == of_wifi);
                words.map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
            };
            let accepted = format!("{}; only an access point of Wi-Fi has {}", words(false), words(true));
            (format!("\"{}\"", self.discipline.as_str()), accepted)
        })?;
        self.validate()
    }

    fn validate(&self) -> Result<(), ConfigError<QueueField>> {
        check_queue(QueueField::Packets, self.packets)?;
        self.discipline.validate().map_err(ConfigError::of(QueueField::Parameter))
    }
}

pub(crate) fn check<F: Display>(
    holds: bool,
    field: F,
    value_and_accepted: impl FnOnce() -> (String, String),
) -> Result<(), ConfigError<F>> {
    if holds {
        return Ok(());
    }
    let (value, accepted) = value_and_accepted();
    Err(ConfigError { field, value, accepted })
}

fn check_queue<F: Display>(field: F, packets: usize) -> Result<(), ConfigError<F>> {
    check(packets >= 1, field, || (packets.to_string(), "1 packet or more".into()))
}

pub(crate) fn check_rate<F: Display>(field: F, rate: Rate) -> Result<(), ConfigError<F>> {
    check(rate > Rate::ZERO, field, || (rate.to_string(), "more than 0 Mb/s".into()))
}

pub(crate) fn check_snr<F: Display>(field: F, snr_db: f64) -> Result<(), ConfigError<F>> {
    check((-10.0..=60.0).contains(&snr_db), field, || (snr_db.to_string(), "-10 to 60 dB".into()))
}

/// In the unit of the keys of delays.
fn in_ms(span: Span) -> String {
    format!("{} ms", span.as_millis_f64())
}

/// In the unit of the keys of the medium.
fn in_us(span: Span) -> String {
    format!("{} us", span.as_nanos() as f64 / 1e3)
}

fn list(rates: &[PhyRate]) -> String {
    let rates: Vec<_> = rates.iter().map(PhyRate::to_string).collect();
    rates.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::WiredAccessConfig;
    use crate::impairments::Impairments;
    use crate::wifi::RateSet;
    use lasthop_units::Probability;

    const PATH: PathConfig = PathConfig {
        rtt: Span::from_millis(4),
        rate: Rate::from_bps(1_000_000_000),
        loss: Probability::ZERO,
        queue_packets: 1000,
        back_loss: Probability::ZERO,
        impairments: [Impairments::NONE; 2],
    };

    fn config(access: AccessConfig) -> Config {
        Config::new(vec![HostConfig::new(10); 2], Topology::AccessPoint { access, path: PATH })
    }

    #[test]
    fn an_error_names_the_field_its_value_and_what_it_may_be() {
        let mut wrong = config(AccessConfig::Wifi(WifiConfig::new(Standard::B)));
        wrong.hosts[1].rate = Some(Rate::from_mbps(54.0));
        let message = wrong.validate().unwrap_err().to_string();
        assert_eq!(message, "hosts[1].rate is 54 Mb/s; accepted: 1 Mb/s, 2 Mb/s, 5.5 Mb/s, 11 Mb/s");
        let access = AccessConfig::Wifi(WifiConfig::new(Standard::G));
        let path = PathConfig { queue_packets: 0, ..PATH };
        wrong.topology = Topology::AccessPoint { access, path };
        wrong.hosts[1].rate = None;
        assert_eq!(wrong.validate().unwrap_err().to_string(), "path.queue_packets is 0; accepted: 1 packet or more");
        wrong.hosts.clear();
        assert_eq!(wrong.validate().unwrap_err().to_string(), "hosts is 0 hosts; accepted: 1 to 65534 hosts");
    }

    #[test]
    fn a_dsss_rate_in_pure_g_needs_the_whole_rate_set() {
        let mut wifi = WifiConfig { rate: PhyRate::Mbps11, ..WifiConfig::new(Standard::G) };
        assert_eq!(
            config(AccessConfig::Wifi(wifi.clone())).validate().unwrap_err().field,
            Field::Wifi(WifiField::Rate)
        );
        wifi.rate_set = RateSet::All;
        assert_eq!(config(AccessConfig::Wifi(wifi)).validate(), Ok(()));
    }

    #[test]
    fn only_802_11n_and_later_aggregate() {
        let wifi = WifiConfig { aggregate_frames: 64, ..WifiConfig::new(Standard::G) };
        assert_eq!(
            config(AccessConfig::Wifi(wifi)).validate().unwrap_err().field,
            Field::Wifi(WifiField::AggregateFrames)
        );
    }

    #[test]
    fn an_snr_is_for_802_11n_and_later_and_instead_of_an_error_rate() {
        let error = |standard, snr_db, errors: Option<f64>| {
            let mut config = config(AccessConfig::Wifi(WifiConfig::new(standard)));
            config.hosts[1].snr_db = Some(snr_db);
            config.hosts[1].frame_error_rate = errors.map(|errors| Probability::new(errors).unwrap());
            config.validate().map_err(|error| error.to_string())
        };
        let message = |accepted: &str| Err(format!("hosts[1].snr_db is {accepted}"));
        let only_later = message("20; accepted: none, for only hosts of 802.11n and later have an SNR");
        assert_eq!(error(Standard::G, 20.0, None), only_later);
        assert_eq!(error(Standard::N, 20.0, None), Ok(()));
        assert_eq!(error(Standard::N, f64::NAN, None), message("NaN; accepted: -10 to 60 dB"));
        let both = message("20; accepted: an SNR or a frame error rate, not both");
        assert_eq!(error(Standard::N, 20.0, Some(0.0)), both);
    }

    #[test]
    fn a_standard_has_its_own_rate_controls() {
        let error = |standard, rate_control| {
            let wifi = WifiConfig { rate_control, ..WifiConfig::new(standard) };
            config(AccessConfig::Wifi(wifi)).validate().map_err(|error| error.to_string())
        };
        // The last one is the guide's example, which tests have.
        let accepted = "accepted: \"fixed\", \"arf\", \"aarf\", \"minstrel\", \"random\"";
        assert_eq!(
            error(Standard::G, RateControl::Ideal),
            Err(format!("access.rate_control is \"ideal\"; {accepted}"))
        );
        let accepted = "accepted: \"fixed\", \"minstrel_ht\", \"ideal\", \"random\"";
        assert_eq!(error(Standard::N, RateControl::Arf), Err(format!("access.rate_control is \"arf\"; {accepted}")));
    }

    #[test]
    fn a_host_behind_a_wired_access_has_no_rate_of_its_own() {
        let queue = QueueConfig::fifo(50);
        let wired = WiredAccessConfig { rate: Rate::from_mbps(100.0), delay: Span::ZERO, queue };
        let mut config = config(AccessConfig::Wired(wired));
        assert_eq!(config.validate(), Ok(()));
        config.hosts[0].rate = Some(Rate::from_mbps(10.0));
        assert_eq!(config.validate().unwrap_err().field, Field::Host(0, HostField::Rate));
    }
}
