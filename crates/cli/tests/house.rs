//! Who may import whom: ARCHITECTURE.md's rule, held against what cargo knows.

use std::collections::BTreeMap;
use std::process::Command;

/// Each room with the rooms it may import. Whatever is not here is a mistake; say why in ARCHITECTURE.md if it is not.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("laws", &["units"]),
    ("peers", &["units"]),
    ("policy", &["laws", "peers", "units"]),
    ("lastlink", &["laws", "units"]),
    ("network", &["units"]),
    ("tcp", &["laws", "units"]),
    ("scenario", &["laws", "network", "policy", "tcp", "units"]),
    ("sim", &["laws", "network", "peers", "policy", "scenario", "tcp", "units"]),
    ("report", &["laws", "scenario", "units"]),
    ("kernel", &["laws", "units"]),
    ("agent", &["kernel", "lastlink", "laws", "peers", "policy", "units"]),
    ("lab", &["agent", "kernel", "laws", "network", "policy", "scenario", "units"]),
    ("cli", &["agent", "kernel", "lab", "laws", "policy", "report", "scenario", "sim", "units"]),
];

/// The rooms without a clock, an environment or files, and what they may use from outside.
const PURE: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("laws", &["cc", "serde", "thiserror", "zerocopy"]),
    ("peers", &["hmac", "sha2", "thiserror"]),
    ("policy", &["serde", "thiserror"]),
    ("lastlink", &["serde"]),
    ("network", &["rand", "rand_chacha", "sha2", "thiserror"]),
    ("tcp", &["thiserror"]),
    ("sim", &["rand", "rand_chacha", "thiserror"]),
];

struct Import {
    name: String,
    only_in_tests: bool,
}

fn rooms() -> BTreeMap<String, Vec<Import>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let text = |value: &serde_json::Value| value.as_str().expect("a name").trim_start_matches("lasthop-").to_owned();
    packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().expect("a list of dependencies");
            let import = |d: &serde_json::Value| Import { name: text(&d["name"]), only_in_tests: d["kind"] == "dev" };
            (text(&package["name"]), dependencies.iter().map(import).collect())
        })
        .collect()
}

#[test]
fn every_room_imports_only_what_it_may() {
    let rooms = rooms();
    let known: Vec<&str> = MAY_IMPORT.iter().map(|(room, _)| *room).collect();
    let unknown: Vec<_> = rooms.keys().filter(|room| !known.contains(&room.as_str())).collect();
    assert!(unknown.is_empty(), "rooms without a rule: {unknown:?}");
    for (room, allowed) in MAY_IMPORT {
        for import in rooms.get(*room).unwrap_or_else(|| panic!("the room {room} is gone")) {
            let is_room = known.contains(&import.name.as_str());
            let fine = !is_room || import.only_in_tests || allowed.contains(&import.name.as_str());
            assert!(fine, "{room} must not import {}", import.name);
        }
    }
}

#[test]
fn pure_rooms_use_only_what_is_known_to_be_pure() {
    let rooms = rooms();
    for (room, allowed) in PURE {
        for import in rooms[*room].iter().filter(|import| !import.only_in_tests) {
            let name = import.name.as_str();
            assert!(allowed.contains(&name) || rooms.contains_key(name), "{room} is pure and must not use {name}");
        }
        let source = format!("{}/../{room}/src/lib.rs", env!("CARGO_MANIFEST_DIR"));
        let source = std::fs::read_to_string(&source).expect("a room has a lib.rs");
        assert!(source.contains("#![deny(clippy::disallowed_methods)]"), "{room} must refuse clocks and files");
    }
}

/// The pages of the documentation: all of Markdown that is ours.
fn pages() -> Vec<std::path::PathBuf> {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let folders = ["", "docs", "docs/guide", "docs/models", "docs/results"].map(|folder| root.join(folder));
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("a folder"));
    let paths = entries.map(|entry| entry.expect("readable").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

#[test]
fn links_of_the_documentation_lead_somewhere_and_every_guide_is_linked_from_the_readme() {
    let pages = pages();
    assert!(pages.len() > 30, "{pages:?}");
    let mut dead = Vec::new();
    for page in &pages {
        let text = std::fs::read_to_string(page).expect("readable");
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        for target in targets.filter(|target| !target.contains("://") && !target.contains(char::is_whitespace)) {
            let file = target.split('#').next().unwrap_or_default();
            if !file.is_empty() && !page.with_file_name(file).exists() {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "links to what is not there: {dead:#?}");
    let readme = pages.iter().find(|page| page.ends_with("README.md")).expect("a README");
    let readme = std::fs::read_to_string(readme).expect("readable");
    for page in pages.iter().filter(|page| page.parent().is_some_and(|folder| folder.ends_with("docs/guide"))) {
        let name = page.file_name().expect("a file").to_string_lossy();
        assert!(readme.contains(&format!("(docs/guide/{name}")), "the README does not lead to docs/guide/{name}");
    }
}

#[test]
fn the_readme_is_short_and_a_script_can_fill_its_table() {
    let page = |name: &str| {
        let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(name);
        std::fs::read_to_string(path).expect("readable")
    };
    let words = page("README.md").split_whitespace().count();
    assert!(words <= 1_000, "README.md has {words} words: what it says beyond 1,000 belongs to docs");
    for name in ["README.md", "docs/results/lasthop.md"] {
        let text = page(name);
        let marks = ["<!-- headline -->\n", "<!-- end of headline -->"].map(|mark| text.matches(mark).count());
        assert_eq!(marks, [1, 1], "scripts/headline --write finds no place in {name}");
    }
}

/// The rooms as ARCHITECTURE.md has them: each with what it may import.
#[test]
fn the_table_of_rooms_in_architecture_md_is_the_rule() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ARCHITECTURE.md")).expect("the page");
    for (room, allowed) in MAY_IMPORT {
        let row = text.lines().find(|line| line.starts_with(&format!("| `{room}` |")));
        let cell = row.and_then(|row| row.trim_end_matches('|').rsplit('|').next());
        let cell = cell.unwrap_or_else(|| panic!("ARCHITECTURE.md has no row of the room {room}")).trim();
        let said = match (allowed.len(), *room) {
            (0, _) => "nothing".to_owned(),
            (_, "cli") => "everything".to_owned(),
            _ => allowed.join(", "),
        };
        assert_eq!(cell, said, "ARCHITECTURE.md on what {room} may import");
    }
}
