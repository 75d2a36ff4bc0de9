//! The page of a chain of idle limits: each hop with both limits, what to set, and the requests
//! that are expected to be lost.

use super::common::{findings_in_full, method, page as start};
use crate::page::*;
use intact_ledger::Run;
use intact_servers::chain::{ChainFacts, HopFacts, IdleFacts, IdleKind, Order, Side};
use intact_units::Quantity::{Mean, Time, Timer};
use intact_units::plural::counted;

/// What a chain of limits can show.
const HOW: &str = "Limits were given or read from configurations, not measured: `intact check URL` measures those of a server. Of several limits the client's longest and the server's \
    shortest count. A client's limit is safe below the last fifth of the server's, at most its last second.";

/// The page.
pub(super) fn page<'a>(run: &'a Run, facts: &'a ChainFacts) -> Page<'a> {
    let mut page = start(run, facts, String::new);
    page.command = format!("{} --chain", run.producer);
    page.headline = headline(facts);
    page.section(findings_in_full(&facts.findings, ""));
    page.section(settings(facts));
    page.section(Section::new("hops", "Idle limits, hop by hop").summary(hops(facts)));
    page.section(sources(facts));
    page.section(losses(facts));
    page.method = Some(method(run, &[Text::prose(HOW)], Vec::new()));
    page.csv("hops.csv", "the hops as CSV", move || hops(facts));
    page
}

fn headline(facts: &ChainFacts) -> Option<Headline> {
    let races = facts.races.low().max(0.0);
    let unknown = facts
        .hops
        .iter()
        .any(|hop| matches!(hop.order, Order::Unknown));
    let assessment = match (races as u64, unknown || !facts.caveats.is_empty()) {
        (0, false) => Assessment::Good,
        (0, true) => Assessment::Neutral,
        _ => Assessment::Bad,
    };
    let all = facts.hops.len();
    let caption = text!(
        "of {}: the server may close first",
        counted(all as u64, "hop")
    );
    let share = races / all.max(1) as f64;
    Headline::new(HeadlineShare::lost(share), assessment, caption)
}

fn limit(idle: &IdleFacts) -> Cell {
    match (idle.kind, idle.seconds) {
        (IdleKind::After, Some(seconds)) => Timer(seconds * 1e3).into(),
        (IdleKind::Unlimited, _) => "no limit".into(),
        (IdleKind::NotKept, _) => "not kept".into(),
        _ => "unknown".into(),
    }
}

fn order(hop: &HopFacts) -> Cell {
    let words = match hop.order {
        Order::ClientFirst => "client, as wanted",
        Order::Close => "a race: too close",
        Order::ServerFirst => "server: a race",
        Order::NeitherEnds => "neither",
        Order::NotKept => "not kept",
        Order::Unknown => "unknown",
    };
    Cell::from(words).alarm_if(hop.order.is_race())
}

fn seconds(value: Option<f64>) -> Option<Quantity> {
    value.map(|seconds| Timer(seconds * 1e3))
}

fn hops(facts: &ChainFacts) -> Table {
    Rows::of(&facts.hops)
        .column("hop", |hop| format!("{} -> {}", hop.client, hop.server))
        .column("client", |hop| limit(&hop.client_idle))
        .about("its idle limit")
        .column("server", |hop| limit(&hop.server_idle))
        .about("its idle limit")
        .column("closes first", order)
        .column("set client", |hop| seconds(hop.set_client_s))
        .about("to this idle limit")
        .column("or server", |hop| seconds(hop.set_server_s))
        .about("to this idle limit")
        .table()
}

/// Where each limit comes from.
fn sources(facts: &ChainFacts) -> Section {
    let sides = facts.hops.iter().flat_map(|hop| {
        [
            (
                format!("{} to {}", hop.client, hop.server),
                &hop.client_idle,
            ),
            (
                format!("{} from {}", hop.server, hop.client),
                &hop.server_idle,
            ),
        ]
    });
    let sides: Vec<(String, &IdleFacts)> =
        sides.filter(|(_, idle)| idle.source != "given").collect();
    let table = Rows::of(&sides)
        .column("limit", |side| side.0.clone())
        .column("", |side| limit(side.1))
        .column("for", |side| side.1.scope.clone())
        .column("source", |side| side.1.source.clone())
        .table();
    Section::new("sources", "Where the limits come from").summary(table)
}

fn settings(facts: &ChainFacts) -> Section {
    let side = |side: Side| match side {
        Side::Accepts => "towards its client",
        Side::Keeps => "towards its server",
        Side::Both => "of both sides",
    };
    let table = Rows::of(&facts.settings)
        .column("hop", |one| one.hop.clone())
        .column("idle limit", |one| side(one.side))
        .column("now", |one| {
            seconds(one.from_s).map_or_else(|| Cell::from("no limit"), Cell::from)
        })
        .column("set to", |one| Timer(one.to_s * 1e3))
        .table();
    Section::new("settings", "One set of limits for the whole chain").summary(table)
}

fn losses(facts: &ChainFacts) -> Section {
    let section = Section::new("losses", "Requests that are expected to be lost");
    let Some(gaps) = &facts.gaps else {
        return section;
    };
    let lossy = facts.hops.iter().filter_map(|hop| {
        let loss = hop.loss.as_ref()?;
        (!loss.is_beyond_the_log).then_some((hop, loss))
    });
    let rows: Vec<_> = lossy.collect();
    let table = Rows::of(&rows)
        .column("hop", |row| format!("{} -> {}", row.0.client, row.0.server))
        .column("near the limit", |row| row.1.near)
        .about("idle times in the last fifth of the server's limit, at most its last second")
        .column("lost per million", |row| Mean(row.1.lost_share * 1e6))
        .about("of a client that notices a close at once")
        .column("lost per hour", |row| Mean(row.1.lost_per_h))
        .column("per million, at most", |row| {
            Mean(row.1.lost_share_at_most * 1e6)
        })
        .about("of a client that does not look at a connection before it sends")
        .column("per hour, at most", |row| Mean(row.1.lost_per_h_at_most))
        .table();
    let scope = match &gaps.hop {
        Some(hop) => format!("connections that {hop} accepts"),
        None => "every hop, as if its connections idled like those of the log".to_owned(),
    };
    let about = text!(
        "From {} idle times of {} requests, the longest {}, for {}; a round trip of {} (`--rtt`).",
        gaps.count,
        gaps.requests,
        gaps.longest_s.map(|longest| Timer(longest * 1e3)),
        scope,
        Time(gaps.round_trip_ms)
    );
    section.summary(table).summary(note(about))
}
