//! The guide says of every key of a study and of every function what their tables say.
//!
//! `LASTHOP_UPDATE_GUIDE=1 cargo test -p lasthop-study --test guide` writes the tables anew.
// The guide is a file.

use guide_pages::{GUIDE, check_tables, takes};
use lasthop_keys::Section;
use lasthop_study as study;
use std::fmt::Write as _;

#[path = "../../scenario/tests/guide_pages/mod.rs"]
mod guide_pages;
#[path = "../../scenario/tests/json_schema/mod.rs"]
mod json_schema;

fn study_table(heading: &str, section: &Section) -> String {
    let mut text = String::from("| key | takes | default | meaning |\n| --- | --- | --- | --- |\n");
    for key in &section.keys {
        let _ =
            writeln!(text, "| `{}` | {} | {} | {} |", key.name, takes(&key.kind), key.default.describe(), key.meaning);
    }
    for child in &section.children {
        let around = heading.trim_matches(['[', ']']);
        let name = if around.is_empty() { child.name.to_owned() } else { format!("{around}.{}", child.name) };
        let takes = if child.repeated { format!("blocks [[{name}]]") } else { format!("a table [{name}]") };
        let _ = writeln!(text, "| `{}` | {takes} | none | {} |", child.name, child.meaning);
    }
    text
}

fn function_table() -> String {
    let mut text = String::from("| function | gives |\n| --- | --- |\n");
    for function in study::functions() {
        let _ = writeln!(text, "| `{}` | {} |", function.call, function.meaning);
    }
    text
}

#[test]
fn every_key_of_a_study_and_every_function_is_in_the_guide() {
    // The conditions of a search, and of the cells that are looked at, are those of a claim.
    let is_alike = |heading: &str| heading.contains("search.conditions") || heading.contains("claims.among");
    let sections = study::Study::section().walk().into_iter().filter(|(heading, _)| !is_alike(heading));
    let sections = sections.map(|(heading, section)| {
        let marker = if heading.is_empty() { "the study" } else { &heading };
        (format!("<!-- keys of {marker} -->\n"), study_table(&heading, section))
    });
    check_tables("study", sections.chain([("<!-- functions -->\n".to_owned(), function_table())]));
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
fn every_study_that_is_shipped_follows_the_schema_and_can_be_planned() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let schema = study::Study::section().json_schema("A study");
    let mut count = 0;
    for paper in std::fs::read_dir(folder).expect("the studies") {
        for file in std::fs::read_dir(paper.expect("a folder").path()).expect("a folder") {
            let file = file.expect("a file").path();
            let study = study::Study::load(&file).unwrap_or_else(|error| panic!("{error}"));
            let told = json_schema::violations(&schema, &json_schema::json(&study.text), "");
            assert_eq!(told, [""; 0], "{}", file.display());
            // Of the scenarios that the study lasthop/sensitivity draws some will do: lasthop/ordinary draws them as well.
            let fewer = study.text.replace("scenarios = 250\n", "scenarios = 10\n");
            let beside = |name: &str| std::fs::read_to_string(file.parent().expect("a folder").join(name));
            let study = study::Study::from_toml(&file.display().to_string(), &fewer, &beside);
            let study = study.unwrap_or_else(|error| panic!("{error}"));
            study.plan(1).unwrap_or_else(|error| panic!("{error}"));
            assert!(!study.claims.is_empty(), "{} claims nothing", file.display());
            count += 1;
        }
    }
    assert!(count >= 6, "{count} studies");
}
