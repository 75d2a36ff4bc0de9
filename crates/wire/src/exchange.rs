//! One observed request and its response, for HTTP/1 and HTTP/2.
//!
//! Facts only: byte counts, and the caller's times in nanoseconds. Unobserved values are `None`.
//! Targets are stored as sent, with query strings; a recorder must redact them.

use crate::Side;
use crate::h2::ErrorCode;
use crate::http1::{KeepAlive, Version};
use std::fmt;

/// One request and its response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exchange {
    /// The HTTP/2 stream.
    pub stream: Option<u32>,
    /// The request; `None` if only its response was observed.
    pub request: Option<Request>,
    /// The final response, up to where it was observed.
    pub response: Option<Response>,
    /// Interim responses (1xx) before it.
    pub interims: u32,
    /// The request started before the end of the response before it (HTTP/1 pipelining).
    pub pipelined: bool,
    /// The server sent it without a request (HTTP/2 push).
    pub pushed: bool,
}

impl Exchange {
    /// Counts body bytes of one side. `at` is the time of their arrival, `None` if the capture
    /// lacks them.
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

    /// Records the last byte of one side.
    pub(crate) fn end(&mut self, from: Side, at: u64) {
        match (from, &mut self.request, &mut self.response) {
            (Side::Client, Some(request), _) => request.ended_at = Some(at),
            (Side::Server, _, Some(response)) => response.ended_at = Some(at),
            _ => {}
        }
    }

    /// Whether the response is complete.
    pub(crate) fn is_answered(&self) -> bool {
        self.response
            .as_ref()
            .is_some_and(|response| response.ended_at.is_some() && !response.is_partial)
    }

    /// Whether the response is complete, and the request, too, if any of it was observed.
    pub(crate) fn is_over(&self) -> bool {
        let is_sent = |request: &Request| request.ended_at.is_some();
        self.is_answered() && self.request.as_ref().is_none_or(is_sent)
    }
}

/// A request as sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// The method; empty if header compression hid it (joined mid-stream).
    pub method: Vec<u8>,
    /// The target or `:path`; empty if header compression hid it.
    pub target: Vec<u8>,
    /// `Host` or `:authority`.
    pub authority: Option<Vec<u8>>,
    /// `User-Agent`.
    pub agent: Option<Vec<u8>>,
    /// The fields that tie it to a user.
    pub user: UserFields,
    /// The version in the request line (HTTP/1).
    pub version: Option<Version>,
    /// When its first byte arrived.
    pub started_at: u64,
    /// When its header section was complete.
    pub head_at: u64,
    /// When its last byte arrived.
    pub ended_at: Option<u64>,
    /// Length of the header section in bytes: as sent in HTTP/1, the compressed block in HTTP/2.
    pub head_len: u64,
    /// Length of the content in bytes, without framing.
    pub body_len: u64,
    /// It announces the end of the connection (HTTP/1).
    pub close: bool,
    /// Its `Content-Type` is that of gRPC (HTTP/2).
    pub is_grpc: bool,
    /// Its header section is cut off or malformed (HTTP/1). The target is empty if its line is
    /// incomplete, and the end is that of the last byte before the response.
    pub is_partial: bool,
}

/// The fields of a request that tie it to a user. They are secrets: a recorder keeps salted hashes.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct UserFields {
    /// `Authorization`, as sent.
    pub credential: Option<Vec<u8>>,
    /// The `Cookie` fields, joined as in RFC 9113 section 8.2.3.
    pub cookie: Option<Vec<u8>>,
}

impl UserFields {
    /// Keeps the value of a field, if it is one of them.
    pub(crate) fn take(&mut self, name: &[u8], value: &[u8]) {
        if name.eq_ignore_ascii_case(b"authorization") {
            self.credential.get_or_insert_with(|| value.to_vec());
        } else if name.eq_ignore_ascii_case(b"cookie") {
            let cookie = self.cookie.get_or_insert_default();
            if !cookie.is_empty() {
                cookie.extend_from_slice(b"; ");
            }
            cookie.extend_from_slice(value);
        }
    }
}

impl fmt::Debug for UserFields {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("UserFields")
    }
}

/// A final response as sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// The status code; 0 if header compression hid it (joined mid-stream).
    pub status: u16,
    /// The version in the status line (HTTP/1).
    pub version: Option<Version>,
    /// When its first byte arrived.
    pub started_at: u64,
    /// When its header section was complete.
    pub head_at: u64,
    /// When the first byte of its body arrived.
    pub first_body_at: Option<u64>,
    /// When its last byte arrived.
    pub ended_at: Option<u64>,
    /// Length of the header section in bytes: as sent in HTTP/1, the compressed block in HTTP/2.
    pub head_len: u64,
    /// Length of the content in bytes, without framing.
    pub body_len: u64,
    /// The announced length of the body.
    pub announced_len: Option<u64>,
    /// The terms of `Keep-Alive` (HTTP/1).
    pub keep_alive: KeepAlive,
    /// `Server`.
    pub server: Option<Vec<u8>>,
    /// The last `Via`.
    pub via: Option<Vec<u8>>,
    /// `grpc-status`, of the header section or the trailers (HTTP/2).
    pub grpc_status: Option<u16>,
    /// It announces or implies the end of the connection (HTTP/1).
    pub close: bool,
    /// It responds to a request. `false`, for example, for a 408 before the server closes.
    pub solicited: bool,
    /// Its header section or its framing is cut off or malformed (HTTP/1). The end is that of the
    /// last byte before the next message.
    pub is_partial: bool,
    /// Its fields break RFC 9113 (HTTP/2, sections 8.2 and 8.3). Fields of HTTP/1 connections do
    /// not count: clients accept them.
    pub is_malformed: bool,
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The response was complete.
    Complete,
    /// The connection ended, which ends the response if nothing broke the connection (RFC 9112
    /// section 8).
    UntilClose,
    /// The response was complete, and clients treat it as an error (RFC 9113 section 8.1.1).
    Malformed,
    /// The connection ended before the first byte of a final response.
    Unanswered,
    /// The connection ended within the response.
    Cut,
    /// The stream was reset.
    Reset {
        /// The side that reset it.
        by: Side,
        /// The reason.
        code: ErrorCode,
    },
    /// The server never processed it, according to its GOAWAY: the client may send it again.
    Refused,
    /// The capture lacks its end.
    Unseen,
}

/// An event of an observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The header section of a request arrived.
    Opened(&'a Exchange),
    /// Content bytes arrived.
    Body {
        /// The sender.
        from: Side,
        /// The HTTP/2 stream.
        stream: Option<u32>,
        /// The bytes, never empty.
        bytes: &'a [u8],
    },
    /// An exchange ended. There is one such event per exchange.
    Done(&'a Exchange, Outcome),
    /// A side announced that the connection takes no more streams (GOAWAY).
    GoingAway {
        /// The side that announced it.
        by: Side,
        /// Without an error (`NO_ERROR`): a shutdown.
        graceful: bool,
    },
}
