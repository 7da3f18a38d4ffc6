//! Where a connection pauses, and its lines of round trips and windows are parted: in a report, and on the page of a run that goes on.
//!
//! A pause is [`PAUSE_S`] or more in which no connection of the flow is open, or in which one is and neither data nor another round trip
//! comes. Of a report's run there are no rows while none is open; of a run that goes on there are, without a value.

use crate::goodput::MISSING;

/// Seconds: after so long without an ACK policy `lasthop` ignores a round trip (its constant `recent`). Four ticks of an agent, with the
/// default tick.
const PAUSE_S: f64 = 2.0;

/// The step of the rows of a run that goes on: those without a connection are there.
pub(super) const NONE_MISSING_S: f64 = f64::INFINITY;

/// The rows with a value, and one of nothing in each pause. `step_s`: rows that are [`MISSING`] times as far apart have others missing
/// between them.
pub(super) fn parted<T>(rows: impl Iterator<Item = (f64, Option<T>)>, step_s: f64) -> Vec<(f64, Option<T>)> {
    let mut moments: Vec<(f64, Option<T>)> = Vec::new();
    let (mut before_s, mut is_closed) = (None, false);
    for row in rows {
        if row.1.is_none() {
            is_closed = true;
            continue;
        }
        let passed_s = before_s.replace(row.0).map_or(0.0, |before_s| row.0 - before_s);
        let was_closed = std::mem::take(&mut is_closed);
        if passed_s >= PAUSE_S && (was_closed || passed_s > MISSING * step_s) {
            moments.push((row.0, None));
        }
        moments.push(row);
    }
    moments
}

/// Time, round trip and goodput of each sample, without the round trips that only stand since a pause began.
pub(super) fn while_heard(samples: impl Iterator<Item = (f64, Option<f64>, f64)>) -> Vec<(f64, Option<f64>)> {
    let mut points: Vec<(f64, Option<f64>)> = Vec::new();
    // The sample at which the silence began that goes on.
    let mut since = 0;
    let mut before = None;
    for (t_s, rtt, goodput) in samples {
        let is_silent = goodput <= 0.0 && rtt == before;
        if !is_silent {
            since = points.len();
            before = rtt;
        }
        points.push((t_s, rtt));
        if is_silent && t_s - points[since].0 >= PAUSE_S {
            points[since + 1..].iter_mut().for_each(|(_, rtt)| *rtt = None);
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::super::thin::thin;
    use super::*;

    #[test]
    fn a_round_trip_ends_where_its_connection_falls_silent() {
        // It is heard at 0 s and at 1 s, then at 5 s; the second of silence at 2 s alone would not have cut it.
        let samples = [
            (0.0, 8.0, 1.0),
            (1.0, 9.0, 1.0),
            (2.0, 9.0, 0.0),
            (3.0, 9.0, 0.0),
            (4.0, 9.0, 0.0),
            (5.0, 9.0, 1.0),
            (6.0, 9.0, 0.0),
        ];
        let seen = while_heard(samples.into_iter().map(|(t_s, rtt, goodput)| (t_s, Some(rtt), goodput)));
        let at: Vec<f64> = seen.iter().filter(|(_, rtt)| rtt.is_some()).map(|(t_s, _)| *t_s).collect();
        assert_eq!(at, [0.0, 1.0, 5.0, 6.0]);
    }

    #[test]
    fn lines_are_parted_where_rows_are_missing_and_not_where_they_are_far_apart() {
        let parts = |at: &[f64], step_s: f64| {
            let rows = at.iter().map(|t_s| (*t_s, Some(1.0)));
            thin(parted(rows, step_s).into_iter(), (0.0, 100.0), 100).iter().map(Vec::len).collect::<Vec<_>>()
        };
        // Two connections with 3 s between them; one that lost a second's rows; one sampled each 2 s, the last time late.
        assert_eq!(parts(&[0.0, 0.05, 0.1, 3.1, 3.15], 0.05), [3, 2]);
        assert_eq!(parts(&[0.0, 0.05, 1.05, 1.1], 0.05), [4]);
        assert_eq!(parts(&[0.0, 2.0, 4.0, 8.0, 10.5], 2.0), [3, 2]);
        // A run that goes on, sampled each time twice as far apart.
        assert_eq!(parts(&[0.0, 2.0, 4.0, 8.0, 12.0, 20.0], NONE_MISSING_S), [6]);
    }

    #[test]
    fn a_run_that_goes_on_is_parted_by_the_same_pauses_as_its_report() {
        // Sampled so many times in 100 s, and open at these samples; the report has no rows of the others.
        let parts = |samples: u32, step_s: f64, is_open: &dyn Fn(u32) -> bool| {
            let at = |sample: u32| f64::from(sample) * step_s;
            let goes_on = (0..samples).map(|sample| (at(sample), is_open(sample).then_some(1.0)));
            let report = (0..samples).filter(|sample| is_open(*sample)).map(|sample| (at(sample), Some(1.0)));
            let parts = |rows: Vec<_>| thin(rows.into_iter(), (0.0, at(samples)), 100);
            let (goes_on, report) = (parts(parted(goes_on, NONE_MISSING_S)), parts(parted(report, step_s)));
            assert_eq!(goes_on, report);
            goes_on.iter().map(Vec::len).collect::<Vec<_>>()
        };
        // A connection is closed from 0.2 s to 1.2 s, and from 1.4 s to 4.4 s.
        assert_eq!(parts(50, 0.1, &|sample| !(2..12).contains(&sample) && !(14..44).contains(&sample)), [4, 6]);
        // Connections of one row, 2.5 s apart, and the third 1 s after the second.
        assert_eq!(parts(80, 0.1, &|sample| [0, 25, 35, 60].contains(&sample)), [1, 2, 1]);
        assert_eq!(parts(8, 1.25, &|sample| sample % 2 == 0), [1, 1, 1, 1]);
    }
}
