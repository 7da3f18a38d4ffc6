//! What it costs: throughput against the kernel's own cubic, time per ACK, and time per tick with many sockets.
//!
//! Transfers are paired and interleaved, because a shared machine drifts; read the ratios, not the rates. Needs root.
#![allow(unsafe_code, missing_docs)]

#[path = "../tests/support/mod.rs"]
mod support;

use lasthop_kernel::laws::{Loaded, Name, Options};
use lasthop_kernel::link_report::{Claim, Options as ReporterOptions, Reporter};
use lasthop_kernel::{Kernel, Mode};
use lasthop_laws::{Bound, LawName, Parameters};
use lasthop_units::Span;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};
use support::{B4, Flow, Net, bound, load_with, may_run, set_control};

const ROUNDS: usize = 61;
const TRANSFER: Duration = Duration::from_millis(500);
/// What measuring adds to each run of a program, measured with an empty one; part of what the kernel tells.
const STATISTICS_NS: f64 = 74.0;

fn main() {
    // `cargo test` runs benchmarks too, without this argument
    if !std::env::args().any(|argument| argument == "--bench") || !may_run() {
        return;
    }
    let mut checks = Checks::default();
    throughput(&mut checks);
    time_per_ack(&mut checks);
    time_per_leaving_segment(&mut checks);
    time_per_ack_of_laws(&mut checks);
    time_per_report(&mut checks);
    time_per_tick(&mut checks);
    println!("\n{} passed, {} failed", checks.passed, checks.failed);
    std::process::exit(i32::from(checks.failed > 0));
}

#[derive(Default)]
struct Checks {
    passed: u32,
    failed: u32,
}

impl Checks {
    fn check(&mut self, what: &str, holds: bool) {
        println!("  {} {what}", if holds { "ok    " } else { "FAILED" });
        *if holds { &mut self.passed } else { &mut self.failed } += 1;
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn loaded(net: &Net) -> Kernel {
    load_with(net, Mode::Control, |options| options.leave = vec!["cubic".into()])
}

/// Mbit/s of one transfer, its first fifth left out; with this congestion control, or the one that sockets get by themselves.
fn transfer(net: &Net, control: Option<&str>) -> f64 {
    let mut flow = Flow::idle_with(&net.a, &net.b, B4, |socket| {
        if let Some(control) = control {
            set_control(socket, control);
        }
    });
    flow.send();
    std::thread::sleep(TRANSFER / 5);
    let (start, before) = (Instant::now(), flow.received());
    std::thread::sleep(TRANSFER);
    (flow.received() - before) as f64 * 8e-6 / start.elapsed().as_secs_f64()
}

fn throughput(checks: &mut Checks) {
    let net = Net::direct();
    let _kernel = loaded(&net);
    let (mut theirs, mut ours, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // who goes first changes: the second may find a warmer machine
        let first_cubic = round % 2 == 0;
        let control = |cubic: bool| cubic.then_some("cubic");
        let first = transfer(&net, control(first_cubic));
        let second = transfer(&net, control(!first_cubic));
        let (cubic, lasthop) = if first_cubic { (first, second) } else { (second, first) };
        theirs.push(cubic);
        ours.push(lasthop);
        ratios.push(lasthop / cubic);
    }
    let ratio = median(&mut ratios);
    println!("\nThroughput over veth, {ROUNDS} interleaved pairs of {} ms", TRANSFER.as_millis());
    println!("  kernel's cubic       {:8.0} Mb/s (median)", median(&mut theirs));
    println!("  lasthop, no bound    {:8.0} Mb/s (median)", median(&mut ours));
    let quartile = |number: usize| ratios[number * (ROUNDS - 1) / 4];
    println!("  ratio                {ratio:8.3} (median), half of them {:.3} to {:.3}", quartile(1), quartile(3));
    checks.check("the median ratio is at least 0.95", ratio >= 0.95);
}

/// Has the kernel measure the run time of BPF programs while it lives.
struct Statistics(#[allow(dead_code)] OwnedFd);

impl Statistics {
    fn start() -> Self {
        // SAFETY: takes a number, gives a descriptor or a negative error.
        let descriptor = unsafe { libbpf_rs::libbpf_sys::bpf_enable_stats(libbpf_rs::libbpf_sys::BPF_STATS_RUN_TIME) };
        assert!(descriptor >= 0, "run-time statistics need Linux 5.8");
        // SAFETY: just opened for us, and nobody else's.
        Self(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }
}

fn programs() -> Vec<(u32, String, u64, u64)> {
    let told = libbpf_rs::query::ProgInfoIter::default();
    let told = told
        .map(|program| (program.id, program.name.to_string_lossy().into_owned(), program.run_cnt, program.run_time_ns));
    told.collect()
}

/// Names of programs are cut to 15 letters. The programs whose names begin with `prefix`, during one transfer: prints each, and gives ns per run of `each_ack`.
fn per_ack(what: &str, prefix: &str, each_ack: &str, before: &[u32], transfer: impl FnOnce()) -> f64 {
    let statistics = Statistics::start();
    transfer();
    let ours: Vec<_> = programs().into_iter().filter(|(id, ..)| !before.contains(id)).collect();
    drop(statistics);
    let of = |name: &str| {
        let name = name.to_owned();
        ours.iter().filter(move |program| program.1.starts_with(&name))
    };
    let acks = of(each_ack).map(|program| program.2).sum::<u64>().max(1) as f64;
    let mut total = 0.0;
    for (_, name, runs, time) in of(prefix) {
        if *runs > 0 {
            let told = *time as f64 / *runs as f64;
            // on a quiet machine measuring costs less than that
            let each = (told - STATISTICS_NS).max(0.0);
            total += each * *runs as f64 / acks;
            println!("  {what:14} {name:16} {runs:8} runs {each:6.0} ns ({told:.0} as told)");
        }
    }
    println!("  {what:14} all per ACK               {total:6.0} ns");
    total
}

fn time_per_ack_of_laws(checks: &mut Checks) {
    println!("\nTime per run of each law's programs; the kernel's cubic is called from BPF (lasthop without a bound)");
    let cubic = {
        let net = Net::direct();
        let before = loaded_programs();
        let _kernel = loaded(&net);
        per_ack("cubic", "lasthop_", "lasthop_cong_co", &before, || {
            transfer(&net, None);
        })
    };
    let mut totals = vec![("the kernel's cubic", cubic)];
    for law in LawName::for_the_kernel() {
        let net = Net::direct();
        let before = loaded_programs();
        let parameters = Parameters::of(law);
        let options = Options { name: Name::Private, ..Options::new(law, parameters) };
        let loaded = Loaded::load(&options).unwrap_or_else(|error| panic!("{law}: {error:?}"));
        let total = per_ack(law.as_str(), "law_", "law_cong_contro", &before, || {
            transfer(&net, Some(loaded.name()));
        });
        totals.push((law.as_str(), total));
        checks.check("at most 400 ns per ACK", total <= 400.0);
    }
    println!("\n  {:20} {:>10} {:>10}", "law", "ns per ACK", "to cubic's");
    for (law, total) in totals {
        println!("  {law:20} {total:10.0} {:10.2}", total / cubic);
    }
}

/// Runs, and the time of all of them in ns, of the programs of link reports.
#[derive(Clone, Copy)]
struct Cost {
    runs: f64,
    time: f64,
}

/// A download whose client changes what it claims so often that most of its ACKs tell, or never: what its reporter and the server's programs cost,
/// and how many reports arrived. Both programs are called for the sockets of both hosts, for those are one machine.
fn download(net: &Net, law: &Loaded, reporter: &mut Reporter, before: &[u32], changes: bool) -> ([Cost; 2], f64) {
    let heard = || law.heard().expect("counters").later as f64;
    let costs = || {
        ["report", "last_link"].map(|name| {
            let found = programs().into_iter().find(|program| program.1 == name && !before.contains(&program.0));
            let (.., runs, time) = found.expect("it is loaded");
            Cost { runs: runs as f64, time: time as f64 - STATISTICS_NS * runs as f64 }
        })
    };
    let (heard_before, costs_before) = (heard(), costs());
    let statistics = Statistics::start();
    let mut flow = Flow::idle(&net.a, &net.b, B4);
    std::mem::swap(&mut flow.sender, &mut flow.receiver);
    flow.send();
    let start = Instant::now();
    for kbps in (1_000_000..).take_while(|_| start.elapsed() < 2 * TRANSFER) {
        if changes {
            let claim = Claim { bandwidth_kbps: Some(kbps), error_ppm: Some(100), validity_s: 60 };
            reporter.set(claim).expect("set");
        }
        std::thread::sleep(Duration::from_micros(20));
    }
    drop(flow);
    let mut spent = costs();
    drop(statistics);
    for (cost, before) in spent.iter_mut().zip(costs_before) {
        *cost = Cost { runs: cost.runs - before.runs, time: cost.time - before.time };
    }
    (spent, heard() - heard_before)
}

fn time_per_report(checks: &mut Checks) {
    let net = Net::direct();
    let before = loaded_programs();
    let parameters = Parameters::of(LawName::Lastlink);
    let options = Options { name: Name::Private, ..Options::new(LawName::Lastlink, parameters) };
    let law = Loaded::load(&options).unwrap_or_else(|error| panic!("{error:?}"));
    let mut reporter = net.a.run(|| {
        let index = nix::net::if_::if_nametoindex("a0").expect("a0 exists");
        Reporter::load(&ReporterOptions::new(index).expect("cgroup2")).unwrap_or_else(|error| panic!("{error:?}"))
    });
    net.b.run(|| std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", law.name()).expect("not restricted"));
    let (quiet, _) = download(&net, &law, &mut reporter, &before, false);
    let (busy, reports) = download(&net, &law, &mut reporter, &before, true);
    println!("\nTime of the programs of link reports; {reports} reports in {:.0} calls", busy[0].runs);
    let segment = quiet.map(|cost| cost.time / cost.runs);
    println!("  client, each segment without a report      {:6.0} ns", segment[0]);
    checks.check("at most 200 ns", segment[0] <= 200.0);
    for (what, cost, segment) in [("client, writing", busy[0], segment[0]), ("server, reading", busy[1], segment[1])] {
        // a report makes two calls more, one to write and one to read it
        let each = (cost.time - (cost.runs - 2.0 * reports) * segment) / reports;
        println!("  {what} each report               {each:6.0} ns");
        checks.check("at most 1500 ns", each <= 1500.0);
    }
}

fn loaded_programs() -> Vec<u32> {
    programs().into_iter().map(|(id, ..)| id).collect()
}

fn time_per_ack(checks: &mut Checks) {
    println!("\nTime per run of each program, {STATISTICS_NS} ns of measuring taken off");
    for (what, limits) in [("no bound", None), ("bound 0..1000", bound(0, 1000)), ("bound 20..20", bound(20, 20))] {
        let net = Net::direct();
        let before = loaded_programs();
        let mut kernel = loaded(&net);
        kernel.set_bounds(limits, &[], Span::from_secs(600)).expect("bounds");
        let total = per_ack(what, "lasthop_", "lasthop_cong_co", &before, || {
            transfer(&net, None);
        });
        checks.check("at most 220 ns per ACK", total <= 220.0);
    }
}

/// A download: what the program costs that bounds what is received, for each segment that leaves.
fn time_per_leaving_segment(checks: &mut Checks) {
    println!("\nTime per segment that leaves a receiver, {STATISTICS_NS} ns of measuring taken off");
    let limit = |max_receive_bytes| Some(Bound { max_receive_bytes, ..Bound::default() });
    for (what, limits) in [("no bound", None), ("60,000 bytes", limit(60_000))] {
        let net = Net::direct();
        let before = loaded_programs();
        let mut kernel = loaded(&net);
        kernel.bound_received().expect("Linux 6.6");
        kernel.set_bounds(limits, &[], Span::from_secs(600)).expect("bounds");
        let total = per_ack(what, "bound_received", "bound_received", &before, || {
            let mut flow = Flow::idle(&net.a, &net.b, B4);
            std::mem::swap(&mut flow.sender, &mut flow.receiver);
            flow.send();
            std::thread::sleep(2 * TRANSFER);
        });
        checks.check("at most 600 ns per segment", total <= 600.0);
    }
}

/// `count` connections of which only our end is held: a process has no more descriptors than that.
fn sockets(net: &Net, count: usize) -> Vec<TcpStream> {
    let listener = net.b.run(|| TcpListener::bind((B4, 0)).expect("a listener"));
    let target = listener.local_addr().expect("bound");
    net.a.run(|| {
        let open = |_| {
            let socket = TcpStream::connect(target).expect("a connection");
            drop(listener.accept());
            socket
        };
        (0..count).map(open).collect()
    })
}

fn time_per_tick(checks: &mut Checks) {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("as many as allowed");
    println!("\nTime of a tick, median of 21");
    println!("  {:>8} {:>12} {:>12} {:>12}", "sockets", "sample ms", "bounds ms", "adopt ms");
    for count in [10, 1000, 10_000] {
        let net = Net::direct();
        let mut kernel = loaded(&net);
        let held = sockets(&net, count);
        let flows: Vec<_> = held.iter().map(|socket| (support::cookie(socket), bound(1, 64))).collect();
        let mut times = [const { Vec::new() }; 3];
        net.a.run(|| {
            for _ in 0..21 {
                let start = Instant::now();
                assert_eq!(kernel.sample().expect("a walk").len(), count);
                let sampled = Instant::now();
                kernel.set_bounds(None, &flows, Span::from_secs(600)).expect("bounds");
                let bounded = Instant::now();
                assert_eq!(kernel.adopt().expect("a walk").already, count as u64);
                for (times, span) in times.iter_mut().zip([sampled - start, bounded - sampled, bounded.elapsed()]) {
                    times.push(span.as_secs_f64() * 1e3);
                }
            }
        });
        let [sample, bounds, adopt] = times.map(|mut times| median(&mut times));
        println!("  {count:8} {sample:12.2} {bounds:12.2} {adopt:12.2}");
        let start = Instant::now();
        kernel.release().expect("a walk");
        println!("  {count:8} sockets given back in {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
        checks.check("a tick takes at most 50 ms", sample + bounds <= 50.0);
    }
}
