//! Writing Wireshark's file format (draft-ietf-opsawg-pcapng): one section, one interface, the TLS secrets, the packets.

use super::packet::Packet;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED: u32 = 6;
const SECRETS: u32 = 0x0a;

const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Secrets in the NSS key log format.
const TLS_KEY_LOG: u32 = 0x544c_534b;
/// LINKTYPE_RAW: packets begin with their IP head.
const RAW_IP: u16 = 101;

const COMMENT: u16 = 1;
const USER_APPLICATION: u16 = 4;
const FLAGS: u16 = 2;
const RESOLUTION: u16 = 9;

/// A whole file.
pub(super) fn write(packets: &[Packet], secrets: &str) -> Vec<u8> {
    let mut file = Vec::new();
    block(&mut file, SECTION, |body| {
        word(body, BYTE_ORDER);
        body.extend_from_slice(&[1, 0, 0, 0]);
        // the length of the section is not told
        body.extend_from_slice(&[0xff; 8]);
        let us = concat!("intact ", env!("CARGO_PKG_VERSION"));
        options(body, &[(USER_APPLICATION, us.as_bytes())]);
    });
    block(&mut file, INTERFACE, |body| {
        word(body, u32::from(RAW_IP));
        // no limit on the length of packets
        word(body, 0);
        options(body, &[(RESOLUTION, &[9])]);
    });
    // before the packets: whoever reads on the way needs them then
    if !secrets.is_empty() {
        block(&mut file, SECRETS, |body| {
            word(body, TLS_KEY_LOG);
            word(body, secrets.len() as u32);
            padded(body, secrets.as_bytes());
        });
    }
    for packet in packets {
        block(&mut file, ENHANCED, |body| {
            word(body, 0);
            word(body, (packet.at >> 32) as u32);
            word(body, packet.at as u32);
            word(body, packet.bytes.len() as u32);
            word(body, packet.whole);
            padded(body, &packet.bytes);
            let direction: u32 = if packet.outgoing { 2 } else { 1 };
            let flags = (FLAGS, &direction.to_le_bytes()[..]);
            match &packet.note {
                Some(note) => options(body, &[(COMMENT, note.as_bytes()), flags]),
                None => options(body, &[flags]),
            }
        });
    }
    file
}

/// A block: its type, its length, what `fill` writes, its length again.
fn block(file: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
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

/// Bytes, and zeroes up to a whole word.
fn padded(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend_from_slice(bytes);
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_words_and_say_their_length_twice() {
        let packet = |bytes: &[u8], note: Option<&str>| Packet {
            at: 0x1234_5678_9abc_def0,
            device: 1,
            outgoing: true,
            bytes: bytes.to_vec(),
            whole: 9,
            note: note.map(str::to_owned),
        };
        let packets = [packet(b"12345", Some("HTTP/2")), packet(b"", None)];
        let file = write(&packets, "A b c\n");
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
        assert_eq!(kinds, [SECTION, INTERFACE, SECRETS, ENHANCED, ENHANCED]);
        assert!(file.windows(8).any(|part| part == b"A b c\n\0\0"));
    }
}
