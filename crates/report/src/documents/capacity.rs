//! The page of a capacity: the highest rates that met the conditions, each step of the search, and
//! the recovery after an overload.

use super::common::{each_part, findings, line, method, page as start, ports_run_out, seed};
use crate::page::*;
use intact_experiments::capacity::{
    CapacityFacts, FreshRuns, Recovery, StepFigures, VariantCapacity,
};
use intact_ledger::{LoadPurpose, Run};
use intact_units::Quantity::{Mean, Rate, Share, Time};

/// A step with its variant.
type Row<'a> = (&'a VariantCapacity, &'a StepFigures);

/// Rows of the terminal's table of steps.
const BRIEF: usize = 14;

pub(super) fn page<'a>(run: &'a Run, facts: &'a CapacityFacts) -> Page<'a> {
    let mut page = start(run, facts, || "the built-in server".to_owned());
    // a rate is no share that connections cost: the first sentence is the result
    page.facts(totals(facts));
    page.intro = vec![text!("conditions: {}", facts.conditions.join(", "))];
    let searched = facts.variants.iter().any(|one| !one.steps.is_empty());
    if searched {
        page.section(
            Section::new(
                "capacity",
                "Capacity: the highest rate that met the conditions",
            )
            .summary(capacities(&facts.variants)),
        );
        let rows = steps(facts);
        // connections that are kept use up no ports
        let opens_each = facts.variants.iter().any(|one| !one.keepalive);
        let ports = facts.ports.filter(|_| opens_each);
        page.section(
            Section::new("steps", "Steps of the search")
                .full(latency_by_rate(facts))
                .summary(step_table(&rows).brief(BRIEF))
                .summary(ports.map(|ports| note(ports_run_out(&ports)))),
        );
    }
    for one in &facts.variants {
        if let Some(recovery) = &one.recovery {
            page.section(recovery_section(one, recovery));
        }
    }
    page.section(findings(&facts.findings, ""));
    page.method = Some(method(run, &how(facts), vec![("Seed", seed(run).into())]));
    page.csv("steps.csv", "the steps as CSV", move || {
        step_table(&steps(facts))
    });
    page
}

fn totals(facts: &CapacityFacts) -> [Fact; 3] {
    let requests = &facts.traffic.requests;
    [
        Fact::read(&requests.total, "request", ""),
        Fact::read(&facts.traffic.connections.opened, "connection", "opened"),
        Fact::failures(&requests.failures, "request"),
    ]
}

fn capacities(variants: &[VariantCapacity]) -> Table {
    let runs = |one: FreshRuns, met: u32| match one.runs {
        0 => String::new(),
        all => format!("{met} of {all}"),
    };
    let at = |one: &VariantCapacity| one.at_capacity.clone();
    Rows::of(variants)
        .column("variant", |one| &one.name)
        .column("met, req/s", |one| {
            one.interval.as_ref().map(|one| Rate(one.low))
        })
        .about("the highest rate at which fresh runs met the conditions")
        .ranked(3, "fresh runs", move |one| {
            runs(one.fresh_at_low, one.fresh_at_low.met)
        })
        .about("runs with new connections, and in how many of them the conditions held")
        .column("missed, req/s", |one| {
            one.interval.as_ref().and_then(|one| one.high).map(Rate)
        })
        .about("the lowest rate at which fresh runs missed them")
        .ranked(3, "fresh runs", move |one| {
            runs(
                one.fresh_at_high,
                one.fresh_at_high.runs - one.fresh_at_high.met,
            )
        })
        .about("in how many of them the conditions did not hold")
        .column("limit", |one| match one.bounded_by {
            "server" => "server",
            "client" => "the client's",
            "machine" => "the machine's",
            "most-rate" => "--max-rate",
            "undecided" => "too few requests",
            _ => "not reached",
        })
        .about("what bounds the rate from above")
        .ranked(2, "p50", move |one| at(one)?.p50_ms.map(Time))
        .about("of the last run at that rate")
        .ranked(1, "p99", move |one| at(one)?.p99_ms.map(Time))
        .ranked(5, "server busy", move |one| at(one)?.server_busy.map(Share))
        .about("CPU time of the server over the time measured")
        .ranked(5, "client busy", move |one| at(one)?.client_busy.map(Share))
        .about("CPU time of the client's threads over the time measured on them")
        .ranked(4, "conn/req", |one| one.connections_per_request.map(Mean))
        .about("connections opened for each request, over all steps")
        .table()
}

/// The steps of every variant.
fn steps(facts: &CapacityFacts) -> Vec<Row<'_>> {
    let mut steps = each_part(&facts.variants, |one| &one.steps);
    steps.sort_by_key(|(_, step)| step.step);
    steps
}

fn purpose(one: LoadPurpose) -> &'static str {
    match one {
        LoadPurpose::Search => "search",
        LoadPurpose::Confirm => "fresh run",
        LoadPurpose::Before => "before",
        LoadPurpose::Overload => "overload",
        LoadPurpose::After => "after",
        LoadPurpose::Restart => "after a pause",
    }
}

fn outcome(one: &StepFigures) -> Cell {
    let words = match one.outcome {
        "met" => "met",
        "client-limit" => "client's limit",
        "machine-limit" => "machine's limit",
        "undecided" => "not decided",
        "cold-start" => "cold start",
        _ => "missed",
    };
    Cell::from(words)
}

fn step_table(rows: &[Row<'_>]) -> Table {
    Rows::of(rows)
        .column("step", |row| u64::from(row.1.step))
        .ranked(4, "variant", |row| &row.0.name)
        .ranked(3, "purpose", |row| purpose(row.1.purpose))
        .column("req/s", |row| Rate(row.1.rate_per_s))
        .column("conditions", |row| outcome(row.1))
        .ranked(2, "p50", |row| row.1.p50_ms.map(Time))
        .column("p99", |row| row.1.p99_ms.map(Time))
        .ranked(5, "requests", |row| row.1.requests)
        .if_any("failed", |row| Cell::failed(row.1.failed))
        .if_any("4xx or 5xx", |row| Cell::failed(row.1.error_responses))
        .about("responses with an error status that --expect does not name")
        .ranked(6, "busy conns", |row| row.1.queued_share.map(Share))
        .about("requests that were due while every connection was busy")
        .ranked(6, "late p99", |row| row.1.scheduling_error_p99_ms.map(Time))
        .about("the client's own lateness")
        .ranked(6, "machine busy", |row| row.1.machine?.busy.map(Share))
        .about("CPU time of all processes, over the time and all processors")
        .ranked(6, "waiting", |row| row.1.machine?.waiting.map(Share))
        .about("part of the time in which a task waited for a processor")
        .ranked(7, "TIME_WAIT", |row| {
            row.1.sockets.map(|sockets| sockets.after.time_wait)
        })
        .about("sockets of this machine in TIME_WAIT after the step")
        .ranked(7, "free ports", |row| row.1.sockets?.after.free_ports)
        .about("ephemeral ports that no socket used after the step")
        .full("why", |row| row.1.reason.clone().unwrap_or_default())
        .table()
}

/// One percentile of every step by its rate, a line for each variant: the 99th, or the median where
/// a step had too few requests.
fn latency_by_rate(facts: &CapacityFacts) -> Chart {
    let mut steps = facts.variants.iter().flat_map(|one| &one.steps);
    let has_p99 = steps.all(|step| step.p99_ms.is_some() || step.p50_ms.is_none());
    let lines = facts.variants.iter().enumerate().map(|(nth, one)| {
        let mut points: Vec<(f64, f64)> = one
            .steps
            .iter()
            .filter_map(|step| {
                let latency = if has_p99 { step.p99_ms } else { step.p50_ms };
                Some((step.rate_per_s, latency?))
            })
            .collect();
        // of the runs at one rate the median
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let rates = points.chunk_by(|a, b| a.0 == b.0);
        let middle: Vec<(f64, f64)> = rates.map(|runs| runs[runs.len() / 2]).collect();
        line(&one.name, Tone::Series(nth as u8), middle.into_iter())
    });
    let marks = facts.variants.iter().filter_map(|one| {
        let rate = one.interval.as_ref()?.low;
        Some(Mark {
            x: rate,
            words: format!("{}: {}", one.name, Rate(rate)),
        })
    });
    let lines = Lines {
        lines: lines.collect(),
        marks: marks.collect(),
        scale: ScaleKind::Logarithmic,
        x: Axis::Count,
        y: Axis::Time,
    };
    Chart::new(
        "latency-by-rate",
        "Latency by rate",
        lines,
        text!(
            "The {} of the steps at each rate (of several the median) against requests a second; the mark is the highest rate that met the conditions.",
            if has_p99 { "99th percentile" } else { "median" }
        ),
    )
}

fn recovery_section(variant: &VariantCapacity, recovery: &Recovery) -> Section {
    let title = text!(
        "Recovery of {}: {} requests/s for {}, then {} requests/s",
        &variant.name,
        Rate(recovery.overload_per_s),
        Time(recovery.overload_s * 1e3),
        Rate(recovery.rate_per_s)
    );
    let windows = &recovery.windows;
    let points = windows.iter().filter_map(|one| {
        let latency = one.figures.p50_ms?;
        Some((one.from_s, latency))
    });
    let lines = Lines {
        lines: vec![line("p50", Tone::Plain, points)],
        marks: vec![Mark {
            x: 0.0,
            words: "the overload ends".to_owned(),
        }],
        scale: ScaleKind::Linear,
        x: Axis::Count,
        y: Axis::Time,
    };
    let chart = Chart::new(
        "recovery",
        "Median latency over time",
        lines,
        "By the moment at which requests were due, in seconds after the end of the overload.",
    );
    let table = Rows::of(windows)
        .column("from, s", |one| format!("{:.0}", one.from_s))
        .about("seconds after the end of the overload")
        .column("load", |one| purpose(one.figures.purpose))
        .column("req/s", |one| Rate(one.figures.rate_per_s))
        .column("conditions", |one| outcome(&one.figures))
        .column("p50", |one| one.figures.p50_ms.map(Time))
        .column("p99", |one| one.figures.p99_ms.map(Time))
        .ranked(2, "requests", |one| one.figures.requests)
        .column("failed", |one| Cell::failed(one.figures.failed))
        .if_any("4xx or 5xx", |one| {
            Cell::failed(one.figures.error_responses)
        })
        .about("responses with an error status that --expect does not name")
        .full("why", |one| one.figures.reason.clone().unwrap_or_default())
        .table();
    Section::new("recovery", title)
        .full(chart)
        .summary(table.brief(2 * BRIEF))
}

fn how(facts: &CapacityFacts) -> Vec<Text> {
    let mut how = vec![Text::prose(
        "An open loop: requests were due by a schedule, and their latency counts from that moment. A step has new connections and a lead-in, whose requests are in no figure. It met the conditions if each of them held, requests did not wait longer and longer, and, unless a condition is about failures, at most 1 % failed or had an error status.",
    )];
    if facts.variants.iter().any(|one| !one.steps.is_empty()) {
        how.push(Text::prose(
            "Rates were doubled until one missed, then bisected to neighbouring rates. Fresh runs at both had to agree, 5 of 5 or 7 of 8; otherwise the end moved away. Each end of the interval is then wrong in at most 5 % of searches (a sign test on the rate at which half of the runs hold).",
        ));
        how.push(Text::prose(
            "A step that missed while the client was late or busy, or the machine's processors were, was repeated. If that happened again, the client or the machine is the limit, and nothing is said about the server's.",
        ));
    }
    how
}
