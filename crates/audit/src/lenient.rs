//! JSON values of any type: numbers as strings, strings as numbers, null for a missing value.
//! Reading one never fails.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The text behind these parts of JSON, which may have white space before each.
pub(crate) fn behind<'a>(text: &'a [u8], parts: &[&str]) -> Option<&'a [u8]> {
    parts.iter().try_fold(text, |rest, part| {
        rest.trim_ascii_start().strip_prefix(part.as_bytes())
    })
}

/// A JSON value of any type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Lenient {
    /// Absent, null, a list or an object.
    #[default]
    Nothing,
    Number(f64),
    Text(String),
    Flag(bool),
}

impl Lenient {
    /// The value as a number, also if it is written as text.
    pub(crate) fn number(&self) -> Option<f64> {
        let number = match self {
            Lenient::Number(number) => *number,
            Lenient::Text(text) => text.trim().parse().ok()?,
            Lenient::Nothing | Lenient::Flag(_) => return None,
        };
        number.is_finite().then_some(number)
    }

    /// The value as a number that is not negative: -1 means unknown.
    pub(crate) fn count(&self) -> Option<u64> {
        let number = self.number().filter(|number| *number >= 0.0)?;
        Some(number as u64)
    }

    /// The value as text that is not empty; a number as its digits.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Lenient::Text(text) if !text.is_empty() => Some(text.clone()),
            Lenient::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Whether the value is true, a text that is not empty, or a number other than zero.
    pub(crate) fn is_set(&self) -> bool {
        match self {
            Lenient::Nothing => false,
            Lenient::Number(number) => *number != 0.0,
            Lenient::Text(text) => !text.is_empty(),
            Lenient::Flag(flag) => *flag,
        }
    }
}

impl<'de> Deserialize<'de> for Lenient {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lenient, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

/// The text of a JSON value, borrowed where possible: empty for a list, an object or `null`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LenientText<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for LenientText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LenientText<'a>, D::Error> {
        deserializer.deserialize_any(AnyText)
    }
}

struct AnyText;

impl<'de> Visitor<'de> for AnyText {
    type Value = LenientText<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<LenientText<'de>, E> {
        Ok(LenientText(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<LenientText<'de>, E> {
        Ok(LenientText(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E>(self, _: bool) -> Result<LenientText<'de>, E> {
        Ok(LenientText::default())
    }

    fn visit_i64<E>(self, number: i64) -> Result<LenientText<'de>, E> {
        Ok(LenientText(Cow::Owned(number.to_string())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<LenientText<'de>, E> {
        Ok(LenientText(Cow::Owned(number.to_string())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<LenientText<'de>, E> {
        Ok(LenientText(Cow::Owned(number.to_string())))
    }

    fn visit_unit<E>(self) -> Result<LenientText<'de>, E> {
        Ok(LenientText::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LenientText<'de>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(LenientText::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<LenientText<'de>, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(LenientText::default())
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Lenient;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Lenient, E> {
        Ok(Lenient::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Lenient, E> {
        Ok(Lenient::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Lenient, E> {
        Ok(Lenient::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Lenient, E> {
        Ok(Lenient::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Lenient, E> {
        Ok(Lenient::Text(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Lenient, E> {
        Ok(Lenient::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Lenient, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Lenient::Nothing)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Lenient, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Lenient::Nothing)
    }
}
