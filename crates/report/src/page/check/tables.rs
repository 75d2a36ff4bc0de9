//! The tables of a check's page.

use crate::limits;
use crate::page::Table;
use crate::page::parts::{Cell, Columns};
use intact_findings::check::{Address, CheckFacts, MethodFacts, Setting, TlsFacts, VersionFacts};
use intact_ledger::server_profile::EarlyData;

/// All tables that have something to show, the most important first.
pub(super) fn all(facts: &CheckFacts) -> Vec<Table> {
    [
        limits_table(facts),
        race(facts),
        settings(&facts.settings),
        versions(&facts.versions),
        tls(facts),
        methods(&facts.methods),
        names(facts),
        http2(facts),
        state(facts),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn limits_table(facts: &CheckFacts) -> Option<Table> {
    let rows = limits::rows(facts);
    let cell = |at: usize| move |row: &limits::LimitRow| said(&row[at]);
    (!rows.is_empty()).then(|| {
        let mut table = Columns::over(&rows)
            .column("limit", "", cell(0))
            .column("announced", "by Keep-Alive: timeout, max", cell(1))
            .column("measured", "until the server ended it", cell(2))
            .column("ended by", "how", cell(3))
            .table("connection-limits", "Limits of a connection");
        table.notes.push(
            "\"and more\": the limit was not reached while we watched, so it is a lower bound."
                .to_owned(),
        );
        table
    })
}

/// A dash of the terminal is one of the page.
fn said(words: &str) -> Cell {
    Cell::text(if words == "-" { "" } else { words })
}

fn race(facts: &CheckFacts) -> Option<Table> {
    let race = facts
        .race
        .as_ref()
        .filter(|race| !race.attempts.is_empty())?;
    let table = Columns::over(&race.attempts)
        .column("sent", "seen from the idle limit", |one| {
            Cell::text(format!("{} the idle limit", limits::moment(race, one)))
        })
        .column("became of it", "", |one| Cell {
            alarm: one.is_lost(),
            ..Cell::text(limits::fate(one))
        });
    Some(table.table("race", "Requests around the idle limit"))
}

fn settings(settings: &[Setting]) -> Option<Table> {
    (!settings.is_empty()).then(|| {
        Columns::over(settings)
            .column("client", "", |one| Cell::text(one.client))
            .column("option", "to stay below the idle limit", |one| {
                Cell::text(&one.option)
            })
            .table("settings", "What to set clients to for this idle limit")
    })
}

fn versions(versions: &[VersionFacts]) -> Option<Table> {
    let text = |words: &Option<String>| Cell::text(words.clone().unwrap_or_default());
    (!versions.is_empty()).then(|| {
        Columns::over(versions)
            .column("HTTP", "", |one| Cell::text(one.name()))
            .column("TLS", "", |one| Cell::text(one.tls.unwrap_or_default()))
            .column(
                "reused",
                "a second request was answered on the same connection",
                |one| Cell {
                    alarm: one.reused == Some(false) && one.http != "1.0",
                    ..Cell::text(match (one.reused, one.failed) {
                        (Some(true), _) => "yes",
                        (Some(false), _) => "no",
                        (None, Some(failed)) => failed,
                        (None, None) => "",
                    })
                },
            )
            .column("curl says", "after the first answer", |one| {
                Cell::text(one.curl.unwrap_or_default())
            })
            .column("Connection", "as sent", |one| text(&one.connection))
            .column("Keep-Alive", "as sent", |one| text(&one.keep_alive))
            .column("cipher", "", |one| text(&one.cipher))
            .table(
                "versions",
                "Versions: is a second request answered on the same connection?",
            )
    })
}

fn tls(facts: &CheckFacts) -> Option<Table> {
    let again = |one: &TlsFacts| {
        let mut all = facts.resumption.iter();
        all.find(|other| other.version == one.version)
    };
    (!facts.tls.is_empty()).then(|| {
        let mut table = Columns::over(&facts.tls)
            .column("TLS", "", |one| Cell::text(one.version))
            .column("full", "handshake", |one| {
                Cell::time(Some(one.handshake_ms))
            })
            .column(
                "first answer",
                "from our hello to the server's first bytes",
                |one| Cell::time(one.to_first_response_ms),
            )
            .column(
                "rest",
                "our checks, and with TLS 1.2 another round trip",
                |one| Cell::time(one.rest_ms),
            )
            .column(
                "resumed",
                "handshake of a second connection",
                |one| match again(one) {
                    Some(again) if again.accepted => Cell::time(Some(again.handshake_ms)),
                    Some(_) => Cell::text("refused"),
                    None => Cell::text(""),
                },
            )
            .column("0-RTT", "a request in the first flight", |one| {
                Cell::text(match again(one).and_then(|again| again.early_data) {
                    Some(EarlyData::Accepted) => "accepted",
                    Some(EarlyData::Rejected) => "rejected",
                    Some(EarlyData::NotOffered) => "not offered",
                    None => "",
                })
            })
            .column("tickets", "until the first answer", |one| {
                one.tickets
                    .map_or(Cell::text(""), |tickets| Cell::count(u64::from(tickets)))
            })
            .column("certificates", "", |one| {
                Cell::count(u64::from(one.certificates))
            })
            .column("their bytes", "", |one| Cell::count(one.chain_bytes))
            .table("tls", "TLS");
        table.notes = facts
            .tls_older
            .iter()
            .map(|old| {
                let said = match old.accepted {
                    Some(true) => "accepted",
                    Some(false) => "refused",
                    None => "no answer",
                };
                format!("TLS {} offered: {said}.", old.version)
            })
            .collect();
        table
    })
}

fn methods(methods: &[MethodFacts]) -> Option<Table> {
    (!methods.is_empty()).then(|| {
        Columns::over(methods)
            .column("request", "", |one| Cell::text(&one.what))
            .column("status", "", |one| {
                Cell::text(
                    one.status
                        .map_or_else(String::new, |status| status.to_string()),
                )
            })
            .column("connection after it", "", |one| Cell {
                alarm: one.kept == Some(false),
                ..Cell::text(match one.kept {
                    Some(true) => "kept",
                    Some(false) => "closed",
                    None => one.failed.unwrap_or_default(),
                })
            })
            .table(
                "methods",
                "Does a connection survive other methods and statuses?",
            )
    })
}

fn names(facts: &CheckFacts) -> Option<Table> {
    let names = facts.names.as_ref()?;
    let system = Address {
        kind: "both".to_owned(),
        server: "getaddrinfo".to_owned(),
        lookup_ms: names.lookup_ms.unwrap_or_default(),
        addresses: names.addresses.clone(),
        ttl_s: None,
        aliases: Vec::new(),
        error: names.error.clone(),
    };
    let rows: Vec<&Address> = std::iter::once(&system).chain(&names.asked).collect();
    let table = Columns::over(&rows)
        .column("asked", "", |one| Cell::text(&one.server))
        .column("for", "", |one| Cell::text(&one.kind))
        .column("took", "", |one| Cell::time(Some(one.lookup_ms)))
        .column("addresses", "", |one| {
            let told: Vec<String> = one.addresses.iter().map(ToString::to_string).collect();
            Cell::text(one.error.clone().unwrap_or_else(|| told.join(", ")))
        })
        .column("TTL", "the smallest on the way", |one| {
            Cell::value(one.ttl_s.map(f64::from), |ttl| format!("{ttl} s"))
        })
        .column("by way of", "aliases", |one| {
            Cell::text(one.aliases.join(", "))
        });
    Some(table.table("names", format!("The name {}", names.name)))
}

fn http2(facts: &CheckFacts) -> Option<Table> {
    let http2 = facts.http2.as_ref()?;
    let rows: Vec<usize> = (0..http2.response_header_bytes.len()).collect();
    let bytes =
        |all: &[u64], nth: usize| all.get(nth).map_or(Cell::text(""), |&one| Cell::count(one));
    let mut table = Columns::over(&rows)
        .column("answer", "", |nth| Cell::count(*nth as u64 + 1))
        .column("HEADERS to DATA", "", |nth| {
            match http2.headers_to_data_ms.get(*nth).copied().flatten() {
                Some(0.0) => Cell::text("together"),
                gap => Cell::time(gap),
            }
        })
        .column("request's head", "bytes", |nth| {
            bytes(&http2.request_head_bytes, *nth)
        })
        .column("answer's head", "bytes", |nth| {
            bytes(&http2.response_header_bytes, *nth)
        })
        .table("http2", "HTTP/2");
    let settings: Vec<String> = http2
        .settings
        .iter()
        .map(|(name, value)| format!("{name} {}", intact_units::number::count(u64::from(*value))))
        .collect();
    if !settings.is_empty() {
        table
            .notes
            .push(format!("SETTINGS: {}.", settings.join(", ")));
    }
    Some(table)
}

fn state(facts: &CheckFacts) -> Option<Table> {
    let state = facts.state.as_ref()?;
    let rows: Vec<(&str, String)> = [
        ("cookies set", &state.cookies),
        ("authentication", &state.authentication),
        ("differs between connections", &state.affinity),
    ]
    .into_iter()
    .filter(|(_, names)| !names.is_empty())
    .map(|(what, names)| (what, names.join(", ")))
    .collect();
    (!rows.is_empty()).then(|| {
        Columns::over(&rows)
            .column("state", "", |(what, _)| Cell::text(*what))
            .column("names", "", |(_, names)| Cell::text(names))
            .table("state", "What ties a client to a connection or a server")
    })
}
