//! The guide says of every key of a scenario and of a study what the tables of keys say, and knows every key of a result.
//!
//! `LASTHOP_UPDATE_GUIDE=1 cargo test -p lasthop-scenario --test guide` writes the tables anew.
// The guide is a file.

use lasthop_policy::PolicyName;
use lasthop_scenario::keys::{Kind, Section};
use lasthop_scenario::study;
use std::fmt::Write as _;
use std::path::PathBuf;

mod sample;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");

/// `TOPIC.md` of the guide and the pages beside it, `TOPIC-*.md`, each with its text, in the order of their names.
fn pages(topic: &str) -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(GUIDE).expect("docs/guide");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| {
        let name = path.file_name().expect("a file").to_string_lossy();
        name == format!("{topic}.md") || name.starts_with(&format!("{topic}-"))
    });
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).expect("readable"))).collect()
}

/// Compares each table with what stands between its marker and `<!-- end -->`, on one page of the topic; or writes it there.
fn check_tables(topic: &str, tables: impl IntoIterator<Item = (String, String)>) {
    let mut pages = pages(topic);
    let before = pages.clone();
    for (marker, table) in tables {
        let mut with = pages.iter_mut().filter(|(_, page)| page.contains(&marker));
        let (path, page) = with.next().unwrap_or_else(|| panic!("no {marker} in docs/guide/{topic}*.md"));
        assert!(with.next().is_none(), "{marker} is on two pages");
        let start = page.find(&marker).expect("the marker") + marker.len();
        let end = page[start..].find("<!-- end -->").unwrap_or_else(|| panic!("no end of {marker} in {path:?}"));
        page.replace_range(start..start + end, &table);
    }
    for ((path, page), (_, was)) in pages.iter().zip(&before) {
        if std::env::var_os("LASTHOP_UPDATE_GUIDE").is_some() {
            std::fs::write(path, page).expect("the guide can be written");
        } else {
            assert!(page == was, "{path:?} is behind the keys: run this test with LASTHOP_UPDATE_GUIDE=1");
        }
    }
}

fn table(section: Section) -> String {
    let mut text = String::from("| key | takes | default | meaning |\n| --- | --- | --- | --- |\n");
    for key in section.keys() {
        let takes = match &key.kind {
            Kind::Choice(words) => words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", "),
            kind => kind.accepted(),
        };
        let _ = writeln!(text, "| `{}` | {takes} | {} | {} |", key.name, key.default.describe(), key.meaning);
    }
    text
}

fn policy_table() -> String {
    let mut text = String::from("| policy | what bounds the windows | settles within |\n| --- | --- | ---: |\n");
    for policy in PolicyName::ALL {
        let (meaning, settles) = (policy.meaning(), policy.settles_after().as_secs_f64());
        let _ = writeln!(text, "| `\"{policy}\"` | {meaning} | {settles} s |");
    }
    text
}

fn marker(section: Section) -> String {
    let heading = if section == Section::Top { "top" } else { section.heading() };
    format!("<!-- keys of {heading} -->\n")
}

#[test]
fn every_key_of_a_scenario_is_in_the_guide_with_its_range_and_default() {
    let (laws, sections): (Vec<Section>, Vec<Section>) =
        Section::all().partition(|section| matches!(section, Section::Law(_)));
    let of_law = |law: Section| format!("## `{}`\n\n{}", law.heading(), table(law));
    let laws = laws.into_iter().map(of_law).collect::<Vec<_>>().join("\n");
    let tables = sections.into_iter().map(|section| (marker(section), table(section)));
    let others = [("<!-- policies -->\n", policy_table()), ("<!-- keys of the laws -->\n", laws)];
    check_tables("scenario", tables.chain(others.map(|(marker, table)| (marker.to_owned(), table))));
}

fn study_table(section: study::keys::Section) -> String {
    let mut text = String::from("| key | takes | default | meaning |\n| --- | --- | --- | --- |\n");
    for key in section.keys() {
        let default = key.default.unwrap_or("must be there");
        let _ = writeln!(text, "| `{}` | {} | {default} | {} |", key.name, key.takes, key.meaning);
    }
    text
}

fn function_table() -> String {
    let mut text = String::from("| function | gives |\n| --- | --- |\n");
    for function in study::FUNCTIONS {
        let _ = writeln!(text, "| `{}` | {} |", function.call, function.meaning);
    }
    text
}

#[test]
fn every_key_of_a_study_and_every_function_is_in_the_guide() {
    let heading = |section: study::keys::Section| match section {
        study::keys::Section::Top => "the study",
        section => section.heading(),
    };
    let sections = study::keys::Section::ALL
        .map(|section| (format!("<!-- keys of {} -->\n", heading(section)), study_table(section)));
    check_tables("study", sections.into_iter().chain([("<!-- functions -->\n".to_owned(), function_table())]));
}

#[test]
fn the_study_in_the_guide_can_be_read_and_planned() {
    let guide = std::fs::read_to_string(format!("{GUIDE}/study.md")).expect("docs/guide/study.md");
    let (_, from) = guide.split_once("```toml\n").expect("a study in the guide");
    let (text, _) = from.split_once("```").expect("its end");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/hayakawa/");
    let study = study::Study::from_toml("docs/guide/study.md", text, &|file| {
        std::fs::read_to_string(format!("{folder}{file}"))
    });
    let study = study.expect("a study");
    assert_eq!(study.plan(study.seeds).expect("a plan").len(), 40);
}

#[test]
fn every_study_that_is_shipped_can_be_read_and_planned() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let mut count = 0;
    for paper in std::fs::read_dir(folder).expect("the studies") {
        for file in std::fs::read_dir(paper.expect("a folder").path()).expect("a folder") {
            let file = file.expect("a file").path();
            let study = study::Study::load(&file).unwrap_or_else(|error| panic!("{error}"));
            study.plan(study.seeds).unwrap_or_else(|error| panic!("{error}"));
            assert!(!study.claims.is_empty(), "{} claims nothing", file.display());
            count += 1;
        }
    }
    assert!(count >= 6, "{count} studies");
}

/// Every key of a JSON value and of what is in it, but for those of the scenario.
fn keys(value: &serde_json::Value, into: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                into.push(key.clone());
                if key != "scenario" {
                    keys(value, into);
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, into)),
        _ => {}
    }
}

#[test]
fn every_key_of_a_result_and_every_column_of_the_series_is_in_the_guide() {
    let guide: String = pages("result").into_iter().map(|(_, page)| page).collect();
    let mut names = Vec::new();
    for json in [sample::run([1.0, 1.0], &[5.0]).to_json(), sample::comparison().to_json()] {
        keys(&serde_json::from_str(&json).expect("JSON"), &mut names);
    }
    keys(&serde_json::to_value(lasthop_scenario::FlowSeries::default()).expect("JSON"), &mut names);
    keys(&serde_json::to_value(lasthop_scenario::QueueSeries::default()).expect("JSON"), &mut names);
    assert!(names.len() > 100, "{names:?}");
    for name in names {
        assert!(guide.contains(&format!("`{name}`")), "docs/guide/result*.md do not know {name}");
    }
}

#[test]
fn every_scenario_in_the_guide_can_be_read() {
    let mut hosts = Vec::new();
    for (path, page) in pages("scenario") {
        let blocks = page.split("```toml\n").skip(1).map(|from| from.split_once("```").expect("an end").0);
        hosts.extend(blocks.map(|text| {
            let scenario = lasthop_scenario::Scenario::from_toml(&path.display().to_string(), text, &[]);
            scenario.unwrap_or_else(|error| panic!("{error}")).expanded_hosts().len()
        }));
    }
    assert_eq!(hosts, [4, 1, 1, 5, 8, 4]);
}

#[test]
fn the_guides_list_congestion_controls_that_there_are() {
    for (path, heading) in
        [("scenario.md", "| `congestion_control` | `newreno`"), ("simulator.md", "| congestion control | `newreno`")]
    {
        let guide = std::fs::read_to_string(format!("{GUIDE}/{path}")).expect("a guide");
        let row = guide.lines().find(|line| line.starts_with(heading)).unwrap_or_else(|| panic!("{heading} in {path}"));
        let cell = row.split('|').nth(2).expect("the second cell");
        let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(names.len() >= 9, "{names:?}");
        for name in names {
            assert!(name.parse::<lasthop_laws::LawName>().is_ok(), "{path} has a law {name}, and there is none");
        }
    }
}
