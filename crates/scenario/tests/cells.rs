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
