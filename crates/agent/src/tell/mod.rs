//! What the agent tells: to those who ask and watch, its record, its log, monitoring, and the service manager.

pub(crate) mod exposition;
pub(crate) mod lines;
pub(crate) mod log;
pub(crate) mod log_limit;
pub(crate) mod metrics;
pub(crate) mod notify;
pub(crate) mod recorder;
pub(crate) mod socket;
