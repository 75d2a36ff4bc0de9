//! Header sections that are cut off or malformed: the facts in their first bytes.
//!
//! For observers, which must not lose a message that its receiver understood. A parser that frames
//! messages never uses it.

use super::fields::is_token;
use super::message::{Version, decimal};
use super::response::Kind;
use crate::exchange::{Request, Response};

/// Longest accepted method, in bytes.
const MAX_METHOD: usize = 24;

/// A request whose header section is cut off or malformed.
#[derive(Debug)]
pub(super) struct PartialRequest {
    pub(super) request: Request,
    pub(super) kind: Kind,
    /// The header section is complete and announces no body: another message follows.
    pub(super) is_complete: bool,
}

/// Whether a request begins with these bytes, with or without a complete request line.
pub fn begins_request(bytes: &[u8]) -> bool {
    request(bytes, 0, 0).is_some()
}

/// The request that begins with these bytes; times in nanoseconds. `None` if they begin no request.
pub(super) fn request(bytes: &[u8], started_at: u64, at: u64) -> Option<PartialRequest> {
    let method_len = bytes.iter().take_while(|&&byte| is_method(byte)).count();
    if !(1..=MAX_METHOD).contains(&method_len) || bytes.get(method_len) != Some(&b' ') {
        return None;
    }
    let method = &bytes[..method_len];
    let mut section = Section::of(bytes);
    let line = section.start_line();
    let version = line.and_then(version_of);
    let target = bytes[method_len..].trim_ascii_start();
    if version.is_none() && method != b"CONNECT" && !begins_target(target) {
        return None;
    }
    let mut request = Request {
        method: method.to_vec(),
        target: line.map_or_else(Vec::new, |line| target_of(&line[method_len..])),
        version,
        started_at,
        head_at: at,
        ended_at: Some(at),
        is_partial: true,
        ..Request::default()
    };
    let mut has_body = false;
    let mut is_kept = version != Some(Version::Http10);
    for (name, value) in section.by_ref() {
        if name.eq_ignore_ascii_case(b"host") {
            request.authority.get_or_insert_with(|| value.to_vec());
        } else if name.eq_ignore_ascii_case(b"user-agent") {
            request.agent.get_or_insert_with(|| value.to_vec());
        } else if name.eq_ignore_ascii_case(b"content-length") {
            has_body |= decimal(value) != Some(0);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            has_body = true;
        } else if name.eq_ignore_ascii_case(b"connection") {
            request.close |= value.eq_ignore_ascii_case(b"close");
            is_kept |= value.eq_ignore_ascii_case(b"keep-alive");
        } else {
            request.user.take(name, value);
        }
    }
    request.close |= section.is_whole && !is_kept;
    if section.is_whole {
        request.head_len = bytes.len() as u64;
    }
    Some(PartialRequest {
        kind: Kind::of(method),
        is_complete: section.is_whole && !has_body && method != b"CONNECT",
        request,
    })
}

/// The final response that begins with these bytes; times in nanoseconds. `None` if they begin no
/// final response.
pub(super) fn response(bytes: &[u8], started_at: u64, at: u64) -> Option<Response> {
    let [
        b'H',
        b'T',
        b'T',
        b'P',
        b'/',
        b'1',
        b'.',
        minor,
        b' ',
        rest @ ..,
    ] = bytes
    else {
        return None;
    };
    let status: [u8; 3] = *rest.first_chunk()?;
    let status = decimal(&status).and_then(|status| u16::try_from(status).ok())?;
    if status < 200 && status != 101 {
        return None;
    }
    let mut response = Response {
        status,
        version: Some(Version::of_minor(*minor)),
        started_at,
        head_at: at,
        ended_at: Some(at),
        solicited: true,
        is_partial: true,
        ..Response::default()
    };
    let mut section = Section::of(bytes);
    section.start_line();
    for (name, value) in section {
        response.close |=
            name.eq_ignore_ascii_case(b"connection") && value.eq_ignore_ascii_case(b"close");
    }
    Some(response)
}

/// Whether a method in use may contain this byte.
fn is_method(byte: u8) -> bool {
    is_token(byte) && !byte.is_ascii_lowercase()
}

/// Whether a target begins with these bytes. Other protocols have commands in capitals, too.
fn begins_target(bytes: &[u8]) -> bool {
    bytes.starts_with(b"/")
        || bytes.starts_with(b"*")
        || bytes.starts_with(b"http://")
        || bytes.starts_with(b"https://")
}

/// The version at the end of a request line, also in a malformed one: `HTTP/1.0.8`.
fn version_of(line: &[u8]) -> Option<Version> {
    let word = line.rsplit(|&byte| byte == b' ').next()?;
    match word.strip_prefix(b"HTTP/1.")? {
        [minor, ..] if minor.is_ascii_digit() => Some(Version::of_minor(*minor)),
        _ => None,
    }
}

/// The target in a request line after the method: everything before the version.
fn target_of(rest: &[u8]) -> Vec<u8> {
    let place = memchr::memmem::rfind(rest, b" HTTP/");
    rest[..place.unwrap_or(rest.len())].trim_ascii().to_vec()
}

/// The complete lines of a header section.
struct Section<'a> {
    rest: &'a [u8],
    /// The empty line at its end was read.
    is_whole: bool,
}

impl<'a> Section<'a> {
    fn of(bytes: &'a [u8]) -> Section<'a> {
        Section {
            rest: bytes,
            is_whole: false,
        }
    }

    /// The first line, if it is complete.
    fn start_line(&mut self) -> Option<&'a [u8]> {
        self.line()
    }

    fn line(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(b'\n', self.rest)?;
        let line = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

impl<'a> Iterator for Section<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = self.line()?;
            if line.is_empty() {
                self.is_whole = true;
                return None;
            }
            if let Some(colon) = memchr::memchr(b':', line) {
                return Some((&line[..colon], line[colon + 1..].trim_ascii()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<(String, String, bool)> {
        let partial = request(bytes, 1, 2)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let Request { method, target, .. } = &partial.request;
        Some((text(method), text(target), partial.is_complete))
    }

    #[test]
    fn a_refused_request_line_still_names_method_and_target() {
        for (bytes, target) in [
            (&b"GET /a HTTP/1.0.8\r\nHost: a\r\n\r\n"[..], "/a"),
            (b"GET /a b HTTP/1.1\r\n\r\n", "/a b"),
            (b"GET  /a HTTP/1.1\r\n\r\n", "/a"),
        ] {
            let expected = ("GET".to_owned(), target.to_owned(), true);
            assert_eq!(read(bytes), Some(expected), "{}", bytes.escape_ascii());
        }
        let old = request(b"GET /a HTTP/1.0.8\r\n\r\n", 1, 2).unwrap();
        assert!(old.request.close);
        let odd = request(b"PUT /a HTTP/1.1\r\nContent-Length: 2, 3\r\n\r\n", 1, 2).unwrap();
        assert!(!odd.is_complete && !odd.request.close);
    }

    #[test]
    fn a_request_that_is_cut_off_has_its_method() {
        let cut = request(b"POST /a HTTP/1.1\r\nHost: a.example\r\nUser-Ag", 1, 2).unwrap();
        assert_eq!(cut.request.authority.as_deref(), Some(&b"a.example"[..]));
        assert_eq!((cut.request.agent, cut.is_complete), (None, false));
        // a part of a target is no target
        let expected = ("GET".to_owned(), String::new(), false);
        assert_eq!(read(b"GET /very/lo"), Some(expected));
    }

    #[test]
    fn other_protocols_are_no_requests() {
        for bytes in [
            &b""[..],
            b"GET",
            b"GET ",
            b"EHLO mail.example",
            b"USER a\r\n",
            b"SSH-2.0-a",
            b"get /a",
            b"\x16\x03\x01",
        ] {
            assert_eq!(read(bytes), None, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_response_that_is_cut_off_has_its_status() {
        let cut = response(b"HTTP/1.1 503 Service Un", 1, 2).unwrap();
        assert_eq!((cut.status, cut.is_partial), (503, true));
        for bytes in [
            &b"HTTP/1.1 20"[..],
            b"HTTP/1.1 100 Continue\r\nA",
            b"HTTP/2",
        ] {
            assert!(response(bytes, 1, 2).is_none(), "{}", bytes.escape_ascii());
        }
        assert!(
            response(b"HTTP/1.0 200 OK\r\nConnection: close\r\nC", 1, 2)
                .unwrap()
                .close
        );
    }
}
