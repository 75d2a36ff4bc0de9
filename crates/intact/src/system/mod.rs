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

/// Whether this standard stream was closed when the process began. Where that cannot be seen,
/// it was not.
#[cfg(target_os = "linux")]
pub(crate) use intact_sys::standard_streams::was_closed;

/// Whether this standard stream was closed when the process began. Where that cannot be seen, it
/// was not.
#[cfg(not(target_os = "linux"))]
pub(crate) fn was_closed(_descriptor: i32) -> bool {
    false
}
