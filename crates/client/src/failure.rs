//! Errors of the kernel and of TLS, in the ledger's kinds.

use intact_ledger::Failure;
use rustls::{AlertDescription, CertificateError, Error as TlsError, PeerIncompatible};
use std::io;

/// The kind of a failed connect.
pub(crate) fn of_connect(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Failure::Refused,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => Failure::ConnectReset,
        io::ErrorKind::TimedOut => Failure::ConnectTimeout,
        io::ErrorKind::AddrNotAvailable => Failure::NoFreePort,
        // a Unix socket that is not there
        io::ErrorKind::NotFound => Failure::Refused,
        _ => match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => Failure::NoFreeFd,
            // the kernel's answer to connect() when every port is taken
            Some(libc::EAGAIN) => Failure::NoFreePort,
            _ => Failure::Unreachable,
        },
    }
}

/// The kind of a failed TLS handshake or record.
pub(crate) fn of_tls(error: &TlsError) -> Failure {
    match error {
        TlsError::InvalidCertificate(certificate) => match certificate {
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Failure::CertificateName
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Failure::CertificateExpired,
            CertificateError::UnknownIssuer => Failure::CertificateUnknown,
            _ => Failure::Certificate,
        },
        TlsError::AlertReceived(
            AlertDescription::ProtocolVersion
            | AlertDescription::HandshakeFailure
            | AlertDescription::InsufficientSecurity,
        ) => Failure::TlsVersion,
        TlsError::AlertReceived(AlertDescription::NoApplicationProtocol)
        | TlsError::NoApplicationProtocol => Failure::TlsAlpn,
        TlsError::AlertReceived(_) => Failure::TlsAlert,
        TlsError::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13)
        | TlsError::PeerIncompatible(_) => Failure::TlsVersion,
        TlsError::InvalidMessage(_) => Failure::NotTls,
        _ => Failure::Tls,
    }
}
