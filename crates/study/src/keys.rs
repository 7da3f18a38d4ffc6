//! The declaration of every key of a study file. From it come the reader, its messages, the tables of
//! `docs/guide/study*.md` and the JSON Schema.

use crate::expression::functions;
use crate::formula::Formula;
use lasthop_keys::Preset::{Absent, Required};
use lasthop_keys::{
    Presence, Problem, Takes, above, choice, derived, flag, integer, keys, number, other, shown, text, wrong_type,
};
use lasthop_scenario::HostsKind;
use toml::{Table, Value};

/// Accepted by `hosts`.
const HOSTS: &[(&str, HostsKind)] = &[("simulated", HostsKind::Simulated), ("kernel", HostsKind::Kernel)];
/// Accepted by `set`.
const SET: &str =
    "keys of a scenario with their values, as after --set, such as path.rtt_ms = 4 or \"hosts.*.era\" = \"modern\"";
/// Accepted by `y`.
pub(crate) const MEASURES: &str = "a number of a result, such as aggregate_goodput_mbps, rtt_ms.p95 or mean(flows.goodput_mbps), or a list of such numbers";
/// Accepted by `measures`.
pub(crate) const LIST_OF_MEASURES: &str = "a list of numbers of a result, as for figures.y";
/// Accepted by `where`.
const WHERE: &str = "the names of axes, each with a value or a list of its values, such as { delay = 256 }";
/// Accepted by `cells` and `each`.
const AXES: &str = "a list of names of axes, or \"case\"";

keys! {
    /// Above the first heading.
    pub(crate) struct StudyKeys {
        /// What the study shows, in one line.
        title: String = trimmed(200), Required;
        /// The paper and figure, or the standard and clause.
        source: String = trimmed(500), Required;
        /// What a reader of the report should know: what is ours and not the paper's, what is left out.
        note: Option<String> = trimmed(4_000), Absent;
        /// What is run, before anything is varied. Of another study it is that one's `[scenario]`, with its blocks `[[draw]]`.
        scenario: Value = any("the path of a scenario file or of a study, from the folder of this one, or a table [scenario] with the keys of a scenario"), Required;
        /// What to change in that scenario in every run.
        set: Option<Table> = table(SET), Absent;
        /// With how many seeds each point runs, counted from the scenario's; `--seeds` changes it. With one there are no confidence
        /// intervals.
        seeds: u64 = integer(1, 1_000), 5;
        /// How many scenarios are drawn, by the blocks `[[draw]]`; must be there with them. To figures and claims they are an axis
        /// called `scenario`, with the values `first_scenario` and so on.
        scenarios: Option<u64> = integer::<u64>(1, 5_000), Absent;
        /// The number of the first of them: other numbers are other scenarios.
        first_scenario: u64 = integer(1, 1_000_000), 1;
        /// What runs it: simulated hosts in virtual time, or this machine's own TCP in real time; `--hosts` changes it.
        hosts: HostsKind = choice(HOSTS), "simulated";
        /// What else to keep of each point, beside what the figures and claims look at.
        measures: Option<Vec<Value>> = list(LIST_OF_MEASURES), Absent;
        tables {
            /// What varies, one block for each axis; every combination is run.
            vary: Vec<VaryKeys>, Presence::IfGiven;
            /// What is drawn at random for each scenario.
            draw: Vec<DrawKeys>, Presence::IfGiven;
            /// What is set side by side: each case runs over all axes. To figures and claims they are an axis called `case`.
            cases: Vec<CaseKeys>, Presence::IfGiven;
            /// What to draw.
            figures: Vec<FigureKeys>, Presence::IfGiven;
            /// What is claimed, and whether it holds here.
            claims: Vec<ClaimKeys>, Presence::IfGiven;
        }
    }

    /// `[[vary]]`.
    pub(crate) struct VaryKeys {
        /// What figures and claims call it.
        axis: String = axis(), Required;
        /// What stands beside the axis of a figure, with its unit.
        label: Option<String> = trimmed(60), derived("`axis`", |_| None);
        /// What varies. Several keys vary together.
        key: Vec<String> = names("a key of a scenario, such as path.rtt_ms, or a list of keys"), Required;
        /// What it takes in turn.
        values: Vec<Value> = list("a list of at least one value, each different; with several keys, a list of lists with a value for each key"), Required;
        /// What figures and claims call the values.
        labels: Option<Vec<Value>> = list("a list with a text or a number for each of the values"),
            derived("the values; with several keys, those of the first", |_| None);
    }

    /// `[[draw]]`.
    pub(crate) struct DrawKeys {
        /// What other draws call it. Its random numbers depend on this name and on the number of the scenario alone.
        name: String = axis(), Required;
        /// What gets the value that is drawn: all of several keys get the same. Without it, only other draws look at it.
        key: Option<Vec<String>> = names("a key of a scenario, such as path.rtt_ms, or a list of keys"), Absent;
        /// What is drawn from; one of `values`, `uniform` and `log_uniform` must be there.
        values: Option<Vec<Value>> = list("a list of at least one value"), Absent;
        /// How often each of the values is drawn, relative to the others.
        weights: Option<Vec<f64>> = numbers("a list with a number from 0 for each of the values, one above 0"),
            derived("all the same", |_| None);
        /// A range: every number of it is as likely as any other.
        uniform: Option<(f64, f64)> = span("a list [from, to] of two numbers"), Absent;
        /// A range: every ratio of it is as likely, so that half of [1, 100] is below 10.
        log_uniform: Option<(f64, f64)> = span("a list [from, to] of two numbers above 0"), Absent;
        /// A number of a range is rounded to this many decimals; with 0 it is a whole number.
        decimals: u8 = integer(0, 6), 3;
        /// With which probability it is drawn at all; else its keys keep the values of the scenario.
        chance: f64 = number(0.0, 1.0), 1.0;
        /// The draws before it, each with the value or a list of the values with which this one is drawn. Of several draws for
        /// one key the last one that is drawn counts.
        when: Option<Table> = table("names of draws before it, each with a value or a list of values, such as { standard = \"802.11n\" }"),
            derived("always", |_| None);
    }

    /// `[[cases]]`.
    pub(crate) struct CaseKeys {
        /// What tables, figures and claims call it; different from the other cases'.
        label: String = trimmed(60), Required;
        /// What is different in this case.
        set: Option<Table> = table(SET), Absent;
        /// What runs this case, whatever the study and `--hosts` say, so that one kind of hosts can stand beside the other.
        hosts: Option<HostsKind> = choice(HOSTS), derived("those of the study", |_| None);
        tables {
            /// At each point of this case the value of one key is found by search; simulated hosts only.
            search: Option<SearchKeys>, Presence::IfGiven;
        }
    }

    /// `[cases.search]`.
    pub(crate) struct SearchKeys {
        /// What is searched: a key of a scenario that takes a number, such as hosts.0.bound_segments.
        key: String = trimmed(200), Required;
        /// The least value that is tried. Where it and `to` are whole numbers, only whole ones are.
        from: End = end("a number above 0"), Required;
        /// The greatest value that is tried.
        to: End = end("a number, not below from"), Required;
        /// How near the next values that were tried must be to the one that is found, relative to it; of whole numbers the next one
        /// is near enough.
        precision: f64 = number(0.0, 1.0), 0.05;
        /// What is to be as great as can be, at the point itself; every axis is a variable.
        maximise: Formula = formula("an expression over results, such as at(\"aggregate_goodput_mbps\")"), Required;
        tables {
            /// What the value should meet. Where no value meets all of them, the best without them is taken, and the output says so.
            conditions: Vec<ConditionKeys>, Presence::IfGiven;
        }
    }

    /// `[[figures]]`.
    pub(crate) struct FigureKeys {
        /// What it shows.
        title: String = trimmed(200), Required;
        /// What is along the level axis: the name of an axis.
        x: String = trimmed(60), Required;
        /// What is along the upright axis: the mean over the seeds, with its 95 % confidence interval. Of a list each has lines of
        /// its own.
        y: Value = any(MEASURES), Required;
        /// What the legend calls each of them, where y is a list.
        labels: Option<Vec<Value>> = list("a list of texts of 1 to 60 characters, one for each of y"),
            derived("the measures' names", |_| None);
        /// What stands beside the upright axis, with its unit.
        y_label: Option<String> = trimmed(80), derived("the name of the (first) measure", |_| None);
        /// One panel for each value of this axis, or of "case". What is neither `x` nor `panels` makes one line for each combination.
        panels: Option<String> = trimmed(60), derived("one panel", |_| None);
        /// Which points are drawn.
        r#where: Option<Table> = table(WHERE), derived("every point", |_| None);
        /// Which axes have equal steps for equal ratios.
        log: Option<(bool, bool)> = choice(&[("x", (true, false)), ("y", (false, true)), ("xy", (true, true))]), Absent;
        tables {
            /// Theory and published points to draw beside ours and to compare with.
            reference: Vec<ReferenceKeys>, Presence::IfGiven;
        }
    }

    /// `[[figures.reference]]`.
    pub(crate) struct ReferenceKeys {
        /// What it is called in the legend and by claims. Several blocks may have one label, each for other points (`where`).
        label: String = trimmed(60), Required;
        /// Where it is from, with the number of the table or equation.
        source: String = trimmed(500), Required;
        /// Published points; either these or `formula`.
        points: Option<Vec<Value>> = list("a list of pairs [x, y], x one of the values of the figure's axis x"), Absent;
        /// What `points` are multiplied with, where they count something else than we do.
        scale: Option<Formula> = formula("an expression without axes, such as 1472 / 1500"), derived("`1`", |_| None);
        /// Theory; either this or `points`.
        formula: Option<Formula> = formula("an expression over the names of axes, such as 1.22 / sqrt(loss)"), Absent;
        /// Which points it is about.
        r#where: Option<Table> = table(WHERE), derived("every point", |_| None);
    }

    /// `[[claims]]`.
    pub(crate) struct ClaimKeys {
        /// What tables call it.
        id: String = word("a word of 1 to 40 of a-z, 0-9 and -, different from the other claims'", 40, '-'), Required;
        /// The claim, in the words of its source.
        text: String = trimmed(1_000), Required;
        /// The paper with its section or figure, or another source of the claim.
        source: String = trimmed(500), Required;
        /// How the words are read as a number, where more than one reading is possible.
        reading: Option<String> = trimmed(1_000), Absent;
        /// The number that is claimed something about.
        value: Option<Formula> = formula("an expression over results, such as at(\"jain_index\", n=10)"),
            derived("with `conditions`, the share of the cells that meet them; else must be there", |_| None);
        /// What the share is counted over: every combination of the values of these axes is a cell.
        cells: Option<Vec<String>> = names(AXES), derived("with `conditions`, every axis but the cases and `each`", |_| None);
        /// Judge the claim for each value of these axes by itself.
        each: Option<Vec<String>> = names(AXES), Absent;
        /// Which points the claim is about.
        r#where: Option<Table> = table(WHERE), derived("every point", |_| None);
        /// The number that the source prints.
        paper: Option<f64> = number(f64::MIN, f64::MAX), Absent;
        /// The claim holds if the value is not below; one of `at_least`, `at_most` and `within` must be there.
        at_least: Option<f64> = number(f64::MIN, f64::MAX), Absent;
        /// The claim holds if the value is not above.
        at_most: Option<f64> = number(f64::MIN, f64::MAX), Absent;
        /// The claim holds if the value is this near to the paper's number, relative to it.
        within: Option<f64> = above(0.0, 10.0), Absent;
        /// Whether the command ends with exit code 1 where the claim does not hold. For what validates us, not for what papers
        /// claim.
        required: bool = flag(), false;
        tables {
            /// Which cells are looked at: those that meet all of it. The output says how many are left out.
            among: Vec<ConditionKeys>, Presence::IfGiven;
            /// What a cell must meet, all of it, to count. The claim's number is the share of the cells that do, and the output
            /// lists those that do not.
            conditions: Vec<ConditionKeys>, Presence::IfGiven;
        }
    }

    /// `[[claims.conditions]]`, and the conditions of a search.
    pub(crate) struct ConditionKeys {
        /// What the number is called in the list of the cells that fail.
        label: Option<String> = trimmed(60), derived("`value`", |_| None);
        /// The number; the axes of the cell are variables.
        value: Formula = formula("an expression over results, such as at(\"jain_index\", case=\"ARF\")"), Required;
        /// It must not be below; one of `at_least` and `at_most` must be there.
        at_least: Option<f64> = number(f64::MIN, f64::MAX), Absent;
        /// It must not be above.
        at_most: Option<f64> = number(f64::MIN, f64::MAX), Absent;
    }
}

/// The end of a search, and whether it is a whole number.
pub(crate) type End = (f64, bool);

fn end(accepted: &'static str) -> Takes<End> {
    other(accepted, |value| match value {
        Value::Integer(number) => Ok((*number as f64, true)),
        Value::Float(number) if number.is_finite() => Ok((*number, false)),
        value => Err(wrong_type(value)),
    })
}

/// Numbers, each finite.
fn numbers(accepted: &'static str) -> Takes<Vec<f64>> {
    let number = |value: &Value| {
        let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
        number.filter(|number| number.is_finite()).ok_or_else(|| format!("{} is no such number", shown(value)))
    };
    other(accepted, move |value| value.as_array().ok_or_else(|| wrong_type(value))?.iter().map(number).collect())
}

/// Two numbers, the first below the second.
fn span(accepted: &'static str) -> Takes<(f64, f64)> {
    numbers(accepted).and_then(move |numbers| match numbers[..] {
        [from, to] if from < to => Ok((from, to)),
        [from, to] => Err(Problem::new(format!("{from} is not below {to}"), accepted)),
        _ => Err(Problem::new(format!("it has {} numbers", numbers.len()), accepted)),
    })
}

fn any(accepted: &'static str) -> Takes<Value> {
    other(accepted, |value| Ok(value.clone()))
}

fn table(accepted: &'static str) -> Takes<Table> {
    other(accepted, |value| value.as_table().cloned().ok_or_else(|| wrong_type(value)))
}

fn list(accepted: &'static str) -> Takes<Vec<Value>> {
    other(accepted, |value| match value {
        Value::Array(values) if values.is_empty() => Err("the list is empty".to_owned()),
        Value::Array(values) => Ok(values.clone()),
        value => Err(wrong_type(value)),
    })
}

/// A name, or a list of at least one.
fn names(accepted: &'static str) -> Takes<Vec<String>> {
    let name = |value: &Value| match value.as_str().map(str::trim) {
        Some("") => Err("one of them is empty".to_owned()),
        name => name.map(str::to_owned).ok_or_else(|| wrong_type(value)),
    };
    other(accepted, move |value| match value {
        Value::Array(names) if names.is_empty() => Err("the list is empty".to_owned()),
        Value::Array(names) => names.iter().map(name).collect(),
        one => Ok(vec![name(one)?]),
    })
}

/// Text without the space around it.
fn trimmed(most: usize) -> Takes<String> {
    text(most).map(|text| text.trim().to_owned())
}

/// An expression, compiled.
fn formula(accepted: &'static str) -> Takes<Formula> {
    let text =
        other(accepted, |value| value.as_str().map(|text| text.trim().to_owned()).ok_or_else(|| wrong_type(value)));
    text.and_then(|text| Formula::new(text).map_err(Problem::from))
}

fn word(accepted: &'static str, most: usize, also: char) -> Takes<String> {
    other(accepted, move |value| {
        let word = value.as_str().ok_or_else(|| wrong_type(value))?;
        let legal = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == also;
        let fits = (1..=most).contains(&word.len()) && word.chars().all(legal);
        if fits { Ok(word.to_owned()) } else { Err(format!("{} is no such word", shown(value))) }
    })
}

/// The name of an axis; an expression can tell it from its own words.
fn axis() -> Takes<String> {
    const ACCEPTED: &str = "a word of 1 to 24 of a-z, 0-9 and _, beginning with a letter";
    let own = ["case", "not", "and", "or", "is", "in", "if", "else", "true", "false", "none"];
    word(ACCEPTED, 24, '_').and_then(move |name| {
        let is_own = own.contains(&name.as_str()) || functions().any(|function| function.name == name);
        match name.starts_with(|letter: char| letter.is_ascii_lowercase()) {
            false => Err(Problem::new(format!("\"{name}\" does not begin with a letter"), ACCEPTED)),
            true if is_own => {
                Err(Problem::new(format!("\"{name}\" has a meaning of its own in expressions"), ACCEPTED))
            }
            true => Ok(name),
        }
    })
}
