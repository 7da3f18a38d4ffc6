//! The structs shared by programs and loader: those of `bpf/*intf.h`, generated from the headers by build.rs, so the
//! two cannot differ. zerocopy's derives refuse a struct that has padding.

/// As bindgen writes it, with C's names and comments.
#[allow(dead_code, non_camel_case_types, non_upper_case_globals, unreachable_pub, missing_docs, clippy::all)]
mod bindings {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

pub(crate) use bindings::{
    LH_ABOUT_MAGIC, LH_BOUNDS_MAX, LH_CGROUP_EXCLUDED, LH_CGROUP_WITHIN, LH_ESCAPES_AGENT, LH_ESCAPES_CHOSEN,
    LH_ESCAPES_LOCKED, LH_ESCAPES_YET, LH_FAR_ENDS_MAX, LH_LEAVE_MAX, LH_LEFT_CGROUP, LH_LEFT_NAME, LH_LEFT_RULE,
    LH_NAME_LENGTH, LH_PACE_AT_ONCE, LH_PACE_OWN, LH_PERMIT_PORT_BITS, LH_PERMITS_MAX, LH_ROUTES_MAX, LH_RULES_MAX,
    LH_TUNNELS_MAX, LH_VERSION_LENGTH, lh_about as About, lh_cgroup as Cgroup, lh_claim as Claimed,
    lh_claims as Claims, lh_control as Control, lh_counters as Counts, lh_destination as Destination,
    lh_endpoints as Endpoints, lh_far_end as FarEnd, lh_flow as Flow, lh_flow_record as FlowRecord,
    lh_heard_counters as HeardCounts, lh_law_counters as LawCounts, lh_permit_key as PermitKey,
    lh_report_settings as ReportSettings, lh_reporter_counters as ReportCounts, lh_sample as Record,
    lh_settings as Settings, lh_state_change as Change, tcp_congestion_ops as ControlOps,
};

use std::ffi::c_char;
use zerocopy::{FromBytes, IntoBytes};

/// A congestion control's name in the kernel, zero-padded.
pub(crate) type Name = [c_char; LH_NAME_LENGTH as usize];

/// The most cgroups that the loader names.
pub(crate) const CGROUPS_MAX: usize = bindings::LH_CGROUPS_MAX as usize;
/// The most excluded cgroups.
pub(crate) const EXCLUDED_CGROUPS_MAX: usize = 256;

impl About {
    /// Whether the structs are as long as ours.
    pub(crate) fn fits(&self) -> bool {
        let theirs = [self.about_bytes, self.flow_bytes, self.record_bytes, self.counters_bytes, self.heard_bytes];
        let ours = [
            size_of::<Self>(),
            size_of::<Flow>(),
            size_of::<FlowRecord>(),
            size_of::<LawCounts>(),
            size_of::<HeardCounts>(),
        ];
        self.magic == LH_ABOUT_MAGIC && theirs == ours.map(|bytes| bytes as u32)
    }
}

/// The value at the start of `bytes`; `None` if they are too few.
pub(crate) fn first<T: FromBytes>(bytes: &[u8]) -> Option<T> {
    T::read_from_prefix(bytes).ok().map(|(value, _)| value)
}

/// A name as the kernel stores it; `None` if it does not fit.
pub(crate) fn padded_name(name: &str) -> Option<Name> {
    let mut padded = [0u8; LH_NAME_LENGTH as usize];
    // the last byte stays zero
    padded.get_mut(..name.len()).filter(|room| room.len() < LH_NAME_LENGTH as usize)?.copy_from_slice(name.as_bytes());
    Some(zerocopy::transmute!(padded))
}

/// The text of a zero-padded name.
pub(crate) fn unpadded_name(padded: &[c_char]) -> String {
    let padded = padded.as_bytes();
    let end = padded.iter().position(|&byte| byte == 0).unwrap_or(padded.len());
    String::from_utf8_lossy(&padded[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_fifteen_letters_fits_and_one_of_sixteen_does_not() {
        let padded = padded_name("abcdefghijklmno").expect("15 letters and a zero are 16 bytes");
        assert_eq!(unpadded_name(&padded), "abcdefghijklmno");
        assert_eq!(padded_name("abcdefghijklmnop"), None);
        assert_eq!(unpadded_name(&padded_name("").expect("the empty name fits")), "");
    }
}
