//! A check's figures as requirements ask for them: one subject, the server.

use super::kept_connections::ERROR_CLOSES;
use super::{CheckFacts, DRAIN, FIRST, RULES};
use intact_document::requirement::{
    DrainMetric, FindingSelector, Measured, Metric, MetricSource, NoData, Subject,
};
use intact_document::unobserved::Unobserved;
use intact_traffic::rules;

const NANOS_PER_S: f64 = 1e9;
/// The probe that `--idle-connections` asks for.
const IDLE_UNDER_LOAD: &str = "idle limit next to others";
/// The rule that also rests on HTTP/3, where that is announced.
const EARLY_DATA: &str = "early-data-accepted";
/// Why nothing is concluded from a figure that an outage cut short.
const OUTAGE: &str = "the server accepted no connections for a time";
/// How to have the idle limit measured.
const WATCH_IDLE: &str = "leave --no-idle out";

impl MetricSource for CheckFacts {
    fn subjects(&self) -> Vec<Subject> {
        let Some(target) = &self.target else {
            return Vec::new();
        };
        let (scheme, rest) = target.url.split_once("://").unwrap_or(("", &target.url));
        let authority = rest.split('/').next().unwrap_or(rest);
        vec![Subject {
            name: target.url.clone(),
            labels: vec![
                ("host", authority.to_owned()),
                ("origin", format!("{scheme}://{authority}")),
            ],
        }]
    }

    fn value(&self, _: usize, metric: &Metric) -> Result<Measured, NoData> {
        if let Some(why) = self.no_success() {
            return Err(NoData::CannotSee(why));
        }
        match metric {
            Metric::IdleTimeout => self.idle_value(),
            Metric::MaxRequests => self.max_value(),
            Metric::Drain(metric) => self.drain_value(*metric),
            Metric::Findings(selector) => self.counted(selector),
            Metric::Traffic(_)
            | Metric::Latency(_)
            | Metric::WithoutSetup(_)
            | Metric::Phase(..)
            | Metric::Load(_)
            | Metric::CpuPerRequest
            | Metric::Saved
            | Metric::SavedShare
            | Metric::Chain(_)
            | Metric::Invocation(_)
            | Metric::Unlike
            | Metric::Fault(_) => Err(NoData::NOT_IN_DOCUMENT),
        }
    }

    fn unobserved(&self) -> Unobserved {
        if let Some(why) = self.no_success() {
            return Unobserved::because(why);
        }
        let mut all = Unobserved::by_caveats(&self.caveats);
        if !self.outages.is_empty() {
            all.add(&Unobserved::because(OUTAGE));
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
    /// A count of findings. A rule whose probe did not run has none in any case.
    fn counted(&self, selector: &FindingSelector) -> Result<Measured, NoData> {
        let counted = selector.count(&self.findings, &self.unobserved(), rules::needs)?;
        let FindingSelector::Rule(id) = selector else {
            return Ok(counted);
        };
        let mut rules = RULES.iter();
        let probe = rules.find(|(rule, _)| rule == id).map(|(_, probe)| *probe);
        let is_missing = probe.is_some_and(|probe| !self.has_run(probe));
        if is_missing && counted.low() == 0.0 {
            return Err(NoData::NotMeasured("its probe did not run"));
        }
        let is_about_early_data = id.as_str() == EARLY_DATA;
        if is_about_early_data && counted.low() == 0.0 && !self.has_tried_early_quic() {
            return Err(NoData::CannotSee(
                "HTTP/3 is announced, and early data was not tried over it",
            ));
        }
        Ok(counted)
    }

    /// Whether it is known if an announced HTTP/3 accepts early data. Where sessions are not
    /// resumed, it cannot.
    fn has_tried_early_quic(&self) -> bool {
        self.http3
            .as_ref()
            .is_none_or(|seen| seen.early_data.is_some() || seen.resumed == Some(false))
    }

    /// Whether a probe came to its end: a drain runs without the others, and some run only where
    /// they are asked for.
    fn has_run(&self, probe: &str) -> bool {
        let is_asked_for = match probe {
            FIRST => true,
            DRAIN => self.drain.is_some(),
            IDLE_UNDER_LOAD => self.idle_under_load.is_some(),
            _ => self.drain.is_none(),
        };
        is_asked_for && !self.skipped.iter().any(|one| one.probe == probe)
    }

    fn drain_value(&self, metric: DrainMetric) -> Result<Measured, NoData> {
        let drain = self
            .drain
            .as_ref()
            .ok_or(NoData::NotMeasured("add --drain, and the server's command"))?;
        let is_complete = drain.is_complete();
        match metric {
            DrainMetric::Lost if drain.in_flight.sent == 0 && drain.all().lost == 0 => {
                Err(NoData::NotMeasured(
                    "no request was in flight at the signal: add --drain-slow PATH",
                ))
            }
            DrainMetric::Lost => Ok(Measured::count(drain.all().lost, is_complete)),
            DrainMetric::Refused if drain.all().sent == 0 => Err(NoData::NothingHappened),
            DrainMetric::Refused => Ok(Measured::count(drain.all().refused, is_complete)),
            DrainMetric::Announced => match drain.announced() {
                (_, 0) => Err(NoData::NotMeasured(
                    "the server had no occasion to announce the end: add --drain-slow PATH",
                )),
                (announced, of) if is_complete => {
                    Ok(Measured::exactly(announced as f64 / of as f64))
                }
                _ => Err(NoData::CannotSee("the measurement was stopped")),
            },
            DrainMetric::Time => match (drain.process.ended_ms, drain.process.at_least_ms) {
                (Some(ended), _) => Ok(Measured::exactly(ended * 1e6)),
                (None, Some(least)) => Ok(Measured::at_least(least * 1e6)),
                (None, None) => Err(NoData::NothingHappened),
            },
        }
    }

    fn idle_value(&self) -> Result<Measured, NoData> {
        let idle = self
            .idle_timeout
            .as_ref()
            .ok_or(NoData::NotMeasured(WATCH_IDLE))?;
        if idle.server_stopped {
            return Err(NoData::CannotSee(OUTAGE));
        }
        if let Some(silent) = idle.silent_s() {
            // the limit lies between the last idle time with a response and the first without
            let low = idle.at_least_s.unwrap_or(0.0);
            return Ok(Measured::between(low * NANOS_PER_S, silent * NANOS_PER_S));
        }
        match (idle.measured_s, idle.at_least_s) {
            (None, None) if self.error_close.is_some() => Err(NoData::CannotSee(ERROR_CLOSES)),
            (Some(first), _) => {
                // the range of the samples: a requirement has to hold for all of it
                let last = idle.samples_s.iter().copied().fold(first, f64::max);
                let earliest = idle.earliest_s.unwrap_or(first);
                let high = if earliest < first { last } else { first };
                Ok(Measured::between(
                    earliest.min(first) * NANOS_PER_S,
                    high * NANOS_PER_S,
                ))
            }
            (None, Some(least)) => Ok(Measured::at_least(least * NANOS_PER_S)),
            (None, None) => Err(NoData::NothingHappened),
        }
    }

    fn max_value(&self) -> Result<Measured, NoData> {
        let why = match self.error_close {
            Some(_) => NoData::CannotSee(ERROR_CLOSES),
            None => NoData::NothingHappened,
        };
        let max = self.max_requests.as_ref().ok_or(why)?;
        if max.server_stopped {
            return Err(NoData::CannotSee(OUTAGE));
        }
        match (max.measured, max.at_least) {
            (Some(measured), _) => Ok(Measured::exactly(f64::from(measured))),
            (None, Some(least)) => Ok(Measured::at_least(f64::from(least))),
            (None, None) => Err(NoData::NothingHappened),
        }
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
