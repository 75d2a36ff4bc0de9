//! The sampled processes: their mappings, and the stacks of their samples.

use super::perf::{Mapping, PerfRecord, Sample, What};
use crate::cpu_category::CpuCategory;
use crate::platform::code::{AddressSpace, CodeLocation, Images, PerfMap};
use crate::{Frame, Gap, Profile, Stack};
use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

/// Limit of different stacks; samples of further ones count as lost.
const MAX_STACKS: usize = 200_000;
/// Limit of the levels of a stack; the innermost are kept.
const MAX_DEPTH: usize = 256;

/// A stack without names.
#[derive(PartialEq, Eq, Hash)]
struct RawStack {
    subject: usize,
    part: u32,
    command: Arc<str>,
    kernel: Vec<u64>,
    places: Vec<CodeLocation>,
}

#[derive(Default)]
pub(super) struct Tree {
    images: Images,
    spaces: HashMap<u32, AddressSpace>,
    names: HashMap<u32, Arc<str>>,
    stacks: HashMap<RawStack, u64>,
    lost: u64,
    marks: Marks,
}

/// When each part of the run began, on the clock of the records, in order.
pub(super) type Marks = Arc<Mutex<Vec<(u64, u32)>>>;

impl Tree {
    pub(super) fn new(marks: Marks) -> Tree {
        Tree {
            marks,
            ..Tree::default()
        }
    }

    /// Reads the mappings of a process that runs already.
    pub(super) fn take_running(&mut self, process: u32) {
        if let Ok(name) = fs::read_to_string(format!("/proc/{process}/comm")) {
            self.names.insert(process, name.trim_end().into());
        }
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        for line in maps.lines() {
            if let Some(mapping) = parse_mapping(process, line) {
                self.map(&mapping);
            }
        }
    }

    pub(super) fn take(&mut self, record: PerfRecord) {
        match record.what {
            What::Sample(sample) => self.sample(&sample, record.time),
            What::Mapped(mapping) => self.map(&mapping),
            What::Forked(fork) => {
                if let Some(space) = self.spaces.get(&fork.ppid) {
                    let space = space.fork(fork.pid);
                    self.spaces.insert(fork.pid, space);
                }
                if let Some(name) = self.names.get(&fork.ppid) {
                    let name = name.clone();
                    self.names.insert(fork.pid, name);
                }
            }
            What::Named { name, exec } => {
                if exec {
                    self.spaces.insert(name.pid, AddressSpace::new(name.pid));
                }
                let text = String::from_utf8_lossy(&name.comm);
                self.names
                    .insert(name.tid, text.trim_end_matches('\0').into());
            }
            What::Ended(exit) => {
                self.names.remove(&exit.tid);
                if exit.pid == exit.tid
                    && let Some(space) = self.spaces.remove(&exit.pid)
                {
                    self.images.keep_made(exit.pid, space.into_made());
                }
            }
            What::Lost(count) => self.lost += count,
        }
    }

    fn map(&mut self, mapping: &Mapping) {
        let space = self
            .spaces
            .entry(mapping.process)
            .or_insert_with(|| AddressSpace::new(mapping.process));
        space.map(
            &mut self.images,
            mapping.start..mapping.start.saturating_add(mapping.len),
            mapping.offset,
            &mapping.path,
        );
    }

    /// The part of the run at a time.
    fn part(&self, time: u64) -> u32 {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let after = marks.partition_point(|(since, _)| *since <= time);
        after.checked_sub(1).map_or(0, |at| marks[at].1)
    }

    fn sample(&mut self, sample: &Sample, time: u64) {
        let space = self
            .spaces
            .entry(sample.process)
            .or_insert_with(|| AddressSpace::new(sample.process));
        let mut places = Vec::new();
        space.unwind(&sample.registers, &sample.stack, MAX_DEPTH, &mut places);
        let command = self
            .names
            .get(&sample.thread)
            .or_else(|| self.names.get(&sample.process))
            .cloned()
            .unwrap_or_else(|| "?".into());
        let raw = RawStack {
            subject: sample.subject,
            part: self.part(time),
            command,
            kernel: sample.kernel.clone(),
            places,
        };
        if self.stacks.len() >= MAX_STACKS && !self.stacks.contains_key(&raw) {
            self.lost += 1;
            return;
        }
        *self.stacks.entry(raw).or_default() += 1;
    }

    /// Resolves the names.
    pub(super) fn finish(mut self, per_second: u64) -> Profile {
        for (process, space) in self.spaces.drain() {
            self.images.keep_made(process, space.into_made());
        }
        let mut gaps = Vec::new();
        if self.lost > 0 {
            gaps.push(Gap::Lost(self.lost));
        }
        let in_kernel = self.stacks.keys().any(|raw| !raw.kernel.is_empty());
        let kernel = in_kernel.then(PerfMap::of_kernel);
        if kernel.as_ref().is_some_and(PerfMap::is_empty) {
            gaps.push(Gap::NoKernelNames);
        }
        let images = &mut self.images;
        let mut stacks = Vec::with_capacity(self.stacks.len());
        for (raw, samples) in self.stacks.drain() {
            let mut frames: Vec<Frame> = Vec::with_capacity(raw.kernel.len() + raw.places.len());
            let name = |address| kernel.as_ref().and_then(|kernel| kernel.name(address));
            frames.extend(raw.kernel.iter().map(|at| Frame::Kernel(name(*at))));
            frames.extend(raw.places.iter().map(|place| images.frame(place)));
            stacks.push(Stack {
                subject: raw.subject,
                part: raw.part,
                command: raw.command,
                work: CpuCategory::of(&frames),
                frames,
                samples,
            });
        }
        Profile {
            stacks,
            per_second,
            gaps,
            maps: images.maps(),
        }
    }
}

/// Parses a line of `/proc/PID/maps`; `None` if it is not about code.
fn parse_mapping(process: u32, line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let may = words.next()?;
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let path = words.nth(2).unwrap_or("").trim_start();
    may.contains('x').then(|| Mapping {
        process,
        start,
        len: end.saturating_sub(start),
        offset,
        path: path.as_bytes().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_maps_about_code_are_read() {
        let line = "7f00-7f20 r-xp 00001000 08:01 123        /usr/lib/a b.so";
        let mapping = parse_mapping(1, line).unwrap();
        assert_eq!(
            (mapping.start, mapping.len, mapping.offset),
            (0x7f00, 0x20, 0x1000)
        );
        assert_eq!(mapping.path, b"/usr/lib/a b.so");
        assert!(parse_mapping(1, "7f00-7f20 rw-p 00000000 00:00 0 ").is_none());
        let made = parse_mapping(1, "7f00-7f20 rwxp 00000000 00:00 0 ").unwrap();
        assert!(made.path.is_empty());
    }
}
