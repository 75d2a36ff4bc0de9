//! Recognises a repeated header block.
//!
//! A client that sets SETTINGS_HEADER_TABLE_SIZE to 0 makes the server's blocks stateless. Most
//! servers then send identical bytes until the second of their clock changes, so a comparison
//! replaces decoding.

use super::decoder::{Decoder, Field};
use super::error::Error;

/// The last stateless block, and the value that the caller derived from its fields.
#[derive(Debug, Clone, Default)]
pub struct BlockCache<T> {
    block: Vec<u8>,
    digest: Option<T>,
}

impl<T: Copy> BlockCache<T> {
    /// The value that `visit` derives from the block's fields, starting from `empty`. `visit` is
    /// not called if the block repeats the last stateless one.
    pub fn read(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        empty: T,
        mut visit: impl FnMut(&mut T, Field<'_>),
    ) -> Result<T, Error> {
        if let Some(digest) = self.digest {
            // identical bytes have the same meaning only because none of them depends on the
            // dynamic table
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
