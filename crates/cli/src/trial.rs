//! `lasthop trial`.

mod bundle;
mod load;
mod simulated;

pub(crate) use load::Upload;

use crate::numbers::{decimal, whole};
use crate::{FAILED, stop_on_signals, tell};
use anyhow::{Context, Result, bail};
use bundle::Bundle;
use clap::{Args, Subcommand};
use lasthop_status::{TrialOrder, Watched};
use lasthop_trial::{Plan, Standing, Told};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TrialArguments {
    #[command(subcommand)]
    command: Option<TrialCommand>,
    #[command(flatten)]
    plan: PlanArguments,
    /// Begin it at the agent of this interface, instead of the first one found
    #[arg(long, value_name = "IF")]
    interface: Option<String>,
    /// Upload to `lasthop trial serve` meanwhile, and fetch a short answer from it each second
    #[arg(long, value_name = "ADDRESS:PORT")]
    load: Option<SocketAddr>,
    /// Keep what was measured in this file, without addresses and names
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// Print one JSON document: docs/guide/trial.md
    #[arg(long)]
    json: bool,
}

/// Which block is when.
#[derive(Args)]
struct PlanArguments {
    /// How long it takes, in minutes
    #[arg(long, value_name = "N", default_value_t = 30.0, value_parser = decimal(0.001..=1440.0), allow_negative_numbers = true)]
    minutes: f64,
    /// The length of a block, in seconds; without it 60, or down to 36 where a verdict needs more pairs of blocks
    #[arg(long, value_name = "N", value_parser = whole(1..=Plan::LONGEST_BLOCK_S), allow_negative_numbers = true)]
    block_s: Option<u16>,
    /// By which the order in each pair is drawn, instead of a random one; of `simulate` the seed of its scenario as well
    #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX), allow_negative_numbers = true)]
    seed: Option<u32>,
}

#[derive(Subcommand)]
enum TrialCommand {
    /// Take uploads of trials and give short answers, until it is stopped: on a server beyond the access point
    Serve {
        /// Where it listens
        #[arg(long, value_name = "ADDRESS:PORT", default_value_t = load::LISTEN)]
        listen: SocketAddr,
    },
    /// Upload to `lasthop trial serve` until it is stopped: on the other hosts of a trial with --load
    Load {
        /// The server
        #[arg(value_name = "ADDRESS:PORT")]
        server: SocketAddr,
    },
    /// A trial of simulated hosts, in seconds: what it would find where a scenario is the truth
    Simulate(Box<simulated::SimulateArguments>),
    /// Show trials that were kept by --bundle
    Read {
        /// The files; of several, a line each
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
}

/// An agent that says nothing for so long has ended, or hangs.
const SILENT: Duration = Duration::from_secs(10);
/// No shorter block is made without `--block-s`, in seconds: 24 s of it are left out, and control has mostly begun by then.
const LEAST_BLOCK_S: u16 = 36;
/// What is judged without short connections to a server: goodput, round trips, segments sent again.
const FIGURES: usize = 3;
/// The most bytes of a line of an agent.
const LINE_BYTES_MOST: u64 = 2 << 20;

/// `lasthop trial`: exit code 1 if it ended early.
pub(crate) fn run(arguments: &TrialArguments) -> Result<ExitCode> {
    match &arguments.command {
        Some(TrialCommand::Serve { listen }) => return load::serve(*listen).map(|()| ExitCode::SUCCESS),
        Some(TrialCommand::Load { server }) => {
            let stop = stop_on_signals()?;
            tell(format_args!("uploads to {server} until it is stopped"));
            load::upload(*server, &stop);
            return Ok(ExitCode::SUCCESS);
        }
        Some(TrialCommand::Simulate(arguments)) => return simulated::run(arguments),
        Some(TrialCommand::Read { files, json }) => return bundle::read(files, *json).map(|()| ExitCode::SUCCESS),
        None => {}
    }
    let figures = FIGURES + usize::from(arguments.load.is_some());
    let plan = plan(&arguments.plan, figures)?;
    if let Some(file) = &arguments.bundle {
        Bundle::check_place(file)?;
    }
    let stop = stop_on_signals()?;
    let (path, stream) = lasthop_status::watch(Path::new(lasthop_status::FOLDER), arguments.interface.as_deref())
        .context(
            "a trial needs a running agent, and root: see `systemctl status lasthop-agent`, or start `lasthop agent`",
        )?;
    let load = arguments.load.map(load::Load::start).transpose()?;
    let minutes = plan.lasts().as_secs_f64() / 60.0;
    tell(format_args!(
        "trial {:08x}: {} blocks of {} s, {minutes:.1} minutes, control and free in turns on every host of the group that takes part; \
         Ctrl-C ends it, and all is as before",
        plan.id,
        plan.blocks(),
        plan.block_s
    ));
    tell_of_plan(&plan, figures);
    let mut trial = Trial { plan, stream, told: BTreeMap::new(), last: None, peers: 0 };
    let asked = trial.follow(&stop, load.as_ref());
    let (ended, heard) = asked.with_context(|| format!("the agent at {}", path.display()))?;
    let probes = load.map(load::Load::finish).unwrap_or_default();
    let told: Vec<Told> = trial.told.values().copied().collect();
    let bundle = Bundle::new(plan, told, probes, heard, ended);
    if let Some(file) = &arguments.bundle {
        bundle.keep(file)?;
    }
    bundle.show(arguments.json)?;
    Ok(if bundle.ended.is_some() { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// Says what a trial of this plan cannot tell, judged on so many figures.
fn tell_of_plan(plan: &Plan, figures: usize) {
    if plan.block_s < Plan::SHORT_BLOCK_S {
        let least = Plan::SHORT_BLOCK_S;
        tell(format_args!(
            "note: blocks of less than {least} s miss a part of the effect, for control takes its time to begin"
        ));
    }
    let least = lasthop_trial::least_pairs(figures);
    if plan.pairs < least {
        let minutes = (f64::from(least) * f64::from(plan.block_s) / 30.0).ceil();
        tell(format_args!(
            "note: fewer than {least} pairs of blocks give no verdict: --minutes {minutes:.0} is the least"
        ));
    }
}

/// The plan of this command line, of a trial that is judged on so many figures.
fn plan(arguments: &PlanArguments, figures: usize) -> Result<Plan> {
    let seconds = arguments.minutes * 60.0;
    let fits = (seconds / f64::from(2 * lasthop_trial::least_pairs(figures)) + 1e-6) as u16;
    let block_s = arguments.block_s.unwrap_or(fits.clamp(LEAST_BLOCK_S, Plan::SHORT_BLOCK_S));
    let pairs = (seconds / (2.0 * f64::from(block_s)) + 1e-6).floor();
    if pairs < 1.0 || pairs > f64::from(Plan::PAIRS_MOST) {
        bail!(
            "--minutes {} are {pairs} pairs of blocks of {block_s} s; accepted: 1 to {} pairs",
            arguments.minutes,
            Plan::PAIRS_MOST
        );
    }
    let mut random = [0; 8];
    getrandom::fill(&mut random).context("cannot get random bytes from the kernel")?;
    let [id, seed] =
        [&random[..4], &random[4..]].map(|bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes")));
    Ok(Plan { id, seed: arguments.seed.unwrap_or(seed), pairs: pairs as u16, block_s })
}

/// A trial that this command has begun.
struct Trial {
    plan: Plan,
    stream: UnixStream,
    told: BTreeMap<(u32, u16), Told>,
    /// What was said of it last.
    last: Option<Standing>,
    /// The most other agents that were heard at once.
    peers: u32,
}

impl Trial {
    /// Begins it and waits until it has ended. Returns why it ended early, if it did, and how many other agents were heard.
    fn follow(&mut self, stop: &AtomicBool, load: Option<&load::Load>) -> Result<(Option<String>, u32)> {
        self.order(TrialOrder::Begin(self.plan)).context("takes no order")?;
        self.stream.set_read_timeout(Some(Duration::from_millis(500)))?;
        let mut reader = BufReader::new(self.stream.try_clone()?);
        let (mut line, mut heard_at, mut is_stopped, mut others) = (Vec::new(), Instant::now(), false, 0);
        loop {
            if stop.load(Ordering::Relaxed) && !std::mem::replace(&mut is_stopped, true) {
                self.order(TrialOrder::End).context("takes no order")?;
            }
            match reader.by_ref().take(LINE_BYTES_MOST).read_until(b'\n', &mut line) {
                Ok(0) => bail!("has ended; all hosts are as before within {} s", lasthop_trial::LEASE.as_secs_f64()),
                Ok(_) if line.ends_with(b"\n") => {}
                Ok(_) => continue,
                Err(error)
                    if [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted].contains(&error.kind()) =>
                {
                    if heard_at.elapsed() > SILENT {
                        bail!("says nothing any more");
                    }
                    continue;
                }
                Err(error) => return Err(error).context("cannot be heard"),
            }
            heard_at = Instant::now();
            let watched: Watched = serde_json::from_slice(&line).context("speaks another version")?;
            line.clear();
            self.peers = self.peers.max(watched.status.peers);
            self.told.extend(watched.trial_told.iter().map(|told| ((told.host, told.block.block), *told)));
            // The first lines may be older than the order.
            let Some(standing) = watched.status.trial else {
                others += 1;
                if others > 20 {
                    bail!("does not begin: does it run an older version, and are you root?");
                }
                continue;
            };
            if standing.id != format!("{:08x}", self.plan.id) {
                others += 1;
                if others > 20 {
                    bail!("is in another trial, {}", standing.id);
                }
                continue;
            }
            if let Some(load) = load {
                load.is_at(&self.plan, &standing);
            }
            if let Some(why) = standing.ended.clone() {
                if standing.blocks == 0 {
                    bail!("takes no part in trials: {why}");
                }
                if self.told.len() >= standing.told as usize {
                    let is_over = why == lasthop_trial::Ended::Over.to_string();
                    return Ok(((!is_over).then_some(why), self.peers));
                }
            }
            self.say(standing);
        }
    }

    fn order(&mut self, order: TrialOrder) -> Result<()> {
        let line = serde_json::to_string(&order)? + "\n";
        Ok(self.stream.write_all(line.as_bytes())?)
    }

    /// Says when another block begins.
    fn say(&mut self, standing: Standing) {
        let before = self.last.replace(standing);
        let standing = self.last.as_ref().expect("just put there");
        let is_new = before.is_none_or(|before| before.block != standing.block);
        match (standing.block, standing.arm) {
            _ if !is_new => {}
            (Some(block), Some(arm)) => {
                let Standing { blocks, hosts, .. } = standing;
                let hosts = if *hosts == 1 {
                    "this host alone has told something yet".to_owned()
                } else {
                    format!("{hosts} hosts")
                };
                tell(format_args!("block {block} of {blocks}: {arm}; {hosts}"));
            }
            _ => tell(format_args!("the blocks are over; waiting for what other hosts have measured")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn planned(words: &[&str]) -> Result<Plan> {
        let arguments = crate::Arguments::try_parse_from([&["lasthop", "trial"], words].concat())?;
        let crate::Command::Trial(arguments) = arguments.command else { panic!("trial") };
        plan(&arguments.plan, FIGURES)
    }

    #[test]
    fn half_an_hour_has_fifteen_pairs_of_sixty_seconds() {
        let of = |words: &[&str]| planned(words).map(|plan| (plan.pairs, plan.block_s)).expect("a plan");
        assert_eq!(of(&[]), (15, 60));
        // As many as a verdict needs, if blocks of 36 s are long enough for that.
        assert_eq!(of(&["--minutes", "14"]), (7, 60));
        assert_eq!(of(&["--minutes", "10"]), (7, 42));
        assert_eq!(of(&["--minutes", "5"]), (4, 36));
        assert_eq!(of(&["--minutes", "10", "--block-s", "60"]), (5, 60));
        assert_eq!(of(&["--minutes", "1", "--block-s", "3"]), (10, 3));
        assert_eq!(planned(&["--seed", "7"]).expect("a plan").seed, 7);
        for words in [
            &["--minutes", "0"][..],
            &["--minutes", "nan"],
            &["--minutes", "0.5"],
            &["--minutes", "1440", "--block-s", "1"],
        ] {
            let error = planned(words).expect_err("refused").to_string();
            assert!(error.contains("accepted: "), "{error}");
        }
    }
}
