//! HTTP/1.0 and 1.1 on one connection, one exchange after the other.

mod faults;
mod head;

use crate::caching::Preconditions;
use crate::channel::{Channel, PROBE};
use crate::config::Close;
use crate::connection::{CloseReason, within};
use crate::host;
use crate::read_buffers::ReadBuffer;
use crate::record::{OpenExchange, Record, end_recorded};
use crate::response::{Body, Response};
use crate::thread_state::{Peer, ResponsePlan, ThreadState};
use crate::upstream::DEEPEST;
use head::Framing;
use intact_ledger::{Failure, Nanos, Outcome, Protocol, Side};
use intact_wire::http1::{Eof, Error, Part, RequestEvent, RequestHead, RequestParser, Version};
use std::io::{self, Write};
use std::rc::Rc;
use tokio::task::yield_now;

/// The first byte of a TLS handshake (RFC 8446 section 5.1).
const TLS_HANDSHAKE: u8 = 0x16;
/// Bytes that gather before they are sent.
const BATCH: usize = 64 * 1024;
/// Bytes of payload in a chunk.
const CHUNK: usize = 16 * 1024;

/// The body of a response to a call that [`DEEPEST`] others led to.
const LOOP: &str = "8 calls led here: --upstream leads back to this server\n";

/// What is known of the request being read.
struct Request {
    /// Absent for questions about the server itself.
    pending: Option<OpenExchange>,
    plan: ResponsePlan,
    head_only: bool,
    version: Version,
    persistent: bool,
    /// The response is 400 in any case.
    refused: bool,
    /// Its body, where the answer needs it.
    body: Vec<u8>,
}

/// One connection and what belongs to it.
struct Http1Connection<'a> {
    channel: &'a mut Channel,
    state: &'a ThreadState,
    record: &'a Rc<Record>,
    peer: Peer,
}

/// Serves requests until either side ends the connection; `bytes` are the first ones.
pub(crate) async fn serve(
    channel: &mut Channel,
    state: &ThreadState,
    record: &Rc<Record>,
    peer: Peer,
    mut bytes: ReadBuffer,
) -> CloseReason {
    let mut conversation = Http1Connection {
        channel,
        state,
        record,
        peer,
    };
    let mut parser = RequestParser::default();
    let mut request = None;
    let mut drain = state.drain.notice();
    // when the first byte of a head came that is not complete
    let mut begun = None;
    loop {
        if !bytes.is_empty() {
            let at = begun.take().unwrap_or_else(|| record.now());
            if let Some(leave) = conversation
                .take(&mut parser, &bytes, at, &mut request)
                .await
            {
                return leave;
            }
            if request.is_none() && parser.finish() == Eof::InHead {
                begun = Some(at);
            }
        }
        // a client that sends without end takes turns with the others
        if bytes.is_full() {
            yield_now().await;
        }
        // who waits holds no buffer
        drop(bytes);
        let patience = state.patience(peer).filter(|_| request.is_none());
        let read = within(patience, conversation.channel.read(&state.buffers));
        let read = tokio::select! {
            biased;
            read = read => read,
            () = drain.begun() => {
                bytes = state.buffers.take();
                continue;
            }
        };
        match read {
            None => return CloseReason::Ours(state.config.close),
            Some(Ok(read)) if !read.is_empty() => bytes = read,
            // a request that was being read ends as cut off
            _ => return CloseReason::Theirs,
        }
    }
}

impl Http1Connection<'_> {
    /// Takes what was read; `Some`: the connection ends.
    async fn take(
        &mut self,
        parser: &mut RequestParser,
        mut bytes: &[u8],
        at: Nanos,
        request: &mut Option<Box<Request>>,
    ) -> Option<CloseReason> {
        loop {
            let step = match parser.parse(bytes) {
                Ok(step) => step,
                Err(error) => {
                    let is_tls = bytes.first() == Some(&TLS_HANDSHAKE);
                    return Some(self.refuse(&error, is_tls, request.take(), at).await);
                }
            };
            bytes = &bytes[step.consumed..];
            match step.event {
                None => return None,
                Some(RequestEvent::Head(head)) => {
                    let begun = self.begin(&head, at);
                    if head.expects_continue && !begun.refused {
                        self.channel
                            .out
                            .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                        if self.channel.flush().await.is_err() {
                            return Some(CloseReason::Theirs);
                        }
                    }
                    *request = Some(begun);
                }
                Some(RequestEvent::Body(piece)) => {
                    if let Some(request) = request {
                        request.add(piece);
                    }
                }
                Some(RequestEvent::Trailers(_)) => {}
                Some(RequestEvent::End(_)) => {
                    if let Some(request) = request.take()
                        && let Some(leave) = self.answer(request).await
                    {
                        return Some(leave);
                    }
                }
            }
        }
    }

    /// Ends what is no HTTP, with an answer where it may be read.
    async fn refuse(
        &mut self,
        error: &Error,
        is_tls: bool,
        request: Option<Box<Request>>,
        at: Nanos,
    ) -> CloseReason {
        self.record.announced_by.set(Some(Side::Server));
        let pending = match request {
            Some(request) => request.pending,
            None => Some(self.record.begin(at, Protocol::Http11, b"", b"")),
        };
        // the port also serves HTTP/2, so only the first line shows whether the client reads
        // HTTP/1; a TLS client gets a plain 400, as other servers send, because clients
        // look for it
        let strange = match error {
            Error::Version { .. } => true,
            Error::Syntax { part, .. } => *part == Part::RequestLine && !is_tls,
            _ => false,
        };
        if !strange || self.record.exchanges() > 1 || self.channel.tls().is_some() {
            let status = match error {
                Error::Version { .. } => "505 HTTP Version Not Supported",
                Error::TooLong { .. } => "431 Request Header Fields Too Large",
                _ => "400 Bad Request",
            };
            let out = &mut self.channel.out;
            // writing to memory does not fail
            let _ = write!(
                out,
                "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            );
            let _ = self.channel.flush().await;
        }
        end_recorded(pending, Outcome::Failed(Failure::Malformed));
        CloseReason::Ours(Close::Fin)
    }

    /// Begins an exchange. The request has memory of its own, so that waiting for one takes none.
    fn begin(&self, head: &RequestHead<'_>, at: Nanos) -> Box<Request> {
        let record = self.record;
        let hosts = head.headers();
        let hosts = hosts.filter(|(name, _)| name.eq_ignore_ascii_case(b"host"));
        let hosts = hosts.map(|(_, value)| value);
        let named = host::of_fields(hosts, head.version == Version::Http11);
        let mut plan = self.state.plan(head.target(), named, self.peer, record);
        // what follows a request that servers may read differently is not read
        plan.answer.closes |= named.is_err();
        plan.depth = self.state.depth(head.headers());
        if plan.depth >= DEEPEST {
            plan.answer = Response::ours(508, "text/plain", LOOP.to_owned());
        }
        if head.method() == b"CONNECT" && named.is_ok() {
            plan.answer = Response::ours(501, "text/plain", "this is no proxy\n".to_owned());
            plan.answer.closes = true;
        }
        if self.state.has_caching() {
            let mut request = Preconditions::default();
            for (name, value) in head.headers() {
                request.take(name, value);
            }
            self.state.adapt(&mut plan, head.method(), &request);
        }
        let mut closes = plan.answer.closes;
        let mut pending = None;
        if !plan.hidden {
            let version = match head.version {
                Version::Http10 => Protocol::Http10,
                Version::Http11 => Protocol::Http11,
            };
            let mut exchange = record.begin(at, version, head.method(), head.target());
            exchange.bytes.request_head = head.as_bytes().len() as u64;
            exchange.fault = plan.fault;
            exchange.disturbed = std::mem::take(&mut plan.disturbed);
            // who goes silently says nothing beforehand
            closes |= self.state.is_last(record.exchanges(), self.peer)
                && self.state.config.close != Close::Silent;
            if closes {
                exchange.close_sent_by = Some(Side::Server);
            }
            if !head.persistent() {
                exchange.close_sent_by = Some(Side::Client);
            }
            record.announced_by.set(exchange.close_sent_by);
            pending = Some(exchange);
        }
        Box::new(Request {
            pending,
            head_only: head.method() == b"HEAD",
            version: head.version,
            persistent: head.persistent() && !closes,
            refused: named.is_err(),
            body: Vec::new(),
            plan,
        })
    }

    /// Answers one request; `Some`: the connection ends.
    async fn answer(&mut self, mut request: Box<Request>) -> Option<CloseReason> {
        if let Some(pending) = &mut request.pending {
            pending.received();
        }
        if request.plan.pause > PROBE {
            self.channel.probe_peer();
        }
        let gone = self.channel.wait_for_reset();
        if !self.state.prepare(&mut request.plan, gone).await {
            end_recorded(request.pending, Outcome::Failed(Failure::ClientClosed));
            return Some(CloseReason::Theirs);
        }
        let body = std::mem::take(&mut request.body);
        request.plan.answer.take_request(body);
        if let Some(fault) = request.plan.fault {
            return Box::pin(self.answer_badly(request, fault)).await;
        }
        self.announce_drain(&mut request);
        let written = self.write(&mut request).await;
        let Request {
            pending,
            persistent,
            ..
        } = *request;
        let hidden = pending.is_none();
        if written.is_err() {
            end_recorded(pending, Outcome::Failed(Failure::ClientClosed));
            return Some(CloseReason::Theirs);
        }
        end_recorded(pending, Outcome::Ok);
        let over = !hidden && self.state.is_last(self.record.exchanges(), self.peer);
        (!persistent || over).then_some(CloseReason::Ours(self.state.config.close))
    }

    /// Makes a response announce the end of the connection, where the server began to end after the
    /// request.
    fn announce_drain(&self, request: &mut Request) {
        let Some(pending) = &mut request.pending else {
            return;
        };
        let is_silent = self.state.config.close == Close::Silent;
        if request.persistent && self.state.drain.has_begun() && !is_silent {
            request.persistent = false;
            pending.close_sent_by = Some(Side::Server);
            self.record.announced_by.set(pending.close_sent_by);
        }
    }

    /// Writes an answer in full.
    async fn write(&mut self, request: &mut Request) -> io::Result<()> {
        let framing = request.framing();
        self.write_head(request, framing);
        if request.head_only || framing == Framing::None {
            return self.channel.flush().await;
        }
        let body = &request.plan.answer.body;
        let sent = self.write_body(body, body.len(), framing).await;
        if let Some(pending) = &mut request.pending {
            pending.bytes.body = body.len();
        }
        sent
    }

    /// Appends the head of an answer.
    fn write_head(&mut self, request: &mut Request, framing: Framing) {
        let config = &self.state.config;
        let left = config
            .max_requests
            .map(|most| most.saturating_sub(self.record.exchanges()));
        let is_tls = self.channel.tls().is_some();
        let alt_svc = self.state.alt_svc.as_deref().filter(|_| is_tls);
        let out = &mut self.channel.out;
        let before = out.len();
        let answer = &request.plan.answer;
        let terms = head::write(out, request, answer, framing, (config, alt_svc), left);
        if let Some(pending) = &mut request.pending {
            pending.bytes.head = (out.len() - before) as u64;
            pending.status = Some(request.plan.answer.status);
            pending.terms = terms;
        }
    }

    /// Sends the first `len` bytes of a body with what was appended before; all of it with the end
    /// of its framing.
    async fn write_body(&mut self, body: &Body, len: u64, framing: Framing) -> io::Result<()> {
        let chunked = framing == Framing::Chunked;
        let most = if chunked { CHUNK } else { BATCH };
        let mut at = 0;
        while at < len {
            let piece = body.piece(at, most.min(usize::try_from(len - at).unwrap_or(most)));
            let out = &mut self.channel.out;
            if chunked {
                write!(out, "{:x}\r\n", piece.len())?;
            }
            out.extend_from_slice(piece);
            if chunked {
                out.extend_from_slice(b"\r\n");
            }
            at += piece.len() as u64;
            if out.len() >= BATCH {
                self.channel.flush().await?;
                // a client that takes as much as there is takes turns with the others
                yield_now().await;
            }
        }
        if chunked && len == body.len() {
            self.channel.out.extend_from_slice(b"0\r\n\r\n");
        }
        self.channel.flush().await
    }
}

impl Request {
    /// A piece of its body.
    fn add(&mut self, piece: &[u8]) {
        if let Some(pending) = &mut self.pending {
            pending.bytes.request_body += piece.len() as u64;
        }
        self.plan.answer.keep(piece, &mut self.body);
    }

    fn framing(&self) -> Framing {
        let answer = &self.plan.answer;
        if answer.is_bodiless() {
            Framing::None
        } else if !answer.unannounced {
            Framing::Length(answer.body.len())
        } else if self.version == Version::Http11 {
            Framing::Chunked
        } else if self.persistent {
            Framing::Length(answer.body.len())
        } else {
            Framing::UntilClose
        }
    }
}
