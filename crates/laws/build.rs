//! Makes Rust of the laws, written in C for the kernel: bindgen of their declarations, and of what `laws.list` says of them. And
//! compiles them for this machine.
#![allow(clippy::disallowed_methods)] // a build script reads its environment

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// What Rust calls. They are inline in C: bindgen writes a function around each.
const CALLED: &str = "lh_law_(init|lastlink|acked|lost|notified|timed_out|reported|sampled|resumed|sent|undone)|lh_bound_.*\
                      |lh_report_(parse|write|flags)|lh_cubic_(init|sample|grow|lost|reset|resume|root)|lh_cube_root|lh_gradients_.*|lh_gradient_(exponent|probability)\
                      |lh_cdg_queue|lh_cdg_linux_queue|lh_exp_minus";
fn main() {
    let crate_dir = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    for watched in ["include", "src/native.h", "src/own.c", "src/table.h", "src/wasm"] {
        println!("cargo::rerun-if-changed={watched}");
    }
    let functions = out_dir.join("functions.c");
    clang_sys::load().unwrap_or_else(|error| {
        panic!("libclang is needed to make Rust of C's declarations (Debian: apt install clang): {error}")
    });
    // A browser has no kernel whose headers tell its integers.
    let in_wasm = env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm");
    let types = in_wasm.then(|| crate_dir.join("src/wasm"));
    let bindings = bindings(&functions, types.as_deref()).expect("headers that compile");
    bindings.write_to_file(out_dir.join("bindings.rs")).expect("OUT_DIR can be written");
    let mut compiler = cc::Build::new();
    // -fwrapv: a signed sum wraps here, too, as it does for BPF.
    compiler.include("include").std("gnu11").flag("-fwrapv").extra_warnings(true).warnings_into_errors(true);
    compiler.includes(&types);
    compiler.clone().include(&crate_dir).file(functions).compile("lasthop_laws");

    // as C, whatever its name; it is not compiled
    let expanded = compiler.flag("-xc").file("src/table.h").expand();
    let expanded = String::from_utf8(expanded).expect("headers in UTF-8");
    // without the lines that say where each came from
    let lines: String = expanded.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect();
    let (_, tables) = lines.split_once("LASTHOP_TABLE_BEGINS").expect("the first mark of table.h");
    let (table, objects) = tables.split_once("LASTHOP_OBJECTS_BEGIN").expect("the second one");
    fs::write(out_dir.join("laws.rs"), table).expect("OUT_DIR can be written");

    fs::write(out_dir.join("sources.rs"), sources(&crate_dir)).expect("OUT_DIR can be written");

    // For those who compile laws themselves, as DEP_LASTHOP_LAWS_INCLUDE and so on. An object is law:ENUMERATOR:hears, or deaf.
    println!("cargo::metadata=include={}", crate_dir.join("include").display());
    let objects = objects.split(';').map(|entry| entry.split_whitespace().collect::<Vec<_>>());
    let objects = objects.filter_map(|entry| match entry[..] {
        [law, number, "Everywhere", hears] => Some(format!("{law}:{number}:{hears}")),
        _ => None,
    });
    println!("cargo::metadata=objects={}", objects.collect::<Vec<_>>().join(" "));
}

/// The texts with which a law outside the tree is compiled, as Rust: all but the list.
fn sources(crate_dir: &Path) -> String {
    let headers = fs::read_dir(crate_dir.join("include")).expect("a folder of headers");
    let mut paths: Vec<PathBuf> = headers.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "h"));
    paths.push(crate_dir.join("src/own.c"));
    paths.sort();
    let entry = |path: &PathBuf| format!("({:?}, include_str!({path:?})), ", path.file_name().expect("a file"));
    format!("&[{}]", paths.iter().map(entry).collect::<String>())
}

/// What Rust knows of the headers; writes C with a symbol for each function of [`CALLED`].
fn bindings(functions: &Path, types: Option<&Path>) -> Result<bindgen::Bindings, bindgen::BindgenError> {
    bindgen::Builder::default()
        .header("src/native.h")
        // Hidden, as they are for WebAssembly, functions would be left out.
        .clang_args(["-std=gnu11", "-fparse-all-comments", "-fvisibility=default", "-Iinclude"])
        .clang_args(types.map(|types| format!("-I{}", types.display())))
        .allowlist_function(CALLED)
        .allowlist_type("lh_.*")
        .allowlist_var("LH_.*")
        .opaque_type("lh_law")
        .wrap_static_fns(true)
        .wrap_static_fns_path(functions)
        .prepend_enum_name(false)
        .derive_default(true)
        .derive_eq(true)
        .derive_hash(true)
        .no_partialeq("lh_own_law") // of functions
        .no_default("lh_report") // whose default is that nothing is known
        .parse_callbacks(Box::new(OfBytes))
        .generate()
}

/// A bound is written into a map of the kernel's as it is, and parameters are numbers by their order, too.
#[derive(Debug)]
struct OfBytes;

impl bindgen::callbacks::ParseCallbacks for OfBytes {
    fn add_derives(&self, info: &bindgen::callbacks::DeriveInfo<'_>) -> Vec<String> {
        let derived: &[&str] = match info.name {
            "lh_bound" => &["zerocopy::FromBytes", "zerocopy::IntoBytes", "zerocopy::Immutable"],
            "lh_law" => &["Clone", "PartialEq", "Eq"], // for bindgen its array is too long
            name if name.ends_with("_parameters") => &["zerocopy::FromBytes", "zerocopy::Immutable"],
            _ => &[],
        };
        derived.iter().map(|name| (*name).to_owned()).collect()
    }
}
