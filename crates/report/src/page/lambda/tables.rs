//! The tables of a function.

use crate::page::Table;
use crate::page::download::Download;
use crate::page::parts::{Cell, Columns};
use intact_findings::lambda::{
    FreezeEffect, Freezes, FrozenConnection, Kind, LambdaFacts, VariantFacts,
};
use intact_ledger::Run;
use intact_units::number::{count, time};

/// All that have a row.
pub(super) fn all(facts: &LambdaFacts) -> Vec<Table> {
    let tables = [
        Some(kinds(facts)),
        comparisons(facts),
        sent(facts),
        pauses(facts),
        failures(facts),
    ];
    tables.into_iter().flatten().collect()
}

type Row<'a> = (&'a VariantFacts, &'a Kind);

fn rows(facts: &LambdaFacts) -> Vec<Row<'_>> {
    let variants = facts.variants.iter();
    let each = variants.flat_map(|variant| variant.kinds.iter().map(move |kind| (variant, kind)));
    each.collect()
}

fn each(value: Option<f64>) -> Cell {
    Cell::value(value, |value| {
        if value.fract() == 0.0 {
            format!("{value:.0}")
        } else {
            format!("{value:.2}")
        }
    })
}

fn kinds(facts: &LambdaFacts) -> Table {
    let rows = rows(facts);
    Columns::over(&rows)
        .column("variant", "", |(variant, _)| Cell::text(&variant.name))
        .column("kind", "", |(_, kind)| Cell::text(&kind.name))
        .column("invocations", "", |(_, kind)| Cell::count(kind.count))
        .column("not answered", "", |(_, kind)| Cell::failures(kind.failed))
        .column("mean", "the function's own time", |(_, kind)| {
            Cell::time(kind.latency_ms.mean)
        })
        .column("p50", "", |(_, kind)| Cell::time(kind.latency_ms.p50))
        .column("p90", "", |(_, kind)| Cell::time(kind.latency_ms.p90))
        .column("p99", "", |(_, kind)| Cell::time(kind.latency_ms.p99))
        .column("max", "", |(_, kind)| Cell::time(kind.latency_ms.max))
        .column("start", "mean start of the environment", |(_, kind)| {
            Cell::time(kind.init_ms.as_ref().and_then(|init| init.mean))
        })
        .column("connections", "opened for each", |(_, kind)| {
            each(kind.connections_per_invocation)
        })
        .column("requests", "made by each", |(_, kind)| {
            each(kind.requests_per_invocation)
        })
        .table("kinds", "Invocations")
}

fn comparisons(facts: &LambdaFacts) -> Option<Table> {
    if facts.comparisons.is_empty() {
        return None;
    }
    let table = Columns::over(&facts.comparisons)
        .column("of", "", |one| {
            Cell::text(format!("{} against {}", one.b, one.a))
        })
        .column("first", "mean over rounds", |one| {
            Cell::time(Some(one.a_ms))
        })
        .column("second", "mean over rounds", |one| {
            Cell::time(Some(one.b_ms))
        })
        .column("saved", "with its 95 % interval", |one| {
            Cell::interval(one.saved_ms, time)
        })
        .column("no interval", "why", |one| {
            Cell::text(one.no_interval_reason.as_deref().unwrap_or_default())
        })
        .table("comparisons", "What each variant saves, round by round");
    Some(table)
}

fn sent(facts: &LambdaFacts) -> Option<Table> {
    facts.connections.as_ref()?;
    let of = |one: &VariantFacts, cell: fn(&intact_findings::lambda::Sent) -> Cell| {
        one.sent.as_ref().map(cell).unwrap_or_default()
    };
    let table = Columns::over(&facts.variants)
        .column("variant", "", |one| Cell::text(&one.name))
        .column("requests", "", |one| {
            of(one, |sent| {
                let mut cell = Cell::count(sent.requests);
                if !sent.inferred.is_empty() {
                    cell.words.insert(0, '~');
                }
                cell
            })
        })
        .column("connections", "opened", |one| {
            of(one, |sent| Cell::count(sent.connections))
        })
        .column("of an environment", "connections opened", |one| {
            of(one, |sent| each(sent.connections_per_environment))
        })
        .column("of a warm invocation", "connections opened", |one| {
            of(one, |sent| each(sent.connections_per_invocation))
        })
        .column("avoidable", "more than the environments needed", |one| {
            of(one, |sent| Cell::count(sent.avoidable))
        })
        .column("reused", "share of requests", |one| {
            of(one, |sent| Cell::share(sent.reuse))
        })
        .table("sent", "What the function sent");
    Some(table)
}

fn pauses(facts: &LambdaFacts) -> Option<Table> {
    let rows: Vec<(Row<'_>, &Freezes)> = rows(facts)
        .into_iter()
        .filter_map(|row| Some((row, row.1.freezes.as_ref()?)))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let mut table = Columns::over(&rows)
        .column("variant", "", |((variant, _), _)| Cell::text(&variant.name))
        .column("pause", "", |((_, kind), _)| Cell::text(&kind.name))
        .column("open", "connections open when it began", |(_, one)| {
            Cell::count(one.open)
        });
    for case in FrozenConnection::ALL {
        table = table.column(case.words(), "", move |(_, one)| {
            let count = one.connection_states.get(&case).copied();
            Cell::value(count.map(|count| count as f64), |value| {
                format!("{value:.0}")
            })
        });
    }
    let table = table
        .column("recovered", "invocations after a death", |(_, one)| {
            Cell::count(
                one.effect
                    .get(&FreezeEffect::Recovered)
                    .copied()
                    .unwrap_or(0),
            )
        })
        .column("failed", "invocations after a death", |(_, one)| {
            Cell::failures(one.effect.get(&FreezeEffect::Failed).copied().unwrap_or(0))
        })
        .table("pauses", "Connections that a freeze found open");
    Some(table)
}

fn failures(facts: &LambdaFacts) -> Option<Table> {
    let rows: Vec<(Row<'_>, &(String, u64))> = rows(facts)
        .into_iter()
        .flat_map(|row| row.1.failures.iter().map(move |failure| (row, failure)))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let table = Columns::over(&rows)
        .column("variant", "", |((variant, _), _)| Cell::text(&variant.name))
        .column("kind", "", |((_, kind), _)| Cell::text(&kind.name))
        .column("times", "", |(_, (_, times))| Cell::failures(*times))
        .column("what was said", "", |(_, (words, _))| Cell::text(words))
        .table("failures", "What failed");
    Some(table)
}

/// Every invocation as CSV.
pub(super) fn invocations(run: &Run, facts: &LambdaFacts) -> Download {
    let field = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let whole = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let rows = facts.invocations.iter().map(|call| {
        let name = run.variants.get(call.variant);
        vec![
            name.map_or_else(String::new, |one| one.name.clone()),
            call.round.to_string(),
            call.environment.to_string(),
            call.at_ms.to_string(),
            call.duration_ms.to_string(),
            field(call.init_ms),
            field(call.frozen_ms),
            call.outcome.to_owned(),
            whole(call.connections),
            whole(call.requests),
            call.detail.clone().unwrap_or_default(),
        ]
    });
    let head = [
        "variant",
        "round",
        "environment",
        "at_ms",
        "ms",
        "init_ms",
        "frozen_ms",
        "outcome",
        "connections",
        "requests",
        "detail",
    ];
    let words = format!(
        "every invocation as CSV ({} rows)",
        count(facts.counts.total)
    );
    Download::csv("invocations.csv", &head, rows).called(&words)
}
