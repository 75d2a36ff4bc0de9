//! The page of a bench: what a new connection per request costs.

mod concurrency;
mod first_calls;
mod rounds;

use super::common::{
    GROUPS, by_kind, findings, first_of, method, no_response, page as start, ports_run_out, seed,
};
use super::{likeness, populations, scenario, timeline};
use crate::page::*;
use intact_document::Facts;
use intact_experiments::bench::{
    BenchFacts, Charts, Effect, EffectResult, ModelBounds, OpenLoopFacts, PerConnection,
    ServiceFacts, TimeDifference, TimeStatistic, VariantFacts,
};
use intact_ledger::Run;
use intact_reading::Reading;
use intact_statistics::Interval;
use intact_units::Quantity::{Bytes, Change, Count, Mean, Rate, RoundShare, Share, Time};
use intact_units::plural::counted;

pub(super) use rounds::comparison_table;

/// What the typical latency is, for tables.
const TYPICAL: &str = "per round the medians of new and of reused requests, weighted by their numbers, with --rate the median; the mean over rounds without 10 % at either end";

pub(super) fn page<'a>(run: &'a Run, facts: &'a BenchFacts, charts: &'a Charts) -> Page<'a> {
    let mut page = start(run, facts, || "the built-in server".to_owned());
    page.headline = headline(facts);
    page.facts(totals(facts));
    page.section(services(&facts.services));
    page.section(findings(&facts.findings, ""));
    page.section(effects(facts));
    if facts.counted.requests.total > 0 {
        page.section(
            Section::new("variants", "Variants: latency, connection setup included")
                .summary(latencies(&facts.variants)),
        );
        page.section(
            Section::new("costs", "Connections and what they cost")
                .weighing(Weight::Detail)
                .summary(connections(&facts.variants)),
        );
        page.section(targets(run, &facts.variants));
        page.section(schedule(&facts.variants));
        page.section(concurrency::section(charts));
        page.section(latency(facts, charts));
        page.section(phases(facts, charts));
        page.section(first_calls::section(&facts.variants));
        page.section(rounds::section(facts, charts));
        page.section(lives(run, charts));
    }
    page.section(likeness::section(facts.like.as_ref()));
    page.section(baseline(facts));
    page.section(sockets(facts));
    page.method = Some(method(run, &how(facts), vec![("Seed", seed(run).into())]));
    page.csv("rounds.csv", "the rounds as CSV", move || {
        rounds::table(facts)
    });
    page.csv("first-calls.csv", "the first calls as CSV", move || {
        first_calls::table(facts)
    });
    page
}

/// Both sides of each service.
fn services(services: &[ServiceFacts]) -> Option<Section> {
    if services.is_empty() {
        return None;
    }
    let table = Rows::of(services)
        .column("service", ServiceFacts::outgoing_name)
        .column("inbound/s", |one| one.throughput_per_s.map(Rate))
        .about("complete requests a second at its door, the mean of the rounds")
        .column("gain", |one| Cell::interval(one.throughput_gain, Change))
        .about("against the first service, with its 95 % interval")
        .column("requests", |one| {
            Cell::count(&one.outgoing.traffic.requests.total)
        })
        .about("requests that it sent itself, warm-up included")
        .failures("failed", |one| &one.outgoing.traffic.requests.failures)
        .figure(0, "connections", |one| {
            &one.outgoing.traffic.connections.opened
        })
        .about("connections that it opened for them")
        .failures("connections-failed", |one| {
            &one.outgoing.traffic.connections.failures
        })
        .ranked(2, "conn/req", |one| one.connections_per_request.map(Mean))
        .column("reused", |one| {
            populations::reuse(&one.outgoing.traffic.reuse)
        })
        .figure(1, "avoidable", |one| &one.outgoing.traffic.avoidable)
        .about("connections beyond those that the peak overlap needs")
        .table();
    let title = "Both sides of the service: inbound throughput, outgoing connections";
    let mut section = Section::new("services", title).summary(table);
    let ledgers: Vec<&String> = services.iter().flat_map(|one| &one.ledgers).collect();
    if let (Some(first), Some(last)) = (ledgers.first(), ledgers.last()) {
        section = section.summary(note(text!(
            "the outgoing side of each service and round is a ledger inside the run's, for `intact report`: {} to {}",
            *first,
            *last
        )));
    }
    Some(section)
}

fn headline(facts: &BenchFacts) -> Option<Headline> {
    if facts.counted.requests.ok > 0 && !facts.any_success() {
        return Headline::all_failed(text!("of the responses: {}", facts.errors.names()));
    }
    if let Some(share) = facts.many_failed() {
        let number = HeadlineShare::lost(share);
        let words = "of the requests failed: the others are no comparison";
        return Headline::new(number, Assessment::Bad, words);
    }
    if let Some(share) = facts.errors.many() {
        let words = text!("of the responses had the status {}", facts.errors.names());
        return Headline::new(HeadlineShare::lost(share), Assessment::Bad, words);
    }
    if facts.headline_is_without_reuse() {
        return Headline::all_failed("of the requests with keep-alive needed a new connection");
    }
    if let Some(compared) = facts.headline() {
        return of_comparison(compared, facts.headline_is_contradicted());
    }
    let is_measured = facts.variants.iter().any(|one| one.typical_ms.is_known());
    // one variant saves nothing: the first sentence has its time
    (!is_measured)
        .then(|| no_response(facts.counted.requests.total))
        .flatten()
}

/// The comparison of the first sentence as a number.
fn of_comparison(compared: &TimeDifference, is_contradicted: bool) -> Option<Headline> {
    let [before, after] = [compared.a_ms, compared.b_ms].map(Time);
    let number = HeadlineShare::saved(compared.saved_estimate());
    let times = text!(
        "of the time of a typical request: {} instead of {}",
        after,
        before
    );
    let neutral = |reason: &str| {
        let caption = text!("{}, {}", times.clone(), reason);
        Headline::new(number.clone(), Assessment::Neutral, caption)
    };
    if is_contradicted {
        return neutral("but the mean shows the opposite, the slowest requests outweigh it");
    }
    match (compared.significant, compared.saved_share) {
        (Some(true), Some(saved)) => saving(saved, times),
        (Some(false), _) => neutral("but no difference was shown"),
        _ => neutral("without an interval, so it may be chance"),
    }
}

/// A share that is saved of something, or lost, as a number.
fn saving(saved: Interval, of: Text) -> Option<Headline> {
    let assessment = Assessment::good_if(saved.value >= 0.0);
    let mut ends = [saved.low.abs(), saved.high.abs()];
    ends.sort_by(f64::total_cmp);
    let caption = text!(
        "{} (95 % interval {} to {})",
        of,
        Share(ends[0]),
        Share(ends[1])
    );
    Headline::new(HeadlineShare::saved(saved.value), assessment, caption)
}

fn totals(facts: &BenchFacts) -> Vec<Fact> {
    let warmup = || facts.variants.iter().map(|one| &one.warmup);
    let (requests, state, opened, opening) = match facts.is_measured() {
        true => (
            facts.counted.requests.total,
            "measured",
            facts.counted.connections.opened,
            "opened",
        ),
        false => (
            warmup().map(|one| one.requests).sum(),
            "tried before the first round",
            warmup().map(|one| one.connections).sum(),
            "opened before it",
        ),
    };
    let round = match facts.variants.len() {
        0 | 1 => "round",
        _ => "interleaved round",
    };
    vec![
        Fact::counted(facts.variants.len() as u64, "variant"),
        Fact::counted(u64::from(facts.rounds), round),
        Fact::counted_as(requests, "request", state),
        Fact::counted_as(opened, "connection", opening),
        Fact::failures(&facts.traffic.requests.failures, "request"),
        Fact::failures(&facts.traffic.connections.failures, "connection attempt"),
    ]
}

fn latencies(variants: &[VariantFacts]) -> Table {
    Rows::of(variants)
        .column("variant", |one| &one.name)
        .ranked(6, "TLS", |one| one.tls.as_ref())
        .about("as negotiated")
        .figure(3, "requests", |one| &one.traffic.requests.total)
        .about("measured, without warm-up")
        .failures("failed", |one| &one.traffic.requests.failures)
        .figure(4, "connections", |one| &one.traffic.connections.opened)
        .about("connections")
        .ranked(2, "reused", |one| populations::reuse(&one.traffic.reuse))
        .about("share of requests on a connection that an earlier request had used")
        .figure(5, "throughput", |one| &one.rate_per_s)
        .about("complete requests a second")
        .figure(0, "typical", |one| &one.typical_ms)
        .about(TYPICAL)
        .figure(2, "mean", |one| &one.latency_ms.mean)
        .figure(1, "p50", |one| &one.latency_ms.p50)
        .figure(9, "p90", |one| &one.latency_ms.p90)
        .figure(1, "p99", |one| &one.latency_ms.p99)
        .figure(8, "p999", |one| &one.latency_ms.p999)
        .figure(7, "max", |one| &one.latency_ms.max)
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
        let words = "Requests were due by a schedule ({} arrivals), and latency counts from then. A request that was due while every connection was busy {}. A \
                     request without a response within its time limit failed, and percentiles count it as longer than all others.";
        note(text!(words, open.arrivals, busy))
    });
    let table = Rows::of(&rows)
        .column("variant", |row| &row.0.name)
        .column("due/s", |row| row.1.requested_per_s.map(Rate))
        .about("requests that fell due a second")
        .figure(0, "throughput", |row| &row.0.rate_per_s)
        .about("complete requests a second")
        .figure(3, "schedule.achieved", |row| &row.1.achieved)
        .about("complete requests a second as a share of those that fell due")
        .if_any("never sent", |row| Cell::failed(row.1.unsent))
        .figure(1, "schedule.queued", |row| &row.1.queued_share)
        .about("share of the requests that were due while every connection was busy")
        .ranked(5, "wait p99", |row| Cell::reading(&row.1.queued_ms.p99, Time))
        .about("for a connection, of those that waited")
        .figure(2, "schedule.error", |row| &row.1.scheduling_error_ms.p99)
        .about("the client's own scheduling error: from when a request was due and a connection was free to its start")
        .ranked(4, "late", |row| row.1.scheduling_error_share.map(Share))
        .about("sum of the scheduling errors as a share of the latency")
        .ranked(2, "arrived p99", |row| Cell::reading(&row.0.latency_ms.p99, Time))
        .about("from due to the kernel's receive timestamp: the latency")
        .ranked(2, "read p99", |row| Cell::reading(&row.1.until_read_ms.p99, Time))
        .about("from due to the client's reading the response")
        .table();
    Section::new(
        "schedule",
        "Schedule: requests that were due, and when they started",
    )
    .summary(table)
    .summary(manner)
}

/// The targets of each variant.
fn targets(run: &Run, variants: &[VariantFacts]) -> Option<Section> {
    let source = run.targets.as_deref()?;
    let rows = scenario::tag_rows(variants, |one| (&one.name, &one.targets));
    let words = match rows.is_empty() {
        true => "requests from {} took turns, and are not counted by target",
        false => "requests from {} took turns",
    };
    let section = Section::new("targets", "Targets").summary(note(text!(words, source)));
    Some(match rows.is_empty() {
        true => section,
        false => section.summary(scenario::tags("variant", &rows)),
    })
}

fn connections(variants: &[VariantFacts]) -> Table {
    let delay = |one: &VariantFacts| Cell::reading(&one.client_delay_ms.share, Share);
    let cpu = |us: &Reading| Cell::reading(&us.times(1e-3), Time);
    Rows::of(variants)
        .column("variant", |one| &one.name)
        .figure(2, "without-setup.mean", |one| &one.latency_without_setup_ms.mean)
        .about("mean latency less the setup")
        .ranked(1, "setup/conn", |one| one.setup_ms.map(Time))
        .about("mean")
        .full("needed", |one| Cell::count(&one.traffic.connections.needed))
        .about("connections, for the most requests at once")
        .failures("connections-failed", |one| &one.traffic.connections.failures)
        .if_any("lookups", |one| {
            let is_shown = one.dns.is_some() || one.lookups_failed > 0;
            is_shown.then(|| Cell::count(&one.lookups))
        })
        .about("of names; a connection for which the answer was kept has none")
        .if_any("lookups failed", |one| Cell::failed(one.lookups_failed))
        .figure(3, "requests-per-connection", |one| &one.requests_per_connection)
        .about("mean")
        .figure(4, "churn", |one| &one.churn_per_s)
        .figure(8, "resumed-share", |one| &one.resumed_share)
        .about("share of TLS handshakes that resumed a session")
        .if_any("0-RTT", |one| one.early_data_share.map(Share))
        .about("share of TLS handshakes with a request in early data that the server accepted")
        .if_any("304", |one| one.not_modified_share.map(Share))
        .about("share of responses without a body, because the stored one is current (Not Modified)")
        .ranked(5, "client CPU", |one| cpu(&one.cpu_us_per_request))
        .about("of the engine, per request")
        .ranked(8, "ceiling/s", |one| one.client_ceiling_per_s.map(Rate))
        .about("requests a second at which the client's threads would be busy all the time, at this CPU time")
        .ranked(6, "server CPU", |one| cpu(&one.server_cpu_us_per_request))
        .about("per request, warm-up included")
        .ranked(12, "warm-up", |one| one.warmup.mean_ms.map(Time))
        .about("mean latency without setup of the first request on each connection, which is in no other figure")
        .ranked(9, "client delay", delay)
        .about("share of the latency after the last byte had arrived and before the client read it")
        .ranked(10, "data/req", |one| {
            let bytes = one.bytes_per_request.as_ref();
            bytes.map(|bytes| Cell::reading(&bytes.total, Bytes))
        })
        .about("bytes sent and received")
        .ranked(11, "headers/req", |one| {
            let bytes = one.bytes_per_request.as_ref();
            bytes.map(|bytes| Cell::reading(&bytes.heads, Bytes))
        })
        .about("bytes of the header sections of request and response")
        .ranked(7, "ended by", |one| by_kind(&one.counted.connections.ended_by))
        .table()
}

/// Distributions of new and reused, and the means of the variants.
fn latency(facts: &BenchFacts, charts: &Charts) -> Section {
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
        .map(|one| populations::modes(&one.name, &one.modes).into());
    let bars = facts
        .variants
        .iter()
        .zip(&charts.levels)
        .enumerate()
        .filter_map(|(nth, (one, level))| {
            let typical = level.typical_ms;
            let value = one.typical_ms.best()?;
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
                ..Bar::whole(&one.name, variant_tone(&facts.variants, nth), value, words)
            })
        });
    let means = Bars(bars.take(2 * GROUPS).collect());
    let intervals = match means.0.iter().any(|bar| bar.interval.is_some()) {
        true => {
            "Each value has its own 95 % interval over rounds. To see whether two variants differ, read the comparison round by round: it is sharper than two \
             intervals side by side."
        }
        false => "The mean over rounds, without intervals: they need at least 8 rounds.",
    };
    let heights = populations::heights(&histogram, "requests");
    let words = text!(
        "Latency of complete requests, setup included; further left is faster. {}",
        heights
    );
    Section::new("latency", "Latency: new and reused connections")
        .summary(
            Chart::new("latency", "Distribution of latency", histogram, words).notes(first_of(
                GROUPS,
                panels.len(),
                "settings",
            )),
        )
        .full(
            Chart::new("means", "Typical latency of each variant", means, intervals)
                .notes(first_of(2 * GROUPS, facts.variants.len(), "variants")),
        )
        .summary(modes.collect::<Vec<Block>>())
}

fn phases(facts: &BenchFacts, charts: &Charts) -> Section {
    let panels = &charts.latency;
    let shown = panels.iter().take(GROUPS);
    let bars = shown.flat_map(|panel| populations::bars(&panel.name, &panel.populations));
    let table = populations::phases(
        "variant",
        &facts.variants,
        |one| one.name.as_str(),
        |one, phase| populations::mean(&one.phases_ms, phase),
    );
    let words = "Mean time that each phase adds to a request. A request is new if it waited for any part of its connection's setup.";
    Section::new("phases", "Phases: mean over the requests that had them")
        .weighing(Weight::Detail)
        .summary(table)
        .full(
            populations::waterfall(bars.collect(), words).notes(first_of(
                GROUPS,
                panels.len(),
                "settings",
            )),
        )
}

/// What each setting saves, or each remedy against the baseline.
fn effects(facts: &BenchFacts) -> Section {
    match facts.effects.is_empty() || facts.effects_baseline.is_empty() {
        true => settings(facts),
        false => remedies(facts),
    }
}

/// The share that an effect saves, with its interval.
fn saved_share(effect: &Effect) -> Cell {
    match effect.saved_share {
        Some(share) if effect.result == EffectResult::Computed => RoundShare(share.value).into(),
        Some(share) => Cell::interval(Some(share), RoundShare),
        None => Cell::from("no interval"),
    }
}

/// What each setting saves. Settings without a difference that was shown share a line.
fn settings(facts: &BenchFacts) -> Section {
    let of = |result: EffectResult| facts.effects.iter().filter(move |one| one.result == result);
    let effects = facts.effects.iter();
    let shown = effects.filter(|one| one.result <= EffectResult::NoInterval);
    let shown: Vec<_> = shown.collect();
    let table = Rows::of(&shown)
        .column("setting", |one| &one.setting)
        .column("at", |one| &one.at)
        .ranked(1, "without", |one| Time(one.reference_ms))
        .column("saves", |one| Time(one.saved_ms))
        .column("share", |one| saved_share(one))
        .table();
    let line = |result: EffectResult, words: &str| {
        let mut names: Vec<&str> = of(result).map(|one| &*one.setting).collect();
        names.dedup();
        let each = names.iter().map(|name| {
            let is_named = |one: &&Effect| one.setting == *name;
            let count = of(result).filter(is_named).count();
            match facts.effects.iter().filter(is_named).count() {
                1 => (*name).to_owned(),
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
            "The rounds show no difference",
        ))
        .summary(line(
            EffectResult::NothingActed,
            "Unknown, because it never acted",
        ))
        .summary(line(
            EffectResult::NothingReused,
            "Unknown, because no request reused a connection",
        ))
}

/// What each remedy saves, and what shows that it acted.
fn remedies(facts: &BenchFacts) -> Section {
    let is_unknown = |one: &Effect| {
        matches!(
            one.result,
            EffectResult::NothingReused | EffectResult::NothingActed
        )
    };
    let saves = |one: &Effect| match is_unknown(one) {
        true => Cell::from("unknown"),
        false => Time(one.saved_ms).into(),
    };
    // each has the same load, unless several were measured
    let has_loads = facts.effects_baseline.len() > 1;
    let table = Rows::of(&facts.effects)
        .column("remedy", |one| match &one.with {
            Some(with) => format!("{} (compared with {with})", one.setting),
            None => one.setting.clone(),
        })
        .if_any("at", |one| has_loads.then_some(&one.at))
        .ranked(1, "with", |one| {
            let with = Time(one.reference_ms - one.saved_ms);
            (!is_unknown(one)).then_some(with)
        })
        .column("saves", saves)
        .column("share", |one| match is_unknown(one) {
            true => Cell::default(),
            false => saved_share(one),
        })
        .ranked(2, "what acted", acted)
        .table();
    let baselines = facts.effects_baseline.iter().map(|name| {
        let mut variants = facts.variants.iter();
        let typical = variants.find(|one| one.name == *name);
        match typical.and_then(|one| one.typical_ms.value()) {
            Some(typical) => format!("{name} ({})", Time(typical)),
            None => format!("{name} (no response)"),
        }
    });
    let baseline = note(format!(
        "Compared with a new connection per request and a full handshake: {}.",
        baselines.collect::<Vec<String>>().join("; ")
    ));
    let risks = facts.effects.iter().flat_map(|one| &one.risks);
    let risks: std::collections::BTreeMap<_, _> = risks.collect();
    let risks = risks
        .into_iter()
        .map(|(name, risk)| note(format!("Risk of {name}: {risk}.")));
    Section::new("effects", "What each remedy saves here per request")
        .summary(baseline)
        .summary(table)
        .summary(facts.model.as_ref().map(bounds).unwrap_or_default())
        .summary(risks.collect::<Vec<Block>>())
}

/// What shows that a remedy acted, or how its saving was computed.
fn acted(effect: &Effect) -> Text {
    let counts = effect.acted.iter();
    let counts = counts.map(|one| {
        let (times, of) = (Count(one.times), Count(one.of));
        format!("{times} of {of} {}", one.what)
    });
    let computed = effect.computed.iter().map(|one| {
        let age = format!("measured: max-age {} s", one.max_age_s);
        match (one.requests_per_s, one.rate_is_measured) {
            (None, _) => format!("{age}; assumed: each request finds an entry"),
            (Some(rate), true) => format!("{age}, {} requests/s for this URL", Rate(rate)),
            (Some(rate), false) => {
                let rate = Rate(rate);
                format!("{age}; assumed: {rate} requests/s for this URL, as in the baseline")
            }
        }
    });
    let never = effect.inactive.iter().map(|words| (*words).to_owned());
    let all: Vec<String> = counts.chain(computed).chain(never).collect();
    Text::plain(all.join("; "))
}

/// The bounds of distance and caching, by the model.
fn bounds(bounds: &ModelBounds) -> Vec<Block> {
    let words = text!(
        "Bounds by the model, for {} at a round trip of {} ({} predicted, {} measured):",
        &*bounds.variant,
        Time(bounds.rtt_ms),
        Time(bounds.predicted_ms),
        Time(bounds.measured_ms)
    );
    let table = Rows::of(&bounds.what_if)
        .column("bound", |one| one.remedy.words())
        .column("saves", |one| Time(one.saves_ms))
        .column("once all is reused", |one| {
            one.saves_when_reused_ms.map(Time)
        })
        .table();
    vec![note(words), Block::Table(table)]
}

fn lives(run: &Run, charts: &Charts) -> Section {
    let carried = |one: &&PerConnection| one.classes.iter().any(|class| class.1 > 0);
    let rows: Vec<&PerConnection> = charts.per_connection.iter().filter(carried).collect();
    let classes = rows.first().map_or(&[][..], |one| &one.classes[..]);
    let classes: Vec<String> = classes.iter().map(|class| class.0.clone()).collect();
    let counts = |one: &&PerConnection| one.classes.iter().map(|class| class.1).collect();
    let table =
        populations::per_connection("variant", &rows, |one| one.name.as_str(), &classes, counts);
    let words =
        "The first requests of each variant's first round on the connections that carried them.";
    Section::new("connections", "Connections")
        .full(timeline::chart(run, &charts.timeline, words))
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
    let is_measured = facts.counted.requests.total > 0;
    let warmup: u64 = facts.variants.iter().map(|one| one.warmup.requests).sum();
    let words = "The server also received {} of warm-up and preflight.";
    let warmup =
        (warmup > 0 && is_measured).then(|| note(text!(words, counted(warmup, "request"))));
    // connections that are kept use up no ports
    let opens_each = facts.variants.iter().any(|one| !one.keepalive);
    let limit = facts.ports.filter(|_| opens_each);
    let limit = limit.map(|limit| note(ports_run_out(&limit)));
    Section::new("sockets", "Outside the figures")
        .weighing(Weight::Detail)
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
        Text::prose(
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

/// The tone of a variant: that of the connections that its requests mostly find.
fn tone(keepalive: bool) -> Tone {
    if keepalive { Tone::Reused } else { Tone::Fresh }
}

/// The tone of the `nth` variant on all charts.
fn variant_tone(variants: &[VariantFacts], nth: usize) -> Tone {
    let kept: Vec<bool> = variants.iter().map(|one| one.keepalive).collect();
    series_tone(&kept, nth)
}

/// The tone of the `nth` of several variants: from blue on for those that keep connections, from
/// orange on for the others, as for reused and new connections.
fn series_tone(kept: &[bool], nth: usize) -> Tone {
    // taken from both ends, so that up to eight never share one
    const TONES: [u8; GROUPS] = [0, 2, 3, 6, 7, 5, 4, 1];
    let is_alike = |keep: &&bool| **keep == kept[nth];
    if nth >= GROUPS {
        return Tone::Plain;
    }
    if kept.iter().filter(is_alike).count() == 1 {
        return tone(kept[nth]);
    }
    let before = kept[..nth].iter().filter(is_alike).count();
    Tone::Series(
        TONES[if kept[nth] {
            before
        } else {
            GROUPS - 1 - before
        }],
    )
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
