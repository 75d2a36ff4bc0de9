//! Decodes header blocks to fields (RFC 9204 section 4.5).

use super::error::Error;
use super::static_table::ENTRIES;
use crate::h2::hpack::text::Text;
use crate::h2::hpack::{Field, integer};

/// Bytes that a field counts in addition to its name and value (RFC 9114 section 4.2.2).
const OVERHEAD: usize = 32;

/// Passes every field of a complete block to `visit`, in order. Refuses lists larger than
/// `max_list_size` bytes. `scratch` is memory for Huffman strings.
///
/// # Errors
/// If the block is malformed, too large, or refers to a dynamic table.
pub fn decode(
    block: &[u8],
    max_list_size: usize,
    scratch: &mut Vec<u8>,
    mut visit: impl FnMut(Field<'_>),
) -> Result<(), Error> {
    let mut input = block;
    // the required insert count, then the base, which has no meaning without dynamic references
    if integer::read(&mut input, 8)? != 0 {
        return Err(Error::Dynamic);
    }
    integer::read(&mut input, 7)?;
    let mut list_size = 0;
    while let Some(&first) = input.first() {
        let field = read_field(first, &mut input, scratch)?;
        list_size += field.name.len() + field.value.len() + OVERHEAD;
        if list_size > max_list_size {
            return Err(Error::ListTooLong {
                limit: max_list_size,
            });
        }
        visit(field);
    }
    Ok(())
}

fn read_field<'a, 'b: 'a>(
    first: u8,
    input: &mut &'b [u8],
    scratch: &'a mut Vec<u8>,
) -> Result<Field<'a>, Error> {
    scratch.clear();
    let (sensitive, name) = match first {
        // indexed field line
        0x80.. => {
            let (name, value) = indexed(input, 6, first & 0x40 != 0)?;
            return Ok(field(name, value, false));
        }
        // literal with name reference
        0x40.. => {
            let (name, _) = indexed(input, 4, first & 0x10 != 0)?;
            (first & 0x20 != 0, Text::Plain(name))
        }
        // literal with literal name
        0x20.. => {
            let name = Text::read(input, 3, first & 0x08 != 0, scratch)?;
            (first & 0x10 != 0, name)
        }
        // both forms with a post-base index
        _ => return Err(Error::Dynamic),
    };
    let value = Text::read_flagged(input, scratch)?;
    let scratch = &*scratch;
    Ok(field(
        name.within(scratch),
        value.within(scratch),
        sensitive,
    ))
}

fn field<'a>(name: &'a [u8], value: &'a [u8], sensitive: bool) -> Field<'a> {
    Field {
        name,
        value,
        sensitive,
    }
}

fn indexed(
    input: &mut &[u8],
    prefix: u32,
    is_static: bool,
) -> Result<(&'static [u8], &'static [u8]), Error> {
    let index = integer::read(input, prefix)?;
    if !is_static {
        return Err(Error::Dynamic);
    }
    let entry = ENTRIES.get(index as usize);
    entry.copied().ok_or(Error::Index(index))
}

#[cfg(test)]
mod tests {
    use super::super::encoder;
    use super::*;
    use crate::h2::hpack;
    use proptest::prelude::*;

    /// Name, value, and whether it is sensitive.
    type Line = (Vec<u8>, Vec<u8>, bool);

    fn decoded(block: &[u8]) -> Result<Vec<Line>, Error> {
        let mut fields = Vec::new();
        decode(block, 4096, &mut Vec::new(), |field| {
            fields.push((field.name.to_vec(), field.value.to_vec(), field.sensitive));
        })?;
        Ok(fields)
    }

    #[test]
    fn decodes_the_example_of_rfc_9204_b_1() {
        let block = b"\x00\x00\x51\x0b/index.html";
        let expected = (b":path".to_vec(), b"/index.html".to_vec(), false);
        assert_eq!(decoded(block), Ok(vec![expected]));
    }

    #[test]
    fn what_refers_to_a_dynamic_table_is_refused() {
        // appendix B.2: a required insert count, and post-base indices
        assert_eq!(decoded(b"\x03\x81\x10\x11"), Err(Error::Dynamic));
        for line in [&b"\x80"[..], b"\x10", b"\x00\x01a", b"\x40\x01a"] {
            let block = [b"\0\0", line].concat();
            assert_eq!(decoded(&block), Err(Error::Dynamic), "{line:?}");
        }
    }

    #[test]
    fn what_is_malformed_or_too_large_is_refused() {
        let truncated = Err(hpack::Error::Truncated.into());
        assert_eq!(decoded(b""), truncated);
        assert_eq!(decoded(b"\0"), truncated);
        assert_eq!(decoded(b"\0\0\x51\x0b/ind"), truncated);
        // index 99
        assert_eq!(decoded(b"\0\0\xff\x24"), Err(Error::Index(99)));
        assert_eq!(
            decoded(b"\0\0\x51\x81\x00"),
            Err(hpack::Error::Huffman.into())
        );
        let many = [b"\0\0".to_vec(), vec![0xd9; 200]].concat();
        assert_eq!(decoded(&many), Err(Error::ListTooLong { limit: 4096 }));
    }

    proptest! {
        #[test]
        fn what_is_encoded_comes_back(
            fields in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 1..20), proptest::collection::vec(any::<u8>(), 0..40), any::<bool>()),
                0..10,
            )
        ) {
            let mut block = Vec::new();
            encoder::begin(&mut block);
            for (name, value, sensitive) in &fields {
                encoder::encode(name, value, *sensitive, &mut block);
            }
            prop_assert_eq!(decoded(&block), Ok(fields));
        }

        #[test]
        fn no_block_panics(block in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decoded(&block);
        }
    }

    #[test]
    fn every_static_entry_comes_back() {
        for (name, value) in &ENTRIES {
            let mut block = Vec::new();
            encoder::begin(&mut block);
            encoder::encode(name, value, false, &mut block);
            assert!(block.len() <= 4);
            assert_eq!(
                decoded(&block),
                Ok(vec![(name.to_vec(), value.to_vec(), false)])
            );
        }
    }
}
