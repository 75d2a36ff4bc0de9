//! Heads of HTTP/1 answers.

use super::Request;
use crate::config::{Announce, Config};
use crate::fault::Fault;
use crate::response::Response;
use http::StatusCode;
use intact_ledger::KeepAliveTerms;
use intact_wire::http1::Version;
use std::io::Write;

/// How the end of the body is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is none.
    None,
    /// That many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

/// Appends a head. `alt_svc`: where HTTP/3 is spoken. `left`: requests that the connection still
/// takes, if that is limited.
pub(super) fn write(
    out: &mut Vec<u8>,
    request: &Request,
    answer: &Response,
    framing: Framing,
    (config, alt_svc): (&Config, Option<&str>),
    left: Option<u64>,
) -> KeepAliveTerms {
    let version = match (request.version, framing) {
        // chunks are not known to HTTP/1.0; asked for by a fault only
        (Version::Http10, Framing::Chunked) | (Version::Http11, _) => "1.1",
        (Version::Http10, _) => "1.0",
    };
    // writing to memory does not fail
    let _ = write!(
        out,
        "HTTP/{version} {} {}\r\n",
        answer.status,
        reason(answer.status)
    );
    let _ = match framing {
        Framing::None => Ok(()),
        Framing::Length(length) => write!(
            out,
            "Content-Length: {length}\r\nContent-Type: {}\r\n",
            answer.content_type
        ),
        Framing::Chunked => write!(
            out,
            "Transfer-Encoding: chunked\r\nContent-Type: {}\r\n",
            answer.content_type
        ),
        Framing::UntilClose => write!(out, "Content-Type: {}\r\n", answer.content_type),
    };
    if let Some(location) = answer.location {
        let _ = write!(out, "Location: {location}\r\n");
    }
    for (name, value) in &answer.fields {
        let _ = write!(out, "{name}: {value}\r\n");
    }
    if let Some(alt_svc) = alt_svc {
        let _ = write!(out, "Alt-Svc: {alt_svc}\r\n");
    }
    for (name, value) in &config.headers {
        let _ = write!(out, "{name}: {value}\r\n");
    }
    let mut terms = KeepAliveTerms::default();
    if !request.persistent {
        out.extend_from_slice(b"Connection: close\r\n");
    } else {
        let insists = request.plan.fault == Some(Fault::KeepAliveThenClose);
        if request.version == Version::Http10 || insists {
            out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        terms = announce(out, config, left);
    }
    out.extend_from_slice(b"\r\n");
    terms
}

/// Appends `Keep-Alive`; what it says honestly is returned.
fn announce(out: &mut Vec<u8>, config: &Config, left: Option<u64>) -> KeepAliveTerms {
    match &config.announce {
        Announce::Off => KeepAliveTerms::default(),
        Announce::Lie(words) => {
            let _ = write!(out, "Keep-Alive: {words}\r\n");
            KeepAliveTerms::default()
        }
        Announce::Honest => {
            let terms = KeepAliveTerms {
                timeout_s: config.idle_timeout.map(|limit| limit.as_secs() as u32),
                max: left.map(|left| left as u32),
                ..KeepAliveTerms::default()
            };
            let _ = match (terms.timeout_s, terms.max) {
                (None, None) => Ok(()),
                (Some(timeout), None) => write!(out, "Keep-Alive: timeout={timeout}\r\n"),
                (None, Some(max)) => write!(out, "Keep-Alive: max={max}\r\n"),
                (Some(timeout), Some(max)) => {
                    write!(out, "Keep-Alive: timeout={timeout}, max={max}\r\n")
                }
            };
            terms
        }
    }
}

/// The usual words (RFC 9110 section 15); none is as good (RFC 9112 section 4).
fn reason(status: u16) -> &'static str {
    match StatusCode::from_u16(status) {
        // the crate has the name of RFC 7231
        Ok(StatusCode::PAYLOAD_TOO_LARGE) => "Content Too Large",
        status => status.map_or("", |status| status.canonical_reason().unwrap_or("")),
    }
}
