//! Everything that a page of an observed run lays out. The same figures for all together and for
//! each destination.

use super::destination::Counts;
use super::ended;
use super::figures::Figures;
use super::level_shift::LevelShift;
use super::next_steps::{NextStep, is_local, next_steps};
use super::tracker::{Judged, Need, Tracker};
use super::verdict;
use crate::rules::{Attribution, Rule};
use intact_document::cpu::CpuFacts;
use intact_document::figures::NANOS_PER_MS;
use intact_document::finding::Finding;
use intact_document::first_calls::{CallNoun, FirstCallTiers};
use intact_document::traffic_readings::TrafficReadings;
use intact_document::unobserved::Unobserved;
use intact_document::{ClaimKind, Claims};
use intact_ledger::{Caveat, Handshake, Run, TlsVersion};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What tiers are of.
const FIRST_CALLS: CallNoun = CallNoun("the", "first requests of new connections");

/// What an observer found out. Times are in milliseconds where the name says so.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ObservedFacts {
    /// Sentences, the one that matters most first.
    pub verdict: Claims,
    /// Requests and connections of `totals`.
    #[serde(flatten)]
    pub traffic: TrafficReadings,
    /// All destinations together.
    pub totals: Figures,
    /// Each destination, the one that wastes most first.
    pub destinations: Vec<Destination>,
    /// What stands out, the worst and most expensive first.
    pub findings: Vec<Finding>,
    /// Commands to run next, where there is a warning.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<NextStep>,
    /// What the programs took of the processors, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuFacts>,
    /// What limits the figures.
    pub caveats: Vec<Caveat>,
}

/// The figures of one destination.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Destination {
    /// Scheme, host and port, or an address; for a server's ledger the client.
    pub origin: String,
    /// The host that `--require 'host=...'` finds it by.
    pub host: Option<String>,
    /// Further names of the same server, by which `host=...` finds it too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The commands of the processes that opened its connections, and how many each opened.
    pub commands: BTreeMap<String, u64>,
    /// What the clients call themselves, and how many connections are of each.
    pub agents: BTreeMap<String, u64>,
    /// How many processes, up to sixteen.
    pub processes: u64,
    /// Protocols of the connections, and how many spoke each.
    pub protocols: BTreeMap<&'static str, u64>,
    /// TLS handshakes.
    pub tls: Vec<TlsFigures>,
    /// The tiers of the first requests of its new connections, where there are two or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tiers: Option<FirstCallTiers>,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
}

impl Destination {
    fn of(
        (origin, hosts): (String, Vec<String>),
        counts: &Counts,
        figures: Figures,
    ) -> Destination {
        let mut hosts = hosts.into_iter();
        let protocols = counts.protocols.iter();
        Destination {
            origin,
            host: hosts.next(),
            aliases: hosts.collect(),
            commands: named(&counts.commands),
            agents: named(&counts.agents),
            processes: counts.pids.len() as u64,
            protocols: protocols
                .map(|(protocol, &count)| (protocol.as_str(), count))
                .collect(),
            tls: tls(counts),
            tiers: tiers(counts),
            figures,
        }
    }

    /// Whether it has this origin, under any of its names.
    pub fn is_called(&self, origin: &str) -> bool {
        let host = origin.split_once("://").map(|(_, host)| host);
        let mut hosts = self.host.iter().chain(&self.aliases);
        self.origin == origin || hosts.any(|one| Some(one.as_str()) == host)
    }

    fn has_traffic(&self) -> bool {
        !self.figures.counted.is_empty() || self.figures.open_before > 0
    }

    /// Who opened its connections: processes, or what clients call themselves where processes
    /// cannot be seen.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        let names = if self.commands.is_empty() {
            &self.agents
        } else {
            &self.commands
        };
        names.keys().map(String::as_str)
    }
}

fn named(counts: &BTreeMap<Arc<str>, u64>) -> BTreeMap<String, u64> {
    let named = |(name, &count): (&Arc<str>, &u64)| (name.to_string(), count);
    counts.iter().map(named).collect()
}

/// How many TLS handshakes were of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TlsFigures {
    /// The version; absent when it was not seen.
    pub version: Option<TlsVersion>,
    /// Full, resumed, with early data; absent when it was not seen.
    pub handshake: Option<Handshake>,
    /// How many.
    pub count: u64,
}

impl ObservedFacts {
    /// `changes` has the lasting changes, from the number of connections that the requests need.
    pub(super) fn new(
        tracker: &Tracker,
        judged: &Judged,
        rules: &[Rule],
        changes: &dyn Fn(u64) -> Vec<LevelShift>,
    ) -> ObservedFacts {
        let mut caveats = tracker.caveats();
        let (mut findings, may_have_places) = findings(tracker, judged, rules);
        caveats.retain(|caveat| may_have_places || !caveat.is_about_places());
        let needed = judged.needs.iter().map(|need| need.least()).sum();
        ended::mark(&mut findings, &changes(needed), tracker, judged);
        let mut missing = Unobserved::by_caveats(&caveats);
        let lookups = &tracker.lookups.all;
        missing.add_lacking(tracker.run(), lookups.total, lookups.without_result);
        let opaque = tracker.opaque();
        let destinations = destinations(tracker, judged, &opaque, &missing);
        let mut totals = Figures::of(
            &tracker.destinations.all,
            judged
                .needs
                .iter()
                .copied()
                .fold(Need::default(), Need::plus),
            opaque.iter().sum(),
            tracker.lookups.all,
            &missing,
        );
        totals.sum_up(&destinations, tracker.lookups.in_vain());
        caveats.extend(partly_known(&totals));
        let mut facts = ObservedFacts {
            verdict: Claims::default(),
            traffic: totals.traffic.clone(),
            totals,
            destinations,
            findings,
            next: Vec::new(),
            cpu: None,
            caveats,
        };
        facts.verdict = verdict::claims(tracker, judged, &facts);
        let run = tracker.run();
        let is_near = facts.is_near(run);
        facts.next = next_steps(run, &facts.findings, is_near, &facts.failed_figures());
        facts
    }

    /// The figures of a gate on what failed, where the first sentences name it.
    fn failed_figures(&self) -> Vec<&'static str> {
        let is_named = self.verdict.iter().any(|one| one.kind == ClaimKind::Failed);
        let counted = &self.totals.counted;
        let lookups = self.totals.lookups.failed;
        let all = [
            ("failed", counted.requests.failures() + lookups),
            ("connections-failed", counted.connections.dials().0),
        ];
        let failed = all.into_iter().filter(|(_, count)| is_named && *count > 0);
        failed.map(|(figure, _)| figure).collect()
    }

    /// Whether its destinations cost next to nothing to reach: what a setup costs is no argument.
    pub fn is_near(&self, run: &Run) -> bool {
        is_local(self) && run.link.is_none()
    }

    /// Adds what is missing of all destinations.
    pub fn add_unobserved(&mut self, missing: &Unobserved) {
        self.each(|figures| figures.add_unobserved(missing));
    }

    /// When the connections from before were opened is known: not in what is counted here.
    pub(super) fn know_openings(&mut self) {
        self.each(Figures::know_openings);
    }

    fn each(&mut self, change: impl Fn(&mut Figures)) {
        change(&mut self.totals);
        self.destinations
            .iter_mut()
            .for_each(|one| change(&mut one.figures));
        self.traffic = self.totals.traffic.clone();
    }

    /// Whether nothing was lost to setup, to requests without a response, or to waiting for a
    /// connection.
    pub fn has_evidence_of_no_gain(&self) -> bool {
        verdict::has_evidence_of_no_gain(self)
    }
}

/// The findings of all rules, the worst and most expensive first, and whether one of them may have
/// places in the code. Destinations are limited, and with them the findings.
fn findings(tracker: &Tracker, judged: &Judged, rules: &[Rule]) -> (Vec<Finding>, bool) {
    let mut attribution = Attribution::new(tracker, judged);
    let mut findings: Vec<Finding> = Vec::new();
    for rule in rules {
        let mut found = rule.findings(&mut attribution);
        attribution.place(&mut found);
        findings.extend(found);
    }
    findings.sort_by(|a, b| {
        let cost = |finding: &Finding| finding.cost_ms.unwrap_or(0.0);
        (b.severity.cmp(&a.severity)).then(cost(b).total_cmp(&cost(a)))
    });
    (findings, attribution.has_counted)
}

/// The destinations with any traffic, the one that wastes most first.
fn destinations(
    tracker: &Tracker,
    judged: &Judged,
    opaque: &[u64],
    missing: &Unobserved,
) -> Vec<Destination> {
    let all = &tracker.destinations;
    let each = all
        .keys
        .iter()
        .zip(&all.counts)
        .zip(judged.needs.iter().zip(opaque))
        .enumerate();
    let each = each.map(|(at, ((key, counts), (&need, &opaque)))| {
        let origin = key.origin.as_ref();
        let lookups = origin.and_then(|origin| tracker.lookups.names.get(&origin.host));
        let lookups = lookups.copied().unwrap_or_default();
        let names = (all.name(at), all.hosts(at));
        let figures = Figures::of(counts, need, opaque, lookups, missing);
        Destination::of(names, counts, figures)
    });
    let mut destinations: Vec<Destination> = each.filter(Destination::has_traffic).collect();
    destinations.sort_by_key(|one| {
        let counted = &one.figures.counted;
        let wasted = counted.wasted_ms.map_or(0, |ms| (ms * NANOS_PER_MS) as u64);
        Reverse((
            wasted,
            counted.avoidable + counted.connections.by_server,
            counted.requests.total,
            counted.connections.opened,
        ))
    });
    destinations
}

/// The caveats about connections that cannot be read, and about requests whose reuse is unknown.
fn partly_known(totals: &Figures) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if totals.opaque > 0 {
        caveats.push(Caveat::incomplete(
            "cannot-see-inside",
            format!(
                "the content of {} of {} connections cannot be seen: their requests are missing in the counts",
                totals.opaque,
                totals.counted.connections.opened + totals.open_before
            ),
        ));
    }
    let (known, requests) = (totals.reuse_known, totals.counted.requests.total);
    if known > 0 && known < requests {
        caveats.push(Caveat::new(
            "reuse-partly-known",
            format!(
                "reuse is unknown for {} of {requests} requests: it lies in the range given, and a requirement is checked against the unfavourable end",
                requests - known
            ),
        ));
    }
    caveats
}

fn tiers(counts: &Counts) -> Option<FirstCallTiers> {
    // times to the second show no tiers
    let detail = counts.detail.as_ref().filter(|_| !counts.is_coarse)?;
    FirstCallTiers::of(&detail.first_calls, FIRST_CALLS)
}

fn tls(counts: &Counts) -> Vec<TlsFigures> {
    let kinds = counts.tls.iter();
    kinds
        .map(|(&(version, handshake), &count)| TlsFigures {
            version,
            handshake,
            count,
        })
        .collect()
}
