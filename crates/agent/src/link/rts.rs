//! The RTS threshold of the managed interface's radio: set while the rule of [`lasthop_policy::RtsRule`] holds, then given back.
//!
//! A threshold outlives the process that sets it. So before it is set, the former one is written into `/run/lasthop/rts-N` (N: the
//! radio's number), and a lock beside it says that an agent is there. Whichever agent starts next on this host, in whatever mode
//! and with whatever configuration, gives back what agents have left whose lock is free. A threshold that
//! somebody else has set meanwhile stays.

use crate::error::{Doing as _, Error, Result};
use crate::link::wifi::Nl80211;
use crate::link::wiphy::{Radios, Wiphy};
use crate::only_one::{OnlyOne, give_to_owner_of_folder};
use lasthop_files::{Kind, MOST_TYPED_BYTES, text_of};
use lasthop_policy::{RTS_THRESHOLD, rts_threshold};
use lasthop_status::FOLDER;
use lasthop_units::Bytes;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tracing::{info, warn};

/// What a file of a former threshold begins with; then bytes, or [`OFF`], and a new line.
const BEGIN: &str = "RTS threshold before lasthop: ";
const OFF: &str = "off";
const BEFORE: Kind = Kind {
    name: "an RTS threshold to give back",
    looked_at: BEGIN.len() as u64,
    is: |begin| begin == BEGIN.as_bytes(),
};
/// What the file's name begins with; the radio's number follows.
const PREFIX: &str = "rts-";

/// What this agent has set.
#[derive(Debug, Default)]
pub(crate) struct RtsThreshold {
    held: Option<Held>,
    /// Nothing is to be set there: it failed, was as low before, or there is no radio.
    in_vain_on: Option<u32>,
}

/// A threshold that is set.
#[derive(Debug)]
struct Held {
    interface_index: u32,
    /// As it was before.
    wiphy: Wiphy,
    file: PathBuf,
    is_warned: bool,
    _lock: OnlyOne,
}

impl RtsThreshold {
    /// Sets it on this interface's radio, or gives it back, if that is not so yet. A failure is logged once for an interface.
    pub(crate) fn follow(&mut self, interface_index: u32, wanted: bool) {
        if self.held.as_ref().is_some_and(|held| wanted && held.interface_index == interface_index) {
            return;
        }
        self.give_back();
        if !wanted {
            self.in_vain_on = None;
        }
        if !wanted || self.held.is_some() || self.in_vain_on == Some(interface_index) {
            return;
        }
        let set = with_radios(|radios| set(radios, Path::new(FOLDER), interface_index));
        self.held = set.unwrap_or_else(|error| {
            warn!("RTS does not precede aggregates here: {}", error.in_a_line());
            None
        });
        self.in_vain_on = self.held.is_none().then_some(interface_index);
    }

    /// Gives it back, if it is set. Where that fails it stays held, for the next try; the failure is logged once.
    pub(crate) fn give_back(&mut self) {
        let Some(mut held) = self.held.take() else { return };
        if let Err(error) = with_radios(|radios| give_back(radios, &held.wiphy, &held.file)) {
            if !std::mem::replace(&mut held.is_warned, true) {
                warn!("the RTS threshold of {} is not given back yet: {}", held.wiphy.name, error.in_a_line());
            }
            self.held = Some(held);
        }
    }

    /// Tries again where it could not be set: the configuration has changed.
    pub(crate) fn try_again(&mut self) {
        self.in_vain_on = None;
    }

    /// The threshold that is set; `None`: this agent has set none.
    pub(crate) fn threshold(&self) -> Option<Bytes> {
        self.held.as_ref().map(|held| rts_threshold(held.wiphy.rts_threshold))
    }
}

impl Drop for RtsThreshold {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Gives back what agents have left that ended without doing so. A failure is logged.
pub(crate) fn give_back_what_is_left() {
    let folder = Path::new(FOLDER);
    if left(folder).is_empty() {
        return;
    }
    if let Err(error) = with_radios(|radios| give_back_left(radios, folder)) {
        warn!("an RTS threshold that an agent has left may still be set: {}", error.in_a_line());
    }
}

/// What agents have left set on radios of this network namespace that ended without giving it back, in a line each, with the remedy.
/// None where nothing is left, or the files in `/run/lasthop` may not be read.
pub fn rts_left() -> Vec<String> {
    let folder = Path::new(FOLDER);
    let mut lines = Vec::new();
    for (wiphy, file) in left(folder) {
        let is_alive = fs::read_to_string(folder.join(lock_of(wiphy)))
            .is_ok_and(|pid| Path::new("/proc").join(pid.trim()).exists() && !pid.trim().is_empty());
        let found = with_radios(|radios| radios.look(wiphy));
        if let (false, Ok(Some(radio)), Ok(before)) = (is_alive, found, read(&file))
            && radio.rts_threshold == Some(RTS_THRESHOLD)
        {
            let (name, before) = (&radio.name, in_words(before));
            lines.push(format!(
                "{name} has the RTS threshold {} that an agent has left: it ended without giving it back. The next agent that starts \
                 here does; by hand: iw phy {name} set rts {before}",
                RTS_THRESHOLD.get()
            ));
        }
    }
    lines
}

/// Nothing, where there is no Wi-Fi.
fn with_radios<T: Default>(work: impl FnOnce(&mut Nl80211) -> Result<T>) -> Result<T> {
    Nl80211::open()?.map_or_else(|| Ok(T::default()), |mut nl80211| work(&mut nl80211))
}

/// Sets the threshold. `None`: there is no radio, or it has as low a one.
fn set(radios: &mut dyn Radios, folder: &Path, interface_index: u32) -> Result<Option<Held>> {
    // Another agent may have died on this radio since this one began. What cannot be given back has been logged.
    _ = give_back_left(radios, folder);
    let Some(wiphy) = radios.of_interface(interface_index)? else { return Ok(None) };
    let wanted = rts_threshold(wiphy.rts_threshold);
    if wiphy.rts_threshold == Some(wanted) {
        return Ok(None);
    }
    let lock = OnlyOne::hold_in(folder, &lock_of(wiphy.index))?
        .map_err(|holder| Error::Refused(format!("another agent{holder} has set the threshold of {}", wiphy.name)))?;
    let file = folder.join(format!("{PREFIX}{}", wiphy.index));
    write(&file, wiphy.rts_threshold).doing(format_args!("cannot write {}", file.display()))?;
    radios.set_rts_threshold(wiphy.index, Some(wanted)).inspect_err(|_| _ = fs::remove_file(&file))?;
    let (name, before) = (&wiphy.name, in_words(wiphy.rts_threshold));
    info!("RTS precedes aggregates now: the RTS threshold of {name} is {} (before: {before})", wanted.get());
    Ok(Some(Held { interface_index, wiphy, file, is_warned: false, _lock: lock }))
}

/// Gives a radio its former threshold back, unless somebody else has set one or it has gone; then forgets it.
fn give_back(radios: &mut dyn Radios, before: &Wiphy, file: &Path) -> Result<()> {
    // One that is gone may be in another network namespace, whose agent finds the file.
    let Some(now) = radios.look(before.index)? else { return Ok(()) };
    let words = in_words(before.rts_threshold);
    if now.rts_threshold == Some(rts_threshold(before.rts_threshold)) {
        radios.set_rts_threshold(before.index, before.rts_threshold)?;
        info!("the RTS threshold of {} is as before: {words}", now.name);
    } else {
        info!("the RTS threshold of {} was changed meanwhile, and stays (before: {words})", now.name);
    }
    fs::remove_file(file).doing(format_args!("cannot remove {}", file.display()))
}

/// Gives back what agents have left whose lock is free, on each radio by itself. The first failure is told.
fn give_back_left(radios: &mut dyn Radios, folder: &Path) -> Result<()> {
    let mut outcome = Ok(());
    for (wiphy, file) in left(folder) {
        outcome = outcome.and(give_back_left_on(radios, folder, wiphy, &file));
    }
    outcome
}

fn give_back_left_on(radios: &mut dyn Radios, folder: &Path, wiphy: u32, file: &Path) -> Result<()> {
    let Ok(_lock) = OnlyOne::hold_in(folder, &lock_of(wiphy))? else { return Ok(()) };
    match read(file) {
        // Another agent may have been faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        before => {
            let rts_threshold = before.doing(format_args!("cannot read {}", file.display()))?;
            give_back(radios, &Wiphy { index: wiphy, name: String::new(), rts_threshold }, file)
        }
    }
}

/// Radios with a threshold to give back, and the file of each.
fn left(folder: &Path) -> Vec<(u32, PathBuf)> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let number = |name: &std::ffi::OsStr| name.to_str()?.strip_prefix(PREFIX)?.parse().ok();
    names.filter_map(|name| Some((number(&name)?, folder.join(name)))).collect()
}

fn lock_of(wiphy: u32) -> String {
    format!("{PREFIX}{wiphy}.lock")
}

fn write(file: &Path, threshold: Option<Bytes>) -> io::Result<()> {
    lasthop_files::write(file, Some(&BEFORE), format!("{BEGIN}{}\n", in_words(threshold)).as_bytes())?;
    give_to_owner_of_folder(file)
}

fn read(file: &Path) -> io::Result<Option<Bytes>> {
    let text = text_of(file, MOST_TYPED_BYTES)?;
    let word = text.strip_prefix(BEGIN).map(str::trim);
    match word.map(|word| (word, word.parse())) {
        Some((OFF, _)) => Ok(None),
        Some((_, Ok(bytes))) => Ok(Some(Bytes::new(bytes))),
        _ => {
            Err(io::Error::new(io::ErrorKind::InvalidData, format!("it does not say \"{BEGIN}\" and bytes, or {OFF}")))
        }
    }
}

fn in_words(threshold: Option<Bytes>) -> String {
    threshold.map_or_else(|| OFF.to_owned(), |bytes| bytes.get().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One radio, of one interface.
    struct Fake {
        interface_index: u32,
        wiphy: Wiphy,
        refuses: bool,
    }

    impl Fake {
        fn new(rts_threshold: Option<u64>) -> Self {
            let wiphy = Wiphy { index: 5, name: "phy5".to_owned(), rts_threshold: rts_threshold.map(Bytes::new) };
            Self { interface_index: 3, wiphy, refuses: false }
        }

        fn threshold(&self) -> Option<u64> {
            self.wiphy.rts_threshold.map(Bytes::get)
        }
    }

    impl Radios for Fake {
        fn of_interface(&mut self, interface_index: u32) -> Result<Option<Wiphy>> {
            Ok((interface_index == self.interface_index).then(|| self.wiphy.clone()))
        }

        fn look(&mut self, wiphy: u32) -> Result<Option<Wiphy>> {
            Ok((wiphy == self.wiphy.index).then(|| self.wiphy.clone()))
        }

        fn set_rts_threshold(&mut self, wiphy: u32, threshold: Option<Bytes>) -> Result<()> {
            assert_eq!(wiphy, self.wiphy.index);
            if self.refuses {
                return Err(Error::Refused("the driver has no such thing".to_owned()));
            }
            self.wiphy.rts_threshold = threshold;
            Ok(())
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_set_is_given_back_and_leaves_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        for before in [None, Some(4000)] {
            let mut radio = Fake::new(before);
            let held = set(&mut radio, folder.path(), 3).expect("set").expect("there is a radio");
            assert_eq!(radio.threshold(), Some(3000));
            assert_eq!(names(folder.path()), ["rts-5", "rts-5.lock"]);
            assert_eq!(read(&held.file).expect("a file"), before.map(Bytes::new));
            give_back(&mut radio, &held.wiphy, &held.file).expect("given back");
            drop(held);
            assert_eq!(radio.threshold(), before);
            assert_eq!(names(folder.path()), [""; 0]);
        }
    }

    #[test]
    fn a_killed_agents_threshold_is_given_back_by_the_next_one_and_a_living_ones_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut radio = Fake::new(Some(3500));
        let held = set(&mut radio, folder.path(), 3).expect("set").expect("there is a radio");
        give_back_left(&mut radio, folder.path()).expect("nothing is left");
        assert_eq!(radio.threshold(), Some(3000), "its agent lives");
        let refused = set(&mut radio, folder.path(), 3);
        assert!(refused.is_ok_and(|second| second.is_none()), "it is set already");
        // As kill -9: the kernel closes the lock, and the files stay.
        let Held { file, _lock: lock, .. } = held;
        drop(lock);
        lasthop_files::write(&folder.path().join("rts-5.lock"), None, b"1\n").expect("the lock's file");
        assert!(file.exists());
        // On a machine whose radio is elsewhere it stays.
        let mut other = Fake::new(Some(3000));
        other.wiphy.index = 6;
        give_back_left(&mut other, folder.path()).expect("not here");
        assert_eq!((other.threshold(), file.exists()), (Some(3000), true));
        give_back_left(&mut radio, folder.path()).expect("given back");
        assert_eq!(radio.threshold(), Some(3500));
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    fn what_somebody_else_has_set_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        // Lower before: nothing is to be set.
        let mut radio = Fake::new(Some(2347));
        assert!(set(&mut radio, folder.path(), 3).expect("looked").is_none());
        assert_eq!((radio.threshold(), names(folder.path()).len()), (Some(2347), 0));
        // Changed meanwhile.
        let mut radio = Fake::new(None);
        let held = set(&mut radio, folder.path(), 3).expect("set").expect("there is a radio");
        radio.wiphy.rts_threshold = Some(Bytes::new(500));
        give_back(&mut radio, &held.wiphy, &held.file).expect("looked");
        assert_eq!((radio.threshold(), held.file.exists()), (Some(500), false));
    }

    #[test]
    fn where_it_cannot_be_set_nothing_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut radio = Fake { refuses: true, ..Fake::new(None) };
        assert!(set(&mut radio, folder.path(), 3).is_err());
        assert!(set(&mut radio, folder.path(), 4).expect("wired").is_none());
        assert_eq!(names(folder.path()), [""; 0]);
        let wrong = b"RTS threshold before lasthop: a lot\n";
        lasthop_files::write(&folder.path().join("rts-5"), None, wrong).expect("written");
        let error = give_back_left(&mut radio, folder.path()).expect_err("not a number").in_a_line().to_string();
        assert!(
            error.contains("rts-5: it does not say \"RTS threshold before lasthop: \" and bytes, or off"),
            "{error}"
        );
    }
}
