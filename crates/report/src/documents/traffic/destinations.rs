//! The destinations: what was opened, needed and wasted, and what the setup of their connections
//! costs.

use crate::documents::common::by_kind;
use crate::documents::{populations, timeline};
use crate::page::*;
use intact_ledger::{Evidence, Run};
use intact_reading::Reading;
use intact_traffic::{Charts, Destination, ObservedFacts};
use intact_units::Quantity::{Mean, Share, Time, Timer};
use intact_units::plural::counted;

/// Bars of wasted time.
const BARS: usize = 12;

/// Destinations, those that waste most first.
pub(super) fn destinations(all: &[Destination]) -> Table {
    let inferred =
        |one: &Destination, cell: Cell| cell.inferred_if(!one.figures.inferred.is_empty());
    Rows::of(all)
        .column("destination", |one| &one.origin)
        .column("requests", |one| {
            inferred(one, Cell::count(&one.figures.traffic.requests.total))
        })
        .failures("failed", |one| &one.figures.traffic.requests.failures)
        .failures("connections-failed", |one| {
            &one.figures.traffic.connections.failures
        })
        .figure(0, "connections", |one| {
            &one.figures.traffic.connections.opened
        })
        .about("connections")
        .ranked(1, "needed", |one| {
            inferred(one, Cell::count(&one.figures.traffic.connections.needed))
        })
        .about("connections, for the most requests at once, and for those that the server ended")
        .ranked(3, "by server", |one| {
            let by_server = &one.figures.traffic.avoidable_by_server;
            by_server.is_positive().then(|| Cell::count(by_server))
        })
        .about("needed for its limits alone")
        .column("reused", |one| {
            inferred(one, populations::reuse(&one.figures.traffic.reuse))
        })
        .about("share of requests on a connection that an earlier request had used")
        .column("wasted", |one| time(&one.figures.wasted_ms))
        .about("setup of connections that were not needed")
        .ranked(2, "share", |one| {
            Cell::reading(&one.figures.wasted_share, Share)
        })
        .about("wasted, of the time of all requests there")
        .ranked(4, "setup", |one| time(&one.figures.setup_mean_ms.total))
        .about("mean per connection")
        .ranked(6, "TLS", |one| {
            let kinds = one.tls.iter();
            join(kinds.filter_map(|kind| Some(kind.version?.as_str())))
        })
        .ranked(5, "HTTP", |one| join(one.protocols.keys().copied()))
        .ranked(8, "ended by", |one| {
            by_kind(&one.figures.counted.connections.ended_by)
        })
        .ranked(7, "program", |one| join(one.programs()))
        .full("mean", |one| time(&one.figures.latency_ms.mean))
        .about("latency, setup included")
        .full("p50", |one| time(&one.figures.latency_ms.p50))
        .full("p99", |one| time(&one.figures.latency_ms.p99))
        .table()
}

fn time(ms: &Reading) -> Cell {
    Cell::reading(ms, Time)
}

/// Words, each once.
fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut all: Vec<&str> = words.collect();
    all.dedup();
    all.join(", ")
}

/// What the setup of connections costs, and how connections were used.
pub(super) fn connections(run: &Run, facts: &ObservedFacts, charts: &Charts) -> Section {
    let mut notes = Vec::new();
    if charts.elsewhere > 0 {
        notes.push(text!(
            "To further destinations: {}.",
            counted(charts.elsewhere, "connection")
        ));
    }
    if !run.sees(Evidence::Ends) {
        let words = "The end of connections was not observed: a line ends with its last request.";
        notes.push(words.into());
    }
    let first = "The first connections to each of the first destinations.";
    Section::new("connections", "Connections")
        .full(waste(&facts.destinations))
        .full(timeline::chart(run, &charts.timeline, first).notes(notes))
        .full(setup(&facts.destinations))
        .full(per_connection(&facts.destinations))
}

fn waste(all: &[Destination]) -> Chart {
    let wasteful = all.iter().filter(|one| one.figures.wasted_ms.is_positive());
    let bars = wasteful.filter_map(|one| {
        let wasted = &one.figures.wasted_ms;
        let counts = &one.figures.traffic.connections;
        let words = format!(
            "{}: {} opened, {} needed",
            wasted.shown(|ms| Time(ms).to_string()),
            counts.opened,
            counts.needed
        );
        let least = Some(wasted.low()).filter(|ms| ms.is_finite())?;
        Some(Bar::whole(&one.origin, Tone::Fresh, least, words))
    });
    let bars = Bars(bars.take(BARS).collect());
    let words = "Setup of connections that were not needed, at the destinations that waste most.";
    Chart::new("waste", "Where time is wasted", bars, words)
}

fn setup(all: &[Destination]) -> Table {
    Rows::of(all)
        .column("destination", |one| &one.origin)
        .figure(0, "resumed-share", |one| &one.figures.resumed_share)
        .about("share of TLS handshakes that resumed a session")
        .column("lookup", |one| time(&one.figures.setup_mean_ms.dns))
        .about("mean")
        .column("TCP", |one| time(&one.figures.setup_mean_ms.connect))
        .about("mean")
        .column("TLS handshake", |one| time(&one.figures.setup_mean_ms.ssl))
        .about("mean")
        .figure(0, "churn", |one| &one.figures.churn_per_s)
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
        .if_any("lookups", |one| Cell::count(&one.figures.lookups.total))
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
        None => format!("at least {from}"),
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
