//! What is drawn at random for each scenario of a study.
//!
//! Each draw has a stream of its own: of the number of the scenario and the draw's name. So a draw that is added,
//! removed or moved changes no other, and more scenarios begin with the ones before.

use crate::space::Level;
use lasthop_network::random::Streams;
use rand::Rng as _;
use toml::Value;

/// One draw, checked.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    pub(crate) name: String,
    /// The keys of a scenario that get the value.
    pub(crate) keys: Vec<String>,
    pub(crate) from: From,
    /// The probability that it is drawn.
    pub(crate) chance: f64,
    /// Draws before it, by index, each with the values of which it must have one.
    pub(crate) when: Vec<(usize, Vec<Level>)>,
}

/// What a value is drawn from.
#[derive(Clone, Debug)]
pub(crate) enum From {
    /// Values, each with its weight.
    Values(Vec<(Value, f64)>),
    /// A range of numbers, rounded to so many decimals.
    Range { from: f64, to: f64, logarithmic: bool, decimals: u8 },
}

/// The value of each draw in the scenario with this number; `None` where it is not drawn.
pub(crate) fn drawn(draws: &[Draw], scenario: u64) -> Vec<Option<Value>> {
    let streams = Streams::new(scenario);
    let mut values: Vec<Option<Value>> = Vec::with_capacity(draws.len());
    for draw in draws {
        let mut stream = streams.stream(&format!("draw/{}", draw.name));
        // 53 random bits as a number in [0, 1), all of them exact in f64.
        let mut uniform = || (stream.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let has = |(of, accepted): &(usize, Vec<Level>)| {
            values[*of].as_ref().is_some_and(|value| accepted.iter().any(|level| level.is(&Level::of(value))))
        };
        let is_drawn = uniform() < draw.chance && draw.when.iter().all(has);
        values.push(is_drawn.then(|| draw.from.at(uniform())));
    }
    values
}

impl From {
    /// The value at this share, in [0, 1), of the distribution.
    fn at(&self, share: f64) -> Value {
        match self {
            Self::Values(values) => {
                let mut left = share * values.iter().map(|(_, weight)| weight).sum::<f64>();
                let below = |(_, weight): &&(Value, f64)| {
                    left -= weight;
                    left < 0.0
                };
                // Rounding may leave nothing below; the last value that can be drawn is meant.
                let drawn = values.iter().find(below);
                let last = || values.iter().rfind(|(_, weight)| *weight > 0.0);
                drawn.or_else(last).expect("a checked draw has a value with a weight").0.clone()
            }
            Self::Range { from, to, logarithmic, decimals } => {
                let number =
                    if *logarithmic { from * (share * (to / from).ln()).exp() } else { from + share * (to - from) };
                let scale = 10_f64.powi(i32::from(*decimals));
                let number = (number * scale).round() / scale;
                if *decimals == 0 { Value::Integer(number as i64) } else { Value::Float(number) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(weights: &[f64]) -> From {
        From::Values(weights.iter().zip(0..).map(|(weight, value)| (Value::Integer(value), *weight)).collect())
    }

    #[test]
    fn weights_divide_the_whole_range() {
        let at = |share| values(&[1.0, 0.0, 3.0]).at(share);
        assert_eq!([0.0, 0.2499, 0.25, 0.999_999].map(at), [0, 0, 2, 2].map(Value::Integer));
        assert_eq!(values(&[1.0, 0.0]).at(1.0), Value::Integer(0));
    }

    #[test]
    fn a_logarithmic_range_has_equal_shares_for_equal_ratios() {
        let range = |logarithmic, decimals| From::Range { from: 1.0, to: 100.0, logarithmic, decimals };
        assert_eq!(range(true, 0).at(0.5), Value::Integer(10));
        assert_eq!(range(true, 1).at(0.0), Value::Float(1.0));
        assert_eq!(range(false, 1).at(0.5), Value::Float(50.5));
    }

    #[test]
    fn a_draw_happens_as_often_as_its_chance_says() {
        let draw = Draw { name: "a".into(), keys: vec![], from: values(&[1.0]), chance: 0.25, when: vec![] };
        // Binomial(10000, 1/4): mean 2500, standard deviation 43; five of them are 217.
        let count = (1..=10_000).filter(|scenario| drawn(std::slice::from_ref(&draw), *scenario)[0].is_some()).count();
        assert!((2_283..=2_717).contains(&count), "{count}");
    }
}
