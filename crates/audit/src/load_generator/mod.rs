//! Results of load generators, a row or a line for each request: hey, oha, k6, vegeta. None names the connection that carried a
//! request, so reuse is told by the time for connecting where a tool measures it, and is unknown where it does not.
//! Results that hold no requests, only sums, are told apart and refused with the way to get the requests.

mod cells;
mod hey;
mod k6;
mod oha;
mod summary;
mod vegeta;

pub(crate) use summary::Summary;

use crate::client::{self, Entry, Source};
use crate::error::AuditError;
use crate::event_writer::EventWriter;
use crate::format::LoadGenerator;
use crate::input::Input;
use crate::input_summary::{InputSummary, Unit};

/// Requests that are read of one file; the rest is counted only.
const MAX_ENTRIES: usize = 500_000;
/// The longest line that is read, in bytes.
const LONGEST: usize = 1 << 20;
/// How many lines pass between two questions whether to go on.
const BREATH: u64 = 4096;

/// Takes lines, gives requests.
trait Rows {
    /// Takes a line; false where it cannot be understood.
    fn take(&mut self, line: &str) -> bool;
    /// The next request that is complete.
    fn next(&mut self) -> Option<Entry>;
    /// The file is over: what was still open is complete, or never will be.
    fn finish(&mut self) {}
    /// Whether times were told to the second.
    fn is_coarse(&self) -> bool {
        false
    }
}

/// Where each line but the head is a request.
struct Each {
    head: &'static str,
    read: fn(&str) -> Option<Entry>,
    ready: Option<Entry>,
}

impl Each {
    fn new(head: &'static str, read: fn(&str) -> Option<Entry>) -> Each {
        Each {
            head,
            read,
            ready: None,
        }
    }
}

impl Rows for Each {
    fn take(&mut self, line: &str) -> bool {
        if line.is_empty() || line == self.head {
            return true;
        }
        self.ready = (self.read)(line);
        self.ready.is_some()
    }

    fn next(&mut self) -> Option<Entry> {
        self.ready.take()
    }
}

impl LoadGenerator {
    /// The tool that a file with these first bytes is from.
    pub(crate) fn tell(prefix: &[u8]) -> Option<LoadGenerator> {
        let end = memchr::memchr(b'\n', prefix).unwrap_or(prefix.len());
        let first = std::str::from_utf8(&prefix[..end]).ok()?.trim();
        if first == hey::HEAD {
            Some(LoadGenerator::Hey)
        } else if first == oha::HEAD {
            Some(LoadGenerator::Oha)
        } else if k6::is_head(first) {
            Some(LoadGenerator::K6Csv)
        } else if k6::is_object(first) {
            Some(LoadGenerator::K6Json)
        } else if vegeta::is_row(first) {
            Some(LoadGenerator::VegetaCsv)
        } else if vegeta::is_object(first) {
            Some(LoadGenerator::VegetaJson)
        } else {
            None
        }
    }

    fn writer(self) -> &'static str {
        match self {
            LoadGenerator::Hey => "hey",
            LoadGenerator::Oha => "oha",
            LoadGenerator::K6Csv | LoadGenerator::K6Json => "k6",
            LoadGenerator::VegetaCsv | LoadGenerator::VegetaJson => "vegeta",
        }
    }

    fn rows(self) -> Box<dyn Rows> {
        match self {
            LoadGenerator::Hey => Box::new(Each::new(hey::HEAD, hey::row)),
            LoadGenerator::Oha => Box::new(Each::new(oha::HEAD, oha::row)),
            LoadGenerator::K6Csv => Box::new(k6::K6::csv()),
            LoadGenerator::K6Json => Box::new(k6::K6::json()),
            LoadGenerator::VegetaCsv => Box::new(Each::new("", vegeta::row)),
            LoadGenerator::VegetaJson => Box::new(Each::new("", vegeta::object)),
        }
    }

    /// When its first requests began, in nanoseconds since 1970; 0 for those that count from their own start.
    pub(crate) fn begins_at(self, prefix: &[u8]) -> Option<u64> {
        if matches!(self, LoadGenerator::Hey | LoadGenerator::Oha) {
            return Some(0);
        }
        let whole = memchr::memrchr(b'\n', prefix).unwrap_or(prefix.len());
        let mut rows = self.rows();
        let mut first: Option<u64> = None;
        for line in String::from_utf8_lossy(&prefix[..whole]).lines() {
            rows.take(line);
            while let Some(entry) = rows.next() {
                first = Some(first.map_or(entry.at, |first| first.min(entry.at)));
            }
        }
        first
    }

    /// What is not in its rows, as far as that matters here.
    fn caveat(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            LoadGenerator::Hey => (
                "tool-without-failures",
                "hey writes no rows for requests that failed, nor when the run was (it begins at 1970), and times to 0.1 ms only: what \
                 took less to connect counts as reused",
            ),
            LoadGenerator::Oha => (
                "tool-without-failures",
                "oha writes no rows for requests that failed, nor when the run was (it begins at 1970)",
            ),
            LoadGenerator::K6Csv
            | LoadGenerator::K6Json
            | LoadGenerator::VegetaCsv
            | LoadGenerator::VegetaJson => return None,
        })
    }
}

/// Reads rows to their end.
pub(crate) fn read(
    input: &mut Input,
    tool: LoadGenerator,
    scope: &mut EventWriter<'_>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<InputSummary, AuditError> {
    let mut rows = tool.rows();
    let mut entries = Vec::new();
    let (mut lines, mut skipped, mut left_out) = (0_u64, 0, 0_u64);
    let mut buffer = Vec::new();
    let mut over = false;
    while !over {
        over = !input.window.line(&mut buffer, LONGEST);
        if over {
            rows.finish();
        } else {
            lines += 1;
            let text = String::from_utf8_lossy(&buffer);
            skipped += u64::from(!rows.take(text.trim_end()));
        }
        while let Some(entry) = rows.next() {
            if entries.len() < MAX_ENTRIES {
                entries.push(entry);
            } else {
                left_out += 1;
            }
        }
        over |= lines % BREATH == 0 && !go_on();
    }
    if entries.is_empty() {
        return Err(AuditError::Broken {
            path: input.path.clone(),
            format: tool.as_str(),
            why: "there is no request in it".to_owned(),
        });
    }
    if tool == LoadGenerator::Oha {
        oha::name_connections(&mut entries);
    }
    let name = input.path.display().to_string();
    if left_out > 0 {
        scope.incomplete(
            "input-too-long",
            format!("{name}: {left_out} requests beyond the first {MAX_ENTRIES} were not read"),
        );
    }
    if skipped > 0 {
        scope.incomplete(
            "lines-not-read",
            format!(
                "{name}: {skipped} of {lines} lines cannot be read: their requests are not counted"
            ),
        );
    }
    if let Some((id, words)) = tool.caveat() {
        scope.incomplete(id, format!("{name}: {words}"));
    }
    let is_coarse = rows.is_coarse();
    if is_coarse {
        scope.caveat(
            "tool-coarse-times",
            format!(
                "{name}: times are told to the second only: requests of the same second count as overlapping, so that connections called \
                 avoidable are the fewest (K6_CSV_TIME_FORMAT=rfc3339_nano, or --out json=FILE, tells more)"
            ),
        );
    }
    let source = Source {
        entries: &entries,
        writer: tool.writer(),
        is_coarse,
        kind: "tool",
        better: "`intact watch -- COMMAND` around the tool tells",
        name: &name,
    };
    let evidence = client::tell(&source, scope);
    Ok(InputSummary {
        evidence: Some(evidence),
        ..input.account(Unit::Entries, entries.len() as u64 + left_out, skipped)
    })
}
