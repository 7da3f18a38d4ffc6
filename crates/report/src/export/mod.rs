//! A run in the formats of other tools: CSV, flent's data file, and the JSON of iperf3.
//!
//! A flow is shown with what was measured of it, or it is left out by name ([`Written::left_out`]). A format that shows no
//! flow of a run is refused ([`ExportError`]).
//!
//! *What it leaves out*: what these formats have no place for, such as queues in flent's file. What lasthop has not
//! measured is absent, or null where a reader fails without it.

mod csv;
mod flent;
mod iperf3;

pub use csv::{TABLES, Table, tables};
pub use flent::{flent, gzip, is_export};
pub use iperf3::iperf3;

use lasthop_scenario::{FlowResult, RunResult, Transport};
use serde_json::Value;

/// A run in another format.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The file, as JSON.
    pub document: Value,
    /// Each flow that is not in it, with the reason, in words.
    pub left_out: Vec<String>,
}

/// Why a run is not written in a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// No flow of the run can be shown, or one that was asked for cannot.
    #[error("{} cannot be shown in the format of {format}: {}; accepted: {accepted}; --format csv has all", counted(.flows), .flows.join("; "))]
    Flows {
        /// The program whose format it is.
        format: &'static str,
        /// Each flow that cannot be shown, with the reason.
        flows: Vec<String>,
        /// The kinds that the format shows.
        accepted: &'static str,
    },
    /// The run has no flow of this number.
    #[error("there is no flow {number}; accepted: {}", numbers(*.flows))]
    Number {
        /// What was asked for.
        number: u32,
        /// How many flows the run has.
        flows: usize,
    },
}

/// The numbers of this many flows.
fn numbers(flows: usize) -> String {
    flows.checked_sub(1).map_or_else(|| "none, for the run has no flows".to_owned(), |last| format!("0 to {last}"))
}

/// `a flow`, or `3 flows`.
fn counted(flows: &[String]) -> String {
    match flows {
        [] => "this run, which has no flows,".to_owned(),
        [_] => "a flow".to_owned(),
        several => format!("{} flows", several.len()),
    }
}

/// The flows of these numbers; without any, all.
fn wanted<'a>(result: &'a RunResult, numbers: Option<&[u32]>) -> Result<Vec<&'a FlowResult>, ExportError> {
    let Some(numbers) = numbers else { return Ok(result.flows.iter().collect()) };
    let unknown = numbers.iter().find(|number| result.flows.iter().all(|flow| flow.id != **number));
    if let Some(&number) = unknown {
        return Err(ExportError::Number { number, flows: result.flows.len() });
    }
    Ok(result.flows.iter().filter(|flow| numbers.contains(&flow.id)).collect())
}

/// A format of flows.
struct Format {
    program: &'static str,
    /// The kinds of flows that it shows.
    accepted: &'static str,
}

impl Format {
    /// Parts the flows that can be shown from the others, each with its reason. Every flow that was asked for by its
    /// number must be among the first.
    fn shown<'a>(
        &self,
        result: &'a RunResult,
        numbers: Option<&[u32]>,
        mut why_not: impl FnMut(&FlowResult) -> Option<&'static str>,
    ) -> Result<(Vec<&'a FlowResult>, Vec<String>), ExportError> {
        let (mut shown, mut left_out) = (Vec::new(), Vec::new());
        for flow in wanted(result, numbers)? {
            match why_not(flow) {
                None => shown.push(flow),
                Some(reason) => left_out.push(format!("{} of kind {} {reason}", name(result, flow), flow.kind)),
            }
        }
        if shown.is_empty() || (numbers.is_some() && !left_out.is_empty()) {
            return Err(ExportError::Flows { format: self.program, flows: left_out, accepted: self.accepted });
        }
        Ok((shown, left_out))
    }
}

/// A flow's name: its number, and its host's.
fn name(result: &RunResult, flow: &FlowResult) -> String {
    let host = result.host_name(flow.host).unwrap_or_else(|| format!("host {}", flow.host));
    format!("flow {} ({host})", flow.id)
}

/// Whether a flow has TCP connections. Neither flent nor iperf3 knows QUIC.
fn is_tcp(flow: &FlowResult) -> bool {
    flow.transport() == Transport::Tcp
}

/// The block `[[hosts]]` of a flow's host, in the scenario of the result.
fn block<'a>(result: &'a RunResult, flow: &FlowResult) -> &'a Value {
    let mut before = u64::from(flow.host);
    for block in result.scenario["hosts"].as_array().into_iter().flatten() {
        let count = block["count"].as_u64().unwrap_or(1);
        if before < count {
            return block;
        }
        before -= count;
    }
    &Value::Null
}
