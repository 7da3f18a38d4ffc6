//! Compiles the laws, written in C for the kernel, for this machine, and makes Rust of what `laws.list` says of them.
#![allow(clippy::disallowed_methods)] // a build script reads its environment

use std::env;
use std::fs;
use std::path::PathBuf;

fn main() {
    let crate_dir = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    let shims = ["src/bound_shim.c", "src/law_shim.c", "src/link_report_shim.c"];
    for watched in ["include", "src/table.h"].iter().chain(&shims) {
        println!("cargo::rerun-if-changed={watched}");
    }
    let mut compiler = cc::Build::new();
    compiler.include("include").std("gnu11").extra_warnings(true).warnings_into_errors(true);
    compiler.clone().files(shims).compile("lasthop_laws");

    // as C, whatever its name; it is not compiled
    let expanded = compiler.flag("-xc").file("src/table.h").expand();
    let expanded = String::from_utf8(expanded).expect("headers in UTF-8");
    // without the lines that say where each came from
    let lines: String = expanded.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect();
    let (_, tables) = lines.split_once("LASTHOP_TABLE_BEGINS").expect("the first mark of table.h");
    let (table, objects) = tables.split_once("LASTHOP_OBJECTS_BEGIN").expect("the second one");
    fs::write(out_dir.join("laws.rs"), table).expect("OUT_DIR can be written");

    // For those who compile laws themselves, as DEP_LASTHOP_LAWS_INCLUDE and so on. An object is law:ENUMERATOR:hears, or deaf.
    println!("cargo::metadata=include={}", crate_dir.join("include").display());
    let objects = objects.split(';').map(|entry| entry.split_whitespace().collect::<Vec<_>>());
    let objects = objects.filter_map(|entry| match entry[..] {
        [law, number, "Everywhere", hears] => Some(format!("{law}:{number}:{hears}")),
        _ => None,
    });
    println!("cargo::metadata=objects={}", objects.collect::<Vec<_>>().join(" "));
}
