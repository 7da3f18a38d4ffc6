//! Which commit this is built from, for the results.

use std::process::Command;

fn main() {
    // Whatever is compiled in, and whatever moves the commit.
    for path in ["..", "../../Cargo.lock", "../../.git/HEAD", "../../.git/index", "../../.git/logs/HEAD"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
    };
    // Built from an archive without git, there is no commit to tell.
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    let dirty = git(&["status", "--porcelain"]).is_some_and(|changes| !changes.is_empty());
    let version = env!("CARGO_PKG_VERSION");
    let said = match (commit.as_str(), dirty) {
        ("", _) => version.to_owned(),
        (commit, false) => format!("{version} ({commit})"),
        (commit, true) => format!("{version} ({commit}, with changes)"),
    };
    println!("cargo::rustc-env=LASTHOP_COMMIT={commit}");
    println!("cargo::rustc-env=LASTHOP_DIRTY={dirty}");
    println!("cargo::rustc-env=LASTHOP_VERSION={said}");
}
