//! Recognises a repeated header block: without a dynamic table, identical bytes have the same
//! meaning, so a comparison replaces decoding.

use super::Error;

/// The last block, and the value that the caller derived from it.
#[derive(Debug, Clone, Default)]
pub struct BlockCache<T> {
    block: Vec<u8>,
    digest: Option<T>,
}

impl<T: Copy> BlockCache<T> {
    /// The value that `derive` returns for the block. It is not called if the block repeats the
    /// last one.
    ///
    /// # Errors
    /// That of `derive`.
    pub fn read(
        &mut self,
        block: &[u8],
        derive: impl FnOnce(&[u8]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if let Some(digest) = self.digest
            && self.block == block
        {
            return Ok(digest);
        }
        let digest = derive(block)?;
        self.block.clear();
        self.block.extend_from_slice(block);
        self.digest = Some(digest);
        Ok(digest)
    }
}
