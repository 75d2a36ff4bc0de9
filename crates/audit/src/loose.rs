//! Values whose type nobody agrees on: numbers as strings, strings as numbers, null for nothing. Nothing here fails.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A value of any type, as far as it is of use.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Loose {
    /// Absent, null, or a list or object.
    #[default]
    Nothing,
    Number(f64),
    Text(String),
    Flag(bool),
}

impl Loose {
    /// A number; one written as text too.
    pub(crate) fn number(&self) -> Option<f64> {
        let number = match self {
            Loose::Number(number) => *number,
            Loose::Text(text) => text.trim().parse().ok()?,
            Loose::Nothing | Loose::Flag(_) => return None,
        };
        number.is_finite().then_some(number)
    }

    /// A number that is not negative: -1 stands for unknown.
    pub(crate) fn count(&self) -> Option<u64> {
        let number = self.number().filter(|number| *number >= 0.0)?;
        Some(number as u64)
    }

    /// Text that is not empty; a number in its digits.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Loose::Text(text) if !text.is_empty() => Some(text.clone()),
            Loose::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Whether it says yes: true, a text that is not empty, a number but zero.
    pub(crate) fn is_set(&self) -> bool {
        match self {
            Loose::Nothing => false,
            Loose::Number(number) => *number != 0.0,
            Loose::Text(text) => !text.is_empty(),
            Loose::Flag(flag) => *flag,
        }
    }
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Loose, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Loose;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Loose, E> {
        Ok(Loose::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Loose, E> {
        Ok(Loose::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Loose, E> {
        Ok(Loose::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Loose, E> {
        Ok(Loose::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Loose, E> {
        Ok(Loose::Text(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Loose, E> {
        Ok(Loose::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Loose, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Loose::Nothing)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Loose, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Loose::Nothing)
    }
}
