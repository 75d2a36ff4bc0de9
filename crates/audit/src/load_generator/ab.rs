//! ApacheBench: the file for gnuplot that `ab -g FILE` writes. A request is a line with its start
//! in whole seconds, and its steps in milliseconds; the lines are in the order of durations. A
//! request on an open connection has the connect time 0, and so has a quick connect.

use super::{EACH, NotARow, RowFormat, Rows};
use crate::client::{Entry, Timings};

/// Nanoseconds of the last digit of a time.
const STEP: u64 = 1_000_000;

const HEAD: &str = "starttime\tseconds\tctime\tdtime\tttime\twait";

pub(super) const GNUPLOT: RowFormat = RowFormat {
    name: "ab's file for gnuplot (ab -g)",
    program: "ab",
    is_first: |line| line == HEAD,
    rows: || Box::new(Lines),
    missing: Some("ab writes no rows for requests that failed, nor the status of the others"),
    ..EACH
};

struct Lines;

impl Rows for Lines {
    fn take(&mut self, line: &str) -> Result<Option<Entry>, NotARow> {
        if line.is_empty() || line == HEAD {
            return Ok(None);
        }
        row(line).map(Some).ok_or_else(NotARow::default)
    }

    fn is_coarse(&self) -> bool {
        true
    }
}

fn row(line: &str) -> Option<Entry> {
    let cells: Vec<&str> = line.split('\t').collect();
    let [_, seconds, connect, _, total, wait] = cells[..] else {
        return None;
    };
    let nanos = |text: &str, unit: u64| text.trim().parse::<u64>().ok()?.checked_mul(unit);
    let ms = |text: &str| nanos(text, STEP);
    let (connect, total, wait) = (ms(connect)?, ms(total)?, ms(wait)?);
    let mut entry = Entry::begun(nanos(seconds, 1_000_000_000)?);
    entry.time = total;
    entry.timings = Timings {
        connect: (connect > 0).then_some(connect),
        wait: Some(wait),
        receive: Some(total.saturating_sub(connect).saturating_sub(wait)),
        ..Timings::default()
    };
    entry.set_setup_step(STEP);
    Some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_request() {
        let line = "Sat Nov 21 08:00:00 2026\t1795248000\t12\t20\t32\t15";
        let one = row(line).unwrap();
        assert_eq!((one.at, one.time), (1_795_248_000_000_000_000, 32_000_000));
        assert_eq!(one.timings.connect, Some(12_000_000));
        assert_eq!(one.timings.receive, Some(5_000_000));
        let reused = row("x\t1795248000\t0\t20\t20\t15").unwrap();
        assert!(!reused.timings.has_setup());
        for other in ["", "a\t1\t2", "x\t1\t0\t20\t20\tabc", "x\t-1\t0\t20\t20\t1"] {
            assert!(row(other).is_none(), "{other}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_trouble(line in "([0-9]{0,20}\t){0,6}.{0,20}") {
            let _ = row(&line);
        }
    }
}
