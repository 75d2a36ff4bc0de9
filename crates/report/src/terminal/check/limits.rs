//! The limits of a connection, announced beside measured, and requests around the idle limit.

use super::Card;
use crate::number::{count, time};
use crate::terminal::Ink;
use crate::terminal::table::Column;
use findings::check::{CheckFacts, Closing, IdleTimeout, MaxRequests, RaceFacts};

impl Card {
    pub(super) fn limits(&mut self, facts: &CheckFacts) {
        let mut rows: Vec<[String; 4]> = Vec::new();
        if let Some(idle) = &facts.idle_timeout {
            rows.extend(idle_rows(idle, facts.keeps() != Some(false)));
        }
        if let Some(held) = &facts.held {
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
                    None if age.last_said => "the client, as announced".to_owned(),
                    closing => ended(closing.as_ref()),
                },
            ]);
        }
        if rows.is_empty() {
            return;
        }
        self.page.title("Limits of a connection");
        let column = |head, rank, at: usize| Column {
            head,
            rank,
            cells: rows.iter().map(|row| row[at].clone()).collect(),
        };
        self.page.table(vec![
            column("limit", 0, 0),
            column("announced", 0, 1),
            column("measured", 0, 2),
            column("ended by", 1, 3),
        ]);
        if let Some(race) = &facts.race {
            self.race(race);
        }
    }

    fn race(&mut self, race: &RaceFacts) {
        for attempt in &race.attempts {
            let apart = (attempt.idle_s - race.limit_s) * 1e3;
            let what = match (attempt.answered, attempt.sent) {
                (true, _) => "answered".to_owned(),
                (false, false) => "not sent, the server had closed".to_owned(),
                (false, true) => format!("lost ({})", attempt.failed.unwrap_or("failed")),
            };
            let ink = if attempt.is_lost() {
                Ink::Alarm
            } else {
                Ink::Faint
            };
            let when = if apart < 0.0 { "before" } else { "after" };
            let told = format!(
                "a request {} {when} the idle limit: {what}",
                time(apart.abs())
            );
            self.page.wrapped(Some(ink), &told, "  ");
        }
    }
}

fn idle_rows(idle: &IdleTimeout, kept: bool) -> Vec<[String; 4]> {
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

fn max_row(max: &MaxRequests) -> [String; 4] {
    let number = |number: Option<u32>| number.map(|number| count(u64::from(number)));
    [
        "requests".to_owned(),
        number(max.announced).unwrap_or_else(|| "-".to_owned()),
        number(max.measured)
            .or_else(|| number(max.at_least).map(|least| format!("{least} and more")))
            .unwrap_or_else(|| "-".to_owned()),
        match &max.ended {
            None if max.last_said => "the client, as announced".to_owned(),
            closing => ended(closing.as_ref()),
        },
    ]
}

/// Seconds to a hundredth below ten, or a lower bound.
fn measured(seconds: Option<f64>, at_least: Option<f64>) -> String {
    let told = |seconds: f64| match seconds {
        seconds if seconds < 1.0 => time(seconds * 1e3),
        seconds if seconds < 10.0 => format!("{seconds:.2} s"),
        seconds => format!("{seconds:.1} s"),
    };
    match (seconds, at_least) {
        (Some(seconds), _) => told(seconds),
        (None, Some(least)) => format!("{} and more", told(least)),
        (None, None) => "-".to_owned(),
    }
}

fn ended(closing: Option<&Closing>) -> String {
    closing.map_or_else(
        || "-".to_owned(),
        |closing| {
            let announced = if closing.announced { ", announced" } else { "" };
            format!("{}{announced}", closing.words())
        },
    )
}
