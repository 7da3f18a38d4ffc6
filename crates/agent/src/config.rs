//! The agent's configuration: a TOML file, and the command line's flags over it.

use crate::hear::relay::relay_address;
use lasthop_files::{MOST_TYPED_BYTES, text_of};
use lasthop_kernel::Kernel;
use lasthop_keys::Preset::Absent;
use lasthop_keys::{
    Document, DocumentError, Keys, Override, Part, Presence, Preset, Problem, Section, Takes, choice, flag, integer,
    key, keys, line, number, texts,
};
use lasthop_laws::bound::LEASE;
use lasthop_peers::beacon;
use lasthop_policy::{PolicyName, PolicySettings, Rts, TICK};
use lasthop_status::Mode;
use lasthop_units::Span;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

keys! {
    /// Everything that can be configured.
    #[derive(Clone, Debug, PartialEq, serde::Serialize)]
    pub struct Config {
        /// The interface to the shared access network; without it, the one of the default route, followed when that moves.
        interface: Option<String> = interface(), Absent;
        /// Interfaces whose packets leave by that one, wrapped: those of a VPN. Their connections are governed too, from when each
        /// is there; at most 4.
        tunnels: Vec<String> = tunnels(), Preset::none();
        /// Govern also the connections of containers and pods: those of other network namespaces on this host, where their packets
        /// come out here through a veth pair and leave by that interface. Takes CAP_SYS_ADMIN and CAP_SYS_PTRACE.
        containers: bool = flag(), false;
        /// What the agent may do: watch and record; also decide and say so; also apply what is decided.
        mode: Mode = choice(Mode::WORDS), "advise";
        /// Time between two decisions, in milliseconds.
        tick_ms: u64 = integer(50, 10_000), milliseconds(TICK);
        /// How long a bound holds if it is not renewed, in milliseconds: two ticks or more.
        lease_ms: u64 = integer(100, 60_000), milliseconds(LEASE);
        /// A cgroup v2 folder: only sockets of processes below it are controlled. Without it, all.
        cgroup: Option<PathBuf> = path(), Absent;
        /// cgroup v2 folders whose sockets are left alone.
        excluded_cgroups: Vec<PathBuf> = texts().map(|paths| paths.into_iter().map(PathBuf::from).collect()), Preset::none();
        /// Congestion controls whose sockets are left alone.
        leave: Vec<String> = texts(), Preset::none();
        /// Take over also connections whose application has chosen a congestion control for itself. `false`: unless that is CUBIC
        /// or this machine's default, they escape control and are counted.
        take_chosen: bool = flag(), false;
        /// Where to write JSON lines; `-` is the standard output.
        record: Option<PathBuf> = path(), Absent;
        /// A record in a file is set aside as FILE.1 before it grows beyond this, in MiB.
        record_limit_mib: u64 = integer(1, 1 << 20), 64;
        /// Make sure by a lock in /run/lasthop that no other agent controls, or reports, the same interface, or writes the
        /// same metrics. `false`: this agent has a network namespace of its own, and a file.
        lock: bool = flag(), true;
        /// Take part in trials that another agent of the group begins (`lasthop trial`): control and free in turns, whatever `mode`
        /// says. Without it, if there is a group key; one that begins on this host may always, unless this is `false`.
        trial: Option<bool> = flag(), Absent;
        /// The group that may ask and watch this agent on its sockets in /run/lasthop; without it, only root.
        socket_group: Option<String> = line(32), Absent;
        tables {
            /// How to talk to peers.
            beacon: BeaconConfig, Presence::Always;
            /// What servers are told of this host's own link.
            last_link: LastLinkConfig, Presence::Always;
            /// What a monitoring system may read.
            metrics: MetricsConfig, Presence::Always;
            /// What the agent may set of the interface's radio.
            radio: RadioConfig, Presence::Always;
            /// What decides; where none is named, [`Config::POLICY`].
            policy: PolicySettings, Presence::Always;
            /// What holds for the connections of some programs; the first rule that fits a connection counts.
            rules: Vec<RuleConfig>, Presence::Any;
        }
        adjust name_the_policy;
        check together;
    }

    /// How to talk to peers.
    #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
    pub struct BeaconConfig {
        /// UDP port, the same on all hosts.
        port: u16 = integer(1, 65_535), 29_470;
        /// Time between two beacons where few hosts are heard, in milliseconds; where there are more it is longer.
        interval_ms: u64 = integer(50, 10_000), milliseconds(beacon::INTERVAL);
        /// A peer that has not been heard for this long is forgotten, in milliseconds: two intervals or more; one that announces
        /// longer intervals is waited for 6.7 of them.
        age_out_ms: u64 = integer(100, 60_000), 2_000;
        /// The name of the access point, the same on all hosts behind it and on no other; without it, its BSSID or the default
        /// gateway.
        group: Option<String> = line(64), Absent;
        /// A file with a secret that all hosts of a group share; without it beacons are not authenticated.
        group_key_file: Option<PathBuf> = path(), Absent;
        /// The address of a [relay](agent-peers.md#a-relay) (`lasthop relay`), with its port if that is not 29471, for access points that
        /// keep their clients from hearing each other. Needs a group key.
        relay: Option<SocketAddr> = relay(), Absent;
        /// Send and hear over IPv4 broadcast.
        ipv4: bool = flag(), true;
        /// Send and hear over IPv6 link-local multicast.
        ipv6: bool = flag(), true;
        check beacons;
    }

    /// What servers are told of this host's own link.
    #[derive(Clone, Debug, PartialEq, serde::Serialize)]
    pub struct LastLinkConfig {
        /// Tell servers, in a TCP option of connections that this host opens on the managed interface.
        report: bool = flag(), false;
        /// The link's bandwidth towards this host, in Mb/s of IP packets; without it, as measured.
        // 2^32 - 1 kb/s is the most that a report can say.
        bandwidth_mbps: Option<f64> = number(0.001, f64::from(u32::MAX / 1000)), Absent;
        /// How many of the packets towards this host the link itself loses, once it has given up repeating them; without it, as
        /// measured.
        packet_error_rate: Option<f64> = number(0.0, 1.0), Absent;
        /// The two above hold behind this access point only, as the log names it ("gateway 10.0.0.1"); without it, everywhere.
        access_point: Option<String> = line(100), Absent;
        /// Measure what is not given.
        measure: bool = flag(), true;
        /// Take the link speed of a wired interface for the bandwidth from the start; `false`: only once half of it has been seen.
        trust_link_speed: bool = flag(), false;
        /// How long an estimate holds without new evidence, and a report on a server without another one, in seconds: four ticks or
        /// more. A report can say powers of two only, and says the next lower one.
        validity_s: u32 = integer(LastLinkConfig::LEAST_VALIDITY_S.into(), 32_768), 32;
        check is_about_something;
    }
}

keys! {
    /// What holds for the connections of some programs. Their cgroup, their user, or both.
    #[derive(Clone, Debug, PartialEq, serde::Serialize)]
    pub struct RuleConfig {
        /// Those of a cgroup v2 and of all below it, named as in /proc/PID/cgroup; `*` and `?` stand for parts of a name. Without it, of
        /// any.
        cgroup: Option<String> = cgroup(), Absent;
        /// Those of a user, by name or number: who made the socket, or accepted the connection. Without it, of any.
        user: Option<String> = line(256), Absent;
        /// `false`: they are left alone.
        govern: bool = flag(), true;
        /// What they may send together, in Mb/s, whatever the policy decides; split evenly over those that are sending. Without it,
        /// nothing but the policy limits them.
        most_mbps: Option<f64> = number(0.032, 34_000.0), Absent;
        check fits_some_and_says_one_thing;
    }
}

keys! {
    /// What a monitoring system may read: Prometheus, or what understands its formats.
    #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
    pub struct MetricsConfig {
        /// Serve metrics over HTTP, as http://ADDRESS:PORT/metrics, without a password; without it, not.
        listen: Option<SocketAddr> = address(), Absent;
        /// Write metrics to this file, named *.prom, every 10 s, for the textfile collector of node_exporter.
        textfile: Option<PathBuf> = prom(), Absent;
    }
}

keys! {
    /// What the agent may set of the interface's radio.
    #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
    pub struct RadioConfig {
        /// "auto": in mode control the agent sets the radio's RTS threshold to 3000 bytes while several hosts send, so that RTS precedes
        /// [aggregates](agent-configuration.md#rts-where-aggregates-collide), and gives the former one back. "off": it does not. No
        /// real radio has shown yet what "auto" is worth.
        rts: Rts = choice(Rts::WORDS), "off";
    }
}

fn address() -> Takes<SocketAddr> {
    line(64).and_then(|text| match text.parse::<SocketAddr>() {
        Ok(address) if address.port() > 0 => Ok(address),
        _ => Err(Problem::new(
            format!("\"{text}\" cannot be that"),
            "an IP address and a port, such as \"127.0.0.1:29470\" or \"[::1]:29470\"",
        )),
    })
}

fn relay() -> Takes<SocketAddr> {
    line(64).and_then(|text| {
        relay_address(&text).ok_or_else(|| {
            Problem::new(
                format!("\"{text}\" cannot be that"),
                "the IP address of one host on the network (not 127.0.0.1), or it and a port, such as \"192.0.2.7\" or \
                 \"[2001:db8::7]:29471\"",
            )
        })
    })
}

fn cgroup() -> Takes<String> {
    line(4_096).and_then(|path| match is_cgroup(&path) {
        true => Ok(path),
        false => Err(Problem::new(
            format!("\"{path}\" cannot be that"),
            "a path as in /proc/PID/cgroup, such as \"/system.slice/backup.service\" or \"/user.slice/user-*.slice\"",
        )),
    })
}

/// A pattern that stays below the hierarchy's root, and names each level.
fn is_cgroup(path: &str) -> bool {
    path.starts_with('/')
        && !path.split('/').any(|name| name == ".." || name == "**")
        && glob::Pattern::new(path).is_ok()
}

/// The collector reads no file of another name.
fn prom() -> Takes<PathBuf> {
    path().and_then(|path| match path.extension().is_some_and(|extension| extension == "prom") {
        true => Ok(path),
        false => Err(Problem::new(format!("\"{}\" has another ending", path.display()), "a file named *.prom")),
    })
}

fn milliseconds(span: Span) -> Preset {
    i64::try_from(span.as_millis()).expect("a default is short").into()
}

fn path() -> Takes<PathBuf> {
    line(4_096).map(PathBuf::from)
}

/// IFNAMSIZ is 16, including the terminating zero.
fn interface() -> Takes<String> {
    line(15).and_then(|name| match name.contains('/') || name.contains(char::is_whitespace) {
        true => Err(Problem::new(format!("\"{name}\" cannot be that"), "the name of an interface, 1 to 15 characters")),
        false => Ok(name),
    })
}

/// What `tunnels` takes.
const TUNNELS: &str = "a list of at most 4 names of interfaces, each once and not the managed one";

fn tunnels() -> Takes<Vec<String>> {
    texts().and_then(|names| {
        let problem = |name: &str| match name {
            "" => Some("it has an empty name".to_owned()),
            _ if name.len() > 15 || name.contains(['/', ' ', '\t']) => {
                Some(format!("\"{name}\" is no interface's name"))
            }
            _ => (names.iter().filter(|other| *other == name).count() > 1).then(|| format!("it has {name} twice")),
        };
        let too_many = || (names.len() > Kernel::TUNNELS_MOST).then(|| format!("it has {} names", names.len()));
        match names.iter().find_map(|name| problem(name)).or_else(too_many) {
            None => Ok(names),
            Some(problem) => Err(Problem::new(problem, TUNNELS)),
        }
    })
}

/// In scenarios, hosts without a policy of their own have none.
fn name_the_policy(config: &mut Section) {
    static POLICY: LazyLock<Section> = LazyLock::new(|| {
        let mut policy = PolicySettings::section().clone();
        policy.key_mut(key!(PolicySettings, policy)).default = Config::POLICY.as_str().into();
        policy
    });
    let of_policy = config.children.iter_mut().filter(|child| child.name == key!(Config, policy));
    of_policy.for_each(|child| child.section = &POLICY);
}

fn together(config: &Config, part: &Part<'_>) -> Result<(), DocumentError> {
    if let Some(managed) = config.interface.as_ref().filter(|managed| config.tunnels.contains(managed)) {
        let problem = format!("it has {managed}, which is the managed interface (`interface`)");
        return Err(part.error(key!(Config, tunnels), problem, TUNNELS));
    }
    let least = 2 * config.tick_ms;
    if config.lease_ms < least && config.lease() == LEASE {
        let problem = format!("{} is more than half of lease_ms, which is {}", config.tick_ms, config.lease_ms);
        let accepted = format!("at most {}, or with a lease_ms of {least} or more", config.lease_ms / 2);
        return Err(part.error(key!(Config, tick_ms), problem, accepted));
    }
    at_least(part, key!(Config, lease_ms), config.lease_ms, least, 60_000)?;
    let least_s = (4 * config.tick_ms).div_ceil(1000).max(LastLinkConfig::LEAST_VALIDITY_S.into());
    let count = config.rules.len();
    if count > lasthop_kernel::Kernel::RULES_MOST {
        let accepted = format!("at most {}", lasthop_kernel::Kernel::RULES_MOST);
        return Err(part.error(key!(Config, rules), format!("there are {count}"), accepted));
    }
    if let Some(deadline) = config.policy.command_deadline_ms.filter(|deadline| *deadline > config.tick_ms) {
        let policy = Part { path: part.path.key(key!(Config, policy)), ..part.clone() };
        let problem = format!("{deadline} is longer than a tick");
        let accepted = format!("1 to {}, the tick_ms", config.tick_ms);
        return Err(policy.error(key!(PolicySettings, command_deadline_ms), problem, accepted));
    }
    let last_link = Part { path: part.path.key(key!(Config, last_link)), ..part.clone() };
    at_least(&last_link, key!(LastLinkConfig, validity_s), config.last_link.validity_s.into(), least_s, 32_768)
}

fn beacons(beacon: &BeaconConfig, part: &Part<'_>) -> Result<(), DocumentError> {
    if beacon.relay.is_some() && beacon.group_key_file.is_none() {
        let problem = "needs a group key, for a relay passes on what it can check alone";
        return Err(part.error(key!(BeaconConfig, relay), problem, "group_key_file beside it (`lasthop key`)"));
    }
    at_least(part, key!(BeaconConfig, age_out_ms), beacon.age_out_ms, 2 * beacon.interval_ms, 60_000)
}

fn at_least(part: &Part<'_>, key: &str, value: u64, least: u64, most: u64) -> Result<(), DocumentError> {
    if value >= least {
        return Ok(());
    }
    Err(part.error(key, format!("{value} is out of range"), format!("a whole number from {least} to {most}")))
}

fn fits_some_and_says_one_thing(rule: &RuleConfig, part: &Part<'_>) -> Result<(), DocumentError> {
    if rule.cgroup.is_none() && rule.user.is_none() {
        let problem = "is not there, and neither is `user`";
        return Err(part.error(key!(RuleConfig, cgroup), problem, "a cgroup, a user, or both"));
    }
    if !rule.govern && rule.most_mbps.is_some() {
        let problem = "is beside `govern = false`, which leaves nothing to limit";
        return Err(part.error(key!(RuleConfig, most_mbps), problem, "one of the two"));
    }
    Ok(())
}

fn is_about_something(link: &LastLinkConfig, part: &Part<'_>) -> Result<(), DocumentError> {
    if link.report && !link.measure && !link.has_numbers() {
        let problem = "true, and there is nothing to report";
        let accepted = "false; or beside it bandwidth_mbps, packet_error_rate, or measure = true";
        return Err(part.error(key!(LastLinkConfig, report), problem, accepted));
    }
    if link.access_point.is_some() && !link.has_numbers() {
        let problem = "there is nothing that would hold behind it";
        let accepted = "an access point beside bandwidth_mbps or packet_error_rate";
        return Err(part.error(key!(LastLinkConfig, access_point), problem, accepted));
    }
    Ok(())
}

impl Default for Config {
    fn default() -> Self {
        Self::preset()
    }
}

impl Default for BeaconConfig {
    fn default() -> Self {
        Self::preset()
    }
}

impl Default for LastLinkConfig {
    fn default() -> Self {
        Self::preset()
    }
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self::preset()
    }
}

impl Default for RadioConfig {
    fn default() -> Self {
        Self::preset()
    }
}

impl Config {
    /// The default policy: it needs no parameter of the access point. (A scenario's hosts default to none.)
    pub const POLICY: PolicyName = PolicyName::Lasthop;
    /// The default file.
    pub const FILE: &str = "/etc/lasthop/agent.toml";

    /// The file to read: `named`, else `standard` if that exists.
    ///
    /// # Errors
    /// If the existence of `standard` cannot be determined.
    pub fn file(named: Option<&Path>, standard: &Path) -> Result<Option<PathBuf>, DocumentError> {
        if let Some(named) = named {
            return Ok(Some(named.to_owned()));
        }
        match standard.try_exists() {
            Ok(is_there) => Ok(is_there.then(|| standard.to_owned())),
            Err(error) => Err(cannot_read(standard, error)),
        }
    }

    /// The drop-ins of a file: those named `*.toml` in the folder FILE.d, in the order of their names. None if there is
    /// no such folder.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn drop_ins(file: &Path) -> Result<Vec<PathBuf>, DocumentError> {
        let folder = PathBuf::from(format!("{}.d", file.display()));
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(cannot_read(&folder, error)),
        };
        let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
        let mut paths = paths.map_err(|error| cannot_read(&folder, error))?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        paths.sort_unstable();
        Ok(paths)
    }

    /// Reads a file, or the defaults without one, and applies its [drop-ins](Self::drop_ins) and then the flags. Every
    /// value in every file must be valid, even under a drop-in or a flag. Conditions between keys are checked on the
    /// result.
    ///
    /// # Errors
    /// Names the file and line, or the flag; the key; and the accepted values.
    pub fn load(file: Option<&Path>, flags: &[Override]) -> Result<Self, DocumentError> {
        match file {
            None => Self::from_toml("the defaults", "", flags),
            Some(path) => {
                let read = |path: &Path| text_of(path, MOST_TYPED_BYTES).map_err(|error| cannot_read(path, error));
                let mut changes = Vec::new();
                for drop_in in Self::drop_ins(path)? {
                    changes.extend(Self::changes(&drop_in.display().to_string(), &read(&drop_in)?)?);
                }
                changes.extend_from_slice(flags);
                Self::from_toml(&path.display().to_string(), &read(path)?, &changes)
            }
        }
    }

    /// The keys that a drop-in sets. Messages name the file.
    fn changes(file: &str, text: &str) -> Result<Vec<Override>, DocumentError> {
        Document::read(file, text, &[], Self::section())?;
        let mut changes = Vec::new();
        let mut left: Vec<(String, toml::Value)> =
            text.parse::<toml::Table>().expect("it was read above").into_iter().collect();
        while let Some((key, value)) = left.pop() {
            match value {
                toml::Value::Table(table) => {
                    left.extend(table.into_iter().map(|(of, value)| (format!("{key}.{of}"), value)))
                }
                value => changes.push(Override::of_flag(&format!("{file}: {key} ="), &key, value)),
            }
        }
        Ok(changes)
    }

    fn from_toml(file: &str, text: &str, flags: &[Override]) -> Result<Self, DocumentError> {
        // A flag does not excuse a wrong value in the file.
        Document::read(file, text, &[], Self::section())?;
        Self::read(&Document::read(file, text, flags, Self::section())?.top())
    }

    /// Whether a file may have every one of these values.
    ///
    /// # Errors
    /// The first invalid value, with its dotted key and the accepted values.
    pub fn validate(&self) -> Result<(), DocumentError> {
        Keys::validate(self, "the configuration")
    }

    /// Time between two decisions.
    pub fn tick(&self) -> Span {
        Span::from_millis(self.tick_ms)
    }

    /// Duration of a bound without renewal.
    pub fn lease(&self) -> Span {
        Span::from_millis(self.lease_ms)
    }
}

fn cannot_read(path: &Path, source: std::io::Error) -> DocumentError {
    DocumentError::Read { what: "configuration", path: path.to_owned(), source }
}

impl LastLinkConfig {
    /// The minimum of [`LastLinkConfig::validity_s`]. A report is renewed four times in it, the last at least 2 s
    /// before its end.
    pub const LEAST_VALIDITY_S: u32 = 8;

    /// Whether some value is configured and need not be measured.
    pub(crate) const fn has_numbers(&self) -> bool {
        self.bandwidth_mbps.is_some() || self.packet_error_rate.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_policy::{Row, WindowTable};

    #[test]
    fn drop_ins_change_single_keys_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("agent.toml");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
        write("agent.toml", "mode = \"control\"\ntick_ms = 400\n[beacon]\nport = 1000\n");
        fs::create_dir(folder.path().join("agent.toml.d")).expect("a folder");
        write("agent.toml.d/20-b.toml", "[beacon]\nport = 3000\n");
        write("agent.toml.d/10-a.toml", "tick_ms = 300\n[beacon]\nport = 2000\n");
        write("agent.toml.d/30-c.toml~", "nonsense");
        let config = Config::load(Some(&file), &[Override::of_flag("--mode", "mode", "advise")]).expect("it is valid");
        assert_eq!((config.mode, config.tick_ms, config.beacon.port), (Mode::Advise, 300, 3000));

        let rule = |whose: &str| format!("[[rules]]\nuser = \"{whose}\"\ngovern = false\n");
        let users = || {
            let rules = Config::load(Some(&file), &[]).expect("it is valid").rules;
            rules.into_iter().map(|rule| rule.user.expect("each has one")).collect::<Vec<_>>()
        };
        write("agent.toml.d/40-d.toml", &(rule("one") + &rule("two")));
        assert_eq!(users(), ["one", "two"]);
        write("agent.toml.d/50-e.toml", &rule("three"));
        assert_eq!(users(), ["three"]);
        write("agent.toml.d/60-f.toml", "rules = []\n");
        assert_eq!(users(), [""; 0]);

        write("agent.toml.d/20-b.toml", "[beacon]\nport = 3000\nprot = 1\n");
        let error = Config::load(Some(&file), &[]).expect_err("there is no such key").to_string();
        assert!(error.contains("20-b.toml:3") && error.contains("beacon.prot"), "{error}");
        // Each is right, but not together with the file.
        write("agent.toml.d/20-b.toml", "lease_ms = 310\n");
        let error = Config::load(Some(&file), &[]).expect_err("a lease of one tick").to_string();
        assert!(error.contains("lease_ms"), "{error}");
    }

    fn error(text: &str) -> String {
        Config::from_toml("agent.toml", text, &[]).expect_err("this configuration must not be accepted").to_string()
    }

    #[test]
    fn an_empty_file_is_the_default() {
        let config = Config::from_toml("agent.toml", "", &[]).expect("empty is fine");
        assert_eq!(config, Config::default());
        assert_eq!(config.mode, Mode::Advise);
        assert!(config.validate().is_ok());
        assert_eq!((config.tick(), config.lease()), (Span::from_millis(500), Span::from_millis(1500)));
    }

    #[test]
    fn where_no_policy_is_named_lasthop_decides_whatever_else_is_set() {
        let policy = |text: &str| {
            let config = Config::from_toml("agent.toml", text, &[]).expect("it is accepted");
            assert!(config.validate().is_ok(), "{text}");
            config.policy
        };
        for text in ["", "mode = \"advise\"", "[policy]", "[last_link]\nreport = true"] {
            assert_eq!(policy(text).policy, PolicyName::Lasthop, "{text}");
        }
        // A policy accepts the keys of the others.
        let of_formula = "[policy]\nbandwidth_max_mbps = 15.0\nenable_ratio = 2.0";
        assert_eq!(policy(of_formula).policy, PolicyName::Lasthop);
        let named = policy(&format!("{of_formula}\npolicy = \"formula\""));
        assert_eq!((named.policy, named.bandwidth_mbps()), (PolicyName::Formula, 15.0));
        let needs_more = [PolicyName::Fixed, PolicyName::External];
        for name in PolicyName::ALL.iter().filter(|name| !needs_more.contains(name)) {
            assert_eq!(policy(&format!("[policy]\npolicy = \"{name}\"")).policy, *name);
            assert_eq!(policy(&format!("policy.policy = \"{name}\"")).policy, *name);
        }
    }

    #[test]
    fn the_packaged_configuration_says_what_the_defaults_are() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/agent.toml");
        let packaged = Config::load(Some(&path), &[]).expect("the packaged configuration is valid");
        assert_eq!(packaged, Config::default());
        // Every commented key exists and shows its default.
        let text = fs::read_to_string(&path).expect("it was read a moment ago");
        let uncommented: String = text
            .lines()
            .map(|line| match line.strip_prefix("#= ") {
                Some(setting) => format!("{setting}\n"),
                None => format!("{line}\n"),
            })
            .collect();
        let all = Config::from_toml("agent.toml", &uncommented, &[]).expect("every commented key is accepted");
        let expected = Config {
            interface: Some("wlan0".to_owned()),
            cgroup: all.cgroup.clone(),
            excluded_cgroups: all.excluded_cgroups.clone(),
            leave: all.leave.clone(),
            record: all.record.clone(),
            trial: Some(true),
            socket_group: Some("adm".to_owned()),
            beacon: BeaconConfig {
                group: Some("office".to_owned()),
                group_key_file: all.beacon.group_key_file.clone(),
                relay: all.beacon.relay,
                ..BeaconConfig::default()
            },
            last_link: LastLinkConfig {
                bandwidth_mbps: Some(20.0),
                packet_error_rate: Some(0.001),
                access_point: Some("gateway 192.168.1.1".to_owned()),
                ..LastLinkConfig::default()
            },
            metrics: MetricsConfig {
                listen: "127.0.0.1:29470".parse().ok(),
                textfile: Some("/run/lasthop/lasthop.prom".into()),
            },
            policy: PolicySettings {
                policy: PolicyName::Lasthop,
                bound_segments: Some(64),
                bound_receive_segments: Some(64),
                bound_pacing_mbps: Some(2.0),
                enable_excess_ms: Some(51.0),
                release_ratio: Some(2.0),
                exponent: Some(-0.15),
                bandwidth_max_mbps: Some(19.0),
                count_segments: Some(vec![405, 183, 115, 82]),
                window_table: Some(WindowTable::Old),
                window_rows: Some([[0, 555, 200], [51, 50, 5]].map(Row::from).to_vec()),
                command: Some(["/usr/bin/python3", "/etc/lasthop/policy.py"].map(str::to_owned).to_vec()),
                command_deadline_ms: Some(100),
                command_user: Some("nobody".to_owned()),
                ..PolicySettings::default()
            },
            rules: vec![
                RuleConfig {
                    cgroup: Some("/system.slice/backup.service".to_owned()),
                    user: None,
                    govern: false,
                    most_mbps: None,
                },
                RuleConfig { cgroup: None, user: Some("camera".to_owned()), govern: true, most_mbps: Some(2.0) },
            ],
            ..Config::default()
        };
        assert_eq!(all, expected);
    }

    #[test]
    fn a_mistake_is_told_with_its_line_and_what_is_accepted() {
        for (text, said) in [
            (
                "[beacon]\nprot = 5",
                "agent.toml:2: beacon.prot: unknown key; did you mean port?; accepted: port, interval_ms, ",
            ),
            (
                "mode = \"contrl\"",
                "agent.toml:1: mode: \"contrl\" is not one of the words; did you mean \"control\"?; accepted: \"observe\", ",
            ),
            ("mode = 3", "agent.toml:1: mode: 3 is a whole number; accepted: \"observe\", \"advise\", \"control\""),
            (
                "[policy]\nenable_ratio = \"six\"",
                "agent.toml:2: policy.enable_ratio: \"six\" is text; accepted: a number from 1 to ",
            ),
            // Only studies leave out a part of a law.
            (
                "[policy]\nleave_out = \"edge\"",
                "agent.toml:2: policy.leave_out: unknown key; accepted: policy, bound_segments, ",
            ),
            (
                "[last_link]\nvalidity_s = 3.5",
                "agent.toml:2: last_link.validity_s: 3.5 is a number with a fraction; accepted: a whole number from 8 to 32768",
            ),
            (
                "[beacon]\nport = -1",
                "agent.toml:2: beacon.port: -1 is out of range; accepted: a whole number from 1 to 65535",
            ),
            (
                "tick_ms = 500\nlease_ms = 900",
                "agent.toml:2: lease_ms: 900 is out of range; accepted: a whole number from 1000 to 60000",
            ),
            (
                "tick_ms = 10000",
                "agent.toml:1: tick_ms: 10000 is more than half of lease_ms, which is 1500; accepted: at most 750, or with",
            ),
            (
                "[policy]\ncommand_deadline_ms = 501",
                "agent.toml:2: policy.command_deadline_ms: 501 is longer than a tick; accepted: 1 to 500, the tick_ms",
            ),
            (
                "[policy]\nexponent = 0.15",
                "agent.toml:2: policy.exponent: 0.15 is out of range; accepted: a number from -2 to 0",
            ),
            (
                "[last_link]\nreport = true\nmeasure = false",
                "agent.toml:2: last_link.report: true, and there is nothing to report; accepted: false; or ",
            ),
            (
                "[policy]\npolicy = \"fixed\"",
                "agent.toml:1: policy.bound_segments: is not there, and the policy \"fixed\" cannot be without it",
            ),
            (
                "tick_ms = 10000\nlease_ms = 20000\n[last_link]\nvalidity_s = 39",
                "agent.toml:4: last_link.validity_s: 39 is out of range; accepted: a whole number from 40 to ",
            ),
            (
                "[[rules]]\nuser = \"camera\"\n[[rules]]\ngovern = false",
                "agent.toml:3: rules[1].cgroup: is not there, and neither is `user`; accepted: a cgroup, a user, or both",
            ),
            (
                "[beacon]\ngroup_key_file = \"group.key\"\nrelay = \"127.0.0.1\"",
                "agent.toml:3: beacon.relay: \"127.0.0.1\" cannot be that; accepted: the IP address of one host on the network ",
            ),
            (
                "[[rules]]\ncgroup = \"backup.service\"",
                "agent.toml:2: rules[0].cgroup: \"backup.service\" cannot be that; accepted: a path as in /proc/PID/cgroup",
            ),
            (
                "[[rules]]\nuser = \"camera\"\ngovern = false\nmost_mbps = 2",
                "agent.toml:4: rules[0].most_mbps: is beside `govern = false`, which leaves nothing to limit; accepted: one",
            ),
            (
                "interface = \"wlan0\"\ntunnels = [\"wg0\", \"wlan0\"]",
                "agent.toml:2: tunnels: it has wlan0, which is the managed interface (`interface`); accepted: a list of at most 4",
            ),
            (
                "tunnels = [\"wg0\", \"tun0\", \"wg0\"]",
                "agent.toml:1: tunnels: it has wg0 twice; accepted: a list of at most 4 names of interfaces, each once",
            ),
            ("tunnels = [\"\"]", "agent.toml:1: tunnels: it has an empty name; accepted: a list of at most 4"),
            (
                "tunnels = [\"a/b\"]",
                "agent.toml:1: tunnels: \"a/b\" is no interface's name; accepted: a list of at most 4",
            ),
            (
                "tunnels = [\"a\", \"b\", \"c\", \"d\", \"e\"]",
                "agent.toml:1: tunnels: it has 5 names; accepted: a list of at most 4",
            ),
            (
                "[[rules]]\nusre = \"camera\"",
                "agent.toml:2: rules[0].usre: unknown key; did you mean user?; accepted: ",
            ),
            ("[last_link]\nreport = true\nreport = false", "agent.toml:3: not valid TOML: duplicate key"),
            ("mode = \"observe\"\nthis is no TOML", "agent.toml:2: not valid TOML: "),
        ] {
            let message = error(text);
            assert!(message.starts_with(said), "{message}");
        }
        for (text, key) in [
            ("interface = \"\"", "interface"),
            ("interface = \"a name that is too long\"", "interface"),
            ("interface = \"a/b\"", "interface"),
            ("[beacon]\nport = 0", "beacon.port"),
            ("[beacon]\nage_out_ms = 500", "beacon.age_out_ms"),
            ("[beacon]\ngroup = \"\"", "beacon.group"),
            ("[beacon]\ngroup = \"a\\nb\"", "beacon.group"),
            ("tick_ms = 10", "tick_ms"),
            ("leave = [3]", "leave"),
            ("[last_link]\nbandwidth_mbps = 0", "last_link.bandwidth_mbps"),
            ("[last_link]\nbandwidth_mbps = 4294968", "last_link.bandwidth_mbps"),
            ("[last_link]\nbandwidth_mbps = nan", "last_link.bandwidth_mbps"),
            ("[last_link]\npacket_error_rate = -0.1", "last_link.packet_error_rate"),
            ("[last_link]\nvalidity_s = 7", "last_link.validity_s"),
            ("[last_link]\naccess_point = \"gateway 10.0.0.1\"", "last_link.access_point"),
        ] {
            let message = error(text);
            assert!(message.contains(&format!(": {key}: ")) && message.contains("; accepted: "), "{message}");
        }
    }

    #[test]
    fn a_flag_is_over_the_file_and_is_named_where_it_is_wrong() {
        let flags = ["mode=control", "policy.bound_segments=7"].map(|flag| Override::parse(flag).expect("a flag"));
        let config = Config::from_toml("agent.toml", "mode = \"observe\"", &flags).expect("it is accepted");
        assert_eq!((config.mode, config.policy.bound_segments), (Mode::Control, Some(7)));
        let wrong = [Override::parse("tick_ms=7").expect("a flag")];
        let error = Config::from_toml("agent.toml", "", &wrong).expect_err("too short").to_string();
        assert_eq!(
            error,
            "`tick_ms=7` on agent.toml: tick_ms: 7 is out of range; accepted: a whole number from 50 to 10000"
        );
        let flag = [Override::of_flag("--mode", "mode", "observe")];
        let error = Config::from_toml("agent.toml", "mode = \"contrl\"", &flag).expect_err("no mode").to_string();
        assert!(error.starts_with("agent.toml:1: mode: \"contrl\" is not one of the words"), "{error}");
        let flag = [Override::of_flag("--interface", "interface", "wg0")];
        let error = Config::from_toml("agent.toml", "tunnels = [\"wg0\"]", &flag).expect_err("both").to_string();
        assert!(error.starts_with("agent.toml:1: tunnels: it has wg0, which is the managed interface"), "{error}");
        // The command line may supply a key that the file lacks.
        let flag = [Override::of_flag("--bound-segments", "policy.bound_segments", 7)];
        let fixed = Config::from_toml("agent.toml", "policy.policy = \"fixed\"", &flag).expect("it is whole");
        assert_eq!(fixed.policy.bound_segments, Some(7));
    }

    #[test]
    fn a_value_that_no_file_may_have_is_refused_as_well_where_it_is_set_otherwise() {
        let config = Config { tick_ms: 7, ..Config::default() };
        let error = config.validate().expect_err("too short").to_string();
        assert!(error.starts_with("the configuration: tick_ms: 7 is out of range"), "{error}");
    }

    #[test]
    fn a_named_file_is_read_else_the_standard_one_if_it_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let (named, standard) = (folder.path().join("mine.toml"), folder.path().join("agent.toml"));
        let file = |named: Option<&Path>| Config::file(named, &standard).expect("the folder can be read");
        assert_eq!(file(None), None);
        assert_eq!(file(Some(&named)), Some(named.clone()));
        fs::write(&standard, "mode = \"control\"\n").expect("written");
        assert_eq!(file(None), Some(standard.clone()));
        assert_eq!(file(Some(&named)), Some(named.clone()));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let message =
            Config::load(Some(Path::new("/nonexistent/agent.toml")), &[]).expect_err("no such file").to_string();
        assert!(message.contains("/nonexistent/agent.toml"), "{message}");
    }
}
