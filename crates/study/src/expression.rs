//! Expressions of claims: with functions of results.
//!
//! An axis with one value for the whole expression (a claim's `each`) is a variable. Named arguments select points:
//! `at("jain_index", n=10)`.

use crate::formula::{Call, Formula, Function, PLAIN};
use crate::measure::Measure;
use crate::problem::Problem;
use crate::space::{CASE, Curve, Level, Selection, Space, joined};
use crate::statistics::{correlation, exponent, trend};
use lasthop_keys::nearest;
use minijinja::value::{Object, ObjectRepr, Value, ValueKind};
use minijinja::{Error, State};
use std::fmt;
use std::sync::Arc;

/// A function of results.
#[derive(Debug)]
struct Look {
    function: Function,
    run: fn(&Scope, &Call) -> Result<Value, Problem>,
}

/// Functions for claims and searches, not for measures and formulas.
const LOOKS: &[Look] = &[
    look(
        "at",
        "at(measure, axis=value, …)",
        "The mean over the seeds at one point; the axes given must leave exactly one.",
        at,
    ),
    look(
        "over",
        "over(measure, axis=value, …)",
        "A list: the same at every point that the axes given leave, in the order of the axes.",
        over,
    ),
    look(
        "reference",
        "reference(label, axis=value, …)",
        "What a reference of the figures says at one point.",
        reference,
    ),
    look(
        "ratios",
        "ratios(measure, label, …, axis=value, …)",
        "A list: ours over the reference at every point that has one; of several references the nearest to ours.",
        ratios,
    ),
    look(
        "trend",
        "trend(measure, axis, axis=value, …)",
        "Kendall's τ of a measure along an axis: the share of pairs of points that rise less the share that fall; 1 where it only rises, −1 where it only falls.",
        trend_along,
    ),
    look(
        "exponent",
        "exponent(measure, axis, axis=value, …)",
        "The b of the nearest power law a·x^b along an axis (least squares of the logarithms).",
        exponent_along,
    ),
    look(
        "correlation",
        "correlation(measure, measure, axis=value, …)",
        "Pearson's r of two measures over every point that the axes given leave; 1 or −1 where one is a line of the other.",
        correlation_over,
    ),
    look(
        "argmax",
        "argmax(measure, axis, axis=value, …)",
        "The value of the axis at which the measure is greatest.",
        argmax,
    ),
    look(
        "argmin",
        "argmin(measure, axis, axis=value, …)",
        "The value of the axis at which the measure is least.",
        argmin,
    ),
];

const fn look(
    name: &'static str,
    call: &'static str,
    meaning: &'static str,
    run: fn(&Scope, &Call) -> Result<Value, Problem>,
) -> Look {
    Look { function: Function { name, call, meaning }, run }
}

/// Every function of expressions. The functions of results, for claims and searches alone, come first.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    LOOKS.iter().map(|look| &look.function).chain(PLAIN.iter().map(|plain| &plain.function))
}

/// Looks up a measure at a point.
pub(crate) type Figures = dyn Fn(usize, &Measure) -> Result<f64, String> + Send + Sync;

/// The results and points visible to an expression.
#[derive(Clone)]
pub(crate) struct Scope {
    pub(crate) space: Arc<Space>,
    pub(crate) selection: Selection,
    pub(crate) figures: Arc<Figures>,
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("selection", &self.selection).finish_non_exhaustive()
    }
}

/// A function of this scope's results.
#[derive(Debug)]
struct Looking {
    look: &'static Look,
    scope: Scope,
}

impl Object for Looking {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, arguments: &[Value]) -> Result<Value, Error> {
        let call = Call::new(&self.look.function, arguments.iter().cloned())?;
        Ok((self.look.run)(&self.scope, &call)?)
    }
}

impl Formula {
    /// The value of an expression over results.
    pub(crate) fn evaluate(&self, scope: &Scope) -> Result<f64, Problem> {
        let looking = |look: &'static Look| {
            (look.function.name.to_owned(), Value::from_object(Looking { look, scope: scope.clone() }))
        };
        for (of, dimension) in scope.space.dimensions.iter().enumerate().filter(|(_, of)| self.names(&of.name)) {
            for word in compared_words(self.as_str(), &dimension.name) {
                level(&scope.space, of, &Value::from(word))?;
            }
        }
        self.with(variables(&scope.space, &scope.selection).into_iter().chain(LOOKS.iter().map(looking)).collect())
    }
}

/// The value of a reference at a point; `None` if it does not cover that point.
pub(crate) fn reference_at(space: &Space, reference: usize, point: usize) -> Result<Option<f64>, Problem> {
    let reference = &space.references[reference];
    if !space.includes(&reference.selection, point) {
        return Ok(None);
    }
    match &reference.curve {
        Curve::Formula(formula) => {
            let variables = space.coordinates(point).into_iter().map(|at| (at.axis, value_of(&at.value))).collect();
            formula.with(variables).map(Some)
        }
        Curve::Points { x, points } => {
            let level = &space.dimensions[*x].levels[space.levels_at(point)[*x]];
            Ok(points.iter().find(|(at, _)| at.is(level)).map(|(_, y)| *y))
        }
    }
}

/// The axes with a single value in the whole selection.
fn variables(space: &Space, selection: &Selection) -> Vec<(String, Value)> {
    let one = |(dimension, allowed): (usize, &Option<Vec<usize>>)| match allowed.as_deref() {
        Some([level]) => {
            let dimension = &space.dimensions[dimension];
            Some((dimension.name.clone(), value_of(&dimension.levels[*level])))
        }
        _ => None,
    };
    selection.iter().enumerate().filter_map(one).collect()
}

fn value_of(level: &Level) -> Value {
    match level {
        Level::Number(number) => Value::from(*number),
        Level::Text(text) => Value::from(text.as_str()),
    }
}

impl Call {
    fn measure(&self) -> Result<Measure, Problem> {
        Measure::parse(self.text(0)?)
    }

    /// The selection narrowed by the named arguments. They override its values of the same axes.
    fn selection(&self, scope: &Scope) -> Result<Selection, Problem> {
        let mut selection = scope.selection.clone();
        for (name, value) in &self.named {
            let dimension = dimension(&scope.space, name)?;
            let values = match value.kind() {
                ValueKind::Seq => value.try_iter().map_err(|_| self.wrong("was given something else"))?.collect(),
                _ => vec![value.clone()],
            };
            let levels =
                values.iter().map(|value| level(&scope.space, dimension, value)).collect::<Result<Vec<_>, _>>()?;
            selection[dimension] = Some(levels);
        }
        Ok(selection)
    }

    fn points(&self, scope: &Scope) -> Result<Vec<usize>, Problem> {
        let points = scope.space.select(&self.selection(scope)?);
        if points.is_empty() { Err(self.wrong("looks at no point")) } else { Ok(points) }
    }

    fn one_point(&self, scope: &Scope) -> Result<usize, Problem> {
        match self.points(scope)?.as_slice() {
            [only] => Ok(*only),
            several => {
                let say = |point: &usize| format!("({})", joined(&scope.space.coordinates(*point)));
                let some: Vec<String> = several.iter().take(3).map(say).collect();
                let more = if several.len() > 3 { ", …" } else { "" };
                Err(self.wrong(&format!("looks at {} points: {}{more}", several.len(), some.join(", "))))
            }
        }
    }

    /// A measure along the axis named by the second argument, with one point at each axis value.
    fn along(&self, scope: &Scope) -> Result<Vec<(Level, f64)>, Problem> {
        self.exactly(2)?;
        let (measure, axis) = (self.measure()?, dimension(&scope.space, self.text(1)?)?);
        let points = self.points(scope)?;
        let mut found: Vec<(usize, f64)> = Vec::new();
        for point in points {
            let level = scope.space.levels_at(point)[axis];
            if found.iter().any(|(before, _)| *before == level) {
                let name = &scope.space.dimensions[axis].name;
                let at = &scope.space.dimensions[axis].levels[level];
                return Err(
                    self.wrong(&format!("looks at several points with {name}={at}; give the other axes a value"))
                );
            }
            found.push((level, scope.figure(point, &measure)?));
        }
        if found.len() < 2 {
            return Err(self.wrong("looks at one point only"));
        }
        found.sort_by_key(|(level, _)| *level);
        Ok(found.into_iter().map(|(level, y)| (scope.space.dimensions[axis].levels[level].clone(), y)).collect())
    }
}

impl Scope {
    fn figure(&self, point: usize, measure: &Measure) -> Result<f64, Problem> {
        (self.figures)(point, measure).map_err(|problem| {
            let at = joined(&self.space.coordinates(point));
            let at = if at.is_empty() { String::new() } else { format!(" at {at}") };
            Problem::new(format!("{problem}{at}"), "a measure that every run has")
        })
    }
}

/// The words that an expression compares this variable with: a misspelt one would be like none, and a claim hold for nothing.
fn compared_words<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let tokens = tokens(text);
    let word = |at: Option<usize>| {
        let token = at.and_then(|at| tokens.get(at)).filter(|token| token.starts_with(['\'', '"']))?;
        Some(token.trim_matches(['\'', '"']))
    };
    let compares = |at: Option<usize>| at.and_then(|at| tokens.get(at)).is_some_and(|of| ["==", "!="].contains(of));
    let mut words = Vec::new();
    for at in (0..tokens.len()).filter(|at| tokens[*at] == name) {
        words.extend(compares(Some(at + 1)).then(|| word(Some(at + 2))).flatten());
        words.extend(compares(at.checked_sub(1)).then(|| word(at.checked_sub(2))).flatten());
        let list = at + 1 + usize::from(tokens.get(at + 1) == Some(&"not"));
        if tokens.get(list..list + 2) == Some(&["in", "["][..]) {
            let end = tokens[list..].iter().position(|token| *token == "]").map_or(tokens.len(), |end| list + end);
            words.extend((list..end).filter_map(|at| word(Some(at))));
        }
    }
    words
}

/// Names, texts in quotes, comparisons, and other signs.
fn tokens(text: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        let end = match first {
            '\'' | '"' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            _ if is_name(first) => rest.find(|letter| !is_name(letter)).unwrap_or(rest.len()),
            _ if ["==", "!="].iter().any(|two| rest.starts_with(two)) => 2,
            other => other.len_utf8(),
        };
        tokens.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    tokens
}

fn dimension(space: &Space, name: &str) -> Result<usize, Problem> {
    let names = space.names();
    space.dimension(name).ok_or_else(|| match names.as_slice() {
        [] => Problem::new(format!("there is no axis {name}"), "none: nothing varies"),
        names => Problem::unknown(format!("there is no axis {name}"), name, names),
    })
}

fn level(space: &Space, dimension: usize, value: &Value) -> Result<usize, Problem> {
    let wanted = match value.kind() {
        ValueKind::Number => f64::try_from(value.clone()).ok().map(Level::Number),
        _ => value.as_str().map(|text| Level::Text(text.to_owned())),
    };
    let dimension = &space.dimensions[dimension];
    let found = wanted.and_then(|wanted| dimension.level(&wanted));
    let of = if dimension.name == CASE {
        "no case is called".to_owned()
    } else {
        format!("{} never has the value", dimension.name)
    };
    found.ok_or_else(|| Problem::new(format!("{of} {value}"), dimension.said()))
}

fn at(scope: &Scope, call: &Call) -> Result<Value, Problem> {
    call.exactly(1)?;
    let measure = call.measure()?;
    Ok(Value::from(scope.figure(call.one_point(scope)?, &measure)?))
}

fn over(scope: &Scope, call: &Call) -> Result<Value, Problem> {
    call.exactly(1)?;
    let measure = call.measure()?;
    let figures = call.points(scope)?.into_iter().map(|point| scope.figure(point, &measure));
    Ok(Value::from(figures.collect::<Result<Vec<f64>, _>>()?))
}

/// The values of the references with this label at a point.
fn referred(space: &Space, label: &str, point: usize) -> Result<Option<f64>, Problem> {
    let mut labels: Vec<&str> = space.references.iter().map(|reference| reference.label.as_str()).collect();
    labels.dedup();
    if !labels.contains(&label) {
        let accepted = if labels.is_empty() { "none: no figure has one".to_owned() } else { labels.join(", ") };
        let did_you_mean = nearest(label, &labels).map(|label| format!("\"{label}\""));
        return Err(Problem { did_you_mean, ..Problem::new(format!("there is no reference \"{label}\""), accepted) });
    }
    for (index, reference) in space.references.iter().enumerate() {
        if reference.label == label
            && let Some(said) = reference_at(space, index, point)?
        {
            return Ok(Some(said));
        }
    }
    Ok(None)
}

fn reference(scope: &Scope, call: &Call) -> Result<Value, Problem> {
    call.exactly(1)?;
    let point = call.one_point(scope)?;
    let said = referred(&scope.space, call.text(0)?, point)?;
    let at = joined(&scope.space.coordinates(point));
    said.map(Value::from).ok_or_else(|| call.wrong(&format!("finds nothing in the reference at {at}")))
}

fn ratios(scope: &Scope, call: &Call) -> Result<Value, Problem> {
    let measure = call.measure()?;
    let labels = (1..call.positional.len()).map(|index| call.text(index)).collect::<Result<Vec<_>, _>>()?;
    if labels.is_empty() {
        return Err(call.wrong("needs the label of a reference"));
    }
    let mut ratios = Vec::new();
    for point in call.points(scope)? {
        let mut nearest: Option<f64> = None;
        for label in &labels {
            let Some(said) = referred(&scope.space, label, point)? else { continue };
            let ratio = scope.figure(point, &measure)? / said;
            let nearer = nearest.is_none_or(|before| (ratio - 1.0).abs() < (before - 1.0).abs());
            if nearer {
                nearest = Some(ratio);
            }
        }
        ratios.extend(nearest);
    }
    if ratios.is_empty() {
        Err(call.wrong("looks at no point that the reference has"))
    } else {
        Ok(Value::from(ratios))
    }
}

fn correlation_over(scope: &Scope, call: &Call) -> Result<Value, Problem> {
    call.exactly(2)?;
    let (one, other) = (call.measure()?, Measure::parse(call.text(1)?)?);
    let pair = |point| Ok((scope.figure(point, &one)?, scope.figure(point, &other)?));
    let pairs = call.points(scope)?.into_iter().map(pair).collect::<Result<Vec<_>, Problem>>()?;
    // Constant figures have none, without any error in the expression.
    Ok(Value::from(correlation(&pairs).unwrap_or(f64::NAN)))
}

fn trend_along(scope: &Scope, call: &Call) -> Result<Value, Problem> {
    let figures: Vec<f64> = call.along(scope)?.into_iter().map(|(_, y)| y).collect();
    trend(&figures).map(Value::from).ok_or_else(|| call.wrong("looks at one point only"))
}

/// The points along a numeric axis.
fn numbered(scope: &Scope, call: &Call) -> Result<Vec<(f64, f64)>, Problem> {
    let number = |(level, y)| match level {
        Level::Number(x) => Ok((x, y)),
        Level::Text(text) => Err(call.wrong(&format!("needs an axis of numbers, not of words such as \"{text}\""))),
    };
    call.along(scope)?.into_iter().map(number).collect()
}

fn exponent_along(scope: &Scope, call: &Call) -> Result<Value, Problem> {
    exponent(&numbered(scope, call)?).map(Value::from).ok_or_else(|| call.wrong("looks at one point only"))
}

fn argmax(scope: &Scope, call: &Call) -> Result<Value, Problem> {
    extreme(call, numbered(scope, call)?, |y, best| y > best)
}

fn argmin(scope: &Scope, call: &Call) -> Result<Value, Problem> {
    extreme(call, numbered(scope, call)?, |y, best| y < best)
}

/// The first x with the best y.
fn extreme(call: &Call, points: Vec<(f64, f64)>, better: fn(f64, f64) -> bool) -> Result<Value, Problem> {
    let best = points.into_iter().reduce(|best, point| if better(point.1, best.1) { point } else { best });
    best.map(|(x, _)| Value::from(x)).ok_or_else(|| call.wrong("looks at no point"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{Dimension, Reference, fixed};

    /// n = 1, 2, 5, 10 for "fixed" and "ARF"; the aggregate is 20, 18, 12, 10 and half of that.
    fn scope() -> Scope {
        let dimension = |name: &str, levels: Vec<Level>| Dimension {
            name: name.into(),
            label: name.into(),
            keys: Vec::new(),
            levels,
        };
        let cases = ["fixed", "ARF"].map(|case| Level::Text(case.into())).to_vec();
        let dimensions =
            vec![dimension(CASE, cases), dimension("n", [1.0, 2.0, 5.0, 10.0].map(Level::Number).to_vec())];
        let mut space = Space { dimensions, references: Vec::new() };
        let reference = |label: &str, selection: Selection, curve| Reference {
            label: label.into(),
            source: "nowhere".into(),
            selection,
            curve,
        };
        let all = space.everything();
        let points = |points: &[(f64, f64)]| Curve::Points {
            x: 1,
            points: points.iter().map(|(x, y)| (Level::Number(*x), *y)).collect(),
        };
        space.references = vec![
            reference("table", fixed(&all, &[0], &[0]), points(&[(1.0, 25.0), (2.0, 20.0)])),
            reference("other", all.clone(), points(&[(1.0, 19.0)])),
            reference("theory", all, Curve::Formula(compiled("20 / sqrt(n)").expect("a formula"))),
        ];
        let selection = space.everything();
        let figures = |point: usize, measure: &Measure| match measure.as_str() {
            "aggregate_goodput_mbps" => Ok([20.0, 18.0, 12.0, 10.0, 10.0, 9.0, 6.0, 5.0][point]),
            "starved_flows" => Ok(0.0),
            "utilization" => Ok(f64::NAN),
            other => Err(format!("{other} has no value")),
        };
        Scope { space: Arc::new(space), selection, figures: Arc::new(figures) }
    }

    fn compiled(text: &str) -> Result<Formula, Problem> {
        Formula::new(text.to_owned())
    }

    fn value(expression: &str) -> f64 {
        compiled(expression)
            .and_then(|formula| formula.evaluate(&scope()))
            .unwrap_or_else(|problem| panic!("{expression}: {problem}"))
    }

    fn refused(expression: &str) -> String {
        compiled(expression).and_then(|formula| formula.evaluate(&scope())).expect_err(expression).to_string()
    }

    #[test]
    fn a_point_is_picked_by_naming_its_axes() {
        assert_eq!(value("at('aggregate_goodput_mbps', n=5, case='fixed')"), 12.0);
        assert_eq!(
            value("at('aggregate_goodput_mbps', n=5, case='fixed') / at('aggregate_goodput_mbps', n=5, case='ARF')"),
            2.0
        );
        assert_eq!(value("max(over('aggregate_goodput_mbps', n=[5, 10]))"), 12.0);
        assert_eq!(value("sum(over('aggregate_goodput_mbps', case='ARF')) - 1"), 29.0);
        assert_eq!(value("min(3, over('aggregate_goodput_mbps'))"), 3.0);
        assert_eq!(value("mean(over('aggregate_goodput_mbps', case='ARF')) ** 2"), 56.25);
        // Whole numbers divide as real numbers.
        assert_eq!(value("1 / 2"), 0.5);
    }

    #[test]
    fn a_claim_for_each_case_sees_that_case_and_may_name_another() {
        let mut scope = scope();
        scope.selection = fixed(&scope.selection, &[0], &[1]);
        let value = |expression: &str| {
            compiled(expression)
                .and_then(|formula| formula.evaluate(&scope))
                .unwrap_or_else(|problem| panic!("{problem}"))
        };
        assert_eq!(value("at('aggregate_goodput_mbps', n=10)"), 5.0);
        assert_eq!(value("at('aggregate_goodput_mbps', n=10, case='fixed')"), 10.0);
        assert_eq!(value("1.5 if case == 'ARF' else 2.5"), 1.5);
    }

    /// Such a filter left every case out, and the claim held.
    #[test]
    fn a_case_is_compared_with_cases_that_there_are() {
        let mut scope = scope();
        scope.selection = fixed(&scope.selection, &[0], &[1]);
        let of = |expression: &str| compiled(expression).and_then(|formula| formula.evaluate(&scope));
        for wrong in ["case == 'AFR'", "'AFR' != case", "case in ['fixed', \"AFR\"]", "case not in ['AFR']"] {
            let told = of(&format!("1 if {wrong} else 2")).expect_err(wrong).to_string();
            assert!(told.contains("no case is called AFR") && told.contains("\"fixed\", \"ARF\""), "{told}");
        }
        for right in ["case == 'ARF'", "'fixed' != case", "case in ['ARF'] and 'AFR' == 'AFR'"] {
            assert_eq!(of(&format!("1 if {right} else 2")), Ok(1.0), "{right}");
        }
    }

    #[test]
    fn shapes_along_an_axis() {
        assert_eq!(value("trend('aggregate_goodput_mbps', 'n', case='ARF')"), -1.0);
        assert_eq!(value("trend('starved_flows', 'n', case='ARF')"), 0.0);
        assert_eq!(value("argmax('aggregate_goodput_mbps', 'n', case='ARF')"), 1.0);
        assert_eq!(value("argmin('aggregate_goodput_mbps', 'n', case='ARF', n=[1, 2, 5])"), 5.0);
        // From 20 at 1 to 10 at 10 the slope between the endpoints is −log10(2).
        let ends = value("exponent('aggregate_goodput_mbps', 'n', case='fixed', n=[1, 10])");
        assert!((ends + 2.0_f64.log10()).abs() < 1e-12, "{ends}");
    }

    #[test]
    fn ours_over_the_nearest_reference() {
        // 20/25 and 20/19 at n = 1: the second is nearer to 1; 18/20 at n = 2.
        let worst = value("deviation(ratios('aggregate_goodput_mbps', 'table', 'other', case='fixed'))");
        assert!((worst - 0.1).abs() < 1e-12, "{worst}");
        assert_eq!(value("max(ratios('aggregate_goodput_mbps', 'table', 'other', case='fixed'))"), 20.0 / 19.0);
        assert_eq!(value("min(ratios('aggregate_goodput_mbps', 'table'))"), 0.8);
        assert_eq!(value("reference('theory', n=1, case='ARF')"), 20.0);
    }

    #[test]
    fn what_does_not_exist_is_named_with_what_does() {
        for (expression, words) in [
            ("att('jain_index')", &["there is no function or variable att", "did you mean at?", "over, reference"][..]),
            ("at('jain_idex', n=1)", &["no jain_idex in a result", "did you mean jain_index?"]),
            ("at('jain_index', m=1)", &["there is no axis m", "accepted: case, n"]),
            ("at('jain_index', n=3)", &["n never has the value 3", "accepted: 1, 2, 5, 10"]),
            ("at('jain_index', case='arf')", &["no case is called arf", "\"fixed\", \"ARF\""]),
            ("at('aggregate_goodput_mbps', n=1)", &["at() looks at 2 points: (fixed, n=1), (ARF, n=1)"]),
            ("over('aggregate_goodput_mbps', n=[])", &["looks at no point"]),
            ("trend('aggregate_goodput_mbps', 'n')", &["several points with n=1"]),
            ("trend('aggregate_goodput_mbps', 'n', case='ARF', n=5)", &["one point only"]),
            ("argmax('aggregate_goodput_mbps', 'case', n=1)", &["an axis of numbers", "\"fixed\""]),
            ("max(ratios('aggregate_goodput_mbps', 'tabel'))", &["no reference \"tabel\"", "did you mean \"table\"?"]),
            ("max(ratios('aggregate_goodput_mbps', 'table', n=10))", &["no point that the reference has"]),
            ("n + 1", &["no function or variable n here", "accepted: at, over"]),
            ("at(jain_index)", &["no function or variable jain_index"]),
            ("1 if 1 < 2 else nothing", &["no function or variable nothing"]),
        ] {
            let message = refused(expression);
            for word in words {
                assert!(message.contains(word), "{expression}: no \"{word}\" in: {message}");
            }
        }
    }

    #[test]
    fn what_is_no_number_is_told_apart() {
        for (expression, words) in [
            ("at('rtt_ms.mean', n=5, case='ARF')", "rtt_ms.mean has no value at ARF, n=5"),
            ("over('starved_flows')", "is no number"),
            ("at('starved_flows', n=1, case='ARF') == 0", "is no number"),
            ("1 / at('starved_flows', n=1, case='ARF')", "no finite number"),
            ("at('utilization', n=1, case='ARF')", "no finite number"),
            ("min(1, at('utilization', n=1, case='ARF'))", "no finite number"),
            ("max(at('utilization', n=1, case='ARF'), 1)", "no finite number"),
            ("sqrt(0 - 1)", "no finite number"),
            ("sqrt('a')", "takes numbers"),
            ("sqrt([4])", "takes one number"),
            ("max()", "was given nothing"),
            ("max(1, n=2)", "no named argument"),
            ("at(", "cannot be computed"),
            ("", "cannot be computed"),
            ("'a' * 2 - 1", "cannot be computed"),
        ] {
            assert!(refused(expression).contains(words), "{expression}: {}", refused(expression));
        }
    }

    /// The library's stack overflowed: it descends once for each operator.
    #[test]
    fn an_expression_of_too_many_operators_is_refused() {
        let deep = ["1".to_owned() + &"+1".repeat(30_000), "-".repeat(30_000) + "1", "not ".repeat(30_000) + "1"];
        for expression in deep.into_iter().chain([format!("flows{}", ".a".repeat(30_000)), "x|".repeat(30_000)]) {
            let message = refused(&expression);
            assert!(message.contains("signs and words") && message.contains("accepted: at most 1000"), "{message}");
        }
        // 999 signs and words, which are as deep as they can be.
        assert_eq!(value(&("1".to_owned() + &"+1".repeat(499))), 500.0);
        assert_eq!(value(&format!("count([{}])", vec!["'a + b'"; 400].join(","))), 400.0);
    }

    #[test]
    fn a_formula_sees_the_axes_and_no_results() {
        let space = scope().space;
        assert_eq!(reference_at(&space, 2, 6), Ok(Some(20.0 / 5.0_f64.sqrt())));
        assert_eq!(reference_at(&space, 0, 6), Ok(None));
        let refused = compiled("at('jain_index')").and_then(|formula| formula.constant());
        let refused = refused.expect_err("a formula").to_string();
        assert!(refused.contains("there is no function or variable at"), "{refused}");
    }
}
