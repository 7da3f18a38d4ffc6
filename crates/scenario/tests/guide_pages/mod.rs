//! The pages of docs/guide, and the tables in them that are made from the code.
#![allow(unreachable_pub, dead_code)] // two crates have tests with a part of it each

use lasthop_keys::Kind;
use std::path::PathBuf;

/// The folder of the guide.
pub const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");

/// `TOPIC.md` of the guide and the pages beside it, `TOPIC-*.md`, each with its text, in the order of their names.
pub fn pages(topic: &str) -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(GUIDE).expect("docs/guide");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| {
        let name = path.file_name().expect("a file").to_string_lossy();
        name == format!("{topic}.md") || name.starts_with(&format!("{topic}-"))
    });
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).expect("readable"))).collect()
}

/// What a key takes, as its row says it: "0 to 1", "1 to 64, whole", "1 to 60 characters".
pub fn takes(kind: &Kind) -> String {
    match kind {
        Kind::Node => "a [name](scenario.md#names)".into(),
        Kind::Ends => "two [names](scenario.md#names)".into(),
        Kind::Integer { from, to } => format!("{from} to {to}, whole"),
        Kind::Text(most) => format!("1 to {most} characters"),
        Kind::Line(most) => format!("1 to {most} bytes, without control characters"),
        _ => {
            let accepted = kind.accepted();
            accepted.strip_prefix("a number from ").unwrap_or(&accepted).into()
        }
    }
}

/// Compares each table with what stands between its marker and `<!-- end -->`, on one page of the topic; or writes it there.
pub fn check_tables(topic: &str, tables: impl IntoIterator<Item = (String, String)>) {
    let mut pages = pages(topic);
    let before = pages.clone();
    for (marker, table) in tables {
        let mut with = pages.iter_mut().filter(|(_, page)| page.contains(&marker));
        let (path, page) = with.next().unwrap_or_else(|| panic!("no {marker} in docs/guide/{topic}*.md"));
        assert!(with.next().is_none(), "{marker} is on two pages");
        let start = page.find(&marker).expect("the marker") + marker.len();
        let end = page[start..].find("<!-- end -->").unwrap_or_else(|| panic!("no end of {marker} in {path:?}"));
        page.replace_range(start..start + end, &table);
    }
    for ((path, page), (_, was)) in pages.iter().zip(&before) {
        if std::env::var_os("LASTHOP_UPDATE_GUIDE").is_some() {
            std::fs::write(path, page).expect("the guide can be written");
        } else {
            assert!(page == was, "{path:?} is behind the keys: run this test with LASTHOP_UPDATE_GUIDE=1");
        }
    }
}
