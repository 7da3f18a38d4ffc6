//! What a watched medium tells: its transmissions, with their packets.

use super::{Medium, Phase, Transmission};
use crate::packet::{NodeId, Packet};
use crate::queue::{Queue as _, ReadAck};
use crate::statistics::QueueId;
use crate::watch::{self, AirFate, AirFrame, AirKind, Aired, Log, Seen, Tap};
use crate::wifi::direction::{Link, UP};
use lasthop_units::Time;
use std::collections::BTreeMap;

/// The watch of a medium; empty if nobody watches.
#[derive(Debug)]
pub(super) struct AirTap<P>(pub(super) Option<Box<Watch<P>>>);

#[derive(Debug)]
pub(super) struct Watch<P> {
    pub(super) log: Log<P>,
    /// The packets of frames that are not settled yet, by sender and place in its queue. The queue has them only until
    /// they are received.
    packets: BTreeMap<(usize, u64), Packet<P>>,
    /// Of each frame of the present transmission: whether it has an error.
    pub(super) errors: Vec<bool>,
}

impl<P> Watch<P> {
    /// The frame at this place of the sender's queue is settled.
    pub(super) fn forget(&mut self, sender: usize, place: u64) {
        self.packets.remove(&(sender, place));
    }
}

/// A clone is not watched.
impl<P> Clone for AirTap<P> {
    fn clone(&self) -> Self {
        Self(None)
    }
}

impl<P: Clone> Medium<P> {
    /// Tells its events from now on.
    pub(crate) fn watch(&mut self, log: &Log<P>) {
        let watch = Watch { log: log.clone(), packets: BTreeMap::new(), errors: Vec::new() };
        self.air_tap = AirTap(Some(Box::new(watch)));
        for sender in 0..self.senders.len() {
            self.watch_sender(sender);
        }
    }

    /// Queues with a filter know ACKs by this function from now on.
    pub(crate) fn read_acks(&mut self, read: ReadAck<P>) {
        self.read_acks = Some(read);
        self.senders.iter_mut().for_each(|sender| sender.queue.read_acks(read));
    }

    /// Tells the losses of a sender's queue.
    pub(super) fn watch_sender(&mut self, sender: usize) {
        let Some(watch) = &self.air_tap.0 else { return };
        let sender = &mut self.senders[sender];
        let place = match sender.node.checked_sub(self.directions.len()) {
            Some(number) => QueueId::of_access_point(number),
            None => QueueId::Host(NodeId(sender.node as u16)),
        };
        sender.queue.desk_mut().tap = Tap::new(&watch.log, place);
    }

    /// A link's next transmission is filled: keeps copies of the packets that are new.
    #[cold]
    pub(super) fn remember(&mut self, sender: usize, link: Link) {
        let Some(watch) = &mut self.air_tap.0 else { return };
        let queue = &self.senders[sender].queue;
        for frame in self.directions[link.station][link.way].ends.at_mut(link.category).originator.frames() {
            let key = (sender, frame.place);
            if let std::collections::btree_map::Entry::Vacant(free) = watch.packets.entry(key)
                && let Some(packet) = queue.claimed(frame.place)
            {
                free.insert(packet.clone());
            }
        }
    }

    /// A transmission has ended like this. Call it before its frames are settled.
    #[cold]
    pub(super) fn tell_aired(&mut self, now: Time, frame: &Transmission, fate: AirFate) {
        let access_point =
            frame.link.map_or(frame.node, |link| self.access_points[link.station]) - self.directions.len();
        let Some(watch) = &mut self.air_tap.0 else { return };
        let errors = std::mem::take(&mut watch.errors);
        let mode = self.times.mode(frame.mode);
        let modulation = self.times.modulation(frame.mode);
        let mut frames = Vec::new();
        let kind = match frame.link {
            Some(_) if frame.is_rts => AirKind::Rts(frame.content.frames),
            Some(_) if frame.content.frames == 0 => AirKind::BlockAckRequest,
            _ => AirKind::Data,
        };
        if let (Some(link), AirKind::Data) = (frame.link, kind) {
            let originator = &mut self.directions[link.station][link.way].ends.at_mut(link.category).originator;
            let sent = originator.frames().iter().take(frame.content.frames).enumerate();
            frames.extend(sent.filter_map(|(number, sent)| {
                let packet = watch.packets.get(&(frame.sender, sent.place))?.clone();
                let has_error = fate == AirFate::Received && errors.get(number).copied().unwrap_or(false);
                let (sequence, is_retry) = (sent.sequence.number(), sent.has_failed());
                Some(AirFrame { packet, sequence, is_retry, joins: sent.joins, has_error })
            }));
        }
        if frame.link.is_none() {
            let packet = self.senders[frame.sender].queue.head(now).1.clone();
            frames.push(AirFrame { packet, sequence: 0, is_retry: false, joins: false, has_error: false });
        }
        let length = if frame.is_rts { mode.rts } else { frame.duration };
        let aired = Aired {
            started: frame.end - length,
            at: now,
            station: frame.link.map(|link| NodeId(link.station as u16)),
            access_point,
            is_up: frame.link.is_some_and(|link| link.way == UP),
            kind,
            rate: mode.rate,
            modulation,
            fate,
            frames,
        };
        watch::add(&watch.log, Seen::Aired(aired));
    }

    /// The watching ends: tells what is on the air.
    pub(crate) fn tell_unfinished(&mut self, now: Time) {
        let is_on_air = |frame: &&Transmission| match self.phase {
            Phase::Silent => false,
            Phase::Frames(_) | Phase::ByNode => true,
            Phase::Response(_) => frame.is_rts,
        };
        let unfinished: Vec<_> = self.frames_on_air().filter(is_on_air).copied().collect();
        unfinished.iter().for_each(|frame| self.tell_aired(now, frame, AirFate::Unfinished));
    }
}
