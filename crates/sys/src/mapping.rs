//! Memory that is mapped for the kernel or for a child to share (mmap(2)). It is zeroed, begins at
//! a page, and ends with its owner.

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

/// A mapping that may be read and written.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    /// A new mapping, of the start of `file` or of no file.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub(crate) fn new(
        length: usize,
        flags: MapFlags,
        file: Option<BorrowedFd<'_>>,
    ) -> io::Result<Mapping> {
        let (anywhere, access) = (std::ptr::null_mut(), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a mapping of its own, for which the kernel chooses the address.
        let start = unsafe {
            match file {
                Some(file) => mmap(anywhere, length, access, flags, file, 0),
                None => mmap_anonymous(anywhere, length, access, flags),
            }
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, length })
    }

    /// The first byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`. Its owner has lent none of it beyond this.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}
