//! The state of TCP sockets in this network namespace (sock_diag(7)): open sockets, and reports of
//! destroyed ones. Needs no privilege.

use crate::netlink::{
    Batch, Netlink, NetlinkMessage, NetlinkProtocol, NetlinkRequest, attributes, messages,
};
use crate::socket_option;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};

/// The state of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketReport {
    /// Its cookie (SO_COOKIE).
    pub cookie: u64,
    /// Its inode, as in /proc/PID/fd; 0 once no process has it open.
    pub inode: u32,
    /// The user who owns it.
    pub owner: u32,
    /// Whether it listens for connections.
    pub is_listening: bool,
    /// Its own address.
    pub local: SocketAddr,
    /// The peer's address.
    pub peer: SocketAddr,
    /// Whether it was ever established.
    pub was_established: bool,
    /// Whether it received any segment, a refusal included; `None` where the kernel has cleared
    /// its counts: after a blocking connect that failed, and after a reset by the program.
    pub was_answered: Option<bool>,
    /// Whether the program reset it.
    pub was_reset: bool,
    /// Payload that was sent, without retransmissions, in bytes.
    pub sent: u64,
    /// Payload that was received, in bytes.
    pub received: u64,
}

/// Multicast groups of destroyed TCP sockets: IPv4 and IPv6 (SKNLGRP_INET_TCP_DESTROY,
/// SKNLGRP_INET6_TCP_DESTROY).
const DESTROYED: u32 = 1 | 1 << 2;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
/// The size of the kernel's buffer for events that are not read yet, in bytes; the system may limit
/// it.
const BUFFER: i32 = 8 << 20;
/// Sizes and offsets in the kernel's structures (linux/inet_diag.h, linux/tcp.h).
const REQUEST: usize = 56;
const MESSAGE: usize = 72;
const STATE: usize = 1;
const LOCAL_PORT: usize = 4;
const PEER_PORT: usize = 6;
const LOCAL: usize = 8;
const PEER: usize = 24;
const COOKIE: usize = 44;
const OWNER: usize = 64;
const INODE: usize = 68;
const TCP_LISTEN: u8 = 10;
/// All states except those without counts, of which there may be many (TIME_WAIT and half-open
/// sockets). Sockets that are only bound are excluded, too; Linux lists them from 6.8 on.
const STATES: u32 = !(1 << 6 | 1 << 3 | 1 << 12 | 1 << 13);
/// The receive window that the kernel aims at: 0 until the socket is established, and not cleared.
const RCV_SPACE: usize = 96;
const BYTES_ACKED: usize = 120;
const BYTES_RECEIVED: usize = 128;
const SEGS_OUT: usize = 136;
const SEGS_IN: usize = 140;
const BYTES_SENT: usize = 200;
const BYTES_RETRANS: usize = 208;

/// A subscription to the destruction of sockets.
pub struct Destroyed {
    netlink: Netlink,
    batch: Batch,
    /// How often the kernel dropped reports because its buffer was full.
    pub overruns: u64,
}

impl Destroyed {
    /// Subscribes to TCP over IPv4 and IPv6.
    ///
    /// # Errors
    /// Those of socket(2) and bind(2).
    pub fn subscribe() -> io::Result<Destroyed> {
        let netlink = Netlink::subscribe(NetlinkProtocol::SockDiag, DESTROYED)?;
        // a smaller buffer overruns earlier, which is counted
        let _ = socket_option::set(&netlink, libc::SOL_SOCKET, libc::SO_RCVBUF, &BUFFER);
        Ok(Destroyed {
            netlink,
            batch: Batch::new(),
            overruns: 0,
        })
    }

    /// Calls `visit` for each socket that was destroyed since the last call; does not wait.
    pub fn read(&mut self, mut visit: impl FnMut(SocketReport)) {
        loop {
            match self.batch.receive(&self.netlink) {
                Ok((datagrams, is_full)) => {
                    for datagram in datagrams {
                        for message in messages(datagram).flatten() {
                            if let Some(report) = parse(message) {
                                visit(report);
                            }
                        }
                    }
                    if !is_full {
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
        self.netlink.as_raw_fd()
    }
}

/// Calls `visit` for each TCP socket, except those in TIME_WAIT and half-open ones.
///
/// # Errors
/// The kernel does not list them, or its list ended with an error.
pub fn list(mut visit: impl FnMut(SocketReport)) -> io::Result<()> {
    dump(
        libc::IPPROTO_TCP,
        (STATES, 1 << (INET_DIAG_INFO - 1)),
        |message| {
            if let Some(report) = parse(message) {
                visit(report);
            }
        },
    )
}

/// Calls `visit` with the local port of each TCP socket of any state, TIME_WAIT included.
///
/// # Errors
/// Those of [`list`].
pub fn local_ports(mut visit: impl FnMut(u16)) -> io::Result<()> {
    dump(libc::IPPROTO_TCP, (u32::MAX, 0), |message| {
        visit(read_address(message.body, LOCAL_PORT, LOCAL).port());
    })
}

/// The TCP socket with this cookie, if it listens, connects or is connected.
///
/// # Errors
/// Those of [`list`].
pub fn find(cookie: u64) -> io::Result<Option<SocketReport>> {
    let mut found = None;
    list(|report| {
        if report.cookie == cookie {
            found = Some(report);
        }
    })?;
    Ok(found)
}

/// The user who owns the far end of a connection within this machine.
///
/// # Errors
/// Those of [`list`] and of getpeername(2).
pub fn owner_of_peer(near: &TcpStream) -> io::Result<Option<u32>> {
    let ends = (near.peer_addr()?, near.local_addr()?);
    let mut owner = None;
    list(|report| {
        if (report.local, report.peer) == ends {
            owner = Some(report.owner);
        }
    })?;
    Ok(owner)
}

/// Visits the sockets of a protocol that are in one of these states, with these attributes.
fn dump(
    protocol: i32,
    (states, attributes): (u32, u8),
    mut visit: impl FnMut(NetlinkMessage<'_>),
) -> io::Result<()> {
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut request = [0; REQUEST];
        request[0] = family as u8;
        request[1] = protocol as u8;
        request[2] = attributes;
        request[4..8].copy_from_slice(&states.to_ne_bytes());
        let request = NetlinkRequest::new(SOCK_DIAG_BY_FAMILY, 0, &request);
        Netlink::open(NetlinkProtocol::SockDiag)?.dump(request, &mut visit)?;
    }
    Ok(())
}

fn parse(message: NetlinkMessage<'_>) -> Option<SocketReport> {
    let body = message.body;
    let (_, info) = attributes(body.get(MESSAGE..)?).find(|(kind, _)| *kind == INET_DIAG_INFO)?;
    let sent = read_u64(info, BYTES_SENT).saturating_sub(read_u64(info, BYTES_RETRANS));
    // without them not even a SYN was sent: tcp_disconnect of the kernel has cleared the counts
    let has_counts = read_u32(info, SEGS_OUT) > 0;
    let was_reset = !has_counts && read_u32(info, RCV_SPACE) > 0;
    Some(SocketReport {
        cookie: u64::from(read_u32(body, COOKIE)) | u64::from(read_u32(body, COOKIE + 4)) << 32,
        inode: read_u32(body, INODE),
        owner: read_u32(body, OWNER),
        is_listening: body[STATE] == TCP_LISTEN,
        local: read_address(body, LOCAL_PORT, LOCAL),
        peer: read_address(body, PEER_PORT, PEER),
        was_reset,
        // the SYN counts as a byte that was acknowledged
        was_established: was_reset || read_u64(info, BYTES_ACKED) > 0,
        was_answered: has_counts.then(|| read_u32(info, SEGS_IN) > 0),
        sent,
        received: read_u64(info, BYTES_RECEIVED),
    })
}

/// An address of the message's family; ports are in network order, as all of it is.
fn read_address(message: &[u8], port: usize, host: usize) -> SocketAddr {
    let port = u16::from_be_bytes(read(message, port));
    let host = if i32::from(message[0]) == libc::AF_INET {
        Ipv4Addr::from(read::<4>(message, host)).into()
    } else {
        Ipv6Addr::from(read::<16>(message, host)).into()
    };
    SocketAddr::new(host, port)
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(read(bytes, at))
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(read(bytes, at))
}

/// Bytes of a message; zeroes where it is shorter, as those of older kernels are.
fn read<const LEN: usize>(bytes: &[u8], at: usize) -> [u8; LEN] {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk());
    part.copied().unwrap_or([0; LEN])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::HEADER;
    use crate::socket;
    use proptest::prelude::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    #[test]
    fn open_and_destroyed_sockets_are_reported() {
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
        list(|report| {
            if report.cookie == cookie {
                found = Some(report);
            }
        })
        .unwrap();
        let there = found.unwrap();
        assert!(there.was_established && !there.is_listening);
        assert_eq!(there.local, stream.local_addr().unwrap());
        assert_eq!(there.peer, stream.peer_addr().unwrap());
        assert_ne!(there.inode, 0);
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(owner_of_peer(&other).unwrap(), Some(own));
        assert_eq!((there.sent, there.received), (5, 11));
        let mut end_of = |cookie| {
            let mut end = None;
            while end.is_none() {
                destroyed.read(|report| end = end.or((report.cookie == cookie).then_some(report)));
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
    fn a_connect_that_failed_is_no_reset_whether_its_caller_waited_or_not() {
        let mut destroyed = Destroyed::subscribe().unwrap();
        let unused = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = unused.local_addr().unwrap();
        drop(unused);
        let cookies = [true, false].map(|waits| {
            let socket = socket::tcp_for(address).unwrap();
            socket.set_nonblocking(!waits).unwrap();
            let cookie = socket::cookie(&socket).unwrap();
            assert!(socket.connect(&address.into()).is_err());
            cookie
        });
        let mut ends = [None; 2];
        while ends.contains(&None) {
            destroyed.read(|report| {
                if let Some(place) = cookies.iter().position(|one| *one == report.cookie) {
                    ends[place] = Some(report);
                }
            });
        }
        let ends = ends.map(Option::unwrap);
        let facts = ends.map(|end| (end.was_established, end.was_reset, end.was_answered));
        assert_eq!(facts, [(false, false, None), (false, false, Some(true))]);
    }

    #[test]
    fn ports_of_all_states_are_listed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let first = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        let port = first.local_addr().unwrap().port();
        // the side that closes first keeps the port in TIME_WAIT
        drop(first);
        drop(other);
        let mut ports = Vec::new();
        local_ports(|one| ports.push(one)).unwrap();
        let listening = listener.local_addr().unwrap().port();
        assert!(ports.contains(&port) && ports.contains(&listening));
    }

    #[test]
    fn a_list_that_the_kernel_refuses_is_an_error() {
        // no protocol of TCP's kind has this number (RFC 5237)
        let refused = dump(253, (STATES, 0), |_| {}).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOENT));
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
            destroyed.read(|report| {
                if let Some(place) = cookies.iter().position(|one| *one == report.cookie) {
                    ports[place] = Some(report.local.port());
                }
            });
        }
        assert_eq!(ports, [Some(0), Some(port)]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(body in prop::collection::vec(any::<u8>(), 0..400)) {
            parse(NetlinkMessage { kind: SOCK_DIAG_BY_FAMILY, sequence: 0, body: &body });
        }

        #[test]
        fn a_message_cut_anywhere_never_panics(cut in 0usize..400, len in 0u16..300) {
            let mut bytes = vec![1; 400];
            bytes[..4].copy_from_slice(&380u32.to_ne_bytes());
            bytes[HEADER + MESSAGE..HEADER + MESSAGE + 2].copy_from_slice(&len.to_ne_bytes());
            bytes[HEADER + MESSAGE + 2..HEADER + MESSAGE + 4].copy_from_slice(&2u16.to_ne_bytes());
            messages(&bytes[..cut]).flatten().for_each(|message| {
                parse(message);
            });
            parse(NetlinkMessage { kind: SOCK_DIAG_BY_FAMILY, sequence: 0, body: &bytes[HEADER..cut.max(HEADER)] });
        }
    }
}
