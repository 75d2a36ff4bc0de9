//! Secrets by reference: a plan names the location of a value, and the worker reads it at run time.
//! So no plan, queue or store contains the value.
//!
//! A reference is `env:NAME` or `file:PATH`. It is the whole value of a header field, or stands in
//! braces within a value or a URL (`Bearer {env:TOKEN}`). This module does not read the environment
//! or files; a [`ReadSecret`] does.

use intact_wire::http1::split_field;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;

/// Replaces the value of a reference in all stored texts.
const GONE: &str = "…";
/// Length in bytes from which a value is replaced in stored texts. Shorter values are part of too
/// many words.
const SHORTEST: usize = 6;
/// Parts of the names of fields and query parameters whose values are secrets.
const SECRET_NAMES: [&str; 9] = [
    "api-key",
    "api_key",
    "apikey",
    "auth",
    "cookie",
    "password",
    "secret",
    "signature",
    "token",
];

/// Location of a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// In this environment variable of the worker.
    Env(String),
    /// In this file of the worker; the last line end is not part of the value.
    File(String),
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Env(name) => write!(out, "env:{name}"),
            Reference::File(path) => write!(out, "file:{path}"),
        }
    }
}

impl Reference {
    fn parse(text: &str) -> Result<Reference, String> {
        let is_variable = |name: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit())
        };
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() && is_variable(name) => {
                Ok(Reference::Env(name.to_owned()))
            }
            Some(("file", path)) if !path.is_empty() => Ok(Reference::File(path.to_owned())),
            _ => Err("a reference is env:NAME or file:PATH".to_owned()),
        }
    }

    /// Whether a text looks like a reference.
    fn is_meant(text: &str) -> bool {
        text.starts_with("env:") || text.starts_with("file:")
    }
}

/// Reads the values of references.
pub trait ReadSecret {
    /// The value of a reference.
    ///
    /// # Errors
    /// If the value is missing or cannot be read.
    fn read(&self, reference: &Reference) -> Result<String, String>;
}

/// A reference without a value on this worker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("target {target}: {reason}")]
pub struct SecretError {
    /// The target's name.
    pub target: String,
    /// The reference and the problem.
    pub reason: String,
}

/// Reads the value of a reference and checks it.
///
/// # Errors
/// If there is none, or if it cannot be part of a request.
pub fn read_secret(reference: &Reference, read: &dyn ReadSecret) -> Result<String, String> {
    let value = read.read(reference);
    let value = value.map_err(|reason| format!("{reference}: {reason}"))?;
    if value.is_empty() {
        return Err(format!("{reference}: is empty"));
    }
    if value.contains(char::is_control) {
        return Err(format!(
            "{reference}: holds a line end or another control character"
        ));
    }
    Ok(value)
}

/// Replaces the references in braces by their values.
pub(crate) fn fill(
    text: &str,
    value: &mut dyn FnMut(&Reference) -> Result<String, String>,
) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = ["{env:", "{file:"]
        .iter()
        .filter_map(|open| rest.find(open))
        .min()
    {
        let (before, from) = rest.split_at(at);
        let Some((inner, after)) = from[1..].split_once('}') else {
            return Err("the brace of a reference is not closed".to_owned());
        };
        filled.push_str(before);
        filled.push_str(&value(&Reference::parse(inner)?)?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Replaces the references of a header field: its whole value, or those in braces.
pub(crate) fn fill_field(
    header: &str,
    value: &mut dyn FnMut(&Reference) -> Result<String, String>,
) -> Result<String, String> {
    let (name, text) = split_field(header)?;
    let text = if Reference::is_meant(text) {
        value(&Reference::parse(text)?)?
    } else {
        fill(text, value)?
    };
    Ok(format!("{name}: {text}"))
}

/// The name of a header field whose value is a secret in plain text.
pub(crate) fn plain_field(header: &str) -> Option<&str> {
    let (name, value) = split_field(header).ok()?;
    let has_reference =
        Reference::is_meant(value) || value.contains("{env:") || value.contains("{file:");
    (is_secret(name) && !value.is_empty() && !has_reference).then_some(name)
}

/// The query parameters of a URL whose values are secrets in plain text.
pub(crate) fn plain_parameters(url: &str) -> impl Iterator<Item = &str> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .filter(|(key, value)| is_secret(key) && !value.is_empty() && !value.contains('{'))
        .map(|(key, _)| key)
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part)) || matches!(&*name, "key" | "sig" | "pass")
}

/// A value as part of a URL: all characters except RFC 3986's unreserved ones are encoded (section
/// 2.3).
pub(crate) fn percent_encoded(value: &str) -> String {
    const ENCODED: AsciiSet = NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~');
    utf8_percent_encode(value, &ENCODED).to_string()
}

/// The values that were put into a target. They must not be stored.
#[derive(Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Reads a value and keeps it for `hide`.
    pub(crate) fn read(
        &mut self,
        reference: &Reference,
        read: &dyn ReadSecret,
    ) -> Result<String, String> {
        let value = read_secret(reference, read)?;
        if value.len() >= SHORTEST {
            self.0.extend([percent_encoded(&value), value.clone()]);
        }
        // longer values first, because they may contain shorter ones
        self.0.sort_by_key(|value| std::cmp::Reverse(value.len()));
        self.0.dedup();
        Ok(value)
    }

    /// A text without the values.
    pub(crate) fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for value in &self.0 {
            text = text.replace(value, GONE);
        }
        text
    }

    /// A document without the values in its texts.
    pub(crate) fn hide_in<T: Serialize + DeserializeOwned>(
        &self,
        document: T,
    ) -> serde_json::Result<T> {
        if self.0.is_empty() {
            return Ok(document);
        }
        let mut value = serde_json::to_value(document)?;
        self.hide_texts(&mut value);
        serde_json::from_value(value)
    }

    fn hide_texts(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.hide(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_texts(item)),
            Value::Object(fields) => fields.values_mut().for_each(|item| self.hide_texts(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Known;

    impl ReadSecret for Known {
        fn read(&self, reference: &Reference) -> Result<String, String> {
            match reference {
                Reference::Env(name) if name == "TOKEN" => Ok("s3cret&x".to_owned()),
                Reference::File(path) if path == "/two" => Ok("a\r\nb".to_owned()),
                Reference::File(path) if path == "/none" => Ok(String::new()),
                _ => Err("is not set".to_owned()),
            }
        }
    }

    fn filled(header: &str) -> Result<String, String> {
        fill_field(header, &mut |reference| read_secret(reference, &Known))
    }

    #[test]
    fn a_reference_is_a_whole_value_or_in_braces() {
        for (header, wanted) in [
            ("Authorization: env:TOKEN", "Authorization: s3cret&x"),
            (
                "Authorization:Bearer {env:TOKEN}",
                "Authorization: Bearer s3cret&x",
            ),
            (
                "Cookie: a={env:TOKEN}; b={env:TOKEN}",
                "Cookie: a=s3cret&x; b=s3cret&x",
            ),
            ("X-Plain: {not one} env", "X-Plain: {not one} env"),
        ] {
            assert_eq!(filled(header).as_deref(), Ok(wanted));
        }
    }

    #[test]
    fn a_reference_without_a_usable_value_is_refused_by_its_name() {
        for (header, wanted) in [
            ("A: env:OTHER", "env:OTHER: is not set"),
            ("A: env:1", "env:NAME or file:PATH"),
            ("A: env:a b", "env:NAME or file:PATH"),
            ("A: file:", "env:NAME or file:PATH"),
            ("A: {env:TOKEN", "not closed"),
            ("A: file:/two", "file:/two: holds a line end"),
            ("A: file:/none", "file:/none: is empty"),
        ] {
            let error = filled(header).unwrap_err();
            assert!(error.contains(wanted), "{header}: {error}");
        }
    }

    #[test]
    fn values_are_hidden_in_plain_and_in_percent_encoded_form() {
        let mut secrets = Secrets::default();
        let value = secrets
            .read(&Reference::Env("TOKEN".to_owned()), &Known)
            .unwrap();
        assert_eq!(percent_encoded(&value), "s3cret%26x");
        assert_eq!(secrets.hide("a s3cret&x b s3cret%26x"), "a … b …");
        let document = serde_json::json!({"a": ["s3cret&x", 1], "b": {"c": "x s3cret&x"}});
        assert_eq!(
            secrets.hide_in(document).unwrap(),
            serde_json::json!({"a": ["…", 1], "b": {"c": "x …"}})
        );
    }

    #[test]
    fn a_secret_in_plain_text_is_found_and_a_reference_is_not() {
        assert_eq!(
            plain_field("Authorization: Bearer x"),
            Some("Authorization")
        );
        assert_eq!(plain_field("x-api-key: x"), Some("x-api-key"));
        for fine in [
            "Accept: x",
            "Cookie: env:C",
            "Cookie: a={file:/c}",
            "Cookie:",
        ] {
            assert_eq!(plain_field(fine), None, "{fine}");
        }
        let found: Vec<&str> =
            plain_parameters("https://a/?q=1&access_token=x&key={env:K}&sig=y#token=z").collect();
        assert_eq!(found, ["access_token", "sig"]);
    }
}
