//! `lasthop laws`: our congestion controls in this machine's kernel.

mod build;
mod show;

pub(crate) use build::own_law;

use crate::say;
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use lasthop_kernel::laws::{Clients, Counters, Error, Found, Handles, Heard, Heuristics, Pins, Prefix, VERSION};
use lasthop_laws::{LawName, Parameter, Parameters, Unit};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct LawsArguments {
    #[command(subcommand)]
    command: LawsCommand,
}

#[derive(Subcommand)]
enum LawsCommand {
    /// Compile and check a law of your own, one C header; scenarios then use it by its path (docs/guide/own-law.md)
    Build(build::BuildArguments),
    /// Write the headers that a law of your own may include, for reading: law.h says what a law is
    Headers {
        /// The folder, made if needed
        folder: std::path::PathBuf,
    },
    /// Load laws, all but lastlink if none is named; any program can then choose lh_NAME
    Load {
        #[arg(value_name = "NAME", value_parser = law, help = names())]
        laws: Vec<LawName>,
        /// A parameter, e.g. ucc.alpha=0.95; all others keep their defaults
        #[arg(long, value_name = "LAW.NAME=VALUE", value_parser = setting)]
        set: Vec<Setting>,
    },
    /// Unload laws, all loaded ones if none is named; sockets keep the law that they have
    Unload {
        #[arg(value_name = "NAME", value_parser = law, help = names())]
        laws: Vec<LawName>,
        /// Also if it is the default of a network namespace, whose new sockets then still get it
        #[arg(long)]
        force: bool,
    },
    /// List every law: whether it is loaded, its parameters with their ranges, the number of its sockets, its counters
    List {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Change parameters of loaded laws; connections use them from their next ACK on
    Set {
        /// E.g. ucc.alpha=0.9
        #[arg(value_name = "LAW.NAME=VALUE", value_parser = setting, required = true)]
        settings: Vec<Setting>,
    },
    /// Permit heuristics of lastlink, by client and local port; without a rule all are permitted
    Permit {
        /// all, none, or some of max_cwnd, initial_window and errors, separated by commas
        #[arg(value_name = "HEURISTICS", required_unless_present_any = ["remove", "clear"])]
        heuristics: Option<Heuristics>,
        /// Clients: an address or ADDRESS/BITS, as in 192.0.2.0/24; without it all
        #[arg(long, value_name = "PREFIX")]
        from: Option<Prefix>,
        /// The server's port, 1 to 65535; without it any. A rule for a port wins over one for any port
        #[arg(long, value_name = "PORT", value_parser = port)]
        port: Option<u16>,
        /// Remove the rule for exactly these clients and this port
        #[arg(long, conflicts_with = "heuristics")]
        remove: bool,
        /// Remove all rules, for all clients and ports
        #[arg(long, conflicts_with_all = ["heuristics", "from", "port", "remove"])]
        clear: bool,
    },
    /// Show the sockets of all network namespaces that have a law, with its private state
    Show {
        /// One law only
        #[arg(value_name = "NAME", value_parser = law)]
        law: Option<LawName>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
}

/// A parameter with a checked value.
#[derive(Clone, Debug)]
struct Setting {
    law: LawName,
    name: String,
    value: f64,
}

fn port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|&port| port > 0);
    port.ok_or_else(|| format!("{text:?} is no port: a number from 1 to 65535"))
}

/// The names of the laws that can be loaded.
fn names() -> String {
    LawName::for_the_kernel().map(LawName::as_str).collect::<Vec<_>>().join(", ")
}

fn law(name: &str) -> Result<LawName, String> {
    let found = LawName::for_the_kernel().find(|law| law.as_str() == name);
    found.ok_or_else(|| match LawName::ALL.into_iter().any(|law| law.as_str() == name) {
        true => format!("{name:?} is a law of simulated hosts, and not loaded; loaded can be {}", names()),
        false => format!("no law is called {name:?}; there are {}", names()),
    })
}

fn setting(text: &str) -> Result<Setting, String> {
    let parts = text.split_once('=').and_then(|(key, value)| Some((key.split_once('.')?, value)));
    let Some(((law_name, name), value)) = parts else {
        return Err("a setting is LAW.NAME=VALUE, as in ucc.alpha=0.95".into());
    };
    let law = law(law_name)?;
    let known = law.parameters().iter().find(|parameter| parameter.name == name);
    let value = match value {
        "true" => 1.0,
        "false" => 0.0,
        number => number.parse().map_err(|_| {
            let accepted = known.map_or("a number".to_owned(), Parameter::accepted);
            format!("{law}.{name} = {number}: accepted is {accepted}")
        })?,
    };
    let mut parameters = Parameters::of(law);
    parameters.set(law, name, value).map_err(|error| error.to_string())?;
    Ok(Setting { law, name: name.to_owned(), value })
}

fn changed(law: LawName, mut parameters: Parameters, settings: &[Setting]) -> Parameters {
    for setting in settings.iter().filter(|setting| setting.law == law) {
        parameters.set(law, &setting.name, setting.value).expect("a checked setting");
    }
    parameters
}

/// `lasthop laws`.
pub(crate) fn run(arguments: &LawsArguments) -> Result<ExitCode> {
    if !matches!(arguments.command, LawsCommand::Build(_) | LawsCommand::Headers { .. }) {
        lasthop_kernel::laws::check()?;
    }
    match &arguments.command {
        LawsCommand::Build(arguments) => build::build(arguments),
        LawsCommand::Headers { folder } => build::headers(folder),
        LawsCommand::Load { laws, set } => load(laws, set),
        LawsCommand::Unload { laws, force } => unload(laws, *force),
        LawsCommand::List { json } => list(*json),
        LawsCommand::Set { settings } => set(settings),
        LawsCommand::Permit { clear: true, .. } => permit_all(),
        LawsCommand::Permit { heuristics, from, port, .. } => {
            permit(&Clients { prefix: from.unwrap_or(Prefix::ALL), port: *port }, *heuristics)
        }
        LawsCommand::Show { law, json } => show::show(*law, *json),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// The laws that `load` loads without names. A law that answers strangers must be named.
fn unasked() -> Vec<LawName> {
    LawName::for_the_kernel().filter(|law| !law.hears_reports()).collect()
}

fn load(laws: &[LawName], settings: &[Setting]) -> Result<()> {
    let unasked = unasked();
    let laws = if laws.is_empty() { &unasked[..] } else { laws };
    if let Some(setting) = settings.iter().find(|setting| !laws.contains(&setting.law)) {
        bail!("--set {}.{}: {} is not among the laws to load", setting.law, setting.name, setting.law);
    }
    let pins = Pins::open()?;
    for &law in laws {
        let parameters = changed(law, Parameters::of(law), settings);
        match pins.load(law, parameters) {
            Ok(pinned) => say(&format!("{law} is loaded as {}", pinned.name()))?,
            // loaded already, and no parameter was asked for
            Err(Error::AlreadyLoaded { .. }) if settings.iter().all(|setting| setting.law != law) => {
                pins.prepare_listeners(law)
                    .with_context(|| format!("cannot prepare the listening sockets of {law}"))?;
                say(&format!("{law} is loaded already, as {}; it stays as it is", law.kernel_name()))?;
            }
            Err(error @ Error::AlreadyLoaded { .. }) => {
                bail!("{error}; 'lasthop laws set' changes its parameters");
            }
            Err(error) => return Err(error).with_context(|| format!("cannot load {law}")),
        }
        if law.hears_reports() {
            warn_of_listeners(&pins.get(law)?)?;
        }
    }
    Ok(())
}

/// Warns that old kernels cannot prepare sockets that already listen.
fn warn_of_listeners(pinned: &Handles) -> Result<()> {
    let failed = pinned.heard()?.listeners_failed;
    if failed > 0 {
        crate::tell(format_args!(
            "lasthop: {failed} listening sockets could not be prepared and hear no reports (that needs Linux 6.12): restart their servers"
        ));
    }
    Ok(())
}

fn unload(laws: &[LawName], force: bool) -> Result<()> {
    let all = laws.is_empty();
    let every: Vec<LawName> = LawName::for_the_kernel().collect();
    let laws = if all { &every[..] } else { laws };
    let pins = Pins::find();
    let (mut any, mut refused) = (!pins.leftovers().is_empty(), Vec::new());
    for &law in laws {
        match pins.unload(law, force) {
            Ok(unloaded) => {
                any = true;
                let sockets = match unloaded.sockets {
                    Some(0) => "no socket has it".to_owned(),
                    Some(1) => "1 socket goes on with it until it ends or gets another".to_owned(),
                    Some(count) => format!("{count} sockets go on with it until they end or get another"),
                    None => "sockets that have it go on with it".to_owned(),
                };
                say(&format!("{law} is unloaded; {sockets}"))?;
            }
            Err(Error::NotLoaded { .. }) if all => {}
            // goes on with the other laws
            Err(error) => refused.push(format!("cannot unload {law}: {:#}", anyhow::Error::from(error))),
        }
    }
    if !refused.is_empty() {
        bail!("{}", refused.join("\n"));
    }
    if any { Ok(()) } else { say("no law is loaded") }
}

fn set(settings: &[Setting]) -> Result<()> {
    let pins = Pins::find();
    let laws: BTreeSet<LawName> = settings.iter().map(|setting| setting.law).collect();
    let cannot = |law: LawName| format!("cannot set parameters of {law}");
    // all must be found before any is changed
    for &law in &laws {
        pins.get(law).with_context(|| cannot(law))?;
    }
    for law in laws {
        let change = |parameters| changed(law, parameters, settings);
        pins.change(law, change).with_context(|| cannot(law))?;
    }
    for setting in settings {
        say(&format!("{}.{} = {}", setting.law, setting.name, setting.value))?;
    }
    Ok(())
}

/// `None` removes the rule.
fn permit(clients: &Clients, heuristics: Option<Heuristics>) -> Result<()> {
    let pins = Pins::find();
    let Some(heuristics) = heuristics else {
        pins.withdraw(LawName::Lastlink, clients).context("cannot remove a permission")?;
        return say(&format!("{clients}: removed"));
    };
    pins.permit(LawName::Lastlink, clients, heuristics).context("cannot permit heuristics")?;
    say(&format!("{clients}: {heuristics}"))
}

fn permit_all() -> Result<()> {
    let removed = Pins::find().withdraw_all(LawName::Lastlink).context("cannot remove the permissions")?;
    let entries = if removed == 1 { "entry" } else { "entries" };
    say(&format!("{removed} {entries} removed; all clients: {}", Heuristics::ALL))
}

/// A law's entry in `list`.
struct Listed {
    law: LawName,
    loaded: bool,
    /// Why the law does not answer, although the kernel has it.
    elsewhere: Option<Error>,
    version: Option<String>,
    name: Option<String>,
    parameters: Parameters,
    sockets: Option<usize>,
    counters: Option<Counters>,
    heard: Option<Heard>,
    permits: Option<Vec<(Clients, Heuristics)>>,
}

impl Listed {
    fn of(pins: &Pins, law: LawName) -> Result<Self> {
        let mut listed = Self {
            law,
            loaded: false,
            elsewhere: None,
            version: None,
            name: None,
            parameters: Parameters::of(law),
            sockets: None,
            counters: None,
            heard: None,
            permits: None,
        };
        match pins.look(law)? {
            Found::Absent => {}
            Found::Elsewhere => {
                (listed.loaded, listed.elsewhere) = (true, pins.get(law).err());
                listed.name = Some(law.kernel_name().to_owned());
            }
            Found::OtherVersion(version) => {
                (listed.loaded, listed.version) = (true, Some(version));
            }
            Found::Pinned(pinned) => {
                listed.loaded = true;
                listed.version = Some(VERSION.to_owned());
                listed.name = Some(pinned.name().to_owned());
                listed.parameters = pinned.parameters()?;
                listed.sockets = Some(pinned.sockets()?.len());
                listed.counters = Some(pinned.counters()?);
                if law.hears_reports() {
                    listed.heard = Some(pinned.heard()?);
                    listed.permits = Some(pinned.permits()?);
                }
            }
        }
        Ok(listed)
    }

    fn value(&self, parameter: &Parameter) -> f64 {
        self.parameters.get(self.law, parameter.name).expect("the law's own parameter")
    }

    /// Whether it does not answer: another version loaded it, or it is held elsewhere.
    fn is_mute(&self) -> bool {
        self.loaded && self.sockets.is_none()
    }

    fn as_json(&self) -> serde_json::Value {
        let parameters = self.law.parameters().iter().map(|parameter| {
            json!({
                "name": parameter.name,
                "value": (!self.is_mute()).then(|| self.value(parameter)),
                "unit": unit(parameter.unit),
                "from": parameter.from,
                "to": parameter.to,
                "default": parameter.default,
                "meaning": parameter.meaning,
            })
        });
        let permits = self.permits.iter().flatten().map(|(clients, heuristics)| {
            json!({
                "clients": clients.prefix.to_string(),
                "port": clients.port,
                "heuristics": heuristics.names().collect::<Vec<_>>(),
            })
        });
        let mut told = json!({
            "law": self.law.as_str(),
            "kernel_name": self.name,
            "loaded": self.loaded,
            "elsewhere": self.elsewhere.is_some(),
            "version": self.version,
            "sockets": self.sockets,
            "parameters": parameters.collect::<Vec<_>>(),
            "counters": self.counters.map(|counters| counters_of(&counters).into_iter().collect::<BTreeMap<_, _>>()),
        });
        if self.law.hears_reports() {
            told["heard"] = json!(self.heard.map(|heard| heard.named().into_iter().collect::<BTreeMap<_, _>>()));
            told["permits"] = json!(self.permits.as_ref().map(|_| permits.collect::<Vec<_>>()));
        }
        told
    }

    fn as_text(&self) -> String {
        let Self { law, sockets, .. } = self;
        if let Some(elsewhere) = &self.elsewhere {
            return format!("{law}: not loaded from here: {elsewhere}\n");
        }
        let mut text = match (&self.name, &self.version) {
            (Some(name), Some(version)) => {
                let sockets = sockets.unwrap_or_default();
                format!("{law}: loaded as {name}, version {version}, sockets that have it: {sockets}\n")
            }
            (None, Some(version)) => return format!("{law}: loaded by another version of lasthop ({version})\n"),
            _ => format!("{law}: not loaded\n"),
        };
        for parameter in law.parameters() {
            let Parameter { name, from, to, default, .. } = parameter;
            let value = self.value(parameter);
            let _ =
                writeln!(text, "  {name:24} {value:>8}  {from} to {to}, default {default} ({})", unit(parameter.unit));
        }
        if let Some(counters) = &self.counters {
            let counters = counters_of(counters).map(|(name, count)| format!("{name} {count}"));
            let _ = writeln!(text, "  {}", counters.join(", "));
        }
        if let Some(heard) = &self.heard {
            let heard = heard.named().map(|(name, count)| format!("{name} {count}"));
            let _ = writeln!(text, "  heard: {}", heard.join(", "));
        }
        for (clients, heuristics) in self.permits.iter().flatten() {
            let _ = writeln!(text, "  permitted: {clients}: {heuristics}");
        }
        if self.permits.is_some() {
            let _ = writeln!(text, "  permitted: all others: {}", Heuristics::ALL);
        }
        text
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Milliseconds => "ms",
        Unit::Seconds => "s",
        Unit::Ratio => "ratio",
        Unit::Count => "count",
        Unit::Flag => "0 or 1",
    }
}

fn counters_of(counters: &Counters) -> [(&'static str, u64); 9] {
    [
        ("begun", counters.begun),
        ("losses", counters.losses),
        ("tolerated", counters.tolerated),
        ("timeouts", counters.timeouts),
        ("notified", counters.notified),
        ("back_offs", counters.back_offs),
        ("undone", counters.undone),
        ("repaired", counters.repaired),
        ("storage_missing", counters.storage_missing),
    ]
}

fn list(as_json: bool) -> Result<()> {
    let pins = Pins::find();
    let laws = LawName::for_the_kernel().map(|law| Listed::of(&pins, law));
    let laws: Vec<Listed> = laws.collect::<Result<_>>()?;
    let leftovers: Vec<String> = pins.leftovers().iter().map(|path| path.display().to_string()).collect();
    if as_json {
        let laws: Vec<_> = laws.iter().map(Listed::as_json).collect();
        return say(&serde_json::to_string_pretty(&json!({ "laws": laws, "half_done": leftovers }))?);
    }
    let mut text: String = laws.iter().map(Listed::as_text).collect();
    for leftover in leftovers {
        let _ =
            writeln!(text, "{leftover}: half done, by a command that was killed; the next load or unload removes it");
    }
    say(&text)
}
