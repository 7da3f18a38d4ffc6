//! The link report between two hosts of the kernel: the client's programs say it, the server's law hears it, and whatever is
//! between them does its worst. Every packet goes through this process.
#![allow(unsafe_code, missing_docs)] // TCP Fast Open has no safe call

mod lifecycle;
mod middleboxes;
mod report;
mod room;
mod sockets;
#[path = "../support/mod.rs"]
mod support;

use lasthop_kernel::laws::{Clients, Heard, Heuristics, Loaded, Name, Options, SocketState, Value};
use lasthop_kernel::link_report::{Claim, Options as ReporterOptions, Reporter};
use lasthop_laws::LinkReport;
use lasthop_laws::ReportCounters;
use lasthop_laws::option::{self, Flags};
use lasthop_laws::{LawName, Parameters};
use lasthop_units::{Probability, Rate};
use nix::libc;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::middlebox::{Fate, Path, Segment, Way};
use support::{A4, B4, B6, Host, Net, eventually, run, set_control, set_u32, tcp_info};

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
    let options = Options { name: Name::Private, ..Options::new(LawName::Lastlink, parameters) };
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

fn counted(reporter: &Reporter) -> ReportCounters {
    reporter.counters().expect("counters")
}

/// As the client's programs must write it; the validity is up to the moment.
fn octets(claim: &Claim) -> Vec<u8> {
    let report = LinkReport {
        bandwidth: claim.bandwidth_kbps.map(|kbps| Rate::from_bps(u64::from(kbps) * 1000)),
        error_rate: claim.error_ppm.map(|ppm| Probability::new(f64::from(ppm) / 1e6).expect("at most 1")),
        validity: lasthop_units::Span::from_secs(512),
    };
    option::encode(&report, Flags::default()).to_vec()
}

fn set_sysctls(host: &Host, settings: &str) {
    host.run(|| run(&format!("sysctl -qw {settings}")));
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
