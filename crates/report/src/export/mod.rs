//! A run in the formats of other tools: CSV, flent's data file, and the JSON of iperf3.
//!
//! *What it leaves out*: what these formats have no place for, such as queues in flent's file. What lasthop has not
//! measured is not in them either, except where a reader fails without it; there it is 0, and said below.

mod csv;
mod flent;
mod iperf3;

pub use csv::{TABLES, Table, tables};
pub use flent::{flent, gzip};
pub use iperf3::iperf3;

use lasthop_scenario::{FlowResult, RunResult};
use serde_json::Value;

/// A flow's name: its number, and its host's.
fn name(result: &RunResult, flow: &FlowResult) -> String {
    let host = result.host_name(flow.host).unwrap_or_else(|| format!("host {}", flow.host));
    format!("flow {} ({host})", flow.id)
}

/// Whether a flow has TCP connections. Neither flent nor iperf3 knows QUIC.
fn is_tcp(flow: &FlowResult) -> bool {
    !matches!(flow.kind.as_str(), "ping" | "constant" | "saturated" | "quic")
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
