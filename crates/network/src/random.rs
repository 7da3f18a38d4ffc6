//! Named random streams.
//!
//! One stream per source of randomness (the backoff of one station, the frame errors of another, the losses of the
//! path). Each is derived from the run's seed and the stream's name. So a new source changes no other, and two runs
//! with the same seed draw the same numbers. The key of a stream's ChaCha8 is SHA-256(seed, little-endian ‖ name).

use lasthop_units::Probability;
use rand::{Rng, RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

/// The source of all streams of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// The streams of the run with this seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The stream of this name, from its beginning. Same seed and name, same numbers.
    ///
    /// ```
    /// use lasthop_network::random::Streams;
    /// use rand::Rng;
    /// let streams = Streams::new(1);
    /// assert_eq!(streams.stream("traffic").next_u64(), streams.stream("traffic").next_u64());
    /// assert_ne!(streams.stream("traffic").next_u64(), streams.stream("start times").next_u64());
    /// ```
    pub fn stream(&self, name: &str) -> ChaCha8Rng {
        let mut hash = Sha256::new();
        hash.update(self.seed.to_le_bytes());
        hash.update(name.as_bytes());
        ChaCha8Rng::from_seed(hash.finalize().into())
    }
}

/// The number of each host in the names of its streams: its place among the hosts that are not idle. Idle hosts count
/// down from [`u16::MAX`], so one more of them, anywhere in the list, changes no other host's draws.
pub fn numbers(idle: impl IntoIterator<Item = bool>) -> Vec<u16> {
    let (mut busy, mut idle_ones) = (0..=u16::MAX, (0..=u16::MAX).rev());
    let mut next = |is_idle| if is_idle { idle_ones.next() } else { busy.next() };
    idle.into_iter().map(|is_idle| next(is_idle).expect("a network has at most 65535 hosts")).collect()
}

/// Draws whether an event of this probability happens. Probabilities 0 and 1 draw nothing.
#[inline]
pub(crate) fn happens(probability: Probability, stream: &mut ChaCha8Rng) -> bool {
    probability != Probability::ZERO && (probability == Probability::ONE || draw(probability, stream))
}

/// Draws from the standard normal distribution, by the polar method (G. Marsaglia and T. A. Bray, 1964).
pub(crate) fn normal(stream: &mut ChaCha8Rng) -> f64 {
    loop {
        let [x, y] = [0; 2].map(|_| 2.0 * stream.random::<f64>() - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * libm::log(square) / square).sqrt();
        }
    }
}

fn draw(probability: Probability, stream: &mut ChaCha8Rng) -> bool {
    // 53 random bits as a number in [0, 1), all of them exact in f64.
    let uniform = (stream.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    uniform < probability.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_the_seed_and_on_its_name() {
        let first = |seed, name| Streams::new(seed).stream(name).next_u64();
        assert_eq!(first(7, "path/loss"), first(7, "path/loss"));
        assert_ne!(first(7, "path/loss"), first(8, "path/loss"));
        assert_ne!(first(7, "path/loss"), first(7, "wifi/backoff/0"));
    }

    #[test]
    fn an_idle_host_changes_no_others_number() {
        assert_eq!(numbers([false, false]), [0, 1]);
        assert_eq!(numbers([true, false, true, false]), [65_535, 0, 65_534, 1]);
    }

    #[test]
    fn an_event_happens_as_often_as_its_probability_says() {
        let mut stream = Streams::new(1).stream("coin");
        let quarter = Probability::new(0.25).unwrap();
        // Binomial(100000, 1/4): mean 25000, standard deviation 137; five of them are 685.
        let heads = (0..100_000).filter(|_| happens(quarter, &mut stream)).count();
        assert!((24_315..=25_685).contains(&heads), "{heads}");
        assert!(!happens(Probability::ZERO, &mut stream));
        assert!(happens(Probability::ONE, &mut stream));
    }
}
