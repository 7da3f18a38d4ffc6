//! Thins long series to the resolution of a figure.

/// One line through these points, in the order of `x`, with gaps at missing `y`. Each of `columns` equal parts of the
/// range keeps only its first, least, greatest and last point. No peak is lost.
pub(crate) fn thin(
    points: impl Iterator<Item = (f64, Option<f64>)>,
    range: (f64, f64),
    columns: usize,
) -> Vec<Vec<(f64, f64)>> {
    let column_of = |x: f64| (((x - range.0) / (range.1 - range.0)) * columns as f64).floor() as i64;
    let mut lines = Vec::new();
    let mut line = Line::default();
    for (x, y) in points {
        match y {
            Some(y) => line.push(column_of(x), (x, y)),
            None => lines.extend(std::mem::take(&mut line).finish()),
        }
    }
    lines.extend(line.finish());
    lines
}

#[derive(Default)]
struct Line {
    done: Vec<(f64, f64)>,
    column: i64,
    pending: Vec<(f64, f64)>,
}

impl Line {
    fn push(&mut self, column: i64, point: (f64, f64)) {
        if column != self.column {
            self.close_column();
            self.column = column;
        }
        self.pending.push(point);
    }

    fn close_column(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if pending.len() <= 4 {
            self.done.extend(pending);
            return;
        }
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (Some(least), Some(greatest)) = (pending.iter().min_by(by_height), pending.iter().max_by(by_height)) else {
            return;
        };
        let (earlier, later) = if least.0 <= greatest.0 { (least, greatest) } else { (greatest, least) };
        let mut kept = vec![pending[0], *earlier, *later, pending[pending.len() - 1]];
        kept.dedup();
        self.done.extend(kept);
    }

    fn finish(mut self) -> Option<Vec<(f64, f64)>> {
        self.close_column();
        (!self.done.is_empty()).then_some(self.done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_of_one_sample_survives() {
        let points =
            (0..100_000).map(|i| (f64::from(i) / 1e3, Some(if i == 54_321 { 99.0 } else { f64::from(i % 7) })));
        let lines = thin(points, (0.0, 100.0), 200);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].len() <= 200 * 4, "{}", lines[0].len());
        assert!(lines[0].contains(&(54.321, 99.0)));
        assert!(lines[0].is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!((lines[0][0].0, lines[0][lines[0].len() - 1].0), (0.0, 99.999));
    }

    #[test]
    fn a_gap_parts_the_line() {
        let points = [(0.0, None), (1.0, Some(1.0)), (2.0, Some(2.0)), (3.0, None), (4.0, Some(4.0))];
        assert_eq!(thin(points.into_iter(), (0.0, 5.0), 10), [vec![(1.0, 1.0), (2.0, 2.0)], vec![(4.0, 4.0)]]);
        assert!(thin([(0.0, None)].into_iter(), (0.0, 5.0), 10).is_empty());
    }
}
