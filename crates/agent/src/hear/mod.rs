//! Hears the peers behind the same access point, and is heard by them.

pub(crate) mod group;
pub(crate) mod hearing;
pub(crate) mod port;
pub(crate) mod relay;
pub(crate) mod sockets;
