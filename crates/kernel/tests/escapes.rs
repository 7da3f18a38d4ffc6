//! The ways in which a socket gets its congestion control, and what becomes of each: docs/guide/agent-configuration.md has the
//! same table.
#![allow(missing_docs, unsafe_code)]

mod support;

use lasthop_kernel::{Kernel, Left, Mode};
use nix::sys::socket::{Backlog, SockaddrIn, bind, connect, listen};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use support::{A4, B4, Flow, Net, control, cookie, eventually, load, load_with, run, set_control};

/// The default of host `a`: every kernel has it, and it is not CUBIC.
const DEFAULT: &str = "reno";

fn net() -> Net {
    let net = Net::direct();
    net.a.run(|| std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", DEFAULT).expect("not restricted"));
    net
}

/// Whether this kernel offers a control; says if not.
fn offers(name: &str) -> bool {
    let offered = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("/proc");
    let offers = offered.split_whitespace().any(|offered| offered == name);
    if !offers {
        eprintln!("not tried: this kernel does not offer {name}, only {}", offered.trim());
    }
    offers
}

/// Where cgroup2 is mounted.
fn cgroups() -> std::path::PathBuf {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("/proc");
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2")).expect("cgroup2 is mounted");
    line.split(' ').nth(1).expect("where").into()
}

/// A route of its own to one more address of host `b`.
fn route(net: &Net, last: u8, congctl: &str) -> String {
    let address = format!("10.78.1.{last}");
    net.b.run(|| run(&format!("ip addr add {address}/32 dev b0")));
    net.a.run(|| run(&format!("ip route add {address}/32 dev a0 {congctl}")));
    address
}

/// Why the socket is not ours, as the walk that observes tells; `None`: it is ours.
fn left(kernel: &mut Kernel, cookie: u64) -> Option<Left> {
    let samples = kernel.sample().expect("a walk");
    let sample = samples.iter().find(|sample| sample.cookie == cookie).expect("it is on our interface");
    assert_eq!(sample.controlled, sample.left.is_none());
    sample.left
}

/// The same once existing sockets were taken over.
fn after_a_walk(kernel: &mut Kernel, cookie: u64) -> Option<Left> {
    kernel.adopt().expect("a walk");
    left(kernel, cookie)
}

#[test]
fn what_the_machine_sets_for_all_sockets_is_taken_over() {
    needs_root!();
    let net = net();
    let early = Flow::idle(&net.a, &net.b, &route(&net, 1, "congctl cubic"));
    assert_eq!(early.control(), "cubic");
    let mut kernel = load(&net);
    let name = kernel.name().to_owned();
    // By the namespace's default, and by routes: those that were open, and those that come.
    let late = Flow::idle(&net.a, &net.b, &route(&net, 2, "congctl cubic"));
    let flows = [Flow::idle(&net.a, &net.b, B4), Flow::idle(&net.a, &net.b, "10.78.1.1"), late];
    for flow in &flows {
        assert_eq!((flow.control(), left(&mut kernel, flow.cookie())), (name.clone(), None), "as it connects");
    }
    assert_eq!(left(&mut kernel, early.cookie()), Some(Left::Yet));
    assert_eq!(after_a_walk(&mut kernel, early.cookie()), None);
    let accepted = Flow::idle(&net.b, &net.a, A4);
    assert_eq!(left(&mut kernel, cookie(&accepted.receiver)), None);
    let counters = kernel.counters();
    assert_eq!((counters.adopted_at_connect, counters.adopted_at_accept), (3, 1), "each once");
    if offers("bbr") {
        let flow = Flow::idle(&net.a, &net.b, &route(&net, 3, "congctl bbr"));
        assert_eq!(left(&mut kernel, flow.cookie()), None);
    }
    // The administrator's word against anybody's change holds against ours, too.
    let locked = Flow::idle(&net.a, &net.b, &route(&net, 4, "congctl lock cubic"));
    assert_eq!(after_a_walk(&mut kernel, locked.cookie()), Some(Left::Locked));
    assert_eq!(kernel.adopt().expect("a walk").failed, 1);
    kernel.release().expect("a walk");
    let controls: Vec<_> = flows.iter().chain([&early]).map(Flow::control).collect();
    assert_eq!(controls, [DEFAULT, "cubic", "cubic", "cubic"]);
}

#[test]
fn what_an_application_chooses_is_left_unless_it_is_cubic_or_the_default_or_the_loader_takes_all() {
    needs_root!();
    for take_chosen in [false, true] {
        let net = net();
        let mut kernel = load_with(&net, Mode::Control, |options| options.take_chosen = take_chosen);
        let others = ["bbr", "dctcp"].into_iter().filter(|name| offers(name));
        for name in ["cubic", DEFAULT].into_iter().chain(others) {
            let expected = (!take_chosen && name != "cubic" && name != DEFAULT).then_some(Left::Chosen);
            let before = Flow::idle_with(&net.a, &net.b, B4, |socket| set_control(socket, name));
            assert_eq!(left(&mut kernel, before.cookie()), expected, "{name}, before connect");
            let after = Flow::idle(&net.a, &net.b, B4);
            set_control(&*after.sender, name);
            assert_eq!(left(&mut kernel, after.cookie()), expected.or(Some(Left::Yet)), "{name}, after connect");
            assert_eq!(after_a_walk(&mut kernel, after.cookie()), expected, "{name}, after connect and a walk");
            // What is accepted has its listener's.
            let listener = net.a.run(|| {
                let listener = TcpListener::bind((A4, 0)).expect("a listener");
                set_control(&listener, name);
                listener
            });
            let to = listener.local_addr().expect("bound");
            let _peer = net.b.run(|| TcpStream::connect(to).expect("a connection"));
            let (accepted, _) = listener.accept().expect("the connection");
            assert_eq!(after_a_walk(&mut kernel, cookie(&accepted)), expected, "{name}, of a listener");
            if let Some(Left::Chosen) = expected {
                assert_eq!([before.control(), after.control(), control(&accepted)], [name; 3]);
            }
        }
        kernel.release().expect("a walk");
    }
}

#[test]
fn what_another_bpf_program_chooses_is_left_like_an_application_s_choice() {
    needs_root!();
    if !offers("bbr") {
        return;
    }
    let net = net();
    let mut kernel = load(&net);
    let object = support::test_object("choose").load().expect("the kernel takes it");
    let root = std::fs::File::open(cgroups()).expect("a folder");
    let _link = object.progs_mut().next().expect("one").attach_cgroup(root.as_raw_fd()).expect("attached");
    let listener = net.b.run(|| TcpListener::bind((B4, 4777)).expect("a listener"));
    let to = listener.local_addr().expect("bound");
    let sender = net.a.run(|| TcpStream::connect(to).expect("a connection"));
    assert_eq!(after_a_walk(&mut kernel, cookie(&sender)), Some(Left::Chosen));
    assert_eq!(control(&sender), "bbr");
}

/// A socket map replaces a socket's functions in the kernel (`tcp_bpf_prots`), as proxies and kTLS do.
#[test]
fn a_socket_in_a_socket_map_is_taken_over_as_any_other() {
    needs_root!();
    let net = net();
    let early = Flow::idle(&net.a, &net.b, B4);
    let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    let kind = libbpf_rs::MapType::Sockmap;
    let map = libbpf_rs::MapHandle::create(kind, Some("lh_test"), 4, 4, 2, &options).expect("a socket map");
    let put = |number: u32, flow: &Flow| {
        use libbpf_rs::MapCore as _;
        let socket = flow.sender.as_raw_fd() as u32;
        map.update(&number.to_ne_bytes(), &socket.to_ne_bytes(), libbpf_rs::MapFlags::ANY).expect("an open socket");
    };
    put(0, &early);
    let mut kernel = load(&net);
    assert_eq!(after_a_walk(&mut kernel, early.cookie()), None);
    let late = Flow::idle(&net.a, &net.b, B4);
    put(1, &late);
    assert_eq!(after_a_walk(&mut kernel, late.cookie()), None);
    kernel.release().expect("a walk");
    assert_eq!([early.control(), late.control()], [DEFAULT; 2]);
}

const IPPROTO_MPTCP: i32 = 262;

fn multipath() -> OwnedFd {
    // SAFETY: a call without pointers; the descriptor is owned by nobody else.
    let socket = unsafe { nix::libc::socket(nix::libc::AF_INET, nix::libc::SOCK_STREAM, IPPROTO_MPTCP) };
    assert!(socket >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: as above.
    unsafe { OwnedFd::from_raw_fd(socket) }
}

#[test]
fn each_subflow_of_multipath_tcp_is_taken_over() {
    needs_root!();
    let net = net();
    if !std::path::Path::new("/proc/sys/net/mptcp/enabled").exists() {
        return eprintln!("not tried: this kernel has no MPTCP");
    }
    let mut kernel = load(&net);
    net.a.run(|| {
        run("ip addr add 10.77.0.9/24 dev a0");
        run("ip mptcp limits set subflow 2 add_addr_accepted 2");
        run("ip mptcp endpoint add 10.77.0.9 dev a0 subflow");
    });
    let listener = net.b.run(|| {
        run("ip mptcp limits set subflow 2 add_addr_accepted 2");
        let listener = multipath();
        bind(listener.as_raw_fd(), &SockaddrIn::new(10, 78, 0, 1, 4778)).expect("a port");
        listen(&listener, Backlog::MAXCONN).expect("a listener");
        TcpListener::from(listener)
    });
    let sender = net.a.run(|| {
        let socket = multipath();
        connect(socket.as_raw_fd(), &SockaddrIn::new(10, 78, 0, 1, 4778)).expect("a connection");
        TcpStream::from(socket)
    });
    let (_receiver, _) = listener.accept().expect("the connection");
    let to: SocketAddr = "10.78.0.1:4778".parse().expect("an address");
    let mut seen = Vec::new();
    // The second one comes once the other side has acknowledged data.
    std::io::Write::write_all(&mut &sender, b"hello").expect("sent");
    eventually("two subflows, both ours", || {
        kernel.adopt().expect("a walk");
        let samples = kernel.sample().expect("a walk");
        seen = samples.into_iter().filter(|sample| sample.remote == to).map(|sample| sample.left).collect();
        seen == [None, None]
    });
}

#[test]
fn what_is_left_alone_as_configured_is_told_apart_from_what_escapes() {
    needs_root!();
    let net = net();
    let flow = Flow::idle(&net.a, &net.b, B4);
    let cgroup = cgroups();
    let rule = |leave| vec![lasthop_kernel::Rule { uid: Some(0), leave, ..lasthop_kernel::Rule::default() }];
    type Change = Box<dyn FnOnce(&mut lasthop_kernel::Options) + Send>;
    let cases: [(Change, Option<Left>); 4] = [
        (Box::new(|options| options.excluded_cgroups = vec![cgroup]), Some(Left::Cgroup)),
        (Box::new(move |options| options.rules = rule(true)), Some(Left::Rule)),
        (Box::new(|options| options.leave = vec![DEFAULT.into()]), Some(Left::Name)),
        (Box::new(move |options| options.rules = rule(false)), None),
    ];
    for (change, expected) in cases {
        let mut kernel = load_with(&net, Mode::Control, change);
        assert_eq!(after_a_walk(&mut kernel, flow.cookie()), expected);
        kernel.release().expect("a walk");
        assert_eq!(flow.control(), DEFAULT);
    }
    assert!(!Left::Cgroup.escapes() && !Left::Rule.escapes() && !Left::Name.escapes());
    // Another agent's is none of ours; and to observe is not to lose anything.
    let mut first = load(&net);
    assert_eq!(after_a_walk(&mut first, flow.cookie()), None);
    let mut second = load(&net);
    assert_eq!(after_a_walk(&mut second, flow.cookie()), Some(Left::Agent));
    let mut observer = load_with(&net, Mode::Observe, |_| {});
    let samples = observer.sample().expect("a walk");
    assert!(samples.iter().all(|sample| sample.left.is_none() && !sample.controlled));
}

/// The kernel puts a route's control on what ours had written, and begins it no more: BBR then had a mode that there is not.
#[test]
fn a_route_s_control_that_is_left_begins_as_without_us() {
    needs_root!();
    if !offers("bbr") {
        return;
    }
    for (number, congctl) in ["congctl bbr", "congctl lock bbr"].into_iter().enumerate() {
        let net = net();
        let address = route(&net, 5 + number as u8, congctl);
        let mut kernel = load_with(&net, Mode::Control, |options| options.leave = vec!["bbr".into()]);
        let flow = Flow::start(&net.a, &net.b, &address);
        assert_eq!((flow.control().as_str(), left(&mut kernel, flow.cookie())), ("bbr", Some(Left::Name)));
        eventually("a window past 60", || flow.info().tcpi_snd_cwnd > 60);
        assert_eq!(kernel.counters().adopted_at_connect, 0);
    }
}
