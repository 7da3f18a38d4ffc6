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
use std::sync::LazyLock;

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

/// What a simulated run of this build computes with: the last commit that changed anything compiled, the target, and the
/// mathematical functions of the C library. Two builds of one model give one result for a scenario.
///
/// # Errors
/// If the build has changes on top of its commit, or does not know it.
pub fn model() -> Result<String, NoModel> {
    static LIBM: LazyLock<u64> = LazyLock::new(libm);
    match env!("LASTHOP_BUILD_MODEL") {
        _ if build().dirty => Err(NoModel::Changes),
        "" => Err(NoModel::NoCommit),
        commit => Ok(format!("{commit} {} libm {:016x}", env!("LASTHOP_BUILD_TARGET"), *LIBM)),
    }
}

/// FNV-1a over the functions of the C library that policies, traffic and the errors of an SNR use, at some arguments each. Their last bits
/// differ between versions, and in one version of glibc between processors with and without FMA; so its version would
/// not tell.
fn libm() -> u64 {
    let values = (1..4096).map(f64::from).flat_map(|x| {
        let part = x / 4096.0;
        let exponentials = [(-8.0 * part).exp(), (-8.0 * part).exp_m1(), part.powf(x.sqrt() / 8.0)];
        exponentials.into_iter().chain([(-part).ln_1p(), x.ln(), x.log2(), x.log10()])
    });
    values
        .flat_map(|value| value.to_bits().to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::libm;
    use std::process::Command;

    /// glibc chooses its functions when a process starts; this starts one that may not use FMA.
    #[test]
    fn another_libm_is_another_model() {
        if std::env::var_os("GLIBC_TUNABLES").is_some() {
            println!("libm {:016x}", libm());
            return;
        }
        let run = |tunables: &str| {
            let mut test = Command::new(std::env::current_exe().expect("this test"));
            let test = test.args(["--exact", "tests::another_libm_is_another_model", "--nocapture"]);
            let output = test.env("GLIBC_TUNABLES", tunables).output().expect("it runs");
            let said = String::from_utf8(output.stdout).expect("text");
            said.lines().find_map(|line| line.split_once("libm ")).expect("its digest").1.to_owned()
        };
        let usual = run("");
        assert_eq!(usual, format!("{:016x}", libm()), "it is the same in each process");
        #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
        if std::arch::is_x86_feature_detected!("fma") {
            assert_ne!(run("glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4"), usual);
        }
    }
}
