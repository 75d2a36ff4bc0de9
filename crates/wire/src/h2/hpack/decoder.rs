//! Decodes header blocks to fields.

use super::error::Error;
use super::table::{OVERHEAD, Table};
use super::text::Text;
use super::{integer, static_table};

/// One header field, borrowed during a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name; pseudo-header fields with their colon.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// Sent as never indexed: the sender considers it sensitive (RFC 7541 section 7.1.3).
    pub sensitive: bool,
}

/// Properties of a decoded block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Block {
    /// Number of its fields.
    pub fields: usize,
    /// Size of its fields in bytes, according to RFC 9113 section 6.5.2: name + value + 32 per
    /// field.
    pub list_size: usize,
    /// It neither read nor changed the dynamic table, so the same bytes always mean the same
    /// fields.
    pub stateless: bool,
}

/// Decodes the header blocks of one direction of one connection, in their order.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// The largest table size that our SETTINGS allow.
    max_table_size: u32,
    max_list_size: usize,
    scratch: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(64 * 1024)
    }
}

impl Decoder {
    /// A decoder for a new connection. It refuses lists larger than `max_list_size`, in bytes as
    /// for [`Block::list_size`].
    pub fn new(max_list_size: usize) -> Self {
        Self {
            table: Table::new(super::DEFAULT_TABLE_SIZE),
            max_table_size: super::DEFAULT_TABLE_SIZE,
            max_list_size,
            scratch: Vec::new(),
        }
    }

    /// Records that our SETTINGS_HEADER_TABLE_SIZE was acknowledged. The table changes when the
    /// peer announces it, as it must.
    pub fn allow_table_size(&mut self, bytes: u32) {
        self.max_table_size = bytes;
        if (self.table.max_size() as u64) > u64::from(bytes) {
            self.table.resize(bytes);
        }
    }

    /// Allows a larger table, never a smaller one: an observer does not know which SETTINGS have
    /// taken effect.
    pub fn raise_table_size(&mut self, bytes: u32) {
        self.max_table_size = self.max_table_size.max(bytes);
    }

    /// Passes every field of a complete block to `visit`, in order. After an error the connection
    /// cannot continue.
    pub fn decode(
        &mut self,
        block: &[u8],
        mut visit: impl FnMut(Field<'_>),
    ) -> Result<Block, Error> {
        let mut input = block;
        let mut seen = Block {
            stateless: true,
            ..Block::default()
        };
        while let Some(&first) = input.first() {
            if first & 0xe0 == 0x20 {
                self.resize(&mut input, seen.fields)?;
                seen.stateless = false;
                continue;
            }
            let size = match first {
                0x80.. => self.indexed(&mut input, &mut seen, &mut visit)?,
                _ => self.literal(first, &mut input, &mut seen, &mut visit)?,
            };
            seen.fields += 1;
            seen.list_size += size + OVERHEAD;
        }
        Ok(seen)
    }

    fn resize(&mut self, input: &mut &[u8], fields_before: usize) -> Result<(), Error> {
        let size = integer::read(input, 5)?;
        if fields_before > 0 || size > self.max_table_size {
            return Err(Error::SizeUpdate {
                size,
                max: self.max_table_size,
            });
        }
        self.table.resize(size);
        Ok(())
    }

    /// RFC 7541 section 6.1.
    fn indexed(
        &mut self,
        input: &mut &[u8],
        seen: &mut Block,
        visit: &mut impl FnMut(Field<'_>),
    ) -> Result<usize, Error> {
        let index = integer::read(input, 7)?;
        let field = self.lookup(index, seen)?;
        let size = field.name.len() + field.value.len();
        self.check(seen, size)?;
        visit(field);
        Ok(size)
    }

    /// RFC 7541 section 6.2: with incremental indexing (01), without (0000), never (0001).
    fn literal(
        &mut self,
        first: u8,
        input: &mut &[u8],
        seen: &mut Block,
        visit: &mut impl FnMut(Field<'_>),
    ) -> Result<usize, Error> {
        let indexing = first & 0x40 != 0;
        let name_index = integer::read(input, if indexing { 6 } else { 4 })?;
        self.scratch.clear();
        let name = if name_index == 0 {
            Text::read_flagged(input, &mut self.scratch)?
        } else {
            // through the scratch buffer: the name may be in the entry that this insertion evicts
            let mut scratch = std::mem::take(&mut self.scratch);
            let found = self.lookup(name_index, seen);
            let found = found.map(|field| scratch.extend_from_slice(field.name));
            self.scratch = scratch;
            found?;
            Text::Scratch(0, self.scratch.len())
        };
        let value = Text::read_flagged(input, &mut self.scratch)?;
        let (name, value) = (name.within(&self.scratch), value.within(&self.scratch));
        let size = name.len() + value.len();
        self.check(seen, size)?;
        visit(Field {
            name,
            value,
            sensitive: first & 0xf0 == 0x10,
        });
        if indexing {
            // an entry larger than the table leaves it empty, as it was (RFC 7541 section 4.4)
            seen.stateless &= self.table.max_size() == 0;
            self.table.insert(name, value);
        }
        Ok(size)
    }

    fn lookup(&self, index: u32, seen: &mut Block) -> Result<Field<'_>, Error> {
        let place = (index as usize).checked_sub(1);
        let fixed = place.and_then(|place| static_table::ENTRIES.get(place));
        let found = fixed.copied().or_else(|| {
            seen.stateless = false;
            let age = index.checked_sub(static_table::LEN + 1)?;
            self.table.find(age as usize)
        });
        let (name, value) = found.ok_or_else(|| Error::Index {
            index,
            entries: static_table::LEN + self.table.len() as u32,
        })?;
        Ok(Field {
            name,
            value,
            sensitive: false,
        })
    }

    fn check(&self, seen: &Block, size: usize) -> Result<(), Error> {
        if seen.list_size + size + OVERHEAD > self.max_list_size {
            return Err(Error::ListTooLong {
                limit: self.max_list_size,
            });
        }
        Ok(())
    }
}
