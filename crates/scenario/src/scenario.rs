//! The typed scenario: a run's input, with units.

use crate::ScenarioError;
use crate::cells::Layout;
use crate::keys::{
    AgentMode, Era, FlowKeys, HostKeys, Knowledge, ScenarioKeys, leave_out_agents, leave_out_rate_of_mcs, place_header,
};
use crate::last_link::LastLink;
use crate::notes::AssumedHeader;
use crate::tcp_switches::{changed_switches, stack};
use crate::traffic::{FlowBlock, FlowSpec, drawn, flow_blocks};
use crate::wiring::Wiring;
use lasthop_files::{MOST_TYPED_BYTES, text_of};
use lasthop_keys::{
    Document, Given, IneffectiveKey, KeyError, Keys as _, Override, Path, Problem, Section, Source, key,
};
use lasthop_laws::{Choice, LawName, LinkReport};
use lasthop_network::random::{Streams, numbers};
use lasthop_network::{HostConfig, NodeId, Roam};
use lasthop_policy::{Parts, PolicySettings, Rts};
use lasthop_traffic::Kind as _;
use lasthop_units::{Span, Time};
use std::sync::Arc;
use toml::Table;

/// The most hosts of all blocks together, simulated or kernel.
pub const MAX_HOSTS: usize = 250;
/// The most `[[hosts]]` blocks, those of no host included.
pub const MAX_HOST_BLOCKS: usize = 1_000;
/// The most flows of all hosts together.
pub const MAX_FLOWS: usize = 2_000;
/// The most connections of all hosts together, transfers of open loops included: there are 55,536 ports from
/// [`FIRST_CLIENT_PORT`](crate::FIRST_CLIENT_PORT) on, and the number of a Poisson process deviates from its mean.
pub(crate) const MAX_CONNECTIONS: usize = 54_000;

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
    /// Its purpose, in one line.
    pub name: String,
    /// Length of the run, the warm-up included.
    pub duration: Span,
    /// Excluded from every figure; shorter than `duration`.
    pub warmup: Span,
    /// Time between two samples of the series.
    pub sample: Span,
    /// The seed of every random draw.
    pub seed: u64,
    /// The kinds of hosts, as written.
    pub hosts: Vec<HostBlock>,
    pub(crate) table: Table,
    pub(crate) written: Table,
    pub(crate) given: Vec<Given>,
    pub(crate) assumed_headers: Vec<AssumedHeader>,
    wiring: Wiring,
    layout: Option<Layout>,
    network: lasthop_network::Config,
    source: Arc<Source>,
}

/// One `[[hosts]]` block: `count` equal hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct HostBlock {
    /// What they are called, if it is given; see [`Scenario::host_names`].
    pub name: Option<String>,
    /// The number of hosts.
    pub count: usize,
    /// The kind of each.
    pub kind: HostKind,
    /// The traffic of each.
    pub flows: Vec<FlowBlock>,
}

/// The kind of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostKind {
    /// The stack's defaults.
    pub era: Era,
    /// Its node, as written; with links only.
    pub node: Option<String>,
    /// Its place in the network, without what its access or its standard does not look at.
    pub network: HostConfig,
    /// The stack at both ends of its connections; valid.
    pub tcp: lasthop_tcp::Config,
    /// The keys of `[hosts.tcp]` that differ from the era's stack, in the order of the format.
    pub changed_switches: Vec<&'static str>,
    /// In the format's spelling; [`HostKind::kernel_congestion_control`] has the kernel's name.
    pub congestion_control: String,
    /// The same with its parameters, if it is one of ours; otherwise only a kernel can have it.
    pub law: Option<Choice>,
    /// Its report of its own link; `None`: nothing.
    pub last_link: Option<LastLink>,
    /// Its agent's mode.
    pub agent: AgentMode,
    /// Its agent's policy; valid.
    pub policy: PolicySettings,
    /// Whether it sets its own RTS threshold.
    pub rts: Rts,
    /// That policy's law: as agents have it, but in simulated studies of a part or a number of it.
    pub parts: Parts,
}

/// One host of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSpec {
    /// Counted from 0 in the order of the blocks; the host's node in the network.
    pub index: u16,
    /// Its number in the names of random streams: [`lasthop_network::random::numbers`].
    pub number: u16,
    /// Its `[[hosts]]` block.
    pub block: usize,
    /// Its kind.
    pub kind: HostKind,
    /// Its connections.
    pub flows: Vec<FlowSpec>,
}

/// The keys without effect in any of these runs: see [`lasthop_keys::ineffective_keys`].
pub fn ineffective_keys<'a>(runs: impl IntoIterator<Item = &'a Scenario>) -> Vec<IneffectiveKey> {
    lasthop_keys::ineffective_keys(runs.into_iter().map(|run| &run.given[..]))
}

impl Scenario {
    /// Every key of the format.
    pub fn section() -> &'static Section {
        ScenarioKeys::section()
    }

    /// Reads a scenario file, with overrides of the command line on top.
    ///
    /// # Errors
    /// If the file cannot be read, is not TOML, or has an unknown key or a wrong value. The message names the line and
    /// the accepted values.
    pub fn load(path: &std::path::Path, overrides: &[Override]) -> Result<Self, ScenarioError> {
        let text = text_of(path, MOST_TYPED_BYTES).map_err(|source| ScenarioError::Read {
            what: "scenario",
            path: path.to_owned(),
            source,
        })?;
        Self::from_toml(&path.display().to_string(), &text, overrides)
    }

    /// Reads the text of a scenario; `name` is its name in messages.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn from_toml(name: &str, text: &str, overrides: &[Override]) -> Result<Self, ScenarioError> {
        Self::from_document(name, Document::read(name, text, overrides, Self::section())?)
    }

    /// The same, with paths relative to `folder`.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn from_toml_in(
        folder: &std::path::Path,
        name: &str,
        text: &str,
        overrides: &[Override],
    ) -> Result<Self, ScenarioError> {
        let document = Document::read(name, text, overrides, Self::section())?;
        Self::from_document(name, document.in_folder(folder))
    }

    /// Reads a table of keys without a text; `name` is its name in messages. Its paths are relative to the current folder.
    ///
    /// # Errors
    /// As [`Scenario::load`], without lines.
    pub fn from_table(name: &str, table: Table, overrides: &[Override]) -> Result<Self, ScenarioError> {
        let document = Document::from_table(name, table, overrides, Self::section())?;
        Self::from_document(name, document.in_folder(std::path::Path::new("")))
    }

    /// Reads the scenario in a result.
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
        Self::from_document(name, Document::from_table(name, table, &[], Self::section())?)
    }

    /// The whole scenario, defaults filled in, with the keys and values of the TOML.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(&self.table).expect("a checked scenario has finite numbers and text only")
    }

    /// The same to be changed: omits the `agent` of hosts where it follows from their policy, so that another policy
    /// brings its own.
    pub fn to_keys(&self) -> Table {
        let mut table = self.table.clone();
        leave_out_agents(&mut table);
        table
    }

    /// The whole scenario, with defaults and with other keys set, as a file that can be run again, in any
    /// folder. Omits `access.rate_mbps` if the MCS determines it, and what [`Scenario::to_keys`] omits.
    pub fn to_toml(&self) -> String {
        let mut table = self.to_keys();
        leave_out_rate_of_mcs(&mut table);
        let hosts = table.get_mut(key!(ScenarioKeys, hosts)).and_then(toml::Value::as_array_mut);
        hosts.into_iter().flatten().filter_map(toml::Value::as_table_mut).for_each(place_header);
        toml::to_string(&table).expect("a checked scenario is TOML")
    }

    /// The network of this scenario.
    pub fn network(&self) -> &lasthop_network::Config {
        &self.network
    }

    /// The times of `[[changes]]` and of the associations of `[[hosts.roam]]`, ascending.
    pub fn network_changes(&self) -> Vec<Time> {
        let mut moments: Vec<Time> = self.network.changes.iter().map(|change| change.at).collect();
        moments.extend(self.roams().iter().map(Roam::associated));
        moments.sort_unstable();
        moments.dedup();
        moments
    }

    /// The roams of all hosts, in the order of their associations.
    pub fn roams(&self) -> &[Roam] {
        self.network.cells.as_ref().map_or(&[], |cells| &cells.roams)
    }

    /// The host's reports to the server of this connection, with their start times, in order; the first from the start
    /// of the run. Empty if it reports nothing, or the reports are unknown before the run.
    pub fn link_reports(&self, host: &HostSpec, flow: &FlowSpec) -> Vec<(Time, LinkReport)> {
        let Some(link) = host.kind.last_link.filter(|link| link.knowledge != Knowledge::Measured) else {
            return Vec::new();
        };
        let mut reports = Vec::new();
        self.network().each_state(|at, network| {
            let truth = network.last_hop(NodeId(host.index), flow.server);
            let delay = if reports.is_empty() { Span::ZERO } else { link.delay };
            reports.push((at + delay, link.says(truth)));
        });
        // Changes of something else are no report.
        let mut told: Vec<(Time, LinkReport)> = Vec::with_capacity(reports.len());
        for (at, report) in reports {
            if told.last().is_none_or(|(_, before)| *before != report) {
                told.push((at, report));
            }
        }
        told
    }

    /// An error about a key, such as `hosts[0].tcp.mss_bytes`, with its file and line: of what cannot run it as it is.
    pub fn error(&self, key: &str, problem: Problem) -> KeyError {
        self.source.error(&Path::dotted(key), problem)
    }

    /// The number of links, each of a multiple block counted separately.
    pub(crate) fn links(&self) -> usize {
        self.wiring.links.len()
    }

    /// The names of the nodes joined by `[[links]]`, in order of first mention. Node N of them is node hosts + N of the
    /// network. Empty without links.
    pub fn node_names(&self) -> &[String] {
        &self.wiring.nodes
    }

    /// Whether some hosts ask a program for decisions (policy `external`): then a run depends on more than the scenario.
    pub fn asks_programs(&self) -> bool {
        self.hosts.iter().any(|block| block.kind.policy.policy == lasthop_policy::PolicyName::External)
    }

    /// The name of each host, by index: "laptop" of a block of one, "laptop-1" and so on of a block of several, and
    /// "host-3" of the host 3 of a block without a name.
    pub fn host_names(&self) -> Vec<String> {
        names_by_block(&self.hosts).into_iter().flat_map(|(_, names)| names).collect()
    }

    /// Access points beside each other, and who hears whom; `None` if all hear all, in one cell.
    pub const fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// Every host with its connections. Moments are drawn from the seed's streams `start/host-H/flow-F`, `stop/host-H/flow-F` and
    /// `arrivals/host-H/flow-F`, H being [`HostSpec::number`], F counted within the host. So another host at the end, an
    /// idle host anywhere, or another flow of a host changes no existing draw.
    pub fn expanded_hosts(&self) -> Vec<HostSpec> {
        let streams = Streams::new(self.seed);
        let numbers = numbers(self.network.hosts.iter().map(|host| host.is_idle));
        let mut hosts: Vec<HostSpec> = Vec::new();
        let mut flow_id = 0;
        for (block_index, block) in self.hosts.iter().enumerate() {
            for number_in_block in 1..=block.count {
                let index = u16::try_from(hosts.len()).expect("at most MAX_HOSTS hosts");
                let number = numbers[hosts.len()];
                let mut host =
                    HostSpec { index, number, block: block_index, kind: block.kind.clone(), flows: Vec::new() };
                for flows in &block.flows {
                    let server = flows.to.as_deref().map_or(0, |name| {
                        self.wiring.node(name, number_in_block).expect("a checked flow goes to a node that is there")
                    });
                    for _ in 0..flows.count {
                        let flow = host.flows.last().map_or(0, |before| before.number + 1);
                        let stream = |what: &str| streams.stream(&format!("{what}/host-{number}/flow-{flow}"));
                        let spec = FlowSpec {
                            id: flow_id,
                            number: flow,
                            arrival: None,
                            host: index,
                            server: self.network.beside_hosts(server),
                            direction: flows.direction,
                            kind: flows.kind.clone(),
                            dscp: flows.dscp,
                            start: drawn(flows.start, stream("start")),
                            stop: flows.stop.map(|range| drawn(range, stream("stop"))),
                        };
                        let until = spec.stop.unwrap_or(Time::MAX).min(Time::ZERO + self.duration);
                        let arrivals = spec.kind.arrivals(spec.start, until, &mut stream("arrivals"));
                        match arrivals.filter(|arrivals| !arrivals.is_empty()) {
                            None => host.flows.push(spec),
                            Some(arrivals) => host.flows.extend((0..).zip(arrivals).map(|(number, (start, kind))| {
                                FlowSpec { arrival: Some(number), kind, start, stop: None, ..spec.clone() }
                            })),
                        }
                        flow_id += 1;
                    }
                }
                hosts.push(host);
            }
        }
        hosts
    }

    fn from_document(file: &str, mut document: Document) -> Result<Self, ScenarioError> {
        let stem = std::path::Path::new(file).file_stem().map_or(file.into(), |stem| stem.to_string_lossy());
        document.table.entry(key!(ScenarioKeys, name)).or_insert_with(|| stem.into_owned().into());
        let (given, written) = (document.given(), crate::written::written(&document));
        let traces = crate::trace::expand(&mut document)?;
        crate::lists::expand(&mut document)?;
        let keys = ScenarioKeys::read(&document.top())?;
        let (duration_s, warmup_s) = (keys.duration_s, keys.warmup_s);
        if warmup_s >= duration_s {
            let (duration, warmup) =
                (Path::top(key!(ScenarioKeys, duration_s)), Path::top(key!(ScenarioKeys, warmup_s)));
            // Blame the last change: an override of the duration, not the file's line.
            if document.override_of(&duration).is_some() && document.override_of(&warmup).is_none() {
                let problem = format!("a run of {duration_s} s has nothing left after warmup_s = {warmup_s}");
                return Err(document.error(&duration, problem, "a number above warmup_s"));
            }
            let problem = format!("{warmup_s} leaves nothing of a run of {duration_s} s");
            return Err(document.error(&warmup, problem, "a number from 0, below duration_s"));
        }
        let wiring = Wiring::read(&document, &keys.links)?;
        let hosts = host_blocks(&document, &keys, &wiring)?;
        let layout = Layout::read(&document, &keys, &names_by_block(&hosts))?;
        let cells = layout.as_ref().map(|layout| layout.cells().clone());
        let network = crate::build::network(&document, &keys, &hosts, (&wiring, cells), &traces)?;
        Ok(Self {
            name: keys.name,
            duration: Span::from_secs_f64(duration_s),
            warmup: Span::from_secs_f64(warmup_s),
            sample: keys.sample_ms,
            seed: keys.seed,
            hosts,
            wiring,
            layout,
            network,
            source: document.source(),
            given,
            written,
            assumed_headers: traces.assumed,
            table: with_digests(document.table, &keys.hosts),
        })
    }
}

/// The name of each block, and of each of its hosts.
fn names_by_block(blocks: &[HostBlock]) -> Vec<(Option<String>, Vec<String>)> {
    let mut hosts = 0;
    let block = |block: &HostBlock| {
        let name = |number| match &block.name {
            Some(name) if block.count == 1 => name.clone(),
            Some(name) => format!("{name}-{number}"),
            None => format!("host-{}", hosts + number - 1),
        };
        let names = (1..=block.count).map(name).collect();
        hosts += block.count;
        (block.name.clone(), names)
    };
    blocks.iter().map(block).collect()
}

/// Writes beside each law of one's own which one it was.
fn with_digests(mut scenario: Table, hosts: &[HostKeys]) -> Table {
    let blocks = scenario.get_mut(key!(ScenarioKeys, hosts)).and_then(toml::Value::as_array_mut);
    for (block, host) in blocks.into_iter().flatten().zip(hosts) {
        if let (Some(block), Some(LawName::Own(own))) = (block.as_table_mut(), host.law.0.map(|choice| choice.name)) {
            block.insert(key!(HostKeys, law_digest).to_owned(), own.digest().into());
        }
    }
    scenario
}

impl HostKind {
    /// The congestion control's name in the kernel, which calls "newreno" "reno". "kernel-cdg" is the kernel's own "cdg", where
    /// that name alone is our law.
    pub fn kernel_congestion_control(&self) -> &str {
        match self.congestion_control.as_str() {
            "newreno" => "reno",
            name => name.strip_prefix("kernel-").unwrap_or(name),
        }
    }
}

fn host_blocks(document: &Document, keys: &ScenarioKeys, wiring: &Wiring) -> Result<Vec<HostBlock>, ScenarioError> {
    let blocks = Path::top(key!(ScenarioKeys, hosts));
    let mut hosts = Vec::new();
    let (mut host_count, mut flow_count, mut transfers) = (0, 0, 0.0);
    for (index, host) in keys.hosts.iter().enumerate() {
        let here = blocks.index(index);
        let count = host.count;
        host_count += count;
        if host_count > MAX_HOSTS {
            let problem = format!("makes {host_count} hosts with the blocks before it, which is too many");
            let accepted = format!("at most {MAX_HOSTS} hosts in all");
            return Err(document.error(&here.key(key!(HostKeys, count)), problem, accepted));
        }
        if host.name.is_some() && keys.hosts[..index].iter().any(|before| before.name == host.name) {
            let problem = "is the name of another block's hosts";
            return Err(document.error(&here.key(key!(HostKeys, name)), problem, "a name for each block of its own"));
        }
        let node = host.node.as_deref();
        wiring.check(document, &here.key(key!(HostKeys, node)), node, count)?;
        let flows = flow_blocks(document, &host.flows, &here.key(key!(HostKeys, flows)), keys.duration_s)?;
        for (at, flow) in flows.iter().enumerate() {
            let here = here.key(key!(HostKeys, flows)).index(at);
            wiring.check_flow(document, &here.key(key!(FlowKeys, to)), (node, flow.to.as_deref()), count)?;
            flow_count += count * flow.count;
            if flow_count > MAX_FLOWS {
                let problem = format!("makes {flow_count} connections with those before it, which is too many");
                let accepted = format!("at most {MAX_FLOWS} connections in all");
                return Err(document.error(&here.key(key!(FlowKeys, count)), problem, accepted));
            }
            let until =
                Time::ZERO + flow.stop.map_or(Span::MAX, |(_, stop)| stop).min(Span::from_secs_f64(keys.duration_s));
            let expected = flow.kind.expected_arrivals(Time::ZERO + flow.start.0, until);
            transfers += expected.unwrap_or(0.0) * (count * flow.count) as f64;
            if transfers + flow_count as f64 > MAX_CONNECTIONS as f64 {
                let problem =
                    format!("makes some {transfers:.0} transfers with the arrivals before it, which is too many");
                let accepted = format!(
                    "at most {MAX_CONNECTIONS} connections in all: a lower rate, larger transfers, or a shorter run"
                );
                return Err(document.error(&here, problem, accepted));
            }
        }
        let parts = host.leave_out.map_or(Parts::ALL, Parts::without);
        let kind = HostKind {
            era: host.era,
            node: host.node.clone(),
            network: crate::build::host(keys, host, !flows.is_empty()),
            tcp: stack(document, host, &here)?,
            changed_switches: changed_switches(document, index),
            congestion_control: host.congestion_control.clone(),
            law: host.law.0,
            last_link: host.last_link.as_ref().and_then(LastLink::of),
            agent: host.agent,
            policy: host.policy.clone(),
            rts: host.rts.unwrap_or_default(),
            parts: host.scaled.map_or(parts, |which| parts.scaled(which, host.scale.unwrap_or(1.0))),
        };
        hosts.push(HostBlock { name: host.name.clone(), count, kind, flows });
    }
    if host_count == 0 {
        let count = blocks.index(0).key(key!(HostKeys, count));
        return Err(document.error(&count, "leaves no host in the whole scenario", "a number above 0 in some block"));
    }
    Ok(hosts)
}
