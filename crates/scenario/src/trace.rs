//! `trace = "FILE"` in `[[changes]]`: the file's rows in place of the block.
//!
//! A block with a trace becomes one block for each row, before anything else is read. So both habitats replay it, and
//! the scenario of a result, its key in a store and `scenario.toml` have the rows themselves, not the file's path.
//!
//! - CSV: a header of `at_s` and keys of `[[changes]]`; an empty cell changes nothing; lines after `#` are comments.
//! - mahimahi's packet-delivery trace (mm-link(1)): a line is the time in ms at which 1500 bytes may leave; the trace
//!   begins anew at its last time. The opportunities of each window become a rate. In windows without any, one
//!   packet waits for the first opportunity after them.
//!
//! Rows at the end of the run and later are left out.
//!
//! *What it leaves out*: single opportunities within a window (docs/guide/trace.md has the error); a CSV that repeats.

use crate::ScenarioError;
use crate::keys::{ChangeKeys, Part, ScenarioKeys};
use crate::limited::{MOST_TYPED_BYTES, text_of};
use lasthop_keys::{Document, KeyError, Keys as _, Path, Problem, key, nearest};
use lasthop_units::{Bytes, Rate, Span};
use toml::{Table, Value};

/// The most rows of all traces of a scenario.
const MOST_ROWS: usize = 20_000;
/// What an opportunity lets through: mm-link(1) has 1500 bytes.
const OPPORTUNITY: Bytes = Bytes::new(1_500);
/// The window of mahimahi's format, without `window_ms`.
const WINDOW_MS: u64 = 100;
/// The slowest rate but none, and the fastest.
pub(crate) const SLOWEST_MBPS: f64 = 0.001;
pub(crate) const FASTEST_MBPS: f64 = 100_000.0;

/// Where a block of the complete `[[changes]]` comes from.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The block of the file.
    block: usize,
    /// The row of its trace.
    row: Option<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    file: String,
    line: usize,
}

impl Origin {
    /// The block's place.
    pub(crate) fn path(&self) -> Path {
        block(self.block)
    }

    /// An error about a key of this block.
    pub(crate) fn error(&self, document: &Document, key: &str, problem: String, accepted: String) -> ScenarioError {
        match &self.row {
            Some(row) => row.error(key, Problem::new(problem, accepted)),
            None => document.error(&self.path().key(key), problem, accepted),
        }
    }
}

impl Row {
    fn error(&self, key: &str, problem: Problem) -> ScenarioError {
        let Problem { problem, accepted, did_you_mean } = problem;
        let (file, line) = (self.file.clone(), Some(self.line));
        KeyError { file, line, set_by: None, key: key.to_owned(), problem, accepted, did_you_mean }.into()
    }
}

fn block(index: usize) -> Path {
    Path::top(key!(ScenarioKeys, changes)).index(index)
}

/// Puts rows in the places of blocks with a trace. Returns the origin of each block that is there then.
pub(crate) fn expand(document: &mut Document) -> Result<Vec<Origin>, ScenarioError> {
    let list = key!(ScenarioKeys, changes);
    let blocks = document.table.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
    let end_s = document.table.get(key!(ScenarioKeys, duration_s)).and_then(Value::as_float).unwrap_or_default();
    let (mut whole, mut origins, mut rows) = (Vec::new(), Vec::new(), 0);
    for (index, value) in blocks.into_iter().enumerate() {
        let table = value.as_table().expect("a checked block is a table");
        if !table.contains_key(key!(ChangeKeys, trace)) {
            if !table.contains_key(key!(ChangeKeys, at_s)) {
                return Err(document.refuse::<ChangeKeys>(&block(index), key!(ChangeKeys, at_s), "is not there"));
            }
            whole.push(value);
            origins.push(Origin { block: index, row: None });
            continue;
        }
        let trace = Trace::read(document, index, table, end_s)?;
        rows += trace.rows.len();
        if rows > MOST_ROWS {
            let problem = format!("makes {rows} changes with the traces before it, which is too many");
            let accepted = format!("up to {MOST_ROWS}: a shorter run, or of mahimahi's format a longer window_ms");
            return Err(document.error(&block(index).key(key!(ChangeKeys, trace)), problem, accepted));
        }
        for (line, row) in trace.rows {
            let mut changed = trace.common.clone();
            changed.extend(row);
            whole.push(changed.into());
            origins.push(Origin { block: index, row: Some(Row { file: trace.file.clone(), line }) });
        }
    }
    if whole.is_empty() {
        document.table.remove(list);
    } else {
        document.table.insert(list.to_owned(), whole.into());
    }
    Ok(origins)
}

/// The trace of one block.
struct Trace {
    /// In messages.
    file: String,
    /// What changes: keys of every row.
    common: Table,
    /// The keys of each row, with its line.
    rows: Vec<(usize, Table)>,
}

impl Trace {
    fn read(document: &Document, index: usize, table: &Table, end_s: f64) -> Result<Self, ScenarioError> {
        let here = block(index).key(key!(ChangeKeys, trace));
        let word = |key: &str| table.get(key).and_then(Value::as_str).unwrap_or_default();
        let (&(_, of), name) = (
            Part::WORDS.iter().find(|(of, _)| *of == word(key!(ChangeKeys, of))).expect("a checked word"),
            word(key!(ChangeKeys, trace)),
        );
        if let Some(key) = of.changing().into_iter().find(|key| table.contains_key(*key)) {
            let accepted = "a trace, or the change itself";
            return Err(document.error(&block(index).key(key), "cannot be beside trace", accepted));
        }
        let mut common = table.clone();
        for key in [key!(ChangeKeys, trace), key!(ChangeKeys, window_ms), key!(ChangeKeys, at_s)] {
            common.remove(key);
        }
        let accepted = "the path of a CSV file or a mahimahi trace (docs/guide/trace.md)";
        let Some(folder) = document.folder() else {
            return Err(document.error(
                &here,
                "is a file, and this scenario is in no folder",
                "the rows as [[changes]]",
            ));
        };
        // One of the command line is relative to where that is typed.
        let folder = if document.override_of(&here).is_some() { std::path::Path::new("") } else { folder };
        let path = folder.join(name);
        let cannot = |error| document.error(&here, format!("{name} cannot be read: {error}"), accepted);
        let text = text_of(&path, MOST_TYPED_BYTES).map_err(cannot)?;
        let text = text.trim_start_matches('\u{feff}');
        let file = path.display().to_string();
        let start_s = table.get(key!(ChangeKeys, at_s)).and_then(Value::as_float).unwrap_or_default();
        let lines = Lines { file: &file, text, of, start_s, end_s };
        let Some((_, first)) = lines.rows().next() else {
            return Err(document.error(&here, format!("{name} is empty"), accepted));
        };
        let rows = if first.bytes().all(|letter| letter.is_ascii_digit()) {
            let window = table.get(key!(ChangeKeys, window_ms)).and_then(Value::as_integer);
            lines.of_mahimahi(window.map_or(WINDOW_MS, |window| window.unsigned_abs()))?
        } else {
            lines.of_csv()?
        };
        Ok(Self { file, common, rows })
    }
}

/// The lines of a trace.
struct Lines<'a> {
    file: &'a str,
    text: &'a str,
    of: Part,
    /// When its time 0 is.
    start_s: f64,
    /// When the run ends.
    end_s: f64,
}

impl<'a> Lines<'a> {
    /// Each line with its number, without comments and empty ones.
    fn rows(&self) -> impl Iterator<Item = (usize, &'a str)> {
        let numbered = self.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        numbered.filter_map(|(number, line)| {
            let line = line.split('#').next().unwrap_or_default().trim();
            (!line.is_empty()).then_some((number, line))
        })
    }

    fn error(&self, line: usize, key: &str, problem: Problem) -> ScenarioError {
        Row { file: self.file.to_owned(), line }.error(key, problem)
    }

    fn of_csv(&self) -> Result<Vec<(usize, Table)>, ScenarioError> {
        let at_s = key!(ChangeKeys, at_s);
        let known: Vec<&str> = [at_s].into_iter().chain(self.of.changing()).collect();
        let mut lines = self.rows();
        let (first, header) = lines.next().expect("a trace that is not empty has a line");
        let columns: Vec<&str> = header.split(',').map(str::trim).collect();
        let of_header = |key: &str, problem: &str, did_you_mean: Option<&str>| {
            let did_you_mean = did_you_mean.map(str::to_owned);
            Err(self.error(first, key, Problem { did_you_mean, ..Problem::new(problem, known.join(", ")) }))
        };
        for (index, column) in columns.iter().enumerate() {
            if !known.contains(column) {
                let problem = format!("is no column of a trace with of = \"{}\"", self.of);
                return of_header(column, &problem, nearest(column, &known));
            }
            if columns[..index].contains(column) {
                return of_header(column, "is a column twice", None);
            }
        }
        if !columns.contains(&at_s) || columns.len() < 2 {
            let missing = if columns.contains(&at_s) { "another column" } else { at_s };
            return of_header(missing, "is not there", None);
        }
        let mut rows = Vec::new();
        let mut before = f64::NEG_INFINITY;
        for (number, line) in lines {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            if cells.len() != columns.len() {
                let problem = Problem::new(format!("has {} cells", cells.len()), format!("{} cells", columns.len()));
                return Err(self.error(number, "the row", problem));
            }
            let mut row = Table::new();
            for (column, cell) in columns.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
                let value = self.cell(column, cell).map_err(|problem| self.error(number, column, problem))?;
                row.insert((*column).to_owned(), value);
            }
            let Some(at) = row.get(at_s).and_then(Value::as_float) else {
                return Err(self.error(number, at_s, Problem::new("is not there", self.kind(at_s).accepted())));
            };
            if at < before {
                let problem = Problem::new(format!("{at} goes back"), format!("{before} or later"));
                return Err(self.error(number, at_s, problem));
            }
            before = at;
            let at = self.start_s + at;
            row.insert(at_s.to_owned(), at.into());
            if row.len() > 1 && at < self.end_s {
                rows.push((number, row));
            }
        }
        if before < 0.0 {
            return Err(self.error(first, "the header", Problem::new("has no row below it", "at least one row")));
        }
        Ok(rows)
    }

    /// A value as the key takes it.
    fn cell(&self, key: &str, cell: &str) -> Result<Value, Problem> {
        let kind = self.kind(key);
        let whole = cell.parse::<i64>().map(Value::Integer);
        let value = whole.or_else(|_| cell.parse::<f64>().map(Value::Float));
        let value = value.map_err(|_| Problem::new(format!("\"{cell}\" is no number"), kind.accepted()))?;
        let value = kind.check(value)?;
        let rate = value.as_float().filter(|_| key.ends_with(key!(ChangeKeys, rate_mbps)));
        rate.map_or(Ok(()), check_rate_mbps).map(|()| value)
    }

    fn kind(&self, key: &str) -> &'static lasthop_keys::Kind {
        &ChangeKeys::section().key(key).expect("a column is a key").kind
    }

    /// The rate of each window in which it differs from the one before.
    fn of_mahimahi(&self, window_ms: u64) -> Result<Vec<(usize, Table)>, ScenarioError> {
        let accepted = "lines of whole milliseconds in order, each an opportunity for 1500 bytes";
        if matches!(self.of, Part::Hosts) {
            let accepted = "a CSV file; mahimahi's format with \"link\", \"path\" or \"access\"";
            let problem = "is mahimahi's format, which is the rate of a link, and no PHY rate of stations";
            return Err(self.error(1, "the trace", Problem::new(problem, accepted)));
        }
        let mut times: Vec<u64> = Vec::new();
        for (index, line) in self.text.lines().enumerate() {
            let fail = |problem: String| Err(self.error(index + 1, "the time", Problem::new(problem, accepted)));
            match line.trim().parse::<u64>() {
                Err(_) => return fail(format!("\"{}\" is no whole number", line.trim())),
                Ok(at) if times.last().is_some_and(|before| at < *before) => return fail(format!("{at} goes back")),
                Ok(at) => times.push(at),
            }
        }
        let period = times.last().copied().filter(|last| *last > 0);
        let Some(period) = period else {
            let problem = Problem::new("0 is the last time: the trace takes no time", "a last time above 0");
            return Err(self.error(times.len(), "the time", problem));
        };
        let windows = ((self.end_s - self.start_s).max(0.0) * 1e3 / window_ms as f64).ceil() as u64;
        if windows > MOST_ROWS as u64 {
            let problem = format!("makes {windows} windows of {window_ms} ms");
            let accepted = format!("up to {MOST_ROWS}: a shorter run, or a longer window_ms");
            return Err(self.error(1, "the trace", Problem::new(problem, accepted)));
        }
        let until =
            |at: u64| at / period * times.len() as u64 + times.partition_point(|time| *time <= at % period) as u64;
        // A packet that takes a whole window leaves at its end, so that moment is the window's.
        let after = |window: u64| if window == 0 { 0 } else { until(window * window_ms) };
        let counts = (0..windows).map(|window| after(window + 1) - after(window));
        let (mut rows, mut before) = (Vec::new(), None);
        for (at, pace) in (0..).zip(paces(counts)) {
            let span = Span::from_millis(pace.windows * window_ms);
            let rate = Rate::over(Bytes::new(OPPORTUNITY.get() * pace.opportunities), span).as_mbps().max(SLOWEST_MBPS);
            if rate > FASTEST_MBPS {
                let problem = format!("has {rate} Mb/s at {} ms", at * window_ms);
                return Err(self.error(1, "the trace", Problem::new(problem, format!("up to {FASTEST_MBPS} Mb/s"))));
            }
            if before != Some(rate) {
                let at_s = self.start_s + (at * window_ms) as f64 / 1e3;
                let row = [(key!(ChangeKeys, at_s), at_s), (key!(ChangeKeys, rate_mbps), rate)];
                rows.push((1, row.map(|(key, value)| (key.to_owned(), Value::from(value))).into_iter().collect()));
            }
            before = Some(rate);
        }
        Ok(rows)
    }
}

/// The rate of a window: so many opportunities in so many windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    windows: u64,
    opportunities: u64,
}

/// The pace of each window. In those without opportunities a packet takes the time that is left until the next one: the
/// one that begins first leaves then, and no other before it.
fn paces(counts: impl Iterator<Item = u64>) -> Vec<Pace> {
    let mut paces = Vec::new();
    let wait = |paces: &mut Vec<Pace>, windows: u64| {
        paces.extend((1..=windows).rev().map(|windows| Pace { windows, opportunities: 1 }));
    };
    let mut empty = 0;
    for count in counts {
        match (empty, count) {
            (_, 0) => empty += 1,
            (0, opportunities) => paces.push(Pace { windows: 1, opportunities }),
            // It ends the wait; alone in its window, at that one's end.
            (_, 1) => wait(&mut paces, std::mem::take(&mut empty) + 1),
            (_, more) => {
                wait(&mut paces, std::mem::take(&mut empty));
                paces.push(Pace { windows: 1, opportunities: more - 1 });
            }
        }
    }
    wait(&mut paces, empty);
    paces
}

/// A rate of a change: 0, which breaks a link, or one that the network knows.
pub(crate) fn check_rate_mbps(rate_mbps: f64) -> Result<(), Problem> {
    if rate_mbps == 0.0 || rate_mbps >= SLOWEST_MBPS {
        return Ok(());
    }
    let accepted = format!("0, or a number from {SLOWEST_MBPS} to {FASTEST_MBPS}");
    Err(Problem::new(format!("{rate_mbps} is out of range"), accepted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_without_opportunities_wait_for_the_next_one() {
        let of = |counts: &[u64]| -> Vec<(u64, u64)> {
            paces(counts.iter().copied()).iter().map(|pace| (pace.windows, pace.opportunities)).collect()
        };
        assert_eq!(of(&[3, 2]), [(1, 3), (1, 2)]);
        // The first of four ends the wait of two windows; three are left.
        assert_eq!(of(&[1, 0, 0, 4]), [(1, 1), (2, 1), (1, 1), (1, 3)]);
        assert_eq!(of(&[0, 0, 1, 0, 1, 2]), [(3, 1), (2, 1), (1, 1), (2, 1), (1, 1), (1, 2)]);
        // The run ends within the wait.
        assert_eq!(of(&[5, 0, 0]), [(1, 5), (2, 1), (1, 1)]);
    }
}
