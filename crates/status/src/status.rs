//! An agent's state, for those who ask and those who watch.

use crate::record::{ProgramTotals, Ready};
use crate::{Gain, Mode, Ungoverned};
use lasthop_policy::PolicyName;
use lasthop_trial::Standing;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

/// From so many hosts on, heard without a group key, the status speaks of a crowd, as the alert LasthopCrowd does. Twelve forged
/// addresses leave three hosts a fifth of their goodput (crates/policy/tests/forged.rs).
const CROWD: u32 = 12;

/// An agent's present state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The agent's version.
    pub version: String,
    /// The agent's process id.
    pub pid: u32,
    /// The managed interface.
    pub interface: String,
    /// Whether it can see and control connections now. `false`: it cannot use the interface, logs the reason and
    /// retries.
    #[serde(default = "was_so")]
    pub loaded: bool,
    /// The mode in which it runs. It is lesser than configured if the kernel lacks a feature.
    pub mode: Mode,
    /// The policy.
    pub policy: PolicyName,
    /// The access point in words; `None`: there is none now, or it is unknown as yet.
    pub access_point: Option<String>,
    /// The access point whose hosts it takes for peers: the last one, while there is none. `None`: there was none as yet.
    #[serde(default)]
    pub group: Option<String>,
    /// Other agents heard.
    pub peers: u32,
    /// Whether they are authenticated by a group key. Without one, each forged address is one of them.
    #[serde(default = "was_so")]
    pub authenticated: bool,
    /// Datagrams on the beacons' port that were not heard since the start, by cause.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rejected: BTreeMap<String, u64>,
    /// The relay that the configuration names; `None`: it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayStatus>,
    /// Hosts with data to send, including this one if it has.
    pub terminals: u32,
    /// TCP connections on the interface.
    pub connections: u32,
    /// Of those, the ones that are only counted: they have nothing to send, and have neither sent nor received for 30 s.
    #[serde(default)]
    pub asleep: u32,
    /// Connections that have the bound of new ones, because more need one of their own than the kernel holds.
    #[serde(default)]
    pub bounds_left_out: u32,
    /// Connections that are sending.
    pub busy: u32,
    /// Time since connections came under control, in s; in mode advise: would have come. `None`: none is.
    pub control_since_s: Option<f64>,
    /// The policy's reason for the first sending connection; `None`: none is sending.
    pub reason: Option<String>,
    /// The kind of that reason in one word, such as "not-full", "waits" or "free"; "ungoverned": no connection that is sending
    /// is under control.
    #[serde(default)]
    pub reason_kind: Option<String>,
    /// The fair sending rate per host, payload, if the policy has one; `None`: not controlled.
    pub common_rate_mbps: Option<f64>,
    /// Connections with a limit; in mode advise, those that would have one.
    pub bounded: u32,
    /// The least and the largest of their window limits, in segments; `None`: none has one.
    pub window_segments: Option<[u32; 2]>,
    /// Connections among them that TCP paces at its own rate, without a limit of it.
    #[serde(default)]
    pub paced: u32,
    /// The least and the largest of their pacing limits, in Mb/s; `None`: none has one.
    pub pacing_mbps: Option<[f64; 2]>,
    /// RTT − lowest RTT, averaged over its busy connections; `None`: the policy does not report it.
    #[serde(default)]
    pub excess_us: Option<u64>,
    /// What control changes.
    #[serde(flatten)]
    pub gain: Gain,
    /// What the policy has found against control: "goodput", "queue" or "peers"; `None`: nothing.
    #[serde(default)]
    pub harmed_by: Option<String>,
    /// The same in words.
    #[serde(default)]
    pub harm: Option<String>,
    /// The rules of the configuration, and how many connections each decides about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleStatus>,
    /// What mode control does to connections with the host's default congestion control at the agent's start, in words; `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_control: Option<String>,
    /// Connections that are not under control, by why, in mode control.
    #[serde(default)]
    pub ungoverned: Vec<Ungoverned>,
    /// Other network namespaces of the host; `None`: the configuration leaves them alone, or nothing is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containers: Option<ContainerCounts>,
    /// The program of the policy `external`; `None`: another policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramStatus>,
    /// The RTS threshold that the agent has set on the radio, in bytes; `None`: it has set none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rts_threshold_bytes: Option<u64>,
    /// The trial that it takes part in; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Standing>,
}

/// A relay of beacons, as an agent sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelayStatus {
    /// Its address and port.
    pub address: SocketAddr,
    /// Time since it was last heard, in s; `None`: never on this interface.
    pub heard_s: Option<f64>,
    /// Whether it should have been heard by now, or been reached.
    pub silent: bool,
}

/// `192.0.2.7:29471, heard 2 s ago`, or what to look at.
impl fmt::Display for RelayStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.heard_s {
            Some(seconds) => write!(f, "{}, heard {} ago", self.address, Spell(seconds))?,
            None => write!(f, "{}, not heard yet", self.address)?,
        }
        if self.silent {
            f.write_str(": is there a route to it, and does lasthop relay run there, with this group key?")
        } else {
            Ok(())
        }
    }
}

/// Network namespaces beside the agent's own, with the key `containers`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerCounts {
    /// Those whose connections are governed.
    pub governed: u32,
    /// Those that cannot be entered, for lack of CAP_SYS_ADMIN: their connections escape.
    pub closed: u32,
    /// Processes whose namespace is not seen, for lack of CAP_SYS_PTRACE: their connections may escape. 1 where processes of others
    /// are not listed at all.
    pub hidden: u32,
    /// Namespaces whose packets do not come out here through a veth pair. They are not governed; if their packets leave by the
    /// managed interface, as with macvlan, they escape.
    pub elsewhere: u32,
}

/// `2 other network namespaces governed, 1 without a veth pair to this one`, and what escapes.
impl fmt::Display for ContainerCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { governed, closed, hidden, elsewhere } = self;
        write!(f, "{governed} other network namespaces governed, {elsewhere} without a veth pair to this one")?;
        if *closed > 0 {
            write!(f, "; escaped: {closed} that cannot be entered (CAP_SYS_ADMIN)")?;
        }
        if *hidden > 0 {
            write!(f, "; not seen: those of {hidden} processes (CAP_SYS_PTRACE)")?;
        }
        Ok(())
    }
}

/// What a rule does now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleStatus {
    /// Its number in the configuration, from 1.
    pub number: u32,
    /// What it says, in words.
    pub rule: String,
    /// The connections that it decides about, without idle ones.
    pub connections: u32,
}

/// The program of the policy `external`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramStatus {
    /// Why nothing is bounded now; `None`: it decides in time.
    pub trouble: Option<String>,
    /// Since the agent's start.
    pub totals: ProgramTotals,
}

/// Agents older than this key did not report it.
const fn was_so() -> bool {
    true
}

impl Status {
    /// An agent that is ready and has seen nothing yet.
    pub fn of(ready: &Ready) -> Self {
        Self {
            version: ready.version.clone(),
            pid: 0,
            interface: ready.interface.clone(),
            loaded: true,
            mode: ready.mode,
            policy: ready.policy,
            access_point: ready.group.clone(),
            group: ready.group.clone(),
            peers: 0,
            authenticated: true,
            rejected: BTreeMap::new(),
            relay: None,
            terminals: 0,
            connections: 0,
            asleep: 0,
            bounds_left_out: 0,
            busy: 0,
            control_since_s: None,
            reason: None,
            reason_kind: None,
            common_rate_mbps: None,
            bounded: 0,
            window_segments: None,
            paced: 0,
            pacing_mbps: None,
            excess_us: None,
            gain: Gain::default(),
            harmed_by: None,
            harm: None,
            rules: Vec::new(),
            default_control: None,
            ungoverned: Vec::new(),
            containers: None,
            program: None,
            rts_threshold_bytes: None,
            trial: None,
        }
    }

    /// The access point in words, or that there is none.
    pub fn place(&self) -> String {
        match (&self.access_point, &self.group) {
            (Some(access_point), _) => access_point.clone(),
            (None, Some(group)) => format!("no access point now (its group is still {group})"),
            (None, None) => "an access point not known yet".to_owned(),
        }
    }

    fn control(&self) -> String {
        if !self.loaded {
            return "not loaded: nothing is seen or controlled, and the agent tries again; its log says why".to_owned();
        }
        let would = if self.mode == Mode::Advise { "would be " } else { "" };
        let because = self.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        match (self.mode, self.control_since_s) {
            (Mode::Observe, _) => "never, in mode observe".to_owned(),
            (_, Some(seconds)) => format!("{would}on, since {}{because}", Spell(seconds)),
            (_, None) => format!("{would}off{because}"),
        }
    }

    fn rate(&self) -> String {
        let rate = match self.common_rate_mbps {
            Some(rate) => format!("{rate:.2} Mb/s for each host"),
            None => "no common rate".to_owned(),
        };
        let windows = match self.window_segments {
            Some([least, most]) if least == most => format!(", windows up to {most} segments"),
            Some([least, most]) => format!(", windows up to {least} to {most} segments"),
            None => String::new(),
        };
        let paces = match self.pacing_mbps {
            Some([least, most]) if format!("{least:.2}") == format!("{most:.2}") => {
                format!(", paced at {most:.2} Mb/s")
            }
            Some([least, most]) => format!(", paced at {least:.2} to {most:.2} Mb/s"),
            None => String::new(),
        };
        let by_tcp = if self.paced > 0 { ", paced by TCP" } else { "" };
        let would = if self.mode == Mode::Advise { "would be " } else { "" };
        let asleep = match self.asleep {
            0 => String::new(),
            asleep => format!(" ({asleep} idle)"),
        };
        let left_out = match self.bounds_left_out {
            0 => String::new(),
            left_out => format!(", {left_out} without one of their own, for lack of room"),
        };
        let Self { bounded, connections, .. } = self;
        format!(
            "{rate}; {bounded} of {connections} connections{asleep} {would}bounded{windows}{by_tcp}{paces}{left_out}"
        )
    }
}

/// A duration in words.
struct Spell(f64);

impl fmt::Display for Spell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 as u64;
        match seconds {
            0..=119 => write!(f, "{seconds} s"),
            120..=7199 => write!(f, "{} min {} s", seconds / 60, seconds % 60),
            _ => write!(f, "{} h {} min", seconds / 3600, seconds / 60 % 60),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, mode, policy, pid, version, peers, terminals, .. } = self;
        let place = self.place();
        writeln!(f, "{interface}: mode {mode}, policy {policy}, behind {place} (process {pid}, version {version})")?;
        let plural = |count: u32, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        match peers {
            // The agent cannot tell these apart.
            0 => writeln!(
                f,
                "  peers    0 heard: alone here, or a firewall or the access point keeps their beacons away"
            )?,
            _ => {
                let crowd = if !self.authenticated && *peers >= CROWD {
                    ": a crowd, and perhaps forged, for there is no group key"
                } else {
                    ""
                };
                let sending = terminals.saturating_sub(1);
                writeln!(f, "  peers    {peers} heard; {sending} of them with something to send{crowd}")?;
            }
        }
        if let Some(relay) = &self.relay {
            writeln!(f, "  relay    {relay}")?;
        }
        writeln!(f, "  control  {}", self.control())?;
        writeln!(f, "  rate     {}", self.rate())?;
        writeln!(f, "  gain     {}", self.gain)?;
        write!(f, "  delay    {}", self.gain.delay())?;
        if let Some(harm) = &self.harm {
            write!(f, "\n  harm     {harm}")?;
        }
        if let Some(default) = &self.default_control {
            write!(f, "\n  default  {default} (as of the agent's start)")?;
        }
        for left in &self.ungoverned {
            write!(f, "\n  {:<8} {left}", if left.escapes { "escaped" } else { "left" })?;
        }
        if let Some(containers) = &self.containers {
            write!(f, "\n  netns    {containers}")?;
        }
        for RuleStatus { number, rule, connections } in &self.rules {
            write!(f, "\n  rule {number:<3} {rule}; {}", plural(*connections, "connection"))?;
        }
        if let Some(ProgramStatus { trouble, totals }) = &self.program {
            let state =
                trouble.as_ref().map_or("decides in time".to_owned(), |trouble| format!("no bounds: {trouble}"));
            write!(f, "\n  program  {state} ({totals})")?;
        }
        if let Some(bytes) = self.rts_threshold_bytes {
            write!(f, "\n  radio    RTS precedes aggregates: its RTS threshold is set to {bytes} bytes")?;
        }
        if let Some(trial) = &self.trial {
            write!(f, "\n  trial    {}", trial_in_words(trial))?;
        }
        Ok(())
    }
}

/// A trial in a line.
fn trial_in_words(trial: &Standing) -> String {
    let Standing { id, block, blocks, arm, left_s, ended, .. } = trial;
    match (block, arm, ended) {
        (.., Some(why)) => format!("{id}, no longer: {why}"),
        (Some(block), Some(arm), None) => format!("{id}, block {block} of {blocks}: {arm} for {left_s:.0} s more"),
        _ => format!("{id}, whose blocks are over"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Status {
        let ready = Ready {
            t_ns: 0,
            unix_ms: None,
            interface: "wlan0".to_owned(),
            congestion_control: None,
            mode: Mode::Control,
            policy: PolicyName::Lasthop,
            group: Some("gateway 192.168.1.1".to_owned()),
            version: "1.2.3".to_owned(),
        };
        Status {
            pid: 77,
            peers: 3,
            terminals: 4,
            connections: 5,
            busy: 2,
            control_since_s: Some(125.4),
            reason: Some("all agree".to_owned()),
            reason_kind: Some("common-rate".to_owned()),
            common_rate_mbps: Some(2.1),
            bounded: 2,
            window_segments: Some([4, 12]),
            paced: 2,
            gain: Gain {
                delivered_mbps: Some(4.95),
                free_mbps: Some(5.5),
                gain_ratio: Some(0.9),
                group_delivered_mbps: Some(24.7),
                group_free_mbps: Some(28.3),
                group_gain_ratio: Some(24.7 / 28.3),
                round_trip_ms: Some(34.0),
                free_round_trip_ms: Some(370.4),
                gain_unknown: None,
            },
            ..Status::of(&ready)
        }
    }

    #[test]
    fn a_status_is_six_lines() {
        let expected = "wlan0: mode control, policy lasthop, behind gateway 192.168.1.1 (process 77, version 1.2.3)
  peers    3 heard; 3 of them with something to send
  control  on, since 2 min 5 s: all agree
  rate     2.10 Mb/s for each host; 2 of 5 connections bounded, windows up to 4 to 12 segments, paced by TCP
  gain     this host 4.95 Mb/s now, 5.5 Mb/s while free: -10 %; all hosts 24.7 Mb/s now, 28.3 Mb/s while free: -13 %
  delay    round trip 34 ms now, 370 ms while free";
        assert_eq!(status().to_string(), expected);
    }

    #[test]
    fn a_crowd_that_anybody_may_have_forged_is_called_so() {
        let line = |peers, authenticated| {
            let status = Status { peers, authenticated, ..status() }.to_string();
            status.lines().nth(1).expect("a line").to_owned()
        };
        let many = "  peers    12 heard; 3 of them with something to send";
        assert_eq!(line(12, false), format!("{many}: a crowd, and perhaps forged, for there is no group key"));
        assert_eq!(line(12, true), many);
        assert!(!line(11, false).contains("crowd"));
    }

    #[test]
    fn without_an_access_point_it_is_behind_none_and_keeps_the_group_of_the_last() {
        let first = |status: Status| status.to_string().lines().next().expect("a line").to_owned();
        let away = Status { access_point: None, ..status() };
        let expected = "behind no access point now (its group is still gateway 192.168.1.1) (process";
        assert!(first(away.clone()).contains(expected), "{away}");
        assert!(first(Status { group: None, ..away }).contains("behind an access point not known yet (process"));
    }

    #[test]
    fn connections_that_are_only_counted_or_have_no_room_are_told() {
        let (paced, pacing_mbps) = (0, Some([1.0, 1.0]));
        let crowded =
            Status { connections: 100_000, asleep: 30_000, bounds_left_out: 4464, bounded: 65_536, ..status() };
        let crowded = Status { paced, pacing_mbps, ..crowded };
        let expected = "; 65536 of 100000 connections (30000 idle) bounded, windows up to 4 to 12 segments, paced at 1.00 Mb/s, \
                        4464 without one of their own, for lack of room";
        assert!(crowded.to_string().contains(expected), "{crowded}");
    }

    #[test]
    fn each_rule_has_a_line_with_the_connections_that_it_decides_about() {
        let rule = |number, connections| RuleStatus { number, rule: "user camera: left alone".to_owned(), connections };
        let status = Status { rules: vec![rule(1, 1), rule(12, 0)], ..status() };
        let expected =
            "\n  rule 1   user camera: left alone; 1 connection\n  rule 12  user camera: left alone; 0 connections";
        assert!(status.to_string().ends_with(expected), "{status}");
    }

    #[test]
    fn what_escapes_and_what_is_left_alone_has_a_line_with_the_reason() {
        let left = |because: &str, escapes, connections| Ungoverned {
            because: because.to_owned(),
            escapes,
            connections,
            busy: 1,
            ..Ungoverned::default()
        };
        let chosen = "its application, or a BPF program, has chosen bbr, dctcp";
        let ungoverned = vec![left("`leave` names reno", false, 2), left(chosen, true, 1)];
        let status = Status { ungoverned, ..status() }.to_string();
        let expected = "\n  left     2 connections, 1 of them sending: `leave` names reno\n  escaped  1 connection, 1 of them sending: \
                        its application, or a BPF program, has chosen bbr, dctcp";
        assert!(status.ends_with(expected), "{status}");
    }

    #[test]
    fn what_becomes_of_the_default_congestion_control_has_a_line() {
        let default_control =
            Some("connections with this host's default congestion control, bbr, get CUBIC".to_owned());
        let status = Status { default_control, ..status() }.to_string();
        let expected = "\n  default  connections with this host's default congestion control, bbr, get CUBIC (as of the agent's start)";
        assert!(status.ends_with(expected), "{status}");
    }

    #[test]
    fn a_relay_has_a_line_which_says_what_to_look_at_while_it_is_silent() {
        let line = |heard_s, silent| {
            let relay = RelayStatus { address: ([192, 0, 2, 7], 29471).into(), heard_s, silent };
            let status = Status { relay: Some(relay), ..status() }.to_string();
            status.lines().find(|line| line.starts_with("  relay")).expect("a line").to_owned()
        };
        assert_eq!(line(Some(0.4), false), "  relay    192.0.2.7:29471, heard 0 s ago");
        assert_eq!(line(None, false), "  relay    192.0.2.7:29471, not heard yet");
        let asks = "is there a route to it, and does lasthop relay run there, with this group key?";
        assert_eq!(line(Some(130.0), true), format!("  relay    192.0.2.7:29471, heard 2 min 10 s ago: {asks}"));
        assert_eq!(line(None, true), format!("  relay    192.0.2.7:29471, not heard yet: {asks}"));
    }

    #[test]
    fn containers_have_a_line_which_says_what_escapes() {
        let last = |containers| {
            let status = Status { containers: Some(containers), ..status() }.to_string();
            status.lines().last().expect("a line").to_owned()
        };
        let fine = ContainerCounts { governed: 2, elsewhere: 1, ..ContainerCounts::default() };
        let expected = "  netns    2 other network namespaces governed, 1 without a veth pair to this one";
        assert_eq!(last(fine), expected);
        let lacking =
            "; escaped: 3 that cannot be entered (CAP_SYS_ADMIN); not seen: those of 4 processes (CAP_SYS_PTRACE)";
        assert_eq!(last(ContainerCounts { closed: 3, hidden: 4, ..fine }), format!("{expected}{lacking}"));
    }

    #[test]
    fn the_program_of_the_policy_has_one_more() {
        let totals = ProgramTotals { decisions: 120, late: 2, failures: 1, starts: 2 };
        let program = |trouble: Option<&str>| Some(ProgramStatus { trouble: trouble.map(str::to_owned), totals });
        let last = |program| Status { program, ..status() }.to_string().lines().nth(6).map(str::to_owned);
        let counts = "(120 decisions, late 2 times, failed 1 times, started 2 times)";
        assert_eq!(last(program(None)), Some(format!("  program  decides in time {counts}")));
        let ended = "the program has ended (exit code 3)";
        assert_eq!(last(program(Some(ended))), Some(format!("  program  no bounds: {ended} {counts}")));
    }

    #[test]
    fn what_is_not_known_is_said_to_be_so() {
        let gain =
            |gain| Status { gain, ..status() }.to_string().lines().skip(4).take(2).collect::<Vec<_>>().join("\n");
        assert_eq!(gain(Gain::default()), "  gain     not known yet\n  delay    round trip not known yet");
        let changed = "not known: other hosts send now than while free";
        let known = Gain { gain_ratio: None, group_gain_ratio: None, ..status().gain };
        let expected = format!(
            "  gain     this host 4.95 Mb/s now, 5.5 Mb/s while free; all hosts 24.7 Mb/s now, 28.3 Mb/s while free; {changed}\n  \
             delay    round trip 34 ms now, 370 ms while free"
        );
        assert_eq!(gain(Gain { gain_unknown: Some(changed.to_owned()), ..known }), expected);
        let free = Gain { delivered_mbps: Some(2.4), ..Gain::unknown("nothing is limited".to_owned()) };
        assert!(gain(free).starts_with("  gain     this host 2.4 Mb/s now; nothing is limited\n"));
        let harmed = Status { harm: Some("others fill the queue".to_owned()), ..status() };
        assert!(harmed.to_string().ends_with("\n  harm     others fill the queue"), "{harmed}");
        let observed = Status { mode: Mode::Observe, control_since_s: None, ..status() };
        assert!(observed.to_string().contains("\n  control  never, in mode observe\n"));
        let unloaded = Status { loaded: false, ..status() };
        assert!(unloaded.to_string().contains("\n  control  not loaded: "), "{unloaded}");
        let advised = Status { mode: Mode::Advise, ..status() };
        assert!(advised.to_string().contains("\n  control  would be on, since 2 min 5 s: all agree\n"));
        assert!(advised.to_string().contains("; 2 of 5 connections would be bounded, windows"), "{advised}");
    }
}
