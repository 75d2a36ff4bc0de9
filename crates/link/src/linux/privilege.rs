//! What the forwarder asks of the scheduler, and the capabilities that it gives up.
#![allow(unsafe_code, reason = "scheduling and capabilities have no safe form")]

use rustix::process::{
    DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal,
};
use std::io;
use std::num::NonZeroU64;

/// Becomes as punctual as it is allowed to. Whether it runs ahead of ordinary processes.
pub(super) fn be_punctual() -> bool {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    // SAFETY: a sched_param of zeroes is valid.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = 10;
    // SAFETY: pid 0 is the calling thread, and the parameter lives through the call.
    let real_time =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) } == 0;
    if real_time {
        // what comes later is not locked: under the usual limit further memory could not be had
        // SAFETY: mlockall(2) takes flags only.
        unsafe { libc::mlockall(libc::MCL_CURRENT) };
    }
    real_time
}

/// Ends with the parent.
pub(super) fn end_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// The end of children is nobody's business: they vanish by themselves.
pub(super) fn ignore_children() {
    // SAFETY: sets the default disposition of SIGCHLD to "ignore", no handler involved.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Gives up all capabilities, and lets processes of the same user look at our open files.
pub(super) fn give_up() -> io::Result<()> {
    /// `__user_cap_header_struct` and `_LINUX_CAPABILITY_VERSION_3` of linux/capability.h.
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header {
        version: VERSION_3,
        pid: 0,
    };
    // effective, permitted, inheritable; twice
    let none = [0u32; 6];
    // SAFETY: version 3 reads a header and two data structs of three words each.
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(set_dumpable_behavior(DumpableBehavior::Dumpable)?)
}
