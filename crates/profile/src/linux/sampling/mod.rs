//! A running sampler: a thread reads the kernel's samples until the end.

mod perf;
mod tree;

use crate::{Gap, Profile, ProfileError, SampleTarget};
use intact_sys::process::online_processors;
use intact_sys::timer;
use perf::Ring;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use tree::{Marks, Tree};

/// Samples per second of processor time. It divides no round number, so it does not coincide with
/// periodic work.
const PER_SECOND: u64 = 499;
/// Interval between two reads in milliseconds: short enough for the size of the rings.
const PACE_MS: i32 = 20;

/// A running sampler.
pub struct Sampling {
    /// `None` after it was joined.
    thread: Option<JoinHandle<Profile>>,
    end: Arc<AtomicBool>,
    marks: Marks,
}

impl Sampling {
    /// Starts a thread that samples. It blocks the same signals as the calling thread.
    /// [`SampleTarget::Children`] refers to the calling thread, which starts the program
    /// afterwards.
    pub fn start(subjects: &[SampleTarget]) -> Result<Sampling, ProfileError> {
        let marks = Marks::default();
        let mut tree = Tree::new(marks.clone());
        // index of the target and a thread of it; `None` for children
        let mut whom: Vec<(usize, Option<u32>)> = Vec::new();
        for (number, subject) in subjects.iter().enumerate() {
            match subject {
                SampleTarget::Children => whom.push((number, None)),
                SampleTarget::Processes(processes) => {
                    for &process in processes {
                        let threads = threads(process)?;
                        whom.extend(threads.into_iter().map(|thread| (number, Some(thread))));
                        tree.take_running(process);
                    }
                }
            }
        }
        let (rings, kernel) = open(&whom)?;
        let end = Arc::new(AtomicBool::new(false));
        let over = end.clone();
        let work = move || follow(rings, tree, kernel, &over);
        let thread = std::thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(work);
        Ok(Sampling {
            thread: Some(thread.map_err(|error| ProfileError::Setup("a thread", error))?),
            end,
            marks,
        })
    }

    /// Samples from now on belong to this part of the run ([`crate::Stack::part`]).
    pub fn mark(&self, part: u32) {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.push((timer::monotonic(), part));
    }

    /// Ends the sampling and resolves the names.
    pub fn finish(mut self) -> Profile {
        self.end.store(true, Ordering::Release);
        let profile = self.thread.take().map(JoinHandle::join);
        profile.and_then(Result::ok).unwrap_or_default()
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Release);
    }
}

fn threads(process: u32) -> Result<Vec<u32>, ProfileError> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"))
        .map_err(|_| ProfileError::NoProcess(process))?;
    let numbers = tasks.flatten();
    Ok(numbers
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect())
}

/// Opens a ring per thread and processor. Returns them, and whether frames of the kernel are
/// visible.
fn open(whom: &[(usize, Option<u32>)]) -> Result<(Vec<Ring>, bool), ProfileError> {
    let mut rings = Vec::new();
    let mut kernel = true;
    let room = perf::room_for(whom.len());
    for &(subject, thread) in whom {
        for cpu in online_processors() {
            let mut opened = Ring::open(thread, cpu, subject, kernel, room);
            // the kernel's frames may be hidden while those of programs are not
            if kernel && rings.is_empty() && opened.as_ref().is_err_and(is_refusal) {
                kernel = false;
                opened = Ring::open(thread, cpu, subject, kernel, room);
            }
            match opened {
                Ok(ring) => rings.push(ring),
                // the thread has just ended, or the processor is off
                Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENODEV)) => {}
                Err(error) => return Err(refused(error)),
            }
        }
    }
    Ok((rings, kernel))
}

fn follow(mut rings: Vec<Ring>, mut tree: Tree, kernel: bool, end: &AtomicBool) -> Profile {
    let mut waiting = Vec::new();
    loop {
        let over = end.load(Ordering::Acquire);
        if !over {
            perf::wait(&rings, PACE_MS);
        }
        // a later record of one processor may be read before an earlier one of another, so the
        // newest records wait for the next read
        let mut new = Vec::new();
        let mut horizon = u64::MAX;
        for ring in &mut rings {
            let before = new.len();
            ring.drain(&mut new);
            if let Some(last) = new[before..].last() {
                horizon = horizon.min(last.time);
            }
        }
        if over {
            horizon = u64::MAX;
        } else if new.is_empty() {
            horizon = waiting
                .last()
                .map_or(0, |last: &perf::PerfRecord| last.time);
        }
        waiting.append(&mut new);
        waiting.sort_by_key(|record| record.time);
        let ripe = waiting.partition_point(|record| record.time <= horizon);
        for record in waiting.drain(..ripe) {
            tree.take(record);
        }
        if over {
            break;
        }
    }
    drop(rings);
    let mut profile = tree.finish(PER_SECOND);
    if !kernel {
        profile.gaps.push(Gap::NoKernel);
    }
    profile
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EACCES | libc::EPERM | libc::ENOSYS)
    )
}

fn refused(error: io::Error) -> ProfileError {
    if error.raw_os_error() == Some(libc::ENOMEM) {
        let what = "the limit of locked memory is too low for this number of threads; raise it with ulimit -l";
        return ProfileError::Setup(what, error);
    }
    if !is_refusal(&error) {
        return ProfileError::Setup("perf_event_open", error);
    }
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    ProfileError::Refused {
        error,
        paranoid: paranoid.map(|text| text.trim().to_owned()),
    }
}
