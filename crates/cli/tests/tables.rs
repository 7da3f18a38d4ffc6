//! The tables of README.md and docs come from data files (scripts/results, docs/results/results.toml).

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/results");

fn results(root: Option<&Path>, arguments: &[&str]) -> Output {
    let mut command = Command::new("python3");
    command.arg(SCRIPT).args(arguments).env("LASTHOP", env!("CARGO_BIN_EXE_lasthop"));
    if let Some(root) = root {
        command.arg("--root").arg(root);
    }
    command.output().expect("python3")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_table_is_what_its_data_says() {
    let output = results(None, &["--check"]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn what_is_quick_gives_the_same_numbers_again() {
    let output = results(None, &["--again"]);
    assert!(output.status.success(), "`make results NAME=...` writes the new ones:\n{}", said(&output));
}

#[test]
fn the_examples_in_the_script_are_true() {
    let run = "import doctest, importlib.machinery as m, importlib.util as u, sys; sys.dont_write_bytecode = True; \
        loader = m.SourceFileLoader('results', sys.argv[1]); it = u.module_from_spec(u.spec_from_loader('results', loader)); \
        loader.exec_module(it); failed, tried = doctest.testmod(it); sys.exit(failed or tried < 7)";
    let output = Command::new("python3").args(["-c", run, SCRIPT]).output().expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

const LIST: &str = r#"
[command.one]
command = "lasthop compare one"
[table.one]
from = "one"
measure = "jain_index"
columns = [{ head = "Jain's index" }]
rows = [{ head = "none", case = "none" }]
[[prose]]
page = "README.md"
says = "In {met} of {of} seeds shares are below 0.6"
from = "one"
measure = "jain_index"
at_most = 0.6
"#;
const DATA: &str = r#"{"command": "lasthop compare one", "seeds": [1, 2], "version": "0.1.0", "commit": "c0ffee", "date": "2026-11-26",
    "hosts": "simulated", "points": {"none": {"jain_index": [0.5, 0.75]}}}"#;

/// A repository with one table of one cell, already filled.
fn small_house() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    fs::create_dir_all(root.join("docs/results/data")).expect("a folder");
    fs::write(root.join("docs/results/results.toml"), LIST).expect("a file");
    fs::write(root.join("docs/results/data/one.json"), DATA).expect("a file");
    fs::write(
        root.join("README.md"),
        "# One\n\nIn 7 of 9\nseeds shares are below 0.6.\n\n<!-- results: one -->\n<!-- end of results -->\n",
    )
    .expect("a file");
    let filled = results(Some(root), &[]);
    assert!(filled.status.success(), "{}", said(&filled));
    let page = fs::read_to_string(root.join("README.md")).expect("a page");
    assert!(page.contains("| none | 0.625 |"), "the mean of 0.5 and 0.75: {page}");
    assert!(page.contains("In 1 of 2\nseeds"), "0.5 alone is below: {page}");
    assert!(results(Some(root), &["--check"]).status.success());
    folder
}

/// Replaces a part of a file of the small house, and says what the check then says.
fn refused(file: &str, from: &str, to: &str) -> String {
    let folder = small_house();
    let path = folder.path().join(file);
    let text = fs::read_to_string(&path).expect("a file");
    assert!(text.contains(from), "{text}");
    fs::write(&path, text.replace(from, to)).expect("a file");
    let output = results(Some(folder.path()), &["--check"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    said(&output)
}

#[test]
fn a_number_that_its_data_does_not_have_is_refused() {
    assert!(refused("README.md", "0.625", "0.925").contains("README.md: one is not what its data says"));
}

#[test]
fn a_number_of_prose_that_its_data_does_not_have_is_refused() {
    assert!(
        refused("README.md", "In 1 of 2", "In 2 of 2")
            .contains("README.md: a number of its prose is not what its data says")
    );
    assert!(
        refused("README.md", "shares are", "shares were")
            .contains("0 times 'In {met} of {of} seeds shares are below 0.6'")
    );
}

#[test]
fn a_claim_that_quotes_what_its_page_does_not_say_is_refused() {
    let folder = small_house();
    let root = folder.path();
    let study = |text: &str| {
        format!("[[claims]]\nid = \"one\"\ntext = \"{text}\"\nsource = \"ours (docs/README.md, at its end)\"\n")
    };
    fs::create_dir(root.join("studies")).expect("a folder");
    fs::write(root.join("docs/README.md"), "# One\n\nHere [the *window*](x.md)\nhalves.\n").expect("a file");
    fs::write(root.join("studies/one.toml"), study("The window halves.")).expect("a file");
    let output = results(Some(root), &["--check"]);
    assert!(output.status.success(), "{}", said(&output));
    fs::write(root.join("studies/one.toml"), study("The window doubles.")).expect("a file");
    let output = results(Some(root), &["--check"]);
    assert!(
        said(&output).contains("studies/one.toml: claim one quotes what is not on docs/README.md"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_paper_s_number_that_the_study_does_not_have_is_refused() {
    let folder = small_house();
    let root = folder.path();
    let study = "[[claims]]\nid = \"fair\"\ntext = \"Shares are equal.\"\nsource = \"ours\"\n";
    fs::create_dir(root.join("studies")).expect("a folder");
    fs::write(root.join("studies/one.toml"), study).expect("a file");
    let data = root.join("docs/results/data/one.json");
    let claims = |paper: &str| {
        format!("\"claims\": {{\"fair\": {{\"says\": \"\", \"paper\": {paper}, \"places\": []}}}}, \"points\"")
    };
    fs::write(&data, DATA.replace("\"points\"", &claims("null"))).expect("a file");
    let output = results(Some(root), &["--check"]);
    assert!(output.status.success(), "{}", said(&output));
    fs::write(&data, DATA.replace("\"points\"", &claims("2.4"))).expect("a file");
    let output = results(Some(root), &["--check"]);
    assert!(said(&output).contains("claim fair: its data have 2.4 as the paper's number"), "{}", said(&output));
}

#[test]
fn a_table_of_numbers_without_a_mark_is_refused() {
    let typed = "# One\n\n| a | Mb/s |\n| --- | ---: |\n| b | 12.5 |\n";
    assert!(refused("README.md", "# One\n", typed).contains("1 tables of numbers without a mark"));
}

#[test]
fn data_that_does_not_say_where_it_comes_from_is_refused() {
    for (key, of) in [("command", "\"lasthop compare one\""), ("seeds", "[1, 2]"), ("commit", "\"c0ffee\"")] {
        let said = refused("docs/results/data/one.json", &format!("\"{key}\": {of}"), "\"other\": 1");
        assert!(said.contains(&format!("does not say: {key}")), "{said}");
    }
    assert!(refused("docs/results/data/one.json", "\"2026-11-26\"", "\"\"").contains("does not say: date"));
    assert!(refused("docs/results/data/one.json", "compare one", "compare two").contains("is of another command"));
}

#[test]
fn a_name_that_is_no_table_is_refused_with_those_that_are() {
    let folder = small_house();
    let output = results(Some(folder.path()), &["two"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("'two'; accepted: one"), "{}", said(&output));
}
