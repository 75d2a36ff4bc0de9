//! Maps errors of the kernel and of TLS to the ledger's kinds.

use crate::verifier::is_ca_certificate;
use heck::ToSnakeCase;
use intact_ledger::Failure;
use jiff::Timestamp;
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error as TlsError, OtherError, PeerIncompatible};
use std::fmt::Debug;
use std::io;

/// The message of an error of the system, without its number.
pub(crate) fn io_words(error: &io::Error) -> String {
    let words = error.to_string();
    match words.rsplit_once(" (os error ") {
        Some((words, _)) => words.to_owned(),
        None => words,
    }
}

/// The kind of a failed connect.
pub(crate) fn of_connect(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Failure::Refused,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => Failure::ConnectReset,
        io::ErrorKind::TimedOut => Failure::ConnectTimeout,
        io::ErrorKind::AddrNotAvailable => Failure::NoFreePort,
        // a Unix socket that does not exist
        io::ErrorKind::NotFound => Failure::Refused,
        _ => match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => Failure::NoFreeFd,
            // connect() returns it if every port is in use
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

/// A TLS error in the words of the RFCs, never in a library's debug format.
pub(crate) fn tls_words(error: &TlsError) -> String {
    match error {
        TlsError::InvalidCertificate(certificate) => certificate_words(certificate),
        TlsError::AlertReceived(alert) => match alert.as_str() {
            Some(name) => format!("the peer sent the alert {}", name.to_snake_case()),
            None => format!("the peer sent the alert {}", u8::from(*alert)),
        },
        TlsError::InvalidMessage(why) => format!("a malformed TLS message: {}", variant_words(why)),
        TlsError::PeerIncompatible(why) => format!("no common TLS: {}", variant_words(why)),
        TlsError::PeerMisbehaved(why) => format!("the peer broke TLS: {}", variant_words(why)),
        TlsError::InconsistentKeys(_) => "the certificate and the key do not match".to_owned(),
        TlsError::InappropriateMessage { .. } | TlsError::InappropriateHandshakeMessage { .. } => {
            "a TLS message out of order".to_owned()
        }
        TlsError::DecryptError => "a TLS record could not be decrypted".to_owned(),
        TlsError::NoCertificatesPresented => "the peer sent no certificate".to_owned(),
        TlsError::NoApplicationProtocol => "the peer accepts none of the protocols".to_owned(),
        TlsError::PeerSentOversizedRecord => "a TLS record above the maximum size".to_owned(),
        TlsError::General(words) => words.clone(),
        other => variant_words(other),
    }
}

/// The reason why a certificate was refused.
fn certificate_words(error: &CertificateError) -> String {
    match error {
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => match presented.as_slice() {
            [] => format!(
                "it has no subjectAltName, so it cannot be for {}",
                expected.to_str()
            ),
            names => format!(
                "it is for {}, not for {}",
                names
                    .iter()
                    .map(|name| san(name))
                    .collect::<Vec<_>>()
                    .join(", "),
                expected.to_str()
            ),
        },
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("it expired on {}", date(*not_after))
        }
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("it is not valid before {}", date(*not_before))
        }
        CertificateError::UnknownIssuer => {
            "its issuer is not among the trusted certificates".to_owned()
        }
        CertificateError::BadSignature => {
            "a signature does not match the certificate's key".to_owned()
        }
        CertificateError::BadEncoding => "it is not a well-formed certificate".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "it is not for servers: its extended key usage excludes serverAuth".to_owned()
        }
        CertificateError::Other(OtherError(inner)) if is_ca_certificate(inner.as_ref()) => {
            "it is a CA's certificate (CA:TRUE), and not one of the trusted certificates itself"
                .to_owned()
        }
        CertificateError::Other(OtherError(inner)) => variant_words(inner),
        other => variant_words(other),
    }
}

/// A name of a certificate, without webpki's type: `DnsName("localhost")`, `IpAddress(127.0.0.1)`.
fn san(name: &str) -> &str {
    let inner = name
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.map_or(name, |inner| inner.trim_matches('"'))
}

/// The day in UTC.
fn date(at: UnixTime) -> String {
    match Timestamp::from_second(at.as_secs() as i64) {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        Err(_) => format!("second {} of Unix time", at.as_secs()),
    }
}

/// The name of an enum's variant as words: `SelectedUnofferedCipherSuite` reads "selected unoffered
/// cipher suite".
fn variant_words(value: &impl Debug) -> String {
    let debug = format!("{value:?}");
    let end = debug.find(|c: char| !c.is_alphanumeric());
    let name = &debug[..end.unwrap_or(debug.len())];
    name.to_snake_case().replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{InvalidMessage, PeerMisbehaved};

    #[test]
    fn errors_of_tls_read_as_sentences() {
        let words = |error: TlsError| tls_words(&error);
        assert_eq!(
            words(TlsError::AlertReceived(
                AlertDescription::UnknownPSKIdentity
            )),
            "the peer sent the alert unknown_psk_identity"
        );
        assert_eq!(
            words(TlsError::AlertReceived(AlertDescription::HandshakeFailure)),
            "the peer sent the alert handshake_failure"
        );
        assert_eq!(
            words(TlsError::AlertReceived(AlertDescription::Unknown(200))),
            "the peer sent the alert 200"
        );
        assert_eq!(
            words(InvalidMessage::MissingData("ServerHello").into()),
            "a malformed TLS message: missing data"
        );
        assert_eq!(
            words(PeerMisbehaved::SelectedUnofferedCipherSuite.into()),
            "the peer broke TLS: selected unoffered cipher suite"
        );
        let expired = CertificateError::ExpiredContext {
            time: UnixTime::now(),
            not_after: UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_700_000_000)),
        };
        assert_eq!(words(expired.into()), "it expired on 2023-11-14 22:13 UTC");
        let other = OtherError(std::sync::Arc::new(webpki::Error::UnsupportedCertVersion));
        assert_eq!(
            words(CertificateError::Other(other).into()),
            "unsupported cert version"
        );
    }
}
