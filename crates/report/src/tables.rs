//! Plain-text tables for the terminal.

use crate::cells::{self, Cell};
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use lasthop_scenario::{Comparison, RunResult};
use std::fmt::Write as _;

/// One run: the headline, a row for each connection, then rows for links and messages, if any.
pub fn run(result: &RunResult) -> String {
    let mut text = headline(result);
    let tables: Vec<String> = cells::tables(result).iter().map(|(heads, rows)| table(heads, rows)).collect();
    text.push_str(&tables.join("\n\n"));
    text
}

/// Several runs: a row for each case, then the tables of messages and transfers, if any. With several seeds, a cell has
/// the mean and its 95 % confidence interval, and a single case has a row for each of its figures.
pub fn comparison(comparison: &Comparison) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", comparison.name());
    if let [only] = comparison.seeds.as_slice() {
        let _ = writeln!(text, "seed {only}");
    } else {
        let _ = writeln!(text, "means over {} seeds (their 95 % confidence intervals)", comparison.seeds.len());
    }
    let mut tables = cells::case_tables(comparison);
    if let [only] = comparison.cases.as_slice() {
        tables.extend(cells::statistics(only));
    }
    let tables: Vec<String> = tables.iter().map(|(heads, rows)| table(heads, rows)).collect();
    text.push_str(&tables.join("\n\n"));
    if let Some(left_out) = cells::left_out(comparison) {
        let _ = write!(text, "\n{left_out}");
    }
    for (case, reason) in cells::invalid_cases(comparison) {
        let _ = write!(text, "\nnot valid: {case}: {reason}");
    }
    text
}

/// A study: the points of its figures, then its claims, each with the paper's number, ours and the verdict.
pub fn study(result: &lasthop_study::StudyResult) -> String {
    crate::study::terminal(result)
}

fn headline(result: &RunResult) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", result.name());
    let figures: Vec<String> =
        cells::headline(result).into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    // Two lines of figures: a terminal is hardly wider than a page.
    for line in figures.chunks(figures.len().div_ceil(2)) {
        let _ = writeln!(text, "{}", line.join(" · "));
    }
    for reason in &result.invalid_reasons {
        let _ = writeln!(text, "not valid: {reason}");
    }
    for note in &result.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// Draws a single rule, below the heads.
const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

pub(crate) fn table(heads: &[impl AsRef<str>], rows: &[Vec<Cell>]) -> String {
    let mut table = Table::new();
    table.load_style(RULED).set_header(heads.iter().map(AsRef::as_ref));
    for row in rows {
        table.add_row(row.iter().map(|cell| match &cell.small {
            Some(range) => format!("{} ({range})", cell.text),
            None => cell.text.clone(),
        }));
    }
    for (column, cell) in table.column_iter_mut().zip(rows.first().into_iter().flatten()) {
        column.set_cell_alignment(if cell.is_number { CellAlignment::Right } else { CellAlignment::Left });
    }
    table.trim_fmt()
}
