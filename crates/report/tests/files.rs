//! What is kept of a run and of a comparison.
//!
//! `LASTHOP_EXAMPLE_REPORTS=DIR cargo test -p lasthop-report --test files` also leaves the made-up reports in DIR, to
//! be looked at.

mod example;

use lasthop_scenario::{Comparison, QueueSample, ResultFile as _, RunResult, Series};
use std::path::{Path, PathBuf};

const SVG: &[lasthop_report::FigureFormat] = &[lasthop_report::FigureFormat::Svg];

/// A folder that is gone after the test, or one to keep.
struct Folder {
    path: PathBuf,
    _gone_after: Option<tempfile::TempDir>,
}

fn folder(name: &str) -> Folder {
    if let Some(kept) = std::env::var_os("LASTHOP_EXAMPLE_REPORTS") {
        return Folder { path: Path::new(&kept).join(name), _gone_after: None };
    }
    let gone_after = tempfile::tempdir().expect("a folder");
    Folder { path: gone_after.path().join(name), _gone_after: Some(gone_after) }
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file that was written is one that was announced, for nothing else is looked for in the way.
#[track_caller]
fn assert_announced(folder: &Path, announced: &[String]) {
    let mut folders = vec![folder.to_owned()];
    let mut files = 0;
    while let Some(inside) = folders.pop() {
        for entry in std::fs::read_dir(inside).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            let name = entry.strip_prefix(folder).expect("it is inside").display().to_string();
            assert!(announced.contains(&name), "{name} was not announced");
            files += 1;
        }
    }
    assert!(files >= 4, "{files}");
}

fn assert_self_contained(page: &str) {
    for outside in ["http://", "https://", "<script", "<link", "@import", "url(", "<img", "<iframe"] {
        let found = page.replace("http://www.w3.org/2000/svg", "").contains(outside);
        assert!(!found, "the page refers to something outside: {outside}");
    }
}

#[test]
fn a_run_is_kept_whole_and_comes_back() {
    let folder = folder("run");
    let (result, series) = example::run(&example::scenario(&["hosts.0.policy=formula"]));
    lasthop_report::write_run(&folder.path, &result, &series, SVG).expect("a report");
    let (again, series_again) = lasthop_report::read_run(&folder.path).expect("the report");
    assert!(again == result, "what came back differs");
    assert!(series_again == series, "what came back differs");
    for name in
        ["goodput", "goodput-over-time", "goodput-cdf", "rtt", "rtt-cdf", "slowdown-cdf", "cwnd", "states", "queue"]
    {
        let svg = text(&folder.path.join(format!("figures/{name}.svg")));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{name}");
        assert!(svg.len() < 1_000_000, "{name} has {} bytes", svg.len());
    }
    assert_self_contained(&text(&folder.path.join("report.html")));
    assert_announced(&folder.path, &lasthop_report::run_files(SVG));
    let kept = lasthop_scenario::Scenario::load(&folder.path.join("scenario.toml"), &[]).expect("the scenario");
    assert!(kept.to_json() == result.scenario);
}

#[test]
fn a_run_without_series_is_kept_without_figures_of_them() {
    let folder = folder("run-without-series");
    let (result, _) = example::run(&example::scenario(&[]));
    lasthop_report::write_run(&folder.path, &result, &Series::default(), SVG).expect("a report");
    assert_eq!(lasthop_report::read_run(&folder.path).expect("the report").1, Series::default());
    assert!(folder.path.join("figures/goodput.svg").exists() && !folder.path.join("figures/rtt.svg").exists());
}

#[test]
fn a_comparison_is_kept_with_each_of_its_runs() {
    let folder = folder("comparison");
    let (comparison, runs) = example::demo();
    lasthop_report::write_comparison(&folder.path, &comparison, &runs, SVG).expect("a report");
    let (again, runs_again) = lasthop_report::read_comparison(&folder.path).expect("the report");
    assert!(again == comparison, "what came back differs");
    assert!(runs_again == runs, "what came back differs");
    for file in ["report.html", "result.json", "series.parquet", "queues.parquet", "figures/cwnd.svg"] {
        assert!(folder.path.join("cases/2-agent-formula").join(file).exists(), "{file}");
    }
    let names = [
        "before-and-after",
        "summary",
        "difference",
        "tradeoff",
        "rtt-cdf",
        "goodput-cdf",
        "goodput-over-time",
        "queue",
    ];
    for name in names {
        assert!(text(&folder.path.join(format!("figures/{name}.svg"))).len() < 1_500_000, "{name}");
    }
    let kept = lasthop_scenario::Scenario::load(&folder.path.join("scenario.toml"), &[]).expect("the scenario");
    assert!(kept.to_json() == comparison.scenario);
    let page = text(&folder.path.join("report.html"));
    assert_self_contained(&page);
    assert!(page == lasthop_report::page(&folder.path).expect("a page"), "the page made anew differs");
    assert!(page.contains("--case &#x27;agent, formula: hosts.0.policy=formula&#x27;"));
    let labels: Vec<&str> = comparison.cases.iter().map(|case| case.label.as_str()).collect();
    let seeds = comparison.seeds[0]..comparison.seeds[0] + comparison.seeds.len() as u64;
    assert_announced(&folder.path, &lasthop_report::comparison_files(&labels, seeds, SVG));
}

#[test]
fn a_colour_is_a_policy_in_every_figure_of_a_comparison() {
    let folder = folder("comparison-colours");
    let (comparison, runs) = example::demo();
    lasthop_report::write_comparison(&folder.path, &comparison, &runs, SVG).expect("a report");
    // The cases: none, formula, fixed, none with another congestion control; and what is in no case.
    let (grey, blue, green, vermillion) = ("#A5ACB6", "#00507E", "#007A58", "#E36400");
    for (name, marks) in [
        ("summary", "<rect"),
        ("before-and-after", "<rect"),
        ("rtt-cdf", "<polyline"),
        ("goodput-over-time", "<polyline"),
    ] {
        let svg = text(&folder.path.join(format!("figures/{name}.svg")));
        let drawn = |colour: &str| {
            svg.split('<').filter(|shape| shape.starts_with(&marks[1..]) && shape.contains(colour)).count()
        };
        assert!(drawn(blue) > 0 && drawn(green) == drawn(blue), "{name}: {} and {}", drawn(blue), drawn(green));
        assert_eq!(drawn(grey), 2 * drawn(blue), "{name}");
        assert_eq!(drawn(vermillion), 0, "{name}");
    }
    // A bar for each of ten hosts, and a swatch for the case.
    let svg = text(&folder.path.join("figures/before-and-after.svg"));
    assert_eq!(svg.split('<').filter(|shape| shape.starts_with("rect") && shape.contains(blue)).count(), 11);
    assert!(svg.contains("log scale") && svg.contains("equal share") && svg.contains("agent, formula"), "{svg:.2000}");
}

#[test]
fn a_call_beside_uploads_makes_no_difference_of_congestion_control() {
    let svg = |name: &str, calls: bool| {
        let folder = folder(name);
        let (mut comparison, runs) = example::comparison(&["hosts.0.bound_segments=24,48"], 1);
        for case in comparison.cases.iter_mut().filter(|_| calls) {
            case.runs[0].flows[0].congestion_control = None;
        }
        lasthop_report::write_comparison(&folder.path, &comparison, &runs, SVG).expect("a report");
        text(&folder.path.join("figures/tradeoff.svg"))
    };
    assert_eq!(svg("comparison-calls", true), svg("comparison-no-calls", false));
}

#[test]
fn figures_of_several_seeds_say_what_their_bars_and_lines_are() {
    let folder = folder("comparison-said");
    let (comparison, runs) = example::comparison(&["hosts.0.policy=none,formula"], 3);
    lasthop_report::write_comparison(&folder.path, &comparison, &runs, SVG).expect("a report");
    let page = text(&folder.path.join("report.html"));
    for said in
        ["Means over 3 seeds; the bars are their 95 % confidence intervals.", "Seed 1 alone, one of 3.", ">seed 1: "]
    {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn cases_of_one_colour_have_lines_with_different_dashes() {
    let folder = folder("comparison-dashes");
    let (comparison, runs) = example::comparison(&["hosts.0.policy=none,formula", "hosts.0.count=2,5"], 1);
    lasthop_report::write_comparison(&folder.path, &comparison, &runs, SVG).expect("a report");
    let svg = text(&folder.path.join("figures/rtt-cdf.svg"));
    let mut looks: Vec<String> = svg
        .lines()
        .filter(|line| line.starts_with("<polyline"))
        .map(|line| line.split(" points").next().expect("a line").split(" fill").nth(1).expect("a pen").to_owned())
        .collect();
    looks.sort();
    looks.dedup();
    assert_eq!(looks.len(), 4, "{looks:?}");
}

/// Two seeds: 20 and 22 Mb/s become 30 and 34: +10 and +12, so +11 ± 12.7 · 1.
#[test]
fn a_difference_is_that_of_the_runs_with_the_same_seed() {
    let folder = folder("comparison-difference");
    let (mut comparison, runs) = example::comparison(&["hosts.0.policy=none,formula"], 2);
    for (case, mbps) in comparison.cases.iter_mut().zip([[20.0, 22.0], [30.0, 34.0]]) {
        case.runs.iter_mut().zip(mbps).for_each(|(run, mbps)| run.aggregate_goodput_mbps = mbps);
    }
    // The order of the runs does not matter.
    comparison.cases[1].runs.reverse();
    lasthop_report::write_comparison(&folder.path, &comparison, &runs, SVG).expect("a report");
    let page = text(&folder.path.join("report.html"));
    assert!(page.contains("Difference to case 1: policy=none"));
    assert!(page.contains("+11.0 ± 12.7<small>+52 %</small>"), "{}", page.split("Difference").nth(1).expect("it"));
    assert!(text(&folder.path.join("figures/difference.svg")).contains("+11.0 ± 12.7 (+52 %)"));
}

#[test]
fn stations_have_their_rates_and_the_later_standards_their_air() {
    let folder = folder("stations");
    let (mut result, series) = example::run(&example::scenario(&["hosts.0.count=2"]));
    let station = |host: u16, rate: f64| lasthop_scenario::StationResult {
        host,
        up_phy_rate_mbps: Some(rate),
        down_phy_rate_mbps: None,
        up_retries: 0,
        down_retries: 0,
        up_aggregate_frames: None,
        down_aggregate_frames: None,
        up_air_share: None,
        down_air_share: None,
    };
    result.access.stations = vec![station(0, 54.0), station(1, 6.0)];
    lasthop_report::write_run(&folder.path, &result, &series, SVG).expect("a report");
    let svg = text(&folder.path.join("figures/stations.svg"));
    // What was not sent has no bar.
    let titles = || svg.matches("<title>host ").count();
    assert!(titles() == 2 && svg.contains("<title>host 1, up: mean PHY rate (Mb/s) 6</title>"), "{svg}");
    assert!(!svg.contains("share of the air"));
    result.access.stations[1].up_air_share = Some(0.75);
    lasthop_report::write_run(&folder.path, &result, &series, SVG).expect("a report");
    let svg = text(&folder.path.join("figures/stations.svg"));
    assert!(svg.contains("<title>host 1, up: share of the air (%) 75</title>"), "{svg}");
}

#[test]
fn a_comparison_over_several_seeds_has_a_folder_for_each() {
    let folder = folder("comparison-seeds");
    let (comparison, runs) = example::comparison(&["hosts.0.policy=none,formula", "hosts.0.count=2,5,10"], 2);
    lasthop_report::write_comparison(&folder.path, &comparison, &runs, SVG).expect("a report");
    assert_eq!(lasthop_report::read_comparison(&folder.path).expect("the report").1.len(), 12);
    assert!(folder.path.join("cases/6-policy-formula-count-10-seed-2/result.json").exists());
    let labels: Vec<&str> = comparison.cases.iter().map(|case| case.label.as_str()).collect();
    assert_announced(&folder.path, &lasthop_report::comparison_files(&labels, 1..3, SVG));
}

#[test]
fn the_command_of_a_comparison_has_its_seeds_or_none_is_said_to_have_them() {
    let (comparison, _) = example::comparison(&["hosts.0.policy=none,formula"], 1);
    for (seeds, said) in [
        (vec![1], "formula&#x27; --out DIR"),
        (vec![1, 2], "formula&#x27; --seeds 2 --out DIR"),
        (vec![5], "formula&#x27; --set seed=5 --out DIR"),
        (vec![5, 6, 7], "formula&#x27; --set seed=5 --seeds 3 --out DIR"),
        (vec![5, 9], "No command takes these seeds"),
        (vec![2, 1], "No command takes these seeds"),
    ] {
        let (folder, comparison) = (folder("seeds"), Comparison { seeds: seeds.clone(), ..comparison.clone() });
        lasthop_report::write_comparison(&folder.path, &comparison, &[], SVG).expect("a report");
        let page = text(&folder.path.join("report.html"));
        assert!(page.contains(said), "{seeds:?}: {said}");
        assert_eq!(page.contains("lasthop compare scenario.toml"), !said.starts_with("No command"), "{seeds:?}");
    }
}

#[test]
fn kinds_of_hosts_are_told_apart_and_a_run_that_is_not_valid_says_so() {
    let folder = folder("mixed");
    let text_of = include_str!("../../../scenarios/mixed-up-down.toml");
    let scenario = lasthop_scenario::Scenario::from_toml("mixed-up-down.toml", text_of, &[]).expect("a scenario");
    let (mut result, series) = example::run(&scenario);
    result.valid = false;
    result.invalid_reasons = vec!["99 % of the deliveries were up to 2310 us late, more than 1000 us".into()];
    lasthop_report::write_run(&folder.path, &result, &series, SVG).expect("a report");
    let page = text(&folder.path.join("report.html"));
    assert!(page.contains("Not valid") && page.contains("2310 us late"));
    assert!(page.contains("kernel debian-6.12 (digest 0123456789abcdef), QEMU emulator version 7.2.22."), "{page}");
    assert!(text(&folder.path.join("figures/rtt.svg")).contains("download"));
}

#[test]
fn what_a_scenario_says_is_escaped() {
    let folder = folder("escaped");
    let (mut result, series) = example::run(&example::scenario(&["hosts.0.count=1", "duration_s=12"]));
    let hostile = "<script>alert('x')</script> & \"more\"";
    result.scenario["name"] = hostile.into();
    result.flows[0].policy = hostile.into();
    result.invalid_reasons = vec![hostile.into()];
    lasthop_report::write_run(&folder.path, &result, &series, SVG).expect("a report");
    let page = text(&folder.path.join("report.html"));
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert(&#x27;x&#x27;)&lt;&#x2f;script&gt; &amp;"));
}

#[test]
fn the_same_result_makes_the_same_bytes() {
    let folder = folder("twice");
    let (result, series) = example::run(&example::scenario(&[]));
    for name in ["a", "b"] {
        lasthop_report::write_run(&folder.path.join(name), &result, &series, SVG).expect("a report");
    }
    for file in ["report.html", "series.parquet", "queues.parquet", "figures/rtt.svg"] {
        let bytes = |name: &str| std::fs::read(folder.path.join(name).join(file)).expect("a file");
        assert!(bytes("a") == bytes("b"), "{file}");
    }
}

#[test]
fn long_series_make_figures_of_bounded_size() {
    let folder = folder("long");
    let overrides = ["hosts.0.count=60", "duration_s=200", "sample_ms=20"];
    let (result, series) = example::run(&example::scenario(&overrides));
    assert!(series.flows.len() > 500_000);
    lasthop_report::write_run(&folder.path, &result, &series, SVG).expect("a report");
    for name in ["rtt", "cwnd", "states", "queue"] {
        let size = text(&folder.path.join(format!("figures/{name}.svg"))).len();
        assert!(size < 2_000_000, "{name} has {size} bytes");
    }
}

#[test]
fn a_file_that_cannot_be_written_or_read_is_named() {
    let folder = folder("errors");
    let (result, series): (RunResult, Series) = example::run(&example::scenario(&["hosts.0.count=1"]));
    std::fs::create_dir_all(folder.path.join("result.json")).expect("a folder in the way");
    let error = lasthop_report::write_run(&folder.path, &result, &series, SVG).expect_err("a folder in the way");
    // What the system said is the error's source: whoever prints the chain says it once.
    assert!(std::error::Error::source(&error).is_some());
    let error = error.to_string();
    assert!(error.starts_with("cannot write ") && error.ends_with("errors/result.json"), "{error}");
    let error = lasthop_report::read_run(&folder.path.join("nowhere")).expect_err("nothing there").to_string();
    assert!(error.contains("nowhere/result.json"), "{error}");
    std::fs::write(folder.path.join("series.parquet"), "no parquet").expect("a file");
    let error = lasthop_report::series_file::read(&folder.path, &result).expect_err("not parquet").to_string();
    assert!(error.starts_with("cannot read the series ") && error.ends_with("series.parquet"), "{error}");
}

#[test]
fn a_series_of_another_run_is_refused_by_name() {
    let folder = folder("other-run");
    let (result, series) = example::run(&example::scenario(&["hosts.0.count=2"]));
    lasthop_report::write_run(&folder.path, &result, &series, SVG).expect("a report");
    let mut others = [(); 3].map(|()| result.clone());
    others[0].seed += 1;
    others[1].scenario["hosts"][0]["policy"] = "formula".into();
    // The same once more on kernel hosts.
    others[2].aggregate_goodput_mbps += 0.001;
    for (other, key) in
        others.iter().zip(["lasthop.seed is 1, not 2", "lasthop.run_sha256 is ", "lasthop.run_sha256 is "])
    {
        std::fs::write(folder.path.join("result.json"), other.to_json()).expect("a file");
        let error = lasthop_report::read_run(&folder.path).map(drop).expect_err("of another run").to_string();
        assert!(
            error.contains("series.parquet: it is of another run than the result: ") && error.contains(key),
            "{error}"
        );
    }
}

#[test]
fn a_series_without_the_digest_of_its_run_is_held_to_name_seed_and_build() {
    let folder = folder("older-run");
    let (result, series) = example::run(&example::scenario(&["hosts.0.count=2"]));
    lasthop_report::write_run(&folder.path, &result, &series, SVG).expect("a report");
    // An older file has `lasthop.run`, another checksum; another key of the same length stands for it.
    let (key, other_key) = (b"lasthop.run_sha256", b"lasthop.run_before");
    for name in ["series.parquet", "queues.parquet"] {
        let path = folder.path.join(name);
        let mut bytes = std::fs::read(&path).expect("a file");
        let at = bytes.windows(key.len()).position(|part| part == key).expect("the key");
        bytes[at..at + key.len()].copy_from_slice(other_key);
        std::fs::write(&path, bytes).expect("a file");
    }
    let (_, read) = lasthop_report::read_run(&folder.path).expect("readable");
    assert_eq!(read.flows, series.flows);
    let mut other = result;
    other.seed += 1;
    std::fs::write(folder.path.join("result.json"), other.to_json()).expect("a file");
    let error = lasthop_report::read_run(&folder.path).map(drop).expect_err("of another run").to_string();
    assert!(error.contains("lasthop.seed is 1, not 2"), "{error}");
}

#[test]
fn the_figure_of_queues_has_a_named_line_for_each_access_point() {
    let folder = folder("queues");
    let (mut run, mut series) = example::run(&example::scenario(&["hosts.0.count=2"]));
    let cell = |name: &str| lasthop_scenario::CellResult {
        name: name.to_owned(),
        goodput_mbps: 0.0,
        downlink_drops: 0,
        left_behind: 0,
        downlink_queue_mean: 0.0,
        downlink_queue_p95: 0.0,
        collisions: 0,
        air_shares: Default::default(),
        neighbours_share: 0.0,
    };
    run.cells = vec![cell("here"), cell("next-door")];
    for step in 0..400 {
        let (t_s, packets) = (f64::from(step) * 0.1, step % 50);
        series.queues.push(QueueSample { t_s, place: "access_point_1".into(), packets });
    }
    let queue = |run: &RunResult| {
        lasthop_report::write_run(&folder.path, run, &series, SVG).expect("a report");
        text(&folder.path.join("figures/queue.svg"))
    };
    let both = queue(&run);
    for name in ["here", "next-door"] {
        assert!(both.contains(&format!("data-name=\"the queue of {name}\"")), "no line of {name}: {both}");
        assert!(both.contains(&format!(">\n{name}\n</text>")), "the legend has no {name}: {both}");
    }
    run.cells.clear();
    let alone = queue(&run);
    assert!(alone.contains("data-name=\"the queue\"") && !alone.contains("the queue of"), "{alone}");
}
