//! Compiles the BPF programs with clang, with the headers of the libbpf that comes with libbpf-sys.
#![allow(clippy::disallowed_methods)] // a build script reads the environment

use sha2::{Digest as _, Sha256};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let crate_dir = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out_dir = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    let programs = crate_dir.join("src/bpf");
    // What the build script of lasthop-laws says: where its headers are, and which laws have an object.
    let of_laws = |key: &str| env::var(format!("DEP_LASTHOP_LAWS_{key}")).expect("told by lasthop-laws");
    let laws = PathBuf::from(of_laws("INCLUDE"));
    for watched in [&programs, &laws] {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rustc-env=LASTHOP_LAWS_SOURCE={:016x}", digest(&[&programs, &laws]));

    clang_sys::load().unwrap_or_else(|error| {
        panic!("libclang is needed to make Rust of C's declarations (Debian: apt install clang): {error}")
    });
    let bindings = bindings(&programs.join("bindings.h"), &laws).expect("headers that compile");
    bindings.write_to_file(out_dir.join("bindings.rs")).expect("OUT_DIR can be written");
    println!("cargo::rustc-env=LASTHOP_LAWS_INCLUDE={}", laws.display()); // for the tests

    let include = format!("-I{}", laws.display());
    let compile = |source: &str, object: &str, defines: &[String]| {
        let mut builder = libbpf_cargo::SkeletonBuilder::new();
        if let Ok(clang) = env::var("CLANG") {
            builder.clang(clang);
        }
        let arguments = ["-Wall", "-Werror", "-mcpu=v3", &include].map(str::to_owned);
        let built = builder
            .source(programs.join(source))
            .obj(out_dir.join(object))
            .clang_args(arguments.iter().chain(defines))
            .build();
        if let Err(error) = built {
            panic!("{object} did not compile; clang 14 or newer is needed (Debian: apt install clang): {error:#}");
        }
    };
    compile("lasthop.bpf.c", "lasthop.bpf.o", &[]);
    compile("link_report.bpf.c", "link_report.bpf.o", &[]);
    let mut objects = String::from("&[\n");
    for law in of_laws("OBJECTS").split(' ') {
        let [law, number, hears] = law.split(':').collect::<Vec<_>>()[..] else { panic!("no law: {law:?}") };
        let mut defines = vec![format!("-DLH_LAW={number}")];
        // it hears what clients report (last_link.h)
        if hears == "hears" {
            defines.push("-DLH_LAST_LINK".to_owned());
        }
        let object = format!("law_{law}.bpf.o");
        compile("law.bpf.c", &object, &defines);
        writeln!(objects, "    ({law:?}, include_bytes!({object:?})),").expect("a string takes all");
    }
    fs::write(out_dir.join("objects.rs"), objects + "]\n").expect("OUT_DIR can be written");
    fs::write(out_dir.join("sources.rs"), sources(&programs)).expect("OUT_DIR can be written");
}

/// The sources of the programs as Rust: names with texts.
fn sources(programs: &Path) -> String {
    let entries = fs::read_dir(programs).expect("a folder of sources");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let entry = |path: &PathBuf| format!("({:?}, include_str!({path:?})), ", path.file_name().expect("a file"));
    format!("&[{}]", paths.iter().map(entry).collect::<String>())
}

/// The structs that programs and loader tell each other.
const SHARED: [&str; 20] = [
    "lh_about",
    "lh_cgroup",
    "lh_claim",
    "lh_claims",
    "lh_control",
    "lh_counters",
    "lh_destination",
    "lh_endpoints",
    "lh_far_end",
    "lh_flow",
    "lh_flow_record",
    "lh_heard_counters",
    "lh_law",
    "lh_law_counters",
    "lh_permit_key",
    "lh_report_settings",
    "lh_reporter_counters",
    "lh_sample",
    "lh_settings",
    "lh_state_change",
];

/// What Rust knows of the headers that both sides share.
fn bindings(header: &Path, laws: &Path) -> Result<bindgen::Bindings, bindgen::BindgenError> {
    bindgen::Builder::default()
        .header(header.to_str().expect("a path in UTF-8"))
        .clang_args([
            "-std=gnu11",
            "-Wno-unknown-attributes",
            "-fparse-all-comments",
            "-I",
            laws.to_str().expect("likewise"),
        ])
        .allowlist_type(format!("{}|tcp_congestion_ops", SHARED.join("|")))
        .allowlist_var("LH_.*")
        .opaque_type("lh_law|sock|ack_sample|rate_sample")
        .blocklist_type("lh_bound")
        .raw_line("use lasthop_laws::bound::LeasedBound as lh_bound;")
        .prepend_enum_name(false)
        .parse_callbacks(Box::new(Derives))
        .generate()
}

/// Structs of ours are read from bytes and written as such.
#[derive(Debug)]
struct Derives;

impl bindgen::callbacks::ParseCallbacks for Derives {
    fn add_derives(&self, info: &bindgen::callbacks::DeriveInfo<'_>) -> Vec<String> {
        if !SHARED.contains(&info.name) {
            return Vec::new();
        }
        let mut derives = ["FromBytes", "IntoBytes", "Immutable"].map(|name| format!("zerocopy::{name}")).to_vec();
        // which std has for arrays of up to 32 only
        if !["lh_about", "lh_law", "lh_flow"].contains(&info.name) {
            derives.push("Default".into());
        }
        derives
    }

    fn blocklisted_type_implements_trait(
        &self,
        _name: &str,
        _derive: bindgen::callbacks::DeriveTrait,
    ) -> Option<bindgen::callbacks::ImplementsTrait> {
        Some(bindgen::callbacks::ImplementsTrait::Yes) // LeasedBound does
    }
}

/// The first 64 bits of a SHA-256 of all sources in these folders: what is loaded tells by it whether it was made from the same ones.
fn digest(folders: &[&Path]) -> u64 {
    let mut files: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("a folder of sources"))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort_by_key(|path| path.file_name().map(ToOwned::to_owned));
    let mut hash = Sha256::new();
    files.iter().for_each(|path| hash.update(fs::read(path).expect("a source")));
    u64::from_be_bytes(*hash.finalize().first_chunk().expect("32 bytes"))
}
