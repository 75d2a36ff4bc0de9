//! Proxies and servers: the configuration to write, the effect of others, the settings. What to set
//! is from `clients/advice.toml`, figures from measurements.

use super::{connections, copied, idle, outcome, seconds, version_key};
use crate::documents::common::page_without_run;
use crate::page::*;
use intact_advice::{Server, named};
use intact_fix::{
    AcceptedFacts, AcceptedIdle, Catalogue, Hop, HopKind, HopMeasurement, HopVariant, RequestLimit,
    Role,
};
use intact_units::plural::counted;

/// A measurement of a variant.
#[derive(Clone, Copy)]
struct HopRow<'a> {
    hop: &'a Hop,
    variant: &'a HopVariant,
    one: &'a HopMeasurement,
}

/// The measurements of a hop in these versions, the newest version of a variant last.
fn rows<'a>(catalogue: &'a Catalogue, hop: &'a Hop, version: Option<&str>) -> Vec<HopRow<'a>> {
    let measured = catalogue.hops.of(hop).into_iter();
    let mut rows: Vec<HopRow<'_>> = measured
        .map(|(variant, one)| HopRow { hop, variant, one })
        .filter(|row| version.is_none_or(|wanted| row.one.version.starts_with(wanted)))
        .collect();
    rows.sort_by_key(|row| {
        let of = |variant: &HopVariant| variant.id == row.variant.id;
        (
            hop.variants.iter().position(of),
            version_key(Some(&row.one.version)),
        )
    });
    rows
}

/// Proxies and servers, a row for each version: what their defaults do.
pub(super) fn list(catalogue: &Catalogue, hops: &[&Hop]) -> Option<Section> {
    let all = hops.iter().flat_map(|hop| rows(catalogue, hop, None));
    let rows: Vec<HopRow<'_>> = all
        .filter(|row| row.variant.role == Role::Default)
        .collect();
    let table = Rows::of(&rows)
        .column("proxy or server", |row| &row.hop.id)
        .column("version", |row| &row.one.version);
    let table = accepted(upstream(table, false)).table();
    (!rows.is_empty()).then(|| {
        Section::new("hops", "Proxies and servers").summary(table.note(Text::prose(ABOUT_COLUMNS)))
    })
}

const ABOUT_COLUMNS: &str = "`upstream 20`: connections that a proxy opens to the server behind it for 20 requests in turn of one client; `each new`: of 20 clients. `idle`, `requests`: what ends a client's connection; `TERM`: requests lost when SIGTERM ends it.";

/// A table of hops while its columns are added.
type Columns<'a> = Rows<'a, HopRow<'a>>;

/// Adds what a proxy does upstream.
fn upstream(table: Columns<'_>, has_all: bool) -> Columns<'_> {
    let of = |row: &HopRow<'_>| row.one.upstream.clone();
    let table = table
        .column("upstream 20", move |row| {
            connections(of(row).map(|one| one.one_client).as_ref())
        })
        .column("each new", move |row| {
            connections(of(row).map(|one| one.new_clients).as_ref())
        });
    if !has_all {
        return table;
    }
    table
        .column("3x10", move |row| {
            connections(of(row).map(|one| one.at_once).as_ref())
        })
        .column("idle", move |row| of(row).map(|one| idle(one.idle)))
        .column("race", move |row| outcome(&[of(row)?.race]))
}

/// Adds what a hop does with its clients' connections.
fn accepted(table: Columns<'_>) -> Columns<'_> {
    let of = |row: &HopRow<'_>| row.one.accepted.clone();
    table
        .column("idle", move |row| of(row).map(|one| accepted_idle(&one)))
        .column("requests", move |row| of(row).map(|one| requests(&one)))
        .column("TERM", move |row| drain(&of(row)?, "TERM"))
}

fn accepted_idle(facts: &AcceptedFacts) -> Cell {
    match facts.idle {
        AcceptedIdle::NotKept => "not kept".into(),
        AcceptedIdle::Closed { after_s } => seconds(after_s).into(),
        AcceptedIdle::Kept { for_s } => Value::AtLeast(seconds(for_s)).into(),
    }
}

fn requests(facts: &AcceptedFacts) -> Cell {
    match facts.requests {
        RequestLimit::Ended { after } => after.into(),
        RequestLimit::NotReached { sent } => text!("over {}", sent).into(),
    }
}

fn drain(facts: &AcceptedFacts, signal: &str) -> Option<Text> {
    let drain = facts.drains.iter().find(|one| one.signal == signal)?;
    Some(text!("{} of {}", drain.lost, drain.sent))
}

/// One proxy or server: whether it reuses connections, what to write, and the effect.
pub fn fix_hop(catalogue: &Catalogue, hop: &Hop, version: Option<&str>) -> Page<'static> {
    let mut page = page_without_run("fix", format!("{}: {}", hop.id, hop.name));
    let rows = rows(catalogue, hop, version);
    let of = |role: Role| rows.iter().filter(move |row| row.variant.role == role);
    page.verdict = of(Role::Default).map(verdict).collect();
    let since = hop.since.as_deref();
    page.verdict
        .extend(since.map(|since| text!("Since {}.", Text::prose(since))));
    if let Some(row) = of(Role::Remedy)
        .next_back()
        .or_else(|| of(Role::Default).next_back())
    {
        let versions: Vec<&str> = rows
            .iter()
            .filter(|one| one.variant.id == row.variant.id)
            .map(|one| one.one.version.as_str())
            .collect();
        let words = "{} ({}), as it was run:";
        page.section(
            Section::new("advice", "What to write")
                .summary(text!(
                    words,
                    Text::prose(&row.variant.title),
                    versions.join(", ")
                ))
                .summary(Block::Code(copied(&row.one.snippet))),
        );
    }
    let named_row = || {
        let table = Rows::of(&rows).column("variant", |row| &row.variant.id);
        table.column("version", |row| &row.one.version)
    };
    if hop.kind == HopKind::Proxy {
        let words = "`upstream 20`: connections for 20 requests in turn of one client, `each new`: of 20 clients, `3x10`: for three rounds of ten at once. `race`: what a client gets for a GET / POST that arrives as the server closes.";
        page.section(
            Section::new("upstream", "Towards the server behind it")
                .summary(upstream(named_row(), true).table().note(Text::prose(words))),
        );
    }
    let own: Vec<HopRow<'_>> = rows
        .iter()
        .copied()
        .filter(|row| row.one.accepted.is_some())
        .collect();
    page.section(towards_clients(hop, &own));
    page.section(settings(hop));
    page.section(instruments(&rows));
    let titles = hop.variants.iter();
    let titles = titles.map(|one| text!("{}: {}", &one.id, Text::prose(&one.title)));
    page.section(Section::new("variants", "Variants").summary(Block::List(titles.collect())));
    let traps = hop.traps.iter().map(|trap| Text::prose(trap));
    page.section(Section::new("traps", "Traps").summary(Block::List(traps.collect())));
    page
}

fn verdict(row: &HopRow<'_>) -> Text {
    let (name, version) = (&row.hop.name, &row.one.version);
    if let Some(upstream) = &row.one.upstream {
        let count = &upstream.one_client;
        let does = match upstream.is_reused() {
            true => "reuses connections",
            false => "does not reuse connections",
        };
        let title = Text::prose(&row.variant.title);
        let words = "{} {} {} to the server behind it by default ({}): {} for {} requests in turn.";
        let opened = counted(count.connections, "connection");
        return text!(words, name, version, does, title, opened, count.requests);
    }
    match &row.one.accepted {
        Some(facts) if facts.idle == AcceptedIdle::NotKept => {
            text!(
                "{} {} ends each connection with its response by default.",
                name,
                version
            )
        }
        Some(facts) => {
            let idle = accepted_idle(facts).text().unwrap_or_default();
            text!(
                "{} {} keeps idle connections by default: {}.",
                name,
                version,
                idle
            )
        }
        None => text!("{} {}: not measured.", name, version),
    }
}

fn towards_clients(hop: &Hop, rows: &[HopRow<'_>]) -> Option<Section> {
    let mut table = Rows::of(rows)
        .column("variant", |row| &row.variant.id)
        .column("version", |row| &row.one.version)
        .column("idle", |row| row.one.accepted.as_ref().map(accepted_idle))
        .column("requests", |row| row.one.accepted.as_ref().map(requests));
    for signal in &hop.signals {
        let head = format!("lost at {signal}");
        table = table.column(head, |row| drain(row.one.accepted.as_ref()?, signal));
    }
    (!rows.is_empty()).then(|| {
        Section::new("clients", "Towards its clients").summary(table.table().note(Text::prose(
            "`idle`, `requests`: what ends a connection. `lost`: of the requests in flight and on kept connections when the signal ends it.",
        )))
    })
}

/// The settings of both sides, with what each is for.
fn settings(hop: &Hop) -> Section {
    let item = |purpose: &'static str, setting: &str| {
        text!("to {}: {}", Text::prose(purpose), Text::prose(setting))
    };
    let client = named(&hop.name).filter(|_| hop.kind == HopKind::Proxy);
    let upstream = client.into_iter().flat_map(|one| one.settings());
    let upstream = upstream
        .map(|(remedy, setting)| item(remedy.purpose(), setting))
        .collect();
    let name = hop.server_name.as_deref().unwrap_or(&hop.name);
    let server = Server::of_name(name).into_iter().flat_map(Server::settings);
    let server = server
        .map(|(limit, setting)| item(limit.purpose(), setting))
        .collect();
    let words = |has: bool, words: &'static str| has.then(|| Text::plain(words));
    Section::new("settings", "Settings")
        .summary(words(
            client.is_some(),
            "Of connections to the server behind it:",
        ))
        .summary(Block::List(upstream))
        .summary(words(
            Server::of_name(name).is_some(),
            "Of its clients' connections:",
        ))
        .summary(Block::List(server))
}

/// What `watch` and `check` find.
fn instruments(rows: &[HopRow<'_>]) -> Section {
    let list = |rules: &[String]| match rules {
        [] => "nothing".to_owned(),
        rules => rules.join(", "),
    };
    let table = Rows::of(rows)
        .column("variant", |row| &row.variant.id)
        .column("version", |row| &row.one.version)
        .column("`watch`", |row| {
            row.one.upstream.as_ref().map(|one| list(&one.watch))
        })
        .column("`check`", |row| {
            row.one.accepted.as_ref().map(|one| list(&one.check))
        })
        .table();
    Section::new("instruments", "What `watch` and `check` find").summary(table)
}

/// What the overview says of them.
pub(super) fn summary(catalogue: &Catalogue) -> Section {
    let kinds = [(HopKind::Proxy, "proxies"), (HopKind::Server, "servers")];
    let named = kinds.map(|(kind, plural)| {
        let hops = catalogue.hops.hops.iter().filter(|hop| hop.kind == kind);
        let ids: Vec<&str> = hops.map(|hop| hop.id.as_str()).collect();
        text!("{}: {}", plural, ids.join(", "))
    });
    let libraries = catalogue.libraries.iter().map(|one| one.names[0].as_str());
    let libraries: Vec<&str> = libraries.collect();
    let above = text!("libraries and drivers: {}", libraries.join(", "));
    let items = named.into_iter().chain([above]);
    Section::new("hops", "Proxies, servers, libraries").summary(Block::List(items.collect()))
}
