//! The page of a comparison of programs: did the fix help, by how much, and what became of the findings.

use super::by_round;
use super::download::Download;
use super::environment::environment;
use super::parts::{Cell, Columns, FindingGroup, sentence};
use super::{Assessment, Fact, Figure, Headline, Method, Section, Table, when};
use crate::json;
use crate::number::maybe_percent;
use crate::svg::{self, Tone};
use intact_findings::compare::{
    CompareFacts, CountDifference, FindingChange, FindingState, ProgramFacts, RoundFigures,
    TimeDifference,
};
use intact_ledger::Run;
use intact_units::number::{count, percent, tick, time, whole_percent};

/// Programs in one picture.
const PROGRAMS: usize = 8;
/// Findings whose fate is tabled.
const CHANGES: usize = 100;

/// One comparison, as findings understand it.
#[derive(Clone, Copy)]
pub struct CompareRun<'a> {
    /// The head of its ledger.
    pub run: &'a Run,
    /// Its facts.
    pub facts: &'a CompareFacts,
}

pub(super) fn chapter(one: CompareRun<'_>, prefix: String) -> serde_json::Result<Section> {
    let CompareRun { run, facts } = one;
    // they begin with the name of a program
    let mut verdict = facts.verdict.iter().map(|words| format!("{words}."));
    let words = verdict.next().unwrap_or_default();
    let document = Download::json(
        "compare.json",
        "everything as JSON",
        &json::compare_compact(run, facts)?,
    );
    let figures = [
        bars(facts),
        over_rounds(facts, "wall", "Wall time of each run", |round| {
            round.wall_ms
        }),
        over_rounds(facts, "cpu", "CPU time of each run", |round| round.cpu_ms),
    ];
    let tables = [
        Some(programs(&facts.variants)),
        times(&facts.comparisons),
        counts(&facts.counts),
        changes(&facts.changes),
    ];
    let caveats = facts.caveats.iter();
    Ok(Section {
        prefix,
        heading: None,
        headline: headline(facts, words),
        further: verdict.collect(),
        facts: sums(facts),
        findings: FindingGroup::all(&facts.findings),
        figures: figures.into_iter().flatten().collect(),
        tables: tables.into_iter().flatten().collect(),
        caveats: caveats.map(|caveat| sentence(&caveat.message)).collect(),
        method: method(run, facts),
        downloads: vec![document, rounds_csv(facts)],
    })
}

/// The first statistic of the second program against the first, and what it says as a number.
fn headline(facts: &CompareFacts, words: String) -> Headline {
    let shown = facts
        .comparisons
        .iter()
        .find(|one| one.saved_share.is_some());
    let (number, standing, caption) = match shown {
        Some(TimeDifference {
            saved_share: Some(share),
            significant: Some(true),
            statistic,
            ..
        }) => {
            let (sign, standing, what) = if share.value >= 0.0 {
                ("−", Assessment::Good, "less")
            } else {
                ("+", Assessment::Bad, "more")
            };
            let mut ends = [share.low.abs(), share.high.abs()];
            ends.sort_by(f64::total_cmp);
            (
                format!("{sign}{}", whole_percent(share.value.abs())),
                standing,
                format!(
                    "{what} {} for a run (95 % interval {} to {})",
                    statistic_words(statistic),
                    percent(ends[0]),
                    percent(ends[1])
                ),
            )
        }
        Some(one) => (
            "no difference".to_owned(),
            Assessment::Neutral,
            format!("in {} that could be shown", statistic_words(one.statistic)),
        ),
        None => {
            let opened = |one: &ProgramFacts| count(one.connections.opened);
            let told: Vec<String> = facts.variants.iter().take(2).map(opened).collect();
            (
                told.join(" → "),
                Assessment::Neutral,
                "connections opened".to_owned(),
            )
        }
    };
    Headline {
        number,
        standing,
        caption,
        sentences: words,
    }
}

fn statistic_words(statistic: &str) -> &str {
    match statistic {
        "wall" => "wall time",
        "cpu" => "CPU time",
        "outbound" => "time waiting for answers",
        other => other,
    }
}

fn sums(facts: &CompareFacts) -> Vec<Fact> {
    let mut sums = vec![
        Fact::new("programs", facts.variants.len().to_string()),
        Fact::new("rounds of each", facts.rounds.to_string()),
        Fact::new("requests", count(facts.requests.total)),
        Fact::new("connections opened", count(facts.connections.opened)),
        Fact::new("reused", maybe_percent(facts.reuse)),
    ];
    let failures = facts.requests.failures();
    if failures > 0 {
        sums.push(Fact::alarm("requests failed", count(failures)));
    }
    sums
}

/// The first program is what the others are held against.
fn tone(nth: usize) -> Tone {
    if nth == 0 { Tone::Plain } else { Tone::Reused }
}

fn bars(facts: &CompareFacts) -> Option<Figure> {
    let bars: Vec<svg::Bar> = facts
        .variants
        .iter()
        .take(PROGRAMS)
        .enumerate()
        .filter_map(|(nth, program)| {
            let wall = program.wall_ms?;
            Some(svg::Bar {
                name: program.name.clone(),
                tone: tone(nth),
                value: wall.mean,
                interval: None,
                words: format!(
                    "{} ({} to {})",
                    time(wall.mean),
                    time(wall.min),
                    time(wall.max)
                ),
            })
        })
        .collect();
    if bars.is_empty() {
        return None;
    }
    let notes = vec![
        "Mean wall time of a run, with the shortest and the longest. Whether programs differ is for the comparison round by round to say.".to_owned(),
    ];
    let picture = svg::Bars { bars, label: tick };
    Some(Figure::new(
        "means",
        "Wall time of the programs",
        picture,
        notes,
    ))
}

fn over_rounds(
    facts: &CompareFacts,
    id: &'static str,
    title: &str,
    of: fn(&RoundFigures) -> Option<f64>,
) -> Option<Figure> {
    let lines: Vec<svg::Line> = facts
        .variants
        .iter()
        .take(PROGRAMS)
        .enumerate()
        .map(|(nth, program)| {
            let each = program.rounds.iter();
            let each = each.filter_map(|round| Some((round.round, of(round)?)));
            by_round::line(nth, &program.name, each)
        })
        .collect();
    let picture = by_round::picture(lines, Vec::new())?;
    let notes = vec![
        "By round. What befell all programs in one round cancels out in the comparison.".to_owned(),
    ];
    Some(Figure::new(id, title, picture, notes))
}

fn programs(variants: &[ProgramFacts]) -> Table {
    let each = |sum: u64, one: &ProgramFacts| {
        let rounds = one.rounds.len();
        Cell::value((rounds > 0).then(|| sum as f64 / rounds as f64), per_run)
    };
    Columns::over(variants)
        .column("program", "", |one| Cell::text(&one.name))
        .column("wall", "mean", |one| {
            Cell::time(one.wall_ms.map(|wall| wall.mean))
        })
        .column("CPU", "mean", |one| {
            Cell::time(one.cpu_ms.map(|cpu| cpu.mean))
        })
        .column("requests", "of a run", |one| {
            let mut cell = each(one.requests.total, one);
            if !one.inferred.is_empty() {
                cell.words.insert(0, '~');
            }
            cell
        })
        .column("failed", "of all runs", |one| {
            Cell::failures(one.requests.failures())
        })
        .column("opened", "connections of a run", |one| {
            each(one.connections.opened, one)
        })
        .column("needed", "connections of a run", |one| {
            each(one.connections.needed, one)
        })
        .column("reused", "share of requests", |one| Cell::share(one.reuse))
        .column("TLS handshakes", "of a run", |one| {
            each(one.handshakes.total(), one)
        })
        .column("lookups", "of a run", |one| each(one.lookups, one))
        .column("wasted", "setup of a run that was not needed", |one| {
            let rounds = one.rounds.len().max(1) as f64;
            Cell::time(one.wasted_ms.map(|ms| ms / rounds))
        })
        .table("programs", "Programs, one run each on average")
}

fn per_run(value: f64) -> String {
    if value.fract() == 0.0 {
        count(value as u64)
    } else {
        format!("{value:.1}")
    }
}

fn times(comparisons: &[TimeDifference]) -> Option<Table> {
    if comparisons.is_empty() {
        return None;
    }
    let table = Columns::over(comparisons)
        .column("of", "", |one| {
            Cell::text(format!("{} against {}", one.b, one.a))
        })
        .column("statistic", "", |one| {
            Cell::text(statistic_words(one.statistic))
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
        .column("share", "with its 95 % interval", |one| {
            Cell::interval(one.saved_share, percent)
        })
        .column("verdict", "", |one| Cell::differs(one.significant))
        .table(
            "times",
            "Times, round by round: what the second saves against the first",
        );
    Some(table)
}

fn counts(counted: &[CountDifference]) -> Option<Table> {
    if counted.is_empty() {
        return None;
    }
    let table = Columns::over(counted)
        .column("of", "", |one| {
            Cell::text(format!("{} against {}", one.b, one.a))
        })
        .column("count", "", |one| Cell::text(one.count.replace('_', " ")))
        .column("first", "mean of a run", |one| {
            Cell::value(Some(one.a_mean), per_run)
        })
        .column("second", "mean of a run", |one| {
            Cell::value(Some(one.b_mean), per_run)
        })
        .column("fewer", "with its 95 % interval", |one| {
            Cell::interval(one.reduction, |value| format!("{value:.1}"))
        })
        .column("verdict", "", |one| Cell::differs(one.significant))
        .table("counts", "Counts, round by round");
    Some(table)
}

fn changes(all: &[FindingChange]) -> Option<Table> {
    let shown = &all[..all.len().min(CHANGES)];
    if shown.is_empty() {
        return None;
    }
    let mut table = Columns::over(shown)
        .column("rule", "", |one| Cell::text(one.finding.rule))
        .column("is", "", |one| match one.fate {
            FindingState::Gone => Cell::text("gone"),
            FindingState::Unchanged => Cell::text("still there"),
            FindingState::New => Cell {
                alarm: true,
                ..Cell::text("new")
            },
        })
        .column("with", "", |one| Cell::text(&one.b))
        .column("at", "", |one| Cell::text(&one.finding.subject))
        .column("finding", "", |one| Cell::text(&one.finding.claim))
        .table("changes", "What became of the first program's findings");
    if shown.len() < all.len() {
        let told = format!("{} of {}; the JSON has all.", shown.len(), all.len());
        table.notes.push(told);
    }
    Some(table)
}

fn method(run: &Run, facts: &CompareFacts) -> Method {
    let first = if facts.rounds > 1 {
        "The programs ran in interleaved rounds under watch, each run a process of its own; the first round warmed up and is left out. Programs are compared round by \
         round, so that what both met in the same minute cancels out. Intervals are 95 % t intervals over rounds."
    } else {
        "Each program ran once: what differs may be chance, so there are no intervals."
    };
    let second = "Connections are avoidable when they were opened beyond what the most requests at once to their destination needed, within one run.";
    let mut told = vec![
        ("Command", run.argv.join(" ")),
        ("Started", when(&run.started)),
    ];
    told.extend(environment(run));
    told.retain(|(_, words)| !words.trim().is_empty());
    Method {
        paragraphs: vec![first.to_owned(), second.to_owned()],
        facts: told,
    }
}

fn rounds_csv(facts: &CompareFacts) -> Download {
    let field = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let rows = facts.variants.iter().flat_map(|program| {
        program.rounds.iter().map(move |round| {
            vec![
                program.name.clone(),
                round.round.to_string(),
                field(round.wall_ms),
                field(round.cpu_ms),
                field(round.outbound_ms),
                round.requests.to_string(),
                round.failed.to_string(),
                round.connections.to_string(),
                round.avoidable.to_string(),
            ]
        })
    });
    let head = [
        "program",
        "round",
        "wall_ms",
        "cpu_ms",
        "outbound_ms",
        "requests",
        "failed",
        "connections",
        "avoidable",
    ];
    Download::csv("rounds.csv", &head, rows).called("the rounds as CSV")
}
