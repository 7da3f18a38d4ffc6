//! `lasthop medium`.

use crate::built_in::Found;
use crate::{FAILED, say, stop_on_signals, tell};
use anyhow::{Context as _, Result};
use clap::Args;
use lasthop_lab::{ChannelReport, MediumReport, check_medium};
use lasthop_scenario::Override;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct MediumArguments {
    /// The scenario whose [access] says what the air is like: a TOML file, or the name of a built-in one
    scenario: PathBuf,
    /// Change a key of the scenario, such as access.frame_error_rate=0.1; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = Override::parse)]
    overrides: Vec<Override>,
    /// Print what it counted as one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

/// `lasthop medium`: is the medium until a signal ends it.
pub(crate) fn run(arguments: &MediumArguments) -> Result<ExitCode> {
    let scenario = Found::scenario(&arguments.scenario)?.load(&arguments.overrides)?;
    let file = || arguments.scenario.display().to_string();
    let wifi = check_medium(&scenario).with_context(file)?;
    let (standard, band) = (wifi.standard, wifi.band);
    let stop = stop_on_signals()?;
    let report = lasthop_lab::medium(&scenario, &stop, |radios| {
        tell(format_args!("medium: {standard} at {band} between {radios} simulated radios, until Ctrl-C"));
        tell(format_args!(
            "medium: it looks at {}; all else of the scenario does not matter here",
            lasthop_lab::MEDIUM_KEYS
        ));
    })
    .context("cannot be the medium")?;
    if arguments.json {
        say(&serde_json::to_string_pretty(&report)?)?;
    } else {
        say(&table(&report))?;
    }
    if report.unread > 0 {
        tell(format_args!(
            "medium: {} times the kernel had no room for frames that were not read in time: they are lost, and their senders know",
            report.unread
        ));
    }
    if report.strangers > 0 {
        tell(format_args!(
            "medium: {} frames of radios that the scenario does not have reached nobody: make as many as it has access points and hosts",
            report.strangers
        ));
    }
    if report.foreign_rates > 0 {
        tell(format_args!(
            "medium: {} frames had rates or a channel that {standard} does not have: access.standard is not the one of the radios",
            report.foreign_rates
        ));
    }
    if report.late {
        tell(format_args!(
            "medium: warning: it was late, so what was measured meanwhile does not count: 1 % of what was due came {} us late or more",
            report.lateness_us.p99
        ));
        return Ok(ExitCode::from(FAILED));
    }
    Ok(ExitCode::SUCCESS)
}

fn table(report: &MediumReport) -> String {
    let mut text = format!(
        "{:>9} {:>9} {:>9} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        "MHz", "frames", "tries", "collisions", "errors", "acked", "lost", "dropped", "air busy"
    );
    for channel in &report.channels {
        let ChannelReport {
            frequency_mhz, frames, tries, collisions, errors, acknowledged, lost, dropped, air, ..
        } = channel;
        let busy = 100.0 * (air.success + air.broadcast + air.collision + air.error);
        let _ = writeln!(
            text,
            "{frequency_mhz:>9} {frames:>9} {tries:>9} {collisions:>10} {errors:>9} {acknowledged:>9} {lost:>9} {dropped:>9} {busy:>7.1} %"
        );
    }
    let _ = writeln!(
        text,
        "{} radios, {:.1} s; lateness us: p50 {}, p99 {}, max {}; messages refused by the kernel: {}",
        report.radios,
        report.duration_s,
        report.lateness_us.p50,
        report.lateness_us.p99,
        report.lateness_us.max,
        report.refused
    );
    text
}
