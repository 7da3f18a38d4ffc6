//! CSV (RFC 4180): flows, and the series.

use super::{ExportError, wanted};
use csv::Writer;
use lasthop_scenario::{FlowResult, Pieces, QueueSample, RunResult, Series, Transport};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The columns of flows that come first.
const FIRST: [&str; 4] = ["id", "host", "direction", "kind"];

/// The columns that flows of datagrams do not have begin so.
const OF_CONNECTIONS: [&str; 2] = ["retransmits", "timeouts"];

/// The names of all files that [`tables`] may give.
pub const TABLES: [&str; 5] = ["flows.csv", "series.csv", "queues.csv", "datagrams.csv", "transfers.csv"];

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its text, with a line of column names.
    pub text: String,
}

/// The flows of a run, then its series: of connections, queues, datagrams and transfers, as far as there are any.
///
/// Columns of flows are the keys of `flows` in `result.json`, with `_` between a key and one inside it: `rtt_ms_p95`.
/// Columns of series are those of the Parquet files. What is not there is an empty field, and so is what flows of
/// datagrams do not have: retransmissions, timeouts and states, and of pings a goodput.
///
/// # Errors
/// If the run has no flow of one of these numbers.
pub fn tables(result: &RunResult, series: &Series, numbers: Option<&[u32]>) -> Result<Vec<Table>, ExportError> {
    let wanted = wanted(result, numbers)?;
    let is_wanted = |flow: u32| wanted.iter().any(|wanted| wanted.id == flow);
    let connections = (0..series.flows.len()).map(|row| series.flows.row(row)).filter(|row| is_wanted(row.flow));
    let queues = (0..series.queues.len()).map(|row| QueueSample {
        t_s: series.queues.t_s[row],
        place: series.queues.place[row].clone(),
        packets: series.queues.packets[row],
    });
    let datagrams = series.datagrams.rows().filter(|row| is_wanted(row.flow));
    let transfers = series.transfers.rows().filter(|row| is_wanted(row.flow));
    let texts = [flows(&wanted), rows(connections), rows(queues), rows(datagrams), rows(transfers)];
    let tables = TABLES.into_iter().zip(texts).map(|(name, text)| Table { name, text });
    Ok(tables.filter(|table| !table.text.is_empty()).collect())
}

fn rows(rows: impl Iterator<Item = impl Serialize>) -> String {
    let mut writer = Writer::from_writer(Vec::new());
    rows.for_each(|row| writer.serialize(row).expect("memory takes rows of plain data"));
    text(writer)
}

fn flows(flows: &[&FlowResult]) -> String {
    let row = |flow: &&FlowResult| {
        let mut row = BTreeMap::new();
        flatten("", &serde_json::to_value(flow).expect("a result is plain data"), &mut row);
        let is_ping = flow.pieces() == Pieces::Pings;
        row.retain(|column, _| {
            !(flow.transport() == Transport::Udp && OF_CONNECTIONS.iter().any(|of| column.starts_with(of)))
        });
        row.retain(|column, _| !(is_ping && column == "goodput_mbps"));
        row
    };
    let rows: Vec<BTreeMap<String, String>> = flows.iter().map(row).collect();
    let others: BTreeSet<&String> = rows.iter().flat_map(BTreeMap::keys).collect();
    let others = others.into_iter().map(String::as_str).filter(|column| !FIRST.contains(column));
    let columns: Vec<&str> = FIRST.into_iter().chain(others).collect();
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(&columns).expect("memory takes a record");
    for row in &rows {
        let fields = columns.iter().map(|column| row.get(*column).map_or("", String::as_str));
        writer.write_record(fields).expect("memory takes records of equal length");
    }
    text(writer)
}

fn flatten(name: &str, value: &Value, row: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(inside) => {
            for (key, value) in inside {
                flatten(&if name.is_empty() { key.clone() } else { format!("{name}_{key}") }, value, row);
            }
        }
        Value::Null => {}
        Value::String(text) => _ = row.insert(name.to_owned(), text.clone()),
        other => _ = row.insert(name.to_owned(), other.to_string()),
    }
}

fn text(writer: Writer<Vec<u8>>) -> String {
    String::from_utf8(writer.into_inner().expect("memory takes all")).expect("what was written is text")
}
