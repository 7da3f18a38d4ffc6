//! The agent as a process of its own on this machine's kernel, between two network namespaces. Needs root.
#![allow(missing_docs)]

mod common;

use agent::record::Event;
use agent::{Config, Mode};
use common::{Host, events, root, two_hosts, wait_for};
use kernel::{Kernel, Options, SocketSample};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;

/// Windows are tried at this bound: two connections get half each.
const BOUND_SEGMENTS: u32 = 16;

/// Not a test: what `AgentProcess` runs.
#[test]
#[ignore = "run by the other tests"]
fn agent_process() {
    let Some(config) = std::env::var_os("LASTHOP_TEST_AGENT_CONFIG") else { return };
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&stop)).expect("a signal can be caught");
    let config = Config::load(&PathBuf::from(config)).expect("the test writes a valid configuration");
    agent::run(&config, &stop).expect("the agent runs and stops");
}

/// `kernel::Kernel` looks for names that are taken and registers one; two at once make each other try again.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct AgentProcess {
    process: Child,
    record: PathBuf,
    _folder: tempfile::TempDir,
}

impl AgentProcess {
    fn start(host: &Host, mode: Mode) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let record = folder.path().join("record.jsonl");
        let config = folder.path().join("agent.toml");
        let text = format!(
            "interface = \"last\"\nmode = \"{mode}\"\nrecord = \"{}\"\n[policy]\npolicy = \"fixed\"\nbound_segments = {}\n",
            record.display(),
            BOUND_SEGMENTS,
        );
        std::fs::write(&config, text).expect("written");
        let process = host.run(move || {
            let executable = std::env::current_exe().expect("this test");
            let mut command = Command::new(executable);
            command.args(["--exact", "agent_process", "--ignored", "--nocapture"]);
            command.env("LASTHOP_TEST_AGENT_CONFIG", config);
            command.process_group(0).spawn().expect("this test runs again")
        });
        let agent = Self { process, record, _folder: folder };
        wait_for("the agent to be ready", || {
            agent.events().first().map(|event| assert!(matches!(event, Event::Ready(ready) if ready.mode == mode)))
        });
        agent
    }

    fn events(&self) -> Vec<Event> {
        events(&self.record)
    }

    fn signal(&mut self, signal: nix::sys::signal::Signal) {
        let process = nix::unistd::Pid::from_raw(self.process.id() as i32);
        nix::sys::signal::kill(process, signal).expect("the agent runs");
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server that takes what comes.
fn serve(host: &Host) {
    host.run(|| {
        let listener = TcpListener::bind("[::]:5001").expect("a port");
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    let mut stream = stream;
                    let mut buffer = vec![0; 1 << 16];
                    while matches!(stream.read(&mut buffer), Ok(1..)) {}
                });
            }
        });
    });
}

/// A connection that sends all it can, until it is shut down.
fn upload(host: &Host, to: &str) -> TcpStream {
    let to: SocketAddr = to.parse().expect("an address");
    host.run(move || {
        let stream = wait_for("a connection", || TcpStream::connect(to).ok());
        let mut sending = stream.try_clone().expect("a second handle");
        thread::spawn(move || while sending.write_all(&[0; 1 << 16]).is_ok() {});
        stream
    })
}

/// Looks at the uploads until all satisfy `wanted`.
fn wait_until_uploads(host: &Host, what: &'static str, wanted: fn(&SocketSample) -> bool) {
    host.run(move || {
        let index = nix::net::if_::if_nametoindex("last").expect("it is there");
        let options = Options::new(index, kernel::Mode::Observe).expect("possible as root");
        let mut kernel = Kernel::load(&options).expect("possible as root");
        wait_for(what, || {
            let mut seen = kernel.sample().expect("sockets can be walked");
            seen.retain(|sample| sample.remote.port() == 5001);
            (!seen.is_empty() && seen.iter().all(wanted)).then_some(())
        });
    });
}

/// CLOCK_MONOTONIC, which the record's times are on.
fn monotonic_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("Linux has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

fn bounded(sample: &SocketSample) -> bool {
    sample.congestion_control.starts_with("lasthop") && sample.cwnd_segments <= BOUND_SEGMENTS / 2
}

fn two_hosts_with_ipv6() -> (Host, Host) {
    let (a, b) = two_hosts();
    a.ip("address add fd77::1/64 dev last nodad");
    b.ip("address add fd77::2/64 dev last nodad");
    serve(&b);
    (a, b)
}

#[test]
fn bounds_hold_over_both_address_families_and_lapse_after_kill_9() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, _b) = two_hosts_with_ipv6();
    let before = upload(&a, "10.77.0.2:5001"); // open before the agent starts
    let mut agent = AgentProcess::start(&a, Mode::Control);
    let after = upload(&a, "[fd77::2]:5001");
    wait_until_uploads(&a, "both windows to be bounded", bounded);

    agent.signal(nix::sys::signal::Signal::SIGKILL);
    agent.process.wait().expect("it is dead");
    let dead_ns = monotonic_ns();
    // Its lease ends 1.5 s after its last tick. (The kernel keeps CUBIC running in our wrapping.) How soon after that this
    // test sees larger windows is up to the machine: what the kernel does at the end of a lease is tested in `kernel`.
    let flows = agent.events().into_iter().filter_map(|event| match event {
        Event::Tick(tick) => Some(tick.flows),
        _ => None,
    });
    let ends_ns = flows.flatten().filter_map(|flow| flow.bound_until_ns).max().expect("bounds with a lease");
    assert!(ends_ns <= dead_ns + 1_500_000_000, "{ends_ns} and {dead_ns}");
    wait_until_uploads(&a, "the bounds to lapse", |sample| sample.cwnd_segments > BOUND_SEGMENTS);
    let lapsed_ns = monotonic_ns();
    eprintln!("the bounds lapsed {} ms after kill -9", (lapsed_ns - dead_ns) / 1_000_000);
    assert!(lapsed_ns >= ends_ns, "the bounds lapsed {} ns before their lease", ends_ns - lapsed_ns);
    drop((before, after));
}

#[test]
fn a_stop_in_order_gives_the_sockets_their_own_control_back() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, _b) = two_hosts_with_ipv6();
    let upload = upload(&a, "10.77.0.2:5001");
    let mut agent = AgentProcess::start(&a, Mode::Control);
    wait_until_uploads(&a, "the window to be bounded", |sample| sample.congestion_control.starts_with("lasthop"));
    let bounded = |event: &Event| matches!(event, Event::Tick(tick) if tick.flows.iter().any(|flow| flow.bound.is_some() && flow.controlled));
    wait_for("a tick with the bound", || agent.events().iter().any(bounded).then_some(()));
    agent.signal(nix::sys::signal::Signal::SIGTERM);
    let asked_ns = monotonic_ns();
    assert!(wait_for("the agent to end", || agent.process.try_wait().expect("it is ours")).success());
    wait_until_uploads(&a, "its own control", |sample| !sample.congestion_control.starts_with("lasthop"));
    let events = agent.events();
    let Some(Event::Stopped(totals)) = events.last() else { panic!("the last line says that it has stopped") };
    assert_eq!((totals.sockets_restored, totals.flows_enabled), (1, 1));
    // It stops at once: at most the ticks of two seconds, should its threads wait for a CPU.
    let after = events.iter().filter(|event| matches!(event, Event::Tick(tick) if tick.t_ns > asked_ns)).count();
    assert!(after <= 4, "{after} more ticks");
    drop(upload);
}

#[test]
fn mode_advise_says_what_it_would_do_and_leaves_the_sockets_alone() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, _b) = two_hosts_with_ipv6();
    let upload = upload(&a, "10.77.0.2:5001");
    let agent = AgentProcess::start(&a, Mode::Advise);
    wait_for("an advice", || {
        agent.events().into_iter().find_map(|event| match event {
            Event::Tick(tick) => tick.flows.into_iter().find(|flow| flow.advised.is_some()),
            _ => None,
        })
    });
    wait_until_uploads(&a, "its own control", |sample| {
        !sample.congestion_control.starts_with("lasthop") && sample.bound.is_none()
    });
    drop(upload);
}
