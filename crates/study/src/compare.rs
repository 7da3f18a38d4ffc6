//! The plan of a comparison, and the comparison of its runs. The caller does the runs.

use lasthop_measure::{case, comparison};
use lasthop_scenario::{Build, Case, Comparison, HostsKind, Override, RunResult, Scenario, Vary};

/// Why a comparison cannot be run as asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaseError<E> {
    /// Two cases have one label.
    #[error("two cases are called \"{0}\": give each its own label")]
    Label(String),
    /// A case sets the seed.
    #[error("the seed cannot be varied by a case: every case runs with the same seeds")]
    Seed,
    /// The scenario of a case cannot be run.
    #[error("the case \"{label}\" cannot be run")]
    Scenario {
        /// Of the case.
        label: String,
        /// Why.
        error: E,
    },
}

/// Every run of a comparison with the index of its case, checked: each case with these seeds, case after case. `read`
/// reads the scenario with overrides, and checks that it can be run; `overrides` come before those of the cases.
///
/// # Errors
/// If a case sets the seed or has the label of another, or the first error of `read`.
pub fn plan_cases<E>(
    cases: &[Case],
    overrides: &[Override],
    seeds: &[u64],
    read: impl Fn(&[Override]) -> Result<Scenario, E>,
) -> Result<Vec<(usize, Scenario)>, CaseError<E>> {
    let mut planned = Vec::with_capacity(cases.len() * seeds.len());
    for (number, case) in cases.iter().enumerate() {
        if cases[..number].iter().any(|other| other.label == case.label) {
            return Err(CaseError::Label(case.label.clone()));
        }
        if case.overrides.iter().any(|setting| setting.key() == "seed") {
            return Err(CaseError::Seed);
        }
        for seed in seeds {
            let changes = overrides.iter().chain(&case.overrides).cloned().chain([Override::seed(*seed)]);
            let scenario = read(&changes.collect::<Vec<_>>());
            let scenario = scenario.map_err(|error| CaseError::Scenario { label: case.label.clone(), error })?;
            planned.push((number, scenario));
        }
    }
    Ok(planned)
}

/// The comparison of these runs, each with the index of its case, in the order of the plan.
///
/// # Panics
/// If a case has no runs.
pub fn compared(
    base: &Scenario,
    hosts: HostsKind,
    build: Build,
    varied: &[Vary],
    cases: &[Case],
    runs: impl IntoIterator<Item = (usize, RunResult)>,
) -> Comparison {
    let mut of_cases: Vec<Vec<RunResult>> = cases.iter().map(|_| Vec::new()).collect();
    runs.into_iter().for_each(|(number, result)| of_cases[number].push(result));
    let results = cases.iter().zip(of_cases).map(|(of, runs)| case(of, runs));
    comparison(base, hosts, build, varied, results.collect())
}
