//! `--out`: nothing of the user's is lost, and a result is there whole or not at all.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn lasthop(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn scenario(name: &str) -> String {
    format!("{}/../../scenarios/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A run of a second or so, with more arguments.
fn run(out: &Path, more: &[&str]) -> Output {
    let (file, out) = (scenario("one-station.toml"), out.display().to_string());
    let short = ["run", &file, "--json", "--set", "duration_s=4", "--set", "warmup_s=1", "--out", &out];
    lasthop(&[&short[..], more].concat()).output().expect("the command starts")
}

fn compare(out: &Path, more: &[&str]) -> Output {
    let (file, out) = (scenario("one-station.toml"), out.display().to_string());
    let vary = ["--vary", "path.rtt_ms=4,20"];
    let short =
        ["compare", "--no-store", &file, "--json", "--set", "duration_s=4", "--set", "warmup_s=1", "--out", &out];
    lasthop(&[&short[..], &vary, more].concat()).output().expect("the command starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn done(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
}

/// Exit code 2 before anything ran, and every one of `words` on standard error.
#[track_caller]
fn refused(output: &Output, words: &[&str]) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty() && !said.contains("of virtual time"), "it ran first: {said}");
    for word in words {
        assert!(said.contains(word), "no \"{word}\" in: {said}");
    }
}

/// Every file and folder below a folder; of files what is in them.
fn everything(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(&inside).expect("a folder").map(|entry| entry.expect("an entry")) {
            let name = entry.path().strip_prefix(folder).expect("it is inside").display().to_string();
            if entry.path().is_dir() {
                folders.push(entry.path());
                found.insert(format!("{name}/"), Vec::new());
            } else {
                found.insert(name, fs::read(entry.path()).expect("a file"));
            }
        }
    }
    found
}

/// A run that takes hours, once it has begun.
fn long_run(arguments: &[&str]) -> Child {
    let mut child =
        lasthop(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
    let mut lines = BufReader::new(child.stderr.as_mut().expect("a pipe")).lines().map_while(Result::ok);
    lines.find(|line| line.contains("of virtual time") || line.ends_with(" runs")).expect("it says when it begins");
    child
}

#[test]
fn files_of_the_user_stay_beside_a_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let mine = ["figures/my-own.svg", "cases/readme.txt", "paper.tex"];
    for file in mine {
        fs::create_dir_all(folder.path().join(file).parent().expect("a folder")).expect("a folder");
        fs::write(folder.path().join(file), file).expect("a file");
    }
    // Twice, so that the first result is replaced.
    for seed in ["1", "2"] {
        done(&run(folder.path(), &["--seed", seed]));
        let found = everything(folder.path());
        for file in mine {
            assert_eq!(found.get(file).map(Vec::as_slice), Some(file.as_bytes()), "{file}");
        }
        let result = String::from_utf8_lossy(&found["result.json"]).into_owned();
        assert_eq!(
            <lasthop_scenario::RunResult as lasthop_scenario::ResultFile>::from_json(&result).expect("a result").seed,
            seed.parse::<u64>().expect("one")
        );
        assert!(found.contains_key("figures/rtt.svg") && found.contains_key("report.html"));
    }
}

#[test]
fn figures_are_kept_in_the_formats_that_were_asked_for_and_no_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let formats = |out: &Path| {
        let found = everything(out);
        let of = |name: &String| name.strip_prefix("figures/rtt.").map(str::to_owned);
        found.keys().filter_map(of).collect::<Vec<String>>()
    };
    done(&run(folder.path(), &["--figures", "png,svg,pdf,svg"]));
    assert_eq!(formats(folder.path()), ["pdf", "png", "svg"]);
    // What an earlier result had and this one has not is gone.
    done(&run(folder.path(), &["--figures", "pdf"]));
    assert_eq!(formats(folder.path()), ["pdf"]);
    done(&run(folder.path(), &[]));
    assert_eq!(formats(folder.path()), ["svg"]);
    refused(&run(folder.path(), &["--figures", "svg,eps"]), &["eps", "--figures", "svg, pdf, png"]);
    let output =
        lasthop(&["run", &scenario("one-station.toml"), "--figures", "pdf"]).output().expect("the command starts");
    refused(&output, &["--out"]);
}

#[test]
fn a_file_of_the_user_that_is_in_the_way_is_named_before_the_run() {
    let of_a_run = ["result.json", "report.html", "scenario.toml", "figures/rtt.svg", "figures"];
    let of_a_comparison = ["comparison.json", "figures/summary.svg", "cases/2-rtt-ms-20/result.json", "cases"];
    let tries = of_a_run.map(|file| (file, false)).into_iter().chain(of_a_comparison.map(|file| (file, true)));
    for (file, is_comparison) in tries {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, "mine").expect("a file");
        let before = everything(folder.path());
        let output = if is_comparison { compare(folder.path(), &[]) } else { run(folder.path(), &[]) };
        let where_it_is = folder.path().display().to_string();
        refused(&output, &[file, &where_it_is, "was not written by lasthop", "give another folder"]);
        assert!(everything(folder.path()) == before, "{file}");
    }
}

#[test]
fn a_study_does_not_replace_what_it_has_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("short.toml");
    let text = format!(
        "title = \"t\"\nsource = \"s\"\nscenario = \"{}\"\nseeds = 1\nset.duration_s = 3\nset.warmup_s = 1\n[[vary]]\n\
         axis = \"n\"\nkey = \"hosts.0.count\"\nvalues = [1, 2]\n[[figures]]\ntitle = \"total\"\nx = \"n\"\n\
         y = \"aggregate_goodput_mbps\"\n",
        scenario("one-station.toml")
    );
    fs::write(&file, text).expect("a file");
    let out = folder.path().join("out");
    let study = || {
        lasthop(&["study", "--no-store", &file.display().to_string(), "--out", &out.display().to_string()])
            .output()
            .expect("it runs")
    };
    fs::create_dir_all(out.join("figures")).expect("a folder");
    fs::write(out.join("figures/1-total.svg"), "mine").expect("a file");
    refused(&study(), &["figures/1-total.svg", "was not written by lasthop"]);
    fs::rename(out.join("figures/1-total.svg"), out.join("figures/mine.svg")).expect("it was there");
    for _ in 0..2 {
        done(&study());
        let found = everything(&out);
        assert_eq!(found["figures/mine.svg"], b"mine");
        assert!(["study.json", "points.csv", "figures/1-total.svg"].iter().all(|file| found.contains_key(*file)));
    }
}

#[test]
fn what_the_user_has_changed_in_a_result_is_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    done(&run(folder.path(), &[]));
    let figure = folder.path().join("figures/rtt.svg");
    fs::write(&figure, "with my own marks").expect("a file");
    refused(&run(folder.path(), &[]), &["figures/rtt.svg", "has been changed since lasthop wrote it"]);
    assert_eq!(fs::read_to_string(&figure).expect("it is there"), "with my own marks");
    fs::remove_file(&figure).expect("it is there");
    done(&run(folder.path(), &[]));
    assert!(figure.exists());
}

#[test]
fn a_comparison_does_not_replace_a_run() {
    let folder = tempfile::tempdir().expect("a folder");
    done(&run(folder.path(), &[]));
    let before = everything(folder.path());
    refused(&compare(folder.path(), &[]), &["the result of a run", "a comparison", "give another folder"]);
    assert!(everything(folder.path()) == before);
}

#[test]
fn a_smaller_comparison_leaves_no_case_of_a_larger_one() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("notes.txt"), "mine").expect("a file");
    done(&compare(folder.path(), &["--vary", "hosts.0.count=1,2"]));
    assert!(folder.path().join("cases/4-rtt-ms-20-count-2/scenario.toml").exists());
    done(&compare(folder.path(), &[]));
    let cases: Vec<String> = everything(folder.path()).into_keys().filter(|name| name.ends_with('/')).collect();
    let figures = ["cases/1-rtt-ms-4/figures/", "cases/2-rtt-ms-20/figures/", "figures/"];
    assert_eq!(
        cases,
        [&["cases/", "cases/1-rtt-ms-4/"], &figures[..1], &["cases/2-rtt-ms-20/"], &figures[1..]].concat()
    );
    assert!(folder.path().join("notes.txt").exists());
}

#[test]
fn the_scenario_that_is_kept_runs_again_to_the_same_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let (once, again) = (folder.path().join("once"), folder.path().join("again"));
    done(&run(&once, &["--set", "hosts.0.count=2"]));
    let file = once.join("scenario.toml").display().to_string();
    let output = lasthop(&["run", &file, "--out", &again.display().to_string()]).output().expect("it starts");
    done(&output);
    assert!(!said(&output).contains("note:"), "{}", said(&output));
    let bytes = |out: &Path| fs::read(out.join("series.parquet")).expect("the series");
    assert!(bytes(&once) == bytes(&again));
}

#[test]
fn of_two_writers_the_second_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let shown = out.display().to_string();
    let mut first = long_run(&[
        "run",
        &scenario("ten-uploads.toml"),
        "--set",
        "duration_s=86400",
        "--set",
        "sample_ms=5000",
        "--out",
        &shown,
    ]);
    refused(&run(&out, &[]), &[&shown, "another lasthop"]);
    refused(&compare(&out, &[]), &[&shown, "another lasthop"]);
    first.kill().expect("it is ours");
    first.wait().expect("it ends");
    done(&run(&out, &[]));
}

#[test]
fn an_interrupted_run_ends_with_130_and_leaves_no_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("a/b");
    let arguments = [
        "run",
        &scenario("ten-uploads.toml"),
        "--set",
        "duration_s=86400",
        "--set",
        "sample_ms=5000",
        "--out",
        &out.display().to_string(),
    ];
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let child = long_run(&arguments);
        assert!(out.is_dir());
        kill(Pid::from_raw(child.id() as i32), signal).expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{}", said(&output));
        assert!(output.stdout.is_empty() && said(&output).contains("interrupted: nothing was kept"));
        assert!(!folder.path().join("a").exists(), "an empty folder is left");
    }
}

#[test]
fn an_interrupted_comparison_keeps_the_earlier_one_and_prints_no_table() {
    let folder = tempfile::tempdir().expect("a folder");
    done(&compare(folder.path(), &[]));
    let before = everything(folder.path());
    let (file, out) = (scenario("ten-uploads.toml"), folder.path().display().to_string());
    let cases = ["--case", "short: duration_s=3 warmup_s=1", "--case", "long: duration_s=86400 sample_ms=5000"];
    let child = long_run(&[&["compare", "--no-store", &file, "--jobs", "1", "--out", &out][..], &cases].concat());
    // The short one is over when so much time of a core has gone.
    let cpu_ticks = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("it runs");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
        fields[11].parse::<u64>().expect("a number")
    };
    while cpu_ticks() < 200 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(said(&output).contains("interrupted: 1 of 2 runs were done, and nothing was kept"), "{}", said(&output));
    assert!(!said(&output).contains("2 of 2 runs"), "{}", said(&output));
    assert!(output.stdout.is_empty(), "a table of some of the cases misleads");
    assert!(everything(folder.path()) == before);
}

#[test]
fn an_interrupted_study_ends_with_130() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("long.toml");
    let text = format!(
        "title = \"t\"\nsource = \"s\"\nscenario = \"{}\"\nseeds = 1\nset.duration_s = 86400\nset.sample_ms = 5000\n",
        scenario("ten-uploads.toml")
    );
    fs::write(&file, text).expect("a file");
    let out = folder.path().join("out");
    let child = long_run(&["study", "--no-store", &file.display().to_string(), "--out", &out.display().to_string()]);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(said(&output).contains("interrupted") && output.stdout.is_empty() && !out.exists());
}

/// Runs a shell script as root with a file system of so many KiB at `folder`, which nobody else sees.
fn on_a_small_disk(folder: &Path, kib: u32, script: &str) -> Option<Output> {
    if !nix::unistd::geteuid().is_root() {
        crate::common::skip("mounting needs root");
        return None;
    }
    let mount = "mount --make-rprivate / && mount -t tmpfs -o size=\"$1\" none \"$2\" && cd \"$2\"";
    let script = format!("{mount} || exit 77\n{script}");
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script, "sh", &format!("{kib}k")])
        .args([&folder.display().to_string(), env!("CARGO_BIN_EXE_lasthop"), &scenario("one-station.toml")])
        .output()
        .expect("unshare(1) starts");
    if output.status.code() == Some(77) {
        crate::common::skip(&format!("no tmpfs can be mounted here: {}", said(&output)));
        return None;
    }
    Some(output)
}

#[test]
fn a_full_disk_leaves_the_earlier_result_or_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    // Room for the first, not for one of a hundred hosts beside it.
    let script = "
        short='--set duration_s=4 --set warmup_s=1 --json'
        \"$3\" run \"$4\" $short --out out >/dev/null || exit 70
        find out -type f | sort | xargs sha256sum > /dev/shm/lasthop-before-$$
        \"$3\" run \"$4\" $short --set hosts.0.count=100 --set sample_ms=5 --out out >/dev/null
        echo \"ended with $?\"
        \"$3\" run \"$4\" $short --set hosts.0.count=100 --set sample_ms=5 --out fresh/out >/dev/null
        echo \"ended with $?\"
        find out -type f | sort | xargs sha256sum | cmp - /dev/shm/lasthop-before-$$ && echo as it was
        rm -f /dev/shm/lasthop-before-$$
        ls -A
        find . -name '.lasthop-*'";
    let Some(output) = on_a_small_disk(folder.path(), 600, script) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(told, "ended with 2\nended with 2\nas it was\nout\n", "{}", said(&output));
    assert!(said(&output).contains("No space left on device"), "{}", said(&output));
    assert!(said(&output).contains("the result is not kept in out: it has what it had before"), "{}", said(&output));
}

#[test]
fn a_full_disk_is_told_with_the_file_that_has_no_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "
        short='--set duration_s=4 --set warmup_s=1 --json'
        kept=$(mktemp -d /dev/shm/lasthop-kept-XXXXXX)
        \"$3\" run \"$4\" $short --out $kept/out >/dev/null || exit 70
        mkdir man
        dd if=/dev/zero of=fill bs=1k 2>/dev/null
        \"$3\" run \"$4\" $short --pcap x.pcapng >/dev/null
        \"$3\" run \"$4\" $short --out out >/dev/null
        \"$3\" export $kept/out --format csv --out csv
        \"$3\" man man
        \"$3\" laws headers headers
        rm -rf $kept";
    let Some(output) = on_a_small_disk(folder.path(), 600, script) else { return };
    let told = said(&output);
    let full: Vec<&str> = told.lines().filter(|line| line.contains("No space left on device")).collect();
    let files = ["x.pcapng", "out/.lasthop-new/result.json", "csv/flows.csv", "man/lasthop", "headers/"];
    assert_eq!(full.len(), files.len(), "{told}");
    for (line, file) in full.iter().zip(files) {
        assert!(line.contains(file), "{line} does not name {file}");
    }
}

#[test]
fn what_a_killed_process_left_half_done_is_undone_or_finished() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |file: &str| folder.path().join(file);
    done(&run(folder.path(), &["--seed", "1"]));
    let first = everything(folder.path());
    let moved = |from: &str, to: &str| {
        fs::create_dir_all(path(to).parent().expect("a folder")).expect("a folder");
        fs::rename(path(from), path(to)).expect("it is there");
    };
    let other = tempfile::tempdir().expect("a folder");
    done(&run(other.path(), &["--seed", "2"]));
    let files: Vec<String> = everything(other.path()).into_keys().filter(|file| !file.ends_with('/')).collect();
    // Killed when the earlier result was out of the way and the new one half in its place.
    for file in &files {
        moved(file, &format!(".lasthop-old/{file}"));
    }
    for (number, file) in files.iter().enumerate() {
        let to = if number > files.len() / 2 { file.clone() } else { format!(".lasthop-new/{file}") };
        fs::create_dir_all(path(&to).parent().expect("a folder")).expect("a folder");
        fs::copy(other.path().join(file), path(&to)).expect("a copy");
    }
    refused(&compare(folder.path(), &[]), &["the result of a run"]);
    assert!(everything(folder.path()) == first, "the earlier result is back, and nothing else");
    // Killed when all was in its place.
    for file in &files {
        moved(file, &format!(".lasthop-old/{file}"));
        fs::copy(other.path().join(file), path(file)).expect("a copy");
    }
    fs::create_dir(path(".lasthop-new")).expect("a folder");
    refused(&compare(folder.path(), &[]), &["the result of a run"]);
    let second = everything(other.path());
    assert!(everything(folder.path()) == second, "the new result is there, and nothing else");
    // Killed when the earlier result was half back, after a new one with the same files.
    for (number, file) in files.iter().enumerate() {
        fs::create_dir_all(path(&format!(".lasthop-new/{file}")).parent().expect("a folder")).expect("a folder");
        fs::copy(path(file), path(&format!(".lasthop-new/{file}"))).expect("a copy");
        if number < files.len() / 2 {
            moved(file, &format!(".lasthop-old/{file}"));
        }
    }
    refused(&compare(folder.path(), &[]), &["the result of a run"]);
    assert!(everything(folder.path()) == second, "the earlier result is back, and nothing else");
}

#[test]
fn what_a_user_puts_into_the_place_of_a_half_done_result_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |file: &str| folder.path().join(file);
    done(&run(folder.path(), &["--seed", "1"]));
    // Killed when the earlier result was out of the way; then somebody writes a file of its name.
    fs::create_dir_all(path(".lasthop-old")).expect("a folder");
    fs::rename(path("result.json"), path(".lasthop-old/result.json")).expect("it is there");
    fs::rename(path(".lasthop.json"), path(".lasthop-old/.lasthop.json")).expect("it is there");
    fs::write(path("result.json"), "mine").expect("a file");
    let before = everything(folder.path());
    refused(
        &run(folder.path(), &[]),
        &["result.json is in the place of", ".lasthop-old/result.json", "move one of them"],
    );
    assert!(everything(folder.path()) == before, "nothing was touched");
}

#[test]
fn a_manifest_that_is_not_lasthops_removes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let outside = folder.path().join("outside.txt");
    fs::write(&outside, "mine").expect("a file");
    let out = folder.path().join("out");
    fs::create_dir(&out).expect("a folder");
    let digest = "0f4c17ffbf2f4a3cbc1f3b5a8d4d0b0c1b6c0d6ae4ee5de3ea3a1e5ff7b1d8b2";
    for manifest in [
        "not JSON".to_owned(),
        format!(r#"{{"schema_version": 1, "kind": "run", "files": {{"../outside.txt": "{digest}"}}}}"#),
        r#"{"schema_version": 9, "kind": "run", "files": {}}"#.to_owned(),
    ] {
        fs::write(out.join(".lasthop.json"), &manifest).expect("a file");
        refused(&run(&out, &[]), &[".lasthop.json", "is not lasthop's list of its files", "give another folder"]);
        assert_eq!(fs::read_to_string(out.join(".lasthop.json")).expect("it is there"), manifest);
    }
    assert!(outside.exists());
}
