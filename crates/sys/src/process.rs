//! Processes: what /proc says of them, their end, and their descriptors and memory.

mod descriptors;
mod memory;

pub use descriptors::{
    Inherited, ProcessIdentity, Processes, SocketLocation, socket_inode, taken_socket,
    try_copy_descriptor, try_socket_inode,
};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) use memory::write_memory;
pub use memory::{page_size, read_memory, try_read_memory};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getrlimit, kill_process, set_child_subreaper, setrlimit,
};
use std::fmt::Display;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Raises this process's limit of open descriptors to the hard limit, and returns the limit.
/// Children that run already keep theirs.
pub fn raise_descriptor_limit() -> u64 {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: before.maximum,
        ..before
    };
    let limit = setrlimit(Resource::Nofile, raised).map_or(before.current, |()| before.maximum);
    limit.unwrap_or(u64::MAX)
}

/// Sends SIGQUIT to a process, which should have a handler for it.
///
/// # Errors
/// Those of kill(2).
pub fn send_quit(process: u32) -> io::Result<()> {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    let process = process.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(process, Signal::QUIT)?)
}

/// The process that [`fork`] returns in.
pub enum Forked {
    /// The new one.
    Child,
    /// The old one.
    Parent {
        /// The new process.
        child: Pid,
    },
}

/// Forks this process, which must have a single thread.
///
/// # Errors
/// Those of fork(2); [`io::ErrorKind::ResourceBusy`] if there is another thread, which may hold
/// locks for ever in the child.
pub fn fork() -> io::Result<Forked> {
    if !is_single_threaded()? {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    // SAFETY: this is the only thread, so the child finds no lock held and may run any code.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        child => {
            let child = Pid::from_raw(child).ok_or(io::ErrorKind::InvalidData)?;
            Ok(Forked::Parent { child })
        }
    }
}

/// How often another thread ran in the place of this one, by its wish or not.
pub fn context_switches() -> i64 {
    // SAFETY: a rusage of zeroes is valid; the kernel writes it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    usage.ru_nvcsw + usage.ru_nivcsw
}

/// Whether this process has a single thread.
///
/// # Errors
/// /proc cannot be read.
pub fn is_single_threaded() -> io::Result<bool> {
    Ok(fs::read_dir("/proc/self/task")?.count() == 1)
}

/// Makes this process the parent of orphaned descendants. Yama's scope 1 permits a process to
/// inspect only its descendants, and the first process of a container may not reap orphans.
///
/// # Errors
/// Those of prctl(2).
pub fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// A child that has ended.
pub struct ReapedChild {
    /// Its process id.
    pub process: u32,
    /// Its raw wait status.
    pub status: i32,
    /// CPU time of the child and of the descendants that it waited for: user, system.
    pub cpu: [Duration; 2],
    /// The most memory that one of them had resident at a time, in bytes.
    pub memory: u64,
}

/// Collects one child that has ended, if there is one.
pub fn reap() -> Option<ReapedChild> {
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
    Some(ReapedChild {
        process,
        status,
        cpu: [time(usage.ru_utime), time(usage.ru_stime)],
        memory: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    })
}

/// Reaps adopted orphans that ended in an inner process namespace. The first process of that
/// namespace cannot end before.
pub fn reap_from_inner_namespaces() {
    let own = namespace_depth("self");
    for child in children(std::process::id()) {
        if namespace_depth(&child.to_string()) > own {
            // SAFETY: waits for this child only, without blocking, and stores nothing.
            unsafe { libc::waitpid(child as i32, std::ptr::null_mut(), libc::WNOHANG) };
        }
    }
}

/// The number of process namespaces in which a process has an id; 0 where /proc does not show it.
fn namespace_depth(process: &str) -> usize {
    let ids = status(process, "NSpid:");
    ids.map_or(0, |ids| ids.split_whitespace().count())
}

/// Whether a signal is pending for a thread that does not block it.
pub fn has_signal(thread: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{thread}/status")) else {
        return false;
    };
    let set = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
            .unwrap_or(0)
    };
    (set("SigPnd:") | set("ShdPnd:")) & !set("SigBlk:") != 0
}

/// The numbers of the processors that are switched on.
pub fn online_processors() -> Vec<usize> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online");
    let list = list.unwrap_or_else(|_| "0".to_owned());
    let range = |part: &str| -> Option<std::ops::RangeInclusive<usize>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

/// The ids of all processes.
pub fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The children of a process that run.
pub fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    let lists = tasks.into_iter().flatten().flatten();
    lists
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| {
            let numbers: Vec<u32> = list
                .split_whitespace()
                .filter_map(|number| number.parse().ok())
                .collect();
            numbers
        })
        .collect()
}

/// The parent of a process that runs.
pub fn parent(process: u32) -> Option<u32> {
    stat(process)?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Whether a process is another one, or descends from it; `None` where its ancestors cannot be
/// read.
pub fn descends_from(process: u32, ancestor: u32) -> Option<bool> {
    let mut one = process;
    while one != ancestor {
        one = parent(one)?;
        if one <= 1 {
            return Some(false);
        }
    }
    Some(true)
}

/// These processes, and their descendants that run.
pub fn descendants(mut processes: Vec<u32>) -> impl Iterator<Item = u32> {
    let mut next = 0;
    while let Some(&process) = processes.get(next) {
        for child in children(process) {
            if !processes.contains(&child) {
                processes.push(child);
            }
        }
        next += 1;
    }
    processes.into_iter()
}

/// Whether a process runs: it exists and is no zombie.
pub fn is_alive(process: u32) -> bool {
    stat(process).is_some_and(|stat| !stat.starts_with(['Z', 'X']))
}

/// Whether a process of a process group runs: it exists and is no zombie.
pub fn is_group_alive(group: u32) -> bool {
    all().into_iter().any(|process| {
        // state, parent and group
        let stat = stat(process).unwrap_or_default();
        let mut fields = stat.split(' ');
        let is_alive = !matches!(fields.next(), Some("Z" | "X") | None);
        is_alive && fields.nth(1).and_then(|own| own.parse().ok()) == Some(group)
    })
}

/// The command's name of a process.
pub fn command(process: u32) -> Option<Arc<str>> {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    Some(name.trim_end().into())
}

/// The inode of a process's network namespace; `None` without the permission to inspect the
/// process.
pub fn network_namespace(process: u32) -> Option<u64> {
    let file = fs::metadata(format!("/proc/{process}/ns/net")).ok()?;
    Some(file.ino())
}

/// Calls `visit` with the inode of each socket of a process.
///
/// # Errors
/// The process has ended, or we may not inspect it.
pub fn each_socket(process: u32, mut visit: impl FnMut(u32)) -> io::Result<()> {
    for entry in fs::read_dir(format!("/proc/{process}/fd"))?.flatten() {
        let target = fs::read_link(entry.path());
        if let Some(inode) = target.ok().and_then(|target| inode_of(&target)) {
            visit(inode);
        }
    }
    Ok(())
}

/// The inode of the socket that an entry of /proc/PID/fd names.
fn inode_of(target: &Path) -> Option<u32> {
    let inode = target.to_str()?.strip_prefix("socket:[")?;
    inode.strip_suffix(']')?.parse().ok()
}

fn process_of(thread: u32) -> Option<u32> {
    status(thread, "Tgid:")?.parse().ok()
}

/// How often the threads of a process have left a processor.
pub fn times_run(process: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let texts = threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    let runs = |text: &str| -> u64 {
        let lines = text.lines().filter(|line| line.contains("_ctxt_switches:"));
        let counts = lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        counts.sum()
    };
    texts.map(|text| runs(&text)).sum()
}

/// A field of /proc/PID/status.
fn status(process: impl Display, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(value.trim().to_owned())
}

/// The fields of /proc/PID/stat from the state on. They follow the name, which may hold anything.
fn stat(process: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_is_not_forked() {
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || wait.recv());
        let refused = fork().map(drop).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy);
        drop(end);
        assert!(other.join().unwrap().is_err());
    }

    #[test]
    fn this_process_runs_and_is_its_parents_child() {
        let this = std::process::id();
        assert!(is_alive(this));
        let parent = rustix::process::getppid().unwrap();
        let parent = parent.as_raw_pid().unsigned_abs();
        assert!(descendants(vec![parent]).any(|process| process == this));
    }
}
