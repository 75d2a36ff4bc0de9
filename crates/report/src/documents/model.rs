//! The page of a model: what a request through a chain of services takes, call by call and packet
//! by packet.

use super::common::{caveats, page_without_run};
use crate::page::*;
use intact_model as model;
use intact_model::{CallForecast, Fit, Forecast, Http, Prediction, Tls, Totals, WhatIf};
use intact_units::Quantity::{Change, RoundShare, Share, Time};

/// What a prediction leaves out.
const LIMITS: [&str; 2] = [
    "Counted: round trips, lookups, handshakes, slow start of responses above 14.6 kB, the work that the file names. Means only: no queues, no loss, no jitter, no bandwidth.",
    "\"As TCP does it\" is what a measured link shows (docs/reference/model.md). \"In series\" counts the last packet of each handshake as a trip of its own.",
];

/// The page; `fit` where the chain was derived from a ledger.
pub fn model<'a>(forecast: &'a Forecast, subject: &str, fit: Option<&Fit>) -> Page<'a> {
    let subject = match forecast.name.as_str() {
        "" => subject.to_owned(),
        name => format!("{subject}: {name}"),
    };
    let mut page = page_without_run("model", subject);
    page.verdict = vec![verdict(forecast)];
    if let Some(fit) = fit {
        page.verdict.extend(fitted(forecast, fit));
        page.caveats = caveats(&fit.caveats);
    }
    page.section(remedies(&forecast.what_if));
    page.section(Section::new("counting", "One request").summary(counting(forecast)));
    page.section(calls(forecast));
    if fit.is_none() {
        let hint = Text::prose("`--mermaid FILE` writes this diagram for Markdown");
        let packets = Block::Sequence(sequence_of(&forecast.sequence));
        page.section(
            Section::new("packets", "Packets")
                .summary(packets)
                .summary(note(hint)),
        );
    }
    let limits: Vec<Block> = LIMITS.map(note).into();
    page.section(Section::new("limits", "What is counted").summary(limits));
    page
}

/// The result in one sentence.
fn verdict(forecast: &Forecast) -> Text {
    let totals = forecast.chosen();
    let [now, kept, new] = [totals.configured, totals.reused, totals.new].map(|one| one.total_ms);
    if now - kept > now * 1e-3 {
        let words = "One request takes {}, with every connection reused {}: {} of the time is setup of connections.";
        text!(words, Time(now), Time(kept), RoundShare(1.0 - kept / now))
    } else if new - now > new * 1e-3 {
        let words = "One request takes {} on reused connections. On new ones it would take {}: reuse saves {}.";
        text!(words, Time(now), Time(new), RoundShare(1.0 - now / new))
    } else {
        text!(
            "One request takes {}, with new connections or without.",
            Time(now)
        )
    }
}

/// How well a chain that was derived from a ledger agrees with the measured times.
fn fitted(forecast: &Forecast, fit: &Fit) -> Vec<Text> {
    let predicted = forecast.tcp.configured.total_ms;
    let calls: u64 = fit.chain.calls.iter().map(|call| call.times).sum();
    let words = "\"One request\" is all {} requests of the ledger, one after the other: {} measured, {} predicted ({}).";
    let change = Change(predicted / fit.measured_ms - 1.0);
    let agreement = text!(words, calls, Time(fit.measured_ms), Time(predicted), change);
    let left_out = fit.left_out.iter().map(|why| text!("Left out: {}.", why));
    std::iter::once(agreement).chain(left_out).collect()
}

fn counting(forecast: &Forecast) -> Table {
    let rows = [
        ("as TCP does it", &forecast.tcp),
        ("packets in series, as on paper", &forecast.series),
    ];
    let total = |totals: &Totals, pick: fn(&Totals) -> Prediction| Time(pick(totals).total_ms);
    Rows::of(&rows)
        .column("counted", |row| row.0)
        .column("all new", |row| total(row.1, |totals| totals.new))
        .column("as configured", |row| {
            total(row.1, |totals| totals.configured)
        })
        .column("all reused", |row| total(row.1, |totals| totals.reused))
        .table()
}

fn calls(forecast: &Forecast) -> Section {
    let times = |one: &CallForecast| match one.call.at_once {
        true => Cell::from(text!("{} at once", one.call.times)),
        false => one.call.times.into(),
    };
    let table = Rows::of(&forecast.calls)
        .column("call", |one| format!("{} -> {}", one.from, one.call.to))
        .column("times", times)
        .column("round trip", |one| Time(one.call.rtt_ms))
        .ranked(2, "over", |one| over(one.call.http, one.call.tls))
        .ranked(1, "reused", |one| Share(one.call.reuse))
        .column("new", |one| Time(one.leg.setup_ms + one.leg.exchange_ms))
        .column("kept", |one| Time(one.leg.exchange_ms))
        .table();
    Section::new("calls", "Calls, without the service that they lead to").summary(table)
}

fn remedies(all: &[WhatIf]) -> Section {
    let section = Section::new("remedies", "What each remedy saves");
    if all.is_empty() {
        return section.summary(Text::plain(
            "Nothing that is known here would make it faster.",
        ));
    }
    let table = Rows::of(all)
        .column("remedy", |one| one.remedy.words())
        .column("one request", |one| Time(one.total_ms))
        .column("saves", |one| Time(one.saves_ms))
        .column("once all is reused", |one| {
            one.saves_when_reused_ms.map(Time)
        })
        .table();
    let risks = all.iter().filter_map(|one| {
        Some(note(text!(
            "{}: {}",
            one.remedy.words(),
            one.remedy.risk()?
        )))
    });
    section
        .summary(table)
        .summary(risks.collect::<Vec<Block>>())
}

fn over(http: Http, tls: Tls) -> &'static str {
    match (http, tls) {
        (Http::Quic, Tls::Tls13EarlyData) => "QUIC, early data",
        (Http::Quic, _) => "QUIC",
        (_, Tls::None) => "TCP",
        (_, Tls::Tls12) => "TLS 1.2",
        (_, Tls::Tls12Resumed) => "TLS 1.2 resumed",
        (_, Tls::Tls13) => "TLS 1.3",
        (_, Tls::Tls13EarlyData) => "TLS 1.3 early data",
    }
}

/// The packets of a model; an arrow between unknown services is left out.
pub fn sequence_of(sequence: &model::Sequence) -> Sequence {
    let lane = |name: &str| sequence.lanes.iter().position(|lane| lane == name);
    let arrows = sequence.arrows.iter().filter_map(|arrow| {
        Some(Arrow {
            at_ms: arrow.at_ms,
            until_ms: Some(arrow.until_ms),
            from: lane(&arrow.from)?,
            to: lane(&arrow.to)?,
            label: arrow.label.clone(),
            is_alarm: false,
        })
    });
    Sequence {
        lanes: sequence.lanes.clone(),
        arrows: arrows.collect(),
        more: (!sequence.cut).then_some(0),
    }
}
