//! Responses: status line, which framing a status and its request imply, interim responses, the end of the stream.

use std::collections::VecDeque;

use super::content::{Content, Payload};
use super::error::{Error, Part, Snippet};
use super::fields::{Headers, after_line, line_len};
use super::head_cache::HeadCache;
use super::message::{Coding, Eof, Fields, Framing, KeepAlive, Options, Persistence, Version};
use super::{Limits, ParseStep};

/// What the response's framing must know of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Any method but the two below.
    Plain,
    /// HEAD: the response ends with its head, whatever length it names.
    Head,
    /// CONNECT: a 2xx turns the connection into a tunnel.
    Connect,
}

/// One thing that happened in a stream of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseEvent<'a> {
    /// The head of an interim response (1xx, not 101); a final one follows.
    Interim(ResponseHead<'a>),
    /// The head of a final response, or of a 101.
    Head(ResponseHead<'a>),
    /// Payload bytes, never empty, chunk framing removed.
    Body(&'a [u8]),
    /// The trailer fields of a chunked body, where there are any.
    Trailers(Headers<'a>),
    /// The response is complete. A body that ends with the connection has no such event: see [`ResponseParser::finish`].
    End(Persistence),
}

/// The head of one response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseHead<'a> {
    /// The version in the status line.
    pub version: Version,
    /// The status code, 100 to 999.
    pub status: u16,
    /// How the end of the body is known.
    pub framing: Framing,
    /// The options of `Connection`.
    pub options: Options,
    /// The terms of `Keep-Alive`.
    pub keep_alive: KeepAlive,
    /// Content-Length beside Transfer-Encoding, or a transfer coding in HTTP/1.0: parsed, but another reader may see it differently.
    pub ambiguous: bool,
    /// `false`: the server sent this although no request was outstanding (a 408 before it closes, for example).
    pub solicited: bool,
    persistent: bool,
    block: &'a [u8],
    fields_at: usize,
}

impl<'a> ResponseHead<'a> {
    /// Whether the server leaves the connection open (RFC 9112 section 9.3); what the request said is not considered.
    pub fn persistent(&self) -> bool {
        self.persistent
    }

    /// The reason phrase, as sent.
    pub fn reason(&self) -> &'a [u8] {
        self.block[REASON_AT.min(self.fields_at)..self.fields_at].trim_ascii()
    }

    /// All fields, in order.
    pub fn headers(&self) -> Headers<'a> {
        Headers::over(&self.block[self.fields_at..])
    }

    /// The first field with that name, letter case ignored.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers().find(name)
    }

    /// The head as sent, its empty line included; its length is the header bytes of this response.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.block
    }
}

const REASON_AT: usize = "HTTP/1.1 200 ".len();

/// Parses the responses of one connection. See the [module](super) for how to drive it.
#[derive(Debug)]
pub struct ResponseParser {
    head: HeadCache<Parsed>,
    content: Content,
    expected: VecDeque<Kind>,
    state: State,
    interim: u32,
    max_interim: u32,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Head,
    Content,
    Tunnel,
    Failed(Error),
}

/// A head without its bytes and without its request.
#[derive(Debug, Clone, Copy)]
struct Parsed {
    version: Version,
    status: u16,
    fields: Fields,
    fields_at: usize,
}

impl Default for ResponseParser {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl ResponseParser {
    /// A parser for a new connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            head: HeadCache::new(limits),
            content: Content::new(limits),
            expected: VecDeque::new(),
            state: State::Head,
            interim: 0,
            max_interim: limits.interim,
        }
    }

    /// Tells that a request of this kind was sent; its response follows those already expected.
    pub fn expect(&mut self, kind: Kind) {
        self.expected.push_back(kind);
    }

    /// How many responses are expected and have not had their final head yet.
    pub fn outstanding(&self) -> usize {
        self.expected.len()
    }

    /// Uses some of the input and tells what it meant. Call again with the rest until there is no event.
    pub fn parse<'a>(&'a mut self, input: &'a [u8]) -> Result<ParseStep<ResponseEvent<'a>>, Error> {
        match self.state {
            State::Head => self.parse_head(input),
            State::Content => {
                let step = self.content.step(input);
                match &step {
                    Ok(ParseStep {
                        event: Some(Payload::End(Persistence::Tunnel)),
                        ..
                    }) => self.state = State::Tunnel,
                    Ok(ParseStep {
                        event: Some(Payload::End(_)),
                        ..
                    }) => self.state = State::Head,
                    Ok(_) => {}
                    Err(error) => self.state = State::Failed(*error),
                }
                step.map(ParseStep::map_into)
            }
            State::Tunnel => Ok(ParseStep {
                consumed: 0,
                event: None,
            }),
            State::Failed(error) => Err(error),
        }
    }

    /// Skips bytes of the stream that the caller does not have. `false` where they cannot all be payload: then the
    /// parser is out of step and of no further use.
    pub fn skip(&mut self, len: u64) -> bool {
        matches!(self.state, State::Tunnel)
            || (matches!(self.state, State::Content) && self.content.skip(len))
    }

    /// Tells what the end of the stream meant; a body that ends with the connection is complete now.
    pub fn finish(&self) -> Eof {
        match self.state {
            State::Head if !self.head.partial().is_empty() => Eof::InHead,
            State::Head | State::Failed(_) => match self.expected.len() {
                0 => Eof::Idle,
                requests => Eof::Unanswered { requests },
            },
            State::Content => self.content.finish(),
            State::Tunnel => Eof::Complete,
        }
    }

    fn parse_head<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<ParseStep<ResponseEvent<'a>>, Error> {
        let ParseStep { consumed, event } =
            match self.head.read(input, not_a_status_line, Parsed::parse) {
                Ok(step) => step,
                Err(error) => return Err(self.fail(error)),
            };
        let Some(parsed) = event else {
            return Ok(ParseStep {
                consumed,
                event: None,
            });
        };
        let solicited = !self.expected.is_empty();
        if parsed.status < 200 && parsed.status != 101 {
            self.interim += 1;
            if self.interim > self.max_interim {
                return Err(self.fail(Error::TooManyInterim {
                    limit: self.max_interim,
                }));
            }
            let head = parsed.head(self.head.bytes(), Framing::None, solicited);
            return Ok(ParseStep {
                consumed,
                event: Some(ResponseEvent::Interim(head)),
            });
        }
        self.interim = 0;
        let kind = self.expected.pop_front().unwrap_or(Kind::Plain);
        let head = parsed.head(self.head.bytes(), parsed.framing(kind), solicited);
        let after = match (head.framing, head.persistent) {
            (Framing::Tunnel, _) => Persistence::Tunnel,
            (_, true) => Persistence::Reuse,
            (_, false) => Persistence::Close,
        };
        self.content.begin(head.framing, after);
        self.state = State::Content;
        Ok(ParseStep {
            consumed,
            event: Some(ResponseEvent::Head(head)),
        })
    }

    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        self.state = State::Failed(error);
        error
    }
}

impl<'a> From<Payload<'a>> for ResponseEvent<'a> {
    fn from(payload: Payload<'a>) -> Self {
        match payload {
            Payload::Body(bytes) => Self::Body(bytes),
            Payload::Trailers(fields) => Self::Trailers(fields),
            Payload::End(after) => Self::End(after),
        }
    }
}

impl Parsed {
    fn parse(block: &[u8]) -> Result<Self, Error> {
        if let Some(error) = not_a_status_line(block) {
            return Err(error);
        }
        let refuse = |expected| Error::Syntax {
            part: Part::StatusLine,
            expected,
            found: Snippet::new(block),
        };
        let (minor, rest) = match block.get("HTTP/1.".len()..) {
            Some([minor, b' ', rest @ ..]) if minor.is_ascii_digit() => (*minor, rest),
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
        // The space before an empty reason is often left out.
        if !matches!(rest, [b' ' | b'\r' | b'\n', ..]) {
            return Err(refuse("a space after the status code"));
        }
        let lines = after_line(&rest[line_len(rest, Part::StatusLine)?..]);
        let version = if minor == b'0' {
            Version::Http10
        } else {
            Version::Http11
        };
        Ok(Self {
            version,
            status,
            fields: Fields::parse(lines)?,
            fields_at: block.len() - lines.len(),
        })
    }

    /// RFC 9112 section 6.3, in its order.
    fn framing(&self, kind: Kind) -> Framing {
        match (self.status, kind, self.fields.coding, self.fields.length) {
            (101, ..) | (200..300, Kind::Connect, ..) => Framing::Tunnel,
            (_, Kind::Head, ..) | (100..200 | 204 | 304, ..) => Framing::None,
            (_, _, Coding::Chunked, _) => Framing::Chunked,
            (_, _, Coding::Unframed, _) => Framing::UntilClose,
            (_, _, Coding::Absent, Some(length)) => Framing::Length(length),
            (_, _, Coding::Absent, None) => Framing::UntilClose,
        }
    }

    fn head<'a>(&self, block: &'a [u8], framing: Framing, solicited: bool) -> ResponseHead<'a> {
        let coded_1_0 = self.version == Version::Http10 && self.fields.coding != Coding::Absent;
        ResponseHead {
            version: self.version,
            status: self.status,
            framing,
            options: self.fields.options,
            keep_alive: self.fields.keep_alive,
            ambiguous: self.fields.is_ambiguous() || coded_1_0,
            solicited,
            // RFC 9112 section 6.1: HTTP/1.0 has no transfer codings, so the connection cannot be trusted afterwards.
            persistent: self.fields.persists(self.version)
                && framing != Framing::UntilClose
                && !coded_1_0,
            block,
            fields_at: self.fields_at,
        }
    }
}

/// The error of a start that no status line can have, as soon as its first bytes show it.
fn not_a_status_line(start: &[u8]) -> Option<Error> {
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
