//! Receive timestamps of the kernel (SO_TIMESTAMPING): when data reached the socket, not when we
//! read it.

use crate::socket_option;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

/// Makes the kernel record when it receives data for this socket.
///
/// # Errors
/// Those of setsockopt(2): the socket has no timestamps.
pub fn enable(socket: &impl AsFd) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    socket_option::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &flags)
}

/// Reads from a socket. Returns the number of bytes, and the timestamp of their last segment in
/// nanoseconds of CLOCK_REALTIME if the kernel recorded one.
///
/// # Errors
/// Those of recvmsg(2).
#[inline]
pub fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    receive_from(socket, buffer, None, 0)
}

/// [`receive`] with flags, and with the link-layer address of the sender.
#[inline]
pub(crate) fn receive_from(
    socket: &impl AsFd,
    buffer: &mut [u8],
    from: Option<&mut libc::sockaddr_ll>,
    flags: libc::c_int,
) -> io::Result<(usize, Option<u64>)> {
    let mut time = None;
    let count = receive_message(socket, buffer, from, flags, |header| {
        // SAFETY: a whole message of the kernel.
        time = time.or_else(|| unsafe { time_of(header) });
    })?;
    Ok((count, time))
}

/// Room for one `scm_timestamping` (three timespecs) and a number with their headers, aligned as
/// `cmsghdr` requires.
#[repr(C, align(8))]
pub(crate) struct Control([u8; 128]);

/// Reads from a socket, and visits the control messages. Returns the number of bytes.
#[inline]
pub(crate) fn receive_message(
    socket: &impl AsFd,
    buffer: &mut [u8],
    from: Option<&mut libc::sockaddr_ll>,
    flags: libc::c_int,
    mut visit: impl FnMut(*const libc::cmsghdr),
) -> io::Result<usize> {
    let mut control = MaybeUninit::<Control>::uninit();
    let mut parts = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: a msghdr of zeroes is valid; the pointers set below outlive the call.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    if let Some(from) = from {
        message.msg_name = std::ptr::from_mut(from).cast();
        message.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    }
    message.msg_iov = &raw mut parts;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of::<Control>() as _;
    let descriptor = socket.as_fd().as_raw_fd();
    // The C library's recvmsg is a cancellation point, which costs two atomic operations.
    // SAFETY: the message names writable buffers of the sizes given.
    let count = unsafe { libc::syscall(libc::SYS_recvmsg, descriptor, &raw mut message, flags) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel filled `msg_controllen` bytes of the control buffer with well-formed
    // headers.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !header.is_null() {
        visit(header);
        // SAFETY: the header belongs to the message.
        header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
    }
    Ok(count)
}

/// The time in a control message, in nanoseconds of CLOCK_REALTIME, if it carries one.
///
/// # Safety
/// The header is followed by the data that its type has.
#[inline]
pub(crate) unsafe fn time_of(header: *const libc::cmsghdr) -> Option<u64> {
    // SAFETY: by the caller.
    let head = unsafe { header.read_unaligned() };
    let carries_time = matches!(
        (head.cmsg_level, head.cmsg_type),
        (
            libc::SOL_SOCKET,
            libc::SCM_TIMESTAMPING | libc::SCM_TIMESTAMPNS
        )
    );
    if !carries_time {
        return None;
    }
    // SAFETY: SCM_TIMESTAMPNS carries one timespec, SCM_TIMESTAMPING three, the first of which is
    // the software timestamp.
    let time = unsafe {
        libc::CMSG_DATA(header)
            .cast::<libc::timespec>()
            .read_unaligned()
    };
    (time.tv_sec > 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::time::SystemTime;

    #[test]
    fn received_data_has_the_time_of_its_arrival() {
        let now = || {
            let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
            u64::try_from(now.as_nanos()).unwrap()
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        enable(&receiver).unwrap();
        let before = now();
        sender.write_all(b"hello").unwrap();
        let mut buffer = [0; 16];
        let (count, timestamp) = receive(&receiver, &mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"hello");
        // the kernel switches timestamps on a moment after the option is set, so the first may be
        // missing
        if let Some(at) = timestamp {
            assert!((before..=now()).contains(&at));
        }
        drop(sender);
        assert_eq!(receive(&receiver, &mut buffer).unwrap().0, 0);
    }
}
