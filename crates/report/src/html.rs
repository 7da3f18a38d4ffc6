//! Self-contained pages: no script, no network, no other file. `templates/` defines their appearance.

use crate::CaseRun;
use crate::cells::{self, Cell};
use crate::figures::{self, Figure};
use crate::style::{self, Look};
use lasthop_scenario::{CaseResult, Comparison, HostsKind, Queue, RunResult, Scenario, Series, UsedKernel, Wifi};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::LazyLock;

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("delimiters that there are"));
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    for (name, source) in [
        ("page.css", include_str!("../templates/page.css")),
        (PAGE, include_str!("../templates/page.html")),
        (PART, include_str!("../templates/part.html")),
        ("parts.html", include_str!("../templates/parts.html")),
        ("run.html", include_str!("../templates/run.html")),
        ("comparison.html", include_str!("../templates/comparison.html")),
        ("study.html", include_str!("../templates/study.html")),
        ("live.html", include_str!("../templates/live.html")),
    ] {
        environment.add_template(name, source).unwrap_or_else(|error| panic!("{name}: {error:#}"));
    }
    environment
});

/// The output of a template for this page.
pub(crate) fn render(template: &str, page: &Value) -> String {
    let made = TEMPLATES.get_template(template).and_then(|template| template.render(Serde(page)));
    made.unwrap_or_else(|error| panic!("{template} and what it is given belong together: {error:#}"))
}

/// The frame of a page of its own, with its style.
pub(crate) const PAGE: &str = "page.html";
/// None: what is in it is a part of another page.
pub(crate) const PART: &str = "part.html";

/// A table for `parts.html`.
#[derive(Serialize)]
pub(crate) struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(heads: &[impl AsRef<str>], rows: Vec<Vec<Cell>>) -> Self {
        Self { heads: heads.iter().map(|head| head.as_ref().to_owned()).collect(), rows }
    }
}

/// The page of one run.
pub(crate) fn run(frame: &str, result: &RunResult, figures: &[Figure]) -> String {
    let hosts = hosts_options(result.hosts_kind, &result.used);
    let seed = result.seed;
    render(
        "run.html",
        &json!({
            "frame": frame,
            "title": result.name(),
            "duration_s": figures::number(result.duration_s),
            "warmup_s": figures::number(result.warmup_s),
            "seed": seed,
            "made_by": cells::made_by(&result.build, &result.used),
            "invalid_reasons": result.invalid_reasons,
            "tiles": cells::headline(result),
            "tables": tables(result),
            "figures": figures,
            "command": format!("lasthop run scenario.toml{hosts} --seed {seed} --out DIR"),
            "scenario": scenario(&result.scenario),
        }),
    )
}

/// The page of a comparison: first the figures that compare the cases, then each case.
///
/// `folders`: those of the runs, in their order; none in a [`PART`].
pub(crate) fn comparison(
    frame: &str,
    comparison: &Comparison,
    runs: &[CaseRun],
    figures: &[Figure],
    folders: &[String],
) -> String {
    let looks = style::cases(comparison);
    let (used, kernels) = used_by(comparison);
    let mut tables: Vec<Table> =
        cells::case_tables(comparison).into_iter().map(|(heads, rows)| Table::new(heads, rows)).collect();
    for table in &mut tables {
        for (row, look) in table.rows.iter_mut().zip(&looks) {
            row[1].colour = Some(look.colour.hex());
        }
    }
    let invalid = cells::invalid_cases(comparison).into_iter().map(|(case, reason)| format!("{case}: {reason}"));
    let cases = comparison.cases.iter().zip(&looks).filter_map(|(case, look)| one_case(case, look, runs, folders));
    render(
        "comparison.html",
        &json!({
            "frame": frame,
            "title": comparison.name(),
            "cases_in_all": comparison.cases.len(),
            "seeds": comparison.seeds,
            "made_by": cells::made_by(&comparison.build, &used),
            "invalid_reasons": invalid.collect::<Vec<_>>(),
            "tables": tables,
            "left_out": cells::left_out(comparison),
            "first": comparison.cases.first().map_or("", |case| case.label.as_str()),
            "differences": differences(comparison, &looks),
            "figures": figures,
            "cases": cases.collect::<Vec<_>>(),
            "command": compare_command(comparison, &used, kernels),
            "scenario": comparison.to_toml().unwrap_or_else(|| scenario(&comparison.scenario)),
            "is_as_written": comparison.written.is_some(),
        }),
    )
}

/// A run that goes on, for `live.html`. `begun`: what is known of its result; `has_end`: whether it takes as long as that says.
pub(crate) fn going(label: &str, mut begun: RunResult, has_end: bool, series: &Series, air: &[(f64, f64)]) -> Value {
    let at_s = series.flows.t_s.last().copied().unwrap_or(0.0);
    if !has_end {
        begun.duration_s = at_s.max(1.0);
    }
    let of = if has_end { format!(" of {}", figures::number(begun.duration_s)) } else { String::new() };
    let figures: Vec<Figure> = figures::before_the_end(&begun, series, air);
    json!({ "label": label, "at": format!("{at_s:.0}{of} s"), "figures": figures })
}

/// What each case differs by from the first; `None` if there is one case only.
fn differences(comparison: &Comparison, looks: &[Look]) -> Option<Table> {
    let (heads, mut rows) = cells::difference_table(comparison)?;
    for (row, look) in rows.iter_mut().zip(&looks[1..]) {
        row[1].colour = Some(look.colour.hex());
    }
    Some(Table::new(heads, rows))
}

fn one_case(case: &CaseResult, look: &Look, runs: &[CaseRun], folders: &[String]) -> Option<Value> {
    let (at, (_, result, series)) = runs.iter().enumerate().find(|(_, (label, ..))| *label == case.label)?;
    let (seed, seeds) = (result.seed, case.runs.len());
    let jain = result.jain_index.map_or(String::new(), |index| format!(", Jain's index {index:.3}"));
    let of_seed = if seeds > 1 { format!("seed {seed}: ") } else { String::new() };
    // The comparison above already has the other figures.
    let statistics = cells::statistics(case).map(|(heads, rows)| Table::new(heads, rows));
    let mut figures = figures::of_run(result, series);
    figures.retain(|figure| ["stations", "cwnd", "states"].contains(&figure.name.as_ref()));
    Some(json!({
        "colour": look.colour.hex(),
        "label": case.label,
        "headline": format!("{of_seed}{:.2} Mb/s{jain}", result.aggregate_goodput_mbps),
        "settings": settings(case).join(", "),
        "of_seeds": if seeds > 1 { format!(" Seed {seed}, of {seeds}.") } else { String::new() },
        "folder": folders.get(at).map_or("", String::as_str),
        "statistics": statistics,
        "tables": tables(result),
        "figures": figures,
    }))
}

fn tables(result: &RunResult) -> Vec<Table> {
    cells::tables(result).into_iter().map(|(heads, rows)| Table::new(heads, rows)).collect()
}

fn settings(case: &CaseResult) -> Vec<String> {
    case.settings.iter().map(|set| format!("{}={}", set.key, set.value)).collect()
}

/// What the runs used, with all kernels and their releases, and how many kernels these are.
fn used_by(comparison: &Comparison) -> (UsedKernel, usize) {
    let all = || comparison.cases.iter().flat_map(|case| &case.runs).map(|run| &run.used);
    let distinct = |of: fn(&UsedKernel) -> Option<&String>| {
        let mut names: Vec<&str> = Vec::new();
        for name in all().filter_map(of) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        (names.len(), (!names.is_empty()).then(|| names.join(",")))
    };
    let (kernels, kernel) = distinct(|used| used.kernel.as_ref());
    let (_, kernel_release) = distinct(|used| used.kernel_release.as_ref());
    let (_, kernel_digest) = distinct(|used| used.kernel_digest.as_ref());
    let (_, emulator) = distinct(|used| used.emulator.as_ref());
    let used = all().next().cloned().unwrap_or_default();
    (UsedKernel { kernel, kernel_release, kernel_digest, emulator, ..used }, kernels.max(1))
}

/// The command that makes it again; `None` if its seeds are others than a command counts.
fn compare_command(comparison: &Comparison, used: &UsedKernel, kernels: usize) -> Option<String> {
    let seeds = seeds_options(comparison)?;
    let mut command = format!("lasthop compare scenario.toml{}", hosts_options(comparison.hosts_kind, used));
    for varied in &comparison.varied {
        let _ = write!(command, " --vary {}", quoted(&format!("{}={}", varied.key, varied.values.join(","))));
    }
    if comparison.varied.is_empty() {
        // A case of several kernels comes with each of them.
        for case in comparison.cases.iter().step_by(kernels).filter(|case| !case.settings.is_empty()) {
            let label = if kernels > 1 { case.label.rsplit_once(", ").map(|(label, _)| label) } else { None };
            let case = format!("{}: {}", label.unwrap_or(&case.label), settings(case).join(" "));
            let _ = write!(command, " \\\n  --case {}", quoted(&case));
        }
    }
    Some(format!("{command}{seeds} --out DIR"))
}

/// The options that give a command the same seeds, which it counts on from the scenario's.
fn seeds_options(comparison: &Comparison) -> Option<String> {
    let seeds = &comparison.seeds;
    if !seeds.windows(2).all(|two| two[0].checked_add(1) == Some(two[1])) {
        return None;
    }
    let of_scenario = comparison.scenario["seed"].as_u64();
    let first = seeds.first().filter(|first| of_scenario != Some(**first));
    let first = first.map_or(String::new(), |first| format!(" --set seed={first}"));
    Some(if seeds.len() > 1 { format!("{first} --seeds {}", seeds.len()) } else { first })
}

/// As one word for a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The options that give a command the same hosts.
pub(crate) fn hosts_options(kind: HostsKind, used: &UsedKernel) -> String {
    format!("{}{}", hosts_option(kind), machine_options(used))
}

/// The option that gives a command hosts of this kind.
pub(crate) fn hosts_option(kind: HostsKind) -> &'static str {
    match kind {
        HostsKind::Kernel => " --hosts kernel",
        HostsKind::Simulated => " --hosts simulated",
    }
}

/// The options that give a command's kernel hosts the same kernel and last hop.
pub(crate) fn machine_options(used: &UsedKernel) -> String {
    let kernel = used.kernel.as_ref().map_or(String::new(), |name| format!(" --clock virtual --kernel {name}"));
    let wifi = used.wifi.map_or("", |Wifi::Mac80211| " --wifi mac80211");
    let queue = used.queue.map_or("", |Queue::Linux| " --queue linux");
    format!("{kernel}{wifi}{queue}")
}

/// A result's scenario, as a file that can run again.
pub(crate) fn scenario(scenario: &Value) -> String {
    Scenario::from_json(scenario)
        .map_or_else(|_| serde_json::to_string_pretty(scenario).unwrap_or_default(), |scenario| scenario.to_toml())
}
