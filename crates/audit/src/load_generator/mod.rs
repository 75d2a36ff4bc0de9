//! Results of load generators with one row or line per request: hey, oha, k6, vegeta.
//!
//! None of them names the connection of a request. Reuse is inferred from the time for connecting
//! where a tool measures it, and is unknown otherwise. Results with sums only are refused, with the
//! command that writes requests.

mod ab;
mod gatling;
mod hey;
mod jtl;
mod k6;
mod oha;
mod summary;
mod vegeta;

pub(crate) use summary::Summary;

use crate::client::{self, Entries, Entry, Source};
use crate::error::AuditError;
use crate::event_writer::EventWriter;
use crate::input::{Input, LONGEST_LINE};
use crate::input_summary::{InputSummary, Unit};
use crate::unread_lines::{LineState, UnreadLines};
use intact_ledger::Evidence;
use std::fmt;

/// Converts lines to requests.
trait Rows {
    /// Reads a line. Returns the request that it completes.
    ///
    /// # Errors
    /// If the line cannot be parsed.
    fn take(&mut self, line: &str) -> Result<Option<Entry>, NotARow>;
    /// Ends the file. Returns the last request if it is complete.
    ///
    /// # Errors
    /// If the file ends within a row.
    fn finish(&mut self) -> Result<Option<Entry>, NotARow> {
        Ok(None)
    }
    /// Whether the times have whole seconds only.
    fn is_coarse(&self) -> bool {
        false
    }
}

/// A line that is no row of its tool, with the request that was complete before it.
#[derive(Debug, Default)]
struct NotARow(Option<Box<Entry>>);

/// A format in which each line except the header is a request.
struct Each {
    head: &'static str,
    read: fn(&str) -> Option<Entry>,
}

impl Rows for Each {
    fn take(&mut self, line: &str) -> Result<Option<Entry>, NotARow> {
        if line.is_empty() || line == self.head {
            return Ok(None);
        }
        (self.read)(line).map(Some).ok_or_else(NotARow::default)
    }
}

fn each(head: &'static str, read: fn(&str) -> Option<Entry>) -> Box<dyn Rows> {
    Box::new(Each { head, read })
}

/// How the rows of a load generator are detected and read. To add one, add a file with its row.
pub struct RowFormat {
    /// The program and the format of the rows, for users.
    pub(crate) name: &'static str,
    program: &'static str,
    /// Whether a line is the first one of such a file.
    is_first: fn(&str) -> bool,
    rows: fn() -> Box<dyn Rows>,
    /// Its times count from the start of the run.
    is_relative: bool,
    /// What each row shows, in addition to the setup.
    pub(crate) shows: &'static [Evidence],
    /// A DNS time above zero means a lookup.
    shows_lookups: bool,
    /// Names the connections of all requests, if they show them together.
    name_connections: fn(&mut [Entry]),
    /// Facts that its rows do not hold and that limit the result.
    missing: Option<&'static str>,
}

/// A tool that records each request with its duration.
const EACH: RowFormat = RowFormat {
    name: "",
    program: "",
    is_first: |_| false,
    rows: || each("", |_| None),
    is_relative: false,
    shows: &[Evidence::Attempts, Evidence::Durations],
    shows_lookups: false,
    name_connections: |_| {},
    missing: None,
};

/// What the rows show with the method and the whole URL of a request.
const WITH_URL: &[Evidence] = &[Evidence::Attempts, Evidence::Durations, Evidence::Repeats];

static FORMATS: [&RowFormat; 10] = [
    &hey::CSV,
    &oha::CSV,
    &k6::CSV,
    &k6::JSON,
    &vegeta::CSV,
    &vegeta::JSON,
    &jtl::CSV,
    &jtl::XML,
    &gatling::LOG,
    &ab::GNUPLOT,
];

/// The load generator that wrote a file with these first bytes.
pub(crate) fn detect(prefix: &[u8]) -> Option<&'static RowFormat> {
    let mut lines = prefix.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    // a declaration of XML shows no format
    let first = lines.find(|line| !line.starts_with(b"<?xml"))?;
    let first = std::str::from_utf8(first).ok()?;
    FORMATS.into_iter().find(|format| (format.is_first)(first))
}

impl PartialEq for RowFormat {
    fn eq(&self, other: &RowFormat) -> bool {
        self.name == other.name
    }
}

impl Eq for RowFormat {}

impl fmt::Debug for RowFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl RowFormat {
    /// Start of the first requests, in nanoseconds since 1970; 0 if times count from the start of
    /// the run.
    pub(crate) fn begins_at(&self, prefix: &[u8]) -> Option<u64> {
        if self.is_relative {
            return Some(0);
        }
        let (_, first) = self.first_rows(prefix);
        first
    }

    /// Whether the first times have whole seconds only.
    pub(crate) fn is_coarse(&self, prefix: &[u8]) -> bool {
        let (rows, _) = self.first_rows(prefix);
        rows.is_coarse()
    }

    /// Reads the rows of the prefix. Returns the earliest time in them, in nanoseconds since 1970.
    fn first_rows(&self, prefix: &[u8]) -> (Box<dyn Rows>, Option<u64>) {
        let whole = memchr::memrchr(b'\n', prefix).unwrap_or(prefix.len());
        let mut rows = (self.rows)();
        let text = String::from_utf8_lossy(&prefix[..whole]);
        let entries = text
            .lines()
            .filter_map(|line| rows.take(line.trim_end()).unwrap_or_default());
        let first = entries.map(|entry| entry.at).min();
        (rows, first)
    }
}

/// The requests of a file, and how much of it was read.
#[derive(Default)]
struct ReadRows {
    entries: Entries,
    lines: UnreadLines,
    /// Number of requests above the limit.
    left_out: u64,
}

impl ReadRows {
    fn take(&mut self, entry: Option<Entry>) {
        match entry {
            Some(_) if self.entries.are_full() => self.left_out += 1,
            Some(entry) => self.entries.push(entry),
            None => {}
        }
    }

    /// Records caveats for requests that are missing.
    fn record_limits(&self, prefix: &str, format: &RowFormat, writer: &mut EventWriter<'_>) {
        let read = self.entries.len();
        let words = format!("requests beyond the first {read} were not read");
        writer.incompletes(prefix, &[(self.left_out, "input-too-long", &words)]);
        self.lines.record(prefix, "", writer);
        if let Some(missing) = format.missing {
            writer.incomplete("tool-without-failures", format!("{prefix}{missing}"));
        }
    }
}

/// Reads rows to the end of the file.
pub(crate) fn read(
    input: &mut Input,
    format: &'static RowFormat,
    writer: &mut EventWriter<'_>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<InputSummary, AuditError> {
    let mut rows = (format.rows)();
    let mut read = ReadRows::default();
    input.each_line(LONGEST_LINE, go_on, |line| {
        let text = line.text();
        let taken = rows.take(text.trim_end());
        let state = match taken {
            Ok(_) => LineState::Read,
            Err(_) => LineState::Unread,
        };
        read.lines.count(line.is_cut, line.is_too_long, state);
        read.take(taken.unwrap_or_else(|NotARow(before)| before.map(|entry| *entry)));
        true
    });
    match rows.finish() {
        Ok(last) => read.take(last),
        Err(_) => read.lines.unread += 1,
    }
    if read.entries.is_empty() {
        return Err(input.broken("there is no request in it"));
    }
    (format.name_connections)(&mut read.entries);
    let prefix = input.prefix();
    read.record_limits(&prefix, format, writer);
    let is_coarse = rows.is_coarse();
    if is_coarse {
        writer.caveat(
            "tool-coarse-times",
            format!(
                "{prefix}times are written to the second only: requests of the same second count as overlapping, so that connections called \
                 avoidable are the fewest (K6_CSV_TIME_FORMAT=rfc3339_nano, or --out json=FILE, has finer times)"
            ),
        );
    }
    let source = Source {
        entries: &read.entries,
        program: format.program,
        is_coarse,
        shows_lookups: format.shows_lookups,
        kind: "tool",
        better: "`intact watch -- COMMAND` around the tool shows it",
        prefix: &prefix,
    };
    let evidence = client::record(&source, writer);
    let count = read.entries.len() as u64 + read.left_out;
    let summary = input.account(Unit::Entries, count, read.lines.unread);
    Ok(summary.with_evidence(evidence))
}
