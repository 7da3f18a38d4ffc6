//! Claims, what is searched, and the conditions of both.

use super::entries::{Entries, Source};
use super::space::{dimensions, selection, setting};
use crate::keys::Section;
use crate::search::Search;
use crate::space::{CASE, Space};
use crate::{Claim, ClaimedNumber, Condition, Criterion, StudyError};
use lasthop_keys::line_of_key;
use toml::Value;

/// Numbers that are not whole are never searched more finely, relative to them: a search would not end.
const LEAST_PRECISION: f64 = 1e-6;

pub(super) fn claims(top: &mut Entries<'_>, space: &Space) -> Result<Vec<Claim>, StudyError> {
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

/// An expression, or the share of the cells that meet conditions.
fn claimed_number(entries: &mut Entries<'_>, space: &Space, each: &[usize]) -> Result<ClaimedNumber, StudyError> {
    let conditions = conditions(entries)?;
    let cells = dimensions(entries, space, "cells")?;
    if conditions.is_empty() {
        return match cells {
            Some(_) => Err(entries.error("cells", "there are no conditions for them to meet")),
            None => Ok(ClaimedNumber::Expression(entries.needed_formula("value")?)),
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

/// What is searched in a case, if anything is.
pub(super) fn search(source: &Source<'_>, case: &mut Entries<'_>) -> Result<Option<Search>, StudyError> {
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
        maximise: entries.needed_formula("maximise")?,
        conditions: conditions(&mut entries)?,
        line: line_of_key(source.text, &path),
        path: path.to_string(),
    }))
}

/// What must be right together.
fn conditions(entries: &mut Entries<'_>) -> Result<Vec<Condition>, StudyError> {
    let mut conditions: Vec<Condition> = Vec::new();
    for mut block in entries.blocks("conditions", Section::Condition)? {
        let value = block.needed_formula("value")?;
        let label = block.text("label", 60)?.unwrap_or_else(|| value.to_string());
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
