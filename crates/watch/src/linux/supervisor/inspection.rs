//! Whether this system lets us inspect processes at all, and what a failed inspection of one means.
//!
//! A container's seccomp profile may refuse `pidfd_getfd` or `process_vm_readv` for every process.
//! Then nothing can be watched, whatever the program does. This is tried once, on a child of ours.

use crate::Unwatched;
use intact_sys::process::{try_copy_descriptor, try_read_memory};
use std::io;

/// What this system refuses for every process.
pub(super) struct Inspection {
    refused: Vec<Unwatched>,
}

impl Inspection {
    /// Tries both system calls on a child of ours that has not run another program.
    pub(super) fn try_on(child: u32) -> Inspection {
        let copied = refusal(try_copy_descriptor(child)).map(Unwatched::NoDescriptors);
        let read = refusal(try_read_memory(child)).map(Unwatched::NoMemory);
        Inspection {
            refused: copied.into_iter().chain(read).collect(),
        }
    }

    /// Why nothing can be watched; empty where this system refuses nothing.
    pub(super) fn refused(&self) -> &[Unwatched] {
        &self.refused
    }

    /// Why a connection is not watched whose caller could not be read; `None` for a mistake of the caller.
    pub(super) fn reason(&self, error: &io::Error) -> Option<Unwatched> {
        match error.raw_os_error() {
            _ if !self.refused.is_empty() => Some(self.refused[0]),
            Some(libc::EFAULT | libc::EBADF) => None,
            Some(libc::EPERM | libc::EACCES) => Some(Unwatched::Unreadable),
            _ => Some(Unwatched::NoRelay),
        }
    }
}

/// The error number, unless it says something of the moment and not of the permission.
fn refusal(tried: io::Result<()>) -> Option<i32> {
    let number = tried.err()?.raw_os_error()?;
    let is_of_the_moment = [libc::ESRCH, libc::EMFILE, libc::ENFILE, libc::ENOMEM];
    (!is_of_the_moment.contains(&number)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_refused_for_our_own_process() {
        assert_eq!(Inspection::try_on(std::process::id()).refused(), []);
    }

    #[test]
    fn an_error_of_the_moment_is_no_refusal() {
        let failed = |number| refusal(Err(io::Error::from_raw_os_error(number)));
        assert_eq!(failed(libc::EPERM), Some(libc::EPERM));
        assert_eq!(failed(libc::ENOSYS), Some(libc::ENOSYS));
        assert_eq!(failed(libc::ESRCH), None);
        assert_eq!(failed(libc::EMFILE), None);
        assert_eq!(refusal(Ok(())), None);
    }
}
