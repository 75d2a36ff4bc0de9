//! Netlink sockets and messages (netlink(7)), for rtnetlink(7) and sock_diag(7): one socket, one
//! builder, one reader.
//!
//! Each socket belongs to the network namespace in which it was opened. This module does not
//! interpret messages.

use crate::checked;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, sendto, socket_with,
};
use std::io;

/// Bytes of `nlmsghdr`.
pub(crate) const HEADER: usize = 16;
/// The size of a buffer for responses, in bytes (netlink(7) recommends at least 8192).
const RESPONSE: usize = 32 * 1024;

/// The subsystem of the kernel that a socket talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetlinkProtocol {
    /// Devices, addresses and routes (rtnetlink(7)).
    Route,
    /// The state of sockets (sock_diag(7)).
    SockDiag,
}

/// A request under construction.
pub struct NetlinkRequest(Vec<u8>);

impl NetlinkRequest {
    /// An `nlmsghdr` of this type, then the fixed part that the type has. NLM_F_REQUEST is added to
    /// the flags.
    pub fn new(kind: u16, flags: i32, fixed: &[u8]) -> NetlinkRequest {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&((flags | libc::NLM_F_REQUEST) as u16).to_ne_bytes());
        bytes.extend_from_slice(fixed);
        NetlinkRequest(bytes)
    }

    /// Appends an attribute, padded to four bytes.
    #[must_use]
    pub fn attribute(mut self, kind: u16, value: &[u8]) -> NetlinkRequest {
        let length = (4 + value.len()) as u16;
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Appends an attribute whose value is a text that ends in a NUL.
    #[must_use]
    pub fn text(self, kind: u16, text: &str) -> NetlinkRequest {
        self.attribute(kind, &[text.as_bytes(), &[0]].concat())
    }

    /// Appends an attribute whose value is `fixed` and further attributes.
    #[must_use]
    pub fn nested(
        mut self,
        kind: u16,
        fixed: &[u8],
        inner: impl FnOnce(NetlinkRequest) -> NetlinkRequest,
    ) -> NetlinkRequest {
        let at = self.0.len();
        self = self.attribute(kind, fixed);
        self = inner(self);
        let length = (self.0.len() - at) as u16;
        self.0[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    fn add_flags(&mut self, flags: i32) {
        let before = u16::from_ne_bytes([self.0[6], self.0[7]]);
        self.0[6..8].copy_from_slice(&(before | flags as u16).to_ne_bytes());
    }
}

/// A message from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetlinkMessage<'a> {
    /// Its type, such as RTM_NEWLINK.
    pub kind: u16,
    /// The sequence number of the request that it responds to; 0 for multicast.
    pub sequence: u32,
    /// The content after `nlmsghdr`.
    pub body: &'a [u8],
}

impl NetlinkMessage<'_> {
    /// The result that NLMSG_ERROR or NLMSG_DONE carries; `None` for other types.
    pub fn result(&self) -> Option<io::Result<()>> {
        let kind = i32::from(self.kind);
        (kind == libc::NLMSG_ERROR || kind == libc::NLMSG_DONE).then(|| {
            // both begin with a negative error number, or zero
            let number = self
                .body
                .first_chunk()
                .copied()
                .map_or(0, i32::from_ne_bytes);
            match number {
                0.. => Ok(()),
                _ => Err(io::Error::from_raw_os_error(number.saturating_neg())),
            }
        })
    }
}

/// The messages of a datagram. A malformed length is an error of kind `InvalidData`, and the last
/// item.
pub fn messages(mut rest: &[u8]) -> impl Iterator<Item = io::Result<NetlinkMessage<'_>>> {
    std::iter::from_fn(move || {
        if rest.len() < HEADER {
            return None;
        }
        let length = u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
        if length < HEADER || length > rest.len() {
            rest = &[];
            return Some(Err(io::ErrorKind::InvalidData.into()));
        }
        let message = NetlinkMessage {
            kind: u16::from_ne_bytes([rest[4], rest[5]]),
            sequence: u32::from_ne_bytes([rest[8], rest[9], rest[10], rest[11]]),
            body: &rest[HEADER..length],
        };
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Ok(message))
    })
}

/// The attributes of a message as type and value; an attribute that is cut off ends the list.
pub fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        let kind = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?);
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// A netlink socket.
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket in the calling thread's network namespace.
    ///
    /// # Errors
    /// Those of socket(2).
    pub fn open(protocol: NetlinkProtocol) -> io::Result<Netlink> {
        Netlink::open_with(protocol, SocketFlags::CLOEXEC)
    }

    /// Opens a non-blocking socket that receives the messages of these multicast groups.
    pub(crate) fn subscribe(protocol: NetlinkProtocol, groups: u32) -> io::Result<Netlink> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let netlink = Netlink::open_with(protocol, flags)?;
        bind(&netlink.socket, &SocketAddrNetlink::new(0, groups))?;
        Ok(netlink)
    }

    fn open_with(protocol: NetlinkProtocol, flags: SocketFlags) -> io::Result<Netlink> {
        let protocol = match protocol {
            NetlinkProtocol::Route => None,
            NetlinkProtocol::SockDiag => Some(netlink::SOCK_DIAG),
        };
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        Ok(Netlink {
            socket,
            sequence: 0,
        })
    }

    /// Sends a request and waits until the kernel has done it.
    ///
    /// # Errors
    /// The error that the kernel responds with, or those of sendto(2) and recv(2).
    pub fn acknowledge(&mut self, mut request: NetlinkRequest) -> io::Result<()> {
        request.add_flags(libc::NLM_F_ACK);
        self.ask(request, libc::NLMSG_ERROR as u16).map(drop)
    }

    /// Sends a request; returns the body of the response of type `wanted`.
    ///
    /// # Errors
    /// The error that the kernel responds with, or those of sendto(2) and recv(2).
    pub fn ask(&mut self, request: NetlinkRequest, wanted: u16) -> io::Result<Vec<u8>> {
        let sequence = self.send(request)?;
        let mut buffer = vec![0; RESPONSE];
        loop {
            let (length, _) = recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            for message in messages(&buffer[..length]) {
                let message = message?;
                if message.sequence != sequence {
                    continue;
                }
                if i32::from(message.kind) == libc::NLMSG_ERROR {
                    message.result().transpose()?;
                }
                if message.kind == wanted {
                    return Ok(message.body.to_vec());
                }
            }
        }
    }

    /// Sends a request for a list, and calls `visit` with each message of it.
    ///
    /// # Errors
    /// The error that ends the list, or those of sendto(2) and recv(2).
    pub(crate) fn dump(
        &mut self,
        mut request: NetlinkRequest,
        mut visit: impl FnMut(NetlinkMessage<'_>),
    ) -> io::Result<()> {
        request.add_flags(libc::NLM_F_DUMP);
        self.send(request)?;
        let mut buffer = vec![0; RESPONSE];
        loop {
            let (length, _) = recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            for message in messages(&buffer[..length]) {
                // a message with a malformed length hides the rest of its datagram only
                let Ok(message) = message else { break };
                match message.result() {
                    Some(end) => return end,
                    None => visit(message),
                }
            }
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Sends a request; returns its sequence number.
    fn send(&mut self, request: NetlinkRequest) -> io::Result<u32> {
        self.sequence += 1;
        let mut bytes = request.0;
        let length = bytes.len() as u32;
        bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.socket, &bytes, SendFlags::empty(), &kernel)?;
        Ok(self.sequence)
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Netlink {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Datagrams that one [`Batch::receive`] reads at most.
const DATAGRAMS: usize = 32;
/// The size of a buffer for one datagram of a multicast group, in bytes: it reports one object.
const DATAGRAM: usize = 2048;

/// Buffers that read several datagrams in one system call.
pub(crate) struct Batch(Box<[[u8; DATAGRAM]; DATAGRAMS]>);

impl Batch {
    /// Empty buffers.
    pub(crate) fn new() -> Batch {
        Batch(Box::new([[0; DATAGRAM]; DATAGRAMS]))
    }

    /// Reads the datagrams that are there, without waiting; the end of a longer datagram is lost.
    /// Returns them, and whether the buffers are full, so that there may be more.
    pub(crate) fn receive(
        &mut self,
        socket: &Netlink,
    ) -> io::Result<(impl Iterator<Item = &[u8]>, bool)> {
        let mut parts = self.0.each_mut().map(|buffer| libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: buffer.len(),
        });
        // SAFETY: headers of zeroes are valid. Each points at a part of its own, which outlives the
        // call. The kernel writes into the part, not beyond its end.
        let (count, headers) = unsafe {
            let mut headers: [libc::mmsghdr; DATAGRAMS] = std::mem::zeroed();
            for (header, part) in headers.iter_mut().zip(&mut parts) {
                header.msg_hdr.msg_iov = part;
                header.msg_hdr.msg_iovlen = 1;
            }
            let count = libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                DATAGRAMS as _,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            );
            (checked(count)? as usize, headers)
        };
        let lengths = headers.map(|header| header.msg_len as usize);
        let datagrams = self.0.iter().zip(lengths).take(count);
        let datagrams = datagrams.map(|(bytes, len)| &bytes[..len.min(DATAGRAM)]);
        Ok((datagrams, count == DATAGRAMS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nested_attributes_carry_their_whole_length() {
        let request = NetlinkRequest::new(0, 0, &[]).nested(18, &[], |inner| {
            inner.attribute(1, b"veth").attribute(2, b"abc")
        });
        let outer: Vec<_> = attributes(&request.0[HEADER..]).collect();
        assert_eq!(outer.len(), 1);
        let inner: Vec<_> = attributes(outer[0].1).collect();
        assert_eq!(inner, [(1, &b"veth"[..]), (2, &b"abc"[..])]);
    }

    #[test]
    fn a_cut_off_attribute_ends_the_list() {
        let request = NetlinkRequest::new(0, 0, &[])
            .attribute(1, b"0123")
            .attribute(2, b"4567");
        let cut = &request.0[HEADER..request.0.len() - 1];
        assert_eq!(attributes(cut).count(), 1);
        assert_eq!(
            attributes(&[0, 0, 0, 0]).count(),
            0,
            "a length of zero is no endless loop"
        );
    }

    #[test]
    fn a_malformed_length_is_an_error_and_ends_the_list() {
        let mut datagram = vec![0; HEADER * 2];
        datagram[..4].copy_from_slice(&(HEADER as u32).to_ne_bytes());
        datagram[HEADER..HEADER + 4].copy_from_slice(&100u32.to_ne_bytes());
        let read: Vec<_> = messages(&datagram).collect();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].as_ref().unwrap().body, b"");
        let error = read[1].as_ref().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn the_result_of_a_request_is_its_error_number() {
        let result = |number: i32| {
            let message = NetlinkMessage {
                kind: libc::NLMSG_ERROR as u16,
                sequence: 1,
                body: &number.to_ne_bytes(),
            };
            message
                .result()
                .unwrap()
                .map_err(|error| error.raw_os_error())
        };
        assert_eq!(result(0), Ok(()));
        assert_eq!(result(-libc::EPERM), Err(Some(libc::EPERM)));
        assert!(result(i32::MIN).is_err());
    }

    #[test]
    fn the_loopback_device_is_there_and_another_is_not() {
        let mut netlink = Netlink::open(NetlinkProtocol::Route).unwrap();
        let mut ask = |name: &[u8]| {
            let request = NetlinkRequest::new(libc::RTM_GETLINK, 0, &[0; 16]);
            netlink.ask(
                request.attribute(libc::IFLA_IFNAME, name),
                libc::RTM_NEWLINK,
            )
        };
        assert!(ask(b"lo\0").is_ok());
        let error = ask(b"intact-none\0").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            for message in messages(&bytes).flatten() {
                let _ = message.result();
                attributes(message.body).for_each(drop);
            }
        }
    }
}
