//! Connections of the interface that are not under control, by why: left alone as configured, or escaped.

use crate::host_tcp::{Left, SocketSample};
use crate::rules;
use lasthop_policy::governor::FlowTurn;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Connections that are not under control for one reason, without idle ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ungoverned {
    /// The reason, as one word of [`Ungoverned::words`].
    pub why: String,
    /// Whether the configuration would have them controlled; `false`: it leaves them alone.
    pub escapes: bool,
    /// Their congestion controls.
    pub congestion_controls: Vec<String>,
    /// How many there are.
    pub connections: u32,
    /// Of those, the ones that are sending.
    pub busy: u32,
}

impl Ungoverned {
    /// The words of connections that escape, or of those that are left alone.
    pub fn words(escapes: bool) -> impl Iterator<Item = &'static str> {
        Left::ALL.into_iter().filter(move |left| left.escapes() == escapes).map(word)
    }

    /// All connections that are not under control, in the order of [`Left::ALL`].
    pub(crate) fn of<'s>(flows: impl Iterator<Item = (&'s SocketSample, &'s FlowTurn)>) -> Vec<Self> {
        let mut all: BTreeMap<Left, (BTreeSet<String>, u32, u32)> = BTreeMap::new();
        for (sample, flow) in flows {
            let Some(left) = sample.left else { continue };
            let (controls, connections, busy) = all.entry(left).or_default();
            controls.insert(sample.congestion_control.to_string());
            *connections += 1;
            *busy += u32::from(flow.seen.busy);
        }
        let of = |(left, (controls, connections, busy)): (Left, (BTreeSet<String>, u32, u32))| Self {
            why: word(left).to_owned(),
            escapes: left.escapes(),
            congestion_controls: controls.into_iter().collect(),
            connections,
            busy,
        };
        all.into_iter().map(of).collect()
    }

    fn reason(&self) -> String {
        let controls = self.congestion_controls.join(", ");
        let left = Left::ALL.into_iter().find(|left| word(*left) == self.why);
        left.map_or_else(|| self.why.clone(), |left| because(left, &controls))
    }
}

/// Many connections: `2 connections, 1 of them sending: ...`.
impl fmt::Display for Ungoverned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connections, busy, .. } = self;
        let plural = if *connections == 1 { "" } else { "s" };
        write!(f, "{connections} connection{plural}, {busy} of them sending: {}", self.reason())
    }
}

/// The word for metrics and programs.
pub(crate) const fn word(left: Left) -> &'static str {
    match left {
        Left::Cgroup => "cgroup",
        Left::Rule => "rule",
        Left::Name => "leave",
        Left::Chosen => "chosen",
        Left::Agent => "another-agent",
        Left::Locked => "route-locks",
        Left::Yet => "not-yet",
    }
}

fn because(left: Left, control: &str) -> String {
    match left {
        Left::Cgroup => "outside of `cgroup`, or in an excluded one".to_owned(),
        Left::Rule => "a rule leaves it alone".to_owned(),
        Left::Name => format!("`leave` names {control}"),
        Left::Chosen => format!("its application, or a BPF program, has chosen {control}"),
        Left::Agent => format!("another agent controls it ({control})"),
        Left::Locked => format!("its route locks the congestion control {control}"),
        Left::Yet => format!("not taken over yet, or the kernel refuses that ({control})"),
    }
}

/// Why one connection is not under control; `None`: it is.
pub(crate) fn reason(sample: &SocketSample) -> Option<String> {
    let left = sample.left?;
    if let (Left::Rule, Some(rule)) = (left, sample.rule) {
        return Some(format!("rule {}: left alone", rules::number(rule)));
    }
    let what = if left.escapes() { "escapes control" } else { "left alone" };
    Some(format!("{what}: {}", because(left, &sample.congestion_control)))
}
