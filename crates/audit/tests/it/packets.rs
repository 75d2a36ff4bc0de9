//! Captures built byte by byte: packets of TCP and UDP, connections with sequence numbers, pcap
//! files.

/// Link types, as tcpdump numbers them.
pub(crate) const ETHERNET: u32 = 1;
pub(crate) const RAW: u32 = 101;

pub(crate) const SYN: u8 = 0x02;
pub(crate) const FIN: u8 = 0x01;
pub(crate) const RST: u8 = 0x04;
pub(crate) const ACK: u8 = 0x10;

/// A pcap capture. A millisecond passes between packets, plus the time of `pass`.
pub(crate) struct Capture {
    bytes: Vec<u8>,
    at_us: u64,
}

impl Capture {
    pub(crate) fn new(link: u32) -> Capture {
        let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(262_144_u32.to_le_bytes());
        bytes.extend(link.to_le_bytes());
        Capture {
            bytes,
            at_us: 1_795_248_000_000_000,
        }
    }

    /// A capture of these IP packets, each inside the frame that `wrap` builds.
    pub(crate) fn of(link: u32, packets: &[Vec<u8>], wrap: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let mut capture = Capture::new(link);
        for packet in packets {
            capture.add(&wrap(packet));
        }
        capture.bytes
    }

    /// A capture of the first `kept` bytes of each of these IP packets.
    pub(crate) fn cut(packets: &[Vec<u8>], kept: usize) -> Vec<u8> {
        let mut capture = Capture::new(RAW);
        for packet in packets {
            capture.add_cut(packet, kept);
        }
        capture.bytes
    }

    /// Lets this number of microseconds pass before the next packet.
    pub(crate) fn pass(&mut self, us: u64) {
        self.at_us += us;
    }

    /// Gives the next packet the time of the one with this place, from 1.
    pub(crate) fn seek(&mut self, place: u64) {
        self.at_us = 1_795_248_000_000_000 + 1000 * (place - 1);
    }

    /// Goes back to the time before the last `packets` packets.
    pub(crate) fn rewind(&mut self, packets: usize) {
        self.at_us -= 1000 * packets as u64;
    }

    pub(crate) fn add(&mut self, frame: &[u8]) {
        self.add_cut(frame, frame.len());
    }

    fn add_cut(&mut self, frame: &[u8], kept: usize) {
        self.at_us += 1000;
        let kept = &frame[..kept.min(frame.len())];
        let (seconds, micros) = (self.at_us / 1_000_000, self.at_us % 1_000_000);
        for word in [
            seconds as u32,
            micros as u32,
            kept.len() as u32,
            frame.len() as u32,
        ] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend(kept);
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// A pcap file with the first `kept` bytes of each packet of `file`.
pub(crate) fn cut_file(file: &[u8], kept: usize) -> Vec<u8> {
    let (head, mut rest) = file.split_at(24);
    let mut cut = head.to_vec();
    while let Some(len) = rest.get(8..12) {
        let len = u32::from_le_bytes(len.try_into().unwrap()) as usize;
        let kept = len.min(kept);
        cut.extend(&rest[..8]);
        cut.extend((kept as u32).to_le_bytes());
        cut.extend(&rest[12..16 + kept]);
        rest = &rest[16 + len..];
    }
    cut
}

/// A pcapng file with the frames of `file` for which `keeps` returns true.
pub(crate) fn filter_pcapng(file: &[u8], keeps: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut rest = file;
    let mut kept = Vec::new();
    while let Some(head) = rest.first_chunk::<8>() {
        let word = |at: usize| u32::from_le_bytes(*head[at..].first_chunk().unwrap());
        let (block, behind) = rest.split_at(word(4) as usize);
        // an enhanced packet block has 28 bytes before the frame
        if word(0) != 6 || keeps(&block[28..]) {
            kept.extend(block);
        }
        rest = behind;
    }
    kept
}

/// The same packet with `address` in place of 192.0.2.`host`.
pub(crate) fn readdressed(packet: &[u8], host: u8, address: [u8; 4]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    for at in [12, 16] {
        if packet[at..at + 4] == [192, 0, 2, host] {
            packet[at..at + 4].copy_from_slice(&address);
        }
    }
    packet
}

/// The packet without a frame.
pub(crate) fn plain(packet: &[u8]) -> Vec<u8> {
    packet.to_vec()
}

/// An IPv4 packet between 192.0.2.`from` and 192.0.2.`to`.
pub(crate) fn ip(protocol: u8, from: u8, to: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet.extend([192, 0, 2, from, 192, 0, 2, to]);
    packet.extend(payload);
    let len = u16::try_from(packet.len()).unwrap();
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet
}

/// A UDP datagram in IPv4.
pub(crate) fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    for word in [from, to, u16::try_from(payload.len()).unwrap() + 8, 0] {
        datagram.extend(word.to_be_bytes());
    }
    datagram.extend(payload);
    ip(17, 1, 2, &datagram)
}

/// An Ethernet frame of this EtherType.
pub(crate) fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 12], &kind.to_be_bytes()[..], payload].concat()
}

/// One end of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

/// Builds the packets of one TCP connection, in order.
pub(crate) struct Tcp {
    port: u16,
    server_port: u16,
    /// The next sequence numbers of the client and the server.
    next: [u32; 2],
    pub(crate) packets: Vec<(End, Vec<u8>)>,
}

impl Tcp {
    /// A connection from this port to port 80, after its handshake.
    pub(crate) fn opened(port: u16) -> Tcp {
        let mut tcp = Tcp::joined(port);
        tcp.send(End::Client, SYN, b"");
        tcp.send(End::Server, SYN | ACK, b"");
        tcp.send(End::Client, ACK, b"");
        tcp
    }

    /// A connection whose handshake came before the capture.
    pub(crate) fn joined(port: u16) -> Tcp {
        Tcp {
            port,
            server_port: 80,
            next: [1000, 500_000],
            packets: Vec::new(),
        }
    }

    /// Continues with another sequence number of the client.
    pub(crate) fn skip_to(&mut self, client: u32) {
        self.next[0] = client;
    }

    /// Changes the port of the server.
    pub(crate) fn to(mut self, server_port: u16) -> Tcp {
        self.server_port = server_port;
        for (end, packet) in &mut self.packets {
            // after 20 bytes of IP
            let at = if *end == End::Client { 22 } else { 20 };
            packet[at..at + 2].copy_from_slice(&server_port.to_be_bytes());
        }
        self
    }

    /// Sends data.
    pub(crate) fn say(mut self, end: End, payload: &[u8]) -> Tcp {
        self.send(end, ACK, payload);
        self
    }

    /// Sends a request and its response, each acknowledged by the next packet.
    pub(crate) fn exchange(self, path: &str) -> Tcp {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n");
        self.say(End::Client, request.as_bytes())
            .say(
                End::Server,
                b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            )
            .say(End::Client, b"")
    }

    /// Closes the connection, the client first.
    pub(crate) fn close(mut self) -> Tcp {
        self.send(End::Client, FIN | ACK, b"");
        self.send(End::Server, FIN | ACK, b"");
        self.send(End::Client, ACK, b"");
        self
    }

    /// The packets of both ends.
    pub(crate) fn all(&self) -> Vec<Vec<u8>> {
        self.packets
            .iter()
            .map(|(_, packet)| packet.clone())
            .collect()
    }

    /// The packets of one end.
    pub(crate) fn only(&self, wanted: End) -> Vec<Vec<u8>> {
        let of_end = self.packets.iter().filter(|(end, _)| *end == wanted);
        of_end.map(|(_, packet)| packet.clone()).collect()
    }

    /// All packets except those whose payload contains `text`.
    pub(crate) fn without(&self, text: &str) -> Vec<Vec<u8>> {
        let mut packets = self.all();
        let found = |packet: &Vec<u8>| {
            packet
                .windows(text.len())
                .any(|window| window == text.as_bytes())
        };
        packets.retain(|packet| !found(packet));
        packets
    }

    /// Sends a packet with these flags.
    pub(crate) fn send(&mut self, end: End, flags: u8, payload: &[u8]) {
        let (this, other) = match end {
            End::Client => (0, 1),
            End::Server => (1, 0),
        };
        let (from, to) = match end {
            End::Client => (self.port, self.server_port),
            End::Server => (self.server_port, self.port),
        };
        let mut segment = Vec::new();
        segment.extend(from.to_be_bytes());
        segment.extend(to.to_be_bytes());
        segment.extend(self.next[this].to_be_bytes());
        let ack = if flags & ACK != 0 {
            self.next[other]
        } else {
            0
        };
        segment.extend(ack.to_be_bytes());
        segment.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        segment.extend(payload);
        let control = u32::from(flags & (SYN | FIN) != 0);
        self.next[this] += payload.len() as u32 + control;
        let (from, to) = match end {
            End::Client => (1, 2),
            End::Server => (2, 1),
        };
        self.packets.push((end, ip(6, from, to, &segment)));
    }
}
