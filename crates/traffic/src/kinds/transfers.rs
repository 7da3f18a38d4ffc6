//! Transfers in sequence, each over a connection of its own.

use super::{Desk, DocumentError, Kind, Part, TrafficKeys};
use lasthop_keys::Preset::Absent;
use lasthop_keys::{key, keys, number};
use lasthop_units::{Bytes, Span, Time};

keys! {
    /// Its own keys.
    pub(crate) struct TransfersKeys {
        /// Sizes are lognormal with the median `transfer_kib`, as those of files in the web: this is the standard deviation
        /// of their logarithm ([sizes](#sizes-of-transfers)). Without it, or with 0, all have one size.
        transfer_sigma: Option<f64> = number(0.0, 3.0), Absent;
    }
}

/// Transfers in sequence, each over a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfers {
    /// Size of each, at least 1 KiB; the median if they differ.
    pub transfer: Bytes,
    /// Standard deviation of the logarithm of their sizes, which are lognormal; 0: all have one size.
    pub sigma: f64,
    /// Mean pause between the end of one and the start of the next.
    pub off: Span,
    /// What the receiver asks with, at least 1 byte; `None`: the sender begins by itself.
    pub request: Option<Bytes>,
}

impl Transfers {
    pub(super) const KEYS: &[&str] = &["transfer_kib", "off_s", "request_bytes"];

    pub(super) fn read(keys: &TrafficKeys, part: &Part<'_>) -> Result<Self, DocumentError> {
        let missing = || {
            let problem = "is not there, and the kind \"transfers\" cannot be without it";
            part.error(key!(TrafficKeys, transfer_kib), problem, "the size of each transfer in KiB")
        };
        let transfer = keys.transfer_kib.ok_or_else(missing)?;
        let sigma = keys.own.transfers.transfer_sigma.unwrap_or(0.0);
        Ok(Self { transfer, sigma, off: keys.off_s, request: keys.request_bytes })
    }
}

impl Kind for Transfers {
    fn begin(&mut self, _due: Time, now: Time, desk: &mut Desk) {
        let size = desk.lognormal(self.transfer, self.sigma);
        match self.request {
            None => desk.transfer(now, size),
            Some(request) => {
                desk.open();
                desk.ask(now, request, size, true);
            }
        }
    }

    /// A transfer in progress is finished.
    fn stop(&mut self, _desk: &mut Desk) {}

    fn on_read(&mut self, now: Time, desk: &mut Desk) {
        desk.begin_after(now, self.off);
    }

    fn on_failed(&mut self, now: Time, desk: &mut Desk) {
        desk.begin_after(now, self.off);
    }

    fn goes_on(&self) -> bool {
        true
    }

    fn asks(&self) -> bool {
        self.request.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Application};
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    /// The sizes of a thousand transfers, ascending.
    fn sizes(sigma: f64, request: Option<Bytes>) -> Vec<u64> {
        let kind = Transfers { transfer: Bytes::new(10_000), sigma, off: Span::from_secs(1), request };
        let mut application = Application::new(kind.into(), Time::ZERO, None, ChaCha8Rng::seed_from_u64(1));
        let (mut sizes, mut actions, mut delays) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..1000 {
            let now = application.next_at();
            application.act(now, &mut actions);
            if let Some(request) = request {
                assert!(application.on_asked(now, request.get()));
                application.act(now, &mut actions);
            }
            let written = actions.drain(..).find_map(|action| match action {
                Action::Write(size) => Some(size.get()),
                _ => None,
            });
            let size = written.expect("a transfer");
            application.on_read(now, size, &mut delays);
            sizes.push(size);
        }
        assert_eq!(delays.len(), 1000, "each is read to its end");
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn sizes_are_lognormal_with_the_median_that_is_given() {
        assert!(sizes(0.0, None).iter().all(|size| *size == 10_000));
        for request in [None, Some(Bytes::new(400))] {
            let sizes = sizes(1.0, request);
            // Of a standard normal 16 % are below -1 and 2.3 % above 2: e^-1 = 0.368, e^2 = 7.39. Means of 1000 draws lie within
            // a tenth of these.
            let ratio = |place: usize, expected: f64| sizes[place] as f64 / (10_000.0 * expected);
            for (place, expected) in [(500, 1.0), (159, 0.368), (841, std::f64::consts::E)] {
                assert!((0.85..1.15).contains(&ratio(place, expected)), "{place}: {}", sizes[place]);
            }
            assert!((0.7..1.4).contains(&ratio(977, 7.39)), "{}", sizes[977]);
        }
    }
}
