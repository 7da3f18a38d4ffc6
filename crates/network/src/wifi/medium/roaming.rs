//! Stations that go from one access point to another, where each node hears for itself.
//!
//! ```text
//!    [associated] -- leaves --> [an exchange ends] --> [away] -- outage is over --> [associated with another]
//! ```
//!
//! 1. Once it has left, nothing begins that goes to the station or comes from it (`held`). An exchange on the air ends as it began.
//! 2. What waits for it at the old access point is lost there, and so is what comes there during the outage. Broadcasts do not
//!    reach it.
//! 3. Its own packets wait in its queue. What the old access point holds behind a gap goes on at its deadline.
//! 4. The new association begins with nothing received, the first sequence numbers, a fresh rate control and the least contention
//!    window. Frames that the old access point has received without an acknowledgement that arrived are done. What either end
//!    still holds behind a gap is lost. The others of the station's frames have all their transmissions before them.
//! 5. From then on it hears, and is heard, as in its new place and on its new channel. What is on the air there it only senses.
//!
//! Leaves out: the frames of scanning, authentication and association themselves, which the outage stands for; an old access point
//! that does not know yet, and sends in vain; a new one that fetches what the old one has.
//!
//! References: A. Mishra, M. Shin, W. Arbaugh: An empirical analysis of the IEEE 802.11 MAC layer handoff process, ACM CCR
//! 33(2), 2003; 802.11-2020 §11.3 (association); Linux, net/mac80211/agg-rx.c and agg-tx.c (what ends with it), read for the
//! facts, not copied.

use super::Medium;
use super::per_node::exchange::by_node;
use crate::config::Cells;
use crate::packet::{Departure, Destination, NodeId, Packet};
use crate::queue::Queue as _;
use crate::statistics::Cause;
use crate::wifi::direction::{DOWN, Ends, Link};
use crate::wifi::recipient::Recipient;
use lasthop_units::Time;

impl<P: Clone> Medium<P> {
    /// Whether the station has left an access point, and is not associated with another one yet.
    #[inline]
    pub(super) fn is_away(&self, station: usize) -> bool {
        self.holds.any() && self.per_node.is_some() && self.holds.has(station)
    }

    /// The station leaves its access point.
    pub(crate) fn leave(&mut self, now: Time, station: usize) {
        self.holds.begin(now, station);
        let access_point = self.access_points[station];
        for sender in self.senders_of(access_point).collect::<Vec<_>>() {
            let queue = &mut self.senders[sender].queue;
            for packet in queue.remove_to(now, Destination::Node(NodeId(station as u16))) {
                queue.desk_mut().lost(now, Cause::LeftBehind, &packet, None);
            }
        }
        for link in self.links_of(station).into_iter().filter(|link| link.way == DOWN) {
            let Some(sender) = self.known_sender(access_point, link.category) else { continue };
            let exchange = by_node(&mut self.per_node).exchange_of(access_point);
            let is_on_air = exchange
                .filter(|frame| frame.sender == sender)
                .and_then(|frame| frame.link)
                .is_some_and(|on_air| on_air.station == station);
            if !is_on_air {
                self.leave_behind(now, link);
            }
        }
        self.measure(now, access_point);
        self.watch_deadlines_of(now, station);
        self.heed_holds(now);
    }

    /// The frames of this link from the access point to a station that has left are lost.
    pub(super) fn leave_behind(&mut self, now: Time, link: Link) {
        let Some(place) = self.known_sender(self.access_points[link.station], link.category) else { return };
        let frames = self.directions[link.station][DOWN].ends.at_mut(link.category).originator.give_up_all();
        let sender = &mut self.senders[place];
        for frame in &frames {
            if !frame.is_received {
                let packet = sender.queue.take(frame.place);
                sender.queue.desk_mut().lost(now, Cause::LeftBehind, &packet, None);
            }
            if let Some(watch) = &mut self.air_tap.0 {
                watch.forget(place, frame.place);
            }
        }
        sender.queue.release(now, link.node(), frames.len());
        sender.forget(link.station);
        let node = sender.node;
        self.measure(now, node);
    }

    /// A packet to a station that is away comes to its old access point.
    #[cold]
    pub(super) fn turn_away(&mut self, now: Time, access_point: usize, packet: Packet<P>) -> Result<(), Packet<P>> {
        self.senders[access_point].queue.desk_mut().lost(now, Cause::LeftBehind, &packet, None);
        Err(packet)
    }

    /// The station is associated with the access point of this number, among nodes that hear each other like this. Its frames that
    /// are done join `departed`.
    pub(crate) fn associate(
        &mut self,
        now: Time,
        station: usize,
        number: u16,
        cells: &Cells,
        departed: &mut Vec<Departure>,
    ) {
        for link in self.links_of(station) {
            self.end_association(now, link, departed);
        }
        let mode = self.controllers.mode(station, &self.times, &self.noises[station]);
        self.directions[station].iter_mut().for_each(|direction| direction.new_mode = Some(mode));
        self.access_points[station] = self.directions.len() + usize::from(number);
        by_node(&mut self.per_node).move_station(now, station, number, cells);
        self.holds.end(station);
        self.watch_deadlines_of(now, station);
        for sender in self.senders_of(station).collect::<Vec<_>>() {
            by_node(&mut self.per_node).access.on_answered(sender);
            self.heed_holds_of(now, sender);
        }
    }

    /// Both ends of a link forget what they have of each other.
    fn end_association(&mut self, now: Time, link: Link, departed: &mut Vec<Departure>) {
        let node = if link.way == DOWN { self.access_points[link.station] } else { link.station };
        let Some(place) = self.known_sender(node, link.category) else { return };
        let Ends { originator, recipient } = self.directions[link.station][link.way].ends.at_mut(link.category);
        let done = originator.begin_anew();
        debug_assert!(link.way != DOWN || (done.is_empty() && originator.place().is_none()), "nothing stays behind");
        let sender = &mut self.senders[place];
        for packet in recipient.take_held() {
            sender.queue.desk_mut().lost(now, Cause::LeftBehind, &packet, None);
        }
        *recipient = Recipient::new(originator.window());
        for frame in &done {
            if sender.reports {
                departed.push(frame.departure);
            }
            if let Some(watch) = &mut self.air_tap.0 {
                watch.forget(place, frame.place);
            }
        }
        if link.way != DOWN {
            sender.queue.release(now, link.node(), done.len());
            (sender.next, sender.failures) = (None, 0);
        }
        self.measure(now, node);
    }
}
