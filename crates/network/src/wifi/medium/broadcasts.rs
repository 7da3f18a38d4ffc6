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
        let aired = self.on_air[0];
        let eifs = self.times.mode(aired.mode).unanswered.eifs;
        self.tell_aired(now, &aired, AirFate::Received);
        let mut waits = std::mem::take(&mut self.waits);
        self.deliver_broadcast(now, &aired, |_| true, |station| waits.push((station, now + eifs)), outcome);
        self.resume(now, now + self.times.cell.space, &waits);
        waits.clear();
        self.waits = waits;
    }

    /// A broadcast has ended: it reaches the stations that have `heard` it, but for noise; `missed` gets the others.
    pub(super) fn deliver_broadcast(
        &mut self,
        now: Time,
        frame: &Transmission,
        heard: impl Fn(usize) -> bool,
        mut missed: impl FnMut(usize),
        outcome: &mut Outcome<'_, P>,
    ) {
        let Transmission { sender, mode, content, .. } = *frame;
        let packet = self.senders[sender].queue.pop(now);
        for to in self.receivers(frame.node, &packet) {
            let loss = self.noises[to.index()].frames(mode).of(content.bytes);
            let has_heard = heard(to.index());
            if has_heard && !happens(loss, &mut self.broadcast_streams[to.index()]) {
                outcome.deliveries.push(Delivery { at: now, to, packet: packet.clone() });
                continue;
            }
            let cause = if has_heard { Cause::FrameError } else { Cause::Collision };
            self.senders[sender].queue.desk_mut().lost(now, cause, &packet, Some(to));
            missed(to.index());
        }
        self.finish_broadcast(now, sender, &packet, outcome);
    }

    #[cold]
    pub(super) fn fail_broadcast(&mut self, now: Time, frame: &Transmission, outcome: &mut Outcome<'_, P>) {
        let packet = self.senders[frame.sender].queue.pop(now);
        let receivers = self.receivers(frame.node, &packet);
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

    /// The receivers of a broadcast by this access point.
    fn receivers(&self, access_point: usize, packet: &Packet<P>) -> impl Iterator<Item = NodeId> + use<P> {
        let of_cell = |station: &usize| self.access_points[*station] == access_point && !self.is_away(*station);
        let others = (0..self.directions.len()).filter(|station| *station != packet.from.index());
        let stations: Vec<_> = others.filter(of_cell).collect();
        stations.into_iter().map(|station| NodeId(station as u16))
    }
}
