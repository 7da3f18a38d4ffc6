//! The TCP option that carries a link report: the Rust face of the codec in `laws/link_report.h`, which the kernel's
//! programs use.
//!
//! ```text
//!  0               1               2               3
//! +---------------+---------------+---------------+---------------+
//! |   kind 253    |   length 10   |           ExID 0x6c68         |
//! +-------+-------+-------+-------+---------------+---------------+
//! |version| flags |   0   | valid |           bandwidth           |
//! +-------+-------+-------+-------+---------------+---------------+
//! |          error rate           |
//! +-------------------------------+
//! ```
//!
//! Bandwidth (kbit/s) and error rate (millionths) are mantissa << exponent, 11 and 5 bits. Both are rounded down by
//! less than 1/1024; 0xffff is unknown. It is valid for 2^valid seconds. Negotiation and flags:
//! `docs/models/link-report.md`.
//!
//! ```
//! use lasthop_laws::{LinkReport, option::{self, Flags}};
//! use lasthop_units::{Probability, Rate, Span};
//!
//! let report = LinkReport {
//!     bandwidth: Some(Rate::from_mbps(5.5)),
//!     error_rate: Some(Probability::new(0.005).unwrap()),
//!     validity: Span::from_secs(60),
//! };
//! let octets = option::encode(&report, Flags::default());
//! // 5500 = 1375 << 2, 5000 = 1250 << 2, and 32 of the 60 seconds
//! assert_eq!(octets, [253, 10, 0x6c, 0x68, 0x10, 5, 0xab, 0xe2, 0x9c, 0x42]);
//! let told = LinkReport { validity: Span::from_secs(32), ..report };
//! assert_eq!(option::parse(&octets), Ok((told, Flags::default())));
//! ```

use crate::c;
use crate::{LinkReport, Reported};
use lasthop_units::{Probability, Rate, Span};

/// The length of the option. On the wire it takes 12, as options are padded to words of four.
pub const OCTETS: usize = c::LH_REPORT_OCTETS as usize;

/// The flags of an option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// A server's answer: the option is known.
    pub answer: bool,
    /// With `answer`: the server kept nothing of the SYN (it sent a SYN cookie) and wants the report again.
    pub resend: bool,
}

/// Why an option is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// Another option, or another experiment with the same kind.
    #[error("another option")]
    NotOurs,
    /// Too short, a bandwidth of 0, an error rate above 1, or a number beyond 32 bits.
    #[error("a malformed link report")]
    Malformed,
    /// A link report of another version.
    #[error("a link report of another version")]
    OtherVersion,
}

/// The option. A bandwidth below 1 kbit/s is encoded as unknown, one beyond 32 bits as the largest. A validity below
/// one second becomes one second.
pub fn encode(report: &LinkReport, flags: Flags) -> [u8; OCTETS] {
    let told = Reported::from(*report);
    let answer = if flags.answer { c::LH_REPORT_ANSWER } else { 0 };
    let resend = if flags.resend { c::LH_REPORT_RESEND } else { 0 };
    let mut option = [0; OCTETS];
    // SAFETY: the C function writes LH_REPORT_OCTETS octets, which `option` has, and keeps neither pointer.
    #[allow(unsafe_code)]
    unsafe {
        c::lh_report_write(option.as_mut_ptr(), &raw const told, answer | resend);
    }
    option
}

/// Reads an option, from its kind on. Octets past the tenth belong to later versions and are ignored.
///
/// # Errors
/// [`Unread`]: not ours, or invalid.
pub fn parse(option: &[u8]) -> Result<(LinkReport, Flags), Unread> {
    let mut told = Reported::default();
    let length = u32::try_from(option.len()).unwrap_or(u32::MAX);
    // SAFETY: the C function reads at most `length` octets from `option`, and keeps neither pointer.
    #[allow(unsafe_code)]
    let outcome = unsafe { c::lh_report_parse(option.as_ptr(), length, &raw mut told) };
    match outcome {
        c::LH_REPORT_GOOD => {}
        c::LH_REPORT_NOT_OURS => return Err(Unread::NotOurs),
        c::LH_REPORT_MALFORMED => return Err(Unread::Malformed),
        _ => return Err(Unread::OtherVersion),
    }
    // SAFETY: a valid option has more than five octets, and only the fifth is read.
    #[allow(unsafe_code)]
    let flags = unsafe { c::lh_report_flags(option.as_ptr()) };
    let error = f64::from(told.error_ppm) / 1e6;
    let report = LinkReport {
        bandwidth: (told.bandwidth_kbps != 0).then(|| Rate::from_bps(u64::from(told.bandwidth_kbps) * 1000)),
        error_rate: (told.error_ppm != Reported::ERROR_UNKNOWN)
            .then(|| Probability::new(error).expect("the parser lets no more than a million millionths pass")),
        validity: Span::from_secs(told.valid_s.into()),
    };
    let has = |flag: u32| flags & flag != 0;
    Ok((report, Flags { answer: has(c::LH_REPORT_ANSWER), resend: has(c::LH_REPORT_RESEND) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn report(kbps: Option<u64>, ppm: Option<u32>, seconds: u64) -> LinkReport {
        LinkReport {
            bandwidth: kbps.map(|kbps| Rate::from_bps(kbps * 1000)),
            error_rate: ppm.map(|ppm| Probability::new(f64::from(ppm) / 1e6).expect("at most 1")),
            validity: Span::from_secs(seconds),
        }
    }

    fn there_and_back(report: &LinkReport) -> LinkReport {
        parse(&encode(report, Flags::default())).expect("what is written is read").0
    }

    #[test]
    fn worked_numbers() {
        // mantissa << 5 | exponent, by hand
        for (kbps, ppm, octets) in [
            // 1 << 0 and 0 << 0
            (Some(1), Some(0), [0x00, 0x20, 0x00, 0x00]),
            // 2047 << 0 = 0xffe0; 1 << 0
            (Some(2047), Some(1), [0xff, 0xe0, 0x00, 0x20]),
            // 2048 = 1024 << 1 = 0x8001; 2049 is encoded as 2048
            (Some(2048), Some(2049), [0x80, 0x01, 0x80, 0x01]),
            // 54,000 = 1687.5 << 5, so 1687 = 0x697 -> 0xd2e5; 1,000,000 = 1953.1 << 9, so 1953 = 0x7a1 -> 0xf429
            (Some(54_000), Some(1_000_000), [0xd2, 0xe5, 0xf4, 0x29]),
            // 2^32 - 1 = 2047.99 << 21, so 2047 -> 0xffe0 | 21
            (Some(u64::from(u32::MAX)), None, [0xff, 0xf5, 0xff, 0xff]),
            (None, Some(5000), [0xff, 0xff, 0x9c, 0x42]),
        ] {
            assert_eq!(encode(&report(kbps, ppm, 1), Flags::default())[6..], octets, "{kbps:?}, {ppm:?}");
        }
    }

    #[test]
    fn the_validity_is_a_power_of_two_of_seconds() {
        for (seconds, told) in [(0, 1), (1, 1), (2, 2), (3, 2), (60, 32), (64, 64), (32_768, 32_768), (1 << 30, 32_768)]
        {
            assert_eq!(there_and_back(&report(Some(1), None, seconds)).validity, Span::from_secs(told), "{seconds}");
        }
        // the high four bits are reserved
        let mut option = encode(&report(Some(1), None, 60), Flags::default());
        option[5] |= 0xf0;
        assert_eq!(parse(&option).map(|(report, _)| report.validity), Ok(Span::from_secs(32)));
    }

    #[test]
    fn the_ends_of_what_can_be_told() {
        assert_eq!(there_and_back(&report(None, None, 8)), report(None, None, 8));
        // below 1 kbit/s
        let slow = LinkReport { bandwidth: Some(Rate::from_bps(999)), ..report(None, None, 1) };
        assert_eq!(there_and_back(&slow).bandwidth, None);
        // 5 Tbit/s are more than 32 bits of kbit/s
        assert_eq!(there_and_back(&report(Some(5_000_000_000), None, 1)), report(Some(2047 << 21), None, 1));
    }

    #[test]
    fn flags_are_carried() {
        for (answer, resend) in [(false, false), (true, false), (true, true)] {
            let flags = Flags { answer, resend };
            assert_eq!(parse(&encode(&report(None, None, 1), flags)).map(|(_, flags)| flags), Ok(flags));
        }
    }

    #[test]
    fn a_length_that_does_not_hold_a_report_is_malformed() {
        let whole: Vec<u8> = encode(&report(Some(5500), Some(5000), 60), Flags::default()).into_iter().collect();
        for said in 0..=255 {
            for length in 0..=40_usize {
                let mut option = whole.clone();
                option.resize(length, 0xee);
                if let Some(octet) = option.get_mut(1) {
                    *octet = said;
                }
                let expected = match length {
                    0..4 => Err(Unread::NotOurs),
                    4..10 => Err(Unread::Malformed),
                    _ if said < 10 => Err(Unread::Malformed),
                    // a later version's octets follow ours
                    _ => Ok(report(Some(5500), Some(5000), 32)),
                };
                assert_eq!(parse(&option).map(|(report, _)| report), expected, "{length} octets that say {said}");
            }
        }
    }

    #[test]
    fn another_version_is_told_apart_whatever_its_length() {
        let mut option = encode(&report(Some(5500), Some(5000), 60), Flags::default());
        for version in (0..16).filter(|&version| version != 1) {
            option[4] = version << 4;
            for length in 5..=10 {
                assert_eq!(parse(&option[..length]), Err(Unread::OtherVersion), "version {version}, {length} octets");
            }
        }
    }

    #[test]
    fn impossible_values_are_malformed() {
        let option = encode(&report(Some(5500), Some(5000), 60), Flags::default());
        let with = |at: usize, value: u16| {
            let mut option = option;
            option[at..at + 2].copy_from_slice(&value.to_be_bytes());
            parse(&option).map(|_| ())
        };
        for exponent in 0..32 {
            assert_eq!(with(6, exponent), Err(Unread::Malformed), "a bandwidth of 0 << {exponent}");
            assert_eq!(with(8, exponent), Ok(()), "an error rate of 0 << {exponent}");
        }
        // 2047 << 22 and 1024 << 22 = 2^32 need more than 32 bits, 1023 << 22 does not
        assert_eq!(with(6, 2047 << 5 | 22), Err(Unread::Malformed));
        assert_eq!(with(6, 1024 << 5 | 22), Err(Unread::Malformed));
        assert_eq!(with(6, 1023 << 5 | 22), Ok(()));
        // 1954 << 9 = 1,000,448 millionths, 1953 << 9 = 999,936
        assert_eq!(with(8, 1954 << 5 | 9), Err(Unread::Malformed));
        assert_eq!(with(8, 1953 << 5 | 9), Ok(()));
        assert_eq!(with(8, 1 << 5 | 31), Err(Unread::Malformed));
    }

    #[test]
    fn other_options_are_not_ours() {
        let option = encode(&report(Some(5500), Some(5000), 60), Flags::default());
        for (at, value) in [(0, 254), (0, 8), (2, 0x6d), (3, 0x69)] {
            let mut other = option;
            other[at] = value;
            assert_eq!(parse(&other), Err(Unread::NotOurs));
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_at_most_what_was_said_and_hardly_less(
            kbps in prop_oneof![1..=3000_u64, 1..=u64::from(u32::MAX)],
            ppm in 0..=1_000_000_u32,
            seconds in 1..=40_000_u64,
        ) {
            let said = report(Some(kbps), Some(ppm), seconds);
            let read = there_and_back(&said);
            let read_kbps = read.bandwidth.expect("known").as_bps() / 1000;
            prop_assert!(read_kbps <= kbps && (kbps - read_kbps) * 1024 <= kbps, "{} for {}", read_kbps, kbps);
            let read_ppm = Reported::from(read).error_ppm;
            prop_assert!(read_ppm <= ppm && (ppm - read_ppm) * 1024 <= ppm, "{} for {}", read_ppm, ppm);
            let read_s = read.validity.as_nanos() / 1_000_000_000;
            prop_assert!(read_s <= seconds.min(32_768) && 2 * read_s > seconds.min(32_768));
            // a decoded value is encoded exactly
            prop_assert_eq!(there_and_back(&read), read);
        }

        #[test]
        fn any_octets_are_read_or_refused_and_what_is_read_can_be_told(
            mut octets in prop::collection::vec(any::<u8>(), 0..=40), ours in any::<bool>(),
        ) {
            if ours {
                for (octet, known) in octets.iter_mut().zip([253, 10, 0x6c, 0x68, 0x10]) {
                    *octet = known;
                }
            }
            if let Ok((report, _)) = parse(&octets) {
                prop_assert_eq!(there_and_back(&report), report);
            }
        }
    }
}
