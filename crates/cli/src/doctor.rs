//! `lasthop doctor`.

use anyhow::Result;
use clap::Args;
use lasthop_agent::{Config, Interface, WifiLink, describe_last_link, describe_reports};
use lasthop_kernel::Mode;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct DoctorArguments {
    /// An agent's configuration, instead of /etc/lasthop/agent.toml, which is read if it exists: check it, and print
    /// what the agent would use and what servers would hear of the last link here
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read no configuration, not even /etc/lasthop/agent.toml
    #[arg(long, conflicts_with = "config")]
    no_config: bool,
    /// The interface to examine, instead of the configured one or that of the default route
    #[arg(long, value_name = "IF")]
    interface: Option<String>,
}

/// `lasthop doctor`: tries every feature that lasthop needs. Exit code 1 if the agent could not control here.
pub(crate) fn run(arguments: &DoctorArguments) -> Result<ExitCode> {
    let file = match arguments.no_config {
        true => None,
        false => Config::file(arguments.config.as_deref(), Path::new(Config::FILE))?,
    };
    let config = file.as_deref().map(|file| Config::load(Some(file), &[])).transpose()?;
    let support = lasthop_kernel::probe();
    let best = support.best_mode();
    let means = match best {
        Mode::Control => "control: windows are bounded from both sides, and pacing rates from above, under a lease",
        Mode::Clamp => "clamp: windows and pacing rates are bounded from above only",
        Mode::Observe => "observe: connections are watched, nothing is changed",
        Mode::Nothing => "nothing: the agent cannot run here",
    };
    let laws = match lasthop_kernel::laws::check() {
        Ok(()) => "can be loaded into the kernel, for any program: lasthop laws load".to_owned(),
        Err(error) => format!("{:#}", anyhow::Error::from(error)),
    };
    let Config { mode, policy, .. } = config.clone().unwrap_or_default();
    let from = match (&file, &arguments.config) {
        (None, _) => " (the defaults; --mode control has it control)".to_owned(),
        (Some(_), Some(_)) => String::new(),
        (Some(file), None) => format!(" ({})", file.display()),
    };
    let agent = format!("mode {mode}, policy {}{from}", policy.policy);
    let configured = config.as_ref().and_then(|config| config.interface.as_deref());
    let Looked { interface, link, reports } = look(arguments.interface.as_deref().or(configured), config.as_ref());
    let can_report = match lasthop_kernel::link_report::check() {
        Ok(()) => "servers can be told ([last_link] report = true)".to_owned(),
        Err(error) => format!("{:#}", anyhow::Error::from(error)),
    };
    let reports = reports.map_or(String::new(), |reports| format!("\nreports    {reports}"));
    crate::say(&format!(
        "{support}\nbest mode  {means}\nagent      {agent}\nlaws       {laws}\ninterface  {interface}\nlast link  {link}; {can_report}{reports}"
    ))?;
    Ok(if best == Mode::Control { ExitCode::SUCCESS } else { ExitCode::from(crate::FAILED) })
}

/// What an agent would find here.
struct Looked {
    /// The interface that it would manage.
    interface: String,
    /// What is known of its link.
    link: String,
    /// What servers would hear of it, with the given configuration.
    reports: Option<String>,
}

/// Examines this interface, or that of the default route.
fn look(name: Option<&str>, config: Option<&Config>) -> Looked {
    let Some(interface) = Interface::find(name) else {
        let none = match name {
            Some(name) => format!("none: there is no interface {name} in this network namespace"),
            None => "none: there is no default route, so the agent needs --interface".to_owned(),
        };
        let reports = config.map(|_| "none: there is no interface".to_owned());
        return Looked { interface: none, link: "not known".to_owned(), reports };
    };
    let wifi = WifiLink::read(&interface);
    let associated = wifi.as_ref().ok().and_then(|link| link.as_ref());
    let link = describe_last_link(&interface, associated);
    let reports = config.map(|config| describe_reports(config, &interface, associated));
    let what = match wifi {
        Ok(Some(link)) => format!("Wi-Fi, {link}"),
        Ok(None) => {
            "not associated over Wi-Fi: peers are told apart by their gateway, or a configured group".to_owned()
        }
        Err(error) => format!("{error:#}"),
    };
    Looked { interface: format!("{}: {what}", interface.name), link, reports }
}
