//! How soon shares are equal again after a host starts or stops sending, or the network changes.
//!
//! Only greedy connections count: those that always send as fast as TCP allows. A host is *busy* while one of them has
//! data that is unsent or unacknowledged. Idle and busy spells shorter than a window are ignored, because congestion
//! control makes such spells by itself.
//!
//! A host's *share* is what its receiving applications get in a window of 2 s. That is eight round trips of the longest
//! path in the studies (256 ms). Segments arrive in one burst a round trip, so a window of n bursts measures a share to
//! 1/n only. With 1 s that is a quarter, and 10 % are in question. A longer window would hide what happens in 5 s.
//!
//! A change is judged if at least two hosts are busy after it and no other change follows within 7 s. (The 7 s are the
//! 5 s in which shares should become equal, and one window.) The result is the time until all shares stay within 10 %
//! of the mean of the busy hosts. They must stay so in all windows that begin during one window's length.
//!
//! *What it leaves out*: whether the shares are large. Hosts that get nothing are equal too; the goodput shows that.

use lasthop_scenario::{ChangeKind, ConvergenceResult};
use lasthop_units::{Bytes, Span, Time};
use std::collections::BTreeMap;

/// The length of the window in which a share is measured.
const WINDOW: Span = Span::from_secs(2);
/// The distance between the beginnings of two windows.
const STEP: Span = Span::from_millis(100);
/// A share counts as equal up to this distance from the mean, as a ratio of the mean.
const EQUAL: f64 = 0.10;
/// A change that another one follows sooner is not judged.
const LEAST: Span = Span::from_secs(7);

/// Takes the samples of all connections.
#[derive(Clone, Debug, Default)]
pub struct ShareMeter {
    flows: BTreeMap<u32, Flow>,
}

#[derive(Clone, Debug)]
struct Flow {
    host: u16,
    /// In order of time.
    samples: Vec<Sample>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Time,
    received: Bytes,
    busy: bool,
}

/// A host's samples on the grid of steps.
struct Host {
    /// Bytes that its applications had received at each step.
    received: Vec<f64>,
    busy: Vec<bool>,
}

impl ShareMeter {
    /// Takes a sample of a flow, in order of time; of several at one moment the last counts. `received`: what its receiving
    /// applications got since the run began; `busy`: whether it is greedy and has data unsent or unacknowledged.
    pub fn on_sample(&mut self, at: Time, flow: u32, host: u16, received: Bytes, busy: bool) {
        let flow = self.flows.entry(flow).or_insert_with(|| Flow { host, samples: Vec::new() });
        let sample = Sample { at, received, busy };
        match flow.samples.last_mut().filter(|last| last.at == at) {
            Some(last) => *last = sample,
            None => flow.samples.push(sample),
        }
    }

    /// What followed each change after the warm-up, in a run that lasts until `end`. `network`: when the network
    /// changed.
    pub fn convergence(&self, warm_at: Time, end: Time, network: &[Time]) -> Vec<ConvergenceResult> {
        let steps = steps(end.saturating_since(Time::ZERO));
        let hosts = self.hosts(steps + 1);
        let mut changes: Vec<(usize, ChangeKind)> =
            (1..=steps).filter_map(|step| kind(&hosts, step).map(|kind| (step, kind))).collect();
        for at in network.iter().filter(|at| **at < end) {
            let step = self::steps(at.saturating_since(Time::ZERO));
            if changes.iter().all(|(other, _)| *other != step) {
                changes.push((step, ChangeKind::Network));
            }
        }
        changes.sort_by_key(|(step, _)| *step);
        let untils = changes.iter().skip(1).map(|(step, _)| *step).chain([steps]);
        let judged = changes.iter().zip(untils).filter(|((from, _), until)| {
            *from >= self::steps(warm_at.saturating_since(Time::ZERO)) && *until >= *from + self::steps(LEAST)
        });
        judged.filter_map(|((from, kind), until)| followed(&hosts, *kind, *from, until)).collect()
    }

    fn hosts(&self, steps: usize) -> Vec<Host> {
        let mut hosts: BTreeMap<u16, Host> = BTreeMap::new();
        for flow in self.flows.values() {
            let host =
                hosts.entry(flow.host).or_insert_with(|| Host { received: vec![0.0; steps], busy: vec![false; steps] });
            let mut next = 0;
            let gap = match flow.samples.as_slice() {
                [.., before, last] => last.at.saturating_since(before.at),
                _ => Span::ZERO,
            };
            for step in 0..steps {
                let at = Time::ZERO + STEP * step as u64;
                next += flow.samples[next..].partition_point(|sample| sample.at <= at);
                let before = next.checked_sub(1).map(|last| flow.samples[last]);
                let after = flow.samples.get(next);
                host.received[step] += received(before, after, at);
                // After a connection's last sample, either the connection or the run has ended.
                let fresh = |sample: &Sample| after.is_some() || at.saturating_since(sample.at) <= gap;
                host.busy[step] |= before.is_some_and(|sample| sample.busy && fresh(&sample));
            }
        }
        let mut hosts: Vec<Host> = hosts.into_values().collect();
        for host in &mut hosts {
            // Short pauses first, so that a connection that stutters counts as busy.
            without_short_spells(&mut host.busy, false);
            without_short_spells(&mut host.busy, true);
        }
        hosts
    }
}

fn steps(span: Span) -> usize {
    (span.as_micros() / STEP.as_micros()) as usize
}

/// Bytes received at `at`, interpolated linearly between two samples.
fn received(before: Option<Sample>, after: Option<&Sample>, at: Time) -> f64 {
    match (before, after) {
        (None, _) => 0.0,
        (Some(before), None) => before.received.get() as f64,
        (Some(before), Some(after)) => {
            let part =
                at.saturating_since(before.at).as_secs_f64() / after.at.saturating_since(before.at).as_secs_f64();
            before.received.get() as f64 + part * (after.received.get() as f64 - before.received.get() as f64)
        }
    }
}

/// Flips spells of `what` that are shorter than a window, except at both ends of the run.
fn without_short_spells(busy: &mut [bool], what: bool) {
    let mut from = 0;
    while from < busy.len() {
        let length = busy[from..].iter().take_while(|now| **now == busy[from]).count();
        let inside = from > 0 && from + length < busy.len();
        if busy[from] == what && inside && length < steps(WINDOW) {
            busy[from..from + length].fill(!what);
        }
        from += length;
    }
}

/// What changed between the step before and this one.
fn kind(hosts: &[Host], step: usize) -> Option<ChangeKind> {
    let came = hosts.iter().any(|host| !host.busy[step - 1] && host.busy[step]);
    let went = hosts.iter().any(|host| host.busy[step - 1] && !host.busy[step]);
    match (came, went) {
        (true, false) => Some(ChangeKind::Arrival),
        (false, true) => Some(ChangeKind::Departure),
        (true, true) => Some(ChangeKind::Both),
        (false, false) => None,
    }
}

/// What followed a change; `None` where fewer than two hosts are busy.
fn followed(hosts: &[Host], kind: ChangeKind, from: usize, until: usize) -> Option<ConvergenceResult> {
    let busy: Vec<&Host> = hosts.iter().filter(|host| host.busy[from]).collect();
    if busy.len() < 2 {
        return None;
    }
    let window = steps(WINDOW);
    let equal: Vec<bool> = (from..=until - window).map(|begin| is_equal(&busy, begin, begin + window)).collect();
    // For the length of a window, or until the next change.
    let lasting = |begin: &usize| equal[*begin..].iter().take(window + 1).all(|equal| *equal);
    let reached = (0..equal.len()).find(lasting);
    let seconds = |steps: usize| (STEP * steps as u64).as_secs_f64();
    let share = |begin: usize| {
        let rest = &equal[begin..];
        rest.iter().filter(|equal| **equal).count() as f64 / rest.len() as f64
    };
    Some(ConvergenceResult {
        at_s: seconds(from),
        kind,
        busy_hosts: busy.len() as u32,
        lasts_s: seconds(until - from),
        equal_after_s: seconds(reached.unwrap_or(until - from)),
        equal_share: reached.map_or(0.0, share),
    })
}

fn is_equal(busy: &[&Host], begin: usize, end: usize) -> bool {
    let got = || busy.iter().map(|host| host.received[end] - host.received[begin]);
    let mean = got().sum::<f64>() / busy.len() as f64;
    mean > 0.0 && got().all(|share| (share - mean).abs() <= EQUAL * mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples every 50 ms of hosts with one connection each. `rate`: bytes per second of a host at a time in ms, 0
    /// while it is idle.
    fn meter(hosts: u16, end_ms: u64, rate: impl Fn(u16, u64) -> u64) -> ShareMeter {
        let mut meter = ShareMeter::default();
        for host in 0..hosts {
            let mut received = 0;
            for at_ms in (0..=end_ms).step_by(50) {
                let now = rate(host, at_ms);
                meter.on_sample(
                    Time::ZERO + Span::from_millis(at_ms),
                    host.into(),
                    host,
                    Bytes::new(received),
                    now > 0,
                );
                received += now / 20;
            }
        }
        meter
    }

    fn all(meter: &ShareMeter, end_s: u64) -> Vec<ConvergenceResult> {
        meter.convergence(Time::ZERO + Span::from_secs(5), Time::ZERO + Span::from_secs(end_s), &[])
    }

    /// ```text
    ///  s    0         10   13              30
    ///  0    1000 ============================   both get 500 from 13 s on
    ///  1              100 | 500 =============
    /// ```
    #[test]
    fn an_arrival_is_over_when_windows_begin_in_which_all_have_the_same() {
        let rate = |host, at_ms| match (host, at_ms) {
            (0, 0..10_000) => 1_000,
            (1, 0..10_000) => 0,
            (0, 10_000..13_000) => 900,
            (1, 10_000..13_000) => 100,
            _ => 500,
        };
        let followed = all(&meter(2, 30_000, rate), 30);
        assert_eq!(followed.len(), 1, "{followed:?}");
        let arrival = &followed[0];
        assert_eq!((arrival.kind, arrival.busy_hosts, arrival.at_s), (ChangeKind::Arrival, 2, 10.0));
        assert!((arrival.lasts_s - 20.0).abs() < 1e-9);
        // A window with x s of 900 and 100 is within 10 % while 400·x/2 ≤ 50: x ≤ 0.25, so from 12.75 on; the next step
        // is 12.8.
        assert!((arrival.equal_after_s - 2.8).abs() < 1e-9, "{arrival:?}");
        assert_eq!(arrival.equal_share, 1.0);
    }

    #[test]
    fn a_departure_of_one_of_three_that_leaves_two_unequal_for_ever_is_as_long_as_it_lasts() {
        let rate = |host, at_ms| match (host, at_ms) {
            (2, 15_000..) => 0,
            (1, 15_000..) => 300,
            (0, 15_000..) => 600,
            _ => 300,
        };
        let followed = all(&meter(3, 40_000, rate), 40);
        assert_eq!(followed.len(), 1, "{followed:?}");
        let ConvergenceResult { kind, busy_hosts, lasts_s, equal_after_s, equal_share, .. } = followed[0];
        assert_eq!((kind, busy_hosts), (ChangeKind::Departure, 2));
        assert!((lasts_s - 25.0).abs() < 1e-9 && equal_after_s == lasts_s && equal_share == 0.0, "{followed:?}");
    }

    #[test]
    fn what_happens_in_the_warm_up_or_just_before_another_change_is_not_judged() {
        // Arrivals at 2 s (warm-up), 10 s (the next is 3 s later) and 13 s.
        let from = [0, 2_000, 10_000, 13_000];
        let rate = |host: u16, at_ms| if at_ms >= from[usize::from(host)] { 100 } else { 0 };
        let at: Vec<f64> = all(&meter(4, 30_000, rate), 30).iter().map(|followed| followed.at_s).collect();
        assert_eq!(at, [13.0]);
    }

    #[test]
    fn a_short_pause_is_no_departure_and_a_short_burst_no_arrival() {
        let rate = |host, at_ms| match (host, at_ms) {
            (0, 12_000..13_500) => 0,
            (2, 20_000..21_000) => 50,
            (2, _) => 0,
            _ => 100,
        };
        assert_eq!(all(&meter(3, 40_000, rate), 40), []);
    }

    #[test]
    fn a_connection_that_is_sampled_no_more_is_over() {
        // Three connections; the third is sampled until 15 s.
        let mut meter = meter(3, 30_000, |_, _| 100);
        let third = meter.flows.get_mut(&2).expect("the third");
        third.samples.retain(|sample| sample.at <= Time::ZERO + Span::from_secs(15));
        let followed = all(&meter, 30);
        assert_eq!(followed.len(), 1, "{followed:?}");
        assert_eq!((followed[0].kind, followed[0].at_s, followed[0].busy_hosts), (ChangeKind::Departure, 15.1, 2));
    }

    #[test]
    fn one_host_has_nobody_to_be_equal_to() {
        let rate = |host, at_ms| u64::from(host == 0 || at_ms < 15_000) * 100;
        assert_eq!(all(&meter(2, 30_000, rate), 30), []);
    }

    #[test]
    fn a_change_of_the_network_is_judged_as_well() {
        let meter = meter(2, 30_000, |_, _| 100);
        let at = [Time::ZERO + Span::from_secs(12)];
        let followed = meter.convergence(Time::ZERO, Time::ZERO + Span::from_secs(30), &at);
        assert_eq!(followed.len(), 1, "{followed:?}");
        assert_eq!((followed[0].kind, followed[0].at_s, followed[0].equal_after_s), (ChangeKind::Network, 12.0, 0.0));
    }
}
