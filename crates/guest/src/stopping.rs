//! The guest's way to stop itself, within an instruction: a store to the emulator's panic device (docs/specs/pvpanic.rst).

use crate::architecture::{Architecture, PANIC_SLOT};
use nix::libc;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;

/// The device's port on an ISA bus, and the value at which it stops the machine.
const PORT: u64 = 0x505;
const PANICKED: u8 = 1;
/// The least that can be mapped; a device's registers may begin within it.
const PAGE: usize = 4096;

/// The panic device.
pub(crate) enum Stopping {
    /// On an ISA bus.
    Port(File),
    /// On a PCI bus: its register's address, in a mapping that stays.
    Register(*mut u8),
}

impl Stopping {
    /// Finds it.
    pub(crate) fn find() -> io::Result<Self> {
        match Architecture::here() {
            Ok(Architecture::Arm64) => Self::on_pci(),
            _ => Ok(Self::Port(File::options().write(true).open("/dev/port")?)),
        }
    }

    fn on_pci() -> io::Result<Self> {
        let folder = format!("/sys/bus/pci/devices/0000:00:{PANIC_SLOT:02x}.0");
        fs::write(format!("{folder}/enable"), "1")?;
        let resources = fs::read_to_string(format!("{folder}/resource"))?;
        // The first line is the first register's: begin, end, flags.
        let begin = resources.split_whitespace().next().and_then(|word| word.strip_prefix("0x"));
        let begin = begin.and_then(|word| usize::from_str_radix(word, 16).ok()).ok_or(io::ErrorKind::InvalidData)?;
        let file = File::options().read(true).write(true).open(format!("{folder}/resource0"))?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at a place that the kernel chooses; nothing else refers to it.
        #[expect(unsafe_code, reason = "a device's registers are reached by a mapping alone")]
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, file.as_raw_fd(), 0) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self::Register(mapped.cast::<u8>().wrapping_add(begin % PAGE)))
    }

    /// Stops the machine. Returns when it runs on.
    pub(crate) fn stop(&self) -> io::Result<()> {
        match self {
            Self::Port(port) => port.write_all_at(&[PANICKED], PORT),
            Self::Register(register) => {
                // SAFETY: the register is in the page that `on_pci` has mapped to be written, which is never unmapped.
                #[expect(unsafe_code, reason = "as above")]
                unsafe {
                    register.write_volatile(PANICKED);
                }
                Ok(())
            }
        }
    }
}
