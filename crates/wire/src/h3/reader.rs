//! Reads the bytes of one stream to frames, for any split of the bytes.
//!
//! A frame that is complete in the input is borrowed from it; only frames in pieces are copied.
//! DATA is never delayed, so its bytes have the times of their arrival.

use super::error::Error;
use super::frame::{Frame, StreamKind};
use super::kind;
use crate::ParseStep;
use crate::quic::long_header::varint;
use crate::tls::Cursor;

/// Longest header of a frame: two numbers of eight bytes.
const LONGEST_HEADER: usize = 16;
/// Limit of a frame's payload other than DATA and HEADERS, in bytes; real ones are much shorter.
const LONGEST_OTHER: usize = 4096;

/// Reads the frames of one stream.
#[derive(Debug)]
pub struct FrameReader {
    state: State,
    /// The start of an incomplete header or payload.
    held: Vec<u8>,
    /// The last frame that arrived in pieces; its event borrows it.
    whole: Vec<u8>,
    /// Limit of a header block, in compressed bytes.
    longest_block: usize,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// At a frame's header.
    Header,
    /// In a frame that is held until it is complete.
    Payload {
        frame_type: u64,
        length: usize,
        overhead: usize,
    },
    /// In DATA, with this number of bytes left.
    Data { left: u64, overhead: usize },
    /// In a frame that is ignored.
    Skip { left: u64 },
    /// After an error.
    Failed(Error),
}

/// What the input held: nothing is borrowed until the search ends.
enum Found {
    More,
    Data {
        from: usize,
        to: usize,
        overhead: usize,
    },
    Frame {
        frame_type: u64,
        /// The payload in the input; absent: it is in `whole`.
        within: Option<(usize, usize)>,
        overhead: usize,
    },
    Skipped(u64),
}

impl FrameReader {
    /// A reader at the start of a stream. It refuses header blocks above `longest_block` bytes.
    pub fn new(longest_block: usize) -> FrameReader {
        FrameReader {
            state: State::Header,
            held: Vec::new(),
            whole: Vec::new(),
            longest_block,
        }
    }

    /// Starts again with another stream, and keeps the memory.
    pub fn reset(&mut self) {
        self.state = State::Header;
        self.held.clear();
    }

    /// Records the end of the stream.
    ///
    /// # Errors
    /// If it is inside a frame (RFC 9114 section 7.1).
    pub fn finish(&self) -> Result<(), Error> {
        match self.state {
            State::Header if self.held.is_empty() => Ok(()),
            State::Failed(error) => Err(error),
            _ => Err(Error::Truncated),
        }
    }

    /// Consumes part of the input and returns its event. Call again with the rest until it returns
    /// no event.
    pub fn read<'a>(&'a mut self, input: &'a [u8]) -> Result<ParseStep<Frame<'a>>, Error> {
        let mut at = 0;
        let found = match self.advance(input, &mut at) {
            Ok(found) => found,
            Err(error) => return Err(self.fail(error)),
        };
        let event = match found {
            Found::More => None,
            Found::Data { from, to, overhead } => Some(Frame::Data {
                bytes: &input[from..to],
                overhead,
            }),
            Found::Skipped(frame_type) => Some(Frame::Unknown(frame_type)),
            Found::Frame {
                frame_type,
                within,
                overhead,
            } => {
                let payload = payload_of(within, input, &self.whole);
                let parsed = Frame::parse(frame_type, payload, overhead).map(drop);
                if let Err(error) = parsed {
                    return Err(self.fail(error));
                }
                let payload = payload_of(within, input, &self.whole);
                Some(Frame::parse(frame_type, payload, overhead)?)
            }
        };
        Ok(ParseStep {
            consumed: at,
            event,
        })
    }

    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        self.state = State::Failed(error);
        error
    }

    fn advance(&mut self, input: &[u8], at: &mut usize) -> Result<Found, Error> {
        loop {
            match self.state {
                State::Failed(error) => return Err(error),
                State::Header => {
                    let Some((frame_type, length, overhead)) = self.header(input, at) else {
                        return Ok(Found::More);
                    };
                    if let Some(found) = self.begin(frame_type, length, overhead)? {
                        return Ok(found);
                    }
                }
                State::Data { left, overhead } => {
                    let rest = input.len() - *at;
                    if rest == 0 {
                        return Ok(Found::More);
                    }
                    let taken = rest.min(usize::try_from(left).unwrap_or(usize::MAX));
                    let from = *at;
                    *at += taken;
                    self.state = match left - taken as u64 {
                        0 => State::Header,
                        left => State::Data { left, overhead: 0 },
                    };
                    return Ok(Found::Data {
                        from,
                        to: *at,
                        overhead,
                    });
                }
                State::Skip { left } => {
                    let rest = input.len() - *at;
                    let taken = rest.min(usize::try_from(left).unwrap_or(usize::MAX));
                    *at += taken;
                    match left - taken as u64 {
                        0 => self.state = State::Header,
                        left => {
                            self.state = State::Skip { left };
                            return Ok(Found::More);
                        }
                    }
                }
                State::Payload {
                    frame_type,
                    length,
                    overhead,
                } => return Ok(self.payload(input, at, frame_type, length, overhead)),
            }
        }
    }

    /// Type and length of the next frame, and the size of its header, once it is complete.
    fn header(&mut self, input: &[u8], at: &mut usize) -> Option<(u64, u64, usize)> {
        let rest = &input[*at..];
        if self.held.is_empty() {
            if let Some((frame_type, length, size)) = read_header(rest) {
                *at += size;
                return Some((frame_type, length, size));
            }
            self.held.extend_from_slice(rest);
            *at = input.len();
            return None;
        }
        for &byte in rest {
            self.held.push(byte);
            *at += 1;
            if let Some((frame_type, length, size)) = read_header(&self.held) {
                self.held.clear();
                return Some((frame_type, length, size));
            }
            debug_assert!(self.held.len() < LONGEST_HEADER);
        }
        None
    }

    /// Decides what to do with a frame. DATA without a byte, and a frame of an unknown type, are
    /// events at once.
    fn begin(
        &mut self,
        frame_type: u64,
        length: u64,
        overhead: usize,
    ) -> Result<Option<Found>, Error> {
        let limit = match frame_type {
            kind::DATA if length == 0 => {
                return Ok(Some(Found::Data {
                    from: 0,
                    to: 0,
                    overhead,
                }));
            }
            kind::DATA => {
                self.state = State::Data {
                    left: length,
                    overhead,
                };
                return Ok(None);
            }
            kind::HEADERS | kind::PUSH_PROMISE => self.longest_block,
            kind::SETTINGS | kind::GOAWAY | kind::CANCEL_PUSH | kind::MAX_PUSH_ID => LONGEST_OTHER,
            reserved if kind::RESERVED.contains(&reserved) => {
                return Err(Error::Reserved(reserved));
            }
            unknown => {
                self.state = State::Skip { left: length };
                return Ok(Some(Found::Skipped(unknown)));
            }
        };
        match usize::try_from(length) {
            Ok(length) if length <= limit => {
                self.state = State::Payload {
                    frame_type,
                    length,
                    overhead,
                };
                Ok(None)
            }
            _ => Err(Error::FrameTooLong { length, limit }),
        }
    }

    fn payload(
        &mut self,
        input: &[u8],
        at: &mut usize,
        frame_type: u64,
        length: usize,
        overhead: usize,
    ) -> Found {
        let missing = length - self.held.len();
        let rest = input.len() - *at;
        let from = *at;
        if rest < missing {
            self.held.extend_from_slice(&input[from..]);
            *at = input.len();
            return Found::More;
        }
        *at += missing;
        self.state = State::Header;
        let within = if self.held.is_empty() {
            Some((from, *at))
        } else {
            self.held.extend_from_slice(&input[from..*at]);
            std::mem::swap(&mut self.held, &mut self.whole);
            self.held.clear();
            None
        };
        Found::Frame {
            frame_type,
            within,
            overhead,
        }
    }
}

/// A payload, in the input or in the reader's memory.
fn payload_of<'a>(within: Option<(usize, usize)>, input: &'a [u8], whole: &'a [u8]) -> &'a [u8] {
    match within {
        Some((from, to)) => &input[from..to],
        None => whole,
    }
}

/// Type, length and size of a frame's header; `None` if it is not complete.
fn read_header(bytes: &[u8]) -> Option<(u64, u64, usize)> {
    let mut rest = Cursor(bytes);
    let (frame_type, length) = (varint(&mut rest)?, varint(&mut rest)?);
    Some((frame_type, length, bytes.len() - rest.0.len()))
}

/// Reads the number that begins a unidirectional stream.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamKindReader {
    held: [u8; 8],
    len: usize,
}

impl StreamKindReader {
    /// The kind, once it is complete, and the rest of the input.
    pub fn read<'a>(&mut self, input: &'a [u8]) -> Option<(StreamKind, &'a [u8])> {
        for (place, &byte) in input.iter().enumerate() {
            self.held[self.len] = byte;
            self.len += 1;
            if let Some(number) = varint(&mut Cursor(&self.held[..self.len])) {
                return Some((StreamKind::of(number), &input[place + 1..]));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Setting, writer};
    use super::*;
    use proptest::prelude::*;

    /// The events of a stream in these pieces, with DATA joined.
    fn events(pieces: &[&[u8]]) -> Result<Vec<String>, Error> {
        let mut reader = FrameReader::new(1024);
        let mut events: Vec<String> = Vec::new();
        let mut body = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            loop {
                let step = reader.read(rest)?;
                rest = &rest[step.consumed..];
                match step.event {
                    None => break,
                    Some(Frame::Data { bytes, .. }) => body.extend_from_slice(bytes),
                    Some(other) => events.push(format!("{body:x?} {other:?}")),
                }
            }
        }
        reader.finish()?;
        events.push(format!("{body:x?}"));
        Ok(events)
    }

    fn sample() -> Vec<u8> {
        let mut out = Vec::new();
        writer::write_settings(&mut out, &[(Setting::QpackMaxTableCapacity, 0)]);
        writer::write_headers(&mut out, b"\0\0\xd9");
        writer::write_data_header(&mut out, 3);
        out.extend_from_slice(b"abc");
        writer::write_data_header(&mut out, 0);
        writer::write_unknown(&mut out, 0x21, b"grease");
        writer::write_go_away(&mut out, 1 << 40);
        out
    }

    #[test]
    fn frames_are_read_as_written() {
        let events = events(&[&sample()]).unwrap();
        assert_eq!(events.len(), 5, "{events:?}");
        assert!(
            events[2].starts_with("[61, 62, 63] Unknown(33)"),
            "{events:?}"
        );
        assert!(events[3].ends_with("GoAway(1099511627776)"), "{events:?}");
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_frames(cuts in proptest::collection::vec(0usize..60, 0..8)) {
            let bytes = sample();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut from = 0;
            let mut pieces = Vec::new();
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            prop_assert_eq!(events(&pieces), events(&[&bytes]));
        }

        #[test]
        fn no_bytes_panic_and_memory_is_bounded(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = events(&[&bytes]);
        }
    }

    #[test]
    fn frames_that_are_not_allowed_are_refused() {
        let refused = |bytes: &[u8]| events(&[bytes]).unwrap_err();
        for reserved in kind::RESERVED {
            assert_eq!(refused(&[reserved as u8, 0]), Error::Reserved(reserved));
        }
        assert_eq!(refused(&[0x1, 4, 0, 0]), Error::Truncated);
        assert_eq!(refused(&[0x7, 2, 0, 0]), Error::Layout("GOAWAY"));
        assert_eq!(refused(&[0x4, 1, 6]), Error::Layout("SETTINGS"));
        assert_eq!(
            refused(&[0x4, 2, 2, 0]),
            Error::Settings("a setting of HTTP/2")
        );
        assert_eq!(
            refused(&[0x4, 4, 6, 1, 6, 1]),
            Error::Settings("a setting twice")
        );
        assert_eq!(
            refused(&[0x1, 0x48, 0]),
            Error::FrameTooLong {
                length: 2048,
                limit: 1024
            }
        );
    }

    #[test]
    fn the_kind_of_a_stream_may_come_in_pieces() {
        let mut reader = StreamKindReader::default();
        assert_eq!(reader.read(&[0x40]), None);
        assert_eq!(
            reader.read(&[0x02, 7]),
            Some((StreamKind::QpackEncoder, &[7][..]))
        );
        let mut reader = StreamKindReader::default();
        assert_eq!(
            reader.read(&[0x21]),
            Some((StreamKind::Unknown(0x21), &[][..]))
        );
    }
}
