//! The UDP socket of one connection, connected to its peer. It never blocks.

use mio::{Interest, Registry, Token};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Datagrams in one send.
pub(super) const MOST_SEGMENTS: usize = 32;

#[cfg(target_os = "linux")]
pub(super) use intact_sys::udp::Datagrams;

/// The result of one read: datagrams of one size; the last may be shorter.
#[cfg(not(target_os = "linux"))]
pub(super) struct Datagrams {
    pub(super) len: usize,
    pub(super) segment: usize,
    /// The kernel's receive timestamp in nanoseconds of CLOCK_REALTIME.
    pub(super) timestamp: Option<u64>,
}

/// The socket, and what the kernel can do for it.
pub(super) struct UdpSocket {
    socket: mio::net::UdpSocket,
    pub(super) stamped: bool,
    pub(super) unfragmented: bool,
    /// The kernel splits a send into datagrams.
    splits: bool,
}

impl UdpSocket {
    /// Opens a socket for one peer and registers it.
    pub(super) fn open(
        peer: SocketAddr,
        stamps: bool,
        registry: &Registry,
        token: Token,
    ) -> io::Result<UdpSocket> {
        let any = match peer {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let mut socket = mio::net::UdpSocket::bind(any)?;
        socket.connect(peer)?;
        registry.register(&mut socket, token, Interest::READABLE | Interest::WRITABLE)?;
        #[cfg(target_os = "linux")]
        let (stamped, unfragmented) = {
            let features = intact_sys::udp::set_up(&socket, peer.is_ipv6(), stamps);
            (features.stamped, features.unfragmented)
        };
        #[cfg(not(target_os = "linux"))]
        let (stamped, unfragmented) = {
            let _ = stamps;
            (false, false)
        };
        Ok(UdpSocket {
            socket,
            stamped,
            unfragmented,
            splits: cfg!(target_os = "linux"),
        })
    }

    /// Our address.
    pub(super) fn local_addr(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }

    /// The most datagrams in one send.
    pub(super) fn most_segments(&self) -> usize {
        if self.splits { MOST_SEGMENTS } else { 1 }
    }

    /// Reads once; the buffer has to hold 64 KB.
    #[cfg(target_os = "linux")]
    #[inline]
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Datagrams> {
        intact_sys::udp::receive(&self.socket, buffer)
    }

    /// Reads one datagram; the buffer has to hold 64 KB.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Datagrams> {
        let len = self.socket.recv(buffer)?;
        Ok(Datagrams {
            len,
            segment: len,
            timestamp: None,
        })
    }

    /// Sends datagrams of `segment` bytes, or one.
    ///
    /// # Errors
    /// `WouldBlock` if the socket accepts none of them now, and those of sendmsg(2).
    #[inline]
    pub(super) fn send(&mut self, bytes: &[u8], segment: Option<usize>) -> io::Result<()> {
        let size = segment.unwrap_or(bytes.len()).max(1);
        #[cfg(target_os = "linux")]
        if self.splits && size < bytes.len() {
            match intact_sys::udp::send(&self.socket, bytes, u16::try_from(size).ok()) {
                // a device that cannot split: it will not later either
                Err(error) if error.raw_os_error() == Some(libc::EIO) => self.splits = false,
                sent => return sent,
            }
        }
        for datagram in bytes.chunks(size) {
            match self.socket.send(datagram) {
                Ok(_) => {}
                // a datagram that the path cannot carry is a probe of its size; it is lost
                #[cfg(unix)]
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {}
                // the first ones are sent: the others count as lost, and are sent again later
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
