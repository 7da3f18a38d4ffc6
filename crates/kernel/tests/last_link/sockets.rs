//! Which sockets report and hear, and which are left alone.

use super::*;

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
    assert_eq!(counted(&elsewhere), ReportCounters::default());
    assert_eq!(counted(&reporter), ReportCounters::default());
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
    assert_eq!(tcp_info(&connection.server).tcpi_snd_cwnd, 10, "the initial window is not among them");
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
    for mode in [lasthop_kernel::Mode::Control, lasthop_kernel::Mode::Clamp] {
        let path = Path::clear();
        let mut reporter = reporter(&path);
        let mut kernel = path.a.run(|| {
            let index = nix::net::if_::if_nametoindex("a0").expect("a0 exists");
            let options = lasthop_kernel::Options::new(index, mode).expect("cgroup2");
            lasthop_kernel::Kernel::load(&options).unwrap_or_else(|error| panic!("{error}"))
        });
        kernel.set_bounds(support::bound(1, 5), &[], lasthop_units::Span::from_secs(600)).expect("bounds");
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
            heard(&law).later - before >= 3 && tcp_info(&connection.client).tcpi_snd_cwnd <= 5
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
