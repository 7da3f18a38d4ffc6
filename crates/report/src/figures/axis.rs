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
        let highest = if highest > 0.0 { highest } else { 1.0 };
        let step = step_for(highest, ticks);
        Self::Linear { from: 0.0, to: (highest / step - 1e-9).ceil() * step }
    }

    /// Around these numbers, all above 0: logarithmic if they span more than a decade, else linear from 0.
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

    /// Round numbers on the axis, about `at_most` at most.
    pub(crate) fn ticks(self, at_most: usize) -> Vec<f64> {
        match self {
            Self::Linear { from, to } => {
                let step = step_for(to - from, at_most);
                let first = (from / step - 1e-9).ceil() as i64;
                let last = (to / step + 1e-9).floor() as i64;
                (first..=last).map(|count| count as f64 * step).collect()
            }
            Self::Log { from, to } => {
                let decades = from.log10().floor() as i32..=to.log10().ceil() as i32;
                let of = |factors: &'static [f64]| -> Vec<f64> {
                    let all = decades.clone().flat_map(|decade| factors.iter().map(move |f| f * 10_f64.powi(decade)));
                    all.filter(|tick| (from * 0.999..=to * 1.001).contains(tick)).collect()
                };
                let fits = |ticks: &Vec<f64>| ticks.len() <= at_most + 2;
                [of(&[1.0, 2.0, 5.0]), of(&[1.0, 3.0])].into_iter().find(fits).unwrap_or_else(|| of(&[1.0]))
            }
        }
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
    fn a_wide_span_is_drawn_by_ratios() {
        assert_eq!(Axis::around(256.0, 12_500.0, 5), Axis::Log { from: 200.0, to: 20_000.0 });
        assert_eq!(Axis::around(256.0, 480.0, 5), Axis::Linear { from: 0.0, to: 500.0 });
        // 200 to 20000 are two decades: 2000 is in the middle.
        assert!((Axis::Log { from: 200.0, to: 20_000.0 }.place(2_000.0) - 0.5).abs() < 1e-12);
    }
}
