//! One of the programs: figures of each of its rounds, sums over them, its findings and in how many
//! rounds they stood.

use super::finding_keys::FindingKeys;
use super::{NO_ROUND, WARMUP};
use crate::traffic::ObservedTraffic;
use intact_document::figures::{NANOS_PER_MS, embeds, resumed_range};
use intact_document::finding::Finding;
use intact_document::unobserved::Unobserved;
use intact_ledger::{Event, Failure, Handshake, Round, Run, Sink};
use intact_reading::{Reading, Why};
use intact_statistics::mean;
use intact_traffic::{ObservedFacts, TrafficAnalysis};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// TLS handshakes of one run by kind: means.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Handshakes {
    /// Full ones.
    pub full: Reading,
    /// Resumed ones, with or without early data.
    pub resumed: Reading,
    /// Of a kind that was not seen.
    pub unknown: Reading,
}

impl Handshakes {
    /// All of them.
    pub fn total(&self) -> Reading {
        self.full.plus(&self.resumed).plus(&self.unknown)
    }
}

/// TLS handshakes that were seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeenHandshakes {
    full: u64,
    resumed: u64,
    unknown: u64,
}

impl SeenHandshakes {
    fn total(&self) -> u64 {
        self.full + self.resumed + self.unknown
    }
}

/// Mean and extremes over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

/// The figures of one run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RoundFigures {
    /// The round, from 1.
    pub round: u32,
    /// From the program's start to its end; absent where that was not recorded.
    pub wall_ms: Option<f64>,
    /// CPU time of the program and of all that it started.
    pub cpu_ms: Option<f64>,
    /// The most memory that one process of it had resident at a time, in MB; absent where that was
    /// not recorded.
    pub memory_mb: Option<f64>,
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
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ProgramFacts {
    /// What it is called.
    pub name: String,
    /// Wall time of a run.
    pub wall_ms: Option<Spread>,
    /// CPU time of a run.
    pub cpu_ms: Option<Spread>,
    /// Requests and connections of one run: means.
    #[serde(flatten)]
    pub observed: ObservedTraffic,
    /// TLS handshakes of one run.
    pub handshakes: Handshakes,
    /// Share of them that resumed a session.
    pub resumed_share: Reading,
    /// Names looked up in one run: the mean.
    pub lookups: Reading,
    /// Lookups of one run that failed: the mean.
    pub lookups_failed: Reading,
    /// Handshakes of all rounds.
    #[serde(skip)]
    pub(crate) handshakes_seen: SeenHandshakes,
    /// Lookups of all rounds, and those that failed.
    #[serde(skip)]
    pub(crate) lookups_seen: (u64, u64),
    /// Those of them that a request waited for.
    #[serde(skip)]
    pub(crate) lookups_in_vain: u64,
    /// What stood out, each with the rounds in which it did, in the words of the last of them.
    pub findings: Vec<Found>,
    /// Each round.
    pub rounds: Vec<RoundFigures>,
    /// The destinations that it called, by their keys, and what of the traffic to each is missing.
    #[serde(skip)]
    pub(crate) destinations: BTreeMap<String, Unobserved>,
}

embeds!(ProgramFacts, observed: ObservedTraffic);

/// A finding and how often it was made.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Found {
    /// The finding of the last round that had it.
    #[serde(flatten)]
    pub finding: Finding,
    /// Rounds that had it.
    pub rounds: u32,
    /// Their numbers.
    #[serde(skip)]
    pub(crate) numbers: BTreeSet<u32>,
    /// The keys of its destinations.
    #[serde(skip)]
    pub(crate) keys: BTreeSet<String>,
}

/// What was found in one round.
struct RoundFindings {
    round: u32,
    findings: Vec<Finding>,
    /// The destinations that were called, and what of the traffic to each is missing.
    called: Vec<(String, Unobserved)>,
}

/// A program while rounds come in.
pub(super) struct Program {
    live: TrafficAnalysis,
    /// Whether something was recorded since the last end of a round.
    begun: bool,
    /// The last round, while another program has not ended it.
    waiting: Option<EndedRound>,
    /// What was found in the rounds that count.
    found: Vec<RoundFindings>,
    /// What was found while it warmed up. Only then stacks are read, which takes time.
    placed: Vec<Finding>,
    facts: ProgramFacts,
}

/// A round of one program.
pub(super) struct EndedRound {
    round: u32,
    wall: Option<u64>,
    cpu: Option<u64>,
    memory: Option<u64>,
    facts: ObservedFacts,
}

impl Program {
    pub(super) fn new(run: &Run, name: &str) -> Program {
        Program {
            live: TrafficAnalysis::new(run),
            begun: false,
            waiting: None,
            found: Vec::new(),
            placed: Vec::new(),
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

    /// Takes a place in the code, which may be of another program.
    pub(super) fn place(&mut self, stack: Event<'_>) {
        self.live.record(stack);
    }

    /// Ends a round, which waits for the other programs; the next one begins with `fresh`.
    pub(super) fn end(&mut self, round: &Round, fresh: TrafficAnalysis) {
        self.begun = false;
        let facts = std::mem::replace(&mut self.live, fresh).facts();
        if round.round == WARMUP {
            let placed = facts.findings.into_iter();
            self.placed
                .extend(placed.filter(|one| !one.places.is_empty()));
            return;
        }
        self.waiting = Some(EndedRound {
            round: round.round,
            wall: Some(round.span.nanos()),
            cpu: round.client_cpu,
            memory: round.client_memory,
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
            if let Some(round) = self.facts.rounds.last_mut() {
                round.memory_mb = ended.memory.map(|bytes| bytes as f64 / 1e6);
            }
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
        let counted = &totals.counted;
        let mut handshakes = SeenHandshakes::default();
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
            memory_mb: None,
            outbound_ms: totals.outbound_ms,
            requests: counted.requests.total,
            failed: counted.requests.failures(),
            stale: counted.requests.failed_with(Failure::Stale),
            connections: counted.connections.opened,
            avoidable: counted.avoidable,
            handshakes: handshakes.total(),
            lookups: totals.lookups.seen,
        });
        ours.observed.counted.add(counted);
        ours.handshakes_seen.full += handshakes.full;
        ours.handshakes_seen.resumed += handshakes.resumed;
        ours.handshakes_seen.unknown += handshakes.unknown;
        ours.lookups_seen.0 += totals.lookups.seen;
        ours.lookups_seen.1 += totals.lookups.failed;
        ours.lookups_in_vain += totals.lookups_in_vain();
        let called = facts.destinations.iter();
        let called = called.map(|one| {
            let missing = one.figures.counted.unobserved.clone();
            (one.origin.clone(), missing)
        });
        self.found.push(RoundFindings {
            round,
            findings: facts.findings.clone(),
            called: called.collect(),
        });
    }

    /// The destinations that were called, a name for each round.
    pub(super) fn called(&self) -> impl Iterator<Item = &str> {
        let rounds = self.found.iter();
        rounds.flat_map(|round| round.called.iter().map(|(name, _)| &**name))
    }

    /// The findings of all rounds, each once.
    fn found(&self, keys: &FindingKeys) -> Vec<Found> {
        let mut found: Vec<Found> = Vec::new();
        for round in &self.found {
            for finding in &round.findings {
                let keys = keys.of(finding);
                match found.iter_mut().find(|one| one.is(finding.rule, &keys)) {
                    // a rule may have two things to say of one destination
                    Some(known) if known.numbers.contains(&round.round) => {}
                    Some(known) => {
                        known.rounds += 1;
                        known.numbers.insert(round.round);
                        known.finding = finding.clone();
                        known.keys.extend(keys);
                    }
                    None => found.push(Found {
                        finding: finding.clone(),
                        rounds: 1,
                        numbers: [round.round].into(),
                        keys,
                    }),
                }
            }
        }
        for one in found.iter_mut().filter(|one| one.finding.places.is_empty()) {
            let mut placed = self.placed.iter();
            let same = placed.find(|placed| one.is(placed.rule, &keys.of(placed)));
            if let Some(same) = same {
                one.finding.places.clone_from(&same.places);
            }
        }
        found
    }

    /// What is known so far, where this is `missing` in addition.
    pub(super) fn facts(&self, missing: &Unobserved, keys: &FindingKeys) -> ProgramFacts {
        let mut facts = self.facts.clone();
        facts.findings = self.found(keys);
        for (name, missing) in self.found.iter().flat_map(|round| &round.called) {
            let known = facts.destinations.entry(keys.key(name)).or_default();
            known.add(missing);
        }
        let rounds = &facts.rounds;
        facts.wall_ms = Spread::of(rounds.iter().filter_map(|round| round.wall_ms));
        facts.cpu_ms = Spread::of(rounds.iter().filter_map(|round| round.cpu_ms));
        let runs = rounds.len().max(1) as f64;
        let mut unobserved = facts.counted.unobserved.clone();
        unobserved.add(missing);
        let is_empty = rounds.is_empty();
        if is_empty {
            unobserved.add(&Unobserved::because(NO_ROUND));
        }
        let known = |reading: Reading| match is_empty {
            true => Reading::unknown(Why::cannot_see(NO_ROUND)),
            false => reading.times(1.0 / runs),
        };
        let lookups = |count: u64| known(unobserved.lookups(count));
        let opened = facts.counted.connections.opened;
        let handshakes = |count: u64| known(unobserved.connections(count, opened));
        let seen = facts.handshakes_seen;
        facts.handshakes = Handshakes {
            full: handshakes(seen.full),
            resumed: handshakes(seen.resumed),
            unknown: handshakes(seen.unknown),
        };
        facts.resumed_share = resumed_range(seen.resumed, seen.unknown, seen.total())
            .map_or_else(Reading::default, |range| {
                unobserved.share_of_connections(range)
            });
        facts.lookups = lookups(facts.lookups_seen.0);
        facts.lookups_failed = lookups(facts.lookups_seen.1);
        let in_vain = facts.lookups_in_vain;
        facts.observed = ObservedTraffic::of(facts.observed.counted, in_vain, &unobserved, runs);
        if is_empty {
            facts.observed.traffic = facts.traffic.unmeasured(&Why::cannot_see(NO_ROUND));
        }
        facts
    }
}

impl Found {
    /// Whether it is of this rule and about one of these destinations.
    pub(super) fn is(&self, rule: &str, keys: &BTreeSet<String>) -> bool {
        self.finding.rule == rule && self.is_about(keys)
    }

    /// Whether it is about one of these destinations.
    pub(super) fn is_about(&self, keys: &BTreeSet<String>) -> bool {
        !self.keys.is_disjoint(keys)
    }
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let values: Vec<f64> = values.collect();
        let first = *values.first()?;
        Some(Spread {
            mean: mean(&values)?,
            min: values.iter().copied().fold(first, f64::min),
            max: values.iter().copied().fold(first, f64::max),
        })
    }
}
