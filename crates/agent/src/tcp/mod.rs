//! The connections of this host: observed, limited, left alone, or escaped.

pub mod host_tcp;
pub(crate) mod kernel_tcp;
pub(crate) mod room;
pub(crate) mod rules;
pub(crate) mod ungoverned;
