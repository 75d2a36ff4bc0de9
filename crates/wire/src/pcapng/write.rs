//! Writes one section, one interface, the TLS secrets, and the packets.

use super::{BYTE_ORDER, TLS_KEY_LOG, block, option};

/// LINKTYPE_RAW: packets begin with their IP header.
const RAW_IP: u16 = 101;

/// A packet from its IP header on.
#[derive(Debug, Clone, Copy)]
pub struct WrittenPacket<'a> {
    /// Nanoseconds since 1970.
    pub at: u64,
    /// Whether this machine sent it.
    pub outgoing: bool,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// Its length on the wire in bytes.
    pub original: u32,
    /// A comment for the reader.
    pub comment: Option<&'a str>,
}

/// A complete file, with these secrets in the NSS key log format.
pub fn write<'a>(packets: impl IntoIterator<Item = WrittenPacket<'a>>, secrets: &str) -> Vec<u8> {
    let mut file = Vec::new();
    write_block(&mut file, block::SECTION, |body| {
        word(body, BYTE_ORDER);
        body.extend_from_slice(&[1, 0, 0, 0]);
        // the length of the section is unknown
        body.extend_from_slice(&[0xff; 8]);
        let us = concat!("intact ", env!("CARGO_PKG_VERSION"));
        options(body, &[(option::USER_APPLICATION, us.as_bytes())]);
    });
    write_block(&mut file, block::INTERFACE, |body| {
        word(body, u32::from(RAW_IP));
        // no limit on the length of packets
        word(body, 0);
        options(body, &[(option::RESOLUTION, &[9])]);
    });
    // before the packets: a streaming reader needs them first
    if !secrets.is_empty() {
        write_block(&mut file, block::SECRETS, |body| {
            word(body, TLS_KEY_LOG);
            word(body, secrets.len() as u32);
            padded(body, secrets.as_bytes());
        });
    }
    for packet in packets {
        write_block(&mut file, block::ENHANCED, |body| {
            word(body, 0);
            word(body, (packet.at >> 32) as u32);
            word(body, packet.at as u32);
            word(body, packet.bytes.len() as u32);
            word(body, packet.original);
            padded(body, packet.bytes);
            let direction: u32 = if packet.outgoing { 2 } else { 1 };
            let flags = (option::FLAGS, &direction.to_le_bytes()[..]);
            match packet.comment {
                Some(note) => options(body, &[(option::COMMENT, note.as_bytes()), flags]),
                None => options(body, &[flags]),
            }
        });
    }
    file
}

/// Writes a block: its type, its length, what `fill` writes, its length again.
fn write_block(file: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut body = Vec::new();
    fill(&mut body);
    let length = body.len() as u32 + 12;
    word(file, kind);
    word(file, length);
    file.extend_from_slice(&body);
    word(file, length);
}

fn options(body: &mut Vec<u8>, all: &[(u16, &[u8])]) {
    for (code, value) in all {
        body.extend_from_slice(&code.to_le_bytes());
        body.extend_from_slice(&(value.len() as u16).to_le_bytes());
        padded(body, value);
    }
    word(body, 0);
}

fn word(body: &mut Vec<u8>, value: u32) {
    body.extend_from_slice(&value.to_le_bytes());
}

/// The bytes, padded with zeros to a multiple of four.
fn padded(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend_from_slice(bytes);
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_padded_and_have_their_length_twice() {
        let packet = |bytes, comment| WrittenPacket {
            at: 0x1234_5678_9abc_def0,
            outgoing: true,
            bytes,
            original: 9,
            comment,
        };
        let packets = [packet(b"12345", Some("HTTP/2")), packet(b"", None)];
        let file = write(packets, "A b c\n");
        let at = |at: usize| u32::from_le_bytes(*file[at..].first_chunk().unwrap()) as usize;
        let mut kinds = Vec::new();
        let mut next = 0;
        while next < file.len() {
            let length = at(next + 4);
            assert_eq!(length % 4, 0);
            assert_eq!(at(next + length - 4), length);
            kinds.push(at(next) as u32);
            next += length;
        }
        let packet = block::ENHANCED;
        let expected = [
            block::SECTION,
            block::INTERFACE,
            block::SECRETS,
            packet,
            packet,
        ];
        assert_eq!(kinds, expected);
        assert!(file.windows(8).any(|part| part == b"A b c\n\0\0"));
    }
}
