//! `[[changes]]`: changes of the network at given times.

use crate::ScenarioError;
use crate::keys::{ChangeKeys, Part, ScenarioKeys};
use crate::wiring::Wiring;
use lasthop_keys::{Document, Path, Problem, key, nearest};
use lasthop_network::{AccessConfig, Change, Changed, DirectionChange, Topology, Way};
use lasthop_units::Time;

impl Part {
    /// The keys that may change there.
    fn changing(self) -> Vec<&'static str> {
        let (rate, delay, loss) = (key!(ChangeKeys, rate_mbps), key!(ChangeKeys, delay_ms), key!(ChangeKeys, loss));
        let back = [key!(ChangeKeys, back_rate_mbps), key!(ChangeKeys, back_delay_ms), key!(ChangeKeys, back_loss)];
        match self {
            Self::Link => [[rate, delay, loss], back].concat(),
            Self::Path => vec![rate, key!(ChangeKeys, rtt_ms), loss],
            Self::Access => vec![rate, delay],
            Self::Hosts => {
                vec![rate, key!(ChangeKeys, mcs), key!(ChangeKeys, frame_error_rate), key!(ChangeKeys, snr_db)]
            }
        }
    }

    /// Other keys of a block about it.
    fn telling(self) -> Vec<&'static str> {
        let which = match self {
            Self::Link => Some(key!(ChangeKeys, between)),
            Self::Hosts => Some(key!(ChangeKeys, hosts)),
            Self::Path | Self::Access => None,
        };
        [key!(ChangeKeys, at_s), key!(ChangeKeys, of)].into_iter().chain(which).collect()
    }
}

/// The changes of a scenario, each with the number of its block. Changes of stations are ignored with a wired access,
/// and vice versa.
pub(crate) fn changes(
    document: &Document,
    blocks: &[ChangeKeys],
    wiring: &Wiring,
    topology: &Topology,
    hosts: usize,
) -> Result<Vec<(usize, Change)>, ScenarioError> {
    let mut changes = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let list = Path::top(key!(ScenarioKeys, changes));
        let reader = Reader { document, wiring, block, index, here: list.index(index) };
        let all = reader.read(topology, hosts)?;
        changes.extend(all.into_iter().map(|what| (index, Change { at: Time::ZERO + block.at_s, what })));
    }
    Ok(changes)
}

/// One block.
struct Reader<'a> {
    document: &'a Document,
    wiring: &'a Wiring,
    block: &'a ChangeKeys,
    index: usize,
    here: Path,
}

impl Reader<'_> {
    fn read(&self, topology: &Topology, hosts: usize) -> Result<Vec<Changed>, ScenarioError> {
        let &ChangeKeys {
            of, rate_mbps: rate, delay_ms: delay, rtt_ms: rtt, loss, mcs, frame_error_rate, snr_db, ..
        } = self.block;
        self.check_keys(of)?;
        let access = match (of, topology) {
            (Part::Link, _) => return self.link(),
            (_, Topology::Links(_)) => {
                let problem = format!("\"{of}\" is no part of a scenario with [[links]]");
                let accepted = "\"link\", with the two nodes in `between`";
                return Err(self.document.error(&self.here.key(key!(ChangeKeys, of)), problem, accepted));
            }
            (_, Topology::AccessPoint { access, .. }) => access,
        };
        Ok(match (of, access) {
            (Part::Hosts, access) => {
                let station = |host| Changed::Station { host, rate, mcs, frame_error_rate, snr_db };
                let chosen = self.hosts(hosts)?.into_iter().map(station);
                chosen.filter(|_| matches!(access, AccessConfig::Wifi(_))).collect()
            }
            (Part::Access, AccessConfig::Wired(_)) => vec![Changed::Wired { rate, delay }],
            (Part::Access, AccessConfig::Wifi(_)) => Vec::new(),
            (Part::Path | Part::Link, _) => vec![Changed::Path { rtt, rate, loss }],
        })
    }

    /// Refuses keys that do not fit the block's subject, and a block without any.
    fn check_keys(&self, of: Part) -> Result<(), ScenarioError> {
        let block = self.document.table[key!(ScenarioKeys, changes)][self.index].as_table();
        let keys: Vec<&str> = block.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        let mine = of.changing();
        if let Some(key) = keys.iter().find(|key| !mine.contains(key) && !of.telling().contains(key)) {
            let problem = format!("is nothing that changes with of = \"{of}\"");
            return Err(self.document.error(&self.here.key(key), problem, mine.join(", ")));
        }
        if !keys.iter().any(|key| mine.contains(key)) {
            return Err(self.document.error(&self.here, "changes nothing", mine.join(", ")));
        }
        Ok(())
    }

    fn link(&self) -> Result<Vec<Changed>, ScenarioError> {
        let block = self.block;
        let key = self.here.key(key!(ChangeKeys, between));
        let fail = |problem: String, accepted: String, did_you_mean: Option<String>| {
            Err(self.document.problem(&key, Problem { problem, accepted, did_you_mean }))
        };
        if self.wiring.is_empty() {
            let accepted = "\"path\", \"access\", \"hosts\", or blocks [[links]]";
            let problem = "\"link\" is about a link, and without [[links]] there are none";
            return Err(self.document.error(&self.here.key(key!(ChangeKeys, of)), problem, accepted));
        }
        let two = || "two nodes that a link joins".to_owned();
        let Some([one, other]) = &block.between else {
            return fail("is not there, and says which link changes".into(), two(), None);
        };
        let names: Vec<&str> = self.wiring.nodes.iter().map(String::as_str).collect();
        if let Some(name) = [one, other].into_iter().find(|name| !names.contains(&name.as_str())) {
            let meant = nearest(name, &names).map(|node| format!("\"{node}\""));
            return fail(format!("no link names a node \"{name}\""), names.join(", "), meant);
        }
        let Some((link, forwards)) = self.wiring.link_between(one, other) else {
            return fail(format!("no link joins {one} and {other}"), two(), None);
        };
        let (forth, back) = if forwards { (Way::Forth, Way::Back) } else { (Way::Back, Way::Forth) };
        let ways = [
            (forth, DirectionChange { rate: block.rate_mbps, delay: block.delay_ms, loss: block.loss }),
            (back, DirectionChange { rate: block.back_rate_mbps, delay: block.back_delay_ms, loss: block.back_loss }),
        ];
        let changed = ways.into_iter().filter(|(_, to)| *to != DirectionChange::default());
        Ok(changed.map(|(way, to)| Changed::Link { link, way, to }).collect())
    }

    /// The hosts of the block.
    fn hosts(&self, count: usize) -> Result<Vec<usize>, ScenarioError> {
        let Some(listed) = &self.block.hosts else { return Ok((0..count).collect()) };
        match listed.iter().find(|host| **host >= count) {
            None => Ok(listed.clone()),
            Some(host) => {
                let problem = format!("there is no host {host}");
                let accepted = format!("hosts from 0 to {}, in the order of the blocks", count - 1);
                Err(self.document.error(&self.here.key(key!(ChangeKeys, hosts)), problem, accepted))
            }
        }
    }
}
