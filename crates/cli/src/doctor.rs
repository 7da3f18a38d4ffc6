//! `lasthop doctor`.

use agent::{Interface, WifiLink, describe_last_link};
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
    let (interface, link) = interface();
    let reports = match kernel::report::check() {
        Ok(()) => "servers can be told ([last_link] report = true)".to_owned(),
        Err(error) => error.to_string(),
    };
    crate::say(&format!(
        "{support}\nbest mode  {means}\nlaws       {laws}\ninterface  {interface}\nlast link  {link}; {reports}"
    ))?;
    Ok(if best == Mode::Control { ExitCode::SUCCESS } else { ExitCode::from(crate::FAILED) })
}

/// The interface that an agent without configuration would manage, and what is known of its link.
fn interface() -> (String, String) {
    let Some(interface) = Interface::find(None) else {
        let none = "none: there is no default route, so the agent has to be told (--interface)";
        return (none.to_owned(), "not known".to_owned());
    };
    let wifi = WifiLink::read(&interface);
    let link = describe_last_link(&interface, wifi.as_ref().ok().and_then(|link| link.as_ref()));
    let what = match wifi {
        Ok(Some(link)) => format!("Wi-Fi, {link}"),
        Ok(None) => {
            "not associated over Wi-Fi: peers are told apart by their gateway, or a configured group".to_owned()
        }
        Err(error) => format!("{error:#}"),
    };
    (format!("{}: {what}", interface.name), link)
}
