//! The formats: a run's input and its output. Nothing runs here.
//!
//! - [`Scenario`]: `scenario.toml`, with the overrides of the command line ([`Override`], [`Vary`]) on top. It is
//!   checked against its keys ([`Scenario::section`]) and built into a [`lasthop_network::Config`] and the hosts with
//!   their policies. This is the only place of that conversion, for every habitat.
//! - [`RunResult`] and [`Comparison`]: `result.json` and `comparison.json`, as plain data. `measure` computes them.
//! - [`Series`]: the samples of a run, as columns in memory.
//!
//! *What it leaves out*: unimplemented policies and congestion controls. A scenario that asks for them is refused, with
//! the accepted ones.

pub mod result;
pub mod series;

mod build;
mod cells;
mod changes;
mod comparison;
mod error;
mod keys;
mod last_link;
mod lists;
mod memory;
mod network_error;
mod notes;
mod result_file;
mod scenario;
mod tcp_switches;
mod trace;
mod traffic;
mod wiring;
mod written;

pub use cells::{Layout, Place};
pub use comparison::{
    CaseResult, CaseSummary, Comparison, DatagramSummary, DeliverySummary, Interval, Setting, Spread, Varied,
    VideoSummary,
};
pub use error::ResultError;
pub use keys::{AgentMode, Direction, Era, Knowledge, LawMaker, make_own_laws_with};
pub use last_link::LastLink;
pub use lasthop_keys::{
    COMMAND_LINE, Case, DocumentError as ScenarioError, IneffectiveKey, KeyError, Override, Problem, Vary,
    nearest_names,
};
pub use lasthop_traffic::{Kind, KindName, Message, Pace, Pieces, QuicLaw, Sizes, TrafficKind, Transport, VideoResult};
pub use memory::MemoryEstimate;
pub use notes::{AssumedHeader, LateChange, ShortWarmup, short_warmups};
pub use result::{
    AccessResult, Build, CellResult, ChangeKind, Clock, ConvergenceResult, DatagramResult, DeliveryResult,
    Distribution, FlowResult, HostPolicyResult, HostsKind, InvalidKind, LastLinkResult, Lateness, LinkResult,
    NO_PEERS_OVER_LINKS, NodeResult, PoliciesResult, Queue, RoamResult, RunResult, SCHEMA_VERSION, SlowdownResult,
    StateShares, StationResult, UsedKernel, Wifi,
};
pub use result_file::{ResultFile, is_zero};
pub use scenario::{HostBlock, HostKind, HostSpec, MAX_FLOWS, MAX_HOST_BLOCKS, MAX_HOSTS, Scenario, ineffective_keys};
pub use series::{
    ACCESS_POINT, CONGESTION_STATES, DatagramSample, DatagramSeries, FlowSample, FlowSeries, QueueSample, QueueSeries,
    Series, TransferSample, TransferSeries, place_name,
};
pub use traffic::{FIRST_CLIENT_PORT, FlowBlock, FlowSpec, SERVER_PORT};
