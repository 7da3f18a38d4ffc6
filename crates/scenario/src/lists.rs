//! Files of `[[hosts.flows]]`: the distribution of `transfer_sizes`, the times of `arrivals`. What they say takes the place of
//! their paths, so that a result has it, and so has its key in a store.
//!
//! Rows as in the CSV of a trace (`trace::reading`): two columns, or of times one, and in each row as many. A header names them, in any
//! order. Rows behind the end of the run are not read. A mistake is told with its line, under the key that names the file.

use crate::ScenarioError;
use crate::keys::{HostKeys, ScenarioKeys};
use crate::trace::error_in;
use crate::trace::reading::{Lines, Separator};
use lasthop_keys::{Document, Path, Problem, key};
use lasthop_traffic::{Pace, Points, Transfers};
use std::fmt::Write as _;
use std::io;
use toml::{Table, Value};

/// A key whose value may be a path, the key of what the file says, and the columns.
struct List {
    of: &'static str,
    as_text: &'static str,
    /// Both, and the others that say the same, of which there is one.
    one_of: &'static [&'static str],
    columns: [&'static str; 2],
    /// Whether the second column may be missing, or empty.
    optional: bool,
    /// The most characters of that key.
    most: usize,
    accepted: &'static str,
    /// What the rows may be.
    rows: &'static str,
}

const LISTS: [List; 2] = [
    List {
        of: "transfer_sizes",
        as_text: "transfer_points",
        one_of: &Transfers::SIZED_BY,
        columns: ["bytes", "share"],
        optional: false,
        most: 400_000,
        accepted: "\"web-search\", \"data-mining\", or the path of a file with bytes and the share of transfers up to so many",
        rows: Points::ACCEPTED,
    },
    List {
        of: "arrivals",
        as_text: "arrivals_s",
        one_of: &Transfers::PACED_BY,
        columns: ["at_s", "bytes"],
        optional: true,
        most: 1_000_000,
        accepted: "the path of a file with times in seconds, and with bytes if each has its size",
        rows: Pace::ARRIVALS,
    },
];

/// The keys of a flow's table whose values are paths, each with the key of what the file says.
pub(crate) fn files_of(flow: &Table) -> impl Iterator<Item = (&'static str, &'static str)> {
    let named = |list: &List| flow.get(list.of).and_then(Value::as_str).is_some_and(|name| list.is_file(name));
    LISTS.iter().filter(move |list| named(list)).map(|list| (list.of, list.as_text))
}

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
    /// Whether a value is a path: there are names of distributions, too.
    fn is_file(&self, name: &str) -> bool {
        self.optional || Points::of(name).is_none()
    }

    /// Whether there was a file.
    fn expand(&self, document: &Document, flow: &Path, table: &mut Table, end_s: f64) -> Result<bool, ScenarioError> {
        let here = flow.key(self.of);
        let name = table.get(self.of).and_then(Value::as_str).filter(|name| self.is_file(name));
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
        let others = self.one_of.iter().filter(|key| **key != self.of);
        if let Some(other) = others.copied().find(|key| table.contains_key(*key)) {
            return Err(document.error(&here, format!("cannot be beside {other}"), "one of the two"));
        }
        let all_have_sizes = Transfers::SIZED_BY.iter().any(|key| table.contains_key(*key));
        let cannot = |error: io::Error| document.error(&here, format!("{name} cannot be read: {error}"), self.accepted);
        let (text, is_late) = self.read(&folder.join(&name), end_s, all_have_sizes, &cannot)?;
        if text.is_empty() {
            let problem = if is_late { "has no time before the end of the run" } else { "has no row" };
            return Err(document.error(&here, format!("{name} {problem}"), self.accepted));
        }
        table.remove(self.of);
        table.insert(self.as_text.to_owned(), text.into());
        Ok(true)
    }

    /// What the file says, as the other key has it; and whether a time is behind the end of the run. `all_have_sizes`: a row needs none.
    fn read(
        &self,
        path: &std::path::Path,
        end_s: f64,
        all_have_sizes: bool,
        cannot: &dyn Fn(io::Error) -> ScenarioError,
    ) -> Result<(String, bool), ScenarioError> {
        let wrong = |line: u32, problem: String, accepted: &str| {
            error_in(&path.display().to_string(), line, self.of, Problem::new(problem, accepted))
        };
        let mut lines = Lines::open(path).map_err(cannot)?;
        let (mut separator, mut order, mut width) = (None, [0, 1], None);
        let (mut text, mut last, mut is_late) = (String::new(), 0.0, false);
        // The points of a distribution with their lines, and the first time without a size.
        let (mut points, mut lines_of_points, mut unsized_at) = (Vec::new(), Vec::new(), None);
        while let Some((line, row)) = lines.next().map_err(cannot)? {
            let is_first = separator.is_none();
            let cells: Vec<&str> = separator.get_or_insert_with(|| Separator::of(row)).cells(row).collect();
            if is_first && cells.iter().all(|cell| cell.parse::<f64>().is_err()) {
                let of = |heads: String| wrong(line, format!("{row} are no columns"), &heads);
                order = self.order(&cells).ok_or_else(|| of(self.heads()))?;
                width = Some(cells.len());
                continue;
            }
            let usual = if self.optional && cells.len() == 1 { 1 } else { self.columns.len() };
            let width = *width.get_or_insert(usual);
            if cells.len() != width {
                let of = |count: usize| format!("{count} {}", if count == 1 { "cell" } else { "cells" });
                return Err(wrong(line, format!("the row has {}", of(cells.len())), &of(width)));
            }
            let wrong_row = |problem: String| wrong(line, problem, self.rows);
            let number = |cell: &str| {
                let number = cell.parse::<f64>().ok().filter(|number| number.is_finite());
                number.ok_or_else(|| wrong_row(format!("\"{cell}\" is no number")))
            };
            let of = |column: usize| cells.get(order[column]).copied().unwrap_or_default();
            let first = number(of(0))?;
            if first < last {
                return Err(wrong_row(format!("{first} is below {last}")));
            }
            last = first;
            if self.optional && first >= end_s {
                is_late = true;
                break;
            }
            let _ = write!(text, "{}{first}", if text.is_empty() { "" } else { " " });
            if self.optional && of(1).is_empty() {
                unsized_at = unsized_at.or(Some(line));
            } else {
                let second = number(of(1))?;
                if self.optional && Pace::size(second).is_none() {
                    return Err(wrong_row(format!("{second} is no size in bytes")));
                }
                let _ = write!(text, ":{second}");
                if !self.optional {
                    points.push((first, second));
                    lines_of_points.push(line);
                }
            }
            if text.len() > self.most {
                let problem = format!("has more than {} characters of numbers before this line", self.most);
                return Err(wrong(line, problem, "a shorter file"));
            }
        }
        // Without any size, it is the key that is missing.
        if let Some(line) = unsized_at.filter(|_| !all_have_sizes && text.contains(':')) {
            let accepted = "bytes in each row, or transfer_kib or transfer_sizes for those without";
            return Err(wrong(line, "the row has no bytes".to_owned(), accepted));
        }
        if !points.is_empty() {
            Points::new(&points).map_err(|(number, problem)| wrong(lines_of_points[number], problem, self.rows))?;
        }
        Ok((text, is_late))
    }

    /// What a header may be.
    fn heads(&self) -> String {
        let [one, other] = self.columns;
        let both = format!("{one} and {other}");
        if self.optional { format!("{one}, or {both}") } else { both }
    }

    /// The places of the columns; there are no others, and none twice.
    fn order(&self, heads: &[&str]) -> Option<[usize; 2]> {
        if heads.iter().any(|head| !self.columns.contains(head)) {
            return None;
        }
        let place = |name: &str| heads.iter().position(|head| *head == name);
        let first = place(self.columns[0])?;
        match (place(self.columns[1]), heads.len()) {
            (Some(second), 2) => Some([first, second]),
            (None, 1) if self.optional => Some([first, usize::MAX]),
            _ => None,
        }
    }
}
