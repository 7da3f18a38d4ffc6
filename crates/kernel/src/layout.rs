//! The Rust side of `bpf/intf.h`: the same structs, byte for byte. [`Layout`] is compared with what the compiled programs
//! say before anything is loaded.

#![allow(unsafe_code)] // reads and writes the programs' structs as bytes

use lasthop_laws::bound::LeasedBound;

/// The length of a congestion control's name in the kernel, with its terminating zero.
pub(crate) const NAME_LENGTH: usize = 16;
/// Entries of the map of single flows' bounds.
pub(crate) const BOUNDS_MAX: usize = 65_536;
/// The most cgroups that can be excluded.
pub(crate) const EXCLUDED_CGROUPS_MAX: usize = 256;
/// Control is limited to such a cgroup, in the map of cgroups and in [`Control`].
pub(crate) const CGROUP_WITHIN: u8 = 1;
/// Such a cgroup is left alone, likewise.
pub(crate) const CGROUP_EXCLUDED: u8 = 2;
/// Entries of the map of controls not to replace.
pub(crate) const LEAVE_MAX: usize = 64;

/// Types that are nothing but their bytes.
///
/// # Safety
/// The type must be `repr(C)` without padding, and every pattern of bits must be a value of it.
pub(crate) unsafe trait Plain: Copy {
    fn bytes(&self) -> &[u8] {
        // SAFETY: a `Plain` type has no padding, so all its bytes are initialised.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }

    /// The value at the start of `bytes`, or nothing if they are too few.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        // SAFETY: the length is checked, every pattern of bits is a value, and the read asks for no alignment.
        (bytes.len() >= size_of::<Self>()).then(|| unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

macro_rules! plain {
    ($($type:ty),*) => {
        // SAFETY: integers and arrays of integers only, `repr(C)`, explicitly padded.
        $(unsafe impl Plain for $type {})*
    };
}
plain!(Settings, LeasedBound, Control, Counts, Record, Change, Layout);
plain!(crate::laws::layout::About, crate::laws::layout::LawCounts, crate::laws::layout::FlowRecord);
plain!(crate::laws::layout::FlowCounts, [u32; lasthop_laws::Parameters::MAX]);
plain!(crate::laws::layout::HeardCounts, crate::laws::layout::PermitKey);
plain!(crate::report::Settings, crate::report::Claims, crate::report::Counts, crate::report::Layout);

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) netns_inum: u32,
    pub(crate) interface_index: u32,
    pub(crate) reserved: u32,
    pub(crate) clamp: u32,
    pub(crate) derive_flags: u32,
    pub(crate) owner_pid: u32,
    pub(crate) owner_start: u64,
    pub(crate) owner_pidns: u32,
    pub(crate) padding: u32,
    pub(crate) name: [u8; NAME_LENGTH],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Control {
    pub(crate) generation: u32,
    pub(crate) cgroups: u32,
    pub(crate) defaults: [LeasedBound; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) adopted_at_connect: u64,
    pub(crate) adopted_at_accept: u64,
    pub(crate) repaired: u64,
    pub(crate) refused: u64,
    pub(crate) state_changes: u64,
    pub(crate) state_changes_lost: u64,
    pub(crate) unpaced: u64,
    pub(crate) walk_adopted: u64,
    pub(crate) walk_already: u64,
    pub(crate) walk_left: u64,
    pub(crate) walk_restored: u64,
    pub(crate) walk_failed: u64,
}

/// `struct lh_endpoints` of `endpoints.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoints {
    pub(crate) local: [u8; 16],
    pub(crate) remote: [u8; 16],
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) family: u16,
    pub(crate) padding: u16,
}

/// `struct lh_sample`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) cookie: u64,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_retrans: u64,
    pub(crate) bytes_received: u64,
    pub(crate) bound_expires_ns: u64,
    pub(crate) bound_max_pacing_rate: u64,
    pub(crate) pacing_rate: u64,
    pub(crate) ends: Endpoints,
    pub(crate) control: [u8; NAME_LENGTH],
    pub(crate) padding: u16,
    pub(crate) tcp_state: u8,
    pub(crate) ca_state: u8,
    pub(crate) cwnd_segments: u32,
    pub(crate) ssthresh_segments: u32,
    pub(crate) srtt_us: u32,
    pub(crate) min_rtt_us: u32,
    pub(crate) in_flight_segments: u32,
    pub(crate) unsent_bytes: u32,
    pub(crate) mss_bytes: u32,
    pub(crate) total_retrans: u32,
    pub(crate) timeouts: u32,
    pub(crate) delivered_segments: u32,
    pub(crate) rate_delivered: u32,
    pub(crate) rate_interval_us: u32,
    pub(crate) segments_sent: u32,
    pub(crate) segments_received: u32,
    pub(crate) segments_out_of_order: u32,
    pub(crate) receive_rtt_us: u32,
    pub(crate) idle_us: u32,
    pub(crate) bound_min_segments: u32,
    pub(crate) bound_max_segments: u32,
    pub(crate) controlled: u32,
    pub(crate) interface_index: u32,
    pub(crate) newest_rtt_us: u32,
}

/// `struct lh_state_change`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) at_ns: u64,
    pub(crate) cookie: u64,
    pub(crate) cwnd_segments: u32,
    pub(crate) ssthresh_segments: u32,
    pub(crate) from: u8,
    pub(crate) to: u8,
    pub(crate) padding: [u8; 6],
}

/// `struct lh_layout`: the sizes of the structs above.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    settings: u32,
    control: u32,
    counters: u32,
    sample: u32,
    state_change: u32,
}

impl Layout {
    pub(crate) const OURS: Self = Self {
        settings: size_of::<Settings>() as u32,
        control: size_of::<Control>() as u32,
        counters: size_of::<Counts>() as u32,
        sample: size_of::<Record>() as u32,
        state_change: size_of::<Change>() as u32,
    };
}

/// A name as the kernel keeps it, or nothing if it does not fit.
pub(crate) fn padded_name(name: &str) -> Option<[u8; NAME_LENGTH]> {
    let mut padded = [0; NAME_LENGTH];
    // the last byte stays zero
    padded.get_mut(..name.len()).filter(|room| room.len() < NAME_LENGTH)?.copy_from_slice(name.as_bytes());
    Some(padded)
}

/// The text of a zero-padded name.
pub(crate) fn unpadded_name(padded: &[u8]) -> String {
    let end = padded.iter().position(|&byte| byte == 0).unwrap_or(padded.len());
    String::from_utf8_lossy(&padded[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_laws::Bound;
    use lasthop_units::{Rate, Span, Time};

    #[test]
    fn a_name_of_fifteen_letters_fits_and_one_of_sixteen_does_not() {
        let padded = padded_name("abcdefghijklmno").expect("15 letters and a zero are 16 bytes");
        assert_eq!(unpadded_name(&padded), "abcdefghijklmno");
        assert_eq!(padded_name("abcdefghijklmnop"), None);
        assert_eq!(unpadded_name(&padded_name("").expect("the empty name fits")), "");
    }

    #[test]
    fn a_record_survives_the_way_through_bytes() {
        let bound = Bound { min_segments: 2, max_segments: 3, max_pacing_rate: Rate::from_bps(32) };
        let leased = bound.leased(Time::ZERO, Span::from_nanos(1));
        assert_eq!(leased.bytes().len(), 24);
        assert_eq!(LeasedBound::from_bytes(leased.bytes()), Some(leased));
        assert_eq!(LeasedBound::from_bytes(&leased.bytes()[..23]), None);
    }
}
