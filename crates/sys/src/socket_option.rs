//! getsockopt(2) and setsockopt(2) of options whose values are plain data.

use crate::checked;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// A value that the kernel can read and write as bytes.
///
/// # Safety
/// Every pattern of bytes is a valid value, zeroes included.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: a number.
unsafe impl Plain for u8 {}
// SAFETY: a number.
unsafe impl Plain for i32 {}
// SAFETY: a number.
unsafe impl Plain for u32 {}
// SAFETY: a number.
unsafe impl Plain for u64 {}
// SAFETY: four numbers.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_req3 {}
// SAFETY: bytes.
unsafe impl<const LEN: usize> Plain for [u8; LEN] {}

/// Reads an option; the rest of a value that the kernel has less of stays zero.
pub(crate) fn read<T: Plain>(socket: &impl AsFd, level: i32, name: i32) -> io::Result<T> {
    read_with_len(socket, level, name).map(|(value, _)| value)
}

/// Reads an option, and how many bytes of it the kernel has written.
pub(crate) fn read_with_len<T: Plain>(
    socket: &impl AsFd,
    level: i32,
    name: i32,
) -> io::Result<(T, usize)> {
    // SAFETY: zeroes are a valid `T`.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into `value`, every pattern of which is valid.
    checked(unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut len,
        )
    })?;
    Ok((value, len as usize))
}

/// Sets an option.
pub(crate) fn set<T: Plain>(
    socket: &impl AsFd,
    level: i32,
    name: i32,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of `value`, which is plain data.
    checked(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })?;
    Ok(())
}
