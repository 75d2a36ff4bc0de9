//! Socket options that the standard library does not offer, and the kinds of socket that it cannot
//! create.

use crate::socket_option;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recv, recvmsg};
use socket2::{Domain, SockAddr, SockRef, Socket, TcpKeepalive};
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// From linux/socket.h; libc has no name for it.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// The states of a TCP socket that matter here (linux/tcp_states.h).
const TCP_CLOSE: u8 = 7;

/// The kernel's id of a socket (SO_COOKIE), never used twice.
///
/// # Errors
/// Those of getsockopt(2).
pub fn cookie(socket: &impl AsFd) -> io::Result<u64> {
    socket_option::read(socket, libc::SOL_SOCKET, libc::SO_COOKIE)
}

/// The id of a socket's network namespace; `None` before Linux 5.14.
pub fn namespace(socket: &impl AsFd) -> Option<u64> {
    socket_option::read(socket, libc::SOL_SOCKET, SO_NETNS_COOKIE).ok()
}

/// Whether a mark or a device binding steers the socket's packets; a socket of ours would not
/// follow.
pub fn is_steered(socket: &impl AsFd) -> bool {
    let mark: u32 = socket_option::read(socket, libc::SOL_SOCKET, libc::SO_MARK).unwrap_or(0);
    let device: u8 =
        socket_option::read(socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE).unwrap_or(0);
    mark != 0 || device != 0
}

/// The protocol of a socket, such as `IPPROTO_TCP`; other families than the Internet's have other
/// numbers.
///
/// # Errors
/// Those of getsockopt(2).
pub fn protocol(socket: &impl AsFd) -> io::Result<i32> {
    socket_option::read(socket, libc::SOL_SOCKET, libc::SO_PROTOCOL)
}

/// Whether the socket carries a stream, of bytes or of packets.
pub fn is_stream(socket: &impl AsFd) -> bool {
    socket_option::read(socket, libc::SOL_SOCKET, libc::SO_TYPE)
        .is_ok_and(|kind| matches!(kind, libc::SOCK_STREAM | libc::SOCK_SEQPACKET))
}

/// Whether a connected datagram socket has received a datagram, read or not: the kernel notes the
/// processor that took it.
pub fn has_received(socket: &impl AsFd) -> bool {
    socket_option::read(socket, libc::SOL_SOCKET, libc::SO_INCOMING_CPU)
        .is_ok_and(|cpu: i32| cpu >= 0)
}

/// The local address of a socket of the Internet, unspecified until it is bound; `None` for other
/// families.
pub fn local_address(socket: &impl AsFd) -> Option<SocketAddr> {
    SockRef::from(socket).local_addr().ok()?.as_socket()
}

/// Whether a TCP socket is neither connected, connecting nor listening.
pub fn is_idle(socket: &impl AsFd) -> bool {
    // the state is the first byte of tcp_info
    socket_option::read::<u8>(socket, libc::IPPROTO_TCP, libc::TCP_INFO)
        .is_ok_and(|state| state == TCP_CLOSE)
}

/// Whether getpeername(2) on a TCP socket would succeed.
pub fn is_connected(socket: &impl AsFd) -> bool {
    const SYN_SENT: u8 = 2;
    socket_option::read::<u8>(socket, libc::IPPROTO_TCP, libc::TCP_INFO)
        .is_ok_and(|state| state != TCP_CLOSE && state != SYN_SENT)
}

/// Payload bytes that the kernel has received on a connection whose other side sent a FIN; `None`
/// if it does not count them.
pub fn received_to_the_end(socket: &impl AsFd) -> Option<u64> {
    // linux/tcp.h: tcpi_bytes_received
    let count = u64::from_ne_bytes(tcp_info(socket, 128)?);
    // the FIN takes one sequence number
    count.checked_sub(1)
}

/// Payload bytes that the peer's TCP acknowledged on a connection that was opened here; `None` if
/// the kernel does not count them.
pub fn acknowledged(socket: &impl AsFd) -> Option<u64> {
    // linux/tcp.h: tcpi_bytes_acked
    let count = u64::from_ne_bytes(tcp_info(socket, 120)?);
    // the SYN takes one sequence number
    count.checked_sub(1)
}

/// Of a connection the smoothed round trip in microseconds (RFC 6298), the segments that were sent
/// again, and the segments with data that were sent; `None` if the kernel does not count them.
pub fn acknowledgements(socket: &impl AsFd) -> Option<[u32; 3]> {
    let info = socket_option::read_with_len(socket, libc::IPPROTO_TCP, libc::TCP_INFO);
    let (info, len): ([u8; 256], usize) = info.ok()?;
    let number = |at: usize| Some(u32::from_ne_bytes(*info[..len].get(at..)?.first_chunk()?));
    // linux/tcp.h: tcpi_rtt, tcpi_total_retrans, tcpi_data_segs_out
    Some([number(68)?, number(100)?, number(156)?])
}

/// Whether the kernel has no counts for a TCP socket: it was never connected, or was disconnected.
pub fn is_blank(socket: &impl AsFd) -> bool {
    // linux/tcp.h: tcpi_segs_out
    tcp_info(socket, 136) == Some([0; 4])
}

/// Whether a listener drops connections because its queue is full of those that were not accepted.
pub fn is_queue_full(listener: &impl AsFd) -> bool {
    // linux/tcp.h: tcpi_unacked and tcpi_sacked, which are the queue's length and its limit here
    let number = |at| tcp_info(listener, at).map(u32::from_ne_bytes);
    number(24) > number(28)
}

/// The bytes at an offset of `struct tcp_info`; `None` where the kernel's is shorter.
fn tcp_info<const LEN: usize>(socket: &impl AsFd, at: usize) -> Option<[u8; LEN]> {
    let info = socket_option::read_with_len(socket, libc::IPPROTO_TCP, libc::TCP_INFO);
    let (info, len): ([u8; 256], usize) = info.ok()?;
    info[..len].get(at..)?.first_chunk().copied()
}

/// How the kernel finds out that the peer of a TCP socket is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerChecks {
    /// Keep-alive probes; absent where they are off.
    pub probes: Option<KeepAliveProbes>,
    /// The limit on unacknowledged bytes (TCP_USER_TIMEOUT); absent where none is set.
    pub user_timeout: Option<Duration>,
}

/// The keep-alive probes of a TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAliveProbes {
    /// Idle time before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Probes without a response that end the connection.
    pub count: u32,
}

impl PeerChecks {
    /// The options of a socket.
    pub fn of(socket: &impl AsFd) -> PeerChecks {
        let socket = SockRef::from(socket);
        let probes = || {
            Some(KeepAliveProbes {
                idle: socket.tcp_keepalive_time().ok()?,
                interval: socket.tcp_keepalive_interval().ok()?,
                count: socket.tcp_keepalive_retries().ok()?,
            })
        };
        PeerChecks {
            probes: socket.keepalive().is_ok_and(|on| on).then(probes).flatten(),
            user_timeout: socket.tcp_user_timeout().ok().flatten(),
        }
    }

    /// Sets the options that are present on another socket.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn set(&self, socket: &impl AsFd) -> io::Result<()> {
        let socket = SockRef::from(socket);
        if let Some(probes) = self.probes {
            let keepalive = TcpKeepalive::new()
                .with_time(probes.idle)
                .with_interval(probes.interval)
                .with_retries(probes.count);
            socket.set_tcp_keepalive(&keepalive)?;
        }
        match self.user_timeout {
            Some(limit) => socket.set_tcp_user_timeout(Some(limit)),
            None => Ok(()),
        }
    }
}

/// What connect(2) of a non-blocking socket reports while the handshake is under way.
pub const IN_PROGRESS: i32 = libc::EINPROGRESS;

/// Delays connect(2) until the first data is written. The SYN then carries this data if the kernel
/// has a cookie of the server (TCP_FASTOPEN_CONNECT, RFC 7413).
///
/// # Errors
/// Those of setsockopt(2): the sysctl `net.ipv4.tcp_fastopen` does not allow it.
pub fn defer_connect(socket: &impl AsFd) -> io::Result<()> {
    socket_option::set(socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, &1i32)
}

/// Lets a listener accept data in the SYN, for at most `pending` connections whose handshake is not
/// complete (TCP_FASTOPEN).
///
/// # Errors
/// Those of setsockopt(2).
pub fn accept_fast_open(listener: &impl AsFd, pending: i32) -> io::Result<()> {
    socket_option::set(listener, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, &pending)
}

/// Whether the SYN of a connection carried data and the server accepted it; `None` if the kernel
/// does not report it.
pub fn sent_with_syn(socket: &impl AsFd) -> Option<bool> {
    // linux/tcp.h: tcpi_options, and TCPI_OPT_SYN_DATA
    const SYN_DATA: u8 = 32;
    let [options] = tcp_info(socket, 5)?;
    Some(options & SYN_DATA != 0)
}

/// Switches a deferred connect (TCP_FASTOPEN_CONNECT) off, which would wait for the first data.
pub fn connect_at_once(socket: &impl AsFd) {
    let _ = socket_option::set(socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, &0i32);
}

/// Binds to an address; connect(2) chooses the port.
///
/// # Errors
/// Those of bind(2).
pub fn bind_address(socket: &Socket, address: IpAddr) -> io::Result<()> {
    let _ = socket_option::set(
        socket,
        libc::IPPROTO_IP,
        libc::IP_BIND_ADDRESS_NO_PORT,
        &1i32,
    );
    socket.bind(&SockAddr::from(SocketAddr::new(address, 0)))
}

/// Binds a socket of ours to the address and port of a program's socket, which has another peer.
/// The options of the program's socket are restored.
///
/// # Errors
/// Those of bind(2) and setsockopt(2).
pub fn share_address(theirs: &Socket, ours: &Socket, address: SocketAddr) -> io::Result<()> {
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

/// Numbers that a program may set before it connects, and that change what is sent: where each is,
/// and by what a value that was read is divided before it is set.
const MIRRORED: [(i32, i32, i32); 11] = [
    (libc::IPPROTO_IP, libc::IP_TOS, 1),
    (libc::IPPROTO_IP, libc::IP_TTL, 1),
    (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, 1),
    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, 1),
    (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, 1),
    (libc::SOL_SOCKET, libc::SO_PRIORITY, 1),
    (libc::IPPROTO_TCP, libc::TCP_MAXSEG, 1),
    (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, 1),
    (libc::IPPROTO_TCP, libc::TCP_SYNCNT, 1),
    // the kernel reports twice what was set (socket(7))
    (libc::SOL_SOCKET, libc::SO_SNDBUF, 2),
    (libc::SOL_SOCKET, libc::SO_RCVBUF, 2),
];
/// Room for the name of a congestion control (TCP_CA_NAME_MAX).
const CONGESTION_NAME: usize = 16;

/// Gives a new socket of ours the options of a program's socket that change what is sent. What the
/// program has not set is equal in both, and stays unset.
pub fn mirror(theirs: &impl AsFd, ours: &impl AsFd) {
    for (level, name, divisor) in MIRRORED {
        let read = |socket: BorrowedFd<'_>| socket_option::read::<i32>(&socket, level, name);
        if let (Ok(wanted), Ok(given)) = (read(theirs.as_fd()), read(ours.as_fd()))
            && wanted != given
        {
            let _ = socket_option::set(ours, level, name, &(wanted / divisor));
        }
    }
    let control = |socket: BorrowedFd<'_>| {
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
        socket_option::read::<[u8; CONGESTION_NAME]>(&socket, level, name)
    };
    if let (Ok(wanted), Ok(given)) = (control(theirs.as_fd()), control(ours.as_fd()))
        && wanted != given
    {
        // one that only root may choose stays the default
        let _ = socket_option::set(ours, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &wanted);
    }
}

/// Whether other sockets of the program may have the port of this one (SO_REUSEPORT).
pub fn shares_port(socket: &impl AsFd) -> bool {
    socket_option::read(socket, libc::SOL_SOCKET, libc::SO_REUSEPORT)
        .is_ok_and(|shared: i32| shared != 0)
}

/// Whether a socket is being restored (TCP_REPAIR): its connect sends nothing.
pub fn is_in_repair(socket: &impl AsFd) -> bool {
    socket_option::read(socket, libc::IPPROTO_TCP, libc::TCP_REPAIR).is_ok_and(|on: i32| on == 1)
}

/// Whether a socket is one of the Internet's families.
pub fn is_of_internet(socket: &impl AsFd) -> bool {
    domain(socket).is_ok_and(|domain| matches!(domain, libc::AF_INET | libc::AF_INET6))
}

/// Whether a socket is a Unix socket.
pub fn is_unix(socket: &impl AsFd) -> bool {
    domain(socket).is_ok_and(|domain| domain == libc::AF_UNIX)
}

/// The family of a socket's addresses.
fn domain(socket: &impl AsFd) -> io::Result<i32> {
    socket_option::read(socket, libc::SOL_SOCKET, libc::SO_DOMAIN)
}

/// Whether a call that reads waits without a limit where there is nothing to read.
pub fn waits_for_data(socket: &impl AsFd) -> bool {
    let socket = SockRef::from(socket);
    let is_blocking = !socket.nonblocking().unwrap_or(true);
    is_blocking && socket.read_timeout().is_ok_and(|limit| limit.is_none())
}

/// Most descriptors of one message (SCM_MAX_FD).
const MAX_DESCRIPTORS: usize = 253;

/// The inodes of the connections whose descriptors another process has sent to this Unix socket,
/// with the first message in its queue that has any. Nothing is taken. `None` if there is nothing
/// to read.
pub fn sent_connections(socket: &impl AsFd) -> Option<Vec<u32>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    // without room for data none is copied, and the kernel goes on to the first descriptors
    let seen = recvmsg(socket, &mut [], &mut control, flags);
    if seen.is_err_and(|error| error == rustix::io::Errno::WOULDBLOCK) {
        return None;
    }
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let sockets = descriptors.flatten().filter(is_of_internet);
    let inodes = sockets.filter_map(|one| rustix::fs::fstat(&one).ok());
    Some(
        inodes
            .filter_map(|about| u32::try_from(about.st_ino).ok())
            .collect(),
    )
}

/// Removes a socket's peer, and the address and port that connect(2) chose.
pub fn disconnect(socket: &impl AsFd) {
    let _ = rustix::net::connect_unspec(socket);
}

/// The result of [`peek`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peeked {
    /// This number of bytes of the next datagram, which stays in the queue.
    Bytes(usize),
    /// No datagram is there.
    Nothing,
    /// An error is pending, and stays pending.
    Failed,
}

/// Copies the next datagram without removing it.
pub fn peek(socket: &impl AsFd, into: &mut [u8]) -> Peeked {
    let mut polled = [PollFd::new(socket, PollFlags::IN)];
    let _ = poll(&mut polled, Some(&Timespec::default()));
    // receiving would clear the error
    if polled[0].revents().contains(PollFlags::ERR) {
        return Peeked::Failed;
    }
    match recv(socket, into, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((count, _)) => Peeked::Bytes(count),
        Err(_) => Peeked::Nothing,
    }
}

/// Larger than the number of hops of any packet that was not sent for this purpose (RFC 5082).
const NO_TTL: i32 = 255;
/// The number of hops that packets of our end have meanwhile.
const OUR_TTL: i32 = 64;

/// Makes the kernel drop all packets from `ours` to `theirs`, its other end on this machine, before
/// TCP processes them. So no data, acknowledgement or FIN arrives. The other direction still works.
/// Uses the minimum TTL of RFC 5082, which needs no privilege.
///
/// # Errors
/// Those of setsockopt(2).
pub fn deafen(theirs: &impl AsFd, ours: &impl AsFd) -> io::Result<()> {
    // an IPv6 socket may carry IPv4; each option exists in its own family
    let _ = socket_option::set(ours, libc::IPPROTO_IP, libc::IP_TTL, &OUR_TTL);
    let _ = socket_option::set(ours, libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, &OUR_TTL);
    set_least_ttl(theirs, NO_TTL)
}

/// Ends the effect of [`deafen`].
///
/// # Errors
/// Those of setsockopt(2).
pub fn undeafen(theirs: &impl AsFd) -> io::Result<()> {
    set_least_ttl(theirs, 0)
}

/// Sends with enough hops that a socket receives it after [`deafen`].
pub fn outshout(ours: &impl AsFd) {
    let _ = socket_option::set(ours, libc::IPPROTO_IP, libc::IP_TTL, &NO_TTL);
    let _ = socket_option::set(ours, libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, &NO_TTL);
}

fn set_least_ttl(socket: &impl AsFd, ttl: i32) -> io::Result<()> {
    /// From linux/in6.h; libc has no name for it.
    const IPV6_MINHOPCOUNT: libc::c_int = 73;
    let v6 = socket_option::set(socket, libc::IPPROTO_IPV6, IPV6_MINHOPCOUNT, &ttl);
    let v4 = socket_option::set(socket, libc::IPPROTO_IP, libc::IP_MINTTL, &ttl);
    v6.or(v4)
}

/// Bytes that a TCP socket has received and its program has not read; `None` where the kernel does
/// not say.
pub fn unread(socket: &impl AsFd) -> Option<usize> {
    usize::try_from(rustix::io::ioctl_fionread(socket).ok()?).ok()
}

/// Bytes that were written to a TCP socket and not sent yet; `None` where the kernel does not
/// count.
pub fn unsent(socket: &impl AsFd) -> Option<u32> {
    // linux/tcp.h: tcpi_notsent_bytes
    tcp_info(socket, 144).map(u32::from_ne_bytes)
}

/// Bytes that were written to a TCP socket so far, those that are not sent yet included; `None`
/// where the kernel does not count.
pub fn written(socket: &impl AsFd) -> Option<u64> {
    // linux/tcp.h: tcpi_bytes_sent, tcpi_bytes_retrans
    let [sent, again] = [200, 208].map(|at| tcp_info(socket, at).map(u64::from_ne_bytes));
    Some(sent?.saturating_sub(again?) + u64::from(unsent(socket)?))
}

/// Makes the end of a connection a RST instead of a FIN.
pub fn reset_on_close(socket: &impl AsFd) {
    let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
}

/// A non-blocking TCP socket for an address of this family.
///
/// # Errors
/// Those of socket(2).
pub fn tcp_for(address: SocketAddr) -> io::Result<Socket> {
    Socket::new(
        Domain::for_address(address),
        socket2::Type::STREAM.nonblocking().cloexec(),
        Some(socket2::Protocol::TCP),
    )
}
