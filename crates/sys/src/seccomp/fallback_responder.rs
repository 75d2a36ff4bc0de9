//! A guard process that answers filtered calls after this process has ended for any reason. The
//! program then continues unwatched.
//!
//! Without it the kernel fails every filtered call, and a process whose exit is filtered would
//! break.

use super::listener::{self, NotificationResponse};
use crate::guard::{Guard, KEPT};
use crate::mapping::Mapping;
use rustix::mm::MapFlags;
use std::ffi::CStr;
use std::io;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Name of the process that answers after our end: 15 bytes, the most that the kernel keeps.
pub const RESPONDER_NAME: &CStr = c"intact-fallback";

/// Number of slots for calls: with the two numbers before them they fill a page.
const MOST: usize = 510;
/// No call is being taken.
const QUIET: u64 = 0;
/// A call is being taken, and its id is not known yet.
const TAKING: u64 = 1;

/// The calls that this process has taken and not answered; no other process can take them. Shared
/// with the guard.
struct Page {
    state: AtomicU64,
    /// The number of calls that found no slot.
    unnamed: AtomicU64,
    calls: [AtomicU64; MOST],
}

/// The guard, and the calls that it must answer after our end.
pub(super) struct FallbackResponder {
    page: Shared,
    guard: Guard,
}

impl FallbackResponder {
    /// Starts the guard for this listener.
    pub(super) fn start(listener: BorrowedFd<'_>) -> io::Result<FallbackResponder> {
        let page = Shared::make()?;
        let act = || respond(&page);
        // SAFETY: `respond` makes system calls only, on memory that exists already.
        let guard = unsafe { Guard::start(RESPONDER_NAME, Some(listener), act) }?;
        Ok(FallbackResponder { page, guard })
    }

    /// Records that a call is about to be taken.
    pub(super) fn begin(&self) {
        self.page.state.store(TAKING, Ordering::Relaxed);
    }

    /// Records that the taking ended, with this call or none. If all slots are in use, those of
    /// callers that no longer wait are freed.
    pub(super) fn end(&self, taken: Option<u64>, is_waiting: impl Fn(u64) -> bool) {
        if let Some(id) = taken
            && !self.name(id)
        {
            self.sweep(is_waiting);
            if !self.name(id) {
                self.page.unnamed.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.page.state.store(QUIET, Ordering::Relaxed);
    }

    /// Assigns a slot to a call. Returns whether there was one.
    fn name(&self, id: u64) -> bool {
        let mut calls = self.page.calls.iter();
        let free = calls.find(|call| call.load(Ordering::Relaxed) == 0);
        free.inspect(|free| free.store(id, Ordering::Relaxed))
            .is_some()
    }

    fn sweep(&self, is_waiting: impl Fn(u64) -> bool) {
        for call in &self.page.calls {
            let id = call.load(Ordering::Relaxed);
            if id != 0 && !is_waiting(id) {
                call.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Frees the slot of a call that was answered.
    pub(super) fn forget(&self, id: u64) {
        let mut calls = self.page.calls.iter();
        if let Some(call) = calls.find(|call| call.load(Ordering::Relaxed) == id) {
            call.store(0, Ordering::Relaxed);
        } else if self.page.unnamed.load(Ordering::Relaxed) > 0 {
            self.page.unnamed.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Waits for the end of the guard, after the filtered processes have ended.
    pub(super) fn stop(mut self) {
        self.guard.finish();
    }
}

/// A page that is the same in a forked child.
struct Shared(Mapping);

impl Shared {
    fn make() -> io::Result<Shared> {
        let flags = MapFlags::SHARED;
        Mapping::new(size_of::<Page>(), flags, None).map(Shared)
    }
}

impl Deref for Shared {
    type Target = Page;

    fn deref(&self) -> &Page {
        // SAFETY: mapped until this is dropped, aligned to a page; zeroes are valid atomics.
        unsafe { self.0.start().cast().as_ref() }
    }
}

/// Continues the calls that we had taken, then every later call, until the filtered processes have
/// ended.
fn respond(page: &Page) {
    if page.state.load(Ordering::Relaxed) != QUIET || page.unnamed.load(Ordering::Relaxed) > 0 {
        // a call without a slot would wait for ever: when the last listener closes, the kernel
        // answers it
        return;
    }
    for call in &page.calls {
        let id = call.load(Ordering::Relaxed);
        if id != 0 {
            pass(id);
        }
    }
    // SAFETY: plain system calls; structures of zeroes are valid, and the kernel fills or reads
    // them.
    unsafe {
        loop {
            let mut ready = libc::pollfd {
                fd: KEPT,
                events: libc::POLLIN,
                revents: 0,
            };
            if libc::poll(&raw mut ready, 1, -1) == 1 && ready.revents & libc::POLLIN == 0 {
                // no filtered process is left
                return;
            }
            let mut call: libc::seccomp_notif = std::mem::zeroed();
            if libc::ioctl(KEPT, libc::SECCOMP_IOCTL_NOTIF_RECV as _, &raw mut call) == 0 {
                pass(call.id);
            }
        }
    }
}

/// Lets a call continue.
fn pass(id: u64) {
    // a caller that no longer waits needs no response
    let _ = listener::respond(KEPT, id, NotificationResponse::Continue);
}
