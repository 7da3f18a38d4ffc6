//! `lasthop doctor --network`: what stands between here and control, as far as this host can tell, and whether it is worth it.

mod look;

use crate::say;
use anyhow::Result;
use lasthop_kernel::Mode as KernelMode;
use lasthop_status::{ContainerCounts, Mode};
use look::{Facts, Firewall, Seen};
use serde::Serialize;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

/// A queue that stands for longer is worth shortening: more than the least queue that the policy `lasthop` aims at, several times.
const LONG_MS: f64 = 50.0;
/// One that stays below this under load is short already.
const SHORT_MS: f64 = 25.0;
/// Below this share of the bytes nothing much can be governed.
const LEAST_SHARE: f64 = 0.3;
/// A host that sends less than this puts no load on anything, in Mb/s.
const LOAD_MBPS: f64 = 1.0;

/// What `--network` is told.
pub(super) struct Asked<'a> {
    pub(super) interface: Option<&'a str>,
    /// The tunnels whose connections the configuration has the agent govern.
    pub(super) tunnels: &'a [String],
    /// Whether it has the agent govern connections of containers.
    pub(super) containers: bool,
    /// Whether the configuration that was read names a group key; `None`: none was read.
    pub(super) has_key: Option<bool>,
    pub(super) peer: Option<Ipv4Addr>,
    pub(super) load: Option<SocketAddr>,
    pub(super) seconds: u64,
    pub(super) json: bool,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Finding {
    about: &'static str,
    /// `null`: it is not known.
    fine: Option<bool>,
    text: String,
}

/// The last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Advice {
    ForYou,
    NotForYou,
    Try,
}

/// What `--json` prints. `schema` is raised when a key changes its meaning or goes.
#[derive(Serialize)]
struct Printed {
    schema: u32,
    findings: Vec<Finding>,
    advice: Advice,
    because: String,
}

/// Looks, and says what it has found: exit code 1 where lasthop is not for this network.
pub(super) fn run(asked: &Asked<'_>, kernel: KernelMode) -> Result<ExitCode> {
    let facts = look::look(asked)?;
    let findings = findings(&facts, asked, kernel);
    let (advice, because) = advice(&facts, kernel);
    if asked.json {
        let printed = Printed { schema: 1, findings, advice, because };
        say(&serde_json::to_string_pretty(&printed)?)?;
    } else {
        let lines = findings.iter().map(|finding| {
            let mark = finding.fine.map_or("?", |fine| if fine { "ok" } else { "!!" });
            format!("{mark:<3}{:<11}{}\n", finding.about, finding.text)
        });
        say(&format!("{}\n{advice} {because}", lines.collect::<String>()))?;
    }
    Ok(if advice == Advice::NotForYou { ExitCode::from(crate::FAILED) } else { ExitCode::SUCCESS })
}

fn findings(facts: &Facts, asked: &Asked<'_>, kernel: KernelMode) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |about, fine, text: String| findings.push(Finding { about, fine, text });
    match kernel {
        KernelMode::Control => find("kernel", Some(true), "it can control".to_owned()),
        _ => find(
            "kernel",
            Some(false),
            "it cannot do all that control needs; `lasthop doctor` says what is missing".to_owned(),
        ),
    }
    match &facts.agent {
        None => find(
            "agent",
            Some(false),
            format!("none runs on {}, or it may not be asked (be root): most of this is not known", facts.interface),
        ),
        Some(agent) if !agent.loaded => {
            find("agent", Some(false), "it runs and can do nothing now; its log says why".to_owned());
        }
        Some(agent) => find("agent", Some(true), format!("runs on {}, mode {}", facts.interface, agent.mode)),
    }
    match (&facts.tunnel, &facts.leaves_by) {
        (Some(kind), _) => find(
            "route",
            Some(false),
            format!("{} is a tunnel ({kind}): its other end is not behind your access point", facts.interface),
        ),
        (None, Some(other)) if asked.tunnels.contains(other) => find(
            "route",
            Some(true),
            format!("what this host sends goes through {other}, whose connections the agent governs (tunnels)"),
        ),
        (None, Some(other)) if *other != facts.interface => {
            let hint = match &facts.leaves_by_tunnel {
                Some(kind) => format!(": a tunnel ({kind}), to be named in the agent's `tunnels`"),
                None => String::new(),
            };
            let text = format!("what this host sends leaves by {other}, not by {}{hint}", facts.interface);
            find("route", Some(false), text);
        }
        (None, Some(_)) => find("route", Some(true), format!("what this host sends leaves by {}", facts.interface)),
        (None, None) => find("route", Some(false), "there is no default route".to_owned()),
    }
    let (fine, text) = peers(facts, asked.peer);
    find("peers", fine, text);
    match &facts.firewall {
        Firewall::Unknown(why) => find("firewall", None, why.clone()),
        Firewall::Open => {
            find("firewall", Some(true), "nftables lets beacons in, as far as its rules can be read".to_owned())
        }
        Firewall::Drops(chain) => find(
            "firewall",
            Some(false),
            format!("a rule of nftables' chain {chain} drops or rejects UDP port 29470: beacons"),
        ),
        Firewall::Closed(chain) => find(
            "firewall",
            None,
            format!(
                "nftables' chain {chain} drops what no rule accepts, and none accepts UDP port 29470 by its number"
            ),
        ),
    }
    let (fine, text) = match asked.has_key {
        Some(true) => (Some(true), "a group key is configured"),
        Some(false) => (Some(false), "none: anybody on the network can claim a part of the rate (`lasthop key`)"),
        None => (None, "no configuration was read"),
    };
    find("key", fine, text.to_owned());
    let (fine, text) = containers(facts, asked);
    find("containers", Some(fine), text);
    if let Some(seen) = &facts.seen {
        let (fine, text) = seen.share_in_words();
        find("share", fine, text);
        let (fine, text) = seen.queue_in_words();
        find("queue", fine, text);
    }
    findings
}

/// How many agents are heard, and whether they should be more.
fn peers(facts: &Facts, named: Option<Ipv4Addr>) -> (Option<bool>, String) {
    let Some(agent) = &facts.agent else { return (None, "not known without an agent".to_owned()) };
    let rejected: Vec<String> = agent
        .rejected
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(cause, count)| format!("{cause} {count}"))
        .collect();
    let rejected = if rejected.is_empty() {
        String::new()
    } else {
        format!("; not heard, by cause: {} (docs/guide/runbook.md#peers)", rejected.join(", "))
    };
    if agent.mode == Mode::Observe {
        return (None, format!("{} heard; in mode observe nobody hears this host{rejected}", agent.peers));
    }
    let relay = agent.relay.as_ref().map_or(String::new(), |relay| format!("; relay {relay}"));
    let isolated = match (named, facts.reaches_peer) {
        (Some(peer), Some(false)) => {
            let mends = if agent.relay.is_some() {
                ""
            } else {
                " (`lasthop relay` passes beacons on: docs/guide/agent-peers.md#a-relay)"
            };
            format!("; {peer} does not answer on the link: the access point isolates its clients, or it is off{mends}")
        }
        (Some(peer), Some(true)) => {
            format!("; {peer} answers on the link: no isolation, so look at its agent, key and firewall")
        }
        _ if agent.relay.is_some() => String::new(),
        _ if facts.neighbours == 0 => {
            "; no other device answers on the link: the access point may isolate its clients \
             (--peer ADDRESS of another device tries it; `lasthop relay` mends it)"
                .to_owned()
        }
        _ => format!("; {} other devices answer on the link", facts.neighbours),
    };
    match agent.peers {
        0 => (Some(false), format!("no other agent is heard{isolated}{relay}{rejected}")),
        count => (Some(true), format!("{count} heard{relay}{rejected}")),
    }
}

/// What has a network of its own on this host, and whether it is governed. Of containers an agent that governs them knows best.
fn containers(facts: &Facts, asked: &Asked<'_>) -> (bool, String) {
    let told = facts.agent.as_ref().and_then(|agent| agent.containers);
    let count = facts.containers;
    let of_their_own =
        |verdict: &str| Some(format!("{count} with a network of their own, whose connections {verdict}"));
    let (fine, containers) = match (told, asked.containers) {
        (Some(told), _) if told == ContainerCounts::default() => (true, None),
        (Some(told), _) => {
            let governs = told.governed > 0 || told.elsewhere == 0;
            (governs && told.closed == 0 && told.hidden == 0, Some(told.to_string()))
        }
        (None, _) if count == 0 => (true, None),
        (None, false) => {
            (false, of_their_own("are not governed: containers = true in the agent's configuration does that"))
        }
        (None, true) if facts.agent.is_some() => (
            false,
            of_their_own(
                "the agent that runs does not govern: containers = true takes a restart, and a kernel for mode control",
            ),
        ),
        (None, true) => (true, of_their_own("the agent governs (containers)")),
    };
    let machines = (facts.machines > 0)
        .then(|| format!("{} virtual machines, whose connections only an agent in each can govern", facts.machines));
    let fine = fine && facts.machines == 0;
    match Vec::from_iter(containers.into_iter().chain(machines)) {
        none if none.is_empty() => (fine, "no container or virtual machine has a network of its own here".to_owned()),
        some => (fine, some.join("; ")),
    }
}

/// The last line.
fn advice(facts: &Facts, kernel: KernelMode) -> (Advice, String) {
    if kernel != KernelMode::Control && kernel != KernelMode::Clamp {
        return (Advice::NotForYou, "this kernel cannot bound anything".to_owned());
    }
    if facts.tunnel.is_some() {
        let because = format!(
            "the interface below the tunnel {0}, with tunnels = [\"{0}\"] in the agent's configuration",
            facts.interface
        );
        return (Advice::Try, because);
    }
    let peers = facts.agent.as_ref().map_or(0, |agent| agent.peers);
    let Some(seen) = &facts.seen else {
        return (
            Advice::Try,
            "lasthop trial, once an agent runs here and on the other devices that send much".to_owned(),
        );
    };
    if let Some(share) = seen.share().filter(|share| *share < LEAST_SHARE && seen.mbps() >= LOAD_MBPS) {
        return (
            Advice::NotForYou,
            format!(
                "of what passes here only {:.0} % is TCP of this host; the agent governs nothing else",
                100.0 * share
            ),
        );
    }
    match seen.queue_ms {
        Some(queue) if queue < SHORT_MS && seen.mbps() >= LOAD_MBPS && !seen.controls => (
            Advice::NotForYou,
            format!(
                "round trips rise by {queue:.0} ms only while {:.1} Mb/s pass: your access point shortens its queue already, \
                 or something else is slower",
                seen.mbps()
            ),
        ),
        Some(queue) if queue >= LONG_MS && peers > 0 => {
            let many = if peers == 1 { "another agent is".to_owned() } else { format!("{peers} other agents are") };
            (Advice::ForYou, format!("a queue of {queue:.0} ms stands here, and {many} heard; prove it: lasthop trial"))
        }
        Some(queue) if queue >= LONG_MS => (
            Advice::Try,
            format!(
                "lasthop trial: a queue of {queue:.0} ms stands here, but no other agent is heard, and the queue is everybody's"
            ),
        ),
        _ if seen.controls => {
            (Advice::Try, "lasthop trial: this host controls, and the queue without it is not seen".to_owned())
        }
        _ => (
            Advice::Try,
            "lasthop trial at a busy hour, or with --load: no long queue was seen, and no load that would make one"
                .to_owned(),
        ),
    }
}

impl Seen {
    /// What passed the interface, in Mb/s.
    fn mbps(&self) -> f64 {
        self.bytes as f64 * 8e-6 / self.seconds.max(0.1)
    }

    /// Payload of this host's connections, of all bytes of the interface; `None`: hardly any passed.
    fn share(&self) -> Option<f64> {
        (self.bytes > 10_000).then(|| (self.tcp_bytes as f64 / self.bytes as f64).min(1.0))
    }

    fn share_in_words(&self) -> (Option<bool>, String) {
        let Some(share) = self.share() else {
            return (None, format!("hardly anything passed in {:.0} s", self.seconds));
        };
        let text = format!(
            "{:.0} % of the {:.1} Mb/s that passed in {:.0} s were payload of this host's TCP, which it can govern; the rest are headers, \
             UDP (QUIC), and what is forwarded",
            100.0 * share,
            self.mbps(),
            self.seconds
        );
        (Some(share >= LEAST_SHARE), text)
    }

    fn queue_in_words(&self) -> (Option<bool>, String) {
        let under = if self.controls { "under control, " } else { "" };
        match self.queue_ms {
            None => (None, "no connection was sending: --load SERVER makes it so (`lasthop trial serve`)".to_owned()),
            Some(queue) => (
                Some(queue < LONG_MS),
                format!("{under}round trips {queue:.0} ms above the lowest, at {:.1} Mb/s", self.mbps()),
            ),
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ForYou => "for you because",
            Self::NotForYou => "not for you because",
            Self::Try => "try:",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::look::AgentFacts;
    use super::*;
    use lasthop_status::RelayStatus;
    use std::collections::BTreeMap;

    fn facts(peers: u32, queue_ms: Option<f64>, tcp_bytes: u64) -> Facts {
        Facts {
            interface: "wlan0".to_owned(),
            agent: Some(AgentFacts {
                loaded: true,
                mode: Mode::Advise,
                peers,
                rejected: BTreeMap::new(),
                relay: None,
                containers: None,
            }),
            leaves_by: Some("wlan0".to_owned()),
            tunnel: None,
            leaves_by_tunnel: None,
            neighbours: 2,
            reaches_peer: None,
            firewall: Firewall::Open,
            containers: 0,
            machines: 0,
            seen: Some(Seen { seconds: 10.0, bytes: 10_000_000, tcp_bytes, queue_ms, controls: false }),
        }
    }

    fn last(facts: &Facts) -> String {
        let (advice, because) = advice(facts, KernelMode::Control);
        format!("{advice} {because}")
    }

    #[test]
    fn it_ends_with_one_of_three_sentences() {
        let long = facts(3, Some(230.0), 9_000_000);
        assert_eq!(
            last(&long),
            "for you because a queue of 230 ms stands here, and 3 other agents are heard; prove it: lasthop trial"
        );
        let alone = facts(0, Some(230.0), 9_000_000);
        assert!(
            last(&alone).starts_with("try: lasthop trial: a queue of 230 ms stands here, but no other agent is heard")
        );
        let short = facts(3, Some(8.0), 9_000_000);
        assert!(last(&short).starts_with("not for you because round trips rise by 8 ms only while 8.0 Mb/s pass"));
        let quic = facts(3, Some(230.0), 900_000);
        assert_eq!(
            last(&quic),
            "not for you because of what passes here only 9 % is TCP of this host; the agent governs nothing else"
        );
        let idle = facts(3, None, 9_000_000);
        assert!(last(&idle).starts_with("try: lasthop trial at a busy hour"));
        let vpn = Facts { interface: "wg0".to_owned(), tunnel: Some("WireGuard".to_owned()), ..long.clone() };
        assert_eq!(
            last(&vpn),
            "try: the interface below the tunnel wg0, with tunnels = [\"wg0\"] in the agent's configuration"
        );
        let without = Facts { agent: None, seen: None, ..long.clone() };
        assert!(last(&without).starts_with("try: lasthop trial, once an agent runs here"));
        assert_eq!(advice(&long, KernelMode::Observe).0, Advice::NotForYou);
        // Under control a short queue says nothing.
        let mut controls = short;
        controls.seen.as_mut().expect("it was seen").controls = true;
        assert!(last(&controls).starts_with("try: lasthop trial: this host controls"));
    }

    #[test]
    fn a_tunnel_is_fine_where_the_agent_is_told_of_it() {
        let through = Facts {
            leaves_by: Some("tun0".to_owned()),
            leaves_by_tunnel: Some("TUN".to_owned()),
            ..facts(3, Some(230.0), 9_000_000)
        };
        let route = |tunnels: &[String]| {
            let asked = Asked {
                interface: None,
                tunnels,
                containers: false,
                has_key: None,
                peer: None,
                load: None,
                seconds: 0,
                json: false,
            };
            let all = findings(&through, &asked, KernelMode::Control);
            let route = all.into_iter().find(|finding| finding.about == "route").expect("it is always looked at");
            (route.fine, route.text)
        };
        let (fine, text) = route(&[]);
        assert_eq!(fine, Some(false));
        assert!(text.ends_with("leaves by tun0, not by wlan0: a tunnel (TUN), to be named in the agent's `tunnels`"));
        assert_eq!(route(&["tun0".to_owned()]).0, Some(true));
    }

    #[test]
    fn containers_are_named_with_the_key_that_governs_them() {
        let said = |counts: [usize; 2], key, told: Option<Option<ContainerCounts>>| {
            let mut facts = Facts { containers: counts[0], machines: counts[1], ..facts(0, None, 0) };
            facts.agent = facts.agent.zip(told).map(|(agent, containers)| AgentFacts { containers, ..agent });
            let asked = Asked {
                interface: None,
                tunnels: &[],
                containers: key,
                has_key: None,
                peer: None,
                load: None,
                seconds: 0,
                json: false,
            };
            let all = findings(&facts, &asked, KernelMode::Control);
            let found = all.into_iter().find(|finding| finding.about == "containers").expect("always looked at");
            (found.fine, found.text)
        };
        assert_eq!(said([0, 0], false, None).0, Some(true));
        let (fine, text) = said([2, 0], false, None);
        assert!(fine == Some(false) && text.contains("not governed: containers = true in the agent's"), "{text}");
        let (fine, text) = said([2, 0], true, None);
        assert!(fine == Some(true) && text.ends_with("whose connections the agent governs (containers)"), "{text}");
        let (fine, text) = said([2, 1], true, None);
        assert!(
            fine == Some(false) && text.contains("; 1 virtual machines, whose connections only an agent in"),
            "{text}"
        );
        // An agent that answers is believed, whatever configuration was read.
        let counts = ContainerCounts { governed: 2, elsewhere: 1, ..ContainerCounts::default() };
        let (fine, text) = said([0, 0], false, Some(Some(counts)));
        assert!(
            fine == Some(true) && text == "2 other network namespaces governed, 1 without a veth pair to this one",
            "{text}"
        );
        let (fine, text) = said([2, 0], true, Some(Some(ContainerCounts { closed: 1, ..counts })));
        assert!(fine == Some(false) && text.contains("escaped: 1 that cannot be entered"), "{text}");
        // Those on macvlan alone escape; and where there is nothing, nothing is counted.
        let elsewhere = ContainerCounts { elsewhere: 2, ..ContainerCounts::default() };
        assert_eq!(said([0, 0], true, Some(Some(elsewhere))).0, Some(false));
        let (fine, text) = said([0, 0], true, Some(Some(ContainerCounts::default())));
        assert!(fine == Some(true) && text.starts_with("no container"), "{text}");
        let (fine, text) = said([2, 0], true, Some(None));
        assert!(fine == Some(false) && text.contains("the agent that runs does not govern"), "{text}");
    }

    #[test]
    fn nobody_heard_is_told_with_what_may_keep_them_away() {
        let peer = Ipv4Addr::new(10, 0, 0, 7);
        let said = |facts: &Facts, named| peers(facts, named).1;
        let alone = Facts { neighbours: 0, ..facts(0, None, 0) };
        assert!(said(&alone, None).contains("no other device answers on the link: the access point may isolate"));
        assert!(
            said(&Facts { reaches_peer: Some(false), ..alone.clone() }, Some(peer))
                .contains("10.0.0.7 does not answer on the link")
        );
        assert!(
            said(&Facts { reaches_peer: Some(true), ..alone.clone() }, Some(peer))
                .contains("look at its agent, key and firewall")
        );
        let mut relayed = alone.clone();
        let relay = RelayStatus { address: ([10, 0, 0, 9], 29471).into(), heard_s: Some(2.4), silent: false };
        relayed.agent.as_mut().expect("it runs").relay = Some(relay.clone());
        assert_eq!(said(&relayed, None), "no other agent is heard; relay 10.0.0.9:29471, heard 2 s ago");
        let relay = RelayStatus { heard_s: None, silent: true, ..relay };
        relayed.agent.as_mut().expect("it runs").relay = Some(relay);
        assert!(
            said(&relayed, None)
                .contains("29471, not heard yet: is there a route to it, and does lasthop relay run there")
        );
        let mut keyless = alone;
        keyless.agent.as_mut().expect("it runs").rejected.insert("no-key".to_owned(), 12);
        assert!(said(&keyless, None).ends_with("not heard, by cause: no-key 12 (docs/guide/runbook.md#peers)"));
        assert_eq!(peers(&facts(2, None, 0), None), (Some(true), "2 heard".to_owned()));
    }
}
