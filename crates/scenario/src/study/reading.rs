//! From the text of a study to what it means.

use super::check::{Kept, check_claims, check_searches};
use super::expression::{self, FUNCTIONS, reference_at};
use super::keys::Section;
use super::measure::{Measure, Problem};
use super::search::Search;
use super::space::{CASE, Curve, Dimension, Level, Reference, Selection, Space};
use super::{Base, Claim, ClaimedNumber, Condition, Criterion, Figure, Setting, Study, StudyError};
use crate::document::{Path, line_of, line_of_key, nearest, shown, type_name};
use crate::error::KeyError;
use crate::overrides::Override;
use crate::result::HostsKind;
use toml::{Table, Value};

/// Numbers that are not whole are never searched more finely, relative to them: a search would not end.
const LEAST_PRECISION: f64 = 1e-6;

/// So many points at most: a mistake in a list of values must not fill the memory.
const MOST_POINTS: usize = 10_000;

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
        let space = check_claims(&source, space, &claims, &kept)?;
        let space = check_searches(&source, space, &searches, &kept)?;
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

/// Where keys came from, for the messages.
pub(super) struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    pub(super) fn error(&self, path: &Path, problem: Problem) -> StudyError {
        KeyError {
            file: self.file.to_owned(),
            line: line_of_key(self.text, path),
            set_by: None,
            key: path.to_string(),
            problem: problem.problem,
            accepted: problem.accepted,
            did_you_mean: problem.did_you_mean,
        }
        .into()
    }
}

/// One table that is being read.
struct Entries<'a> {
    source: &'a Source<'a>,
    section: Section,
    path: Path,
    table: Table,
}

impl<'a> Entries<'a> {
    fn new(source: &'a Source<'a>, section: Section, path: Path, value: Value) -> Result<Self, StudyError> {
        let Value::Table(table) = value else {
            let accepted = format!("a table with the keys {}", section.names().join(", "));
            return Err(source.error(&path, Problem::new(format!("{} is no table", shown(&value)), accepted)));
        };
        let names = section.names();
        if let Some(unknown) = table.keys().find(|name| !names.contains(&name.as_str())) {
            let problem = Problem {
                problem: "there is no such key".into(),
                accepted: names.join(", "),
                did_you_mean: nearest(unknown, &names).map(str::to_owned),
            };
            return Err(source.error(&path.key(unknown), problem));
        }
        Ok(Self { source, section, path, table })
    }

    /// An error about a key, which says what the key takes.
    fn error(&self, key: &str, problem: impl Into<String>) -> StudyError {
        self.source.error(&self.path.key(key), Problem::new(problem, self.section.key(key).takes))
    }

    fn wrong(&self, key: &str, value: &Value) -> StudyError {
        self.error(key, format!("{} is {}", shown(value), type_name(value)))
    }

    fn missing(&self, key: &str) -> StudyError {
        // There is no line of what is not there; that of its table says where to put it.
        KeyError {
            file: self.source.file.to_owned(),
            line: line_of_key(self.source.text, &self.path),
            set_by: None,
            key: self.path.key(key).to_string(),
            problem: "is not there".into(),
            accepted: self.section.key(key).takes.to_owned(),
            did_you_mean: None,
        }
        .into()
    }

    fn text(&mut self, key: &str, most: usize) -> Result<Option<String>, StudyError> {
        let Some(value) = self.table.remove(key) else { return Ok(None) };
        match value {
            Value::String(text) => {
                let text = text.trim();
                let length = text.chars().count();
                if (1..=most).contains(&length) {
                    Ok(Some(text.to_owned()))
                } else {
                    Err(self.error(key, format!("has {length} characters")))
                }
            }
            value => Err(self.wrong(key, &value)),
        }
    }

    fn needed_text(&mut self, key: &str, most: usize) -> Result<String, StudyError> {
        self.text(key, most)?.ok_or_else(|| self.missing(key))
    }

    /// A word of these letters.
    fn word(&mut self, key: &str, most: usize, legal: fn(char) -> bool) -> Result<String, StudyError> {
        let word = self.needed_text(key, 1_000)?;
        let fits = word.len() <= most
            && word.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || legal(letter));
        if fits { Ok(word) } else { Err(self.error(key, format!("\"{word}\" is no such word"))) }
    }

    fn number(&mut self, key: &str) -> Result<Option<f64>, StudyError> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::Integer(number)) => Ok(Some(number as f64)),
            Some(Value::Float(number)) if number.is_finite() => Ok(Some(number)),
            Some(Value::Float(number)) => Err(self.error(key, format!("{number} is no finite number"))),
            Some(value) => Err(self.wrong(key, &value)),
        }
    }

    fn whole(&mut self, key: &str, from: u64, to: u64) -> Result<Option<u64>, StudyError> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::Integer(number)) => match u64::try_from(number) {
                Ok(number) if (from..=to).contains(&number) => Ok(Some(number)),
                _ => Err(self.error(key, format!("{number} is out of range"))),
            },
            Some(value) => Err(self.wrong(key, &value)),
        }
    }

    fn flag(&mut self, key: &str) -> Result<bool, StudyError> {
        match self.table.remove(key) {
            None => Ok(false),
            Some(Value::Boolean(flag)) => Ok(flag),
            Some(value) => Err(self.wrong(key, &value)),
        }
    }

    fn list(&mut self, key: &str) -> Result<Option<Vec<Value>>, StudyError> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::Array(values)) if !values.is_empty() => Ok(Some(values)),
            Some(Value::Array(_)) => Err(self.error(key, "the list is empty")),
            Some(value) => Err(self.wrong(key, &value)),
        }
    }

    /// The blocks of this name, each with its section.
    fn blocks(&mut self, key: &str, section: Section) -> Result<Vec<Self>, StudyError> {
        let path = self.path.key(key);
        let blocks = match self.table.remove(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(blocks)) => blocks,
            Some(value) => return Err(self.wrong(key, &value)),
        };
        let source = self.source;
        let entries = |(index, block)| Entries::new(source, section, path.index(index), block);
        blocks.into_iter().enumerate().map(entries).collect()
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

/// The tables of `[set]`, flat: `path.rtt_ms = 4`, `"hosts.*.era" = "modern"`.
fn flat_settings(source: &Source<'_>, entries: &mut Entries<'_>) -> Result<Vec<Setting>, StudyError> {
    let mut settings = Vec::new();
    match entries.table.remove("set") {
        None => {}
        Some(Value::Table(table)) => flatten(source, &table, &entries.path.key("set"), "", &mut settings)?,
        Some(value) => return Err(entries.wrong("set", &value)),
    }
    Ok(settings)
}

fn flatten(
    source: &Source<'_>,
    table: &Table,
    path: &Path,
    before: &str,
    settings: &mut Vec<Setting>,
) -> Result<(), StudyError> {
    for (name, value) in table {
        let (here, dot) = (path.key(name), if before.is_empty() { "" } else { "." });
        let key = format!("{before}{dot}{name}");
        match value {
            Value::Table(inner) => flatten(source, inner, &here, &key, settings)?,
            value => settings.push(setting(source, &here, &key, value)?),
        }
    }
    Ok(())
}

fn setting(source: &Source<'_>, path: &Path, key: &str, value: &Value) -> Result<Setting, StudyError> {
    let wrong = |problem: String| {
        source.error(path, Problem::new(problem, "a key of a scenario with its value, such as path.rtt_ms"))
    };
    if key == "seed" || key.starts_with("seed.") {
        return Err(wrong("the seed is counted up for each run: see the key seeds".into()));
    }
    match Override::of(key, value) {
        Ok(change) => Ok(Setting { change, line: line_of_key(source.text, path), key: path.to_string() }),
        Err(error) => Err(wrong(error.to_string())),
    }
}

fn cases(
    source: &Source<'_>,
    top: &mut Entries<'_>,
    space: &mut Space,
    settings: &mut Vec<Vec<Vec<Setting>>>,
) -> Result<Vec<Option<Search>>, StudyError> {
    let mut levels: Vec<Level> = Vec::new();
    let mut of_cases = Vec::new();
    let mut searches = Vec::new();
    for mut case in top.blocks("cases", Section::Case)? {
        let label = case.needed_text("label", 60)?;
        if levels.contains(&Level::Text(label.clone())) {
            return Err(case.error("label", format!("\"{label}\" stands twice")));
        }
        levels.push(Level::Text(label));
        of_cases.push(flat_settings(source, &mut case)?);
        searches.push(search(source, &mut case)?);
    }
    if !levels.is_empty() {
        space.dimensions.push(Dimension { name: CASE.into(), label: CASE.into(), keys: Vec::new(), levels });
        settings.push(of_cases);
    }
    Ok(searches)
}

/// What is searched in a case, if anything is.
fn search(source: &Source<'_>, case: &mut Entries<'_>) -> Result<Option<Search>, StudyError> {
    let path = case.path.key("search");
    let Some(table) = case.table.remove("search") else { return Ok(None) };
    let mut entries = Entries::new(source, Section::Search, path.clone(), table)?;
    let key = entries.needed_text("key", 200)?;
    let mut whole = true;
    let mut end = |entries: &mut Entries<'_>, key: &str| {
        whole &= entries.table.get(key).is_some_and(Value::is_integer);
        entries.number(key)?.ok_or_else(|| entries.missing(key))
    };
    let (from, to) = (end(&mut entries, "from")?, end(&mut entries, "to")?);
    if from <= 0.0 {
        return Err(entries.error("from", format!("{from} is out of range")));
    }
    if to < from {
        return Err(entries.error("to", format!("{to} is below {from}")));
    }
    let precision = entries.number("precision")?.unwrap_or(0.05);
    if !(0.0..=1.0).contains(&precision) || (precision < LEAST_PRECISION && !whole) {
        return Err(entries.error("precision", format!("{precision} is out of range")));
    }
    // Whether it is a key at all; whether the scenario has it is told with the first point.
    setting(source, &path.key("key"), &key, &Value::Integer(1))?;
    Ok(Some(Search {
        key,
        from,
        to,
        whole,
        precision,
        maximise: entries.needed_text("maximise", 1_000)?,
        conditions: conditions(&mut entries)?,
        line: line_of_key(source.text, &path),
        path: path.to_string(),
    }))
}

/// What must be right together.
fn conditions(entries: &mut Entries<'_>) -> Result<Vec<Condition>, StudyError> {
    let mut conditions: Vec<Condition> = Vec::new();
    for mut block in entries.blocks("conditions", Section::Condition)? {
        let value = block.needed_text("value", 1_000)?;
        let label = block.text("label", 60)?.unwrap_or_else(|| value.clone());
        if conditions.iter().any(|other| other.label == label) {
            return Err(block.error("label", format!("\"{label}\" stands twice")));
        }
        let criterion =
            Criterion { at_least: block.number("at_least")?, at_most: block.number("at_most")?, within: None };
        check_criterion(&block, &criterion, None)?;
        conditions.push(Condition { label, value, criterion });
    }
    Ok(conditions)
}

fn axes(
    source: &Source<'_>,
    top: &mut Entries<'_>,
    space: &mut Space,
    settings: &mut Vec<Vec<Vec<Setting>>>,
) -> Result<(), StudyError> {
    for mut axis in top.blocks("vary", Section::Vary)? {
        let name = axis.word("axis", 24, |letter| letter == '_')?;
        if !name.starts_with(|letter: char| letter.is_ascii_lowercase()) {
            return Err(axis.error("axis", format!("\"{name}\" does not begin with a letter")));
        }
        // An expression could not tell them apart, nor from its own words.
        let own = ["case", "not", "and", "or", "is", "in", "if", "else", "true", "false", "none"];
        if own.contains(&name.as_str()) || FUNCTIONS.iter().any(|function| function.name == name) {
            return Err(axis.error("axis", format!("\"{name}\" has a meaning of its own in expressions")));
        }
        if space.dimension(&name).is_some() {
            return Err(axis.error("axis", format!("\"{name}\" stands twice")));
        }
        let label = axis.text("label", 60)?.unwrap_or_else(|| name.clone());
        let keys = keys(&mut axis)?;
        let values = axis.list("values")?.ok_or_else(|| axis.missing("values"))?;
        let points = space.points() * values.len();
        if points > MOST_POINTS {
            let problem = format!("makes {points} points with the axes before it, which is too many");
            let accepted = format!("at most {MOST_POINTS} points in all");
            return Err(source.error(&axis.path.key("values"), Problem::new(problem, accepted)));
        }
        let of_axis = values.iter().enumerate().map(|(index, value)| of_value(source, &axis, &keys, index, value));
        let of_axis = of_axis.collect::<Result<Vec<_>, _>>()?;
        let levels = levels(&mut axis, &values, keys.len())?;
        space.dimensions.push(Dimension { name, label, keys, levels });
        settings.push(of_axis);
    }
    Ok(())
}

fn keys(axis: &mut Entries<'_>) -> Result<Vec<String>, StudyError> {
    let keys = match axis.table.remove("key") {
        None => return Err(axis.missing("key")),
        Some(Value::String(key)) => vec![key],
        Some(Value::Array(keys)) if !keys.is_empty() && keys.iter().all(Value::is_str) => {
            keys.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(value) => return Err(axis.wrong("key", &value)),
    };
    match keys.iter().find(|key| key.trim().is_empty()) {
        Some(_) => Err(axis.error("key", "one of them is empty")),
        None => Ok(keys),
    }
}

/// What one value of an axis sets.
fn of_value(
    source: &Source<'_>,
    axis: &Entries<'_>,
    keys: &[String],
    index: usize,
    value: &Value,
) -> Result<Vec<Setting>, StudyError> {
    let path = axis.path.key("values").index(index);
    match keys {
        [only] => Ok(vec![setting(source, &path, only, value)?]),
        keys => match value.as_array() {
            Some(values) if values.len() == keys.len() => {
                keys.iter().zip(values).map(|(key, value)| setting(source, &path, key, value)).collect()
            }
            _ => {
                let accepted = format!("a list of {} values, for {}", keys.len(), keys.join(", "));
                Err(source.error(&path, Problem::new(format!("{} is no such list", shown(value)), accepted)))
            }
        },
    }
}

/// What the values of an axis are called.
fn levels(axis: &mut Entries<'_>, values: &[Value], keys: usize) -> Result<Vec<Level>, StudyError> {
    let labels = axis.list("labels")?;
    let key = if labels.is_some() { "labels" } else { "values" };
    let named = match labels {
        Some(labels) if labels.len() != values.len() => {
            return Err(axis.error("labels", format!("there are {} for {} values", labels.len(), values.len())));
        }
        Some(labels) => labels,
        None if keys == 1 => values.to_vec(),
        None => values.iter().filter_map(|of_keys| of_keys.get(0).cloned()).collect(),
    };
    let mut levels: Vec<Level> = Vec::new();
    for value in &named {
        let level = level_of(value);
        let fine = match &level {
            Level::Number(number) => number.is_finite(),
            Level::Text(text) => (1..=60).contains(&text.chars().count()),
        };
        if !fine {
            return Err(axis.error(key, format!("{} cannot be the name of a value", shown(value))));
        }
        if levels.iter().any(|other| other.is(&level)) {
            let more = if keys > 1 && key == "values" { "; give labels" } else { "" };
            return Err(axis.error(key, format!("{} stands twice{more}", shown(value))));
        }
        levels.push(level);
    }
    Ok(levels)
}

fn level_of(value: &Value) -> Level {
    match value {
        Value::Integer(number) => Level::Number(*number as f64),
        Value::Float(number) => Level::Number(*number),
        Value::String(text) => Level::Text(text.clone()),
        other => Level::Text(other.to_string()),
    }
}

/// The dimension that a key names.
fn dimension(entries: &Entries<'_>, space: &Space, key: &str, name: &str) -> Result<usize, StudyError> {
    space.dimension(name).ok_or_else(|| {
        let names = space.names();
        let problem = Problem {
            problem: format!("there is no axis \"{name}\""),
            accepted: if names.is_empty() { "none: nothing varies".into() } else { names.join(", ") },
            did_you_mean: nearest(name, &names).map(|name| format!("\"{name}\"")),
        };
        entries.source.error(&entries.path.key(key), problem)
    })
}

fn selection(entries: &mut Entries<'_>, space: &Space) -> Result<Selection, StudyError> {
    let mut selection = space.everything();
    let chosen = match entries.table.remove("where") {
        None => return Ok(selection),
        Some(Value::Table(chosen)) => chosen,
        Some(value) => return Err(entries.wrong("where", &value)),
    };
    for (name, values) in &chosen {
        let of = dimension(entries, space, "where", name)?;
        let values = values.as_array().map_or_else(|| std::slice::from_ref(values), Vec::as_slice);
        let dimension = &space.dimensions[of];
        let level = |value: &Value| {
            dimension.level(&level_of(value)).ok_or_else(|| {
                let problem = Problem::new(format!("{name} never has the value {}", shown(value)), dimension.said());
                entries.source.error(&entries.path.key("where"), problem)
            })
        };
        let levels = values.iter().map(level).collect::<Result<Vec<_>, _>>()?;
        if levels.is_empty() {
            return Err(entries.error("where", format!("the list of {name} is empty")));
        }
        selection[of] = Some(levels);
    }
    Ok(selection)
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

fn figures(source: &Source<'_>, top: &mut Entries<'_>, space: &mut Space) -> Result<Vec<Figure>, StudyError> {
    let mut figures = Vec::new();
    for mut entries in top.blocks("figures", Section::Figure)? {
        let title = entries.needed_text("title", 200)?;
        let x = entries.needed_text("x", 60)?;
        let x = dimension(&entries, space, "x", &x)?;
        let y = upright(source, &mut entries)?;
        let y_label = entries.text("y_label", 80)?.unwrap_or_else(|| y[0].0.label());
        let panels = match entries.text("panels", 60)? {
            Some(name) => Some(dimension(&entries, space, "panels", &name)?),
            None => None,
        };
        if panels == Some(x) {
            return Err(entries.error("panels", "is x as well"));
        }
        let (log_x, log_y) = match entries.text("log", 2)?.as_deref() {
            None => (false, false),
            Some("x") => (true, false),
            Some("y") => (false, true),
            Some("xy") => (true, true),
            Some(other) => return Err(entries.error("log", format!("\"{other}\" is not one of the words"))),
        };
        let above_0 = |level: &Level| matches!(level, Level::Number(number) if *number > 0.0);
        if log_x && !space.dimensions[x].levels.iter().all(above_0) {
            return Err(entries.error("log", format!("{} is not always a number above 0", space.dimensions[x].name)));
        }
        let selection = selection(&mut entries, space)?;
        let mut references = Vec::new();
        for mut block in entries.blocks("reference", Section::Reference)? {
            references.push(space.references.len());
            let reference = reference(&mut block, space, x)?;
            space.references.push(reference);
            check_reference(&block, space)?;
        }
        figures.push(Figure { title, y, y_label, log_x, log_y, x, panels, selection, references });
    }
    Ok(figures)
}

/// What is along the upright axis of a figure, and what the legend calls it: empty where it is one measure only.
fn upright(source: &Source<'_>, entries: &mut Entries<'_>) -> Result<Vec<(Measure, String)>, StudyError> {
    let read = |path: &Path, value: &Value| measure(source, Section::Figure, path, "y", value);
    let path = entries.path.key("y");
    let measures = match entries.table.remove("y") {
        None => return Err(entries.missing("y")),
        Some(Value::Array(listed)) if listed.is_empty() => return Err(entries.error("y", "the list is empty")),
        Some(Value::Array(listed)) => {
            let one = |(index, value): (usize, &Value)| read(&path.index(index), value);
            listed.iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()?
        }
        Some(one) if entries.table.contains_key("labels") => {
            read(&path, &one)?;
            return Err(entries.error("labels", "y is no list"));
        }
        Some(one) => return Ok(vec![(read(&path, &one)?, String::new())]),
    };
    let labels = match entries.list("labels")? {
        None => measures.iter().map(Measure::label).collect(),
        Some(labels) if labels.len() != measures.len() => {
            let problem = format!("there are {} for {} measures", labels.len(), measures.len());
            return Err(entries.error("labels", problem));
        }
        Some(labels) => {
            let text = |label: &Value| match label.as_str().map(str::trim) {
                Some(text) if (1..=60).contains(&text.chars().count()) => Ok(text.to_owned()),
                _ => Err(entries.error("labels", format!("{} is no such text", shown(label)))),
            };
            labels.iter().map(text).collect::<Result<Vec<_>, _>>()?
        }
    };
    if let Some(twice) = labels.iter().enumerate().find(|(index, label)| labels[..*index].contains(label)) {
        return Err(entries.error("labels", format!("\"{}\" stands twice", twice.1)));
    }
    Ok(measures.into_iter().zip(labels).collect())
}

fn reference(block: &mut Entries<'_>, space: &Space, x: usize) -> Result<Reference, StudyError> {
    let label = block.needed_text("label", 60)?;
    let source = block.needed_text("source", 500)?;
    let selection = selection(block, space)?;
    let curve = match (block.text("formula", 1_000)?, block.list("points")?) {
        (Some(formula), None) => Curve::Formula(formula),
        (None, Some(points)) => {
            let scale = match block.text("scale", 100)? {
                None => 1.0,
                Some(scale) => expression::constant(&scale)
                    .map_err(|problem| block.source.error(&block.path.key("scale"), problem))?,
            };
            let points = reference_points(block, &space.dimensions[x], &points)?;
            Curve::Points { x, points: points.into_iter().map(|(x, y)| (x, y * scale)).collect() }
        }
        (Some(_), Some(_)) => return Err(block.error("formula", "there are points as well")),
        (None, None) => return Err(block.missing("points")),
    };
    Ok(Reference { label, source, selection, curve })
}

fn reference_points(block: &Entries<'_>, axis: &Dimension, points: &[Value]) -> Result<Vec<(Level, f64)>, StudyError> {
    let mut read: Vec<(Level, f64)> = Vec::new();
    for (index, point) in points.iter().enumerate() {
        let wrong = |problem: String, accepted: String| {
            block.source.error(&block.path.key("points").index(index), Problem::new(problem, accepted))
        };
        let pair = match point.as_array().map(Vec::as_slice) {
            Some([x, y]) => as_number(y).map(|y| (level_of(x), y)),
            _ => None,
        };
        let Some((x, y)) = pair else {
            return Err(wrong(format!("{} is no pair of a value and a number", shown(point)), "pairs [x, y]".into()));
        };
        if axis.level(&x).is_none() {
            return Err(wrong(format!("{} never has the value {x}", axis.name), axis.said()));
        }
        if read.iter().any(|(other, _)| other.is(&x)) {
            return Err(wrong(format!("{x} stands twice"), "one point for each x".into()));
        }
        read.push((x, y));
    }
    Ok(read)
}

fn as_number(value: &Value) -> Option<f64> {
    let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64))?;
    number.is_finite().then_some(number)
}

/// The reference that was added last: a number at every point that it is about, and the only one of its label there.
fn check_reference(block: &Entries<'_>, space: &Space) -> Result<(), StudyError> {
    let this = space.references.len() - 1;
    let label = &space.references[this].label;
    for point in 0..space.points() {
        let said = reference_at(space, this, point)
            .map_err(|problem| block.source.error(&block.path.key("formula"), problem))?;
        let alike = (0..this).filter(|other| space.references[*other].label == *label);
        for other in alike {
            if said.is_some() && matches!(reference_at(space, other, point), Ok(Some(_))) {
                let at = super::space::joined(&space.coordinates(point));
                return Err(block.error("label", format!("\"{label}\" is there already for {at}")));
            }
        }
    }
    Ok(())
}

fn claims(top: &mut Entries<'_>, space: &Space) -> Result<Vec<Claim>, StudyError> {
    let mut claims: Vec<Claim> = Vec::new();
    for mut entries in top.blocks("claims", Section::Claim)? {
        let id = entries.word("id", 40, |letter| letter == '-')?;
        if claims.iter().any(|other| other.id == id) {
            return Err(entries.error("id", format!("\"{id}\" stands twice")));
        }
        let paper = entries.number("paper")?;
        let criterion = Criterion {
            at_least: entries.number("at_least")?,
            at_most: entries.number("at_most")?,
            within: entries.number("within")?,
        };
        check_criterion(&entries, &criterion, paper)?;
        let each = dimensions(&mut entries, space, "each")?.unwrap_or_default();
        let value = claimed_number(&mut entries, space, &each)?;
        let selection = selection(&mut entries, space)?;
        claims.push(Claim {
            id,
            text: entries.needed_text("text", 1_000)?,
            source: entries.needed_text("source", 500)?,
            reading: entries.text("reading", 1_000)?,
            value,
            paper,
            criterion,
            required: entries.flag("required")?,
            each,
            selection,
        });
    }
    Ok(claims)
}

/// The dimensions that a list names, each once.
fn dimensions(entries: &mut Entries<'_>, space: &Space, key: &str) -> Result<Option<Vec<usize>>, StudyError> {
    let Some(names) = entries.list(key)? else { return Ok(None) };
    let mut dimensions = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let Some(name) = name.as_str() else { return Err(entries.wrong(key, name)) };
        let of = dimension(entries, space, key, name)?;
        if dimensions.contains(&of) {
            let path = entries.path.key(key).index(index);
            return Err(entries
                .source
                .error(&path, Problem::new(format!("\"{name}\" stands twice"), "each axis once")));
        }
        dimensions.push(of);
    }
    Ok(Some(dimensions))
}

/// An expression, or the share of the cells that meet conditions.
fn claimed_number(entries: &mut Entries<'_>, space: &Space, each: &[usize]) -> Result<ClaimedNumber, StudyError> {
    let conditions = conditions(entries)?;
    let cells = dimensions(entries, space, "cells")?;
    if conditions.is_empty() {
        return match cells {
            Some(_) => Err(entries.error("cells", "there are no conditions for them to meet")),
            None => Ok(ClaimedNumber::Expression(entries.needed_text("value", 1_000)?)),
        };
    }
    if entries.table.contains_key("value") {
        return Err(entries.error("value", "there are conditions as well: their share is the value"));
    }
    let others = || {
        let other = |of: &usize| space.dimensions[*of].name != CASE && !each.contains(of);
        (0..space.dimensions.len()).filter(other).collect()
    };
    let cells = cells.unwrap_or_else(others);
    if let Some(twice) = cells.iter().find(|of| each.contains(of)) {
        return Err(entries.error("cells", format!("{} is in each as well", space.dimensions[*twice].name)));
    }
    Ok(ClaimedNumber::Share { cells, conditions })
}

fn check_criterion(entries: &Entries<'_>, criterion: &Criterion, paper: Option<f64>) -> Result<(), StudyError> {
    match (criterion.within, paper) {
        (Some(within), _) if within <= 0.0 || within > 10.0 => {
            return Err(entries.error("within", format!("{within} is out of range")));
        }
        (Some(_), None) => return Err(entries.error("within", "there is no number of the paper to be near to")),
        (Some(_), Some(0.0)) => {
            return Err(entries.error("within", "nothing is near to 0 relative to it; give at_least and at_most"));
        }
        _ => {}
    }
    if *criterion == Criterion::default() {
        return Err(entries.missing("at_least"));
    }
    let (low, high) = criterion.range(paper);
    if low > high {
        return Err(entries.error("at_least", format!("no value is at least {low} and at most {high}")));
    }
    Ok(())
}
