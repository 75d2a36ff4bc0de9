//! A response that makes its connection useless, in the ledger's kinds. A TLS alert in response to plain HTTP is one.

use intact_ledger::Failure;
use intact_wire::h2::hpack;
use intact_wire::{h2, http1};
use std::sync::Arc;

/// Why a connection is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResponseError {
    /// The kind.
    pub(crate) kind: Failure,
    /// What was wrong, for a person.
    pub(crate) words: Arc<str>,
}

/// Whether a response to plain HTTP begins with a TLS alert (RFC 8446 sections 5.1 and 6): the port speaks TLS.
pub(crate) fn is_tls_alert(first_bytes: &[u8]) -> bool {
    matches!(first_bytes, [0x15, 0x03, 0x00..=0x04, ..])
}

impl ResponseError {
    /// A response in HTTP/1 that cannot be read; `bytes` are those that could not.
    pub(crate) fn http1(error: http1::Error, bytes: &[u8]) -> ResponseError {
        if is_tls_alert(bytes) {
            return ResponseError::tls_alert();
        }
        let kind = match error {
            http1::Error::TooLong { .. } | http1::Error::TooManyInterim { .. } => Failure::TooLarge,
            _ => Failure::Malformed,
        };
        ResponseError::new(kind, &error)
    }

    /// A TLS alert in response to plain HTTP.
    pub(crate) fn tls_alert() -> ResponseError {
        ResponseError {
            kind: Failure::NotPlain,
            words: "a TLS alert came".into(),
        }
    }

    /// Bytes that no standard allows.
    pub(crate) fn malformed(words: &str) -> ResponseError {
        ResponseError {
            kind: Failure::Malformed,
            words: words.into(),
        }
    }

    fn new(kind: Failure, error: &dyn std::error::Error) -> ResponseError {
        ResponseError {
            kind,
            words: error.to_string().into(),
        }
    }
}

impl From<h2::Error> for ResponseError {
    fn from(error: h2::Error) -> ResponseError {
        let kind = match error {
            h2::Error::BlockTooLong { .. } => Failure::TooLarge,
            _ => Failure::Malformed,
        };
        ResponseError::new(kind, &error)
    }
}

impl From<hpack::Error> for ResponseError {
    fn from(error: hpack::Error) -> ResponseError {
        let kind = match error {
            hpack::Error::ListTooLong { .. } => Failure::TooLarge,
            _ => Failure::Malformed,
        };
        ResponseError::new(kind, &error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_shows_a_tls_port() {
        assert!(is_tls_alert(&[0x15, 3, 3, 0, 2, 2, 50]));
        assert!(is_tls_alert(&[0x15, 3, 1]));
        // a TLS 1.3 handshake record, a length of HTTP/2, text
        for other in [&[0x16, 3, 3][..], &[0, 0, 18, 4], b"HTTP/1.1 400", &[0x15]] {
            assert!(!is_tls_alert(other), "{other:?}");
        }
    }
}
