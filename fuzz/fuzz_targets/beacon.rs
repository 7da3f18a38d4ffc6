//! ../src/beacon.rs, with inputs that libFuzzer makes.
#![no_main]

#[path = "../src/beacon.rs"]
mod beacon;

libfuzzer_sys::fuzz_target!(|events: Vec<beacon::Event<'_>>| beacon::run(events));
