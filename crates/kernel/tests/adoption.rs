//! Which sockets get our congestion control, and which do not.
#![allow(missing_docs, unsafe_code)]

mod support;

use lasthop_kernel::{Error, Kernel, Mode, Options, Rule, TooManyCgroups};
use std::fs;
use std::path::PathBuf;
use support::{A4, A6, B4, B6, Flow, Net, control, load, load_with, set_control};

#[test]
fn a_connection_that_is_opened_gets_the_control() {
    needs_root!();
    let net = Net::direct();
    let kernel = load(&net);
    for address in [B4, B6] {
        let flow = Flow::idle(&net.a, &net.b, address);
        assert_eq!(flow.control(), kernel.name(), "to {address}");
    }
    let counters = kernel.counters();
    assert_eq!((counters.adopted_at_connect, counters.adopted_at_accept), (2, 0));
}

#[test]
fn a_connection_that_is_accepted_gets_the_control() {
    needs_root!();
    let net = Net::direct();
    let kernel = load(&net);
    for address in [A4, A6] {
        let flow = Flow::idle(&net.b, &net.a, address);
        assert_eq!(control(&*flow.receiver), kernel.name(), "at {address}");
    }
    let counters = kernel.counters();
    assert_eq!((counters.adopted_at_connect, counters.adopted_at_accept), (0, 2));
}

#[test]
fn a_connection_that_exists_gets_the_control_when_asked() {
    needs_root!();
    let net = Net::direct();
    let flows: Vec<_> = [B4, B6].map(|address| Flow::start(&net.a, &net.b, address)).into();
    let accepted: Vec<_> = [A4, A6].map(|address| Flow::idle(&net.b, &net.a, address)).into();
    let default = net.a.default_control();
    let mut kernel = load(&net);
    assert!(flows.iter().all(|flow| flow.control() == default));
    let adopted = kernel.adopt().expect("a walk");
    assert_eq!((adopted.adopted, adopted.already, adopted.left, adopted.failed), (4, 0, 0, 0));
    assert!(flows.iter().all(|flow| flow.control() == kernel.name()));
    assert!(accepted.iter().all(|flow| control(&*flow.receiver) == kernel.name()));
    let again = kernel.adopt().expect("a walk");
    assert_eq!((again.adopted, again.already), (0, 4));
}

#[test]
fn another_namespace_is_not_touched() {
    needs_root!();
    let net = Net::direct();
    let other = Net::direct();
    let before = Flow::idle(&other.a, &other.b, B4);
    let mut kernel = load(&net);
    let after = Flow::idle(&other.a, &other.b, B4);
    let far = Flow::idle(&net.a, &net.b, B4);
    assert_eq!(kernel.adopt().expect("a walk").already, 1);
    for flow in [&before, &after] {
        assert_eq!(flow.control(), other.a.default_control());
    }
    assert_eq!(control(&*far.receiver), net.b.default_control(), "the other end of our own connection");
}

#[test]
fn loopback_and_other_interfaces_are_not_touched() {
    needs_root!();
    let net = Net::direct();
    net.a.run(|| {
        support::run("ip link add a1 type veth peer name a2");
        support::run("ip link set a1 up");
        support::run("ip link set a2 up");
        support::run("ip addr add 10.79.0.1/24 dev a1");
    });
    let before = Flow::idle(&net.a, &net.a, "127.0.0.1");
    let mut kernel = load(&net);
    let flows = [
        Flow::idle(&net.a, &net.a, "127.0.0.1"),
        Flow::idle(&net.a, &net.a, "::1"),
        // the host's own addresses are reached by the loopback interface
        Flow::idle(&net.a, &net.a, A4),
        Flow::idle(&net.a, &net.a, A6),
        Flow::idle(&net.a, &net.a, "10.79.0.1"),
    ];
    kernel.adopt().expect("a walk");
    let default = net.a.default_control();
    for flow in flows.iter().chain([&before]) {
        assert_eq!(flow.control(), default);
        assert_eq!(control(&*flow.receiver), default);
    }
    assert_eq!(kernel.sample().expect("a walk"), []);
}

/// A tunnel over the path, as that of a VPN: what goes into t0 leaves by a0, wrapped.
#[test]
fn the_connections_in_a_tunnel_through_the_interface_are_governed_where_it_is_named() {
    needs_root!();
    let net = Net::direct();
    for (host, own, other, inner) in [(&net.a, A4, B4, "10.79.0.1"), (&net.b, B4, A4, "10.79.0.2")] {
        host.run(|| {
            support::run(&format!("ip link add t0 type vxlan id 1 local {own} remote {other} dstport 4789"));
            support::run(&format!("ip addr add {inner}/24 dev t0"));
            support::run("ip link set t0 up");
        });
    }
    let default = net.a.default_control();
    let before = Flow::idle(&net.a, &net.b, "10.79.0.2");
    let mut unnamed = load(&net);
    assert_eq!(unnamed.adopt().expect("a walk").adopted, 0);
    assert_eq!(Flow::idle(&net.a, &net.b, "10.79.0.2").control(), default);
    drop(unnamed);

    let tunnel = net.a.run(|| nix::net::if_::if_nametoindex("t0").expect("t0 exists"));
    let mut kernel = load_with(&net, Mode::Control, |options| options.tunnels = vec![tunnel]);
    assert_eq!(kernel.adopt().expect("a walk").adopted, 1);
    let after = Flow::start(&net.a, &net.b, "10.79.0.2");
    let outside = Flow::idle(&net.a, &net.b, B4);
    for flow in [&before, &after, &outside] {
        assert_eq!(flow.control(), kernel.name());
    }
    assert_eq!(kernel.sample().expect("a walk").len(), 3);
    // What is received there is bounded as well: its ACKs leave by t0.
    // Linux 6.6 can do it.
    let attached = kernel.bound_received();
    assert!(matches!(attached, Ok(()) | Err(Error::Unsupported { .. })), "{attached:?}");
    drop(kernel);
    assert_eq!([&before, &after, &outside].map(|flow| flow.control()), [default.clone(), default.clone(), default]);
}

/// A process in a host, by which a loader finds its namespace.
struct Process(std::process::Child);

impl Process {
    fn within(host: &support::Host) -> Self {
        Self(host.run(|| std::process::Command::new("sleep").arg("1000").spawn().expect("a process")))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The router's interface towards `b` is the managed one. Host `a` is a container behind it, as on a bridge of Docker: its address is
/// replaced.
#[test]
fn the_connections_of_another_namespace_through_the_interface_are_governed_on_request() {
    needs_root!();
    let net = Net::bottleneck(100, 100_000);
    let router = net.router().expect("this net has one");
    router.run(|| {
        support::run("nft add table ip nat");
        support::run("nft add chain ip nat out {type nat hook postrouting priority 100;}");
        support::run("nft add rule ip nat out oifname rb masquerade");
    });
    // At `b` ends the managed interface itself, a veth pair as well here: that is no container.
    let _processes = [&net.a, &net.b].map(Process::within);
    let options = |containers| {
        let mut options = Options::new(router.interface("rb"), Mode::Control).expect("cgroup2 is mounted");
        options.containers = containers;
        options
    };
    let load = |containers| router.run(|| Kernel::load(&options(containers)).expect("the kernel takes the programs"));
    let default = net.a.default_control();
    let before = Flow::idle(&net.a, &net.b, B4);
    let mut without = load(false);
    assert_eq!(without.adopt().expect("a walk").adopted, 0);
    assert_eq!(without.follow_containers().expect("nothing to do"), lasthop_kernel::Containers::default());
    let unasked = Flow::start(&net.a, &net.b, B4);
    assert_eq!([before.control(), unasked.control()], [default.clone(), default.clone()]);
    assert_eq!(without.sample().expect("a walk"), []);
    drop((without, unasked));

    let mut kernel = load(true);
    let found = kernel.follow_containers().expect("rtnetlink answers");
    // Other tests have namespaces elsewhere.
    assert_eq!((found.governed, found.closed, found.changed), (1, 0, true), "{found:?}");
    assert!(!kernel.follow_containers().expect("rtnetlink answers").changed);
    assert_eq!(kernel.adopt().expect("a walk").adopted, 1);
    let after = Flow::start(&net.a, &net.b, B4);
    let six = Flow::idle(&net.a, &net.b, B6);
    let own = Flow::idle(router, &net.b, B4);
    // To the router itself, and from it to the container: nothing of it leaves by the managed interface.
    let inside = [Flow::idle(&net.a, router, "10.77.0.2"), Flow::idle(&net.a, router, "10.78.0.2")];
    let towards = Flow::idle(router, &net.a, A4);
    for flow in [&before, &after, &six, &own] {
        assert_eq!(flow.control(), kernel.name());
    }
    for flow in inside.iter().chain([&towards]) {
        assert_eq!(flow.control(), default);
    }
    assert_eq!(kernel.adopt().expect("a walk").adopted, 0);
    let told: std::collections::BTreeSet<u64> =
        kernel.sample().expect("a walk").iter().map(|sample| sample.cookie).collect();
    assert_eq!(told, [&before, &after, &six, &own].map(Flow::cookie).into());
    let observed = kernel.observe().expect("a walk").sockets;
    assert_eq!(observed.iter().map(|sample| sample.cookie).collect::<std::collections::BTreeSet<_>>(), told);
    for sample in observed.iter() {
        assert_eq!(sample.in_container, sample.cookie != own.cookie(), "{sample:?}");
    }
    // Somebody outside downloads from there, as by a published port.
    let served = Flow::idle(&net.b, &net.a, A4);
    assert_eq!(control(&*served.receiver), kernel.name());
    drop(served);

    // A bound holds there as it does here.
    let bound = lasthop_laws::bound::Bound { max_segments: 3, ..lasthop_laws::bound::Bound::default() };
    support::eventually("three segments in flight at most", || {
        kernel.set_bounds(Some(bound), &[], lasthop_units::Span::from_secs(5)).expect("told");
        after.info().tcpi_snd_cwnd == 3
    });
    // The destination moves away from the managed interface.
    router.run(|| {
        // Where a route moves away the kernel forgets whom it masquerades. The other end would reset what then comes from a stranger.
        support::run("nft add table ip no-resets");
        support::run("nft add chain ip no-resets back {type filter hook forward priority 0;}");
        support::run("nft add rule ip no-resets back tcp flags & rst == rst drop");
        support::run("ip route add 10.78.0.1/32 dev ra");
    });
    assert!(kernel.follow_containers().expect("rtnetlink answers").changed);
    assert!(kernel.adopt().expect("a walk").restored >= 2, "those of IPv4");
    assert_eq!([before.control(), six.control()], [default.clone(), kernel.name().to_owned()]);
    router.run(|| support::run("ip route del 10.78.0.1/32 dev ra"));
    assert!(kernel.follow_containers().expect("rtnetlink answers").changed);
    // The one that sends comes back by what it sends, or by a walk.
    support::eventually("both of IPv4 are governed again", || {
        kernel.adopt().expect("a walk");
        [before.control(), after.control()] == [kernel.name(), kernel.name()]
    });
    drop(kernel);
    for flow in [&before, &after, &six, &own] {
        assert_eq!(flow.control(), default);
    }
}

#[test]
fn a_socket_whose_route_moves_to_another_interface_gets_its_own_control_back() {
    needs_root!();
    let net = Net::direct();
    let mut flow = Flow::idle(&net.a, &net.b, B4);
    let default = net.a.default_control();
    let mut kernel = load(&net);
    assert_eq!(kernel.adopt().expect("a walk").adopted, 1);
    net.a.run(|| {
        support::run("ip link add a1 type veth peer name a2");
        support::run("ip link set a1 up");
        support::run("ip link set a2 up");
        support::run("ip route replace 10.78.0.0/24 dev a1");
    });
    // the socket notices at its next transmission
    flow.send();
    support::eventually("the control of before", || {
        kernel.adopt().expect("a walk");
        flow.control() == default
    });
    assert_eq!(kernel.counters().restored, 1);
}

/// A cgroup that is removed, with us back at the root, when the test ends.
struct Cgroup {
    root: PathBuf,
    path: PathBuf,
}

impl Cgroup {
    fn new(name: &str) -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("/proc");
        let root = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2")).expect("cgroup2 is mounted");
        let root = PathBuf::from(root.split(' ').nth(1).expect("where it is mounted"));
        let path = root.join(format!("lasthop-test-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("below")).expect("a cgroup");
        Self { root, path }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::write(self.root.join("cgroup.procs"), std::process::id().to_string());
        for below in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(below.path());
        }
        let _ = fs::remove_dir(&self.path);
    }
}

#[test]
fn a_control_on_the_leave_list_is_left() {
    needs_root!();
    let net = Net::direct();
    let reno = |socket: &std::os::fd::OwnedFd| set_control(socket, "reno");
    let before = Flow::idle_with(&net.a, &net.b, B4, reno);
    let mut kernel = load_with(&net, Mode::Control, |options| options.leave = vec!["reno".into(), "vegas".into()]);
    let after = Flow::idle_with(&net.a, &net.b, B4, reno);
    let other = Flow::idle(&net.a, &net.b, B4);
    let adopted = kernel.adopt().expect("a walk");
    assert_eq!((adopted.adopted, adopted.already, adopted.left), (0, 1, 2));
    assert_eq!((before.control().as_str(), after.control().as_str()), ("reno", "reno"));
    assert_eq!(other.control(), kernel.name());
}

#[test]
fn a_control_that_an_application_chooses_after_us_is_left() {
    needs_root!();
    let net = Net::direct();
    let mut kernel = load(&net);
    let flow = Flow::idle(&net.a, &net.b, B4);
    set_control(&*flow.sender, "reno");
    assert_eq!(kernel.adopt().expect("a walk").left, 1);
    kernel.release().expect("a walk");
    assert_eq!(flow.control(), "reno");
}

/// A socket belongs to the cgroup of the process that makes it; so another process makes one in there.
#[test]
#[ignore = "only a part of other tests, which start it"]
fn a_connection_of_another_process() {
    let Some(group) = std::env::var_os("LASTHOP_TEST_CGROUP") else { return };
    fs::write(PathBuf::from(group).join("cgroup.procs"), std::process::id().to_string()).expect("moving there");
    if let Some(uid) = std::env::var_os("LASTHOP_TEST_UID") {
        let uid = uid.to_str().and_then(|uid| uid.parse().ok()).expect("a number");
        nix::unistd::setuid(nix::unistd::Uid::from_raw(uid)).expect("root may");
    }
    let socket = std::net::TcpStream::connect((B4, 4000)).expect("a connection");
    println!("\ncontrol {}", control(&socket));
}

/// The control of a connection that another process makes in this cgroup.
fn control_within(net: &Net, group: &std::path::Path) -> String {
    control_of(net, group, 0)
}

/// The same for a process of this user.
fn control_of(net: &Net, group: &std::path::Path, uid: u32) -> String {
    net.a.run(|| {
        let mut command = std::process::Command::new(std::env::current_exe().expect("our own file"));
        command.args(["--exact", "a_connection_of_another_process", "--ignored", "--nocapture"]);
        command.env("LASTHOP_TEST_CGROUP", group).env("LASTHOP_TEST_UID", uid.to_string());
        let output = command.output().expect("another process");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().find_map(|line| line.strip_prefix("control ")).expect("its control").to_owned()
    })
}

fn listener(net: &Net) -> std::net::TcpListener {
    net.b.run(|| std::net::TcpListener::bind((B4, 4000)).expect("a listener"))
}

#[test]
fn sockets_of_an_excluded_cgroup_and_of_those_below_are_left() {
    needs_root!();
    let net = Net::direct();
    let group = Cgroup::new("excluded");
    let excluded = group.path.clone();
    let mut kernel = load_with(&net, Mode::Control, |options| options.excluded_cgroups = vec![excluded]);
    let _listener = listener(&net);
    let default = net.a.default_control();
    assert_eq!(control_within(&net, &group.path), default);
    assert_eq!(control_within(&net, &group.path.join("below")), default);
    assert_eq!(control_within(&net, &group.root), kernel.name());
    kernel.release().expect("a walk");
}

#[test]
fn an_excluded_cgroup_that_comes_later_or_anew_is_left_once_it_has_been_looked_for() {
    needs_root!();
    let net = Net::direct();
    let group = Cgroup::new("later");
    let below = group.path.join("below");
    fs::remove_dir(&below).expect("an empty cgroup");
    let excluded = below.clone();
    let mut kernel = load_with(&net, Mode::Control, |options| options.excluded_cgroups = vec![excluded]);
    let _listener = listener(&net);
    let missing = lasthop_kernel::Cgroups { missing: vec![below.clone()], ..Default::default() };
    assert_eq!(kernel.follow_cgroups().expect("told"), missing);
    for _ in 0..2 {
        fs::create_dir(&below).expect("a cgroup, with another number each time");
        assert_eq!(control_within(&net, &below), kernel.name(), "nobody has looked yet");
        assert_eq!(
            kernel.follow_cgroups().expect("told"),
            lasthop_kernel::Cgroups { changed: true, ..Default::default() }
        );
        assert_eq!(control_within(&net, &below), net.a.default_control());
        support::eventually("the cgroup to be empty", || fs::remove_dir(&below).is_ok());
    }
    assert_eq!(control_within(&net, &group.path), kernel.name());
    kernel.release().expect("a walk");
}

#[test]
fn an_open_socket_of_a_cgroup_that_is_excluded_later_gets_its_own_control_back() {
    needs_root!();
    let net = Net::direct();
    let group = Cgroup::new("then");
    // A path that leads to the cgroup of this process, but not yet.
    let link = std::env::temp_dir().join(format!("lasthop-test-cgroup-{}", std::process::id()));
    let excluded = link.clone();
    let mut kernel = load_with(&net, Mode::Control, |options| options.excluded_cgroups = vec![excluded]);
    let flow = Flow::idle(&net.a, &net.b, B4);
    assert_eq!(flow.control(), kernel.name());
    std::os::unix::fs::symlink(&group.root, &link).expect("a link");
    let followed = kernel.follow_cgroups();
    fs::remove_file(&link).expect("the link");
    assert!(followed.expect("told").changed);
    assert_eq!(kernel.adopt().expect("a walk").restored, 1);
    assert_eq!(flow.control(), net.a.default_control());
}

#[test]
fn control_is_limited_to_a_cgroup_at_connect_and_in_each_walk() {
    needs_root!();
    let net = Net::direct();
    let group = Cgroup::new("only");
    let outside = Flow::idle(&net.a, &net.b, B4);
    let only = group.path.clone();
    let mut kernel = load_with(&net, Mode::Control, |options| options.only_cgroup = Some(only));
    let outside_too = Flow::idle(&net.a, &net.b, B4);
    let _listener = listener(&net);
    let default = net.a.default_control();
    let adopted = kernel.adopt().expect("a walk");
    assert_eq!((adopted.adopted, adopted.already), (0, 0));
    assert_eq!((outside.control(), outside_too.control()), (default.clone(), default.clone()));
    assert_eq!(control_within(&net, &group.path.join("below")), kernel.name());
    assert_eq!(control_within(&net, &group.root), default);
    kernel.release().expect("a walk");
}

#[test]
fn the_first_rule_that_fits_by_cgroup_and_user_decides() {
    needs_root!();
    for mode in support::modes() {
        let net = Net::direct();
        let group = Cgroup::new("rule");
        let name = group.path.file_name().expect("it has one").to_str().expect("ours").to_owned();
        let rule = |cgroup: Option<String>, uid, leave| Rule { cgroup: cgroup.map(PathBuf::from), uid, leave };
        let rules = vec![
            rule(Some(format!("/{name}/*")), Some(1001), false),
            rule(Some(format!("/{}*", &name[..name.len() - 1])), None, true),
            rule(None, Some(1002), true),
            rule(None, Some(1001), false),
        ];
        let rules_of_net = rules.clone();
        let mut kernel = load_with(&net, mode, |options| options.rules = rules_of_net);
        let _listener = listener(&net);
        let (ours, default) = (kernel.name().to_owned(), net.a.default_control());
        let is_adopted = |kernel: &Kernel, group: &std::path::Path, uid| {
            let before = kernel.counters().adopted_at_connect;
            let control = control_of(&net, group, uid);
            let adopted = kernel.counters().adopted_at_connect > before;
            assert_eq!(control, if adopted && mode == Mode::Control { ours.clone() } else { default.clone() });
            adopted
        };
        let below = group.path.join("below");
        for (place, uid, governed) in [
            (&below, 1001, true),       // the first rule, though the second one fits too
            (&below, 1000, false),      // the second
            (&group.path, 1001, false), // not below it, so the second
            (&group.root, 1002, false), // the third
            (&group.root, 1001, true),  // the last
            (&group.root, 1000, true),  // none
        ] {
            assert_eq!(is_adopted(&kernel, place, uid), governed, "{} as {uid}, {mode:?}", place.display());
        }
        kernel.release().expect("a walk");
    }
}

#[test]
fn a_rule_that_too_many_cgroups_match_holds_for_none_and_the_others_hold() {
    needs_root!();
    let net = Net::direct();
    let group = Cgroup::new("many");
    let name = group.path.file_name().expect("it has one").to_str().expect("ours").to_owned();
    let rule = |cgroup: &str| Rule { cgroup: Some(format!("/{name}/{cgroup}").into()), leave: true, ..Rule::default() };
    let rules = vec![rule("many-*"), rule("below")];
    let mut kernel = load_with(&net, Mode::Control, |options| options.rules = rules);
    let _listener = listener(&net);
    let many: Vec<_> = (0..=Kernel::CGROUPS_MOST).map(|n| group.path.join(format!("many-{n}"))).collect();
    many.iter().for_each(|path| fs::create_dir(path).expect("a cgroup"));
    let followed = kernel.follow_cgroups().expect("told");
    assert_eq!(followed.too_many, [TooManyCgroups { rule: 0, cgroups: many.len() }]);
    let default = net.a.default_control();
    assert_eq!(control_within(&net, &many[0]), kernel.name(), "the first rule holds for none");
    assert_eq!(control_within(&net, &group.path.join("below")), default, "the second holds");
    // Two less: then there is room for all of the first rule and the one of the second.
    many[1..3].iter().for_each(|path| support::eventually("an empty cgroup", || fs::remove_dir(path).is_ok()));
    let followed = kernel.follow_cgroups().expect("told");
    assert_eq!((followed.changed, followed.too_many), (true, Vec::new()));
    assert_eq!(control_within(&net, &many[0]), default);
    kernel.release().expect("a walk");
    support::eventually("an empty cgroup", || fs::remove_dir(&many[0]).is_ok());
}

#[test]
fn a_sample_names_its_rule_and_a_user_s_open_sockets_are_left_by_a_walk() {
    needs_root!();
    let net = Net::direct();
    // Of root, whose number is 0.
    let flow = Flow::idle(&net.a, &net.b, B4);
    let default = net.a.default_control();
    let of = |uid, leave| Rule { uid: Some(uid), leave, ..Rule::default() };
    let mut kernel = load_with(&net, Mode::Control, |options| options.rules = vec![of(7, true), of(0, false)]);
    assert_eq!(kernel.adopt().expect("a walk").adopted, 1);
    assert_eq!(kernel.sample().expect("a walk")[0].rule, Some(1));
    assert_eq!(kernel.observe().expect("a walk").sockets[0].rule, Some(1));
    kernel.release().expect("a walk");
    let mut kernel = load_with(&net, Mode::Control, |options| options.rules = vec![of(0, true)]);
    assert_eq!(kernel.adopt().expect("a walk").adopted, 0);
    assert_eq!((kernel.sample().expect("a walk")[0].rule, flow.control()), (Some(0), default));
    let too_many = vec![of(1, true); Kernel::RULES_MOST + 1];
    let options = Options { rules: too_many, ..Options::new(1, Mode::Observe).expect("cgroup2") };
    assert!(Kernel::load(&options).is_err());
}

/// connect(2) with AF_UNSPEC: the socket is as new, but for what was set on it.
fn disconnect(socket: &std::net::TcpStream) {
    use std::os::fd::AsRawFd;
    // SAFETY: a sockaddr is plain numbers, and the kernel reads no more of it than its size.
    let result = unsafe {
        let nowhere: nix::libc::sockaddr = std::mem::zeroed(); // sa_family 0 is AF_UNSPEC
        nix::libc::connect(socket.as_raw_fd(), &raw const nowhere, size_of_val(&nowhere) as nix::libc::socklen_t)
    };
    assert_eq!(result, 0, "connect with AF_UNSPEC");
}

#[test]
fn a_socket_that_is_used_again_on_loopback_gets_its_own_control_back_as_it_connects() {
    needs_root!();
    for mode in support::modes() {
        let net = Net::direct();
        let mut kernel = load_with(&net, mode, |_| {});
        let bound = lasthop_laws::Bound { max_segments: 4, ..lasthop_laws::Bound::default() };
        let lease = lasthop_units::Span::from_secs(100);
        kernel.set_bounds(Some(bound), &[], lease).expect("bounds");
        let default = net.a.default_control();
        let mut flow = Flow::idle(&net.a, &net.b, B4);
        flow.send(); // RTT samples, which mode Clamp works by
        let sampled = |kernel: &mut lasthop_kernel::Kernel| {
            let samples = kernel.sample().expect("a walk");
            samples.iter().any(|sample| sample.controlled && sample.tcp.cwnd_segments <= 4)
        };
        support::eventually("the bound", || sampled(&mut kernel));
        let socket = std::sync::Arc::clone(&flow.sender);
        drop(flow);
        disconnect(&socket);
        let (_listener, _accepted) = net.a.run(|| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
            let to = listener.local_addr().expect("it is bound");
            let to = nix::sys::socket::SockaddrStorage::from(to);
            nix::sys::socket::connect(std::os::fd::AsRawFd::as_raw_fd(&*socket), &to).expect("loopback");
            let accepted = listener.accept().expect("a connection");
            (listener, accepted)
        });
        assert_eq!(control(&*socket), default, "{mode:?}");
        assert_eq!(kernel.counters().restored, 1, "{mode:?}");
        let restored = kernel.release().expect("a walk").restored;
        assert_eq!(restored, 0, "{mode:?}: nothing of ours was left on it");
    }
}
