//! The line of an instruction of CPython, by the tables of its code objects: `co_lnotab` up to 3.9,
//! that of PEP 626 in 3.10, that with columns from 3.11 on. The bytes are another process's.

use super::layout::LineFormat;

/// The line of the instruction at this byte of a function's code that begins at line `first`.
pub(super) fn line(format: LineFormat, first: u32, table: &[u8], at: u64) -> Option<u32> {
    let first = i64::from(first);
    let line = match format {
        LineFormat::Lnotab => lnotab(first, table, at),
        LineFormat::Pep626 => pep626(first, table, at),
        LineFormat::Locations => locations(first, table, at),
    }?;
    u32::try_from(line).ok().filter(|line| *line > 0)
}

/// Pairs of a distance in bytes and one in lines.
fn lnotab(mut line: i64, table: &[u8], at: u64) -> Option<i64> {
    let mut address = 0;
    for pair in table.chunks_exact(2) {
        address += u64::from(pair[0]);
        if address > at {
            break;
        }
        line += i64::from(pair[1].cast_signed());
    }
    Some(line)
}

/// Pairs of a length in bytes and a distance in lines; -128 is code without a line.
fn pep626(mut line: i64, table: &[u8], at: u64) -> Option<i64> {
    let mut end = 0;
    for pair in table.chunks_exact(2) {
        let distance = pair[1].cast_signed();
        let has_line = distance != i8::MIN;
        line += if has_line { i64::from(distance) } else { 0 };
        end += u64::from(pair[0]);
        if at < end {
            return has_line.then_some(line);
        }
    }
    None
}

/// Entries that begin with a byte whose highest bit is set: kind, and length in code units.
fn locations(mut line: i64, table: &[u8], at: u64) -> Option<i64> {
    let mut end = 0;
    let mut rest = table;
    while let [head, tail @ ..] = rest {
        let kind = head >> 3 & 15;
        let (distance, has_line) = match kind {
            15 => (0, false),
            13 | 14 => (signed(tail)?, true),
            10..=12 => (i64::from(kind) - 10, true),
            _ => (0, true),
        };
        line = line.checked_add(distance)?;
        end += 2 * (u64::from(head & 7) + 1);
        if at < end {
            return has_line.then_some(line);
        }
        let next = tail.iter().position(|byte| byte & 128 != 0)?;
        rest = &tail[next..];
    }
    None
}

/// A number in groups of six bits, the lowest first; the lowest bit is the sign.
fn signed(bytes: &[u8]) -> Option<i64> {
    let mut value: u64 = 0;
    for (nth, byte) in bytes.iter().take(6).enumerate() {
        value |= u64::from(byte & 63) << (6 * nth);
        if byte & 64 == 0 {
            let size = (value >> 1).cast_signed();
            return Some(if value & 1 == 1 { -size } else { size });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_format_gives_the_line() {
        // 3.9: a = 1; b = 2 in lines 5 and 6; then three lines back
        let table = [0, 1, 4, 1, 4, 0xfd];
        for (at, expected) in [(0, 5), (3, 5), (4, 6), (8, 3), (100, 3)] {
            assert_eq!(line(LineFormat::Lnotab, 4, &table, at), Some(expected));
        }
        // 3.10: code without a line in between
        let table = [4, 1, 2, 0x80, 4, 2];
        for (at, expected) in [(0, Some(5)), (4, None), (6, Some(7)), (10, None)] {
            assert_eq!(line(LineFormat::Pep626, 4, &table, at), expected);
        }
        // 3.11: short, one line further, no column, none
        let table = [
            0x80,
            0,
            0x80 | 11 << 3,
            0,
            0,
            0x80 | 13 << 3,
            0x05,
            0x80 | 15 << 3,
        ];
        for (at, expected) in [
            (0, Some(4)),
            (2, Some(5)),
            (4, Some(3)),
            (6, None),
            (8, None),
        ] {
            assert_eq!(line(LineFormat::Locations, 4, &table, at), expected);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end(
            format in prop::sample::select(vec![
                LineFormat::Lnotab,
                LineFormat::Pep626,
                LineFormat::Locations,
            ]),
            first in any::<u32>(),
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            at in any::<u64>(),
        ) {
            let _ = line(format, first, &bytes, at);
        }
    }
}
