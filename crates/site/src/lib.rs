//! The simulator in a browser: a module for WebAssembly (wasm32-unknown-unknown) that checks and runs scenarios, and draws the figures
//! of `lasthop view`. The pages around it are in `web/`; scripts/site puts both together.
//!
//! ```text
//! page (web/site.js) <-- messages --> worker (web/worker.js) <-- bytes in memory --> this module
//! ```
//!
//! One request and its answers are JSON texts ([`request`]). A worker writes the request where [`room`] says and calls [`answer`];
//! answers come while that works, by the function `say` that the worker gives. It also gives the time, for how fast a run was.
//!
//! *What it leaves out*: files, so laws of one's own, external policies and traces; QUIC, whose machine asks for the time; kernel hosts.
#![deny(clippy::disallowed_methods)]

mod request;
#[cfg(target_family = "wasm")]
mod worker;

pub use request::{Answer, Request, Worker};
