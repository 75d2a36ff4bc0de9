//! The part of the page about the end of the server's process.

use crate::page::*;
use intact_servers::check::{DrainFacts, DrainRequests, DrainVersion, ProcessEnd};
use intact_units::Quantity::{Time, Timer};
use intact_units::plural::counted;

/// How it was measured.
pub(super) const HOW: &str = "The server was started by the check. Before the signal it had connections that had carried a request. After the signal some stayed idle, each \
    of the others carried a request every 100 ms (500 ms after 3 s), and a new connection was tried as often. A request is lost if it was sent on a connection whose end had not \
    arrived, and got no complete response.";

/// The share of requests that were lost.
pub(super) fn headline(drain: &DrainFacts) -> Option<Headline> {
    let all = drain.all();
    let is_good = all.lost == 0 && drain.process.end == ProcessEnd::Ended;
    let caption = text!(
        "of {} were lost after {}: {}",
        counted(all.sent, "request"),
        &drain.signal,
        all.lost
    );
    let share = (all.sent > 0).then(|| all.lost as f64 / all.sent as f64)?;
    let assessment = Assessment::good_if(is_good);
    Headline::new(HeadlineShare::lost_closely(share), assessment, caption)
}

/// Requests by when they were sent, with the times of the process.
pub(super) fn requests(drain: &DrainFacts) -> Section {
    let rows: [(&str, DrainRequests); 3] = [
        ("in flight at the signal", drain.in_flight),
        ("on kept connections after it", drain.kept),
        ("on new connections after it", drain.new),
    ];
    let table = Rows::of(&rows)
        .column("requests", |row| row.0)
        .column("sent", |row| row.1.sent)
        .column("responses", |row| row.1.answered)
        .column("5xx", |row| row.1.errors)
        .ranked(1, "refused", |row| row.1.refused)
        .about("declared unprocessed by GOAWAY or REFUSED_STREAM: safe to send again")
        .column("lost", |row| {
            Cell::from(row.1.lost).alarm_if(row.1.lost > 0)
        })
        .about("no complete response")
        .table();
    let title = text!("Drain: requests around {}", &drain.signal);
    Section::new("drain", title)
        .summary(table)
        .summary(Block::Facts(times(drain)))
}

/// The times after the signal.
fn times(drain: &DrainFacts) -> Vec<(&'static str, Text)> {
    let process = &drain.process;
    let at = |ms: Option<f64>| ms.map(|ms| Text::plain(Time(ms).to_string()));
    let status = process.status.as_deref().unwrap_or("status unknown");
    let end = match (
        process.end,
        process.ended_ms.value(),
        process.ended_ms.low(),
    ) {
        (ProcessEnd::Ended, Some(ended), _) => format!("{} ({status})", Time(ended)),
        (ProcessEnd::Killed, _, least) if least.is_finite() => {
            format!("at least {}, SIGKILL", Timer(least))
        }
        (ProcessEnd::LeftBehind, ..) => format!("the command ({status}), not its server"),
        _ => "not observed".to_owned(),
    };
    let times = [
        (
            "last response on a kept connection",
            at(drain.responded_until_ms),
        ),
        (
            "last response on a new connection",
            at(drain.accepted_until_ms),
        ),
        ("new connections refused from", at(drain.refused_from_ms)),
        ("command ended", at(process.command_ended_ms)),
        ("process ended", Some(Text::plain(end))),
    ];
    let times = times.into_iter();
    times.filter_map(|(what, at)| Some((what, at?))).collect()
}

/// Connections by version: announced or not.
pub(super) fn connections(drain: &DrainFacts) -> Section {
    let streams = |one: &DrainVersion| match one.last_stream? {
        // the first GOAWAY of two (RFC 9113 section 6.8)
        0x7fff_ffff => Some("not limited".to_owned()),
        last => Some(last.to_string()),
    };
    let table = Rows::of(&drain.versions)
        .column("HTTP", |one| one.http)
        .column("open", |one| one.connections)
        .about("at the signal")
        .column("announced", |one| one.announced)
        .about("by Connection: close, or GOAWAY")
        .column("not announced", |one| {
            Cell::from(one.not_announced).alarm_if(one.not_announced > 0)
        })
        .about("though the server could: it sent a response, or the connection is HTTP/2")
        .ranked(1, "from", |one| one.announced_from_ms.map(Time))
        .about("first announcement, after the signal")
        .ranked(1, "idle ended", |one| one.idle_ended_ms.map(Time))
        .about("first end of a connection that stayed idle, after the signal")
        .ranked(2, "last stream", streams)
        .about("that the server may have processed, by GOAWAY")
        .table();
    Section::new("drain-connections", "Drain: connections at the signal").summary(table)
}
