//! Freezes a process tree with SIGSTOP, one process at a time, until no new process appears; thaws
//! it with SIGCONT.
//!
//! The kernel is not frozen: it acknowledges data, accepts a FIN, and replies after a close. A
//! frozen virtual machine does none of this. To get that behaviour, the platform drops packets in
//! its [`crate::FreezeHook`]. The module `cgroup` freezes a tree at once.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// A frozen tree.
#[derive(Debug)]
pub(crate) enum Frozen {
    /// Each of these processes was stopped.
    Stopped(Vec<Pid>),
    /// A control group is frozen.
    Grouped,
}

/// How long a process may take to stop after its signal: a long system call delays it.
const LONGEST: Duration = Duration::from_secs(1);
/// Interval between two checks of a process.
const LOOK: Duration = Duration::from_micros(200);

/// Stops the processes that `tree` finds, until it finds no new one. On return all of them have
/// stopped, except a process that the kernel holds for longer than [`LONGEST`].
pub(crate) fn freeze(tree: impl Fn() -> io::Result<Vec<Pid>>) -> io::Result<Frozen> {
    let mut stopped: Vec<Pid> = vec![];
    loop {
        let fresh: Vec<Pid> = tree()?
            .into_iter()
            .filter(|pid| !stopped.contains(pid))
            .collect();
        if fresh.is_empty() {
            let deadline = Instant::now() + LONGEST;
            while stopped.iter().any(|&pid| is_running(pid)) && Instant::now() < deadline {
                std::thread::sleep(LOOK);
            }
            return Ok(Frozen::Stopped(stopped));
        }
        for pid in fresh {
            signal(pid, Signal::STOP)?;
            stopped.push(pid);
        }
    }
}

/// Continues stopped processes.
pub(crate) fn go_on(stopped: Vec<Pid>) -> io::Result<()> {
    // the root last: it must not find its children still stopped
    for pid in stopped.into_iter().rev() {
        signal(pid, Signal::CONT)?;
    }
    Ok(())
}

fn signal(pid: Pid, signal: Signal) -> io::Result<()> {
    match kill_process(pid, signal) {
        // it has ended meanwhile
        Err(Errno::SRCH) => Ok(()),
        result => Ok(result?),
    }
}

/// Ends all descendants of a process, new ones included, and leaves the process alone.
pub(crate) fn end_below(root: Pid) {
    let deadline = Instant::now() + LONGEST;
    while Instant::now() < deadline {
        let below = tree(root).unwrap_or_default().split_off(1);
        if below.is_empty() {
            return;
        }
        for pid in below {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(LOOK);
    }
}

/// The process and its descendants, as /proc lists them now. Omits ended processes and the helpers
/// of `watch`, which wait for the end of this process.
pub(crate) fn tree(root: Pid) -> io::Result<Vec<Pid>> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // one that has ended meanwhile has no file
        if let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat"))
            && !intact_watch::HELPERS.iter().any(|name| stat.contains(name))
            && let Some(parent) = parent(&stat)
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root.as_raw_nonzero().get()];
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        let below = children.remove(pid).unwrap_or_default();
        found.extend(below);
        at += 1;
    }
    Ok(found.into_iter().filter_map(Pid::from_raw).collect())
}

/// Whether this is our user, or one of the process and its descendants.
pub(crate) fn has_user(root: Pid, user: u32) -> bool {
    let runs_as = |pid: Pid| std::fs::metadata(format!("/proc/{}", pid.as_raw_nonzero()));
    let is_theirs = |pid| runs_as(pid).is_ok_and(|process| process.uid() == user);
    rustix::process::geteuid().as_raw() == user
        || tree(root).is_ok_and(|pids| pids.into_iter().any(is_theirs))
}

/// Whether a process still runs: it stops a moment after the signal.
fn is_running(pid: Pid) -> bool {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let stat = std::fs::read_to_string(path).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| rest.trim_start().starts_with(['R', 'S', 'D']))
}

/// The parent in a line of /proc/PID/stat; `None` if the process has ended. The name before it may
/// contain any character, parentheses too.
fn parent(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let ended = matches!(words.next()?, "Z" | "X");
    words.next()?.parse().ok().filter(|_| !ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_stands_behind_any_name() {
        assert_eq!(parent("12 (a) b) (c)) S 7 12 12 0"), Some(7));
        assert_eq!(parent("12 (sh"), None);
        assert_eq!(parent("12 (sh) Z 7 12 12 0"), None);
    }
}
