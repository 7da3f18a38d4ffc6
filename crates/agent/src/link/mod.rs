//! The link to the access point: what the interface and its radio say of it, and what servers are told of it.

pub(crate) mod interface;
pub(crate) mod last_link;
pub(crate) mod medium;
pub(crate) mod rts;
pub(crate) mod wifi;
mod wiphy;
