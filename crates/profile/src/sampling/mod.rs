//! A running sampler: the kernel's samples, taken by a thread of ours until the end.

mod perf;
mod tree;

use crate::code::Images;
use crate::{Gap, Profile, ProfileError};
use perf::Ring;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use tree::Tree;

/// Samples a second of processor time; no divisor of round numbers, so that it does not beat with what happens every millisecond.
const PER_SECOND: u64 = 499;
/// How long the thread sleeps between two looks, in milliseconds: less than the rings hold.
const PACE_MS: i32 = 20;

/// Whom to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// What this thread starts from now on, from its `exec` on.
    Children,
    /// These processes and what they start.
    Processes(Vec<u32>),
}

/// A running sampler.
pub struct Sampling {
    /// Gone once it was joined.
    thread: Option<JoinHandle<Profile>>,
    end: Arc<AtomicBool>,
}

impl Sampling {
    /// Begins to sample, in a thread of its own that blocks the signals that the calling one blocks. [`Subject::Children`] is
    /// about the calling thread, which then starts the program.
    pub fn start(subjects: &[Subject]) -> Result<Sampling, ProfileError> {
        let mut rings = Vec::new();
        let mut tree = Tree::new(Images::default());
        let mut kernel = true;
        for (number, subject) in subjects.iter().enumerate() {
            let processes = match subject {
                Subject::Children => Vec::new(),
                Subject::Processes(processes) => processes.clone(),
            };
            let mut threads = Vec::new();
            for process in processes {
                let tasks = fs::read_dir(format!("/proc/{process}/task"))
                    .map_err(|_| ProfileError::NoProcess(process))?;
                let numbers = tasks.flatten();
                threads.extend(
                    numbers.filter_map(|task| task.file_name().to_str()?.parse::<u32>().ok()),
                );
                tree.take_running(process);
            }
            let whom: Vec<Option<u32>> = match subject {
                Subject::Children => vec![None],
                Subject::Processes(_) => threads.into_iter().map(Some).collect(),
            };
            for thread in whom {
                for cpu in perf::cpus() {
                    match Ring::open(thread, cpu, number, kernel) {
                        Ok(ring) => rings.push(ring),
                        // what the kernel does may be hidden while what programs do is not
                        Err(error) if is_refusal(&error) && kernel && rings.is_empty() => {
                            kernel = false;
                            rings.push(Ring::open(thread, cpu, number, kernel).map_err(refused)?);
                        }
                        // a thread that has just ended
                        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                        // a processor that is switched off
                        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                        Err(error) if is_refusal(&error) => return Err(refused(error)),
                        Err(error) => return Err(ProfileError::Setup("perf_event_open", error)),
                    }
                }
            }
        }
        let end = Arc::new(AtomicBool::new(false));
        let over = end.clone();
        let work = move || follow(rings, tree, kernel, &over);
        let thread = std::thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(work);
        Ok(Sampling {
            thread: Some(thread.map_err(|error| ProfileError::Setup("a thread", error))?),
            end,
        })
    }

    /// Ends the sampling and finds the names.
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

fn follow(mut rings: Vec<Ring>, mut tree: Tree, kernel: bool, end: &AtomicBool) -> Profile {
    let mut waiting = Vec::new();
    loop {
        let over = end.load(Ordering::Acquire);
        if !over {
            perf::wait(&rings, PACE_MS);
        }
        // a record may be overtaken by a later one of another processor: those of this look wait for the next
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
            horizon = waiting.last().map_or(0, |last: &perf::Told| last.time);
        }
        waiting.append(&mut new);
        waiting.sort_by_key(|told| told.time);
        let ripe = waiting.partition_point(|told| told.time <= horizon);
        for told in waiting.drain(..ripe) {
            tree.take(told);
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
    if !is_refusal(&error) {
        return ProfileError::Setup("perf_event_open", error);
    }
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    ProfileError::Refused {
        error,
        paranoid: paranoid.map(|text| text.trim().to_owned()),
    }
}
