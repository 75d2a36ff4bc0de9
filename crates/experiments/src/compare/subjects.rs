//! A comparison as requirements ask for it: subjects are the programs, counts are those of one run
//! on average. Without a selector a requirement is about the programs that are compared with the
//! baseline, so the baseline is the last subject.

use super::{CompareFacts, NO_ROUND, ProgramFacts};
use crate::likeness::NO_PRODUCTION;
use crate::time_difference::{Saving, TimeStatistic};
use intact_document::facts::{add_findings, rule_states};
use intact_document::figures::NANOS_PER_MS;
use intact_document::requirement::{DocumentKind, FIGURES};
use intact_document::unobserved::Unobserved;
use intact_document::{Conclusions, Facts, Readings, RuleState, Subject};
use intact_reading::{Reading, Why};
use intact_traffic::rules;

/// A comparison has the wall time of programs, and no latencies of requests.
const ONLY_WALL_TIME: Why = Why::not_measured(
    "compare reports wall time (saved, saved-share); `intact watch` reports the latencies of one program",
);
/// The baseline sent requests and the program none.
const NO_REQUESTS: Why = Why::cannot_see("the program sent no request");
/// Programs that are no commits of a repository.
const NO_COMMITS: Why = Why::not_measured("`intact compare --commits` measures it");
/// A program that does less is faster for that reason.
const UNLIKE: Why = Why::cannot_see("the programs did not do the same work");
/// Programs have a CPU time only where they were run.
const NO_CPU: Why = Why::not_measured("stored ledgers do not contain it");
/// Nothing is compared with another.
const UNCOMPARED: Why =
    Why::not_measured("the others are compared with it, or it is a stored ledger");

impl Facts for CompareFacts {
    fn subjects(&self) -> Vec<Subject> {
        let programs = (0..).zip(&self.variants);
        let mut subjects: Vec<Subject> = programs
            .map(|(nth, program)| self.subject(nth, program))
            .collect();
        if !subjects.is_empty() {
            subjects.rotate_left(1);
        }
        subjects
    }

    fn default_subjects(&self) -> Option<usize> {
        Some(self.variants.len().saturating_sub(1).max(1))
    }

    fn conclusions(&self) -> Conclusions<'_> {
        Conclusions::new(&self.verdict, &self.findings, &self.caveats)
    }

    fn rules(&self) -> Vec<RuleState> {
        rule_states(rules::evidence(), &self.unobserved())
    }

    fn any_success(&self) -> bool {
        let mut programs = self.variants.iter();
        programs.any(|one| one.no_success().is_none())
    }

    fn unobserved(&self) -> Unobserved {
        let mut all = self.missing.clone();
        for program in &self.variants {
            all.add(&program.counted.unobserved);
            all.nothing |= program.counted.is_empty();
            if let Some(reason) = program.counted.no_response() {
                all.add(&Unobserved::because(&format!("{}: {reason}", program.name)));
            }
        }
        all
    }
}

impl CompareFacts {
    fn subject(&self, nth: usize, program: &ProgramFacts) -> Subject {
        let mut missing = program.counted.unobserved.clone();
        missing.nothing = program.counted.is_empty();
        missing.add(&self.missing);
        let mut readings = Readings::default();
        // `compare` has none of the times that other documents about traffic have
        let of_watch = FIGURES.iter().filter(|figure| {
            let is_of = |kind| figure.documents.contains(&kind);
            is_of(DocumentKind::Watch) && !is_of(DocumentKind::Compare)
        });
        for figure in of_watch {
            readings.set(figure.name, Reading::unknown(ONLY_WALL_TIME));
        }
        program.traffic.add_to(&mut readings);
        let unlike = nth.checked_sub(1).zip(self.like.as_ref());
        let unlike = unlike.map_or(Reading::unknown(NO_PRODUCTION), |(test, like)| {
            like.unlike(test)
        });
        let per_connection = program.requests_per_connection.clone();
        readings.set("requests-per-connection", per_connection);
        readings.set("resumed-share", program.resumed_share.clone());
        readings.set("lookups", program.lookups.clone());
        readings.set("cpu-per-request", cpu_per_request(program, &missing));
        readings.set("unlike", unlike);
        readings.set("brought", self.brought(nth, program));
        self.saved(program).add_to(&mut readings);
        let rules = rule_states(rules::evidence(), &missing);
        let own = program.findings.iter().map(|one| &one.finding);
        add_findings(&mut readings, own, &rules, &missing);
        Subject {
            readings,
            unjudged: self.unjudged(program),
            ..Subject::new(&*program.name).label("variant", &*program.name)
        }
    }

    /// Why no figure of a program describes successful work.
    fn unjudged(&self, program: &ProgramFacts) -> Option<Why> {
        if program.rounds.is_empty() {
            return Some(Why::cannot_see(NO_ROUND));
        }
        let has_less = self.variants.first();
        let has_less = has_less.is_some_and(|first| program.sends_fewer(first));
        let is_idle = program.counted.requests.total == 0 && has_less;
        let reason = program.no_success().map(Why::cannot_see);
        let idle = is_idle.then_some(NO_REQUESTS);
        reason.or(idle).or(program.counted.unjudged())
    }

    /// How much a change brought.
    fn brought(&self, nth: usize, program: &ProgramFacts) -> Reading {
        let answer = self.answers.iter().find(|one| one.b == program.name);
        match answer {
            Some(answer) => match &answer.unseen {
                Some(reason) => Reading::unknown(Why::CannotSee(reason.clone().into())),
                None => Reading::count(answer.brought.len() as u64),
            },
            None if nth == 0 && !self.answers.is_empty() => Reading::unknown(Why::Baseline),
            None => Reading::unknown(NO_COMMITS),
        }
    }

    /// What a program saves of the baseline's wall time.
    fn saved(&self, program: &ProgramFacts) -> Saving {
        // the time of failures is no saving
        let mut compared = self.variants.iter().take(1).chain([program]);
        if let Some(reason) = compared.find_map(ProgramFacts::no_success) {
            return Saving::unknown(Why::cannot_see(reason));
        }
        let outcome = self.outcomes.iter().find(|one| one.b == program.name);
        if outcome.is_some_and(|one| !one.unlike.is_empty()) {
            return Saving::unknown(UNLIKE);
        }
        let b = (&*program.name, program.rounds.len());
        Saving::of(&self.comparisons, b, TimeStatistic::Wall, UNCOMPARED)
    }
}

fn cpu_per_request(program: &ProgramFacts, missing: &Unobserved) -> Reading {
    let total = program.counted.requests.total;
    match program.cpu_ms {
        None => Reading::unknown(NO_CPU),
        Some(_) if total == 0 => Reading::default(),
        Some(cpu) => {
            let all = cpu.mean * NANOS_PER_MS * program.rounds.len() as f64;
            missing.statistic(Reading::known(all / total as f64))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Comparison;
    use super::*;
    use intact_document::requirement::Requirement;
    use intact_ledger::{
        Event, Evidence, Exchange, Failure, Nanos, Outcome, Producer, Round, Run, Sink, Span,
        Vantage, Variant,
    };
    use std::collections::BTreeMap;

    /// Two programs, two rounds of three requests each; `ok` gets the program.
    fn facts(ok: impl Fn(u32) -> bool) -> CompareFacts {
        let started = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut run = Run::new(Producer::Compare, "0", Vantage::OnPath, started, 1, &[])
            .with_evidence(Evidence::ALL);
        run.variants = ["old", "new"]
            .map(|name| Variant {
                name: name.to_owned(),
                axes: BTreeMap::new(),
            })
            .into();
        let mut comparison = Comparison::new(&run);
        for round in 1..=2 {
            for variant in 0..2 {
                for nth in 0..3 {
                    let mut one = Exchange::new(nth, Nanos(nth * 1_000_000));
                    (one.variant, one.round) = (Some(variant), Some(round));
                    one.end = one.at.after(500_000);
                    if !ok(variant) {
                        one.outcome = Outcome::Failed(Failure::Reset);
                    }
                    comparison.record(Event::Exchange(&one));
                }
                comparison.record(Event::Round(&Round::new(
                    variant,
                    round,
                    Span::new(Nanos(0), Nanos(10_000_000)),
                )));
            }
        }
        comparison.facts()
    }

    #[test]
    fn where_no_program_had_a_success_that_is_the_first_sentence() {
        let failed = facts(|_| false);
        assert!(!failed.any_success());
        let sentences: Vec<&str> = failed.verdict.sentences().collect();
        assert_eq!(
            sentences,
            [
                "No program had a success: old: no request got a complete response; new: no request got a complete response",
                "Failed requests: 6 of 6 in old, 6 of 6 in new"
            ]
        );
        let one = facts(|variant| variant == 0);
        assert!(one.any_success());
        let first = &*one.verdict[0].statement;
        assert!(first.contains("6 of 6 in new"), "{first}");
        let second = &*one.verdict[1].statement;
        assert!(second.contains("new has no success"), "{second}");
    }

    #[test]
    fn counts_are_those_of_one_run_in_every_output() {
        let facts = facts(|_| true);
        let new = &facts.variants[1];
        assert_eq!(new.traffic.requests.total, Reading::count(3));
        assert_eq!(new.counted.requests.total, 6);
        let json = serde_json::to_value(new).unwrap();
        assert_eq!(json["requests"]["total"], 3);
        let gate: Requirement = "requests == 3".parse().unwrap();
        assert!(gate.evaluate(&facts).passed());
        assert_eq!(facts.traffic.requests.total, Reading::count(12));
    }
}
