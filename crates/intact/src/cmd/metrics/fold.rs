//! From the events of a run to the values of its metrics: one pass, bounded memory. Must not know a format.

use super::series::{Attributes, Families, Value};
use super::table::{Metric, PHASE, REUSED, VARIANT};
use intact_ledger::{
    Closed, Connection, ConnectionId, Event, Exchange, Failure, Method, Nanos, Outcome, Protocol,
    Run, Scheme, Setup, Sink, Spans, Vantage,
};
use opentelemetry_semantic_conventions::attribute;
use std::collections::{BTreeMap, VecDeque};

/// Connections that are followed at once; beyond, the oldest is counted as opened, and its end is not seen.
const LIVE: usize = 65_536;
/// Connections that have ended and are remembered, for requests that are told of after that.
const ENDED: usize = 64;
/// Letters of a host's name, which is what DNS has room for.
const NAME: usize = 253;
/// The methods that have series of their own; the others are `_OTHER` (semantic conventions, `http.request.method`).
const METHODS: [&str; 10] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY",
];

/// A connection of which more may become known: it is counted when it ends.
struct TimedConnection {
    at: Nanos,
    setup: Setup,
    is_http: bool,
    /// Why its setup failed after the transport was opened.
    failed: Option<Failure>,
    attributes: Attributes,
}

/// The events so far.
pub(super) struct Fold {
    run: Run,
    families: Families,
    /// The oldest first: ids are given in order.
    live: BTreeMap<ConnectionId, TimedConnection>,
    ended: VecDeque<(ConnectionId, Attributes)>,
}

/// A run's metrics, complete.
#[cfg_attr(
    not(feature = "otlp"),
    expect(dead_code, reason = "text says neither who tells nor when")
)]
pub(super) struct Measured {
    /// The run.
    pub(super) run: Run,
    /// The values.
    pub(super) families: Families,
}

impl Fold {
    /// No events yet.
    pub(super) fn new(run: &Run) -> Fold {
        Fold {
            run: run.clone(),
            families: Families::new(run.vantage),
            live: BTreeMap::new(),
            ended: VecDeque::new(),
        }
    }

    /// Counts what is still open.
    pub(super) fn finish(mut self) -> Measured {
        for live in std::mem::take(&mut self.live).into_values() {
            self.level(&live, None);
            self.count(live);
        }
        Measured {
            run: self.run,
            families: self.families,
        }
    }

    fn opened(&mut self, connection: &Connection) {
        let attributes = self.attributes(connection);
        if let Some(failure) = &connection.failed
            && !connection.is_opened()
        {
            self.remember(connection.id, attributes.clone());
            self.fail(failure.kind, attributes, connection.at);
            return;
        }
        let live = self.live(connection, attributes);
        self.live.insert(connection.id, live);
        if self.live.len() > LIVE
            && let Some((id, oldest)) = self.live.pop_first()
        {
            self.remember(id, oldest.attributes.clone());
            self.count(oldest);
        }
    }

    fn revised(&mut self, connection: &Connection) {
        if self.live.contains_key(&connection.id) {
            let live = self.live(connection, self.attributes(connection));
            self.live.insert(connection.id, live);
        }
    }

    fn closed(&mut self, closed: &Closed) {
        let at = closed.close.at;
        let Some(live) = self.live.remove(&closed.connection) else {
            return;
        };
        if self.has_life(&live) {
            let life = whole(at.since(live.at));
            let attributes = live.attributes.clone();
            self.families.add(Metric::Lives, attributes, at, life);
        }
        self.level(&live, Some(at));
        self.remember(closed.connection, live.attributes.clone());
        self.count(live);
    }

    fn exchange(&mut self, exchange: &Exchange) {
        let end = exchange.end;
        let mut attributes = self.connection_of(exchange);
        if let Some(method) = &exchange.method {
            attributes = with(attributes, attribute::HTTP_REQUEST_METHOD, known(method));
        }
        if let Some(status) = exchange.status {
            let status = Value::Number(i64::from(status));
            attributes.push((attribute::HTTP_RESPONSE_STATUS_CODE, status));
        }
        if let Some(error) = self.error(exchange) {
            attributes = with(attributes, attribute::ERROR_TYPE, &error);
        }
        if let Some(reuse) = exchange.reuse {
            attributes.push((REUSED, Value::Flag(reuse.is_reused())));
        }
        let untimed = exchange.latency() == 0 && exchange.spans == Spans::default();
        if self.run.durations_seen && !untimed {
            let took = whole(exchange.latency());
            self.families
                .add(Metric::Requests, attributes.clone(), end, took);
        }
        if let Some(bytes) = exchange.body.read {
            self.families
                .add(Metric::Bodies, attributes.clone(), end, whole(bytes));
        }
        self.families.add(Metric::Seen, attributes, end, 1);
    }

    /// The attributes of the connection that carried it, as far as there is one.
    fn connection_of(&self, exchange: &Exchange) -> Attributes {
        let id = exchange.connection;
        let live = id.and_then(|id| self.live.get(&id));
        let ended = || self.ended.iter().find(|(ended, _)| Some(*ended) == id);
        match live {
            Some(live) => live.attributes.clone(),
            None => match ended() {
                Some((_, attributes)) => attributes.clone(),
                None => self.variant(exchange.variant),
            },
        }
    }

    /// What went wrong: our own word for it, or the status. A client's fault is none of the server's.
    fn error(&self, exchange: &Exchange) -> Option<String> {
        let least = match self.run.vantage {
            Vantage::Server => 500,
            Vantage::Client | Vantage::OnPath => 400,
        };
        match exchange.outcome {
            Outcome::Failed(kind) => Some(kind.id().to_owned()),
            Outcome::Ok => exchange
                .status
                .filter(|status| *status >= least)
                .map(|status| status.to_string()),
        }
    }

    fn live(&self, connection: &Connection, attributes: Attributes) -> TimedConnection {
        TimedConnection {
            at: connection.at,
            setup: connection.setup,
            is_http: self.is_http(connection),
            failed: connection.failed.as_ref().map(|failure| failure.kind),
            attributes,
        }
    }

    /// Counts a connection of which nothing more will become known.
    fn count(&mut self, live: TimedConnection) {
        let Setup { dns, connect, ssl } = live.setup;
        for (phase, span) in [("dns", dns), ("connect", connect), ("ssl", ssl)] {
            if let Some(span) = span {
                let attributes = with(live.attributes.clone(), PHASE, phase);
                let took = whole(span.nanos());
                self.families
                    .add(Metric::Setups, attributes, span.end, took);
            }
        }
        if let Some(kind) = live.failed {
            self.fail(kind, live.attributes.clone(), live.at);
        }
        self.families
            .add(Metric::Opened, live.attributes, live.at, 1);
    }

    fn fail(&mut self, kind: Failure, attributes: Attributes, at: Nanos) {
        let attributes = with(attributes, attribute::ERROR_TYPE, kind.id());
        self.families.add(Metric::Failed, attributes, at, 1);
    }

    /// Whether it was a connection of HTTP, from its beginning to an end that can be seen.
    fn has_life(&self, live: &TimedConnection) -> bool {
        live.is_http && live.failed.is_none() && self.run.ends_seen
    }

    /// Counts it among those that are open, from its beginning to its end.
    fn level(&mut self, live: &TimedConnection, closed: Option<Nanos>) {
        if !self.has_life(live) {
            return;
        }
        for (at, change) in [(Some(live.at), 1), (closed, -1)] {
            if let Some(at) = at {
                let attributes = live.attributes.clone();
                self.families.add(Metric::Open, attributes, at, change);
            }
        }
    }

    fn remember(&mut self, id: ConnectionId, attributes: Attributes) {
        if self.ended.len() == ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((id, attributes));
    }

    /// A server only logs HTTP; elsewhere bytes that nobody knew for HTTP are not taken for it.
    fn is_http(&self, connection: &Connection) -> bool {
        match (connection.protocol, &connection.origin) {
            (Some(protocol), _) => http_version(protocol).is_some() || protocol == Protocol::Tunnel,
            (None, Some(origin)) => origin.scheme != Scheme::Tcp,
            (None, None) => self.run.vantage == Vantage::Server,
        }
    }

    fn attributes(&self, connection: &Connection) -> Attributes {
        let mut attributes = self.variant(connection.variant);
        let (host, port) = match (&connection.origin, connection.peer) {
            (Some(origin), _) => (
                Some(origin.host.chars().take(NAME).collect()),
                Some(origin.port),
            ),
            // of a server the peer is the client
            (None, Some(peer)) if self.run.vantage != Vantage::Server => {
                (Some(peer.ip().to_string()), Some(peer.port()))
            }
            (None, _) => (None, None),
        };
        if let Some(host) = host {
            attributes = with(attributes, attribute::SERVER_ADDRESS, &host);
        }
        if let Some(port) = port {
            attributes.push((attribute::SERVER_PORT, Value::Number(i64::from(port))));
        }
        if let Some(origin) = &connection.origin
            && origin.scheme != Scheme::Tcp
        {
            attributes = with(attributes, attribute::URL_SCHEME, origin.scheme.as_str());
        }
        match connection.protocol {
            None | Some(Protocol::Tunnel) => attributes,
            Some(protocol) => match http_version(protocol) {
                Some(version) => with(attributes, attribute::NETWORK_PROTOCOL_VERSION, version),
                None => with(
                    attributes,
                    attribute::NETWORK_PROTOCOL_NAME,
                    protocol.as_str(),
                ),
            },
        }
    }

    fn variant(&self, index: Option<u32>) -> Attributes {
        let variant = index.and_then(|index| self.run.variants.get(index as usize));
        variant.map_or_else(Vec::new, |variant| with(Vec::new(), VARIANT, &variant.name))
    }

    /// Whether it belongs to a round of an experiment that is not counted.
    fn is_warm_up(&self, event: Event<'_>) -> bool {
        let round = match event {
            Event::Opened(connection) | Event::Revised(connection) => connection.round,
            Event::Exchange(exchange) => exchange.round,
            Event::Closed(closed) => closed.round,
            _ => None,
        };
        round == Some(0) && !self.run.variants.is_empty()
    }
}

impl Sink for Fold {
    fn record(&mut self, event: Event<'_>) {
        if self.is_warm_up(event) {
            return;
        }
        match event {
            Event::Opened(connection) => self.opened(connection),
            Event::Revised(connection) => self.revised(connection),
            Event::Exchange(exchange) => self.exchange(exchange),
            Event::Closed(closed) => self.closed(closed),
            _ => {}
        }
    }
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn with(mut attributes: Attributes, name: &'static str, text: &str) -> Attributes {
    attributes.push((name, Value::Text(text.to_owned())));
    attributes
}

/// A method that may be an attribute: what a client makes up must not open a series of its own.
fn known(method: &Method) -> &str {
    METHODS
        .into_iter()
        .find(|known| *known == method.as_str())
        .unwrap_or("_OTHER")
}

fn http_version(protocol: Protocol) -> Option<&'static str> {
    match protocol {
        Protocol::Http09
        | Protocol::Http10
        | Protocol::Http11
        | Protocol::Http2
        | Protocol::Http3 => Some(protocol.as_str()),
        Protocol::Tunnel
        | Protocol::Redis
        | Protocol::Postgresql
        | Protocol::Mysql
        | Protocol::Amqp => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::{
        Close, ConnectionBytes, DialFailure, Origin, Probes, Producer, SetupPhase, Span, Variant,
    };

    fn run(vantage: Vantage) -> Run {
        Run::new(
            Producer::Watch,
            "0",
            vantage,
            jiff::Timestamp::UNIX_EPOCH,
            1,
            &[],
        )
    }

    fn connection(id: u64) -> Connection {
        let mut one = Connection::new(ConnectionId(id), Nanos(0));
        one.origin = Some(Origin {
            scheme: Scheme::Http,
            host: "a.example".into(),
            port: 80,
        });
        one
    }

    fn exchange(connection: u64, end: u64) -> Exchange {
        let mut one = Exchange::new(1, Nanos(0));
        one.connection = Some(ConnectionId(connection));
        one.end = Nanos(end);
        one.spans.wait = Some(Span::new(Nanos(0), Nanos(end)));
        one.status = Some(200);
        one
    }

    fn closed(id: u64, at: u64) -> Closed {
        Closed {
            connection: ConnectionId(id),
            variant: None,
            round: None,
            close: Close {
                at: Nanos(at),
                by: None,
                how: None,
                announced_by: None,
                moment: None,
                exchanges: None,
                bytes: ConnectionBytes::default(),
                probes: Probes::default(),
            },
        }
    }

    /// Series of a metric as text, with their sums.
    fn series(fold: Fold, name: &str) -> Vec<(String, i64)> {
        let measured = fold.finish();
        let family = measured
            .families
            .iter()
            .find(|family| family.definition.name == name);
        let text = |attributes: &Attributes| {
            let one = |(name, value): &(&str, Value)| match value {
                Value::Text(text) => format!("{name}={text}"),
                Value::Number(number) => format!("{name}={number}"),
                Value::Flag(flag) => format!("{name}={flag}"),
            };
            attributes.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        family.map_or_else(Vec::new, |family| {
            family
                .series
                .iter()
                .map(|(attributes, one)| (text(attributes), one.total.sum))
                .collect()
        })
    }

    fn names(fold: Fold) -> Vec<&'static str> {
        let families = fold.finish().families;
        families
            .iter()
            .map(|family| family.definition.name)
            .collect()
    }

    const PLACE: &str = "server.address=a.example server.port=80 url.scheme=http";

    #[test]
    fn a_connection_is_counted_where_it_turned_out_to_lead() {
        let mut fold = Fold::new(&run(Vantage::Client));
        let mut early = connection(1);
        early.origin = None;
        early.peer = Some("192.0.2.1:80".parse().unwrap());
        fold.record(Event::Opened(&early));
        fold.record(Event::Revised(&connection(1)));
        fold.record(Event::Closed(&closed(1, 7)));
        let opened = series(fold, "intact.connections.opened");
        assert_eq!(opened, [(PLACE.to_owned(), 1)]);
    }

    #[test]
    fn a_request_told_of_after_its_connection_had_ended_belongs_there() {
        let mut fold = Fold::new(&run(Vantage::Client));
        fold.record(Event::Opened(&connection(1)));
        fold.record(Event::Closed(&closed(1, 7)));
        fold.record(Event::Exchange(&exchange(1, 5)));
        let requests = series(fold, "http.client.request.duration");
        let expected = format!("{PLACE} http.response.status_code=200");
        assert_eq!(requests, [(expected, 5)]);
    }

    #[test]
    fn what_a_client_makes_up_opens_no_series_and_an_error_has_its_type() {
        let mut fold = Fold::new(&run(Vantage::Client));
        for method in ["BREW", "PROPFIND"] {
            let mut one = exchange(1, 5);
            one.method = Some(Method::new(method));
            one.status = Some(418);
            fold.record(Event::Exchange(&one));
        }
        let requests = series(fold, "intact.requests");
        let expected =
            "http.request.method=_OTHER http.response.status_code=418 error.type=418".to_owned();
        assert_eq!(requests, [(expected, 2)]);
    }

    #[test]
    fn a_log_without_times_has_requests_and_no_durations() {
        let mut fold = Fold::new(&run(Vantage::Server));
        let mut one = exchange(1, 0);
        one.spans = Spans::default();
        fold.record(Event::Exchange(&one));
        assert_eq!(names(fold), ["intact.requests"]);
    }

    #[test]
    fn what_is_not_http_is_not_counted_as_such() {
        let mut fold = Fold::new(&run(Vantage::Client));
        let mut redis = connection(1);
        redis.protocol = Some(Protocol::Redis);
        fold.record(Event::Opened(&redis));
        fold.record(Event::Closed(&closed(1, 7)));
        assert_eq!(names(fold), ["intact.connections.opened"]);
    }

    #[test]
    fn a_dial_that_failed_in_tls_is_counted_as_failed_and_is_never_open() {
        let mut fold = Fold::new(&run(Vantage::Client));
        let mut failed = connection(1);
        failed.failed = Some(DialFailure {
            phase: SetupPhase::Ssl,
            kind: Failure::TlsAlert,
            detail: None,
        });
        fold.record(Event::Opened(&failed));
        // told of later
        fold.record(Event::Opened(&connection(2)));
        failed.id = ConnectionId(2);
        fold.record(Event::Revised(&failed));
        fold.record(Event::Closed(&closed(2, 7)));
        let told = fold.finish().families;
        let sums: Vec<(&str, i64)> = told
            .iter()
            .map(|family| {
                let sums = family.series.values().map(|series| series.total.sum);
                (family.definition.name, sums.sum())
            })
            .collect();
        assert_eq!(
            sums,
            [
                ("intact.connections.opened", 2),
                ("intact.connections.failed", 2)
            ]
        );
    }

    #[test]
    fn open_connections_rise_and_fall_with_time() {
        let mut fold = Fold::new(&run(Vantage::Client));
        fold.record(Event::Opened(&connection(1)));
        let mut late = connection(2);
        late.at = Nanos(2_500_000_000);
        fold.record(Event::Opened(&late));
        fold.record(Event::Closed(&closed(1, 4_500_000_000)));
        let measured = fold.finish();
        let mut families = measured.families.iter();
        let open = families
            .find(|family| family.definition.name == "http.client.open_connections")
            .unwrap();
        let series = open.series.values().next().unwrap();
        assert_eq!(series.total.sum, 1);
        #[cfg(feature = "otlp")]
        {
            let points = measured.families.through_time(series);
            let levels = points.iter().map(|(at, point)| (at.0, point.sum));
            assert_eq!(
                levels.collect::<Vec<_>>(),
                [(1_000_000_000, 1), (3_000_000_000, 2), (4_500_000_000, 1)]
            );
        }
    }

    #[test]
    fn where_ends_cannot_be_seen_connections_have_neither_durations_nor_levels() {
        let mut run = run(Vantage::Client);
        for (ends_seen, expected) in [
            (
                true,
                &[
                    "http.client.connection.duration",
                    "http.client.open_connections",
                    "intact.connections.opened",
                ][..],
            ),
            (false, &["intact.connections.opened"]),
        ] {
            run.ends_seen = ends_seen;
            let mut fold = Fold::new(&run);
            fold.record(Event::Opened(&connection(1)));
            fold.record(Event::Closed(&closed(1, 7)));
            assert_eq!(names(fold), expected);
        }
    }

    #[test]
    fn where_too_many_are_open_the_oldest_is_no_longer_followed() {
        let mut fold = Fold::new(&run(Vantage::Client));
        let last = LIVE as u64 + 1;
        for id in 1..=last {
            fold.record(Event::Opened(&connection(id)));
        }
        assert_eq!(fold.live.len(), LIVE);
        fold.record(Event::Closed(&closed(1, 5)));
        fold.record(Event::Closed(&closed(last, 7)));
        let told = fold.finish().families;
        let sum = |metric: &str| {
            let mut families = told.iter();
            let family = families.find(|family| family.definition.name == metric);
            let series = family.unwrap().series.values().next().unwrap();
            series.total.sum
        };
        assert_eq!(sum("intact.connections.opened"), last as i64);
        assert_eq!(sum("http.client.connection.duration"), 7);
        assert_eq!(sum("http.client.open_connections"), last as i64 - 2);
    }

    #[test]
    fn a_body_is_counted_only_where_it_is_known_how_much_of_it_was_read() {
        let mut fold = Fold::new(&run(Vantage::Server));
        let mut logged = exchange(1, 5);
        logged.bytes.body = 300;
        fold.record(Event::Exchange(&logged));
        assert_eq!(
            names(fold),
            ["http.server.request.duration", "intact.requests"]
        );
        let mut fold = Fold::new(&run(Vantage::Client));
        logged.body.read = Some(300);
        fold.record(Event::Exchange(&logged));
        let bodies = series(fold, "http.client.response.body.size");
        assert_eq!(bodies, [("http.response.status_code=200".to_owned(), 300)]);
    }

    #[test]
    fn rounds_that_are_not_counted_are_in_no_metric_and_programs_are_told_apart() {
        let mut run = run(Vantage::OnPath);
        run.variants = vec![Variant {
            name: "old".to_owned(),
            axes: BTreeMap::new(),
        }];
        let mut fold = Fold::new(&run);
        for (id, round) in [(1, 0), (2, 1)] {
            let mut one = connection(id);
            (one.variant, one.round) = (Some(0), Some(round));
            fold.record(Event::Opened(&one));
        }
        let opened = series(fold, "intact.connections.opened");
        assert_eq!(opened, [(format!("intact.variant=old {PLACE}"), 1)]);
    }
}
