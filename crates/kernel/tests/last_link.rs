//! The link report between two hosts of the kernel: the client's programs say it, the server's law hears it, and whatever is
//! between them does its worst. Every packet goes through this process.
#![allow(unsafe_code, missing_docs)] // TCP Fast Open has no safe call

mod support;

use control::last_link::LinkReport;
use control::last_link::option::{self, Flags};
use control::law::{LawName, Parameters};
use kernel::laws::{Clients, Heard, Heuristics, Law, Loaded, Name, Options, SocketState, Value};
use kernel::report::{Claim, Counters, Options as ReporterOptions, Reporter};
use nix::libc;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::middlebox::{Fate, Path, Segment, Way};
use support::{A4, B4, B6, Host, Net, TcpInfo, eventually, run, set_control, set_u32};
use units::{Probability, Rate};

const CLAIM: Claim = Claim { bandwidth_kbps: Some(3000), error_ppm: Some(5000), validity_s: 600 };
const OTHER: Claim = Claim { bandwidth_kbps: Some(2000), error_ppm: Some(1000), validity_s: 600 };
const ERROR_UNKNOWN: i128 = 0xffff_ffff;

fn reporter_on(host: &Host, interface: &str) -> Reporter {
    host.run(|| {
        let index = nix::net::if_::if_nametoindex(interface).expect("it exists");
        Reporter::load(&ReporterOptions::new(index).expect("cgroup2")).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// On the client's link, with [`CLAIM`].
fn reporter(path: &Path) -> Reporter {
    let mut reporter = reporter_on(&path.a, "a0");
    reporter.set(CLAIM).expect("set");
    reporter
}

fn law() -> Loaded {
    let parameters = Parameters::of(LawName::Lastlink);
    let options = Options { name: Name::Private, ..Options::new(Law::Lastlink, *parameters.values()) };
    Loaded::load(&options).unwrap_or_else(|error| panic!("{error}"))
}

/// A listening socket whose connections have this control, and TCP Fast Open where the namespace allows it.
fn listener(host: &Host, address: &str, control: &str) -> TcpListener {
    use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, listen, socket};
    let ip: IpAddr = address.parse().expect("an address");
    let family = if ip.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    host.run(|| {
        let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        set_control(&socket, control);
        set_u32(&socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, 16).expect("TCP Fast Open");
        bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(ip, 0))).expect("bound");
        listen(&socket, Backlog::new(64).expect("64")).expect("listening");
        TcpListener::from(socket)
    })
}

/// A connection: the client's end and the server's.
struct Connection {
    client: TcpStream,
    server: TcpStream,
}

impl Connection {
    fn open(client: &Host, listener: &TcpListener) -> Self {
        let to = listener.local_addr().expect("bound");
        let client = client.run(|| TcpStream::connect(to).unwrap_or_else(|error| panic!("{to}: {error}")));
        let (server, _) = listener.accept().expect("the connection just opened");
        client.set_nodelay(true).expect("at once");
        Self { client, server }
    }

    /// A request and a response that arrive as they were sent.
    fn converse(&self, response_bytes: usize) {
        let pass = |mut from: &TcpStream, mut to: &TcpStream, bytes: usize| {
            let sent: Vec<u8> = (0..bytes).map(|number| (number % 251) as u8).collect();
            let mut received = vec![0; bytes];
            std::thread::scope(|scope| {
                scope.spawn(|| from.write_all(&sent).expect("written"));
                to.read_exact(&mut received).expect("read");
            });
            assert!(sent == received, "{bytes} bytes were changed");
        };
        pass(&self.client, &self.server, 9);
        pass(&self.server, &self.client, response_bytes);
    }
}

/// What the law says of the only connection that has it.
fn state(law: &Loaded) -> SocketState {
    let mut sockets = law.sockets().expect("a walk");
    // a listener, and those that ended
    sockets.retain(|socket| socket.fields.iter().any(|field| field.name == "reports"));
    assert_eq!(sockets.len(), 1, "{sockets:?}");
    sockets.remove(0)
}

fn field(state: &SocketState, name: &str) -> i128 {
    match &state.fields.iter().find(|field| field.name == name).expect("a field of the law").value {
        Value::Number(number) => *number,
        Value::Numbers(numbers) => panic!("{name}: {numbers:?}"),
    }
}

fn told(law: &Loaded) -> (i128, i128) {
    let state = state(law);
    (field(&state, "bandwidth_kbps"), field(&state, "error_ppm"))
}

fn heard(law: &Loaded) -> Heard {
    law.heard().expect("counters")
}

fn counted(reporter: &Reporter) -> Counters {
    reporter.counters().expect("counters")
}

/// As the client's programs must write it; the validity is up to the moment.
fn octets(claim: &Claim) -> Vec<u8> {
    let report = LinkReport {
        bandwidth: claim.bandwidth_kbps.map(|kbps| Rate::from_bps(u64::from(kbps) * 1000)),
        error_rate: claim.error_ppm.map(|ppm| Probability::new(f64::from(ppm) / 1e6).expect("at most 1")),
        validity: units::Span::from_secs(512),
    };
    option::encode(&report, Flags::default()).to_vec()
}

fn set_sysctls(host: &Host, settings: &str) {
    host.run(|| run(&format!("sysctl -qw {settings}")));
}

#[test]
fn the_programs_can_be_tried_and_nobody_reports_afterwards() {
    needs_root!();
    kernel::report::check().unwrap_or_else(|error| panic!("{error}"));
    let net = Net::direct();
    let law = law();
    let listener = listener(&net.b, B4, law.name());
    let to = listener.local_addr().expect("bound");
    let _client = net.a.run(|| TcpStream::connect(to).expect("a connection"));
    let _server = listener.accept().expect("the connection just opened");
    assert_eq!((heard(&law).listeners, heard(&law).at_accept), (1, 0));
}

#[test]
fn a_server_that_does_not_know_the_option_sees_an_ordinary_connection() {
    needs_root!();
    let path = Path::clear();
    let mut reporter = reporter(&path);
    let listener = listener(&path.b, B4, "cubic");
    let connection = Connection::open(&path.a, &listener);
    reporter.set(OTHER).expect("set");
    connection.converse(100_000);
    assert_eq!(path.reports(Way::ToServer), [octets(&CLAIM)], "in the SYN and never again");
    assert!(path.reports(Way::ToClient).is_empty());
    assert_eq!(counted(&reporter), Counters { offered: 1, unanswered: 1, ..Counters::default() });
}

#[test]
fn the_first_flight_is_the_window_computed_from_the_report() {
    needs_root!();
    // a machine that stands still for a round trip makes TCP send more than its window: a probe for lost tails
    assert!((0..5).any(|_| first_flight_was_on_time()), "the machine is too slow");
}

fn first_flight_was_on_time() -> bool {
    let law = law();
    let path = Path::new(Duration::from_millis(50), |_, _| Fate::Forward);
    let reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    let connection = Connection::open(&path.a, &listener);
    let info = TcpInfo::of(&connection.server);
    // [wu] section 3.2: BW RTT / (8 L), here 25 or 26; the receiver's first window is 64 kB, 44 segments
    let expected = 3000 * info.rtt_us() / 8000 / info.snd_mss();
    assert!(expected >= 25, "{expected}");
    path.forget();
    connection.converse(200_000);
    if expected > 44 || TcpInfo::of(&connection.server).total_retrans() > 0 || counted(&reporter).sent_again > 0 {
        return false;
    }
    assert_eq!((info.snd_cwnd(), info.snd_ssthresh()), (expected, expected));
    let seen = path.seen.lock().expect("no panic");
    let data = |way, (went, segment): &&(Way, Segment)| *went == way && segment.payload() > 0;
    let first = seen.iter().find(|seen| data(Way::ToClient, seen)).expect("a response").1.sequence();
    let acknowledges = |segment: &Segment| segment.acknowledges().wrapping_sub(first).cast_signed() > 0;
    let until_ack = seen.iter().take_while(|(way, segment)| *way == Way::ToClient || !acknowledges(segment));
    assert_eq!(until_ack.filter(|seen| data(Way::ToClient, seen)).count(), expected as usize);
    drop(seen);
    assert_eq!(heard(&law), Heard { listeners: 1, at_accept: 1, answered: 1, ..Heard::default() });
    assert_eq!(counted(&reporter), Counters { offered: 1, answered: 1, ..Counters::default() });
    assert_eq!(field(&state(&law), "initial_segments"), expected.into());
    true
}

#[test]
fn a_changed_claim_reaches_the_law_on_three_segments_and_so_does_a_retraction() {
    needs_root!();
    let law = law();
    let path = Path::clear();
    let mut reporter = reporter(&path);
    let listener = listener(&path.b, B6, law.name());
    let connection = Connection::open(&path.a, &listener);
    assert_eq!(told(&law), (3000, 5000));
    let mut expected = vec![octets(&CLAIM)];
    for (claim, numbers) in [(OTHER, (2000, 1000)), (Claim::default(), (0, ERROR_UNKNOWN)), (CLAIM, (3000, 5000))] {
        reporter.set(claim).expect("set");
        for _ in 0..5 {
            connection.converse(20_000);
        }
        // the last of three may be a segment on its way
        eventually("the law hears it", || told(&law) == numbers);
        expected.extend(vec![octets(&claim); 3]);
    }
    // said again, it is only prolonged
    reporter.set(CLAIM).expect("set");
    connection.converse(20_000);
    let mut reports = path.reports(Way::ToServer);
    reports.iter_mut().filter(|report| report[6..] == [255; 4]).for_each(|report| report[5] = 9);
    assert_eq!(reports, expected);
    assert_eq!((heard(&law).at_accept, counted(&reporter).sent), (1, 9));
    // one in a segment that comes twice may not be read
    assert!((6..=9).contains(&heard(&law).later), "{:?}", heard(&law));
}

#[test]
fn a_claim_is_renewed_until_it_runs_out() {
    needs_root!();
    let law = law();
    let path = Path::clear();
    let mut reporter = reporter(&path);
    let claim = Claim { validity_s: 4, ..CLAIM };
    reporter.set(claim).expect("set");
    let listener = listener(&path.b, B4, law.name());
    let connection = Connection::open(&path.a, &listener);
    // of what is left of 4 s, 2 s are told; in their middle it is said again, and in the last of the 4 s that nothing is known
    eventually("it is renewed and runs out", || {
        connection.converse(10);
        told(&law) == (0, ERROR_UNKNOWN)
    });
    let reports = path.reports(Way::ToServer);
    let known = reports.iter().filter(|report| report[6..] == octets(&claim)[6..]).count();
    assert!((4..=16).contains(&known), "{reports:?}");
    assert!(reports.iter().all(|report| report[5] <= 1), "{reports:?}");
    // the same again, after it has run out, is news
    reporter.set(claim).expect("set");
    eventually("it is said again", || {
        connection.converse(10);
        told(&law) == (3000, 5000)
    });
}

#[test]
fn a_server_that_sends_cookies_asks_for_the_report_again() {
    needs_root!();
    let law = law();
    let path = Path::new(Duration::from_millis(5), |_, _| Fate::Forward);
    let reporter = reporter(&path);
    set_sysctls(&path.b, "net.ipv4.tcp_syncookies=2");
    let listener = listener(&path.b, B4, law.name());
    let connection = Connection::open(&path.a, &listener);
    connection.converse(100_000);
    let heard = heard(&law);
    assert_eq!((heard.answered, heard.cookies, heard.at_accept), (1, 1, 1));
    assert_eq!((counted(&reporter).answered, counted(&reporter).asked_again, counted(&reporter).sent), (1, 1, 3));
    assert_eq!(told(&law), (3000, 5000));
    assert_eq!(path.reports(Way::ToClient)[0][4], 0x13, "version 1, ANSWER and RESEND");
}

/// Opens a connection with its first data in the SYN, where the kernel has a cookie for that; RFC 7413.
fn fast_open(path: &Path, listener: &TcpListener) -> Connection {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrLike as _, SockaddrStorage, socket};
    let to = SockaddrStorage::from(listener.local_addr().expect("bound"));
    let client = path.a.run(|| {
        let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        let data = b"early";
        // SAFETY: the kernel reads `data` and the address, each of which has as many bytes as said.
        let sent = unsafe {
            let (bytes, length) = (data.as_ptr().cast(), data.len());
            libc::sendto(socket.as_raw_fd(), bytes, length, libc::MSG_FASTOPEN, to.as_ptr(), to.len())
        };
        assert_eq!(sent, 5, "{}", std::io::Error::last_os_error());
        TcpStream::from(socket)
    });
    let (mut server, _) = listener.accept().expect("the connection just opened");
    let mut early = [0; 5];
    server.read_exact(&mut early).expect("read");
    assert_eq!(&early, b"early");
    Connection { client, server }
}

#[test]
fn with_tcp_fast_open_the_report_comes_with_the_data_or_finds_no_room() {
    needs_root!();
    let law = law();
    let path = Path::new(Duration::from_millis(5), |_, _| Fate::Forward);
    let reporter = reporter(&path);
    for host in [&path.a, &path.b] {
        set_sysctls(host, "net.ipv4.tcp_fastopen=3");
    }
    let listener = listener(&path.b, B4, law.name());
    // the first asks for a cookie; the SYN-ACK that brings it has no room for an answer. Of the 40 octets the cookie takes
    // 12, timestamps take 12, the maximum segment size 4 and the window scale 4
    fast_open(&path, &listener).converse(1000);
    let first = Counters { offered: 1, unanswered: 1, ..Counters::default() };
    assert_eq!(counted(&reporter), first);
    assert_eq!((heard(&law).at_accept, heard(&law).answered, heard(&law).no_room), (1, 0, 1));
    // without timestamps there is
    set_sysctls(&path.a, "net.ipv4.tcp_timestamps=0");
    path.forget();
    let connection = fast_open(&path, &listener);
    let early = |way, segment: &Segment| way == Way::ToServer && segment.is_syn() && segment.payload() == 5;
    assert_eq!(path.count(|way, segment| early(way, segment) && segment.report().is_some()), 1);
    connection.converse(100_000);
    assert_eq!((heard(&law).at_accept, heard(&law).answered, heard(&law).no_room), (2, 1, 1));
    assert_eq!(counted(&reporter), Counters { offered: 2, answered: 1, ..first });
    // without an RTT at the SYN, the window was chosen at the first that there was
    let server = support::cookie(&connection.server);
    let sockets = law.sockets().expect("a walk");
    let state = sockets.iter().find(|socket| socket.cookie == server).expect("it has the law");
    assert_eq!((field(state, "bandwidth_kbps"), field(state, "initial_is_due")), (3000, 0));
    set_sysctls(&path.a, "net.ipv4.tcp_timestamps=1");
    path.forget();
    let connection = fast_open(&path, &listener);
    assert_eq!(path.count(|way, segment| early(way, segment) && segment.report().is_none()), 1);
    connection.converse(100_000);
    assert_eq!(counted(&reporter), Counters { offered: 2, answered: 1, no_room: 1, ..first });
    assert_eq!((heard(&law).at_accept, heard(&law).malformed), (2, 0));
}

#[test]
fn a_middlebox_that_drops_syns_with_the_option_costs_two_retransmissions_and_is_remembered() {
    needs_root!();
    let law = law();
    let path = Path::new(Duration::ZERO, |way, segment| match (way, segment.report()) {
        (Way::ToServer, Some(_)) if segment.is_syn() => Fate::Lose,
        _ => Fate::Forward,
    });
    let reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    // Once may be what a radio does.
    Connection::open(&path.a, &listener).converse(1000);
    Connection::open(&path.a, &listener).converse(1000);
    let twice = counted(&reporter);
    let sent_again = twice.sent_again.max(2);
    assert_eq!(twice, Counters { offered: 2, sent_again, unanswered: 2, ..Counters::default() });
    Connection::open(&path.a, &listener).converse(1000);
    assert_eq!(counted(&reporter), Counters { avoided: 1, ..twice });
    assert_eq!(path.reports(Way::ToServer).len(), 2);
    assert_eq!(heard(&law), Heard { listeners: 1, ..Heard::default() });
}

#[test]
fn a_middlebox_that_drops_answers_lets_their_repetition_pass() {
    needs_root!();
    let law = law();
    let path = Path::new(Duration::ZERO, |way, segment| match (way, segment.report()) {
        (Way::ToClient, Some(_)) => Fate::Lose,
        _ => Fate::Forward,
    });
    let mut reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    let connection = Connection::open(&path.a, &listener);
    reporter.set(OTHER).expect("set");
    connection.converse(1000);
    // the server has what the SYN said, and hears no more
    assert_eq!(told(&law), (3000, 5000));
    assert_eq!((counted(&reporter).unanswered, counted(&reporter).sent), (1, 0));
    assert_eq!(path.reports(Way::ToClient).len(), 1);
}

/// What a middlebox does now.
type Deed = Arc<Mutex<Box<dyn Fn(Way, &mut Segment) -> Fate + Send>>>;

fn path_with_deeds(delay: Duration) -> (Path, Deed) {
    let deed: Deed = Arc::new(Mutex::new(Box::new(|_, _| Fate::Forward)));
    let done = Arc::clone(&deed);
    (Path::new(delay, move |way, segment| done.lock().expect("no panic")(way, segment)), deed)
}

fn from_now_on(deed: &Deed, now: impl Fn(Way, &mut Segment) -> Fate + Send + 'static) {
    *deed.lock().expect("no panic") = Box::new(now);
}

#[test]
fn an_option_that_is_stripped_leaves_an_ordinary_connection() {
    needs_root!();
    let law = law();
    let (path, deed) = path_with_deeds(Duration::ZERO);
    let mut reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    for (way, with_syn, at_accept) in [(Way::ToServer, true, 0), (Way::ToClient, true, 1), (Way::ToServer, false, 1)] {
        let (before, counted_before) = (heard(&law), counted(&reporter));
        from_now_on(&deed, move |went, segment| {
            if went == way && segment.is_syn() == with_syn {
                segment.strip_report();
            }
            Fate::Forward
        });
        path.forget();
        let connection = Connection::open(&path.a, &listener);
        reporter.set(OTHER).expect("set");
        connection.converse(10_000);
        reporter.set(CLAIM).expect("set");
        let (now, counted) = (heard(&law), counted(&reporter));
        assert_eq!((now.at_accept - before.at_accept, now.later, now.malformed), (at_accept, 0, 0));
        assert_eq!(counted.unanswered - counted_before.unanswered, u64::from(with_syn));
        // where it was stripped from later segments only, the client cannot know
        assert_eq!(path.reports(Way::ToServer).len() > 1, !with_syn);
    }
}

#[test]
fn an_option_that_is_mangled_is_counted_and_ignored() {
    needs_root!();
    let law = law();
    let (path, deed) = path_with_deeds(Duration::ZERO);
    let mut reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    let change = |way: Way, with_syn: bool, at: usize, to: u8| {
        from_now_on(&deed, move |went, segment| {
            if let (true, Some(option)) = (went == way && segment.is_syn() == with_syn, segment.report_at()) {
                segment.change(|bytes| bytes[option.start + at] = to);
            }
            Fate::Forward
        });
    };
    // which octet of a SYN becomes what: heard, malformed, other version
    for (at, to, expected) in [
        (1, 4, [0, 1, 0]),
        (1, 6, [0, 1, 0]),
        (1, 9, [0, 1, 0]),
        // it ends behind the header
        (1, 39, [0, 1, 0]),
        // of a later version that is longer
        (1, 12, [1, 0, 0]),
        (2, 0, [0, 0, 0]),
        (4, 0x20, [0, 0, 1]),
        (4, 0x00, [0, 0, 1]),
        // a server's answer in a SYN
        (4, 0x11, [0, 1, 0]),
        // 2^32 and more
        (7, 0xff, [0, 1, 0]),
        (9, 0xff, [0, 1, 0]),
        (5, 0xf9, [1, 0, 0]),
    ] {
        let (before, counted_before) = (heard(&law), counted(&reporter));
        change(Way::ToServer, true, at, to);
        Connection::open(&path.a, &listener).converse(1000);
        let (now, counted) = (heard(&law), counted(&reporter));
        let heard = [now.at_accept - before.at_accept, now.malformed - before.malformed];
        let [at_accept, malformed] = heard;
        assert_eq!([at_accept, malformed, now.other_version - before.other_version], expected, "octet {at}: {to}");
        assert_eq!(now.answered - before.answered, at_accept);
        assert_eq!(counted.answered - counted_before.answered, at_accept);
    }
    // and of a SYN-ACK: that it has our option does not make it an answer
    for (at, to) in [(1, 6), (4, 0x21), (4, 0x10)] {
        let before = counted(&reporter);
        change(Way::ToClient, true, at, to);
        Connection::open(&path.a, &listener).converse(1000);
        let now = counted(&reporter);
        assert_eq!((now.answered - before.answered, now.unanswered - before.unanswered), (0, 1), "octet {at}: {to}");
        assert_eq!(now.mangled - before.mangled, 1);
    }
    // and of later segments: what was heard before stays
    let before = heard(&law);
    change(Way::ToServer, false, 7, 0xff);
    let connection = Connection::open(&path.a, &listener);
    reporter.set(OTHER).expect("set");
    (0..5).for_each(|_| connection.converse(1000));
    assert_eq!((heard(&law).malformed - before.malformed, heard(&law).later), (3, 0));
    let server = support::cookie(&connection.server);
    let sockets = law.sockets().expect("a walk");
    let state = sockets.iter().find(|socket| socket.cookie == server).expect("it has the law");
    assert_eq!(field(state, "bandwidth_kbps"), 3000);
}

#[test]
fn an_ack_that_is_full_of_sacks_has_no_room_and_stays_as_it_is() {
    needs_root!();
    let law = law();
    let (path, deed) = path_with_deeds(Duration::from_millis(50));
    // each segment out of order is acknowledged by itself
    set_sysctls(&path.a, "net.ipv4.tcp_comp_sack_nr=0");
    let mut reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    let connection = Connection::open(&path.a, &listener);
    // every second of the first data segments is lost once: ACKs with one, two and three blocks beside the timestamps
    let lost = Mutex::new(0);
    from_now_on(&deed, move |way, segment| {
        let mut lost = lost.lock().expect("no panic");
        if way == Way::ToServer || segment.payload() < 1000 || *lost > 9 {
            return Fate::Forward;
        }
        *lost += 1;
        if *lost % 2 == 1 { Fate::Lose } else { Fate::Forward }
    });
    reporter.set(OTHER).expect("set");
    // the request takes one of three, the ACK with one block the second
    connection.converse(100_000);
    let counted = counted(&reporter);
    assert!(counted.no_room > 0, "{counted:?}");
    connection.converse(1000);
    eventually("the rest is said later", || {
        connection.converse(1000);
        told(&law) == (2000, 1000)
    });
    assert_eq!(reporter.counters().expect("counters").sent, 3);
}

#[test]
fn a_report_that_is_lost_with_its_segment_is_repeated_with_it() {
    needs_root!();
    let law = law();
    let (path, deed) = path_with_deeds(Duration::ZERO);
    let mut reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    let connection = Connection::open(&path.a, &listener);
    let lost = Mutex::new(false);
    from_now_on(&deed, move |way, segment| {
        let mut lost = lost.lock().expect("no panic");
        if *lost || way == Way::ToClient || segment.report().is_none() {
            return Fate::Forward;
        }
        *lost = true;
        Fate::Lose
    });
    reporter.set(OTHER).expect("set");
    connection.converse(1000);
    connection.converse(1000);
    eventually("the law hears it", || told(&law) == (2000, 1000));
    assert!(heard(&law).later >= 1);
}

#[test]
fn full_segments_are_never_made_smaller_for_a_report() {
    needs_root!();
    let law = law();
    // a veth pair hands segments on as they are joined, before and after segmentation by the card
    let net = Net::direct();
    let mut reporter = reporter_on(&net.a, "a0");
    reporter.set(CLAIM).expect("set");
    let listener = listener(&net.b, B4, law.name());
    let connection = Connection::open(&net.a, &listener);
    let before = TcpInfo::of(&connection.client).snd_mss();
    for claim in [OTHER, CLAIM, OTHER] {
        reporter.set(claim).expect("set");
        let data = vec![7; 2_000_000];
        let mut received = vec![0; data.len()];
        std::thread::scope(|scope| {
            scope.spawn(|| (&connection.client).write_all(&data).expect("written"));
            (&connection.server).read_exact(&mut received).expect("read");
        });
        assert!(data == received);
        assert_eq!(TcpInfo::of(&connection.client).snd_mss(), before);
        (0..4).for_each(|_| connection.converse(10));
    }
    assert_eq!(told(&law), (2000, 1000));
    assert_eq!((heard(&law).later, heard(&law).malformed), (9, 0));
}

/// Packets of this host that were too large for the way and were not sent.
fn too_large(host: &Host) -> u64 {
    let snmp = host.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp").expect("readable"));
    let mut ip = snmp.lines().filter(|line| line.starts_with("Ip:")).map(|line| line.split_whitespace());
    let (mut names, mut numbers) = (ip.next().expect("names"), ip.next().expect("numbers"));
    let at = names.position(|name| name == "FragFails").expect("it is counted");
    numbers.nth(at).expect("one for each name").parse().expect("a number")
}

#[test]
fn a_segment_beside_sacks_does_not_become_larger_than_the_way_takes() {
    needs_root!();
    let law = law();
    let (path, deed) = path_with_deeds(Duration::from_millis(20));
    let mut reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    let connection = Connection::open(&path.a, &listener);
    // a download with holes while the client uploads: data beside one block or more
    let count = Mutex::new(0);
    from_now_on(&deed, move |way, segment| {
        let mut count = count.lock().expect("no panic");
        *count += u32::from(way == Way::ToClient && segment.payload() > 1000);
        if way == Way::ToClient && *count % 8 == 1 { Fate::Lose } else { Fate::Forward }
    });
    let download = vec![7; 400_000];
    std::thread::scope(|scope| {
        scope.spawn(|| (&connection.server).write_all(&download).expect("written"));
        let reader = scope.spawn(|| (&connection.client).read_exact(&mut vec![0; 400_000]).expect("read"));
        scope.spawn(|| std::io::copy(&mut (&connection.server), &mut std::io::sink()).expect("read"));
        // 1500 of the way, 40 of headers, 12 each of timestamps and of one block
        let full = [7; 1436];
        let mut turn = 0;
        while !reader.is_finished() {
            turn += 1;
            reporter.set(if turn % 2 == 0 { CLAIM } else { OTHER }).expect("set");
            (&connection.client).write_all(&full).expect("written");
            std::thread::sleep(Duration::from_millis(1));
        }
        connection.client.shutdown(std::net::Shutdown::Write).expect("the server's reader ends");
    });
    assert!(path.count(|way, segment| way == Way::ToServer && segment.payload() == 1436) > 10);
    assert!(heard(&law).later > 0, "reports went meanwhile");
    assert_eq!(too_large(&path.a), 0);
}

#[test]
fn who_listens_again_is_prepared_once() {
    needs_root!();
    let law = law();
    let path = Path::clear();
    let reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(9).expect("small")).expect("a longer queue");
    nix::sys::socket::shutdown(std::os::fd::AsRawFd::as_raw_fd(&listener), nix::sys::socket::Shutdown::Read)
        .expect("it ends to listen");
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(9).expect("small")).expect("and begins again");
    Connection::open(&path.a, &listener).converse(1000);
    assert_eq!(counted(&reporter).answered, 1);
    assert_eq!((heard(&law).listeners_failed, heard(&law).at_accept), (0, 1));
}

#[test]
fn other_sockets_are_left_alone() {
    needs_root!();
    let law = law();
    let path = Path::clear();
    path.a.run(|| run("ip link add d0 type veth peer name d1"));
    let elsewhere = reporter_on(&path.a, "d0");
    let reporter = reporter_on(&path.b, "b0");
    let (with_law, with_cubic) = (listener(&path.b, B4, law.name()), listener(&path.b, B4, "cubic"));
    // by another interface, and from another network namespace
    Connection::open(&path.a, &with_law).converse(1000);
    Connection::open(&path.a, &with_cubic).converse(1000);
    // over the loopback interface
    Connection::open(&path.b, &with_law).converse(1000);
    assert_eq!(counted(&elsewhere), Counters::default());
    assert_eq!(counted(&reporter), Counters::default());
    drop((elsewhere, reporter));
    let mut reporter = reporter_on(&path.a, "a0");
    reporter.set(CLAIM).expect("set");
    path.forget();
    // a connection that is opened towards us is not ours to report on, and one with another control is not answered
    let ours = listener(&path.a, support::A4, law.name());
    Connection::open(&path.b, &ours).converse(1000);
    assert!(path.reports(Way::ToServer).is_empty() && path.reports(Way::ToClient).is_empty());
    Connection::open(&path.a, &with_cubic).converse(1000);
    assert_eq!((path.reports(Way::ToServer).len(), path.reports(Way::ToClient).len()), (1, 0));
    assert_eq!(heard(&law), Heard { listeners: 2, ..Heard::default() });
}

#[test]
fn a_listener_that_gets_the_law_later_is_prepared_by_a_walk() {
    needs_root!();
    let law = law();
    let path = Path::clear();
    let reporter = reporter(&path);
    let listener = listener(&path.b, B4, "cubic");
    set_control(&listener, law.name());
    Connection::open(&path.a, &listener).converse(1000);
    assert_eq!((heard(&law).at_accept, counted(&reporter).unanswered), (0, 1));
    path.b.run(|| law.prepare_listeners().expect("a walk"));
    path.b.run(|| law.prepare_listeners().expect("a second walk finds nothing to do"));
    Connection::open(&path.a, &listener).converse(1000);
    assert_eq!(heard(&law), Heard { listeners: 1, at_accept: 1, answered: 1, ..Heard::default() });
}

/// With one packet in 50 marked a window that halves for it is about sqrt(1.5 / 0.02) = 9 segments; one that does not, all of the
/// 200 kB that the queue takes. The client claims as large an error rate.
#[test]
fn a_mark_of_congestion_is_never_taken_for_an_error() {
    needs_root!();
    let law = law();
    let net = Net::bottleneck(20, 200_000);
    for host in [&net.a, &net.b] {
        set_sysctls(host, "net.ipv4.tcp_ecn=1");
    }
    net.router().expect("this net has one").run(|| {
        run("nft add table ip marks");
        run("nft add chain ip marks forward {type filter hook forward priority 0;}");
        run("nft add rule ip marks forward oifname rb ip ecn != not-ect numgen random mod 50 lt 1 ip ecn set ce");
    });
    let mut reporter = reporter_on(&net.b, "b0");
    reporter.set(Claim { bandwidth_kbps: None, error_ppm: Some(20_000), validity_s: 600 }).expect("set");
    let connection = Connection::open(&net.b, &listener(&net.a, A4, law.name()));
    connection.converse(4_000_000);
    let (counters, state, info) = (law.counters().expect("counters"), state(&law), TcpInfo::of(&connection.server));
    println!("{counters:?}, window {}, {state:?}", info.snd_cwnd());
    assert_eq!(told(&law), (0, 20_000));
    assert!(counters.notified > 10, "{counters:?}");
    assert!(field(&state, "ignored") <= counters.losses.into(), "{counters:?}");
    assert!(info.snd_cwnd() < 60, "{}", info.snd_cwnd());
}

#[test]
fn a_server_permits_what_it_likes_to_whom_it_likes() {
    needs_root!();
    let law = law();
    let path = Path::new(Duration::from_millis(20), |_, _| Fate::Forward);
    let mut reporter = reporter(&path);
    let (four, six) = (listener(&path.b, B4, law.name()), listener(&path.b, B6, law.name()));
    let port = Some(four.local_addr().expect("bound").port());
    let clients = |prefix: &str, port| Clients { prefix: prefix.parse().expect("a prefix"), port };
    law.permit(&clients("10.77.0.0/24", None), Heuristics::NONE).expect("permitted");
    Connection::open(&path.a, &four).converse(1000);
    assert_eq!((counted(&reporter).unanswered, heard(&law).answered, heard(&law).not_permitted), (1, 0, 1));
    let permitted = |connection: &Connection| {
        let server = support::cookie(&connection.server);
        let sockets = law.sockets().expect("a walk");
        field(sockets.iter().find(|socket| socket.cookie == server).expect("it has the law"), "permitted")
    };
    let connection = Connection::open(&path.a, &six);
    assert_eq!(permitted(&connection), 7, "of these nothing is said");
    // the port goes before the longer prefix
    law.permit(&clients("0.0.0.0/0", port), "max_cwnd,errors".parse().expect("two")).expect("permitted");
    let connection = Connection::open(&path.a, &four);
    assert_eq!(permitted(&connection), 5);
    assert_eq!(TcpInfo::of(&connection.server).snd_cwnd(), 10, "the initial window is not among them");
    // less from the next report on
    law.permit(&clients("10.77.0.1", port), Heuristics::NONE).expect("permitted");
    reporter.set(OTHER).expect("set");
    connection.converse(1000);
    eventually("the law hears it", || permitted(&connection) == 0);
}

#[test]
fn the_agent_and_the_reporter_work_on_the_same_connection() {
    needs_root!();
    let law = law();
    for mode in [kernel::Mode::Control, kernel::Mode::Clamp] {
        let path = Path::clear();
        let mut reporter = reporter(&path);
        let mut kernel = path.a.run(|| {
            let index = nix::net::if_::if_nametoindex("a0").expect("a0 exists");
            let options = kernel::Options::new(index, mode).expect("cgroup2");
            kernel::Kernel::load(&options).unwrap_or_else(|error| panic!("{error}"))
        });
        kernel.set_bounds(support::bound(1, 5), &[], units::Span::from_secs(600)).expect("bounds");
        let listener = listener(&path.b, B4, law.name());
        let connection = Connection::open(&path.a, &listener);
        let adopted = kernel.counters().adopted_at_connect;
        assert_eq!(adopted, 1, "{mode:?}");
        let before = heard(&law).later;
        reporter.set(OTHER).expect("set");
        // uploads, for the agent's sake: in mode Clamp a window comes down as it next asks to grow
        eventually("both have their way", || {
            connection.converse(1000);
            (&connection.client).write_all(&[7; 40_000]).expect("written");
            (&connection.server).read_exact(&mut [0; 40_000]).expect("read");
            heard(&law).later - before >= 3 && TcpInfo::of(&connection.client).snd_cwnd() <= 5
        });
        assert_eq!(heard(&law).later - before, 3);
        // a reporter that comes second finds the agent there
        drop(reporter);
        let reporter = reporter_on(&path.a, "a0");
        let connection = Connection::open(&path.a, &listener);
        connection.converse(1000);
        assert_eq!(kernel.counters().adopted_at_connect, 2);
        assert_eq!(counted(&reporter).answered, 1);
    }
}

/// A process that reports and hears, for the next test to kill.
#[test]
#[ignore = "only a part of another test, which starts it"]
fn a_process_to_be_killed() {
    if std::env::var_os("LASTHOP_TEST_KILL").is_none() {
        return;
    }
    let index = nix::net::if_::if_nametoindex("a0").expect("a0 exists");
    let mut reporter = Reporter::load(&ReporterOptions::new(index).expect("cgroup2")).expect("loaded");
    reporter.set(CLAIM).expect("set");
    let law = law();
    println!("\nlaw {}", law.name());
    std::thread::sleep(support::PATIENCE);
}

#[test]
fn nothing_is_left_of_those_who_are_killed() {
    needs_root!();
    let path = Path::clear();
    let mut child = path.a.run(|| {
        let mut command = Command::new(std::env::current_exe().expect("our own file"));
        command.args(["--exact", "a_process_to_be_killed", "--ignored", "--nocapture"]);
        command.env("LASTHOP_TEST_KILL", "1").stdout(Stdio::piped()).spawn().expect("another process")
    });
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let mut lines = lines.filter_map(|line| line.strip_prefix("law ").map(str::to_owned));
    let name = lines.next().expect("it loads");
    let listener = listener(&path.b, B4, &name);
    let connection = Connection::open(&path.a, &listener);
    connection.converse(1000);
    assert_eq!((path.reports(Way::ToServer).len(), path.reports(Way::ToClient).len()), (1, 1));
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    let registered = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("/proc");
    eventually("the law is gone", || !registered().contains(&name));
    // the links of the programs go a moment after the process
    eventually("its programs are gone", || {
        path.forget();
        Connection::open(&path.a, &listener).converse(1000);
        path.reports(Way::ToServer).is_empty() && path.reports(Way::ToClient).is_empty()
    });
    connection.converse(100_000);
}

#[test]
fn what_cannot_be_reported_on_is_refused_by_name() {
    needs_root!();
    let path = Path::clear();
    let refused = |index| path.a.run(|| Reporter::load(&ReporterOptions::new(index).expect("cgroup2")));
    let message = refused(99_999).expect_err("there is none").to_string();
    assert!(message.contains("interface 99999") && message.contains("there is none"), "{message}");
    let message = refused(path.a.interface("lo")).expect_err("it is loopback").to_string();
    assert!(message.contains("loopback"), "{message}");
    let message = path.a.run(|| {
        let options = ReporterOptions {
            cgroup: "/nowhere".into(),
            ..ReporterOptions::new(path.a.interface("a0")).expect("cgroup2")
        };
        Reporter::load(&options).expect_err("no such cgroup").to_string()
    });
    assert!(message.contains("/nowhere"), "{message}");
}
