//! Runs of both directions that wait until a gap in either is filled or given up.
//!
//! So they can be passed on in order of time. Within a direction, the order of the bytes stays.

use super::Run;
use crate::Side;

/// Runs that wait, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct HeldRuns {
    runs: Vec<HeldRun>,
    bytes: usize,
    /// The order of the last run of each side.
    last: [u64; 2],
}

#[derive(Debug)]
struct HeldRun {
    from: Side,
    /// Its time, but not earlier than that of the run before it.
    order: u64,
    at: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Bytes(Vec<u8>),
    Gap(u64),
}

impl HeldRuns {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Their memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn hold(&mut self, from: Side, run: Run<'_>) {
        let (at, content) = match run {
            Run::Bytes { bytes, at } => (at, Content::Bytes(bytes.to_vec())),
            Run::Gap { len, at } => (at, Content::Gap(len)),
        };
        self.bytes += size_of::<HeldRun>();
        if let Content::Bytes(bytes) = &content {
            self.bytes += bytes.len();
        }
        let last = &mut self.last[from as usize];
        *last = at.max(*last);
        let order = *last;
        self.runs.push(HeldRun {
            from,
            order,
            at,
            content,
        });
    }

    /// Passes on all runs.
    pub(super) fn release(&mut self, mut emit: impl FnMut(Side, Run<'_>)) {
        let mut runs = std::mem::take(self).runs;
        runs.sort_by_key(|run| run.order);
        for HeldRun {
            from, at, content, ..
        } in runs
        {
            match content {
                Content::Bytes(bytes) => emit(from, Run::Bytes { bytes: &bytes, at }),
                Content::Gap(len) => emit(from, Run::Gap { len, at }),
            }
        }
    }
}
