//! All that a stranger can do to a host by datagrams: the beacon's codec, the receiver with and without a group key, the peer
//! table, the cadence, and the policy that acts on what peers say. A run is a list of what happens, and what must hold after each.

use arbitrary::Arbitrary;
use lasthop_connection::TcpState;
use lasthop_laws::bound::LEAST_PACING_RATE;
use lasthop_peers::beacon::{Beacon, GroupKey, INTERVAL, LONGEST_BYTES, PLAIN_BYTES, Receiver};
use lasthop_peers::cadence::{Cadence, LONGEST};
use lasthop_peers::group::Label;
use lasthop_peers::{Arrived, Crowd, Ear, LONGEST_AGE_OUT, Limits, Note, Own, PeerId, Report, Word};
use lasthop_policy::governor::{FlowSample, Governor};
use lasthop_policy::{FlowId, PolicyName, PolicySettings};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::net::Ipv4Addr;
use std::sync::LazyLock;

/// So few that a short run fills the table.
const IDENTITIES: usize = 3;
const FLOOR_SEGMENTS: u32 = 3;

static KEY: LazyLock<GroupKey> = LazyLock::new(|| GroupKey::new(b"a key that is shared").expect("long enough"));

#[derive(Arbitrary, Debug)]
pub(crate) enum Event<'a> {
    /// So many ms pass.
    Wait(u16),
    /// The wall clock is set.
    SetClock(u64),
    /// These bytes arrive.
    Bytes(&'a [u8]),
    /// A beacon arrives, of a member or of a stranger, with some of its bytes changed.
    Beacon(Words, bool, Vec<(u8, u8)>),
    /// The same once more.
    Again,
    /// This host decides, and may speak.
    Tick { srtt_ms: u16 },
    /// It comes behind another access point, or out of a suspension.
    Move(bool),
}

/// What a beacon says. Senders and groups are few, so that they meet.
#[derive(Arbitrary, Debug)]
pub(crate) struct Words {
    sender: u8,
    clock_off_ms: i32,
    elsewhere: bool,
    interval_ms: u32,
    busy_flows: u16,
    waiting: bool,
    rtts_us: (Option<u32>, Option<u32>),
    controlling: bool,
    congested: bool,
    word: Option<(u8, [u8; Word::BYTES])>,
}

impl Words {
    fn beacon(&self, wall_ns: u64) -> Beacon {
        let rtt = |us: Option<u32>| us.filter(|us| *us > 0).map(|us| Span::from_micros(us.into()));
        Beacon {
            sender: PeerId(u64::from(self.sender) % 8),
            timestamp_ns: wall_ns.saturating_add_signed(i64::from(self.clock_off_ms) * 1_000_000),
            group: if self.elsewhere { Label::Name("elsewhere".to_owned()).id() } else { Label::Link.id() },
            interval: Span::from_millis(self.interval_ms.into()),
            report: Report {
                busy_flows: self.busy_flows,
                waiting: self.waiting,
                srtt: rtt(self.rtts_us.0),
                min_rtt: rtt(self.rtts_us.1),
                controlling: self.controlling,
                congested: self.congested,
                word: self.word.map(|(kind, bytes)| Word::new(1 + kind % Word::KINDS, bytes)),
            },
        }
    }
}

struct Host {
    ear: Ear,
    cadence: Cadence,
    governors: [Governor; 2],
    report: Report,
    arrived: u64,
}

impl Host {
    fn new(key: Option<GroupKey>) -> Self {
        let settings = PolicySettings { minimum_segments: FLOOR_SEGMENTS, ..PolicySettings::default() };
        let limits = Limits { identities: IDENTITIES, authenticated: key.is_some(), ..Limits::default() };
        Self {
            ear: Ear::new(Receiver::new(Label::Link.id(), key), limits),
            cadence: Cadence::new(INTERVAL, Time::ZERO, 0.5),
            governors: [PolicyName::Cooperative, PolicyName::Lasthop]
                .map(|policy| Governor::new(PolicySettings { policy, ..settings.clone() }.build(), true)),
            report: Report::default(),
            arrived: 0,
        }
    }

    fn on_datagram(&mut self, now: Time, wall_ns: u64, datagram: &[u8]) {
        self.arrived += 1;
        let heard = self.ear.table.heard();
        let rejected = self.ear.table.rejections().total();
        let said = Beacon::decode(datagram, self.ear.receiver.key()).ok();
        let noted = Note::decode(datagram, self.ear.receiver.key()).ok().map(|note| note.sender);
        let from = Ipv4Addr::from_bits(said.map_or(0, |said| said.sender.0) as u32 % IDENTITIES as u32);
        // Nobody has its identity.
        let sender = said.map(|said| said.sender).or(noted);
        let own = Own { sender: PeerId(!sender.map_or(0, |sender| sender.0)), addresses: &[] };
        match self.ear.on_datagram(own, Arrived { now, wall_ns, from: from.into(), datagram, relayed: false }) {
            Ok(Some(note)) => {
                assert!(self.ear.receiver.groups().contains(&note.group));
                assert_eq!(note.encode(self.ear.receiver.key()), datagram, "what is heard is what was said");
            }
            Ok(None) => {
                let said = said.expect("only beacons and notes are heard");
                assert!(self.ear.receiver.groups().contains(&said.group));
                assert_eq!(said.encode(self.ear.receiver.key()), datagram, "what is heard is what was said");
            }
            Err(_) => {}
        }
        // Each is heard or counted by its cause, and no more than once.
        assert_eq!(self.ear.table.heard() + self.ear.table.rejections().total(), heard + rejected + 1);
        assert_eq!(self.ear.table.heard() + self.ear.table.rejections().total(), self.arrived);
    }

    fn on_tick(&mut self, now: Time, srtt_ms: u16) {
        let peers = self.ear.table.neighbourhood(now);
        assert!(peers.peers().len() <= IDENTITIES);
        assert!(peers.peers().iter().all(|peer| now.saturating_since(peer.heard_at) < LONGEST_AGE_OUT));
        let sample = FlowSample {
            id: FlowId(1),
            tcp: TcpState {
                srtt: Some(Span::from_millis(u64::from(srtt_ms).max(1))),
                min_rtt: Some(Span::from_millis(1)),
                cwnd_segments: 100,
                acked: Bytes::new(now.as_nanos()),
                in_flight_segments: 100,
                unsent: Bytes::new(u64::from(srtt_ms % 2)),
                newest_rtt: Some(Span::from_millis(u64::from(srtt_ms / 2))),
                mss_bytes: 1448,
                ..TcpState::default()
            },
            controllable: true,
            ..FlowSample::default()
        };
        for governor in &mut self.governors {
            let turn = governor.on_tick(now, &[sample], &peers);
            let bounds = turn.bounds.iter().filter_map(|(_, bound)| *bound).chain(turn.new_flows);
            for bound in bounds {
                assert!(bound.max_segments == 0 || bound.max_segments >= FLOOR_SEGMENTS, "{bound} is below the floor");
                let paced = bound.max_pacing_rate;
                assert!(paced == Rate::ZERO || paced >= LEAST_PACING_RATE, "{bound} is below the floor");
            }
            governor.on_applied(&turn);
            self.report = turn.report;
        }

        let others = self.ear.table.crowd(now);
        let Crowd { hosts, senders } = others;
        assert!(hosts >= peers.peers().len() && hosts < 100_000, "{hosts} hosts, {} peers", peers.peers().len());
        assert!(senders <= hosts, "{senders} of {hosts} are senders");
        if let Some(due) = self.cadence.poll(now, others, 2, &self.report, 0.5) {
            // One at once may put the next off by an interval.
            assert!(due.interval <= Span::from_nanos(2 * LONGEST.as_nanos()));
        }
    }
}

/// One run: these things happen one after the other. It panics where something does not hold.
pub(crate) fn run(events: Vec<Event<'_>>) {
    let (mut now, mut wall_ns) = (Time::ZERO, 1_800_000_000_000_000_000_u64);
    let mut hosts = [Host::new(None), Host::new(Some(KEY.clone()))];
    let mut last = Vec::new();
    for event in events {
        match event {
            Event::Wait(milliseconds) => {
                now += Span::from_millis(milliseconds.into());
                wall_ns = wall_ns.saturating_add(u64::from(milliseconds) * 1_000_000);
                continue;
            }
            Event::SetClock(to_ns) => {
                wall_ns = to_ns;
                continue;
            }
            Event::Bytes(bytes) => last = bytes.to_vec(),
            Event::Beacon(words, member, changes) => {
                let beacon = words.beacon(wall_ns);
                let key = member.then_some(&*KEY);
                last = beacon.encode(key);
                assert!((PLAIN_BYTES..=LONGEST_BYTES).contains(&last.len()));
                assert_eq!(Beacon::decode(&last, key), Ok(beacon));
                for (at, to) in changes {
                    if let Some(byte) = last.get_mut(usize::from(at)) {
                        *byte = to;
                    }
                }
            }
            Event::Again => {}
            Event::Tick { srtt_ms } => {
                hosts.iter_mut().for_each(|host| host.on_tick(now, srtt_ms));
                continue;
            }
            Event::Move(elsewhere) => {
                let label = if elsewhere { Label::Name("elsewhere".to_owned()) } else { Label::Link };
                for host in &mut hosts {
                    host.ear.receiver.set_groups([label.id(); 2]);
                    host.ear.table.forget_all();
                    assert!(host.ear.table.neighbourhood(now).peers().is_empty());
                }
                continue;
            }
        }
        hosts.iter_mut().for_each(|host| host.on_datagram(now, wall_ns, &last));
    }
}
