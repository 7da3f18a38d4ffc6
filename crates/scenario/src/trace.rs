//! `trace = "FILE"` in `[[changes]]`: what the file has recorded, in place of the block's own change.
//!
//! - Rows of a CSV become one block for each, before anything else is read. So both habitats replay them, and the scenario
//!   of a result, its key in a store and `scenario.toml` have the rows themselves, not the file's path.
//! - The opportunities of mahimahi's format become the key `opportunities_ms`, which the network replays one by one.
//! - A trace with more than [`MOST_KEPT`] of either stays a file: the scenario of a result has its path and its digest.
//!
//! Files are read line by line (`reading`), up to the end of the run.

pub(crate) mod reading;

use crate::ScenarioError;
use crate::keys::{ChangeKeys, Part, ScenarioKeys};
use crate::notes::AssumedHeader;
use lasthop_keys::{Document, KeyError, Path, Problem, key};
use lasthop_network::Opportunities;
pub(crate) use reading::Rows;
use reading::{Content, Reader};
use std::sync::Arc;
use toml::{Table, Value};

/// The most rows or instants of a trace that the scenario itself keeps.
const MOST_KEPT: usize = 20_000;
/// The slowest rate but none, and the fastest.
pub(crate) const SLOWEST_MBPS: f64 = 1e-6;
pub(crate) const FASTEST_MBPS: f64 = 100_000.0;

/// Where a block of the complete `[[changes]]` comes from, and what it is beside its keys.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The block of the file.
    block: usize,
    /// Its trace's file.
    file: Option<String>,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    /// Its keys say it.
    Keys,
    /// The same, from this line of the trace.
    Row(u32),
    /// Opportunities, with their number in the network's configuration.
    Opportunities(usize),
    /// Rows too many to be blocks.
    Rows(Rows),
    /// A trace of a result, which is not run.
    Unread,
}

impl Origin {
    /// The block's place.
    pub(crate) fn path(&self) -> Path {
        block(self.block)
    }

    /// An error about a key of this block, or of this line of its trace.
    pub(crate) fn error(
        &self,
        document: &Document,
        line: u32,
        key: &str,
        (problem, accepted): (String, String),
    ) -> ScenarioError {
        let line = if let What::Row(line) = self.what { line } else { line };
        match &self.file {
            Some(file) if line > 0 => error_in(file, line, key, Problem::new(problem, accepted)),
            _ => document.error(&self.path().key(key), problem, accepted),
        }
    }
}

/// An error in a file of a trace.
pub(crate) fn error_in(file: &str, line: u32, key: &str, problem: Problem) -> ScenarioError {
    let Problem { problem, accepted, did_you_mean } = problem;
    let (file, line) = (file.to_owned(), Some(line as usize));
    KeyError { file, line, set_by: None, key: key.to_owned(), problem, accepted, did_you_mean }.into()
}

fn block(index: usize) -> Path {
    Path::top(key!(ScenarioKeys, changes)).index(index)
}

/// What the traces of a scenario became.
#[derive(Debug, Default)]
pub(crate) struct Expanded {
    /// Of each block that is there then.
    pub(crate) origins: Vec<Origin>,
    pub(crate) opportunities: Vec<Arc<Opportunities>>,
    /// Files without a header line.
    pub(crate) assumed: Vec<AssumedHeader>,
}

/// Puts what was recorded in the places of blocks with a trace.
pub(crate) fn expand(document: &mut Document) -> Result<Expanded, ScenarioError> {
    let list = key!(ScenarioKeys, changes);
    let blocks = document.table.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
    let end_s = document.table.get(key!(ScenarioKeys, duration_s)).and_then(Value::as_float).unwrap_or_default();
    let mut expanded = Expanded::default();
    let mut whole = Vec::new();
    for (index, value) in blocks.into_iter().enumerate() {
        let table = value.as_table().expect("a checked block is a table");
        if !table.contains_key(key!(ChangeKeys, at_s)) {
            return Err(document.refuse::<ChangeKeys>(&block(index), key!(ChangeKeys, at_s), "is not there"));
        }
        check_alone(document, index, table)?;
        if let Some(text) = table.get(key!(ChangeKeys, opportunities_ms)).and_then(Value::as_str) {
            let trace = reading::opportunities_of(text)
                .map_err(|problem| document.problem(&block(index).key(key!(ChangeKeys, opportunities_ms)), problem))?;
            expanded.add(index, None, Content::Opportunities(trace), value, &mut whole);
        } else if table.contains_key(key!(ChangeKeys, trace)) {
            expanded.read(document, index, table, end_s, &mut whole)?;
        } else {
            expanded.origins.push(Origin { block: index, file: None, what: What::Keys });
            whole.push(value);
        }
    }
    if whole.is_empty() {
        document.table.remove(list);
    } else {
        document.table.insert(list.to_owned(), whole.into());
    }
    Ok(expanded)
}

impl Expanded {
    /// Reads the trace of a block.
    fn read(
        &mut self,
        document: &Document,
        index: usize,
        table: &Table,
        end_s: f64,
        whole: &mut Vec<Value>,
    ) -> Result<(), ScenarioError> {
        let here = block(index).key(key!(ChangeKeys, trace));
        let word = |key: &str| table.get(key).and_then(Value::as_str);
        let (name, digest) = (word(key!(ChangeKeys, trace)).unwrap_or_default(), word(key!(ChangeKeys, trace_digest)));
        let Some(folder) = document.folder_at(&here) else {
            if digest.is_some() {
                self.origins.push(Origin { block: index, file: None, what: What::Unread });
                whole.push(table.clone().into());
                return Ok(());
            }
            let problem = "is a file, and this scenario is in no folder";
            return Err(document.error(&here, problem, "the rows as [[changes]]"));
        };
        let path = folder.join(name);
        let file = path.display().to_string();
        let accepted = "the path of a CSV file or a mahimahi trace (docs/guide/trace.md)";
        let cannot = |error| document.error(&here, format!("{name} cannot be read: {error}"), accepted);
        let start_s = table.get(key!(ChangeKeys, at_s)).and_then(Value::as_float).unwrap_or_default();
        let mut reader = Reader::open(&path, &file, part(table), start_s, end_s).map_err(cannot)?;
        let Some(content) = reader.read()? else {
            return Err(document.error(&here, format!("{name} is empty"), accepted));
        };
        self.assumed.extend(reader.assumes_header().then(|| AssumedHeader { file: file.clone() }));
        let is_long = content.len() > MOST_KEPT;
        let read = reader.into_digest();
        if let Some(then) = digest.filter(|then| *then != read) {
            let problem = format!("{name} has changed, or another part of it is replayed: {read}, and it was {then}");
            let accepted = "the file and the length of the run of then, or this key left out";
            return Err(document.error(&block(index).key(key!(ChangeKeys, trace_digest)), problem, accepted));
        }
        let mut kept = table.clone();
        kept.remove(key!(ChangeKeys, trace_digest));
        if is_long {
            let place = std::path::absolute(&path).map_err(cannot)?;
            kept.insert(key!(ChangeKeys, trace).to_owned(), place.display().to_string().into());
            kept.insert(key!(ChangeKeys, trace_digest).to_owned(), read.into());
        } else {
            kept.remove(key!(ChangeKeys, trace));
        }
        self.add(index, Some(file), content, kept.into(), whole);
        Ok(())
    }

    /// Adds what a block with a trace becomes; `kept` are its keys, still with the trace if that is long.
    fn add(&mut self, block: usize, file: Option<String>, content: Content, kept: Value, whole: &mut Vec<Value>) {
        let is_long = content.len() > MOST_KEPT;
        let mut table = kept.as_table().cloned().expect("a block is a table");
        match content {
            Content::Opportunities(trace) => {
                if !is_long {
                    let text = reading::text_of(&trace);
                    table.insert(key!(ChangeKeys, opportunities_ms).to_owned(), text.into());
                }
                whole.push(table.into());
                self.origins.push(Origin { block, file, what: What::Opportunities(self.opportunities.len()) });
                self.opportunities.push(Arc::new(trace));
            }
            Content::Rows(rows) if is_long => {
                whole.push(table.into());
                self.origins.push(Origin { block, file, what: What::Rows(rows) });
            }
            Content::Rows(rows) => {
                for row in rows.iter().filter(|row| row.changes_something()) {
                    let mut row_table = table.clone();
                    row_table.extend(row.values());
                    whole.push(row_table.into());
                    self.origins.push(Origin { block, file: file.clone(), what: What::Row(row.line()) });
                }
            }
        }
    }
}

fn part(table: &Table) -> Part {
    let of = table.get(key!(ChangeKeys, of)).and_then(Value::as_str).unwrap_or_default();
    Part::WORDS.iter().find(|(word, _)| *word == of).expect("a checked word").1
}

/// Refuses a change, or opportunities of the block itself, beside a trace.
fn check_alone(document: &Document, index: usize, table: &Table) -> Result<(), ScenarioError> {
    let keys = [key!(ChangeKeys, trace), key!(ChangeKeys, opportunities_ms)];
    let Some(key) = keys.into_iter().find(|key| table.contains_key(*key)) else { return Ok(()) };
    let beside = part(table).changing().into_iter().chain([key!(ChangeKeys, opportunities_ms)]);
    if let Some(other) = beside.filter(|other| *other != key).find(|other| table.contains_key(*other)) {
        let accepted = format!("{key}, or the change itself");
        return Err(document.error(&block(index).key(other), format!("cannot be beside {key}"), accepted));
    }
    if key == key!(ChangeKeys, opportunities_ms) && part(table) == Part::Hosts {
        let problem = "is the rate of a link, and no PHY rate of stations";
        return Err(document.error(&block(index).key(key), problem, "\"link\", \"path\" or \"access\" in `of`"));
    }
    Ok(())
}

/// A rate of a change: 0, which breaks a link, or one that the network knows.
pub(crate) fn check_rate_mbps(rate_mbps: f64) -> Result<(), Problem> {
    if rate_mbps == 0.0 || rate_mbps >= SLOWEST_MBPS {
        return Ok(());
    }
    let accepted = format!("0, or a number from {SLOWEST_MBPS} to {FASTEST_MBPS}");
    Err(Problem::new(format!("{rate_mbps} is out of range"), accepted))
}
