//! EtherTypes: tags and encapsulations between a link header and an IP packet, LLC, MPLS and NSH.
//!
//! What is not read is [`Opaque`], with its EtherType, unless it is known to carry no IP packets.
//! Verifies nothing and allocates nothing.

use super::link::{Inside, ethernet};
use super::opaque::Opaque;
use super::ppp::ppp;

/// EtherTypes.
mod kind {
    pub(super) const IPV4: u16 = 0x0800;
    pub(super) const IPV6: u16 = 0x86dd;
    pub(super) const TRILL: u16 = 0x22f3;
    /// EtherType of a frame within GRE or GENEVE (transparent Ethernet bridging).
    pub(super) const BRIDGED: u16 = 0x6558;
    pub(super) const VLAN: u16 = 0x8100;
    pub(super) const MPLS: u16 = 0x8847;
    pub(super) const MPLS_MULTICAST: u16 = 0x8848;
    pub(super) const PPPOE: u16 = 0x8864;
    /// Frames of more than 1500 bytes with an LLC header.
    pub(super) const JUMBO_LLC: u16 = 0x8870;
    pub(super) const PROVIDER: u16 = 0x88a8;
    pub(super) const MACSEC: u16 = 0x88e5;
    pub(super) const PBB: u16 = 0x88e7;
    pub(super) const FABRIC_PATH: u16 = 0x8903;
    /// Cisco MetaData: security group tags.
    pub(super) const CISCO_METADATA: u16 = 0x8909;
    /// Cisco's tag of a virtual interface.
    pub(super) const VN_TAG: u16 = 0x8926;
    /// High-availability seamless redundancy (IEC 62439-3).
    pub(super) const HSR: u16 = 0x892f;
    /// The tag of IEEE 802.1BR.
    pub(super) const E_TAG: u16 = 0x893f;
    pub(super) const NSH: u16 = 0x894f;
    pub(super) const QINQ: [u16; 3] = [0x9100, 0x9200, 0x9300];
}

/// Least EtherType; below it, the field is the length of an LLC frame (IEEE 802.3 section 3.2.6).
const LEAST: u16 = 0x0600;

/// Protocols that carry no IP packets: of the link, of the network's devices, of industrial buses.
const WITHOUT_IP: [u16; 52] = [
    0x0806, // ARP
    0x0808, // frame relay ARP
    0x0842, // wake on LAN
    0x2000, // CDP
    0x2001, // CGMP
    0x2003, // VTP
    0x2004, // DTP
    0x22ea, // stream reservation
    0x22f0, // audio and video
    0x22f4, // IS-IS of TRILL
    0x6002, // DECnet
    0x6003, 0x6004, // LAT
    0x6007, 0x8035, // RARP
    0x809b, // AppleTalk
    0x80f3, // AppleTalk ARP
    0x8137, // IPX
    0x8204, // QNX
    0x8808, // flow control
    0x8809, // LACP and other slow protocols
    0x8819, 0x885a, 0x8863, // PPPoE discovery
    0x886c, // HomePNA
    0x886d, 0x886f, // load balancing of Windows
    0x8874, 0x887b, // HomePlug
    0x8888, 0x888e, // 802.1X
    0x8892, // PROFINET
    0x8899, // Realtek's loop detection
    0x88a2, // ATA over Ethernet
    0x88a4, // EtherCAT
    0x88ab, // Powerlink
    0x88b8, 0x88b9, 0x88ba, // IEC 61850
    0x88ca, // TIPC
    0x88cc, // LLDP
    0x88cd, // SERCOS III
    0x88e1, // HomePlug AV
    0x88e3, // MRP
    0x88f5, 0x88f6, // MVRP, MMRP
    0x88f7, // PTP
    0x88fb, // PRP
    0x8902, // CFM
    0x8906, // FCoE
    0x8914, // FIP
    0x9000, // loopback
];

/// The contents behind an EtherType.
pub(super) fn ethertype(mut kind: u16, mut rest: &[u8]) -> Inside<'_> {
    loop {
        let tag = match kind {
            kind::IPV4 | kind::IPV6 => return Inside::Ip(rest),
            kind::VLAN | kind::PROVIDER => 2,
            other if kind::QINQ.contains(&other) => 2,
            kind::VN_TAG | kind::HSR => 4,
            kind::E_TAG => 6,
            // version 1, one option: the tag of a security group
            kind::CISCO_METADATA if rest.starts_with(&[1, 1]) => 6,
            kind::MACSEC => match macsec(rest) {
                Ok(tag) => tag,
                Err(inside) => return inside,
            },
            kind::PPPOE => return Inside::behind(rest.get(6..), ppp),
            kind::MPLS | kind::MPLS_MULTICAST => return mpls(rest),
            kind::BRIDGED => return ethernet(rest),
            kind::NSH => return nsh(rest),
            kind::TRILL => return trill(rest),
            // the service, then the frame of the customer
            kind::PBB => return Inside::behind(rest.get(4..), ethernet),
            kind::FABRIC_PATH => return Inside::behind(rest.get(2..), ethernet),
            kind::JUMBO_LLC => return llc(rest),
            kind if kind < LEAST => return llc(rest),
            kind if WITHOUT_IP.contains(&kind) => return Inside::Other,
            kind => return Inside::Opaque(Opaque::EtherType(kind)),
        };
        let next = rest.get(tag..).and_then(|rest| rest.split_first_chunk());
        let Some((next, behind)) = next else {
            return Inside::Short;
        };
        (kind, rest) = (u16::from_be_bytes(*next), behind);
    }
}

/// The contents of an LLC frame (IEEE 802.2), perhaps with SNAP (RFC 1042).
pub(super) fn llc(frame: &[u8]) -> Inside<'_> {
    match frame {
        // a header of IPX without LLC
        [0xff, 0xff, ..] => Inside::Other,
        // the organisation is zero, or that of bridge tunnels: an EtherType follows
        [0xaa, 0xaa, 0x03, 0, 0, 0 | 0xf8, high, low, rest @ ..] => {
            ethertype(u16::from_be_bytes([*high, *low]), rest)
        }
        // another organisation: Cisco's own protocols, AppleTalk
        [0xaa, 0xaa, _, _, _, _, ..] => Inside::Other,
        [0x06, 0x06, 0x03, rest @ ..] => Inside::Ip(rest),
        [_, _, _, ..] => Inside::Other,
        _ => Inside::Short,
    }
}

/// The length of a security tag (IEEE 802.1AE) whose contents are not encrypted.
fn macsec(rest: &[u8]) -> Result<usize, Inside<'_>> {
    const ENCRYPTED: u8 = 0x08;
    const CHANGED: u8 = 0x04;
    const WITH_CHANNEL: u8 = 0x20;
    let Some(&control) = rest.first() else {
        return Err(Inside::Short);
    };
    if control & (ENCRYPTED | CHANGED) != 0 {
        return Err(Inside::Opaque(Opaque::Named("encrypted MACsec")));
    }
    Ok(if control & WITH_CHANNEL == 0 { 6 } else { 14 })
}

/// Contents after MPLS labels (RFC 3032). No field gives the type, so it is IP if it starts like
/// IP, and a frame behind the control word of a pseudowire (RFC 4448).
pub(super) fn mpls(mut rest: &[u8]) -> Inside<'_> {
    const PSEUDOWIRE: Inside<'_> = Inside::Opaque(Opaque::Named("an MPLS pseudowire"));
    loop {
        let Some(&[_, _, bottom, _]) = rest.first_chunk() else {
            return Inside::Short;
        };
        rest = &rest[4..];
        if bottom & 1 == 0 {
            continue;
        }
        return match rest.first().map(|first| first >> 4) {
            Some(4 | 6) => Inside::Ip(rest),
            Some(0) => match Inside::behind(rest.get(4..), ethernet) {
                inside @ (Inside::Ip(_) | Inside::Short) => inside,
                _ => PSEUDOWIRE,
            },
            Some(_) => PSEUDOWIRE,
            None => Inside::Short,
        };
    }
}

/// The contents behind a header of NSH (RFC 8300).
pub(super) fn nsh(rest: &[u8]) -> Inside<'_> {
    let Some(&[_, len, _, next]) = rest.first_chunk() else {
        return Inside::Short;
    };
    let words = usize::from(len & 0x3f);
    Inside::behind(rest.get(words.max(1) * 4..), |rest| {
        next_protocol(next, rest)
    })
}

/// The contents behind the protocol number that NSH and VXLAN-GPE share.
pub(super) fn next_protocol(next: u8, rest: &[u8]) -> Inside<'_> {
    match next {
        1 | 2 => Inside::Ip(rest),
        3 => ethernet(rest),
        4 => nsh(rest),
        5 => mpls(rest),
        _ => Inside::Opaque(Opaque::Named("NSH with an unknown protocol")),
    }
}

/// The frame behind a header of TRILL (RFC 6325) and its options.
fn trill(rest: &[u8]) -> Inside<'_> {
    let Some(&[high, low]) = rest.first_chunk() else {
        return Inside::Short;
    };
    let options = usize::from((u16::from_be_bytes([high, low]) >> 6) & 0x1f) * 4;
    Inside::behind(rest.get(6 + options..), ethernet)
}
