//! Control groups for environments, where this process may make them: a freezer that takes a whole tree at once, and a share of the
//! processor. Where it may not, the caller gets an error and does without.
//!
//! The freezer is that of version 2 only: what version 1 has frozen does not even die of SIGKILL, and would outlive us.

use rustix::process::Pid;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What our groups are called, before our process id and the number of the environment.
const NAME: &str = "intact-lambda-";
/// The period of a quota, in microseconds; Linux's own default.
const PERIOD: u64 = 100_000;
/// From this age on a group without its owner is taken for left over.
const OLD: Duration = Duration::from_secs(3600);
/// How long the kernel may take to freeze a group.
const LONGEST: Duration = Duration::from_secs(1);
/// How often it is looked at.
const LOOK: Duration = Duration::from_micros(200);

/// Part of version 2 itself, not a controller.
const FREEZER: &str = "";
/// Its file.
const SWITCH: &str = "cgroup.freeze";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A group of our own; it is removed with this value, which must come after the end of all that is in it.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    path: PathBuf,
    version: Version,
}

impl ControlGroup {
    /// One that can be frozen.
    pub(crate) fn freezer(environment: u64) -> io::Result<ControlGroup> {
        let group = ControlGroup::make(FREEZER, &format!("{environment}-frozen"))?;
        // Linux before 5.2 has none
        if group.path.join(SWITCH).exists() {
            Ok(group)
        } else {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// One that gets so much of one processor.
    pub(crate) fn cpu(environment: u64, share: f64) -> io::Result<ControlGroup> {
        let group = ControlGroup::make("cpu", &environment.to_string())?;
        let quota = ((share * PERIOD as f64) as u64).max(1_000);
        match group.version {
            Version::One => {
                fs::write(group.path.join("cpu.cfs_period_us"), PERIOD.to_string())?;
                fs::write(group.path.join("cpu.cfs_quota_us"), quota.to_string())?;
            }
            Version::Two => fs::write(group.path.join("cpu.max"), format!("{quota} {PERIOD}"))?,
        }
        Ok(group)
    }

    fn make(controller: &str, name: &str) -> io::Result<ControlGroup> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let ours = fs::read_to_string("/proc/self/cgroup")?;
        let (parent, version) = place(&mounts, &ours, controller)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no control groups here"))?;
        remove_left_over(&parent);
        if version == Version::Two && controller == "cpu" {
            fs::write(parent.join("cgroup.subtree_control"), "+cpu")?;
        }
        // process ids repeat in namespaces that share these groups
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = unix.unwrap_or_default().as_nanos();
        let path = parent.join(format!("{NAME}{}-{now:x}-{name}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(ControlGroup { path, version })
    }

    /// Takes a process in, and what it starts from now on.
    pub(crate) fn take(&self, pid: Pid) -> io::Result<()> {
        let pid = pid.as_raw_nonzero().to_string();
        match fs::write(self.path.join("cgroup.procs"), pid) {
            // it has ended meanwhile
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
                Ok(())
            }
            told => told,
        }
    }

    /// Has all that is in it stand still.
    pub(crate) fn freeze(&self) -> io::Result<()> {
        fs::write(self.path.join(SWITCH), "1")?;
        let deadline = Instant::now() + LONGEST;
        while !fs::read_to_string(self.path.join("cgroup.events"))?.contains("frozen 1") {
            if Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) -> io::Result<()> {
        fs::write(self.path.join(SWITCH), "0")
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let deadline = Instant::now() + LONGEST;
        // what was killed leaves a moment later
        while fs::remove_dir(&self.path).is_err() && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
    }
}

/// Removes what a killed process of ours has left; one in use cannot be removed, and a young one may be about to be used.
fn remove_left_over(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(NAME));
        let owner = owner.and_then(|rest| rest.split('-').next());
        let gone = owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists());
        let made = entry.metadata().and_then(|about| about.modified()).ok();
        let age = made.and_then(|made| made.elapsed().ok());
        if gone && age.is_some_and(|age| age >= OLD) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Where a controller's groups below our own are: version 1 where it has a hierarchy of its own, else version 2.
fn place(mounts: &str, ours: &str, controller: &str) -> Option<(PathBuf, Version)> {
    let mount = |wanted: &dyn Fn(&str, &str) -> bool| {
        mounts.lines().find_map(|line| {
            let (head, tail) = line.split_once(" - ")?;
            let mut tail = tail.split(' ');
            let (kind, options) = (tail.next()?, tail.nth(1)?);
            wanted(kind, options).then(|| head.split(' ').nth(4))?
        })
    };
    let group = |wanted: &dyn Fn(&str) -> bool| {
        ours.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (names, path) = (parts.next()?, parts.next()?);
            wanted(names).then(|| path.trim_start_matches('/'))
        })
    };
    let has = |list: &str| controller != FREEZER && list.split(',').any(|one| one == controller);
    if let Some(root) = mount(&|kind, options| kind == "cgroup" && has(options)) {
        return Some((Path::new(root).join(group(&has)?), Version::One));
    }
    let root = mount(&|kind, _| kind == "cgroup2")?;
    Some((Path::new(root).join(group(&str::is_empty)?), Version::Two))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_hierarchy_of_a_controller_is_found() {
        let ours = "4:cpu,cpuacct:/a/b\n0::/user.slice\n";
        let cpu = Path::new("/sys/fs/cgroup/cpu,cpuacct/a/b").to_owned();
        assert_eq!(place(HYBRID, ours, "cpu"), Some((cpu, Version::One)));
        let freezer = Path::new("/sys/fs/cgroup/unified/user.slice").to_owned();
        assert_eq!(place(HYBRID, ours, FREEZER), Some((freezer, Version::Two)));
        assert_eq!(place("", ours, "cpu"), None);
    }
}
