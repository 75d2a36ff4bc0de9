//! One exchange as a row of the ledger: its phases, its bytes, its announcements.

use crate::request_inference::InferredExchange;
use intact_ledger::{Exchange, ExchangeBytes, GrpcCall, Method, Nanos, Side, Span, Target};
use intact_wire::exchange::{Exchange as Seen, Request, Response};

/// The times that limit the phases of an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// When the connection was ready.
    pub(crate) ready: Option<Nanos>,
    /// The exchange waited for the connection.
    pub(crate) has_waited: bool,
    /// When the exchange ended.
    pub(crate) end: Nanos,
}

/// Time of the last byte of the response, or of the request if there is no response.
pub(crate) fn last_byte(seen: &Seen) -> u64 {
    let of_response = seen.response.as_ref().map(|response| {
        let begun = response.first_body_at.unwrap_or(response.head_at);
        response.ended_at.unwrap_or(begun)
    });
    let of_request = seen
        .request
        .as_ref()
        .map(|request| request.ended_at.unwrap_or(request.head_at));
    of_response.or(of_request).unwrap_or_default()
}

/// Sets the bytes and the times of both directions. The spans add up to the latency.
pub(crate) fn fill(row: &mut Exchange, seen: &Seen, times: Times) {
    row.end = times.end.max(row.at);
    let response = seen.response.as_ref();
    let answered = response.map(|response| Nanos(response.started_at));
    let mut sent = row.at;
    if let Some(request) = &seen.request {
        describe_request(row, request);
        let start = begin_sending(row, Nanos(request.started_at), &times);
        let ended = request.ended_at.map(Nanos);
        // the response may begin before the request is complete
        sent = ended.unwrap_or(row.end).min(answered.unwrap_or(row.end));
        row.spans.send = Some(Span::new(start, sent));
        sent = sent.max(start);
    }
    match response {
        Some(response) => {
            describe_response(row, response);
            receive(row, response, sent);
        }
        None if sent < row.end => row.spans.wait = Some(Span::new(sent, row.end)),
        None => {}
    }
    row.spans.keep_within(row.at, row.end);
}

/// Sets the facts about an exchange that could not be read. `row.end` is set.
pub(crate) fn fill_inferred(row: &mut Exchange, one: &InferredExchange, ready: Option<Nanos>) {
    let times = Times {
        ready,
        has_waited: row.at < Nanos(one.started),
        end: row.end,
    };
    let start = begin_sending(row, Nanos(one.started), &times);
    row.spans.send = Some(Span::new(start, Nanos(one.sent)));
    let answered = one.answered.map_or(row.end, Nanos);
    row.spans.wait = Some(Span::new(Nanos(one.sent), answered));
    if one.answered.is_some() {
        row.spans.receive = Some(Span::new(answered, row.end));
    }
    row.bytes = ExchangeBytes {
        request_body: one.up,
        body: one.down,
        ..ExchangeBytes::default()
    };
}

/// The time of the request's first byte, after the setup and other waits.
fn begin_sending(row: &mut Exchange, started: Nanos, times: &Times) -> Nanos {
    let Some(ready) = times.ready.filter(|_| times.has_waited) else {
        return started;
    };
    if started > ready {
        row.spans.blocked = Some(Span::new(ready, started));
    }
    started.max(ready)
}

fn receive(row: &mut Exchange, response: &Response, sent: Nanos) {
    let answered = Nanos(response.started_at);
    let mut wait = Span::new(sent.min(answered), answered);
    let head_end = Nanos(response.head_at);
    let body = response.first_body_at.map(Nanos);
    let received = match body.filter(|body| *body > head_end) {
        Some(body) => {
            // the wait lasts to the end of a header section that arrived in pieces
            wait.end = wait.end.max(head_end);
            row.spans.headers_to_body = Some(Span::new(head_end, body));
            body
        }
        None => answered,
    };
    row.spans.wait = row.spans.send.map(|_| wait);
    row.spans.receive = Some(Span::new(received, row.end));
}

fn describe_request(row: &mut Exchange, request: &Request) {
    row.method = text(&request.method).map(|method| Method::new(&method));
    row.target = text(&request.target).map(|target| Target::new(&target));
    row.grpc = request.is_grpc.then(GrpcCall::default);
    row.bytes.request_head = request.head_len;
    row.bytes.request_body = request.body_len;
    if request.close {
        row.close_sent_by = Some(Side::Client);
    }
}

fn describe_response(row: &mut Exchange, response: &Response) {
    row.status = Some(response.status).filter(|status| *status != 0);
    if let Some(call) = &mut row.grpc {
        call.status = response.grpc_status;
    }
    row.bytes.head = response.head_len;
    row.bytes.body = response.body_len;
    row.body.announced = response.announced_len;
    row.body.read = Some(response.body_len);
    row.terms.timeout_s = response.keep_alive.timeout_s;
    row.terms.max = response.keep_alive.max;
    if response.close {
        row.close_sent_by = row.close_sent_by.or(Some(Side::Server));
    }
}

/// `None` if header compression hid the text.
fn text(bytes: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes))
}
