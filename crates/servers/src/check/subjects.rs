//! A check as requirements ask for it: one subject, the server. Must not compute a figure.

use super::{CheckFacts, DRAIN, ERROR_CLOSES, FIRST, OUTAGE, RULES, without_end};
use intact_document::facts::add_findings;
use intact_document::figures::NANOS_PER_S;
use intact_document::unobserved::Unobserved;
use intact_document::{Conclusions, Facts, Readings, RuleState, Subject};
use intact_reading::{Reading, Why};

/// The probe that `--idle-connections` asks for.
const IDLE_UNDER_LOAD: &str = "idle limit next to others";
/// The rule that also rests on HTTP/3, where that is announced.
const EARLY_DATA: &str = "early-data-accepted";
/// Why early data is not judged.
const NO_EARLY_QUIC: Why =
    Why::cannot_see("HTTP/3 is announced, and early data was not tried over it");
/// How to have the idle limit measured.
const WATCH_IDLE: Why = Why::not_measured("leave --no-idle out");
/// How to have the end of the server measured.
const WATCH_END: Why = Why::not_measured("add --drain, and the server's command");

impl Facts for CheckFacts {
    fn subjects(&self) -> Vec<Subject> {
        let Some(target) = &self.target else {
            return Vec::new();
        };
        let (scheme, rest) = target.url.split_once("://").unwrap_or(("", &target.url));
        let authority = rest.split('/').next().unwrap_or(rest);
        let subject = Subject::new(&*target.url)
            .label("host", authority)
            .label("origin", format!("{scheme}://{authority}"));
        vec![Subject {
            readings: self.readings(),
            unjudged: self.no_success().map(Why::cannot_see),
            ..subject
        }]
    }

    fn conclusions(&self) -> Conclusions<'_> {
        Conclusions::new(&self.verdict, &self.findings, &self.caveats)
    }

    /// A rule whose probe did not run has no finding in any case.
    fn rules(&self) -> Vec<RuleState> {
        let rules = RULES.iter();
        rules
            .map(|&(id, probe)| {
                let unjudged = match self.not_run(probe) {
                    None if id == EARLY_DATA && !self.has_tried_early_quic() => Some(NO_EARLY_QUIC),
                    unjudged => unjudged,
                };
                let has_found = self.findings.iter().any(|finding| finding.rule == id);
                RuleState {
                    id,
                    unjudged: unjudged.filter(|_| !has_found),
                }
            })
            .collect()
    }

    fn any_success(&self) -> bool {
        CheckFacts::any_success(self)
    }

    fn unobserved(&self) -> Unobserved {
        if let Some(why) = self.no_success() {
            return Unobserved::because(why);
        }
        let mut all = Unobserved::by_caveats(&self.caveats);
        if !self.outages.is_empty() {
            all.add(&Unobserved::because(&OUTAGE.to_string()));
        }
        if self.error_close.is_some() {
            all.add(&Unobserved::because(ERROR_CLOSES));
        }
        let mut skipped = self.skipped.iter();
        if let Some(one) = skipped.find(|one| one.cut_off) {
            all.add(&Unobserved::because(&format!("{}: {}", one.probe, one.why)));
        }
        if self.drain.as_ref().is_some_and(|one| !one.is_complete()) {
            all.add(&Unobserved::because(
                "drain: stopped before the server had ended",
            ));
        }
        all
    }
}

impl CheckFacts {
    fn readings(&self) -> Readings {
        let mut readings = Readings::default();
        let idle = self.idle_timeout.as_ref();
        let idle = idle.map(|idle| idle.measured_s.times(NANOS_PER_S));
        readings.set("idle-timeout", idle.ok_or(WATCH_IDLE));
        let most = self.max_requests.as_ref().map(|max| max.measured.clone());
        readings.set("max-requests", most.ok_or(without_end(self.error_close)));
        match &self.drain {
            Some(drain) => drain.add_to(&mut readings),
            None => {
                for name in ["lost", "refused", "announced", "time"] {
                    readings.set(&format!("drain.{name}"), Reading::unknown(WATCH_END));
                }
            }
        }
        add_findings(
            &mut readings,
            &self.findings,
            &self.rules(),
            &self.unobserved(),
        );
        readings
    }

    /// Whether it is known if an announced HTTP/3 accepts early data. Where sessions are not
    /// resumed, it cannot.
    fn has_tried_early_quic(&self) -> bool {
        self.http3
            .as_ref()
            .is_none_or(|seen| seen.early_data.is_some() || seen.resumed == Some(false))
    }

    /// Why a probe did not come to its end, if it did not: a drain runs without the others, and
    /// some run only where they are asked for.
    fn not_run(&self, probe: &str) -> Option<Why> {
        let mut skipped = self.skipped.iter();
        if let Some(skipped) = skipped.find(|one| one.probe == probe) {
            return Some(Why::from(format!("its probe did not run: {}", skipped.why)));
        }
        let is_asked_for = match probe {
            FIRST => true,
            DRAIN => self.drain.is_some(),
            IDLE_UNDER_LOAD => self.idle_under_load.is_some(),
            _ => self.drain.is_none(),
        };
        (!is_asked_for).then_some(Why::not_measured("its probe did not run"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Http3Facts;
    use intact_document::requirement::Requirement;
    use intact_ledger::Tally;
    use intact_ledger::server_profile::{EarlyData, Http3Seen, ServerProfile, Skipped};

    /// A check whose server responded, and in which the idle limits were not probed.
    fn facts(why: &str, cut_off: bool) -> CheckFacts {
        let profile = ServerProfile {
            contact: Some(crate::check::responded()),
            skipped: vec![Skipped {
                probe: "idle limits".to_owned(),
                why: why.to_owned(),
                cut_off,
            }],
            ..ServerProfile::default()
        };
        CheckFacts::of(&profile, &Tally::new(), &[])
    }

    #[test]
    fn http3_that_was_not_tried_passes_no_gate_about_early_data() {
        let gate: Requirement = "findings.early-data-accepted == 0".parse().unwrap();
        let mut facts = facts("--no-idle", false);
        assert!(gate.evaluate(&facts).passed());
        let announced = Http3Seen {
            announced: Some("h3=\":443\"".to_owned()),
            host: None,
            port: 443,
            tried: None,
        };
        facts.http3 = Some(Http3Facts::of(&announced));
        assert!(!gate.evaluate(&facts).passed());
        let early = |outcome| Http3Facts {
            early_data: outcome,
            resumed: Some(outcome.is_some()),
            ..Http3Facts::of(&announced)
        };
        // a server that resumes nothing accepts no early data
        for outcome in [None, Some(EarlyData::Rejected)] {
            facts.http3 = Some(early(outcome));
            assert!(gate.evaluate(&facts).passed(), "{outcome:?}");
        }
    }

    #[test]
    fn a_probe_that_did_not_run_passes_no_gate_of_its_rules() {
        let passes = |facts: &CheckFacts, expression: &str| {
            let requirement: Requirement = expression.parse().unwrap();
            requirement.evaluate(facts).passed()
        };
        let left_out = facts("--no-idle", false);
        assert!(!passes(&left_out, "findings.idle-timeout-race == 0"));
        assert!(passes(&left_out, "findings.connection-not-kept == 0"));
        assert!(passes(&left_out, "errors == 0"));
        assert!(passes(&left_out, "findings.early-data-accepted == 0"));
        let cut_off = facts("--max-time", true);
        assert!(!passes(&cut_off, "errors == 0"));
        assert_eq!(
            cut_off.unobserved().reason().unwrap(),
            "idle limits: --max-time"
        );
    }
}
