//! Packets that cannot be decoded, counted by reason. Must not guess their contents.

use std::collections::BTreeMap;
use std::fmt;

/// Number of reasons that are named.
const NAMED: usize = 6;

/// Why the contents of a packet cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Opaque {
    /// An unknown link type, as tcpdump numbers them.
    Link(u32),
    /// An unknown EtherType.
    EtherType(u16),
    /// An unknown protocol of IP, by its number.
    Protocol(u8),
    /// An unknown protocol within GRE, by its EtherType.
    Gre(u16),
    /// An unknown protocol within PPP.
    Ppp(u16),
    /// A UDP port, by the smaller one of a datagram.
    UdpPort(u16),
    /// An encapsulation with this name.
    Named(&'static str),
    /// The packet was cut off within its headers.
    Cut,
}

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Opaque::Link(link) => match link_name(*link) {
                Some(name) => write!(f, "unknown link type {link} ({name})"),
                None => write!(f, "unknown link type {link}"),
            },
            Opaque::EtherType(kind) => write!(f, "EtherType 0x{kind:04x}"),
            Opaque::Protocol(number) => write!(f, "IP protocol {number}"),
            Opaque::Gre(kind) => write!(f, "GRE with protocol 0x{kind:04x}"),
            Opaque::Ppp(protocol) => write!(f, "PPP with protocol 0x{protocol:04x}"),
            Opaque::UdpPort(port) => write!(f, "UDP port {port}"),
            Opaque::Named(name) => f.write_str(name),
            Opaque::Cut => f.write_str("packets cut off within their headers"),
        }
    }
}

/// Name of a link type that captures commonly have.
fn link_name(link: u32) -> Option<&'static str> {
    Some(match link {
        6 => "Token Ring",
        8 => "SLIP",
        10 => "FDDI",
        104 => "Cisco HDLC",
        107 => "Frame Relay",
        117 => "pflog",
        119 => "Prism 802.11",
        163 => "AVS 802.11",
        187 | 201 => "Bluetooth HCI",
        189 | 220 => "USB",
        192 => "PPI",
        195 | 230 => "802.15.4",
        227 => "CAN",
        253 => "netlink",
        258 => "pktap",
        147..=162 => "private use",
        _ => return None,
    })
}

/// Number of packets that cannot be decoded, by reason.
#[derive(Clone, Debug, Default)]
pub struct OpaquePackets(BTreeMap<Opaque, u64>);

impl OpaquePackets {
    pub(super) fn add(&mut self, what: Opaque) {
        *self.0.entry(what).or_default() += 1;
    }

    /// Number of packets over all reasons.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Reasons with their counts, the most frequent first; `None` if there are no such packets.
    pub fn words(&self) -> Option<String> {
        let mut kinds: Vec<_> = self.0.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let mut words: Vec<String> = kinds
            .iter()
            .take(NAMED)
            .map(|(what, count)| format!("{what}: {count}"))
            .collect();
        let rest: u64 = kinds.iter().skip(NAMED).map(|(_, count)| **count).sum();
        if rest > 0 {
            words.push(format!("others: {rest}"));
        }
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// How to record a readable capture.
    pub fn remedy(&self) -> &'static str {
        match self.0.iter().max_by_key(|(_, count)| **count) {
            Some((Opaque::Link(_), _)) => {
                "capture on one interface of Ethernet or of the loopback, e.g. `tcpdump -i eth0`"
            }
            Some((Opaque::Cut, _)) => "record whole packets with `tcpdump -s 0`",
            _ => "capture where the packets are not encapsulated, or in front of the tunnel",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_reason_comes_first_and_gives_the_remedy() {
        let mut packets = OpaquePackets::default();
        assert_eq!((packets.words(), packets.total()), (None, 0));
        packets.add(Opaque::Link(220));
        packets.add(Opaque::Gre(0x880b));
        packets.add(Opaque::Cut);
        packets.add(Opaque::Cut);
        let words = packets.words().unwrap();
        assert_eq!(
            words,
            "packets cut off within their headers: 2, unknown link type 220 (USB): 1, GRE with protocol 0x880b: 1"
        );
        assert_eq!(packets.total(), 4);
        assert!(packets.remedy().contains("-s 0"));
    }
}
