//! The agent's configuration: a TOML file, then the command line's flags, then [`Config::validate`].

use lasthop_peers::beacon;
use lasthop_policy::{self, PolicyName, PolicySettings, SettingsError};
use lasthop_units::Span;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// What the agent may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Watch and record; decide nothing, change nothing, send nothing.
    Observe,
    /// Decide and say so; change nothing.
    #[default]
    Advise,
    /// Decide and apply.
    Control,
}

/// Everything that can be configured. Each key has a default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The interface to the shared access network; absent: the one of the default route, followed when that moves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// What the agent may do.
    pub mode: Mode,
    /// Time between two decisions, in ms. 50 to 10,000.
    pub tick_ms: u64,
    /// How long a bound holds if it is not renewed, in ms. Two ticks or more, at most 60,000.
    pub lease_ms: u64,
    /// A cgroup v2 folder: only sockets of processes below it are controlled. Absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<PathBuf>,
    /// cgroup v2 folders whose sockets are left alone.
    pub excluded_cgroups: Vec<PathBuf>,
    /// Congestion controls whose sockets are left alone.
    pub leave: Vec<String>,
    /// Where to write JSON lines; `-` is the standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// A record in a file is set aside as FILE.1 before it grows beyond this, in MiB. 1 to 1,048,576.
    pub record_limit_mib: u64,
    /// Make sure by a lock in /run/lasthop that no other agent controls, or reports, the same interface. `false`: whoever starts
    /// the agent has made its network namespace, and knows.
    pub lock: bool,
    /// How to talk to peers.
    pub beacon: BeaconConfig,
    /// What servers are told of this host's own link.
    pub last_link: LastLinkConfig,
    /// What decides; where none is named, [`Config::POLICY`].
    pub policy: PolicySettings,
}

/// How to talk to peers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BeaconConfig {
    /// UDP port, the same on all hosts. 1 to 65,535.
    pub port: u16,
    /// Time between two beacons where few hosts are heard, in ms; where there are more it is longer ([`lasthop_peers::cadence`]). 50 to
    /// 10,000.
    pub interval_ms: u64,
    /// A peer that has not been heard for this long is forgotten, in ms; one that announces longer intervals is waited for
    /// 6.7 of them. Two intervals or more, at most 60,000.
    pub age_out_ms: u64,
    /// The name of the access point, the same on all hosts behind it and on no other; absent: its BSSID or the default
    /// gateway. 1 to 64 bytes, without control characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// A file with a secret that all hosts of a group share; absent: beacons are not authenticated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_key_file: Option<PathBuf>,
    /// Send and hear over IPv4 broadcast.
    pub ipv4: bool,
    /// Send and hear over IPv6 link-local multicast.
    pub ipv6: bool,
}

/// What servers are told of this host's own link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LastLinkConfig {
    /// Tell servers, in a TCP option of connections that this host opens on the managed interface.
    pub report: bool,
    /// The link's bandwidth towards this host, in Mb/s of IP packets; absent: measured. 0.001 to 4,294,967.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_mbps: Option<f64>,
    /// How many of the packets towards this host the link itself loses, once it has given up repeating them; absent: measured. 0
    /// to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_error_rate: Option<f64>,
    /// The two above hold behind this access point only: [`lasthop_peers::group::Label`] in words, as the log has it; absent: everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_point: Option<String>,
    /// Measure what is not given.
    pub measure: bool,
    /// Take the link speed of a wired interface for the bandwidth from the start; `false`: only once half of it has been seen.
    pub trust_link_speed: bool,
    /// How long an estimate holds without new evidence, and a report on a server without another one, in s; a report can say
    /// powers of two only, and says the next lower one. 8, and four ticks, to 32,768.
    pub validity_s: u32,
}

/// A configuration that is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The file is no TOML, or has an unknown key or a value of the wrong kind.
    #[error("{}: {}{message}", file.display(), key.as_ref().map(|key| format!("`{key}`: ")).unwrap_or_default())]
    Parse {
        /// The file.
        file: PathBuf,
        /// The dotted key; `None` where the file is no TOML at all.
        key: Option<String>,
        /// What is wrong with it, where, and what is accepted.
        message: String,
    },
    /// A value is out of its range.
    #[error("{}`{key}` = {value} is not accepted: it must be {accepted}", Prefix(file.as_deref()))]
    Value {
        /// The file, if the value may come from one.
        file: Option<PathBuf>,
        /// The dotted key.
        key: String,
        /// The value.
        value: String,
        /// What would be accepted.
        accepted: String,
    },
}

struct Prefix<'a>(Option<&'a Path>);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |file| write!(f, "{}: ", file.display()))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Observe => "observe",
            Self::Advise => "advise",
            Self::Control => "control",
        })
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            interface: None,
            mode: Mode::default(),
            tick_ms: lasthop_policy::TICK.as_millis(),
            lease_ms: lasthop_policy::LEASE.as_millis(),
            cgroup: None,
            excluded_cgroups: Vec::new(),
            leave: Vec::new(),
            record: None,
            record_limit_mib: 64,
            lock: true,
            beacon: BeaconConfig::default(),
            last_link: LastLinkConfig::default(),
            policy: PolicySettings { policy: Self::POLICY, ..PolicySettings::default() },
        }
    }
}

impl Default for LastLinkConfig {
    fn default() -> Self {
        Self {
            report: false,
            bandwidth_mbps: None,
            packet_error_rate: None,
            access_point: None,
            measure: true,
            trust_link_speed: false,
            validity_s: 32,
        }
    }
}

impl Default for BeaconConfig {
    fn default() -> Self {
        Self {
            port: 29470,
            interval_ms: beacon::INTERVAL.as_millis(),
            age_out_ms: 2000,
            group: None,
            group_key_file: None,
            ipv4: true,
            ipv6: true,
        }
    }
}

impl Config {
    /// What decides where no policy is named: the one that needs no number of the access point. (A scenario's hosts have none.)
    pub const POLICY: PolicyName = PolicyName::Lasthop;
    /// The file that is read where none is named.
    pub const FILE: &str = "/etc/lasthop/agent.toml";

    /// The file to read: the one that is `named`, else `standard` if it is there.
    ///
    /// # Errors
    /// If it cannot be said whether `standard` is there.
    pub fn file(named: Option<&Path>, standard: &Path) -> Result<Option<PathBuf>, ConfigError> {
        if let Some(named) = named {
            return Ok(Some(named.to_owned()));
        }
        match standard.try_exists() {
            Ok(is_there) => Ok(is_there.then(|| standard.to_owned())),
            Err(error) => Err(ConfigError::Read { file: standard.to_owned(), error }),
        }
    }

    /// Reads a file and validates it.
    ///
    /// # Errors
    /// Names the file, the key, and what is accepted.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path).map_err(|error| ConfigError::Read { file: path.to_owned(), error })?;
        let config = Self::from_toml(path, &text)?;
        config.validate().map_err(|error| error.in_file(path))?;
        Ok(config)
    }

    fn from_toml(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let parse_error = |key: Option<String>, error: toml::de::Error| ConfigError::Parse {
            file: path.to_owned(),
            key,
            message: located(text, &error),
        };
        let document = toml::Deserializer::parse(text).map_err(|error| parse_error(None, error))?;
        let mut config: Self = serde_path_to_error::deserialize(document)
            .map_err(|error| parse_error(Some(error.path().to_string()), error.into_inner()))
            .map_err(|error| match error {
                ConfigError::Parse { file, key: Some(key), message } => {
                    let message = in_plain_words(&message, accepted(&key));
                    ConfigError::Parse { file, key: Some(key), message }
                }
                other => other,
            })?;
        if !names_policy(text) {
            config.policy.policy = Self::POLICY;
        }
        Ok(config)
    }

    /// Whether every value lies in its range.
    ///
    /// # Errors
    /// The first that does not, with its dotted key and what is accepted.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let BeaconConfig { port, interval_ms, age_out_ms, .. } = self.beacon;
        within("tick_ms", self.tick_ms, 50, 10_000)?;
        within("lease_ms", self.lease_ms, 2 * self.tick_ms, 60_000)?;
        within("record_limit_mib", self.record_limit_mib, 1, 1 << 20)?;
        within("beacon.port", port.into(), 1, 65_535)?;
        within("beacon.interval_ms", interval_ms, 50, 10_000)?;
        within("beacon.age_out_ms", age_out_ms, 2 * interval_ms, 60_000)?;
        if let Some(name) = &self.beacon.group
            && (name.is_empty() || name.len() > 64 || name.contains(char::is_control))
        {
            return Err(refused(
                "beacon.group",
                format!("{name:?}"),
                "a name of 1 to 64 bytes, without control characters",
            ));
        }
        if let Some(name) = &self.interface {
            // IFNAMSIZ is 16 with the terminating zero.
            if name.is_empty() || name.len() > 15 || name.contains(['/', '\0']) || name.contains(char::is_whitespace) {
                return Err(refused("interface", format!("{name:?}"), "the name of an interface, 1 to 15 characters"));
            }
        }
        self.last_link.validate(self.tick_ms)?;
        self.policy.validate().map_err(|SettingsError { key, value, accepted }| ConfigError::Value {
            file: None,
            key: format!("policy.{key}"),
            value,
            accepted,
        })
    }

    /// Time between two decisions.
    pub fn tick(&self) -> Span {
        Span::from_millis(self.tick_ms)
    }

    /// How long a bound holds if it is not renewed.
    pub fn lease(&self) -> Span {
        Span::from_millis(self.lease_ms)
    }
}

impl LastLinkConfig {
    /// The least of [`LastLinkConfig::validity_s`]: a report is renewed four times in it, and 2 s before it lapses at the latest.
    pub const LEAST_VALIDITY_S: u32 = 8;

    /// Whether something is given that need not be measured.
    pub(crate) const fn has_numbers(&self) -> bool {
        self.bandwidth_mbps.is_some() || self.packet_error_rate.is_some()
    }

    fn validate(&self, tick_ms: u64) -> Result<(), ConfigError> {
        // 2^32 - 1 kb/s is the most that a report can say.
        let highest = f64::from(u32::MAX / 1000);
        number_within("last_link.bandwidth_mbps", self.bandwidth_mbps, 0.001, highest)?;
        number_within("last_link.packet_error_rate", self.packet_error_rate, 0.0, 1.0)?;
        let least_s = (4 * tick_ms).div_ceil(1000).max(Self::LEAST_VALIDITY_S.into());
        within("last_link.validity_s", self.validity_s.into(), least_s, 32_768)?;
        if self.report && !self.measure && !self.has_numbers() {
            return Err(refused(
                "last_link.report",
                "true".to_owned(),
                "false where there is nothing to report: bandwidth_mbps, packet_error_rate, or measure = true",
            ));
        }
        if let Some(label) = &self.access_point
            && (label.is_empty() || label.contains(char::is_control) || !self.has_numbers())
        {
            let accepted = "an access point as the log names it (\"gateway 10.0.0.1\"), beside bandwidth_mbps or packet_error_rate";
            return Err(refused("last_link.access_point", format!("{label:?}"), accepted));
        }
        Ok(())
    }
}

impl ConfigError {
    fn in_file(self, path: &Path) -> Self {
        match self {
            Self::Value { key, value, accepted, .. } => {
                Self::Value { file: Some(path.to_owned()), key, value, accepted }
            }
            other => other,
        }
    }
}

fn refused(key: &str, value: String, accepted: &str) -> ConfigError {
    ConfigError::Value { file: None, key: key.to_owned(), value, accepted: accepted.to_owned() }
}

fn within(key: &str, value: u64, lowest: u64, highest: u64) -> Result<(), ConfigError> {
    if (lowest..=highest).contains(&value) {
        return Ok(());
    }
    Err(refused(key, value.to_string(), &format!("a whole number from {lowest} to {highest}")))
}

fn number_within(key: &str, value: Option<f64>, lowest: f64, highest: f64) -> Result<(), ConfigError> {
    match value {
        Some(value) if !(lowest..=highest).contains(&value) => {
            Err(refused(key, value.to_string(), &format!("a number from {lowest} to {highest}")))
        }
        _ => Ok(()),
    }
}

/// Whether the key `policy.policy` is there. Where a table `[policy]` lacks it, serde takes the default of the settings, which is
/// that of a scenario's hosts.
fn names_policy(text: &str) -> bool {
    let named = |document: toml::Table| document.get("policy").is_some_and(|table| table.get("policy").is_some());
    toml::from_str(text).is_ok_and(named)
}

/// What a key with a range accepts: what [`Config::validate`] says of a value that no range has.
fn accepted(key: &str) -> Option<String> {
    use toml::{Table, Value};

    let outside =
        [Value::Float(f64::NAN), Value::Integer(i64::MAX), Value::Integer(u32::MAX.into()), Value::Integer(0)];
    outside.into_iter().find_map(|value| {
        let nested =
            key.rsplit('.').fold(value, |value, name| Value::Table(Table::from_iter([(name.to_owned(), value)])));
        match Value::try_into::<Config>(nested).ok()?.validate() {
            Err(ConfigError::Value { key: refused, accepted, .. }) if refused == key => Some(accepted),
            _ => None,
        }
    })
}

/// The parser's "expected f64" as what is accepted, or at least as no type of Rust's.
fn in_plain_words(message: &str, accepted: Option<String>) -> String {
    const TYPES: [(&str, &str); 6] = [
        ("f64", "a number"),
        ("u64", "a whole number"),
        ("u32", "a whole number"),
        ("u16", "a whole number"),
        ("usize", "a whole number"),
        ("a boolean", "true or false"),
    ];
    let Some((found, expected)) = message.split_once("expected ") else { return message.to_owned() };
    let (expected, line) = expected.split_once(" (line").map_or((expected, ""), |(expected, line)| (expected, line));
    let Some((_, words)) = TYPES.into_iter().find(|(name, _)| *name == expected) else { return message.to_owned() };
    let line = if line.is_empty() { String::new() } else { format!(" (line{line}") };
    format!("{found}expected {}{line}", accepted.as_deref().unwrap_or(words))
}

/// The parser's message on one line, with the line of the file.
fn located(text: &str, error: &toml::de::Error) -> String {
    let mut message = error.message().replace('\n', ", ");
    match error.span() {
        Some(span) => {
            if message == "duplicate key"
                && let Some(key) = text.get(span.clone())
            {
                message = format!("{message} `{key}`");
            }
            let line = 1 + text.as_bytes()[..span.start.min(text.len())].iter().filter(|byte| **byte == b'\n').count();
            format!("{message} (line {line})")
        }
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_policy::{Row, WindowTable};

    fn error(text: &str) -> String {
        let file = Path::new("/etc/lasthop/agent.toml");
        let parsed = Config::from_toml(file, text);
        let refused = parsed.and_then(|config| config.validate().map_err(|error| error.in_file(file)));
        refused.expect_err("this configuration must not be accepted").to_string()
    }

    #[test]
    fn an_empty_file_is_the_default() {
        let config = Config::from_toml(Path::new("agent.toml"), "").expect("empty is fine");
        assert_eq!(config, Config::default());
        assert_eq!(config.mode, Mode::Advise);
        assert!(config.validate().is_ok());
        assert_eq!((config.tick(), config.lease()), (Span::from_millis(500), Span::from_millis(1500)));
    }

    #[test]
    fn where_no_policy_is_named_lasthop_decides_whatever_else_is_set() {
        let policy = |text: &str| {
            let config = Config::from_toml(Path::new("agent.toml"), text).expect("it is accepted");
            assert!(config.validate().is_ok(), "{text}");
            config.policy
        };
        for text in ["", "mode = \"advise\"", "[policy]", "[last_link]\nreport = true"] {
            assert_eq!(policy(text).policy, PolicyName::Lasthop, "{text}");
        }
        // Each policy leaves the keys of the others alone.
        let of_formula = "[policy]\nbandwidth_max_mbps = 15.0\nenable_ratio = 2.0";
        assert_eq!(policy(of_formula).policy, PolicyName::Lasthop);
        let named = policy(&format!("{of_formula}\npolicy = \"formula\""));
        assert_eq!((named.policy, named.bandwidth_mbps()), (PolicyName::Formula, 15.0));
        for name in PolicyName::ALL.iter().filter(|name| **name != PolicyName::Fixed) {
            assert_eq!(policy(&format!("[policy]\npolicy = \"{name}\"")).policy, *name);
            assert_eq!(policy(&format!("policy.policy = \"{name}\"")).policy, *name);
        }
    }

    #[test]
    fn the_packaged_configuration_says_what_the_defaults_are() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/agent.toml");
        let packaged = Config::load(&path).expect("the packaged configuration is valid");
        assert_eq!(packaged, Config::default());
        // Every commented key is one that exists, with its default.
        let text = fs::read_to_string(&path).expect("it was read a moment ago");
        let uncommented: String = text
            .lines()
            .map(|line| match line.strip_prefix("#= ") {
                Some(setting) => format!("{setting}\n"),
                None => format!("{line}\n"),
            })
            .collect();
        let all = Config::from_toml(&path, &uncommented).expect("every commented key is accepted");
        let expected = Config {
            interface: Some("wlan0".to_owned()),
            cgroup: all.cgroup.clone(),
            excluded_cgroups: all.excluded_cgroups.clone(),
            leave: all.leave.clone(),
            record: all.record.clone(),
            beacon: BeaconConfig {
                group: Some("office".to_owned()),
                group_key_file: all.beacon.group_key_file.clone(),
                ..BeaconConfig::default()
            },
            last_link: LastLinkConfig {
                bandwidth_mbps: Some(20.0),
                packet_error_rate: Some(0.001),
                access_point: Some("gateway 192.168.1.1".to_owned()),
                ..LastLinkConfig::default()
            },
            policy: PolicySettings {
                policy: PolicyName::Lasthop,
                bound_segments: Some(64),
                bound_pacing_mbps: Some(2.0),
                enable_excess_ms: Some(51.0),
                release_ratio: Some(2.0),
                exponent: Some(-0.15),
                bandwidth_max_mbps: Some(19.0),
                count_segments: vec![405, 183, 115, 82],
                window_table: Some(WindowTable::Old),
                window_rows: [[0, 555, 200], [51, 50, 5]].map(Row::from).to_vec(),
                ..PolicySettings::default()
            },
            ..Config::default()
        };
        assert_eq!(all, expected);
    }

    #[test]
    fn an_unknown_key_is_named_with_those_that_are_known() {
        let message = error("[beacon]\nprot = 5\n");
        assert!(message.starts_with("/etc/lasthop/agent.toml: `beacon.prot`: unknown field `prot`"), "{message}");
        assert!(message.contains("`port`") && message.ends_with("(line 2)"), "{message}");
    }

    #[test]
    fn an_unknown_mode_is_named_with_those_that_are_known() {
        let message = error("mode = \"contrl\"");
        assert!(message.starts_with("/etc/lasthop/agent.toml: `mode`: unknown variant `contrl`"), "{message}");
        assert!(message.contains("`observe`, `advise`, `control`"), "{message}");
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_named() {
        let message = error("[policy]\nenable_ratio = \"six\"");
        assert!(message.starts_with("/etc/lasthop/agent.toml: `policy.enable_ratio`: invalid type"), "{message}");
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_told_what_is_accepted_and_no_type_of_the_program() {
        for (text, said) in [
            (
                "[last_link]\nbandwidth_mbps = \"20\"",
                "`last_link.bandwidth_mbps`: invalid type: string \"20\", expected a number from 0.001 to 4294967 (line 2)",
            ),
            (
                "[last_link]\nvalidity_s = 3.5",
                "`last_link.validity_s`: invalid type: floating point `3.5`, expected a whole number from 8 to 32768 (line 2)",
            ),
            (
                "tick_ms = \"fast\"",
                "`tick_ms`: invalid type: string \"fast\", expected a whole number from 50 to 10000 (line 1)",
            ),
            (
                "[beacon]\nport = -1",
                "`beacon.port`: invalid value: integer `-1`, expected a whole number from 1 to 65535 (line 2)",
            ),
            (
                "[policy]\nexponent = true",
                "`policy.exponent`: invalid type: boolean `true`, expected a number from -2 to 0 (line 2)",
            ),
            (
                "[last_link]\nreport = \"yes\"",
                "`last_link.report`: invalid type: string \"yes\", expected true or false (line 2)",
            ),
            ("mode = 3", "`mode`: "),
        ] {
            let message = error(text);
            let message = message.strip_prefix("/etc/lasthop/agent.toml: ").expect("the file is named");
            assert!(message.starts_with(said), "{message}");
        }
        // No key is told a type of Rust's, whatever it is given.
        let all = Config {
            interface: Some("a".into()),
            cgroup: Some("a".into()),
            record: Some("a".into()),
            ..Config::default()
        };
        let all = toml::Table::try_from(all).expect("a configuration is TOML");
        let keys = all.iter().flat_map(|(name, value)| match value {
            toml::Value::Table(table) => table.keys().map(|key| format!("{name}.{key}")).collect(),
            _ => vec![name.clone()],
        });
        for key in keys {
            let message = error(&format!("{key} = 1979-05-27"));
            let expected =
                message.rsplit("expected ").next().expect("there is one").split(" (line").next().expect("there is one");
            assert!(!["f64", "u64", "u32", "u16", "usize", "i64"].contains(&expected), "{message}");
        }
    }

    #[test]
    fn a_key_that_is_there_twice_is_named() {
        let message = error("[last_link]\nreport = true\nreport = false");
        assert_eq!(message, "/etc/lasthop/agent.toml: duplicate key `report` (line 3)");
    }

    #[test]
    fn a_value_out_of_range_is_named_with_what_is_accepted() {
        assert_eq!(
            error("tick_ms = 500\nlease_ms = 900"),
            "/etc/lasthop/agent.toml: `lease_ms` = 900 is not accepted: it must be a whole number from 1000 to 60000"
        );
        assert_eq!(
            error("[policy]\nexponent = 0.15"),
            "/etc/lasthop/agent.toml: `policy.exponent` = 0.15 is not accepted: it must be a number from -2 to 0"
        );
        assert_eq!(
            error("[last_link]\npacket_error_rate = 1.5"),
            "/etc/lasthop/agent.toml: `last_link.packet_error_rate` = 1.5 is not accepted: it must be a number from 0 to 1"
        );
        assert_eq!(
            error("[last_link]\nreport = true\nmeasure = false"),
            "/etc/lasthop/agent.toml: `last_link.report` = true is not accepted: it must be false where there is nothing to \
             report: bandwidth_mbps, packet_error_rate, or measure = true"
        );
        for text in [
            "interface = \"\"",
            "interface = \"a name that is too long\"",
            "[beacon]\nport = 0",
            "[beacon]\nage_out_ms = 500",
            "[beacon]\ngroup = \"\"",
            "tick_ms = 10",
            "[policy]\npolicy = \"fixed\"",
            "[last_link]\nbandwidth_mbps = 0",
            "[last_link]\nbandwidth_mbps = 4294968",
            "[last_link]\nbandwidth_mbps = nan",
            "[last_link]\npacket_error_rate = -0.1",
            "[last_link]\nvalidity_s = 40000",
            "[last_link]\nvalidity_s = 7",
            "tick_ms = 10000\nlease_ms = 20000\n[last_link]\nvalidity_s = 39",
            "[last_link]\naccess_point = \"gateway 10.0.0.1\"",
        ] {
            assert!(error(text).contains("is not accepted"), "{text}");
        }
    }

    #[test]
    fn what_is_no_toml_is_named_with_its_line() {
        let message = error("mode = \"observe\"\nthis is no TOML\n");
        assert!(message.starts_with("/etc/lasthop/agent.toml: ") && message.contains("(line 2)"), "{message}");
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
        let message = Config::load(Path::new("/nonexistent/agent.toml")).expect_err("no such file").to_string();
        assert!(message.contains("/nonexistent/agent.toml"), "{message}");
    }
}
