//! Compiles the BPF programs with clang, with the headers of the libbpf that comes with libbpf-sys.
#![allow(clippy::disallowed_methods)] // a build script reads the environment

use std::env;
use std::path::PathBuf;

fn main() {
    let crate_dir = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out_dir = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    let programs = crate_dir.join("src/bpf");
    let laws = crate_dir.join("../control/laws");
    for watched in [&programs, &laws.join("bound.h")] {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    println!("cargo::rerun-if-env-changed=CLANG");

    let mut builder = libbpf_cargo::SkeletonBuilder::new();
    if let Ok(clang) = env::var("CLANG") {
        builder.clang(clang);
    }
    let include = format!("-I{}", laws.display());
    let built = builder
        .source(programs.join("lasthop.bpf.c"))
        .obj(out_dir.join("lasthop.bpf.o"))
        .clang_args(["-Wall", "-Werror", "-mcpu=v3", &include])
        .build();
    if let Err(error) = built {
        panic!("the BPF programs did not compile; clang 14 or newer is needed (Debian: apt install clang): {error:#}");
    }
}
