//! The command line as a user meets it: what it says to nonsense, and its exit codes.

use lasthop_scenario::ResultFile as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn lasthop(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lasthop")).args(arguments).output().expect("the command starts")
}

fn scenario(name: &str) -> String {
    format!("{}/../../scenarios/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Exit code 2, nothing on standard output, and every one of `words` on standard error.
fn refused(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    for word in words {
        assert!(said.contains(word), "no \"{word}\" in: {said}");
    }
}

#[test]
fn an_unknown_key_is_named_with_what_is_accepted() {
    let output = lasthop(&["run", &scenario("ten-uploads.toml"), "--set", "access.queue_pakets=50"]);
    refused(&output, &["access.queue_pakets=50", "did you mean access.queue_packets", "rate_mbps"]);
    let output = lasthop(&["run", &scenario("ten-uploads.toml"), "--set", "path.rtt=4"]);
    refused(&output, &["`path.rtt=4`: unknown key path.rtt; did you mean path.rtt_ms?"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("typo.toml");
    fs::write(&file, "duration_s = 20\n[access]\nqueue_pakets = 50\n[[hosts]]\n").expect("a file");
    refused(&lasthop(&["run", &file.display().to_string()]), &["typo.toml:3", "access.queue_pakets", "queue_packets"]);
}

#[test]
fn a_negative_rate_is_refused_with_the_range() {
    let output = lasthop(&["run", &scenario("ten-uploads.toml"), "--set", "path.rate_mbps=-3"]);
    refused(&output, &["path.rate_mbps", "-3"]);
}

#[test]
fn a_standard_that_the_files_rate_does_not_go_with_is_blamed_itself() {
    let file = scenario("ten-uploads.toml");
    let output = lasthop(&["run", &file, "--set", "access.standard=802.11b"]);
    let words = "access.standard: access.rate_mbps is 54 Mb/s (line ";
    refused(
        &output,
        &["`access.standard=802.11b`", words, "which does not go with it", "with access.rate_mbps set as well"],
    );
    let both = ["--set", "access.standard=802.11b", "--set", "access.rate_mbps=54"];
    refused(&lasthop(&[&["run", &file][..], &both].concat()), &["`access.rate_mbps=54`", "cannot be here"]);
}

#[test]
fn the_kernels_name_of_a_congestion_control_is_told_the_formats() {
    let output = lasthop(&["run", &scenario("ten-uploads.toml"), "--set", "hosts.0.congestion_control=reno"]);
    refused(&output, &["no congestion control \"reno\"", "did you mean \"newreno\"?"]);
}

/// What standard error says of keys without effect.
fn notes(arguments: &[&str]) -> Vec<String> {
    let output = lasthop(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    said.lines().filter(|line| line.starts_with("note:")).map(str::to_owned).collect()
}

#[test]
fn keys_that_are_set_in_vain_are_named_once() {
    let file = scenario("one-station.toml");
    let short = ["--set", "duration_s=3", "--set", "warmup_s=1"];
    let fixed = ["--set", "hosts.0.policy=fixed", "--set", "hosts.0.enable_ratio=3"];
    let told = notes(&[&["run", &file][..], &short, &fixed].concat());
    let begin = "note: the command line: hosts.0.enable_ratio has no effect here: policy is \"fixed\", and it is for \"table\", \"formula\"";
    assert!(told.len() == 1 && told[0].starts_with(begin), "{told:?}");
    let told = notes(&[&["run", &file][..], &short, &["--set", "hosts.0.bound_segments=9"]].concat());
    assert!(told.len() == 1 && told[0].contains("hosts.0.bound_segments has no effect here"), "{told:?}");
    let wired = ["--set", "access.kind=wired", "--set", "access.rate_control=arf"];
    let told = notes(&[&["run", &file][..], &short, &wired].concat());
    assert!(told.len() == 1 && told[0].contains("access.rate_control has no effect here"), "{told:?}");
    // One case has the policy that the bound is for, none the one that the ratio is for.
    let vary =
        ["--vary", "hosts.0.policy=none,fixed", "--set", "hosts.0.bound_segments=9", "--set", "hosts.0.cut_ratio=3"];
    let told = notes(&[&["compare", "--no-store", &file, "--seeds", "2"][..], &short, &vary].concat());
    assert!(told.len() == 1 && told[0].contains("hosts.0.cut_ratio has no effect here"), "{told:?}");
    assert!(notes(&[&["run", &file][..], &short].concat()).is_empty());
}

#[test]
fn a_run_that_needs_more_memory_than_there_is_is_refused_before_it_starts() {
    let day = ["--set", "duration_s=86400", "--set", "sample_ms=1", "--set", "hosts.0.count=250"];
    let file = scenario("ten-uploads.toml");
    let output = lasthop(&[&["run", &file][..], &day].concat());
    let words = ["1.6 TB of memory", "available", "sample_ms", "duration_s", "[[hosts]]"];
    refused(&output, &words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("of virtual time") && !said.contains("--out"), "{said}");
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out").display().to_string();
    let seeds = ["--vary", "path.rtt_ms=4,256", "--seeds", "1000", "--set", "sample_ms=1", "--out", &out];
    refused(
        &lasthop(&[&["compare", &file][..], &seeds].concat()),
        &["of memory", "fewer seeds or cases", "leave --out away"],
    );
    assert!(!folder.path().join("out").exists());
    let study = folder.path().join("long.toml");
    let text = format!(
        "title = \"t\"\nsource = \"s\"\nscenario = \"{file}\"\nseeds = 1\nset.duration_s = 86400\nset.sample_ms = 1\n"
    );
    fs::write(&study, format!("{text}set.hosts.0.count = 250\n")).expect("a file");
    refused(&lasthop(&["study", &study.display().to_string()]), &["TB of memory"]);
}

/// `timeout` ends it after a minute, with another code than 2.
#[test]
fn a_pipe_that_nobody_writes_into_is_refused_at_once_wherever_a_file_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (pipe, header, traced) = (path("pipe"), path("pipe.h"), path("traced.toml"));
    for pipe in [&pipe, &header] {
        nix::unistd::mkfifo(pipe.as_str(), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    }
    fs::write(&traced, "[[hosts]]\n[[changes]]\ntrace = \"pipe\"\n").expect("a file");
    fs::create_dir(path("result")).expect("a folder");
    nix::unistd::mkfifo(path("result/result.json").as_str(), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let result = path("result");
    for arguments in [
        &["run", &pipe][..],
        &["run", &traced],
        &["compare", &pipe, "--seeds", "2"],
        &["exec", &pipe, "--", "true"],
        &["export", &pipe, "--format", "csv"],
        &["export", &result, "--format", "csv"],
        &["doctor", "--config", &pipe],
        &["agent", "--config", &pipe],
        &["top", "--replay", &pipe],
        &["trace", "from", &pipe],
    ] {
        let output = patient(arguments);
        refused(&output, &["it is a pipe that nobody writes into", "a file, or a pipe that somebody writes into"]);
    }
    refused(&patient(&["laws", "build", &header]), &["pipe.h", "no regular file"]);
    refused(&patient(&["run", "one-station", "--out", &pipe]), &["cannot keep results in", "it is not a folder"]);
    // Whoever reads standard input or a pipe with a writer goes on as before.
    let substituted = format!(
        "{} run <(cat {}) --set duration_s=2 --set warmup_s=1 --json",
        env!("CARGO_BIN_EXE_lasthop"),
        scenario("one-station.toml")
    );
    let output = Command::new("timeout").args(["60", "bash", "-c", &substituted]).output().expect("bash starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

fn patient(arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["60", env!("CARGO_BIN_EXE_lasthop")]).args(arguments).stdin(Stdio::null());
    command.output().expect("the command starts")
}

#[test]
fn a_missing_file_is_named() {
    refused(&lasthop(&["run", "no-such-scenario.toml"]), &["no-such-scenario.toml", "No such file"]);
}

#[test]
fn an_override_without_a_value_is_refused_before_anything_runs() {
    let output = lasthop(&["run", &scenario("ten-uploads.toml"), "--set", "access.queue_packets"]);
    refused(&output, &["access.queue_packets", "key=value"]);
}

#[test]
fn a_policy_that_does_not_exist_is_refused_with_those_that_do() {
    let output = lasthop(&["run", &scenario("ten-uploads.toml"), "--set", "hosts.0.policy=magic"]);
    refused(&output, &["policy", "magic", "formula"]);
    refused(&lasthop(&["agent", "--policy", "magic"]), &["magic", "formula", "fixed"]);
}

#[test]
fn a_wrong_case_is_found_before_the_first_one_runs() {
    let output = lasthop(&[
        "compare",
        &scenario("ten-uploads.toml"),
        "--case",
        "fine: hosts.0.policy=none",
        "--case",
        "wrong: hosts.0.count=many",
    ]);
    refused(&output, &["the case \"wrong\"", "count"]);
}

#[test]
fn cases_need_labels_of_their_own_and_leave_the_seed_alone() {
    let compare = |first: &str, second: &str| {
        lasthop(&["compare", &scenario("ten-uploads.toml"), "--case", first, "--case", second])
    };
    refused(&compare("a: path.rtt_ms=4", "a: path.rtt_ms=9"), &["two cases are called \"a\""]);
    refused(&compare("a: seed=4", "b: seed=5"), &["--seeds"]);
    refused(&lasthop(&["compare", &scenario("ten-uploads.toml"), "--vary", "seed=1,2"]), &["--seeds"]);
}

#[test]
fn a_scenario_that_is_no_medium_of_radios_is_refused_by_its_key() {
    for (name, words) in [
        ("both-ways-ac", &["both-ways-ac: access.standard", "802.11ac", "accepted", "802.11n"][..]),
        ("roaming", &["roaming: cells[0].channel", "accepted: no channel"]),
        ("wu-chain", &["wu-chain: links", "[access]"]),
    ] {
        refused(&lasthop(&["medium", name]), words);
    }
    refused(&lasthop(&["medium", "ten-uploads", "--set", "access.standard=802.11z"]), &["access.standard", "802.11g"]);
}

#[test]
fn a_congestion_control_that_the_kernel_lacks_is_found_before_the_first_run() {
    if !nix::unistd::geteuid().is_root() {
        return crate::common::skip("kernel hosts need root");
    }
    let output = lasthop(&[
        "compare",
        &scenario("ten-uploads.toml"),
        "--case",
        "fine: hosts.0.policy=none",
        "--case",
        "odd: hosts.0.congestion_control=nosuch",
    ]);
    refused(&output, &["the case \"odd\"", "nosuch", "cubic"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_found_before_the_run() {
    if !nix::unistd::geteuid().is_root() {
        return crate::common::skip("kernel hosts need root");
    }
    let output = lasthop(&["run", &scenario("ten-uploads.toml"), "--out", "/proc/nowhere"]);
    refused(&output, &["/proc/nowhere"]);
    // What it says when a run begins: "... 40 s of virtual time".
    assert!(!String::from_utf8_lossy(&output.stderr).contains("of virtual time"), "it ran first");
}

#[test]
fn one_case_is_no_comparison() {
    refused(&lasthop(&["compare", &scenario("ten-uploads.toml")]), &["--vary", "--case", "--seeds"]);
    let twice = ["--vary", "path.rtt_ms=4,8", "--vary", "path.rtt_ms=1,2"];
    refused(
        &lasthop(&[&["compare", "home"][..], &twice].concat()),
        &["path.rtt_ms=4 has no effect", "accepted: each key"],
    );
    for (option, range) in [("--seeds", "1 to 1000"), ("--jobs", "1 to 65535"), ("--retries", "0 to 100")] {
        for number in ["x", "-1", "1.5"] {
            let output = lasthop(&["compare", "home", option, number]);
            refused(&output, &[option, &format!("accepted: a whole number from {range}")]);
        }
    }
}

#[test]
fn a_wrong_configuration_of_the_agent_is_named_with_its_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("agent.toml");
    fs::write(&config, "tick_ms = -5\n").expect("a file");
    refused(&lasthop(&["agent", "--config", &config.display().to_string()]), &["agent.toml", "tick_ms"]);
    fs::write(&config, "tik_ms = 500\n").expect("a file");
    refused(&lasthop(&["agent", "--config", &config.display().to_string()]), &["agent.toml", "tik_ms", "tick_ms"]);
}

#[test]
fn a_bound_that_no_policy_looks_at_is_refused_with_the_policy_that_does() {
    // A flag is shown as it was typed.
    refused(
        &lasthop(&["agent", "--no-config", "--policy", "fromula"]),
        &["`--policy fromula`", "did you mean", "formula"],
    );
    for number in ["nan", "inf", "-1"] {
        let flag = format!("--bound-pacing-mbps={number}");
        refused(
            &lasthop(&["agent", "--no-config", &flag]),
            &[&format!("`--bound-pacing-mbps {number}"), "accepted: a number"],
        );
    }
    refused(&lasthop(&["agent", "--bound-segments", "64"]), &["--bound-segments", "--policy fixed", "lasthop"]);
    let with_formula = ["agent", "--policy", "formula", "--bound-pacing-mbps", "2"];
    refused(&lasthop(&with_formula), &["--bound-pacing-mbps", "--policy fixed", "formula"]);
}

#[test]
fn the_doctor_says_what_decides_and_lasthop_does_where_nothing_else_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("agent.toml");
    fs::write(&config, "mode = \"advise\"\n[policy]\npolicy = \"formula\"\n").expect("a file");
    let decides = |arguments: &[&str]| {
        let output = lasthop(arguments);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.lines().find_map(|line| line.strip_prefix("agent      ")).unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    assert_eq!(
        decides(&["doctor", "--no-config"]),
        "mode advise, policy lasthop (the defaults; --mode control has it control)"
    );
    let packaged = format!("{}/../../packaging/agent.toml", env!("CARGO_MANIFEST_DIR"));
    assert_eq!(decides(&["doctor", "--config", &packaged]), "mode advise, policy lasthop");
    assert_eq!(decides(&["doctor", "--config", &config.display().to_string()]), "mode advise, policy formula");
}

#[test]
fn the_doctor_says_the_same_as_one_json_document() {
    let output = lasthop(&["doctor", "--no-config", "--json"]);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!((&found["schema"], &found["agent"]["policy"]), (&1.into(), &"lasthop".into()));
    assert!(found["agent"]["config"].is_null());
    let features = found["features"].as_array().expect("a list");
    let text = lasthop(&["doctor", "--no-config"]);
    let text = String::from_utf8_lossy(&text.stdout);
    for feature in features {
        let word = if feature["present"] == true { "present" } else { "missing" };
        assert!(text.contains(&format!("{word}  {}", feature["text"].as_str().expect("a text"))), "{feature}");
    }
    let best = found["best_mode"].as_str().expect("a word");
    assert!(text.contains(&format!("best mode  {best}: ")), "{text}");
    // Only mode control replaces what connections have.
    let default = found["agent"]["default_control"].as_str();
    assert_eq!(default.is_some(), best == "control");
    let line = default.map_or("\ndefault ".to_owned(), |default| format!("\ndefault    mode control: {default}\n"));
    assert_eq!(text.contains(&line), default.is_some(), "{text}");
    assert_eq!(output.status.code(), Some(i32::from(best != "control")));
}

#[test]
fn the_doctor_says_what_a_configuration_would_tell_servers() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("agent.toml");
    let path = config.display().to_string();
    let asked = |arguments: &[&str]| {
        let output = lasthop(&[&["doctor", "--config", &path], arguments].concat());
        // 1: the agent could not control here, which has nothing to do with the configuration
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    fs::write(&config, "[last_link]\nreport = true\nbandwidth_mbps = 20.0\n").expect("a file");
    let said = asked(&["--interface", "lo"]);
    assert!(said.contains("\nreports    20 Mb/s (configuration), error rate once it is measured; behind "), "{said}");
    assert!(said.contains("\ninterface  lo: "), "{said}");
    fs::write(&config, "interface = \"lh-nosuch0\"\n[last_link]\nbandwidth_mbps = 20.0\n").expect("a file");
    let said = asked(&["--interface", "lo"]);
    assert!(said.contains("\nreports    none, although 20 Mb/s is given: [last_link] report = true"), "{said}");
    assert!(!said.contains("could not start"), "{said}");
    let said = asked(&[]);
    let cannot = "\n           it could not start: interface: there is no interface lh-nosuch0";
    assert!(said.contains(cannot) && said.contains("\nreports    none: there is"), "{said}");
    assert_eq!(lasthop(&["doctor", "--config", &path]).status.code(), Some(1));
    fs::write(&config, "[beacon]\ngroup_key_file = \"/lh-nosuch\"\n").expect("a file");
    assert!(asked(&["--interface", "lo"]).contains("it could not start: "), "a key that is not there");
    let strangers = "[[rules]]\nuser = \"lh-nosuch-user\"\ngovern = false\n";
    fs::write(&config, strangers).expect("a file");
    assert!(
        asked(&["--interface", "lo"]).contains("it could not start: rules[0].user: there is no user"),
        "a user's name"
    );
    // The flag counts before the file is judged, as it does for the agent.
    fs::write(&config, "tunnels = [\"lo\"]\n").expect("a file");
    refused(
        &lasthop(&["doctor", "--config", &path, "--interface", "lo"]),
        &["agent.toml", "tunnels", "managed interface"],
    );
    let output = lasthop(&["doctor", "--no-config", "--interface", "lh-nosuch0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains(cannot), "{output:?}");
    fs::write(&config, "[last_link]\nbandwidth_mbps = -1\n").expect("a file");
    refused(&lasthop(&["doctor", "--config", &path]), &["agent.toml", "last_link.bandwidth_mbps"]);
}

#[test]
fn kernel_hosts_without_root_are_refused_with_what_to_do() {
    if !nix::unistd::geteuid().is_root() {
        refused(&lasthop(&["run", &scenario("one-station.toml"), "--hosts", "kernel"]), &["root"]);
        return;
    }
    // As root, become nobody: with copies that nobody can read, wherever this is checked out.
    let folder = tempfile::tempdir().expect("a folder");
    let copy = |from: PathBuf, name: &str| {
        let to = folder.path().join(name);
        fs::copy(from, &to).expect("a copy");
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).expect("permissions");
        to
    };
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    let program = copy(env!("CARGO_BIN_EXE_lasthop").into(), "lasthop");
    let scenario = copy(scenario("one-station.toml").into(), "one-station.toml");
    let output = Command::new(program)
        .args(["run", "--hosts", "kernel"])
        .arg(scenario)
        .uid(65534)
        .gid(65534)
        .output()
        .expect("it starts");
    refused(&output, &["root"]);
}

fn studies() -> String {
    format!("{}/../../studies", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_study_that_does_not_exist_is_refused_with_the_nearest_few() {
    let output = lasthop(&["study", "hayakawa/fig-66", "--studies", &studies()]);
    refused(&output, &["no study hayakawa/fig-66", "did you mean hayakawa/fig-", "`lasthop study --list` has all"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.matches("hayakawa/").count() <= 4 && !said.contains("validation/bianchi"), "{said}");
    let output = lasthop(&["study", "bianci", "--studies", &studies()]);
    refused(&output, &["did you mean validation/bianchi?"]);
    refused(&lasthop(&["study", "x/y", "--studies", "/nowhere"]), &["/nowhere", "--studies DIR"]);
    refused(&lasthop(&["study", "no-such.toml"]), &["cannot read the study no-such.toml", "No such file"]);
    refused(&lasthop(&["study"]), &["NAME"]);
    refused(&lasthop(&["study", "x/y", "--list"]), &["--list"]);
    refused(&lasthop(&["study", "x/y", "--seeds", "0"]), &["--seeds", "1 to 1000"]);
    refused(&lasthop(&["study", "x/y", "--jobs", "0"]), &["--jobs"]);
}

#[test]
fn nonsense_in_a_study_is_named_with_its_line_and_what_is_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("odd.toml");
    let study = |text: &str| {
        fs::write(&file, text).expect("a file");
        lasthop(&["study", "--no-store", &file.display().to_string()])
    };
    let good = format!("title = \"t\"\nsource = \"s\"\nscenario = \"{}\"\nseeds = 1\n", scenario("one-station.toml"));
    refused(
        &study(&good.replace("seeds = 1", "seeds = \"one\"")),
        &["odd.toml:4: seeds: \"one\" is text", "1 to 1000"],
    );
    let vary = "[[vary]]\naxis = \"n\"\nkey = \"hosts.0.cont\"\nvalues = [1, 2]\n";
    refused(
        &study(&format!("{good}{vary}")),
        &["odd.toml:8: vary[0].values[0]", "hosts.0.cont=1", "did you mean hosts[0].count?"],
    );
    let claim = "[[claims]]\nid = \"c\"\ntext = \"t\"\nsource = \"s\"\nvalue = 'at(\"jain_indx\")'\nat_most = 1\n";
    refused(
        &study(&format!("{good}{claim}")),
        &["odd.toml:9: claims[0].value", "no jain_indx in a result", "did you mean jain_index?"],
    );
}

#[test]
fn a_study_says_what_holds_and_ends_with_1_where_a_required_claim_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("short.toml");
    let out = folder.path().join("out");
    let study = |most: f64, jobs: &str| {
        let text = format!(
            "title = \"t\"\nsource = \"s\"\nscenario = \"{}\"\nseeds = 2\nset.duration_s = 4\nset.warmup_s = 1\n\
             [[vary]]\naxis = \"n\"\nkey = \"hosts.0.count\"\nvalues = [1, 2]\n\
             [[figures]]\ntitle = \"total\"\nx = \"n\"\ny = \"aggregate_goodput_mbps\"\n\
             [[claims]]\nid = \"c\"\ntext = \"t\"\nsource = \"s\"\nvalue = 'at(\"aggregate_goodput_mbps\", n=1)'\nat_most = {most}\n\
             required = true\n",
            scenario("one-station.toml")
        );
        fs::write(&file, text).expect("a file");
        let (file, out) = (file.display().to_string(), out.display().to_string());
        lasthop(&["study", "--no-store", &file, "--json", "--jobs", jobs, "--out", &out])
    };
    let holds = study(54.0, "1");
    assert_eq!(holds.status.code(), Some(0), "{}", String::from_utf8_lossy(&holds.stderr));
    let mut result: serde_json::Value = serde_json::from_slice(&holds.stdout).expect("one JSON document");
    assert_eq!((&result["passed"], &result["claims"][0]["verdict"]), (&true.into(), &"holds".into()));
    for name in ["study.json", "points.csv", "report.html", "figures/1-total.svg"] {
        assert!(out.join(name).is_file(), "{name}");
    }
    // The same on two threads, but for how long it took.
    let mut again: serde_json::Value = serde_json::from_slice(&study(54.0, "2").stdout).expect("one JSON document");
    for result in [&mut result, &mut again] {
        result["run_wall_s"] = 0.into();
    }
    assert!(result == again, "two threads make another result");
    let fails = study(1.0, "2");
    assert_eq!(fails.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&fails.stderr).contains("c does not hold"));
}

#[test]
fn the_studies_that_are_there_are_listed() {
    let output = lasthop(&["study", "--list", "--studies", &studies()]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for name in ["hayakawa/fig-06", "shimada/fig-06", "validation/tcp-upper-bound"] {
        assert!(said.contains(name), "{said}");
    }
    let output = lasthop(&["study", "--list", "--json", "--studies", &studies()]);
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), said.lines().count());
    let bianchi = listed.iter().find(|study| study["name"] == "validation/bianchi").expect("it is there");
    assert!(bianchi["runs"].as_u64().is_some_and(|runs| runs > 0) && bianchi["claims"].is_u64(), "{bianchi}");
    assert!(bianchi["title"].as_str().is_some_and(|title| !title.is_empty()) && bianchi.get("error").is_none());
}

#[test]
fn help_and_version_are_no_errors() {
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["compare", "--help"],
        &["study", "--help"],
        &["agent", "--help"],
        &["--version"],
    ] {
        let output = lasthop(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty(), "{arguments:?}");
    }
}

/// What two results share: all but the fields that tell of the wall clock.
fn without_wall_clock(json: &[u8]) -> serde_json::Value {
    fn forget(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(map) => {
                map.retain(|key, _| !["wall_s", "simulated_s_per_wall_s"].contains(&key.as_str()));
                map.values_mut().for_each(forget);
            }
            serde_json::Value::Array(values) => values.iter_mut().for_each(forget),
            _ => {}
        }
    }
    let mut value = serde_json::from_slice(json).expect("one JSON document on standard output");
    forget(&mut value);
    value
}

#[test]
fn simulated_hosts_give_the_same_result_on_one_core_and_on_two() {
    let compare = |jobs: &str| {
        let scenario = scenario("ten-uploads.toml");
        let vary =
            ["--vary", "hosts.0.policy=none,formula", "--seeds", "2", "--set", "duration_s=15", "--set", "warmup_s=5"];
        let output = lasthop(&[&["compare", "--no-store", &scenario, "--json", "--jobs", jobs][..], &vary].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        without_wall_clock(&output.stdout)
    };
    let one = compare("1");
    assert_eq!(one["cases"].as_array().map(Vec::len), Some(2));
    assert_eq!(one, compare("2"));
}

#[test]
fn one_scenario_is_compared_over_its_seeds() {
    let scenario = scenario("ten-uploads.toml");
    let short = ["--set", "duration_s=6", "--set", "warmup_s=2", "--set", "path.rtt_ms=4"];
    let compare =
        |more: &[&str]| lasthop(&[&["compare", "--no-store", &scenario, "--seeds", "3"], &short[..], more].concat());
    let output = compare(&["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let comparison: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let goodput = &comparison["cases"][0]["summary"]["aggregate_goodput_mbps"];
    let runs = comparison["cases"][0]["runs"].as_array().expect("runs");
    let each: Vec<f64> = runs.iter().filter_map(|run| run["aggregate_goodput_mbps"].as_f64()).collect();
    assert_eq!((each.len(), goodput["seeds"].as_u64()), (3, Some(3)));
    // By hand: s with n − 1, and t(2) = 4.30265.
    let mean = each.iter().sum::<f64>() / 3.0;
    let deviation = (each.iter().map(|of| (of - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    let near = |value: &serde_json::Value, of: f64| (value.as_f64().expect("a number") - of).abs() < 1e-5 * mean;
    assert!(near(&goodput["mean"], mean) && near(&goodput["deviation"], deviation), "{goodput}");
    assert!(near(&goodput["ci95"]["high"], mean + 4.30265 * deviation / 3.0_f64.sqrt()), "{goodput}");
    let jain = &comparison["cases"][0]["summary"]["jain_index"]["ci95"];
    assert!(jain["low"].as_f64() > Some(0.0) && jain["high"].as_f64() <= Some(1.0), "{jain}");
    let output = compare(&[]);
    let table = String::from_utf8_lossy(&output.stdout);
    let row =
        table.lines().find(|line| line.trim_start().starts_with("rtt_p95_ms")).unwrap_or_else(|| panic!("{table}"));
    assert_eq!(row.split_whitespace().count(), 8, "{table}");
    assert!(table.contains("deviation") && table.contains("95 % interval"), "{table}");
}

/// A run that takes minutes, once it has begun; `SigIgn` and `SigCgt` of its status.
fn long_run(command: &mut Command) -> (std::process::Child, String) {
    let scenario = scenario("ten-uploads.toml");
    command
        .args(["run", &scenario, "--set", "duration_s=86400", "--set", "sample_ms=5000"])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the command starts");
    let begun = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    let mut begun = begun.filter(|line| line.contains("86400 s of virtual time"));
    begun.next().expect("it says so when it listens to signals");
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    // What it says afterwards is read by nobody, and must not stop it.
    (child, status)
}

fn has_signal(status: &str, mask: &str, signal: Signal) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix(mask)).expect("Linux says so");
    u64::from_str_radix(mask.trim(), 16).expect("a mask") >> (signal as i32 - 1) & 1 == 1
}

#[test]
fn a_terminal_that_goes_away_stops_the_command_in_order_and_not_under_nohup() {
    // The tests themselves may run under nohup, which is inherited.
    let (mut child, status) =
        long_run(Command::new("env").args(["--default-signal=HUP", env!("CARGO_BIN_EXE_lasthop")]));
    assert!(has_signal(&status, "SigCgt:", Signal::SIGHUP) && !has_signal(&status, "SigIgn:", Signal::SIGHUP));
    let process = Pid::from_raw(child.id() as i32);
    // The shell sends one and the kernel another.
    kill(process, Signal::SIGHUP).expect("it runs");
    kill(process, Signal::SIGHUP).expect("it has not been waited for");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "interrupted, and not killed by the signal");

    let (mut child, status) = long_run(Command::new("nohup").arg(env!("CARGO_BIN_EXE_lasthop")));
    assert!(has_signal(&status, "SigIgn:", Signal::SIGHUP));
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
}

#[test]
fn a_change_after_the_end_of_the_run_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("late.toml");
    let text = "duration_s = 2\nwarmup_s = 0\n[[changes]]\nat_s = 1\nrtt_ms = 3\n[[changes]]\nat_s = 100\nrtt_ms = 9\n[[hosts]]\n";
    fs::write(&file, text).expect("a file");
    let output = lasthop(&["run", &file.display().to_string()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let note = "note: [[changes]] at_s = 100 is not before the end of the run at 2 s: it changes nothing";
    assert_eq!(said.lines().filter(|line| line.starts_with("note:")).collect::<Vec<_>>(), [note]);
}

#[test]
fn the_first_comparison_shows_what_the_readme_promises_and_a_shorter_one_says_what_it_shows() {
    let compare = |set: &[&str]| {
        let scenario = scenario("ten-uploads.toml");
        let vary = ["compare", "--no-store", &scenario, "--vary", "hosts.0.policy=none,lasthop", "--json"];
        let output = lasthop(&[&vary[..], set].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        let comparison = lasthop_scenario::Comparison::from_json(&String::from_utf8_lossy(&output.stdout));
        (comparison.expect("a comparison"), said)
    };
    let (comparison, said) = compare(&[]);
    let [none, lasthop] = [0, 1].map(|case| &comparison.cases[case].summary);
    assert!(lasthop.jain_index.expect("shares").mean > 0.99, "{lasthop:?}");
    let p95 = |summary: &lasthop_scenario::CaseSummary| summary.rtt_p95_ms.expect("round trips").mean;
    // The path has 256 ms: within 1.3 of it and 20 ms, where no control has four times as much.
    assert!(p95(lasthop) < 1.3 * 256.0 + 20.0 && p95(none) > 3.0 * 256.0, "{none:?} {lasthop:?}");
    assert!(!said.contains("settled"), "{said}");
    let (_, said) = compare(&["--set", "duration_s=40", "--set", "warmup_s=10"]);
    let notes: Vec<&str> = said.lines().filter(|line| line.contains("settled")).collect();
    assert_eq!(notes.len(), 1, "{said}");
    assert!(
        notes[0].starts_with("note: policy lasthop") && notes[0].contains("40 s") && notes[0].contains("10 s"),
        "{said}"
    );
}

#[test]
fn simulated_hosts_are_the_default_and_need_nobodys_leave() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("kept");
    let scenario = scenario("one-station.toml");
    let output = lasthop(&["run", &scenario, "--json", "--set", "duration_s=12", "--out", &out.display().to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let result = lasthop_scenario::RunResult::from_json(&String::from_utf8_lossy(&output.stdout)).expect("a result");
    assert_eq!(result.hosts_kind, lasthop_scenario::HostsKind::Simulated);
    assert!(result.valid && result.lateness_us.is_none() && result.simulated_s_per_wall_s > 0.0);
    for file in ["result.json", "series.parquet", "queues.parquet", "report.html"] {
        assert!(fs::metadata(out.join(file)).is_ok_and(|file| file.len() > 1_000), "{file}");
    }
    refused(&lasthop(&["run", &scenario, "--traffic", "iperf3"]), &["--hosts kernel"]);
    let vary = ["--vary", "hosts.0.count=1,2", "--hosts", "kernel", "--jobs", "2"];
    refused(&lasthop(&[&["compare", &scenario][..], &vary].concat()), &["--jobs", "--hosts simulated"]);
    refused(&lasthop(&["run", &scenario, "--retries", "2"]), &["--retries", "--hosts kernel"]);
    let output = lasthop(&["run", &scenario, "--set", "hosts.0.congestion_control=illinois"]);
    refused(&output, &["illinois", "hosts.0.congestion_control", "newreno, cubic"]);
}

#[test]
fn a_group_key_is_made_once_for_its_owner_alone_and_never_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("new/group.key");
    let out = file.display().to_string();
    let output = lasthop(&["key", "--out", &out]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(&format!("group_key_file = \"{out}\"")) && said.contains("scp -p"), "{said}");
    let key = fs::read_to_string(&file).expect("the key");
    // 32 bytes in hexadecimal.
    assert!(key.len() == 65 && key.ends_with('\n') && key.trim_end().bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(!said.contains(key.trim_end()));
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o7777, 0o600);
    refused(&lasthop(&["key", "--out", &out]), &[&out, "is there already", "--out"]);
    assert_eq!(fs::read_to_string(&file).expect("the key"), key);
    let other = folder.path().join("other.key");
    lasthop(&["key", "--out", &other.display().to_string()]);
    assert_ne!(fs::read_to_string(&other).expect("another key"), key);
    // The line that it prints is one that the agent takes.
    let config = folder.path().join("agent.toml");
    fs::write(&config, format!("[beacon]\ngroup_key_file = \"{out}\"\n")).expect("a file");
    let read = lasthop_agent::Config::load(Some(&config), &[]).expect("the agent takes it");
    assert_eq!(read.beacon.group_key_file.as_deref(), Some(file.as_path()));
}

#[test]
fn a_capture_that_cannot_be_written_is_named_and_costs_no_result() {
    let short = ["--set", "duration_s=3", "--set", "warmup_s=0", "--json", "--pcap"];
    let run = |file: &str| lasthop(&[&["run", &scenario("ten-uploads.toml")][..], &short, &[file]].concat());
    refused(&run("/nowhere/run.pcapng"), &["cannot write the capture /nowhere/run.pcapng"]);
    // A limit of 4 KiB for each file stands for a full disk.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.pcapng");
    let limited = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    let ten = scenario("ten-uploads.toml");
    let arguments = [&["run", &ten][..], &short].concat();
    let mut full = Command::new("sh");
    full.args(["-c", limited, env!("CARGO_BIN_EXE_lasthop")]).args(arguments).arg(&file);
    let full = full.output().expect("a shell");
    let said = String::from_utf8_lossy(&full.stderr);
    assert_eq!(full.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot write the capture") && said.contains("File too large"), "{said}");
    let result = lasthop_scenario::RunResult::from_json(&String::from_utf8_lossy(&full.stdout)).expect("a result");
    assert_eq!(result.flows.len(), 10);
}

/// The reviewers' `--pcap mine.toml`, and a pipe that nobody reads.
#[test]
fn a_capture_replaces_a_capture_and_nothing_else_and_waits_for_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let short = ["--set", "duration_s=3", "--set", "warmup_s=0", "--json", "--pcap"];
    let run = |file: &str| lasthop(&[&["run", &scenario("ten-uploads.toml")][..], &short, &[file]].concat());
    std::fs::write(path("mine.toml"), "duration_s = 3\n").expect("a file");
    nix::unistd::mkfifo(path("pipe").as_str(), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    std::os::unix::fs::symlink(path("mine.toml"), path("link")).expect("a link");
    for (name, said) in [
        ("mine.toml", "it is something else, which lasthop does not replace"),
        ("pipe", "it is a pipe or a device"),
        ("link", "it is a symbolic link"),
    ] {
        refused(&run(&path(name)), &[&path(name), said, "accepted: "]);
    }
    assert_eq!(std::fs::read_to_string(path("mine.toml")).expect("there"), "duration_s = 3\n");
    let written = ["", "again"].map(|_| {
        let output = run(&path("run.pcapng"));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read(path("run.pcapng")).expect("a capture")
    });
    assert!(written[0].len() > 1000 && written[0] == written[1]);
}
