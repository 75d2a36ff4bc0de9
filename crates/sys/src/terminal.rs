//! Terminals: a session for a command.

use crate::checked;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes a command lead a session on that terminal, with its three standard streams there.
///
/// # Errors
/// The descriptor cannot be duplicated.
pub fn lead_session_on(command: &mut Command, terminal: &OwnedFd) -> io::Result<()> {
    command
        .stdin(terminal.try_clone()?)
        .stdout(terminal.try_clone()?)
        .stderr(terminal.try_clone()?);
    let lead = || {
        // SAFETY: takes nothing.
        checked(unsafe { libc::setsid() })?;
        // SAFETY: takes plain numbers; standard input is the terminal by now.
        checked(unsafe { libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0) })?;
        Ok(())
    };
    // SAFETY: `lead` runs in the forked child; it makes system calls only and allocates nothing.
    unsafe { command.pre_exec(lead) };
    Ok(())
}
