//! From what hosts have measured to a verdict.
//!
//! 1. A pair of blocks counts with the hosts that measured both. Each [`Figure`] is one number for each of its blocks.
//! 2. The effect is the mean over pairs of their difference; of times, of their logarithms: then it is a factor.
//! 3. [`Differences`] test it and give its 95 % interval; [`holm`] raises the p of all judged figures.
//! 4. A figure is better or worse where that p is at most 0.05, and the change at least [`Figure::least`]. So with no effect at all, a
//!    verdict comes in at most 5 % of trials.
//! 5. [`Verdict`]: of what is better and worse. A total that falls by at most [`PRICE`] is no harm where round trips get shorter.

use crate::block::Block;
use crate::differences::{Differences, holm};
use crate::plan::{Arm, Plan};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The chance of a verdict without an effect, at most.
pub(crate) const LEVEL: f64 = 0.05;
/// What the total of all hosts may lose where round trips get shorter.
pub(crate) const PRICE: f64 = 0.1;
/// Hosts that send and receive less than this together give nothing to judge, in Mb/s.
const LEAST_MBPS: f64 = 0.1;

/// What a host has measured in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The host: a random number.
    pub host: u32,
    /// What it has measured.
    pub block: Block,
}

/// A short connection to the trial's own server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The block in which it began, of its part that counts.
    pub block: u16,
    /// From its beginning until all was there, in ms.
    pub completion_ms: f64,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Payload that all hosts sent and received, in Mb/s.
    GoodputMbps,
    /// The 95 % quantile of a host's round trips, mean over hosts, in ms.
    RttP95Ms,
    /// Segments that were sent again, over all hosts, in %.
    RetransmittedPercent,
    /// The mean time of a short connection, in ms.
    CompletionMs,
}

/// What a figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shows {
    /// It is better under control.
    Better,
    /// It is worse.
    Worse,
    /// Neither can be told.
    Nothing,
}

/// The effect on a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The figure.
    pub figure: Figure,
    /// The pairs in which it was measured.
    pub pairs: usize,
    /// Free; of times, the geometric mean.
    pub free: f64,
    /// Under control.
    pub control: f64,
    /// The 95 % interval of `control`, beside this `free`, cut at 0; `None`: too few pairs for one.
    pub control_interval: Option<[f64; 2]>,
    /// The chance of such a difference without an effect.
    pub p: f64,
    /// The same, raised for the number of figures (Holm).
    pub p_raised: f64,
    /// The verdict on it.
    pub shows: Shows,
    /// The change that this trial would have seen in four of five cases: as a part of `free`, or for
    /// [`Figure::RetransmittedPercent`] in percent of segments. `None`: none.
    pub detectable: Option<f64>,
}

/// What a host got.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostOutcome {
    /// The host: a random number.
    pub host: u32,
    /// Blocks that count.
    pub blocks: usize,
    /// Payload sent and received, free, in Mb/s.
    pub free_mbps: f64,
    /// The same under control.
    pub control_mbps: f64,
    /// The 95 % quantile of its round trips, the mean over free blocks, in ms; `None`: it had none.
    pub free_rtt_p95_ms: Option<f64>,
    /// The same under control.
    pub control_rtt_p95_ms: Option<f64>,
}

/// The verdict of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Something is better, nothing worse.
    Helps,
    /// Something is worse, nothing better.
    Harms,
    /// Some is better, some worse.
    Mixed,
    /// No difference that chance does not explain.
    NoEffect,
    /// Hosts hardly sent or received.
    NoTraffic,
    /// So few pairs that no difference could have been told from chance.
    TooShort,
}

/// What a trial has found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// What was planned.
    pub plan: Plan,
    /// Pairs of blocks that count.
    pub pairs: usize,
    /// The effect on each figure that was measured.
    pub effects: Vec<Effect>,
    /// Each host.
    pub hosts: Vec<HostOutcome>,
}

impl Figure {
    /// Its name and unit in words.
    pub const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::GoodputMbps => ("goodput of all hosts", "Mb/s"),
            Self::RttP95Ms => ("p95 round trip", "ms"),
            Self::RetransmittedPercent => ("sent again", "%"),
            Self::CompletionMs => ("short connection", "ms"),
        }
    }

    const fn is_time(self) -> bool {
        matches!(self, Self::RttP95Ms | Self::CompletionMs)
    }

    /// The least change that is better or worse, however sure a smaller one is: as a part of the goodput, of the shorter of two times,
    /// or in percent of segments.
    pub const fn least(self) -> f64 {
        match self {
            Self::GoodputMbps => 0.02,
            Self::RttP95Ms | Self::CompletionMs => 0.1,
            Self::RetransmittedPercent => 0.5,
        }
    }

    /// [`Self::least`] on the scale of the differences.
    fn least_difference(self, free: f64) -> f64 {
        match self {
            Self::GoodputMbps => self.least() * free,
            Self::RttP95Ms | Self::CompletionMs => libm::log(1.0 + self.least()),
            Self::RetransmittedPercent => self.least(),
        }
    }

    /// Of some hosts' blocks; `None`: not measured.
    fn of(self, blocks: &[Block], probes: &[f64]) -> Option<f64> {
        let mean = |values: &[f64]| {
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64).filter(|mean| *mean > 0.0)
        };
        match self {
            Self::GoodputMbps => Some(blocks.iter().map(|block| block.goodput().as_mbps()).sum()),
            Self::RttP95Ms => {
                let rtts =
                    blocks.iter().filter(|block| block.rtts > 0).map(|block| f64::from(block.rtt_p95_us) / 1000.0);
                mean(&rtts.collect::<Vec<_>>())
            }
            Self::RetransmittedPercent => {
                let sum = |of: fn(&Block) -> u32| blocks.iter().map(|block| f64::from(of(block))).sum::<f64>();
                let segments = sum(|block| block.segments);
                // No more than all, whatever a host tells.
                (segments > 0.0).then(|| (100.0 * sum(|block| block.retransmitted) / segments).min(100.0))
            }
            Self::CompletionMs => mean(probes),
        }
    }
}

/// Judges what hosts have told, and the short connections of the one who began it.
pub fn judge(plan: &Plan, told: &[Told], probes: &[Probe]) -> Outcome {
    let is_whole = |told: &&Told| told.block.block < plan.blocks() && told.block.is_whole(plan);
    let blocks: BTreeMap<(u16, u32), Block> =
        told.iter().filter(is_whole).map(|told| ((told.block.block, told.host), told.block)).collect();
    let hosts: BTreeSet<u32> = blocks.keys().map(|(_, host)| *host).collect();
    // Each pair: the blocks of the hosts that measured both, free and under control.
    let of_pair = |pair: u16| {
        let [free, control] =
            if plan.arm(2 * pair) == Arm::Free { [2 * pair, 2 * pair + 1] } else { [2 * pair + 1, 2 * pair] };
        let both =
            hosts.iter().filter_map(|host| Some((*blocks.get(&(free, *host))?, *blocks.get(&(control, *host))?)));
        let (of_free, of_control): (Vec<Block>, Vec<Block>) = both.unzip();
        let probes =
            |block| probes.iter().filter(|probe| probe.block == block).map(|probe| probe.completion_ms).collect();
        (!of_free.is_empty()).then(|| [(of_free, probes(free)), (of_control, probes(control))])
    };
    type Pair = [(Vec<Block>, Vec<f64>); 2];
    let pairs: Vec<Pair> = (0..plan.pairs).filter_map(of_pair).collect();
    let figures = [Figure::GoodputMbps, Figure::RttP95Ms, Figure::RetransmittedPercent, Figure::CompletionMs];
    let measured: Vec<_> = figures.into_iter().filter_map(|figure| Effect::of(figure, &pairs)).collect();
    let raised = holm(&measured.iter().map(|(effect, _)| effect.p).collect::<Vec<_>>());
    let level = level_of(measured.len());
    let effects: Vec<Effect> = measured
        .into_iter()
        .zip(raised)
        .map(|((effect, differences), p_raised)| {
            let least = effect.figure.least_difference(effect.free);
            let matters = differences.mean().abs() >= least;
            effect.judged(p_raised, matters, differences.detectable(level, least))
        })
        .collect();
    let hosts = hosts.into_iter().map(|host| HostOutcome::of(plan, host, &blocks)).collect();
    Outcome { verdict: verdict(&effects), plan: *plan, pairs: pairs.len(), effects, hosts }
}

/// The level of each of so many figures that are judged together.
fn level_of(figures: usize) -> f64 {
    LEVEL / figures.max(1) as f64
}

/// The fewest pairs of blocks that can give a verdict on so many figures (Holm): 7 on three, 8 on four.
pub fn least_pairs(figures: usize) -> u16 {
    Differences::least_pairs(level_of(figures)) as u16
}

fn verdict(effects: &[Effect]) -> Verdict {
    let of = |figure| effects.iter().find(|effect| effect.figure == figure);
    let Some(goodput) = of(Figure::GoodputMbps).filter(|goodput| goodput.free.max(goodput.control) >= LEAST_MBPS)
    else {
        return Verdict::NoTraffic;
    };
    if goodput.pairs < usize::from(least_pairs(effects.len())) {
        return Verdict::TooShort;
    }
    let shows = |effect: &Effect, shows| effect.shows == shows;
    let is_shorter = effects.iter().any(|effect| effect.figure.is_time() && shows(effect, Shows::Better));
    let is_the_price = |effect: &Effect| {
        effect.figure == Figure::GoodputMbps && is_shorter && effect.control >= (1.0 - PRICE) * effect.free
    };
    let better = effects.iter().any(|effect| shows(effect, Shows::Better));
    let worse = effects.iter().any(|effect| shows(effect, Shows::Worse) && !is_the_price(effect));
    match (better, worse) {
        (true, false) => Verdict::Helps,
        (false, true) => Verdict::Harms,
        (true, true) => Verdict::Mixed,
        (false, false) => Verdict::NoEffect,
    }
}

impl Effect {
    /// Not judged yet; `None`: it was measured in no pair.
    fn of(figure: Figure, pairs: &[[(Vec<Block>, Vec<f64>); 2]]) -> Option<(Self, Differences)> {
        let value = |(blocks, probes): &(Vec<Block>, Vec<f64>)| figure.of(blocks, probes);
        let measured: Vec<[f64; 2]> =
            pairs.iter().filter_map(|[free, control]| Some([value(free)?, value(control)?])).collect();
        let to = |value: f64| if figure.is_time() { libm::log(value) } else { value };
        let back = |value: f64| if figure.is_time() { libm::exp(value) } else { value };
        let differences: Vec<f64> = measured.iter().map(|[free, control]| to(*control) - to(*free)).collect();
        let differences = Differences::of(&differences)?;
        let free = measured.iter().map(|[free, _]| to(*free)).sum::<f64>() / measured.len() as f64;
        let effect = Self {
            figure,
            pairs: measured.len(),
            free: back(free),
            control: back(free + differences.mean()),
            // No figure is below 0: the cut removes no possible value.
            control_interval: differences.interval(LEVEL).map(|limits| limits.map(|limit| back(free + limit).max(0.0))),
            p: differences.p(),
            p_raised: 1.0,
            shows: Shows::Nothing,
            detectable: None,
        };
        Some((effect, differences))
    }

    /// `matters`: the change is not less than [`Figure::least`]. `detectable`: on the scale of the differences.
    fn judged(self, p_raised: f64, matters: bool, detectable: Option<f64>) -> Self {
        let more_is_better = self.figure == Figure::GoodputMbps;
        let shows = match self.control.partial_cmp(&self.free) {
            _ if p_raised > LEVEL || !matters => Shows::Nothing,
            Some(std::cmp::Ordering::Greater) if more_is_better => Shows::Better,
            Some(std::cmp::Ordering::Less) if !more_is_better => Shows::Better,
            _ => Shows::Worse,
        };
        let detectable = detectable.map(|least| match self.figure {
            Figure::GoodputMbps => least / self.free,
            Figure::RetransmittedPercent => least,
            Figure::RttP95Ms | Figure::CompletionMs => libm::exp(least) - 1.0,
        });
        Self { p_raised, shows, detectable: detectable.filter(|least| least.is_finite()), ..self }
    }
}

impl HostOutcome {
    fn of(plan: &Plan, host: u32, blocks: &BTreeMap<(u16, u32), Block>) -> Self {
        let own: Vec<&Block> = blocks.iter().filter(|((_, of), _)| *of == host).map(|(_, block)| block).collect();
        let mean = |arm: Arm, value: fn(&Block) -> Option<f64>| {
            let values = own.iter().filter(|block| plan.arm(block.block) == arm).filter_map(|block| value(block));
            let values: Vec<f64> = values.collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let goodput = |arm| mean(arm, |block| Some(block.goodput().as_mbps())).unwrap_or(0.0);
        let rtt = |arm| mean(arm, |block| (block.rtts > 0).then(|| f64::from(block.rtt_p95_us) / 1000.0));
        Self {
            host,
            blocks: own.len(),
            free_mbps: goodput(Arm::Free),
            control_mbps: goodput(Arm::Control),
            free_rtt_p95_ms: rtt(Arm::Free),
            control_rtt_p95_ms: rtt(Arm::Control),
        }
    }
}
