//! Tables of results in the memory layout of Arrow, tidy: one row an item, one column a quantity, its unit in its name.
//!
//! The columns of connections, hosts and runs are those of an example of a result, flattened: `rtt_ms.p95` becomes
//! `rtt_ms_p95`. A new number in `result.json` is a new column by itself.

use crate::errors;
use crate::outcome::{Document, Outcome, Run, of_level};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, PrimitiveArray, RecordBatch, RecordBatchIterator,
    RecordBatchReader, StringArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, ffi::FFI_ArrowSchema};
use lasthop_measure::spread;
use lasthop_scenario::{FlowSeries, HostPolicyResult, QueueSeries, RunResult, StationResult, TransferSeries};
use lasthop_study::{range_of, whole_result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use toml::Value;

/// The tables of a result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Flows,
    Hosts,
    Runs,
    Summary,
    Series,
    Queues,
    Completions,
}

/// One column of a table that is made of JSON.
#[derive(Clone)]
struct Column {
    name: String,
    kind: DataType,
}

type Row = BTreeMap<String, Json>;

/// A table in Arrow's memory layout.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub(crate) struct Table {
    document: Arc<Document>,
    which: Which,
    columns: Vec<Column>,
    schema: SchemaRef,
}

impl Table {
    pub(crate) fn new(document: Arc<Document>, which: Which) -> Self {
        let columns = match which {
            Which::Series | Which::Queues | Which::Completions => Vec::new(),
            Which::Flows => columns(&document, &FLOW_COLUMNS),
            Which::Hosts => columns(&document, &HOST_COLUMNS),
            Which::Runs => columns(&document, &RUN_COLUMNS),
            Which::Summary => {
                columns(&document, &SUMMARY_COLUMNS).into_iter().filter(|column| column.name != "seed").collect()
            }
        };
        let field = |column: &Column| Field::new(&column.name, column.kind.clone(), true);
        let schema = match which {
            Which::Series => flow_batch("", 0, &FlowSeries::default()).expect("columns of equal length").schema(),
            Which::Queues => queue_batch("", 0, &QueueSeries::default()).expect("columns of equal length").schema(),
            Which::Completions => {
                transfer_batch("", 0, &TransferSeries::default()).expect("columns of equal length").schema()
            }
            _ => Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>())),
        };
        Self { document, which, columns, schema }
    }

    /// Series are large: a batch for each run, made when it is asked for.
    fn batches(&self) -> usize {
        if matches!(self.which, Which::Series | Which::Queues | Which::Completions) {
            self.document.sampled().len()
        } else {
            1
        }
    }

    fn batch(&self, index: usize) -> Result<RecordBatch, ArrowError> {
        let sampled = || self.document.sampled()[index];
        let runs = || self.document.runs();
        let rows: Vec<Row> = match self.which {
            Which::Series => {
                let (case, seed, series) = sampled();
                return flow_batch(case, seed, &series.flows);
            }
            Which::Queues => {
                let (case, seed, series) = sampled();
                return queue_batch(case, seed, &series.queues);
            }
            Which::Completions => {
                let (case, seed, series) = sampled();
                return transfer_batch(case, seed, &series.transfers);
            }
            Which::Flows => runs().iter().flat_map(flow_rows).collect(),
            Which::Hosts => runs().iter().flat_map(host_rows).collect(),
            Which::Runs => runs().iter().map(run_row).collect(),
            Which::Summary => summary_rows(&self.document, &runs()),
        };
        let arrays = self.columns.iter().map(|column| array(column, &rows));
        RecordBatch::try_new(Arc::clone(&self.schema), arrays.collect())
    }

    fn reader(&self) -> impl RecordBatchReader + Send + 'static {
        let table = Self {
            document: Arc::clone(&self.document),
            columns: self.columns.clone(),
            schema: Arc::clone(&self.schema),
            ..*self
        };
        let schema = Arc::clone(&self.schema);
        RecordBatchIterator::new((0..self.batches()).map(move |index| table.batch(index)), schema)
    }

    fn all(&self, py: Python<'_>) -> PyResult<Vec<RecordBatch>> {
        let read = py.detach(|| self.reader().collect::<Result<Vec<_>, _>>());
        read.map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

#[pymethods]
impl Table {
    /// The stream of Arrow's PyCapsule interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore it: this one has one schema.
        let _ = requested_schema;
        let stream = FFI_ArrowArrayStream::new(Box::new(self.reader()));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The schema of Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema =
            FFI_ArrowSchema::try_from(&*self.schema).map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let runs = self.document.runs();
        let series = || self.document.sampled().into_iter().map(|(_, _, series)| series);
        Ok(match self.which {
            Which::Runs => runs.len(),
            Which::Flows => runs.iter().map(|run| run.result.flows.len()).sum(),
            Which::Series => series().map(|series| series.flows.len()).sum(),
            Which::Queues => series().map(|series| series.queues.len()).sum(),
            Which::Completions => series().map(|series| series.transfers.flow.len()).sum(),
            Which::Hosts | Which::Summary => self.all(py)?.iter().map(RecordBatch::num_rows).sum(),
        })
    }

    /// A column as a list.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let unknown = || {
            let known = self.column_names().join(", ");
            errors::column(format!("there is no column {name}; accepted: {known}"))
        };
        let index = name.extract::<String>().ok().and_then(|name| self.schema.index_of(&name).ok());
        let index = index.ok_or_else(unknown)?;
        let list = PyList::empty(py);
        for batch in self.all(py)? {
            extend(&list, batch.column(index))?;
        }
        Ok(list)
    }

    /// The rows, each a dict of its columns.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let names = self.column_names();
        let rows = PyList::empty(py);
        for batch in self.all(py)? {
            let columns: Vec<Bound<'py, PyList>> = names.iter().map(|_| PyList::empty(py)).collect();
            columns.iter().zip(batch.columns()).try_for_each(|(list, column)| extend(list, column))?;
            for place in 0..batch.num_rows() {
                let row = PyDict::new(py);
                names
                    .iter()
                    .zip(&columns)
                    .try_for_each(|(name, column)| row.set_item(name, column.get_item(place)?))?;
                rows.append(row)?;
            }
        }
        rows.try_iter()
    }

    /// Whose table this is, and its name there: for copies in other processes.
    fn _outcome(&self) -> Outcome {
        Outcome::of(&self.document)
    }

    fn _name(&self) -> &'static str {
        match self.which {
            Which::Flows => "flows",
            Which::Hosts => "hosts",
            Which::Runs => "runs",
            Which::Summary => "summary",
            Which::Series => "series",
            Which::Queues => "queues",
            Which::Completions => "completions",
        }
    }

    /// All columns as lists, by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let lists: Vec<Bound<'py, PyList>> = self.schema.fields().iter().map(|_| PyList::empty(py)).collect();
        for batch in self.all(py)? {
            lists.iter().zip(batch.columns()).try_for_each(|(list, column)| extend(list, column))?;
        }
        let table = PyDict::new(py);
        self.column_names().into_iter().zip(lists).try_for_each(|(name, list)| table.set_item(name, list))?;
        Ok(table)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (rows, names) = (self.__len__(py)?, self.column_names());
        Ok(format!("<lasthop.Table of {rows} rows: {}>", names.join(", ")))
    }
}

/// Appends the values of a column to a list.
fn extend(list: &Bound<'_, PyList>, column: &ArrayRef) -> PyResult<()> {
    fn all<'a, T: IntoPyObject<'a>>(list: &Bound<'a, PyList>, values: impl Iterator<Item = Option<T>>) -> PyResult<()> {
        values.into_iter().try_for_each(|value| list.append(value))
    }
    let any = column.as_any();
    if let Some(text) = any.downcast_ref::<StringArray>() {
        return all(list, text.iter());
    }
    if let Some(flags) = any.downcast_ref::<BooleanArray>() {
        return all(list, flags.iter());
    }
    macro_rules! numbers {
        ($($kind:ty),*) => {
            $(if let Some(numbers) = any.downcast_ref::<PrimitiveArray<$kind>>() {
                return all(list, numbers.iter());
            })*
        };
    }
    numbers!(Float64Type, Int64Type, UInt64Type, UInt32Type, UInt16Type, UInt8Type);
    unreachable!("no table has a column of {}", column.data_type())
}

/// The columns of connections.
static FLOW_COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let run = whole_result();
    let first = [text("name"), count("block"), count("flow"), count("host"), text("kind"), text("direction")];
    with_others(first, flow(&run.flows[0]))
});

/// The columns of hosts.
static HOST_COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let run = whole_result();
    let first = [
        text("name"),
        count("block"),
        count("host"),
        text("era"),
        text("congestion_control"),
        text("policy"),
        count("flows"),
        float("goodput_mbps"),
        count("retransmits"),
    ];
    with_others(first, parts_of_host(run.access.stations.first(), run.policies.hosts.first()))
});

/// The columns of runs.
static RUN_COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| with_others([], run_numbers(&whole_result())));

/// The columns of summaries.
static SUMMARY_COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let figures = ["mean", "min", "max", "deviation", "ci95_low", "ci95_high"].map(float);
    [text("measure"), count("runs")].into_iter().chain(figures).collect()
});

fn text(name: &str) -> Column {
    Column { name: name.to_owned(), kind: DataType::Utf8 }
}

fn count(name: &str) -> Column {
    Column { name: name.to_owned(), kind: DataType::UInt64 }
}

fn float(name: &str) -> Column {
    Column { name: name.to_owned(), kind: DataType::Float64 }
}

/// These columns, then those of an example's other values, by name.
fn with_others(first: impl IntoIterator<Item = Column>, example: Row) -> Vec<Column> {
    let mut columns: Vec<Column> = first.into_iter().collect();
    for (name, value) in example {
        if columns.iter().any(|column| column.name == name) {
            continue;
        }
        let kind = match value {
            Json::Bool(_) => DataType::Boolean,
            Json::Number(number) if number.is_f64() => DataType::Float64,
            Json::Number(_) => DataType::UInt64,
            _ => DataType::Utf8,
        };
        columns.push(Column { name, kind });
    }
    columns
}

/// Case, seed and settings in front of these columns.
fn columns(document: &Document, others: &[Column]) -> Vec<Column> {
    let mut columns = vec![text("case"), count("seed")];
    let mut settings: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for (key, value) in all_settings(document) {
        if !settings.contains_key(&key) {
            order.push(key.clone());
        }
        settings.entry(key).or_default().push(value);
    }
    for key in order {
        let kind = kind_of(&settings[&key]);
        columns.push(Column { name: setting_name(&key), kind });
    }
    columns.extend(others.iter().cloned());
    columns
}

fn all_settings(document: &Document) -> Vec<(String, Value)> {
    match document {
        Document::Study { result, .. } => {
            let at = result.points.iter().flat_map(|point| &point.at);
            at.map(|at| (at.axis.clone(), of_level(&at.value))).collect()
        }
        _ => document.runs().into_iter().flat_map(|run| run.settings).collect(),
    }
}

/// The column of a varied key or an axis: its name, or `set_NAME` if a table may have such a column of its own.
fn setting_name(key: &str) -> String {
    let own = |columns: &[Column]| columns.iter().any(|column| column.name == key);
    let taken = ["case", "seed"].contains(&key)
        || [&FLOW_COLUMNS, &HOST_COLUMNS, &RUN_COLUMNS, &SUMMARY_COLUMNS].iter().any(|columns| own(columns));
    if taken { format!("set_{key}") } else { key.to_owned() }
}

fn kind_of(values: &[Value]) -> DataType {
    let all = |is: fn(&Value) -> bool| values.iter().all(is);
    if all(Value::is_bool) {
        DataType::Boolean
    } else if all(Value::is_integer) {
        DataType::Int64
    } else if all(|value| value.is_integer() || value.is_float()) {
        DataType::Float64
    } else {
        DataType::Utf8
    }
}

/// The values of one column. A value of another kind, as text has in a column of mixed ones, is written as text.
fn array(column: &Column, rows: &[Row]) -> ArrayRef {
    let cells = rows.iter().map(|row| row.get(&column.name).filter(|value| !value.is_null()));
    match column.kind {
        DataType::Boolean => Arc::new(cells.map(|cell| cell?.as_bool()).collect::<BooleanArray>()),
        DataType::Float64 => Arc::new(cells.map(|cell| cell?.as_f64()).collect::<Float64Array>()),
        DataType::Int64 => Arc::new(cells.map(|cell| cell?.as_i64()).collect::<Int64Array>()),
        DataType::UInt64 => Arc::new(cells.map(|cell| cell?.as_u64()).collect::<UInt64Array>()),
        _ => {
            let words = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Arc::new(cells.map(|cell| cell.map(words)).collect::<StringArray>())
        }
    }
}

/// A value of JSON, flattened: `{"rtt_ms": {"p95": 4.0}}` becomes `rtt_ms_p95`. Leaves out lists.
fn flat(value: Json) -> Row {
    fn into(row: &mut Row, name: String, value: Json) {
        match value {
            Json::Object(parts) => {
                for (part, value) in parts {
                    into(row, if name.is_empty() { part } else { format!("{name}_{part}") }, value);
                }
            }
            Json::Array(_) => {}
            other => {
                row.insert(name, other);
            }
        }
    }
    let mut row = Row::new();
    into(&mut row, String::new(), value);
    row
}

fn plain(value: &impl serde::Serialize) -> Json {
    serde_json::to_value(value).expect("results are plain data")
}

/// Case, seed and settings of a run.
fn places(run: &Run<'_>) -> Row {
    let mut row = settings_row(run.settings.iter().cloned());
    row.insert("case".into(), run.case.into());
    row.insert("seed".into(), run.result.seed.into());
    row
}

fn settings_row(settings: impl Iterator<Item = (String, Value)>) -> Row {
    settings.map(|(key, value)| (setting_name(&key), plain(&value))).collect()
}

/// The host's name, or else that of its queue in the series.
fn host_name(run: &RunResult, host: u16) -> String {
    run.host_name(host).unwrap_or_else(|| format!("host_{host}"))
}

/// The `[[hosts]]` block of each host, with its index.
fn blocks(run: &RunResult) -> Vec<(usize, &Map<String, Json>)> {
    let blocks = run.scenario["hosts"].as_array().into_iter().flatten().filter_map(Json::as_object).enumerate();
    let count = |block: &Map<String, Json>| block.get("count").and_then(Json::as_u64).unwrap_or(1) as usize;
    blocks.flat_map(|block| std::iter::repeat_n(block, count(block.1))).collect()
}

fn flow(flow: &lasthop_scenario::FlowResult) -> Row {
    let mut row = flat(plain(flow));
    if let Some(id) = row.remove("id") {
        row.insert("flow".into(), id);
    }
    row
}

fn flow_rows(run: &Run<'_>) -> Vec<Row> {
    let (places, blocks) = (places(run), blocks(run.result));
    let row = |of: &lasthop_scenario::FlowResult| {
        let mut row = places.clone();
        row.append(&mut flow(of));
        row.insert("name".into(), host_name(run.result, of.host).into());
        row.extend(blocks.get(usize::from(of.host)).map(|(block, _)| ("block".to_owned(), json!(block))));
        row
    };
    run.result.flows.iter().map(row).collect()
}

fn parts_of_host(station: Option<&StationResult>, policy: Option<&HostPolicyResult>) -> Row {
    let mut row = station.map(|station| flat(plain(station))).unwrap_or_default();
    row.extend(policy.map(|policy| flat(plain(policy))).unwrap_or_default());
    row
}

fn host_rows(run: &Run<'_>) -> Vec<Row> {
    let (places, result) = (places(run), run.result);
    let row = |(host, (block, keys)): (usize, (usize, &Map<String, Json>))| {
        let station = result.access.stations.iter().find(|station| usize::from(station.host) == host);
        let policy = result.policies.hosts.iter().find(|policy| usize::from(policy.host) == host);
        let flows: Vec<_> = result.flows.iter().filter(|flow| usize::from(flow.host) == host).collect();
        let mut row = places.clone();
        row.append(&mut parts_of_host(station, policy));
        for key in ["era", "congestion_control", "policy"] {
            row.extend(keys.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        row.insert("host".into(), host.into());
        row.insert("name".into(), host_name(result, host as u16).into());
        row.insert("block".into(), block.into());
        row.insert("flows".into(), flows.len().into());
        row.insert("goodput_mbps".into(), flows.iter().map(|flow| flow.goodput_mbps).sum::<f64>().into());
        row.insert("retransmits".into(), flows.iter().map(|flow| flow.retransmits).sum::<u64>().into());
        row
    };
    blocks(result).into_iter().enumerate().map(row).collect()
}

/// Every number of a result that is not in a list, nor in its scenario.
fn run_numbers(run: &RunResult) -> Row {
    let mut value = plain(&RunResult { scenario: Json::Null, flows: Vec::new(), links: Vec::new(), ..run.clone() });
    if let Some(parts) = value.as_object_mut() {
        ["scenario", "schema_version", "seed"].iter().for_each(|key| {
            parts.remove(*key);
        });
    }
    flat(value)
}

fn run_row(run: &Run<'_>) -> Row {
    let mut row = places(run);
    row.append(&mut run_numbers(run.result));
    row
}

/// Each number of [`run_numbers`] over the runs of each case; of a study, each of its measures at each point.
fn summary_rows(document: &Document, runs: &[Run<'_>]) -> Vec<Row> {
    if let Document::Study { result, .. } = document {
        let rows = result.points.iter().flat_map(|point| {
            let mut settings = settings_row(point.at.iter().map(|at| (at.axis.clone(), of_level(&at.value))));
            let case: Vec<String> = point.at.iter().map(ToString::to_string).collect();
            settings.insert("case".into(), case.join(", ").into());
            point.measures.iter().map(move |measure| {
                let values: Vec<f64> = measure.values.iter().flatten().copied().collect();
                summary_row(settings.clone(), &measure.measure, &values)
            })
        });
        return rows.collect();
    }
    // What the wall clock says is no measure of a case.
    let is_measure = |column: &&Column| column.kind.is_numeric() && !column.name.contains("wall_s");
    let numbers = RUN_COLUMNS.iter().filter(is_measure);
    let numbers: Vec<&str> = numbers.map(|column| column.name.as_str()).collect();
    let mut rows = Vec::new();
    for of_case in runs.chunk_by(|one, other| one.case == other.case) {
        let all: Vec<Row> = of_case.iter().map(|run| run_numbers(run.result)).collect();
        let settings = places(&of_case[0]);
        for name in &numbers {
            let values: Vec<f64> = all.iter().filter_map(|row| row.get(*name)?.as_f64()).collect();
            if !values.is_empty() {
                rows.push(summary_row(settings.clone(), name, &values));
            }
        }
    }
    rows
}

fn summary_row(mut row: Row, measure: &str, values: &[f64]) -> Row {
    row.insert("measure".into(), measure.into());
    row.insert("runs".into(), values.len().into());
    if let Some(over) = spread(values.iter().copied(), range_of(measure)) {
        row.extend(
            [("mean", over.mean), ("min", over.min), ("max", over.max)].map(|(name, of)| (name.into(), json!(of))),
        );
        row.insert("deviation".into(), json!(over.deviation));
        row.extend(over.ci95.map(|ends| ("ci95_low".into(), json!(ends.low))));
        row.extend(over.ci95.map(|ends| ("ci95_high".into(), json!(ends.high))));
    }
    row
}

/// The columns of [`FlowSeries`].
fn flow_batch(case: &str, seed: u64, flows: &FlowSeries) -> Result<RecordBatch, ArrowError> {
    let n = flows.len();
    RecordBatch::try_from_iter_with_nullable([
        ("case", repeated(case, n), true),
        ("seed", Arc::new(UInt64Array::from(vec![seed; n])) as ArrayRef, true),
        ("t_s", Arc::new(Float64Array::from(flows.t_s.clone())), true),
        ("flow", Arc::new(UInt32Array::from(flows.flow.clone())), true),
        ("host", Arc::new(UInt16Array::from(flows.host.clone())), true),
        ("cwnd_segments", Arc::new(UInt32Array::from(flows.cwnd_segments.clone())), true),
        ("ssthresh_segments", Arc::new(UInt32Array::from(flows.ssthresh_segments.clone())), true),
        ("srtt_ms", Arc::new(Float64Array::from(flows.srtt_ms.clone())), true),
        ("min_rtt_ms", Arc::new(Float64Array::from(flows.min_rtt_ms.clone())), true),
        ("state", Arc::new(UInt8Array::from(flows.state.clone())), true),
        ("in_flight_segments", Arc::new(UInt32Array::from(flows.in_flight_segments.clone())), true),
        ("unsent_bytes", Arc::new(UInt64Array::from(flows.unsent_bytes.clone())), true),
        ("retransmits", Arc::new(UInt64Array::from(flows.retransmits.clone())), true),
        ("goodput_mbps", Arc::new(Float64Array::from(flows.goodput_mbps.clone())), true),
        ("pacing_mbps", Arc::new(Float64Array::from(flows.pacing_mbps.clone())), true),
        ("bound_min", Arc::new(UInt32Array::from(flows.bound_min.clone())), true),
        ("bound_max", Arc::new(UInt32Array::from(flows.bound_max.clone())), true),
        ("bound_pacing_mbps", Arc::new(Float64Array::from(flows.bound_pacing_mbps.clone())), true),
        ("reported_bandwidth_mbps", Arc::new(Float64Array::from(flows.reported_bandwidth_mbps.clone())), true),
        ("reported_error_rate", Arc::new(Float64Array::from(flows.reported_error_rate.clone())), true),
        ("cwnd_max_segments", Arc::new(UInt32Array::from(flows.cwnd_max_segments.clone())), true),
        ("ignored_losses", Arc::new(UInt32Array::from(flows.ignored_losses.clone())), true),
    ])
}

/// The columns of [`TransferSeries`].
fn transfer_batch(case: &str, seed: u64, transfers: &TransferSeries) -> Result<RecordBatch, ArrowError> {
    let n = transfers.flow.len();
    RecordBatch::try_from_iter_with_nullable([
        ("case", repeated(case, n), true),
        ("seed", Arc::new(UInt64Array::from(vec![seed; n])) as ArrayRef, true),
        ("flow", Arc::new(UInt32Array::from(transfers.flow.clone())), true),
        ("host", Arc::new(UInt16Array::from(transfers.host.clone())), true),
        ("start_s", Arc::new(Float64Array::from(transfers.start_s.clone())), true),
        ("bytes", Arc::new(UInt64Array::from(transfers.bytes.clone())), true),
        ("completion_s", Arc::new(Float64Array::from(transfers.completion_s.clone())), true),
        ("slowdown", Arc::new(Float64Array::from(transfers.slowdown.clone())), true),
    ])
}

/// The columns of [`QueueSeries`].
fn queue_batch(case: &str, seed: u64, queues: &QueueSeries) -> Result<RecordBatch, ArrowError> {
    let n = queues.len();
    RecordBatch::try_from_iter_with_nullable([
        ("case", repeated(case, n), true),
        ("seed", Arc::new(UInt64Array::from(vec![seed; n])) as ArrayRef, true),
        ("t_s", Arc::new(Float64Array::from(queues.t_s.clone())), true),
        ("place", Arc::new(StringArray::from_iter_values(&queues.place)), true),
        ("packets", Arc::new(UInt32Array::from(queues.packets.clone())), true),
    ])
}

fn repeated(text: &str, n: usize) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, n)))
}
