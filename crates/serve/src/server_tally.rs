//! The counts of the whole server: one tally per thread, added up on request.

use crate::config::Config;
use crate::disturbance::Disturbance;
use crate::fault::Fault;
use crate::name_server::LookupFault;
use crate::totals::{
    Connections, Lookups, Requests, Totals, UpstreamCalls, VersionCounts, add_counts,
};
use intact_ledger::{
    Closed, Connection, Event, Exchange, Lookup, Nanos, Outcome, Protocol, Run, Sink, Tally,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How many exchanges are kept to be shown, the last ones.
const LAST: usize = 20;

/// The record of a running server.
pub(crate) struct ServerTally {
    run: Run,
    started: Instant,
    pages: Box<[Mutex<Page>]>,
    /// Queries to the name server; absent without one.
    lookups: Option<Mutex<Lookups>>,
    /// Calls to the upstream; absent without one.
    upstream: Option<Mutex<UpstreamCalls>>,
    log: Option<Mutex<Box<dyn Sink + Send>>>,
}

/// What one thread has recorded.
#[derive(Default)]
struct Page {
    tally: Tally,
    closed: u64,
    /// Open connections that have not asked anything yet, and so are not recorded yet.
    waiting: u64,
    versions: BTreeMap<Protocol, VersionCounts>,
    status: BTreeMap<u16, u64>,
    faults: BTreeMap<Fault, u64>,
    disturbed: BTreeMap<Disturbance, u64>,
    last: VecDeque<Exchange>,
}

impl ServerTally {
    /// An empty tally with a page for each thread, begun now; events go on to `log`.
    pub(crate) fn new(
        run: Run,
        pages: usize,
        config: &Config,
        log: Option<Box<dyn Sink + Send>>,
    ) -> ServerTally {
        ServerTally {
            run,
            lookups: config.name_server.is_some().then(Mutex::default),
            upstream: config.upstream.is_some().then(Mutex::default),
            started: Instant::now(),
            pages: (0..pages).map(|_| Mutex::default()).collect(),
            log: log.map(Mutex::new),
        }
    }

    /// The time on the run's clock.
    pub(crate) fn now(&self) -> Nanos {
        Nanos(self.started.elapsed().as_nanos() as u64)
    }

    /// A connection is there that may yet turn out to ask about the server only.
    pub(crate) fn wait(&self, page: usize) {
        self.page(page).waiting += 1;
    }

    /// It has turned out.
    pub(crate) fn wait_no_more(&self, page: usize) {
        self.page(page).waiting -= 1;
    }

    pub(crate) fn opened(&self, page: usize, connection: &Connection) {
        {
            let mut page = self.page(page);
            page.tally.record(Event::Opened(connection));
            if let Some(protocol) = connection.protocol {
                page.versions.entry(protocol).or_default().connections += 1;
            }
        }
        self.log(Event::Opened(connection));
    }

    pub(crate) fn exchange(
        &self,
        page: usize,
        exchange: &Exchange,
        version: Protocol,
        fault: Option<Fault>,
        disturbed: &[Disturbance],
    ) {
        {
            let mut page = self.page(page);
            page.tally.record(Event::Exchange(exchange));
            page.versions.entry(version).or_default().requests += 1;
            if let Some(status) = exchange.status {
                *page.status.entry(status).or_default() += 1;
            }
            if let Some(fault) = fault {
                *page.faults.entry(fault).or_default() += 1;
            }
            for &kind in disturbed {
                *page.disturbed.entry(kind).or_default() += 1;
            }
            if page.last.len() == LAST {
                page.last.pop_front();
            }
            page.last.push_back(exchange.clone());
        }
        self.log(Event::Exchange(exchange));
    }

    pub(crate) fn closed(&self, page: usize, closed: &Closed, version: Option<Protocol>) {
        {
            let mut page = self.page(page);
            page.tally.record(Event::Closed(closed));
            page.closed += 1;
            if let Some(version) = version {
                let counts = page.versions.entry(version).or_default();
                *counts.ended_by.entry(closed.close.ended_by()).or_default() += 1;
                if let Some(exchanges) = closed.close.exchanges {
                    counts.per_connection.record(exchanges);
                }
            }
        }
        self.log(Event::Closed(closed));
    }

    /// A query to the name server was answered, or fails.
    pub(crate) fn lookup(&self, lookup: &Lookup, fault: Option<LookupFault>) {
        if let Some(mut lookups) = locked(&self.lookups) {
            lookups.total += 1;
            if let Some(fault) = fault {
                *lookups.failed.entry(fault).or_default() += 1;
            }
        }
        self.page(0).tally.record(Event::Lookup(lookup));
        self.log(Event::Lookup(lookup));
    }

    /// A call to the upstream is over.
    pub(crate) fn called(&self, outcome: Outcome) {
        if let Some(mut calls) = locked(&self.upstream) {
            calls.total += 1;
            if let Some(kind) = outcome.failure() {
                *calls.failed.entry(kind).or_default() += 1;
            }
        }
    }

    /// A connection to the upstream was opened.
    pub(crate) fn called_on_new_connection(&self) {
        if let Some(mut calls) = locked(&self.upstream) {
            calls.connections += 1;
        }
    }

    fn page(&self, page: usize) -> MutexGuard<'_, Page> {
        // a page is whole after each statement, so a panic elsewhere leaves nothing half done
        self.pages[page]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self, event: Event<'_>) {
        if let Some(log) = &self.log {
            log.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .record(event);
        }
    }

    /// Everything up to now.
    pub(crate) fn totals(&self) -> Totals {
        let mut tally = Tally::new();
        let mut versions: BTreeMap<Protocol, VersionCounts> = BTreeMap::new();
        let mut status = BTreeMap::new();
        let mut faults = BTreeMap::new();
        let mut disturbed = BTreeMap::new();
        let mut last = Vec::new();
        let (mut closed, mut waiting) = (0, 0);
        for page in 0..self.pages.len() {
            let page = self.page(page);
            tally.merge(&page.tally);
            closed += page.closed;
            waiting += page.waiting;
            for (&protocol, counts) in &page.versions {
                versions.entry(protocol).or_default().merge(counts);
            }
            add_counts(&mut status, &page.status);
            add_counts(&mut faults, &page.faults);
            add_counts(&mut disturbed, &page.disturbed);
            last.extend(page.last.iter().cloned());
        }
        last.sort_by_key(|exchange: &Exchange| exchange.end);
        last.drain(..last.len().saturating_sub(LAST));
        let (requests, reused) = Requests::count(&mut tally, status);
        Totals {
            schema: "intact.serve/1",
            run: self.run.clone(),
            uptime_s: self.started.elapsed().as_secs_f64(),
            reuse: (requests.total > 0).then(|| reused as f64 / requests.total as f64),
            reused,
            requests,
            connections: Connections::count(&mut tally, closed, waiting),
            versions: versions
                .into_iter()
                .map(|(http, counts)| counts.sum_up(http))
                .collect(),
            faults,
            disturbed,
            lookups: locked(&self.lookups).map(|lookups| lookups.clone()),
            upstream: locked(&self.upstream).map(|calls| calls.clone()),
            last,
            tally,
        }
    }
}

/// Counts that all threads share, where they are kept.
fn locked<T>(counts: &Option<Mutex<T>>) -> Option<MutexGuard<'_, T>> {
    let counts = counts.as_ref()?;
    Some(counts.lock().unwrap_or_else(PoisonError::into_inner))
}
