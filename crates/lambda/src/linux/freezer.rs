//! Stops a tree of processes and lets it go on: SIGSTOP, one process at a time, until no new one appears.
//!
//! The kernel below goes on: it acknowledges, takes a FIN and answers after a close. A paused virtual machine does none of that;
//! what drops packets around a frozen function is the platform's [`crate::FreezeHook`]. What a control group does at once is in `cgroup`.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// A tree that stands still.
#[derive(Debug)]
pub(crate) enum Frozen {
    /// Each of these processes was stopped.
    Stopped(Vec<Pid>),
    /// A control group is frozen.
    Grouped,
}

/// How long a signalled process may take to stop: one in a long system call of the kernel's does not at once.
const LONGEST: Duration = Duration::from_secs(1);
/// How often it is looked at.
const LOOK: Duration = Duration::from_micros(200);

/// Stops the processes that `tree` finds, until it finds no new one. They stand still when this returns, but for one that the kernel holds for longer than [`LONGEST`].
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

/// Lets stopped processes go on.
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
        told => Ok(told?),
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

/// The process, then its descendants, as /proc lists them now; without those that have ended, and without our own processes
/// that wait for our own end.
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

/// Whether a process can still do something: the signal is sent, the stop comes a moment later.
fn is_running(pid: Pid) -> bool {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let stat = std::fs::read_to_string(path).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| rest.trim_start().starts_with(['R', 'S', 'D']))
}

/// The parent in a line of /proc/PID/stat, unless the process has ended; the name before it may hold anything, parentheses included.
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
