//! Control groups for environments: one freezes a whole process tree at once, one limits the share
//! of the processor. If this process may not create groups, the caller gets an error and continues
//! without.
//!
//! Only the freezer of version 2 is used. A process that version 1 has frozen does not end on
//! SIGKILL, so it would outlive this process.

use rustix::process::Pid;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What our groups are called, before our process id and the number of the environment.
const NAME: &str = "intact-lambda-";
/// The period of a quota, in microseconds; Linux's own default.
const PERIOD: u64 = 100_000;
/// A group whose owner has ended counts as left over from this age on.
const OLD: Duration = Duration::from_secs(3600);
/// How long the kernel may take to freeze a group.
const LONGEST: Duration = Duration::from_secs(1);
/// How often it is looked at.
const LOOK: Duration = Duration::from_micros(200);

/// Part of version 2 itself, not a controller.
const FREEZER: &str = "";
/// The file that freezes and thaws a group.
const SWITCH: &str = "cgroup.freeze";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A control group of this process. Dropping the value removes the group, so drop it after all
/// processes in the group have ended.
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

    /// A group that is limited to this share of one processor.
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

    /// Moves a process into the group; processes that it starts later are in it, too.
    pub(crate) fn take(&self, pid: Pid) -> io::Result<()> {
        let pid = pid.as_raw_nonzero().to_string();
        match fs::write(self.path.join("cgroup.procs"), pid) {
            // it has ended meanwhile
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
                Ok(())
            }
            result => result,
        }
    }

    /// Freezes all processes of the group.
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

    /// Thaws the group.
    pub(crate) fn thaw(&self) -> io::Result<()> {
        fs::write(self.path.join(SWITCH), "0")
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let deadline = Instant::now() + LONGEST;
        // a killed process leaves the group a moment later
        while fs::remove_dir(&self.path).is_err() && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
    }
}

/// Removes groups that an earlier `intact` left because it was killed. The kernel refuses to remove
/// a group in use. A recent group stays, because its owner may be about to use it.
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

/// The folder of this process's group for a controller, and its version: 1 if the controller has a
/// hierarchy of version 1, else 2.
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
