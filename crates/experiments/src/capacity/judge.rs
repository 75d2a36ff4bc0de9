//! Whether a step at one rate, or a window of it, met the conditions; and whether the client or its
//! machine was the limit.
//!
//! In addition to the conditions, requests must not wait longer and longer: then a longer step
//! would miss them. Unless a condition is about failures, at most 1 % of the requests may fail or
//! have an error status. Must not choose the next step.

use super::Conditions;
use super::conditions::is_about_failures;
use crate::bench::{
    BenchFacts, CLIENT_LATE, ErrorResponses, MachineFacts, Saturation, VariantFacts,
};
use intact_document::figures::share;
use intact_document::requirement::Outcome;
use intact_experiment::StepOutcome;
use intact_ledger::{
    Cell, Failure, LoadPurpose, LoadStep, Round, RoundSockets, Run, Tally, Variant,
};
use intact_reading::Why;
use intact_units::number::{time, whole_percent};
use serde::Serialize;

/// The share of failed requests and error responses that no condition allows.
const FAILED: f64 = 0.01;
/// The second half of a step has a median this many times that of the first: requests wait longer
/// and longer.
const GROWTH: f64 = 1.5;
/// The least growth, as a share of the time of the step.
const GROWTH_SHARE: f64 = 0.01;

/// The figures of one step, or of one of its windows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StepFigures {
    /// The number of the step in the run, from 1.
    pub step: u32,
    /// Its purpose.
    pub purpose: LoadPurpose,
    /// Requests that fell due a second.
    pub rate_per_s: f64,
    /// `met`, or `missed`; `client-limit` or `machine-limit`: missed, and the client or the
    /// processors of its machine were the limit; `undecided`: a condition had no value;
    /// `cold-start`: missed while connections were opened, and repeated on open ones.
    pub outcome: &'static str,
    /// Why the conditions did not hold; absent where they did.
    pub reason: Option<String>,
    /// Whether its connections were open before the first request was due.
    pub warm: bool,
    /// Measured requests.
    pub requests: u64,
    /// Those that failed.
    pub failed: u64,
    /// Responses with an error status that the user did not name.
    pub error_responses: u64,
    /// New connections.
    pub connections: u64,
    /// Median latency, in milliseconds.
    pub p50_ms: Option<f64>,
    /// 99th percentile, in milliseconds.
    pub p99_ms: Option<f64>,
    /// Longest latency, in milliseconds.
    pub max_ms: Option<f64>,
    /// Requests that were due while every connection was busy, as a share of all.
    pub queued_share: Option<f64>,
    /// 99 % of the requests started within this time after they were due and a connection was
    /// free, in milliseconds.
    pub scheduling_error_p99_ms: Option<f64>,
    /// CPU time of the client's threads over the time measured on them.
    pub client_busy: Option<f64>,
    /// CPU time of the server over the time measured.
    pub server_busy: Option<f64>,
    /// What all processes of the client's machine did with its processors; absent where that was
    /// not counted.
    pub machine: Option<MachineFacts>,
    /// The sockets of the client's machine before and after the step; absent where they were not
    /// counted.
    pub sockets: Option<RoundSockets>,
}

impl StepFigures {
    /// The outcome, for a search.
    pub fn step_outcome(&self) -> StepOutcome {
        self.outcome.parse().unwrap_or(StepOutcome::Missed)
    }

    /// Whether more requests failed, or had an error status, than any condition allows.
    pub(super) fn is_failing(&self) -> bool {
        let failed = share(self.failed + self.error_responses, self.requests);
        !self.is_met() && failed > Some(FAILED)
    }

    /// Whether the conditions held.
    pub fn is_met(&self) -> bool {
        self.step_outcome() == StepOutcome::Met
    }
}

/// The rounds of a step that are complete, in their order. Empty where it was cut off.
pub(super) fn rounds_of(tally: &Tally, step: u32) -> Vec<&Cell> {
    let mut cells: Vec<&Cell> = tally
        .cells
        .iter()
        .filter(|cell| load(cell).is_some_and(|load| load.step == step))
        .collect();
    cells.sort_by_key(|cell| cell.round);
    cells
}

/// The load of a round.
pub(super) fn load(cell: &Cell) -> Option<&LoadStep> {
    cell.bounds.as_ref()?.load.as_ref()
}

/// Judges a step by all of its rounds; absent where it was cut off.
pub fn judge(run: &Run, tally: &Tally, conditions: &Conditions, step: u32) -> Option<StepFigures> {
    let cells = rounds_of(tally, step);
    figures(run, tally, conditions, &cells)
}

/// Judges the rounds, which have one rate and one variant.
pub(super) fn figures(
    run: &Run,
    tally: &Tally,
    conditions: &Conditions,
    cells: &[&Cell],
) -> Option<StepFigures> {
    let first = cells.first()?;
    let load = load(first)?;
    let facts = facts_of(run, tally, cells, load.rate)?;
    let variant = facts.variants.first()?;
    let (outcome, reason) = match judged(&facts, variant, conditions, run) {
        Judged::Met => (StepOutcome::Met, None),
        // no processor is to blame for error pages, or for connections that the server resets
        Judged::Failed(why) => (StepOutcome::Missed, Some(why)),
        Judged::Missed(why) => {
            let opens = variant.keepalive && variant.counted.connections.opened > 0;
            let cold = (opens && !load.warm).then_some(StepOutcome::ColdStart);
            let other = other_limit(variant).or(cold);
            (other.unwrap_or(StepOutcome::Missed), Some(why))
        }
        Judged::Late(why) => {
            let limit = other_limit(variant).unwrap_or(StepOutcome::ClientLimit);
            (limit, Some(why))
        }
        Judged::Undecided(why) => (StepOutcome::Undecided, Some(why)),
    };
    let open = variant.open_loop.as_ref();
    Some(StepFigures {
        step: load.step,
        purpose: load.purpose,
        rate_per_s: load.rate,
        outcome: outcome.as_str(),
        reason,
        warm: load.warm,
        requests: variant.counted.requests.total,
        failed: variant.counted.requests.failures(),
        error_responses: ErrorResponses::among(&variant.counted.requests.status, run.expect)
            .count(),
        connections: variant.counted.connections.opened,
        p50_ms: variant.latency_ms.p50.value(),
        p99_ms: variant.latency_ms.p99.value(),
        max_ms: variant.latency_ms.max.value(),
        queued_share: open.and_then(|open| open.queued_share.value()),
        scheduling_error_p99_ms: open.and_then(|open| open.scheduling_error_ms.p99.value()),
        client_busy: variant.client_busy,
        server_busy: variant.server_busy,
        machine: variant.machine,
        sockets: variant.sockets,
    })
}

/// The facts of a bench that had only these rounds, at this rate.
pub(super) fn facts_of(run: &Run, tally: &Tally, cells: &[&Cell], rate: f64) -> Option<BenchFacts> {
    let index = cells.first()?.variant?;
    let variant = run.variants.get(index as usize)?;
    let mut axes = variant.axes.clone();
    axes.insert("rate".to_owned(), intact_units::rate::write(rate));
    let mut alone = run.clone();
    alone.variants = vec![Variant {
        name: variant.name.clone(),
        axes,
    }];
    alone.varied.clear();
    let preflight = tally.of_variant(index).find(|cell| cell.round == Some(0));
    let mut only = Tally::new();
    only.cells = preflight
        .into_iter()
        .chain(cells.iter().copied())
        .map(|cell| Cell {
            variant: Some(0),
            bounds: cell.bounds.clone().map(|bounds| Round {
                variant: 0,
                ..bounds
            }),
            ..cell.clone()
        })
        .collect();
    BenchFacts::new(&alone, &only, &[]).ok()
}

/// Whether the conditions hold, or why not.
enum Judged {
    Met,
    /// They do not.
    Missed(String),
    /// The server failed requests at once, which no busy processor explains.
    Failed(String),
    /// Only without the client's lateness may they hold.
    Late(String),
    /// One of them has no value.
    Undecided(String),
}

fn judged(
    facts: &BenchFacts,
    variant: &VariantFacts,
    conditions: &Conditions,
    run: &Run,
) -> Judged {
    let requests = &variant.counted.requests;
    if let Some(why) = variant.no_success {
        return match variant.has_only_errors() {
            true => Judged::Failed(why.to_owned()),
            false => Judged::Missed(why.to_owned()),
        };
    }
    let errors = ErrorResponses::among(&requests.status, run.expect);
    // a processor that is not there makes requests late, it does not reset them
    let late = requests.failed_with(Failure::Timeout);
    let of_failures = |words| match late * 2 > requests.failures() + errors.count() {
        true => Judged::Missed(words),
        false => Judged::Failed(words),
    };
    let mut undecided = None;
    for requirement in conditions.requirements() {
        let verdict = requirement.evaluate(facts);
        if verdict.passed() {
            continue;
        }
        let results = verdict.results();
        let words: Vec<&str> = results.iter().map(|result| result.words()).collect();
        let words = words.join("; ");
        let is_open = |open: fn(&Why) -> bool| {
            results.iter().any(|result| match result.outcome() {
                Outcome::Unknown(reading) | Outcome::Undecided(reading) => {
                    reading.why().is_some_and(open)
                }
                _ => false,
            })
        };
        if is_open(|why| *why == CLIENT_LATE) {
            undecided.get_or_insert(Judged::Late(words));
        } else if is_open(|why| matches!(why, Why::TooFew { .. })) {
            undecided.get_or_insert(Judged::Undecided(words));
        } else {
            return match is_about_failures(requirement) {
                true => of_failures(words),
                false => Judged::Missed(words),
            };
        }
    }
    let failed = match conditions.name_failures() {
        true => errors.count(),
        false => errors.count() + requests.failures(),
    };
    let failed = share(failed, requests.total).filter(|share| *share > FAILED);
    if let Some(failed) = failed {
        return of_failures(format!(
            "{} of the requests failed or had an error status{}",
            whole_percent(failed),
            match errors.count() {
                0 => String::new(),
                _ => format!(" ({})", errors.names()),
            }
        ));
    }
    match growth(variant) {
        Some(words) => Judged::Missed(words),
        None => undecided.unwrap_or(Judged::Met),
    }
}

/// The time of a step, in milliseconds.
fn length_ms(variant: &VariantFacts) -> f64 {
    let rate = variant.rounds.first().and_then(|one| one.requested_per_s);
    let rate = rate.filter(|rate| *rate > 0.0).unwrap_or(f64::INFINITY);
    variant.counted.requests.total as f64 / rate * 1e3
}

/// Whether the median grows from the first to the last round of a step, in words.
fn growth(variant: &VariantFacts) -> Option<String> {
    let (first, last) = (variant.rounds.first()?, variant.rounds.last()?);
    let (early, late) = (first.p50_ms?, last.p50_ms?);
    let grows = late > GROWTH * early && late - early > GROWTH_SHARE * length_ms(variant);
    grows.then(|| {
        format!(
            "requests wait longer and longer: median {} in the first half, {} in the second",
            time(early),
            time(late)
        )
    })
}

/// The limit of a step that missed, if it was not the server. Processors that others use explain a
/// late client, not one that is busy itself.
fn other_limit(variant: &VariantFacts) -> Option<StepOutcome> {
    let open = variant.open_loop.as_ref();
    if variant.client_is_busy() {
        return Some(StepOutcome::ClientLimit);
    }
    if variant.machine_is_limit() {
        return Some(StepOutcome::MachineLimit);
    }
    let is_late = open.is_some_and(|open| open.client_is_late());
    let is_client = is_late || variant.saturation == Some(Saturation::Client);
    is_client.then_some(StepOutcome::ClientLimit)
}
