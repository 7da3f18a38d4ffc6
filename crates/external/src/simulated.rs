//! The policy of a simulated host: virtual time stands still until the program has decided.

use crate::program::{Program, ProgramError, Start};
use lasthop_policy::schema::{self, Decision, Hello, Observation};
use lasthop_policy::{External, Policy, PolicyName, PolicySettings, TICK};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A program that takes longer for a decision hangs.
const DECISION_WITHIN: Duration = Duration::from_secs(10);
/// At the end of a run, the program's time to write what it has left.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// Time between two looks at `stop`.
const LOOK_EACH: Duration = Duration::from_millis(100);

/// The programs of a run of simulated hosts. Dropping it, after the run, ends them all at once.
pub struct Programs {
    stop: Arc<AtomicBool>,
    started: Vec<Arc<Mutex<Program>>>,
}

impl Programs {
    /// None yet. Once `stop` is set, no policy waits for its program any more.
    pub fn new(stop: &Arc<AtomicBool>) -> Self {
        Self { stop: Arc::clone(stop), started: Vec::new() }
    }

    /// The policy of a simulated host, for `lasthop_sim::run_with`: starts the program of these settings; `None` with
    /// another policy than `external`. It waits 10 s for a decision. The same program gives the same decisions if it
    /// draws nothing but from the seed, and looks at no clock.
    ///
    /// # Errors
    /// If the program cannot be started. A later error is [`Policy::failure`].
    pub fn policy_of(
        &mut self,
        settings: &PolicySettings,
        host: u16,
        seed: u64,
    ) -> Result<Option<Box<dyn Policy + Send>>, ProgramError> {
        if settings.policy != PolicyName::External {
            return Ok(None);
        }
        let hello = Hello { schema: schema::VERSION, host: Some(host), seed, tick_ns: TICK.as_nanos() };
        let command = settings.program().to_vec();
        let start = Start { command, user: None, repeatable: true, hello, ends_within: ENDS_WITHIN };
        let program = Arc::new(Mutex::new(Program::start(&start)?));
        self.started.push(Arc::clone(&program));
        let stop = Arc::clone(&self.stop);
        let ask = move |observation: &Observation| {
            let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
            decide(&mut program, observation, DECISION_WITHIN, &stop).map_err(|error| error.to_string())
        };
        Ok(Some(Box::new(External::new(settings.minimum_segments, ask))))
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        for program in &self.started {
            program.lock().unwrap_or_else(PoisonError::into_inner).close();
        }
    }
}

fn decide(
    program: &mut Program,
    observation: &Observation,
    within: Duration,
    stop: &AtomicBool,
) -> Result<Decision, ProgramError> {
    program.ask(observation.clone())?;
    let begun = Instant::now();
    loop {
        if let Some(decision) = program.poll()? {
            return Ok(decision);
        }
        let left = within.saturating_sub(begun.elapsed());
        if left.is_zero() || stop.load(Ordering::Relaxed) {
            return Err(program.late(within));
        }
        program.wait(left.min(LOOK_EACH))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str) -> Program {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        let hello = Hello { schema: schema::VERSION, host: Some(0), seed: 1, tick_ns: TICK.as_nanos() };
        Program::start(&Start { command, user: None, repeatable: true, hello, ends_within: ENDS_WITHIN })
            .expect("it starts")
    }

    fn decided(program: &mut Program, within: Duration) -> Result<Decision, String> {
        let stop = AtomicBool::new(false);
        decide(program, &Observation::default(), within, &stop).map_err(|error| error.to_string())
    }

    #[test]
    fn a_program_that_hangs_is_told_with_its_last_words() {
        let mut program = start("echo I sleep >&2; exec sleep 1000");
        let begun = Instant::now();
        let error = decided(&mut program, Duration::from_secs(1)).expect_err("it sleeps");
        assert_eq!(error, "the program gave no decision within 1s; its standard error ends with:\n  | I sleep");
        assert!(begun.elapsed() >= Duration::from_secs(1));
    }

    #[test]
    fn a_run_that_is_stopped_waits_no_longer() {
        let mut program = start("exec sleep 1000");
        decide(&mut program, &Observation::default(), Duration::MAX, &AtomicBool::new(true)).expect_err("it sleeps");
    }

    #[test]
    fn of_much_that_a_program_says_the_end_is_kept_and_nothing_blocks() {
        // A pipe holds 64 KiB.
        let lines = "i=0; while [ $i -lt 20000 ]; do echo line $i >&2; i=$((i+1)); done";
        let script = &format!("read hello; read one; {lines}; echo '{{}}'; read two");
        let mut program = start(script);
        assert_eq!(decided(&mut program, DECISION_WITHIN), Ok(Decision::default()));
        let error = decided(&mut program, DECISION_WITHIN).expect_err("it has ended");
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!((lines.len(), lines[1], lines[20]), (21, "  | line 19980", "  | line 19999"), "{error}");
    }

    #[test]
    fn an_observation_may_be_longer_than_a_pipe() {
        let flows = (0..5_000).map(|id| schema::Flow { id, ..schema::Flow::default() }).collect();
        let observation = Observation { flows, ..Observation::default() };
        let mut program =
            start("read hello; sleep 0.2; while read -r line; do echo \"{\\\"reason\\\": \\\"${#line}\\\"}\"; done");
        // A shell reads byte by byte: half a million calls, on a busy machine.
        let within = DECISION_WITHIN * 10;
        let decision = decide(&mut program, &observation, within, &AtomicBool::new(false)).expect("a decision");
        let bytes: usize = decision.reason.expect("a reason").parse().expect("a number");
        assert!(bytes > 500_000, "{bytes}");
    }

    #[test]
    fn a_program_that_answers_what_it_has_not_read_is_refused() {
        let flows = (0..5_000).map(|id| schema::Flow { id, ..schema::Flow::default() }).collect();
        let observation = Observation { flows, ..Observation::default() };
        let mut program = start("read hello; head -c 1 >/dev/null; echo '{}'; sleep 1000");
        let error = decide(&mut program, &observation, DECISION_WITHIN, &AtomicBool::new(false)).expect_err("unread");
        assert_eq!(
            error.in_brief(),
            "the program wrote a line that is no decision: it has not read what it answers; the line: {}"
        );
    }

    #[test]
    fn what_a_program_writes_reaches_no_terminal_as_commands() {
        let mut program = start(r#"read hello; read one; printf '{"\033[31m\033]0;mine\007\": 1}\n'; sleep 1000"#);
        let error = decided(&mut program, DECISION_WITHIN).expect_err("no decision");
        assert!(!error.contains('\u{1b}') && !error.contains('\u{7}') && error.contains("\\u{1b}[31m"), "{error:?}");
    }

    #[test]
    fn programs_of_one_run_that_do_not_end_are_waited_for_together() {
        let settings = PolicySettings {
            policy: PolicyName::External,
            command: Some(["sh", "-c", "sleep 1000"].map(str::to_owned).to_vec()),
            ..PolicySettings::default()
        };
        let mut programs = Programs::new(&Arc::new(AtomicBool::new(false)));
        let policies = [0, 1, 2, 3].map(|host| programs.policy_of(&settings, host, 1).expect("it starts"));
        let begun = Instant::now();
        drop(policies);
        drop(programs);
        let took = begun.elapsed();
        assert!(took >= ENDS_WITHIN && took < 3 * ENDS_WITHIN, "{took:?}");
    }

    #[test]
    fn what_a_program_has_started_ends_with_it() {
        let mut program = start("sleep 1000 & read hello; read one; echo \"{\\\"reason\\\": \\\"$!\\\"}\"; read two");
        let child = decided(&mut program, DECISION_WITHIN).expect("a decision").reason.expect("a reason");
        let stat = format!("/proc/{child}/stat");
        assert!(std::fs::exists(&stat).expect("proc is there"));
        drop(program);
        let begun = Instant::now();
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(begun.elapsed() < DECISION_WITHIN, "{child} is left");
        }
    }
}
