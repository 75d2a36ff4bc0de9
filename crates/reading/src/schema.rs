//! The JSON Schema of readings: a number or null, with `bounds` in the object that has them.

use crate::{BOUNDS, Reading};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use std::borrow::Cow;

/// The name of the definition of a reading.
const NAME: &str = "Reading";
/// The name of the definition of the bounds of an object.
const BOUNDS_NAME: &str = "Bounds";

impl JsonSchema for Reading {
    fn schema_name() -> Cow<'static, str> {
        NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A figure: a number where its value is known, otherwise null, and then its bounds are in `bounds` of the same object.",
            "type": ["number", "null"]
        })
    }
}

/// Adds `bounds` to every object of a schema that has a reading.
pub fn add_bounds(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(add_bounds),
        Value::Object(fields) => {
            fields.values_mut().for_each(add_bounds);
            let reference = format!("#/$defs/{NAME}");
            let is_reading = |field: &Value| {
                field.get("$ref").and_then(Value::as_str) == Some(reference.as_str())
                    || field
                        .get("allOf")
                        .is_some_and(|all| all.to_string().contains(&reference))
            };
            // a map of readings; keys that are numbers have a pattern
            let by_pattern = fields.get("patternProperties").and_then(Value::as_object);
            let mut values = by_pattern.into_iter().flat_map(|all| all.values());
            let own = values.any(is_reading)
                || fields.get("additionalProperties").is_some_and(is_reading);
            let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
            if let Some(properties) = properties {
                if own || properties.values().any(is_reading) {
                    properties.insert(BOUNDS.to_owned(), reference_to(BOUNDS_NAME));
                }
            } else if own {
                fields.insert(
                    "properties".to_owned(),
                    json!({BOUNDS: reference_to(BOUNDS_NAME)}),
                );
            }
            let all = fields.get_mut("$defs").and_then(Value::as_object_mut);
            if let Some(all) = all.filter(|all| all.contains_key(NAME)) {
                all.insert(BOUNDS_NAME.to_owned(), bounds());
            }
        }
        _ => {}
    }
}

fn reference_to(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

fn bounds() -> Value {
    json!({
        "description": "The bounds of each figure of this object that is null, by its key, with the reason. An end that is not known is absent; `inferred` is what was inferred of a value that was not observed.",
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {
                "low": {"type": "number"},
                "high": {"type": "number"},
                "inferred": {"type": "number"},
                "why": {"type": "string"}
            },
            "required": ["why"],
            "additionalProperties": false
        }
    })
}
