//! Recognises a header block that came before.
//!
//! A client that sets SETTINGS_HEADER_TABLE_SIZE to 0 makes its server's blocks stateless, and most servers then send
//! the same bytes again and again until their clock ticks: one comparison stands for decoding them.

use super::decoder::{Decoder, Field};
use super::error::Error;

/// The last stateless block, and what the caller made of its fields.
#[derive(Debug, Clone, Default)]
pub struct BlockCache<T> {
    block: Vec<u8>,
    digest: Option<T>,
}

impl<T: Copy> BlockCache<T> {
    /// What `visit` makes of the block's fields, starting from `empty`; not called where the last stateless block is repeated.
    pub fn read(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        empty: T,
        mut visit: impl FnMut(&mut T, Field<'_>),
    ) -> Result<T, Error> {
        if let Some(digest) = self.digest {
            // The same bytes mean the same only because nothing in them depends on the dynamic table.
            if self.block == block {
                return Ok(digest);
            }
        }
        let mut digest = empty;
        let seen = decoder.decode(block, |field| visit(&mut digest, field))?;
        if seen.stateless {
            self.block.clear();
            self.block.extend_from_slice(block);
            self.digest = Some(digest);
        }
        Ok(digest)
    }
}
