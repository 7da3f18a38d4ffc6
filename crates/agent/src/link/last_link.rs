//! Telling servers about this host's own link: observes it and hands the estimates to the kernel.

use crate::config::{Config, LastLinkConfig};
use crate::hear::group::group;
use crate::link::interface::Interface;
use crate::link::medium;
use crate::link::wifi::Radio;
use crate::tcp::host_tcp::{Claim, LinkReporter, SocketSample};
use crate::tell::log_limit::LogLimit;
use lasthop_lastlink::{Estimator, FlowSight, Medium, Said, Settings, Sight};
use lasthop_peers::group::{Label, Labels};
use lasthop_status::WifiLink;
use lasthop_status::record::{LinkReported, LinkTotals, ReportCause};
use lasthop_units::{Probability, Rate, Span, Time};
use std::fmt;
use tracing::{info, warn};

/// The report to servers, and its inputs.
pub(crate) struct LastLink {
    config: LastLinkConfig,
    tick: Span,
    estimator: Estimator,
    /// `None`: unsupported by this kernel, or not loaded yet.
    reporter: Option<Box<dyn LinkReporter>>,
    /// The interface at the last check; `None`: down, gone, or a radio without an access point.
    link: Option<Link>,
    /// The present access point, if the configured values do not hold there.
    away: Option<AccessPoint>,
    /// Whether this reporter has told servers anything.
    has_told: bool,
    silence: Option<Silence>,
    /// A report to hand to the kernel, new or repeated.
    tell_at: Time,
    totals: LinkTotals,
    news_log: LogLimit,
    trouble_log: LogLimit,
}

#[derive(Clone, Debug)]
struct Link {
    name: String,
    medium: Medium,
}

/// An access point by its name; `None`: unknown as yet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AccessPoint(Option<Label>);

/// Why servers are told less than the configuration has.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Silence {
    /// The interface is down, gone, or a radio without an access point.
    Down,
    /// The configured values hold behind the first, and this is the second.
    Away(String, AccessPoint),
    /// The values to be measured are not known yet.
    Unmeasured,
}

impl LastLink {
    /// `None`: not configured.
    pub(crate) fn new(config: &Config) -> Option<Self> {
        let tick = config.tick();
        let config = &config.last_link;
        if !config.report && config.has_numbers() {
            warn!("the numbers in [last_link] are told to nobody: `report = true` in it tells servers");
        }
        config.report.then(|| Self {
            config: config.clone(),
            tick,
            estimator: Estimator::new(settings(config, tick, true)),
            reporter: None,
            link: None,
            away: None,
            has_told: false,
            silence: None,
            tell_at: Time::MAX,
            totals: LinkTotals::default(),
            news_log: LogLimit::new(20, Span::from_secs(60)),
            trouble_log: LogLimit::each_minute(),
        })
    }

    /// Reports through this part of the kernel from now on. The former one is retracted.
    pub(crate) fn attach(&mut self, reporter: Option<Box<dyn LinkReporter>>) {
        self.detach();
        self.reporter = reporter;
    }

    /// The interface was replaced: no observation of the old one holds.
    pub(crate) fn detach(&mut self) {
        self.count();
        self.reporter = None;
        self.link = None;
        (self.has_told, self.silence) = (false, None);
        self.estimator = Estimator::new(settings(&self.config, self.tick, true));
        self.tell_at = Time::MAX;
    }

    /// Ticks come as this says from now on; the rest of its configuration needs a restart.
    pub(crate) fn follow(&mut self, config: &Config) {
        self.tick = config.tick();
    }

    /// Checks the interface and its access point. Returns the new report to servers if it has changed.
    pub(crate) fn on_refresh(
        &mut self,
        now: Time,
        interface: Option<&Interface>,
        radio: &Radio,
        label: Option<&Label>,
    ) -> Option<LinkReported> {
        self.link = interface.filter(|interface| interface.up).and_then(|interface| {
            let medium = match radio {
                Radio::Associated(link) => Medium::Wifi(link.radio()),
                Radio::Alone => return None,
                Radio::None => medium::medium(interface),
            };
            Some(Link { name: interface.name.clone(), medium })
        });
        if self.link.is_none() {
            let said = self.estimator.on_link_lost();
            return self.say(now, said, ReportCause::LinkLost);
        }
        let here = self.config.access_point.as_ref();
        let is_there = here.is_none_or(|name| label.is_some_and(|label| *name == label.to_string()));
        self.away = (!is_there).then(|| AccessPoint(label.cloned()));
        self.estimator.set_settings(settings(&self.config, self.tick, is_there));
        None
    }

    /// The host has moved, or may have.
    pub(crate) fn on_moved(&mut self, now: Time, cause: ReportCause) -> Option<LinkReported> {
        self.estimator.forget();
        self.look(now, &[], cause)
    }

    /// Observes the connections. Returns the new report to servers if it has changed.
    pub(crate) fn on_tick(&mut self, now: Time, flows: &[FlowSight]) -> Option<LinkReported> {
        let reported = self.look(now, flows, ReportCause::Estimate);
        if now >= self.tell_at {
            self.tell(now);
        }
        self.explain(now);
        reported
    }

    /// Retracts the reports because the agent stops. Busy connections send the retraction at once. The reports of the
    /// others expire.
    pub(crate) fn retract(&mut self, now: Time) -> Option<LinkReported> {
        let said = self.estimator.on_link_lost();
        self.say(now, said, ReportCause::Stopped)
    }

    /// Whether servers are told at all.
    pub(crate) fn is_heard(&self) -> bool {
        let counters = self.reporter.as_ref().map(|reporter| reporter.counters());
        counters.is_some_and(|counters| counters.is_ok_and(|counters| counters.answered > 0))
    }

    /// Logs why servers are told nothing, or not the configured values; once per reason.
    fn explain(&mut self, now: Time) {
        let silence = self.silence();
        if silence == self.silence {
            return;
        }
        self.silence = silence;
        // The retraction has been logged already.
        if let Some(silence) = &self.silence
            && (!self.has_told || matches!(silence, Silence::Away(..)))
            && let Some(more) = self.news_log.may_say(now)
        {
            info!("{silence}{more}");
        }
    }

    fn silence(&self) -> Option<Silence> {
        self.reporter.as_ref()?;
        match (&self.link, &self.away, &self.config.access_point) {
            (None, ..) => Some(Silence::Down),
            (_, Some(here), Some(there)) => Some(Silence::Away(there.clone(), here.clone())),
            _ if self.estimator.said().is_nothing() => Some(Silence::Unmeasured),
            _ => None,
        }
    }

    fn look(&mut self, now: Time, flows: &[FlowSight], cause: ReportCause) -> Option<LinkReported> {
        let link = self.link.as_ref().filter(|_| self.reporter.is_some())?;
        let counters = if self.config.measure { medium::counters(&link.name) } else { None };
        let said = self.estimator.on_sight(&Sight { now, medium: link.medium, counters, flows });
        self.say(now, said, cause)
    }

    fn say(&mut self, now: Time, said: Option<Said>, cause: ReportCause) -> Option<LinkReported> {
        let (said, true) = (said?, self.reporter.is_some()) else { return None };
        if let Some(more) = self.news_log.may_say(now) {
            if said.is_nothing() {
                info!("servers are told nothing of the last link any more: {cause}{more}");
            } else {
                info!("servers are told of the last link: {said}{more}");
            }
        }
        if said.is_nothing() {
            self.totals.retracted += 1;
        } else {
            self.totals.changed += 1;
            self.has_told = true;
        }
        self.tell(now);
        Some(LinkReported {
            t_ns: now.as_nanos(),
            bandwidth_mbps: said.report.bandwidth.map(Rate::as_mbps),
            bandwidth_source: said.bandwidth,
            error_rate: said.report.error_rate.map(Probability::get),
            error_rate_source: said.error_rate,
            validity_s: told_s(&self.config),
            cause,
        })
    }

    /// Hands the report to the kernel and sets the time of its renewal: well before it lapses. After a failure, the
    /// next tick.
    fn tell(&mut self, now: Time) {
        let Some(reporter) = &mut self.reporter else { return };
        let said = self.estimator.said();
        let told_s = told_s(&self.config);
        self.tell_at = if said.is_nothing() { Time::MAX } else { now + Span::from_secs(told_s.into()) / 4 };
        if let Err(error) = reporter.set(claim(said, told_s)) {
            self.tell_at = now;
            if let Some(more) = self.trouble_log.may_say(now) {
                warn!("what servers are told of the last link lapses: {}{more}", error.in_a_line());
            }
        }
    }

    /// The totals up to now.
    pub(crate) fn totals(&mut self) -> LinkTotals {
        self.count();
        self.totals.clone()
    }

    /// Adds the reporter's counters, once.
    fn count(&mut self) {
        let Some(reporter) = self.reporter.take() else { return };
        match reporter.counters() {
            Ok(counters) => self.totals.counters += counters,
            Err(error) => warn!("what was told of the last link is not counted: {}", error.in_a_line()),
        }
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nothing_yet = "servers are told nothing of the last link yet";
        match self {
            Self::Down => write!(f, "{nothing_yet}: the interface is down, or has no access point"),
            Self::Away(there, AccessPoint(here)) => {
                let here = here.as_ref().map_or_else(
                    || "it is not known yet what this is".to_owned(),
                    |here| format!("this is \"{here}\""),
                );
                write!(
                    f,
                    "servers are not told the given numbers of the last link: they hold behind \"{there}\", and {here}"
                )
            }
            Self::Unmeasured => {
                write!(f, "{nothing_yet}: nothing has been measured ('lasthop doctor' says what can be)")
            }
        }
    }
}

/// The configured values do not hold away from their access point.
fn settings(config: &LastLinkConfig, tick: Span, is_there: bool) -> Settings {
    Settings {
        bandwidth: config.bandwidth_mbps.filter(|_| is_there).map(Rate::from_mbps),
        error_rate: config.packet_error_rate.filter(|_| is_there).and_then(|share| Probability::new(share).ok()),
        measure: config.measure,
        trust_link_speed: config.trust_link_speed,
        validity: Span::from_secs(config.validity_s.into()),
        longest_gap: Settings::default().longest_gap.max(tick * 2),
    }
}

/// Rounded down. The kernel rounds the remaining validity of a claim down to a power of two. That stays `told_s` until
/// the renewal, a quarter of it and a tick later.
fn claim(said: &Said, told_s: u32) -> Claim {
    let kbps = |rate: Rate| u32::try_from(rate.as_bps() / 1000).unwrap_or(u32::MAX);
    // A share of whole ppm is kept exactly.
    let ppm = |share: Probability| (share.get() * 1e6 + 1e-6) as u32;
    Claim {
        bandwidth_kbps: said.report.bandwidth.map(kbps),
        error_ppm: said.report.error_rate.map(ppm),
        validity_s: told_s + told_s / 2 + 2,
    }
}

/// The validity in a report: the configured one, or the next lower power of two.
const fn told_s(config: &LastLinkConfig) -> u32 {
    1 << config.validity_s.ilog2()
}

/// The input of the estimators.
pub(crate) fn flow_sight(sample: &SocketSample) -> FlowSight {
    FlowSight {
        id: sample.cookie,
        tcp: sample.tcp,
        received_segments: sample.received_segments,
        out_of_order_segments: sample.out_of_order_segments,
        idle: sample.idle,
    }
}

/// The knowledge of the interface's link before its traffic is observed, in words.
pub fn describe_last_link(interface: &Interface, wifi: Option<&WifiLink>) -> String {
    match wifi.map_or_else(|| medium::medium(interface), |link| Medium::Wifi(link.radio())) {
        Medium::Wifi(radio) => match radio.carries() {
            Some((carried, phy)) => format!("its radio, at {phy}, carries {:.1} Mb/s of IP", carried.as_mbps()),
            None => "its radio does not say how fast it is".to_owned(),
        },
        Medium::Wired { speed: Some(speed) } => {
            format!("its speed, {speed}, counts once half of it is seen (or at once: trust_link_speed)")
        }
        Medium::Wired { speed: None } | Medium::Unknown => {
            "not known; measured where a queue stands before it, or configured (bandwidth_mbps)".to_owned()
        }
    }
}

/// The report of an agent with this configuration, at the interface's present place, in words.
pub fn describe_reports(config: &Config, interface: &Interface, wifi: Option<&WifiLink>) -> String {
    let radio = wifi.map_or(Radio::None, |link| Radio::Associated(link.clone()));
    let here = group(interface, &radio, config.beacon.group.as_deref());
    reports(&config.last_link, here.as_ref().map(Labels::shown))
}

fn reports(config: &LastLinkConfig, here: Option<&Label>) -> String {
    let LastLinkConfig { bandwidth_mbps, packet_error_rate, access_point, .. } = config;
    let bandwidth = bandwidth_mbps.map(|mbps| format!("{mbps} Mb/s"));
    let errors = packet_error_rate.map(|share| format!("{} % of packets lost", share * 100.0));
    if !config.report {
        let given: Vec<String> = bandwidth.into_iter().chain(errors).collect();
        let although =
            if given.is_empty() { String::new() } else { format!(", although {} is given", given.join(", ")) };
        return format!("none{although}: [last_link] report = true turns them on");
    }
    let place = here.map_or_else(|| "no access point yet".to_owned(), ToString::to_string);
    let elsewhere = access_point.as_ref().filter(|name| here.is_none_or(|label| **name != label.to_string()));
    let told = |given: Option<String>, what: &str| match given.filter(|_| elsewhere.is_none()) {
        Some(given) => format!("{given} (configuration)"),
        None if config.measure => format!("{what} once it is measured"),
        None => format!("{what} unknown"),
    };
    let told = format!("{}, {}", told(bandwidth, "bandwidth"), told(errors, "error rate"));
    match elsewhere {
        Some(name) => format!("{told}; the configured numbers hold behind {name}, and this is {place}"),
        None => format!("{told}; behind {place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::host_tcp::ReportCounters;
    use lasthop_lastlink::{Modulation, Source};
    use lasthop_laws::LinkReport;
    use lasthop_status::WifiLink;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Told(Rc<RefCell<Vec<Claim>>>);

    impl LinkReporter for Told {
        fn set(&mut self, claim: Claim) -> crate::error::Result<()> {
            self.0.borrow_mut().push(claim);
            Ok(())
        }

        fn counters(&self) -> crate::error::Result<ReportCounters> {
            Ok(ReportCounters { offered: 3, ..ReportCounters::default() })
        }
    }

    /// A laptop on Wi-Fi that is observed every two seconds.
    struct Laptop {
        last_link: LastLink,
        told: Told,
        now: Time,
        link: WifiLink,
        label: Option<Label>,
    }

    impl Laptop {
        fn new() -> Self {
            let config =
                Config { last_link: LastLinkConfig { report: true, ..LastLinkConfig::default() }, ..Config::default() };
            let told = Told::default();
            let mut last_link = LastLink::new(&config).expect("it is to report");
            last_link.attach(Some(Box::new(told.clone())));
            let link = WifiLink {
                rx_bitrate_mbps: Some(54.0),
                rx_modulation: Some(Modulation::Ofdm),
                rx_packets: Some(0),
                ..WifiLink::of([2, 0, 0, 0, 0, 1].into())
            };
            Self { last_link, told, now: Time::from_nanos(1), link, label: None }
        }

        fn look(&mut self, radio: impl Fn(&WifiLink) -> Radio) -> Option<LinkReported> {
            self.now += Span::from_secs(2);
            self.link.rx_packets = self.link.rx_packets.map(|packets| packets + 1000);
            let interface = Interface {
                name: "lo".to_owned(),
                index: 1,
                up: true,
                broadcast: None,
                tunnels: Vec::new(),
                has_ipv6_link_local: false,
                own_addresses: Vec::new(),
                gateways: [None; 2],
            };
            let (radio, label) = (radio(&self.link), self.label.as_ref());
            let refreshed = self.last_link.on_refresh(self.now, Some(&interface), &radio, label);
            refreshed.or_else(|| self.last_link.on_tick(self.now, &[]))
        }

        fn listen(&mut self) -> Option<LinkReported> {
            self.look(|link| Radio::Associated(link.clone()))
        }

        fn last_told(&self) -> Option<Option<u32>> {
            self.told.0.borrow().last().map(|claim| claim.bandwidth_kbps)
        }
    }

    // 24,000 bits in 1014.47 µs, see lasthop_lastlink::airtime; in kb/s.
    const CARRIED: u32 = 23_657;

    #[test]
    fn a_radio_is_told_of_until_it_is_alone_or_may_be_elsewhere() {
        let mut laptop = Laptop::new();
        // Counting begins at the first observation; the estimate needs three more.
        assert!((0..3).all(|_| laptop.listen().is_none()) && laptop.last_told().is_none());
        let reported = laptop.listen().expect("news");
        assert_eq!((reported.bandwidth_source, reported.cause), (Some(Source::Radio), ReportCause::Estimate));
        assert_eq!(laptop.last_told(), Some(Some(CARRIED)));
        // It is renewed every 8 s, a quarter of 32 s, without a new event.
        assert!((0..8).all(|_| laptop.listen().is_none()));
        assert_eq!(laptop.told.0.borrow().len(), 3);

        // No access point. Once it is back, the estimate has to be earned again.
        let reported = laptop.look(|_| Radio::Alone).expect("news");
        assert_eq!((reported.bandwidth_mbps, reported.cause), (None, ReportCause::LinkLost));
        assert_eq!(laptop.last_told(), Some(None));
        assert!((0..3).all(|_| laptop.listen().is_none()));
        assert!(laptop.listen().is_some());

        for cause in [ReportCause::Resumed, ReportCause::Roamed] {
            let reported = laptop.last_link.on_moved(laptop.now, cause).expect("news");
            assert_eq!((reported.bandwidth_mbps, reported.cause), (None, cause));
            assert_eq!(laptop.last_told(), Some(None));
            while laptop.listen().is_none() {}
        }
        let reported = laptop.last_link.retract(laptop.now).expect("news");
        assert_eq!((reported.bandwidth_mbps, reported.cause), (None, ReportCause::Stopped));
        assert_eq!(laptop.last_told(), Some(None));
        let totals = laptop.last_link.totals();
        assert_eq!((totals.changed, totals.retracted, totals.counters.offered), (4, 4, 3));
    }

    #[test]
    fn why_servers_are_told_nothing_is_said_until_it_is_otherwise() {
        let mut laptop = Laptop::new();
        laptop.last_link.config.bandwidth_mbps = Some(7.0);
        laptop.last_link.config.access_point = Some("gateway 10.0.0.1".to_owned());
        let silence = |laptop: &Laptop| laptop.last_link.silence.as_ref().map(ToString::to_string);
        assert_eq!(silence(&laptop), None);
        laptop.look(|_| Radio::Alone);
        let down = "servers are told nothing of the last link yet: the interface is down, or has no access point";
        assert_eq!(silence(&laptop).as_deref(), Some(down));
        laptop.listen();
        let away = "servers are not told the given numbers of the last link: they hold behind \"gateway 10.0.0.1\", and it is \
                    not known yet what this is";
        assert_eq!(silence(&laptop).as_deref(), Some(away));
        laptop.label = Some(Label::Bssid([2, 0, 0, 0, 0, 1]));
        laptop.listen();
        assert!(silence(&laptop).expect("not there").ends_with("and this is \"bssid 02:00:00:00:00:01\""));
        laptop.label = Some(Label::Gateway([10, 0, 0, 1].into()));
        assert!(laptop.listen().is_some() && silence(&laptop).is_none());

        let mut laptop = Laptop::new();
        laptop.listen();
        let unmeasured = "servers are told nothing of the last link yet: nothing has been measured ('lasthop doctor' says what can be)";
        assert_eq!(silence(&laptop).as_deref(), Some(unmeasured));
        while laptop.listen().is_none() {}
        assert_eq!(silence(&laptop), None);
    }

    #[test]
    fn what_would_be_told_is_said_for_the_access_point_that_is_here() {
        let gateway = Label::Gateway([10, 0, 0, 1].into());
        let off = LastLinkConfig { bandwidth_mbps: Some(20.0), ..LastLinkConfig::default() };
        assert_eq!(
            reports(&off, Some(&gateway)),
            "none, although 20 Mb/s is given: [last_link] report = true turns them on"
        );
        let on = LastLinkConfig { report: true, ..off };
        assert_eq!(
            reports(&on, Some(&gateway)),
            "20 Mb/s (configuration), error rate once it is measured; behind gateway 10.0.0.1"
        );
        let there = LastLinkConfig {
            access_point: Some("gateway 10.0.0.2".to_owned()),
            packet_error_rate: Some(0.001),
            measure: false,
            ..on
        };
        assert_eq!(
            reports(&there, Some(&gateway)),
            "bandwidth unknown, error rate unknown; the configured numbers hold behind gateway 10.0.0.2, and this is gateway 10.0.0.1"
        );
        assert!(reports(&there, None).ends_with("and this is no access point yet"));
        assert_eq!(
            reports(&there, Some(&Label::Gateway([10, 0, 0, 2].into()))),
            "20 Mb/s (configuration), 0.1 % of packets lost (configuration); behind gateway 10.0.0.2"
        );
    }

    #[test]
    fn a_report_says_the_power_of_two_below_the_configured_validity() {
        for (validity_s, told) in [(8, 8), (15, 8), (32, 32), (63, 32), (32_768, 32_768)] {
            let told_s = told_s(&LastLinkConfig { validity_s, ..LastLinkConfig::default() });
            let claimed_s = claim(&Said::NOTHING, told_s).validity_s;
            // From the claim to 2 s after its renewal.
            let left = [claimed_s, claimed_s - told_s / 4 - 2];
            assert_eq!((told_s, left.map(|left| 1 << left.ilog2())), (told, [told; 2]), "{validity_s}");
        }
    }

    #[test]
    fn another_interface_begins_with_nothing_and_what_was_told_is_counted_over_all() {
        let mut laptop = Laptop::new();
        while laptop.listen().is_none() {}
        laptop.last_link.detach();
        assert!(laptop.listen().is_none()); // no kernel part to report through
        let another = Told::default();
        laptop.last_link.attach(Some(Box::new(another.clone())));
        while laptop.listen().is_none() {}
        assert_eq!(another.0.borrow().len(), 1);
        assert_eq!(laptop.last_link.totals().counters.offered, 6);
    }

    #[test]
    fn a_claim_is_rounded_down_and_never_wraps() {
        let said = |bps, share| Said {
            report: LinkReport {
                bandwidth: Some(Rate::from_bps(bps)),
                error_rate: Probability::new(share).ok(),
                validity: Span::from_secs(32),
            },
            bandwidth: Some(Source::Configuration),
            error_rate: Some(Source::Configuration),
        };
        let claimed = |bps, share| {
            let Claim { bandwidth_kbps, error_ppm, validity_s } = claim(&said(bps, share), 32);
            // 32 s are left until 18 s later. The renewal comes after 8 s, or a tick more.
            assert_eq!(validity_s, 50);
            (bandwidth_kbps, error_ppm)
        };
        assert_eq!(claimed(7_000_999, 0.005), (Some(7000), Some(5000)));
        assert_eq!(claimed(u64::MAX, 1.0), (Some(u32::MAX), Some(1_000_000)));
        assert_eq!(claimed(1, 0.29), (Some(0), Some(290_000)));
        let nothing = claim(&Said::NOTHING, 32);
        assert_eq!((nothing.bandwidth_kbps, nothing.error_ppm), (None, None));
    }
}
