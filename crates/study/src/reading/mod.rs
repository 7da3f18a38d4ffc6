//! From the text of a study to what it means.

mod claims;
mod entries;
mod figures;
mod space;

pub(crate) use entries::Source;

use crate::check::{Kept, check_claims, check_searches};
use crate::keys::Section;
use crate::measure::{Measure, Problem};
use crate::space::Space;
use crate::{Base, Study, StudyError};
use claims::claims;
use entries::Entries;
use figures::figures;
use lasthop_keys::{Path, line_of, shown, type_name};
use lasthop_scenario::HostsKind;
use space::{axes, cases, flat_settings};
use std::sync::Arc;
use toml::{Table, Value};

impl Study {
    /// Reads `studies/<paper>/<figure>.toml` and the scenario that it names.
    ///
    /// # Errors
    /// If a file cannot be read, is not TOML, or has a key or value that cannot be; the message names the line and what is
    /// accepted.
    pub fn load(path: &std::path::Path) -> Result<Self, StudyError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| StudyError::Read { path: path.to_owned(), source })?;
        let folder = path.parent().unwrap_or_else(|| std::path::Path::new("."));
        Self::from_toml(&path.display().to_string(), &text, &|scenario| std::fs::read_to_string(folder.join(scenario)))
    }

    /// Reads the text of a study; `file` is what messages call it, `scenario` reads the file that it names.
    ///
    /// # Errors
    /// As [`Study::load`].
    pub fn from_toml(
        file: &str,
        text: &str,
        scenario: &dyn Fn(&str) -> std::io::Result<String>,
    ) -> Result<Self, StudyError> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| StudyError::Syntax {
            file: file.to_owned(),
            line: error.span().map_or(1, |span| line_of(text, span.start)),
            message: error.message().to_owned(),
        })?;
        let source = Source { file, text };
        let mut top = Entries::new(&source, Section::Top, Path::default(), Value::Table(table))?;
        let base = base(&source, &mut top, scenario)?;
        let mut space = Space::default();
        let mut settings = Vec::new();
        let searches = cases(&source, &mut top, &mut space, &mut settings)?;
        axes(&source, &mut top, &mut space, &mut settings)?;
        let figures = figures(&source, &mut top, &mut space)?;
        let claims = claims(&mut top, &space)?;
        let kept = Kept::default();
        for (index, listed) in top.list("measures")?.unwrap_or_default().iter().enumerate() {
            let path = top.path.key("measures").index(index);
            kept.add(&measure(&source, Section::Top, &path, "measures", listed)?);
        }
        figures.iter().flat_map(|figure| &figure.y).for_each(|(measure, _)| kept.add(measure));
        let space = Arc::new(space);
        check_claims(&source, &space, &claims, &kept)?;
        check_searches(&source, &space, &searches, &kept)?;
        if let Some(measure) = kept.all().iter().find(|measure| measure.is_of_searches())
            && searches.iter().flatten().next().is_none()
        {
            let problem = format!("{measure} is looked at, and no case is found by search");
            return Err(source.error(&Path::default(), Problem::new(problem, "a case with a table [cases.search]")));
        }
        let study = Self {
            name: name_of(file),
            title: top.needed_text("title", 200)?,
            source: top.needed_text("source", 500)?,
            note: top.text("note", 4_000)?,
            seeds: top.whole("seeds", 1, 1_000)?.unwrap_or(5),
            hosts: hosts(&mut top)?,
            set: flat_settings(&source, &mut top)?,
            overrides: Vec::new(),
            text: text.to_owned(),
            file: file.to_owned(),
            figures,
            claims,
            base,
            settings,
            searches,
            space,
            measures: kept.all(),
        };
        Ok(study)
    }
}

fn hosts(top: &mut Entries<'_>) -> Result<HostsKind, StudyError> {
    match top.text("hosts", 100)?.as_deref() {
        None | Some("simulated") => Ok(HostsKind::Simulated),
        Some("kernel") => Ok(HostsKind::Kernel),
        Some(other) => Err(top.error("hosts", format!("\"{other}\" is not one of the words"))),
    }
}

/// `hayakawa/fig-06` of `studies/hayakawa/fig-06.toml`.
fn name_of(file: &str) -> String {
    let path = std::path::Path::new(file);
    let stem = path.file_stem().map_or_else(|| file.into(), |stem| stem.to_string_lossy());
    match path.parent().and_then(|folder| folder.file_name()) {
        Some(folder) => format!("{}/{stem}", folder.to_string_lossy()),
        None => stem.into_owned(),
    }
}

fn base(
    source: &Source<'_>,
    top: &mut Entries<'_>,
    scenario: &dyn Fn(&str) -> std::io::Result<String>,
) -> Result<Base, StudyError> {
    match top.table.remove("scenario") {
        None => Err(top.missing("scenario")),
        Some(Value::String(file)) => match scenario(&file) {
            Ok(text) => Ok(Base { file, text, inline: false }),
            Err(error) => Err(top.error("scenario", format!("{file} cannot be read: {error}"))),
        },
        Some(Value::Table(table)) => {
            let text = toml::to_string(&table).expect("a table that was read can be written");
            Ok(Base { file: source.file.to_owned(), text, inline: true })
        }
        Some(value) => Err(top.wrong("scenario", &value)),
    }
}

fn measure(
    source: &Source<'_>,
    section: Section,
    path: &Path,
    key: &str,
    value: &Value,
) -> Result<Measure, StudyError> {
    let Some(text) = value.as_str() else {
        let problem = format!("{} is {}", shown(value), type_name(value));
        return Err(source.error(path, Problem::new(problem, section.key(key).takes)));
    };
    Measure::parse(text).map_err(|problem| source.error(path, problem))
}
