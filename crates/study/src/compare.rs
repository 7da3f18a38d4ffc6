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
    /// A case sets a key that it sets again later: its label and its settings would name a value that it does not have.
    #[error("{0} has no effect before {1} in the same case; accepted: each key once")]
    Covered(String, String),
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
/// If a case sets the seed, has the label of another, or sets a key twice; or the first error of `read`.
pub fn plan_cases<E>(
    cases: &[Case],
    overrides: &[Override],
    seeds: &[u64],
    read: impl Fn(&[Override]) -> Result<Scenario, E>,
) -> Result<Vec<(usize, Scenario)>, CaseError<E>> {
    let mut planned = Vec::with_capacity(cases.len() * seeds.len());
    for (number, case) in cases.iter().enumerate() {
        if let Some([one, later]) = Override::without_effect(&case.overrides) {
            return Err(CaseError::Covered(one.to_string(), later.to_string()));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_sets_each_key_once() {
        let vary = |text| Vary::parse(text).expect("a vary");
        let of = |varied: &[Vary]| {
            let read = |overrides: &[Override]| Scenario::from_toml("one.toml", "[[hosts]]", overrides);
            plan_cases(&Vary::cases(varied), &[], &[1], read).map(|planned| planned.len())
        };
        let (one, all) =
            (vary("hosts.0.congestion_control=cubic,newreno"), vary("hosts.*.congestion_control=bbr,vegas"));
        let error = of(&[one.clone(), all.clone()]).expect_err("rows called cubic would run bbr").to_string();
        let first =
            "hosts.0.congestion_control=cubic has no effect before hosts.*.congestion_control=bbr in the same case";
        assert_eq!(error, format!("{first}; accepted: each key once"));
        assert_eq!(of(&[all, one]).expect("of the other hosts it stays"), 4);
    }
}
