//! `[hosts.hd]` and the like: the parameters of the laws in `lasthop-laws`, as keys.

use super::{HostKeys, has_law};
use lasthop_keys::{Child, DocumentError, Key, Keys, Kind, Part, Presence, Section, key};
use lasthop_laws::{Choice, LawName, Parameter, Unit};
use std::sync::LazyLock;
use toml::Value;

/// A host's congestion control with the parameters of its table, if it is one of ours; otherwise only a kernel can have
/// it.
pub(crate) struct ChosenLaw(pub(crate) Option<Choice>);

/// The table of each law that has parameters.
static TABLES: LazyLock<Vec<(LawName, Section)>> = LazyLock::new(|| {
    let with_parameters = LawName::ALL.into_iter().filter(|law| !law.parameters().is_empty());
    let keys = |law: LawName| law.parameters().iter().map(|parameter| parameter_key(law, parameter)).collect();
    with_parameters.map(|law| (law, Section { keys: keys(law), ..Section::default() })).collect()
});

impl Keys for ChosenLaw {
    fn section() -> &'static Section {
        // Parameters of other laws are allowed, so that laws can be compared.
        static SECTION: LazyLock<Section> = LazyLock::new(|| {
            let child = |(law, section): &'static (LawName, Section)| {
                let presence = Presence::With(key!(HostKeys, congestion_control), law.as_str());
                Child { name: law.as_str(), section, repeated: false, presence, meaning: "Parameters of this law." }
            };
            Section { children: TABLES.iter().map(child).collect(), ..Section::default() }
        });
        &SECTION
    }

    fn read(part: &Part<'_>) -> Result<Self, DocumentError> {
        let name = part.table.get(key!(HostKeys, congestion_control)).and_then(Value::as_str);
        let Some(law) = name.and_then(|name| name.parse::<LawName>().ok()) else { return Ok(Self(None)) };
        let mut choice = Choice::from(law);
        for (name, value) in part.table.get(law.as_str()).and_then(Value::as_table).into_iter().flatten() {
            let value = match value {
                Value::Boolean(flag) => f64::from(u8::from(*flag)),
                Value::Integer(number) => *number as f64,
                value => value.as_float().expect("a checked parameter is a number"),
            };
            choice.parameters.set(law, name, value).expect("a checked parameter is in its range");
        }
        Ok(Self(Some(choice)))
    }
}

fn parameter_key(law: LawName, parameter: &'static Parameter) -> Key {
    let &Parameter { name, unit, from, to, default, meaning } = parameter;
    let (kind, default) = match unit {
        Unit::Flag => (Kind::Flag, (default != 0.0).into()),
        Unit::Count => (Kind::Integer { from: from as i64, to: to as i64 }, (default as i64).into()),
        Unit::Milliseconds | Unit::Seconds | Unit::Ratio => (Kind::Number { from, to, above: false }, default.into()),
    };
    Key { name, kind, default, meaning, when: has_law(law), may_wait: true }
}
