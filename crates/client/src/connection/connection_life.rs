//! What every HTTP version records of the life of its connection: exchanges, announcements of the
//! end, the last response.
//!
//! Must not know the transport: its end is in [`super::open_record`].

use super::{Checked, Detail, ResponseInfo};
use crate::ResponseError;
use intact_ledger::{ClosePoint, Nanos, Side};

/// The life of a connection, up to now.
#[derive(Default)]
pub struct ConnectionLife {
    /// Exchanges that have begun.
    pub(super) begun: u64,
    /// Exchanges that the server refused to process.
    pub(super) refused: u64,
    /// No exchange may begin any more.
    pub(super) over: bool,
    /// The side that announced the end.
    pub announced_by: Option<Side>,
    /// When GOAWAY arrived.
    pub goaway_at: Option<Nanos>,
    /// The last stream that the server may have processed, according to its last GOAWAY (HTTP/2).
    pub goaway_stream: Option<u32>,
    /// The point in the connection's life, for its close.
    pub(super) moment: ClosePoint,
    /// The status of a response without a request (HTTP/1).
    pub unsolicited_status: Option<u16>,
    /// Number of bytes that the server sent after a complete response and that begin no response
    /// (HTTP/1). No exchange may begin after them.
    pub excess: u64,
    /// The last response, with [`Detail::Fields`].
    pub(super) response: Option<Box<ResponseInfo>>,
    /// The server's HTTP/2 settings as sent, as identifier and value; empty without
    /// [`Detail::Fields`].
    pub settings: Vec<(u16, u32)>,
    /// The content of responses of HTTP/2, where the caller keeps it.
    pub(super) content: Option<Box<KeptContent>>,
}

impl ConnectionLife {
    /// A connection without an exchange.
    pub(super) fn new(detail: Detail) -> ConnectionLife {
        ConnectionLife {
            response: (detail == Detail::Fields).then(Box::default),
            ..ConnectionLife::default()
        }
    }

    /// Number of exchanges that have begun, without those that the server refused.
    #[inline]
    pub(super) fn exchanges(&self) -> u64 {
        self.begun - self.refused
    }
}

/// The content of the response in flight.
pub(super) struct KeptContent {
    pub(super) bytes: Vec<u8>,
    /// Its limit in bytes.
    pub(super) most: usize,
}

impl KeptContent {
    /// Appends a piece.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Checked {
        if self.bytes.len() + bytes.len() > self.most {
            let words = format!("more than {} bytes of content", self.most);
            return Err(ResponseError::too_large(words));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}
