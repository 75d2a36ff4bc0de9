//! Why a QUIC connection is over, in the ledger's kinds.

use crate::failure::{of_tls, tls_words};
use intact_ledger::{CloseKind, Failure, SetupPhase, Side};
use quinn_proto::{ConnectionError, TransportErrorCode};
use rustls::{AlertDescription, Error as TlsError};

/// H3_NO_ERROR (RFC 9114 section 8.1): a close in good order.
const H3_NO_ERROR: u64 = 0x100;
/// The first code of an alert of TLS (RFC 9001 section 4.8).
const CRYPTO: u64 = 0x100;

/// The end of a connection, seen by the handshake, by an exchange in flight, and by the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostConnection {
    /// The step and the kind, if it was being set up.
    pub(crate) setup: (SetupPhase, Failure),
    /// The kind for an exchange whose response began; `None`: as at the end of a stream.
    pub(crate) failure: Option<Failure>,
    /// Who ended it, and how.
    pub(crate) by: Side,
    pub(crate) how: CloseKind,
    /// The reason, for the user.
    pub(crate) words: String,
}

impl LostConnection {
    /// `tls`: why TLS refused the server's messages, if it did.
    pub(super) fn new(reason: &ConnectionError, tls: Option<&TlsError>) -> LostConnection {
        match reason {
            ConnectionError::VersionMismatch => LostConnection {
                setup: (SetupPhase::Connect, Failure::Unreachable),
                failure: Some(Failure::Malformed),
                ..LostConnection::closed_by_server("the server speaks no QUIC version 1")
            },
            ConnectionError::TransportError(error) => {
                let words = match tls {
                    Some(tls) => tls_words(tls),
                    None => format!("the server broke QUIC: {}", error.reason),
                };
                LostConnection {
                    setup: match tls {
                        Some(tls) => (SetupPhase::Ssl, of_tls(tls)),
                        None => (SetupPhase::Connect, Failure::Malformed),
                    },
                    failure: Some(Failure::Malformed),
                    by: Side::Client,
                    ..LostConnection::closed_by_server(words)
                }
            }
            ConnectionError::ConnectionClosed(close) => {
                let code = u64::from(close.error_code);
                let reason = String::from_utf8_lossy(&close.reason);
                closed_by_transport(code, close.error_code, &reason)
            }
            ConnectionError::ApplicationClosed(close) => {
                let code = close.error_code.into_inner();
                let is_graceful = code == H3_NO_ERROR || code == 0;
                LostConnection {
                    failure: (!is_graceful).then_some(Failure::Reset),
                    ..LostConnection::closed_by_server(format!(
                        "the server closed the connection with {}",
                        intact_wire::h3::ErrorCode(code)
                    ))
                }
            }
            ConnectionError::Reset => LostConnection {
                how: CloseKind::Rst,
                ..LostConnection::closed_by_server(
                    "the server does not know the connection (stateless reset)",
                )
            },
            ConnectionError::TimedOut => LostConnection {
                setup: (SetupPhase::Connect, Failure::ConnectTimeout),
                failure: Some(Failure::Timeout),
                how: CloseKind::Silent,
                ..LostConnection::closed_by_server(
                    "no packet of the server within its idle timeout",
                )
            },
            ConnectionError::LocallyClosed | ConnectionError::CidsExhausted => LostConnection {
                setup: (SetupPhase::Connect, Failure::Aborted),
                failure: Some(Failure::Aborted),
                by: Side::Client,
                ..LostConnection::closed_by_server("closed")
            },
        }
    }

    /// A connection that the server closed in disorder.
    fn closed_by_server(words: impl Into<String>) -> LostConnection {
        LostConnection {
            setup: (SetupPhase::Connect, Failure::ConnectReset),
            failure: Some(Failure::Reset),
            by: Side::Server,
            how: CloseKind::Goaway,
            words: words.into(),
        }
    }
}

/// A CONNECTION_CLOSE of QUIC itself, which also carries the alerts of TLS.
fn closed_by_transport(code: u64, name: TransportErrorCode, reason: &str) -> LostConnection {
    let alert = code
        .checked_sub(CRYPTO)
        .and_then(|alert| u8::try_from(alert).ok())
        .map(|alert| TlsError::AlertReceived(AlertDescription::from(alert)));
    let setup = match &alert {
        Some(alert) => (SetupPhase::Ssl, of_tls(alert)),
        // CONNECTION_REFUSED
        None if code == 0x2 => (SetupPhase::Connect, Failure::Refused),
        None => (SetupPhase::Connect, Failure::ConnectReset),
    };
    let words = match &alert {
        Some(alert) => tls_words(alert),
        None if reason.is_empty() => format!("the server closed the connection: {name}"),
        None => format!("the server closed the connection: {name}, {reason}"),
    };
    LostConnection {
        setup,
        failure: (code != 0).then_some(Failure::Reset),
        ..LostConnection::closed_by_server(words)
    }
}
