//! Cost attribution: assigns each setup of a destination that was in vain to one rule.

use super::settings;
use crate::open_reason::SEVERAL;
use crate::pool_full::Full;
use crate::pool_renewal::Renewal;
use crate::tracker::Judged;
use crate::{Counts, OpenReason, Tracker};
use intact_advice::{Client, ServerLimit, server_line};
use intact_document::figures::NANOS_PER_MS;
use intact_document::finding::{Finding, Place, RuleDoc, Severity};
use intact_document::statement::{Statement, Value, connections, statement};
use std::collections::{BTreeMap, BTreeSet};

/// Rules that are about more than connections opened in vain: requests that fail, connections that
/// pile up.
const BREAKING: [&str; 7] = [
    "abandoned-request",
    "broken-response",
    "closed-before-response",
    "connection-shared-by-processes",
    "leaked-connections",
    "lost-in-drain",
    "stale-reuse",
];
/// Where they are half of the connections, this number suffices.
const PAIR: u64 = 2;
/// Connections that are needed at the same time from which on how many were busy depends on the
/// moment: a claim is more than a note only if it is a third of the connections.
const MANY: u64 = 4;
/// Requests per connection opened in vain from which on that is no more than a note.
const RARE: u64 = 100;
/// The share of a destination's time from which on lost time is more than a note.
const DEAR: f64 = 0.05;

/// Connections opened in vain that a rule has claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Claim {
    /// How many.
    pub connections: u64,
    /// The connections that were opened to the destination.
    pub opened: u64,
    /// The requests made there.
    pub requests: u64,
    /// The connections that would do there if the server ended none.
    pub needed: u64,
    /// Their setup in milliseconds (the mean of that destination for each); absent where setup was
    /// not seen.
    pub cost_ms: Option<f64>,
    /// The same as a share of the time of all exchanges with that destination.
    pub share: Option<f64>,
}

impl Claim {
    /// A warning from 3 connections on, or from 2 on that are half of those that were opened. Where
    /// four or more are needed at the same time, they must be a third. One per hundred requests is
    /// a note. What setups cost does not decide: it changes from run to run. A claim of lost time
    /// is a warning from 5 % of the destination's time on.
    pub(crate) fn severity(&self) -> Severity {
        let is_warning = match self.connections {
            0 => self.share.is_some_and(|share| share >= DEAR),
            claimed if are_rare(claimed, self.requests) => false,
            claimed if self.needed >= MANY => claimed >= SEVERAL && 3 * claimed >= self.opened,
            claimed => claimed >= SEVERAL || claimed >= PAIR && 2 * claimed >= self.opened,
        };
        Severity::Info.unless(is_warning, Severity::Warning)
    }

    /// What the claimed setups took, as evidence.
    pub(crate) fn statement(&self) -> Statement {
        let said = statement!(
            "{in_vain} opened in vain",
            in_vain = connections(self.connections)
        );
        let Some(cost) = self.cost_ms else {
            return said;
        };
        let each = Value::Duration(cost / self.connections.max(1) as f64);
        said.then(
            ", ",
            statement!("{setup_each} of setup each", setup_each = each),
        )
    }
}

/// Whether connections opened in vain were few for these requests: each costs next to nothing.
pub fn are_rare(in_vain: u64, requests: u64) -> bool {
    in_vain * RARE <= requests
}

/// The openings at one destination that a rule has claimed.
pub(super) struct ClaimedOpenings<'a> {
    pub(super) destination: usize,
    pub(super) name: String,
    pub(super) counts: &'a Counts,
    pub(super) needed: u64,
    pub(super) client: Option<&'static Client>,
    pub(super) openings: u64,
    pub(super) claim: Claim,
}

impl ClaimedOpenings<'_> {
    /// `3 connections were opened`, and why.
    pub(super) fn opened(&self, why: &str) -> Statement {
        let openings = connections(self.openings);
        let text = format!("{openings:#} opened {why}");
        Statement::written(text, vec![("openings", openings)])
    }

    /// What to do about a limit of the server: `what`, and the line of configuration.
    pub(super) fn server_fix(&self, limit: ServerLimit, what: &str) -> Statement {
        Statement::text(what.to_owned()).then(". ", self.server_line(limit))
    }

    /// The line of configuration against a limit of the server.
    pub(super) fn server_line(&self, limit: ServerLimit) -> Statement {
        Statement::text(server_line(settings::server(self.counts), limit))
    }

    /// A finding that costs what was claimed.
    pub(super) fn finding(
        &self,
        doc: &'static RuleDoc,
        said: Statement,
        evidence: impl Into<Statement>,
    ) -> Finding {
        let severity = self.claim.severity();
        Finding::by(doc, severity, self.name.clone(), said, evidence)
            .costing(self.claim.cost_ms, self.claim.share)
    }
}

/// The setups in vain, of the client or for a limit of the server, that no rule has claimed yet.
#[derive(Debug)]
pub struct Attribution<'a> {
    tracker: &'a Tracker,
    judged: &'a Judged,
    left: Vec<u64>,
    /// Time of requests without a complete response that no rule has claimed, in nanoseconds.
    lost: Vec<u64>,
    /// Setup of needed connections that requests waited for and no rule has claimed, in
    /// nanoseconds.
    waited: Vec<u64>,
    explained: BTreeSet<(usize, OpenReason)>,
    /// The destinations at which the rule that speaks has claimed openings, and the reasons that it
    /// named.
    counted: BTreeMap<usize, BTreeSet<OpenReason>>,
    /// Whether a finding counts openings, and so may have places.
    pub(crate) has_counted: bool,
}

impl<'a> Attribution<'a> {
    pub(crate) fn new(tracker: &'a Tracker, judged: &'a Judged) -> Attribution<'a> {
        let counts = tracker.destinations.counts.iter();
        // a client whose idle limit is below the server's is right
        let right = |at: usize| judged.causes.openings(at, OpenReason::PauseTooLong);
        let left = counts.clone().zip(&judged.needs).enumerate();
        let left: Vec<u64> = left
            .map(|(at, (counts, need))| (counts.opened - need.least()).saturating_sub(right(at)))
            .collect();
        let waited = counts.clone().zip(&left).map(|(counts, left)| {
            let avoidable = cost_ms(counts, *left).unwrap_or(0.0) * NANOS_PER_MS;
            counts.setup_waited.saturating_sub(avoidable as u64)
        });
        Attribution {
            tracker,
            judged,
            waited: waited.collect(),
            left,
            lost: counts.map(|counts| counts.lost.nanos).collect(),
            explained: BTreeSet::new(),
            counted: BTreeMap::new(),
            has_counted: false,
        }
    }

    /// Gives the findings of the rule that has just spoken the places in the code that opened what
    /// they count.
    pub(crate) fn place(&mut self, found: &mut [Finding]) {
        for (destination, whys) in std::mem::take(&mut self.counted) {
            let name = self.name(destination);
            for finding in found.iter_mut().filter(|finding| finding.is_about(&name)) {
                self.has_counted = true;
                finding.is_of_openings = !BREAKING.contains(&finding.rule);
                self.places(destination, &whys)
                    .for_each(|place| finding.add_place(place));
            }
        }
    }

    /// The places in the code that opened connections to a destination for one of these reasons.
    /// Without one, or where a pool as a whole has another reason than its single openings: for any
    /// reason that no other rule has spoken of.
    fn places(
        &self,
        destination: usize,
        whys: &BTreeSet<OpenReason>,
    ) -> impl Iterator<Item = Place> {
        let is_seen = |why| !matches!(why, OpenReason::Growth | OpenReason::Unseen);
        let is_free = |why| is_seen(why) && !self.explained.contains(&(destination, why));
        let causes = &self.judged.causes;
        let mut counts = causes.places(destination, |why| whys.contains(&why));
        if counts.is_empty() {
            counts = causes.places(destination, |why| is_free(why) || whys.contains(&why));
        }
        if counts.is_empty() {
            counts = causes.places(destination, is_seen);
        }
        counts.into_iter().filter_map(|(stack, connections)| {
            let (place, stack) = self.tracker.place(stack)?;
            Some(Place {
                file: place.file.as_deref()?.to_owned(),
                line: place.line?,
                function: place.function.to_string(),
                connections,
                stack: stack.frames.clone(),
            })
        })
    }

    /// The tracker.
    pub fn tracker(&self) -> &'a Tracker {
        self.tracker
    }

    /// The destinations: index, name, counts.
    pub fn destinations(&self) -> impl Iterator<Item = (usize, String, &'a Counts)> + use<'a> {
        let tracker = self.tracker;
        let all = &tracker.destinations;
        let counts = all.counts.iter().enumerate();
        counts.map(|(at, counts)| (at, all.name(at), counts))
    }

    /// The connections that would do at a destination if the server ended none.
    pub fn needed(&self, destination: usize) -> u64 {
        self.judged.needs[destination].least()
    }

    /// The connections opened in vain that no rule has claimed yet.
    pub fn left(&self, destination: usize) -> u64 {
        self.left[destination]
    }

    /// Why connections were opened of which no rule has spoken yet, and how many for each reason;
    /// the most frequent first.
    pub fn unexplained(&self, destination: usize) -> Vec<(u64, OpenReason)> {
        let whys = self.judged.causes.reasons(destination);
        let mut found: Vec<(u64, OpenReason)> = whys
            .filter(|(why, openings)| {
                !matches!(why, OpenReason::Growth | OpenReason::Unseen) && *openings > 0
            })
            .filter(|(why, _)| !self.explained.contains(&(destination, *why)))
            .map(|(why, openings)| (openings, why))
            .collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found
    }

    /// Claims, at each destination, what is left and was opened for this reason, where at least
    /// `least` can be claimed.
    pub(super) fn claim_by(&mut self, why: OpenReason, least: u64) -> Vec<ClaimedOpenings<'a>> {
        let destinations = 0..self.left.len();
        let claims = destinations.filter_map(|at| self.claim_at(at, &[why], least));
        claims.collect()
    }

    /// The same at one destination, for any of these reasons.
    pub(super) fn claim_at(
        &mut self,
        destination: usize,
        whys: &[OpenReason],
        least: u64,
    ) -> Option<ClaimedOpenings<'a>> {
        let is_free = |why: &&OpenReason| !self.explained.contains(&(destination, **why));
        let free = whys.iter().filter(is_free);
        let openings: u64 = free.map(|why| self.openings(destination, *why)).sum();
        (openings.min(self.left[destination]) >= least).then(|| {
            let explained = whys.iter().map(|why| (destination, *why));
            self.explained.extend(explained);
            let counted = self.counted.entry(destination).or_default();
            counted.extend(whys);
            self.claimed_openings(destination, openings)
        })
    }

    /// Claims what is left at one destination, whatever the reason, if it is at least this much.
    pub(super) fn claim_left(
        &mut self,
        destination: usize,
        least: u64,
    ) -> Option<ClaimedOpenings<'a>> {
        let openings = self.left[destination];
        (openings >= least).then(|| {
            self.explain_all(destination);
            self.claimed_openings(destination, openings)
        })
    }

    fn claimed_openings(&mut self, destination: usize, openings: u64) -> ClaimedOpenings<'a> {
        ClaimedOpenings {
            destination,
            name: self.name(destination),
            counts: self.counts(destination),
            needed: self.judged.needs[destination].least(),
            client: self.client(destination),
            openings,
            claim: self.claim(destination, openings),
        }
    }

    /// A rule has spoken of every opening at this destination.
    pub(super) fn explain_all(&mut self, destination: usize) {
        let reasons = self.judged.causes.reasons(destination);
        let all = reasons.map(|(why, _)| (destination, why));
        self.explained.extend(all);
    }

    /// What a person calls a destination.
    pub fn name(&self, destination: usize) -> String {
        self.tracker.destinations.name(destination)
    }

    /// A finding about a destination, with the rule's own remedy and risk.
    pub(super) fn finding(
        &self,
        doc: &'static RuleDoc,
        severity: Severity,
        destination: usize,
        said: impl Into<Statement>,
        evidence: impl Into<Statement>,
    ) -> Finding {
        Finding::by(doc, severity, self.name(destination), said, evidence)
    }

    /// The counts of a destination.
    pub fn counts(&self, destination: usize) -> &'a Counts {
        &self.tracker.destinations.counts[destination]
    }

    /// How many connections were opened for a reason, claimed or not.
    pub(super) fn openings(&self, destination: usize, why: OpenReason) -> u64 {
        self.judged.causes.openings(destination, why)
    }

    /// Connections that replaced one which the client had closed at its idle limit, where it is not
    /// known whether the server would have kept it.
    pub(super) fn idle_limited(&self, destination: usize) -> u64 {
        self.judged.needs[destination].idle_limited
    }

    /// The shortest idle time after which the client closed, in nanoseconds.
    pub(super) fn client_idle(&self, destination: usize) -> Option<u64> {
        self.judged.causes.client_idle(destination)
    }

    /// The pool that closed connections because it had no room for them.
    pub(super) fn full(&self, destination: usize) -> Option<Full> {
        self.judged.causes.full(destination)
    }

    /// The same, where no rule has spoken of it.
    pub(super) fn full_pool(&self, destination: usize) -> Option<Full> {
        let is_known = self
            .explained
            .contains(&(destination, OpenReason::PoolFull));
        self.full(destination).filter(|_| !is_known)
    }

    /// What a client counts that closes connections after a number of requests, or at an age.
    pub(super) fn renewal(&self, destination: usize) -> Option<Renewal> {
        self.judged.causes.renewal(destination)
    }

    /// The client of most connections to a destination, if it is recognised.
    pub fn client(&self, destination: usize) -> Option<&'static Client> {
        let idle = self.judged.causes.client_idle(destination);
        settings::client(self.counts(destination), idle)
    }

    /// Claims up to `connections` of what is left.
    pub fn claim(&mut self, destination: usize, connections: u64) -> Claim {
        let connections = connections.min(self.left[destination]);
        self.left[destination] -= connections;
        self.counted.entry(destination).or_default();
        let counts = &self.tracker.destinations.counts[destination];
        let cost_ms = cost_ms(counts, connections).filter(|_| connections > 0);
        Claim {
            connections,
            cost_ms,
            share: share(counts, cost_ms),
            ..self.unclaimed(destination)
        }
    }

    /// A claim of nothing.
    fn unclaimed(&self, destination: usize) -> Claim {
        let counts = self.counts(destination);
        Claim {
            opened: counts.opened,
            requests: counts.requests,
            needed: self.needed(destination),
            ..Claim::default()
        }
    }

    /// Claims up to `nanos` of the time of requests without a complete response.
    pub(super) fn claim_lost(&mut self, destination: usize, nanos: u64) -> Claim {
        let nanos = nanos.min(self.lost[destination]);
        self.lost[destination] -= nanos;
        self.claimed(destination, nanos)
    }

    /// Claims up to `nanos` of the setup of needed connections that requests waited for.
    pub(super) fn claim_wait(&mut self, destination: usize, nanos: u64) -> Claim {
        let nanos = nanos.min(self.waited[destination]);
        self.waited[destination] -= nanos;
        self.claimed(destination, nanos)
    }

    fn claimed(&self, destination: usize, nanos: u64) -> Claim {
        let cost_ms = (nanos > 0).then(|| nanos as f64 / NANOS_PER_MS);
        Claim {
            cost_ms,
            share: share(self.counts(destination), cost_ms),
            ..self.unclaimed(destination)
        }
    }
}

/// What this number of setups of a destination costs.
pub fn cost_ms(counts: &Counts, connections: u64) -> Option<f64> {
    let setup = &counts.setup_total;
    // where some connections do not show their setup, no more than was seen
    let nanos = (setup.mean()? * connections as f64).min(setup.nanos as f64);
    Some(nanos / NANOS_PER_MS)
}

/// A cost as a share of the time of all exchanges, with the setup that none waited for.
pub(crate) fn share(counts: &Counts, cost_ms: Option<f64>) -> Option<f64> {
    let time = counts.time().filter(|time| *time > 0)?;
    Some(cost_ms? * NANOS_PER_MS / time as f64)
}
