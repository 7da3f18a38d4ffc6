//! Laws outside the tree: a user's own header, compiled on his machine (`lasthop-own`) and loaded into this process.
//!
//! A law outside the tree is a [`LawName`] like those of the list, [`LawName::Own`]. Its state has the same room, and its
//! events are functions of a shared object (`include/own.h`).

use crate::c::{self, LH_OWN_ABI, lh_law, lh_own_law, lh_own_parameter};
use crate::parameters::{Parameter, Unit};
use crate::{LawName, Marking};
use std::cmp::Ordering;
use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem;
use std::panic::{self, AssertUnwindSafe};

/// The headers that a law may include, and `own.c`, which makes a shared object of it: names with their text.
pub const SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// The room for a law's state in bytes.
pub const STATE_BYTES: usize = c::LH_STATE_BYTES as usize;

/// The symbol of the shared object that [`OwnLaw::from_symbol`] takes.
pub const SYMBOL: &str = "lh_own_law";

/// The variable of the shared object that is told of a division by zero: an `extern "C-unwind" fn(*const c_char, u32)`,
/// with file and line, that unwinds with a [`DividedByZero`]. Its loader sets it before it calls the law.
pub const DIVIDED_BY_ZERO: &str = "lh_own_divided_by_zero";

/// A law outside the tree has divided by zero. What runs one catches it with [`caught`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: a law divides by zero; in the kernel that is 0: look at the divisor first (law.h)")]
pub struct DividedByZero {
    /// File and line.
    pub place: String,
}

/// Runs something that calls laws.
///
/// # Errors
/// If a law divided by zero. What `run` was changing is then to be thrown away.
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, DividedByZero> {
    panic::catch_unwind(AssertUnwindSafe(run)).map_err(|payload| match payload.downcast() {
        Ok(divided) => *divided,
        Err(other) => panic::resume_unwind(other),
    })
}

/// A law outside the tree. Two are equal if they were made from the same source.
pub struct OwnLaw {
    pub(crate) name: &'static str,
    pub(crate) identifier: &'static str,
    pub(crate) kernel_name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) parameters: &'static [Parameter],
    digest: String,
    kernel_object: Option<Vec<u8>>,
    table: &'static lh_own_law,
}

// SAFETY: the table and what it points to are constants of a shared object that stays; its functions have no state.
#[allow(unsafe_code)]
unsafe impl Sync for OwnLaw {}

/// Why a shared object is no law for this program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnLawError {
    /// Another version of this program made it.
    #[error("it was made for another version of lasthop (interface {theirs}, this is {LH_OWN_ABI})")]
    Interface {
        /// The version of its interface.
        theirs: u32,
    },
    /// Its state has another size than here.
    #[error("its state takes {theirs} bytes, and here it is {}", size_of::<lh_law>())]
    State {
        /// Its size, with 8 bytes before it.
        theirs: u32,
    },
    /// It uses clients' reports of their last links.
    #[error("it has LH_LAW_HAS_REPORTED: reports of the last link are for laws of the tree")]
    HearsReports,
    /// A parameter is wrong.
    #[error("its parameter {name}: {problem}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// What is wrong.
        problem: String,
    },
}

impl OwnLaw {
    /// The law of a shared object that `own.c` made. `digest` is of the user's files that it was made of.
    ///
    /// # Errors
    /// If it does not fit this program.
    ///
    /// # Safety
    /// `symbol` is the address of [`SYMBOL`] in a shared object that is never unloaded. Its functions write through
    /// their non-const pointers only, and keep none.
    #[allow(unsafe_code)]
    pub unsafe fn from_symbol(symbol: *const c_void, digest: String) -> Result<Self, OwnLawError> {
        // SAFETY: the caller promises the symbol, whose first member is the version in every version.
        let theirs = unsafe { *symbol.cast::<u32>() };
        if theirs != LH_OWN_ABI {
            return Err(OwnLawError::Interface { theirs });
        }
        // SAFETY: the symbol of this version is this struct, and stays.
        let table: &'static lh_own_law = unsafe { &*symbol.cast() };
        if table.law_bytes as usize != size_of::<lh_law>() {
            return Err(OwnLawError::State { theirs: table.law_bytes });
        }
        if table.hears_reports != 0 {
            return Err(OwnLawError::HearsReports);
        }
        // SAFETY: own.c makes the array of this length.
        let parameters = unsafe { std::slice::from_raw_parts(table.parameters, table.parameter_count as usize) };
        let parameters: Vec<Parameter> = parameters.iter().map(parameter).collect::<Result<_, _>>()?;
        let identifier = text(table.law);
        Ok(Self {
            name: identifier.replace('_', "-").leak(),
            identifier,
            kernel_name: format!("lh_{identifier}").leak(),
            label: text(table.label),
            parameters: parameters.leak(),
            digest,
            kernel_object: None,
            table,
        })
    }

    /// Whether its header says that it is for the kernel too: `Everywhere`, not `Simulated`.
    pub fn wants_the_kernel(&self) -> bool {
        text(self.table.place) == "Everywhere"
    }

    /// Gives it its programs for the kernel.
    #[must_use]
    pub fn with_kernel_object(self, object: Vec<u8>) -> Self {
        Self { kernel_object: Some(object), ..self }
    }

    /// Its name, for the rest of the process.
    pub fn keep(self) -> LawName {
        LawName::Own(Box::leak(Box::new(self)))
    }

    /// The digest of the user's files that it was made of, in hexadecimal digits: two laws with the same one do the same.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Whether it is of the second form, which sets the window and the pace ([`LawName::steers`]).
    pub const fn steers(&self) -> bool {
        self.table.steers != 0
    }

    /// What it wants of ECN.
    pub const fn marking(&self) -> Marking {
        match self.table.marking {
            c::LH_OWN_ECHOES_MARKS => Marking::Each,
            c::LH_OWN_IS_L4S => Marking::L4s,
            _ => Marking::OfHost,
        }
    }

    pub(crate) const fn is_for_the_kernel(&self) -> bool {
        self.kernel_object.is_some()
    }

    /// Its programs for the kernel, if it is for the kernel.
    pub fn kernel_object(&'static self) -> Option<&'static [u8]> {
        self.kernel_object.as_deref()
    }
}

/// An event of a law outside the tree: a call through its table.
macro_rules! events {
    ($(fn $name:ident($($argument:ident: $type:ty),+);)+) => {
        impl OwnLaw {
            $(pub(crate) fn $name(&self, law: &mut lh_law, $($argument: $type),+) {
                type Event = unsafe extern "C-unwind" fn(&mut lh_law, $($type),+);
                let event = self.table.$name.expect("own.c fills in every event");
                // SAFETY: from_symbol()'s caller promises it. A reference is passed as a pointer is; own.c is compiled with
                // -fexceptions, so that a division by zero unwinds through it.
                #[allow(unsafe_code)]
                unsafe {
                    mem::transmute::<*const (), Event>(event as *const ())(law, $($argument),+);
                }
            })+
        }
    };
}

events! {
    fn init(parameters: &c::lh_parameters, start: &c::lh_start);
    fn acked(parameters: &c::lh_parameters, acked: &c::lh_acked, window: &mut c::lh_window);
    fn lost(parameters: &c::lh_parameters, lost: &c::lh_lost, window: &mut c::lh_window);
    fn timed_out(parameters: &c::lh_parameters, lost: &c::lh_lost, window: &mut c::lh_window);
    fn notified(parameters: &c::lh_parameters, notice: &c::lh_lost, window: &mut c::lh_window);
    fn sent(sent: &c::lh_sent);
    fn sampled(parameters: &c::lh_parameters, sample: &c::lh_rate_sample, steering: &mut c::lh_steering);
    fn resumed(parameters: &c::lh_parameters, sample: &c::lh_rate_sample, steering: &mut c::lh_steering);
    fn undone(undone: &c::lh_undone, window: &mut c::lh_window);
}

/// A text of the shared object.
fn text(text: *const c_char) -> &'static str {
    // SAFETY: own.c makes literals of it, which stay with the shared object.
    #[allow(unsafe_code)]
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().unwrap_or("(not UTF-8)")
}

fn parameter(raw: &lh_own_parameter) -> Result<Parameter, OwnLawError> {
    let name = text(raw.name);
    let problem = |problem: String| Err(OwnLawError::Parameter { name, problem });
    let (unit, suffix) = match text(raw.unit) {
        "Milliseconds" => (Unit::Milliseconds, "_ms"),
        "Seconds" => (Unit::Seconds, "_s"),
        "Ratio" => (Unit::Ratio, ""),
        "Count" => (Unit::Count, ""),
        "Flag" => (Unit::Flag, ""),
        other => return problem(format!("there is no unit {other}; Milliseconds, Seconds, Ratio, Count, Flag")),
    };
    let (from, to, default) = (raw.from, raw.to, raw.preset);
    let most = f64::from(u32::MAX) / unit.scale();
    if !(0.0 <= from && from <= default && default <= to && to <= most) {
        return problem(format!("0 <= {from} (lowest) <= {default} (default) <= {to} (highest) <= {most} must hold"));
    }
    Ok(Parameter { name: format!("{name}{suffix}").leak(), unit, from, to, default, meaning: text(raw.meaning) })
}

impl fmt::Debug for OwnLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnLaw").field("name", &self.name).field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl PartialEq for OwnLaw {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for OwnLaw {}

impl Hash for OwnLaw {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl Ord for OwnLaw {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.name, &self.digest).cmp(&(other.name, &other.digest))
    }
}

impl PartialOrd for OwnLaw {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
