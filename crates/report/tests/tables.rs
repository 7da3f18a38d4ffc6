//! The tables of the terminal. The goldens are made-up runs; the tests beside them would notice if they were absurd.

mod example;

#[test]
fn the_table_of_a_run() {
    let (result, _) = example::run(&example::scenario(&["hosts.0.policy=formula", "hosts.0.count=3"]));
    insta::assert_snapshot!(report::tables::run(&result));
}

#[test]
fn the_table_of_a_comparison() {
    insta::assert_snapshot!(report::tables::comparison(&example::demo().0));
}

#[test]
fn the_table_of_a_comparison_over_seeds() {
    let (mut comparison, _) = example::comparison(&["hosts.0.policy=none,formula"], 3);
    comparison.cases[1].runs[2].valid = false;
    comparison.cases[1].runs[2].invalid_reasons = vec!["one delivery was 210000 us late".into()];
    insta::assert_snapshot!(report::tables::comparison(&comparison));
}

/// The numbers of a row, from left to right.
fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn the_rows_of_a_run_add_up_to_its_headline() {
    let (result, _) = example::run(&example::scenario(&["hosts.0.count=4"]));
    let text = report::tables::run(&result);
    let rows: Vec<Vec<f64>> = text.lines().skip_while(|line| !line.contains('─')).skip(1).map(numbers).collect();
    assert_eq!(rows.len(), 4, "{text}");
    // flow, host, goodput, RTT min, RTT mean, RTT p95, …
    let sum: f64 = rows.iter().map(|row| row[2]).sum();
    assert!((sum - result.aggregate_goodput_mbps).abs() < 0.005 * 4.0, "{text}");
    for row in &rows {
        assert!(row[3] <= row[4] && row[4] <= row[5], "{text}");
    }
    assert!(text.contains(&format!("aggregate goodput {:.2} Mb/s", result.aggregate_goodput_mbps)), "{text}");
}

#[test]
fn a_connection_without_a_round_trip_has_none_in_its_row() {
    let (mut result, _) = example::run(&example::scenario(&["hosts.0.count=1"]));
    result.flows[0].rtt_ms = None;
    result.rtt_ms = None;
    let text = report::tables::run(&result);
    assert_eq!(text.lines().last().expect("a row").matches('–').count(), 3, "{text}");
}
