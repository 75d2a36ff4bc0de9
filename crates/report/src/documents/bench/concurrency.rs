//! The part of a bench's page on concurrency: total time, throughput, latency and CPU by `-c`.
//! Shown where several values of `-c` ran.

use super::series_tone;
use crate::documents::common::{GROUPS, each_part, first_of};
use crate::page::*;
use intact_experiments::bench::{Charts, Sweep, SweepPoint};
use intact_statistics::Interval;
use intact_units::Quantity::{self, Count, Mean, Rate, Time};

/// Total time, throughput, latency and CPU over concurrency, if that was varied.
pub(super) fn section(charts: &Charts) -> Section {
    let sweeps = &charts.sweeps;
    let rows = each_part(sweeps, |sweep| &sweep.points);
    let cpu = |us: Option<f64>| us.map(|us| Time(us / 1e3));
    let table = Rows::of(&rows)
        .column("connections", |row| setting(row.0))
        .column("-c", |row| row.1.concurrency)
        .about("connections at once")
        .column("1,000 requests", |row| Time(row.1.seconds * 1e3))
        .about("total time; the mean over rounds")
        .column("factor", |row| factor(sweeps, row.1))
        .about("total time over that of the fastest variant at the same -c")
        .column("req/s", |row| Rate(row.1.rate_per_s))
        .column("typical", |row| row.1.typical_ms.map(Time))
        .ranked(2, "p99", |row| row.1.p99_ms.map(Time))
        .ranked(1, "client CPU", move |row| cpu(row.1.client_cpu_us))
        .about("of the engine, per request")
        .ranked(1, "server CPU", move |row| cpu(row.1.server_cpu_us))
        .about("per request, warm-up included")
        .ranked(3, "TIME_WAIT", |row| {
            row.1
                .sockets
                .map(|one| before_after(one.before.time_wait, one.after.time_wait))
        })
        .about("sockets of this machine in TIME_WAIT, before and after the first round")
        .ranked(3, "free ports", |row| {
            let sockets = row.1.sockets?;
            Some(before_after(
                sockets.before.free_ports?,
                sockets.after.free_ports?,
            ))
        })
        .about(
            "ephemeral ports of this machine that no socket used, before and after the first round",
        )
        .table();
    let mut section = Section::new("sweep", "Over concurrency")
        .weighing(Weight::Asked)
        .summary(table);
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

/// How many times as long as the fastest at the same concurrency; absent where it is alone.
fn factor(sweeps: &[Sweep], point: &SweepPoint) -> Option<Quantity> {
    let points = sweeps.iter().flat_map(|sweep| &sweep.points);
    let alike = points.filter(|one| one.concurrency == point.concurrency);
    let seconds: Vec<f64> = alike.map(|one| one.seconds).collect();
    let fastest = seconds.iter().copied().reduce(f64::min)?;
    (seconds.len() > 1).then(|| Mean(point.seconds / fastest))
}

fn before_after(before: u64, after: u64) -> String {
    format!("{} to {}", Count(before), Count(after))
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
    let kept: Vec<bool> = sweeps.iter().map(|sweep| sweep.keepalive).collect();
    let lines = sweeps
        .iter()
        .take(GROUPS)
        .enumerate()
        .map(|(nth, sweep)| Line {
            name: setting(sweep),
            tone: series_tone(&kept, nth),
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
    let mut points = lines.lines.iter().flat_map(|line| &line.points);
    let intervals = points.any(|point| point.interval.is_some());
    let intervals = intervals.then(|| "Vertical strokes are 95 % intervals over rounds.".into());
    Chart::new(id, title, lines, words)
        .notes(intervals)
        .notes(first_of(GROUPS, sweeps.len(), "settings"))
}

/// What is drawn of each point over concurrency: id and title of the chart, its value and interval
/// in the unit of its axis, and words.
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
            let ms = |seconds: f64| seconds * 1e3;
            Some((ms(point.seconds), point.interval.map(|one| one.map(ms))))
        },
        Axis::Time,
        "Time for 1,000 requests by the number of connections at once.",
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
        "Typical latency by the number of connections at once.",
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
