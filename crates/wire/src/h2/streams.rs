//! The streams of an observed connection as open exchanges.
//!
//! [`observer`](super::observer) reads the frames and passes them on; this module never sees
//! encoded bytes.

use std::collections::BTreeMap;

use super::error::ErrorCode;
use super::frame::{Data, Headers};
use super::hpack::{self, Decoder};
use super::observer::{GoAway, Http2Facts};
use super::response_fields::{ResponseFields, is_of_connections};
use super::settings::{Settings, SettingsPayload};
use crate::Side;
use crate::exchange::{Event, Exchange, Outcome, Request, Response};
use crate::http1::decimal;

/// Limit of concurrent streams that are followed.
pub const MAX_STREAMS: usize = 4096;

/// The message that a header block begins, without its times.
#[derive(Debug, Default)]
pub(super) struct Head {
    request: Request,
    /// Its status is 0 if there is none or more than one, because readers differ in the one that
    /// they take.
    response: Response,
    has_status: bool,
    /// Checks the rules of a response, for each block.
    fields: ResponseFields,
}

/// The streams of a connection, with the side whose frames are read.
pub(super) struct Streams<'a> {
    pub(super) streams: &'a mut BTreeMap<u32, Exchange>,
    pub(super) facts: &'a mut Http2Facts,
    pub(super) from: Side,
    pub(super) at: u64,
    pub(super) last_processed: &'a mut Option<u32>,
}

impl Streams<'_> {
    pub(super) fn take_headers(
        &mut self,
        headers: &Headers<'_>,
        head: Head,
        started_at: u64,
        visit: &mut impl FnMut(Event<'_>),
    ) {
        let stream = headers.stream;
        let at = self.at;
        let head_len = headers.block.len() as u64;
        if self.from == Side::Client && !self.streams.contains_key(&stream) {
            let request = head.request(started_at, at, head_len);
            self.open(stream, request, false, visit);
        } else if self.from == Side::Server {
            let Some(exchange) = self.streams.get_mut(&stream) else {
                return;
            };
            // a second block after the final one holds trailers
            if exchange.response.is_none() && (100..200).contains(&head.response.status) {
                exchange.interims += 1;
            } else if let Some(response) = &mut exchange.response {
                response.is_malformed |= head.fields.trailer_section().is_err();
                response.grpc_status = response.grpc_status.or(head.fields.grpc_status());
            } else {
                exchange.response = Some(head.response(started_at, at, head_len));
            }
        }
        self.end_if(headers.end_stream, stream, visit);
    }

    /// Opens the exchange of a pushed request, which costs the client nothing and ends with its
    /// promise.
    pub(super) fn take_promise(
        &mut self,
        promised: u32,
        head: Head,
        head_len: usize,
        started_at: u64,
        visit: &mut impl FnMut(Event<'_>),
    ) {
        // only a faulty server promises an existing stream (RFC 9113 section 6.6)
        if self.streams.contains_key(&promised) {
            return;
        }
        let mut request = head.request(started_at, self.at, head_len as u64);
        request.ended_at = Some(self.at);
        self.open(promised, request, true, visit);
    }

    fn open(
        &mut self,
        stream: u32,
        request: Request,
        pushed: bool,
        visit: &mut impl FnMut(Event<'_>),
    ) {
        if self.streams.len() >= MAX_STREAMS {
            self.facts.has_too_many |= !pushed;
            return;
        }
        let exchange = Exchange {
            stream: Some(stream),
            request: Some(request),
            pushed,
            ..Exchange::default()
        };
        visit(Event::Opened(&exchange));
        self.streams.insert(stream, exchange);
    }

    pub(super) fn take_data(&mut self, data: &Data<'_>, visit: &mut impl FnMut(Event<'_>)) {
        if let Some(exchange) = self.streams.get_mut(&data.stream) {
            let len = data.bytes.len() as u64;
            exchange.add_body(self.from, len, Some(self.at));
            if len > 0 {
                visit(Event::Body {
                    from: self.from,
                    stream: Some(data.stream),
                    bytes: data.bytes,
                });
            }
        }
        self.end_if(data.end_stream, data.stream, visit);
    }

    fn end_if(&mut self, end_stream: bool, stream: u32, visit: &mut impl FnMut(Event<'_>)) {
        let (true, Some(exchange)) = (end_stream, self.streams.get_mut(&stream)) else {
            return;
        };
        exchange.end(self.from, self.at);
        if exchange.is_over() {
            self.finish(stream, Outcome::Complete, visit);
        }
    }

    /// Ends an exchange. A server may reset the rest of a request with NO_ERROR after a complete
    /// response (RFC 9113 section 8.1); the exchange is then complete.
    pub(super) fn finish(
        &mut self,
        stream: u32,
        outcome: Outcome,
        visit: &mut impl FnMut(Event<'_>),
    ) {
        let Some(exchange) = self.streams.remove(&stream) else {
            return;
        };
        let outcome = match outcome {
            Outcome::Complete
            | Outcome::Reset {
                by: Side::Client, ..
            } if is_malformed(&exchange) => Outcome::Malformed,
            Outcome::Reset {
                code: ErrorCode::NO_ERROR,
                ..
            } if exchange.is_answered() => Outcome::Complete,
            Outcome::Reset {
                by: Side::Server,
                code: ErrorCode::REFUSED_STREAM,
            } => Outcome::Refused,
            other => other,
        };
        visit(Event::Done(&exchange, outcome));
    }

    pub(super) fn take_go_away(&mut self, go_away: GoAway, visit: &mut impl FnMut(Event<'_>)) {
        self.facts.go_away = self.facts.go_away.or(Some(go_away));
        visit(Event::GoingAway {
            by: go_away.by,
            graceful: go_away.code == ErrorCode::NO_ERROR,
        });
        if go_away.by == Side::Server {
            *self.last_processed = Some(go_away.last_stream);
            let is_refused =
                |stream: &u32| *stream > go_away.last_stream && !stream.is_multiple_of(2);
            let refused: Vec<u32> = self.streams.keys().copied().filter(is_refused).collect();
            for stream in refused {
                self.finish(stream, Outcome::Refused, visit);
            }
        }
    }

    pub(super) fn take_settings(&mut self, payload: SettingsPayload<'_>) -> Option<Settings> {
        let (client, server) = (
            &mut self.facts.client_settings,
            &mut self.facts.server_settings,
        );
        let place = self.from.pick(client, server);
        let mut settings = place.unwrap_or_default();
        // an illegal value makes the receiver close the connection, which is observed as such
        settings.apply(payload).ok()?;
        *place = Some(settings);
        Some(settings)
    }
}

/// Whether a response breaks a rule that clients check, or differs from its announced length.
fn is_malformed(exchange: &Exchange) -> bool {
    let Some(response) = &exchange.response else {
        return false;
    };
    let is_head = |request: &Request| request.method == b"HEAD";
    let has_no_body =
        exchange.request.as_ref().is_none_or(is_head) || matches!(response.status, 204 | 304);
    let is_other_length = response.ended_at.is_some()
        && response
            .announced_len
            .is_some_and(|length| length != response.body_len);
    response.is_malformed || (!has_no_body && is_other_length)
}

/// Whether this `Content-Type` is that of gRPC: `application/grpc`, alone or with a format
/// (`+proto`).
pub fn is_grpc(content_type: &[u8]) -> bool {
    let rest = content_type.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

impl Head {
    pub(super) fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Self, hpack::Error> {
        let mut head = Self::default();
        decoder.decode(block, |field| {
            let (request, response) = (&mut head.request, &mut head.response);
            // clients differ here, and an observer does not see the client's decision
            if !is_of_connections(field.name) {
                head.fields.take(field.name, field.value);
            }
            let value = || Some(field.value.to_vec());
            match field.name {
                b":method" => request.method = field.value.to_vec(),
                b":path" => request.target = field.value.to_vec(),
                b":authority" => request.authority = value(),
                b"user-agent" => request.agent = value(),
                b"server" => response.server = value(),
                b"via" => response.via = value(),
                b"host" if request.authority.is_none() => request.authority = value(),
                b":status" => {
                    let status = decimal(field.value).and_then(|status| u16::try_from(status).ok());
                    response.status = status.filter(|_| !head.has_status).unwrap_or(0);
                    head.has_status = true;
                }
                b"content-type" => request.is_grpc = is_grpc(field.value),
                b"content-length" => response.announced_len = decimal(field.value),
                name => request.user.take(name, field.value),
            }
        })?;
        Ok(head)
    }

    fn request(self, started_at: u64, head_at: u64, head_len: u64) -> Request {
        Request {
            started_at,
            head_at,
            head_len,
            ..self.request
        }
    }

    fn response(self, started_at: u64, head_at: u64, head_len: u64) -> Response {
        Response {
            grpc_status: self.fields.grpc_status(),
            started_at,
            head_at,
            head_len,
            is_malformed: self.fields.header_section().is_err(),
            solicited: true,
            ..self.response
        }
    }
}
