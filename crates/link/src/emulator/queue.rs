//! One direction's queue: packets in the order in which they are due, in recycled buffers.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Limit of the bytes in one direction: 30 ms at 8 GB/s. It bounds memory for any delay.
const MOST_BYTES: usize = 256 << 20;
/// Buffers of a packet of one segment. Big ones cost five times as much for small packets.
const SMALL: usize = 1_664;
/// Free buffers that are kept of each size.
const KEPT: usize = 512;

/// A packet on its way.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    /// When it is due, in ns of the caller's clock.
    pub(crate) due: u64,
    sequence: u64,
    /// The frame with its `virtio_net_hdr`.
    pub(crate) bytes: Vec<u8>,
}

impl Ord for Queued {
    fn cmp(&self, other: &Queued) -> Ordering {
        (self.due, self.sequence).cmp(&(other.due, other.sequence))
    }
}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Queued) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The queue of one direction.
#[derive(Default)]
pub(crate) struct Queue {
    queue: BinaryHeap<Reverse<Queued>>,
    sequence: u64,
    held: usize,
    small: Vec<Vec<u8>>,
    big: Vec<Vec<u8>>,
    /// The wire is busy until then, where there is a rate.
    pub(super) busy: u64,
    /// When the last packet is due: without jitter none overtakes another.
    pub(super) last: u64,
}

impl Queue {
    /// Queues a copy. `false`: no room.
    pub(super) fn push(&mut self, due: u64, frame: &[u8]) -> bool {
        if self.held + frame.len() > MOST_BYTES {
            return false;
        }
        let pool = self.pool(frame.len());
        let mut bytes = pool
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(frame.len().max(SMALL)));
        bytes.clear();
        bytes.extend_from_slice(frame);
        self.held += bytes.len();
        self.sequence += 1;
        self.queue.push(Reverse(Queued {
            due,
            sequence: self.sequence,
            bytes,
        }));
        true
    }

    /// When the next packet is due.
    pub(super) fn next(&self) -> Option<u64> {
        self.queue.peek().map(|Reverse(packet)| packet.due)
    }

    /// Takes the next packet if it is due by `now`.
    pub(super) fn pop(&mut self, now: u64) -> Option<Queued> {
        if self.next()? > now {
            return None;
        }
        let Reverse(packet) = self.queue.pop()?;
        self.held -= packet.bytes.len();
        Some(packet)
    }

    /// Takes a buffer back.
    pub(super) fn recycle(&mut self, packet: Queued) {
        let pool = self.pool(packet.bytes.len());
        if pool.len() < KEPT {
            pool.push(packet.bytes);
        }
    }

    /// The buffers that packets of this length are kept in.
    fn pool(&mut self, length: usize) -> &mut Vec<Vec<u8>> {
        match length <= SMALL {
            true => &mut self.small,
            false => &mut self.big,
        }
    }

    /// Throws everything away; how many packets.
    pub(super) fn clear(&mut self) -> u64 {
        let thrown = self.queue.len() as u64;
        self.queue.clear();
        self.held = 0;
        thrown
    }
}
