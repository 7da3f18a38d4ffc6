//! Loading beside other agents, leaving in order, and being killed.
#![allow(unsafe_code, missing_docs)]

mod support;

use lasthop_kernel::{Error, Kernel, Mode, Options};
use lasthop_units::Span;
use std::io::{BufRead, BufReader};
use std::panic::AssertUnwindSafe;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{A4, B4, B6, Flow, Net, bound, control, eventually, load, load_with, set_control};

fn registered() -> Vec<String> {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("/proc");
    names.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn release_gives_every_socket_the_control_that_it_had() {
    needs_root!();
    let net = Net::direct();
    let default = net.a.default_control();
    let reno = |socket: &std::os::fd::OwnedFd| set_control(socket, "reno");
    let before = Flow::idle_with(&net.a, &net.b, B4, reno);
    let mut kernel = load_with(&net, Mode::Control, |options| options.take_chosen = true);
    let flows = [Flow::idle_with(&net.a, &net.b, B4, reno), before];
    let plain = Flow::start(&net.a, &net.b, B6);
    let accepted = Flow::idle(&net.b, &net.a, A4);
    kernel.adopt().expect("a walk");
    let name = kernel.name().to_owned();
    assert!(flows.iter().chain([&plain]).all(|flow| flow.control() == name));
    let before = plain.info();
    let released = kernel.release().expect("a walk");
    assert_eq!((released.restored, released.failed), (4, 0));
    assert!(flows.iter().all(|flow| flow.control() == "reno"));
    assert_eq!((plain.control(), control(&*accepted.receiver)), (default.clone(), default.clone()));
    let after = plain.info();
    let lost = after.tcpi_total_retrans > before.tcpi_total_retrans;
    assert!(after.tcpi_snd_cwnd >= before.tcpi_snd_cwnd.min(10) || lost, "the window is kept");
    assert_eq!(Flow::idle(&net.a, &net.b, B4).control(), default, "new sockets too");
    let again = kernel.release().expect("nothing to do");
    assert_eq!((again.restored, again.failed), (0, 0));
}

#[test]
fn dropping_the_loader_is_releasing_it_even_in_a_panic() {
    needs_root!();
    let net = Net::direct();
    let flow = Flow::idle(&net.a, &net.b, B4);
    let default = net.a.default_control();
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let mut kernel = load(&net);
        kernel.adopt().expect("a walk");
        assert_eq!(flow.control(), kernel.name());
        std::panic::resume_unwind(Box::new("on purpose"));
    }));
    assert!(panicked.is_err());
    assert_eq!(flow.control(), default);
}

#[test]
fn unloading_takes_the_name_off_the_list_of_congestion_controls() {
    needs_root!();
    let net = Net::direct();
    // Another test, or another agent, may take the name at once: then try again.
    eventually("a name that is gone", || {
        let mut kernel = load(&net);
        let name = kernel.name().to_owned();
        assert!(name.starts_with("lasthop") && registered().contains(&name), "{name}");
        kernel.release().expect("a walk");
        !registered().contains(&name)
    });
}

#[test]
fn two_agents_in_two_namespaces_control_only_their_own() {
    needs_root!();
    let (one, two) = (Net::direct(), Net::direct());
    let (mut first, mut second) = (load(&one), load(&two));
    assert_ne!(first.name(), second.name());
    let (here, there) = (Flow::start(&one.a, &one.b, B4), Flow::start(&two.a, &two.b, B4));
    assert_eq!((here.control(), there.control()), (first.name().to_owned(), second.name().to_owned()));
    first.set_bounds(bound(0, 3), &[], Span::from_secs(600)).expect("bounds");
    eventually("the first is bounded", || here.info().tcpi_snd_cwnd <= 3);
    eventually("the second is not", || there.info().tcpi_snd_cwnd > 3);
    assert_eq!(first.adopt().expect("a walk").already, 1);
    assert_eq!(second.adopt().expect("a walk").already, 1);
    drop(first);
    assert_eq!((here.control(), there.control()), (one.a.default_control(), second.name().to_owned()));
    assert_eq!(second.sample().expect("a walk").len(), 1);
}

#[test]
fn another_living_agent_of_the_same_namespace_keeps_its_sockets() {
    needs_root!();
    let net = Net::direct();
    let first = load(&net);
    let flow = Flow::idle(&net.a, &net.b, B4);
    let mut second = load(&net);
    let adopted = second.adopt().expect("a walk");
    assert_eq!((adopted.adopted, adopted.left), (0, 1));
    assert_eq!(flow.control(), first.name());
    second.release().expect("a walk");
    assert_eq!(flow.control(), first.name());
}

/// A loader in a process of its own, for another test to kill: it bounds everything and waits.
#[test]
#[ignore = "only a part of other tests, which start it"]
fn a_loader_to_be_killed() {
    let Ok(index) = std::env::var("LASTHOP_TEST_INTERFACE") else { return };
    let options = Options::new(index.parse().expect("a number"), Mode::Control).expect("cgroup2");
    let mut kernel = Kernel::load(&options).expect("loaded");
    kernel.adopt().expect("a walk");
    kernel.set_bounds(bound(0, 5), &[], Span::from_millis(1500)).expect("bounds");
    println!("\nloaded {}", kernel.name());
    // Renewed until it is killed, as an agent does; whoever waits for a bound may be slower than its lease.
    loop {
        kernel.set_bounds(bound(0, 5), &[], Span::from_millis(1500)).expect("bounds");
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

/// Starts it on host `a`; gives the name of its control.
fn loader(net: &Net) -> (Killed, String) {
    drop(load(net)); // where that is not possible, this says why
    let index = net.a.interface("a0").to_string();
    let mut child = net.a.run(|| {
        let mut command = Command::new(std::env::current_exe().expect("our own file"));
        command.args(["--exact", "a_loader_to_be_killed", "--ignored", "--nocapture"]);
        command.env("LASTHOP_TEST_INTERFACE", index).stdout(Stdio::piped()).spawn().expect("another process")
    });
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let child = Killed(child);
    let name = output.lines().find_map(|line| Some(line.ok()?.strip_prefix("loaded ")?.to_owned()));
    (child, name.expect("it loaded"))
}

#[test]
fn a_killed_loader_leaves_running_sockets_which_the_next_one_adopts() {
    needs_root!();
    let net = Net::bottleneck(50, 100_000);
    let old = Flow::start(&net.a, &net.b, B4);
    let (child, name) = loader(&net);
    eventually("the bound of the first loader", || old.info().tcpi_snd_cwnd <= 5);
    drop(child);
    // The sockets keep its programs, the name is free again, the lease lapses.
    assert_eq!(old.control(), name);
    eventually("new sockets are left alone", || Flow::idle(&net.a, &net.b, B4).control() == net.a.default_control());
    let before = old.received();
    eventually("the flow goes on", || old.received() > before);
    eventually("a window past 24", || old.info().tcpi_snd_cwnd > 24);
    let mut kernel = load(&net);
    assert_eq!(kernel.adopt().expect("a walk").adopted, 1, "its control is nobody's now");
    kernel.set_bounds(bound(0, 6), &[], Span::from_secs(600)).expect("bounds");
    eventually("the bound of the second loader", || old.info().tcpi_snd_cwnd <= 6);
    kernel.release().expect("a walk");
    assert_eq!(old.control(), net.a.default_control(), "what it had before the first is lost with the first");
}

#[test]
fn a_loader_may_be_used_and_dropped_by_a_thread_in_another_namespace() {
    needs_root!();
    let net = Net::direct();
    let mut kernel = load(&net);
    let flow = Flow::idle(&net.a, &net.b, B4);
    net.b.run(|| {
        assert_eq!(kernel.sample().expect("a walk").len(), 1);
        assert_eq!(kernel.adopt().expect("a walk").already, 1);
        drop(kernel);
    });
    assert_eq!(flow.control(), net.a.default_control());
}

#[test]
fn what_cannot_be_managed_is_refused_by_name() {
    needs_root!();
    let net = Net::direct();
    let refuse = |change: &(dyn Fn(&mut Options) + Sync)| {
        net.a.run(|| {
            let mut options =
                Options::new(nix::net::if_::if_nametoindex("a0").expect("a0"), Mode::Control).expect("cgroup2");
            change(&mut options);
            Kernel::load(&options).expect_err("refused").to_string()
        })
    };
    assert_eq!(
        refuse(&|options| options.interface_index = 1),
        "interface 1 cannot be managed: it is the loopback interface"
    );
    assert!(refuse(&|options| options.interface_index = 4711).contains("there is none of that index"));
    assert!(refuse(&|options| options.leave = vec!["a_name_far_too_long".into()]).contains("longer than 15 letters"));
    let too_many = refuse(&|options| options.excluded_cgroups = vec!["/nowhere".into(); 257]);
    assert_eq!(too_many, "excluded cgroups: at most 256");
    assert!(refuse(&|options| options.mode = Mode::Nothing).contains("there is nothing to load"));
}

#[test]
fn a_user_without_rights_is_told_so_in_one_line() {
    needs_root!();
    // The rights of a thread are its own.
    let error = std::thread::spawn(|| {
        let mut header = [0x2008_0522_u32, 0];
        let none = [0u32; 6];
        // SAFETY: capset reads a header of version 3 for the calling thread and two sets of three words.
        let result = unsafe { nix::libc::syscall(nix::libc::SYS_capset, header.as_mut_ptr(), none.as_ptr()) };
        assert_eq!(result, 0);
        let support = lasthop_kernel::probe();
        assert_eq!(support.best_mode(), Mode::Nothing);
        Kernel::load(&Options::new(2, Mode::Observe).expect("no cgroup needed")).expect_err("no rights")
    });
    let error = error.join().expect("a thread");
    assert!(matches!(error, Error::Unsupported { .. }));
    let text = error.to_string();
    assert!(text.contains("the right to load BPF programs (root, or CAP_BPF") && text.lines().count() == 1, "{text}");
}
