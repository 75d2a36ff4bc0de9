//! Reads one block at a time: packets, interfaces, statistics and TLS secrets; others are skipped.

use super::{TLS_KEY_LOG, block, option};
use std::ops::Range;

/// Latest valid time (in 2262), in nanoseconds since 1970. An audit adds to times, so there must be
/// room above.
const LATEST: u64 = i64::MAX as u64;
/// Limit of interfaces per section.
const MAX_INTERFACES: usize = 4096;

/// The file contradicts itself; the text has the details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged(pub String);

/// A block with content for the caller; ranges are offsets in the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// A packet.
    Packet {
        /// Nanoseconds since 1970; 0 if the block has no time.
        at: u64,
        /// The link type, as tcpdump numbers them.
        link: u32,
        /// The captured bytes.
        bytes: Range<usize>,
        /// Its length on the wire in bytes.
        original: usize,
    },
    /// TLS secrets in the NSS key log format.
    Secrets(Range<usize>),
}

/// The current section.
#[derive(Debug, Default)]
pub struct Reader {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Packets that were dropped in earlier sections.
    dropped: u64,
}

/// The source of packets, and its clock.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u32,
    /// Time units per second.
    resolution: u128,
    offset_s: i64,
    snap: u32,
    /// Number of packets that were dropped, according to the last statistics.
    dropped: u64,
}

/// Whether a file starts with a section.
pub fn is_magic(prefix: &[u8]) -> bool {
    prefix.starts_with(&block::SECTION.to_be_bytes())
        && prefix
            .get(8..12)
            .is_some_and(|word| byte_order(word).is_some())
}

/// Whether this byte order is big-endian; `None` if it is invalid.
fn byte_order(word: &[u8]) -> Option<bool> {
    match word {
        [0x1a, 0x2b, 0x3c, 0x4d] => Some(true),
        [0x4d, 0x3c, 0x2b, 0x1a] => Some(false),
        _ => None,
    }
}

fn damaged<T>(why: impl Into<String>) -> Result<T, Damaged> {
    Err(Damaged(why.into()))
}

impl Reader {
    /// The length of the block that begins with these bytes, at most `longest`. Pass the whole
    /// block to [`Self::read`].
    ///
    /// # Errors
    /// If the block contradicts itself or is too long.
    pub fn begin(&mut self, head: &[u8; 12], longest: u32) -> Result<usize, Damaged> {
        if head.starts_with(&block::SECTION.to_be_bytes()) {
            let Some(big_endian) = byte_order(&head[8..]) else {
                return damaged("a section has no byte order");
            };
            self.big_endian = big_endian;
            self.dropped = self.dropped();
            self.interfaces.clear();
        }
        let total = self.u32_at(head, 4).unwrap_or_default();
        if total < 12 || !total.is_multiple_of(4) || total > longest {
            return damaged(format!("a block claims {total} bytes"));
        }
        Ok(total as usize)
    }

    /// Reads a block; `None` if it has no content for the caller.
    ///
    /// # Errors
    /// If the block contradicts itself.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Option<Block>, Damaged> {
        let kind = self.u32_at(bytes, 0).unwrap_or_default();
        let body = bytes
            .get(8..bytes.len().saturating_sub(4))
            .unwrap_or_default();
        match kind {
            block::INTERFACE if self.interfaces.len() >= MAX_INTERFACES => {
                damaged("it claims too many interfaces")
            }
            block::INTERFACE => {
                self.interfaces.push(self.interface(body)?);
                Ok(None)
            }
            block::SECRETS if self.u32_at(body, 0) == Some(TLS_KEY_LOG) => {
                let len = self.u32_at(body, 4).unwrap_or_default() as usize;
                let room = body.len().saturating_sub(8);
                Ok(Some(Block::Secrets(16..16 + len.min(room))))
            }
            block::STATISTICS => {
                let dropped = self.dropped_by(body);
                let index = self.u32_at(body, 0).unwrap_or(u32::MAX) as usize;
                if let Some(interface) = self.interfaces.get_mut(index) {
                    interface.dropped = dropped;
                }
                Ok(None)
            }
            block::ENHANCED | block::PACKET | block::SIMPLE => self.packet(kind, body).map(Some),
            _ => Ok(None),
        }
    }

    /// Number of packets that were dropped during the capture, according to the statistics in the
    /// file; 0 if there are none.
    pub fn dropped(&self) -> u64 {
        let each = self.interfaces.iter().map(|interface| interface.dropped);
        each.fold(self.dropped, u64::saturating_add)
    }

    /// Number of packets that an interface dropped, according to its statistics.
    fn dropped_by(&self, body: &[u8]) -> u64 {
        let mut dropped = 0_u64;
        self.options(body.get(12..).unwrap_or_default(), |code, value| {
            if let (option::DROPPED_BY_INTERFACE | option::DROPPED_BY_SYSTEM, Some(count)) =
                (code, self.little_endian(value, 0))
            {
                dropped = dropped.saturating_add(u64::from_le_bytes(count));
            }
        });
        dropped
    }

    fn packet(&self, kind: u32, body: &[u8]) -> Result<Block, Damaged> {
        let cut = || Damaged("a packet block is too short".to_owned());
        let word = |at| self.u32_at(body, at).ok_or_else(cut);
        let (index, start, captured, original) = match kind {
            block::ENHANCED => (word(0)? as usize, 20, word(12)?, word(16)?),
            // interface and drop count share the first word
            block::PACKET => {
                let first = word(0)?;
                let index = if self.big_endian {
                    first >> 16
                } else {
                    first & 0xffff
                };
                (index as usize, 20, word(12)?, word(16)?)
            }
            _ => {
                let snap = self
                    .interfaces
                    .first()
                    .map_or(0, |interface| interface.snap);
                let len = word(0)?;
                (0, 4, if snap > 0 { len.min(snap) } else { len }, len)
            }
        };
        let Some(interface) = self.interfaces.get(index) else {
            return damaged(format!(
                "a packet names interface {index}, which there is not"
            ));
        };
        let at = if start == 20 {
            interface.nanos(u64::from(word(4)?) << 32 | u64::from(word(8)?))
        } else {
            0
        };
        let end = (start + captured as usize).min(body.len());
        if start > end {
            return Err(cut());
        }
        Ok(Block::Packet {
            at,
            link: interface.link,
            bytes: 8 + start..8 + end,
            original: original as usize,
        })
    }

    fn interface(&self, body: &[u8]) -> Result<Interface, Damaged> {
        let too_short = || Damaged("an interface block is too short".to_owned());
        let mut interface = Interface {
            link: u32::from(self.u16_at(body, 0).ok_or_else(too_short)?),
            resolution: 1_000_000,
            offset_s: 0,
            snap: self.u32_at(body, 4).ok_or_else(too_short)?,
            dropped: 0,
        };
        self.options(&body[8..], |code, value| match (code, value) {
            (option::RESOLUTION, &[exponent]) => {
                let exponent = u32::from(exponent);
                interface.resolution = if exponent & 0x80 == 0 {
                    10_u128.pow(exponent.min(19))
                } else {
                    1 << (exponent & 0x7f).min(63)
                };
            }
            (option::OFFSET, value) => {
                if let Some(offset) = self.little_endian(value, 0) {
                    interface.offset_s = i64::from_le_bytes(offset);
                }
            }
            _ => {}
        });
        Ok(interface)
    }

    /// Visits the options of a block, by code and value, until the end of the list.
    fn options(&self, mut options: &[u8], mut visit: impl FnMut(u16, &[u8])) {
        while let (Some(code), Some(len)) = (self.u16_at(options, 0), self.u16_at(options, 2)) {
            let Some(value) = options.get(4..4 + usize::from(len)) else {
                return;
            };
            if code == option::END {
                return;
            }
            visit(code, value);
            let padded = 4 + usize::from(len).next_multiple_of(4);
            options = options.get(padded..).unwrap_or_default();
        }
    }

    fn u16_at(&self, bytes: &[u8], at: usize) -> Option<u16> {
        self.little_endian(bytes, at).map(u16::from_le_bytes)
    }

    fn u32_at(&self, bytes: &[u8], at: usize) -> Option<u32> {
        self.little_endian(bytes, at).map(u32::from_le_bytes)
    }

    /// The bytes of a number of the section, in little-endian order.
    fn little_endian<const N: usize>(&self, bytes: &[u8], at: usize) -> Option<[u8; N]> {
        let mut number = *bytes.get(at..)?.first_chunk()?;
        if self.big_endian {
            number.reverse();
        }
        Some(number)
    }
}

impl Interface {
    /// Converts a timestamp to nanoseconds since 1970, limited to the valid range.
    fn nanos(&self, stamp: u64) -> u64 {
        let nanos = u128::from(stamp) * 1_000_000_000 / self.resolution;
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX);
        let shifted = nanos.saturating_add(i128::from(self.offset_s) * 1_000_000_000);
        u64::try_from(shifted.max(0)).map_or(LATEST, |nanos| nanos.min(LATEST))
    }
}
