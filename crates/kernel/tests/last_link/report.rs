//! What is said and heard, from the SYN to the end of a claim.

use super::*;

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
    assert_eq!(counted(&reporter), ReportCounters { offered: 1, unanswered: 1, ..ReportCounters::default() });
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
    let info = tcp_info(&connection.server);
    // [wu] section 3.2: BW RTT / (8 L), here 25 or 26; the receiver's first window is 64 kB, 44 segments
    let expected = 3000 * info.tcpi_rtt / 8000 / info.tcpi_snd_mss;
    assert!(expected >= 25, "{expected}");
    path.forget();
    connection.converse(200_000);
    if expected > 44 || tcp_info(&connection.server).tcpi_total_retrans > 0 || counted(&reporter).sent_again > 0 {
        return false;
    }
    assert_eq!((info.tcpi_snd_cwnd, info.tcpi_snd_ssthresh), (expected, expected));
    let seen = path.seen.lock().expect("no panic");
    let data = |way, (went, segment): &&(Way, Segment)| *went == way && segment.payload() > 0;
    let first = seen.iter().find(|seen| data(Way::ToClient, seen)).expect("a response").1.sequence();
    let acknowledges = |segment: &Segment| segment.acknowledges().wrapping_sub(first).cast_signed() > 0;
    let until_ack = seen.iter().take_while(|(way, segment)| *way == Way::ToClient || !acknowledges(segment));
    assert_eq!(until_ack.filter(|seen| data(Way::ToClient, seen)).count(), expected as usize);
    drop(seen);
    assert_eq!(heard(&law), Heard { listeners: 1, at_accept: 1, answered: 1, ..Heard::default() });
    assert_eq!(counted(&reporter), ReportCounters { offered: 1, answered: 1, ..ReportCounters::default() });
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
    let first = ReportCounters { offered: 1, unanswered: 1, ..ReportCounters::default() };
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
    assert_eq!(counted(&reporter), ReportCounters { offered: 2, answered: 1, ..first });
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
    assert_eq!(counted(&reporter), ReportCounters { offered: 2, answered: 1, no_room: 1, ..first });
    assert_eq!((heard(&law).at_accept, heard(&law).malformed), (2, 0));
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
    let (counters, state, info) = (law.counters().expect("counters"), state(&law), tcp_info(&connection.server));
    println!("{counters:?}, window {}, {state:?}", info.tcpi_snd_cwnd);
    assert_eq!(told(&law), (0, 20_000));
    assert!(counters.notified > 10, "{counters:?}");
    assert!(field(&state, "ignored") <= counters.losses.into(), "{counters:?}");
    assert!(info.tcpi_snd_cwnd < 60, "{}", info.tcpi_snd_cwnd);
}
