//! The buffers that the kernel fills: one mapping with the ring of free buffers
//! (IORING_REGISTER_PBUF_RING) and the buffers themselves.
//!
//! The kernel takes a buffer from the ring when data arrives, and a completion names it. From then
//! on it is ours until [`BufferPool::release`].

use crate::mapping::Mapping;
use crate::process::page_size;
use io_uring::types::BufRingEntry;
use rustix::mm::MapFlags;
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

/// A mapping with the ring of free buffers at its start, and the buffers.
pub(super) struct BufferPool {
    map: Mapping,
    /// Where the first buffer begins.
    first: usize,
    /// Bytes of a buffer.
    each: usize,
    /// Number of buffers, a power of two.
    count: u16,
    /// The next entry of the ring to write.
    tail: u16,
}

impl BufferPool {
    /// Maps `count` buffers of `each` bytes, all of them free. `count` is rounded up to a power of
    /// two.
    pub(super) fn new(count: u16, each: usize) -> io::Result<BufferPool> {
        let count = count.clamp(1, 1 << 14).next_power_of_two();
        let page = usize::try_from(page_size()).unwrap_or(4096);
        let ring = usize::from(count) * size_of::<BufRingEntry>();
        let first = ring.next_multiple_of(page);
        let length = first + usize::from(count) * each;
        let map = Mapping::new(length, MapFlags::PRIVATE, None)?;
        let mut pool = BufferPool {
            map,
            first,
            each,
            count,
            tail: 0,
        };
        for buffer in 0..count {
            pool.release(buffer);
        }
        Ok(pool)
    }

    /// The address of the ring of free buffers, for its registration.
    pub(super) fn ring(&self) -> u64 {
        self.map.start().as_ptr().addr() as u64
    }

    /// Number of buffers.
    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// The content of a buffer that a completion named and that was not released since.
    pub(super) fn bytes(&self, buffer: u16) -> &[u8] {
        let at = self.first + usize::from(buffer % self.count) * self.each;
        // SAFETY: within the mapping, which lives as long as `self`. The kernel does not write to a
        // buffer before it is released, which needs `&mut self`.
        unsafe { std::slice::from_raw_parts(self.map.start().add(at).as_ptr(), self.each) }
    }

    /// Returns a buffer to the kernel.
    pub(super) fn release(&mut self, buffer: u16) {
        let at = self.first + usize::from(buffer % self.count) * self.each;
        let entry = usize::from(self.tail % self.count) * size_of::<BufRingEntry>();
        // SAFETY: the entry lies within the ring, is aligned to its size, and the kernel does not
        // read it before the tail has passed it. Of the first entry only the fields that
        // are not the tail are written.
        unsafe {
            let entry = self.map.start().add(entry).cast::<BufRingEntry>().as_mut();
            entry.set_addr(self.map.start().add(at).as_ptr().addr() as u64);
            entry.set_len(self.each as u32);
            entry.set_bid(buffer % self.count);
        }
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail lies in the first entry of the ring; it is shared with the kernel, which
        // only reads it.
        let tail = unsafe {
            let tail = BufRingEntry::tail(self.map.start().as_ptr().cast_const().cast());
            AtomicU16::from_ptr(tail.cast_mut())
        };
        tail.store(self.tail, Ordering::Release);
    }
}
