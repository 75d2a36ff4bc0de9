//! The file format of Wireshark (draft-ietf-opsawg-pcapng): blocks of packets, interfaces and TLS
//! secrets.
//!
//! [`Reader`] reads complete blocks, [`write`] makes a complete file. Neither does I/O.

mod read;
mod write;

pub use read::{Block, Damaged, Reader, is_magic};
pub use write::{WrittenPacket, write};

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

/// Options of all blocks, of a section, of an interface and its statistics, and of a packet.
mod option {
    pub(super) const END: u16 = 0;
    pub(super) const COMMENT: u16 = 1;
    pub(super) const USER_APPLICATION: u16 = 4;
    pub(super) const DROPPED_BY_INTERFACE: u16 = 5;
    pub(super) const DROPPED_BY_SYSTEM: u16 = 7;
    pub(super) const RESOLUTION: u16 = 9;
    pub(super) const OFFSET: u16 = 14;
    pub(super) const FLAGS: u16 = 2;
}

/// The start of a section, in the byte order of the section.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Secrets in the NSS key log format.
const TLS_KEY_LOG: u32 = 0x544c_534b;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let bytes = [7; 5];
        let packet = WrittenPacket {
            at: 1_700_000_000_123_456_789,
            outgoing: true,
            bytes: &bytes,
            original: 9,
            comment: Some("HTTP/2"),
        };
        let file = write([packet], "A b c\n");
        assert!(is_magic(&file));
        let mut reader = Reader::default();
        let (mut rest, mut blocks) = (&file[..], Vec::new());
        while let Some(head) = rest.first_chunk() {
            let len = reader.begin(head, 1 << 20).unwrap();
            let (block, after) = rest.split_at(len);
            blocks.extend(reader.read(block).unwrap());
            rest = after;
        }
        let [
            Block::Secrets(secrets),
            Block::Packet {
                at,
                link,
                bytes: range,
                original,
            },
        ] = &blocks[..]
        else {
            panic!("{blocks:?}");
        };
        assert_eq!(secrets.len(), 6);
        assert_eq!((*at, *link, range.len(), *original), (packet.at, 101, 5, 9));
    }
}
