//! Keys that a study sets in vain.

use lasthop_scenario::Override;
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

/// Each column would be named after a value that it does not have.
#[test]
fn a_key_of_an_axis_a_case_or_a_search_cannot_be_set_from_outside() {
    let head = "title = \"t\"\nsource = \"s\"\nscenario = \"base.toml\"\nseeds = 1\n";
    let case = "[[cases]]\nlabel = \"c\"\nset.hosts.0.policy = \"fixed\"\n";
    let search =
        "[cases.search]\nkey = \"hosts.0.bound_segments\"\nfrom = 1\nto = 9\nmaximise = 'at(\"jain_index\")'\n";
    let axis = "[[vary]]\naxis = \"n\"\nkey = \"hosts.0.count\"\nvalues = [1, 10]\n";
    let read = |text: &str| Study::from_toml("studies/x/odd.toml", text, &|_| Ok(UPLOADS.to_owned())).expect("a study");
    let study = read(&format!("{head}{case}{search}{axis}"));
    let of_all = read(&format!("{head}{}", axis.replace("hosts.0", "hosts.*")));
    let of_one = of_all.with_overrides(vec![Override::parse("hosts.0.count=5").expect("an override")]).plan(1);
    assert!(of_one.expect_err("a block of the axis").to_string().contains("sets hosts.*.count"));
    let plan = |set: &str| study.clone().with_overrides(vec![Override::parse(set).expect("an override")]).plan(1);
    for (set, place) in [
        ("hosts=[{ count = 5 }]", "odd.toml:"),
        ("hosts.*.count=5", "odd.toml:16: vary[0].values[0] sets hosts.0.count"),
        ("hosts.0.policy=none", "odd.toml:7: cases[0].set.hosts.0.policy sets hosts.0.policy"),
        ("hosts.0.bound_segments=5", "odd.toml:8: cases[0].search sets hosts.0.bound_segments"),
    ] {
        let told = plan(set).expect_err(set).to_string();
        assert!(told.starts_with(&format!("`{set}`: ")) && told.contains(place), "{told}");
        assert!(told.ends_with("accepted: a key that no case, axis or search sets"), "{told}");
    }
    assert_eq!(plan("path.rtt_ms=4").expect("no point is named after it").len(), 2);
}

fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    files.filter(|file| file.extension().is_some_and(|ending| ending == "toml")).collect()
}
