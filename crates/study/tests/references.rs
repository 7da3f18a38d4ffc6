//! The points of references that no paper prints are computed here.

use lasthop_network::random::Streams;
use lasthop_study::Study;
use rand::RngExt as _;

const LOSSES: usize = 20_000;

/// Packets from one loss to the next where each packet is lost with probability p: geometric, by inversion.
fn gap(draw: f64, p: f64) -> f64 {
    (1.0 - draw).ln() / (1.0 - p).ln()
}

/// The mean window over time of a sender whose round trips begin with `window(state)` segments and whose state changes by
/// `grow` after each of them and by `lose` after a loss.
fn mean_window<S>(p: f64, mut state: S, window: fn(&S) -> f64, grow: fn(&mut S), lose: fn(&mut S)) -> f64 {
    let mut stream = Streams::new(1).stream("losses");
    let (mut area, mut time) = (0.0, 0.0);
    for _ in 0..LOSSES {
        let mut left = gap(stream.random::<f64>(), p);
        loop {
            let segments = window(&state);
            let share = (left / segments).min(1.0);
            area += segments * share;
            time += share;
            if share < 1.0 {
                break;
            }
            left -= segments;
            grow(&mut state);
        }
        lose(&mut state);
    }
    area / time
}

/// CUBIC as RFC 9438 has it, a step for each round trip.
struct Cubic {
    rtt: f64,
    /// Since the last loss.
    t: f64,
    w_max: f64,
    cwnd_prior: f64,
    cwnd_epoch: f64,
    w_est: f64,
}

const C: f64 = 0.4;
const BETA: f64 = 0.7;

impl Cubic {
    /// W_cubic(t) = C (t − K)³ + W_max, K = cbrt((W_max − cwnd_epoch)/C); not under W_est (§§4.2, 4.3).
    fn window(&self) -> f64 {
        let k = ((self.w_max - self.cwnd_epoch) / C).cbrt();
        (C * (self.t - k).powi(3) + self.w_max).max(self.w_est)
    }

    fn grow(&mut self) {
        self.t += self.rtt;
        // §4.3: α_cubic = 3(1 − β)/(1 + β) until W_est reaches cwnd_prior, then 1.
        self.w_est += if self.w_est < self.cwnd_prior { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
    }

    fn lose(&mut self) {
        let window = self.window();
        self.cwnd_prior = window;
        // §4.7, fast convergence.
        self.w_max = if window < self.w_max { window * (1.0 + BETA) / 2.0 } else { window };
        self.cwnd_epoch = (BETA * window).max(2.0);
        self.w_est = self.cwnd_epoch;
        self.t = 0.0;
    }
}

fn cubic(rtt: f64, p: f64) -> f64 {
    let start = Cubic { rtt, t: 0.0, w_max: 20.0, cwnd_prior: 20.0, cwnd_epoch: 14.0, w_est: 14.0 };
    mean_window(p, start, Cubic::window, Cubic::grow, Cubic::lose)
}

/// AIMD(1, 0.5).
fn reno(p: f64) -> f64 {
    mean_window(p, 10.0, |window| *window, |window| *window += 1.0, |window| *window = (*window / 2.0).max(1.0))
}

fn cubic_study() -> Study {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/validation/cubic-response.toml");
    Study::load(std::path::Path::new(file)).expect("the study")
}

/// What a reference says at a loss and a round trip, as the study draws it.
fn points(study: &Study, label: &str) -> Vec<(f64, f64, f64)> {
    let text = &study.text;
    let table: toml::Table = text.parse().expect("TOML");
    let references = table["figures"][0]["reference"].as_array().expect("references");
    let mut points = Vec::new();
    for reference in references.iter().filter(|reference| reference["label"].as_str() == Some(label)) {
        let rtt = reference["where"]["rtt"].as_integer().expect("a round trip") as f64 / 1e3;
        for point in reference["points"].as_array().expect("points") {
            let y = point[1].as_float().or_else(|| point[1].as_integer().map(|y| y as f64)).expect("a number");
            points.push((rtt, point[0].as_float().expect("a loss"), y));
        }
    }
    points
}

#[test]
fn the_points_for_random_losses_are_what_the_equations_give() {
    let points = points(&cubic_study(), "random losses, CUBIC");
    assert_eq!(points.len(), 8);
    for (rtt, p, said) in points {
        let computed = cubic(rtt, p);
        println!("RTT {rtt} s, p {p}: {computed:.1}, the study says {said}");
        assert!((computed / said - 1.0).abs() < 0.02, "RTT {rtt} s, p {p}: {computed}, not {said}");
    }
    for p in [1e-3, 1e-4, 1e-5] {
        let constant = reno(p) * p.sqrt();
        assert!((constant / 1.31 - 1.0).abs() < 0.02, "p {p}: {constant}");
    }
}

/// With losses at equal distances the same integration gives the tables of the RFC: it is the same model.
#[test]
fn with_losses_at_equal_distances_the_equations_give_the_tables() {
    let equal = |rtt: f64, p: f64| {
        let mut state = Cubic { rtt, t: 0.0, w_max: 20.0, cwnd_prior: 20.0, cwnd_epoch: 14.0, w_est: 14.0 };
        let (mut area, mut time) = (0.0, 0.0);
        for loss in 0..400 {
            let mut left = 1.0 / p;
            loop {
                let segments = state.window();
                let share = (left / segments).min(1.0);
                if loss >= 200 {
                    area += segments * share;
                    time += share;
                }
                if share < 1.0 {
                    break;
                }
                left -= segments;
                state.grow();
            }
            state.lose();
        }
        area / time
    };
    // RFC 9438 Table 1, RTT 0.1 s: 187 at 1e-4, 1054 at 1e-5; Table 2, RTT 0.01 s: 120 and 379.
    for (rtt, p, table) in [(0.1, 1e-4, 187.0), (0.1, 1e-5, 1_054.0), (0.01, 1e-4, 120.0), (0.01, 1e-5, 379.0)] {
        let computed = equal(rtt, p);
        println!("RTT {rtt} s, p {p}: {computed:.1}, the table says {table}");
        assert!((computed / table - 1.0).abs() < 0.05, "RTT {rtt} s, p {p}: {computed}, not {table}");
    }
}
