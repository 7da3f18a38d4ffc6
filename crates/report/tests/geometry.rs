//! Nothing in a figure is cut off or covers text, a mark stands at its value, and what is beyond an axis has an arrow at its edge:
//! read from the SVG, with the widths of the font that is embedded in PDF.

mod example;

use lasthop_measure::{Range, interval};
use lasthop_report::{FigureFormat, write_comparison, write_run, write_study};
use lasthop_scenario::{Comparison, Interval, RunResult, Series};
use lasthop_study::{FigureResult, Level, LineResult, MarkResult, PanelResult, Study, StudyResult};
use roxmltree::{Document, Node};
use std::path::Path;
use ttf_parser::Face;

const FONT: &[u8] = include_bytes!("../fonts/DejaVuSans.ttf");
const LONG: &str = "a label of a case that is far too long to stand in one line of any figure, as people write them who put the \
                    whole of what they varied into it: hosts.0.congestion_control=cubic-rfc9438,access.queue=mac80211";
/// Two units are a CSS pixel.
const PIXEL: f64 = 2.0;

type Rectangle = [f64; 4];

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    let text = node.attribute(name).unwrap_or_else(|| panic!("{node:?} has no {name}"));
    text.parse().unwrap_or_else(|_| panic!("{name}={text}"))
}

fn numbers(text: &str) -> Vec<f64> {
    text.split([' ', ',']).filter(|word| !word.is_empty()).map(|word| word.parse().expect("a number")).collect()
}

/// Left, top, right and bottom of what a shape covers.
fn extent(node: Node<'_, '_>) -> Option<Rectangle> {
    let of = |name| number(node, name);
    match node.tag_name().name() {
        "rect" if node.attribute("width") == Some("100%") => None,
        "rect" => Some([of("x"), of("y"), of("x") + of("width"), of("y") + of("height")]),
        "circle" => Some([of("cx") - of("r"), of("cy") - of("r"), of("cx") + of("r"), of("cy") + of("r")]),
        "line" => {
            let ([x1, x2], [y1, y2]) = (["x1", "x2"].map(of), ["y1", "y2"].map(of));
            Some([x1.min(x2), y1.min(y2), x1.max(x2), y1.max(y2)])
        }
        "polyline" | "polygon" => {
            let flat = numbers(node.attribute("points").expect("points"));
            let ends = |at: usize| {
                let all = || flat.iter().skip(at).step_by(2).copied();
                (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max))
            };
            let ((left, right), (top, bottom)) = (ends(0), ends(1));
            Some([left, top, right, bottom])
        }
        "text" => {
            let face = Face::parse(FONT, 0).expect("a font");
            let width = |letter| {
                let glyph = face.glyph_index(letter).and_then(|glyph| face.glyph_hor_advance(glyph));
                glyph.map_or(1.0, |width| f64::from(width) / f64::from(face.units_per_em()))
            };
            let (size, text) = (of("font-size"), node.text().unwrap_or_default().trim());
            let width = text.chars().map(width).sum::<f64>() * size;
            let left = of("x")
                - match node.attribute("text-anchor") {
                    Some("middle") => width / 2.0,
                    Some("end") => width,
                    _ => 0.0,
                };
            // Half of ex, a quarter of the size, is below y; capitals rise 0.73 above that and tails sink 0.24 below.
            Some([left, of("y") - 0.48 * size, left + width, of("y") + 0.49 * size])
        }
        _ => None,
    }
}

fn is_in(inner: Rectangle, outer: Rectangle, room: f64) -> bool {
    inner[0] >= outer[0] - room
        && inner[1] >= outer[1] - room
        && inner[2] <= outer[2] + room
        && inner[3] <= outer[3] + room
}

fn parent_of_class<'a>(node: Node<'a, 'a>, class: &str) -> Option<Node<'a, 'a>> {
    node.ancestors().find(|above| above.attribute("class") == Some(class))
}

/// The panel in which a node stands, from its group's `data-box`.
fn data_box(node: Node<'_, '_>) -> Rectangle {
    let [left, top, width, height] = numbers(node.attribute("data-box").expect("a box"))[..] else {
        panic!("four numbers")
    };
    [left, top, left + width, top + height]
}

/// What must hold of every figure.
fn check(name: &str, svg: &str) {
    assert!(!svg.contains("NaN") && !svg.contains("inf\"") && !svg.contains('…'), "{name}");
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{name}: {error}"));
    let view = numbers(document.root_element().attribute("viewBox").expect("a view"));
    let view = [view[0], view[1], view[0] + view[2], view[1] + view[3]];
    let mut texts: Vec<(Rectangle, String)> = Vec::new();
    for node in document.descendants() {
        let Some(extent) = extent(node) else { continue };
        assert!(
            is_in(extent, view, 0.0),
            "{name}: {extent:?} is cut off: {:?} {}",
            node,
            node.text().unwrap_or_default()
        );
        if let Some(data) = parent_of_class(node, "data") {
            assert!(is_in(extent, data_box(data), 8.0 * PIXEL), "{name}: {extent:?} is outside its panel");
        }
        if node.tag_name().name() == "text" {
            let text = node.text().unwrap_or_default().trim().to_owned();
            for (other, said) in &texts {
                let apart = extent[0] >= other[2] - 1.0
                    || other[0] >= extent[2] - 1.0
                    || extent[1] >= other[3] - 2.0
                    || other[1] >= extent[3] - 2.0;
                assert!(apart, "{name}: '{text}' covers '{said}'");
            }
            texts.push((extent, text));
        }
    }
    let said: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
    let said = said.join(" ");
    assert!(said.to_lowercase().contains("seed"), "{name}: no seeds in '{said}'");
    let bars = document.descendants().filter(|node| node.attribute("class") == Some("bar")).count();
    assert!(bars == 0 || said.contains("bars: 95 % confidence interval"), "{name}: what do the bars mean?");
    for bar in document.descendants().filter(|node| node.attribute("class") == Some("bar")) {
        // A line, and at each end a cap or an arrow.
        let ends = bar.children().filter(Node::is_element).skip(1).count();
        assert_eq!(ends, 2, "{name}");
    }
}

fn check_folder(folder: &Path, least: usize) {
    let mut files = 0;
    for entry in std::fs::read_dir(folder.join("figures")).expect("figures") {
        let path = entry.expect("a file").path();
        check(&path.display().to_string(), &std::fs::read_to_string(&path).expect("a figure"));
        files += 1;
    }
    assert!(files >= least, "{files}");
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn figure(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(format!("figures/{name}.svg"))).expect("a figure")
}

/// The pixel of a number on an axis, from the group `axis` that has its scale.
fn place(axis: Node<'_, '_>, which: &str, number: f64) -> f64 {
    let [left, top, right, bottom] = data_box(axis);
    let said: Vec<&str> = axis.attribute(which).expect("an axis").split(' ').collect();
    let [from, to] = [said[1], said[2]].map(|end| end.parse::<f64>().expect("a number"));
    let share = if said[0] == "log" { (number / from).ln() / (to / from).ln() } else { (number - from) / (to - from) };
    if which == "data-x" { left + share * (right - left) } else { bottom - share * (bottom - top) }
}

fn is_on(axis: Node<'_, '_>, which: &str, number: f64) -> bool {
    let said: Vec<f64> = axis.attribute(which).expect("an axis").split(' ').skip(1).flat_map(str::parse).collect();
    (said[0] - 1e-9 * said[0].abs()..=said[1] + 1e-9 * said[1].abs()).contains(&number)
}

fn axes<'a>(document: &'a Document<'a>) -> Vec<Node<'a, 'a>> {
    document.descendants().filter(|node| node.attribute("class") == Some("axis")).collect()
}

fn titled<'a>(document: &'a Document<'a>) -> Vec<Node<'a, 'a>> {
    let has_title = |node: &Node<'_, '_>| node.first_element_child().is_some_and(|first| first.has_tag_name("title"));
    document.root_element().descendants().filter(|node| node.has_tag_name("g") && has_title(node)).collect()
}

/// The middle of the last shape of a group that is neither a bar nor an arrow.
fn marker(group: Node<'_, '_>) -> Option<(f64, f64)> {
    let shape =
        group.children().filter(|node| node.is_element() && !node.has_tag_name("g")).filter_map(extent).next_back()?;
    Some(((shape[0] + shape[2]) / 2.0, (shape[1] + shape[3]) / 2.0))
}

fn has_arrow(group: Node<'_, '_>) -> bool {
    group.descendants().any(|node| node.attribute("class") == Some("beyond"))
}

#[track_caller]
fn assert_near(one: f64, other: f64, what: &str) {
    // Triangles are not symmetric around their point.
    assert!((one - other).abs() <= 2.0 * PIXEL, "{what}: {one} instead of {other}");
}

#[test]
fn figures_of_runs_are_whole() {
    for settings in [
        vec![],
        vec!["hosts.0.count=1"],
        vec!["hosts.0.count=50", "duration_s=14"],
        vec!["hosts.0.policy=formula", "hosts.0.count=5"],
        vec!["hosts.0.name=a-laptop-with-a-long-name", "duration_s=12000", "sample_ms=10000", "warmup_s=100"],
    ] {
        let folder = folder();
        let (result, series) = example::run(&example::scenario(&settings));
        write_run(folder.path(), &result, &series, &[FigureFormat::Svg]).expect("a report");
        check_folder(folder.path(), 8);
        write_run(folder.path(), &scaled(result.clone(), 1e6), &Series::default(), &[FigureFormat::Svg])
            .expect("a report");
        check_folder(folder.path(), 1);
        write_run(folder.path(), &scaled(result, 0.0), &Series::default(), &[FigureFormat::Svg]).expect("a report");
        check_folder(folder.path(), 1);
    }
}

fn scaled(mut run: RunResult, factor: f64) -> RunResult {
    run.aggregate_goodput_mbps *= factor;
    run.flows.iter_mut().for_each(|flow| flow.goodput_mbps *= factor);
    run
}

#[test]
fn the_figure_of_states_shades_the_warm_up() {
    let folder = folder();
    let (result, series) = example::run(&example::scenario(&[]));
    write_run(folder.path(), &result, &series, &[FigureFormat::Svg]).expect("a report");
    let svg = figure(folder.path(), "states");
    let document = Document::parse(&svg).expect("XML");
    let axis = axes(&document)[0];
    let shade = document
        .descendants()
        .filter(|node| node.attribute("fill") == Some("#EDF0F4") && number(*node, "width") > 40.0);
    let [_, _, right, _] = shade.filter_map(extent).next_back().expect("a shade");
    assert_near(right, place(axis, "data-x", result.warmup_s), "the end of the warm-up");
    assert!(svg.contains("warm-up, left out of the result"));
}

/// Sets the round trip (ms) and the goodput (Mb/s) of each run: by case and seed.
fn with(mut comparison: Comparison, of: impl Fn(usize, usize) -> (Option<f64>, f64)) -> Comparison {
    for (case, of_case) in comparison.cases.iter_mut().enumerate() {
        for (seed, run) in of_case.runs.iter_mut().enumerate() {
            let (rtt, goodput) = of(case, seed);
            run.aggregate_goodput_mbps = goodput;
            run.rtt_ms = rtt.map(|p95| lasthop_measure::distribution(&[p95]).expect("one number"));
        }
    }
    comparison
}

/// Of the seeds of each case, the round trips and goodputs.
fn of_runs(comparison: &Comparison) -> Vec<[Vec<f64>; 2]> {
    let of_case = |case: &lasthop_scenario::CaseResult| {
        let rtts = case.runs.iter().filter_map(|run| run.rtt_ms.map(|rtt| rtt.p95)).collect();
        [rtts, case.runs.iter().map(|run| run.aggregate_goodput_mbps).collect()]
    };
    comparison.cases.iter().map(of_case).collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// Every marker of the trade-off and every bar of the summary at its mean, and an arrow for each end beyond an axis.
fn check_values(folder: &Path, comparison: &Comparison) {
    let known: Vec<[Vec<f64>; 2]> = of_runs(comparison).into_iter().filter(|[rtts, _]| !rtts.is_empty()).collect();
    let svg = figure(folder, "tradeoff");
    let document = Document::parse(&svg).expect("XML");
    let axis = axes(&document)[0];
    let groups = titled(&document);
    assert_eq!(groups.len(), known.len());
    let mut beyond = 0;
    for (group, [rtts, goodputs]) in groups.iter().zip(&known) {
        let (x, y) = marker(*group).expect("a marker");
        assert_near(x, place(axis, "data-x", mean(rtts)), "round trip");
        assert_near(y, place(axis, "data-y", mean(goodputs)), "goodput");
        for (values, which) in [(rtts, "data-x"), (goodputs, "data-y")] {
            let ends = interval(values, Range::POSITIVE).map(|interval| [interval.low, interval.high]);
            beyond += ends.into_iter().flatten().filter(|end| !is_on(axis, which, *end)).count();
        }
    }
    assert_eq!(svg.matches("class=\"beyond\"").count(), beyond);
    let svg = figure(folder, "summary");
    let document = Document::parse(&svg).expect("XML");
    let (axes, groups) = (axes(&document), titled(&document));
    let cases = of_runs(comparison);
    for (case, [_, goodputs]) in cases.iter().enumerate() {
        let bar = groups[case]
            .children()
            .filter(|node| node.has_tag_name("rect"))
            .filter_map(extent)
            .next_back()
            .expect("a bar");
        assert_near(bar[2], place(axes[0], "data-x", mean(goodputs)), "the end of a bar");
        let ends =
            interval(goodputs, Range::POSITIVE).map_or([mean(goodputs); 2], |interval| [interval.low, interval.high]);
        let beyond = ends.iter().any(|end| !is_on(axes[0], "data-x", *end));
        assert_eq!(has_arrow(groups[case]), beyond, "{goodputs:?}");
    }
}

fn draw_and_check(comparison: &Comparison, runs: &example::Runs) {
    let folder = folder();
    write_comparison(folder.path(), comparison, runs, &[FigureFormat::Svg]).expect("a report");
    check_folder(folder.path(), 4);
    check_values(folder.path(), comparison);
}

#[test]
fn figures_of_comparisons_are_whole_and_marks_stand_at_their_values_whatever_these_are() {
    let (comparison, runs) = example::comparison(&["hosts.0.policy=none,lasthop,fixed,formula,count"], 3);
    draw_and_check(&comparison, &runs);
    // One seed with huge, tiny, equal and missing values.
    let draw = |of: &dyn Fn(usize, usize) -> (Option<f64>, f64)| draw_and_check(&with(comparison.clone(), of), &runs);
    draw(&|case, seed| (Some(10_f64.powi(3 * case as i32 - 3)), 10_f64.powi(case as i32) + seed as f64));
    draw(&|_, _| (Some(42.0), 7.0));
    draw(&|_, _| (Some(1e-3), 0.0));
    draw(&|case, _| (Some(1e6 + case as f64), 1e9));
    draw(&|case, _| ((case > 2).then_some(42.0), if case == 0 { 0.0 } else { 1e-6 }));
    draw(&|case, _| ((case == 1).then_some(36_176.0), 23.4));
    // Bars from far below 0 to far above, with a logarithmic axis.
    draw(&|case, seed| (Some(if case == 0 { 12.0 } else { [1e-3, 42.0, 1e6][seed] }), [0.1, 0.2, 30.0][seed]));
    // out/demo/arf: one case of 42 s, of which some seeds are far from others.
    draw(&|case, seed| (Some([[746.0, 740.0, 750.0], [36e3, 60e3, 5e3]][case % 2][seed]), 1.0 + seed as f64));
}

#[test]
fn long_labels_and_fifty_cases_are_whole() {
    let (mut comparison, mut runs) = example::comparison(&["hosts.0.policy=none,formula"], 2);
    for case in &mut comparison.cases {
        let label = format!("{LONG} {}", case.label);
        runs.iter_mut().filter(|(of, ..)| *of == case.label).for_each(|(of, ..)| of.clone_from(&label));
        case.label = label;
    }
    draw_and_check(&comparison, &runs);

    let values: Vec<String> = (1..=50).map(|count| format!("{}", 200 + count)).collect();
    let vary = format!("hosts.0.bound_segments={}", values.join(","));
    let (comparison, runs) = example::comparison(&[&vary, "hosts.0.policy=fixed"], 1);
    draw_and_check(&comparison, &runs);
    draw_and_check(&with(comparison, |case, _| (Some(1.0 + 1e3 * case as f64), 0.3 * case as f64)), &runs);
}

const STUDY: &str = "title = \"t\"\nsource = \"s\"\nscenario = \"base.toml\"\nseeds = 3\nset.duration_s = 12\nset.warmup_s = 10\n\
                     [[vary]]\naxis = \"n\"\nkey = \"hosts.0.count\"\nvalues = [1]\n[[figures]]\ntitle = \"f\"\nx = \"n\"\n\
                     y = \"aggregate_goodput_mbps\"\n";

fn study(figures: Vec<FigureResult>) -> StudyResult {
    let scenario = include_str!("../../../scenarios/ten-uploads.toml");
    let study =
        Study::from_toml("a.toml", STUDY, &|_| Ok(scenario.to_owned())).unwrap_or_else(|error| panic!("{error}"));
    let runs: Vec<RunResult> =
        study.plan(3).expect("a plan").iter().map(|planned| example::run(&planned.scenario).0).collect();
    let build = lasthop_scenario::Build { version: "0.1.0".into(), commit: None, dirty: false };
    let mut result = StudyResult::new(&study, lasthop_scenario::HostsKind::Simulated, build, &runs.into());
    result.figures = figures;
    result
}

fn panel(label: &str, lines: Vec<LineResult>) -> PanelResult {
    let reference = |label: &str, marks| LineResult { label: label.into(), source: None, marks };
    let marks = lines[0].marks.iter().map(|mark| MarkResult { ci95: None, ..mark.clone() }).collect();
    PanelResult { label: label.into(), lines, references: vec![reference("theory", marks)] }
}

/// x, the mean if there is one, and its interval.
type Mark = (f64, Option<f64>, Option<(f64, f64)>);

fn line(label: &str, marks: &[Mark]) -> LineResult {
    let mark = |(x, y, ends): &Mark| MarkResult {
        x: Level::Number(*x),
        y: *y,
        ci95: ends.map(|(low, high)| Interval { low, high }),
    };
    LineResult { label: label.into(), source: None, marks: marks.iter().map(mark).collect() }
}

fn of_panels(panels: Vec<PanelResult>, (log_x, log_y): (bool, bool)) -> FigureResult {
    let (x_label, y_label) = (format!("the number of terminals, {LONG}"), format!("goodput (Mb/s), {LONG}"));
    FigureResult { title: LONG.into(), x_label, y: "aggregate_goodput_mbps".into(), y_label, log_x, log_y, panels }
}

#[test]
fn figures_of_studies_are_whole_and_marks_stand_at_their_values_or_have_an_arrow() {
    let awkward: Vec<Vec<Mark>> = vec![
        vec![(1.0, Some(3.0), Some((1e-3, 1e6))), (2.0, Some(4.0), Some((-1.0, 9.0))), (3.0, None, None)],
        vec![(1.0, Some(0.0), Some((-2.0, 2.0))), (2.0, Some(-5.0), Some((-6.0, -4.0))), (10.0, Some(1e4), None)],
        vec![(4.0, Some(2.0), None)],
        vec![(4.0, Some(2.0), Some((2.0, 2.0))), (4.0, Some(2.0), Some((2.0, 2.0)))],
        vec![(1e-9, Some(1e-12), None), (1e9, Some(1e12), Some((1e11, 1e13)))],
        vec![(1e6, Some(1e6), None), (1e6 + 0.5, Some(1e6 + 0.5), None)],
        vec![(1.0, Some(f64::NAN), Some((f64::NAN, f64::NAN))), (2.0, None, None)],
        (1..=50).map(|x| (f64::from(x), Some(f64::from(x * x)), Some((0.5 * f64::from(x), 2e4)))).collect(),
    ];
    let mut figures = Vec::new();
    for marks in &awkward {
        for log in [(false, false), (true, true), (false, true)] {
            let lines = || vec![line("lasthop", marks), line(LONG, marks), line("none", &marks[..1])];
            figures.push(of_panels(vec![panel("", lines())], log));
            figures.push(of_panels((0..3).map(|_| panel(LONG, lines())).collect(), log));
            figures.push(of_panels((0..7).map(|_| panel(LONG, lines())).collect(), log));
        }
    }
    let words = |count: usize| {
        let mark = |index: usize| MarkResult { x: Level::Text(format!("{index} {LONG}")), y: Some(3.0), ci95: None };
        LineResult { label: "words".into(), source: None, marks: (0..count).map(mark).collect() }
    };
    figures.extend([1, 3, 8].map(|count| of_panels(vec![panel("", vec![words(count)])], (false, false))));
    let study = study(figures);
    let folder = folder();
    write_study(folder.path(), &study, &[FigureFormat::Svg]).expect("a report");
    for (index, figure) in study.figures.iter().enumerate() {
        let begin = format!("{}-", index + 1);
        let files =
            std::fs::read_dir(folder.path().join("figures")).expect("figures").map(|entry| entry.expect("one").path());
        let path =
            { files }.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&begin)));
        let svg = std::fs::read_to_string(path.expect("the figure")).expect("text");
        check(&format!("figure {index}"), &svg);
        check_marks(&svg, figure, index);
    }
}

fn check_marks(svg: &str, figure: &FigureResult, index: usize) {
    let document = Document::parse(svg).expect("XML");
    // Of each panel the last, which has both axes as the others do.
    let mut axes = axes(&document);
    axes.dedup_by_key(|axis| axis.attribute("data-box"));
    let mut groups = titled(&document).into_iter();
    for (panel, axis) in figure.panels.iter().zip(&axes) {
        let marks = panel.lines.iter().flat_map(|line| line.marks.iter().map(move |mark| (line.marks.len(), mark)));
        for (of_line, mark) in marks.filter(|(_, mark)| mark.y.is_some_and(f64::is_finite)) {
            let (group, y) = (groups.next().expect("a mark"), mark.y.expect("checked"));
            let inside = is_on(*axis, "data-y", y);
            let ends = mark.ci95.map(|interval| [interval.low, interval.high]);
            let beyond = ends.into_iter().flatten().chain([y]).any(|end| !is_on(*axis, "data-y", end));
            assert_eq!(has_arrow(group), beyond, "figure {index}: {mark:?}");
            let Some((x, at)) = marker(group) else {
                assert!(!inside || of_line > 40, "figure {index}: {mark:?}");
                continue;
            };
            assert_near(at, place(*axis, "data-y", y), &format!("figure {index}: {mark:?}"));
            if let Level::Number(number) = mark.x {
                assert_near(x, place(*axis, "data-x", number), &format!("figure {index}: {mark:?}"));
            }
        }
    }
    assert_eq!(groups.next(), None);
}

#[test]
fn a_pdf_has_its_text_and_a_png_its_pixels() {
    let folder = folder();
    let (result, series) = example::run(&example::scenario(&[]));
    let formats = [FigureFormat::Pdf, FigureFormat::Png];
    write_run(folder.path(), &result, &series, &formats).expect("a report");
    let bytes = |name: &str| std::fs::read(folder.path().join("figures").join(name)).expect("a figure");
    let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    let pdf = bytes("rtt.pdf");
    assert!(pdf.starts_with(b"%PDF-") && has(&pdf, b"/ToUnicode") && has(&pdf, b"DejaVuSans"), "no font with text");
    // Width and height stand in the first chunk, as numbers of four bytes (PNG, third edition, 11.2.1).
    let png = bytes("rtt.png");
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert_eq!(u32::from_be_bytes(png[16..20].try_into().expect("four bytes")), 1932);
    assert!(!folder.path().join("figures/rtt.svg").exists());
    let announced = lasthop_report::run_files(&formats);
    assert!(announced.contains(&"figures/rtt.pdf".to_owned()) && !announced.contains(&"figures/rtt.svg".to_owned()));
}
