//! The facts of TLS hellos and alerts, as the ledger stores them.

use crate::{FirstEnd, Side};
use intact_ledger::{
    CloseKind, DialFailure, Failure, Handshake, SetupPhase, Side as LedgerSide, Tls, TlsVersion,
};
use intact_wire::tls::decrypt::Inner;
use intact_wire::tls::{Alert, ClientHello, Mode, TLS12, TLS13, TlsFacts, suite_name};
use std::sync::Arc;

/// The TLS of a connection. `is_decrypted`: its encrypted handshake messages are known.
pub(crate) fn describe(facts: &TlsFacts, inner: &Inner, is_decrypted: bool) -> Tls {
    let (client, server) = (facts.client_hello.as_ref(), facts.server_hello.as_ref());
    let alpn = inner.alpn.as_ref();
    let alpn = alpn.or(server.and_then(|server| server.alpn.as_ref()));
    let tickets = match facts.version() {
        // encrypted in TLS 1.3
        Some(TLS13) => is_decrypted.then_some(inner.tickets),
        Some(_) => Some(facts.tickets.max(inner.tickets)),
        None => None,
    };
    Tls {
        version: facts.version().and_then(TlsVersion::numbered),
        cipher: server.map(|server| suite_name(server.cipher_suite).into()),
        server_name: client.and_then(|hello| hello.server_name.as_deref().map(Arc::from)),
        alpn_offered: client.map(|hello| hello.alpn.iter().map(|name| text(name)).collect()),
        alpn_chosen: alpn.map(|name| text(name)),
        handshake: facts.mode.map(|mode| match mode {
            Mode::Full => Handshake::Full,
            Mode::Resumed => Handshake::Resumed,
        }),
        resumption_offered: client.map(offers_to_resume),
        tickets,
        client_hint: client.map(client_hint),
    }
}

fn text(name: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(name).into()
}

/// Whether the client offers resumption: a pre-shared key in TLS 1.3, before it a ticket or a
/// session id.
fn offers_to_resume(hello: &ClientHello) -> bool {
    let is_13 = hello.highest_version() >= TLS13;
    hello.psk_identities > 0
        || hello.ticket_len.is_some_and(|len| len > 0)
        || (!is_13 && !hello.session_id.is_empty())
}

/// The readable part of a JA4 fingerprint: transport, version, whether there is a server name, the
/// numbers of suites and extensions, the first protocol.
fn client_hint(hello: &ClientHello) -> Arc<str> {
    let is_real = |number: &&u16| **number & 0x0f0f != 0x0a0a;
    let count = |numbers: &[u16]| numbers.iter().filter(is_real).count().min(99);
    let version = match hello.highest_version() {
        TLS13 => "13",
        TLS12 => "12",
        0x0302 => "11",
        0x0301 => "10",
        _ => "00",
    };
    let named = if hello.server_name.is_some() {
        'd'
    } else {
        'i'
    };
    let alpn = hello.alpn.first().filter(|name| name.is_ascii());
    let ends = alpn
        .and_then(|name| Some((*name.first()?, *name.last()?)))
        .filter(|(first, last)| first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
        .map_or(('0', '0'), |(first, last)| {
            (char::from(first), char::from(last))
        });
    format!(
        "t{version}{named}{:02}{:02}{}{}",
        count(&hello.cipher_suites),
        count(&hello.extensions),
        ends.0,
        ends.1
    )
    .into()
}

/// What ended a handshake, in addition to the facts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandshakeEnd {
    /// The fatal alert, if it could be read.
    pub(crate) alert: Option<Alert>,
    /// The side that refused it by an alert, which may be encrypted.
    pub(crate) refused_by: Option<Side>,
    /// The server's bytes are not TLS.
    pub(crate) is_foreign: bool,
    /// The end of the connection.
    pub(crate) end: Option<FirstEnd>,
}

/// Why a handshake failed on an ended connection.
pub(crate) fn failure(facts: &TlsFacts, ended: HandshakeEnd) -> DialFailure {
    let by = ended.end.and_then(|end| end.by);
    let is_reset = ended.end.is_some_and(|end| end.how == CloseKind::Rst);
    let has_hello = facts.server_hello.is_some();
    // what the client sent after the ServerHello may be an alert
    let has_spoken = facts.client_data.records > 0 || facts.encrypted_alerts > 0;
    let (kind, detail) = if let Some(alert) = ended.alert {
        let by = alert.from.pick("client", "server");
        let detail = format!("the {by} sent alert {}", alert.description);
        (of_alert(alert.description, has_hello), detail)
    } else {
        let (kind, detail) = match by {
            _ if ended.is_foreign => (Failure::NotTls, "the server's bytes are no TLS"),
            _ if ended.refused_by == Some(Side::Server) => (
                Failure::TlsAlert,
                "the server ended the handshake; the reason is encrypted",
            ),
            Some(LedgerSide::Client) if has_hello && has_spoken => (
                Failure::TlsAlert,
                "the client ended the handshake; the reason is encrypted",
            ),
            Some(LedgerSide::Client) if has_hello => (
                Failure::ClientClosed,
                "the client closed in the handshake without an alert",
            ),
            Some(LedgerSide::Client) => (
                Failure::ClientClosed,
                "the client closed before the server's response",
            ),
            Some(LedgerSide::Server) if is_reset => {
                (Failure::ConnectReset, "reset in the handshake")
            }
            Some(LedgerSide::Server) if !has_hello => {
                (Failure::NotTls, "the server closed without a ServerHello")
            }
            _ if ended.end.is_none() => (Failure::Aborted, "the run was stopped in the handshake"),
            _ => (Failure::Tls, "cut off in the handshake"),
        };
        (kind, detail.to_owned())
    };
    DialFailure::with_detail(SetupPhase::Ssl, kind, detail)
}

/// The kind of an alert (RFC 8446 section 6). After a ServerHello, version and cipher are agreed.
fn of_alert(description: u8, has_hello: bool) -> Failure {
    match description {
        40 | 70 | 71 if !has_hello => Failure::TlsVersion,
        45 => Failure::CertificateExpired,
        46 | 48 => Failure::CertificateUnknown,
        42..=44 => Failure::Certificate,
        112 => Failure::CertificateName,
        120 => Failure::TlsAlpn,
        _ => Failure::TlsAlert,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::Nanos;
    use intact_wire::tls::{ServerHello, Traffic};

    #[test]
    fn a_client_that_sends_nothing_after_the_server_hello_sent_no_alert() {
        let kind_after = |records| {
            let facts = TlsFacts {
                server_hello: Some(ServerHello::default()),
                client_data: Traffic {
                    records,
                    ..Traffic::default()
                },
                ..TlsFacts::default()
            };
            let ended = HandshakeEnd {
                alert: None,
                refused_by: None,
                is_foreign: false,
                end: Some(FirstEnd {
                    at: Nanos(1),
                    by: Some(LedgerSide::Client),
                    how: CloseKind::Fin,
                }),
            };
            failure(&facts, ended).kind
        };
        assert_eq!(kind_after(0), Failure::ClientClosed);
        assert_eq!(kind_after(1), Failure::TlsAlert);
    }
}
