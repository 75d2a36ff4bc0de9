//! The JSON Schemas of a sentence and of its values. Must not differ from how `serde` writes them.

use super::{Statement, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

impl JsonSchema for Statement {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Statement".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

impl JsonSchema for Value {
    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A count, a quantity, a name, a list of names, or counts by name",
            "type": ["number", "string", "array", "object"],
            "items": { "type": "string" },
            "additionalProperties": { "type": "integer", "minimum": 0 },
        })
    }
}
