//! The medium where not all hear all, or with several access points: carrier sense, reservation, backoff and reception at
//! each node for itself.
//!
//! 1. A transmission reaches each node as [`HearingLevel`] says. Who senses it is busy from aCCATime after its start to its
//!    end. Who begins before that sends as well.
//! 2. A node receives one transmission at a time: the first one of those that it hears. It is lost there if others that it is
//!    disturbed by come too near: their powers together, and `capture_db`, exceed its own. One that exceeds all others by
//!    that is received even if it began later. Who sends receives nothing. Of an A-MPDU only the MPDUs are lost that others
//!    overlap, if its preamble was received.
//! 3. Who has received a frame for somebody else waits for the exchange that its duration field announces (NAV), and
//!    the inter-frame space. Who has sensed what it could not receive waits EIFS, or the space ([`WifiRules`]).
//! 4. An RTS reserves until its data would be sensed, and so does no harm if there is no CTS (§10.3.2.4). A CTS reserves up
//!    to the response. A node with a reservation of somebody else answers no RTS.
//! 5. The receiver of data responds after SIFS, whatever it senses. Without a response the sender goes on ACKTimeout after
//!    its frame, with the next backoff.
//! 6. The timers are `timers`; contents, errors, repeats, broadcasts and TXOPs are as in [`super`].
//!
//! ```text
//!                 a timer ends                   SIFS                       SIFS
//!    [listening] -------------> [sends a frame] ------> [waits] <-response- [answers] <- [received it]
//!         ^                            | broadcast         |  ACKTimeout, or the response is over
//!         +----------------------------+-------------------+
//! ```
//!
//! Leaves out: delays of propagation, fading, stations that the access point does not hear, the reservation of a CTS-to-self
//! by itself. A response to a node that waits for another one comes too late, and is none.
//!
//! References: 802.11-2020 §10.3.2.1 (carrier sense), §10.3.2.4 (NAV), §10.3.2.9 (CTS), §10.3.2.11 (ACKTimeout), §10.3.2.3.7
//! (EIFS), §17.3.12 (receiver). L. Kleinrock, F. A. Tobagi: Packet switching in radio channels, part II: the hidden
//! terminal problem, IEEE Trans. Commun. 23(12), 1975.
//!
//! [`WifiRules`]: crate::WifiRules

mod air;
pub(super) mod exchange;
mod parts;
mod timers;

use super::super::cell::Cell;
use super::super::constants::ContentionWindow;
use super::Transmission;
use crate::config::{Cells, Hearing, HearingLevel};
use crate::schedule::Schedule;
use air::Air;
use lasthop_units::{Span, Time};
pub(in crate::wifi) use parts::Due;
use rand_chacha::ChaCha8Rng;
use timers::Timers;

/// The state of all nodes.
#[derive(Clone, Debug)]
pub(in crate::wifi) struct PerNode {
    pub(in crate::wifi) access: Timers,
    nodes: Vec<Node>,
    /// By node, that is sender: whom it reaches.
    reached: Vec<Vec<Reached>>,
    /// By sender and receiver, in mW.
    powers: Vec<f64>,
    /// By which factor a frame must exceed the others.
    capture: f64,
    /// Those on the air; places of others are free.
    on_air: Vec<Option<Signal>>,
    /// By the same places: when others disturb the MPDUs of an A-MPDU at its receiver.
    disturbed: Vec<Vec<(Time, Time)>>,
    /// When each node's part in an exchange goes on.
    schedule: Schedule,
    sensing: Span,
    space: Span,
    air: Air,
    /// Reused.
    due: Vec<usize>,
    decoded: Vec<usize>,
}

/// Whom a sender reaches.
#[derive(Clone, Copy, Debug)]
struct Reached {
    node: u32,
    level: HearingLevel,
}

#[derive(Clone, Debug)]
struct Node {
    part: Part,
    /// The exchange that it has begun.
    frame: Option<Transmission>,
    /// Transmissions that it senses.
    sensed: u16,
    /// The place of the transmission that it receives.
    receives: Option<usize>,
    /// Others are announced until then.
    reserved_until: Time,
    /// The end of the last collision here.
    collided_until: Time,
}

/// What a node does.
#[derive(Clone, Copy, Debug)]
enum Part {
    Listening,
    /// It sends what is at this place.
    Sending(usize),
    /// It responds next, to this transmission.
    Responding(Transmission),
    /// It goes on with its exchange next. `is_new`: with another one of its TXOP.
    Continuing {
        is_new: bool,
    },
    /// For a response, or for ACKTimeout.
    Waiting,
}

/// A transmission on the air.
#[derive(Clone, Copy, Debug)]
pub(in crate::wifi) struct Signal {
    node: usize,
    /// `None`: all stations of the cell.
    pub(in crate::wifi) to: Option<usize>,
    pub(in crate::wifi) kind: Kind,
    /// It begins an exchange.
    is_new: bool,
    start: Time,
    end: Time,
    /// What its duration field announces.
    reserves_until: Time,
    /// Lost at its receiver.
    pub(in crate::wifi) is_lost: bool,
    /// The start of the MPDUs of an A-MPDU; else its end.
    pub(in crate::wifi) mpdus_from: Time,
    /// The exchange around it.
    pub(in crate::wifi) frame: Transmission,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::wifi) enum Kind {
    /// Data, or an RTS.
    Frame,
    /// To one of these.
    Response,
}

impl Node {
    /// It counts from `ready` on, or from the common space after a reservation, if it listens and senses nothing.
    #[inline(always)]
    fn fall_silent(&self, number: usize, ready: Time, space: Span, access: &mut Timers) {
        if self.sensed == 0 && matches!(self.part, Part::Listening) {
            access.resume(number, ready.max(self.reserved_until + space), self.reserved_until);
        }
    }
}

impl PerNode {
    /// Nodes that have been silent for long. `more_slots`: of stations with an AIFSN of their own.
    pub(in crate::wifi) fn new(
        cells: &Cells,
        times: &Cell,
        contenders: Vec<(ContentionWindow, ChaCha8Rng)>,
        more_slots: Vec<i8>,
    ) -> Self {
        let nodes = cells.nodes();
        let others = |from: usize| (0..nodes).filter(move |&to| to != from);
        let reached = |from: usize| {
            let all = others(from).map(|to| Reached { node: to as u32, level: cells.hearing(from, to).level });
            all.filter(|reached| reached.level > HearingLevel::Misses).collect()
        };
        let node = Node {
            part: Part::Listening,
            frame: None,
            sensed: 0,
            receives: None,
            reserved_until: Time::ZERO,
            collided_until: Time::ZERO,
        };
        Self {
            access: Timers::new(times.slot, cells, contenders, more_slots),
            nodes: vec![node; nodes],
            reached: (0..nodes).map(reached).collect(),
            powers: cells.hearing.iter().copied().map(power).collect(),
            capture: from_db(cells.capture_db),
            on_air: Vec::new(),
            disturbed: Vec::new(),
            schedule: Schedule::new(nodes),
            sensing: times.sensing,
            space: times.space,
            air: Air::new(cells),
            due: Vec::new(),
            decoded: Vec::new(),
        }
    }

    /// The data and the RTSs on the air.
    pub(super) fn frames(&self) -> impl Iterator<Item = &Transmission> {
        let frames = self.on_air.iter().flatten().filter(|signal| signal.kind == Kind::Frame);
        frames.map(|signal| &signal.frame)
    }

    /// When something happens next.
    pub(in crate::wifi) fn next(&self) -> Time {
        self.access.next().min(self.schedule.first_at())
    }

    /// A node's part goes on at this time.
    fn set(&mut self, node: usize, part: Part, at: Time) {
        self.nodes[node].part = part;
        self.schedule.set(node, at);
    }

    /// The node's part is over. It counts from here on, if it senses nothing.
    pub(in crate::wifi) fn listen(&mut self, now: Time, node: usize, space: Span) {
        self.set(node, Part::Listening, Time::MAX);
        self.fall_silent(now, node, space);
    }

    /// The node counts from here on, if it listens and senses nothing.
    pub(in crate::wifi) fn fall_silent(&mut self, now: Time, number: usize, space: Span) {
        self.nodes[number].fall_silent(number, now + space, self.space, &mut self.access);
    }

    /// The exchange that the node has begun, until it is over.
    pub(super) fn exchange_of(&self, node: usize) -> Option<&Transmission> {
        let Node { part, frame, .. } = &self.nodes[node];
        let is_on = match *part {
            Part::Sending(place) => self.on_air[place].is_some_and(|signal| signal.kind == Kind::Frame),
            Part::Continuing { .. } | Part::Waiting => true,
            Part::Listening | Part::Responding(_) => false,
        };
        frame.as_ref().filter(|_| is_on)
    }

    /// Books the use of the air: a sender of this node is about to have frames, or none.
    pub(in crate::wifi) fn book(&mut self, now: Time, node: usize) {
        self.air.book(now, node, &self.access);
    }

    /// The station, which has no part in an exchange and does not contend, is of this cell, and all reach it and it reaches all as
    /// `cells` says, from now on. Of what is on the air it receives nothing.
    pub(super) fn move_station(&mut self, now: Time, station: usize, cell: u16, cells: &Cells) {
        let nodes = self.nodes.len();
        assert!(
            matches!(self.nodes[station].part, Part::Listening),
            "a station that is away has no part in an exchange"
        );
        self.nodes[station].receives = None;
        self.nodes[station].reserved_until = Time::ZERO;
        self.air.move_station(station, cell);
        self.access.move_station(station, cell);
        for other in (0..nodes).filter(|&other| other != station) {
            for (from, to) in [(station, other), (other, station)] {
                let hearing = cells.hearing(from, to);
                self.powers[from * nodes + to] = power(hearing);
                let reached = &mut self.reached[from];
                reached.retain(|reached| reached.node as usize != to);
                if hearing.level > HearingLevel::Misses {
                    let place = reached.partition_point(|reached| (reached.node as usize) < to);
                    reached.insert(place, Reached { node: to as u32, level: hearing.level });
                }
            }
        }
        let is_sensed = |signal: &&Signal| cells.hearing(signal.node, station).level >= HearingLevel::Senses;
        self.nodes[station].sensed = self.on_air.iter().flatten().filter(is_sensed).count() as u16;
        self.access.freeze(station, now + self.sensing);
        self.fall_silent(now, station, self.space);
        self.access.find_next();
    }

    /// Puts a transmission on the air.
    fn start(&mut self, now: Time, signal: Signal) {
        let place = self.on_air.iter().position(Option::is_none).unwrap_or(self.on_air.len());
        let is_alone = self.on_air.iter().all(Option::is_none);
        self.air.begin(now, &signal, &self.access);
        if place == self.on_air.len() {
            self.on_air.push(None);
            self.disturbed.push(Vec::new());
        }
        self.disturbed[place].clear();
        self.on_air[place] = Some(signal);
        let from = signal.node;
        self.access.stop(from, now);
        self.give_up(now, from);
        self.nodes[from].receives = None;
        self.set(from, Part::Sending(place), signal.end);
        let sensed = now + self.sensing;
        self.air.sense(now, from, &self.reached[from], true);
        if is_alone {
            // Nobody else sends, or has anything else to receive.
            let Self { nodes, reached, access, .. } = self;
            for &Reached { node: to, level } in &reached[from] {
                let to = to as usize;
                let node = &mut nodes[to];
                node.receives = (level == HearingLevel::Hears).then_some(place);
                if level >= HearingLevel::Senses {
                    node.sensed += 1;
                    access.freeze(to, sensed);
                }
            }
        }
        for number in 0..if is_alone { 0 } else { self.reached[from].len() } {
            let Reached { node: to, level } = self.reached[from][number];
            let to = to as usize;
            if level >= HearingLevel::Senses {
                self.nodes[to].sensed += 1;
                self.access.freeze(to, sensed);
            }
            if matches!(self.nodes[to].part, Part::Sending(_)) {
                continue;
            }
            match self.nodes[to].receives {
                Some(before) if self.exceeds_others(before, to) => {}
                Some(before) if self.goes_on(now, before, to) && !self.exceeds_others(place, to) => {
                    self.disturbed[before].push((now, signal.end));
                }
                _ => {
                    self.give_up(now, to);
                    let is_received = level == HearingLevel::Hears && self.exceeds_others(place, to);
                    self.nodes[to].receives = is_received.then_some(place);
                }
            }
        }
        if let Some(to) = signal.to {
            if self.nodes[to].receives != Some(place) {
                self.lose(now, place);
            }
            if signal.kind == Kind::Response {
                // It has begun, and who waits for it waits for its end.
                self.schedule.set(to, Time::MAX);
            }
        }
    }

    /// Whether the node receives MPDUs of the transmission at this place although others overlap it from now on.
    fn goes_on(&self, now: Time, place: usize, at: usize) -> bool {
        self.on_air[place].is_some_and(|signal| signal.to == Some(at) && now >= signal.mpdus_from && now < signal.end)
    }

    /// The node receives no more what it has begun to.
    fn give_up(&mut self, now: Time, node: usize) {
        if let Some(place) = self.nodes[node].receives.take()
            && self.on_air[place].is_some_and(|signal| signal.to == Some(node))
        {
            self.lose(now, place);
        }
    }

    /// The transmission is lost at its receiver.
    fn lose(&mut self, now: Time, place: usize) {
        if let Some(signal) = &mut self.on_air[place]
            && !signal.is_lost
        {
            signal.is_lost = true;
            let signal = *signal;
            self.air.lose(now, &signal, &self.access);
        }
    }

    /// Whether what is at this place is received at the node despite all else on the air.
    fn exceeds_others(&self, place: usize, at: usize) -> bool {
        let power = |signal: &Signal| self.powers[signal.node * self.nodes.len() + at];
        let others = self.on_air.iter().enumerate().filter(|(other, _)| *other != place);
        let others: f64 = others.filter_map(|(_, signal)| signal.as_ref()).map(power).sum();
        self.on_air[place].as_ref().is_some_and(|signal| power(signal) >= others * self.capture)
    }

    /// Takes a transmission off the air. Lists who has received it, if it is to all.
    fn end(&mut self, now: Time, place: usize, eifs: Span) -> Signal {
        let signal = self.on_air[place].take().expect("what ends is on the air");
        self.air.sense(now, signal.node, &self.reached[signal.node], false);
        let Self { nodes, reached, access, decoded, space, .. } = self;
        let (ready, ready_of_others) = (now + *space, now + eifs);
        decoded.clear();
        for &Reached { node: to, level } in &reached[signal.node] {
            let to = to as usize;
            let node = &mut nodes[to];
            let is_received = node.receives == Some(place);
            if is_received {
                node.receives = None;
                if signal.to.is_none() {
                    decoded.push(to);
                }
                if signal.to != Some(to) {
                    node.reserved_until = node.reserved_until.max(signal.reserves_until);
                }
            }
            if level >= HearingLevel::Senses {
                node.sensed -= 1;
                node.fall_silent(to, if is_received { ready } else { ready_of_others }, *space, access);
            }
        }
        self.air.end(now, &signal, &self.access);
        signal
    }
}

/// In mW; nothing where it misses all.
fn power(hearing: Hearing) -> f64 {
    if hearing.level == HearingLevel::Misses { 0.0 } else { from_db(hearing.dbm) }
}

/// The factor of so many dB.
fn from_db(db: f64) -> f64 {
    libm::pow(10.0, db / 10.0)
}
