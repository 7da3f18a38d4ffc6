//! The guest's way to stop itself, always in the same state: it arms the emulator's watchdog and sleeps.
//!
//! The watchdog (Intel's 6300ESB, QEMU's hw/watchdog/wdt_i6300esb.c) ends while the processor is idle. The emulator's main
//! thread then moves the clock on, runs the watchdog's timer, and stops the machine before anything else runs. A store to
//! a panic device stops at once, but from the processor's thread: until the main thread has heard of it, that one takes
//! the processor for idle, and may move the clock on. Two boots of one kernel then differed by milliseconds, and so did
//! their runs.
//!
//! So the kernel must be idle by then: its modules are loaded a second before, and it has no periodic tick
//! (CONFIG_NO_HZ_IDLE).

use crate::architecture::WATCHDOG_SLOT;
use nix::libc;
use nix::unistd::{SysconfVar, sysconf};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::ptr::NonNull;
use std::thread;
use std::time::Duration;

/// In its PCI configuration: no interrupt at half of the time, and ticks of 2^15 cycles of 33 MHz; the switch.
const CONFIGURATION: u64 = 0x60;
const NO_INTERRUPT: u16 = 3;
const SWITCH: u64 = 0x68;
const ON: u8 = 2;
/// Its registers, of 32 bits: the ticks of the two halves; and what lets one of these be written once.
const HALVES: [usize; 2] = [0x0, 0x4];
const GATE: usize = 0xc;
const KEYS: [u32; 2] = [0x80, 0x86];
/// Each half: some 0.25 s.
const TICKS: u32 = 252;
/// Until what the kernel has begun is done; and longer than both halves, so that the guest sleeps when it ends.
const SLEEP: Duration = Duration::from_secs(1);

/// The watchdog.
pub(crate) struct Stopping {
    configuration: File,
    /// The registers, in a mapping that stays.
    registers: NonNull<u8>,
}

impl Stopping {
    /// Finds it.
    pub(crate) fn find() -> io::Result<Self> {
        let address = format!("0000:00:{WATCHDOG_SLOT:02x}.0");
        let folder = format!("/sys/bus/pci/devices/{address}");
        if fs::exists(format!("{folder}/driver"))? {
            fs::write(format!("{folder}/driver/unbind"), address)?; // CONFIG_I6300ESB_WDT=y
        }
        fs::write(format!("{folder}/enable"), "1")?;
        let resources = fs::read_to_string(format!("{folder}/resource"))?;
        // The first line is the registers': begin, end, flags.
        let begin = resources.split_whitespace().next().and_then(|word| word.strip_prefix("0x"));
        let begin = begin.and_then(|word| usize::from_str_radix(word, 16).ok()).ok_or(io::ErrorKind::InvalidData)?;
        let file = File::options().read(true).write(true).open(format!("{folder}/resource0"))?;
        // The least that can be mapped; the registers may begin within it.
        let page = sysconf(SysconfVar::PAGE_SIZE)?.and_then(|size| usize::try_from(size).ok());
        let page = page.ok_or(io::ErrorKind::InvalidData)?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at a place that the kernel chooses; nothing else refers to it.
        #[expect(unsafe_code, reason = "a device's registers are reached by a mapping alone")]
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), page, protection, flags, file.as_raw_fd(), 0) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let registers =
            NonNull::new(mapped.cast::<u8>().wrapping_add(begin % page)).ok_or(io::ErrorKind::InvalidData)?;
        let configuration = File::options().read(true).write(true).open(format!("{folder}/config"))?;
        Ok(Self { configuration, registers })
    }

    /// Stops the machine. Returns when it runs on.
    pub(crate) fn stop(&self) -> io::Result<()> {
        thread::sleep(SLEEP);
        self.configuration.write_all_at(&NO_INTERRUPT.to_le_bytes(), CONFIGURATION)?;
        for half in HALVES {
            KEYS.iter().for_each(|key| self.write(GATE, *key));
            self.write(half, TICKS);
        }
        self.configuration.write_all_at(&[ON], SWITCH)?;
        thread::sleep(SLEEP);
        // When it ends it is off again.
        let mut switch = [0];
        self.configuration.read_exact_at(&mut switch, SWITCH)?;
        if switch[0] & ON != 0 {
            return Err(io::Error::other("it has not ended in time"));
        }
        Ok(())
    }

    fn write(&self, register: usize, value: u32) {
        // SAFETY: the register is in the page that `find` has mapped to be written, which is never unmapped; it is aligned,
        // for registers begin at a multiple of 16.
        #[expect(unsafe_code, clippy::cast_ptr_alignment, reason = "as above")]
        unsafe {
            self.registers.as_ptr().add(register).cast::<u32>().write_volatile(value);
        }
    }
}
