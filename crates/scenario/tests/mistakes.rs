//! A scenario that cannot be run says where, what, and what would be accepted.

use lasthop_scenario::{Override, Scenario, ScenarioError, ineffective_keys};

const GOOD: &str = "\
name = \"good\"
duration_s = 20
warmup_s = 5

[access]
rate_mbps = 54

[[hosts]]
count = 2
[[hosts.flows]]
start_s = [0, 1]
";

/// The message about `GOOD` with one line of it replaced.
fn message(line: &str, with: &str) -> String {
    let text = GOOD.replace(line, with);
    assert_ne!(text, GOOD, "{line}");
    Scenario::from_toml("good.toml", &text, &[]).expect_err(with).to_string()
}

fn with_overrides(overrides: &[&str]) -> Result<Scenario, ScenarioError> {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("an override")).collect();
    Scenario::from_toml("good.toml", GOOD, &overrides)
}

fn override_message(text: &str) -> String {
    with_overrides(&[text]).expect_err(text).to_string()
}

#[test]
fn the_scenario_without_a_mistake_is_read() {
    Scenario::from_toml("good.toml", GOOD, &[]).expect("a scenario");
}

#[test]
fn an_unknown_key_names_the_one_that_was_meant() {
    assert_eq!(
        message("warmup_s = 5", "warm_up_s = 5"),
        "good.toml:3: warm_up_s: unknown key; did you mean warmup_s?; accepted: name, duration_s, warmup_s, \
         seed, sample_ms, access, path, cells, hearing, links, changes, hosts"
    );
    let nested = message("start_s = [0, 1]", "starts_s = 3");
    assert!(
        nested.starts_with("good.toml:11: hosts[0].flows[0].starts_s: unknown key; did you mean start_s?"),
        "{nested}"
    );
    let policy = message("count = 2", "count = 2\nenable_rato = 3.0");
    assert!(policy.contains("hosts[0].enable_rato") && policy.contains("did you mean enable_ratio?"), "{policy}");
}

#[test]
fn a_value_of_the_wrong_type_says_what_it_is() {
    assert_eq!(
        message("count = 2", "count = \"two\""),
        "good.toml:9: hosts[0].count: \"two\" is text; accepted: a whole number from 0 to 250"
    );
    assert_eq!(
        message("count = 2", "count = 2.5"),
        "good.toml:9: hosts[0].count: 2.5 is a number with a fraction; accepted: a whole number from 0 to 250"
    );
    assert_eq!(
        message("[access]\nrate_mbps = 54", "access = 3"),
        "good.toml:5: access: is not a table; accepted: a table [access]"
    );
}

#[test]
fn a_number_out_of_range_is_refused() {
    for (line, with, key) in [
        ("rate_mbps = 54", "rate_mbps = -54", "access.rate_mbps: -54 is out of range"),
        ("rate_mbps = 54", "rate_mbps = 54\nframe_error_rate = 1.5", "access.frame_error_rate: 1.5 is out of range"),
        ("rate_mbps = 54", "rate_mbps = 54\nframe_error_rate = nan", "access.frame_error_rate: nan is out of range"),
        ("duration_s = 20", "duration_s = inf", "duration_s: inf is out of range"),
        ("duration_s = 20", "duration_s = 0", "duration_s: 0 is out of range"),
        ("warmup_s = 5", "warmup_s = 5\nseed = -1", "seed: -1 is out of range"),
        ("start_s = [0, 1]", "start_s = -1", "hosts[0].flows[0].start_s: -1 is out of range"),
    ] {
        let message = message(line, with);
        assert!(message.contains(key) && message.contains("; accepted: "), "{message}");
    }
}

#[test]
fn a_rate_that_the_standard_lacks_is_refused() {
    let unknown = message("rate_mbps = 54", "rate_mbps = 55");
    assert!(unknown.starts_with("good.toml:6: access.rate_mbps: 55 Mb/s is no rate"), "{unknown}");
    let foreign = message("rate_mbps = 54", "standard = \"802.11b\"\nrate_mbps = 54");
    assert!(foreign.contains("access.rate_mbps: 54 Mb/s cannot be here; accepted: 1 Mb/s"), "{foreign}");
    let of_host = message("count = 2", "count = 2\n[[hosts]]\nrate_mbps = 7");
    assert!(of_host.starts_with("good.toml:11: hosts[1].rate_mbps: 7 Mb/s cannot be here"), "{of_host}");
}

#[test]
fn a_warm_up_that_leaves_nothing_is_refused() {
    assert_eq!(
        message("warmup_s = 5", "warmup_s = 20"),
        "good.toml:3: warmup_s: 20 leaves nothing of a run of 20 s; accepted: a number from 0, below duration_s"
    );
    assert_eq!(
        override_message("duration_s=5"),
        "`duration_s=5` on good.toml: duration_s: a run of 5 s has nothing left after warmup_s = 5; accepted: a number above \
         warmup_s"
    );
}

#[test]
fn a_start_must_be_a_moment_of_the_run() {
    let reversed = message("start_s = [0, 1]", "start_s = [2, 1]");
    assert!(
        reversed.starts_with("good.toml:11: hosts[0].flows[0].start_s: [2, 1] ends before it begins"),
        "{reversed}"
    );
    let triple = message("start_s = [0, 1]", "start_s = [0, 1, 2]");
    assert!(triple.contains("is not a range of two numbers"), "{triple}");
    let late = message("start_s = [0, 1]", "start_s = [0, 20]");
    assert!(late.contains("20 is not before the end of the run at 20 s"), "{late}");
}

#[test]
fn a_flow_stops_after_it_has_started() {
    assert_eq!(
        message("start_s = [0, 1]", "start_s = [0, 1]\nstop_s = [1, 5]"),
        "good.toml:12: hosts[0].flows[0].stop_s: 1 is not behind the start, which may be at 1 s; accepted: moments \
         above start_s"
    );
    let too_early = override_message("hosts.0.flows.0.stop_s=0.5");
    assert!(
        too_early.starts_with("`hosts.0.flows.0.stop_s=0.5` on good.toml: hosts[0].flows[0].stop_s"),
        "{too_early}"
    );
    // Behind the end of the run it changes nothing, so that a shorter run needs no other file.
    with_overrides(&["hosts.0.flows.0.stop_s=3600"]).expect("a scenario");
}

#[test]
fn transfers_need_their_size() {
    assert_eq!(
        message("start_s = [0, 1]", "kind = \"transfers\""),
        "good.toml:10: hosts[0].flows[0].transfer_kib: is not there, and the kind \"transfers\" cannot be without it; \
         accepted: the size of each transfer in KiB, or transfer_sizes"
    );
}

#[test]
fn traffic_that_cannot_be_is_refused() {
    for (with, said) in [
        ("packet_bytes = 43\nkind = \"ping\"", "packet_bytes: 43 is too small: each packet carries its number"),
        ("buffer_s = 7\nkind = \"video\"", "buffer_s: 7 has no room for three chunks; accepted: a number from 12"),
        ("ladder_kbps = [3, 2]\nkind = \"video\"", "ladder_kbps: [3, 2] is no ladder; accepted: 1 to 16 bit rates"),
        (
            "ladder_kbps = []\nkind = \"video\"",
            "ladder_kbps: [] is no such list; accepted: a list of 1 to 64 whole numbers",
        ),
        ("kind = \"ftp\"", "kind: \"ftp\" is not one of the words; accepted: \"bulk\", \"on-off\""),
        ("kind = \"on_off\"", "did you mean \"on-off\"?"),
        ("gap_ms = 0", "gap_ms: 0 is out of range"),
        ("on_s = 0", "on_s: 0 is out of range"),
        ("packet_bytes = 27", "packet_bytes: 27 is out of range; accepted: a whole number from 28 to 2296"),
        ("message_bytes = 0", "message_bytes: 0 is out of range"),
        ("transfer_kib = 0", "transfer_kib: 0 is out of range"),
    ] {
        let message = message("start_s = [0, 1]", with);
        assert!(message.starts_with("good.toml:11: hosts[0].flows[0].") && message.contains(said), "{message}");
    }
}

#[test]
fn a_scenario_without_hosts_is_refused() {
    let error = Scenario::from_toml("none.toml", "duration_s = 20\n", &[]).expect_err("no hosts");
    assert_eq!(error.to_string(), "none.toml: hosts: there is none; accepted: at least one block [[hosts]]");
    assert!(Scenario::from_toml("none.toml", "hosts = []\n", &[]).is_err());
    assert!(Scenario::from_toml("none.toml", "hosts = 3\n", &[]).is_err());
    let single = Scenario::from_toml("none.toml", "[hosts]\ncount = 3\n", &[]).expect_err("a table").to_string();
    assert_eq!(single, "none.toml:1: hosts: is no list of blocks; accepted: blocks that begin with [[hosts]]");
}

#[test]
fn too_many_hosts_or_connections_are_refused() {
    let hosts = message("count = 2", "count = 200\n[[hosts]]\ncount = 51");
    assert!(hosts.contains("hosts[1].count: makes 251 hosts"), "{hosts}");
    let flows = message("start_s = [0, 1]", "count = 1000\n[[hosts.flows]]\ncount = 1");
    assert!(flows.contains("hosts[0].flows[1].count: makes 2002 connections"), "{flows}");
}

#[test]
fn policy_fixed_needs_its_bound() {
    assert_eq!(
        message("count = 2", "count = 2\npolicy = \"fixed\""),
        "good.toml:8: hosts[0].bound_segments: is not there, and the policy \"fixed\" cannot be without it; accepted: \
         a whole number from 1 (minimum_segments) to 1000000"
    );
}

#[test]
fn what_nothing_runs_yet_is_refused_with_what_can_be_run() {
    for (line, with, accepted) in [
        ("rate_mbps = 54", "queue = \"sfb\"", "\"fifo\", \"fq_codel\""),
        ("rate_mbps = 54", "rate_control = \"cara\"", "\"fixed\", \"arf\", \"aarf\", \"minstrel\""),
        ("count = 2", "policy = \"vegas\"", "\"none\", \"fixed\", \"count\", \"table\", \"formula\", \"cooperative\""),
        ("count = 2", "count_segments = [1, 0]", "a list of 1 to 64 whole numbers from 1 to 1000000"),
        ("count = 2", "count_segments = 5", "a list of 1 to 64 whole numbers from 1 to 1000000"),
        ("count = 2", "window_rows = [[0, 9]]", "lists of 3 whole numbers from 0 to 1000000"),
        // The reviewers' case panic-window-rows.
        ("count = 2", "window_rows = []", "1 to 64 lists of 3 whole numbers"),
        ("count = 2", "count_segments = []", "1 to 64 whole numbers"),
        ("count = 2", "window_rows = [[1, 9, 1]]", "rows [from, max, min] that begin at 0"),
        ("count = 2", "window_rows = [[0, 9, 10]]", "a min from 1 to the max"),
        ("count = 2", "hd.max_probability = 2", "a number from 0 to 1"),
        ("count = 2", "hd.alpha = 0.9", "queue_min_ms, queue_threshold_ms, max_probability, rtt_tick_ms"),
        ("count = 2", "congestion_control = \"Cubic!\"", "a-z"),
    ] {
        let message = message(line, with);
        assert!(message.contains("accepted: ") && message.contains(accepted), "{message}");
    }
}

#[test]
fn a_misspelt_word_names_the_one_that_was_meant() {
    let message = message("count = 2", "policy = \"fromula\"");
    assert!(message.contains("did you mean \"formula\"?"), "{message}");
}

#[test]
fn text_that_is_not_toml_names_the_line() {
    let error = Scenario::from_toml("bad.toml", "name = \"x\"\nduration_s = = 3\n", &[]).expect_err("not TOML");
    assert!(error.to_string().starts_with("bad.toml:2: not valid TOML: "), "{error}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Scenario::load(std::path::Path::new("/nowhere/x.toml"), &[]).expect_err("no file");
    assert_eq!(error.to_string(), "cannot read the scenario /nowhere/x.toml");
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn an_override_of_what_the_format_lacks_is_refused() {
    for (text, said) in [
        ("acces.rate_mbps=6", "unknown key acces; did you mean access?"),
        ("hosts.0.polcy=none", "unknown key hosts[0].polcy; did you mean hosts[0].policy?"),
        ("hosts.2.policy=none", "there is no hosts[2]: there is one block, hosts[0]"),
        ("hosts.policy=none", "accepted: hosts.0.KEY, or hosts.*.KEY for all"),
        ("hosts.0=3", "hosts[0] is a table, not a value"),
        ("access=3", "access is a table, not a value"),
        ("seed.0=3", "seed holds a value and has no parts"),
    ] {
        let message = override_message(text);
        assert!(message.contains(&format!("`{text}`")) && message.contains(said), "{message}");
    }
}

#[test]
fn an_override_that_sets_nonsense_is_named_and_not_a_line_of_the_file() {
    assert_eq!(
        override_message("hosts.0.count=0"),
        "`hosts.0.count=0` on good.toml: hosts[0].count: leaves no host in the whole scenario; accepted: a number above 0 in some block"
    );
    let all = override_message("hosts.*.policy=magic");
    assert!(all.starts_with("`hosts.*.policy=magic` on good.toml: hosts[0].policy: \"magic\""), "{all}");
}

const LINKED: &str = "\
duration_s = 20

[[links]]
between = [\"N1\", \"R\"]
[[links]]
between = [\"R\", \"N3\"]
rate_mbps = 10

[[hosts]]
node = \"N1\"
[[hosts.flows]]
to = \"N3\"
";

/// The message about `LINKED` with one line of it replaced, and an override.
fn linked_message(line: &str, with: &str, overrides: &[&str]) -> String {
    let text = LINKED.replacen(line, with, 1);
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("an override")).collect();
    Scenario::from_toml("linked.toml", &text, &overrides).expect_err(with).to_string()
}

#[test]
fn the_scenario_of_links_without_a_mistake_is_read() {
    Scenario::from_toml("linked.toml", LINKED, &[]).expect("a scenario");
}

#[test]
fn links_and_an_access_point_cannot_be_in_one_scenario() {
    assert_eq!(
        linked_message("[[hosts]]", "[path]\nrtt_ms = 4\n[[hosts]]", &[]),
        "linked.toml:9: path: cannot be beside [[links]]; accepted: [[links]] alone, or [access] and [path] without them"
    );
    let by_override = linked_message("", "", &["access.rate_mbps=6"]);
    assert!(by_override.starts_with("`access.rate_mbps=6` on linked.toml: access: cannot be beside"), "{by_override}");
    assert_eq!(
        override_message("links.0.loss=0.01"),
        "`links.0.loss=0.01`: there are no [[links]]; accepted: keys of [access] and [path]"
    );
    let no_blocks = Scenario::from_toml("x.toml", "links = []\n[[hosts]]\n", &[]).expect_err("no link").to_string();
    assert_eq!(no_blocks, "x.toml:1: links: there is none; accepted: at least one block [[links]]");
}

#[test]
fn a_link_joins_two_nodes_that_nothing_else_joins() {
    assert_eq!(
        linked_message("between = [\"N1\", \"R\"]", "rate_mbps = 5", &[]),
        "linked.toml:3: links[0].between: is not there; accepted: a list of two names: up to 32 letters, digits, _, - and . \
         each, with # for a number"
    );
    for (with, said) in [
        ("between = [\"N1\"]", "is no list of two names"),
        ("between = [\"N1\", 2]", "is no list of two names"),
        ("between = [\"N1\", \"a b\"]", "is no list of two names"),
        ("between = \"N1-R\"", "\"N1-R\" is text"),
        ("between = [\"R\", \"R\"]", "joins R with itself"),
    ] {
        let message = linked_message("between = [\"N1\", \"R\"]", with, &[]);
        assert!(message.starts_with("linked.toml:4: links[0].between: ") && message.contains(said), "{message}");
    }
    let twice = linked_message("[[hosts]]", "[[links]]\nbetween = [\"N3\", \"R\"]\n[[hosts]]", &[]);
    assert!(twice.starts_with("linked.toml:10: links[2].between: joins N3 and R, as links[1] does already"), "{twice}");
    let alike = linked_message("rate_mbps = 10", "count = 3", &[]);
    assert!(alike.starts_with("linked.toml:7: links[1].count: makes 3 links between the same two nodes"), "{alike}");
    let alike = linked_message("", "", &["links.1.count=2"]);
    assert!(alike.starts_with("`links.1.count=2` on linked.toml: links[1].count: makes 2 links"), "{alike}");
}

#[test]
fn a_standard_has_its_own_channels_and_mcss() {
    let ac = "access.standard=802.11ac";
    for (overrides, key, said) in [
        (
            vec!["access.standard=802.11n", "access.mcs=9"],
            "access.mcs",
            "9 cannot be here; accepted: 0, 1, 2, 3, 4, 5, 6, 7",
        ),
        (
            vec!["access.standard=802.11n", "access.channel_width_mhz=80"],
            "access.channel_width_mhz",
            "80 MHz cannot be here; accepted: 20 MHz, 40 MHz",
        ),
        (
            vec![ac, "access.channel_width_mhz=20", "access.mcs=9"],
            "access.mcs",
            "9 cannot be here; accepted: 0, 1, 2, 3, 4, 5, 6, 7, 8",
        ),
        (
            vec![ac, "access.spatial_streams=3", "access.mcs=6"],
            "access.mcs",
            "6 cannot be here; accepted: 0, 1, 2, 3, 4, 5, 7, 8, 9",
        ),
        (
            vec![ac, "access.guard_interval_us=1.6"],
            "access.guard_interval_us",
            "1.6 us cannot be here; accepted: 0.4 us, 0.8 us",
        ),
        (
            vec![ac, "access.guard_interval_us=0.6"],
            "access.guard_interval_us",
            "0.6 us is no guard interval; accepted: 0.4, 0.8, 1.6, 3.2",
        ),
        (
            vec![ac, "access.channel_width_mhz=60"],
            "access.channel_width_mhz",
            "60 MHz is no width of a channel; accepted: 20, 40, 80, 160",
        ),
        (
            vec![ac, "access.aggregate_frames=65"],
            "access.aggregate_frames",
            "65 cannot be here; accepted: 1 to 64 frames",
        ),
        (vec![ac, "hosts.0.mcs=11"], "hosts[0].mcs", "11 cannot be here; accepted: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9"),
        (
            vec![ac, "access.access_point_cw_max=64"],
            "access.access_point_cw_max",
            "64 cannot be here; accepted: one less than a power of 2, from 15 to 1023",
        ),
        (
            vec![ac, "access.rate_control=arf"],
            "access.rate_control",
            "\"arf\" cannot be here; accepted: \"fixed\", \"minstrel_ht\", \"ideal\"",
        ),
        (
            vec![ac, "hosts.0.snr_db=20", "hosts.0.frame_error_rate=0.1"],
            "hosts[0].snr_db",
            "20 cannot be here; accepted: an SNR or a frame error rate, not both",
        ),
        (
            vec!["access.standard=802.11n", "access.amsdu_bytes=7935"],
            "access.amsdu_bytes",
            "7935 B cannot be here; accepted: 0 to 4065 B",
        ),
        (
            vec!["access.standard=802.11bg", "access.rts_on_retry=true"],
            "access.rts_on_retry",
            "true cannot be here; accepted: false, for 802.11bg protects its frames by CTS-to-self",
        ),
        (
            vec!["access.standard=802.11bg", "access.rts_threshold_bytes=9"],
            "access.rts_threshold_bytes",
            "9 B cannot be here; accepted: none, for 802.11bg protects its frames by CTS-to-self",
        ),
    ] {
        let message = with_overrides(&overrides).expect_err(said).to_string();
        assert!(message.ends_with(&format!("{key}: {said}")), "{message}");
    }
}

#[test]
fn a_scenario_of_aggregates_can_have_another_standard_or_mcs() {
    let text = "\
        [access]\nstandard = \"802.11ax\"\nchannel_width_mhz = 80\nspatial_streams = 2\nmcs = 9\nguard_interval_us = 0.8\n[[hosts]]\n";
    let read = |text: &str, overrides: &[&str]| {
        let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).unwrap()).collect();
        Scenario::from_toml("x.toml", text, &overrides).unwrap_or_else(|error| panic!("{overrides:?}: {error}"))
    };
    let written = read(text, &[]).to_toml();
    for text in [text, &written] {
        for (standard, mbps) in [("802.11b", 11.0), ("802.11g", 54.0), ("802.11bg", 54.0)] {
            let scenario = read(text, &[&format!("access.standard={standard}")]);
            assert_eq!(scenario.to_json()["access"]["rate_mbps"], mbps, "{standard}");
        }
        // 2 · 980 · 8 · 3/4 bits in 13.6 us.
        let slower = read(text, &["access.mcs=6"]);
        assert_eq!(slower.to_json()["access"]["rate_mbps"], 648.529411, "{text}");
        assert_eq!(ineffective_keys([&slower]), []);
    }
}

#[test]
fn no_node_is_out_of_reach() {
    assert_eq!(
        linked_message("[[hosts]]", "[[links]]\nbetween = [\"X\", \"Y\"]\n[[hosts]]", &[]),
        "linked.toml:10: links[2].between: no way leads from N1 to X; accepted: links that join all nodes with each other"
    );
}

#[test]
fn hosts_and_flows_name_nodes_that_are_there() {
    assert_eq!(
        linked_message("node = \"N1\"", "node = \"N11\"", &[]),
        "linked.toml:10: hosts[0].node: no link names a node \"N11\"; did you mean \"N1\"?; accepted: N1, R, N3"
    );
    assert_eq!(
        linked_message("to = \"N3\"", "to = \"server\"", &[]),
        "linked.toml:12: hosts[0].flows[0].to: no link names a node \"server\"; accepted: N1, R, N3"
    );
    assert_eq!(
        linked_message("node = \"N1\"", "", &[]),
        "linked.toml:9: hosts[0].node: is not there, and a scenario with [[links]] cannot be without it; accepted: N1, R, N3"
    );
    let nowhere = linked_message("to = \"N3\"", "", &[]);
    assert!(nowhere.starts_with("linked.toml:11: hosts[0].flows[0].to: is not there, and"), "{nowhere}");
    let at_home = linked_message("to = \"N3\"", "to = \"N1\"", &[]);
    assert!(at_home.contains("hosts[0].flows[0].to: \"N1\" is where the host itself sits"), "{at_home}");
    let second = linked_message("node = \"N1\"", "node = \"N#\"\ncount = 2", &[]);
    assert!(second.contains("hosts[0].node: no link names a node \"N2\""), "{second}");
    let node = message("count = 2", "count = 2\nnode = \"N1\"");
    assert!(
        node.starts_with("good.toml:10: hosts[0].node: names a node, and without [[links]] there are none"),
        "{node}"
    );
    let to = override_message("hosts.0.flows.0.to=N3");
    assert!(to.contains("hosts[0].flows[0].to: names a node, and without [[links]] there are none"), "{to}");
}

#[test]
fn hosts_have_names_of_their_own() {
    let illegal = message("count = 2", "count = 2\nname = \"the laptop\"");
    assert!(
        illegal.ends_with("hosts[0].name: cannot be a host's name; accepted: up to 30 letters, digits, - and _"),
        "{illegal}"
    );
    let text = "[[hosts]]\nname = \"laptop\"\n[[hosts]]\nname = \"laptop\"\n";
    let again = lasthop_scenario::Scenario::from_toml("test.toml", text, &[]).unwrap_err().to_string();
    assert!(again.starts_with("test.toml:4: hosts[1].name: is the name of another block's hosts"), "{again}");
}

#[test]
fn numbers_of_links_have_ranges_too() {
    for (with, said) in [
        ("loss = 1.5", "loss: 1.5 is out of range; accepted: a number from 0 to 1"),
        ("loss_burst_packets = 0.5", "loss_burst_packets: 0.5 is out of range; accepted: a number from 1 to 1000000"),
        ("back_loss = -0.1", "back_loss: -0.1 is out of range"),
        ("rate_mbps = 0", "rate_mbps: 0 is out of range"),
        ("loss_at = \"within\"", "loss_at: \"within\" is not one of the words; accepted: \"before\", \"after\""),
        ("queue = \"blue\"", "accepted: \"fifo\", \"fq_codel\""),
        ("back_queue_packets = 0", "back_queue_packets: 0 is out of range"),
        ("delay = 3", "unknown key; did you mean delay_ms?"),
    ] {
        let message = linked_message("rate_mbps = 10", with, &[]);
        assert!(message.starts_with("linked.toml:7: links[1].") && message.contains(said), "{message}");
    }
    let too_short = linked_message("rate_mbps = 10", "loss = 0.75\nloss_burst_packets = 2", &[]);
    let accepted =
        "links[1].loss_burst_packets: 2 cannot be here; accepted: 3 or more packets, for 0.75 of all are lost";
    assert_eq!(too_short, format!("linked.toml:8: {accepted}"));
}

#[test]
fn a_switch_that_cannot_be_is_refused_by_its_key() {
    let unknown = message("count = 2", "count = 2\n[hosts.tcp]\nsakc = false");
    let begin = "good.toml:11: hosts[0].tcp.sakc: unknown key; did you mean sack?; accepted: mss_bytes, ";
    assert!(unknown.starts_with(begin) && unknown.ends_with(", last_link"), "{unknown}");
    assert_eq!(
        message("count = 2", "count = 2\n[hosts.tcp]\nsack = \"no\""),
        "good.toml:11: hosts[0].tcp.sack: \"no\" is text; accepted: true, false"
    );
    assert_eq!(
        message("count = 2", "count = 2\n[hosts.tcp]\nrto_min_ms = 300\nrto_max_ms = 200"),
        "good.toml:11: hosts[0].tcp.rto_min_ms: 300 ms cannot be here; accepted: above 0 s, and at most rto_max"
    );
    for (set, key) in [
        ("hosts.0.tcp.delayed_ack_min_ms=300", "hosts[0].tcp.delayed_ack_min_ms"),
        ("hosts.0.tcp.receive_buffer_kib=2", "hosts[0].tcp.receive_buffer_kib"),
        ("hosts.0.tcp.rto_initial_ms=200000", "hosts[0].tcp.rto_initial_ms"),
        ("hosts.*.tcp.recovery=prr2", "hosts[0].tcp.recovery"),
        ("hosts.0.tcp.tsq=on", "hosts[0].tcp.tsq"),
        ("hosts.0.tcp.pacing=1", "hosts[0].tcp.pacing"),
    ] {
        let message = override_message(set);
        assert!(message.starts_with(&format!("`{set}` on good.toml: {key}: ")), "{message}");
        assert!(message.contains("; accepted: "), "{message}");
    }
    let large = message("count = 2", "count = 2\nsend_buffer_kib = 8\n[hosts.tcp]\nmss_bytes = 9000");
    assert!(large.starts_with("good.toml:10: hosts[0].send_buffer_kib: 8192 B cannot be here"), "{large}");
}

#[test]
fn a_path_of_a_hosts_own_is_in_range_and_not_with_links() {
    for (with, said) in [
        ("path_rtt_ms = [40, 4]", "path_rtt_ms: [40, 4] ends before it begins"),
        ("path_rtt_ms = -1", "path_rtt_ms: -1 is out of range; accepted: a number from 0 to 60000, or a range"),
        ("path_rtt_change_s = 0", "path_rtt_change_s: 0 is out of range"),
    ] {
        let message = message("count = 2", &format!("count = 2\n{with}"));
        assert!(message.starts_with("good.toml:10: hosts[0].") && message.contains(said), "{message}");
    }
    let with_links = linked_message("node = \"N1\"", "node = \"N1\"\npath_rtt_ms = 40", &[]);
    assert!(with_links.starts_with("linked.toml:11: hosts[0].path_rtt_ms: 40 ms"), "{with_links}");
    let with_links = linked_message("node = \"N1\"", "node = \"N1\"\npath_jitter_ms = 4", &[]);
    assert!(with_links.starts_with("linked.toml:11: hosts[0].path_jitter_ms: 4 ms cannot be here"), "{with_links}");
}

#[test]
fn a_change_is_of_something_that_is_there() {
    let change = |lines: &str| message("[[hosts]]", &format!("[[changes]]\nat_s = 3\n{lines}\n[[hosts]]"));
    assert_eq!(
        change("hosts = [0, 2]\nrate_mbps = 6"),
        "good.toml:10: changes[0].hosts: there is no host 2; accepted: hosts from 0 to 1, in the order of the blocks"
    );
    assert_eq!(
        change("hosts = [1]\nrate_mbps = 7"),
        "good.toml:11: changes[0].rate_mbps: 7 Mb/s cannot be here; accepted: 6 Mb/s, 9 Mb/s, 12 Mb/s, 18 Mb/s, \
         24 Mb/s, 36 Mb/s, 48 Mb/s, 54 Mb/s"
    );
    assert_eq!(
        change("hosts = [1]\nrtt_ms = 7"),
        "good.toml:11: changes[0].rtt_ms: is nothing that changes with of = \"hosts\"; accepted: rate_mbps, mcs, \
         frame_error_rate, snr_db, held"
    );
    assert_eq!(
        change("of = \"link\"\nloss = 1"),
        "good.toml:10: changes[0].of: \"link\" is about a link, and without [[links]] there are none; accepted: \
         \"path\", \"access\", \"hosts\", or blocks [[links]]"
    );
    let nothing = "good.toml:8: changes[0]: changes nothing; accepted: rate_mbps, rtt_ms, loss, held";
    assert_eq!(change("of = \"path\""), nothing);
    let hosts = change("of = \"path\"\nhosts = [1]\nloss = 0.1");
    assert!(hosts.starts_with("good.toml:11: changes[0].hosts: is nothing that changes with of = \"path\""), "{hosts}");
    let when = message("[[hosts]]", "[[changes]]\nrtt_ms = 3\n[[hosts]]");
    assert_eq!(when, "good.toml:8: changes[0].at_s: is not there; accepted: a number from 0 to 86400");
}

#[test]
fn a_change_of_a_link_names_its_two_nodes() {
    let change = |lines: &str| linked_message("[[hosts]]", &format!("[[changes]]\nat_s = 3\n{lines}\n[[hosts]]"), &[]);
    assert_eq!(
        change("between = [\"N1\", \"N33\"]\nloss = 1"),
        "linked.toml:11: changes[0].between: no link names a node \"N33\"; did you mean \"N3\"?; accepted: N1, R, N3"
    );
    assert_eq!(
        change("between = [\"N1\", \"N3\"]\nloss = 1"),
        "linked.toml:11: changes[0].between: no link joins N1 and N3; accepted: two nodes that a link joins"
    );
    assert_eq!(
        change("of = \"link\"\nloss = 1"),
        "linked.toml:9: changes[0].between: is not there, and says which link changes; accepted: two nodes that a link joins"
    );
    assert_eq!(
        change("rtt_ms = 1"),
        "linked.toml:9: changes[0].of: \"path\" is no part of a scenario with [[links]]; accepted: \"link\", with the \
         two nodes in `between`"
    );
    assert_eq!(
        change("between = [\"R\", \"N1\"]\nback_loss = 2"),
        "linked.toml:12: changes[0].back_loss: 2 is out of range; accepted: a number from 0 to 1"
    );
}

#[test]
fn a_host_is_of_its_access_points_standard_or_older() {
    let (n, ac, ax) = ("access.standard=802.11n", "access.standard=802.11ac", "access.standard=802.11ax");
    let at_2_4 = "access.band_ghz=2.4";
    for (overrides, key, said) in [
        (
            vec![n, "hosts.0.standard=802.11ac"],
            "hosts[0].standard",
            "\"802.11ac\" cannot be here; accepted: \"802.11n\", on an access point of 802.11n at 5 GHz",
        ),
        (
            vec![ac, "hosts.0.standard=802.11g"],
            "hosts[0].standard",
            "\"802.11g\" cannot be here; accepted: \"802.11n\", \"802.11ac\", on an access point of 802.11ac at 5 GHz",
        ),
        (
            vec![ax, at_2_4, "hosts.0.standard=802.11ac"],
            "hosts[0].standard",
            "\"802.11ac\" cannot be here; accepted: \"802.11b\", \"802.11g\", \"802.11n\", \"802.11ax\", on an access point of \
             802.11ax at 2.4 GHz",
        ),
        (
            vec!["access.standard=802.11bg", "hosts.0.standard=802.11b"],
            "hosts[0].standard",
            "\"802.11b\" cannot be here; accepted: none, for the rate of a host of 802.11bg says it",
        ),
        (
            vec!["hosts.0.standard=802.11n"],
            "hosts[0].standard",
            "\"802.11n\" cannot be here; accepted: \"802.11g\", on an access point of 802.11g at 2.4 GHz",
        ),
        (vec![ac, at_2_4], "access.band_ghz", "2.4 GHz cannot be here; accepted: 5 GHz with 802.11ac"),
        (vec![n, "access.band_ghz=3"], "access.band_ghz", "3 GHz is no band here; accepted: 2.4, 5"),
        (
            vec![ax, at_2_4, "access.channel_width_mhz=80"],
            "access.channel_width_mhz",
            "80 MHz cannot be here; accepted: 20 MHz, 40 MHz",
        ),
        (
            vec![ac, "hosts.0.standard=802.11n", "hosts.0.channel_width_mhz=80"],
            "hosts[0].channel_width_mhz",
            "80 MHz cannot be here; accepted: 20 MHz, 40 MHz",
        ),
        (
            vec![n, "hosts.0.channel_width_mhz=40"],
            "hosts[0].channel_width_mhz",
            "40 MHz cannot be here; accepted: at most the access point's 20 MHz",
        ),
        (
            vec![n, "hosts.0.spatial_streams=2"],
            "hosts[0].spatial_streams",
            "2 cannot be here; accepted: 1 to the access point's 1",
        ),
        (
            vec![ac, "hosts.0.standard=802.11n", "hosts.0.mcs=9"],
            "hosts[0].mcs",
            "9 cannot be here; accepted: 0, 1, 2, 3, 4, 5, 6, 7",
        ),
        (
            vec![n, at_2_4, "hosts.0.standard=802.11g", "hosts.0.rate_mbps=11"],
            "hosts[0].rate_mbps",
            "11 Mb/s cannot be here; accepted: 6 Mb/s, 9 Mb/s, 12 Mb/s, 18 Mb/s, 24 Mb/s, 36 Mb/s, 48 Mb/s, 54 Mb/s",
        ),
        (
            vec![n, at_2_4, "hosts.0.standard=802.11b", "hosts.0.snr_db=20"],
            "hosts[0].snr_db",
            "20 cannot be here; accepted: none, for a host of 802.11b has a frame error rate instead",
        ),
    ] {
        let text = GOOD.replace("rate_mbps = 54\n", "");
        let parsed: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("an override")).collect();
        let error = Scenario::from_toml("good.toml", &text, &parsed).expect_err(said).to_string();
        assert!(error.ends_with(&format!("{key}: {said}")), "{overrides:?}: {error}");
    }
}
