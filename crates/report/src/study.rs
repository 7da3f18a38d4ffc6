//! A study in tables, on the page and in `points.csv`.

use crate::cells::{self, Cell};
use crate::distributions;
use crate::figures::{self, Figure};
use crate::html;
use crate::tables::table;
use lasthop_scenario::{HostsKind, Interval};
use lasthop_study::{
    CellResult, ClaimResult, ConditionResult, FigureResult, Found, LineResult, PanelResult, PointResult, StudyResult,
    Verdict,
};
use serde_json::{Value, json};
use std::fmt::Write as _;

const NOTHING: &str = "–";
/// The maximum number of lines side by side on a terminal.
const MOST_COLUMNS: usize = 6;

const CLAIM_HEADS: [&str; 6] = ["claim", "where", "paper", "ours", "holds if", "verdict"];

/// The study as text for the terminal.
pub(crate) fn terminal(study: &StudyResult) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}: {}", study.name, study.title);
    let _ = writeln!(text, "{}", study.source);
    let _ = writeln!(text, "{}", runs(study));
    for figure in &study.figures {
        for panel in &figure.panels {
            let (heads, rows) = points(figure, panel, study);
            let _ = writeln!(text, "\n{}", panel_title(figure, panel));
            let _ = writeln!(text, "{}", table(&heads, &rows));
        }
    }
    for said in searches(study) {
        let _ = writeln!(text, "\n{said}");
    }
    if !study.claims.is_empty() {
        text.push_str("\nClaims\n");
    }
    let (single, matrices) = arranged(&study.claims);
    if !single.is_empty() {
        let rows: Vec<Vec<Cell>> = single.iter().map(|claim| claim_row(claim)).collect();
        let _ = writeln!(text, "{}\n", table(&CLAIM_HEADS, &rows));
    }
    for matrix in &matrices {
        let _ = writeln!(text, "{}\n", table(&matrix.heads(), &matrix.rows()));
    }
    if matrices.iter().any(Matrix::is_unsure) {
        let _ = writeln!(text, "{QUESTION_MARK}\n");
    }
    for claim in firsts(&study.claims) {
        let _ = writeln!(text, "{}: {} ({})", claim.id, claim.text, claim.source);
        if let Some(reading) = &claim.reading {
            let _ = writeln!(text, "  read as: {reading}");
        }
    }
    for claim in study.claims.iter().filter(|claim| !claim.cells.is_empty()) {
        // The worst of many scenarios stand below.
        let is_of_scenarios = distributions::is_of_scenarios(claim, study);
        let others = if is_of_scenarios { "" } else { "; the others" };
        let _ = writeln!(text, "\n{}: {}", claim_name(claim), cells_met(claim, others));
        if is_of_scenarios {
            continue;
        }
        let (heads, rows) = failing(claim);
        if !rows.is_empty() {
            let _ = writeln!(text, "{}", table(&heads, &rows));
        }
    }
    for (title, heads, rows) in distributions::tables(study) {
        let _ = writeln!(text, "\n{title}\n{}", table(&heads, &rows));
    }
    for claim in &study.claims {
        if let Some(problem) = &claim.problem {
            let _ = writeln!(text, "\ncannot be judged: {}: {problem}", claim_name(claim));
        }
    }
    for reason in &study.invalid_reasons {
        let _ = writeln!(text, "not valid: {reason}");
    }
    let _ = write!(text, "\n{}", outcome(study));
    text
}

/// The study as a self-contained page.
pub(crate) fn page(study: &StudyResult, figures: &[Figure]) -> String {
    // Single claims appear in full below.
    let (_, matrices) = arranged(&study.claims);
    let matrices = matrices.iter().filter(|matrix| matrix.claims.len() > 1).map(Matrix::in_page);
    let hosts = study.hosts_to_say().map_or("", html::hosts_option);
    let machine = match study.hosts_kind {
        HostsKind::Kernel => html::machine_options(&study.used),
        HostsKind::Simulated => String::new(),
    };
    html::render(
        "study.html",
        &json!({
            "title": format!("{}: {}", study.name, study.title),
            "source": study.source,
            "runs": runs(study),
            "made_by": cells::made_by(&study.build, &study.used),
            "note": study.note.iter().flat_map(|note| note.split("\n\n")).collect::<Vec<_>>(),
            "invalid_reasons": study.invalid_reasons,
            "passed": study.passed,
            "outcome": outcome(study),
            "distributions": distributions::tables(study).map(distribution_in_page).collect::<Vec<_>>(),
            "figures": figures,
            "searches": searches(study),
            "matrices": matrices.collect::<Vec<_>>(),
            "question_mark": QUESTION_MARK,
            "claims": firsts(&study.claims).into_iter().map(|claim| claim_in_page(claim, study)).collect::<Vec<_>>(),
            "points": study.figures.iter().map(|figure| points_in_page(figure, study)).collect::<Vec<_>>(),
            "command": format!("{}{hosts}{machine} --seeds {} --out DIR", command(study), study.seeds.len()),
            "study": study.study,
            "scenario": html::scenario(&study.scenario),
        }),
    )
}

/// The command that has this study with these changes; what follows may be its other options.
pub(crate) fn command(study: &StudyResult) -> String {
    let is_word = study.name.chars().all(|char| char.is_ascii_alphanumeric() || "/_.-".contains(char));
    let name = if is_word { study.name.clone() } else { html::quoted(&study.name) };
    let file = study.file.as_ref().map_or(name, |file| html::quoted(file));
    study
        .set
        .iter()
        .fold(format!("lasthop study {file}"), |command, set| format!("{command} --set {}", html::quoted(set)))
}

fn points_in_page(figure: &FigureResult, study: &StudyResult) -> Value {
    let panel = |panel: &PanelResult| {
        let (heads, rows) = points(figure, panel, study);
        json!({ "label": panel.label, "heads": heads, "rows": rows })
    };
    json!({
        "title": figure.title,
        "panels": figure.panels.iter().map(panel).collect::<Vec<_>>(),
        "sources": sources(figure),
    })
}

/// A claim with all its places.
fn claim_in_page(claim: &ClaimResult, study: &StudyResult) -> Value {
    let places = || study.claims.iter().filter(|other| other.id == claim.id);
    let row = |place: &ClaimResult| {
        let mut row = place_row(place);
        let verdict = row.last_mut().expect("the verdict");
        verdict.verdict = Some(verdict_class(place.verdict));
        verdict.small.clone_from(&place.problem);
        row
    };
    let failing = |place: &ClaimResult| {
        let (heads, rows) = failing(place);
        let at = if place.at.is_empty() { String::new() } else { format!("{}: ", place.place()) };
        json!({ "met": format!("{at}{}", cells_met(place, "; the others")), "heads": heads, "rows": rows })
    };
    json!({
        "text": claim.text,
        "source": claim.source,
        "id": claim.id,
        "reading": claim.reading,
        "value": claim.cells.is_empty().then_some(&claim.value),
        "heads": &CLAIM_HEADS[1..],
        "rows": places().map(row).collect::<Vec<_>>(),
        "places": places().filter(|place| !place.cells.is_empty()).map(failing).collect::<Vec<_>>(),
    })
}

/// Every measure of every point, one line each.
pub(crate) fn csv(study: &StudyResult) -> String {
    let mut text = String::new();
    let axes = study.axes.iter().map(|axis| axis.axis.as_str());
    let heads = axes.chain(["measure", "seeds", "mean", "deviation", "ci95_low", "ci95_high", "min", "max"]);
    let _ = writeln!(text, "{}", heads.map(field).collect::<Vec<_>>().join(","));
    for point in &study.points {
        for measure in &point.measures {
            let values: Vec<f64> = measure.values.iter().copied().flatten().collect();
            let number = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
            let mut fields: Vec<String> = point.at.iter().map(|at| field(&at.value.to_string())).collect();
            fields.extend([
                field(&measure.measure),
                values.len().to_string(),
                number(measure.mean),
                number(measure.deviation),
                number(measure.ci95.map(|interval| interval.low)),
                number(measure.ci95.map(|interval| interval.high)),
                number(values.iter().copied().reduce(f64::min)),
                number(values.iter().copied().reduce(f64::max)),
            ]);
            let _ = writeln!(text, "{}", fields.join(","));
        }
    }
    text
}

/// Quoted if necessary (RFC 4180).
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

fn runs(study: &StudyResult) -> String {
    let (points, seeds) = (study.points.len(), study.seeds.len());
    let runs = points * seeds;
    let of = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let confidence = if seeds > 1 { "; means ± 95 % confidence" } else { "" };
    let repeated = match study.repeated_runs {
        0 => String::new(),
        1 => "; one was done again, for the machine had been too busy".to_owned(),
        many => format!("; {many} times one was done again, for the machine had been too busy"),
    };
    format!("{} × {} = {}{confidence}{repeated}", of(points, "point"), of(seeds, "seed"), of(runs, "run"))
}

/// The verdicts on the claims, in a sentence.
fn outcome(study: &StudyResult) -> String {
    let count = |wanted: fn(&ClaimResult) -> bool| study.claims.iter().filter(|claim| wanted(claim)).count();
    let required = count(|claim| claim.required);
    let kept = count(|claim| claim.required && claim.verdict == Verdict::Holds);
    let others = count(|claim| !claim.required);
    let hold = count(|claim| !claim.required && claim.verdict == Verdict::Holds);
    let unknown = count(|claim| claim.verdict == Verdict::CannotBeJudged);
    let mut said = Vec::new();
    if required > 0 {
        said.push(format!("{kept} of {required} required claims hold"));
    }
    if others > 0 {
        let which = if required > 0 { "other claims" } else { "claims" };
        said.push(format!("{hold} of {others} {which} hold"));
    }
    if unknown > 0 {
        said.push(format!("{unknown} cannot be judged"));
    }
    if said.is_empty() {
        said.push("Nothing is claimed".to_owned());
    }
    format!("{}.", said.join("; "))
}

fn panel_title(figure: &FigureResult, panel: &PanelResult) -> String {
    let place = if panel.label.is_empty() { String::new() } else { format!(", {}", panel.label) };
    format!("{}{place}: {}", figure.title, figure.y_label)
}

/// The points of a panel: a column for each line, or a row for each if there are many lines.
fn points(figure: &FigureResult, panel: &PanelResult, study: &StudyResult) -> (Vec<String>, Vec<Vec<Cell>>) {
    let lines: Vec<&LineResult> = panel.lines.iter().chain(&panel.references).collect();
    let levels: Vec<String> =
        panel.lines.first().map_or_else(Vec::new, |line| line.marks.iter().map(|mark| mark.x.to_string()).collect());
    let only = if study.claims.is_empty() { "mean" } else { "ours" };
    let name = |line: &LineResult| if line.label.is_empty() { only.to_owned() } else { line.label.clone() };
    let cell = |line: &LineResult, level: &String| {
        let mark = line.marks.iter().find(|mark| mark.x.to_string() == *level);
        let text = match mark.and_then(|mark| mark.y.map(|y| (y, mark.ci95))) {
            Some((y, interval)) => with_interval(y, interval),
            None => NOTHING.to_owned(),
        };
        cells::number(text)
    };
    if lines.len() <= MOST_COLUMNS || levels.len() > 2 * MOST_COLUMNS {
        let heads = std::iter::once(figure.x_label.clone()).chain(lines.iter().map(|line| name(line))).collect();
        let row = |level: &String| {
            std::iter::once(cells::number(level.clone())).chain(lines.iter().map(|line| cell(line, level))).collect()
        };
        (heads, levels.iter().map(row).collect())
    } else {
        let heads = std::iter::once(figure.x_label.clone()).chain(levels.iter().cloned()).collect();
        let row = |line: &&LineResult| {
            std::iter::once(cells::word(&name(line))).chain(levels.iter().map(|level| cell(line, level))).collect()
        };
        (heads, lines.iter().map(row).collect())
    }
}

/// Each reference of a figure once, with its source.
fn sources(figure: &FigureResult) -> Vec<(String, String)> {
    let mut sources: Vec<(String, String)> = Vec::new();
    for line in figure.panels.iter().flat_map(|panel| &panel.references) {
        let source = (line.label.clone(), line.source.clone().unwrap_or_default());
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    sources
}

/// The first place of each claim.
fn firsts(claims: &[ClaimResult]) -> Vec<&ClaimResult> {
    let first = |(index, claim): (usize, &ClaimResult)| claims[..index].iter().all(|other| other.id != claim.id);
    claims.iter().enumerate().filter(|(index, claim)| first((*index, claim))).map(|(_, claim)| claim).collect()
}

/// Claims judged at the same places, with one number and one verdict for each.
struct Matrix<'a> {
    /// By claim, then by place.
    claims: Vec<Vec<&'a ClaimResult>>,
}

/// A claim with at least this number of places goes into a matrix, with other claims judged there.
const MANY_PLACES: usize = 4;

/// The claims with few places individually, the others as matrices.
fn arranged(claims: &[ClaimResult]) -> (Vec<&ClaimResult>, Vec<Matrix<'_>>) {
    let mut single = Vec::new();
    let mut matrices: Vec<Matrix<'_>> = Vec::new();
    for first in firsts(claims) {
        let places: Vec<&ClaimResult> = claims.iter().filter(|claim| claim.id == first.id).collect();
        if places.len() < MANY_PLACES {
            single.extend(places);
            continue;
        }
        let same = |matrix: &&mut Matrix<'_>| {
            let others = &matrix.claims[0];
            others.len() == places.len() && others.iter().zip(&places).all(|(other, claim)| other.at == claim.at)
        };
        match matrices.iter_mut().find(same) {
            Some(matrix) => matrix.claims.push(places),
            None => matrices.push(Matrix { claims: vec![places] }),
        }
    }
    (single, matrices)
}

const QUESTION_MARK: &str = "A question mark: the confidence interval reaches to the other side.";

impl Matrix<'_> {
    fn is_unsure(&self) -> bool {
        self.claims.iter().flatten().any(|claim| brief(claim).ends_with('?'))
    }

    /// The claims, each with its criterion.
    fn heads(&self) -> Vec<String> {
        let head = |places: &Vec<&ClaimResult>| {
            let claim = places[0];
            let required = if claim.required { "\nrequired" } else { "" };
            let paper = claim.paper.map_or(String::new(), |paper| format!("\npaper {}", figure(paper)));
            format!("{}\n{}{paper}{required}", claim.id, holds_if(claim))
        };
        std::iter::once("where".to_owned()).chain(self.claims.iter().map(head)).collect()
    }

    fn rows(&self) -> Vec<Vec<Cell>> {
        let row = |index: usize| {
            let place = cells::word(&self.claims[0][index].place());
            let cell = |claim: &ClaimResult| {
                let verdict = Some(verdict_class(claim.verdict));
                Cell { verdict, ..cells::number(brief(claim)) }
            };
            std::iter::once(place).chain(self.claims.iter().map(|places| cell(places[index]))).collect()
        };
        (0..self.claims[0].len()).map(row).collect()
    }

    fn in_page(&self) -> Value {
        json!({ "heads": self.heads(), "rows": self.rows(), "is_unsure": self.is_unsure() })
    }
}

/// Number and verdict in a few letters.
fn brief(claim: &ClaimResult) -> String {
    let unsure = if claim.ci95.is_some() && !claim.clear { "?" } else { "" };
    let verdict = match claim.verdict {
        Verdict::Holds => "yes",
        Verdict::DoesNotHold => "no",
        Verdict::CannotBeJudged => "none",
    };
    match claim.ours {
        Some(ours) => format!("{} {verdict}{unsure}", figure(ours)),
        None => verdict.to_owned(),
    }
}

const fn verdict_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::DoesNotHold => "does-not-hold",
        Verdict::CannotBeJudged => "cannot-be-judged",
    }
}

fn claim_name(claim: &ClaimResult) -> String {
    let place = claim.place();
    if place.is_empty() { claim.id.clone() } else { format!("{} ({place})", claim.id) }
}

fn claim_row(claim: &ClaimResult) -> Vec<Cell> {
    let mut row = vec![cells::word(&claim.id)];
    row.extend(place_row(claim));
    row
}

/// A claim at one of its places.
fn place_row(claim: &ClaimResult) -> Vec<Cell> {
    let place = claim.place();
    vec![
        cells::word(if place.is_empty() { NOTHING } else { &place }),
        cells::number(claim.paper.map_or(NOTHING.to_owned(), figure)),
        cells::number(claim.ours.map_or(NOTHING.to_owned(), |ours| with_interval(ours, claim.ci95))),
        cells::word(&holds_if(claim)),
        cells::word(&verdict(claim)),
    ]
}

fn holds_if(claim: &ClaimResult) -> String {
    let criterion = &claim.criterion;
    let mut said: Vec<String> = limits(criterion.at_least, criterion.at_most).into_iter().collect();
    if let Some(within) = criterion.within {
        said.push(format!("within {} %", figures::number(within * 100.0)));
    }
    said.join(", ")
}

fn limits(at_least: Option<f64>, at_most: Option<f64>) -> Option<String> {
    match (at_least, at_most) {
        (Some(low), Some(high)) => Some(format!("{} to {}", figure(low), figure(high))),
        (Some(low), None) => Some(format!("≥ {}", figure(low))),
        (None, Some(high)) => Some(format!("≤ {}", figure(high))),
        (None, None) => None,
    }
}

fn verdict(claim: &ClaimResult) -> String {
    let required = if claim.required { " (required)" } else { "" };
    // The interval crosses a bound: other seeds could have given another verdict.
    let unsure = if claim.ci95.is_some() && !claim.clear { ", not clearly" } else { "" };
    match claim.verdict {
        Verdict::Holds => format!("holds{unsure}{required}"),
        Verdict::DoesNotHold => format!("does NOT hold{unsure}{required}"),
        Verdict::CannotBeJudged => format!("cannot be judged{required}"),
    }
}

fn distribution_in_page((title, heads, rows): distributions::Titled) -> Value {
    json!({ "title": title, "heads": heads, "rows": rows })
}

/// The number of cells that meet every condition, in a sentence; `others` announces those that do not.
fn cells_met(claim: &ClaimResult, others: &str) -> String {
    let met = claim.cells.iter().filter(|cell| cell.met).count();
    let all = claim.cells.len();
    let left_out = match claim.left_out {
        0 => String::new(),
        left_out => format!(" ({left_out} others are left out)"),
    };
    let others = if met < all { others } else { "" };
    format!("{met} of {all} cells{left_out} meet every condition{others}")
}

/// The cells that fail a condition: a row for each, with all its numbers.
fn failing(claim: &ClaimResult) -> (Vec<String>, Vec<Vec<Cell>>) {
    let head = |condition: &ConditionResult| {
        let criterion = &condition.criterion;
        format!("{}\n{}", condition.label, limits(criterion.at_least, criterion.at_most).unwrap_or_default())
    };
    let heads = std::iter::once("where".to_owned()).chain(claim.conditions.iter().map(head)).collect();
    let number = |(condition, number): (&ConditionResult, &Option<f64>)| {
        let (low, high) = condition.criterion.range(None);
        cells::number(match number {
            Some(number) if (low..=high).contains(number) => figure(*number),
            Some(number) => format!("{} no", figure(*number)),
            None => "none".to_owned(),
        })
    };
    let row = |cell: &CellResult| {
        let numbers = claim.conditions.iter().zip(&cell.numbers).map(number);
        std::iter::once(cells::word(&cell.place())).chain(numbers).collect()
    };
    (heads, claim.cells.iter().filter(|cell| !cell.met).map(row).collect())
}

/// The outcomes of the searches: a sentence for each case.
fn searches(study: &StudyResult) -> Vec<String> {
    let case_of = |point: &PointResult| point.at.first().map_or(String::new(), |at| at.value.to_string());
    let mut cases: Vec<(String, Vec<(&PointResult, &Found)>)> = Vec::new();
    for (point, found) in study.points.iter().filter_map(|point| Some((point, point.search.as_ref()?))) {
        let case = case_of(point);
        match cases.iter_mut().find(|(other, _)| *other == case) {
            Some((_, all)) => all.push((point, found)),
            None => cases.push((case, vec![(point, found)])),
        }
    }
    let said = |(case, all): (String, Vec<(&PointResult, &Found)>)| {
        let values = || all.iter().map(|(_, found)| found.value);
        let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        let key = &all[0].1.key;
        let range = if least < most { format!("{least} to {most}") } else { least.to_string() };
        let unmet: Vec<String> = all.iter().filter(|(_, found)| !found.met).map(|(point, _)| point.place()).collect();
        let conditions = match unmet.len() {
            0 => String::new(),
            count => format!(
                "; at {count} of {} points no value meets the conditions, and it is the best without them: {}",
                all.len(),
                unmet.join("; ")
            ),
        };
        format!("Found by search: {case}: {key} = {range}{conditions}.")
    };
    cases.into_iter().map(said).collect()
}

/// A number and its interval, with the same decimals: `19.25 ± 0.25`, or both ends where they are not equally far.
fn with_interval(number: f64, interval: Option<Interval>) -> String {
    let Some(Interval { low, high }) = interval else { return figure(number) };
    let text = figure(number);
    let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let show = |of: f64| if text.contains('e') { format!("{of:.1e}") } else { format!("{of:.digits$}") };
    let (below, above) = (show(number - low), show(high - number));
    if below == above { format!("{text} ± {above}") } else { format!("{text} ({} to {})", show(low), show(high)) }
}

/// A number with about four significant digits, or all digits of a larger whole part.
pub(crate) fn figure(number: f64) -> String {
    let digits = match number.abs() {
        0.0 => return "0".to_owned(),
        magnitude if magnitude >= 1_000.0 => 0,
        magnitude if magnitude >= 100.0 => 1,
        magnitude if magnitude >= 10.0 => 2,
        magnitude if magnitude >= 0.01 => 3,
        magnitude if magnitude >= 0.001 => 5,
        _ => return format!("{number:.2e}"),
    };
    format!("{number:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_say_something() {
        for (number, text) in
            [(0.0, "0"), (19.256, "19.26"), (0.7081, "0.708"), (1_234.5, "1234"), (123.45, "123.5"), (2e-4, "2.00e-4")]
        {
            assert_eq!(figure(number), text);
        }
        let interval = Some(Interval { low: 19.0, high: 19.5 });
        assert_eq!(with_interval(19.25, interval), "19.25 ± 0.25");
        assert_eq!(with_interval(1e-4, Some(Interval { low: 0.9e-4, high: 1.1e-4 })), "1.00e-4 ± 1.0e-5");
        assert_eq!(with_interval(2.0, None), "2.000");
        assert_eq!(with_interval(0.95, Some(Interval { low: 0.81, high: 0.99 })), "0.950 (0.810 to 0.990)");
    }

    #[test]
    fn a_field_with_a_comma_or_a_quote_is_quoted() {
        assert_eq!(field("ARF"), "ARF");
        assert_eq!(
            field("max(flows(direction='up', host=1).goodput_mbps)"),
            "\"max(flows(direction='up', host=1).goodput_mbps)\""
        );
        assert_eq!(field("a \"b\""), "\"a \"\"b\"\"\"");
    }
}
