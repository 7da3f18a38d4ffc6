//! Reads the parameter space: cases, axes, the overrides of each axis value, and selections of points.

use super::claims::search;
use crate::Setting;
use crate::keys::{CaseKeys, VaryKeys};
use crate::search::Search;
use crate::space::{CASE, Dimension, Level, SCENARIO, Selection, Space};
use lasthop_keys::{Document, DocumentError, Path, Problem, key, nearest, shown};
use lasthop_scenario::{HostsKind, Override};
use toml::{Table, Value};

/// What each case has of its own: the search that finds a value, and the kind of hosts.
type OfCases = (Vec<Option<Search>>, Vec<Option<HostsKind>>);

/// The maximum number of points. A mistake in a list of values must not exhaust the memory.
pub(super) const MOST_POINTS: usize = 20_000;

pub(super) fn cases(
    document: &Document,
    blocks: Vec<CaseKeys>,
    space: &mut Space,
    settings: &mut Vec<Vec<Vec<Setting>>>,
) -> Result<OfCases, DocumentError> {
    let mut levels: Vec<Level> = Vec::new();
    let mut hosts = Vec::new();
    let mut of_cases = Vec::new();
    let mut searches = Vec::new();
    for (index, case) in blocks.into_iter().enumerate() {
        let here = Path::top("cases").index(index);
        let label = Level::Text(case.label);
        if levels.contains(&label) {
            let problem = format!("\"{label}\" stands twice");
            return Err(document.refuse::<CaseKeys>(&here, key!(CaseKeys, label), problem));
        }
        levels.push(label);
        hosts.push(case.hosts);
        of_cases.push(flat_settings(document, case.set, &here.key(key!(CaseKeys, set)))?);
        let search = case.search.map(|keys| search(document, keys, &here.key(key!(CaseKeys, search))));
        searches.push(search.transpose()?);
    }
    if !levels.is_empty() {
        space.dimensions.push(Dimension { name: CASE.into(), label: CASE.into(), keys: Vec::new(), levels });
        settings.push(of_cases);
    }
    Ok((searches, hosts))
}

pub(super) fn axes(
    document: &Document,
    blocks: Vec<VaryKeys>,
    space: &mut Space,
    settings: &mut Vec<Vec<Vec<Setting>>>,
) -> Result<(), DocumentError> {
    for (index, axis) in blocks.into_iter().enumerate() {
        let here = Path::top("vary").index(index);
        if space.dimension(&axis.axis).is_some() {
            let problem = format!("\"{}\" stands twice", axis.axis);
            return Err(document.refuse::<VaryKeys>(&here, key!(VaryKeys, axis), problem));
        }
        let list = here.key(key!(VaryKeys, values));
        let points = space.points() * axis.values.len();
        if points > MOST_POINTS {
            let problem = format!("makes {points} points with the axes before it, which is too many");
            return Err(document.error(&list, problem, format!("at most {MOST_POINTS} points in all")));
        }
        let values = axis.values.iter().enumerate();
        let of_axis = values.map(|(index, value)| of_value(document, &axis.key, &list.index(index), value));
        let of_axis: Vec<Vec<Setting>> = of_axis.collect::<Result<_, _>>()?;
        if let Some(problem) = covered(&of_axis, space, settings) {
            return Err(document.refuse::<VaryKeys>(&here, key!(VaryKeys, key), problem));
        }
        settings.push(of_axis);
        let levels = levels(document, &axis, &here)?;
        let label = axis.label.unwrap_or_else(|| axis.axis.clone());
        space.dimensions.push(Dimension { name: axis.axis, label, keys: axis.key, levels });
    }
    Ok(())
}

/// What is wrong with an axis that sets a key twice, or one that a case or another axis before it sets: nothing is left of that.
fn covered(values: &[Vec<Setting>], space: &Space, before: &[Vec<Vec<Setting>>]) -> Option<String> {
    let own = values.first()?;
    let is_covered = |earlier: &Setting, by: &[Setting]| by.iter().any(|later| later.change.covers(&earlier.change));
    if let Some((_, twice)) = own.iter().enumerate().find(|(at, earlier)| is_covered(earlier, &own[at + 1..])) {
        return Some(format!("{} stands twice", twice.change.key()));
    }
    // What is drawn may be changed, by design.
    let others = space.dimensions.iter().zip(before).filter(|(other, _)| other.name != SCENARIO);
    let mut all = others.flat_map(|(other, levels)| levels.iter().flatten().map(move |earlier| (other, earlier)));
    let (other, earlier) = all.find(|(_, earlier)| is_covered(earlier, own))?;
    let by =
        if other.name == CASE { "a case sets too".to_owned() } else { format!("the axis {} sets too", other.name) };
    Some(format!("it takes the place of {}, which {by}", earlier.change.key()))
}

/// Reads the overrides of one axis value.
fn of_value(document: &Document, keys: &[String], path: &Path, value: &Value) -> Result<Vec<Setting>, DocumentError> {
    match (keys, value.as_array()) {
        ([only], _) => Ok(vec![setting(document, path, only, value)?]),
        (keys, Some(values)) if values.len() == keys.len() => {
            keys.iter().zip(values).map(|(key, value)| setting(document, path, key, value)).collect()
        }
        (keys, _) => {
            let accepted = format!("a list of {} values, for {}", keys.len(), keys.join(", "));
            Err(document.error(path, format!("{} is no such list", shown(value)), accepted))
        }
    }
}

/// Reads the names of an axis's values.
fn levels(document: &Document, axis: &VaryKeys, here: &Path) -> Result<Vec<Level>, DocumentError> {
    let fail = |key: &str, problem: String| Err(document.refuse::<VaryKeys>(here, key, problem));
    let several = axis.key.len() > 1;
    let (key, named): (_, Vec<&Value>) = match &axis.labels {
        Some(labels) if labels.len() != axis.values.len() => {
            let problem = format!("there are {} for {} values", labels.len(), axis.values.len());
            return fail(key!(VaryKeys, labels), problem);
        }
        Some(labels) => (key!(VaryKeys, labels), labels.iter().collect()),
        None if several => (key!(VaryKeys, values), axis.values.iter().filter_map(|of_keys| of_keys.get(0)).collect()),
        None => (key!(VaryKeys, values), axis.values.iter().collect()),
    };
    let mut levels: Vec<Level> = Vec::new();
    for value in named {
        let level = Level::of(value);
        let fine = match &level {
            Level::Number(number) => number.is_finite(),
            Level::Text(text) => (1..=60).contains(&text.chars().count()),
        };
        if !fine {
            return fail(key, format!("{} cannot be the name of a value", shown(value)));
        }
        if levels.iter().any(|other| other.is(&level)) {
            let more = if several && axis.labels.is_none() { "; give labels" } else { "" };
            return fail(key, format!("{} stands twice{more}", shown(value)));
        }
        levels.push(level);
    }
    Ok(levels)
}

/// Flattens the tables of `[set]` at `path`: `path.rtt_ms = 4`, `"hosts.*.era" = "modern"`.
pub(super) fn flat_settings(
    document: &Document,
    set: Option<Table>,
    path: &Path,
) -> Result<Vec<Setting>, DocumentError> {
    let mut settings = Vec::new();
    flatten(document, &set.unwrap_or_default(), path, "", &mut settings)?;
    Ok(settings)
}

fn flatten(
    document: &Document,
    table: &Table,
    path: &Path,
    before: &str,
    settings: &mut Vec<Setting>,
) -> Result<(), DocumentError> {
    for (name, value) in table {
        let (here, dot) = (path.key(name), if before.is_empty() { "" } else { "." });
        let key = format!("{before}{dot}{name}");
        match value {
            Value::Table(inner) => flatten(document, inner, &here, &key, settings)?,
            value => settings.push(setting(document, &here, &key, value)?),
        }
    }
    Ok(())
}

pub(super) fn setting(document: &Document, path: &Path, key: &str, value: &Value) -> Result<Setting, DocumentError> {
    let wrong =
        |problem: String| Err(document.error(path, problem, "a key of a scenario with its value, such as path.rtt_ms"));
    if key == "seed" || key.starts_with("seed.") {
        return wrong("the seed is counted up for each run: see the key seeds".to_owned());
    }
    match Override::of(key, value) {
        Ok(change) => Ok(Setting {
            change: change.in_folder(document.folder().unwrap_or(std::path::Path::new(""))),
            line: document.line_of(path).1,
            key: path.to_string(),
        }),
        Err(error) => wrong(error.to_string()),
    }
}

/// The points that the filter `where` at `path` selects.
pub(super) fn selection(
    document: &Document,
    path: &Path,
    space: &Space,
    chosen: Option<Table>,
) -> Result<Selection, DocumentError> {
    let mut selection = space.everything();
    for (name, values) in chosen.iter().flatten() {
        let of = dimension(document, path, space, name)?;
        let values = values.as_array().map_or_else(|| std::slice::from_ref(values), Vec::as_slice);
        let dimension = &space.dimensions[of];
        if values.is_empty() {
            return Err(document.error(path, format!("the list of {name} is empty"), dimension.said()));
        }
        let level = |value: &Value| {
            let problem = || format!("{name} never has the value {}", shown(value));
            dimension.level(&Level::of(value)).ok_or_else(|| document.error(path, problem(), dimension.said()))
        };
        selection[of] = Some(values.iter().map(level).collect::<Result<_, _>>()?);
    }
    Ok(selection)
}

/// The dimension named by the key at `path`.
pub(super) fn dimension(document: &Document, path: &Path, space: &Space, name: &str) -> Result<usize, DocumentError> {
    space.dimension(name).ok_or_else(|| {
        let names = space.names();
        let accepted = if names.is_empty() { "none: nothing varies".to_owned() } else { names.join(", ") };
        let did_you_mean = nearest(name, &names).map(|name| format!("\"{name}\""));
        document
            .problem(path, Problem { did_you_mean, ..Problem::new(format!("there is no axis \"{name}\""), accepted) })
    })
}

/// The dimensions listed by the key at `path`, without repetition.
pub(super) fn dimensions(
    document: &Document,
    path: &Path,
    space: &Space,
    names: Option<Vec<String>>,
) -> Result<Option<Vec<usize>>, DocumentError> {
    let Some(names) = names else { return Ok(None) };
    let mut dimensions = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let of = dimension(document, path, space, name)?;
        if dimensions.contains(&of) {
            let problem = format!("\"{name}\" stands twice");
            return Err(document.error(&path.index(index), problem, "each axis once"));
        }
        dimensions.push(of);
    }
    Ok(Some(dimensions))
}
