//! Beacons: sending this host's and receiving the peers'.

use crate::clock;
use crate::config::BeaconConfig;
use crate::error::{Doing, Error, Result};
use crate::hear::sockets::Sockets;
use crate::link::interface::Interface;
use crate::tell::log_limit::LogLimit;
use lasthop_peers::beacon::{Beacon, GroupKey, Receiver};
use lasthop_peers::cadence::{Cadence, Due};
use lasthop_peers::group::{GroupId, Label, Labels};
use lasthop_peers::{Arrived, Ear, Limits, Neighbourhood, Note, Own, PeerId, Reject, Rejections, Report};
use lasthop_status::RelayStatus;
use lasthop_status::record::Beacons;
use lasthop_units::{Span, Time};
use nix::unistd::geteuid;
use std::env;
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use tracing::{debug, warn};
use zeroize::Zeroizing;

/// After a flood the sockets rest for this long, and the kernel drops the excess.
const DEAF_AFTER_A_FLOOD: Span = Span::from_millis(100);
/// Datagrams per round. The rest wait for the next round if a tick is due.
const DATAGRAMS_AT_ONCE: usize = 256;
/// More than unread sockets hold: two buffers of some 250.
const WAITING_AT_MOST: usize = 2048;
/// After a larger backward step of the wall clock this host takes a new identity: the old one has used up its
/// timestamps.
const CLOCK_FELL_BACK_NS: u64 = 5_000_000_000;

/// Notes that wait for a tick; more are left out.
const NOTES_MOST: usize = 256;

/// More than anybody's key: HMAC-SHA-256 hashes one of more than 64 bytes first.
const LONGEST_KEY_BYTES: usize = 4096;

/// This host's sender and receiver of beacons.
#[derive(Debug)]
pub(crate) struct Hearing {
    sockets: Sockets,
    listening: Listening,
    /// The access point; `None`: unknown as yet.
    labels: Option<Labels>,
    cadence: Cadence,
    base_interval: Span,
    /// Nothing is sent.
    is_silent: bool,
    wants_ipv6: bool,
    sender: PeerId,
    last_timestamp_ns: u64,
    sent: u64,
    unsent: u64,
}

/// What datagrams of all sockets share.
#[derive(Debug)]
struct Listening {
    ear: Ear,
    /// This host's addresses. A datagram from them comes from this agent or another user of the machine.
    own_addresses: Vec<IpAddr>,
    deaf_until: Time,
    log_limit: LogLimit,
    /// Notes that were heard and not taken yet.
    notes: Vec<Note>,
}

impl Hearing {
    /// Reads the group key, if configured. Opens no socket yet.
    pub(crate) fn new(config: &BeaconConfig) -> Result<Self> {
        let key = config.group_key_file.as_deref().map(read_group_key).transpose()?;
        let limits = Limits { age_out: Span::from_millis(config.age_out_ms), ..Limits::default() };
        let base_interval = Span::from_millis(config.interval_ms);
        Ok(Self {
            sockets: Sockets::new(config),
            listening: Listening::new(key, limits),
            labels: None,
            cadence: Cadence::new(base_interval, clock::monotonic(), rand::random()),
            base_interval,
            is_silent: false,
            wants_ipv6: config.ipv6,
            sender: PeerId(rand::random()),
            last_timestamp_ns: 0,
            sent: 0,
            unsent: 0,
        })
    }

    /// Stops or resumes sending. A silent host receives over IPv4 only, because joining an IPv6 group would be
    /// announced to the network.
    pub(crate) fn be_silent(&mut self, is_silent: bool) {
        self.is_silent = is_silent;
        self.sockets.want_ipv6(self.wants_ipv6 && !is_silent);
    }

    /// Follows the interface's addresses.
    pub(crate) fn refresh(&mut self, now: Time, interface: Option<&Interface>) {
        self.listening.own_addresses = interface.map(|interface| interface.own_addresses.clone()).unwrap_or_default();
        self.sockets.refresh(now, interface);
    }

    /// The access point, if known.
    pub(crate) fn label(&self) -> Option<&Label> {
        self.labels.as_ref().map(Labels::shown)
    }

    /// The access point, by its labels for both address families, if known.
    pub(crate) const fn labels(&self) -> Option<&Labels> {
        self.labels.as_ref()
    }

    /// The same access point is known by these labels now.
    pub(crate) fn call(&mut self, labels: Labels) {
        self.listening.ear.receiver.set_groups(labels.ids());
        self.labels = Some(labels);
    }

    /// Switches to the group behind this access point. It forgets the old peers and announces itself as a new host.
    pub(crate) fn join(&mut self, now: Time, labels: Labels) {
        self.call(labels);
        self.sender = PeerId(rand::random());
        self.begin_anew(now);
    }

    /// Forgets the peers, and announces itself as a new host.
    pub(crate) fn begin_anew(&mut self, now: Time) {
        self.listening.ear.table.forget_all();
        self.cadence = Cadence::new(self.base_interval, now, rand::random());
    }

    /// Discards the datagrams of a pause, which would pass for current.
    pub(crate) fn discard_waiting(&mut self, now: Time) {
        let Self { sockets, listening, .. } = self;
        sockets.receive(now, WAITING_AT_MOST, |_, _, _| {
            listening.ear.table.reject(Reject::Waited);
            true
        });
    }

    /// When the next beacon is due, by present knowledge.
    pub(crate) fn next_beacon_at(&mut self, now: Time) -> Time {
        if self.is_silent {
            return Time::MAX;
        }
        self.cadence.due_at(self.listening.ear.table.crowd(now), self.sockets.open())
    }

    /// Sends `report` to all peers when a beacon is due.
    pub(crate) fn poll_send(&mut self, now: Time, report: Report) {
        let (others, datagrams) = (self.listening.ear.table.crowd(now), self.sockets.open());
        if datagrams == 0 || self.is_silent {
            // Without beacons nobody could have answered.
            self.cadence = Cadence::new(self.base_interval, now, rand::random());
            return;
        }
        let Some(Due { interval }) = self.cadence.poll(now, others, datagrams, &report, rand::random()) else { return };
        self.send(now, |sender, timestamp_ns, group, key| {
            Beacon { sender, timestamp_ns, group, interval, report }.encode(key)
        });
    }

    /// Sends over each address family what `datagram` makes of sender, timestamp, group and key.
    fn send(&mut self, now: Time, datagram: impl Fn(PeerId, u64, GroupId, Option<&GroupKey>) -> Vec<u8>) {
        let Self { sockets, listening: Listening { ear, .. }, sender, last_timestamp_ns, .. } = self;
        let (sent, unsent) = sockets.send(now, |is_ipv6| {
            let timestamp_ns = next_timestamp(clock::wall_ns(), sender, last_timestamp_ns);
            let group = ear.receiver.groups()[usize::from(is_ipv6)];
            datagram(*sender, timestamp_ns, group, ear.receiver.key())
        });
        self.sent += sent;
        self.unsent += unsent;
    }

    /// Sends a note to all peers at once, unless this host is silent.
    pub(crate) fn send_note(&mut self, now: Time, text: &[u8]) {
        if !self.is_silent {
            self.send(now, |sender, timestamp_ns, group, key| {
                Note { sender, timestamp_ns, group, text: text.to_vec() }.encode(key)
            });
        }
    }

    /// The notes that were heard since the last call.
    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.listening.notes)
    }

    /// Whether a group key is set.
    pub(crate) const fn has_key(&self) -> bool {
        self.listening.ear.receiver.key().is_some()
    }

    /// Receives the datagrams that have arrived.
    pub(crate) fn receive(&mut self, now: Time) {
        let Self { sockets, listening, sender, .. } = self;
        if !listening.is_deaf(now) {
            let wall_ns = clock::wall_ns();
            sockets.receive(now, DATAGRAMS_AT_ONCE, |from, datagram, relayed| {
                listening.on_datagram(*sender, Arrived { now, wall_ns, from: from.ip(), datagram, relayed })
            });
        }
    }

    /// As if this report had come from that address.
    #[cfg(test)]
    pub(crate) fn on_report(&mut self, now: Time, from: IpAddr, sender: PeerId, interval: Span, report: Report) {
        self.listening.ear.table.on_report(now, from, sender, interval, report).expect("there is room");
    }

    /// The descriptors to wait for; after a flood, none for a while.
    pub(crate) fn descriptors(&self, now: Time) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.descriptors().filter(move |_| !self.listening.is_deaf(now))
    }

    /// The present peers.
    pub(crate) fn neighbourhood(&mut self, now: Time) -> Neighbourhood {
        self.listening.ear.table.neighbourhood(now)
    }

    /// Continues the counts of the predecessor.
    pub(crate) fn count_on(&mut self, before: &Self) {
        self.sent += before.sent;
        self.unsent += before.unsent;
        self.listening.ear.table.count_on(&before.listening.ear.table);
    }

    /// Messages since the start.
    pub(crate) fn beacons(&self) -> Beacons {
        Beacons {
            sent: self.sent,
            unsent: self.unsent,
            heard: self.listening.ear.table.heard(),
            rejected: self.listening.ear.table.rejections().total(),
        }
    }

    /// The relay, if one is configured.
    pub(crate) fn relay(&self, now: Time) -> Option<RelayStatus> {
        self.sockets.relay(now)
    }

    /// Rejected datagrams by cause.
    pub(crate) const fn rejections(&self) -> &Rejections {
        self.listening.ear.table.rejections()
    }
}

impl Listening {
    fn new(key: Option<GroupKey>, limits: Limits) -> Self {
        let limits = Limits { authenticated: key.is_some(), ..limits };
        let ear = Ear::new(Receiver::new(Label::Link.id(), key), limits);
        let (own_addresses, notes, log_limit) = (Vec::new(), Vec::new(), LogLimit::each_minute());
        Self { ear, own_addresses, deaf_until: Time::ZERO, log_limit, notes }
    }

    /// Whether the sockets rest after a flood.
    fn is_deaf(&self, now: Time) -> bool {
        now < self.deaf_until
    }

    /// Takes one datagram. Returns `false` if the others must wait or are lost. `sender` is this host's identity.
    fn on_datagram(&mut self, sender: PeerId, arrived: Arrived<'_>) -> bool {
        let Arrived { now, from, datagram, .. } = arrived;
        let own = Own { sender, addresses: &self.own_addresses };
        let cause = match self.ear.on_datagram(own, arrived) {
            Ok(note) => {
                self.notes.extend(note.filter(|_| self.notes.len() < NOTES_MOST));
                return true;
            }
            Err(cause) => cause,
        };
        if cause == Reject::TotalRate {
            self.deaf_until = now.saturating_add(DEAF_AFTER_A_FLOOD);
            return false;
        }
        debug!("a datagram of {} bytes from {from} is not heard: {cause}", datagram.len());
        if cause.is_fault()
            && let Some(more) = self.log_limit.may_say(now)
        {
            warn!("the agent at {from} is not heard: {cause}{more}");
        }
        true
    }
}

/// The next timestamp: above the last one, despite clock steps. A new identity if that would stray too far from the
/// clock.
fn next_timestamp(wall_ns: u64, sender: &mut PeerId, last_timestamp_ns: &mut u64) -> u64 {
    if wall_ns.saturating_add(CLOCK_FELL_BACK_NS) < *last_timestamp_ns {
        *sender = PeerId(rand::random());
        *last_timestamp_ns = 0;
    }
    *last_timestamp_ns = wall_ns.max(last_timestamp_ns.saturating_add(1));
    *last_timestamp_ns
}

/// The group key in this file, which nobody but its owner may read or change, or in the service's credential of the same name.
///
/// # Errors
/// If it cannot be read, others may read it, or it is no key.
pub fn read_group_key(file: &Path) -> Result<GroupKey> {
    read_key(file, env::var_os("CREDENTIALS_DIRECTORY").as_deref().map(Path::new))
}

/// The group key of a file that nobody else can read or change, or of systemd's credential of the same name
/// (`LoadCredential=` in systemd.exec(5)), which goes before it.
fn read_key(file: &Path, credentials: Option<&Path>) -> Result<GroupKey> {
    let credential = credentials.zip(file.file_name()).map(|(folder, name)| folder.join(name));
    let credential = credential.filter(|credential| credential.exists());
    // Where the service manager lets the service's user read by an access control list, the mode shows it as the group's.
    let (file, others) = match &credential {
        Some(credential) => (credential.as_path(), 0o037),
        None => (file, 0o077),
    };
    let reading = || format!("cannot read the group key {}", file.display());
    let mut opened = lasthop_files::open_to_read(file).doing(reading())?;
    let found = opened.metadata().doing(reading())?;
    if found.mode() & others != 0 {
        let mode = found.mode() & 0o7777;
        return Err(Error::Refused(format!(
            "others can read or change the group key {}, which has mode {mode:o}: `chmod 600` it, and if they may have read it make \
             a new one",
            file.display()
        )));
    }
    if found.uid() != 0 && found.uid() != geteuid().as_raw() {
        return Err(Error::Refused(format!(
            "the group key {} belongs to user {}: it must be root's, or the user's who runs the agent; `chown root` it",
            file.display(),
            found.uid()
        )));
    }
    // One read into memory that is zeroed: a vector that grows would leave copies behind.
    let mut secret = Zeroizing::new([0; LONGEST_KEY_BYTES + 1]);
    let length = read_all(&mut opened, &mut secret[..]).doing(reading())?;
    if length > LONGEST_KEY_BYTES {
        let most = format!("the group key {} has more than {LONGEST_KEY_BYTES} bytes", file.display());
        return Err(Error::Refused(most));
    }
    let key = GroupKey::new(secret[..length].trim_ascii_end());
    wipe_stack();
    key.doing(format_args!("cannot use the group key {}", file.display()))
}

/// Overwrites what the calls before have left on the stack: HMAC pads and masks a copy of the key there.
#[inline(never)]
fn wipe_stack() {
    std::hint::black_box(&mut *Zeroizing::new([0u8; 16 * 1024]));
}

/// Reads until the end or until the buffer is full; how many bytes.
fn read_all(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match from.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    fn beacon(sender: u64) -> Beacon {
        Beacon {
            sender: PeerId(sender),
            timestamp_ns: 1,
            group: Label::Link.id(),
            interval: lasthop_peers::beacon::INTERVAL,
            report: Report::default(),
        }
    }

    const OWN: Own<'_> = Own { sender: PeerId(1), addresses: &[] };

    fn arrived(now: Time, from: [u8; 4], datagram: &[u8]) -> Arrived<'_> {
        Arrived { now, wall_ns: 1, from: from.into(), datagram, relayed: false }
    }

    #[test]
    fn timestamps_rise_whatever_the_clock_does() {
        const SECOND: u64 = 1_000_000_000;
        let (mut sender, mut last) = (PeerId(7), 0);
        let mut next = |wall_ns| (next_timestamp(wall_ns, &mut sender, &mut last), sender == PeerId(7));
        assert_eq!(next(100 * SECOND), (100 * SECOND, true));
        assert_eq!(next(100 * SECOND), (100 * SECOND + 1, true)); // twice in the same nanosecond
        assert_eq!(next(98 * SECOND), (100 * SECOND + 2, true)); // set back by two seconds
        assert_eq!(next(50 * SECOND), (50 * SECOND, false)); // set back by 50 s: a new identity
    }

    #[test]
    fn a_wall_clock_that_is_set_costs_a_keyed_peer_no_more_than_the_time_until_it_is_right() {
        const SECOND: u64 = 1_000_000_000;
        let key = || Some(GroupKey::new(b"sixteen bytes or more").expect("long enough"));
        let mut listening = Listening::new(key(), Limits::default());
        let (mut sender, mut last) = (PeerId(7), 0);
        let mut second = 0_u64;
        // Both report the same true time. Each clock is some seconds off.
        let mut hears = |speaker_off: i64, hearer_off: i64| {
            second += 1;
            let wall = |off: i64| (1_800_000_000 + second).checked_add_signed(off).expect("a date") * SECOND;
            let timestamp_ns = next_timestamp(wall(speaker_off), &mut sender, &mut last);
            let datagram = Beacon { sender, timestamp_ns, ..beacon(0) }.encode(key().as_ref());
            let now = Time::ZERO + Span::from_secs(second);
            let arrived = Arrived { wall_ns: wall(hearer_off), ..arrived(now, [10, 77, 0, 2], &datagram) };
            listening.ear.on_datagram(OWN, arrived)
        };
        assert_eq!(hears(0, 0), Ok(None));
        // The sender's clock steps an hour forward and back, then an hour back and forward.
        for off in [3600, -3600] {
            assert_eq!(hears(off, 0), Err(Reject::Stale));
            assert_eq!(hears(0, 0), Ok(None));
            // The receiver's clock does the same.
            assert_eq!(hears(0, off), Err(Reject::Stale));
            assert_eq!(hears(0, 0), Ok(None));
        }
        // Steps of a few seconds go unnoticed.
        for off in [3, 0, -4, 0, 20, 0, -20, 0] {
            assert_eq!(hears(off, 0), Ok(None), "{off} s");
            assert_eq!(hears(0, off), Ok(None), "{off} s");
        }
    }

    #[test]
    fn a_flood_is_looked_at_within_limits_and_an_honest_peer_is_heard_after_it() {
        let mut ear = Listening::new(None, Limits::default());
        let takes = |ear: &mut Listening, now, datagram: &[u8]| {
            ear.on_datagram(PeerId(1), arrived(now, [10, 77, 0, 2], datagram))
        };
        let at = |milliseconds| Time::ZERO + Span::from_millis(milliseconds);
        let noise = b"LHOP and so on";
        // The limit is 2000 a second, and a burst may have as many. Then the sockets rest for 100 ms.
        assert!((0..2000).all(|_| takes(&mut ear, at(0), noise)));
        assert!(!ear.is_deaf(at(0)));
        assert!(!takes(&mut ear, at(0), noise));
        assert!(ear.is_deaf(at(0)) && ear.is_deaf(at(99)) && !ear.is_deaf(at(100)));
        // 100 ms are 200 more.
        assert!((0..200).all(|_| takes(&mut ear, at(100), noise)));
        assert!(!takes(&mut ear, at(100), noise));
        assert!(ear.is_deaf(at(199)) && !ear.is_deaf(at(200)));
        let causes: Vec<_> = ear.ear.table.rejections().iter().collect();
        assert_eq!(causes, [(Reject::TotalRate, 2), (Reject::Version, 2200)]);
        assert_eq!(ear.ear.table.heard(), 0);
        let honest = Beacon { report: Report { busy_flows: 1, ..Report::default() }, ..beacon(2) };
        assert!(takes(&mut ear, at(200), &honest.encode(None)));
        assert_eq!((ear.ear.table.heard(), ear.ear.table.neighbourhood(at(200)).terminals()), (1, 2));
    }

    #[test]
    fn another_configuration_goes_on_with_the_counts() {
        let new = || Hearing::new(&BeaconConfig::default()).expect("no key");
        let mut before = new();
        (before.sent, before.unsent) = (5, 2);
        before.listening.ear.table.reject(Reject::Group);
        let datagram = beacon(2).encode(None);
        before.listening.ear.on_datagram(OWN, arrived(Time::ZERO, [10, 77, 0, 2], &datagram)).expect("heard");
        let mut now = new();
        now.listening.ear.table.reject(Reject::Group);
        now.listening.ear.table.reject(Reject::Version);
        now.count_on(&before);
        assert_eq!(now.beacons(), Beacons { sent: 5, unsent: 2, heard: 1, rejected: 3 });
        assert_eq!((now.rejections().of(Reject::Group), now.rejections().of(Reject::Version)), (2, 1));
    }

    #[test]
    fn who_speaks_from_an_address_of_this_host_is_no_peer() {
        let mut listening = Listening::new(None, Limits::default());
        listening.own_addresses = vec![IpAddr::from([10, 77, 0, 1])];
        let heard = [([10, 77, 0, 1], 2), ([10, 77, 0, 2], 3)].map(|(from, sender)| {
            let datagram = beacon(sender).encode(None);
            assert!(listening.on_datagram(PeerId(1), arrived(Time::ZERO, from, &datagram)));
            listening.ear.table.heard()
        });
        assert_eq!(heard, [0, 1]);
    }

    #[test]
    fn the_addresses_of_this_host_are_known() {
        let interface = Interface::find(Some("lo"), &[]).expect("every network namespace has it");
        let mut hearing =
            Hearing::new(&BeaconConfig { ipv4: false, ipv6: false, ..BeaconConfig::default() }).expect("no key");
        hearing.refresh(Time::ZERO, Some(&interface));
        assert!(hearing.listening.own_addresses.contains(&IpAddr::from([127, 0, 0, 1])));
    }

    #[test]
    fn a_key_is_read_without_the_end_of_its_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("group.key");
        fs::write(&file, "a secret of the group\n").expect("written");
        fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("ours");
        let datagram = beacon(1).encode(Some(&read_key(&file, None).expect("long enough")));
        let key = GroupKey::new(b"a secret of the group").expect("long enough");
        assert!(Beacon::decode(&datagram, Some(&key)).is_ok());
        fs::write(&file, "short\n").expect("written");
        let error = read_key(&file, None).expect_err("too short").in_a_line().to_string();
        assert!(error.contains("group.key") && error.contains("5 bytes"), "{error}");
        let error = read_key(&folder.path().join("none"), None).expect_err("no such file").in_a_line().to_string();
        assert!(error.contains("none"), "{error}");
    }

    /// How often this process has in its memory what `told` becomes by rot13, as it is or as HMAC masks it.
    fn copies(told: &[u8]) -> usize {
        use std::io::{Seek as _, SeekFrom};
        let secret = |byte: u8| (byte - b'a' + 13) % 26 + b'a';
        let maps = fs::read_to_string("/proc/self/maps").expect("Linux has it");
        let mut memory = std::fs::File::open("/proc/self/mem").expect("ours");
        let mut count = 0;
        for line in maps.lines().filter(|line| line.contains(" rw")) {
            let (from, to) = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
            let address = |hex| u64::from_str_radix(hex, 16).expect("an address");
            let mut bytes = vec![0; usize::try_from(address(to) - address(from)).expect("it is in memory")];
            // Other tests may unmap what they had.
            if memory.seek(SeekFrom::Start(address(from))).and_then(|_| memory.read_exact(&mut bytes)).is_err() {
                continue;
            }
            // RFC 2104 §2: ipad and opad
            for mask in [0, 0x36, 0x5c] {
                let is_copy = |window: &[u8]| window.iter().zip(told).all(|(is, told)| *is == secret(*told) ^ mask);
                count += bytes.windows(told.len()).filter(|window| is_copy(window)).count();
            }
        }
        count
    }

    #[test]
    fn a_key_that_was_read_is_nowhere_in_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        // Another process makes it, and tells this one only what it becomes by rot13.
        let make = "umask 077; tr -dc a-z < /dev/urandom | head -c 40 > group.key; tr a-z n-za-m < group.key";
        let made = std::process::Command::new("sh").args(["-c", make]).current_dir(folder.path()).output();
        let told = made.expect("a shell").stdout;
        assert_eq!(told.len(), 40);
        let file = folder.path().join("group.key");
        let key = read_key(&file, None).expect("a key");
        assert_eq!(copies(&told), 0);
        // Where it is, it is found.
        let kept = fs::read(&file).expect("ours");
        assert_ne!(copies(&told), 0);
        let expected = GroupKey::new(&kept).expect("long enough");
        assert!(Beacon::decode(&beacon(1).encode(Some(&key)), Some(&expected)).is_ok());
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_another_user_s_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("group.key");
        fs::write(&file, "a secret of the group\n").expect("written");
        let refused = |mode| {
            fs::set_permissions(&file, Permissions::from_mode(mode)).expect("ours");
            read_key(&file, None).err().map(|error| error.in_a_line().to_string())
        };
        for mode in [0o600, 0o400] {
            assert_eq!(refused(mode), None, "{mode:o}");
        }
        for mode in [0o640, 0o644, 0o620, 0o604, 0o666] {
            let said = refused(mode).expect("others can read or change it");
            assert!(said.contains("group.key") && said.contains(&format!("mode {mode:o}: `chmod 600`")), "{said}");
        }
        if geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(65534), None).expect("root may");
            let said = refused(0o600).expect("it is another user's");
            assert!(said.contains("group.key") && said.contains("belongs to user 65534"), "{said}");
        }
    }

    #[test]
    fn a_credential_of_the_service_manager_goes_before_the_file_and_the_longest_key_is_no_longer() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, credentials) = (folder.path().join("group.key"), folder.path().join("credentials"));
        let write = |file: &Path, secret: &str, mode| {
            fs::write(file, secret).expect("written");
            fs::set_permissions(file, Permissions::from_mode(mode)).expect("ours");
        };
        let has = |secret: &str| {
            let key = read_key(&file, Some(&credentials)).expect("a key");
            let expected = GroupKey::new(secret.as_bytes()).expect("long enough");
            Beacon::decode(&beacon(1).encode(Some(&key)), Some(&expected)).is_ok()
        };
        write(&file, "the secret of the file", 0o600);
        fs::create_dir(&credentials).expect("made");
        assert!(has("the secret of the file"));
        write(&credentials.join("group.key"), "the secret of the credential\n", 0o440);
        assert!(has("the secret of the credential"));
        write(&credentials.join("group.key"), "", 0o400);
        let error = read_key(&file, Some(&credentials)).expect_err("none was loaded").in_a_line().to_string();
        assert!(error.contains("credentials/group.key") && error.contains("0 bytes"), "{error}");
        write(&file, &"k".repeat(LONGEST_KEY_BYTES), 0o600);
        assert!(read_key(&file, None).is_ok());
        write(&file, &"k".repeat(LONGEST_KEY_BYTES + 1), 0o600);
        let error = read_key(&file, None).expect_err("too long").to_string();
        assert!(error.contains("more than 4096 bytes"), "{error}");
    }
}
