//! The agent's status: a Unix socket in `/run/lasthop` that sends one line of JSON to each client.
//!
//! The agent never waits for a client: a line fits into the buffer of a fresh socket, and is dropped otherwise. An
//! orderly stop removes the socket. The socket of a killed agent refuses connections, and the interface's next agent
//! replaces it.

use crate::config::Mode;
use crate::error::{Doing, Error, Result};
use crate::gain::Gain;
use crate::only_one::make_folder;
use crate::record::ProgramTotals;
use crate::rules::RuleStatus;
use crate::ungoverned::Ungoverned;
use lasthop_policy::PolicyName;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, socket};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracing::debug;

/// The folder of the agents' sockets. Root makes it, and only root may write into it.
pub const FOLDER: &str = "/run/lasthop";

/// What the sockets' names begin with.
const PREFIX: &str = "agent-";

/// Clients answered per round of the loop.
const ANSWERED_AT_ONCE: usize = 4;
/// The most bytes of a status.
const LINE_BYTES_MOST: u64 = 64 * 1024;
/// Timeout: a stopped agent (SIGSTOP) does not answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

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
    #[serde(default = "is_loaded")]
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
    /// Connections that are not under control, by why, in mode control.
    #[serde(default)]
    pub ungoverned: Vec<Ungoverned>,
    /// The program of the policy `external`; `None`: another policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramStatus>,
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
const fn is_loaded() -> bool {
    true
}

impl Status {
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
                writeln!(f, "  peers    {peers} heard; {} of them with something to send", terminals.saturating_sub(1))?
            }
        }
        writeln!(f, "  control  {}", self.control())?;
        writeln!(f, "  rate     {}", self.rate())?;
        writeln!(f, "  gain     {}", self.gain)?;
        write!(f, "  delay    {}", self.gain.delay())?;
        if let Some(harm) = &self.harm {
            write!(f, "\n  harm     {harm}")?;
        }
        for left in &self.ungoverned {
            write!(f, "\n  {:<8} {left}", if left.escapes { "escaped" } else { "left" })?;
        }
        for RuleStatus { number, rule, connections } in &self.rules {
            write!(f, "\n  rule {number:<3} {rule}; {}", plural(*connections, "connection"))?;
        }
        if let Some(ProgramStatus { trouble, totals }) = &self.program {
            let state =
                trouble.as_ref().map_or("decides in time".to_owned(), |trouble| format!("no bounds: {trouble}"));
            write!(f, "\n  program  {state} ({totals})")?;
        }
        Ok(())
    }
}

/// A listening socket with a name, which goes with it.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) listener: UnixListener,
    path: PathBuf,
}

/// The number of this group, for [`Named::open`].
pub(crate) fn group_id(name: &str) -> Result<u32> {
    let group = nix::unistd::Group::from_name(name).doing(format_args!("cannot look for the group {name}"))?;
    let unknown = || format!("socket_group: there is no group {name} on this machine (see `getent group`)");
    group.map(|group| group.gid.as_raw()).ok_or_else(|| Error::Refused(unknown()))
}

impl Named {
    /// `PREFIXIF.sock` in this folder, which is made if absent. If a living agent has that name (another network
    /// namespace, or an observer), `PREFIXIF-PID.sock`. Only root and, if there is one, this group may connect.
    pub(crate) fn open(folder: &Path, prefix: &str, interface: &str, group: Option<u32>) -> Result<Self> {
        make_folder(folder)?;
        // Only the lock's holder may remove stale sockets. Nobody waits for the lock.
        if let Ok(lock) = File::open(folder).map(|folder| Flock::lock(folder, FlockArg::LockExclusiveNonblock))
            && lock.is_ok()
        {
            remove_stale(folder, prefix);
        }
        let binding = || format!("cannot make a socket in {}", folder.display());
        // It gets its name once it listens. So a socket of that name refuses connections only if its agent is gone.
        let process = std::process::id();
        let unnamed = folder.join(format!(".{prefix}{interface}-{process}"));
        let _ = fs::remove_file(&unnamed);
        let listener = UnixListener::bind(&unnamed).doing(binding())?;
        let names = [format!("{prefix}{interface}.sock"), format!("{prefix}{interface}-{process}.sock")];
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        let mut named = Err(ErrorKind::AlreadyExists.into());
        for path in names.map(|name| folder.join(name)) {
            named = group
                .map_or(Ok(()), |group| chown(&unnamed, None, Some(group)))
                .and_then(|()| fs::set_permissions(&unnamed, fs::Permissions::from_mode(mode)))
                .and_then(|()| fs::hard_link(&unnamed, &path))
                .map(|()| path);
            if !named.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists) {
                break;
            }
        }
        let _ = fs::remove_file(&unnamed);
        let socket = Self { listener, path: named.doing(binding())? };
        socket.listener.set_nonblocking(true).doing(binding())?;
        Ok(socket)
    }
}

/// The agent's end of the socket.
#[derive(Debug)]
pub(crate) struct StatusSocket {
    named: Named,
    interface: String,
}

impl StatusSocket {
    pub(crate) fn open(folder: &Path, interface: &str, group: Option<u32>) -> Result<Self> {
        Ok(Self { named: Named::open(folder, PREFIX, interface, group)?, interface: interface.to_owned() })
    }

    pub(crate) fn is_for(&self, interface: &str) -> bool {
        self.interface == interface
    }

    /// Answers the waiting clients, without waiting for them.
    pub(crate) fn answer(&self, line: impl Fn() -> String) {
        for _ in 0..ANSWERED_AT_ONCE {
            let Ok((mut asks, _)) = self.named.listener.accept() else { return };
            let told = asks.set_nonblocking(true).and_then(|()| asks.write_all(line().as_bytes()));
            if let Err(error) = told {
                debug!("somebody asked for the status and did not take it: {error}");
            }
        }
    }

    /// The descriptor to wait for.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.named.listener.as_fd()
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The agents' sockets in this folder; none if there is no folder.
pub(crate) fn sockets(folder: &Path, prefix: &str) -> std::io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let is_ours = |name: &str| name.starts_with(prefix) && name.ends_with(".sock");
    let named = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut sockets: Vec<_> =
        named.filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_ours)).collect();
    sockets.sort();
    Ok(sockets)
}

/// Connects without waiting. A full queue (of a stopped agent) is `WouldBlock`.
pub(crate) fn connect(path: &Path) -> std::io::Result<UnixStream> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    nix::sys::socket::connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(socket.into())
}

/// Removes the sockets of killed agents, which refuse connections.
fn remove_stale(folder: &Path, prefix: &str) {
    for path in sockets(folder, prefix).unwrap_or_default() {
        if connect(&path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Each agent's status by its socket, or the error. Sockets of killed agents are skipped.
///
/// # Errors
/// If the folder cannot be read.
pub fn ask_agents(folder: &Path) -> Result<Vec<Result<Status>>> {
    let sockets = sockets(folder, PREFIX).doing(format_args!("cannot look for agents in {}", folder.display()))?;
    let ask = |path: PathBuf| {
        let stream = match connect(&path) {
            Err(error) if [ErrorKind::ConnectionRefused, ErrorKind::NotFound].contains(&error.kind()) => return None,
            connected => connected,
        };
        let may_not = stream.as_ref().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
        let problem = if may_not { "only answers root and its `socket_group`" } else { "does not answer" };
        let status = stream.and_then(|stream| {
            let mut line = String::new();
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(ANSWERED_WITHIN))?;
            stream.take(LINE_BYTES_MOST).read_to_string(&mut line)?;
            Ok(serde_json::from_str(&line)?)
        });
        Some(status.doing(format_args!("the agent at {} {problem}", path.display())))
    };
    Ok(sockets.into_iter().filter_map(ask).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn status() -> Status {
        Status {
            version: "1.2.3".to_owned(),
            pid: 77,
            interface: "wlan0".to_owned(),
            loaded: true,
            mode: Mode::Control,
            policy: PolicyName::Lasthop,
            access_point: Some("gateway 192.168.1.1".to_owned()),
            group: Some("gateway 192.168.1.1".to_owned()),
            peers: 3,
            terminals: 4,
            connections: 5,
            asleep: 0,
            bounds_left_out: 0,
            busy: 2,
            control_since_s: Some(125.4),
            reason: Some("all agree".to_owned()),
            reason_kind: Some("common-rate".to_owned()),
            common_rate_mbps: Some(2.1),
            bounded: 2,
            window_segments: Some([4, 12]),
            paced: 2,
            pacing_mbps: None,
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
            harmed_by: None,
            harm: None,
            rules: Vec::new(),
            ungoverned: Vec::new(),
            program: None,
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
        let left = |why: &str, escapes, controls: &[&str], connections| Ungoverned {
            why: why.to_owned(),
            escapes,
            congestion_controls: controls.iter().map(|control| (*control).to_owned()).collect(),
            connections,
            busy: 1,
        };
        let ungoverned = vec![left("leave", false, &["reno"], 2), left("chosen", true, &["bbr", "dctcp"], 1)];
        let status = Status { ungoverned, ..status() }.to_string();
        let expected = "\n  left     2 connections, 1 of them sending: `leave` names reno\n  escaped  1 connection, 1 of them sending: \
                        its application, or a BPF program, has chosen bbr, dctcp";
        assert!(status.ends_with(expected), "{status}");
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

    /// Answers as an agent does, until all of these clients have asked.
    fn asked(sockets: &[&StatusSocket], folder: &Path) -> Vec<Status> {
        std::thread::scope(|scope| {
            let asks = scope.spawn(|| ask_agents(folder).expect("the folder is there"));
            while !asks.is_finished() {
                for (number, socket) in sockets.iter().enumerate() {
                    let status = Status { pid: number as u32, interface: socket.interface.clone(), ..status() };
                    socket.answer(|| serde_json::to_string(&status).expect("JSON"));
                }
            }
            asks.join().expect("no panic").into_iter().map(|status| status.expect("an answer")).collect()
        })
    }

    #[test]
    fn each_agent_says_what_it_does_and_leaves_no_socket() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("lasthop");
        let wlan = StatusSocket::open(&folder, "wlan0", None).expect("a socket");
        let again = StatusSocket::open(&folder, "wlan0", None).expect("a socket beside the first one's");
        let wired = StatusSocket::open(&folder, "eth0", None).expect("a socket");
        assert!(wlan.is_for("wlan0") && !wlan.is_for("eth0"));
        assert_eq!(fs::metadata(&folder).expect("it is there").mode() & 0o7777, 0o755);
        assert_eq!(fs::metadata(folder.join("agent-eth0.sock")).expect("it is there").mode() & 0o777, 0o600);
        let mut told: Vec<_> =
            asked(&[&wlan, &again, &wired], &folder).into_iter().map(|status| (status.pid, status.interface)).collect();
        told.sort();
        let expected = [(0, "wlan0"), (1, "wlan0"), (2, "eth0")].map(|(pid, name)| (pid, name.to_owned()));
        assert_eq!(told, expected);
        drop((wlan, again, wired));
        assert_eq!(sockets(&folder, PREFIX).expect("readable").len(), 0);
    }

    #[test]
    fn the_socket_of_a_killed_agent_is_passed_over_and_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("lasthop");
        fs::create_dir(&folder).expect("a folder");
        for name in ["agent-wlan0.sock", "agent-gone0-7.sock"] {
            drop(UnixListener::bind(folder.join(name)).expect("a socket")); // its file stays
        }
        assert_eq!(ask_agents(&folder).expect("readable").len(), 0);
        let socket = StatusSocket::open(&folder, "wlan0", None).expect("a socket");
        assert_eq!(sockets(&folder, PREFIX).expect("readable"), [folder.join("agent-wlan0.sock")]);
        assert_eq!(asked(&[&socket], &folder).len(), 1);
    }

    #[test]
    fn who_asks_and_does_not_listen_holds_up_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("lasthop");
        let socket = StatusSocket::open(&folder, "wlan0", None).expect("a socket");
        let waiting: Vec<_> =
            (0..20).map(|_| UnixStream::connect(folder.join("agent-wlan0.sock")).expect("a connection")).collect();
        // More than a socket's buffer holds: the rest is dropped.
        let long = "x".repeat(4 << 20);
        for _ in 0..=waiting.len() / ANSWERED_AT_ONCE {
            socket.answer(|| long.clone());
        }
        drop(waiting);
        assert_eq!(asked(&[&socket], &folder).len(), 1);
    }

    #[test]
    fn a_stopped_agent_whose_queue_is_full_keeps_its_socket_and_holds_up_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("lasthop");
        let stopped = StatusSocket::open(&folder, "wlan0", None).expect("a socket");
        let mut waiting = Vec::new();
        while let Ok(one) = connect(&stopped.named.path) {
            waiting.push(one);
        }
        let next = StatusSocket::open(&folder, "eth0", None).expect("a socket");
        assert_eq!(sockets(&folder, PREFIX).expect("readable"), [next.named.path.clone(), stopped.named.path.clone()]);
        drop(next);
        let told = ask_agents(&folder).expect("readable");
        assert!(matches!(&told[..], [Err(error)] if error.to_string().contains("does not answer")), "{told:?}");
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
        let error = StatusSocket::open(folder.path(), "wlan0", None).expect_err("refused").to_string();
        assert!(error.contains("nobody else can write in, and it has mode 777"), "{error}");
    }
}
