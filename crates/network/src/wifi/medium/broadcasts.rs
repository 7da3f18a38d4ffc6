//! Broadcasts by the access point: sent once, at a basic rate, without ACK. Receivers with an error then wait EIFS, all
//! others the space.

use super::Medium;
use super::transmission::Transmission;
use crate::packet::{Delivery, NodeId, Outcome, Packet};
use crate::queue::Queue as _;
use crate::random::happens;
use crate::statistics::Cause;
use crate::watch::AirFate;
use crate::wifi::originator::Content;
use crate::wifi::rate_control::Decision;
use lasthop_units::Time;

impl<P: Clone> Medium<P> {
    /// What `fill` is for other frames.
    #[cold]
    pub(super) fn fill_with_broadcast(&mut self, now: Time, sender: usize) -> (Decision, Content) {
        self.broadcasts += 1;
        let size = self.senders[sender].queue.head(now).1.size;
        let bytes = self.times.mode(self.broadcast_mode).frame_bytes(size);
        let decision = Decision { mode: self.broadcast_mode, rts: false, alone: true };
        (decision, Content { frames: 1, mpdus: 1, bytes, to_all_bytes: bytes, retries: 0 })
    }

    #[inline(never)]
    pub(super) fn on_broadcast_over(&mut self, now: Time, outcome: &mut Outcome<'_, P>) {
        self.air.book(now, self.air_use());
        let Transmission { sender, mode, content, .. } = self.on_air[0];
        let eifs = self.times.mode(mode).unanswered.eifs;
        let aired = self.on_air[0];
        self.tell_aired(now, &aired, AirFate::Received);
        let packet = self.senders[sender].queue.pop(now);
        let mut waits = std::mem::take(&mut self.waits);
        for to in self.receivers(&packet) {
            let loss = self.noises[to.index()].frames(mode).of(content.bytes);
            if happens(loss, &mut self.broadcast_streams[to.index()]) {
                self.senders[sender].queue.desk_mut().lost(now, Cause::FrameError, &packet, Some(to));
                waits.push((to.index(), now + eifs));
            } else {
                outcome.deliveries.push(Delivery { at: now, to, packet: packet.clone() });
            }
        }
        self.finish_broadcast(now, sender, &packet, outcome);
        self.resume(now, now + self.times.cell.space, &waits);
        waits.clear();
        self.waits = waits;
    }

    #[cold]
    pub(super) fn fail_broadcast(&mut self, now: Time, frame: &Transmission, outcome: &mut Outcome<'_, P>) {
        let packet = self.senders[frame.sender].queue.pop(now);
        let receivers = self.receivers(&packet);
        let desk = self.senders[frame.sender].queue.desk_mut();
        receivers.for_each(|to| desk.lost(now, Cause::Collision, &packet, Some(to)));
        self.finish_broadcast(now, frame.sender, &packet, outcome);
    }

    fn finish_broadcast(&mut self, now: Time, sender: usize, packet: &Packet<P>, outcome: &mut Outcome<'_, P>) {
        if self.senders[sender].reports {
            outcome.departed.push(packet.departure());
        }
        self.measure(now, self.senders[sender].node);
        self.finish(sender);
    }

    /// The receivers of a broadcast by the access point.
    fn receivers(&self, packet: &Packet<P>) -> impl Iterator<Item = NodeId> + use<P> {
        let from = packet.from;
        (0..self.directions.len()).map(|station| NodeId(station as u16)).filter(move |&station| station != from)
    }
}
