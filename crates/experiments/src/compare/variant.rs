//! One of the programs: figures of each of its rounds, sums over them, its findings and in how many
//! rounds they stood.

use super::WARMUP;
use intact_document::figures::{NANOS_PER_MS, ObservedCounts, embeds};
use intact_document::finding::Finding;
use intact_document::unobserved::Unobserved;
use intact_ledger::{Event, Failure, Handshake, Round, Run, Sink};
use intact_traffic::{ObservedFacts, TrafficAnalysis};
use serde::Serialize;
use std::collections::BTreeMap;

/// TLS handshakes by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Handshakes {
    /// Full ones.
    pub full: u64,
    /// Resumed ones, with or without early data.
    pub resumed: u64,
    /// Of a kind that was not seen.
    pub unknown: u64,
}

impl Handshakes {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.full + self.resumed + self.unknown
    }
}

/// Mean and extremes over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

/// The figures of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoundFigures {
    /// The round, from 1.
    pub round: u32,
    /// From the program's start to its end; absent where that was not recorded.
    pub wall_ms: Option<f64>,
    /// CPU time of the program and of all that it started.
    pub cpu_ms: Option<f64>,
    /// Sum of the latencies of all requests, setup included; absent where requests cannot be seen.
    pub outbound_ms: Option<f64>,
    /// Requests.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that met a connection which the server had closed.
    pub stale: u64,
    /// Connections opened.
    pub connections: u64,
    /// Connections opened beyond those needed.
    pub avoidable: u64,
    /// TLS handshakes.
    pub handshakes: u64,
    /// Names looked up.
    pub lookups: u64,
}

/// What is known of one program.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramFacts {
    /// What it is called.
    pub name: String,
    /// Wall time of a run.
    pub wall_ms: Option<Spread>,
    /// CPU time of a run.
    pub cpu_ms: Option<Spread>,
    /// Counts of all rounds; `needed` is the sum over the rounds.
    #[serde(flatten)]
    pub counts: ObservedCounts,
    /// TLS handshakes of all rounds.
    pub handshakes: Handshakes,
    /// Names looked up in all rounds.
    pub lookups: u64,
    /// Lookups that failed.
    pub lookups_failed: u64,
    /// Those of them that a request waited for.
    #[serde(skip)]
    pub(crate) lookups_in_vain: u64,
    /// What stood out, each with the rounds in which it did, in the words of the last of them.
    pub findings: Vec<Found>,
    /// Each round.
    pub rounds: Vec<RoundFigures>,
    /// The destinations that it called, and what of the traffic to each is missing.
    #[serde(skip)]
    pub(crate) destinations: BTreeMap<String, Unobserved>,
}

embeds!(ProgramFacts, counts: ObservedCounts);

/// A finding and how often it was made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Found {
    /// The finding of the last round that had it.
    #[serde(flatten)]
    pub finding: Finding,
    /// Rounds that had it.
    pub rounds: u32,
}

/// A program while rounds come in.
pub(super) struct Program {
    live: TrafficAnalysis,
    /// Whether something was recorded since the last end of a round.
    begun: bool,
    /// The last round, while another program has not ended it.
    waiting: Option<EndedRound>,
    facts: ProgramFacts,
}

/// A round of one program.
pub(super) struct EndedRound {
    round: u32,
    wall: Option<u64>,
    cpu: Option<u64>,
    facts: ObservedFacts,
}

impl Program {
    pub(super) fn new(run: &Run, name: &str) -> Program {
        Program {
            live: TrafficAnalysis::new(run),
            begun: false,
            waiting: None,
            facts: ProgramFacts {
                name: name.to_owned(),
                ..ProgramFacts::default()
            },
        }
    }

    pub(super) fn record(&mut self, event: Event<'_>) {
        self.begun = true;
        self.live.record(event);
    }

    /// Ends a round, which waits for the other programs; the next one begins with `fresh`.
    pub(super) fn end(&mut self, round: &Round, fresh: TrafficAnalysis) {
        self.begun = false;
        let facts = std::mem::replace(&mut self.live, fresh).facts();
        self.waiting = (round.round != WARMUP).then(|| EndedRound {
            round: round.round,
            wall: Some(round.span.nanos()),
            cpu: round.client_cpu,
            facts,
        });
    }

    /// Whether this round waits for other programs.
    pub(super) fn has_ended(&self, round: u32) -> bool {
        let waiting = self.waiting.as_ref();
        waiting.is_some_and(|waiting| waiting.round == round)
    }

    /// Counts the round that waited.
    pub(super) fn count_ended(&mut self) {
        if let Some(ended) = self.waiting.take() {
            self.take(ended.round, ended.wall, ended.cpu, &ended.facts);
        }
    }

    pub(super) fn rounds(&self) -> u32 {
        self.facts.rounds.len() as u32
    }

    pub(super) fn is_cut(&self) -> bool {
        self.begun || self.waiting.is_some()
    }

    pub(super) fn take(
        &mut self,
        round: u32,
        wall: Option<u64>,
        cpu: Option<u64>,
        facts: &ObservedFacts,
    ) {
        let ours = &mut self.facts;
        let totals = &facts.totals;
        let ms = |nanos: Option<u64>| nanos.map(|nanos| nanos as f64 / NANOS_PER_MS);
        let mut handshakes = Handshakes::default();
        for kind in facts.destinations.iter().flat_map(|one| &one.tls) {
            *match kind.handshake {
                Some(Handshake::Full) => &mut handshakes.full,
                Some(Handshake::Resumed | Handshake::EarlyData) => &mut handshakes.resumed,
                None => &mut handshakes.unknown,
            } += kind.count;
        }
        ours.rounds.push(RoundFigures {
            round,
            wall_ms: ms(wall),
            cpu_ms: ms(cpu),
            outbound_ms: totals.outbound_ms,
            requests: totals.requests.total,
            failed: totals.requests.failures(),
            stale: totals.requests.failed_with(Failure::Stale),
            connections: totals.connections.opened,
            avoidable: totals.avoidable,
            handshakes: handshakes.total(),
            lookups: totals.lookups.total,
        });
        ours.counts.add(&totals.counts);
        ours.handshakes.full += handshakes.full;
        ours.handshakes.resumed += handshakes.resumed;
        ours.handshakes.unknown += handshakes.unknown;
        ours.lookups += totals.lookups.total;
        ours.lookups_failed += totals.lookups.failed;
        ours.lookups_in_vain += totals.lookups.in_vain;
        for one in &facts.destinations {
            let known = ours.destinations.entry(one.origin.clone()).or_default();
            known.add(&one.figures.unobserved);
        }
        self.find(&facts.findings);
    }

    fn find(&mut self, findings: &[Finding]) {
        let mut met: Vec<(&str, &str)> = Vec::new();
        for finding in findings {
            let key = (finding.rule, finding.subject.as_str());
            // a rule may have two things to say of one place
            if met.contains(&key) {
                continue;
            }
            met.push(key);
            let known = self.facts.findings.iter_mut();
            let mut known = known.filter(|one| one.is(finding));
            match known.next() {
                Some(known) => {
                    known.rounds += 1;
                    known.finding = finding.clone();
                }
                None => self.facts.findings.push(Found {
                    finding: finding.clone(),
                    rounds: 1,
                }),
            }
        }
    }

    pub(super) fn facts(&self) -> ProgramFacts {
        let mut facts = self.facts.clone();
        let rounds = &facts.rounds;
        facts.wall_ms = Spread::of(rounds.iter().filter_map(|round| round.wall_ms));
        facts.cpu_ms = Spread::of(rounds.iter().filter_map(|round| round.cpu_ms));
        facts
    }
}

impl Found {
    /// Whether the two are of the same rule and about the same place.
    pub(super) fn is(&self, other: &Finding) -> bool {
        self.finding.rule == other.rule && self.finding.subject == other.subject
    }
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let values: Vec<f64> = values.collect();
        let first = *values.first()?;
        Some(Spread {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            min: values.iter().copied().fold(first, f64::min),
            max: values.iter().copied().fold(first, f64::max),
        })
    }
}
