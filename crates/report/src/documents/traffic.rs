//! The page of observed traffic (`watch`, `audit`, a server's ledger): which setup was wasted,
//! where, why, and what to change.

mod destinations;
mod inputs;
mod over_time;
mod processor_time;
mod requests;

pub use inputs::{LadderFacts, ladder};
pub use requests::answers;

use super::common::{
    caveats_beyond, findings, findings_without_costs, method, page as start, program,
};
use super::populations;
use crate::page::*;
use destinations::{connections, destinations};
use inputs::{inputs, upstreams};
use intact_document::{Facts, Severity};
use intact_findings::ObservedParts;
use intact_ledger::{Producer, Run, Vantage};
use intact_reading::Reading;
use intact_traffic::{LevelShift, Loss, NextStep, ObservedFacts, Shifted};
use intact_units::Quantity::{RoundShare, Time};
use intact_units::plural::{self, counted};
use over_time::over_time;
use processor_time::processor_time;
use requests::{first_calls, fresh_and_reused, idle_times};

/// Destinations that a terminal shows.
const DESTINATIONS: usize = 20;

pub(super) fn page<'a>(run: &'a Run, parts: &'a ObservedParts) -> Page<'a> {
    let ObservedParts {
        facts,
        charts,
        audit,
    } = parts;
    let mut page = start(run, facts, || program(run));
    let shift = charts.changes.first();
    let shift = shift.filter(|_| run.producer != Producer::Watch);
    page.headline = shift.map_or_else(|| headline(facts, facts.is_near(run)), since);
    page.facts(totals(run, facts));
    page.section(match facts.is_near(run) {
        // what a setup costs on one machine is no argument
        true => findings_without_costs(&facts.findings),
        false => findings(&facts.findings, ""),
    });
    page.section(next(&facts.next));
    let counted = audit.as_ref().and_then(|audit| upstreams(&audit.inputs));
    page.section(counted);
    page.section(
        Section::new("destinations", "Destinations")
            .summary(destinations(&facts.destinations).brief(DESTINATIONS)),
    );
    let opened = &facts.totals.traffic.connections.opened;
    page.section(over_time(run, charts, !opened.is_unknown()));
    page.section(fresh_and_reused(&facts.totals, charts));
    page.section(first_calls(&facts.destinations));
    page.section(idle_times(&facts.totals, charts));
    page.section(connections(run, facts, charts));
    page.section(processor_time(facts.cpu.as_ref()));
    page.section(audit.as_ref().map(|audit| inputs(&audit.inputs)));
    page.caveats = caveats_beyond(&facts.verdict, &facts.caveats);
    if !facts.totals.inferred.is_empty() {
        let reasons = facts.totals.inferred.join("; ");
        page.caveats.push(text!(
            "Figures with ~ are inferred, not observed: {}.",
            reasons
        ));
    }
    page.method = Some(method(run, &how(run.vantage), Vec::new()));
    let table = move || destinations(&facts.destinations);
    page.csv("destinations.csv", "the destinations as CSV", table);
    page
}

/// The headline of a run in which something changed for good.
fn since(step: &LevelShift) -> Option<Headline> {
    let (before, after) = (&step.before, &step.after);
    let gain = match step.shifted {
        Shifted::Reuse => after.known_reuse > before.known_reuse,
        Shifted::Latency => after.mean_ms < before.mean_ms,
    };
    let assessment = Assessment::good_if(gain);
    let before_ms = before.mean_ms.filter(|mean| *mean > 0.0);
    // a difference that may be none is no headline
    let difference = step.difference_ms.filter(|one| one.excludes_zero());
    let (number, caption) = match (difference, before_ms) {
        (Some(difference), Some(before)) => (
            HeadlineShare::saved(-difference.value / before),
            "of the time of a request",
        ),
        _ => {
            let not_reused = not_reused(&after.reuse);
            let number = HeadlineShare::of_cell(&not_reused)?;
            (number, "of the requests reused no connection")
        }
    };
    let caption = format!("{caption} since {}", step.moment());
    Headline::new(number, assessment, caption)
}

/// What was lost, or the share of requests that reused no connection. Where the destinations are
/// near (`is_near`), time is no argument: the share of the connections that were not needed.
pub(super) fn headline(facts: &ObservedFacts, is_near: bool) -> Option<Headline> {
    let totals = &facts.totals;
    let is_grave = facts
        .findings
        .iter()
        .any(|finding| finding.severity > Severity::Info);
    let traffic = &totals.traffic;
    let is_complete = traffic.requests.total.is_known()
        && traffic.connections.opened.is_known()
        && traffic.connections.needed.is_known()
        && traffic.reuse.is_known();
    let is_clear = is_complete && facts.any_success() && facts.has_evidence_of_no_gain();
    let assessment = match (is_grave, is_clear) {
        (true, _) => Assessment::Bad,
        (false, true) => Assessment::Good,
        (false, false) => Assessment::Neutral,
    };
    let leading = totals.leading_loss().filter(|_| facts.any_success());
    if let Some((loss, share)) = leading {
        let caption = match loss {
            Loss::Lookups => text!("of {} failed", counted(totals.lookups.seen, "lookup")),
            Loss::Time => "of the time went to requests without a complete response".into(),
            Loss::Requests => text!(
                "of {} got no complete response",
                counted(totals.counted.requests.total, "request")
            ),
            Loss::Dials => text!(
                "of {} failed",
                counted(totals.counted.connections.dials().1, "connection attempt")
            ),
        };
        return Headline::new(HeadlineShare::lost(share), Assessment::Bad, caption);
    }
    let (avoidable, opened) = (totals.counted.avoidable, totals.counted.connections.opened);
    if is_near && is_complete && avoidable > 0 {
        let number = HeadlineShare::lost(avoidable as f64 / opened as f64);
        let caption = text!("of {} were not needed", counted(opened, "connection"));
        return Headline::new(number, assessment, caption);
    }
    let wasted = Cell::reading(&totals.wasted_share, RoundShare);
    match (HeadlineShare::of_cell(&wasted), traffic.reuse.is_unknown()) {
        (Some(number), _) => {
            let caption = "of the time was setup of connections that were not needed";
            // what else is wrong has its findings: nothing is lost here
            let assessment = match assessment {
                Assessment::Bad if !totals.wasted_share.is_positive() => Assessment::Neutral,
                other => other,
            };
            Headline::new(number, assessment, caption)
        }
        (None, false) => {
            let cell = not_reused(&traffic.reuse);
            let cell = cell.inferred_if(!totals.inferred.is_empty());
            let number = HeadlineShare::of_cell(&cell)?;
            let caption = text!(
                "of {} reused no connection",
                counted(totals.counted.requests.total, "request")
            );
            Headline::new(number, assessment, caption)
        }
        (None, true) => None,
    }
}

/// The share of requests that reused no connection.
fn not_reused(reuse: &Reading) -> Cell {
    Cell::reading(&Reading::known(1.0).minus(reuse), RoundShare)
}

fn totals(run: &Run, facts: &ObservedFacts) -> Vec<Fact> {
    let totals = &facts.totals;
    let inferred = |cell: Cell| cell.inferred_if(!totals.inferred.is_empty());
    let traffic = &totals.traffic;
    let (requests, connections) = (&traffic.requests, &traffic.connections);
    let noun = match run.vantage {
        // requests without a connection do not show their client
        Vantage::Server if !connections.opened.is_unknown() => "client",
        _ => "destination",
    };
    let open_before = (totals.open_before > 0).then_some(totals.open_before);
    // a clock that is too coarse shows no time
    let waiting = totals.outbound_ms.filter(|ms| *ms > 0.0);
    let lookups = &totals.lookups;
    let looked_up = Some(lookups.seen).filter(|seen| *seen > 0);
    vec![
        Fact::counted(facts.destinations.len() as u64, noun),
        Fact {
            value: inferred(Cell::count(&requests.total)),
            ..Fact::read(&requests.total, "request", "").repeated_if(requests.total.is_known())
        },
        Fact::read(&connections.opened, "connection", "opened")
            .repeated_if(connections.opened.is_known()),
        Fact::new("open before", open_before),
        Fact::new("needed", inferred(Cell::count(&connections.needed)))
            .repeated_if(connections.needed.is_known()),
        Fact::new("reused", inferred(populations::reuse(&traffic.reuse)))
            .repeated_if(traffic.reuse.is_known()),
        Fact::new("waiting for responses", waiting.map(Time)),
        Fact::new(plural::of(lookups.seen, "lookup"), looked_up),
        Fact::failures(&requests.failures, "request"),
        Fact::failures(&connections.failures, "connection attempt"),
        Fact::failures(&lookups.failed.into(), "lookup"),
    ]
}

/// The commands to run next.
pub(super) fn next(steps: &[NextStep]) -> Section {
    let text: String = steps
        .iter()
        .map(|one| format!("# {}\n{}\n", one.purpose, one.command))
        .collect();
    let lines = text.lines().map(str::to_owned);
    let commands = Block::Code(lines.collect());
    Section::new("next", "Next")
        .weighing(Weight::Asked)
        .summary(commands)
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
            "{} A connection is avoidable if it was opened beyond the number that the most requests at once to its destination need, and \
             not in the place of one that the server ended. The cost of avoidable \
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
