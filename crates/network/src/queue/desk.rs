//! What queues have in common: the limit, the counts, and how packets go to the transmitter.
//!
//! ```text
//!   accepted --> [inside] -- next --> [chosen] -- claim --> [claimed] -- take, release --> gone
//!                   |                                                         ^
//!                   +-- dropped                    [head] stays chosen, pop --+
//! ```

use super::ack_filter::Filter;
use super::{Load, Queue, Setup};
use crate::packet::{Departure, Destination, NodeId, Packet};
use crate::statistics::{Cause, Counted};
use crate::watch::Tap;
use lasthop_units::{Bytes, Ecn, Time};
use std::collections::VecDeque;

/// The limit of a queue, its counts, and those who want to hear of its losses.
#[derive(Clone, Debug)]
pub(crate) struct Desk<P> {
    /// In packets.
    pub(super) limit: usize,
    pub(crate) counted: Counted,
    pub(crate) tap: Tap<P>,
    /// Accepted packets that were dropped, if recorded.
    dropped: Option<Vec<Departure>>,
    pub(super) filter: Option<Filter<P>>,
}

impl<P> Desk<P> {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, counted: Counted::new(), tap: Tap::NONE, dropped: None, filter: None }
    }

    /// A packet is lost here, or on the way from here; of a broadcast, for this receiver.
    pub(crate) fn lost(&mut self, now: Time, cause: Cause, packet: &Packet<P>, to: Option<NodeId>) {
        self.counted.drop(cause, 1);
        self.tap.lost(now, cause, packet, to);
    }

    /// There is no room for a packet: it goes back.
    pub(super) fn refuse(&mut self, now: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        self.turn_away(now, Cause::QueueFull, packet)
    }

    /// A packet is not accepted: it goes back.
    pub(super) fn turn_away(&mut self, now: Time, cause: Cause, packet: Packet<P>) -> Result<(), Packet<P>> {
        self.lost(now, cause, &packet, None);
        Err(packet)
    }

    /// The queue drops a packet that it had accepted.
    pub(super) fn drop(&mut self, now: Time, cause: Cause, packet: &Packet<P>) {
        self.lost(now, cause, packet, None);
        let departure = Departure { made_room: cause == Cause::QueueFull, ..packet.departure() };
        self.dropped.iter_mut().for_each(|dropped| dropped.push(departure));
    }

    /// Marks the packet, if its ends can be told so: RFC 3168 §5. Returns whether it did.
    pub(super) fn mark(&mut self, packet: &mut Packet<P>) -> bool {
        if packet.ecn.may_be_marked() {
            packet.ecn = Ecn::Ce;
            self.counted.marks += 1;
        }
        packet.ecn == Ecn::Ce
    }

    /// Starts recording packets that the queue drops after accepting them.
    pub(crate) fn note_dropped(&mut self) {
        self.dropped.get_or_insert_default();
    }

    /// The packets dropped after acceptance since the last call, in order.
    pub(crate) fn take_dropped(&mut self) -> impl Iterator<Item = Departure> {
        self.dropped.iter_mut().flat_map(|dropped| dropped.drain(..))
    }
}

/// A discipline that chooses the next packet when the transmitter asks for it. With [`Served`] around it, it is a [`Queue`].
pub(crate) trait Scheduler<P> {
    /// The number of packets that it has not given out.
    fn inside(&self) -> usize;

    /// Accepts the packet, or [refuses](Desk::refuse) it. It may [drop](Desk::drop) others. `has_room`: the limit is not reached.
    fn accept(&mut self, now: Time, packet: Packet<P>, has_room: bool, desk: &mut Desk<P>) -> Result<(), Packet<P>>;

    /// Gives out the next packet; of those to this destination only, if one is given. `None` if there is none, or if it is not of
    /// a size that `fits`. It may [drop](Desk::drop) others before.
    fn next(
        &mut self,
        now: Time,
        to: Option<Destination>,
        fits: &dyn Fn(Bytes) -> bool,
        desk: &mut Desk<P>,
    ) -> Option<Packet<P>>;

    /// Takes out the ACK that this packet, which is to join, makes needless. A discipline without this has no ACK filter.
    fn thin(&mut self, _new: &Packet<P>, _filter: &Filter<P>) -> Option<Packet<P>> {
        None
    }

    /// Takes out all packets to this destination. It may [drop](Desk::drop) some. A discipline in which those to others may be in
    /// front of them has its own way.
    fn remove_to(&mut self, now: Time, to: Destination, desk: &mut Desk<P>) -> Vec<Packet<P>> {
        let mut removed = Vec::new();
        loop {
            let before = self.inside();
            removed.extend(self.next(now, Some(to), &|_| true, desk));
            if self.inside() == before {
                return removed;
            }
        }
    }
}

/// A queue of the packets that a [`Scheduler`] has and of those that it has given out.
#[derive(Clone, Debug)]
pub(crate) struct Served<P, S> {
    pub(super) scheduler: S,
    desk: Desk<P>,
    /// To be sent next, numbered. One, unless a claim for one receiver uncovered packets to others.
    chosen: VecDeque<(u64, Packet<P>)>,
    choices: u64,
    /// Claimed by the transmitter, and not taken out yet.
    claimed: VecDeque<(u64, Packet<P>)>,
    /// Claimed, with transmission not complete.
    in_service: usize,
}

impl<P, S: Scheduler<P>> Served<P, S> {
    pub(super) fn of(scheduler: S, setup: Setup<'_>) -> Self {
        let desk = Desk::new(setup.limit);
        Self { scheduler, desk, chosen: VecDeque::new(), choices: 0, claimed: VecDeque::new(), in_service: 0 }
    }

    fn choose(&mut self, now: Time, to: Option<Destination>, fits: &dyn Fn(Bytes) -> bool) -> Option<()> {
        let next = self.scheduler.next(now, to, fits, &mut self.desk)?;
        self.chosen.push_back((self.choices, next));
        self.choices += 1;
        Some(())
    }

    fn note_length(&mut self, now: Time) {
        self.desk.counted.change(now, self.len());
    }
}

impl<P, S: Scheduler<P>> Queue<P> for Served<P, S> {
    fn desk(&self) -> &Desk<P> {
        &self.desk
    }

    fn desk_mut(&mut self) -> &mut Desk<P> {
        &mut self.desk
    }

    fn len(&self) -> usize {
        self.waiting() + self.in_service
    }

    fn waiting(&self) -> usize {
        self.scheduler.inside() + self.chosen.len()
    }

    fn push(&mut self, now: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        if let Some(filter) = &self.desk.filter
            && let Some(needless) = self.scheduler.thin(&packet, filter)
        {
            self.desk.drop(now, Cause::NewerAck, &needless);
        }
        let has_room = self.room() > 0;
        let taken = self.scheduler.accept(now, packet, has_room, &mut self.desk);
        self.note_length(now);
        taken
    }

    fn head(&mut self, now: Time) -> (u64, &Packet<P>) {
        if self.chosen.is_empty() {
            self.choose(now, None, &|_| true).expect("a transmitter asks only a queue that is not empty");
            self.note_length(now);
        }
        let (number, packet) = &self.chosen[0];
        (*number, packet)
    }

    fn pop(&mut self, now: Time) -> Packet<P> {
        self.head(now);
        let (_, packet) = self.chosen.pop_front().expect("the head is chosen");
        self.note_length(now);
        packet
    }

    fn claim(&mut self, now: Time, to: Option<Destination>, load: &mut impl Load<P>) {
        let goes_there = |packet: &Packet<P>| to.is_none_or(|to| packet.to == to);
        loop {
            if let Some(place) = self.chosen.iter().position(|(_, packet)| goes_there(packet)) {
                if !load.fits(self.chosen[place].1.size) {
                    break;
                }
                let (number, packet) = self.chosen.remove(place).expect("one of the chosen");
                let goes_on = load.add(number, &packet);
                self.claimed.push_back((number, packet));
                self.in_service += 1;
                if !goes_on {
                    break;
                }
            } else if self.choose(now, to, &|size| load.fits(size)).is_none() {
                break;
            }
        }
        self.note_length(now);
    }

    fn claimed(&self, number: u64) -> Option<&Packet<P>> {
        self.claimed.iter().find(|(claimed, _)| *claimed == number).map(|(_, packet)| packet)
    }

    fn take(&mut self, number: u64) -> Packet<P> {
        let place = self.claimed.iter().position(|(claimed, _)| *claimed == number);
        place.and_then(|place| self.claimed.remove(place)).expect("a packet that was claimed is taken once").1
    }

    fn remove_to(&mut self, now: Time, to: Destination) -> Vec<Packet<P>> {
        let (removed, kept): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.chosen).into_iter().partition(|(_, packet)| packet.to == to);
        self.chosen = kept;
        let mut removed: Vec<_> = removed.into_iter().map(|(_, packet)| packet).collect();
        removed.extend(self.scheduler.remove_to(now, to, &mut self.desk));
        self.note_length(now);
        removed
    }

    fn release(&mut self, now: Time, _station: NodeId, packets: usize) {
        self.in_service = self.in_service.checked_sub(packets).expect("only what was claimed is released");
        self.note_length(now);
    }
}
