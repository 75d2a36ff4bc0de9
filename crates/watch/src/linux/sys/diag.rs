//! What the kernel tells of TCP sockets by itself: when one is destroyed, and which are there (sock_diag(7)). Needs no
//! privilege.
#![allow(unsafe_code, reason = "netlink sockets")]

use super::checked;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// What the kernel said of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketReport {
    /// Its cookie.
    pub(crate) cookie: u64,
    /// Its inode, which descriptors are known by; 0 once no process has it.
    pub(crate) inode: u32,
    /// Whether it awaits connections.
    pub(crate) is_listening: bool,
    /// Its own address.
    pub(crate) local: SocketAddr,
    /// The other side's.
    pub(crate) peer: SocketAddr,
    /// Whether it was ever established.
    pub(crate) was_established: bool,
    /// Whether anything came back, were it a refusal.
    pub(crate) was_answered: bool,
    /// Whether the program reset it, by which the kernel forgets all of its figures.
    pub(crate) was_reset: bool,
    /// Payload that was sent, without what was sent again, in bytes.
    pub(crate) sent: u64,
    /// Payload that was received, in bytes.
    pub(crate) received: u64,
}

/// Multicast groups of destroyed TCP sockets: IPv4 and IPv6 (SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY).
const DESTROYED: u32 = 1 | 1 << 2;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
/// Room for events that we have not read yet, in bytes, as far as the machine allows.
static ROOM: i32 = 8 << 20;
/// Sizes and places in the kernel's structures (linux/netlink.h, linux/inet_diag.h, linux/tcp.h).
const HEAD: usize = 16;
const MESSAGE: usize = 72;
const STATE: usize = 1;
const LOCAL_PORT: usize = 4;
const PEER_PORT: usize = 6;
const LOCAL: usize = 8;
const PEER: usize = 24;
const COOKIE: usize = 44;
const INODE: usize = 68;
const TCP_LISTEN: u8 = 10;
/// All states but those of sockets without figures, of which there may be many: TIME_WAIT and half-open ones.
const STATES: u32 = !(1 << 6 | 1 << 3 | 1 << 12);
const BYTES_ACKED: usize = 120;
const BYTES_RECEIVED: usize = 128;
const SEGS_OUT: usize = 136;
const SEGS_IN: usize = 140;
const BYTES_SENT: usize = 200;
const BYTES_RETRANS: usize = 208;

/// Messages that are read in one go, and room for one of them in bytes: it tells of one socket.
const AT_ONCE: usize = 32;
const ROOM_FOR_ONE: usize = 2048;

/// A subscription to the end of sockets.
pub(crate) struct Destroyed {
    socket: OwnedFd,
    buffer: Box<[[u8; ROOM_FOR_ONE]; AT_ONCE]>,
    /// How often the kernel had more to tell than there was room for.
    pub(crate) overruns: u64,
}

impl Destroyed {
    pub(crate) fn subscribe() -> io::Result<Destroyed> {
        let socket = netlink(DESTROYED, libc::SOCK_NONBLOCK)?;
        // SAFETY: the kernel reads one int.
        unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVBUF,
                (&raw const ROOM).cast(),
                size_of::<i32>() as libc::socklen_t,
            )
        };
        Ok(Destroyed {
            socket,
            buffer: Box::new([[0; ROOM_FOR_ONE]; AT_ONCE]),
            overruns: 0,
        })
    }

    /// Hands on what was told since the last time.
    pub(crate) fn read(&mut self, mut visit: impl FnMut(SocketReport)) {
        loop {
            match receive_many(&self.socket, &mut self.buffer) {
                Ok(lengths) => {
                    let mut count = 0;
                    for (len, bytes) in lengths.into_iter().flatten().zip(&*self.buffer) {
                        // a report is no list and has no end
                        let _ = parse(&bytes[..len.min(ROOM_FOR_ONE)], &mut visit);
                        count += 1;
                    }
                    if count < AT_ONCE {
                        return;
                    }
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::ENOBUFS) => self.overruns += 1,
                    Some(libc::EINTR) => {}
                    _ => return,
                },
            }
        }
    }
}

impl AsRawFd for Destroyed {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Hands on all TCP sockets that are there.
///
/// # Errors
/// The kernel does not list them, or stopped in between.
pub(crate) fn list(mut visit: impl FnMut(SocketReport)) -> io::Result<()> {
    for family in [libc::AF_INET, libc::AF_INET6] {
        dump(family, libc::IPPROTO_TCP, &mut visit)?;
    }
    Ok(())
}

/// Hands on all sockets of a family and a protocol.
fn dump(family: i32, protocol: i32, visit: &mut impl FnMut(SocketReport)) -> io::Result<()> {
    let socket = netlink(0, 0)?;
    let mut request = [0; HEAD + 56];
    request[..4].copy_from_slice(&(HEAD as u32 + 56).to_ne_bytes());
    request[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    request[6..8].copy_from_slice(&flags.to_ne_bytes());
    request[HEAD] = family as u8;
    request[HEAD + 1] = protocol as u8;
    request[HEAD + 2] = 1 << (INET_DIAG_INFO - 1);
    request[HEAD + 4..HEAD + 8].copy_from_slice(&STATES.to_ne_bytes());
    // SAFETY: the kernel reads as many bytes as are there.
    checked(unsafe {
        libc::send(
            socket.as_raw_fd(),
            request.as_ptr().cast(),
            request.len(),
            0,
        ) as i64
    })?;
    let mut buffer = [0; 32 * 1024];
    loop {
        let count = receive(&socket, &mut buffer)?;
        if let Some(end) = parse(&buffer[..count], visit) {
            return end;
        }
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn netlink(groups: u32, flags: i32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | flags;
    // SAFETY: takes plain numbers; the kernel has just made the descriptor for us.
    let socket = unsafe {
        let number = checked(libc::socket(
            libc::AF_NETLINK,
            kind,
            libc::NETLINK_SOCK_DIAG,
        ))?;
        OwnedFd::from_raw_fd(number as RawFd)
    };
    // SAFETY: an address of zeroes is valid; the kernel reads it.
    checked(unsafe {
        let mut address: libc::sockaddr_nl = std::mem::zeroed();
        address.nl_family = libc::AF_NETLINK as u16;
        address.nl_groups = groups;
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_nl>() as libc::socklen_t,
        )
    })?;
    Ok(socket)
}

fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes into the buffer, not beyond its end.
    let count = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            0,
        ) as i64
    };
    match checked(count) {
        Ok(count) => Ok(count as usize),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        Err(error) => Err(error),
    }
}

/// Reads what is there, without waiting: how long each message is.
fn receive_many(
    socket: &OwnedFd,
    buffer: &mut [[u8; ROOM_FOR_ONE]; AT_ONCE],
) -> io::Result<[Option<usize>; AT_ONCE]> {
    let mut parts = buffer.each_mut().map(|room| libc::iovec {
        iov_base: room.as_mut_ptr().cast(),
        iov_len: room.len(),
    });
    // SAFETY: headers of zeroes are valid; each points at a part of its own, which outlives the call, and which the kernel
    // writes into, not beyond its end.
    let (count, headers) = unsafe {
        let mut headers: [libc::mmsghdr; AT_ONCE] = std::mem::zeroed();
        for (header, part) in headers.iter_mut().zip(&mut parts) {
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
        }
        let count = libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            AT_ONCE as _,
            libc::MSG_DONTWAIT as _,
            std::ptr::null_mut(),
        );
        (checked(count)?, headers)
    };
    let mut lengths = [None; AT_ONCE];
    for (len, header) in lengths.iter_mut().zip(&headers).take(count as usize) {
        *len = Some(header.msg_len as usize);
    }
    Ok(lengths)
}

/// Reads a datagram of messages; how the list ends, if it ends with this one.
fn parse(mut bytes: &[u8], visit: &mut impl FnMut(SocketReport)) -> Option<io::Result<()>> {
    while bytes.len() >= HEAD {
        let len = read_u32(bytes, 0) as usize;
        if len < HEAD || len > bytes.len() {
            break;
        }
        let kind = i32::from(u16::from_ne_bytes([bytes[4], bytes[5]]));
        if kind == libc::NLMSG_DONE || kind == libc::NLMSG_ERROR {
            // both begin with an error number, which is negative, or zero
            return Some(match read_u32(&bytes[HEAD..len], 0).cast_signed() {
                0.. => Ok(()),
                number => Err(io::Error::from_raw_os_error(number.saturating_neg())),
            });
        }
        if let Some(told) = parse_socket(&bytes[HEAD..len]) {
            visit(told);
        }
        bytes = &bytes[aligned(len).min(bytes.len())..];
    }
    None
}

/// Reads an `inet_diag_msg` with its attributes.
fn parse_socket(message: &[u8]) -> Option<SocketReport> {
    let mut attributes = message.get(MESSAGE..)?;
    let cookie =
        u64::from(read_u32(message, COOKIE)) | u64::from(read_u32(message, COOKIE + 4)) << 32;
    while attributes.len() >= 4 {
        let len = usize::from(u16::from_ne_bytes([attributes[0], attributes[1]]));
        let kind = u16::from_ne_bytes([attributes[2], attributes[3]]);
        if len < 4 || len > attributes.len() {
            return None;
        }
        if kind == INET_DIAG_INFO {
            let info = &attributes[4..len];
            let sent = read_u64(info, BYTES_SENT).saturating_sub(read_u64(info, BYTES_RETRANS));
            // a connect that failed has at least sent its SYN
            let was_reset = read_u32(info, SEGS_OUT) == 0;
            return Some(SocketReport {
                cookie,
                inode: read_u32(message, INODE),
                is_listening: message[STATE] == TCP_LISTEN,
                local: read_address(message, LOCAL_PORT, LOCAL),
                peer: read_address(message, PEER_PORT, PEER),
                was_reset,
                // the SYN counts as a byte that was acknowledged
                was_established: was_reset || read_u64(info, BYTES_ACKED) > 0,
                was_answered: read_u32(info, SEGS_IN) > 0,
                sent,
                received: read_u64(info, BYTES_RECEIVED),
            });
        }
        attributes = &attributes[aligned(len).min(attributes.len())..];
    }
    None
}

/// An address of the message's family; ports are in network order, as all of it is.
fn read_address(message: &[u8], port: usize, host: usize) -> SocketAddr {
    let part = |at: usize| message.get(at..).and_then(|rest| rest.first_chunk());
    let port = part(port).map_or(0, |bytes: &[u8; 2]| u16::from_be_bytes(*bytes));
    let bytes: [u8; 16] = message
        .get(host..)
        .and_then(|rest| rest.first_chunk().copied())
        .unwrap_or_default();
    let host = if i32::from(message[0]) == libc::AF_INET {
        Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into()
    } else {
        Ipv6Addr::from(bytes).into()
    };
    SocketAddr::new(host, port)
}

fn aligned(len: usize) -> usize {
    (len + 3) & !3
}

/// Zero where an older kernel's structure ends before it.
fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk());
    part.map_or(0, |part| u32::from_ne_bytes(*part))
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk());
    part.map_or(0, |part| u64::from_ne_bytes(*part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::sys::socket;
    use proptest::prelude::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    #[test]
    fn the_kernel_tells_of_sockets_that_are_there_and_of_their_end() {
        let mut destroyed = Destroyed::subscribe().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        stream.write_all(b"hello").unwrap();
        other.write_all(b"hello world").unwrap();
        let mut answer = [0; 11];
        stream.read_exact(&mut answer).unwrap();
        let cookie = socket::cookie(&stream).unwrap();
        let mut found = None;
        list(|told| {
            if told.cookie == cookie {
                found = Some(told);
            }
        })
        .unwrap();
        let there = found.unwrap();
        assert!(there.was_established && !there.is_listening);
        assert_eq!(there.local, stream.local_addr().unwrap());
        assert_eq!(there.peer, stream.peer_addr().unwrap());
        assert_ne!(there.inode, 0);
        assert_eq!((there.sent, there.received), (5, 11));
        let mut end_of = |cookie| {
            let mut end = None;
            while end.is_none() {
                destroyed.read(|told| end = end.or((told.cookie == cookie).then_some(told)));
            }
            end.unwrap()
        };
        drop(other);
        drop(stream);
        let end = end_of(cookie);
        assert!(end.was_established && !end.was_reset);
        assert_eq!(end.sent, 5);
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let cookie = socket::cookie(&stream).unwrap();
        socket::reset_on_close(&stream);
        drop(stream);
        assert!(end_of(cookie).was_reset);
    }

    #[test]
    fn a_list_that_the_kernel_does_not_give_is_an_error() {
        // no protocol of TCP's kind has this number (RFC 5237)
        let refused = dump(libc::AF_INET, 253, &mut |_| {}).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOENT));
        let mut message = vec![0; HEAD + 4];
        message[..4].copy_from_slice(&(HEAD as u32 + 4).to_ne_bytes());
        message[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        message[HEAD..].copy_from_slice(&(-libc::EPERM).to_ne_bytes());
        let end = parse(&message, &mut |_| {}).unwrap();
        assert_eq!(end.unwrap_err().raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn a_socket_that_never_had_a_port_was_never_connected_and_one_that_was_reset_keeps_it() {
        let mut destroyed = Destroyed::subscribe().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let unused = socket::tcp_for(listener.local_addr().unwrap()).unwrap();
        let reset = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let port = reset.local_addr().unwrap().port();
        let cookies = [&unused as &dyn AsFd, &reset].map(|one| socket::cookie(&one).unwrap());
        socket::reset_on_close(&reset);
        drop(unused);
        drop(reset);
        let mut ports = [None; 2];
        while ports.contains(&None) {
            destroyed.read(|told| {
                if let Some(place) = cookies.iter().position(|one| *one == told.cookie) {
                    ports[place] = Some(told.local.port());
                }
            });
        }
        assert_eq!(ports, [Some(0), Some(port)]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&bytes, &mut |_| {});
            parse_socket(&bytes);
        }

        #[test]
        fn a_message_cut_anywhere_never_panics(cut in 0usize..400, len in 0u16..300) {
            let mut bytes = vec![1; 400];
            bytes[..4].copy_from_slice(&380u32.to_ne_bytes());
            bytes[HEAD + MESSAGE..HEAD + MESSAGE + 2].copy_from_slice(&len.to_ne_bytes());
            bytes[HEAD + MESSAGE + 2..HEAD + MESSAGE + 4].copy_from_slice(&2u16.to_ne_bytes());
            let _ = parse(&bytes[..cut], &mut |_| {});
        }
    }
}
