//! Runs with kernel hosts that were late are done again: a machine that is busy for a moment costs time and no result.

use crate::tell;
use anyhow::Result;
use lasthop_scenario::RunResult;

/// How often studies do a late run again.
pub(crate) const MOST_REPEATS: u64 = 2;

/// Does a run until its result is not late, and again `retries` times at most; what came out last, and how often it was done
/// again. `None` if it was interrupted. A result that is not valid for another reason is not tried again.
///
/// # Errors
/// As `run`.
pub(crate) fn until_not_late<T>(
    label: &str,
    retries: u64,
    result_of: impl Fn(&T) -> &RunResult,
    mut run: impl FnMut() -> Result<Option<T>>,
) -> Result<Option<(T, u64)>> {
    let mut repeats = 0;
    loop {
        let Some(outcome) = run()? else { return Ok(None) };
        let result = result_of(&outcome);
        let late = !result.valid && result.invalid_reasons.iter().all(|reason| lasthop_lab::is_lateness(reason));
        if !late || repeats == retries {
            return Ok(Some((outcome, repeats)));
        }
        repeats += 1;
        tell(format_args!("{label}: once more, for the machine was busy: {}", result.invalid_reasons.join("; ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_scenario::{Override, Scenario};

    fn result() -> RunResult {
        let overrides = [Override::seed(1)];
        let text = "duration_s = 0.5\nwarmup_s = 0\n[[hosts]]\n";
        let scenario = Scenario::from_toml("some.toml", text, &overrides).expect("a scenario");
        let stop = std::sync::atomic::AtomicBool::new(false);
        let options = lasthop_sim::Options { build: crate::build(), series: false, stop: &stop, progress: &|_| {} };
        let (result, _) = lasthop_sim::run(&scenario, &options).expect("it runs").expect("nobody stops it");
        result
    }

    /// What comes out where runs end with these reasons, one after the other.
    fn tried(retries: u64, reasons: &[&[&str]]) -> (RunResult, u64) {
        let mut reasons = reasons.iter();
        let once = || {
            let reasons = reasons.next().expect("no more runs than that");
            let invalid_reasons: Vec<String> = reasons.iter().map(|reason| (*reason).to_owned()).collect();
            Ok(Some(RunResult { valid: invalid_reasons.is_empty(), invalid_reasons, ..result() }))
        };
        until_not_late("some", retries, |run| run, once).expect("no error").expect("nobody stops it")
    }

    #[test]
    fn a_late_run_is_done_again_and_one_that_is_not_valid_for_another_reason_is_not() {
        const LATE: &str = "one delivery was 210000 us late, more than the shortest timeout of TCP";
        let (run, repeats) = tried(2, &[&[LATE], &[]]);
        assert_eq!((run.valid, repeats), (true, 1));
        let (run, repeats) = tried(2, &[&[LATE], &[LATE], &[LATE, LATE]]);
        assert_eq!((run.valid, run.invalid_reasons.len(), repeats), (false, 2, 2));
        let (run, repeats) = tried(0, &[&[LATE]]);
        assert_eq!((run.valid, repeats), (false, 0));
        let (run, repeats) = tried(2, &[&[LATE, "flow 3 failed: connection refused"]]);
        assert_eq!((run.valid, repeats), (false, 0));
    }
}
