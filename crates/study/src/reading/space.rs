//! What varies: cases, axes, what each of their values sets, and the part of all points that something is about.

use super::claims::search;
use super::entries::{Entries, Source};
use crate::expression::FUNCTIONS;
use crate::keys::Section;
use crate::measure::Problem;
use crate::search::Search;
use crate::space::{CASE, Dimension, Level, Selection, Space};
use crate::{Setting, StudyError};
use lasthop_keys::{Path, line_of_key, nearest, shown};
use lasthop_scenario::Override;
use toml::{Table, Value};

/// So many points at most: a mistake in a list of values must not fill the memory.
const MOST_POINTS: usize = 10_000;

pub(super) fn cases(
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

pub(super) fn axes(
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

pub(super) fn level_of(value: &Value) -> Level {
    match value {
        Value::Integer(number) => Level::Number(*number as f64),
        Value::Float(number) => Level::Number(*number),
        Value::String(text) => Level::Text(text.clone()),
        other => Level::Text(other.to_string()),
    }
}

/// The tables of `[set]`, flat: `path.rtt_ms = 4`, `"hosts.*.era" = "modern"`.
pub(super) fn flat_settings(source: &Source<'_>, entries: &mut Entries<'_>) -> Result<Vec<Setting>, StudyError> {
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

pub(super) fn setting(source: &Source<'_>, path: &Path, key: &str, value: &Value) -> Result<Setting, StudyError> {
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

pub(super) fn selection(entries: &mut Entries<'_>, space: &Space) -> Result<Selection, StudyError> {
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

/// The dimension that a key names.
pub(super) fn dimension(entries: &Entries<'_>, space: &Space, key: &str, name: &str) -> Result<usize, StudyError> {
    space.dimension(name).ok_or_else(|| {
        let names = space.names();
        let accepted = if names.is_empty() { "none: nothing varies".to_owned() } else { names.join(", ") };
        let did_you_mean = nearest(name, &names).map(|name| format!("\"{name}\""));
        let problem = Problem { did_you_mean, ..Problem::new(format!("there is no axis \"{name}\""), accepted) };
        entries.source.error(&entries.path.key(key), problem)
    })
}

/// The dimensions that a list names, each once.
pub(super) fn dimensions(
    entries: &mut Entries<'_>,
    space: &Space,
    key: &str,
) -> Result<Option<Vec<usize>>, StudyError> {
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
