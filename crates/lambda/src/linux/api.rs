//! The Runtime API on one connection
//! (<https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>): blocking, one thread per
//! connection. A runtime client opens one or two.

use super::mailbox::{FunctionResponse, Mailbox};
use intact_sys::sock_diag::owner_of_peer;
use intact_wire::http1::{RequestEvent, RequestHead, RequestParser};
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Instant;

const ROOT: &str = "/2018-06-01/runtime/";
/// The largest answer that Lambda takes, in bytes.
const LARGEST: u64 = 6 * 1024 * 1024 + 100;
/// Bytes of an error's body that are kept.
const KEPT: usize = 8 * 1024;
/// The longest that an error's words may be.
const WORDS: usize = 1024;
/// Connections at once; a client that opens more is refused.
const CONNECTIONS: usize = 32;
/// The environment variables of the function.
pub(crate) const ARN: &str = "arn:aws:lambda:local:000000000000:function:intact";

/// Accepts connections of these users until the mailbox is closed; ends at the next connection
/// after that. Everyone on this machine can connect, and could take an event or forge a response.
pub(crate) fn listen(listener: &TcpListener, room: &Arc<Mailbox>, is_user: impl Fn(u32) -> bool) {
    let held = Arc::new(());
    for stream in listener.incoming() {
        if room.is_closed() {
            return;
        }
        let Ok(stream) = stream else { continue };
        let is_theirs = || matches!(owner_of_peer(&stream), Ok(Some(user)) if is_user(user));
        if Arc::strong_count(&held) > CONNECTIONS || !is_theirs() {
            continue;
        }
        let (room, held) = (room.clone(), held.clone());
        std::thread::spawn(move || {
            // a failed connection is no error here: the mailbox shows its effect on the invocation
            let _ = stream
                .set_nodelay(true)
                .and_then(|()| converse(stream, &room));
            drop(held);
        });
    }
}

/// What is being asked, once the body is here.
enum Call {
    Next,
    Response(String),
    Error(String),
    InitError,
    Unknown,
}

struct Pending {
    call: Call,
    keep: bool,
    length: u64,
    kept: Vec<u8>,
}

/// Responds to the requests of one connection until its end.
pub(crate) fn converse(mut stream: impl Read + Write, room: &Mailbox) -> io::Result<()> {
    let mut parser = RequestParser::default();
    let mut buffer = vec![0; 64 * 1024];
    let mut pending: Option<Pending> = None;
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        let mut bytes = &buffer[..read];
        loop {
            let Ok(step) = parser.parse(bytes) else {
                let words = br#"{"errorType":"InvalidRequest","errorMessage":"not HTTP/1.1"}"#;
                return respond(&mut stream, "400 Bad Request", "", words, false);
            };
            bytes = &bytes[step.consumed..];
            match step.event {
                None => break,
                Some(RequestEvent::Head(head)) => {
                    if head.expects_continue {
                        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
                    }
                    pending = Some(Pending {
                        call: call(&head),
                        keep: head.persistent(),
                        length: 0,
                        kept: Vec::new(),
                    });
                }
                Some(RequestEvent::Body(piece)) => {
                    if let Some(pending) = &mut pending {
                        pending.length += piece.len() as u64;
                        let room = KEPT - pending.kept.len().min(KEPT);
                        pending
                            .kept
                            .extend_from_slice(&piece[..piece.len().min(room)]);
                    }
                }
                Some(RequestEvent::Trailers(_)) => {}
                Some(RequestEvent::End(_)) => {
                    let Some(pending) = pending.take() else {
                        continue;
                    };
                    let keep = pending.keep;
                    answer(&mut stream, pending, room)?;
                    if !keep {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn call(head: &RequestHead<'_>) -> Call {
    let target = String::from_utf8_lossy(head.target());
    let path = target.split('?').next().unwrap_or_default();
    let Some(rest) = path.strip_prefix(ROOT) else {
        return Call::Unknown;
    };
    let words: Vec<&str> = rest.split('/').collect();
    match (head.method(), &words[..]) {
        (b"GET", ["invocation", "next"]) => Call::Next,
        (b"POST", ["invocation", id, "response"]) => Call::Response((*id).to_owned()),
        (b"POST", ["invocation", id, "error"]) => Call::Error((*id).to_owned()),
        (b"POST", ["init", "error"]) => Call::InitError,
        _ => Call::Unknown,
    }
}

fn answer(stream: &mut impl Write, pending: Pending, room: &Mailbox) -> io::Result<()> {
    let keep = pending.keep;
    let (id, answer) = match pending.call {
        Call::Next => {
            let Some(delivery) = room.next() else {
                return Ok(());
            };
            let head = format!(
                "Lambda-Runtime-Aws-Request-Id: {}\r\nLambda-Runtime-Deadline-Ms: {}\r\nLambda-Runtime-Invoked-Function-Arn: {ARN}\r\nLambda-Runtime-Trace-Id: Root=1-00000000-000000000000000000000000;Parent=0000000000000000;Sampled=0\r\n",
                delivery.id, delivery.deadline_ms
            );
            let written = respond(stream, "200 OK", &head, &delivery.body, keep);
            room.delivered(delivery, written.is_ok());
            return written;
        }
        Call::InitError => {
            room.init_error(words(&pending.kept));
            return respond(stream, "202 Accepted", "", STATUS_OK, keep);
        }
        Call::Unknown => {
            let body =
                br#"{"errorType":"NotFound","errorMessage":"no such call of the Runtime API"}"#;
            return respond(stream, "404 Not Found", "", body, keep);
        }
        Call::Response(id) if pending.length > LARGEST => {
            let reason = format!(
                "Function.ResponseSizeTooLarge: {} bytes, the limit is {LARGEST}",
                pending.length
            );
            room.answer(&id, FunctionResponse::Error(reason), Instant::now());
            let body = br#"{"errorType":"RequestEntityTooLarge","errorMessage":"the answer is too large"}"#;
            return respond(stream, "413 Content Too Large", "", body, keep);
        }
        Call::Response(id) => (
            id,
            FunctionResponse::Response {
                bytes: pending.length,
            },
        ),
        Call::Error(id) => (id, FunctionResponse::Error(words(&pending.kept))),
    };
    if room.answer(&id, answer, Instant::now()) {
        respond(stream, "202 Accepted", "", STATUS_OK, keep)
    } else {
        let body = br#"{"errorType":"InvalidRequestID","errorMessage":"no such invocation, or it has been answered"}"#;
        respond(stream, "400 Bad Request", "", body, keep)
    }
}

const STATUS_OK: &[u8] = br#"{"status":"OK"}"#;

fn respond(
    stream: &mut impl Write,
    status: &str,
    head: &str,
    body: &[u8],
    keep: bool,
) -> io::Result<()> {
    let connection = if keep { "" } else { "Connection: close\r\n" };
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{connection}{head}\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    stream.write_all(&bytes)
}

/// An error as runtime clients report it.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reported {
    #[serde(default)]
    error_type: String,
    #[serde(default)]
    error_message: String,
}

/// `errorType: errorMessage`, or a body of another form unchanged; truncated.
fn words(body: &[u8]) -> String {
    let text = match serde_json::from_slice::<Reported>(body) {
        Ok(report) if !report.error_message.is_empty() => {
            format!("{}: {}", report.error_type, report.error_message)
        }
        _ => String::from_utf8_lossy(body).into_owned(),
    };
    text.chars().take(WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn an_error_of_any_form_keeps_its_own_text() {
        let body = br#"{"errorMessage":"socket hang up","errorType":"Error","stackTrace":[]}"#;
        assert_eq!(words(body), "Error: socket hang up");
        assert_eq!(words(b"{\"a\":"), "{\"a\":");
        assert_eq!(words(&[0xff]), "\u{fffd}");
        assert_eq!(words(&[b'x'; 4000]).len(), 1024);
    }
}
