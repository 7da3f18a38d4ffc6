//! What servers are told of a host's own link: that it is what is configured or seen, and that it ends with the link.
#![allow(missing_docs)]

use crate::common::process::{AgentProcess, ONE_AT_A_TIME};
use crate::common::{Host, Running, SharedFake, fake, root, two_hosts, wait_for};
use lasthop_agent::host_tcp::Claim;
use lasthop_agent::{Config, LastLinkConfig, Mode};
use lasthop_kernel::laws;
use lasthop_lastlink::Source;
use lasthop_laws::{LawName, Parameters, ReportCounters};
use lasthop_status::record::{Event, LinkReported, LinkTotals, ReportCause};
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
use std::time::{Duration, Instant};

/// 7 Mb/s and 0.5 %, told anew every two seconds; what is left is 8 s or more until then.
const CONFIGURED: Claim = Claim { bandwidth_kbps: Some(7000), error_ppm: Some(5000), validity_s: 14 };
const NOTHING: Claim = Claim { bandwidth_kbps: None, error_ppm: None, validity_s: 14 };

fn configured(interface: &str) -> Config {
    let mut config = crate::common::config(interface, "none");
    (config.beacon.ipv4, config.beacon.ipv6) = (false, false);
    config.mode = Mode::Observe;
    config.last_link = LastLinkConfig {
        report: true,
        bandwidth_mbps: Some(7.0),
        packet_error_rate: Some(0.005),
        validity_s: 8,
        ..LastLinkConfig::default()
    };
    config
}

/// Waits until the last claim is this one.
fn wait_for_claim(fake: &SharedFake, claim: Claim) {
    wait_for("a claim", || (fake.lock().expect("no panic").claims.last() == Some(&claim)).then_some(()));
}

fn reported(events: &[Event]) -> Vec<&LinkReported> {
    events
        .iter()
        .filter_map(|event| if let Event::LastLink(reported) = event { Some(reported) } else { None })
        .collect()
}

#[test]
fn what_is_configured_is_claimed_in_every_mode_and_renewed_before_it_lapses() {
    let fake = fake(Vec::new());
    let agent = Running::start(configured("lo"), fake.clone());
    let begun = Instant::now();
    wait_for("two renewals", || (fake.lock().expect("no panic").claims.len() >= 3).then_some(()));
    // Renewed every two seconds, which is a quarter of 8 s, and not at each tick of 50 ms.
    assert!(begun.elapsed() >= Duration::from_secs(2));
    let (summary, events) = agent.stop();
    let claims = fake.lock().expect("the agent is gone").claims.clone();
    let Some((NOTHING, before)) = claims.split_last().map(|(last, before)| (*last, before)) else {
        panic!("retracted at the end: {claims:?}")
    };
    assert!(before.iter().all(|claim| *claim == CONFIGURED));
    let [reported, retracted] = reported(&events)[..] else { panic!("one report, and its renewals are none") };
    assert_eq!((retracted.bandwidth_mbps, retracted.error_rate, retracted.cause), (None, None, ReportCause::Stopped));
    assert_eq!((reported.bandwidth_mbps, reported.bandwidth_source), (Some(7.0), Some(Source::Configuration)));
    assert_eq!((reported.error_rate, reported.error_rate_source), (Some(0.005), Some(Source::Configuration)));
    assert_eq!((reported.validity_s, reported.cause), (8, ReportCause::Estimate));
    let summary = summary.expect("a clean stop");
    let totals = LinkTotals {
        changed: 1,
        retracted: 1,
        counters: ReportCounters { offered: 7, answered: 5, ..ReportCounters::default() },
    };
    assert_eq!(summary.last_link, Some(totals));
    let said = "last link: told anew 1 times, retracted 1 times; 7 SYNs with the option (5 answered, 0 not, 0 lost) and 0 later";
    assert!(summary.to_string().contains(said), "{summary}");
}

#[test]
fn by_default_servers_are_told_nothing() {
    let fake = fake(Vec::new());
    let config = Config { last_link: LastLinkConfig::default(), ..configured("lo") };
    let agent = Running::start(config, fake.clone());
    agent.wait_for_tick("a tick", |_| true);
    let (summary, events) = agent.stop();
    assert_eq!(summary.expect("a clean stop").last_link, None);
    assert!(reported(&events).is_empty() && fake.lock().expect("the agent is gone").claims.is_empty());
}

#[test]
fn a_kernel_that_cannot_tell_servers_or_does_not_for_a_while_ends_nothing() {
    let unable = fake(Vec::new());
    unable.lock().expect("no panic").cannot_report = true;
    let agent = Running::start(configured("lo"), unable.clone());
    agent.wait_for_tick("a tick", |_| true);
    let (summary, events) = agent.stop();
    assert_eq!(summary.expect("a clean stop").last_link, Some(LinkTotals::default()));
    assert!(reported(&events).is_empty());

    let refusing = fake(Vec::new());
    refusing.lock().expect("no panic").refuses_claims = true;
    let agent = Running::start(configured("lo"), refusing.clone());
    agent.wait_for_tick("a tick", |_| true);
    refusing.lock().expect("no panic").refuses_claims = false;
    wait_for_claim(&refusing, CONFIGURED);
    assert_eq!(agent.stop().0.expect("a clean stop").last_link.expect("configured").changed, 1);
}

#[test]
fn a_link_that_is_down_is_retracted_and_told_again_when_it_is_up() {
    if !root() {
        return;
    }
    let (a, _b) = two_hosts();
    let fake = fake(Vec::new());
    let agent = Running::start_on(&a, configured("last"), fake.clone());
    wait_for_claim(&fake, CONFIGURED);
    a.ip("link set last down");
    wait_for_claim(&fake, NOTHING);
    a.ip("link set last up");
    wait_for_claim(&fake, CONFIGURED);
    let (summary, events) = agent.stop();
    let totals = summary.expect("a clean stop").last_link.expect("configured");
    assert_eq!((totals.changed, totals.retracted), (2, 2));
    let causes: Vec<_> = reported(&events).iter().map(|reported| reported.cause).collect();
    use ReportCause::{Estimate, LinkLost, Stopped};
    assert_eq!(causes, [Estimate, LinkLost, Estimate, Stopped]);
}

#[test]
fn what_holds_behind_one_access_point_is_retracted_behind_another() {
    if !root() {
        return;
    }
    let (a, _b) = two_hosts();
    a.ip("route add default via 10.77.0.254");
    let mut config = configured("last");
    config.last_link.access_point = Some("gateway 10.77.0.254".to_owned());
    let fake = fake(Vec::new());
    let agent = Running::start_on(&a, config, fake.clone());
    wait_for_claim(&fake, CONFIGURED);
    a.ip("route replace default via 10.77.0.253");
    wait_for_claim(&fake, NOTHING);
    a.ip("route replace default via 10.77.0.254");
    wait_for_claim(&fake, CONFIGURED);
    let (summary, events) = agent.stop();
    assert_eq!(summary.expect("a clean stop").roamed, 2);
    let causes: Vec<_> = reported(&events).iter().map(|reported| reported.cause).collect();
    use ReportCause::{Estimate, Roamed, Stopped};
    assert_eq!(causes, [Estimate, Roamed, Roamed, Stopped]);
}

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
