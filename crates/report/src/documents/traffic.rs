//! The page of observed traffic (`watch`, `audit`, a server's ledger): which setup was wasted, where, why, and what to change.

use super::common::{by_kind, caveats, findings, line, method, page as start, program, sentences};
use super::{populations, timeline};
use crate::json;
use crate::page::*;
use intact_findings::Severity;
use intact_findings::body_arrival::BodyArrivalFacts;
use intact_findings::cpu::{CpuFacts, CpuUse};
use intact_findings::traffic::{
    Charts, Destination, Figures, LevelShift, NextStep, ObservedFacts, Shifted, StepSide,
};
use intact_ledger::{Producer, Run, Vantage};
use intact_units::Quantity::{self, Count, Mean, Rate, RoundShare, Share, Time, Timer};
use intact_units::number::{long_time, signed_time};
use intact_units::plural::{self, counted};
use serde::Serialize;
use std::time::Duration;

/// Destinations that a terminal shows.
const DESTINATIONS: usize = 20;
/// Bars of wasted time.
const BARS: usize = 12;
/// A run at least so long, in seconds, has dates on its axes.
const DATED_S: f64 = 120.0;
/// The share of the time from which on requests without a response are the headline.
const NOTEWORTHY: f64 = 0.05;
/// Reuses below which the distribution of idle times says nothing.
const REUSES: u64 = 10;

/// Observed traffic, as findings understand it.
#[derive(Clone, Copy)]
pub struct TrafficRun<'a> {
    /// The header of its ledger.
    pub run: &'a Run,
    /// Its facts.
    pub facts: &'a ObservedFacts,
    /// The data of its charts.
    pub charts: &'a Charts,
    /// The files that it was read from; none when it was observed live.
    pub inputs: &'a [InputFacts],
    /// How responses arrived; empty where that was not asked for.
    pub answers: &'a [BodyArrivalFacts],
    /// The packets of one connection, if they were asked for.
    pub ladder: Option<&'a LadderFacts>,
}

/// What was read of one input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InputFacts {
    /// The file's name.
    pub name: String,
    /// Its format.
    pub format: String,
    /// What it consists of, in the plural.
    pub unit: String,
    /// How many of them were read.
    pub read: u64,
    /// How many of them had no use.
    pub skipped: u64,
    /// Bytes, after decompression.
    pub bytes: u64,
    /// By what evidence connections were distinguished; absent where the format leaves no choice.
    pub evidence: Option<String>,
    /// Lines for a server's configuration that make its log more useful.
    pub advice: Vec<String>,
}

/// The packets of one connection.
#[derive(Clone, Debug, PartialEq)]
pub struct LadderFacts {
    /// Which connection, such as `connection 3`.
    pub connection: String,
    /// Client, server and packets.
    pub packets: Sequence,
}

impl LadderFacts {
    /// Packets in the order of their capture; `at_ms` since the first of them.
    pub fn new(
        connection: String,
        ends: [String; 2],
        packets: Vec<Arrow>,
        more: u64,
    ) -> LadderFacts {
        LadderFacts {
            connection,
            packets: Sequence {
                lanes: ends.into(),
                arrows: packets,
                more: Some(more),
            },
        }
    }
}

pub(super) fn page(one: TrafficRun<'_>) -> Page<'_> {
    let TrafficRun {
        run, facts, charts, ..
    } = one;
    let mut page = start(run, || program(run));
    let shift = charts.step.as_ref();
    let shift = shift.filter(|_| run.producer != Producer::Watch);
    page.headline = shift.map_or_else(|| headline(facts), since);
    page.verdict = sentences(&facts.verdict);
    page.facts = totals(run, facts);
    page.section(
        Section::new("destinations", "Destinations")
            .summary(destinations(&facts.destinations).brief(DESTINATIONS)),
    );
    page.section(findings(&facts.findings, ""));
    page.section(next(&facts.next));
    page.section(over_time(run, charts));
    page.section(fresh_and_reused(&facts.totals, charts));
    page.section(idle_times(&facts.totals, charts));
    page.section(connections(one));
    page.section(processor_time(facts.cpu.as_ref()));
    page.section(answers(one.answers));
    if let Some(packets) = one.ladder {
        page.section(ladder(packets));
    }
    page.section(inputs(one.inputs));
    page.caveats = caveats(&facts.caveats);
    if !facts.totals.inferred.is_empty() {
        let reasons = facts.totals.inferred.join("; ");
        page.caveats.push(text!(
            "Figures with ~ are inferred, not observed: {}.",
            reasons
        ));
    }
    page.method = Some(method(run, &how(run.vantage), Vec::new()));
    page.files = vec![
        File::json(
            format!("{}.json", run.producer),
            "everything as JSON",
            move || json::observed(run, facts),
        ),
        File::csv("destinations.csv", "the destinations as CSV", move || {
            destinations(&facts.destinations)
        }),
    ];
    page
}

/// The headline of a run in which something changed for good.
fn since(step: &LevelShift) -> Option<Headline> {
    let (before, after) = (step.before, step.after);
    let gain = match step.shifted {
        Shifted::Reuse => after.reuse > before.reuse,
        Shifted::Latency => after.mean_ms < before.mean_ms,
    };
    let assessment = if gain {
        Assessment::Good
    } else {
        Assessment::Bad
    };
    let (number, caption) = match step.difference_ms {
        Some(difference) => (signed_time(difference.value).into(), "per request"),
        None => {
            let reuse = populations::reuse(after.reuse, after.reuse_range).text()?;
            (reuse, "of the requests reused a connection")
        }
    };
    let caption = format!("{caption} since {}", step.moment());
    Headline::new(number, assessment, caption)
}

fn headline(facts: &ObservedFacts) -> Option<Headline> {
    let totals = &facts.totals;
    let is_grave = facts
        .findings
        .iter()
        .any(|finding| finding.severity > Severity::Info);
    let unobserved = &totals.unobserved;
    let is_complete = unobserved.has_all_connections()
        && unobserved.has_all_requests()
        && totals.reuse_range.is_none()
        && totals.needed_range().is_none()
        && totals.open_before == 0;
    let is_clear = is_complete && facts.any_success() && facts.has_evidence_of_no_gain();
    let assessment = match (is_grave, is_clear) {
        (true, _) => Assessment::Bad,
        (false, true) => Assessment::Good,
        (false, false) => Assessment::Neutral,
    };
    let wasted = totals.wasted_share.filter(|share| *share > 0.0);
    let lost = totals
        .lost_share
        .filter(|share| *share > 0.0 && Some(*share) > wasted);
    if let Some(share) = lost.filter(|share| *share >= NOTEWORTHY && facts.any_success()) {
        let caption = "of the time went to requests without a complete response";
        return Headline::new(RoundShare(share), assessment, caption);
    }
    match (wasted, totals.reuse) {
        (Some(share), _) => {
            let caption = "of the time was setup of connections that were not needed";
            Headline::new(RoundShare(share), assessment, caption)
        }
        (None, Some(reuse)) => {
            let cell = Cell::ranged(Some(reuse), totals.reuse_range, RoundShare);
            let number = cell.inferred_if(!totals.inferred.is_empty()).text()?;
            let caption = text!(
                "of {} reused a connection",
                counted(totals.requests.total, "request")
            );
            Headline::new(number, assessment, caption)
        }
        (None, None) => {
            let opened = totals.connections.opened;
            let connections = plural::of(opened, "connection");
            let caption = text!("{}; no reuse was observed", connections);
            Headline::new(Count(opened), Assessment::Neutral, caption)
        }
    }
}

fn totals(run: &Run, facts: &ObservedFacts) -> Vec<Fact> {
    let totals = &facts.totals;
    let inferred = |cell: Cell| cell.inferred_if(!totals.inferred.is_empty());
    let noun = match run.vantage {
        Vantage::Server => "client",
        Vantage::Client | Vantage::OnPath => "destination",
    };
    let dials: u64 = totals.connections.failed.values().sum();
    let lookups = (totals.lookups.total > 0).then(|| Fact::counted(totals.lookups.total, "lookup"));
    let open_before = (totals.open_before > 0).then_some(totals.open_before);
    let opened = if has_connections(totals) {
        Fact::counted_as(totals.connections.opened, "connection", "opened")
    } else {
        Fact::new("connections opened", Cell::default())
    };
    let counts = [
        Fact::counted(facts.destinations.len() as u64, noun),
        Fact::new(
            plural::of(totals.requests.total, "request"),
            inferred(Count(totals.requests.total).into()),
        ),
        opened,
        Fact::new("open before", open_before),
        Fact::new("needed", inferred(needed(totals))),
        Fact::new(
            "reused",
            inferred(populations::reuse(totals.reuse, totals.reuse_range)),
        ),
        Fact::new("waiting for responses", totals.outbound_ms.map(Time)),
    ];
    let counts = counts.into_iter().filter(|fact| !fact.value.is_absent());
    let failures = [
        Fact::failures(totals.requests.failures(), "request"),
        Fact::failures(dials, "dial"),
        Fact::failures(totals.lookups.failed, "lookup"),
    ];
    counts
        .chain(lookups)
        .chain(failures.into_iter().flatten())
        .collect()
}

/// Whether the input has connections; zero of them is then a count.
fn has_connections(figures: &Figures) -> bool {
    figures.connections.opened > 0 || figures.unobserved.without_connection == 0
}

/// The connections that were needed, or their range.
fn needed(figures: &Figures) -> Cell {
    if !has_connections(figures) {
        return Cell::default();
    }
    match figures.needed_range() {
        Some([least, most]) => Value::Range(Count(least), Count(most)).into(),
        None => Count(figures.connections.needed).into(),
    }
}

/// The commands to run next.
fn next(steps: &[NextStep]) -> Section {
    let lines = steps
        .iter()
        .map(|one| format!("# {}\n{}", one.purpose, one.command));
    let lines: Vec<String> = lines
        .flat_map(|two| two.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let section = Section::new("next", "Next");
    if lines.is_empty() {
        return section;
    }
    section.summary(Block::Code(lines))
}

/// Destinations, those that waste most first.
fn destinations(all: &[Destination]) -> Table {
    let opaque = |figures: &Figures| figures.requests.total == 0 && figures.opaque > 0;
    let inferred =
        |one: &Destination, cell: Cell| cell.inferred_if(!one.figures.inferred.is_empty());
    let requests = |one: &Destination| {
        let total = Count(one.figures.requests.total);
        inferred(one, (!opaque(&one.figures)).then_some(total).into())
    };
    Rows::of(all)
        .column("destination", |one| &one.origin)
        .column("requests", requests)
        .if_any("failed", |one| {
            let failures = one.figures.requests.failures();
            (!opaque(&one.figures)).then(|| Cell::failures(failures))
        })
        .if_any("dials failed", |one| {
            Cell::failures(one.figures.connections.failed.values().sum())
        })
        .column("opened", |one| {
            has_connections(&one.figures).then_some(one.figures.connections.opened)
        })
        .about("connections")
        .ranked(1, "needed", |one| inferred(one, needed(&one.figures)))
        .about("connections, for the most requests at once")
        .column("reused", |one| {
            inferred(
                one,
                populations::reuse(one.figures.reuse, one.figures.reuse_range),
            )
        })
        .about("share of requests on a connection that an earlier request had used")
        .column("wasted", |one| one.figures.wasted_ms.map(Time))
        .about("setup of connections that were not needed")
        .ranked(2, "share", |one| one.figures.wasted_share.map(Share))
        .about("wasted, of the time of all requests there")
        .ranked(4, "setup", |one| one.figures.setup_mean_ms.total.map(Time))
        .about("mean per connection")
        .ranked(6, "TLS", |one| {
            join(
                one.tls
                    .iter()
                    .filter_map(|kind| Some(kind.version?.as_str())),
            )
        })
        .ranked(5, "HTTP", |one| join(one.protocols.keys().copied()))
        .ranked(8, "ended by", |one| {
            by_kind(&one.figures.connections.ended_by)
        })
        .ranked(7, "program", |one| join(one.programs()))
        .full("mean", |one| one.figures.latency_ms.mean.map(Time))
        .about("latency, setup included")
        .full("p50", |one| one.figures.latency_ms.p50.map(Time))
        .full("p99", |one| one.figures.latency_ms.p99.map(Time))
        .table()
}

/// Words, each once.
fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut all: Vec<&str> = words.collect();
    all.dedup();
    all.join(", ")
}

/// Latency and openings over time, and what differed on both sides of a change.
fn over_time(run: &Run, charts: &Charts) -> Section {
    let section =
        Section::new("over-time", "Over time").summary(charts.step.as_ref().map(level_shift));
    if charts.periods.len() < 3 {
        return section;
    }
    let x = time_axis(run, charts);
    let lines = |lines, marks, y| Lines {
        lines,
        marks,
        scale: ScaleKind::Linear,
        x,
        y,
    };
    let periods = || charts.periods.iter().map(|one| (one.from_s * 1e3, one));
    let latency = Line {
        // an idle time of a few periods interrupts the line
        reach: Some(charts.period_s * 3.5e3),
        ..line(
            "mean latency",
            Tone::Reused,
            periods().filter_map(|(at, one)| Some((at, one.mean_ms?))),
        )
    };
    let period = long_time(Duration::from_secs_f64(charts.period_s));
    let mark = charts.step.as_ref().map(|step| Mark {
        x: step.at_s * 1e3,
        words: change(step),
    });
    let marks: Vec<Mark> = mark.into_iter().collect();
    let requests = periods().map(|(at, one)| (at, one.requests as f64));
    let opened = periods().map(|(at, one)| (at, one.opened as f64));
    let opened = vec![
        line("requests", Tone::Reused, requests),
        line("connections opened", Tone::Fresh, opened),
    ];
    section
        .full(Chart::new(
            "latency-over-time",
            "Latency over time",
            lines(vec![latency], marks, Axis::Time),
            text!(
                "Mean latency of the requests that ended in each {}.",
                &period
            ),
        ))
        .full(Chart::new(
            "openings",
            "Requests and connections opened",
            lines(opened, Vec::new(), Axis::Count),
            text!(
                "In each {}. Where the lines meet, every request opens a connection.",
                period
            ),
        ))
}

/// What changed, for a mark in a chart.
fn change(step: &LevelShift) -> String {
    let (before, after) = (&step.before, &step.after);
    let words = |both: Option<(f64, f64)>, kind: fn(f64) -> Quantity| {
        both.map(|(before, after)| format!("{} → {}", kind(before), kind(after)))
    };
    let latency = words(before.mean_ms.zip(after.mean_ms), Time);
    latency
        .or_else(|| words(before.reuse.zip(after.reuse), RoundShare))
        .unwrap_or_default()
}

/// Dates where a run is long, and seconds since its beginning where it is short.
fn time_axis(run: &Run, charts: &Charts) -> Axis {
    let ends = charts.periods.first().zip(charts.periods.last());
    let span_s = ends.map_or(0.0, |(first, last)| last.from_s - first.from_s);
    match run.started.parse() {
        Ok(zero) if span_s >= DATED_S => Axis::Date {
            zero,
            span_ms: (span_s * 1e3) as u64,
        },
        _ => Axis::Time,
    }
}

fn level_shift(step: &LevelShift) -> Vec<Block> {
    let within = long_time(Duration::from_secs_f64(step.within_s.max(0.0)));
    let words = text!("{} (known to {}).", step.sentence(), within);
    let side = |name, side: StepSide| {
        let reused = populations::reuse(side.reuse, side.reuse_range).text();
        let reused = reused.unwrap_or_else(|| "an unknown share".into());
        let opened = Mean((side.opened_per_request * 100.0).round() / 100.0);
        let words = "{}: {} requests, {} each; {} of them reused a connection, {} new connections per request.";
        let mean = side.mean_ms.map(Time);
        Block::from(text!(words, name, side.requests, mean, reused, opened))
    };
    vec![
        Block::Paragraph(Emphasis::Strong, words),
        side("Before", step.before),
        side("After", step.after),
        note(
            "Two changes at one time are no proof that one caused the other. `intact compare` gives one.",
        ),
    ]
}

/// Requests on new connections and on reused ones.
fn fresh_and_reused(totals: &Figures, charts: &Charts) -> Section {
    let phases = totals.phases_ms.as_ref().map(|phases| {
        let rows = [("new", &phases.fresh), ("reused", &phases.reused)];
        let rows = rows
            .into_iter()
            .filter(|row| row.1.values().any(Option::is_some));
        let rows: Vec<_> = rows.collect();
        populations::phases(
            "connection",
            &rows,
            |row| row.0,
            |row, phase| populations::mean(row.1, phase),
        )
    });
    let latency = Histogram(vec![populations::panel("", &charts.latency)]);
    let bars = Bars(populations::bars("", &charts.latency));
    Section::new("latency", "Phases: mean over the requests that had them")
        .summary(phases)
        .full(Chart::new(
            "latency",
            "Latency: new and reused connections",
            latency,
            "Latency of complete requests to all destinations, setup included.",
        ))
        .full(Chart::new(
            "waterfall",
            "Where the time goes",
            bars,
            "Mean time that each phase adds to a request. A request is new if it waited for any part of its connection's setup.",
        ))
}

/// Idle times before reuse, and how many came close to the server's limit.
fn idle_times(totals: &Figures, charts: &Charts) -> Section {
    let panel = |panel: &intact_findings::traffic::GapPanel| Panel {
        name: panel.name.clone(),
        populations: vec![Population {
            name: String::new(),
            words: format!("{} reuses", Count(panel.count)),
            tone: Tone::Reused,
            buckets: panel.buckets.clone(),
        }],
        band: panel.danger_ms.map(|(from, to)| Band {
            from,
            to,
            words: format!("the server closes at {}", Timer(to)),
        }),
    };
    let histogram = Histogram(charts.gaps.iter().map(panel).collect());
    let gaps = totals
        .idle_gaps
        .as_ref()
        .filter(|gaps| gaps.count >= REUSES);
    let danger = gaps.filter(|gaps| gaps.in_danger > 0).map(|gaps| {
        alarm(text!(
            "{} of {} reuses came when the server was about to close, or later.",
            gaps.in_danger,
            gaps.count
        ))
    });
    Section::new("idle", "Idle time before a connection was used again")
        .summary(Chart::new(
            "gaps",
            "Idle time before reuse",
            histogram,
            "In the band the server is about to close. A request that is sent then may be lost.",
        ))
        .summary(danger)
}

/// What the setup of connections costs, and how connections were used.
fn connections(one: TrafficRun<'_>) -> Section {
    let charts = one.charts;
    let mut notes = Vec::new();
    if charts.elsewhere > 0 {
        notes.push(text!(
            "To further destinations: {}.",
            counted(charts.elsewhere, "connection")
        ));
    }
    if !one.run.ends_seen {
        let words = "The end of connections was not observed: a line ends with its last request.";
        notes.push(words.into());
    }
    let first =
        "The first connections to each of the first destinations; (+n): n more are not drawn.";
    Section::new("connections", "Connections")
        .full(waste(&one.facts.destinations))
        .full(timeline::chart(&charts.timeline, first).notes(notes))
        .full(setup(&one.facts.destinations))
        .full(per_connection(&one.facts.destinations))
}

fn waste(all: &[Destination]) -> Chart {
    let wasteful = all.iter().filter(|one| one.figures.avoidable > 0);
    let bars = wasteful.filter_map(|one| {
        let wasted = one.figures.wasted_ms?;
        let counts = &one.figures.connections;
        let words = format!(
            "{}: {} opened, {} needed",
            Time(wasted),
            Count(counts.opened),
            Count(counts.needed)
        );
        Some(Bar::whole(&one.origin, Tone::Fresh, wasted, words))
    });
    let bars = Bars(bars.take(BARS).collect());
    let words = "Setup of connections that were not needed, at the destinations that waste most.";
    Chart::new("waste", "Where time is wasted", bars, words)
}

fn setup(all: &[Destination]) -> Table {
    Rows::of(all)
        .column("destination", |one| &one.origin)
        .column("resumed", |one| one.figures.resumed_share.map(Share))
        .about("share of TLS handshakes that resumed a session")
        .column("lookup", |one| one.figures.setup_mean_ms.dns.map(Time))
        .about("mean")
        .column("TCP", |one| one.figures.setup_mean_ms.connect.map(Time))
        .about("mean")
        .column("TLS handshake", |one| {
            one.figures.setup_mean_ms.ssl.map(Time)
        })
        .about("mean")
        .column("opened/s", |one| one.figures.churn_per_s.map(Rate))
        .column("server's limit", |one| {
            let gaps = one.figures.idle_gaps.as_ref()?;
            Some(Timer(gaps.server_limit_s? * 1e3))
        })
        .about("idle time after which it closes, announced or observed")
        .column("in danger", |one| {
            let gaps = one.figures.idle_gaps.as_ref();
            let share = gaps.and_then(|gaps| gaps.danger_share);
            Cell::from(share.map(Share)).alarm_if(share.is_some_and(|share| share > 0.0))
        })
        .about("share of reuses that came when the server was about to close")
        .if_any("lookups", |one| one.figures.lookups.total)
        .column("lookups/conn", |one| {
            one.figures.lookups.per_connection.map(Mean)
        })
        .table()
        .caption("What connections cost")
}

/// Connections by what they carried, shaded for each destination.
fn per_connection(all: &[Destination]) -> Option<Table> {
    let known = all
        .iter()
        .filter(|one| one.figures.per_connection.is_some());
    let rows: Vec<&Destination> = known.collect();
    type Buckets<'a> = &'a [(u64, Option<u64>, u64)];
    fn buckets<'a>(one: &&'a Destination) -> Buckets<'a> {
        one.figures
            .per_connection
            .as_ref()
            .map_or(&[], |all| &all.buckets)
    }
    let class = |&(from, to, _): &(u64, Option<u64>, u64)| match to {
        Some(to) if to == from => from.to_string(),
        Some(to) => format!("{from}-{to}"),
        None => format!("≥ {from}"),
    };
    let classes: Vec<String> = buckets(rows.first()?).iter().map(class).collect();
    let counts = |one| buckets(one).iter().map(|bucket| bucket.2).collect();
    Some(populations::per_connection(
        "destination",
        &rows,
        |one| one.origin.as_str(),
        &classes,
        counts,
    ))
}

/// Processor time, a line for each process.
fn processor_time(cpu: Option<&CpuFacts>) -> Section {
    let Some(cpu) = cpu else {
        return Section::new("cpu", "Processor time");
    };
    let others = cpu.other_processes.iter().map(|one| {
        let who = format!("{} ({}), running at the same time: ", one.command, one.pid);
        cpu_use(&who, &one.took)
    });
    let lines = std::iter::once(cpu_use("", &cpu.program)).chain(others);
    Section::new("cpu", "Processor time").summary(lines.map(Block::from).collect::<Vec<Block>>())
}

fn cpu_use(who: &str, took: &CpuUse) -> Text {
    let times = match (took.user_ms, took.system_ms) {
        (Some(user), Some(system)) => text!(
            "{}{} in the program, {} in the kernel",
            who,
            Time(user),
            Time(system)
        ),
        _ => text!(
            "{}not known: the process ended before it could be read",
            who
        ),
    };
    let Some(work) = took.work else { return times };
    let parts = [
        ("sockets", work.socket),
        ("TLS", work.tls),
        ("lookups", work.dns),
        ("waiting for readiness", work.readiness),
        ("other", work.other),
    ];
    let parts = parts.iter().filter(|(_, share)| *share > 0.0);
    let parts: Vec<String> = parts
        .map(|(name, share)| format!("{name} {}", Share(*share)))
        .collect();
    text!("{}: {} ({} samples)", times, parts.join(", "), work.samples)
}

/// How responses arrived: header section and body in one packet or in two.
pub fn answers(answers: &[BodyArrivalFacts]) -> Section {
    let line = |one: &BodyArrivalFacts| {
        let counts =
            "HTTP/{}: {} with header section and body together, {} with the body in a later packet";
        let counts = text!(
            counts,
            one.http,
            one.body_with_headers,
            one.body_after_headers
        );
        let gap = one.gap_ms.map_or_else(Text::default, |gap| {
            text!(", {} later on average", Time(gap))
        });
        let share = one.gap_share.filter(|share| *share > 0.0);
        let share = share.map_or_else(Text::default, |share| {
            text!(", {} of their time", Share(share))
        });
        Block::from(text!("{}{}{}.", counts, gap, share))
    };
    let lines: Vec<Block> = answers.iter().map(line).collect();
    Section::new("responses", "How responses arrived").summary(lines)
}

/// The packets of one connection.
pub fn ladder(ladder: &LadderFacts) -> Section {
    Section::new("packets", text!("Packets of {}", &ladder.connection))
        .summary(Block::Sequence(ladder.packets.clone()))
}

/// What was read, and by which evidence connections were distinguished.
fn inputs(inputs: &[InputFacts]) -> Section {
    let mut section = Section::new("inputs", "What was read");
    for one in inputs {
        let skipped = match one.skipped {
            0 => Text::default(),
            skipped => text!(", {} of them without use here", skipped),
        };
        let evidence = one
            .evidence
            .as_ref()
            .map_or_else(Text::default, |words| text!("; {}", Text::prose(words)));
        let read = text!(
            "{} ({}): {} {}{}{}",
            &one.name,
            &one.format,
            one.read,
            &one.unit,
            skipped,
            evidence
        );
        section = section.summary(note(read));
        if !one.advice.is_empty() {
            let words = "For more figures, put this into the configuration of the server:";
            section = section
                .summary(Text::plain(words))
                .summary(Block::Code(one.advice.clone()));
        }
    }
    section
}

fn how(vantage: Vantage) -> [Text; 3] {
    let from = match vantage {
        Vantage::Client => "Observed at the client: times include everything that it waited for.",
        Vantage::Server => {
            "Observed at the server: clients are the destinations. What a client waited for before its connection was open is not visible."
        }
        Vantage::OnPath => {
            "Observed between client and server: the setup of a connection is what its packets or calls show. The order of events shows which request waited for it."
        }
    };
    [
        text!(
            "{} A connection is avoidable if it was opened beyond the number that the most requests at once to its destination need. The cost of avoidable \
             connections is their measured setup. Each is counted in one finding only, the most specific.",
            from
        ),
        Text::prose(
            "Observation shows what happened and how long it took, not what would have happened: there are no intervals. To measure a change, run both ways in \
             one experiment (`intact bench`).",
        ),
        Text::plain(
            "A request that waited for any part of its connection's setup is new, even if it did not open the connection itself. Phases and latencies are of \
             complete requests.",
        ),
    ]
}
