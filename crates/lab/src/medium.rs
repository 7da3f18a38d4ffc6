//! The 802.11 medium of the model between the kernel's simulated radios (mac80211_hwsim), in real time.
//!
//! A loop reads the frames that the radios' drivers send, gives them to the air of their channel
//! ([`lasthop_network::wifi::radios`]), and sends back who received what and when, and what became of each. As in a run with
//! kernel hosts, the air runs on logical time: lateness does not add up, and is measured.
//!
//! - A radio's number is its place among those that the module made. The first is the access point of the scenario, or the
//!   first ones are those of its `[[cells]]`, the others are its hosts in their order. It matters where hosts have losses of their
//!   own, and where not all hear all (`[[cells]]`, `[[hearing]]`). There radios beyond these send in vain.
//! - Radios on different frequencies do not meet. One is on the frequency of its last frame; until then on every one.
//! - An address is its newest sender's.
//! - A frame contends in the category of its TID. Management contends as voice, other frames by DCF. A radio that sends
//!   beacons is an access point.
//! - Radios say in the open that one takes another's frames of a TID together (Block Ack agreements); those are sent as A-MPDUs.
//! - The signal that receivers are told is that of their places, else the host's SNR above [`NOISE_DBM`], or [`SIGNAL_DBM`].
//!
//! Leaves out: what `radios` leaves out; unicast frames at radios in monitor mode; frames shorter than a header of 24 bytes, such as
//! PS-Poll, which the kernel takes from no medium, though their sender is told that they were acknowledged; a station that
//! changes its channel while a frame for it waits; protection by CTS-to-self where Linux alone asks for it.

use crate::clock::Clock;
use crate::error::{Doing, Error, Result};
use crate::measure::LATE_P99_US;
use crate::mpdu::{Agreements, Header};
use crate::rates::{band, series, told_index};
use crate::real_time::{Histogram, LONGEST_WORK, be_ordinary, be_woken_exactly};
use crate::wakers::{Wakers, is_waker};
use lasthop_kernel::hwsim::{Address, Hwsim, MOST_RATES, Message, Outbox, Sent, Ticket, TxRate, messages};
use lasthop_network::random::Streams;
use lasthop_network::wifi::radios::{Air, Counts, Event, Frame, Receivers, Tries, TryRate};
use lasthop_network::{AccessConfig, AirTime, Band, Cells, PhyRate, Standard, Topology, WifiConfig};
use lasthop_scenario::{Lateness, Scenario};
use lasthop_units::{Span, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use serde::Serialize;
use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The thermal noise of 20 MHz (-101 dBm) and a receiver's noise figure of 6 dB.
const NOISE_DBM: i32 = -95;
/// Where no host has an SNR.
const SIGNAL_DBM: i32 = -50;
/// The standards of a medium: others' frames do not come as the kernel's simulated radios send them.
const STANDARDS: [Standard; 4] = [Standard::B, Standard::G, Standard::Bg, Standard::N];
/// Bytes of messages to the kernel at once: a socket takes 200 KiB.
const MOST_AT_ONCE: usize = 64 << 10;
/// Addresses of a radio: those of its interfaces, and those that a scan draws.
const MOST_ADDRESSES: usize = 16;
/// So that a request to stop is noticed.
const LONGEST_SLEEP: Span = Span::from_millis(200);
/// Datagrams read before the loop looks at the time again.
const READS_IN_A_ROW: usize = 64;
/// A wait that is longer leaves time to others.
const SLEEP: Span = Span::from_micros(20);
/// The number of radios that the module made when it was loaded.
const RADIOS: &str = "/sys/module/mac80211_hwsim/parameters/radios";

/// What a medium has counted.
#[derive(Clone, Debug, Serialize)]
pub struct MediumReport {
    /// How long it was the medium.
    pub duration_s: f64,
    /// The number of radios it knew.
    pub radios: usize,
    /// By frequency.
    pub channels: Vec<ChannelReport>,
    /// Messages that the kernel refused: frames to radios on another channel, or without an interface, and the ends of
    /// frames that it no longer had.
    pub refused: u64,
    /// Times at which the kernel had no room for more frames that were not read yet.
    pub unread: u64,
    /// Frames of radios that are no nodes of the scenario, where it says who hears whom: nobody heard them.
    pub strangers: u64,
    /// Frames whose rates or channel the scenario's standard does not have. They went at the fastest rate below, and with the
    /// standard's own times.
    pub foreign_rates: u64,
    /// From the time at which a reception or the end of a frame was due to when the kernel was told.
    pub lateness_us: Lateness,
    /// Whether it was late so often that delays and throughput may be wrong.
    pub late: bool,
    /// By host: data of unicast to the access point, and from there.
    #[serde(skip)]
    pub(crate) links: Vec<[LinkCount; 2]>,
}

/// Tries of data frames of one sender to one receiver.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct LinkCount {
    frames: u64,
    tries: u64,
    /// The sum of the rates of all tries.
    mbps: f64,
}

impl LinkCount {
    #[cfg(test)]
    pub(crate) const fn of(frames: u64, tries: u64) -> Self {
        Self { frames, tries, mbps: 0.0 }
    }

    /// Tries beyond a frame's first.
    pub(crate) fn retries(&self) -> u64 {
        self.tries - self.frames
    }

    /// The mean rate of tries; `None` without any.
    pub(crate) fn phy_rate_mbps(&self) -> Option<f64> {
        (self.tries > 0).then(|| self.mbps / self.tries as f64)
    }

    fn add(&mut self, series: &[Option<Tries>], made: &[u8]) {
        let made = || made.iter().zip(series).filter_map(|(&made, tries)| Some((made, (*tries)?.rate)));
        let tries: u64 = made().map(|(made, _)| u64::from(made)).sum();
        self.frames += u64::from(tries > 0);
        self.tries += tries;
        self.mbps += made().map(|(made, rate)| f64::from(made) * mbps(rate)).sum::<f64>();
    }
}

/// The PHY rate of a try.
fn mbps(rate: TryRate) -> f64 {
    match rate {
        TryRate::Legacy(rate) => rate.rate().as_mbps(),
        TryRate::Later(modulation) => modulation.rate(Standard::N).as_mbps(),
    }
}

/// What a medium has counted on one frequency.
#[derive(Clone, Debug, Serialize)]
pub struct ChannelReport {
    /// In MHz.
    pub frequency_mhz: u32,
    /// Frames of all radios.
    pub frames: u64,
    /// Their tries.
    pub tries: u64,
    /// Times at which tries overlapped.
    pub collisions: u64,
    /// Tries that overlapped others.
    pub collided: u64,
    /// Tries that noise destroyed, that nobody was there to hear, or whose response was lost.
    pub errors: u64,
    /// Frames that were acknowledged.
    pub acknowledged: u64,
    /// Frames that were given up.
    pub lost: u64,
    /// Frames that were forgotten, for two hundred of their radio waited. The kernel has dropped them, too.
    pub dropped: u64,
    /// Shares of the time: 1 together.
    pub air: AirShares,
}

/// Shares of the time of one channel.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(missing_docs, reason = "they are those of `AirTime`")]
pub struct AirShares {
    pub idle: f64,
    pub contention: f64,
    pub success: f64,
    pub broadcast: f64,
    pub collision: f64,
    pub error: f64,
}

/// The keys that a medium looks at, for those who ask.
pub const MEDIUM_KEYS: &str = "seed, and of [access] standard, band_ghz, frame_error_rate, response_error_rate, \
                               preamble, protection_rate_mbps, after_collision; of [[hosts]] standard, snr_db, frame_error_rate; \
                               places, [[cells]] and [[hearing]], and with any of these capture_db, \
                               tx_power_dbm, sense_dbm, hear_dbm of [access]";

/// Whether the scenario describes a medium.
///
/// # Errors
/// A key that no medium between radios can have.
pub fn check_medium(scenario: &Scenario) -> Result<&WifiConfig> {
    let refuse = |key: &str, reason: String| Err(Error::Scenario { key: key.to_owned(), reason });
    let network = scenario.network();
    let access = match &network.topology {
        Topology::AccessPoint { access, .. } => access,
        Topology::Links(_) => {
            return refuse("links", "a medium between radios has [access] of kind \"wifi\", no links".to_owned());
        }
    };
    let AccessConfig::Wifi(wifi) = access else {
        return refuse("access.kind", "\"wired\" is no medium between radios (accepted: \"wifi\")".to_owned());
    };
    if !STANDARDS.contains(&wifi.standard) {
        let accepted: Vec<String> = STANDARDS.iter().map(|standard| format!("\"{standard}\"")).collect();
        let reason =
            format!("a medium between radios cannot have \"{}\" (accepted: {})", wifi.standard, accepted.join(", "));
        return refuse("access.standard", reason);
    }
    let layout = scenario.layout();
    if let Some(place) = layout.and_then(|layout| layout.access_points.iter().position(|place| place.channel.is_some()))
    {
        let reason = "radios choose their channels themselves (accepted: no channel)".to_owned();
        return refuse(&format!("cells[{place}].channel"), reason);
    }
    if !scenario.roams().is_empty() {
        let reason = "radios choose their access point themselves (accepted: no [[hosts.roam]])".to_owned();
        return refuse("hosts.roam", reason);
    }
    Ok(wifi)
}

/// Is the medium between the simulated radios that were made in this network namespace, until `stop` is set.
///
/// # Errors
/// The scenario describes none ([`check_medium`]); there are no such radios, the caller is not root, or another program is
/// their medium. Nothing is changed then.
pub fn medium(scenario: &Scenario, stop: &AtomicBool, began: impl FnOnce(usize)) -> Result<MediumReport> {
    medium_of_run(scenario, &OfRun::default(), stop, began)
}

/// What a medium is told of the run that it is for. It is empty until then, and stays so without a run.
#[derive(Default)]
pub(crate) struct OfRun {
    /// The clock of the run, and from when until when on it the medium counts. Else it counts from its own beginning to its end.
    pub(crate) window: OnceLock<(Clock, Time, Time)>,
    /// Who is told that a receiver's frames are done.
    pub(crate) wakers: OnceLock<Wakers>,
}

/// The same, but for what it counts.
pub(crate) fn medium_of_run(
    scenario: &Scenario,
    of_run: &OfRun,
    stop: &AtomicBool,
    began: impl FnOnce(usize),
) -> Result<MediumReport> {
    let wifi = check_medium(scenario)?;
    let hwsim = Hwsim::register()?;
    let made = std::fs::read_to_string(RADIOS).ok().and_then(|number| number.trim().parse().ok()).unwrap_or(0);
    let mut medium = Medium::new(scenario, wifi.clone(), hwsim, made, of_run);
    began(medium.radios.len());
    medium.run(stop)?;
    Ok(medium.whole.take().unwrap_or_else(|| medium.report()))
}

struct Medium<'a> {
    scenario: &'a Scenario,
    of_run: &'a OfRun,
    wifi: WifiConfig,
    hwsim: Hwsim,
    outbox: Outbox,
    clock: Clock,
    /// By number.
    radios: Vec<Radio>,
    /// By frequency in MHz.
    airs: BTreeMap<u32, Air<Rc<OnItsWay>>>,
    agreements: Agreements,
    events: Vec<Event<Rc<OnItsWay>>>,
    lateness: Histogram,
    refused: u64,
    unread: u64,
    strangers: u64,
    foreign_channels: u64,
    /// As of [`MediumReport`].
    links: Vec<[LinkCount; 2]>,
    /// At the beginning of what it counts.
    before: Before,
    /// At the end of that.
    whole: Option<MediumReport>,
}

/// What was counted before.
#[derive(Default)]
struct Before {
    at: Time,
    /// By frequency in MHz.
    airs: BTreeMap<u32, (Counts, AirTime)>,
}

struct Radio {
    name: Address,
    interfaces: Vec<Address>,
    frequency_mhz: Option<u32>,
    is_access_point: bool,
    signal_dbm: i32,
}

/// A frame that the kernel waits for.
struct OnItsWay {
    ticket: Ticket,
    from: usize,
    /// Its receiver, if it is data to one.
    data_to: Option<usize>,
    mpdu: Box<[u8]>,
    frequency_mhz: u32,
    rates: [TxRate; MOST_RATES],
    series: [Option<Tries>; MOST_RATES],
}

impl<'a> Medium<'a> {
    fn new(scenario: &'a Scenario, wifi: WifiConfig, hwsim: Hwsim, made: u16, of_run: &'a OfRun) -> Self {
        let mut medium = Self {
            scenario,
            of_run,
            wifi,
            outbox: Outbox::new(hwsim.family()),
            hwsim,
            clock: Clock::start(),
            radios: Vec::new(),
            airs: BTreeMap::new(),
            agreements: Agreements::default(),
            events: Vec::new(),
            lateness: Histogram::new(),
            refused: 0,
            unread: 0,
            strangers: 0,
            foreign_channels: 0,
            links: vec![[LinkCount::default(); 2]; scenario.network().hosts.len()],
            before: Before::default(),
            whole: None,
        };
        (0..made).for_each(|number| {
            medium.add_radio(Address::of_radio(number));
        });
        medium
    }

    fn run(&mut self, stop: &AtomicBool) -> Result<()> {
        let mut bounds = None;
        let mut datagram = Vec::new();
        let mut preferred = be_woken_exactly();
        let mut slept = Time::ZERO;
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..READS_IN_A_ROW {
                match self.hwsim.receive(&mut datagram) {
                    Ok(true) => {
                        self.take(&datagram)?;
                        // The loop of the path has the same priority: it goes first.
                        thread::yield_now();
                    }
                    Ok(false) => break,
                    // Frames came faster than they were read. Their senders know.
                    Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => self.unread += 1,
                    Err(error) => return Err(error).doing("cannot receive frames of the radios"),
                }
            }
            self.deliver()?;
            let next = self.airs.values().filter_map(Air::next_wakeup).min();
            let bound = match self.of_run.window.get() {
                Some((clock, from, until)) => {
                    let bounds = bounds.get_or_insert_with(|| vec![*until, *from]);
                    while bounds.last().is_some_and(|&bound| clock.now() >= bound) {
                        bounds.pop();
                        self.pass(bounds.is_empty());
                    }
                    bounds.last().map(|&bound| clock.until(bound))
                }
                None => None,
            };
            let free = next.map_or(LONGEST_SLEEP, |at| self.clock.until(at)).min(LONGEST_SLEEP);
            let free = bound.map_or(free, |bound| free.min(bound));
            let mut waiting = [PollFd::new(self.hwsim.as_fd(), PollFlags::POLLIN)];
            let timeout = TimeSpec::from_duration(Duration::from_nanos(free.as_nanos()));
            let before = self.clock.now();
            match ppoll(&mut waiting, Some(timeout), None) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error).doing("cannot wait for frames of the radios"),
            }
            let now = self.clock.now();
            if now.saturating_since(before) > SLEEP {
                slept = now;
            } else if preferred && now.saturating_since(slept) > LONGEST_WORK {
                preferred = false;
                be_ordinary("the medium");
            }
        }
        Ok(())
    }

    /// Lets happen what is due, and tells the kernel.
    fn deliver(&mut self) -> Result<()> {
        let now = self.clock.now();
        self.airs.values_mut().for_each(|air| air.advance(now, &mut self.events));
        if self.events.is_empty() {
            return Ok(());
        }
        let events = std::mem::take(&mut self.events);
        for event in &events {
            if self.outbox.as_bytes().len() > MOST_AT_ONCE {
                self.hwsim.send(&mut self.outbox).doing("cannot send frames to the radios")?;
            }
            match event {
                Event::Received { by, place, is_repeated, tag, .. } => {
                    let OnItsWay { mpdu, frequency_mhz, series, from, .. } = &**tag;
                    let radio = &self.radios[*by];
                    let signal = self.signal_dbm(*from, *by);
                    let rate = series[*place].map_or(TryRate::Legacy(PhyRate::Mbps1), |tries| tries.rate);
                    let index = told_index(rate, *frequency_mhz);
                    self.outbox.received(radio.name, mpdu, *is_repeated, index, signal, *frequency_mhz);
                }
                Event::Done { is_acknowledged, made, tag, .. } => {
                    let mut told = [TxRate::NONE; MOST_RATES];
                    for ((told, rate), &count) in told.iter_mut().zip(tag.rates).zip(made) {
                        if count > 0 {
                            *told = TxRate { index: rate.index, count };
                        }
                    }
                    let link = match (tag.from, tag.data_to) {
                        (station @ 1.., Some(0)) => self.links.get_mut(station - 1).map(|both| &mut both[0]),
                        (0, Some(station @ 1..)) => self.links.get_mut(station - 1).map(|both| &mut both[1]),
                        _ => None,
                    };
                    link.into_iter().for_each(|link| link.add(&tag.series, made));
                    let signal = self.radios[tag.from].signal_dbm;
                    self.outbox.done(tag.ticket, *is_acknowledged, told, signal);
                }
            }
        }
        self.hwsim.send(&mut self.outbox).doing("cannot send frames to the radios")?;
        let now = self.clock.now();
        events.iter().for_each(|event| self.lateness.record(now.saturating_since(event.at())));
        if let Some(wakers) = self.of_run.wakers.get() {
            for event in &events {
                let Event::Done { tag, .. } = event else { continue };
                if let (from, Some(to), Some(air)) = (tag.from, tag.data_to, self.airs.get(&tag.frequency_mhz))
                    && !air.has_frames(from, to)
                {
                    wakers.wake(from, to);
                }
            }
        }
        self.events = events;
        self.events.clear();
        Ok(())
    }

    /// Takes the messages of a datagram.
    fn take(&mut self, datagram: &[u8]) -> Result<()> {
        for message in messages(datagram, self.hwsim.family()) {
            match message.doing("cannot read what mac80211_hwsim says")? {
                Message::Sent(sent) => self.offer(&sent)?,
                Message::Has { radio, address } => self.radio_has(radio, address),
                Message::HasNot { radio, address } => {
                    let number = self.number(radio);
                    self.radios[number].interfaces.retain(|&other| other != address);
                    self.agreements.forget(address, None);
                }
                Message::Answer(number) => self.refused += u64::from(number != 0),
                Message::Other => {}
            }
        }
        Ok(())
    }

    /// A radio's driver sends a frame.
    fn offer(&mut self, sent: &Sent<'_>) -> Result<()> {
        let frequency_mhz = sent.frequency_mhz;
        let from = self.number(sent.radio);
        if self.cells().is_some_and(|cells| from >= cells.nodes()) {
            self.strangers += 1;
            self.outbox.done(sent.ticket(), false, [TxRate::NONE; MOST_RATES], SIGNAL_DBM);
            return self.hwsim.send(&mut self.outbox).doing("cannot send frames to the radios");
        }
        self.radios[from].frequency_mhz = Some(frequency_mhz);
        let header = Header::of(sent.mpdu);
        if header.is_data && self.of_run.wakers.get().is_some() && is_waker(&sent.mpdu[header.bytes..]) {
            self.outbox.done(sent.ticket(), true, [TxRate::NONE; MOST_RATES], SIGNAL_DBM);
            return self.hwsim.send(&mut self.outbox).doing("cannot send frames to the radios");
        }
        if let Some(transmitter) = header.transmitter {
            self.radio_has(sent.radio, transmitter);
        }
        self.radios[from].is_access_point |= header.is_beacon;
        let receiver = sent.receiver();
        let to = if receiver.is_group() {
            Receivers::All
        } else {
            let on_channel = |radio: &Radio| radio.frequency_mhz.is_none_or(|its| its == frequency_mhz);
            let has = |radio: &Radio| radio.interfaces.contains(&receiver);
            let number = self.radios.iter().position(|radio| has(radio) && on_channel(radio));
            let number =
                number.filter(|&number| number != from && self.cells().is_none_or(|cells| number < cells.nodes()));
            number.map_or(Receivers::Nobody, Receivers::One)
        };
        self.agreements.heed(sent.mpdu, matches!(to, Receivers::One(_)));
        let (rates, series) = series(sent, frequency_mhz);
        let data_to = match to {
            Receivers::One(number) if header.is_data => Some(number),
            _ => None,
        };
        let mpdu = sent.mpdu.into();
        let on_its_way = OnItsWay { ticket: sent.ticket(), from, data_to, mpdu, frequency_mhz, rates, series };
        let frame = Frame {
            from,
            to,
            wants_acknowledgement: !sent.wants_no_acknowledgement(),
            bytes: sent.mpdu.len() as u64 + 4,
            user_priority: header.user_priority,
            aggregates: match (header.transmitter, header.user_priority) {
                (Some(transmitter), Some(tid)) if header.is_data => self.agreements.most(transmitter, receiver, tid),
                _ => 0,
            },
            sequence: header.sequence,
            from_access_point: self.radios[from].is_access_point,
            series,
            tag: Rc::new(on_its_way),
        };
        if self.wifi.standard != Standard::N && band(frequency_mhz) != Band::Ghz2_4 {
            self.foreign_channels += 1;
        }
        let now = self.clock.now();
        let access_points = self.access_points();
        let air = self.airs.entry(frequency_mhz).or_insert_with(|| {
            let streams = Streams::new(self.scenario.seed);
            // 802.11n is at home in both bands.
            let band = if self.wifi.standard == Standard::N { band(frequency_mhz) } else { self.wifi.band };
            let wifi = WifiConfig { band, ..self.wifi.clone() };
            let network = self.scenario.network();
            let mut air = Air::new(&wifi, &network.hosts, network.cells.as_ref(), streams, frequency_mhz);
            self.radios.iter().for_each(|_| {
                air.add_radio();
            });
            air
        });
        air.advance(now, &mut self.events);
        let dropped = air.counts().dropped;
        air.offer(now, frame);
        // The kernel has dropped them, too: for a receiver whose frames all are gone none will be done.
        if let (true, Some(wakers)) = (air.counts().dropped > dropped, self.of_run.wakers.get()) {
            let may_send = |to: usize| (from < access_points) != (to < access_points);
            let without = (0..self.radios.len()).filter(|&to| may_send(to) && !air.has_frames(from, to));
            without.for_each(|to| wakers.wake(from, to));
        }
        // What was due before is late: it does not wait for more frames.
        if self.events.is_empty() { Ok(()) } else { self.deliver() }
    }

    /// The radio has this address, and no other radio has it any more.
    fn radio_has(&mut self, radio: Address, interface: Address) {
        let number = self.number(radio);
        if self.radios[number].interfaces.contains(&interface) {
            return;
        }
        self.radios.iter_mut().for_each(|other| other.interfaces.retain(|its| *its != interface));
        let interfaces = &mut self.radios[number].interfaces;
        if interfaces.len() == MOST_ADDRESSES {
            self.agreements.forget(interfaces.remove(1), None);
        }
        interfaces.push(interface);
    }

    /// Who hears whom, if not all do.
    fn cells(&self) -> Option<&Cells> {
        self.scenario.network().cells.as_ref()
    }

    /// What the receiver of a frame is told of its signal.
    fn signal_dbm(&self, from: usize, by: usize) -> i32 {
        if let Some(layout) = self.scenario.layout().filter(|layout| layout.access_points[0].at_m.is_some()) {
            let (stations, access_points) = (layout.hosts.len(), layout.access_points.len());
            let node = |radio: usize| radio.checked_sub(access_points).unwrap_or(stations + radio);
            return layout.cells().hearing(node(from), node(by)).dbm.round() as i32;
        }
        self.radios[if by < self.access_points() { from } else { by }].signal_dbm
    }

    /// The number of access points, which are the first radios.
    fn access_points(&self) -> usize {
        self.cells().map_or(1, |cells| cells.access_points)
    }

    /// The number of a radio; one that was unknown is added.
    fn number(&mut self, name: Address) -> usize {
        match self.radios.iter().position(|radio| radio.name == name) {
            Some(number) => number,
            None => self.add_radio(name),
        }
    }

    fn add_radio(&mut self, name: Address) -> usize {
        let number = self.radios.len();
        let station = number.checked_sub(self.access_points());
        let host = station.and_then(|station| self.scenario.network().hosts.get(station));
        let snr_db = host.and_then(|host| host.snr_db);
        self.radios.push(Radio {
            name,
            interfaces: vec![name.of_interface()],
            frequency_mhz: None,
            is_access_point: false,
            signal_dbm: snr_db.map_or(SIGNAL_DBM, |snr_db| NOISE_DBM + snr_db.round() as i32),
        });
        self.airs.values_mut().for_each(|air| {
            air.add_radio();
        });
        number
    }

    /// What is counted begins here, or ends.
    fn pass(&mut self, is_end: bool) {
        if is_end {
            self.whole = Some(self.report());
            return;
        }
        let at = self.clock.now();
        let airs = self.airs.iter().map(|(&mhz, air)| (mhz, (*air.counts(), air.air(at)))).collect();
        self.before = Before { at, airs };
        (self.lateness, self.refused, self.unread, self.foreign_channels) = (Histogram::new(), 0, 0, 0);
        self.strangers = 0;
        self.links.fill([LinkCount::default(); 2]);
    }

    fn report(&self) -> MediumReport {
        let now = self.clock.now();
        let p99 = self.lateness.permille_us(990);
        let counted = |(mhz, air): (&u32, &Air<_>)| {
            let (counts, time) = self.before.airs.get(mhz).copied().unwrap_or_default();
            (*mhz, air.counts().since(&counts), air.air(now).since(&time))
        };
        let counted: Vec<_> = self.airs.iter().map(counted).collect();
        MediumReport {
            duration_s: now.saturating_since(self.before.at).as_secs_f64(),
            radios: self.radios.len(),
            foreign_rates: counted.iter().map(|(_, counts, _)| counts.foreign_rates).sum::<u64>()
                + self.foreign_channels,
            channels: counted.iter().map(|(mhz, counts, air)| ChannelReport::new(*mhz, counts, air)).collect(),
            refused: self.refused,
            unread: self.unread,
            strangers: self.strangers,
            lateness_us: Lateness {
                p50: self.lateness.permille_us(500) as f64,
                p99: p99 as f64,
                max: self.lateness.max_us() as f64,
            },
            late: p99 > LATE_P99_US,
            links: self.links.clone(),
        }
    }
}

impl ChannelReport {
    fn new(frequency_mhz: u32, counts: &Counts, air: &AirTime) -> Self {
        let share = |time: Span| time.over(air.total()).unwrap_or(0.0);
        Self {
            frequency_mhz,
            frames: counts.frames,
            tries: counts.tries,
            collisions: counts.collisions,
            collided: counts.collided,
            errors: counts.errors,
            acknowledged: counts.acknowledged,
            lost: counts.given_up,
            dropped: counts.dropped,
            air: AirShares {
                idle: share(air.idle),
                contention: share(air.contention),
                success: share(air.success),
                broadcast: share(air.broadcast),
                collision: share(air.collision),
                error: share(air.error),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<Standard> {
        let scenario = Scenario::from_toml("air.toml", text, &[]).expect("a scenario");
        check_medium(&scenario).map(|wifi| wifi.standard)
    }

    #[test]
    fn a_scenario_of_something_else_than_an_air_is_refused_by_its_key() {
        let access = |keys: &str| format!("[access]\n{keys}\n[path]\n[[hosts]]\ncount = 3\n");
        assert_eq!(check(&access("standard = \"802.11n\"\nband_ghz = 2.4")).expect("a medium"), Standard::N);
        assert_eq!(check(&access("")).expect("a medium"), Standard::G);
        let cells = "[[cells]]\nname = \"a\"\nx_m = 0\n[[cells]]\nname = \"b\"\nx_m = 90\n";
        let hosts = "[access]\n[path]\n[[hosts]]\ncell = \"b\"\nx_m = 40\n";
        assert_eq!(check(&format!("{hosts}{cells}")).expect("a medium"), Standard::G);
        let channels =
            cells.replace("x_m = 90", "x_m = 90\nchannel = 6").replace("x_m = 0\n", "x_m = 0\nchannel = 1\n");
        let roams = "[[hosts.roam]]\nat_s = 1\nto = \"a\"\n";
        for (text, key, accepted) in [
            (access("kind = \"wired\"\nrate_mbps = 10"), "access.kind", "\"wifi\""),
            (access("standard = \"802.11ac\""), "access.standard", "\"802.11bg\", \"802.11n\""),
            (format!("{hosts}{channels}"), "cells[0].channel", "no channel"),
            (format!("{hosts}{roams}{cells}"), "hosts.roam", "no [[hosts.roam]]"),
        ] {
            let message = check(&text).expect_err("no medium").to_string();
            assert!(message.starts_with(&format!("{key}: ")) && message.contains(accepted), "{message}");
        }
    }

    #[test]
    fn the_rate_of_a_link_is_the_mean_over_its_tries() {
        let mut link = LinkCount::default();
        assert_eq!((link.retries(), link.phy_rate_mbps()), (0, None));
        let tries = |rate, count| Some(Tries { rate: TryRate::Legacy(rate), count, rts: false });
        let series = [tries(PhyRate::Mbps54, 2), tries(PhyRate::Mbps24, 4), None, None];
        // Twice at 54 Mb/s and once at 24; then once at 54.
        link.add(&series, &[2, 1, 0, 0]);
        link.add(&series, &[1, 0, 0, 0]);
        assert_eq!((link.retries(), link.phy_rate_mbps()), (2, Some((3.0 * 54.0 + 24.0) / 4.0)));
    }
}
