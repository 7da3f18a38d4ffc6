//! Keys that are set in vain.

use lasthop_keys::{Kind, Of, Section, When};
use lasthop_scenario::{Override, Scenario, ineffective_keys};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const UPLOADS: &str = "duration_s = 20\n[access]\nrate_mbps = 54\n[path]\nrtt_ms = 20\n[[hosts]]\ncount = 3\n";

fn scenario(text: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("an override")).collect();
    Scenario::from_toml("some.toml", text, &overrides).expect("a scenario")
}

fn told(text: &str, overrides: &[&str]) -> Vec<String> {
    ineffective_keys([&scenario(text, overrides)]).iter().map(ToString::to_string).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn a_key_of_another_policy_is_named_with_the_policies_that_it_is_for() {
    let fixed = ["hosts.0.policy=fixed", "hosts.0.bound_segments=20", "hosts.0.enable_ratio=3"];
    let for_whom = "policy is \"fixed\", and it is for \"table\", \"formula\", \"cooperative\", \"cooperative-loose\"";
    assert_eq!(
        told(UPLOADS, &fixed),
        [format!("the command line: hosts.0.enable_ratio has no effect here: {for_whom}")]
    );
    let in_file = format!("{UPLOADS}policy = \"fixed\"\nbound_segments = 20\nenable_ratio = 3\n");
    assert_eq!(told(&in_file, &[]), [format!("some.toml:10: hosts[0].enable_ratio has no effect here: {for_whom}")]);
    assert!(told(UPLOADS, &["hosts.0.policy=formula", "hosts.0.enable_ratio=3"]).is_empty());
    let both = ["hosts.0.policy=formula", "hosts.0.enable_ratio=3", "hosts.0.enable_excess_ms=30"];
    let why = "the command line: hosts.0.enable_ratio has no effect here: enable_excess_ms is there in its place";
    assert_eq!(told(UPLOADS, &both), [why]);
}

#[test]
fn a_bound_waits_in_a_file_for_the_policy_fixed_and_not_on_the_command_line() {
    assert!(told(&format!("{UPLOADS}bound_segments = 20\n"), &[]).is_empty());
    assert!(told(&format!("{UPLOADS}[hosts.hd]\nmax_probability = 0.03\n"), &[]).is_empty());
    let why = "policy is \"none\", and it is for \"fixed\"";
    let told_of = |key: &str| vec![format!("the command line: {key} has no effect here: {why}")];
    assert_eq!(told(UPLOADS, &["hosts.0.bound_segments=20"]), told_of("hosts.0.bound_segments"));
    // One of several blocks is enough.
    let two = format!("{UPLOADS}[[hosts]]\npolicy = \"fixed\"\nbound_segments = 5\n");
    assert!(told(&two, &["hosts.*.bound_segments=20"]).is_empty());
    assert_eq!(told(&two, &["hosts.*.bound_segments=20", "hosts.1.policy=none"]), told_of("hosts.*.bound_segments"));
}

#[test]
fn the_law_of_a_host_has_no_effect_on_flows_of_quic_that_have_their_own() {
    let quic = format!("{UPLOADS}[[hosts.flows]]\nkind = \"quic\"\n");
    let why = "none of its flows is TCP's, and one of QUIC has it with congestion_control = \"host\"";
    assert_eq!(
        told(&quic, &["hosts.0.congestion_control=bbr"]),
        [format!("the command line: hosts.0.congestion_control has no effect here: {why}")]
    );
    assert!(told(&quic, &["hosts.0.congestion_control=bbr", "hosts.0.flows.0.congestion_control=host"]).is_empty());
    assert!(told(&format!("{quic}[[hosts.flows]]\n"), &["hosts.0.congestion_control=bbr"]).is_empty());
    assert!(told(UPLOADS, &["hosts.0.congestion_control=bbr"]).is_empty());
}

#[test]
fn keys_of_the_medium_have_no_effect_on_a_wire() {
    let wired = ["access.kind=wired", "access.rate_control=arf", "access.delay_ms=3", "hosts.0.rate_mbps=6"];
    assert_eq!(
        told(UPLOADS, &wired),
        [
            "the command line: access.rate_control has no effect here: access.kind is \"wired\", and it is for \"wifi\"",
            "the command line: hosts.0.rate_mbps has no effect here: access.kind is \"wired\", and it is for \"wifi\"",
        ]
    );
    let delay = "the command line: access.delay_ms has no effect here: kind is \"wifi\", and it is for \"wired\"";
    assert_eq!(told(UPLOADS, &["access.delay_ms=3"]), [delay]);
    let change = format!("{UPLOADS}[[changes]]\nat_s = 5\nof = \"access\"\ndelay_ms = 5\n");
    assert_eq!(
        told(&change, &[]),
        ["some.toml:9: changes[0].at_s has no effect here: it changes \"access\", and access.kind is \"wifi\""]
    );
}

#[test]
fn keys_of_aggregates_and_of_rates_have_no_effect_with_the_others_standard() {
    let ac = "access.standard=802.11ac";
    let uploads = UPLOADS.replace("rate_mbps = 54\n", "");
    for (settings, key, why) in [
        (
            "access.mcs=3",
            "access.mcs",
            "standard is \"802.11g\", and it is for \"802.11n\", \"802.11ac\", \"802.11ax\"",
        ),
        ("hosts.0.mcs=3", "hosts.0.mcs", "access.standard is \"802.11g\""),
        ("hosts.0.flows.0.dscp=46", "hosts.0.flows.0.dscp", "access.standard is \"802.11g\""),
        (
            "access.rate_mbps=54 access.standard=802.11ac",
            "access.rate_mbps",
            "standard is \"802.11ac\", and its rate is that of mcs",
        ),
        ("hosts.0.rate_mbps=6 access.standard=802.11ac", "hosts.0.rate_mbps", "access.standard is \"802.11ac\""),
        ("access.preamble=short access.standard=802.11ac", "access.preamble", "standard is \"802.11ac\""),
    ] {
        let told = told(&uploads, &settings.split(' ').collect::<Vec<_>>());
        let begin = format!("the command line: {key} has no effect here: {why}");
        assert!(told.len() == 1 && told[0].starts_with(&begin), "{settings}: {told:?}");
    }
    assert_eq!(told(&uploads, &[ac, "access.mcs=3", "hosts.0.mcs=2", "access.rts_threshold_bytes=1"]), [""; 0]);
    assert_eq!(told(&uploads, &["access.rts_threshold_bytes=1", "access.access_point_cw_max=63"]), [""; 0]);
}

#[test]
fn a_key_of_the_medium_that_is_told_as_without_effect_leaves_the_network_as_it_is() {
    let uploads = UPLOADS.replace("rate_mbps = 54\n", "");
    let mut told_of = BTreeSet::new();
    for access in ["standard=802.11b", "standard=802.11g", "standard=802.11bg", "standard=802.11ac", "kind=wired"] {
        let access = format!("access.{access}");
        for setting in [
            "access.channel_width_mhz=40",
            "access.spatial_streams=2",
            "access.mcs=3",
            "access.guard_interval_us=0.4",
            "access.aggregate_frames=32",
            "access.max_ppdu_us=4000",
            "access.access_point_txop_us=2000",
            "access.start_spacing_us=8",
            "access.amsdu_bytes=3839",
            "access.rate_set=all",
            "access.preamble=short",
            "access.protection_rate_mbps=11",
            "access.retry_limit=3",
            "access.delay_ms=3",
            "hosts.0.mcs=3",
            "hosts.0.rate_mbps=11",
            "hosts.0.frame_error_rate=0.1",
        ] {
            let overrides = [&access, setting].map(|text| Override::parse(text).unwrap());
            // A rate of 802.11b is none of 802.11g's.
            let Ok(set) = Scenario::from_toml("some.toml", &uploads, &overrides) else { continue };
            let without = scenario(&uploads, &[&access]);
            let is_told = !ineffective_keys([&set]).is_empty();
            assert_eq!(set.network() == without.network(), is_told, "{access} {setting}");
            told_of.extend(is_told.then_some(setting));
        }
    }
    assert_eq!(told_of.len(), 17, "{told_of:?}");
}

#[test]
fn keys_of_flows_stacks_and_links_follow_their_kind() {
    for (settings, key, why) in [
        ("hosts.0.flows.0.message_bytes=9", "hosts.0.flows.0.message_bytes", "kind is \"bulk\""),
        ("hosts.0.tcp.tsq_limit_kib=9", "hosts.0.tcp.tsq_limit_kib", "tsq is \"off\""),
        ("hosts.0.path_rtt_change_s=9", "hosts.0.path_rtt_change_s", "there is no path_rtt_ms beside it"),
        ("hosts.0.last_link.delay_s=9", "hosts.0.last_link.delay_s", "report is \"false\""),
        (
            "hosts.0.hd.max_probability=0.03",
            "hosts.0.hd.max_probability",
            "congestion_control is \"cubic\", and it is for \"hd\"",
        ),
        ("hosts.0.agent=observe hosts.0.policy=formula", "hosts.0.policy", "agent is \"observe\""),
    ] {
        let told = told(UPLOADS, &settings.split(' ').collect::<Vec<_>>());
        let begin = format!("the command line: {key} has no effect here: ");
        assert!(told.len() == 1 && told[0].starts_with(&begin) && told[0].contains(why), "{settings}: {told:?}");
    }
}

#[test]
fn what_has_an_effect_in_one_of_the_runs_is_not_named_and_each_key_is_named_once() {
    let runs = |second: &str| {
        let of = |policy| scenario(UPLOADS, &["hosts.0.bound_segments=20", "hosts.0.cut_ratio=4", policy]);
        let runs = [of("hosts.0.policy=none"), of(second), of(second)];
        ineffective_keys(&runs).into_iter().map(|key| key.key).collect::<Vec<_>>()
    };
    assert_eq!(runs("hosts.0.policy=fixed"), ["hosts.0.cut_ratio"]);
    assert_eq!(runs("hosts.0.policy=lasthop"), ["hosts.0.bound_segments", "hosts.0.cut_ratio"]);
}

#[test]
fn defaults_that_are_spelt_out_are_not_named() {
    for overrides in [&[][..], &["hosts.0.policy=formula"], &["access.kind=wired"], &["hosts.0.congestion_control=hd"]]
    {
        let whole = scenario(UPLOADS, overrides).to_toml();
        assert_eq!(told(&whole, &[]), [""; 0]);
    }
    let whole = scenario(&UPLOADS.replace("rate_mbps = 54\n", ""), &["access.standard=802.11ax"]).to_toml();
    assert_eq!(told(&whole, &[]), [""; 0]);
}

/// Each section with the one around it.
fn sections(
    of: &'static Section,
    around: Option<&'static Section>,
) -> Vec<(&'static Section, Option<&'static Section>)> {
    let inside = of.children.iter().flat_map(|child| sections(child.section, Some(of)));
    std::iter::once((of, around)).chain(inside).collect()
}

#[test]
fn conditions_are_about_keys_and_words_of_the_format() {
    let top = Scenario::section();
    let mut count = 0;
    for (section, around) in sections(top, None) {
        for when in section.keys.iter().flat_map(|key| &key.when) {
            let (table, other, words) = match when {
                When::Is(of, other, words) | When::IsNot(of, other, words) => {
                    let table = match of {
                        Of::Same => Some(section),
                        Of::Around => around,
                        Of::Top(name) => top.child(name).map(|child| child.section),
                    };
                    (table, *other, &words[..])
                }
                When::Given(other) | When::NotGiven(other) => (Some(section), *other, &[][..]),
                When::No(table) => {
                    assert!(top.child(table).is_some(), "{when:?}");
                    continue;
                }
                When::Not(_) => continue,
            };
            let key = table.and_then(|table| table.key(other)).unwrap_or_else(|| panic!("{when:?} is about no key"));
            if matches!(when, When::Given(_) | When::NotGiven(_)) {
                continue;
            }
            let known = match &key.kind {
                Kind::Choice(known) => &known[..],
                Kind::Flag => &["true", "false"],
                // A law of lasthop, or another that a kernel has.
                Kind::Name => words,
                other => panic!("{when:?} is about {other:?}"),
            };
            assert!(words.iter().all(|word| known.contains(word)), "{when:?}");
            count += 1;
        }
    }
    assert!(count > 80, "{count}");
}

/// The guide marks such keys with the words that they are for: `*wifi*`, `*fixed*`.
#[test]
fn every_key_that_the_guide_marks_has_a_condition() {
    let headings = ["[access]", "[[hosts]]", "[hosts.tcp]", "[[hosts.flows]]"];
    for (heading, section) in Scenario::section().walk().into_iter().filter(|(of, _)| headings.contains(&of.as_str())) {
        for key in section.keys.iter().filter(|key| key.meaning.starts_with('*')) {
            // "*wifi:* this; *wired:* that" is for both; of links, what is missing is an error.
            let (mark, _) = key.meaning[1..].split_once('*').expect("a mark has an end");
            if !mark.ends_with(':') && mark != "links" && (mark != "bulk" || key.name == "transfer_kib") {
                assert!(!key.when.is_empty(), "{heading}: {}", key.name);
            }
        }
    }
}

#[test]
fn no_scenario_that_is_here_sets_a_key_in_vain() {
    let (mut looked_at, mut told) = (0, Vec::new());
    for file in toml_files(&root().join("scenarios")) {
        let scenario = Scenario::load(&file, &[]).expect("a scenario");
        told.extend(ineffective_keys([&scenario]));
        looked_at += 1;
    }
    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert!(looked_at >= 16, "{looked_at}");
}

fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    files.filter(|file| file.extension().is_some_and(|ending| ending == "toml")).collect()
}

#[test]
fn keys_of_wires_are_named_that_change_nothing_without_another() {
    let links = "[[links]]\nbetween = [\"A\", \"B\"]\n[[hosts]]\nnode = \"A\"\n[[hosts.flows]]\nto = \"B\"\n";
    let no_delay = UPLOADS.replace("rtt_ms = 20", "rtt_ms = 0");
    for (text, key, value, why, with) in [
        (UPLOADS, "path.loss_burst_packets", "3", "loss and back_loss are 0", "path.loss=0.1"),
        (UPLOADS, "path.loss_burst_packets", "3", "loss and back_loss are 0", "path.back_loss=0.1"),
        (UPLOADS, "path.back_loss_burst_packets", "3", "back_loss is 0", "path.back_loss=0.1"),
        (UPLOADS, "path.jitter_reorders", "true", "jitter_ms and back_jitter_ms are 0", "path.jitter_ms=1"),
        (UPLOADS, "path.jitter_reorders", "true", "jitter_ms and back_jitter_ms are 0", "hosts.0.path_jitter_ms=1"),
        (&no_delay, "path.reorder", "0.1", "the delay and jitter_ms are 0", "path.rtt_ms=1"),
        (&no_delay, "path.back_reorder", "0.1", "the delay back and back_jitter_ms are 0", "hosts.0.path_rtt_ms=1"),
        (links, "links.0.loss_burst_packets", "3", "loss and back_loss are 0", "links.0.loss=0.1"),
        (links, "links.0.jitter_reorders", "true", "jitter_ms and back_jitter_ms are 0", "links.0.back_jitter_ms=1"),
        (links, "links.0.reorder", "0.1", "the delay and jitter_ms are 0", "links.0.delay_ms=1"),
        (links, "links.0.back_reorder", "0.1", "the delay back and back_jitter_ms are 0", "links.0.back_delay_ms=1"),
    ] {
        let set = format!("{key}={value}");
        assert_eq!(told(text, &[&set]), [format!("the command line: {key} has no effect here: {why}")]);
        assert_eq!(told(text, &[&set, with]), [""; 0], "{set} {with}");
    }
    let later = format!("{UPLOADS}[[changes]]\nat_s = 5\nloss = 0.1\n");
    assert_eq!(told(&later, &["path.loss_burst_packets=3"]), [""; 0]);
}
