//! Readings in JSON: a number where the value is known, else `null`, and then the object that has
//! it has its bounds and the reason in `bounds`.
//!
//! `{"avoidable": null, "bounds": {"avoidable": {"low": 0, "high": 6, "why": "..."}}}`
//!
//! An object learns of the bounds in its fields only when it is complete. So a reading that is not
//! known serialises as an object of its own, and [`with_bounds`] moves those of a whole document to
//! their places.

use crate::Reading;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

/// The key of the bounds in an object with readings.
pub const BOUNDS: &str = "bounds";

/// The key that marks a reading; no document has a field of this name.
const MARK: &str = "$reading";

/// The largest integer that a double holds exactly with all below it.
const LARGEST_INTEGER: f64 = 9_007_199_254_740_992.0;

/// A number as JSON has it: an integer where it is one.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() <= LARGEST_INTEGER {
        Value::from(value as i64)
    } else {
        Value::from(value)
    }
}

impl Reading {
    /// Its entry in `bounds`; absent where the value is known.
    pub fn bounds(&self) -> Option<Value> {
        let why = self.why()?;
        let mut bounds = Map::new();
        let ends = [("low", self.low()), ("high", self.high())];
        for (end, value) in ends.into_iter().filter(|(_, value)| value.is_finite()) {
            bounds.insert(end.to_owned(), number(value));
        }
        if let Some(value) = self.estimate() {
            bounds.insert("inferred".to_owned(), number(value));
        }
        bounds.insert("why".to_owned(), why.to_string().into());
        Some(Value::Object(bounds))
    }
}

impl Serialize for Reading {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(bounds) = self.bounds() else {
            return number(self.low()).serialize(serializer);
        };
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(MARK, &bounds)?;
        map.end()
    }
}

/// A document with the bounds of its readings in the objects that have them.
///
/// # Errors
/// The document cannot be serialised.
pub fn with_bounds(document: &impl Serialize) -> serde_json::Result<Value> {
    let mut document = serde_json::to_value(document)?;
    lift(&mut document);
    Ok(document)
}

fn lift(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(lift),
        Value::Object(fields) => {
            let mut bounds = Map::new();
            for (key, field) in fields.iter_mut() {
                match take_bounds(field) {
                    Some(own) => {
                        bounds.insert(key.clone(), own);
                    }
                    None => lift(field),
                }
            }
            if !bounds.is_empty() {
                fields.insert(BOUNDS.to_owned(), Value::Object(bounds));
            }
        }
        _ => {}
    }
}

/// Takes the bounds of a reading that is not known, and leaves `null`.
fn take_bounds(field: &mut Value) -> Option<Value> {
    let bounds = field.as_object_mut()?.remove(MARK)?;
    *field = Value::Null;
    Some(bounds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Why;
    use serde::Serialize;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[derive(Serialize)]
    struct Connections {
        opened: Reading,
        needed: Reading,
    }

    #[derive(Serialize)]
    struct Document {
        #[serde(flatten)]
        connections: Connections,
        share: Reading,
        failed: BTreeMap<&'static str, Reading>,
        parts: Vec<Connections>,
    }

    fn connections() -> Connections {
        Connections {
            opened: Reading::count(13),
            needed: Reading::between(2.0, 8.0, Why::OnlyRange),
        }
    }

    #[test]
    fn bounds_stand_in_the_object_that_has_the_figure() {
        let document = Document {
            connections: connections(),
            share: Reading::known(0.5),
            failed: BTreeMap::from([("refused", Reading::at_least(1.0, Why::NoTraffic))]),
            parts: vec![connections()],
        };
        let needed = json!({"low": 2, "high": 8, "why": "only this range is known"});
        let refused = json!({"low": 1, "why": "no request and no connection was observed"});
        assert_eq!(
            with_bounds(&document).unwrap(),
            json!({
                "opened": 13,
                "needed": null,
                "share": 0.5,
                "failed": {"refused": null, "bounds": {"refused": refused}},
                "parts": [{"opened": 13, "needed": null, "bounds": {"needed": needed.clone()}}],
                "bounds": {"needed": needed}
            })
        );
    }

    #[test]
    fn nothing_known_has_a_reason_alone() {
        let one = BTreeMap::from([("idle", Reading::unknown(Why::Baseline))]);
        let why = json!({"why": "the others are compared with it"});
        assert_eq!(
            with_bounds(&one).unwrap(),
            json!({"idle": null, "bounds": {"idle": why}})
        );
    }
}
