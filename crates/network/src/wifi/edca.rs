//! The access categories of EDCA: which packets are in which, and how each contends.
//!
//! | category | CWmin | CWmax | AIFSN | TXOP limit (us) | the access point's own |
//! | --- | --- | --- | --- | --- | --- |
//! | background | 15 | 1023 | 7 | 0 | the same |
//! | best effort | 15 | 1023 | 3 | 0 | CWmax 63 |
//! | video | 7 | 15 | 2 | 3008 | AIFSN 1, TXOP 3000 |
//! | voice | 3 | 7 | 2 | 1504 | AIFSN 1, TXOP 1500 |
//!
//! A packet's DSCP gives its user priority as in Linux (6.8 and later): its three high bits, but for the values where
//! RFC 8325 wants another. User priorities 1 and 2 are background, 0 and 3 best effort, 4 and 5 video, 6 and 7 voice.
//! A category is one stream of sequence numbers here; in the standard each of its user priorities is one.
//!
//! References: 802.11-2020 §10.23.2 (EDCA), table 10-1 (user priorities); RFC 8325 §4; Linux, net/wireless/util.c
//! (`cfg80211_classify8021d`); hostapd, src/ap/ap_config.c (parameters), read for the facts, not copied.

use super::constants::{ContentionWindow, OFDM_WINDOW};
use lasthop_units::Span;

/// An access category. Ordered by priority.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Category {
    Background,
    BestEffort,
    Video,
    Voice,
}

/// How a category contends at one node.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Parameters {
    pub(super) window: ContentionWindow,
    pub(super) aifsn: u8,
    /// Zero: one PPDU, however long.
    pub(super) txop: Span,
}

/// AIFSN of best effort.
pub(super) const USUAL_AIFSN: u8 = 3;

impl Category {
    /// The category of packets with this DSCP, 0..=63.
    pub(super) const fn of_dscp(dscp: u8) -> Self {
        let user_priority = match dscp {
            // CS2 (operations), AF11 to AF13 (high throughput), AF21 to AF23 (low latency data).
            16 | 10 | 12 | 14 | 18 | 20 | 22 => 0,
            // CS3 (broadcast video), AF31 to AF33 (streaming).
            24 | 26 | 28 | 30 => 4,
            // Voice-admit, EF (telephony).
            44 | 46 => 6,
            // CS6 (network control).
            48 => 7,
            other => other >> 3,
        };
        Self::of_user_priority(user_priority)
    }

    /// The category of a user priority, 0..=7 (802.11-2020 table 10-1).
    pub(super) const fn of_user_priority(user_priority: u8) -> Self {
        match user_priority {
            1 | 2 => Self::Background,
            0 | 3 => Self::BestEffort,
            4 | 5 => Self::Video,
            _ => Self::Voice,
        }
    }

    /// In the order in which they are kept: best effort first, which all nodes have.
    pub(super) const BY_PLACE: [Self; 4] = [Self::BestEffort, Self::Background, Self::Video, Self::Voice];

    /// Its index there.
    pub(super) const fn place(self) -> usize {
        match self {
            Self::BestEffort => 0,
            Self::Background => 1,
            Self::Video => 2,
            Self::Voice => 3,
        }
    }

    /// The name of its random streams.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Background => "background",
            Self::BestEffort => "best-effort",
            Self::Video => "video",
            Self::Voice => "voice",
        }
    }

    /// The parameters of a station, or of the access point itself; for best effort there, CWmax and TXOP are the
    /// configuration's.
    pub(super) fn parameters(self, at_access_point: bool) -> Parameters {
        let parameters = |min, max, aifsn, txop_us| Parameters {
            window: ContentionWindow { min, max },
            aifsn,
            txop: Span::from_micros(txop_us),
        };
        match (self, at_access_point) {
            (Self::Background, _) => Parameters { window: OFDM_WINDOW, aifsn: 7, txop: Span::ZERO },
            (Self::BestEffort, _) => Parameters { window: OFDM_WINDOW, aifsn: USUAL_AIFSN, txop: Span::ZERO },
            (Self::Video, false) => parameters(7, 15, 2, 3008),
            (Self::Video, true) => parameters(7, 15, 1, 3000),
            (Self::Voice, false) => parameters(3, 7, 2, 1504),
            (Self::Voice, true) => parameters(3, 7, 1, 1500),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dscp_has_the_category_that_rfc_8325_gives_it() {
        use Category::{Background, BestEffort, Video, Voice};
        // RFC 8325 §4.3, figure 1; LE (1) has no line of its own in Linux.
        for (dscps, category) in [
            (&[0, 1, 16, 10, 12, 14, 18, 20, 22][..], BestEffort),
            (&[8][..], Background),
            (&[24, 26, 28, 30, 32, 34, 36, 38, 40][..], Video),
            (&[44, 46, 48, 56][..], Voice),
        ] {
            for &dscp in dscps {
                assert_eq!(Category::of_dscp(dscp), category, "DSCP {dscp}");
            }
        }
    }
}
