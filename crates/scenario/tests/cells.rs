//! Who hears whom, from names, channels and places; and what cannot be.

use lasthop_network::HearingLevel::{self, Disturbed, Hears, Misses, Senses};
use lasthop_scenario::Scenario;

const ROW: &str = "
[[cells]]
name = \"left\"
channel = 1
x_m = 0
[[cells]]
name = \"right\"
channel = 1
x_m = 100
[[hosts]]
name = \"near\"
cell = \"left\"
x_m = 5
[[hosts]]
name = \"far\"
cell = \"right\"
x_m = 100
y_m = 20
";
const HIDDEN: &str = "
[[hosts]]
name = \"a\"
count = 2
[[hosts]]
name = \"b\"
[[hearing]]
between = [\"a\", \"a\"]
[[hearing]]
between = [\"a-1\", \"b\"]
level = \"senses\"
";

fn read(text: &str) -> Scenario {
    Scenario::from_toml("cells.toml", text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    Scenario::from_toml("cells.toml", &text.replacen(from, to, 1), &[]).unwrap_err().to_string()
}

fn level(scenario: &Scenario, one: &str, other: &str) -> HearingLevel {
    let layout = scenario.layout().unwrap();
    let node = |name: &str| layout.nodes().position(|node| node.name == name).unwrap();
    layout.cells().hearing(node(one), node(other)).level
}

#[test]
fn blocks_of_hearing_speak_of_pairs_both_ways_and_the_last_one_counts() {
    let scenario = read(HIDDEN);
    for (one, other, expected) in [
        ("a-1", "a-2", Misses),
        ("a-1", "b", Senses),
        ("b", "a-1", Senses),
        ("a-2", "b", Hears),
        ("b", "access-point", Hears),
    ] {
        assert_eq!(level(&scenario, one, other), expected, "{one}, {other}");
    }
}

#[test]
fn a_block_that_is_left_out_hears_nobody() {
    let scenario = read(&HIDDEN.replace("count = 2", "count = 0").replace("\"a-1\"", "\"a\""));
    assert_eq!(level(&scenario, "b", "access-point"), Hears);
}

#[test]
fn places_give_levels_by_the_loss_over_their_distance() {
    // 802.11g at 20 dBm: -40.05 dBm at 10 m, -75.05 at 100 m, -82 at 158 m, -94 at 348 m.
    for (x_m, expected) in [(100, Hears), (150, Hears), (170, Disturbed), (340, Disturbed), (360, Misses)] {
        let place = ROW.replace("x_m = 100", &format!("x_m = {x_m}"));
        assert_eq!(level(&read(&place), "left", "right"), expected, "{x_m} m");
    }
    let senses = format!("[access]\nhear_dbm = -70\n{ROW}");
    assert_eq!(level(&read(&senses), "left", "right"), Senses);
}

#[test]
fn other_channels_are_missed_and_spatial_reuse_senses_only_strong_neighbours() {
    assert_eq!(level(&read(&ROW.replacen("channel = 1", "channel = 6", 1)), "left", "right"), Misses);
    let ax = |level: &str| {
        format!("[access]\nstandard = \"802.11ax\"\n{level}\n{}", ROW.replace("channel = 1", "channel = 36"))
    };
    // 50 m at 5 GHz: 66.4 + 24.5 dB.
    let near = |text: String| text.replace("x_m = 100", "x_m = 50");
    assert_eq!(level(&read(&near(ax(""))), "left", "right"), Hears);
    assert_eq!(level(&read(&near(ax("obss_pd_dbm = -70"))), "left", "right"), Disturbed);
    let message =
        Scenario::from_toml("cells.toml", &ax("obss_pd_dbm = -70\ntx_power_dbm = 15"), &[]).unwrap_err().to_string();
    assert!(message.contains("at most 9 dBm"), "{message}");
}

#[test]
fn what_cannot_be_says_what_can() {
    for (from, to, expected) in [
        (
            "cell = \"left\"",
            "cell = \"lift\"",
            "hosts[0].cell: no cell is called \"lift\"; did you mean \"left\"?; accepted: left, right",
        ),
        ("cell = \"left\"", "", "hosts[0].cell: is not there, and there are several cells; accepted: left, right"),
        ("channel = 1", "channel = 3", "cells[1].channel: 1 overlaps the 3 of \"left\" in part"),
        ("channel = 1", "channel = 36", "cells[0].channel: 36 is no channel at 2.4 GHz; accepted: 1 to 13"),
        ("channel = 1", "", "cells[0].channel: is not there, and other cells have one"),
        ("name = \"right\"\n", "name = \"left\"\n", "cells[1].name: is the name of another cell"),
        ("x_m = 0", "", "cells[0].x_m: is not there, and other cells have places"),
        ("x_m = 5", "", "hosts[0].x_m: is not there, and the cells have places"),
        ("x_m = 5", "x_m = 500", "hosts[0].x_m: near and its access point left do not hear each other, at -"),
        (
            "[[cells]]",
            "[access]\nkind = \"wired\"\n[[cells]]",
            "cells: is for Wi-Fi; accepted: no such block, or access.kind = \"wifi\"",
        ),
    ] {
        let message = error(ROW, from, to);
        assert!(message.contains(expected), "{message}\n{expected}");
    }
    for (from, to, expected) in [
        ("\"a-1\"", "\"a-3\"", "hearing[1].between: nothing is called \"a-3\""),
        ("[\"a-1\", \"b\"]", "[\"b\", \"b\"]", "\"b\" and \"b\" are one and the same"),
        (
            "[\"a-1\", \"b\"]",
            "[\"access-point\", \"b\"]",
            "b and its access point access-point do not hear each other, by [[hearing]]",
        ),
        (
            "name = \"a\"",
            "name = \"a\"\ncell = \"left\"",
            "hosts[0].cell: no cell is called \"left\"; accepted: no such key, or [[cells]]",
        ),
    ] {
        let message = error(HIDDEN, from, to);
        assert!(message.contains(expected), "{message}\n{expected}");
    }
    let held = format!("{HIDDEN}[[changes]]\nat_s = 5\nof = \"hosts\"\nheld = true\n");
    let message = Scenario::from_toml("cells.toml", &held, &[]).unwrap_err().to_string();
    assert!(message.contains("held"), "{message}");
}

const ROAMING: &str = "
[[cells]]
name = \"hall\"
x_m = 0
channel = 1
[[cells]]
name = \"attic\"
x_m = 300
channel = 6
path_rtt_ms = 60
[[hosts]]
name = \"stays\"
cell = \"attic\"
x_m = 310
[[hosts]]
name = \"walks\"
cell = \"hall\"
count = 2
x_m = 10
[[hosts.roam]]
at_s = 20
to = \"attic\"
x_m = 290
[[hosts.roam]]
at_s = 40
to = \"hall\"
x_m = 0
outage_ms = 50
";

#[test]
fn a_host_that_roams_is_heard_as_in_its_new_place_and_on_its_new_channel() {
    let scenario = read(ROAMING);
    // Hosts: stays, walks-1, walks-2; access points: hall, attic.
    let roams: Vec<_> =
        scenario.roams().iter().map(|roam| (roam.host, roam.associated().as_secs_f64(), roam.to)).collect();
    assert_eq!(roams, [(1, 20.2, 1), (2, 20.2, 1), (1, 40.05, 0), (2, 40.05, 0)]);
    let levels = |roam: usize| scenario.roams()[roam].hearing.iter().map(|one| one.level).collect::<Vec<_>>();
    // The first one finds the second one in the hall, where it cannot hear it; the second one finds it in the attic.
    let of_others = |roam: usize, own: usize| {
        let mut levels = levels(roam);
        levels.remove(own);
        levels
    };
    assert_eq!(of_others(0, 1), [Hears, Misses, Misses, Hears]);
    assert_eq!(of_others(1, 2), [Hears, Hears, Misses, Hears]);
    assert_eq!(of_others(3, 2), [Misses, Hears, Hears, Misses]);
    let rtt = |at_s: f64| {
        let network = scenario.network().at(lasthop_units::Time::ZERO + lasthop_units::Span::from_secs_f64(at_s));
        let cells = network.cells.unwrap();
        cells.path_rtt(cells.of_host[1]).map(lasthop_units::Span::as_millis_f64)
    };
    assert_eq!([rtt(20.1), rtt(20.2), rtt(40.05)], [None, Some(60.0), None]);
    assert_eq!(scenario.network_changes().len(), 2);
    assert_eq!(Scenario::from_json(&scenario.to_json()).unwrap().roams(), scenario.roams());
}

#[test]
fn a_level_that_is_given_holds_wherever_a_host_roams() {
    let text = format!("{}[[hearing]]\nbetween = [\"stays\", \"walks\"]\nlevel = \"senses\"\n", ROAMING);
    assert_eq!(read(&text).roams()[0].hearing[0].level, Senses);
}

#[test]
fn a_roam_that_cannot_be_says_what_can() {
    for (from, to, expected) in [
        (
            "to = \"attic\"",
            "to = \"atic\"",
            "hosts[1].roam[0].to: no cell is called \"atic\"; did you mean \"attic\"?; accepted: hall, attic",
        ),
        (
            "to = \"attic\"",
            "to = \"hall\"",
            "hosts[1].roam[0].to: they are at \"hall\" already; accepted: another of the",
        ),
        (
            "at_s = 40",
            "at_s = 20.1",
            "hosts[1].roam[1].at_s: 20.1 is within the roam before it; accepted: a number from 20.2 on",
        ),
        ("at_s = 40", "", "hosts[1].roam[1].at_s: "),
        ("outage_ms = 50", "outage_ms = -5", "hosts[1].roam[1].outage_ms: "),
        ("outage_ms = 50", "outage_ms = 0", "accepted: a number from 20 to 60000"),
        (
            "x_m = 290",
            "x_m = 0",
            "hosts[1].roam[0].x_m: walks-1 and \"attic\" do not hear each other, at -92 dBm from 0, 0",
        ),
        (ROAMING.split("[[hosts]]").next().unwrap(), "", "hosts[1].roam: is about several access points of [[cells]]"),
    ] {
        let message = error(ROAMING, from, to);
        assert!(message.contains(expected), "{message}\n{expected}");
    }
    let late = ROAMING.replace("at_s = 40", "at_s = 60");
    let notes: Vec<_> = read(&late).late_changes().iter().map(ToString::to_string).collect();
    assert_eq!(notes, ["[[hosts.roam]] at_s = 60 is not before the end of the run at 60 s: it changes nothing"]);
}
