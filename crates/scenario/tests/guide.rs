//! The guide says of every key of a scenario what the tables of keys say, and knows every key of a result.
//!
//! `LASTHOP_UPDATE_GUIDE=1 cargo test -p lasthop-scenario --test guide` writes the tables anew.
// The guide is a file.

use lasthop_scenario::ResultFile as _;
use lasthop_scenario::keys::{Kind, Section};
use std::fmt::Write as _;

mod sample;

const RESULT_GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/result.md");
const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/scenario.md");

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

fn marker(section: Section) -> String {
    let heading = if section == Section::Top { "top" } else { section.heading() };
    format!("<!-- keys of {heading} -->\n")
}

#[test]
fn every_key_of_a_scenario_is_in_the_guide_with_its_range_and_default() {
    let mut guide = std::fs::read_to_string(GUIDE).expect("docs/guide/scenario.md");
    let before = guide.clone();
    for section in Section::ALL {
        let marker = marker(section);
        let start = guide.find(&marker).unwrap_or_else(|| panic!("no {marker} in the guide")) + marker.len();
        let end = start + guide[start..].find("<!-- end -->").expect("an end of the table");
        guide.replace_range(start..end, &table(section));
    }
    if std::env::var_os("LASTHOP_UPDATE_GUIDE").is_some() {
        std::fs::write(GUIDE, &guide).expect("the guide can be written");
    } else {
        assert!(
            guide == before,
            "docs/guide/scenario.md is behind the keys: run this test with LASTHOP_UPDATE_GUIDE=1"
        );
    }
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
    let guide = std::fs::read_to_string(RESULT_GUIDE).expect("docs/guide/result.md");
    let mut names = Vec::new();
    for json in [sample::run([1.0, 1.0], &[5.0]).to_json(), sample::comparison().to_json()] {
        keys(&serde_json::from_str(&json).expect("JSON"), &mut names);
    }
    keys(&serde_json::to_value(lasthop_scenario::FlowSeries::default()).expect("JSON"), &mut names);
    keys(&serde_json::to_value(lasthop_scenario::QueueSeries::default()).expect("JSON"), &mut names);
    assert!(names.len() > 100, "{names:?}");
    for name in names {
        assert!(guide.contains(&format!("`{name}`")), "docs/guide/result.md does not know {name}");
    }
}

#[test]
fn every_scenario_in_the_guide_can_be_read() {
    let guide = std::fs::read_to_string(GUIDE).expect("docs/guide/scenario.md");
    let blocks = guide.split("```toml\n").skip(1).map(|from| from.split_once("```").expect("an end").0);
    let hosts = blocks.map(|text| {
        let scenario = lasthop_scenario::Scenario::from_toml("docs/guide/scenario.md", text, &[]);
        scenario.unwrap_or_else(|error| panic!("{error}")).expanded_hosts().len()
    });
    assert_eq!(hosts.collect::<Vec<_>>(), [4, 8, 4, 5, 1]);
}

#[test]
fn every_law_is_in_the_guides_where_they_list_the_congestion_controls() {
    let simulator = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/simulator.md");
    for (path, heading) in
        [(GUIDE, "| `congestion_control` | `newreno`"), (simulator, "| congestion control | `newreno`")]
    {
        let guide = std::fs::read_to_string(path).expect("a guide");
        let row = guide.lines().find(|line| line.starts_with(heading)).unwrap_or_else(|| panic!("{heading} in {path}"));
        let missing = lasthop_laws::LawName::ALL.iter().filter(|law| !row.contains(&format!("`{law}`")));
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<&lasthop_laws::LawName>::new(), "{path}");
    }
    let key = Section::ALL.iter().flat_map(|section| section.keys()).find(|key| key.name == "congestion_control");
    let meaning = key.expect("a key").meaning;
    for law in lasthop_laws::LawName::ALL {
        assert!(meaning.contains(&format!("\"{law}\"")), "{law} in {meaning}");
    }
}
