//! The keys of `[[hosts.flows]]` that say what its application sends. A key of one kind alone is declared in its file.

use crate::kinds::{KindName, OPEN, OwnKeys, TrafficKind, users};
use lasthop_keys::Preset::Absent;
use lasthop_keys::{
    DocumentError, Keys, OTHERWISE, Of, Part, Section, When, by_word, bytes, choice, key, keys, kib, milliseconds,
    number, seconds,
};
use lasthop_units::{Bytes, Span};

/// The key of the kind.
pub(crate) const KIND: &str = "kind";

keys! {
    /// The kind and its numbers.
    pub(crate) struct TrafficKeys {
        /// What the application sends ([kinds](#kinds)).
        kind: KindName = choice(KindName::WORDS), "bulk";
        /// The size in KiB: *bulk:* of all data, behind which the connection closes; without it, never. *transfers:* of each; must be given
        /// there, if nothing else says the [sizes](#sizes-of-transfers). *quic:* of each; without it, one connection with data without end.
        transfer_kib: Option<Bytes> = kib(1, 1 << 30), Absent;
        /// Mean length of a while without data, in seconds, or of the pause between two transfers; exponential.
        off_s: Span = seconds(0.0, 86_400.0), 1.0, when OPEN.map(When::NotGiven).to_vec();
        /// The receiver asks for each transfer or chunk with this many bytes, and the sender answers. Without it, the sender of
        /// transfers begins by itself.
        request_bytes: Option<Bytes> = bytes(1, 65_536), by_word(KIND, [("video", 400)]);
        /// Time from one message or datagram to the next, in milliseconds: *interactive:* exponential with this mean. *ping:* always
        /// the same, usually as flent's.
        gap_ms: Span = milliseconds(1e-3, 86_400_000.0), by_word(KIND, [("ping", 200.0), (OTHERWISE, 1_000.0)]);
        /// Jitter of the sender in microseconds: each packet but the first leaves up to this much before its time,
        /// at random ([why](#jitter-of-senders)).
        // The timer slack of Linux, prctl(2) PR_SET_TIMERSLACK: so much later than asked for may a sleep end.
        jitter_us: Span = number(0.0, 1_000_000.0).map(|micros| Span::from_secs_f64(micros / 1e6)), 50.0;
        /// Size of each IP packet in bytes, its 28 bytes of headers included: at least 44, with "saturated" 28. Usually as of
        /// ping(8), and as of G.711 over RTP in 20 ms. 2296 is what an 802.11 frame can carry.
        packet_bytes: Bytes = bytes(28, 2_296), by_word(KIND, [("ping", 84), ("constant", 200), (OTHERWISE, 1_500)]);
        with {
            /// The keys of one kind each.
            own: OwnKeys;
        }
        adjust mark;
    }
}

/// Marks each key with the kinds that use it.
fn mark(section: &mut Section) {
    for key in section.keys.iter_mut().filter(|key| key.name != key!(TrafficKeys, kind)) {
        let kinds = users(key.name);
        key.meaning = format!("*{}* {}", kinds.join(", "), key.meaning).leak();
        key.when.insert(0, When::Is(Of::Same, KIND, kinds));
    }
}

impl Keys for TrafficKind {
    fn section() -> &'static Section {
        TrafficKeys::section()
    }

    fn read(part: &Part<'_>) -> Result<Self, DocumentError> {
        Self::of(&TrafficKeys::read(part)?, part)
    }
}
