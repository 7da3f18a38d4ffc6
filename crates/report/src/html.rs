//! One page that holds everything: no script, no network, no other file.

use crate::CaseRun;
use crate::cells::{self, Cell};
use crate::figures::{self, Figure};
use crate::style::{self, Look};
use lasthop_scenario::{CaseResult, Comparison, RunResult, Scenario};
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");

/// The page of one run.
pub(crate) fn run(result: &RunResult, figures: &[Figure]) -> String {
    let mut page = begin(result.name());
    let made_by = cells::made_by(&result.build, result.hosts_kind, result.kernel_release.as_deref());
    let _ = writeln!(
        page,
        "<p class=\"by\">{} s, of which {} s of warm-up are left out; seed {}. {}.</p>",
        figures::number(result.duration_s),
        figures::number(result.warmup_s),
        result.seed,
        escape(&made_by)
    );
    invalid(&mut page, &result.invalid_reasons);
    tiles(&mut page, result);
    for (heads, rows) in cells::tables(result) {
        table(&mut page, heads, &rows, &[]);
    }
    for figure in figures {
        draw(&mut page, figure, 2);
    }
    let seed = result.seed;
    let hosts = hosts_word(result.hosts_kind);
    how(&mut page, &result.scenario, &format!("lasthop run scenario.toml --hosts {hosts} --seed {seed} --out DIR"));
    end(page)
}

/// The page of a comparison; figures that set the cases side by side first, then each case for itself.
pub(crate) fn comparison(comparison: &Comparison, runs: &[CaseRun], figures: &[Figure], folders: &[String]) -> String {
    let looks = style::cases(comparison);
    let mut page = begin(comparison.name());
    let kernel = runs.first().and_then(|(_, run, _)| run.kernel_release.as_deref());
    let made_by = cells::made_by(&comparison.build, comparison.hosts_kind, kernel);
    let seeds: Vec<String> = comparison.seeds.iter().map(u64::to_string).collect();
    let plural = if seeds.len() == 1 { "seed" } else { "means over the seeds" };
    let _ = writeln!(
        page,
        "<p class=\"by\">{} cases; {plural} {}. {}.</p>",
        comparison.cases.len(),
        seeds.join(", "),
        escape(&made_by)
    );
    let reasons: Vec<String> =
        cells::invalid_cases(comparison).into_iter().map(|(case, reason)| format!("{case}: {reason}")).collect();
    invalid(&mut page, &reasons);
    for (heads, rows) in cells::case_tables(comparison) {
        table(&mut page, heads, &rows, &looks);
    }
    if let Some(left_out) = cells::left_out(comparison) {
        let _ = writeln!(page, "<p class=\"caption\">{}.</p>", escape(&left_out));
    }
    for figure in figures {
        draw(&mut page, figure, 2);
    }
    page.push_str("<h2>Each case</h2>\n<div class=\"cases\">\n");
    for (case, look) in comparison.cases.iter().zip(&looks) {
        one_case(&mut page, case, look, runs, folders);
    }
    page.push_str("</div>\n");
    how(&mut page, &comparison.scenario, &compare_command(comparison));
    end(page)
}

fn one_case(page: &mut String, case: &CaseResult, look: &Look, runs: &[CaseRun], folders: &[String]) {
    let Some((at, (_, result, series))) = runs.iter().enumerate().find(|(_, (label, ..))| *label == case.label) else {
        return;
    };
    let jain = result.jain_index.map_or(String::new(), |index| format!(", Jain's index {index:.3}"));
    let seed = if case.runs.len() > 1 { format!("seed {}: ", result.seed) } else { String::new() };
    let _ = writeln!(
        page,
        "<details><summary>{}{}<span class=\"figures\">{seed}{:.2} Mb/s{jain}</span></summary>",
        swatch(look),
        escape(&case.label),
        result.aggregate_goodput_mbps
    );
    let settings: Vec<String> = case.settings.iter().map(|set| format!("{}={}", set.key, set.value)).collect();
    let folder = folders.get(at).map_or("", String::as_str);
    let of =
        if case.runs.len() > 1 { format!(" Seed {}, of {}.", result.seed, case.runs.len()) } else { String::new() };
    let _ = writeln!(
        page,
        "<p class=\"by\">{}.{of} All its files are in <a href=\"{}/report.html\">{}</a>.</p>",
        escape(&settings.join(", ")),
        escape(folder),
        escape(folder)
    );
    for (heads, rows) in cells::tables(result) {
        table(page, heads, &rows, &[]);
    }
    // The others stand side by side above.
    for figure in
        figures::of_run(result, series).iter().filter(|figure| ["cwnd", "states"].contains(&figure.name.as_ref()))
    {
        draw(page, figure, 3);
    }
    page.push_str("</details>\n");
}

fn compare_command(comparison: &Comparison) -> String {
    let mut command = format!("lasthop compare scenario.toml --hosts {}", hosts_word(comparison.hosts_kind));
    for varied in &comparison.varied {
        let _ = write!(command, " --vary '{}={}'", varied.key, varied.values.join(","));
    }
    if comparison.varied.is_empty() {
        for case in &comparison.cases {
            let settings: Vec<String> = case.settings.iter().map(|set| format!("{}={}", set.key, set.value)).collect();
            let _ = write!(command, " \\\n  --case '{}: {}'", case.label, settings.join(" "));
        }
    }
    if comparison.seeds.len() > 1 {
        let _ = write!(command, " --seeds {}", comparison.seeds.len());
    }
    format!("{command} --out DIR")
}

const fn hosts_word(kind: lasthop_scenario::HostsKind) -> &'static str {
    match kind {
        lasthop_scenario::HostsKind::Simulated => "simulated",
        lasthop_scenario::HostsKind::Kernel => "kernel",
    }
}

pub(crate) fn begin(title: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>{title} · lasthop</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<h1>{title}</h1>\n"
    )
}

pub(crate) fn end(mut page: String) -> String {
    page.push_str("</body>\n</html>\n");
    page
}

pub(crate) fn invalid(page: &mut String, reasons: &[String]) {
    if reasons.is_empty() {
        return;
    }
    page.push_str("<div class=\"bad\" role=\"alert\"><strong>Not valid: do not use these figures.</strong>\n<ul>\n");
    for reason in reasons {
        let _ = writeln!(page, "<li>{}</li>", escape(reason));
    }
    page.push_str("</ul></div>\n");
}

fn tiles(page: &mut String, result: &RunResult) {
    page.push_str("<dl class=\"tiles\">\n");
    for (name, value) in cells::headline(result) {
        let _ = writeln!(page, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    }
    page.push_str("</dl>\n");
}

/// A table; where there are looks, each row's second cell is a case and gets its colour.
pub(crate) fn table(page: &mut String, heads: &[&str], rows: &[Vec<Cell>], looks: &[Look]) {
    page.push_str("<div class=\"wide\"><table>\n<thead><tr>");
    let first = rows.first();
    for (column, head) in heads.iter().enumerate() {
        let number = first.and_then(|row| row.get(column)).is_some_and(|cell| cell.is_number);
        // What is parted with a hyphen for the terminal is whole here.
        let _ = write!(page, "<th{}>{}</th>", class(number, false), escape(&head.replace("-\n", "")));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for (index, row) in rows.iter().enumerate() {
        page.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let look = looks.get(index).filter(|_| column == 1);
            let swatch = look.map(swatch).unwrap_or_default();
            let range =
                cell.range.as_ref().map(|range| format!("<small>{}</small>", escape(range))).unwrap_or_default();
            let class = class(cell.is_number, look.is_some());
            let _ = write!(page, "<td{class}>{swatch}{}{range}</td>", escape(&cell.text));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

const fn class(number: bool, case: bool) -> &'static str {
    match (number, case) {
        (true, _) => " class=\"number\"",
        (_, true) => " class=\"case\"",
        _ => "",
    }
}

fn swatch(look: &Look) -> String {
    format!("<span class=\"swatch\" style=\"background:{}\"></span>", look.colour.hex())
}

pub(crate) fn draw(page: &mut String, figure: &Figure, level: u8) {
    let _ = writeln!(page, "<figure>\n<h{level}>{}</h{level}>", escape(&figure.title));
    let _ = writeln!(page, "<figcaption class=\"caption\">{}</figcaption>", escape(&figure.caption));
    let _ = writeln!(page, "<div class=\"wide\">{}</div>\n</figure>", figure.svg);
}

fn how(page: &mut String, scenario: &serde_json::Value, command: &str) {
    page.push_str("<h2>How to make it again</h2>\n");
    page.push_str("<p class=\"caption\">With the scenario below as scenario.toml:</p>\n");
    let _ = writeln!(page, "<pre>{}</pre>", escape(command));
    self::scenario(page, scenario);
}

/// The scenario that a result carries, folded up.
pub(crate) fn scenario(page: &mut String, scenario: &serde_json::Value) {
    let toml = Scenario::from_json(scenario)
        .map_or_else(|_| serde_json::to_string_pretty(scenario).unwrap_or_default(), |scenario| scenario.to_toml());
    let _ = writeln!(
        page,
        "<details><summary>The scenario, defaults filled in</summary>\n<pre>{}</pre></details>",
        escape(&toml)
    );
}

/// Text that can stand between tags and in attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}
