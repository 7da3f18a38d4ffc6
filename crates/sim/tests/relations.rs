//! Relations between runs that hold whatever the scenario: the same twice, an idle host more, a block of hosts in parts, a
//! longer run, another warm-up. They hold because each source of randomness has a stream of its own
//! (docs/guide/simulator.md, "Randomness"), and because nothing looks ahead. `make fuzz-relations` tries many more scenarios.
#![allow(missing_docs)]

mod common;

use lasthop_scenario::{FlowSeries, RunResult, Series};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A scenario without `[[hosts]]`, the blocks of hosts, and what each of them has to say of where it sits.
#[derive(Clone, Debug)]
struct Drawn {
    head: String,
    hosts: Vec<(usize, String)>,
    /// Keys that every block needs.
    seat: &'static str,
}

impl Drawn {
    /// The scenario with `idle` blocks in front of this block.
    fn text(&self, idle: &[&str], place: usize) -> String {
        let block = |keys: &str| format!("[[hosts]]\n{}\n{keys}\n", self.seat);
        let mut blocks: Vec<_> =
            self.hosts.iter().map(|(count, keys)| block(&format!("count = {count}\n{keys}"))).collect();
        let idle = idle.iter().map(|agent| block(&format!("flows = []\nagent = \"{agent}\"")));
        blocks.splice(place..place, idle);
        format!("{}\n{}", self.head, blocks.concat())
    }

    /// The number of hosts in front of this block.
    fn hosts_before(&self, place: usize) -> u16 {
        self.hosts[..place].iter().map(|(count, _)| *count as u16).sum()
    }
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let wifi = (
        select(vec![
            "standard = \"802.11g\"\nrate_control = \"fixed\"",
            "standard = \"802.11g\"\nrate_control = \"minstrel\"",
            "standard = \"802.11g\"\nrate_control = \"arf\"",
            "standard = \"802.11n\"\nrate_control = \"minstrel_ht\"\nqueue = \"mac80211\"",
            "standard = \"802.11ac\"\nqueue = \"mac80211\"\nairtime_fairness = false",
            "standard = \"802.11ax\"\nqueue = \"fq_codel\"",
            "standard = \"802.11b\"\nqueue = \"fq_codel\"",
        ]),
        select(vec![0.0, 0.05, 0.3]),
        select(vec![0.0, 0.1]),
        select(vec![30, 300]),
    )
        .prop_map(|(medium, errors, lost_answers, queue)| {
            let noise = format!("frame_error_rate = {errors}\nresponse_error_rate = {lost_answers}");
            (format!("[access]\n{medium}\n{noise}\nqueue_packets = {queue}\n[path]\nloss = 0.01"), "")
        });
    let wired = Just(("[access]\nkind = \"wired\"\nrate_mbps = 20\nqueue = \"fq_codel\"".to_owned(), ""));
    let link = "[[links]]\nbetween = [\"a\", \"b\"]\nrate_mbps = 10\ndelay_ms = 5\nloss = 0.01\nqueue_packets = 60";
    let links = Just((link.to_owned(), "node = \"a\""));
    let flow = select(vec![
        "",
        "direction = \"down\"",
        "kind = \"on-off\"",
        "kind = \"interactive\"\ndirection = \"down\"",
        "kind = \"transfers\"\ntransfer_kib = 50\ntransfer_sigma = 1.0",
        "kind = \"quic\"\ndirection = \"down\"",
        "kind = \"constant\"",
        "kind = \"saturated\"",
    ]);
    let own = select(vec!["", "era = \"modern\"", "congestion_control = \"cdg\"", "turnaround_us = [20, 900]"]);
    let policy = select(vec!["none", "formula", "lasthop", "cooperative", "count"]);
    let path = select(vec!["", "path_rtt_ms = [5, 50]\npath_rtt_change_s = 0.5"]);
    let block = (1..3_usize, own, policy, path, flow);
    let head = prop_oneof![4 => wifi, 1 => wired, 1 => links];
    (head, vec(block, 1..4), 1..1_000_u32).prop_map(|((network, seat), blocks, seed)| {
        let block = |(count, own, policy, path, flow): (usize, &str, &str, &str, &str)| {
            // Links have no path, and no MAC with a turnaround.
            let (own, path) = if seat.is_empty() { (own, path) } else { ("", "") };
            let to = if seat.is_empty() { "" } else { "to = \"b\"" };
            let flows = format!("[[hosts.flows]]\n{flow}\n{to}\nstart_s = [0.0, 1.0]");
            (count, format!("policy = \"{policy}\"\n{own}\n{path}\n{flows}"))
        };
        let head = format!("seed = {seed}\nduration_s = 3\nwarmup_s = 1\n{network}");
        Drawn { head, hosts: blocks.into_iter().map(block).collect(), seat }
    })
}

/// What is about the hosts that do not idle, with `before` of them in front of `idle` idle ones.
fn of_the_others((mut result, series): (RunResult, Series), before: u16, idle: u16) -> String {
    let number = |host: &mut u16| *host -= if *host < before { 0 } else { idle };
    result.policies.hosts.retain(|host| !(before..before + idle).contains(&host.host));
    result.flows.iter_mut().for_each(|flow| number(&mut flow.host));
    result.policies.hosts.iter_mut().for_each(|policy| number(&mut policy.host));
    let FlowSeries { mut host, .. } = series.flows.clone();
    host.iter_mut().for_each(number);
    let flows = FlowSeries { host, ..series.flows };
    format!("{:#?}\n{:#?}\n{flows:?}", result.flows, result.policies.hosts)
}

/// `RELATIONS_CASES` scenarios for each relation, as `make fuzz-relations` sets it.
fn config() -> ProptestConfig {
    let cases = std::env::var("RELATIONS_CASES").ok().map_or(12, |cases| cases.parse().expect("a number"));
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

fn run(text: &str, overrides: &[&str]) -> (RunResult, Series) {
    common::try_run(text, overrides, true).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// All that a run has measured.
fn whole((result, series): &(RunResult, Series)) -> String {
    let RunResult { flows, policies, access, links, events, .. } = result;
    format!("{flows:#?}\n{policies:#?}\n{access:#?}\n{links:#?}\n{events}\n{series:?}")
}

/// The samples of connections up to this time.
fn until(end_s: f64, series: &Series) -> Vec<String> {
    let rows = (0..series.flows.len()).map(|row| series.flows.row(row));
    rows.take_while(|row| row.t_s <= end_s).map(|row| format!("{row:?}")).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn an_idle_host_anywhere_in_the_list_changes_no_byte_of_the_others(drawn in drawn(), place in 0..4_usize) {
        let place = place % (drawn.hosts.len() + 1);
        let alone = of_the_others(run(&drawn.text(&[], 0), &[]), 0, 0);
        let beside = run(&drawn.text(&["off", "observe"], place), &[]);
        let beside = of_the_others(beside, drawn.hosts_before(place), 2);
        prop_assert!(alone == beside, "{alone}\nbeside two idle hosts:\n{beside}");
    }

    #[test]
    fn the_same_scenario_gives_the_same_bytes_also_with_its_blocks_in_parts(drawn in drawn()) {
        let text = drawn.text(&[], 0);
        let once = whole(&run(&text, &[]));
        let again = whole(&run(&text, &[]));
        prop_assert!(once == again, "{text}\n{once}\nand again:\n{again}");
        let parts = drawn.hosts.iter().flat_map(|(count, keys)| vec![(1, keys.clone()); *count]).collect();
        let parted = whole(&run(&Drawn { hosts: parts, ..drawn }.text(&[], 0), &[]));
        prop_assert!(once == parted, "{text}\n{once}\nin blocks of one host:\n{parted}");
    }

    #[test]
    fn neither_a_longer_run_nor_another_warm_up_changes_a_sample(drawn in drawn()) {
        let text = drawn.text(&[], 0);
        let (_, series) = run(&text, &[]);
        let samples = until(2.9, &series);
        for change in ["duration_s=5", "warmup_s=0"] {
            let (_, changed) = run(&text, &[change]);
            let changed = until(2.9, &changed);
            prop_assert!(samples == changed, "{text}\n{samples:#?}\nwith {change}:\n{changed:#?}");
        }
    }
}

/// The reviewers' case idle-host: two hosts with an agent, 5 % frame errors.
#[test]
fn an_idle_host_at_the_end_draws_no_frame_error_of_the_others() {
    let text =
        "duration_s = 5\nwarmup_s = 1\n[access]\nframe_error_rate = 0.05\n[[hosts]]\ncount = 2\npolicy = \"formula\"\n";
    let alone = common::run(text, &[]);
    let beside = common::run(&format!("{text}[[hosts]]\nflows = []\nagent = \"off\"\n"), &[]);
    assert_eq!(alone.flows, beside.flows);
    assert_eq!(alone.policies.hosts, beside.policies.hosts);
}
