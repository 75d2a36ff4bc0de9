//! Reads header sections and remembers the last one: an identical header section costs one
//! comparison.

use super::block::{Block, Read};
use super::error::{Error, Part};
use super::{Limits, ParseStep};

/// The current header section, and the last complete one with its meaning.
#[derive(Debug)]
pub(super) struct HeadCache<P> {
    block: Block,
    /// The meaning of the bytes in `block`; `None` before the first header section.
    last: Option<P>,
}

impl<P: Copy> HeadCache<P> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            block: Block::new(Part::Head, limits.head),
            last: None,
        }
    }

    /// The bytes of the last complete header section.
    pub(super) fn bytes(&self) -> &[u8] {
        self.block.bytes()
    }

    /// The bytes of an incomplete header section.
    pub(super) fn partial(&self) -> &[u8] {
        self.block.partial()
    }

    /// The bytes of a refused header section, complete or not. Empty if too many arrived in one
    /// piece.
    pub(super) fn refused(&self) -> &[u8] {
        match (self.block.partial(), &self.last) {
            ([], None) => self.block.bytes(),
            (partial, _) => partial,
        }
    }

    /// Records that the last complete header section is refused for its meaning.
    pub(super) fn refuse_last(&mut self) {
        self.last = None;
    }

    /// Consumes input up to the end of a header section. `refuse` receives the start of one that is
    /// incomplete or too long, because a peer with another protocol may never send an empty line.
    pub(super) fn read(
        &mut self,
        input: &[u8],
        refuse: impl Fn(&[u8]) -> Option<Error>,
        parse: impl Fn(&[u8]) -> Result<P, Error>,
    ) -> Result<ParseStep<P>, Error> {
        let read = self.block.read(input).map_err(|too_long| {
            let start = if self.block.partial().is_empty() {
                input
            } else {
                self.block.partial()
            };
            refuse(start).unwrap_or(too_long)
        })?;
        match read {
            Read::More(consumed) => refuse(self.block.partial()).map_or(
                Ok(ParseStep {
                    consumed,
                    event: None,
                }),
                Err,
            ),
            Read::Same(consumed) if self.last.is_some() => Ok(ParseStep {
                consumed,
                event: self.last,
            }),
            Read::Same(consumed) | Read::New(consumed) => {
                self.last = None;
                self.last = Some(parse(self.block.bytes())?);
                Ok(ParseStep {
                    consumed,
                    event: self.last,
                })
            }
        }
    }
}
