//! The dynamic table (RFC 7541 sections 2.3.2 and 4): newest entry first; the oldest are evicted
//! when the size is exceeded.
//!
//! All strings are in one buffer, oldest first, so an insertion copies bytes and rarely allocates.

use std::collections::VecDeque;

/// Size of an entry in addition to its strings, in bytes (RFC 7541 section 4.1).
pub(super) const OVERHEAD: usize = 32;

/// The entries that both ends of a direction hold.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Oldest first; the newest is index 0 for callers.
    entries: VecDeque<Entry>,
    /// The strings of all entries in order, after `dead` bytes of evicted entries.
    strings: Vec<u8>,
    dead: usize,
    size: usize,
    max_size: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    name_len: u32,
    value_len: u32,
    /// Start of its strings, counted from the first byte that the table ever held.
    at: u64,
}

impl Table {
    pub(super) fn new(max_size: u32) -> Self {
        Self {
            max_size: max_size as usize,
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn max_size(&self) -> usize {
        self.max_size
    }

    pub(super) fn resize(&mut self, max_size: u32) {
        self.max_size = max_size as usize;
        self.evict(0);
    }

    /// Name and value of the entry of this age; 0 is the newest.
    pub(super) fn find(&self, age: usize) -> Option<(&[u8], &[u8])> {
        let newest = self.entries.len().checked_sub(1)?;
        let entry = self.entries[newest.checked_sub(age)?];
        let name_at = self.place(entry.at);
        let value_at = name_at + entry.name_len as usize;
        let end = value_at + entry.value_len as usize;
        Some((
            &self.strings[name_at..value_at],
            &self.strings[value_at..end],
        ))
    }

    /// Inserts an entry. An entry larger than the table empties it and is not stored (RFC 7541
    /// section 4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + OVERHEAD;
        self.evict(size);
        if size > self.max_size {
            return;
        }
        self.compact();
        let at = self.base() + self.strings.len() as u64;
        self.strings.extend_from_slice(name);
        self.strings.extend_from_slice(value);
        self.entries.push_back(Entry {
            name_len: name.len() as u32,
            value_len: value.len() as u32,
            at,
        });
        self.size += size;
    }

    /// Evicts entries until `incoming` bytes fit.
    fn evict(&mut self, incoming: usize) {
        while self.size + incoming > self.max_size {
            let Some(oldest) = self.entries.pop_front() else {
                return;
            };
            let strings = oldest.name_len as usize + oldest.value_len as usize;
            self.dead += strings;
            self.size -= strings + OVERHEAD;
        }
    }

    /// Releases the space of evicted entries when it is the larger half: each byte moves at most
    /// once per inserted byte.
    fn compact(&mut self) {
        if self.dead * 2 > self.strings.len() {
            self.strings.drain(..self.dead);
            self.dead = 0;
        }
    }

    /// Position of the first byte of `strings`, counted as in `Entry::at`.
    fn base(&self) -> u64 {
        // the first live entry follows the dead bytes directly
        self.entries
            .front()
            .map_or(0, |oldest| oldest.at - self.dead as u64)
    }

    fn place(&self, at: u64) -> usize {
        (at - self.base()) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_are_evicted_when_the_size_is_exceeded() {
        let mut table = Table::new(100);
        for n in 0..50u8 {
            table.insert(b"nm", &[n; 10]);
            assert_eq!(table.find(0).unwrap().1, [n; 10]);
            assert_eq!(table.len(), if n == 0 { 1 } else { 2 }, "44 bytes each");
            if n > 0 {
                assert_eq!(table.find(1).unwrap().1, [n - 1; 10]);
            }
            assert_eq!(table.find(2), None);
            assert!(table.strings.len() <= 60, "dead strings are given back");
        }
    }

    #[test]
    fn an_entry_larger_than_the_table_empties_it() {
        let mut table = Table::new(64);
        table.insert(b"a", b"b");
        table.insert(b"a", &[0; 64]);
        assert_eq!((table.len(), table.size), (0, 0));
        table.insert(b"c", b"d");
        assert_eq!(table.find(0).unwrap().0, b"c");
    }

    #[test]
    fn shrinking_evicts_and_growing_does_not() {
        let mut table = Table::new(4096);
        for n in 0..4u8 {
            table.insert(&[n], &[n]);
        }
        table.resize(68);
        assert_eq!((table.len(), table.find(1).unwrap().0), (2, [2].as_slice()));
        table.resize(4096);
        assert_eq!(table.len(), 2);
    }
}
