//! The rows of one run of the program that the verdict needs. Bounded memory; what does not fit is
//! a caveat. Must not judge.

use intact_ledger::{
    Caveat, Connection, ConnectionId, Event, Exchange, Failure, FaultEnd, FaultEvent, FaultKind,
    FaultNotApplied, FaultScope, FaultStrike, Fingerprint, Method, Nanos, Protocol, Run,
    SetupPhase, Sink, Target, Vantage, Variant,
};
use intact_traffic::{DestinationKey, ObservedFacts, TrafficAnalysis};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Requests of a run that are matched.
const REQUESTS: usize = 200_000;
/// Connections whose destination is known.
const CONNECTIONS: usize = 200_000;

/// The rows of one run.
pub(super) struct RunRows {
    /// The kind with its parameter, or `none`.
    pub(super) name: String,
    pub(super) is_baseline: bool,
    /// The kind; `None` in the run without a fault.
    pub(super) kind: Option<FaultKind>,
    /// How much of a pool it strikes.
    pub(super) scope: FaultScope,
    /// Whether its faults are limited to some hosts.
    pub(super) is_limited: bool,
    pub(super) strikes: Vec<FaultStrike>,
    pub(super) not_applied: Vec<FaultNotApplied>,
    pub(super) end: Option<FaultEnd>,
    pub(super) requests: Vec<SentRequest>,
    pub(super) connections: HashMap<ConnectionId, Place>,
    /// Dials and certificates that were refused: when, and where to.
    refused: Vec<(Nanos, SocketAddr)>,
    traffic: TrafficAnalysis,
    is_full: bool,
}

/// Where a connection leads.
#[derive(Clone)]
pub(super) struct Place {
    /// Scheme, host and port.
    pub(super) name: Arc<str>,
    pub(super) host: Option<Arc<str>>,
    pub(super) at: Nanos,
    pub(super) is_http2: bool,
    pub(super) peer: Option<SocketAddr>,
}

impl Place {
    pub(super) fn name_and_host(&self) -> (String, Option<String>) {
        let host = self.host.as_ref().map(ToString::to_string);
        (self.name.to_string(), host)
    }
}

/// A request of the program and what it got.
pub(super) struct SentRequest {
    pub(super) id: u64,
    pub(super) connection: Option<ConnectionId>,
    pub(super) at: Nanos,
    pub(super) end: Nanos,
    /// Nanoseconds that it waited for the setup of its connection.
    pub(super) setup: u64,
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) method: Option<Method>,
    pub(super) target: Option<Target>,
    pub(super) is_ok: bool,
    /// Whether the header section of a response came.
    pub(super) has_status: bool,
    pub(super) retry_of: Option<u64>,
}

impl SentRequest {
    fn of(exchange: &Exchange) -> SentRequest {
        SentRequest {
            id: exchange.id,
            connection: exchange.connection,
            at: exchange.at,
            end: exchange.end,
            setup: exchange.spans.setup_nanos(),
            fingerprint: exchange.fingerprint,
            method: exchange.method.clone(),
            target: exchange.target.clone(),
            is_ok: exchange.outcome.is_ok(),
            has_status: exchange.status.is_some(),
            retry_of: exchange.retry_of,
        }
    }

    /// Whether it may be sent again without an effect of its own; unknown counts as not.
    pub(super) fn is_idempotent(&self) -> bool {
        self.method.as_ref().is_some_and(Method::is_idempotent)
    }

    /// `POST /orders`; absent where it cannot be read.
    pub(super) fn label(&self) -> Option<String> {
        let method = self.method.as_ref()?;
        let target = self.target.as_ref()?;
        Some(format!("{method} {target}"))
    }
}

impl RunRows {
    pub(super) fn new(run: &Run, variant: &Variant) -> RunRows {
        let named = variant.axes.get(super::AXIS).map(String::as_str);
        let is_one = named.is_some_and(|named| named.ends_with(super::ONE));
        let named = named.map(|named| named.split(['=', '/']).next().unwrap_or(named));
        RunRows {
            name: variant.name.clone(),
            is_baseline: named == Some(super::NO_FAULT),
            kind: named.and_then(|name| name.parse().ok()),
            scope: match is_one {
                true => FaultScope::One,
                false => FaultScope::All,
            },
            is_limited: false,
            strikes: Vec::new(),
            not_applied: Vec::new(),
            end: None,
            requests: Vec::new(),
            connections: HashMap::new(),
            refused: Vec::new(),
            traffic: TrafficAnalysis::new(run),
            is_full: false,
        }
    }

    pub(super) fn record(&mut self, event: Event<'_>) {
        self.traffic.record(event);
        match event {
            Event::Opened(connection) | Event::Revised(connection) => self.connection(connection),
            Event::Exchange(exchange) if self.requests.len() < REQUESTS => {
                self.requests.push(SentRequest::of(exchange));
            }
            Event::Exchange(_) => self.is_full = true,
            Event::Fault(FaultEvent::Planned(plan)) => self.is_limited = !plan.hosts.is_empty(),
            Event::Fault(FaultEvent::Struck(strike)) => self.strikes.push(strike.clone()),
            Event::Fault(FaultEvent::NotApplied(missed)) => self.not_applied.push(missed.clone()),
            Event::Fault(FaultEvent::Ended(end)) => self.end = Some(end.clone()),
            _ => {}
        }
    }

    fn connection(&mut self, connection: &Connection) {
        let is_known = self.connections.contains_key(&connection.id);
        if !is_known && self.connections.len() >= CONNECTIONS {
            self.is_full = true;
            return;
        }
        if let (Some(failed), Some(peer)) = (&connection.failed, connection.peer)
            && (failed.kind == Failure::Refused || failed.phase == SetupPhase::Ssl)
            && self.refused.len() < CONNECTIONS
        {
            self.refused.push((connection.at, peer));
        }
        let key = DestinationKey::by_requests(connection, Vantage::OnPath);
        let place = Place {
            name: key.name().into(),
            host: key.host().map(Into::into),
            at: connection.at,
            is_http2: connection.protocol == Some(Protocol::Http2),
            peer: connection.peer,
        };
        self.connections.insert(connection.id, place);
    }

    /// Whether several connections of a destination were struck that were open together.
    pub(super) fn has_struck_pool(&self) -> bool {
        let place = |strike: &FaultStrike| self.connections.get(&strike.connection);
        let mut pairs = self.strikes.iter().flat_map(|first| {
            let others = self.strikes.iter();
            others.map(move |other| (first, other))
        });
        pairs.any(|(first, other)| {
            let (Some(ours), Some(theirs)) = (place(first), place(other)) else {
                return false;
            };
            let is_open = theirs.at <= first.at && other.end >= first.at;
            first.connection != other.connection && ours.name == theirs.name && is_open
        })
    }

    /// Whether it would have shown what the run before it shows, and was left out.
    pub(super) fn was_left_out(&self) -> bool {
        self.scope == FaultScope::One && self.end.is_none() && self.requests.is_empty()
    }

    /// The dials of an address, or its certificates, that were refused since then.
    pub(super) fn refused_since(&self, at: Nanos, peer: SocketAddr) -> usize {
        let refused = self.refused.iter();
        refused
            .filter(|(when, to)| *when >= at && *to == peer)
            .count()
    }

    /// The traffic of the run.
    pub(super) fn observed(&self) -> ObservedFacts {
        self.traffic.facts()
    }

    /// What is missing because there was too much.
    pub(super) fn caveat(&self) -> Option<Caveat> {
        self.is_full.then(|| {
            let words = format!(
                "{}: requests beyond the first {REQUESTS} were not matched",
                self.name
            );
            Caveat::incomplete("too-many-requests", words)
        })
    }

    /// Where a request went.
    pub(super) fn place_of(&self, request: &SentRequest) -> Option<&Place> {
        self.connections.get(&request.connection?)
    }

    /// The requests that went to a destination.
    pub(super) fn requests_to(&self, destination: &str) -> impl Iterator<Item = &SentRequest> {
        self.requests.iter().filter(move |request| {
            let place = self.place_of(request);
            place.is_some_and(|place| *place.name == *destination)
        })
    }
}
