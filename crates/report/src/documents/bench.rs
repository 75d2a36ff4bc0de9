//! The page of a bench: what a new connection per request costs.

use super::common::{
    GROUPS, by_kind, by_round, caveats, findings, first_of, method, page as start, round_line,
    sentences, significance,
};
use super::{populations, timeline};
use crate::json;
use crate::page::*;
use intact_findings::bench::{
    BenchFacts, Charts, Effect, EffectResult, FirstCall, OpenLoopFacts, PerConnection,
    ServiceFacts, Sweep, SweepPoint, TimeDifference, TimeStatistic, VariantFacts,
};
use intact_findings::stats::Interval;
use intact_ledger::{Reuse, Run};
use intact_units::Quantity::{
    Bytes, Change, Count, Mean, Probability, Rate, RoundShare, Share, Time,
};
use intact_units::plural::counted;

/// What the typical latency is, for tables.
const TYPICAL: &str = "per round the medians of new and of reused requests, weighted by their numbers; the mean over rounds";

/// A bench, as findings understand it.
#[derive(Clone, Copy)]
pub struct BenchRun<'a> {
    /// The header of its ledger.
    pub run: &'a Run,
    /// Its facts.
    pub facts: &'a BenchFacts,
    /// The data of its charts.
    pub charts: &'a Charts,
}

pub(super) fn page(one: BenchRun<'_>) -> Page<'_> {
    let BenchRun { run, facts, charts } = one;
    let mut page = start(run, || "the built-in server".to_owned());
    page.headline = headline(facts);
    page.verdict = sentences(&facts.verdict);
    page.facts = totals(facts);
    page.intro = vec![text!("seed {}", run.seed.unwrap_or(0).to_string())];
    page.section(services(&facts.services));
    page.section(effects(facts));
    page.section(findings(&facts.findings, ""));
    if facts.requests.total > 0 {
        page.section(
            Section::new(
                "variants",
                "Variants: latency with the setup that was waited for",
            )
            .summary(latencies(&facts.variants))
            .summary(connections(&facts.variants)),
        );
        page.section(schedule(&facts.variants));
        page.section(sweep(charts));
        page.section(latency(one));
        page.section(phases(one));
        page.section(first_calls(&facts.variants));
        page.section(comparisons(one));
        page.section(lives(charts));
    }
    page.section(baseline(facts));
    page.section(sockets(facts));
    page.caveats = caveats(&facts.caveats);
    page.method = Some(method(
        run,
        &how(facts),
        vec![("Seed", run.seed.unwrap_or(0).to_string().into())],
    ));
    page.files = vec![
        File::json("bench.json", "everything as JSON", move || {
            json::bench(run, facts)
        }),
        File::csv("rounds.csv", "the rounds as CSV", move || {
            rounds_table(facts)
        }),
        File::csv("first-calls.csv", "the first calls as CSV", move || {
            calls_table(facts)
        }),
    ];
    page
}

/// Both sides of each service.
fn services(services: &[ServiceFacts]) -> Option<Section> {
    if services.is_empty() {
        return None;
    }
    let table = Rows::of(services)
        .column("service", |one| &one.variant)
        .column("inbound/s", |one| one.throughput_per_s.map(Rate))
        .about("complete requests a second at its door, the mean of the rounds")
        .column("gain", |one| Cell::interval(one.throughput_gain, Change))
        .about("against the first service, with its 95 % interval")
        .column("outgoing", |one| one.outgoing.requests.total)
        .about("requests that it sent itself, warm-up included")
        .column("opened", |one| one.outgoing.connections.opened)
        .about("connections that it opened for them")
        .ranked(2, "conn/req", |one| one.connections_per_request.map(Mean))
        .column("reused", |one| one.outgoing.reuse.map(Share))
        .ranked(1, "avoidable", |one| one.outgoing.avoidable)
        .about("connections beyond those that the peak overlap needs")
        .table();
    let title = "Both sides of the service: inbound throughput, outgoing connections";
    let mut section = Section::new("services", title).summary(table);
    for one in services {
        for finding in &one.findings {
            section = section.full(text!("{}: {}", &one.variant, finding.claim.to_string()));
        }
    }
    Some(section)
}

fn headline(facts: &BenchFacts) -> Option<Headline> {
    if facts.requests.ok > 0 && !facts.any_success() {
        let caption = "is the status of every response";
        return Headline::new(facts.errors.names(), Assessment::Bad, caption);
    }
    if facts.headline_is_without_reuse() {
        let caption = "of the requests with keep-alive reused a connection";
        return Headline::new(RoundShare(0.0), Assessment::Bad, caption);
    }
    if let Some(compared) = facts.headline() {
        return of_comparison(compared, facts.headline_is_contradicted());
    }
    let only = facts.variants.first();
    match only.and_then(|one| Some((one, one.typical_ms?))) {
        Some((one, typical)) => {
            let caption = "typical of {} requests; one variant, so there is nothing to compare";
            Headline::new(
                Time(typical),
                Assessment::Neutral,
                text!(caption, one.requests.ok),
            )
        }
        None => {
            let number = format!("0 of {}", Count(facts.requests.total));
            Headline::new(number, Assessment::Bad, "requests had a response")
        }
    }
}

/// The comparison of the first sentence as a number.
fn of_comparison(compared: &TimeDifference, is_contradicted: bool) -> Option<Headline> {
    let [before, after] = [compared.a_ms, compared.b_ms].map(Time);
    if is_contradicted {
        let number = format!("{before} → {after}");
        let caption =
            "typically, but the mean shows the opposite: the slowest requests outweigh it";
        return Headline::new(number, Assessment::Neutral, caption);
    }
    match (compared.significant, compared.saved_share) {
        (Some(true), Some(saved)) => {
            let times = text!("time per typical request, {} instead of {}", after, before);
            saving(saved, times)
        }
        (Some(false), _) => {
            let words = "that could be shown: {} and {} per typical request";
            let caption = text!(words, before, after);
            Headline::new("no difference", Assessment::Neutral, caption)
        }
        _ => {
            let number = format!("{before} → {after}");
            let caption = "per typical request, without an interval: too few rounds";
            Headline::new(number, Assessment::Neutral, caption)
        }
    }
}

/// A share that is saved of something, or lost, as a number.
pub(super) fn saving(saved: Interval, of: Text) -> Option<Headline> {
    let (sign, assessment, what) = match saved.value >= 0.0 {
        true => ("−", Assessment::Good, "less"),
        false => ("+", Assessment::Bad, "more"),
    };
    let mut ends = [saved.low.abs(), saved.high.abs()];
    ends.sort_by(f64::total_cmp);
    let number = format!("{sign}{}", RoundShare(saved.value.abs()));
    let caption = text!(
        "{} {} (95 % interval {} to {})",
        what,
        of,
        Share(ends[0]),
        Share(ends[1])
    );
    Headline::new(number, assessment, caption)
}

fn totals(facts: &BenchFacts) -> Vec<Fact> {
    let dials: u64 = facts.connections.failed.values().sum();
    let (requests, opened) = (facts.requests.total, facts.connections.opened);
    let counts = [
        Fact::counted(facts.variants.len() as u64, "variant"),
        Fact::counted(u64::from(facts.rounds), "interleaved round"),
        Fact::counted_as(requests, "request", "measured"),
        Fact::counted_as(opened, "connection", "opened"),
    ];
    let failures = [
        Fact::failures(facts.requests.failures(), "request"),
        Fact::failures(dials, "dial"),
    ];
    counts
        .into_iter()
        .chain(failures.into_iter().flatten())
        .collect()
}

fn latencies(variants: &[VariantFacts]) -> Table {
    Rows::of(variants)
        .column("variant", |one| &one.name)
        .ranked(6, "TLS", |one| one.tls.as_ref())
        .about("as negotiated")
        .ranked(3, "requests", |one| one.requests.total)
        .about("measured, without warm-up")
        .if_any("failed", |one| Cell::failures(one.requests.failures()))
        .ranked(4, "opened", |one| one.connections.opened)
        .about("connections")
        .ranked(5, "reused", |one| one.reuse.map(Share))
        .about("share of requests on a connection that an earlier request had used")
        .ranked(2, "req/s", |one| one.rate_per_s.map(Rate))
        .about("complete requests a second")
        .column("typical", |one| one.typical_ms.map(Time))
        .about(TYPICAL)
        .ranked(2, "mean", |one| one.latency_ms.mean.map(Time))
        .ranked(1, "p50", |one| one.latency_ms.p50.map(Time))
        .ranked(9, "p90", |one| one.latency_ms.p90.map(Time))
        .ranked(1, "p99", |one| one.latency_ms.p99.map(Time))
        .ranked(8, "p99.9", |one| one.latency_ms.p999.map(Time))
        .ranked(7, "max", |one| one.latency_ms.max.map(Time))
        .table()
}

/// What an open loop requested, and what waited or was late.
fn schedule(variants: &[VariantFacts]) -> Section {
    let open = variants
        .iter()
        .filter_map(|one| Some((one, one.open_loop.as_ref()?)));
    let rows: Vec<(&VariantFacts, &OpenLoopFacts)> = open.collect();
    let manner = rows.first().map(|(_, open)| {
        let busy = match open.when_busy {
            "open" => "opened another connection, and waited once there were -c of them",
            _ => "waited",
        };
        let words = "Requests were due by a schedule ({} arrivals), and latency counts from then. A request that was due while every connection was busy {}. What was \
                     not over within the time limit of a request failed, sent or not; percentiles count it as longer than all others.";
        note(text!(words, open.arrivals, busy))
    });
    let table = Rows::of(&rows)
        .column("variant", |row| &row.0.name)
        .column("due/s", |row| row.1.requested_per_s.map(Rate))
        .about("requests that fell due a second")
        .column("req/s", |row| row.0.rate_per_s.map(Rate))
        .about("complete requests a second")
        .ranked(3, "achieved", |row| row.1.achieved.map(Share))
        .about("complete requests a second as a share of those that fell due")
        .if_any("never sent", |row| Cell::failures(row.1.unsent))
        .ranked(1, "waited", |row| row.1.queued_share().map(Share))
        .about("share of the requests that were due while every connection was busy")
        .ranked(5, "wait p99", |row| row.1.queued_ms.p99.map(Time))
        .about("for a connection, of those that waited")
        .ranked(2, "late p99", |row| row.1.scheduling_error_ms.p99.map(Time))
        .about("the client's own scheduling error: from when a request was due and a connection was free to its start")
        .ranked(4, "late", |row| row.1.scheduling_error_share.map(Share))
        .about("sum of the scheduling errors as a share of the latency")
        .ranked(2, "arrived p99", |row| row.0.latency_ms.p99.map(Time))
        .about("from due to the kernel's receive timestamp: the latency")
        .ranked(2, "read p99", |row| row.1.until_read_ms.p99.map(Time))
        .about("from due to the client's reading the response")
        .table();
    Section::new(
        "schedule",
        "Schedule: requests that were due, and when they started",
    )
    .summary(table)
    .summary(manner)
}

fn connections(variants: &[VariantFacts]) -> Table {
    let delay = |one: &VariantFacts| Some(Share(one.client_delay_ms.as_ref()?.share));
    let cpu = |us: Option<f64>| us.map(|us| Time(us / 1e3));
    Rows::of(variants)
        .column("variant", |one| &one.name)
        .ranked(2, "without setup", |one| {
            one.latency_without_setup_ms.mean.map(Time)
        })
        .about("mean latency less the setup")
        .ranked(1, "setup/conn", |one| one.setup_ms.map(Time))
        .about("mean")
        .full("needed", |one| one.connections.needed)
        .about("connections, for the most requests at once")
        .if_any("dials failed", |one| {
            Cell::failures(one.connections.failed.values().sum())
        })
        .ranked(3, "req/conn", |one| one.requests_per_connection.map(Mean))
        .about("mean")
        .ranked(4, "opened/s", |one| one.churn_per_s.map(Rate))
        .ranked(8, "resumed", |one| one.resumed_share.map(Share))
        .about("share of TLS handshakes that resumed a session")
        .if_any("0-RTT", |one| one.early_data_share.map(Share))
        .about("share of TLS handshakes with a request in early data that the server accepted")
        .ranked(5, "client CPU", |one| cpu(one.cpu_us_per_request))
        .about("of the engine, per request")
        .ranked(6, "server CPU", |one| cpu(one.server_cpu_us_per_request))
        .about("per request, warm-up included")
        .ranked(12, "warm-up", |one| one.warmup.mean_ms.map(Time))
        .about("mean latency without setup of the first request on each connection, which is in no other figure")
        .ranked(9, "client delay", delay)
        .about("share of the latency after the last byte had arrived and before the client read it")
        .ranked(10, "data/req", |one| {
            Some(Bytes(one.bytes_per_request?.total()))
        })
        .about("bytes sent and received")
        .ranked(11, "headers/req", |one| {
            Some(Bytes(one.bytes_per_request?.heads()))
        })
        .about("bytes of the header sections of request and response")
        .ranked(7, "ended by", |one| by_kind(&one.connections.ended_by))
        .table()
        .caption("Connections and what they cost")
}

/// Distributions of new and reused, and the means of the variants.
fn latency(one: BenchRun<'_>) -> Section {
    let BenchRun { facts, charts, .. } = one;
    let panels = &charts.latency;
    let shown = panels.iter().take(GROUPS);
    let histogram = Histogram(
        shown
            .map(|panel| populations::panel(&panel.name, &panel.populations))
            .collect(),
    );
    let modes = facts
        .variants
        .iter()
        .filter(|one| !one.modes.is_empty())
        .map(|one| {
            let modes = one.modes.iter().map(|mode| {
                format!(
                    "{} {} at {}",
                    Share(mode.share),
                    mode.name,
                    Time(mode.mean_ms)
                )
            });
            text!(
                "{}: {}.",
                &one.name,
                modes.collect::<Vec<String>>().join(", ")
            )
            .into()
        });
    let bars = facts
        .variants
        .iter()
        .zip(&charts.levels)
        .filter_map(|(one, level)| {
            let typical = level.typical_ms;
            let value = one.typical_ms?;
            let words = match typical {
                Some(typical) => format!(
                    "{} ({} to {})",
                    Time(value),
                    Time(typical.low),
                    Time(typical.high)
                ),
                None => Time(value).to_string(),
            };
            Some(Bar {
                interval: typical.map(|typical| (typical.low, typical.high)),
                ..Bar::whole(&one.name, tone(one.keepalive), value, words)
            })
        });
    let means = Bars(bars.take(2 * GROUPS).collect());
    let words = "Latency of complete requests, setup included; further left is faster. Each panel has its own height.";
    Section::new("latency", "Latency: new and reused connections")
        .summary(
            Chart::new("latency", "Distribution of latency", histogram, words)
                .notes(first_of(GROUPS, panels.len(), "settings")),
        )
        .full(
            Chart::new(
                "means",
                "Typical latency of each variant",
                means,
                "Each value has its own 95 % interval over rounds. To see whether two variants differ, read the comparison round by round: it is sharper than two \
                 intervals side by side.",
            )
            .notes(first_of(2 * GROUPS, facts.variants.len(), "variants")),
        )
        .summary(modes.collect::<Vec<Block>>())
}

fn phases(one: BenchRun<'_>) -> Section {
    let panels = &one.charts.latency;
    let bars = panels.iter().take(GROUPS);
    let bars = Bars(
        bars.flat_map(|panel| populations::bars(&panel.name, &panel.populations))
            .collect(),
    );
    let table = populations::phases(
        "variant",
        &one.facts.variants,
        |one| one.name.as_str(),
        |one, phase| populations::mean(&one.phases_ms, phase),
    );
    let words = "Mean time that each phase adds to a request. A request is new if it waited for any part of its connection's setup.";
    Section::new("phases", "Phases: mean over the requests that had them")
        .summary(table)
        .full(
            Chart::new("waterfall", "Where the time goes", bars, words).notes(first_of(
                GROUPS,
                panels.len(),
                "settings",
            )),
        )
}

fn first_calls(variants: &[VariantFacts]) -> Section {
    let called: Vec<&VariantFacts> = variants
        .iter()
        .filter(|one| !one.first_calls.is_empty())
        .collect();
    let point = |(nth, call): (usize, &FirstCall)| Point {
        x: (nth + 1) as f64,
        y: call.ms,
        tone: if call.ok {
            populations::tone(call.reuse)
        } else {
            Tone::Alarm
        },
        hollow: call.warmup,
    };
    let series = called.iter().take(GROUPS).map(|one| Series {
        name: if called.len() == 1 {
            String::new()
        } else {
            one.name.clone()
        },
        points: one.first_calls.iter().enumerate().map(point).collect(),
        levels: one
            .tiers
            .iter()
            .flat_map(|tiers| &tiers.levels)
            .map(|tier| (tier.mean_ms, Time(tier.mean_ms).to_string()))
            .collect(),
    });
    let scatter = Scatter(series.collect());
    let tiers = called.iter().filter_map(|one| {
        let tiers = one.tiers.as_ref()?;
        Some(text!("{}: {}.", &one.name, &tiers.sentence).into())
    });
    let words = "◆ waited for a new connection, ● ran on a reused one, × failed. Hollow marks are warm-up, which is not in the latencies.";
    let chart = Chart::new(
        "first-calls",
        "The first calls in their order",
        scatter,
        words,
    )
    .notes(first_of(GROUPS, called.len(), "variants"));
    Section::new("first-calls", "First calls, in order")
        .summary(if called.len() > 1 {
            chart.wide()
        } else {
            chart
        })
        .summary(tiers.collect::<Vec<Block>>())
}

/// Variants compared round by round.
/// What each setting saves. Settings without a difference that was shown share a line.
fn effects(facts: &BenchFacts) -> Section {
    let of = |result: EffectResult| facts.effects.iter().filter(move |one| one.result == result);
    let effects = facts.effects.iter();
    let shown = effects.filter(|one| one.result <= EffectResult::NoInterval);
    let shown: Vec<_> = shown.collect();
    let table = Rows::of(&shown)
        .column("setting", |one| &one.setting)
        .column("at", |one| &one.at)
        .ranked(1, "without", |one| Time(one.reference_ms))
        .column("saves", |one| Time(one.saved_ms))
        .column("share", |one| match one.saved_share {
            Some(share) => Cell::interval(Some(share), RoundShare),
            None => Cell::from("no interval"),
        })
        .table();
    let line = |result: EffectResult, words: &str| {
        let mut names: Vec<&str> = of(result).map(|one| &*one.setting).collect();
        names.dedup();
        let each = names.iter().map(|name| {
            let is_named = |one: &&Effect| one.setting == *name;
            let count = of(result).filter(is_named).count();
            match facts.effects.iter().filter(is_named).count() {
                all if all == count => format!("{name} (all {all} comparisons)"),
                all => format!("{name} ({count} of {all} comparisons)"),
            }
        });
        let each: Vec<String> = each.collect();
        (!each.is_empty()).then(|| note(format!("{words}: {}.", each.join(", "))))
    };
    Section::new("effects", "What each setting saves per request")
        .summary(table)
        .summary(line(
            EffectResult::NotShown,
            "No difference that the rounds could show",
        ))
        .summary(line(
            EffectResult::NothingReused,
            "Unknown, because no request reused a connection",
        ))
}

fn comparisons(one: BenchRun<'_>) -> Section {
    Section::new("comparisons", "Comparisons, round by round")
        .full(comparison_table(&one.facts.comparisons))
        .full(over_rounds(one))
}

/// What the second of two variants saves.
pub(super) fn comparison_table(all: &[TimeDifference]) -> Table {
    Rows::of(all)
        .column("of", |one| format!("{} against {}", one.b, one.a))
        .column("statistic", |one| one.statistic.words())
        .column("first", |one| Time(one.a_ms))
        .about("mean over rounds")
        .column("second", |one| Time(one.b_ms))
        .about("mean over rounds")
        .column("saved", |one| Cell::interval(one.saved_ms, Time))
        .about("by the second, with the 95 % interval")
        .column("share", |one| Cell::interval(one.saved_share, Share))
        .about("saved, with the 95 % interval")
        .column("p", |one| one.p_value.map(Probability))
        .about("of no difference; adjusted if there are more than ten comparisons")
        .column("result", |one| significance(one.significant))
        .column("no interval because", |one| one.no_interval_reason.as_ref())
        .table()
}

fn over_rounds(one: BenchRun<'_>) -> Chart {
    let variants = &one.facts.variants;
    let (mut lines, mut marks, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for (nth, (variant, level)) in variants.iter().zip(&one.charts.levels).enumerate() {
        let rounds = variant
            .rounds
            .iter()
            .filter_map(|round| Some((round.round, round.typical_ms?)));
        let rounds: Vec<(u32, f64)> = rounds.collect();
        if let Some(change) = level.change {
            let round = rounds.get(change.at).map_or(0, |round| round.0);
            let [before, after] = [change.before, change.after].map(Time);
            let words = "{}: the level changed at round {}, from {} to {} (p = {}).";
            changes.push(text!(
                words,
                &variant.name,
                round,
                before,
                after,
                Probability(change.p_value)
            ));
            if nth < GROUPS {
                marks.push(Mark {
                    x: f64::from(round) - 0.5,
                    words: format!("{before} → {after}"),
                });
            }
        }
        if nth < GROUPS {
            lines.push(round_line(nth, &variant.name, rounds.into_iter()));
        }
    }
    if changes.is_empty() {
        changes.push("No variant changed its level within the run.".into());
    }
    let words = "Typical latency in each round. What affected all variants in one round cancels out in the comparison.";
    Chart::new(
        "rounds",
        "Latency over the rounds",
        by_round(lines, marks),
        words,
    )
    .notes(changes)
    .notes(first_of(GROUPS, variants.len(), "variants"))
}

/// What is drawn of each point over concurrency: id and title of the chart, its value and interval in the unit of its axis, and words.
type OverConcurrency = (
    &'static str,
    &'static str,
    fn(&SweepPoint) -> Option<(f64, Option<Interval>)>,
    Axis,
    &'static str,
);

const OVER_CONCURRENCY: [OverConcurrency; 6] = [
    (
        "sweep",
        "Total time by concurrency",
        |point| {
            let scaled = |one: Interval| Interval {
                value: one.value * 1e3,
                low: one.low * 1e3,
                high: one.high * 1e3,
            };
            Some((point.seconds * 1e3, point.interval.map(scaled)))
        },
        Axis::Time,
        "Time for 1,000 requests by the number of connections at once, with the 95 % interval over rounds.",
    ),
    (
        "sweep-rate",
        "Throughput by concurrency",
        |point| Some((point.rate_per_s, None)),
        Axis::Count,
        "Complete requests a second by the number of connections at once.",
    ),
    (
        "sweep-latency",
        "Typical latency by concurrency",
        |point| Some((point.typical_ms?, point.typical_interval)),
        Axis::Time,
        "Typical latency by the number of connections at once, with the 95 % interval over rounds.",
    ),
    (
        "sweep-p99",
        "p99 by concurrency",
        |point| Some((point.p99_ms?, None)),
        Axis::Time,
        "99th percentile of the latency of all rounds by the number of connections at once.",
    ),
    (
        "sweep-client-cpu",
        "Client CPU per request by concurrency",
        |point| Some((point.client_cpu_us? / 1e3, None)),
        Axis::Time,
        "CPU time of the client's threads for each request.",
    ),
    (
        "sweep-server-cpu",
        "Server CPU per request by concurrency",
        |point| Some((point.server_cpu_us? / 1e3, None)),
        Axis::Time,
        "CPU time of the server's process for each request, warm-up included.",
    ),
];

/// Total time, throughput, latency and CPU over concurrency, if that was varied.
fn sweep(charts: &Charts) -> Section {
    let sweeps = &charts.sweeps;
    let rows = sweeps.iter().flat_map(|sweep| {
        let points = sweep.points.iter();
        points.map(move |point| (setting(sweep), point))
    });
    let rows: Vec<(String, &SweepPoint)> = rows.collect();
    let cpu = |us: Option<f64>| us.map(|us| Time(us / 1e3));
    let table = Rows::of(&rows)
        .column("connections", |row| &row.0)
        .column("-c", |row| row.1.concurrency)
        .about("connections at once")
        .column("1,000 requests", |row| Time(row.1.seconds * 1e3))
        .about("total time; the mean over rounds")
        .column("req/s", |row| Rate(row.1.rate_per_s))
        .column("typical", |row| row.1.typical_ms.map(Time))
        .ranked(2, "p99", |row| row.1.p99_ms.map(Time))
        .ranked(1, "client CPU", move |row| cpu(row.1.client_cpu_us))
        .about("of the engine, per request")
        .ranked(1, "server CPU", move |row| cpu(row.1.server_cpu_us))
        .about("per request, warm-up included")
        .table();
    let mut section = Section::new("sweep", "Over concurrency").summary(table);
    for (id, title, value, axis, words) in OVER_CONCURRENCY {
        let chart = over_concurrency(sweeps, (id, title, value, axis, words));
        // a terminal shows the two that the others follow from
        section = match id {
            "sweep" | "sweep-latency" => section.summary(chart),
            _ => section.full(chart),
        };
    }
    section
}

fn setting(sweep: &Sweep) -> String {
    let connection = match sweep.keepalive {
        true => "reused",
        false => "not reused",
    };
    let axes = sweep.name.split(' ');
    let axes = axes.filter(|axis| !axis.is_empty() && !axis.starts_with("keepalive="));
    let words: Vec<&str> = std::iter::once(connection).chain(axes).collect();
    words.join(", ")
}

fn over_concurrency(sweeps: &[Sweep], chart: OverConcurrency) -> Chart {
    let (id, title, value, y, words) = chart;
    let point = |point: &SweepPoint| {
        let (value, interval) = value(point)?;
        Some(LinePoint {
            x: point.concurrency as f64,
            y: value,
            interval: interval.map(|one| (one.low, one.high)),
        })
    };
    let lines = sweeps
        .iter()
        .take(GROUPS)
        .enumerate()
        .map(|(nth, sweep)| Line {
            name: setting(sweep),
            tone: match sweeps.len() {
                2 => tone(sweep.keepalive),
                _ => Tone::Series(nth as u8),
            },
            points: sweep.points.iter().filter_map(point).collect(),
            reach: None,
        });
    let lines = Lines {
        lines: lines.collect(),
        marks: Vec::new(),
        scale: ScaleKind::Logarithmic,
        x: Axis::Count,
        y,
    };
    Chart::new(id, title, lines, words).notes(first_of(GROUPS, sweeps.len(), "settings"))
}

fn lives(charts: &Charts) -> Section {
    let carried = |one: &&PerConnection| one.classes.iter().any(|class| class.1 > 0);
    let rows: Vec<&PerConnection> = charts.per_connection.iter().filter(carried).collect();
    let classes = rows.first().map_or(&[][..], |one| &one.classes[..]);
    let classes: Vec<String> = classes.iter().map(|class| class.0.clone()).collect();
    let counts = |one: &&PerConnection| one.classes.iter().map(|class| class.1).collect();
    let table =
        populations::per_connection("variant", &rows, |one| one.name.as_str(), &classes, counts);
    let words = "The first requests of each variant's first round on the connections that carried them; (+n): n more are not drawn.";
    Section::new("connections", "Connections")
        .full(timeline::chart(&charts.timeline, words))
        .full(table)
}

fn baseline(facts: &BenchFacts) -> Option<Section> {
    let baseline = facts.baseline.as_ref()?;
    let mut table = Rows::of(&baseline.variants)
        .column("variant", |one| &one.name)
        .column("then", |one| one.then_ms.map(Time))
        .about("typical latency")
        .column("now", |one| one.now_ms.map(Time))
        .about("typical latency")
        .column("change", |one| one.change.map(Change))
        .column("reused then", |one| one.then_reuse.map(Share))
        .column("reused now", |one| one.now_reuse.map(Share))
        .table();
    if !baseline.unmatched.is_empty() {
        table = table.note(text!("In one run only: {}.", baseline.unmatched.join(", ")));
    }
    let words = "Two runs at two times are not an experiment, so there is no interval. Put both into one bench, or use `compare`.";
    let title = text!("Compared with the run of {}", when(&baseline.started));
    Some(Section::new("baseline", title).summary(table.note(Text::prose(words))))
}

/// What the machine and the server had to do beyond the figures.
fn sockets(facts: &BenchFacts) -> Section {
    let ports = |ports: Option<u64>| Text::from(ports.map(Count));
    let sockets = match facts.sockets.as_slice() {
        [before, after] => {
            let words = "Sockets in TIME_WAIT: {} before, {} after. Free ephemeral ports: {} before, {} after.";
            let (free, left) = (ports(before.free_ports), ports(after.free_ports));
            Some(note(text!(
                words,
                before.time_wait,
                after.time_wait,
                free,
                left
            )))
        }
        _ => None,
    };
    let is_measured = facts.requests.total > 0;
    let warmup: u64 = facts.variants.iter().map(|one| one.warmup.requests).sum();
    let words = "The server also received {} of warm-up and preflight.";
    let warmup =
        (warmup > 0 && is_measured).then(|| note(text!(words, counted(warmup, "request"))));
    // connections that are kept use up no ports
    let opens_each = facts.variants.iter().any(|one| !one.keepalive);
    let limit = facts.ports.filter(|_| opens_each).map(|limit| {
        let words = "Ports run out at {} new connections/s to one address of another machine, if the client closes them first: {} ephemeral ports, each in TIME_WAIT for 60 s. On loopback a port is free again after 1 s: {}/s.";
        note(text!(
            words,
            Rate(limit.run_out_per_s),
            limit.ports,
            Rate(limit.run_out_on_loopback_per_s)
        ))
    });
    Section::new("sockets", "Outside the figures")
        .summary(sockets)
        .summary(limit)
        .summary(warmup)
        .summary(reuse_seen(&facts.variants))
}

/// Up to which number of requests on a connection the server was seen to keep it.
fn reuse_seen(variants: &[VariantFacts]) -> Option<Block> {
    let mut kept = variants
        .iter()
        .filter(|one| one.keepalive && one.no_success.is_none());
    // where the server ended a connection, a finding has its limit
    let seen = kept.try_fold(0, |most, one| Some(one.reuse_seen_up_to?.max(most)))?;
    let words = "The server ended no connection that was kept. Reuse was seen up to request {} on a connection; a limit above that does not show (-n larger).";
    (seen > 0).then(|| note(text!(words, seen)))
}

fn how(facts: &BenchFacts) -> Vec<Text> {
    let rounds = (facts.variants.len() > 1).then(|| {
        text!(
            "Every variant ran in each of {}, in a random, balanced order from the seed. Variants that differ in one setting are compared round by round: \
             what affected both in the same minute cancels out. The time compared is the typical latency: in each round the median of the requests on new connections \
             and that of the requests on reused ones, weighted by their numbers, so that one slow request decides nothing. Intervals are 95 % t intervals over rounds, not over requests, because the requests of one round \
             are not independent of each other.",
            counted(u64::from(facts.rounds), "round")
        )
    });
    let connections = Text::plain(
        "Each round opens new connections. With keep-alive, the first request on each connection that a round opens at its start is warm-up: it is in the chart \
         of the first calls and not in the latencies. A connection that is opened later, because the server closed one, counts: that cost is the server's. \
         Latency includes the setup that a request waited for. A percentile with fewer than ten requests beyond it is left out.",
    );
    let is_closed = facts.variants.iter().any(|one| one.open_loop.is_none());
    let closed = is_closed.then(|| {
        Text::plain(
            "The loop is closed: each connection sends its next request after a response. So a pause of the server delays as many requests as there are connections, and the \
             percentiles leave out those that users would have sent meanwhile (coordinated omission). `--rate` has requests due by a schedule.",
        )
    });
    rounds
        .into_iter()
        .chain([connections])
        .chain(closed)
        .collect()
}

/// Every round of every variant.
fn rounds_table(facts: &BenchFacts) -> Table {
    let variants = facts.variants.iter();
    let rows = variants.flat_map(|one| one.rounds.iter().map(move |round| (&one.name, round)));
    let rows: Vec<_> = rows.collect();
    let table = Rows::of(&rows)
        .column("variant", |row| row.0)
        .column("round", |row| u64::from(row.1.round))
        .column("requests", |row| row.1.requests)
        .column("typical", |row| row.1.typical_ms.map(Time))
        .column("mean", |row| row.1.mean_ms.map(Time))
        .column("p50", |row| row.1.p50_ms.map(Time))
        .column("p99", |row| row.1.p99_ms.map(Time));
    table
        .column("rate per s", |row| row.1.rate_per_s.map(Rate))
        .if_any("due per s", |row| row.1.requested_per_s.map(Rate))
        .table()
}

/// The first calls of every variant.
fn calls_table(facts: &BenchFacts) -> Table {
    let variants = facts.variants.iter();
    let rows = variants.flat_map(|one| {
        let calls = one.first_calls.iter().enumerate();
        calls.map(move |(nth, call)| (&one.name, nth as u64 + 1, call))
    });
    let rows: Vec<_> = rows.collect();
    Rows::of(&rows)
        .column("variant", |row| row.0)
        .column("call", |row| row.1)
        .column("latency", |row| Time(row.2.ms))
        .column("reuse", |row| row.2.reuse.map(Reuse::as_str))
        .column("warmup", |row| row.2.warmup.to_string())
        .column("ok", |row| row.2.ok.to_string())
        .table()
}

/// The tone of a variant: that of the connections that its requests mostly find.
fn tone(keepalive: bool) -> Tone {
    if keepalive { Tone::Reused } else { Tone::Fresh }
}

/// The last words of the demonstration: what a connection costs, and the next command.
pub fn demonstration(facts: &BenchFacts) -> Section {
    let saved = facts.comparisons.iter().find_map(|compared| {
        let share = compared.saved_share.as_ref()?.value;
        let about = compared.axis.as_deref() == Some("keepalive")
            && compared.statistic == TimeStatistic::Typical;
        (about && share > 0.0).then_some((compared, share))
    });
    let cost = saved.map(|(compared, share)| {
        let words =
            "A request on a new connection takes {}, on a reused one {}: {} of the time is waste.";
        let words = text!(
            words,
            Time(compared.a_ms),
            Time(compared.b_ms),
            RoundShare(share)
        );
        Block::Paragraph(Emphasis::Strong, words)
    });
    Section::new("next", "Next")
        .summary(cost)
        .summary(Text::prose(
            "Your server: `intact bench https://your.server/`",
        ))
}
