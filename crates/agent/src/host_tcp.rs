//! The kernel's TCP as the agent sees it: what can be observed, applied, and told to servers.

use crate::config::{Config, Mode};
use crate::error::Result;
use crate::interface::Interface;
use lasthop_laws::bound::Bound;
use lasthop_units::Span;

pub use lasthop_kernel::link_report::{Claim, Counters as ReportCounters};
pub use lasthop_kernel::{CongestionState, SocketSample, StateChange};

/// What can be observed of a host's TCP, and applied to it. Dropping it undoes everything that is left to undo.
pub trait HostTcp {
    /// The name of our congestion control; `None`: sockets are only observed.
    fn congestion_control(&self) -> Option<&str>;

    /// Takes over the sockets that exist and are not under our control yet; how many. Gives back those that no longer
    /// leave by the managed interface.
    ///
    /// # Errors
    /// If they cannot be walked.
    fn adopt(&mut self) -> Result<u64>;

    /// Looks again for what the configuration names by its path, the cgroups; whether [`HostTcp::adopt`] has to follow.
    ///
    /// # Errors
    /// If the kernel cannot be told.
    fn refresh(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// All TCP sockets on the managed interface.
    ///
    /// # Errors
    /// If they cannot be walked.
    fn sample(&mut self) -> Result<Vec<SocketSample>>;

    /// Changes of state since the last call; how many were lost.
    ///
    /// # Errors
    /// If they cannot be read.
    fn poll_state_changes(&mut self, each: &mut dyn FnMut(StateChange)) -> Result<u64>;

    /// Sets or takes away bounds: for connections to come and for those listed. They hold for `lease` from now.
    ///
    /// # Errors
    /// If the kernel does not take them.
    fn set_bounds(&mut self, new_flows: Option<Bound>, flows: &[(u64, Option<Bound>)], lease: Span) -> Result<()>;

    /// Gives the sockets their own congestion control back; to how many.
    ///
    /// # Errors
    /// If they cannot be walked.
    fn release(&mut self) -> Result<u64>;
}

/// What tells servers about the last link, in the connections that are opened from now on. Dropping it ends that.
pub trait LinkReporter {
    /// Claims this from now on.
    ///
    /// # Errors
    /// If the kernel does not take it.
    fn set(&mut self, claim: Claim) -> Result<()>;

    /// Totals since it was loaded.
    ///
    /// # Errors
    /// If the kernel does not say.
    fn counters(&self) -> Result<ReportCounters>;
}

/// A host's TCP, ready to be observed and controlled.
pub struct Loaded {
    /// How.
    pub tcp: Box<dyn HostTcp>,
    /// What it can do: the mode that was asked for, or a lesser one.
    pub mode: Mode,
    /// What tells servers about the last link; `None`: that is not configured, or cannot be done here.
    pub reporter: Option<Box<dyn LinkReporter>>,
}

/// Loads what observes and controls TCP on an interface: at the start, and again when the interface has been replaced by another one, or the
/// configuration by one that asks for other programs.
pub type Loader<'a> = dyn FnMut(&Config, &Interface, Mode) -> Result<Loaded> + 'a;
