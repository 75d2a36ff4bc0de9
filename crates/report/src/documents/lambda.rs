//! The page of a function: what an invocation costs, what the function does on the network, and
//! which connections a freeze ends.

use super::bench::comparison_table;
use super::common::{
    GROUPS, by_round, each_part, findings, first_of, in_chart, method, page as start, program,
    round_line,
};
use super::populations;
use super::populations::{heights, typical};
use super::traffic;
use crate::page::*;
use intact_experiments::lambda::{
    FreezeEffect, Freezes, FrozenConnection, InvocationFacts, Kind, LambdaFacts, Sent, VariantFacts,
};
use intact_ledger::Run;
use intact_reading::Reading;
use intact_statistics::Interval;
use intact_units::Quantity::{Mean, Share, Time};
use intact_units::plural::{self, counted};

/// Invocations of a variant that are drawn one by one.
const FIRST: usize = 500;

/// A kind of invocation of a variant.
type Row<'a> = (&'a VariantFacts, &'a Kind);

pub(super) fn page<'a>(run: &'a Run, facts: &'a LambdaFacts) -> Page<'a> {
    let rows = each_part(&facts.variants, |variant| &variant.kinds);
    let mut page = start(run, facts, || program(run));
    page.headline = headline(run, facts);
    page.facts(totals(facts));
    page.section(findings(&facts.findings, ""));
    let title = "Invocations: the function's own time";
    page.section(
        Section::new("kinds", title)
            .summary(kinds(&rows))
            .full(times(facts))
            .full(calls(facts)),
    );
    let title = "Connections that a freeze found open";
    page.section(Section::new("freezes", title).summary(freezes(&rows)));
    page.section(failures(facts, &rows));
    page.section(traffic::next(&facts.next));
    page.section(
        Section::new("comparisons", "What each variant saves, round by round")
            .full(comparison_table(&facts.comparisons))
            .full(means(facts))
            .full(over_rounds(facts)),
    );
    page.section(Section::new("sent", "What the function sent").full(sent(facts)));
    page.method = Some(method(run, &how(facts), Vec::new()));
    let words = "every invocation as CSV";
    page.csv("invocations.csv", words, move || invocations(run, facts));
    page
}

/// What the best variant is shown to save, else what the worst is shown to cost. With one variant,
/// the invocations that had no response, else the setup of connections that were not needed.
fn headline(run: &Run, facts: &LambdaFacts) -> Option<Headline> {
    // a shown gain ranks above a shown loss, and both above what was not shown
    let rank = |saved: &Interval| match (saved.low > 0.0, saved.high < 0.0) {
        (true, _) => (2, saved.value),
        (_, true) => (1, -saved.value),
        _ => (0, saved.value),
    };
    let saved = facts
        .comparisons
        .iter()
        .filter_map(|one| Some((one, one.saved_share?)));
    let saved = saved.max_by(|(_, a), (_, b)| {
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let unanswered = facts.counts.total - facts.counts.ok;
    match saved {
        Some((one, saved)) if saved.excludes_zero() => {
            let caption = "of the time of an invocation with {} (95 % interval {} to {})";
            let caption = text!(caption, &one.b, Share(saved.low), Share(saved.high));
            let assessment = Assessment::good_if(saved.value > 0.0);
            Headline::new(HeadlineShare::saved(saved.value), assessment, caption)
        }
        Some((one, saved)) => {
            let caption = "of the time of an invocation with {}, but no difference was shown";
            let number = HeadlineShare::saved(saved.value);
            Headline::new(number, Assessment::Neutral, text!(caption, &one.b))
        }
        None if unanswered > 0 => {
            let share = unanswered as f64 / facts.counts.total as f64;
            let caption = text!(
                "of {} had no response",
                counted(facts.counts.total, "invocation")
            );
            Headline::new(HeadlineShare::lost(share), Assessment::Bad, caption)
        }
        None => match facts.variants.as_slice() {
            [only] => only
                .wasteful()
                .and_then(|sent| traffic::headline(sent, sent.is_near(run))),
            _ => None,
        },
    }
}

/// Whether the connections of the function were observed.
fn is_watched(facts: &LambdaFacts) -> bool {
    facts.variants.iter().any(|one| one.sent.is_some())
}

fn totals(facts: &LambdaFacts) -> Vec<Fact> {
    let environments = facts.variants.iter().map(|one| one.environments).sum();
    let mut totals = vec![
        Fact::counted(facts.counts.total, "invocation"),
        Fact::counted(environments, "environment"),
    ];
    if is_watched(facts) {
        let traffic = &facts.traffic;
        totals.extend([
            Fact::read(&traffic.connections.opened, "connection", "opened"),
            Fact::new("requests sent", Cell::count(&traffic.requests.total)),
            Fact::new("reused", populations::reuse(&traffic.reuse)),
        ]);
    }
    let unanswered = Reading::count(facts.counts.total - facts.counts.ok);
    totals.push(Fact::failures(&unanswered, "invocation"));
    let freezes = || {
        facts
            .invocations
            .iter()
            .filter_map(|one| one.freeze.as_ref())
    };
    let states = freezes().flat_map(|freeze| &freeze.connection_states);
    let died = states.filter(|state| state.is_death()).count() as u64;
    if died > 0 {
        let failed = freezes()
            .filter(|freeze| freeze.effect == FreezeEffect::Failed)
            .count();
        let failed = failed as u64;
        let names = [
            (died, "connection", "died in a freeze"),
            (failed, "invocation", "failed because of it"),
        ];
        totals.extend(names.map(|(count, noun, what)| {
            let name = format!("{} {what}", plural::of(count, noun));
            Fact::new(name, Cell::failed(count))
        }));
    }
    totals
}

fn kinds(rows: &[Row<'_>]) -> Table {
    Rows::of(rows)
        .column("variant", |(variant, _)| variant_name(rows, variant))
        .column("kind", |(_, kind)| &kind.name)
        .column("count", |(_, kind)| kind.count)
        .column("failed", |(_, kind)| Cell::failed(kind.failed))
        .figure(0, "mean", |(_, kind)| &kind.latency_ms.mean)
        .figure(1, "p50", |(_, kind)| &kind.latency_ms.p50)
        .full("p90", |(_, kind)| Cell::reading(&kind.latency_ms.p90, Time))
        .figure(2, "p99", |(_, kind)| &kind.latency_ms.p99)
        .figure(3, "max", |(_, kind)| &kind.latency_ms.max)
        .ranked(4, "start", |(_, kind)| {
            let start = kind.init_ms.as_ref();
            start.map(|start| Cell::reading(&start.mean, Time))
        })
        .about("mean start of the environment")
        .ranked(2, "conns/inv", |(_, kind)| {
            kind.connections_per_invocation.map(Mean)
        })
        .about("connections that the function opened, per invocation")
        .full("req/inv", |(_, kind)| {
            kind.requests_per_invocation.map(Mean)
        })
        .about("requests that the function sent, per invocation")
        .table()
}

/// The variant of a row, where there are several.
fn variant_name<'a>(rows: &[Row<'_>], variant: &'a VariantFacts) -> Option<&'a str> {
    let is_other = |(other, _): &Row<'_>| other.name != variant.name;
    rows.iter().any(is_other).then_some(variant.name.as_str())
}

fn freezes(rows: &[Row<'_>]) -> Table {
    let frozen = rows
        .iter()
        .filter_map(|&(variant, kind)| Some((variant, kind, kind.freezes.as_ref()?)));
    let frozen: Vec<(&VariantFacts, &Kind, &Freezes)> = frozen.collect();
    let mut table = Rows::of(&frozen)
        .column("variant", |(variant, ..)| variant_name(rows, variant))
        .column("after", |(_, kind, _)| &kind.name)
        .column("open", |(.., one)| one.open)
        .about("connections that were open when it began");
    for state in FrozenConnection::ALL {
        let count = move |one: &Freezes| one.connection_states.get(&state).copied().unwrap_or(0);
        table = table.if_any(state.words(), move |(.., one)| count(one));
    }
    let effect = |one: &Freezes, effect| one.effect.get(&effect).copied().unwrap_or(0);
    table
        .ranked(1, "recovered", |(.., one)| {
            effect(one, FreezeEffect::Recovered)
        })
        .about("invocations after a freeze in which a connection had died")
        .ranked(1, "failed", |(.., one)| {
            Cell::failed(effect(one, FreezeEffect::Failed))
        })
        .about("invocations after a freeze in which a connection had died")
        .table()
}

/// Invocations without a response, and those with several.
fn failures(facts: &LambdaFacts, rows: &[Row<'_>]) -> Section {
    let failed = rows.iter().flat_map(|&(variant, kind)| {
        kind.failures
            .iter()
            .map(move |(words, times)| (variant, kind, words, *times))
    });
    let failed: Vec<_> = failed.collect();
    let table = Rows::of(&failed)
        .column("variant", |(variant, ..)| variant_name(rows, variant))
        .column("kind", |(_, kind, ..)| &kind.name)
        .column("times", |row| Cell::failed(row.3))
        .column("error", |row| row.2)
        .table();
    let several = facts
        .invocations
        .iter()
        .filter(|call| call.duplicate_response > 0)
        .count();
    let is_any = several > 0;
    let several = counted(several as u64, "invocation");
    let words = "{} had more than one response, which Lambda refuses.";
    Section::new("failures", "What failed")
        .summary(table)
        .summary(is_any.then(|| alarm(text!(words, several))))
}

/// Cold waits for a setup, warm does not; after a freeze is neither.
fn tone(kind: &str) -> Tone {
    match kind {
        "cold" => Tone::Fresh,
        "warm" => Tone::Reused,
        _ => Tone::Plain,
    }
}

/// The name of a variant in a chart; empty where there is one.
fn name(facts: &LambdaFacts, variant: &VariantFacts) -> String {
    match facts.variants.len() {
        1 => String::new(),
        _ => variant.name.clone(),
    }
}

fn left_out(facts: &LambdaFacts) -> Option<Text> {
    first_of(GROUPS, facts.variants.len(), "variants")
}

fn times(facts: &LambdaFacts) -> Chart {
    let population = |kind: &Kind| Population {
        name: kind.name.clone(),
        words: format!(
            "{}, {}",
            typical(kind.latency_ms.p50.value(), kind.latency_ms.mean.value()),
            counted(kind.count - kind.failed, "response")
        ),
        tone: tone(&kind.name),
        buckets: kind.buckets.clone(),
    };
    let timed = |kind: &&Kind| kind.latency_ms.mean.is_known();
    let panels = facts.variants.iter().take(GROUPS).map(|variant| Panel {
        name: name(facts, variant),
        populations: variant.kinds.iter().filter(timed).map(population).collect(),
        band: None,
    });
    let histogram = Histogram(
        panels
            .filter(|panel| !panel.populations.is_empty())
            .collect(),
    );
    let words = text!(
        "The function's own time of each invocation with a response, without the start of the environment. {}",
        heights(&histogram, "invocations")
    );
    Chart::new("latency", "Time of an invocation", histogram, words)
        .wide()
        .notes(left_out(facts))
}

fn means(facts: &LambdaFacts) -> Option<Chart> {
    let bars = in_chart(&facts.variants).filter_map(|(tone, variant)| {
        let value = variant.warm_ms.mean.value()?;
        let sent = variant.sent.as_ref();
        let each = sent.and_then(|sent| sent.connections_per_invocation.value());
        let each = each.map_or_else(String::new, |each| format!(", connections: {}", Mean(each)));
        let words = format!("{}{each}", Time(value));
        Some(Bar::whole(&variant.name, tone, value, words))
    });
    let bars: Vec<Bar> = bars.collect();
    let words = "Mean time of a warm invocation, and the connections that it opened. To see whether variants differ, read the comparison round by round.";
    let title = "Mean time of an invocation, by variant";
    (bars.len() > 1).then(|| Chart::new("means", title, Bars(bars), words).notes(left_out(facts)))
}

fn over_rounds(facts: &LambdaFacts) -> Chart {
    let lines = in_chart(&facts.variants).map(|(tone, variant)| {
        let rounds = variant.rounds.iter();
        let rounds = rounds.map(|round| (round.round, round.mean_ms));
        round_line(tone, &variant.name, rounds)
    });
    let words = "Mean time in each round, without cold and failed invocations. What affected all variants in one round cancels out in the comparison.";
    Chart::new(
        "rounds",
        "Over the rounds",
        by_round(lines.collect(), Vec::new()),
        words,
    )
    .notes(left_out(facts))
}

fn calls(facts: &LambdaFacts) -> Chart {
    let point = |(nth, call): (usize, &InvocationFacts)| Point {
        x: (nth + 1) as f64,
        y: call.duration_ms,
        tone: match (call.is_ok(), call.init_ms) {
            (false, _) => Tone::Alarm,
            (true, Some(_)) => Tone::Fresh,
            (true, None) => Tone::Reused,
        },
        hollow: call.frozen_ms.is_some(),
    };
    let variants = facts.variants.iter().take(GROUPS).enumerate();
    let series = variants.map(|(index, variant)| {
        let calls = facts.invocations.iter();
        let ours = calls.filter(|call| call.variant == index);
        Series {
            name: name(facts, variant),
            points: ours.take(FIRST).enumerate().map(point).collect(),
            levels: Vec::new(),
        }
    });
    let scatter = Scatter(series.collect());
    let words = "The first 500 invocations of each variant in their order. ◆ cold, ● warm, ○ after a freeze, × no response.";
    Chart::new("invocations", "The first invocations", scatter, words)
        .wide()
        .notes(left_out(facts))
}

/// Empty where connections were not watched.
fn sent(facts: &LambdaFacts) -> Table {
    let sent = facts.variants.iter();
    let sent = sent.filter_map(|one| Some((&one.name, one.sent.as_ref()?)));
    let sent: Vec<(&String, &Sent)> = sent.collect();
    Rows::of(&sent)
        .column("variant", |(name, _)| *name)
        .column("requests", |(_, sent)| {
            Cell::count(&sent.requests).inferred_if(!sent.inferred.is_empty())
        })
        .column("connections", |(_, sent)| Cell::count(&sent.connections))
        .column("per environment", |(_, sent)| {
            sent.connections_per_environment.map(Mean)
        })
        .about("connections")
        .column("per warm invocation", |(_, sent)| {
            Cell::reading(&sent.connections_per_invocation, Mean)
        })
        .about("connections")
        .column("avoidable", |(_, sent)| Cell::count(&sent.avoidable))
        .about("connections beyond what the environments needed")
        .column("reused", |(_, sent)| populations::reuse(&sent.reuse))
        .about("share of requests")
        .table()
}

fn how(facts: &LambdaFacts) -> Vec<Text> {
    let first = "Each environment was a process with a Runtime API of its own. A round of a variant began with a new environment. The time of an invocation is the \
                 function's own: from the moment at which it runs and has its event until its response is complete. The start of the environment is separate.";
    let rounds = "Variants ran in interleaved rounds and are compared round by round, without cold and failed invocations, so that what affected both in the same \
                  minute cancels out. Intervals are 95 % t intervals over rounds.";
    let relay = "A relay recorded the connections, as in `intact watch`. A connection belongs to the invocation during which it was opened.";
    let paragraphs = [
        Some(first),
        (facts.variants.len() > 1).then_some(rounds),
        is_watched(facts).then_some(relay),
    ];
    paragraphs.into_iter().flatten().map(Text::prose).collect()
}

/// Every invocation.
fn invocations(run: &Run, facts: &LambdaFacts) -> Table {
    Rows::of(&facts.invocations)
        .column("variant", |call| {
            Some(&run.variants.get(call.variant)?.name)
        })
        .column("round", |call| u64::from(call.round))
        .column("environment", |call| call.environment)
        .column("at", |call| Time(call.at_ms))
        .column("duration", |call| Time(call.duration_ms))
        .column("init", |call| call.init_ms.map(Time))
        .column("frozen", |call| call.frozen_ms.map(Time))
        .column("outcome", |call| call.outcome)
        .column("connections", |call| call.connections)
        .column("requests", |call| call.requests)
        .column("detail", |call| call.detail.as_ref())
        .table()
}
