//! Laws of the user's own (docs/guide/own-law.md): `congestion_control = "./mine.h"` in the file of a scenario.

use lasthop_laws::LawName;
use lasthop_own::Workshop;
use pyo3::Python;
use std::env;
use std::path::{Path, PathBuf};

/// The law of a header, for simulated hosts alone: the package has no libbpf.
pub(crate) fn law(header: &Path) -> Result<LawName, String> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let cache = cache.ok_or("there is no folder to compile laws in: set HOME or XDG_CACHE_HOME to an absolute path")?;
    let workshop = Workshop::new(cache.join("lasthop/laws"), Vec::new());
    // clang takes its time, and Python's other threads go on.
    let built = Python::attach(|py| py.detach(|| workshop.build(header)));
    built.map(|built| built.law).map_err(|error| error.to_string())
}
