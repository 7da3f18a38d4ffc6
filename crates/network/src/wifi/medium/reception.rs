//! What a receiver takes from a transmission, and for how long it holds what waits behind a gap.

use super::{Medium, Transmission, go_on};
use crate::packet::{Outcome, Packet};
use crate::queue::Queue as _;
use crate::random::happens;
use crate::statistics::{Cause, Way};
use crate::wifi::direction::{Direction, Ends, Link, UP};
use crate::wifi::edca::Category;
use lasthop_units::Time;

impl<P: Clone> Medium<P> {
    /// The receiver accepts a transmission. `is_disturbed`: whether others disturb its next MPDU, which has so many bytes.
    /// Returns whether anything was received.
    pub(super) fn receive(
        &mut self,
        frame: &Transmission,
        link: Link,
        now: Time,
        mut is_disturbed: impl FnMut(u64) -> bool,
        go_on: &mut impl FnMut(Packet<P>),
    ) -> bool {
        let noise = &self.noises[link.station];
        let Direction { ends, counts, .. } = &mut self.directions[link.station][link.way];
        let Ends { originator, recipient } = ends.at_mut(link.category);
        if frame.content.frames == 0 {
            let is_lost = happens(noise.control(frame.mode).request, &mut self.error_streams[frame.node]);
            if !is_lost {
                recipient.on_request(originator.start(), go_on);
            }
            return !is_lost;
        }
        let mode = self.times.mode(frame.mode);
        let mut loss = noise.frames(frame.mode);
        let queue = &mut self.senders[frame.sender].queue;
        let (mut received, mut is_lost) = (0, false);
        for number in 0..frame.content.frames {
            // An A-MSDU is lost or received as a whole.
            if !originator.frames()[number].joins {
                let bytes = originator.mpdu_bytes(mode, number);
                is_lost = happens(loss.of(bytes), &mut self.error_streams[frame.node]);
                is_lost |= is_disturbed(bytes);
            }
            if let Some(watch) = &mut self.air_tap.0 {
                watch.errors.push(is_lost);
            }
            if is_lost {
                continue;
            }
            received += 1;
            let sent = &mut originator.frames()[number];
            if !sent.is_received {
                sent.is_received = true;
                let packet = queue.take(sent.place);
                let taken = match sent.joins {
                    true => recipient.receive_rest(packet, &mut *go_on),
                    false => recipient.receive(now, sent.sequence, packet, &mut *go_on),
                };
                if let Err(packet) = taken {
                    queue.desk_mut().lost(now, Cause::TooLate, &packet, None);
                }
            }
        }
        recipient.release(go_on);
        counts.errors += (frame.content.frames - received) as u64;
        received > 0
    }

    #[inline(never)]
    pub(super) fn on_deadline(&mut self, now: Time, arrived: &mut Vec<Packet<P>>, outcome: &mut Outcome<'_, P>) {
        let due = self.deadlines.first();
        let (place, station) = (due / 2 / self.directions.len(), due / 2 % self.directions.len());
        let link = Link { station, way: Way::BOTH[due % 2], category: Category::BY_PLACE[place] };
        let ends = self.directions[link.station][link.way].ends.at_mut(link.category);
        ends.recipient.on_deadline(go_on(now, link, arrived, outcome));
        self.watch_deadline(now, link);
    }

    /// Sets the deadline of the frames held by the link's receiver. It may be past if they waited behind something
    /// else.
    #[inline]
    pub(super) fn watch_deadline(&mut self, now: Time, link: Link) {
        let mut deadline = self.directions[link.station][link.way].ends.at_mut(link.category).recipient.deadline();
        // An access point whose station has roamed away delivers what it holds as usual.
        if self.holds.has(link.station) && !(link.way == UP && self.is_away(link.station)) {
            deadline = Time::MAX;
        }
        if deadline < Time::MAX || self.next_deadline < Time::MAX {
            self.set_deadline(link, deadline.max(now));
        }
    }

    #[inline(never)]
    fn set_deadline(&mut self, link: Link, at: Time) {
        let number = 2 * (link.category.place() * self.directions.len() + link.station) + link.way as usize;
        self.deadlines.set(number, at);
        self.next_deadline = self.deadlines.first_at();
    }
}
