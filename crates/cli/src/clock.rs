//! The clock of kernel hosts: this machine's, or that of an emulated machine.

use crate::runs::cannot_write_capture;
use crate::{Interrupted, tell};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use lasthop_files::Whole;
use lasthop_guest::{Caller, DEFAULT_KERNEL, Heard, Job, Kernel, Kernels, MEMORY_MIB, Machine, Program};
use lasthop_lab::TrafficSource;
use lasthop_laws::LawName;
use lasthop_scenario::{HostsKind, RunResult, Scenario, Series};
use lasthop_study::{fitting, parallel};
use lasthop_units::Span;
use std::cell::Cell;
use std::fs::{self, File};
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

#[derive(Args, Clone, Default)]
pub(crate) struct ClockArguments {
    /// The clock of kernel hosts: `real`: this machine's own, as root; `virtual`: that of an emulated machine, which
    /// counts instructions, for any user
    #[arg(long, value_enum, default_value = "real")]
    clock: Clock,
    /// The kernel of `--clock virtual`, of those that `lasthop kernels list` shows; without it debian-6.12, and on arm64
    /// debian-6.12-arm64; `compare` takes several: A,B
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// The Wi-Fi of kernel hosts: `model`: the network model's; `mac80211`: Linux's own, with hostapd, wpa_supplicant and simulated
    /// radios in the machine of `--clock virtual`, over the model's medium
    #[arg(long, value_enum, default_value = "model")]
    wifi: WifiChoice,
    /// The downlink queue of a wired access point before kernel hosts: `model`: the network model's; `linux`: the kernel's own
    /// discipline of the same name (pfifo for fifo), at the access point's rate
    #[arg(long, value_enum, default_value = "model")]
    queue: QueueChoice,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum QueueChoice {
    #[default]
    Model,
    Linux,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum WifiChoice {
    #[default]
    Model,
    Mac80211,
    /// In that machine.
    #[value(name = "mac80211-here", hide = true)]
    Here,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Clock {
    #[default]
    Real,
    Virtual,
}

/// Files that a run leaves beside its result.
#[derive(Clone, Copy, Default)]
pub(crate) struct AlsoKept<'a> {
    /// The file that gets all packets, and the most bytes of each.
    pub(crate) pcap: Option<(&'a Whole, u32)>,
    /// The agents' records.
    pub(crate) records: Option<&'a Path>,
    /// Gets why one of these could not be kept: the result is kept all the same.
    pub(crate) lost: Option<&'a Cell<Option<anyhow::Error>>>,
}

impl ClockArguments {
    /// Whether the hosts are in an emulated machine.
    pub(crate) fn is_virtual(&self) -> bool {
        self.clock == Clock::Virtual
    }

    /// Whether hosts have the radios of the machine that this is.
    pub(crate) fn has_radios(&self) -> bool {
        self.wifi == WifiChoice::Here
    }

    /// Whether the downlink queue is the kernel's own.
    pub(crate) fn has_linux_queue(&self) -> bool {
        self.queue == QueueChoice::Linux
    }

    /// How time passes, in words.
    pub(crate) fn how(&self, hosts: HostsKind) -> &'static str {
        match hosts {
            HostsKind::Kernel if !self.is_virtual() => "in real time",
            HostsKind::Simulated | HostsKind::Kernel => "of virtual time",
        }
    }

    /// The number of simultaneous runs: one in real time; without a wish as many as there are cores, and of emulated machines as
    /// many as there is memory for.
    pub(crate) fn jobs(&self, hosts: HostsKind, wish: Option<NonZero<usize>>) -> NonZero<usize> {
        let one = NonZero::<usize>::MIN;
        let fitting = match (hosts, self.is_virtual()) {
            (HostsKind::Kernel, false) => return one,
            (HostsKind::Kernel, true) => fitting(self.memory(hosts)),
            (HostsKind::Simulated, _) => None,
        };
        let most = fitting.map_or(NonZero::<usize>::MAX, |most| NonZero::new(most).unwrap_or(one));
        wish.unwrap_or_else(|| parallel::all_cores().min(most))
    }

    /// What each simultaneous run takes of this machine's memory beside its samples, in bytes.
    pub(crate) fn memory(&self, hosts: HostsKind) -> f64 {
        let is_guest = hosts == HostsKind::Kernel && self.is_virtual();
        if is_guest { f64::from(MEMORY_MIB) * 1024.0 * 1024.0 } else { 0.0 }
    }

    /// Whether these hosts can have this clock.
    pub(crate) fn check(&self, hosts: HostsKind) -> Result<()> {
        if self.is_virtual() && hosts == HostsKind::Simulated {
            bail!("simulated hosts have virtual time anyhow: --clock virtual is for --hosts kernel");
        }
        if self.kernel.is_some() && !self.is_virtual() {
            bail!("--clock real has this machine's own kernel: --kernel needs --clock virtual");
        }
        let kernels = self.kernels();
        if let Some((_, twice)) = kernels.iter().enumerate().find(|(at, name)| kernels[..*at].contains(name)) {
            bail!("--kernel {twice} stands there twice; accepted: each kernel once");
        }
        if self.kernel.is_some() {
            self.named().into_iter().try_for_each(|name| Kernels::in_cache()?.find(name).map(|_| ()))?;
        }
        if self.wifi == WifiChoice::Mac80211 && !(self.is_virtual() && hosts == HostsKind::Kernel) {
            bail!(
                "--wifi mac80211 is Linux's own Wi-Fi in an emulated machine: it needs --hosts kernel --clock virtual"
            );
        }
        if self.has_linux_queue() && hosts == HostsKind::Simulated {
            bail!(
                "--queue linux is a kernel's own queue: it needs --hosts kernel (accepted with simulated hosts: model)"
            );
        }
        if self.wifi == WifiChoice::Here && !lasthop_guest::is_inside() {
            bail!("--wifi mac80211-here is for the emulated machine itself (accepted: model, mac80211)");
        }
        Ok(())
    }

    /// Whether the last hop that these say can carry the scenario.
    pub(crate) fn check_last_hop(&self, scenario: &Scenario) -> Result<()> {
        if self.wifi == WifiChoice::Mac80211 {
            lasthop_lab::check_radios(scenario)?;
        }
        if self.has_linux_queue() {
            lasthop_lab::check_linux_queue(scenario)?;
        }
        Ok(())
    }

    /// Refuses what has the model's last hop alone.
    pub(crate) fn check_last_hop_is_the_models(&self, what: &str) -> Result<()> {
        if self.wifi == WifiChoice::Mac80211 {
            bail!("{what} does not go with --wifi mac80211 as yet (accepted: --wifi model)");
        }
        if self.has_linux_queue() {
            bail!("{what} does not go with --queue linux as yet (accepted: --queue model)");
        }
        Ok(())
    }

    /// Whether an emulated machine can run the scenario with kernel hosts, as far as that is known before.
    pub(crate) fn check_scenario(&self, scenario: &Scenario, traffic: TrafficSource) -> Result<()> {
        lasthop_lab::check_scenario(scenario, traffic)?;
        if needs_files(scenario, traffic) { self.check_files() } else { Ok(()) }
    }

    /// Whether there is what the emulated machines need: their kernels, as they were kept, a program for each, and its emulator.
    pub(crate) fn check_machines(&self) -> Result<()> {
        let named = if self.is_virtual() { self.named() } else { Vec::new() };
        named.into_iter().try_for_each(|name| checked(name).map(|_| ()))
    }

    /// Whether programs in the emulated machines can have this one's files.
    pub(crate) fn check_files(&self) -> Result<()> {
        let kernels = Kernels::in_cache()?;
        self.named().into_iter().try_for_each(|name| Ok(kernels.find(name)?.check_files()?))
    }

    /// The kernels of `--clock virtual`.
    fn named(&self) -> Vec<&str> {
        self.kernel.as_deref().unwrap_or(DEFAULT_KERNEL).split(',').collect()
    }

    /// The kernels that a comparison is to have, if there are several.
    pub(crate) fn kernels(&self) -> Vec<&str> {
        let kernels: Vec<&str> = self.kernel.iter().flat_map(|names| names.split(',')).collect();
        if kernels.len() > 1 { kernels } else { Vec::new() }
    }

    /// The emulated machine; `None` with this machine's clock.
    pub(crate) fn machine(&self, stop: &AtomicBool) -> Result<Option<Emulated>> {
        let of = |name| self.machine_of(checked(name)?, stop);
        self.is_virtual().then(|| of(self.kernel.as_deref().unwrap_or(DEFAULT_KERNEL))).transpose()
    }

    /// The emulated machines of a comparison, one for each kernel; with this machine's clock there is none.
    pub(crate) fn machines(&self, stop: &AtomicBool) -> Result<Vec<Emulated>> {
        match self.kernels() {
            kernels if kernels.is_empty() => Ok(self.machine(stop)?.into_iter().collect()),
            kernels => {
                // All are looked up before the first one is booted.
                let kernels = kernels.into_iter().map(checked).collect::<Result<Vec<_>>>()?;
                kernels.into_iter().map(|kernel| self.machine_of(kernel, stop)).collect()
            }
        }
    }

    fn machine_of(&self, (kernel, program): (Kernel, Program), stop: &AtomicBool) -> Result<Emulated> {
        let radios = self.wifi == WifiChoice::Mac80211;
        let beside = radios.then(|| lasthop_guest::programs(&lasthop_lab::RADIO_PROGRAMS)).transpose()?;
        let say = |said: &str| tell(format_args!("{said}"));
        let digest = kernel.digest()?;
        let machine = Machine::ready(kernel, &program, beside.as_deref(), stop, &say)?;
        let nothing = || Interrupted("nothing was kept, and nothing is left behind".to_owned());
        Ok(Emulated { machine: machine.ok_or_else(nothing)?, digest, radios, linux_queue: self.has_linux_queue() })
    }
}

/// Whether a run has programs of this machine: policies, the compiler of a law of the user's own, iperf3.
fn needs_files(scenario: &Scenario, traffic: TrafficSource) -> bool {
    let mut laws = scenario.hosts.iter().filter_map(|block| block.kind.law);
    scenario.asks_programs() || traffic == TrafficSource::Iperf3 || laws.any(|law| matches!(law.name, LawName::Own(_)))
}

/// A kernel that is as it was kept, and the program that runs under it.
fn checked(name: &str) -> Result<(Kernel, Program)> {
    let kernel = Kernels::in_cache()?.get(name)?;
    let program = Program::of(kernel.architecture, lasthop_version::VERSION)?;
    Machine::emulator(kernel.architecture)?;
    Ok((kernel, program))
}

/// Why a kernel cannot run here, in words: no program for it, no emulator, or neither. `None`: it can.
pub(crate) fn why_not(kernel: &Kernel) -> Option<String> {
    let program = Program::of(kernel.architecture, lasthop_version::VERSION).err();
    let emulator = Machine::emulator(kernel.architecture).err();
    let errors: Vec<String> = program.into_iter().chain(emulator).map(|error| error.to_string()).collect();
    (!errors.is_empty()).then(|| errors.join("; and "))
}

/// An emulated machine, ready to run.
pub(crate) struct Emulated {
    machine: Machine,
    /// Of its kernel.
    digest: String,
    /// Whether the hosts of its runs have simulated radios.
    radios: bool,
    /// Whether the downlink queue of its runs is the kernel's.
    linux_queue: bool,
}

/// A command of lasthop in the guest.
struct Command {
    /// Its words before `--out`, and those after it.
    before: Vec<String>,
    after: Vec<String>,
    /// Whose programs it runs.
    caller: Option<Caller>,
    exit: Exit,
}

/// What its exit code says.
enum Exit {
    /// 0: the run is valid; 1: it is not. Anything else: there was none.
    TellsValidity,
    /// Whatever the program that it ran says.
    IsOfTheProgram,
}

/// Where the scenario is in the guest, and what it leaves.
const SCENARIO: &str = "/scenario.toml";
const RUN: &str = "run";
const PCAP: &str = "capture.pcapng";
const RECORDS: &str = "records";

impl Emulated {
    /// Runs the scenario with kernel hosts in the emulated machine; `None` if `stop` ended it early.
    pub(crate) fn run(
        &self,
        scenario: &Scenario,
        traffic: TrafficSource,
        stop: &AtomicBool,
        progress: &dyn Fn(Span),
        kept: AlsoKept<'_>,
    ) -> Result<Option<(RunResult, Series)>> {
        let mut words = vec!["run".to_owned(), SCENARIO.to_owned(), "--hosts=kernel".to_owned()];
        if self.radios {
            words.push("--wifi=mac80211-here".to_owned());
        }
        if self.linux_queue {
            words.push("--queue=linux".to_owned());
        }
        if kept.records.is_some() {
            words.push(format!("--records=/out/{RECORDS}"));
        }
        if traffic == TrafficSource::Iperf3 {
            words.push("--traffic=iperf3".to_owned());
        }
        let caller = needs_files(scenario, traffic).then(Caller::here);
        let command = Command { before: words, after: Vec::new(), caller, exit: Exit::TellsValidity };
        let done = self.job(command, scenario, stop, progress, &|_| {}, kept)?;
        Ok(done.map(|(result, series, _)| (result, series)))
    }

    /// Runs a command on a host beside the scenario's flows, with this machine's files. `wrote` gets what it writes. Returns its exit code
    /// too.
    pub(crate) fn exec(
        &self,
        scenario: &Scenario,
        words: (Vec<String>, Vec<String>),
        stop: &AtomicBool,
        progress: &dyn Fn(Span),
        wrote: &dyn Fn(Heard<'_>),
        kept: AlsoKept<'_>,
    ) -> Result<Option<(RunResult, Series, i32)>> {
        // What commands write comes by serial ports, which are terminals: they have pipes.
        const STREAMS: [&str; 3] = ["--streams", "/dev/ttyS1", "/dev/ttyS2"];
        let (options, command) = words;
        let before = ["exec", SCENARIO].map(str::to_owned).into_iter().chain(options);
        let before = before.chain(STREAMS.map(str::to_owned)).collect();
        let after = ["--".to_owned()].into_iter().chain(command).collect();
        let command = Command { before, after, caller: Some(Caller::here()), exit: Exit::IsOfTheProgram };
        self.job(command, scenario, stop, progress, wrote, kept)
    }

    /// Does a job in the guest.
    fn job(
        &self,
        Command { before, after, caller, exit }: Command,
        scenario: &Scenario,
        stop: &AtomicBool,
        progress: &dyn Fn(Span),
        wrote: &dyn Fn(Heard<'_>),
        kept: AlsoKept<'_>,
    ) -> Result<Option<(RunResult, Series, i32)>> {
        let started = Instant::now();
        let mut words = before;
        words.push(format!("--out=/out/{RUN}"));
        if let Some((_, bytes)) = kept.pcap {
            words.extend([format!("--pcap=/out/{PCAP}"), format!("--snaplen={bytes}")]);
        }
        words.extend(after);
        let mut files = long_traces(scenario)?;
        files.insert(0, (SCENARIO.to_owned(), scenario.to_toml()));
        // One more for the access point.
        let radios = if self.radios { u16::try_from(scenario.expanded_hosts().len())? + 1 } else { 0 };
        let job = Job { arguments: words, files, seed: scenario.seed, caller, radios };
        let mut hear = |heard: Heard<'_>| {
            let Heard::Line(line) = heard else { return wrote(heard) };
            if let Some(percent) = percent_in(line) {
                progress(Span::from_micros(scenario.duration.as_micros() * percent / 100));
            } else if is_told(line) {
                tell(format_args!("{line}"));
            }
        };
        let Some(output) = self.machine.run(&job, stop, &mut hear)? else { return Ok(None) };
        let folder = output.folder();
        let has_ended_well = match exit {
            Exit::TellsValidity => matches!(output.code, 0 | 1),
            Exit::IsOfTheProgram => true,
        };
        if !has_ended_well || !folder.join(RUN).exists() {
            let left_out = self.machine.left_out.iter();
            let left_out: String =
                left_out.map(|(module, why)| format!("; it could not load {module}: {why}")).collect();
            let (before, error) = error_in(&output.said);
            // What programs have said, unless it was told at once.
            before.iter().filter(|line| !is_told(line)).for_each(|line| tell(format_args!("{line}")));
            bail!("in the emulated machine ({}{left_out}): {error}", self.machine.kernel().name);
        }
        let (mut result, series) = lasthop_report::read_run(&folder.join(RUN))?;
        // Paths as this scenario has them: in the machine it says where they lead.
        result.scenario = scenario.to_json();
        let hosts = scenario.expanded_hosts();
        for flow in &mut result.flows {
            let control = || hosts[usize::from(flow.host)].kind.congestion_control.clone();
            flow.congestion_control = flow.congestion_control.take().map(|_| control());
        }
        result.used.clock = Some(lasthop_scenario::Clock::Virtual);
        result.used.kernel = Some(self.machine.kernel().name.clone());
        result.used.kernel_digest = Some(self.digest.clone());
        result.used.emulator = Some(self.machine.emulator.clone());
        result.took(started.elapsed());
        if let (Err(error), Some(lost)) = (kept.copy(&folder), kept.lost) {
            lost.set(Some(error));
        }
        Ok(Some((result, series, output.code)))
    }
}

/// The most that a guest is handed of long traces: it reads each 4 KiB anew from the beginning.
const MOST_OF_TRACES: usize = 1 << 20;

/// The traces that the scenario does not hold itself, as files where it finds them.
fn long_traces(scenario: &Scenario) -> Result<Vec<(String, String)>> {
    let keys = scenario.to_keys();
    let blocks = keys.get("changes").and_then(|blocks| blocks.as_array()).into_iter().flatten();
    let mut paths: Vec<&str> = blocks.filter_map(|block| block.get("trace")?.as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    let (mut files, mut bytes) = (Vec::new(), 0);
    for path in paths {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read the trace {path}"))?;
        bytes += text.len();
        if bytes > MOST_OF_TRACES {
            bail!(
                "{path}: --clock virtual cannot have traces of more than 1 MiB in all; --clock real and simulated hosts can"
            );
        }
        files.push((path.to_owned(), text));
    }
    Ok(files)
}

/// The share of a run that a line of its progress tells, in percent.
fn percent_in(line: &str) -> Option<u64> {
    line.strip_suffix(" %")?.rsplit_once(": ")?.1.parse().ok()
}

/// Whether a line of the guest's is told as it comes.
fn is_told(line: &str) -> bool {
    line.contains(" WARN ") || line.contains(" ERROR ") || line.starts_with("guest: ")
}

/// The last error that lasthop has told on the guest's console, all of its lines; without one, all that was told. Before it, the last lines
/// that were said, but for those of progress and of the kernel.
fn error_in(said: &str) -> (Vec<&str>, String) {
    const BEGINNING: &str = "lasthop: ";
    const LINES_BEFORE: usize = 10;
    let at = said.rmatch_indices(BEGINNING).map(|(at, _)| at).find(|at| *at == 0 || said[..*at].ends_with('\n'));
    let error = at.map_or(said, |at| &said[at + BEGINNING.len()..]);
    let lines: Vec<&str> = error.lines().filter(|line| at.is_none() || !is_of_the_guest(line)).collect();
    let before = said[..at.unwrap_or(0)].lines();
    let before = before.filter(|line| percent_in(line).is_none() && !is_of_the_guest(line)).collect::<Vec<_>>();
    (before[before.len().saturating_sub(LINES_BEFORE)..].to_vec(), lines.join("\n").trim().to_owned())
}

/// Whether a line is of the guest's first program, or of its kernel: these begin with a time in brackets.
fn is_of_the_guest(line: &str) -> bool {
    let time = line.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(time, _)| time.trim());
    line.starts_with("guest: ") || time.is_some_and(|time| time.parse::<f64>().is_ok())
}

impl AlsoKept<'_> {
    /// Takes these out of what a guest has left.
    fn copy(&self, folder: &Path) -> Result<()> {
        if let Some((to, _)) = self.pcap {
            let copied = File::open(folder.join(PCAP)).and_then(|mut from| std::io::copy(&mut from, &mut to.file()));
            copied.with_context(|| format!("{}; the result is whole", cannot_write_capture(to.path())))?;
        }
        let Some(to) = self.records else { return Ok(()) };
        let none = "the agents have left no records; the result is whole";
        for entry in fs::read_dir(folder.join(RECORDS)).context(none)? {
            let entry = entry.context(none)?;
            let to = to.join(entry.file_name());
            let appended = File::open(entry.path()).and_then(|mut from| {
                std::io::copy(&mut from, &mut lasthop_files::append(&to, &lasthop_status::record::RECORD)?)
            });
            appended.with_context(|| format!("cannot write {}; the result is whole", to.display()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_of_a_guest_is_told_with_all_its_lines() {
        let said = "one: 10 %\nlasthop: first\nlasthop: what lasthop: is\n  the matter\nguest: cannot keep x\n\
                    [   62.104511] reboot: Power down\n";
        assert_eq!(error_in(said), (vec!["lasthop: first"], "what lasthop: is\n  the matter".to_owned()));
        assert_eq!(error_in("guest: no module\n"), (Vec::new(), "guest: no module".to_owned()));
    }
}
