//! oha: seven columns in seconds.
//!
//! In HTTP/1 the duration of a request includes the connect time, which is 0 on a reused
//! connection. In HTTP/2 it does not. Every HTTP/2 request repeats the setup times of its
//! connection in nanoseconds; these times identify the connection.

use super::{EACH, RowFormat, each};
use crate::client::{Entry, Timings};
use crate::csv_row::seconds;
use std::collections::HashMap;

pub(super) const CSV: RowFormat = RowFormat {
    name: "oha's CSV",
    program: "oha",
    is_first: |line| line == HEAD,
    rows: || each(HEAD, row),
    is_relative: true,
    name_connections,
    missing: Some(
        "oha writes no rows for requests that failed, nor when the run was (it begins at 1970)",
    ),
    ..EACH
};

const HEAD: &str = "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status";

fn row(line: &str) -> Option<Entry> {
    let cells: Vec<&str> = line.split(',').collect();
    let [start, dns, dialup, first_byte, time, bytes, status] = cells[..] else {
        return None;
    };
    let mut entry = Entry::begun(seconds(start)?);
    entry.time = seconds(time)?;
    let (dialup, dns, first_byte) = (seconds(dialup)?, seconds(dns)?, seconds(first_byte)?);
    let step = |nanos: u64| (nanos > 0).then_some(nanos);
    let inside = if dialup <= first_byte { dialup } else { 0 };
    entry.timings = Timings {
        dns: step(dns),
        // includes TLS
        connect: step(dialup.saturating_sub(dns)),
        wait: Some(first_byte.saturating_sub(inside)),
        receive: Some(entry.time.saturating_sub(first_byte)),
        ..Timings::default()
    };
    entry.body = bytes.trim().parse().ok();
    entry.set_outcome_of(status.trim().parse().ok()?);
    Some(entry)
}

/// Uses the repeated setup times as the connection's id, and keeps the setup on the first request
/// only.
fn name_connections(entries: &mut [Entry]) {
    let setup = |entry: &Entry| Some((entry.timings.dns, entry.timings.connect?));
    let mut seen = HashMap::new();
    for entry in entries.iter() {
        if let Some(setup) = setup(entry) {
            *seen.entry(setup).or_insert(0_u64) += 1;
        }
    }
    if seen.values().all(|&count| count == 1) {
        return;
    }
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|&at| entries[at].at);
    let mut names = HashMap::new();
    for at in order {
        let entry = &mut entries[at];
        let Some(setup @ (dns, connect)) = setup(entry) else {
            continue;
        };
        let next = names.len() + 1;
        let mut is_first = false;
        let name = names.entry(setup).or_insert_with(|| {
            is_first = true;
            next
        });
        entry.id = Some(name.to_string().into());
        if is_first {
            entry.at = entry.at.saturating_sub(dns.unwrap_or(0) + connect);
        } else {
            (entry.timings.dns, entry.timings.connect) = (None, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Entry> {
        let mut entries: Vec<Entry> = text.lines().map(|line| row(line).unwrap()).collect();
        name_connections(&mut entries);
        entries
    }

    #[test]
    fn in_http_1_the_time_for_connecting_is_part_of_a_request() {
        let entries = rows(
            "0.002718812,0.00001586,0.000740641,0.000861031,0.000861131,100,200\n0.003527893,0,0,0.00012642,0.00012648,100,200\n",
        );
        assert_eq!(entries[0].timings.connect, Some(724_781));
        assert_eq!(entries[0].ended_at(), 2_718_812 + 861_131);
        assert!(!entries[1].timings.has_setup());
        assert_eq!(entries[1].id, None);
    }

    #[test]
    fn in_http_2_the_time_for_connecting_identifies_the_connection() {
        let entries = rows(
            "0.021472196,0.0000216,0.017586973,0.00039372,0.00039417,100,200\n0.021476126,0.0000216,0.017586973,0.00039405,0.00039415,100,200\n\
             0.021941596,0.000035431,0.021697876,0.001268721,0.001269081,100,200\n",
        );
        let ids: Vec<_> = entries.iter().map(|one| one.id.as_deref()).collect();
        assert_eq!(ids, [Some("1"), Some("1"), Some("2")]);
        let waited: Vec<_> = entries.iter().map(|one| one.timings.has_setup()).collect();
        assert_eq!(waited, [true, false, true]);
        assert_eq!(entries[0].ended_at(), 21_866_366);
    }
}
