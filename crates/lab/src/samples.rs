//! What is read at a fixed interval while a run goes on.
//!
//! A run with a guest has no end: of such a run only so many samples are kept. When there are more, those of every second
//! moment go, and from then on as few are taken. So the first hour of a day is as dense as the last.

use crate::clock::Schedule;
use lasthop_connection::TcpState;
use lasthop_laws::Applied;
use lasthop_measure::{OnSample, Sampled, Seen};
use lasthop_units::{Bytes, Span, Time};

/// A reading of one flow's sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowSample {
    pub(crate) at: Time,
    /// Index into the plans.
    pub(crate) flow: usize,
    /// `None` without a connection.
    pub(crate) tcp: Option<TcpState>,
    /// Bytes received by the application since the flow began.
    pub(crate) received: Bytes,
}

impl FlowSample {
    /// What the sender reports, with the last state that the server's law derived from the client's reports.
    pub(crate) fn seen(&self, last_link: Option<Applied>) -> Option<Seen> {
        self.tcp.map(|tcp| Seen { tcp, last_link })
    }
}

/// The most samples that are kept of each kind, of a run without an end: ten flows fill that in 1.4 hours.
const MOST_WITHOUT_END: usize = 500_000;

/// Samples in the order of time, all of them or those of every n-th moment.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    of: Vec<T>,
    at: fn(&T) -> Time,
    interval: Span,
    /// Of so many moments one is kept.
    every: u64,
    most: usize,
}

impl<T> Kept<T> {
    /// None yet. `at`: when a sample was taken; `interval`: the time between two.
    pub(crate) fn new(at: fn(&T) -> Time, interval: Span, has_end: bool) -> Self {
        Self { of: Vec::new(), at, interval, every: 1, most: if has_end { usize::MAX } else { MOST_WITHOUT_END } }
    }

    pub(crate) fn push(&mut self, sample: T) {
        if !self.is_kept(&sample) {
            return;
        }
        self.of.push(sample);
        if self.of.len() > self.most {
            self.every *= 2;
            let mut of = std::mem::take(&mut self.of);
            of.retain(|sample| self.is_kept(sample));
            self.of = of;
        }
    }

    fn is_kept(&self, sample: &T) -> bool {
        ((self.at)(sample).as_nanos() / self.interval.as_nanos().max(1)).is_multiple_of(self.every)
    }

    /// The samples, and of how many moments one is kept.
    pub(crate) fn into_parts(self) -> (Vec<T>, u64) {
        (self.of, self.every)
    }
}

/// The samples of all flows, in the order of time.
pub(crate) struct Samples<'a> {
    kept: Kept<FlowSample>,
    on_sample: Option<&'a OnSample<'a>>,
}

impl<'a> Samples<'a> {
    /// None yet. `on_sample` is called with each, also of those that are not kept.
    pub(crate) fn new(schedule: Schedule, on_sample: Option<&'a OnSample<'a>>) -> Self {
        Self { kept: Kept::new(|sample| sample.at, schedule.sample_every, schedule.has_end()), on_sample }
    }

    pub(crate) fn push(&mut self, sample: FlowSample) {
        if let Some(on_sample) = self.on_sample {
            let seen = sample.seen(None);
            on_sample(sample.at, Sampled::Connection(sample.flow, sample.received, seen.as_ref()));
        }
        self.kept.push(sample);
    }

    /// See [`Kept::into_parts`].
    pub(crate) fn into_parts(self) -> (Vec<FlowSample>, u64) {
        self.kept.into_parts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_run_without_an_end_every_nth_moment_is_kept_whole() {
        let interval = Span::from_millis(100);
        let mut kept = Kept { most: 10, ..Kept::new(|(at, _): &(Time, usize)| *at, interval, false) };
        for moment in 0..100 {
            // A little late, each.
            let at = Time::ZERO + interval * moment + Span::from_millis(moment % 7);
            (0..3).for_each(|flow| kept.push((at, flow)));
        }
        let (samples, every) = kept.into_parts();
        assert_eq!(every, 64);
        let moments: Vec<u64> = samples.iter().map(|(at, _)| at.as_nanos() / interval.as_nanos()).collect();
        assert_eq!(moments, [0, 0, 0, 64, 64, 64]);
    }
}
