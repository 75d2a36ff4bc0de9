//! The protection of Initial packets (RFC 9001 section 5.2 and RFC 9369 section 3.3): its keys are
//! derived from the packet.

use super::long_header::{LongHeader, Version};
use crate::tls::decrypt::{expand_label, nonce};
use aws_lc_rs::aead::quic::{AES_128, HeaderProtectionKey};
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf;

const SALT_V1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
];
const SALT_V2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb,
    0xf9, 0xbd, 0x2e, 0xd9,
];
const SAMPLE_LEN: usize = 16;

/// The keys with which a client protects its Initial packets.
pub(super) struct Keys {
    packet: LessSafeKey,
    iv: [u8; 12],
    head: HeaderProtectionKey,
}

/// A client's key, IV and key of header protection.
fn material(version: Version, destination: &[u8]) -> [Vec<u8>; 3] {
    let (salt, prefix) = match version {
        Version::V1 => (SALT_V1, "quic"),
        Version::V2 => (SALT_V2, "quicv2"),
    };
    let initial = hkdf::Salt::new(hkdf::HKDF_SHA256, &salt).extract(destination);
    let client = expand_label(&initial, "client in", 32);
    let secret = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, &client);
    [("key", 16), ("iv", 12), ("hp", 16)]
        .map(|(name, len)| expand_label(&secret, &format!("{prefix} {name}"), len))
}

impl Keys {
    /// The keys of a client whose first packet had this destination.
    pub(super) fn of_client(version: Version, destination: &[u8]) -> Option<Keys> {
        let [key, iv, head] = material(version, destination);
        Some(Keys {
            packet: LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).ok()?),
            iv: iv.try_into().ok()?,
            head: HeaderProtectionKey::new(&AES_128, &head).ok()?,
        })
    }

    /// The frames of a packet; `None` if these keys do not decrypt it. The truncated packet number
    /// is used as it is, because first packets have small numbers.
    pub(super) fn open(&self, head: &LongHeader<'_>) -> Option<Vec<u8>> {
        let (open, sealed) = head.packet.split_at_checked(head.number_at)?;
        // the sample's offset assumes a number of four bytes (RFC 9001 section 5.4.2)
        let sample = sealed.get(4..4 + SAMPLE_LEN)?;
        let mask = self.head.new_mask(sample).ok()?;
        let first = head.packet[0] ^ (mask[0] & 0x0f);
        let number_len = usize::from(first & 3) + 1;
        let mut aad = open.to_vec();
        aad[0] = first;
        let mut number = 0u64;
        for (byte, mask) in sealed[..number_len].iter().zip(&mask[1..]) {
            aad.push(byte ^ mask);
            number = number << 8 | u64::from(byte ^ mask);
        }
        let mut frames = sealed[number_len..].to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce(self.iv, number));
        let len = self
            .packet
            .open_in_place(nonce, Aad::from(aad), &mut frames)
            .ok()?
            .len();
        frames.truncate(len);
        Some(frames)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::quic::packets;

    /// The destination in the examples of both RFCs.
    pub(in crate::quic) const DESTINATION: [u8; 8] =
        [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
    /// The CRYPTO frame of RFC 9001 appendix A.2 and of RFC 9369 appendix A.2.
    const FRAME: &str = "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868\
        04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578\
        616d706c652e636f6dff01000100000a00080006001d00170018001000070005\
        04616c706e000500050100000000003300260024001d00209370b2c9caa47fba\
        baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400\
        0d0010000e0403050306030203080408050806002d00020101001c0002400100\
        3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000\
        75300901100f088394c8f03e51570806048000ffff";

    pub(in crate::quic) fn unhex(text: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digit).collect()
    }

    /// The ClientHello of the examples, including the message's header.
    pub(in crate::quic) fn hello() -> Vec<u8> {
        unhex(FRAME)[4..].to_vec()
    }

    /// An Initial packet with a number of four bytes, as a client sends it.
    pub(in crate::quic) fn seal(version: Version, number: u32, frames: &[u8]) -> Vec<u8> {
        let keys = Keys::of_client(version, &DESTINATION).unwrap();
        let (first, name) = match version {
            Version::V1 => (0xc3, 1u32),
            Version::V2 => (0xd3, 0x6b33_43cf),
        };
        let mut packet = vec![first];
        packet.extend(name.to_be_bytes());
        packet.push(8);
        packet.extend(DESTINATION);
        packet.extend([0, 0]);
        packet.extend((0x4000 | (frames.len() + 20) as u16).to_be_bytes());
        let number_at = packet.len();
        packet.extend(number.to_be_bytes());
        let mut sealed = frames.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce(keys.iv, number.into()));
        keys.packet
            .seal_in_place_append_tag(nonce, Aad::from(&packet), &mut sealed)
            .unwrap();
        let mask = keys.head.new_mask(&sealed[..SAMPLE_LEN]).unwrap();
        packet[0] ^= mask[0] & 0x0f;
        for (byte, mask) in packet[number_at..].iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
        }
        packet.extend(sealed);
        packet
    }

    #[test]
    fn keys_are_those_of_the_examples() {
        let protected = |version| material(version, &DESTINATION);
        let expected = |words: [&str; 3]| words.map(unhex);
        assert_eq!(
            protected(Version::V1),
            expected([
                "1f369613dd76d5467730efcbe3b1a22d",
                "fa044b2f42a3fd3b46fb255c",
                "9f50449e04a0e810283a1e9933adedd2",
            ])
        );
        assert_eq!(
            protected(Version::V2),
            expected([
                "8b1a0bc121284290a29e0971b5cd045d",
                "91f73e2351d8fa91660e909f",
                "45b95e15235d6f45a6b19cbcb0294ba9",
            ])
        );
    }

    #[test]
    fn the_packets_of_the_examples_are_sealed_and_opened() {
        let mut frames = unhex(FRAME);
        frames.resize(1162, 0);
        // header, sample and tag of the protected packets in the RFCs
        for (version, start, end) in [
            (
                Version::V1,
                "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11d242b123dc9b",
                "e221af44860018ab0856972e194cd934",
            ),
            (
                Version::V2,
                "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485dd04de806071",
                "a18b2faa745b6fe189cf772a9f84cbfc",
            ),
        ] {
            let packet = seal(version, 2, &frames);
            assert_eq!(packet.len(), 1200);
            assert!(packet.starts_with(&unhex(start)));
            assert!(packet.ends_with(&unhex(end)));
            let (_, head) = packets(&packet).next().unwrap();
            let head = head.unwrap();
            let keys = Keys::of_client(version, head.destination).unwrap();
            assert_eq!(keys.open(&head), Some(frames.clone()));
            let others = Keys::of_client(version, &[1]).unwrap();
            assert_eq!(others.open(&head), None);
        }
    }
}
