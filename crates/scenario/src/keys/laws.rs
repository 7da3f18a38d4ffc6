//! `[hosts.hd]` and its like: what `lasthop-laws` says of the parameters of its laws, as keys.

use super::{Key, Kind, Preset};
use lasthop_laws::{LawName, Parameter, Unit};
use std::sync::LazyLock;

/// The table of a law inside a host.
struct Table {
    law: LawName,
    heading: String,
    keys: Vec<Key>,
}

/// Those of all laws, in their order; where a law has no parameters there are no keys.
static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
    let table = |law: LawName| {
        let keys = law.parameters().iter().map(key).collect();
        Table { law, heading: format!("[hosts.{law}]"), keys }
    };
    LawName::ALL.map(table).into()
});

fn table(law: LawName) -> &'static Table {
    TABLES.iter().find(|table| table.law == law).expect("a table for each law")
}

pub(super) fn heading(law: LawName) -> &'static str {
    &table(law).heading
}

/// One for each parameter, in their order.
pub(super) fn keys(law: LawName) -> &'static [Key] {
    &table(law).keys
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
