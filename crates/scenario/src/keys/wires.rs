//! Keys of `[path]` and `[[links]]` that change nothing where another one is missing.

use super::ScenarioKeys;
use lasthop_keys::key;
use toml::{Table, Value};

/// Whether this table has a number above 0, or true, at one of these keys.
fn has(table: &Table, keys: &[&str]) -> bool {
    keys.iter().filter_map(|key| table.get(*key)).any(|value| match value {
        Value::Float(number) => *number > 0.0,
        Value::Integer(number) => *number > 0,
        Value::Array(ends) => ends.iter().filter_map(Value::as_float).any(|end| end > 0.0),
        _ => false,
    })
}

/// Whether a block of this list has one; of changes, those that come later.
fn any(file: &Table, list: &str, keys: &[&str]) -> bool {
    let blocks = file.get(list).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table);
    blocks.into_iter().any(|block| has(block, keys))
}

/// Why there is nothing for a key, if neither its table, nor a change, nor a host has one of these.
fn nothing(table: &Table, file: &Table, keys: &[&str], of_hosts: &[&str], why: &str) -> Option<String> {
    let is_there = has(table, keys)
        || any(file, key!(ScenarioKeys, changes), keys)
        || any(file, key!(ScenarioKeys, hosts), of_hosts);
    (!is_there).then(|| why.to_owned())
}

/// Bursts back are as forth where nothing else is given.
pub(super) fn burst_in_vain(path: &Table, file: &Table) -> Option<String> {
    nothing(path, file, &["loss", "back_loss"], &[], "loss and back_loss are 0")
}

pub(super) fn back_burst_in_vain(table: &Table, file: &Table) -> Option<String> {
    nothing(table, file, &["back_loss"], &[], "back_loss is 0")
}

pub(super) fn jitter_reorders_in_vain(table: &Table, file: &Table) -> Option<String> {
    let why = "jitter_ms and back_jitter_ms are 0";
    nothing(table, file, &["jitter_ms", "back_jitter_ms"], &["path_jitter_ms"], why)
}

/// Who does not wait for the delay overtakes nobody where there is none.
pub(super) fn reorder_in_vain(table: &Table, file: &Table) -> Option<String> {
    let why = "the delay and jitter_ms are 0";
    nothing(table, file, &["rtt_ms", "delay_ms", "jitter_ms"], &["path_rtt_ms", "path_jitter_ms"], why)
}

pub(super) fn back_reorder_in_vain(table: &Table, file: &Table) -> Option<String> {
    let why = "the delay back and back_jitter_ms are 0";
    nothing(table, file, &["rtt_ms", "back_delay_ms", "back_jitter_ms"], &["path_rtt_ms", "path_jitter_ms"], why)
}
