//! Why a program could not be watched.

use std::ffi::OsString;
use std::io;

/// Why a program could not be watched. Nothing of it has run.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There is no such program: exit code 127.
    #[error("{}: not found: is it in PATH?", .0.display())]
    NotFound(OsString),
    /// It exists and cannot be run: exit code 126.
    #[error("{}: cannot be run", .program.display())]
    NotRunnable {
        /// What was to be run.
        program: OsString,
        /// What the system said.
        source: io::Error,
    },
    /// This process is being watched itself.
    #[error(
        "a watched program cannot watch another: the kernel allows one listener; run the inner command on its own"
    )]
    Nested,
    /// The kernel or a sandbox refuses seccomp notifications.
    #[error(
        "seccomp notifications are refused here ({0}): they need Linux 5.6 and a container profile that allows seccomp (docker run --security-opt seccomp=unconfined)"
    )]
    Refused(io::Error),
    /// There is no such process to follow.
    #[error("there is no process {0}: `pgrep NAME` finds its number")]
    NoProcess(u32),
    /// There is no such program to follow.
    #[error("no process of {0} runs: `ps -e` and `cat /proc/PID/cgroup` show names and groups")]
    NoSuch(String),
    /// A process cannot be inspected.
    #[error(
        "process {0} does not let us look at its sockets ({1}): follow it as its user, or as root"
    )]
    Closed(u32, io::Error),
    /// Not on this system.
    #[error(
        "watching a program needs Linux on x86-64 or aarch64; run it in a Linux container: docker run -it --security-opt seccomp=unconfined IMAGE intact watch -- CMD"
    )]
    Unsupported,
    /// Something of our own failed before the program was started.
    #[error("{0}: {1}")]
    Setup(&'static str, io::Error),
}
