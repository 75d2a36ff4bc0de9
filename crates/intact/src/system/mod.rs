//! What the command line needs of the operating system and the standard library has for one system
//! only. A module per system, with the same items; nothing else of this crate asks which system it
//! is, but for tests and for what a feature lacks.

#[cfg(unix)]
#[path = "unix.rs"]
mod of_this_system;
#[cfg(not(unix))]
#[path = "other.rs"]
mod of_this_system;

pub(crate) use of_this_system::*;

#[cfg(target_os = "linux")]
pub(crate) use intact_sys::{
    credentials::peer_process, process::descends_from, standard_streams::was_closed,
};

/// Whether this standard stream was closed when the process began. Where that cannot be seen, it
/// was not.
#[cfg(not(target_os = "linux"))]
pub(crate) fn was_closed(_descriptor: i32) -> bool {
    false
}

/// The process at the other end of a channel.
#[cfg(not(target_os = "linux"))]
pub(crate) fn peer_process(_: &Channel) -> std::io::Result<u32> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Whether a process is another one, or descends from it; `None` where that cannot be seen.
#[cfg(not(target_os = "linux"))]
pub(crate) fn descends_from(_: u32, _: u32) -> Option<bool> {
    None
}
