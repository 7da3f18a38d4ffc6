//! `lasthop doctor`.

use anyhow::Result;
use clap::Args;
use kernel::Mode;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct DoctorArguments {}

/// `lasthop doctor`: tries every feature that lasthop needs. Exit code 1 if the agent could not control here.
pub(crate) fn run(_: &DoctorArguments) -> Result<ExitCode> {
    let support = kernel::probe();
    let best = support.best_mode();
    let means = match best {
        Mode::Control => "control: windows are bounded from both sides, under a lease",
        Mode::Clamp => "clamp: windows are bounded from above only",
        Mode::Observe => "observe: connections are watched, nothing is changed",
        Mode::Nothing => "nothing: the agent cannot run here",
    };
    let laws = match kernel::laws::check() {
        Ok(()) => "can be loaded into the kernel, for any program: lasthop laws load".to_owned(),
        Err(error) => error.to_string(),
    };
    crate::say(&format!("{support}\nbest mode  {means}\nlaws       {laws}"))?;
    Ok(if best == Mode::Control { ExitCode::SUCCESS } else { ExitCode::from(crate::FAILED) })
}
