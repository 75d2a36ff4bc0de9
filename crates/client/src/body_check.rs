//! What the body of a response has to have. A body without it is a failure of the exchange, not of
//! the connection. Must not keep bodies, or repeat them in a detail.

use crate::ResponseError;
use intact_ledger::{Exchange, Failure, Outcome};
use serde_json::Value;

/// The most bytes of a body that is checked.
const MOST: usize = 16 << 20;
/// How gzip and Zstandard begin.
const COMPRESSED: [&[u8]; 2] = [&[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd]];

/// What a body has to have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BodyCheck {
    /// A text within it.
    pub contains: Option<String>,
    /// Values within JSON: the path in words, the path as a JSON Pointer (RFC 6901), the value.
    pub json: Vec<(String, String, Value)>,
}

impl BodyCheck {
    /// Appends a piece to a body that is checked.
    ///
    /// # Errors
    /// If the body is too large.
    pub(crate) fn keep(body: &mut Vec<u8>, piece: &[u8]) -> Result<(), ResponseError> {
        if body.len() + piece.len() > MOST {
            let words = format!("a check reads at most {} MiB of a body", MOST >> 20);
            return Err(ResponseError::too_large(words));
        }
        body.extend_from_slice(piece);
        Ok(())
    }

    /// Sets the outcome of a complete response with this body, unless it failed already.
    pub(crate) fn judge(&self, exchange: &mut Exchange, body: &[u8]) {
        if let (Outcome::Ok, Some(lack)) = (exchange.outcome, self.lack(body)) {
            exchange.outcome = Outcome::Failed(Failure::UnexpectedBody);
            exchange.detail = Some(lack.into());
        }
    }

    /// What the body lacks.
    fn lack(&self, body: &[u8]) -> Option<String> {
        let has = |part: &str| {
            body.windows(part.len())
                .any(|bytes| bytes == part.as_bytes())
        };
        let missing = self.contains.as_deref().filter(|part| !has(part));
        let lack = missing.map(|part| format!("the body does not contain {part:?}"));
        let lack = lack.or_else(|| self.lack_of_json(body))?;
        let is_compressed = COMPRESSED.iter().any(|magic| body.starts_with(magic));
        Some(match is_compressed {
            true => "the body is compressed, and a check reads it as it is".to_owned(),
            false => lack,
        })
    }

    fn lack_of_json(&self, body: &[u8]) -> Option<String> {
        if self.json.is_empty() {
            return None;
        }
        let Ok(document) = serde_json::from_slice::<Value>(body) else {
            return Some("the body is no JSON".to_owned());
        };
        self.json.iter().find_map(|(path, pointer, wanted)| {
            let found = document.pointer(pointer);
            match found {
                None => Some(format!("the body has no {path}")),
                Some(found) => {
                    (!is_equal(found, wanted)).then(|| format!("{path} is not {wanted}"))
                }
            }
        })
    }
}

/// Whether two values are equal; 1 and 1.0 are.
fn is_equal(one: &Value, other: &Value) -> bool {
    let numbers = (one.as_f64(), other.as_f64());
    one == other || matches!(numbers, (Some(one), Some(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::Nanos;

    fn lack(check: &BodyCheck, body: &[u8]) -> Option<String> {
        let mut exchange = Exchange::new(1, Nanos(0));
        check.judge(&mut exchange, body);
        let failed = exchange.outcome == Outcome::Failed(Failure::UnexpectedBody);
        assert_eq!(failed, exchange.detail.is_some());
        exchange.detail.map(|detail| detail.to_string())
    }

    #[test]
    fn a_text_is_found_anywhere_or_named() {
        let check = BodyCheck {
            contains: Some("ok".to_owned()),
            ..BodyCheck::default()
        };
        assert_eq!(lack(&check, b"not ok"), None);
        let words = r#"the body does not contain "ok""#;
        for body in [&b""[..], b"o", b"k o"] {
            assert_eq!(lack(&check, body).as_deref(), Some(words));
        }
        let words = "the body is compressed, and a check reads it as it is";
        assert_eq!(lack(&check, b"\x1f\x8b\x08").as_deref(), Some(words));
    }

    #[test]
    fn values_of_json_are_compared_and_never_repeated() {
        let check = BodyCheck {
            json: vec![("$.a[1]".to_owned(), "/a/1".to_owned(), Value::from(7))],
            ..BodyCheck::default()
        };
        for body in [r#"{"a":[0,7]}"#, r#"{"a":[0,7.0],"b":null}"#] {
            assert_eq!(lack(&check, body.as_bytes()), None, "{body}");
        }
        for (body, words) in [
            (r#"{"a":[0,8]}"#, "$.a[1] is not 7"),
            (r#"{"a":[0,"7"]}"#, "$.a[1] is not 7"),
            (r#"{"a":[0]}"#, "the body has no $.a[1]"),
            ("<html>", "the body is no JSON"),
        ] {
            assert_eq!(lack(&check, body.as_bytes()).as_deref(), Some(words));
        }
    }

    #[test]
    fn a_failure_that_was_seen_before_stays() {
        let mut exchange = Exchange::new(1, Nanos(0));
        exchange.outcome = Outcome::Failed(Failure::UnexpectedStatus);
        let contains = Some("x".to_owned());
        let check = BodyCheck {
            contains,
            ..BodyCheck::default()
        };
        check.judge(&mut exchange, b"");
        assert_eq!(exchange.outcome, Outcome::Failed(Failure::UnexpectedStatus));
    }
}
