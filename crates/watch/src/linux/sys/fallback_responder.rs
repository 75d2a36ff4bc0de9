//! Answers calls in our place once we are gone, however we end: the program goes on as if nobody watched it.
//!
//! Without it the kernel would let every call fail that is asked about, and a process whose very end is asked about would break.
#![allow(
    unsafe_code,
    reason = "a page shared with a forked child, which makes system calls only"
)]

use super::checked;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Calls that can be named: a page of them, with the words before them.
const MOST: usize = 510;
/// Nothing is being taken.
const QUIET: u64 = 0;
/// A call is being taken whose name is not known yet.
const TAKING: u64 = 1;

/// The calls that we have taken and not answered: nobody else can take them. Shared with the heir.
struct Page {
    state: AtomicU64,
    /// Those that found no place.
    unnamed: AtomicU64,
    calls: [AtomicU64; MOST],
}

/// A child in a session of its own that waits for our end.
pub(crate) struct FallbackResponder {
    page: Shared,
    process: libc::pid_t,
    /// Closed by the kernel when we end; the heir waits for that.
    alive: Option<OwnedFd>,
}

impl FallbackResponder {
    /// Has a child answer in our place when we are gone. To be called while we have one thread.
    pub(crate) fn start(listener: BorrowedFd<'_>) -> io::Result<FallbackResponder> {
        let page = Shared::make()?;
        let (waiting, alive) = io::pipe()?;
        let alive = OwnedFd::from(alive);
        // SAFETY: the child makes system calls only, on memory that was made before.
        let process = checked(unsafe { libc::fork() })? as libc::pid_t;
        if process == 0 {
            run(waiting.as_fd(), alive.as_fd(), listener, &page);
        }
        Ok(FallbackResponder {
            page,
            process,
            alive: Some(alive),
        })
    }

    /// The id of its process.
    pub(crate) fn process(&self) -> u32 {
        self.process.unsigned_abs()
    }

    /// A call is about to be taken.
    pub(crate) fn begin(&self) {
        self.page.state.store(TAKING, Ordering::Relaxed);
    }

    /// What was about to be taken has been: this call, or none. Where there is no place left for its name, those calls make one whose
    /// callers have gone without an answer.
    pub(crate) fn end(&self, taken: Option<u64>, is_waiting: impl Fn(u64) -> bool) {
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

    /// Whether there was a place for the name.
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

    /// A call is answered.
    pub(crate) fn forget(&self, id: u64) {
        let mut calls = self.page.calls.iter();
        if let Some(call) = calls.find(|call| call.load(Ordering::Relaxed) == id) {
            call.store(0, Ordering::Relaxed);
        } else if self.page.unnamed.load(Ordering::Relaxed) > 0 {
            self.page.unnamed.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Nobody is left to ask: waits for the end of the child.
    pub(crate) fn stop(mut self) {
        drop(self.alive.take());
        // SAFETY: waits for the child that we started; somebody may have collected it already.
        unsafe { libc::waitpid(self.process, std::ptr::null_mut(), 0) };
    }
}

/// A page that is the same in a forked child.
struct Shared(NonNull<Page>);

impl Shared {
    fn make() -> io::Result<Shared> {
        // SAFETY: an anonymous mapping of our own.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Page>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        match NonNull::new(page) {
            Some(made) if page != libc::MAP_FAILED => Ok(Shared(made.cast())),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Deref for Shared {
    type Target = Page;

    fn deref(&self) -> &Page {
        // SAFETY: mapped until this is dropped, aligned to a page; zeroes are valid atomics.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: our mapping, which nobody borrows any more. The child has its own.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Page>()) };
    }
}

/// The life of the heir.
fn run(waiting: BorrowedFd<'_>, alive: BorrowedFd<'_>, listener: BorrowedFd<'_>, page: &Page) -> ! {
    // SAFETY: plain system calls; structures of zeroes are valid, and the kernel fills or reads them.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"intact-heir".as_ptr());
        // beyond both, so that neither is overwritten before it is copied
        let listener = libc::fcntl(listener.as_raw_fd(), libc::F_DUPFD, 10);
        libc::close(alive.as_raw_fd());
        libc::dup2(waiting.as_raw_fd(), 0);
        libc::dup2(listener, 1);
        close_from(2);
        let mut byte = 0u8;
        while libc::read(0, (&raw mut byte).cast(), 1) != 0 {
            if *libc::__errno_location() != libc::EINTR {
                break;
            }
        }
        if page.state.load(Ordering::Relaxed) != QUIET || page.unnamed.load(Ordering::Relaxed) > 0 {
            // a call that cannot be named would wait for ever: with the listener's end the kernel answers it
            libc::_exit(0);
        }
        for call in &page.calls {
            let id = call.load(Ordering::Relaxed);
            if id != 0 {
                pass(id);
            }
        }
        loop {
            let mut ready = libc::pollfd {
                fd: 1,
                events: libc::POLLIN,
                revents: 0,
            };
            if libc::poll(&raw mut ready, 1, -1) == 1 && ready.revents & libc::POLLIN == 0 {
                // nobody is left to ask
                libc::_exit(0);
            }
            let mut call: libc::seccomp_notif = std::mem::zeroed();
            if libc::ioctl(1, libc::SECCOMP_IOCTL_NOTIF_RECV as _, &raw mut call) == 0 {
                pass(call.id);
            }
        }
    }
}

/// Closes all descriptors from that number on: nobody who waits for the end of our output shall wait for that of a child.
pub(super) fn close_from(first: libc::c_int) {
    /// Where the kernel does not close a range (Linux before 5.9), so many are closed one by one.
    const MOST: libc::c_int = 4096;
    // SAFETY: called in a forked child that uses none of them.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) != 0 {
            for descriptor in first..MOST {
                libc::close(descriptor);
            }
        }
    }
}

/// Lets a call continue.
fn pass(id: u64) {
    let mut answer = libc::seccomp_notif_resp {
        id,
        val: 0,
        error: 0,
        flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
    };
    // SAFETY: the kernel reads the structure. A caller that has gone needs no answer.
    unsafe { libc::ioctl(1, libc::SECCOMP_IOCTL_NOTIF_SEND as _, &raw mut answer) };
}
