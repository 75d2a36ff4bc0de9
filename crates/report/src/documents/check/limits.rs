//! The part of the page about the limits of a connection: idle time, requests, age. Also what
//! happens to a request that is sent around the idle limit.

use crate::page::*;
use intact_document::Severity;
use intact_reading::Reading;
use intact_servers::check::{CheckFacts, CloseFacts, Http3Facts, RaceAttempt, RaceFacts};
use intact_units::Quantity::{Count, Time, Timer};
use intact_units::plural::counted;

/// How a connection ended that showed no end, and on which a request got no response.
const NO_RESPONSE: &str = "no response";

/// A limit of which only ends with error responses were seen.
const NOT_MEASURED: &str = "not measured";

/// What is limited, announced, measured, and how the connection ended.
type Limit = (String, Cell, Cell, String);

/// The limits, with the requests that were sent around the idle limit.
pub(super) fn limits(facts: &CheckFacts) -> Section {
    let none = Cell::default;
    let limit = |measured_s: &Reading, silent: Option<f64>| match silent {
        Some(silent) => Cell::from(below(silent)),
        None => seconds(measured_s),
    };
    let mut rows: Vec<Limit> = Vec::new();
    let mut row = |name: &str, announced, measured, end| {
        rows.push((name.to_owned(), announced, measured, end));
    };
    if let Some(idle) = &facts.idle_timeout {
        let announced = idle.announced_s.map(|limit| Timer(f64::from(limit) * 1e3));
        let silent = idle.silent_s().filter(|_| facts.keeps() != Some(false));
        let between = match facts.keeps() {
            Some(false) => "not kept".into(),
            _ => limit(&idle.measured_s, silent),
        };
        let between = match facts.error_close {
            Some(_) if between.is_absent() => NOT_MEASURED.into(),
            _ => between,
        };
        let end = end_of_wait(silent, idle.ended.as_ref());
        row("idle between requests", announced.into(), between, end);
        let silent = idle.before_first_request_no_response_s;
        let before = limit(&idle.before_first_request_s, silent);
        if !before.is_absent() {
            let end = end_of_wait(silent, idle.before_first_request_ended.as_ref());
            row("idle before the first", none(), before, end);
        }
    }
    if let Some(load) = &facts.idle_under_load {
        let name = format!("idle with {} others", load.connections);
        let measured = limit(&load.measured_s, load.no_response_s);
        let end = end_of_wait(load.no_response_s, load.ended.as_ref());
        row(&name, none(), measured, end);
    }
    if let Some(max) = &facts.max_requests {
        let count = |count: Option<u32>| count.map(|count| Count(u64::from(count)));
        let limit = Cell::count(&max.measured);
        let end = ended(max.ended.as_ref(), max.last_announced);
        row("requests", count(max.announced).into(), limit, end);
    } else if facts.error_close.is_some() {
        row("requests", none(), NOT_MEASURED.into(), String::new());
    }
    if let Some(age) = &facts.max_age {
        let limit = seconds(&age.measured_s);
        let end = ended(age.ended.as_ref(), age.last_announced);
        row("age", none(), limit, end);
    }
    let is_shown = facts.idles_over_http3();
    let over_quic = facts.http3.iter();
    rows.extend(over_quic.flat_map(|seen| http3_limits(seen, is_shown)));
    let mut table = Rows::of(&rows)
        .column("limit", |row| &row.0)
        .column("announced", |row| row.1.clone())
        .about("by Keep-Alive (timeout, max); HTTP/3: by transport parameters")
        .column("measured", |row| row.2.clone())
        .about("until the server ended it, or the idle timeout of both sides in HTTP/3")
        .ranked(1, "ended by", |row| &row.3)
        .table();
    if rows
        .iter()
        .any(|row| matches!(row.2.value, Value::AtLeast(_)))
    {
        table = table.note("at least: the limit was not reached while the check watched.");
    }
    if let Some(error) = &facts.error_close {
        table = table.note(text!(
            "not measured: the server closes with error responses ({} after {}).",
            error.status.to_string(),
            counted(u64::from(error.requests), "request")
        ));
    }
    let race = facts.race.as_ref();
    let race = race.map(|race| {
        let mut attempts: Vec<&RaceAttempt> = race.attempts.iter().collect();
        attempts.sort_by(|a, b| a.idle_s.total_cmp(&b.idle_s));
        let result = |one: &RaceAttempt| (timing(race, one), one.answered, one.sent, one.failed);
        let groups = attempts.chunk_by(|a, b| result(a) == result(b));
        groups
            .map(|group| equal_attempts(race, group))
            .collect::<Vec<Block>>()
    });
    let mut findings = facts.findings.iter();
    let has_warning = findings.any(|one| one.severity > Severity::Info);
    Section::new("limits", "Limits of a connection")
        // the verdict has them
        .detail_if(!has_warning)
        .summary(table)
        .summary(race)
}

/// A time in seconds.
fn seconds(reading: &Reading) -> Cell {
    Cell::reading(&reading.times(1e3), Time)
}

/// How an idle connection ended; without a response after `silent` it showed no end.
fn end_of_wait(silent: Option<f64>, seen: Option<&CloseFacts>) -> String {
    match silent {
        Some(_) => NO_RESPONSE.to_owned(),
        None => ended(seen, false),
    }
}

/// The limits of a connection of HTTP/3; `is_shown`: its idle limit has a row already.
fn http3_limits(seen: &Http3Facts, is_shown: bool) -> Vec<Limit> {
    let mut rows = Vec::new();
    if let Some(idle) = seen.idle_timeout.as_ref().filter(|_| !is_shown) {
        let announced = match idle.announced_s {
            Some(limit) => Cell::from(Timer(limit * 1e3)),
            None => Cell::from("none"),
        };
        let measured = seconds(&idle.measured_s);
        let (measured, end) = match idle.no_response_s {
            Some(silent) => (Cell::from(below(silent)), NO_RESPONSE.to_owned()),
            None if measured.is_absent() => (Cell::from("not observed"), String::new()),
            None => (measured, ended(idle.ended.as_ref(), false)),
        };
        rows.push(("idle, HTTP/3".to_owned(), announced, measured, end));
    }
    if let Some(streams) = seen.max_request_streams {
        let name = "requests at once, HTTP/3".to_owned();
        let announced = Cell::from(Count(streams));
        rows.push((name, announced, Cell::from("not observed"), String::new()));
    }
    rows
}

/// When a request was sent, relative to the idle limit.
fn timing(race: &RaceFacts, one: &RaceAttempt) -> &'static str {
    if one.idle_s < race.limit_s {
        "before"
    } else {
        "after"
    }
}

/// Requests on one side of the idle limit with the same result; at least one.
fn equal_attempts(race: &RaceFacts, group: &[&RaceAttempt]) -> Block {
    let one = group[0];
    let result = match (one.answered, one.sent) {
        (true, _) if group.len() > 1 => "a response each".to_owned(),
        (true, _) => "a response".to_owned(),
        (false, false) => "not sent, the server had closed".to_owned(),
        (false, true) => format!("lost ({})", one.failed.unwrap_or("failed")),
    };
    let times = group
        .iter()
        .map(|one| tick((one.idle_s - race.limit_s) * 1e3));
    let times: Vec<String> = times.collect();
    let words = text!(
        "{} {} {} the idle limit: {}",
        if group.len() > 1 {
            "Requests"
        } else {
            "A request"
        },
        times.join(", "),
        timing(race, one),
        result
    );
    if one.is_lost() {
        alarm(words)
    } else {
        note(words)
    }
}

/// A time without zeros at its end.
fn tick(ms: f64) -> String {
    intact_units::number::tick(ms.abs())
}

/// How a connection ended; `announced`: the client may have closed because the server announced its
/// limit.
fn ended(closing: Option<&CloseFacts>, announced: bool) -> String {
    match closing {
        None if announced => "the client, as announced".to_owned(),
        None => String::new(),
        Some(closing) if closing.announced => format!("{}, announced", closing.words()),
        Some(closing) => closing.words(),
    }
}

/// A limit that is shorter than this idle time, after which there was no response.
pub(super) fn below(idle_s: f64) -> String {
    format!("< {}", Timer(idle_s * 1e3))
}
