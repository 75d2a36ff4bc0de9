//! Packet sockets (packet(7)). A socket opens without a protocol, so that options, a filter or a
//! ring are set before the first packet. Then it listens. This module does not interpret packets.

mod block_ring;
mod port_filter;
mod ring;
mod tcp_filter;

pub use block_ring::{BlockPacket, BlockRing};
pub use port_filter::{PortProtocol, port_filter};
pub use ring::{BATCH, MOST_FRAMES, PacketRing, RingFrame, VIRTIO_NET_HEADER};
pub use tcp_filter::tcp_filter;

use crate::bpf::Instruction;
use crate::{checked, socket_option, timestamps};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use socket2::{SockFilter, SockRef};
use std::io;

/// The first header of each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstHeader {
    /// The link's, such as Ethernet's.
    Link,
    /// The network's, such as IP's.
    Network,
}

/// A received packet, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its bytes in the buffer.
    pub len: usize,
    /// Its bytes on the wire: more than `len` if the buffer was too short.
    pub wire_len: usize,
    /// When the kernel received it, in nanoseconds of CLOCK_REALTIME; `None` unless timestamps are
    /// enabled.
    pub at: Option<u64>,
    /// The index of its device.
    pub device: i32,
    /// Whether its device is a loopback device, which passes each packet out and in.
    pub is_loopback: bool,
    /// Whether this machine sends it.
    pub is_outgoing: bool,
}

/// A packet socket, non-blocking and closed on exec.
#[derive(Debug)]
pub struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Opens a socket that receives nothing yet.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] without CAP_NET_RAW.
    pub fn open(first: FirstHeader) -> io::Result<PacketSocket> {
        let kind = match first {
            FirstHeader::Link => SocketType::RAW,
            FirstHeader::Network => SocketType::DGRAM,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // without a protocol, it receives nothing
        let socket = socket_with(AddressFamily::PACKET, kind, flags, None)?;
        Ok(PacketSocket(socket))
    }

    /// Sets the size of the kernel's buffer in bytes; only root gets more than `net.core.rmem_max`.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn set_buffer_size(&self, bytes: i32) -> io::Result<()> {
        let set = |name| socket_option::set(self, libc::SOL_SOCKET, name, &bytes);
        set(libc::SO_RCVBUFFORCE).or_else(|_| set(libc::SO_RCVBUF))
    }

    /// Makes the kernel record when it receives a packet.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn enable_timestamps(&self) -> io::Result<()> {
        socket_option::set(self, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)
    }

    /// Attaches a filter, whose value for a packet is the number of bytes to keep: 0 drops the
    /// packet.
    ///
    /// # Errors
    /// Those of setsockopt(2): the kernel rejects the program.
    pub fn attach_filter(&self, code: &[Instruction]) -> io::Result<()> {
        let step = |step: &Instruction| SockFilter::new(step.code, step.jt, step.jf, step.k);
        let code: Vec<SockFilter> = code.iter().map(step).collect();
        SockRef::from(self).attach_filter(&code)
    }

    /// Receives packets of all protocols from now on. They are those of the device with this index
    /// in the calling thread's network namespace, or of all devices of the socket's namespace.
    ///
    /// # Errors
    /// Those of bind(2): there is no such device.
    pub fn listen(&self, device: Option<u32>) -> io::Result<()> {
        // SAFETY: a sockaddr_ll of zeroes is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = device.unwrap_or(0) as i32;
        // SAFETY: address and length are those of a sockaddr_ll that lives through the call.
        checked(unsafe {
            libc::bind(
                self.0.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        })?;
        Ok(())
    }

    /// Copies the next packet into the buffer.
    ///
    /// # Errors
    /// Those of recvmsg(2): [`io::ErrorKind::WouldBlock`] without a packet,
    /// [`io::ErrorKind::NetworkDown`] once for each device that goes down.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        // SAFETY: a sockaddr_ll of zeroes is valid.
        let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        // MSG_TRUNC returns the length on the wire, also where the buffer is shorter
        let (wire_len, at) =
            timestamps::receive_from(self, buffer, Some(&mut from), libc::MSG_TRUNC)?;
        Ok(Received {
            len: wire_len.min(buffer.len()),
            wire_len,
            at,
            device: from.sll_ifindex,
            is_loopback: from.sll_hatype == libc::ARPHRD_LOOPBACK,
            is_outgoing: u32::from(from.sll_pkttype) == u32::from(libc::PACKET_OUTGOING),
        })
    }

    /// Packets that the kernel dropped because its buffer was full, since the last call.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn dropped(&self) -> io::Result<u64> {
        // struct tpacket_stats: packets, then drops
        let counts: [u8; 8] = socket_option::read(self, libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        let [_, _, _, _, drops @ ..] = counts;
        Ok(u64::from(u32::from_ne_bytes(drops)))
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::UdpSocket;

    #[test]
    fn a_filtered_socket_receives_packets_of_its_port_with_timestamps() {
        let socket = match PacketSocket::open(FirstHeader::Network) {
            Ok(socket) => socket,
            // without CAP_NET_RAW there is no packet socket
            Err(error) => return assert_eq!(error.kind(), ErrorKind::PermissionDenied),
        };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        socket.enable_timestamps().unwrap();
        socket.set_buffer_size(1 << 20).unwrap();
        socket
            .attach_filter(&port_filter(PortProtocol::Tcp, port))
            .unwrap();
        socket.listen(None).unwrap();
        // another protocol, to the same port
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.send_to(b"x", ("127.0.0.1", port)).unwrap();
        drop(std::net::TcpStream::connect(("127.0.0.1", port)).unwrap());
        let (mut buffer, mut seen) = (vec![0; 2048], 0);
        loop {
            match socket.receive(&mut buffer) {
                Ok(packet) => {
                    assert_eq!((buffer[0] >> 4, buffer[9]), (4, 6), "TCP over IPv4");
                    assert!(packet.is_loopback && packet.at.is_some());
                    assert_eq!(packet.len, packet.wire_len);
                    seen += 1;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        // SYN, SYN-ACK and ACK at least, each out and in
        assert!(seen >= 6, "{seen} packets");
        assert_eq!(socket.dropped().unwrap(), 0);
    }
}
