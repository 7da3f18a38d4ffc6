//! The kinds of traffic. A kind is a file, its `mod`, and a line in the list below (docs/guide/new-parts.md).

mod bulk;
mod constant;
#[cfg(test)]
#[path = "../../tests/examples/heartbeat.rs"]
mod heartbeat;
mod interactive;
#[macro_use]
mod list;
mod on_off;
mod ping;
mod player;
mod quic;
mod saturated;
mod transfers;
mod video;

pub use bulk::Bulk;
pub use constant::Constant;
pub use interactive::Interactive;
pub use on_off::OnOff;
pub use ping::Ping;
pub use player::VideoResult;
pub use quic::{Quic, QuicLaw};
pub use saturated::Saturated;
pub(crate) use transfers::OPEN;
pub use transfers::{Pace, Transfers};
pub use video::{Ladder, Video};

pub(crate) use crate::desk::Desk;
pub(crate) use crate::keys::TrafficKeys;
use constant::ConstantKeys;
use enum_dispatch::enum_dispatch;
#[cfg(test)]
use heartbeat::Heartbeat;
use interactive::InteractiveKeys;
pub(crate) use lasthop_keys::{DocumentError, Part};
use lasthop_units::{Bytes, Span, Time};
use on_off::OnOffKeys;
use quic::QuicKeys;
use rand_chacha::ChaCha8Rng;
use transfers::TransfersKeys;
use video::VideoKeys;

kinds! {
    /// As much as goes, or `transfer_kib`.
    Bulk = "bulk", over Tcp, in Transfers;
    /// As much as goes, by turns with nothing.
    OnOff(on_off: OnOffKeys) = "on-off", over Tcp, in Streams;
    /// Small messages, as of a person who types.
    Interactive(interactive: InteractiveKeys) = "interactive", over Tcp, in Messages;
    /// Pieces of one size, or of [many](#sizes-of-transfers), with pauses or [as they arrive](#open-loop), each over a new connection.
    Transfers(transfers: TransfersKeys) = "transfers", over Tcp, in Transfers;
    /// A packet every `gap_ms`, which the other end answers with one of the same size.
    Ping = "ping", over Udp, in Pings;
    /// Packets of one size at a constant rate.
    Constant(constant: ConstantKeys) = "constant", over Udp, in Datagrams;
    /// Chunks of an adaptive video, over one connection.
    Video(video: VideoKeys) = "video", over Tcp, in Chunks;
    /// As many packets as keep its sender's queue full; upwards only.
    Saturated = "saturated", over Udp, in Streams;
    /// As much as goes; or with `transfer_kib` pieces with pauses, each over a new connection.
    Quic(quic: QuicKeys) = "quic", over Quic, in Transfers;
    /// The example of docs/guide/new-parts.md.
    #[cfg(test)]
    Heartbeat = "heartbeat", over Udp, in Datagrams;
}

/// What an application does at which time, and what others need to know of it. Files of kinds have beside it:
/// - `const KEYS`: the shared keys of `keys.rs` that it uses;
/// - `fn read`: itself with the numbers of its keys, or what is wrong with these.
#[enum_dispatch]
pub trait Kind {
    /// Its start has come, or the time for its next connection. It was due at `due`, and kernel hosts are later than that:
    /// what has a rate counts from there.
    fn begin(&mut self, due: Time, now: Time, desk: &mut Desk);

    /// The time that it asked for with `wake_at` has come.
    fn wake(&mut self, due: Time, now: Time, desk: &mut Desk) {
        self.begin(due, now, desk);
    }

    /// The end has come, and it takes no further step. What is written by then is still sent.
    fn stop(&mut self, desk: &mut Desk) {
        desk.close();
    }

    /// A message has been read to its end.
    fn on_read(&mut self, _now: Time, _desk: &mut Desk) {}

    /// Its connection gave up.
    fn on_failed(&mut self, _now: Time, _desk: &mut Desk) {}

    /// Whether it opens the next connection where one failed.
    fn goes_on(&self) -> bool {
        false
    }

    /// Whether the receiver asks for the data.
    fn asks(&self) -> bool {
        false
    }

    /// Whether it sends bulk data over one TCP or QUIC connection, in periods, up to a size or without end.
    fn is_greedy(&self) -> bool {
        false
    }

    /// Whether it has more to send from its start to its end.
    fn is_endless(&self) -> bool {
        false
    }

    /// Its transfers from its start until then, each with its own start: connections beside each other, each with the kind that its
    /// application has. `None`: it has one connection at a time, which it opens itself.
    fn arrivals(&self, _from: Time, _until: Time, _stream: &mut ChaCha8Rng) -> Option<Vec<(Time, TrafficKind)>> {
        None
    }

    /// How many these are on the mean.
    fn expected_arrivals(&self, _from: Time, _until: Time) -> Option<f64> {
        None
    }

    /// The size of its IP packets, if they are its own and not those of TCP or QUIC.
    fn packet(&self) -> Option<Bytes> {
        None
    }

    /// The mean time from one message or datagram to the next, if it has one.
    fn gap(&self) -> Option<Span> {
        None
    }

    /// The congestion control of its QUIC connections.
    fn quic_law(&self) -> Option<QuicLaw> {
        None
    }

    /// What a viewer has seen between these two moments.
    fn video(&self, _from: Time, _until: Time) -> Option<VideoResult> {
        None
    }
}

/// What the data of a kind travel over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP connections.
    Tcp,
    /// QUIC connections.
    Quic,
    /// UDP without any control.
    Udp,
}

/// The pieces of a kind that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// None: only what came in all. Over UDP its sender's queue is kept full.
    Streams,
    /// Messages, with the time until each was read.
    Messages,
    /// Transfers with the same; none where it is [endless](Kind::is_endless).
    Transfers,
    /// Chunks of a video with the same, and what its viewer saw.
    Chunks,
    /// Datagrams with one-way delay, jitter and loss.
    Datagrams,
    /// Datagrams that are answered, with round trips, jitter and loss.
    Pings,
}

/// The smallest packet of datagrams that are measured: headers, its number, and when it was sent.
pub const LEAST_PACKET: Bytes = Bytes::new(28 + 16);

/// The size of datagrams that are measured.
pub(crate) fn measured_packet(keys: &TrafficKeys, part: &Part<'_>) -> Result<Bytes, DocumentError> {
    let packet = keys.packet_bytes;
    if packet < LEAST_PACKET {
        let problem = format!("{} is too small: each packet carries its number and its time", packet.get());
        let accepted = format!("a whole number from {} to 2296", LEAST_PACKET.get());
        return Err(part.error(lasthop_keys::key!(TrafficKeys, packet_bytes), problem, accepted));
    }
    Ok(packet)
}

impl KindName {
    /// The kind of this name.
    pub fn of(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind)
    }

    /// Whether kernel hosts run it.
    pub fn is_of_kernel_hosts(self) -> bool {
        match self.transport() {
            Transport::Tcp => true,
            Transport::Quic => false,
            Transport::Udp => self.is_datagrams(),
        }
    }

    /// Whether it sends single datagrams whose way is measured.
    pub fn is_datagrams(self) -> bool {
        matches!(self.pieces(), Pieces::Datagrams | Pieces::Pings)
    }
}

impl TrafficKind {
    /// Its name in files.
    pub const fn as_str(&self) -> &'static str {
        self.name().as_str()
    }

    /// Whether it sends pieces of a given size, with a completion time each.
    pub fn is_transfer(&self) -> bool {
        self.name().pieces() == Pieces::Transfers && !self.is_endless()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Application};
    use lasthop_keys::{Document, Keys as _};
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    fn kind(text: &str) -> Result<TrafficKind, String> {
        let table = text.parse().expect("TOML");
        let document = Document::from_table("a flow", table, &[], TrafficKind::section());
        document.and_then(|document| TrafficKind::read(&document.top())).map_err(|error| error.to_string())
    }

    #[test]
    fn the_example_sends_a_datagram_each_minute_from_when_it_was_due() {
        let heartbeat = kind("kind = \"heartbeat\"\npacket_bytes = 100").expect("a kind");
        let mut application = Application::new(heartbeat, Time::ZERO, None, ChaCha8Rng::seed_from_u64(1));
        let mut actions = Vec::new();
        for number in 0..3 {
            let due = application.next_at();
            assert_eq!(due, Time::ZERO + Span::from_secs(60 * number));
            // It is late.
            application.act(due + Span::from_millis(7), &mut actions);
            assert_eq!(std::mem::take(&mut actions), [Action::Send { number, packet: Bytes::new(100) }]);
        }
    }

    #[test]
    fn the_example_is_in_the_messages_and_the_marks_of_the_keys_that_it_uses() {
        let error = kind("kind = \"heartbeats\"").expect_err("no kind");
        assert!(error.contains("\"heartbeat\""), "{error}");
        let error = kind("kind = \"heartbeat\"\npacket_bytes = 43").expect_err("too small");
        assert!(error.contains("packet_bytes") && error.contains("44"), "{error}");
        let key = TrafficKind::section().key("packet_bytes").expect("a key");
        assert!(key.meaning.starts_with("*ping, constant, saturated, heartbeat* "), "{}", key.meaning);
    }

    #[test]
    fn every_shared_key_that_a_kind_names_is_there_and_every_key_has_a_kind() {
        let section = TrafficKind::section();
        for key in section.keys.iter().filter(|key| key.name != "kind") {
            assert!(!users(key.name).is_empty(), "{}", key.name);
        }
        kinds_keys().for_each(|name| assert!(section.key(name).is_some(), "{name}"));
    }

    #[test]
    fn the_page_about_new_parts_has_the_example_as_it_is_compiled() {
        let page = include_str!("../../../../docs/guide/new-parts.md");
        let example = include_str!("../../tests/examples/heartbeat.rs");
        assert!(page.contains(example), "crates/traffic/tests/examples/heartbeat.rs");
    }
}
