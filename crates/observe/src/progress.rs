//! The current state of a connection's exchanges, for a producer that acts on open connections.
//!
//! Decides nothing. If TLS cannot be decrypted (yet), the exchanges are inferred from the order of
//! records, and marked as inferred.

use crate::app_protocol::AppProtocol;
use crate::request_inference::RequestInference;
use crate::rows::Rows;
use crate::tls_connection::{Access, TlsConnection};
use intact_ledger::Protocol;
use intact_wire::Side;

/// Limit of bursts from which exchanges are inferred while secrets may still arrive; above it,
/// exchanges are unknown.
const MAX_INFERRED: usize = 4096;

/// The state of a connection's exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of complete exchanges.
    pub done: u64,
    /// Number of open exchanges.
    pub open: u64,
    /// The parts of an incomplete response that have arrived; `None` if none has begun, or it
    /// cannot be read.
    pub response: Option<ResponsePart>,
    /// One side announced the end of the connection, or a protocol other than HTTP follows.
    pub is_closing: bool,
    /// Exchanges are inferred from the order of TLS records.
    pub is_inferred: bool,
    /// The connection uses TLS.
    pub is_tls: bool,
    /// Bytes can be encrypted as the server would.
    pub is_sealable: bool,
    /// The protocol, if it is known.
    pub protocol: Option<Protocol>,
    /// The server's last byte ended a frame (HTTP/2).
    pub is_between_frames: bool,
    /// The client's last byte ended a frame, and its record where there is TLS (HTTP/2).
    pub is_between_client_frames: bool,
    /// The oldest open stream (HTTP/2).
    pub first_stream: Option<u32>,
}

/// The parts of a response that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponsePart {
    /// Its header section.
    Head,
    /// Its header section, and a part of its body.
    Body,
}

impl Progress {
    /// Whether no exchange is open, after a complete one.
    pub fn is_kept(&self) -> bool {
        self.done > 0 && self.open == 0 && !self.is_closing
    }

    /// The state of a connection's exchanges; `None` if nothing is known of them.
    pub(crate) fn of(
        rows: &Rows,
        app: &AppProtocol,
        tls: Option<&TlsConnection>,
        inference: &RequestInference,
    ) -> Option<Progress> {
        let http2 = app.http2_observer();
        let mut progress = Progress {
            done: rows.done,
            open: rows.open.len() as u64,
            response: app.response_part(),
            is_closing: rows.announced_by.is_some()
                || app.has_left_http()
                || http2.is_some_and(|it| it.facts().go_away.is_some()),
            is_inferred: false,
            is_tls: tls.is_some(),
            is_sealable: tls.is_none_or(|tls| tls.seal_by_server(b"").is_some()),
            protocol: rows.connection.row.protocol,
            is_between_frames: http2.is_some_and(|it| it.is_between_frames(Side::Server)),
            is_between_client_frames: http2.is_some_and(|it| it.is_between_frames(Side::Client))
                && tls.is_none_or(|tls| tls.is_between_records(Side::Client)),
            first_stream: http2.and_then(|it| it.first_open_stream()),
        };
        let inferred = match tls.map(|tls| (tls, tls.access())) {
            None | Some((_, Access::Open)) => return Some(progress),
            Some((_, Access::Shut(_))) => *inference,
            Some((tls, Access::Hoped)) => inferred_from(tls)?,
        };
        progress.done = inferred.ended + u64::from(inferred.is_answered());
        progress.open = u64::from(inferred.is_asking());
        progress.is_inferred = true;
        Some(progress)
    }
}

/// The exchanges inferred from records, if secrets may still arrive.
fn inferred_from(tls: &TlsConnection) -> Option<RequestInference> {
    let bursts = &tls.waiting;
    if bursts.len() > MAX_INFERRED {
        return None;
    }
    let mut inference = RequestInference::default();
    for burst in bursts {
        inference.take(*burst);
    }
    Some(inference)
}
