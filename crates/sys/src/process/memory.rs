//! The memory of other processes (process_vm_readv(2)).

use crate::checked;
use std::io;

/// Copies bytes out of a process.
///
/// # Errors
/// Those of process_vm_readv(2); EFAULT if fewer bytes than `into` has could be copied.
pub fn read_memory(thread: u32, address: u64, into: &mut [u8]) -> io::Result<()> {
    let ours = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let theirs = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: into.len(),
    };
    // SAFETY: the local part is the slice, which the kernel fills; the remote address is checked by the kernel.
    let count = checked(unsafe {
        libc::process_vm_readv(thread as i32, &raw const ours, 1, &raw const theirs, 1, 0) as i64
    })?;
    whole(count, into.len())
}

/// Tries to copy a byte out of a child of ours that has not run another program.
///
/// # Errors
/// This system refuses it for every process.
pub fn try_read_memory(child: u32) -> io::Result<()> {
    static BYTE: u8 = 1;
    read_memory(child, (&raw const BYTE) as u64, &mut [0])
}

/// Copies bytes into a process whose call waits for our response.
///
/// # Errors
/// Those of process_vm_writev(2); EFAULT if fewer bytes than `from` has could be copied.
pub(crate) fn write_memory(thread: u32, address: u64, from: &[u8]) -> io::Result<()> {
    let ours = libc::iovec {
        iov_base: from.as_ptr().cast_mut().cast(),
        iov_len: from.len(),
    };
    let theirs = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: from.len(),
    };
    // SAFETY: the local part is the slice, which the kernel only reads; the remote address is checked by the kernel.
    let count = checked(unsafe {
        libc::process_vm_writev(thread as i32, &raw const ours, 1, &raw const theirs, 1, 0) as i64
    })?;
    whole(count, from.len())
}

fn whole(count: i64, wanted: usize) -> io::Result<()> {
    if usize::try_from(count) == Ok(wanted) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::EFAULT))
    }
}

/// The size of a page of memory in bytes.
pub fn page_size() -> u64 {
    // SAFETY: takes and gives plain numbers.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}
