//! The first flight of a client, compared with the acceptor of rustls: records, fragments, and the
//! offer of the hello.

use super::{Disagreement, Verdict};
use intact_wire::Side;
use intact_wire::tls::{ClientHello, Watcher};
use rustls::server::Acceptor;
use rustls::{InvalidMessage, PeerMisbehaved};

/// The offer of a hello: the values that both readers show.
#[derive(Debug, PartialEq, Eq)]
struct Offer {
    name: Option<String>,
    alpn: Vec<Vec<u8>>,
    suites: Vec<u16>,
}

/// Compares the hello in the bytes of a client.
pub(crate) fn compare(bytes: &[u8]) -> Result<Verdict, Disagreement> {
    let mut watcher = Watcher::default();
    let read = watcher.read(Side::Client, bytes, 0, |_, _| {});
    let ours = watcher.facts().client_hello.as_ref().map(offer);
    let theirs = accept(bytes);
    let listed = match (&ours, &theirs) {
        (Some(ours), Ok(Some(theirs))) if ours == theirs => return Ok(Verdict::Same),
        (None, Ok(None) | Err(_)) => return Ok(Verdict::Same),
        (Some(_), Err(error)) => laxer(error),
        (Some(ours), Ok(Some(theirs))) => another(ours, theirs),
        _ => None,
    };
    let explain = || Disagreement(format!("ours {ours:?} {read:?}\nrustls {theirs:?}"));
    listed.map(Verdict::Listed).ok_or_else(explain)
}

fn offer(hello: &ClientHello) -> Offer {
    Offer {
        name: hello.server_name.as_deref().map(str::to_ascii_lowercase),
        alpn: hello.alpn.clone(),
        suites: hello.cipher_suites.clone(),
    }
}

/// The hello according to rustls; `None` if it needs more bytes.
fn accept(mut bytes: &[u8]) -> Result<Option<Offer>, rustls::Error> {
    let mut acceptor = Acceptor::default();
    while !bytes.is_empty() {
        acceptor
            .read_tls(&mut bytes)
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        if let Some(accepted) = acceptor.accept().map_err(|(error, _)| error)? {
            let hello = accepted.client_hello();
            let alpn = hello.alpn().into_iter().flatten();
            return Ok(Some(Offer {
                name: hello.server_name().map(str::to_ascii_lowercase),
                alpn: alpn.map(<[u8]>::to_vec).collect(),
                suites: hello
                    .cipher_suites()
                    .iter()
                    .map(|&suite| suite.into())
                    .collect(),
            }));
        }
    }
    Ok(None)
}

/// The reason why our reader may accept what rustls refuses.
fn laxer(error: &rustls::Error) -> Option<&'static str> {
    match error {
        rustls::Error::PeerIncompatible(_) => Some(
            "a server refuses versions and suites that it cannot speak; an observer records them",
        ),
        rustls::Error::InvalidMessage(
            InvalidMessage::IllegalEmptyList(_)
            | InvalidMessage::IllegalEmptyValue
            | InvalidMessage::InvalidServerName
            | InvalidMessage::MessageTooShort
            | InvalidMessage::MissingData(_)
            | InvalidMessage::NoSignatureSchemes
            | InvalidMessage::TrailingData("ClientExtensions" | "Empty")
            | InvalidMessage::EmptyTicketValue
            | InvalidMessage::DuplicateExtension(_)
            | InvalidMessage::PreSharedKeyIsNotFinalExtension,
        ) => Some("rustls reads each extension to its end; ours reads those that it records"),
        rustls::Error::PeerMisbehaved(PeerMisbehaved::ServerNameMustContainOneHostName) => {
            Some("a hello with another kind of name has no name for ours (RFC 6066 3)")
        }
        _ => None,
    }
}

/// The reason why the two may read the same hello differently.
fn another(ours: &Offer, theirs: &Offer) -> Option<&'static str> {
    let is_name_only = (&ours.alpn, &ours.suites) == (&theirs.alpn, &theirs.suites);
    (is_name_only && theirs.name.is_none())
        .then_some("rustls keeps DNS names only; ours keeps a name as sent")
}
