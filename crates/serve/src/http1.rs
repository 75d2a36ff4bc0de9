//! HTTP/1.0 and 1.1 on one connection.

use crate::answer::{Answer, Answers, is_bodiless};
use crate::config::Config;
use crate::meter::Passed;
use crate::record::Ledger;
use ledger::{Ending, Exchange, Failure, Outcome, Side, Span};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use wire::http1::{RequestEvent, RequestHead, RequestParser, Version};

/// How long a connection that we closed is drained, so that the client reads our answer before a RST.
const DRAIN: Duration = Duration::from_secs(1);

/// What is known of the request being read.
struct Request {
    exchange: Exchange,
    answer: Answer,
    head_only: bool,
    version: Version,
    persistent: bool,
    asked_to_keep: bool,
}

/// Serves requests until either side ends the connection.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    config: &Config,
    answers: &Answers,
    ledger: &Ledger,
    passed: &Rc<Passed>,
) {
    let mut parser = RequestParser::default();
    let mut buffer = vec![0; 16 * 1024];
    let mut out = Vec::with_capacity(1024);
    let mut request: Option<Request> = None;
    loop {
        let read = stream.read(&mut buffer);
        let read = match (config.idle_timeout, &request) {
            (Some(limit), None) => match timeout(limit, read).await {
                Ok(read) => read,
                Err(_) => return end(stream, config, ledger, passed).await,
            },
            _ => read.await,
        };
        let count = match read {
            Ok(count) if count > 0 => count,
            _ => {
                if let Some(request) = request.take() {
                    ledger.end(request.exchange, Outcome::Failed(Failure::Truncated));
                }
                return ledger.close(false, Ending::Fin);
            }
        };
        let at = ledger.now();
        let mut rest = &buffer[..count];
        loop {
            let Ok(step) = parser.parse(rest) else {
                ledger.announced_by.set(Some(Side::Server));
                let refusal =
                    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
                let _ = stream.write_all(refusal).await;
                let exchange = request
                    .take()
                    .map_or_else(|| ledger.begin(at), |request| request.exchange);
                ledger.end(exchange, Outcome::Failed(Failure::Malformed));
                return end(stream, config, ledger, passed).await;
            };
            rest = &rest[step.consumed..];
            match step.event {
                None => break,
                Some(RequestEvent::Head(head)) => {
                    if head.expects_continue
                        && stream
                            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                            .await
                            .is_err()
                    {
                        return ledger.close(false, Ending::Rst);
                    }
                    request = Some(begin(&head, ledger.begin(at), config, answers, ledger));
                }
                Some(RequestEvent::Body(piece)) => {
                    if let Some(request) = &mut request {
                        request.exchange.bytes.request_body += piece.len() as u64;
                    }
                }
                Some(RequestEvent::Trailers(_)) => {}
                Some(RequestEvent::End(_)) => {
                    let Some(request) = request.take() else {
                        continue;
                    };
                    if !answer(&mut stream, request, &mut out, config, ledger).await {
                        return end(stream, config, ledger, passed).await;
                    }
                }
            }
        }
    }
}

fn begin(
    head: &RequestHead<'_>,
    mut exchange: Exchange,
    config: &Config,
    answers: &Answers,
    ledger: &Ledger,
) -> Request {
    Ledger::request(&mut exchange, head.method, head.target);
    exchange.bytes.request_head = head.as_bytes().len() as u64;
    let mut answer = answers.to(head.target);
    if ledger.exchanges() == 1 {
        answer.delay += config.first_request_cost;
    }
    let last = config
        .max_requests
        .is_some_and(|most| ledger.exchanges() >= most);
    if answer.closes || last {
        answer.closes = true;
        ledger.announced_by.set(Some(Side::Server));
        exchange.close_sent_by = Some(Side::Server);
    }
    if !head.persistent() {
        ledger.announced_by.set(Some(Side::Client));
        exchange.close_sent_by = Some(Side::Client);
    }
    Request {
        exchange,
        head_only: head.method == b"HEAD",
        version: head.version,
        persistent: head.persistent() && !answer.closes,
        asked_to_keep: head.options.keep_alive,
        answer,
    }
}

/// Answers one request; `false`: the connection ends here.
async fn answer<S: AsyncWrite + Unpin>(
    stream: &mut S,
    mut request: Request,
    out: &mut Vec<u8>,
    config: &Config,
    ledger: &Ledger,
) -> bool {
    let Answer {
        status,
        ref body,
        delay,
        ..
    } = request.answer;
    request.exchange.spans.send = Some(Span::new(request.exchange.at, ledger.now()));
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    out.clear();
    let version = if request.version == Version::Http10 {
        "1.0"
    } else {
        "1.1"
    };
    out.extend_from_slice(format!("HTTP/{version} {status} {}\r\n", reason(status)).as_bytes());
    if !is_bodiless(status) {
        out.extend_from_slice(
            format!(
                "Content-Length: {}\r\nContent-Type: text/plain\r\n",
                body.len()
            )
            .as_bytes(),
        );
    }
    if !request.persistent {
        out.extend_from_slice(b"Connection: close\r\n");
    } else if request.version == Version::Http10 && request.asked_to_keep {
        out.extend_from_slice(b"Connection: keep-alive\r\n");
    }
    if config.announce && request.persistent {
        let mut terms = Vec::new();
        if let Some(limit) = config.idle_timeout {
            request.exchange.terms.timeout_s = Some(limit.as_secs() as u32);
            terms.push(format!("timeout={}", limit.as_secs()));
        }
        if let Some(most) = config.max_requests {
            let left = most.saturating_sub(ledger.exchanges());
            request.exchange.terms.max = Some(left as u32);
            terms.push(format!("max={left}"));
        }
        if !terms.is_empty() {
            out.extend_from_slice(format!("Keep-Alive: {}\r\n", terms.join(", ")).as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
    request.exchange.status = Some(status);
    request.exchange.bytes.head = out.len() as u64;
    if !request.head_only && !is_bodiless(status) {
        out.extend_from_slice(body);
        request.exchange.bytes.body = body.len() as u64;
    }
    let written = stream.write_all(out).await.is_ok() && stream.flush().await.is_ok();
    let outcome = if written {
        Outcome::Ok
    } else {
        Outcome::Failed(Failure::Reset)
    };
    ledger.end(request.exchange, outcome);
    written && request.persistent
}

/// Closes from our side, unless the client has closed already.
async fn end<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    config: &Config,
    ledger: &Ledger,
    passed: &Rc<Passed>,
) {
    if passed.reset.get() || passed.ended.get() {
        return ledger.close(false, Ending::Fin);
    }
    match config.close {
        crate::config::Close::Rst => ledger.close(true, Ending::Rst),
        crate::config::Close::Fin => {
            let _ = stream.shutdown().await;
            ledger.close(true, Ending::Fin);
            let mut rest = [0; 4096];
            let drained =
                async { while matches!(stream.read(&mut rest).await, Ok(count) if count > 0) {} };
            let _ = timeout(DRAIN, drained).await;
        }
    }
}

fn reason(status: u16) -> &'static str {
    http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("")
}
