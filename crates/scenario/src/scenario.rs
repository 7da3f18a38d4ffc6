//! The typed scenario: what a run needs, with units.

use crate::document::Document;
use crate::effect::Given;
use crate::error::ScenarioError;
use crate::key_path::Path;
use crate::keys::{HOST_OWN, Section};
use crate::last_link::LastLink;
use crate::overrides::Override;
use crate::tcp_switches::{changed_switches, stack};
use crate::traffic::{FlowBlock, FlowSpec, drawn, flow_blocks};
use crate::wiring::Wiring;
use lasthop_laws::{Choice, LawName};
use lasthop_network::random::Streams;
use lasthop_network::{HostPath, NodeId};
use lasthop_policy::PolicySettings;
use lasthop_units::{Probability, Rate, Span, Time};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// All blocks together make at most so many hosts. Kernel hosts have one address of a /24 each, with some left for the access
/// point; simulated ones have none, and the same limit.
pub const MAX_HOSTS: usize = 250;
/// All hosts together open at most so many connections.
pub const MAX_FLOWS: usize = 2_000;

/// A scenario that can be run: read, checked, and complete.
///
/// ```
/// let text = "duration_s = 30\n[[hosts]]\ncount = 3\npolicy = \"formula\"\n";
/// let scenario = lasthop_scenario::Scenario::from_toml("three.toml", text, &[]).unwrap();
/// assert_eq!(scenario.duration, lasthop_units::Span::from_secs(30));
/// assert_eq!(scenario.expanded_hosts().len(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it shows, in one line.
    pub name: String,
    /// Length of the run, the warm-up included.
    pub duration: Span,
    /// Left out of every figure; shorter than `duration`.
    pub warmup: Span,
    /// Between two samples of the series.
    pub sample: Span,
    /// Every random draw follows from it.
    pub seed: u64,
    /// The kinds of hosts, as written.
    pub hosts: Vec<HostBlock>,
    pub(crate) table: Table,
    pub(crate) given: Vec<Given>,
    wiring: Wiring,
    network: lasthop_network::Config,
}

/// One `[[hosts]]` block: `count` hosts that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct HostBlock {
    /// So many hosts.
    pub count: usize,
    /// What each of them is.
    pub kind: HostKind,
    /// What each of them sends.
    pub flows: Vec<FlowBlock>,
}

/// What a host is.
#[derive(Clone, Debug, PartialEq)]
pub struct HostKind {
    /// The stack's defaults.
    pub era: Era,
    /// The node that it sits on, as written; with links only.
    pub node: Option<String>,
    /// The host's own transmit queue.
    pub queue_packets: usize,
    /// PHY rate where it differs from the access's; Wi-Fi only.
    pub rate: Option<Rate>,
    /// Frame error rate where it differs from the access's; Wi-Fi only.
    pub frame_error_rate: Option<Probability>,
    /// Its own path to the servers where that differs from the one that all share; with an access point only.
    pub path: Option<HostPath>,
    /// From its MAC's reception of a packet to its answer at the MAC: the shortest and the longest; Wi-Fi only.
    pub turnaround: (Span, Span),
    /// The stack at both ends of its connections; valid.
    pub tcp: lasthop_tcp::Config,
    /// The keys of `[hosts.tcp]` by which that stack differs from the era's, in the order of the format.
    pub changed_switches: Vec<&'static str>,
    /// As the format spells it; the kernel's name for it is [`HostKind::kernel_congestion_control`].
    pub congestion_control: String,
    /// The same with its parameters, if it is one of ours; else only a kernel can have it.
    pub law: Option<Choice>,
    /// What it tells servers of its own link; `None`: nothing.
    pub last_link: Option<LastLink>,
    /// What its agent does.
    pub agent: AgentMode,
    /// What its agent decides by; valid.
    pub policy: PolicySettings,
}

/// One host of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSpec {
    /// Counted from 0 in the order of the blocks; the host's node in the network.
    pub index: u16,
    /// The `[[hosts]]` block that it comes from.
    pub block: usize,
    /// What it is.
    pub kind: HostKind,
    /// Its connections.
    pub flows: Vec<FlowSpec>,
}

/// Which stack's defaults a host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Era {
    /// No TCP small queues, no pacing, no RACK, big device queues.
    #[serde(rename = "2012")]
    Y2012,
    /// Linux today.
    #[serde(rename = "modern")]
    Modern,
}

/// What a host's agent does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentMode {
    /// There is none.
    Off,
    /// It looks.
    Observe,
    /// It looks and decides, and changes nothing.
    Advise,
    /// It controls.
    Control,
}

impl Scenario {
    /// Reads a scenario file, with overrides of the command line on top.
    ///
    /// # Errors
    /// If the file cannot be read, is not TOML, or has a key or value that cannot be; the message names the line and
    /// what is accepted.
    pub fn load(path: &std::path::Path, overrides: &[Override]) -> Result<Self, ScenarioError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ScenarioError::Read { path: path.to_owned(), source })?;
        Self::from_toml(&path.display().to_string(), &text, overrides)
    }

    /// Reads the text of a scenario; `name` is what messages call it.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn from_toml(name: &str, text: &str, overrides: &[Override]) -> Result<Self, ScenarioError> {
        Self::from_document(name, Document::read(name, text, overrides)?)
    }

    /// Reads the scenario that a result carries.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn from_json(scenario: &serde_json::Value) -> Result<Self, ScenarioError> {
        let name = "the scenario in the result";
        let table: Table = serde_json::from_value(scenario.clone()).map_err(|error| ScenarioError::Syntax {
            file: name.into(),
            line: error.line(),
            message: error.to_string(),
        })?;
        Self::from_document(name, Document::from_table(name, table)?)
    }

    /// The whole scenario, defaults filled in, with the keys and values of the TOML.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(&self.table).expect("a checked scenario has finite numbers and text only")
    }

    /// The whole scenario, defaults filled in, as a file that can be run again.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.table).expect("a checked scenario is TOML")
    }

    /// The network that the packets of this scenario cross.
    pub fn network(&self) -> &lasthop_network::Config {
        &self.network
    }

    /// When the network changes by `[[changes]]`, ascending.
    pub fn network_changes(&self) -> Vec<Time> {
        let mut moments: Vec<Time> = self.network.changes.iter().map(|change| change.at).collect();
        moments.sort_unstable();
        moments.dedup();
        moments
    }

    /// When something is to change that does not, because the run is over by then.
    pub fn late_changes(&self) -> Vec<Time> {
        let at = self.network.changes.iter().map(|change| change.at);
        let mut late: Vec<Time> = at.filter(|at| *at >= Time::ZERO + self.duration).collect();
        late.dedup();
        late
    }

    /// How many links there are, each of a block for itself.
    pub(crate) fn links(&self) -> usize {
        self.wiring.links.len()
    }

    /// The names of the nodes that `[[links]]` joins, in the order in which the links name them: node N of them is node
    /// hosts + N of the network. Empty without links.
    pub fn node_names(&self) -> &[String] {
        &self.wiring.nodes
    }

    /// Every host with its connections; moments are drawn from the streams `start/host-H/flow-F` and
    /// `stop/host-H/flow-F` of the seed, F counted within the host, so that a host more or a flow more moves no other's.
    pub fn expanded_hosts(&self) -> Vec<HostSpec> {
        let streams = Streams::new(self.seed);
        let node = |number: usize| {
            NodeId(u16::try_from(self.network.hosts.len() + number).expect("far less nodes than 65536"))
        };
        let mut hosts: Vec<HostSpec> = Vec::new();
        let mut flow_id = 0;
        for (block_index, block) in self.hosts.iter().enumerate() {
            for number_in_block in 1..=block.count {
                let index = u16::try_from(hosts.len()).expect("at most MAX_HOSTS hosts");
                let mut host = HostSpec { index, block: block_index, kind: block.kind.clone(), flows: Vec::new() };
                for flows in &block.flows {
                    let server = flows.to.as_deref().map_or(0, |name| {
                        self.wiring.node(name, number_in_block).expect("a checked flow goes to a node that is there")
                    });
                    for _ in 0..flows.count {
                        let number = host.flows.len();
                        let stream = |what: &str| streams.stream(&format!("{what}/host-{index}/flow-{number}"));
                        host.flows.push(FlowSpec {
                            id: flow_id,
                            host: index,
                            server: node(server),
                            direction: flows.direction,
                            kind: flows.kind,
                            start: drawn(flows.start, stream("start")),
                            stop: flows.stop.map(|range| drawn(range, stream("stop"))),
                        });
                        flow_id += 1;
                    }
                }
                hosts.push(host);
            }
        }
        hosts
    }

    fn from_document(file: &str, mut document: Document) -> Result<Self, ScenarioError> {
        let top = Path::default();
        if !document.table.contains_key("name") {
            let stem = std::path::Path::new(file).file_stem().map_or(file.into(), |stem| stem.to_string_lossy());
            document.table.insert("name".into(), Value::String(stem.into_owned()));
        }
        let (duration_s, warmup_s) = (float(&document.table, "duration_s"), float(&document.table, "warmup_s"));
        if warmup_s >= duration_s {
            // The one that was changed last is the one to blame: an override of the duration, not the file's line.
            let changed = |key| document.override_of(&top.key(key)).is_some();
            if changed("duration_s") && !changed("warmup_s") {
                let problem = format!("a run of {duration_s} s has nothing left after warmup_s = {warmup_s}");
                return Err(document.error(&top.key("duration_s"), problem, "a number above warmup_s"));
            }
            let problem = format!("{warmup_s} leaves nothing of a run of {duration_s} s");
            return Err(document.error(&top.key("warmup_s"), problem, "a number from 0, below duration_s"));
        }
        complete_access(&mut document.table);
        complete_agents(&mut document.table);
        complete_links(&mut document.table);
        crate::changes::complete(&mut document.table);
        let wiring = Wiring::read(&document)?;
        let hosts = host_blocks(&document, &wiring)?;
        let network = crate::build::network(&document, &hosts, &wiring)?;
        let given = crate::effect::given(&document);
        let table = document.table;
        Ok(Self {
            name: text(&table, "name").to_owned(),
            duration: Span::from_secs_f64(duration_s),
            warmup: Span::from_secs_f64(warmup_s),
            sample: Span::from_secs_f64(float(&table, "sample_ms") / 1e3),
            seed: u64::try_from(integer(&table, "seed")).expect("a checked seed is not negative"),
            hosts,
            wiring,
            network,
            given,
            table,
        })
    }
}

impl HostKind {
    /// The congestion control's name in the kernel, where "newreno" is called "reno".
    pub fn kernel_congestion_control(&self) -> &str {
        if self.congestion_control == "newreno" { "reno" } else { &self.congestion_control }
    }
}

impl AgentMode {
    /// The word in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Observe => "observe",
            Self::Advise => "advise",
            Self::Control => "control",
        }
    }
}

/// The PHY or link rate that goes with the kind of access, where none is given.
fn complete_access(table: &mut Table) {
    let Some(access) = table.get_mut("access").and_then(Value::as_table_mut) else { return };
    let rate = match (text(access, "kind"), text(access, "standard")) {
        ("wired", _) => 100.0,
        (_, "802.11b") => 11.0,
        _ => 54.0,
    };
    access.entry("rate_mbps").or_insert(Value::Float(rate));
}

/// The way back of each link is as the way forth, but for the losses.
fn complete_links(table: &mut Table) {
    let blocks = table.get_mut("links").and_then(Value::as_array_mut);
    for link in blocks.into_iter().flatten().filter_map(Value::as_table_mut) {
        for key in ["rate_mbps", "delay_ms", "queue_packets", "queue", "loss_at"] {
            let forth = link[key].clone();
            link.entry(format!("back_{key}")).or_insert(forth);
        }
    }
}

fn complete_agents(table: &mut Table) {
    let blocks = table["hosts"].as_array_mut().expect("a checked scenario has host blocks");
    for host in blocks.iter_mut().filter_map(Value::as_table_mut) {
        let mode = if text(host, "policy") == "none" { AgentMode::Off } else { AgentMode::Control };
        host.entry("agent").or_insert_with(|| Value::String(mode.as_str().into()));
    }
}

fn host_blocks(document: &Document, wiring: &Wiring) -> Result<Vec<HostBlock>, ScenarioError> {
    let blocks = document.table["hosts"].as_array().expect("a checked scenario has host blocks");
    let mut hosts = Vec::new();
    let (mut host_count, mut flow_count) = (0, 0);
    for (index, block) in blocks.iter().enumerate() {
        let here = Path::default().key("hosts").index(index);
        let table = block.as_table().expect("a checked block is a table");
        let count = size(table, "count");
        host_count += count;
        if host_count > MAX_HOSTS {
            let problem = format!("makes {host_count} hosts with the blocks before it, which is too many");
            return Err(document.error(&here.key("count"), problem, format!("at most {MAX_HOSTS} hosts in all")));
        }
        let node = table.get("node").and_then(Value::as_str);
        wiring.check(document, &here.key("node"), node, count)?;
        let flows = flow_blocks(document, table, &here)?;
        for (at, flow) in flows.iter().enumerate() {
            let key = here.key("flows").index(at).key("to");
            wiring.check_flow(document, &key, (node, flow.to.as_deref()), count)?;
            flow_count += count * flow.count;
            if flow_count > MAX_FLOWS {
                let problem = format!("makes {flow_count} connections with those before it, which is too many");
                let key = here.key("flows").index(at).key("count");
                return Err(document.error(&key, problem, format!("at most {MAX_FLOWS} connections in all")));
            }
        }
        let kind = HostKind {
            era: word(table, "era"),
            node: node.map(str::to_owned),
            queue_packets: size(table, "queue_packets"),
            rate: crate::build::own_rate(table),
            frame_error_rate: crate::build::own_frame_error_rate(table),
            path: crate::build::own_path(table),
            turnaround: crate::build::turnaround(table),
            tcp: stack(document, table, &here)?,
            changed_switches: changed_switches(table),
            congestion_control: text(table, "congestion_control").to_owned(),
            law: law(table),
            last_link: LastLink::read(table),
            agent: word(table, "agent"),
            policy: policy(document, table, &here)?,
        };
        hosts.push(HostBlock { count, kind, flows });
    }
    Ok(hosts)
}

/// The settings of the policy, which stand among the host's own keys.
fn policy(document: &Document, host: &Table, here: &Path) -> Result<PolicySettings, ScenarioError> {
    let own = |name: &&String| Section::Host.child(name).is_none() && !HOST_OWN.contains(&name.as_str());
    let table: Table =
        host.iter().filter(|(name, _)| own(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
    let settings: PolicySettings = Value::Table(table).try_into().map_err(|error: toml::de::Error| {
        document.error(&here.key("policy"), error.message().to_owned(), PolicySettings::KEYS.join(", "))
    })?;
    let problem = |error: &lasthop_policy::SettingsError| match (error.key, settings.policy) {
        ("bound_segments", policy) if settings.bound_segments.is_none() => {
            format!("is not there, and the policy \"{policy}\" cannot be without it")
        }
        _ => format!("{} is out of range", error.value),
    };
    match settings.validate() {
        Ok(()) => Ok(settings),
        Err(error) => Err(document.error(&here.key(error.key), problem(&error), error.accepted)),
    }
}

/// The law of a checked host, with the parameters of its table.
fn law(host: &Table) -> Option<Choice> {
    let name: LawName = text(host, "congestion_control").parse().ok()?;
    let mut choice = Choice::from(name);
    for parameter in name.parameters() {
        let value = match &host[name.as_str()][parameter.name] {
            Value::Boolean(flag) => f64::from(u8::from(*flag)),
            Value::Integer(number) => *number as f64,
            value => value.as_float().expect("a checked parameter is a number"),
        };
        choice.parameters.set(name, parameter.name, value).expect("a checked parameter is in its range");
    }
    Some(choice)
}

pub(crate) fn text<'a>(table: &'a Table, key: &str) -> &'a str {
    table.get(key).and_then(Value::as_str).unwrap_or_else(|| panic!("a checked scenario has a text {key}"))
}

pub(crate) fn float(table: &Table, key: &str) -> f64 {
    table.get(key).and_then(Value::as_float).unwrap_or_else(|| panic!("a checked scenario has a number {key}"))
}

pub(crate) fn integer(table: &Table, key: &str) -> i64 {
    table.get(key).and_then(Value::as_integer).unwrap_or_else(|| panic!("a checked scenario has a whole number {key}"))
}

pub(crate) fn size(table: &Table, key: &str) -> usize {
    usize::try_from(integer(table, key)).expect("a checked count is not negative")
}

/// The ends of a checked number or range of numbers.
pub(crate) fn ends(value: &Value) -> (f64, f64) {
    let number = |value: &Value| value.as_float().expect("a checked range is made of numbers");
    match value {
        Value::Array(ends) => (number(&ends[0]), number(&ends[1])),
        one => (number(one), number(one)),
    }
}

/// The variant that a checked word names.
pub(crate) fn word<T: serde::de::DeserializeOwned>(table: &Table, key: &str) -> T {
    table[key]
        .clone()
        .try_into()
        .unwrap_or_else(|error| panic!("the words of {key} in the format have variants: {error}"))
}
