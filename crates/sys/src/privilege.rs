//! The priority of this thread, and the capabilities of this process.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use std::io;
use std::num::NonZeroU64;

/// Makes wake-ups of the calling thread as exact as permitted; returns whether it runs before
/// ordinary threads (SCHED_FIFO).
pub fn be_punctual() -> bool {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    // SAFETY: a sched_param of zeroes is valid.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = 10;
    // SAFETY: pid 0 is the calling thread, and the parameter lives through the call.
    let real_time =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) } == 0;
    if real_time {
        // later memory is not locked: the usual limit would then refuse to allocate it
        // SAFETY: mlockall(2) takes flags only.
        unsafe { libc::mlockall(libc::MCL_CURRENT) };
    }
    real_time
}

/// Drops all capabilities, and lets processes of the same user inspect this one.
///
/// # Errors
/// Those of capset(2) and prctl(2).
pub fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none)?;
    Ok(set_dumpable_behavior(DumpableBehavior::Dumpable)?)
}
