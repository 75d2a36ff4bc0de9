//! A comparison as requirements ask for it: subjects are the programs, counts are those of one run
//! on average. Without a selector a requirement is about the programs that are compared with the
//! baseline, so the baseline is the last subject.

use super::{CompareFacts, ProgramFacts};
use crate::likeness::NO_PRODUCTION;
use crate::time_difference::{TimeDifference, TimeStatistic, saved};
use intact_document::figures::{NANOS_PER_MS, resumed_range};
use intact_document::requirement::{
    Measured, Metric, MetricSource, NoData, Subject, TrafficMetric, TrafficSource,
};
use intact_document::unobserved::Unobserved;
use intact_traffic::rules;

/// A comparison has the wall time of programs, and no latencies of requests.
const ONLY_WALL_TIME: NoData = NoData::NotMeasured(
    "compare reports wall time (saved, saved-share); `intact watch` reports the latencies of one program",
);

/// The baseline sent requests and the program none.
const NO_REQUESTS: NoData = NoData::CannotSee("the program sent no request");
/// A program that does less is faster for that reason.
const UNLIKE: NoData = NoData::CannotSee("the programs did not do the same work");

impl MetricSource for CompareFacts {
    fn subjects(&self) -> Vec<Subject> {
        let subject = |one: &ProgramFacts| Subject {
            name: one.name.clone(),
            labels: vec![("variant", one.name.clone())],
        };
        let (first, rest) = (self.variants.iter().take(1), self.variants.iter().skip(1));
        rest.chain(first).map(subject).collect()
    }

    fn default_subjects(&self) -> Option<usize> {
        Some(self.variants.len().saturating_sub(1).max(1))
    }

    fn value(&self, subject: usize, metric: &Metric) -> Result<Measured, NoData> {
        let all = self.variants.len();
        let index = if subject + 1 == all { 0 } else { subject + 1 };
        let program = self.variants.get(index).ok_or(NoData::NothingHappened)?;
        let rounds = program.rounds.len() as f64;
        if rounds == 0.0 {
            return Err(NoData::NothingHappened);
        }
        // a count of what did not work is no figure
        if let Some(reason) = program.counts.no_response() {
            return Err(NoData::NotJudged(reason));
        }
        if program.requests.total == 0 && program.sends_fewer(&self.variants[0]) {
            return Err(NO_REQUESTS);
        }
        let mut unobserved = program.unobserved.clone();
        unobserved.add(&Unobserved::by_caveats(&self.caveats));
        let total = program.requests.total;
        match metric {
            Metric::Traffic(metric) => traffic(program, *metric, &unobserved),
            Metric::Latency(_) | Metric::WithoutSetup(_) | Metric::Phase(..) => Err(ONLY_WALL_TIME),
            Metric::CpuPerRequest => match (program.cpu_ms, total) {
                (Some(cpu), 1..) => {
                    let each = cpu.mean * NANOS_PER_MS * rounds / total as f64;
                    Ok(unobserved.statistic(each))
                }
                (None, _) => Err(NoData::NotMeasured("stored ledgers do not contain it")),
                (_, 0) => Err(NoData::NothingHappened),
            },
            Metric::Saved => self.saved(program, TimeDifference::least_saved),
            Metric::SavedShare => self.saved(program, TimeDifference::least_share),
            Metric::Findings(selector) => {
                let findings = program.findings.iter().map(|one| &one.finding);
                selector.count(findings, &unobserved, rules::needs)
            }
            Metric::Unlike => match &self.like {
                Some(like) => like.unlike(index.checked_sub(1).ok_or(NO_PRODUCTION)?),
                None => Err(NO_PRODUCTION),
            },
            Metric::Load(_)
            | Metric::IdleTimeout
            | Metric::MaxRequests
            | Metric::Drain(_)
            | Metric::Chain(_)
            | Metric::Invocation(_)
            | Metric::Fault(_) => Err(NoData::NOT_IN_DOCUMENT),
        }
    }

    fn unobserved(&self) -> Unobserved {
        let mut all = Unobserved::by_caveats(&self.caveats);
        for program in &self.variants {
            all.add(&program.unobserved);
            if let Some(reason) = program.counts.no_response() {
                all.add(&Unobserved::because(&format!("{}: {reason}", program.name)));
            }
        }
        all
    }
}

/// Requests and connections of one run on average.
fn traffic(
    program: &ProgramFacts,
    metric: TrafficMetric,
    unobserved: &Unobserved,
) -> Result<Measured, NoData> {
    let (requests, opened) = (program.requests.total, program.connections.opened);
    let handshakes = program.handshakes;
    let source = TrafficSource {
        counts: &program.counts,
        runs: program.rounds.len() as f64,
        avoidable: program.avoidable,
        reuse_known: program.reuse_known,
        lookups: program.lookups,
        lookups_in_vain: program.lookups_in_vain,
        requests_per_connection: (opened > 0).then(|| requests as f64 / opened as f64),
        resumed_share: resumed_range(handshakes.resumed, handshakes.unknown, handshakes.total()),
        churn_per_s: Err(ONLY_WALL_TIME),
        bytes_per_request: Err(ONLY_WALL_TIME),
        header_bytes_per_request: Err(ONLY_WALL_TIME),
        unobserved,
    };
    source.value(metric)
}

impl CompareFacts {
    /// What a program saves of the baseline's wall time.
    fn saved(
        &self,
        program: &ProgramFacts,
        low: impl Fn(&TimeDifference) -> Option<f64>,
    ) -> Result<Measured, NoData> {
        // the time of failures is no saving
        let compared = self.variants.iter().take(1).chain([program]);
        if let Some(reason) = compared.filter_map(ProgramFacts::no_success).next() {
            return Err(NoData::NotJudged(reason));
        }
        let outcome = self.outcomes.iter().find(|one| one.b == program.name);
        if outcome.is_some_and(|one| !one.unlike.is_empty()) {
            return Err(UNLIKE);
        }
        let uncompared =
            NoData::NotMeasured("the others are compared with it, or it is a stored ledger");
        let b = (&*program.name, program.rounds.len());
        let saved = saved(&self.comparisons, b, TimeStatistic::Wall, low, uncompared);
        saved.map(Measured::exactly)
    }
}
