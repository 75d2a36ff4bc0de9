//! The file format of Wireshark (draft-ietf-opsawg-pcapng): blocks. Packets, interfaces and TLS secrets are read, others skipped.

use super::{End, LONGEST, Packet};
use crate::read_buffer::ReadBuffer;
use intact_wire::tls::decrypt::KeyLog;
use std::io::Read;

/// Times after this, in 2262, are nonsense; nanoseconds since 1970. Later ones of our own can be told behind it.
const LATEST: u64 = i64::MAX as u64;

/// Block types.
mod block {
    pub(super) const SECTION: u32 = 0x0a0d_0d0a;
    pub(super) const INTERFACE: u32 = 1;
    pub(super) const PACKET: u32 = 2;
    pub(super) const SIMPLE: u32 = 3;
    pub(super) const STATISTICS: u32 = 5;
    pub(super) const ENHANCED: u32 = 6;
    pub(super) const SECRETS: u32 = 0x0a;
}

/// Options of an interface, and of its statistics.
mod option {
    pub(super) const END: u16 = 0;
    pub(super) const DROPPED_BY_INTERFACE: u16 = 5;
    pub(super) const DROPPED_BY_SYSTEM: u16 = 7;
    pub(super) const RESOLUTION: u16 = 9;
    pub(super) const OFFSET: u16 = 14;
}

/// Secrets in the NSS key log format.
const TLS_KEY_LOG: u32 = 0x544c_534b;
/// More interfaces in one section are not believed.
const MAX_INTERFACES: usize = 4096;

/// What is known of the section under way.
#[derive(Debug, Default)]
pub(super) struct Pcapng {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Packets that were dropped in earlier sections.
    dropped: u64,
}

/// Where packets come from, and their clock.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u32,
    /// Time units per second.
    resolution: Resolution,
    offset_s: i64,
    snap: u32,
    /// Packets that were dropped while capturing, by the last statistics.
    dropped: u64,
}

#[derive(Clone, Copy, Debug)]
enum Resolution {
    /// 10 to the minus this.
    Decimal(u32),
    /// 2 to the minus this.
    Binary(u32),
}

/// Whether a file starts with a section.
pub(super) fn is_magic(prefix: &[u8]) -> bool {
    prefix.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a])
        && matches!(
            prefix.get(8..12),
            Some([0x1a, 0x2b, 0x3c, 0x4d] | [0x4d, 0x3c, 0x2b, 0x1a])
        )
}

impl Pcapng {
    /// The next packet; secrets on the way to it go into `keys`.
    pub(super) fn next<'w, R: Read>(
        &mut self,
        window: &'w mut ReadBuffer<R>,
        keys: &mut KeyLog,
    ) -> Result<Packet<'w>, End> {
        // found first, borrowed after: the block of the packet is the last one that is taken
        let (found, len) = loop {
            match window.fill(12) {
                Ok(0) => return Err(End::Whole),
                Ok(there) if there < 12 => return Err(End::Cut),
                _ => {}
            }
            let head = window.available();
            let section = head.starts_with(&block::SECTION.to_be_bytes());
            if section {
                self.big_endian = match head[8..12] {
                    [0x1a, 0x2b, 0x3c, 0x4d] => true,
                    [0x4d, 0x3c, 0x2b, 0x1a] => false,
                    _ => return Err(End::Damaged("a section has no byte order".to_owned())),
                };
                self.dropped = self.dropped();
                self.interfaces.clear();
            }
            let kind = self.u32_at(head, 0).unwrap_or_default();
            let total = self.u32_at(head, 4).unwrap_or_default();
            if total < 12 || !total.is_multiple_of(4) || total > LONGEST {
                return Err(End::Damaged(format!("a block claims {total} bytes")));
            }
            let total = total as usize;
            if !matches!(window.fill(total), Ok(there) if there >= total) {
                return Err(End::Cut);
            }
            let body = &window.available()[8..total - 4];
            let found = match kind {
                block::INTERFACE => {
                    if self.interfaces.len() >= MAX_INTERFACES {
                        return Err(End::Damaged("it claims too many interfaces".to_owned()));
                    }
                    self.interfaces.push(self.interface(body)?);
                    None
                }
                block::SECRETS => {
                    if self.u32_at(body, 0) == Some(TLS_KEY_LOG) {
                        let len = self.u32_at(body, 4).unwrap_or_default() as usize;
                        let text = body.get(8..).unwrap_or_default();
                        keys.add_text(&String::from_utf8_lossy(&text[..len.min(text.len())]));
                    }
                    None
                }
                block::STATISTICS => {
                    let dropped = self.dropped_by(body);
                    let index = self.u32_at(body, 0).unwrap_or(u32::MAX) as usize;
                    if let Some(interface) = self.interfaces.get_mut(index) {
                        interface.dropped = dropped;
                    }
                    None
                }
                block::ENHANCED | block::PACKET | block::SIMPLE => {
                    Some(self.find_packet(kind, body)?)
                }
                _ => None,
            };
            match found {
                Some(found) => break (found, total),
                None => {
                    let _ = window.pull(total);
                }
            }
        };
        let Ok(Some(taken)) = window.pull(len) else {
            return Err(End::Cut);
        };
        Ok(Packet {
            at: found.at,
            link: found.link,
            bytes: &taken[8 + found.start..8 + found.end],
            is_cut: found.end - found.start < found.original,
        })
    }

    /// Packets that were dropped while capturing, by the statistics in the file; 0 where there are none.
    pub(super) fn dropped(&self) -> u64 {
        let each = self.interfaces.iter().map(|interface| interface.dropped);
        each.fold(self.dropped, u64::saturating_add)
    }

    /// Packets that an interface dropped, by the body of its statistics.
    fn dropped_by(&self, body: &[u8]) -> u64 {
        let mut dropped = 0_u64;
        self.options(body.get(12..).unwrap_or_default(), |code, value| {
            if let (option::DROPPED_BY_INTERFACE | option::DROPPED_BY_SYSTEM, Some(eight)) =
                (code, value.first_chunk())
            {
                let count = match self.big_endian {
                    true => u64::from_be_bytes(*eight),
                    false => u64::from_le_bytes(*eight),
                };
                dropped = dropped.saturating_add(count);
            }
        });
        dropped
    }

    /// Where in the block the packet lies.
    fn find_packet(&self, kind: u32, body: &[u8]) -> Result<Found, End> {
        let cut = || End::Damaged("a packet block is too short".to_owned());
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
            return Err(End::Damaged(format!(
                "a packet names interface {index}, which there is not"
            )));
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
        Ok(Found {
            at,
            link: interface.link,
            start,
            end,
            original: original as usize,
        })
    }

    fn interface(&self, body: &[u8]) -> Result<Interface, End> {
        let too_short = || End::Damaged("an interface block is too short".to_owned());
        let mut interface = Interface {
            link: u32::from(self.u16_at(body, 0).ok_or_else(too_short)?),
            resolution: Resolution::Decimal(6),
            offset_s: 0,
            snap: self.u32_at(body, 4).ok_or_else(too_short)?,
            dropped: 0,
        };
        self.options(&body[8..], |code, value| match (code, value) {
            (option::RESOLUTION, &[exponent]) => {
                let exponent = u32::from(exponent);
                interface.resolution = if exponent & 0x80 == 0 {
                    Resolution::Decimal(exponent.min(19))
                } else {
                    Resolution::Binary((exponent & 0x7f).min(63))
                };
            }
            (option::OFFSET, value) => {
                if let Some(eight) = value.first_chunk() {
                    interface.offset_s = if self.big_endian {
                        i64::from_be_bytes(*eight)
                    } else {
                        i64::from_le_bytes(*eight)
                    };
                }
            }
            _ => {}
        });
        Ok(interface)
    }

    /// Visits the options of a block, by code and value, up to the end of the list.
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
        let two = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian {
            u16::from_be_bytes(two)
        } else {
            u16::from_le_bytes(two)
        })
    }

    fn u32_at(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let four = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian {
            u32::from_be_bytes(four)
        } else {
            u32::from_le_bytes(four)
        })
    }
}

/// A packet within the body of its block.
struct Found {
    at: u64,
    link: u32,
    start: usize,
    end: usize,
    /// Its length on the wire in bytes.
    original: usize,
}

impl Interface {
    /// A time stamp in nanoseconds since 1970; what does not fit is the nearest that does.
    fn nanos(&self, stamp: u64) -> u64 {
        let stamp = u128::from(stamp);
        let nanos = match self.resolution {
            Resolution::Decimal(exponent) => stamp * 1_000_000_000 / 10u128.pow(exponent),
            Resolution::Binary(exponent) => (stamp * 1_000_000_000) >> exponent,
        };
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX);
        let shifted = nanos.saturating_add(i128::from(self.offset_s) * 1_000_000_000);
        u64::try_from(shifted.max(0)).map_or(LATEST, |nanos| nanos.min(LATEST))
    }
}
