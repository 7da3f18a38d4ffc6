//! What happens inside a watched network: transmissions on the air, and lost packets.
//!
//! [`Network::watch`](crate::Network::watch) starts it. The events are in the order in which the model processes them,
//! so their times never decrease. Watching draws nothing and changes nothing; a network that is not watched only looks
//! at one pointer where something is lost, and once a transmission. A clone of a network is not watched.
//!
//! Leaves out: responses (ACK, Block Ack, CTS), and an RTS that is answered.

use crate::packet::{NodeId, Packet};
use crate::statistics::{Cause, QueueId};
use crate::wifi::{Modulation, Standard};
use lasthop_units::{Rate, Time};
use std::sync::{Arc, Mutex, PoisonError};

/// An event inside a watched network.
#[derive(Clone, Debug)]
pub enum Seen<P> {
    /// A transmission has ended.
    Aired(Aired<P>),
    /// A packet is lost.
    Lost(Lost<P>),
}

/// A packet that is lost; of a broadcast, once for each receiver that does not get it.
#[derive(Clone, Debug)]
pub struct Lost<P> {
    /// When.
    pub at: Time,
    /// Where [`Statistics::drops`](crate::Statistics::drops) counts it.
    pub place: QueueId,
    /// Why.
    pub cause: Cause,
    /// The receiver without it; `None` if none got it.
    pub to: Option<NodeId>,
    /// The packet.
    pub packet: Packet<P>,
}

/// A transmission of a station or the access point.
#[derive(Clone, Debug)]
pub struct Aired<P> {
    /// When it begins, with the CTS-to-self before it, if there is one.
    pub started: Time,
    /// When its fate is known: at its end, or that of the collision.
    pub at: Time,
    /// The station at the other end of the access point; `None`: a broadcast of the access point.
    pub station: Option<NodeId>,
    /// The number of that access point, from 0.
    pub access_point: usize,
    /// From the station to the access point.
    pub is_up: bool,
    /// Data, or what.
    pub kind: AirKind,
    /// The rate of its data bits; of an RTS that of the data that would have followed.
    pub rate: Rate,
    /// How the data are sent in 802.11n and later.
    pub modulation: Option<(Standard, Modulation)>,
    /// What became of it.
    pub fate: AirFate,
    /// Its packets in order; empty but for data.
    pub frames: Vec<AirFrame<P>>,
}

/// The kind of a transmission.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AirKind {
    /// Frames with packets.
    Data,
    /// An RTS without a CTS, for this many frames.
    Rts(usize),
    /// A Block Ack Request.
    BlockAckRequest,
}

/// What became of a transmission.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AirFate {
    /// At least one of its frames was received, or one receiver got the broadcast. Its response may be lost.
    Received,
    /// It overlapped others where it was to be received.
    Collided,
    /// No frame of it was received.
    Error,
    /// It is on the air when the watching ends.
    Unfinished,
}

/// A packet in a transmission.
#[derive(Clone, Debug)]
pub struct AirFrame<P> {
    /// The packet.
    pub packet: Packet<P>,
    /// The sequence number of its MPDU, 0..=4095.
    pub sequence: u16,
    /// Whether it was sent before.
    pub is_retry: bool,
    /// Whether it is in the MPDU of the packet before it (A-MSDU).
    pub joins: bool,
    /// Whether this MPDU was received with an error, though others were received.
    pub has_error: bool,
}

/// The end of the watch at one place; empty if nobody watches.
#[derive(Debug)]
pub(crate) struct Tap<P>(Option<Box<Inner<P>>>);

#[derive(Debug)]
struct Inner<P> {
    log: Log<P>,
    place: QueueId,
    copy: fn(&Packet<P>) -> Packet<P>,
}

/// The events that nobody has taken yet.
pub(crate) type Log<P> = Arc<Mutex<Vec<Seen<P>>>>;

impl<P> Tap<P> {
    pub(crate) const NONE: Self = Self(None);

    /// A tap for the losses at this place.
    pub(crate) fn new(log: &Log<P>, place: QueueId) -> Self
    where
        P: Clone,
    {
        Self(Some(Box::new(Inner { log: Arc::clone(log), place, copy: Packet::clone })))
    }

    /// Whether somebody watches.
    pub(crate) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// A packet is lost here.
    #[inline]
    pub(crate) fn lost(&self, at: Time, cause: Cause, packet: &Packet<P>, to: Option<NodeId>) {
        if let Some(inner) = &self.0 {
            let packet = (inner.copy)(packet);
            add(&inner.log, Seen::Lost(Lost { at, place: inner.place, cause, to, packet }));
        }
    }
}

/// A clone is not watched: its events are none of the original's.
impl<P> Clone for Tap<P> {
    fn clone(&self) -> Self {
        Self::NONE
    }
}

/// Adds an event.
pub(crate) fn add<P>(log: &Log<P>, event: Seen<P>) {
    log.lock().unwrap_or_else(PoisonError::into_inner).push(event);
}

/// Takes the events so far.
pub(crate) fn take<P>(log: &Log<P>, events: &mut Vec<Seen<P>>) {
    events.append(&mut log.lock().unwrap_or_else(PoisonError::into_inner));
}
