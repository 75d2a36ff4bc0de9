//! What follows a head in either direction: body, trailers, end.

use super::block::Block;
use super::body::{Body, Piece};
use super::error::{Error, Part};
use super::fields::{self, Headers};
use super::message::{After, Eof, Framing};
use super::{Limits, Step};

/// The rest of one message; reused from message to message.
#[derive(Debug)]
pub(super) struct Content {
    stage: Stage,
    after: After,
    trailers: Block,
}

#[derive(Debug)]
enum Stage {
    Body(Body),
    End,
}

/// One event after a head.
#[derive(Debug)]
pub(super) enum Payload<'a> {
    Body(&'a [u8]),
    Trailers(Headers<'a>),
    End(After),
}

impl Content {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            stage: Stage::End,
            after: After::Reuse,
            trailers: Block::new(Part::Trailers, limits.head),
        }
    }

    /// A head was read that announces this.
    pub(super) fn begin(&mut self, framing: Framing, after: After) {
        self.stage = Stage::Body(Body::new(framing));
        self.after = after;
    }

    /// After `End` the message is over: the next call must be `begin`.
    pub(super) fn step<'a>(&'a mut self, input: &'a [u8]) -> Result<Step<Payload<'a>>, Error> {
        let (consumed, event) = match &mut self.stage {
            Stage::End => (0, Some(Payload::End(self.after))),
            Stage::Body(body) => match body.decode(input, &mut self.trailers)? {
                Piece::More(used) => (used, None),
                Piece::Data { from, used } => (used, Some(Payload::Body(&input[from..used]))),
                Piece::Done(used) => (used, Some(Payload::End(self.after))),
                Piece::Trailers(used) => {
                    fields::validate(self.trailers.bytes(), |_, _| Ok(()))?;
                    self.stage = Stage::End;
                    (
                        used,
                        Some(Payload::Trailers(Headers::over(self.trailers.bytes()))),
                    )
                }
            },
        };
        Ok(Step { consumed, event })
    }

    /// Counts bytes that were lost as payload, where they all must have been payload.
    pub(super) fn skip(&mut self, len: u64) -> bool {
        match &mut self.stage {
            Stage::Body(Body::Length(left)) if *left >= len => {
                *left -= len;
                true
            }
            Stage::Body(Body::UntilClose) => true,
            _ => false,
        }
    }

    /// What the end of the stream means here.
    pub(super) fn finish(&self) -> Eof {
        match self.stage {
            Stage::End | Stage::Body(Body::UntilClose | Body::Length(0)) => Eof::Complete,
            Stage::Body(Body::Length(missing)) => Eof::InBody {
                missing: Some(missing),
            },
            Stage::Body(Body::Chunked(_)) => Eof::InBody { missing: None },
        }
    }
}
