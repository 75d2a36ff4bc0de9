//! A function as requirements ask for it: subjects are the variants. Latency is the function's own
//! time of invocations that found their environment there; counts are of the traffic that the
//! variant sent.

use super::{LambdaFacts, VariantFacts, findings};
use crate::time_difference::{Saving, TimeStatistic, uncompared};
use intact_document::facts::add_findings;
use intact_document::figures::NANOS_PER_MS;
use intact_document::requirement::{DocumentKind, FIGURES};
use intact_document::unobserved::Unobserved;
use intact_document::{Conclusions, Facts, Readings, RuleState, Subject};
use intact_reading::{Reading, Why};

pub(super) const NOT_WATCHED: &str = "its connections were not watched (--watch off)";
const UNSEEN: Why = Why::cannot_see(NOT_WATCHED);
/// A variant that does less is faster for that reason.
const FEWER_REQUESTS: Why =
    Why::cannot_see("it sends fewer requests per invocation than the first variant");

impl Facts for LambdaFacts {
    fn subjects(&self) -> Vec<Subject> {
        let variants = self.variants.iter();
        variants.map(|variant| self.subject(variant)).collect()
    }

    fn conclusions(&self) -> Conclusions<'_> {
        Conclusions::new(&self.verdict, &self.findings, &self.caveats)
    }

    fn rules(&self) -> Vec<RuleState> {
        findings::states(&self.unobserved())
    }

    fn any_success(&self) -> bool {
        self.counts.ok > 0
    }

    fn unobserved(&self) -> Unobserved {
        let mut all = Unobserved::default();
        for variant in &self.variants {
            match &variant.observed {
                Some(observed) => all.add(&observed.unobserved()),
                None => all.add(&Unobserved::because(NOT_WATCHED)),
            }
        }
        all
    }
}

impl LambdaFacts {
    fn subject(&self, variant: &VariantFacts) -> Subject {
        let observed = variant.observed.as_deref();
        // the first subject is the whole
        let whole = observed.and_then(|facts| facts.subjects().into_iter().next());
        let (mut readings, unjudged) = whole.map_or_else(
            || (unseen(), None),
            |whole| (whole.readings, whole.unjudged),
        );
        let all: u64 = variant.outcomes.values().sum();
        let answered = variant.outcomes.get("answered").copied().unwrap_or(0);
        let sent = variant.sent.as_ref();
        let each = sent.map(|sent| sent.connections_per_invocation.clone());
        let each = each.unwrap_or(Reading::unknown(UNSEEN));
        if let Some(observed) = observed {
            let missing = observed.unobserved();
            let own = findings::of_variant(variant);
            add_findings(&mut readings, &own, &findings::states(&missing), &missing);
        }
        readings.set("invocations", all);
        readings.set("invocations-failed", all - answered);
        readings.set("connections-per-invocation", each);
        readings.set("cold-start", variant.cold_start_ms.times(NANOS_PER_MS));
        variant.warm_ms.add_to(&mut readings, "");
        self.saved(variant).add_to(&mut readings);
        Subject {
            readings,
            // a function that sends nothing was observed all the same
            unjudged: unjudged.filter(|why| *why != Why::NoTraffic),
            ..Subject::new(&*variant.name).label("variant", &*variant.name)
        }
    }

    /// What a variant saves against the first one.
    fn saved(&self, variant: &VariantFacts) -> Saving {
        let mut first = self.variants.iter().take(1);
        if first.any(|first| variant.sends_fewer(first)) {
            return Saving::unknown(FEWER_REQUESTS);
        }
        Saving::of(
            &self.comparisons,
            (&variant.name, variant.rounds.len()),
            TimeStatistic::Mean,
            uncompared(&self.comparisons, &variant.name),
        )
    }
}

/// The figures of traffic that was not watched.
fn unseen() -> Readings {
    let mut readings = Readings::default();
    let kinds = [DocumentKind::Lambda, DocumentKind::Watch];
    let of_traffic = FIGURES
        .iter()
        .filter(|figure| kinds.iter().all(|kind| figure.documents.contains(kind)));
    for figure in of_traffic {
        match figure.parameter {
            Some(_) => readings.set_others(figure.stem(), Reading::unknown(UNSEEN)),
            None => readings.set(figure.name, Reading::unknown(UNSEEN)),
        }
    }
    readings
}
