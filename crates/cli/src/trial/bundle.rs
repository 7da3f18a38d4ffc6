//! What a trial has measured, to show, keep and send: without addresses and names.

use crate::{say, tell};
use anyhow::{Context, Result, bail};
use lasthop_files::{Kind, MOST_TYPED_BYTES, text_of};
use lasthop_trial::{Outcome, Plan, Probe, Told, judge};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// By which a bundle is known.
const BUNDLE: Kind = Kind { name: "a trial", looked_at: 32, is: |begin| begin.starts_with(b"{\"lasthop_trial\":1,") };

/// A trial.
#[derive(Serialize, Deserialize)]
pub(super) struct Bundle {
    /// The version of the format: 1.
    lasthop_trial: u32,
    /// The version of the command that began it.
    version: String,
    /// The kernel of the host that began it, without what a distribution appends; or that hosts were simulated.
    pub(super) kernel: String,
    plan: Plan,
    /// Why it ended early; `None`: it did not.
    pub(super) ended: Option<String>,
    /// The most other agents that the host that began it heard at once.
    agents_heard: u32,
    told: Vec<Told>,
    probes: Vec<Probe>,
}

/// What `--json` prints. `schema` is raised when a key changes its meaning or goes.
#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    version: &'a str,
    kernel: &'a str,
    ended: Option<&'a str>,
    agents_heard: u32,
    sentence: String,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

impl Bundle {
    pub(super) fn new(
        plan: Plan,
        told: Vec<Told>,
        probes: Vec<Probe>,
        agents_heard: u32,
        ended: Option<String>,
    ) -> Self {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let kernel = release.chars().take_while(|letter| letter.is_ascii_digit() || *letter == '.').collect();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { lasthop_trial: 1, version, kernel, plan, ended, agents_heard, told, probes }
    }

    /// Whether a bundle can be kept there.
    pub(super) fn check_place(file: &Path) -> Result<()> {
        lasthop_files::may_write(file, Some(&BUNDLE)).with_context(|| format!("--bundle {}", file.display()))?;
        Ok(())
    }

    /// Keeps it in a file, and says what is in it.
    pub(super) fn keep(&self, file: &Path) -> Result<()> {
        tell(format_args!(
            "{} has: the plan and its seed, why it ended, how many agents were heard, for each host (a random number) and block bytes, \
             round trips and segments, the times of short connections, the versions of lasthop ({}) and of the kernel ({}). No address, \
             no name",
            file.display(),
            self.version,
            self.kernel
        ));
        let text = serde_json::to_string(self)? + "\n";
        lasthop_files::write(file, Some(&BUNDLE), text.as_bytes())
            .with_context(|| format!("cannot keep the trial in {}", file.display()))
    }

    fn outcome(&self) -> Outcome {
        judge(&self.plan, &self.told, &self.probes)
    }

    /// Prints its page, or JSON.
    pub(super) fn show(&self, json: bool) -> Result<()> {
        if json {
            return say(&serde_json::to_string_pretty(&self.printed(&self.outcome()))?);
        }
        say(&self.page())
    }

    fn printed<'a>(&'a self, outcome: &'a Outcome) -> Printed<'a> {
        let Self { version, kernel, ended, agents_heard, .. } = self;
        Printed {
            schema: 1,
            version,
            kernel,
            ended: ended.as_deref(),
            agents_heard: *agents_heard,
            sentence: outcome.sentence(),
            outcome,
        }
    }

    fn page(&self) -> String {
        let outcome = self.outcome();
        let ended = self.ended.as_ref().map_or(String::new(), |why| format!("ended early: {why}\n"));
        let others = outcome.hosts.len().saturating_sub(1);
        let silent = (self.agents_heard as usize).saturating_sub(others);
        let silent = match silent {
            0 => String::new(),
            silent => format!(
                "\n{silent} of {} other agents that were heard told nothing: `trial` or a mode of theirs does not allow it, \
                 or they have no group key, or an older version.",
                self.agents_heard
            ),
        };
        format!("{ended}{outcome}{silent}")
    }
}

/// `lasthop trial read`.
pub(super) fn read(files: &[PathBuf], json: bool) -> Result<()> {
    let bundles = files.iter().map(|file| Ok((file, of_file(file)?))).collect::<Result<Vec<_>>>()?;
    match &bundles[..] {
        [(_, bundle)] => bundle.show(json),
        several if json => {
            let outcomes: Vec<_> = several.iter().map(|(file, bundle)| (file, bundle, bundle.outcome())).collect();
            let all: Vec<_> = outcomes
                .iter()
                .map(|(file, bundle, outcome)| serde_json::json!({"file": file, "trial": bundle.printed(outcome)}))
                .collect();
            say(&serde_json::to_string_pretty(&all)?)
        }
        several => {
            let line = |(file, bundle): &(&PathBuf, Bundle)| {
                let outcome = bundle.outcome();
                let early = if bundle.ended.is_some() { "ended early; " } else { "" };
                let (hosts, pairs) = (outcome.hosts.len(), outcome.pairs);
                format!("{}: {hosts} hosts, {pairs} pairs; {early}{}", file.display(), outcome.sentence())
            };
            say(&several.iter().map(line).collect::<Vec<_>>().join("\n"))
        }
    }
}

fn of_file(file: &Path) -> Result<Bundle> {
    let shown = file.display();
    let text = text_of(file, MOST_TYPED_BYTES).with_context(|| format!("cannot read {shown}"))?;
    let bundle: Bundle =
        serde_json::from_str(&text).with_context(|| format!("{shown} is no trial that --bundle kept"))?;
    if bundle.lasthop_trial != 1 {
        bail!("{shown} is of another version of lasthop, {}; accepted: lasthop_trial 1", bundle.version);
    }
    if !bundle.plan.is_valid() {
        let Plan { pairs, block_s, .. } = bundle.plan;
        let (most, longest) = (Plan::PAIRS_MOST, Plan::LONGEST_BLOCK_S);
        bail!(
            "{shown}: plan: has {pairs} pairs of blocks of {block_s} s; accepted: pairs 1 to {most}, block_s 1 to {longest}"
        );
    }
    Ok(bundle)
}
