//! Reads what the emulator needs of a packet: its flow, and for TCP the fields to reply with a RST.
//!
//! Frames are those of a packet socket with PACKET_VNET_HDR: a `virtio_net_hdr` (10 bytes),
//! Ethernet, IP. All bytes are foreign input. A packet that cannot be read has no flow and is
//! forwarded unchanged.

use super::FlowDirection;
use etherparse::{LaxNetSlice, LaxSlicedPacket, LinkSlice, PacketBuilder, TransportSlice};
use std::net::IpAddr;

/// Length of the `virtio_net_hdr` before each frame.
pub(crate) const VNET: usize = 10;
/// Hops that a reply may take.
const HOPS: u8 = 64;
/// Stands for the protocol of a fragment: it has no ports, and is passed on like a protocol without
/// flows.
const FRAGMENT: u8 = 255;

/// The ends of a flow as seen from the client side, for packets of both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FlowKey {
    client: (IpAddr, u16),
    server: (IpAddr, u16),
    protocol: u8,
}

/// The parsed fields of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) flow: FlowKey,
    pub(crate) kind: Kind,
}

/// The protocols that a middle box keeps flows for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A segment, and whether it opens a connection.
    Tcp {
        opens: bool,
    },
    Udp,
    Else,
}

/// Reads a frame; `None` where it is no IP packet.
pub(crate) fn read(frame: &[u8], direction: FlowDirection) -> Option<Packet> {
    let packet = LaxSlicedPacket::from_ethernet(frame.get(VNET..)?).ok()?;
    let network = packet.net.as_ref()?;
    let (source, destination): (IpAddr, IpAddr) = match network {
        LaxNetSlice::Ipv4(ip) => (
            ip.header().source_addr().into(),
            ip.header().destination_addr().into(),
        ),
        LaxNetSlice::Ipv6(ip) => (
            ip.header().source_addr().into(),
            ip.header().destination_addr().into(),
        ),
        LaxNetSlice::Arp(_) => return None,
    };
    let (from, to, kind) = match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            let opens = tcp.syn() && !tcp.ack() && !tcp.rst();
            (
                tcp.source_port(),
                tcp.destination_port(),
                Kind::Tcp { opens },
            )
        }
        Some(TransportSlice::Udp(udp)) => (udp.source_port(), udp.destination_port(), Kind::Udp),
        _ => (0, 0, Kind::Else),
    };
    let (source, destination) = ((source, from), (destination, to));
    let (client, server) = match direction {
        FlowDirection::Up => (source, destination),
        FlowDirection::Down => (destination, source),
    };
    let payload = network.ip_payload_ref()?;
    let protocol = match payload.fragmented {
        true => FRAGMENT,
        false => payload.ip_number.0,
    };
    let flow = FlowKey {
        client,
        server,
        protocol,
    };
    Some(Packet { flow, kind })
}

/// The RST in reply to a segment of an unknown connection (RFC 9293 section 3.5.2, group 1). It is
/// a whole frame with `virtio_net_hdr`, from the other end to the sender. `None` if the packet is
/// no TCP segment or is a RST.
pub(crate) fn reset(frame: &[u8]) -> Option<Vec<u8>> {
    let packet = LaxSlicedPacket::from_ethernet(frame.get(VNET..)?).ok()?;
    let (Some(LinkSlice::Ethernet2(link)), Some(TransportSlice::Tcp(tcp))) =
        (&packet.link, &packet.transport)
    else {
        return None;
    };
    if tcp.rst() {
        return None;
    }
    let back = PacketBuilder::ethernet2(link.destination(), link.source());
    let back = match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => back.ipv4(ip.header().destination(), ip.header().source(), HOPS),
        LaxNetSlice::Ipv6(ip) => back.ipv6(ip.header().destination(), ip.header().source(), HOPS),
        LaxNetSlice::Arp(_) => return None,
    };
    let (from, to) = (tcp.destination_port(), tcp.source_port());
    let back = if tcp.ack() {
        back.tcp(from, to, tcp.acknowledgment_number(), 0)
    } else {
        // its payload, SYN and FIN take sequence numbers
        let length = tcp.payload().len() as u32 + u32::from(tcp.syn()) + u32::from(tcp.fin());
        let next = tcp.sequence_number().wrapping_add(length);
        back.tcp(from, to, 0, 0).ack(next)
    };
    let mut answer = vec![0; VNET];
    back.rst().write(&mut answer, &[]).ok()?;
    Some(answer)
}

#[cfg(test)]
pub(super) mod samples {
    use super::*;

    /// A TCP segment over IPv4 from 198.18.0.1:`port` to 198.18.0.2:80, or back when it travels
    /// down.
    pub(in crate::emulator) fn tcp(
        direction: FlowDirection,
        port: u16,
        flags: u8,
        payload: usize,
    ) -> Vec<u8> {
        let (client, server) = ([198, 18, 0, 1], [198, 18, 0, 2]);
        let (source, destination, ports) = match direction {
            FlowDirection::Up => (client, server, (port, 80u16)),
            FlowDirection::Down => (server, client, (80, port)),
        };
        let mut frame = vec![0; VNET + 12];
        frame.extend_from_slice(&0x0800u16.to_be_bytes());
        frame.extend_from_slice(&[0x45, 0]);
        frame.extend_from_slice(&(40 + payload as u16).to_be_bytes());
        frame.extend_from_slice(&[0, 0, 0, 0, 64, TCP, 0, 0]);
        frame.extend_from_slice(&source);
        frame.extend_from_slice(&destination);
        frame.extend_from_slice(&ports.0.to_be_bytes());
        frame.extend_from_slice(&ports.1.to_be_bytes());
        frame.extend_from_slice(&1000u32.to_be_bytes());
        frame.extend_from_slice(&7000u32.to_be_bytes());
        frame.extend_from_slice(&[5 << 4, flags, 0, 0, 0, 0, 0, 0]);
        frame.resize(frame.len() + payload, b'x');
        frame
    }

    pub(super) const TCP: u8 = 6;
    pub(in crate::emulator) const SYN: u8 = 2;
    pub(in crate::emulator) const ACK: u8 = 16;
}

#[cfg(test)]
mod tests {
    use super::samples::{ACK, SYN, TCP, tcp};
    use super::*;
    use etherparse::TcpSlice;
    use proptest::prelude::*;

    const FIN: u8 = 1;
    const ETHERNET: usize = 14;

    /// The Internet checksum (RFC 1071) over parts of even length.
    fn checksum(parts: &[&[u8]]) -> u16 {
        let pairs = parts.iter().flat_map(|part| part.chunks(2));
        let mut sum: u32 = pairs
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    fn segment(frame: &[u8]) -> TcpSlice<'_> {
        TcpSlice::from_slice(&frame[VNET + ETHERNET + 20..]).unwrap()
    }

    #[test]
    fn both_directions_of_a_connection_are_one_flow() {
        let up = read(&tcp(FlowDirection::Up, 5000, SYN, 0), FlowDirection::Up).unwrap();
        let down = read(
            &tcp(FlowDirection::Down, 5000, SYN | ACK, 0),
            FlowDirection::Down,
        )
        .unwrap();
        assert_eq!(up.flow, down.flow);
        let other = read(&tcp(FlowDirection::Up, 5001, SYN, 0), FlowDirection::Up).unwrap();
        assert_ne!(up.flow, other.flow);
        assert_eq!(up.kind, Kind::Tcp { opens: true });
        assert_eq!(down.kind, Kind::Tcp { opens: false });
    }

    #[test]
    fn a_reset_goes_back_with_the_number_that_the_sender_expects() {
        let sent = tcp(FlowDirection::Up, 5000, ACK, 100);
        let answer = reset(&sent).unwrap();
        let read = read(&answer, FlowDirection::Down).unwrap();
        assert_eq!(
            read.flow,
            super::read(&sent, FlowDirection::Up).unwrap().flow
        );
        assert_eq!(read.kind, Kind::Tcp { opens: false });
        let segment = segment(&answer);
        assert!(segment.rst());
        assert_eq!(
            segment.sequence_number(),
            7000,
            "the acknowledgement of what was sent"
        );
        let ip = &answer[VNET + ETHERNET..];
        assert_eq!(checksum(&[&ip[..20]]), 0, "a right header sums up to zero");
        let pseudo = [&ip[12..20], &[0, TCP, 0, 20][..], &ip[20..40]];
        assert_eq!(checksum(&pseudo), 0, "a right segment sums up to zero");
        assert_eq!(reset(&answer), None, "a reset is not answered");
    }

    #[test]
    fn a_segment_without_ack_is_reset_by_acknowledging_it() {
        let answer = reset(&tcp(FlowDirection::Up, 5000, FIN, 10)).unwrap();
        let segment = segment(&answer);
        let others = segment.syn() || segment.fin() || segment.psh() || segment.urg();
        assert!(segment.rst() && segment.ack() && !others);
        assert_eq!(segment.acknowledgment_number(), 1011);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(start in proptest::collection::vec(any::<u8>(), 0..80), as_v6: bool, cut in 0usize..120) {
            let mut frame = tcp(FlowDirection::Up, 1, ACK, 40);
            if as_v6 {
                frame[VNET + 12..VNET + 14].copy_from_slice(&0x86ddu16.to_be_bytes());
                frame[VNET + ETHERNET] = 0x60;
            }
            let from = VNET + ETHERNET + 1;
            for (at, byte) in start.iter().enumerate() {
                if let Some(place) = frame.get_mut(from + at) {
                    *place = *byte;
                }
            }
            frame.truncate(cut);
            for bytes in [&frame, &start] {
                let _ = read(bytes, FlowDirection::Up);
                if let Some(answer) = reset(bytes) {
                    prop_assert!(read(&answer, FlowDirection::Down).is_some());
                }
            }
        }
    }
}
