//! A capacity as requirements ask for it: subjects are the variants.

use super::{CapacityFacts, NO_OVERLOAD, RULES, VariantCapacity};
use crate::traffic::missing;
use intact_document::facts::{add_findings, rules_alike};
use intact_document::figures::NANOS_PER_S;
use intact_document::unobserved::Unobserved;
use intact_document::{Conclusions, Facts, Readings, RuleState, Subject};
use intact_reading::{Reading, Why};

impl Facts for CapacityFacts {
    fn subjects(&self) -> Vec<Subject> {
        let (rules, unobserved) = (self.rules(), self.unobserved());
        let on_off = |on| if on { "on" } else { "off" };
        let subject = |one: &VariantCapacity| {
            let mut readings = Readings::default();
            readings.set("capacity", one.capacity_per_s.clone());
            let recovery = one.recovery.as_ref().map_or_else(
                || Reading::unknown(NO_OVERLOAD),
                |recovery| recovery.recovered_after_s.times(NANOS_PER_S),
            );
            readings.set("recovery", recovery);
            let own = self.findings.iter();
            let own = own.filter(|finding| finding.subject == one.name);
            add_findings(&mut readings, own, &rules, &unobserved);
            Subject {
                readings,
                unjudged: self.no_success().map(Why::cannot_see),
                ..Subject::new(&*one.name)
            }
            .label("variant", &*one.name)
            .label("keepalive", on_off(one.keepalive))
            .label("concurrency", one.concurrency.to_string())
        };
        self.variants.iter().map(subject).collect()
    }

    fn conclusions(&self) -> Conclusions<'_> {
        Conclusions::new(&self.verdict, &self.findings, &self.caveats)
    }

    fn rules(&self) -> Vec<RuleState> {
        rules_alike(RULES, None)
    }

    fn any_success(&self) -> bool {
        self.no_success().is_none()
    }

    fn unobserved(&self) -> Unobserved {
        missing(&self.caveats, self.no_success())
    }
}
