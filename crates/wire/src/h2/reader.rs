//! Reads the bytes of one direction to frames, for any split of the bytes.
//!
//! A frame that is complete in the input is borrowed from it; only frames in pieces are copied.
//! DATA is never delayed, so its bytes have the times of their arrival.

use std::ops::Range;

use super::block::Open;
use super::data::{DataFrame, Part};
use super::error::Error;
use super::frame::{Data, Frame, Head};
use super::{DEFAULT_MAX_FRAME_SIZE, FRAME_HEADER_LEN, PREFACE, flag, kind};
use crate::ParseStep;

/// Limits of the state that a peer can cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest frame payload in bytes: our SETTINGS_MAX_FRAME_SIZE.
    pub frame: u32,
    /// Largest header block in compressed bytes, over all its frames.
    pub block: usize,
    /// Limit of CONTINUATION frames per block: empty ones are cheap for the sender and costly for
    /// the reader.
    pub continuations: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame: DEFAULT_MAX_FRAME_SIZE,
            block: 64 * 1024,
            continuations: 64,
        }
    }
}

/// Longest frame other than DATA that is read, in bytes; real ones are much shorter.
const MAX_HELD: u32 = 1 << 17;

/// Reads the frames that one endpoint sends.
#[derive(Debug)]
pub struct FrameReader {
    limits: Limits,
    /// It reads what another endpoint receives, which may accept what breaks a rule.
    is_observer: bool,
    state: State,
    /// The start of an incomplete frame or preface.
    held: Vec<u8>,
    /// The last frame that arrived in pieces; its event borrows it.
    whole: Vec<u8>,
    /// The fragments of an incomplete header block.
    block: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Preface,
    /// Before the first frame, which must be SETTINGS.
    First,
    Frame,
    Data(DataFrame),
    /// A header block is open: only its CONTINUATION may follow.
    Block(Open),
    Failed(Error),
}

/// The contents of an input, as ranges: nothing is borrowed until the search ends.
enum Found {
    /// No complete frame; the whole input was consumed.
    More,
    Preface,
    /// A fragment of a header block.
    Fragment,
    Data(DataFrame, Part),
    Frame(Head, FramePosition),
    Block(Open, FramePosition),
}

#[derive(Clone, Copy)]
enum FramePosition {
    Input(usize, usize),
    Whole(usize, usize),
    Block,
}

impl FrameReader {
    /// Reads a server's bytes from the start of a connection.
    pub fn server(limits: Limits) -> Self {
        Self {
            limits,
            is_observer: false,
            state: State::First,
            held: Vec::new(),
            whole: Vec::new(),
            block: Vec::new(),
        }
    }

    /// Reads a client's bytes from the start of a connection, the preface first.
    pub fn client(limits: Limits) -> Self {
        Self {
            state: State::Preface,
            ..Self::server(limits)
        }
    }

    /// The same for a passive observer: the first frame need not be SETTINGS, and a frame that
    /// breaks a rule is [`Frame::Unknown`] or what it says, where frames can be found after it.
    #[must_use]
    pub fn observing(self) -> Self {
        Self {
            is_observer: true,
            ..self
        }
    }

    /// Sets the largest payload of a frame, in bytes.
    pub fn limit_frames(&mut self, frame: u32) {
        self.limits.frame = frame;
    }

    /// Reads either side from a frame boundary within a connection.
    pub fn mid_stream(limits: Limits) -> Self {
        Self {
            state: State::Frame,
            ..Self::server(limits)
        }
    }

    /// Whether the stream may end here: at a frame boundary, without an open header block.
    pub fn is_between_frames(&self) -> bool {
        matches!(self.state, State::Frame | State::First) && self.held.is_empty()
    }

    /// Consumes part of the input and returns its event. Call again with the rest until it returns
    /// no event.
    pub fn read<'a>(&'a mut self, input: &'a [u8]) -> Result<ParseStep<Frame<'a>>, Error> {
        let mut at = 0;
        let found = loop {
            match self.advance(input, &mut at) {
                Ok(Found::Fragment) => {}
                Ok(found) => break found,
                Err(error) => return Err(self.fail(error)),
            }
        };
        let event = match found {
            Found::More | Found::Fragment => None,
            Found::Preface => Some(Frame::Preface),
            Found::Data(frame, part) => Some(Frame::Data(Data {
                stream: frame.stream,
                bytes: &input[part.from..part.to],
                flow: part.flow,
                complete: frame.is_complete(),
                end_stream: frame.is_complete() && frame.end_stream,
            })),
            Found::Frame(head, place) => {
                let is_observer = self.is_observer;
                match Frame::check(head, place.within(input, &self.whole, &self.block)) {
                    Err(error) if !is_observer => return Err(self.fail(error)),
                    _ => Some(Frame::parse(
                        head,
                        place.within(input, &self.whole, &self.block),
                    )),
                }
            }
            Found::Block(open, place) => {
                Some(open.frame(place.within(input, &self.whole, &self.block)))
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

    /// Reads the input from `at` on, and moves `at` after the consumed bytes.
    fn advance(&mut self, input: &[u8], at: &mut usize) -> Result<Found, Error> {
        match self.state {
            State::Failed(error) => Err(error),
            State::Preface => self.advance_preface(&input[*at..], at),
            State::Data(frame) => self.advance_data(frame, input, at),
            State::First | State::Frame | State::Block(_) => self.advance_frame(input, at),
        }
    }

    fn advance_preface(&mut self, rest: &[u8], at: &mut usize) -> Result<Found, Error> {
        let due = &PREFACE[self.held.len()..];
        let here = due.len().min(rest.len());
        if rest[..here] != due[..here] {
            return Err(Error::Preface);
        }
        if here < due.len() {
            return Ok(self.hold(rest, at));
        }
        *at += here;
        self.held.clear();
        self.state = State::First;
        Ok(Found::Preface)
    }

    fn advance_frame(&mut self, input: &[u8], at: &mut usize) -> Result<Found, Error> {
        let rest = &input[*at..];
        let held = self.held.len();
        if held + rest.len() < FRAME_HEADER_LEN {
            return Ok(self.hold(rest, at));
        }
        let head = self.head(rest);
        self.check(&head)?;
        if head.kind == kind::DATA {
            self.held.clear();
            *at += FRAME_HEADER_LEN - held;
            return self.advance_data(DataFrame::new(&head), input, at);
        }
        let total = FRAME_HEADER_LEN + head.length as usize;
        if held + rest.len() < total {
            return Ok(self.hold(rest, at));
        }
        let place = if held == 0 {
            FramePosition::Input(*at + FRAME_HEADER_LEN, *at + total)
        } else {
            self.held.extend_from_slice(&rest[..total - held]);
            std::mem::swap(&mut self.held, &mut self.whole);
            self.held.clear();
            FramePosition::Whole(FRAME_HEADER_LEN, total)
        };
        *at += total - held;
        if let kind::HEADERS | kind::PUSH_PROMISE | kind::CONTINUATION = head.kind {
            return self.advance_block(&head, place, input);
        }
        self.state = State::Frame;
        Ok(Found::Frame(head, place))
    }

    /// The nine bytes of a header that start in `held` and continue in `rest`.
    fn head(&self, rest: &[u8]) -> Head {
        let mut bytes = [0; FRAME_HEADER_LEN];
        for (to, from) in bytes.iter_mut().zip(self.held.iter().chain(rest)) {
            *to = *from;
        }
        Head::parse(bytes)
    }

    fn hold(&mut self, rest: &[u8], at: &mut usize) -> Found {
        self.held.extend_from_slice(rest);
        *at += rest.len();
        Found::More
    }

    /// Checks the rules about a frame's header.
    fn check(&self, head: &Head) -> Result<(), Error> {
        match self.state {
            State::First if self.is_observer => {}
            State::First if head.kind != kind::SETTINGS || head.has(flag::ACK) => {
                return Err(Error::Preface);
            }
            State::Block(open) if head.kind != kind::CONTINUATION || head.stream != open.stream => {
                return Err(Error::Protocol(
                    "a header block interrupted by another frame",
                ));
            }
            State::Frame if head.kind == kind::CONTINUATION => {
                return Err(Error::Protocol("CONTINUATION without a header block"));
            }
            _ => {}
        }
        // only DATA is passed on without being stored, so only DATA may have the full length that
        // the peer is allowed
        let limit = if head.kind == kind::DATA {
            self.limits.frame
        } else {
            self.limits.frame.min(MAX_HELD)
        };
        if head.length > limit {
            return Err(Error::FrameTooLong {
                length: head.length,
                limit,
            });
        }
        if let kind::HEADERS | kind::PUSH_PROMISE | kind::CONTINUATION = head.kind {
            let (frames, before) = match self.state {
                State::Block(open) => (open.frames, self.block.len()),
                _ => (0, 0),
            };
            if frames > self.limits.continuations
                || before + head.length as usize > self.limits.block
            {
                return Err(Error::BlockTooLong {
                    limit: self.limits.block,
                });
            }
        }
        match head.check() {
            // its length is known, and nothing of it is a header block or a body
            Err(_) if self.is_observer && !head.is_of_message() => Ok(()),
            checked => checked,
        }
    }

    fn advance_data(
        &mut self,
        mut frame: DataFrame,
        input: &[u8],
        at: &mut usize,
    ) -> Result<Found, Error> {
        let part = frame.advance(input, at)?;
        self.state = if frame.is_complete() {
            State::Frame
        } else {
            State::Data(frame)
        };
        Ok(if part.flow > 0 || frame.is_complete() {
            Found::Data(frame, part)
        } else {
            Found::More
        })
    }

    /// A header block in one frame is borrowed; one in several frames is joined.
    fn advance_block(
        &mut self,
        head: &Head,
        place: FramePosition,
        input: &[u8],
    ) -> Result<Found, Error> {
        let payload = place.within(input, &self.whole, &[]);
        let (open, fragment) = match self.state {
            State::Block(open) => (open.continued(), 0..payload.len()),
            _ => {
                self.block.clear();
                Open::parse(head, payload)?
            }
        };
        let complete = head.has(flag::END_HEADERS);
        self.state = if complete {
            State::Frame
        } else {
            State::Block(open)
        };
        if complete && open.frames == 1 {
            return Ok(Found::Block(open, place.cut(&fragment)));
        }
        self.block.extend_from_slice(&payload[fragment]);
        Ok(if complete {
            Found::Block(open, FramePosition::Block)
        } else {
            Found::Fragment
        })
    }
}

impl FramePosition {
    fn within<'a>(&self, input: &'a [u8], whole: &'a [u8], block: &'a [u8]) -> &'a [u8] {
        match *self {
            Self::Input(from, to) => &input[from..to],
            Self::Whole(from, to) => &whole[from..to],
            Self::Block => block,
        }
    }

    /// A part of this place.
    fn cut(self, part: &Range<usize>) -> Self {
        match self {
            Self::Input(from, _) => Self::Input(from + part.start, from + part.end),
            Self::Whole(from, _) => Self::Whole(from + part.start, from + part.end),
            Self::Block => Self::Block,
        }
    }
}
