//! Which commit this is built from.

use std::path::Path;
use std::process::Command;

/// What is compiled in, from the top of the repository.
const COMPILED: [&str; 3] = [":/crates", ":/Cargo.toml", ":/Cargo.lock"];

fn main() {
    // Whatever is compiled in, and whatever moves the commit. Cargo takes a file that is not there as changed.
    println!("cargo::rerun-if-changed=..");
    println!("cargo::rerun-if-changed=../../Cargo.toml");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    println!("cargo::rerun-if-env-changed=LASTHOP_COMMIT");
    for name in ["HEAD", "index", "logs/HEAD"] {
        // In a work tree of its own, these are not in .git.
        let path = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists());
        path.into_iter().for_each(|path| println!("cargo::rerun-if-changed={path}"));
    }
    // Inside somebody else's repository, or built from an archive, there is no commit to tell.
    let ours = git(&["rev-parse", "--show-prefix"]).as_deref() == Some("crates/version/");
    let ask = |arguments: &[&str]| if ours { git(arguments) } else { None };
    let given = std::env::var("LASTHOP_COMMIT").ok().filter(|commit| !commit.is_empty());
    let is_given = given.is_some();
    let commit = given.or_else(|| ask(&["rev-parse", "--short=12", "HEAD"])).unwrap_or_default();
    let changes = || ask(&[&["--no-optional-locks", "status", "--porcelain", "--"], &COMPILED[..]].concat());
    let dirty = !is_given && changes().is_some_and(|changes| !changes.is_empty());
    let last_changed = || ask(&[&["log", "-1", "--format=%H", "--"], &COMPILED[..]].concat());
    let model = if is_given { Some(commit.clone()) } else { last_changed() }.unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let said = match (commit.as_str(), dirty) {
        ("", _) => version.to_owned(),
        (commit, false) => format!("{version} ({commit})"),
        (commit, true) => format!("{version} ({commit}, with changes)"),
    };
    let target = std::env::var("TARGET").expect("cargo says for what it builds");
    println!("cargo::rustc-env=LASTHOP_BUILD_COMMIT={commit}");
    println!("cargo::rustc-env=LASTHOP_BUILD_DIRTY={dirty}");
    println!("cargo::rustc-env=LASTHOP_BUILD_MODEL={model}");
    println!("cargo::rustc-env=LASTHOP_BUILD_TARGET={target}");
    println!("cargo::rustc-env=LASTHOP_BUILD_VERSION={said}");
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}
