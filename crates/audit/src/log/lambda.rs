//! Reports of AWS Lambda: `REPORT` lines, alone or in an export of CloudWatch, and
//! `platform.report` objects. Each is an invocation, which is a request to the function. Its log
//! does not show the connections that the function opens.

use super::line::{Line, LogFailure};
use crate::fields::whole;
use crate::lenient::Lenient;
use crate::timestamp;
use intact_ledger::Failure;
use serde::Deserialize;

const REPORT: &str = "REPORT RequestId: ";
const OBJECT: &str = "\"platform.report\"";
/// Shortest text of a time: seconds since 1970.
const SHORTEST_TIME: usize = 10;

/// Parses a report; `None` for other lines.
pub(super) fn report(text: &str) -> Option<Line<'_>> {
    if text.contains(OBJECT) {
        return object(text);
    }
    let (before, report) = text.split_once(REPORT)?;
    if report.contains(REPORT) {
        return None;
    }
    // a tab separates the values; JSON escapes it
    let (_, after) = report.split_once("Duration: ")?;
    let (duration, after) = after.split_once(" ms")?;
    let status = after.split_once("Status: ").map(|(_, status)| status);
    let mut line = line(time(before)?, duration.parse().ok()?)?;
    line.failure = status.and_then(failure);
    Some(line)
}

/// Whether a line is no report: messages of the function and of the platform.
pub(super) fn is_other(text: &str) -> bool {
    ![REPORT.trim_end(), OBJECT, "Billed Duration"]
        .iter()
        .any(|mark| text.contains(mark))
}

/// A report in the JSON format of Lambda's system logs.
fn object<'a>(text: &str) -> Option<Line<'a>> {
    #[derive(Deserialize)]
    struct Object {
        time: String,
        record: Record,
    }
    #[derive(Deserialize)]
    struct Record {
        metrics: Metrics,
        #[serde(default)]
        status: Lenient,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metrics {
        duration_ms: f64,
    }
    let object: Object = serde_json::from_str(text).ok()?;
    let end = timestamp::read(&object.time)?;
    let mut line = line(end, object.record.metrics.duration_ms)?;
    line.failure = object.record.status.text().as_deref().and_then(failure);
    Some(line)
}

fn line<'a>(end: timestamp::Timestamp, duration_ms: f64) -> Option<Line<'a>> {
    Some(Line {
        end: Some(end),
        took: Some(whole(duration_ms * 1e6)?),
        is_row: true,
        ..Line::default()
    })
}

/// The time before a report, among the names and quotes of an export.
fn time(before: &str) -> Option<timestamp::Timestamp> {
    let starts = before.split([' ', '\t', ',', '"', ':', '{', '[']);
    starts
        .filter(|word| word.len() >= SHORTEST_TIME)
        .find_map(|word| {
            let at = word.as_ptr() as usize - before.as_ptr() as usize;
            // a date may be followed by a blank and the time
            timestamp::read(word).or_else(|| timestamp::read(&before[at..]))
        })
}

fn failure(status: &str) -> Option<LogFailure> {
    let status = status.trim_start();
    let fails = |kind, detail: &'static str| {
        Some(LogFailure {
            kind,
            detail: detail.into(),
        })
    };
    if status.starts_with("timeout") {
        fails(Failure::Timeout, "the invocation reached its time limit")
    } else if status.starts_with("error") || status.starts_with("failure") {
        fails(Failure::UnknownKind, "the invocation ended with an error")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: &str = "0d6d2a4c\tDuration: 412.50 ms\tBilled Duration: 413 ms\tMemory Size: 128 MB\tMax Memory Used: 70 MB\tInit Duration: 201.5 ms";

    #[test]
    fn a_report_is_read_in_each_export() {
        let escaped = VALUES.replace('\t', "\\t");
        for text in [
            format!("2026-11-21T08:00:00.250Z {REPORT}{VALUES}"),
            format!("2026-11-21T08:00:00.250000+00:00 2026/11/21/[$LATEST]0a1b {REPORT}{VALUES}"),
            format!("2026-11-21 08:00:00.250\t{REPORT}{VALUES}"),
            format!("1795248000250,\"{REPORT}{VALUES}"),
            format!("{{\"timestamp\":1795248000250,\"message\":\"{REPORT}{escaped}\\n\"}}"),
            r#"{"time":"2026-11-21T08:00:00.250Z","type":"platform.report","record":{"requestId":"0d","metrics":{"durationMs":412.5,"billedDurationMs":413},"status":"success"}}"#.to_owned(),
        ] {
            let line = report(&text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(line.end.unwrap().nanos, 1_795_248_000_250_000_000, "{text}");
            assert_eq!((line.took, line.failure), (Some(412_500_000), None));
        }
        assert_eq!(report(&format!("{REPORT}{VALUES}")), None);
        assert!(is_other(
            "2026-11-21T08:00:00.250Z START RequestId: 0d Version: $LATEST"
        ));
        assert!(!is_other("REPORT RequestId:"));
    }

    #[test]
    fn the_status_of_an_invocation_shows_its_failure() {
        let kind = |status: &str| {
            let text = format!("2026-11-21T08:00:00.250Z {REPORT}{VALUES}\tStatus: {status}");
            report(&text).unwrap().failure.map(|failure| failure.kind)
        };
        assert_eq!(kind("timeout"), Some(Failure::Timeout));
        assert_eq!(
            kind("error\tError Type: Runtime.ExitError"),
            Some(Failure::UnknownKind)
        );
        assert_eq!(kind("success"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_trouble(before in ".{0,60}", after in ".{0,60}") {
            report(&format!("{before}{REPORT}{after}"));
            report(&format!("{before}{OBJECT}{after}"));
            report(&format!("{before}{REPORT}x Duration: {after} ms"));
        }
    }
}
