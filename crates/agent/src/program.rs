//! The program of the policy `external`: asked at each tick, never waited for.
//!
//! ```text
//!  tick ──> observation ──> program ──> decision within `command_deadline_ms` ──> bounds
//!                              ├──────> late: no bounds, and what it says later is thrown away
//!                              └──────> dead, mad, or silent for 10 s: no bounds; started again after 1, 2, 4 ... 60 s
//! ```
//!
//! The agent goes on with its loop meanwhile: it hears peers, sends beacons and answers status requests. The second
//! half of a tick comes when the decision is there or the deadline has passed.

use crate::config::Config;
use crate::tell::log_limit::LogLimit;
use lasthop_external::{Account, Program, ProgramError, Start};
use lasthop_policy::schema::{self, Decision, Hello};
use lasthop_policy::{External, Policy, PolicyName};
use lasthop_status::record::{Event, ProgramTotals};
use lasthop_units::{Span, Time};
use nix::unistd::geteuid;
use rand::RngExt as _;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use tracing::{info, warn};

/// A program that owes an answer for longer hangs.
const HANGS_AFTER: Span = Span::from_secs(10);
/// How long a program may start before its silence counts as late.
const STARTS_WITHIN: Span = Span::from_secs(5);
/// The pause before a new start. Each failure in a row doubles it.
const FIRST_PAUSE: Span = Span::from_secs(1);
const LONGEST_PAUSE: Span = Span::from_secs(60);

/// What a program decided, or why it did not.
type Answer = Result<Decision, String>;

/// The program, and what is known of it.
pub(crate) struct Asked {
    start: Start,
    deadline: Span,
    /// `None`: it failed, and is started again.
    program: Option<Program>,
    /// For the policy.
    answers: Sender<Answer>,
    /// Until when this tick's answer is waited for; `None`: the policy has it.
    waits_until: Option<Time>,
    /// The program was asked at this tick. It is not while it owes an earlier answer.
    is_asked: bool,
    /// The program decided at this tick, by its own account.
    has_decided: bool,
    /// Since when it owes an answer; before its first, when it was started.
    silent_since: Time,
    /// It has answered since it was started.
    has_begun: bool,
    start_again_at: Time,
    pause: Span,
    tick: u64,
    totals: ProgramTotals,
    /// Why nothing is bounded now.
    trouble: Option<String>,
    /// Whether the log has it.
    is_told: bool,
    trouble_log: LogLimit,
    /// For the record.
    events: Vec<Event>,
}

impl Asked {
    /// The program of the policy `external`, started, and the policy that takes its answers; `None` with another
    /// policy. `totals`: of an earlier program.
    pub(crate) fn start(config: &Config, now: Time, totals: ProgramTotals) -> Option<(Self, Box<dyn Policy + Send>)> {
        let settings = &config.policy;
        if settings.policy != PolicyName::External {
            return None;
        }
        let (answers, taken) = channel();
        let take =
            move |_: &schema::Observation| taken.try_recv().unwrap_or_else(|_| Err("nothing was asked".to_owned()));
        let policy = Box::new(External::new(settings.minimum_segments, take));
        let hello = Hello {
            schema: schema::VERSION,
            host: None,
            // 53 bits: exact in every language's numbers.
            seed: rand::rng().random::<u64>() >> 11,
            tick_ns: config.tick().as_nanos(),
        };
        let mut asked = Self {
            start: Start {
                command: settings.program().to_vec(),
                user: geteuid().is_root().then(|| Account::named(settings.user())),
                repeatable: false,
                hello,
                ends_within: Duration::ZERO,
            },
            deadline: settings.deadline().min(config.tick()),
            program: None,
            answers,
            waits_until: None,
            is_asked: false,
            has_decided: false,
            silent_since: now,
            has_begun: false,
            start_again_at: now,
            pause: FIRST_PAUSE,
            tick: 0,
            totals,
            trouble: None,
            is_told: false,
            trouble_log: LogLimit::each_minute(),
            events: Vec::new(),
        };
        asked.launch(now);
        Some((asked, policy))
    }

    /// Asks for a decision on this observation. [`Self::poll`] says when the policy has its answer.
    pub(crate) fn ask(&mut self, now: Time, observation: &lasthop_policy::Observation<'_>) {
        self.throw_late_answers_away(now);
        if self.program.is_none() && now >= self.start_again_at {
            self.launch(now);
        }
        let observation = schema::Observation::new(self.tick, observation);
        self.tick += 1;
        self.is_asked = false;
        if let Some(program) = self.program.as_mut().filter(|program| program.owed() == 0) {
            match program.ask(observation.clone()) {
                Ok(()) => {
                    self.is_asked = true;
                    if self.has_begun {
                        self.silent_since = now;
                    }
                    self.events.push(Event::Observation(observation));
                }
                Err(error) => _ = self.on_failed(now, &error),
            }
        }
        self.waits_until = Some(now + self.deadline);
    }

    /// Whether the tick can go on: the policy has its answer, or the reason for none.
    pub(crate) fn poll(&mut self, now: Time) -> bool {
        let Some(until) = self.waits_until else { return false };
        let answer = match &mut self.program {
            None => Err(self.trouble.clone().unwrap_or_default()),
            Some(_) if !self.is_asked => Err(self.on_late(now)),
            Some(program) => match program.poll() {
                Ok(Some(decision)) => Ok(decision),
                Ok(None) if now < until => return false,
                Ok(None) => Err(self.on_late(now)),
                Err(error) => Err(self.on_failed(now, &error)),
            },
        };
        self.waits_until = None;
        self.has_decided = answer.is_ok();
        if let Ok(decision) = &answer {
            self.has_begun = true;
            self.events.push(Event::Decision(decision.clone()));
        }
        // The policy has the other end for as long as this one is there.
        let _ = self.answers.send(answer);
        true
    }

    /// The policy has taken the answer; `failure`: why it is no decision.
    pub(crate) fn on_taken(&mut self, now: Time, failure: Option<&str>) {
        match failure {
            Some(problem) if self.has_decided => {
                // In time, and nonsense.
                self.stop_program(now);
                self.on_trouble(now, problem.to_owned(), problem);
            }
            Some(_) => {}
            None => {
                self.totals.decisions += 1;
                self.pause = FIRST_PAUSE;
                if self.trouble.take().is_some() && std::mem::take(&mut self.is_told) {
                    info!("the policy's program decides in time again");
                }
            }
        }
    }

    /// The next tick is there: nothing is waited for any more.
    pub(crate) fn give_up(&mut self) {
        self.waits_until = self.waits_until.map(|_| Time::ZERO);
    }

    /// When [`Self::poll`] has something to say at the latest.
    pub(crate) const fn due_at(&self) -> Option<Time> {
        self.waits_until
    }

    /// What to wait for.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = (BorrowedFd<'_>, nix::poll::PollFlags)> {
        let program = self.program.as_ref().filter(|_| self.waits_until.is_some());
        program.into_iter().flat_map(Program::descriptors)
    }

    /// The lines since the last call, for the record.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    pub(crate) const fn totals(&self) -> ProgramTotals {
        self.totals
    }

    /// Why nothing is bounded now; `None`: it decides in time.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    fn launch(&mut self, now: Time) {
        self.totals.starts += 1;
        match Program::start(&self.start) {
            Ok(program) => {
                self.program = Some(program);
                self.events.push(Event::Hello(self.start.hello.clone()));
                (self.has_begun, self.silent_since, self.tick) = (false, now, 0);
            }
            Err(error) => _ = self.on_failed(now, &error),
        }
    }

    /// Answers of earlier ticks.
    fn throw_late_answers_away(&mut self, now: Time) {
        while let Some(program) = self.program.as_mut().filter(|program| program.owed() > 0) {
            match program.poll() {
                Ok(Some(_)) => self.has_begun = true,
                Ok(None) if now.saturating_since(self.silent_since) < HANGS_AFTER => return,
                Ok(None) => {
                    let error = program.late(Duration::from_nanos(HANGS_AFTER.as_nanos()));
                    self.on_failed(now, &error);
                }
                Err(error) => _ = self.on_failed(now, &error),
            }
        }
    }

    /// It has not decided by the deadline. Returns why nothing is bounded.
    fn on_late(&mut self, now: Time) -> String {
        if !self.has_begun && now.saturating_since(self.silent_since) < STARTS_WITHIN {
            // Interpreters take longer to begin than for a decision.
            let problem = "the program is starting".to_owned();
            self.trouble.get_or_insert_with(|| problem.clone());
            return problem;
        }
        self.totals.late += 1;
        let problem = format!("the program gave no decision within {}", self.deadline);
        self.on_trouble(now, problem.clone(), &problem);
        problem
    }

    /// It cannot be started, has ended, hangs, or writes nonsense. Returns why nothing is bounded.
    fn on_failed(&mut self, now: Time, error: &ProgramError) -> String {
        self.stop_program(now);
        let problem = error.in_brief();
        self.on_trouble(now, problem.clone(), &error.to_string());
        problem
    }

    fn stop_program(&mut self, now: Time) {
        self.totals.failures += 1;
        self.program = None;
        self.start_again_at = now + self.pause;
        self.pause = Span::from_nanos(2 * self.pause.as_nanos()).min(LONGEST_PAUSE);
    }

    /// Logs the first problem since it last decided in time.
    fn on_trouble(&mut self, now: Time, problem: String, in_full: &str) {
        self.trouble = Some(problem);
        if !self.is_told
            && let Some(more) = self.trouble_log.may_say(now)
        {
            warn!("nothing is bounded, because the policy's program does not decide: {in_full}{more}");
            self.is_told = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_peers::Neighbourhood;
    use std::thread;
    use std::time::Instant;

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Span::from_millis(milliseconds)
    }

    fn asked(command: &[&str]) -> (Asked, Box<dyn Policy + Send>) {
        let mut config = Config::default();
        config.policy.policy = PolicyName::External;
        config.policy.command = Some(command.iter().map(|word| (*word).to_owned()).collect());
        Asked::start(&config, at(0), ProgramTotals::default()).expect("the policy is external")
    }

    fn ask(asked: &mut Asked, now: Time) {
        asked.ask(now, &lasthop_policy::Observation { now, flows: &[], peers: &Neighbourhood::alone() });
    }

    /// Waits for the real program, while the agent's clock stands still before the deadline.
    fn wait_for_answer(asked: &mut Asked, now: Time) {
        let begun = Instant::now();
        while !asked.poll(now) {
            assert!(begun.elapsed() < Duration::from_secs(30), "the program says nothing");
            thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn a_program_that_ends_is_started_again_after_one_two_and_four_seconds() {
        let (mut asked, _policy) = asked(&["sh", "-c", "echo no more >&2; exit 3"]);
        let mut tick = |milliseconds| {
            ask(&mut asked, at(milliseconds));
            wait_for_answer(&mut asked, at(milliseconds));
            (asked.totals().starts, asked.trouble().map(str::to_owned))
        };
        let ended = Some("the program has ended (exit code 3)".to_owned());
        for (milliseconds, starts) in
            [(0, 1), (500, 1), (1000, 2), (1500, 2), (2500, 2), (3000, 3), (6500, 3), (7000, 4)]
        {
            assert_eq!(tick(milliseconds), (starts, ended.clone()), "at {milliseconds} ms");
        }
        assert_eq!(asked.totals(), ProgramTotals { decisions: 0, late: 0, failures: 4, starts: 4 });
    }

    #[test]
    fn a_program_that_never_answers_is_given_up_after_ten_seconds() {
        let (mut asked, _policy) = asked(&["sleep", "1000"]);
        ask(&mut asked, at(0));
        assert!(!asked.poll(at(99)) && asked.poll(at(100)) && !asked.poll(at(101)));
        assert_eq!(asked.trouble(), Some("the program is starting"));
        ask(&mut asked, at(9_500));
        assert!(asked.poll(at(9_500)), "it owes an answer, so it is not asked");
        assert_eq!(asked.totals().failures, 0);
        ask(&mut asked, at(10_000));
        assert!(asked.poll(at(10_000)));
        assert_eq!((asked.totals().failures, asked.trouble()), (1, Some("the program gave no decision within 10s")));
    }

    /// What the policy says of a connection at this tick.
    fn reason(asked: &mut Asked, policy: &mut Box<dyn Policy + Send>, now: Time) -> String {
        ask(asked, now);
        thread::sleep(Duration::from_millis(20));
        assert!(asked.poll(now) || asked.poll(now + asked.deadline));
        let flows = [lasthop_policy::FlowObservation::default()];
        let peers = Neighbourhood::alone();
        let decision = policy.on_tick(&lasthop_policy::Observation { now, flows: &flows, peers: &peers });
        asked.on_taken(now, policy.failure());
        decision.flows[0].reason.to_string()
    }

    #[test]
    fn the_answer_of_an_earlier_tick_is_thrown_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let gate = folder.path().join("gate");
        // As nobody, where the test is root.
        std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its own");
        let script = r#"
            read hello
            read one; while ! [ -e "$0" ]; do sleep 0.01; done; echo '{"reason": "one"}'
            while read two; do echo '{"reason": "two"}'; done
        "#;
        let (mut asked, mut policy) = asked(&["sh", "-c", script, gate.to_str().expect("text")]);
        assert!(reason(&mut asked, &mut policy, at(0)).ends_with("the program is starting"));
        std::fs::write(&gate, "").expect("written");
        let begun = Instant::now();
        for tick in 1.. {
            // The agent's clock hardly moves.
            let said = reason(&mut asked, &mut policy, at(500 + tick));
            if said == "two" {
                break;
            }
            assert!(said.ends_with("the program is starting") || said.contains("within"), "{said}");
            assert!(begun.elapsed() < Duration::from_secs(30), "the program says nothing");
        }
        assert_eq!((asked.totals().decisions, asked.totals().failures), (1, 0));
    }

    #[test]
    fn a_program_that_answers_the_hello_is_refused() {
        let (mut asked, mut policy) = asked(&["sh", "-c", "while read line; do echo '{}'; done"]);
        let begun = Instant::now();
        for tick in 0.. {
            let said = reason(&mut asked, &mut policy, at(tick));
            if said.contains("nothing was asked") {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{said}");
        }
    }
}
