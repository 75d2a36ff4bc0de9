//! Starts a program under a filter. Between `fork` and `exec` only system calls are made.

use super::listener::{self, NotificationResponse};
use crate::bpf::Instruction;
use crate::signals::{self, SignalMask};
use crate::{checked, descriptors};
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};

/// Why a program was not started.
#[derive(Debug)]
pub enum LaunchError {
    /// The kernel refused the filter.
    Filter(io::Error),
    /// The program could not be run.
    Exec(io::Error),
    /// This signal ended the child before the program ran: a terminal, or timeout(1), sends it to
    /// both.
    Signalled(i32),
    /// Another system call failed before the program ran.
    Io(io::Error),
}

/// The first byte from the child: whether the filter is installed, with the listener.
const REFUSED: u8 = 1;
const INSTALLED: u8 = 0;
/// The filter is installed, and the kernel cannot let its calls continue.
const UNANSWERABLE: u8 = 2;

/// Starts the command under the filter, with that signal mask; returns the child and the listener's
/// descriptor.
///
/// The child calls exec itself. If exec fails, the child ends by SIGKILL: its exit may be filtered,
/// and no process answers filtered calls yet.
///
/// # Errors
/// See [`LaunchError`]; the child has ended by then.
pub fn launch(
    mut command: Command,
    filter: &[Instruction],
    blocked: SignalMask,
) -> Result<(Child, OwnedFd), LaunchError> {
    let (ours, theirs) = UnixStream::pair().map_err(LaunchError::Io)?;
    let arguments = ExecArgs::of(&command).map_err(LaunchError::Exec)?;
    let code = filter.to_vec();
    let prepare = move || {
        blocked.apply();
        match install(&code) {
            Ok(listener) if !can_continue(&listener) => {
                send(&theirs, UNANSWERABLE, None)?;
                return Err(kill_self());
            }
            Ok(listener) => send(&theirs, INSTALLED, Some(&listener))?,
            Err(error) => {
                send(&theirs, REFUSED, None)?;
                return Err(error);
            }
        }
        let error = arguments.run();
        // a byte is enough for every error number of Linux that this can be
        let number = error
            .raw_os_error()
            .and_then(|number| u8::try_from(number).ok());
        let _ = send(&theirs, number.unwrap_or(u8::MAX), None);
        Err(kill_self())
    };
    // SAFETY: `prepare` runs in the forked child; it makes system calls only and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    let started = command.spawn();
    // it owns this process's copy of the child's end, whose closing must be seen
    drop(command);
    match (started, receive(&ours)) {
        (Ok(mut child), Ok(Some((INSTALLED, Some(listener))))) => match receive(&ours) {
            // exec closed the child's end
            Ok(None) => Ok((child, listener)),
            Ok(Some((number, _))) => {
                let _ = child.wait();
                let error = io::Error::from_raw_os_error(number.into());
                Err(LaunchError::Exec(error))
            }
            Err(error) => {
                drop(listener);
                Err(ended(child, error))
            }
        },
        (Ok(mut child), Ok(Some((UNANSWERABLE, _)))) => {
            let _ = child.wait();
            let error = io::Error::from_raw_os_error(libc::ENOSYS);
            Err(LaunchError::Filter(error))
        }
        (Err(error), Ok(Some((REFUSED, _)))) => Err(LaunchError::Filter(error)),
        (Err(error), _) => Err(LaunchError::Exec(error)),
        (Ok(child), received) => {
            let silent = io::Error::from(io::ErrorKind::UnexpectedEof);
            Err(ended(child, received.err().unwrap_or(silent)))
        }
    }
}

/// Ends a child that has no listener.
fn ended(mut child: Child, error: io::Error) -> LaunchError {
    let _ = child.kill();
    let status = child.wait().ok();
    let signal = status.and_then(|status| status.signal());
    match signal.filter(|signal| signals::is_end(*signal)) {
        Some(signal) => LaunchError::Signalled(signal),
        None => LaunchError::Io(error),
    }
}

/// A program's arguments and environment, as execve(2) takes them.
struct ExecArgs {
    /// Owned by the lists of pointers, which end in a null.
    _owned: Vec<CString>,
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
}

// SAFETY: the pointers are to the strings in here, which are not changed.
unsafe impl Send for ExecArgs {}
// SAFETY: as above.
unsafe impl Sync for ExecArgs {}

impl ExecArgs {
    fn of(command: &Command) -> io::Result<ExecArgs> {
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => variables.insert(key.to_owned(), value.to_owned()),
                None => variables.remove(key),
            };
        }
        let mut owned = vec![CString::new(command.get_program().as_bytes())?];
        for argument in command.get_args() {
            owned.push(CString::new(argument.as_bytes())?);
        }
        let count = owned.len();
        for (key, value) in variables {
            owned.push(CString::new(
                [key.as_bytes(), b"=", value.as_bytes()].concat(),
            )?);
        }
        let list = |strings: &[CString]| {
            let pointers = strings.iter().map(|string| string.as_ptr());
            pointers.chain([std::ptr::null()]).collect()
        };
        Ok(ExecArgs {
            arguments: list(&owned[..count]),
            environment: list(&owned[count..]),
            _owned: owned,
        })
    }

    /// Runs the program in place of this one; returns why it cannot.
    fn run(&self) -> io::Error {
        unsafe extern "C" {
            static mut environ: *const *const libc::c_char;
        }
        // SAFETY: both lists end in a null, and all that they point at lives as long as they do.
        // This is the one thread of a forked child. The program is looked for along its own PATH.
        unsafe {
            environ = self.environment.as_ptr();
            libc::execvp(self.arguments[0], self.arguments.as_ptr())
        };
        io::Error::last_os_error()
    }
}

/// Ends this process. Its exit may be filtered.
fn kill_self() -> io::Error {
    // SAFETY: takes plain numbers.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    io::Error::last_os_error()
}

/// Whether the kernel can let a filtered call continue (Linux 5.5). Without that, calls wait for
/// ever.
fn can_continue(listener: &OwnedFd) -> bool {
    // no call has this id, which the kernel looks at after the flags
    let sent = listener::respond(listener.as_raw_fd(), 0, NotificationResponse::Continue);
    sent.is_err_and(|error| error.raw_os_error() == Some(libc::ENOENT))
}

/// Installs the filter on this process; everything that it starts inherits it.
fn install(code: &[Instruction]) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog {
        len: code.len() as u16,
        filter: code.as_ptr().cast_mut(),
    };
    let set = |flags: libc::c_ulong| {
        // SAFETY: `program` points at `code.len()` instructions, which the kernel only reads.
        checked(unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | flags,
                &raw const program,
            )
        })
    };
    // signals do not interrupt a call that we have taken: a non-blocking connect knows no EINTR
    // (Linux 5.19)
    let set = || match set(libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => set(0),
        done => done,
    };
    let listener = match set() {
        // without CAP_SYS_ADMIN; with it, setuid programs keep working
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            // SAFETY: takes plain numbers.
            checked(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
            set()?
        }
        other => other?,
    };
    // SAFETY: the kernel has just made this descriptor for us (close-on-exec).
    Ok(unsafe { OwnedFd::from_raw_fd(listener as RawFd) })
}

fn send(socket: &UnixStream, verdict: u8, descriptor: Option<&OwnedFd>) -> io::Result<()> {
    let descriptor = descriptor.map(|descriptor| [descriptor.as_fd()]);
    let descriptor = descriptor.as_ref().map_or(&[][..], |one| &one[..]);
    descriptors::send(socket, &[verdict], descriptor)
}

/// The child's message; `None` if it closed its end.
fn receive(socket: &UnixStream) -> io::Result<Option<(u8, Option<OwnedFd>)>> {
    let mut byte = [REFUSED];
    let (count, mut descriptors) = descriptors::receive(socket, &mut byte)?;
    Ok((count != 0).then_some((byte[0], descriptors.pop())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::give;
    use crate::signals::Signals;

    #[test]
    fn a_signal_before_the_program_runs_is_reported_as_such() {
        let signals = Signals::take_over().unwrap();
        for (signal, is_end) in [
            (libc::SIGINT, true),
            (libc::SIGTERM, true),
            (libc::SIGKILL, false),
        ] {
            let mut command = Command::new("true");
            // SAFETY: runs in the forked child, and makes one system call.
            unsafe {
                command.pre_exec(move || {
                    libc::kill(libc::getpid(), signal);
                    Ok(())
                })
            };
            let allow = [give(libc::SECCOMP_RET_ALLOW)];
            let refused = launch(command, &allow, signals.before()).err().unwrap();
            let reported = match refused {
                LaunchError::Signalled(number) => Some(number),
                _ => None,
            };
            assert_eq!(reported, is_end.then_some(signal));
        }
    }
}
