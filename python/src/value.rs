//! Python's values as TOML's, and JSON text as Python's values.

use lasthop_scenario::Override;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use toml::{Table, Value};

use crate::errors;

/// The most lists and dicts within each other: the deepest scenario has five, and a list may contain itself.
const MOST_LEVELS: usize = 64;

/// `what` names the value in the message if it is none of a scenario's.
pub(crate) fn toml_of(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Value> {
    if what.matches(['.', '[']).count() > MOST_LEVELS {
        let begin: String = what.chars().take(40).collect();
        return Err(errors::argument(format!("{begin}…: more than {MOST_LEVELS} lists and dicts within each other")));
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Boolean(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        let number = value.extract().map_err(|_| {
            errors::argument(format!("{what}: {value} has more than 64 bits; accepted: numbers of 64 bits"))
        });
        return Ok(Value::Integer(number?));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        let number = number.value();
        let finite = number.is_finite().then_some(Value::Float(number));
        return finite.ok_or_else(|| errors::argument(format!("{what}: {number}; accepted: finite numbers")));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Value::String(value.extract()?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.enumerate();
        let items = items.map(|(index, item)| toml_of(&item?, &format!("{what}[{index}]")));
        return items.collect::<PyResult<Vec<_>>>().map(Value::Array);
    }
    if let Ok(table) = value.cast::<PyDict>() {
        return table_of(table, what).map(Value::Table);
    }
    // The numbers of NumPy.
    if let Ok(plain) = value.call_method0("item")
        && !plain.is(value)
    {
        return toml_of(&plain, what);
    }
    let kind = value.get_type().name()?;
    Err(errors::argument(format!("{what}: a {kind} is no value of a scenario; accepted: text, numbers, lists, dicts")))
}

pub(crate) fn table_of(table: &Bound<'_, PyDict>, what: &str) -> PyResult<Table> {
    let pair = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let key = text_of_key(&key)?;
        let value = toml_of(&value, &if what.is_empty() { key.clone() } else { format!("{what}.{key}") })?;
        Ok((key, value))
    };
    table.iter().map(pair).collect()
}

/// `{"hosts.*.policy": "formula"}` as overrides.
pub(crate) fn overrides_of(set: &Bound<'_, PyDict>) -> PyResult<Vec<Override>> {
    let one = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let key = text_of_key(&key)?;
        let value = toml_of(&value, &key)?;
        Override::of(&key, &value).map_err(|error| errors::scenario(&error, ""))
    };
    set.iter().map(one).collect()
}

/// A key of a dict, which is text.
pub(crate) fn text_of_key(key: &Bound<'_, PyAny>) -> PyResult<String> {
    key.extract().map_err(|_| errors::argument(format!("{key}: a key of a dict; accepted: text")))
}

/// Text of JSON as Python's values.
pub(crate) fn from_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (text,))
}
