//! Radios each of which hears for itself: the exchange of `medium::per_node`, of frames that bring their rates with them.

use super::{Air, DELIMITER, Event, Nodes, OnAir, Receivers, Sender};
use crate::config::{Cells, HearingLevel};
use crate::random::happens;
use crate::wifi::constants::{PhyRate, Standard};
use crate::wifi::medium::{Due, Kind, PerNode, Signal, Transmission};
use crate::wifi::originator::Content;
use lasthop_units::{Bytes, Span, Time};
use std::collections::VecDeque;

impl<T: Clone> Air<T> {
    /// From now on radios hear each other as `cells` says. There are no radios yet.
    pub(super) fn hear_each_for_itself(&mut self, cells: &Cells) {
        let (stations, nodes) = (cells.of_host.len(), cells.nodes());
        let radio = |node: usize| if node < stations { cells.access_points + node } else { node - stations };
        let contender = |node: usize| {
            let stream = format!("radios/{}/backoff/{}/dcf", self.frequency_mhz, radio(node));
            let standard =
                self.hosts.get(node).map_or(self.config.standard, |host| self.config.of_station(host).standard);
            (standard.window(PhyRate::Mbps54), self.streams.stream(&stream))
        };
        let more_slots = vec![Standard::G.space_slots() as i8 - self.common_aifsn; nodes];
        let per_node = PerNode::new(cells, &self.times.cell, (0..nodes).map(contender).collect(), more_slots);
        let sender =
            |node| Sender { radio: radio(node), category: None, txop: Span::ZERO, queue: VecDeque::new(), tried: 0 };
        self.senders = (0..nodes).map(sender).collect();
        self.nodes = Some(Box::new(Nodes { per_node, cells: cells.clone(), tries: vec![None; nodes] }));
    }

    /// The node of a radio; `None`: all hear all.
    pub(super) fn node_of(&self, radio: usize) -> Option<usize> {
        let stations = self.nodes.as_ref()?.cells.of_host.len();
        Some(radio.checked_sub(self.access_points).unwrap_or(stations + radio))
    }

    /// The radio of a node.
    fn radio_of(&self, node: usize) -> usize {
        self.senders[node].radio
    }

    /// The sender has a frame from now on.
    pub(super) fn contend_by_node(&mut self, now: Time, sender: usize) {
        let node = self.node_of(self.senders[sender].radio).expect("radios are nodes");
        let PerNode { access, .. } = self.booked(now, node);
        access.on_frame(now, sender, false);
    }

    /// Lets the next event happen.
    pub(super) fn step_by_node(&mut self, now: Time, events: &mut Vec<Event<T>>) {
        match self.per_node().due(now) {
            Due::Timers => {
                let Self { nodes, senders, .. } = self;
                let per_node = &mut nodes.as_mut().expect("radios are nodes").per_node;
                let sender = per_node.take_due(now, |sender| senders[sender].category);
                let Sender { txop, .. } = self.senders[sender];
                let on_air = self.next_try(sender, now, if txop.is_zero() { Time::ZERO } else { now + txop }, true);
                let frame = self.transmission(&on_air);
                self.send(now, frame, true);
            }
            Due::Sent(place) => self.on_sent(now, place, events),
            Due::Response(node, frame) => {
                let Self { nodes, times, .. } = self;
                nodes.as_mut().expect("radios are nodes").per_node.respond(now, node, frame, times);
            }
            Due::Frame(frame, is_new) => self.send(now, frame, is_new),
            Due::Timeout(node) => {
                let sender = self.booked(now, node).exchange(node).sender;
                self.fail(now, sender, events);
                let space = self.times.cell.space;
                self.per_node().listen(now, node, space);
            }
        }
        let per_node = self.per_node();
        per_node.access.find_next();
        self.counts.collisions = per_node.collisions();
    }

    fn per_node(&mut self) -> &mut PerNode {
        &mut self.nodes.as_mut().expect("radios are nodes").per_node
    }

    /// The same, with the use of the air until now booked.
    fn booked(&mut self, now: Time, node: usize) -> &mut PerNode {
        let per_node = self.per_node();
        per_node.book(now, node);
        per_node
    }

    /// A try as the nodes know it, which they keep.
    fn transmission(&mut self, on_air: &OnAir) -> Transmission {
        let OnAir { sender, radio, mode, frames, bytes, is_rts, end, txop_end, .. } = *on_air;
        let times = self.times.mode(mode);
        let duration = if is_rts { times.ppdu_after_cts(bytes) } else { times.ppdu(bytes) };
        let node = self.node_of(radio).expect("radios are nodes");
        self.nodes.as_mut().expect("radios are nodes").tries[sender] = Some(*on_air);
        let content = Content { frames, mpdus: frames, bytes, ..Content::default() };
        Transmission { sender, node, mode, link: None, content, duration, is_rts, end, txop_end }
    }

    /// The last try of a sender.
    fn tried(&self, sender: usize) -> OnAir {
        let nodes = self.nodes.as_ref().expect("radios are nodes");
        nodes.tries[sender].expect("what is on the air was tried")
    }

    /// The node that is to receive a try: `None` if it is for all, or if its receiver does not hear it.
    fn receiver_node(&self, on_air: &OnAir) -> Option<usize> {
        let Receivers::One(to) = on_air.to else { return None };
        let (from, to) = (self.node_of(on_air.radio)?, self.node_of(to)?);
        let cells = &self.nodes.as_ref()?.cells;
        (cells.hearing(from, to).level == HearingLevel::Hears).then_some(to)
    }

    /// The last node that hears this one: for stations, an access point.
    fn last_hearer(&self, node: usize) -> Option<usize> {
        let cells = &self.nodes.as_ref()?.cells;
        let hears = |&to: &usize| to != node && cells.hearing(node, to).level == HearingLevel::Hears;
        (0..cells.nodes()).rev().find(hears)
    }

    fn send(&mut self, now: Time, frame: Transmission, is_new: bool) {
        let on_air = self.tried(frame.sender);
        let (to, is_answered) = (self.receiver_node(&on_air), on_air.is_answered);
        let Self { nodes, times, .. } = self;
        nodes.as_mut().expect("radios are nodes").per_node.send_frame(now, frame, (to, is_answered), times, is_new);
    }

    /// A transmission is over.
    fn on_sent(&mut self, now: Time, place: usize, events: &mut Vec<Event<T>>) {
        let Self { nodes, times, rules, .. } = self;
        let per_node = &mut nodes.as_mut().expect("radios are nodes").per_node;
        let (signal, eifs) = per_node.take_off(now, place, times, *rules);
        let on_air = self.tried(signal.frame.sender);
        match (signal.kind, signal.to) {
            (Kind::Response, _) => return self.on_response_sent(now, &signal, &on_air, eifs, events),
            (Kind::Frame, Some(to)) => {
                let disturbed = self.per_node().take_disturbed(place);
                let is_received = self.is_received(now, (&signal, &disturbed), &on_air, to, events);
                let frames = on_air.frames as u64;
                self.counts.collided += if signal.is_lost { frames } else { 0 };
                self.counts.errors += if signal.is_lost || is_received { 0 } else { frames };
                let sifs = self.times.cell.sifs;
                let per_node = self.per_node();
                if !is_received && !signal.is_lost {
                    per_node.fall_silent(now, to, eifs);
                }
                let is_answered = is_received && on_air.is_answered && per_node.answer(now, to, signal.frame, sifs);
                if !is_answered {
                    per_node.close(now, &signal, !signal.is_lost && !is_received);
                }
            }
            (Kind::Frame, None) => {
                let decoded = std::mem::take(self.per_node().decoded());
                for &node in decoded.iter().filter(|_| on_air.to == Receivers::All) {
                    let radio = self.radio_of(node);
                    if radio < self.radios.len() && !self.receive(now, &on_air, radio, |_| false, events) {
                        self.per_node().fall_silent(now, node, eifs);
                    }
                }
                self.counts.errors += if on_air.is_answered { on_air.frames as u64 } else { 0 };
                if on_air.to == Receivers::All
                    && decoded.is_empty()
                    && let Some(hearer) = self.last_hearer(signal.frame.node)
                {
                    self.counts.collided += on_air.frames as u64;
                    let mut lost = signal;
                    lost.to = Some(hearer);
                    self.per_node().count_collision(&lost);
                }
                let per_node = self.per_node();
                *per_node.decoded() = decoded;
                per_node.close(now, &signal, false);
            }
        }
        let node = signal.frame.node;
        if on_air.is_answered {
            let timeout = on_air.unanswered(self.times.mode(on_air.mode)).timeout;
            self.per_node().wait(node, now + timeout);
        } else {
            self.fail(now, signal.frame.sender, events);
            let space = self.times.cell.space;
            self.per_node().listen(now, node, space);
        }
    }

    /// Whether a frame, or an RTS, to this node is received there, and may be answered.
    fn is_received(
        &mut self,
        now: Time,
        (signal, disturbed): (&Signal, &[(Time, Time)]),
        on_air: &OnAir,
        to: usize,
        events: &mut Vec<Event<T>>,
    ) -> bool {
        let radio = self.radio_of(to);
        if signal.is_lost || radio >= self.radios.len() {
            return false;
        }
        if !on_air.is_rts {
            let mode = *self.times.mode(on_air.mode);
            let mut next = 0;
            let is_disturbed = |bytes: u64| {
                let at = |offset| signal.mpdus_from + mode.rate.transmission_time(Bytes::new(offset));
                let (first, end) = (next, next + bytes + DELIMITER);
                next = mode.next_start(first, end);
                disturbed.iter().any(|&(from, until)| from < at(end) && at(first) < until)
            };
            return self.receive(now, on_air, radio, is_disturbed, events);
        }
        let loss = self.noise(on_air.radio, radio).control(on_air.mode).rts;
        !happens(loss, &mut self.radios[on_air.radio].errors) && !self.per_node().is_reserved(now, to)
    }

    fn on_response_sent(&mut self, now: Time, signal: &Signal, on_air: &OnAir, eifs: Span, events: &mut Vec<Event<T>>) {
        let frame = signal.frame;
        let (space, sifs) = (self.times.cell.space, self.times.cell.sifs);
        let Receivers::One(to) = on_air.to else { unreachable!("only one radio answers") };
        let is_received = !signal.is_lost && !happens(self.response_loss(on_air, to), &mut self.radios[to].errors);
        let responder = self.node_of(to).expect("radios are nodes");
        self.per_node().listen(now, responder, space);
        if !is_received {
            self.counts.errors += on_air.frames as u64;
            self.per_node().close(now, signal, !signal.is_lost);
            self.fail(now, frame.sender, events);
            self.per_node().listen(now, frame.node, eifs);
        } else if on_air.is_rts {
            let start = now + sifs;
            let on_air = OnAir { is_rts: false, end: start + frame.duration, ..*on_air };
            self.sent_after_cts(frame.sender);
            let data = Transmission { duration: frame.duration, ..self.transmission(&on_air) };
            let per_node = self.per_node();
            per_node.access.stop(frame.node, now);
            per_node.go_on(start, data, false);
        } else {
            self.per_node().close(now, signal, false);
            self.settle(now, frame.sender, true, events);
            if let Some(next) = self.next_in_txop(now, on_air) {
                let next = self.transmission(&next);
                let per_node = self.per_node();
                per_node.access.on_answered(frame.sender);
                per_node.go_on(now + sifs, next, true);
            } else {
                self.end_access(frame.sender);
                self.per_node().listen(now, frame.node, space);
            }
        }
    }
}
