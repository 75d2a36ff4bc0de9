//! The only module that uses `perf_event`: opens a sampled software clock per thread and processor,
//! and reads its records.
#![allow(unsafe_code, reason = "poll")]

use perf_event::data::{Comm, Exit, Fork, Record};
use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use std::io;
use std::os::fd::AsRawFd;

/// Bytes of all rings of a processor: the limit of an unprivileged user
/// (`kernel.perf_event_mlock_kb`), minus a page.
const ROOM: usize = 512 * 1024;
/// Smallest size of a ring in bytes: a few samples.
const LEAST: usize = 64 * 1024;
/// Bytes of the stack in each sample.
const STACK: u32 = 16 * 1024;

/// The registers that unwinding starts with, as bits of the kernel's numbers.
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

/// `PERF_RECORD_MISC_COMM_EXEC`.
const BY_EXEC: u16 = 1 << 13;

/// A record of the kernel, with its time in nanoseconds.
pub(super) struct PerfRecord {
    pub(super) time: u64,
    pub(super) what: What,
}

pub(super) enum What {
    Sample(Box<Sample>),
    /// Code was mapped.
    Mapped(Mapping),
    /// A process was forked.
    Forked(Fork),
    /// A thread has a new name. After `exec`, all mappings of its process are new, too.
    Named {
        name: Comm<'static>,
        exec: bool,
    },
    /// A thread has ended.
    Ended(Exit),
    /// This number of samples was lost.
    Lost(u64),
}

pub(super) struct Sample {
    pub(super) subject: usize,
    pub(super) process: u32,
    pub(super) thread: u32,
    /// Addresses in the kernel, the innermost first.
    pub(super) kernel: Vec<u64>,
    /// The program's registers; `None` for a thread of the kernel.
    pub(super) registers: Vec<u64>,
    /// Bytes at its stack pointer.
    pub(super) stack: Vec<u8>,
}

#[derive(Clone)]
pub(super) struct Mapping {
    pub(super) process: u32,
    pub(super) start: u64,
    pub(super) len: u64,
    /// Offset in the file.
    pub(super) offset: u64,
    pub(super) path: Vec<u8>,
}

/// The clock of one thread on one processor, which children of the thread inherit.
pub(super) struct Ring {
    sampler: Sampler,
    subject: usize,
}

impl Ring {
    /// Opens a ring. `None` for the thread: children of the calling thread, from their `exec` on.
    pub(super) fn open(
        thread: Option<u32>,
        cpu: usize,
        subject: usize,
        kernel: bool,
        room: usize,
    ) -> io::Result<Ring> {
        let mut builder = Builder::new(Software::CPU_CLOCK);
        match thread {
            Some(thread) => {
                let number = i32::try_from(thread).map_err(|_| io::ErrorKind::InvalidInput)?;
                builder.observe_pid(number).enabled(true)
            }
            None => builder.observe_self().enabled(false).enable_on_exec(true),
        };
        builder
            .one_cpu(cpu)
            .inherit(true)
            .sample_frequency(super::PER_SECOND)
            .sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CALLCHAIN)
            .sample(SampleFlag::REGS_USER | SampleFlag::STACK_USER)
            .sample_regs_user(REGISTERS)
            .sample_stack_user(STACK)
            .exclude_callchain_user(true)
            .exclude_kernel(!kernel)
            .mmap(true)
            .mmap2(true)
            .comm(true)
            .comm_exec(true)
            .task(true)
            .sample_id_all(true)
            .clockid(Clock::MONOTONIC)
            .wakeup_watermark(room / 4);
        let sampler = builder.build()?.sampled(room).map_err(|error| {
            // this error is about locked memory here, not about permission
            match error.raw_os_error() {
                Some(libc::EPERM) => io::Error::from_raw_os_error(libc::ENOMEM),
                _ => error,
            }
        })?;
        Ok(Ring { sampler, subject })
    }

    /// Reads the available records.
    pub(super) fn drain(&mut self, into: &mut Vec<PerfRecord>) {
        let subject = self.subject;
        while let Some(record) = self.sampler.next_record() {
            let exec = record.misc() & BY_EXEC != 0;
            // the time is the last field of `sample_id_all`, and a field of a sample
            let bytes = record.to_contiguous();
            let last = bytes
                .last_chunk()
                .map_or(0, |last| u64::from_ne_bytes(*last));
            let Ok(parsed) = record.parse_record() else {
                continue;
            };
            let (time, what) = match parsed {
                Record::Sample(sample) => {
                    let Some((time, sample)) = read_sample(subject, &sample) else {
                        continue;
                    };
                    (time, What::Sample(Box::new(sample)))
                }
                Record::Mmap2(mapped) => (
                    last,
                    What::Mapped(Mapping {
                        process: mapped.pid,
                        start: mapped.addr,
                        len: mapped.len,
                        offset: mapped.pgoff,
                        path: mapped.filename.to_vec(),
                    }),
                ),
                Record::Fork(fork) if fork.pid != fork.ppid => (last, What::Forked(fork)),
                Record::Comm(name) => {
                    let name = name.into_owned();
                    (last, What::Named { name, exec })
                }
                Record::Exit(exit) => (last, What::Ended(exit)),
                Record::Lost(lost) => (last, What::Lost(lost.lost)),
                Record::LostSamples(lost) => (last, What::Lost(lost.lost)),
                _ => continue,
            };
            into.push(PerfRecord { time, what });
        }
    }
}

/// A sample and its time; `None` if thread or time is missing.
fn read_sample(subject: usize, sample: &perf_event::data::Sample<'_>) -> Option<(u64, Sample)> {
    let chain = sample.callchain().unwrap_or_default();
    let registers = sample.regs_user();
    let read = Sample {
        subject,
        process: sample.pid()?,
        thread: sample.tid()?,
        kernel: chain.iter().copied().filter(|at| !is_mark(*at)).collect(),
        registers: registers
            .map(|registers| registers.regs.to_vec())
            .unwrap_or_default(),
        stack: sample.stack_user().unwrap_or_default().to_vec(),
    };
    Some((sample.time()?, read))
}

/// Marks between the parts of a call chain are at the top of the address space
/// (`PERF_CONTEXT_MAX`).
fn is_mark(address: u64) -> bool {
    address >= -4095i64 as u64
}

/// Bytes per ring of a processor with this number of rings: a power of two.
pub(super) fn room_for(rings: usize) -> usize {
    let share = ROOM / rings.max(1).next_power_of_two();
    // the header page of each ring counts, too
    let share = if rings > 1 { share / 2 } else { share };
    share.max(LEAST)
}

/// Waits until a ring is a quarter full, or for this number of milliseconds.
pub(super) fn wait(rings: &[Ring], milliseconds: i32) {
    let mut polled: Vec<libc::pollfd> = rings
        .iter()
        .map(|ring| libc::pollfd {
            fd: ring.sampler.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    // SAFETY: `polled` is a valid array, and its length is passed with it.
    let ready = unsafe {
        libc::poll(
            polled.as_mut_ptr(),
            polled.len() as libc::nfds_t,
            milliseconds,
        )
    };
    // a target that has ended is always ready
    if ready > 0 && polled.iter().all(|one| one.revents & libc::POLLIN == 0) {
        std::thread::sleep(std::time::Duration::from_millis(milliseconds as u64));
    }
}
