//! The processors that are emulated, and what differs between their machines.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// A processor: of a kernel, and of the program that runs under it. Its names are Debian's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// x86-64.
    #[default]
    Amd64,
    /// `AArch64`.
    Arm64,
}

use Architecture::{Amd64, Arm64};

impl Architecture {
    /// That of this machine and this program.
    ///
    /// # Errors
    /// If it is none that is emulated.
    pub fn here() -> Result<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(Amd64),
            "aarch64" => Ok(Arm64),
            _ => Err(Error::Processor),
        }
    }

    /// As Debian names it.
    pub fn name(self) -> &'static str {
        match self {
            Amd64 => "amd64",
            Arm64 => "arm64",
        }
    }

    /// The emulator and the package that has it.
    pub(crate) fn emulator(self) -> (&'static str, &'static str) {
        match self {
            Amd64 => ("qemu-system-x86_64", "qemu-system-x86"),
            Arm64 => ("qemu-system-aarch64", "qemu-system-arm"),
        }
    }

    /// The emulated processor, one without random numbers of this machine's.
    pub(crate) fn processor(self) -> &'static str {
        match self {
            Amd64 => "max,rdrand=off,rdseed=off",
            Arm64 => "cortex-a76",
        }
    }

    /// The board.
    pub(crate) fn board(self) -> &'static str {
        match self {
            Amd64 => "pc,memory-backend=ram",
            Arm64 => "virt,memory-backend=ram",
        }
    }

    /// Quiet, and nothing that a guest's boot would wait for or draw.
    pub(crate) fn kernel_arguments(self) -> &'static str {
        match self {
            Amd64 => "console=ttyS0 panic=-1 quiet no_timer_check mitigations=off cryptomgr.notests nokaslr",
            Arm64 => "console=ttyAMA0 panic=-1 quiet mitigations=off cryptomgr.notests nokaslr",
        }
    }

    /// Whether a job can find this machine's files: by ports of an ISA bus.
    pub(crate) fn has_window(self) -> bool {
        self == Amd64
    }

    /// `e_machine` of its programs (elf(5)).
    pub(crate) fn elf_machine(self) -> u64 {
        match self {
            Amd64 => 62,
            Arm64 => 183,
        }
    }
}

/// Where the watchdog is on the PCI bus.
pub(crate) const WATCHDOG_SLOT: u8 = 0x10;

impl std::fmt::Display for Architecture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
