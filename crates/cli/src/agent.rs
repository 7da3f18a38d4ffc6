//! `lasthop agent`.

use crate::stop_on_signals;
use agent::{Config, Mode};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use control::policy::PolicyName;
use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use std::path::PathBuf;
use std::process::ExitCode;
use tracing::info;

#[derive(Args)]
pub(crate) struct AgentArguments {
    /// The configuration (packaging/agent.toml has every key with its default); flags override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The interface to the shared access network, instead of the one of the default route
    #[arg(long, value_name = "IF")]
    interface: Option<String>,
    /// What decides; if the configuration does not say either, lasthop
    #[arg(long, value_name = "P", value_parser = policy)]
    policy: Option<PolicyName>,
    /// For the policy `fixed`: the host's window in segments, shared by its busy connections
    #[arg(long, value_name = "N")]
    bound_segments: Option<u32>,
    /// For the policy `fixed`: the host's pacing rate in Mb/s of payload, shared likewise
    #[arg(long, value_name = "MBPS")]
    bound_pacing_mbps: Option<f64>,
    /// What the agent may do
    #[arg(long, value_enum)]
    mode: Option<AgentMode>,
    /// A file with the secret of the group: beacons are then signed, and others are not believed
    #[arg(long, value_name = "FILE")]
    group_key_file: Option<PathBuf>,
    /// Write what is seen and decided as JSON lines; - is standard output
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum AgentMode {
    /// Watch and record; change nothing
    Observe,
    /// Say what would be set, and why; change nothing
    Advise,
    /// Bound windows and pacing rates
    Control,
}

/// `lasthop agent`: runs until it is told to stop.
pub(crate) fn run(arguments: &AgentArguments) -> Result<ExitCode> {
    let config = config(arguments)?;
    let stop = stop_on_signals()?;
    let summary = agent::run(&config, &stop).context("the agent cannot go on")?;
    info!("stopped: {summary}");
    Ok(ExitCode::SUCCESS)
}

fn config(arguments: &AgentArguments) -> Result<Config> {
    let mut config = match &arguments.config {
        Some(path) => Config::load(path)?,
        None => Config::default(),
    };
    config.interface = arguments.interface.clone().or(config.interface);
    config.record = arguments.record.clone().or(config.record);
    config.beacon.group_key_file = arguments.group_key_file.clone().or(config.beacon.group_key_file);
    config.policy.bound_segments = arguments.bound_segments.or(config.policy.bound_segments);
    config.policy.bound_pacing_mbps = arguments.bound_pacing_mbps.or(config.policy.bound_pacing_mbps);
    config.policy.policy = arguments.policy.unwrap_or(config.policy.policy);
    config.mode = match arguments.mode {
        Some(AgentMode::Observe) => Mode::Observe,
        Some(AgentMode::Advise) => Mode::Advise,
        Some(AgentMode::Control) => Mode::Control,
        None => config.mode,
    };
    config.validate()?;
    // In a file they may wait for the policy that they are for; here they can only be meant for it.
    let of_fixed = [
        ("--bound-segments", arguments.bound_segments.is_some()),
        ("--bound-pacing-mbps", arguments.bound_pacing_mbps.is_some()),
    ];
    if let Some((flag, _)) = of_fixed.iter().find(|(_, given)| *given)
        && config.policy.policy != PolicyName::Fixed
    {
        bail!("{flag} is for --policy fixed, and the policy is \"{}\"", config.policy.policy);
    }
    Ok(config)
}

fn policy(text: &str) -> Result<PolicyName, serde::de::value::Error> {
    // Its error names what is accepted.
    PolicyName::deserialize(text.into_deserializer())
}
