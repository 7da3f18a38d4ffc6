//! Where a connection pauses, and its lines of round trips and windows are parted: in a report, and on the page of a run that goes on.
//!
//! A pause is [`PAUSE_S`] or more in which no connection of the flow is open, or in which one is and neither data nor another round trip
//! comes. Of a report's run there are no rows while none is open; of a run that goes on there are, without a value.

/// Seconds: four ticks of an agent, after which its policy holds a round trip for one of another time, too (`recent` of policy `lasthop`).
const PAUSE_S: f64 = 2.0;

/// Rows are missing only where they are further apart than so many times those before them: more than the twice by which a run that goes on
/// takes them further apart.
const FURTHER: f64 = 3.0;

/// The rows with a value, and one of nothing in each pause. Rows that are all alone tell nothing of pauses.
pub(super) fn parted<T>(rows: impl Iterator<Item = (f64, Option<T>)>) -> Vec<(f64, Option<T>)> {
    let mut moments: Vec<(f64, Option<T>)> = Vec::new();
    let (mut before_s, mut usual_s, mut is_closed) = (None, f64::INFINITY, false);
    for row in rows {
        if row.1.is_none() {
            is_closed = true;
            continue;
        }
        let passed_s = before_s.replace(row.0).map_or(0.0, |before_s| row.0 - before_s);
        let was_closed = std::mem::take(&mut is_closed);
        if passed_s >= PAUSE_S && (was_closed || passed_s > FURTHER * usual_s) {
            moments.push((row.0, None));
        } else if passed_s > 0.0 && !was_closed {
            usual_s = passed_s;
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
    fn lines_are_parted_where_rows_are_missing_and_not_where_they_get_further_apart() {
        let parts = |at: &[f64]| {
            let rows = at.iter().map(|t_s| (*t_s, Some(1.0)));
            thin(parted(rows).into_iter(), (0.0, 100.0), 100).iter().map(Vec::len).collect::<Vec<_>>()
        };
        // Two connections with 3 s between them; one that lost a second's rows; samples of a run that goes on, each time twice as far.
        assert_eq!(parts(&[0.0, 0.05, 0.1, 3.1, 3.15]), [3, 2]);
        assert_eq!(parts(&[0.0, 0.05, 1.05, 1.1]), [4]);
        assert_eq!(parts(&[0.0, 2.0, 4.0, 8.0, 12.0, 20.0]), [6]);
    }

    #[test]
    fn a_run_that_goes_on_is_parted_by_the_same_pauses_as_its_report() {
        // A connection is closed from 0.2 s to 1.2 s, and from 1.4 s to 4.4 s; the report has no rows then.
        let tenths = |tenth: u32| f64::from(tenth) * 0.1;
        let is_open = |tenth: u32| !(2..12).contains(&tenth) && !(14..44).contains(&tenth);
        let goes_on = (0..50).map(|tenth| (tenths(tenth), is_open(tenth).then_some(1.0)));
        let report = (0..50).filter(|tenth| is_open(*tenth)).map(|tenth| (tenths(tenth), Some(1.0)));
        let parts = |rows: Vec<_>| thin(rows.into_iter(), (0.0, 5.0), 100);
        let (goes_on, report) = (parts(parted(goes_on)), parts(parted(report)));
        assert_eq!(goes_on, report);
        assert_eq!(goes_on.iter().map(Vec::len).collect::<Vec<_>>(), [4, 6]);
    }
}
