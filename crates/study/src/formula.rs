//! Expressions of measures, claims and formulas.
//!
//! They are MiniJinja's: numbers, `+ - * / **`, comparisons, `… if … else …` and calls, without files or loops. An
//! unquoted name is a variable, or a function of [`PLAIN`] that computes a number from numbers. The evaluating code
//! defines the variables.

use crate::part::Part;
use crate::problem::{Kind, Problem};
use lasthop_measure::{jain_index, mean, quantile};
use minijinja::value::{Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, Expression, UndefinedBehavior};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as _;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// The most signs and words of an expression: the library descends once for each operator. The longest of ours has 60.
const MOST_PARTS: usize = 1_000;

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Formula {
    text: String,
    compiled: Arc<Expression<'static, 'static>>,
    /// Every name in it, in all branches.
    names: BTreeSet<String>,
}

/// A function of expressions.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Its name with its arguments.
    pub call: &'static str,
    /// Its value, in words.
    pub meaning: &'static str,
}

/// A function of its arguments alone.
#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) function: Function,
    run: Run,
}

#[derive(Clone, Copy, Debug)]
enum Run {
    /// One number from numbers and lists of them; `None` for an empty list.
    Reduce(fn(&[f64]) -> Option<f64>),
    /// The number of elements of any kind.
    Count,
    /// A number from a number.
    Map(fn(f64) -> f64),
}

/// The functions available in every expression.
pub(crate) const PLAIN: &[Plain] = &[
    reduce("mean", "mean(list or number, …)", "The mean.", mean),
    reduce("min", "min(list or number, …)", "The least.", |numbers| numbers.iter().copied().reduce(lesser)),
    reduce("max", "max(list or number, …)", "The greatest.", greatest),
    reduce("sum", "sum(list or number, …)", "The sum.", |numbers| {
        (!numbers.is_empty()).then(|| numbers.iter().sum())
    }),
    reduce("median", "median(list or number, …)", "The median.", |numbers| quantile(numbers, 0.5)),
    plain("count", "count(list, …)", "How many there are, of whatever.", Run::Count),
    reduce("jain", "jain(list or number, …)", "Jain's index: 1 where all are equal.", jain_index),
    reduce(
        "deviation",
        "deviation(list, …)",
        "The greatest distance from 1: of `ratios`, the largest relative deviation.",
        |numbers| greatest(&numbers.iter().map(|number| (number - 1.0).abs()).collect::<Vec<_>>()),
    ),
    map("abs", "abs(number)", "The magnitude.", f64::abs),
    map("sqrt", "sqrt(number)", "The square root.", f64::sqrt),
    map("cbrt", "cbrt(number)", "The cube root.", f64::cbrt),
    map("exp", "exp(number)", "e to that power.", f64::exp),
    map("ln", "ln(number)", "The natural logarithm.", f64::ln),
];

const fn plain(name: &'static str, call: &'static str, meaning: &'static str, run: Run) -> Plain {
    Plain { function: Function { name, call, meaning }, run }
}

const fn reduce(
    name: &'static str,
    call: &'static str,
    meaning: &'static str,
    run: fn(&[f64]) -> Option<f64>,
) -> Plain {
    plain(name, call, meaning, Run::Reduce(run))
}

const fn map(name: &'static str, call: &'static str, meaning: &'static str, run: fn(f64) -> f64) -> Plain {
    plain(name, call, meaning, Run::Map(run))
}

/// NaN stays NaN.
fn lesser(a: f64, b: f64) -> f64 {
    if a.is_nan() || a < b { a } else { b }
}

fn greatest(numbers: &[f64]) -> Option<f64> {
    numbers.iter().copied().reduce(|a, b| if a.is_nan() || a > b { a } else { b })
}

/// The names of the functions that reduce several numbers to one.
fn reduces() -> Vec<&'static str> {
    let reduces = PLAIN.iter().filter(|plain| !matches!(plain.run, Run::Map(_)));
    reduces.map(|plain| plain.function.name).collect()
}

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    for plain in PLAIN {
        environment.add_function(plain.function.name, move |given: Rest<ValueOrKwargs>| {
            let value = Call::new(&plain.function, given.into_values()).and_then(|call| call.run(plain.run));
            value.map_err(Error::from)
        });
    }
    environment
});

impl Formula {
    /// Compiles an expression.
    pub(crate) fn new(text: String) -> Result<Self, Problem> {
        let parts = parts(&text);
        if parts > MOST_PARTS {
            let begin: String = text.chars().take(40).collect();
            let accepted = format!("at most {MOST_PARTS}: use a list, or several claims");
            return Err(Problem::new(format!("`{begin}…` has {parts} signs and words"), accepted));
        }
        let compiled = ENVIRONMENT.compile_expression_owned(text.clone()).map_err(|error| theirs(&error, &text))?;
        let names = compiled.undeclared_variables(false).into_iter().collect();
        Ok(Self { text, compiled: Arc::new(compiled), names })
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first name in it that is neither a function of [`PLAIN`] nor known.
    pub(crate) fn unknown_name(&self, is_known: impl Fn(&str) -> bool) -> Option<&str> {
        let is_plain = |name: &str| PLAIN.iter().any(|plain| plain.function.name == name);
        self.names.iter().map(String::as_str).find(|name| !is_plain(name) && !is_known(name))
    }

    /// Whether it uses this variable.
    pub(crate) fn names(&self, variable: &str) -> bool {
        self.names.contains(variable)
    }

    /// The value of a constant expression.
    pub(crate) fn constant(&self) -> Result<f64, Problem> {
        self.with(Vec::new())
    }

    /// The value of an expression in these variables and functions alone.
    pub(crate) fn with(&self, variables: Vec<(String, Value)>) -> Result<f64, Problem> {
        if let Some(name) = self.unknown_name(|name| variables.iter().any(|(known, _)| known == name)) {
            let plain = PLAIN.iter().map(|plain| plain.function.name);
            let known: Vec<&str> = variables.iter().map(|(known, _)| known.as_str()).chain(plain).collect();
            return Err(Problem::unknown(format!("there is no function or variable {name} here"), name, &known));
        }
        self.of(Value::from_object(variables.into_iter().collect::<BTreeMap<String, Value>>()))
    }

    /// The value of an expression in the names of the context.
    pub(crate) fn of(&self, context: Value) -> Result<f64, Problem> {
        let outcome = self.compiled.eval(context).map_err(|error| theirs(&error, &self.text))?;
        if let Some(part) = outcome.downcast_object_ref::<Part>() {
            return Err(part.is_no_number(&self.text, &reduces()));
        }
        match outcome.kind() {
            ValueKind::Number => {
                f64::try_from(outcome).ok().filter(|number| number.is_finite()).ok_or_else(|| not_finite(&self.text))
            }
            ValueKind::Undefined => Err(Problem::new(
                format!("`{self}` asks a number or a word for a part of it"),
                "an expression that gives a number",
            )),
            ValueKind::Plain => {
                let call = PLAIN.iter().find(|plain| plain.function.name == self.text).map(|plain| plain.function.call);
                let accepted = call.unwrap_or("a call of it");
                Err(Problem::new(format!("`{self}` is a function without its arguments"), accepted))
            }
            _ => {
                let problem = format!("`{self}` gives {outcome}, which is no number");
                Err(Problem::new(problem, "an expression that gives a number"))
            }
        }
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The signs and words of an expression outside of its texts: no fewer than it has operators.
fn parts(text: &str) -> usize {
    let (mut parts, mut quote, mut before) = (0, None, ' ');
    for letter in text.chars() {
        let in_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        match quote {
            Some(end) if letter == end && before != '\\' => quote = None,
            Some(_) => {}
            None if matches!(letter, '"' | '\'') => quote = Some(letter),
            None => parts += usize::from(!(letter.is_whitespace() || in_word(letter) && in_word(before))),
        }
        before = letter;
    }
    parts
}

fn not_finite(expression: &str) -> Problem {
    let problem = format!("`{expression}` gives no finite number");
    Problem { kind: Kind::NotFinite, ..Problem::new(problem, "an expression that gives a finite number") }
}

/// Rephrases an error of the library in a study's terms. An error of our own functions comes back unchanged.
fn theirs(error: &Error, expression: &str) -> Problem {
    if let Some(ours) = error.source().and_then(|source| source.downcast_ref::<Problem>()) {
        return ours.clone();
    }
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    // Division by 0 and overflow. The library has one error kind for these and for operands of the wrong type, without
    // the operands. Only its wording distinguishes them; a test checks that wording.
    if detail.starts_with("unable to calculate") {
        return not_finite(expression);
    }
    Problem::new(
        format!("`{expression}` cannot be computed: {detail}"),
        "an expression such as at(\"jain_index\", n=10) / at(\"jain_index\", n=1)",
    )
}

/// The call of a function.
pub(crate) struct Call {
    function: &'static Function,
    pub(crate) positional: Vec<Value>,
    pub(crate) named: BTreeMap<String, Value>,
}

impl Call {
    pub(crate) fn new(function: &'static Function, given: impl IntoIterator<Item = Value>) -> Result<Self, Problem> {
        let (mut positional, mut named) = (Vec::new(), BTreeMap::new());
        for value in given {
            if !value.is_kwargs() {
                positional.push(value);
                continue;
            }
            let arguments = Kwargs::try_from(value).map_err(|error| Problem::new(error.to_string(), function.call))?;
            for name in arguments.args() {
                let value = arguments.get(name).map_err(|error| Problem::new(error.to_string(), function.call))?;
                named.insert(name.to_owned(), value);
            }
        }
        Ok(Self { function, positional, named })
    }

    fn run(&self, run: Run) -> Result<Value, Problem> {
        if !self.named.is_empty() {
            return Err(self.wrong("takes no named argument"));
        }
        match run {
            Run::Reduce(reduce) => {
                let number = reduce(&self.numbers()?);
                let nothing = || Problem { kind: Kind::Nothing, ..self.wrong("was given nothing") };
                number.map(Value::from).ok_or_else(nothing)
            }
            Run::Count => {
                let counts = self.positional.iter().map(|value| value.len().filter(|_| value.kind() == ValueKind::Seq));
                let count = counts.sum::<Option<usize>>().ok_or_else(|| self.wrong("takes lists"))?;
                Ok(Value::from(count))
            }
            Run::Map(map) => match (self.positional.as_slice(), self.numbers()?.as_slice()) {
                ([only], [number]) if only.is_number() => Ok(Value::from(map(*number))),
                _ => Err(self.wrong("takes one number")),
            },
        }
    }

    pub(crate) fn wrong(&self, problem: &str) -> Problem {
        Problem::new(format!("{}() {problem}", self.function.name), self.function.call)
    }

    /// The positional arguments, lists flattened.
    fn numbers(&self) -> Result<Vec<f64>, Problem> {
        let mut numbers = Vec::new();
        for value in &self.positional {
            match value.kind() {
                ValueKind::Seq => numbers.extend(value.try_iter().map_err(|_| self.wrong("was given something else"))?),
                _ => numbers.push(value.clone()),
            }
        }
        let number = |value: Value| match value.downcast_object_ref::<Part>() {
            Some(table) => Err(table.is_no_number("", &[])),
            None if value.is_number() => {
                f64::try_from(value).map_err(|_| self.wrong("takes numbers and lists of them"))
            }
            None => Err(self.wrong("takes numbers and lists of them")),
        };
        numbers.into_iter().map(number).collect()
    }

    /// The positional argument at this index, a text.
    pub(crate) fn text(&self, index: usize) -> Result<&str, Problem> {
        self.positional.get(index).and_then(Value::as_str).ok_or_else(|| self.wrong("takes names between quotes"))
    }

    pub(crate) fn exactly(&self, positional: usize) -> Result<(), Problem> {
        if self.positional.len() == positional { Ok(()) } else { Err(self.wrong("has other arguments")) }
    }
}
