//! Tunnels in UDP: the inner packet, located by the headers alone, and ports that carry none.
//!
//! Reads VXLAN (RFC 7348) and VXLAN-GPE, GENEVE (RFC 8926), GTP-U (3GPP TS 29.281), L2TP version 2
//! (RFC 2661), GRE (RFC 8086) and MPLS (RFC 7510) in UDP, Teredo (RFC 4380), AYIYA, CAPWAP (RFC
//! 5415), LISP (RFC 9300) and TZSP. On any other port, a datagram that holds an IP packet whose
//! length fits is a tunnel that is not read. Verifies nothing and allocates nothing.

use super::ether::{ethertype, mpls, next_protocol};
use super::ip::Udp;
use super::link::{Inside, ethernet, wifi};
use super::opaque::Opaque;
use super::ppp::ppp;
use super::tunnel::gre;

/// UDP ports of tunnels. Linux uses 8472 for VXLAN by default, because it predates the assignment
/// of 4789.
mod port {
    pub(super) const OPEN_VPN: u16 = 1194;
    pub(super) const L2TP: u16 = 1701;
    pub(super) const GTP_U: u16 = 2152;
    pub(super) const TEREDO: u16 = 3544;
    pub(super) const LISP: u16 = 4341;
    pub(super) const IPSEC: u16 = 4500;
    pub(super) const GRE: u16 = 4754;
    pub(super) const GRE_DTLS: u16 = 4755;
    pub(super) const VXLAN: [u16; 2] = [4789, 8472];
    pub(super) const VXLAN_GPE: u16 = 4790;
    pub(super) const AYIYA: u16 = 5072;
    pub(super) const CAPWAP: u16 = 5247;
    pub(super) const GENEVE: u16 = 6081;
    pub(super) const MPLS: u16 = 6635;
    pub(super) const ZERO_TIER: u16 = 9993;
    pub(super) const TZSP: u16 = 37_008;
}

/// Ports of services that carry no IP packets: names, time, addresses, logs, measurements, control.
/// Sorted.
const WITHOUT_IP: [u16; 73] = [
    7, 9, 13, 17, 19, 37, 42, 53, 67, 68, 69, 88, 111, 123, 137, 138, 161, 162, 177, 319, 320, 389,
    427, 434, 443, 464, 500, 513, 514, 517, 518, 520, 521, 546, 547, 623, 646, 853, 1645, 1646,
    1812, 1813, 1900, 1985, 2029, 2055, 2123, 3222, 3391, 3478, 3702, 3784, 3785, 4342, 4729, 4739,
    4784, 5004, 5005, 5060, 5061, 5246, 5349, 5350, 5351, 5353, 5355, 5683, 5684, 6343, 8125, 8805,
    9995,
];

/// Offsets at which an inner packet is looked for: the longest header of a known tunnel is shorter.
const SEARCHED: usize = 72;

/// The contents of a UDP datagram on the port of a tunnel, or with an IP packet inside; `None` if
/// it is no tunnel.
pub(super) fn in_udp<'a>(udp: &Udp<'a>) -> Option<Inside<'a>> {
    let payload = udp.payload;
    let known = match udp.target {
        target if port::VXLAN.contains(&target) => vxlan(payload),
        port::VXLAN_GPE => vxlan_gpe(payload),
        port::GENEVE => Some(geneve(payload)),
        port::GTP_U => gtp_u(payload),
        port::GRE => Some(gre(payload)),
        port::MPLS => Some(mpls(payload)),
        port::LISP => Some(Inside::ip(payload.get(8..))),
        port::TZSP => tzsp(payload),
        port::GRE_DTLS => Some(Inside::Opaque(Opaque::Named("GRE in DTLS"))),
        _ => None,
    };
    // these use the same port for both directions
    let either = |ports: u16| [udp.source, udp.target].contains(&ports);
    known
        .or_else(|| either(port::L2TP).then(|| l2tp(payload)).flatten())
        .or_else(|| either(port::TEREDO).then(|| teredo(payload)).flatten())
        .or_else(|| either(port::AYIYA).then(|| ayiya(payload)).flatten())
        .or_else(|| either(port::CAPWAP).then(|| capwap(payload)))
        .or_else(|| either(port::IPSEC).then(|| ipsec(payload)))
        .or_else(|| either(port::OPEN_VPN).then_some(Inside::Opaque(Opaque::Named("OpenVPN"))))
        .or_else(|| either(port::ZERO_TIER).then_some(Inside::Opaque(Opaque::Named("ZeroTier"))))
        .or_else(|| is_wireguard(payload).then_some(Inside::Opaque(Opaque::Named("WireGuard"))))
        .or_else(|| {
            // a sample of a packet is no tunnel
            (!is_service(udp) && holds_ip(payload))
                .then_some(Inside::Opaque(Opaque::UdpPort(port_of(udp))))
        })
}

/// Whether a datagram belongs to a service that carries no IP packets.
pub(super) fn is_service(udp: &Udp<'_>) -> bool {
    let ports = [udp.source, udp.target];
    ports
        .iter()
        .any(|port| WITHOUT_IP.binary_search(port).is_ok())
}

/// The port that names the service: the smaller one.
pub(super) fn port_of(udp: &Udp<'_>) -> u16 {
    udp.source.min(udp.target)
}

/// Whether an IP packet is in the payload: its header announces exactly the bytes that follow.
fn holds_ip(payload: &[u8]) -> bool {
    let offsets = 0..payload.len().min(SEARCHED);
    let mut rests = offsets.map(|at| &payload[at..]);
    rests.any(|rest| {
        let Some(head) = rest.first_chunk::<40>() else {
            return false;
        };
        let word = |at: usize| usize::from(u16::from_be_bytes([head[at], head[at + 1]]));
        match head[0] >> 4 {
            4 => {
                let is_transport = matches!(head[9], 1 | 6 | 17 | 50);
                head[0] == 0x45 && is_transport && word(2) == rest.len()
            }
            6 => matches!(head[6], 6 | 17 | 50 | 58) && word(4) + 40 == rest.len(),
            _ => false,
        }
    })
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

/// VXLAN with the protocol of its contents (draft-ietf-nvo3-vxlan-gpe).
fn vxlan_gpe(payload: &[u8]) -> Option<Inside<'_>> {
    let &[flags, _, _, next, ..] = payload.first_chunk::<8>()?;
    let names_protocol = flags & 0x04 != 0;
    match names_protocol {
        true => Some(Inside::behind(payload.get(8..), |rest| {
            next_protocol(next, rest)
        })),
        false => vxlan(payload),
    }
}

/// The PPP frame of L2TP version 2; `None` for a datagram of something else.
fn l2tp(payload: &[u8]) -> Option<Inside<'_>> {
    const CONTROL: u16 = 0x8000;
    let flags = u16::from_be_bytes(*payload.first_chunk()?);
    let has = |bit: u16| flags & bit != 0;
    match flags & 0x000f {
        2 | 3 if has(CONTROL) => return Some(Inside::Other),
        2 => {}
        3 => return Some(Inside::Opaque(Opaque::Named("L2TP version 3"))),
        _ => return None,
    }
    // length; tunnel and session; sequence numbers; offset
    let length = if has(0x4000) { 2 } else { 0 };
    let sequence = if has(0x0800) { 4 } else { 0 };
    let mut head = 2 + length + 4 + sequence;
    if has(0x0200) {
        let Some(size) = payload.get(head..).and_then(|rest| rest.first_chunk()) else {
            return Some(Inside::Short);
        };
        head += 2 + usize::from(u16::from_be_bytes(*size));
    }
    Some(match payload.get(head..) {
        // a session without data
        Some([]) => Inside::Other,
        rest => Inside::behind(rest, ppp),
    })
}

/// IPv6 in Teredo, behind an authentication and an origin.
fn teredo(payload: &[u8]) -> Option<Inside<'_>> {
    let mut rest = payload;
    if let [0, 1, id, value, ..] = rest {
        rest = rest.get(13 + usize::from(*id) + usize::from(*value)..)?;
    }
    if let [0, 0, ..] = rest {
        rest = rest.get(8..)?;
    }
    let is_ipv6 = rest.first()? >> 4 == 6;
    is_ipv6.then_some(Inside::Ip(rest))
}

/// The packet that AYIYA forwards.
fn ayiya(payload: &[u8]) -> Option<Inside<'_>> {
    const FORWARD: u8 = 1;
    let &[identity, signature, method, next, ..] = payload.first_chunk::<8>()?;
    let head = 8 + (1_usize << (identity >> 4)) + usize::from(signature >> 4) * 4;
    match (method & 0x0f, next) {
        (FORWARD, 4 | 41) => Some(Inside::ip(payload.get(head..))),
        (0..=3, _) => Some(Inside::Other),
        _ => None,
    }
}

/// The frame of a station that CAPWAP carries to its controller.
fn capwap(payload: &[u8]) -> Inside<'_> {
    const DTLS: u32 = 1;
    const WIFI: u32 = 1;
    let Some(head) = payload.first_chunk() else {
        return Inside::Short;
    };
    let head = u32::from_be_bytes(*head);
    let bit = |at: u32| head >> at & 1 == 1;
    if head >> 24 & 0x0f == DTLS {
        return Inside::Opaque(Opaque::Named("CAPWAP in DTLS"));
    }
    let (is_native, is_fragment, is_keep_alive) = (bit(8), bit(7), bit(3));
    if is_keep_alive {
        return Inside::Other;
    }
    if is_fragment {
        return Inside::Opaque(Opaque::Named("fragments of CAPWAP"));
    }
    let len = (head >> 19 & 0x1f) as usize * 4;
    let binding = head >> 9 & 0x1f;
    Inside::behind(payload.get(len..), |rest| match is_native {
        false => ethernet(rest),
        true if binding == WIFI => wifi(rest),
        true => Inside::Opaque(Opaque::Named("CAPWAP of an unknown radio")),
    })
}

/// IPsec that crosses a NAT (RFC 3948).
fn ipsec(payload: &[u8]) -> Inside<'_> {
    match payload {
        // keep-alive; IKE
        [_] | [0, 0, 0, 0, ..] => Inside::Other,
        _ => Inside::Opaque(Opaque::Named("IPsec ESP in UDP")),
    }
}

/// The frame that a device mirrors in TZSP; `None` for a datagram of something else.
fn tzsp(payload: &[u8]) -> Option<Inside<'_>> {
    const END: u8 = 1;
    const PADDING: u8 = 0;
    let (&[1, kind, high, low], mut rest) = payload.split_first_chunk()? else {
        return None;
    };
    if kind > 1 {
        return Some(Inside::Other);
    }
    loop {
        let (&tag, behind) = rest.split_first()?;
        rest = match tag {
            PADDING => behind,
            END => {
                rest = behind;
                break;
            }
            _ => behind.get(1 + usize::from(*behind.first()?)..)?,
        };
    }
    Some(match u16::from_be_bytes([high, low]) {
        0x01 => ethernet(rest),
        0x12 => wifi(rest),
        _ => Inside::Opaque(Opaque::Named("TZSP with another frame")),
    })
}

/// Whether a datagram is one of WireGuard: a type with three bytes of zero, and the length of it.
fn is_wireguard(payload: &[u8]) -> bool {
    match (payload.first_chunk(), payload.len()) {
        (Some([1, 0, 0, 0]), 148) | (Some([2, 0, 0, 0]), 92) | (Some([3, 0, 0, 0]), 64) => true,
        (Some([4, 0, 0, 0]), len) => len >= 32 && len % 16 == 0,
        _ => false,
    }
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
    fn more_tunnels_in_udp_are_opened() {
        let ipv6 = [&[0x60, 0, 0, 0, 0, 0, 59, 64][..], &[1; 32]].concat();
        let ppp = [&[0xff, 3, 0, 0x21], IP].concat();
        let l2tp = [&[0x40, 2, 0, 16, 0, 1, 0, 1], &ppp[..]].concat();
        // with sequence numbers and an offset of two, and the short form of PPP
        let long = [
            &[0x4a, 2, 0, 20, 0, 1, 0, 1, 0, 0, 0, 0, 0, 2, 9, 9, 0x21],
            IP,
        ]
        .concat();
        let gpe = [&[0x0c, 0, 0, 1, 0, 0, 1, 0], IP].concat();
        let gpe_nsh = [
            &[0x0c, 0, 0, 4, 0, 0, 1, 0][..],
            &[0, 2, 1, 1, 0, 0, 0, 0],
            IP,
        ]
        .concat();
        let gre = [&[0, 0, 8, 0], IP].concat();
        let mpls = [&[0, 0, 1, 64], IP].concat();
        let lisp = [&[0; 8], IP].concat();
        let origin = [&[0, 0, 1, 2, 3, 4, 5, 6], &ipv6[..]].concat();
        let ayiya = [
            &[0x40, 0x50, 0x21, 4, 0, 0, 0, 0][..],
            &[7; 16],
            &[8; 20],
            IP,
        ]
        .concat();
        let capwap = [&[0, 0x10, 0x02, 0, 0, 0, 0, 0], &frame()[..]].concat();
        let station = [
            &[0x08, 0x01],
            &[0; 22][..],
            &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0],
            IP,
        ]
        .concat();
        let native = [&[0, 0x10, 0x03, 0, 0, 0, 0, 0], &station[..]].concat();
        let tzsp = [&[1, 0, 0, 1, 10, 1, 7, 0, 1], &frame()[..]].concat();
        for (port, payload, inner) in [
            (1701, &l2tp, IP),
            (1701, &long, IP),
            (4790, &gpe, IP),
            (4790, &gpe_nsh, IP),
            (4754, &gre, IP),
            (6635, &mpls, IP),
            (4341, &lisp, IP),
            (3544, &ipv6, &ipv6),
            (3544, &origin, &ipv6),
            (5072, &ayiya, IP),
            (5247, &capwap, IP),
            (5247, &native, IP),
            (37_008, &tzsp, IP),
        ] {
            assert_eq!(in_udp_to(port, payload), Some(Inside::Ip(inner)), "{port}");
            for len in 0..payload.len() {
                in_udp_to(port, &payload[..len]);
            }
        }
        let control = [0xc8, 2, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(in_udp_to(1701, &control), Some(Inside::Other));
    }

    #[test]
    fn tunnels_that_are_not_read_are_named() {
        let named = |name| Some(Inside::Opaque(Opaque::Named(name)));
        let wireguard = [&[4, 0, 0, 0][..], &[9; 44]].concat();
        assert_eq!(in_udp_to(777, &wireguard), named("WireGuard"));
        assert_eq!(in_udp_to(4500, &[7; 80]), named("IPsec ESP in UDP"));
        assert_eq!(in_udp_to(4500, &[0; 80]), Some(Inside::Other));
        assert_eq!(in_udp_to(1194, &[0x30; 80]), named("OpenVPN"));
        assert_eq!(in_udp_to(5247, &[1; 80]), named("CAPWAP in DTLS"));
        // an unknown tunnel by the packet in it
        let mut packet = [&[0x45, 0, 0, 44, 0, 0, 0, 0, 64, 6][..], &[0; 34]].concat();
        let inside = [&[9; 11], &packet[..]].concat();
        let unknown = Some(Inside::Opaque(Opaque::UdpPort(9000)));
        assert_eq!(in_udp_to(9000, &inside), unknown);
        // sFlow samples packets
        assert_eq!(in_udp_to(6343, &inside), None);
        packet[3] = 45;
        assert_eq!(in_udp_to(9000, &[&[9; 11], &packet[..]].concat()), None);
    }

    #[test]
    fn the_ports_of_services_are_sorted() {
        assert!(WITHOUT_IP.is_sorted());
    }

    proptest::proptest! {
        #[test]
        fn no_datagram_is_trouble(
            target in proptest::prelude::any::<u16>(),
            known in 0..40_u16,
            payload in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..120),
        ) {
            in_udp_to(target, &payload);
            for port in [1701, 2152, 3544, 4341, 4754, 4789, 4790, 5072, 5247, 6081, 6635, 37_008] {
                in_udp_to(port, &payload);
            }
            in_udp_to(known, &payload);
        }
    }
}
