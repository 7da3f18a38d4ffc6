//! Which build of lasthop this is. It is a crate of its own because it is compiled anew at each commit, and so is what
//! imports it: only the leaves may, the command and the Python package.
//!
//! - [`build`]: version, commit and whether there were changes on top of it, for the results.
//! - [`model`]: what a simulated run of this build computes with, for the key of a stored run.
//!
//! The build looks at git. Only changes of what is compiled count, those of `crates/`, `Cargo.toml` and `Cargo.lock`:
//! a commit of documentation keeps the stored runs, and a scenario of one's own in the work tree is no change. Source
//! without git has no commit. Who packages it may set `LASTHOP_COMMIT` when building, and so vouches for the source.
#![forbid(unsafe_code)]

use lasthop_scenario::Build;

/// Version and commit, as `lasthop --version` prints them: `0.1.0 (7b32f07a1c2d)`.
pub const VERSION: &str = env!("LASTHOP_BUILD_VERSION");

/// Why the runs of this build cannot be stored: nothing names what they were computed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoModel {
    /// The source has changes that no commit has.
    #[error("this build has changes on top of its commit")]
    Changes,
    /// Built without git, or from a copy of the source.
    #[error("this build does not know its commit")]
    NoCommit,
}

/// This build, for the results.
pub fn build() -> Build {
    let commit = env!("LASTHOP_BUILD_COMMIT");
    Build {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: (!commit.is_empty()).then(|| commit.to_owned()),
        dirty: env!("LASTHOP_BUILD_DIRTY") == "true",
    }
}

/// What a simulated run of this build computes with: the last commit that changed anything compiled, and the target. Two builds of
/// one model give one result for a scenario.
///
/// # Errors
/// If the build has changes on top of its commit, or does not know it.
pub fn model() -> Result<String, NoModel> {
    match env!("LASTHOP_BUILD_MODEL") {
        _ if build().dirty => Err(NoModel::Changes),
        "" => Err(NoModel::NoCommit),
        commit => Ok(format!("{commit} {}", env!("LASTHOP_BUILD_TARGET"))),
    }
}
