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
        self.read_with(block, |block| {
            let mut digest = empty;
            let seen = decoder.decode(block, |field| visit(&mut digest, field))?;
            Ok((digest, seen.stateless))
        })
    }

    /// The value that `derive` returns for the block, with whether the block is stateless. It is
    /// not called if the block repeats the last stateless one.
    ///
    /// # Errors
    /// That of `derive`.
    pub fn read_with<E>(
        &mut self,
        block: &[u8],
        derive: impl FnOnce(&[u8]) -> Result<(T, bool), E>,
    ) -> Result<T, E> {
        // identical bytes have the same meaning only because none of them depends on the dynamic
        // table
        if let Some(digest) = self.digest
            && self.block == block
        {
            return Ok(digest);
        }
        let (digest, is_stateless) = derive(block)?;
        if is_stateless {
            self.block.clear();
            self.block.extend_from_slice(block);
            self.digest = Some(digest);
        }
        Ok(digest)
    }
}
