//! What becomes of a datagram that may be a beacon, in this order:
//!
//! 1. where more arrive than are looked at, it is not looked at;
//! 2. from an address of this host it is this host's own, which a broadcast brings back, or another process's here; not so what a
//!    [relay](crate::relay) has sent;
//! 3. it is decoded: of this access point, with the right key, neither old nor a recording;
//! 4. with this host's identity it is its own, from an address not known yet;
//! 5. the table takes its report, within the limits of a peer; a [`Note`] is handed on.
//!
//! What fails is counted by its cause.

use crate::beacon::Receiver;
use crate::{Limits, Note, PeerId, PeerTable, Reject};
use lasthop_units::Time;
use std::net::IpAddr;

/// Hears beacons.
#[derive(Clone, Debug)]
pub struct Ear {
    /// Decodes them.
    pub receiver: Receiver,
    /// What they report.
    pub table: PeerTable,
}

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    /// When.
    pub now: Time,
    /// The same on the wall clock, in ns since 1970-01-01 UTC.
    pub wall_ns: u64,
    /// Its source address.
    pub from: IpAddr,
    /// Its bytes.
    pub datagram: &'a [u8],
    /// Whether a [relay](crate::relay) has passed it on, perhaps later than it came by itself.
    pub relayed: bool,
}

/// Who hears.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    /// Its identity.
    pub sender: PeerId,
    /// Its addresses, as far as known.
    pub addresses: &'a [IpAddr],
}

impl Ear {
    /// Hears what `receiver` decodes, from no peer yet.
    pub fn new(receiver: Receiver, limits: Limits) -> Self {
        Self { receiver, table: PeerTable::new(limits) }
    }

    /// Takes a datagram. Returns a note of another host, with its sender's group and key.
    ///
    /// # Errors
    /// Why it is not heard, counted. After [`Reject::TotalRate`] the next ones will not be looked at either.
    pub fn on_datagram(&mut self, own: Own<'_>, arrived: Arrived<'_>) -> Result<Option<Note>, Reject> {
        let Self { receiver, table } = self;
        let Arrived { now, wall_ns, from, datagram, relayed } = arrived;
        let is_late = |cause: Reject| relayed && cause == Reject::Replay;
        table.on_datagram(now)?;
        if !relayed && own.addresses.contains(&from) {
            return Ok(None);
        }
        if Note::is_one(datagram) {
            let note = match receiver.on_note(wall_ns, datagram) {
                Err(cause) if is_late(cause) => return Ok(None),
                heard => heard.map_err(|cause| table.reject(cause))?,
            };
            if note.sender == own.sender {
                return Ok(None);
            }
            table.on_note();
            return Ok(Some(note));
        }
        let beacon = match receiver.on_datagram(wall_ns, datagram) {
            Err(cause) if is_late(cause) => return Ok(None),
            heard => heard.map_err(|cause| table.reject(cause))?,
        };
        if beacon.sender == own.sender {
            return Ok(None);
        }
        table.on_report(now, from, beacon.sender, beacon.interval, beacon.report).map(|()| None)
    }
}
