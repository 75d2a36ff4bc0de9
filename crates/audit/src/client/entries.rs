//! The entries of a file, in bounded memory.
//!
//! Their number and the bytes of their texts are limited. Repeated names are stored once.

use super::Entry;
use std::collections::HashSet;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Limit of entries per file; further ones are only counted.
const MOST: usize = 500_000;
/// Limit of the bytes of paths and ids per file.
const MOST_BYTES: usize = 64 << 20;

/// Entries in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    list: Vec<Entry>,
    bytes: usize,
    names: HashSet<Arc<str>>,
}

impl Entries {
    /// Whether the limit of entries or bytes is reached.
    pub(crate) fn are_full(&self) -> bool {
        self.list.len() >= MOST || self.bytes >= MOST_BYTES
    }

    /// Adds an entry.
    pub(crate) fn push(&mut self, mut entry: Entry) {
        let texts = [entry.full_target.as_deref(), entry.id.as_deref()];
        self.bytes += texts.into_iter().flatten().map(str::len).sum::<usize>();
        if let Some(origin) = &mut entry.origin {
            self.share(&mut origin.host);
        }
        if let Some(agent) = &mut entry.agent {
            self.share(agent);
        }
        self.list.push(entry);
    }

    fn share(&mut self, name: &mut Arc<str>) {
        if let Some(known) = self.names.get(&**name) {
            *name = known.clone();
        } else {
            self.bytes += name.len();
            self.names.insert(name.clone());
        }
    }
}

impl Deref for Entries {
    type Target = [Entry];

    fn deref(&self) -> &[Entry] {
        &self.list
    }
}

impl DerefMut for Entries {
    fn deref_mut(&mut self) -> &mut [Entry] {
        &mut self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str) -> Entry {
        let mut entry = Entry::begun(0);
        entry.set_request(Some(format!("http://a.example{path}")), None);
        entry
    }

    #[test]
    fn long_texts_fill_the_entries_before_their_number_does() {
        let mut entries = Entries::default();
        let path = format!("/{}", "x".repeat(1 << 20));
        while !entries.are_full() {
            entries.push(entry(&path));
        }
        assert_eq!(entries.len(), 64);
    }

    #[test]
    fn a_host_is_stored_once() {
        let mut entries = Entries::default();
        entries.push(entry("/a"));
        entries.push(entry("/b"));
        let host = |at: usize| entries[at].origin.as_ref().unwrap().host.clone();
        assert!(Arc::ptr_eq(&host(0), &host(1)));
    }
}
