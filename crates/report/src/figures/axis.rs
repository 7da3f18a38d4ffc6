//! An axis: the positions of numbers on it, and its ticks.

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Axis {
    /// A linear scale.
    Linear {
        /// The number at the beginning.
        from: f64,
        /// The number at the end.
        to: f64,
    },
    /// A logarithmic scale; both ends are above 0.
    Log {
        /// The number at the beginning.
        from: f64,
        /// The number at the end.
        to: f64,
    },
}

/// The scale and both ends: `log 200 10000`.
impl std::fmt::Display for Axis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Linear { from, to } => write!(f, "linear {from} {to}"),
            Self::Log { from, to } => write!(f, "log {from} {to}"),
        }
    }
}

impl Axis {
    /// From 0 to a round number of at least `highest`.
    pub(crate) fn from_zero(highest: f64, ticks: usize) -> Self {
        Self::spanning(0.0, highest, ticks)
    }

    /// Between round numbers, around 0, `lowest` and `highest`.
    pub(crate) fn spanning(lowest: f64, highest: f64, ticks: usize) -> Self {
        let [lowest, highest] = [lowest.min(0.0), highest.max(0.0)];
        let highest = if highest > lowest { highest } else { 1.0 };
        let step = step_for(highest - lowest, ticks);
        let [below, above] = [-lowest, highest].map(|end| (end / step - 1e-9).ceil() * step);
        Self::Linear { from: 0.0 - below, to: above }
    }

    /// Around these numbers: logarithmic if all are above 0 and they span more than a decade, else linear from 0.
    pub(crate) fn around(lowest: f64, highest: f64, ticks: usize) -> Self {
        if lowest > 0.0 && highest / lowest > 10.0 {
            Self::Log { from: round_down(lowest), to: round_up(highest) }
        } else {
            Self::from_zero(highest, ticks)
        }
    }

    /// The position of a number: 0 at the beginning, 1 at the end, clamped to the axis.
    pub(crate) fn place(self, number: f64) -> f64 {
        let place = match self {
            Self::Linear { from, to } => (number - from) / (to - from),
            Self::Log { from, to } => (number.max(from) / from).ln() / (to / from).ln(),
        };
        place.clamp(0.0, 1.0)
    }

    pub(crate) const fn ends(self) -> (f64, f64) {
        match self {
            Self::Linear { from, to } | Self::Log { from, to } => (from, to),
        }
    }

    /// Whether a number is on the axis, and not beyond its begin or its end.
    pub(crate) fn covers(self, number: f64) -> bool {
        let (from, to) = self.ends();
        let room = match self {
            Self::Linear { .. } => (to - from) * 1e-9,
            Self::Log { .. } => from * 1e-9,
        };
        (from - room..=to + to.abs() * 1e-9).contains(&number)
    }

    /// Round numbers on the axis, about `at_most` at most.
    pub(crate) fn ticks(self, at_most: usize) -> Vec<f64> {
        let (from, to) = self.ends();
        let linear = || -> Vec<f64> {
            let of = |at_most: usize| -> Vec<f64> {
                let step = step_for(to - from, at_most);
                let first = (from / step - 1e-9).ceil() as i64;
                let last = (to / step + 1e-9).floor() as i64;
                (first..=last).map(|count| count as f64 * step).collect()
            };
            // One tick says nothing of the scale.
            (at_most..at_most + 4).map(of).find(|ticks| ticks.len() > 1).unwrap_or_default()
        };
        if !self.is_log() {
            return linear();
        }
        let decades = from.log10().floor() as i32..=to.log10().ceil() as i32;
        let of = |factors: &'static [f64], every: usize| -> Vec<f64> {
            let decades = decades.clone().filter(|decade| decade.rem_euclid(every as i32) == 0);
            let all = decades.flat_map(|decade| factors.iter().map(move |f| f * 10_f64.powi(decade)));
            all.filter(|tick| (from * 0.999..=to * 1.001).contains(tick)).collect()
        };
        let fits = |ticks: &Vec<f64>| ticks.len() <= at_most + 2;
        let every_decade = [of(&[1.0, 2.0, 5.0], 1), of(&[1.0, 3.0], 1)].into_iter().find(fits);
        let ticks = every_decade.unwrap_or_else(|| {
            let mut some_decades = (1..=decades.clone().count()).map(|every| of(&[1.0], every));
            some_decades.find(|ticks| ticks.len() <= at_most.max(1)).unwrap_or_default()
        });
        // Within a decade, ratios have few round numbers.
        if ticks.len() < 3 && to / from < 10.0 { linear() } else { ticks }
    }

    pub(crate) const fn is_log(self) -> bool {
        matches!(self, Self::Log { .. })
    }
}

/// 1, 2 or 5 times a power of ten: the range then has about `ticks` steps at most.
fn step_for(range: f64, ticks: usize) -> f64 {
    let rough = range / ticks.max(1) as f64;
    let decade = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * decade >= rough * 0.999).unwrap_or(10.0);
    factor * decade
}

fn round_down(number: f64) -> f64 {
    let decade = 10_f64.powf(number.log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|factor| factor * decade).find(|round| *round <= number * 1.001).unwrap_or(decade)
}

fn round_up(number: f64) -> f64 {
    let decade = 10_f64.powf(number.log10().floor());
    let round = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * decade);
    round.into_iter().find(|round| *round >= number * 0.999).unwrap_or(10.0 * decade)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_both_ends() {
        assert_eq!(Axis::from_zero(19.3, 5), Axis::Linear { from: 0.0, to: 20.0 });
        assert_eq!(Axis::from_zero(19.3, 5).ticks(5), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(Axis::from_zero(0.0, 5).ticks(5).last(), Some(&1.0));
        assert_eq!(Axis::Log { from: 200.0, to: 10_000.0 }.ticks(6), [200.0, 500.0, 1e3, 2e3, 5e3, 1e4]);
        assert_eq!(Axis::Log { from: 200.0, to: 20_000.0 }.ticks(4), [300.0, 1e3, 3e3, 1e4]);
    }

    #[test]
    fn ticks_are_at_least_two_and_few_whatever_the_axis_spans() {
        for (from, to) in
            [(1e-3, 1e6), (1e-300, 1e300), (1.0, 10.0), (41.7, 48.3), (0.2, 0.5), (9.0, 11.0), (5.0, 55.0)]
        {
            for at_most in [3, 5, 8, 12] {
                let ticks = Axis::Log { from, to }.ticks(at_most);
                assert!((2..=at_most + 3).contains(&ticks.len()), "{from} to {to}, {at_most}: {ticks:?}");
                assert!(
                    ticks.iter().all(|tick| Axis::Log { from: from * 0.998, to: to * 1.002 }.covers(*tick)),
                    "{ticks:?}"
                );
            }
        }
        assert_eq!(Axis::Log { from: 1e-3, to: 1e6 }.ticks(5), [1e-2, 1.0, 1e2, 1e4, 1e6]);
    }

    #[test]
    fn numbers_below_0_have_room_and_0_is_on_the_axis() {
        assert_eq!(Axis::spanning(-7.0, 19.3, 5), Axis::Linear { from: -10.0, to: 20.0 });
        assert_eq!(Axis::spanning(-7.0, -3.0, 5), Axis::Linear { from: -8.0, to: 0.0 });
        assert_eq!(Axis::spanning(0.0, 0.0, 5), Axis::Linear { from: 0.0, to: 1.0 });
        let log = Axis::Log { from: 1.0, to: 100.0 };
        assert!(log.covers(1.0) && log.covers(100.0) && !log.covers(0.0) && !log.covers(-5.0) && !log.covers(101.0));
    }

    #[test]
    fn a_wide_span_is_drawn_by_ratios() {
        assert_eq!(Axis::around(256.0, 12_500.0, 5), Axis::Log { from: 200.0, to: 20_000.0 });
        assert_eq!(Axis::around(256.0, 480.0, 5), Axis::Linear { from: 0.0, to: 500.0 });
        // 200 to 20000 are two decades: 2000 is in the middle.
        assert!((Axis::Log { from: 200.0, to: 20_000.0 }.place(2_000.0) - 0.5).abs() < 1e-12);
    }
}
