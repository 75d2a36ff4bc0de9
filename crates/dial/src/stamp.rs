//! Kernel receive stamps (SO_TIMESTAMPING, Linux): when the last segment of a read reached the socket, not when we got round to reading it.
#![allow(unsafe_code, reason = "recvmsg with control messages, setsockopt")]

use crate::Stream;
use std::io;

/// Asks the kernel to stamp what this TCP socket receives. `false`: not to be had here, the caller says so.
pub fn enable(stream: &Stream) -> bool {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        let flags: libc::c_uint =
            libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
        // SAFETY: the option takes a c_uint, whose address and size are given.
        let done = unsafe {
            libc::setsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_TIMESTAMPING,
                (&raw const flags).cast(),
                size_of::<libc::c_uint>() as libc::socklen_t,
            )
        };
        done == 0
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = stream;
        false
    }
}

/// Reads what is there, with the kernel's stamp of its last segment in nanoseconds of CLOCK_REALTIME where there is one.
#[cfg(target_os = "linux")]
#[inline]
pub fn receive(stream: &Stream, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    use std::os::fd::AsRawFd;
    /// Room for one `scm_timestamping` (three timespecs) with its head, aligned as `cmsghdr` wants.
    #[repr(C, align(8))]
    struct Control([u8; 64]);
    let mut control = std::mem::MaybeUninit::<Control>::uninit();
    let mut parts = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: a msghdr of zeroes is valid; the pointers set below outlive the call.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut parts;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the message names one writable buffer and one writable control buffer of the sizes given.
    let got = unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, 0) };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut stamp = None;
    // SAFETY: the kernel filled `msg_controllen` bytes of the control buffer with well-formed headers.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    if !header.is_null() {
        // SAFETY: not null, so it points at a whole header in the control buffer.
        let head = unsafe { &*header };
        if head.cmsg_level == libc::SOL_SOCKET && head.cmsg_type == libc::SCM_TIMESTAMPING {
            // SAFETY: SCM_TIMESTAMPING carries three timespecs, the first of which is the software stamp.
            let time = unsafe {
                libc::CMSG_DATA(header)
                    .cast::<libc::timespec>()
                    .read_unaligned()
            };
            if time.tv_sec > 0 {
                stamp = Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
            }
        }
    }
    Ok((got as usize, stamp))
}

/// Reads what is there; no stamps on this platform.
#[cfg(not(target_os = "linux"))]
pub fn receive(stream: &Stream, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    use std::io::Read;
    let mut stream = stream;
    Ok((stream.read(buffer)?, None))
}
