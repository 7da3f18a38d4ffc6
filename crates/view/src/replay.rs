//! A record of an agent, tick by tick in any order.

use crate::{RecordError, ViewError};
use lasthop_status::Mode;
use lasthop_status::Status;
use lasthop_status::record::{self, Event, FlowRecord, Ready, Tick};
use lasthop_status::{Meter, VERSION, Watched};
use std::io::Read as _;
use std::path::Path;

/// A record in memory: its text, with the places of its ticks.
pub struct Replay {
    text: String,
    /// Each tick's line, and the number of `ready` lines before it.
    ticks: Vec<(std::ops::Range<usize>, usize)>,
    times_ns: Vec<u64>,
    rates: Vec<Option<f64>>,
    ready: Vec<Ready>,
}

/// What the list of ticks needs of each.
#[derive(serde::Deserialize)]
struct Short {
    t_ns: u64,
    #[serde(default, alias = "lasthop")]
    policy_state: Option<Rate>,
}

#[derive(serde::Deserialize)]
struct Rate {
    common_rate_mbps: Option<f64>,
}

impl Replay {
    /// Reads the record. A last line that is not whole is left out.
    ///
    /// # Errors
    /// It cannot be read, another line is no event, or there is no tick.
    pub fn open(path: &Path) -> Result<Self, ViewError> {
        let path = path.to_owned();
        let mut text = String::new();
        match record::open(&path).and_then(|mut file| file.read_to_string(&mut text)) {
            Ok(_) => Self::read(text).map_err(|source| ViewError::Record { path, source }),
            Err(source) => Err(ViewError::Read { path, source }),
        }
    }

    pub(crate) fn read(text: String) -> Result<Self, RecordError> {
        let (mut ticks, mut times_ns, mut rates, mut ready) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut start = 0;
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let range = start..start + line.len();
            start = range.end;
            if !line.ends_with('\n') || line.trim().is_empty() {
                continue;
            }
            let of_line = |source| RecordError::Line { number: number + 1, source };
            if line.starts_with(r#"{"event":"tick""#) {
                let short: Short = serde_json::from_str(line).map_err(of_line)?;
                ticks.push((range, ready.len()));
                times_ns.push(short.t_ns);
                rates.push(short.policy_state.and_then(|state| state.common_rate_mbps));
            } else if let Event::Ready(event) = serde_json::from_str(line).map_err(of_line)? {
                ready.push(event);
            }
        }
        if ticks.is_empty() {
            return Err(RecordError::NoTick);
        }
        Ok(Self { text, ticks, times_ns, rates, ready })
    }

    /// The number of the last tick, from 0.
    pub fn last(&self) -> usize {
        self.ticks.len() - 1
    }

    /// Seconds from the first tick to this one, or the last. A record that was continued after a reboot starts anew.
    pub(crate) fn time_s(&self, at: usize) -> f64 {
        self.times_ns[at.min(self.last())].saturating_sub(self.times_ns[0]) as f64 / 1e9
    }

    /// The last tick that is not later than this.
    pub(crate) fn at(&self, seconds: f64) -> usize {
        (0..=self.last()).rev().find(|at| self.time_s(*at) <= seconds).unwrap_or(0)
    }

    /// The common rate up to and with this tick.
    pub(crate) fn rates(&self, at: usize) -> &[Option<f64>] {
        &self.rates[..=at]
    }

    fn parse(&self, at: usize) -> Result<Tick, RecordError> {
        match serde_json::from_str(&self.text[self.ticks[at].0.clone()]) {
            Ok(Event::Tick(tick)) => Ok(tick),
            Ok(_) => Err(RecordError::Tick { at, source: None }),
            Err(source) => Err(RecordError::Tick { at, source: Some(source) }),
        }
    }

    /// What an agent would have sent at this tick. A record says nothing of single peers.
    ///
    /// # Errors
    /// The line is no whole tick.
    pub fn tick(&self, at: usize) -> Result<Watched, RecordError> {
        let mut meter = Meter::default();
        if let Some(before) = at.checked_sub(1) {
            meter.flows(&self.parse(before)?);
        }
        let tick = self.parse(at)?;
        let (flows, flows_left_out) = meter.flows(&tick);
        let ready = self.ready.get(self.ticks[at].1.wrapping_sub(1)).or(self.ready.first());
        let ready = ready.ok_or(RecordError::NoReady)?;
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let governed = |flow: &&FlowRecord| ready.mode != Mode::Control || flow.controlled;
        let enabled_at = tick.flows.iter().filter(governed).filter_map(|flow| flow.enabled_at_ns).min();
        let bounds = || tick.flows.iter().filter_map(|flow| flow.bound.or(flow.advised));
        let known = tick.policy_state.unwrap_or_default();
        let status = Status {
            terminals: tick.terminals,
            connections: count(tick.flows.len()),
            busy: count(tick.flows.iter().filter(|flow| flow.busy).count()),
            control_since_s: enabled_at.map(|since| tick.t_ns.saturating_sub(since) as f64 / 1e9),
            reason: tick.flows.iter().find(|flow| flow.busy).map(|flow| flow.reason.clone()),
            common_rate_mbps: known.common_rate_mbps,
            bounded: count(bounds().count()),
            excess_us: known.excess_us,
            harmed_by: known.harmed_by,
            harm: known.harm,
            gain: known.gain,
            ..Status::of(ready)
        };
        Ok(Watched {
            v: VERSION,
            seq: at as u64,
            t_ns: tick.t_ns,
            status,
            neighbours: Vec::new(),
            flows,
            flows_left_out,
            trial_told: Vec::new(),
        })
    }
}
