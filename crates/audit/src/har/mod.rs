//! HAR files, as browsers and proxies export them (HAR 1.1 and 1.2).
//!
//! The meaning of a field depends on the program that wrote it. So the evidence for reuse is chosen
//! per file and reported.

mod document;
mod raw;
mod runs;
mod short_strings;

use crate::client::{self, Source};
use crate::error::AuditError;
use crate::event_writer::EventWriter;
use crate::input::Input;
use crate::input_summary::{InputSummary, Unit};
use crate::lenient;
use crate::timestamp;
use document::Document;

/// Whether the first bytes are those of a HAR: an object whose first key is `log`.
pub(crate) fn is_har(prefix: &[u8]) -> bool {
    lenient::behind(
        &prefix[..prefix.len().min(256)],
        &["{", "\"log\"", ":", "{"],
    )
    .is_some()
}

/// Start of the first entry in the prefix, in nanoseconds since 1970.
pub(crate) fn begins_at(prefix: &[u8]) -> Option<u64> {
    const KEY: &[u8] = b"\"startedDateTime\"";
    let times = memchr::memmem::find_iter(prefix, KEY).filter_map(|at| {
        let value = lenient::behind(&prefix[at + KEY.len()..], &[":", "\""])?;
        let end = memchr::memchr(b'"', value)?;
        timestamp::nanos(std::str::from_utf8(&value[..end]).ok()?)
    });
    times.min()
}

/// Reads a HAR to its end, or to the first syntax error.
pub(crate) fn read(
    input: &mut Input,
    writer: &mut EventWriter<'_>,
) -> Result<InputSummary, AuditError> {
    let mut document = Document::default();
    let end = document.read(&mut input.window);
    let prefix = input.prefix();
    match end {
        Ok(()) => {}
        Err(why) if document.seen == 0 => return Err(input.broken(why.to_string())),
        Err(why) => writer.incomplete(
            "input-damaged",
            format!("{prefix}{why}; entries read before that: {}", document.seen),
        ),
    }
    let left_out = document.seen - document.entries.len() as u64 - document.skipped;
    let words = format!(
        "entries beyond the first {} were not read",
        document.seen - left_out
    );
    writer.incompletes(&prefix, &[(left_out, "input-too-long", &words)]);
    let source = Source {
        entries: &document.entries,
        program: &document.creator,
        kind: "har",
        is_coarse: false,
        shows_lookups: true,
        better: "A NetLog of the browser (chrome://net-export) shows it",
        prefix: &prefix,
    };
    let evidence = client::record(&source, writer);
    let summary = input.account(Unit::Entries, document.seen, document.skipped);
    Ok(summary.with_evidence(evidence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_har_is_detected_by_its_first_key() {
        assert!(is_har(b"{\"log\": {\"version\""));
        assert!(is_har(b"{\n  \"log\" : {"));
        assert!(!is_har(b"{\"log\": \"a line\"}"));
        assert!(!is_har(b"{\"level\":\"info\",\"log\":{}}"));
        assert!(!is_har(b"{\"log"));
    }
}
