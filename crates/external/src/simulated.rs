//! The policy of a simulated host: virtual time stands still until the program has decided.

use crate::program::{Program, ProgramError, Start};
use lasthop_policy::schema::{Decision, Hello, Observation};
use lasthop_policy::{External, Policy, PolicySettings};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A program that takes longer for a decision hangs.
pub const DECISION_WITHIN: Duration = Duration::from_secs(10);
/// At the end of a run, the program's time to write what it has left.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// Time between two looks at `stop`.
const LOOK_EACH: Duration = Duration::from_millis(100);

/// Starts the program of these settings and makes a policy of it, which waits at most `within` for each decision, and
/// no longer once `stop` is set. The same program gives the same decisions if it draws nothing but from `hello.seed`,
/// and looks at no clock.
///
/// # Errors
/// If the program cannot be started. A later error is [`Policy::failure`].
pub fn policy_of(
    settings: &PolicySettings,
    hello: Hello,
    within: Duration,
    stop: Arc<AtomicBool>,
) -> Result<Box<dyn Policy + Send>, ProgramError> {
    let command = settings.program().to_vec();
    let start = Start { command, user: None, repeatable: true, hello, ends_within: ENDS_WITHIN };
    let mut program = Program::start(&start)?;
    let ask = move |observation: &Observation| -> Result<Decision, String> {
        program.ask(observation.clone()).map_err(|error| error.to_string())?;
        let begun = Instant::now();
        loop {
            if let Some(decision) = program.poll().map_err(|error| error.to_string())? {
                return Ok(decision);
            }
            if stop.load(Ordering::Relaxed) {
                return Err("the run was stopped".to_owned());
            }
            let left = within.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(program.late(within).to_string());
            }
            program.wait(left.min(LOOK_EACH)).map_err(|error| error.to_string())?;
        }
    };
    Ok(Box::new(External::new(settings.minimum_segments, ask)))
}
