//! Keys that a study sets in vain.

use lasthop_study::Study;
use std::path::{Path, PathBuf};

const UPLOADS: &str = "duration_s = 20\n[access]\nrate_mbps = 54\n[path]\nrtt_ms = 20\n[[hosts]]\ncount = 3\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn no_study_that_is_here_sets_a_key_in_vain() {
    let (mut looked_at, mut told) = (0, Vec::new());
    for folder in std::fs::read_dir(root().join("studies")).expect("the studies") {
        for file in toml_files(&folder.expect("an entry").path()) {
            let study = Study::load(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let runs = study.plan(1).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            told.extend(study.ineffective_keys(&runs));
            looked_at += 1;
        }
    }
    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert!(looked_at >= 60, "{looked_at}");
}

#[test]
fn a_study_names_such_a_key_with_its_line() {
    let text = "title = \"t\"\nsource = \"s\"\nscenario = \"base.toml\"\nseeds = 1\nset.hosts.0.cut_ratio = 4\n";
    let study = Study::from_toml("studies/x/odd.toml", text, &|_| Ok(UPLOADS.to_owned())).expect("a study");
    let told = study.ineffective_keys(&study.plan(2).expect("runs"));
    let why = "policy is \"none\", and it is for \"formula\"";
    assert_eq!(
        told.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [format!("studies/x/odd.toml:5: hosts.0.cut_ratio has no effect here: {why}")]
    );
}

fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    files.filter(|file| file.extension().is_some_and(|ending| ending == "toml")).collect()
}
