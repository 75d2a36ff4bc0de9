//! Requests: request line, framing, what a server must know before it answers.

use super::content::{Content, Payload};
use super::error::{Error, Part, Snippet};
use super::fields::{Headers, after_line, is_token, line_len};
use super::head_cache::HeadCache;
use super::message::{Coding, Eof, Fields, Framing, KeepAlive, Options, Persistence, Version};
use super::{Kind, Limits, ParseStep};

/// One thing that happened in a stream of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestEvent<'a> {
    /// The head of a request.
    Head(RequestHead<'a>),
    /// Payload bytes, never empty, chunk framing removed.
    Body(&'a [u8]),
    /// The trailer fields of a chunked body, where there are any.
    Trailers(Headers<'a>),
    /// The request is complete. After a CONNECT ([`Persistence::Tunnel`]) nothing more is parsed until [`RequestParser::resume`].
    End(Persistence),
}

/// The head of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// The method, as sent: methods are case-sensitive.
    pub method: &'a [u8],
    /// The target, as sent: query string and all, not decoded.
    pub target: &'a [u8],
    /// The version in the request line.
    pub version: Version,
    /// How the end of the body is known: `None`, `Length` or `Chunked`.
    pub framing: Framing,
    /// The options of `Connection`.
    pub options: Options,
    /// The terms of `Keep-Alive`, where a client sends any.
    pub keep_alive: KeepAlive,
    /// `Expect: 100-continue`: the client may hold its body back until an interim response.
    pub expects_continue: bool,
    /// Content-Length beside Transfer-Encoding, or a transfer coding in HTTP/1.0: parsed, but another reader may see it differently.
    pub ambiguous: bool,
    block: &'a [u8],
    fields_at: usize,
}

impl<'a> RequestHead<'a> {
    /// Whether the client leaves the connection open (RFC 9112 section 9.3); an ambiguous request closes it (section 6.3).
    pub fn persistent(&self) -> bool {
        let default = self.version == Version::Http11 || self.options.keep_alive;
        default && !self.options.close && !self.ambiguous
    }

    /// What the parser of the responses must be told of this request.
    pub fn kind(&self) -> Kind {
        match self.method {
            b"HEAD" => Kind::Head,
            b"CONNECT" => Kind::Connect,
            _ => Kind::Plain,
        }
    }

    /// All fields, in order.
    pub fn headers(&self) -> Headers<'a> {
        Headers::over(&self.block[self.fields_at..])
    }

    /// The first field with that name, letter case ignored.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers().find(name)
    }

    /// The head as sent, its empty line included; its length is the header bytes of this request.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.block
    }
}

/// Parses the requests of one connection. See the [module](super) for how to drive it.
#[derive(Debug)]
pub struct RequestParser {
    head: HeadCache<Parsed>,
    content: Content,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Between requests; empty lines here are skipped (RFC 9112 section 2.2).
    Idle,
    Head,
    Content,
    Tunnel,
    Failed(Error),
}

/// A head without its bytes.
#[derive(Debug, Clone, Copy)]
struct Parsed {
    method_len: usize,
    target_len: usize,
    version: Version,
    framing: Framing,
    fields: Fields,
    fields_at: usize,
}

impl Default for RequestParser {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl RequestParser {
    /// A parser for a new connection; requests have no interim messages, so only `limits.head` counts.
    pub fn new(limits: Limits) -> Self {
        Self {
            head: HeadCache::new(limits),
            content: Content::new(limits),
            state: State::Idle,
        }
    }

    /// Tells that a CONNECT was refused, so that HTTP/1 goes on after it.
    pub fn resume(&mut self) {
        if let State::Tunnel = self.state {
            self.state = State::Idle;
        }
    }

    /// Uses some of the input and tells what it meant. Call again with the rest until there is no event.
    pub fn parse<'a>(&'a mut self, input: &'a [u8]) -> Result<ParseStep<RequestEvent<'a>>, Error> {
        match self.state {
            State::Idle => {
                let blank = input
                    .iter()
                    .take_while(|b| matches!(b, b'\r' | b'\n'))
                    .count();
                if blank == input.len() {
                    return Ok(ParseStep {
                        consumed: blank,
                        event: None,
                    });
                }
                self.state = State::Head;
                self.parse_head(&input[blank..], blank)
            }
            State::Head => self.parse_head(input, 0),
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
                    }) => self.state = State::Idle,
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

    /// Tells what the end of the stream meant.
    pub fn finish(&self) -> Eof {
        match self.state {
            State::Idle | State::Failed(_) => Eof::Idle,
            State::Head => Eof::InHead,
            State::Content => self.content.finish(),
            State::Tunnel => Eof::Complete,
        }
    }

    fn parse_head<'a>(
        &'a mut self,
        input: &'a [u8],
        skipped: usize,
    ) -> Result<ParseStep<RequestEvent<'a>>, Error> {
        let step = match self.head.read(input, not_a_request_line, Parsed::parse) {
            Ok(step) => step,
            Err(error) => {
                self.state = State::Failed(error);
                return Err(error);
            }
        };
        let consumed = skipped + step.consumed;
        let Some(parsed) = step.event else {
            return Ok(ParseStep {
                consumed,
                event: None,
            });
        };
        let head = parsed.head(self.head.bytes());
        let after = match (head.kind(), head.persistent()) {
            (Kind::Connect, _) => Persistence::Tunnel,
            (_, true) => Persistence::Reuse,
            (_, false) => Persistence::Close,
        };
        self.content.begin(head.framing, after);
        self.state = State::Content;
        Ok(ParseStep {
            consumed,
            event: Some(RequestEvent::Head(head)),
        })
    }
}

impl<'a> From<Payload<'a>> for RequestEvent<'a> {
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
        if let Some(error) = not_a_request_line(block) {
            return Err(error);
        }
        let refuse = |expected| Error::Syntax {
            part: Part::RequestLine,
            expected,
            found: Snippet::new(block),
        };
        let line = &block[..line_len(block, Part::RequestLine)?];
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
                if *minor == b'0' {
                    Version::Http10
                } else {
                    Version::Http11
                }
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
        let lines = after_line(&block[line.len()..]);
        let fields = Fields::parse(lines)?;
        let framing = match (fields.coding, fields.length) {
            (Coding::Chunked, _) => Framing::Chunked,
            (Coding::Unframed, _) => {
                return Err(Error::Framing {
                    why: "a request whose final transfer coding is not chunked",
                    found: Snippet::new(line),
                });
            }
            (Coding::Absent, Some(length)) => Framing::Length(length),
            (Coding::Absent, None) => Framing::None,
        };
        Ok(Self {
            method_len,
            target_len,
            version,
            framing,
            fields,
            fields_at: block.len() - lines.len(),
        })
    }

    fn head<'a>(&self, block: &'a [u8]) -> RequestHead<'a> {
        let target_at = self.method_len + 1;
        let coded_1_0 = self.version == Version::Http10 && self.fields.coding != Coding::Absent;
        RequestHead {
            method: &block[..self.method_len],
            target: &block[target_at..target_at + self.target_len],
            version: self.version,
            framing: self.framing,
            options: self.fields.options,
            keep_alive: self.fields.keep_alive,
            expects_continue: self.fields.expects_continue,
            ambiguous: self.fields.is_ambiguous() || coded_1_0,
            block,
            fields_at: self.fields_at,
        }
    }
}

/// The error of a start that no request line can have: a TLS hello, for example, may never hold an empty line.
fn not_a_request_line(start: &[u8]) -> Option<Error> {
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
