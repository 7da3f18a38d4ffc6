//! One processor of this machine for each emulator.
//!
//! The emulator's threads take turns some twenty thousand times a second. On two processors, waking each other costs more than
//! the emulation: ten uploads over 802.11g for 30 s took 135 s of processors, and 57 on one. The bytes are the same.

use nix::fcntl::{Flock, FlockArg};
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Emulators of this process that share a processor. They are spread, as those of other processes are.
static SHARING: AtomicUsize = AtomicUsize::new(0);

/// A processor, which no other emulator of the same cache has unless there are more of them than processors.
#[derive(Debug)]
pub(crate) struct Processor {
    number: usize,
    _held: Option<Flock<File>>,
}

impl Processor {
    /// One of those that this process may use, the calling thread's first. `None` if the kernel does not tell them. `folder` keeps who
    /// has which.
    pub(crate) fn choose(folder: &Path) -> Option<Self> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let mut numbers: Vec<usize> =
            (0..CpuSet::count()).filter(|&number| allowed.is_set(number) == Ok(true)).collect();
        let here = sched_getcpu().unwrap_or(0);
        let first = numbers.iter().position(|&number| number == here).unwrap_or(0);
        numbers.rotate_left(first);
        let free = numbers.iter().find_map(|&number| {
            let file = File::create(folder.join(format!("processor-{number}"))).ok()?;
            let held = Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()?;
            Some(Self { number, _held: Some(held) })
        });
        free.or_else(|| {
            let any = std::process::id() as usize + SHARING.fetch_add(1, Ordering::Relaxed);
            Some(Self { number: numbers[any.checked_rem(numbers.len())?], _held: None })
        })
    }

    /// Does something in which the calling thread, and what it starts, has this processor alone.
    pub(crate) fn only<T>(&self, does: impl FnOnce() -> T) -> T {
        let this_thread = Pid::from_raw(0);
        let before = sched_getaffinity(this_thread);
        let mut one = CpuSet::new();
        // It is slower without.
        let _ = one.set(self.number).and_then(|()| sched_setaffinity(this_thread, &one));
        let done = does();
        let _ = before.and_then(|before| sched_setaffinity(this_thread, &before));
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Vec<usize> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).expect("known");
        (0..CpuSet::count()).filter(|&number| allowed.is_set(number) == Ok(true)).collect()
    }

    #[test]
    fn each_has_another_while_there_are_any_and_what_it_starts_has_no_more() {
        let folder = tempfile::tempdir().expect("a folder");
        let every = allowed();
        let choose = || Processor::choose(folder.path()).expect("one");
        let mut held: Vec<Processor> = every.iter().map(|_| choose()).collect();
        let mut numbers: Vec<usize> = held.iter().map(|one| one.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, every);
        // One more shares.
        let more = choose();
        assert!(every.contains(&more.number));
        let seen = more.only(|| std::thread::spawn(allowed).join().expect("it ends"));
        assert_eq!((seen, allowed()), (vec![more.number], every));
        let given_up = held.remove(0).number;
        assert_eq!(choose().number, given_up);
    }
}
