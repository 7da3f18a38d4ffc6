//! Presets of `[access]` and `[[hosts]]`: usual kinds of devices, each a set of keys in `presets.toml`.

use toml::{Table, Value};

lasthop_keys::words! {
    /// A usual kind of access point, or of a host.
    pub(crate) enum PresetName {
        /// 802.11g of 2012.
        Y2012 = "2012",
        /// 802.11n at home.
        NHome = "n-home",
        /// 802.11ac with the maker's firmware.
        AcVendor = "ac-vendor",
        /// 802.11ac with Linux.
        AcOpenwrt = "ac-openwrt",
        /// 802.11ax with Linux.
        Ax = "ax",
    }
}

/// The keys of each preset of this table.
pub(crate) fn of(table: &str) -> Vec<(&'static str, Table)> {
    let mut all: Table = include_str!("presets.toml").parse().expect("the presets are TOML");
    let Some(Value::Table(mut presets)) = all.remove(table) else { panic!("there are presets of {table}") };
    let mut keys = |&(name, _): &(&'static str, PresetName)| match presets.remove(name) {
        Some(Value::Table(keys)) => (name, keys),
        _ => panic!("there is a preset {table}.{name}"),
    };
    PresetName::WORDS.iter().map(&mut keys).collect()
}
