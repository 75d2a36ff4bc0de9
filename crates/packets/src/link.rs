//! Link layers: the headers of a frame as it was captured. [`super::ether`] has what follows an
//! EtherType.
//!
//! Verifies nothing and allocates nothing.

use super::ether::{ethertype, llc};
use super::opaque::Opaque;
use super::ppp::ppp;

/// Link types, as tcpdump numbers them.
mod kind {
    pub(super) const NULL: u32 = 0;
    pub(super) const ETHERNET: u32 = 1;
    pub(super) const TOKEN_RING: u32 = 6;
    pub(super) const PPP: u32 = 9;
    pub(super) const FDDI: u32 = 10;
    pub(super) const ATM: u32 = 11;
    pub(super) const RAW_BSD: u32 = 12;
    pub(super) const RAW_OPENBSD: u32 = 14;
    pub(super) const PPP_HDLC: u32 = 50;
    pub(super) const PPP_ETHER: u32 = 51;
    pub(super) const RAW: u32 = 101;
    pub(super) const CISCO_HDLC: u32 = 104;
    pub(super) const WIFI: u32 = 105;
    pub(super) const LOOP: u32 = 108;
    pub(super) const ENC: u32 = 109;
    pub(super) const SLL: u32 = 113;
    pub(super) const PFLOG: u32 = 117;
    pub(super) const PRISM: u32 = 119;
    pub(super) const RADIOTAP: u32 = 127;
    /// Apple's tcpdump writes PKTAP with a number for private use.
    pub(super) const PKTAP_APPLE: u32 = 149;
    pub(super) const AVS: u32 = 163;
    pub(super) const PPP_PPPD: u32 = 166;
    pub(super) const PPI: u32 = 192;
    pub(super) const IPV4: u32 = 228;
    pub(super) const IPV6: u32 = 229;
    pub(super) const NFLOG: u32 = 239;
    pub(super) const PKTAP: u32 = 258;
    pub(super) const SLL2: u32 = 276;
}

/// Contents of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside<'a> {
    /// An IP packet.
    Ip(&'a [u8]),
    /// A protocol other than IP, such as ARP.
    Other,
    /// The frame is shorter than its headers.
    Short,
    /// A protocol that may hold an IP packet and is not decoded here.
    Opaque(Opaque),
}

impl<'a> Inside<'a> {
    /// The IP packet; `Short` for `None`.
    pub(super) fn ip(packet: Option<&'a [u8]>) -> Inside<'a> {
        packet.map_or(Inside::Short, Inside::Ip)
    }

    /// Applies `open` to the bytes after a header; `Short` for `None`.
    pub(super) fn behind(
        rest: Option<&'a [u8]>,
        open: impl FnOnce(&'a [u8]) -> Inside<'a>,
    ) -> Inside<'a> {
        rest.map_or(Inside::Short, open)
    }
}

/// The contents of a frame with this link type.
pub(super) fn open(link: u32, frame: &[u8]) -> Inside<'_> {
    match link {
        kind::ETHERNET => ethernet(frame),
        kind::RAW | kind::RAW_BSD | kind::RAW_OPENBSD | kind::IPV4 | kind::IPV6 => {
            Inside::Ip(frame)
        }
        // the address family, in the byte order of the capturing host or of the network
        kind::NULL | kind::LOOP => Inside::ip(frame.get(4..)),
        kind::SLL => typed(frame, 14, 16),
        kind::SLL2 => typed(frame, 0, 20),
        kind::PPP => ppp(frame),
        kind::PPP_HDLC => match frame {
            [0xff, 0x03, rest @ ..] => ppp(rest),
            // HDLC of Cisco: unicast or broadcast
            [0x0f | 0x8f, ..] => typed(frame, 2, 4),
            _ => Inside::Other,
        },
        kind::CISCO_HDLC => typed(frame, 2, 4),
        // the direction comes first
        kind::PPP_PPPD => Inside::behind(frame.get(1..), ppp),
        kind::FDDI => Inside::behind(frame.get(13..), llc),
        kind::TOKEN_RING => token_ring(frame),
        kind::ATM => llc(frame),
        kind::ENC => Inside::ip(frame.get(12..)),
        kind::PFLOG => {
            let len = frame
                .first()
                .map(|len| usize::from(*len).next_multiple_of(4));
            Inside::ip(len.and_then(|len| frame.get(len..)))
        }
        kind::PKTAP | kind::PKTAP_APPLE => within(frame, le_u32(frame, 0), le_u32(frame, 8)),
        kind::PPI => {
            let len = frame
                .get(2..4)
                .map(|len| u32::from(u16::from_le_bytes([len[0], len[1]])));
            within(frame, len, le_u32(frame, 4))
        }
        kind::PRISM => within(frame, le_u32(frame, 4), Some(kind::WIFI)),
        kind::AVS => {
            let len = frame
                .get(4..8)
                .map(|len| u32::from_be_bytes([len[0], len[1], len[2], len[3]]));
            within(frame, len, Some(kind::WIFI))
        }
        kind::PPP_ETHER => Inside::behind(frame.get(6..), ppp),
        kind::NFLOG => Inside::ip(nflog(frame)),
        kind::WIFI => wifi(frame),
        kind::RADIOTAP => {
            let len = frame
                .get(2..4)
                .map(|len| usize::from(u16::from_le_bytes([len[0], len[1]])));
            Inside::behind(len.and_then(|len| frame.get(len..)), wifi)
        }
        _ => Inside::Opaque(Opaque::Link(link)),
    }
}

/// The contents of an Ethernet frame, on a link or inside a tunnel.
pub(super) fn ethernet(frame: &[u8]) -> Inside<'_> {
    typed(frame, 12, 14)
}

/// The contents of a frame; `kind` and `payload` are the offsets of its EtherType and its payload.
fn typed(frame: &[u8], kind: usize, payload: usize) -> Inside<'_> {
    match (u16_at(frame, kind), frame.get(payload..)) {
        (Some(kind), Some(rest)) => ethertype(kind, rest),
        _ => Inside::Short,
    }
}

/// The packet in a message of Netfilter's log: type-length-value items in the byte order of the
/// host.
fn nflog(frame: &[u8]) -> Option<&[u8]> {
    const PAYLOAD: u16 = 9;
    let mut rest = frame.get(4..)?;
    loop {
        let len = usize::from(u16::from_le_bytes(*rest.first_chunk()?));
        let kind = u16::from_le_bytes(*rest.get(2..)?.first_chunk()?);
        let value = rest.get(4..len)?;
        if kind == PAYLOAD {
            return Some(value);
        }
        rest = rest.get(len.next_multiple_of(4)..)?;
    }
}

/// The contents of an IEEE 802.11 data frame with an LLC header.
pub(super) fn wifi(frame: &[u8]) -> Inside<'_> {
    let &[control, flags, ..] = frame else {
        return Inside::Short;
    };
    let is_data = control & 0x0c == 0x08 && control & 0x40 == 0;
    if !is_data {
        return Inside::Other;
    }
    let encrypted = flags & 0x40 != 0;
    if encrypted {
        return Inside::Opaque(Opaque::Named("encrypted 802.11"));
    }
    let four_addresses = flags & 0x03 == 0x03;
    let quality = control & 0x80 != 0;
    let head = 24 + if four_addresses { 6 } else { 0 } + if quality { 2 } else { 0 };
    let is_aggregate = quality && frame.get(head - 2).is_some_and(|first| first & 0x80 != 0);
    if is_aggregate {
        return Inside::Opaque(Opaque::Named("aggregated 802.11 frames"));
    }
    Inside::behind(frame.get(head..), llc)
}

/// A frame behind a header of this length, which names its link type. One that names itself is not
/// followed.
fn within(frame: &[u8], len: Option<u32>, link: Option<u32>) -> Inside<'_> {
    let (Some(len), Some(link)) = (len, link) else {
        return Inside::Short;
    };
    let nested = [
        kind::PKTAP,
        kind::PKTAP_APPLE,
        kind::PPI,
        kind::PRISM,
        kind::AVS,
    ];
    match frame.get(len as usize..) {
        Some(_) if nested.contains(&link) => Inside::Opaque(Opaque::Link(link)),
        Some(rest) => open(link, rest),
        None => Inside::Short,
    }
}

/// The contents of a frame of Token Ring (IEEE 802.5), perhaps with a route.
fn token_ring(frame: &[u8]) -> Inside<'_> {
    let Some(&has_route) = frame.get(8) else {
        return Inside::Short;
    };
    let route = match has_route & 0x80 {
        0 => Some(0),
        _ => frame.get(14).map(|control| usize::from(control & 0x1f)),
    };
    Inside::behind(route.and_then(|route| frame.get(14 + route..)), llc)
}

fn le_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: &[u8] = &[0x45, 0, 0, 20];

    fn frame(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    #[test]
    fn tags_and_link_headers_are_skipped() {
        let addresses = [0; 12];
        for (link, bytes) in [
            (1, frame(&[&addresses, &[8, 0], IP])),
            (1, frame(&[&addresses, &[0x81, 0, 0, 1, 8, 0], IP])),
            (
                1,
                frame(&[&addresses, &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0], IP]),
            ),
            (
                1,
                frame(&[&addresses, &[0x88, 0x64, 0x11, 0, 0, 1, 0, 6, 0, 0x21], IP]),
            ),
            (
                1,
                frame(&[&addresses, &[0x88, 0x47, 0, 0, 0, 64, 0, 0, 1, 64], IP]),
            ),
            (0, frame(&[&[2, 0, 0, 0], IP])),
            (101, IP.to_vec()),
            (113, frame(&[&[0; 14], &[8, 0], IP])),
            (276, frame(&[&[8, 0], &[0; 18], IP])),
            (
                239,
                frame(&[&[2, 0, 0, 1], &[6, 0, 10, 0, 0, 0, 0, 0], &[8, 0, 9, 0], IP]),
            ),
            (
                105,
                frame(&[&[0x88, 0x01], &[0; 24], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], IP]),
            ),
            (
                127,
                frame(&[
                    &[0, 0, 8, 0, 0, 0, 0, 0],
                    &[0x08, 0x01],
                    &[0; 22],
                    &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0],
                    IP,
                ]),
            ),
        ] {
            assert_eq!(open(link, &bytes), Inside::Ip(IP), "link {link}");
            for len in 0..bytes.len() {
                open(link, &bytes[..len]);
            }
        }
        assert_eq!(open(220, IP), Inside::Opaque(Opaque::Link(220)));
        assert_eq!(open(1, &[0; 60]), Inside::Other);
    }

    #[test]
    fn only_a_frame_that_may_hold_a_packet_is_reported_as_opaque() {
        let named = |name| Inside::Opaque(Opaque::Named(name));
        let ethernet = |kind: u16| [&[0; 12], &kind.to_be_bytes()[..], &[0x0c; 40]].concat();
        assert_eq!(open(1, &ethernet(0x88e5)), named("encrypted MACsec"));
        let unknown = Inside::Opaque(Opaque::EtherType(0x7777));
        assert_eq!(open(1, &ethernet(0x7777)), unknown);
        assert_eq!(open(1, &ethernet(0x0806)), Inside::Other);
        assert_eq!(open(1, &ethernet(0x0800)[..13]), Inside::Short);
        let encrypted = [&[0x08, 0x41][..], &[0; 40]].concat();
        assert_eq!(open(105, &encrypted), named("encrypted 802.11"));
        let beacon = [&[0x80, 0x00][..], &[0; 40]].concat();
        assert_eq!(open(105, &beacon), Inside::Other);
    }
}
