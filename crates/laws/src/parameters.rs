//! What a law can be told beforehand: one table for each law, from which scenarios, the command line and the guide take
//! names, units, ranges and defaults. The order is that of the C struct.

use super::LawName;

/// One parameter of a law.
#[derive(Debug)]
pub struct Parameter {
    /// In scenarios and on the command line; the unit is the suffix.
    pub name: &'static str,
    /// How a number is handed to the law.
    pub unit: Unit,
    /// Lowest accepted, in the unit of the name.
    pub from: f64,
    /// Highest accepted.
    pub to: f64,
    /// What it is when left out.
    pub default: f64,
    /// What it does and where it comes from, for the guide.
    pub meaning: &'static str,
}

/// What a law, which knows whole numbers only, makes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds, in microseconds.
    Milliseconds,
    /// Seconds, in microseconds.
    Seconds,
    /// A probability, a factor or a ratio, in millionths.
    Ratio,
    /// A whole number.
    Count,
    /// 0 or 1.
    Flag,
}

impl Unit {
    const fn scale(self) -> f64 {
        match self {
            Self::Milliseconds => 1e3,
            Self::Seconds | Self::Ratio => 1e6,
            Self::Count | Self::Flag => 1.0,
        }
    }

    const fn is_whole(self) -> bool {
        matches!(self, Self::Count | Self::Flag)
    }
}

impl Parameter {
    /// What is accepted, in words.
    pub fn accepted(&self) -> String {
        match self.unit {
            Unit::Flag => "true, false".into(),
            Unit::Count => format!("a whole number from {} to {}", self.from, self.to),
            _ => format!("a number from {} to {}", self.from, self.to),
        }
    }
}

/// The parameters of one law, as it reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Parameters {
    values: [u32; Self::MAX],
}

/// A parameter that a law does not have, or cannot be set to.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParameterError {
    /// The law has no parameter of that name.
    #[error("{law} has no parameter {name:?}; it has {known}")]
    Unknown {
        /// The law.
        law: LawName,
        /// What was asked for.
        name: String,
        /// All that it has.
        known: String,
    },
    /// The value is out of range.
    #[error("{law}.{name} = {value}: accepted is {accepted}")]
    OutOfRange {
        /// The law.
        law: LawName,
        /// The parameter.
        name: &'static str,
        /// What was asked for.
        value: f64,
        /// What can be.
        accepted: String,
    },
}

impl Parameters {
    /// No law has more.
    pub const MAX: usize = 20;

    /// The defaults of a law.
    pub fn of(law: LawName) -> Self {
        let mut values = [0; Self::MAX];
        for (value, parameter) in values.iter_mut().zip(law.parameters()) {
            *value = raw(parameter, parameter.default);
        }
        Self { values }
    }

    /// As the law reads them: the values of [`LawName::parameters`] in its order, then zeros.
    pub const fn values(&self) -> &[u32; Self::MAX] {
        &self.values
    }

    /// Those that [`values`](Self::values) gave.
    pub const fn from_values(values: [u32; Self::MAX]) -> Self {
        Self { values }
    }

    /// A parameter in the unit of its name; flags are 0 and 1. `None`: `law` has none of that name.
    pub fn get(&self, law: LawName, name: &str) -> Option<f64> {
        let at = law.parameters().iter().position(|parameter| parameter.name == name)?;
        Some(f64::from(self.values[at]) / law.parameters()[at].unit.scale())
    }

    /// Sets a parameter, in the unit of its name; flags are 0 and 1.
    ///
    /// # Errors
    /// If `law` has no such parameter, or not of this value; nothing is changed then.
    pub fn set(&mut self, law: LawName, name: &str, value: f64) -> Result<(), ParameterError> {
        let Some(at) = law.parameters().iter().position(|parameter| parameter.name == name) else {
            let names: Vec<&str> = law.parameters().iter().map(|parameter| parameter.name).collect();
            let known = if names.is_empty() { "none".into() } else { names.join(", ") };
            return Err(ParameterError::Unknown { law, name: name.to_owned(), known });
        };
        let parameter = &law.parameters()[at];
        let whole = !parameter.unit.is_whole() || value.fract() == 0.0;
        if !(parameter.from..=parameter.to).contains(&value) || !whole {
            let accepted = parameter.accepted();
            return Err(ParameterError::OutOfRange { law, name: parameter.name, value, accepted });
        }
        self.values[at] = raw(parameter, value);
        Ok(())
    }
}

/// The ranges of the tables keep this far below 2^32.
fn raw(parameter: &Parameter, value: f64) -> u32 {
    (value * parameter.unit.scale()).round() as u32
}

impl LawName {
    /// The parameters of the law, in the order of its C struct.
    pub const fn parameters(self) -> &'static [Parameter] {
        match self {
            Self::NewReno | Self::Cubic | Self::CubicRfc9438 => &[],
            Self::Hd => HD,
            Self::Chd => CHD,
            Self::Cdg => CDG,
            Self::CdgLinux => CDG_LINUX,
            Self::Ucc => UCC,
            Self::Lastlink => LASTLINK,
        }
    }
}

const fn parameter(
    name: &'static str,
    unit: Unit,
    (from, to): (f64, f64),
    default: f64,
    meaning: &'static str,
) -> Parameter {
    Parameter { name, unit, from, to, default, meaning }
}

const QUEUE_MIN: Parameter = parameter(
    "queue_min_ms",
    Unit::Milliseconds,
    (0.0, 10_000.0),
    5.0,
    "q_min: no back-off up to this queueing delay (FreeBSD: 5).",
);

const QUEUE_THRESHOLD: Parameter = parameter(
    "queue_threshold_ms",
    Unit::Milliseconds,
    (0.0, 10_000.0),
    20.0,
    "q_th: the queueing delay of the highest probability; above it the delay counts as made by others (FreeBSD and [utsumi]: 20).",
);

const RTT_TICK: Parameter = parameter(
    "rtt_tick_ms",
    Unit::Milliseconds,
    (0.0, 100.0),
    1.0,
    "Tick of the clock that round trips are measured with (FreeBSD with hz = 1000: 1); 0 is exact.",
);

/// `struct lh_hd_parameters`.
const HD: &[Parameter] = &[
    QUEUE_MIN,
    QUEUE_THRESHOLD,
    parameter(
        "max_probability",
        Unit::Ratio,
        (0.0, 1.0),
        0.05,
        "p_max: the highest probability of a back-off, for each ACK (FreeBSD: 0.05).",
    ),
    RTT_TICK,
];

/// `struct lh_chd_parameters`.
const CHD: &[Parameter] = &[
    QUEUE_MIN,
    QUEUE_THRESHOLD,
    parameter(
        "max_probability",
        Unit::Ratio,
        (0.0, 1.0),
        0.5,
        "p_max: the highest probability of a back-off, for each round trip (FreeBSD: 0.5).",
    ),
    parameter(
        "use_max",
        Unit::Flag,
        (0.0, 1.0),
        1.0,
        "Go by the highest RTT of each round trip ([utsumi] (2)), not by the last.",
    ),
    parameter(
        "loss_fair",
        Unit::Flag,
        (0.0, 1.0),
        1.0,
        "Where others fill the queue, halve the shadow window at a loss, if it is larger than the window ([utsumi] (4)).",
    ),
    RTT_TICK,
];

/// `struct lh_cdg_parameters`.
const CDG: &[Parameter] = &[
    parameter(
        "backoff_scale_ms",
        Unit::Milliseconds,
        (0.1, 1000.0),
        3.0,
        "G: a round with the gradient g backs off with probability 1 - e^(-g/G), above 5 G always (FreeBSD's code: 3, its manual: 2).",
    ),
    parameter(
        "smoothing_rounds",
        Unit::Count,
        (1.0, 16.0),
        8.0,
        "a: over how many rounds gradients are means (FreeBSD: 8); 1 is none.",
    ),
    parameter(
        "beta_delay",
        Unit::Ratio,
        (0.01, 1.0),
        0.7,
        "What is left of the window after a back-off (FreeBSD: 0.7).",
    ),
    parameter(
        "beta_loss",
        Unit::Ratio,
        (0.01, 1.0),
        0.5,
        "What is left of it after a loss that is heeded, if the shadow window does not say more (FreeBSD and [utsumi] (9): 0.5).",
    ),
    parameter(
        "ineffectual_backoffs",
        Unit::Count,
        (0.0, 1000.0),
        5.0,
        "How many back-offs may not lower the delay before the next ones are left out: others fill the queue (FreeBSD: 5).",
    ),
    parameter("hold_backoffs", Unit::Count, (0.0, 1000.0), 5.0, "How many are left out then (FreeBSD: 5)."),
    parameter(
        "alpha_increase",
        Unit::Count,
        (0.0, 1000.0),
        0.0,
        "The growth per round in congestion avoidance begins at 0 and rises by one segment after each such number of rounds; 0: it is one segment (FreeBSD: 0).",
    ),
    parameter(
        "loss_tolerance",
        Unit::Flag,
        (0.0, 1.0),
        1.0,
        "A loss while the queue is not full leaves the window as it is (FreeBSD: always).",
    ),
    RTT_TICK,
];

/// `struct lh_cdg_linux_parameters`; the names are those of the module's own.
const CDG_LINUX: &[Parameter] = &[
    parameter(
        "backoff_factor",
        Unit::Count,
        (0.0, 100_000.0),
        42.0,
        "1000 / (G in ms · window_rounds), so that 42 and 8 are G = 2.98 ms (Linux: 42).",
    ),
    parameter(
        "window_rounds",
        Unit::Count,
        (1.0, 16.0),
        8.0,
        "Over how many rounds gradients are summed (Linux: 8; a power of two up to 256).",
    ),
    parameter(
        "backoff_beta",
        Unit::Ratio,
        (0.0, 1.0),
        0.707_031,
        "What is left of the window after a back-off (Linux: 724/1024, the root of a half).",
    ),
    parameter(
        "use_ineff",
        Unit::Count,
        (0.0, 1000.0),
        5.0,
        "How many back-offs may not lower the delay before there are none until it falls; 0: no limit (Linux: 5).",
    ),
    parameter("use_shadow", Unit::Flag, (0.0, 1.0), 1.0, "Losses reduce to half the shadow window (Linux: true)."),
    parameter(
        "use_tolerance",
        Unit::Flag,
        (0.0, 1.0),
        0.0,
        "A loss while the queue is not full leaves the window as it is (Linux: false).",
    ),
    parameter(
        "hystart_detect",
        Unit::Count,
        (0.0, 3.0),
        3.0,
        "How slow start ends beside back-offs and losses: 1 at a train of ACKs, 2 at a risen delay, 3 at either, 0 at neither (Linux: 3).",
    ),
];

/// `struct lh_ucc_parameters`.
const UCC: &[Parameter] = &[
    parameter(
        "alpha",
        Unit::Ratio,
        (0.0, 1.0),
        0.99,
        "Above this utilisation a loss halves the window ([utsumi] §4: 0.99); 1 never does, 0 does if any sample found a queue.",
    ),
    parameter(
        "granularity_ms",
        Unit::Milliseconds,
        (0.0, 1_000.0),
        0.0,
        "Steps in which both clocks are read for the one-way delay; 0, or less than their tick: as they are.",
    ),
    parameter(
        "tolerance_ms",
        Unit::Milliseconds,
        (0.0, 1_000.0),
        1.0,
        "How far above the lowest one-way delay another still counts as the lowest. The difference of two clocks with ticks of 1 ms is a tick more or less for one and the same delay; with exact clocks half a packet's time on the bottleneck is enough.",
    ),
    parameter(
        "minimum_expiry_s",
        Unit::Seconds,
        (0.0, 3_600.0),
        0.0,
        "The lowest one-way delay is of the last one to two periods of this length; 0 keeps it for good ([utsumi] names no period).",
    ),
    parameter(
        "per_segment",
        Unit::Flag,
        (0.0, 1.0),
        0.0,
        "An ACK counts as many samples as it acknowledges segments, not as one.",
    ),
    parameter(
        "first_loss_halves",
        Unit::Flag,
        (0.0, 1.0),
        0.0,
        "The first loss, which ends slow start, is not judged.",
    ),
    parameter(
        "keep_slow_start",
        Unit::Flag,
        (0.0, 1.0),
        0.0,
        "A loss that leaves the window as it is does not end slow start either.",
    ),
];

/// `struct lh_lastlink_parameters`.
const LASTLINK: &[Parameter] = &[
    parameter(
        "cubic",
        Unit::Flag,
        (0.0, 1.0),
        0.0,
        "Build on CUBIC, not on NewReno ([wu]: NewReno). For connections that begin from now on.",
    ),
    parameter(
        "max_cwnd",
        Unit::Flag,
        (0.0, 1.0),
        1.0,
        "Max Cwnd Tuning ([wu] §3.1): no growth at or above the product of the reported bandwidth and the RTT.",
    ),
    parameter(
        "initial_window",
        Unit::Flag,
        (0.0, 1.0),
        1.0,
        "Initial Cwnd & SSThresh Tuning ([wu] §3.2): begin with that product.",
    ),
    parameter(
        "errors",
        Unit::Flag,
        (0.0, 1.0),
        1.0,
        "The packet error rate heuristic ([wu] §3.3): a loss does not reduce the window while the connection loses no larger part than the reported error rate.",
    ),
    parameter(
        "max_cwnd_srtt",
        Unit::Flag,
        (0.0, 1.0),
        0.0,
        "The RTT of Max Cwnd Tuning is the smoothed one, which contains the connection's own queue, not the lowest ([wu] says RTT).",
    ),
    parameter(
        "count_present_loss",
        Unit::Flag,
        (0.0, 1.0),
        1.0,
        "N_retr counts what is about to be retransmitted ([wu] leaves it open).",
    ),
    parameter(
        "count_retransmissions",
        Unit::Flag,
        (0.0, 1.0),
        1.0,
        "N_tx counts retransmissions ([wu]: segments transmitted).",
    ),
    parameter(
        "timeouts_too",
        Unit::Flag,
        (0.0, 1.0),
        0.0,
        "A timeout may be taken for an error as well: slow start then returns to the window of before ([wu] leaves it open).",
    ),
    parameter(
        "least_segments",
        Unit::Count,
        (0.0, 1000.0),
        10.0,
        "Neither Cwnd_max nor the initial window is smaller: RFC 6928's initial window; 0: 2 segments, RFC 5681's least ssthresh ([wu]: 1).",
    ),
    parameter(
        "initial_max_segments",
        Unit::Count,
        (0.0, 1_000_000.0),
        60.0,
        "The initial window is never larger; 0: no limit ([wu]: none).",
    ),
    parameter(
        "error_max",
        Unit::Ratio,
        (0.0, 1.0),
        0.02,
        "The reported error rate counts no further; 0: no limit ([wu]: none).",
    ),
    parameter(
        "error_deviations",
        Unit::Count,
        (0.0, 10.0),
        3.0,
        "By how many standard deviations of chance the losses may exceed what the error rate makes ([wu]: 0).",
    ),
    parameter(
        "memory_segments",
        Unit::Count,
        (0.0, 1_000_000_000.0),
        1000.0,
        "How far N_tx and N_retr reach back: this number of segments to twice as many; 0: to the beginning ([wu]: 0).",
    ),
    parameter(
        "ignored_max",
        Unit::Count,
        (0.0, 1_000_000.0),
        7.0,
        "How many losses in a row may be ignored before the next one is heeded; 0: no limit ([wu]: none).",
    ),
    parameter(
        "queue_ratio",
        Unit::Ratio,
        (0.0, 1000.0),
        2.0,
        "A loss is heeded while the smoothed RTT is more than this multiple of the lowest; 0: it does not matter ([wu]: 0).",
    ),
    parameter(
        "errors_end_slow_start",
        Unit::Flag,
        (0.0, 1.0),
        1.0,
        "A loss that is ignored ends slow start all the same ([wu]: nothing but the retransmission).",
    ),
    parameter(
        "achieved_headroom",
        Unit::Ratio,
        (0.0, 1000.0),
        2.0,
        "Max Cwnd Tuning takes the reported bandwidth for no more than this multiple of the highest rate of a round trip, outside slow start; 0: for what it is ([wu]: 0).",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_in_its_range_and_read_back() {
        for law in LawName::ALL {
            let mut parameters = Parameters::of(law);
            assert!(law.parameters().len() <= Parameters::MAX);
            for parameter in law.parameters() {
                let read = parameters.get(law, parameter.name).expect("it is there");
                assert!((read - parameter.default).abs() < 1e-6, "{law}.{}", parameter.name);
                for end in [parameter.from, parameter.to] {
                    parameters.set(law, parameter.name, end).expect("the ends are accepted");
                    assert!((parameters.get(law, parameter.name).expect("it is there") - end).abs() < 1e-6);
                    assert!(end * parameter.unit.scale() <= f64::from(u32::MAX), "{law}.{}", parameter.name);
                }
                let before = parameters;
                for wrong in [parameter.from - 1.0, parameter.to * 2.0 + 1.0, f64::NAN] {
                    parameters.set(law, parameter.name, wrong).expect_err("out of range");
                }
                assert_eq!(parameters, before);
            }
        }
    }

    #[test]
    fn a_mistake_says_what_is_accepted() {
        let mut parameters = Parameters::of(LawName::Hd);
        let message = |result: Result<(), ParameterError>| result.expect_err("a mistake").to_string();
        assert_eq!(
            message(parameters.set(LawName::Hd, "alpha", 1.0)),
            r#"hd has no parameter "alpha"; it has queue_min_ms, queue_threshold_ms, max_probability, rtt_tick_ms"#
        );
        assert_eq!(
            message(parameters.set(LawName::Hd, "max_probability", 1.5)),
            "hd.max_probability = 1.5: accepted is a number from 0 to 1"
        );
        assert_eq!(
            message(parameters.set(LawName::NewReno, "alpha", 1.0)),
            r#"newreno has no parameter "alpha"; it has none"#
        );
    }
}
