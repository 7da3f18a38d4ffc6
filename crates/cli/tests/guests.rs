//! `--clock virtual` of run, study and exec, as their users call it.

use crate::common::{can_emulate, lasthop, skip};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

fn command(arguments: &[&str]) -> Command {
    let mut command = lasthop(arguments);
    command.current_dir(env!("CARGO_TARGET_TMPDIR"));
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().expect("it starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const SHORT: [&str; 9] =
    ["one-station", "--hosts", "kernel", "--clock", "virtual", "--set", "duration_s=3", "--set", "warmup_s=1"];

/// The result of a run, without what the wall clock says.
fn result(more: &[&str]) -> (Value, String) {
    let output = run(&[&["run", "--json"], &SHORT[..], more].concat());
    assert!(output.status.success(), "{}", said(&output));
    let result = without_wall_clock(&output);
    let text = result.to_string();
    (result, text)
}

fn without_wall_clock(output: &Output) -> Value {
    let mut result: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let fields = result.as_object_mut().expect("an object");
    for key in ["wall_s", "simulated_s_per_wall_s"] {
        fields.remove(key).expect("every run has it");
    }
    result
}

/// The result of a run without further arguments, which is the same each time.
fn plain() -> &'static (Value, String) {
    static PLAIN: OnceLock<(Value, String)> = OnceLock::new();
    PLAIN.get_or_init(|| result(&[]))
}

/// Four threads that compute as long as what is returned lives.
fn busy() -> Arc<()> {
    let alive = Arc::new(());
    for _ in 0..4 {
        let alive = Arc::downgrade(&alive);
        std::thread::spawn(move || while alive.strong_count() > 0 {});
    }
    alive
}

#[test]
fn the_same_run_has_the_same_bytes_on_a_busy_machine_and_another_seed_has_others() {
    if !can_emulate() {
        return;
    }
    let (quiet, first) = plain();
    let second = {
        let _busy = busy();
        result(&[]).1
    };
    let other = result(&["--seed", "2"]).1;
    assert!(*first == second, "{first}\n{second}");
    assert!(*first != other);
    assert_eq!(
        (&quiet["valid"], &quiet["clock"], &quiet["kernel"]),
        (&true.into(), &"virtual".into(), &"debian-6.12".into())
    );
    assert!(quiet["kernel_release"].as_str().expect("text").starts_with("6.12."), "{quiet}");
    assert!(quiet["emulator"].as_str().expect("text").starts_with("QEMU"), "{quiet}");
    // Simulated hosts over the same medium.
    let simulated = run(&["run", "one-station", "--json", "--set", "duration_s=3", "--set", "warmup_s=1"]);
    let simulated: Value = serde_json::from_slice(&simulated.stdout).expect("one JSON document");
    let goodput = |result: &Value| result["aggregate_goodput_mbps"].as_f64().expect("a number");
    let ratio = goodput(quiet) / goodput(&simulated);
    assert!((0.95..1.05).contains(&ratio), "{} and {} Mb/s", goodput(quiet), goodput(&simulated));
}

/// When the guest stopped itself by a panic device, two boots of one kernel were milliseconds apart.
#[test]
#[ignore = "long: make test-virtual-time"]
fn ten_runs_beside_busy_threads_have_the_same_bytes() {
    if can_emulate() {
        let alone = &plain().1;
        let _busy = busy();
        // At once: one after the other has a few tenths of a processor each time.
        let runs: Vec<String> = std::thread::scope(|scope| {
            let runs = [(); 10].map(|()| scope.spawn(|| result(&[]).1));
            runs.into_iter().map(|run| run.join().expect("it ran")).collect()
        });
        assert!(runs.iter().all(|run| run == alone), "{alone}\n{runs:#?}");
    }
}

#[test]
fn a_kernel_that_is_booted_again_gives_the_same_bytes_and_two_commands_boot_it_once() {
    if !can_emulate() {
        return;
    }
    let before = plain();
    let folder = cache_with_kernels();
    let arguments = [&["run", "--json"], &SHORT[..]].concat();
    let busy = busy();
    let two = [(); 2].map(|()| command(&arguments).env("XDG_CACHE_HOME", folder.path()).spawn().expect("it starts"));
    let outputs = two.map(|process| process.wait_with_output().expect("it ends"));
    drop(busy);
    let both = outputs.each_ref().map(said).concat();
    assert_eq!(both.matches("booting debian-6.12 once").count(), 1, "{both}");
    for output in &outputs {
        assert!(output.status.success(), "{both}");
        assert_eq!(without_wall_clock(output), before.0);
    }
}

/// A cache of the test's own, with the kernels of the tests.
fn cache_with_kernels() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let kernels = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("lasthop/kernels");
    let cache = folder.path().join("lasthop");
    std::fs::create_dir(&cache).expect("a folder");
    std::os::unix::fs::symlink(kernels, cache.join("kernels")).expect("a link");
    folder
}

#[test]
#[ignore = "long: make test-virtual-time"]
fn a_kept_state_that_cannot_be_used_is_booted_again_with_the_same_bytes() {
    if !can_emulate() {
        return;
    }
    let cache = cache_with_kernels();
    let arguments = [&["run", "--json"], &SHORT[..]].concat();
    let run = || command(&arguments).env("XDG_CACHE_HOME", cache.path()).output().expect("it starts");
    assert!(run().status.success());
    let machines = std::fs::read_dir(cache.path().join("lasthop/machines")).expect("readable").filter_map(Result::ok);
    let kept = machines.map(|entry| entry.path()).find(|path| path.join("state").exists()).expect("one was booted");
    let zeros = vec![0; 2 << 20];
    let a_byte = || {
        let memory = std::fs::File::options().write(true).open(kept.join("memory")).expect("writable");
        std::os::unix::fs::FileExt::write_all_at(&memory, b"x", 300_000_000).expect("written");
    };
    // With their checksum, so that it is seen only when they are read.
    let zeros_as_kept = || {
        std::fs::write(kept.join("state"), &zeros).expect("written");
        let list = std::fs::read(kept.join("kept.json")).expect("readable");
        let mut list: Value = serde_json::from_slice(&list).expect("JSON");
        list["files"]["state"] = serde_json::json!({ "bytes": zeros.len(), "crc32": 0 });
        std::fs::write(kept.join("kept.json"), list.to_string()).expect("written");
    };
    let empty = || std::fs::write(kept.join("state"), "").expect("written");
    for (what, change, expected) in [
        ("empty", &empty as &dyn Fn(), "state: it has changed since it was kept"),
        ("a byte", &a_byte, "memory: it has changed since it was kept"),
        ("zeros", &zeros_as_kept, "guest: "),
    ] {
        change();
        let again = run();
        assert!(again.status.success() && said(&again).contains(expected), "{what}: {}", said(&again));
        assert_eq!(said(&again).matches("booting ").count(), 1, "{what}: {}", said(&again));
        assert_eq!(without_wall_clock(&again), plain().0);
    }
    assert!(!said(&run()).contains("booting "));
}

#[test]
#[ignore = "long: make test-virtual-time"]
fn a_trace_too_long_for_a_scenario_comes_to_the_guest_as_a_file() {
    if !can_emulate() {
        return;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("long-trace");
    std::fs::create_dir_all(&folder).expect("a folder");
    // Ten a millisecond: of 120 Mb/s.
    let rows: String = (0..40_000).map(|row| format!("{}\n", 1 + row / 10)).collect();
    std::fs::write(folder.join("long.trace"), rows).expect("written");
    let file = folder.join("scenario.toml").display().to_string();
    let text = "duration_s = 5\nwarmup_s = 1\n[access]\nkind = \"wired\"\nrate_mbps = 100\n[[hosts]]\n[[hosts.flows]]\n\
                [[changes]]\ntrace = \"long.trace\"\nof = \"path\"\n";
    std::fs::write(&file, text).expect("written");
    for command in [&["run", &file, "--hosts", "kernel"][..], &["exec", &file]] {
        let last = if command[0] == "exec" { &["--", "true"][..] } else { &[] };
        let output = run(&[command, &["--clock", "virtual", "--json"], last].concat());
        assert!(output.status.success(), "{}", said(&output));
        let result: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
        assert_eq!(result["clock"], "virtual");
    }
}

/// A module under another name, with another name of its congestion control, and without its signature.
fn renamed(module: &[u8], (from, to): (&str, &str)) -> Vec<u8> {
    const SIGNED: &[u8] = b"~Module signature appended~\n";
    assert_eq!(from.len(), to.len());
    let mut module = module.to_vec();
    if let Some(signed) = module.strip_suffix(SIGNED) {
        let size = u32::from_be_bytes(*signed.last_chunk().expect("a signature has a size"));
        module.truncate(signed.len() - 12 - size as usize);
    }
    let mut at = 0;
    while let Some(found) = module[at..].windows(from.len()).position(|text| text == from.as_bytes()) {
        at += found;
        module[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    module
}

#[test]
#[ignore = "long: make test-virtual-time"]
fn a_congestion_control_in_a_tree_of_ones_own_carries_flows() {
    if !can_emulate() {
        return;
    }
    let kernel = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("lasthop/kernels/debian-6.12");
    let tree = tempfile::tempdir().expect("a folder");
    std::fs::copy(kernel.join("vmlinuz"), tree.path().join("vmlinuz")).expect("copied");
    for entry in std::fs::read_dir(kernel.join("modules")).expect("readable") {
        let entry = entry.expect("readable");
        std::fs::copy(entry.path(), tree.path().join(entry.file_name())).expect("copied");
    }
    let veno = std::fs::read(kernel.join("modules/tcp_veno.ko")).expect("Debian has it");
    let mine = renamed(&veno, ("veno", "mine"));
    std::fs::write(tree.path().join("tcp_mine.ko"), &mine).expect("written");
    // One that needs what this kernel has not is named and left out.
    let none = renamed(&renamed(&mine, ("mine", "none")), ("tcp_reno_undo_cwnd", "tcp_none_undo_cwnd"));
    std::fs::write(tree.path().join("tcp_none.ko"), none).expect("written");
    let built = run(&["kernels", "build", &tree.path().display().to_string(), "--name", "with-mine"]);
    assert!(built.status.success(), "{}", said(&built));
    let with = ["--kernel", "with-mine", "--set", "hosts.0.congestion_control=none"];
    for is_first in [true, false] {
        let output = run(&[&["run"], &SHORT[..], &with].concat());
        let of_boot = said(&output).contains("with-mine cannot load its congestion control tcp_none, and does without");
        assert_eq!((output.status.success(), of_boot), (false, is_first), "{}", said(&output));
        assert!(said(&output).contains("could not load tcp_none: Unknown symbol"), "{}", said(&output));
    }
    let of = |name: &str| result(&["--kernel", "with-mine", "--set", &format!("hosts.0.congestion_control={name}")]).0;
    let (mine, veno) = (of("mine"), of("veno"));
    let goodput = |result: &Value| result["aggregate_goodput_mbps"].as_f64().expect("a number");
    let ratio = goodput(&mine) / goodput(&veno);
    assert!((0.95..1.05).contains(&ratio), "{} and {} Mb/s", goodput(&mine), goodput(&veno));
    assert!(mine["kernel_digest"] != plain().0["kernel_digest"], "{mine}");
}

#[test]
#[ignore = "long: make test-virtual-time"]
fn a_kernel_of_ones_own_runs_and_the_same_kernel_by_another_name_gives_the_same_bytes() {
    if !can_emulate() {
        return;
    }
    // A folder with a kernel and its modules, as `make bzImage modules` leaves one.
    let tree = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("lasthop/kernels/debian-6.12").display().to_string();
    let built = run(&["kernels", "build", &tree, "--name", "mine"]);
    assert!(built.status.success(), "{}", said(&built));
    assert!(String::from_utf8_lossy(&built.stdout).starts_with("mine: 6.12."), "{built:?}");
    let (mine, text) = result(&["--kernel", "mine"]);
    assert_eq!(mine["kernel"], "mine");
    assert!(text.replace("\"mine\"", "\"debian-6.12\"") == plain().1, "{text}\n{}", plain().1);
    // Both in one table.
    let output = run(&[&["compare", "--json"], &SHORT[..], &["--kernel", "debian-6.12,mine"]].concat());
    let table: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let cases: Vec<_> = (0..2).map(|case| (&table["cases"][case]["label"], &table["cases"][case]["runs"][0])).collect();
    assert_eq!((cases[0].0, cases[1].0), (&"kernel=debian-6.12".into(), &"kernel=mine".into()));
    assert_eq!((&cases[0].1["kernel"], &cases[1].1["kernel"]), (&"debian-6.12".into(), &"mine".into()));
    assert_eq!(cases[0].1["aggregate_goodput_mbps"], plain().0["aggregate_goodput_mbps"]);
    assert_eq!(cases[0].1["flows"], cases[1].1["flows"]);
}

#[cfg(target_arch = "x86_64")]
/// The head of a static program for arm64 (elf(5)), and a text in it.
fn program_for_arm64(text: &str) -> Vec<u8> {
    let mut file = vec![0; 64];
    file[..5].copy_from_slice(b"\x7fELF\x02");
    file[18] = 183; // e_machine
    file[32] = 64; // e_phoff
    file.extend_from_slice(text.as_bytes());
    file
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_kernel_for_another_processor_says_which_program_it_lacks_until_one_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let run = |arguments: &[&str]| command(arguments).env("XDG_CACHE_HOME", folder.path()).output().expect("it starts");
    // No kernel, but what names one: an Image, and the module by which a job comes.
    let mut image = vec![0; 0x38];
    image.extend_from_slice(b"ARM\x64 Linux version 6.99-mine (build)");
    std::fs::create_dir(path("tree")).expect("made");
    std::fs::write(path("tree/Image"), image).expect("written");
    std::fs::write(path("tree/qemu_fw_cfg.ko"), b"\0depends=\0").expect("written");
    let built = run(&["kernels", "build", &path("tree"), "--name", "mine"]);
    assert_eq!(String::from_utf8_lossy(&built.stdout), "mine: 6.99-mine, arm64\n", "{}", said(&built));
    let listed = run(&["kernels", "list"]).stdout;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let cannot = ["mine", "arm64", "6.99-mine,", "which", "cannot", "run", "yet:"];
    assert!(listed.lines().any(|line| line.split_whitespace().take(7).eq(cannot)), "{listed}");
    assert!(said(&built).starts_with("--clock virtual cannot run it yet: a kernel for arm64"), "{}", said(&built));
    let refused = |arguments: &[&str], expected: &str| {
        let output = run(arguments);
        assert!(
            output.status.code() == Some(2) && said(&output).contains(expected),
            "{arguments:?}: {}",
            said(&output)
        );
    };
    let on_it = [&["run"], &SHORT[..], &["--kernel", "mine"]].concat();
    refused(&on_it, "runs a lasthop for arm64, and none is here: `lasthop kernels program FILE` keeps one");
    for (bytes, expected) in [
        (std::fs::read("/bin/true").expect("a program"), "another processor than this one's (accepted: arm64)"),
        (program_for_arm64("0.0.0 (another)"), "no lasthop of this build"),
    ] {
        std::fs::write(path("program"), bytes).expect("written");
        refused(&["kernels", "program", &path("program")], expected);
    }
    let version = String::from_utf8(run(&["--version"]).stdout).expect("text");
    let version = version.trim().strip_prefix("lasthop ").expect("its name");
    std::fs::write(path("program"), program_for_arm64(version)).expect("written");
    let kept = run(&["kernels", "program", &path("program")]);
    assert!(kept.status.success(), "{}", said(&kept));
    // One that an earlier build has left.
    let kept = path("lasthop/programs/arm64/lasthop");
    assert!(std::fs::metadata(&kept).is_ok());
    std::fs::write(kept, program_for_arm64("0.0.0 (another)")).expect("written");
    refused(&on_it, "the one that was kept is of another build");
}

#[test]
fn a_study_sets_guests_beside_simulated_hosts_and_its_plan_counts_their_memory() {
    if !can_emulate() {
        return;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("beside");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("study.toml").display().to_string();
    let text = "title = \"Beside\"\nsource = \"a test\"\nhosts = \"kernel\"\nseeds = 1\n[scenario]\nduration_s = 3\nwarmup_s = 1\n\
                [[scenario.hosts]]\n[[cases]]\nlabel = \"simulated\"\nhosts = \"simulated\"\n[[cases]]\nlabel = \"kernel\"\n\
                [[figures]]\ntitle = \"Goodput\"\nx = \"case\"\ny = \"aggregate_goodput_mbps\"\n";
    std::fs::write(&file, text).expect("written");
    let plan = run(&["study", &file, "--clock", "virtual", "--jobs", "1", "--plan", "--json"]);
    let plan: Value = serde_json::from_slice(&plan.stdout).expect("one JSON document");
    assert_eq!((&plan["runs"], &plan["guests_memory_mib"]), (&2.into(), &1024.into()));
    let study = run(&["study", &file, "--clock", "virtual", "--json"]);
    assert!(study.status.success(), "{}", said(&study));
    let study: Value = serde_json::from_slice(&study.stdout).expect("one JSON document");
    assert_eq!((&study["clock"], &study["kernel"]), (&"virtual".into(), &"debian-6.12".into()));
    let goodput = |point: usize| study["points"][point]["measures"][0]["mean"].as_f64().expect("a number");
    assert!((goodput(1) / goodput(0) - 1.0).abs() < 0.1, "{} and {} Mb/s", goodput(0), goodput(1));
    let many = run(&["study", &file, "--clock", "virtual", "--jobs", "60000", "--seeds", "1000"]);
    assert!(said(&many).contains("a smaller --jobs"), "{}", said(&many));
}

/// One upload over 802.11n that fills the air. AQL holds back packets of it: it stood still in some builds before the medium had mac80211
/// look at its queues again.
const OF_RADIOS: &str = "duration_s = 3\nwarmup_s = 1\n[access]\nstandard = \"802.11n\"\nband_ghz = 2.4\naggregate_frames = 1\n\
                         rate_control = \"minstrel_ht\"\nqueue = \"mac80211\"\nairtime_fairness = false\n[path]\nrtt_ms = 20\n\
                         [[hosts]]\nera = \"modern\"\nsnr_db = 12\n[hosts.tcp]\ntsq_pacing_shift = 7\n[[hosts.flows]]\n\
                         dscp = 46\n";

#[test]
fn linuxs_own_wifi_carries_an_upload_as_the_model_does_and_says_nothing_that_only_the_model_knows() {
    if !can_emulate() {
        return;
    }
    if let Err(missing) = lasthop_guest::programs(&lasthop_lab::RADIO_PROGRAMS) {
        return skip(&missing.to_string());
    }
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("of-radios.toml");
    std::fs::write(&file, OF_RADIOS).expect("written");
    let file = file.display().to_string();
    let json = |more: &[&str]| -> Value {
        let output = run(&[&["run", &file, "--json"], more].concat());
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice(&output.stdout).expect("one JSON document")
    };
    let linux = json(&["--hosts", "kernel", "--clock", "virtual", "--wifi", "mac80211"]);
    let model = json(&[]);
    assert_eq!((&linux["wifi"], &linux["valid"]), (&"mac80211".into(), &true.into()), "{linux}");
    assert_eq!(model["wifi"], Value::Null);
    let of = |result: &Value, at: &str| result.pointer(at).and_then(Value::as_f64).unwrap_or(f64::NAN);
    for (at, least, most) in [
        ("/aggregate_goodput_mbps", 0.95, 1.05),
        ("/access/stations/0/up_phy_rate_mbps", 0.95, 1.05),
        ("/access/collisions", 0.5, 2.0),
        ("/access/retries", 0.5, 2.0),
        ("/utilization", 0.9, 1.1),
    ] {
        let ratio = of(&linux, at) / of(&model, at);
        assert!((least..most).contains(&ratio), "{at}: {} and {}", of(&linux, at), of(&model, at));
    }
    let access = linux["access"].as_object().expect("an object");
    for key in ["broadcast_losses", "to_all_share"] {
        assert!(!access.contains_key(key) && model["access"].get(key).is_some(), "{key}: {access:?}");
    }
    assert_eq!(linux["access"]["downlink_queue_mean"], Value::Null);
}

/// A program's run without what the wall clock says, what it has written, and its exit code.
fn executed(command: &[&str]) -> (Value, String, Option<i32>) {
    let arguments = ["exec", "one-station", "--clock", "virtual", "--set", "warmup_s=0.5", "--json"];
    let output = run(&[&arguments[..], &["--"], command].concat());
    let mut result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    let fields = result.as_object_mut().expect("an object");
    for key in ["wall_s", "simulated_s_per_wall_s"] {
        fields.remove(key).expect("every run has it");
    }
    (result, said(&output), output.status.code())
}

/// The first lines in which two results differ.
fn differing(first: &Value, second: &Value) -> Vec<(String, String)> {
    let [first, second] = [first, second].map(|result| serde_json::to_string_pretty(result).expect("plain data"));
    let lines = first.lines().zip(second.lines()).filter(|(first, second)| first != second);
    lines.take(12).map(|(first, second)| (first.to_owned(), second.to_owned())).collect()
}

#[test]
fn a_program_finds_this_machines_files_changes_none_and_two_runs_are_equal() {
    if !can_emulate() {
        return;
    }
    let files = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("files-of-this-machine");
    let (file, many) = (files.join("text"), files.join("many"));
    std::fs::create_dir_all(&many).expect("a folder");
    std::fs::write(&file, "a text of this machine\n").expect("written");
    (0..500).for_each(|number| std::fs::write(many.join(format!("file-{number}")), "").expect("written"));
    let [path, many_path] = [&file, &many].map(|path| path.display().to_string());
    let script = format!(
        "cat {path}; echo changed > {path}; cat {path}; pwd; echo home $HOME; test -t 1 -o -t 2 || echo no terminal; \
         ls -la {many_path} | wc -l; exit 3"
    );
    let folder = std::fs::canonicalize(env!("CARGO_TARGET_TMPDIR")).expect("it is there").display().to_string();
    // As others do, who make files in it and remove them.
    let change = |seconds| {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        std::fs::File::open(&many).and_then(|folder| folder.set_modified(at)).expect("it is ours");
    };
    change(1_000_000_000);
    let (first, wrote, code) = executed(&["sh", "-c", &script]);
    assert_eq!(code, Some(3), "{wrote}");
    for line in ["a text of this machine", "changed", &folder, "home /run/scratch", "no terminal", "503"] {
        assert!(wrote.lines().any(|other| other == line), "no {line}: {wrote}");
    }
    assert_eq!(std::fs::read_to_string(&file).expect("readable"), "a text of this machine\n");
    assert_eq!(first["clock"], "virtual", "{first}");
    change(1_760_000_000);
    let (second, ..) = executed(&["sh", "-c", &script]);
    assert_eq!(differing(&first, &second), []);
    assert_eq!(first, second);
}

/// The emulator that a process has started for a run, in a folder of work.
fn emulator_of(parent: u32) -> Option<PathBuf> {
    let is_one = |process: &PathBuf| {
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        let has = |line: &str| status.lines().any(|other| other.split_whitespace().eq(line.split_whitespace()));
        let works = std::fs::read_link(process.join("cwd"))
            .is_ok_and(|folder| folder.to_string_lossy().contains("/machines/run-"));
        has(&format!("PPid: {parent}")) && status.starts_with("Name:\tqemu-system") && works
    };
    let processes = std::fs::read_dir("/proc").expect("readable").filter_map(Result::ok);
    processes.map(|process| process.path()).find(is_one)
}

fn wait_for_emulator(of: &Child) -> PathBuf {
    let emulator = OnceLock::new();
    wait_until("the emulator runs", || emulator_of(of.id()).is_some_and(|found| emulator.set(found).is_ok()));
    emulator.into_inner().expect("found")
}

/// These tests take what others leave of the processors (scripts/test), which may be little for minutes.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(900), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_run_that_is_interrupted_or_killed_leaves_nothing() {
    if !can_emulate() {
        return;
    }
    let long = [&["run"], &SHORT[..], &["--set", "duration_s=600"]].concat();
    let start = || command(&long).stderr(Stdio::piped()).spawn().expect("it starts");
    let interrupted = start();
    let (process, emulator) = (interrupted.id().to_string(), wait_for_emulator(&interrupted));
    assert!(Command::new("kill").args(["-INT", &process]).status().expect("it starts").success());
    let output = interrupted.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(said(&output).contains("nothing was kept"), "{}", said(&output));
    wait_until("the emulator has ended", || !emulator.exists());

    let mut killed = start();
    let emulator = wait_for_emulator(&killed);
    let folder = std::fs::read_link(emulator.join("cwd")).expect("it is ours");
    killed.kill().expect("it runs");
    killed.wait().expect("it ends");
    wait_until("the kernel has ended the emulator", || !emulator.exists());
    // Its folder goes with the next run, which may be that of a test beside this one.
    result(&[]);
    assert!(!folder.exists(), "{} is left", folder.display());
}

#[test]
fn what_cannot_run_in_virtual_time_is_refused_with_what_can() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("refused-radios.toml");
    let text = OF_RADIOS.replace("shift = 7", "shift = 10");
    std::fs::write(&file, &text).expect("written");
    let ten = file.display().to_string();
    let line = 1 + text.lines().position(|line| line.contains("shift = 10")).expect("the key");
    let cannot_have_ten = format!(
        "refused-radios.toml:{line}: hosts[0].tcp.tsq_pacing_shift: --wifi mac80211 cannot have 10 (accepted: 7)"
    );
    let my_kernel = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("My Kernel");
    std::fs::create_dir_all(&my_kernel).expect("a folder");
    std::fs::write(my_kernel.join("vmlinuz"), "").expect("written");
    let my_kernel = my_kernel.display().to_string();
    for (arguments, expected) in [
        (&["run", "one-station", "--wifi", "mac80211"][..], "it needs --hosts kernel --clock virtual"),
        (&["run", "one-station", "--hosts", "kernel", "--wifi", "mac80211"], "it needs --hosts kernel --clock virtual"),
        (&["run", "one-station", "--hosts", "kernel", "--wifi", "mac80211-here"], "(accepted: model, mac80211)"),
        (&["run", "one-station", "--wifi", "mac80211-here"], "(accepted: model, mac80211)"),
        (&["exec", "one-station", "--clock", "virtual", "--wifi", "mac80211", "--", "true"], "accepted: --wifi model"),
        (&["run", &ten, "--hosts", "kernel", "--clock", "virtual", "--wifi", "mac80211"], &cannot_have_ten),
        (
            &[
                "compare",
                &ten,
                "--hosts=kernel",
                "--clock=virtual",
                "--wifi=mac80211",
                "--vary",
                "access.queue=fifo,codel",
            ],
            "access.queue",
        ),
        (&["run", "one-station", "--clock", "virtual"], "--clock virtual is for --hosts kernel"),
        (&["run", "one-station", "--kernel", "debian-6.12"], "--kernel needs --clock virtual"),
        (&["run", "one-station", "--hosts", "kernel", "--kernel", "debian-6.12"], "--kernel needs --clock virtual"),
        (&["run", "one-station", "--hosts", "kernel", "--clock", "virtual", "--retries", "2"], "the same again"),
        (&["run", "one-station", "--hosts", "kernel", "--clock", "virtual", "--kernel", "../x"], "name of a kernel"),
        (&["run", "one-station", "--hosts", "kernel", "--clock", "virtual", "--kernel", "none"], "kernels fetch"),
        (&["exec", "one-station", "--clock", "virtual"], "give a command after --"),
        (&["exec", "one-station", "--clock", "virtual", "--internet", "--", "true"], "--clock real has this machine's"),
        (&["exec", "one-station", "--kernel", "debian-6.12", "--", "true"], "--kernel needs --clock virtual"),
        (&["kernels", "fetch", "plan9"], "debian-6.12, debian-newest, debian-6.1-arm64"),
        (&["kernels", "build", "/var/empty/none"], "there is no folder"),
        (&["kernels", "build", "/", "--name", "debian-6.12"], "accepted: any other"),
        (&["kernels", "build", &my_kernel], "without --name NAME it gets the folder's"),
        (&["study", "kernels/bbr", "--clock", "virtual", "--plan", "--kernel", "none"], "kernels fetch"),
        (
            &["compare", "one-station", "--hosts=kernel", "--clock=virtual", "--kernel=none,no"],
            "lasthop: there is no kernel",
        ),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(said(&output).contains(expected), "{arguments:?}: {}", said(&output));
    }
}
