//! Packets of a pcapng file. It only moves the buffer; `wire` reads the blocks.

use super::{End, LONGEST, Packet, pull};
use crate::read_buffer::ReadBuffer;
use intact_wire::pcapng::{Block, Damaged, Reader};
use intact_wire::tls::decrypt::KeyLog;
use std::io::Read;

impl From<Damaged> for End {
    fn from(Damaged(why): Damaged) -> End {
        End::Damaged(why)
    }
}

/// The next packet. Secrets before it are added to `keys`.
pub(super) fn next<'w, R: Read>(
    reader: &mut Reader,
    window: &'w mut ReadBuffer<R>,
    keys: &mut KeyLog,
) -> Result<Packet<'w>, End> {
    // two steps for the borrow checker: the packet's block is the last one that was taken
    let (found, len) = loop {
        if matches!(window.fill(12), Ok(0)) {
            return Err(End::Whole);
        }
        let Some(head) = window.available().first_chunk() else {
            return Err(End::Cut);
        };
        let len = reader.begin(head, LONGEST)?;
        if !matches!(window.fill(len), Ok(there) if there >= len) {
            return Err(End::Cut);
        }
        let block = &window.available()[..len];
        match reader.read(block)? {
            Some(Block::Packet {
                at,
                link,
                bytes,
                original,
            }) => break ((at, link, bytes, original), len),
            Some(Block::Secrets(text)) => {
                keys.add_text(&String::from_utf8_lossy(&block[text]));
            }
            None => {}
        }
        let _ = window.pull(len);
    };
    let (at, link, bytes, original) = found;
    Ok(Packet {
        at,
        link,
        is_cut: bytes.len() < original,
        bytes: &pull(window, len)?[bytes],
    })
}
