//! A station or the access point as a sender in an access category: its queue, and the receiver of its next
//! transmission.

use super::direction::{DOWN, Direction, Link, UP};
use super::edca::Category;
use crate::packet::{Destination, NodeId, Packet};
use crate::queue::{AnyQueue, Load, Queue as _};
use lasthop_units::{Bytes, Span, Time};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(super) struct Sender<P> {
    /// The station, or the access point after them.
    pub(super) node: usize,
    pub(super) category: Category,
    /// The longest that it sends after it has won the medium; zero: one PPDU.
    pub(super) txop: Span,
    pub(super) queue: AnyQueue<P>,
    /// Transmissions in a row without a response.
    pub(super) failures: u8,
    /// The next receiver, if already determined: for a repeat, or a Block Ack Request.
    pub(super) next: Option<Link>,
    /// The access point: stations with frames to be repeated.
    unfinished: Vec<usize>,
    /// The access point: stations that are held or were held, and the places of their packets that were put aside.
    aside: Vec<(usize, VecDeque<u64>)>,
    /// Whether to report its departures from the queue.
    pub(super) reports: bool,
}

impl<P> Sender<P> {
    /// A sender with nothing to send.
    pub(super) const fn new(node: usize, category: Category, txop: Span, queue: AnyQueue<P>) -> Self {
        Self {
            node,
            category,
            txop,
            queue,
            failures: 0,
            next: None,
            unfinished: Vec::new(),
            aside: Vec::new(),
            reports: false,
        }
    }

    /// Whether it has nothing to send.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.next.is_none()
    }

    /// Whether the access point has anything for a station that is not held, or for all.
    pub(super) fn has_for_others(&self, is_held: impl Fn(usize) -> bool) -> bool {
        let aside = self.aside.iter().map(|(station, _)| station);
        let other = self.unfinished.iter().chain(aside).any(|station| !is_held(*station));
        other || self.next.is_some() || self.queue.is_ready()
    }

    /// Puts the packets to a station that is held aside. They keep their places, and count as queued.
    pub(super) fn put_aside(&mut self, now: Time, station: usize) {
        let mut places = Aside(VecDeque::new());
        self.queue.claim(now, Some(Destination::Node(NodeId(station as u16))), &mut places);
        if places.0.is_empty() {
            return;
        }
        match self.aside.iter_mut().find(|(of, _)| *of == station) {
            Some((_, before)) => before.append(&mut places.0),
            None => self.aside.push((station, places.0)),
        }
    }

    /// The packets that were put aside.
    pub(super) fn packets_aside(&self) -> usize {
        self.aside.iter().map(|(_, places)| places.len()).sum()
    }

    /// Claims packets to this destination (`None`: any), those put aside first, until one does not fit.
    #[inline]
    pub(super) fn claim(&mut self, now: Time, to: Option<Destination>, load: &mut impl Load<P>) {
        if self.aside.is_empty() || self.claim_aside(to, load) {
            self.queue.claim(now, to, load);
        }
    }

    /// Claims what was put aside. Returns whether more may follow.
    #[cold]
    fn claim_aside(&mut self, to: Option<Destination>, load: &mut impl Load<P>) -> bool {
        let is_meant = |station: usize| to == Some(Destination::Node(NodeId(station as u16)));
        let Some(index) = self.aside.iter().position(|(station, _)| is_meant(*station)) else { return true };
        let places = &mut self.aside[index].1;
        while let Some(&place) = places.front() {
            let packet = self.queue.claimed(place).expect("a packet put aside is in its place");
            if !load.fits(packet.size) {
                return false;
            }
            places.pop_front();
            if !load.add(place, packet) {
                break;
            }
        }
        let is_over = places.is_empty();
        if is_over {
            self.aside.swap_remove(index);
        }
        is_over
    }

    /// The receiver of this sender's next transmission; `None` for a broadcast. For the access point, the receiver of
    /// its oldest packet, queued or to be repeated, that is not held.
    #[inline]
    pub(super) fn next_link(
        &mut self,
        now: Time,
        directions: &[[Direction<P>; 2]],
        is_held: impl Fn(usize) -> bool,
    ) -> Option<Link> {
        let category = self.category;
        if self.node < directions.len() {
            return Some(Link { station: self.node, way: UP, category });
        }
        if self.next.is_some() {
            return self.next;
        }
        let down = |station| Some(Link { station, way: DOWN, category });
        let place = |&station: &usize| {
            (directions[station][DOWN].ends.at(category).and_then(|ends| ends.originator.place()), station)
        };
        let aside = self.aside.iter().map(|(station, places)| (places.front().copied(), *station));
        let oldest = self.unfinished.iter().map(place).chain(aside).filter(|(_, station)| !is_held(*station)).min();
        if let Some((_, station)) = oldest.filter(|_| !self.queue.is_ready()) {
            return down(station);
        }
        let (place, head) = self.queue.head(now);
        match (oldest, head.to) {
            (Some((oldest, station)), _) if oldest < Some(place) => down(station),
            (_, Destination::Node(station)) => down(station.index()),
            (_, Destination::Broadcast) => None,
        }
    }

    /// The access point has nothing for this station any more.
    pub(super) fn forget(&mut self, station: usize) {
        if self.next.is_some_and(|link| link.station == station) {
            (self.next, self.failures) = (None, 0);
        }
        self.unfinished.retain(|&other| other != station);
    }

    /// A transmission on this link is over. `is_repeated`: the next transmission has the same receiver.
    /// `is_unfinished`: frames must be repeated there.
    #[inline]
    pub(super) fn settle(&mut self, link: Link, is_repeated: bool, is_unfinished: bool) {
        self.next = is_repeated.then_some(link);
        if link.way == DOWN {
            self.unfinished.retain(|&station| station != link.station);
            if is_unfinished {
                self.unfinished.push(link.station);
            }
        }
    }
}

/// The places of all packets of a claim.
struct Aside(VecDeque<u64>);

impl<P> Load<P> for Aside {
    fn fits(&self, _: Bytes) -> bool {
        true
    }

    fn add(&mut self, place: u64, _: &Packet<P>) -> bool {
        self.0.push_back(place);
        true
    }
}
