//! Reads claims, searches and their conditions.

use super::space::{dimensions, selection, setting};
use crate::keys::{ClaimKeys, ConditionKeys, SearchKeys};
use crate::search::Search;
use crate::space::{CASE, Space};
use crate::{Claim, ClaimedNumber, Condition, Criterion};
use lasthop_keys::{Document, DocumentError, Keys, Path, key};
use toml::Value;

/// The finest relative precision of a search over fractional numbers. A finer search would not end.
const LEAST_PRECISION: f64 = 1e-6;

pub(super) fn claims(document: &Document, blocks: Vec<ClaimKeys>, space: &Space) -> Result<Vec<Claim>, DocumentError> {
    let mut claims: Vec<Claim> = Vec::new();
    for (index, mut keys) in blocks.into_iter().enumerate() {
        let here = Path::top("claims").index(index);
        if claims.iter().any(|other| other.id == keys.id) {
            let problem = format!("\"{}\" stands twice", keys.id);
            return Err(document.refuse::<ClaimKeys>(&here, key!(ClaimKeys, id), problem));
        }
        let ClaimKeys { paper, at_least, at_most, within, .. } = keys;
        let criterion = Criterion { at_least, at_most, within };
        check_criterion::<ClaimKeys>(document, &here, &criterion, paper)?;
        let each = dimensions(document, &here.key(key!(ClaimKeys, each)), space, keys.each.take())?.unwrap_or_default();
        let selection = selection(document, &here.key(key!(ClaimKeys, r#where)), space, keys.r#where.take())?;
        let value = claimed_number(document, &mut keys, &here, space, &each)?;
        let ClaimKeys { id, text, source, reading, required, .. } = keys;
        claims.push(Claim { id, text, source, reading, value, paper, criterion, required, each, selection });
    }
    Ok(claims)
}

/// Reads an expression, or the share of cells that meet conditions.
fn claimed_number(
    document: &Document,
    keys: &mut ClaimKeys,
    here: &Path,
    space: &Space,
    each: &[usize],
) -> Result<ClaimedNumber, DocumentError> {
    let fail = |key: &str, problem: String| Err(document.refuse::<ClaimKeys>(here, key, problem));
    let among = conditions(document, std::mem::take(&mut keys.among), &here.key(key!(ClaimKeys, among)))?;
    let conditions =
        conditions(document, std::mem::take(&mut keys.conditions), &here.key(key!(ClaimKeys, conditions)))?;
    let cells = dimensions(document, &here.key(key!(ClaimKeys, cells)), space, keys.cells.take())?;
    match (keys.value.take(), &cells) {
        _ if conditions.is_empty() && !among.is_empty() => {
            return fail(key!(ClaimKeys, among), "there are no conditions for the cells to meet".to_owned());
        }
        (_, Some(_)) if conditions.is_empty() => {
            return fail(key!(ClaimKeys, cells), "there are no conditions for them to meet".to_owned());
        }
        (Some(value), _) if conditions.is_empty() => return Ok(ClaimedNumber::Expression(value)),
        (None, _) if conditions.is_empty() => return fail(key!(ClaimKeys, value), "is not there".to_owned()),
        (Some(_), _) => {
            return fail(key!(ClaimKeys, value), "there are conditions as well: their share is the value".to_owned());
        }
        (None, _) => {}
    }
    let others = || {
        let other = |of: &usize| space.dimensions[*of].name != CASE && !each.contains(of);
        (0..space.dimensions.len()).filter(other).collect()
    };
    let cells = cells.unwrap_or_else(others);
    if let Some(twice) = cells.iter().find(|of| each.contains(of)) {
        return fail(key!(ClaimKeys, cells), format!("{} is in each as well", space.dimensions[*twice].name));
    }
    Ok(ClaimedNumber::Share { cells, among, conditions })
}

/// Reads the search of a case.
pub(super) fn search(document: &Document, keys: SearchKeys, here: &Path) -> Result<Search, DocumentError> {
    let SearchKeys { key, from: (from, from_whole), to: (to, to_whole), precision, maximise, conditions } = keys;
    let fail = |key: &str, problem: String| Err(document.refuse::<SearchKeys>(here, key, problem));
    let whole = from_whole && to_whole;
    if from <= 0.0 {
        return fail(key!(SearchKeys, from), format!("{from} is out of range"));
    }
    if to < from {
        return fail(key!(SearchKeys, to), format!("{to} is below {from}"));
    }
    if precision < LEAST_PRECISION && !whole {
        return fail(key!(SearchKeys, precision), format!("{precision} is out of range"));
    }
    // Checks only that the key exists. The first point tells whether the scenario has it.
    setting(document, &here.key(key!(SearchKeys, key)), &key, &Value::Integer(1))?;
    let conditions = self::conditions(document, conditions, &here.key(key!(SearchKeys, conditions)))?;
    let (line, path) = (document.line_of(here).1, here.to_string());
    Ok(Search { key, from, to, whole, precision, maximise, conditions, line, path })
}

/// Reads the conditions in the list at `list`, which must hold together.
fn conditions(document: &Document, blocks: Vec<ConditionKeys>, list: &Path) -> Result<Vec<Condition>, DocumentError> {
    let mut conditions: Vec<Condition> = Vec::new();
    for (index, keys) in blocks.into_iter().enumerate() {
        let here = list.index(index);
        let label = keys.label.unwrap_or_else(|| keys.value.to_string());
        if conditions.iter().any(|other| other.label == label) {
            let problem = format!("\"{label}\" stands twice");
            return Err(document.refuse::<ConditionKeys>(&here, key!(ConditionKeys, label), problem));
        }
        let criterion = Criterion { at_least: keys.at_least, at_most: keys.at_most, within: None };
        check_criterion::<ConditionKeys>(document, &here, &criterion, None)?;
        conditions.push(Condition { label, value: keys.value, criterion });
    }
    Ok(conditions)
}

fn check_criterion<K: Keys>(
    document: &Document,
    here: &Path,
    criterion: &Criterion,
    paper: Option<f64>,
) -> Result<(), DocumentError> {
    let fail = |key: &str, problem: String| Err(document.refuse::<K>(here, key, problem));
    let within = key!(ClaimKeys, within);
    match (criterion.within, paper) {
        (Some(_), None) => return fail(within, "there is no number of the paper to be near to".to_owned()),
        (Some(_), Some(0.0)) => {
            return fail(within, "nothing is near to 0 relative to it; give at_least and at_most".to_owned());
        }
        _ => {}
    }
    let (low, high) = criterion.range(paper);
    match *criterion == Criterion::default() {
        true => fail(key!(ClaimKeys, at_least), "is not there".to_owned()),
        false if low > high => {
            fail(key!(ClaimKeys, at_least), format!("no value is at least {low} and at most {high}"))
        }
        false => Ok(()),
    }
}
