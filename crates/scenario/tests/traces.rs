//! `trace = "FILE"`: what a file's rows become, and what is said of a wrong one.

use lasthop_network::{Change, Changed, DirectionChange, Way};
use lasthop_scenario::{Override, Scenario};
use lasthop_units::{Probability, Rate, Span, Time};
use std::fs;
use tempfile::TempDir;

const LINKS: &str = "duration_s = 20\n[[links]]\nbetween = [\"A\", \"B\"]\nrate_mbps = 10\nloss = 0.25\n\
                     [[hosts]]\nnode = \"A\"\n[[hosts.flows]]\nto = \"B\"\n";
const OF_LINK: &str = "[[changes]]\nbetween = [\"A\", \"B\"]\ntrace = \"link.txt\"\n";

/// A scenario in a folder with its trace, read with these overrides.
fn read(scenario: &str, (name, trace): (&str, &str), overrides: &[&str]) -> Result<Scenario, String> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(name), trace).expect("written");
    load(&folder, scenario, overrides).map_err(|error| error.replace(&format!("{}/", folder.path().display()), ""))
}

fn load(folder: &TempDir, scenario: &str, overrides: &[&str]) -> Result<Scenario, String> {
    let path = folder.path().join("some.toml");
    fs::write(&path, scenario).expect("written");
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("a setting")).collect();
    Scenario::load(&path, &overrides).map_err(|error| error.to_string())
}

fn forth(at_ms: u64, rate_mbps: Option<f64>, loss: Option<f64>) -> Change {
    let loss = loss.map(|loss| Probability::new(loss).expect("a probability"));
    let to =
        DirectionChange { rate: rate_mbps.map(Rate::from_mbps), delay: None, loss, held: None, opportunities: None };
    Change { at: Time::ZERO + Span::from_millis(at_ms), what: Changed::Link { link: 0, way: Way::Forth, to } }
}

#[test]
fn rows_of_a_csv_are_changes_and_the_rest_of_the_scenario_stays() {
    let trace = "# measured in the garden\nat_s, rate_mbps, delay_ms\n0, 8, 5\r\n\n1.5,4,\n# a pause\n30, 2, 9\n";
    let scenario = read(&format!("{LINKS}{OF_LINK}at_s = 2\n"), ("link.txt", trace), &[]).expect("a scenario");
    let mut first = forth(2_000, Some(8.0), None);
    let Changed::Link { to, .. } = &mut first.what else { unreachable!("it is of a link") };
    to.delay = Some(Span::from_millis(5));
    // The last row comes after the end of the run.
    assert_eq!(scenario.network().changes, [first, forth(3_500, Some(4.0), None)]);
    assert_eq!(scenario.late_changes(), []);
    // What is kept of a run needs no file: neither its path nor its rows of another time.
    let written = scenario.to_toml();
    assert!(!written.contains("link.txt") && written.contains("rate_mbps = 8"), "{written}");
    for again in [
        Scenario::from_toml("again.toml", &written, &[]).expect("TOML"),
        Scenario::from_json(&scenario.to_json()).expect("JSON"),
    ] {
        assert_eq!(again.network(), scenario.network());
        assert_eq!(again.to_json(), scenario.to_json());
    }
}

#[test]
fn a_link_with_a_rate_of_0_loses_all_until_there_is_another_rate_and_then_what_it_lost_before() {
    let trace = "at_s,rate_mbps\n1,0\n2,0\n3,5\n4,6\n";
    let scenario = read(&format!("{LINKS}{OF_LINK}"), ("link.txt", trace), &[]).expect("a scenario");
    assert_eq!(
        scenario.network().changes,
        [
            forth(1_000, None, Some(1.0)),
            forth(2_000, None, Some(1.0)),
            forth(3_000, Some(5.0), Some(0.25)),
            forth(4_000, Some(6.0), None)
        ]
    );
    // A loss that is given meanwhile counts afterwards; a block of the file does as a trace does.
    let block = |at: u32, what: &str| format!("[[changes]]\nat_s = {at}\nbetween = [\"A\", \"B\"]\n{what}\n");
    let blocks = [block(3, "rate_mbps = 5"), block(1, "rate_mbps = 0"), block(2, "loss = 0.5")].concat();
    let scenario = read(&format!("{LINKS}{blocks}"), ("link.txt", ""), &[]).expect("a scenario");
    let changes = [forth(3_000, Some(5.0), Some(0.5)), forth(1_000, None, Some(1.0)), forth(2_000, None, Some(1.0))];
    assert_eq!(scenario.network().changes, changes);
}

#[test]
fn a_trace_of_stations_changes_their_snr_or_their_rate() {
    let hosts = "duration_s = 20\n[access]\nstandard = \"802.11ac\"\n[[hosts]]\n[[hosts]]\nsnr_db = 30\n\
                 [[changes]]\nhosts = [1]\ntrace = \"walk.csv\"\n";
    let trace = "at_s,snr_db\n0,30\n5,12.5\n";
    let scenario = read(hosts, ("walk.csv", trace), &[]).expect("a scenario");
    let snr = |change: &Change| match change.what {
        Changed::Station { host: 1, snr_db, .. } => snr_db,
        other => panic!("{other:?}"),
    };
    assert_eq!(scenario.network().changes.iter().map(snr).collect::<Vec<_>>(), [Some(30.0), Some(12.5)]);
    // A station whose rate is 0 loses all frames, and an SNR cannot be joined later.
    let broken = "[[hosts]]\nframe_error_rate = 0.1\n[[changes]]\nof = \"hosts\"\ntrace = \"walk.csv\"\n";
    let scenario = read(broken, ("walk.csv", "at_s,rate_mbps\n1,0\n2,6\n"), &[]).expect("a scenario");
    let errors = |change: &Change| match change.what {
        Changed::Station { rate, frame_error_rate, .. } => (rate, frame_error_rate.map(Probability::get)),
        other => panic!("{other:?}"),
    };
    let changes: Vec<_> = scenario.network().changes.iter().map(errors).collect();
    assert_eq!(changes, [(None, Some(1.0)), (Some(Rate::from_mbps(6.0)), Some(0.1))]);
    let error = read(&hosts.replace("[1]", "[0]"), ("walk.csv", trace), &[]).expect_err("host 0 has none");
    assert_eq!(error, "walk.csv:2: snr_db: 30 cannot be here; accepted: none, for host 0 has no SNR that could change");
}

#[test]
fn a_trace_of_the_command_line_is_looked_for_where_that_is_typed() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("link.txt"), "at_s,rate_mbps\n1,3\n").expect("written");
    let other = folder.path().join("other.csv");
    fs::write(&other, "at_s,rate_mbps\n1,4\n").expect("written");
    let set = format!("changes.0.trace={}", other.display());
    let scenario = load(&folder, &format!("{LINKS}{OF_LINK}"), &[&set]).expect("a scenario");
    assert_eq!(scenario.network().changes, [forth(1_000, Some(4.0), None)]);
    let error = load(&folder, &format!("{LINKS}{OF_LINK}"), &["changes.0.trace=link.txt"]).expect_err("it is not here");
    assert!(error.contains("link.txt cannot be read: No such file"), "{error}");
}

#[test]
fn wrong_traces_are_named_with_their_line_and_what_is_accepted() {
    let of = |trace: &str| read(&format!("{LINKS}{OF_LINK}"), ("link.txt", trace), &[]).expect_err("it is wrong");
    let rate = "accepted: a number from 0 to 100000";
    for (trace, message) in [
        (
            "",
            "some.toml:12: changes[0].trace: link.txt is empty; accepted: the path of a CSV file or a mahimahi trace \
              (docs/guide/trace.md)",
        ),
        ("at_s,rate_mbps\n1,8\n2,fast\n", &format!("link.txt:3: rate_mbps: \"fast\" is no number; {rate}")),
        ("at_s,rate_mbps\n1,-8\n", &format!("link.txt:2: rate_mbps: -8 is out of range; {rate}")),
        (
            "at_s,rate_mbps\n1,0.0000001\n",
            "link.txt:2: rate_mbps: 0.0000001 is out of range; accepted: 0, or a number from \
                                       0.000001 to 100000",
        ),
        ("at_s,rate_mbps\n2,8\n# back\n1,8\n", "link.txt:4: at_s: 1 goes back; accepted: 2 or later"),
        ("at_s,rate_mbps\n,8\n", "link.txt:2: at_s: is not there; accepted: a number from 0 to 86400"),
        ("at_s,rate_mbps\n1,8,9\n", "link.txt:2: the row: has 3 cells; accepted: 2 cells"),
        ("at_s,rate_mbps\n", "link.txt:1: the header: has no row below it; accepted: at least one row"),
        (
            "at_s,rate_mpbs\n1,8\n",
            "link.txt:1: rate_mpbs: is no column of a trace with of = \"link\"; did you mean \
                                   rate_mbps?; accepted: at_s, rate_mbps, delay_ms, loss, held, back_rate_mbps, \
                                   back_delay_ms, back_loss, back_held",
        ),
        (
            "at_s,loss,loss\n1,1,1\n",
            "link.txt:1: loss: is a column twice; accepted: at_s, rate_mbps, delay_ms, loss, held, \
                                     back_rate_mbps, back_delay_ms, back_loss, back_held",
        ),
        (
            "rate_mbps,loss\n1,1\n",
            "link.txt:1: at_s: is not there; accepted: at_s, rate_mbps, delay_ms, loss, held, \
                                   back_rate_mbps, back_delay_ms, back_loss, back_held",
        ),
        (
            "1\n2\n3.5\n4\n",
            "link.txt:3: the time: \"3.5\" is no whole number; accepted: lines of whole milliseconds in order, \
                         each an opportunity for 1500 bytes",
        ),
        (
            "1\n3\n2\n",
            "link.txt:3: the time: 2 goes back; accepted: lines of whole milliseconds in order, each an \
                       opportunity for 1500 bytes",
        ),
        ("0\n0\n", "link.txt:2: the time: 0 is the last time: the trace takes no time; accepted: a last time above 0"),
    ] {
        assert_eq!(of(trace), message, "{trace:?}");
    }
    let of = |changes: &str| read(&format!("{LINKS}{changes}"), ("link.txt", "5\n"), &[]).expect_err("it is wrong");
    assert_eq!(
        of(&format!("{OF_LINK}rate_mbps = 3\n")),
        "some.toml:13: changes[0].rate_mbps: cannot be beside trace; accepted: trace, or the change itself"
    );
    assert_eq!(
        of(&OF_LINK.replace("link.txt", "lnk.txt")),
        "some.toml:12: changes[0].trace: lnk.txt cannot be read: No such file or directory (os error 2); accepted: the \
         path of a CSV file or a mahimahi trace (docs/guide/trace.md)"
    );
    let error = of(&OF_LINK.replace("B\"]", "C\"]"));
    assert!(error.starts_with("some.toml:11: changes[0].between: no link names a node \"C\""), "{error}");
    let hosts = read("[[hosts]]\n[[changes]]\nof = \"hosts\"\ntrace = \"a\"\n", ("a", "1\n"), &[]).expect_err("wrong");
    assert!(hosts.starts_with("a:1: the trace: is mahimahi's format, which is the rate of a link"), "{hosts}");
    let path = read("[[hosts]]\n[[changes]]\ntrace = \"a\"\n", ("a", "at_s,rate_mbps\n1,0\n"), &[]).expect_err("wrong");
    assert_eq!(
        path,
        "a:2: rate_mbps: 0 cannot be here; accepted: a number from 0.000001, or held = true; only links and stations break"
    );
}

/// The instants of the first trace of opportunities.
fn instants(scenario: &Scenario) -> Vec<(u32, u32)> {
    scenario.network().opportunities[0].instants().to_vec()
}

#[test]
fn a_trace_of_mahimahi_is_kept_as_its_opportunities() {
    let of =
        |trace: &str, set: &[&str]| read(&format!("{LINKS}{OF_LINK}"), ("link.txt", trace), set).expect("a scenario");
    let scenario = of("0\n3\n3\n# a pause\n\n7\r\n7\n7\n", &["changes.0.at_s=3"]);
    assert_eq!(instants(&scenario), [(0, 1), (3, 2), (7, 3)]);
    assert!(scenario.network().opportunities[0].repeats());
    let to = DirectionChange { opportunities: Some(0), ..DirectionChange::default() };
    let at = Time::ZERO + Span::from_secs(3);
    assert_eq!(scenario.network().changes, [Change { at, what: Changed::Link { link: 0, way: Way::Forth, to } }]);
    let written = scenario.to_toml();
    assert!(!written.contains("link.txt") && written.contains("opportunities_ms = \"0 3*2 7*3\""), "{written}");
    for again in [
        Scenario::from_toml("again.toml", &written, &[]).expect("TOML"),
        Scenario::from_json(&scenario.to_json()).expect("JSON"),
    ] {
        assert_eq!(again.network(), scenario.network());
        assert_eq!(again.to_json(), scenario.to_json());
    }
    // Behind the end of the run nothing is read: not the next line, and not how long the trace is.
    let scenario = of("5\n1001\nnonsense\n", &["duration_s=1", "warmup_s=0"]);
    assert_eq!((instants(&scenario), scenario.network().opportunities[0].repeats()), (vec![(5, 1), (1001, 1)], false));
    assert!(scenario.to_toml().contains("opportunities_ms = \"5 1001 ...\""));
    // Of the path, and written in the scenario itself.
    let of_path = "[[hosts]]\n[[changes]]\nopportunities_ms = \"200*10\"\n";
    let scenario = Scenario::from_toml("some.toml", of_path, &[]).expect("a scenario");
    assert_eq!(instants(&scenario), [(200, 10)]);
}

#[test]
fn opportunities_that_cannot_be_are_named() {
    let of = |lines: &str| {
        let text = format!("[[hosts]]\n[[changes]]\n{lines}\n");
        Scenario::from_toml("some.toml", &text, &[]).expect_err("it is wrong").to_string()
    };
    let accepted = "accepted: milliseconds in order, parted by spaces; 200*10 is ten opportunities at 200";
    let here = "some.toml:3: changes[0].opportunities_ms:";
    assert_eq!(of("opportunities_ms = \"5 4\""), format!("{here} 4 goes back; {accepted}"));
    assert_eq!(of("opportunities_ms = \"5*0\""), format!("{here} \"5*0\" is no opportunity; {accepted}"));
    assert_eq!(of("opportunities_ms = \"0*3\""), format!("{here} takes no time; {accepted}"));
    assert_eq!(of("opportunities_ms = \"...\""), format!("{here} has no opportunity; {accepted}"));
    let beside = of("opportunities_ms = \"5\"\nrate_mbps = 3");
    assert!(beside.contains("changes[0].rate_mbps: cannot be beside opportunities_ms"), "{beside}");
    let hosts = of("opportunities_ms = \"5\"\nhosts = [0]");
    assert!(hosts.contains("opportunities_ms: is the rate of a link, and no PHY rate of stations"), "{hosts}");
}

/// The case plain-trace of issue 37, and others of its kind.
#[test]
fn two_columns_without_a_header_are_seconds_and_megabits_with_a_note() {
    for plain in [
        "0.0 4.2\n0.5 3.1\n",
        "\u{feff}0.0\t4.2\r\n0.5\t3.1\r\n\r\n\r\n",
        "# Pensieve\n  0,4.2\n\n0.5 , 3.1 # slower\n",
        "0;4.2\n0.5;3.1",
    ] {
        let scenario = read(&format!("{LINKS}{OF_LINK}"), ("link.txt", plain), &[]).expect(plain);
        assert_eq!(scenario.network().changes, [forth(0, Some(4.2), None), forth(500, Some(3.1), None)], "{plain:?}");
        let note = scenario.assumed_headers()[0].to_string();
        assert!(note.ends_with("link.txt has no header line: read as at_s,rate_mbps (seconds and Mb/s)"), "{note}");
    }
    let named =
        read(&format!("{LINKS}{OF_LINK}"), ("link.txt", "at_s rate_mbps\n0 4.2\n0.5 3.1\n"), &[]).expect("named");
    assert_eq!(named.network().changes, [forth(0, Some(4.2), None), forth(500, Some(3.1), None)]);
    assert_eq!(named.assumed_headers(), []);
    // Quoted (RFC 4180), as spreadsheets and R write them.
    for quoted in [
        "\"at_s\",\"rate_mbps\"\r\n\"0\",\"4.2\"\r\n0.5,3.1\r\n",
        "\u{feff}\"at_s\"; \" rate_mbps \"\n0;\"4.2\"\n0.5;3.1",
        "\"at_s\" \"rate_mbps\"\n0 4.2\n0.5 \"3.1\"\n",
    ] {
        let scenario = read(&format!("{LINKS}{OF_LINK}"), ("link.txt", quoted), &[]).expect(quoted);
        assert_eq!(scenario.network().changes, [forth(0, Some(4.2), None), forth(500, Some(3.1), None)], "{quoted:?}");
        assert_eq!(scenario.assumed_headers(), []);
    }
    let of = |plain: &str| read(&format!("{LINKS}{OF_LINK}"), ("link.txt", plain), &[]).expect_err("it is wrong");
    for (plain, told) in [
        (
            "4.2\n3.1\n",
            "link.txt:1: the trace: no header line, and 1 column of a trace with of = \"link\"; accepted: a first line such \
             as at_s,rate_mbps; of at_s, rate_mbps, delay_ms",
        ),
        ("0 4.2 9\n", "link.txt:1: the trace: no header line, and 3 columns of a trace"),
        ("1 4.2\n0.5 3.1\n", "link.txt:2: at_s: 0.5 goes back; accepted: 1 or later"),
        ("0 4.2\n0.5\n", "link.txt:2: the row: has 1 cells; accepted: 2 cells"),
        // A comma for a point, and a quote without an end.
        ("at_s,rate_mbps\n\"0,5\",3\n", "link.txt:2: at_s: \"0,5\" is no number"),
        ("at_s,rate_mbps\n\"0,3\n", "link.txt:2: at_s: \"\"0,3\" is no number"),
        ("at_s,rate_mbps\r0,3\r", "link.txt:1: the trace: cannot be read: line 1 has a carriage return inside"),
        ("0 4.2\n0.5 fast\n", "link.txt:2: rate_mbps: \"fast\" is no number"),
        ("time,throughput\n0,4.2\n", "link.txt:1: time: is no column of a trace"),
        ("1290000000 4.2\n", "link.txt:1: at_s: 1290000000 is out of range; accepted: a number from 0 to 86400"),
    ] {
        let error = of(plain);
        assert!(error.starts_with(told), "{plain:?}: {error}");
    }
    let hosts = "[[hosts]]\n[[changes]]\nof = \"hosts\"\ntrace = \"a\"\n";
    let error = read(hosts, ("a", "0 4.2\n"), &[]).expect_err("no PHY rate");
    assert!(
        error.starts_with("a:1: the trace: no header line, and 2 columns of a trace with of = \"hosts\""),
        "{error}"
    );
}

#[test]
fn a_trace_holds_what_it_is_of() {
    let trace = "at_s,held,back_held\n1,true,\n1.15,0,1\n2,,false\n";
    let scenario = read(&format!("{LINKS}{OF_LINK}"), ("link.txt", trace), &[]).expect("a scenario");
    let held = |at_ms, way, held| {
        let to = DirectionChange { held: Some(held), ..DirectionChange::default() };
        Change { at: Time::ZERO + Span::from_millis(at_ms), what: Changed::Link { link: 0, way, to } }
    };
    let expected = [
        held(1_000, Way::Forth, true),
        held(1_150, Way::Forth, false),
        held(1_150, Way::Back, true),
        held(2_000, Way::Back, false),
    ];
    assert_eq!(scenario.network().changes, expected);
    for (of, what) in [
        ("", Changed::Path { rtt: None, rate: None, loss: None, held: Some(true), opportunities: None }),
        (
            "hosts = [0]\n",
            Changed::Station { host: 0, rate: None, mcs: None, frame_error_rate: None, snr_db: None, held: Some(true) },
        ),
    ] {
        let text = format!("[[hosts]]\n[[changes]]\nat_s = 3\nheld = true\n{of}");
        let scenario = Scenario::from_toml("some.toml", &text, &[]).expect("a scenario");
        assert_eq!(scenario.network().changes[0].what, what);
    }
    let error = read(&format!("{LINKS}{OF_LINK}"), ("link.txt", "at_s,held\n1,yes\n"), &[]).expect_err("neither");
    assert_eq!(error, "link.txt:2: held: \"yes\" is neither; accepted: true, false");
}

/// A CSV of so many rows a second, and the same as mahimahi's format.
fn long(rows: u32) -> (String, String) {
    let rate = |row: u32| 1 + row % 7;
    let csv = (0..rows).map(|row| format!("{},{}\n", f64::from(row) / 4_000.0, rate(row))).collect::<String>();
    (format!("at_s,rate_mbps\n{csv}"), (0..rows).map(|row| format!("{}\n", 1 + row)).collect())
}

#[test]
fn a_long_trace_stays_a_file_with_its_digest() {
    let (csv, mahimahi) = long(30_000);
    let folder = tempfile::tempdir().expect("a folder");
    for (trace, changes, instants) in [(&csv, 30_000, 0), (&mahimahi, 1, 30_000)] {
        fs::write(folder.path().join("link.txt"), trace).expect("written");
        let text = format!("{LINKS}{OF_LINK}").replace("duration_s = 20", "duration_s = 40");
        let scenario = load(&folder, &text, &[]).expect("a scenario");
        assert_eq!(scenario.network().changes.len(), changes);
        assert_eq!(scenario.network().opportunities.first().map_or(0, |trace| trace.instants().len()), instants);
        // What is kept names the file, from anywhere, and notices another one. A result is read without it.
        let written = scenario.to_toml();
        let place = folder.path().join("link.txt").display().to_string();
        assert!(written.contains(&format!("trace = \"{place}\"")) && written.len() < 4_000, "{written}");
        let again = Scenario::from_toml("/elsewhere/again.toml", &written, &[]).expect("TOML");
        assert_eq!(again.network(), scenario.network());
        assert_eq!(again.to_json(), scenario.to_json());
        let unread = Scenario::from_json(&scenario.to_json()).expect("JSON");
        assert_eq!(unread.network().changes, []);
        assert_eq!(unread.to_json(), scenario.to_json());
        fs::write(folder.path().join("link.txt"), trace.replacen('1', "2", 1)).expect("written");
        let error = Scenario::from_toml("again.toml", &written, &[]).expect_err("it has changed").to_string();
        assert!(error.contains("trace_digest: ") && error.contains("has changed, or another part of it"), "{error}");
    }
}

#[test]
fn keys_as_written_have_the_rows_or_where_runs_may_read_others_the_whole_path() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("link.txt"), "at_s,rate_mbps\n1,5\n30,9\n").expect("written");
    let scenario = load(&folder, &format!("{LINKS}{OF_LINK}"), &["hosts.0.count=7"]).expect("a scenario");
    let place = folder.path().join("link.txt").display().to_string();
    for (varied, trace, rate) in [
        ("hosts.0.era", None, Some(5.0)),
        ("changes[0].trace", Some(&*place), None),
        ("duration_s", Some(&*place), None),
    ] {
        let written = scenario.written_for([varied]);
        let change = &written["changes"][0];
        assert_eq!((change["trace"].as_str(), change["rate_mbps"].as_f64()), (trace, rate), "{varied}");
        // No defaults, but what the command line set.
        let host = &written["hosts"][0];
        assert_eq!((host["count"].as_u64(), host.get("era")), (Some(7), None));
        assert_eq!((written["name"].as_str(), written.get("sample_ms")), (Some("some"), None));
    }
}

#[test]
fn a_wrong_row_far_down_is_named_and_rows_behind_the_run_are_not_read() {
    let (csv, mahimahi) = long(80_000);
    let of = |trace: &str, end_s: u32| {
        let text = format!("{LINKS}{OF_LINK}").replace("duration_s = 20", &format!("duration_s = {end_s}"));
        read(&text, ("link.txt", trace), &[])
    };
    // Row 79,000 of 4000 in a second is at 19.75 s; line 79,000 of mahimahi's at 79 s.
    let csv = csv.replacen("\n19.75,", "\n19.75,x", 1);
    assert!(of(&csv, 19).is_ok());
    let error = of(&csv, 20).expect_err("wrong");
    assert_eq!(error, "link.txt:79002: rate_mbps: \"x6\" is no number; accepted: a number from 0 to 100000");
    let wrong = csv.replace("x6", "0.0000001");
    let error = of(&wrong, 20).expect_err("too slow");
    assert!(
        error.starts_with("link.txt:79002: rate_mbps: 0.0000001 is out of range; accepted: 0, or a number from"),
        "{error}"
    );
    let mahimahi = mahimahi.replacen("\n79000\n", "\nfast\n", 1);
    assert!(of(&mahimahi, 78).is_ok());
    let error = of(&mahimahi, 80).expect_err("wrong");
    assert!(error.starts_with("link.txt:79000: the time: \"fast\" is no whole number"), "{error}");
    // A row of a long CSV that the network refuses, and a line without an end.
    let text = "duration_s = 20\n[[hosts]]\n[[changes]]\ntrace = \"a\"\n";
    let (csv, _) = long(30_000);
    let error = read(text, ("a", &csv.replacen("\n7,1\n", "\n7,0\n", 1)), &[]).expect_err("a path does not break");
    assert!(error.starts_with("a:28002: rate_mbps: 0 cannot be here"), "{error}");
    let error = of(&"#".repeat(70_000), 20).expect_err("too long");
    assert_eq!(
        error,
        "link.txt:1: the trace: cannot be read: line 1 has more than 65536 bytes; accepted: lines of text"
    );
}

/// mahimahi's own traces have 75 MB; the whole point is that a file is not in memory.
#[test]
fn a_trace_of_more_than_16_mib_is_read() {
    let trace: String = (0..3_300_000_u32).map(|opportunity| format!("{}\n", 1 + opportunity / 18)).collect();
    assert!(trace.len() > 16 << 20);
    let text = format!("{LINKS}{OF_LINK}").replace("duration_s = 20", "duration_s = 300");
    let scenario = read(&text, ("link.txt", &trace), &[]).expect("a scenario");
    assert_eq!(scenario.network().opportunities[0].instants().len(), 183_334);
    // 18 packets of 1500 bytes in a millisecond are 216 Mb/s.
    assert!((scenario.network().opportunities[0].mean_rate().as_mbps() - 216.0).abs() < 0.1);
}
