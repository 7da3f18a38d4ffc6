//! `lasthop schema`.

use anyhow::Result;
use clap::{Args, ValueEnum};
use lasthop_agent::Config;
use lasthop_keys::Keys as _;
use lasthop_policy::schema as policy;
use lasthop_scenario::Scenario;
use lasthop_study::Study;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct SchemaArguments {
    /// Of which file, or of which lines
    #[arg(value_enum, default_value = "scenario")]
    of: File,
}

#[derive(Clone, Copy, ValueEnum)]
enum File {
    /// A scenario: what `lasthop run` runs
    Scenario,
    /// A study: what `lasthop study` runs
    Study,
    /// The configuration of the agent: /etc/lasthop/agent.toml
    Agent,
    /// The lines that the program of an external policy reads
    Observation,
    /// The lines that it writes
    Decision,
}

/// `lasthop schema`: every key or field with its kind, range, default and meaning, as JSON Schema.
pub(crate) fn run(arguments: &SchemaArguments) -> Result<ExitCode> {
    let schema = match arguments.of {
        File::Scenario => Scenario::section().json_schema("A scenario of lasthop"),
        File::Study => Study::section().json_schema("A study of lasthop"),
        File::Agent => Config::section().json_schema("The configuration of lasthop's agent"),
        File::Observation => policy::observation_schema().into(),
        File::Decision => policy::decision_schema().into(),
    };
    crate::say(&serde_json::to_string_pretty(&schema)?)?;
    Ok(ExitCode::SUCCESS)
}
