//! Stations that are held for a while: away on another channel, asleep, on the way to another access point.
//!
//! 1. Nothing begins that goes to the station or comes from it. What is on the air ends as it began.
//! 2. The station's own packets wait in its queue. Those to it wait in the access point's, where they keep their places
//!    and count; packets to others pass them.
//! 3. Frames to be repeated wait as well, and their receivers for them: the deadlines of frames behind a gap stand still.
//! 4. When the hold ends, both go on with the oldest.
//!
//! Broadcasts reach the station all the same, as in 802.11 they are sent when all are awake.
//!
//! What can be sent is held against what contends whenever either may have changed. Without holds that costs a look at one
//! number.

use super::{Medium, Phase};
use crate::queue::Queue as _;
use crate::statistics::Way;
use crate::wifi::direction::{DOWN, Link};
use crate::wifi::edca::Category;
use lasthop_units::Time;

/// The stations that are held.
#[derive(Clone, Debug)]
pub(super) struct Holds {
    /// By station: since when.
    since: Vec<Option<Time>>,
    count: usize,
}

impl Holds {
    pub(super) fn new(stations: usize) -> Self {
        Self { since: vec![None; stations], count: 0 }
    }

    #[inline]
    pub(super) const fn any(&self) -> bool {
        self.count > 0
    }

    #[inline]
    pub(super) fn has(&self, station: usize) -> bool {
        self.any() && self.since[station].is_some()
    }

    pub(super) fn begin(&mut self, now: Time, station: usize) {
        self.since[station] = Some(now);
        self.count += 1;
    }

    /// Since when it was held.
    pub(super) fn end(&mut self, station: usize) -> Option<Time> {
        let since = self.since[station].take()?;
        self.count -= 1;
        Some(since)
    }

    fn stations(&self) -> impl Iterator<Item = usize> + '_ {
        self.since.iter().enumerate().filter(|(_, since)| since.is_some()).map(|(station, _)| station)
    }
}

impl<P: Clone> Medium<P> {
    /// Holds a station.
    pub(crate) fn hold(&mut self, now: Time, station: usize) {
        if self.holds.has(station) {
            return;
        }
        self.holds.begin(now, station);
        for sender in self.access_point_senders() {
            let sender = &mut self.senders[sender];
            sender.queue.hold(now, station, true);
            if sender.next.is_some_and(|link| link.station == station) {
                (sender.next, sender.failures) = (None, 0);
            }
        }
        self.watch_deadlines_of(now, station);
        self.heed_holds(now);
    }

    /// A station that is held goes on.
    pub(crate) fn go_on(&mut self, now: Time, station: usize) {
        let Some(since) = self.holds.end(station) else { return };
        for link in self.links_of(station) {
            let ends = self.directions[station][link.way].ends.at_mut(link.category);
            ends.recipient.wait_longer(now - since);
        }
        self.watch_deadlines_of(now, station);
        for sender in self.access_point_senders() {
            let link = Link { station, way: DOWN, category: self.senders[sender].category };
            let ends = self.directions[station][DOWN].ends.at(link.category);
            let request_due = ends.is_some_and(|ends| ends.originator.is_request_due());
            let sender = &mut self.senders[sender];
            sender.queue.hold(now, station, false);
            if request_due && sender.next.is_none() {
                sender.next = Some(link);
            }
        }
        self.heed_holds(now);
    }

    /// What goes next on the air from this sender; `None` for a broadcast.
    #[inline]
    pub(super) fn next_link(&mut self, now: Time, sender: usize) -> Option<Link> {
        let Self { senders, directions, holds, .. } = self;
        senders[sender].next_link(now, directions, |station| holds.has(station))
    }

    /// Whether the sender has something that it may send.
    #[inline]
    pub(super) fn can_send(&self, sender: usize) -> bool {
        let sender = &self.senders[sender];
        if !self.holds.any() {
            return !sender.is_idle();
        }
        match sender.node < self.directions.len() {
            true => !sender.is_idle() && !self.holds.has(sender.node),
            false => sender.has_for_others(|station| self.holds.has(station)),
        }
    }

    /// Those contend that can send, and no others.
    pub(super) fn heed_holds(&mut self, now: Time) {
        for sender in 0..self.senders.len() {
            self.heed_holds_of(now, sender);
        }
    }

    /// The same of one sender.
    pub(super) fn heed_holds_of(&mut self, now: Time, sender: usize) {
        self.put_aside(now, sender);
        let contends = match &self.per_node {
            None => self.contention.has_frame(sender),
            Some(per_node) => per_node.access.has_frame(sender),
        };
        match (self.can_send(sender), contends) {
            (true, false) => self.contend(now, sender),
            (false, true) if !self.is_on_air(sender) => {
                if let Some(per_node) = &mut self.per_node {
                    per_node.book(now, self.senders[sender].node);
                    return per_node.access.withdraw(sender);
                }
                if self.phase == Phase::Silent {
                    self.air.book(now, self.air_use());
                }
                self.contention.withdraw(sender);
            }
            _ => {}
        }
    }

    /// Of the access point's senders: packets to held stations make room for others. None wait for those that roam.
    pub(super) fn put_aside(&mut self, now: Time, sender: usize) {
        if self.per_node.is_none() && self.senders[sender].node >= self.directions.len() {
            self.holds.stations().for_each(|station| self.senders[sender].put_aside(now, station));
        }
    }

    fn is_on_air(&self, sender: usize) -> bool {
        if let Some(per_node) = &self.per_node {
            return per_node.exchange_of(self.senders[sender].node).is_some_and(|frame| frame.sender == sender);
        }
        self.phase != Phase::Silent && self.on_air.iter().any(|frame| frame.sender == sender)
    }

    fn access_point_senders(&self) -> Vec<usize> {
        self.senders_of(self.directions.len()).collect()
    }

    /// The links of a station that have been used.
    pub(super) fn links_of(&self, station: usize) -> Vec<Link> {
        let all =
            Category::BY_PLACE.into_iter().flat_map(|category| Way::BOTH.map(|way| Link { station, way, category }));
        all.filter(|link| self.directions[station][link.way].ends.at(link.category).is_some()).collect()
    }

    pub(super) fn watch_deadlines_of(&mut self, now: Time, station: usize) {
        self.links_of(station).into_iter().for_each(|link| self.watch_deadline(now, link));
    }
}
