//! A run that waits at each tick of the hosts that learn: what `lasthop.gym` steps.
//!
//! ```text
//!  thread of Python                        thread of the run, which never needs the GIL
//!  start, send(actions) ── limits ──>      decides, and simulates up to the next tick
//!  receive()            <── what it sees ── each host that learns, once a round
//! ```
//!
//! One host that learns decides at once by what it sees. Of several, each sees, and does what it was told before: their
//! ticks are at different moments, so none could wait for what the last one sees.
//!
//! The run ends when the [`Episode`] is closed or dropped: its channels close, and the policy that waits fails.

use crate::errors::Failure;
use crate::outcome::{Document, Outcome};
use crate::scenario::CoreScenario;
use lasthop_external::Programs;
use lasthop_policy::External;
use lasthop_policy::schema::{Decision, Flow, FlowLimits, Limits, Observation};
use lasthop_scenario::{HostSpec, RunResult, Scenario, Series};
use lasthop_sim::{Options, SimError};
use lasthop_version::build;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Between two looks at signals.
const TICK: Duration = Duration::from_millis(50);
/// The entries of what a host sees; their names are in `lasthop/gym.py`.
const ENTRIES: usize = 13;

/// What a host that learns sees at a tick.
type Seen = [f64; ENTRIES];

/// What a host does until its next tick: the limits of its windows together, in segments, and of its pacing rate, in
/// Mb/s. Zero is no limit.
type Action = (u32, f64);

enum Told {
    Seen(u16, Seen),
    Ended(Box<Result<Option<(RunResult, Series)>, SimError>>),
}

/// A run that is stepped.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub(crate) struct Episode {
    file: String,
    hosts: Vec<u16>,
    stop: Arc<AtomicBool>,
    running: Mutex<Option<Running>>,
}

struct Running {
    /// To each host that learns.
    actions: BTreeMap<u16, Sender<Action>>,
    told: Receiver<Told>,
    thread: JoinHandle<()>,
}

#[pymethods]
impl Episode {
    /// Starts the run, in which these hosts learn; they have the policy "external" in the scenario. With `delayed` a
    /// host does at a tick what it was told for it before the tick, and so may be one of several.
    #[new]
    fn new(scenario: &CoreScenario, hosts: Vec<u16>, delayed: bool, series: bool) -> PyResult<Self> {
        let run = scenario.with_overrides(&scenario.overrides);
        let run = run.map_err(|error| error.into_python(scenario.file(), ""))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = mpsc::channel();
        let (mut actions, mut learners) = (BTreeMap::new(), BTreeMap::new());
        for host in &hosts {
            let (send, receive) = mpsc::channel();
            actions.insert(*host, send);
            let (tell, stop) = (tell.clone(), Arc::clone(&stop));
            learners.insert(*host, Learner::new(*host, delayed, receive, tell, stop));
        }
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            // Whom it is told has gone if it cannot be told.
            let _ = tell.send(Told::Ended(Box::new(simulated(&run, series, &stopped, learners))));
        });
        let running = Mutex::new(Some(Running { actions, told, thread }));
        Ok(Self { file: scenario.file().to_owned(), hosts, stop, running })
    }

    /// What each host does at its next tick.
    fn send(&self, actions: Vec<Action>) -> PyResult<()> {
        let running = self.running();
        let running = running.as_ref().ok_or_else(closed)?;
        if actions.len() != self.hosts.len() {
            return Err(PyValueError::new_err(format!("{} actions for {} hosts", actions.len(), self.hosts.len())));
        }
        for (host, action) in self.hosts.iter().zip(actions) {
            // A run that has ended says so when it is asked what it sees.
            let _ = running.actions[host].send(action);
        }
        Ok(())
    }

    /// What each host sees at its next tick, when the last of them has come to it.
    fn receive(&self, py: Python<'_>) -> PyResult<Vec<Seen>> {
        let mut seen: BTreeMap<u16, Seen> = BTreeMap::new();
        while seen.len() < self.hosts.len() {
            match self.told(py)? {
                Told::Seen(host, of_host) => drop(seen.insert(host, of_host)),
                Told::Ended(outcome) => {
                    self.close(py);
                    return Err(self.failed(py, *outcome));
                }
            }
        }
        Ok(self.hosts.iter().map(|host| seen[host]).collect())
    }

    /// Runs on to the end with the last actions; what it gave.
    fn finish(&self, py: Python<'_>) -> PyResult<Outcome> {
        if let Some(running) = self.running().as_mut() {
            running.actions.clear();
        }
        loop {
            let Told::Ended(outcome) = self.told(py)? else { continue };
            self.close(py);
            let (result, series) = match *outcome {
                Ok(Some(run)) => run,
                outcome => return Err(self.failed(py, outcome)),
            };
            let series = (!series.flows.t_s.is_empty()).then(|| Box::new(series));
            return Ok(Outcome::new(Document::Run { result: Box::new(result), series }));
        }
    }

    /// Ends the run and its thread.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.end());
    }
}

impl Episode {
    /// Why there is nothing to see.
    fn failed(&self, py: Python<'_>, outcome: Result<Option<(RunResult, Series)>, SimError>) -> PyErr {
        match outcome {
            Err(error) => Failure { error, cause: None }.into_python(py, &self.file, ""),
            Ok(Some(_)) => PyRuntimeError::new_err("the run has ended"),
            Ok(None) => closed(),
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().expect("no thread panics while it holds the lock")
    }

    fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(Running { actions, told, thread }) = self.running().take() {
            drop((actions, told));
            let _ = thread.join();
        }
    }

    /// The next thing that the run tells. A signal whose handler raises, such as Ctrl-C, ends the run.
    fn told(&self, py: Python<'_>) -> PyResult<Told> {
        loop {
            let told = py.detach(|| self.running().as_ref().map(|running| running.told.recv_timeout(TICK)));
            match told.ok_or_else(closed)? {
                Ok(told) => return Ok(told),
                Err(RecvTimeoutError::Timeout) => py.check_signals().inspect_err(|_| self.close(py))?,
                Err(RecvTimeoutError::Disconnected) => return Err(self.died()),
            }
        }
    }

    /// Nothing is told any more: the run is closed, or its thread panicked. Then so does this one, with its message.
    fn died(&self) -> PyErr {
        let running = self.running().take();
        if let Some(Err(panic)) = running.map(|running| running.thread.join()) {
            std::panic::resume_unwind(panic);
        }
        closed()
    }
}

impl Drop for Episode {
    fn drop(&mut self) {
        self.end();
    }
}

fn closed() -> PyErr {
    PyRuntimeError::new_err("the run is closed; accepted: reset() first")
}

/// Runs the scenario with these hosts' policies.
fn simulated(
    scenario: &Scenario,
    series: bool,
    stop: &Arc<AtomicBool>,
    mut learners: BTreeMap<u16, Learner>,
) -> Result<Option<(RunResult, Series)>, SimError> {
    let started = Instant::now();
    let options = Options { build: build(), series, stop, progress: &|_| {}, on_sample: None };
    let mut programs = Programs::new(stop);
    let mut outcome = lasthop_sim::run_with(scenario, &options, &mut |host: &HostSpec| {
        let settings = &host.kind.policy;
        let Some(mut learner) = learners.remove(&host.index) else {
            return programs.policy_of(settings, host.index, scenario.seed).map_err(|error| error.to_string());
        };
        let ask = move |seen: &Observation| learner.decide(seen);
        Ok(Some(Box::new(External::new(settings.minimum_segments, ask))))
    });
    if let Ok(Some((result, _))) = &mut outcome {
        result.took(started.elapsed());
    }
    outcome
}

/// The policy of a host that learns.
struct Learner {
    host: u16,
    delayed: bool,
    actions: Receiver<Action>,
    tell: Sender<Told>,
    stop: Arc<AtomicBool>,
    /// What it does now.
    action: Action,
    /// The bytes acknowledged of each connection at the tick before.
    acked: BTreeMap<u64, u64>,
    /// That tick, in nanoseconds; `None` before the first.
    before_ns: Option<u64>,
}

impl Learner {
    fn new(host: u16, delayed: bool, actions: Receiver<Action>, tell: Sender<Told>, stop: Arc<AtomicBool>) -> Self {
        let (acked, before_ns) = (BTreeMap::new(), None);
        Self { host, delayed, actions, tell, stop, action: (0, 0.0), acked, before_ns }
    }

    fn decide(&mut self, observation: &Observation) -> Result<Decision, String> {
        let is_first = self.before_ns.is_none();
        let seen = Told::Seen(self.host, self.see(observation));
        if self.delayed {
            if !is_first {
                self.listen()?;
            }
            let _ = self.tell.send(seen);
        } else {
            let _ = self.tell.send(seen);
            self.listen()?;
        }
        Ok(limits(observation, self.action))
    }

    /// Waits for what to do. What was last told holds when nobody tells anything more.
    fn listen(&mut self) -> Result<(), String> {
        match self.actions.recv() {
            Ok(action) => self.action = action,
            Err(_) if self.stop.load(Ordering::Relaxed) => return Err("the run is closed".to_owned()),
            Err(_) => {}
        }
        Ok(())
    }

    fn see(&mut self, observation: &Observation) -> Seen {
        let flows = &observation.flows;
        let acked: BTreeMap<u64, u64> = flows.iter().map(|flow| (flow.id, flow.acked_bytes)).collect();
        let since = |(id, now): (&u64, &u64)| now.saturating_sub(self.acked.get(id).copied().unwrap_or(0));
        let bytes: u64 = acked.iter().map(since).sum();
        let elapsed_ns = observation.now_ns - self.before_ns.unwrap_or(0);
        (self.acked, self.before_ns) = (acked, Some(observation.now_ns));

        let ratio =
            |srtt: Option<u64>, lowest: Option<u64>| Some(srtt? as f64 / lowest.filter(|lowest| *lowest > 0)? as f64);
        // Of the connection whose RTT has risen most, a busy one if there is any.
        let risen = |flow: &&Flow| (flow.busy, ratio(flow.srtt_ns, flow.min_rtt_ns).unwrap_or(0.0));
        let worst = flows.iter().max_by(|one, other| risen(one).partial_cmp(&risen(other)).expect("numbers"));
        let ms = |ns: Option<u64>| ns.unwrap_or(0) as f64 / 1e6;
        let count = |is: fn(&Flow) -> bool| flows.iter().filter(|flow| is(flow)).count() as f64;
        let peers = observation.peers.reports.iter().filter_map(|peer| ratio(peer.srtt_ns, peer.min_rtt_ns));
        [
            flows.len() as f64,
            count(|flow| flow.busy),
            count(|flow| flow.backlogged),
            if elapsed_ns == 0 { 0.0 } else { bytes as f64 * 8e3 / elapsed_ns as f64 },
            ms(worst.and_then(|flow| flow.srtt_ns)),
            ms(worst.and_then(|flow| flow.min_rtt_ns)),
            flows.iter().map(|flow| f64::from(flow.cwnd_segments)).sum(),
            flows.iter().map(|flow| f64::from(flow.in_flight_segments)).sum(),
            f64::from(self.action.0),
            self.action.1,
            observation.peers.terminals.into(),
            observation.peers.busy_flows.into(),
            peers.fold(0.0, f64::max),
        ]
    }
}

/// The host's limits, split over its busy connections, and for a new one as if it were busy too.
fn limits(observation: &Observation, (segments, mbps): Action) -> Decision {
    let busy = observation.flows.iter().filter(|flow| flow.busy).count() as u32;
    let share = |among: u32| Limits {
        max_segments: (segments > 0).then(|| (segments / among).max(1)),
        max_pacing_mbps: (mbps > 0.0).then(|| mbps / f64::from(among)),
        ..Limits::default()
    };
    let of = |id| {
        let Limits { max_segments, max_pacing_mbps, .. } = share(busy.max(1));
        FlowLimits { id, max_segments, max_pacing_mbps, ..FlowLimits::default() }
    };
    let flows = observation.flows.iter().map(|flow| of(flow.id)).collect();
    Decision { flows, new_flows: Some(share(busy + 1)), word: None, reason: None }
}
