//! Our own laws on kernel hosts: loaded for the run, under names that nobody else has, with the hosts' parameters.
//!
//! They are this process's: what a user has loaded with `lasthop laws` is not touched, two runs do not meet, and nothing is
//! left when the run ends, or is killed.

use crate::traffic::flow_of_port;
use anyhow::{Context, Result};
use control::last_link::Applied;
use control::law::Choice;
use kernel::laws::{Field, Law, Loaded, Name, Options, Value};
use scenario::{HostKind, HostSpec};
use units::{Probability, Rate, Time};

/// The laws of a run: one for each choice of a law and its parameters.
pub(crate) struct Laws {
    loaded: Vec<(Choice, Loaded)>,
}

/// What a host's congestion control is in the kernel, if it is a law that we bring; NewReno and CUBIC are the kernel's.
pub(crate) fn of(kind: &HostKind) -> Option<(Law, Choice)> {
    let choice = kind.law?;
    Some((Law::of(choice.name.as_str())?, choice))
}

/// The host's law, if it hears what clients say of their last links.
pub(crate) fn hears(kind: &HostKind) -> Option<Choice> {
    of(kind).filter(|(law, _)| law.hears_reports()).map(|(_, choice)| choice)
}

/// What a server's law has made of a client's reports, at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkSample {
    pub(crate) at: Time,
    /// Index into the plans.
    pub(crate) flow: usize,
    pub(crate) applied: Applied,
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

    /// Looks at the sockets of all laws that hear, and adds those of flows.
    ///
    /// # Errors
    /// If the kernel cannot be asked to walk them.
    pub(crate) fn sample(&self, at: Time, samples: &mut Vec<LinkSample>) -> Result<()> {
        for (_, law) in self.loaded.iter().filter(|(_, law)| law.law().hears_reports()) {
            for socket in law.sockets().context("cannot look at the sockets of a law")? {
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
        of(kind).and_then(|(_, choice)| self.find(choice)).unwrap_or_else(|| kind.kernel_congestion_control())
    }
}

/// `struct lh_lastlink` as [`Applied`]; `None`: it has heard no report.
fn applied(fields: &[Field]) -> Option<Applied> {
    let number = |name: &str| match fields.iter().find(|field| field.name == name)?.value {
        Value::Number(number) => u32::try_from(number).ok(),
        Value::Numbers(_) => None,
    };
    let some = |name: &str| number(name).filter(|number| *number > 0);
    some("reports")?;
    let heeded = ["heeded_unknown", "heeded_excess", "heeded_queue", "heeded_in_turn"];
    Some(Applied {
        bandwidth: some("bandwidth_kbps").map(|kbps| Rate::from_bps(u64::from(kbps) * 1000)),
        error_rate: number("error_ppm").and_then(|ppm| Probability::new(f64::from(ppm) / 1e6).ok()),
        cwnd_max_segments: some("cwnd_max_segments"),
        initial_segments: some("initial_segments"),
        ignored_losses: number("ignored").unwrap_or(0),
        heeded_losses: heeded.iter().filter_map(|name| number(name)).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(numbers: &[(&str, i128)]) -> Vec<Field> {
        let field = |(name, number): &(&str, i128)| Field { name: (*name).to_owned(), value: Value::Number(*number) };
        numbers.iter().map(field).collect()
    }

    #[test]
    fn the_state_of_the_law_says_what_it_has_heard_and_done() {
        let heard = fields(&[
            ("reports", 2),
            ("bandwidth_kbps", 7000),
            ("error_ppm", 5000),
            ("cwnd_max_segments", 0),
            ("initial_segments", 87),
            ("ignored", 9),
            ("heeded_unknown", 1),
            ("heeded_excess", 2),
            ("heeded_queue", 4),
            ("heeded_in_turn", 8),
        ]);
        let applied = applied(&heard).expect("it has heard");
        assert_eq!(applied.bandwidth, Some(Rate::from_mbps(7.0)));
        assert_eq!(applied.error_rate.map(Probability::get), Some(0.005));
        assert_eq!((applied.cwnd_max_segments, applied.initial_segments), (None, Some(87)));
        assert_eq!((applied.ignored_losses, applied.heeded_losses), (9, 15));
    }

    #[test]
    fn a_law_that_has_heard_nothing_says_nothing_and_what_is_unknown_is_none() {
        assert_eq!(applied(&fields(&[("reports", 0), ("ignored", 3)])), None);
        let unknown = fields(&[("reports", 1), ("bandwidth_kbps", 0), ("error_ppm", i128::from(u32::MAX))]);
        let applied = applied(&unknown).expect("it has heard");
        assert_eq!((applied.bandwidth, applied.error_rate), (None, None));
    }
}
