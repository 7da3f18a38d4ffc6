//! The store of runs: its keys, and that what is damaged is never taken.

use bare_result::bare_result;
use lasthop_scenario::{Build, FlowSample, Override, RunResult, Scenario, Series};
use lasthop_study::store::Merged;
use lasthop_study::{Key, Store, StoreChoice, StoredRuns};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

mod bare_result;

const TEXT: &str = "duration_s = 20\nseed = 7\n[path]\nrtt_ms = 40\n[[hosts]]\ncount = 3\n";

fn scenario(text: &str) -> Scenario {
    Scenario::from_toml("one.toml", text, &[]).expect("a scenario")
}

fn key_of(scenario: &Scenario, model: &str) -> Key {
    Key::of(scenario, model).expect("no host asks a program")
}

fn key(text: &str) -> Key {
    key_of(&scenario(text), "model")
}

fn result(scenario: &Scenario) -> RunResult {
    // A number that only a parser that rounds correctly gives back.
    let aggregate_goodput_mbps = 0.1 + 0.2 + 1e-17 * scenario.seed as f64;
    RunResult { aggregate_goodput_mbps, utilization: 2.0 / 3.0, wall_s: 0.125, ..bare_result(scenario) }
}

fn with_seed(seed: u64) -> Scenario {
    scenario(&TEXT.replace("seed = 7", &format!("seed = {seed}")))
}

fn entry(store: &Path, key: &Key) -> PathBuf {
    let name = key.to_string();
    store.join(&name[..2]).join(&name[2..])
}

#[test]
fn one_scenario_written_in_several_ways_has_one_key() {
    let other_order = "[[hosts]]\ncount = 3\n[path]\nrtt_ms = 40.0 # as a float\n";
    let spelt = [
        format!("seed = 7\nduration_s = 20.0\nname = \"another name\"\n{other_order}"),
        "duration_s = 20\nseed = 7\npath = { rtt_ms = 4e1 }\nhosts = [{ count = 3 }]\n".to_owned(),
        scenario(TEXT).to_toml(),
    ];
    spelt.iter().for_each(|text| assert_eq!(key(text), key(TEXT), "{text}"));
    let overridden = ["path.rtt_ms=40", "seed=7"].map(|text| Override::parse(text).expect("an override"));
    let text = TEXT.replace("rtt_ms = 40", "rtt_ms = 99").replace("seed = 7", "seed = 1");
    let overridden = Scenario::from_toml("two.toml", &text, &overridden).expect("a scenario");
    assert_eq!(key_of(&overridden, "model"), key(TEXT));
    assert_eq!(Key::parse(&key(TEXT).to_string()), Some(key(TEXT)));
    assert_ne!(key_of(&scenario(TEXT), "another model"), key(TEXT));
}

#[test]
fn a_run_is_known_by_the_rows_of_its_trace_and_not_by_the_file_and_a_study_finds_it_beside_the_scenario() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |path: &str| folder.path().join(path);
    fs::create_dir_all(at("scenarios")).and_then(|()| fs::create_dir_all(at("studies/x"))).expect("folders");
    let write = |path: &str, text: &str| fs::write(at(path), text).expect("written");
    write("scenarios/a.toml", &format!("{TEXT}[[changes]]\ntrace = \"rtt.csv\"\n"));
    write("studies/x/s.toml", "title = \"s\"\nsource = \"nobody\"\nscenario = \"../../scenarios/a.toml\"\n");
    let of_study =
        || lasthop_study::Study::load(&at("studies/x/s.toml")).expect("a study").base().map_err(|no| no.to_string());
    write("scenarios/rtt.csv", "at_s,rtt_ms\n5,80\n");
    let scenario = of_study().expect("a scenario");
    assert_eq!(scenario.network().changes.len(), 1);
    let first = key_of(&scenario, "model");
    write("scenarios/rtt.csv", "# the same rows\nat_s,rtt_ms\n5.0,80\n\n");
    assert_eq!(key_of(&of_study().expect("a scenario"), "model"), first);
    write("scenarios/rtt.csv", "at_s,rtt_ms\n5,81\n");
    assert_ne!(key_of(&of_study().expect("a scenario"), "model"), first);
    // Blocks with the same rows are the same run.
    assert_eq!(key(&format!("{TEXT}[[changes]]\nat_s = 5\nrtt_ms = 80\n")), first);
    write("scenarios/rtt.csv", "at_s,rtt_ms\n5,-1\n");
    let error = of_study().expect_err("no delay is below 0");
    assert!(error.contains("rtt.csv:2: rtt_ms: -1 is out of range"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Two scenarios have one key if, and only if, all their values are equal.
    #[test]
    fn any_changed_value_changes_the_key(
        one in (0_u64..4, 1_u64..4, 20_u64..23, 1_u64..4),
        other in (0_u64..4, 1_u64..4, 20_u64..23, 1_u64..4),
    ) {
        let text = |(seed, rtt, duration, count): (u64, u64, u64, u64)| {
            format!("duration_s = {duration}\nseed = {seed}\n[path]\nrtt_ms = {rtt}.5\n[[hosts]]\ncount = {count}\n")
        };
        prop_assert_eq!(key(&text(one)) == key(&text(other)), one == other);
    }

    /// Whole numbers that a float cannot tell apart are not one.
    #[test]
    fn large_seeds_have_keys_of_their_own(seed in (1_u64 << 53)..(1 << 62)) {
        let of = |seed: u64| key_of(&with_seed(seed), "model");
        prop_assert_ne!(of(seed), of(seed + 1));
    }
}

/// Each key of the format that takes a number is changed by itself.
#[test]
fn each_number_of_a_scenario_is_in_the_key() {
    let mut tried = 0;
    for change in [
        "warmup_s=2",
        "sample_ms=50",
        "seed=8",
        "access.queue_packets=51",
        "path.loss=0.01",
        "path.rate_mbps=9",
        "hosts.0.queue_packets=77",
        "hosts.0.congestion_control=cubic",
        "hosts.0.policy=lasthop",
        "hosts.0.era=modern",
        "access.rate_control=arf",
        "hosts.0.tcp.initial_window=4",
    ] {
        let change = Override::parse(change).expect("an override");
        let Ok(changed) = Scenario::from_toml("one.toml", TEXT, std::slice::from_ref(&change)) else { continue };
        if changed.to_json() != scenario(TEXT).to_json() {
            tried += 1;
            assert_ne!(key_of(&changed, "model"), key(TEXT), "{change}");
        }
    }
    assert!(tried >= 8, "{tried}");
}

#[test]
fn what_is_stored_comes_back_in_the_words_of_who_asks() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let (run, key) = (result(&scenario(TEXT)), key(TEXT));
    assert!(store.get(&key, false).is_none());
    store.put(&key, &run, None).expect("it is stored");
    assert!(store.get(&key, true).is_none(), "without series");
    let mut series = Series::default();
    series.flows.push(FlowSample { t_s: 0.1 + 0.2, srtt_ms: Some(1.0 / 3.0), ..FlowSample::default() });
    store.put(&key, &run, Some(&series)).expect("it is stored");
    let renamed = scenario(&format!("name = \"renamed\"\n{TEXT}"));
    let build = Build { version: "9".into(), commit: Some("abc".into()), dirty: false };
    let (back, samples) = store.get(&key, true).expect("it is there").of(&renamed, build.clone());
    assert_eq!(back, RunResult { scenario: renamed.to_json(), build, ..run });
    assert_eq!(samples, Some(series));
}

#[test]
fn an_entry_cut_at_any_length_or_changed_anywhere_is_not_taken_and_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let key = key(TEXT);
    store.put(&key, &result(&scenario(TEXT)), None).expect("it is stored");
    let path = entry(folder.path(), &key);
    let whole = fs::read(&path).expect("an entry");
    let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|length| whole[..length].to_vec()).collect();
    damaged.extend((0..whole.len()).map(|place| {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        bytes
    }));
    damaged.push([&whole[..], b"x"].concat());
    for bytes in damaged {
        fs::write(&path, &bytes).expect("a file");
        assert!(store.get(&key, false).is_none(), "{} of {} bytes", bytes.len(), whole.len());
        assert!(!path.exists());
    }
    // Under the name of another run it is damaged as well.
    let other = key_of(&with_seed(8), "model");
    fs::create_dir_all(entry(folder.path(), &other).parent().expect("a folder")).expect("a folder");
    fs::write(entry(folder.path(), &other), &whole).expect("a file");
    assert!(store.get(&other, false).is_none());
}

#[test]
fn who_only_looks_makes_no_folder_and_an_error_is_said_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path().join("runs");
    let model = || Ok("model".to_owned());
    let store =
        StoredRuns::look_in(&StoreChoice::Folder(runs.clone()), model(), Build::default(), |said| panic!("{said}"));
    assert!(store.look_up(&scenario(TEXT), false).is_none() && !runs.exists());
    let done = Store::open(&runs).expect("a store");
    done.put(&key(TEXT), &result(&scenario(TEXT)), None).expect("it is stored");
    assert!(store.look_up(&scenario(TEXT), false).is_some());
    let error = Store::open(&entry(&runs, &key(TEXT))).expect_err("a file is no folder");
    assert!(error.to_string().contains("os error") && std::error::Error::source(&error).is_none(), "{error}");
}

#[test]
fn a_merge_copies_what_is_whole_and_counts_the_rest() {
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let [from, into] = folders.each_ref().map(|folder| Store::open(folder.path()).expect("a store"));
    let keys: Vec<Key> = (1..=3)
        .map(|seed| {
            let key = key_of(&with_seed(seed), "model");
            from.put(&key, &result(&with_seed(seed)), None).expect("it is stored");
            key
        })
        .collect();
    into.put(&keys[0], &result(&with_seed(1)), None).expect("it is stored");
    let cut = entry(folders[0].path(), &keys[1]);
    fs::write(&cut, &fs::read(&cut).expect("an entry")[..50]).expect("a file");
    fs::write(folders[0].path().join("a-file-of-mine"), "").expect("a file");
    let merged = into.merge(folders[0].path()).expect("it merges");
    assert_eq!(merged, Merged { copied: 1, known: 1, damaged: 1 });
    assert_eq!(keys.iter().filter(|key| into.get(key, false).is_some()).count(), 2);
    assert!(into.merge(Path::new("/nowhere")).expect_err("no store").to_string().contains("/nowhere"));
}

#[test]
fn the_least_recently_used_runs_go_and_never_those_of_this_study() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys: Vec<Key> = (1..=4).map(|seed| key_of(&with_seed(seed), "model")).collect();
    let before = Store::open(folder.path()).expect("a store");
    for (age, (seed, key)) in (1..).zip((1..).zip(&keys)) {
        before.put(key, &result(&with_seed(seed)), None).expect("it is stored");
        let file = fs::File::open(entry(folder.path(), key)).expect("an entry");
        // Of the four the first was used first.
        let used = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 * age);
        file.set_modified(used).expect("a time");
    }
    let store = Store::open(folder.path()).expect("a store");
    assert!(store.get(&keys[0], false).is_some());
    let bytes: u64 = keys.iter().map(|key| fs::metadata(entry(folder.path(), key)).expect("an entry").len()).sum();
    assert_eq!(store.shrink(bytes).expect("it is read"), 0);
    assert_eq!(store.shrink(bytes - 1).expect("it is read"), 1);
    assert!(!entry(folder.path(), &keys[1]).exists(), "the first was used since");
    assert_eq!(store.shrink(0).expect("it is read"), 2);
    assert!(store.get(&keys[0], false).is_some());
}

/// Set in the processes of the next test: the folder of the store.
const WRITER: &str = "LASTHOP_TEST_WRITER";

#[test]
fn several_processes_write_one_store() {
    const RUNS: u64 = 40;
    let write = |store: &Store| {
        for seed in 0..RUNS {
            let key = key_of(&with_seed(seed), "model");
            assert!(store.get(&key, false).is_none_or(|run| run.wall_s() == 0.125));
            store.put(&key, &result(&with_seed(seed)), None).expect("it is stored");
            assert!(store.get(&key, false).is_some());
        }
    };
    if let Some(folder) = std::env::var_os(WRITER) {
        return write(&Store::open(Path::new(&folder)).expect("a store"));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let start = |_| {
        let this = std::env::current_exe().expect("this test");
        let arguments = ["--exact", "several_processes_write_one_store"];
        let mut writer = Command::new(this);
        writer.args(arguments).env(WRITER, folder.path()).stdout(std::process::Stdio::null());
        writer.spawn().expect("it starts")
    };
    let writers: Vec<_> = (0..3).map(start).collect();
    for mut writer in writers {
        assert!(writer.wait().expect("a child").success());
    }
    let store = Store::open(folder.path()).expect("a store");
    assert!((0..RUNS).all(|seed| store.get(&key_of(&with_seed(seed), "model"), false).is_some()));
    assert_eq!(fs::read_dir(folder.path().join("tmp")).expect("a folder").count(), 0);
}

#[test]
fn runs_that_ask_a_program_are_not_stored() {
    let external = scenario("[[hosts]]\npolicy = \"external\"\ncommand = [\"python3\", \"mine.py\"]\n");
    assert_eq!(Key::of(&external, "model"), None);
}
