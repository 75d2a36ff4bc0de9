//! How the program ended, and what went by unseen.

use intact_ledger::{Caveat, FaultEnd, Nanos, Span};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// In the programs themselves.
    pub user: Duration,
    /// In the kernel on their behalf.
    pub system: Duration,
}

impl Cpu {
    /// The CPU time of a process so far, with that of the children that it has waited for, by
    /// `/proc/PID/stat`. Absent where there is no such process.
    pub fn of_process(pid: u32) -> Option<Cpu> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // the name before may hold anything
        let (_, rest) = stat.rsplit_once(") ")?;
        let ticks: Vec<f64> = rest
            .split_ascii_whitespace()
            .skip(11)
            .take(4)
            .filter_map(|word| word.parse().ok())
            .collect();
        let [user, system, children_user, children_system] = ticks[..] else {
            return None;
        };
        let per_second = crate::platform::ticks_per_second()?;
        let time = |ticks: f64| Duration::from_secs_f64(ticks / per_second);
        Some(Cpu {
            user: time(user + children_user),
            system: time(system + children_system),
        })
    }
}

/// Why connections are missing from the record: the kernel made them without us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unwatched {
    /// This container or kernel refuses `pidfd_getfd` for every process, with this error number.
    NoDescriptors(i32),
    /// This container or kernel refuses `process_vm_readv` for every process, with this error
    /// number.
    NoMemory(i32),
    /// The process cannot be inspected (another user's, setuid, not dumpable).
    Unreadable,
    /// It lives in a network namespace of its own.
    OtherNamespace,
    /// Its socket shares its port with others (SO_REUSEPORT).
    SharedPort,
    /// Its state is restored (TCP_REPAIR): nothing is sent to open it.
    Repaired,
    /// It is bound to a device or a mark that a connection of ours could not share.
    Steered,
    /// It was made by a system call of 32-bit programs.
    ThirtyTwoBits,
    /// A process had restricted its own connects by Landlock, whose rules do not bind us.
    Landlock,
    /// Its socket belongs to a user or a group whose rights we do not have.
    OtherOwner,
    /// It speaks Multipath TCP.
    Multipath,
    /// It is a stream of another protocol than TCP, or of another family than the Internet's.
    OtherProtocol,
    /// The program uses an io_uring ring that was made outside: whatever it opens with it is
    /// missing.
    Ring,
    /// It was open, and the program was never seen to make it.
    Unseen,
    /// The relay could not take it.
    NoRelay,
    /// Something in here broke.
    Fault,
}

impl Unwatched {
    /// A stable id.
    pub fn id(self) -> &'static str {
        match self {
            Unwatched::NoDescriptors(_) => "unwatched-no-descriptors",
            Unwatched::NoMemory(_) => "unwatched-no-memory",
            Unwatched::Unreadable => "unwatched-unreadable",
            Unwatched::OtherNamespace => "unwatched-other-namespace",
            Unwatched::SharedPort => "unwatched-shared-port",
            Unwatched::Repaired => "unwatched-repaired",
            Unwatched::Steered => "unwatched-steered",
            Unwatched::ThirtyTwoBits => "unwatched-32-bits",
            Unwatched::Landlock => "unwatched-landlock",
            Unwatched::OtherOwner => "unwatched-other-owner",
            Unwatched::Multipath => "unwatched-multipath",
            Unwatched::OtherProtocol => "unwatched-other-protocol",
            Unwatched::Ring => "unwatched-ring",
            Unwatched::Unseen => "unwatched-unseen",
            Unwatched::NoRelay => "unwatched-no-relay",
            Unwatched::Fault => "unwatched-fault",
        }
    }

    /// The caveat on a run in which `count` connections are missing for this reason.
    ///
    /// Where the system refuses what `watch` needs, all are missing, and the count does not matter.
    /// Of a ring the count is unknown.
    pub fn caveat(self, count: u64) -> Caveat {
        let reason = match self {
            Unwatched::NoDescriptors(error) => {
                return Caveat::incomplete(self.id(), refused("pidfd_getfd", error));
            }
            Unwatched::NoMemory(error) => {
                return Caveat::incomplete(self.id(), refused("process_vm_readv", error));
            }
            Unwatched::Unreadable => {
                "their process cannot be inspected (another user's, setuid, not dumpable) without CAP_SYS_PTRACE"
            }
            Unwatched::OtherNamespace => "they live in a network namespace of their own",
            Unwatched::SharedPort => "their sockets share a port with others (SO_REUSEPORT)",
            Unwatched::Repaired => "they were restored, not opened (TCP_REPAIR)",
            Unwatched::Steered => "they are bound to a device or carry a mark",
            Unwatched::ThirtyTwoBits => "system calls of 32-bit programs made them",
            Unwatched::Landlock => {
                "the program restricts its own connects by Landlock, and intact does not connect for it from then on"
            }
            Unwatched::OtherOwner => {
                "their sockets belong to a user or group for which intact may not make sockets"
            }
            Unwatched::Multipath => "they speak Multipath TCP",
            Unwatched::OtherProtocol => "they speak another protocol than TCP (vsock, SMC, SCTP)",
            Unwatched::Ring => {
                let words = "the program has an io_uring ring that it did not make: connections that it opens with it cannot be seen. Start it without that ring";
                return Caveat::incomplete(self.id(), words);
            }
            Unwatched::Unseen => {
                "inherited, received from another process, or accepted by a listener that is gone"
            }
            Unwatched::NoRelay => "the relay could not take them",
            Unwatched::Fault => "something in intact broke; please report it",
        };
        let words = match count {
            1 => format!("one connection was not watched: {reason}"),
            _ => format!("{count} connections were not watched: {reason}"),
        };
        Caveat::incomplete(self.id(), words)
    }

    /// The caveat on `count` connections that are left to the kernel for this reason, and followed
    /// from outside: their requests cannot be seen. `None` where the reason needs no words.
    pub(crate) fn followed_caveat(self, count: u64) -> Option<Caveat> {
        let (id, reason) = match self {
            Unwatched::Landlock => (
                "followed-landlock",
                "the program restricts its own connects by Landlock",
            ),
            Unwatched::OtherOwner => (
                "followed-other-owner",
                "their sockets belong to a user or group for which intact may not make sockets",
            ),
            _ => return None,
        };
        let words = format!(
            "connections that intact left to the program, because {reason}: {count}. Their requests cannot be seen"
        );
        Some(Caveat::incomplete_requests(id, words))
    }
}

/// The name of an error number that a container or kernel refuses a system call with.
pub(crate) fn error_name(number: i32) -> String {
    match number {
        libc::EPERM => "EPERM".to_owned(),
        libc::EACCES => "EACCES".to_owned(),
        libc::ENOSYS => "ENOSYS".to_owned(),
        other => format!("error {other}"),
    }
}

/// The words for a system call that is refused for every process, with the remedies.
fn refused(call: &str, error: i32) -> String {
    let error = error_name(error);
    format!(
        "this container or kernel refuses {call} ({error}), so that no connection could be watched. \
         Start the container with --cap-add SYS_PTRACE or --security-opt seccomp=unconfined. \
         `intact watch --pid` works without it"
    )
}

/// What is known when all is over.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How the program ended.
    pub ended: Ended,
    /// From its start to its end, on the run's clock; what it left behind may have run on.
    pub span: Span,
    /// What it cost, with everything that it started and that has ended.
    pub cpu: Cpu,
    /// The most memory that one process of it had resident at a time, in bytes.
    pub memory: u64,
    /// The first SIGINT, SIGTERM or SIGHUP that reached this process during the run, whatever the
    /// program did at it.
    pub interrupted: Option<i32>,
}

impl Outcome {
    /// The run that a signal ended before its program began.
    pub fn not_begun(signal: i32, at: Nanos) -> Outcome {
        Outcome {
            ended: Ended::Signal(signal),
            span: Span::new(at, at),
            cpu: Cpu::default(),
            memory: 0,
            interrupted: Some(signal),
        }
    }

    /// The row that ends the run of a variant under faults.
    pub fn fault_end(&self, variant: u32) -> FaultEnd {
        let (code, signal) = match self.ended {
            Ended::Code(code) => (Some(code), None),
            Ended::Signal(number) => (None, Some(number)),
        };
        FaultEnd {
            variant: Some(variant),
            round: Some(1),
            span: self.span,
            code,
            signal,
            invocations: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_this_process_is_read_and_of_none_is_not() {
        assert!(Cpu::of_process(std::process::id()).is_some());
        assert_eq!(Cpu::of_process(u32::MAX), None);
    }
}
