//! Transfers, each over a connection of its own: in sequence, or as they arrive whatever becomes of those before (open loop).

use super::{Desk, DocumentError, Kind, Part, TrafficKeys, TrafficKind};
use crate::sizes::{Points, Sizes};
use lasthop_keys::Preset::Absent;
use lasthop_keys::{When, above, key, keys, number, text};
use lasthop_units::{Bytes, Span, Time};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// What says when transfers begin, if not the end of the one before.
pub(crate) const OPEN: [&str; 4] = ["arrivals_per_s", "arrivals_mbps", "arrivals", "arrivals_s"];
/// What says how large they are, besides `transfer_kib`.
const SIZED: [&str; 2] = ["transfer_sizes", "transfer_points"];
/// An arrival is at most so many seconds behind the start.
const LATEST_S: f64 = 86_400.0;

keys! {
    /// Its own keys.
    pub(crate) struct TransfersKeys {
        /// Sizes are lognormal with the median `transfer_kib`, as those of files in the web: this is the standard deviation
        /// of their logarithm ([sizes](#sizes-of-transfers)). Without it, or with 0, all have one size.
        transfer_sigma: Option<f64> = number(0.0, 3.0), Absent, when SIZED.map(When::NotGiven).to_vec();
        /// Instead of `transfer_kib`: "web-search", "data-mining", or the path, from this file, of a [file with a
        /// distribution](#sizes-of-transfers).
        transfer_sizes: Option<String> = text(4_096), Absent;
        /// The same as points "bytes:share" of the distribution, parted by spaces: what a result has of a file.
        transfer_points: Option<String> = text(400_000), Absent;
        /// [Open loop](#open-loop): transfers begin as a Poisson process of this rate in 1/s, also while others go on.
        arrivals_per_s: Option<f64> = above(0.0, 1e5), Absent;
        /// The same by its mean load: so many Mb/s of data.
        arrivals_mbps: Option<f64> = above(0.0, 1e5), Absent;
        /// The same by the path, from this file, of a [file with times](#open-loop), and sizes if it has any.
        arrivals: Option<String> = text(4_096), Absent;
        /// The same as times in seconds from the start, parted by spaces: "0.5 0.7:1500" is one, and one of 1500 bytes. What a result
        /// has of a file.
        arrivals_s: Option<String> = text(1_000_000), Absent;
    }
}

/// Transfers, each over a connection of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfers {
    /// Their sizes.
    pub sizes: Sizes,
    /// When they begin.
    pub pace: Pace,
    /// What the receiver asks with, at least 1 byte; `None`: the sender begins by itself.
    pub request: Option<Bytes>,
}

/// When transfers begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// This mean pause after the end of the one before.
    After(Span),
    /// As a Poisson process with this mean from one to the next.
    Poisson(Span),
    /// At these times from the start, ascending, each with its size if that is given.
    At(Arc<[(Span, Option<Bytes>)]>),
    /// At the start, and this one alone: a connection of an open loop.
    Once(Bytes),
}

impl Pace {
    /// What arrivals are, each with its size or without.
    pub const ARRIVALS: &'static str =
        "seconds from 0 to 86400, ascending, each with whole bytes from 1 to 1099511627776 if it has a size";

    /// The size of an arrival; `None`: it can have none of so many bytes.
    pub fn size(bytes: f64) -> Option<Bytes> {
        let is_size = bytes.fract() == 0.0 && (1.0..=Sizes::MOST.get() as f64).contains(&bytes);
        is_size.then_some(Bytes::new(bytes as u64))
    }
}

impl Transfers {
    pub(super) const KEYS: &[&str] = &["transfer_kib", "off_s", "request_bytes"];
    /// The keys that say when they begin, of which one may be given.
    pub const PACED_BY: [&'static str; 4] = OPEN;
    /// Those that say how large they are, likewise.
    pub const SIZED_BY: [&'static str; 3] = ["transfer_kib", SIZED[0], SIZED[1]];

    pub(super) fn read(keys: &TrafficKeys, part: &Part<'_>) -> Result<Self, DocumentError> {
        let own = &keys.own.transfers;
        let given = |names: &[&'static str]| {
            names.iter().copied().filter(|name| part.table.contains_key(*name)).collect::<Vec<_>>()
        };
        for names in [&Self::PACED_BY[..], &Self::SIZED_BY] {
            if let [first, second, ..] = given(names)[..] {
                return Err(part.error(second, format!("cannot be beside {first}"), "one of the two"));
            }
        }
        let at = own
            .arrivals_s
            .as_deref()
            .map(|text| times(text).map_err(|(problem, accepted)| part.error("arrivals_s", problem, accepted)))
            .transpose()?;
        let sizes = match (keys.transfer_kib, own.transfer_sizes.as_deref(), own.transfer_points.as_deref()) {
            (Some(median), ..) => Sizes::Lognormal { median, sigma: own.transfer_sigma.unwrap_or(0.0) },
            (None, Some(name), _) => {
                let points = Points::of(name).ok_or_else(|| {
                    let accepted = "\"web-search\", \"data-mining\", or the path of a file of a scenario in a folder";
                    part.error(
                        "transfer_sizes",
                        format!("\"{name}\" is neither a distribution nor a file that was read"),
                        accepted,
                    )
                })?;
                Sizes::Points(points)
            }
            (None, None, Some(text)) => Sizes::Points(
                points(text).map_err(|(problem, accepted)| part.error("transfer_points", problem, accepted))?,
            ),
            // Each of the file has its own.
            (None, None, None) if at.as_deref().is_some_and(|at| at.iter().all(|(_, size)| size.is_some())) => {
                Sizes::Lognormal { median: Bytes::new(1), sigma: 0.0 }
            }
            (None, None, None) => {
                let problem = "is not there, and the kind \"transfers\" cannot be without it";
                let accepted = "the size of each transfer in KiB, or transfer_sizes";
                return Err(part.error(key!(TrafficKeys, transfer_kib), problem, accepted));
            }
        };
        // Rarer than in any run is never, and more often than a run has time for is refused as too many.
        let every = |per_s: f64| Pace::Poisson(Span::from_secs_f64((1.0 / per_s).clamp(1e-9, 1e6)));
        let pace = match (own.arrivals_per_s, own.arrivals_mbps, at) {
            (Some(per_s), ..) => every(per_s),
            (_, Some(mbps), _) => every(mbps * 1e6 / 8.0 / sizes.mean()),
            (.., Some(at)) => Pace::At(at.into()),
            _ if own.arrivals.is_some() => {
                let accepted = "the path of a file of a scenario in a folder, or arrivals_s";
                return Err(part.error("arrivals", "is a file that was not read", accepted));
            }
            _ => Pace::After(keys.off_s),
        };
        Ok(Self { sizes, pace, request: keys.request_bytes })
    }
}

/// The numbers of an item such as `0.7:1500`.
fn pair(item: &str) -> Option<(f64, Option<f64>)> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    match item.split_once(':') {
        None => Some((number(item)?, None)),
        Some((one, other)) => Some((number(one)?, Some(number(other)?))),
    }
}

/// What is wrong, and what is accepted.
type Wrong = (String, String);

/// The times, each with a size if it has one.
fn times(text: &str) -> Result<Vec<(Span, Option<Bytes>)>, Wrong> {
    let wrong = |item: &str, what: &str| {
        (format!("\"{item}\" {what}"), format!("times such as 0.7, or 0.7:1500 with bytes: {}", Pace::ARRIVALS))
    };
    let mut times: Vec<(Span, Option<Bytes>)> = Vec::new();
    for item in text.split_whitespace() {
        let read = pair(item).filter(|(at, _)| *at <= LATEST_S).and_then(|(at, bytes)| {
            let size = bytes.map(|bytes| Pace::size(bytes).ok_or(())).transpose().ok()?;
            Some((Span::from_secs_f64(at), size))
        });
        let (at, size) = read.ok_or_else(|| wrong(item, "is no arrival"))?;
        if times.last().is_some_and(|(before, _)| *before > at) {
            return Err(wrong(item, "goes back"));
        }
        times.push((at, size));
    }
    Ok(times)
}

fn points(text: &str) -> Result<Points, Wrong> {
    let accepted = || format!("points such as 1500:0.2: {}", Points::ACCEPTED);
    let pairs: Option<Vec<(f64, f64)>> =
        text.split_whitespace().map(|item| pair(item).and_then(|(bytes, share)| Some((bytes, share?)))).collect();
    let pairs = pairs.ok_or_else(|| ("has an item that is no point".to_owned(), accepted()))?;
    Points::new(&pairs).map_err(|(number, wrong)| (format!("point {}: {wrong}", number + 1), accepted()))
}

impl Kind for Transfers {
    fn begin(&mut self, _due: Time, now: Time, desk: &mut Desk) {
        let size = match self.pace {
            Pace::After(_) => desk.size(&self.sizes),
            Pace::Once(size) => size,
            // Each arrival has a connection, and an application, of its own; this is what is there without any.
            Pace::Poisson(_) | Pace::At(_) => return,
        };
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
        if let Pace::After(pause) = self.pace {
            desk.begin_after(now, pause);
        }
    }

    fn on_failed(&mut self, now: Time, desk: &mut Desk) {
        self.on_read(now, desk);
    }

    fn goes_on(&self) -> bool {
        true
    }

    fn asks(&self) -> bool {
        self.request.is_some()
    }

    fn arrivals(&self, from: Time, until: Time, stream: &mut ChaCha8Rng) -> Option<Vec<(Time, TrafficKind)>> {
        let one = |size| Self { pace: Pace::Once(size), ..self.clone() }.into();
        match &self.pace {
            Pace::After(_) | Pace::Once(_) => None,
            Pace::At(times) => {
                let each = times.iter().map(|(after, size)| (from + *after, *size));
                let each = each.take_while(|(at, _)| *at < until);
                Some(each.map(|(at, size)| (at, one(size.unwrap_or_else(|| self.sizes.draw(stream))))).collect())
            }
            Pace::Poisson(mean) => {
                let (mut at, mut arrivals) = (from, Vec::new());
                loop {
                    let uniform: f64 = stream.random();
                    at = at.saturating_add(Span::from_secs_f64(-mean.as_secs_f64() * libm::log1p(-uniform)));
                    if at >= until {
                        return Some(arrivals);
                    }
                    arrivals.push((at, one(self.sizes.draw(stream))));
                }
            }
        }
    }

    fn expected_arrivals(&self, from: Time, until: Time) -> Option<f64> {
        match &self.pace {
            Pace::After(_) | Pace::Once(_) => None,
            Pace::At(times) => Some(times.iter().take_while(|(after, _)| from + *after < until).count() as f64),
            Pace::Poisson(mean) => Some(until.saturating_since(from).as_secs_f64() / mean.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Application};
    use rand::SeedableRng as _;

    /// The sizes of a thousand transfers, ascending.
    fn sizes(sigma: f64, request: Option<Bytes>) -> Vec<u64> {
        let sizes = Sizes::Lognormal { median: Bytes::new(10_000), sigma };
        let kind = Transfers { sizes, pace: Pace::After(Span::from_secs(1)), request };
        let mut application = Application::new(kind.into(), Time::ZERO, None, ChaCha8Rng::seed_from_u64(1));
        let (mut sizes, mut actions, mut complete) = (Vec::new(), Vec::new(), Vec::new());
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
            application.on_read(now, size, &mut complete);
            sizes.push(size);
        }
        let read: Vec<u64> = complete.iter().map(|message| message.size.get()).collect();
        assert_eq!(read, sizes, "each is read to its end");
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

    fn read(text: &str) -> Result<Transfers, String> {
        use lasthop_keys::{Document, Keys as _};
        let table = format!("kind = \"transfers\"\n{text}").parse().expect("TOML");
        let document = Document::from_table("a flow", table, &[], TrafficKind::section());
        let kind = document.and_then(|document| TrafficKind::read(&document.top()));
        kind.map_err(|error| error.to_string()).map(|kind| match kind {
            TrafficKind::Transfers(transfers) => transfers,
            other => panic!("{other:?}"),
        })
    }

    fn arrivals(text: &str, until_s: u64) -> Vec<(Time, u64)> {
        let transfers = read(text).expect(text);
        let until = Time::ZERO + Span::from_secs(until_s);
        let arrivals = transfers.arrivals(Time::ZERO, until, &mut ChaCha8Rng::seed_from_u64(1)).expect("an open loop");
        let size = |kind: &TrafficKind| match kind {
            TrafficKind::Transfers(Transfers { pace: Pace::Once(size), .. }) => size.get(),
            other => panic!("{other:?}"),
        };
        arrivals.iter().map(|(at, kind)| (*at, size(kind))).collect()
    }

    #[test]
    fn arrivals_of_a_poisson_process_have_its_rate_and_as_much_variance_as_mean() {
        let all = arrivals("transfer_kib = 10\narrivals_per_s = 20", 1000);
        // 20,000 ± 5 · 141; of 1000 counts with mean 20, the variance is 20 ± 5 · 20 · sqrt(2 / 1000).
        assert!(all.len().abs_diff(20_000) < 710, "{}", all.len());
        let mut counts = vec![0.0; 1000];
        all.iter().for_each(|(at, _)| counts[at.as_secs_f64() as usize] += 1.0);
        let mean = counts.iter().sum::<f64>() / 1000.0;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 1000.0;
        assert!((variance - 20.0).abs() < 4.5, "{variance}");
        assert!(all.iter().all(|(_, size)| *size == 10_240) && all.is_sorted_by_key(|(at, _)| *at));
        let expected = read("transfer_kib = 10\narrivals_per_s = 20").expect("transfers");
        assert_eq!(expected.expected_arrivals(Time::ZERO, Time::ZERO + Span::from_secs(1000)), Some(20_000.0));
    }

    #[test]
    fn a_load_is_what_transfers_carry_on_the_mean() {
        // 1,711,250 bytes on the mean: 13.69 Mb/s of load are one in a second.
        let all = arrivals("transfer_sizes = \"web-search\"\narrivals_mbps = 13.69", 20_000);
        assert!((all.len() as f64 / 20_000.0 - 1.0).abs() < 0.04, "{}", all.len());
        let bits = all.iter().map(|(_, size)| 8.0 * *size as f64).sum::<f64>();
        // A deviation of the size is 4.3 MB: five of the mean of 20,000 are 9 %.
        assert!((bits / 20_000.0 / 13.69e6 - 1.0).abs() < 0.1, "{bits}");
    }

    #[test]
    fn the_rarest_arrivals_are_none() {
        for rarest in ["arrivals_per_s = 1e-300", "arrivals_mbps = 1e-300"] {
            assert_eq!(arrivals(&format!("transfer_kib = 1073741824\n{rarest}"), 10), [], "{rarest}");
        }
    }

    #[test]
    fn the_most_frequent_arrivals_are_a_number() {
        // A load of 100 Gb/s by the byte has 12.5 in a nanosecond, of which one is counted.
        let often = read("transfer_points = \"1:1\"\narrivals_mbps = 1e5").expect("transfers");
        let expected = often.expected_arrivals(Time::ZERO, Time::ZERO + Span::from_secs(1)).expect("an open loop");
        assert!((expected / 1e9 - 1.0).abs() < 1e-9, "{expected}");
    }

    #[test]
    fn times_and_sizes_are_those_that_are_given_until_the_end() {
        let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
        let all = arrivals("transfer_kib = 2\narrivals_s = \"0 0.5:1500 0.5 2\"", 2);
        assert_eq!(all, [(at(0), 2048), (at(500), 1500), (at(500), 2048)]);
        assert_eq!(arrivals("arrivals_s = \"0.25:10 1:20\"", 60), [(at(250), 10), (at(1000), 20)]);
        assert_eq!(arrivals("arrivals_s = \"0:1099511627776\"", 1), [(at(0), 1 << 40)]);
    }

    #[test]
    fn what_says_two_things_or_none_is_refused_with_its_key() {
        for (text, key, said) in [
            ("", "transfer_kib", "is not there"),
            ("arrivals_s = \"0.5 1:10\"", "transfer_kib", "is not there"),
            ("transfer_kib = 1\ntransfer_sizes = \"web-search\"", "transfer_sizes", "cannot be beside transfer_kib"),
            (
                "transfer_kib = 1\narrivals_per_s = 1\narrivals_mbps = 1",
                "arrivals_mbps",
                "cannot be beside arrivals_per_s",
            ),
            ("transfer_kib = 1\narrivals_s = \"2 1\"", "arrivals_s", "\"1\" goes back"),
            ("transfer_kib = 1\narrivals_s = \"1:x\"", "arrivals_s", "\"1:x\" is no arrival"),
            ("arrivals_s = \"1:1.5\"", "arrivals_s", "\"1:1.5\" is no arrival"),
            // One byte more than the largest transfer_kib, 2^30 KiB.
            ("arrivals_s = \"1:1099511627777\"", "arrivals_s", "whole bytes from 1 to 1099511627776"),
            ("transfer_points = \"10:0.5 20:0.9\"", "transfer_points", "point 2: 0.9 is the last share"),
            ("transfer_points = \"10\"", "transfer_points", "no point"),
            ("transfer_points = \"0:0.5 0:1\"", "transfer_points", "point 2: 0 bytes are the mean"),
            ("transfer_points = \"1099511627777:1\"", "transfer_points", "bytes from 0 to 1099511627776"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(key) && error.contains(said) && error.contains("accepted"), "{text}: {error}");
        }
    }
}
