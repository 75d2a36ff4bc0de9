//! Responses: the status line, the framing (from the status and the request), interim responses.

use super::error::{Error, Part, Snippet};
use super::fields::line_len;
use super::message::{Coding, Framing, Version};
use super::parser::{
    Follows, Meaning, MessageEvent, MessageHead, MessageParser, ParsedHead, Requests, StartLine,
};

/// Parses the responses of one connection. The [module](super) has an example.
pub type ResponseParser = MessageParser<StatusLine>;

/// One event in a stream of responses.
pub type ResponseEvent<'a> = MessageEvent<'a, StatusLine>;

/// The header section of one response.
pub type ResponseHead<'a> = MessageHead<'a, StatusLine>;

/// The facts about a request that its response's framing depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Any other method.
    Plain,
    /// HEAD: the response ends with its header section, even if it announces a length.
    Head,
    /// CONNECT: a 2xx turns the connection into a tunnel.
    Connect,
}

impl Kind {
    /// The kind of a request with this method.
    #[inline]
    pub fn of(method: &[u8]) -> Self {
        match method {
            b"HEAD" => Self::Head,
            b"CONNECT" => Self::Connect,
            _ => Self::Plain,
        }
    }
}

/// The parts of a status line (RFC 9112 section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusLine {
    status: u16,
}

impl<'a> ResponseHead<'a> {
    /// The status code, 100 to 999.
    #[inline]
    pub fn status(&self) -> u16 {
        self.start.status
    }

    /// The reason phrase, as sent.
    pub fn reason(&self) -> &'a [u8] {
        const REASON_AT: usize = "HTTP/1.1 200 ".len();
        let line = self.line();
        line[REASON_AT.min(line.len())..].trim_ascii()
    }
}

impl ResponseParser {
    /// Records that a request of this kind was sent. Its response follows the expected ones.
    #[inline]
    pub fn expect(&mut self, kind: Kind) {
        self.requests.expected.push_back(kind);
    }
}

impl StatusLine {
    /// Another response to the same request follows. A 101 is final.
    fn is_interim(self) -> bool {
        self.status < 200 && self.status != 101
    }
}

impl StartLine for StatusLine {
    type Interim<'a> = ResponseHead<'a>;

    fn blank_len(_: &[u8]) -> usize {
        0
    }

    #[inline]
    fn refuse(start: &[u8]) -> Option<Error> {
        const NAME: &[u8] = b"HTTP/";
        let seen = start.len().min(NAME.len());
        if start[..seen] != NAME[..seen] {
            return Some(Error::Syntax {
                part: Part::StatusLine,
                expected: "HTTP/1.x",
                found: Snippet::new(start),
            });
        }
        match start.get(NAME.len()) {
            None | Some(b'1') => None,
            Some(_) => Some(Error::Version {
                found: Snippet::new(&start[..start.len().min(NAME.len() + 3)]),
            }),
        }
    }

    #[inline]
    fn parse(head: &[u8]) -> Result<(Self, Version, usize), Error> {
        let refuse = |expected| Error::Syntax {
            part: Part::StatusLine,
            expected,
            found: Snippet::new(head),
        };
        let (minor, rest) = match head.get("HTTP/1".len()..) {
            Some([b'.', minor, b' ', rest @ ..]) if minor.is_ascii_digit() => (*minor, rest),
            _ => return Err(refuse("a version like HTTP/1.1 and one space")),
        };
        let (status, rest) = match rest {
            [a @ b'1'..=b'9', b, c, rest @ ..] if b.is_ascii_digit() && c.is_ascii_digit() => (
                [a, b, c]
                    .iter()
                    .fold(0, |n, &&digit| n * 10 + u16::from(digit - b'0')),
                rest,
            ),
            _ => return Err(refuse("a status code from 100 to 999")),
        };
        // the space before an empty reason is often omitted
        if !matches!(rest, [b' ' | b'\r' | b'\n', ..]) {
            return Err(refuse("a space after the status code"));
        }
        let len = head.len() - rest.len() + line_len(rest, Part::StatusLine)?;
        Ok((Self { status }, Version::of_minor(minor), len))
    }

    #[inline]
    fn meaning(
        head: &ParsedHead<Self>,
        _: &[u8],
        requests: &mut Requests,
    ) -> Result<Meaning, Error> {
        let solicited = !requests.expected.is_empty();
        // RFC 9112 section 6.1: HTTP/1.0 has no transfer codings, so the connection cannot be
        // trusted afterwards
        let persists = head.fields.persists(head.version) && !head.is_coded_1_0();
        let (framing, follows) = if head.start.is_interim() {
            requests.count_interim()?;
            (Framing::None, Follows::Head)
        } else {
            match framing(head, requests.answer()) {
                Framing::Tunnel => (Framing::Tunnel, Follows::Tunnel),
                framing => (framing, Follows::Message),
            }
        };
        Ok(Meaning {
            framing,
            persistent: persists && framing != Framing::UntilClose,
            solicited,
            follows,
        })
    }

    #[inline]
    fn event(head: ResponseHead<'_>) -> ResponseEvent<'_> {
        if head.start.is_interim() {
            MessageEvent::Interim(head)
        } else {
            MessageEvent::Head(head)
        }
    }
}

/// The framing in the order of RFC 9112 section 6.3.
#[inline]
fn framing(head: &ParsedHead<StatusLine>, kind: Kind) -> Framing {
    match (
        head.start.status,
        kind,
        head.fields.coding,
        head.fields.length,
    ) {
        (101, ..) | (200..300, Kind::Connect, ..) => Framing::Tunnel,
        (_, Kind::Head, ..) | (100..200 | 204 | 304, ..) => Framing::None,
        (_, _, Coding::Chunked, _) => Framing::Chunked,
        (_, _, Coding::Unframed, _) => Framing::UntilClose,
        (_, _, Coding::Absent, Some(length)) => Framing::Length(length),
        (_, _, Coding::Absent, None) => Framing::UntilClose,
    }
}
