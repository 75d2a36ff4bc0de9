//! Encodes fields to header blocks.

use super::table::Table;
use super::{integer, static_table, text};

/// How a field is encoded that is in no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Indexing {
    /// Insert it, so that it takes one or two bytes in later blocks.
    Incremental,
    /// Do not insert it.
    Without,
    /// Do not insert it, and forbid intermediaries to do so: for secrets (RFC 7541 section 7.1.3).
    Never,
}

/// Encodes the header blocks of one direction of one connection, in the order in which they are
/// sent.
#[derive(Debug)]
pub struct Encoder {
    table: Table,
    /// The smallest and the last size since the last block; both must be sent (RFC 7541 section
    /// 4.2).
    resized: Option<(u32, u32)>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            table: Table::new(super::DEFAULT_TABLE_SIZE),
            resized: None,
        }
    }
}

impl Encoder {
    /// Applies the peer's SETTINGS_HEADER_TABLE_SIZE or a smaller size. The next block announces it
    /// to the peer.
    pub fn resize(&mut self, bytes: u32) {
        let smallest = self
            .resized
            .map_or(bytes, |(smallest, _)| smallest.min(bytes));
        self.resized = Some((smallest, bytes));
        self.table.resize(bytes);
    }

    /// Starts a block: appends the pending size updates.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some((smallest, last)) = self.resized.take() {
            if smallest < last {
                integer::write(smallest as usize, 5, 0x20, out);
            }
            integer::write(last as usize, 5, 0x20, out);
        }
    }

    /// Appends one field. A field in a table is sent as its index for every `indexing` except
    /// [`Indexing::Never`].
    pub fn encode(&mut self, name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        let found = self.find(name, value);
        if let (Some((index, true)), Indexing::Incremental | Indexing::Without) = (found, indexing)
        {
            integer::write(index, 7, 0x80, out);
            return;
        }
        let name_index = found.map_or(0, |(index, _)| index);
        match indexing {
            Indexing::Incremental => integer::write(name_index, 6, 0x40, out),
            Indexing::Without => integer::write(name_index, 4, 0x00, out),
            Indexing::Never => integer::write(name_index, 4, 0x10, out),
        }
        if name_index == 0 {
            text::write(name, 7, 0, 0x80, out);
        }
        text::write(value, 7, 0, 0x80, out);
        if indexing == Indexing::Incremental {
            self.table.insert(name, value);
        }
    }

    /// The index of a field, and whether its value matches, too. Prefers the static table, whose
    /// indices are shorter.
    fn find(&self, name: &[u8], value: &[u8]) -> Option<(usize, bool)> {
        let fixed = static_table::find(name, value).map(|(index, whole)| (index as usize, whole));
        if let Some((_, true)) = fixed {
            return fixed;
        }
        let mut by_name = fixed;
        for age in 0..self.table.len() {
            let (own_name, own_value) = self.table.find(age)?;
            if own_name == name {
                let index = static_table::LEN as usize + 1 + age;
                if own_value == value {
                    return Some((index, true));
                }
                by_name = by_name.or(Some((index, false)));
            }
        }
        by_name
    }
}
