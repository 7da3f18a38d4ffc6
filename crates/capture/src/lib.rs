//! Captures of a run, as one pcapng file for Wireshark.
//!
//! | interface | link type | its packets |
//! | --- | --- | --- |
//! | each host's name, or `host-N` | raw IP | what the host hands to its transmit queue, and what it receives |
//! | `air`, behind Wi-Fi alone | 802.11 with radiotap | each frame of data on the air, with what became of it in a comment |
//! | `lost` | raw IP | each packet that is lost, with place and cause in a comment |
//!
//! Time stamps are those of the run, in nanoseconds. On `air` and `lost` a packet is cut after its IP header and 8
//! bytes more, the ports and the sequence number: else Wireshark's TCP analysis would see each segment several times.
//! The identification of its IP header tells which packet of the host it is.
//!
//! The file can be read after each write: blocks are never written in part, but at a full disk. An error of writing ends
//! the capture, not the run: [`Capture::finish`] returns it.
//!
//! Leaves out: responses (ACK, Block Ack, CTS) and an RTS that is answered; the frame check sequence.
//!
//! References: the pcapng specification (draft-ietf-opsawg-pcapng); radiotap.org (fields).
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod air;
mod blocks;

use blocks::{Block, Link};
use lasthop_network::{Lost, NodeId, Packet, Seen};
use lasthop_units::Time;
use std::fmt;
use std::io::{self, Write};

/// Blocks are written when there is this much.
const WRITE_AT: usize = 1 << 16;

/// The bytes kept of what an IP packet carries on `air` and `lost`: ports and, of TCP, the sequence number.
const INNER_BYTES: usize = 8;

/// A capture that is written while the run goes on.
pub struct Capture {
    sink: Box<dyn Write + Send>,
    blocks: Vec<u8>,
    snaplen: usize,
    hosts: usize,
    has_air: bool,
    transmissions: u32,
    failed: Option<io::Error>,
}

/// The direction of a packet at a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The host receives it.
    In,
    /// The host sends it.
    Out,
}

/// Whether a file that begins so is a capture of lasthop. It looks at [`BEGINNING`] bytes.
pub fn is_capture(begin: &[u8]) -> bool {
    let mut section = Vec::new();
    blocks::section(&mut section);
    begin.starts_with(&section)
}

/// More bytes than the header of a capture has.
pub const BEGINNING: u64 = 64;

impl Capture {
    /// Begins a capture of at most `snaplen` bytes of each packet. `hosts`: the hosts' names. `has_air`: the network has
    /// an access point with Wi-Fi.
    pub fn new(sink: Box<dyn Write + Send>, snaplen: u32, hosts: &[String], has_air: bool) -> Self {
        let mut blocks = Vec::new();
        blocks::section(&mut blocks);
        for name in hosts {
            blocks::interface(&mut blocks, Link::RawIp, name, snaplen);
        }
        if has_air {
            blocks::interface(&mut blocks, Link::Radiotap, "air", snaplen);
        }
        blocks::interface(&mut blocks, Link::RawIp, "lost", snaplen);
        Self { sink, blocks, snaplen: snaplen as usize, hosts: hosts.len(), has_air, transmissions: 0, failed: None }
    }

    /// The bytes of a packet that are kept at most.
    pub fn snaplen(&self) -> usize {
        self.snaplen
    }

    /// A host sends or receives a packet. `ip`: its first bytes; what is missing up to `size` is zeros. Packets of other
    /// nodes are ignored.
    pub fn packet(&mut self, at: Time, host: NodeId, side: Side, ip: &[u8], size: u64) {
        if host.index() < self.hosts {
            let flags = if side == Side::In { 1 } else { 2 };
            self.add(Block { interface: host.index(), at, size, flags, comment: "" }, ip);
        }
    }

    /// Something has happened inside the network. `ip`: the first bytes of a packet.
    pub fn seen<P>(&mut self, seen: &Seen<P>, ip: &mut dyn FnMut(&Packet<P>) -> Vec<u8>) {
        match seen {
            Seen::Aired(aired) => {
                self.transmissions = self.transmissions.wrapping_add(1);
                let comment = air::comment(aired);
                for (frame, size, bytes) in air::frames(aired, self.transmissions, &mut |packet| cut(ip(packet))) {
                    let error = frame.filter(|frame| frame.has_error).map(|_| "error: this frame was not received");
                    let comment = error.unwrap_or(&comment);
                    self.add(Block { interface: self.hosts, at: aired.at, size, flags: 0, comment }, &bytes);
                }
            }
            Seen::Lost(lost) => {
                let comment = comment_of(lost);
                let interface = self.hosts + usize::from(self.has_air);
                let block = Block { interface, at: lost.at, size: lost.packet.size.get(), flags: 0, comment: &comment };
                self.add_cut(block, &cut(ip(&lost.packet)));
            }
        }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The first error of writing since the beginning; the file ends before it.
    pub fn finish(mut self) -> io::Result<()> {
        self.write();
        let flushed = self.sink.flush();
        self.failed.take().map_or(flushed, Err)
    }

    /// Adds a packet, filled up with zeros.
    fn add(&mut self, block: Block<'_>, bytes: &[u8]) {
        let length = if block.interface < self.hosts {
            usize::try_from(block.size).unwrap_or(usize::MAX).min(self.snaplen)
        } else {
            bytes.len().min(self.snaplen)
        };
        self.add_length(block, bytes, length);
    }

    fn add_cut(&mut self, block: Block<'_>, bytes: &[u8]) {
        self.add_length(block, bytes, bytes.len().min(self.snaplen));
    }

    fn add_length(&mut self, block: Block<'_>, bytes: &[u8], length: usize) {
        if self.failed.is_some() {
            return;
        }
        block.write(&mut self.blocks, bytes, length);
        if self.blocks.len() >= WRITE_AT {
            self.write();
        }
    }

    fn write(&mut self) {
        if self.failed.is_none() {
            self.failed = self.sink.write_all(&self.blocks).err();
        }
        self.blocks.clear();
    }
}

/// What is left is written, as far as possible: an interrupted run has a file that can be read.
impl Drop for Capture {
    fn drop(&mut self) {
        self.write();
        let _ = self.sink.flush();
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("hosts", &self.hosts).field("failed", &self.failed).finish_non_exhaustive()
    }
}

/// Cuts an IP packet after its header and [`INNER_BYTES`].
fn cut(mut ip: Vec<u8>) -> Vec<u8> {
    let header = ip.first().map_or(0, |first| usize::from(first & 0xf) * 4);
    ip.truncate(header + INNER_BYTES);
    ip
}

fn comment_of<P>(lost: &Lost<P>) -> String {
    use lasthop_network::Cause;
    let cause = match lost.cause {
        Cause::QueueFull => "queue full",
        Cause::RetryLimit => "retry limit",
        Cause::RandomLoss => "random loss",
        Cause::FrameError => "frame error",
        Cause::Collision => "collision",
        Cause::CoDel => "CoDel",
        Cause::TooLate => "too late",
        Cause::Early => "early",
        Cause::NewerAck => "newer ACK",
        Cause::LeftBehind => "left behind",
    };
    let place = lasthop_scenario::place_name(lost.place);
    match lost.to {
        Some(to) => format!("lost: {cause} at {place}, for host {}", to.0),
        None => format!("lost: {cause} at {place}"),
    }
}
