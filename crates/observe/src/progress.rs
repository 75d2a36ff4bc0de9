//! How far the exchanges of a connection are at this moment: for a producer that acts on connections while they go on.
//!
//! Decides nothing. Where TLS cannot be read (yet), the exchanges are inferred from the order of records, and that is said.

use crate::app_protocol::AppProtocol;
use crate::request_inference::RequestInference;
use crate::rows::Rows;
use crate::tls_connection::{Access, TlsConnection};
use intact_ledger::Protocol;

/// Bursts of records from which exchanges are inferred while secrets may still come; with more, nothing is known.
const MAX_INFERRED: usize = 4096;

/// How far the exchanges of a connection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Exchanges that are complete.
    pub done: u64,
    /// Exchanges that have begun and are not complete.
    pub open: u64,
    /// How much of a response has come that is not complete; `None` where none has begun, or it cannot be seen.
    pub response: Option<ResponsePart>,
    /// One side announced the end of the connection, or another protocol than HTTP follows.
    pub is_closing: bool,
    /// Exchanges are inferred from the order of TLS records.
    pub is_inferred: bool,
    /// The bytes are those of TLS.
    pub is_tls: bool,
    /// Bytes can be sealed as the server would.
    pub is_sealable: bool,
    /// The protocol, as far as it is known.
    pub protocol: Option<Protocol>,
    /// The server's last byte was the last of a frame (HTTP/2).
    pub is_between_frames: bool,
    /// The open stream that was opened first (HTTP/2).
    pub first_stream: Option<u32>,
}

/// How much of a response has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponsePart {
    /// Its header section.
    Head,
    /// Its header section, and a part of its body.
    Body,
}

impl Progress {
    /// Whether no exchange is under way, after a complete one.
    pub fn is_kept(&self) -> bool {
        self.done > 0 && self.open == 0 && !self.is_closing
    }

    /// The progress of a connection; `None` where nothing is known of its exchanges.
    pub(crate) fn of(
        rows: &Rows,
        app: &AppProtocol,
        tls: Option<&TlsConnection>,
        inference: &RequestInference,
    ) -> Option<Progress> {
        let http2 = app.http2_observer();
        let mut progress = Progress {
            done: rows.exchanges(),
            open: rows.open_exchanges(),
            response: app.response_part(),
            is_closing: rows.is_closing()
                || app.has_left_http()
                || http2.is_some_and(|it| it.facts().go_away.is_some()),
            is_inferred: false,
            is_tls: tls.is_some(),
            is_sealable: tls.is_none_or(|tls| tls.seal_by_server(b"").is_some()),
            protocol: rows.connection.row.protocol,
            is_between_frames: http2.is_some_and(|it| it.server_is_between_frames()),
            first_stream: http2.and_then(|it| it.first_open_stream()),
        };
        let inferred = match tls.map(|tls| (tls, tls.access())) {
            None | Some((_, Access::Open)) => return Some(progress),
            Some((_, Access::Shut(_))) => *inference,
            Some((tls, Access::Hoped)) => inferred_from(tls)?,
        };
        progress.done = inferred.ended() + u64::from(inferred.is_answered());
        progress.open = u64::from(inferred.is_asking());
        progress.is_inferred = true;
        Some(progress)
    }
}

/// The exchanges that records show whose secrets may still come.
fn inferred_from(tls: &TlsConnection) -> Option<RequestInference> {
    let bursts = tls.waiting_bursts();
    if bursts.len() > MAX_INFERRED {
        return None;
    }
    let mut inference = RequestInference::default();
    for burst in bursts {
        inference.take(*burst);
    }
    Some(inference)
}
