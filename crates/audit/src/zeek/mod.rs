//! Zeek's logs: `conn.log` has connections and their ends, `ssl.log` TLS handshakes, `http.log` the
//! unencrypted requests.
//!
//! They are joined by `uid`. Must not guess what a missing log would show.

mod conn_state;
mod connection;
mod joiner;
mod record;
mod request;
mod service;

pub(crate) use joiner::Joiner;
pub(crate) use record::other_log;

use crate::error::AuditError;
use crate::event_writer::EventWriter;
use crate::format::Log;
use crate::input::{Input, LONGEST_LINE};
use crate::input_summary::{InputSummary, Unit};
use crate::unread_lines::{LineState, UnreadLines};
use record::RecordLayout;

/// Error for a file that is none of the logs that its first lines announce.
const NO_RECORD: &str = "no line has the columns that the header names";
/// Caveat for lines that begin before the base.
const EARLY: &str =
    "lines have a time before the first ones: they count as at the beginning of the log";

/// Detects the log by its first bytes.
pub(crate) fn detect(prefix: &[u8]) -> Option<Log> {
    RecordLayout::detect(prefix).map(|(log, _)| log)
}

/// Start of the first lines, in nanoseconds since 1970.
pub(crate) fn begins_at(prefix: &[u8]) -> Option<u64> {
    let (_, layout) = RecordLayout::detect(prefix)?;
    let text = String::from_utf8_lossy(prefix);
    let starts = text.lines().filter_map(|line| layout.read(line)?.start());
    starts.min()
}

/// Reads one of the logs to its end. Its events are written after all logs are read.
pub(crate) fn read(
    input: &mut Input,
    log: Log,
    weave: &mut Joiner,
    writer: &mut EventWriter<'_>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<InputSummary, AuditError> {
    let Some((_, layout)) = RecordLayout::detect(input.window.available()) else {
        return Err(input.broken(NO_RECORD));
    };
    let (mut lines, mut skipped, mut early) = (UnreadLines::default(), 0, 0);
    weave.begin(log);
    input.each_line(LONGEST_LINE, go_on, |line| {
        let whole = line;
        let text = line.text();
        let text = text.trim_end_matches(['\r', '\n']);
        if (text.is_empty() && !line.is_too_long) || text.starts_with('#') {
            return true;
        }
        let record = layout.read(text);
        let is_read = record.as_ref().is_some_and(|record| record.is_whole(log));
        lines.count(
            whole.is_cut,
            whole.is_too_long,
            if is_read {
                LineState::Read
            } else {
                LineState::Unread
            },
        );
        let start = record.as_ref().and_then(|record| record.start());
        early += u64::from(start.is_some_and(|start| start < writer.run.base));
        let record = record.filter(|_| is_read);
        let used = record.is_some_and(|record| weave.take(log, &record, writer));
        skipped += u64::from(!used);
        true
    });
    if lines.all > 0 && skipped == lines.all && !weave.knows_anything() {
        return Err(input.broken(NO_RECORD));
    }
    lines.record(&input.prefix(), "", writer);
    writer.caveats(&input.prefix(), &[(early, "input-out-of-order", EARLY)]);
    let summary = input.account(Unit::Lines, lines.all, skipped);
    Ok(summary.with_evidence(evidence(log)))
}

fn evidence(log: Log) -> &'static str {
    match log {
        Log::Connections => {
            "connections with bytes and ends; connections of other protocols are not used"
        }
        Log::Tls => "names, versions and resumption, joined to connections by uid",
        Log::Requests => "requests, joined to connections by uid",
    }
}
