//! Threads that no signal interrupts: the process's signals belong to the thread that watches the program.
#![allow(unsafe_code, reason = "pthread_sigmask")]

/// Runs a function with all signals blocked; threads that it starts inherit that.
pub(super) fn without_signals<T>(run: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are ours; sigfillset initialises the first, the call fills the second.
    let before = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    };
    let result = run();
    // SAFETY: restores the mask that was read above.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
    result
}
