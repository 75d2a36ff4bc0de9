//! Chromium's NetLog (`--log-net-log=FILE`, chrome://net-export): the events of its network stack,
//! socket by socket.
//!
//! So reuse is measured and not inferred. Chromium writes one event per line. The end of the file
//! is missing if the browser was killed.

mod assembler;
mod constants;
mod event;
mod request;
mod socket;

use crate::error::AuditError;
use crate::event_writer::EventWriter;
use crate::input::Input;
use crate::input_summary::{InputSummary, Unit};
use crate::lenient;
use assembler::Assembler;
use constants::Constants;
use event::RawEvent;

/// Longest line that is read, in bytes: the constants are one line.
const LONGEST: usize = 8 << 20;

/// Whether the first bytes are those of a NetLog.
pub(crate) fn is_netlog(prefix: &[u8]) -> bool {
    let start = &prefix[..prefix.len().min(256)];
    lenient::behind(start, &["{", "\"constants\"", ":"]).is_some()
}

/// Time of the first event, in nanoseconds since 1970, if the prefix holds the constants.
pub(crate) fn begins_at(prefix: &[u8]) -> Option<u64> {
    let mut lines = prefix.split(|&byte| byte == b'\n');
    let constants = Constants::read(lines.next()?)?;
    lines
        .take(8)
        .filter_map(RawEvent::read)
        .filter_map(|event| constants.nanos(&event))
        .min()
}

/// Reads a NetLog to its end, or to where it was cut off.
pub(crate) fn read(
    input: &mut Input,
    writer: &mut EventWriter<'_>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<InputSummary, AuditError> {
    let first = input.window.line(LONGEST).map(|(line, _)| line);
    let Some(constants) = first.and_then(Constants::read) else {
        return Err(input.broken(
            "its first line does not hold the constants, as in a file that Chromium wrote",
        ));
    };
    let mut follow = Assembler::new(constants);
    let (mut events, mut skipped) = (0_u64, 0_u64);
    let mut whole = false;
    input.each_line(LONGEST, go_on, |line| {
        let line = line.bytes;
        let mut line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"\"events\"") {
            return true;
        }
        // the list ends after its last event; the state of the stack follows
        if line.starts_with(b"\"polledData\"") || line.starts_with(b"]") {
            whole = true;
            return false;
        }
        let without_comma = line.strip_suffix(b",").unwrap_or(line);
        if let Some(last) = without_comma.strip_suffix(b"}]") {
            whole = true;
            line = &line[..=last.len()];
        }
        events += 1;
        match RawEvent::read(line) {
            Some(event) => follow.take(&event, writer),
            None => skipped += 1,
        }
        !whole
    });
    if events == skipped {
        return Err(input.broken("no event can be parsed: Chromium writes one event per line"));
    }
    let prefix = input.prefix();
    if !whole {
        writer.incomplete(
            "netlog-cut",
            format!("{prefix}the log has no end: the browser was still writing, or was killed. Exchanges that were active then are not counted"),
        );
    }
    // the last line of a file that was cut off is no event
    if skipped > u64::from(!whole) {
        writer.incomplete(
            "lines-not-read",
            format!("{prefix}{skipped} of {events} events cannot be read: requests in them are not counted"),
        );
    }
    let evidence = follow.finish(&prefix, writer);
    let summary = input.account(Unit::Events, events, skipped);
    Ok(summary.with_evidence(evidence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_netlog_is_detected_by_its_first_key() {
        assert!(is_netlog(b"{\"constants\":{\"activeFieldTrialGroups\""));
        assert!(is_netlog(b" { \"constants\" : {}"));
        assert!(!is_netlog(b"{\"constants"));
        assert!(!is_netlog(b"{\"log\":{}}"));
    }
}
