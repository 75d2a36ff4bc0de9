//! Reads heads, and knows the last one: a head that repeats it byte for byte costs one comparison.

use super::block::{Block, Read};
use super::error::{Error, Part};
use super::{Limits, ParseStep};

/// A head under way, and the last complete one with what it said.
#[derive(Debug)]
pub(super) struct HeadCache<P> {
    block: Block,
    /// What the bytes in `block` said; `None` before the first head.
    last: Option<P>,
}

impl<P: Copy> HeadCache<P> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            block: Block::new(Part::Head, limits.head),
            last: None,
        }
    }

    /// The bytes of the last complete head.
    pub(super) fn bytes(&self) -> &[u8] {
        self.block.bytes()
    }

    /// What has arrived of an incomplete head.
    pub(super) fn partial(&self) -> &[u8] {
        self.block.partial()
    }

    /// A head that was refused, or what has arrived of it. Empty where too much came in one piece.
    pub(super) fn refused(&self) -> &[u8] {
        match (self.block.partial(), &self.last) {
            ([], None) => self.block.bytes(),
            (partial, _) => partial,
        }
    }

    /// The last complete head is refused for what it means.
    pub(super) fn refuse_last(&mut self) {
        self.last = None;
    }

    /// Uses input up to the end of a head. `refuse` sees the start of one that is incomplete or too long, since a
    /// peer that speaks another protocol may never send an empty line.
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
