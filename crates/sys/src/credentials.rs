//! The user and groups of a socket's creator, to which firewall and routing rules by owner apply
//! for the lifetime of the socket.
//!
//! Changes only credentials that sockets get, and only in its own threads. It leaves the real and
//! saved user ids: with these, processes of the other user could send signals to this process.

use crate::checked;
use std::fs;
use std::io;
use std::os::fd::AsFd;

/// The credentials that a socket gets (credentials(7)): file system user and group, and the
/// supplementary groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The user and the group.
    pub owner: Owner,
    /// The supplementary groups.
    pub groups: Vec<u32>,
}

/// The user and the group of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The user id.
    pub user: u32,
    /// The group id.
    pub group: u32,
}

/// The owner of a socket: the user and group of its creator.
///
/// # Errors
/// Those of fstat(2).
pub fn owner_of(socket: &impl AsFd) -> io::Result<Owner> {
    let stat = rustix::fs::fstat(socket)?;
    Ok(Owner {
        user: stat.st_uid,
        group: stat.st_gid,
    })
}

/// The process at the other end of a Unix socket, by its id in our namespace, when it connected
/// (SO_PEERCRED in unix(7)).
///
/// # Errors
/// Those of getsockopt(2).
pub fn peer_process(socket: &impl AsFd) -> io::Result<u32> {
    let peer = rustix::net::sockopt::socket_peercred(socket)?;
    Ok(peer.pid.as_raw_nonzero().get().cast_unsigned())
}

impl Credentials {
    /// The credentials of a thread; `None` if it has ended.
    pub fn of_thread(thread: u32) -> Option<Credentials> {
        let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
        Credentials::parse(&status)
    }

    /// The credentials of this thread.
    pub fn ours() -> Option<Credentials> {
        let status = fs::read_to_string("/proc/thread-self/status").ok()?;
        Credentials::parse(&status)
    }

    fn parse(status: &str) -> Option<Credentials> {
        let numbers = |name: &str| -> Option<Vec<u32>> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let words = line.split_ascii_whitespace();
            words.map(|word| word.parse().ok()).collect()
        };
        // real, effective, saved, file system
        let last = |name| numbers(name).and_then(|ids| ids.get(3).copied());
        Some(Credentials {
            owner: Owner {
                user: last("Uid:")?,
                group: last("Gid:")?,
            },
            groups: numbers("Groups:")?,
        })
    }

    /// Runs `make` in a new thread with these credentials.
    ///
    /// # Errors
    /// Those of setgroups(2); [`io::ErrorKind::PermissionDenied`] without the right to take them
    /// (CAP_SETUID, CAP_SETGID). `make` has not run, unless it panicked.
    pub fn lend<T: Send>(&self, make: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("owner".to_owned());
            let made = thread.spawn_scoped(scope, || {
                self.take()?;
                Ok(make())
            })?;
            let made = made.join();
            made.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
        })
    }

    /// Sets them for the calling thread, which must be about to end.
    fn take(&self) -> io::Result<()> {
        if Credentials::ours().is_none_or(|ours| ours.groups != self.groups) {
            let groups = self.groups.as_ptr();
            // the C library's function would change all threads
            // SAFETY: the kernel reads that number of group ids.
            checked(unsafe { libc::syscall(libc::SYS_setgroups, self.groups.len(), groups) })?;
        }
        for (call, id) in [
            (libc::SYS_setfsgid, self.owner.group),
            (libc::SYS_setfsuid, self.owner.user),
        ] {
            // both return the previous id and report no error, so a call with an invalid id reads
            // the current one
            // SAFETY: takes plain numbers, and changes this thread only.
            let now = unsafe {
                libc::syscall(call, id);
                libc::syscall(call, u32::MAX)
            };
            if u32::try_from(now) != Ok(id) {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn socket() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").unwrap()
    }

    #[test]
    fn a_socket_belongs_to_the_thread_that_makes_it() {
        let ours = Credentials::ours().unwrap();
        assert_eq!(owner_of(&socket()).unwrap(), ours.owner);
        assert_eq!(Credentials::of_thread(std::process::id()), Some(ours));
    }

    #[test]
    fn credentials_are_lent_to_a_thread_and_to_no_other_or_not_at_all() {
        let ours = Credentials::ours().unwrap();
        let owner = Owner {
            user: 65_533,
            group: 65_532,
        };
        let other = Credentials {
            owner,
            groups: vec![4, 65_531],
        };
        match other.lend(|| (socket(), Credentials::ours())) {
            Ok((socket, lent)) => {
                assert_eq!(owner_of(&socket).unwrap(), owner);
                assert_eq!(lent, Some(other));
            }
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                assert_ne!(ours.owner.user, 0);
            }
        }
        assert_eq!(Credentials::ours(), Some(ours));
    }

    #[test]
    fn the_status_of_a_process_is_read() {
        let status = "Name:\tx\nUid:\t0\t1\t2\t3\nGid:\t4\t5\t6\t7\nGroups:\t8 9 \n";
        let read = Credentials::parse(status).unwrap();
        assert_eq!((read.owner.user, read.owner.group), (3, 7));
        assert_eq!(read.groups, [8, 9]);
        let none = status.replace("8 9 ", " ");
        assert_eq!(Credentials::parse(&none).unwrap().groups, []);
        assert_eq!(Credentials::parse("Uid:\t0\n"), None);
    }
}
