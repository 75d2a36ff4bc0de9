//! `--prometheus FILE`: the run as metrics in the text format of Prometheus (OpenMetrics), with OpenTelemetry's names and units where it has them
//! (semantic conventions for HTTP metrics): a file for the node exporter's textfile collector, or for a receiver of OpenTelemetry's collector.

use anyhow::Context;
use ledger::{
    Connection, ConnectionId, Event, Exchange, Nanos, Origin, Outcome, Run, Sink, Vantage,
};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Open connections that are remembered.
const OPEN: usize = 65_536;
/// Origins that get series of their own; the others share one.
const ORIGINS: usize = 256;
/// OpenTelemetry's advice for the duration of requests, and two below it: one machine is quick. Seconds.
const REQUESTS: [f64; 16] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];
/// OpenTelemetry's advice for the duration of connections. Seconds.
const CONNECTIONS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

type Labels = Vec<(&'static str, String)>;

/// Makes histograms of fixed bounds.
#[derive(Clone)]
struct Bounds(&'static [f64]);

impl MetricConstructor<Histogram> for Bounds {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

type Histograms = Family<Labels, Histogram, Bounds>;

/// The metrics of a run.
pub(crate) struct Metrics {
    path: PathBuf,
    registry: Registry,
    requests: Histograms,
    lives: Histograms,
    setups: Histograms,
    opened: Family<Labels, Counter>,
    failed: Family<Labels, Counter>,
    open_now: Family<Labels, Gauge>,
    open: HashMap<ConnectionId, (Nanos, Labels)>,
    origins: HashSet<Origin>,
}

impl Metrics {
    /// Metrics that will be written to `path`.
    pub(crate) fn new(path: &Path, run: &Run) -> Metrics {
        let mut metrics = Metrics {
            path: path.to_owned(),
            registry: Registry::default(),
            requests: Family::new_with_constructor(Bounds(&REQUESTS)),
            lives: Family::new_with_constructor(Bounds(&CONNECTIONS)),
            setups: Family::new_with_constructor(Bounds(&REQUESTS)),
            opened: Family::default(),
            failed: Family::default(),
            open_now: Family::default(),
            open: HashMap::new(),
            origins: HashSet::new(),
        };
        // who served them tells of requests as a server
        let side = match run.vantage {
            Vantage::Server => "server",
            Vantage::Client | Vantage::Middle => "client",
        };
        let registry = &mut metrics.registry;
        registry.register_with_unit(
            format!("http_{side}_request_duration"),
            "Requests, from when they were wanted to their end, set-up included",
            Unit::Seconds,
            metrics.requests.clone(),
        );
        registry.register_with_unit(
            format!("http_{side}_connection_duration"),
            "Connections that ended, from the first step of their set-up",
            Unit::Seconds,
            metrics.lives.clone(),
        );
        registry.register(
            format!("http_{side}_open_connections"),
            "Connections that were open at the end",
            metrics.open_now.clone(),
        );
        registry.register_with_unit(
            "intact_connection_setup",
            "Set-up of connections: look-up, transport and TLS",
            Unit::Seconds,
            metrics.setups.clone(),
        );
        registry.register(
            "intact_connections_opened",
            "Connections that were opened",
            metrics.opened.clone(),
        );
        registry.register(
            "intact_connections_failed",
            "Dials that led to no connection",
            metrics.failed.clone(),
        );
        metrics
    }

    /// Writes them.
    pub(crate) fn write(&self) -> anyhow::Result<()> {
        for (_, labels) in self.open.values() {
            self.open_now.get_or_create(labels).inc();
        }
        let mut text = String::new();
        encode(&mut text, &self.registry).context("--prometheus")?;
        std::fs::write(&self.path, text)
            .with_context(|| format!("--prometheus: cannot write {}", self.path.display()))
    }

    fn place(&mut self, origin: Option<&Origin>) -> Labels {
        let known = origin.filter(|origin| {
            self.origins.contains(origin)
                || self.origins.len() < ORIGINS && self.origins.insert((*origin).clone())
        });
        let Some(origin) = known else {
            return vec![("server_address", "(others)".to_owned())];
        };
        vec![
            ("server_address", origin.host.to_string()),
            ("server_port", origin.port.to_string()),
            ("url_scheme", origin.scheme.as_str().to_owned()),
        ]
    }

    fn opened(&mut self, connection: &Connection) {
        let mut labels = self.place(connection.origin.as_ref());
        if let Some(failure) = &connection.failed
            && !connection.is_opened()
        {
            labels.push(("error_type", failure.kind.id().to_owned()));
            self.failed.get_or_create(&labels).inc();
            return;
        }
        self.opened.get_or_create(&labels).inc();
        if let Some(nanos) = connection.setup.nanos() {
            self.setups.get_or_create(&labels).observe(seconds(nanos));
        }
        self.remember(connection, labels);
    }

    fn remember(&mut self, connection: &Connection, mut labels: Labels) {
        if let Some(protocol) = connection.protocol {
            labels.push(("network_protocol_version", protocol.as_str().to_owned()));
        }
        if self.open.len() < OPEN || self.open.contains_key(&connection.id) {
            self.open.insert(connection.id, (connection.at, labels));
        }
    }

    fn exchange(&mut self, exchange: &Exchange) {
        let open = exchange.connection.and_then(|id| self.open.get(&id));
        let mut labels = match open {
            Some((_, labels)) => labels.clone(),
            None => self.place(None),
        };
        if let Some(method) = &exchange.method {
            labels.push(("http_request_method", method.as_str().to_owned()));
        }
        if let Some(status) = exchange.status {
            labels.push(("http_response_status_code", status.to_string()));
        }
        if let Outcome::Failed(kind) = exchange.outcome {
            labels.push(("error_type", kind.id().to_owned()));
        }
        let connection = match exchange.fresh {
            Some(true) => "fresh",
            Some(false) => "reused",
            None => "unknown",
        };
        labels.push(("connection", connection.to_owned()));
        let duration = seconds(exchange.latency());
        self.requests.get_or_create(&labels).observe(duration);
    }
}

impl Sink for Metrics {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Opened(connection) => self.opened(connection),
            Event::Revised(connection) if self.open.contains_key(&connection.id) => {
                let labels = self.place(connection.origin.as_ref());
                self.remember(connection, labels);
            }
            Event::Exchange(exchange) => self.exchange(exchange),
            Event::Closed(closed) => {
                if let Some((at, labels)) = self.open.remove(&closed.connection) {
                    let life = seconds(closed.close.at.since(at));
                    self.lives.get_or_create(&labels).observe(life);
                }
            }
            _ => {}
        }
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_with_the_names_of_opentelemetry() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.prom");
        let run = Run::new(
            "watch",
            "0",
            Vantage::Client,
            jiff::Timestamp::UNIX_EPOCH,
            1,
            &[],
        );
        let mut metrics = Metrics::new(&path, &run);
        let mut connection = Connection::new(ConnectionId(1), Nanos(0));
        connection.origin = Some(Origin {
            scheme: ledger::Scheme::Http,
            host: "a.example".into(),
            port: 80,
        });
        metrics.record(Event::Opened(&connection));
        for (fresh, end) in [(true, 30_000_000), (false, 2_000_000)] {
            let mut one = Exchange::new(1, Nanos(0));
            one.connection = Some(ConnectionId(1));
            one.end = Nanos(end);
            one.status = Some(200);
            one.fresh = Some(fresh);
            metrics.record(Event::Exchange(&one));
        }
        metrics.write().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        for line in [
            "# TYPE http_client_request_duration_seconds histogram",
            "http_client_request_duration_seconds_sum{server_address=\"a.example\",server_port=\"80\",url_scheme=\"http\",http_response_status_code=\"200\",connection=\"fresh\"} 0.03",
            "http_client_request_duration_seconds_count{server_address=\"a.example\",server_port=\"80\",url_scheme=\"http\",http_response_status_code=\"200\",connection=\"reused\"} 1",
            "intact_connections_opened_total{server_address=\"a.example\",server_port=\"80\",url_scheme=\"http\"} 1",
            "http_client_open_connections{server_address=\"a.example\",server_port=\"80\",url_scheme=\"http\"} 1",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
