//! UDP in batches: several datagrams of one peer in one system call (UDP_SEGMENT, UDP_GRO), with
//! the kernel's receive timestamp.
//!
//! The sockets are connected, so that the kernel reports an unreachable port to them.

use crate::socket_option;
use crate::timestamps::{self, Control};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

/// The features of the kernel that a socket got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpFeatures {
    /// Reads have receive timestamps.
    pub stamped: bool,
    /// One read may return several datagrams.
    pub gathers: bool,
    /// Datagrams are never fragmented on the way.
    pub unfragmented: bool,
}

/// The result of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagrams {
    /// Bytes of all datagrams together.
    pub len: usize,
    /// Bytes of each but the last, which may be shorter.
    pub segment: usize,
    /// When the first arrived, in nanoseconds of CLOCK_REALTIME.
    pub timestamp: Option<u64>,
}

/// Sets up a socket: no fragments, several datagrams per read, and timestamps if they are wanted. A
/// feature that the kernel lacks is left out.
pub fn set_up(socket: &impl AsFd, is_ipv6: bool, stamps: bool) -> UdpFeatures {
    let on: libc::c_int = 1;
    let (level, name, probe) = match is_ipv6 {
        false => (
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            libc::IP_PMTUDISC_PROBE,
        ),
        true => (
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_PROBE,
        ),
    };
    UdpFeatures {
        stamped: stamps && timestamps::enable(socket).is_ok(),
        gathers: socket_option::set(socket, libc::SOL_UDP, libc::UDP_GRO, &on).is_ok(),
        unfragmented: socket_option::set(socket, level, name, &probe).is_ok(),
    }
}

/// Reads one datagram, or several of one size that arrived together. The buffer has to hold 64 KB,
/// or datagrams are cut.
///
/// # Errors
/// Those of recvmsg(2): `ConnectionRefused` if the peer's port is closed.
#[inline]
pub fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<Datagrams> {
    let (mut gathered, mut timestamp) = (None, None);
    let len = timestamps::receive_message(socket, buffer, None, 0, |header| {
        // SAFETY: a whole message of the kernel, of which UDP_GRO carries an int.
        unsafe {
            if ((*header).cmsg_level, (*header).cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO) {
                gathered = Some(libc::CMSG_DATA(header).cast::<i32>().read_unaligned());
            } else {
                timestamp = timestamp.or_else(|| timestamps::time_of(header));
            }
        }
    })?;
    let segment = gathered.map(|segment| usize::try_from(segment).unwrap_or(len));
    Ok(Datagrams {
        len,
        segment: segment.map_or(len, |segment| segment.clamp(1, len.max(1))),
        timestamp,
    })
}

/// Sends one datagram. With `segment`, sends datagrams of that size; the last may be shorter.
///
/// # Errors
/// Those of sendmsg(2). `ConnectionRefused`: an earlier datagram met a closed port. EMSGSIZE: a
/// datagram is too large for the path. EIO: the network device cannot send segments.
#[inline]
pub fn send(socket: &impl AsFd, bytes: &[u8], segment: Option<u16>) -> io::Result<()> {
    let mut control = MaybeUninit::<Control>::zeroed();
    let mut parts = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: a msghdr of zeroes is valid; the pointers set below outlive the call.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut parts;
    message.msg_iovlen = 1;
    if let Some(segment) = segment {
        message.msg_control = control.as_mut_ptr().cast();
        // SAFETY: computes a size.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<u16>() as u32) } as _;
        // SAFETY: the control buffer has room for one header and its data, which are written here.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_UDP;
            (*header).cmsg_type = libc::UDP_SEGMENT;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
            libc::CMSG_DATA(header)
                .cast::<u16>()
                .write_unaligned(segment);
        }
    }
    // SAFETY: the message names readable buffers of the sizes given.
    let count = unsafe { libc::sendmsg(socket.as_fd().as_raw_fd(), &raw const message, 0) };
    match count {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn pair() -> (UdpSocket, UdpSocket) {
        let (one, other) = (
            UdpSocket::bind("127.0.0.1:0"),
            UdpSocket::bind("127.0.0.1:0"),
        );
        let (one, other) = (one.unwrap(), other.unwrap());
        one.connect(other.local_addr().unwrap()).unwrap();
        other.connect(one.local_addr().unwrap()).unwrap();
        (one, other)
    }

    #[test]
    fn datagrams_of_one_send_come_back_with_their_size() {
        let (sender, receiver) = pair();
        let features = set_up(&receiver, false, true);
        send(&sender, &[7; 2500], Some(1000)).unwrap();
        let mut buffer = vec![0; 64 * 1024];
        let mut sizes = Vec::new();
        while sizes.iter().sum::<usize>() < 2500 {
            let read = receive(&receiver, &mut buffer).unwrap();
            assert!(features.gathers || read.len == read.segment);
            for datagram in buffer[..read.len].chunks(read.segment) {
                sizes.push(datagram.len());
            }
        }
        assert_eq!(sizes, [1000, 1000, 500]);
    }

    #[test]
    fn a_closed_port_is_reported() {
        let (sender, receiver) = pair();
        drop(receiver);
        send(&sender, b"x", None).unwrap();
        let mut buffer = [0; 16];
        let error = receive(&sender, &mut buffer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
