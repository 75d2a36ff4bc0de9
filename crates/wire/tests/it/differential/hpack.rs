//! Header blocks of one connection, compared with httlib-hpack.

use super::{Disagreement, Verdict};
use intact_wire::h2::hpack::{Decoder, Error};

/// A limit that no block of the tests reaches.
const LIMIT: usize = 1 << 24;
/// The size of a table before any SETTINGS (RFC 9113 section 6.5.2).
const TABLE: u32 = 4096;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// Compares the fields of consecutive blocks.
pub(crate) fn compare(blocks: &[&[u8]]) -> Result<Verdict, Disagreement> {
    let mut ours = Decoder::new(LIMIT);
    let mut theirs = httlib_hpack::Decoder::with_dynamic_size(TABLE);
    for block in blocks {
        let mut fields = Fields::new();
        let read = ours.decode(block, |field| {
            fields.push((field.name.into(), field.value.into()));
        });
        if let Err(error) = read {
            return Ok(Verdict::Listed(refused(error)));
        }
        let mut decoded = Vec::new();
        let done = theirs.decode(&mut block.to_vec(), &mut decoded);
        let decoded: Fields = decoded
            .into_iter()
            .map(|(name, value, _)| (name, value))
            .collect();
        if done.is_ok() && decoded == fields {
            continue;
        }
        return Err(Disagreement(format!(
            "ours {read:?} {fields:02x?} of {block:02x?}\nhttlib-hpack {done:?} {decoded:02x?}"
        )));
    }
    Ok(Verdict::Same)
}

/// The reason why a block that our decoder refuses is not compared.
fn refused(error: Error) -> &'static str {
    match error {
        Error::Huffman => "httlib-hpack reads a Huffman string with wrong padding (RFC 7541 5.2)",
        Error::SizeUpdate { .. } => {
            "httlib-hpack reads a table size update behind a field (RFC 7541 4.2)"
        }
        Error::Index { .. } | Error::Truncated => {
            "httlib-hpack panics on index 0 and on a block that ends inside a field"
        }
        Error::IntegerTooLong | Error::ListTooLong { .. } => "httlib-hpack has other limits",
    }
}
