//! All messages of a connection, compared with hyper: their number, the end of each body, and the
//! inputs that are refused.

use super::{Disagreement, Verdict};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::service::service_fn;
use hyper::{Request, Response};
use intact_wire::http1::{
    Eof, Error, Framing, Headers, Kind, MessageHead, Part, Persistence, RequestEvent,
    RequestParser, ResponseEvent, ResponseParser, Version,
};
use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Limit of the polls of a connection that never waits.
const POLLS: usize = 100_000;

/// A message with its whole body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Message {
    /// Method and target, or the status.
    start: Vec<u8>,
    body: Vec<u8>,
}

/// The messages that a reader found on a connection.
#[derive(Debug, Default)]
struct Transcript {
    complete: Vec<Message>,
    /// Why reading ended.
    end: End,
}

#[derive(Debug, Default, PartialEq)]
enum End {
    /// The stream ended, in a message or between two.
    #[default]
    Eof,
    /// The connection ends after the last message, or becomes a tunnel.
    Last,
    Refused(String),
    Framing(&'static str),
}

/// Compares the requests of a connection.
pub(crate) fn compare_requests(bytes: &[u8]) -> Result<Verdict, Disagreement> {
    let (ours, note) = our_requests(bytes);
    judge(&ours, &their_requests(bytes), note)
}

/// Compares the first final response of a connection to a GET.
pub(crate) fn compare_response(bytes: &[u8]) -> Result<Verdict, Disagreement> {
    let (ours, note) = our_response(bytes);
    judge(&ours, &their_response(bytes), note)
}

/// Compares two results according to RFC 9110 and RFC 9112; `note` names a known difference of
/// hyper.
fn judge(
    ours: &Transcript,
    theirs: &Transcript,
    note: Option<&'static str>,
) -> Result<Verdict, Disagreement> {
    let both = ours.complete.len().min(theirs.complete.len());
    let is_prefix = ours.complete[..both] == theirs.complete[..both];
    let is_as_long = ours.complete.len() == theirs.complete.len();
    let listed = match (&ours.end, &theirs.end) {
        _ if !is_prefix => None,
        (ours, theirs) if is_as_long && ours.is_error() == theirs.is_error() => {
            return Ok(Verdict::Same);
        }
        // a message that neither reads to its end misleads neither
        _ if is_as_long => Some("one of the two waits for more, or for the end"),
        (End::Framing(why), _) if ours.complete.len() == both => Some(*why),
        (End::Last, _) if ours.complete.len() == both => {
            Some("a message that is read in two ways closes the connection (RFC 9112 6.3)")
        }
        _ => None,
    };
    let explain = || Disagreement(format!("ours {ours:?}\nhyper {theirs:?}"));
    listed.or(note).map(Verdict::Listed).ok_or_else(explain)
}

impl End {
    fn is_error(&self) -> bool {
        matches!(self, End::Refused(_) | End::Framing(_))
    }
}

fn ended(error: &Error) -> End {
    match error {
        Error::Framing { why, .. } => End::Framing(why),
        Error::Syntax {
            part: Part::Chunk,
            expected,
            ..
        } if expected.contains("extension") => {
            End::Framing("a chunk extension has no NUL (RFC 9112 7.1.1); hyper reads over it")
        }
        error => End::Refused(error.to_string()),
    }
}

/// The requests that our parser reads, and the reason why they cannot be compared, if there is one.
fn our_requests(bytes: &[u8]) -> (Transcript, Option<&'static str>) {
    let mut parser = RequestParser::default();
    let mut transcript = Transcript::default();
    let mut input = bytes;
    let mut message = Message::default();
    let mut notes = None;
    loop {
        let step = match parser.parse(input) {
            Ok(step) => step,
            Err(error) => {
                let line = input.trim_ascii_start();
                transcript.end = match line.iter().position(|byte| *byte == b' ') {
                    Some(65..) => {
                        End::Framing("a method of more than 64 bytes is another protocol for ours")
                    }
                    _ => ended(&error),
                };
                return (transcript, notes);
            }
        };
        let from = input;
        let (used, rest) = input.split_at(step.consumed);
        input = rest;
        match step.event {
            None => return (transcript, notes),
            Some(RequestEvent::Head(head)) => {
                message = Message {
                    start: [head.method(), b" ", &as_uri(head.target())].concat(),
                    body: Vec::new(),
                };
                notes = notes
                    .or_else(|| incomparable_target(head.target()))
                    .or_else(|| incomparable(&head, from));
            }
            Some(RequestEvent::Body(piece)) => message.body.extend_from_slice(piece),
            Some(RequestEvent::Trailers(fields)) => {
                notes = notes
                    .or_else(|| incomparable_values(fields))
                    .or_else(|| incomparable_end(used));
            }
            Some(RequestEvent::End(after)) => {
                notes = notes.or_else(|| incomparable_end(used));
                transcript.complete.push(std::mem::take(&mut message));
                if after != Persistence::Reuse {
                    transcript.end = End::Last;
                    return (transcript, notes);
                }
            }
        }
    }
}

/// A target as hyper writes it: an absolute target has a path.
fn as_uri(target: &[u8]) -> Vec<u8> {
    http::Uri::try_from(target).map_or_else(|_| target.to_vec(), |uri| uri.to_string().into())
}

/// The reason why hyper's type refuses a target.
fn incomparable_target(target: &[u8]) -> Option<&'static str> {
    // a URI drops its fragment, whose bytes hyper has refused before
    let is_uri = http::Uri::try_from(target).is_ok() && std::str::from_utf8(target).is_ok();
    (!is_uri).then_some("hyper refuses a target that is no URI; ours keeps it as sent")
}

/// The reason why hyper refuses field values that a passive reader keeps.
fn incomparable_values(mut fields: Headers<'_>) -> Option<&'static str> {
    fields.any(|(_, value)| has_control(value)).then_some(
        "hyper refuses control characters in a field value; ours keeps them (RFC 9110 5.5)",
    )
}

/// What hyper reads in another way than ours, for a reason. `input` begins with the message.
fn incomparable<S>(head: &MessageHead<'_, S>, input: &[u8]) -> Option<&'static str> {
    let values = |name: &'static str| {
        let is_it = move |field: &(&[u8], &[u8])| field.0.eq_ignore_ascii_case(name.as_bytes());
        head.headers().filter(is_it).map(|(_, value)| value)
    };
    let line = head
        .as_bytes()
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default();
    if let Some(note) = incomparable_values(head.headers()) {
        return Some(note);
    }
    if values("content-length").any(|value| value.contains(&b',')) {
        return Some(
            "hyper refuses a list of equal lengths, which a recipient may read (RFC 9110 8.6)",
        );
    }
    if values("content-length").any(|value| value.starts_with(b"1844674407370955161")) {
        return Some("hyper refuses a length of 2^64 - 1 and the one before");
    }
    if values("transfer-encoding").any(|value| !value.is_ascii() || has_empty_item(value)) {
        return Some(
            "hyper refuses empty and foreign items; ours frames by the last (RFC 9110 5.6.1)",
        );
    }
    if has_control(line.strip_suffix(b"\r").unwrap_or(line)) {
        return Some(
            "hyper refuses control characters in a reason phrase, which a client ignores (RFC 9112 4)",
        );
    }
    if !matches!(version(line), b"HTTP/1.0" | b"HTTP/1.1") {
        return Some("hyper refuses a minor version above 1; ours reads it as 1.1 (RFC 9110 2.5)");
    }
    if head.ambiguous && head.version == Version::Http10 {
        return Some(
            "hyper refuses a transfer coding in HTTP/1.0; ours reads it and closes (RFC 9112 6.1)",
        );
    }
    if head.headers().count() > 100 {
        return Some("hyper refuses more than 100 fields");
    }
    if head.framing == Framing::Chunked && input.len() > 16_384 {
        return Some("hyper takes at most 16 KiB of chunk extensions and of trailers");
    }
    let blank = input
        .iter()
        .take_while(|byte| matches!(byte, b'\r' | b'\n'))
        .count();
    let is_cr_alone = |pair: &[u8]| pair[0] == b'\r' && pair[1] != b'\n';
    // with the first byte of the request, so that a CR right before it counts
    if input[..blank + 1].windows(2).any(is_cr_alone) {
        return Some("CR and LF before a request are skipped in any order, as nginx does");
    }
    None
}

/// What hyper reads in another way at the end of a body. `end` is the last chunk with its trailers.
fn incomparable_end(end: &[u8]) -> Option<&'static str> {
    let is_bare = |pair: &[u8]| pair[1] == b'\n' && pair[0] != b'\r';
    end.windows(2)
        .any(is_bare)
        .then_some("a single LF ends a line of trailers for ours, as it may (RFC 9112 2.2)")
}

/// The version in a start line: a response begins with it, a request ends with it.
fn version(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_end();
    match line.starts_with(b"HTTP/") {
        true => line.get(..8).unwrap_or_default(),
        false => line.last_chunk::<8>().map_or(&[], |last| &last[..]),
    }
}

fn has_control(text: &[u8]) -> bool {
    text.iter()
        .any(|&byte| byte < b' ' && byte != b'\t' || byte == 0x7f)
}

fn has_empty_item(value: &[u8]) -> bool {
    value
        .split(|&byte| byte == b',')
        .any(|item| item.trim_ascii().is_empty())
}

fn our_response(bytes: &[u8]) -> (Transcript, Option<&'static str>) {
    let mut parser = ResponseParser::default();
    parser.expect(Kind::Plain);
    let mut transcript = Transcript::default();
    let mut input = bytes;
    let mut message = Message::default();
    let mut notes = None;
    loop {
        let step = match parser.parse(input) {
            Ok(step) => step,
            Err(error) => {
                transcript.end = match input.first() {
                    Some(b'\r' | b'\n') if message.start.is_empty() => {
                        End::Framing("only a request may follow an empty line (RFC 9112 2.2)")
                    }
                    _ => ended(&error),
                };
                return (transcript, notes);
            }
        };
        let from = input;
        let (used, rest) = input.split_at(step.consumed);
        input = rest;
        match step.event {
            None => {
                let is_until_close =
                    matches!(parser.finish(), Eof::Complete) && !message.start.is_empty();
                if is_until_close {
                    transcript.complete.push(message);
                    transcript.end = End::Last;
                }
                return (transcript, notes);
            }
            Some(ResponseEvent::Interim(head)) => {
                notes = notes.or_else(|| incomparable(&head, from));
            }
            Some(ResponseEvent::Head(head)) => {
                message.start = head.status().to_string().into();
                notes = notes.or_else(|| incomparable(&head, from));
                if head.framing == Framing::Tunnel {
                    notes = Some("a switch of protocols was not asked for");
                }
            }
            Some(ResponseEvent::Body(piece)) => message.body.extend_from_slice(piece),
            Some(ResponseEvent::Trailers(fields)) => {
                notes = notes
                    .or_else(|| incomparable_values(fields))
                    .or_else(|| incomparable_end(used));
            }
            Some(ResponseEvent::End(_)) => {
                notes = notes.or_else(|| incomparable_end(used));
                transcript.complete.push(message);
                transcript.end = End::Last;
                return (transcript, notes);
            }
        }
    }
}

fn their_requests(bytes: &[u8]) -> Transcript {
    let complete = Rc::new(RefCell::new(Vec::new()));
    let service = service_fn(|request: Request<Incoming>| {
        let complete = Rc::clone(&complete);
        async move {
            let (parts, body) = request.into_parts();
            let start = format!("{} ", parts.method).into_bytes();
            let target = parts.uri.to_string().into_bytes();
            if let Ok(body) = whole(body).await {
                let start = [start, target].concat();
                complete.borrow_mut().push(Message { start, body });
            }
            Ok::<_, Infallible>(Response::new(NoBody))
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .half_close(true)
        .serve_connection(Wire::server(bytes), service);
    let end = match run(connection) {
        Ok(()) => End::Eof,
        Err(error) if error.is_incomplete_message() => End::Eof,
        Err(error) => End::Refused(error.to_string()),
    };
    let complete = complete.borrow().clone();
    Transcript { complete, end }
}

fn their_response(bytes: &[u8]) -> Transcript {
    let conversation = async {
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake::<_, NoBody>(Wire::client(bytes)).await?;
        let mut connection = pin!(connection);
        let mut exchange = pin!(async {
            let response = sender.send_request(Request::new(NoBody)).await?;
            let start = response.status().as_str().into();
            let body = whole(response.into_body()).await?;
            Ok::<_, hyper::Error>(Message { start, body })
        });
        let mut is_over = false;
        poll_fn(|context| {
            if !is_over {
                is_over = connection.as_mut().poll(context).is_ready();
            }
            exchange.as_mut().poll(context)
        })
        .await
    };
    match run(conversation) {
        Ok(message) => Transcript {
            complete: vec![message],
            end: End::Last,
        },
        Err(error) if error.is_incomplete_message() => Transcript::default(),
        Err(error) => Transcript {
            complete: Vec::new(),
            end: End::Refused(format!("{error:?}")),
        },
    }
}

/// Runs a future that never waits for I/O.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..POLLS {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
    panic!("a connection in memory waits for something");
}

async fn whole(body: Incoming) -> Result<Vec<u8>, hyper::Error> {
    let mut body = pin!(body);
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes)
}

struct NoBody;

impl Body for NoBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }
}

/// A connection in memory: it returns the input, then its end, and accepts all output.
struct Wire<'a> {
    input: &'a [u8],
    /// A server responds to a request, and sends nothing before it.
    is_open: bool,
}

impl<'a> Wire<'a> {
    fn server(input: &'a [u8]) -> Wire<'a> {
        let is_open = true;
        Wire { input, is_open }
    }

    fn client(input: &'a [u8]) -> Wire<'a> {
        let is_open = false;
        Wire { input, is_open }
    }
}

impl Read for Wire<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_open {
            return Poll::Pending;
        }
        let (now, later) = self
            .input
            .split_at(self.input.len().min(buffer.remaining()));
        buffer.put_slice(now);
        self.input = later;
        Poll::Ready(Ok(()))
    }
}

impl Write for Wire<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_open = true;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
