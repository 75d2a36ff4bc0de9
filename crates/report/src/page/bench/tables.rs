//! The tables of a bench, and its numbers as files.

use super::BenchRun;
use crate::page::Table;
use crate::page::download::Download;
use crate::page::parts::{Cell, Columns, heat};
use crate::page::populations::phase_words;
use intact_findings::bench::{BenchFacts, PerConnection, TimeDifference, VariantFacts};
use intact_ledger::{Phase, Reuse};
use intact_units::number::{count, per_second, percent, signed_percent, time};

/// Comparisons that are tabled; all of them are in the JSON.
const COMPARISONS: usize = 60;

/// All tables.
pub(super) fn all(one: &BenchRun<'_>) -> Vec<Table> {
    let variants = &one.facts.variants;
    let mut tables = vec![latencies(variants), connections(variants), phases(variants)];
    tables.extend(comparisons(&one.facts.comparisons));
    tables.extend(per_connection(&one.pictures.per_connection));
    tables.extend(baseline(one.facts));
    tables
}

fn latencies(variants: &[VariantFacts]) -> Table {
    Columns::over(variants)
        .column("variant", "", |one| Cell::text(&one.name))
        .column("TLS", "as negotiated", |one| {
            Cell::text(one.tls.clone().unwrap_or_default())
        })
        .column("requests", "measured, warm-up left out", |one| {
            Cell::count(one.requests.total)
        })
        .column("failed", "", |one| Cell::failures(one.requests.failures()))
        .column("req/s", "complete requests a second", |one| {
            Cell::value(one.rate_per_s, per_second)
        })
        .column("mean", "", |one| Cell::time(one.latency_ms.mean))
        .column("p50", "half of the requests took less", |one| {
            Cell::time(one.latency_ms.p50)
        })
        .column("p90", "", |one| Cell::time(one.latency_ms.p90))
        .column("p99", "", |one| Cell::time(one.latency_ms.p99))
        .column("p99.9", "", |one| Cell::time(one.latency_ms.p999))
        .column("max", "", |one| Cell::time(one.latency_ms.max))
        .column("without setup", "mean latency less the setup", |one| {
            Cell::time(one.latency_without_setup_ms.mean)
        })
        .table(
            "variants",
            "Variants: latency with the setup that was waited for",
        )
}

fn connections(variants: &[VariantFacts]) -> Table {
    Columns::over(variants)
        .column("variant", "", |one| Cell::text(&one.name))
        .column("opened", "", |one| Cell::count(one.connections.opened))
        .column(
            "needed",
            "for as many requests at once as there were",
            |one| Cell::count(one.connections.needed),
        )
        .column("dials failed", "", |one| {
            let failed: u64 = one.connections.failed.values().sum();
            Cell {
                alarm: failed > 0,
                ..Cell::value((failed > 0).then_some(failed as f64), |_| count(failed))
            }
        })
        .column(
            "reused",
            "share of requests on a connection that was there",
            |one| Cell::share(one.reuse),
        )
        .column("req/conn", "mean", |one| {
            Cell::value(one.requests_per_connection, |mean| format!("{mean:.1}"))
        })
        .column("setup", "mean per connection", |one| {
            Cell::time(one.setup_ms)
        })
        .column("opened/s", "", |one| {
            Cell::value(one.churn_per_s, per_second)
        })
        .column(
            "resumed",
            "share of TLS handshakes that resumed a session",
            |one| Cell::share(one.resumed_share),
        )
        .column("client CPU", "of the engine, per request", |one| {
            Cell::time(one.cpu_us_per_request.map(|us| us / 1e3))
        })
        .column("server CPU", "per request, warm-up included", |one| {
            Cell::time(one.server_cpu_us_per_request.map(|us| us / 1e3))
        })
        .column(
            "client delay",
            "share of the latency that answers lay in our client delay",
            |one| Cell::share(one.client_delay_ms.as_ref().map(|queue| queue.share)),
        )
        .column("heads", "bytes of request and response heads", |one| {
            Cell::value(
                one.bytes_per_request.as_ref().map(|bytes| bytes.heads()),
                |bytes| format!("{bytes:.0} B"),
            )
        })
        .column("ended by", "", |one| {
            let told: Vec<String> = one
                .connections
                .ended_by
                .iter()
                .map(|(by, seen)| format!("{by} {}", count(*seen)))
                .collect();
            Cell::text(told.join(", "))
        })
        .table("connections", "Connections and what they cost")
}

fn phases(variants: &[VariantFacts]) -> Table {
    let mut columns = Columns::over(variants).column("variant", "", |one| Cell::text(&one.name));
    for phase in Phase::ALL {
        let (words, meaning) = phase_words(phase.id());
        columns = columns.column(words, meaning, |one| {
            let time = one.phases_ms.get(phase.id()).and_then(Option::as_ref);
            Cell::time(time.map(|time| time.mean))
        });
    }
    columns.table("phases", "Phases: mean over the requests that had them")
}

fn comparisons(comparisons: &[TimeDifference]) -> Option<Table> {
    let shown = &comparisons[..comparisons.len().min(COMPARISONS)];
    if shown.is_empty() {
        return None;
    }
    let mut table = Columns::over(shown)
        .column("of", "", |one| {
            Cell::text(format!("{} against {}", one.b, one.a))
        })
        .column("statistic", "", |one| Cell::text(one.statistic))
        .column("first", "mean over rounds", |one| {
            Cell::time(Some(one.a_ms))
        })
        .column("second", "mean over rounds", |one| {
            Cell::time(Some(one.b_ms))
        })
        .column("saved", "with its 95 % interval", |one| {
            Cell::interval(one.saved_ms, time)
        })
        .column("share", "with its 95 % interval", |one| {
            Cell::interval(one.saved_share, percent)
        })
        .column(
            "p",
            "of no difference; adjusted where there are more than ten comparisons",
            |one| {
                Cell::value(one.p_value, |p| {
                    if p < 0.001 {
                        "< 0.001".to_owned()
                    } else {
                        format!("{p:.3}")
                    }
                })
            },
        )
        .column("verdict", "", |one| Cell::differs(one.significant))
        .table(
            "comparisons",
            "Comparisons, round by round: what the second saves against the first",
        );
    if comparisons.len() > shown.len() {
        table.notes.push(format!(
            "{} of {} comparisons; the JSON has all.",
            shown.len(),
            comparisons.len()
        ));
    }
    Some(table)
}

/// Connections by what they carried, as a band of heat for each variant.
fn per_connection(all: &[PerConnection]) -> Option<Table> {
    let carried = |one: &&PerConnection| one.classes.iter().any(|class| class.1 > 0);
    let rows: Vec<&PerConnection> = all.iter().filter(carried).collect();
    let classes = &rows.first()?.classes;
    let mut columns = Columns::over(&rows).column("variant", "", |one| Cell::text(&one.name));
    for (nth, (words, _)) in classes.iter().enumerate() {
        columns = columns.column(words, "connections that carried so many", |one| {
            let total: u64 = one.classes.iter().map(|class| class.1).sum();
            let seen = one.classes.get(nth).map_or(0, |class| class.1);
            heat(seen, total)
        });
    }
    let mut table = columns.table(
        "per-connection",
        "Connections by the requests that they carried",
    );
    table.notes.push(
        "Darker: a larger share of the variant's connections. Far left is a connection per request.".to_owned(),
    );
    Some(table)
}

fn baseline(facts: &BenchFacts) -> Option<Table> {
    let baseline = facts.baseline.as_ref()?;
    let mut table = Columns::over(&baseline.variants)
        .column("variant", "", |one| Cell::text(&one.name))
        .column("then", "mean latency", |one| Cell::time(one.then_ms))
        .column("now", "mean latency", |one| Cell::time(one.now_ms))
        .column("change", "", |one| Cell::value(one.change, signed_percent))
        .column("reused then", "", |one| Cell::share(one.then_reuse))
        .column("reused now", "", |one| Cell::share(one.now_reuse))
        .table(
            "baseline",
            format!(
                "Against the run of {}",
                crate::page::when(&baseline.started)
            ),
        );
    if !baseline.unmatched.is_empty() {
        table.notes.push(format!(
            "In one run only: {}.",
            baseline.unmatched.join(", ")
        ));
    }
    table.notes.push(
        "Two runs at two times are no experiment, so there is no interval: put both into one bench for one.".to_owned(),
    );
    Some(table)
}

/// An absent number is an empty field.
pub(super) fn field(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Every round of every variant as CSV.
pub(super) fn rounds(facts: &BenchFacts) -> Download {
    let rows = facts.variants.iter().flat_map(|variant| {
        variant.rounds.iter().map(|round| {
            vec![
                variant.name.clone(),
                round.round.to_string(),
                round.requests.to_string(),
                field(round.mean_ms),
                field(round.p50_ms),
                field(round.p99_ms),
                field(round.rate_per_s),
            ]
        })
    });
    let head = [
        "variant",
        "round",
        "requests",
        "mean_ms",
        "p50_ms",
        "p99_ms",
        "rate_per_s",
    ];
    Download::csv("rounds.csv", &head, rows).called("the rounds as CSV")
}

/// The first calls as CSV.
pub(super) fn first_calls(facts: &BenchFacts) -> Download {
    let rows = facts.variants.iter().flat_map(|variant| {
        variant.first_calls.iter().enumerate().map(|(nth, call)| {
            vec![
                variant.name.clone(),
                (nth + 1).to_string(),
                call.ms.to_string(),
                call.reuse.map_or("", Reuse::as_str).to_owned(),
                call.warmup.to_string(),
                call.ok.to_string(),
            ]
        })
    });
    let head = ["variant", "call", "ms", "reuse", "warmup", "ok"];
    Download::csv("first-calls.csv", &head, rows).called("the first calls as CSV")
}
