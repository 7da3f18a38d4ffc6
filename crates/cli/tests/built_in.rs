//! What is compiled in: scenarios and studies by name from any folder, completions and man pages.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The command in a folder that has nothing of the repository.
fn lasthop_in(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(arguments).current_dir(folder);
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")).output().expect("the command starts")
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn repository(path: &str) -> String {
    fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).expect("a file of the repository")
}

const SHORT: [&str; 5] = ["--set", "duration_s=5", "--set", "warmup_s=1", "--json"];

fn name_of_result(output: &Output) -> String {
    let result: serde_json::Value = serde_json::from_str(&stdout(output)).expect("one JSON document");
    result["scenario"]["name"].as_str().expect("a name").to_owned()
}

#[test]
fn a_built_in_scenario_runs_from_any_folder_unless_a_file_has_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |name: &str| lasthop_in(folder.path(), &[&["run", name], &SHORT[..]].concat());
    let output = run("ten-uploads");
    assert_eq!(name_of_result(&output), "Ten stations upload through one 802.11g access point");
    assert!(stderr(&output).contains("scenario: the built-in ten-uploads\n"), "{}", stderr(&output));
    let mine = repository("scenarios/one-station.toml").replacen("name = \"One station", "name = \"My station", 1);
    fs::write(folder.path().join("ten-uploads.toml"), mine).expect("a file");
    let output = run("ten-uploads");
    assert!(name_of_result(&output).starts_with("My station"));
    let said = "scenario: the file ten-uploads.toml of this folder, not the built-in one\n";
    assert!(stderr(&output).contains(said), "{}", stderr(&output));
    // A path says which file is meant.
    let output = run("ten-uploads.toml");
    assert!(name_of_result(&output).starts_with("My station") && !stderr(&output).contains("built-in"));
}

#[test]
fn a_built_in_scenario_with_a_law_of_its_own_runs_and_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = lasthop_in(folder.path(), &[&["run", "own-law/lossy"], &SHORT[..]].concat());
    assert_eq!(name_of_result(&output), "Westwood+ and CUBIC over a lossy path");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

#[test]
fn an_unknown_scenario_is_refused_with_the_nearest_few() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, words) in [
        (["run", "ten-upload"], "there is no file ten-upload; there is no built-in scenario ten-upload; did you mean"),
        (["run", "scenarios/ten-uploads.toml"], "the built-in scenario is called ten-uploads"),
        (["run", "."], ". is a folder"),
        (["run", "mine.toml"], "cannot read the scenario mine.toml"),
        (["study", "hayakawa/fig-66"], "there is no study hayakawa/fig-66 here or built in; did you mean hayakawa/"),
    ] {
        let output = lasthop_in(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    }
    let output = lasthop_in(folder.path(), &["scenarios", "show", "office-80211"]);
    assert!(output.stdout.is_empty() && output.status.code() == Some(2));
    assert!(stderr(&output).contains("did you mean office-80211g"), "{}", stderr(&output));
}

#[test]
fn scenarios_are_listed_and_shown_with_the_files_beside_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let listed = stdout(&lasthop_in(folder.path(), &["scenarios", "list", "--json"]));
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("one JSON document");
    let listed = listed.as_array().expect("a list");
    let of = |name: &str| listed.iter().find(|scenario| scenario["name"] == name).expect("it is listed");
    assert_eq!(of("ten-uploads")["title"], "Ten stations upload through one 802.11g access point");
    assert_eq!(of("own-law/lossy")["beside"], serde_json::json!(["own-law/copa.h", "own-law/westwood.h"]));
    let rows = stdout(&lasthop_in(folder.path(), &["scenarios", "list"]));
    assert_eq!(rows.lines().count(), listed.len());
    for (name, file) in [
        ("ten-uploads", "ten-uploads.toml"),
        ("own-law/westwood.h", "own-law/westwood.h"),
        ("external/policy.py", "external/policy.py"),
    ] {
        let shown = stdout(&lasthop_in(folder.path(), &["scenarios", "show", name]));
        assert_eq!(shown, repository(&format!("scenarios/{file}")));
    }
}

#[test]
fn built_in_studies_are_listed_and_planned_from_any_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let listed = stdout(&lasthop_in(folder.path(), &["study", "--list", "--json"]));
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("one JSON document");
    let bianchi = listed.as_array().expect("a list").iter().find(|study| study["name"] == "validation/bianchi");
    assert_eq!(bianchi.expect("it is there")["place"], "built-in");
    let planned = lasthop_in(folder.path(), &["study", "validation/bianchi", "--plan", "--no-store"]);
    assert!(stdout(&planned).contains("validation/bianchi: "));
    assert!(stderr(&planned).contains("study: the built-in validation/bianchi\n"), "{}", stderr(&planned));
    let repository = format!("{}/../..", env!("CARGO_MANIFEST_DIR"));
    let planned = lasthop_in(Path::new(&repository), &["study", "validation/bianchi", "--plan", "--no-store"]);
    let said = "study: the file studies/validation/bianchi.toml of this folder, not the built-in one\n";
    assert!(stderr(&planned).contains(said), "{}", stderr(&planned));
}

/// 36 runs of kernel hosts of 25 s are 15 minutes, and as many simulated ones a second.
#[test]
fn a_plan_takes_the_time_of_kernel_hosts_alone_as_real() {
    let folder = tempfile::tempdir().expect("a folder");
    let planned = |more: &[&str]| {
        let plan = ["study", "validation/laboratory", "--plan", "--json", "--no-store"];
        let planned = lasthop_in(folder.path(), &[&plan[..], more].concat());
        let planned: serde_json::Value = serde_json::from_str(&stdout(&planned)).expect("one JSON document");
        assert_eq!(planned["runs"], 72);
        let minutes = planned["minutes_left"].as_f64().expect("a number");
        (minutes, planned["timed_by"].as_str().expect("words").to_owned())
    };
    let (minutes, by) = planned(&[]);
    assert!((15.0..15.1).contains(&minutes) && by == "real time", "{minutes}: {by}");
    // The emulated machine takes twice that, and several may run at once.
    let (minutes, by) = planned(&["--clock", "virtual", "--jobs", "4"]);
    assert!((7.5..7.6).contains(&minutes) && by.contains("emulated machine"), "{minutes}: {by}");
}

#[test]
fn shells_complete_every_subcommand_and_each_has_a_man_page() {
    let folder = tempfile::tempdir().expect("a folder");
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&lasthop_in(folder.path(), &["completions", shell]));
        for word in ["compare", "scenarios", "doctor", "retries"] {
            let known = script.contains(word);
            assert!(known, "{shell} does not know {word}");
        }
    }
    let bash = stdout(&lasthop_in(folder.path(), &["completions", "bash"]));
    let mut check = Command::new("bash").arg("-n").stdin(std::process::Stdio::piped()).spawn().expect("bash is there");
    std::io::Write::write_all(&mut check.stdin.take().expect("a pipe"), bash.as_bytes()).expect("bash reads");
    assert!(check.wait().expect("it ends").success(), "bash does not read its script");
    stdout(&lasthop_in(folder.path(), &["man", "pages"]));
    for (page, words) in
        [("lasthop.1", "lasthop\\-run(1)"), ("lasthop-run.1", "built\\-in"), ("lasthop-laws-build.1", "header")]
    {
        let text = fs::read_to_string(folder.path().join("pages").join(page)).expect(page);
        assert!(text.contains(words), "{page} does not say {words}");
    }
}
