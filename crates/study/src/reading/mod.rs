//! Reads the text of a study into a [`Study`].

mod claims;
mod draws;
mod figures;
mod space;

use crate::check::{Kept, check_claims, check_searches};
use crate::keys::{self, DrawKeys, StudyKeys};
use crate::measure::Measure;
use crate::space::Space;
use crate::{Base, Study, StudyError};
use claims::claims;
use draws::draws;
use figures::figures;
use lasthop_files::{MOST_TYPED_BYTES, text_of};
use lasthop_keys::{Document, DocumentError, Keys as _, Path, Problem, Section, key, wrong_type};
use space::{axes, cases, flat_settings};
use std::sync::Arc;
use toml::{Table, Value};

impl Study {
    /// Every key of the format.
    pub fn section() -> &'static Section {
        StudyKeys::section()
    }

    /// Reads `studies/<paper>/<figure>.toml` and the scenario that it names.
    ///
    /// # Errors
    /// If a file cannot be read or is not TOML, or if a key or value is invalid. The message names the line and the
    /// accepted values.
    pub fn load(path: &std::path::Path) -> Result<Self, StudyError> {
        let text = text_of(path, MOST_TYPED_BYTES).map_err(|source| DocumentError::Read {
            what: "study",
            path: path.to_owned(),
            source,
        })?;
        let folder = path.parent().unwrap_or_else(|| std::path::Path::new("."));
        Self::from_toml(&path.display().to_string(), &text, &|scenario| {
            text_of(&folder.join(scenario), MOST_TYPED_BYTES)
        })
    }

    /// Reads the text of a study. Messages call it `file`; `scenario` reads the file that the study names.
    ///
    /// # Errors
    /// As [`Study::load`].
    pub fn from_toml(
        file: &str,
        text: &str,
        scenario: &dyn Fn(&str) -> std::io::Result<String>,
    ) -> Result<Self, StudyError> {
        let document = Document::read(file, text, &[], Self::section())?;
        let keys = StudyKeys::read(&document.top())?;
        let (base, of_other) = base(&document, file, &keys.scenario, scenario)?;
        let mut space = Space::default();
        let mut settings = Vec::new();
        let (searches, case_hosts) = cases(&document, keys.cases, &mut space, &mut settings)?;
        let (drawn_in, blocks) = match of_other {
            Some(_) if !keys.draw.is_empty() => {
                let problem = "the study that scenario names has its own";
                return Err(document.error(&Path::top(key!(StudyKeys, draw)), problem, "no blocks [[draw]]").into());
            }
            Some(other) => (Some(other.document), other.draw),
            None => (None, keys.draw),
        };
        let drawn_in = drawn_in.as_ref().unwrap_or(&document);
        let numbers = (keys.scenarios, keys.first_scenario);
        let drawn = draws(&document, numbers, (drawn_in, blocks), &mut space, &mut settings)?;
        axes(&document, keys.vary, &mut space, &mut settings)?;
        let figures = figures(&document, keys.figures, &mut space)?;
        let claims = claims(&document, keys.claims, &space)?;
        let kept = Kept::default();
        for (index, listed) in keys.measures.iter().flatten().enumerate() {
            let path = Path::top(key!(StudyKeys, measures)).index(index);
            kept.add(&measure(&document, &path, keys::LIST_OF_MEASURES, listed)?);
        }
        figures.iter().flat_map(|figure| &figure.y).for_each(|(measure, _)| kept.add(measure));
        let space = Arc::new(space);
        check_claims(&document, &space, &claims, &kept)?;
        check_searches(&document, &space, &searches, &kept)?;
        if let Some(measure) = kept.all().iter().find(|measure| measure.is_of_searches())
            && searches.iter().flatten().next().is_none()
        {
            let problem = format!("{measure} is looked at, and no case is found by search");
            return Err(document.error(&Path::default(), problem, "a case with a table [cases.search]").into());
        }
        let set = flat_settings(&document, keys.set, &Path::top(key!(StudyKeys, set)))?;
        let measures = kept.all();
        let StudyKeys { title, source, note, seeds, hosts, .. } = keys;
        let (text, file) = (text.to_owned(), file.to_owned());
        let (name, overrides) = (name_of(&file), Vec::new());
        let study = Self {
            name,
            title,
            source,
            note,
            seeds,
            hosts,
            set,
            overrides,
            text,
            file,
            figures,
            claims,
            base,
            settings,
            searches,
            case_hosts,
            drawn,
            space,
            measures,
        };
        Ok(study)
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

/// A study whose scenario another one has.
struct Other {
    document: Document,
    draw: Vec<DrawKeys>,
}

fn base(
    document: &Document,
    file: &str,
    value: &Value,
    scenario: &dyn Fn(&str) -> std::io::Result<String>,
) -> Result<(Base, Option<Other>), DocumentError> {
    let fail =
        |problem: String| Err(document.refuse::<StudyKeys>(&Path::default(), key!(StudyKeys, scenario), problem));
    let folder = std::path::Path::new(file).parent().unwrap_or_else(|| std::path::Path::new("")).to_owned();
    let inline = |table: &Table| toml::to_string(table).expect("a table that was read can be written");
    match value {
        Value::String(name) => {
            let text = match scenario(name) {
                Ok(text) => text,
                Err(error) => return fail(format!("{name} cannot be read: {error}")),
            };
            let of_it = folder.join(name);
            let folder = of_it.parent().map_or_else(std::path::PathBuf::new, ToOwned::to_owned);
            // No scenario has a key of this name; what is wrong with the text is told where it is read.
            if !toml::from_str::<Table>(&text).is_ok_and(|keys| keys.contains_key(key!(StudyKeys, scenario))) {
                return Ok((Base { file: name.clone(), folder, text, inline: false }, None));
            }
            let other = Document::read(&of_it.display().to_string(), &text, &[], StudyKeys::section())?;
            let keys = StudyKeys::read(&other.top())?;
            let Value::Table(table) = &keys.scenario else {
                return fail(format!("{name} is a study of another file's scenario"));
            };
            let base = Base { file: name.clone(), folder, text: inline(table), inline: false };
            Ok((base, Some(Other { document: other, draw: keys.draw })))
        }
        Value::Table(table) => Ok((Base { file: file.to_owned(), folder, text: inline(table), inline: true }, None)),
        value => fail(wrong_type(value)),
    }
}

fn measure(document: &Document, path: &Path, accepted: &str, value: &Value) -> Result<Measure, DocumentError> {
    let text = value.as_str().ok_or_else(|| document.error(path, wrong_type(value), accepted))?;
    Measure::parse(text).map_err(|problem| document.problem(path, Problem::from(problem)))
}
