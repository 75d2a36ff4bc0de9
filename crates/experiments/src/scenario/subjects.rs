//! A scenario as requirements ask for it: the whole run, then each session, then each tag of each
//! session.

use super::{RULES, ScenarioFacts, SessionFacts, TagFacts};
use crate::traffic::missing;
use intact_document::facts::{add_findings, rules_alike};
use intact_document::figures::{Latency, NANOS_PER_MS, PhaseTime};
use intact_document::unobserved::Unobserved;
use intact_document::{Conclusions, Facts, Finding, Readings, RuleState, Subject};
use intact_ledger::Phase;
use intact_reading::{Reading, Why};

/// Connections belong to clients, not to tags.
const NO_CONNECTIONS: Why = Why::not_measured("connections are counted by session, not by tag");
/// Phases are kept of tags alone.
const NO_PHASES: Why = Why::not_measured("phases are known by tag: select one with tag=");
/// A figure of the run, not of a part.
const OF_THE_RUN: Why = Why::not_measured("it is known of the whole run only");
/// The figures of connections.
const CONNECTIONS: [&str; 6] = [
    "connections",
    "connections-failed",
    "needed",
    "avoidable",
    "requests-per-connection",
    "churn",
];

impl Facts for ScenarioFacts {
    fn subjects(&self) -> Vec<Subject> {
        let missing = Unobserved::by_caveats(&self.caveats);
        let tags = |session: &SessionFacts| -> Vec<Subject> {
            let tags = session.tags.iter();
            tags.map(|tag| of_tag(session, tag, &missing)).collect()
        };
        let sessions = self.sessions.iter();
        let mut subjects = vec![self.whole()];
        subjects.extend(sessions.clone().map(of_session));
        subjects.extend(sessions.flat_map(tags));
        let rules = self.rules();
        for (nth, subject) in subjects.iter_mut().enumerate() {
            let session = nth.checked_sub(1).map(|nth| self.sessions.get(nth));
            let is_own = |finding: &&Finding| match session {
                None => true,
                Some(session) => session.is_some_and(|one| finding.subject == one.name),
            };
            let own = self.findings.iter().filter(is_own);
            add_findings(&mut subject.readings, own, &rules, &missing);
            // a count of what did not work is no figure: `failed == 0` holds where nothing
            // happened
            subject.unjudged = self.no_success().map(Why::cannot_see);
        }
        subjects
    }

    fn default_subjects(&self) -> Option<usize> {
        Some(1)
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

impl ScenarioFacts {
    fn whole(&self) -> Subject {
        let mut whole = Subject::new("all sessions");
        let readings = &mut whole.readings;
        self.traffic.add_to(readings);
        add_latency(readings, &self.latency_ms, &self.latency_without_setup_ms);
        add_no_phases(readings);
        let error = self.scheduling_error_ms.p99.times(NANOS_PER_MS);
        readings.set(
            "requests-per-connection",
            self.requests_per_connection.clone(),
        );
        readings.set("churn", self.churn_per_s.clone());
        readings.set("throughput", self.rate_per_s.clone());
        readings.set("schedule.error", error);
        whole
    }
}

fn of_session(session: &SessionFacts) -> Subject {
    let mut subject = Subject::new(&*session.name).label("session", &*session.name);
    let readings = &mut subject.readings;
    session.traffic.add_to(readings);
    add_latency(
        readings,
        &session.latency_ms,
        &session.latency_without_setup_ms,
    );
    add_no_phases(readings);
    readings.set(
        "requests-per-connection",
        session.requests_per_connection.clone(),
    );
    readings.set("churn", session.churn_per_s.clone());
    add_none_of_the_run(readings);
    subject
}

fn of_tag(session: &SessionFacts, tag: &TagFacts, missing: &Unobserved) -> Subject {
    let mut subject = tag_subject(&session.name, tag, missing);
    add_none_of_the_run(&mut subject.readings);
    subject
}

/// A tag of a session or a variant as requirements ask for it.
pub(crate) fn tag_subject(of: &str, tag: &TagFacts, missing: &Unobserved) -> Subject {
    let name = format!("{of}: {}", tag.tag);
    let mut subject = Subject::new(name).label("tag", &*tag.tag);
    let readings = &mut subject.readings;
    tag.traffic.add_to(readings);
    add_latency(readings, &tag.latency_ms, &tag.latency_without_setup_ms);
    PhaseTime::add_to(readings, &[&tag.phases_ms], missing);
    for name in CONNECTIONS {
        readings.set(name, Reading::unknown(NO_CONNECTIONS));
    }
    subject
}

fn add_latency(readings: &mut Readings, latency: &Latency, without_setup: &Latency) {
    latency.add_to(readings, "");
    without_setup.add_to(readings, "without-setup.");
}

fn add_no_phases(readings: &mut Readings) {
    for phase in Phase::ALL {
        let phase = phase.id().replace('_', "-");
        for statistic in ["mean", "p50"] {
            readings.set(&format!("{phase}.{statistic}"), Reading::unknown(NO_PHASES));
        }
    }
}

fn add_none_of_the_run(readings: &mut Readings) {
    for name in ["throughput", "schedule.error"] {
        readings.set(name, Reading::unknown(OF_THE_RUN));
    }
}
