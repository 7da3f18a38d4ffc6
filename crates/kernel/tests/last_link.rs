//! The link report between two hosts of the kernel: the client's programs say it, the server's law hears it, and whatever is
//! between them does its worst. Every packet goes through this process.
#![allow(missing_docs)]

mod support;

use control::law::{LawName, Parameters};
use kernel::laws::{Heard, Law, Loaded, Name, Options};
use kernel::report::{Claim, Counters, Options as ReporterOptions, Reporter};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::time::Duration;
use support::middlebox::{Fate, Path, Way};
use support::{B4, TcpInfo, set_control};

fn reporter(path: &Path) -> Reporter {
    path.a.run(|| {
        let index = nix::net::if_::if_nametoindex("a0").expect("a0 exists");
        Reporter::load(&ReporterOptions::new(index).expect("cgroup2")).unwrap_or_else(|error| panic!("{error}"))
    })
}

const CLAIM: Claim = Claim { bandwidth_kbps: Some(5500), error_ppm: Some(5000), validity_s: 60 };

/// A connection from `a` to `b`: the client's end and the server's.
fn connection(path: &Path, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let to = listener.local_addr().expect("bound");
    let client = path.a.run(|| TcpStream::connect(to).unwrap_or_else(|error| panic!("{to}: {error}")));
    let (server, _) = listener.accept().expect("the connection just opened");
    (client, server)
}

fn listener(path: &Path, address: &str) -> TcpListener {
    let ip: IpAddr = address.parse().expect("an address");
    path.b.run(|| TcpListener::bind(SocketAddr::new(ip, 0)).expect("a listener"))
}

#[test]
fn a_server_that_does_not_know_the_option_sees_an_ordinary_connection() {
    needs_root!();
    let path = Path::clear();
    let mut reporter = reporter(&path);
    reporter.set(CLAIM).expect("set");
    let listener = listener(&path, B4);
    let (mut client, mut server) = connection(&path, &listener);
    client.write_all(b"a request").expect("written");
    let mut request = [0; 9];
    server.read_exact(&mut request).expect("read");
    // 5500 = 1375 << 2, 5000 = 1250 << 2; of the 60 s, 2^5 s are told
    assert_eq!(path.reports(Way::ToServer), [[253, 10, 0x6c, 0x68, 0x10, 5, 0xab, 0xe2, 0x9c, 0x42]]);
    assert!(path.reports(Way::ToClient).is_empty());
    let counters = reporter.counters().expect("counters");
    assert_eq!(counters, Counters { offered: 1, unanswered: 1, ..Counters::default() });
}

fn law() -> Loaded {
    let parameters = Parameters::of(LawName::Lastlink);
    let options = Options { name: Name::Private, ..Options::new(Law::Lastlink, *parameters.values()) };
    Loaded::load(&options).unwrap_or_else(|error| panic!("{error}"))
}

/// A listening socket of `b` whose connections have the law.
fn listener_with(path: &Path, address: &str, law: &str) -> TcpListener {
    use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, listen, socket};
    let ip: IpAddr = address.parse().expect("an address");
    let family = if ip.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    path.b.run(|| {
        let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        set_control(&socket, law);
        bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(ip, 0))).expect("bound");
        listen(&socket, Backlog::new(64).expect("64")).expect("listening");
        TcpListener::from(socket)
    })
}

#[test]
fn the_law_hears_the_report_of_the_handshake() {
    needs_root!();
    let law = law();
    let path = Path::new(Duration::from_millis(20), |_, _| Fate::Forward);
    let mut reporter = reporter(&path);
    reporter.set(CLAIM).expect("set");
    let listener = listener_with(&path, B4, law.name());
    let (_client, server) = connection(&path, &listener);
    let info = TcpInfo::of(&server);
    // [wu] section 3.2: BW RTT / (8 L)
    let expected = 5500 * info.rtt_us() / 8000 / info.snd_mss();
    assert_eq!((info.snd_cwnd(), info.snd_ssthresh()), (expected, expected));
    assert_eq!(law.heard().expect("counters"), Heard { listeners: 1, at_accept: 1, answered: 1, ..Heard::default() });
    let counters = reporter.counters().expect("counters");
    assert_eq!(counters, Counters { offered: 1, answered: 1, ..Counters::default() });
}
