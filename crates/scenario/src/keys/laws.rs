//! `[hosts.hd]` and the like: the parameters of the laws in `lasthop-laws`, as keys; and laws of one's own.

use super::{HostKeys, has_law, word};
use lasthop_keys::{Child, DocumentError, Key, Keys, Kind, Of, Part, Presence, Preset, Section, When, key};
use lasthop_laws::{Choice, LawName, Parameter, ParameterError, Unit};
use lasthop_traffic::{KindName, Transport};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use toml::{Table, Value};

/// A host's congestion control with the parameters of its table, if it is one of ours; otherwise only a kernel can have
/// it.
pub(crate) struct ChosenLaw(pub(crate) Option<Choice>);

/// The table of parameters of a law of one's own, whose names that law has.
const OWN_PARAMETERS: &str = "law_parameters";

static OWN: LazyLock<Section> = LazyLock::new(|| {
    let others = Key {
        name: "",
        kind: Kind::Other("a number, true or false"),
        default: Preset::Absent,
        meaning: "A parameter of the header.",
        when: vec![When::IsNot(Of::Around, "congestion_control", LawName::ALL.map(LawName::as_str).into())],
        may_wait: true,
    };
    Section { others: Some(others), ..Section::default() }
});

/// Of a host without a connection that has its law.
pub(super) fn law_in_vain(host: &Table, _: &Table) -> Option<String> {
    let flows = host.get(key!(HostKeys, flows))?.as_array()?;
    let has_it = |flow: &Table| {
        let kind = KindName::WORDS.iter().find(|(name, _)| Some(*name) == word(flow, "kind"));
        match kind.map_or(Transport::Tcp, |(_, kind)| kind.transport()) {
            Transport::Tcp => true,
            Transport::Quic => word(flow, "congestion_control") == Some("host"),
            Transport::Udp => false,
        }
    };
    let vain = !flows.is_empty() && !flows.iter().filter_map(Value::as_table).any(has_it);
    vain.then(|| "none of its flows is TCP's, and one of QUIC has it with congestion_control = \"host\"".to_owned())
}

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
                Child {
                    name: law.as_str(),
                    section,
                    repeated: false,
                    most: 1,
                    presence,
                    meaning: "Parameters of this law.",
                }
            };
            let own = Child {
                name: OWN_PARAMETERS,
                section: &OWN,
                repeated: false,
                most: 1,
                presence: Presence::IfGiven,
                meaning: "Parameters of a law of one's own, where `congestion_control` is a header.",
            };
            Section { children: TABLES.iter().map(child).chain([own]).collect(), ..Section::default() }
        });
        &SECTION
    }

    fn read(part: &Part<'_>) -> Result<Self, DocumentError> {
        let key = key!(HostKeys, congestion_control);
        let name = part.table.get(key).and_then(Value::as_str).unwrap_or_default();
        if name.ends_with(".h") {
            return own(part, key, name).map(Self);
        }
        let Ok(law) = name.parse::<LawName>() else { return Ok(Self(None)) };
        let mut choice = Choice::from(law);
        for (name, value) in part.table.get(law.as_str()).and_then(Value::as_table).into_iter().flatten() {
            choice.parameters.set(law, name, number(value)).expect("a checked parameter is in its range");
        }
        Ok(Self(Some(choice)))
    }
}

/// A law's number for a value.
fn number(value: &Value) -> f64 {
    match value {
        Value::Boolean(flag) => f64::from(u8::from(*flag)),
        Value::Integer(number) => *number as f64,
        value => value.as_float().unwrap_or(f64::NAN),
    }
}

/// Makes a law of a header; an error is its message.
pub type LawMaker = fn(&Path) -> Result<LawName, String>;

static MAKER: OnceLock<LawMaker> = OnceLock::new();

/// Says how scenarios get laws of one's own, `congestion_control = "./mine.h"`; the first call counts. Without one such
/// scenarios are refused.
pub fn make_own_laws_with(maker: LawMaker) {
    let _ = MAKER.set(maker);
}

/// Where the headers are that this process has made laws of, by path as written and digest.
static HEADERS: Mutex<BTreeMap<(String, String), PathBuf>> = Mutex::new(BTreeMap::new());

fn headers() -> MutexGuard<'static, BTreeMap<(String, String), PathBuf>> {
    HEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes where a host's header is, for a scenario that may be put anywhere.
pub(crate) fn place_header(host: &mut Table) {
    let text = |key: &str| host.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let key = key!(HostKeys, congestion_control);
    let header = headers().get(&(text(key), text(key!(HostKeys, law_digest)))).cloned();
    if let Some(header) = header.and_then(|header| header.to_str().map(str::to_owned)) {
        host.insert(key.to_owned(), header.into());
    }
}

/// The law of a header. A path in a file, of a scenario or a study, is relative to the file's folder; one of the command
/// line, to where that is typed. `None`: the scenario is inside a result, which is not run.
fn own(part: &Part<'_>, key: &str, name: &str) -> Result<Option<Choice>, DocumentError> {
    let Some(folder) = part.document.folder_at(&part.path.key(key)) else { return Ok(None) };
    let refuse = |problem: String| part.error(key, problem, "the header of a law (docs/guide/own-law.md)");
    let maker = MAKER.get().ok_or_else(|| refuse("laws of one's own cannot be made here".into()))?;
    let law = maker(&folder.join(name)).map_err(refuse)?;
    if let (LawName::Own(made), Ok(header)) = (law, std::path::absolute(folder.join(name))) {
        headers().insert((name.to_owned(), made.digest().to_owned()), header);
    }
    let digest = key!(HostKeys, law_digest);
    if let (LawName::Own(made), Some(given)) = (law, part.table.get(digest).and_then(Value::as_str))
        && made.digest() != given
    {
        let problem = format!("{name} has changed: its digest is {}, and was {given}", made.digest());
        return Err(part.error(digest, problem, "the header of then, or this key left out"));
    }
    let mut choice = Choice::from(law);
    let table = part.path.key(OWN_PARAMETERS);
    for (name, value) in part.table.get(OWN_PARAMETERS).and_then(Value::as_table).into_iter().flatten() {
        choice.parameters.set(law, name, number(value)).map_err(|error| match error {
            ParameterError::Unknown { known, .. } => {
                part.document.error(&table.key(name), format!("{law} has no such parameter"), known)
            }
            ParameterError::OutOfRange { accepted, .. } => {
                part.document.error(&table.key(name), format!("{value} is out of range"), accepted)
            }
        })?;
    }
    Ok(Some(choice))
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
