//! Seccomp filters with notifications (seccomp_unotify(2)): a program starts under a filter. System
//! calls that the filter selects wait for a response of this process.
//!
//! The user of this module selects the calls and answers them.

mod fallback_responder;
mod launch;
mod listener;

pub use fallback_responder::RESPONDER_NAME;
pub use launch::{LaunchError, launch};
pub use listener::{Notification, NotificationListener, NotificationResponse};

/// The audit architecture of this build, and that of the 32-bit programs that the same kernel runs.
#[cfg(target_arch = "x86_64")]
const ARCHES: [u32; 2] = [0xc000_003e, 0x4000_0003];
/// The audit architecture of this build, and that of the 32-bit programs that the same kernel runs.
#[cfg(target_arch = "aarch64")]
const ARCHES: [u32; 2] = [0xc000_00b7, 0x4000_0028];
/// The audit architecture of this build (linux/audit.h).
pub const ARCH: u32 = ARCHES[0];
/// The audit architecture of 32-bit programs on the same kernel.
pub const ARCH_32: u32 = ARCHES[1];
/// The bit of the numbers of calls by programs with 32-bit addresses (x32), whose architecture is
/// [`ARCH`]. Other machines have no such calls.
pub const X32: u32 = 0x4000_0000;
