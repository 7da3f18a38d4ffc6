//! What a study looks like. The runs are made up by a rule that the tests know.
//!
//! `LASTHOP_EXAMPLE_REPORTS=DIR cargo test -p lasthop-report --test studies` also leaves the reports in DIR, to be looked at.

mod example;

use lasthop_scenario::{Build, HostsKind, RunResult};
use lasthop_study::{Found, Study, StudyResult, Verdict};
use std::path::{Path, PathBuf};

const SVG: &[lasthop_report::FigureFormat] = &[lasthop_report::FigureFormat::Svg];

const STUDY: &str = r#"
title = "Relations between the number of terminals and the throughput"
source = "somebody 2024, Fig. 6"
note = """
The runs are made up.

What this says of <networks> is nothing."""
scenario = "base.toml"
seeds = 5
set.duration_s = 12
set.warmup_s = 10

[[cases]]
label = "fixed rate"
[[cases]]
label = "ARF, OFDM rates"
set.access.rate_control = "arf"

[[vary]]
axis = "delay"
label = "RTT of the path (ms)"
key = "path.rtt_ms"
values = [4, 256]
[[vary]]
axis = "n"
label = "terminals"
key = "hosts.0.count"
values = [1, 2, 4, 6, 8, 10]

[[figures]]
title = "Total throughput"
x = "n"
y = "aggregate_goodput_mbps"
panels = "delay"
[[figures.reference]]
label = "n^-0.15"
source = "hayakawa eq. 4, from the 19 Mb/s of one terminal"
formula = "19 * n ** -0.15"

[[figures]]
title = "Fairness"
x = "n"
y = "jain_index"

[[claims]]
id = "total-falls"
text = "The total performance decreases when the number of terminals increases in each delay environment."
source = "somebody 2024, Fig. 6"
reading = "Kendall's tau over n is -0.8 or less."
each = ["case", "delay"]
value = 'trend("aggregate_goodput_mbps", "n")'
at_most = -0.8

[[claims]]
id = "near-the-formula"
text = "The relation is approximately described by the formula."
source = "somebody 2024, eq. 4"
where = { case = "fixed rate" }
value = 'deviation(ratios("aggregate_goodput_mbps", "n^-0.15"))'
at_most = 0.1
required = true

[[claims]]
id = "improves"
text = "3.35 times"
source = "somebody 2024, Fig. 11"
where = { delay = 256, n = 10 }
value = 'at("aggregate_goodput_mbps", case="fixed rate") / at("aggregate_goodput_mbps", case="ARF, OFDM rates")'
paper = 3.35
within = 0.3
"#;

fn base(text: &str) -> Study {
    let scenario = include_str!("../../../scenarios/ten-uploads.toml");
    Study::from_toml("studies/somebody/fig-06.toml", text, &|_| Ok(scenario.to_owned()))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Fixed: 20·n^−0.15; ARF: 20/n. Each seed adds a twentieth more or less.
fn of(text: &str, seeds: u64) -> StudyResult {
    let study = base(text);
    let run = |planned: &lasthop_study::PlannedRun| -> RunResult {
        let (mut result, _) = example::run(&planned.scenario);
        let n = result.flows.len() as f64;
        let mean = if planned.label.starts_with("ARF") { 20.0 / n } else { 20.0 * n.powf(-0.15) };
        result.aggregate_goodput_mbps = mean * (1.0 + 0.05 * ((planned.scenario.seed % 3) as f64 - 1.0));
        result.hosts_kind = HostsKind::Simulated;
        result
    };
    let runs: Vec<RunResult> = study.plan(seeds).expect("a plan").iter().map(run).collect();
    let build = Build { version: "0.1.0".into(), commit: Some("7b32f07a1c2d".into()), dirty: false };
    StudyResult::new(&study, HostsKind::Simulated, build, &runs.into())
}

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

#[test]
fn the_table_of_a_study() {
    insta::assert_snapshot!(lasthop_report::tables::study(&of(STUDY, 3)));
}

#[test]
fn cells_that_fail_and_what_was_found_by_search_are_told() {
    let cells = r#"
[[claims]]
id = "most-cells"
text = "In nine tenths of the cells."
source = "nobody"
where = { n = [1, 10] }
cells = ["delay", "n"]
at_least = 0.9
[[claims.conditions]]
label = "over ARF"
value = 'at("aggregate_goodput_mbps", case="fixed rate") / at("aggregate_goodput_mbps", case="ARF, OFDM rates")'
at_most = 2
[[claims.conditions]]
label = "least"
value = 'at("aggregate_goodput_mbps", case="fixed rate")'
at_least = 14
"#;
    let mut result = of(&format!("{STUDY}{cells}"), 3);
    let found = |value, met| Found { key: "hosts.0.bound_segments".into(), value, met, tried: Vec::new() };
    result.points[0].search = Some(found(48.0, true));
    result.points[1].search = Some(found(24.0, false));
    let table = lasthop_report::tables::study(&result);
    let said = "Found by search: fixed rate: hosts.0.bound_segments = 24 to 48; at 1 of 2 points no value meets the conditions, \
                and it is the best without them: fixed rate, delay=4, n=2.";
    assert!(table.contains(said), "{table}");
    // 20·10^−0.15 = 14.16 over 20/10 is 7.08 over both delays; at n = 1 both are 20.
    assert!(table.contains("most-cells: 2 of 4 cells meet every condition; the others"), "{table}");
    let failing = table.split("; the others").nth(1).expect("a table");
    let row = |begin: &str| failing.lines().find(|line| line.trim_start().starts_with(begin)).map(str::to_owned);
    let ten = row("delay=256, n=10").expect("a row");
    assert!(ten.contains("7.079 no") && ten.contains("14.16") && !ten.contains("14.16 no"), "{ten}");
    assert_eq!(row("delay=256, n=1 "), None, "{failing}");

    let folder = folder("cells");
    lasthop_report::write_study(&folder.path, &result, SVG).expect("a folder");
    let page = text(&folder.path.join("report.html"));
    assert!(page.contains("2 of 4 cells meet every condition") && page.contains("7.079 no"), "{page}");
    assert!(page.contains("Found by search: fixed rate"), "{page}");
}

/// Beside the golden: what stands in it is what the rule says.
#[test]
fn the_table_says_what_the_runs_were() {
    let table = lasthop_report::tables::study(&of(STUDY, 3));
    let row = |begin: &str, after: &str| {
        let from = table.find(after).unwrap_or_else(|| panic!("no {after} in {table}"));
        let line = table[from..].lines().find(|line| line.trim_start().starts_with(begin));
        line.unwrap_or_else(|| panic!("no {begin} in {table}")).to_owned()
    };
    // Seeds 1, 2, 3 make 1.00, 1.05, 0.95 of 20·10^−0.15 = 14.16; s = 0.708, t(2)·s/√3 = 4.30265·0.408757 = 1.7588.
    let ten = row("10", "Total throughput, RTT of the path 256 ms");
    assert!(
        ten.contains("14.16 (12.51 to 15.92)") && ten.contains("2.000 (1.766 to 2.248)") && ten.contains("13.45"),
        "{ten}"
    );
    // From 20 to 20/10: each of six less than the one before; judged at four places, so in a matrix of its own.
    assert!(row("ARF, OFDM rates, delay=256", "Claims").contains("-1.000 yes"), "{table}");
    // 20 over 19 everywhere.
    let near = row("near-the-formula", "Claims");
    assert!(near.contains("0.053") && near.contains("≤ 0.100") && near.contains("(required)"), "{near}");
    // 14.16/2 = 7.08.
    let improves = row("improves", "Claims");
    assert!(
        improves.contains("3.350") && improves.contains("7.079") && improves.contains("does NOT hold"),
        "{improves}"
    );
    assert!(table.ends_with("1 of 1 required claims hold; 4 of 5 other claims hold."), "{table}");
}

#[test]
fn a_study_with_many_lines_has_a_row_for_each() {
    let cases: String = (1..=6).map(|index| format!("[[cases]]\nlabel = \"case {index}\"\n")).collect();
    let table = lasthop_report::tables::study(&of(&STUDY.replacen("[[cases]]", &format!("{cases}[[cases]]"), 1), 2));
    let row = table.lines().find(|line| line.starts_with(" case 3 ")).unwrap_or_else(|| panic!("{table}"));
    assert_eq!(row.matches(" to ").count(), 6, "{row}");
}

#[test]
fn with_one_seed_no_interval_is_shown() {
    let table = lasthop_report::tables::study(&of(STUDY, 1));
    assert!(!table.contains('±') && table.contains("24 points × 1 seed = 24 runs\n"), "{table}");
}

#[test]
fn what_cannot_be_judged_says_why_and_does_not_pass() {
    let mut result = of(STUDY, 2);
    let claim = result.claims.last_mut().expect("a claim");
    (claim.verdict, claim.ours, claim.ci95) = (Verdict::CannotBeJudged, None, None);
    claim.problem = Some("jain_index has no value in this result at n=10".into());
    result.passed = false;
    let table = lasthop_report::tables::study(&result);
    assert!(table.contains("cannot be judged: improves: jain_index has no value in this result at n=10"), "{table}");
    assert!(table.ends_with("1 cannot be judged."), "{table}");
}

#[test]
fn a_study_is_kept_and_comes_back() {
    let folder = folder("study");
    let result = of(STUDY, 5);
    lasthop_report::write_study(&folder.path, &result, SVG).expect("a report");
    assert!(lasthop_report::read_study(&folder.path).expect("the report") == result, "what came back differs");
    for name in ["1-total-throughput", "2-fairness"] {
        let svg = text(&folder.path.join(format!("figures/{name}.svg")));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{name}");
        assert!(!svg.contains("NaN"), "{name}");
    }
    let page = text(&folder.path.join("report.html"));
    for outside in ["http://", "https://", "<script", "<link", "@import", "url(", "<img", "<iframe"] {
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(outside), "{outside}");
    }
    assert!(page.contains("What this says of &lt;networks&gt; is nothing."));
    assert!(page.contains("lasthop study somebody&#x2f;fig-06 --seeds 5 --out DIR"));
    assert!(page.contains("hayakawa eq. 4, from the 19 Mb&#x2f;s of one terminal"));
}

/// A study whose own hosts are kernel ones gives other numbers without `--hosts simulated`; one with a case of its own kind keeps the
/// others' with it.
#[test]
fn the_command_of_a_study_has_the_hosts_that_its_file_does_not_say() {
    let cases = "[[cases]]\nlabel = \"other\"\nhosts = \"kernel\"\n[[figures]]";
    let (kernel, mixed) = (format!("hosts = \"kernel\"\n{STUDY}"), STUDY.replacen("[[figures]]", cases, 1));
    let command = |text: &str, hosts: HostsKind, is_of_before: bool| {
        let study = base(text);
        let plan = study.plan(1).expect("a plan");
        let run = |planned: &lasthop_study::PlannedRun| -> RunResult {
            RunResult { hosts_kind: planned.hosts.unwrap_or(hosts), ..example::run(&planned.scenario).0 }
        };
        let runs: Vec<RunResult> = plan.iter().map(run).collect();
        let build = Build { version: "0.1.0".into(), commit: None, dirty: false };
        let mut result = StudyResult::new(&study, hosts, build, &runs.into());
        if is_of_before {
            result.hosts_option = None;
        }
        let folder = folder(&format!("study-hosts-{}-{hosts:?}-{is_of_before}", text.len()));
        lasthop_report::write_study(&folder.path, &result, SVG).expect("a report");
        let page = self::text(&folder.path.join("report.html")).replace("&#x2f;", "/");
        page.lines().find(|line| line.contains("--out DIR")).expect("a command").to_owned()
    };
    let (ours, kernels) = (HostsKind::Simulated, HostsKind::Kernel);
    let machine = " --clock virtual --kernel debian-6.12";
    for (study, hosts, option) in [
        (STUDY, ours, String::new()),
        (STUDY, kernels, format!(" --hosts kernel{machine}")),
        (&*kernel, ours, " --hosts simulated".to_owned()),
        (&*kernel, kernels, machine.to_owned()),
        (&*mixed, ours, machine.to_owned()),
        (&*mixed, kernels, format!(" --hosts kernel{machine}")),
    ] {
        let expected = format!("lasthop study somebody/fig-06{option} --seeds 1 --out DIR");
        let command = command(study, hosts, false);
        assert!(command.contains(&expected), "{command}, not {expected}");
    }
    // A study.json of before `hosts_option`.
    for (study, hosts, option) in [
        (STUDY, ours, ""),
        (STUDY, kernels, &*format!(" --hosts kernel{machine}")),
        (&*kernel, ours, " --hosts simulated"),
        (&*kernel, kernels, machine),
        (&*mixed, ours, machine),
    ] {
        let expected = format!("lasthop study somebody/fig-06{option} --seeds 1 --out DIR");
        let command = command(study, hosts, true);
        assert!(command.contains(&expected), "{command}, not {expected}");
    }
}

/// Without `--set` it would give other numbers, and a file elsewhere has no name.
#[test]
fn the_command_of_a_study_has_its_file_and_what_was_set() {
    let scenario = include_str!("../../../scenarios/ten-uploads.toml");
    let study = Study::from_toml("./rng 1.toml", STUDY, &|_| Ok(scenario.to_owned())).expect("a study");
    let set = lasthop_scenario::Override::parse("access.queue_packets=50").expect("an override");
    let study = study.with_overrides(vec![set]);
    let runs: Vec<RunResult> = study.plan(2).expect("a plan").iter().map(|of| example::run(&of.scenario).0).collect();
    let build = Build { version: "0.1.0".into(), commit: None, dirty: false };
    let result = StudyResult::new(&study, HostsKind::Simulated, build, &runs.into());
    let folder = folder("study-set");
    lasthop_report::write_study(&folder.path, &result, SVG).expect("a report");
    let page = text(&folder.path.join("report.html")).replace("&#x27;", "'").replace("&#x2f;", "/");
    let command = "lasthop study './rng 1.toml' --set 'access.queue_packets=50' --seeds 2 --out DIR";
    assert!(page.contains(command), "{:?}", page.lines().find(|line| line.contains("lasthop study")));
}

#[test]
fn the_points_are_a_table_that_any_program_reads() {
    let folder = folder("study-points");
    lasthop_report::write_study(&folder.path, &of(STUDY, 3), SVG).expect("a report");
    let csv = text(&folder.path.join("points.csv"));
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("case,delay,n,measure,seeds,mean,deviation,ci95_low,ci95_high,min,max"));
    // Two measures at each of 24 points.
    assert_eq!(lines.clone().count(), 48);
    let line = lines.find(|line| line.starts_with("\"ARF, OFDM rates\",256,10,aggregate")).expect("the point");
    let numbers: Vec<f64> = line.split(',').skip(5).filter_map(|field| field.parse().ok()).collect();
    // 3 seeds: 2, 2.1, 1.9.
    assert_eq!(numbers[0], 3.0, "{line}");
    for (index, value) in [(1, 2.0), (2, 0.1), (5, 1.9), (6, 2.1)] {
        assert!((numbers[index] - value).abs() < 1e-9, "{line}");
    }
    // t(2)·0.1/√3 = 0.24841 above, and 2·exp(−0.24841/2) = 1.76639.
    assert!((numbers[4] - 2.248_41).abs() < 1e-4 && (numbers[3] - 1.766_39).abs() < 1e-4, "{line}");
}

#[test]
fn a_study_without_figures_or_claims_is_kept_too() {
    let bare = &STUDY[..STUDY.find("[[figures]]").expect("figures")];
    let folder = folder("study-bare");
    let result = of(&bare.replace("seeds = 5", "seeds = 5\nmeasures = [\"utilization\"]"), 2);
    lasthop_report::write_study(&folder.path, &result, SVG).expect("a report");
    assert!(lasthop_report::tables::study(&result).ends_with("Nothing is claimed."));
    assert!(text(&folder.path.join("points.csv")).lines().count() == 25);
}

#[test]
fn what_is_not_required_and_does_not_hold_is_not_alarming() {
    let folder = folder("study-verdicts");
    let result = of(STUDY, 3);
    lasthop_report::write_study(&folder.path, &result, SVG).expect("a report");
    let page = text(&folder.path.join("report.html"));
    assert!(result.passed && page.contains("<p class=\"good\">"));
    assert!(page.contains("class=\"verdict does-not-hold\">does NOT hold"));
}
