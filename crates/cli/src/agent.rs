//! `lasthop agent`.

use crate::numbers::whole;
use crate::{stop_on_signals, stop_on_signals_but_hangup};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use lasthop_agent::{Config, Mode, Notify, Orders, Reload};
use lasthop_scenario::Override;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tracing::info;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AgentArguments {
    #[command(subcommand)]
    command: Option<AgentCommand>,
    /// The configuration, instead of /etc/lasthop/agent.toml, which is read if it exists; flags override it.
    /// packaging/agent.toml has every key with its default
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read no configuration, not even /etc/lasthop/agent.toml
    #[arg(long, conflicts_with = "config")]
    no_config: bool,
    /// Open no socket for `lasthop agent status`
    #[arg(long)]
    no_status: bool,
    /// The interface to the shared access network, instead of the one of the default route
    #[arg(long, value_name = "IF")]
    interface: Option<String>,
    /// The policy; lasthop, unless the configuration has another
    #[arg(long, value_name = "P")]
    policy: Option<String>,
    /// For the policy `fixed`: the host's window in segments, split over its busy connections
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=1_000_000), allow_negative_numbers = true)]
    bound_segments: Option<u32>,
    /// For the policy `fixed`: the windows that the host advertises, in full segments, split over what receives
    #[arg(long, value_name = "N", value_parser = whole::<u32>(2..=1_000_000), allow_negative_numbers = true)]
    bound_receive_segments: Option<u32>,
    /// For the policy `fixed`: the host's pacing rate in Mb/s of payload, split likewise
    #[arg(long, value_name = "MBPS", value_parser = mbps, allow_negative_numbers = true)]
    bound_pacing_mbps: Option<f64>,
    /// What the agent may do; advise, unless the configuration has another mode
    #[arg(long, value_enum)]
    mode: Option<AgentMode>,
    /// A file with the group key: beacons are then signed, and others are rejected
    #[arg(long, value_name = "FILE")]
    group_key_file: Option<String>,
    /// Write all observations and decisions as JSON lines to this file; - is standard output
    #[arg(long, value_name = "FILE")]
    record: Option<String>,
}

#[derive(Subcommand)]
enum AgentCommand {
    /// Print the state of this machine's agents: mode, peers, control, rate, gain, round trips, what escapes
    Status {
        /// One line of JSON for each agent
        #[arg(long)]
        json: bool,
        /// Only the agent of this interface
        #[arg(long, value_name = "IF")]
        interface: Option<String>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum AgentMode {
    /// Observe and record; change nothing, send nothing
    Observe,
    /// Print the limits that would be set, and why; change nothing
    Advise,
    /// Bound windows and pacing rates
    Control,
}

/// `lasthop agent`: runs until it is stopped.
pub(crate) fn run(arguments: &AgentArguments) -> Result<ExitCode> {
    if let Some(AgentCommand::Status { json, interface }) = &arguments.command {
        return status(Path::new(lasthop_status::FOLDER), *json, interface.as_deref());
    }
    let file = configured_file(arguments)?;
    let config = config(arguments, file.as_deref())?;
    let notify = Notify::from_environment();
    let hangup = Arc::new(AtomicBool::new(false));
    let reloads = notify.is_heard() || file.is_some() && !has_terminal();
    let stop = if reloads { stop_on_signals_but_hangup(&hangup)? } else { stop_on_signals()? };
    say_what_was_read(arguments, file.as_deref(), &config);
    let read = || -> Result<Config, Box<dyn std::error::Error + Send + Sync>> {
        let file = configured_file(arguments)?.ok_or("there is no file to read")?;
        Ok(self::config(arguments, Some(&file))?)
    };
    let orders = Orders {
        stop: &stop,
        reload: Some(Reload { asked: &hangup, read: &read }),
        status: (!arguments.no_status).then_some(Path::new(lasthop_status::FOLDER)),
        notify,
        least_privilege: true,
    };
    let summary = lasthop_agent::run_with(&config, &orders).context("the agent has to stop")?;
    info!("stopped: {summary}");
    Ok(ExitCode::SUCCESS)
}

fn configured_file(arguments: &AgentArguments) -> Result<Option<PathBuf>> {
    if arguments.no_config {
        return Ok(None);
    }
    Ok(Config::file(arguments.config.as_deref(), Path::new(Config::FILE))?)
}

/// Logs which file was read, and how to make an agent control that only advises.
fn say_what_was_read(arguments: &AgentArguments, file: Option<&Path>, config: &Config) {
    match file {
        Some(file) => {
            info!("the configuration is {}", file.display());
            for drop_in in Config::drop_ins(file).unwrap_or_default() {
                info!("changed by {}", drop_in.display());
            }
        }
        None if arguments.no_config => info!("no configuration is read (--no-config): these are the defaults"),
        None => info!("no configuration: {} does not exist; these are the defaults", Config::FILE),
    }
    if arguments.mode.is_none() && config.mode == Mode::Advise {
        let file = file.unwrap_or(Path::new(Config::FILE)).display();
        info!(
            "this agent advises and changes nothing; to have it control: --mode control, or mode = \"control\" in {file}"
        );
    }
}

/// Whether this process has a controlling terminal (tty(4)), which sends SIGHUP when it closes. A daemon has none.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

/// `lasthop agent status`. Exit code 1 if no agent answers.
fn status(folder: &Path, json: bool, interface: Option<&str>) -> Result<ExitCode> {
    let mut outcome = ExitCode::from(crate::FAILED);
    let is_asked = |name: &str| interface.is_none_or(|interface| interface == name);
    let mut agents = lasthop_status::ask_agents(folder)?;
    agents.retain(|status| status.as_ref().is_ok_and(|status| is_asked(&status.interface)) || status.is_err());
    if agents.is_empty() {
        let of = interface.map_or(String::new(), |interface| format!(" of {interface}"));
        crate::tell(format_args!(
            "no agent{of} runs on this machine that can be asked (none answers on a socket in {})",
            folder.display()
        ));
    }
    for status in agents {
        match status {
            Ok(status) => {
                outcome = ExitCode::SUCCESS;
                crate::say(&if json { serde_json::to_string(&status)? } else { status.to_string() })?;
            }
            Err(error) => crate::tell(format_args!("lasthop: {:#}", anyhow::Error::from(error))),
        }
    }
    Ok(outcome)
}

/// Reads a rate. The key of the flag has the range.
fn mbps(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "accepted: a number of Mb/s".to_owned())
}

/// The configuration: the file, if there is one, overridden by the flags.
fn config(arguments: &AgentArguments, file: Option<&Path>) -> Result<Config> {
    let text = |flag, key, value: &Option<String>| Some(Override::of_flag(flag, key, value.as_deref()?));
    let mode = arguments.mode.and_then(|mode| mode.to_possible_value());
    let flags = [
        text("--interface", "interface", &arguments.interface),
        text("--record", "record", &arguments.record),
        text("--group-key-file", "beacon.group_key_file", &arguments.group_key_file),
        text("--policy", "policy.policy", &arguments.policy),
        arguments.bound_segments.map(|number| Override::of_flag("--bound-segments", "policy.bound_segments", number)),
        arguments
            .bound_receive_segments
            .map(|number| Override::of_flag("--bound-receive-segments", "policy.bound_receive_segments", number)),
        arguments
            .bound_pacing_mbps
            .map(|mbps| Override::of_flag("--bound-pacing-mbps", "policy.bound_pacing_mbps", mbps)),
        mode.map(|mode| Override::of_flag("--mode", "mode", mode.get_name())),
    ];
    let config = Config::load(file, &flags.into_iter().flatten().collect::<Vec<_>>())?;
    // In a file they may wait for the policy that they are for; here they can only be meant for it.
    let of_fixed = [
        ("--bound-segments", arguments.bound_segments.is_some()),
        ("--bound-receive-segments", arguments.bound_receive_segments.is_some()),
        ("--bound-pacing-mbps", arguments.bound_pacing_mbps.is_some()),
    ];
    if let Some((flag, _)) = of_fixed.iter().find(|(_, given)| *given)
        && !config.policy.policy.looks_at("bound_segments")
    {
        bail!("{flag} is for --policy fixed, and the policy is \"{}\"", config.policy.policy);
    }
    Ok(config)
}
