//! The page of observed traffic (`watch`, `audit`, a server's ledger): which setup was wasted,
//! where, why, and what to change.

mod destinations;
mod inputs;
mod over_time;
mod processor_time;
mod requests;

pub use inputs::{InputFacts, LadderFacts, ladder};
pub use requests::answers;

use super::common::{caveats_beyond, findings, method, page as start, program, sentences};
use super::populations;
use crate::json;
use crate::page::*;
use destinations::{connections, destinations, has_connections, needed};
use inputs::inputs;
use intact_document::Severity;
use intact_document::body_arrival::BodyArrivalFacts;
use intact_ledger::{Producer, Run, Vantage};
use intact_traffic::{Charts, LevelShift, Loss, NextStep, ObservedFacts, Shifted};
use intact_units::Quantity::{Count, RoundShare, Time};
use intact_units::plural::{self, counted};
use over_time::over_time;
use processor_time::processor_time;
use requests::{first_calls, fresh_and_reused, idle_times};

/// Destinations that a terminal shows.
const DESTINATIONS: usize = 20;

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

pub(super) fn page(one: TrafficRun<'_>) -> Page<'_> {
    let TrafficRun {
        run, facts, charts, ..
    } = one;
    let mut page = start(run, || program(run));
    let shift = charts.changes.first();
    let shift = shift.filter(|_| run.producer != Producer::Watch);
    page.headline = shift.map_or_else(|| headline(facts), since);
    page.verdict = sentences(&facts.verdict);
    page.facts = totals(run, facts);
    page.section(findings(&facts.findings, ""));
    page.section(next(&facts.next));
    page.section(
        Section::new("destinations", "Destinations")
            .summary(destinations(&facts.destinations).brief(DESTINATIONS)),
    );
    page.section(over_time(run, charts));
    page.section(fresh_and_reused(&facts.totals, charts));
    page.section(first_calls(&facts.destinations));
    page.section(idle_times(&facts.totals, charts));
    page.section(connections(one));
    page.section(processor_time(facts.cpu.as_ref()));
    page.section(answers(one.answers));
    if let Some(packets) = one.ladder {
        page.section(ladder(packets));
    }
    page.section(inputs(one.inputs));
    page.caveats = caveats_beyond(&facts.verdict, &facts.caveats);
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
    let before_ms = before.mean_ms.filter(|mean| *mean > 0.0);
    let (number, caption) = match (step.difference_ms, before_ms) {
        (Some(difference), Some(before)) => (
            HeadlineShare::saved(-difference.value / before),
            "of the time of a request",
        ),
        _ => {
            let not_reused = not_reused(after.reuse, after.reuse_range);
            let number = HeadlineShare::of_cell(&not_reused)?;
            (number, "of the requests reused no connection")
        }
    };
    let caption = format!("{caption} since {}", step.moment());
    Headline::new(number, assessment, caption)
}

/// What was lost, or the share of requests that reused no connection.
pub(super) fn headline(facts: &ObservedFacts) -> Option<Headline> {
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
    let leading = totals.leading_loss().filter(|_| facts.any_success());
    if let Some((loss, share)) = leading {
        let caption = match loss {
            Loss::Lookups => text!("of {} failed", counted(totals.lookups.total, "lookup")),
            Loss::Time => "of the time went to requests without a complete response".into(),
            Loss::Requests => text!(
                "of {} got no complete response",
                counted(totals.requests.total, "request")
            ),
        };
        return Headline::new(HeadlineShare::lost(share), Assessment::Bad, caption);
    }
    match (totals.wasted_share, totals.reuse) {
        (Some(share), _) => {
            let caption = "of the time was setup of connections that were not needed";
            // what else is wrong has its findings: nothing is lost here
            let assessment = match assessment {
                Assessment::Bad if share <= 0.0 => Assessment::Neutral,
                other => other,
            };
            Headline::new(HeadlineShare::lost(share), assessment, caption)
        }
        (None, Some(reuse)) => {
            let cell = not_reused(Some(reuse), totals.reuse_range);
            let cell = cell.inferred_if(!totals.inferred.is_empty());
            let number = HeadlineShare::of_cell(&cell)?;
            let caption = text!(
                "of {} reused no connection",
                counted(totals.requests.total, "request")
            );
            Headline::new(number, assessment, caption)
        }
        (None, None) => None,
    }
}

/// The share of requests that reused no connection, or its range.
fn not_reused(reuse: Option<f64>, range: Option<[f64; 2]>) -> Cell {
    let range = range.map(|[low, high]| [1.0 - high, 1.0 - low]);
    Cell::ranged(reuse.map(|reuse| 1.0 - reuse), range, RoundShare)
}

fn totals(run: &Run, facts: &ObservedFacts) -> Vec<Fact> {
    let totals = &facts.totals;
    let inferred = |cell: Cell| cell.inferred_if(!totals.inferred.is_empty());
    let noun = match run.vantage {
        // requests without a connection do not show their client
        Vantage::Server if has_connections(totals) => "client",
        _ => "destination",
    };
    let dials: u64 = totals.connections.failed.values().sum();
    let lookups = (totals.lookups.total > 0).then(|| Fact::counted(totals.lookups.total, "lookup"));
    let open_before = (totals.open_before > 0).then_some(totals.open_before);
    let opened = if has_connections(totals) {
        Fact::counted_as(totals.connections.opened, "connection", "opened")
    } else {
        Fact::new("connections opened", Cell::default())
    };
    // a clock that is too coarse shows no time
    let waiting = totals.outbound_ms.filter(|ms| *ms > 0.0);
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
        Fact::new("waiting for responses", waiting.map(Time)),
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
