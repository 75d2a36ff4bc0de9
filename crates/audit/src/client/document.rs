//! Files of requests that are read as a whole, not by lines: one row per format. To add one, add a
//! file with its row.

use super::{Entries, Entry, Source, record};
use crate::error::AuditError;
use crate::event_writer::{EventWriter, agreeing};
use crate::input::{Input, Stream};
use crate::input_summary::{InputSummary, Unit};
use crate::read_buffer::ReadBuffer;
use crate::{devtools, har, mitmproxy};
use std::fmt;

/// Caveat for entries that are damaged.
const UNREAD: &str =
    "entries have no time or no URL: the requests that they record are not counted";

/// How the requests of a client are detected and read.
pub struct DocumentFormat {
    /// The name that users see.
    pub(crate) name: &'static str,
    /// Whether a file with these first bytes has the format.
    pub(crate) detect: fn(&[u8]) -> bool,
    /// Start of the first request in the first bytes, in nanoseconds since 1970.
    pub(crate) begins_at: fn(&[u8]) -> Option<u64>,
    /// Reads to the end, or to the first error.
    pub(crate) read: fn(&mut ReadBuffer<Stream>, &mut Recording) -> Result<(), String>,
    /// Prefix of the ids of caveats.
    pub(crate) kind: &'static str,
    /// The remedy for missing evidence: a sentence without its full stop.
    pub(crate) better: &'static str,
    /// A DNS time above zero means a lookup.
    pub(crate) shows_lookups: bool,
}

/// The formats, in the order in which they are tried.
static FORMATS: [&DocumentFormat; 3] = [&har::FORMAT, &devtools::FORMAT, &mitmproxy::FORMAT];

impl PartialEq for DocumentFormat {
    fn eq(&self, other: &DocumentFormat) -> bool {
        self.name == other.name
    }
}

impl Eq for DocumentFormat {}

impl fmt::Debug for DocumentFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// The format of these first bytes.
pub(crate) fn detect(prefix: &[u8]) -> Option<&'static DocumentFormat> {
    FORMATS.into_iter().find(|format| (format.detect)(prefix))
}

/// The content of a file.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// The program that wrote the file.
    pub(crate) program: String,
    /// Requests that went over a network.
    pub(crate) entries: Entries,
    /// Number of all requests.
    pub(crate) seen: u64,
    /// Number of requests without network: from a cache, blocked, data URLs, or unread.
    pub(crate) skipped: u64,
    /// Of these, requests that cannot be read.
    pub(crate) unread: u64,
}

impl Recording {
    /// Counts a request, and keeps it if there is room. `None`: it did not go over a network.
    pub(crate) fn take(&mut self, entry: Option<Entry>) {
        self.seen += 1;
        match entry {
            Some(entry) if !self.entries.are_full() => self.entries.push(entry),
            Some(_) => {}
            None => self.skipped += 1,
        }
    }
}

/// The reason of a file that ends here, before its end.
pub(crate) fn cut(place: &str) -> String {
    format!(
        "the file ends {place}: it was cut, or is still being written. Copy it again as a whole"
    )
}

/// The reason of a file that breaks the rules of JSON. The place is one within a part of the file.
pub(crate) fn syntax(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return cut("within a value");
    }
    let text = error.to_string();
    let rule = text.split(" at line").next().unwrap_or_default();
    format!("the JSON is damaged: {rule}")
}

/// Reads a file to its end, or to the first error.
pub(crate) fn read(
    input: &mut Input,
    format: &'static DocumentFormat,
    writer: &mut EventWriter<'_>,
) -> Result<InputSummary, AuditError> {
    let mut recording = Recording::default();
    let end = (format.read)(&mut input.window, &mut recording);
    let prefix = input.prefix();
    match end {
        Ok(()) => {}
        Err(why) if recording.seen == 0 => return Err(input.broken(why)),
        Err(why) => writer.incomplete(
            "input-damaged",
            prefix.clone() + &agreeing(recording.seen, &format!("entries were read. Then {why}")),
        ),
    }
    let left_out = recording.seen - recording.entries.len() as u64 - recording.skipped;
    let words = format!(
        "entries beyond the first {} were not read",
        recording.seen - left_out
    );
    let unread = (recording.unread, "entries-not-read", UNREAD);
    writer.incompletes(&prefix, &[(left_out, "input-too-long", &words), unread]);
    let source = Source {
        entries: &recording.entries,
        program: &recording.program,
        kind: format.kind,
        is_coarse: false,
        shows_lookups: format.shows_lookups,
        better: format.better,
        prefix: &prefix,
    };
    let evidence = record(&source, writer);
    let summary = input.account(Unit::Entries, recording.seen, recording.skipped);
    Ok(summary.with_evidence(evidence))
}
