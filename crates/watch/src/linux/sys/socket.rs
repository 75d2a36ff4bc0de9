//! What is asked of copies of a program's sockets, and the few kinds of socket that the standard library cannot make.
#![allow(
    unsafe_code,
    reason = "getsockopt and setsockopt of options that no crate offers"
)]

use super::checked;
use socket2::{Domain, SockAddr, SockRef, Socket};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// From linux/socket.h; libc has no name for it.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// The states of a TCP socket that matter here (linux/tcp_states.h).
const TCP_CLOSE: u8 = 7;

/// Reads an option that is a plain number.
fn option<T: Copy + Default>(socket: &impl AsFd, level: i32, name: i32) -> io::Result<T> {
    let mut value = T::default();
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into `value`, every bit pattern of which is valid: T is a plain number.
    checked(unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut len,
        )
    })?;
    Ok(value)
}

fn set_option<T: Copy>(socket: &impl AsFd, level: i32, name: i32, value: T) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of `value`, a plain number.
    checked(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })?;
    Ok(())
}

/// The kernel's name of a socket, never given to another.
pub(crate) fn cookie(socket: &impl AsFd) -> io::Result<u64> {
    option(socket, libc::SOL_SOCKET, libc::SO_COOKIE)
}

/// The network namespace that a socket lives in; before Linux 5.14 it cannot be told, of any.
pub(crate) fn namespace(socket: &impl AsFd) -> Option<u64> {
    option(socket, libc::SOL_SOCKET, SO_NETNS_COOKIE).ok()
}

/// Whether packets of a socket are steered in a way that a socket of ours would not follow.
pub(crate) fn is_steered(socket: &impl AsFd) -> bool {
    let mark: u32 = option(socket, libc::SOL_SOCKET, libc::SO_MARK).unwrap_or(0);
    let device: u8 = option(socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE).unwrap_or(0);
    mark != 0 || device != 0
}

/// The protocol of a socket, such as `IPPROTO_TCP`; other families than the Internet's have numbers of their own.
pub(crate) fn protocol(socket: &impl AsFd) -> io::Result<i32> {
    option(socket, libc::SOL_SOCKET, libc::SO_PROTOCOL)
}

/// The address that a socket of the Internet has, unspecified as long as it is not bound; `None` for other families.
pub(crate) fn local_address(socket: &impl AsFd) -> Option<SocketAddr> {
    SockRef::from(socket).local_addr().ok()?.as_socket()
}

/// Whether a TCP socket is neither connected, connecting nor listening.
pub(crate) fn is_idle(socket: &impl AsFd) -> bool {
    // the state is the first byte of tcp_info
    option::<u8>(socket, libc::IPPROTO_TCP, libc::TCP_INFO).is_ok_and(|state| state == TCP_CLOSE)
}

/// Whether a TCP socket has a peer that the kernel would name.
pub(crate) fn is_connected(socket: &impl AsFd) -> bool {
    const SYN_SENT: u8 = 2;
    option::<u8>(socket, libc::IPPROTO_TCP, libc::TCP_INFO)
        .is_ok_and(|state| state != TCP_CLOSE && state != SYN_SENT)
}

/// How many bytes of payload the kernel has received on a connection whose other side has ended; `None` where it does not tell.
pub(crate) fn received_to_the_end(socket: &impl AsFd) -> Option<u64> {
    // linux/tcp.h: tcpi_bytes_received ends here; the rest is not asked for
    const BYTES_RECEIVED: usize = 128;
    let info: [u8; BYTES_RECEIVED + 8] = tcp_info(socket)?;
    let count = u64::from_ne_bytes(*info[BYTES_RECEIVED..].first_chunk()?);
    // the end takes a place in the sequence
    count.checked_sub(1)
}

/// Whether the kernel has no figures of a TCP socket: it was never connected, or was disconnected.
pub(crate) fn is_blank(socket: &impl AsFd) -> bool {
    // linux/tcp.h: tcpi_segs_out
    const SEGS_OUT: usize = 136;
    let info: Option<[u8; SEGS_OUT + 4]> = tcp_info(socket);
    info.is_some_and(|info| info[SEGS_OUT..] == [0; 4])
}

/// The beginning of `struct tcp_info`; `None` where the kernel's is shorter.
fn tcp_info<const LEN: usize>(socket: &impl AsFd) -> Option<[u8; LEN]> {
    let mut info = [0u8; LEN];
    let mut len = LEN as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into `info`.
    checked(unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    })
    .ok()?;
    (len as usize == LEN).then_some(info)
}

/// The interval of TCP keep-alive probes in seconds, where they are on: how long the connection idles before the first.
pub(crate) fn probe_interval(socket: &impl AsFd) -> Option<u32> {
    let on: i32 = option(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE).ok()?;
    if on == 0 {
        return None;
    }
    let idle: i32 = option(socket, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE).ok()?;
    u32::try_from(idle).ok()
}

/// A deferred connect (TCP_FASTOPEN_CONNECT) would wait for the first data: from now on it connects when asked to.
pub(crate) fn connect_at_once(socket: &impl AsFd) {
    let _ = set_option(socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 0i32);
}

/// Binds to an address with whatever port the connect finds.
pub(crate) fn bind_address(socket: &Socket, address: IpAddr) -> io::Result<()> {
    let _ = set_option(
        socket,
        libc::IPPROTO_IP,
        libc::IP_BIND_ADDRESS_NO_PORT,
        1i32,
    );
    socket.bind(&SockAddr::from(SocketAddr::new(address, 0)))
}

/// Binds a socket of ours to the very address and port of a program's, which leads elsewhere. The program's options are
/// afterwards what they were.
pub(crate) fn share_address(theirs: &Socket, ours: &Socket, address: SocketAddr) -> io::Result<()> {
    let before = theirs.reuse_address()?;
    theirs.set_reuse_address(true)?;
    let host = match (address.ip(), ours.domain()?) {
        // an unspecified address is of the family of the program's socket
        (host, Domain::IPV6) if host.is_unspecified() => Ipv6Addr::UNSPECIFIED.into(),
        (host, _) if host.is_unspecified() => Ipv4Addr::UNSPECIFIED.into(),
        (host, _) => host,
    };
    let bound = ours
        .set_reuse_address(true)
        .and_then(|()| ours.bind(&SockAddr::from(SocketAddr::new(host, address.port()))));
    theirs.set_reuse_address(before)?;
    bound
}

/// Takes a datagram socket's peer away, and the address and port that it was given for that.
pub(crate) fn disconnect(socket: &impl AsFd) {
    // SAFETY: an address of zeroes is the one that asks for this (AF_UNSPEC); the kernel reads it.
    let _ = unsafe {
        let nobody: libc::sockaddr = std::mem::zeroed();
        libc::connect(
            socket.as_fd().as_raw_fd(),
            &raw const nobody,
            size_of::<libc::sockaddr>() as libc::socklen_t,
        )
    };
}

/// What a look at a socket gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peeked {
    /// So many bytes of the next datagram, which stays where it is.
    Bytes(usize),
    /// There is none.
    Nothing,
    /// An error waits for the program, and goes on waiting.
    Failed,
}

/// Looks at the next datagram.
pub(crate) fn peek(socket: &impl AsFd, into: &mut [u8]) -> Peeked {
    let descriptor = socket.as_fd().as_raw_fd();
    let mut poll = libc::pollfd {
        fd: descriptor,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one pollfd, as the count says.
    unsafe { libc::poll(&raw mut poll, 1, 0) };
    // to receive would take the error away
    if poll.revents & libc::POLLERR != 0 {
        return Peeked::Failed;
    }
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    // SAFETY: the kernel writes into the buffer, not beyond its end.
    let count = unsafe { libc::recv(descriptor, into.as_mut_ptr().cast(), into.len(), flags) };
    usize::try_from(count).map_or(Peeked::Nothing, Peeked::Bytes)
}

/// Makes the end of a connection a RST instead of a FIN.
pub(crate) fn reset_on_close(socket: &impl AsFd) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let _ = set_option(socket, libc::SOL_SOCKET, libc::SO_LINGER, linger);
}

/// How long a blocking connect may take, if that is bounded.
pub(crate) fn patience(socket: &Socket) -> Option<Duration> {
    socket.write_timeout().ok().flatten()
}

/// A non-blocking TCP socket for an address of this family.
pub(crate) fn tcp_for(address: SocketAddr) -> io::Result<Socket> {
    Socket::new(
        Domain::for_address(address),
        socket2::Type::STREAM.nonblocking().cloexec(),
        Some(socket2::Protocol::TCP),
    )
}
