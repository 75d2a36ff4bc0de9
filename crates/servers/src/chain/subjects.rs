//! The chain as requirements ask for it: one subject. Must not compute a figure.

use super::{ChainFacts, RULES};
use intact_document::facts::{add_findings, rules_alike};
use intact_document::unobserved::Unobserved;
use intact_document::{Conclusions, Facts, RuleState, Subject};

impl Facts for ChainFacts {
    fn subjects(&self) -> Vec<Subject> {
        let mut chain = Subject::new("chain");
        let readings = &mut chain.readings;
        readings.set("chain.races", self.races.clone());
        readings.set("chain.lost", self.lost_share.clone());
        add_findings(readings, &self.findings, &self.rules(), &self.unobserved());
        vec![chain]
    }

    fn conclusions(&self) -> Conclusions<'_> {
        Conclusions::new(&self.verdict, &self.findings, &self.caveats)
    }

    fn rules(&self) -> Vec<RuleState> {
        rules_alike(RULES, None)
    }

    /// Nothing is sent.
    fn any_success(&self) -> bool {
        true
    }

    fn unobserved(&self) -> Unobserved {
        let mut all = Unobserved::default();
        let caveats = self.caveats.iter().filter(|one| one.incomplete);
        let caveats = caveats.map(|one| one.message.clone());
        for reason in self.unknown_limits().into_iter().chain(caveats) {
            all.add(&Unobserved::because(&reason));
        }
        all
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
