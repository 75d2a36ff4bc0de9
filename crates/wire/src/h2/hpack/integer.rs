//! Integers with a prefix (RFC 7541 section 5.1), at most 32 bits long.

use super::error::Error;

/// Reads an integer with `prefix` low bits in its first byte, and moves `input` after it.
pub(crate) fn read(input: &mut &[u8], prefix: u32) -> Result<u32, Error> {
    let (&first, mut rest) = input.split_first().ok_or(Error::Truncated)?;
    let mask = (1u32 << prefix) - 1;
    let mut value = u64::from(u32::from(first) & mask);
    if value == u64::from(mask) {
        for shift in (0u32..).step_by(7) {
            let (&byte, after) = rest.split_first().ok_or(Error::Truncated)?;
            rest = after;
            // five bytes hold 35 bits; a sixth can only be padding, which no encoder needs
            if shift > 28 {
                return Err(Error::IntegerTooLong);
            }
            value += u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *input = rest;
    u32::try_from(value).map_err(|_| Error::IntegerTooLong)
}

/// Appends an integer after `flags`, the high bits of its first byte.
pub(crate) fn write(value: usize, prefix: u32, flags: u8, out: &mut Vec<u8>) {
    let mask = (1usize << prefix) - 1;
    if value < mask {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: usize, prefix: u32) -> Vec<u8> {
        let mut out = Vec::new();
        write(value, prefix, 0, &mut out);
        out
    }

    #[test]
    fn encodes_the_examples_of_rfc_7541_c_1() {
        assert_eq!(written(10, 5), [10]);
        assert_eq!(written(1337, 5), [31, 154, 10]);
        assert_eq!(written(42, 8), [42]);
    }

    #[test]
    fn every_edge_comes_back() {
        for prefix in 4..=8 {
            for value in [
                0,
                1,
                14,
                15,
                16,
                126,
                127,
                128,
                254,
                255,
                256,
                16383,
                16384,
                1 << 21,
                u32::MAX as usize,
            ] {
                let bytes = written(value, prefix);
                let mut input = bytes.as_slice();
                assert_eq!(
                    read(&mut input, prefix),
                    Ok(value as u32),
                    "{value} in {prefix} bits"
                );
                assert!(input.is_empty());
                for cut in 0..bytes.len() {
                    assert_eq!(read(&mut &bytes[..cut], prefix), Err(Error::Truncated));
                }
            }
        }
    }

    #[test]
    fn refuses_more_than_32_bits_and_endless_padding() {
        assert_eq!(
            read(&mut written(1 << 33, 7).as_slice(), 7),
            Err(Error::IntegerTooLong)
        );
        assert_eq!(
            read(&mut [0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0].as_slice(), 7),
            Err(Error::IntegerTooLong)
        );
    }
}
