//! The medium for radios outside of the model: their drivers hand over whole MPDUs, each with the rates at which to try it.
//!
//! One channel, which all hear, under DCF or EDCA. It has the channel access, air times, losses and constants of `medium`:
//! 1. Each radio has a queue, a timer and a contention window for each access category (`edca`), and one of DCF for data
//!    without a user priority. Senders and times: `backoff`. Of one radio's timers that expire together the highest
//!    category's sends; the others double their contention windows.
//! 2. A frame brings a series of rates, each with a number of tries (Linux's `ieee80211_tx_rate`). Each try contends again,
//!    with CW doubled after a failure. Behind the last one the frame is given up.
//! 3. A try without overlap is received unless it is lost to `noise`. A unicast frame is acknowledged after SIFS; if that
//!    is lost, it is repeated, and its receiver gets it again.
//! 4. Overlapping tries are all lost. The waits after that, after an error and after a lost response are `medium`'s 4 to 6.
//! 5. A frame to all, or one that wants no acknowledgement, is tried once.
//! 6. A try whose rate asks for it is preceded by RTS and CTS. A lost RTS is told as a try of its frames.
//! 7. Of two hundred frames of a radio that wait the oldest are forgotten, as the driver does.
//! 8. Where receiver and user priority have a Block Ack agreement, and the first rate is of 802.11n, the frames of both that wait
//!    are sent as one A-MPDU: at the rate of the first one, within the agreement's number and the standard's bytes and time. Each
//!    is lost or received for itself, and a Block Ack tells which. What was lost is tried again, in its own series.
//! 9. Voice and video have a TXOP (`edca`): behind an acknowledged frame the next ones of the same category follow after SIFS,
//!    without RTS, as long as they end with their responses within it. A failure ends it.
//!
//! Where not all hear all ([`Cells`]), carrier sense, reservation, backoff and reception are each radio's own: points 1 to 5 of
//! `medium::per_node` (`by_node`) in the place of 3 and 4. The first radios are then the access points, in their order.
//!
//! The caller keeps the radios apart by channel, one [`Air`] each, and drives it with three verbs, as a network.
//!
//! Leaves out: A-MSDUs, Block Ack Requests, power saving.
//!
//! References: those of `medium`; Linux, include/net/mac80211.h (`ieee80211_tx_rate`), for what a series of rates means.

mod by_node;

use super::air_use::{AirMeter, AirUse};
use super::airtime::{AirTimes, Mode, ModeId, Unanswered};
use super::backoff::Contention;
use super::constants::{ContentionWindow, OFDM_WINDOW, PhyRate, Standard};
use super::edca::{Category, Parameters};
use super::medium::PerNode;
use super::modulation::Modulation;
use super::noise::Noise;
use crate::config::{Cells, HostConfig, WifiConfig, WifiRules};
use crate::random::{Streams, happens};
use crate::statistics::AirTime;
use lasthop_units::{Probability, Span, Time};
use rand_chacha::ChaCha8Rng;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// The most entries of a series of rates (Linux's `IEEE80211_TX_MAX_RATES`).
pub const MOST_RATES: usize = 4;

/// Where so many frames of a radio wait, Linux's driver drops the oldest (mac80211_hwsim's `MAX_QUEUE`), ...
const MOST_WAITING: usize = 200;
/// ... down to so many (below `WARN_QUEUE`).
const KEPT_WAITING: usize = 99;

/// The bytes before each MPDU of an A-MPDU.
const DELIMITER: u64 = 4;
/// The most frames that a Block Ack of 802.11n tells of.
const MOST_AGGREGATES: u16 = 64;
/// The bits of a sequence number.
const SEQUENCE: u16 = 0xfff;

/// What a frame is sent with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TryRate {
    /// A rate of 802.11b or 802.11g.
    Legacy(PhyRate),
    /// A modulation of 802.11n or later.
    Later(Modulation),
}

/// An entry of a series of rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tries {
    /// The rate of each.
    pub rate: TryRate,
    /// How many; 0: none.
    pub count: u8,
    /// Whether RTS and CTS precede each.
    pub rts: bool,
}

/// Who is to receive a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receivers {
    /// Every radio on the channel but the sender. Nobody acknowledges.
    All,
    /// The radio of this number. It acknowledges, unless the frame wants none.
    One(usize),
    /// A radio that is not on this channel, or unknown.
    Nobody,
}

/// A frame of a radio.
#[derive(Clone, Debug)]
pub struct Frame<T> {
    /// The number of its radio.
    pub from: usize,
    /// Who is to receive it.
    pub to: Receivers,
    /// Whether its receiver is to acknowledge it; not if it is for all.
    pub wants_acknowledgement: bool,
    /// The MPDU with its FCS.
    pub bytes: u64,
    /// Its user priority, 0 to 7; `None`: it contends by DCF, as frames without QoS.
    pub user_priority: Option<u8>,
    /// The most frames of an A-MPDU with it, by the Block Ack agreement of its user priority with its receiver; 0: there is none.
    pub aggregates: u16,
    /// Its sequence number, of 12 bits. An A-MPDU has fewer than `aggregates` from its first frame's on.
    pub sequence: u16,
    /// Whether its radio is an access point, whose video and voice have an AIFSN of 1.
    pub from_access_point: bool,
    /// At which rates to try it, in order. The first entry has a try at least.
    pub series: [Option<Tries>; MOST_RATES],
    /// What the caller knows it by.
    pub tag: T,
}

/// What happens to a frame.
#[derive(Clone, Debug)]
pub enum Event<T> {
    /// A radio has received it. More than once, if the acknowledgement was lost.
    Received {
        /// When its last bit came.
        at: Time,
        /// The radio.
        by: usize,
        /// The rate, by its place in the series.
        place: usize,
        /// Whether it is a repetition (the Retry bit of its header).
        is_repeated: bool,
        /// The frame's tag.
        tag: T,
    },
    /// Its sender is done with it.
    Done {
        /// When the acknowledgement ended, or the last try.
        at: Time,
        /// Whether it was acknowledged.
        is_acknowledged: bool,
        /// How many tries each entry of its series had.
        made: [u8; MOST_RATES],
        /// The frame's tag.
        tag: T,
    },
}

impl<T> Event<T> {
    /// When it was due.
    pub const fn at(&self) -> Time {
        match *self {
            Self::Received { at, .. } | Self::Done { at, .. } => at,
        }
    }
}

/// What an air has counted since its beginning.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Frames that came.
    pub frames: u64,
    /// Their tries.
    pub tries: u64,
    /// Of these, those that overlapped others.
    pub collided: u64,
    /// Of these, those that noise destroyed, that nobody was there to hear, or whose response was lost.
    pub errors: u64,
    /// Frames that were acknowledged.
    pub acknowledged: u64,
    /// Frames that were given up behind their last try.
    pub given_up: u64,
    /// Times at which tries overlapped.
    pub collisions: u64,
    /// Frames at rates that the standard does not have, sent at the fastest that it has below.
    pub foreign_rates: u64,
    /// Frames that were forgotten, for too many waited behind them. The kernel has dropped them, too.
    pub dropped: u64,
}

impl Counts {
    /// What was counted since an earlier reading of the same air.
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            frames: self.frames - before.frames,
            tries: self.tries - before.tries,
            collided: self.collided - before.collided,
            errors: self.errors - before.errors,
            acknowledged: self.acknowledged - before.acknowledged,
            given_up: self.given_up - before.given_up,
            collisions: self.collisions - before.collisions,
            foreign_rates: self.foreign_rates - before.foreign_rates,
            dropped: self.dropped - before.dropped,
        }
    }
}

/// One channel with its radios.
#[derive(Clone, Debug)]
pub struct Air<T> {
    times: AirTimes,
    contention: Contention,
    rules: WifiRules,
    common_aifsn: i8,
    streams: Streams,
    /// Channels draw for themselves.
    frequency_mhz: u32,
    config: WifiConfig,
    hosts: Vec<HostConfig>,
    radios: Vec<Radio>,
    /// By contender. The first one never sends: the others begin with what it has sensed.
    senders: Vec<Sender<T>>,
    phase: Phase,
    on_air: Vec<OnAir>,
    reserved_until: Time,
    air: AirMeter,
    counts: Counts,
    /// The number of access points, which are the first radios.
    access_points: usize,
    /// Where not all hear all.
    nodes: Option<Box<Nodes>>,
}

/// What each radio hears for itself.
#[derive(Clone, Debug)]
struct Nodes {
    /// Its nodes are the stations, then the access points.
    per_node: PerNode,
    cells: Cells,
    /// By sender: its last try.
    tries: Vec<Option<OnAir>>,
}

#[derive(Clone, Debug)]
struct Radio {
    /// Between it and an access point.
    noise: Noise,
    errors: ChaCha8Rng,
    /// Of DCF.
    window: ContentionWindow,
    /// The contenders, one for DCF and each category, once used.
    contenders: [Option<usize>; 5],
}

#[derive(Clone, Debug)]
struct Sender<T> {
    radio: usize,
    category: Option<Category>,
    /// Zero: one frame, however long.
    txop: Span,
    queue: VecDeque<Waiting<T>>,
    /// How many of its frames are a part of its try.
    tried: usize,
}

/// A frame in its queue; the first one is tried.
#[derive(Clone, Debug)]
struct Waiting<T> {
    came: Time,
    frame: Frame<T>,
    modes: [Option<ModeId>; MOST_RATES],
    made: [u8; MOST_RATES],
    /// How often it was sent itself, without tries whose RTS was lost.
    sent: u32,
    /// It is a part of its sender's try.
    is_tried: bool,
    /// And was received.
    is_received: bool,
}

/// A try.
#[derive(Clone, Copy, Debug)]
struct OnAir {
    sender: usize,
    radio: usize,
    mode: ModeId,
    to: Receivers,
    is_answered: bool,
    /// The number of frames: several are an A-MPDU.
    frames: usize,
    bytes: u64,
    is_rts: bool,
    end: Time,
    /// The end of its TXOP; [`Time::ZERO`]: no frame follows it.
    txop_end: Time,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Silent,
    Frames(Time),
    Response(Time),
}

impl<T: Clone> Air<T> {
    /// A silent channel at time zero, without radios. Stations have the losses of `hosts`, in their order, and those behind
    /// the last one the losses of `config`. `cells`: who hears whom, if not all do; then there are no more radios than its nodes.
    pub fn new(
        config: &WifiConfig,
        hosts: &[HostConfig],
        cells: Option<&Cells>,
        streams: Streams,
        frequency_mhz: u32,
    ) -> Self {
        let times = AirTimes::of_radios(config, hosts);
        let nobody = (OFDM_WINDOW, streams.stream("radios/backoff/nobody"));
        let mut air = Self {
            access_points: cells.map_or(1, |cells| cells.access_points),
            nodes: None,
            contention: Contention::new(times.cell.slot, times.cell.sensing, vec![nobody]),
            times,
            rules: config.rules,
            common_aifsn: config.standard.space_slots() as i8,
            streams,
            frequency_mhz,
            config: config.clone(),
            hosts: hosts.to_vec(),
            radios: Vec::new(),
            senders: vec![Sender {
                radio: usize::MAX,
                category: None,
                txop: Span::ZERO,
                queue: VecDeque::new(),
                tried: 0,
            }],
            phase: Phase::Silent,
            on_air: Vec::new(),
            reserved_until: Time::ZERO,
            air: AirMeter::new(Time::ZERO),
            counts: Counts::default(),
        };
        if let Some(cells) = cells {
            air.hear_each_for_itself(cells);
        }
        air
    }

    /// Adds a radio. The first one is the access point, or the first ones are, the others are stations. Returns its number,
    /// counted from 0.
    pub fn add_radio(&mut self) -> usize {
        let number = self.radios.len();
        let other = HostConfig::new(1);
        let station = number.checked_sub(self.access_points);
        let host = station.and_then(|station| self.hosts.get(station)).unwrap_or(&other);
        let own = self.config.of_station(host);
        self.radios.push(Radio {
            noise: Noise::new(&own, host, &self.times),
            errors: self.streams.stream(&format!("radios/{}/frame-error/{number}", self.frequency_mhz)),
            // Of the radios themselves: a host's highest rate is not theirs.
            window: own.standard.window(PhyRate::Mbps54),
            contenders: [self.node_of(number), None, None, None, None],
        });
        number
    }

    /// The radio hands over a frame. Its number is from [`Air::add_radio`].
    pub fn offer(&mut self, now: Time, frame: Frame<T>) {
        self.counts.frames += 1;
        let category = frame.user_priority.map(Category::of_user_priority);
        let sender = self.sender(&frame, category);
        self.drop_oldest(frame.from);
        let mut is_foreign = false;
        let modes = frame.series.map(|tries| {
            tries.filter(|tries| tries.count > 0).map(|tries| match tries.rate {
                TryRate::Legacy(rate) if rate.is_ofdm() && self.config.standard == Standard::B => {
                    is_foreign = true;
                    PhyRate::Mbps11.into()
                }
                TryRate::Legacy(rate) => ModeId::from(rate),
                TryRate::Later(modulation) => self.times.find(modulation).unwrap_or_else(|| {
                    is_foreign = true;
                    self.fastest_below(modulation)
                }),
            })
        });
        self.counts.foreign_rates += u64::from(is_foreign);
        debug_assert!(modes[0].is_some(), "a frame is tried at least once");
        let queue = &mut self.senders[sender].queue;
        queue.push_back(Waiting {
            came: now,
            frame,
            modes,
            made: [0; MOST_RATES],
            sent: 0,
            is_tried: false,
            is_received: false,
        });
        if queue.len() == 1 {
            self.contend(now, sender);
        }
    }

    /// When something happens next, if nothing is offered before; `None`: nothing.
    pub fn next_wakeup(&self) -> Option<Time> {
        let next = match (self.phase, &self.nodes) {
            (_, Some(nodes)) => nodes.per_node.next(),
            (Phase::Silent, None) => self.contention.next_access(),
            (Phase::Frames(until) | Phase::Response(until), None) => until,
        };
        (next < Time::MAX).then_some(next)
    }

    /// Lets everything happen that is due by `now`, each at its own time.
    pub fn advance(&mut self, now: Time, events: &mut Vec<Event<T>>) {
        while let Some(at) = self.next_wakeup().filter(|&at| at <= now) {
            if self.nodes.is_some() {
                self.step_by_node(at, events);
            } else {
                self.step(at, events);
            }
        }
    }

    /// Whether a frame of one radio for another waits or is on its way.
    pub fn has_frames(&self, from: usize, to: usize) -> bool {
        let mut own = self.radios[from].contenders.into_iter().flatten();
        own.any(|sender| self.senders[sender].queue.iter().any(|waiting| waiting.frame.to == Receivers::One(to)))
    }

    /// What it has counted.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The use of the air until then.
    pub fn air(&self, now: Time) -> AirTime {
        match &self.nodes {
            Some(nodes) => nodes.per_node.air(now),
            None => self.air.until(now, self.air_use()),
        }
    }

    /// Where [`MOST_WAITING`] frames of a radio wait, forgets the oldest but for [`KEPT_WAITING`]. Of these, those that are
    /// tried or next stay.
    fn drop_oldest(&mut self, radio: usize) {
        let own: Vec<usize> = self.radios[radio].contenders.into_iter().flatten().collect();
        let waiting: usize = own.iter().map(|&sender| self.senders[sender].queue.len()).sum();
        if waiting < MOST_WAITING {
            return;
        }
        let by_age = |&sender: &usize| {
            let queue = self.senders[sender].queue.iter().enumerate();
            queue.map(move |(place, waiting)| (waiting.came, sender, place))
        };
        let mut oldest: Vec<_> = own.iter().flat_map(by_age).collect();
        oldest.sort_unstable();
        oldest.truncate(waiting - KEPT_WAITING);
        // The newest first: the places of the others stay.
        for (_, sender, place) in oldest.into_iter().rev() {
            let queue = &mut self.senders[sender].queue;
            if place > 0 && !queue[place].is_tried {
                queue.remove(place);
                self.counts.dropped += 1;
            }
        }
    }

    /// The contender of a frame's radio in its category.
    fn sender(&mut self, frame: &Frame<T>, category: Option<Category>) -> usize {
        let place = category.map_or(0, |category| 1 + category.place());
        if let Some(sender) = self.radios[frame.from].contenders[place] {
            return sender;
        }
        let (window, aifsn, txop, name) = match category {
            None => (self.radios[frame.from].window, Standard::G.space_slots() as i8, Span::ZERO, "dcf"),
            Some(category) => {
                let Parameters { window, aifsn, txop } = category.parameters(frame.from_access_point);
                (window, aifsn as i8, txop, category.name())
            }
        };
        let stream = self.streams.stream(&format!("radios/{}/backoff/{}/{name}", self.frequency_mhz, frame.from));
        let more_slots = aifsn - self.common_aifsn;
        let node = self.node_of(frame.from);
        let sender = match (&mut self.nodes, node) {
            (Some(nodes), Some(node)) => {
                nodes.tries.push(None);
                nodes.per_node.access.add(window, more_slots, stream, node)
            }
            _ => self.contention.add(window, more_slots, stream, 0),
        };
        self.senders.push(Sender { radio: frame.from, category, txop, queue: VecDeque::new(), tried: 0 });
        self.radios[frame.from].contenders[place] = Some(sender);
        sender
    }

    /// The fastest mode that is no faster than a modulation which the standard does not have.
    fn fastest_below(&self, foreign: Modulation) -> ModeId {
        let most = foreign.rate(Standard::N);
        let slower = PhyRate::ALL.into_iter().rev().find(|rate| rate.is_ofdm() && rate.rate() <= most);
        slower.unwrap_or(PhyRate::Mbps6).into()
    }

    /// The sender has a frame from now on.
    fn contend(&mut self, now: Time, sender: usize) {
        if self.nodes.is_some() {
            return self.contend_by_node(now, sender);
        }
        if self.phase == Phase::Silent && !self.contention.is_backlogged() {
            self.air.book(now, self.air_use());
        }
        let radio = self.senders[sender].radio;
        let is_sending = matches!(self.phase, Phase::Frames(_)) && self.on_air.iter().any(|frame| frame.radio == radio);
        if is_sending {
            self.contention.on_frame_while_sending(sender);
        } else if let Some(start) = self.contention.on_frame(sender, now, self.reserved_until) {
            // Too late to sense the try on the air.
            self.begin(sender, start);
        }
    }

    fn step(&mut self, now: Time, events: &mut Vec<Event<T>>) {
        match self.phase {
            Phase::Silent => self.on_seized(now),
            Phase::Frames(_) if self.on_air.len() > 1 => self.on_collision_over(now, events),
            Phase::Frames(_) => self.on_frame_over(now, events),
            Phase::Response(_) => self.on_response_over(now, events),
        }
    }

    fn on_seized(&mut self, now: Time) {
        self.air.book(now, self.air_use());
        self.on_air.clear();
        let mut sending = Vec::new();
        self.contention.seize(now, &mut sending);
        sending.sort_unstable_by_key(|&(sender, start)| {
            let Sender { radio, category, .. } = self.senders[sender];
            (radio, start, Reverse(category))
        });
        let mut last = None;
        for (sender, start) in sending {
            if last.replace(self.senders[sender].radio) == Some(self.senders[sender].radio) {
                self.contention.on_failure(sender);
            } else {
                self.begin(sender, start);
            }
        }
    }

    /// Starts the sender's next try.
    fn begin(&mut self, sender: usize, start: Time) {
        let Sender { txop, .. } = self.senders[sender];
        let on_air = self.next_try(sender, start, if txop.is_zero() { Time::ZERO } else { start + txop }, true);
        self.phase = match self.phase {
            Phase::Frames(until) => Phase::Frames(until.max(on_air.end)),
            _ => Phase::Frames(on_air.end),
        };
        self.on_air.push(on_air);
    }

    /// The try of the sender's first frame that begins then, with those that may be sent with it. `may_have_rts`: if its rate asks
    /// for it.
    fn next_try(&mut self, sender: usize, start: Time, txop_end: Time, may_have_rts: bool) -> OnAir {
        let Sender { radio, queue, tried, .. } = &mut self.senders[sender];
        let first = queue.front().expect("who sends has a frame");
        let place = first.place();
        let mode = first.modes[place].expect("an entry with tries has a mode");
        let Frame { to, user_priority, series, .. } = first.frame;
        let times = self.times.mode(mode);
        let is_answered = first.is_answered();
        let is_rts = may_have_rts && is_answered && series[place].is_some_and(|tries| tries.rts);
        let is_later = self.times.modulation(mode).is_some();
        let window = if is_answered && is_later { first.frame.aggregates.clamp(1, MOST_AGGREGATES) } else { 1 };
        let first_sequence = first.frame.sequence;
        let most_bytes = if txop_end > start {
            let rts = if is_rts { times.more_for_rts(self.times.cell.sifs) } else { Span::ZERO };
            times.most_bytes.min(times.bytes_within((txop_end - start).saturating_sub(times.block_ack + rts)))
        } else {
            times.most_bytes
        };
        let (mut frames, mut bytes, mut next) = (0, 0, 0);
        for waiting in queue.iter_mut() {
            let is_of_agreement = waiting.frame.aggregates > 0 && waiting.is_answered();
            let joins = frames == 0
                || (is_of_agreement && waiting.frame.to == to && waiting.frame.user_priority == user_priority);
            // Several, each behind a delimiter of four bytes.
            let end = next + waiting.frame.bytes + DELIMITER;
            if !joins {
                continue;
            }
            // The receiver has room from the first one's number on.
            let is_ahead = waiting.frame.sequence.wrapping_sub(first_sequence) & SEQUENCE >= window;
            if frames > 0 && (is_ahead || end > most_bytes) {
                break;
            }
            bytes = if frames == 0 { waiting.frame.bytes } else { end };
            next = times.next_start(next, end);
            frames += 1;
            waiting.made[waiting.place()] += 1;
            waiting.sent += u32::from(!is_rts);
            waiting.is_tried = true;
            if frames == usize::from(window) {
                break;
            }
        }
        let end = start + if is_rts { times.rts } else { times.ppdu(bytes) };
        *tried = frames;
        self.counts.tries += frames as u64;
        OnAir { sender, radio: *radio, mode, to, is_answered, frames, bytes, is_rts, end, txop_end }
    }

    /// The next try of the TXOP of one that was acknowledged by now, if another frame waits that ends within it.
    fn next_in_txop(&mut self, now: Time, after: &OnAir) -> Option<OnAir> {
        let start = now + self.times.cell.sifs;
        let waiting = self.senders[after.sender].queue.front().filter(|_| after.txop_end > start)?;
        let times = self.times.mode(waiting.modes[waiting.place()].expect("an entry with tries has a mode"));
        let response = if waiting.is_answered() { times.acknowledgement } else { Span::ZERO };
        let end = start + times.ppdu(waiting.frame.bytes) + response;
        (end <= after.txop_end).then(|| self.next_try(after.sender, start, after.txop_end, false))
    }

    fn on_frame_over(&mut self, now: Time, events: &mut Vec<Event<T>>) {
        let on_air = self.on_air[0];
        let response = on_air.response(self.times.mode(on_air.mode));
        if on_air.is_rts {
            let is_heard = matches!(on_air.to, Receivers::One(to) if {
                let loss = self.noise(on_air.radio, to).control(on_air.mode).rts;
                !happens(loss, &mut self.radios[on_air.radio].errors)
            });
            if is_heard {
                self.phase = Phase::Response(now + response);
            } else {
                self.on_error(now, &on_air, events);
            }
            return;
        }
        let is_received = match on_air.to {
            Receivers::Nobody => false,
            Receivers::One(to) => self.receive(now, &on_air, to, |_| false, events),
            Receivers::All => {
                for to in (0..self.radios.len()).filter(|&to| to != on_air.radio) {
                    self.receive(now, &on_air, to, |_| false, events);
                }
                true
            }
        };
        match (on_air.is_answered, is_received) {
            (true, true) => self.phase = Phase::Response(now + response),
            (true, false) => self.on_error(now, &on_air, events),
            (false, _) => {
                self.air.book(now, self.air_use());
                self.fail(now, on_air.sender, events);
                self.resume(now + self.times.cell.space, &[]);
            }
        }
    }

    fn on_response_over(&mut self, now: Time, events: &mut Vec<Event<T>>) {
        let on_air = self.on_air[0];
        let Receivers::One(to) = on_air.to else { unreachable!("only one radio answers") };
        if happens(self.response_loss(&on_air, to), &mut self.radios[to].errors) {
            let eifs = on_air.unanswered(self.times.mode(on_air.mode)).eifs;
            self.air.book(now, AirUse::Error);
            self.counts.errors += on_air.frames as u64;
            self.fail(now, on_air.sender, events);
            self.resume(now + self.times.cell.space, &[(on_air.radio, now + eifs)]);
        } else if on_air.is_rts {
            let end = now + self.times.cell.sifs + self.times.mode(on_air.mode).ppdu_after_cts(on_air.bytes);
            self.on_air[0] = OnAir { is_rts: false, end, ..on_air };
            self.sent_after_cts(on_air.sender);
            self.phase = Phase::Frames(end);
        } else {
            self.air.book(now, self.air_use());
            self.settle(now, on_air.sender, true, events);
            if let Some(next) = self.next_in_txop(now, &on_air) {
                self.contention.on_answered(on_air.sender);
                self.on_air[0] = next;
                self.phase = Phase::Frames(next.end);
            } else {
                self.end_access(on_air.sender);
                self.resume(now + self.times.cell.space, &[]);
            }
        }
    }

    fn on_error(&mut self, now: Time, on_air: &OnAir, events: &mut Vec<Event<T>>) {
        let mode = self.times.mode(on_air.mode);
        self.reserved_until = now + on_air.response(mode);
        let Unanswered { timeout, eifs } = on_air.unanswered(mode);
        let space = self.times.cell.space;
        let mut waits = vec![(on_air.radio, now + timeout + space)];
        if let Receivers::One(to) = on_air.to {
            waits.push((to, now + eifs));
        }
        self.air.book(now, AirUse::Error);
        self.counts.errors += on_air.frames as u64;
        self.fail(now, on_air.sender, events);
        self.resume(self.reserved_until + space, &waits);
    }

    fn on_collision_over(&mut self, now: Time, events: &mut Vec<Event<T>>) {
        self.air.book(now, self.air_use());
        self.counts.collisions += 1;
        let space = self.times.cell.space;
        let mut eifs = Span::ZERO;
        let mut waits = Vec::with_capacity(self.on_air.len());
        for on_air in std::mem::take(&mut self.on_air) {
            self.counts.collided += on_air.frames as u64;
            let unanswered = on_air.unanswered(self.times.mode(on_air.mode));
            eifs = eifs.max(unanswered.eifs);
            let known_at = if on_air.is_answered { now.max(on_air.end + unanswered.timeout) } else { now };
            waits.push((on_air.radio, known_at + space));
            self.fail(now, on_air.sender, events);
        }
        let bystanders = if self.rules.difs_after_collision { space } else { eifs };
        self.resume(now + bystanders, &waits);
    }

    /// Whether the radio receives frames of a try. `is_disturbed`: whether others overlap one of so many bytes, the first one
    /// first.
    fn receive(
        &mut self,
        now: Time,
        on_air: &OnAir,
        by: usize,
        mut is_disturbed: impl FnMut(u64) -> bool,
        events: &mut Vec<Event<T>>,
    ) -> bool {
        let Self { radios, senders, access_points, .. } = self;
        let station = if on_air.radio < *access_points { by } else { on_air.radio };
        let mut loss = radios[station].noise.frames(on_air.mode);
        let errors = if on_air.is_answered { on_air.radio } else { by };
        let mut is_any = false;
        for waiting in senders[on_air.sender].queue.iter_mut().filter(|one| one.is_tried).take(on_air.frames) {
            let bytes = waiting.frame.bytes;
            let is_lost = happens(loss.of(bytes), &mut radios[errors].errors);
            // It counts the bytes of all.
            let is_disturbed = is_disturbed(bytes);
            waiting.is_received = !is_lost && !is_disturbed;
            if waiting.is_received {
                is_any = true;
                let place = waiting.made.iter().rposition(|&made| made > 0).expect("it was tried");
                let is_repeated = waiting.sent > 1;
                events.push(Event::Received { at: now, by, place, is_repeated, tag: waiting.frame.tag.clone() });
            }
        }
        is_any
    }

    /// How likely the response to a try is lost.
    fn response_loss(&self, on_air: &OnAir, to: usize) -> Probability {
        let losses = self.noise(on_air.radio, to).control(on_air.mode);
        if on_air.is_aggregate() { losses.block_ack } else { losses.acknowledgement }
    }

    /// What an RTS was for is sent now.
    fn sent_after_cts(&mut self, sender: usize) {
        self.senders[sender].queue.iter_mut().filter(|one| one.is_tried).for_each(|one| one.sent += 1);
    }

    /// The try had no response, or wants none: another one follows, or the frame is given up.
    fn fail(&mut self, now: Time, sender: usize, events: &mut Vec<Event<T>>) {
        if self.settle(now, sender, false, events) {
            self.end_access(sender);
        } else {
            match &mut self.nodes {
                Some(nodes) => nodes.per_node.access.on_failure(sender),
                None => self.contention.on_failure(sender),
            }
        }
    }

    /// The sender is done with what was received of its last try, if there was a response, and with what has no more tries. Returns
    /// whether its first frame is among them.
    fn settle(&mut self, at: Time, sender: usize, is_answered: bool, events: &mut Vec<Event<T>>) -> bool {
        let Sender { queue, tried, .. } = &mut self.senders[sender];
        let (mut place, mut is_first_done) = (0, false);
        while *tried > 0 {
            let waiting = queue.get_mut(place).expect("what is tried waits");
            if !std::mem::take(&mut waiting.is_tried) {
                place += 1;
                continue;
            }
            *tried -= 1;
            let is_acknowledged = std::mem::take(&mut waiting.is_received) && is_answered;
            self.counts.errors += u64::from(is_answered && !is_acknowledged);
            if !is_acknowledged && waiting.is_answered() && (0..MOST_RATES).any(|entry| waiting.has_tries(entry)) {
                place += 1;
                continue;
            }
            is_first_done |= place == 0;
            self.counts.acknowledged += u64::from(is_acknowledged);
            self.counts.given_up += u64::from(!is_acknowledged && waiting.is_answered());
            let Waiting { frame, made, .. } = queue.remove(place).expect("it is there");
            events.push(Event::Done { at, is_acknowledged, made, tag: frame.tag });
        }
        is_first_done
    }

    /// The sender begins a new backoff, with frames or without.
    fn end_access(&mut self, sender: usize) {
        let is_empty = self.senders[sender].queue.is_empty();
        if let Some(nodes) = &mut self.nodes {
            nodes.per_node.access.on_done(sender);
            if is_empty {
                nodes.per_node.access.on_empty(sender);
            }
            return;
        }
        self.contention.on_done(sender);
        if is_empty {
            self.contention.on_empty(sender);
        }
    }

    /// Inter-frame spaces end at `ready`, except for these radios.
    fn resume(&mut self, ready: Time, except: &[(usize, Time)]) {
        self.phase = Phase::Silent;
        let contenders = |&(radio, ready): &(usize, Time)| {
            self.radios[radio].contenders.into_iter().flatten().map(move |sender| (sender, ready))
        };
        let except: Vec<_> = except.iter().flat_map(contenders).collect();
        self.contention.resume(ready, &except);
    }

    /// Between two radios: that of the station, or of the sender if both are.
    fn noise(&self, from: usize, to: usize) -> &Noise {
        &self.radios[if from < self.access_points { to } else { from }].noise
    }

    fn air_use(&self) -> AirUse {
        match self.phase {
            Phase::Silent if self.contention.is_backlogged() => AirUse::Contention,
            Phase::Silent => AirUse::Idle,
            Phase::Response(_) => AirUse::Success,
            Phase::Frames(_) if self.on_air.len() > 1 => AirUse::Collision,
            Phase::Frames(_) if !self.on_air[0].is_answered => AirUse::Broadcast,
            Phase::Frames(_) => AirUse::Success,
        }
    }
}

impl OnAir {
    /// SIFS and its response.
    fn response(&self, mode: &Mode) -> Span {
        match self.is_rts {
            true => mode.cts,
            false if self.is_aggregate() => mode.block_ack,
            false => mode.acknowledgement,
        }
    }

    /// Whether a Block Ack answers it.
    const fn is_aggregate(&self) -> bool {
        self.frames > 1
    }

    /// The waits if it is not received.
    fn unanswered(&self, mode: &Mode) -> Unanswered {
        if self.is_rts { mode.rts_unanswered } else { mode.unanswered }
    }
}

impl<T> Waiting<T> {
    /// Whether its receiver is to acknowledge it.
    fn is_answered(&self) -> bool {
        self.frame.wants_acknowledgement && self.frame.to != Receivers::All
    }

    /// Whether this entry of its series has more tries.
    fn has_tries(&self, place: usize) -> bool {
        self.frame.series[place].is_some_and(|tries| self.made[place] < tries.count)
    }

    /// The entry of its next try.
    fn place(&self) -> usize {
        (0..MOST_RATES).find(|&place| self.has_tries(place)).expect("a frame waits while it has tries")
    }
}
