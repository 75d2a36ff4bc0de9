//! Completion-based receiving (io_uring(7)): one ring of one thread. The caller starts one receive
//! per connection. The kernel then fills a buffer of the ring's pool whenever data arrives, and
//! records the time of arrival.
//!
//! The caller assigns a key to each descriptor; each completion has this key. The ring owns all
//! memory that the kernel writes to. It frees the memory only when no operation is in flight. It
//! does not send or decide anything.

mod buffers;

use crate::timestamps::time_of;
use buffers::BufferPool;
use io_uring::squeue::Flags;
use io_uring::types::{CancelBuilder, Fd, RecvMsgOut, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use std::collections::{HashMap, HashSet};
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

/// Keys have this number of bits; the others name the kind of operation.
pub const KEY_BITS: u32 = 60;
const KEY: u64 = (1 << KEY_BITS) - 1;
/// The kinds of operation, in the bits above the key.
const RECEIVE: u64 = 0;
const POLL: u64 = 1 << KEY_BITS;
const HANG_UP: u64 = 2 << KEY_BITS;
const CANCEL: u64 = 3 << KEY_BITS;

/// The pool of buffers; a ring has only this one.
const GROUP: u16 = 0;
/// Entries of the submission queue; a full one is submitted early.
const SUBMISSIONS: u32 = 256;
/// Room for one `scm_timestamping` (three timespecs) with its header.
const CONTROL: usize = 64;
/// From linux/io_uring.h: wait for data before the first attempt to receive.
const POLL_FIRST: u16 = 1;
/// The end of a stream, by the bits of poll(2).
const HANG_UP_EVENTS: u32 = (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) as u32;
/// How long the end of a ring waits for its operations to be cancelled, and how often.
const LAST_WAIT: Duration = Duration::from_millis(100);
const LAST_WAITS: u32 = 20;

/// Why there is no ring here.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// The kernel was built without it.
    #[error("this kernel has no io_uring")]
    Missing,
    /// It is switched off.
    #[error(
        "io_uring is forbidden here: by sysctl kernel.io_uring_disabled, or by the seccomp filter of a container"
    )]
    Forbidden,
    /// It lacks a part that we need.
    #[error("the io_uring of this kernel lacks {0}, which Linux 6.1 has")]
    TooOld(&'static str),
    /// Something else, such as a limit on locked memory.
    #[error("io_uring: {0}")]
    Other(io::Error),
}

impl Unavailable {
    fn because(error: io::Error, part: &'static str) -> Unavailable {
        match error.raw_os_error() {
            Some(libc::ENOSYS) => Unavailable::Missing,
            Some(libc::EPERM | libc::EACCES) => Unavailable::Forbidden,
            Some(libc::EINVAL) => Unavailable::TooOld(part),
            _ => Unavailable::Other(error),
        }
    }
}

/// The sizes of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Completions that fit at once; the kernel keeps more until there is room.
    pub completions: u32,
    /// Number of receive buffers.
    pub buffers: u16,
    /// Bytes of data in a buffer.
    pub buffer: usize,
}

/// Waits for more than one completion, to save wake-ups.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// This number of completions ends the wait.
    pub completions: usize,
    /// So does this time, if there is any completion.
    pub pause: Duration,
}

/// What has happened to the descriptor with this key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Data arrived; [`Ring::payload`] has it. `continues`: the receive goes on by itself.
    Received {
        /// The descriptor.
        key: u64,
        /// Otherwise the receive has to be resumed.
        continues: bool,
    },
    /// The receive paused. It has to be resumed.
    Paused {
        /// The descriptor.
        key: u64,
    },
    /// The peer has sent a FIN, and the receive is over.
    End {
        /// The descriptor.
        key: u64,
    },
    /// The receive failed with this `errno`, and is over.
    Failed {
        /// The descriptor.
        key: u64,
        /// The `errno`.
        error: i32,
    },
    /// The descriptor is ready, by the bits of poll(2); the poll is over.
    Ready {
        /// The descriptor.
        key: u64,
        /// The events of poll(2).
        events: u32,
    },
}

/// The data of the last completion.
struct Current {
    buffer: u16,
    payload: Range<usize>,
    timestamp: Option<u64>,
}

/// A ring, used by the thread that made it.
pub struct Ring {
    /// Dropped first: then the kernel knows of none of the memory below.
    ring: ManuallyDrop<IoUring>,
    pool: ManuallyDrop<BufferPool>,
    /// What every receive has in common: room for a timestamp.
    message: Box<libc::msghdr>,
    /// Operations whose last completion was not seen, with the submission that they belong to.
    in_flight: HashMap<u64, u64>,
    /// Receives among them, which the kernel could write for.
    receives: usize,
    /// Keys of receives that were cancelled, to be resumed: their peer has hung up.
    interrupted: HashSet<u64>,
    /// Number of submissions so far.
    submission: u64,
    current: Option<Current>,
}

impl Ring {
    /// A ring for the calling thread.
    ///
    /// # Errors
    /// [`Unavailable`] with the reason.
    pub fn new(sizes: Sizes) -> Result<Ring, Unavailable> {
        let ring = IoUring::builder()
            .setup_cqsize(sizes.completions.max(2 * SUBMISSIONS))
            .setup_clamp()
            .setup_submit_all()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(SUBMISSIONS)
            .map_err(|error| Unavailable::because(error, "deferred task work"))?;
        let parameters = ring.params();
        if !parameters.is_feature_nodrop() || !parameters.is_feature_ext_arg() {
            return Err(Unavailable::TooOld("waits with a limit"));
        }
        let each = (size_of::<[u32; 4]>() + CONTROL + sizes.buffer).next_multiple_of(64);
        let pool = BufferPool::new(sizes.buffers, each).map_err(Unavailable::Other)?;
        // SAFETY: the ring of the pool lies in its mapping, which is freed after the ring is
        // closed, see `drop`.
        unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(pool.ring(), pool.count(), GROUP, 0)
        }
        .map_err(|error| Unavailable::because(error, "rings of buffers"))?;
        // SAFETY: a msghdr of zeroes is valid.
        let mut message: Box<libc::msghdr> = Box::new(unsafe { std::mem::zeroed() });
        message.msg_controllen = CONTROL as _;
        Ok(Ring {
            ring: ManuallyDrop::new(ring),
            pool: ManuallyDrop::new(pool),
            message,
            in_flight: HashMap::new(),
            receives: 0,
            interrupted: HashSet::new(),
            submission: 0,
            current: None,
        })
    }

    /// Whether a ring here could wait for a batch.
    ///
    /// # Errors
    /// [`Unavailable`] with the reason, if there is no ring.
    pub fn check() -> Result<bool, Unavailable> {
        let sizes = Sizes {
            completions: 0,
            buffers: 1,
            buffer: 64,
        };
        Ok(Ring::new(sizes)?.can_batch())
    }

    /// Starts to receive from a socket: each arrival of data is a completion with `key`, until the
    /// end of the stream.
    ///
    /// # Errors
    /// Those of io_uring_enter(2), if the queue was full.
    pub fn receive(&mut self, socket: &impl AsFd, key: u64) -> io::Result<()> {
        self.resume(socket, key)?;
        // a multishot receive misses a FIN or RST that arrives between its wake-up by data and its
        // execution (observed in Linux 6.18); a separate poll does not
        let socket = Fd(socket.as_fd().as_raw_fd());
        let entry = opcode::PollAdd::new(socket, HANG_UP_EVENTS).build();
        self.begin(entry, HANG_UP | key & KEY)
    }

    /// Starts a receive again that the kernel ended.
    ///
    /// # Errors
    /// Those of io_uring_enter(2), if the queue was full.
    pub fn resume(&mut self, socket: &impl AsFd, key: u64) -> io::Result<()> {
        let socket = Fd(socket.as_fd().as_raw_fd());
        let entry = opcode::RecvMsgMulti::new(socket, &raw const *self.message, GROUP)
            .ioprio(POLL_FIRST)
            .build();
        self.begin(entry, RECEIVE | key & KEY)?;
        self.receives += 1;
        Ok(())
    }

    /// Waits once until a descriptor has one of these events of poll(2), or an error.
    ///
    /// # Errors
    /// Those of io_uring_enter(2), if the queue was full.
    pub fn poll(&mut self, descriptor: RawFd, events: u32, key: u64) -> io::Result<()> {
        let entry = opcode::PollAdd::new(Fd(descriptor), events).build();
        self.begin(entry, POLL | key & KEY)
    }

    /// Whether a poll with this key waits.
    pub fn is_polling(&self, key: u64) -> bool {
        self.in_flight.contains_key(&(POLL | key & KEY))
    }

    /// Cancels what is in flight for `key`; its descriptor may be closed then. Completions with
    /// this key may still come.
    ///
    /// # Errors
    /// Those of io_uring_enter(2).
    pub fn forget(&mut self, key: u64) -> io::Result<()> {
        let key = key & KEY;
        self.interrupted.remove(&key);
        for id in [RECEIVE | key, HANG_UP | key, POLL | key] {
            let Some(&submission) = self.in_flight.get(&id) else {
                continue;
            };
            // an entry of the queue holds the descriptor's number, which the next socket may get
            if submission == self.submission {
                self.submit()?;
            }
            self.cancel(id)?;
        }
        Ok(())
    }

    fn cancel(&mut self, id: u64) -> io::Result<()> {
        let entry = opcode::AsyncCancel::new(id).build();
        self.push(&entry.flags(Flags::SKIP_SUCCESS).user_data(CANCEL))
    }

    /// Submits what was started, and waits until a completion comes, at most for `limit`. Takes
    /// `batch` into account where the kernel can (6.12); see [`Ring::can_batch`].
    ///
    /// # Errors
    /// Those of io_uring_enter(2), an interruption included.
    pub fn wait(&mut self, limit: Duration, batch: Option<Batch>) -> io::Result<()> {
        if limit.is_zero() {
            return self.submit();
        }
        let limit = Timespec::from(limit);
        let mut arguments = SubmitArgs::new();
        let mut wanted = 1;
        if let Some(batch) = batch {
            wanted = batch.completions.max(1);
            arguments = arguments.min_wait_usec(batch.pause.as_micros() as u32);
        }
        let arguments = arguments.timespec(&limit);
        let entered = self
            .ring
            .submitter()
            .submit_with_args(wanted, &arguments)
            .map(drop);
        self.submitted(match entered {
            Err(error) if error.raw_os_error() == Some(libc::ETIME) => Ok(()),
            entered => entered,
        })
    }

    /// Whether [`Ring::wait`] can wait for a batch.
    pub fn can_batch(&self) -> bool {
        self.ring.params().is_feature_min_timeout()
    }

    /// The next completion since the last wait. The data of the one before is gone.
    pub fn next_completion(&mut self) -> Option<Completion> {
        if let Some(current) = self.current.take() {
            self.pool.release(current.buffer);
        }
        loop {
            let entry = self.ring.completion().next()?;
            let id = entry.user_data();
            let (kind, key) = (id & !KEY, id & KEY);
            if kind == CANCEL {
                continue;
            }
            let continues = cqueue::more(entry.flags());
            if !continues {
                self.in_flight.remove(&id);
                self.receives -= usize::from(kind == RECEIVE);
            }
            let completion = match kind {
                RECEIVE => self.received(&entry, key, continues),
                POLL => {
                    let events = u32::try_from(entry.result());
                    events.ok().map(|events| Completion::Ready { key, events })
                }
                _ => self.hung_up(&entry, key),
            };
            if completion.is_some() {
                return completion;
            }
        }
    }

    /// The data of the completion that [`Ring::next_completion`] returned last, and when its last
    /// segment arrived, in nanoseconds of CLOCK_REALTIME if the kernel recorded that.
    pub fn payload(&self) -> Option<(&[u8], Option<u64>)> {
        let current = self.current.as_ref()?;
        let bytes = self.pool.bytes(current.buffer);
        Some((&bytes[current.payload.clone()], current.timestamp))
    }

    /// Handles a hang-up of the peer. A new receive then reads the remaining data and the kind of
    /// the end.
    fn hung_up(&mut self, entry: &cqueue::Entry, key: u64) -> Option<Completion> {
        if entry.result() < 0 || !self.in_flight.contains_key(&(RECEIVE | key)) {
            return None;
        }
        match self.cancel(RECEIVE | key) {
            Ok(()) => {
                self.interrupted.insert(key);
                None
            }
            Err(error) => Some(Completion::Failed {
                key,
                error: error.raw_os_error().unwrap_or(libc::EIO),
            }),
        }
    }

    /// The completion of a receive; `None` if it was forgotten.
    fn received(&mut self, entry: &cqueue::Entry, key: u64, continues: bool) -> Option<Completion> {
        let is_interrupted = !continues && self.interrupted.remove(&key);
        let Some(buffer) = cqueue::buffer_select(entry.flags()) else {
            return match -entry.result() {
                libc::ECANCELED if is_interrupted => Some(Completion::Paused { key }),
                libc::ECANCELED => None,
                libc::ENOBUFS => Some(Completion::Paused { key }),
                error if error > 0 => Some(Completion::Failed { key, error }),
                _ => Some(Completion::End { key }),
            };
        };
        let bytes = self.pool.bytes(buffer);
        let found = RecvMsgOut::parse(bytes, &self.message).ok();
        let found = found.filter(|_| entry.result() > 0);
        let payload = found.as_ref().map(|found| {
            let payload = found.payload_data();
            let start = payload.as_ptr().addr() - bytes.as_ptr().addr();
            start..start + payload.len()
        });
        match payload.filter(|payload| !payload.is_empty()) {
            Some(payload) => {
                let timestamp = found.and_then(|found| timestamp_of(found.control_data()));
                self.current = Some(Current {
                    buffer,
                    payload,
                    timestamp,
                });
                Some(Completion::Received { key, continues })
            }
            None => {
                self.pool.release(buffer);
                Some(Completion::End { key })
            }
        }
    }

    fn begin(&mut self, entry: squeue::Entry, id: u64) -> io::Result<()> {
        self.push(&entry.user_data(id))?;
        self.in_flight.insert(id, self.submission);
        Ok(())
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: the memory that entries name is `message` and the pool, which live until
            // nothing is in flight.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.submit()?;
        }
    }

    /// Submits what was started, and does not wait.
    fn submit(&mut self) -> io::Result<()> {
        let entered = self.ring.submit().map(drop);
        self.submitted(entered)
    }

    fn submitted(&mut self, entered: io::Result<()>) -> io::Result<()> {
        if self.ring.submission().is_empty() {
            self.submission += 1;
        }
        entered
    }

    /// Cancels everything, and waits for the last completion of each operation. Returns whether
    /// nothing is in flight.
    fn cancel_all(&mut self) -> bool {
        for _ in 0..LAST_WAITS {
            while self.next_completion().is_some() {}
            if self.in_flight.is_empty() && self.receives == 0 {
                return true;
            }
            let entry = opcode::AsyncCancel2::new(CancelBuilder::any().all()).build();
            let pushed = self.push(&entry.user_data(CANCEL));
            if pushed.is_err() {
                return false;
            }
            // a signal ends one of the waits early, not the loop
            let _ = self.wait(LAST_WAIT, None);
        }
        false
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let is_idle = self.cancel_all();
        // SAFETY: neither is used after this. The ring goes first, so that the kernel has no
        // operation and no pool left.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            // memory that the kernel may still write to is never given back
            if is_idle {
                ManuallyDrop::drop(&mut self.pool);
            }
        }
    }
}

/// The software timestamp in the control data of a message, in nanoseconds of CLOCK_REALTIME.
fn timestamp_of(control: &[u8]) -> Option<u64> {
    /// `cmsghdr` and the first timespec of `scm_timestamping`.
    const WANTED: usize = size_of::<libc::cmsghdr>() + size_of::<libc::timespec>();
    let control = control.get(..WANTED)?;
    // SAFETY: the header and the timespec lie within the slice.
    unsafe { time_of(control.as_ptr().cast()) }
}

#[cfg(test)]
mod tests;
