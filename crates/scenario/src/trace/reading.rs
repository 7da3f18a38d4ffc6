//! Files of traces, read line by line up to the end of the run.
//!
//! - CSV: a header of `at_s` and keys of `[[changes]]`; an empty cell changes nothing; lines after `#` are comments. Commas,
//!   semicolons or white space part the cells, which may be quoted (RFC 4180 §2). Two columns without a header are `at_s` and
//!   `rate_mbps` (Pensieve, Oboe).
//! - mahimahi's packet-delivery trace (mm-link(1)): a line is the time in ms of one opportunity; the trace begins anew at
//!   its last time.
//!
//! *What it leaves out*: a CSV that repeats; quoted cells of several lines, for cells are keys and numbers.

use super::{check_rate_mbps, error_in};
use crate::ScenarioError;
use crate::keys::{ChangeKeys, Part};
use lasthop_keys::{Keys as _, Kind, Problem, key, nearest};
use lasthop_network::Opportunities;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use toml::Value;

/// The most bytes of a line.
const MOST_LINE: u64 = 65_536;
/// The columns of a trace without a header line: throughput over time, as Pensieve and Oboe have it.
const PLAIN: [&str; 2] = [key!(ChangeKeys, at_s), key!(ChangeKeys, rate_mbps)];
const OF_MAHIMAHI: &str = "lines of whole milliseconds in order, each an opportunity for 1500 bytes";

/// What a trace has recorded.
pub(super) enum Content {
    Rows(Rows),
    Opportunities(Opportunities),
}

impl Content {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.lines.len(),
            Self::Opportunities(trace) => trace.instants().len(),
        }
    }
}

/// The rows of a CSV.
#[derive(Debug)]
pub(crate) struct Rows {
    columns: Vec<&'static str>,
    /// Of each row its line, and the cells as numbers; NaN: empty. Times are those of the run.
    lines: Vec<u32>,
    cells: Vec<f64>,
}

/// One row.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    columns: &'a [&'static str],
    line: u32,
    cells: &'a [f64],
}

impl Rows {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        let cells = self.cells.chunks_exact(self.columns.len());
        self.lines.iter().zip(cells).map(|(line, cells)| Row { columns: &self.columns, line: *line, cells })
    }
}

impl<'a> Row<'a> {
    pub(crate) const fn line(self) -> u32 {
        self.line
    }

    /// The keys that the row has, with their numbers.
    pub(crate) fn given(self) -> impl Iterator<Item = (&'static str, f64)> + use<'a> {
        let all = self.columns.iter().zip(self.cells).map(|(column, cell)| (*column, *cell));
        all.filter(|(_, cell)| !cell.is_nan())
    }

    pub(crate) fn changes_something(self) -> bool {
        self.given().count() > 1
    }

    /// The same as values of a file.
    pub(super) fn values(self) -> impl Iterator<Item = (String, Value)> + use<'a> {
        self.given().map(|(column, cell)| {
            let value = match kind(column) {
                Kind::Flag => Value::Boolean(cell != 0.0),
                Kind::Integer { .. } => Value::Integer(cell as i64),
                _ => Value::Float(cell),
            };
            (column.to_owned(), value)
        })
    }
}

fn kind(column: &str) -> &'static Kind {
    &ChangeKeys::section().key(column).expect("a column is a key").kind
}

/// A file, read up to the end of the run.
pub(super) struct Reader<'a> {
    lines: Lines<BufReader<File>>,
    file: &'a str,
    of: Part,
    /// When its time 0 is.
    start_s: f64,
    /// When the run ends.
    end_s: f64,
    assumes_header: bool,
}

/// Lines with their numbers, without comments and empty ones; and a digest of what was read.
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u32,
    digest: Sha256,
}

impl Lines<BufReader<File>> {
    pub(crate) fn open(path: &std::path::Path) -> io::Result<Self> {
        let reader = BufReader::with_capacity(1 << 16, lasthop_files::open_to_read(path)?);
        Ok(Self { reader, buffer: Vec::new(), number: 0, digest: Sha256::new() })
    }
}

impl<R: io::BufRead> Lines<R> {
    /// The next line is in the buffer. `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u32, &str)>> {
        let range = loop {
            self.buffer.clear();
            let read = self.reader.by_ref().take(MOST_LINE + 1).read_until(b'\n', &mut self.buffer)?;
            if read == 0 {
                return Ok(None);
            }
            self.number = self.number.saturating_add(1);
            if read as u64 > MOST_LINE {
                return Err(io::Error::other(format!("line {} has more than {MOST_LINE} bytes", self.number)));
            }
            self.digest.update(&self.buffer);
            let mark = if self.number == 1 && self.buffer.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
            let line = &self.buffer[mark..];
            let line = line.split(|letter| *letter == b'#').next().unwrap_or_default();
            let line = line.trim_ascii_end();
            let end = mark + line.len();
            let start = end - line.trim_ascii_start().len();
            if start < end {
                break start..end;
            }
        };
        let text = std::str::from_utf8(&self.buffer[range]);
        let text = text.map_err(|_| io::Error::other(format!("line {} is no text in UTF-8", self.number)))?;
        if text.contains('\r') {
            let problem = format!("line {} has a carriage return inside; lines end with LF or CRLF", self.number);
            return Err(io::Error::other(problem));
        }
        Ok(Some((self.number, text)))
    }
}

/// What parts the cells of a CSV.
#[derive(Clone, Copy)]
pub(crate) enum Separator {
    Letter(char),
    WhiteSpace,
}

impl Separator {
    /// That of the first line.
    pub(crate) fn of(line: &str) -> Self {
        [',', ';'].into_iter().find(|letter| line.contains(*letter)).map_or(Self::WhiteSpace, Self::Letter)
    }

    /// The cells without their quotes, within which nothing parts them.
    pub(crate) fn cells(self, line: &str) -> impl Iterator<Item = &str> {
        let mut quoted = false;
        let parts = line.split(move |letter: char| {
            quoted ^= letter == '"';
            !quoted
                && match self {
                    Self::Letter(separator) => letter == separator,
                    Self::WhiteSpace => letter.is_whitespace(),
                }
        });
        let counts = move |part: &&str| matches!(self, Self::Letter(_)) || !part.is_empty();
        parts.filter(counts).map(|part| {
            let part = part.trim();
            let inside = part.strip_prefix('"').and_then(|part| part.strip_suffix('"'));
            inside.map_or(part, str::trim)
        })
    }
}

impl<'a> Reader<'a> {
    /// Opens a trace, whose name in messages is `file`.
    pub(super) fn open(path: &std::path::Path, file: &'a str, of: Part, start_s: f64, end_s: f64) -> io::Result<Self> {
        let lines = Lines::open(path)?;
        Ok(Self { lines, file, of, start_s, end_s, assumes_header: false })
    }

    /// Whether there was no header line.
    pub(super) const fn assumes_header(&self) -> bool {
        self.assumes_header
    }

    /// The digest of what was read.
    pub(super) fn into_digest(self) -> String {
        self.lines.digest.finalize().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// What it has recorded; `None` if it has no line.
    pub(super) fn read(&mut self) -> Result<Option<Content>, ScenarioError> {
        let Some((number, first)) = self.next()? else { return Ok(None) };
        let first = first.to_owned();
        Ok(Some(if first.bytes().all(|letter| letter.is_ascii_digit()) {
            Content::Opportunities(self.read_mahimahi(number, &first)?)
        } else {
            Content::Rows(self.read_csv(number, &first)?)
        }))
    }

    fn next(&mut self) -> Result<Option<(u32, &str)>, ScenarioError> {
        let (file, line) = (self.file, self.lines.number + 1);
        let unreadable = |error: io::Error| {
            let problem = Problem::new(format!("cannot be read: {error}"), "lines of text");
            error_in(file, line, "the trace", problem)
        };
        self.lines.next().map_err(unreadable)
    }

    fn error(&self, line: u32, key: &str, problem: Problem) -> ScenarioError {
        error_in(self.file, line, key, problem)
    }

    fn read_mahimahi(&mut self, number: u32, first: &str) -> Result<Opportunities, ScenarioError> {
        if self.of == Part::Hosts {
            let accepted = "a CSV file; mahimahi's format with \"link\", \"path\" or \"access\"";
            let problem = "is mahimahi's format, which is the rate of a link, and no PHY rate of stations";
            return Err(self.error(1, "the trace", Problem::new(problem, accepted)));
        }
        let (file, end_ms) = (self.file, (self.end_s - self.start_s).max(0.0) * 1e3);
        let fail = |line, problem: String| error_in(file, line, "the time", Problem::new(problem, OF_MAHIMAHI));
        let milliseconds = |line: u32, text: &str| -> Result<u64, ScenarioError> {
            let whole = text.bytes().all(|letter| letter.is_ascii_digit());
            text.parse().ok().filter(|_| whole).ok_or_else(|| fail(line, format!("\"{text}\" is no whole number")))
        };
        let mut instants: Vec<(u32, u32)> = Vec::new();
        let (mut line, mut at) = (number, milliseconds(number, first)?);
        let repeats = loop {
            let instant = u32::try_from(at).unwrap_or(u32::MAX);
            match instants.last_mut() {
                Some((before, _)) if instant < *before => return Err(fail(line, format!("{at} goes back"))),
                Some((before, count)) if instant == *before => *count += 1,
                _ => instants.push((instant, 1)),
            }
            // Behind the end of the run it is not looked at.
            if at as f64 > end_ms {
                break false;
            }
            match self.next()? {
                Some((number, text)) => (line, at) = (number, milliseconds(number, text)?),
                None => break true,
            }
        };
        Opportunities::new(instants, repeats).ok_or_else(|| {
            let problem = "0 is the last time: the trace takes no time";
            self.error(line, "the time", Problem::new(problem, "a last time above 0"))
        })
    }

    fn read_csv(&mut self, first: u32, header: &str) -> Result<Rows, ScenarioError> {
        let separator = Separator::of(header);
        let named = self.columns(first, &separator.cells(header).collect::<Vec<_>>())?;
        self.assumes_header = named.is_none();
        let columns = named.unwrap_or_else(|| PLAIN.to_vec());
        let kinds: Vec<&Kind> = columns.iter().map(|column| kind(column)).collect();
        let at_s = columns.iter().position(|column| *column == key!(ChangeKeys, at_s)).expect("it is a column");
        let (file, start_s, end_s) = (self.file, self.start_s, self.end_s);
        let mut rows = Rows { columns, lines: Vec::new(), cells: Vec::new() };
        let mut before = f64::NEG_INFINITY;
        // Returns whether the run goes on behind the row.
        let mut add = |number: u32, line: &str| -> Result<bool, ScenarioError> {
            let fail = |key: &str, problem| Err(error_in(file, number, key, problem));
            let (start, columns) = (rows.cells.len(), rows.columns.len());
            let mut count = 0;
            let put = |text: &str| -> Result<(), ScenarioError> {
                if let Some(column) = rows.columns.get(count) {
                    let cell =
                        cell(column, kinds[count], text).map_err(|problem| error_in(file, number, column, problem))?;
                    rows.cells.push(cell);
                }
                count += 1;
                Ok(())
            };
            separator.cells(line).try_for_each(put)?;
            if count != columns {
                return fail("the row", Problem::new(format!("has {count} cells"), format!("{columns} cells")));
            }
            let at = rows.cells[start + at_s];
            if at.is_nan() {
                return fail(PLAIN[0], Problem::new("is not there", kinds[at_s].accepted()));
            }
            if at < before {
                return fail(PLAIN[0], Problem::new(format!("{at} goes back"), format!("{before} or later")));
            }
            before = at;
            rows.cells[start + at_s] = start_s + at;
            let in_run = start_s + at < end_s;
            if in_run {
                rows.lines.push(number);
            } else {
                rows.cells.truncate(start);
            }
            Ok(in_run)
        };
        let mut goes_on = if self.assumes_header { add(first, header)? } else { true };
        while goes_on {
            let Some((number, line)) = self.next()? else { break };
            goes_on = add(number, line)?;
        }
        if before < 0.0 {
            return Err(self.error(first, "the header", Problem::new("has no row below it", "at least one row")));
        }
        Ok(rows)
    }

    /// The columns that the first line names; `None`: it is a row of [`PLAIN`].
    fn columns(&self, first: u32, header: &[&str]) -> Result<Option<Vec<&'static str>>, ScenarioError> {
        let at_s = key!(ChangeKeys, at_s);
        let known: Vec<&'static str> = [at_s].into_iter().chain(self.of.changing()).collect();
        if header.iter().any(|cell| cell.parse::<f64>().is_ok()) {
            if header.len() == PLAIN.len() && self.of != Part::Hosts {
                return Ok(None);
            }
            let columns = if header.len() == 1 { "column" } else { "columns" };
            let problem =
                format!("no header line, and {} {columns} of a trace with of = \"{}\"", header.len(), self.of);
            let accepted = format!("a first line such as {}; of {}", PLAIN.join(","), known.join(", "));
            return Err(self.error(first, "the trace", Problem::new(problem, accepted)));
        }
        let of_header = |key: &str, problem: &str, did_you_mean: Option<&str>| {
            let did_you_mean = did_you_mean.map(str::to_owned);
            Err(self.error(first, key, Problem { did_you_mean, ..Problem::new(problem, known.join(", ")) }))
        };
        let mut columns = Vec::new();
        for name in header {
            let Some(column) = known.iter().find(|known| *known == name) else {
                let problem = format!("is no column of a trace with of = \"{}\"", self.of);
                return of_header(name, &problem, nearest(name, &known));
            };
            if columns.contains(column) {
                return of_header(column, "is a column twice", None);
            }
            columns.push(*column);
        }
        if !columns.contains(&at_s) || columns.len() < 2 {
            let missing = if columns.contains(&at_s) { "another column" } else { at_s };
            return of_header(missing, "is not there", None);
        }
        Ok(Some(columns))
    }
}

/// A cell as a number that its key takes; NaN: it is empty.
fn cell(column: &str, kind: &Kind, text: &str) -> Result<f64, Problem> {
    if text.is_empty() {
        return Ok(f64::NAN);
    }
    let number = match (kind, text) {
        (Kind::Flag, "true" | "1") => return Ok(1.0),
        (Kind::Flag, "false" | "0") => return Ok(0.0),
        (Kind::Flag, _) => return Err(Problem::new(format!("\"{text}\" is neither"), kind.accepted())),
        (_, _) => text.parse::<f64>().ok().filter(|number| !number.is_nan()),
    };
    let number = number.ok_or_else(|| Problem::new(format!("\"{text}\" is no number"), kind.accepted()))?;
    match kind {
        Kind::Number { from, to, above: false } if (*from..=*to).contains(&number) => {}
        Kind::Integer { .. } => {
            let whole = text.parse::<i64>().map_or(Value::Float(number), Value::Integer);
            kind.check(whole)?;
        }
        _ => {
            let shown = text.parse::<i64>().map_or(Value::Float(number), Value::Integer);
            kind.check(shown)?;
        }
    }
    if column.ends_with(key!(ChangeKeys, rate_mbps)) {
        check_rate_mbps(number)?;
    }
    Ok(number)
}

/// Opportunities as a text: milliseconds, and `200*10` for ten at one. One that does not repeat ends with `...`.
pub(super) fn text_of(trace: &Opportunities) -> String {
    let mut text = String::new();
    for (at, count) in trace.instants() {
        let space = if text.is_empty() { "" } else { " " };
        let _ = if *count == 1 { write!(text, "{space}{at}") } else { write!(text, "{space}{at}*{count}") };
    }
    if !trace.repeats() {
        text.push_str(" ...");
    }
    text
}

/// The reverse.
pub(super) fn opportunities_of(text: &str) -> Result<Opportunities, Problem> {
    const ACCEPTED: &str = "milliseconds in order, parted by spaces; 200*10 is ten opportunities at 200";
    let (text, repeats) = text.trim().strip_suffix("...").map_or((text, true), |text| (text, false));
    let mut instants: Vec<(u32, u32)> = Vec::new();
    for word in text.split_whitespace() {
        let (at, count) = word.split_once('*').unwrap_or((word, "1"));
        let (Ok(at), Ok(count @ 1..)) = (at.parse::<u32>(), count.parse::<u32>()) else {
            return Err(Problem::new(format!("\"{word}\" is no opportunity"), ACCEPTED));
        };
        match instants.last_mut() {
            Some((before, _)) if at < *before => return Err(Problem::new(format!("{at} goes back"), ACCEPTED)),
            Some((before, before_count)) if at == *before => *before_count = before_count.saturating_add(count),
            _ => instants.push((at, count)),
        }
    }
    let wrong = if instants.is_empty() { "has no opportunity" } else { "takes no time" };
    Opportunities::new(instants, repeats).ok_or_else(|| Problem::new(wrong, ACCEPTED))
}
