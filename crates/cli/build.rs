//! Compiles the repository's scenarios and studies in, with the files beside them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let variable = |name: &str| PathBuf::from(std::env::var_os(name).expect("set by cargo"));
    let top = variable("CARGO_MANIFEST_DIR").join("../..");
    let mut files = Vec::new();
    for folder in ["scenarios", "studies"] {
        collect(&top.join(folder), &mut files);
    }
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&top).expect("below the top");
        writeln!(list, "    BuiltIn {{ path: {name:?}, text: include_str!({file:?}) }},").expect("a string takes all");
    }
    std::fs::write(variable("OUT_DIR").join("built_in.rs"), list + "]\n").expect("OUT_DIR can be written");
}

/// All files below the folder, but for those that Python leaves. Cargo looks at each folder for new ones.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if path.is_dir() && !path.ends_with("__pycache__") {
            collect(&path, files);
        } else if matches!(ending, Some("toml" | "h" | "py" | "csv" | "mahimahi")) {
            files.push(path);
        }
    }
}
