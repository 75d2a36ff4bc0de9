//! HAR files, as browsers and proxies export them (HAR 1.1 and 1.2).
//!
//! The meaning of a field depends on the program that wrote it. So the evidence for reuse is chosen
//! per file and reported.

mod document;
mod entries;
mod raw;
mod runs;
mod short_strings;

use crate::client::{DocumentFormat, Recording};
use crate::input::Stream;
use crate::lenient;
use crate::read_buffer::ReadBuffer;
use crate::timestamp;
use document::Document;

pub(crate) static FORMAT: DocumentFormat = DocumentFormat {
    name: "HAR",
    detect: is_har,
    begins_at,
    read,
    kind: "har",
    better: "A NetLog of the browser (chrome://net-export) shows it",
    shows_lookups: true,
};

/// Whether the first bytes are those of a HAR: an object whose first key is `log`.
fn is_har(prefix: &[u8]) -> bool {
    lenient::behind(
        &prefix[..prefix.len().min(256)],
        &["{", "\"log\"", ":", "{"],
    )
    .is_some()
}

/// Start of the first entry in the prefix, in nanoseconds since 1970.
fn begins_at(prefix: &[u8]) -> Option<u64> {
    const KEY: &[u8] = b"\"startedDateTime\"";
    let times = memchr::memmem::find_iter(prefix, KEY).filter_map(|at| {
        let value = lenient::behind(&prefix[at + KEY.len()..], &[":", "\""])?;
        let end = memchr::memchr(b'"', value)?;
        timestamp::nanos(std::str::from_utf8(&value[..end]).ok()?)
    });
    let first = times.min();
    let is_by_webpagetest = memchr::memmem::find(prefix, b"WebPagetest").is_some();
    let setup = is_by_webpagetest.then(|| begin_of_setup(prefix));
    setup.flatten().or(first)
}

/// Start of the first setup in the prefix of a file of WebPageTest.
fn begin_of_setup(prefix: &[u8]) -> Option<u64> {
    let mut document = Document::default();
    // the prefix ends anywhere
    let _ = document.read(prefix);
    let is_moved = document.is_by_webpagetest();
    let entries = document.recording.entries.iter();
    let begin = entries.map(|entry| match is_moved {
        true => entry.at,
        false => entry.begin_of_setup(),
    });
    begin.min()
}

fn read(window: &mut ReadBuffer<Stream>, recording: &mut Recording) -> Result<(), String> {
    let mut document = Document::default();
    let end = document.read(window);
    *recording = document.recording;
    end
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
