//! The headers of `include/` as Rust: bindgen's output (build.rs), with C's names and comments.
#![allow(
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_code,
    clippy::all,
    clippy::use_self,
    rustdoc::all
)]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
