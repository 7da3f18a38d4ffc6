//! Connections of the interface that are not under control, by why: left alone as configured, or escaped.

use crate::tcp::host_tcp::{Left, SocketSample};
use crate::tcp::rules;
use lasthop_policy::governor::FlowTurn;
use lasthop_status::Ungoverned;
use std::collections::{BTreeMap, BTreeSet};

/// The words of connections that escape, or of those that are left alone.
pub(crate) fn words(escapes: bool) -> impl Iterator<Item = &'static str> {
    Left::ALL.into_iter().filter(move |left| left.escapes() == escapes).map(word)
}

/// All connections that are not under control, in the order of [`Left::ALL`].
pub(crate) fn of<'s>(flows: impl Iterator<Item = (&'s SocketSample, &'s FlowTurn)>) -> Vec<Ungoverned> {
    let mut all: BTreeMap<Left, (BTreeSet<String>, u32, u32)> = BTreeMap::new();
    for (sample, flow) in flows {
        let Some(left) = sample.left else { continue };
        let (controls, connections, busy) = all.entry(left).or_default();
        controls.insert(sample.congestion_control.to_string());
        *connections += 1;
        *busy += u32::from(flow.seen.busy);
    }
    let of = |(left, (controls, connections, busy)): (Left, (BTreeSet<String>, u32, u32))| {
        let congestion_controls = Vec::from_iter(controls);
        let because = because(left, &congestion_controls.join(", "));
        Ungoverned {
            why: word(left).to_owned(),
            because,
            escapes: left.escapes(),
            congestion_controls,
            connections,
            busy,
        }
    };
    all.into_iter().map(of).collect()
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
