//! `[[changes]]`: what of the network is different from some moment on.

use crate::build::{milliseconds, probability, rate};
use crate::document::Document;
use crate::error::ScenarioError;
use crate::key_path::{Path, nearest};
use crate::scenario::{float, text};
use crate::wiring::Wiring;
use lasthop_network::{AccessConfig, Change, Changed, DirectionChange, Topology, Way};
use lasthop_units::{Span, Time};
use toml::{Table, Value};

/// What a block is about, and the keys that it may have for that.
const PARTS: [(&str, &[&str]); 4] = [
    ("link", &["rate_mbps", "back_rate_mbps", "delay_ms", "back_delay_ms", "loss", "back_loss"]),
    ("path", &["rate_mbps", "rtt_ms", "loss"]),
    ("access", &["rate_mbps", "delay_ms"]),
    ("hosts", &["rate_mbps", "frame_error_rate"]),
];
/// What is no change itself.
const WHERE: [&str; 4] = ["at_s", "of", "between", "hosts"];

/// Fills in what a block is about where it follows from its other keys.
pub(crate) fn complete(table: &mut Table) {
    let blocks = table.get_mut("changes").and_then(Value::as_array_mut);
    for block in blocks.into_iter().flatten().filter_map(Value::as_table_mut) {
        let of = ["between", "hosts"].map(|key| block.contains_key(key));
        let of = match of {
            [true, _] => "link",
            [false, true] => "hosts",
            [false, false] => "path",
        };
        block.entry("of").or_insert_with(|| Value::String(of.into()));
    }
}

/// The changes of a checked scenario, each with the number of its block. What is about stations is not looked at with a wired
/// access, nor the other way round.
pub(crate) fn changes(
    document: &Document,
    wiring: &Wiring,
    topology: &Topology,
    hosts: usize,
) -> Result<Vec<(usize, Change)>, ScenarioError> {
    let blocks = document.table.get("changes").and_then(Value::as_array);
    let mut changes = Vec::new();
    for (index, block) in blocks.into_iter().flatten().enumerate() {
        let block = block.as_table().expect("a checked block is a table");
        let reader = Reader { document, wiring, block, here: Path::default().key("changes").index(index) };
        let at = Time::ZERO + Span::from_secs_f64(float(block, "at_s"));
        let all = reader.read(topology, hosts)?;
        changes.extend(all.into_iter().map(|what| (index, Change { at, what })));
    }
    Ok(changes)
}

/// One block.
struct Reader<'a> {
    document: &'a Document,
    wiring: &'a Wiring,
    block: &'a Table,
    here: Path,
}

impl Reader<'_> {
    fn read(&self, topology: &Topology, hosts: usize) -> Result<Vec<Changed>, ScenarioError> {
        let of = text(self.block, "of");
        self.check_keys(of)?;
        let block = self.block;
        let given = |key: &str| block.contains_key(key);
        let new_rate = given("rate_mbps").then(|| rate(block, "rate_mbps"));
        let new_loss = given("loss").then(|| probability(block, "loss"));
        let on_links = matches!(topology, Topology::Links(_));
        match of {
            "link" => self.link(),
            _ if on_links => {
                let problem = format!("\"{of}\" is no part of a scenario with [[links]]");
                Err(self.document.error(&self.here.key("of"), problem, "\"link\", with the two nodes in `between`"))
            }
            "path" => Ok(vec![Changed::Path {
                rtt: given("rtt_ms").then(|| milliseconds(block, "rtt_ms")),
                rate: new_rate,
                loss: new_loss,
            }]),
            "access" => Ok(match topology {
                Topology::AccessPoint { access: AccessConfig::Wired(_), .. } => vec![Changed::Wired {
                    rate: new_rate,
                    delay: given("delay_ms").then(|| milliseconds(block, "delay_ms")),
                }],
                _ => Vec::new(),
            }),
            _ => {
                let chosen = self.hosts(hosts)?;
                let frame_error_rate = given("frame_error_rate").then(|| probability(block, "frame_error_rate"));
                Ok(match topology {
                    Topology::AccessPoint { access: AccessConfig::Wifi(_), .. } => chosen
                        .into_iter()
                        .map(|host| Changed::Station { host, rate: new_rate, frame_error_rate })
                        .collect(),
                    _ => Vec::new(),
                })
            }
        }
    }

    /// Refuses keys that do not go with what the block is about, and a block without any.
    fn check_keys(&self, of: &str) -> Result<(), ScenarioError> {
        let (_, mine) = PARTS.iter().find(|(name, _)| *name == of).expect("a checked word is one of these");
        let belongs = |key: &str| match key {
            "between" => of == "link",
            "hosts" => of == "hosts",
            key => WHERE.contains(&key) || mine.contains(&key),
        };
        if let Some(key) = self.block.keys().find(|key| !belongs(key)) {
            let problem = format!("is nothing that changes with of = \"{of}\"");
            return Err(self.document.error(&self.here.key(key), problem, mine.join(", ")));
        }
        if !self.block.keys().any(|key| mine.contains(&key.as_str())) {
            return Err(self.document.error(&self.here, "changes nothing".into(), mine.join(", ")));
        }
        Ok(())
    }

    fn link(&self) -> Result<Vec<Changed>, ScenarioError> {
        let key = self.here.key("between");
        let fail = |problem: String, accepted: String, meant: Option<String>| {
            Err(self.document.error_with_hint(&key, problem, accepted, meant))
        };
        if self.wiring.is_empty() {
            let accepted = "\"path\", \"access\", \"hosts\", or blocks [[links]]";
            let problem = "\"link\" is about a link, and without [[links]] there are none".to_owned();
            return Err(self.document.error(&self.here.key("of"), problem, accepted));
        }
        let names: Vec<&str> = self.wiring.nodes.iter().map(String::as_str).collect();
        let Some(ends) = self.block.get("between").and_then(Value::as_array) else {
            return fail(
                "is not there, and says which link changes".into(),
                "two nodes that a link joins".into(),
                None,
            );
        };
        let ends: Vec<&str> = ends.iter().filter_map(Value::as_str).collect();
        let [one, other] = ends[..] else { panic!("a checked link has two ends") };
        if let Some(name) = [one, other].into_iter().find(|name| !names.contains(name)) {
            let meant = nearest(name, &names).map(|node| format!("\"{node}\""));
            return fail(format!("no link names a node \"{name}\""), names.join(", "), meant);
        }
        let Some((link, forwards)) = self.wiring.link_between(one, other) else {
            return fail(format!("no link joins {one} and {other}"), "two nodes that a link joins".into(), None);
        };
        let changed = |forth: bool| {
            let prefix = if forth { "" } else { "back_" };
            let key = |name: &str| Some(format!("{prefix}{name}")).filter(|key| self.block.contains_key(key));
            let to = DirectionChange {
                rate: key("rate_mbps").map(|key| rate(self.block, &key)),
                delay: key("delay_ms").map(|key| milliseconds(self.block, &key)),
                loss: key("loss").map(|key| probability(self.block, &key)),
            };
            let way = if forth == forwards { Way::Forth } else { Way::Back };
            (to != DirectionChange::default()).then_some(Changed::Link { link, way, to })
        };
        Ok([true, false].into_iter().filter_map(changed).collect())
    }

    /// The hosts that the block is about.
    fn hosts(&self, count: usize) -> Result<Vec<usize>, ScenarioError> {
        let Some(listed) = self.block.get("hosts").and_then(Value::as_array) else { return Ok((0..count).collect()) };
        let listed = listed.iter().filter_map(Value::as_integer).filter_map(|number| usize::try_from(number).ok());
        let listed: Vec<usize> = listed.collect();
        match listed.iter().find(|host| **host >= count) {
            None => Ok(listed),
            Some(host) => {
                let problem = format!("there is no host {host}");
                let accepted = format!("hosts from 0 to {}, in the order of the blocks", count - 1);
                Err(self.document.error(&self.here.key("hosts"), problem, accepted))
            }
        }
    }
}
