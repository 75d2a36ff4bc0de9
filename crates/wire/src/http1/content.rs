//! The bytes after a header section, in either direction: body, trailers, end.

use super::block::Block;
use super::body::{Body, Piece};
use super::error::{Error, Part};
use super::fields::{self, Headers};
use super::message::{Eof, Framing, Persistence};
use super::parser::{MessageEvent, StartLine};
use super::{Limits, ParseStep};

/// The rest of one message; reused for the next message.
#[derive(Debug)]
pub(super) struct Content {
    stage: ChunkStage,
    after: Persistence,
    trailers: Block,
}

#[derive(Debug)]
enum ChunkStage {
    Body(Body),
    End,
}

impl Content {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            stage: ChunkStage::End,
            after: Persistence::Reuse,
            trailers: Block::new(Part::Trailers, limits.head),
        }
    }

    /// Starts the content that a header section announces.
    #[inline]
    pub(super) fn begin(&mut self, framing: Framing, after: Persistence) {
        self.stage = ChunkStage::Body(Body::new(framing));
        self.after = after;
    }

    /// Reads the next event. After `End` the next call must be `begin`.
    pub(super) fn step<'a, S: StartLine>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<ParseStep<MessageEvent<'a, S>>, Error> {
        let (consumed, event) = match &mut self.stage {
            ChunkStage::End => (0, Some(MessageEvent::End(self.after))),
            ChunkStage::Body(body) => match body.decode(input, &mut self.trailers)? {
                Piece::More(used) => (used, None),
                Piece::Data { from, used } => (used, Some(MessageEvent::Body(&input[from..used]))),
                Piece::Done(used) => (used, Some(MessageEvent::End(self.after))),
                Piece::Trailers(used) => {
                    fields::validate(self.trailers.bytes(), |_, _| Ok(()))?;
                    self.stage = ChunkStage::End;
                    (
                        used,
                        Some(MessageEvent::Trailers(Headers::over(self.trailers.bytes()))),
                    )
                }
            },
        };
        Ok(ParseStep { consumed, event })
    }

    /// Counts missing bytes as content. `false` if they cannot all be content.
    pub(super) fn skip(&mut self, len: u64) -> bool {
        match &mut self.stage {
            ChunkStage::Body(Body::Length(left)) if *left >= len => {
                *left -= len;
                true
            }
            ChunkStage::Body(Body::UntilClose) => true,
            _ => false,
        }
    }

    /// The meaning of the stream's end here.
    pub(super) fn finish(&self) -> Eof {
        match self.stage {
            ChunkStage::End | ChunkStage::Body(Body::UntilClose | Body::Length(0)) => Eof::Complete,
            ChunkStage::Body(Body::Length(missing)) => Eof::InBody {
                missing: Some(missing),
            },
            ChunkStage::Body(Body::Chunked(_)) => Eof::InBody { missing: None },
        }
    }
}
