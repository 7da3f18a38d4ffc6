//! `lasthop exec`: any programs on hosts of a scenario, beside its flows.

use crate::built_in::Found;
use crate::clock::{AlsoKept, ClockArguments};
use crate::live::{live_run, on_sample};
use crate::numbers::{MOST_SEED, whole};
use crate::out_folder::{Kind, OutFolder};
use crate::progress::Progress;
use crate::runs::{
    CaptureArguments, FigureArguments, claim, keep, put_capture, tell_ineffective, tell_of_changes,
    tell_of_short_warmups, tell_why_not_valid,
};
use crate::{Interrupted, build, say, stop_on_signals, tell};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use lasthop_capture::Capture;
use lasthop_guest::Heard;
use lasthop_lab::{Guest, Program, TrafficSource, User};
use lasthop_measure::OnSample;
use lasthop_scenario::{HostsKind, Override, ResultFile as _, RunResult, Scenario, Series, nearest_names};
use lasthop_units::Span;
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Uid, getgrouplist};
use signal_hook::flag;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use std::cell::Cell;
use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The number of names suggested for a misspelt one.
const MOST_MEANT: usize = 3;

#[derive(Args)]
pub(crate) struct ExecArguments {
    /// The scenario: a TOML file (docs/guide/scenario.md), or the name of a built-in one, such as ten-uploads
    scenario: PathBuf,
    /// The host on which the command runs: its name, such as laptop-2, or its number from 0
    #[arg(long, visible_alias = "on", value_name = "N|NAME", default_value = "0")]
    host: String,
    #[command(flatten)]
    clock: ClockArguments,
    /// A command line that runs at the server, before the command begins and until it has ended
    #[arg(long, value_name = "CMD")]
    server: Option<String>,
    /// Let the command reach what this machine reaches, through the access point (IPv4; needs nftables)
    #[arg(long)]
    internet: bool,
    /// Give the host's network namespace a name, for `ip netns exec NAME` and containers
    #[arg(long, value_name = "NAME", value_parser = netns)]
    netns: Option<String>,
    /// The seed of all random draws, instead of the scenario's
    #[arg(long, value_parser = whole(0..=MOST_SEED), allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Change a key of the scenario, such as hosts.0.policy=lasthop; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = Override::parse)]
    overrides: Vec<Override>,
    /// Keep the result, the series, the figures and a report.html in this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    figures: FigureArguments,
    /// Print the whole result as one JSON document on standard output; the command's output then goes to standard error
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    capture: CaptureArguments,
    /// Where the lines of several commands and those of their errors go
    #[arg(long, hide = true, num_args = 2)]
    streams: Option<Vec<PathBuf>>,
    /// The command and its arguments, after `--`; without it a shell. `--on NAME --` behind it begins one for another host
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// What stands between two commands, with the name of the second one's host in the middle.
const NEXT: [&str; 3] = ["--on", "NAME", "--"];

/// Whether these three words stand between two commands.
fn begin_the_next(three: &[impl AsRef<OsStr>]) -> bool {
    three[0].as_ref() == NEXT[0] && three[2].as_ref() == NEXT[2]
}

/// The option that names the first host, as it was typed: of the two that mean the same, clap does not tell which.
fn option_of_the_first(line: impl IntoIterator<Item = OsString>) -> &'static str {
    let is_on = |word: &OsString| word == NEXT[0] || word.to_str().is_some_and(|word| word.starts_with("--on="));
    if line.into_iter().take_while(|word| word != "--").any(|word| is_on(&word)) { NEXT[0] } else { "--host" }
}

/// Each host as typed with its command: the words between two of [`NEXT`]. `option` names the first.
fn typed_programs<'a>(option: &str, host: &'a str, words: &'a [OsString]) -> Result<Vec<(&'a str, &'a [OsString])>> {
    let (mut programs, mut host, mut rest) = (Vec::new(), host, words);
    loop {
        let next = rest.windows(NEXT.len()).position(begin_the_next);
        let command = &rest[..next.unwrap_or(rest.len())];
        if command.is_empty() && !(programs.is_empty() && next.is_none()) {
            let option = if programs.is_empty() { option } else { NEXT[0] };
            bail!("{option} {host}: there is no command behind its --");
        }
        programs.push((host, command));
        let Some(next) = next else { return Ok(programs) };
        host = rest[next + 1].to_str().context("the name of a host is not UTF-8")?;
        rest = &rest[next + NEXT.len()..];
    }
}

/// What `lasthop exec` starts in a namespace. Nobody types it.
#[derive(Args)]
pub(crate) struct InsideArguments {
    spec: RawFd,
    say: RawFd,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// `lasthop exec-inside`.
pub(crate) fn inside(arguments: &InsideArguments) -> ! {
    std::process::exit(lasthop_lab::run_inside(arguments.spec, arguments.say, &arguments.command))
}

/// `lasthop exec`. The exit code is the command's; of several that of the first that has failed.
pub(crate) fn run(arguments: &ExecArguments) -> Result<ExitCode> {
    let seed = arguments.seed.map(Override::seed);
    let overrides: Vec<Override> = arguments.overrides.iter().cloned().chain(seed).collect();
    // Kept to the end: what a built-in scenario has beside it goes with it.
    let found = Found::scenario(&arguments.scenario)?;
    let scenario = found.load(&overrides)?;
    let names = scenario.host_names();
    let first = option_of_the_first(env::args_os());
    let typed = typed_programs(first, &arguments.host, &arguments.command)?;
    let option = |number: usize| if number == 0 { first } else { NEXT[0] };
    let programs = typed
        .into_iter()
        .enumerate()
        .map(|(number, (typed, command))| Ok((host(option(number), typed, &names)?, command)));
    let programs = programs.collect::<Result<Vec<_>>>()?;
    // The flows take their warm-up first: a mistake is to cost less.
    for (host, words) in &programs {
        if let Some(program) = words.first().filter(|program| !is_there(program)) {
            bail!("cannot run {} on {}: there is no such program", program.display(), names[usize::from(*host)]);
        }
    }
    if programs.len() > 1 && arguments.netns.is_some() {
        bail!("--netns: names the namespace of one host; accepted: one command");
    }
    arguments.clock.check(HostsKind::Kernel)?;
    arguments.clock.check_last_hop_is_the_models("exec")?;
    if arguments.clock.is_virtual() {
        return in_guest(arguments, &scenario, &programs);
    }
    lasthop_lab::check(&scenario, TrafficSource::Own)?;
    tell_of_changes(&scenario);
    tell_ineffective(&lasthop_scenario::ineffective_keys([&scenario]));
    tell_of_short_warmups([&scenario]);
    let user = caller()?;
    let commands: Vec<_> = programs.iter().map(|(host, words)| (*host, command(words, user.as_ref()))).collect();
    let programs: Vec<_> = commands.iter().map(|(host, command)| Program { host: *host, command }).collect();
    let streams = match arguments.streams.as_deref() {
        Some([out, errors]) => Some([&**out, &**errors]),
        _ => None,
    };
    let formats = arguments.figures.formats();
    let out = claim(arguments.out.as_deref(), Kind::Run, || lasthop_report::run_files(&formats))?;
    let signals = Signals::listen()?;
    let guest = Guest {
        programs: &programs,
        names: &names,
        streams,
        server: arguments.server.as_deref(),
        user: user.as_ref(),
        output_to_stderr: arguments.json,
        internet: arguments.internet,
        netns: arguments.netns.as_deref(),
        signals: &[
            (Signal::SIGTERM, &signals.term),
            (Signal::SIGHUP, &signals.hangup),
            (Signal::SIGINT, &signals.interrupt),
            (Signal::SIGQUIT, &signals.quit),
        ],
    };
    let capture = arguments.capture.begin(&scenario)?;
    let live = out.as_ref().and_then(|out| out.live(1));
    let live_run = live_run(live.as_ref(), &scenario.name, &scenario, HostsKind::Kernel, false);
    let on_sample = on_sample(live_run.as_ref());
    let outcome = executed(
        &scenario,
        &guest,
        &signals.stop,
        on_sample.as_deref(),
        capture.as_ref().map(|captured| &captured.capture),
    )?;
    let captured = capture.map_or(Ok(false), |captured| captured.finish(outcome.is_some()));
    let nothing = || Interrupted("the command was not run, and nothing is left behind".to_owned());
    let outcome = outcome.ok_or_else(nothing)?;
    let (result, series) = (outcome.result, outcome.series);
    hand_out(arguments, out, (&result, &series), captured.map(drop))?;
    if let Some(status) = outcome.ended.server {
        tell(format_args!("note: the server ended before the command ({status})"));
    }
    let codes = programs.iter().zip(&outcome.ended.codes);
    for (Program { host, command }, code) in codes.filter(|(_, code)| programs.len() > 1 && **code != 0) {
        let (name, program) = (&names[usize::from(*host)], command[0].display());
        tell(format_args!("note: {program} on {name} ended with {code}"));
    }
    let code = outcome.ended.codes.iter().copied().find(|code| *code != 0).unwrap_or(0);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// Whether a program of that name, or at that path, may be run.
fn is_there(program: &OsStr) -> bool {
    if program.as_encoded_bytes().contains(&b'/') {
        return Path::new(program).exists();
    }
    env::var_os("PATH").is_none_or(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

/// Keeps the result and shows it; `captured` is how the capture ended.
fn hand_out(
    arguments: &ExecArguments,
    out: Option<OutFolder>,
    (result, series): (&RunResult, &Series),
    captured: Result<()>,
) -> Result<()> {
    let formats = arguments.figures.formats();
    let kept = keep(out, |folder| lasthop_report::write_run(folder, result, series, &formats));
    if arguments.json {
        say(&result.to_json())?;
    } else {
        tell(format_args!("{}", lasthop_report::tables::run(result)));
    }
    kept?;
    captured?;
    tell_why_not_valid([result]);
    Ok(())
}

/// In an emulated machine, which has this one's files.
fn in_guest(arguments: &ExecArguments, scenario: &Scenario, programs: &[(u16, &[OsString])]) -> Result<ExitCode> {
    arguments.clock.check_scenario(scenario, TrafficSource::Own)?;
    let refused = [(arguments.internet, "--internet"), (arguments.netns.is_some(), "--netns")];
    if let Some((_, option)) = refused.iter().find(|(given, _)| *given) {
        bail!("{option}: an emulated machine has no network but the scenario's; --clock real has this machine's");
    }
    let text = |word: &OsString| word.to_str().map(str::to_owned).context("a word of the command is not UTF-8");
    let command = arguments.command.iter().map(text).collect::<Result<Vec<_>>>()?;
    if command.is_empty() {
        bail!("an emulated machine has no terminal for a shell: give a command after --");
    }
    arguments.clock.check_files()?;
    let mut options = vec![format!("--host={}", programs[0].0)];
    options.extend(arguments.server.iter().map(|server| format!("--server={server}")));
    tell_of_changes(scenario);
    tell_ineffective(&lasthop_scenario::ineffective_keys([scenario]));
    tell_of_short_warmups([scenario]);
    let formats = arguments.figures.formats();
    let out = claim(arguments.out.as_deref(), Kind::Run, || lasthop_report::run_files(&formats))?;
    let stop = stop_on_signals()?;
    let capture = arguments.capture.begin_file()?;
    let nothing = || Interrupted("nothing was kept, and nothing is left behind".to_owned());
    let emulated = arguments.clock.machine(&stop)?.context("--clock virtual has a machine")?;
    let progress = Progress::of_run(&scenario.name, scenario.warmup, "of virtual time");
    // A closed pipe is no error of the run.
    let wrote = |heard: Heard<'_>| {
        progress.finish();
        let _ = match heard {
            Heard::Output(bytes) if !arguments.json => write_all(&mut std::io::stdout(), bytes),
            Heard::Output(bytes) | Heard::Errors(bytes) => write_all(&mut std::io::stderr(), bytes),
            Heard::Line(_) => Ok(()),
        };
    };
    let lost = Cell::new(None);
    let pcap = capture.as_ref().map(|whole| (whole, arguments.capture.snaplen));
    let kept = AlsoKept { pcap, records: None, lost: Some(&lost) };
    let at = |at: Span| progress.at(at.min(scenario.warmup));
    let outcome = emulated.exec(scenario, (options, command), &stop, &at, &wrote, kept)?;
    progress.finish();
    let (result, series, code) = outcome.ok_or_else(nothing)?;
    let captured = capture.map_or(Ok(()), put_capture);
    hand_out(arguments, out, (&result, &series), captured)?;
    lost.take().map_or(Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))), Err)
}

fn write_all(to: &mut dyn std::io::Write, bytes: &[u8]) -> std::io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

fn executed(
    scenario: &Scenario,
    guest: &Guest<'_>,
    stop: &AtomicBool,
    on_sample: Option<&OnSample<'_>>,
    capture: Option<&Mutex<Capture>>,
) -> Result<Option<lasthop_lab::Executed>> {
    // The bar ends where the command begins: the terminal is the command's.
    let progress = Progress::of_run(&scenario.name, scenario.warmup, "in real time");
    let at = |at| {
        if at < scenario.warmup {
            progress.at(at);
        } else {
            progress.finish();
        }
    };
    let options = lasthop_lab::Options {
        traffic: TrafficSource::Own,
        build: build(),
        stop,
        progress: &at,
        on_sample,
        capture,
        records: None,
        radios: false,
        linux_queue: false,
    };
    let outcome = lasthop_lab::exec(scenario, &options, guest);
    progress.finish();
    Ok(outcome?)
}

/// A name that a network namespace can have.
fn netns(typed: &str) -> Result<String, &'static str> {
    lasthop_lab::check_netns(typed).map(|()| typed.to_owned())
}

/// What is wrong with a command line of `exec` whose command stands without `--`; `None`: something else is wrong.
pub(crate) fn without_dashes(error: &clap::Error, words: &[String]) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_it = error.kind() == ErrorKind::UnknownArgument && words.get(1).is_some_and(|word| word == "exec");
    // The first word after `exec` is the scenario, unless options come before it.
    let at = words.iter().skip(3).position(|other| other == word)? + 3;
    if !is_it || word.starts_with('-') || words.iter().any(|word| word == "--") {
        return None;
    }
    let quoted = |word: &String| match word
        .chars()
        .all(|letter| letter.is_ascii_alphanumeric() || "-_=./:,@%+".contains(letter))
    {
        true if !word.is_empty() => word.clone(),
        _ => format!("'{}'", word.replace('\'', r"'\''")),
    };
    let [before, command] =
        [&words[1..at], &words[at..]].map(|part| part.iter().map(quoted).collect::<Vec<_>>().join(" "));
    Some(format!("`--` is missing before the command: lasthop {before} -- {command}"))
}

/// The index of the host with this name, or number.
fn host(option: &str, typed: &str, names: &[String]) -> Result<u16> {
    let by_name = || names.iter().position(|name| name == typed);
    let by_number = || typed.parse::<usize>().ok().filter(|&number| number < names.len());
    if let Some(index) = by_name().or_else(by_number) {
        return Ok(u16::try_from(index)?);
    }
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let near = nearest_names(typed, &known, MOST_MEANT);
    let meant = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
    let accepted = match names {
        [] => "none: the scenario has no hosts".to_owned(),
        [one] => format!("{one}, or 0"),
        few if few.len() <= 12 => format!("{}, or 0 to {}", names.join(", "), names.len() - 1),
        [first, .., last] => format!("{first} to {last}, or 0 to {}", names.len() - 1),
    };
    bail!("{option} {typed}: there is no such host{meant}; accepted: {accepted}")
}

/// The user who called sudo; `None`: nobody did.
fn caller() -> Result<Option<User>> {
    let number = |key: &str| env::var(key).ok().and_then(|text| text.parse::<u32>().ok());
    let Some(uid) = number("SUDO_UID").filter(|_| Uid::effective().is_root()) else { return Ok(None) };
    let cannot = || format!("cannot look up the user {uid} (SUDO_UID)");
    let user = nix::unistd::User::from_uid(Uid::from_raw(uid)).with_context(cannot)?.with_context(cannot)?;
    let gid = number("SUDO_GID").map_or(user.gid, Gid::from_raw);
    let groups = getgrouplist(&CString::new(user.name.as_str())?, gid).with_context(cannot)?;
    Ok(Some(User {
        uid,
        gid: gid.as_raw(),
        groups: groups.into_iter().map(Gid::as_raw).collect(),
        name: user.name,
        home: user.dir.display().to_string(),
        shell: user.shell.display().to_string(),
    }))
}

/// The command that was typed, or else a shell.
fn command(typed: &[OsString], user: Option<&User>) -> Vec<OsString> {
    if !typed.is_empty() {
        return typed.to_vec();
    }
    let shell = user.map(|user| OsString::from(&user.shell)).or_else(|| env::var_os("SHELL"));
    vec![shell.filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into())]
}

/// Signals of this process. Ctrl-C is the command's, as in a shell: the terminal sends it to both. Before the command has
/// begun, it ends the run.
struct Signals {
    stop: Arc<AtomicBool>,
    term: Arc<AtomicBool>,
    hangup: Arc<AtomicBool>,
    /// SIGINT and SIGQUIT of another process.
    interrupt: Arc<AtomicBool>,
    quit: Arc<AtomicBool>,
}

impl Signals {
    fn listen() -> Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
        let signals = Self {
            stop: Arc::default(),
            term: Arc::default(),
            hangup: Arc::default(),
            interrupt: Arc::default(),
            quit: Arc::default(),
        };
        let listen = || {
            for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] {
                flag::register(signal, Arc::clone(&signals.stop))?;
            }
            flag::register(SIGTERM, Arc::clone(&signals.term))?;
            flag::register(SIGHUP, Arc::clone(&signals.hangup))?;
            let (interrupt, quit) = (Arc::clone(&signals.interrupt), Arc::clone(&signals.quit));
            let mut origins = SignalsInfo::<WithOrigin>::new([SIGINT, SIGQUIT])?;
            std::thread::spawn(move || {
                // The terminal is no process.
                for origin in origins.forever().filter(|origin| origin.process.is_some()) {
                    if origin.signal == SIGINT { &interrupt } else { &quit }.store(true, Ordering::Relaxed);
                }
            });
            std::io::Result::Ok(())
        };
        listen().context("cannot listen to signals")?;
        Ok(signals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[test]
    fn each_command_has_the_host_before_it_and_the_words_up_to_the_next_one() {
        let words = |text: &str| text.split_whitespace().map(OsString::from).collect::<Vec<_>>();
        let typed = words("iperf3 -c server --on laptop-2 -- sh -c x --on y");
        let programs = typed_programs("--host", "0", &typed).expect("two");
        assert_eq!(programs, [("0", &typed[..3]), ("laptop-2", &typed[6..])]);
        assert_eq!(typed_programs("--host", "0", &[]).expect("a shell"), [("0", &[][..])]);
        for (wrong, host) in [
            ("--on a -- true", "--host first: "),
            ("true --on a --", "--on a: "),
            ("true --on a -- --on b -- true", "--on a: "),
        ] {
            let error = typed_programs("--host", "first", &words(wrong)).expect_err(wrong).to_string();
            assert_eq!(error, format!("{host}there is no command behind its --"), "{wrong}");
        }
        let parsed = crate::Arguments::try_parse_from([
            "lasthop", "exec", "guest", "--on", "a", "--seed", "2", "--", "x", "--on", "b", "--", "y", "--seed",
        ]);
        let crate::Command::Exec(arguments) = parsed.expect("a line").command else { panic!("exec") };
        assert_eq!((arguments.host.as_str(), arguments.seed, arguments.command.len()), ("a", Some(2), 6));
    }

    #[test]
    fn the_option_of_the_first_host_is_named_as_it_was_typed() {
        for (line, option) in [
            ("lasthop exec guest --on nope -- true", "--on"),
            ("lasthop exec --on=nope guest", "--on"),
            ("lasthop exec guest --host nope -- true --on b -- true", "--host"),
            ("lasthop exec guest", "--host"),
        ] {
            assert_eq!(option_of_the_first(line.split_whitespace().map(OsString::from)), option, "{line}");
        }
    }

    #[test]
    fn a_host_is_found_by_name_or_number() {
        let names = ["laptop-1", "laptop-2", "camera"].map(str::to_owned);
        assert_eq!(host("--on", "laptop-2", &names).expect("a name"), 1);
        assert_eq!(host("--on", "2", &names).expect("a number"), 2);
        for typed in ["3", "laptop-3", "-1"] {
            let error = host("--on", typed, &names).expect_err("there is none").to_string();
            assert!(
                error.contains("--on") && error.contains("accepted: laptop-1, laptop-2, camera, or 0 to 2"),
                "{error}"
            );
        }
        assert!(host("--on", "camra", &names).expect_err("misspelt").to_string().contains("did you mean camera?"));
    }

    #[test]
    fn a_command_without_dashes_is_told_with_the_line_that_is_meant() {
        let said = |line: &[&str]| {
            let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
            let error = crate::Arguments::try_parse_from(&words).err().expect("refused");
            without_dashes(&error, &words)
        };
        assert_eq!(
            said(&["lasthop", "exec", "guest", "--host", "2", "ping", "-c", "3", "a b"]).expect("told"),
            "`--` is missing before the command: lasthop exec guest --host 2 -- ping -c 3 'a b'"
        );
        for other in [&["lasthop", "exec", "guest", "--hots", "2"][..], &["lasthop", "run", "guest", "ping"]] {
            assert_eq!(said(other), None, "{other:?}");
        }
    }

    #[test]
    fn the_name_of_a_namespace_is_refused_by_the_command_line() {
        for name in ["", ".a", "a/b"] {
            let error = crate::Arguments::try_parse_from(["lasthop", "exec", "guest", "--netns", name]).err();
            let error = error.expect("refused").to_string();
            assert!(error.contains("accepted: the name of a file"), "{error}");
        }
    }

    #[test]
    fn without_a_command_there_is_a_shell() {
        let user = User {
            uid: 1,
            gid: 1,
            groups: vec![1],
            name: "a".to_owned(),
            home: "/".to_owned(),
            shell: "/bin/fish".to_owned(),
        };
        assert_eq!(command(&[], Some(&user)), ["/bin/fish"]);
        assert_eq!(command(&["true".into()], Some(&user)), ["true"]);
    }
}
