//! One captured packet, from its IP header on, and its two ends. Fragments and IPv6 extension
//! headers are not read; TCP and QUIC with path MTU discovery do not send them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A captured packet.
#[derive(Debug)]
pub(super) struct Packet {
    /// The kernel's timestamp, in nanoseconds since 1970.
    pub(super) at: u64,
    /// The index of the network device.
    pub(super) device: i32,
    /// Whether the check sent it.
    pub(super) outgoing: bool,
    /// The bytes from the IP header on.
    pub(super) bytes: Vec<u8>,
    /// Its length on the wire.
    pub(super) whole: u32,
    /// A comment for the capture file.
    pub(super) note: Option<String>,
}

/// Both ends of a packet of TCP or UDP, sender first; `None` for anything else.
pub(super) fn ends(packet: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    // TCP and UDP begin with the ports
    let is_read = |protocol: u8| matches!(protocol, 6 | 17);
    let (source, target, ports): (IpAddr, IpAddr, &[u8]) = match packet.first()? >> 4 {
        4 if is_read(*packet.get(9)?) => {
            let address = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
            let head = usize::from(packet[0] & 0x0f) * 4;
            (
                address(12)?.into(),
                address(16)?.into(),
                packet.get(head..)?,
            )
        }
        6 if is_read(*packet.get(6)?) => {
            let address = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?));
            (address(8)?.into(), address(24)?.into(), packet.get(40..)?)
        }
        _ => return None,
    };
    let &[a, b, c, d, ..] = ports else {
        return None;
    };
    let from = SocketAddr::new(source, u16::from_be_bytes([a, b]));
    Some((from, SocketAddr::new(target, u16::from_be_bytes([c, d]))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_ends_of_a_packet_are_read() {
        let mut four = vec![
            0x46, 0, 0, 28, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        four.extend([0; 4]);
        four.extend([0x01, 0xbb, 0x80, 0x00]);
        let both = ends(&four).unwrap();
        assert_eq!(both.0, "10.0.0.1:443".parse().unwrap());
        assert_eq!(both.1, "10.0.0.2:32768".parse().unwrap());
        let mut six = vec![0x60, 0, 0, 0, 0, 4, 6, 64];
        six.extend(Ipv6Addr::LOCALHOST.octets());
        six.extend(Ipv6Addr::LOCALHOST.octets());
        six.extend([0, 80, 0, 81]);
        let both = ends(&six).unwrap();
        assert_eq!(
            both,
            ("[::1]:80".parse().unwrap(), "[::1]:81".parse().unwrap())
        );
        six[6] = 17;
        assert_eq!(ends(&six), Some(both));
        six[6] = 58;
        assert_eq!(ends(&six), None);
    }

    proptest! {
        #[test]
        fn no_packet_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            ends(&bytes);
        }
    }
}
