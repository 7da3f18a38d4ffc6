//! An agent's record, as far as a scenario needs it.

use anyhow::{Context as _, Result, bail};
use lasthop_status::WifiLink;
use lasthop_status::record::{self, Event, FlowRecord, Ready, Tick};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

/// A longer pause than this is one.
const PAUSE_S: f64 = 2.0;
/// A connection that ends within this time before the run's end goes on.
const AT_END_S: f64 = 1.5;
/// An application of whose connection nothing waits at so many ticks holds it back itself.
const UNSENT_NEVER: f64 = 0.8;

/// The direction of a connection's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    Down,
}

/// The record of one host.
pub(super) struct Record {
    /// The file's name, as a host may have it.
    pub(super) name: String,
    pub(super) ready: Option<Ready>,
    pub(super) ticks: Vec<Seen>,
    /// By cookie.
    pub(super) flows: BTreeMap<u64, Flow>,
}

/// What a tick says of the place.
pub(super) struct Seen {
    /// On the record's clock until [`start_together`].
    pub(super) at_s: f64,
    pub(super) terminals: u32,
    pub(super) wifi: Option<WifiLink>,
}

/// One connection.
pub(super) struct Flow {
    congestion_control: String,
    samples: Vec<Sample>,
    pub(super) min_rtt_us: Option<u64>,
    max_srtt_us: u64,
}

#[derive(Clone, Copy)]
struct Sample {
    at_s: f64,
    acked: u64,
    received: u64,
    unsent: u64,
}

impl Record {
    /// Reads a record; of one with several starts of the agent the last. A last line that is not whole is left out.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = record::open(path).with_context(|| format!("cannot read the record {}", path.display()))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let legal = |letter: char| if letter.is_ascii_alphanumeric() || "-_".contains(letter) { letter } else { '-' };
        let name = stem.chars().map(legal).take(30).collect();
        let mut record = Self { name, ready: None, ticks: Vec::new(), flows: BTreeMap::new() };
        let mut reader = BufReader::new(file);
        let mut line = String::new();
        for number in 1.. {
            line.clear();
            let read = reader.read_line(&mut line).with_context(|| format!("{}:{number}", path.display()))?;
            if read == 0 || !line.ends_with('\n') {
                break;
            }
            if line.trim().is_empty() {
                continue;
            }
            let event = serde_json::from_str(&line).with_context(|| {
                format!("{}:{number}: is no line of an agent's record (`lasthop agent --record FILE`)", path.display())
            })?;
            match event {
                Event::Ready(ready) => {
                    (record.ticks, record.flows) = (Vec::new(), BTreeMap::new());
                    record.ready = Some(ready);
                }
                Event::Tick(tick) => record.add(tick),
                _ => {}
            }
        }
        if record.ticks.is_empty() {
            bail!("{} has no tick since the agent's last start: there is nothing to replay", path.display());
        }
        Ok(record)
    }

    fn add(&mut self, tick: Tick) {
        let at_s = tick.t_ns as f64 / 1e9;
        for flow in tick.flows {
            let known = self.flows.entry(flow.cookie).or_insert_with(|| Flow {
                congestion_control: flow.congestion_control.clone(),
                samples: Vec::new(),
                min_rtt_us: None,
                max_srtt_us: 0,
            });
            known.add(at_s, &flow);
        }
        self.ticks.push(Seen { at_s, terminals: tick.terminals, wifi: tick.wifi });
    }

    /// When its connections grew last.
    pub(super) fn last_growth_s(&self) -> Option<f64> {
        self.flows.values().filter_map(Flow::last_growth_s).reduce(f64::max)
    }

    /// The congestion control that carried most.
    pub(super) fn name_of_law(&self) -> String {
        let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
        for flow in self.flows.values() {
            *bytes.entry(&flow.congestion_control).or_default() += flow.bytes();
        }
        bytes.into_iter().max_by_key(|(_, bytes)| *bytes).map_or_else(String::new, |(name, _)| name.to_owned())
    }

    /// The direction of most of its data.
    pub(super) fn way(&self) -> Way {
        let bytes = |way| self.flows.values().filter(|flow| flow.way() == way).map(Flow::bytes).sum::<u64>();
        if bytes(Way::Up) >= bytes(Way::Down) { Way::Up } else { Way::Down }
    }

    /// The share of its transmissions that were repetitions; `None`: it has no radio that counts them.
    pub(super) fn repeated_share(&self) -> Option<f64> {
        let counts = |seen: &Seen| {
            let wifi = seen.wifi.as_ref()?;
            Some((wifi.tx_packets?, wifi.tx_retries?))
        };
        let mut counted = self.ticks.iter().filter_map(counts);
        let (first, last) = (counted.next()?, counted.next_back()?);
        let (packets, retries) = (last.0.checked_sub(first.0)?, last.1.checked_sub(first.1)?);
        (packets > 0).then(|| f64::from(retries) / (f64::from(packets) + f64::from(retries)))
    }

    fn shift(&mut self, by_s: f64) {
        self.ticks.iter_mut().for_each(|tick| tick.at_s += by_s);
        let samples = self.flows.values_mut().flat_map(|flow| &mut flow.samples);
        samples.for_each(|sample| sample.at_s += by_s);
    }

    /// When it saw its first connection, or the tick before, at which that was not there.
    fn begins_s(&self) -> f64 {
        let first = self.flows.values().map(Flow::seen_s).fold(f64::MAX, f64::min);
        let before = self.ticks.iter().map(|tick| tick.at_s).filter(|at| *at < first).fold(f64::MIN, f64::max);
        if before == f64::MIN { first } else { before }
    }
}

/// Puts all records on one clock, on which the first connection begins at 0. Returns whether they had a common one.
pub(super) fn start_together(records: &mut [Record]) -> bool {
    let to_wall = |record: &Record| {
        let ready = record.ready.as_ref()?;
        Some(ready.unix_ms? as f64 / 1e3 - ready.t_ns as f64 / 1e9)
    };
    let to_wall: Vec<Option<f64>> = records.iter().map(to_wall).collect();
    let aligned = records.len() == 1 || to_wall.iter().all(Option::is_some);
    for (record, to_wall) in records.iter_mut().zip(to_wall) {
        let by_s = if aligned { to_wall.unwrap_or(0.0) } else { -record.begins_s() };
        record.shift(by_s);
    }
    let begin = records.iter().map(Record::begins_s).fold(f64::MAX, f64::min);
    records.iter_mut().for_each(|record| record.shift(-begin));
    aligned
}

impl Flow {
    fn add(&mut self, at_s: f64, flow: &FlowRecord) {
        let (acked, received) = (flow.acked_bytes, flow.received_bytes);
        self.samples.push(Sample { at_s, acked, received, unsent: flow.unsent_bytes });
        self.min_rtt_us = [self.min_rtt_us, flow.min_rtt_us.filter(|us| *us > 0)].into_iter().flatten().min();
        self.max_srtt_us = self.max_srtt_us.max(flow.srtt_us.unwrap_or(0)).max(flow.receive_rtt_us.unwrap_or(0));
    }

    pub(super) fn highest_excess_us(&self) -> u64 {
        self.min_rtt_us.map_or(0, |least| self.max_srtt_us.saturating_sub(least))
    }

    fn seen_s(&self) -> f64 {
        self.samples.first().map_or(f64::MAX, |sample| sample.at_s)
    }

    /// What it has carried while it was recorded: from its start, or from the first tick if it was there before.
    pub(super) fn bytes(&self) -> u64 {
        let way = self.way();
        let (Some(first), Some(last)) = (self.samples.first(), self.samples.last()) else { return 0 };
        last.of(way) - first.of(way).min(last.of(way))
    }

    pub(super) fn way(&self) -> Way {
        match self.samples.last() {
            Some(last) if last.received > last.acked => Way::Down,
            _ => Way::Up,
        }
    }

    /// The bytes carried this way until then, interpolated.
    pub(super) fn carried(&self, way: Way, at_s: f64) -> f64 {
        let next = self.samples.partition_point(|sample| sample.at_s <= at_s);
        let of = |sample: &Sample| sample.of(way) as f64;
        match (next.checked_sub(1).map(|last| &self.samples[last]), self.samples.get(next)) {
            (None, Some(first)) => of(first),
            (Some(last), None) => of(last),
            (Some(before), Some(after)) => {
                let part = (at_s - before.at_s) / (after.at_s - before.at_s);
                of(before) + part * (of(after) - of(before))
            }
            (None, None) => 0.0,
        }
    }

    /// The intervals between two samples in which it carried data: their ends.
    fn growths(&self) -> impl Iterator<Item = (f64, f64)> {
        let way = self.way();
        let pairs = self.samples.windows(2).map(|pair| (pair[0], pair[1]));
        pairs
            .filter(move |(before, after)| after.of(way) > before.of(way))
            .map(|(before, after)| (before.at_s, after.at_s))
    }

    fn last_growth_s(&self) -> Option<f64> {
        self.growths().last().map(|(_, until)| until)
    }

    /// When it began to carry data.
    pub(super) fn first_s(&self) -> f64 {
        self.growths().next().map_or(0.0, |(from, _)| from.max(0.0))
    }

    /// When it ended, if that is before the end of the run.
    pub(super) fn stopped_s(&self, end_s: f64) -> Option<f64> {
        self.last_growth_s().filter(|last| end_s - last > AT_END_S)
    }

    /// The rate at which its application sent, if that held it back: nothing waited, though it sent all the time.
    pub(super) fn own_rate_mbps(&self) -> Option<f64> {
        let (first, last) = (self.first_s(), self.last_growth_s()?);
        let during: Vec<&Sample> = self.samples.iter().filter(|sample| (first..=last).contains(&sample.at_s)).collect();
        let idle = during.iter().filter(|sample| sample.unsent == 0).count() as f64;
        let held_back = self.way() == Way::Up && idle >= UNSENT_NEVER * during.len() as f64;
        (held_back && self.spells_s().is_none()).then(|| self.bytes() as f64 * 8.0 / 1e6 / (last - first).max(1.0))
    }

    /// The mean lengths of its spells with data and without, if it paused.
    pub(super) fn spells_s(&self) -> Option<(f64, f64)> {
        let (mut on, mut off, mut pauses) = (0.0, 0.0, 0);
        let mut before: Option<f64> = None;
        for (from, until) in self.growths() {
            on += until - from;
            if let Some(pause) = before.map(|before| from - before).filter(|pause| *pause > PAUSE_S) {
                off += pause;
                pauses += 1;
            }
            before = Some(until);
        }
        (pauses > 0).then(|| (on / f64::from(pauses + 1), off / f64::from(pauses)))
    }
}

impl Sample {
    const fn of(&self, way: Way) -> u64 {
        match way {
            Way::Up => self.acked,
            Way::Down => self.received,
        }
    }
}
