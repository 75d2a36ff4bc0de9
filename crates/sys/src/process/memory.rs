//! The memory of other processes: process_vm_readv(2), or /proc/PID/mem where a container refuses
//! that.

use crate::checked;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

/// Copies bytes out of a process.
///
/// # Errors
/// Those of process_vm_readv(2), or of /proc/PID/mem where the first is refused; EFAULT if fewer
/// bytes than `into` has could be copied.
pub fn read_memory(thread: u32, address: u64, into: &mut [u8]) -> io::Result<()> {
    match read_by_call(thread, address, into) {
        Err(error) if is_refused(&error) => read_by_file(thread, address, into),
        done => done,
    }
}

/// Tries to copy a byte out of a child of ours that has not run another program: by
/// process_vm_readv(2), and by /proc/PID/mem.
pub fn try_read_memory(child: u32) -> [io::Result<()>; 2] {
    static BYTE: u8 = 1;
    let address = (&raw const BYTE) as u64;
    [read_by_call, read_by_file].map(|read| read(child, address, &mut [0]))
}

/// Copies bytes into a process whose call waits for our response.
///
/// # Errors
/// Those of process_vm_writev(2), or of /proc/PID/mem where the first is refused; EFAULT if fewer
/// bytes than `from` has could be copied.
pub(crate) fn write_memory(thread: u32, address: u64, from: &[u8]) -> io::Result<()> {
    match write_by_call(thread, address, from) {
        Err(error) if is_refused(&error) => write_by_file(thread, address, from),
        done => done,
    }
}

fn is_refused(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS)
    )
}

fn read_by_call(thread: u32, address: u64, into: &mut [u8]) -> io::Result<()> {
    let ours = span(into.as_mut_ptr(), into.len());
    let theirs = span(address as *mut u8, into.len());
    // SAFETY: the local part is the slice, which the kernel fills; the remote address is checked by
    // the kernel.
    let count = unsafe {
        libc::process_vm_readv(thread as i32, &raw const ours, 1, &raw const theirs, 1, 0)
    };
    whole(count, into.len())
}

fn write_by_call(thread: u32, address: u64, from: &[u8]) -> io::Result<()> {
    let ours = span(from.as_ptr().cast_mut(), from.len());
    let theirs = span(address as *mut u8, from.len());
    // SAFETY: the local part is the slice, which the kernel only reads; the remote address is
    // checked by the kernel.
    let count = unsafe {
        libc::process_vm_writev(thread as i32, &raw const ours, 1, &raw const theirs, 1, 0)
    };
    whole(count, from.len())
}

fn span(start: *mut u8, length: usize) -> libc::iovec {
    libc::iovec {
        iov_base: start.cast(),
        iov_len: length,
    }
}

fn read_by_file(thread: u32, address: u64, into: &mut [u8]) -> io::Result<()> {
    let memory = OpenOptions::new().read(true).open(path(thread))?;
    memory.read_exact_at(into, address).map_err(not_mapped)
}

fn write_by_file(thread: u32, address: u64, from: &[u8]) -> io::Result<()> {
    // the file ignores the protection of pages, as a debugger needs it
    let maps = fs::read_to_string(format!("/proc/{thread}/maps"))?;
    if !is_writable(&maps, address, from.len() as u64) {
        return Err(io::Error::from_raw_os_error(libc::EFAULT));
    }
    let memory = OpenOptions::new().write(true).open(path(thread))?;
    memory.write_all_at(from, address).map_err(not_mapped)
}

/// Whether a range of addresses is writable by these lines of /proc/PID/maps.
fn is_writable(maps: &str, address: u64, len: u64) -> bool {
    let Some(end) = address.checked_add(len) else {
        return false;
    };
    let mut at = address;
    for line in maps.lines() {
        let Some((range, rest)) = line.split_once(' ') else {
            continue;
        };
        let bounds = range.split_once('-').map(|(start, end)| {
            [start, end].map(|digits| u64::from_str_radix(digits, 16).unwrap_or(0))
        });
        if let Some([start, end]) = bounds
            && (start..end).contains(&at)
            && rest.as_bytes().get(1) == Some(&b'w')
        {
            at = end;
        }
    }
    at >= end
}

fn path(thread: u32) -> String {
    format!("/proc/{thread}/mem")
}

/// The error of the system calls where the file has another one.
fn not_mapped(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        None | Some(libc::EIO) => io::Error::from_raw_os_error(libc::EFAULT),
        Some(_) => error,
    }
}

fn whole(count: isize, wanted: usize) -> io::Result<()> {
    if checked(count as i64)? as usize == wanted {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// In memory that this program may only read.
    static CONSTANT: [u8; 3] = [1, 2, 3];

    #[test]
    fn the_file_reads_and_writes_what_the_calls_do() {
        let (this, mut place) = (std::process::id(), [7u8; 3]);
        let address = (&raw mut place) as u64;
        for (read, write) in [
            (
                read_by_call as fn(u32, u64, &mut [u8]) -> _,
                write_by_call as fn(u32, u64, &[u8]) -> _,
            ),
            (read_by_file, write_by_file),
        ] {
            let mut copy = [0; 3];
            read(this, address, &mut copy).unwrap();
            assert_eq!(copy, [7; 3]);
            write(this, address, &[7; 3]).unwrap();
            let unmapped = read(this, 8, &mut copy).unwrap_err();
            assert_eq!(unmapped.raw_os_error(), Some(libc::EFAULT));
            let unmapped = write(this, 8, &copy).unwrap_err();
            assert_eq!(unmapped.raw_os_error(), Some(libc::EFAULT));
            let constant = CONSTANT.as_ptr() as u64;
            let protected = write(this, constant, &[9; 3]).unwrap_err();
            assert_eq!(protected.raw_os_error(), Some(libc::EFAULT));
            read(this, constant, &mut copy).unwrap();
            assert_eq!(copy, [1, 2, 3]);
        }
    }

    #[test]
    fn a_range_is_writable_if_all_of_its_mappings_are() {
        let maps = "1000-2000 rw-p 0 00:00 0\n2000-3000 rw-s 0 00:00 0 /a\n3000-4000 r--p 0 00:00 0\nnonsense\n";
        for (address, len, expected) in [
            (0x1000, 0x2000, true),
            (0x1fff, 2, true),
            (0x2fff, 2, false),
            (0x0fff, 2, false),
            (0x3000, 1, false),
            (u64::MAX, 2, false),
        ] {
            assert_eq!(is_writable(maps, address, len), expected, "{address:x}");
        }
    }
}
