//! Beacons as released agents sent them, recorded from their network. This version hears those of the two releases before
//! it, and they hear what it sends, or docs/models/beacon.md says that they do not.
//!
//! A release adds what its agents send; what is older than two releases may go.
#![allow(missing_docs)]

use lasthop_peers::beacon::{Beacon, GroupKey, Receiver};
use lasthop_peers::group::Label;
use lasthop_peers::{PeerId, Reject, Report, Word};
use lasthop_units::Span;

/// A secret of the group of the tagged beacon, whose tag Python's `hmac` made.
const SECRET: &[u8] = b"a secret of the whole group";

struct Recorded {
    hex: &'static str,
    meant: Beacon,
    tagged: bool,
}

fn here() -> Label {
    Label::Gateway([10, 77, 0, 254].into())
}

/// 0.1.0, layout 3: a host that waits, one that sends, one under control with a word of `lasthop`, that one waiting, and
/// that one with a group key.
fn recorded() -> [Recorded; 5] {
    let beacon = |sender, timestamp_ns, interval_ms, report| Beacon {
        sender: PeerId(sender),
        timestamp_ns,
        group: here().id(),
        interval: Span::from_millis(interval_ms),
        report,
    };
    let report = |busy_flows, srtt_us, min_rtt_us| Report {
        busy_flows,
        srtt: Some(Span::from_micros(srtt_us)),
        min_rtt: Some(Span::from_micros(min_rtt_us)),
        ..Report::default()
    };
    let word = |of_byte_5| Some(Word::new(2, [0, 0, 0, 0, 0, of_byte_5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    let told =
        beacon(0xa5ac_2c0f_3efe_9430, 0x18eb_574d_5391_c671, 686, Report { word: word(12), ..report(40, 13_596, 6) });
    [
        Recorded {
            hex: "4c484f50 0380 0000 57b8066c42c501e8 18eb573f4c7b0963 00000000 00000000 f8d2cdbbc54d8f29 0000020d",
            meant: beacon(
                0x57b8_066c_42c5_01e8,
                0x18eb_573f_4c7b_0963,
                525,
                Report { waiting: true, ..Report::default() },
            ),
            tagged: false,
        },
        Recorded {
            hex: "4c484f50 0300 0001 408ca85d72f30471 18eb573f6d64fa28 0000218a 00000006 f8d2cdbbc54d8f29 0000018f",
            meant: beacon(0x408c_a85d_72f3_0471, 0x18eb_573f_6d64_fa28, 399, report(1, 8586, 6)),
            tagged: false,
        },
        Recorded {
            hex: "4c484f50 0310 0028 a5ac2c0f3efe9430 18eb574d5391c671 0000351c 00000006 f8d2cdbbc54d8f29 000002ae \
                  00000000000c00000000000000000000",
            meant: told,
            tagged: false,
        },
        Recorded {
            hex: "4c484f50 0390 0003 a5ac2c0f3efe9430 18eb574d7c8a2473 00000039 00000016 f8d2cdbbc54d8f29 00000279 \
                  00000000000800000000000000000000",
            meant: beacon(
                0xa5ac_2c0f_3efe_9430,
                0x18eb_574d_7c8a_2473,
                633,
                Report { waiting: true, word: word(8), ..report(3, 57, 22) },
            ),
            tagged: false,
        },
        Recorded {
            hex: "4c484f50 0311 0028 a5ac2c0f3efe9430 18eb574d5391c671 0000351c 00000006 f8d2cdbbc54d8f29 000002ae \
                  00000000000c00000000000000000000 7fb09ec3882cedc824a7d79ca292d917",
            meant: told,
            tagged: true,
        },
    ]
}

impl Recorded {
    fn bytes(&self) -> Vec<u8> {
        let hex: String = self.hex.split(' ').collect();
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
        (0..hex.len()).step_by(2).map(byte).collect()
    }

    fn key(&self) -> Option<GroupKey> {
        self.tagged.then(|| GroupKey::new(SECRET).expect("long enough"))
    }

    fn heard(&self, datagram: &[u8]) -> Result<Beacon, Reject> {
        Receiver::new(here().id(), self.key()).on_datagram(self.meant.timestamp_ns, datagram)
    }
}

#[test]
fn what_released_agents_sent_is_heard_with_its_meaning() {
    for recorded in recorded() {
        assert_eq!(recorded.heard(&recorded.bytes()), Ok(recorded.meant), "{}", recorded.hex);
    }
}

#[test]
fn released_agents_hear_what_is_sent_now() {
    // They hear what they would send; so what they meant must become their bytes.
    for recorded in recorded() {
        assert_eq!(recorded.meant.encode(recorded.key().as_ref()), recorded.bytes(), "{}", recorded.hex);
    }
}

#[test]
fn the_layouts_before_the_first_release_are_told_apart_by_their_number() {
    for recorded in recorded() {
        for version in [1, 2] {
            let mut datagram = recorded.bytes();
            datagram[4] = version;
            assert_eq!(recorded.heard(&datagram), Err(Reject::Version), "version {version}: {}", recorded.hex);
        }
    }
}
