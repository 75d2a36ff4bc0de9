//! Packet sockets (packet(7)): opened deaf, so that options, a filter or a ring are there before the first packet, then made to hear.
//! What is heard is the caller's matter.
#![allow(unsafe_code, reason = "packet sockets have no safe form")]

use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::io;

/// What a packet begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// The head of the link, such as Ethernet's.
    WithLink,
    /// The network's head, such as IP's.
    WithNetwork,
}

/// A socket that hears nothing yet; neither blocking nor inherited.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] without CAP_NET_RAW.
pub fn open(begins: Begins) -> io::Result<OwnedFd> {
    let kind = match begins {
        Begins::WithLink => libc::SOCK_RAW,
        Begins::WithNetwork => libc::SOCK_DGRAM,
    };
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket(2) takes numbers only; protocol 0 hears nothing.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` is open, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes it hear all protocols: of the device with this index in the calling thread's network namespace, or of all devices.
///
/// # Errors
/// Those of bind(2): there is no such device.
pub fn hear(socket: impl AsFd, device: Option<u32>) -> io::Result<()> {
    // SAFETY: a sockaddr_ll of zeroes is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = device.unwrap_or(0) as i32;
    // SAFETY: address and length are those of a sockaddr_ll that lives through the call.
    let done = unsafe {
        libc::bind(
            socket.as_fd().as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
