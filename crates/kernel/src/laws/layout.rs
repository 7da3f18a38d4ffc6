//! The Rust side of `bpf/law_intf.h`: the same structs, byte for byte.

use crate::layout::{Endpoints, NAME_LENGTH};

pub(crate) const VERSION_LENGTH: usize = 64;
pub(crate) const ABOUT_MAGIC: u32 = 0x6c68_776c;
/// The bytes of `struct lh_law`.
pub(crate) const LAW_BYTES: usize = 328;

/// `struct lh_about`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) magic: u32,
    pub(crate) law: u32,
    pub(crate) about_bytes: u32,
    pub(crate) flow_bytes: u32,
    pub(crate) record_bytes: u32,
    pub(crate) counters_bytes: u32,
    pub(crate) heard_bytes: u32,
    pub(crate) derive_flags: u32,
    pub(crate) skip: u32,
    pub(crate) name: [u8; NAME_LENGTH],
    pub(crate) version: [u8; VERSION_LENGTH],
}

impl About {
    /// Whether the structs are as long as ours.
    pub(crate) fn fits(&self) -> bool {
        let theirs = [self.about_bytes, self.flow_bytes, self.record_bytes, self.counters_bytes, self.heard_bytes];
        let ours =
            [size_of::<Self>(), FLOW_BYTES, size_of::<FlowRecord>(), size_of::<LawCounts>(), size_of::<HeardCounts>()];
        self.magic == ABOUT_MAGIC && theirs == ours.map(|bytes| bytes as u32)
    }
}

/// `struct lh_law_counters`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LawCounts {
    pub(crate) begun: u64,
    pub(crate) losses: u64,
    pub(crate) tolerated: u64,
    pub(crate) timeouts: u64,
    pub(crate) notified: u64,
    pub(crate) back_offs: u64,
    pub(crate) undone: u64,
    pub(crate) repaired: u64,
    pub(crate) storage_missing: u64,
}

/// `struct lh_heard_counters`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeardCounts {
    pub(crate) listeners: u64,
    pub(crate) listeners_failed: u64,
    pub(crate) at_accept: u64,
    pub(crate) later: u64,
    pub(crate) answered: u64,
    pub(crate) cookies: u64,
    pub(crate) no_room: u64,
    pub(crate) malformed: u64,
    pub(crate) other_version: u64,
    pub(crate) not_permitted: u64,
    pub(crate) storage_missing: u64,
}

/// Entries of the map of what clients are permitted.
pub(crate) const PERMITS_MAX: usize = 1024;
/// The bits of a key before those of the client's address.
pub(crate) const PERMIT_PORT_BITS: u32 = 16;

/// `struct lh_permit_key`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PermitKey {
    pub(crate) prefix_bits: u32,
    pub(crate) port: [u8; 2],
    pub(crate) client: [u8; 16],
    pub(crate) padding: [u8; 2],
}

/// `struct lh_flow_record`; the bytes of a `struct lh_flow` follow.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowRecord {
    pub(crate) cookie: u64,
    pub(crate) now_us: u64,
    pub(crate) ends: Endpoints,
    pub(crate) control: [u8; NAME_LENGTH],
    pub(crate) netns_inum: u32,
    pub(crate) cwnd_segments: u32,
    pub(crate) ssthresh_segments: u32,
    pub(crate) srtt_us: u32,
    pub(crate) min_rtt_us: u32,
    pub(crate) in_flight_segments: u32,
    pub(crate) ca_state: u32,
    pub(crate) tcp_state: u32,
    pub(crate) segments_sent: u32,
    pub(crate) retransmits: u32,
}

/// What of `struct lh_flow` is before the law.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowCounts {
    pub(crate) begun: u32,
    pub(crate) reported: u32,
    pub(crate) losses: u32,
    pub(crate) tolerated: u32,
    pub(crate) timeouts: u32,
    pub(crate) back_offs: u32,
    pub(crate) undone: u32,
    pub(crate) padding: u32,
}

/// The bytes of `struct lh_flow`.
pub(crate) const FLOW_BYTES: usize = size_of::<FlowCounts>() + LAW_BYTES;
