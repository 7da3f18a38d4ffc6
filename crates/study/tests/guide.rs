//! The guide says of every key of a study and of every function what their tables say.
//!
//! `LASTHOP_UPDATE_GUIDE=1 cargo test -p lasthop-study --test guide` writes the tables anew.
// The guide is a file.

use guide_pages::{GUIDE, check_tables};
use lasthop_study as study;
use std::fmt::Write as _;

#[path = "../../scenario/tests/guide_pages/mod.rs"]
mod guide_pages;

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
