//! Tunnels in IP and GRE: the inner packet, located by the headers alone. [`super::udp_tunnel`]
//! has those in UDP.
//!
//! Reads GRE (RFC 2784, RFC 2890) with ERSPAN (draft-foschiano-erspan), IP in IP, MPLS in IP (RFC
//! 4023), Ethernet in IP (RFC 3378) and the authentication header (RFC 4302). A protocol that is
//! not read is [`Opaque`], with its number, unless it is known to carry no IP packets. Verifies
//! nothing and allocates nothing.

use super::ether::{ethertype, mpls};
use super::link::{Inside, ethernet};
use super::opaque::Opaque;
use super::ppp::ppp;

/// Protocol numbers of IP.
mod protocol {
    pub(super) const IPV4: u8 = 4;
    pub(super) const IPV6: u8 = 41;
    pub(super) const GRE: u8 = 47;
    pub(super) const ESP: u8 = 50;
    pub(super) const ETHER_IP: u8 = 97;
    pub(super) const L2TP: u8 = 115;
    pub(super) const MPLS: u8 = 137;
}

/// Protocols that carry no IP packets: ICMP, IGMP, routing, SCTP, RSVP, VRRP and so on.
const WITHOUT_IP: [u8; 19] = [
    1, 2, 3, 8, 9, 27, 33, 46, 58, 59, 88, 89, 103, 112, 113, 132, 135, 139, 140,
];

/// The contents of an IP packet that is neither TCP nor UDP.
pub(super) fn in_ip(protocol: u8, payload: &[u8]) -> Inside<'_> {
    match protocol {
        protocol::IPV4 | protocol::IPV6 => Inside::Ip(payload),
        protocol::GRE => gre(payload),
        protocol::ETHER_IP => Inside::behind(payload.get(2..), ethernet),
        protocol::MPLS => mpls(payload),
        protocol::ESP => Inside::Opaque(Opaque::Named("IPsec ESP")),
        protocol::L2TP => Inside::Opaque(Opaque::Named("L2TP version 3")),
        protocol if WITHOUT_IP.contains(&protocol) => Inside::Other,
        protocol => Inside::Opaque(Opaque::Protocol(protocol)),
    }
}

/// The contents of a GRE packet.
pub(super) fn gre(payload: &[u8]) -> Inside<'_> {
    let Some(&[flags, version, kind_high, kind_low]) = payload.first_chunk() else {
        return Inside::Short;
    };
    if version & 0x07 != 0 {
        return pptp(flags, version, payload);
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
        0x880b => ppp(rest),
        kind => match ethertype(kind, rest) {
            Inside::Other | Inside::Opaque(Opaque::EtherType(_)) => {
                Inside::Opaque(Opaque::Gre(kind))
            }
            inside => inside,
        },
    }
}

/// The PPP frame of PPTP (RFC 2637 section 4.1): GRE version 1 with a key of length and call, and
/// two optional numbers. A packet without a sequence number only acknowledges.
fn pptp(flags: u8, version: u8, payload: &[u8]) -> Inside<'_> {
    const SEQUENCE: u8 = 0x10;
    const ACKNOWLEDGEMENT: u8 = 0x80;
    if flags & SEQUENCE == 0 {
        return Inside::Other;
    }
    let head = if version & ACKNOWLEDGEMENT == 0 {
        12
    } else {
        16
    };
    Inside::behind(payload.get(head..), ppp)
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

    #[test]
    fn protocols_of_ip_are_read_known_or_named() {
        assert_eq!(in_ip(4, IP), Inside::Ip(IP));
        assert_eq!(
            in_ip(97, &[&[0x30, 0], &frame()[..]].concat()),
            Inside::Ip(IP)
        );
        assert_eq!(in_ip(137, &[&[0, 0, 1, 64], IP].concat()), Inside::Ip(IP));
        for known in [1, 2, 58, 89, 132] {
            assert_eq!(in_ip(known, IP), Inside::Other, "{known}");
        }
        for unknown in [0, 7, 99, 108, 143, 253, 255] {
            let expected = Inside::Opaque(Opaque::Protocol(unknown));
            assert_eq!(in_ip(unknown, IP), expected, "{unknown}");
        }
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
        let pptp = [0x30, 0x81, 0x88, 0x0b, 0, 6, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1];
        let compressed = [&pptp[..], &[0xfd, 0x90, 0]].concat();
        assert_eq!(gre(&[&pptp[..], &[0x21], IP].concat()), Inside::Ip(IP));
        assert_eq!(
            gre(&compressed),
            Inside::Opaque(Opaque::Named("compressed or encrypted PPP"))
        );
        assert_eq!(
            gre(&[0x20, 0x81, 0x88, 0x0b, 0, 0, 0, 1, 0, 0, 0, 1]),
            Inside::Other
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
