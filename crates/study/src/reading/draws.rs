//! Reads what is drawn at random, and draws it.

use super::space::{MOST_POINTS, setting};
use crate::Setting;
use crate::draw::{Draw, From, drawn};
use crate::keys::{DrawKeys, StudyKeys};
use crate::space::{Dimension, Level, SCENARIO, Space};
use lasthop_keys::{Document, DocumentError, Path, key, shown};
use toml::Value;

/// Adds the axis of the drawn scenarios; `None` if nothing is drawn. The blocks stand in `drawn_in`, which may be another study.
pub(super) fn draws(
    document: &Document,
    (scenarios, first): (Option<u64>, u64),
    (drawn_in, blocks): (&Document, Vec<DrawKeys>),
    space: &mut Space,
    settings: &mut Vec<Vec<Vec<Setting>>>,
) -> Result<Option<usize>, DocumentError> {
    let list = Path::top(key!(StudyKeys, draw));
    let fail =
        |problem: String| Err(document.refuse::<StudyKeys>(&Path::default(), key!(StudyKeys, scenarios), problem));
    let scenarios = match (scenarios, blocks.is_empty()) {
        (None, true) => return Ok(None),
        (Some(_), true) => return fail("there is no block [[draw]]".to_owned()),
        (None, false) => return fail("is not there".to_owned()),
        (Some(scenarios), false) => scenarios,
    };
    let points = space.points() * scenarios as usize;
    if points > MOST_POINTS {
        return fail(format!("makes {points} points with the cases, which is too many (at most {MOST_POINTS})"));
    }
    let mut draws: Vec<Draw> = Vec::new();
    for (index, keys) in blocks.into_iter().enumerate() {
        let draw = draw(drawn_in, &list.index(index), keys, &draws)?;
        draws.push(draw);
    }
    // The place of each key, which checks that there is such a key.
    let mut places: Vec<Vec<Setting>> = Vec::new();
    for (index, draw) in draws.iter().enumerate() {
        let here = list.index(index).key(key!(DrawKeys, key));
        let place = |key: &String| setting(drawn_in, &here, key, &Value::Integer(1));
        places.push(draw.keys.iter().map(place).collect::<Result<_, _>>()?);
    }
    let of_scenario = |scenario| {
        let values = drawn(&draws, scenario).into_iter().zip(&places);
        let settings = values.filter_map(|(value, places)| Some((value?, places))).flat_map(|(value, places)| {
            places.iter().map(move |place| Setting { change: place.change.with(&value), ..place.clone() })
        });
        settings.collect()
    };
    let numbers = first..first + scenarios;
    settings.push(numbers.clone().map(of_scenario).collect());
    let levels = numbers.map(|scenario| Level::Number(scenario as f64)).collect();
    let mut keys: Vec<String> = draws.into_iter().flat_map(|draw| draw.keys).collect();
    keys.sort_unstable();
    keys.dedup();
    space.dimensions.push(Dimension { name: SCENARIO.into(), label: SCENARIO.into(), keys, levels });
    Ok(Some(space.dimensions.len() - 1))
}

fn draw(document: &Document, here: &Path, keys: DrawKeys, before: &[Draw]) -> Result<Draw, DocumentError> {
    let fail = |key: &str, problem: String| Err(document.refuse::<DrawKeys>(here, key, problem));
    if before.iter().any(|other| other.name == keys.name) {
        return fail(key!(DrawKeys, name), format!("\"{}\" stands twice", keys.name));
    }
    let decimals = keys.decimals;
    let from = match (keys.values, keys.uniform, keys.log_uniform) {
        (Some(values), None, None) => {
            let weights = keys.weights.unwrap_or_else(|| vec![1.0; values.len()]);
            if weights.len() != values.len() {
                let problem = format!("there are {} for {} values", weights.len(), values.len());
                return fail(key!(DrawKeys, weights), problem);
            }
            if weights.iter().any(|weight| *weight < 0.0) || weights.iter().sum::<f64>() <= 0.0 {
                return fail(key!(DrawKeys, weights), "nothing can be drawn with these".to_owned());
            }
            From::Values(values.into_iter().zip(weights).collect())
        }
        (None, ..) if keys.weights.is_some() => {
            return fail(key!(DrawKeys, weights), "there are no values".to_owned());
        }
        (None, Some((from, to)), None) => From::Range { from, to, logarithmic: false, decimals },
        (None, None, Some((from, to))) if from > 0.0 => From::Range { from, to, logarithmic: true, decimals },
        (None, None, Some((from, _))) => {
            return fail(key!(DrawKeys, log_uniform), format!("{from} is not above 0"));
        }
        (None, None, None) => return fail(key!(DrawKeys, values), "is not there".to_owned()),
        _ => return fail(key!(DrawKeys, values), "there is more than one thing to draw from".to_owned()),
    };
    let mut when = Vec::new();
    let path = here.key(key!(DrawKeys, when));
    for (name, values) in keys.when.iter().flatten() {
        let Some(of) = before.iter().position(|draw| draw.name == *name) else {
            let names: Vec<&str> = before.iter().map(|draw| draw.name.as_str()).collect();
            let accepted = if names.is_empty() { "none: this is the first".to_owned() } else { names.join(", ") };
            return Err(document.error(&path, format!("there is no draw {name} before it"), accepted));
        };
        let values: &[Value] = values.as_array().map_or_else(|| std::slice::from_ref(values), Vec::as_slice);
        if let From::Values(known) = &before[of].from
            && let Some(never) =
                values.iter().find(|value| known.iter().all(|(of, _)| !Level::of(of).is(&Level::of(value))))
        {
            let known: Vec<String> = known.iter().map(|(value, _)| shown(value)).collect();
            let problem = format!("{name} never has the value {}", shown(never));
            return Err(document.error(&path, problem, known.join(", ")));
        }
        when.push((of, values.iter().map(Level::of).collect()));
    }
    Ok(Draw { name: keys.name, keys: keys.key.unwrap_or_default(), from, chance: keys.chance, when })
}
