//! Requests: the request line, framing, and the facts that a server needs for its response.

use std::convert::Infallible;

use super::Kind;
use super::error::{Error, Part, Snippet};
use super::fields::{is_token, line_len};
use super::message::{Coding, Framing, Version};
use super::parser::{
    Follows, Meaning, MessageEvent, MessageHead, MessageParser, ParsedHead, Requests, StartLine,
    State,
};

/// Parses the requests of one connection. The [module](super) has an example.
pub type RequestParser = MessageParser<RequestLine>;

/// One event in a stream of requests. After the `End` of a CONNECT ([`Persistence::Tunnel`])
/// nothing is parsed until [`RequestParser::resume`].
pub type RequestEvent<'a> = MessageEvent<'a, RequestLine>;

/// The header section of one request.
pub type RequestHead<'a> = MessageHead<'a, RequestLine>;

/// The parts of a request line (RFC 9112 section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLine {
    method_len: usize,
    target_len: usize,
}

impl<'a> RequestHead<'a> {
    /// The method, as sent: methods are case-sensitive.
    pub fn method(&self) -> &'a [u8] {
        &self.line()[..self.start.method_len]
    }

    /// The target, as sent: with its query string, not decoded.
    pub fn target(&self) -> &'a [u8] {
        &self.line()[self.start.method_len + 1..][..self.start.target_len]
    }

    /// The facts about this request that the parser of responses needs.
    pub fn kind(&self) -> Kind {
        Kind::of(self.method())
    }
}

impl RequestParser {
    /// Records that a CONNECT was refused: HTTP/1 continues after it.
    pub fn resume(&mut self) {
        if let State::Tunnel = self.state {
            self.state = State::Head;
        }
    }
}

impl StartLine for RequestLine {
    type Interim<'a> = Infallible;

    /// Empty lines before a request are skipped (RFC 9112 section 2.2).
    #[inline]
    fn blank_len(input: &[u8]) -> usize {
        input
            .iter()
            .take_while(|b| matches!(b, b'\r' | b'\n'))
            .count()
    }

    /// A TLS hello, for example, may never contain an empty line.
    #[inline]
    fn refuse(start: &[u8]) -> Option<Error> {
        const MAX_METHOD: usize = 64;
        let method_len = start
            .iter()
            .take(MAX_METHOD + 1)
            .take_while(|&&b| is_token(b))
            .count();
        match start.get(method_len) {
            Some(b' ') if (1..=MAX_METHOD).contains(&method_len) => None,
            None if method_len <= MAX_METHOD => None,
            _ => Some(Error::Syntax {
                part: Part::RequestLine,
                expected: "a method and one space",
                found: Snippet::new(start),
            }),
        }
    }

    #[inline]
    fn parse(head: &[u8]) -> Result<(Self, Version, usize), Error> {
        let refuse = |expected| Error::Syntax {
            part: Part::RequestLine,
            expected,
            found: Snippet::new(head),
        };
        let line = &head[..line_len(head, Part::RequestLine)?];
        let method_len = line.iter().take_while(|&&b| is_token(b)).count();
        let Some((b' ', rest)) = line[method_len..].split_first() else {
            return Err(refuse("a method and one space"));
        };
        let target_len = rest.iter().take_while(|&&b| b > b' ' && b != 0x7f).count();
        if target_len == 0 {
            return Err(refuse("a target after the method"));
        }
        let version = match &rest[target_len..] {
            [b' ', b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor] if minor.is_ascii_digit() => {
                Version::of_minor(*minor)
            }
            [b' ', version @ ..]
                if matches!(
                    version,
                    [b'H', b'T', b'T', b'P', b'/', b'0' | b'2'..=b'9', ..]
                ) =>
            {
                return Err(Error::Version {
                    found: Snippet::new(version),
                });
            }
            [] => return Err(refuse("a version after the target (HTTP/0.9 is not read)")),
            _ => {
                return Err(refuse(
                    "one space and a version like HTTP/1.1 after the target",
                ));
            }
        };
        let start = Self {
            method_len,
            target_len,
        };
        Ok((start, version, line.len()))
    }

    #[inline]
    fn meaning(head: &ParsedHead<Self>, bytes: &[u8], _: &mut Requests) -> Result<Meaning, Error> {
        let framing = match (head.fields.coding, head.fields.length) {
            (Coding::Chunked, _) => Framing::Chunked,
            (Coding::Unframed, _) => {
                return Err(Error::framing(
                    "a request whose final transfer coding is not chunked",
                    &bytes[..line_len(bytes, Part::RequestLine)?],
                ));
            }
            (Coding::Absent, Some(length)) => Framing::Length(length),
            (Coding::Absent, None) => Framing::None,
        };
        let persistent = head.fields.persists(head.version) && !head.is_ambiguous();
        Ok(Meaning {
            framing,
            persistent,
            solicited: true,
            follows: match Kind::of(&bytes[..head.start.method_len]) {
                Kind::Connect => Follows::Tunnel,
                Kind::Plain | Kind::Head => Follows::Message,
            },
        })
    }

    #[inline]
    fn event(head: RequestHead<'_>) -> RequestEvent<'_> {
        MessageEvent::Head(head)
    }
}
