//! The agent as a process of its own, and connections for it to bound.

use super::{Host, end_of, events, more_events, wait_for};
use lasthop_agent::{Config, Mode};
use lasthop_kernel::{Kernel, Options, SocketSample};
use lasthop_status::record::{Event, Tick, Totals};
use nix::sys::signal::Signal;
use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Deref;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;

/// `lasthop_kernel::Kernel` looks for names that are taken and registers one; two at once make each other try again.
pub static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What an [`AgentProcess`] runs: each test binary that has them calls this from an ignored test named `agent_process`.
pub fn run() {
    let Some(config) = std::env::var_os("LASTHOP_TEST_AGENT_CONFIG") else { return };
    let log = lasthop_agent::LogWriter::to_stderr().expect("a thread");
    let writer = log.clone();
    tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).init();
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&stop)).expect("a signal can be caught");
    let config = Config::load(Some(Path::new(&config)), &[]).expect("the test writes a valid configuration");
    let orders = lasthop_agent::Orders { least_privilege: true, ..lasthop_agent::Orders::until(&stop) };
    let outcome = lasthop_agent::run_with(&config, &orders);
    log.finish();
    outcome.expect("the agent runs and stops");
}

pub struct AgentProcess {
    pub process: Child,
    record: PathBuf,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl AgentProcess {
    /// On the host's interface `last`; `settings` are the lines of the configuration from the table `[policy]` on.
    pub fn start(host: &Host, mode: Mode, settings: &str) -> Self {
        Self::start_on(host, "last", mode, settings)
    }

    /// The same on another interface.
    pub fn start_on(host: &Host, interface: &str, mode: Mode, settings: &str) -> Self {
        let agent = Self::spawn(host, interface, mode, settings);
        wait_for("the agent to be ready", || {
            agent.events().first().map(|event| assert!(matches!(event, Event::Ready(ready) if ready.mode == mode)))
        });
        agent
    }

    /// What one says that does not start.
    pub fn refused(host: &Host, mode: Mode, settings: &str) -> String {
        let mut agent = Self::spawn(host, "last", mode, settings);
        let status = wait_for("the agent to end", || agent.process.try_wait().expect("it is ours"));
        assert!(!status.success() && agent.events().is_empty(), "{}", agent.log());
        agent.log()
    }

    fn spawn(host: &Host, interface: &str, mode: Mode, settings: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let record = folder.path().join("record.jsonl");
        let (config, log) = (folder.path().join("agent.toml"), folder.path().join("log"));
        let stderr = std::fs::File::create(&log).expect("a file");
        let text =
            format!("interface = \"{interface}\"\nmode = \"{mode}\"\nrecord = \"{}\"\n{settings}", record.display());
        std::fs::write(&config, text).expect("written");
        let process = host.run(move || {
            let executable = std::env::current_exe().expect("this test");
            let mut command = Command::new(executable);
            command.args(["--exact", "agent_process", "--ignored", "--nocapture"]);
            command.env("LASTHOP_TEST_AGENT_CONFIG", config);
            command.process_group(0).stdout(Stdio::null()).stderr(stderr).spawn().expect("this test runs again")
        });
        Self { process, record, log, _folder: folder }
    }

    /// What it has said on standard error so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("it is there")
    }

    pub fn events(&self) -> Vec<Event> {
        events(&self.record)
    }

    /// What was seen and decided at each tick so far.
    pub fn ticks(&self) -> Vec<Tick> {
        ticks(self.events()).collect()
    }

    /// The first tick from now on that is wanted.
    pub fn wait_for_tick(&self, what: &str, wanted: impl Fn(&Tick) -> bool) -> Tick {
        let mut read = end_of(&self.record);
        wait_for(what, || ticks(more_events(&self.record, &mut read)).find(&wanted))
    }

    /// Stops it in order; what it did.
    pub fn stop(mut self) -> Totals {
        self.signal(Signal::SIGTERM);
        assert!(wait_for("the agent to end", || self.process.try_wait().expect("it is ours")).success());
        let Some(Event::Stopped(totals)) = self.events().pop() else {
            panic!("the last line says that it has stopped")
        };
        totals
    }

    /// Its resident memory but for what it has of files, in KiB.
    pub fn rss_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("Linux says so");
        line.split_whitespace().nth(1).expect("a number").parse().expect("in KiB")
    }

    pub fn signal(&mut self, signal: Signal) {
        let process = nix::unistd::Pid::from_raw(self.process.id() as i32);
        nix::sys::signal::kill(process, signal).expect("the agent runs");
    }
}

fn ticks(events: Vec<Event>) -> impl Iterator<Item = Tick> {
    events.into_iter().filter_map(|event| if let Event::Tick(tick) = event { Some(tick) } else { None })
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        eprint!("{}", self.log());
    }
}

/// A server that takes what comes.
pub fn serve(host: &Host) {
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

/// A connection that sends all it can, until this goes.
pub struct Upload(TcpStream);

impl Deref for Upload {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.0
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // The thread that sends has the socket too.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

pub fn upload(host: &Host, to: &str) -> Upload {
    let to: SocketAddr = to.parse().expect("an address");
    host.run(move || {
        let stream = wait_for("a connection", || TcpStream::connect(to).ok());
        let mut sending = stream.try_clone().expect("a second handle");
        thread::spawn(move || while sending.write_all(&[0; 1 << 16]).is_ok() {});
        Upload(stream)
    })
}

thread_local! {
    /// What looks at sockets on a host's thread, and the interface that it was loaded for. To load it takes as long as a hundred looks.
    static WATCHED: RefCell<Option<(u32, Kernel)>> = const { RefCell::new(None) };
}

/// Looks at the uploads until all satisfy `wanted`.
pub fn wait_until_uploads(host: &Host, what: &'static str, wanted: fn(&SocketSample) -> bool) {
    host.run(move || {
        WATCHED.with_borrow_mut(|watched| {
            let index = nix::net::if_::if_nametoindex("last").expect("it is there");
            let (_, mut kernel) = watched.take().filter(|(of, _)| *of == index).unwrap_or_else(|| {
                let options = Options::new(index, lasthop_kernel::Mode::Observe).expect("possible as root");
                (index, Kernel::load(&options).expect("possible as root"))
            });
            wait_for(what, || {
                let mut seen = kernel.sample().expect("sockets can be walked");
                seen.retain(|sample| sample.remote.port() == 5001);
                (!seen.is_empty() && seen.iter().all(wanted)).then_some(())
            });
            *watched = Some((index, kernel));
        });
    });
}

/// CLOCK_MONOTONIC, which the record's times are on.
pub fn monotonic_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("Linux has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
