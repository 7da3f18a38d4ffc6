//! What a page is told, by a worker that keeps it.

use lasthop_scenario::{ResultFile as _, RunResult, Scenario};
use lasthop_sim::Options;
use lasthop_site::{Answer, Request, Worker};
use serde_json::Value;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

const TOML: &str = "duration_s = 4\nwarmup_s = 1\n[access]\npreset = \"2012\"\n[[hosts]]\ncount = 3\n[[hosts.flows]]\n";

/// Its clock goes on by a second at each look, so that every sample makes a picture.
#[derive(Default)]
struct Keeps {
    told: Mutex<Vec<Value>>,
    looks: Mutex<f64>,
}

impl Worker for Keeps {
    fn say(&self, answer: &Answer<'_>) {
        self.told.lock().unwrap().push(serde_json::to_value(answer).expect("an answer is JSON"));
    }

    fn now_ms(&self) -> f64 {
        let mut looks = self.looks.lock().unwrap();
        *looks += 1e3;
        *looks
    }
}

fn told(toml: &str, cases: &[&str], run: bool) -> Vec<Value> {
    let worker = Keeps::default();
    let cases = cases.iter().map(|&case| case.to_owned()).collect();
    Request { toml: toml.to_owned(), cases, run, width: 1280.0 }.answer(&worker);
    worker.told.into_inner().unwrap()
}

fn events(told: &[Value]) -> Vec<&str> {
    let mut events: Vec<&str> = told.iter().filter_map(|answer| answer["event"].as_str()).collect();
    events.dedup();
    events
}

#[test]
fn two_cases_are_checked_then_run_one_after_the_other_and_shown_together() {
    let told = told(TOML, &["as it is:", "shorter: access.queue_packets=20"], true);
    assert_eq!(events(&told), ["checked", "going", "ended", "going", "ended", "done"]);
    let pictures: Vec<&str> = told.iter().filter_map(|answer| answer["html"].as_str()).collect();
    assert!(pictures.iter().all(|picture| picture.contains("<svg") && !picture.contains("<html")));
    let going = told.iter().rfind(|answer| answer["event"] == "going").expect("a picture before the end");
    for shown in ["goodput-over-time", "rtt", "queue", "air"] {
        let named = format!("data-name=\"{shown}\"");
        assert!(
            going["html"].as_str().is_some_and(|html| html.contains(&named)),
            "{shown} is drawn while the run goes on"
        );
    }
    let last = pictures.last().expect("the report");
    assert!(last.contains("before-and-after") && last.contains("shorter"), "{}", &last[..300]);
}

/// It has many connections, of which no picture before the end has a line.
#[test]
fn short_transfers_beside_an_upload_run_to_their_end() {
    let toml = format!("{TOML}[[hosts.flows]]\nkind = \"transfers\"\narrivals_per_s = 20\ntransfer_kib = 20\n");
    let told = told(&toml, &[], true);
    assert_eq!(events(&told), ["checked", "going", "ended", "done"], "{:?}", told.first());
}

#[test]
fn a_result_is_the_simulators_but_for_how_long_it_took() {
    let told = told(TOML, &[], true);
    let ended = told.iter().find(|answer| answer["event"] == "ended").expect("a run has ended");
    let mut result = RunResult::from_json(ended["result"].as_str().expect("text")).expect("a result");
    assert!(result.wall_s > 0.0);
    (result.wall_s, result.simulated_s_per_wall_s) = (0.0, 0.0);
    let scenario = Scenario::from_toml("scenario.toml", TOML, &[]).expect("a scenario");
    let (build, stop) = (lasthop_version::build(), AtomicBool::new(false));
    let options = Options { build, series: false, stop: &stop, progress: &|_| {}, on_sample: None };
    let (alone, _) = lasthop_sim::run(&scenario, &options).expect("it runs").expect("to its end");
    assert_eq!(result.to_json(), alone.to_json());
}

#[test]
fn a_mistake_has_the_checkers_words_and_nothing_runs() {
    let mistake = |toml: &str, cases: &[&str]| match &told(toml, cases, true)[..] {
        [answer] if answer["event"] == "mistake" => answer["text"].as_str().expect("words").to_owned(),
        others => panic!("not one mistake alone: {others:?}"),
    };
    let error = Scenario::from_toml("scenario.toml", "duration_s = -1\n", &[]).expect_err("a negative time");
    assert_eq!(mistake("duration_s = -1\n", &[]), error.to_string());
    let of_case = mistake(TOML, &["as it is:", "worse: access.queue_packets=0"]);
    assert!(of_case.contains("\"worse\"") && of_case.contains("queue_packets"), "{of_case}");
    let program = format!("{TOML}[[hosts]]\npolicy = \"external\"\ncommand = [\"x\"]\n[[hosts.flows]]\n");
    assert!(mistake(&program, &[]).contains("accepted: any other policy"));
}

/// A link is a scenario, and may be anybody's.
#[test]
fn a_name_in_a_scenario_is_no_part_of_the_page() {
    let name = "<img src=x onerror=alert(1)>";
    let toml = format!("name = \"{name}\"\n{TOML}");
    let told = told(&toml, &[&format!("{name}:"), "shorter: access.queue_packets=20"], true);
    let pictures: Vec<&str> = told.iter().filter_map(|answer| answer["html"].as_str()).collect();
    assert!(pictures.len() > 2 && pictures.iter().all(|picture| !picture.contains("<img")));
    assert!(pictures.iter().any(|picture| picture.contains("&lt;img")));
}

#[test]
fn what_each_lesson_runs_is_a_scenario() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("web/lessons");
    let mut lessons = 0;
    for lesson in std::fs::read_dir(folder).expect("a folder").flatten() {
        let text = std::fs::read_to_string(lesson.path()).expect("a lesson");
        let mut examples = 0;
        for example in text.split("<div class=\"example\"").skip(1) {
            let between = |from: &str, to: &str| Some(example.split_once(from)?.1.split_once(to)?.0.to_owned());
            let toml = between("<script type=\"text/plain\">", "</script>").expect("an example");
            let cases = between("data-cases=\"", "\"").unwrap_or_default();
            let cases: Vec<&str> = cases.split('|').map(str::trim).filter(|case| !case.is_empty()).collect();
            assert_eq!(events(&told(&toml, &cases, false)), ["checked"], "{}", lesson.path().display());
            examples += 1;
        }
        assert!(examples > 0, "{}", lesson.path().display());
        lessons += 1;
    }
    assert_eq!(lessons, 6);
}
