//! Files of `[[hosts.flows]]`: the distribution of `transfer_sizes`, the times of `arrivals`. What they say takes the place of
//! their paths, so that a result has it, and so has its key in a store.
//!
//! Rows as in the CSV of a trace (`trace::reading`): two columns, or of times one. A header names them, in any order. Rows behind the
//! end of the run are not read.

use crate::ScenarioError;
use crate::keys::{HostKeys, ScenarioKeys};
use crate::trace::error_in;
use crate::trace::reading::{Lines, Separator};
use lasthop_keys::{Document, Path, Problem, key};
use lasthop_traffic::Points;
use std::fmt::Write as _;
use std::io;
use toml::{Table, Value};

/// A key whose value may be a path, the key of what the file says, and the columns.
struct List {
    of: &'static str,
    as_text: &'static str,
    columns: [&'static str; 2],
    /// Whether the second column may be missing, or empty.
    optional: bool,
    /// The most characters of that key.
    most: usize,
    accepted: &'static str,
}

const LISTS: [List; 2] = [
    List {
        of: "transfer_sizes",
        as_text: "transfer_points",
        columns: ["bytes", "share"],
        optional: false,
        most: 400_000,
        accepted: "\"web-search\", \"data-mining\", or the path of a file with bytes and the share of transfers up to so many",
    },
    List {
        of: "arrivals",
        as_text: "arrivals_s",
        columns: ["at_s", "bytes"],
        optional: true,
        most: 1_000_000,
        accepted: "the path of a file with times in seconds, and with bytes if each has its size",
    },
];

/// Puts what the files say in the places of their paths.
pub(crate) fn expand(document: &mut Document) -> Result<(), ScenarioError> {
    let end_s = document.table.get(key!(ScenarioKeys, duration_s)).and_then(Value::as_float).unwrap_or(f64::MAX);
    let tables = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let mut hosts = tables(document.table.get(key!(ScenarioKeys, hosts)));
    let mut any = false;
    for (block, host) in hosts.iter_mut().enumerate() {
        let Some(flows) = host.get_mut(key!(HostKeys, flows)).and_then(Value::as_array_mut) else { continue };
        for (number, flow) in flows.iter_mut().enumerate() {
            let here = Path::top(key!(ScenarioKeys, hosts)).index(block).key(key!(HostKeys, flows)).index(number);
            let Some(flow) = flow.as_table_mut() else { continue };
            for list in &LISTS {
                any |= list.expand(document, &here, flow, end_s)?;
            }
        }
    }
    if any {
        document.table.insert(key!(ScenarioKeys, hosts).to_owned(), hosts.into());
    }
    Ok(())
}

impl List {
    /// Whether there was a file.
    fn expand(&self, document: &Document, flow: &Path, table: &mut Table, end_s: f64) -> Result<bool, ScenarioError> {
        let here = flow.key(self.of);
        let name = table.get(self.of).and_then(Value::as_str).filter(|name| Points::of(name).is_none());
        let Some(name) = name.map(str::to_owned) else { return Ok(false) };
        if table.get("kind").and_then(Value::as_str) != Some("transfers") {
            return Ok(false);
        }
        let Some(folder) = document.folder_at(&here) else {
            return Err(document.error(
                &here,
                format!("\"{name}\" is a file, and this scenario is in no folder"),
                self.accepted,
            ));
        };
        if table.contains_key(self.as_text) {
            return Err(document.error(&here, format!("cannot be beside {}", self.as_text), "one of the two"));
        }
        let path = folder.join(&name);
        let cannot = |error: io::Error| document.error(&here, format!("{name} cannot be read: {error}"), self.accepted);
        let mut lines = Lines::open(&path).map_err(cannot)?;
        let mut order = [0, 1];
        let mut separator = None;
        let (mut text, mut last, mut is_late) = (String::new(), 0.0, false);
        while let Some((line, row)) = lines.next().map_err(cannot)? {
            let is_first = separator.is_none();
            let cells: Vec<&str> = separator.get_or_insert_with(|| Separator::of(row)).cells(row).collect();
            let wrong = |problem: String| {
                error_in(&path.display().to_string(), line, self.of, Problem::new(problem, self.accepted))
            };
            if is_first && cells.iter().all(|cell| cell.parse::<f64>().is_err()) {
                order = self.order(&cells).ok_or_else(|| wrong(format!("{row} are no columns")))?;
                continue;
            }
            let number = |cell: &str| {
                cell.parse::<f64>()
                    .ok()
                    .filter(|number| number.is_finite())
                    .ok_or_else(|| wrong(format!("\"{cell}\" is no number")))
            };
            let of = |column: usize| cells.get(order[column]).copied().unwrap_or_default();
            let first = number(of(0))?;
            if first < last {
                return Err(wrong(format!("{first} is below {last}")));
            }
            last = first;
            if self.optional && first >= end_s {
                is_late = true;
                break;
            }
            let _ = write!(text, "{}{first}", if text.is_empty() { "" } else { " " });
            if !(self.optional && of(1).is_empty()) {
                let second = number(of(1))?;
                if self.optional && (second < 1.0 || second.fract() != 0.0) {
                    return Err(wrong(format!("{second} is no whole number of bytes from 1")));
                }
                let _ = write!(text, ":{second}");
            }
            if text.len() > self.most {
                return Err(wrong(format!("has more than {} characters of numbers before this line", self.most)));
            }
        }
        if text.is_empty() {
            let problem = if is_late { "has no time before the end of the run" } else { "has no row" };
            return Err(document.error(&here, format!("{name} {problem}"), self.accepted));
        }
        table.remove(self.of);
        table.insert(self.as_text.to_owned(), text.into());
        Ok(true)
    }

    /// The places of the columns; there are no others.
    fn order(&self, heads: &[&str]) -> Option<[usize; 2]> {
        if heads.iter().any(|head| !self.columns.contains(head)) {
            return None;
        }
        let place = |name: &str| heads.iter().position(|head| *head == name);
        let first = place(self.columns[0])?;
        match place(self.columns[1]) {
            Some(second) => Some([first, second]),
            None if self.optional => Some([first, usize::MAX]),
            None => None,
        }
    }
}
