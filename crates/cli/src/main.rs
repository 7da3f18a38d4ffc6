//! The `lasthop` command: parses the command line, calls the other crates, and turns their results into text and exit
//! codes.
//!
//! Exit codes: 0 done; 1 a check failed after the run (the run is invalid, or a claim does not hold); 2 could not run,
//! with a message that says what to do; 130 a signal ended it early, and nothing was kept.

mod agent;
mod built_in;
mod clock;
mod doctor;
mod exec;
mod export;
mod generate;
mod kernels;
mod key;
mod laws;
mod live;
mod medium;
mod numbers;
mod out_folder;
mod progress;
mod relay;
mod runs;
mod schema;
mod simulate;
mod stored;
mod study;
mod top;
mod trace;
mod trial;
mod view;

use clap::{Parser, Subcommand};
use lasthop_agent::LogWriter;
use lasthop_kernel::privilege::{CapabilitySet, keep_only};
pub(crate) use lasthop_version::build;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tracing_subscriber::EnvFilter;

/// It ran, and a check failed.
pub(crate) const FAILED: u8 = 1;
/// It could not run.
pub(crate) const COULD_NOT_RUN: u8 = 2;

/// A signal ended it early: the shell's code for a command ended by Ctrl-C.
const INTERRUPTED: u8 = 130;

/// One or more runs that a signal ended early, in words.
#[derive(Debug)]
pub(crate) struct Interrupted(pub(crate) String);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "interrupted: {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// Many devices behind one access point: try the remedies, and use them.
#[derive(Parser)]
#[command(name = "lasthop", version = lasthop_version::VERSION, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario once
    Run(runs::RunArguments),
    /// Run a scenario in several cases and compare them
    Compare(runs::CompareArguments),
    /// Run any program on a host of a scenario, beside its flows
    Exec(exec::ExecArguments),
    #[command(hide = true)]
    ExecInside(exec::InsideArguments),
    /// The first process of an emulated machine
    #[command(name = lasthop_guest::INIT, hide = true)]
    GuestInit {
        /// Of a job in it
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Run a study: a figure of a paper, and which of its claims hold
    Study(study::StudyArguments),
    /// List, fetch and keep the kernels of `--clock virtual`
    Kernels(kernels::KernelsArguments),
    /// Write a run in the format of another tool: CSV, flent, iperf3
    Export(export::ExportArguments),
    /// List and print the scenarios that are built in
    Scenarios(built_in::ScenariosArguments),
    /// Observe this host's connections, and bound their windows when the access point is congested
    Agent(agent::AgentArguments),
    /// Watch an agent on the terminal, or a record of it: connections, limits and their reasons, the common rate
    Top(top::TopArguments),
    /// Find out on your own network what control changes: control and free in turns, and a verdict
    Trial(trial::TrialArguments),
    /// Make a scenario of what agents have recorded
    Trace(trace::TraceArguments),
    /// Show the result in a folder, or an agent, as a page in a browser on this machine
    View(view::ViewArguments),
    /// Make a group key: hosts that have it believe only each other
    Key(key::KeyArguments),
    /// Pass beacons on by unicast, where an access point keeps its clients from hearing each other
    Relay(relay::RelayArguments),
    /// Be the Wi-Fi medium of simulated radios (mac80211_hwsim): contention, air time, losses
    Medium(medium::MediumArguments),
    /// Build a congestion control of your own; load ours into the kernel for any program, and manage them
    Laws(laws::LawsArguments),
    /// Check what this kernel can do for lasthop, and what is missing
    Doctor(doctor::DoctorArguments),
    /// Print the JSON Schema of a file, by which an editor completes and checks its keys
    Schema(schema::SchemaArguments),
    /// Print the script by which a shell completes this command's arguments
    Completions(generate::CompletionsArguments),
    /// Write the man pages of this command and its subcommands into a folder
    #[command(hide = true)]
    Man(generate::ManArguments),
}

/// The agent's log. Other commands have none, and write to standard error themselves.
static LOG: OnceLock<LogWriter> = OnceLock::new();

fn main() -> ExitCode {
    // clap exits with 2 for a wrong command line, and with 0 for --help and --version.
    let arguments = Arguments::try_parse().unwrap_or_else(|error| {
        let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let Some(said) = exec::without_dashes(&error, &words) else { error.exit() };
        tell(format_args!("lasthop: {said}"));
        std::process::exit(COULD_NOT_RUN.into())
    });
    if matches!(arguments.command, Command::Agent(_))
        && let Ok(log) = LogWriter::to_stderr()
    {
        let _ = LOG.set(log);
    }
    match LOG.get() {
        Some(log) => log_to(|| log.clone()),
        None => log_to(|| StandardError),
    }
    lasthop_scenario::make_own_laws_with(laws::own_law);
    let outcome = match arguments.command {
        Command::Run(arguments) => runs::run(&arguments),
        Command::Compare(arguments) => runs::compare(&arguments),
        Command::Exec(arguments) => exec::run(&arguments),
        Command::ExecInside(arguments) => exec::inside(&arguments),
        Command::Study(arguments) => study::study(&arguments),
        Command::Kernels(arguments) => kernels::run(&arguments),
        Command::GuestInit { .. } => lasthop_guest::init(),
        Command::Export(arguments) => export::run(&arguments),
        Command::Scenarios(arguments) => built_in::run(&arguments),
        Command::Agent(arguments) => agent::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Trial(arguments) => trial::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
        Command::View(arguments) => view::run(&arguments),
        Command::Key(arguments) => key::run(&arguments),
        Command::Relay(arguments) => relay::run(&arguments),
        Command::Medium(arguments) => medium::run(&arguments),
        Command::Laws(arguments) => laws::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Completions(arguments) => generate::completions(&arguments),
        Command::Man(arguments) => generate::man(&arguments),
    };
    let code = outcome.unwrap_or_else(|error| {
        tell(format_args!("lasthop: {error:#}"));
        let interrupted = error.chain().any(|cause| cause.is::<Interrupted>());
        ExitCode::from(if interrupted { INTERRUPTED } else { COULD_NOT_RUN })
    });
    if let Some(log) = LOG.get() {
        log.finish();
    }
    code
}

/// Standard error for log lines. Errors of writing are ignored: there is no one to report them to.
struct StandardError;

impl io::Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Logs at level `info`, or as RUST_LOG sets it; in colours on a terminal only.
fn log_to<W: io::Write + 'static>(writer: impl Fn() -> W + Send + Sync + 'static) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(colours).with_target(false).init();
}

/// Writes text to standard output. A closed pipe (`| head`) is no error.
pub(crate) fn say(text: &str) -> anyhow::Result<()> {
    use anyhow::Context as _;
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    match write!(std::io::stdout(), "{text}{newline}").and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.context("cannot write to standard output"),
    }
}

/// Writes a line to standard error. Errors are ignored, so that a run goes on without a reader.
pub(crate) fn tell(line: std::fmt::Arguments<'_>) {
    let text = format!("{line}\n");
    let _ = match LOG.get() {
        Some(log) => log.clone().write_all(text.as_bytes()),
        None => io::stderr().write_all(text.as_bytes()),
    };
}

/// A flag that the first SIGINT, SIGTERM or SIGHUP sets. A further SIGINT or SIGTERM ends the process at once, but not
/// within [`GRACE`]. SIGHUP comes twice when a terminal closes, from its shell and from the kernel. It is ignored under
/// nohup(1).
pub(crate) fn stop_on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    listen_to_signals(&stop, &stop)?;
    Ok(stop)
}

/// The same, but SIGHUP sets `hangup`.
pub(crate) fn stop_on_signals_but_hangup(hangup: &Arc<AtomicBool>) -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    listen_to_signals(&stop, hangup)?;
    Ok(stop)
}

fn listen_to_signals(stop: &Arc<AtomicBool>, hangup: &Arc<AtomicBool>) -> anyhow::Result<()> {
    use anyhow::Context as _;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::flag;
    use signal_hook::iterator::Signals;

    let listen = || {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(stop))?;
        }
        if !is_ignored(SIGHUP) {
            flag::register(SIGHUP, Arc::clone(hangup))?;
        }
        let end_if_impatient = move || {
            let _ = keep_only(CapabilitySet::empty());
            let mut first = None;
            for signal in signals.forever() {
                if first.get_or_insert_with(Instant::now).elapsed() >= GRACE {
                    let _undisturbed = UNDISTURBED.lock();
                    signal_hook::low_level::exit(128 + signal);
                }
            }
        };
        std::thread::Builder::new().name("lasthop-signals".to_owned()).spawn(end_if_impatient)
    };
    listen().map(drop).context("cannot listen to signals")
}

/// A second signal that comes sooner after the first one asks for no more. timeout(1) sends two, to its child and to the
/// process group, and an agent that ended at the second would not give connections back.
const GRACE: Duration = Duration::from_secs(1);

/// Held while no signal may end the process.
pub(crate) static UNDISTURBED: Mutex<()> = Mutex::new(());

/// Whether this process was started with the signal ignored (proc_pid_status(5), SigIgn: a bit for each signal, from
/// 1).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
