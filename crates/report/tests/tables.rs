//! The tables of the terminal. The goldens are made-up runs; the tests beside them would notice if they were absurd.

mod example;

#[test]
fn the_table_of_a_run() {
    let (result, _) = example::run(&example::scenario(&["hosts.0.policy=formula", "hosts.0.count=3"]));
    insta::assert_snapshot!(lasthop_report::tables::run(&result));
}

#[test]
fn the_table_of_a_comparison() {
    insta::assert_snapshot!(lasthop_report::tables::comparison(&example::demo().0));
}

#[test]
fn the_table_of_a_comparison_over_seeds() {
    let (mut comparison, _) = example::comparison(&["hosts.0.policy=none,formula"], 3);
    comparison.cases[1].runs[2].valid = false;
    comparison.cases[1].runs[2].invalid_reasons = vec!["one delivery was 210000 us late".into()];
    insta::assert_snapshot!(lasthop_report::tables::comparison(&comparison));
}

/// The numbers of a row, from left to right.
fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn the_rows_of_a_run_add_up_to_its_headline() {
    let (result, _) = example::run(&example::scenario(&["hosts.0.count=4"]));
    let text = lasthop_report::tables::run(&result);
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
    let text = lasthop_report::tables::run(&result);
    assert_eq!(text.lines().last().expect("a row").matches('–').count(), 4, "{text}");
}

#[test]
fn a_flow_of_datagrams_has_a_kind_and_no_congestion_control() {
    let (mut result, _) = example::run(&example::scenario(&["hosts.0.count=2"]));
    let flow = &mut result.flows[1];
    (flow.kind, flow.congestion_control) = ("constant".to_owned(), None);
    let text = lasthop_report::tables::run(&result);
    let controls: Vec<_> = text
        .lines()
        .filter_map(|line| {
            line.split("   ").map(str::trim).find(|cell| cell.contains("cubic") || cell.contains("constant"))
        })
        .collect();
    assert_eq!(controls, ["cubic", "– (constant)"], "{text}");
}

/// A comparison whose runs have a typist and a transfer beside their uploads.
fn with_messages() -> lasthop_scenario::Comparison {
    let (mut comparison, _) = example::comparison(&["hosts.0.policy=none,formula"], 2);
    for (index, case) in comparison.cases.iter_mut().enumerate() {
        for run in &mut case.runs {
            let delay = |ms: f64| lasthop_measure::distribution(&[ms, 3.0 * ms]);
            let messages = lasthop_scenario::DeliveryResult {
                delivered: 40,
                undelivered: 2 * index as u64,
                took_ms: delay(30.0),
                slowdown: None,
            };
            run.messages = Some(messages);
            let flow = &mut run.flows[0];
            (flow.kind, flow.always_busy) = ("interactive".into(), false);
            (flow.messages, flow.undelivered, flow.message_ms) = (40, 2 * index as u64, messages.took_ms);
            run.transfers =
                (index == 0).then(|| lasthop_scenario::DeliveryResult { took_ms: delay(2_000.0), ..messages });
            lasthop_measure::summarise(run, &[]);
        }
        case.summary = lasthop_measure::summary(&case.runs);
    }
    comparison
}

#[test]
fn a_comparison_prints_how_long_messages_and_transfers_take() {
    let comparison = with_messages();
    let text = lasthop_report::tables::comparison(&comparison);
    let tables: Vec<Vec<&str>> = text.split("\n\n").map(|table| table.lines().collect()).collect();
    let [_, messages, transfers] = tables.as_slice() else { panic!("{text}") };
    assert!(messages[0].contains("messages") && transfers[0].contains("transfers"), "{text}");
    // Case, delivered, never delivered, mean and p95 of 30 and 90 ms: 60 and 30 + 0.95·60.
    let row =
        |table: &[&str], line: usize| table[line].split_whitespace().skip(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(row(messages, 3), ["40", "0", "60.0", "87.0"], "{text}");
    assert_eq!(row(messages, 4), ["40", "2", "60.0", "87.0"], "{text}");
    assert_eq!(row(transfers, 3), ["40", "0", "4000", "5800"], "{text}");
    // The second case has none.
    assert_eq!(row(transfers, 4), ["–", "–", "–", "–"], "{text}");
}

#[test]
fn tables_say_over_how_many_flows_the_index_is() {
    let comparison = with_messages();
    let all = comparison.cases[0].runs[0].flows.len();
    let text = lasthop_report::tables::comparison(&comparison);
    assert!(text.contains(&format!("over {} of {all} flows", all - 1)), "{text}");
    let text = lasthop_report::tables::run(&comparison.cases[1].runs[0]);
    assert!(text.contains(&format!(" over {} of {all} flows", all - 1)), "{text}");
    assert!(text.contains(&format!("of {} ·", all - 1)) || text.contains(&format!("of {}\n", all - 1)), "{text}");
    let last = text.lines().last().expect("the row of the typist");
    assert!(last.contains("messages") && last.contains("40") && last.contains("90.0"), "{text}");
}

#[test]
fn a_run_prints_the_slowdowns_of_its_transfers_by_size() {
    let (mut result, _) = example::run(&example::scenario(&[]));
    let class = |above_bytes, up_to_bytes| lasthop_scenario::SlowdownResult {
        above_bytes,
        up_to_bytes,
        transfers: 2,
        slowdown: lasthop_measure::distribution(&[1.5, 2.5]).expect("two"),
    };
    result.slowdowns = vec![class(0, Some(10_000)), class(100_000, Some(1_000_000)), class(10_000_000, None)];
    let text = lasthop_report::tables::run(&result);
    let lines: Vec<&str> = text.lines().rev().take(3).collect();
    for (line, sizes) in lines.into_iter().rev().zip(["up to 10 kB", "100 kB to 1 MB", "more than 10 MB"]) {
        // Number, median, mean, p95, p99, greatest.
        let cells: Vec<&str> = line.trim().strip_prefix(sizes).expect(line).split_whitespace().collect();
        assert_eq!(cells[..3], ["2", "2.00", "2.00"], "{text}");
        assert_eq!(cells[5], "2.50", "{text}");
    }
}
