//! The file format of tcpdump (draft-ietf-opsawg-pcap): a file header, then packets with 16 bytes
//! of header each.

use super::{End, LONGEST, Packet, pull, record_head};
use crate::read_buffer::ReadBuffer;
use std::io::Read;

const HEAD: usize = 24;
const RECORD: usize = 16;
/// Length of a packet's header in the variant of Linux, which adds the interface.
const LONG_RECORD: usize = 24;

/// The file header.
#[derive(Debug)]
pub(super) struct Pcap {
    big_endian: bool,
    /// Nanoseconds per unit of the second time field.
    unit: u64,
    /// Length of a packet's header.
    record: usize,
    link: u32,
}

/// Byte order, time unit and length of a packet's header, according to the first four bytes; `None`
/// for another format.
pub(super) fn magic(prefix: &[u8]) -> Option<(bool, u64, usize)> {
    Some(match prefix.first_chunk()? {
        [0xa1, 0xb2, 0xc3, 0xd4] => (true, 1_000, RECORD),
        [0xd4, 0xc3, 0xb2, 0xa1] => (false, 1_000, RECORD),
        [0xa1, 0xb2, 0x3c, 0x4d] => (true, 1, RECORD),
        [0x4d, 0x3c, 0xb2, 0xa1] => (false, 1, RECORD),
        [0xa1, 0xb2, 0xcd, 0x34] => (true, 1_000, LONG_RECORD),
        [0x34, 0xcd, 0xb2, 0xa1] => (false, 1_000, LONG_RECORD),
        _ => return None,
    })
}

/// The number in four bytes at offset `at`.
pub(super) fn u32_at(bytes: &[u8], at: usize, big_endian: bool) -> u32 {
    let four = bytes[at..at + 4].first_chunk().copied().unwrap_or_default();
    if big_endian {
        u32::from_be_bytes(four)
    } else {
        u32::from_le_bytes(four)
    }
}

impl Pcap {
    /// Reads the file header.
    pub(super) fn open<R: Read>(window: &mut ReadBuffer<R>) -> Result<Pcap, End> {
        let head = pull(window, HEAD)?;
        let Some((big_endian, unit, record)) = magic(head) else {
            return Err(End::Damaged("it has no magic number".to_owned()));
        };
        Ok(Pcap {
            big_endian,
            unit,
            record,
            // the upper bits describe frame check sequences, which are not read
            link: u32_at(head, 20, big_endian) & 0xffff,
        })
    }

    /// The next packet.
    pub(super) fn next<'w, R: Read>(
        &mut self,
        window: &'w mut ReadBuffer<R>,
    ) -> Result<Packet<'w>, End> {
        let head = record_head(window, self.record)?;
        let [seconds, fraction, captured, original] =
            [0, 4, 8, 12].map(|at| u32_at(head, at, self.big_endian));
        if captured > LONGEST {
            return Err(End::Damaged(format!("a packet claims {captured} bytes")));
        }
        let at = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.unit;
        let record = pull(window, self.record + captured as usize)?;
        Ok(Packet {
            at,
            link: self.link,
            bytes: &record[self.record..],
            is_cut: captured < original,
        })
    }
}
