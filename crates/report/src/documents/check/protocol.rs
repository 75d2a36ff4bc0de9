//! The part of the page about one request, phase by phase, and what TLS, HTTP/2 and HTTP/3 took.

use crate::documents::populations::{phase_words, segments, waterfall as waterfall_of};
use crate::page::*;
use intact_ledger::Handshake;
use intact_ledger::server_profile::EarlyData;
use intact_servers::check::{
    CheckFacts, Http2Facts, Http3Facts, PHASES, Resumption, SmallSample, TlsFacts,
};
use intact_units::Quantity::{Count, Time};
use intact_units::plural::counted;
use std::collections::BTreeMap;

type Phases = BTreeMap<&'static str, f64>;

/// The first request on a connection and the next ones.
pub(super) fn waterfall(facts: &CheckFacts) -> Section {
    let all = &facts.phases_ms;
    let mut rows: Vec<(&str, &Phases)> = vec![
        ("first request", &all.median_request.fresh),
        ("next requests", &all.median_request.reused),
    ];
    rows.retain(|row| !row.1.is_empty());
    let mut table = Rows::of(&rows).column("", |row| row.0);
    for phase in PHASES.into_iter().filter(|phase| *phase != "without_setup") {
        let (head, meaning) = match phase {
            "total" => ("total", "with setup"),
            phase => phase_words(phase),
        };
        table = table
            .column(head, move |row| row.1.get(phase).copied().map(Time))
            .about(meaning);
    }
    let bars = rows.iter().map(|(name, phases)| {
        let parts = PHASES
            .iter()
            .filter(|phase| !matches!(**phase, "total" | "without_setup"));
        let total = phases.get("total").copied();
        Bar {
            name: (*name).to_owned(),
            words: total.map_or_else(String::new, |total| Time(total).to_string()),
            parts: segments(parts.filter_map(|phase| Some((*phase, *phases.get(phase)?)))),
            interval: None,
        }
    });
    let words = "The request whose total is the median: one on a new connection, and one of those on the same connections after that. A kept connection saves what only the first request waits for.";
    let taken = |phases: &BTreeMap<&str, Option<SmallSample>>| {
        let total = phases.get("total").and_then(Option::as_ref);
        total.map_or(0, |few| few.count)
    };
    let title = match (taken(&all.fresh), taken(&all.reused)) {
        (first, 0) => text!(
            "One request, phase by phase (the median of {} first ones)",
            first
        ),
        (first, next) => text!(
            "One request, phase by phase (the median of {} first and of {} next ones)",
            first,
            next
        ),
    };
    Section::new("waterfall", title)
        .weighing(Weight::Detail)
        .summary(table.table())
        .summary(waterfall_of(bars.collect(), words))
        .full(handshakes(facts))
}

/// The resumption that was tried with a TLS version.
fn resumption<'a>(facts: &'a CheckFacts, version: &str) -> Option<&'a Resumption> {
    facts.resumption.iter().find(|one| one.version == version)
}

/// The time of a handshake, in full and resumed.
fn handshakes(facts: &CheckFacts) -> Chart {
    let bar = |name: String, tone, ms| Bar::whole(name, tone, ms, Time(ms).to_string());
    let mut bars = Vec::new();
    for tls in &facts.tls {
        bars.push(bar(
            format!("TLS {}", tls.version),
            Tone::Fresh,
            tls.handshake_ms,
        ));
        if let Some(again) = resumption(facts, tls.version).filter(|again| again.accepted) {
            let name = format!("TLS {} resumed", tls.version);
            bars.push(bar(name, Tone::Reused, again.handshake_ms));
        }
    }
    let words = "One handshake of each kind, without the setup of TCP.";
    Chart::new("handshakes", "Time of a TLS handshake", Bars(bars), words)
}

pub(super) fn tls(facts: &CheckFacts) -> Section {
    let early = |one: &TlsFacts| match resumption(facts, one.version)?.early_data? {
        EarlyData::Accepted => Some("accepted"),
        EarlyData::Rejected => Some("rejected"),
        EarlyData::NotOffered => Some("not offered"),
    };
    let table = Rows::of(&facts.tls)
        .column("TLS", |one| one.version)
        .column("full", |one| Time(one.handshake_ms))
        .about("handshake")
        .column("resumed", |one| match resumption(facts, one.version) {
            Some(again) if again.accepted => Cell::from(Time(again.handshake_ms)),
            Some(_) => Cell::from("refused"),
            None => Cell::default(),
        })
        .about("handshake of a second connection")
        .column("0-RTT", early)
        .about("a request in the first flight")
        .ranked(2, "tickets", |one| one.tickets.map(u64::from))
        .about("until the first response")
        .ranked(1, "first bytes", |one| one.to_first_response_ms.map(Time))
        .about("from our hello to the first bytes of the server")
        .ranked(1, "rest", |one| one.rest_ms.map(Time))
        .about("our checks, and with TLS 1.2 another round trip")
        .table();
    let certificates = facts.tls.iter().map(|one| {
        let cipher = one.cipher.as_deref().unwrap_or("cipher unknown");
        let certificates = counted(u64::from(one.certificates), "certificate");
        note(text!(
            "TLS {}: {}, {} of {} bytes",
            one.version,
            cipher,
            certificates,
            one.chain_bytes
        ))
    });
    Section::new("tls", "TLS")
        .weighing(Weight::Detail)
        .summary(table)
        .summary(certificates.collect::<Vec<Block>>())
}

pub(super) fn http2(http2: &Http2Facts) -> Section {
    let settings = http2
        .settings
        .iter()
        .map(|(name, value)| format!("{name} {}", Count(u64::from(*value))));
    let settings: Vec<String> = settings.collect();
    let settings = (!settings.is_empty()).then(|| text!("SETTINGS: {}", settings.join(", ")));
    let rows: Vec<usize> = (0..http2.response_header_bytes.len()).collect();
    let bytes = |all: &[u64], nth: usize| all.get(nth).copied();
    let table = Rows::of(&rows)
        .column("response", |nth| *nth as u64 + 1)
        .column("HEADERS to DATA", |nth| {
            match http2.headers_to_data_ms.get(*nth).copied().flatten() {
                Some(0.0) => Cell::from("together"),
                Some(gap) => Time(gap).into(),
                None => "no body".into(),
            }
        })
        .column("request headers", |nth| {
            bytes(&http2.request_head_bytes, *nth)
        })
        .about("bytes of the header block")
        .column("response headers", |nth| {
            bytes(&http2.response_header_bytes, *nth)
        })
        .about("bytes of the header block")
        .table();
    Section::new("http2", "HTTP/2")
        .weighing(Weight::Detail)
        .summary(settings)
        .summary(table)
}

/// The connections of HTTP/3; `None` where none was set up.
pub(super) fn http3(seen: &Http3Facts) -> Option<Section> {
    if seen.connections.is_empty() {
        return None;
    }
    let offered = ["new", "resumed", "0-RTT"];
    let rows: Vec<_> = offered.into_iter().zip(&seen.connections).collect();
    let table = Rows::of(&rows)
        .column("connection", |(offered, _)| *offered)
        .column("handshake", |(_, one)| match one.handshake {
            Handshake::Full => "full",
            Handshake::Resumed => "resumed",
            Handshake::EarlyData => "early data",
        })
        .about("as the server chose")
        .column("setup", |(_, one)| one.setup_ms.map(Time))
        .about("transport and TLS together")
        .column("round trips", |(_, one)| one.round_trips.map(u64::from))
        .about("of the setup")
        .column("first request", |(_, one)| one.first_request_ms.map(Time))
        .about("with the setup")
        .ranked(1, "first bytes", |(_, one)| {
            one.to_first_response_ms.map(Time)
        })
        .about("from our first packet to the first bytes of the server")
        .table();
    let section = Section::new("http3", "HTTP/3").weighing(Weight::Asked);
    Some(section.summary(table))
}
