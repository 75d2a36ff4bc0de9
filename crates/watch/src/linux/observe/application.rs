//! The bytes of an application protocol, plain or decrypted: finds out which it is and reads HTTP.

use super::detected_protocol::{self, DetectedProtocol, ENOUGH};
use intact_ledger::Protocol;
use intact_wire::exchange::Event;
use intact_wire::{Side, h2, http1};

/// What is spoken.
pub(super) enum Application {
    /// The first bytes of whichever side spoke first; that side.
    Starting(Vec<u8>, Option<Side>),
    Http1(Box<http1::Http1Observer>),
    Http2(Box<h2::Http2Observer>),
    /// Counted only.
    Other(Option<Protocol>),
}

/// What came of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// They were read.
    Read,
    /// They are TLS: hand this and all that follows to TLS.
    IsTls,
}

impl Default for Application {
    fn default() -> Application {
        Application::Starting(Vec::new(), None)
    }
}

impl Application {
    /// Takes the next bytes of one side. On [`Kept::IsTls`] nothing was read.
    pub(super) fn read(
        &mut self,
        from: Side,
        bytes: &[u8],
        at: u64,
        mut visit: impl FnMut(Event<'_>),
    ) -> Kept {
        match self {
            Application::Starting(held, side) => {
                if side.is_some_and(|side| side != from) {
                    // the other side answers before we know: it never said enough
                    *self = Application::Other(None);
                    return Kept::Read;
                }
                *side = Some(from);
                held.extend_from_slice(bytes);
                let sample = &held[..held.len().min(ENOUGH)];
                let spoken = detected_protocol::look(ledger_side(from), sample);
                let held = match spoken {
                    DetectedProtocol::More => return Kept::Read,
                    DetectedProtocol::Tls => return Kept::IsTls,
                    DetectedProtocol::Http1 | DetectedProtocol::Http2 => std::mem::take(held),
                    DetectedProtocol::Counted(_) | DetectedProtocol::Unknown => Vec::new(),
                };
                *self = match spoken {
                    DetectedProtocol::Http1 => Application::Http1(Box::default()),
                    DetectedProtocol::Http2 => Application::Http2(Box::default()),
                    DetectedProtocol::Counted(protocol) => Application::Other(Some(protocol)),
                    _ => Application::Other(None),
                };
                self.read_http(from, &held, at, &mut visit);
            }
            _ => self.read_http(from, bytes, at, &mut visit),
        }
        Kept::Read
    }

    fn read_http(&mut self, from: Side, bytes: &[u8], at: u64, visit: &mut impl FnMut(Event<'_>)) {
        match self {
            Application::Http1(observer) => observer.read(from, bytes, at, visit),
            Application::Http2(observer) => observer.read(from, bytes, at, visit),
            Application::Starting(..) | Application::Other(_) => {}
        }
    }

    /// What was taken before it was known what is spoken.
    pub(super) fn into_held(self) -> Vec<u8> {
        match self {
            Application::Starting(held, _) => held,
            _ => Vec::new(),
        }
    }

    /// Takes note that a side has ended.
    pub(super) fn end(&mut self, from: Side, at: u64, visit: impl FnMut(Event<'_>)) {
        match self {
            Application::Http1(observer) => observer.end(from, at, visit),
            Application::Http2(observer) => observer.end(from, visit),
            Application::Starting(..) | Application::Other(_) => {}
        }
    }

    /// What is spoken, as far as the bytes tell; HTTP/1 tells its minor version with each request.
    pub(super) fn protocol(&self) -> Option<Protocol> {
        match self {
            Application::Starting(..) => None,
            Application::Http1(observer) if observer.switched_at().is_some() => {
                Some(Protocol::Tunnel)
            }
            Application::Http1(_) => Some(Protocol::Http11),
            Application::Http2(_) => Some(Protocol::Http2),
            Application::Other(protocol) => *protocol,
        }
    }

    /// Whether requests can be counted.
    pub(super) fn is_http(&self) -> bool {
        matches!(self, Application::Http1(_) | Application::Http2(_))
    }

    /// What HTTP/2 tells of the connection as a whole.
    pub(super) fn http2(&self) -> Option<&h2::Http2Facts> {
        match self {
            Application::Http2(observer) => Some(observer.facts()),
            _ => None,
        }
    }
}

/// The ledger's word for a side.
pub(super) fn ledger_side(side: Side) -> intact_ledger::Side {
    match side {
        Side::Client => intact_ledger::Side::Client,
        Side::Server => intact_ledger::Side::Server,
    }
}

/// The wire's word for a side.
pub(super) fn wire_side(side: intact_ledger::Side) -> Side {
    match side {
        intact_ledger::Side::Client => Side::Client,
        intact_ledger::Side::Server => Side::Server,
    }
}
