//! Reads a HAR document as a stream: entries are converted one by one, bodies are never stored.

use super::raw::RawEntry;
use super::short_strings::ShortStrings;
use crate::client::Entries;
use crate::lenient::Lenient;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;
use std::io::{BufReader, Read};

/// The content of a file.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// The program that wrote the file.
    pub(super) creator: String,
    /// Entries that went over a network.
    pub(super) entries: Entries,
    /// Number of all entries.
    pub(super) seen: u64,
    /// Number of entries without network: from a cache, blocked, data URLs, or without a time.
    pub(super) skipped: u64,
    /// Indexes of the entries with Chrome's socket id.
    with_socket: HashSet<usize>,
}

impl Document {
    /// Reads to the end, or to the first syntax error; entries before it are kept.
    pub(super) fn read(&mut self, input: impl Read) -> serde_json::Result<()> {
        let text = ShortStrings::new(BufReader::new(SkipMark::new(input)));
        let mut json = serde_json::Deserializer::from_reader(BufReader::new(text));
        let end = Root(self).deserialize(&mut json);
        // in the other entries, `connection` is a port
        if !self.with_socket.is_empty() {
            let entries = self.entries.iter_mut().enumerate();
            for (_, entry) in entries.filter(|(at, _)| !self.with_socket.contains(at)) {
                entry.id = None;
            }
        }
        end
    }
}

/// Skips a byte order mark.
struct SkipMark<R> {
    inner: R,
    begun: bool,
    held: Vec<u8>,
}

impl<R: Read> SkipMark<R> {
    fn new(inner: R) -> Self {
        SkipMark {
            inner,
            begun: false,
            held: Vec::new(),
        }
    }
}

impl<R: Read> Read for SkipMark<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if !self.begun {
            self.begun = true;
            let mut first = Vec::new();
            self.inner.by_ref().take(3).read_to_end(&mut first)?;
            if first != b"\xef\xbb\xbf" {
                self.held = first;
            }
        }
        if self.held.is_empty() {
            return self.inner.read(into);
        }
        let len = self.held.len().min(into.len());
        into[..len].copy_from_slice(&self.held[..len]);
        self.held.drain(..len);
        Ok(len)
    }
}

/// The outermost object.
struct Root<'a>(&'a mut Document);
/// The value of `log`.
struct Log<'a>(&'a mut Document);
/// The list of entries.
struct EntryList<'a>(&'a mut Document);

#[derive(Debug, Default, Deserialize)]
struct Named {
    #[serde(default)]
    name: Lenient,
}

macro_rules! seed {
    ($name:ident, $method:ident) => {
        impl<'de> DeserializeSeed<'de> for $name<'_> {
            type Value = ();

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
                deserializer.$method(self)
            }
        }
    };
}
seed!(Root, deserialize_map);
seed!(Log, deserialize_map);
seed!(EntryList, deserialize_seq);

impl<'de> Visitor<'de> for Root<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the key `log`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(key) = object.next_key::<String>()? {
            if key == "log" {
                object.next_value_seed(Log(self.0))?;
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Log<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the object `log` of a HAR")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(key) = object.next_key::<String>()? {
            match key.as_str() {
                "creator" => {
                    let named: Option<Named> = object.next_value()?;
                    let name = named.and_then(|named| named.name.text());
                    self.0.creator = name.unwrap_or_default();
                }
                "entries" => object.next_value_seed(EntryList(self.0))?,
                _ => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for EntryList<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the list of entries of a HAR")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let document = self.0;
        loop {
            if document.entries.are_full() {
                match list.next_element::<IgnoredAny>()? {
                    Some(_) => document.seen += 1,
                    None => return Ok(()),
                }
                continue;
            }
            let Some(raw) = list.next_element::<RawEntry>()? else {
                return Ok(());
            };
            document.seen += 1;
            match raw.read() {
                Some(entry) => {
                    if raw.has_socket_id() {
                        document.with_socket.insert(document.entries.len());
                    }
                    document.entries.push(entry);
                }
                None => document.skipped += 1,
            }
        }
    }
}
