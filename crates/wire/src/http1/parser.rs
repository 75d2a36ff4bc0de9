//! One parser for requests and responses: a start line, fields, content. [`StartLine`] defines the
//! differences.
//!
//! The parser of responses is the hot path of the load engine, which is in another crate. Generic
//! code is compiled in the crate that uses it, so functions that are called for every message are
//! `#[inline]`.

use std::collections::VecDeque;
use std::fmt;

use super::content::Content;
use super::error::Error;
use super::fields::{Headers, after_line};
use super::head_cache::HeadCache;
use super::message::{Coding, Eof, Fields, Framing, KeepAlive, Options, Persistence, Version};
use super::{Kind, Limits, ParseStep};

/// The differences between requests and responses: the start line, and its meaning for the content.
pub trait StartLine: fmt::Debug + Copy + Eq {
    /// The header section of an interim message. Only responses have one; for requests the type is
    /// empty.
    type Interim<'a>: fmt::Debug + Copy + Eq;

    /// Number of bytes before the message that are skipped.
    fn blank_len(input: &[u8]) -> usize;

    /// The error of a start that no message can have, as soon as its first bytes show it.
    fn refuse(start: &[u8]) -> Option<Error>;

    /// Parses the start line of a header section that [`StartLine::refuse`] accepts. Returns it,
    /// its version, and its length without the line end.
    fn parse(head: &[u8]) -> Result<(Self, Version, usize), Error>;

    /// The meaning of the header section, with the requests of the responses.
    fn meaning(
        head: &ParsedHead<Self>,
        bytes: &[u8],
        requests: &mut Requests,
    ) -> Result<Meaning, Error>;

    /// The event of a header section.
    fn event(head: MessageHead<'_, Self>) -> MessageEvent<'_, Self>;
}

/// One event in a stream of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageEvent<'a, S: StartLine> {
    /// The header section of an interim response (1xx, not 101); a final one follows. Requests have
    /// no such event.
    Interim(S::Interim<'a>),
    /// The header section of a request, of a final response, or of a 101.
    Head(MessageHead<'a, S>),
    /// Content bytes, never empty, without chunk framing.
    Body(&'a [u8]),
    /// The trailer fields of a chunked body, if there are any.
    Trailers(Headers<'a>),
    /// The message is complete. A body that lasts until the close has no such event: see
    /// [`MessageParser::finish`].
    End(Persistence),
}

/// The header section of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageHead<'a, S> {
    /// The version in the start line.
    pub version: Version,
    /// How the end of the body is determined. In a request: `None`, `Length` or `Chunked`.
    pub framing: Framing,
    /// The options of `Connection`.
    pub options: Options,
    /// The terms of `Keep-Alive`, if the sender announces them.
    pub keep_alive: KeepAlive,
    /// `Expect: 100-continue`: the client may wait for an interim response before it sends the
    /// body.
    pub expects_continue: bool,
    /// Content-Length with Transfer-Encoding, or a transfer coding in HTTP/1.0: accepted, but
    /// another parser may frame the message differently.
    pub ambiguous: bool,
    /// `false`: the server sent this without an outstanding request (for example a 408 before it
    /// closes).
    pub solicited: bool,
    pub(super) start: S,
    persistent: bool,
    block: &'a [u8],
    fields_at: usize,
}

impl<'a, S> MessageHead<'a, S> {
    /// Whether the sender leaves the connection open (RFC 9112 section 9.3); an ambiguous request
    /// closes it (section 6.3).
    #[inline]
    pub fn persistent(&self) -> bool {
        self.persistent
    }

    /// The start line with its line end.
    pub(super) fn line(&self) -> &'a [u8] {
        &self.block[..self.fields_at]
    }

    /// All fields, in order.
    #[inline]
    pub fn headers(&self) -> Headers<'a> {
        Headers::over(&self.block[self.fields_at..])
    }

    /// The first field with this name, in any case.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers().find(name)
    }

    /// The last field with this name, in any case.
    pub(super) fn last_field(&self, name: &[u8]) -> Option<&'a [u8]> {
        let named = self
            .headers()
            .filter(|(own, _)| own.eq_ignore_ascii_case(name));
        named.last().map(|(_, value)| value)
    }

    /// The header section as sent, with its empty line. Its length is the number of header bytes.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.block
    }
}

/// Parses the messages of one direction of a connection. The [module](super) has an example.
#[derive(Debug)]
pub struct MessageParser<S> {
    head: HeadCache<ParsedHead<S>>,
    content: Content,
    pub(super) state: State,
    pub(super) requests: Requests,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum State {
    /// Between messages, or in a header section.
    Head,
    Content,
    Tunnel,
    Failed(Error),
}

/// The requests that a parser of responses needs; a parser of requests leaves them empty.
#[derive(Debug)]
pub struct Requests {
    /// The kinds of requests without a final response, oldest first.
    pub(super) expected: VecDeque<Kind>,
    interim: u32,
    max_interim: u32,
}

/// A parsed header section, without its bytes and without its request.
#[derive(Debug, Clone, Copy)]
pub struct ParsedHead<S> {
    pub(super) start: S,
    pub(super) version: Version,
    pub(super) fields: Fields,
    fields_at: usize,
}

/// The meaning of a header section for the content and the connection.
#[derive(Debug)]
pub struct Meaning {
    pub(super) framing: Framing,
    pub(super) persistent: bool,
    pub(super) solicited: bool,
    pub(super) follows: Follows,
}

/// What follows a header section.
#[derive(Debug)]
pub(super) enum Follows {
    /// Another header section: this one is interim.
    Head,
    /// Content, which may be empty, then another message if the connection persists.
    Message,
    /// Content, then another protocol.
    Tunnel,
}

impl<S: StartLine> Default for MessageParser<S> {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl<S: StartLine> MessageParser<S> {
    /// A parser for a new connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            head: HeadCache::new(limits),
            content: Content::new(limits),
            state: State::Head,
            requests: Requests {
                expected: VecDeque::new(),
                interim: 0,
                max_interim: limits.interim,
            },
        }
    }

    /// Consumes part of the input and returns its event. Call again with the rest until it returns
    /// no event.
    pub fn parse<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<ParseStep<MessageEvent<'a, S>>, Error> {
        match self.state {
            State::Head => self.parse_head(input),
            State::Content => {
                let step = self.content.step(input);
                match &step {
                    Ok(step) => match step.event {
                        Some(MessageEvent::End(Persistence::Tunnel)) => self.state = State::Tunnel,
                        Some(MessageEvent::End(_)) => self.state = State::Head,
                        _ => {}
                    },
                    Err(error) => self.state = State::Failed(*error),
                }
                step
            }
            State::Tunnel => Ok(ParseStep {
                consumed: 0,
                event: None,
            }),
            State::Failed(error) => Err(error),
        }
    }

    /// Skips bytes of the stream that the caller does not have. `false` if they cannot all be
    /// content: then the parser is out of step and must not be used again.
    pub fn skip(&mut self, len: u64) -> bool {
        matches!(self.state, State::Tunnel)
            || (matches!(self.state, State::Content) && self.content.skip(len))
    }

    /// The bytes of an incomplete header section.
    pub(super) fn partial_head(&self) -> &[u8] {
        self.head.partial()
    }

    /// The bytes of a refused header section, complete or not. Empty if too many arrived in one
    /// piece.
    pub(super) fn refused_head(&self) -> &[u8] {
        self.head.refused()
    }

    /// The meaning of the stream's end; it completes a body that lasts until the close.
    pub fn finish(&self) -> Eof {
        match self.state {
            State::Head if !self.head.partial().is_empty() => Eof::InHead,
            State::Head | State::Failed(_) => match self.requests.expected.len() {
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
    ) -> Result<ParseStep<MessageEvent<'a, S>>, Error> {
        let blank = if self.head.partial().is_empty() {
            S::blank_len(input)
        } else {
            0
        };
        let step = match self
            .head
            .read(&input[blank..], S::refuse, ParsedHead::parse)
        {
            Ok(step) => step,
            Err(error) => return Err(self.fail(error)),
        };
        let consumed = blank + step.consumed;
        let Some(parsed) = step.event else {
            return Ok(ParseStep {
                consumed,
                event: None,
            });
        };
        let meaning = match S::meaning(&parsed, self.head.bytes(), &mut self.requests) {
            Ok(meaning) => meaning,
            Err(error) => {
                self.head.refuse_last();
                return Err(self.fail(error));
            }
        };
        let after = match (&meaning.follows, meaning.persistent) {
            (Follows::Head, _) => None,
            (Follows::Tunnel, _) => Some(Persistence::Tunnel),
            (Follows::Message, true) => Some(Persistence::Reuse),
            (Follows::Message, false) => Some(Persistence::Close),
        };
        if let Some(after) = after {
            self.content.begin(meaning.framing, after);
            self.state = State::Content;
        }
        Ok(ParseStep {
            consumed,
            event: Some(S::event(parsed.head(self.head.bytes(), &meaning))),
        })
    }

    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        self.state = State::Failed(error);
        error
    }
}

impl Requests {
    /// Counts an interim response; more of them than the limit are an error.
    pub(super) fn count_interim(&mut self) -> Result<(), Error> {
        self.interim += 1;
        if self.interim > self.max_interim {
            return Err(Error::TooManyInterim {
                limit: self.max_interim,
            });
        }
        Ok(())
    }

    /// Removes the request that a final response belongs to, and returns its kind.
    #[inline]
    pub(super) fn answer(&mut self) -> Kind {
        self.interim = 0;
        self.expected.pop_front().unwrap_or(Kind::Plain)
    }
}

impl<S> ParsedHead<S> {
    /// Whether a message of HTTP/1.0 has a transfer coding, which that version lacks (RFC 9112
    /// section 6.1).
    pub(super) fn is_coded_1_0(&self) -> bool {
        self.version == Version::Http10 && self.fields.coding != Coding::Absent
    }

    /// Whether another reader may parse the message differently.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.fields.is_ambiguous() || self.is_coded_1_0()
    }

    fn head<'a>(self, block: &'a [u8], meaning: &Meaning) -> MessageHead<'a, S> {
        MessageHead {
            version: self.version,
            framing: meaning.framing,
            options: self.fields.options,
            keep_alive: self.fields.keep_alive,
            expects_continue: self.fields.expects_continue,
            ambiguous: self.is_ambiguous(),
            solicited: meaning.solicited,
            persistent: meaning.persistent,
            block,
            fields_at: self.fields_at,
            start: self.start,
        }
    }
}

impl<S: StartLine> ParsedHead<S> {
    fn parse(block: &[u8]) -> Result<Self, Error> {
        if let Some(error) = S::refuse(block) {
            return Err(error);
        }
        let (start, version, len) = S::parse(block)?;
        let lines = after_line(&block[len..]);
        Ok(Self {
            start,
            version,
            fields: Fields::parse(lines)?,
            fields_at: block.len() - lines.len(),
        })
    }
}
