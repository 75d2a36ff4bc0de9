//! The destinations: what was opened, needed and wasted, and what the setup of their connections
//! costs.

use super::TrafficRun;
use crate::documents::common::by_kind;
use crate::documents::{populations, timeline};
use crate::page::*;
use intact_ledger::Evidence;
use intact_traffic::{Destination, Figures};
use intact_units::Quantity::{Count, Mean, Rate, Share, Time, Timer};
use intact_units::plural::counted;

/// Bars of wasted time.
const BARS: usize = 12;

/// Whether the input has connections; zero of them is then a count.
pub(super) fn has_connections(figures: &Figures) -> bool {
    figures.connections.opened > 0 || figures.unobserved.without_connection == 0
}

/// The connections that were needed, or their range.
pub(super) fn needed(figures: &Figures) -> Cell {
    if !has_connections(figures) {
        return Cell::default();
    }
    match figures.needed_range() {
        Some([least, most]) => Value::Range(Count(least), Count(most)).into(),
        None => Count(figures.connections.needed).into(),
    }
}

/// Destinations, those that waste most first.
pub(super) fn destinations(all: &[Destination]) -> Table {
    let opaque = |figures: &Figures| figures.requests.total == 0 && figures.opaque > 0;
    let inferred =
        |one: &Destination, cell: Cell| cell.inferred_if(!one.figures.inferred.is_empty());
    let requests = |one: &Destination| {
        let total = Count(one.figures.requests.total);
        inferred(one, (!opaque(&one.figures)).then_some(total).into())
    };
    Rows::of(all)
        .column("destination", |one| &one.origin)
        .column("requests", requests)
        .if_any("failed", |one| {
            let failures = one.figures.requests.failures();
            (!opaque(&one.figures)).then(|| Cell::failures(failures))
        })
        .if_any("dials failed", |one| {
            Cell::failures(one.figures.connections.failed.values().sum())
        })
        .column("opened", |one| {
            has_connections(&one.figures).then_some(one.figures.connections.opened)
        })
        .about("connections")
        .ranked(1, "needed", |one| inferred(one, needed(&one.figures)))
        .about("connections, for the most requests at once")
        .column("reused", |one| {
            inferred(
                one,
                populations::reuse(one.figures.reuse, one.figures.reuse_range),
            )
        })
        .about("share of requests on a connection that an earlier request had used")
        .column("wasted", |one| one.figures.wasted_ms.map(Time))
        .about("setup of connections that were not needed")
        .ranked(2, "share", |one| one.figures.wasted_share.map(Share))
        .about("wasted, of the time of all requests there")
        .ranked(4, "setup", |one| one.figures.setup_mean_ms.total.map(Time))
        .about("mean per connection")
        .ranked(6, "TLS", |one| {
            join(
                one.tls
                    .iter()
                    .filter_map(|kind| Some(kind.version?.as_str())),
            )
        })
        .ranked(5, "HTTP", |one| join(one.protocols.keys().copied()))
        .ranked(8, "ended by", |one| {
            by_kind(&one.figures.connections.ended_by)
        })
        .ranked(7, "program", |one| join(one.programs()))
        .full("mean", |one| one.figures.latency_ms.mean.map(Time))
        .about("latency, setup included")
        .full("p50", |one| one.figures.latency_ms.p50.map(Time))
        .full("p99", |one| one.figures.latency_ms.p99.map(Time))
        .table()
}

/// Words, each once.
fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut all: Vec<&str> = words.collect();
    all.dedup();
    all.join(", ")
}

/// What the setup of connections costs, and how connections were used.
pub(super) fn connections(one: TrafficRun<'_>) -> Section {
    let charts = one.charts;
    let mut notes = Vec::new();
    if charts.elsewhere > 0 {
        notes.push(text!(
            "To further destinations: {}.",
            counted(charts.elsewhere, "connection")
        ));
    }
    if !one.run.sees(Evidence::Ends) {
        let words = "The end of connections was not observed: a line ends with its last request.";
        notes.push(words.into());
    }
    let first = "The first connections to each of the first destinations.";
    Section::new("connections", "Connections")
        .full(waste(&one.facts.destinations))
        .full(timeline::chart(one.run, &charts.timeline, first).notes(notes))
        .full(setup(&one.facts.destinations))
        .full(per_connection(&one.facts.destinations))
}

fn waste(all: &[Destination]) -> Chart {
    let wasteful = all.iter().filter(|one| one.figures.avoidable > 0);
    let bars = wasteful.filter_map(|one| {
        let wasted = one.figures.wasted_ms?;
        let counts = &one.figures.connections;
        let words = format!(
            "{}: {} opened, {} needed",
            Time(wasted),
            Count(counts.opened),
            Count(counts.needed)
        );
        Some(Bar::whole(&one.origin, Tone::Fresh, wasted, words))
    });
    let bars = Bars(bars.take(BARS).collect());
    let words = "Setup of connections that were not needed, at the destinations that waste most.";
    Chart::new("waste", "Where time is wasted", bars, words)
}

fn setup(all: &[Destination]) -> Table {
    Rows::of(all)
        .column("destination", |one| &one.origin)
        .column("resumed", |one| one.figures.resumed_share.map(Share))
        .about("share of TLS handshakes that resumed a session")
        .column("lookup", |one| one.figures.setup_mean_ms.dns.map(Time))
        .about("mean")
        .column("TCP", |one| one.figures.setup_mean_ms.connect.map(Time))
        .about("mean")
        .column("TLS handshake", |one| {
            one.figures.setup_mean_ms.ssl.map(Time)
        })
        .about("mean")
        .column("opened/s", |one| one.figures.churn_per_s.map(Rate))
        .column("server's limit", |one| {
            let gaps = one.figures.idle_gaps.as_ref()?;
            Some(Timer(gaps.server_limit_s? * 1e3))
        })
        .about("idle time after which it closes, announced or observed")
        .column("in danger", |one| {
            let gaps = one.figures.idle_gaps.as_ref();
            let share = gaps.and_then(|gaps| gaps.danger_share);
            Cell::from(share.map(Share)).alarm_if(share.is_some_and(|share| share > 0.0))
        })
        .about("share of reuses that came when the server was about to close")
        .if_any("lookups", |one| one.figures.lookups.total)
        .column("lookups/conn", |one| {
            one.figures.lookups.per_connection.map(Mean)
        })
        .table()
        .caption("What connections cost")
}

/// Connections by what they carried, shaded for each destination.
fn per_connection(all: &[Destination]) -> Option<Table> {
    let known = all
        .iter()
        .filter(|one| one.figures.per_connection.is_some());
    let rows: Vec<&Destination> = known.collect();
    type Buckets<'a> = &'a [(u64, Option<u64>, u64)];
    fn buckets<'a>(one: &&'a Destination) -> Buckets<'a> {
        one.figures
            .per_connection
            .as_ref()
            .map_or(&[], |all| &all.buckets)
    }
    let class = |&(from, to, _): &(u64, Option<u64>, u64)| match to {
        Some(to) if to == from => from.to_string(),
        Some(to) => format!("{from}-{to}"),
        None => format!("≥ {from}"),
    };
    let classes: Vec<String> = buckets(rows.first()?).iter().map(class).collect();
    let counts = |one| buckets(one).iter().map(|bucket| bucket.2).collect();
    Some(populations::per_connection(
        "destination",
        &rows,
        |one| one.origin.as_str(),
        &classes,
        counts,
    ))
}
