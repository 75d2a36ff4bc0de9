//! The state of the connections that the view shows: facts and rates, updated once a second by the
//! thread that records.

use intact_document::Finding;
use intact_ledger::{Event, Sink};
use intact_traffic::ObservedFacts;
use intact_units::foreign_text::escape;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Seconds of rates that are kept.
const SECONDS: usize = 120;
/// Computing facts takes at most one part in this many of the time: 5 %.
const SHARE: u32 = 20;

/// The state.
pub(crate) struct Shown {
    pub(crate) subject: String,
    pub(crate) since: Instant,
    pub(crate) facts: Option<ObservedFacts>,
    /// Connections that are open now.
    pub(crate) open: u64,
    /// Requests and new connections of each second, the latest last.
    pub(crate) rates: VecDeque<(u64, u64)>,
    /// Findings in the order in which they came up, the newest first.
    pub(crate) findings: Vec<(Instant, Finding)>,
}

/// The state, shared by the thread that records and the thread that draws.
pub(crate) struct Snapshot(Mutex<Shown>);

impl Snapshot {
    pub(crate) fn new(subject: &str) -> Snapshot {
        Snapshot(Mutex::new(Shown {
            subject: escape(subject),
            since: Instant::now(),
            facts: None,
            open: 0,
            rates: VecDeque::new(),
            findings: Vec::new(),
        }))
    }

    pub(crate) fn read(&self) -> MutexGuard<'_, Shown> {
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

/// Takes events and facts for a view.
pub struct Reporter {
    snapshot: Arc<Snapshot>,
    requests: u64,
    connections: u64,
    open: u64,
    next: Instant,
}

impl Reporter {
    pub(crate) fn new(snapshot: Arc<Snapshot>) -> Reporter {
        Reporter {
            snapshot,
            requests: 0,
            connections: 0,
            open: 0,
            next: Instant::now(),
        }
    }

    /// Ends a second: updates the rates. Updates the facts, too, if that takes little enough time.
    pub fn tick(&mut self, facts: impl FnOnce() -> ObservedFacts) {
        let now = Instant::now();
        let facts = (now >= self.next).then(facts);
        if facts.is_some() {
            self.next = now + now.elapsed() * SHARE;
        }
        let mut shown = self.snapshot.read();
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

impl Sink for Reporter {
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
    }
}
