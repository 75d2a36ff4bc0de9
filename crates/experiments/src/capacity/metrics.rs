//! A capacity's figures as requirements ask for them: subjects are the variants.

use super::CapacityFacts;
use intact_document::requirement::{LoadMetric, Measured, Metric, MetricSource, NoData, Subject};
use intact_document::unobserved::Unobserved;
use intact_traffic::rules;

/// Why there is no figure where nothing succeeded.
const NO_SUCCESS: NoData = NoData::CannotSee("no request succeeded");

impl MetricSource for CapacityFacts {
    fn subjects(&self) -> Vec<Subject> {
        let on_off = |on| if on { "on" } else { "off" }.to_owned();
        let variants = self.variants.iter();
        let subject = |one: &super::VariantCapacity| Subject {
            name: one.name.clone(),
            labels: vec![
                ("variant", one.name.clone()),
                ("keepalive", on_off(one.keepalive)),
                ("concurrency", one.concurrency.to_string()),
            ],
        };
        variants.map(subject).collect()
    }

    fn value(&self, subject: usize, metric: &Metric) -> Result<Measured, NoData> {
        let variant = self.variants.get(subject).ok_or(NoData::NothingHappened)?;
        if !self.any_success() {
            return Err(NO_SUCCESS);
        }
        match metric {
            Metric::Load(LoadMetric::Capacity) => {
                if !variant.is_searched {
                    return Err(NoData::NotMeasured("name the conditions with --find-max"));
                }
                if variant.steps.is_empty() {
                    return Err(NoData::CannotSee("the search ended in its first step"));
                }
                let found = variant.capacity_per_s;
                let found = found.ok_or(NoData::CannotSee("no rate met the conditions"))?;
                if !variant.confirmed {
                    return Err(NoData::CannotSee(
                        "no fresh runs confirmed it: the search ended before",
                    ));
                }
                Ok(match found.high {
                    Some(high) => Measured::between(found.low, high),
                    None => Measured::at_least(found.low),
                })
            }
            Metric::Load(LoadMetric::Recovery) => {
                let recovery = variant.recovery.as_ref();
                let recovery = recovery.ok_or(NoData::NotMeasured("add --overload"))?;
                if !recovery.held_before {
                    return Err(NoData::CannotSee(
                        "the conditions did not hold before the overload either",
                    ));
                }
                if !recovery.broke {
                    return Err(NoData::CannotSee(
                        "the overload broke no condition; raise --overload",
                    ));
                }
                Ok(match recovery.recovered_after_s {
                    None if recovery.limited_by.is_some() => {
                        return Err(NoData::CannotSee(
                            "the client or its machine was the limit after the overload",
                        ));
                    }
                    Some(seconds) if recovery.limited_by.is_some() => {
                        Measured::between(0.0, seconds * 1e9)
                    }
                    Some(seconds) => Measured::exactly(seconds * 1e9),
                    None => Measured::at_least(recovery.watched_s * 1e9),
                })
            }
            Metric::Findings(selector) => {
                let findings = self.findings.iter();
                let of_variant = findings.filter(|one| one.subject == variant.name);
                selector.count(of_variant, &self.unobserved(), rules::needs)
            }
            _ => Err(NoData::NOT_IN_DOCUMENT),
        }
    }

    fn unobserved(&self) -> Unobserved {
        let mut all = Unobserved::by_caveats(&self.caveats);
        if !self.any_success() {
            all.add(&Unobserved::because("no request succeeded"));
        }
        all
    }
}
