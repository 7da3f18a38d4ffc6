//! The series as Parquet: `series.parquet` (connections), `queues.parquet` (queues), `datagrams.parquet` (datagrams) and
//! `transfers.parquet` (transfers), the last two if there are any, compressed with zstd.
//!
//! Each file's metadata identify its run: `lasthop.schema_version`, `lasthop.scenario` (its name), `lasthop.seed`,
//! `lasthop.version`, `lasthop.commit`, `lasthop.run_sha256` (of scenario, hosts and goodput). A file of another run than the result is
//! refused; one of an older version has no `lasthop.run_sha256`, and is held to the others: its `lasthop.run` is not read. The columns are
//! those of [`FlowSeries`], [`QueueSeries`], [`DatagramSeries`] and [`TransferSeries`].
//!
//! The files use the column interface of the `parquet` crate. Arrow would add thirty dependencies and nothing we need.

use crate::error::ReportError;
use lasthop_scenario::{DatagramSeries, FlowSeries, QueueSeries, RunResult, SCHEMA_VERSION, Series, TransferSeries};
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The series of the connections, in the folder of a run.
pub const FLOWS_FILE: &str = "series.parquet";
/// The series of the queues, in the folder of a run.
pub const QUEUES_FILE: &str = "queues.parquet";

/// The datagrams, in the folder of a run that has any.
pub const DATAGRAMS_FILE: &str = "datagrams.parquet";

/// The transfers, in the folder of a run that has any.
pub const TRANSFERS_FILE: &str = "transfers.parquet";

const VERSION_KEY: &str = "lasthop.schema_version";

const FLOWS_SCHEMA: &str = "message flows {
    required double t_s;
    required int32 flow (integer(32, false));
    required int32 host (integer(16, false));
    required int32 cwnd_segments (integer(32, false));
    optional int32 ssthresh_segments (integer(32, false));
    optional double srtt_ms;
    optional double min_rtt_ms;
    required int32 state (integer(8, false));
    required int32 in_flight_segments (integer(32, false));
    required int64 unsent_bytes (integer(64, false));
    required int64 retransmits (integer(64, false));
    required double goodput_mbps;
    optional double pacing_mbps;
    optional int32 bound_min (integer(32, false));
    optional int32 bound_max (integer(32, false));
    optional double bound_pacing_mbps;
    optional double reported_bandwidth_mbps;
    optional double reported_error_rate;
    optional int32 cwnd_max_segments (integer(32, false));
    optional int32 ignored_losses (integer(32, false));
}";

const QUEUES_SCHEMA: &str = "message queues {
    required double t_s;
    required binary place (string);
    required int32 packets (integer(32, false));
}";

const DATAGRAMS_SCHEMA: &str = "message datagrams {
    required double t_s;
    required int32 flow (integer(32, false));
    required int32 host (integer(16, false));
    required int64 number (integer(64, false));
    required double took_ms;
}";

const TRANSFERS_SCHEMA: &str = "message transfers {
    required int32 flow (integer(32, false));
    required int32 host (integer(16, false));
    required double start_s;
    required int64 bytes (integer(64, false));
    optional double completion_s;
    optional double slowdown;
}";

/// Writes the files of a run into an existing folder.
///
/// # Errors
/// If a file cannot be written. The message names it.
pub fn write(folder: &Path, result: &RunResult, series: &Series) -> Result<(), ReportError> {
    write_file(&folder.join(FLOWS_FILE), FLOWS_SCHEMA, result, |columns| write_flows(columns, &series.flows))?;
    write_file(&folder.join(QUEUES_FILE), QUEUES_SCHEMA, result, |columns| write_queues(columns, &series.queues))?;
    let (path, datagrams) = (folder.join(DATAGRAMS_FILE), &series.datagrams);
    match datagrams.t_s.is_empty() {
        true => remove(path)?,
        false => write_file(&path, DATAGRAMS_SCHEMA, result, |columns| write_datagrams(columns, datagrams))?,
    }
    let (path, transfers) = (folder.join(TRANSFERS_FILE), &series.transfers);
    match transfers.flow.is_empty() {
        true => remove(path),
        false => write_file(&path, TRANSFERS_SCHEMA, result, |columns| write_transfers(columns, transfers)),
    }
}

/// Takes away the file of a run before.
fn remove(path: PathBuf) -> Result<(), ReportError> {
    match std::fs::remove_file(&path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(ReportError::Write { path, source }),
        _ => Ok(()),
    }
}

/// Reads the files of the run that has this result.
///
/// # Errors
/// If a file cannot be read, has another schema version, or is of another run. The message names it.
pub fn read(folder: &Path, result: &RunResult) -> Result<Series, ReportError> {
    let flows = read_file(&folder.join(FLOWS_FILE), FLOWS_SCHEMA, result, read_flows)?;
    let queues = read_file(&folder.join(QUEUES_FILE), QUEUES_SCHEMA, result, read_queues)?;
    let datagrams = read_if_there(&folder.join(DATAGRAMS_FILE), DATAGRAMS_SCHEMA, result, read_datagrams)?;
    let transfers = read_if_there(&folder.join(TRANSFERS_FILE), TRANSFERS_SCHEMA, result, read_transfers)?;
    Ok(Series { flows, queues, datagrams, transfers })
}

fn read_if_there<T: Default>(
    path: &Path,
    schema: &str,
    result: &RunResult,
    read_columns: impl FnOnce(&mut ColumnsIn) -> Result<T, ParquetError>,
) -> Result<T, ReportError> {
    if path.exists() { read_file(path, schema, result, read_columns) } else { Ok(T::default()) }
}

type Columns<'a> = SerializedRowGroupWriter<'a, File>;

fn write_file(
    path: &Path,
    schema: &str,
    result: &RunResult,
    write_columns: impl FnOnce(&mut Columns<'_>) -> Result<(), ParquetError>,
) -> Result<(), ReportError> {
    let file = File::create(path).map_err(|source| ReportError::Write { path: path.to_owned(), source })?;
    let write = || {
        let schema = Arc::new(parse_message_type(schema)?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(6)?))
            .set_key_value_metadata(Some(metadata(result)))
            .build();
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
        let mut columns = writer.next_row_group()?;
        write_columns(&mut columns)?;
        columns.close()?;
        writer.close()
    };
    write().map(|_| ()).map_err(|source| ReportError::WriteSeries { path: path.to_owned(), source })
}

fn metadata(result: &RunResult) -> Vec<KeyValue> {
    let commit = result.build.commit.as_deref().unwrap_or("unknown");
    let dirty = if result.build.dirty { "-dirty" } else { "" };
    [
        (VERSION_KEY, SCHEMA_VERSION.to_string()),
        ("lasthop.run_sha256", digest(result)),
        ("lasthop.scenario", result.name().to_owned()),
        ("lasthop.seed", result.seed.to_string()),
        ("lasthop.version", result.build.version.clone()),
        ("lasthop.commit", format!("{commit}{dirty}")),
    ]
    .map(|(key, value)| KeyValue::new(key.to_owned(), value))
    .to_vec()
}

/// SHA-256 of what tells runs of one name and seed apart, however its JSON is written.
fn digest(result: &RunResult) -> String {
    let scenario = in_one_way(&result.scenario);
    let of = format!("{scenario} {:?} {}", result.hosts_kind, result.aggregate_goodput_mbps);
    Sha256::digest(of).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 20 and 20.0 are the same number to some writers of JSON.
fn in_one_way(value: &Value) -> String {
    match value {
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string()),
        Value::Array(all) => format!("{:?}", all.iter().map(in_one_way).collect::<Vec<_>>()),
        Value::Object(all) => {
            let all: BTreeMap<_, _> = all.iter().map(|(key, value)| (key, in_one_way(value))).collect();
            format!("{all:?}")
        }
        other => other.to_string(),
    }
}

fn write_flows(columns: &mut Columns<'_>, flows: &FlowSeries) -> Result<(), ParquetError> {
    required::<DoubleType>(columns, &flows.t_s)?;
    required::<Int32Type>(columns, &signed(&flows.flow))?;
    required::<Int32Type>(columns, &flows.host.iter().copied().map(i32::from).collect::<Vec<_>>())?;
    required::<Int32Type>(columns, &signed(&flows.cwnd_segments))?;
    optional::<Int32Type>(columns, &signed_options(&flows.ssthresh_segments))?;
    optional::<DoubleType>(columns, &flows.srtt_ms)?;
    optional::<DoubleType>(columns, &flows.min_rtt_ms)?;
    required::<Int32Type>(columns, &flows.state.iter().copied().map(i32::from).collect::<Vec<_>>())?;
    required::<Int32Type>(columns, &signed(&flows.in_flight_segments))?;
    required::<Int64Type>(columns, &signed_long(&flows.unsent_bytes))?;
    required::<Int64Type>(columns, &signed_long(&flows.retransmits))?;
    required::<DoubleType>(columns, &flows.goodput_mbps)?;
    optional::<DoubleType>(columns, &flows.pacing_mbps)?;
    optional::<Int32Type>(columns, &signed_options(&flows.bound_min))?;
    optional::<Int32Type>(columns, &signed_options(&flows.bound_max))?;
    optional::<DoubleType>(columns, &flows.bound_pacing_mbps)?;
    optional::<DoubleType>(columns, &flows.reported_bandwidth_mbps)?;
    optional::<DoubleType>(columns, &flows.reported_error_rate)?;
    optional::<Int32Type>(columns, &signed_options(&flows.cwnd_max_segments))?;
    optional::<Int32Type>(columns, &signed_options(&flows.ignored_losses))
}

fn write_queues(columns: &mut Columns<'_>, queues: &QueueSeries) -> Result<(), ParquetError> {
    required::<DoubleType>(columns, &queues.t_s)?;
    let places: Vec<ByteArray> = queues.place.iter().map(|place| ByteArray::from(place.as_str())).collect();
    required::<ByteArrayType>(columns, &places)?;
    required::<Int32Type>(columns, &signed(&queues.packets))
}

fn write_datagrams(columns: &mut Columns<'_>, datagrams: &DatagramSeries) -> Result<(), ParquetError> {
    required::<DoubleType>(columns, &datagrams.t_s)?;
    required::<Int32Type>(columns, &signed(&datagrams.flow))?;
    required::<Int32Type>(columns, &datagrams.host.iter().copied().map(i32::from).collect::<Vec<_>>())?;
    required::<Int64Type>(columns, &signed_long(&datagrams.number))?;
    required::<DoubleType>(columns, &datagrams.took_ms)
}

fn write_transfers(columns: &mut Columns<'_>, transfers: &TransferSeries) -> Result<(), ParquetError> {
    required::<Int32Type>(columns, &signed(&transfers.flow))?;
    required::<Int32Type>(columns, &transfers.host.iter().copied().map(i32::from).collect::<Vec<_>>())?;
    required::<DoubleType>(columns, &transfers.start_s)?;
    required::<Int64Type>(columns, &signed_long(&transfers.bytes))?;
    optional::<DoubleType>(columns, &transfers.completion_s)?;
    optional::<DoubleType>(columns, &transfers.slowdown)
}

fn required<T: DataType>(columns: &mut Columns<'_>, values: &[T::T]) -> Result<(), ParquetError> {
    let mut column = columns.next_column()?.expect("the schema has a column for each that is written");
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

fn optional<T: DataType>(columns: &mut Columns<'_>, values: &[Option<T::T>]) -> Result<(), ParquetError> {
    let present: Vec<T::T> = values.iter().flatten().cloned().collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let mut column = columns.next_column()?.expect("the schema has a column for each that is written");
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    column.close()
}

/// Parquet stores unsigned integers as signed ones with the same bits.
fn signed(values: &[u32]) -> Vec<i32> {
    values.iter().map(|value| value.cast_signed()).collect()
}

fn signed_long(values: &[u64]) -> Vec<i64> {
    values.iter().map(|value| value.cast_signed()).collect()
}

fn signed_options(values: &[Option<u32>]) -> Vec<Option<i32>> {
    values.iter().map(|value| value.map(u32::cast_signed)).collect()
}

/// The columns of a file, read in order.
struct ColumnsIn {
    file: SerializedFileReader<File>,
    next: usize,
}

impl ColumnsIn {
    fn required<T: DataType>(&mut self) -> Result<Vec<T::T>, ParquetError> {
        let column = self.next;
        self.next += 1;
        let mut values = Vec::new();
        for group in 0..self.file.num_row_groups() {
            let group = self.file.get_row_group(group)?;
            let rows = group_rows(group.metadata().num_rows())?;
            let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
            reader.read_records(rows, None, None, &mut values)?;
        }
        Ok(values)
    }

    fn optional<T: DataType>(&mut self) -> Result<Vec<Option<T::T>>, ParquetError> {
        let column = self.next;
        self.next += 1;
        let mut whole = Vec::new();
        for group in 0..self.file.num_row_groups() {
            let group = self.file.get_row_group(group)?;
            let rows = group_rows(group.metadata().num_rows())?;
            let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
            let (mut values, mut levels) = (Vec::new(), Vec::new());
            reader.read_records(rows, Some(&mut levels), None, &mut values)?;
            let mut values = values.into_iter();
            whole.extend(levels.iter().map(|level| if *level > 0 { values.next() } else { None }));
        }
        Ok(whole)
    }

    fn unsigned(&mut self) -> Result<Vec<u32>, ParquetError> {
        Ok(self.required::<Int32Type>()?.into_iter().map(i32::cast_unsigned).collect())
    }

    fn unsigned_options(&mut self) -> Result<Vec<Option<u32>>, ParquetError> {
        Ok(self.optional::<Int32Type>()?.into_iter().map(|value| value.map(i32::cast_unsigned)).collect())
    }

    fn unsigned_long(&mut self) -> Result<Vec<u64>, ParquetError> {
        Ok(self.required::<Int64Type>()?.into_iter().map(i64::cast_unsigned).collect())
    }

    fn narrow<T: TryFrom<i32>>(&mut self, what: &str) -> Result<Vec<T>, ParquetError> {
        let narrow =
            |value: i32| T::try_from(value).map_err(|_| ParquetError::General(format!("{value} is no {what}")));
        self.required::<Int32Type>()?.into_iter().map(narrow).collect()
    }
}

fn group_rows(rows: i64) -> Result<usize, ParquetError> {
    usize::try_from(rows).map_err(|_| ParquetError::General(format!("{rows} rows")))
}

fn read_file<T>(
    path: &Path,
    schema: &str,
    result: &RunResult,
    read_columns: impl FnOnce(&mut ColumnsIn) -> Result<T, ParquetError>,
) -> Result<T, ReportError> {
    let fail = |source| ReportError::ReadSeries { path: path.to_owned(), source };
    let file =
        lasthop_files::open_to_read(path).map_err(|source| ReportError::Read { path: path.to_owned(), source })?;
    let file = SerializedFileReader::new(file).map_err(fail)?;
    let metadata = file.metadata().file_metadata();
    let said = |key: &str| {
        let pair = metadata.key_value_metadata()?.iter().find(|pair| pair.key == key)?;
        pair.value.clone()
    };
    let version = said(VERSION_KEY).unwrap_or_else(|| "none".into());
    if version != SCHEMA_VERSION.to_string() {
        let message = format!("{VERSION_KEY} {version} is not known here; accepted: {SCHEMA_VERSION}");
        return Err(ReportError::Series { path: path.to_owned(), message });
    }
    let columns = |schema: &parquet::schema::types::Type| -> Vec<String> {
        schema.get_fields().iter().map(|field| field.name().to_owned()).collect()
    };
    let (found, expected) = (columns(metadata.schema()), columns(&parse_message_type(schema).map_err(fail)?));
    if found != expected {
        let message = format!("it has the columns {}; accepted: {}", found.join(", "), expected.join(", "));
        return Err(ReportError::Series { path: path.to_owned(), message });
    }
    for KeyValue { key, value } in self::metadata(result) {
        let (Some(found), Some(of_result)) = (said(&key), value) else { continue };
        if found != of_result {
            let message = format!(
                "it is of another run than the result: {key} is {found}, not {of_result}; accepted: a result in a folder with its own \
                 series, or without any"
            );
            return Err(ReportError::Series { path: path.to_owned(), message });
        }
    }
    read_columns(&mut ColumnsIn { file, next: 0 }).map_err(fail)
}

fn read_flows(columns: &mut ColumnsIn) -> Result<FlowSeries, ParquetError> {
    Ok(FlowSeries {
        t_s: columns.required::<DoubleType>()?,
        flow: columns.unsigned()?,
        host: columns.narrow("host")?,
        cwnd_segments: columns.unsigned()?,
        ssthresh_segments: columns.unsigned_options()?,
        srtt_ms: columns.optional::<DoubleType>()?,
        min_rtt_ms: columns.optional::<DoubleType>()?,
        state: columns.narrow("state")?,
        in_flight_segments: columns.unsigned()?,
        unsent_bytes: columns.unsigned_long()?,
        retransmits: columns.unsigned_long()?,
        goodput_mbps: columns.required::<DoubleType>()?,
        pacing_mbps: columns.optional::<DoubleType>()?,
        bound_min: columns.unsigned_options()?,
        bound_max: columns.unsigned_options()?,
        bound_pacing_mbps: columns.optional::<DoubleType>()?,
        reported_bandwidth_mbps: columns.optional::<DoubleType>()?,
        reported_error_rate: columns.optional::<DoubleType>()?,
        cwnd_max_segments: columns.unsigned_options()?,
        ignored_losses: columns.unsigned_options()?,
    })
}

fn read_queues(columns: &mut ColumnsIn) -> Result<QueueSeries, ParquetError> {
    let t_s = columns.required::<DoubleType>()?;
    let text = |bytes: ByteArray| Ok(bytes.as_utf8()?.to_owned());
    let place = columns.required::<ByteArrayType>()?.into_iter().map(text).collect::<Result<_, ParquetError>>()?;
    Ok(QueueSeries { t_s, place, packets: columns.unsigned()? })
}

fn read_datagrams(columns: &mut ColumnsIn) -> Result<DatagramSeries, ParquetError> {
    Ok(DatagramSeries {
        t_s: columns.required::<DoubleType>()?,
        flow: columns.unsigned()?,
        host: columns.narrow("host")?,
        number: columns.unsigned_long()?,
        took_ms: columns.required::<DoubleType>()?,
    })
}

fn read_transfers(columns: &mut ColumnsIn) -> Result<TransferSeries, ParquetError> {
    Ok(TransferSeries {
        flow: columns.unsigned()?,
        host: columns.narrow("host")?,
        start_s: columns.required::<DoubleType>()?,
        bytes: columns.unsigned_long()?,
        completion_s: columns.optional::<DoubleType>()?,
        slowdown: columns.optional::<DoubleType>()?,
    })
}
