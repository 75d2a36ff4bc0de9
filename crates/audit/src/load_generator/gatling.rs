//! Gatling: `simulation.log` as text, which versions up to 3.10 write. A request is a line with its
//! start and end in milliseconds. It does not measure connecting, so reuse is unknown.

use super::{EACH, NotARow, RowFormat, Rows};
use crate::client::{Entry, Timings};
use crate::failure_words::in_words;
use intact_ledger::{Failure, Outcome};

pub(super) const LOG: RowFormat = RowFormat {
    name: "Gatling's simulation.log",
    program: "Gatling",
    is_first: |line| line.starts_with("RUN\t") || line.starts_with("ASSERTION\t"),
    rows: || Box::new(Lines),
    ..EACH
};

const MS: u64 = 1_000_000;

struct Lines;

impl Rows for Lines {
    fn take(&mut self, line: &str) -> Result<Option<Entry>, NotARow> {
        match line.split('\t').next() {
            Some("" | "RUN" | "USER" | "GROUP" | "ASSERTION" | "ERROR") => Ok(None),
            _ => request(line).map(Some).ok_or_else(NotARow::default),
        }
    }
}

/// A line: `REQUEST`, names, start, end, `OK` or `KO`, message. Older versions have more names.
fn request(line: &str) -> Option<Entry> {
    let cells: Vec<&str> = line.split('\t').collect();
    if cells[0] != "REQUEST" {
        return None;
    }
    let result = cells
        .iter()
        .rposition(|cell| matches!(*cell, "OK" | "KO"))?;
    let time = |at: usize| cells.get(at)?.parse::<u64>().ok()?.checked_mul(MS);
    let (start, end) = (time(result.checked_sub(2)?)?, time(result - 1)?);
    let message = cells.get(result + 1).map_or("", |text| text.trim());
    let mut entry = Entry::begun(start);
    entry.time = end.saturating_sub(start);
    entry.timings = Timings {
        wait: Some(entry.time),
        ..Timings::default()
    };
    if cells[result] == "KO" {
        // a check that failed had a response
        let found = message.split("found ").nth(1);
        let status = found.and_then(|rest| rest.get(..3)?.parse().ok());
        entry.set_status(status);
        if entry.status.is_none() {
            let kind = in_words(message);
            let is_check = kind == Failure::UnknownKind && message.contains(".find");
            entry.outcome = match is_check {
                true => Outcome::Unknown,
                false => Outcome::Failed(kind),
            };
        }
    }
    Some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_each_version_are_read() {
        for line in [
            "REQUEST\t\thome\t1795248000250\t1795248000300\tOK\t ",
            "REQUEST\t1\t\thome\t1795248000250\t1795248000300\tOK\t ",
        ] {
            let entry = Lines.take(line).unwrap().unwrap();
            assert_eq!(entry.at, 1_795_248_000_250 * MS);
            assert_eq!(entry.ended_at() - entry.at, 50 * MS);
        }
        assert!(
            Lines
                .take("USER\ts\tSTART\t1795248000250")
                .unwrap()
                .is_none()
        );
        assert!(Lines.take("REQUEST\t\thome\t1795248000250").is_err());
    }

    #[test]
    fn a_failed_check_had_a_response() {
        let failed = |message: &str| {
            let line = format!("REQUEST\t\th\t1\t2\tKO\t{message}");
            let entry = Lines.take(&line).unwrap().unwrap();
            (entry.status, entry.outcome)
        };
        let check = failed("status.find.in(200,304), but actually found 500");
        assert_eq!(check, (Some(500), Outcome::Ok));
        let refused = failed("j.n.ConnectException: Connection refused");
        assert_eq!(refused, (None, Outcome::Failed(Failure::Refused)));
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_trouble(text in ".{0,120}") {
            let _ = Lines.take(&text);
            let _ = Lines.take(&format!("REQUEST\t{text}\tOK\tx"));
        }
    }
}
