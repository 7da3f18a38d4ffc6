//! Compiles the laws, written in C for the kernel, for this machine.
#![allow(clippy::disallowed_methods)] // a build script reads its environment

fn main() {
    println!("cargo::rerun-if-changed=include");
    println!("cargo::rerun-if-changed=src/bound_shim.c");
    println!("cargo::rerun-if-changed=src/law_shim.c");
    println!("cargo::rerun-if-changed=src/link_report_shim.c");
    cc::Build::new()
        .files(["src/bound_shim.c", "src/law_shim.c", "src/link_report_shim.c"])
        .include("include")
        .std("gnu11")
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("lasthop_laws");
}
