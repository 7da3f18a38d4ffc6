//! What is left where the kernel has less: an upper bound by the kernel's clamp, or only looking.
#![allow(missing_docs)]

mod support;

use lasthop_kernel::{Kernel, Mode, Options, Outcome};
use lasthop_laws::Bound;
use lasthop_units::{Rate, Span};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{A4, B4, B6, Flow, NO_PACE, Net, bound, eventually, load_with, set_control, throughout};

const LONG: Span = Span::from_secs(600);

fn cubic(socket: &std::os::fd::OwnedFd) {
    set_control(socket, "cubic");
}

#[test]
fn this_kernel_has_every_feature_and_each_is_described() {
    needs_root!();
    let support = lasthop_kernel::probe();
    for (feature, outcome) in support.features() {
        // Some kernels refuse that, and each look is then at all sockets.
        let may_lack = feature == lasthop_kernel::Feature::MapIterator;
        assert!(may_lack || *outcome == Outcome::Present, "{}", feature.description());
        assert!(feature == lasthop_kernel::Feature::Privilege || feature.description().contains("Linux "));
    }
    assert_eq!(support.best_mode(), Mode::Control);
    assert_eq!(support.to_string().lines().count(), lasthop_kernel::Feature::ALL.len());
}

#[test]
fn a_cgroup2_that_another_mount_hides_is_not_seen() {
    needs_root!();
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS).expect("a mount namespace");
            let none = None::<&str>;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).expect("mounts of our own");
            assert!(lasthop_kernel::sees_cgroups());
            mount(none, "/sys/fs", Some("tmpfs"), MsFlags::empty(), none).expect("a file system over it");
            assert!(!lasthop_kernel::sees_cgroups());
            mount(none, "/mnt", Some("cgroup2"), MsFlags::empty(), none).expect("it again");
            assert!(lasthop_kernel::sees_cgroups());
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn observing_changes_nothing() {
    needs_root!();
    let net = Net::direct();
    let mut kernel = load_with(&net, Mode::Observe, |_| {});
    assert_eq!((kernel.mode(), kernel.name()), (Mode::Observe, ""));
    let flow = Flow::start(&net.a, &net.b, B4);
    assert_eq!(kernel.adopt().expect("nothing to do"), lasthop_kernel::Adopted::default());
    kernel.set_bounds(bound(0, 2), &[(flow.cookie(), bound(0, 2))], LONG).expect("nothing to do");
    eventually("a window past 12", || flow.info().tcpi_snd_cwnd > 12);
    let samples = kernel.sample().expect("a walk");
    assert!(samples.len() == 1 && !samples[0].controlled && samples[0].bound.is_none());
    assert_eq!(kernel.release().expect("nothing to do"), lasthop_kernel::Released::default());
    assert_eq!(flow.control(), net.a.default_control());
}

#[test]
fn a_clamp_bounds_new_flows_of_the_interface_and_no_others() {
    needs_root!();
    let net = Net::bottleneck(50, 100_000);
    let mut kernel = load_with(&net, Mode::Clamp, |options| options.leave = vec!["reno".into()]);
    kernel.set_bounds(bound(0, 6), &[], LONG).expect("bounds");
    let mut flows: Vec<_> = [B4, B6].map(|address| Flow::idle_with(&net.a, &net.b, address, cubic)).into();
    let mut left = Flow::idle_with(&net.a, &net.b, B4, |socket| set_control(socket, "reno"));
    let loopback = Flow::idle_with(&net.a, &net.a, "127.0.0.1", cubic);
    for flow in flows.iter_mut().chain([&mut left]) {
        flow.send();
    }
    // RTT samples, at which a clamp would hold.
    for _ in 0..20 {
        (&*loopback.sender).write_all(&[0; 1000]).expect("sent");
        (&*loopback.receiver).read_exact(&mut [0; 1000]).expect("received");
    }
    eventually("clamped", || flows.iter().all(|flow| flow.info().tcpi_snd_cwnd <= 6));
    throughout(Duration::from_millis(300), || assert!(flows.iter().all(|flow| flow.info().tcpi_snd_cwnd <= 6)));
    eventually("the one on the leave list grows", || left.info().tcpi_snd_cwnd > 12);
    assert!(loopback.info().tcpi_snd_cwnd >= 10, "the one over loopback keeps its window");
    assert!(flows.iter().all(|flow| flow.control() == "cubic"), "the control is the socket's own");
    let samples = kernel.sample().expect("a walk");
    assert_eq!(samples.iter().filter(|sample| sample.controlled && sample.bound == bound(0, 6)).count(), 2);
    assert_eq!(kernel.counters().adopted_at_connect, 2);
    kernel.release().expect("a walk");
    eventually("unclamped", || flows.iter().all(|flow| flow.info().tcpi_snd_cwnd > 12));
}

#[test]
fn a_clamp_holds_for_flows_that_exist_and_lapses_with_its_lease() {
    needs_root!();
    let net = Net::bottleneck(50, 100_000);
    let mut flow = Flow::idle_with(&net.a, &net.b, B4, cubic);
    flow.send();
    let accepted = Flow::idle(&net.b, &net.a, A4);
    eventually("a window past 12", || flow.info().tcpi_snd_cwnd > 12);
    let mut kernel = load_with(&net, Mode::Clamp, |_| {});
    let adopted = kernel.adopt().expect("a walk");
    if !support::is_since(6, 12) {
        assert_eq!((adopted.adopted, adopted.failed), (0, 2), "none is half adopted");
        assert_eq!(kernel.adopt().expect("a walk").already, 0);
        return;
    }
    assert_eq!((adopted.adopted, adopted.failed), (2, 0));
    assert_eq!(kernel.adopt().expect("a walk").already, 2);
    eventually("clamped", || {
        // renewed until it is seen
        kernel.set_bounds(None, &[(flow.cookie(), bound(0, 6))], Span::from_millis(1000)).expect("bounds");
        flow.info().tcpi_snd_cwnd <= 6
    });
    eventually("the lease has lapsed", || flow.info().tcpi_snd_cwnd > 12);
    assert_eq!(kernel.release().expect("a walk").restored, 2);
    drop(accepted);
}

/// The other program is attached after ours, so that it comes last at the end of each handshake. It takes away all of our flags where
/// the port is 4779: only a walk sets them again, from Linux 6.12 on.
#[test]
fn a_clamp_survives_another_program_that_sets_callback_flags_of_its_own() {
    needs_root!();
    for port in [4778, 4779].into_iter().filter(|&port| port == 4778 || support::is_since(6, 12)) {
        let net = Net::direct();
        let root = Options::new(1, Mode::Clamp).expect("cgroup2 is mounted").cgroup;
        let mut kernel = load_with(&net, Mode::Clamp, |_| {});
        let object = support::test_object("choose").load().expect("the kernel takes it");
        let root = std::fs::File::open(root).expect("a folder");
        let _link = object.progs_mut().next().expect("one").attach_cgroup(root.as_raw_fd()).expect("attached");
        kernel.set_bounds(bound(0, 5), &[], LONG).expect("told");
        let listener = net.b.run(move || TcpListener::bind((B4, port)).expect("a listener"));
        let to = listener.local_addr().expect("bound");
        let sender = net.a.run(move || TcpStream::connect(to).expect("a connection"));
        let (mut receiver, _) = listener.accept().expect("the connection");
        if port == 4779 {
            kernel.adopt().expect("a walk");
        }
        kernel.set_bounds(bound(0, 3), &[], LONG).expect("told");
        let mut writer = sender.try_clone().expect("a copy");
        std::thread::spawn(move || while writer.write_all(&[0; 4096]).is_ok() {});
        std::thread::spawn(move || while receiver.read(&mut [0; 65536]).is_ok_and(|count| count > 0) {});
        eventually(&format!("three segments, to port {port}"), || support::tcp_info(&sender).tcpi_snd_cwnd == 3);
        sender.shutdown(std::net::Shutdown::Both).expect("open");
    }
}

/// Any rate turns pacing on for the socket's life: the rate of "at once" is none.
#[test]
fn a_clamp_that_sends_at_once_paces_nothing() {
    needs_root!();
    let net = Net::bottleneck(50, 100_000);
    let mut kernel = load_with(&net, Mode::Clamp, |_| {});
    kernel
        .set_bounds(Some(Bound { at_once: true, ..bound(0, 6).expect("a bound") }), &[], Span::from_secs(600))
        .expect("bounds");
    let flow = Flow::start(&net.a, &net.b, B4);
    eventually("clamped", || flow.info().tcpi_snd_cwnd <= 6 && flow.received() > 100_000);
    assert_eq!(flow.max_pacing_rate(), NO_PACE);
}

/// A loader in a process of its own, for another test to kill.
#[test]
#[ignore = "only a part of other tests, which start it"]
fn a_clamping_loader_to_be_killed() {
    let Ok(index) = std::env::var("LASTHOP_TEST_INTERFACE") else { return };
    let lease_ms = std::env::var("LASTHOP_TEST_LEASE_MS").expect("set with the other").parse().expect("a number");
    let options = Options::new(index.parse().expect("a number"), Mode::Clamp).expect("cgroup2");
    let mut kernel = Kernel::load(&options).expect("loaded");
    kernel.adopt().expect("a walk");
    let limits = Some(Bound { max_pacing_rate: Rate::from_mbps(20.0), ..bound(0, 5).expect("a bound") });
    kernel.set_bounds(limits, &[], Span::from_millis(lease_ms)).expect("bounds");
    println!("\nloaded");
    // Renewed until it is killed, as an agent does; whoever waits for a bound may be slower than its lease.
    loop {
        kernel.set_bounds(limits, &[], Span::from_millis(lease_ms)).expect("bounds");
        std::thread::sleep(Duration::from_millis(300));
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many programs of this mode are loaded, whoever's.
fn programs() -> Vec<u32> {
    let programs = libbpf_rs::query::ProgInfoIter::default();
    programs.filter(|program| program.name == "clamp_new").map(|program| program.id).collect()
}

/// What is killed with the loader.
#[derive(Clone, Copy, PartialEq)]
enum Kill {
    /// Only the loader, as by the kernel for want of memory.
    Alone,
    /// Also the process that it has beside it, as by `systemctl kill -s KILL`.
    WithItsGuard,
}

/// The processes that this one has started.
fn children(of: u32) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let is_child = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("PPid:").is_some_and(|parent| parent.trim() == of.to_string()))
    };
    processes.filter_map(|process| process.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}

/// Has a flow clamped by another process, which has the rights of a service without CAP_SYS_ADMIN, and that process killed.
/// Gives the flow and the programs that came with it.
fn killed_over(net: &Net, lease_ms: &str, kill: Kill) -> (Flow, Vec<u32>) {
    let open = || {
        let mut flow = Flow::idle_with(&net.a, &net.b, B4, cubic);
        flow.send();
        flow
    };
    // Before 6.12 a clamp holds for new connections only.
    let opened = support::is_since(6, 12).then(open);
    let index = net.a.interface("a0").to_string();
    let before = programs();
    let mut child = net.a.run(|| {
        let mut command = Command::new("setpriv");
        command.arg("--bounding-set=-sys_admin").arg(std::env::current_exe().expect("our own file"));
        command.args(["--exact", "a_clamping_loader_to_be_killed", "--ignored", "--nocapture"]);
        command.env("LASTHOP_TEST_INTERFACE", index).env("LASTHOP_TEST_LEASE_MS", lease_ms);
        command.stdout(Stdio::piped()).spawn().expect("another process")
    });
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let child = Killed(child);
    assert!(output.lines().any(|line| line.expect("text") == "loaded"));
    let its = programs().into_iter().filter(|id| !before.contains(id)).collect();
    let flow = opened.unwrap_or_else(open);
    eventually("clamped", || flow.info().tcpi_snd_cwnd <= 5 && flow.max_pacing_rate() == 2_500_000);
    let guards = children(child.0.id());
    assert_eq!(guards.len(), 1);
    if kill == Kill::WithItsGuard {
        let guard = nix::unistd::Pid::from_raw(guards[0]);
        nix::sys::signal::kill(guard, nix::sys::signal::Signal::SIGKILL).expect("it runs");
    } else {
        // What a service manager sends to every process of a service does not end it.
        let guard = nix::unistd::Pid::from_raw(guards[0]);
        nix::sys::signal::kill(guard, nix::sys::signal::Signal::SIGTERM).expect("it runs");
    }
    drop(child);
    (flow, its)
}

#[test]
fn a_clamping_loader_that_is_killed_leaves_neither_clamp_nor_program() {
    needs_root!();
    let net = Net::bottleneck(50, 100_000);
    let (flow, its) = killed_over(&net, "600000", Kill::Alone);
    assert!(!its.is_empty());
    eventually("the program is gone", || !programs().iter().any(|id| its.contains(id)));
    eventually("unclamped", || flow.info().tcpi_snd_cwnd > 12 && flow.max_pacing_rate() == NO_PACE);
}

#[test]
fn a_clamp_that_is_released_leaves_no_process() {
    needs_root!();
    let net = Net::direct();
    let guards = || {
        let is_guard = |pid: &i32| {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "lasthop-guard")
        };
        children(std::process::id()).into_iter().filter(is_guard).count()
    };
    let mut kernel = load_with(&net, Mode::Clamp, |_| {});
    // a child takes its name a moment after the fork
    eventually("a guard", || guards() > 0);
    kernel.release().expect("a walk");
    // Those of tests that run beside this one go when these end.
    eventually("no guard is left", || guards() == 0);
}

#[test]
fn a_clamp_lapses_even_when_its_loader_is_killed() {
    needs_root!();
    let net = Net::bottleneck(50, 100_000);
    let (flow, its) = killed_over(&net, "1500", Kill::WithItsGuard);
    eventually("the lease has lapsed", || flow.info().tcpi_snd_cwnd > 12 && flow.max_pacing_rate() == NO_PACE);
    drop(load_with(&net, support::modes().next().expect("one"), |_| {}));
    // Those of tests that run beside this one go when these end.
    eventually("the program is gone", || !programs().iter().any(|id| its.contains(id)));
}

#[test]
fn the_next_loader_takes_off_the_clamps_of_one_that_was_killed() {
    needs_root!();
    let net = Net::bottleneck(50, 100_000);
    let (flow, its) = killed_over(&net, "600000", Kill::WithItsGuard);
    throughout(Duration::from_millis(200), || assert!(flow.info().tcpi_snd_cwnd <= 5, "its lease still runs"));
    let kernel = load_with(&net, Mode::Observe, |_| {});
    throughout(Duration::from_millis(200), || assert!(flow.info().tcpi_snd_cwnd <= 5, "observing changes nothing"));
    drop(kernel);
    let kernel = load_with(&net, support::modes().next().expect("one"), |_| {});
    assert_eq!(flow.max_pacing_rate(), NO_PACE);
    eventually("unclamped", || flow.info().tcpi_snd_cwnd > 12);
    eventually("the program is gone", || !programs().iter().any(|id| its.contains(id)));
    drop(kernel);
}

#[test]
fn a_cgroup_that_is_full_is_said_to_be_so_with_the_limit() {
    needs_root!();
    let net = Net::direct();
    // Of this test's own: on the root it would stand in the way of others.
    let root = Options::new(1, Mode::Control).expect("cgroup2").cgroup;
    let cgroup = root.join(format!("lasthop-test-{}", std::process::id()));
    std::fs::create_dir(&cgroup).expect("root may");
    let (count, errors) = net.a.run(|| {
        let index = nix::net::if_::if_nametoindex("a0").expect("a0");
        let report = lasthop_kernel::link_report::Options {
            cgroup: cgroup.clone(),
            ..lasthop_kernel::link_report::Options::new(index).expect("cgroup2")
        };
        let mut reporters = Vec::new();
        let refused = loop {
            match lasthop_kernel::link_report::Reporter::load(&report) {
                Ok(reporter) => reporters.push(reporter),
                Err(error) => break error,
            }
        };
        let load = |mode| {
            let options = Options { cgroup: cgroup.clone(), ..Options::new(index, mode).expect("cgroup2") };
            Kernel::load(&options).map(drop).expect_err("it is full")
        };
        (reporters.len(), [refused, load(Mode::Control), load(Mode::Clamp)])
    });
    std::fs::remove_dir(&cgroup).expect("nobody is in it");
    assert_eq!(count, 64);
    for error in errors {
        assert!(matches!(error, lasthop_kernel::Error::TooManyPrograms), "{error}");
        assert!(error.to_string().contains("has 64 socket programs already"), "{error}");
    }
}
