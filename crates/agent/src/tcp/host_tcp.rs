//! The agent's view of the kernel's TCP: what it observes, applies and tells servers.

use crate::config::Config;
use crate::config::RuleConfig;
use crate::error::Result;
use crate::link::interface::Interface;
use crate::tcp::rules;
use lasthop_kernel::Kernel;
use lasthop_laws::bound::Bound;
use lasthop_policy::FlowId;
use lasthop_policy::governor::FlowSample;
use lasthop_status::Mode;
use lasthop_units::Span;
use std::sync::Arc;

pub use lasthop_kernel::link_report::Claim;
pub use lasthop_kernel::{Containers, Left, SocketSample, StateChange, TooManyCgroups};
pub use lasthop_laws::ReportCounters;

/// Observes and controls a host's TCP. Dropping it undoes every remaining change.
pub trait HostTcp {
    /// The name of our congestion control; `None`: sockets are only observed.
    fn congestion_control(&self) -> Option<&str>;

    /// What becomes of connections with the host's default congestion control, in words; `None`: nothing.
    fn default_control(&self) -> Option<&str> {
        None
    }

    /// Takes over the existing sockets that are not under our control yet. Gives back those that have left the managed
    /// interface. Returns how many it took over.
    ///
    /// # Errors
    /// If they cannot be walked.
    fn adopt(&mut self) -> Result<u64>;

    /// Resolves the configured cgroup paths again. Returns whether [`HostTcp::adopt`] has to follow.
    ///
    /// # Errors
    /// If the kernel cannot be told.
    fn refresh(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// The rules that hold for no connection since then, because too many cgroups match them.
    fn too_many_cgroups(&self) -> &[TooManyCgroups] {
        &[]
    }

    /// The other network namespaces of this host as of then; `None`: they are left alone.
    fn containers(&self) -> Option<Containers> {
        None
    }

    /// The TCP sockets on the managed interface that are awake, each once.
    ///
    /// # Errors
    /// If they cannot be walked.
    fn sample(&mut self) -> Result<Arc<Vec<SocketSample>>>;

    /// How many more there were at the last call of [`HostTcp::sample`]: idle ones, which it left out.
    fn asleep(&self) -> u64 {
        0
    }

    /// The most connections with a bound of their own.
    fn bounds_most(&self) -> usize {
        Kernel::BOUNDS_MOST
    }

    /// Whether what sockets receive can be bounded, as far as is known.
    fn bounds_received(&self) -> bool {
        true
    }

    /// From now on a policy may bound what sockets receive. If that is impossible, it is said once.
    fn will_bound_received(&mut self) {}

    /// Changes of state since the last call, and how many were lost.
    ///
    /// # Errors
    /// If they cannot be read.
    fn poll_state_changes(&mut self, each: &mut dyn FnMut(StateChange)) -> Result<u64>;

    /// Sets or removes bounds, for future connections and for those listed. They hold for `lease` from now. The bounds
    /// of those not listed end.
    ///
    /// # Errors
    /// If the kernel refuses them.
    fn set_bounds(&mut self, new_flows: Option<Bound>, flows: &[(u64, Option<Bound>)], lease: Span) -> Result<()>;

    /// Gives the sockets their own congestion control back. Returns how many.
    ///
    /// # Errors
    /// If they cannot be walked.
    fn release(&mut self) -> Result<u64>;
}

/// Tells servers about the last link, in connections opened from now on. Dropping it ends that.
pub trait LinkReporter {
    /// Makes this claim from now on.
    ///
    /// # Errors
    /// If the kernel refuses it.
    fn set(&mut self, claim: Claim) -> Result<()>;

    /// Totals since loading.
    ///
    /// # Errors
    /// If the kernel does not answer.
    fn counters(&self) -> Result<ReportCounters>;
}

/// A host's TCP, ready to be observed and controlled.
pub struct Loaded {
    /// The observer and controller.
    pub tcp: Box<dyn HostTcp>,
    /// Its mode: the configured one, or a lesser one.
    pub mode: Mode,
    /// The reporter of the last link; `None`: not configured, or impossible here.
    pub reporter: Option<Box<dyn LinkReporter>>,
}

/// Loads the programs for an interface at the start. It loads them again for a replaced interface, or for a
/// configuration that needs other programs.
pub type Loader<'a> = dyn FnMut(&Config, &Interface, Mode) -> Result<Loaded> + 'a;

/// What policies see of a socket.
pub(crate) fn flow_sample(sample: &SocketSample, rules: &[RuleConfig], bounds_received: bool) -> FlowSample {
    FlowSample {
        id: FlowId(sample.cookie),
        tcp: sample.tcp,
        controllable: sample.controlled,
        left_alone: rules::left_by(rules, sample).is_some() || sample.left.is_some_and(|left| left != Left::Yet),
        receives_freely: sample.in_container || !bounds_received,
        limit: rules::limit(rules, sample),
    }
}
