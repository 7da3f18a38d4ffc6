//! Named nodes and links: from `[[links]]`, `hosts.node` and `flows.to` to numbers.
//!
//! A link's names create nodes, numbered in order of first mention. In a block of several equal links or hosts, `#` in
//! a name stands for the number within the block, from 1.

use crate::ScenarioError;
use crate::keys::{LinkKeys, ScenarioKeys};
use lasthop_keys::{Document, Path, Problem, key, nearest};

/// The most links of all blocks together.
pub(crate) const MAX_LINKS: usize = 1_000;

/// The nodes and links of a checked scenario; both empty without `[[links]]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wiring {
    /// The names of the nodes, by number.
    pub(crate) nodes: Vec<String>,
    /// The links, in the order of the file.
    pub(crate) links: Vec<Link>,
}

/// One link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Its `[[links]]` block.
    pub(crate) block: usize,
    /// The numbers of its nodes, in the order of `between`.
    pub(crate) ends: (usize, usize),
}

impl Wiring {
    pub(crate) fn read(document: &Document, blocks: &[LinkKeys]) -> Result<Self, ScenarioError> {
        let mut wiring = Self::default();
        for (block, keys) in blocks.iter().enumerate() {
            wiring.read_block(document, block, keys)?;
        }
        wiring.check_that_all_are_joined(document)?;
        Ok(wiring)
    }

    /// Whether the scenario has links at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// The number of the node with this name, for the `number`th of several equal hosts or links, from 1.
    pub(crate) fn node(&self, name: &str, number: usize) -> Option<usize> {
        let name = numbered(name, number);
        self.nodes.iter().position(|node| *node == name)
    }

    /// The link between the nodes of these names, and whether its first node is the first of them.
    pub(crate) fn link_between(&self, one: &str, other: &str) -> Option<(usize, bool)> {
        let ends = (self.node(one, 1)?, self.node(other, 1)?);
        let forth = self.links.iter().position(|link| link.ends == ends).map(|link| (link, true));
        forth
            .or_else(|| self.links.iter().position(|link| (link.ends.1, link.ends.0) == ends).map(|link| (link, false)))
    }

    /// Refuses a name without a node for one of `count` hosts, a name without links, and links without a name.
    pub(crate) fn check(
        &self,
        document: &Document,
        key: &Path,
        name: Option<&str>,
        count: usize,
    ) -> Result<(), ScenarioError> {
        let fail = |problem: String, accepted: String, did_you_mean: Option<String>| {
            Err(document.problem(key, Problem { problem, accepted, did_you_mean }))
        };
        let nodes = || self.nodes.join(", ");
        match name {
            None if self.is_empty() => Ok(()),
            None => fail("is not there, and a scenario with [[links]] cannot be without it".into(), nodes(), None),
            Some(_) if self.is_empty() => fail(
                "names a node, and without [[links]] there are none".into(),
                "no such key, or blocks [[links]]".into(),
                None,
            ),
            Some(name) => match (1..=count).find(|number| self.node(name, *number).is_none()) {
                None => Ok(()),
                Some(number) => {
                    let names: Vec<&str> = self.nodes.iter().map(String::as_str).collect();
                    let name = numbered(name, number);
                    let meant = nearest(&name, &names).map(|node| format!("\"{node}\""));
                    fail(format!("no link names a node \"{name}\""), nodes(), meant)
                }
            },
        }
    }

    /// Refuses a connection of one of `count` hosts that stays on the host's own node.
    pub(crate) fn check_flow(
        &self,
        document: &Document,
        key: &Path,
        (from, to): (Option<&str>, Option<&str>),
        count: usize,
    ) -> Result<(), ScenarioError> {
        self.check(document, key, to, count)?;
        let (Some(from), Some(to)) = (from, to) else { return Ok(()) };
        match (1..=count).find(|number| numbered(from, *number) == numbered(to, *number)) {
            None => Ok(()),
            Some(number) => {
                let problem = format!("\"{}\" is where the host itself sits", numbered(to, number));
                Err(document.error(key, problem, "another node"))
            }
        }
    }

    fn read_block(&mut self, document: &Document, block: usize, keys: &LinkKeys) -> Result<(), ScenarioError> {
        let here = Path::top(key!(ScenarioKeys, links)).index(block);
        let (count, [one, other]) = (keys.count, &keys.between);
        let fail = |problem: String, accepted: String| {
            Err(document.error(&here.key(key!(LinkKeys, count)), problem, accepted))
        };
        if count > 1 && !keys.between.iter().any(|name| name.contains('#')) {
            let problem = format!("makes {count} links between the same two nodes");
            return fail(problem, "1, or # in a name of `between`".to_owned());
        }
        let all = self.links.len() + count;
        if all > MAX_LINKS {
            let problem = format!("makes {all} links with the blocks before it, which is too many");
            return fail(problem, format!("at most {MAX_LINKS} links in all"));
        }
        for number in 1..=count {
            let ends = (self.name(numbered(one, number)), self.name(numbered(other, number)));
            let (from, to) = (&self.nodes[ends.0], &self.nodes[ends.1]);
            let problem = if ends.0 == ends.1 {
                format!("joins {from} with itself")
            } else if let Some(twin) = self.links.iter().find(|link| link.ends == ends || link.ends == (ends.1, ends.0))
            {
                format!("joins {from} and {to}, as links[{}] does already", twin.block)
            } else {
                self.links.push(Link { block, ends });
                continue;
            };
            return Err(document.error(
                &here.key(key!(LinkKeys, between)),
                problem,
                "two nodes that no other link joins",
            ));
        }
        Ok(())
    }

    /// The number of a node, new if no link has named it before.
    fn name(&mut self, name: String) -> usize {
        self.nodes.iter().position(|node| *node == name).unwrap_or_else(|| {
            self.nodes.push(name);
            self.nodes.len() - 1
        })
    }

    fn check_that_all_are_joined(&self, document: &Document) -> Result<(), ScenarioError> {
        let mut reached: Vec<bool> = (0..self.nodes.len()).map(|node| node == 0).collect();
        for _ in 0..self.nodes.len() {
            for Link { ends: (one, other), .. } in &self.links {
                let either = reached[*one] || reached[*other];
                (reached[*one], reached[*other]) = (either, either);
            }
        }
        match self.links.iter().find(|link| !reached[link.ends.0]) {
            None => Ok(()),
            Some(link) => {
                let key = Path::top(key!(ScenarioKeys, links)).index(link.block).key(key!(LinkKeys, between));
                let (first, lost) = (&self.nodes[0], &self.nodes[link.ends.0]);
                let problem = format!("no way leads from {first} to {lost}");
                Err(document.error(&key, problem, "links that join all nodes with each other"))
            }
        }
    }
}

fn numbered(name: &str, number: usize) -> String {
    name.replace('#', &number.to_string())
}
