//! Bodies by length, by chunks (RFC 9112 section 7.1) or until the connection closes.
//!
//! Passes content on without copying. Collects trailers, too, in the caller's block.

use super::block::{Block, Read};
use super::error::{Error, Part, Snippet};
use super::message::Framing;

/// Limit of the extensions of one chunk in bytes; they are rare, and ignored.
const MAX_EXTENSION: usize = 4096;

/// The rest of one body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    Length(u64),
    UntilClose,
    Chunked(Chunk),
}

/// State of a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunk {
    Size { so_far: u64, digits: u8 },
    Padding { size: u64 },
    Extension { size: u64, len: usize },
    SizeLf { size: u64 },
    Data { left: u64 },
    DataCr,
    DataLf,
    Trailers,
}

const NEXT_CHUNK: Chunk = Chunk::Size {
    so_far: 0,
    digits: 0,
};

/// What [`Body::decode`] found, with the number of consumed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// The whole input; the body continues.
    More(usize),
    /// Content is `from..used` of the input.
    Data { from: usize, used: usize },
    /// The body ended; its trailers are in the block.
    Trailers(usize),
    /// The body ended.
    Done(usize),
}

impl Body {
    /// The state before the first byte. No body is a body of 0 bytes.
    #[inline]
    pub(super) fn new(framing: Framing) -> Self {
        match framing {
            Framing::None | Framing::Tunnel => Self::Length(0),
            Framing::Length(length) => Self::Length(length),
            Framing::UntilClose => Self::UntilClose,
            Framing::Chunked => Self::Chunked(NEXT_CHUNK),
        }
    }

    #[inline]
    pub(super) fn decode(&mut self, input: &[u8], trailers: &mut Block) -> Result<Piece, Error> {
        match self {
            Self::Length(0) => Ok(Piece::Done(0)),
            Self::Length(left) => Ok(take(left, input, 0)),
            Self::UntilClose if input.is_empty() => Ok(Piece::More(0)),
            Self::UntilClose => Ok(Piece::Data {
                from: 0,
                used: input.len(),
            }),
            Self::Chunked(chunk) => chunk.decode(input, trailers),
        }
    }
}

impl Chunk {
    fn decode(&mut self, input: &[u8], trailers: &mut Block) -> Result<Piece, Error> {
        let mut at = 0;
        loop {
            match self {
                Self::Data { left: 0 } => *self = Self::DataCr,
                Self::Data { left } => return Ok(take(left, input, at)),
                Self::Trailers => {
                    return Ok(match trailers.read(&input[at..])? {
                        Read::More(n) => Piece::More(at + n),
                        Read::New(n) | Read::Same(n)
                            if matches!(trailers.bytes(), b"\r\n" | b"\n") =>
                        {
                            Piece::Done(at + n)
                        }
                        Read::New(n) | Read::Same(n) => Piece::Trailers(at + n),
                    });
                }
                _ => {
                    let Some(&byte) = input.get(at) else {
                        return Ok(Piece::More(at));
                    };
                    *self = self.step(byte).ok_or_else(|| self.refuse(&input[at..]))?;
                    at += 1;
                }
            }
        }
    }

    /// Reads one byte of a size line or of the line end after the data; `None` if it is not allowed
    /// there.
    fn step(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (
                Self::Size {
                    digits: 1..,
                    so_far: size,
                },
                b'\r' | b';' | b' ' | b'\t',
            ) => return Self::Padding { size }.step(byte),
            // sixteen digits fill a u64, so the shift loses nothing
            (
                Self::Size {
                    digits: digits @ ..16,
                    so_far,
                },
                _,
            ) => Self::Size {
                so_far: so_far << 4 | u64::from(char::from(byte).to_digit(16)?),
                digits: digits + 1,
            },
            (Self::Padding { .. }, b' ' | b'\t') => self,
            (Self::Padding { size }, b';') => Self::Extension { size, len: 0 },
            (Self::Padding { size } | Self::Extension { size, .. }, b'\r') => Self::SizeLf { size },
            (Self::Extension { .. }, b'\n' | 0) => return None,
            (Self::Extension { size, len }, _) if len < MAX_EXTENSION => {
                Self::Extension { size, len: len + 1 }
            }
            (Self::SizeLf { size: 0 }, b'\n') => Self::Trailers,
            (Self::SizeLf { size }, b'\n') => Self::Data { left: size },
            (Self::DataCr, b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => NEXT_CHUNK,
            _ => return None,
        })
    }

    #[cold]
    fn refuse(self, input: &[u8]) -> Error {
        let expected = match self {
            Self::Size { digits: 0, .. } => "a chunk size in hex digits",
            Self::Size { .. } => "at most 16 hex digits, then CR LF or an extension",
            Self::Padding { .. } => "an extension or CR LF after the chunk size",
            Self::Extension {
                len: MAX_EXTENSION..,
                ..
            } => {
                return Error::TooLong {
                    part: Part::Chunk,
                    limit: MAX_EXTENSION,
                };
            }
            Self::Extension { .. } => "CR LF at the end of the extension",
            Self::SizeLf { .. } | Self::DataLf => "LF after CR",
            Self::DataCr | Self::Data { .. } | Self::Trailers => {
                "CR LF right after the chunk's data"
            }
        };
        Error::Syntax {
            part: Part::Chunk,
            expected,
            found: Snippet::new(input),
        }
    }
}

/// The available content that belongs to the body.
#[inline]
fn take(left: &mut u64, input: &[u8], from: usize) -> Piece {
    let there = input.len() - from;
    let taken = usize::try_from(*left).map_or(there, |left| left.min(there));
    if taken == 0 {
        return Piece::More(from);
    }
    *left -= taken as u64;
    Piece::Data {
        from,
        used: from + taken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(mut input: &[u8]) -> Result<(Vec<u8>, Option<usize>), Error> {
        let whole = input.len();
        let mut body = Body::new(Framing::Chunked);
        let mut trailers = Block::new(Part::Trailers, 1024);
        let mut payload = Vec::new();
        loop {
            match body.decode(input, &mut trailers)? {
                Piece::More(used) => {
                    assert_eq!(used, input.len(), "what needs more has used everything");
                    return Ok((payload, None));
                }
                Piece::Data { from, used } => {
                    payload.extend_from_slice(&input[from..used]);
                    input = &input[used..];
                }
                Piece::Trailers(used) | Piece::Done(used) => {
                    return Ok((payload, Some(whole - input.len() + used)));
                }
            }
        }
    }

    #[test]
    fn joins_chunks_and_ignores_extensions() {
        let input = b"3\r\nabc\r\nA;name=\"v\"\r\n0123456789\r\n1 \t;x\r\nz\r\n000\r\n\r\nnext";
        assert_eq!(
            decode(input),
            Ok((b"abc0123456789z".to_vec(), Some(input.len() - 4)))
        );
    }

    #[test]
    fn refuses_sizes_that_two_readers_could_read_differently() {
        for bad in [
            "\r\n",
            "g\r\n",
            "0x3\r\n",
            "-3\r\n",
            "3\n",
            "3 3\r\n",
            "3\rx",
            "3;a\nb\r\n",
            "11111111111111111\r\n",
            "3\r\nabcd\r\n",
            "3\r\nabc\n",
        ] {
            assert!(
                matches!(
                    decode(bad.as_bytes()),
                    Err(Error::Syntax {
                        part: Part::Chunk,
                        ..
                    })
                ),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn bounds_an_endless_extension() {
        let mut input = b"3;".to_vec();
        input.resize(3 + MAX_EXTENSION, b'x');
        assert_eq!(
            decode(&input),
            Err(Error::TooLong {
                part: Part::Chunk,
                limit: MAX_EXTENSION
            })
        );
    }
}
