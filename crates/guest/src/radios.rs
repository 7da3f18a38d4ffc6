//! Linux's own Wi-Fi in a guest: simulated radios (mac80211_hwsim), and the programs that use them.
//!
//! *The module is changed by one bit.* Without AQL, the airtime queue limit, hwsim takes every frame at once, and the queues of mac80211
//! stay empty. Beside a bit that hwsim sets of the features of its radios (`NL80211_EXT_FEATURE_BEACON_PROTECTION`, 41) is that of AQL (40):
//! with it, stations and access point queue as those with ath10k and mt76 do.

use crate::error::{At as _, Error, Result};
use crate::kernels::{Kernel, RADIOS};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the programs are in the guest, for a job with radios: its PATH.
pub(crate) const PROGRAMS: &str = "/programs";
/// Programs that a user has, though they may not be in the PATH.
pub(crate) const OF_ROOT: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];
/// `orb $0x2, N(%rax)` becomes `orb $0x3`. N is 0x65 in Debian's 6.1 and 6.12, 0x5d in its 7.2.
const OPERATION: [u8; 2] = [0x80, 0x48];
const BEFORE: u8 = 0x02;
const AFTER: u8 = 0x03;
/// From this release on hwsim's radios have mac80211's queues: before, a driver could do without.
const FIRST_WITH_QUEUES: (u32, u32) = (6, 2);
/// What is behind a module's signature (kernel/module_signature.h: 12 bytes, the last four the signature's size).
const SIGNED: &[u8] = b"~Module signature appended~\n";
const SIGNATURE_HEADER: usize = 12;

/// Finds programs of this machine: in the PATH, or where root has them.
///
/// # Errors
/// The first one that is not here. Each has the Debian package that brings it.
pub fn programs(wanted: &[(&'static str, &'static str)]) -> Result<Vec<PathBuf>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).chain(OF_ROOT.map(PathBuf::from)).collect();
    let find = |&(program, package): &(&'static str, &'static str)| {
        let found = folders.iter().map(|folder| folder.join(program)).find(|path| path.is_file());
        found.ok_or(Error::OfRadios { program, package })
    };
    wanted.iter().map(find).collect()
}

/// The kernel's module of simulated radios, with AQL.
///
/// # Errors
/// The kernel has none, none with mac80211's queues, or it is not one whose bit is known.
pub(crate) fn module(kernel: &Kernel) -> Result<Vec<u8>> {
    if kernel.modules.of_radios.last().is_none_or(|last| last != RADIOS) {
        let problem = format!(
            "it has no module {RADIOS} (CONFIG_MAC80211_HWSIM=m), or another version of lasthop has kept it: fetch or build it again"
        );
        return Err(Error::Kept { path: kernel.folder.clone(), problem });
    }
    if version(&kernel.release).is_some_and(|version| version < FIRST_WITH_QUEUES) {
        let problem =
            format!("simulated radios have mac80211's queues since Linux 6.2, and this is {}", kernel.release);
        return Err(Error::Kept { path: kernel.folder.clone(), problem });
    }
    let path = kernel.module(RADIOS);
    let bytes = fs::read(&path).at("cannot read", &path)?;
    with_aql(&bytes).ok_or_else(|| unknown(&path))
}

/// The first two numbers of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|of: char| !of.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn unknown(path: &Path) -> Error {
    let problem = "where it sets the features of its radios is not known (accepted: such as the kernel debian-6.12)";
    Error::Kept { path: path.to_owned(), problem: problem.to_owned() }
}

/// The module with the bit, and without its signature, which would not fit any more. `None`: there is not just one such place.
fn with_aql(module: &[u8]) -> Option<Vec<u8>> {
    let mut module = module.to_vec();
    if let Some(signed) = module.strip_suffix(SIGNED) {
        let size = u32::from_be_bytes(signed.last_chunk().copied()?);
        let length = signed.len().checked_sub(SIGNATURE_HEADER + size as usize)?;
        module.truncate(length);
    }
    let is_place = |bytes: &[u8]| bytes.starts_with(&OPERATION) && bytes.ends_with(&[BEFORE]);
    let mut places = module.windows(4).enumerate().filter(|(_, bytes)| is_place(bytes));
    let (place, _) = places.next()?;
    if places.next().is_some() {
        return None;
    }
    module[place + 3] = AFTER;
    Some(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_bit_is_set_and_the_signature_goes() {
        let operation = |offset: u8, bits: u8| [b"code ", &[0x80, 0x48, offset, bits][..], b" code"].concat();
        let (code, changed) = (operation(0x65, 2), operation(0x65, 3));
        assert_eq!(with_aql(&code), Some(changed.clone()));
        assert_eq!(with_aql(&operation(0x5d, 2)), Some(operation(0x5d, 3)));
        let signed = [&code[..], b"12345", &[0; 8], &5_u32.to_be_bytes(), SIGNED].concat();
        assert_eq!(with_aql(&signed), Some(changed));
        assert_eq!(with_aql(b"no such place"), None);
        assert_eq!(with_aql(&code.repeat(2)), None);
        // A signature that is longer than the module.
        let signed = [&code[..], &[0; 8], &500_u32.to_be_bytes(), SIGNED].concat();
        assert_eq!(with_aql(&signed), None);
    }

    #[test]
    fn radios_before_linux_6_2_have_no_queues() {
        let has = ["6.1.0-50-amd64", "5.19", "6.2.0", "6.12.48+deb13-amd64", "7.0-rc1"].map(version);
        assert_eq!(has.map(|version| version.expect("numbers") >= FIRST_WITH_QUEUES), [false, false, true, true, true]);
        assert_eq!([version("mine"), version("6")], [None, None]);
    }

    #[test]
    fn a_program_that_is_not_here_is_named_with_its_package() {
        let found = programs(&[("sh", "dash")]).expect("every machine has one");
        assert!(found[0].ends_with("sh"), "{found:?}");
        let missing = programs(&[("sh", "dash"), ("no-such-program", "hostapd")]).expect_err("not here").to_string();
        assert!(
            missing
                .starts_with("no-such-program is not here, which simulated radios need (Debian: apt install hostapd)"),
            "{missing}"
        );
    }
}
