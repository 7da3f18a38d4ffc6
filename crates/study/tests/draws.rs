//! Scenarios drawn at random, and claims about the share of them in which something holds.

use bare_result::bare_result;
use lasthop_scenario::{Build, HostsKind, RunResult, Scenario};
use lasthop_study::{Outcome, PlannedRun, Study, StudyResult, Verdict};
use sha2::{Digest as _, Sha256};

mod bare_result;

const DRAWN: &str = r#"title = "drawn"
source = "nobody"
scenarios = 40
seeds = 1
[scenario]
duration_s = 20
[[scenario.hosts]]
[[scenario.hosts]]
flows = [{ kind = "interactive" }]
[[cases]]
label = "none"
[[cases]]
label = "fixed"
set."hosts.*.policy" = "fixed"
set."hosts.*.bound_segments" = 10
[[draw]]
name = "uploads"
key = "hosts.0.count"
log_uniform = [1, 20]
decimals = 0
[[draw]]
name = "typists"
key = "hosts.1.count"
values = [0, 2]
weights = [3, 1]
[[draw]]
name = "queue"
key = "access.queue"
values = ["fifo", "fq_codel"]
[[draw]]
name = "length"
key = "access.queue_packets"
uniform = [20, 2000]
decimals = 0
when = { queue = "fifo" }
[[draw]]
name = "rtt"
key = "path.rtt_ms"
log_uniform = [2, 300]
decimals = 1
chance = 0.5
"#;

fn read(text: &str) -> Result<Study, String> {
    let none = |_: &str| Err(std::io::Error::other("no file"));
    Study::from_toml("studies/x/drawn.toml", text, &none).map_err(|error| error.to_string())
}

fn plan(text: &str) -> Vec<PlannedRun> {
    read(text).and_then(|study| study.plan(1).map_err(|error| error.to_string())).unwrap_or_else(|no| panic!("{no}"))
}

fn scenarios(text: &str) -> Vec<serde_json::Value> {
    plan(text).iter().map(|run| run.scenario.to_json()).collect()
}

#[test]
fn the_same_number_is_the_same_scenario_everywhere() {
    let drawn = ["/hosts/0/count", "/hosts/1/count", "/access/queue", "/access/queue_packets", "/path/rtt_ms"];
    let of = |one: &serde_json::Value| drawn.map(|key| one.pointer(key).expect("a drawn key").to_string()).join(" ");
    let text = scenarios(DRAWN).iter().map(of).collect::<Vec<_>>().join("\n");
    let digest: String = Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, "573bb4addcb0ee3a");
    let fewer = scenarios(&DRAWN.replace("scenarios = 40", "scenarios = 10"));
    let all = scenarios(DRAWN);
    assert_eq!(fewer, [&all[..10], &all[40..50]].concat());
}

#[test]
fn a_study_may_have_another_ones_scenarios_from_a_number_on() {
    let other = "title = \"Later\"\nsource = \"a test\"\nscenario = \"drawn.toml\"\nscenarios = 10\nfirst_scenario = 31\n\
                 [[claims]]\nid = \"a\"\ntext = \"a\"\nsource = \"a test\"\nat_least = 0\n\
                 conditions = [{ value = 'at(\"aggregate_goodput_mbps\")', at_least = 0 }]\n";
    let read = |text: &str, of: &'static str| {
        let read = Study::from_toml("studies/x/later.toml", text, &move |_| Ok(of.to_owned()));
        read.map_err(|error| error.to_string())
    };
    let later = read(other, DRAWN).expect("a study");
    let later: Vec<_> = later.plan(1).expect("a plan").iter().map(|run| run.scenario.to_json()).collect();
    let first = &scenarios(DRAWN)[..40];
    assert_eq!(later, first[30..]);
    let twice = read(&format!("{other}[[draw]]\nname = \"b\"\nvalues = [1]\n"), DRAWN).expect_err("two sets of draws");
    assert!(twice.contains("draw: the study that scenario names has its own"), "{twice}");
    let chain = read(other, "title = \"a\"\nsource = \"a\"\nscenario = \"b.toml\"\n").expect_err("a study of a study");
    assert!(chain.contains("drawn.toml is a study of another file's scenario"), "{chain}");
}

#[test]
fn another_draw_changes_no_other() {
    let more = "[[draw]]\nname = \"loss\"\nkey = \"path.loss\"\nuniform = [0.01, 0.02]\n";
    let first = DRAWN.replacen("[[draw]]", &format!("{more}[[draw]]"), 1);
    for text in [format!("{DRAWN}{more}"), first] {
        for (mut with, before) in scenarios(&text).into_iter().zip(scenarios(DRAWN)) {
            assert_ne!(with["path"]["loss"], 0.0);
            with["path"]["loss"] = 0.0.into();
            assert_eq!(with, before);
        }
    }
}

#[test]
fn cases_share_what_is_drawn_and_change_it() {
    let all = scenarios(DRAWN);
    for (none, fixed) in all[..40].iter().zip(&all[40..]) {
        assert_eq!((&none["access"], &none["path"]), (&fixed["access"], &fixed["path"]));
        assert_eq!(fixed["hosts"][0]["policy"], "fixed");
    }
    let same = DRAWN.replacen("label = \"none\"", "label = \"none\"\nset.path.rtt_ms = 7", 1);
    assert!(scenarios(&same)[..40].iter().all(|scenario| scenario["path"]["rtt_ms"] == 7.0));
}

#[test]
fn conditions_weights_and_chances_are_kept() {
    let all = scenarios(DRAWN);
    let count = |which: &dyn Fn(&serde_json::Value) -> bool| all[..40].iter().filter(|one| which(one)).count();
    let fifo = |one: &serde_json::Value| one["access"]["queue"] == "fifo";
    let own_length = |one: &serde_json::Value| one["access"]["queue_packets"] != 100;
    assert_eq!(count(&|one| fifo(one) && !own_length(one)), 0);
    assert_eq!(count(&|one| !fifo(one) && own_length(one)), 0);
    // Binomial of 40 with 3/4 and 1/2: 30 ± 2.7 and 20 ± 3.2.
    assert!((20..=38).contains(&count(&|one| one["hosts"][1]["count"] == 0)));
    assert!((8..=32).contains(&count(&|one| one["path"]["rtt_ms"] == 20.0)));
}

#[test]
fn a_printed_scenario_is_the_planned_one() {
    for run in plan(DRAWN) {
        let again = Scenario::from_toml("printed", &run.scenario.to_toml(), &[]).unwrap_or_else(|no| panic!("{no}"));
        assert_eq!(again.to_json(), run.scenario.to_json(), "{}", run.label);
    }
}

#[test]
fn hosts_of_a_block_that_is_left_out_do_not_exist_and_blocks_keep_their_numbers() {
    let text = DRAWN.replacen("[[scenario.hosts]]\n", "[[scenario.hosts]]\ncount = 0\n", 1);
    let text = text.replacen("key = \"hosts.0.count\"\nlog_uniform = [1, 20]\ndecimals = 0", "values = [1]", 1);
    let text = text.replacen("values = [0, 2]\nweights = [3, 1]", "values = [3]", 1);
    let blocks: Vec<usize> = plan(&text)[0].scenario.expanded_hosts().iter().map(|host| host.block).collect();
    assert_eq!(blocks, [1, 1, 1]);
    let none = text.replacen("values = [3]", "values = [0]", 1);
    let message = read(&none).and_then(|study| study.plan(1).map_err(|error| error.to_string()).map(drop));
    let message = message.expect_err("no host");
    assert!(message.contains("leaves no host in the whole scenario"), "{message}");
}

#[test]
fn ordinary_scenarios_have_up_to_some_forty_hosts() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/lasthop/ordinary.toml");
    let study = Study::load(file.as_ref()).unwrap_or_else(|no| panic!("{no}"));
    assert!(study.scenarios() >= Some(500));
    let planned = study.plan(1).unwrap_or_else(|no| panic!("{no}"));
    let mut hosts: Vec<usize> = planned.iter().map(|run| run.scenario.expanded_hosts().len()).collect();
    hosts.sort_unstable();
    let (least, median, most) = (hosts[0], hosts[hosts.len() / 2], hosts[hosts.len() - 1]);
    assert_eq!((least, median, most), (1, 12, 43));
}

/// The goodput is the number of uploads, and with "fixed" a tenth more; typists' messages take 5 ms.
fn result(scenario: &Scenario) -> RunResult {
    let hosts = scenario.to_json()["hosts"].clone();
    let goodput = hosts[0]["count"].as_f64().expect("a number");
    let factor = if hosts[0]["policy"] == "fixed" { 1.1 } else { 1.0 };
    let messages = (hosts[1]["count"] != 0).then(|| lasthop_scenario::DeliveryResult {
        delivered: 1,
        undelivered: 0,
        took_ms: lasthop_measure::distribution(&[5.0]),
        slowdown: None,
    });
    RunResult { aggregate_goodput_mbps: goodput * factor, messages, ..bare_result(scenario) }
}

const CLAIM: &str = r#"
[[claims]]
id = "messages"
text = "Messages take no longer."
source = "nobody"
at_least = 0.95
among = [{ value = 'at("messages.took_ms.mean", case="none")', at_least = 0 }]
conditions = [
    { value = 'at("messages.took_ms.mean", case="fixed") / at("messages.took_ms.mean", case="none")', at_most = 1.1 },
]
"#;

fn judged(text: &str) -> StudyResult {
    let study = read(text).unwrap_or_else(|no| panic!("{no}"));
    let runs: Vec<RunResult> = plan(text).iter().map(|run| result(&run.scenario)).collect();
    StudyResult::new(&study, HostsKind::Simulated, Build::default(), &Outcome::from(runs))
}

#[test]
fn scenarios_without_a_number_are_left_out_and_counted() {
    let result = judged(&format!("{DRAWN}{CLAIM}"));
    let claim = &result.claims[0];
    assert_eq!(result.scenarios, Some(40));
    assert_eq!((claim.verdict, claim.ours), (Verdict::Holds, Some(1.0)));
    assert!(claim.left_out > 0);
    assert_eq!(claim.left_out as usize + claim.cells.len(), 40);
    let nobody = DRAWN.replacen("values = [0, 2]\nweights = [3, 1]", "values = [0]", 1);
    let result = judged(&format!("{nobody}{CLAIM}"));
    assert_eq!(result.claims[0].verdict, Verdict::CannotBeJudged);
    assert_eq!(result.claims[0].problem.as_deref(), Some("all 40 cells are left out"));
}

#[test]
fn mistakes_are_told_with_their_lines() {
    for (line, with, said) in [
        ("scenarios = 40\n", "", "scenarios: is not there"),
        (
            "when = { queue = \"fifo\" }",
            "when = { queu = \"fifo\" }",
            "there is no draw queu before it; accepted: uploads, typists, queue",
        ),
        (
            "when = { queue = \"fifo\" }",
            "when = { queue = \"fif\" }",
            "queue never has the value \"fif\"; accepted: \"fifo\", \"fq_codel\"",
        ),
        ("weights = [3, 1]", "weights = [3]", "draw[1].weights: there are 1 for 2 values"),
        ("weights = [3, 1]", "weights = [0, 0]", "draw[1].weights: nothing can be drawn with these"),
        ("uniform = [20, 2000]", "uniform = [20, 2]", "draw[3].uniform: 20 is not below 2"),
        ("log_uniform = [2, 300]", "log_uniform = [0, 300]", "draw[4].log_uniform: 0 is not above 0"),
        ("log_uniform = [2, 300]", "", "draw[4].values: is not there"),
        ("name = \"rtt\"", "name = \"queue\"", "draw[4].name: \"queue\" stands twice"),
        ("key = \"path.rtt_ms\"", "key = \"path.rtt\"", "rtt"),
        ("key = \"path.rtt_ms\"", "key = \"seed\"", "draw[4].key: the seed is counted up"),
    ] {
        let text = DRAWN.replacen(line, with, 1);
        assert_ne!(text, DRAWN, "{line}");
        let message = read(&text).and_then(|study| study.plan(1).map(drop).map_err(|error| error.to_string()));
        let message = message.expect_err(with);
        assert!(message.contains("studies/x/drawn.toml") && message.contains(said), "{message}");
    }
}
