//! What the view shows of the connections: facts and rates, put here once a second by the thread that records.

use crate::cmd::observing::Observing;
use intact_findings::Finding;
use intact_findings::traffic::{ObservedFacts, TrafficAnalysis};
use intact_ledger::{Event, Sink};
use intact_watch::WatchSink;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Seconds of rates that are kept.
const SECONDS: usize = 120;
/// Working out facts may take this share of the time: a twentieth.
const SHARE: u32 = 20;

/// What is shown.
pub(super) struct Shown {
    pub(super) subject: String,
    pub(super) since: Instant,
    pub(super) facts: Option<ObservedFacts>,
    /// Connections that are open now.
    pub(super) open: u64,
    /// Requests and new connections of each second, the latest last.
    pub(super) rates: VecDeque<(u64, u64)>,
    /// Findings in the order in which they came up, the newest first.
    pub(super) findings: Vec<(Instant, Finding)>,
}

pub(crate) struct Snapshot(Mutex<Shown>);

impl Snapshot {
    pub(super) fn new(subject: &str) -> Snapshot {
        Snapshot(Mutex::new(Shown {
            subject: subject.to_owned(),
            since: Instant::now(),
            facts: None,
            open: 0,
            rates: VecDeque::new(),
            findings: Vec::new(),
        }))
    }

    pub(super) fn read(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    fn put_facts(&mut self, mut facts: ObservedFacts) {
        let fresh = std::mem::take(&mut facts.findings);
        let now = Instant::now();
        self.findings.retain_mut(|(_, known)| {
            let same = fresh.iter().find(|one| is_same(one, known));
            same.is_some_and(|same| {
                *known = same.clone();
                true
            })
        });
        for one in fresh {
            if !self.findings.iter().any(|(_, known)| is_same(&one, known)) {
                self.findings.insert(0, (now, one));
            }
        }
        self.facts = Some(facts);
    }
}

fn is_same(a: &Finding, b: &Finding) -> bool {
    a.rule == b.rule && a.subject == b.subject
}

/// Records, and puts on the board what came of it.
pub(crate) struct Reporting<'a> {
    recording: &'a mut Observing<TrafficAnalysis>,
    board: Arc<Snapshot>,
    requests: u64,
    connections: u64,
    open: u64,
    next: Instant,
}

impl<'a> Reporting<'a> {
    pub(crate) fn new(
        recording: &'a mut Observing<TrafficAnalysis>,
        board: Arc<Snapshot>,
    ) -> Reporting<'a> {
        Reporting {
            recording,
            board,
            requests: 0,
            connections: 0,
            open: 0,
            next: Instant::now(),
        }
    }
}

impl Sink for Reporting<'_> {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Opened(connection) if connection.failed.is_none() => {
                self.connections += 1;
                self.open += 1;
            }
            Event::Exchange(_) => self.requests += 1,
            Event::Closed(_) => self.open = self.open.saturating_sub(1),
            _ => {}
        }
        self.recording.record(event);
    }
}

impl WatchSink for Reporting<'_> {
    fn tick(&mut self) {
        self.recording.tick();
        let now = Instant::now();
        let facts = (now >= self.next).then(|| self.recording.fold().facts());
        if facts.is_some() {
            self.next = now + now.elapsed() * SHARE;
        }
        let mut shown = self.board.read();
        shown.open = self.open;
        let rates = (
            std::mem::take(&mut self.requests),
            std::mem::take(&mut self.connections),
        );
        shown.rates.push_back(rates);
        if shown.rates.len() > SECONDS {
            shown.rates.pop_front();
        }
        if let Some(facts) = facts {
            shown.put_facts(facts);
        }
    }
}
