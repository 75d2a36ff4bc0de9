//! Tunnels in UDP or GRE: the inner packet, located by the headers alone.
//!
//! Reads VXLAN (RFC 7348), GENEVE (RFC 8926), GTP-U (3GPP TS 29.281), GRE (RFC 2784, RFC 2890) and
//! ERSPAN within it (draft-foschiano-erspan). A known tunnel that is not decoded is [`Opaque`].
//! Verifies nothing and allocates nothing.

use super::ip::Udp;
use super::link::{Inside, ethernet, ethertype};
use super::opaque::Opaque;

/// UDP ports of tunnels. Linux uses 8472 for VXLAN by default, because it predates the assignment
/// of 4789.
mod port {
    pub(super) const VXLAN: [u16; 2] = [4789, 8472];
    pub(super) const GENEVE: u16 = 6081;
    pub(super) const GTP_U: u16 = 2152;
}

/// The contents of a UDP datagram on the port of a tunnel; `None` if it is no tunnel.
pub(super) fn in_udp<'a>(udp: &Udp<'a>) -> Option<Inside<'a>> {
    match udp.target {
        target if port::VXLAN.contains(&target) => vxlan(udp.payload),
        port::GENEVE => Some(geneve(udp.payload)),
        port::GTP_U => gtp_u(udp.payload),
        _ => None,
    }
}

fn vxlan(payload: &[u8]) -> Option<Inside<'_>> {
    // the flag that announces a network identifier
    let is_vxlan = payload.first()? & 0x08 != 0;
    is_vxlan.then(|| Inside::behind(payload.get(8..), ethernet))
}

fn geneve(payload: &[u8]) -> Inside<'_> {
    let Some(&[first, flags, kind_high, kind_low, ..]) = payload.first_chunk::<8>() else {
        return Inside::Short;
    };
    if first >> 6 != 0 {
        return Inside::Opaque(Opaque::Named("GENEVE of an unknown version"));
    }
    let is_control = flags & 0x80 != 0;
    if is_control {
        return Inside::Other;
    }
    let head = 8 + usize::from(first & 0x3f) * 4;
    let kind = u16::from_be_bytes([kind_high, kind_low]);
    Inside::behind(payload.get(head..), |rest| ethertype(kind, rest))
}

/// `None` for a datagram that is not GTP version 1.
fn gtp_u(payload: &[u8]) -> Option<Inside<'_>> {
    const USER_PACKET: u8 = 255;
    let &[flags, kind, ..] = payload.first_chunk::<8>()?;
    if flags >> 4 != 0b0011 {
        return None;
    }
    if kind != USER_PACKET {
        return Some(Inside::Other);
    }
    let Some(inner) = behind_gtp_u(flags, payload) else {
        return Some(Inside::Short);
    };
    Some(match inner.first().map(|first| first >> 4) {
        Some(4 | 6) => Inside::Ip(inner),
        Some(_) => Inside::Opaque(Opaque::Named("GTP-U that carries no IP")),
        None => Inside::Short,
    })
}

/// The bytes after the header of GTP-U and its extension headers.
fn behind_gtp_u(flags: u8, payload: &[u8]) -> Option<&[u8]> {
    let has_more = flags & 0x07 != 0;
    if !has_more {
        return payload.get(8..);
    }
    let has_extensions = flags & 0x04 != 0;
    let mut next = *payload.get(11)?;
    let mut rest = payload.get(12..)?;
    while has_extensions && next != 0 {
        let len = usize::from(*rest.first()?) * 4;
        next = *rest.get(..len)?.last()?;
        rest = rest.get(len..)?;
    }
    Some(rest)
}

/// The contents of a GRE packet.
pub(super) fn gre(payload: &[u8]) -> Inside<'_> {
    let Some(&[flags, version, kind_high, kind_low]) = payload.first_chunk() else {
        return Inside::Short;
    };
    if version & 0x07 != 0 {
        return Inside::Opaque(Opaque::Named("PPTP (GRE version 1)"));
    }
    let optional = [0x80, 0x20, 0x10].iter().filter(|&&bit| flags & bit != 0);
    let Some(rest) = payload.get(4 + 4 * optional.count()..) else {
        return Inside::Short;
    };
    let has_sequence = flags & 0x10 != 0;
    match u16::from_be_bytes([kind_high, kind_low]) {
        // type 1 has no header of its own, type 2 comes with a sequence number
        0x88be if has_sequence => Inside::behind(rest.get(8..), ethernet),
        0x88be => ethernet(rest),
        0x22eb => erspan_3(rest),
        0x6558 => ethernet(rest),
        // keep-alive of the tunnel; IS-IS; ARP; CDP; NHRP
        0 | 0x00fe | 0x0806 | 0x2000 | 0x2001 => Inside::Other,
        kind => match ethertype(kind, rest) {
            Inside::Other => Inside::Opaque(Opaque::Gre(kind)),
            inside => inside,
        },
    }
}

/// ERSPAN type 3: 12 bytes of header, plus 8 if the last bit is set.
fn erspan_3(payload: &[u8]) -> Inside<'_> {
    let Some(&[.., kind, last]) = payload.first_chunk::<12>() else {
        return Inside::Short;
    };
    let head = if last & 1 == 1 { 20 } else { 12 };
    let carries_ip = (kind >> 2) & 0x1f == 2;
    Inside::behind(payload.get(head..), |rest| match carries_ip {
        true => Inside::Ip(rest),
        false => ethernet(rest),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: &[u8] = &[0x45, 0, 0, 20];

    fn frame() -> Vec<u8> {
        [&[0; 12], &[8, 0][..], IP].concat()
    }

    fn in_udp_to(target: u16, payload: &[u8]) -> Option<Inside<'_>> {
        in_udp(&Udp {
            source: 40_000,
            target,
            payload,
        })
    }

    #[test]
    fn tunnels_in_udp_are_opened() {
        let vxlan = [&[8, 0, 0, 0, 0, 0, 1, 0], &frame()[..]].concat();
        let geneve_frame = [
            &[0x02, 0, 0x65, 0x58, 0, 0, 1, 0],
            &[0; 8][..],
            &frame()[..],
        ]
        .concat();
        let geneve_ip = [&[0, 0, 0x08, 0, 0, 0, 1, 0], IP].concat();
        let gtp = [&[0x30, 255, 0, 4, 0, 0, 0, 1], IP].concat();
        // a sequence number and two extension headers, the second one twice as long
        let gtp_extended = [
            &[0x36, 255, 0, 24, 0, 0, 0, 1][..],
            &[0, 9, 0, 0x85],
            &[1, 0, 0, 0xc0],
            &[2, 0, 0, 0, 0, 0, 0, 0],
            IP,
        ]
        .concat();
        for (port, payload) in [
            (4789, &vxlan),
            (8472, &vxlan),
            (6081, &geneve_frame),
            (6081, &geneve_ip),
            (2152, &gtp),
            (2152, &gtp_extended),
        ] {
            assert_eq!(in_udp_to(port, payload), Some(Inside::Ip(IP)), "{port}");
            for len in 0..payload.len() {
                in_udp_to(port, &payload[..len]);
            }
        }
        // an echo request of GTP, a datagram of something else, an Ethernet frame within GTP-U
        let echo = [0x32, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(in_udp_to(2152, &echo), Some(Inside::Other));
        assert_eq!(in_udp_to(2152, b"hello, world"), None);
        assert_eq!(in_udp_to(53, &vxlan), None);
        let bridged = [&[0x30, 255, 0, 18, 0, 0, 0, 1], &frame()[..]].concat();
        assert_eq!(
            in_udp_to(2152, &bridged),
            Some(Inside::Opaque(Opaque::Named("GTP-U that carries no IP")))
        );
    }

    #[test]
    fn tunnels_in_gre_are_opened() {
        let plain = [&[0, 0, 8, 0], IP].concat();
        let keyed = [&[0x20, 0, 0x65, 0x58, 0, 0, 0, 7], &frame()[..]].concat();
        let erspan_1 = [&[0, 0, 0x88, 0xbe], &frame()[..]].concat();
        let erspan_2 = [
            &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1][..],
            &[0x10, 0, 0, 1, 0, 0, 0, 0],
            &frame(),
        ]
        .concat();
        let third = |last: u8, more: &[u8]| {
            let head = [0x20, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, last];
            let gre = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1];
            [&gre[..], &head, more, &frame()].concat()
        };
        let short = third(0, &[]);
        let long = third(1, &[0; 8]);
        for payload in [&plain, &keyed, &erspan_1, &erspan_2, &short, &long] {
            assert_eq!(gre(payload), Inside::Ip(IP), "{payload:02x?}");
            for len in 0..payload.len() {
                gre(&payload[..len]);
            }
        }
        assert_eq!(
            gre(&[0x30, 0x01, 0x88, 0x0b, 0, 0, 0, 0]),
            Inside::Opaque(Opaque::Named("PPTP (GRE version 1)"))
        );
        assert_eq!(
            gre(&[0, 0, 0x65, 0x59, 0, 0, 0, 0]),
            Inside::Opaque(Opaque::Gre(0x6559))
        );
        // ARP within the tunnel hides nothing
        let arp = [&[0, 0, 0x65, 0x58], &[0; 12][..], &[8, 6], &[0; 28]].concat();
        assert_eq!(gre(&arp), Inside::Other);
    }
}
