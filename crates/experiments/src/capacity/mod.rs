//! The capacity of a server: the highest rate that meets conditions, with an interval, and the
//! recovery after an overload. From a run's head and its tally; the same for a live run and for a
//! stored ledger. Must not choose steps: [`intact_experiment::RateSearch`] does.

mod conditions;
mod cut_off;
mod judge;
mod machine;
mod recovery;
mod subjects;
#[cfg(test)]
mod tests;
mod verdict;

pub use conditions::{ConditionError, Conditions};
pub use judge::{StepFigures, judge};
pub use recovery::{Recovery, RecoveryWindow};

use crate::bench::{ErrorResponses, PortLimit, VariantFacts, no_success};
use crate::traffic::{avoidable, of_client, sum};
use intact_document::Claims;
use intact_document::figures::{TrafficCounts, share};
use intact_document::finding::{Finding, Severity};
use intact_document::statement::{Value, statement};
use intact_document::traffic_readings::TrafficReadings;
use intact_document::unobserved::Unobserved;
use intact_experiment::{Ceiling, RateInterval, RateSearch};
use intact_ledger::{Caveat, Cell, LoadPurpose, Run, Sockets, Tally};
use intact_reading::{Reading, Why};
use serde::Serialize;
use std::collections::BTreeSet;

/// The ids of the findings that a search can have.
pub const RULES: &[&str] = &["did-not-recover"];

/// The share of requests that wait for a connection from which it is worth a caveat.
const QUEUED: f64 = 0.01;

/// Everything that a report of a capacity lays out. Times are in milliseconds where the name says
/// so.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CapacityFacts {
    /// The capacities, their ratio, and the recoveries.
    pub verdict: Claims,
    /// The conditions that a rate had to meet.
    pub conditions: Vec<String>,
    /// The variants, in the run's order.
    pub variants: Vec<VariantCapacity>,
    /// The capacity of each variant as a multiple of the first one's, where both have one.
    pub ratios: Vec<CapacityRatio>,
    /// All requests and connections, also of a step that was cut off.
    #[serde(flatten)]
    pub traffic: TrafficReadings,
    /// What was counted of them, whatever is missing.
    #[serde(skip)]
    pub counted: TrafficCounts,
    /// What stands out.
    pub findings: Vec<Finding>,
    /// What limits the figures.
    pub caveats: Vec<Caveat>,
    /// The machine's sockets before and after.
    pub sockets: Vec<Sockets>,
    /// The client's ephemeral ports, and when they run out; absent where they are not known.
    pub ports: Option<PortLimit>,
    #[serde(skip)]
    errors: ErrorResponses,
}

/// Requests have no conditions.
const NOT_SEARCHED: Why = Why::not_measured("name the conditions with --find-max");
/// Not one step is complete.
const NO_STEP: Why = Why::cannot_see("the search ended in its first step");
/// The conditions did not hold at any rate.
const NO_RATE: Why = Why::cannot_see("no rate met the conditions");
/// Steps of the search are no fresh runs.
const NOT_CONFIRMED: Why = Why::cannot_see("no fresh runs confirmed it: the search ended before");
/// There was no overload.
const NO_OVERLOAD: Why = Why::not_measured("add --overload");

/// The ends of the highest rate that met the conditions, in requests a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityInterval {
    /// The highest rate at which the conditions were met.
    pub low: f64,
    /// The lowest rate at which they were missed; absent where no rate of the server's is known to
    /// miss them.
    pub high: Option<f64>,
}

/// Fresh runs at an end of the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FreshRuns {
    /// Those in which the conditions held.
    pub met: u32,
    /// All of them.
    pub runs: u32,
}

/// The capacity of one variant.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VariantCapacity {
    /// Its name.
    pub name: String,
    /// Whether connections are kept.
    pub keepalive: bool,
    /// Connections at once, at the most.
    pub concurrency: u64,
    /// The highest rate that met the conditions in fresh runs; its upper bound is the lowest rate
    /// that did not.
    pub capacity_per_s: Reading,
    /// The ends that were found, whether or not fresh runs confirmed them; absent where no rate
    /// met the conditions, or none was looked for.
    #[serde(skip)]
    pub interval: Option<CapacityInterval>,
    /// What bounds it from above: `server` (the conditions did not hold there), `client` or
    /// `machine` (the client was the limit, or processors that client, server and other
    /// processes share, which says nothing about the server), `undecided` (the conditions had no
    /// value there), `most-rate` (no higher rate was to be tried), or `unknown` (the search ended
    /// before).
    pub bounded_by: &'static str,
    /// Whether fresh runs confirmed each end of the interval that there is.
    pub confirmed: bool,
    /// Fresh runs at the lower end.
    pub fresh_at_low: FreshRuns,
    /// Fresh runs at the upper end.
    pub fresh_at_high: FreshRuns,
    /// The last step that met the conditions at the lower end.
    pub at_capacity: Option<StepFigures>,
    /// Connections opened for each request.
    pub connections_per_request: Option<f64>,
    /// The overload, if there was one.
    pub recovery: Option<Recovery>,
    /// The steps of the search, in their order.
    pub steps: Vec<StepFigures>,
    /// All its requests and connections, also of a step that was cut off.
    #[serde(skip)]
    counted: TrafficCounts,
    /// Requests that were never sent, because no connection was free.
    #[serde(skip)]
    unsent: u64,
    /// Whether a rate was looked for.
    #[serde(skip)]
    is_searched: bool,
}

/// A capacity as a multiple of another.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CapacityRatio {
    /// The variant that is divided by.
    pub a: String,
    /// The other one.
    pub b: String,
    /// The multiple, of the lower ends.
    pub value: f64,
    /// The smallest that the two intervals allow.
    pub low: f64,
    /// The largest; absent where the capacity of `b` has no upper end.
    pub high: Option<f64>,
}

impl CapacityFacts {
    /// Computes the facts. Conditions that cannot be read give no capacity: the header was damaged.
    pub fn new(run: &Run, tally: &Tally) -> CapacityFacts {
        let terms = run.capacity.clone().unwrap_or_default();
        let mut caveats = tally.caveats.clone();
        let expressions = terms.conditions.iter().map(String::as_str);
        let conditions = Conditions::of(expressions);
        let mut variants = Vec::new();
        match &conditions {
            Ok(conditions) => {
                for index in 0..run.variants.len() as u32 {
                    let one = VariantCapacity::new(run, tally, conditions, index);
                    variants.extend(one);
                }
            }
            Err(error) => caveats.push(Caveat::incomplete(
                "conditions-unreadable",
                format!("the conditions of this run cannot be read: {error}"),
            )),
        }
        let counted = sum(variants.iter().map(|one| &one.counted));
        let unsent = variants.iter().map(|one| one.unsent).sum();
        let errors = ErrorResponses::among(&counted.requests.status, run.expect);
        let mut facts = CapacityFacts {
            verdict: Claims::default(),
            conditions: terms.conditions,
            ratios: ratios(&variants),
            findings: findings(&variants),
            variants,
            traffic: TrafficReadings::default(),
            counted,
            caveats,
            sockets: tally.sockets.clone(),
            ports: PortLimit::of(run),
            errors,
        };
        facts.caveats.extend(facts.limits());
        let missing = Unobserved::by_caveats(&facts.caveats);
        let counted = &facts.counted;
        facts.traffic = of_client(counted, avoidable(counted), unsent, &missing);
        facts.verdict = verdict::claims(&facts, tally);
        facts
    }

    /// Why nothing succeeded, if nothing did.
    fn no_success(&self) -> Option<&'static str> {
        no_success(&self.counted, &self.errors)
    }

    fn limits(&self) -> Vec<Caveat> {
        let mut limits = Vec::new();
        for one in &self.variants {
            let missed = one.steps.iter().filter(|step| step.outcome == "missed");
            let lowest = missed.min_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
            let queued = lowest.and_then(|step| step.queued_share);
            if queued.is_some_and(|share| share > QUEUED) {
                limits.push(Caveat::new(
                    "connections-busy",
                    format!(
                        "{}: at the lowest rate that missed the conditions, requests waited for one of {} connections; a larger -c shows whether the connections were the limit",
                        one.name, one.concurrency
                    ),
                ));
            }
            if one.steps.iter().any(|step| step.is_met() && step.warm) {
                limits.push(Caveat::new(
                    "open-connections",
                    format!(
                        "{}: this rate is of connections that are open: while they are opened, a lower one misses the conditions",
                        one.name
                    ),
                ));
            }
            limits.extend(machine::limit(one));
            limits.extend(machine::busy(one));
            limits.extend(machine::unobserved(one));
            if one.interval.is_some() && !one.confirmed {
                limits.push(Caveat::new(
                    "not-confirmed",
                    format!(
                        "{}: the search ended before fresh runs confirmed the rate (-z and -n limit it)",
                        one.name
                    ),
                ));
            }
        }
        limits
    }
}

impl VariantCapacity {
    /// The figures of all steps and windows.
    fn all_figures(&self) -> impl Iterator<Item = &StepFigures> {
        let windows = self.recovery.iter().flat_map(|one| &one.windows);
        self.steps.iter().chain(windows.map(|one| &one.figures))
    }

    /// The last step at the lowest rate.
    fn lowest(&self) -> Option<&StepFigures> {
        let steps = self.steps.iter().rev();
        steps.min_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))
    }

    /// Whether no rate met the conditions, and the requests failed at the lowest one already.
    fn lowest_fails(&self) -> bool {
        !self.steps.iter().any(StepFigures::is_met)
            && self.lowest().is_some_and(StepFigures::is_failing)
    }

    fn new(
        run: &Run,
        tally: &Tally,
        conditions: &Conditions,
        index: u32,
    ) -> Option<VariantCapacity> {
        let variant = run.variants.get(index as usize)?;
        let measured = tally.of_variant(index);
        let measured: Vec<&Cell> = measured.filter(|cell| cell.round > Some(0)).collect();
        // the rate is that of a step, but these counts have none
        let whole = judge::facts_of(run, tally, &measured, 1.0);
        let whole = whole.and_then(|facts| facts.variants.into_iter().next());
        let unsent = whole.as_ref().map_or(0, VariantFacts::unsent);
        let counted = whole.map_or_else(TrafficCounts::default, |whole| whole.counted);
        let steps: BTreeSet<u32> = measured
            .iter()
            .filter_map(|cell| judge::load(cell))
            .filter(|load| matches!(load.purpose, LoadPurpose::Search | LoadPurpose::Confirm))
            .map(|load| load.step)
            .collect();
        let steps = steps.into_iter();
        let steps: Vec<StepFigures> = steps
            .filter_map(|step| judge(run, tally, conditions, step))
            .collect();
        let terms = run.capacity.as_ref().and_then(|terms| terms.search);
        let found = terms.map(|terms| {
            let mut search = RateSearch::new(terms);
            for step in &steps {
                search.record(step.step_outcome());
            }
            search.found()
        });
        let (interval, bounded_by) = match found {
            Some(found) if found.is_confirmed => {
                let high = found.high;
                let interval = found.low.map(|low| CapacityInterval { low, high });
                (interval, bound(found))
            }
            Some(found) => {
                let interval = cut_off::so_far(&steps);
                let limit = cut_off::limit(&steps, interval);
                (interval, limit.unwrap_or(bound(found)))
            }
            None => (None, "unknown"),
        };
        let at_capacity = steps
            .iter()
            .rfind(|step| step.is_met() && interval.is_some_and(|one| one.low == step.rate_per_s));
        let fresh = |runs: Option<intact_experiment::FreshRuns>| {
            let runs = runs.unwrap_or_default();
            FreshRuns {
                met: runs.met,
                runs: runs.all,
            }
        };
        let is_confirmed = found.is_some_and(|found| found.is_confirmed);
        let capacity_per_s = match interval {
            _ if terms.is_none() => Reading::unknown(NOT_SEARCHED),
            _ if steps.is_empty() => Reading::unknown(NO_STEP),
            None => Reading::unknown(NO_RATE),
            Some(one) if !is_confirmed => Reading::unknown(NOT_CONFIRMED).inferred(one.low),
            Some(CapacityInterval { low, high }) => high.map_or_else(
                || Reading::at_least(low, Why::LimitNotReached),
                |high| Reading::between(low, high, Why::OnlyRange),
            ),
        };
        let axis = |name: &str| variant.axes.get(name).map(String::as_str);
        Some(VariantCapacity {
            name: variant.name.clone(),
            keepalive: axis("keepalive") == Some("on"),
            concurrency: axis("c").and_then(|c| c.parse().ok()).unwrap_or(1),
            capacity_per_s,
            interval,
            bounded_by,
            confirmed: is_confirmed,
            fresh_at_low: fresh(found.map(|found| found.at_low)),
            fresh_at_high: fresh(found.map(|found| found.at_high)),
            at_capacity: at_capacity.cloned(),
            connections_per_request: share(counted.connections.opened, counted.requests.total),
            counted,
            unsent,
            recovery: Recovery::of(run, tally, conditions, index),
            steps,
            is_searched: terms.is_some(),
        })
    }
}

fn bound(found: RateInterval) -> &'static str {
    found.ceiling.map_or("unknown", Ceiling::as_str)
}

/// Each capacity as a multiple of the lowest one.
fn ratios(variants: &[VariantCapacity]) -> Vec<CapacityRatio> {
    let with = |one: &VariantCapacity| one.interval.map(|capacity| (one.name.clone(), capacity));
    let known: Vec<(String, CapacityInterval)> = variants
        .iter()
        .filter(|one| one.confirmed)
        .filter_map(with)
        .collect();
    let lowest = known.iter().min_by(|a, b| a.1.low.total_cmp(&b.1.low));
    let Some((a, base)) = lowest else {
        return Vec::new();
    };
    // without its upper end nothing is known of how much more another one carries
    let Some(base_high) = base.high else {
        return Vec::new();
    };
    let others = known.iter().filter(|(name, _)| name != a);
    let ratio = |(name, one): &(String, CapacityInterval)| CapacityRatio {
        a: a.clone(),
        b: name.clone(),
        value: one.low / base.low,
        low: one.low / base_high,
        high: one.high.map(|high| high / base.low),
    };
    others.map(ratio).collect()
}

fn findings(variants: &[VariantCapacity]) -> Vec<Finding> {
    let found = variants.iter().filter_map(|one| {
        let recovery = one.recovery.as_ref().filter(|one| one.is_lost())?;
        let claim = statement!(
            "did not recover from {overload} requests/s within {watched} at {rate} requests/s, until the traffic stopped",
            overload = Value::Rate(recovery.overload_per_s),
            watched = Value::Duration(recovery.watched_s * 1e3),
            rate = Value::Rate(recovery.rate_per_s)
        );
        let lost = Finding::new("did-not-recover", Severity::Error, one.name.clone(), claim);
        Some(lost.fix("let less work queue: bound the requests that the server accepts at once, time out outgoing calls, and retry them at most once with a budget (and reuse their connections)"))
    });
    let found: Vec<Finding> = found.collect();
    debug_assert!(
        found.iter().all(|one| RULES.contains(&one.rule)),
        "a finding is missing in RULES"
    );
    found
}
