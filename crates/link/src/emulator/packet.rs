//! Reads what the emulator needs of a packet: its flow, and for TCP the fields to reply with a RST.
//!
//! Frames are those of a packet socket with PACKET_VNET_HDR: a `virtio_net_hdr` (10 bytes),
//! Ethernet, IP. All bytes are foreign input. A packet that cannot be read has no flow and is
//! forwarded unchanged.

use super::FlowDirection;

/// Length of the `virtio_net_hdr` before each frame.
pub(crate) const VNET: usize = 10;
const ETHERNET: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// The ends of a flow as seen from the client side, for packets of both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FlowKey {
    client: (u128, u16),
    server: (u128, u16),
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
    Tcp(Segment),
    Udp,
    Else,
}

/// A TCP segment (RFC 9293 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    flags: u8,
    sequence: u32,
    acknowledged: u32,
    /// Sequence numbers it takes: payload, SYN and FIN.
    length: u32,
}

impl Segment {
    /// Whether it opens a connection.
    pub(crate) fn opens(self) -> bool {
        self.flags & (SYN | ACK | RST) == SYN
    }

    /// Whether it is a reset, which gets no reply.
    pub(crate) fn resets(self) -> bool {
        self.flags & RST != 0
    }
}

/// The network layer's part of a packet.
struct Network<'a> {
    source: u128,
    destination: u128,
    protocol: u8,
    payload: &'a [u8],
    /// Length of the payload by the header: in a captured frame the rest may be cut off or padded.
    length: usize,
}

/// Reads a frame; `None` where it is no IP packet.
pub(crate) fn read(frame: &[u8], direction: FlowDirection) -> Option<Packet> {
    let network = network(frame)?;
    let has_ports = matches!(network.protocol, TCP | UDP);
    let ports = number16(network.payload, 0).zip(number16(network.payload, 2));
    let ports = ports.filter(|_| has_ports).unwrap_or_default();
    let source = (network.source, ports.0);
    let destination = (network.destination, ports.1);
    let (client, server) = match direction {
        FlowDirection::Up => (source, destination),
        FlowDirection::Down => (destination, source),
    };
    let kind = match network.protocol {
        TCP => segment(&network).map_or(Kind::Else, Kind::Tcp),
        UDP => Kind::Udp,
        _ => Kind::Else,
    };
    Some(Packet {
        flow: FlowKey {
            client,
            server,
            protocol: network.protocol,
        },
        kind,
    })
}

fn network(frame: &[u8]) -> Option<Network<'_>> {
    let ip = frame.get(VNET + ETHERNET..)?;
    match number16(frame, VNET + 12)? {
        0x0800 if ip.len() >= 20 && ip[0] >> 4 == 4 => {
            let head = usize::from(ip[0] & 15) * 4;
            let total = usize::from(number16(ip, 2)?);
            // a later fragment has no ports: it is passed on like a protocol without flows
            let later_fragment = number16(ip, 6)? & 0x1fff != 0;
            Some(Network {
                source: u128::from(number32(ip, 12)?),
                destination: u128::from(number32(ip, 16)?),
                protocol: if later_fragment { 255 } else { ip[9] },
                payload: ip.get(head.max(20)..)?,
                length: total.saturating_sub(head),
            })
        }
        0x86dd if ip.len() >= 40 && ip[0] >> 4 == 6 => Some(Network {
            source: u128::from_be_bytes(ip[8..24].try_into().ok()?),
            destination: u128::from_be_bytes(ip[24..40].try_into().ok()?),
            // extension headers are not walked: such packets have no flow that a box would forget
            protocol: ip[6],
            payload: &ip[40..],
            length: usize::from(number16(ip, 4)?),
        }),
        _ => None,
    }
}

fn segment(network: &Network<'_>) -> Option<Segment> {
    let head = usize::from(network.payload.get(12)? >> 4) * 4;
    let flags = *network.payload.get(13)?;
    let payload = network.length.saturating_sub(head.max(20));
    Some(Segment {
        flags,
        sequence: number32(network.payload, 4)?,
        acknowledged: number32(network.payload, 8)?,
        length: payload as u32 + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0),
    })
}

/// The RST in reply to a segment of an unknown connection (RFC 9293 section 3.5.2, group 1). It is
/// a whole frame with `virtio_net_hdr`, from the other end to the sender. `None` if the packet is
/// no TCP segment or is a RST.
pub(crate) fn reset(frame: &[u8]) -> Option<Vec<u8>> {
    let network = network(frame)?;
    if network.protocol != TCP {
        return None;
    }
    let segment = segment(&network)?;
    if segment.resets() {
        return None;
    }
    let (flags, sequence, acknowledged) = if segment.flags & ACK != 0 {
        (RST, segment.acknowledged, 0)
    } else {
        (RST | ACK, 0, segment.sequence.wrapping_add(segment.length))
    };
    let mut tcp = [0; 20];
    tcp[0..2].copy_from_slice(network.payload.get(2..4)?);
    tcp[2..4].copy_from_slice(network.payload.get(0..2)?);
    tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
    tcp[8..12].copy_from_slice(&acknowledged.to_be_bytes());
    tcp[12] = 5 << 4;
    tcp[13] = flags;
    let mut answer = vec![0; VNET];
    answer.extend_from_slice(frame.get(VNET + 6..VNET + 12)?);
    answer.extend_from_slice(frame.get(VNET..VNET + 6)?);
    answer.extend_from_slice(frame.get(VNET + 12..VNET + 14)?);
    let addresses = if number16(frame, VNET + 12)? == 0x0800 {
        let (source, destination) = (network.source as u32, network.destination as u32);
        let mut ip = [0; 20];
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&40u16.to_be_bytes());
        ip[8] = 64;
        ip[9] = TCP;
        ip[12..16].copy_from_slice(&destination.to_be_bytes());
        ip[16..20].copy_from_slice(&source.to_be_bytes());
        let sum = checksum(&[&ip]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        answer.extend_from_slice(&ip);
        ip[12..20].to_vec()
    } else {
        let mut ip = [0; 40];
        ip[0] = 0x60;
        ip[4..6].copy_from_slice(&20u16.to_be_bytes());
        ip[6] = TCP;
        ip[7] = 64;
        ip[8..24].copy_from_slice(&network.destination.to_be_bytes());
        ip[24..40].copy_from_slice(&network.source.to_be_bytes());
        answer.extend_from_slice(&ip);
        ip[8..40].to_vec()
    };
    let sum = checksum(&[&addresses, &[0, TCP, 0, 20], &tcp]);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    answer.extend_from_slice(&tcp);
    Some(answer)
}

/// The Internet checksum (RFC 1071) over parts of even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum: u32 = 0;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn number16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
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

    pub(in crate::emulator) const SYN: u8 = super::SYN;
    pub(in crate::emulator) const ACK: u8 = super::ACK;
}

#[cfg(test)]
mod tests {
    use super::samples::tcp;
    use super::*;
    use proptest::prelude::*;

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
        let (Kind::Tcp(up), Kind::Tcp(down)) = (up.kind, down.kind) else {
            panic!("TCP");
        };
        assert!(up.opens() && !down.opens());
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
        let Kind::Tcp(segment) = read.kind else {
            panic!("TCP")
        };
        assert!(segment.resets());
        assert_eq!(
            segment.sequence, 7000,
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
        let Kind::Tcp(segment) = read(&answer, FlowDirection::Down).unwrap().kind else {
            panic!("TCP")
        };
        assert_eq!((segment.flags, segment.acknowledged), (RST | ACK, 1011));
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
