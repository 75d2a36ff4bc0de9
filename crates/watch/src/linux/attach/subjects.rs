//! Whose connections are followed: processes by number, by name or by control group, with their
//! descendants. A name and a group are looked up again and again, because services restart.

use intact_sys::process;
use std::fs;

/// Whose connections are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subjects {
    /// Those of these processes and of their descendants, until the last of them ends.
    Processes(Vec<u32>),
    /// Those of processes with this name, and of their descendants.
    Named(String),
    /// Those of processes in a control group that has this text in its name: the unit of a service,
    /// the id of a container.
    Group(String),
    /// Those of every process that we may look at.
    All,
}

impl Subjects {
    /// The processes that there are now, with their descendants.
    pub(crate) fn processes(&self) -> Vec<u32> {
        match self {
            Subjects::All => process::all(),
            _ => process::descendants(self.roots()).collect(),
        }
    }

    /// The processes that there are now, without their descendants; those of `intact` itself are
    /// none.
    pub(crate) fn roots(&self) -> Vec<u32> {
        let others = || {
            let this = std::process::id();
            process::all().into_iter().filter(move |pid| *pid != this)
        };
        match self {
            Subjects::All => Vec::new(),
            Subjects::Processes(processes) => processes.clone(),
            Subjects::Named(name) => others()
                .filter(|pid| process::command(*pid).is_some_and(|command| *command == **name))
                .collect(),
            Subjects::Group(text) => others().filter(|pid| is_in_group(*pid, text)).collect(),
        }
    }

    /// Whether other processes may belong to them later, which no followed process has started.
    pub(crate) fn may_grow(&self) -> bool {
        matches!(self, Subjects::Named(_) | Subjects::Group(_))
    }

    /// Whether they have ended for good.
    pub(crate) fn are_gone(&self) -> bool {
        match self {
            Subjects::Processes(processes) => !processes.iter().any(|pid| process::is_alive(*pid)),
            _ => false,
        }
    }
}

/// Whether the name of a control group of the process has this text: a whole component such as
/// `nginx.service`, or the id of a container within one.
fn is_in_group(pid: u32, text: &str) -> bool {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"));
    has_group(&groups.unwrap_or_default(), text)
}

/// The same for the lines of `/proc/PID/cgroup`.
fn has_group(groups: &str, text: &str) -> bool {
    let is_id = text.len() >= 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    groups.lines().any(|line| {
        let path = line.splitn(3, ':').nth(2).unwrap_or_default();
        path.split('/')
            .any(|part| part == text || is_id && part.contains(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_a_whole_component_and_an_id_of_a_container_a_part_of_one() {
        let id = "3f2a91c04d5e";
        let groups = format!("1:name=systemd:/\n0::/system.slice/docker-{id}77aa.scope\n");
        assert!(has_group(&groups, id) && !has_group(&groups, "docker"));
        assert!(!has_group(&groups, "3f2a"));
        let groups = "0::/system.slice/nginx.service\n";
        assert!(has_group(groups, "nginx.service") && !has_group(groups, "nginx"));
    }

    #[test]
    fn a_process_is_found_by_its_name_and_intact_itself_is_not() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let named = Subjects::Named("sleep".into());
        while !named.roots().contains(&child.id()) {
            assert!(process::is_alive(child.id()));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let this = process::command(std::process::id()).unwrap();
        let own = Subjects::Named(this.to_string());
        assert!(!own.roots().contains(&std::process::id()));
    }
}
