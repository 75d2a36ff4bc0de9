//! hey: eight columns in seconds with four digits. `offset` is the start of a request since the
//! start of the run.
//!
//! The latency includes the time for connecting. `DNS+dialup` is 0 for a request on an open
//! connection.

use super::{EACH, RowFormat, each};
use crate::client::{Entry, Timings};
use crate::csv_row::seconds;

pub(super) const CSV: RowFormat = RowFormat {
    name: "hey's CSV",
    program: "hey",
    is_first: |line| line == HEAD,
    rows: || each(HEAD, row),
    is_relative: true,
    shows_lookups: true,
    missing: Some(
        "hey writes no rows for requests that failed, nor when the run was (it begins at 1970)",
    ),
    ..EACH
};

/// Nanoseconds of the last digit of a time.
const STEP: u64 = 100_000;

const HEAD: &str =
    "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset";

fn row(line: &str) -> Option<Entry> {
    let cells: Vec<&str> = line.split(',').collect();
    let [time, dialup, dns, send, wait, receive, status, offset] = cells[..] else {
        return None;
    };
    let mut entry = Entry::begun(seconds(offset)?);
    entry.time = seconds(time)?;
    let (dialup, dns) = (seconds(dialup)?, seconds(dns)?);
    let step = |nanos: u64| (nanos > 0).then_some(nanos);
    entry.timings = Timings {
        blocked: None,
        dns: step(dns),
        // includes TLS
        connect: step(dialup.saturating_sub(dns)),
        ssl: None,
        send: seconds(send),
        wait: seconds(wait),
        receive: seconds(receive),
    };
    entry.set_setup_step(STEP);
    entry.set_outcome_of(status.trim().parse().ok()?);
    Some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_request() {
        let one = row("0.0042,0.0036,0.0010,0.0001,0.0003,0.0001,200,0.0001").unwrap();
        assert_eq!((one.at, one.time), (100_000, 4_200_000));
        assert_eq!(one.timings.connect, Some(2_600_000));
        assert!(one.timings.has_setup());
        let one = row("0.0002,0.0000,0.0000,0.0000,0.0001,0.0000,404,0.0200").unwrap();
        assert!(!one.timings.has_setup());
        assert!(row("0.0002,0.0000,x").is_none());
    }
}
