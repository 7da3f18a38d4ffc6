//! Our own laws on kernel hosts: loaded for the run, under names that nobody else has, with the hosts' parameters.
//!
//! They are this process's: what a user has loaded with `lasthop laws` is not touched, two runs do not meet, and nothing is
//! left when the run ends, or is killed.

use anyhow::{Context, Result};
use control::law::Choice;
use kernel::laws::{Law, Loaded, Name, Options};
use scenario::{HostKind, HostSpec};

/// The laws of a run: one for each choice of a law and its parameters.
pub(crate) struct Laws {
    loaded: Vec<(Choice, Loaded)>,
}

/// What a host's congestion control is in the kernel, if it is a law that we bring; NewReno and CUBIC are the kernel's.
pub(crate) fn of(kind: &HostKind) -> Option<(Law, Choice)> {
    let choice = kind.law?;
    Some((Law::of(choice.name.as_str())?, choice))
}

impl Laws {
    /// Loads what these hosts need.
    ///
    /// # Errors
    /// If this kernel cannot; the message says what is missing.
    pub(crate) fn load(hosts: &[HostSpec]) -> Result<Self> {
        let mut laws = Self { loaded: Vec::new() };
        for host in hosts {
            let Some((law, choice)) = of(&host.kind) else { continue };
            if laws.find(choice).is_none() {
                let options = Options { name: Name::Private, ..Options::new(law, *choice.parameters.values()) };
                let loaded =
                    Loaded::load(&options).with_context(|| format!("cannot load {law} for host {}", host.index))?;
                laws.loaded.push((choice, loaded));
            }
        }
        Ok(laws)
    }

    fn find(&self, choice: Choice) -> Option<&str> {
        self.loaded.iter().find(|(loaded, _)| *loaded == choice).map(|(_, law)| law.name())
    }

    /// The kernel's name for the host's congestion control in this run.
    pub(crate) fn name<'a>(&'a self, kind: &'a HostKind) -> &'a str {
        of(kind).and_then(|(_, choice)| self.find(choice)).unwrap_or_else(|| kind.kernel_congestion_control())
    }
}
