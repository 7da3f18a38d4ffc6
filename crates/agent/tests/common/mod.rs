//! Hosts for tests: network namespaces that live as long as a thread of ours, and a TCP that does what a test says.
#![allow(dead_code, unreachable_pub)] // each test file uses a part

pub mod process;
pub mod stranger;

use lasthop_agent::host_tcp::{Claim, HostTcp, LinkReporter, Loaded, ReportCounters, SocketSample, StateChange};
use lasthop_agent::{Config, Error, ExitSummary, Interface, Mode, Orders, Reload};
use lasthop_connection::TcpState;
use lasthop_laws::bound::Bound;
use lasthop_policy::PolicyName;
use lasthop_status::record::{Event, LinkReported};
use lasthop_units::{Bytes, Span};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Whether tests that need root may run; says why not, or fails if they have to.
pub fn root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    assert!(
        root || std::env::var_os("LASTHOP_REQUIRE_ROOT_TESTS").is_none_or(|value| value != "1"),
        "LASTHOP_REQUIRE_ROOT_TESTS=1, but this is not root"
    );
    if !root {
        // Past the test harness, which would keep it to itself.
        let _ = writeln!(std::io::stderr(), "skipped: network namespaces need root");
    }
    root
}

/// How long what must happen may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(45);

/// Looks every 20 ms until `found` has something; panics when patience ends.
pub fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(found) = found() {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("waited {PATIENCE:?} for {what}");
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread in a network namespace of its own, which goes when the thread ends.
pub struct Host {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    namespace: String,
}

impl Host {
    pub fn new() -> Self {
        let (jobs, to_do) = channel::<Job>();
        let (ready, is_ready) = channel();
        let thread = thread::spawn(move || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
            ready.send(format!("/proc/self/task/{}/ns/net", nix::unistd::gettid())).expect("the test waits");
            while let Ok(job) = to_do.recv() {
                job();
            }
        });
        let namespace = is_ready.recv().expect("the namespace is made");
        let namespace = namespace.replace("self", &std::process::id().to_string());
        Self { jobs: Some(jobs), thread: Some(thread), namespace }
    }

    /// Runs `job` in the namespace, as do the threads and processes that it starts.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (send, result) = channel();
        let job = Box::new(move || {
            let _ = send.send(job());
        });
        self.jobs.as_ref().expect("the host runs").send(job).expect("the host's thread runs");
        result.recv().expect("the job did not panic")
    }

    pub fn ip(&self, arguments: &str) {
        self.command("ip", arguments);
    }

    /// Runs `ip` or `tc` in the namespace.
    pub fn command(&self, program: &'static str, arguments: &str) {
        let arguments = arguments.to_owned();
        self.run(move || {
            let status = Command::new(program).args(arguments.split_whitespace()).status().expect("iproute2 is there");
            assert!(status.success(), "{program} {arguments}");
        });
    }

    /// A path by which other hosts can name this one's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Two hosts, 10.77.0.1 and 10.77.0.2, joined by a cable; the interface is called `last` on both.
pub fn two_hosts() -> (Host, Host) {
    let (a, b) = (Host::new(), Host::new());
    join(&a, &b);
    (a, b)
}

pub fn join(a: &Host, b: &Host) {
    join_by(a, "last", "10.77.0.1/24", b, "10.77.0.2/24");
}

/// A cable of 100 Mb/s from the interface with this name to the other host's `last`: an upload leaves the processors to the agents.
pub fn join_by(a: &Host, interface: &str, address: &str, b: &Host, address_of_b: &str) {
    a.ip(&format!("link add {interface} type veth peer name last netns {}", b.namespace()));
    for (host, interface, address) in [(a, interface, address), (b, "last", address_of_b)] {
        host.ip(&format!("address add {address} dev {interface}"));
        host.ip(&format!("link set {interface} up"));
        host.command("tc", &format!("qdisc add dev {interface} root tbf rate 100mbit burst 128k latency 20ms"));
        host.ip("link set lo up");
    }
}

/// What a test's TCP has seen, and what it says.
#[derive(Default)]
pub struct Fake {
    pub samples: Vec<SocketSample>,
    pub state_changes: Vec<StateChange>,
    pub fails: bool,
    pub asked: usize,
    pub stalls: Duration,
    pub loaded_for: Vec<(String, Mode)>,
    /// Modes for which no programs can be loaded.
    pub refuses: Vec<Mode>,
    pub adoptions: usize,
    pub bounds: Vec<Applied>,
    pub releases: usize,
    pub dropped: usize,
    /// What servers were to be told.
    pub claims: Vec<Claim>,
    pub cannot_report: bool,
    pub refuses_claims: bool,
    /// The most connections with a bound of their own, if limited.
    pub room: Option<usize>,
    /// Connections that are only counted.
    pub asleep: u64,
    /// What is received cannot be bounded.
    pub receives_freely: bool,
    /// How often a policy was announced that may bound it.
    pub announced: usize,
}

pub struct Applied {
    pub new_flows: Option<Bound>,
    pub flows: Vec<(u64, Option<Bound>)>,
    pub lease: Span,
}

pub type SharedFake = Arc<Mutex<Fake>>;

struct FakeTcp(SharedFake, Option<String>);

impl FakeTcp {
    fn fake(&self) -> std::sync::MutexGuard<'_, Fake> {
        self.0.lock().expect("no test panics with it")
    }
}

impl HostTcp for FakeTcp {
    fn congestion_control(&self) -> Option<&str> {
        self.1.as_deref()
    }

    fn adopt(&mut self) -> Result<u64, Error> {
        self.fake().adoptions += 1;
        Ok(1)
    }

    fn sample(&mut self) -> Result<Arc<Vec<SocketSample>>, Error> {
        let mut fake = self.fake();
        fake.asked += 1;
        if fake.fails {
            return Err(Error::Refused("the kernel does not answer".to_owned()));
        }
        let stall = std::mem::take(&mut fake.stalls);
        for sample in &mut fake.samples {
            sample.tcp.acked += Bytes::new(1); // makes progress
        }
        let samples = fake.samples.clone();
        drop(fake);
        thread::sleep(stall);
        Ok(Arc::new(samples))
    }

    fn asleep(&self) -> u64 {
        self.fake().asleep
    }

    fn bounds_received(&self) -> bool {
        !self.fake().receives_freely
    }

    fn will_bound_received(&mut self) {
        self.fake().announced += 1;
    }

    fn bounds_most(&self) -> usize {
        self.fake().room.unwrap_or(65_536)
    }

    fn poll_state_changes(&mut self, each: &mut dyn FnMut(StateChange)) -> Result<u64, Error> {
        self.fake().state_changes.drain(..).for_each(each);
        Ok(0)
    }

    fn set_bounds(
        &mut self,
        new_flows: Option<Bound>,
        flows: &[(u64, Option<Bound>)],
        lease: Span,
    ) -> Result<(), Error> {
        self.fake().bounds.push(Applied { new_flows, flows: flows.to_vec(), lease });
        Ok(())
    }

    fn release(&mut self) -> Result<u64, Error> {
        self.fake().releases += 1;
        Ok(1)
    }
}

struct FakeReporter(SharedFake);

impl FakeReporter {
    fn load(fake: &SharedFake) -> Option<Box<dyn LinkReporter>> {
        let is_able = !fake.lock().expect("no test panics with it").cannot_report;
        is_able.then(|| Box::new(Self(Arc::clone(fake))) as Box<dyn LinkReporter>)
    }
}

impl LinkReporter for FakeReporter {
    fn set(&mut self, claim: Claim) -> Result<(), Error> {
        let mut fake = self.0.lock().expect("no test panics with it");
        if fake.refuses_claims {
            return Err(Error::Refused("the kernel does not take it".to_owned()));
        }
        fake.claims.push(claim);
        Ok(())
    }

    fn counters(&self) -> Result<ReportCounters, Error> {
        Ok(ReportCounters { offered: 7, answered: 5, ..ReportCounters::default() })
    }
}

impl Drop for FakeTcp {
    fn drop(&mut self) {
        self.fake().dropped += 1;
    }
}

/// A busy connection of our control.
pub fn sample(cookie: u64, srtt_ms: u64, min_rtt_ms: u64) -> SocketSample {
    SocketSample {
        cookie,
        tcp: TcpState {
            cwnd_segments: 500,
            srtt: Some(Span::from_millis(srtt_ms)),
            newest_rtt: Some(Span::from_millis(srtt_ms)),
            min_rtt: Some(Span::from_millis(min_rtt_ms)),
            in_flight_segments: 500,
            mss_bytes: 1448,
            ..TcpState::default()
        },
        local: "10.77.0.1:40000".parse().expect("an address"),
        remote: "[2001:db8::1]:5001".parse().expect("an address"),
        congestion_control: "lasthop".into(),
        controlled: true,
        left: None,
        retransmitted: Bytes::ZERO,
        interface_index: 1,
        in_container: false,
        bound: None,
        bound_until: None,
        rule: None,
        delivery_rate: None,
        received_segments: 0,
        out_of_order_segments: 0,
        idle: Span::ZERO,
    }
}

pub fn fake(samples: Vec<SocketSample>) -> SharedFake {
    Arc::new(Mutex::new(Fake { samples, ..Fake::default() }))
}

/// An agent on a thread, with a record in a file.
pub struct Running {
    stop: Arc<AtomicBool>,
    /// What it reads when it is to read its configuration again; an error is what is wrong with it.
    again: Arc<Mutex<Result<Config, String>>>,
    reload: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<ExitSummary, Error>>>,
    record: PathBuf,
    folder: tempfile::TempDir,
}

impl Running {
    /// Starts it on the calling thread's network namespace.
    pub fn start(mut config: Config, fake: SharedFake) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let record = folder.path().join("record.jsonl");
        config.record.get_or_insert_with(|| record.clone());
        let [stop, reload] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (stop_of_thread, reload_of_thread) = (Arc::clone(&stop), Arc::clone(&reload));
        let again = Arc::new(Mutex::new(Ok(config.clone())));
        let again_of_thread = Arc::clone(&again);
        let status_folder = folder.path().join("lasthop");
        let thread = thread::spawn(move || {
            let mut loader = |_: &Config, interface: &Interface, mode: Mode| {
                let mut of_test = fake.lock().expect("no test panics with it");
                of_test.loaded_for.push((interface.name.clone(), mode));
                if of_test.refuses.contains(&mode) {
                    return Err(Error::Refused("another agent does that already".to_owned()));
                }
                drop(of_test);
                let name = (mode == Mode::Control).then(|| "lasthop".to_owned());
                Ok(Loaded {
                    tcp: Box::new(FakeTcp(Arc::clone(&fake), name)),
                    mode,
                    reporter: FakeReporter::load(&fake),
                })
            };
            let read = || {
                let again: Result<Config, String> = again_of_thread.lock().expect("no test panics with it").clone();
                again.map_err(Into::into)
            };
            let orders = Orders {
                reload: Some(Reload { asked: &reload_of_thread, read: &read }),
                status: Some(&status_folder),
                ..Orders::until(&stop_of_thread)
            };
            lasthop_agent::run_on_with(&config, &orders, &mut loader)
        });
        Self { stop, again, reload, thread: Some(thread), record, folder }
    }

    /// Has it read this configuration, and waits until it has.
    pub fn reload(&self, config: Result<Config, String>) {
        *self.again.lock().expect("no test panics with it") = config;
        self.reload.store(true, Ordering::Relaxed);
        wait_for("the agent to read", || (!self.reload.load(Ordering::Relaxed)).then_some(()));
    }

    /// The folder of its socket.
    pub fn sockets(&self) -> PathBuf {
        self.folder.path().join("lasthop")
    }

    /// What `lasthop agent status` would be told.
    pub fn status(&self) -> lasthop_status::Status {
        wait_for("a status", || {
            let agents = lasthop_status::ask_agents(&self.sockets()).expect("readable");
            agents.into_iter().next().map(|status| status.expect("an answer"))
        })
    }

    pub fn start_on(host: &Host, config: Config, fake: SharedFake) -> Self {
        host.run(move || Self::start(config, fake))
    }

    /// The whole lines of the record so far.
    pub fn events(&self) -> Vec<Event> {
        events(&self.record)
    }

    /// The first tick that is wanted among those that are not in the record yet. The record is written by a thread of
    /// its own: on a busy machine such a tick may be older than the call.
    pub fn wait_for_tick(
        &self,
        what: &str,
        mut wanted: impl FnMut(&lasthop_status::record::Tick) -> bool,
    ) -> lasthop_status::record::Tick {
        let mut read = end_of(&self.record);
        wait_for(what, || {
            assert!(!self.thread.as_ref().is_some_and(JoinHandle::is_finished), "the agent has ended");
            more_events(&self.record, &mut read).into_iter().find_map(|event| match event {
                Event::Tick(tick) if wanted(&tick) => Some(tick),
                _ => None,
            })
        })
    }

    pub fn stop(mut self) -> (Result<ExitSummary, Error>, Vec<Event>) {
        self.stop.store(true, Ordering::Relaxed);
        let summary = self.thread.take().expect("stopped once").join().expect("the agent did not panic");
        (summary, self.events())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What servers were told of the last link, of these.
pub fn reported(events: &[Event]) -> Vec<&LinkReported> {
    let events = events.iter();
    events.filter_map(|event| if let Event::LastLink(reported) = event { Some(reported) } else { None }).collect()
}

pub fn events(record: &Path) -> Vec<Event> {
    more_events(record, &mut 0)
}

/// The whole lines of a record from this byte on, which becomes that behind them.
pub fn more_events(record: &Path, from: &mut u64) -> Vec<Event> {
    let lines = more_lines(record, from);
    lines.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// How many bytes of a record are whole lines.
pub fn end_of(record: &Path) -> u64 {
    let mut end = 0;
    more_lines(record, &mut end);
    end
}

fn more_lines(record: &Path, from: &mut u64) -> String {
    let mut text = String::new();
    if let Ok(mut file) = std::fs::File::open(record) {
        file.seek(SeekFrom::Start(*from)).expect("a file");
        file.read_to_string(&mut text).expect("the record is text");
    }
    text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    *from += text.len() as u64;
    text
}

/// A group key that nobody else can read.
pub fn write_key(file: &Path, secret: &str) {
    use std::os::unix::fs::OpenOptionsExt;

    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(file).expect("written");
    file.write_all(secret.as_bytes()).expect("written");
}

/// A quick agent on this interface.
pub fn config(interface: &str, policy: &str) -> Config {
    let mut config =
        Config { interface: Some(interface.to_owned()), mode: Mode::Control, tick_ms: 50, ..Config::default() };
    config.beacon.interval_ms = 50;
    config.policy.policy = PolicyName::ALL.iter().copied().find(|name| name.as_str() == policy).expect("a policy");
    config.policy.bound_segments = Some(64);
    config
}
