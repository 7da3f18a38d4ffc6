//! What is told about sockets is what the kernel itself says of them.
#![allow(missing_docs)]

mod support;

use lasthop_connection::CongestionState;
use lasthop_kernel::{Feature, Kernel, Mode, Options, Outcome, SocketSample};
use lasthop_units::Span;
use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;
use support::{A4, A6, B4, B6, Flow, Net, eventually, load_best, load_with, run, set_control, throughout};

/// Its end sends RST.
fn reset_when_dropped(socket: &TcpStream) {
    let at_once = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::Linger, &at_once).expect("an open socket");
}

/// Of the modes Control and Observe those that this kernel has.
fn modes() -> impl Iterator<Item = Mode> {
    support::modes().filter(|mode| *mode == Mode::Control).chain([Mode::Observe])
}

#[test]
fn a_sample_says_what_tcp_info_says() {
    needs_root!();
    for mode in modes() {
        let net = Net::bottleneck(20, 20_000);
        let mut kernel = load_with(&net, mode, |_| {});
        let mut flows: Vec<_> = [B4, B6].map(|address| Flow::start(&net.a, &net.b, address)).into();
        eventually("a loss on both", || flows.iter().all(|flow| flow.info().tcpi_total_retrans > 0));
        // The flows go on meanwhile: TCP_INFO before and after brackets the sample.
        for flow in &mut flows {
            let cookie = flow.cookie();
            let mut agreed = HashSet::new();
            eventually("each value once equal to one of TCP_INFO", || {
                let before = flow.info();
                let samples = kernel.sample().expect("a walk");
                let after = flow.info();
                let sample = samples.iter().find(|sample| sample.cookie == cookie).expect("the flow is there");
                assert_eq!(*sample.congestion_control, *flow.control());
                assert_eq!(sample.controlled, mode == Mode::Control);
                assert_eq!(sample.local, flow.sender.local_addr().expect("bound"));
                assert_eq!(sample.remote, flow.sender.peer_addr().expect("connected"));
                assert_eq!(sample.tcp.mss_bytes, before.tcpi_snd_mss);
                assert!((before.tcpi_bytes_acked..=after.tcpi_bytes_acked).contains(&sample.tcp.acked.get()));
                let retransmits = u64::from(before.tcpi_total_retrans)..=u64::from(after.tcpi_total_retrans);
                assert!(retransmits.contains(&sample.tcp.retransmits));
                let sent = u64::from(before.tcpi_data_segs_out)..=u64::from(after.tcpi_data_segs_out);
                assert!(sent.contains(&sample.tcp.sent_segments));
                assert!((before.tcpi_bytes_retrans..=after.tcpi_bytes_retrans).contains(&sample.retransmitted.get()));
                let micros = |span: Option<lasthop_units::Span>| span.map(|span| span.as_micros() as u32);
                let rate = sample.delivery_rate.map(|rate| rate.as_bps() / 8);
                for (name, equal) in [
                    ("cwnd", sample.tcp.cwnd_segments == before.tcpi_snd_cwnd),
                    ("ssthresh", sample.tcp.ssthresh_segments == Some(before.tcpi_snd_ssthresh)),
                    ("srtt", micros(sample.tcp.srtt) == Some(before.tcpi_rtt)),
                    ("min_rtt", micros(sample.tcp.min_rtt) == Some(before.tcpi_min_rtt)),
                    ("state", sample.tcp.state as u8 == before.tcpi_ca_state),
                    ("unsent", sample.tcp.unsent.get() == u64::from(before.tcpi_notsent_bytes)),
                    ("rate", rate.is_some_and(|rate| rate.abs_diff(before.tcpi_delivery_rate) <= 1)),
                    ("in flight", (1..=sample.tcp.cwnd_segments).contains(&sample.tcp.in_flight_segments)),
                ] {
                    if equal {
                        agreed.insert(name);
                    }
                }
                agreed.len() == 8
            });
        }
    }
}

#[test]
fn a_sample_of_a_receiver_says_what_tcp_info_says() {
    needs_root!();
    let net = Net::bottleneck(20, 20_000);
    let options = net.b.run(|| Options::new(net.b.interface("b0"), Mode::Observe).expect("possible as root"));
    let mut kernel = net.b.run(|| Kernel::load(&options).expect("possible as root"));
    let flow = Flow::start(&net.a, &net.b, B4);
    let info = || support::tcp_info(&flow.receiver);
    let cookie = support::cookie(&flow.receiver);
    eventually("a loss", || info().tcpi_rcv_ooopack > 0);
    // The flow goes on meanwhile: TCP_INFO before and after brackets the sample, but for the RTT, which falls too.
    eventually("the receiver's RTT once equal to that of TCP_INFO", || {
        let before = info();
        let samples = net.b.run(|| kernel.sample().expect("a walk"));
        let after = info();
        let sample = samples.iter().find(|sample| sample.cookie == cookie).expect("the flow is there");
        assert!((before.tcpi_bytes_received..=after.tcpi_bytes_received).contains(&sample.tcp.received.get()));
        let segments = u64::from(before.tcpi_data_segs_in)..=u64::from(after.tcpi_data_segs_in);
        assert!(segments.contains(&sample.received_segments));
        let out_of_order = u64::from(before.tcpi_rcv_ooopack)..=u64::from(after.tcpi_rcv_ooopack);
        assert!(out_of_order.contains(&sample.out_of_order_segments));
        sample.tcp.receive_rtt.is_some_and(|rtt| rtt.as_micros() == u64::from(before.tcpi_rcv_rtt))
    });
}

#[test]
fn only_sockets_that_send_by_the_managed_interface_are_told() {
    needs_root!();
    let net = Net::direct();
    let mut kernel = load_best(&net);
    let flows = [
        Flow::idle(&net.a, &net.b, B4),
        Flow::idle(&net.a, &net.b, B6),
        Flow::idle(&net.b, &net.a, A4),
        Flow::idle(&net.b, &net.a, A6),
    ];
    let _loopback = Flow::idle(&net.a, &net.a, "127.0.0.1");
    let _listener = net.a.run(|| std::net::TcpListener::bind((A4, 0)).expect("a listener"));
    {
        let gone = Flow::idle(&net.a, &net.b, B4);
        gone.sender.shutdown(std::net::Shutdown::Both).expect("closing");
        gone.receiver.shutdown(std::net::Shutdown::Both).expect("closing");
    }
    let here: HashSet<_> = flows[..2]
        .iter()
        .map(Flow::cookie)
        .chain(flows[2..].iter().map(|flow| support::cookie(&flow.receiver)))
        .collect();
    eventually("four sockets", || {
        let samples = kernel.sample().expect("a walk");
        let told: HashSet<_> = samples.iter().map(|sample| sample.cookie).collect();
        assert_eq!(samples.len(), told.len(), "each once");
        assert!(samples.iter().all(|sample| sample.controlled));
        told == here && samples.iter().all(|sample| sample.tcp.state == CongestionState::Open)
    });
}

#[test]
fn an_idle_socket_stays_with_its_interface_while_that_is_down() {
    needs_root!();
    let net = Net::direct();
    let mut kernel = load_best(&net);
    let flows = [B4, B6].map(|address| Flow::idle(&net.a, &net.b, address));
    for flow in &flows {
        // Of one that has only just been opened the kernel does not remember where its packets came from.
        (&*flow.receiver).write_all(b"hello").expect("written");
        let mut heard = [0; 5];
        (&*flow.sender).read_exact(&mut heard).expect("read");
    }
    let mut told = || kernel.sample().expect("a walk").iter().map(|sample| sample.cookie).collect::<HashSet<_>>();
    let ours: HashSet<_> = flows.iter().map(Flow::cookie).collect();
    assert_eq!(told(), ours);
    net.a.run(|| run("ip link set a0 down"));
    // The kernel takes the interface out of the routes that sockets still have, a moment later (dst_dev_put()).
    throughout(Duration::from_millis(300), || assert_eq!(told(), ours));
    net.a.run(|| run("ip link set a0 up"));
    assert_eq!(told(), ours);
}

#[test]
fn a_thousand_sockets_are_told_once_each() {
    needs_root!();
    let net = Net::direct();
    let mut kernel = load_best(&net);
    let flows: Vec<_> = (0..1000).map(|_| Flow::idle(&net.a, &net.b, B4)).collect();
    let samples = kernel.sample().expect("a walk");
    let told: HashSet<_> = samples.iter().map(|sample| sample.cookie).collect();
    assert_eq!((samples.len(), told.len()), (1000, 1000));
    assert!(flows.iter().all(|flow| told.contains(&flow.cookie())));
}

#[test]
fn a_look_at_known_sockets_tells_those_that_were_open_and_those_opened_since() {
    needs_root!();
    for mode in modes() {
        let net = Net::direct();
        let before = Flow::idle(&net.a, &net.b, B4);
        let mut kernel = load_with(&net, mode, |_| {});
        assert_eq!(kernel.adopt().expect("a walk").adopted, u64::from(mode == Mode::Control));
        let mut told = || {
            let observed = kernel.observe().expect("a walk");
            assert_eq!(observed.asleep, 0);
            observed.sockets.iter().map(|sample| sample.cookie).collect::<HashSet<_>>()
        };
        let mut ours = HashSet::from([before.cookie()]);
        assert_eq!(told(), ours);
        let opened = [Flow::idle(&net.a, &net.b, B4), Flow::idle(&net.a, &net.b, B6)];
        let accepted = [Flow::idle(&net.b, &net.a, A4), Flow::idle(&net.b, &net.a, A6)];
        let _loopback = Flow::idle(&net.a, &net.a, "127.0.0.1");
        ours.extend(opened.iter().map(Flow::cookie));
        ours.extend(accepted.iter().map(|flow| support::cookie(&flow.receiver)));
        eventually("all five, and no others", || told() == ours);
        ours.remove(&before.cookie());
        drop(before);
        eventually("the others", || told() == ours);
    }
}

#[test]
fn an_idle_socket_falls_asleep_and_wakes_when_it_is_used() {
    needs_root!();
    for mode in modes() {
        let net = Net::direct();
        let mut kernel = load_with(&net, mode, |options| options.asleep = Span::from_millis(300));
        kernel.adopt().expect("a walk");
        let flows: Vec<_> = (0..9).map(|_| Flow::idle(&net.a, &net.b, B4)).collect();
        let asleep = |kernel: &mut Kernel| {
            let observed = kernel.observe().expect("a walk");
            assert_eq!(observed.sockets.len() as u64 + observed.asleep, 9);
            observed.asleep
        };
        eventually("all asleep", || asleep(&mut kernel) == 9);
        assert_eq!(kernel.sample().expect("a walk").len(), 9);
        (&*flows[3].sender).write_all(b"hello").expect("written");
        eventually("one awake", || asleep(&mut kernel) == 8);
        eventually("all asleep again", || asleep(&mut kernel) == 9);
        let mut heard = [0; 5];
        (&*flows[3].receiver).read_exact(&mut heard).expect("read");
        (&*flows[5].receiver).write_all(b"hello").expect("written");
        eventually("one that receives awake", || asleep(&mut kernel) == 8);
        // What is sent and not acknowledged keeps a socket awake for ever.
        net.b.run(|| run("ip link set b0 down"));
        (&*flows[7].sender).write_all(b"hello").expect("written");
        eventually("one that waits", || {
            let observed = kernel.observe().expect("a walk");
            observed.asleep == 8 && observed.sockets[0].idle >= Span::from_millis(301)
        });
    }
}

/// The socket of a flow's sender as it is told.
fn told(kernel: &mut Kernel, flow: &Flow) -> Option<SocketSample> {
    let observed = kernel.observe().expect("a walk");
    let sockets: HashSet<_> = observed.sockets.iter().map(|sample| sample.cookie).collect();
    assert_eq!(observed.sockets.len(), sockets.len(), "each once");
    observed.sockets.iter().find(|sample| sample.cookie == flow.cookie()).cloned()
}

#[test]
fn a_socket_at_rest_is_remembered_and_told_afresh_when_it_is_used() {
    needs_root!();
    for mode in modes() {
        let net = Net::direct();
        let mut kernel = load_with(&net, mode, |_| {});
        kernel.adopt().expect("a walk");
        let flow = Flow::idle(&net.a, &net.b, B4);
        eventually("told", || told(&mut kernel, &flow).is_some());
        // Nothing comes, and it is not looked at: what its application changes is not told, unless each look is at all.
        let is_present =
            |(feature, outcome): (Feature, &Outcome)| feature == Feature::MapIterator && *outcome == Outcome::Present;
        let remembers = lasthop_kernel::probe().features().any(is_present);
        set_control(&*flow.sender, "reno");
        let mut told = || told(&mut kernel, &flow).expect("it is open");
        let first = told();
        assert_eq!(*first.congestion_control != *"reno", remembers);
        std::thread::sleep(Duration::from_millis(50));
        let later = told();
        let aged = SocketSample { idle: later.idle, ..first.clone() };
        assert!(later == aged && later.idle >= first.idle + Span::from_millis(50), "{later:?} {first:?}");
        (&*flow.sender).write_all(b"hello").expect("written");
        let mut heard = [0; 5];
        (&*flow.receiver).read_exact(&mut heard).expect("read");
        eventually("the acknowledgement", || flow.info().tcpi_bytes_acked == 6); // with the SYN
        let sent = told();
        assert_eq!((sent.tcp.acked.get(), &*sent.congestion_control), (6, "reno"));
        assert!(sent.idle < later.idle);
        (&*flow.receiver).write_all(b"hello").expect("written");
        (&*flow.sender).read_exact(&mut heard).expect("read");
        assert_eq!(told().tcp.received.get(), 5);
        // An end that the other one has half closed goes on sending.
        flow.receiver.shutdown(std::net::Shutdown::Write).expect("open");
        eventually("the end of data", || (&*flow.sender).read(&mut heard).expect("open") == 0);
        (&*flow.sender).write_all(b"hello").expect("written");
        eventually("the acknowledgement", || flow.info().tcpi_bytes_acked == 11);
        assert_eq!(told().tcp.acked.get(), 11);
    }
}

#[test]
fn a_socket_that_closes_at_rest_is_gone_at_once() {
    needs_root!();
    for mode in modes() {
        let net = Net::direct();
        let mut kernel = load_with(&net, mode, |options| options.asleep = Span::from_millis(300));
        kernel.adopt().expect("a walk");
        let mut flows: Vec<_> = (0..6).map(|_| Flow::idle(&net.a, &net.b, B4)).collect();
        let told = |kernel: &mut Kernel| {
            let observed = kernel.observe().expect("a walk");
            (observed.sockets.len(), observed.asleep)
        };
        for (sleep, rest) in [(false, 6), (true, 3)] {
            eventually("all told", || {
                let (awake, asleep) = told(&mut kernel);
                awake + asleep as usize == rest && (!sleep || awake == 0)
            });
            for (number, reset) in [(1, true), (2, false)] {
                let flow = flows.pop().expect("one more");
                if reset {
                    reset_when_dropped(&flow.receiver);
                }
                drop(flow);
                eventually("closed", || kernel.sample().expect("a walk").len() == rest - number);
                let (awake, asleep) = told(&mut kernel);
                assert_eq!(awake + asleep as usize, rest - number);
            }
            // Our own end is still open when the other one resets it.
            let Flow { sender, receiver, .. } = &mut flows[0];
            reset_when_dropped(receiver);
            *receiver = sender.clone();
            eventually("reset", || kernel.sample().expect("a walk").len() == rest - 3);
            let (awake, asleep) = told(&mut kernel);
            assert_eq!(awake + asleep as usize, rest - 3);
            flows.remove(0);
        }
    }
}

#[test]
fn more_closings_than_the_ring_holds_are_all_found() {
    needs_root!();
    let net = Net::direct();
    let mut kernel = load_best(&net);
    let [stays, goes] = [0; 2].map(|_| Flow::idle(&net.a, &net.b, B4));
    eventually("both", || told(&mut kernel, &stays).is_some() && told(&mut kernel, &goes).is_some());
    let listener = net.b.run(|| std::net::TcpListener::bind((B4, 0)).expect("a listener"));
    let target = listener.local_addr().expect("bound");
    net.a.run(|| {
        // 262,144 bytes hold 16,384 of them.
        for _ in 0..17_000 {
            let ours = TcpStream::connect(target).expect("a connection");
            reset_when_dropped(&ours);
            drop((ours, listener.accept()));
        }
    });
    drop(goes);
    eventually("the last closing", || kernel.sample().expect("a walk").len() == 1);
    let told: Vec<_> = kernel.observe().expect("a walk").sockets.iter().map(|sample| sample.cookie).collect();
    assert_eq!(told, [stays.cookie()]);
}

#[test]
fn losses_are_seen_as_changes_of_state_that_fit_together() {
    needs_root!();
    let net = Net::bottleneck(20, 20_000);
    let other = Net::bottleneck(20, 20_000);
    for mode in modes() {
        let mut kernel = load_with(&net, mode, |_| {});
        let flow = Flow::start(&net.a, &net.b, B4);
        let foreign = Flow::start(&other.a, &other.b, B4);
        let mut changes = Vec::new();
        let mut lost = 0;
        eventually("20 recoveries, and losses in the other namespace too", || {
            let others = foreign.info().tcpi_total_retrans;
            lost += kernel.poll_state_changes(|change| changes.push(change)).expect("the ring");
            changes.iter().filter(|change| change.to == CongestionState::Recovery).count() >= 20 && others > 0
        });
        assert_eq!(lost, 0);
        assert!(changes.iter().all(|change| change.cookie == flow.cookie()));
        assert!(changes.windows(2).all(|pair| pair[0].at <= pair[1].at));
        let first = usize::from(changes[0].from != CongestionState::Open);
        // A hardened kernel may skip the program now and then.
        let missing = changes[first..].windows(2).filter(|pair| pair[0].to != pair[1].from).count();
        assert!(missing * 20 <= changes.len(), "{missing} gaps in {} changes", changes.len());
    }
}

#[test]
fn changes_that_nobody_fetches_are_counted_as_lost() {
    needs_root!();
    let net = Net::bottleneck(100, 10_000);
    let mut kernel = load_best(&net);
    let flows: Vec<_> = (0..20).map(|_| Flow::start(&net.a, &net.b, B4)).collect();
    // 262,144 bytes hold 6553 changes of 40 bytes
    eventually("more changes than fit", || kernel.counters().state_changes > 7000);
    drop(flows);
    let mut told = 0;
    let lost = kernel.poll_state_changes(|_| told += 1).expect("the ring");
    assert!(told > 6000 && lost > 0, "{told} and {lost}");
    assert_eq!(told + lost, kernel.counters().state_changes);
    assert_eq!(kernel.poll_state_changes(|_| told += 1).expect("the ring"), 0);
}
