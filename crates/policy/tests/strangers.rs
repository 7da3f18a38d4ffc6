//! What strangers may send, as `make fuzz` has kept it (fuzz/corpus): each input once more, and with some of its bytes changed.

use arbitrary::{Arbitrary, Unstructured};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::path::Path;

#[path = "../../../fuzz/src/beacon.rs"]
mod beacon;
#[path = "../../../fuzz/src/link_report.rs"]
mod link_report;

/// The kept inputs of a target, in the order of their names.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = files.map(|file| file.expect("an entry").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("a file")).collect()
}

/// What libFuzzer would run for these bytes.
fn events<'a, E: Arbitrary<'a>>(bytes: &'a [u8]) -> Vec<E> {
    Vec::arbitrary_take_rest(Unstructured::new(bytes)).unwrap_or_default()
}

/// Runs each input, then `cases` times one of which up to eight bytes are others.
fn replay(target: &str, cases: u32, run: fn(&[u8]) -> usize) {
    let inputs = corpus(target);
    let happened: usize = inputs.iter().map(|input| run(input)).sum();
    assert!(inputs.len() > 100 && happened > 2 * inputs.len(), "{} inputs, {happened} events", inputs.len());
    let changed = (select(inputs), vec((any::<Index>(), any::<u8>()), 1..8)).prop_map(|(mut input, changes)| {
        for (at, byte) in changes {
            if let Some(old) = (!input.is_empty()).then(|| at.get_mut(&mut input)) {
                *old = byte;
            }
        }
        input
    });
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }, |(input in changed)| {
        run(&input);
    });
}

#[test]
fn no_beacon_of_a_stranger_breaks_a_host() {
    replay("beacon", 10_000, |input| {
        let events: Vec<beacon::Event<'_>> = events(input);
        let count = events.len();
        beacon::run(events);
        count
    });
}

#[test]
fn no_option_of_a_stranger_breaks_a_connection() {
    replay("link_report", 10_000, |input| {
        let events: Vec<link_report::Event<'_>> = events(input);
        let count = events.len();
        link_report::run(events);
        count
    });
}
