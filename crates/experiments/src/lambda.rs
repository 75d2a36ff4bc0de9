//! What invocations of a function show: cold against warm, and what each did on the network. Which
//! connections died in a freeze, and what the next invocation saw of that. Variants are compared
//! round by round.
//!
//! ```text
//! let mut invoked = Invoked::new(&run);      // a intact_ledger::Sink: feed it live, or replay a stored ledger
//! invoked.record(Event::Invocation(&one));   // with the connections of its environment before or after it
//! let facts = invoked.facts();
//! ```
//! Connections and exchanges belong to invocations by time. Must not run anything.

mod findings;
mod frozen;
mod invocation;
mod subjects;
mod traffic;
mod variant;
mod verdict;

pub use crate::time_difference::TimeDifference;
pub use findings::rule_ids;
pub use frozen::{DeadUse, Freeze, FreezeEffect, FrozenConnection};
pub use invocation::InvocationFacts;
pub use variant::{Freezes, Kind, RoundMean, Sent, VariantFacts};

use crate::time_difference::{self, TimeStatistic};
use crate::traffic::ObservedTraffic;
use intact_document::Claims;
use intact_document::figures::ObservedCounts;
use intact_document::finding::Finding;
use intact_document::traffic_readings::TrafficReadings;
use intact_document::unobserved::Unobserved;
use intact_ledger::{CONNECTIONS_NOT_FOLLOWED, Caveat, Event, Invocation, Run, Sink};
use intact_traffic::{NextStep, TrafficAnalysis, next_steps};
use serde::Serialize;
use std::collections::BTreeMap;
use traffic::Traffic;

/// A fold over the events of a function's run.
pub struct Invocations {
    run: Run,
    observed: Vec<TrafficAnalysis>,
    traffic: Traffic,
    invocations: Vec<Invocation>,
    caveats: Vec<Caveat>,
}

/// How many invocations there were, and their outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// All.
    pub total: u64,
    /// Those that were answered.
    pub ok: u64,
    /// The others by their outcome.
    pub failed: BTreeMap<&'static str, u64>,
}

/// Everything that a report of a function lays out.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LambdaFacts {
    /// What was found out, the claim that matters most first.
    pub verdict: Claims,
    /// The variants, the reference first.
    pub variants: Vec<VariantFacts>,
    /// Each against the first.
    pub comparisons: Vec<TimeDifference>,
    /// The invocations of all variants.
    pub counts: Counts,
    /// What the function sent; unknown where connections were not watched.
    #[serde(flatten)]
    pub traffic: TrafficReadings,
    /// What stands out in the traffic of each variant; with several the subject begins with its
    /// name.
    pub findings: Vec<Finding>,
    /// The commands to run next: the gate of the finding that matters most.
    pub next: Vec<NextStep>,
    /// What limits the figures.
    pub caveats: Vec<Caveat>,
    /// Every invocation.
    pub invocations: Vec<InvocationFacts>,
}

impl Invocations {
    /// One that has seen nothing yet.
    pub fn new(run: &Run) -> Invocations {
        Invocations {
            run: run.clone(),
            observed: run
                .variants
                .iter()
                .map(|_| TrafficAnalysis::new(run))
                .collect(),
            traffic: Traffic::default(),
            invocations: Vec::new(),
            caveats: Vec::new(),
        }
    }

    /// Whether the function's connections were followed.
    fn is_watched(&self) -> bool {
        !self
            .caveats
            .iter()
            .any(|caveat| caveat.id == CONNECTIONS_NOT_FOLLOWED)
    }

    /// What was found out so far.
    pub fn facts(&self) -> LambdaFacts {
        let watched = self.is_watched();
        let missing = Unobserved::by_caveats(&self.caveats);
        let invocations = invocation::calls(&self.invocations, watched.then_some(&self.traffic));
        let variants: Vec<VariantFacts> = (0..)
            .zip(self.run.variants.iter().zip(&self.observed))
            .map(|(index, (variant, observed))| {
                let ours: Vec<&InvocationFacts> = invocations
                    .iter()
                    .filter(|call| call.variant == index)
                    .collect();
                let observed = watched.then(|| {
                    let mut facts = observed.facts();
                    facts.add_unobserved(&missing);
                    facts
                });
                VariantFacts::new(&variant.name, &ours, observed)
            })
            .collect();
        let means = variants.iter().map(|one| {
            let rounds = one.rounds.iter();
            let means = rounds.map(|round| (round.round, round.mean_ms)).collect();
            (&*one.name, means)
        });
        let pairs = time_difference::against_the_first(means);
        let comparisons = time_difference::times(TimeStatistic::Mean, &pairs);
        let mut counts = Counts::default();
        for call in &invocations {
            counts.total += 1;
            counts.ok += u64::from(call.is_ok());
            if !call.is_ok() {
                *counts.failed.entry(call.outcome).or_default() += 1;
            }
        }
        let observed = variants.iter().filter_map(|one| one.observed.as_deref());
        let totals: Vec<_> = observed.map(|facts| &facts.totals).collect();
        let sent = ObservedCounts::sum(totals.iter().map(|figures| &figures.counted));
        let in_vain = totals.iter().map(|figures| figures.lookups_in_vain()).sum();
        let unobserved = match watched {
            true => sent.unobserved.clone(),
            false => Unobserved::because(subjects::NOT_WATCHED),
        };
        let mut all = ObservedTraffic::of(sent, in_vain, &unobserved, 1.0);
        frozen::add_unsent(&mut all.traffic, invocations.iter());
        let findings = findings(&variants);
        LambdaFacts {
            verdict: verdict::claims(&variants, &comparisons),
            next: next_steps(&self.run, &findings, false, &[]),
            findings,
            caveats: self.caveats(&variants),
            variants,
            comparisons,
            counts,
            traffic: all.traffic,
            invocations,
        }
    }

    /// Those of the run, then those of its traffic.
    fn caveats(&self, variants: &[VariantFacts]) -> Vec<Caveat> {
        let mut caveats = self.caveats.clone();
        let observed = variants.iter().filter_map(|one| one.observed.as_deref());
        // only a finding has places
        let has_finding = observed.clone().any(|facts| !facts.findings.is_empty());
        caveats.retain(|caveat| has_finding || !caveat.is_about_places());
        for caveat in observed.flat_map(|facts| &facts.caveats) {
            if !caveats.contains(caveat) {
                caveats.push(caveat.clone());
            }
        }
        if self.traffic.left_out > 0 {
            caveats.push(Caveat::new("traffic-left-out", format!(
                    "{} connections and requests at the end are in no invocation's count: there was no room",
                    self.traffic.left_out
                )));
        }
        caveats
    }
}

fn findings(variants: &[VariantFacts]) -> Vec<Finding> {
    let several = variants.len() > 1;
    let each = variants.iter().flat_map(|variant| {
        findings::of_variant(variant)
            .into_iter()
            .map(move |mut finding| {
                if several {
                    let of_variant = |subject: &str| format!("{}: {subject}", variant.name);
                    finding.subject = of_variant(&finding.subject);
                    finding.also = finding.also.iter().map(|one| of_variant(one)).collect();
                }
                finding
            })
    });
    each.collect()
}

impl Sink for Invocations {
    fn record(&mut self, event: Event<'_>) {
        self.traffic.record(event);
        let variant = match event {
            Event::Invocation(one) => {
                self.invocations.push(one.clone());
                one.variant
            }
            Event::Caveat(caveat) => {
                // each environment has its own of places: the first is enough
                let is_known =
                    |one: &Caveat| one == caveat || one.id == caveat.id && caveat.is_about_places();
                if self.caveats.len() < 64 && !self.caveats.iter().any(is_known) {
                    self.caveats.push(caveat.clone());
                }
                None
            }
            Event::Stack(_) => {
                for observed in &mut self.observed {
                    observed.record(event);
                }
                None
            }
            Event::Round(_) => None,
            other => other.variant(),
        };
        let observed = variant.and_then(|index| self.observed.get_mut(index as usize));
        if let Some(observed) = observed {
            observed.record(event);
        }
    }
}

#[cfg(test)]
mod tests;
