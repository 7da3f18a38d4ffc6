//! Rereading the configuration: the changed keys, and those of them that a running agent can follow.

use crate::config::Config;
use lasthop_keys::{Document, Keys as _};
use std::collections::{BTreeMap, BTreeSet};

/// Keys and tables of resources that are opened or claimed at the start.
const AT_RESTART: [&str; 8] =
    ["interface", "containers", "record", "record_limit_mib", "lock", "socket_group", "last_link", "metrics"];

/// The dotted names of keys with another value than before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Keys that take effect now.
    pub(crate) live: Vec<String>,
    /// Keys that take effect after a restart.
    pub(crate) at_restart: Vec<String>,
}

impl Changes {
    /// Compares the configuration in force with the new one.
    pub(crate) fn between(old: &Config, new: &Config) -> Self {
        let (old, new) = (keys(old), keys(new));
        let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
        let changed = names.into_iter().filter(|name| old.get(*name) != new.get(*name)).cloned();
        let (at_restart, live) = changed.partition(|name| needs_restart(name));
        Self { live, at_restart }
    }

    /// Whether one of these keys or tables has another value from now on.
    pub(crate) fn touch(&self, names: &[&str]) -> bool {
        let is_one = |key: &String| names.iter().any(|name| key == name || key.starts_with(&format!("{name}.")));
        self.live.iter().any(is_one)
    }
}

/// The configuration of a running agent after a reload: the new one, with the old values of keys that need a restart.
pub(crate) fn in_force(old: &Config, new: &Config) -> Config {
    let [old, mut new] = [old, new].map(table);
    for name in AT_RESTART {
        match old.get(name) {
            Some(value) => _ = new.insert(name.to_owned(), value.clone()),
            None => _ = new.remove(name),
        }
    }
    let document = Document::from_table("the configuration in force", new, &[], Config::section());
    document.and_then(|document| Config::read(&document.top())).expect("each key was accepted before")
}

fn needs_restart(name: &str) -> bool {
    AT_RESTART.contains(&name.split('.').next().unwrap_or(name))
}

fn table(config: &Config) -> toml::Table {
    toml::Table::try_from(config).expect("a configuration is TOML")
}

/// Every key that has a value.
fn keys(config: &Config) -> BTreeMap<String, toml::Value> {
    let dotted = table(config).into_iter().flat_map(|(name, value)| match value {
        toml::Value::Table(table) => table.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)).collect(),
        value => vec![(name, value)],
    });
    dotted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BeaconConfig, LastLinkConfig, MetricsConfig};
    use lasthop_status::Mode;

    #[test]
    fn changes_are_named_and_those_that_need_a_restart_apart() {
        let old = Config::default();
        assert_eq!(Changes::between(&old, &old), Changes::default());
        let new = Config {
            interface: Some("wlan1".to_owned()),
            mode: Mode::Control,
            beacon: BeaconConfig { group: Some("office".to_owned()), ..BeaconConfig::default() },
            last_link: LastLinkConfig { report: true, ..LastLinkConfig::default() },
            metrics: MetricsConfig { listen: "127.0.0.1:29470".parse().ok(), ..MetricsConfig::default() },
            ..Config::default()
        };
        let changes = Changes::between(&old, &new);
        assert_eq!(changes.live, ["beacon.group", "mode"]);
        assert_eq!(changes.at_restart, ["interface", "last_link.report", "metrics.listen"]);
        assert!(changes.touch(&["mode"]) && changes.touch(&["beacon"]) && !changes.touch(&["policy", "cgroup"]));
        // Setting it back is a change too, although the keys are absent then.
        assert_eq!(Changes::between(&new, &old), changes);
    }

    #[test]
    fn what_needs_a_restart_stays_as_it_was() {
        let old = Config { interface: Some("wlan0".to_owned()), ..Config::default() };
        let new = Config { interface: None, mode: Mode::Control, lease_ms: 2000, ..Config::default() };
        let expected = Config { mode: Mode::Control, lease_ms: 2000, ..old.clone() };
        assert_eq!(in_force(&old, &new), expected);
    }
}
