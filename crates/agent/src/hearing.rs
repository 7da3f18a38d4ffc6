//! Telling peers about this host, and hearing them.

use crate::calm::Calm;
use crate::clock;
use crate::config::BeaconConfig;
use crate::interface::Interface;
use crate::record::Beacons;
use crate::sockets::Sockets;
use anyhow::{Context, Result};
use control::beacon::{Beacon, GroupKey, Receiver};
use control::peers::{Limits, Neighbourhood, PeerId, PeerTable, Reject, Rejections, Report};
use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tracing::{debug, warn};
use units::{Span, Time};

/// When more arrives than is looked at, the sockets are left alone for so long, and the kernel drops the rest.
const DEAF_AFTER_A_FLOOD: Span = Span::from_millis(100);
/// In one go; what else is waiting has to wait for the tick, if one is due.
const DATAGRAMS_AT_ONCE: usize = 256;
/// A wall clock that falls back by more than this makes us another sender: the old one's timestamps are used up.
const CLOCK_FELL_BACK_NS: u64 = 5_000_000_000;

/// This host's ear and voice.
#[derive(Debug)]
pub(crate) struct Hearing {
    sockets: Sockets,
    receiver: Receiver,
    table: PeerTable,
    sender: PeerId,
    last_timestamp_ns: u64,
    deaf_until: Time,
    calm: Calm,
    sent: u64,
    unsent: u64,
}

impl Hearing {
    /// Reads the group key, if there is one. Opens no socket yet.
    pub(crate) fn new(config: &BeaconConfig) -> Result<Self> {
        let key = config.group_key_file.as_deref().map(read_key).transpose()?;
        let limits = Limits { age_out: Span::from_millis(config.age_out_ms), ..Limits::default() };
        Ok(Self {
            sockets: Sockets::new(config),
            receiver: Receiver::new(key),
            table: PeerTable::new(limits),
            sender: PeerId(rand::random()),
            last_timestamp_ns: 0,
            deaf_until: Time::ZERO,
            calm: Calm::each_minute(),
            sent: 0,
            unsent: 0,
        })
    }

    /// Follows the interface's addresses.
    pub(crate) fn refresh(&mut self, now: Time, interface: Option<&Interface>) {
        self.sockets.refresh(now, interface);
    }

    /// Says `report` to all peers.
    pub(crate) fn send(&mut self, now: Time, report: Report) {
        let Self { sockets, receiver, sender, last_timestamp_ns, .. } = self;
        let (sent, unsent) = sockets.send(now, || {
            let timestamp_ns = next_timestamp(clock::wall_ns(), sender, last_timestamp_ns);
            Beacon { sender: *sender, timestamp_ns, report }.encode(receiver.key())
        });
        self.sent += sent;
        self.unsent += unsent;
    }

    /// Hears what has arrived.
    pub(crate) fn receive(&mut self, now: Time) {
        let Self { sockets, receiver, table, sender, deaf_until, calm, .. } = self;
        if now < *deaf_until {
            return;
        }
        sockets.receive(DATAGRAMS_AT_ONCE, |from, datagram| {
            if table.on_datagram(now).is_err() {
                *deaf_until = now.saturating_add(DEAF_AFTER_A_FLOOD);
                return false;
            }
            if let Err(cause) = hear(now, datagram, *sender, receiver, table) {
                debug!("a datagram of {} bytes from {from} is not heard: {cause}", datagram.len());
                // What somebody on this network or this host can set right.
                if matches!(
                    cause,
                    Reject::Tag | Reject::Unauthenticated | Reject::NoKey | Reject::Stale | Reject::Version
                ) && let Some(more) = calm.may_say(now)
                {
                    warn!("the agent at {} is not heard: {cause}{more}", from.ip());
                }
            }
            true
        });
    }

    /// What to wait for: nothing, for a moment after a flood.
    pub(crate) fn descriptors(&self, now: Time) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.descriptors().filter(move |_| now >= self.deaf_until)
    }

    /// The peers of the moment.
    pub(crate) fn neighbourhood(&mut self, now: Time) -> Neighbourhood {
        self.table.neighbourhood(now)
    }

    /// Messages since the start.
    pub(crate) fn beacons(&self) -> Beacons {
        Beacons {
            sent: self.sent,
            unsent: self.unsent,
            heard: self.table.heard(),
            rejected: self.table.rejections().total(),
        }
    }

    /// What was not heard, by cause.
    pub(crate) const fn rejections(&self) -> &Rejections {
        self.table.rejections()
    }
}

fn hear(now: Time, datagram: &[u8], own: PeerId, receiver: &mut Receiver, table: &mut PeerTable) -> Result<(), Reject> {
    let beacon = receiver.on_datagram(clock::wall_ns(), datagram).map_err(|cause| table.reject(cause))?;
    if beacon.sender == own {
        return Ok(()); // a broadcast comes back to its sender
    }
    table.on_report(now, beacon.sender, beacon.report)
}

/// Above the last one, whatever the wall clock does; with a new identity if that would lead too far from it.
fn next_timestamp(wall_ns: u64, sender: &mut PeerId, last_timestamp_ns: &mut u64) -> u64 {
    if wall_ns.saturating_add(CLOCK_FELL_BACK_NS) < *last_timestamp_ns {
        *sender = PeerId(rand::random());
        *last_timestamp_ns = 0;
    }
    *last_timestamp_ns = wall_ns.max(last_timestamp_ns.saturating_add(1));
    *last_timestamp_ns
}

fn read_key(file: &Path) -> Result<GroupKey> {
    let reading = || format!("cannot read the group key {}", file.display());
    let secret = fs::read(file).with_context(reading)?;
    if fs::metadata(file).with_context(reading)?.permissions().mode() & 0o007 != 0 {
        warn!("everyone on this machine can read or change the group key {}: chmod 600 it", file.display());
    }
    GroupKey::new(secret.trim_ascii_end()).with_context(|| format!("cannot use the group key {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_rise_whatever_the_clock_does() {
        const SECOND: u64 = 1_000_000_000;
        let (mut sender, mut last) = (PeerId(7), 0);
        let mut next = |wall_ns| (next_timestamp(wall_ns, &mut sender, &mut last), sender == PeerId(7));
        assert_eq!(next(100 * SECOND), (100 * SECOND, true));
        assert_eq!(next(100 * SECOND), (100 * SECOND + 1, true)); // twice in the same nanosecond
        assert_eq!(next(98 * SECOND), (100 * SECOND + 2, true)); // set back by two seconds
        assert_eq!(next(50 * SECOND), (50 * SECOND, false)); // set back by 50 s: another sender
    }

    #[test]
    fn a_key_is_read_without_the_end_of_its_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("group.key");
        fs::write(&file, "a secret of the group\n").expect("written");
        let datagram = Beacon { sender: PeerId(1), timestamp_ns: 1, report: Report::default() }
            .encode(Some(&read_key(&file).expect("long enough")));
        let key = GroupKey::new(b"a secret of the group").expect("long enough");
        assert!(Beacon::decode(&datagram, Some(&key)).is_ok());
        fs::write(&file, "short\n").expect("written");
        let error = format!("{:#}", read_key(&file).expect_err("too short"));
        assert!(error.contains("group.key") && error.contains("5 bytes"), "{error}");
        let error = format!("{:#}", read_key(&folder.path().join("none")).expect_err("no such file"));
        assert!(error.contains("none"), "{error}");
    }
}
