//! The attachment of mode Clamp, and its removal when its loader is killed.
//!
//! A clamp set on a socket has no lease, so the program that lifts it must survive a killed loader. It is therefore
//! attached without a link, which would end with the loader. A child of the loader, the [`Guard`], waits for the
//! loader's end. It then removes the program and all clamps, even on idle sockets. It needs no more rights than the
//! loader had.
//!
//! If both are killed at once, the program stays as an orphan. It still lifts clamps as their leases end, and costs a
//! map look-up at each handshake. Its settings name its owner (`owner_pid` and so on). The next loader finds from them
//! that the owner is gone and removes the orphan, which takes CAP_SYS_ADMIN. It leaves orphans of other network
//! namespaces, as it can only reach sockets of its own. It also leaves those of other pid namespaces, as it cannot tell
//! if their owners live.

use crate::error::{CGROUP_PROGRAMS_MAX, Error};
use crate::layout::{self, Settings};
use crate::namespace::Namespace;
use crate::object::{self, FORMER, UNCLAMP};
use crate::privilege::{self, keep_only};
use libbpf_rs::libbpf_sys::{self, bpf_map_info, bpf_prog_info};
use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, pthread_sigmask};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, pipe2};
use std::ffi::c_char;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// include/uapi/linux/bpf.h
const BPF_F_ALLOW_MULTI: u32 = 2;
const PROGRAM_NAME: &str = "clamp_new";

/// Our program on a cgroup, removed on drop.
#[derive(Debug)]
pub(crate) struct Attachment {
    cgroup: File,
    program: OwnedFd,
}

impl Attachment {
    pub(crate) fn new(cgroup: File, program: BorrowedFd<'_>) -> io::Result<Self> {
        let program = program.try_clone_to_owned()?;
        // SAFETY: both descriptors are open; the call takes no pointers.
        #[allow(unsafe_code)]
        let result = unsafe {
            libbpf_sys::bpf_prog_attach(
                program.as_raw_fd(),
                cgroup.as_raw_fd(),
                libbpf_sys::BPF_CGROUP_SOCK_OPS,
                BPF_F_ALLOW_MULTI,
            )
        };
        check(result)?;
        Ok(Self { cgroup, program })
    }
}

impl Attachment {
    /// Starts the guard. After this process ends, the guard removes the program, and then the clamps by reading the
    /// walk `release`. The calling thread is in the network namespace of the clamped sockets.
    pub(crate) fn guard(&self, release: BorrowedFd<'_>) -> io::Result<Guard> {
        let (ended, alive) = pipe2(OFlag::O_CLOEXEC)?;
        let watch = Watch {
            ended: ended.as_raw_fd(),
            cgroup: self.cgroup.as_raw_fd(),
            program: self.program.as_raw_fd(),
            release: release.as_raw_fd(),
        };
        // A service manager signals every process of a service to end. The guard must still work then.
        let mut before = SigSet::empty();
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
        // SAFETY: the child of a process with several threads may only call async-signal-safe functions, like
        // `Watch::run`.
        #[allow(unsafe_code)]
        let forked = unsafe { fork() };
        if let Ok(ForkResult::Child) = forked {
            watch.run();
        }
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
        match forked? {
            ForkResult::Parent { child } => Ok(Guard { child, alive: Some(alive) }),
            ForkResult::Child => unreachable!("it has ended in run()"),
        }
    }
}

/// A process that waits for the end of this one and then cleans up. Dropping it ends it without any cleanup.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Pid,
    /// The kernel closes it at any end of this process.
    alive: Option<OwnedFd>,
}

impl Guard {
    /// Has it clean up now, as if this process had ended.
    pub(crate) fn clean_up(mut self) {
        self.alive = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.alive.is_some() {
            let _ = kill(self.child, Signal::SIGKILL);
        }
        let _ = waitpid(self.child, None);
    }
}

/// The guard's open descriptors.
struct Watch {
    ended: i32,
    cgroup: i32,
    program: i32,
    release: i32,
}

impl Watch {
    /// The guard's main function. Allocates nothing and takes no lock: other threads may have held one at the fork.
    fn run(&self) -> ! {
        let mut kept = [self.ended, self.cgroup, self.program, self.release];
        kept.sort_unstable();
        let mut buffer = [0u8; 64];
        // SAFETY: system calls with numbers of descriptors, a name that ends with a zero, and a buffer with its length.
        #[allow(unsafe_code)]
        unsafe {
            libc::prctl(libc::PR_SET_NAME, c"lasthop-guard".as_ptr());
            let _ = keep_only(privilege::BPF);
            // Close all others: nobody should wait for this process to close a pipe or release an inherited lock.
            let mut from = 0;
            for descriptor in kept {
                if descriptor > from {
                    libc::syscall(libc::SYS_close_range, from, descriptor - 1, 0);
                }
                from = descriptor + 1;
            }
            libc::syscall(libc::SYS_close_range, from, u32::MAX, 0);
            while libc::read(self.ended, buffer.as_mut_ptr().cast(), buffer.len()) < 0
                && *libc::__errno_location() == libc::EINTR
            {}
            // First the program, so that it sets no more clamps.
            libbpf_sys::bpf_prog_detach2(self.program, self.cgroup, libbpf_sys::BPF_CGROUP_SOCK_OPS);
            let walk = libbpf_sys::bpf_iter_create(self.release);
            while libc::read(walk, buffer.as_mut_ptr().cast(), buffer.len()) > 0 {}
            libc::_exit(0)
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        detach(&self.cgroup, &self.program);
    }
}

fn detach(cgroup: &File, program: &OwnedFd) {
    // SAFETY: both descriptors are open; the call takes no pointers. It fails only if the program is gone already.
    #[allow(unsafe_code)]
    unsafe {
        libbpf_sys::bpf_prog_detach2(program.as_raw_fd(), cgroup.as_raw_fd(), libbpf_sys::BPF_CGROUP_SOCK_OPS);
    }
}

/// Adds the owner to the settings.
pub(crate) fn owned(settings: Settings) -> Settings {
    let owner_pid = std::process::id();
    Settings {
        owner_pid,
        owner_start: started(owner_pid).unwrap_or(0),
        owner_pidns: pid_namespace().unwrap_or(0),
        ..settings
    }
}

/// Removes programs of dead loaders of this network namespace from the cgroup, and their clamps.
pub(crate) fn remove_orphans(cgroup: &File, namespace: &Namespace) {
    for program in attached(cgroup) {
        let Some(owner) = owner(&program) else { continue };
        if owner.netns_inum == namespace.inum() && gone(&owner) {
            // A program that cannot be removed goes on lifting its clamps by itself.
            let _ = remove(&program, cgroup, namespace);
        }
    }
}

/// Removes a program of mode Clamp from the cgroup, so that it sets no more clamps, then its clamps from the sockets.
fn remove(program: &OwnedFd, cgroup: &File, namespace: &Namespace) -> Result<(), Error> {
    let doing = "taking off the clamps of a loader that is gone";
    let Some(former) = map_of(program, |info| named(&info.name, FORMER)) else { return Ok(()) };
    let object = object::load_unclamp(former.as_fd()).map_err(Error::exchange(doing))?;
    let walk = object::program(&object, UNCLAMP).attach().map_err(Error::exchange(doing))?;
    detach(cgroup, program);
    let walked = namespace.within(|| object::read_all(&walk));
    walked.and_then(|bytes| bytes).map(drop).map_err(Error::exchange_io(doing))
}

fn gone(settings: &Settings) -> bool {
    pid_namespace() == Some(settings.owner_pidns) && started(settings.owner_pid) != Some(settings.owner_start)
}

/// A process's start time, in clock ticks since boot; `None` if there is no such process.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // proc(5): field 22, counted behind the name in parentheses, which is field 2
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

fn pid_namespace() -> Option<u32> {
    u32::try_from(std::fs::metadata("/proc/self/ns/pid").ok()?.ino()).ok()
}

/// How many more programs of this type the cgroup takes, counting everybody's; `None` if the kernel does not say.
pub(crate) fn room(cgroup: &File) -> Option<usize> {
    let (_, count) = query(cgroup)?;
    Some(CGROUP_PROGRAMS_MAX.saturating_sub(count))
}

/// The ids of the programs on the cgroup, and how many there are.
fn query(cgroup: &File) -> Option<([u32; CGROUP_PROGRAMS_MAX], usize)> {
    let mut ids = [0u32; CGROUP_PROGRAMS_MAX];
    let mut count = CGROUP_PROGRAMS_MAX as u32;
    // SAFETY: `ids` has room for `count` numbers, which the kernel lowers to how many it wrote.
    #[allow(unsafe_code)]
    let result = unsafe {
        libbpf_sys::bpf_prog_query(
            cgroup.as_raw_fd(),
            libbpf_sys::BPF_CGROUP_SOCK_OPS,
            0,
            std::ptr::null_mut(),
            ids.as_mut_ptr(),
            &raw mut count,
        )
    };
    check(result).ok().map(|()| (ids, count as usize))
}

/// The programs of mode Clamp on a cgroup.
fn attached(cgroup: &File) -> Vec<OwnedFd> {
    let Some((ids, count)) = query(cgroup) else { return Vec::new() };
    let programs = ids.iter().take(count).filter_map(|&id| {
        // SAFETY: takes a number, gives a descriptor or a negative error.
        #[allow(unsafe_code)]
        descriptor(unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) })
    });
    programs
        .filter(|program| program_info(program, &mut []).is_some_and(|info| named(&info.name, PROGRAM_NAME)))
        .collect()
}

/// Whether the kernel's name, cut to 15 letters, is this short one.
fn named(kept: &[c_char], name: &str) -> bool {
    name.bytes().chain([0]).zip(kept).all(|(ours, &theirs)| ours == theirs as u8)
}

/// A program's settings, with its owner: the only section of ours of that size.
fn owner(program: &OwnedFd) -> Option<Settings> {
    let map = map_of(program, |info| {
        let of_a_section = info.type_ == libbpf_sys::BPF_MAP_TYPE_ARRAY && info.key_size == 4;
        of_a_section && info.value_size as usize == size_of::<Settings>()
    })?;
    let mut value = [0u8; size_of::<Settings>()];
    let key = 0u32;
    // SAFETY: the map was just seen to be an array, whose key is one u32, with values of the size of `value`.
    #[allow(unsafe_code)]
    let result =
        unsafe { libbpf_sys::bpf_map_lookup_elem(map.as_raw_fd(), (&raw const key).cast(), value.as_mut_ptr().cast()) };
    check(result).ok()?;
    layout::first(&value)
}

/// The first matching map of a program.
fn map_of(program: &OwnedFd, wanted: impl Fn(&bpf_map_info) -> bool) -> Option<OwnedFd> {
    let mut maps = [0u32; 64];
    let info = program_info(program, &mut maps)?;
    maps.iter().take(info.nr_map_ids as usize).find_map(|&id| {
        // SAFETY: takes a number, gives a descriptor or a negative error.
        #[allow(unsafe_code)]
        let map = descriptor(unsafe { libbpf_sys::bpf_map_get_fd_by_id(id) })?;
        let mut info = bpf_map_info::default();
        let mut length = size_of::<bpf_map_info>() as u32;
        // SAFETY: `info` has `length` bytes.
        #[allow(unsafe_code)]
        let result =
            unsafe { libbpf_sys::bpf_obj_get_info_by_fd(map.as_raw_fd(), (&raw mut info).cast(), &raw mut length) };
        (check(result).is_ok() && wanted(&info)).then_some(map)
    })
}

fn program_info(program: &OwnedFd, maps: &mut [u32]) -> Option<bpf_prog_info> {
    let mut info =
        bpf_prog_info { nr_map_ids: maps.len() as u32, map_ids: maps.as_mut_ptr() as u64, ..Default::default() };
    let mut length = size_of::<bpf_prog_info>() as u32;
    // SAFETY: `info` has `length` bytes, and `map_ids` room for `nr_map_ids` numbers.
    #[allow(unsafe_code)]
    let result =
        unsafe { libbpf_sys::bpf_obj_get_info_by_fd(program.as_raw_fd(), (&raw mut info).cast(), &raw mut length) };
    check(result).ok().map(|()| info)
}

fn descriptor(result: i32) -> Option<OwnedFd> {
    // SAFETY: the descriptor was just opened for us and has no other owner.
    #[allow(unsafe_code)]
    (result >= 0).then(|| unsafe { OwnedFd::from_raw_fd(result) })
}

/// libbpf returns the negative error number.
fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_are_not_gone_and_a_pid_used_again_is() {
        let ours = owned(Settings::default());
        assert!(!gone(&ours));
        assert!(gone(&Settings { owner_start: ours.owner_start - 1, ..ours }), "the pid was used again");
        assert!(gone(&Settings { owner_pid: u32::MAX, ..ours }));
        assert!(!gone(&Settings { owner_pid: u32::MAX, owner_pidns: 1, ..ours }), "another pid namespace");
    }
}
