//! Trials drawn at random, of which the truth is known: how often is a verdict false, and is an effect found?
#![allow(missing_docs)]

use lasthop_trial::{Arm, Block, Figure, Outcome, Plan, Shows, Told, Verdict, judge};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// What control does: a factor on each.
#[derive(Clone, Copy)]
struct Effect {
    goodput: f64,
    rtt: f64,
    /// The share of blocks in which something else takes half of the goodput.
    bursts: f64,
}

const NONE: Effect = Effect { goodput: 1.0, rtt: 1.0, bursts: 0.1 };

/// About normal: a sum of uniform numbers, mean 0, deviation 1.
fn noise(rng: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

/// A trial of some hosts over a network that drifts: blocks that follow each other are alike.
fn drawn(seed: u32, pairs: u16, effect: Effect) -> Outcome {
    let plan = Plan { id: seed, seed, pairs, block_s: 60 };
    let mut rng = ChaCha8Rng::seed_from_u64(!u64::from(seed));
    let mut drift = 0.0;
    let mut told = Vec::new();
    for block in 0..plan.blocks() {
        drift = 0.8 * drift + 0.2 * noise(&mut rng);
        let busy: f64 = if rng.random::<f64>() < effect.bursts { 0.5 } else { 1.0 };
        let under = plan.arm(block) == Arm::Control;
        let (goodput, rtt) = if under { (effect.goodput, effect.rtt) } else { (1.0, 1.0) };
        for host in 0..4 {
            let mbps = (5.0 * goodput * busy * (1.0 + 0.1 * drift + 0.05 * noise(&mut rng))).max(0.0);
            let rtt_ms = 300.0 * rtt * (0.3 * drift + 0.2 * noise(&mut rng)).exp();
            let segments = (mbps * 3000.0) as u32 + 1;
            told.push(Told {
                host,
                block: Block {
                    block,
                    lasted_ms: 40_000,
                    sent_bytes: (mbps * 5e6) as u64,
                    rtt_p95_us: (1000.0 * rtt_ms) as u32,
                    rtts: 80,
                    segments,
                    retransmitted: (f64::from(segments) * 0.01 * (1.0 + 0.5 * rng.random::<f64>())) as u32,
                    ..Block::default()
                },
            });
        }
    }
    judge(&plan, &told, &[])
}

fn verdicts(trials: u32, pairs: u16, effect: Effect, of: impl Fn(&Outcome) -> bool) -> f64 {
    (0..trials).filter(|seed| of(&drawn(*seed, pairs, effect))).count() as f64 / f64::from(trials)
}

const IS_VERDICT: fn(&Outcome) -> bool =
    |outcome| matches!(outcome.verdict, Verdict::Helps | Verdict::Harms | Verdict::Mixed);

#[test]
fn without_an_effect_at_most_five_percent_of_trials_give_a_verdict() {
    // 2000 trials have a standard error of 0.0049 at 0.05: three of them are allowed.
    let share = verdicts(2000, 10, NONE, IS_VERDICT);
    assert!(share <= 0.05 + 3.0 * 0.0049, "{share}");
    assert!(share > 0.01, "a test that never speaks is none: {share}");
    // With the fewest pairs that can give one.
    let share = verdicts(2000, 7, NONE, IS_VERDICT);
    assert!(share <= 0.05 + 3.0 * 0.0049 && share > 0.01, "{share}");
    // And where subsets are drawn, not all looked at: 100 trials, 0.022.
    let share = verdicts(100, 20, NONE, IS_VERDICT);
    assert!(share <= 0.05 + 3.0 * 0.022, "{share}");
}

#[test]
fn an_effect_as_of_ten_uploads_is_found_in_every_trial_of_ten_pairs() {
    let is_shorter =
        |outcome: &Outcome| outcome.effects.iter().any(|of| of.figure == Figure::RttP95Ms && of.shows == Shows::Better);
    let effect = Effect { goodput: 0.94, rtt: 0.1, bursts: 0.1 };
    assert_eq!(verdicts(200, 10, effect, is_shorter), 1.0);
    let of = |verdict| move |outcome: &Outcome| outcome.verdict == verdict;
    // Now and then the total seems to fall by more than the price that is allowed.
    assert!(verdicts(100, 10, Effect { bursts: 0.0, ..effect }, of(Verdict::Helps)) >= 0.95);
    // The same the other way round is harm; and shorter round trips that cost half of the total are both.
    // But for a false word on the total.
    assert!(verdicts(100, 10, Effect { rtt: 10.0, ..NONE }, of(Verdict::Harms)) >= 0.9);
    assert!(verdicts(100, 10, Effect { goodput: 0.5, rtt: 0.1, bursts: 0.0 }, of(Verdict::Mixed)) >= 0.95);
}

#[test]
fn the_interval_has_the_effect_in_it_in_nineteen_of_twenty_trials() {
    // It is the interval of one figure, of all trials: 1000 have a standard error of 0.0069.
    let covered = verdicts(1000, 10, Effect { rtt: 0.5, ..NONE }, |outcome| {
        let rtt = outcome.effects.iter().find(|effect| effect.figure == Figure::RttP95Ms).expect("it was measured");
        let [low, high] = rtt.control_interval.expect("ten pairs");
        low <= 0.5 * rtt.free && 0.5 * rtt.free <= high
    });
    assert!((0.95 - 3.0 * 0.0069..=0.95 + 3.0 * 0.0069).contains(&covered), "{covered}");
}

#[test]
fn what_would_have_been_seen_is_seen_in_about_four_of_five_trials() {
    let of_rtt = |outcome: &Outcome| {
        outcome.effects.iter().find(|effect| effect.figure == Figure::RttP95Ms).expect("it was measured").clone()
    };
    let least: Vec<f64> = (0..200).map(|seed| of_rtt(&drawn(seed, 10, NONE)).detectable.expect("ten pairs")).collect();
    let least = least.iter().sum::<f64>() / least.len() as f64;
    let seen = verdicts(500, 10, Effect { rtt: 1.0 + least, ..NONE }, |outcome| {
        outcome.effects.iter().any(|effect| effect.figure == Figure::RttP95Ms && effect.shows == Shows::Worse)
    });
    assert!((0.7..=0.95).contains(&seen), "{seen} at {least}");
}

#[test]
fn few_pairs_give_no_verdict_however_great_the_effect_and_no_traffic_none_either() {
    let outcome = drawn(1, 5, Effect { goodput: 0.5, rtt: 0.01, ..NONE });
    assert_eq!(outcome.verdict, Verdict::TooShort);
    assert!(
        outcome.sentence().contains("5 pairs of blocks count, and 7 are needed, 14 minutes"),
        "{}",
        outcome.sentence()
    );
    assert_eq!(drawn(1, 10, Effect { goodput: 0.0, ..NONE }).effects.len(), 3);
    let plan = Plan { id: 1, seed: 1, pairs: 10, block_s: 60 };
    assert_eq!(judge(&plan, &[], &[]).verdict, Verdict::NoTraffic);
}

#[test]
fn no_interval_reaches_below_nothing() {
    // Free, a host sends 1 to 8 of 10,000 segments again in its pairs; under control none. The greatest of the differences is
    // twice as far from 0 as their mean, so that the interval of what control sends again would begin below 0.
    let plan = Plan { id: 1, seed: 1, pairs: 8, block_s: 60 };
    let told = (0..plan.blocks()).map(|block| {
        let again = if plan.arm(block) == Arm::Free { u32::from(block / 2) + 1 } else { 0 };
        let block = Block {
            block,
            lasted_ms: 20_000,
            sent_bytes: 5_000_000,
            segments: 10_000,
            retransmitted: again,
            ..Block::default()
        };
        Told { host: 1, block }
    });
    let outcome = judge(&plan, &told.collect::<Vec<_>>(), &[]);
    let again = outcome.effects.iter().find(|of| of.figure == Figure::RetransmittedPercent).expect("it was measured");
    let [low, high] = again.control_interval.expect("eight pairs");
    assert!(low == 0.0 && high > 0.0 && again.control.abs() < 1e-9, "{again:?}");
    // Its change is too small for one decimal, and is told all the same.
    let page = outcome.to_string();
    assert!(page.contains(" points [−0.0") && page.contains("sent again by 0.5 % of segments"), "{page}");
}

#[test]
fn a_change_that_matters_to_nobody_is_no_verdict_however_sure() {
    let verdict = |sent_bytes, rtt_p95_us| {
        let plan = Plan { id: 1, seed: 1, pairs: 8, block_s: 60 };
        let free =
            Block { lasted_ms: 20_000, sent_bytes: 5_000_000, rtt_p95_us: 300_000, rtts: 40, ..Block::default() };
        let told = (0..plan.blocks()).map(|block| {
            let measured = if plan.arm(block) == Arm::Free { free } else { Block { sent_bytes, rtt_p95_us, ..free } };
            Told { host: 1, block: Block { block, ..measured } }
        });
        judge(&plan, &told.collect::<Vec<_>>(), &[]).verdict
    };
    assert_eq!(verdict(4_910_000, 300_000), Verdict::NoEffect);
    assert_eq!(verdict(4_890_000, 300_000), Verdict::Harms);
    assert_eq!(verdict(5_000_000, 275_000), Verdict::NoEffect);
    assert_eq!(verdict(5_000_000, 270_000), Verdict::Helps);
    assert_eq!(verdict(4_890_000, 270_000), Verdict::Helps, "the price");
}

#[test]
fn a_page_says_the_verdict_with_both_numbers_and_what_would_have_been_seen() {
    let page = drawn(5, 10, Effect { goodput: 0.94, rtt: 0.1, bursts: 0.0 }).to_string();
    println!("{page}");
    let first = page.lines().next().expect("a line");
    assert!(
        first.starts_with("helps: p95 round trip ") && first.contains(" ms [") && first.contains(" % ["),
        "{first}"
    );
    assert!(
        page.contains("4 hosts measured themselves, in 10 pairs of blocks of 60 s") && page.contains("--minutes 80"),
        "{page}"
    );
    assert!(page.lines().all(|line| line.chars().count() <= 120), "{page}");
}
