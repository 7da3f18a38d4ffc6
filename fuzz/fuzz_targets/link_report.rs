//! ../src/link_report.rs, with inputs that libFuzzer makes.
#![no_main]

#[path = "../src/link_report.rs"]
mod link_report;

libfuzzer_sys::fuzz_target!(|events: Vec<link_report::Event<'_>>| link_report::run(events));
