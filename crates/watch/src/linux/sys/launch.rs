//! Starts the program under its filter. Between `fork` and `exec` only system calls are made.
#![allow(unsafe_code, reason = "seccomp, prctl and sendmsg in the forked child")]

use super::checked;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::Duration;

/// What stood in the way.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The filter was refused with this error.
    Filter(io::Error),
    /// The program could not be run.
    Exec(io::Error),
    /// Anything else.
    Io(io::Error),
}

/// One byte from the child where the filter was refused: the error follows.
const REFUSED: u8 = 1;
const INSTALLED: u8 = 0;

/// Starts the command with the filter in place and these signals blocked; the descriptor answers for all that it asks about.
pub(crate) fn launch(
    mut command: Command,
    filter: &[libc::sock_filter],
    blocked: libc::sigset_t,
) -> Result<(Child, OwnedFd), Trouble> {
    let (ours, theirs) = UnixStream::pair().map_err(Trouble::Io)?;
    let code = filter.to_vec();
    let end = theirs.as_raw_fd();
    let prepare = move || {
        // SAFETY: reads the set that is passed.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const blocked, std::ptr::null_mut())
        };
        match install(&code) {
            Ok(listener) => send(end, INSTALLED, Some(listener.as_raw_fd())),
            Err(error) => {
                send(end, REFUSED, None)?;
                Err(error)
            }
        }
    };
    // SAFETY: `prepare` runs in the forked child; it makes system calls only and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    let started = command.spawn();
    drop(theirs);
    match (started, receive(&ours)) {
        (Ok(child), Ok((INSTALLED, Some(listener)))) => Ok((child, listener)),
        (Err(error), Ok((REFUSED, _))) => Err(Trouble::Filter(error)),
        (Err(error), _) => Err(Trouble::Exec(error)),
        (Ok(mut child), received) => {
            let _ = child.kill();
            let _ = child.wait();
            let silent = io::Error::from(io::ErrorKind::UnexpectedEof);
            Err(Trouble::Io(received.err().unwrap_or(silent)))
        }
    }
}

/// Installs the filter on this process; everything that it starts inherits it.
fn install(code: &[libc::sock_filter]) -> io::Result<OwnedFd> {
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
    // a call that we have taken is not cut short by signals: a non-blocking connect knows no EINTR (Linux 5.19)
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

/// Room for the control message of one descriptor, aligned as `cmsghdr` wants.
#[repr(C, align(8))]
struct Control([u8; 32]);

fn send(socket: RawFd, verdict: u8, descriptor: Option<RawFd>) -> io::Result<()> {
    let mut byte = [verdict];
    let mut control = Control([0; 32]);
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: a msghdr of zeroes is valid; the pointers outlive the call; the control buffer has room for one descriptor.
    checked(unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if let Some(descriptor) = descriptor {
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
            let head = libc::CMSG_FIRSTHDR(&raw const message);
            (*head).cmsg_level = libc::SOL_SOCKET;
            (*head).cmsg_type = libc::SCM_RIGHTS;
            (*head).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(head)
                .cast::<RawFd>()
                .write_unaligned(descriptor);
        }
        libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) as i64
    })?;
    Ok(())
}

fn receive(socket: &UnixStream) -> io::Result<(u8, Option<OwnedFd>)> {
    let mut byte = [REFUSED];
    let mut control = Control([0; 32]);
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: as in `send`; the kernel writes at most `msg_controllen` bytes of control data, whose first message is read
    // only where its head says that it carries a descriptor, which is then ours.
    let (count, descriptor) = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = size_of::<Control>() as _;
        let count =
            checked(
                libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) as i64,
            )?;
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        let carries = !head.is_null()
            && (*head).cmsg_level == libc::SOL_SOCKET
            && (*head).cmsg_type == libc::SCM_RIGHTS;
        let descriptor = carries
            .then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(head).cast::<RawFd>().read_unaligned()));
        (count, descriptor)
    };
    if count == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((byte[0], descriptor))
}

/// Makes orphans of the program children of ours, so that they stay descendants: Yama's scope 1 lets us look at those only.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    // SAFETY: takes plain numbers.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })?;
    Ok(())
}

/// A child that has ended.
pub(crate) struct Ended {
    /// Its id.
    pub(crate) process: u32,
    /// Its raw wait status.
    pub(crate) status: i32,
    /// CPU time of it and of the descendants that it waited for itself: user, system.
    pub(crate) cpu: [Duration; 2],
}

/// Collects one child that has ended; `None` when there is none now.
pub(crate) fn reap() -> Option<Ended> {
    let mut status = 0;
    // SAFETY: a rusage of zeroes is valid; the kernel writes it and one int.
    let (process, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let process = libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage);
        (process, usage)
    };
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    let process = u32::try_from(process).ok().filter(|process| *process > 0)?;
    Some(Ended {
        process,
        status,
        cpu: [time(usage.ru_utime), time(usage.ru_stime)],
    })
}
