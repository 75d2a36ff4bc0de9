//! The page of a scenario: what simulated clients sent, by session and tag, and what new and reused
//! connections took.

use super::common::{by_kind, findings, method, no_response, page as start, seed};
use super::populations;
use crate::page::*;
use intact_experiments::scenario::{ScenarioFacts, SessionFacts, TagFacts};
use intact_ledger::{Reuse, Run};
use intact_units::Quantity::{Mean, Share, Time};

/// A tag with its session or variant.
type Row<'a> = (&'a str, &'a TagFacts);

pub(super) fn page<'a>(run: &'a Run, facts: &'a ScenarioFacts) -> Page<'a> {
    let mut page = start(run, facts, || "the built-in server".to_owned());
    if let Some(file) = &run.scenario {
        page.subject = format!("{file} at {}", page.subject);
    }
    page.headline = headline(facts);
    page.facts(totals(facts));
    page.intro = vec![text!("seed {}", seed(run))];
    page.section(findings(&facts.findings, ""));
    if facts.counted.requests.total > 0 {
        let title = "Sessions: one per simulated client; latency includes the setup that a request waited for";
        page.section(Section::new("sessions", title).summary(sessions(&facts.sessions)));
        let rows = rows(facts);
        page.section(
            Section::new("tags", "Tags")
                .summary(tags("session", &rows))
                .full(phases(&rows)),
        );
        page.section(latency(facts));
        page.section(client(facts));
    }
    page.method = Some(method(run, &how(facts), vec![("Seed", seed(run).into())]));
    page.csv("tags.csv", "the tags as CSV", move || {
        tags("session", &rows(facts))
    });
    page
}

/// Every tag of every session.
fn rows(facts: &ScenarioFacts) -> Vec<Row<'_>> {
    tag_rows(&facts.sessions, |one| (&one.name, &one.tags))
}

/// Every tag with the name of its session or variant.
pub(super) fn tag_rows<T>(all: &[T], tags: impl Fn(&T) -> (&str, &[TagFacts])) -> Vec<Row<'_>> {
    let each = all.iter().map(tags);
    each.flat_map(|(name, tags)| tags.iter().map(move |tag| (name, tag)))
        .collect()
}

/// The share of requests that waited for a new connection, and the two times.
fn headline(facts: &ScenarioFacts) -> Option<Headline> {
    if facts.counted.requests.ok > 0 && facts.errors.is_all() {
        return Headline::all_failed(text!("of the responses: {}", facts.errors.names()));
    }
    if facts.counted.requests.ok == 0 {
        return no_response(facts.counted.requests.total);
    }
    let all: u64 = facts.populations.iter().map(|one| one.count).sum();
    let of = |reuse: Reuse| {
        let mut populations = facts.populations.iter();
        populations.find(|one| one.reuse == Some(reuse))
    };
    let typical = |one: &intact_document::Population| one.p50_ms.unwrap_or(one.mean_ms);
    let new = of(Reuse::Fresh);
    let share = new.map_or(0.0, |one| one.count as f64 / all.max(1) as f64);
    let caption = match (new, of(Reuse::Reused)) {
        (Some(new), Some(reused)) => text!(
            "of the requests waited for a new connection: {}, against {} on a reused one",
            Time(typical(new)),
            Time(typical(reused))
        ),
        _ => "of the requests waited for a new connection".into(),
    };
    (all > 0)
        .then(|| Headline::new(HeadlineShare::lost(share), Assessment::Neutral, caption))
        .flatten()
}

fn totals(facts: &ScenarioFacts) -> Vec<Fact> {
    let started = facts.clients.map(|clients| clients.started);
    let started = started.map(|started| Fact::counted(started, "client"));
    let most = facts.clients_at_once;
    let most = most.map(|most| Fact::counted_as(most, "client", "at once"));
    let (requests, connections) = (&facts.traffic.requests, &facts.traffic.connections);
    let counts = [
        started,
        Some(Fact::read(&requests.total, "request", "")),
        Some(Fact::read(&connections.opened, "connection", "opened")),
        most,
        Some(Fact::failures(&requests.failures, "request")),
        Some(Fact::failures(&connections.failures, "connection attempt")),
    ];
    counts.into_iter().flatten().collect()
}

fn sessions(sessions: &[SessionFacts]) -> Table {
    Rows::of(sessions)
        .column("session", |one| &one.name)
        .ranked(7, "weight", |one| one.weight.map(Mean))
        .about("how likely a client is to pick it, compared with the others")
        .ranked(2, "clients", |one| {
            one.clients.map(|clients| clients.started)
        })
        .ranked(8, "finished", |one| {
            one.clients.map(|clients| clients.finished)
        })
        .about("clients that were through with all steps")
        .figure(0, "requests", |one| &one.traffic.requests.total)
        .failures("failed", |one| &one.traffic.requests.failures)
        .figure(3, "connections", |one| &one.traffic.connections.opened)
        .about("connections")
        .failures("connections-failed", |one| {
            &one.traffic.connections.failures
        })
        .figure(6, "requests-per-connection", |one| {
            &one.requests_per_connection
        })
        .about("mean requests of a connection that ended")
        .column("reused", |one| populations::reuse(&one.traffic.reuse))
        .about(
            "share of requests on a connection that an earlier request of the same client had used",
        )
        .figure(4, "mean", |one| &one.latency_ms.mean)
        .figure(0, "p50", |one| &one.latency_ms.p50)
        .figure(9, "p90", |one| &one.latency_ms.p90)
        .figure(1, "p99", |one| &one.latency_ms.p99)
        .figure(5, "max", |one| &one.latency_ms.max)
        .full("ended by", |one| by_kind(&one.counted.connections.ended_by))
        .table()
}

pub(super) fn tags(of: &'static str, rows: &[Row<'_>]) -> Table {
    Rows::of(rows)
        .column(of, |row| row.0)
        .column("tag", |row| &row.1.tag)
        .figure(0, "requests", |row| &row.1.requests.total)
        .failures("failed", |row| &row.1.requests.failures)
        .full("status", |row| {
            let status = row.1.requests.status.iter();
            let status = status.map(|(code, count)| format!("{code} {count}"));
            status.collect::<Vec<String>>().join(", ")
        })
        .column("reused", |row| populations::reuse(&row.1.reuse))
        .figure(4, "mean", |row| &row.1.latency_ms.mean)
        .figure(0, "p50", |row| &row.1.latency_ms.p50)
        .figure(6, "p90", |row| &row.1.latency_ms.p90)
        .figure(1, "p99", |row| &row.1.latency_ms.p99)
        .figure(5, "max", |row| &row.1.latency_ms.max)
        .figure(3, "without-setup.mean", |row| {
            &row.1.latency_without_setup_ms.mean
        })
        .about("mean latency less the setup of the connection")
        .table()
}

fn phases(rows: &[Row<'_>]) -> Table {
    populations::phases(
        "tag",
        rows,
        |row| row.1.tag.as_str(),
        |row, phase| populations::mean(&row.1.phases_ms, phase),
    )
}

/// The modes, named, with their shares.
fn latency(facts: &ScenarioFacts) -> Section {
    let histogram = Histogram(vec![populations::shares(&facts.populations)]);
    let bars = populations::bars("", &facts.populations);
    let title = match facts.is_bimodal {
        true => "Distribution of latency: two modes",
        false => "Distribution of latency",
    };
    let modes = facts.sessions.iter().filter(|one| !one.modes.is_empty());
    let modes = modes.map(|one| populations::modes(&one.name, &one.modes));
    let words = text!(
        "Latency of complete requests of all sessions, setup included; further left is faster. A request is new if it waited for any part of its connection's \
         setup. {}",
        populations::heights(&histogram, "requests")
    );
    Section::new("latency", "Latency: new and reused connections")
        .summary(Chart::new("latency", title, histogram, words).notes(modes))
        .full(populations::waterfall(
            bars,
            "Mean time that each phase adds to a request.",
        ))
}

/// What limits the client itself.
fn client(facts: &ScenarioFacts) -> Section {
    let cpu = |us: Option<f64>| us.map(|us| Time(us / 1e3));
    let table = Rows::of(std::slice::from_ref(facts))
        .figure(0, "throughput", |one| &one.rate_per_s)
        .about("complete requests a second")
        .figure(0, "schedule.error", |one| &one.scheduling_error_ms.p99)
        .about("the client's own lateness: from when a request was due after a wait or an arrival, and a place was free, to its start")
        .column("late", |one| one.scheduling_error_share.map(Share))
        .about("its sum as a share of the latency")
        .column("waited", |one| one.queued)
        .about("clients that arrived while as many as -c allows were there")
        .column("busy", |one| one.client_busy.map(Share))
        .about("CPU time of the client's threads over the time measured on them")
        .column("client CPU", |one| cpu(one.cpu_us_per_request))
        .about("of the engine, per request")
        .column("server CPU", |one| cpu(one.server_cpu_us_per_request))
        .about("per request")
        .table();
    Section::new("client", "The client itself").full(table)
}

fn how(facts: &ScenarioFacts) -> Vec<Text> {
    let arrivals = match facts.clients_at_once {
        Some(_) => "Clients arrived by the phases of the definition, whatever the responses did.",
        None => "A fixed number of clients was there at all times: when one left, the next came.",
    };
    vec![
        Text::prose(
            "The definition was evaluated once, before anything was sent. A client picks a session by weight, goes through its steps and leaves. It is a new environment: its first request never reuses a connection, and no other client uses those that it opens.",
        ),
        Text::prose(arrivals),
        Text::prose(
            "Latency counts from the moment a request was due: when its client arrived, after its wait, or after the last response. Waits are in no latency.",
        ),
    ]
}
