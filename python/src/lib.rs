//! The native part of the Python package `lasthop`: scenarios, runs on all cores, results and their tables.
//!
//! Its face is Python (`python/lasthop`): arguments, attributes of results, documentation. Here the GIL is released,
//! and a run is the same as the command's: the same scenario and seed give the same `result.json`.
//!
//! A policy in Python takes the GIL at each of its ticks.
//!
//! *What it leaves out*: kernel hosts, so that the package needs neither root nor libbpf.

mod batch;
mod errors;
mod gym;
mod outcome;
mod own;
mod policy;
mod run;
mod scenario;
mod table;
mod value;

use lasthop_report::palette;
use pyo3::prelude::*;

/// Label, colour and marker of a line.
type Look = (String, String, &'static str, Vec<f64>);

fn looks(looks: Vec<palette::Look>) -> Vec<Look> {
    looks.into_iter().map(|look| (look.label, look.colour, look.marker, look.dashes)).collect()
}

/// The looks of lines with these labels, as in every figure of lasthop.
#[pyfunction]
fn looks_of_names(labels: Vec<String>) -> Vec<Look> {
    looks(palette::of_names(&labels.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// The colours of text, axes, grid, background, warm-up and limits.
#[pyfunction]
fn theme() -> std::collections::BTreeMap<&'static str, String> {
    palette::theme().into()
}

#[pymodule]
fn _lasthop(module: &Bound<'_, PyModule>) -> PyResult<()> {
    lasthop_scenario::make_own_laws_with(own::law);
    module.add("VERSION", lasthop_version::VERSION)?;
    module.add_class::<batch::Plan>()?;
    module.add_class::<scenario::CoreScenario>()?;
    module.add_class::<outcome::Outcome>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<gym::Episode>()?;
    module.add_function(wrap_pyfunction!(run::model, module)?)?;
    module.add_function(wrap_pyfunction!(batch::run_batch, module)?)?;
    module.add_function(wrap_pyfunction!(run::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(run::compare, module)?)?;
    module.add_function(wrap_pyfunction!(run::study, module)?)?;
    module.add_function(wrap_pyfunction!(outcome::outcome_of_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(outcome::read_run, module)?)?;
    module.add_function(wrap_pyfunction!(outcome::read_comparison, module)?)?;
    module.add_function(wrap_pyfunction!(outcome::read_study, module)?)?;
    module.add_function(wrap_pyfunction!(looks_of_names, module)?)?;
    module.add_function(wrap_pyfunction!(theme, module)?)
}
