//! The chain as requirements ask for it: one subject. What is unknown has no value, or a range.

use super::ChainFacts;
use intact_document::requirement::{
    ChainMetric, FindingSelector, Measured, Metric, MetricSource, NoData, Subject,
};
use intact_document::unobserved::Unobserved;
use intact_traffic::rules;

impl MetricSource for ChainFacts {
    fn subjects(&self) -> Vec<Subject> {
        vec![Subject {
            name: "chain".to_owned(),
            labels: Vec::new(),
        }]
    }

    fn value(&self, _: usize, metric: &Metric) -> Result<Measured, NoData> {
        match metric {
            Metric::Chain(ChainMetric::Races) => Ok(self.count_of_races()),
            Metric::Chain(ChainMetric::Lost) => self.lost(),
            Metric::Findings(selector) => self.counted(selector),
            _ => Err(NoData::NOT_IN_DOCUMENT),
        }
    }

    fn unobserved(&self) -> Unobserved {
        ChainFacts::unobserved(self)
    }
}

impl ChainFacts {
    /// A hop with an unknown limit may race, and an include that was not read may change any limit.
    fn count_of_races(&self) -> Measured {
        let races = self.races() as f64;
        match self.caveats.iter().any(|one| one.incomplete) {
            true => Measured::at_least(races),
            false => Measured::between(races, races + self.unknown() as f64),
        }
    }

    fn lost(&self) -> Result<Measured, NoData> {
        if self.gaps.is_none() {
            return Err(NoData::NotMeasured("add --gaps LOG"));
        }
        if self.unobserved().missing().is_some() {
            return Err(NoData::CannotSee("not all limits are known"));
        }
        let mut races = self.hops.iter().filter(|hop| hop.order.is_race());
        if races
            .clone()
            .any(|hop| hop.loss.as_ref().is_none_or(|loss| loss.is_beyond_the_log))
        {
            return Err(NoData::CannotSee(
                "the log shows no idle times as long as the limit of a hop that races",
            ));
        }
        let sum = |of: fn(&super::LossFacts) -> f64| -> f64 {
            races
                .clone()
                .filter_map(|hop| hop.loss.as_ref())
                .map(of)
                .sum()
        };
        let (least, most) = (
            sum(|loss| loss.lost_share),
            sum(|loss| loss.lost_share_at_most),
        );
        Ok(match races.next() {
            None => Measured::exactly(0.0),
            Some(_) => Measured::between(least, most),
        })
    }

    fn counted(&self, selector: &FindingSelector) -> Result<Measured, NoData> {
        selector.count(&self.findings, &self.unobserved(), rules::needs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_document::requirement::Requirement;
    use intact_timers::{Hop, Idle};
    use std::time::Duration;

    fn holds(expression: &str, limits: &[Idle]) -> bool {
        let hops = (0..).zip(limits);
        let hops: Vec<Hop> = hops
            .map(|(nth, idle): (usize, _)| Hop::given(&format!("h{nth}"), *idle, *idle, true))
            .collect();
        let requirement: Requirement = expression.parse().unwrap();
        requirement.evaluate(&ChainFacts::new(&hops, None)).passed()
    }

    #[test]
    fn a_gate_opens_only_where_every_limit_is_known() {
        let s = |seconds| Idle::After(Duration::from_secs(seconds));
        assert!(holds("chain.races == 0", &[s(50), s(60)]));
        assert!(!holds("chain.races == 0", &[s(60), s(60)]));
        assert!(!holds("chain.races == 0", &[s(50), Idle::Unknown("")]));
        assert!(!holds(
            "findings.idle-timeout-race == 0",
            &[s(50), Idle::Unknown("")]
        ));
        assert!(!holds("chain.lost < 1%", &[s(50), s(60)]), "no log");
    }
}
