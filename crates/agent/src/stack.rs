//! The kernel's TCP as the agent sees it: what can be observed, and what can be applied.

use crate::config::Mode;
use crate::interface::Interface;
use control::bound::Bound;
use std::net::SocketAddr;
use units::{Bytes, Rate, Span};

/// One TCP socket on the managed interface.
#[derive(Clone, Debug, PartialEq)]
pub struct SocketSample {
    /// The kernel's number for it.
    pub cookie: u64,
    /// Own address and port.
    pub local: SocketAddr,
    /// The other side's.
    pub remote: SocketAddr,
    /// Its congestion control.
    pub congestion_control: String,
    /// Whether that is ours, so that a bound has an effect.
    pub controlled: bool,
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Slow-start threshold; `None`: not set yet.
    pub ssthresh_segments: Option<u32>,
    /// Smoothed RTT.
    pub srtt: Option<Span>,
    /// Lowest RTT, over the kernel's window.
    pub min_rtt: Option<Span>,
    /// `Open`, `Disorder`, `Cwr`, `Recovery` or `Loss`.
    pub state: &'static str,
    /// Segments sent and not acknowledged.
    pub in_flight_segments: u32,
    /// Written by the application and not sent.
    pub unsent: Bytes,
    /// Retransmitted segments, since it began.
    pub retransmits: u64,
    /// The kernel's delivery rate.
    pub delivery_rate: Option<Rate>,
    /// Largest payload of a segment.
    pub mss: Bytes,
    /// Acknowledged, since it began.
    pub acked: Bytes,
}

/// A change of a connection's congestion state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// CLOCK_MONOTONIC.
    pub t_ns: u64,
    /// Which connection.
    pub cookie: u64,
    /// As [`SocketSample::state`].
    pub from: &'static str,
    /// As [`SocketSample::state`].
    pub to: &'static str,
}

/// What can be observed of a host's TCP, and applied to it. Dropping it undoes everything that is left to undo.
pub trait Stack {
    /// The name of our congestion control; `None`: this stack is only observed.
    fn congestion_control(&self) -> Option<&str>;

    /// Takes over the sockets that already exist; how many.
    ///
    /// # Errors
    /// If they cannot be walked.
    fn adopt(&mut self) -> anyhow::Result<u64>;

    /// All TCP sockets on the managed interface.
    ///
    /// # Errors
    /// If they cannot be walked.
    fn sample(&mut self) -> anyhow::Result<Vec<SocketSample>>;

    /// Changes of state since the last call; how many were lost.
    ///
    /// # Errors
    /// If they cannot be read.
    fn poll_state_changes(&mut self, each: &mut dyn FnMut(StateChange)) -> anyhow::Result<u64>;

    /// Sets or takes away bounds: for connections to come and for those listed. They hold for `lease` from now.
    ///
    /// # Errors
    /// If the kernel does not take them.
    fn set_bounds(
        &mut self,
        new_flows: Option<Bound>,
        flows: &[(u64, Option<Bound>)],
        lease: Span,
    ) -> anyhow::Result<()>;

    /// Gives the sockets their own congestion control back; to how many.
    ///
    /// # Errors
    /// If they cannot be walked.
    fn release(&mut self) -> anyhow::Result<u64>;
}

/// A stack, ready to use.
pub struct Loaded {
    /// The stack.
    pub stack: Box<dyn Stack>,
    /// What it can do: the mode that was asked for, or a lesser one.
    pub mode: Mode,
}

/// Makes the stack for an interface: at the start, and again when the interface has been replaced by another one.
pub type Loader<'a> = dyn FnMut(&Interface, Mode) -> anyhow::Result<Loaded> + 'a;
