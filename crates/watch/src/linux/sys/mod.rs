//! The system calls that nothing safe offers: seccomp notifications, other processes' memory and descriptors, socket
//! options. Nothing here decides anything.

pub(crate) mod address;
pub(crate) mod diag;
pub(crate) mod fallback_responder;
pub(crate) mod filter;
pub(crate) mod launch;
pub(crate) mod notify;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod secret_dir;
pub(crate) mod signals;
pub(crate) mod socket;
pub(crate) mod terminal;
pub(crate) mod timer;

use std::io;

/// The result of a system call that tells its error by -1.
fn checked(result: impl Into<i64>) -> io::Result<i64> {
    match result.into() {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}
