//! The page of a comparison of programs: whether the change helped, by how much, and the state of
//! each finding.

use super::common::{
    by_round, each_part, in_chart, method, page as start, round_line, significance,
};
use super::likeness;
use super::populations;
use crate::page::*;
use intact_document::cpu::{ProgramWork, WorkShares};
use intact_document::traffic_readings::TrafficReadings;
use intact_document::{ClaimKind, Severity};
use intact_experiments::compare::{
    COMMIT_AXIS, CompareFacts, ComparedFigure, CountStatistic, FigureChange, FindingChange,
    FindingState, PlaceChange, ProgramFacts, RoundFigures, TimeStatistic, programs_of,
};
use intact_ledger::{Run, Variant};
use intact_reading::Reading;
use intact_statistics::Interval;
use intact_units::Quantity::{Change, Mean, MeanChange, Share, Time, TimeChange};
use intact_units::plural;

pub(super) fn page<'a>(run: &'a Run, facts: &'a CompareFacts) -> Page<'a> {
    let names = || {
        let names = programs_of(run).iter().map(|one| one.name.as_str());
        names.collect::<Vec<&str>>().join(" with ")
    };
    let mut page = start(run, facts, names);
    page.headline = headline(facts);
    // a sentence begins with the name of a program
    page.verdict = facts
        .verdict
        .sentences()
        .map(|words| text!("{}.", Text::prose(words)))
        .collect();
    page.facts(totals(facts));
    let [gone, new] = match (facts.is_experiment, &facts.like) {
        (true, _) => ["Findings that are gone", "New findings, and what to change"],
        (false, None) => [
            "Findings of the first ledger only",
            "Findings of a further ledger only, and what to change",
        ],
        (false, Some(_)) => [
            "Findings of production only",
            "Findings of a test only, and what to change",
        ],
    };
    page.section(likeness::section(facts.like.as_ref()));
    page.section(commits(run));
    // whether the test is alike comes before what is wrong with it
    let new = Section::new("new", new);
    let (new, new_of_test) = match &facts.like {
        None => (Some(new), None),
        Some(_) => (None, Some(new)),
    };
    page.section(new.map(|new| changes(facts, FindingState::New, new)));
    let title = match (facts.is_experiment, facts.rounds) {
        (false, _) => "Ledgers",
        (true, 0 | 1) => "Programs",
        (true, _) => "Programs, one run each on average",
    };
    page.section(Section::new("programs", title).summary(programs(facts)));
    let title = "Against the first program, round by round";
    page.section(Section::new("differences", title).summary(differences(facts)));
    page.section(new_of_test.map(|new| changes(facts, FindingState::New, new)));
    for (state, id, title) in [
        (FindingState::Gone, "gone", gone),
        (
            FindingState::NotTested,
            "not-tested",
            "Findings that were not tested again",
        ),
        (
            FindingState::Undecided,
            "undecided",
            "Findings in too few rounds to decide",
        ),
        (
            FindingState::Unchanged,
            "unchanged",
            "Findings without a shown change",
        ),
    ] {
        page.section(changes(facts, state, Section::new(id, title)));
    }
    page.section(places(facts));
    page.section(faults(facts));
    page.section(work(facts));
    page.section(charts(facts));
    page.section(
        Section::new("findings", "All findings of the programs")
            .full(FindingGroup::all(&facts.findings, "")),
    );
    page.method = Some(method(run, &how(facts), Vec::new()));
    page.csv("rounds.csv", "the rounds as CSV", move || rounds(facts));
    page
}

/// The commits that were compared.
fn commits(run: &Run) -> Section {
    fn axis<'a>(one: &'a Variant, name: &str) -> Option<&'a String> {
        one.axes.get(name)
    }
    let is_asked = run.varied == [COMMIT_AXIS];
    let variants: &[Variant] = if is_asked { programs_of(run) } else { &[] };
    let table = Rows::of(variants)
        .column("program", |one| &one.name)
        .column("commit", |one| axis(one, COMMIT_AXIS))
        .column("subject", |one| axis(one, "subject"))
        .column("uncommitted", |one| axis(one, "uncommitted"))
        .about("changed files of the working tree that are laid over the commit")
        .table();
    Section::new("commits", "Commits").summary(table)
}

/// The places in the code that open connections, and their state.
fn places(facts: &CompareFacts) -> Section {
    let all = facts.changes.iter();
    let all = all.flat_map(|change| {
        change
            .place_changes
            .iter()
            .map(move |place| (change, place))
    });
    let mut rows: Vec<(&FindingChange, &PlaceChange)> = Vec::new();
    for (change, place) in all {
        let is_known = |one: &(&FindingChange, &PlaceChange)| {
            (&one.0.b, &one.1.file, &one.1.function) == (&change.b, &place.file, &place.function)
        };
        if !rows.iter().any(is_known) {
            rows.push((change, place));
        }
    }
    rows.sort_by_key(|(_, place)| place.fate);
    let several = facts.variants.len() > 2;
    let table = Rows::of(&rows)
        .column("program", |row| several.then_some(&row.0.b))
        .column("place", |row| format!("{}:{}", row.1.file, row.1.line))
        .column("function", |row| &row.1.function)
        .column("first", |row| row.1.a_connections)
        .about("connections of one run that findings count, of the first program")
        .column("second", |row| row.1.b_connections)
        .about("the same of the program that is compared with it")
        .column("state", |row| match row.1.fate {
            FindingState::Gone => "gone",
            FindingState::New => "new",
            _ => "stays",
        })
        .table();
    Section::new("places", "Where in the code").summary(table)
}

/// What the programs did under faults.
fn faults(facts: &CompareFacts) -> Section {
    let several = facts.variants.len() > 2;
    let table = Rows::of(&facts.fault_changes)
        .column("program", |one| several.then_some(&one.b))
        .column("fault", |one| one.kind.id())
        .ranked(1, "destination", |one| &one.destination)
        .column("first", |one| &one.a_words)
        .about("program: what it did about the fault")
        .column("second", |one| &one.b_words)
        .about("program: what it did about the fault")
        .column("result", |one| one.result.words())
        .table();
    Section::new("faults", "Under faults").summary(table)
}

/// What the programs took processor time for.
fn work(facts: &CompareFacts) -> Section {
    let share = |of: fn(&WorkShares) -> f64| {
        move |one: &ProgramWork| one.work.as_ref().map(|work| Share(of(work)))
    };
    let table = Rows::of(&facts.work)
        .column("program", |one| &one.name)
        .column("sockets", share(|work| work.socket))
        .about("and packets, in the kernel")
        .column("TLS", share(|work| work.tls))
        .column("lookups", share(|work| work.dns))
        .column("readiness", share(|work| work.readiness))
        .about("waiting for descriptors to become ready")
        .column("other", share(|work| work.other))
        .column("samples", |one| one.work.as_ref().map(|work| work.samples))
        .about("of all rounds")
        .table();
    Section::new("work", "Processor time by kind of work").summary(table)
}

/// The largest difference that was shown, as a number; the others in its caption.
fn headline(facts: &CompareFacts) -> Option<Headline> {
    // what failed is the first sentence: a difference next to it is no result
    if facts.verdict.first()?.kind == ClaimKind::Failed {
        return None;
    }
    let shown = facts.outcomes.iter().find(|one| one.shown().count() > 0);
    let Some((outcome, largest)) = shown.and_then(|one| Some((one, one.shown().next()?))) else {
        return match facts.is_experiment {
            true => undecided(facts),
            false => of_ledgers(facts),
        };
    };
    let change = largest.change?.value;
    let several = facts.variants.len() > 2;
    let whose = several.then(|| format!("{}: ", outcome.b));
    // a multiple has no sign
    let name = match change >= 1.0 {
        true => largest.compared_name(),
        false => largest.name().to_owned(),
    };
    let mut caption = whose.unwrap_or_default() + &name + " per run";
    if let Some(ends) = largest.interval() {
        caption += &format!(" (95 % interval {ends})");
    }
    for one in outcome.shown().skip(1) {
        let amount = one.amount().unwrap_or_default();
        let interval = one.interval().map(|ends| format!(" ({ends})"));
        let interval = interval.unwrap_or_default();
        caption += &format!(", {amount} {}{interval}", one.compared_name());
    }
    let others: Vec<&str> = outcome.not_shown().map(FigureChange::name).collect();
    if !others.is_empty() {
        caption += &format!("; no difference shown in {}", others.join(" or "));
    }
    let is_less = outcome.is_less();
    let assessment = is_less.map_or(Assessment::Neutral, Assessment::good_if);
    if !outcome.unlike.is_empty() {
        caption += "; the programs did not do the same work";
    }
    let number = HeadlineShare::saved(-change);
    Headline::new(number, assessment, Text::prose(&caption))
}

/// The headline where no difference was shown: that of the connections, if their number differs.
fn undecided(facts: &CompareFacts) -> Option<Headline> {
    let outcome = facts.outcomes.first()?;
    let known = || outcome.figures.iter().filter(|one| one.a > 0.0);
    let connections = |one: &&FigureChange| {
        one.figure == ComparedFigure::Count(CountStatistic::Connections) && one.a != one.b
    };
    let one = known().find(connections).or_else(|| known().next())?;
    let reason = match one.significant {
        Some(_) => "but no difference was shown",
        None => "without an interval, so it may be chance",
    };
    let caption = text!(
        "{} per run: {} → {}, {}",
        one.name(),
        one.value(one.a),
        one.value(one.b),
        reason
    );
    let number = HeadlineShare::saved((one.a - one.b) / one.a);
    Headline::new(number, Assessment::Neutral, caption)
}

/// The headline of ledgers: their load may differ, so connections are counted per request.
fn of_ledgers(facts: &CompareFacts) -> Option<Headline> {
    let [first, second, ..] = facts.variants.as_slice() else {
        return None;
    };
    let per_request = |one: &ProgramFacts| {
        let traffic = &one.observed.traffic;
        let opened = &traffic.connections.opened;
        opened.per(&traffic.requests.total).value()
    };
    let (before, after) = (per_request(first)?, per_request(second)?);
    let share = (before > 0.0).then(|| (before - after) / before)?;
    let caption = text!(
        "connections per request: {} → {}; the ledgers were recorded separately",
        format!("{before:.2}"),
        format!("{after:.2}")
    );
    Headline::new(HeadlineShare::saved(share), Assessment::Neutral, caption)
}

fn totals(facts: &CompareFacts) -> Vec<Fact> {
    let rounds = u64::from(facts.rounds);
    let of_each = format!("{} of each", plural::of(rounds, "interleaved round"));
    let programs = facts.variants.len() as u64;
    let compared = if facts.is_experiment {
        vec![
            Fact::counted(programs, "program"),
            Fact::new(of_each, rounds),
        ]
    } else {
        vec![Fact::counted(programs, "stored ledger")]
    };
    let counts = [
        Fact::read(&facts.traffic.requests.total, "request", ""),
        Fact::read(&facts.traffic.connections.opened, "connection", "opened"),
        Fact::new("reused", populations::reuse(&facts.traffic.reuse)),
        Fact::failures(&facts.traffic.requests.failures, "request"),
        Fact::failures(&facts.traffic.connections.failures, "connection attempt"),
    ];
    compared.into_iter().chain(counts).collect()
}

/// A row per program; counts are of one run.
fn programs(facts: &CompareFacts) -> Table {
    fn traffic(one: &ProgramFacts) -> &TrafficReadings {
        &one.observed.traffic
    }
    let each = |reading: &Reading| Cell::reading(reading, Mean);
    let failed = |failures: &Reading| each(failures).alarm_if(failures.is_positive());
    let name = if facts.is_experiment {
        "program"
    } else {
        "ledger"
    };
    Rows::of(&facts.variants)
        .column(name, |one| &one.name)
        .column("wall", |one| one.wall_ms.map(|wall| Time(wall.mean)))
        .about("mean time of a run")
        .ranked(3, "CPU", |one| one.cpu_ms.map(|cpu| Time(cpu.mean)))
        .about("mean of a run")
        .ranked(1, "requests", |one| {
            let inferred = !one.observed.inferred.is_empty();
            each(&traffic(one).requests.total).inferred_if(inferred)
        })
        .if_any("failed", |one| failed(&traffic(one).requests.failures))
        .if_any("not opened", |one| {
            failed(&traffic(one).connections.failures)
        })
        .column("opened", |one| each(&traffic(one).connections.opened))
        .about("connections")
        .ranked(4, "needed", |one| each(&traffic(one).connections.needed))
        .about("connections, for the most requests at once")
        .column("reused", |one| populations::reuse(&traffic(one).reuse))
        .about("share of requests")
        .ranked(5, "TLS", |one| each(&one.handshakes.total()))
        .about("handshakes")
        .ranked(6, "lookups", |one| each(&one.lookups))
        .ranked(2, "wasted", |one| {
            Cell::reading(&one.observed.wasted_ms, Time)
        })
        .about("setup of connections that were not needed")
        .table()
}

/// A time or a count of one program compared with the first.
struct Difference<'a> {
    program: &'a str,
    figure: &'a str,
    first: Cell,
    second: Cell,
    change: Cell,
    share: Option<Interval>,
    result: &'static str,
}

/// Times and counts with their intervals; a count that is equal in all rounds is left out.
fn differences(facts: &CompareFacts) -> Table {
    let times = facts.comparisons.iter().map(|one| Difference {
        program: &one.b,
        figure: match one.statistic {
            TimeStatistic::Outbound => "waiting",
            other => other.words(),
        },
        first: Time(one.a_ms).into(),
        second: Time(one.b_ms).into(),
        change: Cell::interval(one.saved_ms.map(Interval::negated), TimeChange),
        share: one.saved_share.map(Interval::negated),
        result: result(one.significant, one.b_ms < one.a_ms),
    });
    let differ = facts
        .counts
        .iter()
        .filter(|one| one.a_mean != one.b_mean || one.significant == Some(true));
    let counts = differ.map(|one| Difference {
        program: &one.b,
        figure: match one.count {
            CountStatistic::Avoidable => "avoidable",
            CountStatistic::Failed => "failed",
            CountStatistic::Handshakes => "TLS",
            CountStatistic::Memory => "memory (MB)",
            other => other.words(),
        },
        first: Mean(one.a_mean).into(),
        second: Mean(one.b_mean).into(),
        change: Cell::interval(one.reduction.map(Interval::negated), MeanChange),
        share: one.reduction.filter(|_| one.a_mean > 0.0).map(|less| {
            let change = -less.value / one.a_mean;
            less.map(|_| change)
        }),
        result: result(one.significant, one.b_mean < one.a_mean),
    });
    let rows: Vec<Difference<'_>> = times.chain(counts).collect();
    if rows.iter().all(|one| one.change.is_absent()) {
        return Table::default();
    }
    let several = facts.variants.len() > 2;
    Rows::of(&rows)
        .column("program", |one| several.then_some(one.program))
        .column("of one run", |one| one.figure)
        .ranked(1, "first", |one| one.first.clone())
        .about("program, mean over rounds")
        .ranked(2, "second", |one| one.second.clone())
        .about("program, mean over rounds; with more than two, the one that the row names")
        .column("share", |one| match one.share {
            // percentages of multiples are hard to read
            Some(share) if share.value >= 1.0 => text!("{} times", Mean(1.0 + share.value)).into(),
            share => Cell::interval(share, Change),
        })
        .about("the change as a share of the first, with the 95 % interval")
        .ranked(3, "change", |one| one.change.clone())
        .about("from the first, with the 95 % interval")
        .column("result", |one| one.result)
        .table()
}

/// Whether a difference was shown, and its direction.
fn result(significant: Option<bool>, is_less: bool) -> &'static str {
    match significant {
        Some(true) if is_less => "less",
        Some(true) => "more",
        other => significance(other),
    }
}

/// The findings in one state: those that matter on every page, notes in files.
fn changes(facts: &CompareFacts, state: FindingState, section: Section) -> Section {
    let ours = facts.changes.iter().filter(|change| change.fate == state);
    let (grave, notes): (Vec<&FindingChange>, Vec<&FindingChange>) =
        ours.partition(|change| change.finding.severity > Severity::Info);
    let several = facts.variants.len() > 2;
    let item = |change: &&FindingChange| {
        let finding = &change.finding;
        let program = if several {
            format!("{}: ", change.b)
        } else {
            String::new()
        };
        let claim = sentence(&finding.claim);
        let reason = change.not_tested.as_ref();
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        text!(
            "{}{}: {}{} [{}]",
            program,
            finding.subjects(),
            claim,
            Text::prose(&reason),
            finding.rule
        )
    };
    let notes = Block::List(notes.iter().map(item).collect());
    if state != FindingState::New {
        let items = Block::List(grave.iter().map(item).collect());
        return section.summary(items).full(notes);
    }
    let findings: Vec<_> = grave.iter().map(|change| change.finding.clone()).collect();
    section
        .summary(FindingGroup::all(&findings, ""))
        .full(notes)
}

/// The programs in a chart: the first is grey, so that no program with a fix has the colour of
/// what is bad.
fn programs_in_chart(facts: &CompareFacts) -> impl Iterator<Item = (Tone, &ProgramFacts)> {
    let tone = |tone| match tone {
        Tone::Series(0) => Tone::Plain,
        Tone::Series(nth) => Tone::Series(nth - 1),
        other => other,
    };
    in_chart(&facts.variants).map(move |(own, program)| (tone(own), program))
}

fn charts(facts: &CompareFacts) -> Section {
    let bars = programs_in_chart(facts).filter_map(|(tone, program)| {
        let wall = program.wall_ms?;
        let [mean, min, max] = [wall.mean, wall.min, wall.max].map(Time);
        let words = format!("{mean} ({min} to {max})");
        Some(Bar::whole(&program.name, tone, wall.mean, words))
    });
    let bars = Bars(bars.collect());
    let words = "Mean wall time of a run, with the shortest and the longest. To see whether programs differ, read the differences round by round.";
    Section::new("times", "Times of the programs")
        .full(Chart::new(
            "means",
            "Wall time of the programs",
            bars,
            words,
        ))
        .full(over_rounds(
            facts,
            "wall",
            "Wall time of each run",
            |round| round.wall_ms,
        ))
        .full(over_rounds(facts, "cpu", "CPU time of each run", |round| {
            round.cpu_ms
        }))
}

fn over_rounds(
    facts: &CompareFacts,
    id: &'static str,
    title: &str,
    of: fn(&RoundFigures) -> Option<f64>,
) -> Chart {
    let lines = programs_in_chart(facts).map(|(tone, program)| {
        let rounds = program.rounds.iter();
        let rounds = rounds.filter_map(|round| Some((round.round, of(round)?)));
        round_line(tone, &program.name, rounds)
    });
    let words = "By round. What affected all programs in one round cancels out in the comparison.";
    Chart::new(id, title, by_round(lines.collect(), Vec::new()), words)
}

fn how(facts: &CompareFacts) -> [Text; 2] {
    let rounds = if facts.rounds > 1 {
        "The programs ran in interleaved rounds under `watch`, each run as a process of its own. The first round warmed up and is left out. Programs are compared \
         round by round, so that what affected both in the same minute cancels out. Intervals are 95 % t intervals over rounds."
    } else if facts.is_experiment {
        "Each program ran once. A difference may be chance, so there are no intervals."
    } else {
        "The ledgers were recorded separately, each once. A difference may be chance or come from another load, so there are no intervals."
    };
    let avoidable = "A connection is avoidable if it was opened beyond the number that the most requests at once to its destination need, within one run.";
    [Text::prose(rounds), avoidable.into()]
}

/// Every round of every program.
fn rounds(facts: &CompareFacts) -> Table {
    let rows = each_part(&facts.variants, |one| &one.rounds);
    Rows::of(&rows)
        .column("program", |row| &row.0.name)
        .column("round", |row| u64::from(row.1.round))
        .column("wall", |row| row.1.wall_ms.map(Time))
        .column("cpu", |row| row.1.cpu_ms.map(Time))
        .column("outbound", |row| row.1.outbound_ms.map(Time))
        .column("requests", |row| row.1.requests)
        .column("failed", |row| row.1.failed)
        .column("connections", |row| row.1.connections)
        .column("avoidable", |row| row.1.avoidable)
        .table()
}
