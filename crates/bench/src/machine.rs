//! What the machine reports: CPU times, sockets, limits. Linux; elsewhere the figures are absent.

use intact_ledger::{Host, Nanos, RoundSockets, Sockets};
use std::fs;

/// CPU time of the calling thread, in nanoseconds.
#[cfg(unix)]
pub(crate) fn thread_cpu() -> Option<u64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// CPU time of the calling thread is not to be had here.
#[cfg(not(unix))]
pub(crate) fn thread_cpu() -> Option<u64> {
    None
}

/// How long a thread waited for a processor, as the kernel counts it.
pub(crate) struct ProcessorWait(fs::File);

impl ProcessorWait {
    /// Of the calling thread; absent where the kernel does not count it.
    pub(crate) fn of_thread() -> Option<ProcessorWait> {
        let file = fs::File::open("/proc/thread-self/schedstat").ok()?;
        Some(ProcessorWait(file))
    }

    /// Nanoseconds so far.
    #[cfg(unix)]
    pub(crate) fn read(&self) -> Option<u64> {
        use std::os::unix::fs::FileExt;
        // time on a processor, time waiting for one, turns
        let mut text = [0; 64];
        let length = self.0.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        text.split(' ').nth(1)?.parse().ok()
    }

    /// Nowhere else.
    #[cfg(not(unix))]
    pub(crate) fn read(&self) -> Option<u64> {
        None
    }
}

/// Waits until the poll has events, for at most `limit`; returns whether it has. The wait ends to
/// the microsecond.
#[cfg(target_os = "linux")]
pub(crate) fn wait_readable(poll: &mio::Poll, limit: std::time::Duration) -> std::io::Result<bool> {
    intact_sys::timer::wait_readable(poll, limit)
}

/// Elsewhere the poll itself waits, to the millisecond.
#[cfg(not(target_os = "linux"))]
pub(crate) fn wait_readable(_: &mio::Poll, limit: std::time::Duration) -> std::io::Result<bool> {
    std::thread::sleep(limit.min(std::time::Duration::from_micros(200)));
    Ok(true)
}

/// Makes short sleeps of the calling thread end on time; the kernel's default slack is 50 us.
#[cfg(target_os = "linux")]
pub(crate) fn sharpen_timer() {
    // without it the pauses are longer, and shown as they are
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// There is no slack to take away here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn sharpen_timer() {}

/// Makes the calling thread run soon after it wakes up although others use its processor: it asks
/// for the shortest slice.
#[cfg(target_os = "linux")]
pub(crate) fn wake_promptly() {
    // without it requests start later, and their lateness is shown
    let _ = intact_sys::timer::shorten_slice(std::time::Duration::from_micros(100));
}

/// The slice is not ours to choose here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn wake_promptly() {}

/// CPU time of a process and its descendants that are alive, in nanoseconds, by the scheduler's own
/// count. `None` when the process is gone or the count is not to be had.
#[cfg(target_os = "linux")]
pub fn process_cpu(pid: u32) -> Option<u64> {
    let own = own_cpu(pid)?;
    let others = intact_sys::process::descendants(vec![pid]).skip(1);
    Some(own + others.filter_map(own_cpu).sum::<u64>())
}

/// The scheduler's count is not to be had here.
#[cfg(not(target_os = "linux"))]
pub fn process_cpu(_: u32) -> Option<u64> {
    None
}

/// What a process used between two counts of [`process_cpu`].
pub(crate) fn cpu_between(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    let both = before.zip(after);
    both.map(|(before, after)| after.saturating_sub(before))
}

#[cfg(target_os = "linux")]
fn own_cpu(pid: u32) -> Option<u64> {
    let mut total = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let path = task.ok()?.path().join("schedstat");
        let text = fs::read_to_string(path).ok()?;
        total += text.split(' ').next()?.parse::<u64>().ok()?;
    }
    Some(total)
}

/// The machine, for the head of a ledger.
pub fn host() -> Host {
    let read = |path: &str| {
        fs::read_to_string(path)
            .ok()
            .map(|text| text.trim().to_owned())
    };
    Host {
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        kernel: read("/proc/sys/kernel/osrelease"),
        cpus: std::thread::available_parallelism()
            .ok()
            .map(|cpus| cpus.get() as u32),
        congestion_control: read("/proc/sys/net/ipv4/tcp_congestion_control"),
        ephemeral_ports: ephemeral_ports(),
    }
}

/// First and last ephemeral port.
pub fn ephemeral_ports() -> Option<(u16, u16)> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ports = text.split_whitespace();
    Some((ports.next()?.parse().ok()?, ports.next()?.parse().ok()?))
}

/// Counts the machine's sockets; `None` if /proc does not have them.
pub fn sockets(at: Nanos) -> Option<Sockets> {
    let summary = fs::read_to_string("/proc/net/sockstat").ok()?;
    let line = summary.lines().find(|line| line.starts_with("TCP:"))?;
    let mut words = line.split_whitespace();
    let time_wait = words
        .by_ref()
        .find(|&word| word == "tw")
        .and(words.next())?;
    Some(Sockets {
        at,
        time_wait: time_wait.parse().ok()?,
        free_ports: free_ports(),
    })
}

/// Counts them again after a round.
pub(crate) fn round_sockets(before: Option<Sockets>, now: Nanos) -> Option<RoundSockets> {
    let before = before?;
    let after = sockets(now)?;
    Some(RoundSockets { before, after })
}

/// Ephemeral ports that no TCP socket holds.
fn free_ports() -> Option<u64> {
    let (first, last) = ephemeral_ports()?;
    // after many connections nearly every port is in use: a set of them would take longer
    let mut is_used = vec![false; usize::from(u16::MAX) + 1];
    let mut visit = |port: u16| is_used[usize::from(port)] = true;
    if !ports_of_kernel(&mut visit) {
        ports_in_text(&mut visit);
    }
    let range = is_used.get(first.into()..=last.into())?;
    Some(range.iter().filter(|&&is_used| !is_used).count() as u64)
}

/// Visits the local ports that the kernel lists. Returns whether it can.
fn ports_of_kernel(visit: &mut impl FnMut(u16)) -> bool {
    #[cfg(target_os = "linux")]
    return intact_sys::sock_diag::local_ports(visit).is_ok();
    #[cfg(not(target_os = "linux"))]
    {
        let _ = visit;
        false
    }
}

/// The same ports from /proc, which takes longer: for kernels without sock_diag.
fn ports_in_text(visit: &mut impl FnMut(u16)) {
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let Ok(text) = fs::read_to_string(table) else {
            continue;
        };
        for line in text.lines().skip(1) {
            let port = line
                .split_whitespace()
                .nth(1)
                .and_then(|local| local.rsplit(':').next())
                .and_then(|port| u16::from_str_radix(port, 16).ok());
            port.into_iter().for_each(&mut *visit);
        }
    }
}

/// Makes room for `needed` file descriptors; the error is the number that is allowed.
#[cfg(unix)]
pub(crate) fn allow_descriptors(needed: u64) -> Result<(), u64> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        return Err(limit.maximum.unwrap_or(0));
    }
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).map_err(|_| limit.current.unwrap_or(0))
}

/// No limit is known here.
#[cfg(not(unix))]
pub(crate) fn allow_descriptors(_: u64) -> Result<(), u64> {
    Ok(())
}
