//! A response that makes its connection useless, with the ledger's kind. A TLS alert in response to
//! plain HTTP is one.

use intact_ledger::Failure;
use intact_wire::{h2, h3, http1};
use std::sync::Arc;

/// Why a connection cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResponseError {
    /// The kind.
    pub(crate) kind: Failure,
    /// The problem, for the user.
    pub(crate) words: Arc<str>,
    /// The reason that the server receives in HTTP/2.
    pub(crate) h2: h2::ErrorCode,
    /// The reason that the server receives in HTTP/3.
    pub(crate) h3: h3::ErrorCode,
}

/// Whether a response to plain HTTP begins with a TLS alert (RFC 8446 sections 5.1 and 6): the port
/// speaks TLS.
pub(crate) fn is_tls_alert(first_bytes: &[u8]) -> bool {
    matches!(first_bytes, [0x15, 0x03, 0x00..=0x04, ..])
}

impl ResponseError {
    /// A malformed response in HTTP/1; `bytes` are those that could not be parsed.
    pub(crate) fn http1(error: http1::Error, bytes: &[u8]) -> ResponseError {
        if is_tls_alert(bytes) {
            return ResponseError::tls_alert();
        }
        let kind = match error {
            http1::Error::TooLong { .. } | http1::Error::TooManyInterim { .. } => Failure::TooLarge,
            _ => Failure::Malformed,
        };
        ResponseError::new(kind, error.to_string())
    }

    /// A TLS alert in response to plain HTTP.
    pub(crate) fn tls_alert() -> ResponseError {
        ResponseError::new(Failure::NotPlain, "a TLS alert came")
    }

    /// Bytes that no standard allows.
    pub(crate) fn malformed(words: &str) -> ResponseError {
        ResponseError::new(Failure::Malformed, words)
    }

    /// A response that ends before it is complete.
    #[cfg(feature = "http3")]
    pub(crate) fn truncated(words: &str) -> ResponseError {
        ResponseError::new(Failure::Truncated, words)
    }

    /// A TLS stream that cannot be decrypted.
    pub(crate) fn tls(words: String) -> ResponseError {
        ResponseError::new(Failure::Tls, words)
    }

    /// A response that exceeds a limit.
    pub(crate) fn too_large(words: String) -> ResponseError {
        ResponseError::new(Failure::TooLarge, words)
    }

    /// Too many bytes that are no part of a response.
    pub(crate) fn no_progress(words: String) -> ResponseError {
        ResponseError::new(Failure::NoProgress, words)
    }

    /// Bytes that no standard allows, with the reason for a server of HTTP/3.
    pub(crate) fn with_code(words: &str, h3: h3::ErrorCode) -> ResponseError {
        let malformed = ResponseError::malformed(words);
        ResponseError { h3, ..malformed }
    }

    fn new(kind: Failure, words: impl Into<Arc<str>>) -> ResponseError {
        let (h2, h3) = match kind {
            Failure::TooLarge | Failure::NoProgress => (
                h2::ErrorCode::ENHANCE_YOUR_CALM,
                h3::ErrorCode::H3_EXCESSIVE_LOAD,
            ),
            _ => (
                h2::ErrorCode::PROTOCOL_ERROR,
                h3::ErrorCode::H3_MESSAGE_ERROR,
            ),
        };
        let words = words.into();
        ResponseError {
            kind,
            words,
            h2,
            h3,
        }
    }
}

impl From<h2::Error> for ResponseError {
    fn from(error: h2::Error) -> ResponseError {
        let kind = match error {
            h2::Error::BlockTooLong { .. }
            | h2::Error::Compression(h2::hpack::Error::ListTooLong { .. }) => Failure::TooLarge,
            _ => Failure::Malformed,
        };
        ResponseError {
            h2: error.code(),
            ..ResponseError::new(kind, error.to_string())
        }
    }
}

impl From<h3::Error> for ResponseError {
    fn from(error: h3::Error) -> ResponseError {
        let h3 = error.code();
        let kind = match error {
            _ if h3 == h3::ErrorCode::H3_EXCESSIVE_LOAD => Failure::TooLarge,
            h3::Error::Truncated => Failure::Truncated,
            _ => Failure::Malformed,
        };
        ResponseError {
            h3,
            ..ResponseError::new(kind, error.to_string())
        }
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
