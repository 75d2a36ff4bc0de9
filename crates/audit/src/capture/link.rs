//! What is around an IP packet: link layers, tags and tunnels' inner frames. Nothing is verified, nothing allocated.

/// Link types, as tcpdump numbers them.
mod kind {
    pub(super) const NULL: u32 = 0;
    pub(super) const ETHERNET: u32 = 1;
    pub(super) const PPP: u32 = 9;
    pub(super) const RAW_BSD: u32 = 12;
    pub(super) const RAW_OPENBSD: u32 = 14;
    pub(super) const PPP_HDLC: u32 = 50;
    pub(super) const PPP_ETHER: u32 = 51;
    pub(super) const RAW: u32 = 101;
    pub(super) const WIFI: u32 = 105;
    pub(super) const LOOP: u32 = 108;
    pub(super) const SLL: u32 = 113;
    pub(super) const RADIOTAP: u32 = 127;
    pub(super) const IPV4: u32 = 228;
    pub(super) const IPV6: u32 = 229;
    pub(super) const NFLOG: u32 = 239;
    pub(super) const SLL2: u32 = 276;
}

/// EtherTypes.
mod ether {
    pub(super) const IPV4: u16 = 0x0800;
    pub(super) const VLAN: u16 = 0x8100;
    pub(super) const IPV6: u16 = 0x86dd;
    pub(super) const MPLS: u16 = 0x8847;
    pub(super) const PPPOE: u16 = 0x8864;
    pub(super) const PROVIDER: u16 = 0x88a8;
    pub(super) const QINQ: u16 = 0x9100;
}

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside<'a> {
    /// An IP packet.
    Ip(&'a [u8]),
    /// Something else, or not enough of it.
    Other,
    /// A link type that is not read here.
    UnknownLink,
}

/// The IP packet in a frame of this link type.
pub(super) fn open(link: u32, frame: &[u8]) -> Inside<'_> {
    let inside = match link {
        kind::ETHERNET => ethernet(frame),
        kind::RAW | kind::RAW_BSD | kind::RAW_OPENBSD | kind::IPV4 | kind::IPV6 => Some(frame),
        // the address family: in the byte order of whoever captured, or of the network
        kind::NULL | kind::LOOP => frame.get(4..),
        kind::SLL => u16_at(frame, 14).and_then(|kind| ethertype(kind, frame.get(16..)?)),
        kind::SLL2 => u16_at(frame, 0).and_then(|kind| ethertype(kind, frame.get(20..)?)),
        kind::PPP => ppp(frame),
        kind::PPP_HDLC => frame.strip_prefix(&[0xff, 0x03]).and_then(ppp),
        kind::PPP_ETHER => frame.get(6..).and_then(ppp),
        kind::NFLOG => nflog(frame),
        kind::WIFI => wifi(frame),
        kind::RADIOTAP => frame
            .get(2..4)
            .map(|len| usize::from(u16::from_le_bytes([len[0], len[1]])))
            .and_then(|len| wifi(frame.get(len..)?)),
        _ => return Inside::UnknownLink,
    };
    inside.map_or(Inside::Other, Inside::Ip)
}

/// An Ethernet frame, also one inside a tunnel.
pub(super) fn ethernet(frame: &[u8]) -> Option<&[u8]> {
    ethertype(u16_at(frame, 12)?, frame.get(14..)?)
}

/// Strips tags until an IP packet shows.
pub(super) fn ethertype(mut kind: u16, mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        match kind {
            ether::IPV4 | ether::IPV6 => return Some(rest),
            ether::VLAN | ether::PROVIDER | ether::QINQ => {
                kind = u16_at(rest, 2)?;
                rest = rest.get(4..)?;
            }
            ether::PPPOE => return ppp(rest.get(6..)?),
            ether::MPLS => {
                // labels end with the one whose bottom bit is set; what follows tells itself by its version
                loop {
                    let bottom = rest.get(2)? & 1 == 1;
                    rest = rest.get(4..)?;
                    if bottom {
                        return matches!(rest.first()? >> 4, 4 | 6).then_some(rest);
                    }
                }
            }
            _ => return None,
        }
    }
}

/// A PPP frame (RFC 1661) that holds IP.
fn ppp(frame: &[u8]) -> Option<&[u8]> {
    let frame = frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame);
    match u16_at(frame, 0)? {
        0x0021 | 0x0057 => frame.get(2..),
        _ => None,
    }
}

/// Netfilter's log: type-length-value items in the byte order of the host, the packet being one of them.
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

/// A data frame of IEEE 802.11 that is not encrypted, with its LLC head.
fn wifi(frame: &[u8]) -> Option<&[u8]> {
    let &[control, flags, ..] = frame else {
        return None;
    };
    let is_data = control & 0x0c == 0x08 && control & 0x40 == 0;
    let encrypted = flags & 0x40 != 0;
    if !is_data || encrypted {
        return None;
    }
    let four_addresses = flags & 0x03 == 0x03;
    let quality = control & 0x80 != 0;
    let head = 24 + if four_addresses { 6 } else { 0 } + if quality { 2 } else { 0 };
    let llc = frame.get(head..)?;
    let kind = llc.strip_prefix(&[0xaa, 0xaa, 0x03, 0, 0, 0])?;
    ethertype(u16_at(kind, 0)?, kind.get(2..)?)
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
    fn tags_and_link_heads_are_stripped() {
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
        assert_eq!(open(220, IP), Inside::UnknownLink);
        assert_eq!(open(1, &[0; 60]), Inside::Other);
    }
}
