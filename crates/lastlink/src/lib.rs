//! Estimates a client's last link from the client's side: its bandwidth towards the client, and its own packet error
//! rate.
//!
//! | observed | bandwidth | packet error rate |
//! | --- | --- | --- |
//! | configuration | the configured value; nothing else counts | likewise |
//! | a radio ([`Radio`]) | what its rate carries ([`airtime`]), raised to a rate seen twice, at most the PHY rate | frames given up; upper bounds: FCS errors, segments out of order |
//! | a wired interface ([`Medium::Wired`]) | its speed, once half of it was seen | damaged frames; upper bound: segments out of order |
//! | any other | the receive rate while the path was full | retransmissions of own senders; upper bound: segments out of order |
//!
//! Each estimate errs low: rates by the lower quartile of eight, shares by the lower end of their 95 % interval. There
//! is no estimate without evidence (three rates, 500 packets), or when the newest evidence is older than
//! [`Settings::validity`].
//!
//! A receive rate by itself is no bandwidth: a client that reported the 3 Mb/s of a film would be held to them. It
//! counts only if the path was full for three seconds. *Full* means that most of the data arrived without pauses on
//! connections with a standing queue. Their RTT, as the receiver sees it, was at least a quarter and 20 ms above their
//! lowest.
//!
//! A report changes only if an estimate moved by more than a tenth (a share: by more than a quarter, and above 100
//! ppm). So noise sends no options.
//!
//! *What it leaves out*: other stations on the channel; a bottleneck behind the interface (a modem on an Ethernet
//! port), except as a full path; losses in only one direction, except on a radio that counts FCS errors. Equations,
//! sources and limits: docs/models/last-link-estimation.md.
//!
//! ```
//! use lasthop_lastlink::{Estimator, Settings, Sight, Source};
//! use lasthop_units::{Rate, Span, Time};
//!
//! let mut estimator = Estimator::new(Settings {
//!     bandwidth: Some(Rate::from_mbps(20.0)),
//!     validity: Span::from_secs(32),
//!     ..Settings::default()
//! });
//! let said = estimator.on_sight(&Sight::at(Time::ZERO)).expect("something to say");
//! assert_eq!((said.report.bandwidth, said.bandwidth), (Some(Rate::from_mbps(20.0)), Some(Source::Configuration)));
//! assert_eq!(estimator.on_sight(&Sight::at(Time::from_nanos(1))), None); // nothing has changed
//! assert_eq!(estimator.on_link_lost().expect("a retraction").report.bandwidth, None);
//! ```

#![deny(clippy::disallowed_methods)]

pub mod airtime;
mod evidence;
mod flows;

pub use airtime::{Bss, Modulation, PhyRate};
pub use flows::FlowSight;

use evidence::{Counts, VALUES, Values};
use flows::Flows;
use lasthop_laws::LinkReport;
use lasthop_units::{About, Bytes, Probability, Rate, Span, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What is configured, and how the rest is estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The bandwidth, if it is configured.
    pub bandwidth: Option<Rate>,
    /// The packet error rate, if it is configured.
    pub error_rate: Option<Probability>,
    /// Whether to estimate what is not configured.
    pub measure: bool,
    /// Whether a wired interface's speed is the bandwidth, even before half of it was seen.
    pub trust_link_speed: bool,
    /// How long an estimate holds without new evidence, and a report on a server.
    pub validity: Span,
    /// After a longer gap between two observations, the difference of their counters does not count: it may be old.
    /// Must exceed the time between two observations.
    pub longest_gap: Span,
}

/// An observation of the host at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// The time of the observation.
    pub now: Time,
    /// The kind of interface, when it was last read.
    pub medium: Medium,
    /// What the interface has counted.
    pub counters: Option<Counters>,
    /// The connections on the interface.
    pub flows: &'a [FlowSight],
}

/// The kind of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Medium {
    /// Unknown: virtual, cellular, or not recognised.
    #[default]
    Unknown,
    /// Wired.
    Wired {
        /// Speed of the link to the next device; `None`: not reported.
        speed: Option<Rate>,
    },
    /// Wi-Fi, associated.
    Wifi(Radio),
}

/// What a radio reports of its link to the access point. Counts are since the association.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Radio {
    /// Rate of the last data frame from the access point.
    pub receive_rate: Option<PhyRate>,
    /// Rate of the last data frame to the access point.
    pub transmit_rate: Option<PhyRate>,
    /// The throughput to the access point that the radio expects.
    pub expected: Option<Rate>,
    /// What the access point requires of all stations.
    pub bss: Bss,
    /// Packets from the access point.
    pub received: Option<u32>,
    /// Packets to the access point.
    pub sent: Option<u32>,
    /// Retransmissions of frames to the access point.
    pub retries: Option<u32>,
    /// Frames to the access point that were given up.
    pub failed: Option<u32>,
    /// Frames heard from the access point.
    pub heard: Option<u32>,
    /// Frames heard from the access point with a wrong checksum.
    pub fcs_errors: Option<u32>,
}

/// Counters of an interface since it was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// The earliest time at which they can have been read.
    pub after: Time,
    /// The latest time at which they can have been read.
    pub before: Time,
    /// Bytes of the IP packets received.
    pub received: Bytes,
    /// The number of these packets.
    pub received_packets: u64,
    /// Damaged frames received.
    pub damaged: u64,
}

/// The source of an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Configured.
    Configuration,
    /// The IP rate that the radio's rate carries; the frames that the radio gave up.
    Radio,
    /// The link speed of a wired interface; its damaged frames.
    Interface,
    /// The data received through the interface.
    Traffic,
    /// The losses of this host's connections in both directions.
    Connections,
}

/// A report that servers should hear in place of the last one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Said {
    /// The report.
    pub report: LinkReport,
    /// The source of the bandwidth; `None`: unknown.
    pub bandwidth: Option<Source>,
    /// The source of the error rate; `None`: unknown.
    pub error_rate: Option<Source>,
}

/// Takes observations, and decides when servers should hear a new report.
#[derive(Clone, Debug)]
pub struct Estimator {
    settings: Settings,
    /// What servers last heard.
    said: Said,
    looked: Time,
    radio: Option<Radio>,
    /// The IP rate that each observed PHY rate carries, and that PHY rate.
    carried: Values<(Rate, Rate)>,
    given_up: Counts,
    misheard: Counts,
    interval: Option<Interval>,
    /// The number of successive full intervals.
    full: u32,
    seen: Values<Rate>,
    seen_full: Values<Rate>,
    damaged: Counts,
    flows: Flows,
}

/// The beginning of an interval of a second or more of the interface's traffic.
#[derive(Clone, Copy, Debug)]
struct Interval {
    begin: Counters,
    /// Data seen to arrive on connections with a standing queue.
    queued: Bytes,
}

/// Receive rates are averaged over this or a little more: long against the times for which receivers hold packets back.
const INTERVAL: Span = Span::from_secs(1);
/// Full intervals needed in a row. Bursts may look like a full link for one or two.
const FULL_IN_A_ROW: u32 = 3;
/// An Ethernet frame of 1500 bytes of IP takes 1538: preamble 8, header 14, FCS 4, gap 12.
const ETHERNET_EFFICIENCY: f64 = 1500.0 / 1538.0;
/// Attempts before a frame is given up: dot11ShortRetryLimit of 802.11-2020, the usual value of drivers.
const ATTEMPTS: i32 = 7;
/// Packets that must have arrived before the last frame's rate is taken for that of data.
const PACKETS_FOR_A_RATE: u32 = 8;
/// Below this, differences between shares do not matter: an eighth of the initial value of wu (0.08 %).
const NEGLIGIBLE_ERROR_RATE: f64 = 100e-6;

impl Default for Settings {
    fn default() -> Self {
        Self {
            bandwidth: None,
            error_rate: None,
            measure: false,
            trust_link_speed: false,
            validity: Span::from_secs(32),
            longest_gap: Span::from_secs(10),
        }
    }
}

impl Sight<'_> {
    /// An observation of nothing but the time.
    pub const fn at(now: Time) -> Self {
        Self { now, medium: Medium::Unknown, counters: None, flows: &[] }
    }
}

impl Said {
    /// Nothing is known.
    pub const NOTHING: Self = Self { report: LinkReport::RETRACTION, bandwidth: None, error_rate: None };

    /// Whether it retracts the report before.
    pub const fn is_nothing(&self) -> bool {
        self.report.bandwidth.is_none() && self.report.error_rate.is_none()
    }

    /// Whether servers should hear `self` in place of `before`.
    fn is_news_after(&self, before: &Self) -> bool {
        let bandwidth = match (self.report.bandwidth, before.report.bandwidth) {
            (Some(now), Some(before)) => differs(now.as_bps() as f64, before.as_bps() as f64, 1.1),
            (now, before) => now != before,
        };
        let error_rate = match (self.report.error_rate, before.report.error_rate) {
            (Some(now), Some(before)) => {
                let counted = |share: Probability| share.get().max(NEGLIGIBLE_ERROR_RATE);
                differs(counted(now), counted(before), 1.25)
            }
            (now, before) => now != before,
        };
        bandwidth || error_rate
    }
}

/// Whether the two differ by more than this factor.
fn differs(one: f64, other: f64, factor: f64) -> bool {
    one > other * factor || other > one * factor
}

impl Estimator {
    /// An estimator without observations.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            said: Said::NOTHING,
            looked: Time::ZERO,
            radio: None,
            carried: Values::new(VALUES),
            given_up: Counts::default(),
            misheard: Counts::default(),
            interval: None,
            full: 0,
            seen: Values::new(evidence::MEMORY.as_millis() as usize / INTERVAL.as_millis() as usize),
            seen_full: Values::new(VALUES),
            damaged: Counts::default(),
            flows: Flows::default(),
        }
    }

    /// Takes an observation. Returns what servers should hear now, if that has changed.
    pub fn on_sight(&mut self, sight: &Sight<'_>) -> Option<Said> {
        if self.settings.measure {
            self.take(sight);
        }
        let validity = self.settings.validity;
        let bandwidth = self.bandwidth(sight);
        let error_rate = self.error_rate(sight);
        let said = Said {
            report: LinkReport {
                bandwidth: bandwidth.map(|(rate, _)| rate),
                error_rate: error_rate.map(|(share, _)| share),
                validity,
            },
            bandwidth: bandwidth.map(|(_, source)| source),
            error_rate: error_rate.map(|(_, source)| source),
        };
        self.say(if said.is_nothing() { Said::NOTHING } else { said })
    }

    /// The link is down or gone. Drops all observations; returns what servers should hear now, if that has changed.
    pub fn on_link_lost(&mut self) -> Option<Said> {
        self.forget();
        self.say(Said::NOTHING)
    }

    /// Drops all observations: the host has moved, or may have.
    pub fn forget(&mut self) {
        let said = self.said;
        *self = Self { said, ..Self::new(self.settings) };
    }

    /// Takes a new configuration, which may depend on the place.
    pub fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// What servers last heard.
    pub const fn said(&self) -> &Said {
        &self.said
    }

    fn say(&mut self, said: Said) -> Option<Said> {
        said.is_news_after(&self.said).then(|| {
            self.said = said;
            said
        })
    }

    /// Takes the new observations in `sight`.
    fn take(&mut self, sight: &Sight<'_>) {
        let now = sight.now;
        if now.saturating_since(self.looked) > self.settings.longest_gap {
            (self.radio, self.interval) = (None, None);
            self.flows.begin_anew();
        }
        self.looked = now;
        let queued = self.flows.take(now, sight.flows);
        match sight.medium {
            Medium::Wifi(radio) => self.take_radio(now, radio),
            Medium::Unknown | Medium::Wired { .. } => self.radio = None,
        }
        if let Some(counters) = sight.counters {
            self.take_counters(now, counters, queued);
        }
    }

    fn take_radio(&mut self, now: Time, radio: Radio) {
        let Some(last) = self.radio.replace(radio) else { return };
        // The rise of a counter; `None` if it fell, which means that it was reset.
        let rise = |of: fn(&Radio) -> Option<u32>| of(&radio)?.checked_sub(of(&last)?);
        if rise(|radio| radio.received).is_some_and(|packets| packets >= PACKETS_FOR_A_RATE)
            && let Some(carried) = radio.carries()
        {
            self.carried.push(now, carried);
        }
        if let Some(sent) = rise(|radio| radio.sent) {
            if let Some(failed) = rise(|radio| radio.failed) {
                self.given_up.push(now, sent.into(), failed.into());
            } else if let Some(retries) = rise(|radio| radio.retries) {
                // Each attempt fails with p = retries / (packets + retries). All fail with p^7, if attempts are
                // independent.
                let attempts = f64::from(sent) + f64::from(retries);
                let given_up = f64::from(sent) * (f64::from(retries) / attempts.max(1.0)).powi(ATTEMPTS);
                self.given_up.push(now, sent.into(), given_up as u64);
            }
        }
        if let (Some(heard), Some(errors)) = (rise(|radio| radio.heard), rise(|radio| radio.fcs_errors)) {
            // Drivers may or may not count frames with errors among those heard: take the smaller share.
            self.misheard.push(now, u64::from(heard) + u64::from(errors), errors.into());
        }
    }

    fn take_counters(&mut self, now: Time, counters: Counters, queued: Bytes) {
        let Some(interval) = &mut self.interval else {
            // The interval begins here; data on the connections came before.
            self.interval = Some(Interval { begin: counters, queued: Bytes::ZERO });
            return;
        };
        let begin = interval.begin;
        interval.queued += queued;
        let rise = |of: fn(&Counters) -> u64| of(&counters).checked_sub(of(&begin));
        let risen = (
            rise(|counters| counters.received.get()),
            rise(|counters| counters.received_packets),
            rise(|counters| counters.damaged),
        );
        let (Some(received), Some(packets), Some(damaged)) = risen else {
            self.interval = None; // the counters were reset
            return;
        };
        if counters.after.saturating_since(begin.before) < INTERVAL {
            return;
        }
        // The longest time between the two readings, given when each may have been read.
        let longest = counters.before.saturating_since(begin.after);
        let rate = Rate::over(Bytes::new(received), longest);
        self.seen.push(now, rate);
        let is_full = received > 0 && interval.queued.get() >= received - received / 4;
        self.full = if is_full { self.full.saturating_add(1) } else { 0 };
        if self.full >= FULL_IN_A_ROW {
            self.seen_full.push(now, rate);
        }
        self.damaged.push(now, packets.saturating_add(damaged), damaged);
        self.interval = Some(Interval { begin: counters, queued: Bytes::ZERO });
    }

    fn bandwidth(&self, sight: &Sight<'_>) -> Option<(Rate, Source)> {
        let Settings { bandwidth, measure, trust_link_speed, validity, .. } = self.settings;
        let now = sight.now;
        if bandwidth.is_some() || !measure {
            return Some((bandwidth?, Source::Configuration));
        }
        let seen = self.seen.highest_but_one(now, validity, |rate| rate);
        let mut limit = Rate::from_bps(u64::MAX);
        match sight.medium {
            Medium::Wifi(_) => {
                if let Some((carried, phy)) = self.carried.lower_quartile(now, validity, |(carried, _)| carried) {
                    let seen = seen.unwrap_or_default().min(phy);
                    return Some(if seen > carried { (seen, Source::Traffic) } else { (carried, Source::Radio) });
                }
            }
            Medium::Wired { speed: Some(speed) } => {
                let carried = Rate::from_bps((speed.as_bps() as f64 * ETHERNET_EFFICIENCY) as u64);
                if trust_link_speed || seen.is_some_and(|seen| seen >= Rate::from_bps(speed.as_bps() / 2)) {
                    return Some((carried, Source::Interface));
                }
                limit = carried;
            }
            Medium::Wired { speed: None } | Medium::Unknown => {}
        }
        let full = self.seen_full.lower_quartile(now, validity, |rate| rate)?;
        // A report cannot express less than a kilobit per second.
        Some((full.min(limit), Source::Traffic)).filter(|(rate, _)| rate.as_bps() >= 1000)
    }

    fn error_rate(&self, sight: &Sight<'_>) -> Option<(Probability, Source)> {
        let Settings { error_rate, measure, validity, .. } = self.settings;
        let now = sight.now;
        if error_rate.is_some() || !measure {
            return Some((error_rate?, Source::Configuration));
        }
        let (lost, mut at_most, source) = match sight.medium {
            Medium::Wifi(_) => {
                let misheard = self.misheard.share(now, validity).map_or(1.0, |share| share.upper);
                (self.given_up.share(now, validity)?, misheard, Source::Radio)
            }
            Medium::Wired { .. } => (self.damaged.share(now, validity)?, 1.0, Source::Interface),
            Medium::Unknown => {
                // Losses of one direction alone may as well be congestion, anywhere on the path.
                self.flows.out_of_order(now, validity)?;
                (self.flows.retransmitted(now, validity)?, 1.0, Source::Connections)
            }
        };
        // Each loss on the way to a receiver makes the next segment arrive out of order.
        if let Some(out_of_order) = self.flows.out_of_order(now, validity) {
            at_most = at_most.min(out_of_order.upper);
        }
        // In whole ppm, the resolution of a report.
        let share = (lost.lower.min(at_most) * 1e6).floor() / 1e6;
        Some((Probability::new(share).ok()?, source))
    }
}

impl Radio {
    /// The IP rate that the link carries towards this host ([`airtime::carries`]), and its PHY rate; `None` without a
    /// rate.
    pub fn carries(&self) -> Option<(Rate, Rate)> {
        match (self.receive_rate, self.transmit_rate) {
            (Some(receive), transmit) => {
                Some((airtime::carries(receive, transmit.unwrap_or(receive), self.bss), receive.rate))
            }
            // Without a receive rate, take the transmit rate, limited to the throughput that the radio expects.
            (None, Some(transmit)) => {
                let carried = airtime::carries(transmit, transmit, self.bss);
                Some((self.expected.map_or(carried, |expected| carried.min(expected)), transmit.rate))
            }
            (None, None) => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Configuration => "configuration",
            Self::Radio => "radio",
            Self::Interface => "interface",
            Self::Traffic => "traffic",
            Self::Connections => "connections",
        })
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.report.bandwidth, self.bandwidth) {
            (Some(rate), Some(source)) => write!(f, "{} ({source})", About(rate))?,
            _ => f.write_str("bandwidth unknown")?,
        }
        match (self.report.error_rate, self.error_rate) {
            (Some(share), Some(source)) => write!(f, ", {:.3} % of packets lost ({source})", share.get() * 100.0),
            _ => f.write_str(", losses unknown"),
        }
    }
}

#[cfg(test)]
mod tests;
