//! Why bytes are not HTTP/1. A connection that merely ended is no error: see [`Eof`](super::Eof).

use std::fmt;

/// Why a parser refused its input. It is final: the parser returns it on every later call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes break the grammar.
    #[error("{part}: expected {expected}, found {found}")]
    Syntax {
        /// The part of the message.
        part: Part,
        /// What the grammar requires there.
        expected: &'static str,
        /// The first bytes at that place.
        found: Snippet,
    },
    /// The peer uses another major version.
    #[error(
        "expected HTTP/1.0 or HTTP/1.1, found {found}: offer the protocol by ALPN or prior knowledge instead"
    )]
    Version {
        /// The version as sent.
        found: Snippet,
    },
    /// The end of the message is ambiguous, so nothing after it can be trusted (RFC 9112 section
    /// 6.3).
    #[error("unsafe message length: {why}, found {found}")]
    Framing {
        /// The rule that is broken.
        why: &'static str,
        /// The field value.
        found: Snippet,
    },
    /// A header section, a trailer section or the extensions of a chunk exceed the limit.
    #[error("{part} longer than {limit} bytes")]
    TooLong {
        /// The part that is too long.
        part: Part,
        /// The limit, in bytes.
        limit: usize,
    },
    /// More interim (1xx) responses than allowed before a final response.
    #[error("more than {limit} interim responses without a final one")]
    TooManyInterim {
        /// The limit, from [`Limits::interim`](super::Limits::interim).
        limit: u32,
    },
}

impl Error {
    /// Whether the end of the message is unknown, and so what follows it.
    pub(super) fn hides_the_end(&self) -> bool {
        match self {
            Error::Framing { .. } => true,
            Error::Syntax { part, .. } | Error::TooLong { part, .. } => {
                matches!(part, Part::Chunk | Part::Trailers)
            }
            Error::Version { .. } | Error::TooManyInterim { .. } => false,
        }
    }

    /// The refusal of a message length because of a field value.
    pub(super) fn framing(why: &'static str, value: &[u8]) -> Error {
        let found = Snippet::new(value);
        Error::Framing { why, found }
    }
}

/// The part of a message that an [`Error`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The status line (RFC 9112 section 4).
    StatusLine,
    /// The request line (RFC 9112 section 3).
    RequestLine,
    /// A field line of a header or trailer section (RFC 9112 section 5).
    Field,
    /// A header section.
    Head,
    /// A trailer section.
    Trailers,
    /// A chunk's size line, or the line end after its data (RFC 9112 section 7.1).
    Chunk,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StatusLine => "status line",
            Self::RequestLine => "request line",
            Self::Field => "header field",
            Self::Head => "head",
            Self::Trailers => "trailers",
            Self::Chunk => "chunk",
        })
    }
}

/// The first bytes of a value, displayed escaped, so it is safe on a terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Snippet {
    bytes: [u8; Self::CAPACITY],
    len: u8,
}

impl Snippet {
    const CAPACITY: usize = 32;

    /// Keeps the first 32 bytes.
    pub fn new(bytes: &[u8]) -> Self {
        let mut kept = [0; Self::CAPACITY];
        let len = bytes.len().min(Self::CAPACITY);
        kept[..len].copy_from_slice(&bytes[..len]);
        Self {
            bytes: kept,
            len: len as u8,
        }
    }

    /// The stored bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Display for Snippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.as_bytes().escape_ascii())
    }
}

impl fmt::Debug for Snippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
