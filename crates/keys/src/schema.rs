//! A section as JSON Schema (draft 2020-12). Editors use it to complete keys, show their docs and underline mistakes.

use crate::kind::Kind;
use crate::section::{Key, Presence, Preset, Section};
use serde_json::{Map, Value, json};

impl Section {
    /// The schema of a file with this table at its top. Conditions on several keys are left out.
    pub fn json_schema(&self, title: &str) -> Value {
        let mut schema = self.schema();
        schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        schema["title"] = json!(title);
        schema
    }

    fn schema(&self) -> Value {
        let keys = self.keys.iter().map(|key| (key.name.to_owned(), key.schema()));
        let children = self.children.iter().map(|child| {
            let inside = child.section.schema();
            let mut schema = match (child.repeated, child.presence) {
                (false, _) => inside,
                (true, Presence::Always | Presence::Any) => json!({"type": "array", "items": inside}),
                (true, _) => json!({"type": "array", "items": inside, "minItems": 1}),
            };
            schema["description"] = json!(child.meaning);
            (child.name.to_owned(), schema)
        });
        let properties: Map<String, Value> = keys.chain(children).collect();
        let keys = self.keys.iter().filter(|key| matches!(key.default, Preset::Required)).map(|key| key.name);
        let children =
            self.children.iter().filter(|child| child.presence == Presence::Required).map(|child| child.name);
        let required: Vec<&str> = keys.chain(children).collect();
        let mut schema = json!({"type": "object", "properties": properties});
        schema["additionalProperties"] = self.others.as_ref().map_or(json!(false), Key::schema);
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }
}

impl Key {
    fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        schema["description"] = match &self.default {
            Preset::Required => json!(self.meaning),
            preset => json!(format!("{} Default: {}.", self.meaning, preset.describe())),
        };
        if let Preset::Value(value) = &self.default {
            schema["default"] = json!(value);
        }
        schema
    }
}

impl Kind {
    fn schema(&self) -> Value {
        let node = "^[A-Za-z0-9_.#-]{1,32}$";
        match self {
            Self::Text(most) => json!({"type": "string", "minLength": 1, "maxLength": most}),
            Self::Line(most) => {
                json!({"type": "string", "minLength": 1, "maxLength": most, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"})
            }
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Self::Name => json!({"type": "string", "pattern": "^([a-z0-9_-]{1,15}|.+\\.h)$"}),
            Self::Other(words) => json!({"title": words}),
            Self::Number { from: f64::MIN, to: f64::MAX, .. } => json!({"type": "number"}),
            Self::Number { from, to, above: false } => json!({"type": "number", "minimum": from, "maximum": to}),
            Self::Number { from, to, above: true } => {
                json!({"type": "number", "exclusiveMinimum": from, "maximum": to})
            }
            Self::Integer { from, to } => json!({"type": "integer", "minimum": from, "maximum": to}),
            Self::Choice(words) => json!({"type": "string", "enum": words}),
            Self::Range { to } => {
                let number = json!({"type": "number", "minimum": 0, "maximum": to});
                json!({"oneOf": [number, {"type": "array", "items": number, "minItems": 2, "maxItems": 2}]})
            }
            Self::Flag => json!({"type": "boolean"}),
            Self::Node => json!({"type": "string", "pattern": node}),
            Self::Ends => {
                json!({"type": "array", "items": {"type": "string", "pattern": node}, "minItems": 2, "maxItems": 2})
            }
            Self::Integers { from, to, columns } => {
                let number = json!({"type": "integer", "minimum": from, "maximum": to});
                let row = match columns {
                    1 => number,
                    _ => json!({"type": "array", "items": number, "minItems": columns, "maxItems": columns}),
                };
                json!({"type": "array", "items": row, "minItems": 1, "maxItems": 64})
            }
        }
    }
}
