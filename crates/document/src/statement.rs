//! Sentences with the values that they state. Findings hold these; JSON has the written sentence
//! and the values next to it.
//!
//! The formatter is [`Value`]'s `Display`: on top of `intact_units`, the same digits as in the
//! tables of a page. A sentence is made by `statement!`, whose template takes no value that is not
//! declared. Must not know a rule.

#[cfg(feature = "schema")]
mod schema;

use intact_units::number;
use intact_units::plural::counted;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::ops::Deref;

/// A written sentence, and the values in it by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statement {
    text: String,
    values: Vec<(&'static str, Value)>,
}

/// A value in a sentence. The alternative form (`{connections:#}`) adds the verb: `1 connection
/// was`, `3 connections were`.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count with its noun.
    Count(u64, &'static str),
    /// A count whose noun is in the template.
    Number(u64),
    /// A measured duration in milliseconds.
    Duration(f64),
    /// A timer's length in milliseconds.
    Timer(f64),
    /// Whole seconds as a header field has them; the unit is in the template.
    Seconds(u64),
    /// A part of 1.
    Share(f64),
    /// A rate a second; the unit is in the template.
    Rate(f64),
    /// An amount of data.
    Bytes(u64),
    /// A name, an id, an address.
    Text(String),
    /// Several of these.
    List(Vec<String>),
    /// Counts by what they count: `refused 3, timeout 2`.
    Counts(Vec<(String, u64)>),
}

impl Statement {
    /// A text that is complete by itself, such as the detail of a failure.
    pub fn text(text: impl Into<String>) -> Statement {
        Statement {
            text: text.into(),
            values: Vec::new(),
        }
    }

    /// For `statement!`: a written template and the values in it.
    pub fn written(text: String, values: Vec<(&'static str, Value)>) -> Statement {
        Statement { text, values }
    }

    /// With another statement after it, parted by a semicolon.
    pub fn and(self, other: impl Into<Statement>) -> Statement {
        self.then("; ", other)
    }

    /// With another statement right after `separator`.
    pub fn then(mut self, separator: &str, other: impl Into<Statement>) -> Statement {
        let other = other.into();
        if !self.text.is_empty() && !other.text.is_empty() {
            self.text.push_str(separator);
        }
        self.text.push_str(&other.text);
        self.values.extend(other.values);
        self
    }

    /// The values: the name with its unit, and the value.
    pub fn values(&self) -> impl Iterator<Item = (String, &Value)> {
        let values = self.values.iter();
        values.map(|(name, value)| (format!("{name}{}", value.unit()), value))
    }
}

impl Deref for Statement {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&'static str> for Statement {
    fn from(text: &'static str) -> Statement {
        Statement::text(text)
    }
}

impl From<String> for Statement {
    fn from(text: String) -> Statement {
        Statement::text(text)
    }
}

impl From<&Statement> for String {
    fn from(statement: &Statement) -> String {
        statement.text.clone()
    }
}

impl Serialize for Statement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl Value {
    /// The end of the value's name in JSON.
    fn unit(&self) -> &'static str {
        match self {
            Value::Duration(_) | Value::Timer(_) => "_ms",
            Value::Seconds(_) => "_s",
            Value::Share(_) => "_share",
            Value::Rate(_) => "_per_s",
            Value::Bytes(_) => "_bytes",
            Value::Count(..)
            | Value::Number(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Counts(_) => "",
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(count, noun) => {
                f.write_str(&counted(*count, noun))?;
                match (f.alternate(), count) {
                    (true, 1) => f.write_str(" was"),
                    (true, _) => f.write_str(" were"),
                    (false, _) => Ok(()),
                }
            }
            Value::Number(count) => f.write_str(&number::count(*count)),
            Value::Duration(ms) => f.write_str(&number::time(*ms)),
            Value::Timer(ms) => f.write_str(&number::timer(*ms)),
            // a header field has no separators
            Value::Seconds(seconds) => seconds.fmt(f),
            Value::Share(share) => f.write_str(&number::whole_percent(*share)),
            Value::Rate(rate) => f.write_str(&number::per_second(*rate)),
            Value::Bytes(bytes) => f.write_str(&counted(*bytes, "byte")),
            Value::Text(text) => f.write_str(text),
            Value::List(items) => f.write_str(&items.join(", ")),
            Value::Counts(counts) => {
                let each = counts.iter();
                let each = each.map(|(what, count)| format!("{what} {}", number::count(*count)));
                f.write_str(&each.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Count(count, _)
            | Value::Number(count)
            | Value::Seconds(count)
            | Value::Bytes(count) => serializer.serialize_u64(*count),
            Value::Duration(value)
            | Value::Timer(value)
            | Value::Share(value)
            | Value::Rate(value) => serializer.serialize_f64(*value),
            Value::Text(text) => serializer.serialize_str(text),
            Value::List(items) => items.serialize(serializer),
            Value::Counts(counts) => {
                serializer.collect_map(counts.iter().map(|(what, count)| (what, count)))
            }
        }
    }
}

/// Connections.
pub fn connections(count: u64) -> Value {
    Value::Count(count, "connection")
}

/// Requests.
pub fn requests(count: u64) -> Value {
    Value::Count(count, "request")
}

/// A measured duration that is known in nanoseconds.
pub fn nanos(nanos: f64) -> Value {
    Value::Duration(nanos / 1e6)
}

/// A timer's length that is known in nanoseconds.
pub fn timer_nanos(nanos: u64) -> Value {
    Value::Timer(nanos as f64 / 1e6)
}

/// A timer's length that is known in seconds.
pub fn timer_s(seconds: f64) -> Value {
    Value::Timer(seconds * 1e3)
}

/// A name, an id, an address.
pub fn text(text: impl Display) -> Value {
    Value::Text(text.to_string())
}

/// Several names.
pub fn list<T: Display>(items: impl IntoIterator<Item = T>) -> Value {
    Value::List(items.into_iter().map(|item| item.to_string()).collect())
}

/// Counts by what they count, in the order in which they come.
pub fn counts<K: Display>(counts: impl IntoIterator<Item = (K, u64)>) -> Value {
    let counts = counts.into_iter();
    Value::Counts(
        counts
            .map(|(what, count)| (what.to_string(), count))
            .collect(),
    )
}

/// Values of several statements by name, as JSON has them. A name stands for one value.
pub fn merged<'a>(statements: impl IntoIterator<Item = &'a Statement>) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for (name, value) in statements.into_iter().flat_map(Statement::values) {
        let earlier = all.insert(name, value.clone());
        debug_assert!(
            earlier.as_ref().is_none_or(|earlier| earlier == value),
            "two values of one name: {earlier:?} and {value:?}"
        );
    }
    all
}

/// A [`Statement`]: a template, and each value that it names.
#[macro_export]
#[doc(hidden)]
macro_rules! __statement {
    ($template:literal $(, $name:ident = $value:expr)+ $(,)?) => {
        match ($($value,)+) {
            ($($name,)+) => {
                // by way of concat! the template cannot take a variable that is not declared here
                let text = format!(concat!($template) $(, $name = $name)+);
                $crate::statement::Statement::written(text, vec![$((stringify!($name), $name)),+])
            }
        }
    };
}
pub use crate::__statement as statement;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_its_sentence_and_its_values() {
        let said = statement!(
            "{opened:#} opened, {setup} of setup each",
            opened = connections(1_200),
            setup = Value::Duration(5.19)
        );
        assert_eq!(
            &*said,
            "1,200 connections were opened, 5.19 ms of setup each"
        );
        let values = merged([&said]);
        assert_eq!(values["opened"], Value::Count(1_200, "connection"));
        assert_eq!(values["setup_ms"], Value::Duration(5.19));
        let json = serde_json::to_value(&values).unwrap();
        assert_eq!(json, serde_json::json!({"opened": 1200, "setup_ms": 5.19}));
    }

    #[test]
    fn statements_are_parted_only_where_both_say_something() {
        let one = statement!("{failed:#} lost", failed = requests(1));
        let two = Statement::text("").and(one.clone()).and("");
        assert_eq!(two, one);
        let three = one.and(statement!("{reuse} reused", reuse = Value::Share(0.5)));
        assert_eq!(&*three, "1 request was lost; 50 % reused");
        assert_eq!(merged([&three]).len(), 2);
    }

    #[test]
    fn a_value_is_written_as_in_a_table() {
        for (value, written) in [
            (Value::Duration(5.19), number::time(5.19)),
            (Value::Timer(15_400.0), "15.4 s".to_owned()),
            (Value::Number(1_200), "1,200".to_owned()),
            (Value::Seconds(1_200), "1200".to_owned()),
            (Value::Share(0.66), "66 %".to_owned()),
            (Value::Rate(1_234.4), "1,234".to_owned()),
            (Value::Bytes(1), "1 byte".to_owned()),
            (list([1, 2]), "1, 2".to_owned()),
            (counts([("refused", 1_200)]), "refused 1,200".to_owned()),
        ] {
            assert_eq!(value.to_string(), written);
        }
    }
}
