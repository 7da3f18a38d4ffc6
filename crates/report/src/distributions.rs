//! The conditions of claims over drawn scenarios: the distribution of each number, and the worst scenarios.

use crate::cells::{self, Cell};
use crate::html;
use crate::study::figure;
use lasthop_measure::quantile;
use lasthop_scenario::HostsKind;
use lasthop_study::{CellResult, ClaimResult, ConditionResult, PointResult, StudyResult};

/// The number of worst scenarios told.
const WORST: usize = 10;
/// The quantiles told, with their names.
const QUANTILES: [(f64, &str); 5] = [(0.01, "1 %"), (0.05, "5 %"), (0.5, "median"), (0.95, "95 %"), (0.99, "99 %")];
/// The axis of drawn scenarios.
const SCENARIO: &str = "scenario";

/// A table with its title.
pub(crate) type Titled = (String, Vec<String>, Vec<Vec<Cell>>);

/// One number of every scenario that a claim looks at.
struct Distribution<'a> {
    claim: &'a ClaimResult,
    condition: &'a ConditionResult,
    /// The number of each cell; `None` if it cannot be computed.
    numbers: Vec<(Option<f64>, &'a CellResult)>,
}

/// Whether the cells of a claim are drawn scenarios.
pub(crate) fn is_of_scenarios(claim: &ClaimResult, study: &StudyResult) -> bool {
    let is_scenario = |cell: &CellResult| cell.at.iter().any(|at| at.axis == SCENARIO);
    study.scenarios.is_some() && claim.cells.first().is_some_and(is_scenario)
}

/// The quantiles of every condition's number, then the worst scenarios of each; nothing if no scenarios are drawn.
pub(crate) fn tables(study: &StudyResult) -> impl Iterator<Item = Titled> {
    let distributions = distributions(study);
    let heads = ["of every scenario", "scenarios", "left out", "none"].into_iter();
    let heads = heads.chain(QUANTILES.map(|(_, name)| name)).map(str::to_owned).collect();
    let rows: Vec<Vec<Cell>> = distributions.iter().map(Distribution::row).collect();
    let title = format!(
        "Distributions over the scenarios 1 to {}; the number of a scenario is the seed of its draws",
        study.scenarios.unwrap_or(0)
    );
    let all = (!rows.is_empty()).then_some((title, heads, rows));
    let worst = distributions.iter().map(|distribution| distribution.worst(study)).collect::<Vec<_>>();
    all.into_iter().chain(worst)
}

/// Each number once: several claims may bound one.
fn distributions(study: &StudyResult) -> Vec<Distribution<'_>> {
    let mut distributions: Vec<Distribution<'_>> = Vec::new();
    for claim in study.claims.iter().filter(|claim| is_of_scenarios(claim, study)) {
        for (index, condition) in claim.conditions.iter().enumerate() {
            let same = |other: &Distribution<'_>| {
                (&other.condition.value, &other.claim.among, &other.claim.at)
                    == (&condition.value, &claim.among, &claim.at)
            };
            if !distributions.iter().any(same) {
                let numbers = claim.cells.iter().map(|cell| (cell.numbers[index], cell)).collect();
                distributions.push(Distribution { claim, condition, numbers });
            }
        }
    }
    distributions
}

impl Distribution<'_> {
    fn title(&self) -> String {
        let place = self.claim.place();
        if place.is_empty() { self.condition.label.clone() } else { format!("{} ({place})", self.condition.label) }
    }

    fn row(&self) -> Vec<Cell> {
        let known: Vec<f64> = self.numbers.iter().filter_map(|(number, _)| *number).collect();
        let counts = [self.numbers.len(), self.claim.left_out as usize, self.numbers.len() - known.len()];
        let quantiles = QUANTILES.map(|(share, _)| quantile(&known, share).map_or("–".to_owned(), figure));
        let numbers = counts.map(|count| count.to_string()).into_iter().chain(quantiles).map(cells::number);
        std::iter::once(cells::word(&self.title())).chain(numbers).collect()
    }

    /// The scenarios furthest from what the condition asks for, each with the command that runs it.
    fn worst(&self, study: &StudyResult) -> Titled {
        let low_is_worst = self.condition.criterion.at_least.is_some();
        let mut numbers = self.numbers.clone();
        // A number that cannot be computed comes first.
        numbers.sort_by(|(one, _), (other, _)| match (one, other) {
            (Some(one), Some(other)) if low_is_worst => one.total_cmp(other),
            (Some(one), Some(other)) => other.total_cmp(one),
            (one, other) => one.is_some().cmp(&other.is_some()),
        });
        let row = |(number, cell): &(Option<f64>, &CellResult)| {
            let number = number.map_or("none".to_owned(), figure);
            vec![cells::number(number), cells::word(&cell.place()), cells::word(&command(study, cell))]
        };
        let title = format!("Worst of {}", self.title());
        let heads = ["number", "where", "runs the last case of it"].map(str::to_owned).to_vec();
        (title, heads, numbers.iter().take(WORST).map(row).collect())
    }
}

/// Runs the last point of a cell.
fn command(study: &StudyResult, cell: &CellResult) -> String {
    let is_of_cell = |point: &&PointResult| cell.at.iter().all(|at| point.at.contains(at));
    let point = study.points.iter().rfind(is_of_cell);
    let hosts = match point.and_then(|point| point.hosts_kind).unwrap_or(study.hosts_kind) {
        HostsKind::Simulated => String::new(),
        HostsKind::Kernel => html::hosts_options(HostsKind::Kernel, &study.used),
    };
    let place = point.map_or_else(String::new, PointResult::place);
    let print = format!("{} --print {}", crate::study::command(study), html::quoted(&place));
    format!("{print} | lasthop run /dev/stdin{hosts}")
}
