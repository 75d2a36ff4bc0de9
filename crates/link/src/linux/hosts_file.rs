//! The files that commands on the link see: those of the system, with three differences. /etc/hosts
//! has the server's name. By default there is no name server. /proc shows only the link's
//! processes.

use super::private_files::{RESOLV_CONF, hide_name_services, replace, resolv_conf};
use super::step_error::{During, StepError};
use crate::addresses::{SERVER_NAME, SERVER_V4};
use crate::step::LinkStep;
use intact_sys::namespaces;
use rustix::mount::{MountFlags, mount};
use std::fs;
use std::io;
use std::net::IpAddr;

/// Makes a mount namespace for all commands, with an own view of processes if `processes`. Names
/// that are not in /etc/hosts are looked up at `resolver`.
pub(super) fn prepare(processes: bool, resolver: Option<IpAddr>) -> Result<Vec<String>, StepError> {
    namespaces::new_mounts().during(LinkStep::Names)?;
    if processes {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("proc", "/proc", "proc", flags, None).during(LinkStep::ProcessMount)?;
    }
    name_the_server(resolver).during(LinkStep::Names)
}

fn name_the_server(resolver: Option<IpAddr>) -> io::Result<Vec<String>> {
    let hosts = fs::read_to_string("/etc/hosts")
        .unwrap_or_else(|_| "127.0.0.1 localhost\n::1 localhost\n".to_owned());
    // IPv4 only: with a second line, each connect to a server that listens on one family takes
    // another round trip
    let hosts = format!("{SERVER_V4} {SERVER_NAME}\n{hosts}");
    let names = match resolver {
        Some(server) => resolv_conf(&fs::read_to_string(RESOLV_CONF).unwrap_or_default(), server),
        // no process listens there: unknown names fail at once
        None => "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n".to_owned(),
    };
    let missing = replace(&[("/etc/hosts", hosts), (RESOLV_CONF, names)])?;
    let missing = missing.iter();
    let mut caveats: Vec<String> = missing
        .map(|path| format!("there is no {path} to put ours over"))
        .collect();
    let visible = hide_name_services().into_iter();
    caveats.extend(visible.map(|path| format!("{path} answers names from outside the link")));
    Ok(caveats)
}
