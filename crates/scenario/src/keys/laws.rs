//! `[hosts.hd]` and its like: what `lasthop-laws` says of the parameters of its laws, as keys.

use super::{Key, Kind, Preset};
use lasthop_laws::{LawName, Parameter, Unit};
use std::sync::LazyLock;

pub(super) const fn heading(law: LawName) -> &'static str {
    match law {
        LawName::Hd => "[hosts.hd]",
        LawName::Chd => "[hosts.chd]",
        LawName::Cdg => "[hosts.cdg]",
        LawName::CdgLinux => "[hosts.cdg-linux]",
        LawName::Ucc => "[hosts.ucc]",
        LawName::Lastlink => "[hosts.lastlink]",
        LawName::NewReno | LawName::Cubic | LawName::CubicRfc9438 => "",
    }
}

/// One for each parameter, in their order.
pub(super) fn keys(law: LawName) -> &'static [Key] {
    static KEYS: LazyLock<Vec<(LawName, Vec<Key>)>> =
        LazyLock::new(|| LawName::ALL.iter().map(|law| (*law, law.parameters().iter().map(key).collect())).collect());
    KEYS.iter().find(|(name, _)| *name == law).map_or(&[], |(_, keys)| keys)
}

fn key(parameter: &'static Parameter) -> Key {
    let &Parameter { name, unit, from, to, default, meaning } = parameter;
    let (kind, default) = match unit {
        Unit::Flag => (Kind::Flag, Preset::Flag(default != 0.0)),
        Unit::Count => (Kind::Integer { from: from as i64, to: to as i64 }, Preset::Integer(default as i64)),
        Unit::Milliseconds | Unit::Seconds | Unit::Ratio => {
            (Kind::Number { from, to, above: false }, Preset::Number(default))
        }
    };
    Key { name, kind, default, meaning }
}
