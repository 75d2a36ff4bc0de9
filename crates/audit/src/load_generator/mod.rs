//! Results of load generators with one row or line per request: hey, oha, k6, vegeta.
//!
//! None of them names the connection of a request. Reuse is inferred from the time for connecting
//! where a tool measures it, and is unknown otherwise. Results with sums only are refused, with the
//! command that writes requests.

mod csv_row;
mod hey;
mod k6;
mod oha;
mod summary;
mod vegeta;

pub(crate) use summary::Summary;

use crate::client::{self, Entries, Entry, Source};
use crate::error::AuditError;
use crate::event_writer::EventWriter;
use crate::format::LoadGenerator;
use crate::input::{Input, LONGEST_LINE};
use crate::input_summary::{InputSummary, Unit};
use crate::unread_lines::{LineState, UnreadLines};

/// Converts lines to requests.
trait Rows {
    /// Reads a line. Returns the request that it completes.
    ///
    /// # Errors
    /// If the line cannot be parsed.
    fn take(&mut self, line: &str) -> Result<Option<Entry>, NotARow>;
    /// Ends the file. Returns the last request if it is complete.
    fn finish(&mut self) -> Option<Entry> {
        None
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

/// How the rows of a load generator are detected and read.
struct RowFormat {
    tool: LoadGenerator,
    program: &'static str,
    /// Whether a line is the first one of such a file.
    is_first: fn(&str) -> bool,
    rows: fn() -> Box<dyn Rows>,
    /// Its times count from the start of the run.
    is_relative: bool,
    /// Facts that its rows do not hold and that limit the result.
    missing: Option<&'static str>,
}

const FORMATS: [RowFormat; 6] = [
    RowFormat {
        tool: LoadGenerator::Hey,
        program: "hey",
        is_first: |line| line == hey::HEAD,
        rows: || each(hey::HEAD, hey::row),
        is_relative: true,
        missing: Some(
            "hey writes no rows for requests that failed, nor when the run was (it begins at 1970), and times to 0.1 ms only: what \
             took less to connect counts as reused",
        ),
    },
    RowFormat {
        tool: LoadGenerator::Oha,
        program: "oha",
        is_first: |line| line == oha::HEAD,
        rows: || each(oha::HEAD, oha::row),
        is_relative: true,
        missing: Some(
            "oha writes no rows for requests that failed, nor when the run was (it begins at 1970)",
        ),
    },
    RowFormat {
        tool: LoadGenerator::K6Csv,
        program: "k6",
        is_first: k6::is_head,
        rows: || Box::new(k6::K6::csv()),
        is_relative: false,
        missing: None,
    },
    RowFormat {
        tool: LoadGenerator::K6Json,
        program: "k6",
        is_first: k6::is_object,
        rows: || Box::new(k6::K6::default()),
        is_relative: false,
        missing: None,
    },
    RowFormat {
        tool: LoadGenerator::VegetaCsv,
        program: "vegeta",
        is_first: vegeta::is_row,
        rows: || each("", vegeta::row),
        is_relative: false,
        missing: None,
    },
    RowFormat {
        tool: LoadGenerator::VegetaJson,
        program: "vegeta",
        is_first: vegeta::is_object,
        rows: || each("", vegeta::object),
        is_relative: false,
        missing: None,
    },
];

impl LoadGenerator {
    /// The load generator that wrote a file with these first bytes.
    pub(crate) fn detect(prefix: &[u8]) -> Option<LoadGenerator> {
        let end = memchr::memchr(b'\n', prefix).unwrap_or(prefix.len());
        let first = std::str::from_utf8(&prefix[..end]).ok()?.trim();
        let format = FORMATS.iter().find(|format| (format.is_first)(first));
        format.map(|format| format.tool)
    }

    fn row_format(self) -> &'static RowFormat {
        &FORMATS[self as usize]
    }

    /// Start of the first requests, in nanoseconds since 1970; 0 if times count from the start of
    /// the run.
    pub(crate) fn begins_at(self, prefix: &[u8]) -> Option<u64> {
        let format = self.row_format();
        if format.is_relative {
            return Some(0);
        }
        let (_, first) = self.first_rows(prefix);
        first
    }

    /// Whether the first times have whole seconds only.
    pub(crate) fn is_coarse(self, prefix: &[u8]) -> bool {
        let (rows, _) = self.first_rows(prefix);
        rows.is_coarse()
    }

    /// Reads the rows of the prefix. Returns the earliest time in them, in nanoseconds since 1970.
    fn first_rows(self, prefix: &[u8]) -> (Box<dyn Rows>, Option<u64>) {
        let whole = memchr::memrchr(b'\n', prefix).unwrap_or(prefix.len());
        let mut rows = (self.row_format().rows)();
        let text = String::from_utf8_lossy(&prefix[..whole]);
        let entries = text
            .lines()
            .filter_map(|line| rows.take(line).unwrap_or_default());
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
    tool: LoadGenerator,
    writer: &mut EventWriter<'_>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<InputSummary, AuditError> {
    let format = tool.row_format();
    let mut rows = (format.rows)();
    let mut read = ReadRows::default();
    input.each_line(LONGEST_LINE, go_on, |line| {
        let text = line.text();
        let taken = rows.take(text.trim_end());
        let state = match taken {
            Ok(_) => LineState::Read,
            Err(_) => LineState::Unread,
        };
        read.lines.count(line, state);
        read.take(taken.unwrap_or_else(|NotARow(before)| before.map(|entry| *entry)));
        true
    });
    read.take(rows.finish());
    if read.entries.is_empty() {
        return Err(input.broken("there is no request in it"));
    }
    if tool == LoadGenerator::Oha {
        oha::name_connections(&mut read.entries);
    }
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
        shows_lookups: tool == LoadGenerator::Hey,
        kind: "tool",
        better: "`intact watch -- COMMAND` around the tool shows it",
        prefix: &prefix,
    };
    let evidence = client::record(&source, writer);
    let count = read.entries.len() as u64 + read.left_out;
    let summary = input.account(Unit::Entries, count, read.lines.unread);
    Ok(summary.with_evidence(evidence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_has_its_own_format() {
        for (at, format) in FORMATS.iter().enumerate() {
            assert_eq!(format.tool as usize, at);
        }
    }
}
