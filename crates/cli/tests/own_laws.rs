//! Laws of one's own as a user meets them: `lasthop laws build`, and scenarios that name a header. Simulated hosts; needs clang.

use crate::common::lasthop;
use lasthop_laws::own::SOURCES;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const EXAMPLE: &str = "scenarios/own-law/westwood.h";
/// The example of a law that sets its pace, from this heading on.
const PACED: (&str, &str) = ("scenarios/own-law/copa.h", "## 6. A law that sets its pace");

/// The command, with a folder of its own to compile in.
fn with_cache(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = lasthop(arguments);
    command.env("XDG_CACHE_HOME", folder.join("cache"));
    command
}

/// Standard output of the command, which succeeds.
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = with_cache(folder, arguments).output().expect("the command starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What the command says, which cannot be done.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = with_cache(folder, arguments).output().expect("the command starts");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).expect("written");
    path.display().to_string()
}

/// The header of a law of the tree.
fn header(name: &str) -> &'static str {
    SOURCES.iter().find(|(file, _)| *file == name).expect("a header").1
}

#[test]
fn the_code_of_the_tutorial_is_the_example() {
    let root = format!("{}/../..", env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(format!("{root}/docs/guide/own-law.md")).expect("the page");
    let lines = |text: &str| text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let (first, second) = page.split_once(PACED.1).expect("its heading");
    for (part, file) in [(first, EXAMPLE), (second, PACED.0)] {
        let pieces = part.split("```c\n").skip(1).map(|from| from.split_once("```").expect("an end").0);
        let example = fs::read_to_string(format!("{root}/{file}")).expect("the example");
        assert_eq!(lines(&pieces.collect::<String>()), lines(&example));
    }
}

#[test]
fn a_copy_of_a_law_outside_the_tree_gives_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut results = Vec::new();
    let (uploads, l4s) = (
        "count = 5\n[path]\nloss = 0.001\n",
        "[[hosts.flows]]\ndirection = \"down\"\n[access]\nkind = \"wired\"\nrate_mbps = 40\nqueue = \"dualpi2\"\n",
    );
    let quic = &*l4s.replace("[[hosts.flows]]\n", "[[hosts.flows]]\nkind = \"quic\"\ncongestion_control = \"host\"\n");
    for (law, rest) in [("newreno", uploads), ("chd", uploads), ("chd", quic), ("prague", l4s), ("prague", quic)] {
        written(folder.path(), &format!("{law}.h"), header(&format!("{law}.h")));
        for control in [law.to_owned(), format!("./{law}.h")] {
            let scenario =
                format!("name = \"x\"\nduration_s = 30\n[[hosts]]\ncongestion_control = \"{control}\"\n{rest}");
            let scenario = written(folder.path(), "x.toml", &scenario);
            let text = printed(folder.path(), &["run", &scenario, "--json"]);
            let mut result: Value = serde_json::from_str(&text).expect("JSON");
            // what says which law it is, and what it was made of; and the clock on the wall
            let block = result["scenario"]["hosts"][0].as_object_mut().expect("a block");
            assert_eq!(block.remove("law_digest").is_some(), control.ends_with(".h"));
            block.retain(|key, value| key != "congestion_control" && !value.is_object());
            for flow in result["flows"].as_array_mut().expect("flows") {
                assert_eq!(flow["congestion_control"], *control);
                flow["congestion_control"] = Value::Null;
            }
            for clock in ["wall_s", "simulated_s_per_wall_s"] {
                result[clock] = Value::Null;
            }
            results.push(result);
        }
    }
    for pair in results.chunks(2) {
        assert_eq!(pair[0], pair[1]);
    }
    for marked in [6, 8].map(|of| &results[of]) {
        assert!(marked["access"]["downlink_marks"].as_u64() > Some(100), "{}", marked["access"]);
    }
    assert_ne!(results[0]["flows"], results[2]["flows"]);
    assert_ne!(results[6]["flows"], results[8]["flows"]);
}

#[test]
fn two_laws_of_ones_own_stand_in_one_comparison_and_its_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let mine = fs::read_to_string(format!("{}/../../{EXAMPLE}", env!("CARGO_MANIFEST_DIR"))).expect("the example");
    // forgets half of what it has carried
    let mine =
        written(folder.path(), "mine.h", &mine.replace("return segments >", "segments /= 2;\n\treturn segments >"));
    let out = folder.path().join("out").display().to_string();
    // paths of the command line start where it is typed
    let vary = format!("hosts.0.congestion_control={EXAMPLE},{mine},cubic");
    let run = ["scenarios/own-law/lossy.toml", "--set", "duration_s=30", "--vary", &vary, "--json", "--out", &out];
    let comparison = printed(folder.path(), &[&["compare"][..], &run].concat());
    let comparison: Value = serde_json::from_str(&comparison).expect("JSON");
    let goodput =
        |case: usize| comparison["cases"][case]["runs"][0]["flows"][0]["goodput_mbps"].as_f64().expect("a goodput");
    let goodputs = [0, 1, 2].map(goodput);
    println!("{goodputs:?}");
    assert!(goodputs[0] > 1.5 * goodputs[1] && goodputs[0] > 2.0 * goodputs[2], "{goodputs:?}");
    let page = fs::read_to_string(Path::new(&out).join("report.html")).expect("a report");
    assert!(page.contains("mine.h") && page.contains("westwood.h"));
    // a result runs again, and only with the law that it was made with
    let kept = |law: &str| {
        let mut cases = fs::read_dir(Path::new(&out).join("cases")).expect("cases").flatten().map(|case| case.path());
        let case = cases.find(|case| case.to_string_lossy().contains(law)).expect("its case");
        case.join("scenario.toml").display().to_string()
    };
    // a header that was named by a relative path, too
    printed(folder.path(), &["run", &kept("westwood")]);
    printed(folder.path(), &["run", &format!("{out}/scenario.toml")]);
    let again = kept("mine");
    printed(folder.path(), &["run", &again]);
    let changed = fs::read_to_string(&mine).expect("it").replace("/= 2", "/= 3");
    fs::write(&mine, changed).expect("written");
    let message = refused(folder.path(), &["run", &again]);
    assert!(message.contains("law_digest") && message.contains("mine.h has changed"), "{message}");
}

#[test]
fn a_study_finds_a_law_and_a_trace_beside_its_own_file_wherever_it_is_started() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("scenarios")).expect("a folder");
    let scenario = "[path]\nrtt_ms = 20\n[[hosts]]\n[[changes]]\nat_s = 0\nof = \"path\"\ntrace = \"there.csv\"\n";
    written(folder.path(), "scenarios/lossy.toml", scenario);
    written(folder.path(), "here.csv", "at_s,rate_mbps\n0,5\n");
    written(
        folder.path(),
        "mine.h",
        &fs::read_to_string(format!("{}/../../{EXAMPLE}", env!("CARGO_MANIFEST_DIR"))).expect("it"),
    );
    let study = written(
        folder.path(),
        "laws.toml",
        "title = \"Laws\"\nsource = \"a test\"\nscenario = \"scenarios/lossy.toml\"\n[set]\nduration_s = 2\nwarmup_s = 1\nchanges.0.trace = \"here.csv\"\n\
         [[vary]]\naxis = \"law\"\nkey = \"hosts.0.congestion_control\"\nvalues = [\"cubic\", \"./mine.h\"]\n",
    );
    assert!(printed(folder.path(), &["study", &study, "--plan", "--seeds", "1"]).contains("2 runs"));
    fs::remove_file(folder.path().join("mine.h")).expect("removed");
    let message = refused(folder.path(), &["study", &study, "--plan"]);
    assert!(message.contains("./mine.h: the header of the law cannot be read"), "{message}");
}

#[test]
fn build_says_what_was_checked_and_keeps_what_it_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let text = printed(folder.path(), &["laws", "build", EXAMPLE, "--out", &out.display().to_string()]);
    for line in [
        "westwood: Westwood+",
        "parameter interval_ms = 50 (1 to 1000)",
        "compiles without a warning for this machine and for the kernel",
        "the kernel's verifier",
        "congestion_control = \"./westwood.h\"",
    ] {
        assert!(text.contains(line), "{line:?} is not in: {text}");
    }
    assert!(out.join("law.so").exists() && out.join("law.bpf.o").exists());
    let headers = folder.path().join("headers").display().to_string();
    printed(folder.path(), &["laws", "headers", &headers]);
    assert_eq!(fs::read_to_string(Path::new(&headers).join("law.h")).expect("a header"), header("law.h"));
    let simulated = written(folder.path(), "newreno.h", header("newreno.h"));
    let text = printed(folder.path(), &["laws", "build", &simulated]);
    assert!(text.contains("skipped  the kernel's verifier: its LH_LAW_ENTRY says Simulated"), "{text}");
}

#[test]
fn a_mistake_is_told_with_its_key_or_line_and_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |set: &str| refused(folder.path(), &["run", "scenarios/own-law/lossy.toml", "--set", set]);
    for (set, words) in [
        ("hosts.0.law_parameters.interval=20", "westwood has no such parameter; accepted: interval_ms"),
        ("hosts.0.law_parameters.interval_ms=0", "0 is out of range; accepted: a number from 1 to 1000"),
        ("hosts.0.law_parameters.interval_ms=x", "accepted: a number from 1 to 1000"),
        ("hosts.0.congestion_control=./nowhere.h", "./nowhere.h: the header of the law cannot be read"),
    ] {
        let message = run(set);
        assert!(message.contains(words) && message.contains(set), "{message}");
    }
    let simulated = written(folder.path(), "newreno.h", header("newreno.h"));
    let set = format!("hosts.0.congestion_control={simulated}");
    let run = ["run", "scenarios/own-law/lossy.toml", "--hosts", "kernel", "--set", &set];
    let message = refused(folder.path(), &run);
    assert!(message.contains("hosts[0].congestion_control") && message.contains("says Simulated"), "{message}");
    let divides = header("newreno.h").replace(
        "\t__u32 rest = acked->acked_segments;",
        "\t__u32 rest = acked->acked_segments + 1000 / acked->rtt_us;",
    );
    let divides = written(folder.path(), "newreno.h", &divides);
    let message = refused(folder.path(), &["laws", "build", &divides]);
    assert!(message.contains("newreno.h:") && message.contains("a law divides by zero"), "{message}");
    let mut without = with_cache(folder.path(), &["laws", "build", EXAMPLE]);
    let output = without.env("CLANG", "no-such-clang").output().expect("the command starts");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("apt install clang"), "{message}");
}
