//! The headers of packets (RFC 9000 section 17). A long header gives the offset of the next packet
//! in the datagram.

use crate::tls::Cursor;

/// Versions with the same headers and known keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// RFC 9000.
    V1,
    /// RFC 9369.
    V2,
}

/// The type of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first packets of each side.
    Initial,
    /// Early data (0-RTT).
    EarlyData,
    /// The rest of the handshake.
    Handshake,
    /// The server wants the client's address confirmed first. It is the last one of a datagram.
    Retry,
    /// The server does not support the client's version. It is the only one of a datagram.
    VersionNegotiation,
    /// A packet with a short header: its sender has finished the handshake. It is the last one of a
    /// datagram.
    Short,
}

/// The long header of a packet, and the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongHeader<'a> {
    /// The version.
    pub version: Version,
    /// The connection id of the receiver.
    pub destination: &'a [u8],
    /// The whole packet, including the header.
    pub packet: &'a [u8],
    /// Offset of the (protected) packet number.
    pub number_at: usize,
}

/// The packets of a datagram, up to the first one of another version or with missing bytes. A
/// packet without a number that can be located (Short, Retry, VersionNegotiation) has no
/// `LongHeader`.
pub fn packets(datagram: &[u8]) -> impl Iterator<Item = (Kind, Option<LongHeader<'_>>)> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let &first = rest.first()?;
        // only the first bit is fixed here (RFC 9000 section 17.2.1)
        if first & 0x80 != 0 && rest.get(1..5) == Some(&[0; 4]) {
            rest = &[];
            return Some((Kind::VersionNegotiation, None));
        }
        // the second bit shows nothing: a peer that allows that may be sent either value (RFC 9287)
        if first & 0x80 == 0 {
            let is_padding = rest.iter().all(|&byte| byte == 0);
            rest = &[];
            return (!is_padding).then_some((Kind::Short, None));
        }
        let (kind, head) = long_head(rest)?;
        rest = head.map_or(&[], |head| &rest[head.packet.len()..]);
        Some((kind, head))
    })
}

fn long_head(bytes: &[u8]) -> Option<(Kind, Option<LongHeader<'_>>)> {
    let mut rest = Cursor(bytes);
    let first = rest.u8()?;
    let version = match u32::from_be_bytes(rest.array()?) {
        1 => Version::V1,
        0x6b33_43cf => Version::V2,
        _ => return None,
    };
    // version 2 numbers the types differently
    let kind = match (version, (first >> 4) & 3) {
        (Version::V1, kind) => kind,
        (Version::V2, kind) => kind.wrapping_sub(1) & 3,
    };
    let destination = rest.vec8()?.0;
    rest.vec8()?;
    let kind = match kind {
        0 => {
            let token = varint(&mut rest)?;
            rest.bytes(usize::try_from(token).ok()?)?;
            Kind::Initial
        }
        1 => Kind::EarlyData,
        2 => Kind::Handshake,
        // it has neither a number nor a length
        _ => return Some((Kind::Retry, None)),
    };
    let len = usize::try_from(varint(&mut rest)?).ok()?;
    let number_at = bytes.len() - rest.0.len();
    // a capture with truncated packets holds less than the header says
    let end = number_at.saturating_add(len).min(bytes.len());
    let head = LongHeader {
        version,
        destination,
        packet: &bytes[..end],
        number_at,
    };
    Some((kind, Some(head)))
}

/// A number of variable length (RFC 9000 section 16).
pub(crate) fn varint(rest: &mut Cursor<'_>) -> Option<u64> {
    let len = 1 << (rest.0.first()? >> 6);
    let bytes = rest.bytes(len)?;
    let start = u64::from(bytes[0] & 0x3f);
    let more = bytes[1..].iter();
    Some(more.fold(start, |value, &byte| value << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn initial(after: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xc3, 0, 0, 0, 1, 4, 1, 2, 3, 4, 0, 0, 0x44, 0x80];
        bytes.resize(bytes.len() + 0x480, 0xaa);
        bytes.extend_from_slice(after);
        bytes
    }

    fn kinds(bytes: &[u8]) -> Vec<Kind> {
        packets(bytes).map(|(kind, _)| kind).collect()
    }

    #[test]
    fn packets_of_a_datagram_are_detected_by_their_headers() {
        let alone = initial(&[]);
        assert_eq!(kinds(&alone), [Kind::Initial]);
        let (_, head) = packets(&alone).next().unwrap();
        let head = head.unwrap();
        assert_eq!((head.destination, head.number_at), (&[1, 2, 3, 4][..], 14));
        let with_handshake = initial(&[0xe3, 0, 0, 0, 1, 0, 0, 2, 0xbb, 0xbb]);
        assert_eq!(kinds(&with_handshake), [Kind::Initial, Kind::Handshake]);
        assert_eq!(kinds(&[0x43, 1, 2, 3]), [Kind::Short]);
        // the second bit is greased (RFC 9287)
        assert_eq!(kinds(&[0x03, 1, 2, 3]), [Kind::Short]);
        let mut greased = initial(&[0xa3, 0, 0, 0, 1, 0, 0, 2, 0xbb, 0xbb]);
        greased[0] &= !0x40;
        assert_eq!(kinds(&greased), [Kind::Initial, Kind::Handshake]);
        // padding after the packets
        assert_eq!(kinds(&initial(&[0; 20])), [Kind::Initial]);
        // a token and a tag follow both connection ids
        assert_eq!(
            kinds(&[0xf0, 0, 0, 0, 1, 1, 9, 1, 8, 7, 7, 7]),
            [Kind::Retry]
        );
        let negotiation = [0x80, 0, 0, 0, 0, 1, 9, 1, 8, 0, 0, 0, 2];
        assert_eq!(kinds(&negotiation), [Kind::VersionNegotiation]);
        assert_eq!(kinds(&[0x80; 1200]), []);
        for len in 0..with_handshake.len() {
            kinds(&with_handshake[..len]);
        }
    }

    #[test]
    fn numbers_have_the_lengths_of_the_rfc() {
        // RFC 9000 appendix A.1
        for (bytes, number) in [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(varint(&mut Cursor(bytes)), Some(number));
            assert_eq!(varint(&mut Cursor(&bytes[..bytes.len() - 1])), None);
        }
    }
}
