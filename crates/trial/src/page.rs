//! An outcome in words: a sentence, and a page.

use crate::judge::{Effect, Figure, HostOutcome, Outcome, Shows, Verdict, least_pairs};
use crate::plan::Plan;
use std::fmt;

impl Outcome {
    /// The verdict in one sentence, with both numbers of each figure that counts.
    pub fn sentence(&self) -> String {
        let is_told = |effect: &&Effect| {
            effect.shows != Shows::Nothing || matches!(effect.figure, Figure::GoodputMbps | Figure::RttP95Ms)
        };
        let mut told: Vec<&Effect> = self.effects.iter().filter(is_told).collect();
        // What is better first; a total that fell is the price of it.
        told.sort_by_key(|effect| (effect.shows != Shows::Better, effect.figure == Figure::GoodputMbps));
        let told = told.into_iter().map(Effect::in_brief).collect::<Vec<_>>().join(", ");
        let Self { plan, pairs, .. } = self;
        match self.verdict {
            Verdict::Helps => format!("helps: {told}"),
            Verdict::Harms => format!("harms: {told}"),
            Verdict::Mixed => format!("mixed, some better and some worse: {told}"),
            Verdict::NoEffect => format!("no effect seen: {told}"),
            Verdict::NoTraffic => {
                "nothing to judge: the hosts hardly sent or received; a trial needs their usual traffic, or --load"
                    .to_owned()
            }
            Verdict::TooShort => {
                let least = least_pairs(self.effects.len());
                let minutes = (f64::from(plan.block_s) * 2.0 * f64::from(least) / 60.0).ceil();
                let pairs = counted(*pairs, "pair");
                format!(
                    "too short for a verdict: {pairs} of blocks count, and {least} are needed, {minutes:.0} minutes: {told}"
                )
            }
        }
    }

    /// What would have been seen; `None`: nothing.
    fn detectable(&self) -> Option<String> {
        let seen = self.effects.iter().filter_map(|effect| {
            let (name, _) = effect.figure.words();
            let percent = 100.0 * effect.detectable?;
            Some(match effect.figure {
                Figure::RetransmittedPercent => format!("{name} by {} of segments", Short(percent / 100.0).percent()),
                _ => format!("{name} by {}", Short(percent).percent()),
            })
        });
        let seen: Vec<String> = seen.collect();
        let minutes = 4.0 * self.plan.lasts().as_secs_f64() / 60.0;
        (!seen.is_empty()).then(|| {
            format!(
                "What would have been seen, in four of five such trials, is a change of\n{}.\nHalf of that takes four times as long, \
                 --minutes {minutes:.0}, if it matters at all.",
                seen.join("; ")
            )
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, pairs, effects, hosts, .. } = self;
        let Plan { seed, block_s, .. } = plan;
        writeln!(f, "{}\n", self.sentence())?;
        writeln!(
            f,
            "{} measured themselves, in {} of blocks of {block_s} s, control and free in an order drawn by seed {seed};\n\
             the first {} s of each block do not count.\n",
            counted(hosts.len(), "host"),
            counted(*pairs, "pair"),
            plan.left_out().as_secs_f64()
        )?;
        writeln!(
            f,
            "{:<21}{:>10}{:>10}       {:<18}{:<28}p, raised",
            "", "free", "control", "95 % interval", "change"
        )?;
        for effect in effects {
            let (name, unit) = effect.figure.words();
            let interval = effect
                .control_interval
                .map_or("too few pairs".to_owned(), |limits| interval(limits, |limit| Short(limit).to_string()));
            let (free, control) = (Short(effect.free).to_string(), Short(effect.control).to_string());
            let shows = match effect.shows {
                Shows::Better => "  better",
                Shows::Worse => "  worse",
                Shows::Nothing => "",
            };
            let change = effect.change();
            writeln!(
                f,
                "{name:<21}{free:>10}{control:>10} {unit:<5} {interval:<18}{change:<28}{:.4}{shows}",
                effect.p_raised
            )?;
        }
        if hosts.len() > 1 {
            writeln!(f, "\n{:<21}{:>10}{:>10}       {:>10}{:>10}    blocks", "", "free", "control", "free", "control")?;
            for HostOutcome { host, blocks, free_mbps, control_mbps, free_rtt_p95_ms, control_rtt_p95_ms } in hosts {
                let rtt = |rtt: &Option<f64>| rtt.map_or("-".to_owned(), |rtt| Short(rtt).to_string());
                let (free, control) = (rtt(free_rtt_p95_ms), rtt(control_rtt_p95_ms));
                let (of_free, of_control) = (Short(*free_mbps).to_string(), Short(*control_mbps).to_string());
                writeln!(
                    f,
                    "host {host:08x}        {of_free:>10}{of_control:>10} Mb/s  {free:>10}{control:>10} ms {blocks:>6}"
                )?;
            }
        }
        if let Some(detectable) = self.detectable() {
            writeln!(f, "\n{detectable}")?;
        }
        write!(f, "\nNot measured: hosts without the agent, and connections that live for less than two ticks.")
    }
}

impl Effect {
    fn in_brief(&self) -> String {
        let (name, unit) = self.figure.words();
        if self.figure == Figure::GoodputMbps {
            return format!("{name} {}", self.change());
        }
        let limits = self
            .control_interval
            .map_or(String::new(), |limits| format!(" {}", interval(limits, |limit| Short(limit).to_string())));
        format!("{name} {} → {} {unit}{limits}", Short(self.free), Short(self.control))
    }

    /// The change, with its interval: in % of free, and of a share in its own unit.
    fn change(&self) -> String {
        let (scale, unit) = match self.figure {
            Figure::RetransmittedPercent => (1.0, "points"),
            _ if self.free > 0.0 => (100.0 / self.free, "%"),
            _ => return "from nothing".to_owned(),
        };
        let of = |value: f64| Short((value - self.free) * scale).signed();
        let limits = self.control_interval.map_or(String::new(), |limits| format!(" {}", interval(limits, of)));
        format!("{} {unit}{limits}", of(self.control))
    }
}

fn interval(limits: [f64; 2], say: impl Fn(f64) -> String) -> String {
    format!("[{}, {}]", say(limits[0]), say(limits[1]))
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A number with some three digits.
struct Short(f64);

impl Short {
    /// With a sign, and fewer digits: a change.
    fn signed(&self) -> String {
        let decimals = match self.0.abs() {
            value if value >= 1.0 => 0,
            value if value >= 0.1 => 1,
            _ => 2,
        };
        let digits = format!("{:.decimals$}", self.0.abs());
        let is_zero = digits.chars().all(|digit| matches!(digit, '0' | '.'));
        match self.0 {
            _ if is_zero => "0".to_owned(),
            value if value < 0.0 => format!("−{digits}"),
            _ => format!("+{digits}"),
        }
    }

    fn percent(&self) -> String {
        let decimals = match self.0 {
            value if value >= 10.0 => 0,
            value if value >= 0.1 => 1,
            _ => 3,
        };
        format!("{:.decimals$} %", self.0)
    }
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = match self.0.abs() {
            value if value >= 100.0 => 0,
            value if value >= 10.0 => 1,
            value if value >= 0.0005 => 2,
            _ => 0,
        };
        let digits = format!("{:.decimals$}", self.0);
        let is_zero = digits.chars().all(|digit| matches!(digit, '0' | '.' | '-'));
        f.write_str(if is_zero { "0" } else { &digits })
    }
}
