//! Checks a study's expressions before any run: evaluates each once with made-up results. This finds unknown names, and
//! lists the measures in use.

use crate::expression::{Figures, Scope};
use crate::formula::Formula;
use crate::measure::Measure;
use crate::problem::Kind;
use crate::search::Search;
use crate::space::{SCENARIO, Space, fixed};
use crate::{Claim, ClaimedNumber, Condition};
use lasthop_keys::{Document, DocumentError, Path};
use std::sync::{Arc, Mutex};

/// The measures in use, each once.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<Measure>>>);

impl Kept {
    pub(crate) fn add(&self, measure: &Measure) {
        let mut kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !kept.contains(measure) {
            kept.push(measure.clone());
        }
    }

    pub(crate) fn all(&self) -> Vec<Measure> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

/// Evaluates every claim at each of its places and cells.
pub(crate) fn check_claims(
    document: &Document,
    space: &Arc<Space>,
    claims: &[Claim],
    kept: &Kept,
) -> Result<(), DocumentError> {
    let look = kept.clone();
    let figures: Arc<Figures> = Arc::new(move |point, measure: &Measure| {
        look.add(measure);
        // All values differ, so that no difference of two is 0.
        Ok(1.0 + point as f64 / 1_024.0)
    });
    for (index, claim) in claims.iter().enumerate() {
        let path = Path::default().key("claims").index(index);
        let (dimensions, expressions): (Vec<usize>, Vec<(Path, &Formula)>) = match &claim.value {
            ClaimedNumber::Expression(value) => (claim.each.clone(), vec![(path.key("value"), value)]),
            ClaimedNumber::Share { cells, among, conditions } => {
                let mut all = expressions(&path.key("among"), among);
                all.extend(expressions(&path.key("conditions"), conditions));
                (claim.each.iter().chain(cells).copied().collect(), all)
            }
        };
        // The scenarios that are drawn differ in no name: the first stands for all.
        let drawn = dimensions.iter().position(|of| space.dimensions[*of].name == SCENARIO);
        let all = space.combinations(&claim.selection, &dimensions);
        let first = all.first().cloned().unwrap_or_default();
        for levels in all.into_iter().filter(|levels| drawn.is_none_or(|at| levels[at] == first[at])) {
            let selection = fixed(&claim.selection, &dimensions, &levels);
            let scope = Scope { space: Arc::clone(space), selection, figures: Arc::clone(&figures) };
            check_expressions(document, &expressions, &scope)?;
        }
    }
    Ok(())
}

/// Evaluates every search at each of its points. It sees that point alone.
pub(crate) fn check_searches(
    document: &Document,
    space: &Arc<Space>,
    searches: &[Option<Search>],
    kept: &Kept,
) -> Result<(), DocumentError> {
    let dimensions: Vec<usize> = (0..space.dimensions.len()).collect();
    for (case, search) in searches.iter().enumerate().filter_map(|(case, search)| Some((case, search.as_ref()?))) {
        let path = Path::default().key("cases").index(case).key("search");
        let mut all = vec![(path.key("maximise"), &search.maximise)];
        all.extend(expressions(&path.key("conditions"), &search.conditions));
        let this_case = fixed(&space.everything(), &[0], &[case]);
        for point in space.select(&this_case) {
            let look = kept.clone();
            let figures: Arc<Figures> = Arc::new(move |at, measure: &Measure| {
                look.add(measure);
                match at == point {
                    _ if measure.is_of_searches() => Err(format!("{measure} is not known before the search is over")),
                    true => Ok(1.0 + point as f64 / 1_024.0),
                    false => Err("a search sees its own point only".to_owned()),
                }
            });
            let selection = fixed(&space.everything(), &dimensions, &space.levels_at(point));
            check_expressions(document, &all, &Scope { space: Arc::clone(space), selection, figures })?;
        }
    }
    Ok(())
}

/// The expressions of the conditions in the list at `path`, each with its place.
fn expressions<'a>(path: &Path, conditions: &'a [Condition]) -> Vec<(Path, &'a Formula)> {
    let place = |index: usize| path.index(index).key("value");
    conditions.iter().enumerate().map(|(index, condition)| (place(index), &condition.value)).collect()
}

fn check_expressions(
    document: &Document,
    expressions: &[(Path, &Formula)],
    scope: &Scope,
) -> Result<(), DocumentError> {
    for (path, expression) in expressions {
        match expression.evaluate(scope) {
            Err(problem) if problem.kind != Kind::NotFinite => return Err(document.problem(path, problem.into())),
            _ => {}
        }
    }
    Ok(())
}
