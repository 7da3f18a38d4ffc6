//! What the agent costs: its CPU time and memory with 10 to 100,000 sockets on the managed interface.
//!
//! `cargo bench -p lasthop-agent --bench footprint [-- SECONDS [SOCKETS]]`, as root; SOCKETS runs one case only. Two
//! network namespaces joined by a veth pair. *Idle* sockets were used when they were opened, and one of them sends
//! 1 Mb/s. *Used* ones send a byte every few seconds. The agent runs as a process of its own, mode `control`, policy
//! `fixed`, so that each tick renews a bound for each socket in use: the most that it does. What its BPF programs cost
//! per ACK is not in here (`lasthop-kernel`, bench `overhead`). CPU is that of the agent's threads over the measured
//! seconds, in per cent of one core, the kernel's walk included; its start is not. Ticks are counted by what the agent
//! tells a service manager.
#![allow(missing_docs, clippy::disallowed_methods)] // a bench reads clocks and files

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Host, two_hosts, wait_for};
use lasthop_agent::{Config, Mode, Notify, Orders};
use lasthop_kernel::{Kernel, Options};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::iter;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

/// What we promise, in per cent of one core and MiB of resident memory. The promises leave room for a machine that is
/// busy with something else; the measured values are the table.
struct Case {
    sockets: usize,
    used: bool,
    cpu_percent: f64,
    resident_mib: f64,
}

const CASES: [Case; 7] = [
    Case { sockets: 10, used: false, cpu_percent: 0.3, resident_mib: 16.0 },
    Case { sockets: 1_000, used: false, cpu_percent: 0.5, resident_mib: 16.0 },
    Case { sockets: 1_000, used: true, cpu_percent: 1.0, resident_mib: 16.0 },
    Case { sockets: 10_000, used: false, cpu_percent: 2.0, resident_mib: 32.0 },
    Case { sockets: 50_000, used: false, cpu_percent: 10.0, resident_mib: 128.0 },
    Case { sockets: 50_000, used: true, cpu_percent: 40.0, resident_mib: 128.0 },
    Case { sockets: 100_000, used: false, cpu_percent: 20.0, resident_mib: 160.0 },
];
const SECONDS: u64 = 20;
/// A process may have some 20,000 descriptors.
const OF_A_PROCESS: usize = 12_500;
/// The agent looks no longer at a socket that is idle for longer.
const ASLEEP: Duration = Duration::from_secs(35);
const FIRST_PORT: u16 = 5001;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "as-agent", config, _] => as_agent(config),
        [_, "as-server", port] => as_server(port),
        [_, "as-client", port, sockets, used] => as_client(port, sockets, used == "used"),
        _ => {
            let mut numbers = arguments.iter().filter_map(|argument| argument.parse().ok());
            let seconds = numbers.next().unwrap_or(SECONDS);
            measure_all(seconds, numbers.next().and_then(|sockets| usize::try_from(sockets).ok()))
        }
    }
}

fn measure_all(seconds: u64, only: Option<usize>) -> ExitCode {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: network namespaces need root");
        println!("0 passed, 0 failed");
        return ExitCode::SUCCESS;
    }
    println!("| sockets | CPU, % of a core | per tick, ms | resident, MiB | peak, MiB | |");
    println!("| ---: | ---: | ---: | ---: | ---: | --- |");
    let (mut passed, mut failed) = (0, 0);
    for case in CASES.iter().filter(|case| only.is_none_or(|only| case.sockets == only)) {
        let Measured { cpu_percent, tick_ms, resident_mib, peak_mib } = measure(case, seconds);
        let good = cpu_percent <= case.cpu_percent && peak_mib <= case.resident_mib;
        *(if good { &mut passed } else { &mut failed }) += 1;
        let verdict = if good {
            "passed".to_owned()
        } else {
            format!("failed: promised are {} % and {} MiB", case.cpu_percent, case.resident_mib)
        };
        let sockets = format!("{} {}", case.sockets, if case.used { "used" } else { "idle" });
        println!("| {sockets} | {cpu_percent:.2} | {tick_ms:.2} | {resident_mib:.1} | {peak_mib:.1} | {verdict} |");
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Measured {
    cpu_percent: f64,
    tick_ms: f64,
    resident_mib: f64,
    peak_mib: f64,
}

fn measure(case: &Case, seconds: u64) -> Measured {
    let sockets = case.sockets;
    let (a, b) = two_hosts();
    let used = if case.used { "used" } else { "idle" };
    let mut processes = Vec::new();
    for (port, begin) in (FIRST_PORT..).zip((0..sockets).step_by(OF_A_PROCESS)) {
        let count = OF_A_PROCESS.min(sockets - begin);
        for (host, arguments) in [
            (&b, vec!["as-server".to_owned(), port.to_string()]),
            (&a, vec!["as-client".to_owned(), port.to_string(), count.to_string(), used.to_owned()]),
        ] {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let mut process = again(host, &arguments, Stdio::piped());
            let mut line = String::new();
            let output = process.0.stdout.take().expect("it is a pipe");
            BufReader::new(output).read_line(&mut line).expect("it says when it is ready");
            assert_eq!(line, "ready\n");
            processes.push(process);
        }
    }

    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("agent.toml");
    let mut settings = Config { interface: Some("last".to_owned()), mode: Mode::Control, ..Config::default() };
    settings.policy.policy = lasthop_policy::PolicyName::Fixed;
    settings.policy.bound_segments = Some(1000);
    fs::write(&config, toml::to_string(&settings).expect("plain data")).expect("written");
    // Without a record, which would cost more than the agent itself.
    let manager = folder.path().join("notify");
    let ear = UnixDatagram::bind(&manager).expect("a socket");
    ear.set_nonblocking(true).expect("a socket");
    let agent = again(
        &a,
        &["as-agent", config.to_str().expect("a plain path"), manager.to_str().expect("a plain path")],
        Stdio::null(),
    );
    a.run(move || {
        let index = nix::net::if_::if_nametoindex("last").expect("it is there");
        let mut kernel =
            Kernel::load(&Options::new(index, lasthop_kernel::Mode::Observe).expect("possible")).expect("as root");
        wait_for("every socket to be taken over", || {
            let samples = kernel.sample().expect("sockets can be walked");
            let others = samples.iter().filter(|sample| !sample.congestion_control.starts_with("lasthop")).count();
            (others == 0).then_some(())
        });
    });
    // The first ticks meet every socket for the first time.
    thread::sleep(if case.used { Duration::from_secs(5) } else { ASLEEP });
    let process = agent.0.id();

    let ticks = || iter::from_fn(|| ear.recv(&mut [0; 256]).ok()).count();
    ticks(); // those so far
    let (begun, cpu_before) = (Instant::now(), cpu(process));
    let mut ticked = 0;
    while begun.elapsed() < Duration::from_secs(seconds) {
        thread::sleep(Duration::from_secs(1));
        ticked += ticks();
    }
    let used = cpu(process).saturating_sub(cpu_before).as_secs_f64();
    let took = begun.elapsed().as_secs_f64();
    let measured = Measured {
        cpu_percent: 100.0 * used / took,
        tick_ms: 1000.0 * used / ticked as f64,
        resident_mib: status_mib(process, "VmRSS:"),
        peak_mib: status_mib(process, "VmHWM:"),
    };
    drop(agent);
    processes.into_iter().rev().for_each(drop); // clients first: they panic without their servers
    measured
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// This program as a process on a host.
fn again(host: &Host, arguments: &[&str], stdout: Stdio) -> Killed {
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    host.run(move || {
        let executable = std::env::current_exe().expect("this bench");
        let mut command = Command::new(executable);
        if let [what, _, manager] = &arguments[..]
            && what == "as-agent"
        {
            command.env("NOTIFY_SOCKET", manager).env("WATCHDOG_USEC", "60000000");
        }
        Killed(command.args(arguments).stdout(stdout).spawn().expect("this bench runs again"))
    })
}

fn as_agent(config: &str) -> ExitCode {
    let config = Config::load(Some(config.as_ref()), &[]).expect("the bench writes a valid configuration");
    let stop = AtomicBool::new(false);
    let orders = Orders { notify: Notify::from_environment(), ..Orders::until(&stop) };
    lasthop_agent::run_with(&config, &orders).expect("the agent runs");
    ExitCode::SUCCESS
}

fn as_server(port: &str) -> ExitCode {
    let listener = TcpListener::bind(format!("10.77.0.2:{port}")).expect("a port");
    println!("ready");
    let mut kept = Vec::new();
    for (index, stream) in listener.incoming().flatten().enumerate() {
        if index == 0 {
            let mut first = stream.try_clone().expect("a second handle");
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while matches!(first.read(&mut buffer), Ok(1..)) {}
            });
        }
        kept.push(stream);
    }
    ExitCode::SUCCESS
}

fn as_client(port: &str, sockets: &str, used: bool) -> ExitCode {
    let server = format!("10.77.0.2:{port}");
    let connect = |_| wait_for("a connection", || TcpStream::connect(&server).ok());
    let mut connections: Vec<TcpStream> = (0..sockets.parse().expect("a number")).map(connect).collect();
    // Each has an RTT, and the first one of all goes on sending.
    connections.iter_mut().for_each(|connection| connection.write_all(&[0; 100]).expect("it is open"));
    println!("ready");
    if port == FIRST_PORT.to_string() {
        let mut sending = connections[0].try_clone().expect("a second handle");
        thread::spawn(move || {
            while sending.write_all(&[0; 1250]).is_ok() {
                thread::sleep(Duration::from_millis(10));
            }
        });
    }
    loop {
        if used {
            connections.iter_mut().for_each(|connection| connection.write_all(&[0]).expect("it is open"));
        }
        thread::sleep(Duration::from_secs(10));
    }
}

/// The time that all threads of a process have run.
fn cpu(process: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("the agent runs");
    let of_task = |task: fs::DirEntry| -> Option<u64> {
        fs::read_to_string(task.path().join("schedstat")).ok()?.split_whitespace().next()?.parse().ok()
    };
    Duration::from_nanos(tasks.flatten().filter_map(of_task).sum())
}

fn status_mib(process: u32, key: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("the agent runs");
    let line = status.lines().find_map(|line| line.strip_prefix(key)).expect("Linux tells");
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number of KiB");
    kib / 1024.0
}
