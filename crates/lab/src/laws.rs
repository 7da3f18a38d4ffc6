//! Our own laws on kernel hosts: loaded for the run, with unique names and the hosts' parameters.
//!
//! They belong to this process. They do not affect a user's laws (`lasthop laws`) or another run's. None remains after
//! the run, even if it is killed.

use crate::addresses::flow_of_port;
use crate::error::{Error, Result};
use crate::samples::Kept;
use lasthop_kernel::laws::{Field, Loaded, Name, Options, Value};
use lasthop_laws::{Applied, Choice};
use lasthop_scenario::{HostKind, HostSpec};
use lasthop_units::Time;

/// The laws of a run: one for each choice of a law and its parameters.
pub(crate) struct Laws {
    loaded: Vec<(Choice, Loaded)>,
}

/// The law to load for a host's congestion control, if any. NewReno and CUBIC are the kernel's.
pub(crate) fn of(kind: &HostKind) -> Option<Choice> {
    kind.law.filter(|choice| choice.name.is_for_the_kernel())
}

/// The host's law, if it uses clients' reports of their last links.
pub(crate) fn hears(kind: &HostKind) -> Option<Choice> {
    of(kind).filter(|choice| choice.name.hears_reports())
}

/// The state that a server's law has derived from a client's reports, at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkSample {
    pub(crate) at: Time,
    /// Index into the plans.
    pub(crate) flow: usize,
    pub(crate) applied: Applied,
}

impl Laws {
    /// Loads the laws of these hosts.
    ///
    /// # Errors
    /// If this kernel cannot. The message says which feature is missing.
    pub(crate) fn load(hosts: &[HostSpec]) -> Result<Self> {
        let mut laws = Self { loaded: Vec::new() };
        for host in hosts {
            let Some(choice) = of(&host.kind) else { continue };
            if laws.find(choice).is_none() {
                let options = Options { name: Name::Private, ..Options::new(choice.name, choice.parameters) };
                let doing = || format!("cannot load {} for host {}", choice.name, host.index);
                let loaded = Loaded::load(&options).map_err(|source| Error::Law { doing: doing(), source })?;
                laws.loaded.push((choice, loaded));
            }
        }
        Ok(laws)
    }

    /// Reads the sockets of all laws that use reports, and adds samples of the flows' sockets.
    ///
    /// # Errors
    /// If the kernel's walk of the sockets fails.
    pub(crate) fn sample(&self, at: Time, samples: &mut Kept<LinkSample>) -> Result<()> {
        for (_, law) in self.loaded.iter().filter(|(_, law)| law.law().hears_reports()) {
            let doing = || "cannot look at the sockets of a law".to_owned();
            for socket in law.sockets().map_err(|source| Error::Law { doing: doing(), source })? {
                if let (Some(flow), Some(applied)) = (flow_of_port(socket.remote.port()), applied(&socket.fields)) {
                    samples.push(LinkSample { at, flow, applied });
                }
            }
        }
        Ok(())
    }

    fn find(&self, choice: Choice) -> Option<&str> {
        self.loaded.iter().find(|(loaded, _)| *loaded == choice).map(|(_, law)| law.name())
    }

    /// The kernel's name for the host's congestion control in this run.
    pub(crate) fn name<'a>(&'a self, kind: &'a HostKind) -> &'a str {
        of(kind).and_then(|choice| self.find(choice)).unwrap_or_else(|| kind.kernel_congestion_control())
    }
}

/// The state derived from reports; `None` if there were none.
fn applied(fields: &[Field]) -> Option<Applied> {
    Applied::from_state(|name| match fields.iter().find(|field| field.name == name)?.value {
        Value::Number(number) => u64::try_from(number).ok(),
        Value::Numbers(_) => None,
    })
}
