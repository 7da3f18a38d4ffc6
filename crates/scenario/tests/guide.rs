//! The guide says of every key of a scenario what the tables of keys say, and knows every key of a result.
//!
//! `LASTHOP_UPDATE_GUIDE=1 cargo test -p lasthop-scenario --test guide` writes the tables anew.
// The guide is a file.

use guide_pages::{GUIDE, check_tables, pages, takes};
use lasthop_keys::{Kind, Section};
use lasthop_laws::LawName;
use lasthop_network::{Discipline, RateControl, Standard};
use lasthop_policy::PolicyName;
use lasthop_scenario::{AgentMode, KindName, Pieces, ResultFile as _, Scenario, Transport};
use std::fmt::Write as _;

mod guide_pages;
mod sample;

fn table(section: &Section) -> String {
    let mut text = String::from("| key | takes | default | meaning |\n| --- | --- | --- | --- |\n");
    for key in &section.keys {
        let takes = match &key.kind {
            Kind::Choice(words) => words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", "),
            kind => takes(kind),
        };
        let _ = writeln!(text, "| `{}` | {takes} | {} | {} |", key.name, key.default.describe(), key.meaning);
    }
    text
}

fn policy_table() -> String {
    let mut text = String::from("| policy | what bounds the windows | settles within |\n| --- | --- | ---: |\n");
    for policy in PolicyName::ALL {
        let (meaning, settles) = (policy.meaning(), policy.settles_after().as_secs_f64());
        let _ = writeln!(text, "| `\"{policy}\"` | {meaning} | {settles} s |");
    }
    text
}

/// The words of a key that are entries of a list in the code.
fn words_table<T: Copy>(heading: &str, words: &[(&str, T)], columns: impl Fn(T) -> [String; 3]) -> String {
    let last = if heading.contains("usual") { "---:" } else { "---" };
    let mut text = format!("{heading}\n| --- | --- | --- | {last} |\n");
    for (word, one) in words {
        let _ = writeln!(text, "| `\"{word}\"` | {} |", columns(*one).join(" | "));
    }
    text
}

fn discipline_table() -> String {
    words_table("| discipline | what it is | where | usual `queue_packets` |", Discipline::WORDS, |one| {
        let place = if one.is_of_wifi() { "at the access point, *wifi*" } else { "everywhere" };
        [one.meaning().to_owned(), place.to_owned(), one.usual_packets().to_string()]
    })
}

fn kind_table() -> String {
    let heading = "| kind | over | what it sends | what is [measured](result-measures.md) |";
    words_table(heading, KindName::WORDS, |one| {
        let over = match one.transport() {
            Transport::Tcp => "TCP",
            Transport::Quic => "QUIC",
            Transport::Udp => "UDP",
        };
        let measured = match one.pieces() {
            Pieces::Streams if one.transport() == Transport::Udp => "goodput",
            Pieces::Streams => "goodput, round trips",
            Pieces::Messages => "`messages`: how long each takes",
            Pieces::Transfers => "goodput, round trips; of pieces with a size `transfers`: how long each takes",
            Pieces::Chunks => "`video`: bit rate, stalls; how long each chunk takes",
            Pieces::Datagrams => "`datagrams`: one-way delay, jitter, loss",
            Pieces::Pings => "`datagrams`: round trips, loss",
        };
        [over.to_owned(), one.meaning().to_owned(), measured.to_owned()]
    })
}

fn rate_control_table() -> String {
    words_table("| rate control | who chooses | with | usual `retry_limit` |", RateControl::WORDS, |one| {
        let [earlier, later] = [Standard::G, Standard::N].map(|of| RateControl::of(of).any(|each| each == one));
        let standards = match [earlier, later] {
            [true, true] => "all standards",
            [true, false] => "802.11b, 802.11g",
            _ => "802.11n and later",
        };
        [one.meaning().to_owned(), standards.to_owned(), one.usual_retry_limit().to_string()]
    })
}

#[test]
fn every_key_of_a_scenario_is_in_the_guide_with_its_range_and_default() {
    let of_a_law = |heading: &str| {
        LawName::ALL.iter().any(|law| !law.parameters().is_empty() && heading == format!("[hosts.{law}]"))
    };
    let (laws, sections): (Vec<_>, Vec<_>) =
        Scenario::section().walk().into_iter().partition(|(heading, _)| of_a_law(heading));
    // the keys of [hosts.law_parameters] are those of the user's header
    let sections = sections.into_iter().filter(|(_, section)| section.others.is_none());
    let of_law = |(heading, law): (String, &Section)| format!("### `{heading}`\n\n{}", table(law));
    let laws = laws.into_iter().map(of_law).collect::<Vec<_>>().join("\n");
    let tables = sections.map(|(heading, section)| {
        let heading = if heading.is_empty() { "top" } else { &heading };
        (format!("<!-- keys of {heading} -->\n"), table(section))
    });
    let others = [
        ("<!-- policies -->\n", policy_table()),
        ("<!-- keys of the laws -->\n", laws),
        ("<!-- disciplines -->\n", discipline_table()),
        ("<!-- rate controls -->\n", rate_control_table()),
        ("<!-- kinds of traffic -->\n", kind_table()),
    ];
    check_tables("scenario", tables.chain(others.map(|(marker, table)| (marker.to_owned(), table))));
}

#[test]
fn the_presets_are_in_the_guide_and_give_only_what_the_file_does_not() {
    let presets = include_str!("../src/keys/presets.toml");
    let page = std::fs::read_to_string(format!("{GUIDE}/scenario-network.md")).unwrap();
    assert!(
        page.contains(presets),
        "docs/guide/scenario-network.md has not what crates/scenario/src/keys/presets.toml has"
    );
    let resolved = |text: &str| Scenario::from_toml("test", text, &[]).unwrap().to_toml();
    let text =
        resolved("access.preset = \"ac-openwrt\"\naccess.mcs = 5\n[[hosts]]\npreset = \"n-home\"\ntcp.sack = false");
    let by_preset: toml::Table = text.parse().unwrap();
    assert_eq!(by_preset["access"]["queue"].as_str(), Some("mac80211"));
    assert_eq!(by_preset["access"]["queue_packets"].as_integer(), Some(8192));
    assert_eq!(by_preset["access"]["mcs"].as_integer(), Some(5));
    assert_eq!(by_preset["hosts"][0]["tcp"]["tsq_pacing_shift"].as_integer(), Some(7));
    assert_eq!(by_preset["hosts"][0]["tcp"]["sack"].as_bool(), Some(false));
    // What a run keeps gives the same again.
    assert_eq!(resolved(&text), text);
    // The limit of a queue is that of the preset's queue, or else of the queue itself.
    for (preset, queue, limit) in
        [("ac-vendor", "fifo", 1000), ("ac-vendor", "mac80211", 8192), ("n-home", "fq_codel", 100)]
    {
        let text = format!("access.preset = \"{preset}\"\naccess.queue = \"{queue}\"\n[[hosts]]");
        let by_preset: toml::Table = resolved(&text).parse().unwrap();
        assert_eq!(by_preset["access"]["queue_packets"].as_integer(), Some(limit), "{preset} {queue}");
    }
}

#[test]
fn the_agent_of_a_copy_follows_its_policy() {
    let scenario = |text: &str| Scenario::from_toml("test", text, &[]).unwrap();
    let of = |text: &str| scenario(&scenario(text).to_toml().replace("policy = \"none\"", "policy = \"formula\""));
    assert_eq!(of("[[hosts]]").hosts[0].kind.agent, AgentMode::Control);
    assert_eq!(of("[[hosts]]\nagent = \"observe\"").hosts[0].kind.agent, AgentMode::Observe);
}

/// Every key of a JSON value and of what is in it, but for those of the scenario.
fn keys(value: &serde_json::Value, into: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                into.push(key.clone());
                if key != "scenario" {
                    keys(value, into);
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, into)),
        _ => {}
    }
}

#[test]
fn every_key_of_a_result_and_every_column_of_the_series_is_in_the_guide() {
    let guide: String = pages("result").into_iter().map(|(_, page)| page).collect();
    let mut names = Vec::new();
    for json in [sample::run([1.0, 1.0], &[5.0]).to_json(), sample::comparison().to_json()] {
        keys(&serde_json::from_str(&json).expect("JSON"), &mut names);
    }
    keys(&serde_json::to_value(lasthop_scenario::FlowSeries::default()).expect("JSON"), &mut names);
    keys(&serde_json::to_value(lasthop_scenario::QueueSeries::default()).expect("JSON"), &mut names);
    keys(&serde_json::to_value(lasthop_scenario::DatagramSeries::default()).expect("JSON"), &mut names);
    assert!(names.len() > 100, "{names:?}");
    for name in names {
        assert!(guide.contains(&format!("`{name}`")), "docs/guide/result*.md do not know {name}");
    }
}

#[test]
fn every_scenario_in_the_guide_can_be_read() {
    let mut hosts = Vec::new();
    for (path, page) in pages("scenario") {
        let blocks = page.split("```toml\n").skip(1).map(|from| from.split_once("```").expect("an end").0);
        hosts.extend(blocks.map(|text| {
            let scenario = lasthop_scenario::Scenario::from_toml(&path.display().to_string(), text, &[]);
            scenario.unwrap_or_else(|error| panic!("{error}")).expanded_hosts().len()
        }));
    }
    assert_eq!(hosts, [4, 1, 1, 2, 6, 8, 5, 1, 1, 4]);
}

#[test]
fn the_guides_list_congestion_controls_that_there_are() {
    for (path, heading) in
        [("scenario.md", "| `congestion_control` | `newreno`"), ("simulator.md", "| congestion control | `newreno`")]
    {
        let guide = std::fs::read_to_string(format!("{GUIDE}/{path}")).expect("a guide");
        let row = guide.lines().find(|line| line.starts_with(heading)).unwrap_or_else(|| panic!("{heading} in {path}"));
        let cell = row.split('|').nth(2).expect("the second cell");
        let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(names.len() >= 9, "{names:?}");
        for name in names {
            assert!(name.parse::<lasthop_laws::LawName>().is_ok(), "{path} has a law {name}, and there is none");
        }
    }
}
