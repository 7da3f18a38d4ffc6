//! What comes of a declaration: the reading, the defaults, the messages, the schema.
#![allow(dead_code)] // a declaration is tested, not what is done with it

use lasthop_keys::Preset::{Absent, Required};
use lasthop_keys::{
    Document, DocumentError, Key, Keys, Kind, Of, Override, Part, Presence, Section, When, by_word, choice,
    choice_or_none, derived, flag, integer, key, keys, number, text, words,
};

use std::sync::LazyLock;

words! {
    /// How a road is paved.
    enum Paved {
        Gravel = "gravel",
        Asphalt = "asphalt",
    }
}

keys! {
    /// A map.
    struct Map {
        /// What it
        /// shows.
        title: String = text(20), Required;
        tables {
            /// By land.
            road: Option<Road>, Presence::Unless("ferries");
            /// By water.
            ferries: Vec<Ferry>, Presence::IfGiven;
        }
    }

    /// The road.
    struct Road {
        /// Its surface.
        paved: Paved = choice(Paved::WORDS), "gravel";
        /// Its limit in km/h.
        limit_kmh: f64 = number(5.0, 130.0), by_word("paved", [("gravel", 50.0), ("asphalt", 100.0)]);
        /// That of lorries; as for all.
        lorries_kmh: f64 = number(5.0, 130.0), derived("as for all", |road| road.get("limit_kmh").cloned());
        /// Where it ends.
        r#where: Option<String> = text(20), Absent;
        /// Whether it is watered.
        watered: bool = flag(), false, when vec![When::Is(Of::Same, "paved", vec!["gravel"])];
        tables {
            /// Its bridges.
            bridges: Vec<Bridge>, Presence::Always;
        }
        check lorries_are_not_faster;
    }

    /// A bridge.
    struct Bridge {
        /// What it carries in tonnes.
        tonnes: Option<u8> = integer::<u8>(1, 60), Absent;
        /// Its limit in km/h.
        limit_kmh: f64 = number(5.0, 130.0), by_word("paved", [("gravel", 20.0), ("asphalt", 60.0)]);
        /// What its roof is of.
        roof: Option<Paved> = choice_or_none(Paved::WORDS), Absent;
    }

    /// A ferry.
    struct Ferry {
        /// How many cars.
        cars: u32 = integer(1, 500), Required;
    }
}

fn lorries_are_not_faster(road: &Road, part: &Part<'_>) -> Result<(), DocumentError> {
    match road.lorries_kmh > road.limit_kmh {
        true => Err(part.error(key!(Road, lorries_kmh), "is above the limit", "at most limit_kmh")),
        false => Ok(()),
    }
}

fn read(text: &str, overrides: &[&str]) -> Result<Map, String> {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("an override")).collect();
    let document = Document::read("map.toml", text, &overrides, Map::section());
    document.and_then(|document| Map::read(&document.top())).map_err(|error| error.to_string())
}

fn road(text: &str, overrides: &[&str]) -> Road {
    let map = read(&format!("title = \"a map\"\n{text}"), overrides).expect("a map");
    map.road.expect("a map has a road unless it has ferries")
}

#[test]
fn what_is_left_out_has_its_default_by_a_word_or_by_another_key() {
    let plain = road("", &[]);
    assert_eq!((plain.paved, plain.limit_kmh, plain.lorries_kmh, plain.watered), (Paved::Gravel, 50.0, 50.0, false));
    assert_eq!((plain.bridges.len(), plain.bridges[0].tonnes, plain.bridges[0].limit_kmh), (1, None, 20.0));
    let fast =
        road("[road]\npaved = \"asphalt\"\nwhere = \"the sea\"\n[[road.bridges]]\n[[road.bridges]]\ntonnes = 30", &[]);
    assert_eq!((fast.limit_kmh, fast.lorries_kmh, fast.r#where.as_deref()), (100.0, 100.0, Some("the sea")));
    let bridges: Vec<_> = fast.bridges.iter().map(|bridge| (bridge.tonnes, bridge.limit_kmh)).collect();
    assert_eq!(bridges, [(None, 60.0), (Some(30), 60.0)]);
    assert_eq!(road("", &["road.bridges.*.tonnes=7"]).bridges[0].tonnes, Some(7));
}

#[test]
fn a_mistake_is_told_with_its_line_or_its_override() {
    for (text, overrides, said) in [
        ("", &[][..], "map.toml: title: is not there; accepted: text of 1 to 20 characters"),
        (
            "title = \"a\"\n[[ferries]]",
            &[],
            "map.toml:2: ferries[0].cars: is not there; accepted: a whole number from 1 to 500",
        ),
        (
            "title = \"a\"\n[road]\n[[ferries]]\ncars = 3",
            &[],
            "map.toml:2: road: cannot be beside [[ferries]]; accepted: [[ferries]] alone, or [road] without them",
        ),
        (
            "title = \"a\"",
            &["ferries.0.cars=3"],
            "`ferries.0.cars=3`: there are no [[ferries]]; accepted: keys of [road]",
        ),
        (
            "title = \"a\"\n[road]\nlorries_kmh = 80",
            &[],
            "map.toml:3: road.lorries_kmh: is above the limit; accepted: at most limit_kmh",
        ),
        (
            "title = \"a\"",
            &["road.lorries_kmh=80"],
            "`road.lorries_kmh=80` on map.toml: road.lorries_kmh: is above the limit; accepted: at most limit_kmh",
        ),
        (
            "title = \"a\"\nroad.paved = \"asfalt\"",
            &[],
            "map.toml:2: road.paved: \"asfalt\" is not one of the words; did you mean \"asphalt\"?; accepted: \"gravel\", \"asphalt\"",
        ),
    ] {
        assert_eq!(read(text, overrides).err().as_deref(), Some(said), "{text}");
    }
}

#[test]
fn a_word_takes_back_what_is_optional() {
    let roof = |overrides: &[&str]| road("[[road.bridges]]\nroof = \"asphalt\"", overrides).bridges[0].roof;
    assert_eq!(roof(&[]), Some(Paved::Asphalt));
    assert_eq!(roof(&["road.bridges.0.roof=none"]), None);
    let error = read("title = \"a\"", &["road.bridges.0.roof=glass"]).err().expect("no such roof");
    assert!(error.ends_with("accepted: \"none\", \"gravel\", \"asphalt\""), "{error}");
    let schema = &Bridge::section().json_schema("A bridge")["properties"]["roof"]["enum"];
    assert_eq!(*schema, serde_json::json!(["none", "gravel", "asphalt"]));
}

#[test]
fn the_same_is_data() {
    let headings: Vec<String> = Map::section().walk().into_iter().map(|(heading, _)| heading).collect();
    assert_eq!(headings, ["", "[road]", "[[road.bridges]]", "[[ferries]]"]);
    assert_eq!(Map::section().keys[0].meaning, "What it shows.");
    let defaults: Vec<_> = Road::section().keys.iter().map(|key| (key.name, key.default.describe())).collect();
    let expected = [
        ("paved", "`\"gravel\"`"),
        ("limit_kmh", "`50` (gravel), `100` (asphalt)"),
        ("lorries_kmh", "as for all"),
        ("where", "none"),
        ("watered", "`false`"),
    ];
    assert_eq!(defaults, expected.map(|(key, default)| (key, default.to_owned())));
    let schema = Map::section().json_schema("A map");
    assert_eq!(schema["required"], serde_json::json!(["title"]));
    assert_eq!(schema["properties"]["ferries"]["items"]["properties"]["cars"]["maximum"], 500);
    assert_eq!(schema["properties"]["road"]["description"], "By land.");
}

#[test]
fn a_key_that_nothing_looks_at_is_named() {
    let ineffective = |text: &str| {
        let document = Document::read("map.toml", text, &[], Map::section()).expect("a map");
        let keys = lasthop_keys::ineffective_keys([&document.given()[..]]);
        keys.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let text = "title = \"a\"\n[road]\nwatered = true\npaved = ";
    assert_eq!(ineffective(&format!("{text}\"gravel\"")), [""; 0]);
    let told = "map.toml:3: road.watered has no effect here: paved is \"asphalt\", and it is for \"gravel\"";
    assert_eq!(ineffective(&format!("{text}\"asphalt\"")), [told]);
}

/// Crossings, whose names only their owner knows.
struct Crossings;

impl Keys for Crossings {
    fn section() -> &'static Section {
        static SECTION: LazyLock<Section> = LazyLock::new(|| {
            let kind = Kind::Number { from: 0.0, to: 9.0, above: false };
            let other = Key { name: "", kind, default: Absent, meaning: "", when: Vec::new(), may_wait: true };
            Section { others: Some(other), ..Section::default() }
        });
        &SECTION
    }

    fn read(_part: &Part<'_>) -> Result<Self, DocumentError> {
        Ok(Self)
    }
}

#[test]
fn a_table_may_have_keys_of_any_name_of_one_kind() {
    let set = Override::parse("bridge=3").expect("an override");
    let document = Document::read("crossings.toml", "ford = 1\n", &[set], Crossings::section()).expect("a document");
    assert_eq!(document.table, "ford = 1.0\nbridge = 3.0\n".parse().expect("TOML"));
    let error = Document::read("crossings.toml", "ford = 10", &[], Crossings::section()).expect_err("too many");
    assert_eq!(error.to_string(), "crossings.toml:1: ford: 10 is out of range; accepted: a number from 0 to 9");
    let schema = Crossings::section().json_schema("Crossings");
    assert_eq!(schema["additionalProperties"]["type"], "number");
}

#[test]
fn a_declaration_whose_types_do_not_fit_panics_where_it_is_made_and_not_where_a_file_is_read() {
    keys! {
        struct TooNarrow {
            /// A number that its type does not hold.
            narrow: u8 = integer(1, 300), 1;
        }
        struct Forgotten {
            /// A key that may be absent, and no Option.
            forgotten: u8 = integer(1, 9), Absent;
        }
        struct Needless {
            /// A key that always has a value, and an Option.
            needless: Option<u8> = integer::<u8>(1, 9), 1;
        }
    }
    for (section, said) in [
        (TooNarrow::section as fn() -> _, "a whole number from 1 to 300 is no u8"),
        (Forgotten::section, "forgotten may be absent: an Option"),
        (Needless::section, "needless always has a value: no Option"),
    ] {
        let panic = std::panic::catch_unwind(section).expect_err(said);
        let told = panic.downcast_ref::<String>().map_or("", String::as_str);
        assert_eq!(told, said);
    }
}
