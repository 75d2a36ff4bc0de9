//! A comparison as requirements ask for it: subjects are the programs, counts are those of one run on average. Without a selector
//! a requirement is about the programs that are held against the baseline, so the baseline is the last subject.

use super::{CompareFacts, ProgramFacts};
use crate::figures::NANOS_PER_MS;
use crate::finding::Severity;
use crate::requirement::{Facts, Metric, NoData, Subject};
use crate::stats::MIN_ROUNDS;

impl Facts for CompareFacts {
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

    fn value(&self, subject: usize, metric: &Metric) -> Result<f64, NoData> {
        let all = self.variants.len();
        let index = if subject + 1 == all { 0 } else { subject + 1 };
        let program = self.variants.get(index).ok_or(NoData::NothingHappened)?;
        let name = metric.entry().name;
        let parameter = metric.parameter();
        let rounds = program.rounds.len() as f64;
        if rounds == 0.0 {
            return Err(NoData::NothingHappened);
        }
        let blind = program.requests.total == 0 && program.connections.opened > 0;
        let seen = |sum: u64| {
            if blind {
                Err(NoData::CannotSee(
                    "the connections do not show what they carry",
                ))
            } else {
                Ok(sum as f64 / rounds)
            }
        };
        let found = |which: &dyn Fn(&str, Severity) -> bool| {
            let findings = program.findings.iter().map(|one| &one.finding);
            let found = findings.filter(|one| which(one.rule, one.severity));
            Ok(found.count() as f64)
        };
        let requests = &program.requests;
        match name {
            "requests" => seen(requests.total),
            "ok" => seen(requests.ok),
            "failed" => seen(requests.failures()),
            "failed.<kind>" => {
                let kind = parameter.and_then(|kind| requests.failed.get(kind));
                seen(kind.copied().unwrap_or(0))
            }
            "stale" => seen(requests.failed.get("stale").copied().unwrap_or(0)),
            "status.<code>" => seen(parameter.map_or(0, |wanted| requests.of_status(wanted))),
            "connections" => Ok(program.connections.opened as f64 / rounds),
            "connections-failed" => {
                let failed: u64 = program.connections.failed.values().sum();
                Ok(failed as f64 / rounds)
            }
            "needed" => Ok(program.connections.needed as f64 / rounds),
            "avoidable" => Ok(program.avoidable as f64 / rounds),
            "reused" => seen(program.reused),
            "reuse" => program.reuse.ok_or(NoData::CannotSee(
                "the connections do not show what they carry",
            )),
            "requests-per-connection" => {
                let opened = program.connections.opened as f64;
                let ratio = seen(requests.total)? * rounds / opened;
                Some(ratio)
                    .filter(|ratio| ratio.is_finite())
                    .ok_or(NoData::NothingHappened)
            }
            "look-ups" => Ok(program.look_ups as f64 / rounds),
            "resumed-share" => match program.handshakes.total() {
                0 => Err(NoData::NothingHappened),
                all => Ok(program.handshakes.resumed as f64 / all as f64),
            },
            "cpu-per-request" => match (program.cpu_ms, requests.total) {
                (Some(cpu), total @ 1..) => Ok(cpu.mean * NANOS_PER_MS * rounds / total as f64),
                (None, _) => Err(NoData::NotMeasured("stored ledgers do not tell it")),
                (_, 0) => Err(NoData::NothingHappened),
            },
            "saved" => self.saved(program, |one| Some(one.saved_ms?.low * NANOS_PER_MS)),
            "saved-share" => self.saved(program, |one| Some(one.saved_share?.low)),
            "findings" => found(&|_, _| true),
            "findings.<rule>" => found(&|rule, _| Some(rule) == parameter),
            "warnings" => found(&|_, severity| severity == Severity::Warning),
            "errors" => found(&|_, severity| severity == Severity::Error),
            _ => Err(NoData::NotMeasured(
                "compare tells wall time (saved, saved-share); `intact watch` tells latencies of one program",
            )),
        }
    }
}

impl CompareFacts {
    /// What a program saves of the baseline's wall time, at the end of the interval that saves least.
    fn saved(
        &self,
        program: &ProgramFacts,
        low: impl Fn(&super::Compared) -> Option<f64>,
    ) -> Result<f64, NoData> {
        let mut walls = self
            .comparisons
            .iter()
            .filter(|one| one.statistic == "wall");
        let compared = walls
            .find(|one| one.b == program.name)
            .ok_or(NoData::NotMeasured(
                "it is the one that others are held against, or a stored ledger",
            ))?;
        low(compared).ok_or(NoData::TooFew {
            had: program.rounds.len() as u64,
            needed: MIN_ROUNDS as u64,
        })
    }
}
