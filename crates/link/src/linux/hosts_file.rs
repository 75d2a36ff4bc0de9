//! What commands on the link see of the system: the same files, but the server's name in /etc/hosts, no name server, and only
//! their own processes. Nothing is written to disk, and nothing shows outside.

use super::step_error::{During, StepError};
use crate::addresses::{SERVER_NAME, SERVER_V4};
use crate::step::LinkStep;
use intact_sys::namespaces;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
use std::fs;
use std::io;
use std::path::Path;

/// The name service cache would answer from outside, past our files.
const NSCD: &str = "/run/nscd/socket";

/// Makes a mount namespace for all commands, with an own view of processes if `processes`.
pub(super) fn prepare(processes: bool) -> Result<Vec<String>, StepError> {
    namespaces::new_mounts().during(LinkStep::Names)?;
    if processes {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("proc", "/proc", "proc", flags, None).during(LinkStep::ProcessMount)?;
    }
    name_the_server().during(LinkStep::Names)
}

fn name_the_server() -> io::Result<Vec<String>> {
    let hosts = fs::read_to_string("/etc/hosts")
        .unwrap_or_else(|_| "127.0.0.1 localhost\n::1 localhost\n".to_owned());
    // an unnamed memory file system, under a folder that everybody has until its files are bound elsewhere
    let folder = Path::new("/tmp");
    mount(
        "intact",
        folder,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        None,
    )?;
    let mut caveats = Vec::new();
    let mut replace = |path: &str, text: &str| -> io::Result<()> {
        if !Path::new(path).exists() {
            caveats.push(format!("there is no {path} to put ours over"));
            return Ok(());
        }
        let file = folder.join(path.trim_start_matches("/etc/"));
        fs::write(&file, text)?;
        Ok(mount_bind(&file, path)?)
    };
    // IPv4 only: with a second line for a server that listens on one family, each connect takes a round trip more
    let replaced = replace("/etc/hosts", &format!("{SERVER_V4} {SERVER_NAME}\n{hosts}"))
        // nobody listens there: unknown names fail at once
        .and_then(|()| {
            replace(
                "/etc/resolv.conf",
                "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
            )
        });
    let detached = unmount(folder, UnmountFlags::DETACH);
    replaced?;
    detached?;
    if Path::new(NSCD).exists() && mount_bind("/dev/null", NSCD).is_err() {
        caveats.push("nscd answers names from outside the link".to_owned());
    }
    Ok(caveats)
}
