//! Who may import whom: ARCHITECTURE.md's rule, held against what cargo knows. And that the documentation's pages are listed and lead on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each room with the rooms it may import. Whatever is not here is a mistake; say why in ARCHITECTURE.md if it is not.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("connection", &["units"]),
    ("keys", &["units"]),
    ("laws", &["units"]),
    ("own", &["laws", "tcp", "units"]),
    ("peers", &["units"]),
    ("policy", &["connection", "keys", "laws", "peers", "units"]),
    ("external", &["policy"]),
    ("files", &[]),
    ("lastlink", &["connection", "laws", "units"]),
    ("trial", &["connection", "units"]),
    ("network", &["units"]),
    ("tcp", &["connection", "laws", "units"]),
    ("quic", &["connection", "laws", "units"]),
    ("traffic", &["keys", "units"]),
    ("scenario", &["files", "keys", "laws", "network", "policy", "tcp", "traffic", "units"]),
    ("measure", &["connection", "laws", "network", "policy", "scenario", "units"]),
    ("capture", &["network", "scenario", "units"]),
    (
        "sim",
        &[
            "capture",
            "connection",
            "laws",
            "measure",
            "network",
            "peers",
            "policy",
            "quic",
            "scenario",
            "tcp",
            "traffic",
            "units",
        ],
    ),
    ("study", &["files", "keys", "measure", "network", "scenario", "units"]),
    ("report", &["files", "laws", "measure", "scenario", "study", "units"]),
    ("site", &["measure", "report", "scenario", "sim", "study", "units", "version"]),
    ("kernel", &["connection", "laws", "units"]),
    ("status", &["files", "keys", "lastlink", "laws", "peers", "policy", "trial", "units"]),
    (
        "agent",
        &[
            "connection",
            "external",
            "files",
            "kernel",
            "keys",
            "lastlink",
            "laws",
            "peers",
            "policy",
            "status",
            "trial",
            "units",
        ],
    ),
    (
        "python",
        &[
            "external", "files", "laws", "measure", "own", "policy", "report", "scenario", "sim", "study", "units",
            "version",
        ],
    ),
    (
        "lab",
        &[
            "agent",
            "capture",
            "connection",
            "files",
            "kernel",
            "laws",
            "measure",
            "network",
            "policy",
            "scenario",
            "status",
            "tcp",
            "traffic",
            "units",
        ],
    ),
    ("guest", &[]),
    ("version", &["scenario"]),
    ("view", &["report", "status"]),
    (
        "cli",
        &[
            "agent",
            "capture",
            "connection",
            "external",
            "files",
            "guest",
            "kernel",
            "keys",
            "lab",
            "laws",
            "measure",
            "network",
            "own",
            "peers",
            "policy",
            "report",
            "scenario",
            "sim",
            "status",
            "study",
            "trial",
            "units",
            "version",
            "view",
        ],
    ),
];

/// The rooms without a clock, an environment or files, and what they may use from outside.
const PURE: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("connection", &[]),
    ("keys", &["serde", "serde_json", "strsim", "thiserror", "toml"]),
    ("laws", &["bindgen", "cc", "clang-sys", "serde", "thiserror", "zerocopy"]),
    ("peers", &["hmac", "libm", "sha2", "thiserror", "zerocopy"]),
    ("policy", &["libm", "rustc-hash", "schemars", "serde", "toml", "zerocopy"]),
    ("lastlink", &["serde"]),
    ("trial", &["libm", "rand", "rand_chacha", "serde", "statrs", "zerocopy"]),
    ("network", &["enum_dispatch", "libm", "rand", "rand_chacha", "sha2", "strum", "thiserror"]),
    ("tcp", &["strum", "thiserror"]),
    ("quic", &["bytes", "quinn-proto"]),
    ("measure", &["hdrhistogram", "libm", "statrs"]),
    ("capture", &[]),
    ("traffic", &["enum_dispatch", "libm", "rand", "rand_chacha", "serde", "toml"]),
    ("sim", &["rand", "rand_chacha", "thiserror"]),
    ("site", &["serde", "serde_json"]),
];

struct Import {
    name: String,
    only_in_tests: bool,
    takes_any_version: bool,
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
            let import = |d: &serde_json::Value| Import {
                name: text(&d["name"]),
                only_in_tests: d["kind"] == "dev",
                // One of ours has no source.
                takes_any_version: d["req"] == "*" && d["source"].is_string(),
            };
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

/// Whether an SPDX expression can be met with these licences. Parentheses are looked over, so that `A OR (B AND C)` and
/// `(A OR B) AND C` are read alike: cargo-deny is exact (`make supply-chain`), and this needs no network.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" OR ").any(|choice| choice.split(" AND ").all(|licence| allowed.contains(&licence.trim())))
}

#[test]
fn every_crate_has_a_licence_that_deny_toml_allows_a_version_and_comes_from_the_registry() {
    let deny = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    let listed = deny.lines().find_map(|line| line.strip_prefix("allow = [")?.strip_suffix(']')).expect("its licences");
    let allowed: Vec<&str> = listed.split(", ").map(|licence| licence.trim_matches('"')).collect();
    assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0", &allowed) && is_allowed("Zlib/MIT", &allowed));
    assert!(!is_allowed("GPL-3.0-only", &allowed) && !is_allowed("MIT AND GPL-3.0-only", &allowed));
    for (room, imports) in rooms() {
        for import in imports {
            assert!(!import.takes_any_version, "{room} takes any version of {}: name one", import.name);
        }
    }
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--workspace", "--edges", "all", "--prefix", "none", "--format", "{p}|{l}"])
        .args(["--target", "x86_64-unknown-linux-gnu"])
        .current_dir(root())
        .output()
        .expect("cargo tree runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let crates = String::from_utf8(output.stdout).expect("text");
    // One of ours has its folder in brackets, and one of git its address.
    let others = crates.lines().filter_map(|line| line.split_once('|')).filter(|(name, _)| !name.contains("(/"));
    let others: BTreeMap<&str, &str> = others.collect();
    assert!(others.len() > 100, "{} crates", others.len());
    for (name, licence) in others {
        assert!(!name.contains("://"), "{name} is not of crates.io");
        let licence = licence.trim_end_matches(" (*)");
        assert!(is_allowed(licence, &allowed), "{name}: {licence}; accepted: {listed} (deny.toml)");
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Every file below a folder of the repository, but for what was built.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let folders = folders.iter().filter(|folder| !folder.ends_with("target"));
    files.into_iter().chain(folders.flat_map(|folder| files_below(folder))).collect()
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// The pages of the documentation: all of Markdown that is ours.
fn pages() -> Vec<PathBuf> {
    let top = std::fs::read_dir(root()).expect("the repository").map(|entry| entry.expect("readable").path());
    top.chain(files_below(&root().join("docs"))).filter(|path| is_page(path)).collect()
}

/// What a link may have behind its `#` on this page, as forges and mdBook make it of the headings.
fn anchors(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).expect("readable");
    let mut in_code = false;
    let mut anchors: Vec<String> = Vec::new();
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code || !line.starts_with('#') {
            continue;
        }
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|n| format!("{anchor}-{n}"));
        let free = std::iter::once(anchor.clone()).chain(again).find(|anchor| !anchors.contains(anchor));
        anchors.extend(free);
    }
    anchors
}

#[test]
fn links_of_the_documentation_lead_to_a_file_and_a_heading() {
    let pages = pages();
    assert!(pages.len() > 50, "{pages:?}");
    let mut dead = Vec::new();
    for page in &pages {
        let text = std::fs::read_to_string(page).expect("readable");
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        for target in targets.filter(|target| !target.contains("://") && !target.contains(char::is_whitespace)) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            let heading_is_there = anchor.is_empty() || !is_page(&path) || anchors(&path).iter().any(|a| a == anchor);
            if !path.exists() || !heading_is_there {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "links to what is not there: {dead:#?}");
}

#[test]
fn pages_that_the_code_names_are_there() {
    let mut dead = Vec::new();
    for folder in ["crates", "packaging", "python", "scenarios", "scripts", "studies"] {
        for file in files_below(&root().join(folder)) {
            let Ok(text) = std::fs::read_to_string(&file) else { continue };
            for rest in text.split("docs/").skip(1) {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"/-_.*".contains(c)).unwrap_or(rest.len());
                let name = rest[..end].trim_end_matches('.');
                let is_one_page = name.ends_with(".md") && !name.contains('*');
                if is_one_page && !root().join("docs").join(name).exists() {
                    dead.push(format!("{}: docs/{name}", file.display()));
                }
            }
        }
    }
    assert!(dead.is_empty(), "pages that are not there: {dead:#?}");
}

#[test]
fn every_page_of_docs_is_once_in_the_summary_and_once_with_a_sentence_in_the_readme() {
    let docs = root().join("docs");
    let read = |name: &str| std::fs::read_to_string(docs.join(name)).expect("readable");
    let (summary, readme) = (read("SUMMARY.md"), read("README.md"));
    for page in files_below(&docs).iter().filter(|path| is_page(path) && !path.ends_with("SUMMARY.md")) {
        let name = page.strip_prefix(&docs).expect("below docs").to_string_lossy();
        let link = format!("({name})");
        assert_eq!(summary.matches(&link).count(), 1, "links of docs/SUMMARY.md to docs/{name}");
        if name == "README.md" {
            continue;
        }
        let lines: Vec<&str> = readme.lines().filter(|line| line.contains(&link)).collect();
        assert_eq!(lines.len(), 1, "lines of docs/README.md that lead to docs/{name}");
        let (_, sentence) = lines[0].split_once(&format!("{link}: ")).unwrap_or_default();
        assert!(lines[0].starts_with("- [") && sentence.ends_with('.'), "docs/README.md: {}", lines[0]);
    }
}

#[test]
fn the_readme_is_short() {
    let words = std::fs::read_to_string(root().join("README.md")).expect("readable").split_whitespace().count();
    assert!(words <= 1_000, "README.md has {words} words: what it says beyond 1,000 belongs to docs");
}

/// The first string of each `warn!` and `error!` in a source: the longest part of it that is always the same.
fn warnings(source: &str) -> Vec<String> {
    let begins = ["warn!(", "error!("].into_iter().flat_map(|name| source.split(name).skip(1));
    let literals = begins.filter_map(|rest| rest.split_once('"')).map(|(_, rest)| {
        let is_escaped = |at: usize| rest[..at].bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1;
        let end = rest.match_indices('"').map(|(at, _)| at).find(|at| !is_escaped(*at));
        &rest[..end.unwrap_or(rest.len())]
    });
    let fixed = |literal: &str| {
        let outside = literal.split('{').filter_map(|part| part.rsplit('}').next());
        let parts = outside.flat_map(|part| part.split('\\'));
        parts.map(str::trim).max_by_key(|part| part.len()).unwrap_or_default().to_owned()
    };
    literals.map(fixed).collect()
}

#[test]
fn the_runbook_has_every_warning_of_the_agent() {
    let page = std::fs::read_to_string(root().join("docs/guide/runbook.md")).expect("the runbook");
    let sources = ["agent", "external", "kernel", "peers"].map(|room| root().join("crates").join(room).join("src"));
    let files = sources.iter().flat_map(|folder| files_below(folder));
    let mut found = 0;
    let mut missing = Vec::new();
    for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "rs")) {
        for warning in warnings(&std::fs::read_to_string(&file).expect("readable")) {
            found += 1;
            if warning.len() < 8 || !page.contains(&warning) {
                missing.push(format!("{}: {warning:?}", file.display()));
            }
        }
    }
    assert!(found >= 30, "only {found} warnings are found: does the agent log otherwise now?");
    assert!(
        missing.is_empty(),
        "docs/guide/runbook.md does not say what these mean, or they begin with no words: {missing:#?}"
    );
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

/// The sources that write files otherwise than by the room `files`, and where: no user names these files.
const OTHER_WRITERS: &[(&str, &str)] = &[
    ("agent/src/only_one.rs", "locks in /run/lasthop, which only root may write"),
    ("agent/src/soak.rs", "a test"),
    ("agent/src/tell/recorder.rs", "sets its own full record aside"),
    ("cli/src/built_in.rs", "a folder of this process"),
    ("cli/src/key.rs", "makes a new file, for its owner alone, and replaces none"),
    ("cli/src/laws/build.rs", "the verifier's log, beside the products"),
    ("cli/src/out_folder.rs", "keeps a list of its files with their digests"),
    ("cli/src/study/tests.rs", "tests"),
    ("files/src/writing.rs", "the room"),
    ("guest/src/debian.rs", "the cache of kernels"),
    ("guest/src/disk.rs", "a folder of this process"),
    ("guest/src/inside.rs", "the files of a guest"),
    ("guest/src/kept.rs", "the cache of states"),
    ("guest/src/kernels.rs", "the cache of kernels"),
    ("guest/src/machine.rs", "the cache of states, and folders of this process"),
    ("guest/src/processor.rs", "locks in the cache of states"),
    ("guest/src/program.rs", "the cache of programs"),
    ("guest/src/stopping.rs", "/sys of a guest"),
    ("guest/src/work.rs", "the cache of kernels and states"),
    ("kernel/src/laws/pins.rs", "pins in /sys/fs/bpf"),
    ("lab/src/guest/inside.rs", "a folder of this process"),
    ("lab/src/internet.rs", "/proc"),
    ("lab/src/leftovers.rs", "/proc, and a folder of root"),
    ("lab/src/namespace.rs", "/proc"),
    ("lab/src/radios.rs", "the files of a guest"),
    ("lab/src/tcp_switches.rs", "/proc"),
    ("lab/src/tun.rs", "/dev/net/tun"),
    ("own/src/lib.rs", "the cache of compiled laws"),
    ("report/src/folder.rs", "the new folder of a result"),
    ("report/src/live.rs", "a new folder in that of a result"),
    ("report/src/series_file.rs", "the new folder of a result"),
];

#[test]
fn files_that_a_user_names_are_written_by_one_room() {
    let crates = root().join("crates");
    let rooms = std::fs::read_dir(&crates).expect("the crates").flatten().map(|room| room.path().join("src"));
    let mut writers = Vec::new();
    for file in
        rooms.flat_map(|sources| files_below(&sources)).filter(|file| file.extension().is_some_and(|of| of == "rs"))
    {
        let text = std::fs::read_to_string(&file).expect("readable");
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let calls = ["File::create", "fs::write(", "OpenOptions::new", "fs::copy(", "fs::rename("];
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        if code.into_iter().any(|line| calls.iter().any(|call| line.contains(call))) {
            writers.push(file.strip_prefix(&crates).expect("a crate").display().to_string());
        }
    }
    writers.sort();
    let known: Vec<_> = OTHER_WRITERS.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(writers, known, "write by lasthop_files, or say here where else");
}

/// A crate that lists its tests itself (`autotests = false`) would leave out a file that nobody has listed, in silence.
#[test]
fn every_file_of_tests_is_a_test_or_a_module_of_one() {
    let listing = files_below(&root().join("crates")).into_iter().filter(|file| {
        file.ends_with("Cargo.toml")
            && std::fs::read_to_string(file).is_ok_and(|text| text.contains("autotests = false"))
    });
    let mut listed = 0;
    for manifest in listing {
        let tests = manifest.parent().expect("a folder").join("tests");
        let manifest = std::fs::read_to_string(&manifest).expect("a manifest");
        let files: Vec<_> = files_below(&tests).into_iter().filter(|file| file.parent() == Some(&tests)).collect();
        let stem = |file: &Path| file.file_stem().expect("a name").to_string_lossy().into_owned();
        let is_test = |file: &Path| manifest.contains(&format!("[[test]]\nname = \"{}\"", stem(file)));
        let modules: String = files
            .iter()
            .filter(|file| is_test(file))
            .map(|file| std::fs::read_to_string(file).expect("a test"))
            .collect();
        for file in files.iter().filter(|file| file.extension().is_some_and(|is| is == "rs")) {
            let name = stem(file);
            let is_module = modules.lines().any(|line| {
                line.strip_prefix("mod ").is_some_and(|of| of.trim_start_matches("r#") == format!("{name};"))
            });
            assert!(is_test(file) || is_module, "no test has {}", file.display());
            listed += 1;
        }
    }
    assert!(listed > 40, "{listed}");
}

/// In a clone, which has no changes: this tree may have some.
#[test]
fn a_release_sets_the_version_and_cuts_the_changelog_in_a_clone_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let clone = folder.path().join("clone");
    let run = |program: &Path, words: &[&str]| {
        let output = Command::new(program).args(words).current_dir(folder.path()).output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let cloned =
        run(Path::new("git"), &["clone", "--quiet", &root().display().to_string(), &clone.display().to_string()]);
    assert_eq!(cloned.0, Some(0), "{}", cloned.1);
    let script = clone.join("scripts/release");
    for (version, words) in [("0.0.9", "is not above"), ("1.2", "accepted: three numbers")] {
        let (code, said) = run(&script, &[version, "--dry-run"]);
        assert!(code == Some(2) && said.contains(words), "{said}");
    }
    let (code, said) = run(&script, &["99.0.0", "--dry-run"]);
    assert_eq!(code, Some(0), "{said}");
    let of = |file: &str| std::fs::read_to_string(clone.join("out/release/99.0.0").join(file)).expect(file);
    assert!(of("source/Cargo.toml").contains("\nversion = \"99.0.0\""));
    assert!(of("source/CHANGELOG.md").contains("## Unreleased\n\n## 99.0.0 - 2"));
    assert!(of("source/docs/guide/install.md").contains("lasthop_99.0.0_amd64.deb"));
    assert!(of("files/NOTES.md").starts_with("### "));
    assert!(of("files/SHA256SUMS").ends_with("  NOTES.md\n"));
    let unchanged = run(Path::new("git"), &["-C", &clone.display().to_string(), "diff", "--exit-code", "--stat"]);
    assert_eq!(unchanged.0, Some(0), "the user's own tree is as it was");
}
