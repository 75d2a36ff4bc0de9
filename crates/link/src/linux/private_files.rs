//! Files that only processes in a mount namespace see in place of the system's. Nothing is written
//! to disk, and nothing shows outside.

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

/// The name server that the resolver of the C library asks.
pub(super) const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Services that would resolve names outside, past our files.
const SERVICES: [&str; 2] = [
    "/run/nscd/socket",
    "/run/systemd/resolve/io.systemd.Resolve",
];

/// Puts texts in place of files of /etc, in the mount namespace of the calling thread. Returns the
/// files that there are not.
pub(super) fn replace<'a>(files: &[(&'a str, String)]) -> io::Result<Vec<&'a str>> {
    // an unnamed memory file system, under a folder that everybody has until its files are bound
    // elsewhere
    let folder = Path::new("/tmp");
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("intact", folder, "tmpfs", flags, None)?;
    let mut missing = Vec::new();
    let mut replace = |path: &'a str, text: &str| -> io::Result<()> {
        if !Path::new(path).exists() {
            missing.push(path);
            return Ok(());
        }
        let file = folder.join(path.trim_start_matches("/etc/"));
        fs::write(&file, text)?;
        Ok(mount_bind(&file, path)?)
    };
    let replaced = files
        .iter()
        .try_for_each(|(path, text)| replace(path, text));
    let detached = unmount(folder, UnmountFlags::DETACH);
    replaced?;
    detached?;
    Ok(missing)
}

/// Hides the services that resolve names for the C library. Returns those that cannot be hidden.
pub(super) fn hide_name_services() -> Vec<&'static str> {
    let there = SERVICES.into_iter().filter(|path| Path::new(path).exists());
    there
        .filter(|path| mount_bind("/dev/null", *path).is_err())
        .collect()
}

/// The system's resolv.conf with this name server and no other: its search list and its options
/// stay.
pub(super) fn resolv_conf(system: &str, server: IpAddr) -> String {
    let others = system.lines().filter(|line| {
        let word = line.split_whitespace().next();
        word != Some("nameserver") && !line.starts_with(['#', ';'])
    });
    let lines: String = others.map(|line| format!("{line}\n")).collect();
    format!("nameserver {server}\n{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_server_of_a_resolv_conf_changes() {
        let system = "# made by a program\nnameserver 10.0.0.2\nnameserver 10.0.0.3\nsearch a.test\noptions ndots:5\n";
        let ours = "nameserver 127.0.0.9\nsearch a.test\noptions ndots:5\n";
        let server = "127.0.0.9".parse().unwrap();
        assert_eq!(resolv_conf(system, server), ours);
        assert_eq!(resolv_conf("", server), "nameserver 127.0.0.9\n");
    }
}
