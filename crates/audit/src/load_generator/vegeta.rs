//! vegeta: a row or an object per request, as its documentation of `encode` describes.
//!
//! It does not measure connecting, so reuse is unknown.

use super::{EACH, RowFormat, WITH_URL, each};
use crate::client::{Entry, Timings};
use crate::csv_row::cells;
use crate::failure_words::in_words;
use crate::lenient::Lenient;
use crate::timestamp;
use intact_ledger::Outcome;
use serde::Deserialize;

pub(super) const CSV: RowFormat = RowFormat {
    name: "vegeta's CSV",
    is_first: is_row,
    rows: || each("", row),
    ..JSON
};

pub(super) const JSON: RowFormat = RowFormat {
    name: "vegeta's JSON",
    program: "vegeta",
    is_first: is_object,
    rows: || each("", object),
    shows: WITH_URL,
    ..EACH
};

/// Columns of its CSV, which has no header: timestamp, code, latency, bytes out, bytes in, error,
/// body, attack, seq, method, URL, headers.
const COLUMNS: usize = 12;

/// Whether a line is a row: nanoseconds since 1970, a status, a latency, and `COLUMNS` columns.
fn is_row(line: &str) -> bool {
    let row = cells(line);
    let digits = |at: usize, len: usize| {
        let cell: &str = &row[at];
        cell.len() >= len && cell.bytes().all(|byte| byte.is_ascii_digit())
    };
    row.len() == COLUMNS && digits(0, 18) && digits(1, 1) && row[1].len() <= 3 && digits(2, 1)
}

fn is_object(line: &str) -> bool {
    line.starts_with('{')
        && serde_json::from_str::<Hit>(line).is_ok_and(|hit| {
            hit.timestamp.text().is_some()
                && hit.code.count().is_some()
                && hit.latency.count().is_some()
                && hit.seq.count().is_some()
        })
}

/// A line of vegeta's JSON.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Hit {
    timestamp: Lenient,
    code: Lenient,
    /// Nanoseconds.
    latency: Lenient,
    seq: Lenient,
    bytes_in: Lenient,
    bytes_out: Lenient,
    error: Lenient,
    method: Lenient,
    url: Lenient,
}

/// Parses a line of its CSV.
fn row(line: &str) -> Option<Entry> {
    hit(line)?.entry()
}

/// Parses a line of its JSON.
fn object(line: &str) -> Option<Entry> {
    let hit: Hit = serde_json::from_str(line).ok()?;
    hit.entry()
}

fn hit(line: &str) -> Option<Hit> {
    let row = cells(line);
    if row.len() != COLUMNS {
        return None;
    }
    let cell = |at: usize| Lenient::Text(row[at].clone());
    Some(Hit {
        timestamp: cell(0),
        code: cell(1),
        latency: cell(2),
        seq: cell(8),
        bytes_out: cell(3),
        bytes_in: cell(4),
        error: cell(5),
        method: cell(9),
        url: cell(10),
    })
}

impl Hit {
    fn entry(&self) -> Option<Entry> {
        let stamp = timestamp::read(&self.timestamp.text()?)?;
        let mut entry = Entry::begun(stamp.nanos);
        entry.time = self.latency.count()?;
        entry.timings = Timings {
            wait: Some(entry.time),
            ..Timings::default()
        };
        entry.set_request(self.url.text(), self.method.text());
        entry.set_status(Some(self.code.count()?));
        entry.body = self.bytes_in.count();
        entry.request_body = self.bytes_out.count();
        if entry.status.is_none() {
            entry.outcome = Outcome::Failed(in_words(&self.error.text().unwrap_or_default()));
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_objects_give_the_same_request() {
        let row = "1795259227123456789,200,1500000,0,100,,aGk=,,0,GET,http://a.example:81/x?y=1,Q29udGVudA==";
        let object = r#"{"attack":"","seq":0,"code":200,"timestamp":"2026-11-21T11:07:07.123456789Z","latency":1500000,"bytes_out":0,"bytes_in":100,"error":"","body":"aGk=","method":"GET","url":"http://a.example:81/x?y=1","headers":{"A":["b"]}}"#;
        assert!(is_row(row) && is_object(object));
        let both = [super::row(row).unwrap(), super::object(object).unwrap()];
        for one in both {
            assert_eq!(one.at, 1_795_259_227_123_456_789);
            assert_eq!(one.ended_at() - one.at, 1_500_000);
            assert_eq!(one.target().unwrap().as_str(), "/x");
            assert_eq!((one.status, one.body), (Some(200), Some(100)));
        }
    }

    #[test]
    fn other_tables_are_not_vegetas() {
        assert!(!is_row("1,2,3"));
        assert!(!is_row(&",".repeat(11)));
        assert!(!is_object(r#"{"status":200,"timestamp":"x"}"#));
    }
}
