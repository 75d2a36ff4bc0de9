//! The file format of Solaris' `snoop` (RFC 1761): a file header, then padded records with one
//! packet each.

use super::pcap::u32_at;
use super::{End, LONGEST, Packet, pull, record_head};
use crate::read_buffer::ReadBuffer;
use std::io::Read;

/// The magic number of `snoop`.
pub(super) const MAGIC: &[u8; 8] = b"snoop\0\0\0";
const VERSION: u32 = 2;
const HEAD: usize = 16;
const RECORD: usize = 24;
/// Ethernet in the link types of RFC 1761 and RFC 3827.
const ETHERNET: [u32; 2] = [0, 4];
/// Ethernet in tcpdump's link types.
const LINK: u32 = 1;

/// State of the reader.
#[derive(Debug)]
pub(super) struct Snoop {
    /// Number of packets that `snoop` dropped so far, according to the last record.
    dropped: u32,
}

impl Snoop {
    /// Reads the file header.
    pub(super) fn open<R: Read>(window: &mut ReadBuffer<R>) -> Result<Snoop, End> {
        let head = pull(window, HEAD)?;
        let (version, link) = (u32_at(head, 8, true), u32_at(head, 12, true));
        if version != VERSION {
            return Err(End::Damaged(format!(
                "version {version} of snoop's format is not known"
            )));
        }
        if !ETHERNET.contains(&link) {
            return Err(End::Damaged(format!(
                "snoop's link type {link} is not known: capture on an Ethernet interface"
            )));
        }
        Ok(Snoop { dropped: 0 })
    }

    /// The next packet.
    pub(super) fn next<'w, R: Read>(
        &mut self,
        window: &'w mut ReadBuffer<R>,
    ) -> Result<Packet<'w>, End> {
        let head = record_head(window, RECORD)?;
        let [original, captured, length, dropped, seconds, micros] =
            [0, 4, 8, 12, 16, 20].map(|at| u32_at(head, at, true));
        let is_whole = (captured as usize).saturating_add(RECORD) <= length as usize;
        if length > LONGEST || !is_whole {
            return Err(End::Damaged(format!(
                "a record of {length} bytes claims a packet of {captured}"
            )));
        }
        self.dropped = dropped;
        let record = pull(window, length as usize)?;
        Ok(Packet {
            at: u64::from(seconds) * 1_000_000_000 + u64::from(micros) * 1_000,
            link: LINK,
            bytes: &record[RECORD..RECORD + captured as usize],
            is_cut: captured < original,
        })
    }

    /// Number of packets that `snoop` dropped.
    pub(super) fn dropped(&self) -> u64 {
        u64::from(self.dropped)
    }
}
