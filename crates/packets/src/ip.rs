//! Headers of IPv4 (RFC 791), IPv6 (RFC 8200), TCP and UDP. The payload may be cut off.

use intact_wire::tcp::Segment;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Protocol numbers.
pub(super) mod protocol {
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(super) const AH: u8 = 51;
}

/// One IP packet, or a fragment of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram<'a> {
    pub(super) source: IpAddr,
    pub(super) target: IpAddr,
    pub(super) protocol: u8,
    /// The captured bytes after the headers.
    pub(super) payload: &'a [u8],
    /// Length of the payload on the wire, in bytes.
    pub(super) len: usize,
    pub(super) fragment: Option<Fragment>,
}

/// Position of a fragment in its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragment {
    pub(super) id: u32,
    /// Offset in the packet, in bytes.
    pub(super) offset: usize,
    /// More fragments follow.
    pub(super) more: bool,
}

/// Reads the headers of an IP packet; `None` if the bytes are not IP.
pub(super) fn parse(packet: &[u8]) -> Option<Datagram<'_>> {
    match packet.first()? >> 4 {
        4 => parse_v4(packet),
        6 => parse_v6(packet),
        _ => None,
    }
}

fn parse_v4(packet: &[u8]) -> Option<Datagram<'_>> {
    let head: &[u8; 20] = packet.first_chunk()?;
    let head_len = usize::from(head[0] & 0x0f) * 4;
    if head_len < 20 {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let payload = packet.get(head_len..)?;
    // a length of 0 means segmentation offload: the network card fills it in
    let len = if total == 0 {
        payload.len()
    } else {
        total.checked_sub(head_len)?
    };
    let (mut protocol, mut payload, mut len) = (head[9], payload, len);
    let flags = u16::from_be_bytes([head[6], head[7]]);
    let offset = usize::from(flags & 0x1fff) * 8;
    let more = flags & 0x2000 != 0;
    // the authentication header (RFC 4302) changes nothing of what follows
    if protocol == protocol::AH && offset == 0 {
        let skip = (usize::from(*payload.get(1)?) + 2) * 4;
        protocol = *payload.first()?;
        payload = payload.get(skip..)?;
        len = len.checked_sub(skip)?;
    }
    let address = |at: usize| Ipv4Addr::new(head[at], head[at + 1], head[at + 2], head[at + 3]);
    Some(Datagram {
        source: address(12).into(),
        target: address(16).into(),
        protocol,
        payload: &payload[..payload.len().min(len)],
        len,
        fragment: (more || offset > 0).then_some(Fragment {
            id: u32::from(u16::from_be_bytes([head[4], head[5]])),
            offset,
            more,
        }),
    })
}

fn parse_v6(packet: &[u8]) -> Option<Datagram<'_>> {
    let head: &[u8; 40] = packet.first_chunk()?;
    let announced = usize::from(u16::from_be_bytes([head[4], head[5]]));
    let mut payload = &packet[40..];
    let mut len = if announced == 0 {
        payload.len()
    } else {
        announced
    };
    payload = &payload[..payload.len().min(len)];
    let mut next = head[6];
    let mut fragment = None;
    loop {
        let skip = match next {
            // hop-by-hop, routing, destination options
            0 | 43 | 60 => (usize::from(*payload.get(1)?) + 1) * 8,
            // authentication
            protocol::AH => (usize::from(*payload.get(1)?) + 2) * 4,
            44 => {
                let part: &[u8; 8] = payload.first_chunk()?;
                let flags = u16::from_be_bytes([part[2], part[3]]);
                let (offset, more) = (usize::from(flags & 0xfff8), flags & 1 == 1);
                // an atomic fragment is whole (RFC 6946)
                if more || offset > 0 {
                    fragment = Some(Fragment {
                        id: u32::from_be_bytes([part[4], part[5], part[6], part[7]]),
                        offset,
                        more,
                    });
                }
                8
            }
            _ => break,
        };
        next = *payload.first()?;
        payload = payload.get(skip..)?;
        len = len.checked_sub(skip)?;
        // later fragments carry payload, no header
        if fragment.is_some_and(|part| part.offset > 0) {
            break;
        }
    }
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&head[at..at + 16]);
        Ipv6Addr::from(octets)
    };
    Some(Datagram {
        source: address(8).into(),
        target: address(24).into(),
        protocol: next,
        payload,
        len,
        fragment,
    })
}

/// A TCP segment with its ports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tcp<'a> {
    pub(super) source: u16,
    pub(super) target: u16,
    pub(super) segment: Segment<'a>,
}

/// Reads a TCP header (RFC 9293); `len` is the length of the IP payload on the wire.
pub(super) fn parse_tcp(payload: &[u8], len: usize, at: u64) -> Option<Tcp<'_>> {
    let head: &[u8; 20] = payload.first_chunk()?;
    let head_len = usize::from(head[12] >> 4) * 4;
    if head_len < 20 {
        return None;
    }
    let u32_at =
        |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let flags = head[13];
    let flag = |bit: u8| flags & bit != 0;
    Some(Tcp {
        source: u16::from_be_bytes([head[0], head[1]]),
        target: u16::from_be_bytes([head[2], head[3]]),
        segment: Segment {
            seq: u32_at(4),
            ack: flag(0x10).then(|| u32_at(8)),
            syn: flag(0x02),
            fin: flag(0x01),
            rst: flag(0x04),
            payload: payload.get(head_len..).unwrap_or_default(),
            len: u32::try_from(len.checked_sub(head_len)?).ok()?,
            at,
        }
        .as_received(),
    })
}

/// A UDP datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Udp<'a> {
    pub(super) source: u16,
    pub(super) target: u16,
    pub(super) payload: &'a [u8],
}

/// Reads a UDP header (RFC 768).
pub(super) fn parse_udp(payload: &[u8]) -> Option<Udp<'_>> {
    let head: &[u8; 8] = payload.first_chunk()?;
    Some(Udp {
        source: u16::from_be_bytes([head[0], head[1]]),
        target: u16::from_be_bytes([head[2], head[3]]),
        payload: &payload[8..],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_zero_means_segmentation_offload() {
        let mut packet = vec![
            0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        packet.extend([0; 30]);
        let one = parse(&packet).unwrap();
        assert_eq!((one.len, one.payload.len(), one.protocol), (30, 30, 6));
    }

    #[test]
    fn padding_after_the_packet_is_not_payload() {
        let mut packet = vec![
            0x45, 0, 0, 22, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        packet.extend([7; 26]);
        assert_eq!(parse(&packet).unwrap().payload, [7, 7]);
    }

    #[test]
    fn extension_headers_of_ipv6_are_skipped() {
        let mut packet = vec![0x60, 0, 0, 0, 0, 20, 0, 64];
        packet.extend([1; 32]);
        // hop-by-hop, then a first fragment, then four bytes of UDP
        packet.extend([44, 0, 0, 0, 0, 0, 0, 0]);
        packet.extend([17, 0, 0, 1, 0, 0, 0, 9]);
        packet.extend([5; 4]);
        let one = parse(&packet).unwrap();
        assert_eq!((one.protocol, one.payload, one.len), (17, &[5; 4][..], 4));
        assert_eq!(
            one.fragment,
            Some(Fragment {
                id: 9,
                offset: 0,
                more: true
            })
        );
        for len in 0..packet.len() {
            parse(&packet[..len]);
        }
    }
}
