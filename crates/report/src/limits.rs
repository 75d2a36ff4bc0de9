//! The limits of a connection in words, announced beside measured, for pages of every kind.

use intact_findings::check::{
    CheckFacts, CloseFacts, IdleTimeout, MaxRequests, RaceAttempt, RaceFacts,
};
use intact_units::number::{count, tick, time};

/// One limit in words: what is limited, announced, measured, who or what ended the connection.
pub(crate) type LimitRow = [String; 4];

/// All limits that were looked for.
pub(crate) fn rows(facts: &CheckFacts) -> Vec<LimitRow> {
    let mut rows: Vec<LimitRow> = Vec::new();
    if let Some(idle) = &facts.idle_timeout {
        rows.extend(idle_rows(idle, facts.keeps() != Some(false)));
    }
    if let Some(held) = &facts.idle_under_load {
        rows.push([
            format!("idle beside {} others", held.connections),
            "-".to_owned(),
            measured(held.measured_s, held.at_least_s),
            ended(held.ended.as_ref()),
        ]);
    }
    if let Some(max) = &facts.max_requests {
        rows.push(max_row(max));
    }
    if let Some(age) = &facts.max_age {
        rows.push([
            "age".to_owned(),
            "-".to_owned(),
            measured(age.measured_s, age.at_least_s),
            match &age.ended {
                None if age.last_announced => "the client, as announced".to_owned(),
                closing => ended(closing.as_ref()),
            },
        ]);
    }
    rows
}

/// When a request was sent, seen from the idle limit: `999 ms before`.
pub(crate) fn moment(race: &RaceFacts, attempt: &RaceAttempt) -> String {
    let apart = (attempt.idle_s - race.limit_s) * 1e3;
    let when = if apart < 0.0 { "before" } else { "after" };
    format!("{} {when}", tick(apart.abs()))
}

/// What became of it.
pub(crate) fn fate(attempt: &RaceAttempt) -> String {
    match (attempt.answered, attempt.sent) {
        (true, _) => "answered".to_owned(),
        (false, false) => "not sent, the server had closed".to_owned(),
        (false, true) => format!("lost ({})", attempt.failed.unwrap_or("failed")),
    }
}

fn idle_rows(idle: &IdleTimeout, kept: bool) -> Vec<LimitRow> {
    let announced = idle
        .announced_s
        .map_or_else(|| "-".to_owned(), |seconds| format!("{seconds} s"));
    let mut rows = vec![[
        "idle between requests".to_owned(),
        announced,
        if kept {
            measured(idle.measured_s, idle.at_least_s)
        } else {
            "not kept".to_owned()
        },
        ended(idle.ended.as_ref()),
    ]];
    let (before, least) = (
        idle.before_first_request_s,
        idle.before_first_request_at_least_s,
    );
    if before.is_some() || least.is_some() {
        rows.push([
            "idle before the first".to_owned(),
            "-".to_owned(),
            measured(before, least),
            ended(idle.before_first_request_ended.as_ref()),
        ]);
    }
    rows
}

fn max_row(max: &MaxRequests) -> LimitRow {
    let number = |number: Option<u32>| number.map(|number| count(u64::from(number)));
    [
        "requests".to_owned(),
        number(max.announced).unwrap_or_else(|| "-".to_owned()),
        number(max.measured)
            .or_else(|| number(max.at_least).map(|least| format!("{least} and more")))
            .unwrap_or_else(|| "-".to_owned()),
        match &max.ended {
            None if max.last_announced => "the client, as announced".to_owned(),
            closing => ended(closing.as_ref()),
        },
    ]
}

/// Seconds, or a lower bound.
fn measured(seconds: Option<f64>, at_least: Option<f64>) -> String {
    match (seconds, at_least) {
        (Some(seconds), _) => time(seconds * 1e3),
        (None, Some(least)) => format!("{} and more", time(least * 1e3)),
        (None, None) => "-".to_owned(),
    }
}

fn ended(closing: Option<&CloseFacts>) -> String {
    closing.map_or_else(
        || "-".to_owned(),
        |closing| {
            let announced = if closing.announced { ", announced" } else { "" };
            format!("{}{announced}", closing.words())
        },
    )
}
