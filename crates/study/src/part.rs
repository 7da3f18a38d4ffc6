//! The view of a result in expressions.
//!
//! ```text
//! rtt_ms.mean                             a number in a table
//! flows.goodput_mbps                      a list: the goodput of each flow
//! flows(direction="up", block=1)          those flows only: each argument compares a field with a word or a number, or
//! flows(block=[0, 2])                     with a list of them, any of which will do
//! policies.hosts[0].terminals_max         of one element, counted from 0
//! ```
//!
//! Every part with a host also has the field `block`: the index of its `[[hosts]]` block.

use crate::problem::Problem;
use minijinja::value::{Enumerator, Kwargs, Object, ObjectRepr, Value, ValueKind};
use minijinja::{Error, State};
use serde_json::Value as Json;
use std::sync::Arc;

/// A result as JSON.
#[derive(Debug)]
pub(crate) struct Whole {
    value: Json,
    /// Whether this is the example for checking expressions. It has one element of each list, which stands for all. A
    /// field missing here exists in no result.
    is_example: bool,
}

/// A part of a result, or the same part of several elements of a list.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    of: Arc<Whole>,
    /// JSON pointers.
    at: Vec<String>,
    is_list: bool,
}

impl Part {
    /// A whole result. After a search it has `search` beside the measurements.
    pub(crate) fn whole(mut value: Json, is_example: bool) -> Self {
        let table = value.as_object_mut().expect("a result is a table");
        let scenario = table.remove("scenario").unwrap_or_default();
        add_blocks(&mut value, &blocks(&scenario));
        Self { of: Arc::new(Whole { value, is_example }), at: vec![String::new()], is_list: false }
    }

    /// Whether it has a part of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.first().is_some_and(|value| value.get(name).is_some())
    }

    /// The names of the numbers, tables and lists inside.
    pub(crate) fn names(&self) -> Vec<&str> {
        let usable = |(key, value): (_, &Json)| {
            (!value.is_string() && !value.is_boolean() && key != "schema_version").then_some(key)
        };
        let table = self.first().and_then(Json::as_object).into_iter().flatten();
        table.filter_map(|(key, value)| usable((key.as_str(), value))).collect()
    }

    /// The error for an expression that yields this part instead of a number.
    pub(crate) fn is_no_number(&self, expression: &str, reduces: &[&str]) -> Problem {
        if self.first().is_some_and(Json::is_object) {
            let path = self.path();
            let parts: Vec<String> = self.names().iter().map(|name| joined(&path, name)).collect();
            return Problem::new(format!("{path} in a result is a table, not a number"), parts.join(", "));
        }
        let ways: Vec<String> = reduces.iter().map(|reduce| format!("{reduce}({expression})")).collect();
        Problem::new(format!("{expression} is a number of each of several"), ways.join(", "))
    }

    fn is_whole(&self) -> bool {
        self.at.first().is_some_and(String::is_empty)
    }

    fn first(&self) -> Option<&Json> {
        self.of.value.pointer(self.at.first()?)
    }

    /// The path in a reader's notation, without list indices where one element stands for all.
    fn path_of(&self, pointer: &str) -> String {
        pointer.split('/').skip(1).fold(String::new(), |path, step| match step.parse::<usize>() {
            Ok(_) if self.of.is_example => path,
            Ok(place) => format!("{path}[{place}]"),
            Err(_) => joined(&path, step),
        })
    }

    fn path(&self) -> String {
        self.at.first().map_or_else(String::new, |pointer| self.path_of(pointer))
    }

    fn inside(&self, name: &str) -> Result<Value, Problem> {
        let mut part = Self { of: Arc::clone(&self.of), at: Vec::with_capacity(self.at.len()), is_list: self.is_list };
        for pointer in &self.at {
            let inner = format!("{pointer}/{name}");
            match self.of.value.pointer(&inner) {
                Some(Json::Null) | None => return Err(self.absent(pointer, name)),
                Some(Json::Array(elements)) => {
                    part.is_list = true;
                    part.at.extend((0..elements.len()).map(|place| format!("{inner}/{place}")));
                }
                Some(_) => part.at.push(inner),
            }
        }
        Ok(part.into_value())
    }

    fn absent(&self, pointer: &str, name: &str) -> Problem {
        let path = self.path_of(pointer);
        if !self.of.is_example {
            return Problem::new(format!("{} has no value in this result", joined(&path, name)), "");
        }
        if !self.first().is_some_and(Json::is_object) {
            return Problem::new(format!("{path} in a result has no parts"), format!("{path} without .{name}"));
        }
        let within = if path.is_empty() { "a result".to_owned() } else { format!("{path} of a result") };
        let unknown = Problem::unknown(format!("there is no {name} in {within}"), name, &self.names());
        let accepted: Vec<String> = self.names().iter().map(|name| joined(&path, name)).collect();
        let did_you_mean = unknown.did_you_mean.as_ref().map(|name| joined(&path, name));
        Problem { did_you_mean, accepted: accepted.join(", "), ..unknown }
    }

    fn element(&self, place: usize) -> Result<Value, Problem> {
        let at = self.at.get(if self.of.is_example { 0 } else { place });
        let pointer = at.ok_or_else(|| {
            let problem = format!("there are {} of what element {place} is asked of", self.at.len());
            Problem::new(problem, "an element that every run has, counted from 0")
        })?;
        Ok(Self { of: Arc::clone(&self.of), at: vec![pointer.clone()], is_list: false }.into_value())
    }

    /// The elements with these field values.
    fn those(&self, wanted: &Kwargs) -> Result<Value, Problem> {
        let mut part = self.clone();
        for name in wanted.args() {
            let value: Value =
                wanted.get(name).map_err(|error| Problem::new(error.to_string(), "a word or a number"))?;
            if self.of.is_example {
                self.check_field(name)?;
            } else {
                let field = |pointer: &String| self.of.value.pointer(&format!("{pointer}/{name}")).and_then(plain);
                let any: Vec<Value> = match value.kind() {
                    ValueKind::Seq => value.try_iter().into_iter().flatten().collect(),
                    _ => vec![value],
                };
                part.at.retain(|pointer| field(pointer).is_some_and(|field| any.contains(&field)));
            }
        }
        Ok(part.into_value())
    }

    fn check_field(&self, name: &str) -> Result<(), Problem> {
        let fields = self.first().and_then(Json::as_object).into_iter().flatten();
        let fields: Vec<&str> =
            fields.filter(|(_, value)| plain(value).is_some()).map(|(field, _)| field.as_str()).collect();
        if fields.contains(&name) {
            return Ok(());
        }
        Err(Problem::unknown(format!("{} cannot be picked by {name}", self.path()), name, &fields))
    }

    /// Numbers and words are themselves.
    fn into_value(self) -> Value {
        let leaf = if self.is_list { None } else { self.first().and_then(plain) };
        leaf.unwrap_or_else(|| Value::from_object(self))
    }
}

impl Object for Part {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        if self.is_list { ObjectRepr::Seq } else { ObjectRepr::Map }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let value = match (key.as_str(), key.as_usize()) {
            // Not a field: perhaps a function.
            (Some(name), _) if self.is_whole() && !self.has(name) => return None,
            (Some(name), _) => self.inside(name),
            (None, Some(place)) if self.is_list => self.element(place),
            _ => Err(Problem::new(format!("{} in a result is no list", self.path()), "a list such as flows")),
        };
        Some(value.unwrap_or_else(|problem| Value::from(Error::from(problem))))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        if self.is_list { Enumerator::Seq(self.at.len()) } else { Enumerator::Empty }
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, arguments: &[Value]) -> Result<Value, Error> {
        let path = self.path();
        if !self.is_list {
            return Err(Problem::new(format!("{path} in a result is no list"), format!("{path} without (...)")).into());
        }
        match arguments {
            [wanted] if wanted.is_kwargs() => Ok(self.those(&Kwargs::try_from(wanted.clone())?)?),
            _ => {
                Err(Problem::new(format!("{path}() takes fields and their values"), format!("{path}(block=0)")).into())
            }
        }
    }
}

/// A number, always as a float, a word or a flag.
fn plain(value: &Json) -> Option<Value> {
    match value {
        Json::Number(number) => number.as_f64().map(Value::from),
        Json::String(text) => Some(Value::from(text.as_str())),
        Json::Bool(is) => Some(Value::from(*is)),
        _ => None,
    }
}

pub(crate) fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The `[[hosts]]` block of each host, by its number.
fn blocks(scenario: &Json) -> Vec<usize> {
    let counts = scenario["hosts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let count = |block: &Json| block["count"].as_u64().unwrap_or(1) as usize;
    counts.iter().enumerate().flat_map(|(index, block)| std::iter::repeat_n(index, count(block))).collect()
}

/// Adds `block` to everything with a `host`.
fn add_blocks(value: &mut Json, blocks: &[usize]) {
    match value {
        Json::Array(elements) => elements.iter_mut().for_each(|element| add_blocks(element, blocks)),
        Json::Object(table) => {
            table.values_mut().for_each(|inner| add_blocks(inner, blocks));
            let host = table.get("host").and_then(Json::as_u64);
            if let Some(block) = host.and_then(|host| blocks.get(host as usize)) {
                table.insert("block".to_owned(), Json::from(*block));
            }
        }
        _ => {}
    }
}
