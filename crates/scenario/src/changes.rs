//! `[[changes]]`: changes of the network at given times.
//!
//! A rate of 0 is a loss of 1 until there is another rate: the network has no rate of 0.

use crate::ScenarioError;
use crate::keys::{ChangeKeys, Part, ScenarioKeys};
use crate::trace::{Origin, SLOWEST_MBPS, What};
use crate::wiring::Wiring;
use lasthop_keys::{Document, Path, Problem, key, nearest};
use lasthop_network::{AccessConfig, Change, Changed, DirectionChange, HostConfig, Topology, Way};
use lasthop_units::{Probability, Rate, Time};
use std::collections::HashMap;

impl Part {
    /// The keys that may change there.
    pub(crate) fn changing(self) -> Vec<&'static str> {
        let (rate, delay, loss) = (key!(ChangeKeys, rate_mbps), key!(ChangeKeys, delay_ms), key!(ChangeKeys, loss));
        let back = [key!(ChangeKeys, back_rate_mbps), key!(ChangeKeys, back_delay_ms), key!(ChangeKeys, back_loss)];
        let (held, back_held) = (key!(ChangeKeys, held), key!(ChangeKeys, back_held));
        match self {
            Self::Link => [&[rate, delay, loss, held], &back[..], &[back_held]].concat(),
            Self::Path => vec![rate, key!(ChangeKeys, rtt_ms), loss, held],
            Self::Access => vec![rate, delay, held],
            Self::Hosts => {
                vec![rate, key!(ChangeKeys, mcs), key!(ChangeKeys, frame_error_rate), key!(ChangeKeys, snr_db), held]
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
        let trace = [key!(ChangeKeys, trace), key!(ChangeKeys, trace_digest), key!(ChangeKeys, opportunities_ms)];
        let all = [key!(ChangeKeys, at_s), key!(ChangeKeys, of)];
        all.into_iter().chain(trace).chain(which).collect()
    }
}

/// A change, the origin of its block, and its line in a long trace or 0.
pub(crate) type Made<'a> = (&'a Origin, u32, Change);

/// The changes of a scenario. Changes of stations are ignored with a wired access, and vice versa.
pub(crate) fn changes<'a>(
    document: &Document,
    (blocks, origins): (&[ChangeKeys], &'a [Origin]),
    wiring: &Wiring,
    topology: &Topology,
    hosts: &[HostConfig],
) -> Result<Vec<Made<'a>>, ScenarioError> {
    let mut changes = Vec::new();
    for (index, (block, origin)) in blocks.iter().zip(origins).enumerate() {
        let reader = Reader { document, wiring, index, origin, here: origin.path() };
        reader.check_keys(block.of)?;
        let mut add = |line: u32, block: &ChangeKeys| -> Result<(), ScenarioError> {
            let all = reader.read((block, line), topology, hosts)?;
            changes.extend(all.into_iter().map(|what| (origin, line, Change { at: Time::ZERO + block.at_s, what })));
            Ok(())
        };
        match &origin.what {
            What::Unread => {}
            What::Rows(rows) => {
                for row in rows.iter().filter(|row| row.changes_something()) {
                    let mut block = block.clone();
                    row.given().for_each(|(column, number)| block.set(column, number));
                    add(row.line(), &block)?;
                }
            }
            What::Keys | What::Row(_) | What::Opportunities(_) => add(0, block)?,
        }
    }
    break_links(&mut changes, topology, hosts);
    Ok(changes)
}

/// What loses packets or frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Lossy {
    Link(usize, Way),
    Station(usize),
}

/// Whether it is broken, and what it loses if it is not.
struct Losses {
    broken: bool,
    unbroken: Probability,
}

/// Writes a loss of 1 for each rate of 0, and what it was or has become meanwhile for the next rate.
fn break_links(changes: &mut [Made<'_>], topology: &Topology, hosts: &[HostConfig]) {
    let at_first = |lossy: Lossy| match (lossy, topology) {
        (Lossy::Link(link, Way::Forth), Topology::Links(links)) => links.links[link].forth.loss,
        (Lossy::Link(link, Way::Back), Topology::Links(links)) => links.links[link].back.loss,
        (Lossy::Station(host), Topology::AccessPoint { access: AccessConfig::Wifi(wifi), .. }) => {
            hosts[host].frame_error_rate.unwrap_or(wifi.frame_error_rate)
        }
        _ => Probability::ZERO,
    };
    let mut states: HashMap<Lossy, Losses> = HashMap::new();
    let mut in_order: Vec<&mut Change> = changes.iter_mut().map(|(_, _, change)| change).collect();
    in_order.sort_by_key(|change| change.at);
    for change in in_order {
        let (lossy, rate, loss, mends) = match &mut change.what {
            Changed::Link { link, way, to } => {
                (Lossy::Link(*link, *way), &mut to.rate, &mut to.loss, to.opportunities.is_some())
            }
            Changed::Station { host, rate, frame_error_rate, .. } => {
                (Lossy::Station(*host), rate, frame_error_rate, false)
            }
            _ => continue,
        };
        let state = states.entry(lossy).or_insert_with(|| Losses { broken: false, unbroken: at_first(lossy) });
        state.unbroken = loss.unwrap_or(state.unbroken);
        let was_broken = state.broken;
        state.broken = rate.map_or(was_broken && !mends, is_none);
        *rate = rate.filter(|rate| !is_none(*rate));
        if state.broken {
            *loss = Some(Probability::ONE);
        } else if was_broken {
            *loss = Some(state.unbroken);
        }
    }
}

fn is_none(rate: Rate) -> bool {
    rate.as_bps() == 0
}

/// One block.
struct Reader<'a> {
    document: &'a Document,
    wiring: &'a Wiring,
    /// Of the block in the table with all rows of traces.
    index: usize,
    origin: &'a Origin,
    here: Path,
}

impl Reader<'_> {
    /// What changes by these keys, from this line of a long trace or 0.
    fn read(
        &self,
        (block, line): (&ChangeKeys, u32),
        topology: &Topology,
        hosts: &[HostConfig],
    ) -> Result<Vec<Changed>, ScenarioError> {
        let &ChangeKeys {
            of,
            rate_mbps: rate,
            delay_ms: delay,
            rtt_ms: rtt,
            loss,
            mcs,
            frame_error_rate,
            snr_db,
            held,
            ..
        } = block;
        let opportunities = if let What::Opportunities(number) = self.origin.what { Some(number) } else { None };
        let access = match (of, topology) {
            (Part::Link, _) => return self.link(block, opportunities),
            (_, Topology::Links(_)) => {
                let problem = format!("\"{of}\" is no part of a scenario with [[links]]");
                let accepted = "\"link\", with the two nodes in `between`";
                return Err(self.document.error(&self.here.key(key!(ChangeKeys, of)), problem, accepted));
            }
            (_, Topology::AccessPoint { access, .. }) => access,
        };
        Ok(match (of, access) {
            (Part::Hosts, access) => {
                let chosen = self.hosts(block, hosts.len())?;
                if let Some(host) = chosen.iter().find(|host| hosts[**host].snr_db.is_some()) {
                    self.check_not_broken(line, rate, || {
                        format!("host {host} has an SNR, which says what it loses: snr_db = -10")
                    })?;
                }
                let station = |host| Changed::Station { host, rate, mcs, frame_error_rate, snr_db, held };
                let chosen = chosen.into_iter().map(station);
                chosen.filter(|_| matches!(access, AccessConfig::Wifi(_))).collect()
            }
            (of, access) => {
                self.check_not_broken(line, rate, || {
                    format!("a number from {SLOWEST_MBPS}, or held = true; only links and stations break")
                })?;
                match (of, access) {
                    (Part::Access, AccessConfig::Wired(_)) => vec![Changed::Wired { rate, delay, held, opportunities }],
                    (Part::Access, AccessConfig::Wifi(_)) => Vec::new(),
                    _ => vec![Changed::Path { rtt, rate, loss, held, opportunities }],
                }
            }
        })
    }

    /// Refuses a rate of 0.
    fn check_not_broken(
        &self,
        line: u32,
        rate: Option<Rate>,
        accepted: impl FnOnce() -> String,
    ) -> Result<(), ScenarioError> {
        match rate.filter(|rate| is_none(*rate)) {
            Some(_) => {
                let problem = "0 cannot be here".to_owned();
                Err(self.origin.error(self.document, line, key!(ChangeKeys, rate_mbps), (problem, accepted())))
            }
            None => Ok(()),
        }
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
        if !keys.iter().any(|key| mine.contains(key)) && matches!(self.origin.what, What::Keys | What::Row(_)) {
            return Err(self.document.error(&self.here, "changes nothing", mine.join(", ")));
        }
        Ok(())
    }

    fn link(&self, block: &ChangeKeys, opportunities: Option<usize>) -> Result<Vec<Changed>, ScenarioError> {
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
        let &ChangeKeys { rate_mbps: rate, delay_ms: delay, loss, held, .. } = block;
        let &ChangeKeys { back_rate_mbps, back_delay_ms, back_loss, back_held, .. } = block;
        let ways = [
            (forth, DirectionChange { rate, delay, loss, held, opportunities }),
            (
                back,
                DirectionChange {
                    rate: back_rate_mbps,
                    delay: back_delay_ms,
                    loss: back_loss,
                    held: back_held,
                    opportunities: None,
                },
            ),
        ];
        let changed = ways.into_iter().filter(|(_, to)| *to != DirectionChange::default());
        Ok(changed.map(|(way, to)| Changed::Link { link, way, to }).collect())
    }

    /// The hosts of the block.
    fn hosts(&self, block: &ChangeKeys, count: usize) -> Result<Vec<usize>, ScenarioError> {
        let Some(listed) = &block.hosts else { return Ok((0..count).collect()) };
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
