//! The tables of an observed run, and its numbers as files.

use super::about;
use crate::inputs::InputFacts;
use crate::page::Table;
use crate::page::download::Download;
use crate::page::parts::{Cell, Columns, heat};
use crate::page::populations::phase_words;
use intact_findings::figures::PhaseTime;
use intact_findings::traffic::{Destination, Figures, ObservedFacts};
use intact_ledger::Phase;
use intact_units::number::{count, tick};
use std::collections::BTreeMap;

/// Destinations that are tabled; all of them are in the JSON and the CSV.
const DESTINATIONS: usize = 200;

/// All tables.
pub(super) fn all(facts: &ObservedFacts, inputs: &[InputFacts]) -> Vec<Table> {
    let shown = &facts.destinations[..facts.destinations.len().min(DESTINATIONS)];
    if shown.is_empty() {
        return read(inputs).into_iter().collect();
    }
    let mut first = destinations(shown);
    if shown.len() < facts.destinations.len() {
        first.notes.push(format!(
            "{} of {} destinations, those that waste most; the CSV has all.",
            shown.len(),
            facts.destinations.len()
        ));
    }
    let mut tables = vec![first, set_up(shown)];
    tables.extend(per_connection(shown));
    tables.extend(phases(&facts.totals));
    tables.extend(endings(shown));
    tables.extend(read(inputs));
    tables
}

/// What was read, and by which evidence reuse was told.
fn read(inputs: &[InputFacts]) -> Option<Table> {
    if inputs.is_empty() {
        return None;
    }
    let mut table = Columns::over(inputs)
        .column("file", "", |one| Cell::text(&one.name))
        .column("format", "", |one| Cell::text(&one.format))
        .column("read", "packets, entries or lines", |one| {
            let cell = Cell::count(one.read);
            Cell {
                words: format!("{} {}", cell.words, one.unit),
                ..cell
            }
        })
        .column("skipped", "", |one| Cell::failures(one.skipped))
        .column("reuse is told by", "", |one| {
            Cell::text(one.evidence.clone().unwrap_or_default())
        })
        .table("inputs", "What was read");
    for one in inputs.iter().filter(|one| !one.advice.is_empty()) {
        table
            .notes
            .push(format!("{} would tell more with:", one.name));
        let lines = one.advice.iter();
        // a line that has a backtick cannot be set as code
        table
            .notes
            .extend(lines.map(|line| format!("`{}`", line.replace('`', "'"))));
    }
    Some(table)
}

/// A count that may be worked out, or of what cannot be seen.
fn requests(one: &Destination) -> Cell {
    let figures = &one.figures;
    if figures.requests.total == 0 && figures.opaque > 0 {
        return Cell::text("not seen");
    }
    marked(figures, Cell::count(figures.requests.total))
}

/// A value that may be worked out.
fn marked(figures: &Figures, mut cell: Cell) -> Cell {
    if cell.key.is_some() {
        cell.words.insert_str(0, about(figures));
    }
    cell
}

fn destinations(shown: &[Destination]) -> Table {
    Columns::over(shown)
        .column("destination", "", |one| Cell::text(&one.origin))
        .column("requests", "", requests)
        .column("failed", "", |one| {
            Cell::failures(one.figures.requests.failures())
        })
        .column("opened", "connections", |one| {
            Cell::count(one.figures.connections.opened)
        })
        .column("needed", "for the most requests at once", |one| {
            marked(&one.figures, Cell::count(one.figures.connections.needed))
        })
        .column(
            "reused",
            "share of requests on a connection that was there",
            |one| marked(&one.figures, Cell::share(one.figures.reuse)),
        )
        .column(
            "wasted",
            "setup of connections that were not needed",
            |one| Cell::time(one.figures.wasted_ms),
        )
        .column("share", "of the time of all requests there", |one| {
            Cell::share(one.figures.wasted_share)
        })
        .column("mean", "latency, setup included", |one| {
            Cell::time(one.figures.latency_ms.mean)
        })
        .column("p50", "", |one| Cell::time(one.figures.latency_ms.p50))
        .column("p99", "", |one| Cell::time(one.figures.latency_ms.p99))
        .column("program", "", |one| Cell::text(join(one.programs())))
        .table(
            "destinations",
            "Destinations, the one that wastes most first",
        )
}

fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<&str>>().join(", ")
}

fn set_up(shown: &[Destination]) -> Table {
    Columns::over(shown)
        .column("destination", "", |one| Cell::text(&one.origin))
        .column("HTTP", "", |one| {
            Cell::text(join(one.protocols.keys().copied()))
        })
        .column("TLS", "", |one| {
            let mut versions: Vec<&str> = one
                .tls
                .iter()
                .filter_map(|kind| kind.version)
                .map(|version| version.as_str())
                .collect();
            versions.dedup();
            Cell::text(versions.join(", "))
        })
        .column(
            "resumed",
            "share of TLS handshakes that resumed a session",
            |one| Cell::share(one.figures.resumed_share),
        )
        .column("setup", "mean per connection", |one| {
            Cell::time(one.figures.setup_mean_ms.total)
        })
        .column("lookup", "mean", |one| {
            Cell::time(one.figures.setup_mean_ms.dns)
        })
        .column("TCP", "mean", |one| {
            Cell::time(one.figures.setup_mean_ms.connect)
        })
        .column("TLS handshake", "mean", |one| {
            Cell::time(one.figures.setup_mean_ms.ssl)
        })
        .column("opened/s", "", |one| {
            Cell::value(one.figures.churn_per_s, |rate| {
                if rate < 0.05 {
                    "< 0.1".to_owned()
                } else {
                    format!("{rate:.1}")
                }
            })
        })
        .column(
            "server's limit",
            "idle time after which it closes, as announced or as seen",
            |one| {
                let gaps = one.figures.idle_gaps.as_ref();
                Cell::value(gaps.and_then(|gaps| gaps.server_limit_s), |s| tick(s * 1e3))
            },
        )
        .column(
            "in danger",
            "share of reuses that came when the server was about to close",
            |one| {
                let gaps = one.figures.idle_gaps.as_ref();
                let share = gaps.and_then(|gaps| gaps.danger_share);
                Cell {
                    alarm: share.is_some_and(|share| share > 0.0),
                    ..Cell::share(share)
                }
            },
        )
        .column("lookups", "", |one| {
            let total = one.figures.lookups.total;
            Cell::value((total > 0).then_some(total as f64), |_| count(total))
        })
        .column("lookups/conn", "", |one| {
            Cell::value(one.figures.lookups.per_connection, |each| {
                format!("{each:.1}")
            })
        })
        .table("setup", "What connections cost")
}

/// Connections by what they carried, as a band of heat for each destination.
fn per_connection(shown: &[Destination]) -> Option<Table> {
    let rows: Vec<&Destination> = shown
        .iter()
        .filter(|one| one.figures.per_connection.is_some())
        .collect();
    let classes = &rows.first()?.figures.per_connection.as_ref()?.buckets;
    let mut columns = Columns::over(&rows).column("destination", "", |one| Cell::text(&one.origin));
    for (nth, &(from, to, _)) in classes.iter().enumerate() {
        let words = match to {
            Some(to) if to == from => from.to_string(),
            Some(to) => format!("{from}-{to}"),
            None => format!("≥ {from}"),
        };
        columns = columns.column(&words, "connections that carried so many", |one| {
            let buckets = one.figures.per_connection.as_ref();
            let buckets = buckets.map_or(&[][..], |all| &all.buckets[..]);
            let seen = buckets.get(nth).map_or(0, |bucket| bucket.2);
            heat(seen, buckets.iter().map(|bucket| bucket.2).sum())
        });
    }
    let mut table = columns.table(
        "per-connection",
        "Connections that ended, by the requests that they carried",
    );
    table.notes.push(
        "Darker: a larger share of the destination's connections. Far left is a connection per request."
            .to_owned(),
    );
    Some(table)
}

fn phases(totals: &Figures) -> Option<Table> {
    type Means = BTreeMap<&'static str, Option<PhaseTime>>;
    let phases = totals.phases_ms.as_ref()?;
    let rows: [(&str, &Means); 2] = [
        ("new (cold)", &phases.fresh),
        ("reused (warm)", &phases.reused),
    ];
    let mut columns = Columns::over(&rows).column("connection", "", |row| Cell::text(row.0));
    for phase in Phase::ALL {
        let (words, meaning) = phase_words(phase.id());
        columns = columns.column(words, meaning, |row| {
            let time = row.1.get(phase.id()).and_then(Option::as_ref);
            Cell::time(time.map(|time| time.mean))
        });
    }
    let table = columns.table("phases", "Phases: mean over the requests that had them");
    (table.heads.len() > 1).then_some(table)
}

/// Who ended the connections.
fn endings(shown: &[Destination]) -> Option<Table> {
    let mut ways: Vec<&'static str> = shown
        .iter()
        .flat_map(|one| one.figures.connections.ended_by.keys().copied())
        .collect();
    ways.sort_unstable();
    ways.dedup();
    if ways.is_empty() {
        return None;
    }
    let mut columns = Columns::over(shown).column("destination", "", |one| Cell::text(&one.origin));
    for way in ways {
        columns = columns.column(way, "connections", |one| {
            let seen = one.figures.connections.ended_by.get(way).copied();
            Cell::value(seen.map(|seen| seen as f64), |_| count(seen.unwrap_or(0)))
        });
    }
    Some(columns.table("endings", "Who ended the connections"))
}

/// All destinations as CSV.
pub(super) fn destinations_csv(facts: &ObservedFacts) -> Download {
    let field = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let rows = facts.destinations.iter().map(|one| {
        let figures = &one.figures;
        vec![
            one.origin.clone(),
            figures.requests.total.to_string(),
            figures.requests.failures().to_string(),
            figures.connections.opened.to_string(),
            figures.connections.needed.to_string(),
            figures.opaque.to_string(),
            field(figures.reuse),
            field(figures.wasted_ms),
            field(figures.wasted_share),
            field(figures.setup_mean_ms.total),
            field(figures.latency_ms.mean),
            (!figures.inferred.is_empty()).to_string(),
        ]
    });
    let head = [
        "destination",
        "requests",
        "failed",
        "opened",
        "needed",
        "unseen",
        "reuse",
        "wasted_ms",
        "wasted_share",
        "setup_mean_ms",
        "latency_mean_ms",
        "inferred",
    ];
    Download::csv("destinations.csv", &head, rows).called("the destinations as CSV")
}
