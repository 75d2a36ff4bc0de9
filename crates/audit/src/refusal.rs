//! Files that audit does not read, by their first bytes: what they are, and the conversion. For all
//! others, the nearest format that it reads. One row per kind of file.

/// A kind of file that is known and not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Description of the file.
    pub(crate) what: &'static str,
    /// The conversion or the command that writes a format that is read.
    pub(crate) remedy: &'static str,
}

const EDITCAP: &str = "`editcap -F pcapng IN OUT` converts it";
const UNPACK: &str = "unpack it, and pass the files or the folder";
const FROM_BROWSER: &str =
    "save a HAR from the Network panel, or record a NetLog (chrome://net-export)";
const LOCUST: &str = "to have requests, write `start,duration_ms,method,url,status,exception` from a listener of `events.request` (docs/reference/audit.md has one), or run `intact watch -- locust ...`";

/// First bytes, the place of these bytes, and what they show.
const BINARY: [(&[u8], usize, &str, &str); 15] = [
    (
        b"GMBU",
        0,
        "a capture of Microsoft's Network Monitor",
        EDITCAP,
    ),
    (b"RTSS", 0, "a capture of an old Network Monitor", EDITCAP),
    (b"XCP\0", 0, "a capture of NetXRay or Sniffer", EDITCAP),
    (b"TRSNIFF data", 0, "a capture of Sniffer", EDITCAP),
    (
        b"PAR1",
        0,
        "a Parquet file",
        "export its rows as CSV with the columns `time` and `duration_ms`; of a run of intact, pass the ledger",
    ),
    (
        b"PK\x03\x04",
        0,
        "a zip archive, such as a session of Fiddler (.saz) or Charles",
        "export the session as HAR, or unpack the archive",
    ),
    (b"BZh", 0, "compressed with bzip2", "`bunzip2` unpacks it"),
    (b"\xfd7zXZ", 0, "compressed with xz", "`unxz` unpacks it"),
    (
        b"\x04\x22\x4d\x18",
        0,
        "compressed with lz4",
        "`lz4 -d` unpacks it",
    ),
    (b"7z\xbc\xaf", 0, "a 7z archive", UNPACK),
    (b"ustar", 257, "a tar archive", UNPACK),
    (
        b"SQLite format 3",
        0,
        "a database of SQLite",
        "export its rows as CSV with the columns `time` and `duration_ms`",
    ),
    (
        b"FLR\0",
        0,
        "a recording of Java's Flight Recorder",
        "`intact watch -- java ...` records the connections",
    ),
    (
        b"\x00\x00\x00\x00\x063.1",
        0,
        "the binary simulation.log of Gatling 3.11 or later",
        "run it with `intact watch -- COMMAND`, or with Gatling 3.10, which writes text",
    ),
    (
        b"\x1f\x9d",
        0,
        "compressed with compress",
        "`uncompress` unpacks it",
    ),
];

/// Bytes of a text that are looked at.
const BEGINNING: usize = 1024;

/// Beginnings without blanks, and what they show. `*` stands for any text.
const TEXTS: [(&[&str], &str, &str); 17] = [
    (
        &["{\"traceEvents\":", "[{\"args\":"],
        "a performance trace of Chrome",
        FROM_BROWSER,
    ),
    (
        &["{\"lighthouseVersion\":"],
        "a report of Lighthouse",
        "run it with `-G`, and pass the .devtoolslog.json",
    ),
    (
        &["{\"resourceSpans\":", "{\"data\":[{\"traceID\":"],
        "spans of OpenTelemetry or Jaeger",
        "they do not name connections: audit the access log of the proxy, or record with `intact watch -- COMMAND`",
    ),
    (
        &["{\"__CURSOR\":"],
        "a journal in JSON",
        "`journalctl -o cat` prints the lines",
    ),
    (
        &["{\"info\":{\"_postman_id\":"],
        "a collection of Postman",
        "it has no results: `intact watch -- newman run FILE` records them",
    ),
    (
        &["{\"events\":[{\"logStreamName\":"],
        "events of CloudWatch",
        "`jq -r '.events[] | \"\\(.timestamp) \\(.message)\"'` writes lines",
    ),
    (
        &["{\"*\"logEvents\":["],
        "events of CloudWatch",
        "`jq -r '.logEvents[] | \"\\(.timestamp) \\(.message)\"'` writes lines",
    ),
    (
        &[
            "Type,Name,RequestCount,FailureCount",
            "\"Type\",\"Name\",\"RequestCount\"",
            "\"*\",\"Name\",\"#requests\"",
        ],
        "Locust's statistics, which are totals",
        LOCUST,
    ),
    (
        &["Timestamp,UserCount,Type,Name,"],
        "Locust's history, which has totals",
        LOCUST,
    ),
    (
        &[
            "Method,Name,Error,Occurrences",
            "Count,Message,Traceback,Nodes",
        ],
        "Locust's failures or exceptions, which are totals",
        LOCUST,
    ),
    (
        &["[{\"name\":*\"last_request_timestamp\":"],
        "Locust's JSON, which has totals",
        LOCUST,
    ),
    (
        &["onInputData({\"log\":"],
        "a HAR in the call of a function (HARP)",
        "remove the call around the object: `sed '1s/^onInputData(//; $s/)[;[:space:]]*$//'`",
    ),
    (
        &["ThisisApacheBench"],
        "a summary of ab",
        "`ab -g FILE` writes its requests, and `intact watch -- ab ...` records the connections",
    ),
    (
        &["Running*test@http"],
        "a summary of wrk",
        "`intact watch -- wrk ...` records the connections",
    ),
    (
        &["REPORTRequestId:", "STARTRequestId:"],
        "reports of AWS Lambda without their times",
        "`aws logs tail GROUP` prints them with times",
    ),
    (
        &["{\"aggregate\":"],
        "a report of Artillery",
        "run `intact watch -- artillery run FILE`",
    ),
    (
        &["<!DOCTYPEhtml"],
        "a page in HTML",
        "pass the log or the capture that it is made of",
    ),
];

impl Refusal {
    /// Detects a file by its first bytes.
    pub(crate) fn detect(prefix: &[u8]) -> Option<Refusal> {
        let binary = BINARY.iter().find(|(bytes, at, ..)| {
            prefix
                .get(*at..)
                .is_some_and(|rest| rest.starts_with(bytes))
        });
        if let Some((_, _, what, remedy)) = binary {
            return Some(Refusal { what, remedy });
        }
        let mut start = prefix[..prefix.len().min(BEGINNING)].to_ascii_lowercase();
        start.retain(|byte| !byte.is_ascii_whitespace());
        let is_first = |one: &&str| begins(&start, &one.to_ascii_lowercase());
        let text = TEXTS.iter().find(|(any, ..)| any.iter().any(is_first));
        text.map(|&(_, what, remedy)| Refusal { what, remedy })
    }
}

/// Whether a text begins so; `*` stands for any text.
fn begins(start: &[u8], beginning: &str) -> bool {
    let mut parts = beginning.split('*').map(str::as_bytes);
    let rest = start.strip_prefix(parts.next().unwrap_or_default());
    let rest = rest.and_then(|rest| {
        parts.try_fold(rest, |rest, part| {
            let at = memchr::memmem::find(rest, part)?;
            Some(&rest[at + part.len()..])
        })
    });
    rest.is_some()
}

/// The format that is nearest to these first bytes, and how to get there: a sentence.
pub(crate) fn nearest(prefix: &[u8]) -> &'static str {
    let text = String::from_utf8_lossy(prefix);
    let first = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    let first = first.trim();
    let is_binary = text
        .chars()
        .take(200)
        .any(|letter| letter == '\0' || letter == '\u{fffd}');
    let columns = [',', ';', '\t']
        .into_iter()
        .any(|mark| first.matches(mark).count() > 0);
    let lower = first.to_ascii_lowercase();
    let has_time = ["time", "date", "start"]
        .iter()
        .any(|name| lower.contains(name));
    if is_binary {
        "It is nearest to a capture: if Wireshark reads it, `editcap -F pcapng IN OUT` converts it"
    } else if first.starts_with('{') || first.starts_with('[') && !first.contains("HTTP/") {
        "It is nearest to an access log in JSON: audit reads lines with a time, a status and a method or path under the names of nginx, Envoy, Caddy or Traefik; `jq -c` renames them"
    } else if first.contains("HTTP/") {
        "It is nearest to an access log: pass the format of the server's configuration with --log-format"
    } else if columns && has_time && !first.starts_with(|one: char| one.is_ascii_digit()) {
        "It is nearest to a table of times and durations: the first line must name a column `time` and one with its unit, such as `duration_ms`"
    } else {
        "For an access log with a format of its own, pass --log-format"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_files_are_named_with_their_conversion() {
        let what = |bytes: &[u8]| Refusal::detect(bytes).map(|refusal| refusal.what);
        assert_eq!(
            what(b"GMBU\x01\x02"),
            Some("a capture of Microsoft's Network Monitor")
        );
        assert_eq!(
            what(b"{ \"traceEvents\": ["),
            Some("a performance trace of Chrome")
        );
        let locust = b"Type,Name,Request Count,Failure Count,Median Response Time\n";
        assert_eq!(what(locust), Some("Locust's statistics, which are totals"));
        let json = b"[\n    {\n        \"name\": \"/x, y\",\n        \"method\": \"GET\",\n        \"last_request_timestamp\": 1.5";
        assert_eq!(what(json), Some("Locust's JSON, which has totals"));
        let cloudwatch = b"{\n  \"messageType\": \"DATA_MESSAGE\",\n  \"logEvents\": [";
        assert_eq!(what(cloudwatch), Some("events of CloudWatch"));
        let wrk = b"Running 5s test @ http://localhost:80/\n";
        assert_eq!(what(wrk), Some("a summary of wrk"));
        let old = b"\"Method\",\"Name\",\"# requests\",\"# failures\"";
        assert_eq!(what(old), Some("Locust's statistics, which are totals"));
        for other in [&b""[..], b"{\"level\":1}", b"a b c", b"[{\"name\":\"a\"}]"] {
            assert_eq!(what(other), None);
        }
    }

    #[test]
    fn the_nearest_format_is_named() {
        for (text, words) in [
            ("\u{0}\u{1}", "editcap"),
            ("{\"level\":1}", "JSON"),
            ("a b \"GET / HTTP/1.1\" 200", "--log-format"),
            ("[pid: 1] POST /x (HTTP/1.1 200)", "--log-format"),
            ("time,duration\n1,2\n", "duration_ms"),
            ("hello", "--log-format"),
        ] {
            assert!(nearest(text.as_bytes()).contains(words), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_trouble(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            Refusal::detect(&bytes);
            nearest(&bytes);
        }
    }
}
