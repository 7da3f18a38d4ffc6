//! An emulated machine whose clock counts instructions: kernel hosts in virtual time.
//!
//! ```text
//!  Kernels ── a kernel by name ──┐
//!  this program ── Image ────────┤ boot once ── Saved state ──┬── run: job in, lines of the console, files out
//!                                └ (seconds)                  └── run ... (several at once)
//! ```
//!
//! QEMU's processor is emulated, a nanosecond an instruction, and its clock jumps ahead while it is idle
//! (`-icount shift=0,sleep=off`). How busy the real machine is changes nothing in it. No run needs
//! root or a network.
//!
//! *The same bytes.* Nothing reaches the guest at a moment that this machine's clock decides:
//!
//! 1. The emulator records (`rr=record`), which keeps its two threads from meeting at `hlt`.
//! 2. The guest sleeps until the emulator's watchdog stops it, to have its state saved.
//! 3. The job comes by the firmware's configuration device, which answers an instruction.
//! 4. Files leave by a shared folder (9p), whose answers come at any time: so it is mounted when the job has ended.
//! 5. A job that needs this machine's files asks through a window of the guest's memory, and waits for the answer within an instruction.
//!
//! *One thing is left.* How many entries the emulator's TLB keeps depends on this machine's clock (accel/tcg/cputlb.c,
//! tlb_mmu_resize_locked). While one thread forks, Linux lets another of its process write by an entry that is left of the old page
//! table; without that entry the other waits. So two runs of a program that forks with several threads may differ.
//!
//! What changes the bytes: scenario, seed, kernel, this program with its libraries, and QEMU's version.
//!
//! *What it leaves out*: processors but x86-64 and `AArch64`; more than one in a guest; caches and their misses. Under an arm64 kernel no job
//! finds this machine's files: that board has no ports.

mod answers;
mod architecture;
mod debian;
mod disk;
mod error;
mod image;
mod inside;
mod kept;
mod kernels;
mod machine;
mod machine_files;
mod monitor;
mod processor;
mod program;
mod radios;
mod stopping;
mod window;
mod work;

pub use architecture::Architecture;
pub use error::{Error, Result};
pub use inside::init;
pub use kernels::{DEFAULT_KERNEL, Kernel, Kernels, names, remove_what_is_left};
pub use machine::{Caller, Heard, Job, MEMORY_MIB, Machine, Output};
pub use program::Program;
pub use radios::programs;

/// Whether this program runs in a guest, and not on this machine.
pub fn is_inside() -> bool {
    std::path::Path::new(image::OF_JOBS).exists()
}

/// The argument by which the kernel starts this program as the guest's first process: its command calls [`init`].
pub const INIT: &str = "guest-init";
