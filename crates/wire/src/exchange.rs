//! One request and its response as an observer saw them, the same for HTTP/1 and HTTP/2.
//!
//! Facts only: bytes counted, times as the caller supplied them (nanoseconds), what was not seen left out. Targets are
//! kept as sent, query strings included; whoever records them redacts them.

use crate::Side;
use crate::h2::ErrorCode;
use crate::http1::{KeepAlive, Version};

/// One request and its response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exchange {
    /// The HTTP/2 stream.
    pub stream: Option<u32>,
    /// The request; `None` where only its response was seen.
    pub request: Option<Request>,
    /// The final response, as far as it came.
    pub response: Option<Response>,
    /// Interim responses (1xx) before it.
    pub interims: u32,
    /// When the first interim response came.
    pub first_interim_at: Option<u64>,
    /// The request was started before the response before it had ended (HTTP/1 pipelining).
    pub pipelined: bool,
    /// The server sent it without being asked (HTTP/2 push).
    pub pushed: bool,
}

impl Exchange {
    /// Counts body bytes of one side. `at` is when they came, `None` if the capture lacks them.
    pub(crate) fn add_body(&mut self, from: Side, len: u64, at: Option<u64>) {
        match (from, &mut self.request, &mut self.response) {
            (Side::Client, Some(request), _) => request.body_len += len,
            (Side::Server, _, Some(response)) => {
                response.body_len += len;
                response.first_body_at = response.first_body_at.or(at.filter(|_| len > 0));
            }
            _ => {}
        }
    }

    /// The last byte of one side came.
    pub(crate) fn end(&mut self, from: Side, at: u64) {
        match (from, &mut self.request, &mut self.response) {
            (Side::Client, Some(request), _) => request.ended_at = Some(at),
            (Side::Server, _, Some(response)) => response.ended_at = Some(at),
            _ => {}
        }
    }

    /// The whole response came.
    pub(crate) fn is_answered(&self) -> bool {
        self.response
            .as_ref()
            .is_some_and(|response| response.ended_at.is_some() && !response.is_partial)
    }

    /// The whole response came, and the whole request if any of it was seen.
    pub(crate) fn is_over(&self) -> bool {
        let is_sent = |request: &Request| request.ended_at.is_some();
        self.is_answered() && self.request.as_ref().is_none_or(is_sent)
    }
}

/// A request as sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// The method; empty where header compression hid it (joined mid-stream).
    pub method: Vec<u8>,
    /// The target or `:path`; empty where hidden.
    pub target: Vec<u8>,
    /// `Host` or `:authority`.
    pub authority: Option<Vec<u8>>,
    /// `User-Agent`.
    pub agent: Option<Vec<u8>>,
    /// The version in the request line (HTTP/1).
    pub version: Option<Version>,
    /// When its first byte came.
    pub started_at: u64,
    /// When its head was complete.
    pub head_at: u64,
    /// When its last byte came.
    pub ended_at: Option<u64>,
    /// The head in bytes: as sent in HTTP/1, the compressed block in HTTP/2.
    pub head_len: u64,
    /// The payload in bytes, framing left out.
    pub body_len: u64,
    /// It says that the connection ends with it (HTTP/1).
    pub close: bool,
    /// Its head is cut off or malformed (HTTP/1). The target is empty where its line is not whole, and the end is that of the last
    /// byte before the response.
    pub is_partial: bool,
}

/// A final response as sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// The status code; 0 where header compression hid it (joined mid-stream).
    pub status: u16,
    /// The version in the status line (HTTP/1).
    pub version: Option<Version>,
    /// When its first byte came.
    pub started_at: u64,
    /// When its head was complete.
    pub head_at: u64,
    /// When the first byte of its body came.
    pub first_body_at: Option<u64>,
    /// When its last byte came.
    pub ended_at: Option<u64>,
    /// The head in bytes: as sent in HTTP/1, the compressed block in HTTP/2.
    pub head_len: u64,
    /// The payload in bytes, framing left out.
    pub body_len: u64,
    /// The body's length as announced.
    pub announced_len: Option<u64>,
    /// The terms of `Keep-Alive` (HTTP/1).
    pub keep_alive: KeepAlive,
    /// `Server`.
    pub server: Option<Vec<u8>>,
    /// The last `Via`.
    pub via: Option<Vec<u8>>,
    /// It says or implies that the connection ends with it (HTTP/1).
    pub close: bool,
    /// It was asked for: `false` for a 408 before the server closes, for example.
    pub solicited: bool,
    /// Its head or its framing is cut off or malformed (HTTP/1). The end is that of the last byte before the next message.
    pub is_partial: bool,
    /// Its fields break RFC 9113 (HTTP/2, sections 8.2 and 8.3). Fields of HTTP/1 connections do not count: clients accept them.
    pub is_malformed: bool,
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// With the end of its response.
    Complete,
    /// With the end of the connection, which is the end of its response if nothing broke the connection (RFC 9112 section 8).
    UntilClose,
    /// With a response that is whole, and that a client treats as an error (RFC 9113 section 8.1.1).
    Malformed,
    /// The connection ended before the first byte of a final response.
    Unanswered,
    /// The connection ended within the response.
    Cut,
    /// Its stream was reset.
    Reset {
        /// Who did.
        by: Side,
        /// Why.
        code: ErrorCode,
    },
    /// The server said that it never processed it (GOAWAY): it may be sent again.
    Refused,
    /// Its end is missing from what was captured.
    Unseen,
}

/// What an observer tells while it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A request's head came.
    Opened(&'a Exchange),
    /// Payload bytes came.
    Body {
        /// Who sent them.
        from: Side,
        /// On which HTTP/2 stream.
        stream: Option<u32>,
        /// The bytes, never empty.
        bytes: &'a [u8],
    },
    /// An exchange is over; every exchange is told so once.
    Done(&'a Exchange, Outcome),
    /// A side announced that the connection takes no more streams (GOAWAY).
    GoingAway {
        /// Who announced it.
        by: Side,
        /// Without an error (`NO_ERROR`): a shutdown.
        graceful: bool,
    },
}
