//! The traffic over real sockets, and its arithmetic.

use super::*;
use nix::sys::socket::{AddressFamily, SockFlag, SockType};

/// The most packets of a device before the applications have their turn. Where as many as 16 are unread, the window cannot
/// move, and a kernel acknowledges ten segments together.
const CARRIED_AT_ONCE: usize = 2;

#[test]
fn a_flow_counts_from_the_end_of_the_warm_up() {
    let warmup = Counted { received: Bytes::new(100), retransmits: 43, timeouts: Some(2), delivered_ce: 1 };
    let end = Counted { received: Bytes::new(350), retransmits: 45, timeouts: Some(2), delivered_ce: 8 };
    let report = end.since(warmup, None);
    assert_eq!((report.received, report.retransmits, report.timeouts), (Bytes::new(250), 2, Some(0)));
    assert_eq!(report.delivered_ce, 7);
    // A flow that starts after the warm-up.
    let report = end.since(Counted::default(), None);
    assert_eq!((report.retransmits, report.timeouts), (45, Some(2)));
}

#[test]
fn an_end_that_came_with_the_last_data_is_seen_with_them() {
    let flags = SockFlag::SOCK_CLOEXEC;
    let (sender, receiver) =
        socket::socketpair(AddressFamily::Unix, SockType::Stream, None, flags).expect("a pair of sockets");
    let mut unused = [0; 4096];
    nix::unistd::write(&sender, &[0; 100]).expect("room");
    assert_eq!(receive_all(&receiver, &mut unused, true), Ok((Bytes::new(100), false)));
    nix::unistd::write(&sender, &[0; 100]).expect("room");
    close(&sender);
    assert_eq!(receive_all(&receiver, &mut unused, true), Ok((Bytes::new(100), true)));
}

#[test]
fn counters_of_earlier_connections_are_kept() {
    let counted = |retransmits, timeouts| Counted { received: Bytes::new(9), retransmits, timeouts, delivered_ce: 0 };
    let sum = |now: Counted, past| (now.with_past(past).retransmits, now.with_past(past).timeouts);
    assert_eq!(sum(counted(2, Some(1)), counted(3, Some(4))), (5, Some(5)));
    // Between two connections nothing is counted.
    assert_eq!(sum(counted(0, None), counted(3, Some(4))), (3, Some(4)));
    assert_eq!(sum(counted(1, None), counted(3, None)), (4, None));
}

/// Two hosts at A, the second with its era's stack, with an upload and a download each. Without a model between the
/// devices there is no delay, so a few thousand segments take no time.
#[test]
fn both_ends_of_a_connection_have_the_stack_that_its_host_asks_for() {
    const TIMESTAMPS: u8 = 1;
    const SACK: u8 = 2;
    const WINDOW_SCALING: u8 = 4;
    const ENOUGH: Bytes = Bytes::new(2_000_000);

    if !nix::unistd::geteuid().is_root() {
        assert!(std::env::var_os("LASTHOP_REQUIRE_ROOT_TESTS").is_none(), "kernel hosts need root");
        eprintln!("skipped: kernel hosts need root");
        return;
    }
    let flows = "[[hosts.flows]]\nto = \"B\"\n[[hosts.flows]]\nto = \"B\"\ndirection = \"down\"\n";
    let text = format!(
        "[[links]]\nbetween = [\"A\", \"B\"]\n[[hosts]]\nnode = \"A\"\ncongestion_control = \"newreno\"\n[hosts.tcp]\n\
         mss_bytes = 1012\nsack = false\nrto_min_ms = 800\nreceive_buffer_kib = 40\n{flows}\
         [[hosts]]\nnode = \"A\"\n{flows}"
    );
    let scenario = lasthop_scenario::Scenario::from_toml("x.toml", &text, &[]).expect("a scenario");
    let (traffic, hosts) = until_all_have(ENOUGH, &scenario);
    assert_eq!(traffic.plans.iter().map(|plan| plan.server).collect::<Vec<_>>(), [0, 0, 1, 1]);
    for (number, (flow, plan)) in traffic.flows.iter().zip(&traffic.plans).enumerate() {
        assert!(flow.received >= ENOUGH, "flow {number}: {} {:?}", flow.received, flow.failed);
        let sender = flow.sender(plan).expect("a sender");
        let (info, _) = lasthop_kernel::tcp_info(sender).expect("TCP_INFO");
        let said = format!("flow {number}: {info:?}");
        let options = info.tcpi_options & (TIMESTAMPS | SACK | WINDOW_SCALING);
        if plan.spec.host == 0 {
            assert_eq!((info.tcpi_snd_mss, options), (1000, TIMESTAMPS | WINDOW_SCALING), "{said}");
            // The floor applies to the variance term. Without a delay the other term is almost nothing.
            assert!((800_000..1_200_000).contains(&info.tcpi_rto), "{said}");
            // At most 40 KiB, in units of 2^scale bytes, once the handshake's window has been used up.
            assert!((36_000..=40_960).contains(&info.tcpi_snd_wnd), "{said}");
        } else {
            assert_eq!((info.tcpi_snd_mss, options), (1448, TIMESTAMPS | SACK | WINDOW_SCALING), "{said}");
            assert!((200_000..800_000).contains(&info.tcpi_rto), "{said}");
            assert!(info.tcpi_snd_wnd > 60_000, "{said}");
        }
    }

    // Packets are no longer carried, and the senders have buffered data. The kernel would retransmit them for
    // minutes.
    let connections = || hosts.namespaces.iter().map(connections).sum::<usize>();
    assert!(connections() >= 2 * traffic.flows.len());
    drop(traffic);
    assert_eq!(connections(), 0);
}

/// One upload to a kernel that acknowledges every second segment, and one to a kernel that joins up to eight.
#[test]
fn a_kernel_that_joins_segments_acknowledges_them_together() {
    const ENOUGH: Bytes = Bytes::new(4_000_000);

    if !nix::unistd::geteuid().is_root() {
        assert!(std::env::var_os("LASTHOP_REQUIRE_ROOT_TESTS").is_none(), "kernel hosts need root");
        eprintln!("skipped: kernel hosts need root");
        return;
    }
    let host = "[[hosts]]\nera = \"modern\"\ncongestion_control = \"newreno\"\n[[hosts.flows]]\n";
    let text = format!(
        "[access]\nstandard = \"802.11ac\"\n{host}{}",
        host.replace("[[hosts.flows]]", "[hosts.tcp]\ndelayed_ack_segments = 8\n[[hosts.flows]]")
    );
    let scenario = lasthop_scenario::Scenario::from_toml("x.toml", &text, &[]).expect("a scenario");
    let (traffic, _hosts) = until_all_have(ENOUGH, &scenario);
    let segments_per_ack = |flow: &Flow| {
        let (info, _) = lasthop_kernel::tcp_info(flow.server.as_ref().expect("a server")).expect("TCP_INFO");
        f64::from(info.tcpi_data_segs_in) / f64::from(info.tcpi_segs_out)
    };
    let [plain, joined] = &traffic.flows[..] else { panic!("two flows") };
    let said =
        format!("{} and {} segments for each acknowledgement", segments_per_ack(plain), segments_per_ack(joined));
    assert!(segments_per_ack(plain) <= 2.2, "{said}");
    // The last segments may not have been acknowledged yet.
    assert!((4.0..=9.0).contains(&segments_per_ack(joined)), "{said}");
}

/// A call and pings, with all datagrams due since this machine started.
#[test]
fn a_flow_that_cannot_keep_up_leaves_the_others_their_turn() {
    if !nix::unistd::geteuid().is_root() {
        assert!(std::env::var_os("LASTHOP_REQUIRE_ROOT_TESTS").is_none(), "kernel hosts need root");
        eprintln!("skipped: kernel hosts need root");
        return;
    }
    let flows = "[[hosts.flows]]\nkind = \"constant\"\n[[hosts.flows]]\nkind = \"ping\"\n";
    let scenario = lasthop_scenario::Scenario::from_toml("x.toml", &format!("[[hosts]]\n{flows}"), &[]);
    let scenario = scenario.expect("a scenario");
    let specs = scenario.expanded_hosts();
    let servers = crate::hosts::Servers::of(&scenario, &specs).expect("servers");
    let hosts = Hosts::new(&scenario, &specs, &servers, None, false).expect("namespaces");
    let laws = crate::laws::Laws::load(&specs).expect("none");
    let plans = crate::flow_plans(scenario.seed, &specs, &servers, &laws, false);
    let mut traffic = Traffic::prepare(plans, &hosts).expect("sockets");
    let late = traffic.act_all(Clock::started_at_monotonic_ns(0)).expect("sockets");
    assert!(late > Span::from_secs(20), "{late:?}");
    let sent: Vec<usize> = traffic.flows.iter().map(|flow| flow.sent.len()).collect();
    assert_eq!(sent, [ACTS_AT_ONCE; 2]);
}

/// Carries the scenario's flows, without a network in between, until all have received this much or seem stuck.
fn until_all_have(enough: Bytes, scenario: &lasthop_scenario::Scenario) -> (Traffic<'static>, &'static Hosts) {
    let specs = scenario.expanded_hosts();
    let servers = crate::hosts::Servers::of(scenario, &specs).expect("servers");
    // For as long as this process lives.
    let hosts: &'static Hosts =
        Box::leak(Box::new(Hosts::new(scenario, &specs, &servers, None, false).expect("namespaces")));
    let laws = crate::laws::Laws::load(&specs).expect("none");
    let plans = crate::flow_plans(scenario.seed, &specs, &servers, &laws, false);
    let mut traffic = Traffic::prepare(plans, hosts).expect("sockets");
    let enough = vec![enough; traffic.flows.len()];
    carry_until(&enough, &mut traffic, Clock::start());
    (traffic, hosts)
}

/// Carrier and applications take turns, on one thread: an application that is late on a busy machine has its kernel
/// acknowledge less often.
fn carry_until(enough: &[Bytes], traffic: &mut Traffic<'_>, clock: Clock) {
    let hosts = traffic.hosts;
    let mut events = [EpollEvent::empty(); 64];
    let deadline = clock.now() + Span::from_secs(20);
    traffic.act_all(clock).expect("sockets");
    let lacks = |traffic: &Traffic<'_>| traffic.flows.iter().zip(enough).any(|(flow, enough)| flow.received < *enough);
    while lacks(traffic) && clock.now() < deadline {
        let carried = (0..CARRIED_AT_ONCE).take_while(|_| carry(hosts)).count();
        let patience = if carried > 0 { Span::ZERO } else { Span::from_micros(100) };
        let woken = wait(&traffic.epoll, &mut events, patience).expect("events");
        for event in &events[..woken] {
            traffic.on_event(event, clock).expect("sockets");
        }
    }
}

/// A page and a video; then their connections break.
#[test]
fn transfers_and_videos_go_on_with_the_next_connection_where_one_failed() {
    const ENOUGH: Bytes = Bytes::new(20_000);

    if !nix::unistd::geteuid().is_root() {
        assert!(std::env::var_os("LASTHOP_REQUIRE_ROOT_TESTS").is_none(), "kernel hosts need root");
        eprintln!("skipped: kernel hosts need root");
        return;
    }
    let flows = ["kind = \"transfers\"\ntransfer_kib = 1000\noff_s = 0", "kind = \"video\"\ndirection = \"down\""];
    let text = format!("[[hosts]]\n{}", flows.map(|keys| format!("[[hosts.flows]]\n{keys}\n")).concat());
    let scenario = lasthop_scenario::Scenario::from_toml("x.toml", &text, &[]).expect("a scenario");
    let (mut traffic, _) = until_all_have(ENOUGH, &scenario);
    let enough: Vec<Bytes> = traffic.flows.iter().map(|flow| flow.received + ENOUGH).collect();
    for (number, (flow, plan)) in traffic.flows.iter_mut().zip(&mut traffic.plans).enumerate() {
        flow.fail(plan, &traffic.epoll, Time::ZERO, Errno::ETIMEDOUT);
        traffic.due.set(number, plan.application.next_at());
    }
    // A clock that is ahead of the one before.
    carry_until(&enough, &mut traffic, Clock::started_at_monotonic_ns(0));
    for (flow, enough) in traffic.flows.iter().zip(enough) {
        let said = format!("{} of {enough}, {:?}", flow.received, flow.failed);
        assert!(flow.received >= enough && flow.failed.is_none() && flow.broken, "{said}");
    }
}

/// The rows of the namespace's /proc/net/tcp, without connections in TIME_WAIT (06), which hold nothing.
fn connections(namespace: &crate::namespace::Namespace) -> usize {
    let table = namespace
        .run(|| std::fs::read_to_string("/proc/thread-self/net/tcp").doing("cannot read /proc/net/tcp"))
        .expect("a namespace");
    table.lines().skip(1).filter(|row| row.split_whitespace().nth(3) != Some("06")).count()
}

/// Gives a packet of each device to its destination, without a network in between. `false`: there is none.
fn carry(hosts: &Hosts) -> bool {
    let mut buffer = [0; crate::tun::MTU];
    let mut carried = false;
    for device in &hosts.devices {
        let Some(length) = device.read(&mut buffer).expect("a device") else { continue };
        if let Some(lasthop_network::Destination::Node(node)) = hosts.plan.destination(&buffer[..length]) {
            let end = hosts.plan.end(node, &buffer[..length]);
            hosts.devices[end].write(&buffer[..length]).expect("a device");
            carried = true;
        }
    }
    carried
}

#[test]
fn a_token_comes_back_from_epoll_as_it_was() {
    let back = |token: Token| Token::of(&token.event(EpollFlags::EPOLLIN));
    assert!(matches!(back(Token::Listener(3)), Token::Listener(3)));
    assert!(matches!(back(Token::Client(1_999)), Token::Client(1_999)));
    assert!(matches!(back(Token::Server(0)), Token::Server(0)));
}
