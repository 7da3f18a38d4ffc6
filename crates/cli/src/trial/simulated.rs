//! `lasthop trial simulate`: a trial of simulated hosts, whose agents take turns by the same plan, and are measured and judged by the
//! same code as on a network.
//!
//! *What it leaves out*: the trial's own messages. All hosts begin at once, and all that they measure is there at the end. A host that
//! loses too much ends it for all at once. A kernel also changes the congestion control at each change between free and control; here
//! only the limits come and go.

use super::bundle::Bundle;
use super::{PlanArguments, plan, tell_of_plan};
use crate::built_in::Found;
use crate::{FAILED, Interrupted, build, stop_on_signals, tell};
use anyhow::{Result, bail};
use clap::Args;
use lasthop_policy::{Decision, Observation, Policy, PolicyName, PolicyState};
use lasthop_scenario::{AgentMode, HostSpec, Override, Scenario};
use lasthop_trial::{Arm, Ended, Part, Plan};
use lasthop_units::{Span, Time};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Args)]
pub(super) struct SimulateArguments {
    /// The scenario, whose hosts with a policy take part: a TOML file (docs/guide/scenario.md), or the name of a built-in one
    scenario: PathBuf,
    #[command(flatten)]
    plan: PlanArguments,
    /// Change a key of the scenario but duration_s, such as hosts.0.policy=lasthop; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = Override::parse)]
    overrides: Vec<Override>,
    /// Keep what was measured in this file
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// Print one JSON document: docs/guide/trial.md
    #[arg(long)]
    json: bool,
}

/// The key of how long a run takes.
const DURATION: &str = "duration_s";
/// The most that it accepts. A trial may take a little longer.
const LONGEST: Span = Span::from_secs(86_400);

/// The trial of a run.
struct Together {
    plan: Plan,
    begins: Time,
    /// Of each host that takes part.
    parts: Vec<Part>,
    /// Why it ended early.
    ended: Option<Ended>,
}

/// The policy of a host that takes turns: under control its own, else advice that nobody follows. It begins anew at each change.
struct Turns {
    trial: Arc<Mutex<Together>>,
    part: usize,
    host: HostSpec,
    policy: Box<dyn Policy + Send>,
    arm: Option<Arm>,
}

/// `lasthop trial simulate`: exit code 1 if it ended early.
pub(super) fn run(arguments: &SimulateArguments) -> Result<ExitCode> {
    let seed = arguments.plan.seed.map(|seed| Override::seed(seed.into()));
    let overrides: Vec<Override> = arguments.overrides.iter().cloned().chain(seed).collect();
    let found = Found::scenario(&arguments.scenario)?;
    let plan = plan(&arguments.plan, super::FIGURES)?;
    let scenario = load(&found, overrides, &plan)?;
    let takes_part =
        |host: &HostSpec| host.kind.agent == AgentMode::Control && host.kind.policy.policy != PolicyName::None;
    if !scenario.expanded_hosts().iter().any(takes_part) {
        bail!(
            "no host of the scenario has a policy and an agent that controls; accepted: one or more, such as \
             --set hosts.0.policy=lasthop, with agent = \"control\""
        );
    }
    if let Some(file) = &arguments.bundle {
        Bundle::check_place(file)?;
    }
    tell_of_plan(&plan, super::FIGURES);
    let begins = Time::ZERO + scenario.warmup;
    let trial = Arc::new(Mutex::new(Together { plan, begins, parts: Vec::new(), ended: None }));
    let mut policies = |host: &HostSpec| match host.kind.policy.policy {
        PolicyName::None => Ok(None),
        PolicyName::External => {
            Err("\"external\" takes part in no simulated trial; accepted: a policy of ours".to_owned())
        }
        _ => {
            let part = together(&trial).join();
            let policy = host.kind.policy.build_with(host.kind.parts);
            Ok(Some(Box::new(Turns { trial: Arc::clone(&trial), part, host: host.clone(), policy, arm: None }) as _))
        }
    };
    let stop = stop_on_signals()?;
    let options =
        lasthop_sim::Options { build: build(), series: false, stop: &stop, progress: &|_| {}, on_sample: None };
    if lasthop_sim::run_with(&scenario, &options, &mut policies)?.is_none() {
        return Err(Interrupted("nothing was kept".to_owned()).into());
    }
    let trial = together(&trial);
    let told = trial.parts.iter().flat_map(Part::told).collect();
    // One of them takes part at least.
    let others = trial.parts.len() as u32 - 1;
    let mut bundle = Bundle::new(plan, told, Vec::new(), others, trial.ended.map(|ended| ended.to_string()));
    bundle.kernel = "simulated hosts".to_owned();
    if let Some(file) = &arguments.bundle {
        bundle.keep(file)?;
    }
    bundle.show(arguments.json)?;
    Ok(if bundle.ended.is_some() { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// The scenario for as long as the trial takes. What traces and lists say is read up to its end, or up to the scenario's if that is later.
fn load(found: &Found, overrides: Vec<Override>, plan: &Plan) -> Result<Scenario> {
    let (of_duration, mut overrides): (Vec<_>, Vec<_>) = overrides.into_iter().partition(|set| set.key() == DURATION);
    if let Some(set) = of_duration.first() {
        tell(format_args!("note: --set {set} has no effect: the trial takes its warm-up and then as long as its plan"));
    }
    let own = found.load(&overrides)?;
    // The last tick of each host is behind its last block.
    let lasts = own.warmup + plan.lasts() + Span::from_secs(1);
    let read_s = own.duration.max(lasts.min(LONGEST)).as_secs_f64();
    overrides.push(Override::of_flag(&format!("a trial of {lasts}"), DURATION, read_s));
    let mut scenario = found.load(&overrides)?;
    scenario.duration = lasts;
    Ok(scenario)
}

fn together(trial: &Mutex<Together>) -> MutexGuard<'_, Together> {
    trial.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Together {
    /// Another host takes part. Returns its index.
    fn join(&mut self) -> usize {
        let mut part = Part::default();
        let host = self.parts.len();
        part.begin(self.begins, self.plan, host as u32 + 1).expect("it is in no other");
        self.parts.push(part);
        host
    }

    /// A tick of a host. Returns what it does until the next one.
    fn on_tick(&mut self, host: usize, observation: &Observation<'_>) -> Option<Arm> {
        let now = observation.now;
        if now < self.begins {
            return None;
        }
        let part = &mut self.parts[host];
        let _messages = part.poll(now);
        let lost = part.on_tick(now, observation.flows.iter().map(|flow| (flow.id.0, flow.tcp)));
        if let Some(Ended::Loses { got, .. }) = lost {
            let why = Ended::OtherLoses { host: host as u32 + 1, got };
            self.ended = Some(why);
            self.parts.iter_mut().for_each(|part| part.leave(why));
        }
        self.parts[host].arm(now)
    }
}

impl Policy for Turns {
    fn on_tick(&mut self, observation: &Observation<'_>) -> Decision {
        let arm = together(&self.trial).on_tick(self.part, observation);
        if std::mem::replace(&mut self.arm, arm) != arm {
            self.policy = self.host.kind.policy.build_with(self.host.kind.parts);
        }
        let mut decision = self.policy.on_tick(observation);
        if self.arm != Some(Arm::Control) {
            decision.new_flows = None;
            for flow in &mut decision.flows {
                (flow.bound, flow.enabled) = (None, None);
            }
        }
        decision
    }

    fn word(&self) -> Option<lasthop_peers::Word> {
        self.policy.word().filter(|_| self.arm == Some(Arm::Control))
    }

    fn state(&self) -> Option<PolicyState> {
        self.policy.state().filter(|_| self.arm == Some(Arm::Control))
    }

    fn failure(&self) -> Option<&str> {
        self.policy.failure()
    }
}
