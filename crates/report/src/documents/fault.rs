//! The card of a program under faults: each kind at each destination, what the program did, and
//! what to change.

use super::common::{findings_in_full, method, page as start, program};
use crate::page::*;
use intact_ledger::Run;
use intact_reading::Reading;
use intact_servers::fault::{FaultCell, FaultFacts, FaultOutcome, FaultRun};
use intact_units::Quantity::{Count, Time, Timer};
use intact_units::plural::counted;

/// Kinds of faults that the title names; more are `each`.
const KINDS: usize = 4;

pub(super) fn page<'a>(run: &'a Run, facts: &'a FaultFacts) -> Page<'a> {
    let mut page = start(run, facts, || program(run));
    page.command = format!("{} --fault{}", run.producer, kinds(facts));
    page.headline = headline(facts);
    page.facts(totals(facts));
    page.section(findings_in_full(&facts.findings, ""));
    let title = "What the program did when a kept connection failed";
    let section = Section::new("card", title);
    page.section(
        match facts.cells.iter().any(|cell| cell.not_applied.is_none()) {
            true => section.summary(card(facts)),
            // what was never applied is no card
            false => section.full(card(facts)),
        },
    );
    let title = "Requests on both sides";
    let is_any_applied = facts.cells.iter().any(|cell| cell.not_applied.is_none());
    page.section(Section::new("sides", title).full(is_any_applied.then(|| sides(facts))));
    page.section(Section::new("runs", "The runs of the program").full(runs(facts)));
    let seed = run
        .seed
        .map_or_else(Text::default, |seed| Text::plain(seed.to_string()));
    page.method = Some(method(run, &how(facts), vec![("Seed", seed)]));
    page.csv("faults.csv", "the card as CSV", move || sides(facts));
    page
}

/// The kinds of faults, as the option has them: ` stale,drain`.
fn kinds(facts: &FaultFacts) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for id in facts.cells.iter().map(|cell| cell.kind.id()) {
        if !kinds.contains(&id) {
            kinds.push(id);
        }
    }
    match kinds.len() {
        0 => String::new(),
        1..=KINDS => format!(" {}", kinds.join(",")),
        _ => " each".to_owned(),
    }
}

/// The share of the faults that harmed a request, and the worst outcome.
fn headline(facts: &FaultFacts) -> Option<Headline> {
    let applied = || facts.cells.iter().filter(|cell| cell.not_applied.is_none());
    let all = applied().count() as u64;
    if all == 0 {
        return None;
    }
    let harmed = applied().filter(|cell| cell.outcome >= FaultOutcome::Leaked);
    let share = HeadlineShare::lost(harmed.count() as f64 / all as f64);
    let of = text!("of {} that was applied", counted(all, "fault"));
    let of = if all == 1 {
        of
    } else {
        text!("of {} that were applied", counted(all, "fault"))
    };
    let worst = applied().max_by_key(|cell| cell.outcome)?;
    if worst.outcome < FaultOutcome::Leaked {
        let is_missing = |cell: &&FaultCell| cell.is_suited() && cell.not_applied.is_some();
        let missing = facts.cells.iter().filter(is_missing).count();
        let is_clear = facts.is_safe || missing == 0;
        let caption = match is_clear {
            true => text!("{} harmed a request", of),
            false => text!(
                "{} harmed a request; {} show nothing",
                of,
                Count(missing as u64)
            ),
        };
        let assessment = match is_clear {
            true => Assessment::Good,
            false => Assessment::Neutral,
        };
        return Headline::new(share, assessment, caption);
    }
    let assessment = match worst.outcome {
        FaultOutcome::Leaked | FaultOutcome::Undecided => Assessment::Neutral,
        _ => Assessment::Bad,
    };
    let words = match worst.outcome {
        FaultOutcome::Hung if !worst.hung_ms.is_unknown() => {
            text!("hung {}", worst.hung_ms.shown(|ms| Time(ms).to_string()))
        }
        _ => worst.words().into(),
    };
    let request = worst.example.as_deref().unwrap_or("a request");
    let caption = text!(
        "{} harmed a request; the worst: {}, {} ({})",
        of,
        request,
        words,
        &worst.name
    );
    Headline::new(share, assessment, caption)
}

fn totals(facts: &FaultFacts) -> Vec<Fact> {
    let applied = facts.cells.iter().filter(|cell| cell.not_applied.is_none());
    let applied = applied.count() as u64;
    let missing = facts.cells.iter();
    let missing = missing.filter(|cell| cell.not_applied.is_some() && cell.is_suited());
    let mut totals = vec![
        Fact::counted_as(applied, "fault", "applied"),
        Fact::counted_as(facts.counted.requests.total, "request", "sent"),
    ];
    let shown = || facts.cells.iter().filter(|cell| cell.not_applied.is_none());
    let sum = |of: fn(&FaultCell) -> &Reading| {
        let none = Reading::count(0);
        shown().fold(none, |sum, cell| sum.plus(of(cell)))
    };
    for (count, name) in [
        (Reading::count(missing.count() as u64), "not shown"),
        (sum(|cell| &cell.failed), "failed"),
        (sum(|cell| &cell.duplicated), "sent twice"),
    ] {
        let is_any = count.high() > 0.0;
        totals.extend(is_any.then(|| Fact::new(name, Cell::failures(&count))));
    }
    totals
}

fn is_alarm(cell: &FaultCell) -> bool {
    cell.outcome >= FaultOutcome::Undecided
}

fn bad(count: &Reading) -> Cell {
    Cell::count(count).alarm_if(count.high() > 0.0 && !count.is_unknown())
}

fn destination<'a>(facts: &FaultFacts, cell: &'a FaultCell) -> Option<&'a str> {
    let is_other = |other: &FaultCell| other.destination != cell.destination;
    facts
        .cells
        .iter()
        .any(is_other)
        .then_some(cell.destination.as_str())
}

fn wait(cell: &FaultCell) -> Cell {
    let has_hung = cell.hung_ms.high() > 0.0;
    Cell::from(has_hung.then(|| Cell::reading(&cell.hung_ms, Timer)))
}

/// The worst outcomes first: a screen may have no room for all.
fn card(facts: &FaultFacts) -> Table {
    let mut cells = facts.cells.clone();
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.outcome));
    Rows::of(&cells)
        .column("fault", |cell| &cell.name)
        .ranked(1, "destination", |cell| destination(facts, cell))
        .column("outcome", |cell| {
            Cell::from(cell.words()).alarm_if(is_alarm(cell))
        })
        .ranked(2, "wait", wait)
        .about("the longest time that a request waited on the failed connection")
        .ranked(3, "cost", |cell| {
            cell.cost_ms.filter(|ms| *ms > 0.0).map(Time)
        })
        .about("the longest time until a further attempt had a connection")
        .column("failed", |cell| bad(&cell.failed))
        .about("requests that got no complete response in the end")
        .column("twice", |cell| bad(&cell.duplicated))
        .about("requests that are not idempotent, and reached the server twice at least in part")
        .table()
}

fn sides(facts: &FaultFacts) -> Table {
    Rows::of(&facts.cells)
        .column("fault", |cell| &cell.name)
        .column("destination", |cell| &cell.destination)
        .column("outcome", FaultCell::words)
        .figure(0, "struck", |cell| &cell.struck)
        .about("connections that the fault was applied to")
        .column("sent", |cell| cell.sent)
        .about("requests that the program sent, attempts that failed included")
        .column("reached", |cell| Cell::count(&cell.reached))
        .about("requests of which the server received a part at least")
        .column("affected", |cell| Cell::count(&cell.affected))
        .about("requests without a complete response on the failed connection")
        .figure(0, "recovered", |cell| &cell.recovered)
        .column("failed", |cell| bad(&cell.failed))
        .column("twice", |cell| bad(&cell.duplicated))
        .column("cut", |cell| bad(&cell.truncated))
        .about("responses cut short that the program may have taken as complete")
        .column("left open", |cell| Cell::count(&cell.leaked))
        .column("wait", wait)
        .column("cost", |cell| cell.cost_ms.map(Time))
        .table()
}

fn runs(facts: &FaultFacts) -> Table {
    let ended = |one: &FaultRun| one.ending().unwrap_or_else(|| "did not end".to_owned());
    Rows::of(&facts.runs)
        .column("fault", |one| &one.name)
        .column("ended with", ended)
        .column("time", |one| one.wall_ms.map(Time))
        .column("requests", |one| one.requests)
        .column("ok", |one| one.ok)
        .column("struck", |one| one.struck)
        .table()
}

fn how(facts: &FaultFacts) -> Vec<Text> {
    let relay = "A relay carried the connections of the program and applied each fault to connections that had carried a response. It recorded what the program \
                 saw, and which bytes reached the server.";
    let matched = "A request was sent again if a later one on another connection has the same method, full target and body. Where the program sends equal requests \
                   anyway, their number in the run without a fault decides whether the later one is new.";
    let each = "The program ran once without a fault, then once for each kind. Each run is a process of its own.";
    let has_baseline = facts.runs.iter().any(|one| one.is_baseline);
    let paragraphs = [Some(relay), Some(matched), has_baseline.then_some(each)];
    paragraphs.into_iter().flatten().map(Text::prose).collect()
}
