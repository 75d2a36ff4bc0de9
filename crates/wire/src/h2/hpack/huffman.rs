//! The Huffman code of RFC 7541 appendix B.
//!
//! The code is canonical: it follows from the lengths. So the source has the lengths only, and the
//! compiler computes the tables of both directions.

use super::error::Error;

/// The length of each symbol's code in bits; symbol 256 is EOS.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

const EOS: u16 = 256;
const MAX_LEN: usize = 30;

/// Codes of up to this number of bits are decoded by one table lookup; nearly all text has only
/// such codes.
const ROOT_BITS: u32 = 10;

/// The code by length: symbols in the order of their codes, and the start of each length.
struct Canonical {
    /// The code of each symbol, in its low bits.
    codes: [u32; 257],
    /// Symbols sorted by length, then by value: the order of their codes.
    sorted: [u16; 257],
    /// Per length: the first code above that length, left-justified in 32 bits.
    end: [u32; MAX_LEN + 1],
    /// Per length: its first code, and the index of that code in `sorted`.
    first: [(u32, u16); MAX_LEN + 1],
    /// Symbol and length by the first `ROOT_BITS` bits; length 0 if the code is longer.
    root: [(u8, u8); 1 << ROOT_BITS],
}

const CANONICAL: Canonical = {
    let mut this = Canonical {
        codes: [0; 257],
        sorted: [0; 257],
        end: [0; MAX_LEN + 1],
        first: [(0, 0); MAX_LEN + 1],
        root: [(0, 0); 1 << ROOT_BITS],
    };
    let (mut len, mut code, mut place) = (1, 0u32, 0);
    while len <= MAX_LEN {
        code <<= 1;
        this.first[len] = (code, place as u16);
        let mut symbol = 0;
        while symbol < 257 {
            if LENGTHS[symbol] as usize == len {
                this.codes[symbol] = code;
                this.sorted[place] = symbol as u16;
                if len as u32 <= ROOT_BITS {
                    let spare = ROOT_BITS - len as u32;
                    let mut tail = 0;
                    while tail < 1 << spare {
                        this.root[(code << spare | tail) as usize] = (symbol as u8, len as u8);
                        tail += 1;
                    }
                }
                code += 1;
                place += 1;
            }
            symbol += 1;
        }
        // the last code is all ones, so the end of its length does not fit and saturates
        this.end[len] = if (code as u64) << (32 - len) > u32::MAX as u64 {
            u32::MAX
        } else {
            code << (32 - len)
        };
        len += 1;
    }
    this
};

static TABLES: Canonical = CANONICAL;

/// Number of bytes of the encoding.
pub(crate) fn encoded_len(plain: &[u8]) -> usize {
    plain
        .iter()
        .map(|&byte| usize::from(LENGTHS[usize::from(byte)]))
        .sum::<usize>()
        .div_ceil(8)
}

/// Appends the encoding, padded with the first bits of EOS.
pub(crate) fn encode(plain: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut held) = (0u64, 0u32);
    for &byte in plain {
        let symbol = usize::from(byte);
        let len = u32::from(LENGTHS[symbol]);
        bits = bits << len | u64::from(TABLES.codes[symbol]);
        held += len;
        while held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    if held > 0 {
        let padding = 8 - held;
        out.push((bits << padding) as u8 | ((1u16 << padding) - 1) as u8);
    }
}

/// Appends the decoded bytes. Each takes at least five bits, so the output is at most 1.6 times as
/// long.
pub(crate) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    out.reserve(coded.len() * 8 / 5);
    let (mut bits, mut held) = (0u64, 0u32);
    let mut rest = coded.iter();
    loop {
        while held <= 56 {
            let Some(&byte) = rest.next() else { break };
            bits = bits << 8 | u64::from(byte);
            held += 8;
        }
        // ones after the last bit: correct padding then reads as the start of EOS
        let window = match 32u32.checked_sub(held) {
            Some(spare) => (bits << spare | ((1 << spare) - 1)) as u32,
            None => (bits >> (held - 32)) as u32,
        };
        let (symbol, len) = match TABLES.root[(window >> (32 - ROOT_BITS)) as usize] {
            (_, 0) => long_code(window),
            (symbol, len) => (u16::from(symbol), u32::from(len)),
        };
        if len > held {
            let all_ones = bits & ((1 << held) - 1) == (1 << held) - 1;
            return if held < 8 && all_ones {
                Ok(())
            } else {
                Err(Error::Huffman)
            };
        }
        if symbol == EOS {
            return Err(Error::Huffman);
        }
        out.push(symbol as u8);
        held -= len;
    }
}

#[cold]
fn long_code(window: u32) -> (u16, u32) {
    let mut len = ROOT_BITS as usize + 1;
    while len < MAX_LEN && window >= TABLES.end[len] {
        len += 1;
    }
    let (first, place) = TABLES.first[len];
    let code = window >> (32 - len);
    (
        TABLES.sorted[usize::from(place) + (code - first) as usize],
        len as u32,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(coded: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        decode(coded, &mut out).map(|()| out)
    }

    #[test]
    fn the_code_is_the_one_of_appendix_b() {
        let sample = [
            (b'0', 0x0),
            (b' ', 0x14),
            (b'&', 0xf8),
            (b'|', 0x7fc),
            (b'\\', 0x7fff0),
            (0, 0x1ff8),
            (b'\n', 0x3fff_fffc),
            (255, 0x3ff_ffee),
        ];
        for (symbol, code) in sample {
            assert_eq!(TABLES.codes[usize::from(symbol)], code, "{symbol}");
        }
        assert_eq!(TABLES.codes[usize::from(EOS)], 0x3fff_ffff);
    }

    #[test]
    fn every_byte_comes_back_at_every_bit_position() {
        for symbol in 0..=255u8 {
            for lead in 0..8 {
                let mut plain = vec![b'0'; lead];
                plain.extend([symbol, symbol]);
                let mut coded = Vec::new();
                encode(&plain, &mut coded);
                assert_eq!(coded.len(), encoded_len(&plain));
                assert_eq!(decoded(&coded), Ok(plain));
            }
        }
    }

    #[test]
    fn padding_must_be_short_and_all_ones() {
        assert_eq!(decoded(&[]), Ok(vec![]));
        // '0' is 00000, then three bits of padding
        assert_eq!(decoded(&[0b0000_0111]), Ok(b"0".to_vec()));
        assert_eq!(decoded(&[0b0000_0110]), Err(Error::Huffman));
        assert_eq!(decoded(&[0b0000_0111, 0xff]), Err(Error::Huffman));
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff]), Err(Error::Huffman));
    }
}
