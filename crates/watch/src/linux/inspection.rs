//! How this system allows processes to be inspected, and what the failed inspection of a process
//! means.
//!
//! A container's seccomp profile may refuse `pidfd_getfd` or `process_vm_readv` for every process.
//! Both have replacements that see less. Before the program starts, each way is tried once on a
//! child process.

use crate::outcome::error_name;
use crate::{Mode, Unwatched};
use intact_ledger::Caveat;
use intact_sys::guard;
use intact_sys::process::{try_copy_descriptor, try_read_memory, try_socket_inode};
use std::io;

/// The ways to inspect processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inspection {
    /// Why the program's sockets cannot be copied: its sockets are made by us instead.
    no_copies: Option<i32>,
    /// Why `process_vm_readv` is not in use.
    no_calls: Option<i32>,
    /// Why /proc/PID/mem is not in use either: no address of a `connect` can be read.
    no_files: Option<i32>,
    /// Why nothing can be watched.
    pub(crate) refused: Vec<Unwatched>,
}

impl Inspection {
    /// Tries the ways on a child process. `mode` may exclude the way that needs no memory.
    pub(crate) fn of_this_system(mode: Mode) -> Inspection {
        let tried = guard::with_idle_child(|child| {
            let [by_call, by_file] = try_read_memory(child).map(refusal);
            Inspection {
                no_copies: refusal(try_copy_descriptor(child)),
                no_calls: by_call,
                no_files: by_call.and(by_file),
                refused: refusal(try_socket_inode(child))
                    .map(Unwatched::NoDescriptors)
                    .into_iter()
                    .collect(),
            }
        });
        // without a child, each inspection shows by itself whether it works
        let mut ways = tried.unwrap_or_default();
        if ways.no_copies.is_none() {
            ways.refused.clear();
        }
        if let Some(error) = ways.no_files.and(ways.no_calls)
            && mode == Mode::Relay
        {
            ways.refused.push(Unwatched::NoMemory(error));
        }
        ways
    }

    /// Whether sockets are made for the program, because its own cannot be copied.
    pub(crate) fn makes_sockets(&self) -> bool {
        self.no_copies.is_some() && self.refused.is_empty()
    }

    /// The kernel cannot give the program sockets that we make.
    pub(crate) fn cannot_give_sockets(&mut self) {
        let error = self.no_copies.unwrap_or(libc::ENOSYS);
        self.refused.insert(0, Unwatched::NoDescriptors(error));
    }

    /// Whether the program's memory can be read.
    pub(crate) fn reads_memory(&self) -> bool {
        self.no_files.is_none()
    }

    /// How connections are followed where the configuration says `mode`.
    pub(crate) fn mode(&self, mode: Mode) -> Mode {
        if self.reads_memory() || mode == Mode::Relay {
            mode
        } else {
            Mode::Passthrough
        }
    }

    /// The caveats on the whole run: what is refused, or else which ways are in use.
    pub(crate) fn caveats(&self) -> Vec<Caveat> {
        if !self.refused.is_empty() {
            return self.refused.iter().map(|reason| reason.caveat(0)).collect();
        }
        let mut caveats = Vec::new();
        let mut note = |id, by: &str, refused: String, limit: &str| {
            let message = format!(
                "Observed by {by}, because this container or kernel refuses {refused}. {limit}--cap-add SYS_PTRACE allows it"
            );
            caveats.push(Caveat::new(id, message));
        };
        if let Some(error) = self.no_copies {
            note(
                "observed-by-made-sockets",
                "sockets that intact makes for the program",
                format!("pidfd_getfd ({})", error_name(error)),
                "",
            );
        }
        match (self.no_calls, self.no_files) {
            (Some(call), None) => note(
                "observed-by-memory-file",
                "/proc/PID/mem",
                format!("process_vm_readv ({})", error_name(call)),
                "",
            ),
            (Some(call), Some(file)) => note(
                "observed-by-sock-diag",
                "sock_diag",
                format!(
                    "process_vm_readv ({}) and /proc/PID/mem ({})",
                    error_name(call),
                    error_name(file)
                ),
                "Connections and bytes are counted, requests and lookups cannot be seen. ",
            ),
            (None, _) => {}
        }
        caveats
    }

    /// Why a connection is not watched whose caller could not be read; `None` for a mistake of the
    /// caller.
    pub(crate) fn reason(&self, error: &io::Error) -> Option<Unwatched> {
        match error.raw_os_error() {
            _ if !self.refused.is_empty() => Some(self.refused[0]),
            Some(libc::EFAULT | libc::EBADF | libc::ENOTSOCK) => None,
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
    fn an_error_of_the_moment_is_no_refusal() {
        let failed = |number| refusal(Err(io::Error::from_raw_os_error(number)));
        assert_eq!(failed(libc::EPERM), Some(libc::EPERM));
        assert_eq!(failed(libc::ENOSYS), Some(libc::ENOSYS));
        assert_eq!(failed(libc::ESRCH), None);
        assert_eq!(failed(libc::EMFILE), None);
        assert_eq!(refusal(Ok(())), None);
    }

    #[test]
    fn without_any_memory_the_kernel_reports_connections_unless_only_the_relay_may() {
        let blind = Inspection {
            no_calls: Some(libc::ENOSYS),
            no_files: Some(libc::EACCES),
            ..Inspection::default()
        };
        assert_eq!(blind.mode(Mode::Auto), Mode::Passthrough);
        assert_eq!(blind.mode(Mode::Relay), Mode::Relay);
        assert_eq!(Inspection::default().mode(Mode::Auto), Mode::Auto);
    }

    #[test]
    fn a_kernel_that_gives_no_sockets_leaves_nothing_to_watch() {
        let mut ways = Inspection {
            no_copies: Some(libc::EPERM),
            ..Inspection::default()
        };
        assert!(ways.makes_sockets());
        assert!(!ways.caveats()[0].incomplete);
        ways.cannot_give_sockets();
        assert!(!ways.makes_sockets());
        assert_eq!(ways.refused, [Unwatched::NoDescriptors(libc::EPERM)]);
        assert!(ways.caveats()[0].incomplete);
    }
}
