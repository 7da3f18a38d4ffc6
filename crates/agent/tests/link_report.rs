//! What servers hear of a host's own link: its kernel writes that into SYNs, and measures what comes in. Needs root.
#![allow(missing_docs)]

use crate::common::process::{AgentProcess, ONE_AT_A_TIME};
use crate::common::{Host, reported, root, two_hosts, wait_for};
use lasthop_agent::Mode;
use lasthop_kernel::laws;
use lasthop_lastlink::Source;
use lasthop_laws::{LawName, Parameters};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, bind, listen, recv, setsockopt,
    socket, sockopt,
};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

const SETTINGS: &str = "[beacon]\nipv4 = false\nipv6 = false\n[last_link]\nreport = true\n";

#[test]
fn the_syn_of_a_connection_says_what_is_configured() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, b) = two_hosts();
    let listener = b.run(|| TcpListener::bind("10.77.0.2:5001").expect("a port"));
    let syns = syn_options(&b);
    let settings = format!("{SETTINGS}bandwidth_mbps = 7\npacket_error_rate = 0.005\n");
    let agent = AgentProcess::start(&a, Mode::Observe, &settings);
    wait_for("a report", || (!reported(&agent.events()).is_empty()).then_some(()));
    let connect = |host: &Host| {
        // On a busy machine an earlier SYN was sent twice.
        while syns.try_recv().is_ok() {}
        host.run(|| TcpStream::connect("10.77.0.2:5001").expect("a connection"));
        syns.recv_timeout(Duration::from_secs(60)).expect("its SYN")
    };
    let options = connect(&a);
    let option = options.windows(4).position(|bytes| bytes == [253, 10, 0x6c, 0x68]).map(|at| &options[at..at + 10]);
    let Some(&[_, _, _, _, version_and_flags, validity, ref numbers @ ..]) = option else {
        panic!("a report among {options:02x?}")
    };
    assert_eq!(version_and_flags, 0x10);
    assert_eq!(validity & 0xf, 5, "valid for 32 s, which is the default");
    // 7000 = 1750 · 2^2, 5000 = 1250 · 2^2: 1750 · 32 + 2 and 1250 · 32 + 2
    assert_eq!(numbers, [0xda, 0xc2, 0x9c, 0x42]);

    let totals = agent.stop().last_link.expect("configured");
    // Its server did not know the option, so later SYNs to it would have gone without.
    assert_eq!(
        (totals.changed, totals.counters.offered, totals.counters.answered, totals.counters.unanswered),
        (1, 1, 0, 1)
    );
    assert!(!connect(&a).contains(&253), "nobody tells any more");
    drop(listener);
}

/// The TCP options of each SYN that comes to port 5001 on the host's interface `last`.
fn syn_options(host: &Host) -> Receiver<Vec<u8>> {
    let packets = host.run(|| {
        socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), SockProtocol::EthAll).expect("possible as root")
    });
    let (found, options) = channel();
    thread::spawn(move || {
        let mut frame = [0; 2048];
        while let Ok(length) = recv(packets.as_raw_fd(), &mut frame, MsgFlags::empty()) {
            // Ethernet 14, IPv4 20; then ports 4, numbers 8, header length and flags.
            if length < 54 || frame[12..14] != [0x08, 0x00] {
                continue;
            }
            let tcp = &frame[34..length];
            let is_syn = tcp[2..4] == 5001_u16.to_be_bytes() && tcp[13] & 0x12 == 0x02;
            if is_syn && found.send(tcp[20..usize::from(tcp[12] >> 4) * 4].to_vec()).is_err() {
                return;
            }
        }
    });
    options
}

#[test]
fn a_server_hears_that_the_agent_stops_and_only_one_agent_reports_a_link() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, b) = two_hosts();
    let mut of_law = laws::Options::new(LawName::Lastlink, Parameters::of(LawName::Lastlink));
    of_law.name = laws::Name::Private;
    let law = laws::Loaded::load(&of_law).expect("possible as root");
    let name = OsString::from(law.name());
    let listener = b.run(move || {
        let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).expect("a socket");
        setsockopt(&socket, sockopt::TcpCongestion, &name).expect("it is loaded");
        bind(socket.as_raw_fd(), &SockaddrIn::new(10, 77, 0, 2, 5001)).expect("a port");
        listen(&socket, Backlog::MAXCONN).expect("a listener");
        TcpListener::from(socket)
    });
    // Valid for nine hours, which nobody waits for.
    let settings = format!("{SETTINGS}bandwidth_mbps = 7\npacket_error_rate = 0.005\nvalidity_s = 32768\n");
    let agent = AgentProcess::start(&a, Mode::Observe, &settings);
    wait_for("a report", || (!reported(&agent.events()).is_empty()).then_some(()));
    assert!(agent.log().contains("behind the access point \"link\""), "{}", agent.log());
    let mut receiving = a.run(|| TcpStream::connect("10.77.0.2:5001").expect("a connection"));
    let (mut sending, _) = listener.accept().expect("the connection");
    thread::spawn(move || while matches!(receiving.read(&mut [0; 1 << 16]), Ok(1..)) {});
    let more = thread::spawn(move || while sending.write_all(&[0; 1000]).is_ok() {});
    let heard = || {
        let sockets = law.sockets().expect("sockets can be walked");
        let field = |name| sockets.iter().flat_map(|socket| &socket.fields).find(|field| field.name == name);
        let number = |name| {
            field(name)
                .and_then(|field| if let laws::Value::Number(number) = field.value { Some(number) } else { None })
        };
        Some((number("bandwidth_kbps")?, number("error_ppm")?))
    };
    wait_for("a server that has heard", || (heard()? == (7000, 5000)).then_some(()));

    let second = AgentProcess::refused(&a, Mode::Observe, &settings);
    let expected =
        format!("another agent (process {}) reports the last link of last already: stop it first", agent.process.id());
    assert!(second.contains(&expected), "{second}");
    let beside = AgentProcess::start(
        &a,
        Mode::Observe,
        "[beacon]\nipv4 = false\nipv6 = false\n[last_link]\nbandwidth_mbps = 3\n",
    );
    assert!(beside.log().contains("the numbers in [last_link] are told to nobody"), "{}", beside.log());
    beside.stop();

    let totals = agent.stop().last_link.expect("configured");
    assert_eq!((totals.changed, totals.retracted, totals.counters.answered), (1, 1, 1));
    assert_eq!(heard(), Some((0, i128::from(u32::MAX))), "the agent has gone, and has said so");
    drop(listener);
    b.ip("link set last down");
    drop(law);
    drop(more);
}

#[test]
fn the_log_says_why_the_given_numbers_are_not_told_here() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, _b) = two_hosts();
    a.ip("route add default via 10.77.0.254");
    let settings = format!("{SETTINGS}bandwidth_mbps = 7\naccess_point = \"gateway 10.77.0.253\"\n");
    let agent = AgentProcess::start(&a, Mode::Observe, &settings);
    for said in [
        "behind the access point \"gateway 10.77.0.254\"",
        "they hold behind \"gateway 10.77.0.253\", and this is \"gateway 10.77.0.254\"",
    ] {
        wait_for(said, || agent.log().contains(said).then_some(()));
    }
    agent.stop();
}

#[test]
fn a_download_that_fills_its_path_is_measured() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, b) = two_hosts();
    b.command("tc", "qdisc replace dev last root tbf rate 20mbit burst 8k limit 200k");
    let listener = b.run(|| TcpListener::bind("10.77.0.2:5001").expect("a port"));
    let agent = AgentProcess::start(&a, Mode::Observe, &format!("tick_ms = 100\n{SETTINGS}"));
    let mut receiving = a.run(|| TcpStream::connect("10.77.0.2:5001").expect("a connection"));
    let (mut sending, _) = listener.accept().expect("the connection");
    // One that fills queues, whatever this machine's default is.
    setsockopt(&sending, sockopt::TcpCongestion, &OsString::from("reno")).expect("every kernel has it");
    thread::spawn(move || while matches!(receiving.read(&mut [0; 1 << 16]), Ok(1..)) {});
    // At first less than the path carries, so that its RTT without a queue is seen.
    for _ in 0..40 {
        sending.write_all(&[0; 20_000]).expect("it is read");
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(reported(&agent.events()).iter().filter(|reported| reported.bandwidth_mbps.is_some()).count(), 0);
    thread::spawn(move || while sending.write_all(&[0; 1 << 16]).is_ok() {});
    let measured = wait_for("a bandwidth", || {
        reported(&agent.events()).into_iter().find(|reported| reported.bandwidth_mbps.is_some()).cloned()
    });
    assert_eq!(measured.bandwidth_source, Some(Source::Traffic));
    let mbps = measured.bandwidth_mbps.expect("there is one");
    assert!((5.0..=20.0).contains(&mbps), "{mbps}");
    agent.stop();
}
