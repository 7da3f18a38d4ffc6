//! `lasthop doctor`.

mod network;

use crate::clock::why_not;
use crate::numbers::whole;
use anyhow::Result;
use clap::Args;
use lasthop_agent::{
    Config, Interface, describe_default_control, describe_last_link, describe_reports, describe_rules, rts_left,
    wifi_link,
};
use lasthop_guest::{Architecture, Kernel, Kernels, Machine};
use lasthop_kernel::{Mode, Outcome, Support};
use lasthop_scenario::Override;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
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
    /// Look at the network instead: what keeps this host from its peers and from control, and whether it is worth it
    #[arg(long)]
    network: bool,
    /// Another device that runs the agent: does it answer on the link, or does the access point isolate its clients?
    #[arg(long, value_name = "ADDRESS", requires = "network")]
    peer: Option<Ipv4Addr>,
    /// Upload to `lasthop trial serve` meanwhile, to see the queue under load
    #[arg(long, value_name = "ADDRESS:PORT", requires = "network")]
    load: Option<SocketAddr>,
    /// How long to look at what passes
    #[arg(
        long,
        value_name = "N",
        requires = "network",
        default_value_t = 10,
        value_parser = whole::<u64>(1..=3600),
        allow_negative_numbers = true
    )]
    seconds: u64,
    /// Print one JSON document: docs/guide/agent.md
    #[arg(long)]
    json: bool,
}

/// What `--json` prints. `schema` is raised when a key changes its meaning or goes.
#[derive(Serialize)]
struct Findings {
    schema: u32,
    version: &'static str,
    /// `control`, `clamp`, `observe` or `nothing`.
    best_mode: &'static str,
    features: Vec<Found>,
    agent: Decides,
    /// Our congestion controls, for any program.
    laws: Possible,
    interface: Seen,
    /// RTS thresholds of radios that killed agents have left set, and how to undo that; left out where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rts_left: Vec<String>,
    last_link: LastLink,
    /// Kernel hosts in an emulated machine.
    virtual_time: Possible,
}

/// A feature of the kernel.
#[derive(Serialize)]
struct Found {
    name: &'static str,
    present: bool,
    /// What it is; where it is missing, why.
    text: String,
}

/// What decides, with the configuration that was read.
#[derive(Serialize)]
struct Decides {
    mode: String,
    policy: String,
    /// `null`: no configuration was read.
    config: Option<PathBuf>,
    drop_ins: Vec<PathBuf>,
    /// Each rule, and whether it can work here.
    rules: Vec<String>,
    /// What mode control does to connections with this host's default congestion control; `null`: nothing, or it cannot be had.
    default_control: Option<String>,
    /// Why an agent with this configuration could not start here; `null`: nothing is known to prevent it.
    problem: Option<String>,
}

#[derive(Serialize)]
struct Possible {
    possible: bool,
    text: String,
}

/// The interface that the agent would manage.
#[derive(Serialize)]
struct Seen {
    /// `null`: there is none.
    name: Option<String>,
    text: String,
}

#[derive(Serialize)]
struct LastLink {
    text: String,
    /// What servers would hear of it; `null`: no configuration was read.
    reported: Option<String>,
    can_report: Possible,
}

impl Found {
    fn all(support: &Support) -> Vec<Self> {
        let found = |(feature, outcome): (lasthop_kernel::Feature, &Outcome)| match outcome {
            Outcome::Present => Self { name: feature.name(), present: true, text: feature.description().to_owned() },
            Outcome::Missing(text) => Self { name: feature.name(), present: false, text: text.clone() },
        };
        support.features().map(found).collect()
    }
}

impl Possible {
    fn of<E: std::error::Error + Send + Sync + 'static>(outcome: Result<(), E>, text: &str) -> Self {
        match outcome {
            Ok(()) => Self { possible: true, text: text.to_owned() },
            Err(error) => Self { possible: false, text: format!("{:#}", anyhow::Error::from(error)) },
        }
    }
}

/// `lasthop doctor`: tries every feature that lasthop needs. Exit code 1 if the agent could not control here, or
/// not start with the configuration that was read.
pub(crate) fn run(arguments: &DoctorArguments) -> Result<ExitCode> {
    let file = match arguments.no_config {
        true => None,
        false => Config::file(arguments.config.as_deref(), Path::new(Config::FILE))?,
    };
    // As the agent's own flag: what the file says is then checked beside it.
    let interface = arguments.interface.as_deref().map(|name| Override::of_flag("--interface", "interface", name));
    let flags: Vec<Override> = interface.into_iter().collect();
    let config = file.as_deref().map(|file| Config::load(Some(file), &flags)).transpose()?;
    let drop_ins = file.as_deref().map(Config::drop_ins).transpose()?.unwrap_or_default();
    let defaults = Config::load(None, &flags)?;
    let problem = lasthop_agent::can_start(config.as_ref().unwrap_or(&defaults)).err();
    let problem = problem.map(|error| error.in_a_line().to_string());
    let support = lasthop_kernel::probe();
    let best = support.best_mode();
    if arguments.network {
        let asked = network::Asked {
            interface: config.as_ref().unwrap_or(&defaults).interface.as_deref(),
            tunnels: config.as_ref().map_or(&[], |config| &config.tunnels),
            containers: config.as_ref().is_some_and(|config| config.containers),
            has_key: config.as_ref().map(|config| config.beacon.group_key_file.is_some()),
            peer: arguments.peer,
            load: arguments.load,
            seconds: arguments.seconds,
            json: arguments.json,
        };
        return network::run(&asked, best);
    }
    let (best_mode, means) = match best {
        Mode::Control => ("control", "windows are bounded from both sides, and pacing rates from above, under a lease"),
        Mode::Clamp => {
            let means =
                "windows and pacing rates are bounded from above only, and before Linux 6.12 only of new connections";
            ("clamp", means)
        }
        Mode::Observe => ("observe", "connections are watched, nothing is changed"),
        Mode::Nothing => ("nothing", "the agent cannot run here"),
    };
    let laws = "can be loaded into the kernel, for any program: lasthop laws load";
    let laws = Possible::of(lasthop_kernel::laws::check(), laws);
    let Config { mode, policy, .. } = config.clone().unwrap_or_default();
    let rules = config.as_ref().map(describe_rules).unwrap_or_default();
    let default_control = match best {
        Mode::Control => describe_default_control(config.as_ref().unwrap_or(&defaults)),
        _ => None,
    };
    let named = config.as_ref().unwrap_or(&defaults).interface.as_deref();
    let Looked { name, interface, link, reports } = look(named, config.as_ref());
    let can_report =
        Possible::of(lasthop_kernel::link_report::check(), "servers can be told ([last_link] report = true)");
    let virtual_time = virtual_time();
    let rts_left = rts_left();
    if arguments.json {
        let found = Findings {
            schema: 1,
            version: lasthop_version::VERSION,
            best_mode,
            features: Found::all(&support),
            agent: Decides {
                mode: mode.to_string(),
                policy: policy.policy.to_string(),
                config: file,
                drop_ins,
                rules,
                default_control,
                problem: problem.clone(),
            },
            laws,
            interface: Seen { name, text: interface },
            rts_left,
            last_link: LastLink { text: link, reported: reports, can_report },
            virtual_time,
        };
        crate::say(&serde_json::to_string_pretty(&found)?)?;
    } else {
        let from = match (&file, &arguments.config) {
            (None, _) => " (the defaults; --mode control has it control)".to_owned(),
            (Some(_), Some(_)) => String::new(),
            (Some(file), None) => format!(" ({})", file.display()),
        };
        let changed: String = drop_ins.iter().map(|path| format!(", changed by {}", path.display())).collect();
        let agent = format!("mode {mode}, policy {}{from}{changed}", policy.policy);
        let cannot =
            problem.as_ref().map_or(String::new(), |problem| format!("\n           it could not start: {problem}"));
        let rules: String = rules.iter().map(|rule| format!("\n           {rule}")).collect();
        let default = default_control.map_or(String::new(), |what| format!("\ndefault    mode control: {what}"));
        let reports = reports.map_or(String::new(), |reports| format!("\nreports    {reports}"));
        let interface = name.map_or(interface.clone(), |name| format!("{name}: {interface}"));
        let radios: String = rts_left.iter().map(|left| format!("\nradio      {left}")).collect();
        crate::say(&format!(
            "{support}\nbest mode  {best_mode}: {means}\nagent      {agent}{cannot}{rules}{default}\nlaws       {}\n\
             interface  {interface}{radios}\nlast link  {link}; {}{reports}\nvirtual    {}",
            laws.text, can_report.text, virtual_time.text
        ))?;
    }
    Ok(if best == Mode::Control && problem.is_none() { ExitCode::SUCCESS } else { ExitCode::from(crate::FAILED) })
}

/// Whether kernel hosts can run in an emulated machine, and with which kernels.
fn virtual_time() -> Possible {
    let no = |text: String| Possible { possible: false, text };
    let kernels = match Kernels::in_cache().and_then(|kernels| kernels.list()) {
        Ok(kernels) => kernels.into_iter().filter(Kernel::is_of_this_build),
        Err(error) => return no(error.to_string()),
    };
    let (mut with, mut without) = (Vec::new(), BTreeMap::new());
    for kernel in kernels {
        match why_not(&kernel) {
            None => with.push(kernel.name),
            Some(why) => without.entry(why).or_insert_with(Vec::new).push(kernel.name),
        }
    }
    let without: Vec<String> = without.iter().map(|(why, names)| format!("{}: {why}", names.join(", "))).collect();
    match (with.is_empty(), without.is_empty()) {
        (true, true) => match Architecture::here().and_then(Machine::emulator) {
            Ok(_) => no("there is no kernel for it: lasthop kernels fetch".to_owned()),
            Err(error) => no(error.to_string()),
        },
        (true, false) => no(without.join("; ")),
        (false, _) => {
            let without: String = without.iter().map(|text| format!("; {text}")).collect();
            Possible {
                possible: true,
                text: format!("lasthop run ... --clock virtual, with {}{without}", with.join(", ")),
            }
        }
    }
}

/// What an agent would find here.
struct Looked {
    /// The interface that it would manage; `None`: there is none.
    name: Option<String>,
    /// What that is, or why there is none.
    interface: String,
    /// What is known of its link.
    link: String,
    /// What servers would hear of it, with the given configuration.
    reports: Option<String>,
}

/// Examines this interface, or that of the default route.
fn look(name: Option<&str>, config: Option<&Config>) -> Looked {
    let Some(interface) = Interface::find(name, config.map_or(&[], |config| &config.tunnels)) else {
        let none = match name {
            Some(name) => format!("none: there is no interface {name} in this network namespace"),
            None => "none: there is no default route, so the agent needs --interface".to_owned(),
        };
        let reports = config.map(|_| "none: there is no interface".to_owned());
        return Looked { name: None, interface: none, link: "not known".to_owned(), reports };
    };
    let wifi = wifi_link(&interface);
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
    Looked { name: Some(interface.name), interface: what, link, reports }
}
