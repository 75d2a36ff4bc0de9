//! What the whole server has recorded so far: a page for each thread, added up when somebody asks.

use crate::fault::Fault;
use ledger::{
    Closed, Connection, EndedBy, Event, Exchange, Failure, Handshake, Histogram, Nanos, Protocol,
    Sink, Tally, TlsVersion,
};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How many exchanges are kept to be shown, the last ones.
const LAST: usize = 20;

/// The record of a running server.
pub(crate) struct Books {
    started: Instant,
    pages: Box<[Mutex<Page>]>,
    log: Option<Mutex<Box<dyn Sink + Send>>>,
}

/// What one thread has recorded.
#[derive(Default)]
struct Page {
    tally: Tally,
    closed: u64,
    versions: BTreeMap<Protocol, VersionPage>,
    faults: BTreeMap<Fault, u64>,
    last: VecDeque<Exchange>,
}

/// The same for the connections of one HTTP version.
#[derive(Default)]
struct VersionPage {
    connections: u64,
    exchanges: u64,
    /// Exchanges on connections that have ended.
    per_connection: Histogram,
    ended_by: BTreeMap<EndedBy, u64>,
}

/// Everything added up; as JSON the document of `/.intact/ledger` (docs/schema/serve.schema.json).
#[derive(Clone, Debug, Serialize)]
pub struct Totals {
    /// `intact.serve/1`.
    pub schema: &'static str,
    /// Seconds since the server started.
    pub uptime_s: f64,
    /// Connections.
    pub connections: ConnectionTotals,
    /// Exchanges.
    pub exchanges: ExchangeTotals,
    /// The same per HTTP version, as far as it was spoken.
    pub versions: Vec<VersionTotals>,
    /// Faults that were made, by id.
    pub faults: BTreeMap<Fault, u64>,
    /// The last exchanges, oldest first, as the ledger has them.
    pub last: Vec<Exchange>,
    /// All counts and histograms.
    #[serde(skip)]
    pub tally: Tally,
}

/// Counts of connections.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionTotals {
    /// Accepted, and the TLS handshake begun.
    pub opened: u64,
    /// Of those, the ones that are still there.
    pub open: u64,
    /// TLS handshakes that failed, by kind.
    pub failed: BTreeMap<Failure, u64>,
    /// TLS handshakes that did not.
    pub handshakes: Vec<HandshakeTotals>,
    /// Ended ones by who ended them.
    pub ended_by: BTreeMap<EndedBy, u64>,
}

/// TLS handshakes of one version and kind.
#[derive(Clone, Debug, Serialize)]
pub struct HandshakeTotals {
    /// The version.
    pub tls: Option<TlsVersion>,
    /// Full, resumed, or with early data.
    pub kind: Option<Handshake>,
    /// How many.
    pub count: u64,
}

/// Counts of exchanges.
#[derive(Clone, Debug, Serialize)]
pub struct ExchangeTotals {
    /// Over, well or not.
    pub total: u64,
    /// Answered in full.
    pub ok: u64,
    /// Not answered in full, by kind.
    pub failed: BTreeMap<Failure, u64>,
}

/// Counts of one HTTP version.
#[derive(Clone, Debug, Serialize)]
pub struct VersionTotals {
    /// The version of the first request on the connection.
    pub http: Protocol,
    /// Connections.
    pub connections: u64,
    /// Exchanges on them.
    pub exchanges: u64,
    /// Exchanges on a connection that has ended, on average; absent while none has.
    pub per_connection_mean: Option<f64>,
    /// The most exchanges on one connection that has ended.
    pub per_connection_max: Option<u64>,
    /// Ended ones by who ended them.
    pub ended_by: BTreeMap<EndedBy, u64>,
}

impl Books {
    /// Empty books with a page for each thread; events go on to `log`.
    pub(crate) fn new(pages: usize, log: Option<Box<dyn Sink + Send>>) -> Books {
        Books {
            started: Instant::now(),
            pages: (0..pages).map(|_| Mutex::default()).collect(),
            log: log.map(Mutex::new),
        }
    }

    /// The time on the run's clock.
    pub(crate) fn now(&self) -> Nanos {
        Nanos(self.started.elapsed().as_nanos() as u64)
    }

    pub(crate) fn opened(&self, page: usize, connection: &Connection) {
        self.page(page).tally.record(Event::Opened(connection));
        self.log(Event::Opened(connection));
    }

    /// A connection whose HTTP version is known now.
    pub(crate) fn spoken(&self, page: usize, connection: &Connection) {
        if let Some(protocol) = connection.protocol {
            let mut page = self.page(page);
            page.versions.entry(protocol).or_default().connections += 1;
        }
        self.log(Event::Revised(connection));
    }

    pub(crate) fn exchange(
        &self,
        page: usize,
        exchange: &Exchange,
        version: Protocol,
        fault: Option<Fault>,
    ) {
        {
            let mut page = self.page(page);
            page.tally.record(Event::Exchange(exchange));
            page.versions.entry(version).or_default().exchanges += 1;
            if let Some(fault) = fault {
                *page.faults.entry(fault).or_default() += 1;
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
                let page = page.versions.entry(version).or_default();
                *page.ended_by.entry(closed.close.ended_by()).or_default() += 1;
                if let Some(exchanges) = closed.close.exchanges {
                    page.per_connection.record(exchanges);
                }
            }
        }
        self.log(Event::Closed(closed));
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
        let mut versions: BTreeMap<Protocol, VersionPage> = BTreeMap::new();
        let mut faults = BTreeMap::new();
        let mut last = Vec::new();
        let mut closed = 0;
        for page in 0..self.pages.len() {
            let page = self.page(page);
            tally.merge(&page.tally);
            closed += page.closed;
            for (&protocol, theirs) in &page.versions {
                let ours = versions.entry(protocol).or_default();
                ours.connections += theirs.connections;
                ours.exchanges += theirs.exchanges;
                ours.per_connection.merge(&theirs.per_connection);
                for (&by, count) in &theirs.ended_by {
                    *ours.ended_by.entry(by).or_default() += count;
                }
            }
            for (&fault, count) in &page.faults {
                *faults.entry(fault).or_default() += count;
            }
            last.extend(page.last.iter().cloned());
        }
        last.sort_by_key(|exchange: &Exchange| exchange.end);
        last.drain(..last.len().saturating_sub(LAST));
        let (connections, exchanges) = count(&mut tally, closed);
        Totals {
            schema: "intact.serve/1",
            uptime_s: self.started.elapsed().as_secs_f64(),
            connections,
            exchanges,
            versions: versions.into_iter().map(VersionTotals::new).collect(),
            faults,
            last,
            tally,
        }
    }
}

/// A server's tally has one cell.
fn count(tally: &mut Tally, closed: u64) -> (ConnectionTotals, ExchangeTotals) {
    let cell = tally.cell(None, None);
    let mut exchanges = ExchangeTotals {
        total: 0,
        ok: 0,
        failed: BTreeMap::new(),
    };
    for group in &cell.groups {
        exchanges.total += group.count();
        match group.key.outcome.failure() {
            None => exchanges.ok += group.count(),
            Some(kind) => *exchanges.failed.entry(kind).or_default() += group.count(),
        }
    }
    let connections = &cell.connections;
    let failed: u64 = connections.failed.values().sum();
    let connections = ConnectionTotals {
        opened: connections.opened,
        open: connections.opened.saturating_sub(failed + closed),
        failed: connections.failed.clone(),
        handshakes: connections
            .handshakes
            .iter()
            .map(|&(tls, kind, count)| HandshakeTotals { tls, kind, count })
            .collect(),
        ended_by: connections.ended_by.clone(),
    };
    (connections, exchanges)
}

impl VersionTotals {
    fn new((http, page): (Protocol, VersionPage)) -> VersionTotals {
        VersionTotals {
            http,
            connections: page.connections,
            exchanges: page.exchanges,
            per_connection_mean: page.per_connection.mean(),
            per_connection_max: page.per_connection.max(),
            ended_by: page.ended_by,
        }
    }
}
